/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations shared by the parts of the rule reader: rule.c reads the fields of one rule, rule_checks.c checks which
 * values are impossible, have no effect, or are surely not meant, and overrides.c reads the overrides.
 */
#ifndef WEIR_RULES_RULE_H
#define WEIR_RULES_RULE_H

#include "rules/parse.h"
#include "rules/quantity.h"

#define WEIR_RULE_FIELDS_ALL (~0u >> (32 - RULE_FIELD_COUNT)) /* a bit for each field */

/* Fields of rules that reject. */
#define WEIR_RULE_PENALTY_FIELDS (1u << RULE_BLOCK_DURATION | 1u << RULE_BLOCK_DURATION_MAX)

/* As in Sentinel, where 0 also means the default. */
#define WEIR_COLD_FACTOR_DEFAULT 3

/* A rule while it is read: the values in the file, including those that have no place in struct weir_ruleset_rule. */
struct weir_draft {
	const struct weir_node *node;
	const struct weir_node *value[RULE_FIELD_COUNT];
	struct weir_ruleset_rule *rule;
	const char *resource_name; /* NULL: missing, or of the wrong type */
	bool is_sentinel;	   /* an object in a list of Sentinel's rules */
	bool is_isolation;	   /* ... and one of Sentinel-Go's isolation rules */
	bool has_threshold, has_resource;
	bool has_rate;			   /* `rate` replaces the threshold, the interval and the unit */
	struct weir_rate rate;		   /* if has_rate */
	uint32_t meant;			   /* a bit for each field that an unknown field probably stands for */
	size_t mistakes_before;		   /* the reader's count before this rule */
	uint64_t number[RULE_FIELD_COUNT]; /* Sentinel's plain numbers; 0: absent */
	bool is_misread[RULE_FIELD_COUNT]; /* the value was refused: do not complain again */
};

/* The node that a message about this field points at; the field may be absent. */
static inline const struct weir_node *weir_draft_at(const struct weir_draft *draft, enum weir_rule_field field)
{
	return draft->value[field] ?: draft->node;
}

/* Does the field have a meaning, given the rule's kind, strategy and relation? If not, *ret_condition says which rules
 * it is for. ret_condition may be NULL.
 */
bool weir_draft_uses(const struct weir_draft *draft, enum weir_rule_field field, const char **ret_condition);

/* Append the rule that the draft describes. Its values need not be in the file literally: weir_node.text may be a
 * translation of another word, as long as its place and document are those of that word.
 */
void weir_read_draft(struct weir_reader *reader, struct weir_draft *draft);

/* Find the index of the first resource of that name; returns false if there is none. */
bool weir_find_resource(const struct weir_reader *reader, const char *name, size_t *ret_index);

/* Append a rule with the default values, ready to be filled in; then set its resource, if it is no system rule, and its
 * name.
 */
bool weir_begin_rule(struct weir_reader *reader, struct weir_draft *draft);
void weir_read_identity(struct weir_reader *reader, struct weir_draft *draft);

/* Append a system rule. Its draft has a name, a mode, a metricType, a strategy, and its triggerCount as threshold. */
void weir_read_system_rule(struct weir_reader *reader, struct weir_draft *draft);

/* Find the resource that a word names; complain if there is none. */
bool weir_look_up_resource(struct weir_reader *reader, const struct weir_node *node, const char *field,
			   const char **ret_name, size_t *ret_index);

/* Check everything about a rule that goes beyond single words, and warn about dubious choices. Fills in ref_resource
 * and the overrides.
 */
void weir_check_rule(struct weir_reader *reader, const struct weir_draft *draft);

/* Read clusterMode and clusterConfig (cluster.c). They are part of a rule's choices, in the state before fields that a
 * list of Sentinel's does not use are dropped. Also check what a rule shared by hosts must not have.
 */
void weir_read_cluster(struct weir_reader *reader, struct weir_draft *draft);
void weir_check_cluster(struct weir_reader *reader, const struct weir_draft *draft);

/* The names of Sentinel's clusterConfig.thresholdType, by its number. */
extern const char *const weir_cluster_type_names[2];

/* Read the overrides of a rule on `resource` (NULL: it is not known). */
void weir_read_overrides(struct weir_reader *reader, const struct weir_node *node,
			 const struct weir_ruleset_resource *resource, struct weir_ruleset_rule *rule);

/* Warn about a threshold that admits nothing, or not even one full frame: this threshold, or those of a rule. */
void weir_warn_of_small_threshold(struct weir_reader *reader, const struct weir_node *node, uint64_t micro,
				  const struct weir_ruleset_rule *rule);
void weir_warn_of_small_thresholds(struct weir_reader *reader, const struct weir_draft *draft);

#endif
