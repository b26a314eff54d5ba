// SPDX-License-Identifier: GPL-2.0-only
#include "sweep.h"

#include <inttypes.h>

#include "claims.h"
#include "base/util.h"
#include "program/array.h"
#include "program/sums.h"
#include "tables/connection_counts.h"

#define NUMBERS_OF_SET 8 /* of flows: set * 8 + way */
#define LEFT_OVER_MOST 2

/* The tables, copied, and what was found of each flow. */
struct tables {
	const struct rig *rig;
	struct weir_connection_clock clock;
	struct weir_connection_set *sets;
	struct weir_connection_flow_set *flow_sets;
	struct weir_connection_figures *rules; /* by place */
	uint64_t *found;		       /* by number of a flow */
	uint64_t *found_of_rule;	       /* by slot */
	bool flows_are_evicted;		       /* by two CPUs at once */
	struct sweep sweep;
};

static void *copy(const struct rig *rig, enum weir_table_id map, uint32_t count, size_t value_bytes)
{
	void *values = calloc(count + 1, value_bytes);

	assert_non_null(values);
	assert_int_equal(weir_array_read(weir_object_map_fd(rig->object, map), values, count, value_bytes), 0);
	return values;
}

static void copy_tables(const struct rig *rig, uint64_t now_ns, struct tables *tables)
{
	const struct weir_tables state = weir_object_tables(rig->object, rig->image);
	const struct weir_config *config = &rig->image->config;

	*tables = (struct tables){
		.rig = rig,
		.clock = weir_connection_clock(config->connection_step_ns, now_ns),
		.sets = copy(rig, WEIR_TABLE_CONNECTIONS, config->sizes[WEIR_TABLE_CONNECTIONS], sizeof(*tables->sets)),
		.flow_sets = copy(rig, WEIR_TABLE_CONNECTION_FLOWS, config->sizes[WEIR_TABLE_CONNECTION_FLOWS],
				  sizeof(*tables->flow_sets)),
		.rules = calloc(rig->image->rule_count, sizeof(*tables->rules)),
		.found =
			calloc(config->sizes[WEIR_TABLE_CONNECTION_FLOWS] + 1, NUMBERS_OF_SET * sizeof(*tables->found)),
		.found_of_rule = calloc(rig->image->rule_slots + 1, sizeof(*tables->found_of_rule)),
	};
	assert_non_null(tables->found);
	assert_non_null(tables->found_of_rule);
	assert_non_null(tables->rules);
	for (uint32_t i = 0; i < rig->image->rule_count; i++)
		assert_int_equal(weir_connections_read_rule(&state, rig->image->rules[i].slot,
							    rig->image->rules[i].flows_slot, &tables->clock,
							    &tables->rules[i]),
				 0);
}

static void free_tables(struct tables *tables)
{
	free(tables->sets);
	free(tables->flow_sets);
	free(tables->rules);
	free(tables->found);
	free(tables->found_of_rule);
}

/* The rule of a flow follows from the flow, not from the connection. */
static void count_connection(struct tables *tables, const struct weir_connection_owner *owner)
{
	const struct weir_connection_flow *flow;
	uint32_t slot = owner->flow & (WEIR_CONNECTION_LONE - 1);

	if (!(owner->flow & WEIR_CONNECTION_LONE)) {
		flow = &tables->flow_sets[owner->flow / NUMBERS_OF_SET].flow[owner->flow % NUMBERS_OF_SET];
		slot = WEIR_CONNECTION_OWNER_SLOT(flow->owner);
		if ((flow->owner >> 32 & WEIR_CONNECTION_CHECK) != owner->check) {
			tables->sweep.orphans++;
			return;
		}
		tables->found[owner->flow]++;
	}
	assert_true(slot < tables->rig->image->rule_slots);
	tables->found_of_rule[slot]++;
	tables->sweep.connections++;
}

static void assert_no_twins(const struct weir_connection_set *set)
{
	for (int way = 0; way < WEIR_FLOW_WAYS; way++)
		for (int other = way + 1; other < WEIR_FLOW_WAYS; other++)
			assert_true(!set->flows.tag[way] || set->flows.tag[way] != set->flows.tag[other]);
}

static void count_connections(struct tables *tables)
{
	for (uint32_t i = 0; i < tables->rig->image->config.sizes[WEIR_TABLE_CONNECTIONS]; i++) {
		assert_no_twins(&tables->sets[i]);
		for (uint32_t way = 0; way < WEIR_FLOW_WAYS; way++) {
			struct weir_connection_owner owner;

			if (weir_connection_is_counted(&tables->sets[i], way, &tables->clock, &owner))
				count_connection(tables, &owner);
		}
	}
}

static void check_figures(struct tables *tables, const char *what, uint32_t number,
			  const struct weir_connection_figures *figures, uint64_t counted, uint64_t found,
			  uint64_t left_over)
{
	uint64_t ended = figures->closed_by_fin + figures->closed_by_reset + figures->reused + figures->evicted;

	if (counted < found || counted - found > left_over)
		fail_msg("%s %u: %" PRIu64 " counted, %" PRIu64 " found", what, number, counted, found);
	if (tables->flows_are_evicted)
		return;
	if (counted + ended > figures->opened + figures->returned)
		fail_msg("%s %u: %" PRIu64 " now and %" PRIu64 " ended, of %" PRIu64, what, number, counted, ended,
			 figures->opened + figures->returned);
	assert_true(counted <= figures->max);
}

static void check_flow(struct tables *tables, uint32_t number, const struct weir_connection_flow *flow)
{
	uint32_t tag = flow->owner >> 32;
	struct weir_connection_figures figures;

	weir_connection_figures(flow, tag, &tables->clock, &figures);
	check_figures(tables, "flow", number, &figures, weir_connections_in_cells(flow, tag, &tables->clock),
		      tables->found[number], 0);
	tables->sweep.flows += tables->found[number] != 0;
}

static void check_all(struct tables *tables)
{
	const struct weir_image *image = tables->rig->image;

	for (uint32_t i = 0; i < image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS] * NUMBERS_OF_SET; i++) {
		const struct weir_connection_flow_set *set = &tables->flow_sets[i / NUMBERS_OF_SET];
		uint32_t way = i % NUMBERS_OF_SET;

		if (way < WEIR_FLOW_WAYS && set->flow[way].owner)
			check_flow(tables, i, &set->flow[way]);
	}
	for (uint32_t i = 0; i < image->rule_count; i++)
		check_figures(tables, "rule", i, &tables->rules[i], tables->rules[i].now,
			      tables->found_of_rule[image->rules[i].flows_slot],
			      tables->flows_are_evicted ? LEFT_OVER_MOST : 0);
}

static struct sweep check(const struct rig *rig, uint64_t now_ns, bool flows_are_evicted)
{
	_cleanup_(free_tables) struct tables tables = {};

	copy_tables(rig, now_ns, &tables);
	tables.flows_are_evicted = flows_are_evicted;
	count_connections(&tables);
	check_all(&tables);
	return tables.sweep;
}

struct sweep sweep_check(const struct rig *rig, uint64_t now_ns)
{
	return check(rig, now_ns, false);
}

struct sweep sweep_check_evicted(const struct rig *rig, uint64_t now_ns)
{
	return check(rig, now_ns, true);
}

void sweep_count(const struct rig *rig, uint64_t now_ns, uint64_t *ret_counts)
{
	_cleanup_(free_tables) struct tables tables = {};

	copy_tables(rig, now_ns, &tables);
	count_connections(&tables);
	for (uint32_t i = 0; i < rig->image->rule_count; i++)
		ret_counts[i] = tables.found_of_rule[rig->image->rules[i].flows_slot];
}
