// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fair shares (docs/fair.md): the promises of docs/semantics.md, 14, on traffic made for them, by the shipped BPF
 * object under the virtual clock. What children are due is known by hand. The parent's window is exact, whatever
 * children do.
 */
#include <stdlib.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "state/fair_shares.h"
#include "weir_fair.h"

#define PORT 53
#define CHILDREN_MAX 64
#define SMALL 45u /* the first children */
#define CHILDREN 50u
#define LIMIT 1000u
#define FLOWS_PER_CPU 4096u

/* A child sends `rate` packets a second, evenly, from its own phase on. */
struct source {
	uint32_t rate, payload;
	uint16_t port;
	uint64_t phase_ns, next_ns;
	uint32_t offered, passed; /* since the bench began to count */
};

struct bench {
	struct rig rig;
	uint64_t now_ns;
	struct source source[CHILDREN_MAX];
	uint32_t sources;
	uint64_t bucket[12]; /* passed in the latest buckets of 100 ms, for the parent's window; [number % 12] */
	uint64_t bucket_number, fullest;
	bool counts_bytes;
};

static void begin(struct bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	bench->now_ns = RIG_START_NS;
	rig_begin(&bench->rig, FLOWS_PER_CPU);
}

static struct weir_ruleset_rule *add_rule(struct bench *bench, uint32_t parent_key, enum weir_window_kind window,
					  uint64_t limit)
{
	struct weir_ruleset_rule *rule =
		rig_rule(&bench->rig, rig_resource(&bench->rig, PORT, parent_key), window, limit, SECOND, 10);

	rule->fair_by.fields = WEIR_KEY_SOURCE;
	rule->fair_by.source_bits[0] = 32;
	rule->fair_by.source_bits[1] = 128;
	return rule;
}

static struct source *add_source(struct bench *bench, uint32_t rate)
{
	struct source *source = &bench->source[bench->sources++];

	assert_true(bench->sources <= CHILDREN_MAX);
	*source = (struct source){.rate = rate, .payload = 18, .port = 1024};
	/* Odd phases, so that packets of no two children meet. */
	source->phase_ns = rate ? SECOND / rate * (bench->sources * 37 % 101) / 101 : 0;
	source->next_ns = bench->now_ns + source->phase_ns;
	return source;
}

static uint64_t window_of(struct bench *bench, uint64_t units)
{
	const uint64_t number = bench->now_ns / (100 * MS);
	uint64_t sum = 0;

	if (number - bench->bucket_number >= ARRAY_SIZE(bench->bucket))
		bench->bucket_number = number - ARRAY_SIZE(bench->bucket);
	for (; bench->bucket_number != number; bench->bucket_number++)
		bench->bucket[(bench->bucket_number + 1) % ARRAY_SIZE(bench->bucket)] = 0;
	bench->bucket[number % ARRAY_SIZE(bench->bucket)] += units;
	for (uint64_t back = 0; back < 10; back++)
		sum += bench->bucket[(number - back) % ARRAY_SIZE(bench->bucket)];
	if (sum > bench->fullest)
		bench->fullest = sum;
	return sum;
}

static bool send_from(struct bench *bench, uint32_t child, const struct source *source)
{
	uint8_t frame[PACKET_BYTES_MAX];
	struct packet_spec spec;
	char address[32];
	size_t frame_bytes;
	bool passes;

	snprintf(address, sizeof(address), "10.%u.%u.%u", child >> 16, child >> 8 & 255, child & 255);
	spec = packet_udp(address, source->port, "198.51.100.1", PORT, source->payload);
	frame_bytes = packet_build(&spec, frame);
	passes = rig_passes(&bench->rig, bench->now_ns, frame, frame_bytes);
	if (passes)
		window_of(bench, bench->counts_bytes ? frame_bytes : 1);
	return passes;
}

/* Let all sources send until then, in the order of time. */
static void run_until(struct bench *bench, uint64_t until_ns)
{
	for (;;) {
		uint32_t first = 0;

		for (uint32_t i = 1; i < bench->sources; i++)
			if (bench->source[i].rate &&
			    (!bench->source[first].rate || bench->source[i].next_ns < bench->source[first].next_ns))
				first = i;
		if (bench->source[first].next_ns >= until_ns)
			break;
		bench->now_ns = bench->source[first].next_ns;
		bench->source[first].next_ns += SECOND / bench->source[first].rate;
		bench->source[first].offered++;
		bench->source[first].passed += send_from(bench, first, &bench->source[first]);
	}
	bench->now_ns = until_ns;
}

static void run_for(struct bench *bench, uint64_t ns)
{
	run_until(bench, bench->now_ns + ns);
}

/* Forget what was counted so far. */
static void count_from_now(struct bench *bench)
{
	for (uint32_t i = 0; i < bench->sources; i++)
		bench->source[i].offered = bench->source[i].passed = 0;
}

static uint32_t passed_of(const struct bench *bench, uint32_t from, uint32_t below)
{
	uint32_t sum = 0;

	for (uint32_t i = from; i < below; i++)
		sum += bench->source[i].passed;
	return sum;
}

static void assert_lossless(const struct bench *bench, uint32_t from, uint32_t below)
{
	for (uint32_t i = from; i < below; i++)
		if (bench->source[i].passed * 100 < bench->source[i].offered * 99)
			fail_msg("child %u got %u of %u", i, bench->source[i].passed, bench->source[i].offered);
}

static void assert_near(uint32_t value, double due)
{
	if (value < due * 0.9 || value > due * 1.1)
		fail_msg("%u, not %.1f", value, due);
}

/* 45 children of 10 a second, and five of 1,000. */
static void open_fifty(struct bench *bench, enum weir_window_kind window)
{
	begin(bench);
	add_rule(bench, 0, window, LIMIT);
	rig_load_here(&bench->rig);
	for (uint32_t i = 0; i < CHILDREN; i++)
		add_source(bench, i < SMALL ? 10 : 1000);
}

CLAIM(children_are_not_limited_while_all_of_it_fits)
{
	struct bench bench;

	begin(&bench);
	add_rule(&bench, 0, WEIR_WINDOW_LEAP, LIMIT);
	rig_load_here(&bench.rig);
	for (uint32_t i = 0; i < 9; i++)
		add_source(&bench, 10);
	add_source(&bench, 900);
	run_for(&bench, 5 * SECOND);
	for (uint32_t i = 0; i < bench.sources; i++)
		assert_int_equal(bench.source[i].passed, bench.source[i].offered);
	rig_end(&bench.rig);
}

CLAIM(heavy_children_share_what_the_others_leave)
{
	struct bench bench;

	open_fifty(&bench, WEIR_WINDOW_LEAP);
	run_for(&bench, 3 * SECOND);
	count_from_now(&bench);
	run_for(&bench, 5 * SECOND);
	assert_lossless(&bench, 0, SMALL);
	for (uint32_t i = SMALL; i < CHILDREN; i++)
		assert_near(bench.source[i].passed, 5 * 110.0);
	assert_true(passed_of(&bench, 0, CHILDREN) >= 5 * LIMIT * 95 / 100);
	assert_true(bench.fullest <= LIMIT);
	rig_end(&bench.rig);
}

/* What the window took before the level is known leaves it within an interval; from then on nobody loses. */
CLAIM(a_second_after_they_began_heavy_children_harm_nobody)
{
	struct bench bench;

	begin(&bench);
	add_rule(&bench, 0, WEIR_WINDOW_LEAP, LIMIT);
	rig_load_here(&bench.rig);
	for (uint32_t i = 0; i < SMALL; i++)
		add_source(&bench, 10);
	run_for(&bench, 2400 * MS);
	for (uint32_t i = SMALL; i < CHILDREN; i++)
		add_source(&bench, 1000);
	run_for(&bench, 1100 * MS);
	count_from_now(&bench);
	run_for(&bench, 2 * SECOND);
	assert_lossless(&bench, 0, SMALL);
	for (uint32_t i = SMALL; i < CHILDREN; i++)
		assert_near(bench.source[i].passed, 2 * 110.0);
	assert_true(bench.fullest <= LIMIT);
	rig_end(&bench.rig);
}

/* A strict window holds N in eleven buckets of a tenth, so what is shared is N * 10 / 11. */
CLAIM(strict_and_smooth_windows_share_what_they_admit)
{
	for (enum weir_window_kind window = WEIR_WINDOW_STRICT; window <= WEIR_WINDOW_SMOOTH; window++) {
		const double limit = window == WEIR_WINDOW_STRICT ? LIMIT * 10 / 11.0 : LIMIT;
		struct bench bench;

		open_fifty(&bench, window);
		run_for(&bench, 4 * SECOND);
		count_from_now(&bench);
		run_for(&bench, 5 * SECOND);
		assert_lossless(&bench, 0, SMALL);
		for (uint32_t i = SMALL; i < CHILDREN; i++)
			assert_near(bench.source[i].passed, (limit - 450) / 5 * 5);
		assert_true(bench.fullest <= LIMIT);
		rig_end(&bench.rig);
	}
}

CLAIM(bytes_are_shared_as_bytes)
{
	struct bench bench;

	begin(&bench);
	bench.counts_bytes = true;
	add_rule(&bench, 0, WEIR_WINDOW_LEAP, 1000000)->counts_bytes = true;
	rig_load_here(&bench.rig);
	for (uint32_t i = 0; i < 40; i++)
		add_source(&bench, 10)->payload = 1000; /* 10,420 bytes */
	for (uint32_t i = 40; i < 45; i++)
		add_source(&bench, 500)->payload = 1400;
	run_for(&bench, 3 * SECOND);
	count_from_now(&bench);
	run_for(&bench, 4 * SECOND);
	assert_lossless(&bench, 0, 40);
	for (uint32_t i = 40; i < 45; i++)
		assert_near(bench.source[i].passed * 1442, 4 * (1000000 - 40 * 10420) / 5.0);
	assert_true(bench.fullest <= 1000000);
	rig_end(&bench.rig);
}

/* Each source port has a limit of its own, and a level of its own; the third is not contended. */
CLAIM(parents_with_a_key_have_levels_of_their_own)
{
	struct bench bench;

	begin(&bench);
	add_rule(&bench, WEIR_KEY_SOURCE_PORT, WEIR_WINDOW_LEAP, 200);
	rig_load_here(&bench.rig);
	for (uint32_t i = 0; i < 30; i++)
		add_source(&bench, i % 10 < 8 ? 10 : i < 10 ? 300 : i < 20 ? 100 : 50)->port = 1024 + i / 10;
	for (uint32_t i = 0; i < 4; i++)
		add_source(&bench, 100)->port = 1025;
	run_for(&bench, 4 * SECOND);
	count_from_now(&bench);
	run_for(&bench, 4 * SECOND);
	for (uint32_t parent = 0; parent < 3; parent++)
		assert_lossless(&bench, 10 * parent, 10 * parent + 8);
	assert_near(bench.source[8].passed, 4 * 60.0);
	assert_near(bench.source[9].passed, 4 * 60.0);
	assert_near(bench.source[18].passed, 4 * 20.0);
	assert_near(bench.source[33].passed, 4 * 20.0);
	assert_lossless(&bench, 28, 30);
	rig_end(&bench.rig);
}

/* A child that sends all it is due at once, once a second, is not above its level. */
CLAIM(a_burst_of_what_an_interval_allows_loses_nothing)
{
	struct bench bench;
	struct source burst = {.payload = 18, .port = 1024};
	uint32_t passed = 0;

	open_fifty(&bench, WEIR_WINDOW_LEAP);
	bench.source[0].rate = 0;
	bench.source[0].next_ns = UINT64_MAX;
	for (uint32_t second = 0; second < 8; second++) {
		run_for(&bench, SECOND);
		for (uint32_t i = 0; i < 90; i++)
			passed += send_from(&bench, 0, &burst) && second >= 3;
	}
	if (passed < 5 * 90 * 99 / 100)
		fail_msg("it got %u of %u", passed, 5 * 90);
	rig_end(&bench.rig);
}

/* Sources of one packet each, 300 a second: they are new, and count as no more than the 50 that have been there, which
 * is enough for what they want. A second flood has 2,000, of which each 16 count as one.
 */
CLAIM(a_spoofed_flood_leaves_children_that_have_been_there_their_level)
{
	static const struct {
		uint32_t rate;
		double level;
	} floods[] = {{300, (1000 - 450 - 300) / 5.0}, {2000, 1000 / (50 + 2000 / 16.0)}};

	for (size_t flood = 0; flood < ARRAY_SIZE(floods); flood++) {
		struct source spoofed = {.payload = 18, .port = 1024};
		const uint32_t rate = floods[flood].rate;
		struct bench bench;

		open_fifty(&bench, WEIR_WINDOW_LEAP);
		run_for(&bench, 3 * SECOND);
		for (uint32_t i = 0; i < 6 * rate; i++) {
			run_for(&bench, SECOND / rate);
			send_from(&bench, 100 + i, &spoofed);
			if (i == 3 * rate)
				count_from_now(&bench);
		}
		for (uint32_t i = SMALL; i < CHILDREN; i++)
			assert_near(bench.source[i].passed, 3 * floods[flood].level);
		if (floods[flood].level > 10 / 0.9)
			assert_lossless(&bench, 0, SMALL);
		assert_true(bench.fullest <= LIMIT);
		rig_end(&bench.rig);
	}
}

/* Labels of weight 6, 2 and 5, two addresses of the first, and two without a label, which are one child. */
static void load_tenants(struct bench *bench, const struct rig *before, const char *weight)
{
	struct weir_diag diag = {};
	char *text = NULL;

	begin(bench);
	assert_true(asprintf(&text,
			     "sets:\n  t:\n    labels: true\n    prefixes:\n"
			     "    - {prefix: 10.0.0.0/31, label: gold, weight: %s}\n"
			     "    - {prefix: 10.0.0.2/32, label: silver, weight: 2}\n"
			     "    - {prefix: 10.0.0.5/32, label: bronze, weight: 5}\n"
			     "resources: [{name: r, match: {protocol: udp}}]\n"
			     "rules: [{name: limit, resource: r, rate: 1k/s, fairBy: source@t}]\n",
			     weight) > 0);
	weir_ruleset_free(bench->rig.ruleset);
	bench->rig.ruleset = NULL;
	assert_int_equal(weir_ruleset_parse("rules.yaml", text, strlen(text), &bench->rig.ruleset, &diag), 0);
	free(text);
	bench->rig.reloads = before;
	rig_load_here(&bench->rig);
}

static void assert_shares(struct bench *bench, double gold_share)
{
	/* Bronze wants 300, and loses nothing: five levels are more. */
	const double level = 700.0 / (gold_share + 2 + 1);

	for (uint32_t i = 0; i < 6; i++)
		add_source(bench, i == 5 ? 300 : 1000);
	run_for(bench, 3 * SECOND);
	count_from_now(bench);
	run_for(bench, 4 * SECOND);
	assert_near(passed_of(bench, 0, 2), 4 * gold_share * level);
	assert_near(bench->source[2].passed, 4 * 2 * level);
	assert_near(passed_of(bench, 3, 5), 4 * level);
	assert_lossless(bench, 5, 6);
	assert_true(bench->fullest <= LIMIT);
}

CLAIM(labels_share_by_their_weights)
{
	struct bench bench;

	load_tenants(&bench, NULL, "6");
	assert_shares(&bench, 6);
	rig_end(&bench.rig);
}

/* The children stay in the new load, and their weights are its own. */
CLAIM(a_reload_may_change_a_weight)
{
	struct bench before, after;

	load_tenants(&before, NULL, "6");
	assert_shares(&before, 6);
	load_tenants(&after, &before.rig, "2");
	after.now_ns = before.now_ns;
	assert_shares(&after, 2);
	rig_end(&after.rig);
	rig_end(&before.rig);
}

/* An observing rule says what it would have dropped, and drops nothing. */
CLAIM(an_observing_rule_goes_by_the_same_level)
{
	struct bench bench;
	uint64_t before;

	begin(&bench);
	add_rule(&bench, 0, WEIR_WINDOW_LEAP, LIMIT)->observes = true;
	rig_load_here(&bench.rig);
	for (uint32_t i = 0; i < CHILDREN; i++)
		add_source(&bench, i < SMALL ? 10 : 1000);
	run_for(&bench, 3 * SECOND);
	before = rig_rule_counters(&bench.rig, 0).would_drop.packets;
	count_from_now(&bench);
	run_for(&bench, 4 * SECOND);
	for (uint32_t i = 0; i < CHILDREN; i++)
		assert_int_equal(bench.source[i].passed, bench.source[i].offered);
	assert_near(rig_rule_counters(&bench.rig, 0).would_drop.packets - before, 4 * (5450.0 - LIMIT));
	rig_end(&bench.rig);
}

/* Who reads a parent has looked at the clock before: counts of an interval are reused in the next but one. */
CLAIM(the_last_whole_interval_is_read_though_another_begins_meanwhile)
{
	struct weir_fair_parent *parent = calloc(1, sizeof(*parent));
	struct weir_rule_info rule = {.identity.interval_ns = 1000000000};
	struct weir_fair_use use;

	assert_non_null(parent);
	parent->contended = 12;
	parent->level = 5 << WEIR_FAIR_LEVEL_BITS;
	parent->counts[0] = (struct weir_fair_counts){.interval = 11, .children = 50};
	parent->counts[1] = (struct weir_fair_counts){.interval = 12, .children = 7};
	assert_true(weir_fair_look(&rule, parent, 11999000000, &use));
	assert_int_equal(use.children, 50);
	parent->counts[0] = (struct weir_fair_counts){.interval = 13, .children = 1};
	assert_true(weir_fair_look(&rule, parent, 11999000000, &use));
	assert_int_equal(use.children, 7);
	free(parent);
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
