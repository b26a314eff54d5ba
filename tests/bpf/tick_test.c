// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's tick as a clock (bpf/clock.h). By the real clock: which rules read CLOCK_MONOTONIC at all, and that a
 * packet is evaluated in the bucket of its tick. Under the virtual clock: how late ticks may be, and what then holds,
 * at random; docs/semantics.md (1. Window) has the bound and its argument.
 */
#include <bpf/bpf.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../../bpf/scratch.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"

#define PORT 53
#define NARROW_LIMIT 30000u /* narrow rows hold it */
#define WIDE_LIMIT 1000000u

static size_t build_frame(uint8_t *frame)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", PORT, 18);

	return packet_build(&spec, frame);
}

/* What the program knew of the latest packet on a CPU. `all` is room for all CPUs'. */
static const struct weir_scratch *read_scratch(const struct rig *rig, int cpu, struct weir_cpu_state *all)
{
	__u32 zero = 0;

	if (bpf_map_lookup_elem(weir_object_map_fd(rig->object, WEIR_TABLE_TOTALS), &zero, all))
		return NULL;
	return (const struct weir_scratch *)&all[cpu];
}

static struct weir_cpu_state *scratch_of_all(void)
{
	struct weir_cpu_state *all = calloc(weir_host_cpus(), sizeof(*all));

	assert_non_null(all);
	return all;
}

/* ---- whether the clock is read ---- */

#define PACKETS 400

/* Of so many packets that pass, for how many was it? One rule or several, with this window and limit. */
static uint32_t clock_reads_of(enum weir_window_kind window, uint64_t limit, uint64_t interval_ns, int rules)
{
	_cleanup_(weir_freep) struct weir_cpu_state *all = scratch_of_all();
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build_frame(frame), resource;
	_cleanup_(rig_end) struct rig rig = {};
	uint32_t reads = 0;
	cpu_set_t before;

	rig_begin(&rig, 512);
	resource = rig_resource(&rig, PORT, WEIR_KEY_SOURCE);
	for (int i = 0; i < rules; i++)
		rig_rule(&rig, resource, window, limit + i, interval_ns, 5);
	rig_load(&rig, false);
	rig_stay(&before);
	for (int i = 0; i < PACKETS; i++) {
		const struct weir_scratch *s;

		assert_int_equal(weir_object_evaluate(rig.object, frame, frame_bytes), XDP_PASS);
		s = read_scratch(&rig, sched_getcpu(), all);
		assert_non_null(s);
		reads += s->has_now;
	}
	rig_roam(&before);
	return reads;
}

CLAIM(a_packet_of_a_leap_rule_reads_no_clock)
{
	assert_int_equal(clock_reads_of(WEIR_WINDOW_LEAP, NARROW_LIMIT, SECOND, 1), 0);
	assert_int_equal(clock_reads_of(WEIR_WINDOW_LEAP, WIDE_LIMIT, SECOND, 1), 0);
	assert_int_equal(clock_reads_of(WEIR_WINDOW_LEAP, NARROW_LIMIT, SECOND, 3), 0);
	assert_int_equal(clock_reads_of(WEIR_WINDOW_LEAP, WIDE_LIMIT, SECOND, 3), 0);
}

/* What they decide depends on the nanosecond, or on less than a few ticks. */
CLAIM(a_packet_of_strict_and_smooth_and_of_short_buckets_reads_the_clock)
{
	assert_int_equal(clock_reads_of(WEIR_WINDOW_SMOOTH, NARROW_LIMIT, SECOND, 1), PACKETS);
	assert_int_equal(clock_reads_of(WEIR_WINDOW_STRICT, NARROW_LIMIT, SECOND, 1), PACKETS);
	assert_int_equal(clock_reads_of(WEIR_WINDOW_LEAP, WIDE_LIMIT, 5 * (50 * MS - 1000), 1), PACKETS);
}

/* ---- whether it goes back, as in a capture ---- */

/* In a smooth window the bucket before counts more at earlier times: what was leased late in a bucket is not spent
 * early in it.
 */
CLAIM(a_lease_of_a_smooth_window_is_not_spent_before_it_was_taken)
{
	const uint64_t bucket_ns = 100 * MS, begins_ns = (RIG_START_NS / bucket_ns + 10) * bucket_ns, limit = 1000;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build_frame(frame);
	_cleanup_(rig_end) struct rig rig = {};
	unsigned int late = 0, early = 0;

	rig_begin(&rig, 512);
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_SMOOTH, limit, bucket_ns, 1);
	rig_load_here(&rig);
	for (uint64_t i = 0; i < limit; i++)
		assert_true(rig_passes(&rig, begins_ns - 1, frame, frame_bytes));
	/* A tenth of them still counts: of 900 that are free, parts are leased. */
	for (int i = 0; i < 100; i++)
		late += rig_passes(&rig, begins_ns + bucket_ns * 9 / 10, frame, frame_bytes);
	assert_int_equal(late, 100);
	/* 950 of them and these hundred: nothing is free. */
	for (int i = 0; i < 10; i++)
		early += rig_passes(&rig, begins_ns + bucket_ns / 20, frame, frame_bytes);
	assert_int_equal(early, 0);
}

/* ---- whether it is the right bucket ---- */

#define BUCKET_NS (50 * MS) /* the shortest that goes by the tick */
#define WATCH_NS (2 * SECOND)
#define CPUS 2

struct watch {
	const struct rig *rig;
	int cpu;
	uint32_t packets, early, elsewhere, backwards;
	uint64_t latest_ns; /* by how much a tick came too late, at most */
	pthread_t thread;
};

/* Send packets all the time, of a flow that is never full. */
static void *watch(void *data)
{
	_cleanup_(weir_freep) struct weir_cpu_state *all = scratch_of_all();
	struct watch *watch = data;
	const struct weir_rule *rule = &watch->rig->image->rules[0];
	uint64_t tick_ns = weir_host_tick_ns(), origin_ns = weir_object_tick_origin_ns(watch->rig->object);
	uint64_t end_ns, tick_before = 0;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build_frame(frame);

	rig_pin(watch->cpu);
	end_ns = weir_host_now_ns() + WATCH_NS;
	for (uint64_t before_ns, after_ns, at_ns; (before_ns = weir_host_now_ns()) < end_ns; watch->packets++) {
		const struct weir_clock *clk;
		const struct weir_scratch *s;

		if (weir_object_evaluate(watch->rig->object, frame, frame_bytes) < 0)
			break;
		after_ns = weir_host_now_ns();
		s = read_scratch(watch->rig, watch->cpu, all);
		if (!s)
			break;
		at_ns = s->tick * tick_ns + origin_ns;
		clk = &s->narrow_clock[rule->spec % WEIR_SPECS_NARROW];
		watch->elsewhere += at_ns < clk->start_ns || at_ns >= clk->end_ns ||
				    clk->end_ns - clk->start_ns != BUCKET_NS || clk->start_ns % BUCKET_NS;
		/* Where ticks lie was found to less than half of one. */
		watch->early += at_ns > after_ns + tick_ns / 2;
		watch->backwards += s->tick < tick_before;
		tick_before = s->tick;
		if (before_ns > at_ns + tick_ns && before_ns - at_ns - tick_ns > watch->latest_ns)
			watch->latest_ns = before_ns - at_ns - tick_ns;
	}
	return NULL;
}

/* Also the first one behind a bucket's edge. */
CLAIM_WITHIN(every_packet_is_evaluated_in_the_bucket_of_its_tick, NULL, rig_detach)
{
	struct watch watches[CPUS] = {};
	_cleanup_(rig_end) struct rig rig = {};
	int cpu[CPUS];

	rig_require(CPUS);
	rig_begin(&rig, 512);
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, NARROW_LIMIT, 10 * BUCKET_NS, 10);
	rig_load(&rig, false);
	rig_attach(&rig);
	rig_cpus(cpu, CPUS);
	for (int i = 0; i < CPUS; i++) {
		watches[i] = (struct watch){.rig = &rig, .cpu = cpu[i]};
		assert_int_equal(pthread_create(&watches[i].thread, NULL, watch, &watches[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(watches[i].thread, NULL);
		print_message("%u packets; the latest tick was %" PRIu64 " us late\n", watches[i].packets,
			      watches[i].latest_ns / 1000);
		assert_true(watches[i].packets > 1000);
		assert_int_equal(watches[i].elsewhere, 0);
		assert_int_equal(watches[i].early, 0);
		assert_int_equal(watches[i].backwards, 0);
	}
}

/* ---- when ticks are late ---- */

#define LATE_MAX_NS (100 * MS)
#define LATE_ROUNDS 40
#define LATE_PACKETS 4000
#define SAMPLES 10

/* A flow's admissions: in true time, and in buckets of the tick. */
struct history {
	uint64_t at_ns[LATE_PACKETS];
	uint64_t bucket[LATE_PACKETS];
	uint32_t count;
};

/* What the window of a packet that comes by this bucket holds, plainly. */
static uint32_t in_window(const struct history *history, uint64_t bucket)
{
	uint32_t sum = 0;

	for (uint32_t i = history->count; i > 0 && history->bucket[i - 1] + SAMPLES > bucket; i--)
		sum++;
	return sum;
}

static void admit(struct history *history, uint64_t at_ns, uint64_t bucket)
{
	history->at_ns[history->count] = at_ns;
	history->bucket[history->count++] = bucket;
}

/* The most that any interval of this length holds, wherever it starts: it is fullest from an admission on. */
static uint32_t fullest(const struct history *history, uint64_t length_ns)
{
	uint32_t most = 0;

	for (uint32_t first = 0, end = 0; first < history->count; first++) {
		while (end < history->count && history->at_ns[end] - history->at_ns[first] < length_ns)
			end++;
		most = end - first > most ? end - first : most;
	}
	return most;
}

/* How old the tick is now: it grows while no tick comes, falls when one does; a tick is never taken back. */
static uint64_t next_age(struct random *random, uint64_t age_ns, uint64_t step_ns)
{
	uint64_t at_most = age_ns + step_ns < LATE_MAX_NS ? age_ns + step_ns : LATE_MAX_NS;

	switch (random_below(random, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return random_between(random, 0, at_most);
	case 3:
		return at_most - random_below(random, at_most / 16 + 1);
	default:
		return at_most; /* no tick since the packet before, or as late as can be */
	}
}

/* Whatever the tick does, packet for packet it is a plain window of the tick's buckets; and what true time can see of
 * that is bounded. Returns by how much the fullest interval of T exceeded the limit.
 */
static int64_t play_late_ticks(struct random *random, uint64_t limit, uint64_t interval_ns, bool counts_bytes)
{
	const uint64_t bucket_ns = interval_ns / SAMPLES;
	static struct history history;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build_frame(frame);
	uint64_t now_ns = RIG_START_NS, age_ns = 0;
	struct weir_ruleset_rule *rule;
	_cleanup_(rig_end) struct rig rig = {};

	history.count = 0;
	rig_begin(&rig, 512);
	rule = rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP,
			limit * (counts_bytes ? frame_bytes : 1), interval_ns, SAMPLES);
	rule->counts_bytes = counts_bytes;
	rig_load(&rig, true);
	assert_true(rig.image->rules[0].goes_by_ticks);
	assert_int_equal(rig.image->rules[0].storage, counts_bytes ? WEIR_STORAGE_MEDIUM : WEIR_STORAGE_NARROW);
	for (int i = 0; i < LATE_PACKETS; i++) {
		/* mostly as fast as the limit and a half, now and then a pause, and bursts at one time */
		uint64_t step_ns = 0;
		uint64_t bucket;
		bool passes;

		if (random_percent(random, 2))
			step_ns = random_below(random, 2 * interval_ns);
		else if (random_percent(random, 60))
			step_ns = random_below(random, 2 * interval_ns / limit);
		now_ns += step_ns;
		age_ns = step_ns ? next_age(random, age_ns, step_ns) : age_ns;
		bucket = (now_ns - age_ns) / bucket_ns;
		weir_object_harness(rig.object)->tick_late_ns = age_ns;
		passes = rig_passes(&rig, now_ns, frame, frame_bytes);
		assert_int_equal(passes, in_window(&history, bucket) < limit);
		if (passes)
			admit(&history, now_ns, bucket);
	}
	assert_in_range(fullest(&history, interval_ns - bucket_ns - LATE_MAX_NS), 1, limit);
	return (int64_t)fullest(&history, interval_ns) - limit;
}

CLAIM_WITHIN(windows_of_late_ticks_never_hold_more_and_true_time_little, rig_stay_group, rig_roam_group)
{
	static const uint64_t limits[] = {1, 7, 100};
	uint32_t exceeded = 0;

	for (uint64_t round = 0; round < LATE_ROUNDS; round++) {
		struct random random = {20250701 + round};

		exceeded += play_late_ticks(&random, limits[round % ARRAY_SIZE(limits)], (round % 2 ? 1500 : 500) * MS,
					    round / 2 % 2) > 0;
	}
	/* In an interval of T itself more may meet, as in every leap window: the test sees it. */
	assert_true(exceeded > LATE_ROUNDS / 4);
}

/* The bound cannot be lower: the limit as the last tick of a bucket grows old, and again n - 1 buckets behind it when
 * ticks are on time.
 */
CLAIM_WITHIN(the_bound_in_true_time_is_reached, rig_stay_group, rig_roam_group)
{
	const uint64_t interval_ns = SECOND, bucket_ns = interval_ns / SAMPLES, limit = 5;
	const uint64_t end_ns = RIG_START_NS / bucket_ns * bucket_ns + bucket_ns; /* of a bucket */
	static struct history history;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build_frame(frame);
	_cleanup_(rig_end) struct rig rig = {};

	history.count = 0;
	rig_begin(&rig, 512);
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, limit, interval_ns, SAMPLES);
	rig_load(&rig, true);
	for (int time = 0; time < 2; time++) {
		uint64_t age_ns = time ? 0 : LATE_MAX_NS;
		uint64_t now_ns = time ? end_ns + interval_ns - bucket_ns : end_ns - 1 + LATE_MAX_NS;

		weir_object_harness(rig.object)->tick_late_ns = age_ns;
		for (uint64_t i = 0; i < 2 * limit; i++)
			if (rig_passes(&rig, now_ns, frame, frame_bytes))
				admit(&history, now_ns, 0);
	}
	assert_int_equal(history.count, 2 * limit);
	assert_int_equal(fullest(&history, interval_ns - bucket_ns - LATE_MAX_NS), limit);
	assert_int_equal(fullest(&history, interval_ns - bucket_ns - LATE_MAX_NS + 2), 2 * limit);
}

RUN_CLAIMS(NULL, NULL)
