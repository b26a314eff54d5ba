// SPDX-License-Identifier: GPL-2.0-only
#include "compile.h"

#include "compile_parts.h"
#include "util.h"

static uint32_t round_up_power_of_two(uint64_t value)
{
	uint64_t power = 1;

	while (power < value && power < 1u << 31)
		power *= 2;
	return (uint32_t)power;
}

static int check_capacity(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
			  struct weir_diag *diag)
{
	size_t errors_before = diag->errors;

	if (ruleset->resource_count > WEIR_RESOURCES_MAX)
		weir_diag_error(diag, &ruleset->resources[WEIR_RESOURCES_MAX].place, NULL,
				"let one resource list several prefixes or ports",
				"%zu resources are too many: at most %d", ruleset->resource_count, WEIR_RESOURCES_MAX);
	if (ruleset->rule_count > WEIR_RULES_MAX)
		weir_diag_error(diag, &ruleset->rules[WEIR_RULES_MAX].place, NULL, NULL,
				"%zu rules are too many: at most %d", ruleset->rule_count, WEIR_RULES_MAX);
	if (options->cpus > WEIR_CPUS_MAX)
		weir_diag_error(diag, NULL, NULL, "boot with possible_cpus=1024 or fewer",
				"%u possible CPUs are too many: at most %d", options->cpus, WEIR_CPUS_MAX);
	return diag->errors > errors_before ? -EINVAL : 0;
}

/* Each resource's rules, ascending. */
static int list_rules(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag)
{
	struct weir_resource *resource;
	bool is_wrong = false;
	size_t i;

	image->resource_count = ruleset->resource_count;
	image->rule_count = ruleset->rule_count;
	image->resources = calloc(ruleset->resource_count + 1, sizeof(*image->resources));
	if (!image->resources)
		return weir_compile_no_memory(diag);
	for (i = 0; i < ruleset->rule_count; i++) {
		resource = &image->resources[ruleset->rules[i].resource];
		if (resource->rule_count < WEIR_PACKET_RULES_MAX) {
			resource->rule[resource->rule_count++] = i;
			continue;
		}
		weir_diag_error(diag, &ruleset->rules[i].place, NULL, NULL,
				"rule '%s' is one too many for resource '%s': at most %d rules may meet on one packet",
				ruleset->rules[i].name, ruleset->resources[ruleset->rules[i].resource].name,
				WEIR_PACKET_RULES_MAX);
		is_wrong = true;
	}
	return is_wrong ? -EINVAL : 0;
}

static bool has_storage(const struct weir_rule_info *rules, uint32_t count, enum weir_storage storage)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (rules[i].state == WEIR_SLOT_USED && rules[i].storage == storage)
			return true;
	}
	return false;
}

/*
 * Sets of one flow table. One that holds windows of a running rule keeps its size: another size would
 * need another map, and lose them. One that nobody uses gets the least a map can have.
 */
static uint32_t table_sets(const struct weir_image *image, const struct weir_previous *previous,
			   enum weir_storage storage, uint32_t previous_sets, uint32_t chunk_sets,
			   struct weir_diag *diag)
{
	uint32_t sets = chunk_sets;

	if (has_storage(image->rule_info, image->rule_slots, storage))
		sets = image->flows_per_cpu / WEIR_WAYS;
	if (!previous || !previous_sets || !has_storage(previous->rules, previous->rule_slots, storage))
		return sets;
	if (sets != previous_sets && sets != chunk_sets)
		weir_diag_warning(diag, NULL, NULL, "detach and attach again to change flowsPerCpu",
				  "the flow tables keep their %u flows per CPU: a reload does not change them",
				  previous_sets * WEIR_WAYS);
	return previous_sets;
}

static void configure(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		      struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_previous *previous = options->previous;
	const struct weir_settings *settings = &ruleset->settings;
	struct weir_config *config = &image->config;
	uint32_t flows_min = WEIR_NARROW_SETS_PER_CHUNK * WEIR_WAYS;

	image->flows_per_cpu =
		round_up_power_of_two(settings->flows_per_cpu > flows_min ? settings->flows_per_cpu : flows_min);
	config->cpus = options->cpus;
	config->resource_count = image->resource_count;
	config->narrow_sets = table_sets(image, previous, WEIR_STORAGE_NARROW, previous ? previous->narrow_sets : 0,
					 WEIR_NARROW_SETS_PER_CHUNK, diag);
	config->wide_sets = table_sets(image, previous, WEIR_STORAGE_WIDE, previous ? previous->wide_sets : 0,
				       WEIR_WIDE_SETS_PER_CHUNK, diag);
	config->drop_malformed = settings->drop_malformed;
	config->drop_unsupported = settings->drop_unsupported;
	config->drop_non_ip = settings->drop_non_ip;
	config->drop_unmatched = settings->drop_unmatched;
}

int weir_image_build(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		     struct weir_image **ret_image, struct weir_diag *diag)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	int err;

	err = check_capacity(ruleset, options, diag);
	if (err)
		return err;
	image = calloc(1, sizeof(*image));
	if (!image)
		return weir_compile_no_memory(diag);
	err = list_rules(ruleset, image, diag);
	if (err)
		return err;
	err = weir_compile_match(ruleset, options, image, diag);
	if (err)
		return err;
	err = weir_compile_meet(ruleset, image, diag);
	if (err)
		return err;
	err = weir_compile_slots(ruleset, options, image, diag);
	if (err)
		return err;
	configure(ruleset, options, image, diag);
	err = weir_compile_lists(ruleset, &image->config, &image->lists, diag);
	if (err)
		return err;

	*ret_image = TAKE_PTR(image);
	return 0;
}

/* What a prefix takes in the kernel's trie: its key and value, an inner node for every other, and the
 * allocator's rounding. Chosen, not derived.
 */
#define PREFIX_BYTES 64

void weir_image_memory(const struct weir_image *image, uint32_t cpus, struct weir_image_memory *ret_memory)
{
	struct weir_image_memory memory = {};

	memory.narrow_table = (uint64_t)image->config.narrow_sets * WEIR_WAYS * sizeof(struct weir_narrow_row) * cpus;
	memory.wide_table = (uint64_t)image->config.wide_sets * WEIR_WAYS * sizeof(struct weir_wide_row) * cpus;
	memory.lone_rows = (uint64_t)image->rule_slots * sizeof(struct weir_wide_row) * cpus;
	memory.counters = (uint64_t)image->rule_slots * sizeof(struct weir_rule_counters) +
			  (uint64_t)image->resource_slots * sizeof(struct weir_resource_counters) +
			  sizeof(struct weir_totals) + WEIR_TIMINGS_MAX * sizeof(struct weir_clock) +
			  WEIR_TALKER_CHUNKS * sizeof(struct weir_talker_chunk);
	memory.counters *= cpus;
	/* The tables of a generation have room for the largest load, whatever is in them. */
	memory.matching = sizeof(struct weir_generation) + (uint64_t)image->vector_count * sizeof(struct weir_vector) +
			  ((uint64_t)image->source_prefix_count + image->destination_prefix_count) * PREFIX_BYTES +
			  (uint64_t)image->rule_count * sizeof(*image->pushed) +
			  (uint64_t)image->rule_slots * sizeof(struct weir_rule_info) +
			  (uint64_t)image->resource_slots * sizeof(struct weir_resource_info);
	memory.lists = weir_lists_memory(&image->lists);
	memory.total = memory.narrow_table + memory.wide_table + memory.lone_rows + memory.counters + memory.matching +
		       memory.lists;
	*ret_memory = memory;
}

void weir_image_free(struct weir_image *image)
{
	if (!image)
		return;
	free(image->classes);
	free(image->vectors);
	free(image->rules);
	free(image->pushed);
	free(image->overrides);
	free(image->resources);
	free(image->source_prefixes);
	free(image->destination_prefixes);
	free(image->interfaces);
	weir_lists_free(&image->lists);
	free(image->rule_info);
	free(image->resource_info);
	free(image->timings);
	free(image->fresh_rule_slots);
	free(image->fresh_resource_slots);
	free(image);
}
