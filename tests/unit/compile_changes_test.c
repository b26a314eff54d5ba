// SPDX-License-Identifier: GPL-2.0-only
/*
 * Before a load and after it was taken back: the forecast of a load says what the load then does, and rules that come
 * back as if a load had never been find their slots.
 */
#include <string.h>

#include "../lib/previous.h"
#include "../lib/random_directions.h"
#include "compile/forecast.h"
#include "compile_by_hand.h"
#include "rules/emit.h"

#define ROUNDS 200

static uint32_t find_ifindex(const char *name, void *data)
{
	return random_ifindex(name);
}

static struct weir_image *compile_over(const struct weir_ruleset *ruleset, const struct weir_previous *previous,
				       uint64_t now_ns)
{
	const struct weir_compile_options options = {
		.cpus = 2, .now_ns = now_ns, .previous = previous, .ifindex = find_ifindex};
	struct weir_image *image = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	assert_int_equal(weir_image_build(ruleset, &options, &image, &diag), 0);
	return image;
}

/* ---- forecasts ---- */

static void assert_forecast(const struct weir_ruleset *before, const struct weir_ruleset *after, bool is_same)
{
	_cleanup_(weir_image_freep) struct weir_image *old = compile_over(before, NULL, 1000 * SECOND), *new = NULL;
	const struct weir_previous previous = previous_of(old);
	_cleanup_(weir_forecast_free) struct weir_forecast forecast = {};
	uint32_t kept = 0;

	new = compile_over(after, &previous, 1001 * SECOND);
	assert_int_equal(weir_forecast_make(before, after, &previous, new, &forecast), 0);
	assert_int_equal(forecast.changes_anything, !is_same);
	assert_int_equal(forecast.kept_rules, new->kept_rules);
	for (uint32_t i = 0; i < new->rule_count; i++) {
		const struct weir_change *change = &forecast.rules.all[i];

		assert_string_equal(change->name, after->rules[i].name);
		assert_int_equal(change->keeps_state, !new->fresh_rule_slots[new->rules[i].slot]);
		assert_true(change->keeps_state || change->kind == WEIR_CHANGE_ADDED || change->why_empty);
		kept += change->keeps_state;
	}
	assert_int_equal(kept, new->kept_rules);
}

CLAIM(a_forecast_keeps_what_the_load_keeps)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct random random = {.state = seed};
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *one = random_directed_ruleset(&random);
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *other = random_directed_ruleset(&random);
		_cleanup_(weir_freep) char *one_text = NULL, *other_text = NULL;

		one->settings.ring_groups = other->settings.ring_groups = 0;
		one_text = weir_ruleset_text(one, true);
		other_text = weir_ruleset_text(other, true);
		assert_forecast(one, one, true);
		assert_forecast(one, other, !strcmp(one_text, other_text));
	}
}

CLAIM(a_forecast_says_why_a_rule_starts_empty)
{
	struct weir_ruleset *before = per_source_ruleset(20), *after = per_source_ruleset(20);
	struct weir_image *old = build(before), *new;
	const struct weir_previous previous = previous_of(old);
	struct weir_forecast forecast;

	after->rules[0].samples = 5;
	after->rules[0].threshold_micro = 30 * WEIR_MICRO;
	new = compile_over(after, &previous, 1001 * SECOND);
	assert_int_equal(weir_forecast_make(before, after, &previous, new, &forecast), 0);
	assert_int_equal(forecast.rules.all[0].kind, WEIR_CHANGE_CHANGED);
	assert_false(forecast.rules.all[0].keeps_state);
	assert_string_equal(forecast.rules.all[0].why_empty, "another sampleCount");
	assert_string_equal(forecast.rules.all[0].before, "rate: 20/s\n");
	assert_string_equal(forecast.rules.all[0].after, "rate: 30/s\nsampleCount: 5\n");
	assert_int_equal(forecast.resources.all[0].kind, WEIR_CHANGE_NONE);
	assert_int_equal(forecast.settings.kind, WEIR_CHANGE_NONE);
	weir_forecast_free(&forecast);
	weir_image_free(old);
	weir_image_free(new);
	weir_ruleset_free(before);
	weir_ruleset_free(after);
}

/* ---- taking a load back ---- */

/* A load, another over it, and the first again as if the other had not been. */
CLAIM(rules_that_come_back_find_their_slots)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct random random = {.state = seed};
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *one = random_directed_ruleset(&random);
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *other = random_directed_ruleset(&random);
		_cleanup_(weir_image_freep) struct weir_image *first = compile_over(one, NULL, 1000 * SECOND);
		_cleanup_(weir_image_freep) struct weir_image *second = NULL, *third = NULL;
		struct weir_previous previous = previous_of(first);

		second = compile_over(other, &previous, 1001 * SECOND);
		previous = previous_of(second);
		/* So late that all slots that cooled are free. */
		weir_previous_take_back(&previous, first->rule_info, first->resource_info, 900000 * SECOND);
		third = compile_over(one, &previous, 900000 * SECOND);
		assert_int_equal(third->kept_rules, first->rule_count);
		for (uint32_t i = 0; i < first->rule_count + first->shadow_count; i++) {
			assert_int_equal(third->rules[i].slot, first->rules[i].slot);
			assert_int_equal(third->rules[i].spec, first->rules[i].spec);
			assert_int_equal(third->rules[i].storage, first->rules[i].storage);
			assert_false(third->fresh_rule_slots[third->rules[i].slot]);
		}
		for (uint32_t i = 0; i < first->resource_count; i++)
			assert_int_equal(third->resources[i].slot, first->resources[i].slot);
	}
}

CLAIM(slots_that_only_the_other_load_had_cool)
{
	struct weir_ruleset *one = per_source_ruleset(20), *other = per_source_ruleset(20);
	struct weir_image *first, *second;
	struct weir_previous previous;

	strcpy(other->rules[0].name, "per-tneilc");
	first = build(one);
	previous = previous_of(first);
	second = compile_over(other, &previous, 1001 * SECOND);
	previous = previous_of(second);
	assert_int_equal(previous.rules[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(previous.rules[1].state, WEIR_SLOT_USED);
	weir_previous_take_back(&previous, first->rule_info, first->resource_info, 1002 * SECOND);
	assert_int_equal(previous.rules[0].state, WEIR_SLOT_USED);
	assert_string_equal(previous.rules[0].name, "per-client");
	assert_int_equal(previous.rules[1].state, WEIR_SLOT_COOLING);
	assert_int_equal(previous.rules[1].free_after_ns, 1002 * SECOND + SECOND + SECOND / 10);
	assert_int_equal(previous.resources[0].state, WEIR_SLOT_USED);
	weir_image_free(first);
	weir_image_free(second);
	weir_ruleset_free(one);
	weir_ruleset_free(other);
}

RUN_CLAIMS(NULL, NULL)
