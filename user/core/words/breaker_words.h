/* SPDX-License-Identifier: GPL-2.0-only */
/* How circuit breakers stand, in words and in JSON. */
#ifndef WEIR_BREAKER_WORDS_H
#define WEIR_BREAKER_WORDS_H

#include <jansson.h>

#include "tables/breaker_state.h"
#include "words/words.h"

/* An object: state, leftSeconds, requests, bad, value, changes. */
json_t *weir_json_breaker(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy);

/* A rule's: closed, open, halfOpen (how many), changes; for a whole resource the breaker's own, as above. */
json_t *weir_json_breaker_sum(const struct weir_breaker_sum *sum, enum weir_breaker_strategy strategy, bool has_flows);

/* "closed", "open, retry in 2.5 s", "halfOpen" */
const char *weir_format_breaker_state(const struct weir_breaker_view *view, char words[WEIR_WORDS_BYTES]);

/* The same of a rule; of flows "3 open, 1 halfOpen of 57". */
const char *weir_format_breaker_sum(const struct weir_breaker_sum *sum, bool has_flows, char words[WEIR_WORDS_BYTES]);

/* "0.5 (5 of 10)": what its last evaluation found; "-" if it never was. */
const char *weir_format_breaker_value(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy,
				      char words[WEIR_WORDS_BYTES]);

#endif
