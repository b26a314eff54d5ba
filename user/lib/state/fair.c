// SPDX-License-Identifier: GPL-2.0-only
#include "state/fair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "host/host.h"
#include "program/array.h"
#include "state/observe.h"
#include "tables/rule_kind.h"
#include "weir_fair.h"

/* Children have no limit of their own, so none is shown as a flow with one. */
int weir_observe_fair(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add, void *data)
{
	return 0;
}

const struct weir_rule_info *weir_children_of(const struct weir_instance *instance, const struct weir_rule_info *rule)
{
	const size_t prefix = strlen(WEIR_FAIR_PREFIX);

	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++) {
		const struct weir_rule_info *hidden = &instance->rules[slot];

		if (hidden->state == WEIR_SLOT_USED && weir_has_fair_flows(hidden) &&
		    !strncmp(hidden->name, WEIR_FAIR_PREFIX, prefix) &&
		    !strncmp(hidden->name + prefix, rule->name, WEIR_NAME_BYTES - prefix))
			return hidden;
	}
	return NULL;
}

bool weir_fair_look(const struct weir_rule_info *rule, const struct weir_fair_parent *parent, uint64_t now_ns,
		    struct weir_fair_use *ret_use)
{
	const uint32_t scale = rule->identity.interval_ns ? weir_fair_scale(rule->identity.interval_ns) : 0;
	const uint64_t interval = scale ? now_ns / (rule->identity.interval_ns * scale) : 0;
	const struct weir_fair_counts *counts = &parent->counts[(interval - 1) & 1];

	if (!scale || parent->contended + 1 <= interval)
		return false;
	*ret_use = (struct weir_fair_use){
		.rule_slot = parent->rule_slot,
		.key = parent->key,
		.level = (double)parent->level / (1 << WEIR_FAIR_LEVEL_BITS) / scale,
		.limit = parent->limit / scale,
	};
	if (counts->interval == interval) {
		ret_use->offered = counts->offered / scale;
		ret_use->children = counts->children;
		ret_use->newcomers = counts->newcomers;
		ret_use->above = parent->level ? weir_fair_above(counts, parent->level >> WEIR_FAIR_LEVEL_BITS,
								 parent->shift & 31)
					       : 0;
	}
	return true;
}

bool weir_fair_look_at_child(const struct weir_rule_info *rule, const struct weir_fair_child *child, uint64_t now_ns,
			     struct weir_fair_child_use *ret_use)
{
	const uint32_t scale = rule->identity.interval_ns ? weir_fair_scale(rule->identity.interval_ns) : 0;
	const uint64_t interval = scale ? now_ns / (rule->identity.interval_ns * scale) : 0;
	const uint64_t stamp = UINT64_MAX >> WEIR_FAIR_STAMP_SHIFT;
	uint64_t word = child->offered;

	if (!scale || ((interval - (word >> WEIR_FAIR_STAMP_SHIFT)) & stamp) > 1)
		return false;
	*ret_use = (struct weir_fair_child_use){.weight = child->weight ?: 1, .is_new = word & WEIR_FAIR_NEW};
	if (child->before >> WEIR_FAIR_STAMP_SHIFT == ((interval - 1) & stamp))
		word = child->before;
	ret_use->offered = (word & WEIR_FAIR_UNITS) / scale;
	return true;
}

static int compare_uses(const void *left, const void *right)
{
	const struct weir_fair_use *a = left, *b = right;

	if (a->rule_slot != b->rule_slot)
		return a->rule_slot < b->rule_slot ? -1 : 1;
	return a->level < b->level ? -1 : a->level > b->level;
}

int weir_fair_read(const struct weir_instance *instance, struct weir_fair_uses *ret_uses, struct weir_diag *diag)
{
	const uint32_t sets = instance->info.tables[WEIR_TABLE_FAIR_SHARES].size;
	_cleanup_(weir_fair_uses_free) struct weir_fair_uses found = {};
	const struct weir_fair_chunk *table;
	const uint64_t now_ns = weir_host_now_ns();
	bool is_out_of_memory = false;

	if (sets && !instance->is_incompatible[WEIR_TABLE_FAIR_SHARES] &&
	    weir_any_rule(weir_has_fair_flows, instance->rules, instance->info.rule_slots)) {
		table = weir_array_map(instance->map_fd[WEIR_TABLE_FAIR_SHARES], WEIR_FAIR_CHUNKS(sets), sizeof(*table), false);
		if (!table)
			return weir_diag_fail(diag, errno, NULL, "cannot read the fair shares of instance '%s'",
					      instance->name);
		for (uint32_t i = 0; i < WEIR_FAIR_PARENT_SETS * WEIR_FAIR_PARENT_WAYS; i++) {
			const struct weir_fair_parent_set *set =
				&table[WEIR_FAIR_FIRST_PARENTS(sets) + i / WEIR_FAIR_PARENT_WAYS].parents;
			const struct weir_fair_parent *parent = &set->parent[i % WEIR_FAIR_PARENT_WAYS];
			struct weir_fair_use use, *added;

			if (!set->tag[i % WEIR_FAIR_PARENT_WAYS] || parent->rule_slot >= instance->info.rule_slots ||
			    instance->rules[parent->rule_slot].state != WEIR_SLOT_USED ||
			    !weir_fair_look(&instance->rules[parent->rule_slot], parent, now_ns, &use))
				continue;
			added = weir_array_add((void **)&found.uses, found.count, sizeof(*added));
			is_out_of_memory |= !added;
			if (added)
				found.uses[found.count++] = use;
		}
		weir_array_unmap((void *)(uintptr_t)table, WEIR_FAIR_CHUNKS(sets), sizeof(*table));
	}
	if (is_out_of_memory)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the fair shares of instance '%s'",
				      instance->name);
	if (found.count)
		qsort(found.uses, found.count, sizeof(*found.uses), compare_uses);
	*ret_uses = found;
	found = (struct weir_fair_uses){};
	return 0;
}

struct weir_fair_sum weir_fair_sum_of(const struct weir_fair_uses *uses, uint32_t rule_slot)
{
	struct weir_fair_sum sum = {};

	for (size_t i = 0; i < uses->count; i++) {
		const struct weir_fair_use *use = &uses->uses[i];

		if (use->rule_slot != rule_slot)
			continue;
		sum.contended++;
		if (use->level && (!sum.level || use->level < sum.level))
			sum.level = use->level;
		sum.children += use->children;
		sum.newcomers += use->newcomers;
		sum.above += use->above;
	}
	return sum;
}

void weir_fair_uses_free(struct weir_fair_uses *uses)
{
	free(uses->uses);
	*uses = (struct weir_fair_uses){};
}
