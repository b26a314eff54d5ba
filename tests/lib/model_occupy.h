/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Occupy windows, for the reference model: docs/semantics.md, 10, word for word. Units stand under the numbers of
 * their buckets, those of buckets yet to come too, and every sum is computed from the start.
 */
#ifndef WEIR_TEST_MODEL_OCCUPY_H
#define WEIR_TEST_MODEL_OCCUPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_limit.h"
#include "rules/ruleset.h"

struct model_occupy_bucket {
	uint64_t number, units;
};

/* Of one flow; begins as zeros. */
struct model_occupy {
	uint64_t newest; /* bucket that a packet was evaluated in */
	struct model_occupy_bucket *buckets;
	size_t bucket_count;
	uint64_t taken;	  /* by the packet being evaluated: the bucket that it counts in when it passes */
	bool is_occupied; /* ... which is yet to come */
};

/* Can the rule be occupied? By what the file says of it and of its resource. */
bool model_occupies(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* Is there room now, or, if the packet belongs to any prioritized resource, units to occupy? *ret_wait_ns: how long
 * until its bucket begins.
 */
bool model_occupy_admits(struct model_occupy *occupier, const struct weir_ruleset *ruleset,
			 const struct weir_ruleset_rule *rule, struct model_ratio allowed, uint64_t time_ns,
			 uint64_t units, bool is_prioritized, uint64_t *ret_wait_ns);

/* The packet that was admitted last passes. Returns whether it has occupied. */
bool model_occupy_count(struct model_occupy *occupier, const struct weir_ruleset_rule *rule, uint64_t units);

void model_occupy_free(struct model_occupy *occupier);

#endif
