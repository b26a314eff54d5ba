/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of circuit breakers, in words and in JSON. */
#ifndef WEIR_BREAKER_WORDS_H
#define WEIR_BREAKER_WORDS_H

#include <jansson.h>

#include "tables/breaker_state.h"
#include "words/words.h"

/* An object with state, leftSeconds, requests, bad, value and changes. */
json_t *weir_json_breaker(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy);

/* For a rule: the numbers of closed, open and halfOpen breakers, and changes; for a whole resource the fields of its
 * only breaker, as above.
 */
json_t *weir_json_breaker_sum(const struct weir_breaker_sum *sum, enum weir_breaker_strategy strategy, bool has_flows);

/* For people: "closed", "open" or "half-open"; fields and labels have weir_breaker_kind_names. */
const char *weir_breaker_kind_word(enum weir_breaker_kind kind);

/* "closed", "open, retry in 2.5 s", "half-open" */
const char *weir_format_breaker_state(const struct weir_breaker_view *view, char words[WEIR_WORDS_BYTES]);

/* The same for a rule; if it has flows, "3 open, 1 half-open of 57". */
const char *weir_format_breaker_sum(const struct weir_breaker_sum *sum, bool has_flows, char words[WEIR_WORDS_BYTES]);

/* "0.5 (5 of 10)": the result of its latest evaluation; "-" if there was none. */
const char *weir_format_breaker_value(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy,
				      char words[WEIR_WORDS_BYTES]);

#endif
