// SPDX-License-Identifier: GPL-2.0-only
#include "model_occupy.h"

#include <assert.h>
#include <stdlib.h>

/* So that no bucket's number is below zero when a young clock looks back. */
#define BEFORE_ZERO 100

bool model_occupies(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	if (!rule->occupies) /* no prioritized packet can belong to its resource, or it is not such a rule */
		return false;
	if (rule->metric != WEIR_METRIC_RATE || rule->relation == WEIR_RELATION_ASSOCIATED)
		return false;
	return rule->strategy == WEIR_STRATEGY_DIRECT && rule->behavior == WEIR_BEHAVIOR_REJECT &&
	       rule->window == WEIR_WINDOW_LEAP && !rule->counts_bytes;
}

static uint64_t units_from_to(const struct model_occupy *occupier, uint64_t first, uint64_t last)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < occupier->bucket_count; i++)
		if (occupier->buckets[i].number >= first && occupier->buckets[i].number <= last)
			sum += occupier->buckets[i].units;
	return sum;
}

/* The window whose newest bucket is this. */
static uint64_t window_sum(const struct model_occupy *occupier, const struct weir_ruleset_rule *rule, uint64_t newest)
{
	return units_from_to(occupier, newest - rule->samples + 1, newest);
}

/* With so many units more in bucket `own`: the windows that it is in, the present one and those to come. */
static bool fits(const struct model_occupy *occupier, const struct weir_ruleset_rule *rule, struct model_ratio allowed,
		 uint64_t own, uint64_t units)
{
	for (uint64_t last = occupier->newest; last < own + rule->samples || last == occupier->newest; last++)
		if (model_exceeds(window_sum(occupier, rule, last) + units, allowed))
			return false;
	return true;
}

static bool occupies(struct model_occupy *occupier, const struct weir_ruleset *ruleset,
		     const struct weir_ruleset_rule *rule, struct model_ratio allowed, uint64_t time_ns, uint64_t units,
		     uint64_t *ret_wait_ns)
{
	uint64_t bucket_ns = rule->interval_ns / rule->samples;
	uint64_t timeout_ns = (uint64_t)ruleset->settings.occupy_timeout_ms * 1000000;
	uint64_t occupied = units_from_to(occupier, occupier->newest + 1, UINT64_MAX);
	uint64_t current = window_sum(occupier, rule, occupier->newest);

	if (timeout_ns > rule->interval_ns)
		timeout_ns = rule->interval_ns;
	if (model_exceeds(occupied + units, allowed))
		return false;
	for (uint64_t k = 0;; k++) {
		uint64_t leaves = occupier->newest - rule->samples + 1 + k;
		uint64_t wait_ns = (occupier->newest + 1 + k - BEFORE_ZERO) * bucket_ns - time_ns;

		if (wait_ns >= timeout_ns)
			return false;
		current -= units_from_to(occupier, leaves, leaves);
		if (model_exceeds(current + occupied + units, allowed))
			continue;
		occupier->taken = occupier->newest + 1 + k;
		occupier->is_occupied = true;
		*ret_wait_ns = wait_ns;
		return true;
	}
}

bool model_occupy_admits(struct model_occupy *occupier, const struct weir_ruleset *ruleset,
			 const struct weir_ruleset_rule *rule, struct model_ratio allowed, uint64_t time_ns,
			 uint64_t units, bool is_prioritized, uint64_t *ret_wait_ns)
{
	uint64_t bucket_ns = rule->interval_ns / rule->samples;
	uint64_t own = time_ns / bucket_ns + BEFORE_ZERO;

	*ret_wait_ns = 0;
	if (model_exceeds(units, allowed))
		return false;
	if (own > occupier->newest)
		occupier->newest = own;
	/* The clock went back further than the window reaches: the packet is one of the newest bucket's first. */
	if (occupier->newest - own >= rule->samples) {
		own = occupier->newest;
		time_ns = (own - BEFORE_ZERO) * bucket_ns;
	}
	occupier->taken = own;
	occupier->is_occupied = false;
	return fits(occupier, rule, allowed, own, units) ||
	       (is_prioritized && occupies(occupier, ruleset, rule, allowed, time_ns, units, ret_wait_ns));
}

bool model_occupy_count(struct model_occupy *occupier, const struct weir_ruleset_rule *rule, uint64_t units)
{
	size_t kept = 0;

	for (size_t i = 0; i < occupier->bucket_count; i++)
		if (occupier->buckets[i].number + rule->samples > occupier->newest)
			occupier->buckets[kept++] = occupier->buckets[i];
	occupier->bucket_count = kept;
	for (size_t i = 0; i < kept; i++) {
		if (occupier->buckets[i].number != occupier->taken)
			continue;
		occupier->buckets[i].units += units;
		return occupier->is_occupied;
	}
	occupier->buckets = reallocarray(occupier->buckets, kept + 1, sizeof(*occupier->buckets));
	assert(occupier->buckets);
	occupier->buckets[occupier->bucket_count++] = (struct model_occupy_bucket){occupier->taken, units};
	return occupier->is_occupied;
}

void model_occupy_free(struct model_occupy *occupier)
{
	free(occupier->buckets);
}
