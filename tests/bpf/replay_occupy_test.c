// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims about occupy windows (docs/semantics.md, 10), each on traffic made for it: the shipped BPF object agrees
 * with the reference model on every packet, its wait included, and both with the figure that is written down.
 */
#include "../lib/harness_setup.h"
#include "base/util.h"

#define START (5 * SECOND) /* a bucket begins, whatever its length here */

/* A prioritized resource keyed by source, with one rule; packets wait for less than timeout_ms. */
static void setup_occupy(struct setup *setup, double threshold, uint64_t interval_ns, uint32_t samples,
			 uint32_t timeout_ms)
{
	setup_resources(setup, 1);
	setup->resource[0].is_prioritized = true;
	setup_rule(setup, 0, rule_of("occupier", WEIR_WINDOW_LEAP, threshold, interval_ns, samples));
	setup->rule[0].occupies = true;
	setup->ruleset.settings.occupy_timeout_ms = timeout_ms;
}

static void start_occupy(struct harness *harness, struct setup *setup, double threshold, uint64_t interval_ns,
			 uint32_t samples, uint32_t timeout_ms)
{
	setup_occupy(setup, threshold, interval_ns, samples, timeout_ms);
	harness_start(harness, setup);
}

/* One packet: passes with this wait. */
static void expect_wait(struct harness *harness, uint64_t time_ns, uint64_t wait_ns)
{
	assert_int_equal(harness_send(harness, HOST, time_ns, 1), 1);
	assert_int_equal(harness->last.wait_ns, wait_ns);
}

static void expect_block(struct harness *harness, uint64_t time_ns)
{
	assert_int_equal(harness_send(harness, HOST, time_ns, 1), 0);
}

static uint64_t occupied(struct harness *harness)
{
	assert_true(harness_agrees(harness)); /* the program's counter, and the model's */
	return model_occupied(harness->model, 0);
}

/* Ten fill the window; what they leave at 6.0 s is occupied from 5.5 s and 1 ns on, and no more than that. */
HARNESS_CLAIM(a_packet_beyond_a_full_window_occupies_what_leaves_at_the_next_edge)
{
	start_occupy(harness, setup, 10, SECOND, 2, 500);
	assert_int_equal(harness_send(harness, HOST, START, 10), 10);
	assert_int_equal(harness->last.wait_ns, 0);
	expect_block(harness, START + SECOND / 2 - 1); /* nothing leaves at 5.5 s */
	expect_block(harness, START + SECOND / 2);     /* a wait of 500 ms is too long */
	expect_wait(harness, START + SECOND / 2 + 1, SECOND / 2 - 1);
	expect_wait(harness, START + SECOND - 1, 1);
	assert_int_equal(harness_send(harness, HOST, START + SECOND - 1, 20), 8); /* ten are occupied: b >= N */
	assert_int_equal(occupied(harness), 10);
	/* They fill the bucket from 6.0 s on, until 7.0 s. */
	expect_block(harness, START + SECOND);
	expect_block(harness, START + 3 * SECOND / 2 - 1);
	expect_wait(harness, START + 3 * SECOND / 2 + 1, SECOND / 2 - 1);
}

/* What was occupied counts where it is due, and not where it came: 7.0 s has room for ten again. */
HARNESS_CLAIM(an_occupied_unit_counts_in_its_own_bucket_and_nowhere_else)
{
	start_occupy(harness, setup, 10, SECOND, 2, 500);
	assert_int_equal(harness_send(harness, HOST, START, 10), 10);
	assert_int_equal(harness_send(harness, HOST, START + 600 * MS, 4), 4);
	assert_int_equal(harness->last.wait_ns, 400 * MS);
	assert_int_equal(harness_send(harness, HOST, START + SECOND, 10), 6); /* four of ten are taken */
	assert_int_equal(harness->last.wait_ns, 0);
	assert_int_equal(harness_send(harness, HOST, START + 2 * SECOND, 10), 10);
	assert_int_equal(harness->last.wait_ns, 0);
}

/* One unit each in the buckets at 5.0, 5.1 and 5.2 s: they leave one after the other. */
HARNESS_CLAIM(the_earliest_edge_that_has_room_is_occupied)
{
	start_occupy(harness, setup, 3, SECOND, 10, 500);
	for (int i = 0; i < 3; i++)
		expect_wait(harness, START + i * 100 * MS, 0);
	expect_block(harness, START + 500 * MS); /* 6.0 s is 500 ms away */
	expect_wait(harness, START + 550 * MS, 450 * MS);
	expect_block(harness, START + 600 * MS); /* 6.1 s is 500 ms away */
	expect_wait(harness, START + 650 * MS, 450 * MS);
	expect_wait(harness, START + 799 * MS, 401 * MS);
	expect_block(harness, START + 999 * MS);  /* three are occupied */
	expect_block(harness, START + 1099 * MS); /* two still are, and what comes at 6.0 s leaves at 7.0 s */
	assert_int_equal(occupied(harness), 3);
}

/* Whatever the setting: a wait is shorter than the interval, and with one bucket that ends at its edge. */
HARNESS_CLAIM(no_wait_is_as_long_as_the_interval)
{
	start_occupy(harness, setup, 2, 100 * MS, 1, 86400000);
	assert_int_equal(harness_send(harness, HOST, START, 3), 2);
	expect_wait(harness, START + 1, 100 * MS - 1);
	expect_wait(harness, START + 100 * MS - 1, 1);
	expect_block(harness, START + 100 * MS - 1);
	expect_block(harness, START + 100 * MS); /* both units were occupied */
	harness_finish(harness);

	start_occupy(harness, setup, 2, SECOND, 10, 86400000);
	assert_int_equal(harness_send(harness, HOST, START, 3), 2);
	expect_wait(harness, START + 1, SECOND - 1);
}

HARNESS_CLAIM(with_a_timeout_of_zero_nothing_is_occupied)
{
	start_occupy(harness, setup, 2, SECOND, 10, 0);
	assert_int_equal(harness_send(harness, HOST, START, 3), 2);
	assert_int_equal(harness_send(harness, HOST, START + SECOND - 1, 3), 0);
	assert_int_equal(harness_send(harness, HOST, START + SECOND, 3), 2);
	assert_int_equal(occupied(harness), 0);
}

/* 2.9 admits two, and two more occupy; below one nothing is admitted, and nothing occupied. */
HARNESS_CLAIM(a_fraction_occupies_as_much_as_it_admits)
{
	static const struct {
		double threshold;
		unsigned int units;
	} cases[] = {{2.9, 2}, {1, 1}, {0.999999, 0}, {0, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start_occupy(harness, setup, cases[i].threshold, SECOND, 1, 500);
		assert_int_equal(harness_send(harness, HOST, START, 5), cases[i].units);
		assert_int_equal(harness_send(harness, HOST, START + 900 * MS, 5), cases[i].units);
		assert_int_equal(occupied(harness), cases[i].units);
		harness_finish(harness);
	}
}

HARNESS_CLAIM(flows_occupy_by_themselves_and_by_their_overrides)
{
	struct weir_override override = {
		.prefix = {.family = 4, .bits = 32, .address = {192, 0, 2, 2}},
		.threshold_micro = 7 * WEIR_MICRO,
	};

	setup_occupy(setup, 3, SECOND, 1, 500);
	setup->rule[0].overrides = &override;
	setup->rule[0].override_count = 1;
	setup->rule[0].override_field = WEIR_KEY_SOURCE;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 20), 3);
	assert_int_equal(harness_send(harness, OTHER_HOST, START, 20), 7);
	assert_int_equal(harness_send(harness, HOST, START + 600 * MS, 20), 3);
	assert_int_equal(harness_send(harness, OTHER_HOST, START + 600 * MS, 20), 7);
	assert_int_equal(occupied(harness), 10);
}

HARNESS_CLAIM(a_whole_resource_occupies_as_one_flow)
{
	setup_occupy(setup, 5, SECOND, 1, 500);
	setup->resource[0].flow = (struct weir_flow){};
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 3), 3);
	assert_int_equal(harness_send(harness, OTHER_HOST, START, 3), 2);
	assert_int_equal(harness_send(harness, HOST, START + 600 * MS, 3), 3);
	assert_int_equal(harness_send(harness, OTHER_HOST, START + 600 * MS, 3), 2);
}

/* Two with occupy windows, and one that spaces packets: 6.0 s is 400 ms away, 5.65 s 50 ms, and a queue of 20 packets
 * 200 ms.
 */
HARNESS_CLAIM(it_waits_for_the_longest)
{
	setup_occupy(setup, 20, SECOND, 1, 500);
	setup_rule(setup, 0, rule_of("short", WEIR_WINDOW_LEAP, 20, 50 * MS, 1));
	setup->rule[1].occupies = true;
	setup_rule(setup, 0, throttling_of(100, SECOND, 10000));
	harness_start(harness, setup);
	for (int i = 0; i < 20; i++)
		expect_wait(harness, START + 600 * MS, i * 10 * MS);
	expect_wait(harness, START + 600 * MS + 1, 400 * MS - 1); /* of 400 ms, 50 ms and 200 ms less 1 ns each */
}

/* The second rule blocks all but five: of the ten that the first occupied, five are given back. */
HARNESS_CLAIM(a_rule_that_blocks_gives_back_what_was_occupied_of_others)
{
	setup_occupy(setup, 10, SECOND, 1, 500);
	setup_rule(setup, 0, rule_of("strict", WEIR_WINDOW_STRICT, 15, SECOND, 1));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 10), 10);
	assert_int_equal(harness_send(harness, HOST, START + 600 * MS, 30), 5);
	assert_int_equal(occupied(harness), 5);
	/* At 6.0 s the strict rule counts fifteen still; at 7.0 s none, and neither do the five that were occupied. */
	assert_int_equal(harness_send(harness, HOST, START + SECOND, 30), 0);
	assert_int_equal(harness_send(harness, HOST, START + 2 * SECOND, 30), 10);
}

/* ... and so are units of the present bucket. */
HARNESS_CLAIM(a_blocked_packet_counts_in_no_occupy_window)
{
	setup_occupy(setup, 10, SECOND, 2, 500);
	setup_rule(setup, 0, rule_of("short", WEIR_WINDOW_LEAP, 3, 10 * MS, 1));
	setup->rule[1].window = WEIR_WINDOW_STRICT;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 50), 3);
	assert_int_equal(harness_send(harness, HOST, START + 20 * MS, 50), 3);
	assert_int_equal(harness_send(harness, HOST, START + 40 * MS, 50), 3);
	assert_int_equal(harness_send(harness, HOST, START + 60 * MS, 50), 1);
}

/* Rules of a prioritized resource that cannot be occupied block, as everywhere. */
HARNESS_CLAIM(only_direct_reject_leap_in_packets_can_be_occupied)
{
	struct weir_ruleset_rule others[] = {
		rule_of("strict", WEIR_WINDOW_STRICT, 5, SECOND, 1),
		rule_of("smooth", WEIR_WINDOW_SMOOTH, 5, SECOND, 1),
		rule_of("bytes", WEIR_WINDOW_LEAP, 300, SECOND, 1),
		throttling_of(100, SECOND, 0),
	};
	static const unsigned int admitted[] = {5, 5, 5, 1};

	others[2].counts_bytes = true;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		setup_occupy(setup, 1000, SECOND, 1, 500);
		setup_rule(setup, 0, others[i]);
		assert_false(weir_rule_can_occupy(&setup->rule[1]));
		harness_start(harness, setup);
		assert_int_equal(harness_send(harness, HOST, START + 600 * MS, 10), admitted[i]);
		assert_int_equal(occupied(harness), 0);
		harness_finish(harness);
	}
}

/* Ports 54 and 55 are prioritized, 53 and 55 have the rule: 55 occupies, and 53 does not. */
HARNESS_CLAIM(a_packet_occupies_windows_of_all_its_resources)
{
	setup_ports(setup);
	setup->resource[1].is_prioritized = true;
	setup_rule(setup, 0, rule_of("occupier", WEIR_WINDOW_LEAP, 10, SECOND, 1));
	setup->rule[0].occupies = true;
	setup->ruleset.settings.occupy_timeout_ms = 500;
	harness_start(harness, setup);
	assert_int_equal(harness_send_to(harness, HOST, 53, START + 600 * MS, 20), 10);
	assert_int_equal(harness_send_to(harness, HOST, 55, START + 600 * MS, 4), 4);
	assert_int_equal(harness->last.wait_ns, 400 * MS);
	assert_int_equal(harness_send_to(harness, HOST, 53, START + 700 * MS, 4), 0);
	assert_int_equal(occupied(harness), 4);
	/* what was occupied counts for all */
	assert_int_equal(harness_send_to(harness, HOST, 53, START + SECOND, 20), 6);
	assert_int_equal(harness_send_to(harness, HOST, 54, START + SECOND, 20), 20);
}

/* Without `prioritized` the same rule blocks. */
HARNESS_CLAIM(a_resource_that_is_not_prioritized_occupies_nothing)
{
	setup_occupy(setup, 10, SECOND, 1, 500);
	setup->resource[0].is_prioritized = false;
	setup->rule[0].occupies = false;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 10), 10);
	assert_int_equal(harness_send(harness, HOST, START + 900 * MS, 10), 0);
}

/* It is occupied as if it were enforced, and nobody waits for it; what it would drop is not in its window. */
HARNESS_CLAIM(a_rule_that_observes_occupies_without_a_wait)
{
	setup_occupy(setup, 10, SECOND, 1, 500);
	setup->rule[0].observes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START + 600 * MS, 50), 50);
	assert_int_equal(harness->last.wait_ns, 0);
	assert_int_equal(model_would_drop(harness->model, 0), 30); /* ten fit, ten were occupied */
	assert_int_equal(occupied(harness), 10);
	assert_int_equal(harness_send(harness, HOST, START + SECOND, 10), 10);
	assert_int_equal(model_would_drop(harness->model, 0), 40);
}

/* By arrival a flow can be seen with twice its threshold; by due time never with more than that. */
HARNESS_CLAIM(the_shadow_of_another_rule_counts_at_arrival)
{
	setup_ports(setup);
	setup->resource[0].is_prioritized = true;
	setup_rule(setup, 0, rule_of("occupier", WEIR_WINDOW_LEAP, 10, SECOND, 1));
	setup->rule[0].occupies = true;
	setup_rule(setup, 1, associated(rule_of("reader", WEIR_WINDOW_LEAP, 20, SECOND, 1), 0));
	setup->ruleset.settings.occupy_timeout_ms = 500;
	harness_start(harness, setup);
	assert_int_equal(harness_send_to(harness, HOST, 53, START + 600 * MS, 19), 19);
	assert_int_equal(harness_send_to(harness, HOST, 54, START + 600 * MS, 1), 1);
	assert_int_equal(harness_send_to(harness, HOST, 53, START + 600 * MS, 1), 1);
	assert_int_equal(harness_send_to(harness, HOST, 54, START + 600 * MS, 1), 0);
	assert_int_equal(harness_send_to(harness, HOST, 54, START + SECOND, 1), 1);
}

/* ---- a clock that goes back ---- */

/* Evaluated at 6.05 s, the flow knows the bucket from 6.0 s on. A packet of 5.55 s counts in its own bucket, and waits
 * from its own time until an edge that is yet to come for the flow.
 */
HARNESS_CLAIM(a_packet_from_the_past_occupies_what_is_to_come)
{
	start_occupy(harness, setup, 4, SECOND, 10, 86400000);
	assert_int_equal(harness_send(harness, HOST, START + 500 * MS, 2), 2);
	assert_int_equal(harness_send(harness, HOST, START + 1050 * MS, 1), 1);
	assert_int_equal(harness_send(harness, HOST, START + 550 * MS, 1), 1); /* fits, in the bucket from 5.5 s on */
	assert_int_equal(harness->last.wait_ns, 0);
	expect_wait(harness, START + 550 * MS, 950 * MS); /* 6.5 s, when the bucket from 5.5 s on leaves */
	expect_wait(harness, START + 501 * MS, 999 * MS);
	expect_block(harness, START + 499 * MS); /* 6.5 s is an interval away, and a bit */
	/* Older than the ring: as if it came at 6.0 s. */
	expect_wait(harness, START, 500 * MS);
	expect_block(harness, START);
}

/* What is occupied stays in the future: buckets yet to come are not "newer than now". */
HARNESS_CLAIM(an_occupied_bucket_is_no_bucket_known)
{
	start_occupy(harness, setup, 2, SECOND, 10, 500);
	assert_int_equal(harness_send(harness, HOST, START, 2), 2);
	expect_wait(harness, START + 700 * MS, 300 * MS); /* in the bucket from 6.0 s on */
	expect_wait(harness, START + 710 * MS, 290 * MS);
	expect_block(harness, START + 720 * MS);
	expect_block(harness, START + SECOND);
	expect_block(harness, START + 1499 * MS);
	expect_wait(harness, START + 1501 * MS, 499 * MS);
}

/* ---- the clock's ends ---- */

HARNESS_CLAIM(a_young_clock_counts_everything_since_zero)
{
	start_occupy(harness, setup, 2, SECOND, 2, 500);
	assert_int_equal(harness_send(harness, HOST, 0, 3), 2);
	expect_block(harness, 499 * MS);
	expect_wait(harness, 501 * MS, 499 * MS);
	expect_wait(harness, 999 * MS, MS);
	expect_block(harness, SECOND);
}

/* ---- random occupiers ---- */

/* Of the random rule sets of replay_test few occupy much: so here are some that are made for it. WEIR_SEED and
 * WEIR_ROUNDS choose them, as there.
 */
#define ROUNDS 60
#define ROUND_PACKETS 4000

static uint64_t environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

static void random_occupy(struct random *random, struct setup *setup)
{
	static const uint32_t intervals_ms[] = {10, 20, 35, 100, 250, 1000, 1000, 2520};
	struct weir_ruleset_rule rule = rule_of("occupier", WEIR_WINDOW_LEAP, 0, 0, 1);

	rule.threshold_micro = random_between(random, 1, random_percent(random, 70) ? 12 : 80) * WEIR_MICRO / 2;
	rule.interval_ns = intervals_ms[random_below(random, ARRAY_SIZE(intervals_ms))] * MS;
	do
		rule.samples = random_between(random, 1, WEIR_SAMPLES_MAX);
	while (rule.interval_ns % rule.samples);
	rule.observes = random_percent(random, 10);
	rule.occupies = true;
	setup_rule(setup, 0, rule);
}

/* One to three rules, the first with an occupy window; some of the others block, some space. */
static void random_setup(struct random *random, struct setup *setup)
{
	static const uint32_t timeouts_ms[] = {1, 9, 50, 250, 500, 500, 1000, 86400000};
	uint64_t others = random_below(random, 3);

	setup_resources(setup, 1);
	setup->resource[0].is_prioritized = true;
	if (random_percent(random, 30))
		setup->resource[0].flow = (struct weir_flow){};
	setup->ruleset.settings.occupy_timeout_ms = timeouts_ms[random_below(random, ARRAY_SIZE(timeouts_ms))];
	random_occupy(random, setup);
	for (; others > 0; others--) {
		if (random_percent(random, 50))
			random_occupy(random, setup);
		else if (random_percent(random, 50))
			setup_rule(setup, 0, throttling_of(random_between(random, 5, 200), SECOND, 300));
		else
			setup_rule(setup, 0,
				   rule_of("blocker", WEIR_WINDOW_STRICT, random_between(random, 2, 60), SECOND, 10));
	}
}

/* Bursts, steps within a bucket of the first rule, a nanosecond about its edges, silence; now and then back. */
static uint64_t random_time(struct random *random, const struct weir_ruleset_rule *rule, uint64_t now_ns,
			    bool goes_back)
{
	uint64_t bucket_ns = rule->interval_ns / rule->samples, edge_ns = (now_ns / bucket_ns + 1) * bucket_ns;

	switch (random_below(random, goes_back ? 21 : 20)) {
	case 0 ... 9:
		return now_ns;
	case 10 ... 14:
		return now_ns + random_below(random, bucket_ns / 2 + 1);
	case 15 ... 17:
		return edge_ns - 1 + random_below(random, 3);
	case 18:
		return edge_ns + bucket_ns * random_below(random, rule->samples + 1);
	case 19:
		return now_ns + random_below(random, 3 * rule->interval_ns);
	}
	return now_ns - random_below(random, 2 * rule->interval_ns);
}

static uint64_t play_occupy(struct random *random, struct setup *setup)
{
	static const char *const hosts[] = {HOST, HOST, HOST, OTHER_HOST, "198.51.100.7"};
	uint64_t now_ns = START + random_below(random, 1000 * SECOND), sum = 0;
	bool goes_back = random_percent(random, 30);
	_cleanup_(harness_close) struct harness harness = {};

	assert_int_equal(harness_open(&harness, &setup->ruleset, 0, 100000 * SECOND), 0);
	for (int i = 0; i < ROUND_PACKETS; i++) {
		harness_send(&harness, hosts[random_below(random, ARRAY_SIZE(hosts))], now_ns, 1);
		now_ns = random_time(random, &setup->rule[0], now_ns, goes_back);
	}
	assert_true(harness_agrees(&harness));
	for (size_t i = 0; i < setup->ruleset.rule_count; i++)
		sum += model_occupied(harness.model, i);
	return sum;
}

CLAIM(random_occupy_windows_agree_with_the_model)
{
	uint64_t seed = environment("WEIR_SEED", 20250702), rounds = environment("WEIR_ROUNDS", ROUNDS), sum = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		struct random random = {seed + i};
		struct setup setup;

		random_setup(&random, &setup);
		sum += play_occupy(&random, &setup);
	}
	print_message("%llu packets occupied\n", (unsigned long long)sum);
	assert_true(sum > 100 * rounds);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
