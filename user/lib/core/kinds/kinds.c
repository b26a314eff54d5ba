// SPDX-License-Identifier: GPL-2.0-only
/* The table of the kinds of limits, and which kind a rule has. */
#include "kinds/kinds.h"

#include "rules/ruleset.h"

#define KIND(identifier, name, ...) extern const struct weir_kind weir_kind_##name;
#include "weir_kinds.def"

const struct weir_kind *const weir_kinds[WEIR_KIND_COUNT] = {
#define KIND(identifier, name, ...) [WEIR_KIND_##identifier] = &weir_kind_##name,
#include "weir_kinds.def"
};

static enum weir_kind_id choose(const struct weir_choices *choices)
{
	enum weir_kind_id id = WEIR_KIND_COUNT - 1;

	while (id > 0 && !weir_kinds[id]->is_chosen(choices))
		id--;
	return id;
}

enum weir_kind_id weir_kind_id_of(const struct weir_ruleset_rule *rule)
{
	return choose(
		&(struct weir_choices){rule->metric, rule->behavior, rule->relation, rule->occupies, rule->window});
}

const struct weir_kind *weir_kind_of(const struct weir_ruleset_rule *rule)
{
	return weir_kinds[weir_kind_id_of(rule)];
}

enum weir_kind_id weir_kind_id_of_info(const struct weir_rule_info *info)
{
	return choose(&(struct weir_choices){info->identity.metric, info->behavior, info->relation, info->occupies,
					     info->identity.window});
}

const struct weir_kind *weir_kind_of_info(const struct weir_rule_info *info)
{
	return weir_kinds[weir_kind_id_of_info(info)];
}
