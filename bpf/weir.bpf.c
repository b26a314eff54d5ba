// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data plane, read from the top: parse the packet, find the resources it belongs to, ask their
 * rules, count the verdict, act on it. docs/architecture.md follows a packet through these files.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "clock.h"
#include "lists.h"
#include "maps.h"
#include "match.h"
#include "pace.h"
#include "parse.h"
#include "stats.h"
#include "verdict.h"
#include "window.h"

/* As much of the kernel's struct as is asked for below; where it lies is found at load (CO-RE). */
struct xdp_buff___weir {
	__u32 flags;
} __attribute__((preserve_access_index));
#define XDP_FLAGS_HAS_FRAGS 1u /* include/net/xdp.h of the kernel */

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak; /* since Linux 6.2; costs nothing */

/* In a frame of several buffers data and data_end bound the first only. The helper that knows is a call, so
 * it is asked only for such frames where the kernel lets us see which they are.
 */
static __always_inline __u32 weir_frame_bytes(struct xdp_md *ctx, const struct weir_cursor *cur)
{
	if (bpf_cast_to_kern_ctx) {
		struct xdp_buff___weir *xdp = bpf_cast_to_kern_ctx(ctx);

		if (!(xdp->flags & XDP_FLAGS_HAS_FRAGS))
			return cur->end - cur->data;
	}
	return bpf_xdp_get_buff_len(ctx);
}

/* The lab has a frame's length and interface of its own, and asks for more than a verdict. */
static __always_inline void weir_meet_lab(struct weir_work *w, struct weir_cursor *cur)
{
	struct weir_lab *l = weir_lab();

	w->blocking_rule = WEIR_NO_RULE;
	if (!l)
		return;
	if (l->frame_bytes)
		cur->frame_bytes = l->frame_bytes;
	w->packet.ifindex = l->ifindex;
	/* In a capture the clock may go back; for connections it does not, whatever the packet. */
	if (config.has_connections)
		weir_connections_now_ns(w);
}

static __always_inline void weir_meet_frame(struct xdp_md *ctx, struct weir_work *w, struct weir_cursor *cur,
					    __u32 asked)
{
	w->has_now = 0;
	w->has_timer = 0;
	cur->data = (void *)(long)ctx->data;
	cur->end = (void *)(long)ctx->data_end;
	cur->frame_bytes = weir_frame_bytes(ctx, cur);
	if (asked & WEIR_MATCH_INTERFACE)
		w->packet.ifindex = ctx->ingress_ifindex;
	if (config.is_virtual)
		weir_meet_lab(w, cur);
}

/* Out of line, for frames of an unusual shape: the way of all others stays short. */
__noinline int weir_parse_frame(struct xdp_md *ctx, struct weir_work *w)
{
	struct weir_cursor cur = {.ctx = ctx};

	if (!w)
		return WEIR_PARSED_MALFORMED;
	cur.data = (void *)(long)ctx->data;
	cur.end = (void *)(long)ctx->data_end;
	cur.copy = w->header_copy;
	cur.frame_bytes = w->packet.frame_bytes;
	return weir_parse(&cur, &w->packet);
}

#define WEIR_VERDICT_OPEN WEIR_VERDICT_COUNT /* none yet: rules are to be asked */

/* Read the frame, and find out what it meets. */
static __always_inline enum weir_verdict weir_read_frame(struct xdp_md *ctx, struct weir_work *w)
{
	__u32 asked = config.asked_fields;
	enum weir_parsed parsed;
	struct weir_cursor cur;

	weir_meet_frame(ctx, w, &cur, asked);
	if (unlikely(!weir_parse_usual(&cur, &w->packet, asked))) {
		w->packet.frame_bytes = cur.frame_bytes;
		parsed = weir_parse_frame(ctx, w);
		if (parsed != WEIR_PARSED_IP) {
			weir_meet_nothing(w);
			return weir_class_verdict(parsed);
		}
	}

	if (config.has_lists) {
		__u32 listed = weir_listed(&w->packet);

		if (listed != WEIR_LIST_NEITHER) {
			weir_meet_nothing(w);
			return weir_listed_verdict(listed);
		}
	}
	if (unlikely(weir_meet(w)))
		return WEIR_VERDICT_ERROR;
	return likely(w->resource_count) ? WEIR_VERDICT_OPEN : weir_unmatched_verdict(&w->packet);
}

/* Tell the lab what became of the packet. */
static __always_inline void weir_report(const struct weir_work *w, enum weir_verdict verdict)
{
	struct weir_lab *l = weir_lab();

	if (!l)
		return;
	l->verdict = verdict;
	l->rule = w->blocking_rule;
	l->wait_ns = verdict == WEIR_VERDICT_PASS ? w->wait_ns : 0;
	l->resource_count = w->resource_count;
	__builtin_memcpy(l->resource, w->resource, sizeof(l->resource));
}

/* A flood from one source ends here, so it is the shortest way through the program. (Not in the lab: there jiffies tell
 * nothing, and nobody is known to be the offender.)
 */
static __always_inline int weir_drop_offender(struct weir_totals *here, struct weir_work *w)
{
	__u32 bytes = w->packet.frame_bytes;
	struct weir_rule_counters *counters = weir_rule_counters(w->offender.slot);

	if (counters)
		weir_tally(&counters->blocked, bytes);
	weir_count_verdict(here, WEIR_VERDICT_BLOCK, bytes);
	weir_count_resources(w, false);
	return XDP_DROP;
}

SEC("xdp.frags")
int weir_ingress(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct weir_totals *here = bpf_map_lookup_elem(&totals, &zero);
	enum weir_verdict verdict;
	struct weir_work *w;

	if (unlikely(!here))
		return XDP_DROP;
	w = (struct weir_work *)here->program_private;
	verdict = weir_read_frame(ctx, w);
	if (likely(verdict == WEIR_VERDICT_OPEN)) {
		if (weir_is_of_offender(w))
			return weir_drop_offender(here, w);
		verdict = weir_admit(w);
	}
	weir_count_verdict(here, verdict, w->packet.frame_bytes);
	if (w->resource_count)
		weir_count_resources(w, verdict == WEIR_VERDICT_PASS);
	if (config.is_virtual)
		weir_report(w, verdict);
	else if (config.paces && verdict == WEIR_VERDICT_PASS && w->wait_ns)
		weir_pace_mark(ctx, w);
	return weir_verdict_passes(verdict) ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int weir_learn_timers(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct weir_totals *here = bpf_map_lookup_elem(&totals, &zero);

	if (here)
		weir_learn_timers_here((struct weir_work *)here->program_private);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
