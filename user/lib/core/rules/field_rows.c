// SPDX-License-Identifier: GPL-2.0-only
/* The rows of a rule file's fields, their limits and their members. */
#include "rules/field_rows.h"

#include <string.h>

#include "base/util.h"
#include "rules/parse.h"
#include "rules/scalars.h"

#define NS_PER_MS 1000000

/* From one chunk of each flow table (WEIR_CHUNK_BYTES of narrow rows) to 64 Mi flows, which take 2 GB of narrow rows
 * per CPU. Chosen, not derived.
 */
#define FLOWS_PER_CPU_MIN 512
#define FLOWS_PER_CPU_MAX (64u << 20)

/* The longest interval. A wait is always shorter than the rule's interval, whatever this setting is. */
#define OCCUPY_TIMEOUT_MS_MAX 86400000

/* The minimum that is useful for a limit, and the maximum that a count of connections can hold if every place of its
 * table is taken: WEIR_FLOW_WAYS for every two of these, below 2^WEIR_CONNECTION_COUNT_BITS.
 */
#define CONNECTIONS_MIN 1024
#define CONNECTIONS_MAX (1u << 22)
_Static_assert(CONNECTIONS_MAX / 2ull * WEIR_FLOW_WAYS <= WEIR_CONNECTION_COUNT_MASK, "a count must never wrap");
#define CONNECTION_FLOWS_MIN 256
#define CONNECTION_FLOWS_MAX (4ull * WEIR_CONNECTION_FLOW_SETS_MAX)
#define CONNECTION_TIMEOUT_MS_MIN 1000
#define CONNECTION_TIMEOUT_MS_MAX 86400000

/* A day. Chosen, not derived: Sentinel's fields are 32 and 64 bits wide. */
#define BREAKER_MS_MAX 86400000
#define PROBES_MAX 1000000

/* ---- the rows ---- */

#define MEMBER(member) .offset = offsetof(OBJECT, member), .bytes = sizeof(((OBJECT *)NULL)->member)
#define OWN .form = WEIR_FIELD_OWN
#define OWN_NUMBER(member, one) MEMBER(member), .unit = one
#define WORDS(...) ((const char *const[]){__VA_ARGS__})
#define CHOICE(member, names)                                                                                          \
	.form = WEIR_FIELD_CHOICE, MEMBER(member), .unit = 1, .words = names, .word_count = ARRAY_SIZE(names)
#define NUMBERED(member, names) CHOICE(member, names), .has_numbers = true
#define NUMBER(member, one, least, most, hint)                                                                         \
	.form = WEIR_FIELD_NUMBER, MEMBER(member), .unit = one, .low = least, .high = most, .advice = hint
#define COUNT(member, one, least, most, hint)                                                                          \
	.form = WEIR_FIELD_COUNT, MEMBER(member), .unit = one, .low = least, .high = most, .advice = hint
#define BYTES(member, one, least, most, hint)                                                                          \
	.form = WEIR_FIELD_BYTES, MEMBER(member), .unit = one, .low = least, .high = most, .advice = hint
#define SILENCE(class)                                                                                                 \
	NUMBER(connection_timeout_ms[class], 1, CONNECTION_TIMEOUT_MS_MIN, CONNECTION_TIMEOUT_MS_MAX, NULL)

#define ROW(constant, named, ...) {.name = named, __VA_ARGS__},
#define OBJECT struct weir_ruleset_rule
const struct weir_field_row weir_rule_rows[] = {WEIR_RULE_FIELDS(ROW)};
const struct weir_field_row weir_breaker_rows[] = {WEIR_BREAKER_FIELDS(ROW)};
#undef OBJECT
#define OBJECT struct weir_settings
const struct weir_field_row weir_setting_rows[] = {WEIR_SETTINGS(ROW)};

#define NAME(constant, name, ...) name,
const char *const weir_rule_fields[] = {WEIR_RULE_FIELDS(NAME)};
const char *const weir_breaker_field_names[] = {WEIR_BREAKER_FIELDS(NAME)};
const char *const weir_setting_names[] = {WEIR_SETTINGS(NAME)};
const char *const *const weir_connection_timeout_names = weir_setting_names + SETTING_HALF_OPEN_TIMEOUT;

#define NAME_OF_SPECIAL(constant, name, member, part) name,
#define NAME_OF_RANGE(constant, name, member, highest, none, who) name,
const char *const weir_match_field_names[] = {WEIR_MATCH_FIELDS(NAME_OF_SPECIAL, NAME_OF_RANGE)};
const size_t weir_match_field_count = ARRAY_SIZE(weir_match_field_names);

/* ---- members: whole numbers of 1, 4 or 8 bytes, of which the first bytes are the lowest (weir_sizes.h) ---- */

uint64_t weir_member_value(const struct weir_field_row *row, const void *object)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)object + row->offset, row->bytes);
	return value / row->unit;
}

void weir_set_member(const struct weir_field_row *row, void *object, uint64_t value)
{
	value *= row->unit;
	memcpy((char *)object + row->offset, &value, row->bytes);
}

void weir_write_member(struct weir_writer *writer, const struct weir_field_row *row, const void *object)
{
	const uint64_t value = weir_member_value(row, object);

	if (row->form == WEIR_FIELD_CHOICE)
		weir_write_word(writer, row->name, row->words[value < row->word_count ? value : 0]);
	else
		weir_write_number(writer, row->name, value);
}
