// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shipped BPF object against the reference model (tests/lib/model.h), packet for packet: verdict,
 * rule, resources, counters. Every combination of what a rule can be; then random rule sets and traffic.
 * Claims on traffic made for each are in replay_windows_test and replay_kinds_test.
 */
#include "../lib/harness_rounds.h"
#include "../lib/harness_setup.h"
#include "base/util.h"

/* ---- every combination of strategy, behaviour and relation ---- */

/* Whose key: none has one, both have the same, or refResource has none. */
enum keys { KEYS_NONE, KEYS_SAME, KEYS_OWN_ONLY, KEYS_COUNT };

static bool is_refused(enum weir_strategy strategy, enum weir_behavior behavior, enum weir_relation relation)
{
	return relation == WEIR_RELATION_ASSOCIATED && behavior == WEIR_BEHAVIOR_THROTTLING &&
	       strategy != WEIR_STRATEGY_WARM_UP;
}

static void setup_combination(struct setup *setup, enum weir_strategy strategy, enum weir_behavior behavior,
			      enum weir_relation relation, enum keys keys)
{
	struct weir_ruleset_rule rule = warm_up_of(39.5, SECOND, 4);

	setup_ports(setup);
	if (keys == KEYS_NONE)
		setup->resource[0].flow = (struct weir_flow){};
	if (keys != KEYS_SAME)
		setup->resource[1].flow = (struct weir_flow){};
	rule.strategy = strategy;
	rule.behavior = behavior;
	rule.queueing_ms_max = behavior == WEIR_BEHAVIOR_THROTTLING ? 100 : 0;
	if (strategy != WEIR_STRATEGY_WARM_UP)
		rule.warm_up = (struct weir_warm_up_fields){};
	if (strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE) {
		rule.threshold_micro = 0;
		rule.memory = (struct weir_memory_adaptive){60, 7, 1000, 1999};
	}
	if (relation == WEIR_RELATION_ASSOCIATED)
		rule = associated(rule, 1);
	setup_rule(setup, 0, rule);
}

/* Half a minute of 200 packets a second, of two hosts and all three ports, memory moving all the time: enough for the
 * rule to block and to let pass, and for its threshold to move.
 */
static void play_combination(struct harness *harness, bool moves)
{
	static struct random_reading readings[60];
	unsigned int passed = 0, blocked = 0, changes = 0;
	struct random random = {3};
	uint64_t threshold = 0, now_ns = 5 * SECOND;

	for (int i = 0; i < 60; i++)
		readings[i] = (struct random_reading){5 * SECOND + i * SECOND / 2, random_between(&random, 900, 2100)};
	harness_readings(harness, readings, ARRAY_SIZE(readings));
	for (int i = 0; i < 6000; i++) {
		/* the other resource is busy in every second second or so, else nearly idle */
		uint16_t port = random_percent(&random, i / 200 % 2 ? 45 : 3) ? 54 : 53 + 2 * random_below(&random, 2);

		/* the hosts take turns of some seconds, so that flows cool down */
		harness_send_to(harness, i / 800 % 2 ? HOST : OTHER_HOST, port, now_ns, 1);
		passed += port != 54 && harness->last.verdict == WEIR_VERDICT_PASS;
		blocked += harness->last.verdict == WEIR_VERDICT_BLOCK;
		changes += model_threshold(harness->model, 0) != threshold;
		threshold = model_threshold(harness->model, 0);
		now_ns += random_below(&random, 10 * MS);
	}
	if (passed < 300 || blocked < 300 || (moves && changes < 3))
		fail_msg("%u passed, %u blocked, %u thresholds: the traffic is too dull", passed, blocked, changes);
}

HARNESS_CLAIM(every_combination_agrees_with_the_model)
{
	for (unsigned int i = 0; i < 3 * 2 * 2 * KEYS_COUNT; i++) {
		enum weir_strategy strategy = i % 3;
		enum weir_behavior behavior = i / 3 % 2;
		enum weir_relation relation = i / 6 % 2;
		enum keys keys = i / 12;

		if (is_refused(strategy, behavior, relation))
			continue;
		setup_combination(setup, strategy, behavior, relation, keys);
		harness_start(harness, setup);
		play_combination(harness, strategy != WEIR_STRATEGY_DIRECT);
		harness_finish(harness);
	}
}

/* ---- random rule sets and traffic ---- */

CLAIM(agrees_with_the_model_on_random_rules_and_traffic)
{
	const struct harness_rounds rounds = {
		.rounds = 120,
		.packets = 10000,
		.rules = random_ruleset,
		.traffic = random_packets,
	};

	harness_rounds_agree(&rounds);
}

CLAIM(agrees_with_the_model_where_resources_are_without_others)
{
	const struct harness_rounds rounds = {
		.rounds = 15,
		.packets = 3000,
		.rules = random_except_ruleset,
		.traffic = random_packets,
	};

	harness_rounds_agree(&rounds);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
