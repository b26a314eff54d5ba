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

/* The rule whose rows hold a rule's window: its own, or that of the shadow window that it reads. */
static inline const struct weir_rule *weir_rows_of(const struct weir_image *image, size_t place)
{
	const struct weir_rule *rule = &image->rules[place];

	return rule->kind == WEIR_KIND_ASSOCIATED ? &image->rules[rule->shadow] : rule;
}

#endif
