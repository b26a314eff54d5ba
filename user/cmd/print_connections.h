/* SPDX-License-Identifier: GPL-2.0-only */
/* How counts of connections look in a table. */
#ifndef WEIR_PRINT_CONNECTIONS_H
#define WEIR_PRINT_CONNECTIONS_H

#include "print.h"
#include "tables/connection_counts.h"
#include "words/connection_words.h"

/* Two tables, as one would be wider than a terminal: what is open and was refused, and how connections ended. */
struct weir_connection_tables {
	struct weir_table open, ended;
};

void weir_connection_tables_begin(struct weir_connection_tables *ret_tables);
void weir_connection_tables_add(struct weir_connection_tables *tables, const char *rule, const char *limit,
				const struct weir_connection_figures *figures);
/* An empty line before each; nothing, if no rule was added. */
void weir_connection_tables_print(const struct weir_connection_tables *tables, FILE *stream);
void weir_connection_tables_free(struct weir_connection_tables *tables);

#endif
