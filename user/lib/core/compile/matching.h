/* SPDX-License-Identifier: GPL-2.0-only */
/* What vectors.c makes vectors of: the answers of single match fields. */
#ifndef WEIR_COMPILE_MATCHING_H
#define WEIR_COMPILE_MATCHING_H

#include "compile/build_steps.h"

/* At least twice WEIR_VECTORS_MAX, to keep probe sequences short. */
#define TABLE_SIZE (1u << 17)

/* The vectors number resources by their bits, which follow image->place. Below, `bit` is such a number. */
struct matching {
	const struct weir_ruleset *ruleset;
	struct weir_image *image;
	struct weir_diag *diag;
	uint32_t *table; /* open addressing: a vector's number + 1 at its hash, 0 for an empty entry */
};

const struct weir_ruleset_resource *weir_match_resource_of(const struct matching *matching, size_t bit);

/* Find the number of this vector; a new vector is added. */
int weir_match_number_vector(struct matching *matching, const struct weir_vector *vector, uint32_t *ret_number);

int weir_match_ranges(struct matching *matching);
int weir_match_tcp_flags(struct matching *matching);
int weir_match_kind(struct matching *matching);

int weir_match_addresses(struct matching *matching);

#endif
