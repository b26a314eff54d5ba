// SPDX-License-Identifier: GPL-2.0-only
#include "print_penalties.h"

#include "base/util.h"

#define NSEC_PER_MSEC 1000000ull

static json_t *describe_penalty(const struct weir_instance *instance, const struct weir_penalty *penalty)
{
	const struct weir_rule_info *rule = penalty->is_noted ? &instance->rules[penalty->rule_slot] : NULL;
	json_t *key = json_null();

	if (rule)
		key = rule->identity.key_fields ? weir_json_key(&rule->identity, &penalty->key) : json_object();
	return json_pack("{s:s?, s:s?, s:o, s:I, s:I}", "rule", rule ? rule->name : NULL, "resource",
			 rule ? rule->resource_name : NULL, "key", key, "leftMs",
			 (json_int_t)(penalty->left_ns / NSEC_PER_MSEC), "lastsMs", (json_int_t)penalty->lasts_ms);
}

json_t *weir_json_penalties(const struct weir_instance *instance, const struct weir_penalised_flows *flows)
{
	json_t *longest = json_array();

	for (size_t i = 0; i < flows->count; i++)
		weir_json_append(&longest, describe_penalty(instance, &flows->longest[i]));
	return json_pack("{s:I, s:o}", "active", (json_int_t)flows->active, "flows", longest);
}

static void print_penalty(struct weir_table *table, const struct weir_instance *instance,
			  const struct weir_penalty *penalty)
{
	const struct weir_rule_info *rule = penalty->is_noted ? &instance->rules[penalty->rule_slot] : NULL;
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", rule ? rule->name : "?");
	weir_table_cell(table, "%.1f", penalty->left_ns / 1e9);
	weir_table_cell(table, "%.1f", penalty->lasts_ms / 1e3);
	if (rule && rule->identity.key_fields)
		weir_table_cell(table, "%s", weir_format_key(&rule->identity, &penalty->key, words));
	else
		weir_table_cell(table, "%s", rule ? "(the whole resource)" : "?");
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
