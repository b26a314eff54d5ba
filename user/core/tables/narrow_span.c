// SPDX-License-Identifier: GPL-2.0-only
#include "tables/narrow_span.h"

#include <stdio.h>

#define NUMBERS (WEIR_NARROW_BUCKET_MAX + 1)

static uint64_t left_ns(const struct weir_window_spec *spec, uint64_t now_ns)
{
	uint64_t passed = now_ns / spec->bucket_ns - spec->base_bucket;
	unsigned __int128 left;

	if (passed >= NUMBERS)
		return 0;
	/* The elapsed part of the current bucket is ignored: it is at most a day. */
	left = (unsigned __int128)(NUMBERS - passed) * spec->bucket_ns;
	return left > UINT64_MAX ? UINT64_MAX : (uint64_t)left;
}

uint64_t weir_narrow_left_ns(const struct weir_rule_info *rules, uint32_t rule_slots,
			     const struct weir_window_spec *specs, uint32_t spec_count, uint64_t now_ns)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t slot = 0; slot < rule_slots; slot++) {
		const struct weir_rule_info *rule = &rules[slot];
		uint64_t rule_ns;

		if (rule->state != WEIR_SLOT_USED ||
		    (rule->storage != WEIR_STORAGE_NARROW && rule->storage != WEIR_STORAGE_MEDIUM) ||
		    rule->spec >= spec_count || !specs[rule->spec].bucket_ns)
			continue;
		rule_ns = left_ns(&specs[rule->spec], now_ns);
		if (rule_ns < least_ns)
			least_ns = rule_ns;
	}
	return least_ns;
}

const char *weir_narrow_words(uint64_t left_ns, char words[WEIR_NARROW_WORDS_BYTES])
{
	if (left_ns >= WEIR_NARROW_LEFT_NS_LOW)
		return NULL;
	if (!left_ns)
		return "attached so long ago that flows over their limit stay blocked";
	snprintf(words, WEIR_NARROW_WORDS_BYTES, "attached so long ago that its limits hold for %u more days",
		 (unsigned int)(left_ns / (86400 * WEIR_NSEC_PER_SEC)));
	return words;
}
