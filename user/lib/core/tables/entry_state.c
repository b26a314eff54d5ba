// SPDX-License-Identifier: GPL-2.0-only
#include "tables/entry_state.h"

#include <stdio.h>

#include "rules/ruleset.h"

/* ---- circuit breakers ---- */

const char *const weir_breaker_kind_names[] = {
	[WEIR_BREAKER_CLOSED] = "closed",
	[WEIR_BREAKER_OPEN] = "open",
	[WEIR_BREAKER_HALF_OPEN] = "halfOpen",
};

/* The word has only the lowest bits of a time; it means the nearest time with these bits. */
static uint64_t left_ns(uint64_t state, uint64_t now_ns)
{
	int64_t left = (int64_t)((state - now_ns) << (64 - WEIR_BREAKER_TIME_BITS)) >> (64 - WEIR_BREAKER_TIME_BITS);

	return left > 0 ? left : 0;
}

bool weir_breaker_view(const struct weir_breaker *breaker, const struct weir_breaker_terms *terms, uint64_t now_ns,
		       struct weir_breaker_view *ret_view)
{
	enum weir_breaker_kind kind = breaker->state >> WEIR_BREAKER_KIND_SHIFT;

	if (breaker->made_ns <= terms->since_ns || kind > WEIR_BREAKER_HALF_OPEN)
		return false;
	*ret_view = (struct weir_breaker_view){
		.kind = kind,
		.strategy = terms->strategy,
		.left_ns = kind == WEIR_BREAKER_OPEN ? left_ns(breaker->state, now_ns) : 0,
		.requests = breaker->last >> 32,
		.bad = (uint32_t)breaker->last,
		.changes = breaker->changes,
		.shared = breaker->shared,
	};
	return true;
}

void weir_breaker_add(const struct weir_breaker_view *view, struct weir_breaker_sum *sum)
{
	sum->count[view->kind]++;
	sum->changes += view->changes;
	sum->shared += view->shared;
}

uint64_t weir_breaker_value_micro(const struct weir_breaker_view *view)
{
	if (view->strategy == WEIR_BREAKER_ERROR_COUNT)
		return view->bad * WEIR_MICRO;
	return view->requests ? view->bad * WEIR_MICRO / view->requests : 0;
}

/* ---- narrow rows ---- */

#define NUMBERS (WEIR_NARROW_BUCKET_MAX + 1)

static uint64_t buckets_left_ns(const struct weir_window_spec *spec, uint64_t now_ns)
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
		rule_ns = buckets_left_ns(&specs[rule->spec], now_ns);
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
