/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a rule allows, for the reference model: docs/semantics.md, 3 and 4, in exact fractions of 128-bit integers.
 * Nothing is rounded but where the text says trunc, floor or ceil, and an overflow ends the test. Written from the
 * text alone: no header of the product's arithmetic is used, and nothing is worked out in advance.
 */
#ifndef WEIR_TEST_MODEL_LIMIT_H
#define WEIR_TEST_MODEL_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/ruleset.h"

typedef unsigned __int128 model_u128;

/* numerator / denominator units per interval; the denominator is never 0. */
struct model_ratio {
	model_u128 numerator, denominator;
};

/* The product; asserts that it fits. */
model_u128 model_times(model_u128 a, model_u128 b);

/* Direct: what the user wrote. */
struct model_ratio model_direct(uint64_t threshold_micro);

/* MemoryAdaptive, with so many bytes in use. */
struct model_ratio model_memory_adaptive(const struct weir_memory_adaptive *memory, uint64_t used_bytes);

/* WarmUp: tokens of a flow that is all cold, and what it allows with `stored` of them. */
uint64_t model_warm_up_max(const struct weir_ruleset_rule *rule, uint64_t threshold_micro);
struct model_ratio model_warm_up(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t stored);

/* Tokens after the sync that ends a second in which `passed` units passed. */
uint64_t model_warm_up_sync(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t stored,
			    uint64_t passed);

/* units > allowed */
bool model_exceeds(uint64_t units, struct model_ratio allowed);

uint64_t model_floor(struct model_ratio allowed);

/* ceil(batch * interval / allowed) in ns; allowed > 0. */
model_u128 model_emission_ns(uint64_t batch, uint64_t interval_ns, struct model_ratio allowed);

#endif
