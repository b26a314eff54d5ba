/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the words of a circuit breaker say (weir_breakers.h; docs/breakers.md): its state, and what it was evaluated by.
 * Pure: entries as they were copied from a map, and a time. What has become due since the breaker was last looked at
 * is not in it yet: the program counts that with the next packet that it concerns.
 */
#ifndef WEIR_TABLES_BREAKER_STATE_H
#define WEIR_TABLES_BREAKER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

struct weir_breaker_view {
	enum weir_breaker_kind kind;
	uint64_t left_ns;  /* open: until an opening is let through as the probe; 0: the next one is */
	uint64_t requests; /* in the window when it was evaluated last, and the bad ones among them */
	uint64_t bad;
	uint64_t changes; /* of its state */
	uint64_t shared;  /* requests that had to share a group, so that their time-outs were reported late */
};

/* What all breakers of a rule come to. */
struct weir_breaker_sum {
	uint64_t count[WEIR_BREAKER_HALF_OPEN + 1]; /* by enum weir_breaker_kind */
	uint64_t changes, shared;
	struct weir_breaker_view lone; /* of a whole resource */
};

/* False: no packet has come to this breaker yet, or it is that of a rule before. */
bool weir_breaker_view(const struct weir_breaker *breaker, const struct weir_breaker_terms *terms, uint64_t now_ns,
		       struct weir_breaker_view *ret_view);

void weir_breaker_add(const struct weir_breaker_view *view, struct weir_breaker_sum *sum);

/* "closed", "open" and "halfOpen", by enum weir_breaker_kind. */
extern const char *const weir_breaker_kind_names[];

/* What it was evaluated against last: a ratio, or a number of errors, in millionths. */
uint64_t weir_breaker_value_micro(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy);

#endif
