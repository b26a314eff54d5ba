/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the compiler, private to user/core/compile*.c. weir_image_build calls them in this
 * order on a zeroed image; each fills its share of it, and weir_image_free frees whatever is there.
 */
#ifndef WEIR_COMPILE_PARTS_H
#define WEIR_COMPILE_PARTS_H

#include <errno.h>

#include "compile.h"

/* Classes, vectors, prefixes, interfaces, and what the program's configuration says of them. */
int weir_compile_match(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		       struct weir_image *image, struct weir_diag *diag);

/* packet_rules_max and packet_resources_max; refuses what exceeds them. Needs the match and the rule
 * lists of image->resources.
 */
int weir_compile_meet(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag);

/* Rules with their storage, timing, slot and threshold, and the descriptions of the instance. */
int weir_compile_slots(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		       struct weir_image *image, struct weir_diag *diag);

static inline int weir_compile_no_memory(struct weir_diag *diag)
{
	return weir_diag_fail(diag, ENOMEM, NULL, "cannot compile the rules");
}

/* ---- sets of resources ---- */

/* The number of the lowest bit. Loops over a set go `for (bits = set; bits; bits &= bits - 1)`. */
static inline unsigned int weir_lowest_bit(uint64_t bits)
{
	return (unsigned int)__builtin_ctzll(bits);
}

static inline void weir_vector_add(struct weir_vector *set, size_t resource)
{
	set->word[resource / 64] |= 1ull << resource % 64;
	set->summary |= 1ull << resource / 64;
}

static inline void weir_vector_remove(struct weir_vector *set, size_t resource)
{
	set->word[resource / 64] &= ~(1ull << resource % 64);
	if (!set->word[resource / 64])
		set->summary &= ~(1ull << resource / 64);
}

static inline bool weir_vector_has(const struct weir_vector *set, size_t resource)
{
	return set->word[resource / 64] >> resource % 64 & 1;
}

/* Words beyond the summary are zero, so that vectors can be compared as memory. */
static inline void weir_vector_and(struct weir_vector *set, const struct weir_vector *other)
{
	unsigned int i;

	for (uint64_t bits = set->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		set->word[i] &= other->word[i];
		if (!set->word[i])
			set->summary &= ~(1ull << i);
	}
}

static inline void weir_vector_or(struct weir_vector *set, const struct weir_vector *other)
{
	unsigned int i;

	for (uint64_t bits = other->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		set->word[i] |= other->word[i];
	}
	set->summary |= other->summary;
}

static inline void weir_vector_subtract(struct weir_vector *set, const struct weir_vector *other)
{
	unsigned int i;

	for (uint64_t bits = set->summary & other->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		set->word[i] &= ~other->word[i];
		if (!set->word[i])
			set->summary &= ~(1ull << i);
	}
}

#endif
