// SPDX-License-Identifier: GPL-2.0-only
/*
 * More flows than a table has places, for every kind that remembers flows: a flow that is evicted while its entry
 * counts leaves a ghost, and continues from it (bpf/kinds/ghosts.h, bpf/window/row_ghosts.h); where the ghost finds no
 * room, `whenFull: aggregate` counts such flows together. Under the virtual clock and on one CPU; flows are hosts that
 * send UDP. (overfull_test has more of windows, in every format of rows.)
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/harness.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

#define PORT 53
#define SOURCE_OFFSET (14 + 12) /* of the IPv4 source address in the frame */
#define ROWS 512u
#define STRANGERS 1000000u /* hosts from here on push others out */
#define PENALTY_MS 1900u

/* ---- the kinds ---- */

static void by_tokens(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->window = WEIR_WINDOW_TOKENS;
	rule->burst_micro = rule->threshold_micro;
}

static void by_tats(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
}

static void by_occupying(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rig->ruleset->resources[0].is_prioritized = true;
	rule->occupies = true;
}

/* Of a token bucket, whose table has as many places as that of penalties. */
static void by_penalties(struct rig *rig, struct weir_ruleset_rule *rule)
{
	by_tokens(rig, rule);
	rule->penalty_ms = rule->penalty_ms_max = PENALTY_MS;
}

static const struct kind {
	const char *name;
	void (*shape)(struct rig *rig, struct weir_ruleset_rule *rule);
	enum weir_table_id table; /* of its places; else the rows of a CPU are */
	bool leaves_ghosts;	  /* it is by these that it is evaluated again */
	uint32_t at_once;	  /* packets a flow has at once, of a limit of 4; one of Throttling is alone */
	uint32_t beyond;	  /* ... in limits, that it may have beyond a limit an interval, since time began */
} kinds[] = {
	{"windows", NULL, WEIR_TABLE_COUNT, false, 4, 0},
	{"tokens", by_tokens, WEIR_TABLE_TOKEN_FLOWS, true, 4, 1}, /* a bucket is full at first */
	{"Throttling", by_tats, WEIR_TABLE_THROTTLED_FLOWS, true, 1, 1},
	{"occupy", by_occupying, WEIR_TABLE_OCCUPY_FLOWS, false, 4, 1}, /* what is occupied has passed already */
	{"penalties", by_penalties, WEIR_TABLE_PENALISED_FLOWS, true, 4, 1},
};

struct crowd {
	struct rig rig;
	uint64_t now_ns;
	uint32_t stranger;
	uint32_t places;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes;
};

/* One resource keyed by source: `limit` packets an interval. A bucket holds as many; none of Throttling's waits. */
static void crowd_open(struct crowd *crowd, const struct kind *kind, uint64_t limit, uint64_t interval_ns,
		       bool aggregates, uint32_t secret)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 0);
	struct weir_ruleset_rule *rule;
	const uint32_t *sizes;

	memset(crowd, 0, sizeof(*crowd));
	crowd->now_ns = RIG_START_NS;
	crowd->stranger = STRANGERS;
	crowd->frame_bytes = packet_build(&spec, crowd->frame);
	rig_begin(&crowd->rig, ROWS);
	crowd->rig.secret = secret;
	rule = rig_rule(&crowd->rig, rig_resource(&crowd->rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, limit,
			interval_ns, 10);
	rule->aggregates = aggregates;
	if (kind->shape)
		kind->shape(&crowd->rig, rule);
	rig_load(&crowd->rig, true);
	sizes = crowd->rig.image->config.sizes;
	crowd->places = kind->table == WEIR_TABLE_COUNT ? ROWS : sizes[kind->table] * WEIR_FLOW_WAYS;
	if (kind->leaves_ghosts)
		assert_true(sizes[WEIR_TABLE_GHOSTS] * WEIR_GHOST_WAYS >= 4 * crowd->places);
	else
		assert_true(sizes[WEIR_TABLE_ROW_GHOSTS] * WEIR_ROW_GHOST_WAYS >= 4 * ROWS);
}

static uint32_t host_passes(struct crowd *crowd, uint32_t host, uint32_t packets)
{
	const uint32_t address = htonl(0x0a000000 + host);
	uint32_t passed = 0;

	memcpy(crowd->frame + SOURCE_OFFSET, &address, sizeof(address));
	while (packets--)
		passed += rig_passes(&crowd->rig, crowd->now_ns, crowd->frame, crowd->frame_bytes);
	return passed;
}

static void push_out(struct crowd *crowd, uint32_t hosts, uint32_t packets)
{
	while (hosts--)
		host_passes(crowd, crowd->stranger++, packets);
}

static uint64_t evicted(const struct crowd *crowd)
{
	return rig_rule_counters(&crowd->rig, 0).evicted;
}

/* Ghosts that were lost while they counted, in both tables. */
static uint64_t lost(const struct crowd *crowd)
{
	const uint32_t *sizes = crowd->rig.image->config.sizes;
	const uint32_t sets = sizes[WEIR_TABLE_ROW_GHOSTS], last = WEIR_GHOST_HEAD(sizes[WEIR_TABLE_GHOSTS]);
	const int of_rows = weir_object_map_fd(crowd->rig.object, WEIR_TABLE_ROW_GHOSTS);
	const int of_flows = weir_object_map_fd(crowd->rig.object, WEIR_TABLE_GHOSTS);
	struct weir_row_ghost_set row_head;
	struct weir_ghost_set head = {};
	uint64_t sum;

	if (sizes[WEIR_TABLE_GHOSTS])
		assert_int_equal(bpf_map_lookup_elem(of_flows, &last, &head), 0);
	sum = head.displaced;
	for (uint32_t key = sets; key < sets + WEIR_ROW_GHOST_HEADS; key++) {
		assert_int_equal(bpf_map_lookup_elem(of_rows, &key, &row_head), 0);
		sum += row_head.displaced;
	}
	return sum;
}

/* ---- one flow ---- */

static void goes_on_with_what_it_used(const struct kind *kind)
{
	struct crowd crowd;

	crowd_open(&crowd, kind, 4, 4 * SECOND, false, 0);
	assert_int_equal(host_passes(&crowd, 1, 9), kind->at_once);
	/* They use as much, and are refused as it was; then twice as many come, so that it has gone by then. */
	push_out(&crowd, 2 * crowd.places, 9);
	assert_true(evicted(&crowd) > crowd.places / 2);
	assert_int_equal(host_passes(&crowd, 1, 9), 0);
	push_out(&crowd, crowd.places / 4, 9);
	crowd.now_ns += SECOND - 1;
	assert_int_equal(host_passes(&crowd, 1, 9), 0);
	if (kind->leaves_ghosts && kind->shape != by_penalties) {
		push_out(&crowd, crowd.places / 4, 9);
		/* A ghost is late by two steps of the clock at most. */
		crowd.now_ns += 2 << WEIR_KEEP_STEP_BITS;
		assert_int_equal(host_passes(&crowd, 1, 9), 1);
	}
	rig_end(&crowd.rig);
}

CLAIM(an_evicted_flow_continues_with_what_it_used)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		goes_on_with_what_it_used(&kinds[i]);
}

/* A penalty of 1.9 s, which many others push out. */
CLAIM(a_penalty_outlasts_its_eviction)
{
	const struct kind *kind = &kinds[ARRAY_SIZE(kinds) - 1];
	struct crowd crowd;

	crowd_open(&crowd, kind, 4, SECOND / 10, false, 0);
	assert_int_equal(host_passes(&crowd, 1, 9), 4);
	push_out(&crowd, 2 * crowd.places, 9);
	crowd.now_ns += PENALTY_MS * MS - 1;
	assert_int_equal(host_passes(&crowd, 1, 9), 0);
	crowd.now_ns += 2 << WEIR_KEEP_STEP_BITS;
	assert_int_equal(host_passes(&crowd, 1, 9), 4);
	rig_end(&crowd.rig);
}

CLAIM(a_new_flow_has_nothing_to_do_with_ghosts)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct crowd crowd;

		crowd_open(&crowd, &kinds[i], 4, 4 * SECOND, false, 0);
		push_out(&crowd, 3 * crowd.places, 9);
		for (uint32_t host = 1; host <= 10000; host++)
			assert_int_equal(host_passes(&crowd, host, 1), 1);
		rig_end(&crowd.rig);
	}
}

/* Six a minute, one packet a second, and spoofed sources that push it out: so many of them count at once as there are
 * places, and half as many ghosts again.
 */
CLAIM(a_slow_limit_holds_in_a_flood_of_new_sources)
{
	enum { MINUTES = 4 };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct crowd crowd;
		uint32_t passed = 0;

		crowd_open(&crowd, &kinds[i], 6, 60 * SECOND, false, 0);
		for (uint32_t second = 0; second < MINUTES * 60; second++) {
			push_out(&crowd, crowd.places / 60, 1);
			passed += host_passes(&crowd, 1, 1);
			crowd.now_ns += SECOND;
		}
		print_message("%s: %u of %u\n", kinds[i].name, passed, MINUTES * 60);
		assert_in_range(passed, 6 * MINUTES - 3, 6 * MINUTES + (kinds[i].beyond ? 6 : 1));
		rig_end(&crowd.rig);
	}
}

/* One source begins at 200 times its limit, while 20,000 new sources a second send one packet each: what it has used is
 * in a table that a tenth of a second of them fills, and counts as little as what each of them has used.
 */
#define NEWCOMERS_A_SECOND 20000u
#define PACKETS_A_SECOND 20u
#define PACKETS 141u			      /* in a little more than seven seconds */
#define PACKETS_BEFORE (PACKETS_A_SECOND / 2) /* so long the flood has been there: all places are taken */
#define SECRETS 3u

static void by_strict(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->window = WEIR_WINDOW_STRICT;
}

static void by_smooth(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->window = WEIR_WINDOW_SMOOTH;
}

/* A queue of a minute. */
static void by_queueing(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = 60000;
}

/* What each admits in these seven seconds, at_once. */
static const struct kind flooded[] = {
	{"leap", NULL, WEIR_TABLE_COUNT, false, 6, 0},
	{"strict", by_strict, WEIR_TABLE_COUNT, false, 6, 0},
	{"smooth", by_smooth, WEIR_TABLE_COUNT, false, 6, 0},
	{"occupy", by_occupying, WEIR_TABLE_OCCUPY_FLOWS, false, 6, 0},
	{"tokens", by_tokens, WEIR_TABLE_TOKEN_FLOWS, true, 6, 0},
	{"Throttling", by_tats, WEIR_TABLE_THROTTLED_FLOWS, true, 1, 0},
	{"Throttling that queues", by_queueing, WEIR_TABLE_THROTTLED_FLOWS, true, 7, 0},
	{"penalties", by_penalties, WEIR_TABLE_PENALISED_FLOWS, true, 6, 0},
};

static void begins_in_a_flood(const struct kind *kind, uint32_t secret)
{
	uint32_t passed = 0;
	struct crowd crowd;

	crowd_open(&crowd, kind, 6, 60 * SECOND, false, secret);
	for (uint32_t packet = 0; packet < PACKETS_BEFORE + PACKETS; packet++) {
		if (packet >= PACKETS_BEFORE)
			passed += host_passes(&crowd, 1, 1);
		for (uint32_t i = 0; i < NEWCOMERS_A_SECOND / PACKETS_A_SECOND; i++) {
			push_out(&crowd, 1, 1);
			crowd.now_ns += SECOND / NEWCOMERS_A_SECOND;
		}
	}
	print_message("%s, secret %u: %u of %u passed\n", kind->name, secret, passed, PACKETS);
	/* All but what there is room for was lost while it counted. */
	assert_true(lost(&crowd) >= evicted(&crowd) - 9 * ROWS);
	assert_int_equal(passed, kind->at_once);
	rig_end(&crowd.rig);
}

/* Sets fill by chance: with one secret in thirty, so many new sources fall into the sets of the flow's ghosts between
 * two of its packets that one packet more is admitted. Not with these.
 */
LONG_CLAIM(a_flow_that_begins_in_a_flood_keeps_its_limit)
{
	for (size_t i = 0; i < ARRAY_SIZE(flooded); i++)
		for (uint32_t secret = 0; secret < SECRETS; secret++)
			begins_in_a_flood(&flooded[i], secret);
}

/* One that was refused, and then had a packet admitted, goes after those that have as much to lose and were not
 * refused: it is still there, so that its next packet pushes nobody out.
 */
CLAIM(a_refused_flow_stays_though_a_packet_was_admitted)
{
	/* When a packet fits again while the entry still counts, and how many more fit then: a window's entry counts
	 * for an interval and a bucket.
	 */
	static const struct {
		uint64_t after_ns;
		uint32_t more;
	} fits[] = {[1] = {SECOND, 0}, [2] = {SECOND, 0}, [3] = {4 * SECOND + SECOND / 10, 3}};

	for (size_t i = 1; i < ARRAY_SIZE(fits); i++) {
		struct crowd crowd;
		uint64_t before;

		crowd_open(&crowd, &kinds[i], 4, 4 * SECOND, false, 0);
		assert_int_equal(host_passes(&crowd, 1, 9), kinds[i].at_once);
		crowd.now_ns += fits[i].after_ns;
		assert_int_equal(host_passes(&crowd, 1, 1), 1);
		push_out(&crowd, 8 * crowd.places, kinds[i].at_once);
		before = evicted(&crowd);
		assert_true(before > 6 * crowd.places);
		assert_int_equal(host_passes(&crowd, 1, 9), fits[i].more);
		assert_int_equal(evicted(&crowd), before);
		rig_end(&crowd.rig);
	}
}

/* ---- all flows ---- */

#define CALM 100u /* one host in so many keeps to half its limit */

/* Each host sends at ten times its limit, but for the calm ones; the hosts in turn, or in any order. */
struct flood {
	uint32_t limit; /* a second */
	uint32_t hosts_a_place;
	uint32_t seconds;
	bool in_turn;
	bool aggregates;
};

static bool sends(uint32_t host, uint32_t turn)
{
	return host % CALM ? true : turn % 20 == host / CALM % 20;
}

/* What the limit allows a flow. A penalty begins with the third packet, 0.1 s after the first, and lasts 1.9 s. */
static uint32_t allowed_of(const struct kind *kind, const struct flood *flood)
{
	if (kind->shape == by_penalties)
		return flood->limit * ((flood->seconds + 1) / 2);
	return flood->limit * (flood->seconds + kind->beyond);
}

/* What passed, as a part of what is allowed; *ret_calm_lost: what the calm ones lost. */
static double part_of_crowd(const struct kind *kind, const struct flood *flood, double *ret_calm_lost)
{
	uint64_t passed = 0, calm_sent = 0, calm_passed = 0;
	const uint32_t turns = 10 * flood->limit;
	uint32_t random = 1, hosts;
	struct crowd crowd;
	double part;

	crowd_open(&crowd, kind, flood->limit, SECOND, flood->aggregates, 0);
	hosts = flood->hosts_a_place * crowd.places;
	for (uint32_t turn = 0; turn < flood->seconds * turns; turn++)
		for (uint32_t i = 0; i < hosts; i++) {
			const bool is_any = !flood->in_turn && i % CALM;
			uint32_t host = i, one;

			random = random * 1664525 + 1013904223;
			crowd.now_ns += SECOND / turns / hosts;
			if (is_any)
				host = (uint32_t)((uint64_t)random * hosts >> 32);
			if ((is_any && host % CALM == 0) || !sends(host, turn))
				continue;
			one = host_passes(&crowd, host, 1);
			passed += one;
			calm_sent += host % CALM == 0;
			calm_passed += host % CALM == 0 ? one : 0;
		}
	part = (double)passed / ((uint64_t)hosts * allowed_of(kind, flood));
	*ret_calm_lost = 1 - (double)calm_passed / calm_sent;
	print_message(
		"%s, %u hosts a place, %s%s: %.3f of what is allowed passed; calm hosts lost %.4f; %llu evicted\n",
		kind->name, flood->hosts_a_place, flood->in_turn ? "in turn" : "in any order",
		flood->aggregates ? ", aggregate" : "", part, *ret_calm_lost, (unsigned long long)evicted(&crowd));
	rig_end(&crowd.rig);
	return part;
}

/* In any order a flow may have one penalty more than in turn: then as many pass where there is room for all. */
static void crowds_keep_their_limits(const struct kind *kind, bool in_turn)
{
	double calm_lost, alone = 1, part;

	for (uint32_t hosts_a_place = 1; hosts_a_place <= 4; hosts_a_place *= 2) {
		part = part_of_crowd(kind, &(struct flood){2, hosts_a_place, 4, in_turn, false}, &calm_lost);
		if (hosts_a_place == 1 && part > alone)
			alone = part;
		assert_true(part <= 1.1 * alone);
		assert_true(calm_lost <= 0.01);
	}
}

LONG_CLAIM(a_crowd_of_four_times_the_places_keeps_its_limits)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (int in_turn = 0; in_turn < 2; in_turn++)
			crowds_keep_their_limits(&kinds[i], in_turn);
}

LONG_CLAIM(aggregate_holds_where_nothing_is_remembered)
{
	double calm_lost;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (int in_turn = 0; in_turn < 2; in_turn++)
			assert_true(part_of_crowd(&kinds[i], &(struct flood){1, 200, 1, in_turn, true}, &calm_lost) <=
				    1.5);
}

/* Four packets at once, of which three wait. */
static void by_queueing_three(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = 3000;
}

/* In each set, the flows whose ghosts were lost had used all four packets. A second later the overflow bucket has one,
 * which one newcomer takes from all others.
 */
CLAIM(newcomers_share_what_an_overflow_bucket_has)
{
	static const struct kind shared[] = {
		{"tokens", by_tokens, WEIR_TABLE_TOKEN_FLOWS, true, 4, 0},
		{"Throttling that queues", by_queueing_three, WEIR_TABLE_THROTTLED_FLOWS, true, 4, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		uint32_t passed = 0, hosts, sets;
		struct crowd crowd;

		crowd_open(&crowd, &shared[i], 4, 4 * SECOND, true, 0);
		hosts = 2 * crowd.places;
		sets = crowd.places / WEIR_FLOW_WAYS;
		push_out(&crowd, 40 * crowd.places, shared[i].at_once);
		/* A ghost is late by two steps of the clock at most. */
		crowd.now_ns += SECOND + (2 << WEIR_KEEP_STEP_BITS);
		for (uint32_t host = 1; host <= hosts; host++)
			passed += host_passes(&crowd, host, 1);
		print_message("%s: %u of %u newcomers passed, in %u sets\n", shared[i].name, passed, hosts, sets);
		assert_int_equal(passed, sets);
		rig_end(&crowd.rig);
	}
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
