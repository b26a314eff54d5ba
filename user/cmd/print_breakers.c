// SPDX-License-Identifier: GPL-2.0-only
#include "print_breakers.h"

void weir_table_breaker(struct weir_table *table, const struct weir_breaker_sum *sum,
			enum weir_breaker_strategy strategy, bool has_flows)
{
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", weir_format_breaker_sum(sum, has_flows, words));
	weir_table_cell(table, "%s", has_flows ? "-" : weir_format_breaker_value(&sum->lone, strategy, words));
	weir_table_cell(table, "%llu", (unsigned long long)sum->changes);
}
