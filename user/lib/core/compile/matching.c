// SPDX-License-Identifier: GPL-2.0-only
/* Match fields whose values are numbers, and the small ones: TCP flags, family, fragment and protocol. */
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/matching.h"
#include "rules/scalars.h"

/* ---- vectors ---- */

const struct weir_ruleset_resource *weir_match_resource_of(const struct matching *matching, size_t bit)
{
	return &matching->ruleset->resources[matching->image->place[bit]];
}

static size_t hash_vector(const struct weir_vector *vector)
{
	uint64_t hash = vector->summary;
	unsigned int i;

	for (uint64_t bits = vector->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		hash = (hash ^ vector->word[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash & (TABLE_SIZE - 1);
}

int weir_match_number_vector(struct matching *matching, const struct weir_vector *vector, uint32_t *ret_number)
{
	struct weir_image *image = matching->image;
	size_t at = hash_vector(vector);
	struct weir_vector *added;

	for (; matching->table[at]; at = (at + 1) & (TABLE_SIZE - 1)) {
		if (memcmp(&image->vectors[matching->table[at] - 1], vector, sizeof(*vector)) == 0) {
			*ret_number = matching->table[at] - 1;
			return 0;
		}
	}
	if (image->vector_count == WEIR_VECTORS_MAX)
		return weir_diag_error(matching->diag, NULL, NULL, "use fewer, or less overlapping, conditions",
				       "the resources' conditions make more than %d different sets of resources",
				       WEIR_VECTORS_MAX);
	added = weir_array_add((void **)&image->vectors, image->vector_count, sizeof(*vector));
	if (!added)
		return weir_compile_no_memory(matching->diag);
	*added = *vector;
	*ret_number = image->vector_count++;
	matching->table[at] = image->vector_count;
	return 0;
}

/* ---- numbers ---- */

/* ---- fields whose values are numbers: ports, VLAN, ICMP type, length ---- */

struct range_field {
	enum weir_match_field field;
	size_t ranges, count; /* offsets in struct weir_match */
	size_t classes;	      /* offset in struct weir_classes */
	uint32_t values;      /* 0 to values - 1; the class after these is for packets without such a value */
};

#define RANGE_FIELD(constant, name, member, highest, none, who)                                                        \
	{                                                                                                              \
		.field = WEIR_MATCH_##constant,                                                                        \
		.ranges = offsetof(struct weir_match, member),                                                         \
		.count = offsetof(struct weir_match, member##_count),                                                  \
		.classes = offsetof(struct weir_classes, member),                                                      \
		.values = (none),                                                                                      \
	},

static const struct range_field range_fields[] = {WEIR_RANGE_FIELDS(RANGE_FIELD)};

/* One end of one range: from this value on, one more, or one fewer, range of the resource is open. */
struct edge {
	uint32_t value;
	uint16_t bit;
	int8_t step;
};

struct edges {
	struct edge *items;
	size_t count;
};

static int compare_edges(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	return (a->value > b->value) - (a->value < b->value);
}

static int add_edge(struct edges *edges, uint32_t value, size_t bit, int step)
{
	struct edge *edge = weir_array_add((void **)&edges->items, edges->count, sizeof(*edge));

	if (!edge)
		return -ENOMEM;
	*edge = (struct edge){.value = value, .bit = bit, .step = step};
	edges->count++;
	return 0;
}

/* The edges of all resources, sorted, and the resources without a condition on this field. */
static int list_edges(const struct matching *matching, const struct range_field *field, struct edges *edges,
		      struct weir_vector *indifferent)
{
	const struct weir_range *ranges;
	const char *match;
	size_t count, i, bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++) {
		match = (const char *)&weir_match_resource_of(matching, bit)->match;
		ranges = *(struct weir_range *const *)(match + field->ranges);
		count = *(const size_t *)(match + field->count);
		if (!count)
			weir_vector_add(indifferent, bit);
		for (i = 0; i < count; i++) {
			if (add_edge(edges, ranges[i].low, bit, 1) || add_edge(edges, ranges[i].high + 1, bit, -1))
				return -ENOMEM;
		}
	}
	if (edges->count)
		qsort(edges->items, edges->count, sizeof(*edges->items), compare_edges);
	return 0;
}

/* Walk over the values from edge to edge; all values between two edges have the same vector. */
static int sweep(struct matching *matching, const struct range_field *field, const struct edges *edges,
		 const struct weir_vector *indifferent)
{
	uint16_t *classes = (uint16_t *)((char *)matching->image->classes + field->classes);
	uint32_t open[WEIR_RESOURCES_MAX] = {}; /* a count, since the ranges of a resource may overlap */
	struct weir_vector accepting = *indifferent;
	uint32_t value = 0, end, number;
	const struct edge *edge = edges->items, *last = edges->items + edges->count;
	int err;

	while (value < field->values) {
		for (; edge < last && edge->value == value; edge++) {
			open[edge->bit] += edge->step;
			if (open[edge->bit])
				weir_vector_add(&accepting, edge->bit);
			else
				weir_vector_remove(&accepting, edge->bit);
		}
		err = weir_match_number_vector(matching, &accepting, &number);
		if (err)
			return err;
		end = edge < last && edge->value < field->values ? edge->value : field->values;
		while (value < end)
			classes[value++] = number;
	}
	err = weir_match_number_vector(matching, indifferent, &number);
	if (err)
		return err;
	classes[field->values] = number;
	return 0;
}

static int match_range(struct matching *matching, const struct range_field *field)
{
	_cleanup_(weir_freep) struct edge *owner = NULL;
	struct weir_vector indifferent = {};
	struct edges edges = {};
	int err;

	err = list_edges(matching, field, &edges, &indifferent);
	owner = edges.items;
	if (err)
		return weir_compile_no_memory(matching->diag);
	if (!edges.count)
		return 0;
	matching->image->config.match_fields |= field->field;
	return sweep(matching, field, &edges, &indifferent);
}

int weir_match_ranges(struct matching *matching)
{
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(range_fields); i++)
		err = match_range(matching, &range_fields[i]);
	return err;
}

/* ---- TCP flags ---- */

static bool accepts_flags(const struct weir_match *match, unsigned int flags)
{
	size_t i;

	for (i = 0; i < match->tcp_flags_count; i++) {
		if ((flags & match->tcp_flags[i].set) == match->tcp_flags[i].set &&
		    !(flags & match->tcp_flags[i].clear))
			return true;
	}
	return !match->tcp_flags_count;
}

int weir_match_tcp_flags(struct matching *matching)
{
	const struct weir_ruleset *ruleset = matching->ruleset;
	unsigned int flags;
	bool is_used = false;
	uint32_t number;
	size_t bit;
	int err;

	for (bit = 0; bit < ruleset->resource_count; bit++)
		is_used |= ruleset->resources[bit].match.tcp_flags_count > 0;
	if (!is_used)
		return 0;
	matching->image->config.match_fields |= WEIR_MATCH_TCP_FLAGS;
	for (flags = 0; flags <= WEIR_BYTE_NONE; flags++) {
		struct weir_vector accepting = {};

		for (bit = 0; bit < ruleset->resource_count; bit++) {
			const struct weir_match *match = &weir_match_resource_of(matching, bit)->match;

			if (flags == WEIR_BYTE_NONE ? !match->tcp_flags_count : accepts_flags(match, flags))
				weir_vector_add(&accepting, bit);
		}
		err = weir_match_number_vector(matching, &accepting, &number);
		if (err)
			return err;
		matching->image->classes->tcp_flags[flags] = number;
	}
	return 0;
}

/* ---- direction, family, fragment and protocol: four small fields in one table ---- */

struct kinds {
	struct weir_vector direction[WEIR_DIRECTIONS], family[2], fragment[WEIR_FRAGMENT_KINDS], protocol[256];
};

static void list_kinds(const struct matching *matching, struct kinds *kinds)
{
	const struct weir_match *match;
	unsigned int value;
	size_t bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++) {
		match = &weir_match_resource_of(matching, bit)->match;
		if (weir_match_directions(match) & WEIR_MATCHES_IN)
			weir_vector_add(&kinds->direction[WEIR_DIRECTION_IN], bit);
		if (weir_match_directions(match) & WEIR_MATCHES_OUT)
			weir_vector_add(&kinds->direction[WEIR_DIRECTION_OUT], bit);
		/* A resource for both directions already counted the packet at ingress. */
		if (weir_match_directions(match) == WEIR_MATCHES_OUT)
			weir_vector_add(&kinds->direction[WEIR_DIRECTION_FORWARDED], bit);
		for (value = 0; value < 2; value++) {
			if (!match->families || match->families >> value & 1)
				weir_vector_add(&kinds->family[value], bit);
		}
		for (value = 0; value < WEIR_FRAGMENT_KINDS; value++) {
			if (!match->fragments || match->fragments >> value & 1)
				weir_vector_add(&kinds->fragment[value], bit);
		}
		for (value = 0; value < 256; value++) {
			if (!match->has_protocol || match->protocol[value / 8] >> value % 8 & 1)
				weir_vector_add(&kinds->protocol[value], bit);
		}
	}
}

static bool has_kind_conditions(const struct weir_ruleset *ruleset)
{
	size_t i;

	for (i = 0; i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;

		if (match->families || match->fragments || match->has_protocol ||
		    weir_match_directions(match) != WEIR_MATCHES_IN)
			return true;
	}
	return false;
}

static void note_directions(struct matching *matching)
{
	struct weir_config *config = &matching->image->config;

	for (size_t i = 0; i < matching->ruleset->resource_count; i++) {
		const uint8_t directions = weir_match_directions(&matching->ruleset->resources[i].match);

		config->limits_out |= directions != WEIR_MATCHES_IN;
		config->limits_both |= directions == WEIR_MATCHES_BOTH;
	}
}

int weir_match_kind(struct matching *matching)
{
	const struct weir_config *config = &matching->image->config;
	_cleanup_(weir_freep) struct kinds *kinds = NULL;
	struct weir_classes *classes = matching->image->classes;
	__u16 *numbers = &classes->kind[0][0][0][0];
	struct weir_vector accepting;
	unsigned int i, directions;
	uint32_t number = 0;
	int err;

	note_directions(matching);
	if (!has_kind_conditions(matching->ruleset))
		return 0;
	kinds = calloc(1, sizeof(*kinds));
	if (!kinds)
		return weir_compile_no_memory(matching->diag);
	directions = config->limits_out ? WEIR_DIRECTIONS : 1; /* otherwise the other directions are never looked up */
	list_kinds(matching, kinds);
	matching->image->config.match_fields |= WEIR_MATCH_KIND;
	for (i = 0; i < directions * sizeof(classes->kind[0]) / sizeof(*numbers); i++) {
		accepting = kinds->direction[i / 256 / WEIR_FRAGMENT_KINDS / 2];
		weir_vector_and(&accepting, &kinds->family[i / 256 / WEIR_FRAGMENT_KINDS % 2]);
		weir_vector_and(&accepting, &kinds->fragment[i / 256 % WEIR_FRAGMENT_KINDS]);
		weir_vector_and(&accepting, &kinds->protocol[i % 256]);
		err = weir_match_number_vector(matching, &accepting, &number);
		if (err)
			return err;
		numbers[i] = number;
	}
	return 0;
}
