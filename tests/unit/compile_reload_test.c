// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a load keeps of the one before: slots with all that is counted there, window specs and versions; and which slots
 * it must leave alone, as rows or TATs of a rule that is gone could be taken for those of the next.
 */
#include <string.h>

#include "compile_by_hand.h"

/* ---- slots, window specs, versions ---- */

CLAIM(an_unchanged_rule_keeps_slot_window_and_version)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);
	uint64_t base_bucket = image->specs[0].base_bucket;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *other = new_ruleset();

	/* It comes second now, and after another window spec. */
	add_resource(other, "web", WEIR_KEY_SOURCE);
	add_resource(other, "dns", WEIR_KEY_SOURCE);
	add_rule(other, 0, "web", 5)->interval_ns = 10 * SECOND;
	add_rule(other, 1, "per-client", 20)->observes = true;
	reload(&image, other, 5000 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[1].slot, 0);
	assert_int_equal(image->rules[1].spec, 0);
	assert_int_equal(image->rules[1].base_bucket, base_bucket);
	assert_int_equal(image->pushed[1].word, WEIR_THRESHOLD_WORD(20, 1));
	assert_int_equal(image->resources[1].slot, 0);
	assert_int_equal(image->rule_info[0].place, 1);
	assert_int_equal(image->rule_info[0].observes, 1);
	assert_int_equal(image->resource_info[0].place, 1);
	assert_false(image->fresh_rule_slots[0]);
	assert_false(image->fresh_resource_slots[0]);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->rules[0].spec, 1);
	assert_true(image->fresh_rule_slots[1]);
	assert_true(image->fresh_resource_slots[1]);
}

CLAIM(a_changed_threshold_keeps_the_slot_under_a_new_version)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	/* The same decisions: 20.9 admits 20. */
	ruleset->rules[0].threshold_micro = 20900000;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(20, 1));
	assert_int_equal(image->rule_info[0].threshold_micro, 20900000);
	for (uint32_t i = 1; i <= 256; i++) {
		ruleset->rules[0].threshold_micro = (20 + i) * WEIR_MICRO;
		reload(&image, ruleset, (1001 + 10 * i) * SECOND);
		assert_int_equal(image->rules[0].slot, 0);
		assert_int_equal(image->kept_rules, 1);
		assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(20 + i, i % WEIR_VERSIONS + 1));
	}
}

/* A bucket is known by what marks its rule's virtual time, and what it lacks by how much of that a token is. */
CLAIM(a_changed_threshold_or_burst_leaves_token_buckets_as_they_are)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_ruleset_rule *rule = &ruleset->rules[0];
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_tokens before;

	rule->window = WEIR_WINDOW_TOKENS;
	rule->burst_micro = 100 * WEIR_MICRO;
	image = build(ruleset);
	before = image->rules[0].tokens;
	assert_int_not_equal(before.mark, 0);
	assert_memory_equal(&image->rule_info[0].tokens, &before, sizeof(before));
	reload(&image, ruleset, 1001 * SECOND);
	assert_memory_equal(&image->rules[0].tokens, &before, sizeof(before));
	rule->threshold_micro = 30 * WEIR_MICRO;
	rule->burst_micro = 150 * WEIR_MICRO;
	reload(&image, ruleset, 1002 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].tokens.mark, before.mark);
	assert_int_equal(image->rules[0].tokens.unit, before.unit);
	assert_int_equal(image->rules[0].tokens.batch_max, 150);
	assert_int_equal(image->rules[0].tokens.clock.start_ns, 1002 * SECOND);
	/* So many digits that the unit will not do. */
	rule->burst_micro = 9999999999999 * WEIR_MICRO;
	reload(&image, ruleset, 1003 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_not_equal(image->rules[0].tokens.mark, before.mark);
	/* Another window is another rule. */
	rule->window = WEIR_WINDOW_LEAP;
	reload(&image, ruleset, 1004 * SECOND);
	assert_int_equal(image->kept_rules, 0);
}

static void assert_not_kept(const struct weir_ruleset *before, const struct weir_ruleset *after)
{
	_cleanup_(weir_image_freep) struct weir_image *image = build(before);

	reload(&image, after, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 0);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->rule_info[0].free_after_ns, 1001 * SECOND + SECOND + SECOND / 10);
	assert_int_equal(image->rule_info[1].state, WEIR_SLOT_USED);
	assert_int_equal(image->pushed[0].word >> WEIR_THRESHOLD_BITS, 1);
}

CLAIM(a_rule_with_another_identity_gets_a_new_slot)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *before = per_source_ruleset(20);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *after = per_source_ruleset(20);
	struct weir_ruleset_rule *rule = &after->rules[0];

	rule->interval_ns = 2 * SECOND;
	assert_not_kept(before, after);
	rule->interval_ns = SECOND, rule->samples = 5;
	assert_not_kept(before, after);
	rule->samples = 10, rule->window = WEIR_WINDOW_STRICT;
	assert_not_kept(before, after);
	rule->window = WEIR_WINDOW_LEAP, rule->counts_bytes = true;
	assert_not_kept(before, after);
	rule->counts_bytes = false, after->resources[0].flow.source_bits[1] = 64;
	assert_not_kept(before, after);
	after->resources[0].flow.source_bits[1] = 128, after->resources[0].flow.fields |= WEIR_KEY_VLAN;
	assert_not_kept(before, after);
	after->resources[0].flow.fields = WEIR_KEY_SOURCE;
	strcpy(rule->name, "per-tneilc");
	assert_not_kept(before, after);
	strcpy(rule->name, "per-client");
	strcpy(after->resources[0].name, "web");
	assert_not_kept(before, after);
}

CLAIM(another_key_of_its_own_makes_another_rule)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *before = per_source_ruleset(20);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *after = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(before);
	struct weir_ruleset_rule *rule = &after->rules[0];

	/* `per` that says what the resource's flow said. */
	rule->has_own_key = true, rule->own_key = before->resources[0].flow;
	reload(&image, after, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	/* What the resource's flow says then does not matter. */
	after->resources[0].flow = (struct weir_flow){};
	reload(&image, after, 1002 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	rule->own_key.source_bits[0] = 24;
	reload(&image, after, 1003 * SECOND);
	assert_int_equal(image->kept_rules, 0);
	assert_string_equal(image->why_empty[0], "another flow key");
	rule->own_key = (struct weir_flow){};
	reload(&image, after, 1004 * SECOND);
	assert_int_equal(image->kept_rules, 0);
	/* All of a resource that has no flow: as without `per`. */
	rule->has_own_key = false;
	reload(&image, after, 1005 * SECOND);
	assert_int_equal(image->kept_rules, 1);
}

CLAIM(a_removed_rules_slot_cools_before_it_is_reused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *first = per_source_ruleset(20);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *none = new_ruleset();
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *second = new_ruleset();
	uint64_t expiry_ns = 2000 * SECOND + SECOND + SECOND / 10;
	_cleanup_(weir_image_freep) struct weir_image *image = build(first);

	reload(&image, none, 2000 * SECOND);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->rule_info[0].free_after_ns, expiry_ns);
	assert_string_equal(image->rule_info[0].name, "per-client");
	assert_int_equal(image->resource_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->resource_info[0].free_after_ns, 2061 * SECOND);

	/* Still cooling at that very nanosecond; even the same rule does not find its old windows. */
	add_resource(second, "dns", WEIR_KEY_SOURCE);
	add_rule(second, 0, "per-client", 20);
	reload(&image, second, expiry_ns);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->resources[0].slot, 1);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->rule_info[0].free_after_ns, expiry_ns);

	add_rule(second, 0, "another", 20);
	reload(&image, second, expiry_ns + 1);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->rules[1].slot, 0);
	assert_string_equal(image->rule_info[0].name, "another");
	assert_true(image->fresh_rule_slots[0]);
	assert_false(image->fresh_rule_slots[1]);
}

CLAIM(a_reload_without_free_slots_is_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *first = numbered_ruleset(0, 500);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *second = numbered_ruleset(500, 524);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *third = numbered_ruleset(1023, 2);
	struct weir_compile_options options = plain_options;
	_cleanup_(weir_image_freep) struct weir_image *image = build(first);
	struct weir_previous previous;

	assert_int_equal(image->rule_slots, 1024);
	assert_int_equal(image->resource_slots, 1024);
	reload(&image, second, 1001 * SECOND);
	assert_int_equal(image->rule_slots, 1024);
	assert_int_equal(image->kept_rules, 0);
	previous = previous_of(image);
	options.previous = &previous;
	options.now_ns = 1002 * SECOND;
	assert_refused(third, &options, "no room for resource 'r1024': the instance was attached with 1024 slots");
	reload(&image, third, 1100 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[1].slot, 0);
}

CLAIM(first_load_makes_room_for_twice_its_rules)
{
	struct weir_ruleset *ruleset = numbered_ruleset(0, 1024);
	struct weir_image *image = build(ruleset);

	assert_int_equal(image->rule_slots, 2048);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	ruleset = numbered_ruleset(0, 1025);
	image = build(ruleset);
	assert_int_equal(image->rule_slots, 4096);
	assert_int_equal(image->resource_slots, 4096);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

CLAIM(a_threshold_that_outgrows_its_rows_moves_the_rule_and_says_so)
{
	static const struct {
		uint64_t threshold;
		enum weir_storage next;
	} most[] = {{32000, WEIR_STORAGE_MEDIUM}, {2000000000, WEIR_STORAGE_WIDE}};

	for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(most[i].threshold);
		struct weir_image *image = build(ruleset), *next = NULL;
		struct weir_previous previous = previous_of(image);
		struct weir_compile_options options = plain_options;
		struct weir_diag diag = {};

		options.previous = &previous;
		ruleset->rules[0].threshold_micro = (most[i].threshold + 1) * WEIR_MICRO;
		assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
		assert_int_equal(diag.count, 1);
		assert_non_null(strstr(diag.entries[0].message, "rule 'per-client' starts with empty windows"));
		assert_int_equal(next->kept_rules, 0);
		assert_int_equal(next->rules[0].slot, 1);
		assert_int_equal(next->rules[0].storage, most[i].next);
		assert_int_equal(next->rule_info[0].state, WEIR_SLOT_COOLING);
		assert_int_equal(next->resources[0].slot, 0);
		weir_image_free(image);
		weir_diag_free(&diag);

		/* And stays where it is when it could go back: its windows are worth more. */
		ruleset->rules[0].threshold_micro = 5 * WEIR_MICRO;
		reload(&next, ruleset, 1001 * SECOND);
		assert_int_equal(next->kept_rules, 1);
		assert_int_equal(next->rules[0].slot, 1);
		assert_int_equal(next->rules[0].storage, most[i].next);
		weir_image_free(next);
	}
}

CLAIM(window_specs_of_earlier_loads_stay_for_ever)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);
	struct weir_window_spec first = image->specs[0];

	ruleset->rules[0].interval_ns = 2 * SECOND;
	reload(&image, ruleset, 3000 * SECOND);
	assert_int_equal(image->spec_count, 2);
	assert_memory_equal(&image->specs[0], &first, sizeof(first));
	assert_int_equal(image->rules[0].spec, 1);
	assert_int_equal(image->specs[1].base_bucket, 15000 - 16);
	/* A new rule of the old window spec counts from its base. */
	ruleset->rules[0].interval_ns = SECOND;
	reload(&image, ruleset, 4000 * SECOND);
	assert_int_equal(image->spec_count, 2);
	assert_int_equal(image->rules[0].spec, 0);
	assert_int_equal(image->rules[0].base_bucket, first.base_bucket);
}

/* ---- rules that move, throttle, or refer ---- */

CLAIM(a_rule_without_a_window_keeps_its_slot_and_chooses_rows_again)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	ruleset->rules[0].behavior = THROTTLING;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, 0);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_WIDE);
	/* Long enough for what was planned to be over. */
	ruleset->rules[0].behavior = REJECT;
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_NARROW);
}

CLAIM(a_window_whose_threshold_begins_to_move_leaves_its_narrow_rows)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset), *next = NULL;
	struct weir_previous previous = previous_of(image);
	struct weir_compile_options options = plain_options;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	ruleset->rules[0].strategy = WARM_UP;
	ruleset->rules[0].warm_up = (struct weir_warm_up_fields){10, 3};
	options.previous = &previous;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "rule 'per-client' starts with empty windows"));
	assert_int_equal(next->rules[0].slot, 1);
	assert_int_equal(next->rules[0].storage, WEIR_STORAGE_MEDIUM);
	weir_image_free(image);
	weir_image_free(next);
}

/* A reload that would lose windows is refused with the reason, unless they may go; a comparison shows the rest, too. */
CLAIM(a_reload_that_would_empty_windows_is_refused_unless_it_may)
{
	static const struct {
		bool warms;
		const char *cause;
	} changes[] = {
		{false, "its threshold, or that of an override, outgrew its rows"},
		{true, "a threshold that moves needs larger rows than it has"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
		struct weir_image *image = build(ruleset), *next = NULL;
		struct weir_previous previous = previous_of(image);
		struct weir_compile_options options = plain_options;
		struct weir_diag diag = {};

		options.previous = &previous;
		options.emptied = WEIR_EMPTIED_REFUSED;
		if (changes[i].warms) {
			ruleset->rules[0].strategy = WARM_UP;
			ruleset->rules[0].warm_up = (struct weir_warm_up_fields){10, 3};
		} else {
			ruleset->rules[0].threshold_micro = 40000 * WEIR_MICRO;
		}
		assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), -EINVAL);
		assert_null(next);
		assert_int_equal(diag.errors, 1);
		assert_non_null(strstr(diag.entries[0].message, "rule 'per-client' would start with empty windows: "));
		assert_non_null(strstr(diag.entries[0].message, changes[i].cause));
		assert_non_null(strstr(diag.entries[0].hint, "weir reload --fresh"));
		weir_diag_free(&diag);

		options.emptied = WEIR_EMPTIED_TO_BE_REFUSED;
		assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
		assert_int_equal(diag.errors, 0);
		assert_non_null(
			strstr(diag.entries[0].message, "a reload would be refused, as rule 'per-client' would"));
		weir_diag_free(&diag);
		weir_image_free(next);

		/* What the rows hold is nobody's business. */
		ruleset->rules[0].strategy = WEIR_STRATEGY_DIRECT;
		ruleset->rules[0].threshold_micro = 32000 * WEIR_MICRO;
		options.emptied = WEIR_EMPTIED_REFUSED;
		assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
		assert_int_equal(diag.count, 0);
		assert_int_equal(next->kept_rules, 1);
		weir_image_free(next);
		weir_image_free(image);
	}
}

static uint32_t version_of(const struct weir_image *image)
{
	return image->rules[0].threshold >> WEIR_THRESHOLD_BITS;
}

CLAIM(a_flows_warm_up_has_a_new_version_with_any_of_its_numbers)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 1);
	ruleset->rules[0].warm_up.period_s = 20;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 2);
	/* The same 100, but not the same curve. */
	ruleset->rules[0].threshold_micro += 1;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 3);
	ruleset->rules[0].behavior = THROTTLING;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 4);
	assert_int_equal(image->rules[0].slot, 0);
}

/* Versions come round: a reload that changes nothing takes none. */
CLAIM(overrides_that_are_the_same_keep_their_version)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_override *overrides, first;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_override(&ruleset->rules[0], 4, 10, 8, 5 * WEIR_MICRO);
	add_override(&ruleset->rules[0], 4, 11, 8, 6 * WEIR_MICRO);
	image = build(ruleset);
	overrides = ruleset->rules[0].overrides;
	assert_int_equal(version_of(image), 1);
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 1);
	first = overrides[0];
	overrides[0] = overrides[1];
	overrides[1] = first;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 1);
	/* Each part of one makes another; so do two that change places in part. */
	overrides[0].threshold_micro = 5 * WEIR_MICRO;
	overrides[1].threshold_micro = 6 * WEIR_MICRO;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 2);
	overrides[0].prefix.bits = 9;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 3);
	overrides[0].prefix.address[0] = 12;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 4);
	overrides[0].prefix.family = 6;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 5);
}

/* Only the threshold of the one override, or of the rule. */
static void change(struct weir_ruleset *ruleset)
{
	struct weir_ruleset_rule *rule = &ruleset->rules[0];

	if (rule->override_count)
		rule->overrides[0].threshold_micro++;
	else
		rule->threshold_micro += WEIR_MICRO;
}

/* Whatever a row has noted: it will not take one threshold for another. */
CLAIM(a_version_comes_again_only_when_no_row_can_remember_it)
{
	for (int overrides = 0; overrides < 2; overrides++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
		uint64_t last_ns[WEIR_VERSIONS + 1] = {0}, now_ns = 1000 * SECOND;
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;
		uint32_t version, before;

		if (overrides)
			add_override(&ruleset->rules[0], 4, 10, 8, 5 * WEIR_MICRO);
		image = build(ruleset);
		before = version_of(image);
		for (int i = 0; i < 2000; i++) {
			/* Windows of 1.1 s, and what a reload may take: now and then it is all forgotten. */
			now_ns += i % 200 < 150 ? SECOND / 10 : 2 * SECOND;
			last_ns[before] = now_ns;
			change(ruleset);
			reload(&image, ruleset, now_ns);
			version = version_of(image);
			assert_in_range(version, 0, WEIR_VERSIONS);
			assert_true(version == WEIR_VERSION_NONE || !last_ns[version] ||
				    now_ns > last_ns[version] + 1100 * MS + 60 * SECOND);
			before = version;
		}
	}
}

CLAIM(a_rule_that_ran_out_of_versions_says_so_and_has_them_again_later)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset), *next;
	struct weir_compile_options options = plain_options;
	struct weir_previous previous;
	struct weir_diag diag = {};

	for (uint32_t i = 2; i <= WEIR_VERSIONS; i++) {
		change(ruleset);
		reload(&image, ruleset, 1001 * SECOND);
		assert_int_equal(version_of(image), i);
	}
	change(ruleset);
	previous = previous_of(image);
	options.previous = &previous;
	options.now_ns = 1001 * SECOND;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(version_of(next), WEIR_VERSION_NONE);
	assert_int_equal(next->kept_rules, 1);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "its packets take the slow path"));
	weir_diag_free(&diag);
	weir_image_free(image);
	image = next;
	reload(&image, ruleset, 1062 * SECOND); /* not yet, however little has changed */
	assert_int_equal(version_of(image), WEIR_VERSION_NONE);
	reload(&image, ruleset, 1062 * SECOND + 100 * MS + 1);
	assert_int_equal(version_of(image), 1);
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(version_of(image), 1);
	/* Whatever stands in the map. */
	image->rule_info[0].threshold_word = WEIR_THRESHOLD_WORD(20, 200);
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(version_of(image), WEIR_VERSION_NONE);
	weir_image_free(image);
}

/* ---- slots whose flows are in tables that all CPUs share ---- */

/* All but the name. */
static void set_rule(struct weir_ruleset_rule *rule, const struct weir_ruleset_rule *kind)
{
	char *name = rule->name;

	*rule = *kind;
	rule->name = name;
}

/* Slot of a rule that is loaded at `then_ns`, when one of this kind was removed at 2,000 s. */
static uint32_t slot_after(const struct weir_ruleset_rule *gone, uint32_t key_fields,
			   const struct weir_ruleset_rule *next, uint64_t then_ns)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(key_fields, 0);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *none = new_ruleset();
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	uint32_t slot;

	set_rule(add_rule(ruleset, 0, "gone", 0), gone);
	image = build(ruleset);
	reload(&image, none, 2000 * SECOND);
	set_rule(&ruleset->rules[0], next);
	memcpy(ruleset->rules[0].name, "next", 4);
	reload(&image, ruleset, then_ns);
	slot = image->rules[0].slot;
	return slot;
}

CLAIM(a_throttling_rule_takes_no_slot_whose_tats_it_would_feel)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *kinds = two_resources(0, 0);
	struct weir_ruleset_rule *quick = add_kind(kinds, "quick", DIRECT, THROTTLING, CURRENT);
	struct weir_ruleset_rule slow, reject;

	slow = reject = *quick;
	slow.interval_ns = 60 * SECOND;
	reject.behavior = REJECT;
	/* Half a second of queue, and then its own interval. */
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, &slow, 2060 * SECOND + 499 * MS), 1);
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, &slow, 2060 * SECOND + 500 * MS), 0);
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, quick, 2001 * SECOND + 499 * MS), 1);
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, quick, 2001 * SECOND + 500 * MS), 0);
	/* Who plans nothing does not mind, and whole resources are cleared by the loader. */
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, &reject, 2001 * SECOND + 101 * MS), 0);
	assert_int_equal(slot_after(quick, 0, &slow, 2001 * SECOND + 101 * MS), 0);
	assert_int_equal(slot_after(&reject, WEIR_KEY_SOURCE, &slow, 2001 * SECOND + 101 * MS), 0);
}

CLAIM(a_warming_rule_takes_no_slot_whose_flows_may_still_be_warm)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *kinds = two_resources(0, 0);
	struct weir_ruleset_rule *warm = add_kind(kinds, "warm", WARM_UP, REJECT, CURRENT);
	struct weir_ruleset_rule never = *warm;

	/* A thousand tokens by a hundred a second. */
	assert_int_equal(slot_after(warm, WEIR_KEY_SOURCE, warm, 2012 * SECOND), 1);
	assert_int_equal(slot_after(warm, WEIR_KEY_SOURCE, warm, 2013 * SECOND), 0);
	/* Two a second: a third of that is no whole token, so a silent second is not below it and never refills. */
	never.threshold_micro = 120 * WEIR_MICRO;
	never.interval_ns = 60 * SECOND;
	assert_int_equal(slot_after(warm, WEIR_KEY_SOURCE, &never, 9000 * SECOND), 1);
	assert_int_equal(slot_after(warm, 0, &never, 9000 * SECOND), 0);
}

CLAIM(a_slot_remembers_throttled_flows_through_other_owners)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *none = new_ruleset();
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_kind(ruleset, "first", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	reload(&image, none, 2000 * SECOND);
	strcpy(ruleset->rules[0].name, "other");
	ruleset->rules[0].behavior = REJECT;
	reload(&image, ruleset, 2002 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
	reload(&image, none, 2002 * SECOND);
	strcpy(ruleset->rules[0].name, "third");
	ruleset->rules[0].behavior = THROTTLING;
	ruleset->rules[0].interval_ns = 3600 * SECOND;
	reload(&image, ruleset, 2010 * SECOND);
	assert_int_equal(image->rules[0].slot, 1);
	reload(&image, none, 2010 * SECOND);
	reload(&image, ruleset, 9700 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
}

CLAIM(a_rule_that_begins_to_throttle_leaves_a_slot_of_throttled_flows)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *none = new_ruleset();
	struct weir_previous previous;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	add_kind(ruleset, "first", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	/* Its own TATs it keeps. */
	reload(&image, ruleset, 1999 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
	reload(&image, none, 2000 * SECOND);
	strcpy(ruleset->rules[0].name, "other");
	ruleset->rules[0].behavior = REJECT;
	ruleset->rules[0].interval_ns = 10 * SECOND;
	reload(&image, ruleset, 2002 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);

	ruleset->rules[0].behavior = THROTTLING;
	previous = previous_of(image);
	options.previous = &previous;
	options.now_ns = 2003 * SECOND;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(next->rules[0].slot, 1);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "still holds flows of a removed rule"));
	weir_image_free(image);
	weir_image_free(next);
}

RUN_CLAIMS(NULL, NULL)
