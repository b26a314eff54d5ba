// SPDX-License-Identifier: GPL-2.0-only
#include "state/flows.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "control/controller.h"
#include "host/host.h"
#include "instance/instance.h"
#include "program/array.h"
#include "state/flow_keys.h"
#include "state/flow_scan.h"
#include "state/observe.h"
#include "tables/rule_kind.h"

/* ---- kinds whose flows all CPUs share ---- */

static const struct shared_kind {
	enum weir_kind_id id;
	enum weir_table_id lone, flows;
	weir_observe *observe;
} shared_kinds[] = {
#define SHARED_KIND(identifier, name, lone, flows, ...)                                                                \
	{WEIR_KIND_##identifier, WEIR_TABLE_##lone, WEIR_TABLE_##flows, weir_observe_##name},
#define KIND(...)
#include "weir_kinds.def"
};

bool weir_kind_is_used(const struct weir_instance *instance, enum weir_kind_id kind)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *rule = &instance->rules[instance->rule_order[i]];

		if (weir_flows_is_in_use(rule) && weir_kind_id_of_info(rule) == kind)
			return true;
	}
	return false;
}

/* The tables that must exist. */
static uint64_t shared_tables(const struct weir_instance *instance)
{
	uint64_t tables = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shared_kinds); i++)
		if (weir_kind_is_used(instance, shared_kinds[i].id))
			tables |= WEIR_TABLE_BIT(shared_kinds[i].lone) | WEIR_TABLE_BIT(shared_kinds[i].flows);
	return tables;
}

struct table_scan {
	const struct weir_instance *instance;
	enum weir_kind_id kind;
	const struct weir_flow_tables *tables;
	weir_observe_look *look;
	void *data;
};

static int look_at_resource(uint32_t slot, const void *values, int cpus, void *data)
{
	const struct table_scan *scan = data;
	const struct weir_rule_info *rule = &scan->instance->rules[slot];

	if (weir_flows_is_in_use(rule) && weir_kind_id_of_info(rule) == scan->kind && !rule->identity.key_fields)
		scan->look(values, weir_host_now_ns(), &(struct weir_observed){.slot = slot}, scan->data);
	return 0;
}

static int look_at_set(uint32_t index, const void *values, int cpus, void *data)
{
	const struct table_scan *scan = data;
	const struct weir_flow_set *flows = values;
	const uint64_t now_ns = weir_host_now_ns();

	for (int way = 0; way < WEIR_FLOW_WAYS; way++) {
		struct weir_observed found = {.slot = WEIR_SLOT_UNKNOWN, .tag = flows->tag[way], .set = index};

		if (found.tag)
			scan->look(weir_flow_element(scan->tables, values, way), now_ns, &found, scan->data);
	}
	return 0;
}

int weir_observe_tables(const struct weir_instance *instance, enum weir_kind_id kind,
			const struct weir_flow_tables *tables, weir_observe_look *look, void *data)
{
	struct table_scan scan = {instance, kind, tables, look, data};
	int err = weir_instance_scan(instance, tables->lone, look_at_resource, &scan);

	return err ?: weir_instance_scan(instance, tables->flows, look_at_set, &scan);
}

#define NSEC_PER_USEC 1000u

static void add_observed(const struct weir_observed *found, void *data)
{
	struct scan *scan = data;
	const struct weir_named_flow *name =
		weir_flow_keys_find(&scan->keys, WEIR_FLOW_OF_KIND + scan->shared->id, found->set, found->tag);
	struct weir_flow_use use = {
		.rule_slot = found->slot,
		.is_whole = !found->tag,
		.is_wait = found->is_wait,
		.units = found->units,
		.occupied = found->occupied,
		.has_threshold = found->has_threshold,
		.threshold = found->threshold,
	};

	if (name && (!found->is_sure || name->rule_slot == found->slot))
		weir_flows_set_name(&use, name);
	/* Skip flows of a rule that a reload removed. */
	if (use.rule_slot != WEIR_SLOT_UNKNOWN && !weir_flows_is_in_use(&scan->instance->rules[use.rule_slot]))
		return;
	if (use.rule_slot != WEIR_SLOT_UNKNOWN && use.is_wait) {
		use.has_threshold = true;
		use.threshold = scan->instance->rules[use.rule_slot].queueing_ns_max / NSEC_PER_USEC;
	} else if (use.rule_slot != WEIR_SLOT_UNKNOWN && !use.has_threshold) {
		weir_flows_find_threshold(scan, NULL, 0, &use);
	}
	weir_flows_add_use(scan, &use);
}

static int scan_shared(struct scan *scan)
{
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(shared_kinds); i++) {
		scan->shared = &shared_kinds[i];
		if (weir_kind_is_used(scan->instance, scan->shared->id))
			err = scan->shared->observe(scan->instance, scan->controller.thresholds, add_observed, scan);
	}
	return err;
}

/* ---- the exported functions ---- */

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

static int scan_rows(struct scan *scan, enum weir_flow_place place)
{
	const enum weir_table_id table = weir_row_formats[place].table;
	struct weir_table_use *use = &scan->rows[place];
	int err;

	memset(scan->rows_by_cpu, 0, scan->cpus * sizeof(*scan->rows_by_cpu));
	scan->place = place;
	err = weir_instance_scan(scan->instance, table, weir_flows_scan_chunk, scan);
	use->room = (uint64_t)scan->instance->info.tables[table].size * WEIR_WAYS;
	for (int cpu = 0; cpu < scan->cpus; cpu++)
		if (scan->rows_by_cpu[cpu] > use->rows)
			use->rows = scan->rows_by_cpu[cpu];
	return err;
}

static int scan_tables(struct scan *scan)
{
	int err = 0;

	for (enum weir_flow_place place = WEIR_FLOW_NARROW; !err && place <= WEIR_FLOW_WIDE; place++)
		err = scan_rows(scan, place);
	if (!err)
		err = weir_instance_scan(scan->instance, WEIR_TABLE_LONE_ROWS, weir_flows_scan_lone_rows, scan);
	return err ?: scan_shared(scan);
}

static void free_scan(struct scan *scan)
{
	free(scan->controller.thresholds);
	weir_flow_keys_free(&scan->keys);
	free(scan->shadows);
	free(scan->sole_rules);
	free(scan->pieces);
	free(scan->uses);
	free(scan->rows_by_cpu);
	weir_closep(&scan->overrides_fd);
}

#define FLOW_TABLES                                                                                                    \
	(WEIR_TABLE_BIT(WEIR_TABLE_NARROW_FLOWS) | WEIR_TABLE_BIT(WEIR_TABLE_MEDIUM_FLOWS) |                           \
	 WEIR_TABLE_BIT(WEIR_TABLE_WIDE_FLOWS) | WEIR_TABLE_BIT(WEIR_TABLE_LONE_ROWS) |                                \
	 WEIR_TABLE_BIT(WEIR_TABLE_KEY_SAMPLES))

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

	err = weir_instance_expect_tables(instance, FLOW_TABLES | shared_tables(instance), "the flows", diag);
	if (!err)
		err = weir_controller_look(instance, &scan.controller, diag);
	if (err)
		return err;
	err = prepare(&scan);
	if (!err)
		err = weir_flow_keys_read(instance, scan.cpus, &scan.keys);
	if (!err)
		err = weir_flows_find_shadows(&scan);
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
		.narrow = scan.rows[WEIR_FLOW_NARROW],
		.medium = scan.rows[WEIR_FLOW_MEDIUM],
		.wide = scan.rows[WEIR_FLOW_WIDE],
	};
	return 0;
}

void weir_flows_free(struct weir_flows *flows)
{
	free(flows->busiest);
	*flows = (struct weir_flows){};
}
