/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows that lend, for the reference model: docs/semantics.md, 10, word for word. Units stand under the numbers of
 * their buckets, those of buckets yet to come too, and every sum is made anew.
 */
#ifndef WEIR_TEST_MODEL_BORROW_H
#define WEIR_TEST_MODEL_BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_limit.h"
#include "rules/ruleset.h"

struct model_lender_bucket {
	uint64_t number, units;
};

/* Of one flow; begins as zeros. */
struct model_lender {
	uint64_t newest; /* bucket that a packet was evaluated in */
	struct model_lender_bucket *buckets;
	size_t bucket_count;
	uint64_t taken; /* by the packet being evaluated: the bucket that it counts in when it passes */
	bool is_lent;	/* ... which is yet to come */
};

/* Does the rule lend? By what the file says of it and of its resource. */
bool model_lends(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* Is there room now, or, if the packet belongs to any prioritised resource, a unit to lend? *ret_wait_ns: how long
 * until its bucket begins.
 */
bool model_lender_admits(struct model_lender *lender, const struct weir_ruleset *ruleset,
			 const struct weir_ruleset_rule *rule, struct model_ratio allowed, uint64_t time_ns,
			 bool is_prioritized, uint64_t *ret_wait_ns);

/* The packet that was admitted last passes. Returns whether it has borrowed. */
bool model_lender_count(struct model_lender *lender, const struct weir_ruleset_rule *rule);

void model_lender_free(struct model_lender *lender);

#endif
