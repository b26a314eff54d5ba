// SPDX-License-Identifier: GPL-2.0-only
/* Recognises the kind of a list of Sentinel's rules by the fields of its rules. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "sentinel/sentinel.h"

extern const struct weir_sentinel_kind weir_sentinel_flow, weir_sentinel_isolation, weir_sentinel_hotspot,
	weir_sentinel_breaker, weir_sentinel_system, weir_sentinel_outlier, weir_sentinel_java_flow,
	weir_sentinel_degrade, weir_sentinel_param_flow, weir_sentinel_java_system, weir_sentinel_authority,
	weir_sentinel_gateway;

const struct weir_sentinel_kind *const weir_sentinel_kinds[WEIR_SENTINEL_KIND_COUNT] = {
	[WEIR_SENTINEL_FLOW] = &weir_sentinel_flow,
	[WEIR_SENTINEL_ISOLATION] = &weir_sentinel_isolation,
	[WEIR_SENTINEL_HOTSPOT] = &weir_sentinel_hotspot,
	[WEIR_SENTINEL_BREAKER] = &weir_sentinel_breaker,
	[WEIR_SENTINEL_SYSTEM] = &weir_sentinel_system,
	[WEIR_SENTINEL_OUTLIER] = &weir_sentinel_outlier,
	[WEIR_SENTINEL_JAVA_FLOW] = &weir_sentinel_java_flow,
	[WEIR_SENTINEL_DEGRADE] = &weir_sentinel_degrade,
	[WEIR_SENTINEL_PARAM_FLOW] = &weir_sentinel_param_flow,
	[WEIR_SENTINEL_JAVA_SYSTEM] = &weir_sentinel_java_system,
	[WEIR_SENTINEL_AUTHORITY] = &weir_sentinel_authority,
	[WEIR_SENTINEL_GATEWAY] = &weir_sentinel_gateway,
};

const char *weir_sentinel_owner(const struct weir_sentinel_kind *kind)
{
	return kind->is_java ? "Sentinel Java's" : "Sentinel-Go's";
}

/* ---- which kinds have which fields ---- */

const struct weir_sentinel_field *weir_sentinel_own_field(const struct weir_sentinel_kind *kind, const char *name)
{
	for (size_t i = 0; i < kind->field_count; i++)
		if (!kind->fields[i].instead && !strcasecmp(kind->fields[i].name, name))
			return &kind->fields[i];
	return NULL;
}

weir_sentinel_set weir_sentinel_kinds_with(const char *name)
{
	weir_sentinel_set kinds = 0;

	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++)
		if (weir_sentinel_own_field(weir_sentinel_kinds[id], name))
			kinds |= 1u << id;
	return kinds;
}

/* Kinds that extend another kind: they need not be listed among the kinds that have a field. */
#define EXTENSIONS (1u << WEIR_SENTINEL_OUTLIER | 1u << WEIR_SENTINEL_GATEWAY)

static weir_sentinel_set chief_of(weir_sentinel_set kinds)
{
	return kinds & ~EXTENSIONS ?: kinds;
}

static weir_sentinel_set java_kinds(void)
{
	weir_sentinel_set kinds = 0;

	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++)
		kinds |= weir_sentinel_kinds[id]->is_java << id;
	return chief_of(kinds);
}

static weir_sentinel_set kinds_under(const char *name)
{
	weir_sentinel_set kinds = 0;

	/* Isolation rules have no field that flow rules lack. In a list of their own they are recognised by its name.
	 */
	if (!name)
		return ((1u << WEIR_SENTINEL_KIND_COUNT) - 1) & ~(1u << WEIR_SENTINEL_ISOLATION);
	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++)
		if (weir_sentinel_kinds[id]->name && !strcmp(weir_sentinel_kinds[id]->name, name))
			kinds |= 1u << id;
	return kinds;
}

static enum weir_sentinel_kind_id first_of(weir_sentinel_set kinds)
{
	return __builtin_ctz(kinds);
}

static bool is_one(weir_sentinel_set kinds)
{
	return kinds && !(kinds & (kinds - 1));
}

/* "Sentinel-Go's hotspot rules or Sentinel Java's param-flow rules"; `last` ("or") goes between the last two. */
static void join_titles(weir_sentinel_set kinds, const char *last, char *text, size_t text_bytes)
{
	const char *said = "";
	size_t used = 0;

	text[0] = '\0';
	for (weir_sentinel_set rest = kinds; rest && used < text_bytes; rest &= rest - 1) {
		const struct weir_sentinel_kind *kind = weir_sentinel_kinds[first_of(rest)];
		const char *whose = weir_sentinel_owner(kind);
		const bool is_said = !strcmp(said, whose);

		if (used)
			used += snprintf(text + used, text_bytes - used, is_one(rest) ? " %s " : ", ", last);
		used += snprintf(text + used, text_bytes - used, "%s%s%s", is_said ? "" : whose, is_said ? "" : " ",
				 kind->title);
		said = whose;
	}
}

void weir_sentinel_name_owners(weir_sentinel_set kinds, char *text, size_t text_bytes)
{
	if ((kinds & java_kinds()) == java_kinds())
		snprintf(text, text_bytes, "Sentinel Java's rules");
	else
		join_titles(chief_of(kinds), "and", text, text_bytes);
}

void weir_sentinel_join_names(weir_sentinel_set kinds, const char *before, const char *after, const char *between,
			      char *text, size_t text_bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT && used < text_bytes; id++)
		if (kinds >> id & 1 && weir_sentinel_kinds[id]->name &&
		    id == first_of(kinds_under(weir_sentinel_kinds[id]->name) & kinds))
			used += snprintf(text + used, text_bytes - used, "%s%s\"%s\": [...]%s", used ? between : "",
					 before, weir_sentinel_kinds[id]->name, after);
}

/* ---- the fields of a list ---- */

static const struct weir_node *value_of(const struct weir_node *map, const char *name)
{
	const struct weir_node *value = NULL;

	for (size_t i = 0; i + 1 < map->count; i += 2)
		if (map->items[i]->kind == WEIR_NODE_WORD && !strcmp(map->items[i]->text, name))
			value = map->items[i + 1];
	return value;
}

const struct weir_node *weir_sentinel_rule_in(const struct weir_node *item)
{
	const struct weir_node *inner;

	if (item->kind != WEIR_NODE_MAP)
		return item;
	inner = value_of(item, "rule");
	return inner && inner->kind == WEIR_NODE_MAP && !value_of(item, "resource") ? inner : item;
}

/* More than the number of different sets of kinds among all fields. */
#define FIELDS_NOTED 32

/* What the fields of a list show about its kind. */
struct look {
	weir_sentinel_set candidates; /* kinds that are possible at this place */
	weir_sentinel_set possible;   /* ... that have all of its fields */
	weir_sentinel_set seen;	      /* kinds with a field in the list that no other kind has */
	const struct weir_node *marks[WEIR_SENTINEL_KIND_COUNT]; /* the first such field, by kind */
	size_t marked[WEIR_SENTINEL_KIND_COUNT];		 /* ... the index of the rule that has it */
	/* The first two fields that no kind has together, and the fields before them, one for each set of kinds. */
	const struct weir_node *odd, *odd_with, *fields[FIELDS_NOTED];
	weir_sentinel_set owners[FIELDS_NOTED]; /* the kinds that have these fields */
	size_t field_count;
	bool has_threshold, has_count;
	weir_sentinel_set needed;		    /* kinds with at least one field of weir_sentinel_kind.needs */
	size_t strangers[WEIR_SENTINEL_KIND_COUNT]; /* how many fields do not belong to the kind, by kind */
};

static bool needs(const struct weir_sentinel_kind *kind, const char *name)
{
	for (size_t i = 0; kind->needs && kind->needs[i]; i++)
		if (!strcasecmp(kind->needs[i], name))
			return true;
	return false;
}

static void look_for_odd(struct look *look, const struct weir_node *key, weir_sentinel_set kinds)
{
	bool is_new = true;

	for (size_t i = 0; i < look->field_count && !look->odd; i++) {
		if (!(kinds & look->owners[i]))
			look->odd = key, look->odd_with = look->fields[i];
		is_new &= kinds != look->owners[i];
	}
	if (!is_new || look->field_count == FIELDS_NOTED)
		return;
	look->owners[look->field_count] = kinds;
	look->fields[look->field_count++] = key;
}

static void look_at_field(struct look *look, size_t rule, const struct weir_node *key)
{
	weir_sentinel_set kinds = weir_sentinel_kinds_with(key->text);

	if (!kinds)
		return;
	look_for_odd(look, key, kinds);
	look->possible &= kinds;
	look->has_threshold |= !strcasecmp(key->text, "threshold");
	look->has_count |= !strcasecmp(key->text, "count");
	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++) {
		look->strangers[id] += !(kinds >> id & 1);
		if (needs(weir_sentinel_kinds[id], key->text))
			look->needed |= 1u << id;
	}
	kinds = chief_of(kinds);
	if (!is_one(kinds))
		return;
	look->seen |= kinds;
	if (look->marks[first_of(kinds)])
		return;
	look->marks[first_of(kinds)] = key;
	look->marked[first_of(kinds)] = rule;
}

static struct look look_at(const struct weir_node *list, const char *name)
{
	struct look look = {.candidates = kinds_under(name)};

	look.possible = look.candidates;
	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++)
		if (!weir_sentinel_kinds[id]->needs)
			look.needed |= 1u << id;
	for (size_t i = 0; i < list->count; i++) {
		const struct weir_node *rule = weir_sentinel_rule_in(list->items[i]);

		if (rule->kind != WEIR_NODE_MAP)
			continue;
		for (size_t at = 0; at + 1 < rule->count; at += 2)
			if (rule->items[at]->kind == WEIR_NODE_WORD && rule->items[at + 1]->kind != WEIR_NODE_NULL)
				look_at_field(&look, i, rule->items[at]);
	}
	return look;
}

/* ---- the kind of a list ---- */

static const struct weir_sentinel_kind *complain_of_two(struct weir_reader *reader, const struct look *look,
							weir_sentinel_set seen)
{
	const enum weir_sentinel_kind_id left = first_of(seen), right = first_of(seen & (seen - 1));
	const struct weir_node *first = look->marks[left], *second = look->marks[right];
	const struct weir_sentinel_kind *first_kind = weir_sentinel_kinds[left],
					*second_kind = weir_sentinel_kinds[right];
	char names[256], hint[320];

	if (second->place.line < first->place.line ||
	    (second->place.line == first->place.line && second->place.column < first->place.column)) {
		first = look->marks[right], second = look->marks[left];
		first_kind = weir_sentinel_kinds[right], second_kind = weir_sentinel_kinds[left];
	}
	weir_sentinel_join_names(seen, "", "", ", ", names, sizeof(names));
	snprintf(hint, sizeof(hint), "give each kind its own list: {%s}", names);
	weir_complain(reader, second, hint, "'%.*s' belongs to %s %s, but '%.*s' in line %d belongs to %s %s",
		      WEIR_SHOWN(second->text), weir_sentinel_owner(second_kind), second_kind->title,
		      WEIR_SHOWN(first->text), first->place.line, weir_sentinel_owner(first_kind), first_kind->title);
	return NULL;
}

static const struct weir_sentinel_kind *complain_of_doubt(struct weir_reader *reader, const struct weir_node *list,
							  weir_sentinel_set possible)
{
	char titles[512], names[256], hint[320];

	join_titles(possible, "or", titles, sizeof(titles));
	weir_sentinel_join_names(possible, "{", "}", " or ", names, sizeof(names));
	snprintf(hint, sizeof(hint), "say which: %s", names);
	weir_complain(reader, list, hint, "this list could be %s", titles);
	return NULL;
}

static const struct weir_sentinel_kind *complain_of_none(struct weir_reader *reader, const struct weir_node *list,
							 const struct look *look)
{
	static const char *const hint = "name the kind: {\"flowRules\": [...]}; docs/sentinel.md has the fields of all";
	char titles[512], others[512];

	if (!look->odd) {
		weir_complain(reader, list, hint, "no kind of Sentinel rules has all fields of this list");
		return NULL;
	}
	weir_sentinel_name_owners(weir_sentinel_kinds_with(look->odd->text), titles, sizeof(titles));
	weir_sentinel_name_owners(weir_sentinel_kinds_with(look->odd_with->text), others, sizeof(others));
	weir_complain(reader, look->odd, hint, "'%.*s' is a field of %s, but '%.*s' in line %d of %s",
		      WEIR_SHOWN(look->odd->text), titles, WEIR_SHOWN(look->odd_with->text), look->odd_with->place.line,
		      others);
	return NULL;
}

/* Among kinds that all lack some fields of the list, the ones that lack the fewest. */
static weir_sentinel_set nearest_kinds(const struct look *look)
{
	weir_sentinel_set nearest = 0;
	size_t fewest = SIZE_MAX;

	for (weir_sentinel_set rest = look->candidates & look->needed; rest; rest &= rest - 1) {
		const size_t strangers = look->strangers[first_of(rest)];

		if (strangers < fewest)
			nearest = 0;
		if (strangers <= fewest)
			nearest |= 1u << first_of(rest);
		fewest = strangers < fewest ? strangers : fewest;
	}
	return nearest;
}

/* Sentinel-Go calls the limit `threshold`, Sentinel Java `count`. */
static weir_sentinel_set guess(const struct look *look, weir_sentinel_set nearest)
{
	if (look->has_threshold == look->has_count)
		return nearest;
	return nearest & 1u << (look->has_count ? WEIR_SENTINEL_JAVA_FLOW : WEIR_SENTINEL_FLOW);
}

/* Are these rules of two kinds in sequence, rather than rules of one kind with a foreign field? */
static bool has_rules_of_two(const struct look *look, weir_sentinel_set seen)
{
	return seen && !is_one(seen) && look->marked[first_of(seen)] != look->marked[first_of(seen & (seen - 1))];
}

const struct weir_sentinel_kind *weir_recognise_sentinel(struct weir_reader *reader, const struct weir_node *list,
							 const char *name, bool *ret_is_guess)
{
	const struct look look = look_at(list, name);
	const weir_sentinel_set seen = look.seen & look.candidates;
	weir_sentinel_set kinds = look.possible & look.needed;

	if (!is_one(kinds) && kinds && !name)
		return complain_of_doubt(reader, list, kinds);
	/* No kind has all the fields, so the list will be refused. The kind that has most of them is the one for which
	 * the other fields are refused by name.
	 */
	if (!kinds && has_rules_of_two(&look, seen))
		return complain_of_two(reader, &look, seen);
	if (!kinds) {
		kinds = nearest_kinds(&look);
		*ret_is_guess = !is_one(kinds) && !is_one(look.candidates);
		if (!is_one(kinds))
			kinds = guess(&look, kinds);
	}
	if (!is_one(kinds) && seen && !is_one(seen))
		return complain_of_two(reader, &look, seen);
	if (!is_one(kinds) && !name)
		return complain_of_none(reader, list, &look);
	return weir_sentinel_kinds[first_of(kinds ?: look.candidates)];
}

/* ---- other documents ---- */

static const struct weir_node *entry_of(const struct weir_node *map, const char *name)
{
	for (size_t i = 0; map && map->kind == WEIR_NODE_MAP && i + 1 < map->count; i += 2)
		if (map->items[i]->kind == WEIR_NODE_WORD && !strcmp(map->items[i]->text, name))
			return map->items[i + 1];
	return NULL;
}

static bool is_list(const struct weir_node *node)
{
	return node && node->kind == WEIR_NODE_LIST;
}

/* Objects that sentinel-golang's data source for Kubernetes reads (FlowRules and others, datasource.sentinel.io), or
 * any other output of `kubectl get -o yaml`.
 */
static bool complain_of_kubernetes(struct weir_reader *reader, const struct weir_node *root)
{
	const struct weir_node *kind = entry_of(root, "kind");

	if (!entry_of(root, "apiVersion") || !kind || kind->kind != WEIR_NODE_WORD)
		return false;
	weir_complain(reader, root,
		      is_list(entry_of(entry_of(root, "spec"), "rules"))
			      ? "put the list under 'spec.rules' in a file of its own"
			      : "put its list of rules in a file of its own; FlowRules have it in 'spec.rules'",
		      "this is a Kubernetes object (%.*s), not a rule file", WEIR_SHOWN(kind->text));
	return true;
}

/* The output of /actuator/sentinel in spring-cloud-alibaba: the rules are maps of lists, under names of its own. */
static bool complain_of_actuator(struct weir_reader *reader, const struct weir_node *root)
{
	static const char *const names[] = {"flowRules",     "degradeRules",  "systemRules",
					    "authorityRule", "paramFlowRule", "authorityRules"};
	const struct weir_node *rules = entry_of(root, "rules");
	bool has_any = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		has_any |= is_list(entry_of(rules, names[i]));
	if (!has_any)
		return false;
	weir_complain(reader, rules,
		      "write the lists under 'rules' as the flowRules, degradeRules, systemRules, authorityRules and "
		      "paramFlowRules of a rule file",
		      "this is the output of Spring's Sentinel actuator, not a rule file");
	return true;
}

/* A list without a name is one of Sentinel's (sentinel.h), unless its items have fields that exist only in weir. */
static bool complain_of_bare_list(struct weir_reader *reader, const struct weir_node *root)
{
	static const struct {
		const char *field, *part;
	} ours[] = {{"match", "resources"}, {"flow", "resources"}, {"rate", "rules"}, {"per", "rules"}};
	char hint[96];

	for (size_t i = 0; is_list(root) && root->count && i < ARRAY_SIZE(ours); i++) {
		if (!entry_of(root->items[0], ours[i].field))
			continue;
		snprintf(hint, sizeof(hint), "write '%s:' on a line of its own before it", ours[i].part);
		weir_complain(reader, root, hint, "this list of %s has no name", ours[i].part);
		return true;
	}
	return false;
}

/* One rule without the list around it, as an editor or Sentinel's API shows it: none of its fields is one of a file. */
static bool complain_of_bare_rule(struct weir_reader *reader, const struct weir_node *root)
{
	static const char *const weirs[] = {"rate", "per", "unit", "window", "mode", "blockDuration"};
	const struct weir_node *rule = weir_sentinel_rule_in(root), *resource = entry_of(rule, "resource");
	bool is_weirs = false, is_rule = resource && resource->kind == WEIR_NODE_WORD;

	if (root->kind != WEIR_NODE_MAP || !rule->count)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(weirs); i++)
		is_weirs |= entry_of(rule, weirs[i]) != NULL;
	for (size_t i = 0;
	     !is_rule && rule->items[i]->kind == WEIR_NODE_WORD && weir_sentinel_kinds_with(rule->items[i]->text);)
		is_rule = (i += 2) >= rule->count;
	if (is_rule)
		weir_complain(reader, root,
			      is_weirs
				      ? "write 'rules:' on a line of its own before it, and '- ' before its first field"
				      : "put the rule into a list: '[' before it, and ']' after it",
			      "this is a single rule, not a list of rules");
	return is_rule;
}

bool weir_sentinel_complain_of_envelope(struct weir_reader *reader, const struct weir_document *document)
{
	return document->root &&
	       (complain_of_kubernetes(reader, document->root) || complain_of_actuator(reader, document->root) ||
		complain_of_bare_list(reader, document->root) || complain_of_bare_rule(reader, document->root));
}
