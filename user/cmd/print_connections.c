// SPDX-License-Identifier: GPL-2.0-only
#include "print_connections.h"

#include "base/util.h"

static double mean_us(const struct weir_connection_figures *figures)
{
	return figures->handshakes ? (double)figures->handshake_us / figures->handshakes : 0;
}

void weir_table_connections(struct weir_table *table, const struct weir_connection_figures *figures)
{
	const uint64_t before[] = {figures->now, figures->max, figures->opened, figures->learned};
	const uint64_t after[] = {figures->closed_by_fin, figures->closed_by_reset, figures->closed_by_idle,
				  figures->reused, figures->evicted};

	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		weir_table_cell(table, "%llu", (unsigned long long)before[i]);
	if (figures->has_refused)
		weir_table_cell(table, "%llu", (unsigned long long)figures->refused);
	else
		weir_table_cell(table, "-");
	for (size_t i = 0; i < ARRAY_SIZE(after); i++)
		weir_table_cell(table, "%llu", (unsigned long long)after[i]);
	if (figures->handshakes) {
		weir_table_cell(table, "%.3f", mean_us(figures) / 1e3);
		weir_table_cell(table, "%.3f", figures->shortest_us / 1e3);
	} else {
		weir_table_cell(table, "-");
		weir_table_cell(table, "-");
	}
}
