// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind ASSOCIATED: a rule is evaluated by the shadow window of another resource (docs/semantics.md, 5).
 * compile/shadows.c makes the shadow window, and its rows are those of a window.
 */
#include <string.h>

#include "base/util.h"
#include "kinds/kinds.h"
#include "rules/rule.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->relation == WEIR_RELATION_ASSOCIATED;
}

static void refer_to(struct weir_reader *reader, const struct weir_draft *draft, size_t index)
{
	const struct weir_node *value = draft->value[RULE_REF_RESOURCE];
	const struct weir_ruleset_resource *reference = &reader->ruleset->resources[index];
	const struct weir_flow *own = weir_flow_of(reader->ruleset, draft->rule);
	const uint8_t directions = weir_match_directions(&reader->ruleset->resources[draft->rule->resource].match);

	if (index == draft->rule->resource)
		weir_complain(reader, value, "name another, or use CurrentResource",
			      "refResource is the rule's own resource");
	else if (reference->flow.fields && !weir_is_same_key(&reference->flow, own, directions))
		weir_complain(reader, value,
			      draft->rule->has_own_key ? "give refResource the key in 'per', or none"
						       : "give both resources the same flow key, or refResource none",
			      "refResource '%.*s' has another flow key than the rule%s", WEIR_SHOWN(reference->name),
			      draft->rule->has_own_key ? "" : "'s resource");
	else
		draft->rule->ref_resource = index;
	if (weir_match_directions(&reference->match) != directions && weir_names_own_ends(&reference->flow))
		weir_warn(
			reader, value, "write 'remote' and 'local' in both keys",
			"refResource '%.*s' has another direction, so its source and destination are the opposite ends",
			WEIR_SHOWN(reference->name));
}

void weir_check_reference(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_REF_RESOURCE];
	const char *name;
	size_t index;

	if (draft->rule->window == WEIR_WINDOW_TOKENS && draft->rule->behavior == WEIR_BEHAVIOR_REJECT)
		weir_complain(
			reader, weir_draft_at(draft, RULE_WINDOW), "use leap, strict or smooth",
			"AssociatedResource needs a window that counts what passed, and 'window: tokens' has none");
	if (!value || (value->kind == WEIR_NODE_WORD && !value->text[0]))
		weir_complain(reader, weir_draft_at(draft, value ? RULE_REF_RESOURCE : RULE_RELATION),
			      "name the resource whose traffic counts: 'refResource: NAME'",
			      "AssociatedResource needs a refResource");
	else if (weir_look_up_resource(reader, value, "refResource", &name, &index) && draft->has_resource)
		refer_to(reader, draft, index);
}

const struct weir_kind weir_kind_associated = {
	.is_chosen = is_chosen,
	.fields = WEIR_RULE_FIELDS_ALL & ~(1u << RULE_WHEN_FULL),
	.threshold_hint = "write how many packets an interval may hold: 'threshold: 1000'",
	.below_one = "a threshold below 1 admits nothing",
	.below_one_hint = "a packet is admitted whole or not at all",
	.check = weir_check_reference,
	.reads_shadow = true,
	.needs_allowed = true,
};
