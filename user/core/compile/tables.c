// SPDX-License-Identifier: GPL-2.0-only
/* The flow tables: which of them a load needs, and how large. Each kind knows its own; here is what all do. */
#include "compile/parts.h"

#include <stdio.h>

/* Planned times, and warm-up per flow: the least that a table has which is used at all. Chosen, not derived. */
#define SHARED_SETS_MIN 64u

bool weir_any_rule(bool (*is_such)(const struct weir_rule_info *rule), const struct weir_rule_info *rules,
		   uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (rules[i].state == WEIR_SLOT_USED && is_such(&rules[i]))
			return true;
	}
	return false;
}

static void warn_of_kept(struct weir_diag *diag, const struct weir_table *table)
{
	char hint[96];

	snprintf(hint, sizeof(hint), "detach and attach again to change %s", table->setting);
	weir_diag_warning(diag, NULL, NULL, hint, "the %s %u %s: a reload does not change that", table->keeping,
			  table->previous_sets * table->ways, table->what);
}

uint32_t weir_table_sets(const struct weir_image *image, const struct weir_previous *previous,
			 const struct weir_table *table, struct weir_diag *diag)
{
	const bool is_needed = weir_any_rule(table->keeps, image->rule_info, image->rule_slots);
	const uint32_t sets = is_needed ? table->sets : table->sets_idle;

	if (!table->previous_sets || !weir_any_rule(table->keeps, previous->rules, previous->rule_slots))
		return sets;
	if (sets != table->previous_sets && sets != table->sets_idle && !table->is_told)
		warn_of_kept(diag, table);
	return table->previous_sets;
}

/* About twice as many places as one CPU keeps flows: sets fill unevenly. */
uint32_t weir_shared_sets(const struct weir_image *image, uint32_t ways)
{
	uint64_t wanted = 2ull * image->flows_per_cpu / ways;
	uint32_t sets = SHARED_SETS_MIN;

	while (sets < wanted && sets < 1u << 31)
		sets *= 2;
	return sets;
}

/* WarmUp is no kind: rules of several kinds warm up. */
static void size_warming(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_table table = {
		.keeps = weir_warms_flows,
		.sets = weir_shared_sets(image, WEIR_WARMING_WAYS),
		.sets_idle = 1,
		.previous_sets = previous->warming_sets,
		.ways = WEIR_WARMING_WAYS,
		.keeping = "table of warming flows keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	image->config.warming_sets = weir_table_sets(image, previous, &table, diag);
}

/* ---- penalties, which are no kind either ---- */

int weir_penalties_check_span(uint64_t span_ns, struct weir_diag *diag)
{
	const uint64_t penalty_ns_max = UINT32_MAX * 1000000ull; /* blockDurationMaxInMs */

	/* Their words hold so many bits of the clock that two less than half a turn apart can be told apart. */
	if (span_ns < (WEIR_LAST_MASK >> 1) - 2 * penalty_ns_max)
		return 0;
	weir_diag_error(diag, NULL, NULL, "replay the part before and the part after by themselves",
			"blockDurationInMs can look back over 4.2 years, and these packets lie further apart");
	return -EINVAL;
}

/* As many places as one CPU keeps flows, and some more: not every flow is penalised. */
static void size_penalties(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_table table = {
		.keeps = weir_penalises_flows,
		.sets = weir_shared_sets(image, 2 * WEIR_PENALTY_WAYS),
		.sets_idle = 1,
		.previous_sets = previous->penalty_sets,
		.ways = WEIR_PENALTY_WAYS,
		.keeping = "table of penalties keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	image->config.penalty_sets = weir_table_sets(image, previous, &table, diag);
}

/* ---- timed entries ---- */

/* What a hash of addresses takes from the start: a bucket for each, rounded up to a power of two. Its entries come and
 * go with what is blocked and allowed; a reload keeps the map, and so its size.
 */
static void size_timed(const struct weir_settings *settings, const struct weir_previous *previous,
		       struct weir_image *image, struct weir_diag *diag)
{
	image->timed_entries = settings->timed_entries;
	image->config.has_timed = settings->timed_entries > 0;
	if (!previous->timed_entries || !settings->timed_entries || previous->timed_entries == settings->timed_entries)
		return;
	weir_diag_warning(diag, NULL, NULL, "detach and attach again to change timedEntries",
			  "the table of timed entries keeps its %u places: a reload does not change that",
			  previous->timed_entries);
	image->timed_entries = previous->timed_entries;
}

void weir_compile_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			 struct weir_image *image, struct weir_diag *diag)
{
	static const struct weir_previous first_load;
	const struct weir_previous *before = previous ? previous : &first_load;

	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++)
		if (weir_kinds[id]->size_tables)
			weir_kinds[id]->size_tables(settings, before, image, diag);
	size_warming(before, image, diag);
	size_penalties(before, image, diag);
	size_timed(settings, before, image, diag);
}
