// SPDX-License-Identifier: GPL-2.0-only
/* Single fields of Sentinel's rules: helpers shared by the readers of its lists. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "sentinel/sentinel.h"

void weir_sentinel_say(struct weir_sentinel_rule *rule, enum weir_rule_field field, const struct weir_node *at,
		       const char *word)
{
	rule->words[field] = (struct weir_node){
		.kind = WEIR_NODE_WORD,
		.text = (char *)word, /* nodes are not written to after parsing */
		.document = at->document,
		.place = at->place,
	};
	rule->draft.value[field] = &rule->words[field];
}

void weir_sentinel_say_number(struct weir_sentinel_rule *rule, enum weir_rule_field field, const struct weir_node *at,
			      uint64_t number)
{
	snprintf(rule->texts[field], sizeof(rule->texts[field]), "%llu", (unsigned long long)number);
	weir_sentinel_say(rule, field, at, rule->texts[field]);
}

void weir_sentinel_check_regex(struct weir_reader *reader, const struct weir_node *node)
{
	const char *word;

	if (!node || !weir_read_word(reader, node, "regex", &word) || !strcmp(word, "false"))
		return;
	if (!strcmp(word, "true"))
		weir_complain(reader, node, "write a rule for each resource, with 'regex' false",
			      "regex: packets find their resource by its match, not by a pattern of names");
	else
		weir_complain(reader, node, "write true or false", "'%.*s' is not a value of 'regex'",
			      WEIR_SHOWN(word));
}

/* Do weir's own rules have a field of that name? */
static bool is_weirs(const char *field)
{
	for (enum weir_rule_field i = 0; i < RULE_FIELD_COUNT; i++)
		if (!strcasecmp(field, weir_rule_fields[i]))
			return true;
	return false;
}

void weir_sentinel_warn_of_unknown(struct weir_reader *reader, const struct weir_node *key, const void *entries,
				   size_t count, size_t entry_bytes)
{
	const char *nearest = weir_nearest(key->text, entries, count, entry_bytes);
	char hint[128];

	for (size_t i = 0; i < reader->unknown_count; i++)
		if (!strcmp(reader->unknown[i], key->text))
			return;
	if (reader->unknown_count < ARRAY_SIZE(reader->unknown))
		reader->unknown[reader->unknown_count++] = key->text;
	if (is_weirs(key->text))
		snprintf(hint, sizeof(hint), "to use it, write the rule under 'rules:' in weir's own format");
	else if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest);
	else
		snprintf(hint, sizeof(hint), "docs/sentinel.md has the fields of all lists");
	weir_warn(reader, key, hint, "'%.*s' has no effect: Sentinel's rules have no such field",
		  WEIR_SHOWN(key->text));
}

void weir_sentinel_read_item(struct weir_reader *reader, const struct weir_node *map, bool is_java,
			     const char *const *names, size_t count, const struct weir_node **values)
{
	for (size_t at = 0; at + 1 < map->count; at += 2) {
		const struct weir_node *key = map->items[at], *value = map->items[at + 1];
		size_t i = 0;

		if (key->kind != WEIR_NODE_WORD || value->kind == WEIR_NODE_NULL)
			continue;
		while (i < count && (is_java ? strcmp : strcasecmp)(key->text, names[i]))
			i++;
		if (i < count)
			values[i] = value;
		else
			weir_sentinel_warn_of_unknown(reader, key, names, count, sizeof(*names));
	}
}

unsigned int weir_sentinel_read_choice(struct weir_reader *reader, const struct weir_node *node, const char *field,
				       const char *const *names, size_t count)
{
	unsigned int choice = 0;

	if (node && weir_check_unquoted(reader, node))
		weir_read_choice(reader, node, field, names, count, true, &choice);
	return choice;
}

void weir_sentinel_check_caller(struct weir_reader *reader, const struct weir_node *node)
{
	const char *word;

	if (node && weir_read_word(reader, node, "limitApp", &word) && word[0] && strcmp(word, "default"))
		weir_complain(reader, node,
			      "write \"default\"; to limit some callers, make a resource that matches their addresses",
			      "limitApp: packets do not carry the caller '%.*s'", WEIR_SHOWN(word));
}

bool weir_sentinel_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field,
			       uint64_t low, uint64_t high, uint64_t missing, uint64_t *ret_number)
{
	*ret_number = missing;
	return !node ||
	       (weir_check_unquoted(reader, node) && weir_read_number(reader, node, field, low, high, ret_number));
}
