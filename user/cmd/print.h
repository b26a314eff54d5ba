/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How figures look: tables for people, and the pieces of JSON documents that several commands share.
 * Field names in JSON are those of the rule files where the thing is the same.
 */
#ifndef WEIR_PRINT_H
#define WEIR_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instance/instance.h"

/* ---- tables: columns as wide as what is in them ---- */

struct weir_table {
	const char *const *headings; /* one that starts with '>' stands to the right, as numbers do */
	size_t columns;
	char **cells; /* owned, row after row */
	size_t cell_count;
	bool is_cut; /* memory was out: it ends there, so that no cell stands under another's heading */
};

#define WEIR_TABLE_COLUMNS_MAX 16

/* Add the next cell. Out of memory, a cell stays empty, or the table ends with the one before. */
void weir_table_cell(struct weir_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void weir_table_print(const struct weir_table *table, FILE *stream);
void weir_table_free(struct weir_table *table);

/* ---- words ---- */

/* What makes a noun plural: "", or "s". */
static inline const char *weir_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

#define WEIR_WORDS_BYTES 352 /* a limit with the name of a resource and a penalty */

/* "3 min 20 s", "45 s", "2 d 4 h". */
const char *weir_format_age(uint64_t age_ns, char words[WEIR_WORDS_BYTES]);

/* "10 s", "250 ms" */
void weir_format_interval(uint64_t interval_ns, char *text, size_t text_bytes);

/* "20", "2.5" of millionths. */
void weir_format_micro(uint64_t micro, char *text, size_t text_bytes);

/* "2.5 connections" of a threshold in millionths. */
const char *weir_format_count(uint64_t threshold_micro, const char *noun, char words[WEIR_WORDS_BYTES]);

/* What a rule file has to say of one, from either of what it was read into. */
struct weir_breaker_words {
	enum weir_breaker_strategy strategy;
	uint64_t threshold_micro, interval_ns, retry_ns, max_rt_ns;
	uint32_t buckets, min_requests, probes;
};
struct weir_breaker_words weir_breaker_words_of(const struct weir_ruleset_rule *rule);
struct weir_breaker_words weir_breaker_words_of_info(const struct weir_rule_info *info);

/* "ErrorRatio 0.5 of 10 in 10 s, retry after 5 s" */
const char *weir_format_breaker(const struct weir_breaker_words *breaker, char words[WEIR_WORDS_BYTES]);

/* The same as fields, added to an object. */
void weir_json_add_breaker(const struct weir_breaker_words *breaker, json_t *fields);

/* "20 packets per 1 s", "1000 to 100 packets per 1 s, spaced", "100 connections", "20 packets per 1 s, then blocked for
 * 1 min", "Load above 8".
 */
const char *weir_format_limit(const struct weir_rule_info *rule, char words[WEIR_WORDS_BYTES]);

/* "InboundQPS from 1000", "AvgRT from 50 ms", "CpuUsage above 0.8, BBR" of a system rule. */
const char *weir_format_system(enum weir_system_metric metric, uint64_t trigger_micro, bool is_bbr,
			       char words[WEIR_WORDS_BYTES]);

/* "source 192.0.2.1, destinationPort 53" of a flow's key. */
const char *weir_format_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			    char words[WEIR_WORDS_BYTES]);

extern const char *const weir_verdict_names[]; /* enum weir_verdict; keys of JSON documents, too */

/* ---- JSON ---- */

/* A string of what need not be UTF-8, as JSON has to be: the name of an interface may be any bytes. U+FFFD stands for
 * each that is not.
 */
json_t *weir_json_text(const char *text);

/* Add to a list, which takes the item. Should there be none, as memory is out, the list becomes NULL, and with it all
 * that it is packed into: a document never lacks an item in silence.
 */
void weir_json_append(json_t **list, json_t *item);

/* Of millionths: at most six decimals; whole thresholds stay integers. */
json_t *weir_json_threshold(uint64_t micro);

json_t *weir_json_tally(const struct weir_tally *tally);

/* An object with what a rule is: name, resource, unit, statIntervalInMs, mode, Sentinel's strategy, behavior and
 * relation, and what of these they need: threshold, or MemoryAdaptive's four; maxQueueingTimeMs, or sampleCount and
 * window; refResource. Of a rule of connections: name, resource, metricType, mode, threshold. Of a circuit breaker the
 * fields that it is written with. Of a system rule as below, and `resource` is null.
 */
json_t *weir_json_rule(const struct weir_rule_info *rule);

/* Add blockDurationInMs and blockDurationMaxInMs, if the rule penalises. */
void weir_json_add_penalty(json_t *fields, uint32_t penalty_ms, uint32_t penalty_ms_max);

/* A system rule's metricType, triggerCount, mode, and strategy where it means something, added to an object. */
void weir_json_add_system(json_t *fields, enum weir_system_metric metric, uint64_t trigger_micro, bool is_bbr,
			  bool observes);

/* The fields of the key, by their names in rule files, addresses as text. */
json_t *weir_json_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key);

/* Print the document and free it. 0, or -errno with a word in *diag. */
int weir_json_print(json_t *document, struct weir_diag *diag);

/* Is all that was printed out? 0, or -errno with a word in *diag. */
int weir_flush_results(struct weir_diag *diag);

#endif
