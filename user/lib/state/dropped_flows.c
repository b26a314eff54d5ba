// SPDX-License-Identifier: GPL-2.0-only
#include "state/dropped_flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"

struct scan {
	const struct weir_instance *instance;
	uint64_t since_ns;
	uint32_t wanted_slot; /* or WEIR_ANY_RULE */
	struct weir_dropped_flow *dropped;
	size_t count, room;
};

/* ---- reading ---- */

static bool is_wanted(const struct scan *scan, const struct weir_dropped_flow *dropped)
{
	const struct weir_instance *instance = scan->instance;

	if (dropped->rule_slot >= instance->info.rule_slots)
		return false;
	if (scan->wanted_slot != WEIR_ANY_RULE && dropped->rule_slot != scan->wanted_slot)
		return false;
	/* Skip what a rule left behind that a reload removed. */
	return instance->rules[dropped->rule_slot].state == WEIR_SLOT_USED;
}

static void add(const struct weir_dropped_flow *dropped, void *data)
{
	struct scan *scan = data;

	if (scan->count < scan->room && is_wanted(scan, dropped))
		scan->dropped[scan->count++] = *dropped;
}

/* ---- combining all CPUs ---- */

static int compare_flows(const void *left, const void *right)
{
	const struct weir_dropped_flow *a = left, *b = right;

	if (a->rule_slot != b->rule_slot)
		return a->rule_slot < b->rule_slot ? -1 : 1;
	if (a->is_observed != b->is_observed)
		return a->is_observed ? 1 : -1;
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static int compare_packets(const void *left, const void *right)
{
	const struct weir_dropped_flow *a = left, *b = right;

	if (a->packets != b->packets)
		return a->packets > b->packets ? -1 : 1;
	return compare_flows(left, right);
}

static void merge(struct weir_dropped_flow *sum, const struct weir_dropped_flow *other)
{
	sum->packets += other->packets;
	sum->bytes += other->bytes;
	sum->is_estimated |= other->is_estimated;
	if (other->first_ns < sum->first_ns)
		sum->first_ns = other->first_ns;
	if (other->last_ns > sum->last_ns)
		sum->last_ns = other->last_ns;
}

static void merge_cpus(struct scan *scan)
{
	size_t merged = 0;

	if (scan->count)
		qsort(scan->dropped, scan->count, sizeof(*scan->dropped), compare_flows);
	for (size_t i = 0; i < scan->count; i++) {
		if (merged && !compare_flows(&scan->dropped[merged - 1], &scan->dropped[i]))
			merge(&scan->dropped[merged - 1], &scan->dropped[i]);
		else
			scan->dropped[merged++] = scan->dropped[i];
	}
	scan->count = merged;
}

/* Combine the counts of all CPUs and apply the filter. */
static void sum_up(struct scan *scan, const struct weir_top_drops *top_drops, size_t most, struct weir_drops *drops)
{
	size_t kept = 0;

	merge_cpus(scan);
	for (size_t i = 0; i < scan->count; i++)
		if (scan->dropped[i].last_ns >= scan->since_ns)
			scan->dropped[kept++] = scan->dropped[i];
	scan->count = kept;
	for (size_t i = 0; i < scan->count; i++) {
		drops->observed += scan->dropped[i].is_observed;
		drops->packets += scan->dropped[i].packets;
		drops->bytes += scan->dropped[i].bytes;
	}
	drops->flows = scan->count;
	drops->count = weir_keep_first(scan->dropped, scan->count, most, sizeof(*scan->dropped), compare_packets);
	for (size_t i = 0; i < drops->count; i++)
		scan->dropped[i].missed = weir_dropped_flow_missed(top_drops, &scan->dropped[i]);
	drops->missed = weir_top_drops_missed(top_drops);
	drops->worst = scan->dropped;
}

/* ---- the exported functions ---- */

#define TOP_DROPS_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_TOP_DROPS) | WEIR_TABLE_BIT(WEIR_TABLE_TOP_DROP_KEYS))

int weir_top_drops_open(const struct weir_instance *instance, struct weir_top_drops *ret_top_drops,
			struct weir_diag *diag)
{
	const struct weir_top_drops_maps maps = weir_top_drops_of(instance);
	int cpus = weir_host_cpus(), err;

	err = weir_instance_expect_tables(instance, TOP_DROPS_TABLES, "the drops of flows", diag);
	if (err)
		return err;
	err = cpus < 0 ? cpus : weir_top_drops_map(ret_top_drops, &maps, cpus * WEIR_TOP_DROPS_SETS, false);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the drops of instance '%s'", instance->name);
	return 0;
}

int weir_drops_read(const struct weir_instance *instance, const struct weir_drops_wanted *wanted,
		    struct weir_drops *ret_drops, struct weir_diag *diag)
{
	struct scan scan = {.instance = instance, .since_ns = wanted->since_ns};
	struct weir_top_drops top_drops = {};
	struct weir_drops drops = {};
	int err;

	err = weir_instance_find_rule(instance, wanted->rule, &scan.wanted_slot, diag);
	if (!err)
		err = weir_top_drops_open(instance, &top_drops, diag);
	if (err)
		return err;
	scan.room = (size_t)top_drops.set_count * WEIR_TOP_DROPS_WAYS;
	scan.dropped = calloc(scan.room, sizeof(*scan.dropped));
	drops.now_ns = weir_host_now_ns();
	if (scan.dropped) {
		weir_top_drops_visit(&top_drops, drops.now_ns, add, &scan);
		sum_up(&scan, &top_drops, wanted->most, &drops);
		*ret_drops = drops;
	}
	weir_top_drops_unmap(&top_drops);
	if (!scan.dropped)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the drops of instance '%s'", instance->name);
	return 0;
}

void weir_drops_free(struct weir_drops *drops)
{
	free(drops->worst);
	*drops = (struct weir_drops){};
}
