// SPDX-License-Identifier: GPL-2.0-only
/* How large the tables of flows are, over reloads too, and what memory is said to be needed for them. */
#include <string.h>

#include "compile_by_hand.h"

/* ---- tables of each CPU, and what the program knows of them ---- */

CLAIM(unused_flow_tables_are_one_chunk)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image;

	ruleset->settings.flows_per_cpu = 5000;
	image = build(ruleset);
	assert_int_equal(image->flows_per_cpu, 8192);
	assert_int_equal(image->config.sizes[WEIR_TABLE_NARROW_FLOWS], 2048);
	assert_int_equal(image->config.sizes[WEIR_TABLE_MEDIUM_FLOWS], WEIR_MEDIUM_SETS_PER_CHUNK);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WIDE_FLOWS], WEIR_WIDE_SETS_PER_CHUNK);
	weir_image_free(image);

	ruleset->rules[0].counts_bytes = true;
	ruleset->settings.flows_per_cpu = 1;
	image = build(ruleset);
	assert_int_equal(image->flows_per_cpu, 512);
	assert_int_equal(image->config.sizes[WEIR_TABLE_NARROW_FLOWS], WEIR_NARROW_SETS_PER_CHUNK);
	assert_int_equal(image->config.sizes[WEIR_TABLE_MEDIUM_FLOWS], 128);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WIDE_FLOWS], WEIR_WIDE_SETS_PER_CHUNK);
	weir_image_free(image);

	ruleset->rules[0].threshold_micro = 2000000001 * WEIR_MICRO;
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_MEDIUM_FLOWS], WEIR_MEDIUM_SETS_PER_CHUNK);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WIDE_FLOWS], 128);
	weir_image_free(image);
}

CLAIM(a_flow_table_in_use_keeps_its_size_over_a_reload)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset), *next = NULL;
	struct weir_previous previous = previous_of(image);
	struct weir_compile_options options = plain_options;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	options.previous = &previous;
	ruleset->settings.flows_per_cpu = 100000;
	add_rule(ruleset, 0, "bytes", 1000000)->counts_bytes = true;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "keep their 4096 flows"));
	assert_int_equal(next->config.sizes[WEIR_TABLE_NARROW_FLOWS], 1024);
	assert_int_equal(next->config.sizes[WEIR_TABLE_MEDIUM_FLOWS], 131072 / 4);
	weir_image_free(image);
	weir_image_free(next);
}

CLAIM(an_epoch_holds_the_longest_window_of_a_flow)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);

	assert_int_equal(image->config.sharers_shift, WEIR_SHARERS_SHIFT_MIN);
	weir_image_free(image);
	ruleset->rules[0].interval_ns = 86400 * WEIR_NSEC_PER_SEC;
	ruleset->rules[0].samples = 1;
	ruleset->rules[0].window = WEIR_WINDOW_STRICT;
	image = build(ruleset);
	assert_int_equal(image->config.sharers_shift, WEIR_SHARERS_SHIFT_MAX);
	assert_int_equal(image->rules[0].asks_all, 0);
	weir_image_free(image);
}

/* Cells of another epoch's length could hide a CPU that has counted. */
CLAIM(a_reload_keeps_the_epochs_and_longer_windows_do_without)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);
	uint32_t cells = image->config.sizes[WEIR_TABLE_SHARERS];

	add_rule(ruleset, 0, "hourly", 1000)->interval_ns = 3600 * WEIR_NSEC_PER_SEC;
	ruleset->settings.flows_per_cpu = 100000;
	reload(&image, ruleset, plain_options.now_ns);
	assert_int_equal(image->config.sharers_shift, WEIR_SHARERS_SHIFT_MIN);
	assert_int_equal(image->config.sizes[WEIR_TABLE_SHARERS], cells);
	assert_int_equal(image->rules[0].asks_all, 0);
	assert_int_equal(image->rules[1].asks_all, 1);
}

CLAIM(settings_and_cpus_reach_the_program)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	assert_int_equal(image->config.cpus, 2);
	assert_int_equal(image->config.drop_malformed, 1);
	assert_int_equal(image->config.drop_unsupported, 1);
	assert_int_equal(image->config.drop_non_ip, 0);
	assert_int_equal(image->config.drop_unmatched, 0);
}

/* ---- tables that all CPUs share ---- */

CLAIM(shared_tables_are_made_for_twice_the_flows_of_rules_that_need_them)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;

	ruleset->settings.flows_per_cpu = 262144;
	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_THROTTLED_FLOWS], 1);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WARMING_FLOWS], 1);
	weir_image_free(image);

	ruleset->resources[0].flow.fields = WEIR_KEY_SOURCE;
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_THROTTLED_FLOWS], 65536);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WARMING_FLOWS], 65536);
	weir_image_free(image);

	ruleset->settings.flows_per_cpu = 1;
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_THROTTLED_FLOWS], 128);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WARMING_FLOWS], 128);
	weir_image_free(image);

	/* Without a window it needs no rows: neither does the other table grow. */
	ruleset->settings.flows_per_cpu = 262144;
	ruleset->rules[1].behavior = THROTTLING;
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WIDE_FLOWS], WEIR_WIDE_SETS_PER_CHUNK);
	assert_int_equal(image->config.sizes[WEIR_TABLE_NARROW_FLOWS], WEIR_NARROW_SETS_PER_CHUNK);
	weir_image_free(image);
}

CLAIM(a_shared_table_in_use_keeps_its_size_over_a_reload)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_THROTTLED_FLOWS], 1024);
	previous = previous_of(image);
	options.previous = &previous;
	ruleset->settings.flows_per_cpu = 262144;
	add_kind(ruleset, "warm", WARM_UP, THROTTLING, CURRENT);
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(next->config.sizes[WEIR_TABLE_THROTTLED_FLOWS], 1024);
	assert_int_equal(next->config.sizes[WEIR_TABLE_WARMING_FLOWS], 65536);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "table of throttled flows keeps its 7168 places"));
	weir_image_free(image);
	weir_image_free(next);
}

/* ---- memory ---- */

CLAIM(memory_is_what_the_maps_take)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);
	struct weir_image_memory memory;

	weir_image_memory(image, 2, &memory);
	/* "2 + 2": what the kernel keeps about per-CPU memory; and four notes of four bytes to a set. */
	assert_int_equal(memory.narrow_table, 4096 * 32 * (2 + 2) + 2 * 1024 * 16);
	assert_int_equal(memory.medium_table, WEIR_CHUNK_BYTES * (2 + 2));
	assert_int_equal(memory.wide_table, WEIR_CHUNK_BYTES * (2 + 2));
	assert_int_equal(memory.lone_rows, 1024 * 128 * (2 + 2));
	/* One set of each, and the states of whole resources. */
	assert_int_equal(memory.shared, 128 + 512 + 192 + (192 + 7 * 56) + 1024 * (8 + 32 + 16 + 16 + 160) +
						WEIR_FLOW_SHARE_SETS * sizeof(struct weir_flow_share_set));
	assert_int_equal(memory.sharers, 4096 * 2 * 4);
	/* Four words for each row, the heads, and a word for each page of 64 sets. */
	assert_int_equal(memory.row_ghosts, 4096 * 4 * 8 + WEIR_ROW_GHOST_HEADS * 64 + 4096 * 4 / 8 / 64 * 8);
	assert_int_equal(memory.events, sizeof(struct weir_events));
	assert_int_equal(memory.total, memory.narrow_table + memory.medium_table + memory.wide_table + memory.sharers +
					       memory.row_ghosts + memory.shared + memory.lone_rows + memory.counters +
					       memory.top_drops + memory.events + memory.matching + memory.lists);
	assert_true(memory.matching > sizeof(struct weir_generation));
	assert_true(memory.counters > 2 * WEIR_KEY_SAMPLE_CHUNKS * WEIR_CHUNK_BYTES);
}

CLAIM(memory_grows_with_overrides_and_shared_tables)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image_memory before, after;
	struct weir_image *image = build(ruleset);

	weir_image_memory(image, 2, &before);
	weir_image_free(image);
	ruleset->rules[0].behavior = THROTTLING;
	for (uint32_t i = 0; i < 100; i++)
		add_override(&ruleset->rules[0], 4, i, 8, WEIR_MICRO);
	image = build(ruleset);
	weir_image_memory(image, 2, &after);
	assert_int_equal(after.shared - before.shared,
			 1023 * 128 + (WEIR_GHOST_HEAD(1024) + 1) * sizeof(struct weir_ghost_set));
	assert_in_range(after.matching - before.matching, 100 * 100, 100 * 200);
	weir_image_free(image);
}

CLAIM(more_cpus_than_weir_knows_are_refused)
{
	struct weir_compile_options options = plain_options;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);

	options.cpus = WEIR_CPUS_MAX + 1;
	assert_refused(ruleset, &options, "1025 possible CPUs are too many");
}

RUN_CLAIMS(NULL, NULL)
