/* SPDX-License-Identifier: GPL-2.0-only */
/* The output of `weir check` about a rule set that could be loaded: in words, and in JSON (docs/json-files.md). */
#ifndef WEIR_CMD_PRINT_CHECK_H
#define WEIR_CMD_PRINT_CHECK_H

#include <jansson.h>
#include <stdint.h>

#include "compile/compile.h"
#include "rules/ruleset.h"

void weir_print_checked(const struct weir_ruleset *ruleset, const struct weir_image *image,
			const struct weir_image_memory *memory, uint32_t cpus, bool lists_memory);

/* NULL: there is no memory. */
json_t *weir_json_checked(const struct weir_ruleset *ruleset, const struct weir_image *image,
			  const struct weir_image_memory *memory, uint32_t cpus);

/* A match and a flow key in the words of a rule file: an object of lists, and a list. */
json_t *weir_json_match(const struct weir_match *match);
json_t *weir_json_flow(const struct weir_flow *flow);

#endif
