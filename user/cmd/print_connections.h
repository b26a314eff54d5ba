/* SPDX-License-Identifier: GPL-2.0-only */
/* How counts of connections look in a table. */
#ifndef WEIR_PRINT_CONNECTIONS_H
#define WEIR_PRINT_CONNECTIONS_H

#include "print.h"
#include "tables/connection_counts.h"
#include "words/connection_words.h"

/* Columns of a table: the rule's name and its limit are the caller's first two. */
#define WEIR_CONNECTION_HEADINGS                                                                                       \
	"rule", "limit", ">now", ">max", ">opened", ">learned", ">refused", ">FIN", ">RST", ">idle", ">reused",        \
		">evicted", ">handshake ms", ">least ms"
void weir_table_connections(struct weir_table *table, const struct weir_connection_figures *figures);

#endif
