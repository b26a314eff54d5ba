// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exactness across CPUs: two pinned threads run the shipped program at one flow, on the real clock, and
 * what both let through must never exceed the limit in any window of its kind, nor fall short of it.
 *
 * How admissions are counted. Each thread notes the clock before and after a run. The program read its
 * clock between the two, so when both lie in one bucket that is the packet's bucket. When they do not,
 * the thread looks at its own CPU's row: nobody else writes it, and its newest bucket is the one that
 * the admitted packet was counted in. So the sums over buckets are exact, and no tolerance is needed.
 * Afterwards they are compared with the cells that the program kept and with its counters.
 *
 * What is asserted, for every window of every flow:
 *   leap    any sampleCount buckets on the grid hold at most the limit;
 *   strict  any sampleCount + 1 do, and any interval wherever it starts does (runs that surely lie in it);
 *   smooth  at every admission: what was surely admitted before it and is in the window, the oldest
 *           bucket weighed for the latest time the admission can have had, is within the limit.
 * And not less than 99 % of the limit: at the end of a bucket in which both CPUs sent all the time, more
 * than the limit, the window is full. Buckets in which a thread was held up (another process, a stalled
 * virtual CPU) are left out of that, and counted.
 *
 * The program is attached to a device first: test runs of a program that is not take turns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "host.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "util.h"
#include "weir_window.h"

#define CPUS 2
#define FLOW_RULES_MAX 2
#define FRAME_BYTES_MIN 60
#define FRAME_BYTES_MAX 1514

/* bpf_ktime_get_ns and clock_gettime are two readers of one clock, whose rate may just be changing. */
#define CLOCK_SLACK_NS 1000

/* What one CPU saw of one bucket of one rule. */
struct offer {
	uint64_t units;	   /* sent, by the time before the run */
	uint64_t last_ns;  /* when the last was sent; of a duel: when it was over */
	uint64_t alone_ns; /* when this thread began to take what a duel left */
	bool was_held_up;  /* this thread made a pause in it */
};

struct pass {
	uint64_t before_ns, after_ns;
	uint64_t units;
	uint64_t bucket[FLOW_RULES_MAX]; /* absolute number */
};

/* Where a rule keeps its row for one flow, on one CPU. */
struct row_place {
	uint32_t chunk, offset;
};

struct flow_on_cpu {
	struct row_place row[FLOW_RULES_MAX];
	struct offer *offers[FLOW_RULES_MAX]; /* from the contest's first bucket on */
	struct pass *passes;
	size_t pass_count, pass_capacity;
	uint64_t sent_ns; /* the last time */
	/* in batches */
	uint64_t *spent; /* by bucket, from the contest's first on */
	uint64_t newest; /* bucket seen, absolute */
};

struct flow {
	uint8_t frame[FRAME_BYTES_MAX];
	uint32_t frame_bytes;
	size_t resource;
	size_t rule[FLOW_RULES_MAX]; /* places */
	size_t rule_count;
	bool counts_bytes;
	bool has_other_limit;	/* rule 1 limits it first: rule 0 is never full */
	uint64_t passed_before; /* while rows were made */
	struct flow_on_cpu on[CPUS];
};

struct contest {
	struct rig rig;
	struct flow *flows;
	size_t flow_count;
	int cpu[CPUS];
	uint64_t start_ns, end_ns;
	uint64_t windows, windows_left_out;
};

static const enum weir_window_kind kinds[] = {WEIR_WINDOW_LEAP, WEIR_WINDOW_STRICT, WEIR_WINDOW_SMOOTH};

struct contestant {
	struct contest *contest;
	int which;    /* of contest.cpu */
	void *values; /* all CPUs' copies of a map element */
	int err;
	pthread_t thread;
};

/* ---- set-up ---- */

static void contest_begin(struct contest *contest)
{
	rig_require(CPUS);
	memset(contest, 0, sizeof(*contest));
	rig_begin(&contest->rig, 4096);
	rig_cpus(contest->cpu, CPUS);
}

/* One more flow: a resource of its own, keyed by source or not. Rules are added by contest_rule. */
static void contest_flow(struct contest *contest, bool is_keyed)
{
	uint16_t port = 1000 + contest->flow_count;
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", port, 0);
	uint8_t frame[PACKET_BYTES_MAX];
	struct flow *flow = weir_array_add((void **)&contest->flows, contest->flow_count, sizeof(*flow));

	assert_non_null(flow);
	contest->flow_count++;
	/* Padding after the IP packet makes a frame of any length of it. */
	spec.padding_bytes = FRAME_BYTES_MAX;
	packet_build(&spec, frame);
	memcpy(flow->frame, frame, FRAME_BYTES_MAX);
	flow->frame_bytes = FRAME_BYTES_MIN;
	flow->resource = rig_resource(&contest->rig, port, is_keyed ? WEIR_KEY_SOURCE : 0);
}

static struct weir_ruleset_rule *contest_rule(struct contest *contest, enum weir_window_kind window, uint64_t limit,
					      uint64_t interval_ns, uint32_t samples)
{
	struct flow *flow = &contest->flows[contest->flow_count - 1];

	assert_true(flow->rule_count < FLOW_RULES_MAX);
	flow->rule[flow->rule_count++] = contest->rig.ruleset->rule_count;
	return rig_rule(&contest->rig, flow->resource, window, limit, interval_ns, samples);
}

static const struct weir_rule *loaded_rule(const struct contest *contest, const struct flow *flow, size_t rule)
{
	return &contest->rig.image->rules[flow->rule[rule]];
}

static const struct weir_ruleset_rule *written_rule(const struct contest *contest, const struct flow *flow, size_t rule)
{
	return &contest->rig.ruleset->rules[flow->rule[rule]];
}

static uint64_t limit_of(const struct contest *contest, const struct flow *flow, size_t rule)
{
	return written_rule(contest, flow, rule)->threshold_micro / WEIR_MICRO;
}

/* ---- rows ---- */

static enum weir_instance_map map_of(enum weir_storage storage)
{
	return storage == WEIR_STORAGE_LONE   ? WEIR_MAP_LONE_ROWS
	       : storage == WEIR_STORAGE_WIDE ? WEIR_MAP_WIDE_FLOWS
					      : WEIR_MAP_NARROW_FLOWS;
}

/* One CPU's copy of an element of a table; *values is room for those of all. NULL when it cannot be read. */
static const uint8_t *read_element(const struct rig *rig, enum weir_storage storage, uint32_t key, int cpu,
				   void *values)
{
	size_t element_bytes = storage == WEIR_STORAGE_LONE ? sizeof(struct weir_wide_row) : WEIR_CHUNK_BYTES;

	if (bpf_map_lookup_elem(weir_object_map_fd(rig->object, map_of(storage)), &key, values))
		return NULL;
	return (uint8_t *)values + element_bytes * cpu;
}

/* A row in words that fit both formats. */
struct row {
	uint64_t newest; /* absolute bucket */
	uint64_t cell[WEIR_RING_CELLS];
	uint64_t lease;
	uint32_t tag;
};

static void decode_row(const uint8_t *bytes, const struct weir_rule *rule, struct row *ret_row)
{
	if (rule->storage == WEIR_STORAGE_NARROW) {
		const struct weir_narrow_row *row = (const void *)bytes;

		ret_row->tag = row->tag;
		ret_row->newest = rule->base_bucket + row->newest;
		ret_row->lease = row->lease & WEIR_NARROW_FULL ? 0 : row->lease;
		for (int i = 0; i < WEIR_RING_CELLS; i++)
			ret_row->cell[i] = row->cell[i] & ~WEIR_NARROW_UNSPENT;
	} else {
		const struct weir_wide_row *row = (const void *)bytes;

		ret_row->tag = row->tag;
		ret_row->newest = rule->base_bucket + row->newest;
		ret_row->lease = row->lease;
		for (int i = 0; i < WEIR_RING_CELLS; i++)
			ret_row->cell[i] = row->cell[i] & ~WEIR_WIDE_UNSPENT;
	}
}

/* Units spent in a bucket that the row still holds. */
static uint64_t row_spent(const struct row *row, const struct weir_rule *rule, uint64_t bucket)
{
	uint64_t units = row->cell[(bucket - rule->base_bucket) % WEIR_RING_CELLS];

	return bucket == row->newest ? units - row->lease : units;
}

static int read_row(const struct contest *contest, const struct flow *flow, size_t rule, int which, void *values,
		    struct row *ret_row)
{
	const struct weir_rule *loaded = loaded_rule(contest, flow, rule);
	const struct row_place *place = &flow->on[which].row[rule];
	const uint8_t *element;

	element = read_element(&contest->rig, loaded->storage, place->chunk, contest->cpu[which], values);
	if (!element)
		return -EIO;
	decode_row(element + place->offset, loaded, ret_row);
	return 0;
}

static void *values_new(void)
{
	void *values = malloc((size_t)weir_host_cpus() * WEIR_CHUNK_BYTES);

	assert_non_null(values);
	return values;
}

/* Rows with this rule's timing that are no flow's yet: the one that a packet just made. */
static bool row_is_new(const struct contest *contest, const struct weir_rule *rule, int which, struct row_place place)
{
	for (size_t i = 0; i < contest->flow_count; i++) {
		const struct flow *flow = &contest->flows[i];

		for (size_t r = 0; r < flow->rule_count; r++)
			if (loaded_rule(contest, flow, r)->storage == rule->storage &&
			    !memcmp(&flow->on[which].row[r], &place, sizeof(place)))
				return false;
	}
	return true;
}

static void find_row(struct contest *contest, struct flow *flow, size_t rule, int which, void *values)
{
	const struct weir_rule *loaded = loaded_rule(contest, flow, rule);
	bool is_narrow = loaded->storage == WEIR_STORAGE_NARROW;
	size_t row_bytes = is_narrow ? sizeof(struct weir_narrow_row) : sizeof(struct weir_wide_row);
	uint32_t chunks = 4096 * row_bytes / WEIR_CHUNK_BYTES;

	if (loaded->storage == WEIR_STORAGE_LONE) {
		flow->on[which].row[rule] = (struct row_place){.chunk = loaded->slot};
		return;
	}
	for (uint32_t chunk = 0; chunk < chunks; chunk++) {
		const uint8_t *element =
			read_element(&contest->rig, loaded->storage, chunk, contest->cpu[which], values);

		assert_non_null(element);
		for (uint32_t offset = 0; offset < WEIR_CHUNK_BYTES; offset += row_bytes) {
			const struct weir_wide_row *wide = (const void *)(element + offset);
			struct row_place place = {chunk, offset};
			uint32_t timing = is_narrow ? wide->tag & (WEIR_TIMINGS_NARROW - 1) : wide->timing;

			if (wide->tag && timing == loaded->timing && row_is_new(contest, loaded, which, place)) {
				flow->on[which].row[rule] = place;
				return;
			}
		}
	}
	fail_msg("a packet was judged, and made no row");
}

/* Send one packet of each flow on each CPU, and find the rows that this made. */
static void make_rows(struct contest *contest)
{
	_cleanup_(weir_freep) void *values = values_new();
	cpu_set_t before;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (int which = 0; which < CPUS; which++) {
		rig_pin(contest->cpu[which]);
		for (size_t i = 0; i < contest->flow_count; i++)
			memset(contest->flows[i].on[which].row, 0xff, sizeof(contest->flows[i].on[which].row));
		for (size_t i = 0; i < contest->flow_count; i++) {
			struct flow *flow = &contest->flows[i];

			flow->passed_before +=
				weir_object_judge(contest->rig.object, flow->frame, flow->frame_bytes) == XDP_PASS;
			for (size_t rule = 0; rule < flow->rule_count; rule++)
				find_row(contest, flow, rule, which, values);
		}
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* A machine that is busy with other things may never send enough: then "not less" was not seen to hold. */
static bool saturation_missed;

static int check_saturation(void **state)
{
	bool missed = saturation_missed;

	saturation_missed = false;
	if (missed)
		print_message("this machine was too busy to saturate a limit: only 'never more' was tested\n");
	return 0;
}

static uint64_t first_bucket(const struct contest *contest, const struct weir_rule *rule)
{
	return contest->start_ns / rule->bucket_ns;
}

/* A last run, or batch, may be held up: admissions count up to this long after the end. */
#define OVERTIME_NS (20 * SECOND)

static uint64_t bucket_count(const struct contest *contest, const struct weir_rule *rule)
{
	return (contest->end_ns + OVERTIME_NS) / rule->bucket_ns - first_bucket(contest, rule) + 1;
}

static void contest_load(struct contest *contest)
{
	rig_load(&contest->rig, false);
	rig_attach(&contest->rig);
}

static void make_logs(struct contest *contest)
{
	for (size_t i = 0; i < contest->flow_count; i++)
		for (size_t rule = 0; rule < contest->flows[i].rule_count; rule++)
			for (int which = 0; which < CPUS; which++) {
				struct flow *flow = &contest->flows[i];
				uint64_t buckets = bucket_count(contest, loaded_rule(contest, flow, rule));

				flow->on[which].offers[rule] = calloc(buckets, sizeof(struct offer));
				assert_non_null(flow->on[which].offers[rule]);
			}
}

static void free_logs(struct contest *contest)
{
	for (size_t i = 0; i < contest->flow_count; i++)
		for (int which = 0; which < CPUS; which++) {
			for (size_t rule = 0; rule < FLOW_RULES_MAX; rule++)
				free(contest->flows[i].on[which].offers[rule]);
			free(contest->flows[i].on[which].passes);
			free(contest->flows[i].on[which].spent);
		}
}

static void contest_end(struct contest *contest)
{
	free_logs(contest);
	free(contest->flows);
	rig_end(&contest->rig);
}

/* ---- the contest ---- */

/* A pause in sending longer than this part of a bucket leaves room for doubt whether it was saturated. */
#define HELD_UP_PART 8

static void note_offer(const struct contest *contest, struct flow *flow, int which, uint64_t before_ns,
		       uint64_t after_ns, uint64_t units)
{
	struct flow_on_cpu *on = &flow->on[which];

	for (size_t rule = 0; rule < flow->rule_count; rule++) {
		const struct weir_rule *loaded = loaded_rule(contest, flow, rule);
		uint64_t first = first_bucket(contest, loaded);
		uint64_t last = (before_ns < contest->end_ns ? before_ns : contest->end_ns) / loaded->bucket_ns;

		on->offers[rule][last - first].units += units;
		on->offers[rule][last - first].last_ns = before_ns;
		if (after_ns - on->sent_ns > loaded->bucket_ns / HELD_UP_PART)
			for (uint64_t bucket = on->sent_ns / loaded->bucket_ns;
			     bucket <= after_ns / loaded->bucket_ns && bucket - first < bucket_count(contest, loaded);
			     bucket++)
				on->offers[rule][bucket - first].was_held_up = true;
	}
	on->sent_ns = before_ns;
}

static int note_pass(const struct contest *contest, struct flow *flow, int which, uint64_t before_ns, uint64_t after_ns,
		     uint64_t units, void *values)
{
	struct flow_on_cpu *on = &flow->on[which];
	struct pass *pass;

	if (on->pass_count == on->pass_capacity) {
		on->pass_capacity = on->pass_capacity ? 2 * on->pass_capacity : 4096;
		pass = realloc(on->passes, on->pass_capacity * sizeof(*pass));
		if (!pass)
			return -ENOMEM;
		on->passes = pass;
	}
	pass = &on->passes[on->pass_count++];
	*pass = (struct pass){.before_ns = before_ns, .after_ns = after_ns, .units = units};
	for (size_t rule = 0; rule < flow->rule_count; rule++) {
		uint64_t bucket_ns = loaded_rule(contest, flow, rule)->bucket_ns;
		uint64_t earliest = (before_ns - CLOCK_SLACK_NS) / bucket_ns;
		struct row row;

		pass->bucket[rule] = earliest;
		if ((after_ns + CLOCK_SLACK_NS) / bucket_ns == earliest)
			continue;
		if (read_row(contest, flow, rule, which, values, &row))
			return -EIO;
		pass->bucket[rule] = row.newest;
	}
	return 0;
}

/* Send all flows in turn, as fast as it goes, until the end. */
static void *contestant_main(void *data)
{
	struct contestant *self = data;
	struct contest *contest = self->contest;
	uint64_t before_ns, after_ns;
	uint32_t frames = 0;

	do {
		before_ns = weir_host_now_ns();
	} while (before_ns < contest->start_ns);
	for (size_t i = 0; i < contest->flow_count; i++)
		contest->flows[i].on[self->which].sent_ns = before_ns;

	for (size_t i = 0; before_ns < contest->end_ns; i = i + 1 < contest->flow_count ? i + 1 : 0) {
		struct flow *flow = &contest->flows[i];
		uint32_t frame_bytes = flow->frame_bytes;
		int action;

		if (flow->counts_bytes) /* all lengths in turn: 37 and the number of lengths have no common factor */
			frame_bytes += frames++ * 37 % (FRAME_BYTES_MAX - FRAME_BYTES_MIN + 1);
		action = weir_object_judge(contest->rig.object, flow->frame, frame_bytes);
		after_ns = weir_host_now_ns();
		if (action < 0)
			self->err = action;
		note_offer(contest, flow, self->which, before_ns, after_ns, flow->counts_bytes ? frame_bytes : 1);
		if (action == XDP_PASS)
			self->err = note_pass(contest, flow, self->which, before_ns, after_ns,
					      flow->counts_bytes ? frame_bytes : 1, self->values);
		if (self->err)
			break;
		before_ns = after_ns;
	}
	return NULL;
}

/* Start a thread on its CPU, before all ordinary processes where that is allowed: pauses spoil the contest. */
static void contestant_start(struct contestant *contestant, void *(*run)(void *))
{
	const struct sched_param first = {.sched_priority = 1};
	pthread_attr_t attributes;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(contestant->contest->cpu[contestant->which], &set);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &first);
	if (pthread_create(&contestant->thread, &attributes, run, contestant)) {
		pthread_attr_setinheritsched(&attributes, PTHREAD_INHERIT_SCHED);
		assert_int_equal(pthread_create(&contestant->thread, &attributes, run, contestant), 0);
	}
	pthread_attr_destroy(&attributes);
}

/* Run one thread on each CPU, and wait for both. Returns what kept one of them from its end, or 0. */
static int contest_run(struct contest *contest, void *(*run)(void *))
{
	struct contestant contestants[CPUS] = {};

	for (int which = 0; which < CPUS; which++) {
		contestants[which].contest = contest;
		contestants[which].which = which;
		contestants[which].values = values_new();
		contestant_start(&contestants[which], run);
	}
	for (int which = 0; which < CPUS; which++) {
		pthread_join(contestants[which].thread, NULL);
		free(contestants[which].values);
	}
	return contestants[0].err ? contestants[0].err : contestants[1].err;
}

/* ---- the verdict ---- */

/* All CPUs' passes of a flow, sorted. */
struct passes {
	struct pass *pass;
	size_t count;
};

static int by_before(const void *left, const void *right)
{
	const struct pass *a = left, *b = right;

	return a->before_ns < b->before_ns ? -1 : a->before_ns > b->before_ns;
}

static int by_after(const void *left, const void *right)
{
	const struct pass *a = left, *b = right;

	return a->after_ns < b->after_ns ? -1 : a->after_ns > b->after_ns;
}

static struct passes gather(const struct flow *flow, int (*compare)(const void *, const void *))
{
	struct passes all = {};

	for (int which = 0; which < CPUS; which++)
		all.count += flow->on[which].pass_count;
	all.pass = calloc(all.count + 1, sizeof(*all.pass));
	assert_non_null(all.pass);
	all.count = 0;
	for (int which = 0; which < CPUS; which++) {
		const struct flow_on_cpu *on = &flow->on[which];

		if (on->pass_count)
			memcpy(all.pass + all.count, on->passes, on->pass_count * sizeof(*all.pass));
		all.count += on->pass_count;
	}
	qsort(all.pass, all.count, sizeof(*all.pass), compare);
	return all;
}

static const char *kind_name(enum weir_window_kind kind)
{
	return kind == WEIR_WINDOW_LEAP ? "leap" : kind == WEIR_WINDOW_STRICT ? "strict" : "smooth";
}

/* A flow under one of its rules, and what was admitted in each bucket from the contest's first on. */
struct account {
	const struct contest *contest;
	const struct flow *flow;
	size_t rule;
	const struct weir_rule *loaded;
	uint64_t limit, first, buckets;
	uint64_t *units;
};

static uint64_t window_units(const struct account *account, const uint64_t *units, uint64_t bucket, uint32_t cells)
{
	uint64_t sum = 0;

	for (uint32_t age = 0; age < cells && age <= bucket; age++)
		sum += units[bucket - age];
	return sum;
}

static void fail_window(const struct account *account, const char *what, uint64_t bucket, uint64_t sum)
{
	fail_msg("%s limit %" PRIu64 " in %" PRIu64 " us: %s bucket %" PRIu64 " hold %" PRIu64,
		 kind_name(account->loaded->window), account->limit,
		 written_rule(account->contest, account->flow, account->rule)->interval_ns / 1000, what, bucket, sum);
}

/* No window on the grid holds more than the limit. A smooth one looks at its oldest bucket in part only. */
static void check_grid(const struct account *account)
{
	uint32_t cells = account->loaded->window_cells - (account->loaded->window == WEIR_WINDOW_SMOOTH);

	for (uint64_t bucket = 0; bucket < account->buckets; bucket++) {
		uint64_t sum = window_units(account, account->units, bucket, cells);

		if (sum > account->limit)
			fail_window(account, "the buckets up to", bucket, sum);
	}
}

/* Strict: no interval holds more than the limit, wherever it starts. It fills up soonest at an admission. */
static void check_any_interval(const struct account *account)
{
	uint64_t interval_ns = written_rule(account->contest, account->flow, account->rule)->interval_ns;
	struct passes starts = gather(account->flow, by_before), ends = gather(account->flow, by_after);
	uint64_t ended = 0, begun = 0;
	size_t end = 0;

	for (size_t start = 0; start < starts.count; start++) {
		uint64_t until_ns = starts.pass[start].before_ns + interval_ns - 2 * CLOCK_SLACK_NS;

		for (; end < ends.count && ends.pass[end].after_ns < until_ns; end++)
			ended += ends.pass[end].units;
		/* Units that ended before `until`, less those that did not surely begin in the interval. */
		if (ended > begun + account->limit)
			fail_window(account, "the interval from within", starts.pass[start].bucket[account->rule],
				    ended - begun);
		begun += starts.pass[start].units;
	}
	free(starts.pass);
	free(ends.pass);
}

/* Smooth: at each admission, what was surely admitted before and still counts, and the packet, is within the limit. */
static void check_weighed(const struct account *account)
{
	struct passes starts = gather(account->flow, by_before), ends = gather(account->flow, by_after);
	_cleanup_(weir_freep) uint64_t *units = calloc(account->buckets, sizeof(*units));
	uint64_t bucket_ns = account->loaded->bucket_ns;
	uint32_t whole = account->loaded->window_cells - 1;
	size_t end = 0;

	assert_non_null(units);
	for (size_t start = 0; start < starts.count; start++) {
		const struct pass *pass = &starts.pass[start];
		uint64_t bucket = pass->bucket[account->rule] - account->first;
		uint64_t into_ns = pass->after_ns + CLOCK_SLACK_NS - pass->bucket[account->rule] * bucket_ns;
		uint64_t sum;

		for (; end < ends.count && ends.pass[end].after_ns < pass->before_ns; end++)
			units[ends.pass[end].bucket[account->rule] - account->first] += ends.pass[end].units;
		sum = window_units(account, units, bucket, whole) + pass->units;
		if (bucket >= whole && into_ns < bucket_ns)
			sum += weir_smooth_share(units[bucket - whole], bucket_ns, into_ns);
		if (sum > account->limit)
			fail_window(account, "with an admission in it, the window at", bucket, sum);
	}
	free(starts.pass);
	free(ends.pass);
}

/* Every CPU sent without a pause in this bucket, and together twice the limit. */
static bool was_saturated(const struct account *account, uint64_t bucket)
{
	uint64_t units = 0;

	for (int which = 0; which < CPUS; which++) {
		const struct offer *offer = &account->flow->on[which].offers[account->rule][bucket];

		if (offer->was_held_up)
			return false;
		units += offer->units;
	}
	return units >= 2 * account->limit + 100;
}

/* What a smooth window still counted of its oldest bucket when the last packet of this one was sent. */
static uint64_t last_share(const struct account *account, uint64_t bucket)
{
	uint64_t bucket_ns = account->loaded->bucket_ns, end_ns = (account->first + bucket + 1) * bucket_ns;
	uint32_t whole = account->loaded->window_cells - 1;
	uint64_t last_ns = 0;

	if (account->loaded->window != WEIR_WINDOW_SMOOTH || bucket < whole)
		return 0;
	for (int which = 0; which < CPUS; which++) {
		const struct offer *offer = &account->flow->on[which].offers[account->rule][bucket];

		last_ns = offer->last_ns > last_ns ? offer->last_ns : last_ns;
	}
	if (last_ns >= end_ns)
		last_ns = end_ns - 1;
	return weir_smooth_share(account->units[bucket - whole], bucket_ns, bucket_ns - (end_ns - last_ns));
}

/* In a smooth window units come free all the time, and the last packet may find some that the other CPU has just
 * leased: one, or 2 %.
 */
static bool is_short(const struct account *account, uint64_t sum)
{
	if (account->loaded->window == WEIR_WINDOW_SMOOTH)
		return sum * 100 < account->limit * 98 && sum + 1 < account->limit;
	return sum * 100 < account->limit * 99;
}

/* A thread made a pause in one of the window's buckets: what its CPU had leased there is unspent as long as the window
 * looks at it.
 */
static bool was_held_up_within(const struct account *account, uint64_t bucket, uint32_t cells)
{
	for (uint32_t age = 0; age < cells && age <= bucket; age++)
		for (int which = 0; which < CPUS; which++)
			if (account->flow->on[which].offers[account->rule][bucket - age].was_held_up)
				return true;
	return false;
}

/*
 * At the last packet of a saturated bucket the window is full. `unseen` windows may be short for a pause
 * that the threads could not see; and one in fifty, because a virtual CPU that is taken away while it holds
 * a lease leaves it unspent (seen: 296,527 of 300,000 bytes, once in seven runs).
 */
static void check_fullness(struct contest *contest, const struct account *account, uint64_t unseen)
{
	uint32_t cells = account->loaded->window_cells - (account->loaded->window == WEIR_WINDOW_SMOOTH);
	uint64_t bucket_ns = account->loaded->bucket_ns, checked = 0, too_short = 0, short_sum = 0, short_bucket = 0;

	/* The first bucket also holds what was sent while rows were made: begin with the window after it. */
	for (uint64_t bucket = account->loaded->window_cells; account->first + bucket + 1 < contest->end_ns / bucket_ns;
	     bucket++) {
		uint64_t sum = window_units(account, account->units, bucket, cells) + last_share(account, bucket);

		if (!was_saturated(account, bucket) ||
		    (is_short(account, sum) && was_held_up_within(account, bucket, cells))) {
			contest->windows_left_out++;
			continue;
		}
		checked++;
		if (is_short(account, sum)) {
			too_short++;
			short_sum = sum;
			short_bucket = bucket;
		}
	}
	contest->windows += checked;
	if (too_short > unseen + 1 + checked / 50)
		fail_window(account, "(too few) the buckets up to", short_bucket, short_sum);
}

/* The cells say what the threads saw. */
static void check_rows(const struct account *account)
{
	_cleanup_(weir_freep) void *values = values_new();

	for (int which = 0; which < CPUS; which++) {
		const struct flow_on_cpu *on = &account->flow->on[which];
		_cleanup_(weir_freep) uint64_t *units = calloc(account->buckets, sizeof(*units));
		struct row row;

		assert_non_null(units);
		assert_int_equal(read_row(account->contest, account->flow, account->rule, which, values, &row), 0);
		for (size_t i = 0; i < on->pass_count; i++)
			units[on->passes[i].bucket[account->rule] - account->first] += on->passes[i].units;
		/* The first bucket also holds what was sent while rows were made. */
		for (uint64_t age = 0; age < WEIR_RING_CELLS && row.newest - age > account->first; age++)
			assert_int_equal(row_spent(&row, account->loaded, row.newest - age),
					 units[row.newest - age - account->first]);
	}
}

static void check_rule(struct contest *contest, const struct flow *flow, size_t rule)
{
	struct account account = {
		.contest = contest,
		.flow = flow,
		.rule = rule,
		.loaded = loaded_rule(contest, flow, rule),
		.limit = limit_of(contest, flow, rule),
	};

	account.first = first_bucket(contest, account.loaded);
	account.buckets = bucket_count(contest, account.loaded);
	account.units = calloc(account.buckets, sizeof(*account.units));
	assert_non_null(account.units);
	for (int which = 0; which < CPUS; which++)
		for (size_t i = 0; i < flow->on[which].pass_count; i++) {
			const struct pass *pass = &flow->on[which].passes[i];

			assert_in_range(pass->bucket[rule], account.first, account.first + account.buckets - 1);
			account.units[pass->bucket[rule] - account.first] += pass->units;
		}

	check_grid(&account);
	if (account.loaded->window == WEIR_WINDOW_STRICT)
		check_any_interval(&account);
	if (account.loaded->window == WEIR_WINDOW_SMOOTH)
		check_weighed(&account);
	if (!(flow->has_other_limit && rule == 0))
		check_fullness(contest, &account, 0);
	check_rows(&account);
	free(account.units);
}

static void contest_judge(struct contest *contest, const char *what)
{
	uint64_t offered = 0, passed = 0;

	for (size_t i = 0; i < contest->flow_count; i++) {
		const struct flow *flow = &contest->flows[i];
		uint64_t flow_passed = flow->passed_before;

		for (size_t rule = 0; rule < flow->rule_count; rule++)
			check_rule(contest, flow, rule);
		for (int which = 0; which < CPUS; which++)
			flow_passed += flow->on[which].pass_count;
		assert_int_equal(rig_passed(&contest->rig, flow->resource), flow_passed);
		passed += flow_passed;
		for (int which = 0; which < CPUS; which++)
			for (uint64_t b = 0; b < bucket_count(contest, loaded_rule(contest, flow, 0)); b++)
				offered += flow->on[which].offers[0][b].units;
	}
	print_message("%s: %" PRIu64 " offered in %" PRIu64 " ms, %" PRIu64 " packets passed; %" PRIu64
		      " windows full, %" PRIu64 " left out (not saturated)\n",
		      what, offered, (uint64_t)((contest->end_ns - contest->start_ns) / MS), passed, contest->windows,
		      contest->windows_left_out);
	saturation_missed |= contest->windows == 0;
}

/* Load what was described, race for this long, judge. */
static void contest_hold(struct contest *contest, const char *what, uint64_t duration_ns)
{
	contest_load(contest);
	make_rows(contest);
	contest->start_ns = weir_host_now_ns() + 5 * MS;
	contest->end_ns = contest->start_ns + duration_ns;
	make_logs(contest);
	assert_int_equal(contest_run(contest, contestant_main), 0);
	contest_judge(contest, what);
	contest_end(contest);
}

/* ---- in batches, for limits that single runs cannot reach ten times over ---- */

#define BATCH_PACKETS 300000 /* some 30 ms */

/* What the cells of this CPU's row say, for every bucket they hold; final for all but the newest. */
static int note_cells(const struct contest *contest, struct flow *flow, int which, void *values)
{
	const struct weir_rule *loaded = loaded_rule(contest, flow, 0);
	struct flow_on_cpu *on = &flow->on[which];
	uint64_t first = first_bucket(contest, loaded);
	struct row row;

	if (read_row(contest, flow, 0, which, values, &row))
		return -EIO;
	if (row.newest - on->newest >= WEIR_RING_CELLS)
		return -ESTALE; /* buckets came and went unseen: held up for longer than the ring */
	on->newest = row.newest;
	for (uint64_t age = 0; age < WEIR_RING_CELLS && row.newest - age >= first; age++)
		if (row.newest - age - first < bucket_count(contest, loaded))
			on->spent[row.newest - age - first] = row_spent(&row, loaded, row.newest - age);
	return 0;
}

/*
 * A call that repeats may sleep before or after its runs; only how long these took is told. So they were
 * surely under way from `duration` before its end to `duration` after its start, and the buckets that
 * ended then were being sent to.
 */
static void note_batch(const struct contest *contest, struct flow *flow, int which, uint64_t called_ns,
		       uint64_t returned_ns, uint64_t duration_ns)
{
	const struct weir_rule *loaded = loaded_rule(contest, flow, 0);
	uint64_t first = first_bucket(contest, loaded), sure_from_ns = returned_ns - duration_ns;
	uint64_t sure_to_ns = called_ns + duration_ns;

	for (uint64_t bucket = sure_from_ns / loaded->bucket_ns;
	     sure_from_ns < sure_to_ns && bucket * loaded->bucket_ns < sure_to_ns &&
	     bucket - first < bucket_count(contest, loaded);
	     bucket++) {
		uint64_t from_ns = bucket * loaded->bucket_ns, to_ns = from_ns + loaded->bucket_ns;
		struct offer *offer = &flow->on[which].offers[0][bucket - first];

		offer->was_held_up = to_ns > sure_to_ns;
		from_ns = from_ns > sure_from_ns ? from_ns : sure_from_ns;
		to_ns = to_ns < sure_to_ns ? to_ns : sure_to_ns;
		offer->units += (to_ns - from_ns) * BATCH_PACKETS / duration_ns;
		offer->last_ns = to_ns - loaded->bucket_ns / HELD_UP_PART; /* shorter pauses are not seen */
	}
}

static void *batch_main(void *data)
{
	struct contestant *self = data;
	struct contest *contest = self->contest;
	struct flow *flow = &contest->flows[0];
	uint64_t called_ns, returned_ns;

	do {
		called_ns = weir_host_now_ns();
	} while (called_ns < contest->start_ns);
	flow->on[self->which].newest = called_ns / loaded_rule(contest, flow, 0)->bucket_ns;

	while (called_ns < contest->end_ns && !self->err) {
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = flow->frame, .data_size_in = flow->frame_bytes,
			    .repeat = BATCH_PACKETS);

		self->err = bpf_prog_test_run_opts(weir_object_program_fd(contest->rig.object), &options);
		returned_ns = weir_host_now_ns();
		note_batch(contest, flow, self->which, called_ns, returned_ns,
			   (uint64_t)options.duration * BATCH_PACKETS);
		if (!self->err)
			self->err = note_cells(contest, flow, self->which, self->values);
		called_ns = weir_host_now_ns();
	}
	return NULL;
}

static void batch_judge(struct contest *contest, const char *what)
{
	struct flow *flow = &contest->flows[0];
	struct account account = {
		.contest = contest,
		.flow = flow,
		.loaded = loaded_rule(contest, flow, 0),
		.limit = limit_of(contest, flow, 0),
	};
	uint64_t offered = 0, counted = 0, passed = rig_passed(&contest->rig, flow->resource);

	account.first = first_bucket(contest, account.loaded);
	account.buckets = bucket_count(contest, account.loaded);
	account.units = calloc(account.buckets, sizeof(*account.units));
	assert_non_null(account.units);
	for (int which = 0; which < CPUS; which++)
		for (uint64_t bucket = 0; bucket < account.buckets; bucket++) {
			account.units[bucket] += flow->on[which].spent[bucket];
			counted += flow->on[which].spent[bucket];
			offered += flow->on[which].offers[0][bucket].units;
		}
	/* The counters and the windows agree; what passed while rows were made may lie before the first bucket. */
	assert_in_range(counted, passed - flow->passed_before, passed);
	check_grid(&account);
	check_fullness(contest, &account, 1);
	print_message("%s, %s: more than %" PRIu64 " offered in %" PRIu64 " ms, %" PRIu64 " passed; %" PRIu64
		      " windows full, %" PRIu64 " left out\n",
		      what, kind_name(account.loaded->window), offered,
		      (uint64_t)((contest->end_ns - contest->start_ns) / MS), passed, contest->windows,
		      contest->windows_left_out);
	saturation_missed |= contest->windows == 0;
	free(account.units);
}

/* One run, from a window that may hold something already. -ESTALE: a thread was held up longer than a row remembers. */
static int batch_run(struct contest *contest, uint64_t duration_ns)
{
	struct flow *flow = &contest->flows[0];

	flow->passed_before = rig_passed(&contest->rig, flow->resource);
	contest->start_ns = weir_host_now_ns() + 5 * MS;
	contest->end_ns = contest->start_ns + duration_ns;
	make_logs(contest);
	for (int which = 0; which < CPUS; which++) {
		uint64_t buckets = bucket_count(contest, loaded_rule(contest, flow, 0));

		/* No bucket was sent to all the time until a batch says so. */
		for (uint64_t bucket = 0; bucket < buckets; bucket++)
			flow->on[which].offers[0][bucket].was_held_up = true;
		flow->on[which].spent = calloc(buckets, sizeof(uint64_t));
		assert_non_null(flow->on[which].spent);
	}
	return contest_run(contest, batch_main);
}

#define BATCH_RUNS_MAX 8

/* The same in batches, for one flow with one rule. */
static void batch_hold(struct contest *contest, const char *what, uint64_t duration_ns)
{
	int err, runs = 0;

	contest_load(contest);
	make_rows(contest);
	while ((err = batch_run(contest, duration_ns)) == -ESTALE && ++runs < BATCH_RUNS_MAX) {
		print_message("%s: a thread was held up for longer than a row remembers: once more\n", what);
		free_logs(contest);
	}
	assert_int_equal(err, 0);
	batch_judge(contest, what);
	contest_end(contest);
}

/* ---- duels: both CPUs want the last units of a flow at the same instant ---- */

#define DUEL_SHOTS 3
#define DUEL_SPACING_NS 12000 /* shots of one flow are over before those of the next begin */
#define DUEL_LIMIT_MAX 3

static uint64_t wait_until(uint64_t due_ns)
{
	uint64_t now_ns;

	do {
		now_ns = weir_host_now_ns();
	} while (now_ns < due_ns);
	return now_ns;
}

static void shoot(struct contestant *self, struct flow *flow, uint64_t before_ns)
{
	struct contest *contest = self->contest;
	const struct weir_rule *loaded = loaded_rule(contest, flow, 0);
	int action = weir_object_judge(contest->rig.object, flow->frame, flow->frame_bytes);
	uint64_t after_ns = weir_host_now_ns(), bucket = before_ns / loaded->bucket_ns;

	if (action < 0)
		self->err = action;
	else if (action == XDP_PASS)
		self->err = note_pass(contest, flow, self->which, before_ns, after_ns, 1, self->values);
	if (after_ns / loaded->bucket_ns == bucket && after_ns < contest->end_ns) {
		struct offer *offer = &flow->on[self->which].offers[0][bucket - first_bucket(contest, loaded)];

		offer->units++;
		if (!offer->alone_ns)
			offer->last_ns = after_ns;
	}
}

/* From now on this thread takes what is left in the bucket, if that is not over. */
static void begin_alone(struct contestant *self, struct flow *flow, uint64_t bucket)
{
	const struct weir_rule *loaded = loaded_rule(self->contest, flow, 0);
	uint64_t now_ns = weir_host_now_ns();

	if (now_ns / loaded->bucket_ns == bucket)
		flow->on[self->which].offers[0][bucket - first_bucket(self->contest, loaded)].alone_ns = now_ns;
}

/*
 * Each bucket begins with a duel over every flow, at times that both threads know, the first of them at
 * the very edge. In its second half one thread alone takes what they left to each other.
 */
static void *duellist_main(void *data)
{
	struct contestant *self = data;
	struct contest *contest = self->contest;
	uint64_t bucket_ns = loaded_rule(contest, &contest->flows[0], 0)->bucket_ns;
	uint64_t edge_ns = (contest->start_ns / bucket_ns + 1) * bucket_ns;
	size_t round = 0;

	for (; edge_ns + 2 * bucket_ns < contest->end_ns && !self->err; edge_ns += bucket_ns, round++) {
		for (size_t i = 0; i < contest->flow_count && !self->err; i++) {
			struct flow *flow = &contest->flows[(i + round) % contest->flow_count];
			/* From 3 us before the edge to 3 us after it. */
			uint64_t now_ns = wait_until(edge_ns - 3000 + round % 13 * 500 + i * DUEL_SPACING_NS);

			for (int shot = 0; shot < DUEL_SHOTS; shot++, now_ns = weir_host_now_ns())
				shoot(self, flow, now_ns);
		}
		if (round % CPUS != (size_t)self->which)
			continue;
		wait_until(edge_ns + bucket_ns / 2);
		for (size_t i = 0; i < contest->flow_count; i++) {
			begin_alone(self, &contest->flows[i], edge_ns / bucket_ns);
			for (int shot = 0; shot <= DUEL_LIMIT_MAX; shot++)
				shoot(self, &contest->flows[i], weir_host_now_ns());
		}
	}
	return NULL;
}

/*
 * A duel at every edge of a bucket, one shot each, over flows in turn that have been silent for an interval:
 * one CPU's clock may still show the old bucket while the other counts in the new one.
 */
static void *edge_duellist_main(void *data)
{
	struct contestant *self = data;
	struct contest *contest = self->contest;
	uint64_t bucket_ns = loaded_rule(contest, &contest->flows[0], 0)->bucket_ns;
	uint64_t edge_ns = (contest->start_ns / bucket_ns + 1) * bucket_ns;

	for (size_t round = 0; edge_ns + bucket_ns < contest->end_ns && !self->err; edge_ns += bucket_ns, round++) {
		/* A run reads its clock within 3 us of being asked for: try all of them. */
		uint64_t now_ns = wait_until(edge_ns - 3000 + round * 37 % 3000);

		shoot(self, &contest->flows[round % contest->flow_count], now_ns);
	}
	return NULL;
}

/* All shots of the duel fell into this bucket, and one thread took what was left when the other's were over. */
static bool duel_was_regular(const struct flow *flow, uint64_t bucket)
{
	uint64_t shots = 0, over_ns = 0, alone_ns = 0;

	for (int which = 0; which < CPUS; which++) {
		const struct offer *offer = &flow->on[which].offers[0][bucket];

		shots += offer->units;
		over_ns = offer->last_ns > over_ns ? offer->last_ns : over_ns;
		alone_ns = offer->alone_ns > alone_ns ? offer->alone_ns : alone_ns;
	}
	return shots == CPUS * DUEL_SHOTS + DUEL_LIMIT_MAX + 1 && over_ns < alone_ns;
}

/* Never more than the limit; and exactly the limit, where the duel was as it was meant to be. */
static void duel_check(struct contest *contest, const struct flow *flow)
{
	struct account account = {
		.contest = contest,
		.flow = flow,
		.loaded = loaded_rule(contest, flow, 0),
		.limit = limit_of(contest, flow, 0),
	};

	account.first = first_bucket(contest, account.loaded);
	account.buckets = bucket_count(contest, account.loaded);
	account.units = calloc(account.buckets, sizeof(*account.units));
	assert_non_null(account.units);
	for (int which = 0; which < CPUS; which++)
		for (size_t i = 0; i < flow->on[which].pass_count; i++)
			account.units[flow->on[which].passes[i].bucket[0] - account.first]++;
	check_grid(&account);
	for (uint64_t bucket = 1; bucket < account.buckets; bucket++) {
		if (!duel_was_regular(flow, bucket)) {
			contest->windows_left_out +=
				flow->on[0].offers[0][bucket].units + flow->on[1].offers[0][bucket].units > 0;
			continue;
		}
		contest->windows++;
		if (account.units[bucket] != account.limit)
			fail_window(&account, "(too few) the bucket", bucket, account.units[bucket]);
	}
	free(account.units);
}

static void duel_hold(bool is_keyed, uint64_t interval_ns, size_t flow_count, enum weir_storage storage)
{
	struct contest contest;

	contest_begin(&contest);
	for (size_t i = 0; i < flow_count; i++) {
		contest_flow(&contest, is_keyed);
		contest_rule(&contest, WEIR_WINDOW_LEAP, 1 + i % DUEL_LIMIT_MAX, interval_ns, 1);
	}
	contest_load(&contest);
	for (size_t rule = 0; rule < flow_count; rule++)
		assert_int_equal(contest.rig.image->rules[rule].storage, storage);
	make_rows(&contest);
	contest.start_ns = weir_host_now_ns() + 5 * MS;
	contest.end_ns = contest.start_ns + 1500 * MS;
	make_logs(&contest);
	assert_int_equal(contest_run(&contest, duellist_main), 0);
	for (size_t i = 0; i < flow_count; i++)
		duel_check(&contest, &contest.flows[i]);
	print_message("%" PRIu64 " duels, %" PRIu64 " more that missed their bucket\n", contest.windows,
		      contest.windows_left_out);
	saturation_missed |= contest.windows == 0;
	contest_end(&contest);
}

/* Limit one in ten buckets, of 1 ms each. */
static void duels_at_the_edge_of_a_bucket_have_one_winner(void **state)
{
	uint64_t windows = 0;
	struct contest contest;

	contest_begin(&contest);
	for (size_t i = 0; i < 12; i++) {
		contest_flow(&contest, true);
		contest_rule(&contest, kinds[i % ARRAY_SIZE(kinds)], 1, 10 * MS, 10);
	}
	contest_load(&contest);
	make_rows(&contest);
	contest.start_ns = weir_host_now_ns() + 5 * MS;
	contest.end_ns = contest.start_ns + 3000 * MS;
	make_logs(&contest);
	assert_int_equal(contest_run(&contest, edge_duellist_main), 0);
	for (size_t i = 0; i < contest.flow_count; i++) {
		check_rule(&contest, &contest.flows[i], 0);
		windows += contest.flows[i].on[0].pass_count + contest.flows[i].on[1].pass_count;
	}
	print_message("%" PRIu64 " duels at an edge\n", windows);
	assert_true(windows > 0);
	contest_end(&contest);
}

static void narrow_rows_let_exactly_the_limit_win_a_duel(void **state)
{
	duel_hold(true, 50 * MS, 400, WEIR_STORAGE_NARROW);
}

static void wide_rows_let_exactly_the_limit_win_a_duel(void **state)
{
	duel_hold(true, 10 * MS, 150, WEIR_STORAGE_WIDE);
}

static void whole_resources_let_exactly_the_limit_win_a_duel(void **state)
{
	duel_hold(false, 10 * MS, 150, WEIR_STORAGE_LONE);
}

/* ---- meters: what both CPUs let pass on one resource, another is judged by; under the virtual clock ---- */

#define METER_PORT 53 /* of the resource that is referred to, and has no rule; the next is that of the rule */
#define METER_LIMIT 12
#define METER_ROUNDS 1000

static atomic_uint meter_arrived, meter_wrong;

static bool meter_sends(const struct contestant *self, uint16_t port, uint16_t source)
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", port, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame);

	memcpy(spec.source, &source, sizeof(source));
	options.data_size_in = packet_build(&spec, frame);
	/* Without weir_object_judge(), which puts the lab in order: that is shared. */
	if (bpf_prog_test_run_opts(weir_object_program_fd(self->contest->rig.object), &options))
		return false;
	return options.retval == XDP_PASS;
}

/* In a round both count at once, together one less than the limit, or the limit; then each asks. Flows are new now and
 * then.
 */
static void *meter_main(void *data)
{
	struct contestant *self = data;
	volatile struct weir_lab *lab = weir_object_lab(self->contest->rig.object);

	for (uint32_t round = 0; round < METER_ROUNDS; round++) {
		uint32_t sum = METER_LIMIT - 1 + round % 2, part = round / 2 % METER_LIMIT;

		rig_line_up(&meter_arrived, CPUS, 3 * round);
		if (self->which == 0)
			lab->clock_ns += 2 * SECOND + round % WEIR_RING_CELLS * 100 * MS;
		rig_line_up(&meter_arrived, CPUS, 3 * round + 1);
		for (uint32_t i = 0; i < (self->which ? part : sum - part); i++)
			meter_wrong += !meter_sends(self, METER_PORT, 1 + round / 4);
		rig_line_up(&meter_arrived, CPUS, 3 * round + 2);
		meter_wrong += meter_sends(self, METER_PORT + 1, 1 + round / 4) != (sum < METER_LIMIT);
	}
	return NULL;
}

static void associated_rules_go_by_what_passed_on_both_cpus(void **state)
{
	for (int is_keyed = 0; is_keyed <= 1; is_keyed++)
		for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			uint32_t key_fields = is_keyed ? WEIR_KEY_SOURCE : 0;
			struct weir_ruleset_rule *rule;
			struct contest contest;
			size_t referred;

			contest_begin(&contest);
			referred = rig_resource(&contest.rig, METER_PORT, key_fields);
			rule = rig_rule(&contest.rig, rig_resource(&contest.rig, METER_PORT + 1, key_fields),
					kinds[kind], METER_LIMIT, SECOND, 10);
			rule->relation = WEIR_RELATION_ASSOCIATED;
			rule->ref_resource = referred;
			rig_load(&contest.rig, true);
			weir_object_lab(contest.rig.object)->clock_ns = RIG_START_NS;
			rig_attach(&contest.rig);
			meter_arrived = meter_wrong = 0;
			assert_int_equal(contest_run(&contest, meter_main), 0);
			assert_int_equal(meter_wrong, 0);
			contest_end(&contest);
		}
}

/* ---- claims ---- */

/* A flow of each kind with each of these limits. */
static void add_flows(struct contest *contest, bool is_keyed, const uint64_t *limits, size_t limit_count,
		      uint64_t interval_ns, uint32_t samples)
{
	for (size_t i = 0; i < limit_count; i++)
		for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			contest_flow(contest, is_keyed);
			contest_rule(contest, kinds[kind], limits[i], interval_ns, samples);
		}
}

static void narrow_rows_are_exact(void **state)
{
	const uint64_t limits[] = {1, 10, 1000};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, true, limits, ARRAY_SIZE(limits), 500 * MS, 10);
	contest_hold(&contest, "narrow, 1 10 1000 in 500 ms", 1500 * MS);
}

static void wide_rows_are_exact_over_thousands_of_buckets(void **state)
{
	const uint64_t limits[] = {1, 10, 100};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, true, limits, ARRAY_SIZE(limits), 10 * MS, 10);
	contest_hold(&contest, "wide, 1 10 100 in 10 ms", 2000 * MS);
}

static void whole_resources_are_exact(void **state)
{
	const uint64_t limits[] = {1, 10, 1000};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, false, limits, ARRAY_SIZE(limits), 50 * MS, 10);
	contest_hold(&contest, "unkeyed, 1 10 1000 in 50 ms", 1500 * MS);
}

static void wide_rows_are_exact_with_many_leases(void **state)
{
	const uint64_t limits[] = {2000};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, true, limits, ARRAY_SIZE(limits), 100 * MS, 5);
	contest_hold(&contest, "wide, 2000 in 100 ms", 1000 * MS);
}

static void byte_limits_are_exact(void **state)
{
	struct contest contest;

	contest_begin(&contest);
	for (int is_keyed = 0; is_keyed <= 1; is_keyed++)
		for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			contest_flow(&contest, is_keyed);
			contest_rule(&contest, kinds[kind], 300000, 50 * MS, 5)->counts_bytes = true;
			contest.flows[contest.flow_count - 1].counts_bytes = true;
		}
	contest_hold(&contest, "300000 bytes in 50 ms", 1500 * MS);
}

/* Both must admit, and neither may admit too many: a narrow and a wide row, a wide and a lone one. */
static void two_rules_on_a_packet_are_exact(void **state)
{
	struct contest contest;

	contest_begin(&contest);
	for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		contest_flow(&contest, true);
		contest_rule(&contest, kinds[kind], 2000, 500 * MS, 10);
		contest_rule(&contest, kinds[kind], 20, 20 * MS, 10);
		contest.flows[contest.flow_count - 1].has_other_limit = true;
		contest_flow(&contest, false);
		contest_rule(&contest, kinds[kind], 1000, 50 * MS, 5);
		contest_rule(&contest, kinds[kind], 100, 10 * MS, 5);
		contest.flows[contest.flow_count - 1].has_other_limit = true;
	}
	contest_hold(&contest, "two rules on a packet", 1500 * MS);
}

/* The quick admission holds the packet's unit in the first rule's lease until the second has admitted it. */
static void two_rules_with_narrow_rows_are_exact(void **state)
{
	const uint64_t limits[] = {1, 7, 200};
	struct contest contest;

	contest_begin(&contest);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			contest_flow(&contest, true);
			contest_rule(&contest, kinds[kind], 10 * limits[i], 1000 * MS, 10);
			contest_rule(&contest, kinds[kind], limits[i], 250 * MS, 5);
			contest.flows[contest.flow_count - 1].has_other_limit = true;
		}
	contest_hold(&contest, "two rules with narrow rows", 1500 * MS);
}

static void narrow_rows_are_exact_at_their_largest_limit(void **state)
{
	for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		struct contest contest;

		contest_begin(&contest);
		contest_flow(&contest, true);
		contest_rule(&contest, kinds[kind], WEIR_NARROW_THRESHOLD_MAX, 250 * MS, 5);
		batch_hold(&contest, "narrow, 32000 in 250 ms", 800 * MS);
	}
}

static void wide_rows_are_exact_at_100000_a_second(void **state)
{
	for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		struct contest contest;

		contest_begin(&contest);
		contest_flow(&contest, true);
		contest_rule(&contest, kinds[kind], 50000, 500 * MS, 10);
		batch_hold(&contest, "wide, 50000 in 500 ms", 1000 * MS);
	}
}

/* Keyed and not: the same rows, found in two ways. */
static void limits_of_a_million_a_second_are_exact(void **state)
{
	for (int is_keyed = 0; is_keyed <= 1; is_keyed++)
		for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			struct contest contest;

			contest_begin(&contest);
			contest_flow(&contest, is_keyed);
			contest_rule(&contest, kinds[kind], 100000, 100 * MS, 5);
			batch_hold(&contest, is_keyed ? "wide, 100000 in 100 ms" : "unkeyed, 100000 in 100 ms",
				   500 * MS);
		}
}

static int enter_own_network(void **state)
{
	/* Attaching is to a device that nobody else has: the loopback of a namespace of our own. */
	return geteuid() == 0 ? unshare(CLONE_NEWNET) : 0;
}

#define CPUS_TEST(name) cmocka_unit_test_teardown(name, check_saturation)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CPUS_TEST(duels_at_the_edge_of_a_bucket_have_one_winner),
		CPUS_TEST(narrow_rows_let_exactly_the_limit_win_a_duel),
		CPUS_TEST(wide_rows_let_exactly_the_limit_win_a_duel),
		CPUS_TEST(whole_resources_let_exactly_the_limit_win_a_duel),
		CPUS_TEST(narrow_rows_are_exact),
		CPUS_TEST(narrow_rows_are_exact_at_their_largest_limit),
		CPUS_TEST(wide_rows_are_exact_over_thousands_of_buckets),
		CPUS_TEST(whole_resources_are_exact),
		CPUS_TEST(wide_rows_are_exact_with_many_leases),
		CPUS_TEST(wide_rows_are_exact_at_100000_a_second),
		CPUS_TEST(limits_of_a_million_a_second_are_exact),
		CPUS_TEST(byte_limits_are_exact),
		CPUS_TEST(two_rules_on_a_packet_are_exact),
		CPUS_TEST(two_rules_with_narrow_rows_are_exact),
		CPUS_TEST(associated_rules_go_by_what_passed_on_both_cpus),
	};

	return cmocka_run_group_tests(tests, enter_own_network, NULL);
}
