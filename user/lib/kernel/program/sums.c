// SPDX-License-Identifier: GPL-2.0-only
#include "program/sums.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "tables/rule_kind.h"

/* ---- breakers ---- */

struct scan {
	const struct weir_tables *tables;
	uint64_t now_ns;
	weir_breaker_visitor visit;
	void *data;
};

static bool is_in_use(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow && weir_is_breaker(rule);
}

static int visit_lone(const struct scan *scan)
{
	const struct weir_flow_key none = {};
	struct weir_breaker_view view;
	struct weir_breaker breaker;

	for (uint32_t slot = 0; slot < scan->tables->rule_slots; slot++) {
		const struct weir_rule_info *rule = &scan->tables->rules[slot];

		if (!is_in_use(rule) || rule->identity.key_fields)
			continue;
		if (bpf_map_lookup_elem(scan->tables->fd[WEIR_TABLE_LONE_BREAKERS], &slot, &breaker) < 0)
			return -errno;
		if (weir_breaker_view(&breaker, &rule->breaker, scan->now_ns, &view))
			scan->visit(scan->data, slot, &none, &view);
	}
	return 0;
}

static int visit_set(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_breaker_set *set = values;
	const struct scan *scan = data;
	struct weir_breaker_view view;

	for (int way = 0; way < WEIR_FLOW_WAYS; way++) {
		const struct weir_breaker *breaker = &set->breaker[way];
		uint32_t slot = breaker->slot;

		if (set->flows.tag[way] && slot < scan->tables->rule_slots && is_in_use(&scan->tables->rules[slot]) &&
		    weir_breaker_view(breaker, &scan->tables->rules[slot].breaker, scan->now_ns, &view))
			scan->visit(scan->data, slot, &breaker->key, &view);
	}
	return 0;
}

int weir_breakers_visit(const struct weir_tables *tables, uint64_t now_ns, weir_breaker_visitor visit, void *data)
{
	struct scan scan = {.tables = tables, .now_ns = now_ns, .visit = visit, .data = data};
	bool has_any = false, has_flows = false;
	int err = 0;

	for (uint32_t slot = 0; slot < tables->rule_slots; slot++) {
		has_any |= is_in_use(&tables->rules[slot]);
		has_flows |= is_in_use(&tables->rules[slot]) && tables->rules[slot].identity.key_fields;
	}
	if (has_any)
		err = visit_lone(&scan);
	if (!err && has_flows)
		err = weir_table_scan(WEIR_TABLE_BREAKERS, tables->fd[WEIR_TABLE_BREAKERS],
				      tables->size[WEIR_TABLE_BREAKERS], visit_set, &scan);
	return err;
}

static void add(void *data, uint32_t slot, const struct weir_flow_key *key, const struct weir_breaker_view *view)
{
	struct weir_breaker_sum *sums = data;

	weir_breaker_add(view, &sums[slot]);
	sums[slot].lone = *view;
}

int weir_breakers_sum(const struct weir_tables *tables, uint64_t now_ns, struct weir_breaker_sum *ret_sums)
{
	for (uint32_t slot = 0; slot < tables->rule_slots; slot++)
		ret_sums[slot].has_flows = tables->rules[slot].identity.key_fields != 0;
	return weir_breakers_visit(tables, now_ns, add, ret_sums);
}

/* ---- connections ---- */

int weir_connections_read_rule(const struct weir_tables *tables, uint32_t slot, uint32_t flows_slot,
			       const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures)
{
	_cleanup_(weir_freep) struct weir_connection_total *totals = NULL;
	struct weir_connection_figures figures;
	struct weir_connection_flow lone;
	int cpus = weir_host_cpus();

	if (cpus < 0)
		return cpus;
	totals = calloc(cpus, sizeof(*totals));
	if (!totals)
		return -ENOMEM;
	if (bpf_map_lookup_elem(tables->fd[WEIR_TABLE_LONE_CONNECTIONS], &flows_slot, &lone) < 0 ||
	    bpf_map_lookup_elem(tables->fd[WEIR_TABLE_CONNECTION_TOTALS], &flows_slot, totals) < 0)
		return -errno;
	weir_connection_rule_figures(totals, cpus, &lone, clock, &figures);
	if (slot != flows_slot) { /* only refusals are each rule's own */
		if (bpf_map_lookup_elem(tables->fd[WEIR_TABLE_CONNECTION_TOTALS], &slot, totals) < 0)
			return -errno;
		figures.refused = 0;
		for (int cpu = 0; cpu < cpus; cpu++)
			figures.refused += totals[cpu].counts.refused;
	}
	*ret_figures = figures;
	return 0;
}
