// SPDX-License-Identifier: GPL-2.0-only
/* Match fields whose values are addresses: for each prefix and each prefix of a set, the resources that accept it. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/matching.h"
#include "rules/scalars.h"

/* A prefix that a match has (no set), or one of a set that it uses. */
struct prefix_use {
	struct weir_prefix prefix;
	uint32_t set; /* NO_SET, or the number of the set among those used */
	uint32_t bit; /* of the resource; of a set's prefix: the class of its label */
};
#define NO_SET UINT32_MAX

/*
 * A set, as the matches of one end use it. Addresses that every match treats alike are of one class: those outside of
 * the set (class 0), those with a label that no match names (1), and those of each label that one does.
 */
struct used_set {
	const struct weir_set *set;
	uint32_t *class_of; /* by label; one class for a set without labels */
	uint32_t class_count;
	struct weir_vector *takes;   /* by class: resources that accept it by a word without '!' ... */
	struct weir_vector *refuses; /* ... and those that do not by one with it */
};

struct prefix_field {
	enum weir_match_field field;
	size_t prefixes, count, sets, set_count; /* offsets in struct weir_match */
};

#define PREFIX_FIELD(constant, member)                                                                                 \
	{                                                                                                              \
		WEIR_MATCH_##constant, offsetof(struct weir_match, member),                                            \
			offsetof(struct weir_match, member##_count), offsetof(struct weir_match, member##_sets),       \
			offsetof(struct weir_match, member##_set_count)                                                \
	}
static const struct prefix_field source_field = PREFIX_FIELD(SOURCE, source);
static const struct prefix_field destination_field = PREFIX_FIELD(DESTINATION, destination);

/* What the resources ask of one end of a packet. */
struct addresses {
	struct prefix_use *uses; /* sorted, enclosing prefixes first */
	size_t use_count;
	struct used_set *sets;
	size_t set_count;
	struct weir_vector indifferent; /* no prefix, and no set without '!' */
};

static void addresses_free(struct addresses *addresses)
{
	for (size_t i = 0; i < addresses->set_count; i++) {
		free(addresses->sets[i].class_of);
		free(addresses->sets[i].takes);
		free(addresses->sets[i].refuses);
	}
	free(addresses->sets);
	free(addresses->uses);
}

static int compare_prefix_uses(const void *left, const void *right)
{
	const struct prefix_use *a = left, *b = right;

	return weir_compare_prefixes(&a->prefix, &b->prefix);
}

static struct used_set *find_used(struct addresses *addresses, const struct weir_set *set)
{
	struct used_set *used;

	for (size_t i = 0; i < addresses->set_count; i++)
		if (addresses->sets[i].set == set)
			return &addresses->sets[i];
	used = weir_array_add((void **)&addresses->sets, addresses->set_count, sizeof(*used));
	if (!used)
		return NULL;
	*used = (struct used_set){.set = set, .class_count = 2};
	addresses->set_count++;
	used->class_of = calloc(set->label_count + 1, sizeof(*used->class_of));
	for (size_t i = 0; used->class_of && i <= set->label_count; i++)
		used->class_of[i] = 1;
	return used->class_of ? used : NULL;
}

/* The sets that this end's matches use, and the classes of addresses that they distinguish. */
static int list_sets(const struct matching *matching, const struct prefix_field *field, struct addresses *addresses)
{
	for (size_t bit = 0; bit < matching->ruleset->resource_count; bit++) {
		const struct weir_ruleset_resource *resource = weir_match_resource_of(matching, bit);
		const char *match = (const char *)&resource->match;
		const struct weir_set_use *uses = *(struct weir_set_use *const *)(match + field->sets);

		for (size_t i = 0; i < *(const size_t *)(match + field->set_count); i++) {
			const struct weir_set *set = &matching->ruleset->sets[uses[i].set];
			struct used_set *used = find_used(addresses, set);
			uint32_t label;

			if (!used)
				return -ENOMEM;
			if (!uses[i].label[0])
				continue;
			label = weir_set_find_label(set, uses[i].label);
			if (label == WEIR_NO_LABEL)
				weir_diag_warning(matching->diag, &resource->place, NULL, NULL,
						  "resource '%s': no prefix of set '%s' has the label '%s' now",
						  resource->name, uses[i].name, uses[i].label);
			else if (used->class_of[label] == 1)
				used->class_of[label] = used->class_count++;
		}
	}
	for (size_t i = 0; i < addresses->set_count; i++) {
		struct used_set *used = &addresses->sets[i];

		used->takes = calloc(used->class_count, sizeof(*used->takes));
		used->refuses = calloc(used->class_count, sizeof(*used->refuses));
		if (!used->takes || !used->refuses)
			return -ENOMEM;
	}
	return 0;
}

static int add_use(struct addresses *addresses, const struct weir_prefix *prefix, uint32_t set, uint32_t bit)
{
	struct prefix_use *use = weir_array_add((void **)&addresses->uses, addresses->use_count, sizeof(*use));

	if (!use)
		return -ENOMEM;
	*use = (struct prefix_use){*prefix, set, bit};
	addresses->use_count++;
	return 0;
}

/* The resource of a bit takes, or refuses, the classes of a set that the use names. */
static void note_set_use(struct used_set *used, const struct weir_set_use *use, uint32_t bit)
{
	struct weir_vector *vectors = use->excepts ? used->refuses : used->takes;
	const uint32_t label = use->label[0] ? weir_set_find_label(used->set, use->label) : WEIR_NO_LABEL;

	for (uint32_t class = 1; class < used->class_count; class ++)
		if (!use->label[0] || (label != WEIR_NO_LABEL && used->class_of[label] == class))
			weir_vector_add(&vectors[class], bit);
}

static int list_prefixes(const struct matching *matching, const struct prefix_field *field, struct addresses *addresses)
{
	size_t sorted = 1;

	for (size_t bit = 0; bit < matching->ruleset->resource_count; bit++) {
		const char *match = (const char *)&weir_match_resource_of(matching, bit)->match;
		const struct weir_prefix *prefixes = *(struct weir_prefix *const *)(match + field->prefixes);
		const struct weir_set_use *uses = *(struct weir_set_use *const *)(match + field->sets);
		const size_t count = *(const size_t *)(match + field->count);
		bool is_indifferent = !count;

		for (size_t i = 0; i < *(const size_t *)(match + field->set_count); i++) {
			struct used_set *used = find_used(addresses, &matching->ruleset->sets[uses[i].set]);

			if (!used)
				return -ENOMEM;
			is_indifferent &= uses[i].excepts;
			note_set_use(used, &uses[i], bit);
		}
		if (is_indifferent)
			weir_vector_add(&addresses->indifferent, bit);
		for (size_t i = 0; i < count; i++)
			if (add_use(addresses, &prefixes[i], NO_SET, bit))
				return -ENOMEM;
	}
	for (size_t i = 0; i < addresses->set_count; i++) {
		const struct used_set *used = &addresses->sets[i];

		for (size_t k = 0; k < used->set->entry_count; k++) {
			const struct weir_set_entry *entry = &used->set->entries[k];
			const uint32_t label = entry->label == WEIR_NO_LABEL ? 0 : entry->label;

			if (add_use(addresses, &entry->prefix, i, used->class_of[label]))
				return -ENOMEM;
		}
	}
	/* The prefixes of a set are sorted, and most matches use one set alone. */
	while (sorted < addresses->use_count &&
	       compare_prefix_uses(&addresses->uses[sorted - 1], &addresses->uses[sorted]) <= 0)
		sorted++;
	if (sorted < addresses->use_count)
		qsort(addresses->uses, addresses->use_count, sizeof(*addresses->uses), compare_prefix_uses);
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

/* A prefix, and what holds for its addresses that no longer prefix covers. */
struct level {
	const struct weir_prefix *prefix;
	uint32_t vector;
	struct weir_vector plain; /* resources with a prefix that covers these addresses */
	uint32_t *classes;	  /* by set, owned by the walk */
};

/* The resources that accept an address. A set's longest prefix decides its label, so that classes do not add up as
 * prefixes do.
 */
static struct weir_vector accepting_of(const struct addresses *addresses, const struct level *level)
{
	struct weir_vector accepting = addresses->indifferent;

	weir_vector_or(&accepting, &level->plain);
	for (size_t i = 0; i < addresses->set_count; i++)
		weir_vector_or(&accepting, &addresses->sets[i].takes[level->classes[i]]);
	for (size_t i = 0; i < addresses->set_count; i++)
		weir_vector_subtract(&accepting, &addresses->sets[i].refuses[level->classes[i]]);
	return accepting;
}

#define LEVELS 131 /* what is in no prefix, and lengths 0 to 128, of which one is below another */

/*
 * The trie returns only the longest prefix, so the vector of each prefix must include what all prefixes that enclose it
 * say. In sorted order the enclosing prefixes form a stack.
 */
static int nest_prefixes(struct matching *matching, const struct addresses *addresses, uint32_t outside,
			 struct trie *trie)
{
	_cleanup_(weir_freep) struct level *levels = calloc(LEVELS, sizeof(*levels));
	_cleanup_(weir_freep) uint32_t *classes = calloc(LEVELS * addresses->set_count + 1, sizeof(*classes));
	size_t depth = 0, i = 0;
	int err;

	if (!levels || !classes)
		return weir_compile_no_memory(matching->diag);
	for (size_t k = 0; k < LEVELS; k++)
		levels[k].classes = classes + k * addresses->set_count;
	levels[0].vector = outside;
	while (i < addresses->use_count) {
		const struct prefix_use *uses = addresses->uses;
		const struct weir_prefix *prefix = &uses[i].prefix;
		struct level *level;
		struct weir_vector accepting;

		while (depth && !weir_prefix_encloses(levels[depth].prefix, prefix))
			depth--;
		level = &levels[depth + 1];
		level->prefix = prefix;
		level->plain = levels[depth].plain;
		memcpy(level->classes, levels[depth].classes, addresses->set_count * sizeof(*classes));
		for (; i < addresses->use_count && !weir_compare_prefixes(&uses[i].prefix, prefix); i++) {
			if (uses[i].set == NO_SET)
				weir_vector_add(&level->plain, uses[i].bit);
			else
				level->classes[uses[i].set] = uses[i].bit;
		}
		accepting = accepting_of(addresses, level);
		err = weir_match_number_vector(matching, &accepting, &level->vector);
		/* An entry with the same vector as the enclosing one would only make the trie deeper. */
		if (!err && level->vector != levels[depth].vector)
			err = add_entry(matching, trie, prefix, level->vector);
		if (err)
			return err;
		depth++;
	}
	return 0;
}

/* Even on failure *trie may hold entries, which the caller owns. */
static int match_prefixes(struct matching *matching, const struct prefix_field *field, uint32_t *ret_outside,
			  struct trie *trie)
{
	_cleanup_(addresses_free) struct addresses addresses = {};
	uint32_t outside;
	int err;

	if (list_sets(matching, field, &addresses) || list_prefixes(matching, field, &addresses))
		return weir_compile_no_memory(matching->diag);
	if (!addresses.use_count && !addresses.set_count)
		return 0;
	err = weir_match_number_vector(matching, &addresses.indifferent, &outside);
	if (err)
		return err;
	matching->image->config.match_fields |= field->field;
	*ret_outside = outside;
	return nest_prefixes(matching, &addresses, outside, trie);
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
