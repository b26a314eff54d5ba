// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data plane at XDP, read from the top: parse the packet, ask the lists, match resources, admit by their rules,
 * count. weir_tc.bpf.c is the same at tc, for packets in both directions. docs/internals/architecture.md has the map.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "admit.h"
#include "answers.h"
#include "enter.h"
#include "observe/count.h"
#include "observe/drops.h"
#include "pace.h"
#include "packet/parse.h"
#include "observe/report.h"
#include "packet/timed.h"
#include "verdict.h"

/* The fields of the kernel's struct that are used below; their offsets are found at load (CO-RE). */
struct xdp_buff___weir {
	__u32 flags;
} __attribute__((preserve_access_index));
#define XDP_FLAGS_HAS_FRAGS 1u /* include/net/xdp.h of the kernel */

/* In a frame of several buffers, data and data_end bound only the first. The helper that returns the whole length costs
 * a call. So it is called only for such frames, if the kernel shows which frames they are.
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

/* Out of line, for unusual frames, so that the path of all others stays short. */
__noinline int weir_parse_frame(struct xdp_md *ctx, struct weir_scratch *s, __u32 frame_bytes)
{
	struct weir_cursor cur = {.ctx = ctx, .frame_bytes = frame_bytes};

	if (!s)
		return WEIR_PARSED_MALFORMED;
	cur.data = (void *)(long)ctx->data;
	cur.end = (void *)(long)ctx->data_end;
	cur.copy = s->header_copy;
	return weir_parse(&cur, &s->packet);
}

/* Fill in s->packet. WEIR_VERDICT_OPEN, or the verdict of a packet that no rule can evaluate. */
static __always_inline enum weir_verdict weir_parse_packet(struct xdp_md *ctx, struct weir_scratch *s)
{
	__u32 asked = config.asked_fields;
	enum weir_parsed parsed;
	struct weir_cursor cur;

	weir_enter(s);
	cur.data = (void *)(long)ctx->data;
	cur.end = (void *)(long)ctx->data_end;
	cur.frame_bytes = weir_frame_bytes(ctx, &cur);
	if (unlikely(asked & (WEIR_MATCH_INTERFACE | WEIR_ASKS_HARNESS | WEIR_ASKS_PARSER))) {
		s->packet.ifindex = ctx->ingress_ifindex;
		if (config.is_virtual)
			weir_enter_harness(s, &cur);
		if (asked & WEIR_ASKS_PARSER)
			goto any_frame;
	}
	if (likely(weir_parse_usual(&cur, &s->packet, asked)))
		return WEIR_VERDICT_OPEN;
any_frame:
	parsed = weir_parse_frame(ctx, s, cur.frame_bytes);
	return parsed == WEIR_PARSED_IP ? WEIR_VERDICT_OPEN : weir_class_verdict(&s->packet, parsed);
}

/* What few loads do after a packet's verdict. Out of line, so that it costs other loads no registers. Returns whether
 * the frame has become an answer.
 */
__noinline int weir_act_after(struct xdp_md *ctx, struct weir_scratch *s, __u32 verdict)
{
	if (!config.acts_after || !s)
		return 0;
	if (config.paces && !config.is_virtual && verdict == WEIR_VERDICT_PASS && s->wait_ns)
		weir_pace_mark(ctx, s);
	if (config.answered_count)
		weir_show_answer(ctx, s, verdict, false);
	if (WEIR_PART_ANSWERS && verdict == WEIR_VERDICT_BLOCK && !config.observes)
		return weir_answer(ctx, s, false);
	return 0;
}

SEC("xdp.frags")
int weir_ingress(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct weir_scratch *s = bpf_map_lookup_elem(&totals, &zero);
	enum weir_verdict verdict;
	__u32 passes;

	if (unlikely(!s))
		return XDP_DROP;
	verdict = weir_parse_packet(ctx, s);
	if (verdict == WEIR_VERDICT_OPEN && config.asked_fields & WEIR_ASKS_LISTS)
		verdict = weir_ask_lists(s);
	if (likely(verdict == WEIR_VERDICT_OPEN))
		verdict = weir_match_packet(s);
	else
		weir_match_nothing(s);
	if (likely(verdict == WEIR_VERDICT_OPEN))
		verdict = weir_admit(ctx, s, false);
	passes = weir_count(s, verdict);
	if (config.is_virtual)
		weir_report(s, verdict);
	else if (unlikely(s->has_listener))
		weir_emit_noted_drops(ctx, s, verdict);
	if (config.acts_after && WEIR_ACTS_AFTER(verdict)) {
		int is_answer = weir_act_after(ctx, s, verdict);

		if (WEIR_PART_ANSWERS && is_answer)
			return XDP_TX;
	}
	return XDP_DROP + passes; /* or XDP_PASS, which is the next one */
}

char LICENSE[] SEC("license") = "GPL";
