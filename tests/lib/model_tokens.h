/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Token buckets, for the reference model: docs/semantics.md, 9, in integers of 128 bits that hold every amount exactly.
 * Amounts are in drops: a token is as many as the interval has ns, times a million, so that a threshold of so many
 * millionths gains just as many drops a ns. Written from the text alone.
 */
#ifndef WEIR_TEST_MODEL_TOKENS_H
#define WEIR_TEST_MODEL_TOKENS_H

#include "model_limit.h"

/* What a flow's bucket lacked of being full right after its latest packet was admitted. Zeros: it is full. */
struct model_bucket {
	model_u128 lacks; /* drops */
	uint64_t at_ns;
};

/* Would so many units be there at that time? A bucket that is found full has no history: whatever the clock goes back
 * to, it was full then. threshold_micro: the rule's, or of the flow's override. */
bool model_tokens_admit(struct model_bucket *bucket, const struct weir_ruleset_rule *rule, uint64_t threshold_micro,
			uint64_t units, uint64_t time_ns);

/* Take them: the packet passed. */
void model_tokens_take(struct model_bucket *bucket, const struct weir_ruleset_rule *rule, uint64_t threshold_micro,
		       uint64_t units, uint64_t time_ns);

#endif
