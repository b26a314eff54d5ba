// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a rule becomes: its storage, window spec and evaluating, what the program and the controller receive of it, and
 * its overrides.
 */
#include <arpa/inet.h>
#include <string.h>

#include "compile_by_hand.h"
#include "weir_emission.h"

/* ---- storage and window spec ---- */

CLAIM(a_rule_is_written_as_the_program_reads_it)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_ruleset_rule *rule;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_flow *flow;

	add_resource(ruleset, "first", 0);
	add_resource(ruleset, "subnets", WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION_PORT);
	flow = &ruleset->resources[1].flow;
	flow->source_bits[0] = 20, flow->source_bits[1] = 56;
	flow->destination_bits[0] = 32;
	rule = add_rule(ruleset, 1, "bytes", 0);
	rule->threshold_micro = 2900000;
	rule->window = WEIR_WINDOW_SMOOTH;
	rule->samples = 5;
	rule->counts_bytes = rule->observes = true;
	image = build(ruleset);

	assert_int_equal(image->rules[0].bucket_ns, SECOND / 5);
	assert_int_equal(image->rules[0].base_bucket, 5000 - 16);
	assert_int_equal(image->rules[0].resource, 1);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_MEDIUM);
	assert_int_equal(image->rules[0].window, WEIR_WINDOW_SMOOTH);
	assert_int_equal(image->rules[0].window_cells, 6);
	assert_int_equal(image->rules[0].counts_bytes, 1);
	assert_int_equal(image->rules[0].observes, 1);
	assert_int_equal(image->rules[0].key_fields, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION_PORT);
	assert_int_equal(image->rules[0].source_mask4, htonl(0xfffff000));
	assert_int_equal(image->rules[0].source_mask6[0], htonl(0xffffffff));
	assert_int_equal(image->rules[0].source_mask6[1], htonl(0xffffff00));
	assert_int_equal(image->rules[0].source_mask6[2], 0);
	/* Not in the key, whatever the lengths say. */
	assert_int_equal(image->rules[0].destination_mask4, 0);
	/* 2.9 admits 2. */
	assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(2, 1));
	assert_int_equal(image->rule_info[0].threshold_micro, 2900000);
	assert_int_equal(image->rule_info[0].threshold_word, WEIR_THRESHOLD_WORD(2, 1));
	assert_string_equal(image->rule_info[0].name, "bytes");
	assert_string_equal(image->rule_info[0].resource_name, "subnets");
	assert_int_equal(image->rule_info[0].resource_slot, image->resources[1].slot);
	assert_true(image->fresh_rule_slots[0]);
	assert_false(image->fresh_rule_slots[1]);
	assert_true(image->fresh_resource_slots[1]);
}

static enum weir_storage storage_of(uint64_t threshold_micro, uint64_t interval_ns, uint32_t samples, bool counts_bytes,
				    uint32_t key_fields, uint64_t span_ns)
{
	struct weir_compile_options options = plain_options;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_ruleset_rule *rule;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	enum weir_storage storage;

	options.span_ns = span_ns;
	add_resource(ruleset, "r", key_fields);
	rule = add_rule(ruleset, 0, "rule", 0);
	rule->threshold_micro = threshold_micro;
	rule->interval_ns = interval_ns;
	rule->samples = samples;
	rule->counts_bytes = counts_bytes;
	image = build_with(ruleset, &options);
	storage = image->rules[0].storage;
	assert_int_equal(image->rule_info[0].storage, storage);
	return storage;
}

CLAIM(storage_is_narrow_only_for_small_packet_limits_of_flows)
{
	uint64_t limit = 32000 * WEIR_MICRO;

	assert_int_equal(storage_of(limit, SECOND, 10, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit + WEIR_MICRO - 1, SECOND, 10, false, WEIR_KEY_SOURCE, 0),
			 WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit + WEIR_MICRO, SECOND, 10, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_MEDIUM);
	assert_int_equal(storage_of(limit, SECOND, 10, true, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_MEDIUM);
	assert_int_equal(storage_of(limit, SECOND, 10, false, 0, 0), WEIR_STORAGE_LONE);
	assert_int_equal(storage_of(limit, 50 * MS, 1, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit, 50 * MS - MS / 10, 1, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_WIDE);
	/* 2^32 buckets of 50 ms do not fit into 32 bits. */
	assert_int_equal(storage_of(limit, 50 * MS, 1, false, WEIR_KEY_SOURCE, (50 * MS << 32) - 1),
			 WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit, 50 * MS, 1, false, WEIR_KEY_SOURCE, 50 * MS << 32), WEIR_STORAGE_WIDE);
}

/* Of hosts that share an AVG_LOCAL threshold one may have it as often as there are hosts. */
CLAIM(storage_of_a_threshold_of_each_host_has_room_for_a_thousand_hosts)
{
	static const struct {
		enum weir_cluster cluster;
		uint64_t units;
		enum weir_storage storage;
	} cases[] = {
		{WEIR_CLUSTER_AVG_LOCAL, 2000000, WEIR_STORAGE_MEDIUM},
		{WEIR_CLUSTER_AVG_LOCAL, 2000001, WEIR_STORAGE_WIDE},
		{WEIR_CLUSTER_GLOBAL, 2000000000, WEIR_STORAGE_MEDIUM},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
		struct weir_ruleset_rule *rule;
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;

		add_resource(ruleset, "r", WEIR_KEY_SOURCE);
		rule = add_rule(ruleset, 0, "rule", 0);
		rule->threshold_micro = cases[i].units * WEIR_MICRO;
		rule->interval_ns = SECOND;
		rule->samples = 10;
		rule->cluster = cases[i].cluster;
		image = build_with(ruleset, &plain_options);
		assert_int_equal(image->rules[0].storage, cases[i].storage);
	}
}

CLAIM(storage_is_medium_up_to_2000_million_units_of_flows)
{
	uint64_t limit = 2000000000 * WEIR_MICRO;

	for (int counts_bytes = 0; counts_bytes <= 1; counts_bytes++) {
		assert_int_equal(storage_of(limit, SECOND, 10, counts_bytes, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_MEDIUM);
		assert_int_equal(storage_of(limit + WEIR_MICRO, SECOND, 10, counts_bytes, WEIR_KEY_SOURCE, 0),
				 WEIR_STORAGE_WIDE);
		assert_int_equal(storage_of(limit, SECOND, 10, counts_bytes, 0, 0), WEIR_STORAGE_LONE);
		assert_int_equal(storage_of(limit, 50 * MS, 1, counts_bytes, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_MEDIUM);
		assert_int_equal(storage_of(limit, 50 * MS - MS / 10, 1, counts_bytes, WEIR_KEY_SOURCE, 0),
				 WEIR_STORAGE_WIDE);
	}
}

/* As memory allows, it may be as much as at little memory in use. */
CLAIM(storage_goes_by_the_largest_threshold_that_memory_allows)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_ruleset_rule *rule = &ruleset->rules[0];
	struct weir_image *image;

	rule->strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	rule->memory = (struct weir_memory_adaptive){2000000000, 10, 1, 2};
	image = build(ruleset);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_MEDIUM);
	weir_image_free(image);
	rule->memory.low_units++;
	image = build(ruleset);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_WIDE);
	weir_image_free(image);
}

/* Those with the smallest rows first, whatever their order. */
CLAIM(medium_rows_take_the_window_specs_that_narrow_ones_leave)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;

	add_resource(ruleset, "bytes", WEIR_KEY_SOURCE)->families = 2;
	add_resource(ruleset, "packets", WEIR_KEY_SOURCE)->families = 1;
	for (uint32_t i = 0; i < 8; i++) {
		struct weir_ruleset_rule *rule = add_rule(ruleset, 0, "bytes", 1000000);

		rule->interval_ns = (i + 1) * SECOND;
		rule->counts_bytes = true;
	}
	for (uint32_t i = 0; i < 8; i++)
		add_rule(ruleset, 1, "packets", 10)->interval_ns = (i + 2) * SECOND;
	image = build(ruleset);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(image->rules[i].storage, WEIR_STORAGE_MEDIUM);
	assert_int_equal(image->rules[0].spec, 8); /* the others share theirs with the packets */
	assert_int_equal(image->rules[1].spec, 0);
	weir_image_free(image);

	for (uint32_t i = 8; i < 16; i++)
		ruleset->rules[i].interval_ns = (i + 1000) * SECOND;
	for (uint32_t i = 0; i < 8; i++)
		ruleset->rules[i].interval_ns = (2 * i + 1) * SECOND;
	add_rule(ruleset, 0, "more", 1000000)->counts_bytes = true;
	ruleset->rules[16].interval_ns = 100 * SECOND;
	image = build(ruleset);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(image->rules[i].storage, WEIR_STORAGE_MEDIUM);
	assert_int_equal(image->rules[16].storage, WEIR_STORAGE_WIDE);
	weir_image_free(image);
}

CLAIM(narrow_window_specs_go_to_rules_that_can_use_them)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;

	add_resource(ruleset, "lone", 0);
	add_resource(ruleset, "keyed", WEIR_KEY_SOURCE);
	add_resource(ruleset, "keyed-too", WEIR_KEY_SOURCE)->families = 1;
	ruleset->resources[1].match.families = 2;
	for (uint32_t i = 0; i < 5; i++)
		add_rule(ruleset, 0, "lone", 10)->interval_ns = (i + 1) * 100 * SECOND;
	for (uint32_t i = 0; i < 10; i++)
		add_rule(ruleset, 1, "first", 10)->interval_ns = (i + 1) * SECOND;
	for (uint32_t i = 0; i < 10; i++)
		add_rule(ruleset, 2, "second", 10)->interval_ns = (i + 4) * SECOND;
	image = build(ruleset);
	/* Intervals of 1 to 13 s are 13 window specs; those of the rules that come first but need no number go after.
	 */
	for (uint32_t i = 5; i < 25; i++)
		assert_int_equal(image->rules[i].storage, WEIR_STORAGE_NARROW);
	assert_int_equal(image->rules[15].spec, image->rules[8].spec);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(image->rules[i].spec, 13 + i);
	assert_int_equal(image->spec_count, 18);
	weir_image_free(image);

	/* Four more: the last rule is the seventeenth to ask. */
	for (uint32_t i = 15; i < 19; i++)
		ruleset->rules[i].interval_ns = (1000 + i) * SECOND;
	image = build(ruleset);
	for (uint32_t i = 5; i < 24; i++)
		assert_int_equal(image->rules[i].storage, WEIR_STORAGE_NARROW);
	assert_int_equal(image->rules[24].storage, WEIR_STORAGE_WIDE);
	assert_true(image->rules[24].spec >= WEIR_SPECS_NARROW);
	assert_int_equal(image->spec_count, 22);
	weir_image_free(image);
}

CLAIM(rules_share_a_window_spec_only_with_the_same_buckets_and_window)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_rule(ruleset, 0, "same", 99);
	add_rule(ruleset, 0, "strict", 20)->window = WEIR_WINDOW_STRICT;
	add_rule(ruleset, 0, "smooth", 20)->window = WEIR_WINDOW_SMOOTH;
	add_rule(ruleset, 0, "shorter", 20)->samples = 5;
	ruleset->rules[4].interval_ns = SECOND / 2;
	image = build(ruleset);
	assert_int_equal(image->spec_count, 4);
	assert_int_equal(image->rules[1].spec, image->rules[0].spec);
	assert_int_equal(image->specs[image->rules[2].spec].window, WEIR_WINDOW_STRICT);
	assert_int_equal(image->specs[image->rules[3].spec].window, WEIR_WINDOW_SMOOTH);
	assert_int_equal(image->specs[image->rules[4].spec].window_cells, 5);
}

CLAIM(a_young_clock_counts_buckets_from_zero)
{
	struct weir_compile_options options = plain_options;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image;

	options.now_ns = 16 * SECOND / 10;
	image = build_with(ruleset, &options);
	assert_int_equal(image->specs[0].base_bucket, 0);
	weir_image_free(image);
	options.now_ns = 17 * SECOND / 10;
	image = build_with(ruleset, &options);
	assert_int_equal(image->specs[0].base_bucket, 1);
	assert_int_equal(image->rules[0].base_bucket, 1);
	weir_image_free(image);
}

CLAIM(more_than_1024_window_specs_are_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	char name[32];

	for (uint32_t i = 0; i < 1025; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		add_address(add_resource(ruleset, name, WEIR_KEY_SOURCE), i, 32);
		if (i == 1024) {
			image = build(ruleset);
			assert_int_equal(image->spec_count, 1024);
			weir_image_free(image);
		}
		add_rule(ruleset, i, name, 10)->interval_ns = (i + 1) * SECOND;
	}
	assert_refused(ruleset, &plain_options, "rule 'r1024' needs one more kind of window");
}

/* ---- strategy, behaviour, relation ---- */

CLAIM(each_combination_is_evaluated_as_semantics_says)
{
	/* Under one without a key, one with a key and a reference without, and one with the same key. */
	static const struct {
		enum weir_strategy strategy;
		enum weir_behavior behavior;
		enum weir_relation relation;
		enum weir_kind_id kind;
		bool moves[3], warms_flows[3];
		enum weir_storage storage[3];
		int own_shadows, ref_shadows;
	} kinds[] = {
		{DIRECT, REJECT, CURRENT, WEIR_KIND_WINDOW, {}, {}, {0, 1, 1}, 0, 0},
		{DIRECT, REJECT, ASSOCIATED, WEIR_KIND_ASSOCIATED, {}, {}, {0, 2, 2}, 0, 1},
		{DIRECT, THROTTLING, CURRENT, WEIR_KIND_THROTTLE, {}, {}, {0, 2, 2}, 0, 0},
		{WARM_UP, REJECT, CURRENT, WEIR_KIND_WINDOW, {1, 0, 0}, {0, 1, 1}, {0, 3, 3}, 1, 0},
		{WARM_UP, REJECT, ASSOCIATED, WEIR_KIND_ASSOCIATED, {1, 1, 0}, {0, 0, 1}, {0, 2, 2}, 0, 2},
		{WARM_UP, THROTTLING, CURRENT, WEIR_KIND_THROTTLE, {1, 0, 0}, {0, 1, 1}, {0, 2, 2}, 1, 0},
		{WARM_UP, THROTTLING, ASSOCIATED, WEIR_KIND_THROTTLE, {1, 1, 0}, {0, 0, 1}, {0, 2, 2}, 0, 1},
		{MEMORY, REJECT, CURRENT, WEIR_KIND_WINDOW, {1, 1, 1}, {}, {0, 3, 3}, 0, 0},
		{MEMORY, REJECT, ASSOCIATED, WEIR_KIND_ASSOCIATED, {1, 1, 1}, {}, {0, 2, 2}, 0, 1},
		{MEMORY, THROTTLING, CURRENT, WEIR_KIND_THROTTLE, {1, 1, 1}, {}, {0, 2, 2}, 0, 0},
	};
	static const uint32_t keys[3][2] = {{}, {WEIR_KEY_SOURCE, 0}, {WEIR_KEY_SOURCE, WEIR_KEY_SOURCE}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset =
				two_resources(keys[k][0], keys[k][1]);
			_cleanup_(weir_image_freep) struct weir_image *image = NULL;
			struct weir_rule *rule;

			add_kind(ruleset, "rule", kinds[i].strategy, kinds[i].behavior, kinds[i].relation);
			image = build(ruleset);
			rule = &image->rules[0];
			assert_int_equal(rule->kind, kinds[i].kind);
			assert_int_equal(rule->threshold_moves, kinds[i].moves[k]);
			assert_int_equal(rule->warms_flows, kinds[i].warms_flows[k]);
			assert_int_equal(rule->storage, kinds[i].storage[k]);
			assert_int_equal(rule->queueing_ns_max, kinds[i].behavior == THROTTLING ? 500 * MS : 0);
			assert_int_equal(image->resources[0].shadow_count, kinds[i].own_shadows);
			assert_int_equal(image->resources[1].shadow_count, kinds[i].ref_shadows);
			assert_int_equal(image->shadow_count, rule->kind == WEIR_KIND_ASSOCIATED);
			assert_int_equal(image->rule_count, 1);
		}
	}
}

CLAIM(a_throttled_packet_takes_its_exact_emission_interval)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_kind(ruleset, "direct", DIRECT, THROTTLING, CURRENT)->threshold_micro = 2900000;
	add_kind(ruleset, "none", DIRECT, THROTTLING, CURRENT)->threshold_micro = 999999;
	add_kind(ruleset, "warm", WARM_UP, THROTTLING, CURRENT);
	add_kind(ruleset, "memory", MEMORY, THROTTLING, CURRENT)->threshold_micro = 0;
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	image = build(ruleset);
	/* Not that of 2, which is what the window would go by. */
	assert_int_equal(image->rules[0].threshold, WEIR_THRESHOLD_WORD(2, 1));
	assert_int_equal(weir_emission_ns(&image->rules[0].emission, 1), 344827587);
	assert_int_equal(image->rules[1].threshold, WEIR_THRESHOLD_WORD(0, 1));
	assert_int_equal(weir_emission_ns(&image->rules[1].emission, 1), 0);
	assert_int_equal(weir_emission_ns(&image->rules[2].emission, 1), 10 * MS);
	/* As at the high water mark: the stricter end. */
	assert_int_equal(image->rules[3].threshold, WEIR_THRESHOLD_WORD(100, 1));
	assert_int_equal(weir_emission_ns(&image->rules[3].emission, 1), 10 * MS);
	assert_int_equal(weir_emission_ns(&image->rules[4].emission, 1), 0);
}

CLAIM(what_is_pushed_first_is_what_holds_without_a_controller)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_kind(ruleset, "memory", MEMORY, THROTTLING, CURRENT);
	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(100, 1));
	assert_memory_equal(&image->pushed[0].emission[0], &image->rules[0].emission, sizeof(struct weir_emission));
	assert_memory_equal(&image->pushed[0].emission[1], &image->rules[0].emission, sizeof(struct weir_emission));
	assert_int_equal(image->pushed[1].word, WEIR_THRESHOLD_WORD(100, 1));
}

CLAIM(descriptions_say_what_a_controller_needs)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_rule_info *info;
	struct weir_image *image;

	add_kind(ruleset, "warm", WARM_UP, THROTTLING, ASSOCIATED);
	add_kind(ruleset, "memory", MEMORY, REJECT, CURRENT);
	image = build(ruleset);
	info = &image->rule_info[image->rules[0].slot];
	assert_int_equal(info->strategy, WARM_UP);
	assert_int_equal(info->behavior, THROTTLING);
	assert_int_equal(info->relation, ASSOCIATED);
	assert_int_equal(info->moves, 1);
	assert_int_equal(info->is_shadow, 0);
	assert_int_equal(info->queueing_ns_max, 500 * MS);
	assert_int_equal(info->warm_up.max, 1000);
	assert_int_equal(info->warm_up.emission_num, 10 * MS);
	assert_string_equal(info->ref_resource_name, "ref");
	/* The controller's, not the program's. */
	assert_int_equal(image->rules[0].warm_up.max, 0);
	info = &image->rule_info[image->rules[1].slot];
	assert_int_equal(info->memory.low_units, 1000);
	assert_int_equal(info->memory.high_mark_bytes, 2048);
	assert_string_equal(info->ref_resource_name, "");
	weir_image_free(image);

	ruleset->resources[0].flow.fields = WEIR_KEY_VLAN;
	image = build(ruleset);
	assert_int_equal(image->rules[0].warms_flows, 0);
	weir_image_free(image);
	ruleset->resources[1].flow.fields = WEIR_KEY_VLAN;
	image = build(ruleset);
	assert_int_equal(image->rules[0].warms_flows, 1);
	assert_int_equal(image->rules[0].warm_up.max, 1000);
	assert_int_equal(image->rule_info[image->rules[0].slot].moves, 0);
	weir_image_free(image);
}

CLAIM(every_warm_up_too_large_is_refused_by_name)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	add_kind(ruleset, "first", WARM_UP, THROTTLING, CURRENT)->warm_up.period_s = 31536000;
	ruleset->rules[0].threshold_micro = 1000000000000 * WEIR_MICRO;
	add_kind(ruleset, "fine", WARM_UP, THROTTLING, CURRENT);
	add_kind(ruleset, "second", MEMORY, REJECT, CURRENT)->memory.low_units = 1ull << 62;
	assert_int_equal(weir_image_build(ruleset, &plain_options, &image, &diag), -EINVAL);
	assert_int_equal(diag.errors, 2);
	assert_non_null(strstr(diag.entries[0].message, "rule 'first'"));
	assert_non_null(strstr(diag.entries[1].message, "rule 'second'"));
}

CLAIM(the_program_is_shown_what_any_rule_asks_for)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	ruleset->settings.paces = true;
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.kinds, 1u << WEIR_KIND_WINDOW);
	assert_false(image->config.has_moving | image->config.has_shadows | image->config.warms_flows |
		     image->config.has_overrides | image->config.paces);
	weir_image_free(image);

	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.kinds, 1u << WEIR_KIND_WINDOW | 1u << WEIR_KIND_THROTTLE);
	assert_int_equal(image->config.paces, 1);
	assert_false(image->config.has_moving | image->config.has_shadows);
	weir_image_free(image);

	add_kind(ruleset, "associated", DIRECT, REJECT, ASSOCIATED);
	image = build(ruleset);
	assert_true(image->config.kinds & 1u << WEIR_KIND_ASSOCIATED);
	assert_int_equal(image->config.has_shadows, 1);
	assert_false(image->config.has_moving | image->config.warms_flows);
	weir_image_free(image);

	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.warms_flows, 1);
	assert_int_equal(image->config.has_moving, 0);
	weir_image_free(image);

	add_kind(ruleset, "memory", MEMORY, REJECT, CURRENT);
	ruleset->settings.paces = false;
	image = build(ruleset);
	assert_int_equal(image->config.has_moving, 1);
	assert_int_equal(image->config.paces, 0);
	weir_image_free(image);
}

/* What the program reads of packets for one rule: that of the first of two resources with this key. */
static uint32_t fields_asked_for(uint32_t key, uint32_t ref_key, enum weir_relation relation)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(key, ref_key);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	uint32_t fields;

	add_kind(ruleset, "rule", DIRECT, REJECT, relation);
	image = build(ruleset);
	fields = image->config.asked_fields;
	return fields;
}

CLAIM(the_program_is_shown_which_fields_flow_keys_are_made_of)
{
	static const struct {
		uint32_t key, field;
	} cases[] = {
		{0, 0},
		{WEIR_KEY_SOURCE, WEIR_MATCH_SOURCE},
		{WEIR_KEY_DESTINATION, WEIR_MATCH_DESTINATION},
		{WEIR_KEY_SOURCE_PORT, WEIR_MATCH_SOURCE_PORT},
		{WEIR_KEY_DESTINATION_PORT, WEIR_MATCH_DESTINATION_PORT},
		{WEIR_KEY_PROTOCOL, WEIR_MATCH_KIND},
		{WEIR_KEY_VLAN, WEIR_MATCH_VLAN},
		{WEIR_KEY_INTERFACE, WEIR_MATCH_INTERFACE},
		{WEIR_KEY_SOURCE | WEIR_KEY_INTERFACE, WEIR_MATCH_SOURCE | WEIR_MATCH_INTERFACE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(fields_asked_for(cases[i].key, 0, CURRENT), cases[i].field);
		/* A shadow window's key is made for packets of the other resource. */
		assert_int_equal(fields_asked_for(cases[i].key, cases[i].key, ASSOCIATED), cases[i].field);
	}
}

CLAIM(the_program_is_shown_which_fields_matches_and_connections_ask_for)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_ruleset_rule *rule = add_kind(ruleset, "rule", DIRECT, REJECT, CURRENT);
	struct weir_image *image;

	add_interface(&ruleset->resources[0].match, "eth3");
	image = build(ruleset);
	assert_int_equal(image->config.asked_fields, WEIR_MATCH_INTERFACE);
	weir_image_free(image);

	rule->metric = WEIR_METRIC_CONCURRENCY;
	image = build(ruleset);
	assert_int_equal(image->config.asked_fields, WEIR_MATCH_INTERFACE | WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION |
							     WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_DESTINATION_PORT |
							     WEIR_MATCH_TCP_FLAGS);
	weir_image_free(image);
}

/* Half of 2^58 ns, less the longest queue there can be. */
CLAIM(packets_too_far_apart_to_throttle_are_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;

	options.span_ns = (1ull << 57) - (1ull << 32) * MS;
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	weir_image_free(build_with(ruleset, &options));
	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	weir_image_free(build_with(ruleset, &options));
	options.span_ns += MS;
	assert_refused(ruleset, &options, "Throttling can plan ahead 4.4 years, but these packets are further apart");
}

/* ---- overrides ---- */

CLAIM(overrides_are_written_as_the_program_looks_them_up)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset =
		two_resources(WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_kind(ruleset, "none", DIRECT, REJECT, CURRENT);
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	add_override(&ruleset->rules[1], 4, 10, 8, 5900000);
	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	add_override(&ruleset->rules[2], 6, 0x20, 16, 400 * WEIR_MICRO);
	add_override(&ruleset->rules[2], 4, 0, 0, 0);
	ruleset->rules[2].override_field = WEIR_KEY_DESTINATION;
	image = build(ruleset);
	assert_int_equal(image->config.has_overrides, 1);
	assert_int_equal(image->rules[0].has_overrides, 0);
	assert_int_equal(image->rules[1].has_overrides, 1);
	assert_int_equal(image->rules[1].overrides_destination, 0);
	assert_int_equal(image->rules[2].overrides_destination, 1);
	assert_int_equal(image->override_count, 3);
	assert_int_equal(image->overrides[0].key.prefix_bits, 40 + 8);
	assert_int_equal(image->overrides[0].key.place, 1);
	assert_int_equal(image->overrides[0].key.family, 4);
	assert_int_equal(image->overrides[0].key.address[0], 10);
	assert_int_equal(image->overrides[0].units.units, 5);
	assert_int_equal(weir_emission_ns(&image->overrides[0].units.emission, 1), 0);
	assert_int_equal(image->overrides[1].key.prefix_bits, 40 + 16);
	assert_int_equal(image->overrides[1].key.place, 2);
	assert_int_equal(image->overrides[1].units.units, 400);
	assert_int_equal(weir_emission_ns(&image->overrides[1].units.emission, 1), 2500000);
	assert_int_equal(image->overrides[2].key.prefix_bits, 40);
	assert_int_equal(image->overrides[2].units.units, 0);
	assert_int_equal(weir_emission_ns(&image->overrides[2].units.emission, 1), 0);
}

CLAIM(a_row_must_hold_the_largest_override)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image;

	add_override(&ruleset->rules[0], 4, 10, 8, 32000 * WEIR_MICRO);
	image = build(ruleset);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_NARROW);
	weir_image_free(image);
	add_override(&ruleset->rules[0], 4, 11, 8, 32001 * WEIR_MICRO);
	image = build(ruleset);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_MEDIUM);
	weir_image_free(image);
	add_override(&ruleset->rules[0], 4, 12, 8, 2000000001 * WEIR_MICRO);
	image = build(ruleset);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_WIDE);
	weir_image_free(image);
}

RUN_CLAIMS(NULL, NULL)
