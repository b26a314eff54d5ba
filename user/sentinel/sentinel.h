/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * House sentinel: lists of Sentinel's rules, in the form in which its users keep them: how the kind of a list is
 * recognised (sentinel_kinds.c), how its rules are read (sentinel.c, sentinel_fields.c), and what their fields become
 * (sentinel_go.c, sentinel_java.c, degrade.c, authority.c). docs/sentinel.md says the same for people, and
 * tests/unit/ruleset_table_test.c compares it with the code.
 *
 * Facts are from Sentinel-Go (July 2025; core/flow, isolation, hotspot, circuitbreaker and system) and Sentinel Java
 * (October 2025; FlowRule, DegradeRule, ParamFlowRule, SystemRule, AuthorityRule, and its dashboard's entities).
 */
#ifndef WEIR_SENTINEL_SENTINEL_H
#define WEIR_SENTINEL_SENTINEL_H

#include "rules/parse.h"
#include "rules/rule.h"

/* The fields of a rule file that may hold lists of Sentinel's rules. */
#define WEIR_SENTINEL_NAMES                                                                                            \
	"flowRules", "isolationRules", "hotspotRules", "systemRules", "degradeRules", "paramFlowRules", "authorityRules"

/* The reader of these lists. */
extern const struct weir_foreign_reader weir_sentinel_reader;

/* Complain about a document that has such lists at another level, or a single rule. Returns false if it is
 * not one.
 */
bool weir_sentinel_complain_of_envelope(struct weir_reader *reader, const struct weir_document *document);

enum weir_sentinel_kind_id {
	WEIR_SENTINEL_FLOW, /* may include isolation rules, recognised by their metricType */
	WEIR_SENTINEL_ISOLATION,
	WEIR_SENTINEL_HOTSPOT,
	WEIR_SENTINEL_BREAKER,
	WEIR_SENTINEL_SYSTEM,
	WEIR_SENTINEL_OUTLIER,
	WEIR_SENTINEL_JAVA_FLOW,
	WEIR_SENTINEL_DEGRADE,
	WEIR_SENTINEL_PARAM_FLOW,
	WEIR_SENTINEL_JAVA_SYSTEM,
	WEIR_SENTINEL_AUTHORITY,
	WEIR_SENTINEL_GATEWAY,
	WEIR_SENTINEL_KIND_COUNT,
};

/* A field that the rules of a list may have, or that is refused in them by name. */
struct weir_sentinel_field {
	const char *name;
	/* The field of weir's that takes its value unchanged. RULE_FIELD_COUNT: it has its own reader, or is ignored.
	 */
	enum weir_rule_field taken_as;
	/* For fields of other kinds: what to write here instead. NULL: the list's own field. */
	const char *instead;
};

#define WEIR_SENTINEL_FIELDS_MAX 48

/* One rule of a list while it is read. */
struct weir_sentinel_rule {
	const struct weir_sentinel_kind *kind;
	const struct weir_node *node;				  /* the map with its fields */
	const struct weir_node *values[WEIR_SENTINEL_FIELDS_MAX]; /* by weir_sentinel_kind.fields; NULL: absent */
	struct weir_draft draft;				  /* the same rule in weir's words */
	bool is_in_weirs_file;					  /* it may also have the fields of weirs_fields */
	bool is_guess;				  /* the kind is a guess: other kinds have as many of its fields */
	struct weir_node words[RULE_FIELD_COUNT]; /* values of the draft that the file expresses in other words */
	char texts[RULE_FIELD_COUNT][24];	  /* ... their texts, if they are numbers */
};

struct weir_sentinel_kind {
	const char *name;  /* the field of a rule file that holds such a list; NULL: there is none */
	const char *title; /* "flow rules" */
	bool is_java;	   /* field names are case-sensitive; otherwise case is ignored */
	/* Lists of this kind in weir's own files: the extra fields of rules, besides `name` and `mode`. Ends with NULL.
	 */
	const char *const *weirs_fields;
	const struct weir_sentinel_field *fields;
	size_t field_count;
	/* Without any of these, a list is not of this kind, or Sentinel itself refuses its rules. NULL: none is needed.
	 */
	const char *const *needs;
	/* Read one rule; the draft already has the values that are taken unchanged. NULL: such lists are refused. */
	void (*read)(struct weir_reader *reader, struct weir_sentinel_rule *rule);
	const char *reason; /* if `read` is NULL: why */
};

/* By enum weir_sentinel_kind_id. */
extern const struct weir_sentinel_kind *const weir_sentinel_kinds[WEIR_SENTINEL_KIND_COUNT];

/* ---- helpers for `read` ---- */

/* Set a value of the draft to `word`; messages about it point at `at`, where the file has other words. `word` must
 * outlive the reading of the rule.
 */
void weir_sentinel_say(struct weir_sentinel_rule *rule, enum weir_rule_field field, const struct weir_node *at,
		       const char *word);
void weir_sentinel_say_number(struct weir_sentinel_rule *rule, enum weir_rule_field field, const struct weir_node *at,
			      uint64_t number);

/* Refuse `regex: true`: all kinds that have this field call this. `node` may be NULL. */
void weir_sentinel_check_regex(struct weir_reader *reader, const struct weir_node *node);

/* Check a caller's name. Sentinel Java has callers; here a resource's match selects whose packets it takes. `node` may
 * be NULL.
 */
void weir_sentinel_check_caller(struct weir_reader *reader, const struct weir_node *node);

/* Sort the fields of a map inside a rule. If a field is given twice the last one counts; null counts as absent. Warns
 * about unknown fields.
 */
void weir_sentinel_read_item(struct weir_reader *reader, const struct weir_node *map, bool is_java,
			     const char *const *names, size_t count, const struct weir_node **values);

/* Warn about an unknown field. Sentinel ignores these, and so does weir, but it may be a typo. `entries` begin with the
 * names that would have been valid here. For a list with the same remark in every rule, the warning is given only once.
 */
void weir_sentinel_warn_of_unknown(struct weir_reader *reader, const struct weir_node *key, const void *entries,
				   size_t count, size_t entry_bytes);

/* Read one of `names`, or its index as an unquoted number. Returns 0 if `node` is NULL, or after a complaint. */
unsigned int weir_sentinel_read_choice(struct weir_reader *reader, const struct weir_node *node, const char *field,
				       const char *const *names, size_t count);

/* Read an unquoted whole number; if `node` is NULL, `missing` is used. Returns false after a complaint. */
bool weir_sentinel_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field,
			       uint64_t low, uint64_t high, uint64_t missing, uint64_t *ret_number);

/* ---- which kind a list has, and which kinds have a field (sentinel_kinds.c) ---- */

typedef uint32_t weir_sentinel_set; /* a bit for each enum weir_sentinel_kind_id */

/* Recognise the kind of a list by its fields, and by the name under which it appears (NULL: it is a whole file).
 * Returns NULL, after complaining, if the kind is unknown. *ret_is_guess: another kind has as many of its fields, so
 * the kind only determines how the list is refused.
 */
const struct weir_sentinel_kind *weir_recognise_sentinel(struct weir_reader *reader, const struct weir_node *list,
							 const char *name, bool *ret_is_guess);

/* The rule in an item of a list. Sentinel Java's dashboard keeps some kinds of rules one level deeper, next to their
 * owner: {"id": 1, "app": "shop", "rule": {"resource": ...}}.
 */
const struct weir_node *weir_sentinel_rule_in(const struct weir_node *item);

/* Find a kind's own field by name; NULL: it has none. Case is ignored even for Sentinel Java: its rules are recognised
 * despite a name in the wrong case, which is then reported.
 */
const struct weir_sentinel_field *weir_sentinel_own_field(const struct weir_sentinel_kind *kind, const char *name);

/* The set of kinds that have this field. */
weir_sentinel_set weir_sentinel_kinds_with(const char *name);

/* "Sentinel-Go's" */
const char *weir_sentinel_owner(const struct weir_sentinel_kind *kind);

/* The owners of a field: "Sentinel-Go's flow rules and hotspot rules". A field that all of Sentinel Java's rules have
 * is attributed to none of them in particular.
 */
void weir_sentinel_name_owners(weir_sentinel_set kinds, char *text, size_t text_bytes);

/* The names of these lists, each once: {"flowRules": [...], "hotspotRules": [...]}. */
void weir_sentinel_join_names(weir_sentinel_set kinds, const char *before, const char *after, const char *between,
			      char *text, size_t text_bytes);

/* ---- hotspot.c: limits for single values of a parameter ----
 *
 * Sentinel-Go's hotspot rules and Sentinel Java's param-flow rules, which have
 * the same meaning in different words. Here the parameter is the resource's flow key, and its values are the flows.
 */

#define WEIR_HOTSPOT_DURATION_S_MAX 86400
#define WEIR_HOTSPOT_UNITS_MAX WEIR_THRESHOLD_UNITS_MAX

/* The content of such a rule, besides its resource, threshold and longest wait. */
struct weir_hotspot {
	bool counts_open; /* it limits what is open at the same time; otherwise requests per duration */
	bool throttles;
	uint64_t duration_s, threshold, burst; /* threshold and burst count requests */
	/* Where these fields are; NULL: the default applies, and messages point at the rule. */
	const struct weir_node *metric, *behavior, *duration, *burst_at;
	const struct weir_node *items; /* values with their own thresholds; NULL: none */
	bool may_map_items;	       /* they may also be a map {VALUE: THRESHOLD} */
};

/* One of these values, read from the item that describes it. NULL: it is missing. */
struct weir_hotspot_item {
	const struct weir_node *value, *threshold;
};

/* Returns false after a complaint. */
typedef bool (*weir_hotspot_item_reader)(struct weir_reader *reader, const struct weir_node *item,
					 struct weir_hotspot_item *ret_item);

void weir_read_hotspot(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_hotspot *hotspot,
		       weir_hotspot_item_reader read_item);

#endif
