// SPDX-License-Identifier: GPL-2.0-only
/* The vectors of resources, without duplicates, and iteration over the resources of a match field. */
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/matching.h"

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
