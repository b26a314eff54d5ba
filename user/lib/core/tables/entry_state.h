/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interprets the words of map entries: circuit breakers, penalties, token buckets, shares, narrow rows. Pure: it takes
 * copies of entries, and a time. The words of the connection tables have a header of their own (connection_counts.h).
 */
#ifndef WEIR_TABLES_ENTRY_STATE_H
#define WEIR_TABLES_ENTRY_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"
#include "weir_state.h"
#include "weir_tokens.h"

/* ---- circuit breakers (weir_breakers.h; docs/breakers.md) ----
 *
 * Timeouts that have passed since the breaker was last evaluated are not included: the program counts them with the
 * next packet for that breaker.
 */

struct weir_breaker_view {
	enum weir_breaker_kind kind;
	enum weir_breaker_strategy strategy; /* of its rule */
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
	bool has_flows;		       /* the rule has a breaker for each flow; else it has: */
	struct weir_breaker_view lone; /* the breaker of a whole resource */
};

/* Returns false if no packet has reached this breaker yet, or if it belongs to an earlier rule. */
bool weir_breaker_view(const struct weir_breaker *breaker, const struct weir_breaker_terms *terms, uint64_t now_ns,
		       struct weir_breaker_view *ret_view);

void weir_breaker_add(const struct weir_breaker_view *view, struct weir_breaker_sum *sum);

/* "closed", "open" and "halfOpen", by enum weir_breaker_kind. */
extern const char *const weir_breaker_kind_names[];

/* The value at the latest evaluation: a ratio, or a number of errors, in millionths. */
uint64_t weir_breaker_value_micro(const struct weir_breaker_view *view);

/* ---- penalties (weir_state.h: penalised_flows, penalised_rules) ---- */

/* The word for the flow with this tag (0: a whole resource) that has no penalty. */
static inline uint64_t weir_penalty_none(uint32_t tag)
{
	return (uint64_t)tag << WEIR_LAST_TAG_SHIFT;
}

/* ns until the penalty ends; 0 if there is none, if it is over, or if the word belongs to another flow. */
static inline uint64_t weir_penalty_left_ns(uint64_t word, uint32_t tag, uint64_t now_ns)
{
	const uint64_t ahead = (word - 1 - now_ns) & WEIR_LAST_MASK;

	if (!(word & WEIR_LAST_MASK) || word >> WEIR_LAST_TAG_SHIFT != (tag & (UINT64_MAX >> WEIR_LAST_TAG_SHIFT)))
		return 0;
	return ahead < WEIR_LAST_MASK / 2 ? ahead : 0;
}

/* The full length of the word's penalty. */
static inline uint32_t weir_penalty_lasts_ms(uint64_t word, const uint32_t lasted_ms[2])
{
	return lasted_ms[word >> WEIR_LAST_BITS & 1];
}

/* ---- token buckets (weir_tokens.h), for code that only observes ---- */

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

/* ---- the schedule of a share: two copies, and a word that selects the one in force ---- */

/* Units per interval that the program admits at a given time under this schedule. */
static inline uint64_t weir_share_schedule_units(uint64_t version, const struct weir_share_stages stages[2],
						 uint64_t now_ns)
{
	const struct weir_share_stages *in_force = &stages[version & 1];

	if (now_ns >= in_force->stops_ns)
		return 0;
	for (int stage = 0; stage < WEIR_SHARE_STAGES - 1; stage++)
		if (now_ns < in_force->until_ns[stage])
			return in_force->units[stage];
	return in_force->units[WEIR_SHARE_STAGES - 1];
}

/* The same for an entry of map `shares`. */
static inline uint64_t weir_share_in_force(const struct weir_shared_threshold *shared, uint64_t now_ns)
{
	return weir_share_schedule_units(shared->version, shared->stages, now_ns);
}

/* The schedule that is in force. */
static inline const struct weir_share_stages *weir_share_stages_in_force(const struct weir_shared_threshold *shared)
{
	return &shared->stages[shared->version & 1];
}

/* Of a threshold, rounded up so that a small amount does not look like zero. Thresholds are at most 10^13 units
 * (docs/rules.md).
 */
static inline uint32_t weir_reserved_percent(uint64_t reserved, uint64_t threshold)
{
	if (reserved >= threshold)
		return threshold ? 100 : 0;
	return (uint32_t)((reserved * 100 + threshold - 1) / threshold);
}

/* ---- narrow rows: how long they can distinguish buckets ----
 *
 * The bucket numbers in these rows have 32 bits and count from the base
 * of their window spec, which is fixed when that spec is first loaded (weir_state.h): with buckets of 50 ms they last
 * for 6.8 years. After that the last bucket never ends, and flows over their limit stay blocked. Only a detach and an
 * attach start over: rows are evaluated against the base, so no reload can move it.
 */

/* Less than this causes a warning: two years, so that 50 ms buckets have run for 4.8. Chosen, not derived. */
#define WEIR_NARROW_LEFT_NS_LOW (2ull * 365 * 86400 * WEIR_NSEC_PER_SEC)

/*
 * ns until the first of the rules in use runs out of bucket numbers. 0: one has run out; UINT64_MAX: no rule has narrow
 * rows, or the time does not fit. `rules` has rule_slots entries, `specs` spec_count.
 */
uint64_t weir_narrow_left_ns(const struct weir_rule_info *rules, uint32_t rule_slots,
			     const struct weir_window_spec *specs, uint32_t spec_count, uint64_t now_ns);

/* What to report about an instance: it "was attached ..."; NULL: nothing to report yet. */
#define WEIR_NARROW_WORDS_BYTES 96
const char *weir_narrow_words(uint64_t left_ns, char words[WEIR_NARROW_WORDS_BYTES]);

#endif
