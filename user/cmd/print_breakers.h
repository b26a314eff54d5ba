/* SPDX-License-Identifier: GPL-2.0-only */
/* Circuit breakers in a table. */
#ifndef WEIR_PRINT_BREAKERS_H
#define WEIR_PRINT_BREAKERS_H

#include "print.h"
#include "words/breaker_words.h"

/* Columns of a table. The caller adds the first two cells: the rule's name and its limit. */
#define WEIR_BREAKER_HEADINGS "breaker", "limit", "state", ">value", ">changes"
void weir_table_breaker(struct weir_table *table, const struct weir_breaker_sum *sum,
			enum weir_breaker_strategy strategy, bool has_flows);

#endif
