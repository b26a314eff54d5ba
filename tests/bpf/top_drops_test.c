// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drops counted by flow (bpf/observe/top_drops.h): exact while there is room; the busiest, and a bound that holds, when
 * there is none; all CPUs together; over a reload. Under the virtual clock, but for what goes by samples.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"
#include "program/top_drops.h"

#define PORT 53
#define FRAME_BYTES 60
#define HOUR (3600 * SECOND)
/* Places have their times in steps. */
#define STEP_NS (1ull << WEIR_TOP_DROPS_TIME_SHIFT)

/* A source is its number in host order; flows are looked for by it. */
static size_t build_frame(uint32_t source, uint16_t port, uint32_t padding, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", port, 0);

	memcpy(spec.source, &source, sizeof(source));
	spec.padding_bytes = FRAME_BYTES + padding;
	packet_build(&spec, frame);
	return FRAME_BYTES + padding;
}

/* Send one packet of a flow, which must be dropped, or must not. */
static void send_one(struct rig *rig, uint32_t source, uint64_t now_ns, bool passes)
{
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build_frame(source, PORT, 0, frame);

	assert_int_equal(rig_passes(rig, now_ns, frame, frame_bytes), passes);
}

/* One rule on one resource. Unless it is changed, its threshold is 0: every packet is dropped. */
static struct weir_ruleset_rule *begin(struct rig *rig, uint32_t key_fields, uint64_t threshold)
{
	memset(rig, 0, sizeof(*rig));
	rig_begin(rig, 512);
	return rig_rule(rig, rig_resource(rig, PORT, key_fields), WEIR_WINDOW_LEAP, threshold, SECOND, 10);
}

/* ---- what the program has counted ---- */

#define FLOWS_MAX 131072u

struct seen {
	struct weir_dropped_flow of[FLOWS_MAX]; /* by source, all CPUs together */
	uint32_t flows, places;
	uint64_t packets, bytes, missed;
};

static void see(const struct weir_dropped_flow *dropped, void *data)
{
	struct seen *seen = data;
	struct weir_dropped_flow *sum;
	uint32_t source;

	memcpy(&source, dropped->key.source, sizeof(source));
	assert_true(source < FLOWS_MAX);
	seen->places++;
	seen->packets += dropped->packets;
	seen->bytes += dropped->bytes;
	sum = &seen->of[source];
	if (!sum->packets) {
		*sum = *dropped;
		seen->flows++;
		return;
	}
	sum->packets += dropped->packets;
	sum->bytes += dropped->bytes;
}

/* Of the one source: [1] would have been dropped, [0] was. */
struct pair {
	uint64_t packets[2], bytes[2];
	bool is_estimated[2];
	uint32_t places;
};

static void see_pair(const struct weir_dropped_flow *dropped, void *data)
{
	struct pair *pair = data;

	pair->places++;
	pair->packets[dropped->is_observed] += dropped->packets;
	pair->bytes[dropped->is_observed] += dropped->bytes;
	pair->is_estimated[dropped->is_observed] |= dropped->is_estimated;
}

static void map_top_drops(const struct rig *rig, struct weir_top_drops *ret_top_drops)
{
	const struct weir_top_drops_maps maps = {
		.sets_fd = weir_object_map_fd(rig->object, WEIR_TABLE_TOP_DROPS),
		.keys_fd = weir_object_map_fd(rig->object, WEIR_TABLE_TOP_DROP_KEYS),
		.totals_fd = weir_object_map_fd(rig->object, WEIR_TABLE_TOTALS),
	};

	assert_int_equal(weir_top_drops_map(ret_top_drops, &maps, rig->image->config.sizes[WEIR_TABLE_TOP_DROPS], true),
			 0);
}

static struct seen *look(const struct rig *rig, uint64_t now_ns)
{
	_cleanup_(weir_top_drops_unmap) struct weir_top_drops top_drops = {};
	struct seen *seen = calloc(1, sizeof(*seen));

	assert_non_null(seen);
	map_top_drops(rig, &top_drops);
	weir_top_drops_visit(&top_drops, now_ns, see, seen);
	seen->missed = weir_top_drops_missed(&top_drops);
	return seen;
}

/* ---- one CPU ---- */

#define FLOWS 4096u

/* Random packets of as many flows as weir promises to show, against a count in C. */
CLAIM(every_drop_of_4096_flows_is_counted_to_the_packet_and_byte)
{
	static uint64_t packets[FLOWS + 1], bytes[FLOWS + 1], first_ns[FLOWS + 1], last_ns[FLOWS + 1];
	struct random random = {.state = 21};
	_cleanup_(weir_freep) struct seen *seen = NULL;
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE, 0);
	rig_load(&rig, true);
	memset(packets, 0, sizeof(packets));
	memset(bytes, 0, sizeof(bytes));
	for (uint32_t i = 0; i < 30 * FLOWS; i++) {
		uint32_t source = i < FLOWS ? i + 1 : 1 + random_below(&random, FLOWS);
		uint8_t frame[PACKET_BYTES_MAX];
		size_t frame_bytes = build_frame(source, PORT, random_below(&random, 40), frame);

		now_ns += random_below(&random, 50 * MS);
		assert_false(rig_passes(&rig, now_ns, frame, frame_bytes));
		if (!packets[source]++)
			first_ns[source] = now_ns;
		bytes[source] += frame_bytes;
		last_ns[source] = now_ns;
	}
	seen = look(&rig, now_ns);
	assert_int_equal(seen->flows, FLOWS);
	assert_int_equal(seen->places, FLOWS);
	assert_int_equal(seen->missed, 0);
	for (uint32_t source = 1; source <= FLOWS; source++) {
		const struct weir_dropped_flow *of = &seen->of[source];

		assert_int_equal(of->packets, packets[source]);
		assert_int_equal(of->bytes, bytes[source]);
		assert_int_equal(of->first_ns, first_ns[source] / STEP_NS * STEP_NS);
		assert_int_equal(of->last_ns, last_ns[source] / STEP_NS * STEP_NS);
		assert_int_equal(of->key.family, 4);
		assert_int_equal(of->rule_slot, rig.image->rules[0].slot);
		assert_false(of->is_observed || of->is_estimated || of->missed);
	}
}

/* What passes is no drop; nor does a flow whose packets pass become known. */
CLAIM(what_passes_is_not_counted)
{
	_cleanup_(weir_freep) struct seen *seen = NULL;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE, 3);
	rig_load(&rig, true);
	for (uint32_t i = 0; i < 10; i++) {
		send_one(&rig, 1, RIG_START_NS + i, i < 3);
		if (i < 3)
			send_one(&rig, 2, RIG_START_NS + i, true);
	}
	seen = look(&rig, RIG_START_NS + 10);
	assert_int_equal(seen->flows, 1);
	assert_int_equal(seen->of[1].packets, 7);
}

#define ZIPF_FLOWS 100000u
#define ZIPF_PACKETS 400000u
#define ZIPF_TOP 1000u

/* Flow n has a part of the drops in proportion to 1/n. */
static uint32_t draw_zipf(const double *up_to, double at)
{
	uint32_t low = 0, high = ZIPF_FLOWS - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (up_to[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low + 1;
}

/* More flows than there is room for: the busiest are there, no figure is too high, and none lacks more than it says. */
CLAIM(the_busiest_1000_of_100k_flows_are_known_within_the_bound)
{
	_cleanup_(weir_freep) uint64_t *packets = calloc(ZIPF_FLOWS + 1, sizeof(*packets));
	_cleanup_(weir_freep) double *up_to = calloc(ZIPF_FLOWS, sizeof(*up_to));
	_cleanup_(weir_freep) struct seen *seen = NULL;
	struct random random = {.state = 22};
	uint64_t worst = 0, now_ns;
	_cleanup_(rig_end) struct rig rig = {};
	double sum = 0;

	assert_non_null(packets);
	assert_non_null(up_to);
	for (uint32_t i = 0; i < ZIPF_FLOWS; i++) {
		sum += 1.0 / (i + 1);
		up_to[i] = sum;
	}
	begin(&rig, WEIR_KEY_SOURCE, 0);
	rig_load(&rig, true);
	for (uint32_t i = 0; i < ZIPF_PACKETS; i++) {
		uint32_t source = draw_zipf(up_to, sum * (random_u64(&random) >> 11) / (1ull << 53));

		now_ns = RIG_START_NS + i * 10000ull;
		send_one(&rig, source, now_ns, false);
		packets[source]++;
	}
	seen = look(&rig, now_ns);
	/* One in fifteen of the drops in a set is the worst case; on average there is not even one in 1,024 * 15. */
	assert_true(seen->missed <= 4 * ZIPF_PACKETS / WEIR_TOP_DROPS_SETS / (WEIR_TOP_DROPS_WAYS + 1));
	for (uint32_t source = 1; source <= ZIPF_FLOWS; source++) {
		const struct weir_dropped_flow *of = &seen->of[source];

		assert_true(of->packets <= packets[source]);
		if (of->packets)
			assert_true(packets[source] <= of->packets + of->missed);
		else
			assert_true(packets[source] <= seen->missed);
		if (source <= ZIPF_TOP)
			assert_true(of->packets > 0);
		if (of->packets && packets[source] - of->packets > worst)
			worst = packets[source] - of->packets;
	}
	print_message("%u of %u flows have places; at most %u packets are missing from one, and %u may be\n",
		      seen->flows, ZIPF_FLOWS, (uint32_t)worst, (uint32_t)seen->missed);
}

/* Else yesterday's flood would keep today's out. */
CLAIM(flows_that_were_quiet_for_an_hour_make_room)
{
	const uint32_t places = WEIR_TOP_DROPS_SETS * WEIR_TOP_DROPS_WAYS;
	_cleanup_(weir_freep) struct seen *seen = NULL;
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE, 0);
	rig_load(&rig, true);
	for (uint32_t round = 0; round < 5; round++)
		for (uint32_t i = 0; i < 2 * places; i++)
			send_one(&rig, 1 + i, now_ns, false);
	now_ns += HOUR + 2 * SECOND;
	/* A place is found once a second in each set. */
	for (uint32_t i = 0; i < 20; i++, now_ns += 2 * SECOND)
		send_one(&rig, 100000 + i, now_ns, false);
	seen = look(&rig, now_ns);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(seen->of[100000 + i].packets, 1);
		assert_int_equal(seen->of[100000 + i].missed, 0);
	}
}

#define RUSH 1000000u

static void wait_for_ticks(unsigned int ticks)
{
	const struct timespec wait = {.tv_nsec = (long)(ticks * weir_host_tick_ns())};

	nanosleep(&wait, NULL);
}

/* Two rules block each packet, so that no drop is of the flow before: more than a CPU counts one by one. Together the
 * flows have all drops but those that the next sample stands for; each has its own, about.
 */
CLAIM(a_rush_of_drops_is_counted_by_samples_that_say_so)
{
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = build_frame(1, PORT, 0, frame),
		    .repeat = RUSH);
	struct weir_top_drops top_drops;
	struct pair pair = {};
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE, 0)->observes = true;
	rig_rule(&rig, 0, WEIR_WINDOW_LEAP, 0, SECOND, 10);
	rig_load(&rig, false);
	assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig.object), &options), 0);
	/* A run is counted when it ends, or by the first packet of another tick. */
	wait_for_ticks(2);
	options.repeat = 1;
	assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig.object), &options), 0);
	map_top_drops(&rig, &top_drops);
	weir_top_drops_visit(&top_drops, weir_host_now_ns(), see_pair, &pair);
	weir_top_drops_unmap(&top_drops);
	assert_int_equal(pair.places, 2);
	assert_in_range(pair.packets[0] + pair.packets[1], 2 * (RUSH + 1) - 31, 2 * (RUSH + 1));
	for (int observed = 0; observed < 2; observed++) {
		assert_in_range(pair.packets[observed], RUSH - RUSH / 20, RUSH + RUSH / 20);
		assert_int_equal(pair.bytes[observed], pair.packets[observed] * FRAME_BYTES);
		assert_true(pair.is_estimated[observed]);
	}
}

struct reader {
	struct weir_top_drops top_drops;
	_Atomic bool must_end;
	uint64_t packets, bytes, reads, failures;
};

/* A thousand reads a second and more, in the middle of runs: no figure ever goes back. */
static void *read_all_the_time(void *data)
{
	const struct timespec wait = {.tv_nsec = 100000};
	struct reader *reader = data;

	while (!reader->must_end) {
		struct pair pair = {};

		weir_top_drops_visit(&reader->top_drops, weir_host_now_ns(), see_pair, &pair);
		reader->failures += pair.packets[0] < reader->packets || pair.bytes[0] < reader->bytes;
		reader->packets = pair.packets[0];
		reader->bytes = pair.bytes[0];
		reader->reads++;
		nanosleep(&wait, NULL);
	}
	return NULL;
}

/* One flow, more than a CPU counts one by one: runs. They are in the figures when the last packet is over, not when the
 * CPU drops again; and what one reads meanwhile never goes back.
 */
CLAIM(a_run_counts_at_once_and_once)
{
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = build_frame(1, PORT, 0, frame));
	struct reader reader = {};
	struct pair pair = {};
	uint64_t sent = 0;
	pthread_t thread;
	struct rig rig, next;

	begin(&rig, WEIR_KEY_SOURCE, 0);
	rig_load(&rig, false);
	map_top_drops(&rig, &reader.top_drops);
	assert_int_equal(pthread_create(&thread, NULL, read_all_the_time, &reader), 0);
	for (uint32_t round = 0; round < 200; round++) {
		options.repeat = 1 + round * 37;
		assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig.object), &options), 0);
		sent += options.repeat;
		pair = (struct pair){};
		weir_top_drops_visit(&reader.top_drops, weir_host_now_ns(), see_pair, &pair);
		assert_int_equal(pair.packets[0], sent);
		assert_int_equal(pair.bytes[0], sent * FRAME_BYTES);
		assert_false(pair.is_estimated[0]);
	}
	/* A packet of another load ends the run; so does the same load's, when it is its turn again. */
	begin(&next, WEIR_KEY_SOURCE, 0);
	next.reloads = &rig;
	rig_load(&next, false);
	options.repeat = 1000;
	for (int turn = 0; turn < 4; turn++) {
		assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(turn % 2 ? next.object : rig.object),
							&options),
				 0);
		sent += options.repeat;
	}
	pair = (struct pair){};
	weir_top_drops_visit(&reader.top_drops, weir_host_now_ns(), see_pair, &pair);
	assert_int_equal(pair.packets[0], sent);
	reader.must_end = true;
	pthread_join(thread, NULL);
	print_message("%llu packets, read %llu times\n", (unsigned long long)sent, (unsigned long long)reader.reads);
	assert_int_equal(reader.failures, 0);
	weir_top_drops_unmap(&reader.top_drops);
	rig_end(&next);
	rig_end(&rig);
}

/* ---- two CPUs ---- */

CLAIM(what_two_cpus_have_dropped_of_a_flow_is_the_sum)
{
	_cleanup_(weir_freep) struct seen *seen = NULL;
	cpu_set_t all;
	_cleanup_(rig_end) struct rig rig = {};
	int cpu[2];

	rig_roam_group(NULL);
	rig_require(2);
	rig_cpus(cpu, 2);
	begin(&rig, WEIR_KEY_SOURCE, 0);
	rig_load(&rig, true);
	for (int i = 0; i < 2; i++) {
		rig_pin(cpu[i]);
		for (uint32_t sent = 0; sent < 3u + i; sent++)
			send_one(&rig, 1, RIG_START_NS + sent, false);
	}
	rig_stay(&all);
	seen = look(&rig, RIG_START_NS);
	assert_int_equal(seen->places, 2);
	assert_int_equal(seen->of[1].packets, 7);
	assert_int_equal(seen->of[1].bytes, 7 * FRAME_BYTES);
}

/* ---- rules that observe ---- */

/* Tried first, by one rule or all of them, then enforced: would-be drops are kept apart from drops. */
static void check_told_separately(bool all_observe)
{
	_cleanup_(weir_freep) struct seen *seen = NULL, *later = NULL;
	struct weir_ruleset_rule *rule;
	struct rig rig, next;

	rule = begin(&rig, WEIR_KEY_SOURCE, 0);
	rule->observes = !all_observe;
	rig.ruleset->settings.observes = all_observe;
	rig_load(&rig, true);
	for (uint32_t i = 0; i < 5; i++)
		send_one(&rig, 1, RIG_START_NS + i, true);
	seen = look(&rig, RIG_START_NS);
	assert_int_equal(seen->of[1].packets, 5);
	assert_true(seen->of[1].is_observed);

	begin(&next, WEIR_KEY_SOURCE, 0);
	next.reloads = &rig;
	next.now_ns = RIG_START_NS + 5;
	rig_load(&next, true);
	assert_int_equal(next.image->rules[0].slot, rig.image->rules[0].slot);
	for (uint32_t i = 0; i < 3; i++)
		send_one(&next, 1, RIG_START_NS + 5 + i, false);
	later = look(&next, RIG_START_NS);
	assert_int_equal(later->places, 2);
	assert_int_equal(later->packets, 8);
	rig_end(&next);
	rig_end(&rig);
}

CASE(what_an_observing_rule_would_drop_is_distinguished, check_told_separately(false));
CASE(what_an_observing_instance_would_drop_is_distinguished, check_told_separately(true));

/* ---- reloads ---- */

CLAIM(a_reload_that_keeps_the_rule_keeps_its_top_drops)
{
	_cleanup_(weir_freep) struct seen *seen = NULL;
	struct rig rig, next;

	begin(&rig, WEIR_KEY_SOURCE, 0);
	rig_load(&rig, true);
	for (uint32_t i = 0; i < 5; i++)
		send_one(&rig, 1 + i % 2, RIG_START_NS + i, false);

	begin(&next, WEIR_KEY_SOURCE, 0);
	next.reloads = &rig;
	next.now_ns = RIG_START_NS + 5;
	rig_load(&next, true);
	for (uint32_t i = 0; i < 5; i++)
		send_one(&next, 1 + i % 2, RIG_START_NS + 5 + i, false);
	seen = look(&next, RIG_START_NS);
	assert_int_equal(seen->places, 2);
	assert_int_equal(seen->of[1].packets, 6);
	assert_int_equal(seen->of[2].packets, 4);
	rig_end(&next);
	rig_end(&rig);
}

/* ... and their places are free. */
CLAIM(a_rule_that_gets_anothers_slot_has_none_of_its_top_drops)
{
	_cleanup_(weir_freep) struct seen *seen = NULL;
	struct weir_top_drops top_drops;
	bool *is_forgotten;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE, 0);
	rig_rule(&rig, 0, WEIR_WINDOW_LEAP, 0, SECOND, 10)->observes = true;
	rig.ruleset->rules[0].observes = true;
	rig_load(&rig, true);
	send_one(&rig, 1, RIG_START_NS, true);
	is_forgotten = calloc(rig.image->rule_slots, sizeof(*is_forgotten));
	assert_non_null(is_forgotten);
	is_forgotten[rig.image->rules[0].slot] = true;
	map_top_drops(&rig, &top_drops);
	weir_top_drops_forget(&top_drops, is_forgotten, rig.image->rule_slots);
	weir_top_drops_unmap(&top_drops);
	seen = look(&rig, RIG_START_NS);
	assert_int_equal(seen->places, 1);
	assert_int_equal(seen->of[1].rule_slot, rig.image->rules[1].slot);
	free(is_forgotten);
}

/* ---- ways to be dropped ---- */

/* The sums of all flows are what the rules count. A few flows in turn, in runs, so that the ways in which a packet is
 * known to be of the flow before are all taken.
 */
static void check_sums(uint32_t key_fields, void (*change)(struct weir_ruleset_rule *rule))
{
	_cleanup_(weir_freep) struct seen *seen = NULL;
	struct random random = {.state = key_fields + 1};
	struct weir_rule_counters counters;
	struct weir_ruleset_rule *rule;
	uint64_t now_ns = RIG_START_NS;
	uint32_t dropped[9] = {};
	_cleanup_(rig_end) struct rig rig = {};

	rule = begin(&rig, key_fields, 2);
	if (change)
		change(rule);
	rig_load(&rig, true);
	for (uint32_t run = 0; run < 400; run++) {
		uint32_t source = 1 + random_below(&random, 8);
		uint8_t frame[PACKET_BYTES_MAX];
		size_t frame_bytes = build_frame(source, PORT, 0, frame);

		for (uint32_t i = random_below(&random, 8); i > 0; i--, now_ns += random_below(&random, 20 * MS))
			dropped[source] += !rig_passes(&rig, now_ns, frame, frame_bytes);
	}
	counters = rig_rule_counters(&rig, 0);
	seen = look(&rig, now_ns);
	assert_true(counters.blocked.packets > 100);
	assert_int_equal(seen->packets, counters.blocked.packets);
	assert_int_equal(seen->bytes, counters.blocked.bytes);
	assert_int_equal(seen->places, key_fields & WEIR_KEY_SOURCE ? 8 : 1);
	for (uint32_t source = 1; source <= 8 && key_fields & WEIR_KEY_SOURCE; source++)
		assert_int_equal(seen->of[source].packets, dropped[source]);
}

static void count_bytes(struct weir_ruleset_rule *rule)
{
	rule->counts_bytes = true;
	rule->threshold_micro = 150 * WEIR_MICRO;
}

static void count_bytes_in_wide_rows(struct weir_ruleset_rule *rule)
{
	count_bytes(rule);
	rule->interval_ns = 100 * MS;
}

static void penalise(struct weir_ruleset_rule *rule)
{
	rule->penalty_ms = rule->penalty_ms_max = 300;
}

static void throttle(struct weir_ruleset_rule *rule)
{
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
}

CLAIM(drops_by_every_kind_of_row_and_key_are_counted)
{
	static const uint32_t keys[] = {WEIR_KEY_SOURCE, WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT,
					WEIR_KEY_DESTINATION_PORT, 0};
	static void (*const changes[])(struct weir_ruleset_rule *) = {
		NULL, count_bytes, count_bytes_in_wide_rows, penalise, throttle,
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		for (size_t j = 0; j < ARRAY_SIZE(changes); j++)
			check_sums(keys[i], changes[j]);
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
