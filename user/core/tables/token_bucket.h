/* SPDX-License-Identifier: GPL-2.0-only */
/* Interprets the two words of a token bucket (weir_tokens.h), for code that only observes. */
#ifndef WEIR_TABLES_TOKEN_BUCKET_H
#define WEIR_TABLES_TOKEN_BUCKET_H

#include <stdbool.h>

#include "weir_state.h"
#include "weir_tokens.h"

/* Was the bucket last used by a flow with this tag (0: a whole resource), under these tokens? */
static inline bool weir_bucket_is_of(const struct weir_token_bucket *bucket, const struct weir_tokens *tokens,
				     uint32_t tag)
{
	return bucket->touched >> 32 == (tokens->mark ^ tag);
}

/* How much the bucket lacks until it is full, in virtual time. A state that has expired, or that belongs to another
 * flow, lacks nothing.
 */
static inline uint64_t weir_bucket_lacks(const struct weir_token_bucket *bucket, const struct weir_tokens *tokens,
					 uint32_t tag, uint64_t now_ns)
{
	const struct weir_token_time time = weir_token_time(&tokens->clock, now_ns);
	const int32_t age = weir_token_epoch(&time) - (uint32_t)bucket->touched;
	int64_t ahead;

	if (bucket->word & WEIR_BUCKET_FULL || !weir_bucket_is_of(bucket, tokens, tag) || age > WEIR_TOKEN_EPOCHS_KNOWN)
		return 0;
	ahead = weir_token_ahead(bucket->word, weir_token_word(&time));
	return ahead > 0 ? ahead : 0;
}

#endif
