// SPDX-License-Identifier: GPL-2.0-only
/* The tables of fields (include/weir_fields.h) against docs/matching.md, which has to name each of them. */
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "rules/scalars.h"

/* Tests run at the top of the tree (tests/run). */
#define PAGE "docs/matching.md"

/* A page, or one section of it: from "## heading" to the next. */
static char *read_section(const char *heading)
{
	FILE *file = fopen(PAGE, "r");
	char *text = NULL, *begin, *end, line[64];
	size_t bytes = 0;

	assert_non_null(file);
	assert_true(getdelim(&text, &bytes, '\0', file) > 0);
	fclose(file);
	snprintf(line, sizeof(line), "\n## %s\n", heading);
	begin = strstr(text, line);
	assert_non_null(begin);
	end = strstr(begin + strlen(line), "\n## ");
	if (end)
		*end = '\0';
	begin = strdup(begin);
	free(text);
	assert_non_null(begin);
	return begin;
}

static void assert_named(const char *section, const char *name)
{
	char word[64];

	snprintf(word, sizeof(word), "`%s`", name);
	if (!strstr(section, word))
		fail_msg("%s does not name %s", PAGE, word);
}

/* ---- the match ---- */

#define NAME_OF_SPECIAL(constant, name, member, part) name,
#define NAME_OF_RANGE(constant, name, member, highest, none, who) name,
static const char *const match_names[] = {WEIR_MATCH_FIELDS(NAME_OF_SPECIAL, NAME_OF_RANGE)};

CLAIM(the_page_names_every_field_of_a_match)
{
	_cleanup_(weir_freep) char *section = read_section("match");

	for (size_t i = 0; i < ARRAY_SIZE(match_names); i++)
		assert_named(section, match_names[i]);
}

/* "0 to 4095" stands in the row of the field. */
CLAIM(the_page_says_how_large_the_numbers_of_a_match_may_be)
{
	static const struct {
		const char *name;
		unsigned int highest;
	} ranges[] = {
#define RANGE(constant, name, member, highest, none, who) {name, highest},
		WEIR_RANGE_FIELDS(RANGE)};
	_cleanup_(weir_freep) char *section = read_section("match");
	char word[64];

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		const char *row, *end, *bounds;

		snprintf(word, sizeof(word), "`%s`", ranges[i].name);
		row = strstr(section, word);
		assert_non_null(row);
		end = strchr(row, '\n');
		snprintf(word, sizeof(word), "0 to %u,", ranges[i].highest);
		bounds = strstr(row, word);
		if (!bounds || bounds > end)
			fail_msg("%s: the row of '%s' does not say '%s'", PAGE, ranges[i].name, word);
	}
}

/* ---- the flow key ---- */

CLAIM(the_page_names_every_field_of_a_flow_key)
{
	_cleanup_(weir_freep) char *section = read_section("flow");

	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++)
		assert_named(section, weir_key_field_names[bit]);
}

CLAIM(every_field_of_a_flow_key_is_read_by_its_name)
{
	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++) {
		struct weir_refusal refusal;
		struct weir_flow flow = {};

		assert_int_equal(weir_parse_flow_field(weir_key_field_names[bit], 0, &flow, &refusal), 0);
		assert_int_equal(flow.fields, 1u << bit);
	}
}

/* For a misspelled name the message suggests the nearest one; if none is near, it lists them all. */
CLAIM(a_wrong_field_of_a_flow_key_is_answered_with_what_there_is)
{
	struct weir_refusal refusal;
	struct weir_flow flow = {};

	assert_int_not_equal(weir_parse_flow_field("sorce", 0, &flow, &refusal), 0);
	assert_string_equal(refusal.hint, "did you mean 'source'?");
	assert_int_not_equal(weir_parse_flow_field("key", 0, &flow, &refusal), 0);
	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++)
		assert_non_null(strstr(refusal.hint, weir_key_field_names[bit]));
	assert_true(strlen(refusal.hint) + 1 < sizeof(refusal.hint));
}

RUN_CLAIMS(NULL, NULL)
