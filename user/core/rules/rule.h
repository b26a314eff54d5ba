/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the rule reader share: rule.c reads one rule's fields, rule_checks.c says what of them cannot be,
 * has no effect, or is surely not meant, and overrides.c reads its overrides.
 */
#ifndef WEIR_RULES_RULE_H
#define WEIR_RULES_RULE_H

#include "rules/parse.h"
#include "rules/quantity.h"

/*
 * The fields of a rule. A NUMBER is a plain one, of Sentinel's: its largest value, as wide as Sentinel-Go's own (uint32
 * and int64) or as what it stands for can be, and what to write, for rules that use the field. It is read into
 * weir_draft.number, for the rule's kind or strategy to keep. A COUNT is one that may have a prefix in weir's own files
 * ("20k"), of what the rule counts; of BYTES also a unit ("8GiB").
 */
#define WEIR_RULE_FIELDS(FIELD, NUMBER, COUNT, BYTES)                                                                  \
	FIELD(NAME, "name")                                                                                            \
	FIELD(RESOURCE, "resource")                                                                                    \
	FIELD(PER, "per")                                                                                              \
	FIELD(METRIC, "metricType")                                                                                    \
	FIELD(THRESHOLD, "threshold")                                                                                  \
	FIELD(RATE, "rate")                                                                                            \
	FIELD(INTERVAL, "statIntervalInMs")                                                                            \
	FIELD(SAMPLES, "sampleCount")                                                                                  \
	FIELD(STRATEGY, "tokenCalculateStrategy")                                                                      \
	FIELD(BEHAVIOR, "controlBehavior")                                                                             \
	FIELD(RELATION, "relationStrategy")                                                                            \
	FIELD(REF_RESOURCE, "refResource")                                                                             \
	NUMBER(MAX_QUEUEING, "maxQueueingTimeMs", UINT32_MAX, NULL)                                                    \
	NUMBER(WARM_UP_PERIOD, "warmUpPeriodSec", WEIR_WARM_UP_PERIOD_S_MAX, "write 1 to 31536000")                    \
	NUMBER(COLD_FACTOR, "warmUpColdFactor", UINT32_MAX, "write 2 to 4294967295, or 0 for the default of 3")        \
	COUNT(LOW_USAGE, "lowMemUsageThreshold", WEIR_THRESHOLD_UNITS_MAX, "write 1 to 10000000000000")                \
	COUNT(HIGH_USAGE, "highMemUsageThreshold", WEIR_THRESHOLD_UNITS_MAX, "write 1 to 10000000000000")              \
	BYTES(LOW_MARK, "memLowWaterMarkBytes", INT64_MAX, "write 1 to 9223372036854775807")                           \
	BYTES(HIGH_MARK, "memHighWaterMarkBytes", INT64_MAX, "write 1 to 9223372036854775807")                         \
	FIELD(UNIT, "unit")                                                                                            \
	FIELD(WINDOW, "window")                                                                                        \
	FIELD(BURST, "burst")                                                                                          \
	NUMBER(BURST_COUNT, "burstCount", WEIR_THRESHOLD_UNITS_MAX, "write 0 to 10000000000000")                       \
	FIELD(MODE, "mode")                                                                                            \
	FIELD(WHEN_FULL, "whenFull")                                                                                   \
	FIELD(OVERRIDES, "overrides")                                                                                  \
	FIELD(CLUSTER_MODE, "clusterMode")                                                                             \
	FIELD(CLUSTER_CONFIG, "clusterConfig")                                                                         \
	NUMBER(BLOCK_DURATION, "blockDurationInMs", UINT32_MAX, "write 1 to 4294967295, or leave it out")              \
	NUMBER(BLOCK_DURATION_MAX, "blockDurationMaxInMs", UINT32_MAX, "write 1 to 4294967295, or leave it out")

#define WEIR_RULE_FIELD(constant, name) RULE_##constant,
#define WEIR_RULE_NUMBER(constant, name, high, advice) RULE_##constant,
enum weir_rule_field {
	WEIR_RULE_FIELDS(WEIR_RULE_FIELD, WEIR_RULE_NUMBER, WEIR_RULE_NUMBER, WEIR_RULE_NUMBER) RULE_FIELD_COUNT
};
_Static_assert(RULE_FIELD_COUNT < 32, "a bit for each");
#define WEIR_RULE_FIELDS_ALL ((1u << RULE_FIELD_COUNT) - 1) /* a bit for each */

/* Rules that reject. */
#define WEIR_RULE_PENALTY_FIELDS (1u << RULE_BLOCK_DURATION | 1u << RULE_BLOCK_DURATION_MAX)

extern const char *const weir_rule_fields[RULE_FIELD_COUNT];

/* A day. Chosen, not derived: Sentinel's field is 32 bits wide. */
#define WEIR_INTERVAL_MS_MAX 86400000
/* A year. Chosen, not derived: Sentinel's field is 32 bits wide. */
#define WEIR_WARM_UP_PERIOD_S_MAX 31536000
/* As in Sentinel, where 0 means it too. */
#define WEIR_COLD_FACTOR_DEFAULT 3

/* A rule while it is read: what the file says, and what of it has no place in struct weir_ruleset_rule. */
struct weir_draft {
	const struct weir_node *node;
	const struct weir_node *value[RULE_FIELD_COUNT];
	struct weir_ruleset_rule *rule;
	const char *resource_name; /* NULL: missing, or of the wrong type */
	bool is_sentinel;	   /* an object of a list of Sentinel's rules */
	bool is_isolation;	   /* ... that is one of Sentinel-Go's isolation rules */
	bool has_threshold, has_resource;
	bool has_rate;			   /* `rate` stands for the threshold, the interval and the unit */
	struct weir_rate rate;		   /* then */
	uint32_t meant;			   /* fields that unknown ones stood for, a bit each */
	size_t mistakes_before;		   /* the reader's, when it came to this rule */
	uint64_t number[RULE_FIELD_COUNT]; /* of Sentinel's plain numbers; 0: absent */
	bool is_misread[RULE_FIELD_COUNT]; /* a value that was refused: no second complaint of it */
};

/* The node to point at for a field that may be absent. */
static inline const struct weir_node *weir_draft_at(const struct weir_draft *draft, enum weir_rule_field field)
{
	return draft->value[field] ?: draft->node;
}

/* Does a field mean anything, by the rule's kind, strategy and relation? If not, *ret_condition says what
 * it is for. ret_condition may be NULL.
 */
bool weir_draft_uses(const struct weir_draft *draft, enum weir_rule_field field, const char **ret_condition);

/* Append the rule that the draft's values say. They need not stand in the file as they are: weir_node.text may be what
 * another word comes to, as long as its place and document are those of that word.
 */
void weir_read_draft(struct weir_reader *reader, struct weir_draft *draft);

/* The index of the first resource of that name, or false. */
bool weir_find_resource(const struct weir_reader *reader, const char *name, size_t *ret_index);

/* Append a rule with the defaults, to be read into; then its resource and its name. */
bool weir_begin_rule(struct weir_reader *reader, struct weir_draft *draft);
void weir_read_identity(struct weir_reader *reader, struct weir_draft *draft);

/* The resource that a word names; complains when there is none. */
bool weir_look_up_resource(struct weir_reader *reader, const struct weir_node *node, const char *field,
			   const char **ret_name, size_t *ret_index);

/* All that is wrong with a rule beyond single words, and what is only worth a warning. Fills in ref_resource and the
 * overrides.
 */
void weir_check_rule(struct weir_reader *reader, const struct weir_draft *draft);

/* clusterMode and clusterConfig (cluster.c): part of a rule's choices, as they are read before what a list of
 * Sentinel's does not use is left out; and what a rule that hosts share cannot be.
 */
void weir_read_cluster(struct weir_reader *reader, struct weir_draft *draft);
void weir_check_cluster(struct weir_reader *reader, const struct weir_draft *draft);

/* Sentinel's clusterConfig.thresholdType, by its number. */
extern const char *const weir_cluster_type_names[2];

/* The overrides of a rule on `resource` (NULL: it is not known). */
void weir_read_overrides(struct weir_reader *reader, const struct weir_node *node,
			 const struct weir_ruleset_resource *resource, struct weir_ruleset_rule *rule);

/* Warn of a threshold that admits nothing, or no full frame: this one, or those of a rule. */
void weir_warn_of_small_threshold(struct weir_reader *reader, const struct weir_node *node, uint64_t micro,
				  const struct weir_ruleset_rule *rule);
void weir_warn_of_small_thresholds(struct weir_reader *reader, const struct weir_draft *draft);

#endif
