// SPDX-License-Identifier: GPL-2.0-only
#include "explain/match_fields.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "program/array.h"
#include "program/copy.h"

/* A table that maps the values of one field to vectors. */
struct table {
	uint32_t field;
	const __u16 *numbers;
	size_t count;
};

int weir_resource_bit(const struct weir_object *object, uint32_t place)
{
	const struct weir_generation *generation = weir_object_generation(object);

	for (uint32_t bit = 0; bit < weir_object_config(object)->resource_count; bit++)
		if (generation->place[bit] == place)
			return (int)bit;
	return -1;
}

/* Whether the bit is set in the vector with this number: 1, 0 or -errno. */
static int has_bit(int vectors_fd, uint32_t number, uint32_t bit)
{
	struct weir_vector vector;

	if (weir_map_look_up(vectors_fd, &number, &vector))
		return -errno;
	return vector.word[bit / 64] >> bit % 64 & 1;
}

/* The number of values of the table's field that the resource accepts, or -errno. Neighbouring values mostly share a
 * vector.
 */
static int64_t count_accepted(int vectors_fd, const struct table *table, uint32_t bit)
{
	int64_t accepted = 0;
	int has = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (i == 0 || table->numbers[i] != table->numbers[i - 1])
			has = has_bit(vectors_fd, table->numbers[i], bit);
		if (has < 0)
			return has;
		accepted += has;
	}
	return accepted;
}

int64_t weir_fields_asked(const struct weir_object *object, uint32_t bit, enum weir_direction direction,
			  uint32_t fields)
{
	const struct weir_classes *classes = &weir_object_generation(object)->classes;
	const int vectors_fd = weir_object_own_map_fd(object, "vectors");
	const struct table tables[] = {{WEIR_MATCH_KIND, &classes->kind[direction][0][0][0],
					sizeof(classes->kind[0]) / sizeof(__u16)},
				       {WEIR_MATCH_TCP_FLAGS, classes->tcp_flags, ARRAY_SIZE(classes->tcp_flags)},
#define FIELD_TABLE(constant, name, member, highest, none, who)                                                        \
	{WEIR_MATCH_##constant, classes->member, ARRAY_SIZE(classes->member)},
				       WEIR_RANGE_FIELDS(FIELD_TABLE)};
	uint32_t asked = fields & (WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION | WEIR_MATCH_INTERFACE);

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		int64_t accepted;

		if (!(fields & tables[i].field))
			continue;
		accepted = count_accepted(vectors_fd, &tables[i], bit);
		if (accepted < 0)
			return accepted;
		if ((size_t)accepted < tables[i].count)
			asked |= tables[i].field;
	}
	return asked;
}

int weir_resource_takes_family(const struct weir_object *object, uint32_t bit, enum weir_direction direction,
			       bool is_ipv6)
{
	const struct weir_classes *classes = &weir_object_generation(object)->classes;
	const struct table table = {
		.numbers = &classes->kind[direction][is_ipv6][0][0],
		.count = sizeof(classes->kind[0][0]) / sizeof(__u16),
	};
	const int64_t accepted = count_accepted(weir_object_own_map_fd(object, "vectors"), &table, bit);

	return accepted < 0 ? (int)accepted : accepted > 0;
}

/* Does the resource at `place` except this other one? 1, 0 or -errno. */
static int excepts(const struct weir_object *object, uint32_t place, uint32_t other)
{
	const uint32_t number = weir_object_generation(object)->except[place];

	return number ? has_bit(weir_object_own_map_fd(object, "vectors"), number, other) : 0;
}

static bool has_place(const volatile struct weir_harness *harness, uint32_t place)
{
	for (uint32_t i = 0; i < harness->resource_count; i++)
		if (harness->resource[i] == place)
			return true;
	return false;
}

/* What is known of a resource that the fields that are known admit. */
struct matched {
	uint32_t place;
	bool is_in, is_out; /* for certain; neither: it depends on fields that are not known */
};

/* In the order of their bits, those that others except come first. `matched` has `count` entries so far. */
static int add_matched(const struct weir_object *object, int64_t asked, uint32_t place, struct matched *matched,
		       uint32_t count)
{
	struct matched *added = &matched[count];

	if (asked < 0)
		return (int)asked;
	*added = (struct matched){.place = place, .is_in = !asked};
	for (uint32_t i = 0; i < count; i++) {
		const int excepted = matched[i].is_out ? 0 : excepts(object, place, matched[i].place);

		if (excepted < 0)
			return excepted;
		added->is_out |= excepted && matched[i].is_in;
		added->is_in &= !excepted;
	}
	return 0;
}

int weir_settle_excepts(const struct weir_sandbox_run *run, enum weir_direction direction, uint32_t unknown)
{
	const struct weir_object *object = run->sandbox->object;
	const volatile struct weir_harness *harness = weir_object_harness(object);
	struct weir_generation *generation = weir_object_generation(object);
	struct matched matched[WEIR_PACKET_RESOURCES_MAX];
	__u16 except[ARRAY_SIZE(generation->except)];
	const uint32_t resources = weir_object_config(object)->resource_count;
	uint32_t count = 0;
	int err;

	if (!unknown || !weir_object_config(object)->has_excepts)
		return 0;
	memcpy(except, generation->except, sizeof(except));
	memset(generation->except, 0, sizeof(except));
	err = weir_sandbox_run_evaluate(run, run->now_ns);
	if (err < 0 || harness->verdict == WEIR_VERDICT_ERROR)
		return err < 0 ? err : 0; /* the resources are tried one by one */
	memcpy(generation->except, except, sizeof(except));
	err = 0;
	for (uint32_t bit = 0; !err && count < ARRAY_SIZE(matched) && bit < resources; bit++)
		if (has_place(harness, generation->place[bit]))
			err = add_matched(object, weir_fields_asked(object, bit, direction, unknown),
					  generation->place[bit], matched, count++);
	for (uint32_t i = 0; !err && i < count; i++)
		if (!matched[i].is_out)
			generation->except[matched[i].place] = 0;
	return err;
}

/* For an outgoing packet, the remote end is its destination. So unless a key part is TURNED, it is read from the
 * packet's other end.
 */
static uint32_t own_key_fields(uint32_t key_fields)
{
	uint32_t own = 0;

	for (uint32_t field = 1; field & WEIR_KEY_ENDS; field <<= 1)
		if (key_fields & field)
			own |= key_fields & WEIR_KEY_TURNED(field) ? field : WEIR_KEY_OTHER_END(field);
	return (key_fields & ~WEIR_KEY_ENDS) | own;
}

uint32_t weir_fields_of_key(const struct weir_rule *rule, enum weir_direction direction)
{
	const uint32_t all_fields = rule->key_fields | WEIR_KEY_LABEL_ENDS(rule->key_fields);
	const uint32_t key_fields = direction == WEIR_DIRECTION_IN ? all_fields : own_key_fields(all_fields);
	uint32_t fields = 0;

#define ADD_PART(constant, name, member, part, form)                                                                   \
	if (key_fields & WEIR_KEY_##constant)                                                                          \
		fields |= WEIR_MATCH_##part;
	WEIR_KEY_FIELDS(ADD_PART)
	return fields;
}
