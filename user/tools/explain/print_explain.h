/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints an explanation, for people and as JSON. */
#ifndef WEIR_PRINT_EXPLAIN_H
#define WEIR_PRINT_EXPLAIN_H

#include "explain/explain.h"
#include "orders/orders.h"
#include "cli/print.h"

/* `packet` describes the request: in words, and as fields, which this function takes over. `entry` is the timed entry
 * that decides, or NULL.
 */
void weir_print_explanation(const struct weir_explanation *explanation, const struct weir_timed_order *entry,
			    const char *packet);
json_t *weir_json_explanation(const struct weir_explanation *explanation, const struct weir_timed_order *entry,
			      json_t *packet);

/* The options that set these fields (enum weir_match_field, or-ed): "--dport, --flags". */
const char *weir_format_options(uint32_t fields, char words[WEIR_WORDS_BYTES]);

#endif
