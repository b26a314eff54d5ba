// SPDX-License-Identifier: GPL-2.0-only
/* The reference model's circuit breakers: what opens one, what it lets pass while it is open, and what closes it. */
#include "model_breaker_bench.h"

#define RETRY (3 * SECOND) /* of bench_rule */

/* A breaker that one failure opens, at START. */
static void begin_open(struct bench *bench)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_failed(bench, 1, START, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_OPEN);
}

/* `good` requests are done and `bad` ones reset, in this order, all at once. */
static void play(struct bench *bench, unsigned int good, unsigned int bad, uint64_t time_ns)
{
	for (unsigned int i = 0; i < good; i++)
		bench_done(bench, 1, time_ns, 0);
	for (unsigned int i = 0; i < bad; i++)
		bench_failed(bench, 1, time_ns, time_ns);
}

/* ---- closed ---- */

BENCH_CLAIM(the_request_that_completes_the_minimum_opens)
{
	bench_rule(bench, MODEL_ERROR_RATIO, 0.5)->min_requests = 10;
	play(bench, 4, 5, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_CLOSED);
	bench_failed(bench, 1, START + 1, START + 2);
	assert_int_equal(bench_state(bench, START + 2), MODEL_BREAKER_OPEN);
	assert_int_equal(bench_view(bench, START + 2).retry_ns, START + 2 + RETRY);
}

BENCH_CLAIM(a_good_request_may_complete_it)
{
	bench_rule(bench, MODEL_ERROR_RATIO, 0.5)->min_requests = 10;
	play(bench, 0, 9, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_CLOSED);
	play(bench, 1, 0, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(a_minimum_of_none_is_one)
{
	bench_rule(bench, MODEL_ERROR_RATIO, 0)->min_requests = 0;
	bench_opens(bench, 1, START);
	assert_int_equal(bench_state(bench, START + TIMEOUT - 1), MODEL_BREAKER_CLOSED);
	/* a ratio of 0 is as much as a threshold of 0 */
	bench_tcp(bench, 1, ACK, START + TIMEOUT - 1);
	assert_int_equal(bench_state(bench, START + TIMEOUT - 1), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(a_ratio_at_the_threshold_opens_and_one_below_does_not)
{
	bench_rule(bench, MODEL_ERROR_RATIO, 0.333334);
	play(bench, 2, 1, START); /* 0.3333333 */
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_CLOSED);
	bench->rule[0].threshold_micro = 400000;
	play(bench, 0, 1, START); /* 2 of 4 */
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_OPEN);
	bench_restart(bench);
	bench_rule(bench, MODEL_ERROR_RATIO, 0.4);
	play(bench, 3, 2, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(errors_are_counted_without_regard_to_the_others)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 3);
	play(bench, 1000, 2, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_CLOSED);
	play(bench, 0, 1, START);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(slow_ones_and_failures_are_a_ratio)
{
	bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 0.5)->min_requests = 4;
	play(bench, 2, 1, START);
	bench_done(bench, 1, START, 51 * MS);
	assert_int_equal(bench_state(bench, START + 51 * MS), MODEL_BREAKER_OPEN);
	assert_int_equal(bench_view(bench, START + 51 * MS).retry_ns, START + 50 * MS + RETRY);
}

BENCH_CLAIM(a_window_of_one_bucket_starts_empty_at_its_edge)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 2);
	play(bench, 0, 1, START + 10 * SECOND - 1);
	play(bench, 0, 1, START + 10 * SECOND);
	assert_int_equal(bench_state(bench, START + 10 * SECOND), MODEL_BREAKER_CLOSED);
	play(bench, 0, 1, START + 20 * SECOND - 1);
	assert_int_equal(bench_state(bench, START + 20 * SECOND - 1), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(a_window_of_ten_buckets_leaps_by_one)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 2)->buckets = 10;
	play(bench, 0, 1, START + SECOND - 1);
	play(bench, 0, 1, START + 10 * SECOND); /* the bucket of the other has left */
	assert_int_equal(bench_state(bench, START + 10 * SECOND), MODEL_BREAKER_CLOSED);
	play(bench, 0, 1, START + 20 * SECOND - 1);
	assert_int_equal(bench_state(bench, START + 20 * SECOND - 1), MODEL_BREAKER_OPEN);
}

/* The good ones leave the window first: the ratio grows without a request, and is asked for at the next. */
BENCH_CLAIM(a_breaker_is_evaluated_when_a_request_is_counted)
{
	bench_rule(bench, MODEL_ERROR_RATIO, 0.5)->buckets = 10;
	play(bench, 3, 0, START);
	play(bench, 0, 2, START + 5 * SECOND);
	assert_int_equal(bench_state(bench, START + 12 * SECOND), MODEL_BREAKER_CLOSED);
	bench_opens(bench, 1, START + 12 * SECOND);
	bench_tcp(bench, 1, ACK, START + 12 * SECOND + 1);
	assert_int_equal(bench_state(bench, START + 12 * SECOND + 1), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(each_flow_has_a_breaker)
{
	begin_open(bench);
	assert_false(bench_tcp_from(bench, 1, 2, SYN, START));
	assert_true(bench_tcp_from(bench, 2, 2, SYN, START));
	assert_true(bench_tcp_from(bench, 2, 2, RST, START + 1));
	assert_false(bench_tcp_from(bench, 2, 3, SYN, START + 1 + RETRY - 1));
	assert_true(bench_tcp_from(bench, 1, 3, SYN, START + 1 + RETRY - 1));
}

/* ---- open and half-open ---- */

BENCH_CLAIM(an_open_breaker_drops_openings_until_the_nanosecond_of_the_retry)
{
	begin_open(bench);
	assert_false(bench_tcp(bench, 2, SYN, START));
	assert_false(bench_tcp(bench, 2, SYN, START + RETRY - 1));
	assert_true(bench_tcp(bench, 2, SYN, START + RETRY));
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_HALF_OPEN);
}

BENCH_CLAIM(the_first_opening_after_a_late_retry_is_the_probe)
{
	begin_open(bench);
	assert_int_equal(bench_state(bench, START + 100 * RETRY), MODEL_BREAKER_OPEN);
	assert_true(bench_tcp(bench, 2, SYN, START + 100 * RETRY));
	assert_false(bench_tcp(bench, 3, SYN, START + 100 * RETRY));
}

BENCH_CLAIM(all_but_the_probe_are_dropped_until_its_outcome)
{
	begin_open(bench);
	bench_opens(bench, 2, START + RETRY);
	assert_false(bench_tcp(bench, 3, SYN, START + RETRY + TIMEOUT - 1));
	bench_tcp(bench, 2, ACK, START + RETRY + TIMEOUT - 1);
	bench_opens(bench, 3, START + RETRY + TIMEOUT - 1);
	assert_int_equal(bench_state(bench, START + RETRY + TIMEOUT), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(a_good_probe_closes_with_an_empty_window)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 3);
	play(bench, 0, 3, START);
	bench_done(bench, 2, START + RETRY, MS);
	/* of the same window as the three */
	assert_int_equal(bench_view(bench, START + RETRY + MS).total, 0);
	play(bench, 0, 2, START + RETRY + MS);
	assert_int_equal(bench_state(bench, START + RETRY + MS), MODEL_BREAKER_CLOSED);
	play(bench, 0, 1, START + RETRY + MS);
	assert_int_equal(bench_state(bench, START + RETRY + MS), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(a_failed_probe_opens_for_another_retry)
{
	begin_open(bench);
	bench_failed(bench, 2, START + RETRY, START + RETRY + MS);
	assert_int_equal(bench_view(bench, START + RETRY + MS).retry_ns, START + RETRY + MS + RETRY);
	/* and one that says nothing, from the moment its time-out ended */
	bench_opens(bench, 2, START + RETRY + MS + RETRY);
	assert_int_equal(bench_state(bench, START + 2 * RETRY + MS + TIMEOUT - 1), MODEL_BREAKER_HALF_OPEN);
	assert_false(bench_tcp(bench, 3, SYN, START + 3 * RETRY + MS + TIMEOUT - 1));
	assert_true(bench_tcp(bench, 3, SYN, START + 3 * RETRY + MS + TIMEOUT));
}

BENCH_CLAIM(a_slow_probe_opens_when_it_is_known_to_be_slow)
{
	bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 1);
	bench_failed(bench, 1, START, START);
	bench_opens(bench, 2, START + RETRY);
	assert_int_equal(bench_state(bench, START + RETRY + 50 * MS), MODEL_BREAKER_HALF_OPEN);
	assert_int_equal(bench_state(bench, START + RETRY + 50 * MS + 1), MODEL_BREAKER_OPEN);
	/* its answer changes nothing */
	bench_tcp(bench, 2, ACK, START + RETRY + 60 * MS);
	assert_int_equal(bench_view(bench, START + RETRY + 60 * MS).retry_ns, START + 2 * RETRY + 50 * MS);
	/* one that takes exactly as long as allowed is good */
	bench_done(bench, 3, START + 2 * RETRY + 50 * MS, 50 * MS);
	assert_int_equal(bench_state(bench, START + 2 * RETRY + 100 * MS), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(with_probes_all_pass_until_so_many_were_good)
{
	begin_open(bench);
	bench->rule[0].probes = 3;
	for (uint16_t port = 1; port <= 20; port++)
		bench_opens(bench, port, START + RETRY);
	for (uint16_t port = 1; port <= 2; port++)
		bench_tcp(bench, port, ACK, START + RETRY + 1);
	assert_int_equal(bench_state(bench, START + RETRY + 1), MODEL_BREAKER_HALF_OPEN);
	bench_tcp(bench, 3, ACK, START + RETRY + 2);
	assert_int_equal(bench_state(bench, START + RETRY + 2), MODEL_BREAKER_CLOSED);
	/* the others are ordinary requests from now on */
	bench->rule[0].threshold_micro *= 2;
	bench_tcp(bench, 4, RST, START + RETRY + 3);
	assert_int_equal(bench_state(bench, START + RETRY + 3), MODEL_BREAKER_CLOSED);
	bench_tcp(bench, 5, RST, START + RETRY + 3);
	assert_int_equal(bench_state(bench, START + RETRY + 3), MODEL_BREAKER_OPEN);
}

BENCH_CLAIM(the_first_bad_probe_opens)
{
	begin_open(bench);
	bench->rule[0].probes = 3;
	for (uint16_t port = 1; port <= 5; port++)
		bench_opens(bench, port, START + RETRY);
	bench_tcp(bench, 1, ACK, START + RETRY + 1);
	bench_tcp(bench, 2, ACK, START + RETRY + 1);
	bench_tcp(bench, 3, RST, START + RETRY + 2);
	assert_int_equal(bench_view(bench, START + RETRY + 2).retry_ns, START + RETRY + 2 + RETRY);
	/* another one, and a good one, change nothing any more */
	bench_tcp(bench, 4, RST, START + RETRY + 3);
	bench_tcp(bench, 5, ACK, START + RETRY + 4);
	assert_int_equal(bench_state(bench, START + RETRY + 4), MODEL_BREAKER_OPEN);
	assert_int_equal(bench_view(bench, START + RETRY + 4).retry_ns, START + RETRY + 2 + RETRY);
}

BENCH_CLAIM(one_probe_to_be_good_lets_all_pass_until_then)
{
	begin_open(bench);
	bench->rule[0].probes = 1;
	bench_opens(bench, 2, START + RETRY);
	bench_opens(bench, 3, START + RETRY);
	bench_tcp(bench, 3, ACK, START + RETRY);
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(a_probe_that_another_rule_drops_is_none)
{
	begin_open(bench);
	assert_true(bench_tcp_dropped(bench, 2, SYN, START + RETRY + 5));
	assert_int_equal(bench_state(bench, START + RETRY + 5), MODEL_BREAKER_OPEN);
	assert_int_equal(bench_view(bench, START + RETRY + 5).retry_ns, START + RETRY);
	bench_opens(bench, 3, START + RETRY + 5);
	assert_false(bench_tcp(bench, 2, SYN, START + RETRY + 5));
}

BENCH_CLAIM(requests_from_before_the_probe_do_not_count_while_half_open)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_opens(bench, 2, START);
	bench_opens(bench, 3, START);
	bench_failed(bench, 1, START, START);
	bench_opens(bench, 4, START + RETRY);
	bench_tcp(bench, 2, RST, START + RETRY);
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_HALF_OPEN);
	bench_tcp(bench, 3, ACK, START + RETRY);
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_HALF_OPEN);
	assert_false(bench_tcp(bench, 5, SYN, START + RETRY));
	bench_tcp(bench, 4, ACK, START + RETRY);
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(nor_do_those_of_an_earlier_half_open_time)
{
	begin_open(bench);
	bench->rule[0].probes = 5;
	bench_opens(bench, 2, START + RETRY);
	bench_opens(bench, 3, START + RETRY);
	bench_failed(bench, 4, START + RETRY, START + RETRY);
	bench->rule[0].probes = 1;
	bench_opens(bench, 5, START + 2 * RETRY);
	bench_tcp(bench, 2, ACK, START + 2 * RETRY);
	bench_tcp(bench, 3, RST, START + 2 * RETRY);
	assert_int_equal(bench_state(bench, START + 2 * RETRY), MODEL_BREAKER_HALF_OPEN);
	bench_tcp(bench, 5, ACK, START + 2 * RETRY);
	assert_int_equal(bench_state(bench, START + 2 * RETRY), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(after_closing_old_requests_count_when_they_become_known)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_opens(bench, 2, START);
	bench_failed(bench, 1, START, START);
	bench_done(bench, 3, START + RETRY, 0);
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_CLOSED);
	assert_int_equal(bench_state(bench, START + TIMEOUT - 1), MODEL_BREAKER_CLOSED);
	assert_int_equal(bench_view(bench, START + TIMEOUT).retry_ns, START + TIMEOUT + RETRY);
}

/* ---- several, and observing ones ---- */

BENCH_CLAIM(all_breakers_must_admit)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 2);
	bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 0.1)->retry_timeout_ns = 2 * RETRY;
	bench_done(bench, 1, START, 51 * MS); /* opens the second */
	assert_false(bench_tcp(bench, 2, SYN, START + 51 * MS));
	assert_int_equal(bench->blocker, 1);
	bench_opens(bench, 2, START + 50 * MS + 2 * RETRY); /* its probe */
	assert_int_equal(bench_state(bench, START + 50 * MS + 2 * RETRY), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(what_an_observing_breaker_would_drop_is_no_request_of_its_own)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_rule(bench, MODEL_ERROR_COUNT, 1000);
	bench->observes = true;
	bench_failed(bench, 1, START, START);
	bench_opens(bench, 2, START); /* would be dropped */
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_OPEN);
	bench_tcp(bench, 2, SYN, START + RETRY); /* and so is evaluated again: the probe */
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_HALF_OPEN);
	bench_opens(bench, 3, START + RETRY); /* would be dropped */
	bench_tcp(bench, 3, RST, START + RETRY);
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_HALF_OPEN);
	bench_tcp(bench, 2, ACK, START + RETRY);
	assert_int_equal(bench_state(bench, START + RETRY), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(each_change_is_counted)
{
	begin_open(bench);
	assert_int_equal(bench_view(bench, START).changes, 1);
	bench_opens(bench, 2, START + RETRY);
	assert_int_equal(bench_view(bench, START + RETRY).changes, 2);
	bench_tcp(bench, 2, ACK, START + RETRY);
	assert_int_equal(bench_view(bench, START + RETRY).changes, 3);
}

RUN_CLAIMS(NULL, NULL)
