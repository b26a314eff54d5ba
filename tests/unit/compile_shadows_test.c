// SPDX-License-Identifier: GPL-2.0-only
/* Shadow windows: hidden rules that keep the windows which rules with a reference are evaluated by. */
#include <string.h>

#include "compile_by_hand.h"

CLAIM(rules_that_read_the_same_window_share_a_shadow)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "first", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "same", DIRECT, REJECT, ASSOCIATED)->threshold_micro = 5 * WEIR_MICRO;
	add_kind(ruleset, "bytes", DIRECT, REJECT, ASSOCIATED)->counts_bytes = true;
	add_kind(ruleset, "longer", DIRECT, REJECT, ASSOCIATED)->interval_ns = 2 * SECOND;
	add_kind(ruleset, "finer", DIRECT, REJECT, ASSOCIATED)->samples = 5;
	add_kind(ruleset, "strict", DIRECT, REJECT, ASSOCIATED)->window = WEIR_WINDOW_STRICT;
	add_kind(ruleset, "other", DIRECT, REJECT, ASSOCIATED)->ref_resource = 2;
	add_kind(ruleset, "moving", MEMORY, REJECT, ASSOCIATED);
	image = build(ruleset);
	assert_int_equal(image->rule_count, 8);
	assert_int_equal(image->shadow_count, 6);
	assert_int_equal(image->rules[0].shadow, 8);
	assert_int_equal(image->rules[1].shadow, 8);
	assert_int_equal(image->rules[2].shadow, 9);
	assert_int_equal(image->rules[3].shadow, 10);
	assert_int_equal(image->rules[4].shadow, 11);
	assert_int_equal(image->rules[5].shadow, 12);
	assert_int_equal(image->rules[6].shadow, 13);
	assert_int_equal(image->rules[7].shadow, 8);
	assert_int_equal(image->resources[0].shadow_count, 0);
	assert_int_equal(image->resources[1].shadow_count, 5);
	assert_int_equal(image->resources[2].shadow_count, 1);
	assert_int_equal(image->resources[2].shadow[0].kind, WEIR_SHADOW_WINDOW);
	assert_int_equal(image->resources[2].shadow[0].rule, 13);
	assert_int_equal(image->resources[2].shadow[0].skips_dropped, 0);
}

/* What an observer would have dropped is not counted for it, and is for the others. */
CLAIM(a_rule_that_observes_has_a_shadow_to_itself)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	const struct weir_shadow *shadow;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_kind(ruleset, "watches", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "watches too", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "drops too", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "warms", WARM_UP, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	assert_int_equal(image->rules[1].shadow, image->rules[3].shadow);
	for (uint32_t place = 0; place < 5; place += 2)
		assert_int_equal(image->rules[image->rules[place].shadow].shadow, place);
	assert_int_equal(image->shadow_count, 4);
	assert_int_equal(image->resources[1].shadow_count, 5);
	for (shadow = image->resources[1].shadow; shadow < image->resources[1].shadow + 5; shadow++) {
		assert_int_equal(shadow->skips_dropped, shadow->rule != image->rules[1].shadow);
		assert_int_equal(shadow->kind, shadow->rule == 4 ? WEIR_SHADOW_SECONDS : WEIR_SHADOW_WINDOW);
	}
}

CLAIM(a_rule_that_observed_alone_enforces_by_the_window_it_has)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	uint32_t slot;

	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	slot = image->rules[1].slot;
	ruleset->rules[0].observes = false;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->rules[1].slot, slot);
	assert_false(image->fresh_rule_slots[slot]);
	assert_int_equal(image->resources[1].shadow[0].skips_dropped, 0);
}

CLAIM(shadows_of_observers_keep_their_slots_in_any_order)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_ruleset_rule moved;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	uint32_t slots[2];

	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "one", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "two", DIRECT, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	slots[0] = image->rules[image->rules[1].shadow].slot, slots[1] = image->rules[image->rules[2].shadow].slot;
	assert_true(slots[0] != slots[1]);
	moved = ruleset->rules[1], ruleset->rules[1] = ruleset->rules[2], ruleset->rules[2] = moved;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->rules[image->rules[2].shadow].slot, slots[0]);
	assert_int_equal(image->rules[image->rules[1].shadow].slot, slots[1]);
}

/* Such a shadow window has its reader's name, and the resource that is read may have had a rule of that name. */
CLAIM(a_shadow_takes_no_slot_of_a_rule_of_its_name)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	uint32_t slot;

	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "rule", DIRECT, REJECT, CURRENT)->resource = 1;
	image = build(ruleset);
	slot = image->rules[1].slot;
	ruleset->rules[1].resource = 0;
	ruleset->rules[1].relation = ASSOCIATED, ruleset->rules[1].ref_resource = 1;
	ruleset->rules[1].observes = true;
	reload(&image, ruleset, 1001 * SECOND);
	assert_string_equal(image->rule_info[image->rules[image->rules[1].shadow].slot].name, "rule");
	assert_true(image->rules[image->rules[1].shadow].slot != slot);
	assert_int_equal(image->rule_info[slot].state, WEIR_SLOT_COOLING);
}

CLAIM(a_shadow_is_a_rule_of_the_resource_that_is_read)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, WEIR_KEY_SOURCE);
	struct weir_rule_info *info;
	struct weir_image *image;
	struct weir_rule *shadow;

	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED)->window = WEIR_WINDOW_SMOOTH;
	ruleset->rules[0].observes = true;
	image = build(ruleset);
	shadow = &image->rules[1];
	assert_int_equal(shadow->resource, 1);
	assert_int_equal(shadow->kind, WEIR_KIND_WINDOW);
	assert_int_equal(shadow->bucket_ns, SECOND / 10);
	assert_int_equal(shadow->window, WEIR_WINDOW_SMOOTH);
	assert_int_equal(shadow->window_cells, 11);
	assert_int_equal(shadow->storage, WEIR_STORAGE_WIDE);
	assert_int_equal(shadow->key_fields, WEIR_KEY_SOURCE);
	assert_int_equal(shadow->source_mask4, 0xffffffff);
	assert_int_equal(shadow->observes, 0);
	assert_true(shadow->slot != image->rules[0].slot);
	assert_true(image->fresh_rule_slots[shadow->slot]);
	info = &image->rule_info[shadow->slot];
	assert_int_equal(info->is_shadow, 1);
	assert_int_equal(info->state, WEIR_SLOT_USED);
	assert_int_equal(info->place, 1);
	assert_string_equal(info->resource_name, "ref");
	assert_non_null(strchr(info->name, ';'));
	assert_int_equal(image->rule_info[image->rules[0].slot].is_shadow, 0);
	/* One rule for people, and on a packet of both resources. */
	assert_int_equal(image->packet_rules_max, 1);
	assert_int_equal(image->resources[1].rule_count, 0);
	weir_image_free(image);

	ruleset->resources[1].flow.fields = 0;
	image = build(ruleset);
	assert_int_equal(image->rules[1].storage, WEIR_STORAGE_LONE);
	assert_int_equal(image->rules[1].source_mask4, 0);
	weir_image_free(image);
}

CLAIM(warm_up_is_shadowed_where_its_traffic_is)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_kind(ruleset, "own", WARM_UP, REJECT, CURRENT);
	add_kind(ruleset, "other", WARM_UP, THROTTLING, ASSOCIATED);
	image = build(ruleset);
	assert_int_equal(image->resources[0].shadow_count, 1);
	assert_int_equal(image->resources[0].shadow[0].kind, WEIR_SHADOW_WARMING);
	assert_int_equal(image->resources[0].shadow[0].skips_dropped, 0);
	assert_int_equal(image->resources[0].shadow[0].rule, 0);
	assert_int_equal(image->resources[1].shadow_count, 1);
	assert_int_equal(image->resources[1].shadow[0].kind, WEIR_SHADOW_SECONDS);
	assert_int_equal(image->resources[1].shadow[0].skips_dropped, 0);
	assert_int_equal(image->resources[1].shadow[0].rule, 1);
	assert_int_equal(image->shadow_count, 0);
}

/* Two resources of sixteen rules each, which no packet meets together, go by a third's traffic. */
CLAIM(thirty_two_counts_of_a_resource_are_kept_and_thirty_three_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	char name[32];

	for (uint32_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "apart%u", i);
		add_address(add_resource(ruleset, name, 0), i, 32);
	}
	add_resource(ruleset, "crowded", 0);
	for (uint32_t i = 0; i < 33; i++) {
		if (i == 32) {
			image = build(ruleset);
			assert_int_equal(image->resources[3].shadow_count, 32);
			assert_int_equal(image->packet_rules_max, 16);
			weir_image_free(image);
		}
		snprintf(name, sizeof(name), "rule%u", i);
		add_rule(ruleset, i / 16, name, 10)->interval_ns = (i + 1) * SECOND;
		ruleset->rules[i].relation = ASSOCIATED;
		ruleset->rules[i].ref_resource = 3;
	}
	assert_refused(ruleset, &plain_options, "rule 'rule32' is one too many for the traffic of resource 'crowded'");
}

CLAIM(rules_and_shadows_together_have_8192_places)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = numbered_ruleset(0, 4096);
	struct weir_image *image;

	for (uint32_t i = 0; i < 4095; i++)
		add_rule(ruleset, i, "second", 10);
	ruleset->rules[0].relation = ASSOCIATED;
	ruleset->rules[0].ref_resource = 1;
	image = build(ruleset);
	assert_int_equal(image->rule_count + image->shadow_count, WEIR_RULES_MAX);
	weir_image_free(image);
	add_rule(ruleset, 4095, "last", 10);
	assert_refused(ruleset, &plain_options, "rule 'r0' has no room to count resource 'r1'");
}

CLAIM(a_shadow_keeps_its_slot_over_a_reload)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	uint32_t slots[2];

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "first", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "second", DIRECT, REJECT, ASSOCIATED)->ref_resource = 2;
	image = build(ruleset);
	slots[0] = image->rules[2].slot, slots[1] = image->rules[3].slot;
	/* Their windows are alike; only the resources differ. */
	assert_string_equal(image->rule_info[slots[0]].name, image->rule_info[slots[1]].name);

	ruleset->rules[0].threshold_micro = 7 * WEIR_MICRO;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 2);
	assert_int_equal(image->rules[2].slot, slots[0]);
	assert_int_equal(image->rules[3].slot, slots[1]);
	assert_false(image->fresh_rule_slots[slots[0]]);

	/* In the other order. */
	ruleset->rules[0].ref_resource = 2, ruleset->rules[1].ref_resource = 1;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 2);
	assert_int_equal(image->rules[2].slot, slots[1]);
	assert_int_equal(image->rules[3].slot, slots[0]);
}

CLAIM(a_rule_that_refers_elsewhere_keeps_itself_and_changes_its_shadow)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	uint32_t slot, shadow_slot;

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED);
	image = build(ruleset);
	slot = image->rules[0].slot, shadow_slot = image->rules[1].slot;
	ruleset->rules[0].ref_resource = 2;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, slot);
	assert_true(image->rules[1].slot != shadow_slot);
	assert_int_equal(image->rule_info[shadow_slot].state, WEIR_SLOT_COOLING);
	assert_string_equal(image->rule_info[slot].ref_resource_name, "third");
}

CLAIM(a_shadow_without_a_slot_is_refused_by_its_resource)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = numbered_ruleset(0, 512);
	struct weir_compile_options options = plain_options;
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);
	struct weir_previous previous = previous_of(image);

	assert_int_equal(image->rule_slots, 1024);
	for (uint32_t i = 0; i < 512; i++)
		add_rule(ruleset, i, "second", 10);
	ruleset->rules[1023].relation = ASSOCIATED;
	ruleset->rules[1023].ref_resource = 0;
	options.previous = &previous;
	assert_refused(ruleset, &options, "no room for a count of resource 'r0'");
}

RUN_CLAIMS(NULL, NULL)
