// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reference model against figures worked out by hand or published: an oracle that nobody checks is an
 * opinion. Each figure is from docs/semantics.md, from Sentinel's documentation, or explained beside it.
 */
#include <string.h>

#include "../lib/claims.h"
#include "../lib/model.h"
#include "../lib/model_limit.h"
#include "../lib/packets.h"
#include "base/util.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC
#define START (1000 * SECOND)

#define HOST "192.0.2.1"
#define OTHER_HOST "192.0.2.2"

/* Three resources: "first" takes everything, "second" destination port 2, "third" destination port 3. */
struct setup {
	struct weir_ruleset ruleset;
	struct weir_ruleset_resource resource[3];
	struct weir_range port[3];
	struct weir_ruleset_rule rule[4];
	struct model *model;
	struct model_decision last;
	uint8_t frame[PACKET_BYTES_MAX];
};

static int begin(void **state)
{
	static char *const names[] = {"first", "second", "third"};
	static struct setup setup;

	memset(&setup, 0, sizeof(setup));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		setup.resource[i].name = names[i];
		setup.port[i] = (struct weir_range){i + 1, i + 1};
		if (i == 0)
			continue;
		setup.resource[i].match.destination_port = &setup.port[i];
		setup.resource[i].match.destination_port_count = 1;
	}
	setup.ruleset.resources = setup.resource;
	setup.ruleset.resource_count = ARRAY_SIZE(names);
	setup.ruleset.rules = setup.rule;
	*state = &setup;
	return 0;
}

static int end(void **state)
{
	struct setup *setup = *state;

	model_free(setup->model);
	return 0;
}

#define SETUP_CLAIM(what) CLAIM_ABOUT(what, struct setup *setup, begin, end)

static void key_by_source(struct setup *setup, size_t resource)
{
	setup->resource[resource].flow = (struct weir_flow){.fields = WEIR_KEY_SOURCE, .source_bits = {32, 128}};
}

/* Direct, Reject, CurrentResource, a second of ten buckets; tests change what they are about. */
static struct weir_ruleset_rule *add_rule(struct setup *setup, size_t resource, uint64_t threshold_micro)
{
	static char *const names[] = {"rule-0", "rule-1", "rule-2", "rule-3"};
	struct weir_ruleset_rule *rule = &setup->rule[setup->ruleset.rule_count];

	*rule = (struct weir_ruleset_rule){
		.name = names[setup->ruleset.rule_count++],
		.resource = resource,
		.threshold_micro = threshold_micro,
		.interval_ns = SECOND,
		.samples = 10,
		.ref_resource = WEIR_NO_RESOURCE,
	};
	return rule;
}

static struct weir_ruleset_rule *add_warm_up(struct setup *setup, size_t resource, uint64_t threshold,
					     uint32_t period_s, uint32_t cold_factor)
{
	struct weir_ruleset_rule *rule = add_rule(setup, resource, threshold * WEIR_MICRO);

	rule->strategy = WEIR_STRATEGY_WARM_UP;
	rule->warm_up = (struct weir_warm_up_fields){period_s, cold_factor};
	return rule;
}

static struct weir_ruleset_rule *add_throttling(struct setup *setup, size_t resource, uint64_t threshold,
						uint64_t queueing_ms_max)
{
	struct weir_ruleset_rule *rule = add_rule(setup, resource, threshold * WEIR_MICRO);

	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = queueing_ms_max;
	return rule;
}

static void associate(struct weir_ruleset_rule *rule, size_t ref_resource)
{
	rule->relation = WEIR_RELATION_ASSOCIATED;
	rule->ref_resource = ref_resource;
}

/* `count` packets of 60 bytes to a port at time_ns. Returns how many passed; the last decision is in setup->last. */
static unsigned int offer(struct setup *setup, const char *source, uint16_t port, uint64_t time_ns, unsigned int count)
{
	struct packet_spec spec = packet_udp(source, 1024, "192.0.2.53", port, 18);
	size_t frame_bytes = packet_build(&spec, setup->frame);
	unsigned int passed = 0;

	if (!setup->model)
		setup->model = model_new(&setup->ruleset, NULL);
	for (unsigned int i = 0; i < count; i++) {
		setup->last = model_evaluate(setup->model, time_ns, setup->frame, frame_bytes, 0);
		passed += setup->last.verdict == WEIR_VERDICT_PASS;
	}
	return passed;
}

/* ---- WarmUp ---- */

/* A thousand packets a second, spread evenly: more than any threshold here. */
static unsigned int saturate(struct setup *setup, const char *source, uint64_t second)
{
	unsigned int passed = 0;

	for (unsigned int i = 0; i < 1000; i++)
		passed += offer(setup, source, 9, START + second * SECOND + i * MS, 1);
	return passed;
}

static const unsigned int published_curve[] = {33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100, 100};

SETUP_CLAIM(warm_up_gives_the_published_curve)
{
	add_warm_up(setup, 0, 100, 10, 3);
	for (size_t i = 0; i < ARRAY_SIZE(published_curve); i++)
		assert_int_equal(saturate(setup, HOST, i), published_curve[i]);
}

SETUP_CLAIM(every_flow_warms_up_by_itself)
{
	key_by_source(setup, 0);
	add_warm_up(setup, 0, 100, 10, 3);
	for (size_t i = 0; i < ARRAY_SIZE(published_curve); i++) {
		assert_int_equal(saturate(setup, HOST, i), published_curve[i]);
		if (i >= 5)
			assert_int_equal(saturate(setup, OTHER_HOST, i), published_curve[i - 5]);
	}
}

/* 2P/(1+c) = 5 s: from the warning line of 500 tokens it takes five refills of 100 to 1000. */
SETUP_CLAIM(silence_cools_down_in_two_periods_over_one_and_the_factor)
{
	struct weir_ruleset_rule *rule = add_warm_up(setup, 0, 100, 10, 3);
	uint64_t stored = 500;

	assert_int_equal(model_warm_up_max(rule, rule->threshold_micro), 1000);
	for (int i = 1; i <= 5; i++) {
		stored = model_warm_up_sync(rule, rule->threshold_micro, stored, 0);
		assert_int_equal(stored, 500 + 100 * i);
	}
	assert_int_equal(model_warm_up_sync(rule, rule->threshold_micro, stored, 0), 1000);
}

SETUP_CLAIM(seconds_without_packets_cool_as_if_each_had_been_seen)
{
	key_by_source(setup, 0);
	add_warm_up(setup, 0, 100, 10, 3);
	for (size_t i = 0; i < 20; i++)
		saturate(setup, HOST, i);
	/* Warm at 466 tokens: what 1000 less the curve leaves.
	 * Three refills later 766, and 100 * 500 / (266 * 2 + 500).
	 */
	offer(setup, HOST, 9, START + 23 * SECOND, 1);
	assert_int_equal(model_threshold(setup->model, 0), 48);
	offer(setup, HOST, 9, START + 60 * SECOND, 1);
	assert_int_equal(model_threshold(setup->model, 0), 33);
}

/* warning 500: q = 100 a second keeps a warm bucket where it is, and the line itself belongs to the refilled side. */
SETUP_CLAIM(a_bucket_at_the_warning_line_is_refilled)
{
	struct weir_ruleset_rule *rule = add_warm_up(setup, 0, 100, 10, 3);
	uint64_t micro = rule->threshold_micro;

	assert_int_equal(model_warm_up_sync(rule, micro, 500, 100), 500);
	assert_int_equal(model_warm_up_sync(rule, micro, 500, 40), 560);
	assert_int_equal(model_warm_up_sync(rule, micro, 501, 100), 401);
	/* above it only a second with fewer than floor(100 / 3) = 33 */
	assert_int_equal(model_warm_up_sync(rule, micro, 501, 33), 468);
	assert_int_equal(model_warm_up_sync(rule, micro, 501, 32), 569);
	assert_int_equal(model_warm_up_sync(rule, micro, 20, 400), 0);
}

/* 1000 per 10 s are 100 a second: the same tokens, ten times the threshold. */
SETUP_CLAIM(another_interval_warms_by_the_rate_per_second)
{
	struct weir_ruleset_rule *rule = add_warm_up(setup, 0, 1000, 10, 3);
	uint64_t micro = rule->threshold_micro;

	rule->interval_ns = 10 * SECOND;
	assert_int_equal(model_warm_up_max(rule, micro), 1000);
	assert_int_equal(model_floor(model_warm_up(rule, micro, 1000)), 333);
	assert_int_equal(model_floor(model_warm_up(rule, micro, 500)), 1000);
	rule->threshold_micro = micro = 25500000; /* 25.5 per 300 ms are 85 a second: 425, 850 */
	rule->interval_ns = 300 * MS;
	assert_int_equal(model_warm_up_max(rule, micro), 850);
	assert_int_equal(model_warm_up_sync(rule, micro, 100, 0), 185);
	assert_int_equal(model_floor(model_warm_up(rule, micro, 850)), 8);
	/* 25.5 * 425 / (1 * 2 + 425) = 25.38...; * 425 / (20 * 2 + 425) = 23.3... */
	assert_int_equal(model_floor(model_warm_up(rule, micro, 426)), 25);
	assert_int_equal(model_floor(model_warm_up(rule, micro, 445)), 23);
}

/* P 1, c 3, N 3 per 10 s: 0.3 a second, no ramp. N 0 blocks all. */
SETUP_CLAIM(without_a_ramp_the_threshold_is_plain)
{
	add_warm_up(setup, 0, 3, 1, 3)->interval_ns = 10 * SECOND;
	add_warm_up(setup, 1, 0, 10, 3);
	assert_int_equal(offer(setup, HOST, 9, START, 10), 3);
	assert_int_equal(offer(setup, HOST, 2, START + 20 * SECOND, 10), 0);
	assert_string_equal(setup->last.rule, "rule-1");
}

SETUP_CLAIM(observed_drops_do_not_warm)
{
	add_warm_up(setup, 0, 100, 10, 3)->observes = true;
	for (size_t i = 0; i < ARRAY_SIZE(published_curve); i++) {
		assert_int_equal(saturate(setup, HOST, i), 1000);
		assert_int_equal(model_threshold(setup->model, 0), published_curve[i]);
	}
}

SETUP_CLAIM(an_associated_rule_warms_by_what_passes_on_the_other_resource)
{
	associate(add_warm_up(setup, 1, 100, 10, 3), 2);
	assert_int_equal(offer(setup, HOST, 2, START, 50), 50); /* its own rate is not limited */
	assert_int_equal(offer(setup, HOST, 2, START + SECOND, 1), 1);
	assert_int_equal(model_threshold(setup->model, 0), 33);
	assert_int_equal(offer(setup, HOST, 3, START + SECOND + 1, 33), 33);
	assert_int_equal(offer(setup, HOST, 2, START + SECOND + 2, 1), 0);
	assert_int_equal(offer(setup, HOST, 2, START + 2 * SECOND, 1), 1);
	assert_int_equal(model_threshold(setup->model, 0), 34);
}

/* ---- MemoryAdaptive ---- */

SETUP_CLAIM(memory_moves_the_threshold_along_a_line)
{
	static const struct weir_memory_adaptive memory = {1000, 100, 1024, 2048};
	struct model_ratio allowed;

	assert_int_equal(model_floor(model_memory_adaptive(&memory, 0)), 1000);
	assert_int_equal(model_floor(model_memory_adaptive(&memory, 1024)), 1000);
	assert_int_equal(model_floor(model_memory_adaptive(&memory, 1536)), 550);
	assert_int_equal(model_floor(model_memory_adaptive(&memory, 2048)), 100);
	assert_int_equal(model_floor(model_memory_adaptive(&memory, UINT64_MAX)), 100);
	/* 1000 - 900 / 1024 */
	allowed = model_memory_adaptive(&memory, 1025);
	assert_true(allowed.numerator * 1024 == allowed.denominator * (1000 * 1024 - 900));
}

SETUP_CLAIM(a_reading_holds_from_its_own_time_on)
{
	struct weir_ruleset_rule *rule = add_rule(setup, 0, 0);

	rule->strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	rule->memory = (struct weir_memory_adaptive){10, 4, 1000, 2000};
	setup->model = model_new(&setup->ruleset, NULL);
	model_memory(setup->model, START, 0);
	model_memory(setup->model, START + 5 * SECOND, 0);
	model_memory(setup->model, START + 5 * SECOND, 1500);
	assert_int_equal(offer(setup, HOST, 9, START - 1, 20), 4);
	assert_int_equal(offer(setup, HOST, 9, START, 20), 6);
	assert_int_equal(offer(setup, HOST, 9, START + 5 * SECOND - 1, 20), 10);
	assert_int_equal(offer(setup, HOST, 9, START + 6 * SECOND, 20), 7);
}

/* ---- Throttling ---- */

SETUP_CLAIM(one_and_the_quotient_pass_at_one_instant)
{
	add_throttling(setup, 0, 100, 45); /* 10 ms each: 1 + floor(45 / 10) */
	for (int i = 0; i < 5; i++) {
		assert_int_equal(offer(setup, HOST, 9, START, 1), 1);
		assert_int_equal(setup->last.wait_ns, i * 10 * MS);
	}
	assert_int_equal(offer(setup, HOST, 9, START, 3), 0);
	assert_int_equal(setup->last.wait_ns, 0);
	/* the sixth is planned for 50 ms; a wait equal to the maximum is admitted, a nanosecond more is not */
	assert_int_equal(offer(setup, HOST, 9, START + 5 * MS - 1, 1), 0);
	assert_int_equal(offer(setup, HOST, 9, START + 5 * MS, 1), 1);
	assert_int_equal(setup->last.wait_ns, 45 * MS);
	/* idle time is not saved */
	assert_int_equal(offer(setup, HOST, 9, START + 60 * SECOND, 20), 5);
}

SETUP_CLAIM(emission_intervals_round_up_to_the_nanosecond)
{
	add_throttling(setup, 0, 3, 10000);
	assert_int_equal(offer(setup, HOST, 9, START, 2), 2);
	assert_int_equal(setup->last.wait_ns, 333333334);
	assert_int_equal(offer(setup, HOST, 9, START, 1), 1);
	assert_int_equal(setup->last.wait_ns, 666666668);
	/* planned = the instant itself: no wait, and the next is planned from there */
	assert_int_equal(offer(setup, HOST, 9, START + 1000000002, 2), 2);
	assert_int_equal(setup->last.wait_ns, 333333334);
	assert_int_equal(offer(setup, HOST, 9, START + 1000000002 + 666666669, 1), 1);
	assert_int_equal(setup->last.wait_ns, 0);
}

/* The threshold is not floored: 2.5 a second is 400 ms. Below one packet nothing passes. */
SETUP_CLAIM(fractions_count_in_emission_intervals)
{
	add_throttling(setup, 1, 0, 10000)->threshold_micro = 2500000;
	add_throttling(setup, 2, 0, 10000)->threshold_micro = 999999;
	assert_int_equal(offer(setup, HOST, 2, START, 2), 2);
	assert_int_equal(setup->last.wait_ns, 400 * MS);
	assert_int_equal(offer(setup, HOST, 3, START, 2), 0);
}

/* 60 bytes at 70 a second: ceil(60 * 10^9 / 70) ns. */
SETUP_CLAIM(bytes_pay_by_length)
{
	add_throttling(setup, 0, 70, 1000)->counts_bytes = true;
	assert_int_equal(offer(setup, HOST, 9, START, 2), 2);
	assert_int_equal(setup->last.wait_ns, 857142858);
	setup->rule[0].threshold_micro = 59 * WEIR_MICRO;
	assert_int_equal(offer(setup, HOST, 9, START + 60 * SECOND, 1), 0);
}

SETUP_CLAIM(a_slot_once_given_stays_given)
{
	add_throttling(setup, 0, 10, 1000);
	add_rule(setup, 1, 0);
	add_throttling(setup, 0, 1, 60000);
	assert_int_equal(offer(setup, HOST, 2, START, 3), 0); /* three slots of the first rule, none of the third */
	assert_string_equal(setup->last.rule, "rule-1");
	assert_int_equal(setup->last.wait_ns, 0); /* it waits for nothing */
	assert_int_equal(offer(setup, HOST, 9, START, 1), 1);
	assert_int_equal(setup->last.wait_ns, 300 * MS);
	/* two rules: the longer wait */
	assert_int_equal(offer(setup, HOST, 9, START, 1), 1);
	assert_int_equal(setup->last.wait_ns, SECOND);
}

SETUP_CLAIM(an_observing_throttle_takes_its_slot_and_adds_no_wait)
{
	add_throttling(setup, 0, 10, 500)->observes = true;
	assert_int_equal(offer(setup, HOST, 9, START, 2), 2);
	assert_int_equal(setup->last.wait_ns, 0);
	assert_int_equal(offer(setup, HOST, 9, START, 6), 6);
	assert_int_equal(model_would_drop(setup->model, 0), 2);
}

SETUP_CLAIM(a_clock_that_goes_back_waits_the_longer)
{
	add_throttling(setup, 0, 10, 2000);
	assert_int_equal(offer(setup, HOST, 9, START, 1), 1);
	assert_int_equal(offer(setup, HOST, 9, START - SECOND, 1), 1);
	assert_int_equal(setup->last.wait_ns, 1100 * MS);
}

/* 30 ms cold for N = 100, 10 ms warm. */
SETUP_CLAIM(warm_up_and_throttling_pay_by_the_warming_rate)
{
	struct weir_ruleset_rule *rule = add_warm_up(setup, 0, 100, 10, 3);
	uint64_t wait_ns;

	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = 500;
	assert_int_equal(offer(setup, HOST, 9, START, 2), 2);
	assert_int_equal(setup->last.wait_ns, 30 * MS);
	for (int i = 0; i < 30; i++)
		saturate(setup, HOST, i + 1);
	assert_int_equal(model_threshold(setup->model, 0), 100);
	assert_int_equal(offer(setup, HOST, 9, START + 31 * SECOND + 500 * MS, 1), 1);
	wait_ns = setup->last.wait_ns;
	assert_int_equal(offer(setup, HOST, 9, START + 31 * SECOND + 500 * MS, 1), 1);
	assert_int_equal(setup->last.wait_ns - wait_ns, 10 * MS);
}

/* ---- AssociatedResource ---- */

SETUP_CLAIM(another_resource_s_traffic_blocks_and_its_own_does_not)
{
	associate(add_rule(setup, 1, 5 * WEIR_MICRO), 2);
	assert_int_equal(offer(setup, HOST, 2, START, 20), 20);
	assert_int_equal(offer(setup, HOST, 3, START, 4), 4); /* a resource without any rule counts too */
	assert_int_equal(offer(setup, HOST, 2, START, 20), 20);
	assert_int_equal(offer(setup, OTHER_HOST, 3, START, 1), 1);
	assert_int_equal(offer(setup, HOST, 2, START, 20), 0);
	assert_int_equal(offer(setup, HOST, 2, START + SECOND, 20), 20);
}

SETUP_CLAIM(the_same_key_reads_the_same_flow)
{
	key_by_source(setup, 1);
	key_by_source(setup, 2);
	associate(add_rule(setup, 1, 5 * WEIR_MICRO), 2);
	assert_int_equal(offer(setup, HOST, 3, START, 5), 5);
	assert_int_equal(offer(setup, HOST, 2, START, 1), 0);
	assert_int_equal(offer(setup, OTHER_HOST, 2, START, 1), 1);
}

SETUP_CLAIM(a_reference_without_a_key_is_read_as_a_whole)
{
	struct weir_ruleset_rule *rule;

	key_by_source(setup, 1);
	associate(add_rule(setup, 1, 5 * WEIR_MICRO), 2);
	rule = add_warm_up(setup, 1, 100, 10, 3);
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = 500;
	associate(rule, 2);
	/* each flow of the resource is planned by itself, by the rate of all that passes on the other */
	assert_int_equal(offer(setup, HOST, 2, START, 2), 2);
	assert_int_equal(setup->last.wait_ns, 30 * MS);
	assert_int_equal(offer(setup, OTHER_HOST, 2, START, 1), 1);
	assert_int_equal(setup->last.wait_ns, 0);
	assert_int_equal(offer(setup, HOST, 3, START, 5), 5);
	assert_int_equal(offer(setup, OTHER_HOST, 2, START, 1), 0);
	assert_string_equal(setup->last.rule, "rule-0");
}

SETUP_CLAIM(a_packet_of_both_is_read_first_and_counted_after)
{
	associate(add_rule(setup, 1, 5 * WEIR_MICRO), 0);
	assert_int_equal(offer(setup, HOST, 2, START, 20), 5);
}

SETUP_CLAIM(what_is_blocked_counts_nowhere)
{
	associate(add_rule(setup, 1, 5 * WEIR_MICRO), 2);
	add_rule(setup, 2, 3 * WEIR_MICRO);
	assert_int_equal(offer(setup, HOST, 3, START, 20), 3);
	assert_int_equal(offer(setup, HOST, 2, START, 20), 20);
}

/* So that its figures are those that enforcing would give: a packet it had dropped would not have passed there. */
SETUP_CLAIM(an_observing_associated_rule_reads_what_it_would_have_let_pass)
{
	associate(add_rule(setup, 1, 5 * WEIR_MICRO), 0);
	setup->rule[0].observes = true;
	assert_int_equal(offer(setup, HOST, 2, START, 20), 20);
	assert_int_equal(model_would_drop(setup->model, 0), 15);
	assert_int_equal(offer(setup, HOST, 2, START + 500 * MS, 6), 6);
	assert_int_equal(model_would_drop(setup->model, 0), 21);
	/* The five are in the window no more. What is not the rule's to drop is counted. */
	assert_int_equal(offer(setup, HOST, 3, START + SECOND, 4), 4);
	assert_int_equal(offer(setup, HOST, 2, START + SECOND, 3), 3);
	assert_int_equal(model_would_drop(setup->model, 0), 23);
}

/* ---- overrides and lists ---- */

static struct weir_prefix prefix_of(uint8_t bits, uint8_t last)
{
	return (struct weir_prefix){.family = 4, .bits = bits, .address = {192, 0, 2, last}};
}

SETUP_CLAIM(the_longest_override_wins)
{
	struct weir_override overrides[] = {
		{.prefix = prefix_of(32, 2), .threshold_micro = 0},
		{.prefix = prefix_of(24, 0), .threshold_micro = 7 * WEIR_MICRO},
	};
	struct weir_ruleset_rule *rule;

	key_by_source(setup, 0);
	rule = add_rule(setup, 0, 3 * WEIR_MICRO);
	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = overrides;
	rule->override_count = ARRAY_SIZE(overrides);
	assert_int_equal(offer(setup, HOST, 9, START, 20), 7);
	assert_int_equal(offer(setup, OTHER_HOST, 9, START, 20), 0);
	assert_int_equal(offer(setup, "192.0.3.1", 9, START, 20), 3);
}

SETUP_CLAIM(the_longest_list_entry_wins_and_deny_on_a_tie)
{
	struct weir_listed listed[] = {
		{.prefix = prefix_of(24, 0), .denies = true},
		{.prefix = prefix_of(32, 1)},
		{.prefix = prefix_of(32, 2)},
		{.prefix = prefix_of(32, 2), .denies = true},
	};

	add_rule(setup, 0, 1 * WEIR_MICRO);
	setup->ruleset.listed = listed;
	setup->ruleset.listed_count = ARRAY_SIZE(listed);
	offer(setup, HOST, 9, START, 5);
	assert_int_equal(setup->last.verdict, WEIR_VERDICT_ALLOW);
	assert_int_equal(setup->last.resource_count, 0);
	offer(setup, OTHER_HOST, 9, START, 1);
	assert_int_equal(setup->last.verdict, WEIR_VERDICT_DENY);
	assert_string_equal(setup->last.rule, "deny");
	offer(setup, "192.0.2.3", 9, START, 1);
	assert_int_equal(setup->last.verdict, WEIR_VERDICT_DENY);
	/* the allowed ones met no window */
	assert_int_equal(offer(setup, "192.0.3.3", 9, START, 5), 1);
}

RUN_CLAIMS(NULL, NULL)
