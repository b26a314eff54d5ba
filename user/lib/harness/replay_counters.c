// SPDX-License-Identifier: GPL-2.0-only
/* The counters at the end of a replay, and the flows that lost packets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "compile/compile.h"
#include "kind/kind.h"
#include "program/array.h"
#include "program/runs.h"
#include "program/sums.h"
#include "program/object.h"
#include "harness/attempt.h"
#include "harness/sizes.h"

/* Once for all counters of a table: it copies the whole scratch of every CPU. */
static int take_runs(const struct weir_attempt *attempt, struct weir_cpu_runs **ret_runs, struct weir_diag *diag)
{
	int err = weir_runs_take(weir_object_map_fd(attempt->object, WEIR_TABLE_TOTALS), ret_runs);

	return err ? weir_diag_fail(diag, -err, NULL, "cannot read counters") : 0;
}

/* Add up all CPUs' copies of one element, word by word; every counter consists of __u64. */
static int sum_counters(const struct weir_attempt *attempt, const struct weir_cpu_runs *runs, enum weir_table_id map,
			uint32_t slot, void *sum, size_t bytes, struct weir_diag *diag)
{
	size_t cpu, word, words = bytes / sizeof(__u64), cpus = attempt->image->config.cpus;
	_cleanup_(weir_freep) __u64 *copies = calloc(cpus, bytes);
	__u64 *total = sum;

	if (!copies)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read counters");
	if (weir_map_look_up(weir_object_map_fd(attempt->object, map), &slot, copies) < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot read counters");
	weir_runs_add(runs, map, slot, copies, cpus);
	for (cpu = 0; cpu < cpus; cpu++)
		for (word = 0; word < words; word++)
			total[word] += copies[cpu * words + word];
	return 0;
}

static void add_tally(struct weir_tally *tally, const struct weir_tally *more)
{
	tally->packets += more->packets;
	tally->bytes += more->bytes;
}

int weir_attempt_read_totals(struct weir_attempt *attempt, struct weir_diag *diag)
{
	struct weir_cpu_state state = {.totals = attempt->report.totals};
	struct weir_totals *totals = &attempt->report.totals;
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;
	int err = take_runs(attempt, &runs, diag);

	if (!err)
		err = sum_counters(attempt, runs, WEIR_TABLE_TOTALS, 0, &state, sizeof(state), diag);

	*totals = state.totals;
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++)
		add_tally(&totals->verdict[verdict], &state.out.verdict[verdict]);
	weir_sum_totals(totals);
	weir_sum_totals(&state.out);
	add_tally(&attempt->report.out, &state.out.seen);
	return err;
}

int weir_attempt_read_rule_counters(struct weir_attempt *attempt, struct weir_replay_evictions *ret_evictions,
				    struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;
	int err = take_runs(attempt, &runs, diag);
	uint32_t i;

	if (err)
		return err;
	/* The user's rules are followed by shadow windows. These are not the user's, but their evictions matter as
	 * well.
	 */
	for (i = 0; i < attempt->image->rule_count + attempt->image->shadow_count; i++) {
		struct weir_rule_counters counters = {};

		err = sum_counters(attempt, runs, WEIR_TABLE_RULE_COUNTERS, attempt->image->rules[i].slot, &counters,
				   sizeof(counters), diag);
		if (err)
			return err;
		if (attempt->image->rules[i].kind == WEIR_KIND_CONNECTIONS ||
		    attempt->image->rules[i].kind == WEIR_KIND_BREAKER)
			ret_evictions->connections += counters.evicted;
		else
			ret_evictions->flows += counters.evicted;
		if (i >= attempt->image->rule_count)
			continue;
		attempt->report.rules[i].blocked = counters.blocked;
		attempt->report.rules[i].would_drop = counters.would_drop;
		attempt->report.rules[i].delayed = counters.delayed;
		attempt->report.rules[i].delay_ns = counters.delay_ns;
		attempt->report.rules[i].penalties = counters.changes;
	}
	return 0;
}

int weir_attempt_read_connections(struct weir_attempt *attempt, struct weir_diag *diag)
{
	const struct weir_image *image = attempt->image;
	struct weir_connection_clock clock =
		weir_connection_clock(image->config.connection_step_ns, attempt->survey->latest_ns);
	const struct weir_tables tables = weir_object_tables(attempt->object, image);

	for (uint32_t i = 0; i < image->rule_count; i++) {
		int err = 0;

		if (image->rules[i].kind == WEIR_KIND_CONNECTIONS)
			err = weir_connections_read_rule(&tables, image->rules[i].slot, image->rules[i].flows_slot,
							 &clock, &attempt->report.rules[i].connections);
		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot read the connections");
	}
	return 0;
}

int weir_attempt_read_breakers(struct weir_attempt *attempt, struct weir_replay_evictions *ret_evictions,
			       struct weir_diag *diag)
{
	const struct weir_image *image = attempt->image;
	_cleanup_(weir_freep) struct weir_breaker_sum *sums = calloc(image->rule_slots + 1, sizeof(*sums));
	const struct weir_tables tables = weir_object_tables(attempt->object, image);
	int err = sums ? weir_breakers_sum(&tables, attempt->survey->latest_ns, sums) : -ENOMEM;

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the circuit breakers");
	for (uint32_t i = 0; i < image->rule_count; i++) {
		attempt->report.rules[i].breaker = sums[image->rules[i].slot];
		ret_evictions->shared_groups += sums[image->rules[i].slot].shared;
	}
	return 0;
}
_Static_assert(sizeof(struct weir_resource_counters) % sizeof(__u64) == 0, "seconds are summed too, and not looked at");

int weir_attempt_read_resource_counters(struct weir_attempt *attempt, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;
	int err = take_runs(attempt, &runs, diag);

	for (uint32_t i = 0; !err && i < attempt->image->resource_count; i++) {
		struct weir_resource_counters counters = {};

		err = sum_counters(attempt, runs, WEIR_TABLE_RESOURCE_COUNTERS, attempt->image->resources[i].slot,
				   &counters, sizeof(counters), diag);
		if (err)
			return err;
		attempt->report.resources[i].passed = counters.passed;
		attempt->report.resources[i].blocked = counters.blocked;
	}
	return 0;
}

/* ---- which flows lost packets ---- */

struct limited_scan {
	const struct weir_image *image;
	struct weir_replay_limited *limited;
	size_t count, room;
};

/* A replay stays on one CPU, so each flow has only one entry. */
static void add_limited(const struct weir_dropped_flow *dropped, void *data)
{
	struct limited_scan *scan = data;

	if (scan->count == scan->room || dropped->rule_slot >= scan->image->rule_slots)
		return;
	scan->limited[scan->count++] = (struct weir_replay_limited){
		.dropped = *dropped,
		.identity = scan->image->rule_info[dropped->rule_slot].identity,
		.rule = scan->image->rule_info[dropped->rule_slot].place,
	};
}

static int compare_limited(const void *left, const void *right)
{
	const struct weir_replay_limited *a = left, *b = right;

	if (a->dropped.packets != b->dropped.packets)
		return a->dropped.packets > b->dropped.packets ? -1 : 1;
	if (a->dropped.first_ns != b->dropped.first_ns)
		return a->dropped.first_ns < b->dropped.first_ns ? -1 : 1;
	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return memcmp(&a->dropped.key, &b->dropped.key, sizeof(a->dropped.key));
}

int weir_attempt_read_limited(struct weir_attempt *attempt, struct weir_diag *diag)
{
	const struct weir_object *object = attempt->object;
	const struct weir_image *image = attempt->image;
	const struct weir_top_drops_maps maps = {
		.sets_fd = weir_object_map_fd(object, WEIR_TABLE_TOP_DROPS),
		.keys_fd = weir_object_map_fd(object, WEIR_TABLE_TOP_DROP_KEYS),
		.totals_fd = weir_object_map_fd(object, WEIR_TABLE_TOTALS),
	};
	struct weir_top_drops top_drops;
	struct weir_replay_limits limits = {};
	struct limited_scan scan = {.image = image};
	int err = weir_top_drops_map(&top_drops, &maps, image->config.sizes[WEIR_TABLE_TOP_DROPS], false);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the drops of flows");
	scan.room = (size_t)top_drops.set_count * WEIR_TOP_DROPS_WAYS;
	scan.limited = calloc(scan.room + 1, sizeof(*scan.limited));
	if (scan.limited)
		weir_top_drops_visit(&top_drops, attempt->survey->latest_ns, add_limited, &scan);
	limits.missed = weir_top_drops_missed(&top_drops);
	weir_top_drops_unmap(&top_drops);
	if (!scan.limited)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the drops of flows");
	if (weir_labels_copy(weir_object_labels(object), &limits.labels)) {
		free(scan.limited);
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the drops of flows");
	}
	limits.most = scan.limited;
	limits.flows = scan.count;
	limits.count = weir_keep_first(scan.limited, scan.count, WEIR_REPLAY_LIMITED_MAX, sizeof(*scan.limited),
				       compare_limited);
	attempt->report.limits = limits;
	return 0;
}

void weir_replay_report_free(struct weir_replay_report *report)
{
	free(report->rules);
	free(report->resources);
	free(report->limits.most);
	free(report->limits.labels);
	*report = (struct weir_replay_report){};
}
