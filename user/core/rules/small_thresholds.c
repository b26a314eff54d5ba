// SPDX-License-Identifier: GPL-2.0-only
/* Thresholds that are legal but admit nothing, or not even one full frame. */
#include "base/util.h"
#include "kind/kind.h"
#include "rules/rule.h"

/* The largest frame on an Ethernet with an MTU of 1500 bytes, without its checksum, which XDP does not see. */
#define FRAME_BYTES_USUAL 1514

void weir_warn_of_small_threshold(struct weir_reader *reader, const struct weir_node *node, uint64_t micro,
				  const struct weir_ruleset_rule *rule)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	/* Any rate above zero adds tokens, and `burst` limits what is admitted at once; by default that is at least a
	 * frame.
	 */
	if (kind->has_tokens ? !micro : micro < WEIR_MICRO)
		weir_warn(reader, node, kind->below_one_hint, "%s", kind->below_one);
	else if (rule->counts_bytes && (!kind->has_tokens || rule->has_burst_beyond) &&
		 micro + rule->burst_beyond_micro < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, node,
			  "a frame larger than the threshold is never admitted; a full one has 1514 bytes",
			  "this threshold is smaller than a frame can be");
}

/* "0.5/s" admits nothing in any second; "1/2s" was probably meant. */
static bool warn_of_small_rate(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	uint64_t micro = rule->threshold_micro, divisor = WEIR_MICRO, rest;
	char hint[96], interval[WEIR_DURATION_TEXT_BYTES];

	if (!draft->has_rate || !micro || micro >= WEIR_MICRO || weir_kind_of(rule)->has_tokens)
		return false;
	/* The greatest common divisor (Euclid). */
	for (uint64_t larger = WEIR_MICRO, smaller = micro; smaller; larger = smaller, smaller = rest) {
		rest = larger % smaller;
		divisor = smaller;
	}
	if (WEIR_MICRO / divisor > (uint64_t)WEIR_INTERVAL_MS_MAX * 1000000 / rule->interval_ns)
		return false;
	snprintf(hint, sizeof(hint), "a packet is admitted whole or not at all: write %llu/%s",
		 (unsigned long long)(micro / divisor),
		 weir_format_duration(rule->interval_ns * (WEIR_MICRO / divisor), interval));
	weir_warn(reader, draft->value[RULE_THRESHOLD], hint, "%s", weir_kind_of(rule)->below_one);
	return true;
}

void weir_warn_of_small_thresholds(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	uint64_t high_micro = rule->memory.high_units * WEIR_MICRO;

	if (draft->has_threshold && !warn_of_small_rate(reader, draft))
		weir_warn_of_small_threshold(reader, draft->value[RULE_THRESHOLD], rule->threshold_micro, rule);
	if (high_micro)
		weir_warn_of_small_threshold(reader, draft->value[RULE_HIGH_USAGE], high_micro, rule);
	/* A frame that is too large for a cold flow never warms it up either. */
	if (draft->has_threshold && rule->counts_bytes && rule->warm_up.cold_factor > 1 &&
	    rule->threshold_micro >= FRAME_BYTES_USUAL * WEIR_MICRO &&
	    rule->threshold_micro / rule->warm_up.cold_factor < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, draft->value[RULE_THRESHOLD],
			  "a frame larger than that is not admitted before smaller ones have warmed it up",
			  "cold, this threshold is smaller than a frame can be: threshold / warmUpColdFactor is below "
			  "1514");
}
