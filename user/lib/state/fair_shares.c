// SPDX-License-Identifier: GPL-2.0-only
#include "state/fair_shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "host/host.h"
#include "program/array.h"
#include "state/flow_keys.h"
#include "state/observe.h"
#include "tables/rule_kind.h"
#include "weir_fair.h"

/* Children have no limit of their own, so none is shown as a flow with one. */
int weir_observe_fair(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add, void *data)
{
	return 0;
}

/* Does the hidden rule describe the children of this one? */
static bool describes_children_of(const struct weir_rule_info *hidden, const struct weir_rule_info *rule)
{
	const size_t prefix = strlen(WEIR_FAIR_PREFIX);

	return hidden->state == WEIR_SLOT_USED && weir_has_fair_flows(hidden) &&
	       !strncmp(hidden->name, WEIR_FAIR_PREFIX, prefix) &&
	       !strncmp(hidden->name + prefix, rule->name, WEIR_NAME_BYTES - prefix);
}

const struct weir_rule_info *weir_children_of(const struct weir_instance *instance, const struct weir_rule_info *rule)
{
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++)
		if (describes_children_of(&instance->rules[slot], rule))
			return &instance->rules[slot];
	return NULL;
}

bool weir_fair_look(const struct weir_rule_info *rule, const struct weir_fair_parent *parent, uint64_t now_ns,
		    struct weir_fair_use *ret_use)
{
	const uint32_t scale = rule->identity.interval_ns ? weir_fair_scale(rule->identity.interval_ns) : 0;
	uint64_t interval = scale ? now_ns / (rule->identity.interval_ns * scale) : 0;
	const struct weir_fair_counts *counts = &parent->counts[(interval - 1) & 1];

	/* Since now_ns, the program has begun to count the next one in its place. */
	if (counts->interval == interval + 2)
		counts = &parent->counts[interval++ & 1];
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
		table = weir_array_map(instance->map_fd[WEIR_TABLE_FAIR_SHARES], WEIR_FAIR_CHUNKS(sets), sizeof(*table),
				       false);
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

/* ---- children ---- */

static int compare_flows(const void *left, const void *right)
{
	const struct weir_fair_flow *a = left, *b = right;

	return (a->use.offered < b->use.offered) - (a->use.offered > b->use.offered);
}

/* Sort them, and keep those that were asked for. */
static void keep_most(struct weir_fair_flows *flows, size_t most)
{
	if (flows->count)
		qsort(flows->most, flows->count, sizeof(*flows->most), compare_flows);
	if (flows->count > most)
		flows->count = most;
}

/* The child in a way of a set, if its parent is contended and is of the wanted rule. */
static bool look_at_way(const struct weir_instance *instance, const struct weir_fair_chunk *table, uint32_t rule_slot,
			const struct weir_fair_child *child, uint64_t now_ns, struct weir_fair_flow *ret_flow)
{
	const uint32_t sets = instance->info.tables[WEIR_TABLE_FAIR_SHARES].size;
	const struct weir_fair_parent_set *parents =
		&table[WEIR_FAIR_FIRST_PARENTS(sets) + child->parent_set % WEIR_FAIR_PARENT_SETS].parents;
	const struct weir_rule_info *rule;
	struct weir_fair_use shares;
	int way = 0;

	while (way < WEIR_FAIR_PARENT_WAYS && parents->tag[way] != child->parent_tag)
		way++;
	if (way == WEIR_FAIR_PARENT_WAYS || parents->parent[way].rule_slot >= instance->info.rule_slots)
		return false;
	rule = &instance->rules[parents->parent[way].rule_slot];
	*ret_flow = (struct weir_fair_flow){.rule_slot = parents->parent[way].rule_slot};
	if (rule->state != WEIR_SLOT_USED || (rule_slot != WEIR_ANY_RULE && rule_slot != ret_flow->rule_slot) ||
	    !weir_fair_look(rule, &parents->parent[way], now_ns, &shares) ||
	    !weir_fair_look_at_child(rule, child, now_ns, &ret_flow->use))
		return false;
	ret_flow->due = ret_flow->use.is_new ? 0 : shares.level * ret_flow->use.weight;
	return true;
}

static void scan_children(const struct weir_instance *instance, const struct weir_fair_chunk *table, uint32_t rule_slot,
			  size_t most, const struct weir_flow_keys *keys, struct weir_fair_flows *flows)
{
	const uint32_t sets = instance->info.tables[WEIR_TABLE_FAIR_SHARES].size;
	const uint64_t now_ns = weir_host_now_ns();

	for (uint32_t set = 0; set < sets; set++) {
		const struct weir_fair_set *at =
			&table[set / WEIR_FAIR_SETS_PER_CHUNK].children[set % WEIR_FAIR_SETS_PER_CHUNK];

		for (int way = 0; way < WEIR_FLOW_WAYS; way++) {
			const uint32_t tag = at->flows.tag[way];
			const struct weir_named_flow *name;
			struct weir_fair_flow flow;

			if (!tag || !look_at_way(instance, table, rule_slot, &at->child[way], now_ns, &flow))
				continue;
			flows->active++;
			name = weir_flow_keys_find(keys, WEIR_FLOW_OF_KIND + WEIR_KIND_FAIR, set, tag);
			flow.has_key = name && name->rule_slot < instance->info.rule_slots &&
				       describes_children_of(&instance->rules[name->rule_slot],
							     &instance->rules[flow.rule_slot]);
			if (flow.has_key) {
				flow.children_slot = name->rule_slot;
				flow.key = name->key;
			}
			if (flows->count == 2 * most)
				keep_most(flows, most);
			flows->most[flows->count++] = flow;
		}
	}
}

int weir_fair_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			 struct weir_fair_flows *ret_flows, struct weir_diag *diag)
{
	const uint32_t sets = instance->info.tables[WEIR_TABLE_FAIR_SHARES].size;
	_cleanup_(weir_fair_flows_free) struct weir_fair_flows found = {};
	_cleanup_(weir_flow_keys_free) struct weir_flow_keys keys = {};
	const struct weir_fair_chunk *table;
	int err = 0;

	most = most ?: 1;
	*ret_flows = (struct weir_fair_flows){};
	if (!sets || instance->is_incompatible[WEIR_TABLE_FAIR_SHARES] ||
	    !weir_any_rule(weir_has_fair_flows, instance->rules, instance->info.rule_slots))
		return 0;
	table = weir_array_map(instance->map_fd[WEIR_TABLE_FAIR_SHARES], WEIR_FAIR_CHUNKS(sets), sizeof(*table), false);
	if (!table)
		err = -errno;
	found.most = calloc(2 * most, sizeof(*found.most));
	if (!err && !found.most)
		err = -ENOMEM;
	if (!err)
		err = weir_flow_keys_read(instance, weir_host_cpus(), &keys);
	if (!err)
		scan_children(instance, table, rule_slot, most, &keys, &found);
	weir_array_unmap((void *)(uintptr_t)table, WEIR_FAIR_CHUNKS(sets), sizeof(*table));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the fair shares of instance '%s'", instance->name);
	keep_most(&found, most);
	*ret_flows = found;
	found = (struct weir_fair_flows){};
	return 0;
}

void weir_fair_flows_free(struct weir_fair_flows *flows)
{
	free(flows->most);
	*flows = (struct weir_fair_flows){};
}
