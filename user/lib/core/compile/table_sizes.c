// SPDX-License-Identifier: GPL-2.0-only
/* The flow tables: which of them a load needs, and their sizes. Each kind sizes its own tables; this file has what all
 * kinds share.
 */
#include "compile/build_steps.h"

#include <stdio.h>

/* TATs, and warm-up per flow: the minimum size of a table that is in use. Chosen, not derived. */
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

void weir_size_table(struct weir_image *image, const struct weir_previous *previous, const struct weir_sizing *sizing,
		     struct weir_diag *diag)
{
	const bool is_needed = weir_any_rule(sizing->keeps, image->rule_info, image->rule_slots);
	const uint32_t sets = is_needed ? sizing->sets : sizing->sets_idle;
	const uint32_t before = previous->sizes[sizing->table];
	const bool is_kept = before && weir_any_rule(sizing->keeps, previous->rules, previous->rule_slots);

	if (is_kept && sets != before && sets != sizing->sets_idle && !sizing->is_reported) {
		char hint[96];

		snprintf(hint, sizeof(hint), "detach and attach again to change %s", sizing->setting);
		weir_diag_warning(diag, NULL, NULL, hint, "the %s %u %s: a reload does not change that",
				  sizing->keeping, before * sizing->ways, sizing->what);
	}
	image->config.sizes[sizing->table] = is_kept ? before : sets;
}

uint32_t weir_sets_for(uint32_t places, uint32_t places_of_set)
{
	uint32_t sets = 1;

	while ((uint64_t)sets * places_of_set < places)
		sets *= 2;
	return sets;
}

/* 1.75 times as many places as the number of flows per CPU, since sets fill unevenly. */
uint32_t weir_shared_sets(const struct weir_image *image)
{
	uint64_t wanted = 2ull * image->flows_per_cpu / (WEIR_FLOW_WAYS + 1);
	uint32_t sets = SHARED_SETS_MIN;

	while (sets < wanted && sets < 1u << 31)
		sets *= 2;
	return sets;
}

/* WarmUp is not a kind: rules of several kinds can warm up. */
static void size_warming(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing warming = {
		.keeps = weir_warms_flows,
		.sets = weir_shared_sets(image),
		.sets_idle = 1,
		.table = WEIR_TABLE_WARMING_FLOWS,
		.ways = WEIR_FLOW_WAYS,
		.keeping = "table of warming flows keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	weir_size_table(image, previous, &warming, diag);
}

/* ---- penalties, which are no kind either ---- */

int weir_penalties_check_span(uint64_t span_ns, struct weir_diag *diag)
{
	const uint64_t penalty_ns_max = UINT32_MAX * 1000000ull; /* blockDurationMaxInMs */

	/* The words of penalties hold enough bits of the clock to distinguish two times that are less than half a wrap
	 * apart.
	 */
	if (span_ns < (WEIR_LAST_MASK >> 1) - 2 * penalty_ns_max)
		return 0;
	weir_diag_error(diag, NULL, NULL, "split the capture there, and replay each part by itself",
			"blockDurationInMs can look back 4.2 years, but these packets are further apart");
	return -EINVAL;
}

static void size_penalties(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing penalties = {
		.keeps = weir_penalises_flows,
		.sets = weir_shared_sets(image),
		.sets_idle = 1,
		.table = WEIR_TABLE_PENALISED_FLOWS,
		.ways = WEIR_FLOW_WAYS,
		.keeping = "table of penalties keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	weir_size_table(image, previous, &penalties, diag);
	image->config.sizes[WEIR_TABLE_PENALTY_KEYS] = image->config.sizes[WEIR_TABLE_PENALISED_FLOWS] * WEIR_FLOW_WAYS;
}

/* ---- ghosts ---- */

static bool leaves_two_ghosts(const struct weir_rule_info *rule)
{
	return weir_penalises_flows(rule) && (weir_has_throttle_flows(rule) || weir_has_tokens_flows(rule));
}

/* Space for four flows for each flow with a slot. */
static void size_ghosts(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	const uint32_t each = weir_any_rule(leaves_two_ghosts, image->rule_info, image->rule_slots) ? 2 : 1;
	const struct weir_sizing ghosts = {
		.table = WEIR_TABLE_GHOSTS,
		.keeps = weir_leaves_ghosts,
		.sets = weir_shared_sets(image) * each,
		.is_reported = true,
	};

	weir_size_table(image, previous, &ghosts, diag);
}

/* The sizes of tables that every load has; kinds size the others. */
static void size_fixed(const struct weir_image *image, __u32 sizes[WEIR_TABLE_COUNT])
{
	const uint32_t rules = image->rule_slots, resources = image->resource_slots;

#define TABLE(identifier, map, map_type, key, value, flags, row, bytes, version, size, ...)                            \
	sizes[WEIR_TABLE_##identifier] = size;
#include "weir_tables.def"
#undef TABLE
	sizes[WEIR_TABLE_THRESHOLDS] = image->rule_count;
	if (image->config.counts_flow_drops)
		sizes[WEIR_TABLE_TOP_DROPS] = image->config.cpus * WEIR_TOP_DROPS_SETS;
	if (image->config.answers) {
		sizes[WEIR_TABLE_ANSWERS] = 1;
		sizes[WEIR_TABLE_RULE_ANSWERS] = rules;
		sizes[WEIR_TABLE_OWN_ADDRESSES] = WEIR_OWN_ADDRESSES_MAX;
	}
	sizes[WEIR_TABLE_TOP_DROP_KEYS] = sizes[WEIR_TABLE_TOP_DROPS] * WEIR_TOP_DROPS_WAYS;
}

void weir_compile_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			 struct weir_image *image, struct weir_diag *diag)
{
	static const struct weir_previous first_load;
	const struct weir_previous *before = previous ? previous : &first_load;

	size_fixed(image, image->config.sizes);
	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++)
		if (weir_kinds[id]->size_tables)
			weir_kinds[id]->size_tables(settings, before, image, diag);
	size_warming(before, image, diag);
	size_penalties(before, image, diag);
	size_ghosts(before, image, diag);
	image->config.sizes[WEIR_TABLE_TIMED_ADDRESSES] = settings->timed_entries;
	image->config.has_timed = settings->timed_entries > 0;
}

/* ---- memory ---- */

uint32_t weir_table_entries(enum weir_table_id table, uint32_t size)
{
	const uint32_t n = size;

	switch (table) {
#define TABLE(identifier, map, map_type, key, value, flags, row, bytes, version, rule, entries, ...)                   \
	case WEIR_TABLE_##identifier:                                                                                  \
		return (entries) ?: 1;
#include "weir_tables.def"
#undef TABLE
	default:
		return 1;
	}
}

/*
 * For every four bytes of per-CPU memory, the kernel records in a pointer which cgroup is charged, once for all CPUs
 * (obj_exts in mm/percpu.c, since Linux 5.9; not when booted with cgroup.memory=nokmem). This takes as much memory as
 * two more CPUs.
 */
#define NOTED_CPUS 2u

static uint64_t percpu_memory(uint64_t bytes, uint32_t cpus)
{
	return bytes * (cpus + NOTED_CPUS);
}

enum map_type { MAP_ARRAY, MAP_PERCPU_ARRAY, MAP_HASH, MAP_LPM_TRIE };

static const struct {
	enum map_type type;
	uint32_t value_bytes;
	size_t part; /* its field in struct weir_image_memory */
} tables[WEIR_TABLE_COUNT] = {
#define TABLE(identifier, map, map_type, key, value, flags, row, bytes, version, rule, entries, memory, ...)           \
	[WEIR_TABLE_##identifier] = {MAP_##map_type, sizeof(value), offsetof(struct weir_image_memory, memory)},
#include "weir_tables.def"
#undef TABLE
};

/* The kernel's hash has a bucket of 16 bytes for each possible entry, rounded up to a power of two. Its entries, and
 * those of a trie, are allocated as they are used.
 */
static uint64_t map_memory(enum map_type type, uint64_t entries, uint32_t value_bytes, uint32_t cpus)
{
	switch (type) {
	case MAP_ARRAY:
		return entries * value_bytes;
	case MAP_PERCPU_ARRAY:
		return percpu_memory(entries * value_bytes, cpus);
	case MAP_HASH:
		return 16 * (uint64_t)weir_round_up_power_of_two(entries);
	default:
		return 0;
	}
}

uint64_t weir_table_memory(const struct weir_image *image, enum weir_table_id table, uint32_t cpus,
			   struct weir_image_memory *memory)
{
	const uint32_t size = image->config.sizes[table];
	uint64_t bytes = 0;

	if (size)
		bytes = map_memory(tables[table].type, weir_table_entries(table, size), tables[table].value_bytes,
				   cpus);
	*(uint64_t *)((char *)memory + tables[table].part) += bytes;
	return bytes;
}

/* The memory of an override in the kernel's trie: its key and value, an inner node for every other entry, and the
 * allocator's rounding. Chosen, not derived.
 */
#define OVERRIDE_BYTES 128

void weir_image_memory(const struct weir_image *image, uint32_t cpus, struct weir_image_memory *ret_memory)
{
	struct weir_image_memory memory = {};

	for (int table = 0; table < WEIR_TABLE_COUNT; table++)
		weir_table_memory(image, table, cpus, &memory);
	memory.narrow_table += (uint64_t)weir_image_note_sets(image) * WEIR_NOTES_BYTES;
	/* The program's own per-CPU memory. */
	memory.counters += percpu_memory((uint64_t)WEIR_WINDOW_SPECS_MAX * WEIR_CLOCK_BYTES, cpus);
	/* The tables of a generation have space for the largest load, whatever they contain. */
	memory.matching += sizeof(struct weir_generation) + (uint64_t)image->vector_count * sizeof(struct weir_vector) +
			   (uint64_t)image->prefix_node_count * sizeof(struct weir_prefix_node) +
			   (image->labels ? weir_labels_bytes(image->labels->count) : 0) +
			   (uint64_t)image->override_count * OVERRIDE_BYTES +
			   (uint64_t)weir_image_interface_entries(image) * 2 * sizeof(__u64);
	memory.lists += weir_lists_memory(&image->lists);
	memory.total = memory.narrow_table + memory.medium_table + memory.wide_table + memory.sharers +
		       memory.row_ghosts + memory.shared + memory.connections + memory.breakers + memory.lone_rows +
		       memory.counters + memory.top_drops + memory.events + memory.matching + memory.lists;
	*ret_memory = memory;
}
