// SPDX-License-Identifier: GPL-2.0-only
#include "state/penalised_flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"

struct scan {
	struct weir_penalised_flows flows;
	uint32_t rule_slot; /* the rule whose penalties are wanted, or WEIR_ANY_RULE */
	size_t most;
};

bool weir_penalties_are_given(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].penalty_ms)
			return true;
	return false;
}

static int compare_left(const void *left, const void *right)
{
	const struct weir_penalty *a = left, *b = right;

	return (a->left_ns < b->left_ns) - (a->left_ns > b->left_ns);
}

static void keep_longest(struct scan *scan)
{
	scan->flows.count = weir_keep_first(scan->flows.longest, scan->flows.count, scan->most,
					    sizeof(*scan->flows.longest), compare_left);
}

static void add(const struct weir_penalty *penalty, void *data)
{
	struct scan *scan = data;

	if (scan->rule_slot != WEIR_ANY_RULE && (!penalty->is_noted || scan->rule_slot != penalty->rule_slot))
		return;
	scan->flows.active++;
	if (penalty->is_noted)
		scan->flows.by_rule[penalty->rule_slot]++;
	scan->flows.longest[scan->flows.count++] = *penalty;
	if (scan->flows.count == 2 * scan->most)
		keep_longest(scan);
}

#define PENALTY_TABLES                                                                                                 \
	(WEIR_TABLE_BIT(WEIR_TABLE_PENALISED_FLOWS) | WEIR_TABLE_BIT(WEIR_TABLE_PENALTY_KEYS) |                        \
	 WEIR_TABLE_BIT(WEIR_TABLE_PENALISED_RULES))

int weir_penalties_each(const struct weir_instance *instance, bool writes, weir_penalty_visit *visit, void *data,
			struct weir_diag *diag)
{
	const struct weir_tables tables = weir_instance_tables(instance);
	struct weir_penalties penalties = {};
	int err;

	if (!weir_penalties_are_given(instance))
		return 0;
	err = weir_instance_expect_tables(instance, PENALTY_TABLES, "the penalties", diag);
	if (err)
		return err;
	err = weir_penalties_map(&penalties, &tables, writes);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the penalties of instance '%s'", instance->name);
	weir_penalties_visit(&penalties, instance->rules, weir_host_now_ns(), visit, data);
	weir_penalties_unmap(&penalties);
	return 0;
}

int weir_penalties_lay_ghosts(const struct weir_instance *instance, struct weir_diag *diag)
{
	const uint32_t sets = instance->info.tables[WEIR_TABLE_GHOSTS].size;
	struct weir_ghost_set *ghosts;

	if (!sets || !weir_penalties_are_given(instance) || instance->is_incompatible[WEIR_TABLE_GHOSTS])
		return 0;
	ghosts = weir_array_map(instance->map_fd[WEIR_TABLE_GHOSTS], sets, sizeof(*ghosts), true);
	if (!ghosts)
		return weir_diag_fail(diag, errno, NULL, "cannot end evicted penalties of instance '%s'",
				      instance->name);
	memset(ghosts, 0, sets * sizeof(*ghosts));
	weir_array_unmap(ghosts, sets, sizeof(*ghosts));
	return 0;
}

int weir_penalties_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			struct weir_penalised_flows *ret_flows, struct weir_diag *diag)
{
	struct scan scan = {.rule_slot = rule_slot, .most = most ? most : 1};
	int err;

	scan.flows.longest = calloc(2 * scan.most, sizeof(*scan.flows.longest));
	scan.flows.by_rule = calloc(instance->info.rule_slots + 1, sizeof(*scan.flows.by_rule));
	if (scan.flows.longest && scan.flows.by_rule)
		err = weir_penalties_each(instance, false, add, &scan, diag);
	else
		err = weir_diag_fail(diag, ENOMEM, NULL, "cannot read the penalties of instance '%s'", instance->name);
	if (err) {
		weir_penalised_flows_free(&scan.flows);
		return err;
	}
	keep_longest(&scan);
	*ret_flows = scan.flows;
	return 0;
}

void weir_penalised_flows_free(struct weir_penalised_flows *flows)
{
	free(flows->longest);
	free(flows->by_rule);
	*flows = (struct weir_penalised_flows){};
}
