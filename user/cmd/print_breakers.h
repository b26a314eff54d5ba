/* SPDX-License-Identifier: GPL-2.0-only */
/* How circuit breakers look, wherever a command shows them. */
#ifndef WEIR_PRINT_BREAKERS_H
#define WEIR_PRINT_BREAKERS_H

#include "print.h"
#include "tables/breaker_state.h"

/* An object: state, leftSeconds, requests, bad, value, changes. */
json_t *weir_json_breaker(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy);

/* Of a rule: closed, open, halfOpen (how many), changes; and of a whole resource the breaker's own, as above. */
json_t *weir_json_breaker_sum(const struct weir_breaker_sum *sum, enum weir_breaker_strategy strategy, bool has_flows);

/* "closed", "open, retry in 2.5 s", "halfOpen" */
const char *weir_format_breaker_state(const struct weir_breaker_view *view, char words[WEIR_WORDS_BYTES]);

/* The same of a rule; of flows "3 open, 1 halfOpen of 57". */
const char *weir_format_breaker_sum(const struct weir_breaker_sum *sum, bool has_flows, char words[WEIR_WORDS_BYTES]);

/* "0.5 (5 of 10)": what it was judged by last; "-" if it never was. */
const char *weir_format_breaker_value(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy,
				      char words[WEIR_WORDS_BYTES]);

/* Columns of a table: the rule's name and its limit are the caller's first two. */
#define WEIR_BREAKER_HEADINGS "breaker", "limit", "state", ">value", ">changes"
void weir_table_breaker(struct weir_table *table, const struct weir_breaker_sum *sum,
			enum weir_breaker_strategy strategy, bool has_flows);

#endif
