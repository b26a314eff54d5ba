/* SPDX-License-Identifier: GPL-2.0-only */
/* The making of vectors (vectors.c), in its parts. */
#ifndef WEIR_COMPILE_MATCHING_H
#define WEIR_COMPILE_MATCHING_H

#include "compile/build_steps.h"

/* At least twice WEIR_VECTORS_MAX, so that a search ends soon. */
#define TABLE_SIZE (1u << 17)

/* The resources' bits follow image->place: `bit` runs over bits below, and names a resource by its bit. */
struct matching {
	const struct weir_ruleset *ruleset;
	struct weir_image *image;
	struct weir_diag *diag;
	uint32_t *table; /* open addressing: a vector's number + 1 at its hash, 0 for none */
};

/* ---- match_vectors.c ---- */

const struct weir_ruleset_resource *weir_match_resource_of(const struct matching *matching, size_t bit);

/* The number of this vector, which is added when it is new. */
int weir_match_number_vector(struct matching *matching, const struct weir_vector *vector, uint32_t *ret_number);

/* ---- match_numbers.c ---- */

int weir_match_ranges(struct matching *matching);
int weir_match_tcp_flags(struct matching *matching);
int weir_match_kind(struct matching *matching);

/* ---- match_prefixes.c ---- */

int weir_match_addresses(struct matching *matching);

#endif
