/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System rules that use a signal of the whole host: load, CPU usage, or the time of handshakes (docs/semantics.md, 12).
 * The other system rules use existing kinds: InboundQPS is a window, and Concurrency counts connections.
 */
#ifndef WEIR_SYSTEM_H
#define WEIR_SYSTEM_H

#include "kinds/connections.h"
#include "kinds/handshakes.h"
#include "window/threshold.h"

/* How many connections are open, of all resources together. */
static __always_inline __u64 weir_tracked_open(struct weir_scratch *s)
{
	struct weir_connection_flow *flow = weir_lone_flow(weir_rule(config.tracker)->slot);

	return flow ? weir_open_connections(s, flow, WEIR_CONNECTION_LONE_TAG) : 0;
}

/* Are more connections open than the host can complete during its shortest handshake, at the rate of its best half
 * second? open > completions per second * shortest time in seconds.
 */
static __always_inline bool weir_has_queue(struct weir_scratch *s)
{
	struct weir_handshake_figures last;
	__u64 open = config.has_tracker ? weir_tracked_open(s) : 0;

	if (open <= 1)
		return false;
	weir_sum_handshakes(s, WEIR_HANDSHAKE_BBR_BUCKETS, &last);
	return open * 1000000 > last.most * (WEIR_NSEC_PER_SEC / WEIR_HANDSHAKE_BUCKET_NS) * last.shortest_us;
}

/* The mean time of the last second's handshakes, in ns: a millionth of a millisecond. For whole numbers, mean rounded
 * down >= threshold is the same as sum >= threshold * count.
 */
static __always_inline __u64 weir_handshake_mean(struct weir_scratch *s)
{
	struct weir_handshake_figures last;

	weir_sum_handshakes(s, WEIR_HANDSHAKE_MEAN_BUCKETS, &last);
	return last.count ? last.sum_us * 1000 / last.count : WEIR_EVENT_UNKNOWN;
}

/* The value that the controller sampled. It is unknown when the controller is stale. */
static __always_inline __u64 weir_sampled_signal(struct weir_scratch *s, __u32 signal)
{
	const struct weir_signals *sampled;
	__u32 zero = 0;

	sampled = bpf_map_lookup_elem(&signals, &zero);
	if (!sampled || weir_check_stale(s))
		return WEIR_EVENT_UNKNOWN;
	return signal == WEIR_SYSTEM_LOAD ? READ_ONCE(sampled->load1_micro) : READ_ONCE(sampled->cpu_micro);
}

__noinline int weir_evaluate_system(struct weir_scratch *s, __u32 place, __u32 nth)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;
	__u64 threshold = rule->threshold & WEIR_THRESHOLD_MASK, signal;
	bool drops;

	WEIR_GLOBAL(KIND(SYSTEM), reservation, WEIR_ANSWER_ERROR);
	if (rule->signal == WEIR_SYSTEM_AVG_RT) {
		signal = weir_handshake_mean(s);
		drops = signal >= threshold;
	} else {
		signal = weir_sampled_signal(s, rule->signal & ~WEIR_SIGNAL_BBR);
		drops = signal > threshold && (!(rule->signal & WEIR_SIGNAL_BBR) || weir_has_queue(s));
	}
	if (drops && signal != WEIR_EVENT_UNKNOWN)
		return weir_refuse(s, signal, threshold);
	reservation->kind = WEIR_RESERVATION_GIVEN;
	return WEIR_ANSWER_ADMIT;
}

#endif
