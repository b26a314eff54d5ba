// SPDX-License-Identifier: GPL-2.0-only
/* The flow tables: which of them a load needs, and how large. */
#include "compile_parts.h"
#include "connection_counts.h"

#include <stdio.h>
#include <string.h>

/* Planned times, and warm-up per flow: the least that a table has which is used at all. Chosen, not derived. */
#define SHARED_SETS_MIN 64u

static bool is_narrow(const struct weir_rule_info *rule)
{
	return rule->storage == WEIR_STORAGE_NARROW && weir_has_window(rule);
}

static bool is_wide(const struct weir_rule_info *rule)
{
	return rule->storage == WEIR_STORAGE_WIDE && weir_has_window(rule);
}

/* One table: who keeps flows there, and what it holds. */
struct table {
	bool (*keeps)(const struct weir_rule_info *rule);
	uint32_t sets, sets_idle; /* when somebody uses it, and when nobody does */
	uint32_t previous_sets;
	uint32_t ways;		    /* of a set, as the setting counts */
	const char *keeping, *what; /* for people: "KEEPING (a number) WHAT" */
	const char *setting;
	bool is_told; /* why it keeps its size, by a table that its own is worked out from */
};

static bool any_rule(bool (*is_such)(const struct weir_rule_info *rule), const struct weir_rule_info *rules,
		     uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (rules[i].state == WEIR_SLOT_USED && is_such(&rules[i]))
			return true;
	}
	return false;
}

static bool is_needed(const struct table *table, const struct weir_image *image)
{
	return any_rule(table->keeps, image->rule_info, image->rule_slots);
}

static bool was_needed(const struct table *table, const struct weir_previous *previous)
{
	return any_rule(table->keeps, previous->rules, previous->rule_slots);
}

static void warn_of_kept(struct weir_diag *diag, const struct table *table)
{
	char hint[96];

	snprintf(hint, sizeof(hint), "detach and attach again to change %s", table->setting);
	weir_diag_warning(diag, NULL, NULL, hint, "the %s %u %s: a reload does not change that", table->keeping,
			  table->previous_sets * table->ways, table->what);
}

/*
 * Sets of one flow table. One that holds flows of a running rule keeps its size: another size would
 * need another map, and lose them. One that nobody uses gets the least a map can have.
 */
static uint32_t table_sets(const struct weir_image *image, const struct weir_previous *previous,
			   const struct table *table, struct weir_diag *diag)
{
	uint32_t sets = is_needed(table, image) ? table->sets : table->sets_idle;

	if (!table->previous_sets || !was_needed(table, previous))
		return sets;
	if (sets != table->previous_sets && sets != table->sets_idle && !table->is_told)
		warn_of_kept(diag, table);
	return table->previous_sets;
}

/* About twice as many places as one CPU keeps flows: sets fill unevenly. */
static uint32_t shared_sets(const struct weir_image *image, uint32_t ways)
{
	uint64_t wanted = 2ull * image->flows_per_cpu / ways;
	uint32_t sets = SHARED_SETS_MIN;

	while (sets < wanted && sets < 1u << 31)
		sets *= 2;
	return sets;
}

/* ---- who has seen a flow ---- */

static bool keeps_windows(const struct weir_rule_info *rule)
{
	return is_narrow(rule) || is_wide(rule);
}

static bool has_flows(const struct weir_rule *rule)
{
	return rule->judging == WEIR_JUDGING_WINDOW && rule->storage != WEIR_STORAGE_LONE;
}

/* How far a rule's window looks back. */
static uint64_t window_ns(const struct weir_rule *rule)
{
	return rule->window_cells * rule->bucket_ns;
}

/* The shortest epoch that no window of a flow looks back further than. */
static uint32_t presence_shift(const struct weir_image *image)
{
	uint32_t shift = WEIR_PRESENCE_SHIFT_MIN, i;

	for (i = 0; i < image->rule_count; i++)
		while (has_flows(&image->rules[i]) && window_ns(&image->rules[i]) > 1ull << shift)
			shift++;
	return shift;
}

/*
 * The table of who has seen a flow. While rows of a running rule depend on it, it keeps its size and the length
 * of its epochs; a rule that a reload brings and that looks back further than these does without. So do meters,
 * which count what has passed and take no lease.
 */
static void configure_presence(const struct weir_previous *previous, struct weir_image *image)
{
	uint64_t wanted = (uint64_t)image->flows_per_cpu * image->config.cpus;
	struct weir_config *config = &image->config;
	uint32_t i;

	config->presence_cells = WEIR_PRESENCE_LINE_CELLS;
	config->presence_shift = presence_shift(image);
	while (any_rule(keeps_windows, image->rule_info, image->rule_slots) && config->presence_cells < wanted &&
	       config->presence_cells < 1u << 31)
		config->presence_cells *= 2;
	if (previous->presence_cells && any_rule(keeps_windows, previous->rules, previous->rule_slots)) {
		config->presence_cells = previous->presence_cells;
		config->presence_shift = previous->presence_shift;
	}
	for (i = 0; i < image->rule_count + image->meter_count; i++)
		image->rules[i].asks_all =
			i >= image->rule_count || window_ns(&image->rules[i]) > 1ull << config->presence_shift;
}

/* ---- connections ---- */

/* The least power of two that is at least places / places_of_set. */
static uint32_t connection_sets(uint32_t places, uint32_t places_of_set)
{
	uint32_t sets = 1;

	while ((uint64_t)sets * places_of_set < places)
		sets *= 2;
	return sets;
}

static bool has_flows_of_connections(const struct weir_rule_info *rule)
{
	return weir_has_connections(rule) && rule->identity.key_fields;
}

/*
 * While a rule's connections are kept, so are the time-outs that they count their silence by. They know the flow they
 * are counted in by its place: as long as there may be such, its table stays too. Who has no rule for connections any
 * more does not ask for other time-outs.
 */
static void keep_connections(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	uint64_t *timeout_ms = image->connection_timeout_ms;

	if (image->config.has_connections &&
	    memcmp(timeout_ms, previous->connection_timeout_ms, sizeof(image->connection_timeout_ms)))
		weir_diag_warning(diag, NULL, NULL, "detach and attach again to change them",
				  "the time-outs of connections stay as they are: a reload does not change them");
	memcpy(timeout_ms, previous->connection_timeout_ms, sizeof(image->connection_timeout_ms));
	if (previous->connection_flow_sets)
		image->config.connection_flow_sets = previous->connection_flow_sets;
}

static void configure_connections(const struct weir_settings *settings, const struct weir_previous *previous,
				  struct weir_image *image, struct weir_diag *diag)
{
	const struct table connections = {
		.keeps = weir_has_connections,
		.sets = connection_sets(settings->connections, WEIR_CONNECTIONS_PER_SET),
		.previous_sets = previous->connection_sets,
		.ways = WEIR_CONNECTIONS_PER_SET,
		.keeping = "table of connections keeps its",
		.what = "places",
		.setting = "connections",
	};
	const struct table flows = {
		.keeps = has_flows_of_connections,
		.sets = connection_sets(settings->connection_flows, WEIR_CONNECTION_FLOWS_PER_SET),
		.previous_sets = previous->connection_flow_sets,
		.ways = WEIR_CONNECTION_FLOWS_PER_SET,
		.keeping = "table of flows with connections keeps its",
		.what = "places",
		.setting = "connectionFlows",
		.is_told = settings->derives_connection_flows && connections.sets != connections.previous_sets,
	};
	struct weir_config *config = &image->config;

	config->connection_sets = table_sets(image, previous, &connections, diag);
	config->connection_flow_sets = table_sets(image, previous, &flows, diag);
	memcpy(image->connection_timeout_ms, settings->connection_timeout_ms, sizeof(image->connection_timeout_ms));
	if (previous->connection_sets && was_needed(&connections, previous))
		keep_connections(previous, image, diag);
	for (unsigned int i = 0; i < WEIR_CONNECTION_CLASSES; i++)
		config->connection_step_ns[i] = weir_connection_step_ns(image->connection_timeout_ms[i]);
}

static void configure_windows(const struct weir_previous *before, struct weir_image *image, struct weir_diag *diag)
{
	const struct table narrow = {
		.keeps = is_narrow,
		.sets = image->flows_per_cpu / WEIR_WAYS,
		.sets_idle = WEIR_NARROW_SETS_PER_CHUNK,
		.previous_sets = before->narrow_sets,
		.ways = WEIR_WAYS,
		.keeping = "flow tables keep their",
		.what = "flows per CPU",
		.setting = "flowsPerCpu",
	};
	struct table wide = narrow;

	wide.keeps = is_wide;
	wide.sets_idle = WEIR_WIDE_SETS_PER_CHUNK;
	wide.previous_sets = before->wide_sets;
	image->config.narrow_sets = table_sets(image, before, &narrow, diag);
	image->config.wide_sets = table_sets(image, before, &wide, diag);
}

static void configure_shared(const struct weir_previous *before, struct weir_image *image, struct weir_diag *diag)
{
	const struct table throttle = {
		.keeps = weir_throttles_flows,
		.sets = shared_sets(image, WEIR_THROTTLE_WAYS),
		.sets_idle = 1,
		.previous_sets = before->throttle_sets,
		.ways = WEIR_THROTTLE_WAYS,
		.keeping = "table of throttled flows keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};
	const struct table warming = {
		.keeps = weir_warms_flows,
		.sets = shared_sets(image, WEIR_WARMING_WAYS),
		.sets_idle = 1,
		.previous_sets = before->warming_sets,
		.ways = WEIR_WARMING_WAYS,
		.keeping = "table of warming flows keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	image->config.throttle_sets = table_sets(image, before, &throttle, diag);
	image->config.warming_sets = table_sets(image, before, &warming, diag);
}

void weir_compile_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			 struct weir_image *image, struct weir_diag *diag)
{
	static const struct weir_previous first_load;
	const struct weir_previous *before = previous ? previous : &first_load;

	configure_windows(before, image, diag);
	configure_shared(before, image, diag);
	configure_presence(before, image);
	configure_connections(settings, before, image, diag);
}
