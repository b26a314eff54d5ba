// SPDX-License-Identifier: GPL-2.0-only
/* Lists of Sentinel's rules: of which kind one is, told by the fields that its rules have, and how they are read. */
#include "rules/lists.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

extern const struct weir_list_kind weir_list_flow, weir_list_isolation, weir_list_hotspot, weir_list_breaker,
	weir_list_system, weir_list_java_flow, weir_list_degrade, weir_list_param_flow, weir_list_java_system,
	weir_list_authority;

const struct weir_list_kind *const weir_list_kinds[WEIR_LIST_KIND_COUNT] = {
	[WEIR_LIST_FLOW] = &weir_list_flow,
	[WEIR_LIST_ISOLATION] = &weir_list_isolation,
	[WEIR_LIST_HOTSPOT] = &weir_list_hotspot,
	[WEIR_LIST_BREAKER] = &weir_list_breaker,
	[WEIR_LIST_SYSTEM] = &weir_list_system,
	[WEIR_LIST_JAVA_FLOW] = &weir_list_java_flow,
	[WEIR_LIST_DEGRADE] = &weir_list_degrade,
	[WEIR_LIST_PARAM_FLOW] = &weir_list_param_flow,
	[WEIR_LIST_JAVA_SYSTEM] = &weir_list_java_system,
	[WEIR_LIST_AUTHORITY] = &weir_list_authority,
};

typedef uint32_t kind_set; /* a bit for each enum weir_list_kind_id */

static const char *implementation(const struct weir_list_kind *kind)
{
	return kind->is_java ? "Sentinel Java's" : "Sentinel-Go's";
}

/* ---- which fields are whose ---- */

/* Its own field of that name, or NULL. Lists are told apart without regard to case, Java's as well: its rules are
 * recognised by a name in the wrong case, which is then told.
 */
static const struct weir_list_field *own_field(const struct weir_list_kind *kind, const char *name)
{
	for (size_t i = 0; i < kind->field_count; i++)
		if (!kind->fields[i].instead && !strcasecmp(kind->fields[i].name, name))
			return &kind->fields[i];
	return NULL;
}

static kind_set kinds_with(const char *name)
{
	kind_set kinds = 0;

	for (enum weir_list_kind_id id = 0; id < WEIR_LIST_KIND_COUNT; id++)
		if (own_field(weir_list_kinds[id], name))
			kinds |= 1u << id;
	return kinds;
}

static kind_set java_kinds(void)
{
	kind_set kinds = 0;

	for (enum weir_list_kind_id id = 0; id < WEIR_LIST_KIND_COUNT; id++)
		kinds |= weir_list_kinds[id]->is_java << id;
	return kinds;
}

/* Isolation rules have no field that flow rules have not: alone they are told by where they stand. */
static kind_set kinds_of_file(void)
{
	return ((1u << WEIR_LIST_KIND_COUNT) - 1) & ~(1u << WEIR_LIST_ISOLATION);
}

static kind_set kinds_under(const char *name)
{
	kind_set kinds = 0;

	if (!name)
		return kinds_of_file();
	for (enum weir_list_kind_id id = 0; id < WEIR_LIST_KIND_COUNT; id++)
		if (!strcmp(weir_list_kinds[id]->name, name))
			kinds |= 1u << id;
	return kinds;
}

static enum weir_list_kind_id first_of(kind_set kinds)
{
	return __builtin_ctz(kinds);
}

static bool is_one(kind_set kinds)
{
	return kinds && !(kinds & (kinds - 1));
}

/* "Sentinel-Go's hotspot rules or Sentinel Java's param-flow rules": `last` is between the last two, "or". */
static void join_titles(kind_set kinds, const char *last, char *text, size_t text_bytes)
{
	const char *said = "";
	size_t used = 0;

	text[0] = '\0';
	for (kind_set rest = kinds; rest && used < text_bytes; rest &= rest - 1) {
		const struct weir_list_kind *kind = weir_list_kinds[first_of(rest)];
		const char *whose = implementation(kind);
		const bool is_said = !strcmp(said, whose);

		if (used)
			used += snprintf(text + used, text_bytes - used, is_one(rest) ? " %s " : ", ", last);
		used += snprintf(text + used, text_bytes - used, "%s%s%s", is_said ? "" : whose, is_said ? "" : " ",
				 kind->title);
		said = whose;
	}
}

/* {"flowRules": [...], "hotspotRules": [...]}: each name once. */
static void join_names(kind_set kinds, const char *before, const char *after, const char *between, char *text,
		       size_t text_bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (enum weir_list_kind_id id = 0; id < WEIR_LIST_KIND_COUNT && used < text_bytes; id++)
		if (kinds >> id & 1 && id == first_of(kinds_under(weir_list_kinds[id]->name) & kinds))
			used += snprintf(text + used, text_bytes - used, "%s%s\"%s\": [...]%s", used ? between : "",
					 before, weir_list_kinds[id]->name, after);
}

/* ---- what a list looks like ---- */

static const struct weir_node *value_of(const struct weir_node *map, const char *name)
{
	const struct weir_node *value = NULL;

	for (size_t i = 0; i + 1 < map->count; i += 2)
		if (map->items[i]->kind == WEIR_NODE_WORD && !strcmp(map->items[i]->text, name))
			value = map->items[i + 1];
	return value;
}

/* The dashboard of Sentinel Java keeps some kinds of rules one level down, beside whose they are:
 * {"id": 1, "app": "shop", "rule": {"resource": ...}}.
 */
static const struct weir_node *rule_in(const struct weir_node *item)
{
	const struct weir_node *inner;

	if (item->kind != WEIR_NODE_MAP)
		return item;
	inner = value_of(item, "rule");
	return inner && inner->kind == WEIR_NODE_MAP && !value_of(item, "resource") ? inner : item;
}

/* What the fields of a list say of its kind. */
struct look {
	kind_set candidates;				     /* by where it stands */
	kind_set possible;				     /* ... that have all of its fields */
	kind_set seen;					     /* kinds of which it has a field that no other has */
	const struct weir_node *marks[WEIR_LIST_KIND_COUNT]; /* the first of these fields, by kind */
	bool has_threshold, has_count;
	kind_set needed; /* kinds of whose weir_list_kind.needs it has one */
};

static bool needs(const struct weir_list_kind *kind, const char *name)
{
	for (size_t i = 0; kind->needs && kind->needs[i]; i++)
		if (!strcasecmp(kind->needs[i], name))
			return true;
	return false;
}

static void look_at_field(struct look *look, const struct weir_node *key)
{
	kind_set kinds = kinds_with(key->text);

	if (!kinds)
		return;
	look->possible &= kinds;
	look->has_threshold |= !strcasecmp(key->text, "threshold");
	look->has_count |= !strcasecmp(key->text, "count");
	for (enum weir_list_kind_id id = 0; id < WEIR_LIST_KIND_COUNT; id++)
		if (needs(weir_list_kinds[id], key->text))
			look->needed |= 1u << id;
	if (!is_one(kinds))
		return;
	look->seen |= kinds;
	if (!look->marks[first_of(kinds)])
		look->marks[first_of(kinds)] = key;
}

static struct look look_at(const struct weir_node *list, const char *name)
{
	struct look look = {.candidates = kinds_under(name)};

	look.possible = look.candidates;
	for (enum weir_list_kind_id id = 0; id < WEIR_LIST_KIND_COUNT; id++)
		if (!weir_list_kinds[id]->needs)
			look.needed |= 1u << id;
	for (size_t i = 0; i < list->count; i++) {
		const struct weir_node *rule = rule_in(list->items[i]);

		if (rule->kind != WEIR_NODE_MAP)
			continue;
		for (size_t at = 0; at + 1 < rule->count; at += 2)
			if (rule->items[at]->kind == WEIR_NODE_WORD && rule->items[at + 1]->kind != WEIR_NODE_NULL)
				look_at_field(&look, rule->items[at]);
	}
	return look;
}

/* ---- the kind of a list ---- */

static const struct weir_list_kind *complain_of_two(struct weir_reader *reader, const struct look *look, kind_set seen)
{
	const enum weir_list_kind_id left = first_of(seen), right = first_of(seen & (seen - 1));
	const struct weir_node *first = look->marks[left], *second = look->marks[right];
	const struct weir_list_kind *first_kind = weir_list_kinds[left], *second_kind = weir_list_kinds[right];
	char names[256], hint[320];

	if (second->place.line < first->place.line ||
	    (second->place.line == first->place.line && second->place.column < first->place.column)) {
		first = look->marks[right], second = look->marks[left];
		first_kind = weir_list_kinds[right], second_kind = weir_list_kinds[left];
	}
	join_names(seen, "", "", ", ", names, sizeof(names));
	snprintf(hint, sizeof(hint), "give each kind a list of its own: {%s}", names);
	weir_complain(reader, second, hint, "'%.*s' is of %s %s, but '%.*s' in line %d is of %s %s",
		      WEIR_SHOWN(second->text), implementation(second_kind), second_kind->title,
		      WEIR_SHOWN(first->text), first->place.line, implementation(first_kind), first_kind->title);
	return NULL;
}

static const struct weir_list_kind *complain_of_doubt(struct weir_reader *reader, const struct weir_node *list,
						      kind_set possible)
{
	char titles[512], names[256], hint[320];

	join_titles(possible, "or", titles, sizeof(titles));
	join_names(possible, "{", "}", " or ", names, sizeof(names));
	snprintf(hint, sizeof(hint), "say which: %s", names);
	weir_complain(reader, list, hint, "this list could be of %s", titles);
	return NULL;
}

static const struct weir_list_kind *complain_of_none(struct weir_reader *reader, const struct weir_node *list)
{
	weir_complain(reader, list,
		      "say which they are: {\"flowRules\": [...]}; docs/sentinel.md has the fields of each kind",
		      "no kind of Sentinel's rules has all fields of this list");
	return NULL;
}

/* NULL, having complained: it cannot be told. */
static const struct weir_list_kind *recognise(struct weir_reader *reader, const struct weir_node *list,
					      const char *name)
{
	const struct look look = look_at(list, name);
	kind_set seen = look.seen & look.candidates, possible = look.possible & look.needed;

	if (seen && !is_one(seen))
		return complain_of_two(reader, &look, seen);
	if (!seen && possible && !is_one(possible) && !name)
		return complain_of_doubt(reader, list, possible);
	/* What is limited is called `threshold` by Sentinel-Go and `count` by Sentinel Java. Other fields, which do
	 * not belong there, are then refused one by one.
	 */
	if (!seen && !possible && look.has_threshold != look.has_count)
		possible = look.candidates & 1u << (look.has_count ? WEIR_LIST_JAVA_FLOW : WEIR_LIST_FLOW);
	if (!seen && !possible && !name)
		return complain_of_none(reader, list);
	return weir_list_kinds[first_of(seen ?: possible ?: look.candidates)];
}

/* ---- one rule ---- */

void weir_list_say(struct weir_list_rule *rule, enum weir_rule_field field, const struct weir_node *at,
		   const char *word)
{
	rule->words[field] = (struct weir_node){
		.kind = WEIR_NODE_WORD,
		.text = (char *)word, /* nobody writes to a node once it is parsed */
		.document = at->document,
		.place = at->place,
	};
	rule->draft.value[field] = &rule->words[field];
}

void weir_list_say_number(struct weir_list_rule *rule, enum weir_rule_field field, const struct weir_node *at,
			  uint64_t number)
{
	snprintf(rule->texts[field], sizeof(rule->texts[field]), "%llu", (unsigned long long)number);
	weir_list_say(rule, field, at, rule->texts[field]);
}

void weir_list_check_regex(struct weir_reader *reader, const struct weir_node *node)
{
	const char *word;

	if (!node || !weir_read_word(reader, node, "regex", &word) || !strcmp(word, "false"))
		return;
	if (!strcmp(word, "true"))
		weir_complain(reader, node, "write a rule for each resource, with 'regex' false",
			      "regex: a resource of packets is found by its match, not by a pattern of names");
	else
		weir_complain(reader, node, "write true or false", "'%.*s' is no value of 'regex'", WEIR_SHOWN(word));
}

bool weir_list_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
			   uint64_t high, uint64_t missing, uint64_t *ret_number)
{
	*ret_number = missing;
	return !node ||
	       (weir_check_unquoted(reader, node) && weir_read_number(reader, node, field, low, high, ret_number));
}

/* A field that is not the list's: another kind's, or one of weir's that means nothing here. What no Sentinel knows is
 * ignored, as by Sentinel.
 */
static void tell_of_stranger(struct weir_reader *reader, const struct weir_list_kind *kind, const struct weir_node *key,
			     const struct weir_node *value)
{
	kind_set kinds = kinds_with(key->text);
	char titles[512], names[256], hint[320];

	if (!kinds) {
		for (enum weir_rule_field field = 0; field < RULE_FIELD_COUNT; field++)
			if (field != RULE_NAME && !strcasecmp(key->text, weir_rule_fields[field]))
				weir_warn(reader, value,
					  "to use it, write the rule under 'rules:' of a file of weir's own",
					  "'%s' has no effect: a list of Sentinel's rules does not know it",
					  weir_rule_fields[field]);
		return;
	}
	/* What all of Sentinel Java's rules have is nobody's in particular. */
	if ((kinds & java_kinds()) == java_kinds())
		snprintf(titles, sizeof(titles), "Sentinel Java's rules");
	else
		join_titles(kinds, "and", titles, sizeof(titles));
	join_names(kinds, "", "", " or ", names, sizeof(names));
	snprintf(hint, sizeof(hint), "rules that have it are written as %s", names);
	for (size_t i = 0; i < kind->field_count; i++)
		if (kind->fields[i].instead && !strcasecmp(kind->fields[i].name, key->text))
			snprintf(hint, sizeof(hint), "%s", kind->fields[i].instead);
	weir_complain(reader, key, hint, "'%.*s' is a field of %s, not of %s %s", WEIR_SHOWN(key->text), titles,
		      implementation(kind), kind->title);
}

static void take_field(struct weir_reader *reader, struct weir_list_rule *rule, const struct weir_node *key,
		       const struct weir_node *value)
{
	const struct weir_list_kind *kind = rule->kind;
	const struct weir_list_field *own = own_field(kind, key->text);

	if (!own) {
		tell_of_stranger(reader, kind, key, value);
	} else if (kind->is_java && strcmp(own->name, key->text)) {
		char hint[128];

		snprintf(hint, sizeof(hint), "write '%s'", own->name);
		weir_complain(reader, key, hint, "Sentinel Java, which tells upper from lower case, has no field '%s'",
			      key->text);
	} else {
		rule->values[own - kind->fields] = value;
		if (own->taken_as < RULE_FIELD_COUNT)
			rule->draft.value[own->taken_as] = value;
	}
}

static void read_rule(struct weir_reader *reader, const struct weir_list_kind *kind, const struct weir_node *item)
{
	static const char *const examples[] = {"resource", "threshold"};
	const struct weir_node *node = rule_in(item);
	struct weir_list_rule rule = {
		.kind = kind,
		.node = node,
		.draft = {.node = node, .is_sentinel = true, .mistakes_before = reader->mistakes},
	};

	if (node->kind != WEIR_NODE_MAP) {
		weir_complain_no_map(reader, node, "a rule of Sentinel's", examples, ARRAY_SIZE(examples));
		return;
	}
	/* As both decoders do: of a field given twice the last counts, and null is as good as absent. */
	for (size_t at = 0; at + 1 < node->count; at += 2)
		if (node->items[at]->kind == WEIR_NODE_WORD && node->items[at + 1]->kind != WEIR_NODE_NULL)
			take_field(reader, &rule, node->items[at], node->items[at + 1]);
	kind->read(reader, &rule);
}

void weir_read_list_of_sentinel(struct weir_reader *reader, const struct weir_node *list, const char *name)
{
	const struct weir_list_kind *kind;

	if (list->kind != WEIR_NODE_LIST) {
		weir_complain(reader, list, "begin each of them with '- '", "'%s' must be a list", name);
		return;
	}
	kind = list->count ? recognise(reader, list, name) : NULL;
	if (!kind)
		return;
	if (!kind->read) {
		weir_complain(reader, list, "leave the list out", "these are %s %s, and weir has no %s yet",
			      implementation(kind), kind->title, kind->missing);
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		read_rule(reader, kind, list->items[i]);
}
