/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts of connections in a table. */
#ifndef WEIR_PRINT_CONNECTIONS_H
#define WEIR_PRINT_CONNECTIONS_H

#include "print.h"
#include "tables/connection_counts.h"
#include "words/connection_words.h"

/* Two tables, since a single one would be wider than a terminal: open and refused connections, and how connections
 * ended.
 */
struct weir_connection_tables {
	struct weir_table open, ended;
};

void weir_connection_tables_begin(struct weir_connection_tables *ret_tables);
void weir_connection_tables_add(struct weir_connection_tables *tables, const char *rule, const char *limit,
				const struct weir_connection_figures *figures);
/* Prints an empty line before each table; prints nothing if no rule was added. */
void weir_connection_tables_print(const struct weir_connection_tables *tables, FILE *stream);
void weir_connection_tables_free(struct weir_connection_tables *tables);

#endif
