// SPDX-License-Identifier: GPL-2.0-only
/*
 * The single prefixes of the allow and deny lists, for map `listed_prefixes` (weir_timed.h). If a timed entry and a
 * list disagree, the program looks up there how long the prefix was that decided.
 */
#include "compile/build_steps.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static uint64_t load_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return be64toh(word);
}

static struct weir_listed_prefix listed_prefix(const struct weir_prefix *prefix)
{
	return (struct weir_listed_prefix){
		.high = load_word(prefix->address),
		.low = load_word(prefix->address + 8),
		.bits = prefix->bits,
		.is_ipv6 = prefix->family == 6,
	};
}

static bool encloses(const struct weir_listed_prefix *outer, const struct weir_listed_prefix *inner)
{
	if (outer->is_ipv6 != inner->is_ipv6 || outer->bits > inner->bits)
		return false;
	if (outer->bits > 64)
		return outer->high == inner->high && !((outer->low ^ inner->low) >> (128 - outer->bits));
	return !outer->bits || !((outer->high ^ inner->high) >> (64 - outer->bits));
}

/* Prefixes are sorted, so the prefix that encloses one is the one before it, or encloses that one. */
int weir_compile_listed(const struct weir_ruleset *ruleset, struct weir_config *config, struct weir_image_lists *lists,
			struct weir_diag *diag)
{
	uint32_t i, parent;

	if (!config->has_timed || !ruleset->listed_count)
		return 0;
	lists->prefixes = calloc(ruleset->listed_count, sizeof(*lists->prefixes));
	if (!lists->prefixes)
		return weir_compile_no_memory(diag);
	lists->prefix_count = ruleset->listed_count;
	for (i = 0; i < lists->prefix_count; i++) {
		struct weir_listed_prefix *prefix = &lists->prefixes[i];

		*prefix = listed_prefix(&ruleset->listed[i].prefix);
		config->listed_ipv4 += !prefix->is_ipv6;
		config->listed_ipv6 += prefix->is_ipv6;
		for (parent = i; parent && !encloses(&lists->prefixes[parent - 1], prefix);)
			parent = lists->prefixes[parent - 1].parent;
		prefix->parent = parent;
	}
	return 0;
}
