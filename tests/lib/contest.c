// SPDX-License-Identifier: GPL-2.0-only
#include "contest.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "claims.h"
#include "base/util.h"
#include "host/host.h"
#include "weir_window.h"

const enum weir_window_kind contest_kinds[3] = {WEIR_WINDOW_LEAP, WEIR_WINDOW_STRICT, WEIR_WINDOW_SMOOTH};

/* ---- set-up ---- */

void contest_begin(struct contest *contest)
{
	rig_require(CPUS);
	memset(contest, 0, sizeof(*contest));
	rig_begin(&contest->rig, 4096);
	rig_cpus(contest->cpu, CPUS);
}

void contest_flow(struct contest *contest, bool is_keyed)
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

struct weir_ruleset_rule *contest_rule(struct contest *contest, enum weir_window_kind window, uint64_t limit,
				       uint64_t interval_ns, uint32_t samples)
{
	struct flow *flow = &contest->flows[contest->flow_count - 1];

	assert_true(flow->rule_count < FLOW_RULES_MAX);
	flow->rule[flow->rule_count++] = contest->rig.ruleset->rule_count;
	return rig_rule(&contest->rig, flow->resource, window, limit, interval_ns, samples);
}

const struct weir_rule *contest_loaded_rule(const struct contest *contest, const struct flow *flow, size_t rule)
{
	return &contest->rig.image->rules[flow->rule[rule]];
}

const struct weir_ruleset_rule *contest_written_rule(const struct contest *contest, const struct flow *flow,
						     size_t rule)
{
	return &contest->rig.ruleset->rules[flow->rule[rule]];
}

uint64_t contest_limit(const struct contest *contest, const struct flow *flow, size_t rule)
{
	return contest_written_rule(contest, flow, rule)->threshold_micro / WEIR_MICRO;
}

/* ---- rows ---- */

static enum weir_table_id map_of(enum weir_storage storage)
{
	return storage == WEIR_STORAGE_LONE	? WEIR_TABLE_LONE_ROWS
	       : storage == WEIR_STORAGE_WIDE	? WEIR_TABLE_WIDE_FLOWS
	       : storage == WEIR_STORAGE_MEDIUM ? WEIR_TABLE_MEDIUM_FLOWS
						: WEIR_TABLE_NARROW_FLOWS;
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

static void decode_row(const uint8_t *bytes, const struct weir_rule *rule, struct row *ret_row)
{
	if (rule->storage == WEIR_STORAGE_NARROW) {
		const struct weir_narrow_row *row = (const void *)bytes;

		ret_row->tag = row->tag;
		ret_row->newest = rule->base_bucket + row->newest;
		ret_row->lease = row->lease & WEIR_NARROW_OVER ? 0 : row->lease;
		for (int i = 0; i < WEIR_RING_CELLS; i++)
			ret_row->cell[i] = row->cell[i] & ~WEIR_NARROW_UNSPENT;
	} else if (rule->storage == WEIR_STORAGE_MEDIUM) {
		const struct weir_medium_row *row = (const void *)bytes;

		ret_row->tag = row->tag;
		ret_row->newest = rule->base_bucket + row->newest;
		ret_row->lease = row->lease;
		for (int i = 0; i < WEIR_RING_CELLS; i++)
			ret_row->cell[i] = row->cell[i] & ~WEIR_MEDIUM_UNSPENT;
	} else {
		const struct weir_wide_row *row = (const void *)bytes;

		ret_row->tag = row->tag;
		ret_row->newest = rule->base_bucket + row->newest;
		ret_row->lease = row->lease;
		for (int i = 0; i < WEIR_RING_CELLS; i++)
			ret_row->cell[i] = row->cell[i] & ~WEIR_WIDE_UNSPENT;
	}
}

uint64_t contest_row_spent(const struct row *row, const struct weir_rule *rule, uint64_t bucket)
{
	uint64_t units = row->cell[(bucket - rule->base_bucket) % WEIR_RING_CELLS];

	return bucket == row->newest ? units - row->lease : units;
}

int contest_read_row(const struct contest *contest, const struct flow *flow, size_t rule, int which, void *values,
		     struct row *ret_row)
{
	const struct weir_rule *loaded = contest_loaded_rule(contest, flow, rule);
	const struct row_place *place = &flow->on[which].row[rule];
	const uint8_t *element;

	element = read_element(&contest->rig, loaded->storage, place->chunk, contest->cpu[which], values);
	if (!element)
		return -EIO;
	decode_row(element + place->offset, loaded, ret_row);
	return 0;
}

void *contest_values_new(void)
{
	void *values = malloc((size_t)weir_host_cpus() * WEIR_CHUNK_BYTES);

	assert_non_null(values);
	return values;
}

/* Rows with this rule's window spec that are no flow's yet: the one that a packet just made. */
static bool row_is_new(const struct contest *contest, const struct weir_rule *rule, int which, struct row_place place)
{
	for (size_t i = 0; i < contest->flow_count; i++) {
		const struct flow *flow = &contest->flows[i];

		for (size_t r = 0; r < flow->rule_count; r++)
			if (contest_loaded_rule(contest, flow, r)->storage == rule->storage &&
			    !memcmp(&flow->on[which].row[r], &place, sizeof(place)))
				return false;
	}
	return true;
}

static void find_row(struct contest *contest, struct flow *flow, size_t rule, int which, void *values)
{
	const struct weir_rule *loaded = contest_loaded_rule(contest, flow, rule);
	bool is_wide = loaded->storage == WEIR_STORAGE_WIDE;
	size_t row_bytes = is_wide				    ? sizeof(struct weir_wide_row)
			   : loaded->storage == WEIR_STORAGE_MEDIUM ? sizeof(struct weir_medium_row)
								    : sizeof(struct weir_narrow_row);
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
			uint32_t spec = is_wide ? wide->spec : wide->tag & (WEIR_SPECS_NARROW - 1);

			if (wide->tag && spec == loaded->spec && row_is_new(contest, loaded, which, place)) {
				flow->on[which].row[rule] = place;
				return;
			}
		}
	}
	fail_msg("a packet was evaluated, and made no row");
}

void contest_make_rows(struct contest *contest)
{
	_cleanup_(weir_freep) void *values = contest_values_new();
	cpu_set_t before;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (int which = 0; which < CPUS; which++) {
		rig_pin(contest->cpu[which]);
		for (size_t i = 0; i < contest->flow_count; i++)
			memset(contest->flows[i].on[which].row, 0xff, sizeof(contest->flows[i].on[which].row));
		for (size_t i = 0; i < contest->flow_count; i++) {
			struct flow *flow = &contest->flows[i];

			flow->passed_before +=
				weir_object_evaluate(contest->rig.object, flow->frame, flow->frame_bytes) == XDP_PASS;
			for (size_t rule = 0; rule < flow->rule_count; rule++)
				find_row(contest, flow, rule, which, values);
		}
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* ---- beginning and end ---- */

bool contest_saturation_missed;
size_t contest_shortfalls;

void contest_try(void (*once)(void **state))
{
	for (int tries = 0; tries < CONTEST_TRIES; tries++) {
		contest_shortfalls = 0;
		once(NULL);
		rig_detach(NULL);
		if (!contest_shortfalls)
			return;
		print_message("too few passed, in %d of %d tries\n", tries + 1, CONTEST_TRIES);
	}
	fail_msg("too few passed in each of %d tries", CONTEST_TRIES);
}

int contest_check_saturation(void **state)
{
	bool missed = contest_saturation_missed;

	contest_saturation_missed = false;
	rig_detach(state);
	if (missed)
		print_message("this machine was too busy to saturate a limit: only 'never more' was tested\n");
	return 0;
}

/* The latest tick at this time, or with rounds_up the next. */
static uint64_t tick_at(const struct contest *contest, uint64_t time_ns, bool rounds_up)
{
	uint64_t origin_ns = weir_object_tick_origin_ns(contest->rig.object), tick_ns = weir_host_tick_ns();

	return (time_ns - origin_ns + (rounds_up ? tick_ns - 1 : 0)) / tick_ns * tick_ns + origin_ns;
}

uint64_t contest_bucket_at(const struct contest *contest, const struct weir_rule *rule, uint64_t time_ns)
{
	return (rule->goes_by_ticks ? tick_at(contest, time_ns, false) : time_ns) / rule->bucket_ns;
}

uint64_t contest_bucket_begins_ns(const struct contest *contest, const struct weir_rule *rule, uint64_t bucket)
{
	uint64_t time_ns = bucket * rule->bucket_ns;

	return rule->goes_by_ticks ? tick_at(contest, time_ns, true) : time_ns;
}

/* A late tick may leave the first packets to the bucket before. */
uint64_t contest_first_bucket(const struct contest *contest, const struct weir_rule *rule)
{
	return contest_bucket_at(contest, rule, contest->start_ns) - rule->goes_by_ticks;
}

/* A last run, or batch, may be held up: admissions count up to this long after the end. */
#define OVERTIME_NS (20 * SECOND)

uint64_t contest_bucket_count(const struct contest *contest, const struct weir_rule *rule)
{
	return (contest->end_ns + OVERTIME_NS) / rule->bucket_ns - contest_first_bucket(contest, rule) + 1;
}

void contest_load(struct contest *contest)
{
	rig_load(&contest->rig, false);
	rig_attach(&contest->rig);
}

void contest_make_logs(struct contest *contest)
{
	for (size_t i = 0; i < contest->flow_count; i++)
		for (size_t rule = 0; rule < contest->flows[i].rule_count; rule++)
			for (int which = 0; which < CPUS; which++) {
				struct flow *flow = &contest->flows[i];
				uint64_t buckets =
					contest_bucket_count(contest, contest_loaded_rule(contest, flow, rule));

				flow->on[which].offers[rule] = calloc(buckets, sizeof(struct offer));
				assert_non_null(flow->on[which].offers[rule]);
			}
}

void contest_free_logs(struct contest *contest)
{
	for (size_t i = 0; i < contest->flow_count; i++)
		for (int which = 0; which < CPUS; which++) {
			for (size_t rule = 0; rule < FLOW_RULES_MAX; rule++)
				free(contest->flows[i].on[which].offers[rule]);
			free(contest->flows[i].on[which].passes);
			free(contest->flows[i].on[which].spent);
		}
}

void contest_end(struct contest *contest)
{
	contest_free_logs(contest);
	free(contest->flows);
	rig_end(&contest->rig);
}

/* ---- the contest ---- */

static void note_offer(const struct contest *contest, struct flow *flow, int which, uint64_t before_ns,
		       uint64_t after_ns, uint64_t units)
{
	struct flow_on_cpu *on = &flow->on[which];

	for (size_t rule = 0; rule < flow->rule_count; rule++) {
		const struct weir_rule *loaded = contest_loaded_rule(contest, flow, rule);
		uint64_t first = contest_first_bucket(contest, loaded);
		uint64_t last_ns = before_ns < contest->end_ns ? before_ns : contest->end_ns;
		uint64_t last = contest_bucket_at(contest, loaded, last_ns);

		on->offers[rule][last - first].units += units;
		on->offers[rule][last - first].last_ns = before_ns;
		if (after_ns - on->sent_ns > loaded->bucket_ns / HELD_UP_PART)
			for (uint64_t bucket = contest_bucket_at(contest, loaded, on->sent_ns);
			     bucket <= contest_bucket_at(contest, loaded, after_ns) &&
			     bucket - first < contest_bucket_count(contest, loaded);
			     bucket++)
				on->offers[rule][bucket - first].was_held_up = true;
	}
	on->sent_ns = before_ns;
}

int contest_note_pass(const struct contest *contest, struct flow *flow, int which, uint64_t before_ns,
		      uint64_t after_ns, uint64_t units, void *values)
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
		const struct weir_rule *loaded = contest_loaded_rule(contest, flow, rule);
		uint64_t earliest = (before_ns - CLOCK_SLACK_NS) / loaded->bucket_ns;
		struct row row;

		pass->bucket[rule] = earliest;
		if (!loaded->goes_by_ticks && (after_ns + CLOCK_SLACK_NS) / loaded->bucket_ns == earliest)
			continue;
		if (contest_read_row(contest, flow, rule, which, values, &row))
			return -EIO;
		/* A tick may be late, and never early; where it lies was found to less than half of its length. */
		if (row.newest > contest_bucket_at(contest, loaded, after_ns + weir_host_tick_ns() / 2))
			return -ERANGE;
		pass->bucket[rule] = row.newest;
	}
	return 0;
}

void *contestant_main(void *data)
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
		action = weir_object_evaluate(contest->rig.object, flow->frame, frame_bytes);
		after_ns = weir_host_now_ns();
		if (action < 0)
			self->err = action;
		note_offer(contest, flow, self->which, before_ns, after_ns, flow->counts_bytes ? frame_bytes : 1);
		if (action == XDP_PASS)
			self->err = contest_note_pass(contest, flow, self->which, before_ns, after_ns,
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

int contest_run(struct contest *contest, void *(*run)(void *))
{
	struct contestant contestants[CPUS] = {};

	for (int which = 0; which < CPUS; which++) {
		contestants[which].contest = contest;
		contestants[which].which = which;
		contestants[which].values = contest_values_new();
		contestant_start(&contestants[which], run);
	}
	for (int which = 0; which < CPUS; which++) {
		pthread_join(contestants[which].thread, NULL);
		free(contestants[which].values);
	}
	return contestants[0].err ? contestants[0].err : contestants[1].err;
}
