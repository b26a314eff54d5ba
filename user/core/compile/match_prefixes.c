// SPDX-License-Identifier: GPL-2.0-only
/* Match fields that are prefixes: source and destination. */
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/matching.h"
#include "rules/scalars.h"

struct prefix_use {
	struct weir_prefix prefix;
	uint32_t bit;
};

struct prefix_field {
	enum weir_match_field field;
	size_t prefixes, count; /* offsets in struct weir_match */
};

static const struct prefix_field source_field = {
	WEIR_MATCH_SOURCE,
	offsetof(struct weir_match, source),
	offsetof(struct weir_match, source_count),
};

static const struct prefix_field destination_field = {
	WEIR_MATCH_DESTINATION,
	offsetof(struct weir_match, destination),
	offsetof(struct weir_match, destination_count),
};

/* By family, then address, then length: a prefix comes directly after those that enclose it. */
static int compare_prefix_uses(const void *left, const void *right)
{
	const struct prefix_use *a = left, *b = right;

	return weir_compare_prefixes(&a->prefix, &b->prefix);
}

static bool encloses(const struct weir_prefix *outer, const struct weir_prefix *inner)
{
	unsigned int bytes = outer->bits / 8, bits = outer->bits % 8;

	if (outer->family != inner->family || outer->bits > inner->bits)
		return false;
	if (memcmp(outer->address, inner->address, bytes))
		return false;
	return !bits || (outer->address[bytes] ^ inner->address[bytes]) >> (8 - bits) == 0;
}

static int list_prefixes(const struct matching *matching, const struct prefix_field *field, struct prefix_use **uses,
			 size_t *use_count, struct weir_vector *indifferent)
{
	const struct weir_prefix *prefixes;
	struct prefix_use *use;
	const char *match;
	size_t count, i, bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++) {
		match = (const char *)&weir_match_resource_of(matching, bit)->match;
		prefixes = *(struct weir_prefix *const *)(match + field->prefixes);
		count = *(const size_t *)(match + field->count);
		if (!count)
			weir_vector_add(indifferent, bit);
		for (i = 0; i < count; i++) {
			use = weir_array_add((void **)uses, *use_count, sizeof(*use));
			if (!use)
				return -ENOMEM;
			*use = (struct prefix_use){prefixes[i], bit};
			(*use_count)++;
		}
	}
	if (*use_count)
		qsort(*uses, *use_count, sizeof(**uses), compare_prefix_uses);
	return 0;
}

struct trie {
	struct weir_image_prefix *entries;
	uint32_t count;
};

static int add_entry(struct matching *matching, struct trie *trie, const struct weir_prefix *prefix, uint32_t vector)
{
	struct weir_image_prefix *entry;

	entry = weir_array_add((void **)&trie->entries, trie->count, sizeof(*entry));
	if (!entry)
		return weir_compile_no_memory(matching->diag);
	*entry = (struct weir_image_prefix){*prefix, vector};
	trie->count++;
	return 0;
}

/*
 * The trie returns only the longest prefix, so the vector of each prefix must include the resources of all prefixes
 * that enclose it. In sorted order the enclosing prefixes form a stack.
 */
static int nest_prefixes(struct matching *matching, const struct prefix_use *uses, size_t use_count, uint32_t outside,
			 struct trie *trie)
{
	struct {
		const struct weir_prefix *prefix;
		uint32_t vector;
	} enclosing[130]; /* lengths 0 to 128 */
	struct weir_vector accepting;
	uint32_t parent, number;
	size_t depth = 0, i = 0;
	int err;

	while (i < use_count) {
		const struct weir_prefix *prefix = &uses[i].prefix;

		while (depth && !encloses(enclosing[depth - 1].prefix, prefix))
			depth--;
		parent = depth ? enclosing[depth - 1].vector : outside;
		accepting = matching->image->vectors[parent];
		for (; i < use_count && !weir_compare_prefixes(&uses[i].prefix, prefix); i++)
			weir_vector_add(&accepting, uses[i].bit);
		err = weir_match_number_vector(matching, &accepting, &number);
		/* An entry with the same vector as the enclosing one would only make the trie deeper. */
		if (!err && number != parent)
			err = add_entry(matching, trie, prefix, number);
		if (err)
			return err;
		enclosing[depth].prefix = prefix;
		enclosing[depth++].vector = number;
	}
	return 0;
}

/* Even on failure *trie may hold entries, which the caller owns. */
static int match_prefixes(struct matching *matching, const struct prefix_field *field, uint32_t *ret_outside,
			  struct trie *trie)
{
	_cleanup_(weir_freep) struct prefix_use *uses = NULL;
	struct weir_vector indifferent = {};
	size_t use_count = 0;
	uint32_t outside;
	int err;

	if (list_prefixes(matching, field, &uses, &use_count, &indifferent))
		return weir_compile_no_memory(matching->diag);
	if (!use_count)
		return 0;
	err = weir_match_number_vector(matching, &indifferent, &outside);
	if (err)
		return err;
	matching->image->config.match_fields |= field->field;
	*ret_outside = outside;
	return nest_prefixes(matching, uses, use_count, outside, trie);
}

int weir_match_addresses(struct matching *matching)
{
	struct weir_image *image = matching->image;
	struct trie source = {}, destination = {};
	int err;

	err = match_prefixes(matching, &source_field, &image->source_outside, &source);
	image->source_prefixes = source.entries;
	image->source_prefix_count = source.count;
	if (err)
		return err;
	err = match_prefixes(matching, &destination_field, &image->destination_outside, &destination);
	image->destination_prefixes = destination.entries;
	image->destination_prefix_count = destination.count;
	if (!err && (weir_compile_prefixes(image, source.entries, source.count, image->source_outside,
					   image->config.source_root) ||
		     weir_compile_prefixes(image, destination.entries, destination.count, image->destination_outside,
					   image->config.destination_root)))
		err = weir_compile_no_memory(matching->diag);
	return err;
}
