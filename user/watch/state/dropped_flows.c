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
	struct weir_offence *offences;
	size_t count, room;
};

/* ---- reading ---- */

static bool is_wanted(const struct scan *scan, const struct weir_offence *offence)
{
	const struct weir_instance *instance = scan->instance;

	if (offence->rule_slot >= instance->info.rule_slots)
		return false;
	if (scan->wanted_slot != WEIR_ANY_RULE && offence->rule_slot != scan->wanted_slot)
		return false;
	/* Not what a rule has left behind that a reload took away. */
	return instance->rules[offence->rule_slot].state == WEIR_SLOT_USED;
}

static void add(const struct weir_offence *offence, void *data)
{
	struct scan *scan = data;

	if (scan->count < scan->room && is_wanted(scan, offence))
		scan->offences[scan->count++] = *offence;
}

/* ---- all CPUs together ---- */

static int compare_flows(const void *left, const void *right)
{
	const struct weir_offence *a = left, *b = right;

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
	const struct weir_offence *a = left, *b = right;

	if (a->packets != b->packets)
		return a->packets > b->packets ? -1 : 1;
	return compare_flows(left, right);
}

static void merge(struct weir_offence *sum, const struct weir_offence *other)
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
		qsort(scan->offences, scan->count, sizeof(*scan->offences), compare_flows);
	for (size_t i = 0; i < scan->count; i++) {
		if (merged && !compare_flows(&scan->offences[merged - 1], &scan->offences[i]))
			merge(&scan->offences[merged - 1], &scan->offences[i]);
		else
			scan->offences[merged++] = scan->offences[i];
	}
	scan->count = merged;
}

static void drop_earlier(struct scan *scan)
{
	size_t kept = 0;

	for (size_t i = 0; i < scan->count; i++)
		if (scan->offences[i].last_ns >= scan->since_ns)
			scan->offences[kept++] = scan->offences[i];
	scan->count = kept;
}

/* From what the CPUs have counted to what is wanted. */
static void sum_up(struct scan *scan, const struct weir_offenders *offenders, size_t most, struct weir_drops *drops)
{
	merge_cpus(scan);
	drop_earlier(scan);
	for (size_t i = 0; i < scan->count; i++) {
		drops->packets += scan->offences[i].packets;
		drops->bytes += scan->offences[i].bytes;
	}
	if (scan->count)
		qsort(scan->offences, scan->count, sizeof(*scan->offences), compare_packets);
	drops->flows = scan->count;
	drops->count = scan->count < most ? scan->count : most;
	for (size_t i = 0; i < drops->count; i++)
		scan->offences[i].missed = weir_offence_missed(offenders, &scan->offences[i]);
	drops->missed = weir_offenders_missed(offenders);
	drops->worst = scan->offences;
}

/* ---- the contract ---- */

#define OFFENDER_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_OFFENDERS) | WEIR_TABLE_BIT(WEIR_TABLE_OFFENDER_KEYS))

int weir_offenders_open(const struct weir_instance *instance, struct weir_offenders *ret_offenders,
			struct weir_diag *diag)
{
	int cpus = weir_host_cpus(), err;

	err = weir_instance_expect_tables(instance, OFFENDER_TABLES, "the drops of flows", diag);
	if (err)
		return err;
	err = cpus < 0 ? cpus
		       : weir_offenders_map(ret_offenders, instance->map_fd[WEIR_TABLE_OFFENDERS],
					    instance->map_fd[WEIR_TABLE_OFFENDER_KEYS], cpus * WEIR_OFFENDER_SETS,
					    false);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the drops of instance '%s'", instance->name);
	return 0;
}

int weir_drops_read(const struct weir_instance *instance, const struct weir_drops_wanted *wanted,
		    struct weir_drops *ret_drops, struct weir_diag *diag)
{
	struct scan scan = {.instance = instance, .since_ns = wanted->since_ns};
	struct weir_offenders offenders = {};
	struct weir_drops drops = {};
	int err;

	err = weir_instance_find_rule(instance, wanted->rule, &scan.wanted_slot, diag);
	if (!err)
		err = weir_offenders_open(instance, &offenders, diag);
	if (err)
		return err;
	scan.room = (size_t)offenders.set_count * WEIR_OFFENDER_WAYS;
	scan.offences = calloc(scan.room, sizeof(*scan.offences));
	drops.now_ns = weir_host_now_ns();
	if (scan.offences) {
		weir_offenders_visit(&offenders, drops.now_ns, add, &scan);
		sum_up(&scan, &offenders, wanted->most, &drops);
		*ret_drops = drops;
	}
	weir_offenders_unmap(&offenders);
	if (!scan.offences)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the drops of instance '%s'", instance->name);
	return 0;
}

void weir_drops_free(struct weir_drops *drops)
{
	free(drops->worst);
	*drops = (struct weir_drops){};
}
