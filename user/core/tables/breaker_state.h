/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interprets the words of a circuit breaker (weir_breakers.h; docs/breakers.md): its state, and the figures it was
 * evaluated by. Pure: it takes copies of map entries, and a time. Timeouts that have passed since the breaker was last
 * evaluated are not included: the program counts them with the next packet for that breaker.
 */
#ifndef WEIR_TABLES_BREAKER_STATE_H
#define WEIR_TABLES_BREAKER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

struct weir_breaker_view {
	enum weir_breaker_kind kind;
	uint64_t left_ns;  /* if open: time until an opening may pass as the probe; 0: the next one may */
	uint64_t requests; /* in the window at the latest evaluation; `bad` counts the failed ones */
	uint64_t bad;
	uint64_t changes; /* of its state */
	/* Requests that had to share a group, so that their timeouts were counted late. */
	uint64_t shared;
};

/* The sum over all breakers of a rule. */
struct weir_breaker_sum {
	uint64_t count[WEIR_BREAKER_HALF_OPEN + 1]; /* by enum weir_breaker_kind */
	uint64_t changes, shared;
	struct weir_breaker_view lone; /* the breaker of a whole resource */
};

/* Returns false if no packet has reached this breaker yet, or if it belongs to an earlier rule. */
bool weir_breaker_view(const struct weir_breaker *breaker, const struct weir_breaker_terms *terms, uint64_t now_ns,
		       struct weir_breaker_view *ret_view);

void weir_breaker_add(const struct weir_breaker_view *view, struct weir_breaker_sum *sum);

/* "closed", "open" and "halfOpen", by enum weir_breaker_kind. */
extern const char *const weir_breaker_kind_names[];

/* The value at the latest evaluation: a ratio, or a number of errors, in millionths. */
uint64_t weir_breaker_value_micro(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy);

#endif
