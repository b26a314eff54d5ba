/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the rule reader share: parse_rule.c reads one rule's fields, parse_rule_checks.c says what of
 * them cannot be, has no effect, or is surely not meant, and parse_overrides.c reads its overrides.
 */
#ifndef WEIR_PARSE_RULE_H
#define WEIR_PARSE_RULE_H

#include "parse.h"

enum weir_rule_field {
	RULE_NAME,
	RULE_RESOURCE,
	RULE_METRIC,
	RULE_THRESHOLD,
	RULE_INTERVAL,
	RULE_SAMPLES,
	RULE_STRATEGY,
	RULE_BEHAVIOR,
	RULE_RELATION,
	RULE_REF_RESOURCE,
	RULE_MAX_QUEUEING,
	RULE_WARM_UP_PERIOD,
	RULE_COLD_FACTOR,
	RULE_LOW_USAGE,
	RULE_HIGH_USAGE,
	RULE_LOW_MARK,
	RULE_HIGH_MARK,
	RULE_UNIT,
	RULE_WINDOW,
	RULE_MODE,
	RULE_OVERRIDES,
	RULE_FIELD_COUNT
};

extern const char *const weir_rule_fields[RULE_FIELD_COUNT];

/* As in Sentinel, where 0 means it too. */
#define WEIR_COLD_FACTOR_DEFAULT 3

/* A rule while it is read: what the file says, and what of it has no place in struct weir_ruleset_rule. */
struct weir_draft {
	const struct weir_node *node;
	const struct weir_node *value[RULE_FIELD_COUNT];
	struct weir_ruleset_rule *rule;
	const char *resource_name; /* NULL: missing, or of the wrong type */
	bool is_sentinel;	   /* an object of a list of Sentinel-Go's rules */
	bool has_threshold, has_resource;
	size_t mistakes_before;		   /* the reader's, when it came to this rule */
	uint64_t number[RULE_FIELD_COUNT]; /* of Sentinel's plain numbers; 0: absent */
	bool is_misread[RULE_FIELD_COUNT]; /* a value that was refused: no second complaint of it */
};

/* The node to point at for a field that may be absent. */
static inline const struct weir_node *weir_draft_at(const struct weir_draft *draft, enum weir_rule_field field)
{
	return draft->value[field] ?: draft->node;
}

/* Does a field mean anything, by the rule's metric, strategy, behavior and relation? If not, *ret_condition says what
 * it is for. ret_condition may be NULL.
 */
bool weir_draft_uses(const struct weir_draft *draft, enum weir_rule_field field, const char **ret_condition);

/* The resource that a word names; complains when there is none. */
bool weir_look_up_resource(struct weir_reader *reader, const struct weir_node *node, const char *field,
			   const char **ret_name, size_t *ret_index);

/* All that is wrong with a rule beyond single words, and what is only worth a warning. Fills in ref_resource and the
 * overrides.
 */
void weir_check_rule(struct weir_reader *reader, const struct weir_draft *draft);

/* The overrides of a rule on `resource` (NULL: it is not known). */
void weir_read_overrides(struct weir_reader *reader, const struct weir_node *node,
			 const struct weir_ruleset_resource *resource, struct weir_ruleset_rule *rule);

/* A Concurrency rule counts connections, and has neither of the ways that Sentinel's flow rules have: complain of
 * those it names, and read on as if it named none.
 */
void weir_check_concurrency(struct weir_reader *reader, struct weir_draft *draft);

/* Warn of a threshold of the rule that admits nothing, or no full frame. */
void weir_warn_of_small_threshold(struct weir_reader *reader, const struct weir_node *node, uint64_t micro,
				  const struct weir_ruleset_rule *rule);

#endif
