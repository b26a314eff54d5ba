// SPDX-License-Identifier: GPL-2.0-only
/*
 * One flow that hosts share: its name in the store, and a host's side of it. cluster_simulation_test has whole worlds.
 */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "shares/flow.h"
#include "shares/flow_name.h"
#include "weir_abi.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define START (100 * SECOND)
#define LEDGER "weir:{edge}:dns:1000ms"

_Static_assert(WEIR_FLOW_BYTES == sizeof(struct weir_flow_key), "a flow's key is what is sealed");
_Static_assert(WEIR_CLUSTER_BASE == WEIR_FLOW_BASE, "the program adds up what the protocol says");

/* ---- names ---- */

static const uint8_t secret[WEIR_FLOW_SECRET_BYTES] = {1, 2, 3}, other_secret[WEIR_FLOW_SECRET_BYTES] = {1, 2, 4};

#define DIGITS_62 "00010203040506070809000102030405060708090a0b0c0d0e0f0a0b0c0d0e"

CLAIM(a_key_is_the_64_digits_of_a_line)
{
	static const char *const wrong[] = {"", "0", DIGITS_62 "0", DIGITS_62 "0g", DIGITS_62 "0f0", DIGITS_62 "0F"};
	uint8_t read[WEIR_FLOW_SECRET_BYTES];

	assert_int_equal(weir_flow_secret_read(DIGITS_62 "0f", read), 0);
	assert_int_equal(read[1], 1);
	assert_int_equal(read[WEIR_FLOW_SECRET_BYTES - 1], 15);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(weir_flow_secret_read(wrong[i], read), -EINVAL);
}

CLAIM(a_sealed_flow_is_opened_with_the_secret)
{
	uint8_t flow[WEIR_FLOW_BYTES] = {192, 0, 2, 1}, opened[WEIR_FLOW_BYTES];
	char name[WEIR_FLOW_NAME_CHARS], sealed[WEIR_FLOW_SEALED_CHARS], again[WEIR_FLOW_NAME_CHARS];

	weir_flow_seal(secret, LEDGER, flow, name, sealed);
	assert_true(weir_flow_open(secret, LEDGER, name, sealed, opened));
	assert_memory_equal(opened, flow, sizeof(flow));
	assert_null(strstr(sealed, "c0000201"));
	assert_false(weir_flow_open(other_secret, LEDGER, name, sealed, opened));
	/* A flow of another rule has another name. */
	assert_false(weir_flow_open(secret, "weir:{edge}:dns:2000ms", name, sealed, opened));
	weir_flow_seal(secret, "weir:{edge}:dns:2000ms", flow, again, sealed);
	assert_string_not_equal(name, again);
}

CLAIM(what_the_store_has_altered_is_no_flow)
{
	uint8_t flow[WEIR_FLOW_BYTES] = {192, 0, 2, 1}, opened[WEIR_FLOW_BYTES];
	char name[WEIR_FLOW_NAME_CHARS], sealed[WEIR_FLOW_SEALED_CHARS];

	weir_flow_seal(secret, LEDGER, flow, name, sealed);
	for (size_t i = 0; i < strlen(sealed); i++) {
		sealed[i] ^= 1; /* another digit, or none */
		assert_false(weir_flow_open(secret, LEDGER, name, sealed, opened));
		sealed[i] ^= 1;
	}
	for (size_t i = 0; i < strlen(name); i++) {
		name[i] ^= 1;
		assert_false(weir_flow_open(secret, LEDGER, name, sealed, opened));
		name[i] ^= 1;
	}
	assert_false(weir_flow_open(secret, LEDGER, "", "", opened));
	assert_true(weir_flow_open(secret, LEDGER, name, sealed, opened));
}

/* ---- what a host has more or less ---- */

/* A rule's share of so many units, which has begun. */
static struct weir_share rule_of(uint64_t units)
{
	const struct weir_share_terms terms = {
		.threshold = 3000, .interval_ns = SECOND, .may_fall_back = true, .is_per_flow = true};
	struct weir_share rule;

	weir_share_begin(&rule, &terms, START - 10 * SECOND);
	rule.enforced = rule.fallback = units;
	return rule;
}

/* The answer to a message of now. */
static void answer(struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns, int64_t difference)
{
	const struct weir_share_answer given = {
		.epoch = "p:1",
		.now_us = (int64_t)(now_ns / 1000),
		.share = WEIR_CLUSTER_BASE + (uint64_t)difference,
		.fallback = WEIR_CLUSTER_BASE,
		.lease_us = 1000000,
		.hosts = 3,
	};
	struct weir_share_ask ask;

	weir_flow_ask(flow, rule, now_ns, 0, &ask);
	memcpy(flow->share.heard, given.epoch, sizeof(flow->share.heard)); /* in an answer before */
	weir_flow_take(flow, rule, &given, now_ns, now_ns + MS);
}

CLAIM(a_flow_has_the_rules_share_and_its_difference)
{
	struct weir_share rule = rule_of(1000);
	struct weir_flow_part flow;

	weir_flow_begin(&flow, &rule, START);
	assert_int_equal(weir_flow_units(&flow, &rule, START), 1000);
	assert_true(weir_flow_is_over(&flow));
	answer(&flow, &rule, START, 1900);
	assert_int_equal(weir_flow_units(&flow, &rule, START + MS), 2900);
	answer(&flow, &rule, START + 200 * MS, -900);
	assert_int_equal(weir_flow_units(&flow, &rule, START + 201 * MS), 100);
	rule.enforced = 500;
	assert_int_equal(weir_flow_units(&flow, &rule, START + 201 * MS), 0);
}

CLAIM(a_host_asks_for_what_it_could_use)
{
	struct weir_share rule = rule_of(1000);
	struct weir_share_ask ask;
	struct weir_flow_part flow;

	/* Nothing came: it keeps a fiftieth. */
	weir_flow_begin(&flow, &rule, START);
	weir_flow_ask(&flow, &rule, START, 0, &ask);
	assert_true(ask.ask == WEIR_CLUSTER_BASE - 980);
	assert_int_equal(flow.lack, 0);
	weir_flow_ask(&flow, &rule, START + 500 * MS, 5000, &ask);
	assert_true(ask.ask == WEIR_CLUSTER_BASE + 2000); /* all of the threshold */
	assert_in_range(flow.lack, 9000, 9300);
	assert_true(ask.threshold == 3000);
	assert_true(ask.base == WEIR_CLUSTER_BASE);
}

/* Until the ledger has confirmed a message that says otherwise. */
CLAIM(shares_ceded_to_flows_are_lent)
{
	struct weir_share rule = rule_of(1000);
	struct weir_share_ask ask;
	struct weir_flow_part flow;
	uint64_t now_ns = START + 2 * SECOND;

	weir_flow_begin(&flow, &rule, START);
	assert_int_equal(weir_flow_lent(&flow), 0);
	answer(&flow, &rule, now_ns, -900);
	assert_int_equal(weir_flow_lent(&flow), 900);
	/* A window later the ledger learns of it. */
	now_ns += 1100 * MS;
	answer(&flow, &rule, now_ns, -900);
	answer(&flow, &rule, now_ns + 200 * MS, 0);
	assert_int_equal(weir_flow_units(&flow, &rule, now_ns + 201 * MS), 1000);
	assert_int_equal(weir_flow_lent(&flow), 900);
	weir_flow_ask(&flow, &rule, now_ns + 400 * MS, 0, &ask);
	assert_int_equal(weir_flow_lent(&flow), 900);
	answer(&flow, &rule, now_ns + 600 * MS, 0);
	assert_int_equal(weir_flow_lent(&flow), 0);
}

CLAIM(shares_lent_to_flows_are_reported_as_held_of_the_rule)
{
	struct weir_share rule = rule_of(1000);
	struct weir_share_ask ask;

	weir_share_ask(&rule, START, 0, 0, &ask);
	assert_int_equal(ask.peak, 1000);
	assert_int_equal(ask.ask, 3000);
	rule.lent = 1500;
	weir_share_ask(&rule, START + 200 * MS, 0, 0, &ask);
	assert_int_equal(ask.peak, 1500);
}

/* The share shrank while the message was under way. */
CLAIM(a_host_gives_up_no_more_than_its_share)
{
	struct weir_share rule = rule_of(500);
	struct weir_flow_part flow;

	weir_flow_begin(&flow, &rule, START);
	answer(&flow, &rule, START, -900);
	assert_true(flow.share.enforced == WEIR_CLUSTER_BASE - 500);
}

/* Whatever a store says. */
CLAIM(a_flow_has_no_more_than_the_threshold)
{
	struct weir_share rule = rule_of(1000);
	struct weir_flow_part flow;

	weir_flow_begin(&flow, &rule, START);
	answer(&flow, &rule, START, 2900);
	assert_int_equal(weir_flow_units(&flow, &rule, START + MS), 3000);
}

CLAIM(larger_shares_are_returned_and_smaller_ones_come_late)
{
	struct weir_share rule = rule_of(1000);
	struct weir_flow_part flow;
	uint64_t rises_ns;

	weir_flow_begin(&flow, &rule, START);
	answer(&flow, &rule, START, 500);
	weir_flow_end(&flow, START + MS);
	assert_int_equal(weir_flow_units(&flow, &rule, START + MS), 1000);

	weir_flow_begin(&flow, &rule, START);
	answer(&flow, &rule, START, -500);
	weir_flow_end(&flow, START + MS);
	assert_int_equal(weir_flow_units(&flow, &rule, START + MS), 500);
	assert_false(weir_flow_is_over(&flow));
	weir_share_advance(&flow.share, START + 2 * SECOND);
	rises_ns = weir_share_next_ns(&flow.share);
	assert_true(rises_ns > START + 4100 * MS && rises_ns < START + 4200 * MS);
	weir_share_advance(&flow.share, rises_ns);
	assert_int_equal(weir_flow_units(&flow, &rule, rises_ns), 1000);
	assert_true(weir_flow_is_over(&flow));
}

/* What a process before it has given up is in use elsewhere. */
CLAIM(a_process_begins_late)
{
	const struct weir_share_terms terms = {.threshold = 3000, .interval_ns = SECOND, .is_per_flow = true};
	struct weir_share_schedule schedule;
	struct weir_share rule;

	weir_share_begin(&rule, &terms, START);
	rule.enforced = rule.fallback = 1000;
	assert_int_equal(weir_share_units(&rule, START + 3 * SECOND), 0);
	weir_share_plan(&rule, START + 3 * SECOND, &schedule);
	assert_int_equal(schedule.leased + schedule.ended + schedule.fallen_back, 0);
	assert_int_equal(weir_share_units(&rule, START + 4200 * MS), 1000);
	weir_share_plan(&rule, START + 4200 * MS, &schedule);
	assert_int_equal(schedule.leased, 1000);
}

RUN_CLAIMS(NULL, NULL)
