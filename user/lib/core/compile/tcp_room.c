// SPDX-License-Identifier: GPL-2.0-only
#include "compile/tcp_room.h"

#include <stdio.h>

#include "base/util.h"
#include "kind/kind.h"
#include "thresholds/token_rates.h"
#include "rules/field_rows.h"

/* A super-frame has the most segments with the smallest MSS that all hosts accept (RFC 9293, 3.7.1), and the most bytes
 * with that of an Ethernet with an MTU of 1500 bytes (timestamps are on).
 */
#define SEGMENT_BYTES_MIN 536
#define SEGMENT_BYTES 1448
#define SEGMENT_WIRE_BYTES 1514ull
#define FULL_SEGMENTS(frame_bytes) (((frame_bytes) + SEGMENT_BYTES - 1) / SEGMENT_BYTES)

/* The default burst of bytes has room for a super-frame of the default size. */
_Static_assert(FULL_SEGMENTS(WEIR_SUPER_FRAME_BYTES) * SEGMENT_WIRE_BYTES == WEIR_TOKENS_ROOM_BYTES_MIN,
	       "the default burst and this file assume the same frame");

bool weir_match_limits_tcp(const struct weir_match *match)
{
	return weir_match_holds_tcp(match) && !match->tcp_flags_count && match->fragments != 1 << WEIR_FRAGMENT_LATER;
}

/* The most packets or bytes that the rule can ever admit at once, in millionths. */
static uint64_t most_at_once_micro(const struct weir_ruleset_rule *rule)
{
	if (weir_kind_id_of(rule) == WEIR_KIND_TOKENS)
		return weir_tokens_burst_micro(rule, rule->threshold_micro);
	return rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? rule->memory.low_units * WEIR_MICRO
							       : rule->threshold_micro;
}

static uint64_t at_most(uint64_t segments, const struct weir_tcp_device *device)
{
	return segments < device->segments_max ? segments : device->segments_max;
}

bool weir_tcp_room_is_short(const struct weir_ruleset *ruleset, const struct weir_tcp_device *device,
			    struct weir_tcp_room *ret_room)
{
	const uint64_t segments = at_most(device->frame_bytes / SEGMENT_BYTES_MIN, device);
	const uint64_t bytes = at_most(FULL_SEGMENTS(device->frame_bytes), device) * SEGMENT_WIRE_BYTES;
	const struct weir_ruleset_rule *first = NULL;
	uint64_t fitting;
	size_t others = 0;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];
		const struct weir_match *match = &weir_resource_of(ruleset, rule)->match;

		if (rule->system || !weir_kind_has(weir_kind_of(rule), RULE_INTERVAL) ||
		    !weir_match_limits_tcp(match) || !(weir_match_directions(match) & WEIR_MATCHES_OUT) ||
		    (device->interface && !weir_match_means(match, device->interface)) ||
		    most_at_once_micro(rule) >= (rule->counts_bytes ? bytes : segments) * WEIR_MICRO)
			continue;
		others += first != NULL;
		first = first ?: rule;
	}
	if (!first)
		return false;
	fitting = most_at_once_micro(first) / WEIR_MICRO / (first->counts_bytes ? SEGMENT_WIRE_BYTES : 1);
	snprintf(ret_room->text, sizeof(ret_room->text),
		 "rule '%.40s'%s can never admit a super-frame of TCP that is larger than its limit; outgoing ones may "
		 "have %llu segments and %llu bytes",
		 first->name, others ? ", like others," : "", (unsigned long long)segments, (unsigned long long)bytes);
	snprintf(ret_room->advice, sizeof(ret_room->advice),
		 "allow that much at once, or make super-frames smaller: 'ip link set %s gso_max_segs %llu'",
		 device->interface ?: "IFACE", (unsigned long long)(fitting ?: 1));
	return true;
}
