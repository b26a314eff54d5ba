/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of Sentinel's rules, as its users keep them: which kind a list is of (sentinel_kinds.c), how its rules are read
 * (sentinel.c, sentinel_fields.c), and what becomes of their fields (sentinel_go.c, sentinel_java.c, degrade.c,
 * authority.c).
 * docs/sentinel.md says the same for people, and tests/unit/ruleset_table_test.c compares the two.
 *
 * Facts are from Sentinel-Go (July 2025; core/flow, isolation, hotspot, circuitbreaker and system) and Sentinel Java
 * (October 2025; FlowRule, DegradeRule, ParamFlowRule, SystemRule, AuthorityRule, and its dashboard's entities).
 */
#ifndef WEIR_RULES_SENTINEL_H
#define WEIR_RULES_SENTINEL_H

#include "rules/rule.h"

enum weir_sentinel_kind_id {
	WEIR_SENTINEL_FLOW, /* and isolation rules among them, by their metricType */
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
	/* The field of weir's that takes its value as it is. RULE_FIELD_COUNT: it is read by itself, or ignored. */
	enum weir_rule_field taken_as;
	/* In other kinds' fields: what to write here in their place. NULL: the list's own field. */
	const char *instead;
};

#define WEIR_SENTINEL_FIELDS_MAX 48

/* One rule of a list while it is read. */
struct weir_sentinel_rule {
	const struct weir_sentinel_kind *kind;
	const struct weir_node *node;				  /* the map with its fields */
	const struct weir_node *values[WEIR_SENTINEL_FIELDS_MAX]; /* by weir_sentinel_kind.fields; NULL: absent */
	struct weir_draft draft;				  /* what it comes to in weir's words */
	bool is_in_weirs_file;					  /* and one of its own lists (weirs_fields) */
	bool is_guess;				  /* of which kind it is: others have as many of its fields */
	struct weir_node words[RULE_FIELD_COUNT]; /* values of the draft that the file has in other words */
	char texts[RULE_FIELD_COUNT][24];	  /* ... their texts, where these are numbers */
};

struct weir_sentinel_kind {
	const char *name;  /* the field of a rule file that such a list stands under; NULL: there is none */
	const char *title; /* "flow rules" */
	bool is_java;	   /* field names match exactly, else without regard to case */
	/* Weir's own files have such lists, too: what their rules may have, with `name` and `mode`; ends with NULL. */
	const char *const *weirs_fields;
	const struct weir_sentinel_field *fields;
	size_t field_count;
	/* Without any of these it is no such list, or one whose rules Sentinel itself refuses; NULL: it needs none. */
	const char *const *needs;
	/* One rule; the draft has the values that are taken as they are. NULL: such lists are refused. */
	void (*read)(struct weir_reader *reader, struct weir_sentinel_rule *rule);
	const char *reason; /* then: why */
};

/* By enum weir_sentinel_kind_id. */
extern const struct weir_sentinel_kind *const weir_sentinel_kinds[WEIR_SENTINEL_KIND_COUNT];

/* ---- for the readers of rules ---- */

/* A value of the draft that is said with other words at `at`. `word` must outlive the rule's reading. */
void weir_sentinel_say(struct weir_sentinel_rule *rule, enum weir_rule_field field, const struct weir_node *at,
		       const char *word);
void weir_sentinel_say_number(struct weir_sentinel_rule *rule, enum weir_rule_field field, const struct weir_node *at,
			      uint64_t number);

/* `regex` true is refused: all kinds that have it call this. `node` may be NULL. */
void weir_sentinel_check_regex(struct weir_reader *reader, const struct weir_node *node);

/* Callers have names in Sentinel Java; here a resource's match says whose packets it takes. `node` may be NULL. */
void weir_sentinel_check_caller(struct weir_reader *reader, const struct weir_node *node);

/* The fields of a map within a rule: of one given twice the last counts, null does not. Warns of what is unknown. */
void weir_sentinel_read_item(struct weir_reader *reader, const struct weir_node *map, bool is_java,
			     const char *const *names, size_t count, const struct weir_node **values);

/* Sentinel ignores what it does not know, and so does weir; but it may be a slip of the pen. `entries` begin with the
 * names that would have meant something here. A list that has a remark in each of its rules hears of it once.
 */
void weir_sentinel_warn_of_unknown(struct weir_reader *reader, const struct weir_node *key, const void *entries,
				   size_t count, size_t entry_bytes);

/* One of `names`, or its number without quotes; 0 when `node` is NULL, or after a complaint. */
unsigned int weir_sentinel_read_choice(struct weir_reader *reader, const struct weir_node *node, const char *field,
				       const char *const *names, size_t count);

/* A whole number, not in quotes; `node` may be NULL: `missing` then. False: complained. */
bool weir_sentinel_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field,
			       uint64_t low, uint64_t high, uint64_t missing, uint64_t *ret_number);

/* ---- which kind a list is of, and whose a field is (sentinel_kinds.c) ---- */

typedef uint32_t weir_sentinel_set; /* a bit for each enum weir_sentinel_kind_id */

/* By its fields, and by the name that it stands under (NULL: it is a whole file). NULL, having complained: it is
 * unknown. *ret_is_guess: another kind has as many of its fields, so that it is only as which it is refused.
 */
const struct weir_sentinel_kind *weir_recognise_sentinel(struct weir_reader *reader, const struct weir_node *list,
							 const char *name, bool *ret_is_guess);

/* An item of a list as the rule that it is. The dashboard of Sentinel Java keeps some kinds of rules one level down,
 * beside whose they are: {"id": 1, "app": "shop", "rule": {"resource": ...}}.
 */
const struct weir_node *weir_sentinel_rule_in(const struct weir_node *item);

/* A kind's own field of that name, or NULL. Without regard to case, for Sentinel Java's as well: its rules are
 * recognised by a name in the wrong case, which is then reported.
 */
const struct weir_sentinel_field *weir_sentinel_own_field(const struct weir_sentinel_kind *kind, const char *name);

/* The kinds that have such a field. */
weir_sentinel_set weir_sentinel_kinds_with(const char *name);

/* "Sentinel-Go's" */
const char *weir_sentinel_owner(const struct weir_sentinel_kind *kind);

/* Whose a field is: "Sentinel-Go's flow rules and hotspot rules". What all of Sentinel Java's rules have is nobody's in
 * particular.
 */
void weir_sentinel_name_owners(weir_sentinel_set kinds, char *text, size_t text_bytes);

/* {"flowRules": [...], "hotspotRules": [...]}: each name once. */
void weir_sentinel_join_names(weir_sentinel_set kinds, const char *before, const char *after, const char *between,
			      char *text, size_t text_bytes);

#endif
