// SPDX-License-Identifier: GPL-2.0-only
#include "program/penalty_map.h"

#include <errno.h>

#include "program/array.h"
#include "tables/entry_state.h"

int weir_penalties_map(struct weir_penalties *ret_penalties, const struct weir_tables *tables, bool writes)
{
	const uint32_t set_count = tables->size[WEIR_TABLE_PENALISED_FLOWS];
	struct weir_penalties penalties = {.set_count = set_count, .rule_slots = tables->rule_slots};
	int err = 0;

	penalties.sets =
		weir_array_map(tables->fd[WEIR_TABLE_PENALISED_FLOWS], set_count, sizeof(*penalties.sets), writes);
	if (penalties.sets)
		penalties.keys = weir_array_map(tables->fd[WEIR_TABLE_PENALTY_KEYS], set_count * WEIR_FLOW_WAYS,
						sizeof(*penalties.keys), writes);
	if (penalties.keys)
		penalties.rules = weir_array_map(tables->fd[WEIR_TABLE_PENALISED_RULES], tables->rule_slots,
						 sizeof(*penalties.rules), writes);
	if (!penalties.rules)
		err = -errno;
	if (err)
		weir_penalties_unmap(&penalties);
	else
		*ret_penalties = penalties;
	return err;
}

void weir_penalties_unmap(struct weir_penalties *penalties)
{
	weir_array_unmap(penalties->sets, penalties->set_count, sizeof(*penalties->sets));
	weir_array_unmap(penalties->keys, penalties->set_count * WEIR_FLOW_WAYS, sizeof(*penalties->keys));
	weir_array_unmap(penalties->rules, penalties->rule_slots, sizeof(*penalties->rules));
	*penalties = (struct weir_penalties){};
}

/* The penalties of rules whose resource has no flow key. */
static void visit_rules(const struct weir_penalties *penalties, const struct weir_rule_info *rules, uint64_t now_ns,
			weir_penalty_visit *visit, void *data)
{
	for (uint32_t slot = 0; slot < penalties->rule_slots; slot++) {
		struct weir_rule_penalty *at = &penalties->rules[slot];
		struct weir_penalty penalty = {.rule_slot = slot, .is_noted = true, .word = &at->until};

		if (rules[slot].state != WEIR_SLOT_USED || !rules[slot].penalty_ms || rules[slot].identity.key_fields)
			continue;
		penalty.seen = __atomic_load_n(&at->until, __ATOMIC_ACQUIRE);
		penalty.left_ns = weir_penalty_left_ns(penalty.seen, 0, now_ns);
		penalty.lasts_ms = weir_penalty_lasts_ms(penalty.seen, at->lasted_ms);
		if (penalty.left_ns)
			visit(&penalty, data);
	}
}

static void visit_way(const struct weir_penalties *penalties, const struct weir_rule_info *rules, uint32_t set,
		      uint32_t way, uint64_t now_ns, weir_penalty_visit *visit, void *data)
{
	struct weir_penalty_set *at = &penalties->sets[set];
	const struct weir_penalised *noted = &penalties->keys[set * WEIR_FLOW_WAYS + way];
	struct weir_penalty penalty = {.tag = at->flows.tag[way], .word = &at->until[way]};

	penalty.seen = __atomic_load_n(&at->until[way], __ATOMIC_ACQUIRE);
	penalty.left_ns = penalty.tag ? weir_penalty_left_ns(penalty.seen, penalty.tag, now_ns) : 0;
	if (!penalty.left_ns)
		return;
	penalty.lasts_ms = weir_penalty_lasts_ms(penalty.seen, at->lasted_ms[way]);
	penalty.is_noted = __atomic_load_n(&noted->tag, __ATOMIC_ACQUIRE) == penalty.tag;
	penalty.rule_slot = noted->rule_slot;
	penalty.key = noted->key;
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* an acquire load does not wait for earlier loads */
	penalty.is_noted &= __atomic_load_n(&noted->tag, __ATOMIC_ACQUIRE) == penalty.tag &&
			    penalty.rule_slot < penalties->rule_slots;
	/* A penalty of a rule that is gone, or that no longer penalises, blocks nobody. */
	if (penalty.is_noted &&
	    (rules[penalty.rule_slot].state != WEIR_SLOT_USED || !rules[penalty.rule_slot].penalty_ms))
		return;
	visit(&penalty, data);
}

void weir_penalties_visit(const struct weir_penalties *penalties, const struct weir_rule_info *rules, uint64_t now_ns,
			  weir_penalty_visit *visit, void *data)
{
	visit_rules(penalties, rules, now_ns, visit, data);
	for (uint32_t set = 0; set < penalties->set_count; set++)
		for (uint32_t way = 0; way < WEIR_FLOW_WAYS; way++)
			visit_way(penalties, rules, set, way, now_ns, visit, data);
}

bool weir_penalty_end(const struct weir_penalty *penalty)
{
	__u64 expected = penalty->seen;

	return __atomic_compare_exchange_n(penalty->word, &expected, weir_penalty_none(penalty->tag), false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* No program has a rule in these slots now, so nobody writes there. */
void weir_penalties_forget(const struct weir_penalties *penalties, const bool *is_slot_forgotten)
{
	for (uint32_t slot = 0; slot < penalties->rule_slots; slot++)
		if (is_slot_forgotten[slot])
			penalties->rules[slot] = (struct weir_rule_penalty){};
	for (uint32_t i = 0; i < penalties->set_count * WEIR_FLOW_WAYS; i++) {
		struct weir_penalty_set *set = &penalties->sets[i / WEIR_FLOW_WAYS];
		const struct weir_penalised *noted = &penalties->keys[i];
		struct weir_penalty penalty = {
			.word = &set->until[i % WEIR_FLOW_WAYS],
			.tag = set->flows.tag[i % WEIR_FLOW_WAYS],
		};

		if (!penalty.tag || noted->tag != penalty.tag || noted->rule_slot >= penalties->rule_slots ||
		    !is_slot_forgotten[noted->rule_slot])
			continue;
		penalty.seen = *penalty.word;
		weir_penalty_end(&penalty);
	}
}
