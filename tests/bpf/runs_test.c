// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs of packets that count in the same counters (bpf/observe/count.h): with them, counters are exact at every moment,
 * whoever reads, reloads or counts in them beside. Under the virtual clock, but for what two threads do.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../../bpf/scratch.h"
#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"
#include "program/runs.h"

#define FRAME_BYTES 60
#define LONG 100 /* more packets than a run waits for */

/* Places of rules and resources, and ports from FIRST_PORT on. */
enum { BLOCKED, ADMITTED, ALSO_BLOCKED, OBSERVED, TWO_RESOURCES, SECOND_RESOURCE, UNMATCHED = SECOND_RESOURCE, KINDS };
#define FIRST_PORT 53

static void begin(struct rig *rig)
{
	*rig = (struct rig){};
	rig_begin(rig, 512);
	for (int kind = 0; kind <= TWO_RESOURCES; kind++)
		rig_rule(rig, rig_resource(rig, FIRST_PORT + kind, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP,
			 kind == ADMITTED || kind == TWO_RESOURCES ? 100000000 : 0, SECOND, 10)
			->observes = kind == OBSERVED;
	rig_resource(rig, FIRST_PORT + TWO_RESOURCES, 0);
}

static size_t build(int kind, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", FIRST_PORT + kind, 0);

	spec.padding_bytes = FRAME_BYTES + kind;
	packet_build(&spec, frame);
	return FRAME_BYTES + kind;
}

static void send_some(struct rig *rig, int kind, uint64_t now_ns, int count)
{
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build(kind, frame);

	for (int i = 0; i < count; i++)
		assert_int_equal(rig_passes(rig, now_ns, frame, frame_bytes), kind != BLOCKED && kind != ALSO_BLOCKED);
}

static struct weir_cpu_state *states_of(const struct rig *rig)
{
	struct weir_cpu_state *states = calloc(weir_host_cpus(), sizeof(*states));
	__u32 zero = 0;

	assert_non_null(states);
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, WEIR_TABLE_TOTALS), &zero, states), 0);
	return states;
}

/* How many packets the runs of all CPUs hold. */
static uint64_t pending(const struct rig *rig)
{
	_cleanup_(weir_freep) struct weir_cpu_state *states = states_of(rig);
	uint64_t sum = 0;

	for (int cpu = 0; cpu < weir_host_cpus(); cpu++)
		if (states[cpu].count_run.what & (WEIR_RUN_PENDING | WEIR_RUN_SETTLING))
			sum += states[cpu].count_run.counted.packets & WEIR_RUN_SUM_MASK;
	return sum;
}

static void assert_tally(struct weir_tally tally, uint64_t packets, uint64_t frame_bytes)
{
	assert_int_equal(tally.packets, packets);
	assert_int_equal(tally.bytes, packets * frame_bytes);
}

/* So many of each kind were sent. */
static void check(const struct rig *rig, const uint64_t sent[KINDS])
{
	uint64_t passed = sent[ADMITTED] + sent[OBSERVED] + sent[TWO_RESOURCES], all = passed + sent[UNMATCHED];

	for (int kind = 0; kind <= TWO_RESOURCES; kind++) {
		const struct weir_rule_counters rule = rig_rule_counters(rig, kind);
		const struct rig_resource_counters resource = rig_resource_counters(rig, kind);
		const bool blocks = kind == BLOCKED || kind == ALSO_BLOCKED;

		assert_tally(rule.blocked, blocks ? sent[kind] : 0, FRAME_BYTES + kind);
		assert_tally(rule.would_drop, kind == OBSERVED ? sent[kind] : 0, FRAME_BYTES + kind);
		assert_tally(resource.blocked, blocks ? sent[kind] : 0, FRAME_BYTES + kind);
		assert_tally(resource.passed, blocks ? 0 : sent[kind], FRAME_BYTES + kind);
		assert_int_equal(resource.blocked_by_second, resource.blocked.packets);
	}
	assert_int_equal(rig_passed(rig, SECOND_RESOURCE), sent[TWO_RESOURCES]);
	assert_int_equal(rig_verdicts(rig, WEIR_VERDICT_PASS).packets, passed);
	assert_int_equal(rig_verdicts(rig, WEIR_VERDICT_UNMATCHED_PASS).packets, sent[UNMATCHED]);
	assert_int_equal(rig_verdicts(rig, WEIR_VERDICT_BLOCK).packets, sent[BLOCKED] + sent[ALSO_BLOCKED]);
	assert_int_equal(rig_verdicts(rig, WEIR_VERDICT_COUNT).packets, all + sent[BLOCKED] + sent[ALSO_BLOCKED]);
}

CLAIM(every_packet_is_counted_at_every_moment_of_a_run)
{
	struct random random = {.state = 49};
	uint64_t sent[KINDS] = {}, now_ns = RIG_START_NS, in_runs = 0;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig);
	rig_load_here(&rig);
	for (int i = 0; i < 2000; i++) {
		const int kind = random_below(&random, KINDS), count = random_between(&random, 1, 60);

		now_ns += random_below(&random, 2) ? random_below(&random, 10 * MS) : 0;
		send_some(&rig, kind, now_ns, count);
		sent[kind] += count;
		in_runs += pending(&rig);
		check(&rig, sent);
	}
	assert_true(in_runs > 10000); /* else nothing here is about runs */
}

/* A run that has to be settled after a packet or two costs more than it saves. */
CLAIM(packets_that_alternate_begin_no_run)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig);
	rig_load_here(&rig);
	send_some(&rig, ADMITTED, RIG_START_NS, 1);
	for (int i = 0; i < 500; i++) {
		_cleanup_(weir_freep) struct weir_cpu_state *states = NULL;

		send_some(&rig, i % 2 ? ADMITTED : i % 3 ? BLOCKED : UNMATCHED, RIG_START_NS + 1, 1 + i % 10);
		states = states_of(&rig);
		assert_int_equal(states[sched_getcpu()].count_run.what, 0);
	}
	send_some(&rig, ADMITTED, RIG_START_NS + 1, LONG);
	assert_int_not_equal(pending(&rig), 0);
}

/* What a run holds belongs to the second that it was in, not to the one in which the CPU next sees a packet. */
CLAIM(a_run_counts_in_its_own_second)
{
	struct weir_resource_counters counters[WEIR_CPUS_MAX];
	_cleanup_(rig_end) struct rig rig = {};
	uint32_t began_s, slot;

	begin(&rig);
	rig_load_here(&rig);
	send_some(&rig, ADMITTED, RIG_START_NS, 1);
	send_some(&rig, ADMITTED, RIG_START_NS + 1, LONG);
	assert_int_not_equal(pending(&rig), 0);
	send_some(&rig, ADMITTED, RIG_START_NS + 3600 * SECOND, 1);
	assert_int_equal(pending(&rig), 0);
	slot = rig.image->resources[ADMITTED].slot;
	assert_int_equal(
		bpf_map_lookup_elem(weir_object_map_fd(rig.object, WEIR_TABLE_RESOURCE_COUNTERS), &slot, counters), 0);
	began_s = RIG_START_NS / SECOND;
	for (int i = 0; i < WEIR_SECONDS; i++) {
		const struct weir_second *second = &counters[sched_getcpu()].second[i];

		if (second->passed)
			assert_int_equal(second->passed, second->second == began_s ? LONG + 1 : 1);
	}
	assert_int_equal(rig_passed(&rig, ADMITTED), LONG + 2);
}

/* ---- who else counts ---- */

/* All of a reload but that interfaces are changed one by one: both programs meet packets of this CPU in turn. */
CLAIM(a_load_begins_by_settling_the_run_of_the_load_before)
{
	uint64_t sent[KINDS] = {};
	_cleanup_(rig_end) struct rig former = {}, next = {};

	begin(&former);
	rig_load_here(&former);
	begin(&next);
	next.reloads = &former;
	next.now_ns = RIG_START_NS;
	rig_load(&next, true);
	for (int i = 1; i < 100; i++) {
		struct rig *rig = i % 2 ? &former : &next;

		send_some(rig, BLOCKED, RIG_START_NS + i * MS, 1);
		send_some(rig, BLOCKED, RIG_START_NS + i * MS + 1, i);
		sent[BLOCKED] += 1 + i;
		assert_int_equal(pending(rig), i > 16 ? i - 16 : 0);
		check(&former, sent);
		check(&next, sent);
	}
}

/* Change this CPU's copy of an element. */
static void *change(const struct rig *rig, enum weir_table_id table, uint32_t slot, size_t bytes)
{
	void *values = calloc(weir_host_cpus(), bytes);

	assert_non_null(values);
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, table), &slot, values), 0);
	return values;
}

static void store(const struct rig *rig, enum weir_table_id table, uint32_t slot, void *values)
{
	assert_int_equal(bpf_map_update_elem(weir_object_map_fd(rig->object, table), &slot, values, BPF_ANY), 0);
	free(values);
}

/* Count blocked packets as a version without runs does, whose scratch is another. */
static void count_without_runs(const struct rig *rig, uint64_t packets)
{
	const uint32_t rule_slot = rig->image->rules[BLOCKED].slot, slot = rig->image->resources[BLOCKED].slot;
	const struct weir_tally more = {packets, packets * FRAME_BYTES};
	const int cpu = sched_getcpu();
	struct weir_cpu_state *state = change(rig, WEIR_TABLE_TOTALS, 0, sizeof(*state));
	struct weir_rule_counters *rule = change(rig, WEIR_TABLE_RULE_COUNTERS, rule_slot, sizeof(*rule));
	struct weir_resource_counters *resource = change(rig, WEIR_TABLE_RESOURCE_COUNTERS, slot, sizeof(*resource));
	struct weir_tally *tallies[] = {&state[cpu].totals.verdict[WEIR_VERDICT_BLOCK], &rule[cpu].blocked,
					&resource[cpu].blocked};

	for (size_t i = 0; i < ARRAY_SIZE(tallies); i++) {
		tallies[i]->packets += more.packets;
		tallies[i]->bytes += more.bytes;
	}
	for (int i = 0; i < WEIR_SECONDS; i++)
		if (resource[cpu].second[i].second == RIG_START_NS / SECOND)
			resource[cpu].second[i].blocked += packets;
	memset(state[cpu].scratch, 0x5a, sizeof(struct weir_scratch) - offsetof(struct weir_scratch, entry));
	store(rig, WEIR_TABLE_TOTALS, 0, state);
	store(rig, WEIR_TABLE_RULE_COUNTERS, rule_slot, rule);
	store(rig, WEIR_TABLE_RESOURCE_COUNTERS, slot, resource);
}

CLAIM(what_a_version_without_runs_counts_meanwhile_is_not_lost)
{
	uint64_t sent[KINDS] = {};
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig);
	rig_load_here(&rig);
	for (int i = 0; i < 50; i++) {
		send_some(&rig, BLOCKED, RIG_START_NS + 2 * i * MS, 1);
		send_some(&rig, BLOCKED, RIG_START_NS + 2 * i * MS + 1, LONG);
		count_without_runs(&rig, i * 7);
		sent[BLOCKED] += 1 + LONG + i * 7;
		if (i * 7 < LONG - 17)
			check(&rig, sent);
		send_some(&rig, ADMITTED, RIG_START_NS + (2 * i + 1) * MS, 1);
		sent[ADMITTED]++;
		check(&rig, sent);
	}
}

/* Who gets a slot begins at zero, whatever a CPU still holds of the owner before. */
CLAIM(a_slot_that_is_cleared_gets_nothing_of_the_run)
{
	_cleanup_(rig_end) struct rig rig = {};
	uint32_t slot;

	begin(&rig);
	rig_load_here(&rig);
	send_some(&rig, BLOCKED, RIG_START_NS, 1);
	send_some(&rig, BLOCKED, RIG_START_NS + 1, LONG);
	assert_int_not_equal(pending(&rig), 0);
	slot = rig.image->rules[BLOCKED].slot;
	store(&rig, WEIR_TABLE_RULE_COUNTERS, slot, calloc(weir_host_cpus(), sizeof(struct weir_rule_counters)));
	assert_int_equal(rig_rule_counters(&rig, BLOCKED).blocked.packets, 0);
	send_some(&rig, ADMITTED, RIG_START_NS + 1, 1);
	assert_int_equal(pending(&rig), 0);
	assert_int_equal(rig_rule_counters(&rig, BLOCKED).blocked.packets, 0);
	assert_int_equal(rig_resource_counters(&rig, BLOCKED).blocked.packets, LONG + 1);
	assert_int_equal(rig_verdicts(&rig, WEIR_VERDICT_BLOCK).packets, LONG + 1);
}

/* ---- readers ---- */

struct sender {
	const struct rig *rig;
	atomic_bool is_done;
	uint64_t blocked;
};

/* Runs of many lengths, by the real clock. */
static void *send_all_the_time(void *data)
{
	struct sender *sender = data;
	uint8_t frame[PACKET_BYTES_MAX];
	struct random random = {.state = 1};

	for (int i = 0; i < 3000; i++) {
		const int kind = random_below(&random, 4) ? BLOCKED : ADMITTED;
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .repeat = random_between(&random, 1, 5000));

		options.data_size_in = build(kind, frame);
		if (bpf_prog_test_run_opts(weir_object_program_fd(sender->rig->object), &options))
			break;
		sender->blocked += kind == BLOCKED ? options.repeat : 0;
	}
	atomic_store(&sender->is_done, true);
	return NULL;
}

CLAIM(sums_that_are_read_meanwhile_never_go_back_and_end_exact)
{
	struct sender sender = {};
	uint64_t before[4] = {}, reads = 0, in_runs = 0;
	_cleanup_(rig_end) struct rig rig = {};
	pthread_t thread;
	bool is_done;

	rig_require(2);
	begin(&rig);
	rig_load(&rig, false);
	rig_attach(&rig);
	sender.rig = &rig;
	assert_int_equal(pthread_create(&thread, NULL, send_all_the_time, &sender), 0);
	do {
		is_done = atomic_load(&sender.is_done);
		in_runs += !!pending(&rig);
		const uint64_t now[] = {
			rig_rule_counters(&rig, BLOCKED).blocked.packets,
			rig_resource_counters(&rig, BLOCKED).blocked.packets,
			rig_verdicts(&rig, WEIR_VERDICT_BLOCK).packets,
			rig_verdicts(&rig, WEIR_VERDICT_BLOCK).bytes / FRAME_BYTES,
		};

		for (size_t i = 0; i < ARRAY_SIZE(now); i++) {
			assert_true(now[i] >= before[i]);
			before[i] = now[i];
		}
		reads++;
	} while (!is_done);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		assert_int_equal(before[i], sender.blocked);
	print_message("%llu reads, %llu of them amid a run\n", (unsigned long long)reads, (unsigned long long)in_runs);
	assert_true(reads > 100 && in_runs > reads / 10);
}

RUN_CLAIMS(NULL, NULL)
