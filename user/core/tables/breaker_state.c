// SPDX-License-Identifier: GPL-2.0-only
#include "tables/breaker_state.h"

#include "rules/ruleset.h"

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

uint64_t weir_breaker_value_micro(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy)
{
	if (strategy == WEIR_BREAKER_ERROR_COUNT)
		return view->bad * WEIR_MICRO;
	return view->requests ? view->bad * WEIR_MICRO / view->requests : 0;
}
