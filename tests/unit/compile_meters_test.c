// SPDX-License-Identifier: GPL-2.0-only
/* Meters: hidden rules that keep the windows which rules with a reference are evaluated by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "compile_by_hand.h"

static void rules_that_read_the_same_window_share_a_meter(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;

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
	assert_int_equal(image->meter_count, 6);
	assert_int_equal(image->rules[0].meter, 8);
	assert_int_equal(image->rules[1].meter, 8);
	assert_int_equal(image->rules[2].meter, 9);
	assert_int_equal(image->rules[3].meter, 10);
	assert_int_equal(image->rules[4].meter, 11);
	assert_int_equal(image->rules[5].meter, 12);
	assert_int_equal(image->rules[6].meter, 13);
	assert_int_equal(image->rules[7].meter, 8);
	assert_int_equal(image->resources[0].meter_count, 0);
	assert_int_equal(image->resources[1].meter_count, 5);
	assert_int_equal(image->resources[2].meter_count, 1);
	assert_int_equal(image->resources[2].meter[0].kind, WEIR_METER_WINDOW);
	assert_int_equal(image->resources[2].meter[0].rule, 13);
	assert_int_equal(image->resources[2].meter[0].skips_dropped, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* What an observer would have dropped is not counted for it, and is for the others. */
static void a_rule_that_observes_has_a_meter_to_itself(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	const struct weir_meter *meter;
	struct weir_image *image;
	uint32_t place;

	add_kind(ruleset, "watches", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "watches too", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "drops too", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "warms", WARM_UP, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	assert_int_equal(image->rules[1].meter, image->rules[3].meter);
	for (place = 0; place < 5; place += 2)
		assert_int_equal(image->rules[image->rules[place].meter].meter, place);
	assert_int_equal(image->meter_count, 4);
	assert_int_equal(image->resources[1].meter_count, 5);
	for (meter = image->resources[1].meter; meter < image->resources[1].meter + 5; meter++) {
		assert_int_equal(meter->skips_dropped, meter->rule != image->rules[1].meter);
		assert_int_equal(meter->kind, meter->rule == 4 ? WEIR_METER_SECONDS : WEIR_METER_WINDOW);
	}
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_rule_that_observed_alone_enforces_by_the_window_it_has(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slot;

	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	slot = image->rules[1].slot;
	ruleset->rules[0].observes = false;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->rules[1].slot, slot);
	assert_false(image->fresh_rule_slots[slot]);
	assert_int_equal(image->resources[1].meter[0].skips_dropped, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void meters_of_observers_keep_their_slots_in_any_order(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_ruleset_rule moved;
	struct weir_image *image;
	uint32_t slots[2];

	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "one", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "two", DIRECT, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	slots[0] = image->rules[image->rules[1].meter].slot, slots[1] = image->rules[image->rules[2].meter].slot;
	assert_true(slots[0] != slots[1]);
	moved = ruleset->rules[1], ruleset->rules[1] = ruleset->rules[2], ruleset->rules[2] = moved;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->rules[image->rules[2].meter].slot, slots[0]);
	assert_int_equal(image->rules[image->rules[1].meter].slot, slots[1]);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* Such a meter has its reader's name, and the resource that is read may have had a rule of that name. */
static void a_meter_takes_no_slot_of_a_rule_of_its_name(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slot;

	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "rule", DIRECT, REJECT, CURRENT)->resource = 1;
	image = build(ruleset);
	slot = image->rules[1].slot;
	ruleset->rules[1].resource = 0;
	ruleset->rules[1].relation = ASSOCIATED, ruleset->rules[1].ref_resource = 1;
	ruleset->rules[1].observes = true;
	reload(&image, ruleset, 1001 * SECOND);
	assert_string_equal(image->rule_info[image->rules[image->rules[1].meter].slot].name, "rule");
	assert_true(image->rules[image->rules[1].meter].slot != slot);
	assert_int_equal(image->rule_info[slot].state, WEIR_SLOT_COOLING);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_meter_is_a_rule_of_the_resource_that_is_read(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, WEIR_KEY_SOURCE);
	struct weir_rule_info *info;
	struct weir_image *image;
	struct weir_rule *meter;

	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED)->window = WEIR_WINDOW_SMOOTH;
	ruleset->rules[0].observes = true;
	image = build(ruleset);
	meter = &image->rules[1];
	assert_int_equal(meter->resource, 1);
	assert_int_equal(meter->kind, WEIR_KIND_WINDOW);
	assert_int_equal(meter->bucket_ns, SECOND / 10);
	assert_int_equal(meter->window, WEIR_WINDOW_SMOOTH);
	assert_int_equal(meter->window_cells, 11);
	assert_int_equal(meter->storage, WEIR_STORAGE_WIDE);
	assert_int_equal(meter->key_fields, WEIR_KEY_SOURCE);
	assert_int_equal(meter->source_mask4, 0xffffffff);
	assert_int_equal(meter->observes, 0);
	assert_true(meter->slot != image->rules[0].slot);
	assert_true(image->fresh_rule_slots[meter->slot]);
	info = &image->rule_info[meter->slot];
	assert_int_equal(info->is_meter, 1);
	assert_int_equal(info->state, WEIR_SLOT_USED);
	assert_int_equal(info->place, 1);
	assert_string_equal(info->resource_name, "ref");
	assert_non_null(strchr(info->name, ';'));
	assert_int_equal(image->rule_info[image->rules[0].slot].is_meter, 0);
	/* One rule for people, and on a packet of both resources. */
	assert_int_equal(image->packet_rules_max, 1);
	assert_int_equal(image->resources[1].rule_count, 0);
	weir_image_free(image);

	ruleset->resources[1].flow.fields = 0;
	image = build(ruleset);
	assert_int_equal(image->rules[1].storage, WEIR_STORAGE_LONE);
	assert_int_equal(image->rules[1].source_mask4, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void warm_up_is_metered_where_its_traffic_is(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_kind(ruleset, "own", WARM_UP, REJECT, CURRENT);
	add_kind(ruleset, "other", WARM_UP, THROTTLING, ASSOCIATED);
	image = build(ruleset);
	assert_int_equal(image->resources[0].meter_count, 1);
	assert_int_equal(image->resources[0].meter[0].kind, WEIR_METER_WARMING);
	assert_int_equal(image->resources[0].meter[0].skips_dropped, 0);
	assert_int_equal(image->resources[0].meter[0].rule, 0);
	assert_int_equal(image->resources[1].meter_count, 1);
	assert_int_equal(image->resources[1].meter[0].kind, WEIR_METER_SECONDS);
	assert_int_equal(image->resources[1].meter[0].skips_dropped, 0);
	assert_int_equal(image->resources[1].meter[0].rule, 1);
	assert_int_equal(image->meter_count, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* Two resources of sixteen rules each, which no packet meets together, go by a third's traffic. */
static void thirty_two_counts_of_a_resource_are_kept_and_thirty_three_refused(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	uint32_t i;
	char name[32];

	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "apart%u", i);
		add_address(add_resource(ruleset, name, 0), i, 32);
	}
	add_resource(ruleset, "crowded", 0);
	for (i = 0; i < 33; i++) {
		if (i == 32) {
			image = build(ruleset);
			assert_int_equal(image->resources[3].meter_count, 32);
			assert_int_equal(image->packet_rules_max, 16);
			weir_image_free(image);
		}
		snprintf(name, sizeof(name), "rule%u", i);
		add_rule(ruleset, i / 16, name, 10)->interval_ns = (i + 1) * SECOND;
		ruleset->rules[i].relation = ASSOCIATED;
		ruleset->rules[i].ref_resource = 3;
	}
	assert_refused(ruleset, &plain_options,
		       "rule 'rule32' is one too many that goes by the traffic of resource 'crowded'");
	weir_ruleset_free(ruleset);
}

static void rules_and_meters_together_have_8192_places(void **state)
{
	struct weir_ruleset *ruleset = numbered_ruleset(0, 4096);
	struct weir_image *image;
	uint32_t i;

	for (i = 0; i < 4095; i++)
		add_rule(ruleset, i, "second", 10);
	ruleset->rules[0].relation = ASSOCIATED;
	ruleset->rules[0].ref_resource = 1;
	image = build(ruleset);
	assert_int_equal(image->rule_count + image->meter_count, WEIR_RULES_MAX);
	weir_image_free(image);
	add_rule(ruleset, 4095, "last", 10);
	assert_refused(ruleset, &plain_options, "rule 'r0' has no room to count resource 'r1'");
	weir_ruleset_free(ruleset);
}

static void a_meter_keeps_its_slot_over_a_reload(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slots[2];

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "first", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "second", DIRECT, REJECT, ASSOCIATED)->ref_resource = 2;
	image = build(ruleset);
	slots[0] = image->rules[2].slot, slots[1] = image->rules[3].slot;
	/* Their windows are alike; what tells them apart is the resource. */
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
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_rule_that_refers_elsewhere_keeps_itself_and_changes_its_meter(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slot, meter_slot;

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED);
	image = build(ruleset);
	slot = image->rules[0].slot, meter_slot = image->rules[1].slot;
	ruleset->rules[0].ref_resource = 2;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, slot);
	assert_true(image->rules[1].slot != meter_slot);
	assert_int_equal(image->rule_info[meter_slot].state, WEIR_SLOT_COOLING);
	assert_string_equal(image->rule_info[slot].ref_resource_name, "third");
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_meter_without_a_slot_is_refused_by_its_resource(void **state)
{
	struct weir_ruleset *ruleset = numbered_ruleset(0, 512);
	struct weir_compile_options options = plain_options;
	struct weir_image *image = build(ruleset);
	struct weir_previous previous = previous_of(image);
	uint32_t i;

	assert_int_equal(image->rule_slots, 1024);
	for (i = 0; i < 512; i++)
		add_rule(ruleset, i, "second", 10);
	ruleset->rules[1023].relation = ASSOCIATED;
	ruleset->rules[1023].ref_resource = 0;
	options.previous = &previous;
	assert_refused(ruleset, &options, "no room for a count of resource 'r0'");
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_that_read_the_same_window_share_a_meter),
		cmocka_unit_test(a_rule_that_observes_has_a_meter_to_itself),
		cmocka_unit_test(a_rule_that_observed_alone_enforces_by_the_window_it_has),
		cmocka_unit_test(meters_of_observers_keep_their_slots_in_any_order),
		cmocka_unit_test(a_meter_takes_no_slot_of_a_rule_of_its_name),
		cmocka_unit_test(a_meter_is_a_rule_of_the_resource_that_is_read),
		cmocka_unit_test(warm_up_is_metered_where_its_traffic_is),
		cmocka_unit_test(thirty_two_counts_of_a_resource_are_kept_and_thirty_three_refused),
		cmocka_unit_test(rules_and_meters_together_have_8192_places),
		cmocka_unit_test(a_meter_keeps_its_slot_over_a_reload),
		cmocka_unit_test(a_rule_that_refers_elsewhere_keeps_itself_and_changes_its_meter),
		cmocka_unit_test(a_meter_without_a_slot_is_refused_by_its_resource),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
