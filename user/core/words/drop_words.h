/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a dropped packet's flow under its rule, from `used` and `threshold` of struct weir_event. */
#ifndef WEIR_DROP_WORDS_H
#define WEIR_DROP_WORDS_H

#include <jansson.h>

#include "words/words.h"

/* "used 20 of 20 packets", "0 of 20 packets left", "would wait 120.4 ms, may wait 100 ms", "100 of 100 connections
 * open", "12 of 20 requests were bad, threshold 0.5", "AvgRT 62.5 ms, threshold 50 ms".
 */
const char *weir_format_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold,
				     char words[WEIR_WORDS_BYTES]);

/* Add `used`, `threshold` and `unit`; for a circuit breaker `requests`, `bad` and `threshold`. */
void weir_json_add_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold, json_t *fields);

#endif
