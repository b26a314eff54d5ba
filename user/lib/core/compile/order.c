// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which bit of the vectors belongs to which resource? The program reads a word of 64 resources if every field accepts
 * at least one of its resources. So resources with similar conditions get neighbouring bits: they are sorted by their
 * conditions, one field after the other. The vectors of different fields then have few words in common, however many
 * resources there are. In the order of a file that lists the services of one customer after the other, they would have
 * all words in common.
 *
 * Before that, a resource comes after those that it excepts, whose bits the program sees first.
 */
#include "compile/build_steps.h"

#include <string.h>

#include "base/util.h"

/* Up to this number there is a single word, and nothing to gain. */
#define ONE_WORD_RESOURCES 64u

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Compare lists by their first entries, which stand for the whole lists; a resource without condition comes first. */
static int compare_first_prefixes(const struct weir_prefix *a, size_t a_count, const struct weir_prefix *b,
				  size_t b_count)
{
	int order = compare_numbers(a_count > 0, b_count > 0);

	if (order || !a_count)
		return order;
	order = compare_numbers(a->family, b->family);
	if (!order)
		order = memcmp(a->address, b->address, sizeof(a->address));
	return order ? order : compare_numbers(a->bits, b->bits);
}

static int compare_first_ranges(const struct weir_range *a, size_t a_count, const struct weir_range *b, size_t b_count)
{
	int order = compare_numbers(a_count > 0, b_count > 0);

	if (order || !a_count)
		return order;
	order = compare_numbers(a->low, b->low);
	return order ? order : compare_numbers(a->high, b->high);
}

static uint32_t first_flags(const struct weir_match *match)
{
	return match->tcp_flags_count ? 1u << 16 | match->tcp_flags[0].set << 8 | match->tcp_flags[0].clear : 0;
}

#define COMPARE_PREFIXES(name) compare_first_prefixes(a->name, a->name##_count, b->name, b->name##_count)
#define COMPARE_RANGES(name) compare_first_ranges(a->name, a->name##_count, b->name, b->name##_count)

/* Fields that distinguish many resources come first. */
static int compare_matches(const struct weir_match *a, const struct weir_match *b)
{
	int order = COMPARE_PREFIXES(destination);

	if (!order)
		order = COMPARE_PREFIXES(source);
	if (!order)
		order = COMPARE_RANGES(vlan);
	if (!order)
		order = COMPARE_RANGES(destination_port);
	if (!order)
		order = COMPARE_RANGES(source_port);
	if (!order)
		order = compare_numbers(a->interface_count > 0, b->interface_count > 0);
	if (!order && a->interface_count)
		order = strcmp(a->interface[0], b->interface[0]);
	if (!order)
		order = COMPARE_RANGES(icmp_type);
	if (!order)
		order = COMPARE_RANGES(length);
	if (!order)
		order = compare_numbers(first_flags(a), first_flags(b));
#define ALSO_COMPARE(constant, name, member, highest, none, who)                                                       \
	if (!order)                                                                                                    \
		order = COMPARE_RANGES(member);
	WEIR_RANGE_FIELDS(ALSO_COMPARE) /* the fields not compared above */
	if (!order)
		order = memcmp(a->protocol, b->protocol, sizeof(a->protocol));
	if (!order)
		order = compare_numbers(a->families, b->families);
	return order ? order : compare_numbers(a->fragments, b->fragments);
}

struct ranked {
	const struct weir_ruleset_resource *resources;
	uint16_t *rank; /* by place: 1 + the length of the longest chain of excepted resources; 0: not known yet */
};

/* There are no circles. */
static uint16_t rank_of(struct ranked *ranked, size_t place)
{
	const struct weir_match *match = &ranked->resources[place].match;
	uint16_t rank = 1;

	if (ranked->rank[place])
		return ranked->rank[place];
	for (size_t i = 0; i < match->except_count; i++) {
		const uint16_t above = 1 + rank_of(ranked, match->except[i].resource);

		if (above > rank)
			rank = above;
	}
	return ranked->rank[place] = rank;
}

static int compare_places(const void *left, const void *right, void *data)
{
	const struct ranked *ranked = data;
	const uint16_t *a = left, *b = right;
	int order = compare_numbers(ranked->rank[*a], ranked->rank[*b]);

	if (!order)
		order = compare_matches(&ranked->resources[*a].match, &ranked->resources[*b].match);
	return order ? order : compare_numbers(*a, *b);
}

int weir_compile_order(const struct weir_ruleset *ruleset, struct weir_image *image)
{
	size_t count = ruleset->resource_count, i;
	_cleanup_(weir_freep) uint16_t *rank = calloc(count + 1, sizeof(*rank));
	struct ranked ranked = {ruleset->resources, rank};
	bool has_excepts = false;

	image->place = calloc(count + 1, sizeof(*image->place));
	image->bit = calloc(count + 1, sizeof(*image->bit));
	if (!image->place || !image->bit || !rank)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		image->place[i] = i;
		has_excepts |= rank_of(&ranked, i) > 1;
	}
	if (count > ONE_WORD_RESOURCES || has_excepts)
		qsort_r(image->place, count, sizeof(*image->place), compare_places, &ranked);
	for (i = 0; i < count; i++)
		image->bit[image->place[i]] = i;
	return 0;
}
