/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of rules, settings and circuit breakers, each a row: its name, what may be written, and the member that
 * it becomes. Reading (weir_read_value), rule files and JSON documents (shown_rule.c, emit.c) all go by the rows.
 */
#ifndef WEIR_RULES_FIELD_ROWS_H
#define WEIR_RULES_FIELD_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kind/kind.h"
#include "rules/ruleset.h"
#include "rules/writer.h"

struct weir_node;

enum weir_field_form {
	WEIR_FIELD_OWN, /* a function of its own reads it; if it is shown as a number, the row has the member, too */
	WEIR_FIELD_CHOICE,
	WEIR_FIELD_NUMBER, /* digits, or a time if the name is written without its unit */
	WEIR_FIELD_COUNT,  /* may have a prefix ("20k"); in a rule, it counts the rule's unit */
	WEIR_FIELD_BYTES,  /* may also have a unit ("8GiB") */
};

struct weir_field_row {
	const char *name;
	enum weir_field_form form;
	uint16_t offset, bytes; /* of the member, in the struct whose rows these are; 0 bytes: there is none */
	uint64_t unit;		/* a number of 1 in the file is this many in the member */
	uint64_t low, high;
	const char *advice; /* more than the range, for messages; or NULL */
	const char *const *words;
	size_t word_count;
	bool has_numbers; /* of a choice: its index in digits is accepted too, as Sentinel writes enums */
};

/*
 * OWN, OWN_NUMBER(member, unit)
 * CHOICE(member, names), NUMBERED(member, names): names is an array, or WORDS(...)
 * NUMBER(member, unit, low, high, advice), COUNT(...), BYTES(...)
 *
 * The largest number is as wide as Sentinel-Go's own type, uint32 or int64, or as its meaning allows. The advice is for
 * rules that use the field; others may have lower limits.
 */
#define WEIR_RULE_FIELDS(ROW)                                                                                          \
	ROW(NAME, "name", OWN)                                                                                         \
	ROW(RESOURCE, "resource", OWN)                                                                                 \
	ROW(PER, "per", OWN)                                                                                           \
	ROW(FAIR_BY, "fairBy", OWN)                                                                                    \
	ROW(METRIC, "metricType", OWN)                                                                                 \
	ROW(THRESHOLD, "threshold", OWN)                                                                               \
	ROW(RATE, "rate", OWN)                                                                                         \
	ROW(INTERVAL, "statIntervalInMs", OWN_NUMBER(interval_ns, NS_PER_MS))                                          \
	ROW(SAMPLES, "sampleCount", OWN_NUMBER(samples, 1))                                                            \
	ROW(STRATEGY, "tokenCalculateStrategy", NUMBERED(strategy, weir_strategy_names))                               \
	ROW(BEHAVIOR, "controlBehavior", NUMBERED(behavior, weir_behavior_names))                                      \
	ROW(RELATION, "relationStrategy", NUMBERED(relation, weir_relation_names))                                     \
	ROW(REF_RESOURCE, "refResource", OWN)                                                                          \
	ROW(MAX_QUEUEING, "maxQueueingTimeMs", NUMBER(queueing_ms_max, 1, 0, UINT32_MAX, NULL))                        \
	ROW(WARM_UP_PERIOD, "warmUpPeriodSec",                                                                         \
	    NUMBER(warm_up.period_s, 1, 0, WEIR_WARM_UP_PERIOD_S_MAX, "write 1 to 31536000"))                          \
	ROW(COLD_FACTOR, "warmUpColdFactor",                                                                           \
	    NUMBER(warm_up.cold_factor, 1, 0, UINT32_MAX, "write 2 to 4294967295, or 0 for the default of 3"))         \
	ROW(LOW_USAGE, "lowMemUsageThreshold",                                                                         \
	    COUNT(memory.low_units, 1, 0, WEIR_THRESHOLD_UNITS_MAX, "write 1 to 10000000000000"))                      \
	ROW(HIGH_USAGE, "highMemUsageThreshold",                                                                       \
	    COUNT(memory.high_units, 1, 0, WEIR_THRESHOLD_UNITS_MAX, "write 1 to 10000000000000"))                     \
	ROW(LOW_MARK, "memLowWaterMarkBytes",                                                                          \
	    BYTES(memory.low_mark_bytes, 1, 0, INT64_MAX, "write 1 to 9223372036854775807"))                           \
	ROW(HIGH_MARK, "memHighWaterMarkBytes",                                                                        \
	    BYTES(memory.high_mark_bytes, 1, 0, INT64_MAX, "write 1 to 9223372036854775807"))                          \
	ROW(UNIT, "unit", CHOICE(counts_bytes, WORDS("packets", "bytes")))                                             \
	ROW(WINDOW, "window", CHOICE(window, weir_window_names))                                                       \
	ROW(BURST, "burst", OWN)                                                                                       \
	ROW(BURST_COUNT, "burstCount",                                                                                 \
	    NUMBER(burst_beyond_micro, WEIR_MICRO, 0, WEIR_THRESHOLD_UNITS_MAX, "write 0 to 10000000000000"))          \
	ROW(MODE, "mode", CHOICE(observes, WORDS("enforce", "observe")))                                               \
	ROW(ON_BLOCK, "onBlock", CHOICE(on_block, weir_on_block_names))                                                \
	ROW(WHEN_FULL, "whenFull", CHOICE(aggregates, WORDS("evict", "aggregate")))                                    \
	ROW(OVERRIDES, "overrides", OWN)                                                                               \
	ROW(CLUSTER_MODE, "clusterMode", OWN)                                                                          \
	ROW(CLUSTER_CONFIG, "clusterConfig", OWN)                                                                      \
	/* A user who writes 0 wants something, and a penalty of 0 would be none at all. */                            \
	ROW(BLOCK_DURATION, "blockDurationInMs",                                                                       \
	    NUMBER(penalty_ms, 1, 1, UINT32_MAX, "write 1 to 4294967295, or leave it out"))                            \
	ROW(BLOCK_DURATION_MAX, "blockDurationMaxInMs",                                                                \
	    NUMBER(penalty_ms_max, 1, 1, UINT32_MAX, "write 1 to 4294967295, or leave it out"))

/* In the order of docs/rules.md. */
#define WEIR_SETTINGS(ROW)                                                                                             \
	ROW(FLOWS_PER_CPU, "flowsPerCpu", COUNT(flows_per_cpu, 1, FLOWS_PER_CPU_MIN, FLOWS_PER_CPU_MAX, NULL))         \
	ROW(MALFORMED, "malformed", CHOICE(drop_malformed, WORDS("pass", "drop")))                                     \
	ROW(UNSUPPORTED, "unsupported", CHOICE(drop_unsupported, WORDS("pass", "drop")))                               \
	ROW(NON_IP, "nonIp", CHOICE(drop_non_ip, WORDS("pass", "drop")))                                               \
	ROW(NON_IP_EXCEPT, "nonIpExcept", OWN)                                                                         \
	ROW(UNMATCHED, "unmatched", CHOICE(drop_unmatched, WORDS("pass", "drop")))                                     \
	ROW(MODE, "mode", CHOICE(observes, WORDS("enforce", "observe")))                                               \
	ROW(MEMORY, "memory", OWN)                                                                                     \
	ROW(THROTTLING, "throttling", CHOICE(paces, WORDS("police", "pace")))                                          \
	ROW(CONTROLLER_TIMEOUT, "controllerTimeoutInMs", NUMBER(controller_timeout_ms, 1, 1000, 60000, NULL))          \
	ROW(OCCUPY_TIMEOUT, "occupyTimeoutInMs", NUMBER(occupy_timeout_ms, 1, 0, OCCUPY_TIMEOUT_MS_MAX, NULL))         \
	ROW(TIMED_ENTRIES, "timedEntries", COUNT(timed_entries, 1, 0, WEIR_LISTED_MAX, NULL))                          \
	ROW(TIMED_PARTS, "timedParts", OWN)                                                                            \
	ROW(TIMED_WHEN_FULL, "timedWhenFull", CHOICE(timed_evicts, WORDS("refuse", "evict")))                          \
	ROW(CLUSTER, "cluster", OWN)                                                                                   \
	ROW(ANSWERS, "answers", OWN)                                                                                   \
	ROW(CONNECTIONS, "connections", COUNT(connections, 1, CONNECTIONS_MIN, CONNECTIONS_MAX, NULL))                 \
	ROW(CONNECTION_FLOWS, "connectionFlows",                                                                       \
	    COUNT(connection_flows, 1, CONNECTION_FLOWS_MIN, CONNECTION_FLOWS_MAX, NULL))                              \
	ROW(HALF_OPEN_TIMEOUT, "halfOpenTimeoutInMs", SILENCE(WEIR_CONNECTION_CLASS_HALF))                             \
	ROW(TCP_IDLE_TIMEOUT, "tcpIdleTimeoutInMs", SILENCE(WEIR_CONNECTION_CLASS_OPEN))                               \
	ROW(OTHER_IDLE_TIMEOUT, "otherIdleTimeoutInMs", SILENCE(WEIR_CONNECTION_CLASS_OTHER))                          \
	ROW(CLOSED_TIMEOUT, "closedTimeoutInMs", SILENCE(WEIR_CONNECTION_CLASS_CLOSED))

/* In Sentinel-Go's names, except that `name`, `mode` and `onBlock` are weir's. */
#define WEIR_BREAKER_FIELDS(ROW)                                                                                       \
	ROW(NAME, "name", OWN)                                                                                         \
	ROW(RESOURCE, "resource", OWN)                                                                                 \
	ROW(STRATEGY, "strategy", NUMBERED(breaker.strategy, weir_breaker_strategy_names))                             \
	ROW(THRESHOLD, "threshold", OWN)                                                                               \
	ROW(RETRY, "retryTimeoutMs", NUMBER(breaker.retry_ns, NS_PER_MS, 0, BREAKER_MS_MAX, NULL))                     \
	ROW(MIN_REQUESTS, "minRequestAmount", COUNT(breaker.min_requests, 1, 0, WEIR_BREAKER_REQUESTS_MAX, NULL))      \
	ROW(INTERVAL, "statIntervalMs", NUMBER(breaker.interval_ns, NS_PER_MS, 0, BREAKER_MS_MAX, NULL))               \
	ROW(BUCKETS, "statSlidingWindowBucketCount", NUMBER(breaker.buckets, 1, 0, WEIR_BREAKER_BUCKETS_MAX, NULL))    \
	ROW(MAX_RT, "maxAllowedRtMs", NUMBER(breaker.max_rt_ns, NS_PER_MS, 0, BREAKER_MS_MAX, NULL))                   \
	ROW(PROBES, "probeNum", NUMBER(breaker.probes, 1, 0, PROBES_MAX, NULL))                                        \
	ROW(MODE, "mode", CHOICE(observes, WORDS("enforce", "observe")))                                               \
	ROW(ON_BLOCK, "onBlock", CHOICE(on_block, weir_on_block_names))                                                \
	ROW(ID, "id", OWN) /* Sentinel's; ignored here, since several rules may share an id */

#define WEIR_RULE_ROW(constant, ...) RULE_##constant,
enum weir_rule_field { WEIR_RULE_FIELDS(WEIR_RULE_ROW) RULE_FIELD_COUNT };
_Static_assert(RULE_FIELD_COUNT <= 32, "a bit for each");

#define WEIR_SETTING_ROW(constant, ...) SETTING_##constant,
enum weir_setting { WEIR_SETTINGS(WEIR_SETTING_ROW) WEIR_SETTING_COUNT };

#define WEIR_BREAKER_ROW(constant, ...) WEIR_BREAKER_##constant,
enum weir_breaker_field { WEIR_BREAKER_FIELDS(WEIR_BREAKER_ROW) WEIR_BREAKER_FIELD_COUNT };

extern const struct weir_field_row weir_rule_rows[RULE_FIELD_COUNT];	  /* members of struct weir_ruleset_rule */
extern const struct weir_field_row weir_setting_rows[WEIR_SETTING_COUNT]; /* ... of struct weir_settings */
extern const struct weir_field_row weir_breaker_rows[WEIR_BREAKER_FIELD_COUNT]; /* ... of struct weir_ruleset_rule */

/* The names of the same rows, for what only asks for names. */
extern const char *const weir_rule_fields[RULE_FIELD_COUNT];
extern const char *const weir_setting_names[WEIR_SETTING_COUNT];
extern const char *const weir_breaker_field_names[WEIR_BREAKER_FIELD_COUNT];

/* Do rules of this kind have the field, such as an interval? */
static inline bool weir_kind_has(const struct weir_kind *kind, enum weir_rule_field field)
{
	return kind->fields >> field & 1;
}

/* A day. Chosen, not derived: Sentinel's field is 32 bits wide. */
#define WEIR_INTERVAL_MS_MAX 86400000
/* A year. Chosen, not derived: Sentinel's field is 32 bits wide. */
#define WEIR_WARM_UP_PERIOD_S_MAX 31536000
/* Ten million. Chosen, not derived: less than a cell can count, with room to spare (weir_breakers.h). */
#define WEIR_BREAKER_REQUESTS_MAX 10000000

/*
 * Read a choice's index, or a number as it is in the file. With is_plain, a number has neither prefix nor unit, as in
 * lists of Sentinel's; counts_bytes: a COUNT counts bytes. Returns false, with the result untouched, after a complaint.
 */
bool weir_read_value(struct weir_reader *reader, const struct weir_field_row *row, const struct weir_node *node,
		     bool is_plain, bool counts_bytes, uint64_t *ret_value);

/* What the row's member of *object holds, as it would be in the file; and the reverse. */
uint64_t weir_member_value(const struct weir_field_row *row, const void *object);
void weir_set_member(const struct weir_field_row *row, void *object, uint64_t value);

/* Write the field into the map that is open. */
void weir_write_member(struct weir_writer *writer, const struct weir_field_row *row, const void *object);

#endif
