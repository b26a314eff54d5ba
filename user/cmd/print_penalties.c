// SPDX-License-Identifier: GPL-2.0-only
#include "print_penalties.h"

#include "base/util.h"
#include "report/keys.h"

static void print_penalty(struct weir_table *table, const struct weir_instance *instance,
			  const struct weir_penalty *penalty)
{
	const struct weir_rule_info *rule = penalty->is_noted ? &instance->rules[penalty->rule_slot] : NULL;
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", rule ? rule->name : "?");
	weir_table_cell(table, "%.1f", penalty->left_ns / 1e9);
	weir_table_cell(table, "%.1f", penalty->lasts_ms / 1e3);
	weir_table_cell(table, "%s", rule ? weir_flow_key_words(instance, rule, &penalty->key, words) : "?");
}

void weir_print_penalties(const struct weir_instance *instance, const struct weir_penalised_flows *flows)
{
	static const char *const headings[] = {"rule", ">s left", ">of s", "penalised flow"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};

	for (size_t i = 0; i < flows->count; i++)
		print_penalty(&table, instance, &flows->longest[i]);
	weir_table_print(&table, stdout);
	printf("%s%llu penalised flow%s\n", flows->count ? "\n" : "", (unsigned long long)flows->active,
	       weir_plural(flows->active));
}
