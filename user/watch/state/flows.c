// SPDX-License-Identifier: GPL-2.0-only
#include "state/flows.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "control/controller.h"
#include "host/host.h"
#include "instance/override_trie.h"
#include "program/array.h"
#include "state/flow_keys.h"
#include "state/flow_scan.h"
#include "state/lending_windows.h"
#include "state/planned.h"
#include "state/token_levels.h"

/* ---- windows that lend ---- */

static void add_borrowing(const struct weir_borrowing_use *found, void *data)
{
	struct scan *scan = data;
	const struct weir_named_flow *name =
		weir_flow_keys_find(&scan->keys, WEIR_FLOW_BORROWING, found->set, found->tag);
	struct weir_flow_use use = {
		.rule_slot = found->is_ambiguous ? WEIR_SLOT_UNKNOWN : found->slot,
		.is_whole = !found->tag,
		.units = found->units,
		.borrowed = found->borrowed,
	};

	weir_flows_set_name(&use, name);
	if (use.rule_slot != WEIR_SLOT_UNKNOWN)
		weir_flows_find_threshold(scan, NULL, 0, &use);
	weir_flows_add_use(scan, &use);
}

/* ---- buckets of tokens ---- */

static void add_tokens(const struct weir_tokens_use *found, void *data)
{
	struct scan *scan = data;
	const struct weir_named_flow *name = weir_flow_keys_find(&scan->keys, WEIR_FLOW_TOKENS, found->set, found->tag);
	struct weir_flow_use use = {
		.rule_slot = found->slot,
		.is_whole = !found->tag,
		.units = found->lacks,
		.has_threshold = true,
		.threshold = found->burst,
	};

	if (name && name->rule_slot == found->slot)
		weir_flows_set_name(&use, name);
	weir_flows_add_use(scan, &use);
}

/* ---- planned times ---- */

#define NSEC_PER_USEC 1000ull

static void add_planned(const struct weir_planned_use *found, void *data)
{
	struct scan *scan = data;
	const struct weir_named_flow *name =
		weir_flow_keys_find(&scan->keys, WEIR_FLOW_PLANNED, found->set, found->tag);
	struct weir_flow_use use = {
		.rule_slot = found->slot == WEIR_PLANNED_ANY ? WEIR_SLOT_UNKNOWN : found->slot,
		.is_whole = !found->tag,
		.is_wait = true,
		.units = (found->wait_ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC,
	};

	weir_flows_set_name(&use, name);
	if (use.rule_slot != WEIR_SLOT_UNKNOWN) {
		/* A rule that a reload removed. */
		if (!weir_flows_is_in_use(&scan->instance->rules[use.rule_slot]))
			return;
		use.has_threshold = true;
		use.threshold = scan->instance->rules[use.rule_slot].queueing_ns_max / NSEC_PER_USEC;
	}
	weir_flows_add_use(scan, &use);
}

/* ---- the contract ---- */

static int prepare(struct scan *scan)
{
	scan->cpus = weir_host_cpus();
	if (scan->cpus < 0)
		return scan->cpus;
	/* Narrow chunks have the most rows. */
	scan->pieces =
		calloc((size_t)ARRAY_SIZE(((struct weir_narrow_chunk *)0)->row) * scan->cpus, sizeof(*scan->pieces));
	scan->uses = calloc(2 * scan->most, sizeof(*scan->uses));
	scan->rows_by_cpu = calloc(scan->cpus, sizeof(*scan->rows_by_cpu));
	return scan->pieces && scan->uses && scan->rows_by_cpu ? 0 : -ENOMEM;
}

static int scan_rows(struct scan *scan, enum weir_table_id table, weir_percpu_visit *visit, struct weir_table_use *use)
{
	int err;

	memset(scan->rows_by_cpu, 0, scan->cpus * sizeof(*scan->rows_by_cpu));
	err = weir_instance_scan(scan->instance, table, visit, scan);
	use->room = (uint64_t)scan->instance->info.tables[table].size * WEIR_WAYS;
	for (int cpu = 0; cpu < scan->cpus; cpu++)
		if (scan->rows_by_cpu[cpu] > use->rows)
			use->rows = scan->rows_by_cpu[cpu];
	return err;
}

static int scan_tables(struct scan *scan)
{
	int err;

	err = scan_rows(scan, WEIR_TABLE_NARROW_FLOWS, weir_flows_scan_narrow_chunk, &scan->narrow);
	if (!err)
		err = scan_rows(scan, WEIR_TABLE_MEDIUM_FLOWS, weir_flows_scan_medium_chunk, &scan->medium);
	if (!err)
		err = scan_rows(scan, WEIR_TABLE_WIDE_FLOWS, weir_flows_scan_wide_chunk, &scan->wide);
	if (!err)
		err = weir_instance_scan(scan->instance, WEIR_TABLE_LONE_ROWS, weir_flows_scan_lone_rows, scan);
	if (!err)
		err = weir_borrowing_scan(scan->instance, add_borrowing, scan);
	if (!err)
		err = weir_tokens_scan(scan->instance, add_tokens, scan);
	if (!err)
		err = weir_planned_scan(scan->instance, scan->controller.thresholds, add_planned, scan);
	return err;
}

static void free_scan(struct scan *scan)
{
	free(scan->controller.thresholds);
	weir_flow_keys_free(&scan->keys);
	free(scan->meters);
	free(scan->sole_rules);
	free(scan->pieces);
	free(scan->uses);
	free(scan->rows_by_cpu);
	weir_closep(&scan->overrides_fd);
}

#define FLOW_TABLES                                                                                                    \
	(WEIR_TABLE_BIT(WEIR_TABLE_NARROW_FLOWS) | WEIR_TABLE_BIT(WEIR_TABLE_MEDIUM_FLOWS) |                           \
	 WEIR_TABLE_BIT(WEIR_TABLE_WIDE_FLOWS) | WEIR_TABLE_BIT(WEIR_TABLE_LONE_ROWS) |                                \
	 WEIR_TABLE_BIT(WEIR_TABLE_TALKERS))
#define TOKEN_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_TOKEN_RESOURCES) | WEIR_TABLE_BIT(WEIR_TABLE_TOKEN_FLOWS))
#define PLANNED_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_THROTTLED_RESOURCES) | WEIR_TABLE_BIT(WEIR_TABLE_THROTTLED_FLOWS))
#define BORROWING_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_BORROWING_RESOURCES) | WEIR_TABLE_BIT(WEIR_TABLE_BORROWING_FLOWS))

int weir_flows_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most, struct weir_flows *ret_flows,
		    struct weir_diag *diag)
{
	_cleanup_(free_scan) struct scan scan = {
		.instance = instance,
		.rule_slot = rule_slot,
		.most = most ? most : 1,
		.overrides_fd = weir_overrides_open(instance),
	};
	int err;

	err = weir_instance_expect_tables(instance,
					  FLOW_TABLES | (weir_borrowing_is_used(instance) ? BORROWING_TABLES : 0) |
						  (weir_tokens_are_used(instance) ? TOKEN_TABLES : 0) |
						  (weir_planned_is_used(instance) ? PLANNED_TABLES : 0),
					  "the flows", diag);
	if (!err)
		err = weir_controller_look(instance, &scan.controller, diag);
	if (err)
		return err;
	err = prepare(&scan);
	if (!err)
		err = weir_flow_keys_read(instance, scan.cpus, &scan.keys);
	if (!err)
		err = weir_flows_find_meters(&scan);
	if (!err)
		err = weir_flows_find_sole_rules(&scan);
	if (!err)
		err = scan_tables(&scan);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the flows of instance '%s'", instance->name);
	weir_flows_keep_busiest(&scan);
	*ret_flows = (struct weir_flows){
		.busiest = TAKE_PTR(scan.uses),
		.count = scan.use_count,
		.active = scan.active,
		.narrow = scan.narrow,
		.medium = scan.medium,
		.wide = scan.wide,
	};
	return 0;
}

void weir_flows_free(struct weir_flows *flows)
{
	free(flows->busiest);
	*flows = (struct weir_flows){};
}
