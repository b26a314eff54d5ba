// SPDX-License-Identifier: GPL-2.0-only
#include "print_connections.h"

#include "base/util.h"

static double mean_us(const struct weir_connection_figures *figures)
{
	return figures->handshakes ? (double)figures->handshake_us / figures->handshakes : 0;
}

static void add_counts(struct weir_table *table, const uint64_t *counts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weir_table_cell(table, "%llu", (unsigned long long)counts[i]);
}

static void add_handshakes(struct weir_table *table, const struct weir_connection_figures *figures)
{
	if (figures->handshakes) {
		weir_table_cell(table, "%.3f", mean_us(figures) / 1e3);
		weir_table_cell(table, "%.3f", figures->shortest_us / 1e3);
	} else {
		weir_table_cell(table, "-");
		weir_table_cell(table, "-");
	}
}

void weir_connection_tables_begin(struct weir_connection_tables *ret_tables)
{
	static const char *const open[] = {"rule", "limit", ">now", ">max", ">opened", ">learned", ">refused"};
	static const char *const ended[] = {"rule",    ">FIN",	   ">RST",	    ">idle",
					    ">reused", ">evicted", ">handshake ms", ">least ms"};

	*ret_tables = (struct weir_connection_tables){
		.open = {.headings = open, .columns = ARRAY_SIZE(open)},
		.ended = {.headings = ended, .columns = ARRAY_SIZE(ended)},
	};
}

void weir_connection_tables_add(struct weir_connection_tables *tables, const char *rule, const char *limit,
				const struct weir_connection_figures *figures)
{
	const uint64_t open[] = {figures->now, figures->max, figures->opened, figures->learned};
	const uint64_t ended[] = {figures->closed_by_fin, figures->closed_by_reset, figures->closed_by_idle,
				  figures->reused, figures->evicted};

	weir_table_cell(&tables->open, "%s", rule);
	weir_table_cell(&tables->open, "%s", limit);
	add_counts(&tables->open, open, ARRAY_SIZE(open));
	if (figures->has_refused)
		weir_table_cell(&tables->open, "%llu", (unsigned long long)figures->refused);
	else
		weir_table_cell(&tables->open, "-");
	weir_table_cell(&tables->ended, "%s", rule);
	add_counts(&tables->ended, ended, ARRAY_SIZE(ended));
	add_handshakes(&tables->ended, figures);
}

void weir_connection_tables_print(const struct weir_connection_tables *tables, FILE *stream)
{
	if (!tables->open.cell_count)
		return;
	fputc('\n', stream);
	weir_table_print(&tables->open, stream);
	fputc('\n', stream);
	weir_table_print(&tables->ended, stream);
}

void weir_connection_tables_free(struct weir_connection_tables *tables)
{
	weir_table_free(&tables->open);
	weir_table_free(&tables->ended);
}
