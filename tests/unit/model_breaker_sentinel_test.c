// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reference model's circuit breakers on the cases by which Sentinel-Go tests its own (circuitbreaker in its
 * core/ and tests/, July 2025), carried over as traffic: an entry is an opening, an exit without an error a
 * packet that talks, an error a reset. Its rules: 10 s in one bucket, retry after 3 s, 50 ms allowed.
 */
#include "base/util.h"
#include "model_breaker_bench.h"

static const enum model_breaker_strategy strategies[] = {MODEL_SLOW_REQUEST_RATIO, MODEL_ERROR_RATIO,
							 MODEL_ERROR_COUNT};

/* Each strategy in a bench of its own, at the threshold that Sentinel's cases have. */
static void begin_another(struct bench *bench, enum model_breaker_strategy strategy)
{
	bench_restart(bench);
	bench_rule(bench, strategy, strategy == MODEL_ERROR_COUNT ? 1 : 0.5);
}

/* Opens it by one request that fails, at START; the retry is due 3 s later. */
static void open_breaker(struct bench *bench)
{
	bench_failed(bench, 1, START, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_OPEN);
}

#define RETRY (START + 3 * SECOND)

BENCH_CLAIM(try_pass_of_a_closed_breaker_passes)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++) {
		begin_another(bench, strategies[i]);
		bench->rule[0].min_requests = 10;
		bench_opens(bench, 1, START);
	}
}

BENCH_CLAIM(try_pass_of_an_open_breaker_after_its_retry_is_the_probe)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++) {
		begin_another(bench, strategies[i]);
		open_breaker(bench);
		bench_opens(bench, 2, RETRY);
		assert_int_equal(bench_state(bench, RETRY), MODEL_BREAKER_HALF_OPEN);
	}
}

BENCH_CLAIM(ten_good_probes_close_a_breaker_whose_probe_num_is_ten)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++) {
		begin_another(bench, strategies[i]);
		bench->rule[0].probes = 10;
		open_breaker(bench);
		for (int probe = 0; probe < 10; probe++) {
			bench_opens(bench, 2, RETRY + probe * 2 * MS);
			assert_int_equal(bench_state(bench, RETRY + probe * 2 * MS), MODEL_BREAKER_HALF_OPEN);
			bench_tcp(bench, 2, ACK, RETRY + probe * 2 * MS + MS);
		}
		assert_int_equal(bench_state(bench, RETRY + SECOND), MODEL_BREAKER_CLOSED);
	}
}

BENCH_CLAIM(fewer_than_the_minimum_open_nothing)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++) {
		begin_another(bench, strategies[i]);
		bench->rule[0].min_requests = 10;
		bench_failed(bench, 1, START, START);
		assert_int_equal(bench_state(bench, START), MODEL_BREAKER_CLOSED);
	}
}

BENCH_CLAIM(a_good_probe_closes_and_a_failed_one_opens)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++) {
		begin_another(bench, strategies[i]);
		open_breaker(bench);
		bench_done(bench, 2, RETRY, 10 * MS);
		assert_int_equal(bench_state(bench, RETRY + 10 * MS), MODEL_BREAKER_CLOSED);
		begin_another(bench, strategies[i]);
		open_breaker(bench);
		bench_failed(bench, 2, RETRY, RETRY + 10 * MS);
		assert_int_equal(bench_state(bench, RETRY + 10 * MS), MODEL_BREAKER_OPEN);
	}
}

BENCH_CLAIM(one_of_two_probes_is_not_enough_and_a_failed_one_restarts)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++) {
		begin_another(bench, strategies[i]);
		bench->rule[0].probes = 2;
		open_breaker(bench);
		bench_done(bench, 2, RETRY, 10 * MS);
		assert_int_equal(bench_state(bench, RETRY + 10 * MS), MODEL_BREAKER_HALF_OPEN);
		bench_failed(bench, 3, RETRY + 20 * MS, RETRY + 20 * MS);
		assert_int_equal(bench_state(bench, RETRY + 20 * MS), MODEL_BREAKER_OPEN);
		/* the good one from before is forgotten */
		bench_done(bench, 4, RETRY + 4 * SECOND, 0);
		assert_int_equal(bench_state(bench, RETRY + 4 * SECOND), MODEL_BREAKER_HALF_OPEN);
		bench_done(bench, 5, RETRY + 4 * SECOND, 0);
		assert_int_equal(bench_state(bench, RETRY + 4 * SECOND), MODEL_BREAKER_CLOSED);
	}
}

/* Two breakers that the first request opens: the retry of one is due in a millisecond, the other's in half an hour. */
static void begin_two(struct bench *bench)
{
	struct model_breaker_rule *slow = bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 0.1);
	struct model_breaker_rule *errors = bench_rule(bench, MODEL_ERROR_RATIO, 0.1);

	slow->retry_timeout_ns = MS;
	slow->max_rt_ns = 3 * MS;
	slow->min_requests = 0;
	errors->retry_timeout_ns = 2000000 * MS;
	errors->min_requests = 0;
	bench_failed(bench, 1, START, START + 50 * MS);
	assert_int_equal(bench_state(bench, START + 50 * MS), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(a_probe_that_another_breaker_blocks_leaves_this_one_open)
{
	uint64_t retry_ns;

	begin_two(bench);
	retry_ns = bench_view(bench, START + 50 * MS).retry_ns;
	/* known to be slow after 3 ms, not when it failed */
	assert_int_equal(retry_ns, START + 4 * MS);
	for (int i = 1; i <= 2; i++) {
		assert_false(bench_tcp(bench, 1 + i, SYN, START + 50 * MS + i * 100 * MS));
		assert_int_equal(bench->blocker, 1);
		assert_int_equal(bench_state(bench, START + 50 * MS + i * 100 * MS), MODEL_BREAKER_OPEN);
		assert_int_equal(bench_view(bench, START + 50 * MS + i * 100 * MS).retry_ns, retry_ns);
	}
}

BENCH_CLAIM(ten_thousand_probes_that_another_breaker_blocks_are_all_blocked)
{
	begin_two(bench);
	for (int i = 0; i < 10000; i++) {
		assert_false(bench_tcp(bench, i % 1000, SYN, START + 150 * MS));
		assert_int_equal(bench->blocker, 1);
	}
}

BENCH_CLAIM(a_breaker_on_slow_requests_closes_by_a_quick_probe)
{
	struct model_breaker_rule *rule = bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 0.1);

	rule->retry_timeout_ns = 20 * MS;
	rule->max_rt_ns = 3 * MS;
	rule->min_requests = 0;
	bench_done(bench, 1, START, 50 * MS);
	assert_int_equal(bench_state(bench, START + 50 * MS), MODEL_BREAKER_OPEN);
	bench_done(bench, 2, START + 150 * MS, 0);
	assert_int_equal(bench_state(bench, START + 150 * MS), MODEL_BREAKER_CLOSED);
}

/* What getRuleStatSlidingWindowBucketCount gives, seen by when a first request leaves the window. */
BENCH_CLAIM(buckets_that_do_not_divide_are_one)
{
	static const struct {
		uint64_t interval_ms, buckets;
	} cases[] = {
		{10000, 0}, {1000, 1}, {1000, 10}, {1000, 30}, {100, 100}, {100, 200},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t interval_ns = cases[i].interval_ms * MS;

		begin_another(bench, MODEL_ERROR_RATIO);
		bench->rule[0].interval_ns = interval_ns;
		bench->rule[0].buckets = cases[i].buckets;
		bench->rule[0].min_requests = 10;
		bench_failed(bench, 1, START, START);
		assert_int_equal(bench_view(bench, START + interval_ns - 1).total, 1);
		assert_int_equal(bench_view(bench, START + interval_ns).total, 0);
		/* one in the middle: with one bucket it leaves with the others */
		bench_failed(bench, 1, START + interval_ns * 3 / 2, START + interval_ns * 3 / 2);
		assert_int_equal(bench_view(bench, START + 2 * interval_ns).total,
				 cases[i].buckets == 10 || cases[i].buckets == 100);
	}
}

RUN_CLAIMS(NULL, NULL)
