/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allow and deny lists, compiled: the prefixes of a rule set turned into what the list maps hold (weir_lists.h), word
 * for word. Pure. Time and memory grow with the number of prefixes, however they nest.
 */
#ifndef WEIR_COMPILE_LISTS_H
#define WEIR_COMPILE_LISTS_H

#include <stdint.h>

#include "diag.h"
#include "ruleset.h"
#include "weir_lists.h"

/* All zero when nothing is listed. */
struct weir_image_lists {
	uint64_t *roots;   /* WEIR_LIST_ROOT_WORDS */
	uint64_t *buckets; /* bucket_count, a power of two */
	uint64_t *words;   /* word_count */
	uint32_t root_count, bucket_count, word_count;
};

/* Compile ruleset->listed, and set what config says of it. -errno with its reason in *diag when memory is out. */
int weir_compile_lists(const struct weir_ruleset *ruleset, struct weir_config *config, struct weir_image_lists *lists,
		       struct weir_diag *diag);

/* Bytes that the list maps take. */
uint64_t weir_lists_memory(const struct weir_image_lists *lists);

void weir_lists_free(struct weir_image_lists *lists);

#endif
