// SPDX-License-Identifier: GPL-2.0-only
/*
 * More flows than a table has rows: a row that is pushed out while it counts leaves a ghost, by which its flow is
 * evaluated until what it used has left the window (bpf/window/row_ghosts.h). In small tables, mostly under the virtual
 * clock and on one CPU; flows are hosts that send UDP.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/harness.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "../lib/shortcuts.h"
#include "base/util.h"

#define PORT 53
#define SOURCE_OFFSET (14 + 12) /* of the IPv4 source address in the frame */
#define SAMPLES 10
#define ROWS 1024u
#define STRANGERS 1000000u /* hosts from here on push others out */

static const enum weir_storage storages[] = {WEIR_STORAGE_NARROW, WEIR_STORAGE_MEDIUM, WEIR_STORAGE_WIDE};
static const enum weir_window_kind windows[] = {WEIR_WINDOW_LEAP, WEIR_WINDOW_STRICT, WEIR_WINDOW_SMOOTH};

struct crowd {
	struct rig rig;
	uint64_t now_ns;
	uint64_t interval_ns;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes;
};

/* One resource keyed by source, with this limit in packets. Unit and interval say what kind of rows keep it. */
static void crowd_open_of(struct crowd *crowd, uint32_t rows, enum weir_storage storage, enum weir_window_kind window,
			  uint64_t limit, bool aggregates)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 0);
	const bool counts_bytes = storage == WEIR_STORAGE_MEDIUM;
	struct weir_ruleset_rule *rule;

	memset(crowd, 0, sizeof(*crowd));
	crowd->now_ns = RIG_START_NS;
	crowd->interval_ns = storage == WEIR_STORAGE_WIDE ? 100 * MS : SECOND;
	crowd->frame_bytes = packet_build(&spec, crowd->frame);
	rig_begin(&crowd->rig, rows);
	rule = rig_rule(&crowd->rig, rig_resource(&crowd->rig, PORT, WEIR_KEY_SOURCE), window,
			limit * (counts_bytes ? crowd->frame_bytes : 1), crowd->interval_ns, SAMPLES);
	rule->counts_bytes = counts_bytes;
	rule->aggregates = aggregates;
	rig_load(&crowd->rig, true);
	assert_int_equal(crowd->rig.image->rules[0].storage, storage);
}

static void crowd_open(struct crowd *crowd, enum weir_storage storage, enum weir_window_kind window, uint64_t limit)
{
	crowd_open_of(crowd, ROWS, storage, window, limit, false);
}

static bool host_passes(struct crowd *crowd, uint32_t host)
{
	uint32_t address = htonl(0x0a000000 + host);

	memcpy(crowd->frame + SOURCE_OFFSET, &address, sizeof(address));
	return rig_passes(&crowd->rig, crowd->now_ns, crowd->frame, crowd->frame_bytes);
}

static uint32_t host_passes_of(struct crowd *crowd, uint32_t host, uint32_t packets)
{
	uint32_t passed = 0;

	while (packets--)
		passed += host_passes(crowd, host);
	return passed;
}

/* One packet of each of so many new hosts: as many as rows push out all that count one or two packets. */
static void push_out(struct crowd *crowd, uint32_t hosts)
{
	static uint32_t stranger = STRANGERS;

	while (hosts--)
		host_passes_of(crowd, stranger++, 3);
}

static uint64_t evicted(const struct crowd *crowd)
{
	return rig_rule_counters(&crowd->rig, 0).evicted;
}

/* All heads together. */
static struct weir_row_ghost_set head_of(const struct crowd *crowd)
{
	const uint32_t sets = crowd->rig.image->config.sizes[WEIR_TABLE_ROW_GHOSTS];
	const int fd = weir_object_map_fd(crowd->rig.object, WEIR_TABLE_ROW_GHOSTS);
	struct weir_row_ghost_set sum = {}, head;

	for (uint32_t key = sets; key < sets + WEIR_ROW_GHOST_HEADS; key++) {
		assert_int_equal(bpf_map_lookup_elem(fd, &key, &head), 0);
		sum.displaced += head.displaced;
		sum.joined += head.joined;
	}
	return sum;
}

/* ---- one flow that is pushed out ---- */

/* In each format of rows and under each kind of window: five packets a host. */
static void in_every_crowd(void (*claim)(struct crowd *crowd))
{
	for (size_t i = 0; i < ARRAY_SIZE(storages); i++)
		for (size_t window = 0; window < ARRAY_SIZE(windows); window++) {
			struct crowd crowd;

			crowd_open(&crowd, storages[i], windows[window], 5);
			claim(&crowd);
			rig_end(&crowd.rig);
		}
}

/* Two of five are used; hosts that use three push it out. It has three left, and after its window all five. */
static void goes_on_with_what_it_used(struct crowd *crowd)
{
	assert_int_equal(host_passes_of(crowd, 1, 2), 2);
	push_out(crowd, 2 * ROWS);
	assert_true(evicted(crowd) > ROWS / 2);
	assert_int_equal(host_passes_of(crowd, 1, 9), 3);
	push_out(crowd, ROWS / 2);
	crowd->now_ns += crowd->interval_ns - 1;
	assert_int_equal(host_passes_of(crowd, 1, 9), 0);
	crowd->now_ns += crowd->interval_ns / SAMPLES + crowd->interval_ns / SAMPLES;
	assert_int_equal(host_passes_of(crowd, 1, 9), 5);
}

CASE(an_evicted_flow_continues_with_what_it_used, in_every_crowd(goes_on_with_what_it_used));

/* It is pushed out three times: the second time while the first is in its window, the third time when of both only the
 * second may be.
 */
static void goes_on_again_and_again(struct crowd *crowd)
{
	assert_int_equal(host_passes_of(crowd, 1, 2), 2);
	push_out(crowd, 2 * ROWS);
	crowd->now_ns += 5 * crowd->interval_ns / SAMPLES;
	assert_int_equal(host_passes_of(crowd, 1, 2), 2);
	push_out(crowd, 2 * ROWS);
	crowd->now_ns += 8 * crowd->interval_ns / SAMPLES;
	assert_int_equal(host_passes_of(crowd, 1, 1), 1);
	push_out(crowd, 2 * ROWS);
	/* Two in this window and the one just now; no more than it has used of the first two. */
	assert_in_range(host_passes_of(crowd, 1, 9), 0, 2);
}

CASE(a_flow_that_was_pushed_out_again_and_again_goes_on_with_what_it_used, in_every_crowd(goes_on_again_and_again));

/* Pushed out three times within a window: the last word says what all three rows counted. */
static void has_used_all_of_it(struct crowd *crowd)
{
	for (uint32_t packets = 2; packets; packets--) {
		assert_int_equal(host_passes_of(crowd, 1, packets), packets);
		push_out(crowd, 3 * ROWS / 2);
		crowd->now_ns += 2 * crowd->interval_ns / SAMPLES;
	}
	assert_int_equal(host_passes_of(crowd, 1, 2), 2);
	push_out(crowd, 3 * ROWS / 2);
	assert_int_equal(host_passes_of(crowd, 1, 9), 0);
}

CASE(a_flow_that_was_pushed_out_three_times_in_a_window_has_used_all_of_it, in_every_crowd(has_used_all_of_it));

/* ---- a crowd ---- */

/* Four times as many hosts as rows, each at ten times its limit, in turn, for six intervals. One of a hundred is at
 * half its limit instead.
 */
#define CROWD (4 * ROWS)
#define CALM_ONE_OF 100
#define LIMIT 4u
#define INTERVALS 6u

static void crowd_round(struct crowd *crowd, uint32_t round, uint64_t *passed, uint64_t *calm_sent,
			uint64_t *calm_passed)
{
	for (uint32_t host = 0; host < CROWD; host++) {
		const bool is_calm = host % CALM_ONE_OF == 0;

		if (is_calm && round % 20 != host / CALM_ONE_OF % 20)
			continue;
		if (is_calm) {
			(*calm_sent)++;
			*calm_passed += host_passes(crowd, host);
		} else {
			*passed += host_passes(crowd, host);
		}
	}
}

static void crowd_holds(enum weir_storage storage, enum weir_window_kind window, bool aggregates)
{
	uint64_t passed = 0, calm_sent = 0, calm_passed = 0, allowed;
	struct crowd crowd;

	crowd_open_of(&crowd, ROWS, storage, window, LIMIT, aggregates);
	for (uint32_t round = 0; round < 10 * LIMIT * INTERVALS; round++) {
		crowd_round(&crowd, round, &passed, &calm_sent, &calm_passed);
		crowd.now_ns += crowd.interval_ns / (10 * LIMIT);
	}
	allowed = (uint64_t)(CROWD - CROWD / CALM_ONE_OF - 1) * LIMIT * INTERVALS;
	print_message(
		"rows %d, window %d%s: %.3f of what is allowed passed, %.3f of the calm; %llu evicted, %llu lost, "
		"%llu counted together\n",
		storage, window, aggregates ? ", aggregate" : "", (double)passed / allowed,
		(double)calm_passed / calm_sent, (unsigned long long)evicted(&crowd),
		(unsigned long long)head_of(&crowd).displaced, (unsigned long long)head_of(&crowd).joined);
	assert_true(passed <= allowed * 11 / 10);
	assert_true(calm_passed >= calm_sent * 99 / 100);
	rig_end(&crowd.rig);
}

CLAIM(a_crowd_of_four_times_the_rows_keeps_its_limits)
{
	for (size_t i = 0; i < ARRAY_SIZE(storages); i++)
		for (size_t window = 0; window < ARRAY_SIZE(windows); window++)
			crowd_holds(storages[i], windows[window], false);
}

/* There are ghosts for as many: only flows of a set that filled up go by the overflow window. */
CLAIM(aggregate_costs_a_crowd_that_is_remembered_little)
{
	for (size_t window = 0; window < ARRAY_SIZE(windows); window++)
		crowd_holds(WEIR_STORAGE_NARROW, windows[window], true);
}

/* ---- more than ghosts have room for ---- */

CLAIM(what_is_lost_is_counted)
{
	struct crowd crowd;

	crowd_open(&crowd, WEIR_STORAGE_NARROW, WEIR_WINDOW_LEAP, 5);
	push_out(&crowd, ROWS);
	assert_int_equal(head_of(&crowd).displaced, 0);
	push_out(&crowd, 40 * ROWS);
	/* What was pushed out is in the table, or lost; but for the one or other that has another flow's name. */
	assert_true(head_of(&crowd).displaced + 4 >= evicted(&crowd) - WEIR_ROW_GHOSTS_PER_ROW * ROWS);
	assert_true(head_of(&crowd).displaced <= evicted(&crowd));
	rig_end(&crowd.rig);
}

/* Who has used more stays, in rows and in ghosts: a slow limit under a flood of sources that come once. */
CLAIM(a_flood_of_new_sources_does_not_open_a_slow_limit)
{
	uint32_t passed = 0, stranger = STRANGERS;
	struct crowd crowd;

	crowd_open(&crowd, WEIR_STORAGE_NARROW, WEIR_WINDOW_LEAP, 6);
	for (int packet = 0; packet < 20; packet++) {
		passed += host_passes(&crowd, 1);
		for (uint32_t i = 0; i < 2 * ROWS; i++)
			host_passes(&crowd, stranger++);
		crowd.now_ns += crowd.interval_ns / 25;
	}
	assert_int_equal(passed, 6);
	rig_end(&crowd.rig);
}

/* ---- whenFull: aggregate ---- */

/*
 * Twenty times as many hosts as rows send a packet each, ten times in one window: most have neither row nor
 * ghost when they come again. None may have more than its limit, and after the window all of it is there again.
 */
#define MANY (20 * ROWS)

static void no_host_has_more_than_its_limit(enum weir_storage storage, enum weir_window_kind window)
{
	static uint8_t passed[MANY];
	uint64_t in_all = 0;
	struct crowd crowd;

	memset(passed, 0, sizeof(passed));
	crowd_open_of(&crowd, ROWS, storage, window, 5, true);
	for (int round = 0; round < 10; round++) {
		for (uint32_t host = 0; host < MANY; host++)
			passed[host] += host_passes(&crowd, host);
		crowd.now_ns += crowd.interval_ns / SAMPLES - 1;
	}
	for (uint32_t host = 0; host < MANY; host++) {
		assert_true(passed[host] <= 5);
		in_all += passed[host];
	}
	print_message("rows %d, window %d: %.3f of what is allowed passed; %llu counted together\n", storage, window,
		      (double)in_all / (5 * MANY), (unsigned long long)head_of(&crowd).joined);
	assert_true(head_of(&crowd).joined > ROWS / 2);
	assert_int_equal(head_of(&crowd).displaced, 0);
	crowd.now_ns += 2 * crowd.interval_ns + 2 * (crowd.interval_ns / SAMPLES);
	for (uint32_t host = 0; host < ROWS / 2; host++)
		assert_int_equal(host_passes_of(&crowd, host, 9), 5);
	rig_end(&crowd.rig);
}

CLAIM(with_overflow_windows_none_has_more_than_its_limit)
{
	for (size_t i = 0; i < ARRAY_SIZE(storages); i++)
		for (size_t window = 0; window < ARRAY_SIZE(windows); window++)
			no_host_has_more_than_its_limit(storages[i], windows[window]);
}

/* About as many hosts as there are rows and ghosts use three of five: of a few that joins an overflow window, which has
 * no more. When they come again they have two left, by a row that begins with three.
 */
CLAIM(a_flow_without_row_and_ghost_uses_the_overflow_window)
{
	static uint8_t passed[5 * ROWS];

	for (size_t window = 0; window < ARRAY_SIZE(windows); window++) {
		struct crowd crowd;

		crowd_open_of(&crowd, ROWS, WEIR_STORAGE_NARROW, windows[window], 5, true);
		for (uint32_t host = 0; host < ARRAY_SIZE(passed); host++)
			passed[host] = host_passes_of(&crowd, host, 3);
		assert_true(head_of(&crowd).joined > 0);
		for (uint32_t host = 0; host < ARRAY_SIZE(passed); host++)
			assert_true(passed[host] + host_passes_of(&crowd, host, 9) <= 5);
		rig_end(&crowd.rig);
	}
}

/* 200 times as many hosts as rows, each at ten times its limit. Returns what passed, as a part of what is allowed. */
#define FEW_ROWS 512u
#define HORDE (200 * FEW_ROWS)
#define HORDE_LIMIT 2u
#define HORDE_INTERVALS 2u

static double part_of_a_horde(bool aggregates)
{
	uint64_t passed = 0;
	struct crowd crowd;

	crowd_open_of(&crowd, FEW_ROWS, WEIR_STORAGE_NARROW, WEIR_WINDOW_LEAP, HORDE_LIMIT, aggregates);
	for (uint32_t round = 0; round < 10 * HORDE_LIMIT * HORDE_INTERVALS; round++) {
		for (uint32_t host = 0; host < HORDE; host++)
			passed += host_passes(&crowd, host);
		crowd.now_ns += crowd.interval_ns / (10 * HORDE_LIMIT);
	}
	print_message("%s: %.3f of what is allowed passed; %llu lost, %llu counted together\n",
		      aggregates ? "aggregate" : "evict",
		      (double)passed / ((uint64_t)HORDE * HORDE_LIMIT * HORDE_INTERVALS),
		      (unsigned long long)head_of(&crowd).displaced, (unsigned long long)head_of(&crowd).joined);
	rig_end(&crowd.rig);
	return (double)passed / ((uint64_t)HORDE * HORDE_LIMIT * HORDE_INTERVALS);
}

CLAIM(aggregate_holds_where_evict_cannot)
{
	assert_true(part_of_a_horde(false) > 1.5);
	assert_true(part_of_a_horde(true) <= 1.5);
}

/* A rule that evicts does not go by the overflow window of another, though their windows have the same buckets.
 */
CLAIM(overflow_windows_are_of_the_rules_that_say_so)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT + 1, 0);
	struct crowd crowd = {.now_ns = RIG_START_NS, .interval_ns = SECOND};
	uint32_t stranger = STRANGERS;

	rig_begin(&crowd.rig, FEW_ROWS);
	rig_rule(&crowd.rig, rig_resource(&crowd.rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 5, SECOND, SAMPLES);
	rig_rule(&crowd.rig, rig_resource(&crowd.rig, PORT + 1, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 5, SECOND, SAMPLES)
		->aggregates = true;
	rig_load(&crowd.rig, true);
	crowd.frame_bytes = packet_build(&spec, crowd.frame);
	for (uint32_t i = 0; i < 60 * FEW_ROWS; i++)
		host_passes_of(&crowd, stranger++, 3);
	assert_true(head_of(&crowd).joined > 0);
	for (uint32_t host = 0; host < 64; host++)
		assert_int_equal(host_passes_of(&crowd, host, 9), 0);
	spec.destination_port = PORT;
	crowd.frame_bytes = packet_build(&spec, crowd.frame);
	for (uint32_t host = 0; host < 64; host++)
		assert_int_equal(host_passes_of(&crowd, host, 9), 5);
	rig_end(&crowd.rig);
}

/* ---- two CPUs ---- */

/*
 * Twice as many hosts as rows, and two CPUs that send of all of them at once on the real clock: rows are pushed out all
 * the while, on both. None may ever have more than its limit in the hour that a window lasts, whoever pushed it out
 * and wherever it came back. (Nearly all of it, too: what one CPU has leased of a flow it may leave behind.)
 */
#define CPUS 2
#define HOSTS_MAX (32 * ROWS)
#define HOSTS (2 * ROWS)
#define HOST_LIMIT 12u
#define PACKETS_A_HOST 40u

struct sender {
	const struct rig *rig;
	atomic_uint *arrived;
	int cpu;
	uint32_t seed;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes;
	uint32_t hosts; /* a power of two */
	uint8_t passed[HOSTS_MAX];
	int err;
	pthread_t thread;
};

static void *send_all(void *data)
{
	struct sender *sender = data;

	rig_pin(sender->cpu);
	rig_line_up(sender->arrived, CPUS, 0);
	for (uint32_t i = 0; i < PACKETS_A_HOST * sender->hosts && !sender->err; i++) {
		const uint32_t host = (sender->seed = sender->seed * 1664525 + 1013904223) >> 8 & (sender->hosts - 1);
		const uint32_t address = htonl(0x0a000000 + host);
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = sender->frame, .data_size_in = sender->frame_bytes);

		memcpy(sender->frame + SOURCE_OFFSET, &address, sizeof(address));
		sender->err = bpf_prog_test_run_opts(weir_object_program_fd(sender->rig->object), &options);
		sender->passed[host] += options.retval == XDP_PASS;
	}
	return NULL;
}

static void two_cpus_hold(enum weir_window_kind window, bool counts_bytes, uint32_t hosts, bool aggregates)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 18);
	static struct sender senders[CPUS];
	struct weir_rule_counters counters;
	struct weir_ruleset_rule *rule;
	struct weir_row_ghost_set head;
	atomic_uint arrived = 0;
	struct crowd crowd = {};
	uint64_t passed = 0;
	int cpu[CPUS];

	rig_require(CPUS);
	rig_cpus(cpu, CPUS);
	crowd.frame_bytes = packet_build(&spec, crowd.frame);
	rig_begin(&crowd.rig, ROWS);
	rule = rig_rule(&crowd.rig, rig_resource(&crowd.rig, PORT, WEIR_KEY_SOURCE), window,
			HOST_LIMIT * (counts_bytes ? crowd.frame_bytes : 1), 3600 * SECOND, SAMPLES);
	rule->counts_bytes = counts_bytes;
	rule->aggregates = aggregates;
	rig_load(&crowd.rig, false);
	rig_attach(&crowd.rig);
	for (int i = 0; i < CPUS; i++) {
		senders[i] = (struct sender){
			.rig = &crowd.rig, .arrived = &arrived, .cpu = cpu[i], .seed = i + 1, .hosts = hosts};
		memcpy(senders[i].frame, crowd.frame, crowd.frame_bytes);
		senders[i].frame_bytes = crowd.frame_bytes;
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++)
		pthread_join(senders[i].thread, NULL);
	for (uint32_t host = 0; host < hosts; host++) {
		const uint32_t of_host = senders[0].passed[host] + senders[1].passed[host];

		assert_true(of_host <= HOST_LIMIT);
		passed += of_host;
	}
	counters = rig_rule_counters(&crowd.rig, 0);
	head = head_of(&crowd);
	print_message("window %d, %s: %llu of %u passed, %llu evicted, %llu lost, %llu counted together\n", window,
		      counts_bytes ? "bytes" : "packets", (unsigned long long)passed, hosts * HOST_LIMIT,
		      (unsigned long long)counters.evicted, (unsigned long long)head.displaced,
		      (unsigned long long)head.joined);
	for (int i = 0; i < CPUS; i++)
		assert_int_equal(senders[i].err, 0);
	assert_true(counters.evicted > HOSTS);
	assert_int_equal(head.displaced, 0);
	if (aggregates)
		assert_true(head.joined > ROWS / 2);
	else
		assert_true(passed >= hosts * HOST_LIMIT * 9ull / 10);
	rig_end(&crowd.rig);
}

static int detach_and_stay(void **state)
{
	rig_detach(state);
	return rig_stay_group(state);
}

CLAIM_WITHIN(two_cpus_that_push_out_each_others_flows_stay_exact, rig_roam_group, detach_and_stay)
{
	for (size_t window = 0; window < ARRAY_SIZE(windows); window++) {
		two_cpus_hold(windows[window], false, HOSTS, false);
		two_cpus_hold(windows[window], true, HOSTS, false);
	}
}

/* Far more hosts than rows and ghosts: what a CPU has counted of a host is lost while the other one's row remains. */
CLAIM_WITHIN(two_cpus_share_overflow_windows_and_stay_exact, rig_roam_group, detach_and_stay)
{
	for (size_t window = 0; window < ARRAY_SIZE(windows); window++) {
		two_cpus_hold(windows[window], false, 8 * ROWS, true);
		two_cpus_hold(windows[window], true, HOSTS_MAX, true);
	}
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
