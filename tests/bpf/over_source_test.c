// SPDX-License-Identifier: GPL-2.0-only
/*
 * A source that is over its limit twice in a row is remembered, and its next packets are blocked without a hash and a
 * row (WEIR_SHORTCUT_SOURCE, weir_is_over_source). What must not happen is that a packet of another flow is taken for
 * one of that source. Under the virtual clock, on one CPU: what is remembered is a CPU's own.
 */
#include <bpf/bpf.h>
#include <string.h>

#include "../lib/claims.h"
#include "../../bpf/scratch.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"

#define PORT 53
#define OTHER_PORT 123
#define LIMIT 3u
#define ENOUGH 10u	   /* packets: more than any limit here */
#define FLOWS_PER_CPU 512u /* as few as can be */

struct bench {
	struct rig rig;
	uint64_t now_ns;
};

static unsigned int passed_of(struct bench *bench, const char *source, uint16_t port, unsigned int count)
{
	const char *destination = strchr(source, ':') ? "2001:db8:1::1" : "198.51.100.1";
	struct packet_spec spec = packet_udp(source, 1024, destination, port, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(&spec, frame);
	unsigned int passed = 0;

	for (unsigned int i = 0; i < count; i++)
		passed += rig_passes(&bench->rig, bench->now_ns, frame, frame_bytes);
	return passed;
}

static struct weir_ruleset_rule *add_limit(struct bench *bench, uint16_t port, uint32_t key_fields)
{
	return rig_rule(&bench->rig, rig_resource(&bench->rig, port, key_fields), WEIR_WINDOW_LEAP, LIMIT, SECOND, 1);
}

static void begin(struct bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	bench->now_ns = RIG_START_NS;
	rig_begin(&bench->rig, FLOWS_PER_CPU);
}

static void load(struct bench *bench)
{
	rig_load(&bench->rig, true);
	assert_int_equal(bench->rig.image->rules[0].storage, WEIR_STORAGE_NARROW);
}

/* One limit on a resource that is keyed by source. */
static void open_bench(struct bench *bench)
{
	begin(bench);
	add_limit(bench, PORT, WEIR_KEY_SOURCE);
	load(bench);
}

/* A reload of `before` by another limit. Both still meet packets, as while it proceeds from interface to interface. */
static void open_bench_after(struct bench *bench, const struct bench *before, uint64_t limit)
{
	begin(bench);
	add_limit(bench, PORT, WEIR_KEY_SOURCE)->threshold_micro = limit * WEIR_MICRO;
	bench->rig.reloads = &before->rig;
	bench->rig.now_ns = bench->now_ns;
	load(bench);
}

static void close_bench(struct bench *bench)
{
	rig_end(&bench->rig);
}

/* What the program remembers on this CPU. */
static struct weir_over_source over_source(const struct bench *bench)
{
	_cleanup_(weir_freep) struct weir_cpu_state *states = calloc(weir_host_cpus(), sizeof(*states));
	__u32 zero = 0;

	assert_non_null(states);
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(bench->rig.object, WEIR_TABLE_TOTALS), &zero, states),
			 0);
	return ((const struct weir_scratch *)&states[sched_getcpu()])->over_source;
}

/* Else nothing here would be about it. */
CLAIM(a_source_that_is_over_its_limit_twice_in_a_row_is_remembered)
{
	_cleanup_(close_bench) struct bench bench = {};

	rig_require_shortcut(WEIR_SHORTCUT_SOURCE);
	open_bench(&bench);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, LIMIT), LIMIT);
	assert_int_equal(over_source(&bench).sure_jiffies, 0);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), 0);
	assert_int_not_equal(over_source(&bench).sure_jiffies, 0);
	assert_memory_equal(over_source(&bench).source, ((uint8_t[]){192, 0, 2, 1}), 4);
}

CLAIM(every_packet_is_evaluated_and_counted)
{
	const uint64_t dropped = 1000 - LIMIT, frame_bytes = 60;
	_cleanup_(close_bench) struct bench bench = {};

	begin(&bench);
	add_limit(&bench, PORT, WEIR_KEY_SOURCE);
	rig_resource(&bench.rig, PORT, 0); /* meets them, too */
	load(&bench);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, 1000), LIMIT);
	assert_int_equal(rig_verdicts(&bench.rig, WEIR_VERDICT_COUNT).packets, 1000);
	assert_int_equal(rig_verdicts(&bench.rig, WEIR_VERDICT_BLOCK).packets, dropped);
	assert_int_equal(rig_verdicts(&bench.rig, WEIR_VERDICT_BLOCK).bytes, dropped * frame_bytes);
	assert_int_equal(rig_rule_counters(&bench.rig, 0).blocked.packets, dropped);
	assert_int_equal(rig_rule_counters(&bench.rig, 0).blocked.bytes, dropped * frame_bytes);
	for (size_t resource = 0; resource < 2; resource++) {
		struct rig_resource_counters counters = rig_resource_counters(&bench.rig, resource);

		assert_int_equal(counters.passed.packets, LIMIT);
		assert_int_equal(counters.blocked.packets, dropped);
		assert_int_equal(counters.blocked.bytes, dropped * frame_bytes);
		assert_int_equal(counters.blocked_by_second, dropped);
	}
	/* A second has the slot of one before it, and counts from zero. */
	bench.now_ns += WEIR_SECONDS * SECOND;
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, LIMIT + 1), LIMIT);
	assert_int_equal(rig_resource_counters(&bench.rig, 0).blocked_by_second, 1);
}

/* They differ in one word, or in one bit of a family. */
CLAIM(another_source_has_a_row_of_its_own)
{
	static const char *const flows[] = {"192.0.2.1", "2001:db8::1"};
	static const char *const others[] = {"192.0.2.2",     "192.0.3.1",   "193.0.2.1",
					     "c000:201::",    "2001:db8::2", "2001:db8:0:1::1",
					     "2001:db8:1::1", "2001:db9::1", "2001:db8::1:0:1"};
	_cleanup_(close_bench) struct bench bench = {};

	open_bench(&bench);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		for (size_t flow = 0; flow < ARRAY_SIZE(flows); flow++) {
			assert_int_equal(passed_of(&bench, flows[flow], PORT, ENOUGH), i == 0 ? LIMIT : 0);
			/* One packet: it is not remembered, or the other would be. */
			assert_int_equal(passed_of(&bench, others[i], PORT, 1), 1);
		}
}

/* Of a table that is empty, and a memory that is. */
CLAIM(the_source_of_zeros_is_unknown_until_it_comes)
{
	static const char *const zeros[] = {"0.0.0.0", "::"};

	for (size_t first = 0; first < 2; first++) {
		_cleanup_(close_bench) struct bench bench = {};

		open_bench(&bench);
		assert_int_equal(passed_of(&bench, zeros[first], PORT, ENOUGH), LIMIT);
		assert_int_equal(passed_of(&bench, zeros[!first], PORT, ENOUGH), LIMIT);
		assert_int_equal(passed_of(&bench, zeros[first], PORT, ENOUGH), 0);
	}
}

CLAIM(a_subnet_has_one_row_where_the_key_is_one)
{
	struct weir_ruleset_resource *resource;
	_cleanup_(close_bench) struct bench bench = {};

	begin(&bench);
	add_limit(&bench, PORT, WEIR_KEY_SOURCE);
	resource = &bench.rig.ruleset->resources[0];
	resource->flow.source_bits[0] = 24;
	resource->flow.source_bits[1] = 56;
	load(&bench);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&bench, "192.0.2.200", PORT, ENOUGH), 0);
	assert_int_equal(passed_of(&bench, "192.0.3.200", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&bench, "2001:db8::1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&bench, "2001:db8:0:ff:1::2", PORT, ENOUGH), 0);
	assert_int_equal(passed_of(&bench, "2001:db8:0:100::1", PORT, ENOUGH), LIMIT);
}

CLAIM(a_source_has_a_row_under_each_rule)
{
	_cleanup_(close_bench) struct bench bench = {};

	begin(&bench);
	add_limit(&bench, PORT, WEIR_KEY_SOURCE);
	add_limit(&bench, OTHER_PORT, WEIR_KEY_SOURCE);
	load(&bench);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&bench, "192.0.2.1", OTHER_PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT + 1, ENOUGH), ENOUGH);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), 0);
}

/* The key has the destination, too: the source alone names no flow. */
CLAIM(under_a_longer_key_a_source_has_several_rows)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.2", PORT, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(&spec, frame);
	_cleanup_(close_bench) struct bench bench = {};

	begin(&bench);
	add_limit(&bench, PORT, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION);
	load(&bench);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), LIMIT);
	for (unsigned int i = 0; i < ENOUGH; i++)
		assert_int_equal(rig_passes(&bench.rig, bench.now_ns, frame, frame_bytes), i < LIMIT);
}

CLAIM(a_rule_that_observes_passes_and_counts)
{
	_cleanup_(close_bench) struct bench bench = {};

	begin(&bench);
	add_limit(&bench, PORT, WEIR_KEY_SOURCE)->observes = true;
	load(&bench);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, 1000), 1000);
	assert_int_equal(rig_rule_counters(&bench.rig, 0).would_drop.packets, 1000 - LIMIT);
}

/* Another rule's flow, or one that was new, took the row when the window was over; neither is remembered. */
CLAIM(a_row_that_another_flow_was_given_is_that_flow_s)
{
	for (int is_rule_s_own = 0; is_rule_s_own < 2; is_rule_s_own++) {
		uint16_t port = is_rule_s_own ? PORT : OTHER_PORT;
		_cleanup_(close_bench) struct bench bench = {};
		char source[32];

		begin(&bench);
		add_limit(&bench, PORT, WEIR_KEY_SOURCE);
		/* Keyed by two fields: its rows are never remembered. */
		add_limit(&bench, OTHER_PORT, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION);
		load(&bench);
		assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), LIMIT);
		bench.now_ns += 2 * SECOND;
		for (uint32_t host = 0; host < 4 * FLOWS_PER_CPU; host++) {
			snprintf(source, sizeof(source), "10.0.%u.%u", host / 256, host % 256);
			assert_int_equal(passed_of(&bench, source, port, 1), 1);
		}
		/* It has been given away: the test is one. */
		assert_true(rig_rule_counters(&bench.rig, !is_rule_s_own).evicted > 0);
		assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), LIMIT);
		/* Whoever came last has had one packet, whatever the first flow did. */
		assert_int_equal(passed_of(&bench, source, port, ENOUGH), LIMIT - 1);
	}
}

CLAIM(a_flow_has_its_limit_again_when_the_bucket_is_over)
{
	_cleanup_(close_bench) struct bench bench = {};

	open_bench(&bench);
	for (int bucket = 0; bucket < 40; bucket++) {
		assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), LIMIT);
		bench.now_ns += SECOND - 1;
		assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), 0);
		bench.now_ns += 1;
	}
}

/* A reload goes from interface to interface: for a while both loads meet packets, on one CPU, with one scratch. Each
 * has its own rules, and the totals are of both.
 */
CLAIM(loads_that_take_turns_know_nothing_of_each_other_s_packets)
{
	struct bench old, higher;

	open_bench(&old);
	open_bench_after(&higher, &old, 2 * LIMIT);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&higher, "192.0.2.1", PORT, LIMIT - 1), LIMIT - 1);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, ENOUGH), 0);
	assert_int_equal(passed_of(&higher, "192.0.2.1", PORT, ENOUGH), 1);
	assert_int_equal(rig_verdicts(&higher.rig, WEIR_VERDICT_COUNT).packets, 3 * ENOUGH + LIMIT - 1);
	assert_int_equal(rig_verdicts(&higher.rig, WEIR_VERDICT_PASS).packets, 2 * LIMIT);
	close_bench(&higher);
	close_bench(&old);
}

/* What one load has noted of a flow in a bucket is not true in the next one, though its scratch began again since. */
CLAIM(a_note_ends_with_its_bucket_though_another_load_came_between)
{
	struct bench old, other;

	open_bench(&old);
	open_bench_after(&other, &old, LIMIT);
	passed_of(&other, "192.0.2.9", PORT, 1);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, ENOUGH), LIMIT);
	passed_of(&other, "192.0.2.9", PORT, 1);
	old.now_ns += SECOND;
	assert_int_equal(passed_of(&old, "192.0.2.2", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, ENOUGH), LIMIT);
	close_bench(&other);
	close_bench(&old);
}

/* ---- large rows ---- */

#define FRAME_BYTES 60u
#define SHORT (WEIR_NARROW_BUCKET_NS_MIN / 2)

/* LIMIT frames in a second of bytes, or in a bucket that is too short for narrow rows. */
static void open_large(struct bench *bench, enum weir_storage storage, uint64_t more_bytes)
{
	struct weir_ruleset_rule *limit;

	begin(bench);
	limit = add_limit(bench, PORT, WEIR_KEY_SOURCE);
	if (storage == WEIR_STORAGE_MEDIUM) {
		limit->counts_bytes = true;
		limit->threshold_micro = (LIMIT * FRAME_BYTES + more_bytes) * WEIR_MICRO;
	} else {
		limit->interval_ns = SHORT;
	}
	rig_load(&bench->rig, true);
	assert_int_equal(bench->rig.image->rules[0].storage, storage);
}

CLAIM(a_source_with_a_large_row_is_remembered_until_its_bucket_ends)
{
	static const enum weir_storage storages[] = {WEIR_STORAGE_MEDIUM, WEIR_STORAGE_WIDE};

	rig_require_shortcut(WEIR_SHORTCUT_SOURCE);
	for (size_t i = 0; i < ARRAY_SIZE(storages); i++) {
		const uint64_t bucket_ns = storages[i] == WEIR_STORAGE_MEDIUM ? SECOND : SHORT;
		_cleanup_(close_bench) struct bench bench = {};

		open_large(&bench, storages[i], 0);
		bench.now_ns = (bench.now_ns / bucket_ns + 1) * bucket_ns;
		for (int bucket = 0; bucket < 3; bucket++) {
			assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), LIMIT);
			assert_int_not_equal(over_source(&bench).sure_jiffies, 0);
			bench.now_ns += bucket_ns - 1;
			assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), 0);
			assert_int_equal(passed_of(&bench, "192.0.2.2", PORT, ENOUGH), LIMIT);
			assert_int_equal(passed_of(&bench, "192.0.2.1", OTHER_PORT, ENOUGH), ENOUGH);
			bench.now_ns += 1;
		}
		assert_int_equal(rig_rule_counters(&bench.rig, 0).blocked.packets, 3 * (3 * ENOUGH - 2 * LIMIT));
	}
}

/* What does not fit says nothing of what is smaller. */
CLAIM(a_source_that_has_bytes_left_is_not_remembered)
{
	struct packet_spec large = packet_udp("192.0.2.1", 1024, "198.51.100.1", PORT, 70);
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(&large, frame);
	_cleanup_(close_bench) struct bench bench = {};

	open_large(&bench, WEIR_STORAGE_MEDIUM, FRAME_BYTES);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, LIMIT), LIMIT);
	for (unsigned int i = 0; i < ENOUGH; i++)
		assert_false(rig_passes(&bench.rig, bench.now_ns, frame, frame_bytes));
	assert_int_equal(over_source(&bench).sure_jiffies, 0);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, ENOUGH), 1);
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
