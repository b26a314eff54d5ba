/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Token buckets, for the reference model: docs/semantics.md, 9, in integers of 128 bits. Amounts are in drops: a token
 * is as many as the interval has ns, times a million, so that a threshold of so many millionths gains just as many
 * drops a ns. Where a rate that moves has other denominators, what is gained is rounded up to a drop. Written from the
 * text alone.
 */
#ifndef WEIR_TEST_MODEL_TOKENS_H
#define WEIR_TEST_MODEL_TOKENS_H

#include <stddef.h>

#include "model_limit.h"

/* What a flow's bucket lacked of being full right after its latest packet was admitted. Zeros: it is full. */
struct model_bucket {
	model_u128 lacks; /* drops */
	uint64_t at_ns;
};

/* The rates that have been in force, each from its time on; the first from 0. */
struct model_rates {
	struct model_rate {
		uint64_t from_ns;
		struct model_ratio allowed;
	} * rate;
	size_t count;
};

/* From that time on this is allowed. Nothing changes if it is allowed already. */
void model_rates_turn(struct model_rates *rates, uint64_t from_ns, struct model_ratio allowed);
void model_rates_free(struct model_rates *rates);

/* Would so many units be there at that time? A bucket that is found full has no history: whatever the clock goes back
 * to, it was full then. threshold_micro: the rule's, or of the flow's override. A time before the latest change of the
 * rate counts as that moment. */
bool model_tokens_admit(struct model_bucket *bucket, const struct weir_ruleset_rule *rule, uint64_t threshold_micro,
			const struct model_rates *rates, uint64_t units, uint64_t time_ns);

/* Take them: the packet passed. */
void model_tokens_take(struct model_bucket *bucket, const struct weir_ruleset_rule *rule,
		       const struct model_rates *rates, uint64_t units, uint64_t time_ns);

#endif
