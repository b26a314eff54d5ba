// SPDX-License-Identifier: GPL-2.0-only
/*
 * More flows than a table has rows: a row that is pushed out while it counts leaves a remnant, by which its flow is
 * judged until what it used has left the window (bpf/remnants.h). In small tables, mostly under the virtual clock and
 * on one CPU; flows are hosts that send UDP.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/lab.h"
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
static void crowd_open(struct crowd *crowd, enum weir_storage storage, enum weir_window_kind window, uint64_t limit)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 0);
	const bool counts_bytes = storage == WEIR_STORAGE_MEDIUM;
	struct weir_ruleset_rule *rule;

	memset(crowd, 0, sizeof(*crowd));
	crowd->now_ns = RIG_START_NS;
	crowd->interval_ns = storage == WEIR_STORAGE_WIDE ? 100 * MS : SECOND;
	crowd->frame_bytes = packet_build(&spec, crowd->frame);
	rig_begin(&crowd->rig, ROWS);
	rule = rig_rule(&crowd->rig, rig_resource(&crowd->rig, PORT, WEIR_KEY_SOURCE), window,
			limit * (counts_bytes ? crowd->frame_bytes : 1), crowd->interval_ns, SAMPLES);
	rule->counts_bytes = counts_bytes;
	rig_load(&crowd->rig, true);
	assert_int_equal(crowd->rig.image->rules[0].storage, storage);
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

static struct weir_remnant_set head_of(const struct crowd *crowd)
{
	const uint32_t key = crowd->rig.image->config.remnant_sets;
	struct weir_remnant_set head;

	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(crowd->rig.object, WEIR_MAP_REMNANTS), &key, &head), 0);
	return head;
}

/* ---- one flow that is pushed out ---- */

/* Two of five are used; hosts that use three push it out. It has three left, and after its window all five. */
static void a_flow_that_was_pushed_out_goes_on_with_what_it_used(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(storages); i++)
		for (size_t window = 0; window < ARRAY_SIZE(windows); window++) {
			struct crowd crowd;

			crowd_open(&crowd, storages[i], windows[window], 5);
			assert_int_equal(host_passes_of(&crowd, 1, 2), 2);
			push_out(&crowd, 2 * ROWS);
			assert_true(evicted(&crowd) > ROWS / 2);
			assert_int_equal(host_passes_of(&crowd, 1, 9), 3);
			push_out(&crowd, ROWS / 2);
			crowd.now_ns += crowd.interval_ns - 1;
			assert_int_equal(host_passes_of(&crowd, 1, 9), 0);
			crowd.now_ns += crowd.interval_ns / SAMPLES + crowd.interval_ns / SAMPLES;
			assert_int_equal(host_passes_of(&crowd, 1, 9), 5);
			rig_end(&crowd.rig);
		}
}

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

static void crowd_holds(enum weir_storage storage, enum weir_window_kind window)
{
	uint64_t passed = 0, calm_sent = 0, calm_passed = 0, allowed;
	struct crowd crowd;

	crowd_open(&crowd, storage, window, LIMIT);
	for (uint32_t round = 0; round < 10 * LIMIT * INTERVALS; round++) {
		crowd_round(&crowd, round, &passed, &calm_sent, &calm_passed);
		crowd.now_ns += crowd.interval_ns / (10 * LIMIT);
	}
	allowed = (uint64_t)(CROWD - CROWD / CALM_ONE_OF - 1) * LIMIT * INTERVALS;
	print_message("rows %d, window %d: %.3f of what is allowed passed, %.3f of the calm; %llu evicted, %llu lost\n",
		      storage, window, (double)passed / allowed, (double)calm_passed / calm_sent,
		      (unsigned long long)evicted(&crowd), (unsigned long long)head_of(&crowd).displaced);
	assert_true(passed <= allowed * 11 / 10);
	/* A smooth window makes room unit by unit, so that flows at their limits are seldom known to be full. */
	assert_true(calm_passed >= calm_sent * (window == WEIR_WINDOW_SMOOTH ? 96 : 99) / 100);
	rig_end(&crowd.rig);
}

static void a_crowd_of_four_times_the_rows_keeps_its_limits(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(storages); i++)
		for (size_t window = 0; window < ARRAY_SIZE(windows); window++)
			crowd_holds(storages[i], windows[window]);
}

/* ---- more than remnants have room for ---- */

static void what_is_lost_is_counted(void **state)
{
	struct crowd crowd;

	crowd_open(&crowd, WEIR_STORAGE_NARROW, WEIR_WINDOW_LEAP, 5);
	push_out(&crowd, ROWS);
	assert_int_equal(head_of(&crowd).displaced, 0);
	push_out(&crowd, 40 * ROWS);
	/* What was pushed out is in the table, or lost. */
	assert_true(head_of(&crowd).displaced >= evicted(&crowd) - WEIR_REMNANTS_PER_ROW * ROWS);
	assert_true(head_of(&crowd).displaced <= evicted(&crowd));
	rig_end(&crowd.rig);
}

/* Who has used more stays, in rows and in remnants: a slow limit under a flood of sources that come once. */
static void a_flood_of_new_sources_does_not_open_a_slow_limit(void **state)
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

/* ---- two CPUs ---- */

/*
 * Twice as many hosts as rows, and two CPUs that send of all of them at once on the real clock: rows are pushed out all
 * the while, on both. None may ever have more than its limit in the hour that a window lasts, whoever pushed it out
 * and wherever it came back. (Nearly all of it, too: what one CPU has leased of a flow it may leave behind.)
 */
#define CPUS 2
#define HOSTS (2 * ROWS)
#define HOST_LIMIT 12u
#define PACKETS (40u * HOSTS)

struct sender {
	const struct rig *rig;
	atomic_uint *arrived;
	int cpu;
	uint32_t seed;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes;
	uint32_t passed[HOSTS];
	int err;
	pthread_t thread;
};

static void *send_all(void *data)
{
	struct sender *sender = data;

	rig_pin(sender->cpu);
	rig_line_up(sender->arrived, CPUS, 0);
	for (uint32_t i = 0; i < PACKETS && !sender->err; i++) {
		const uint32_t host = (sender->seed = sender->seed * 1664525 + 1013904223) >> 8 & (HOSTS - 1);
		const uint32_t address = htonl(0x0a000000 + host);
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = sender->frame, .data_size_in = sender->frame_bytes);

		memcpy(sender->frame + SOURCE_OFFSET, &address, sizeof(address));
		sender->err = bpf_prog_test_run_opts(weir_object_program_fd(sender->rig->object), &options);
		sender->passed[host] += options.retval == XDP_PASS;
	}
	return NULL;
}

static void two_cpus_hold(enum weir_window_kind window, bool counts_bytes)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 18);
	static struct sender senders[CPUS];
	struct weir_rule_counters counters;
	struct weir_ruleset_rule *rule;
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
	rig_load(&crowd.rig, false);
	rig_attach(&crowd.rig);
	for (int i = 0; i < CPUS; i++) {
		senders[i] = (struct sender){.rig = &crowd.rig, .arrived = &arrived, .cpu = cpu[i], .seed = i + 1};
		memcpy(senders[i].frame, crowd.frame, crowd.frame_bytes);
		senders[i].frame_bytes = crowd.frame_bytes;
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++)
		pthread_join(senders[i].thread, NULL);
	for (uint32_t host = 0; host < HOSTS; host++) {
		const uint32_t of_host = senders[0].passed[host] + senders[1].passed[host];

		assert_true(of_host <= HOST_LIMIT);
		passed += of_host;
	}
	counters = rig_rule_counters(&crowd.rig, 0);
	print_message("window %d, %s: %llu of %u passed, %llu evicted, %llu lost\n", window,
		      counts_bytes ? "bytes" : "packets", (unsigned long long)passed, HOSTS * HOST_LIMIT,
		      (unsigned long long)counters.evicted, (unsigned long long)head_of(&crowd).displaced);
	for (int i = 0; i < CPUS; i++)
		assert_int_equal(senders[i].err, 0);
	assert_true(counters.evicted > HOSTS);
	assert_int_equal(head_of(&crowd).displaced, 0);
	assert_true(passed >= HOSTS * HOST_LIMIT * 9ull / 10);
	rig_end(&crowd.rig);
}

static void two_cpus_that_push_out_each_others_flows_stay_exact(void **state)
{
	for (size_t window = 0; window < ARRAY_SIZE(windows); window++) {
		two_cpus_hold(windows[window], false);
		two_cpus_hold(windows[window], true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flow_that_was_pushed_out_goes_on_with_what_it_used),
		cmocka_unit_test(a_crowd_of_four_times_the_rows_keeps_its_limits),
		cmocka_unit_test(what_is_lost_is_counted),
		cmocka_unit_test(a_flood_of_new_sources_does_not_open_a_slow_limit),
	};
	const struct CMUnitTest contests[] = {
		cmocka_unit_test_teardown(two_cpus_that_push_out_each_others_flows_stay_exact, rig_detach),
	};
	int failed = cmocka_run_group_tests(contests, NULL, NULL);

	return failed + cmocka_run_group_tests(tests, lab_stay_on_one_cpu, NULL);
}
