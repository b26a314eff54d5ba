/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room words: the wording of figures, rules and keys, the same wherever they are shown: in words for people (this
 * header; state_words.h for flows), and as parts of JSON documents (json.h). Pure: it makes text and prints nothing.
 */
#ifndef WEIR_WORDS_H
#define WEIR_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/quantity.h"
#include "rules/ruleset.h"
#include "tables/labels.h"
#include "weir_abi.h"

/* The plural ending of a noun: "" or "s". */
static inline const char *weir_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

#define WEIR_WORDS_BYTES 960 /* enough for a limit with a key of all fields, a resource's name and a penalty */

/* "3 min 20 s", "45 s", "2 d 4 h". */
const char *weir_format_age(uint64_t age_ns, char words[WEIR_WORDS_BYTES]);

/* "90 s", "100 ms", "1.25 ms", "24 h": in the largest unit that gives a whole number, otherwise in ms. */
void weir_format_interval(uint64_t interval_ns, char *text, size_t text_bytes);

/* "2.5 connections", from a threshold in millionths. */
const char *weir_format_count(uint64_t threshold_micro, const char *noun, char words[WEIR_WORDS_BYTES]);

/* "ErrorRatio 0.5 of 10 in 10 s, retry after 5 s" for a circuit breaker. */
const char *weir_format_breaker(const struct weir_ruleset_rule *rule, char words[WEIR_WORDS_BYTES]);

/* ", then blocked for 1 min", or an empty text. */
#define WEIR_PENALTY_BYTES 96
void weir_format_penalty(uint32_t penalty_ms, uint32_t penalty_ms_max, char text[WEIR_PENALTY_BYTES]);

/* What a limit applies to: "per source/24", "per source and destinationPort", "in all". `families` are those of the
 * resource's match: if it has both, a shortened address has a length for each, "source/24/56".
 */
const char *weir_format_whose(const struct weir_flow *flow, uint8_t families, char words[WEIR_WORDS_BYTES]);

/* The same for a rule as it was read, and for a loaded rule, whose sets `labels` knows (NULL: they are "?"). */
const char *weir_format_whose_rule(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule,
				   char words[WEIR_WORDS_BYTES]);
const char *weir_format_whose_limit(const struct weir_rule_info *rule, const struct weir_key_labels *labels,
				    char words[WEIR_WORDS_BYTES]);

/* "20/s per source/24", "1000 to 100/s in all, spaced", "100 connections per source", "Load above 8",
 * "20/s per source, then blocked for 1 min".
 */
const char *weir_format_limit(const struct weir_rule_info *rule, const struct weir_key_labels *labels,
			      char words[WEIR_WORDS_BYTES]);

/* "InboundQPS from 1000", "AvgRT from 50 ms", "CpuUsage above 0.8, BBR" for a system rule. */
const char *weir_format_system(enum weir_system_metric metric, uint64_t trigger_micro, bool is_bbr,
			       char words[WEIR_WORDS_BYTES]);

/* "in", "out" or "both", from WEIR_MATCHES_IN and _OUT. */
const char *weir_direction_name(uint32_t directions);

extern const char *const weir_verdict_names[]; /* by enum weir_verdict; also the keys in JSON documents */
extern const char *const weir_verdict_words[]; /* the same for people: "blocked by a rule" */
extern const char *const weir_answer_words[];  /* by enum weir_on_block: what the sender gets, "RST" */

/* Is a packet with this verdict dropped, or would it be if the instance did not observe? */
bool weir_verdict_drops(enum weir_verdict verdict);

/* What needs packets of a direction to be evaluated: "resources, lists"; bits 1 << enum weir_need. Returns `words`. */
#define WEIR_NEEDS_BYTES 160
const char *weir_needs_words(uint32_t needs, char words[WEIR_NEEDS_BYTES]);

#endif
