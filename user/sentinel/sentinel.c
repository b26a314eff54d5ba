// SPDX-License-Identifier: GPL-2.0-only
/* Lists of Sentinel's rules: how the fields of a rule are sorted, and how unknown fields are refused. */
#include "sentinel/sentinel.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

/* ---- one rule ---- */

/* Fields in which the dashboard records where a rule came from. */
static bool is_of_dashboard(const char *field)
{
	static const char *const fields[] = {"app", "ip", "port", "gmtCreate", "gmtModified"};

	return weir_is_one_of(field, fields, ARRAY_SIZE(fields));
}

/* What to write instead of another kind's field; NULL: there is no advice. */
static const char *advice_instead(const struct weir_sentinel_kind *kind, const char *name)
{
	for (size_t i = 0; i < kind->field_count; i++)
		if (kind->fields[i].instead && !strcasecmp(kind->fields[i].name, name))
			return kind->fields[i].instead;
	return NULL;
}

/* The field that the advice suggests ("write 'count'"), if the rule already has it; otherwise NULL. */
static const struct weir_sentinel_field *advised_field(const struct weir_sentinel_rule *rule, const char *advice)
{
	const struct weir_sentinel_kind *kind = rule->kind;
	char quoted[64];

	for (size_t i = 0; advice && i < kind->field_count; i++) {
		snprintf(quoted, sizeof(quoted), "'%s'", kind->fields[i].name);
		if (kind->fields[i].instead || !strstr(advice, quoted))
			continue;
		for (size_t at = 0; at + 1 < rule->node->count; at += 2)
			if (rule->node->items[at]->kind == WEIR_NODE_WORD &&
			    rule->node->items[at + 1]->kind != WEIR_NODE_NULL &&
			    weir_sentinel_own_field(kind, rule->node->items[at]->text) == &kind->fields[i])
				return &kind->fields[i];
	}
	return NULL;
}

/* Report a field of another kind, which Sentinel ignores. This is only a warning if the rule expresses the same in its
 * own fields, or if Sentinel Java has nothing like it. Otherwise the field may have been intended, and is refused.
 */
static void report_others_field(struct weir_reader *reader, const struct weir_sentinel_rule *rule,
				const struct weir_node *key)
{
	const struct weir_sentinel_kind *kind = rule->kind;
	const char *advice = advice_instead(kind, key->text), *whose = weir_sentinel_owner(kind);
	const struct weir_sentinel_field *advised = advised_field(rule, advice);
	const bool is_needless = !advice || !strncmp(advice, "leave it out", strlen("leave it out"));
	weir_sentinel_set kinds = weir_sentinel_kinds_with(key->text);
	char titles[512], names[256], hint[320] = "leave it out";

	weir_sentinel_name_owners(kinds, titles, sizeof(titles));
	weir_sentinel_join_names(kinds, "", "", " or ", names, sizeof(names));
	if (advised)
		snprintf(hint, sizeof(hint), "leave it out: '%s' implies it", advised->name);
	else if (advice)
		snprintf(hint, sizeof(hint), "%s", advice);
	else if (names[0] && (rule->is_guess || !kind->is_java))
		snprintf(hint, sizeof(hint), "rules with it are %s", names);
	if (!rule->is_guess && (advised || (kind->is_java && is_needless)))
		weir_warn(reader, key, hint, "'%.*s' has no effect: %s %s do not have it", WEIR_SHOWN(key->text), whose,
			  kind->title);
	else
		weir_complain(reader, key, hint, "'%.*s' is a field of %s, not of %s %s", WEIR_SHOWN(key->text), titles,
			      whose, kind->title);
}

/* Next to weir's own rules, a typo must not be taken for an irrelevant field. */
static void complain_in_weirs_file(struct weir_reader *reader, const struct weir_sentinel_kind *kind,
				   const struct weir_node *key, const struct weir_node *value)
{
	size_t count = 0;
	char what[64];

	while (kind->weirs_fields[count])
		count++;
	snprintf(what, sizeof(what), "a rule of '%s'", kind->name);
	weir_complain_unknown_field(reader, key, value, what, kind->weirs_fields, count);
}

/* Fields whose value is a text even if it looks like a number: names, and `id`, which is ignored. */
static bool is_text(const char *field)
{
	static const char *const texts[] = {"id", "resource", "refResource", "limitApp", "paramKey"};

	return weir_is_one_of(field, texts, ARRAY_SIZE(texts));
}

static void take_field(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_node *key,
		       const struct weir_node *value)
{
	const struct weir_sentinel_kind *kind = rule->kind;
	const struct weir_sentinel_field *own = weir_sentinel_own_field(kind, key->text);

	if (!own && kind->weirs_fields && !strcasecmp(key->text, weir_rule_fields[RULE_NAME])) {
		rule->draft.value[RULE_NAME] = value;
	} else if (!own && kind->weirs_fields && !strcasecmp(key->text, weir_rule_fields[RULE_MODE])) {
		rule->draft.value[RULE_MODE] = value;
	} else if (!own && kind->weirs_fields && !strcasecmp(key->text, weir_rule_fields[RULE_ON_BLOCK])) {
		rule->draft.value[RULE_ON_BLOCK] = value;
	} else if (!own && rule->is_in_weirs_file && !weir_sentinel_kinds_with(key->text)) {
		complain_in_weirs_file(reader, kind, key, value);
	} else if (!own && weir_sentinel_kinds_with(key->text)) {
		report_others_field(reader, rule, key);
	} else if (!own) {
		if (!is_of_dashboard(key->text))
			weir_sentinel_warn_of_unknown(reader, key, kind->fields, kind->field_count,
						      sizeof(*kind->fields));
	} else if (kind->is_java && strcmp(own->name, key->text)) {
		char hint[128];

		snprintf(hint, sizeof(hint), "write '%s'", own->name);
		weir_complain(reader, key, hint, "Sentinel Java, which is case-sensitive, has no field '%s'",
			      key->text);
	} else {
		/* Checked even if this rule does not use the field: with another behavior it would. Reported once. */
		if (!is_text(own->name))
			weir_check_unquoted(reader, value);
		rule->values[own - kind->fields] = value;
		if (own->taken_as < RULE_FIELD_COUNT)
			rule->draft.value[own->taken_as] = value;
	}
}

static void read_rule(struct weir_reader *reader, const struct weir_sentinel_kind *kind, bool is_named, bool is_guess,
		      const struct weir_node *item)
{
	static const char *const examples[] = {"resource", "threshold"};
	const struct weir_node *node = weir_sentinel_rule_in(item);
	struct weir_sentinel_rule rule = {
		.kind = kind,
		.node = node,
		.draft = {.node = node, .is_sentinel = true, .mistakes_before = reader->mistakes},
		.is_in_weirs_file = is_named && kind->weirs_fields,
		.is_guess = is_guess,
	};

	if (node->kind != WEIR_NODE_MAP) {
		weir_complain_no_map(reader, node, "a Sentinel rule", examples, ARRAY_SIZE(examples));
		return;
	}
	/* As in both decoders, the last value of a duplicate field counts, and null means absent. */
	for (size_t at = 0; at + 1 < node->count; at += 2)
		if (node->items[at]->kind == WEIR_NODE_WORD && node->items[at + 1]->kind != WEIR_NODE_NULL)
			take_field(reader, &rule, node->items[at], node->items[at + 1]);
	kind->read(reader, &rule);
}

static void read_list(struct weir_reader *reader, const struct weir_node *list, const char *name)
{
	const struct weir_sentinel_kind *kind;
	bool is_guess = false;

	if (list->kind != WEIR_NODE_LIST) {
		weir_complain(reader, list, "begin each item with '- '", "'%s' must be a list", name);
		return;
	}
	kind = list->count ? weir_recognise_sentinel(reader, list, name, &is_guess) : NULL;
	if (!kind)
		return;
	if (!kind->read) {
		weir_complain(reader, list, "leave the list out", "these are %s %s: %s", weir_sentinel_owner(kind),
			      kind->title, kind->reason);
		return;
	}
	reader->unknown_count = 0;
	reader->takes_quoted_numbers = kind->is_java;
	for (size_t i = 0; i < list->count; i++)
		read_rule(reader, kind, name != NULL, is_guess, list->items[i]);
	reader->takes_quoted_numbers = false;
}

static void read_config(struct weir_reader *reader, const struct weir_node *map, const char *const *names, size_t count,
			const struct weir_node **values)
{
	weir_sentinel_read_item(reader, map, true, names, count, values);
}

static const char *const names[] = {WEIR_SENTINEL_NAMES, NULL};
_Static_assert(ARRAY_SIZE(names) <= WEIR_FOREIGN_NAMES_MAX + 1, "");

const struct weir_foreign_reader weir_sentinel_reader = {
	.names = names,
	.read_list = read_list,
	.read_item = read_config,
	.complain_of_envelope = weir_sentinel_complain_of_envelope,
};
