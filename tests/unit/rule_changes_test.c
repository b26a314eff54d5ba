// SPDX-License-Identifier: GPL-2.0-only
/* What a reload takes away, changes and adds. */
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "compile/forecast.h"

static struct weir_rule_info rule(const char *name, uint32_t place, uint64_t threshold_micro)
{
	struct weir_rule_info info = {.state = WEIR_SLOT_USED, .place = place, .threshold_micro = threshold_micro};

	snprintf(info.name, sizeof(info.name), "%s", name);
	snprintf(info.resource_name, sizeof(info.resource_name), "%.*s", (int)strcspn(name, "#"), name);
	return info;
}

/* "-gone ~other +new", in the order of the changes. */
static void assert_changes(const struct weir_rule_info *before, uint32_t before_slots,
			   const struct weir_rule_info *after, uint32_t after_slots, const char *wanted,
			   const char *renumbered)
{
	_cleanup_(weir_changes_free) struct weir_changes changes = {};
	const char *resource;
	char text[512] = "";

	assert_int_equal(weir_rule_changes_find(before, before_slots, after, after_slots, &changes), 0);
	for (size_t i = 0; i < changes.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c%s", i ? " " : "",
			 "-~+"[changes.all[i].kind], changes.all[i].name);
	assert_string_equal(text, wanted);
	resource = weir_rule_changes_renumber(&changes, after, after_slots);
	assert_string_equal(resource ? resource : "", renumbered);
}

CLAIM(each_rule_is_reported_once_in_the_order_of_its_file)
{
	const struct weir_rule_info before[] = {rule("z", 0, 1), rule("b", 3, 2), rule("a", 1, 3), rule("m", 2, 4)};
	const struct weir_rule_info after[] = {rule("x", 1, 1), rule("m", 2, 4), rule("b", 0, 5)};

	assert_changes(before, 4, after, 3, "-z -a ~b +x", "");
	assert_changes(before, 4, before, 4, "", "");
	assert_changes(before, 4, NULL, 0, "-z -a -m -b", "");
	assert_changes(NULL, 0, after, 3, "", "");
}

CLAIM(what_a_load_decides_is_no_change)
{
	struct weir_rule_info before = rule("a", 0, 1), after = before;

	after.place = 7;
	after.spec = 3;
	after.resource_slot = 2;
	after.threshold_word = 99;
	after.free_after_ns = after.flows_until_ns = 1;
	after.storage = WEIR_STORAGE_WIDE;
	assert_changes(&before, 1, &after, 1, "", "");
	after.observes = 1;
	assert_changes(&before, 1, &after, 1, "~a", "");
}

CLAIM(shadows_and_slots_that_are_free_are_no_rules)
{
	struct weir_rule_info before[] = {rule("a", 0, 1), rule("meter", 1, 1), rule("gone", 2, 1)};

	before[1].is_shadow = 1;
	before[2].state = WEIR_SLOT_COOLING;
	assert_changes(before, 3, before, 1, "", "");
}

/* dns#1 was the rule that is dns#2 now. */
CLAIM(rules_without_names_that_move_on_are_noticed)
{
	const struct weir_rule_info before[] = {rule("dns#1", 0, 5), rule("web#1", 1, 1)};
	const struct weir_rule_info after[] = {rule("dns#1", 0, 9), rule("dns#2", 1, 5), rule("web#1", 2, 1)};
	const struct weir_rule_info appended[] = {rule("dns#1", 0, 5), rule("dns#2", 1, 7), rule("web#1", 2, 1)};
	const struct weir_rule_info other[] = {rule("dns#1", 0, 6), rule("web#1", 1, 1), rule("web#2", 2, 1)};

	assert_changes(before, 2, after, 3, "~dns#1 +dns#2", "dns");
	assert_changes(after, 3, before, 2, "-dns#2 ~dns#1", "dns");
	assert_changes(before, 2, appended, 3, "+dns#2", "");
	assert_changes(before, 2, other, 3, "~dns#1 +web#2", "");
}

RUN_CLAIMS(NULL, NULL)
