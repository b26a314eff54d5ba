// SPDX-License-Identifier: GPL-2.0-only
/* The table of the kinds of limits, and which of them a rule has. */
#include "kinds/kinds.h"

#include "rules/ruleset.h"

extern const struct weir_kind weir_kind_window, weir_kind_associated, weir_kind_throttle, weir_kind_connections;
extern const struct weir_kind weir_kind_borrowing, weir_kind_tokens, weir_kind_system, weir_kind_breaker;

const struct weir_kind *const weir_kinds[WEIR_KIND_COUNT] = {
	[WEIR_KIND_WINDOW] = &weir_kind_window,	      [WEIR_KIND_ASSOCIATED] = &weir_kind_associated,
	[WEIR_KIND_THROTTLE] = &weir_kind_throttle,   [WEIR_KIND_CONNECTIONS] = &weir_kind_connections,
	[WEIR_KIND_BORROWING] = &weir_kind_borrowing, [WEIR_KIND_TOKENS] = &weir_kind_tokens,
	[WEIR_KIND_SYSTEM] = &weir_kind_system,	      [WEIR_KIND_BREAKER] = &weir_kind_breaker,
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
	return choose(&(struct weir_choices){rule->metric, rule->behavior, rule->relation, rule->lends, rule->window});
}

const struct weir_kind *weir_kind_of(const struct weir_ruleset_rule *rule)
{
	return weir_kinds[weir_kind_id_of(rule)];
}

const struct weir_kind *weir_kind_of_info(const struct weir_rule_info *info)
{
	return weir_kinds[choose(&(struct weir_choices){info->identity.metric, info->behavior, info->relation,
							info->lends, info->identity.window})];
}
