// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data plane at tc, where packets go out as well as in, devices need no Ethernet header, and a packet may be a
 * super-frame: several packets that the stack has merged, or has yet to cut. The decision is that of weir.bpf.c, over
 * the same tables.
 *
 * Matches ask for a packet's own source and destination. Everything behind them (lists, keys, connections) asks for its
 * remote and its local end: so a flow that is limited in both directions has one window. weir_turn() lies in between.
 */
#define WEIR_TC

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "admit.h"
#include "answers.h"
#include "enter.h"
#include "observe/count.h"
#include "observe/drops.h"
#include "observe/report.h"
#include "pace.h"
#include "packet/parse.h"
#include "packet/timed.h"
#include "verdict.h"

#define WEIR_VLAN_TAG_BYTES 4

/* ---- super-frames ---- */

/* How many packets the frame stands for. For a guest's super-frame (SKB_GSO_DODGY), the kernel has not counted the
 * segments yet, but their size is known.
 */
static __always_inline __u32 weir_segments_of(struct __sk_buff *skb, const struct weir_cursor *cur)
{
	__u32 segments = skb->gso_segs, bytes = skb->gso_size;

	if (!segments && bytes && skb->len > cur->payload)
		segments = (skb->len - cur->payload + bytes - 1) / bytes;
	return segments ?: 1;
}

/* The bytes of all segments as frames. At egress the kernel has just computed them. A VLAN tag that the kernel keeps
 * outside the frame counts, too; and for a device without Ethernet, so does the header that is missing.
 */
static __always_inline __u32 weir_wire_bytes(struct __sk_buff *skb, const struct weir_cursor *cur, __u32 segments,
					     bool is_bare, bool is_out)
{
	__u32 beside = (is_bare ? sizeof(struct ethhdr) : 0) + (skb->vlan_present ? WEIR_VLAN_TAG_BYTES : 0);

	if (is_out)
		return skb->wire_len + segments * beside;
	return skb->len + (segments - 1) * cur->payload + segments * beside;
}

/* ---- parsing ---- */

/* Out of line, for super-frames, frames without Ethernet, tagged frames, and what is neither UDP nor TCP. */
__noinline int weir_parse_skb(struct __sk_buff *skb, struct weir_scratch *s, __u32 is_bare, __u32 is_out)
{
	struct weir_cursor cur = {.ctx = skb, .frame_bytes = skb->len};
	const struct weir_harness *l = config.is_virtual ? weir_harness() : NULL;
	enum weir_parsed parsed;

	if (!s)
		return WEIR_PARSED_MALFORMED;
	if (l && l->frame_bytes)
		cur.frame_bytes = l->frame_bytes;
	cur.data = (void *)(long)skb->data;
	cur.end = (void *)(long)skb->data_end;
	cur.copy = s->header_copy;
	if (is_bare)
		cur.ethertype = skb->protocol;
	if (skb->vlan_present)
		cur.tag = skb->vlan_tci | WEIR_TAG_GIVEN;
	parsed = weir_parse(&cur, &s->packet);
	if (l)
		return parsed;
	s->segments = weir_segments_of(skb, &cur);
	s->packet.frame_bytes = weir_wire_bytes(skb, &cur, s->segments, is_bare, is_out);
	/* Of a super-frame, it is that of the first segment, which has as much payload as any of them. */
	if (config.asked_fields & WEIR_MATCH_IP_LENGTH && skb->gso_size && skb->len > cur.payload)
		s->packet.ip_length -= skb->len - cur.payload - skb->gso_size;
	return parsed;
}

/* Fill in s->packet and s->segments. WEIR_VERDICT_OPEN, or the verdict of a packet that no rule can evaluate. */
static __always_inline enum weir_verdict weir_parse_packet(struct __sk_buff *skb, struct weir_scratch *s,
							   const enum weir_direction direction, const bool is_bare)
{
	const bool is_out = direction != WEIR_DIRECTION_IN;
	enum weir_parsed parsed = WEIR_PARSED_IP;
	struct weir_cursor cur;

	weir_enter(s);
	s->segments = 1;
	s->packet.ifindex = skb->ifindex;
	cur.data = (void *)(long)skb->data;
	cur.end = (void *)(long)skb->data_end;
	cur.frame_bytes = skb->len;
	if (config.is_virtual)
		weir_enter_harness(s, &cur);
	if (is_bare || skb->gso_size || skb->vlan_present || config.asked_fields & WEIR_ASKS_PARSER ||
	    !weir_parse_usual(&cur, &s->packet, WEIR_MATCH_ALL))
		parsed = weir_parse_skb(skb, s, is_bare, is_out);
	s->packet.kind += WEIR_KIND_OF_DIRECTION(direction);
	return parsed == WEIR_PARSED_IP ? WEIR_VERDICT_OPEN : weir_class_verdict(&s->packet, parsed);
}

/* Swap the ends of an outgoing packet after matching: from here on, source is the remote end, as in incoming ones. */
static __always_inline void weir_turn(struct weir_packet *pkt)
{
	__u32 port = pkt->source_port;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		__be32 word = pkt->source[i];

		pkt->source[i] = pkt->destination[i];
		pkt->destination[i] = word;
	}
	pkt->source_port = pkt->destination_port;
	pkt->destination_port = port;
}

/* ---- the decision ---- */

/* A number for the `both` resources that the packet matches; 0: it matches none. The instance's secret makes it
 * different in every instance.
 */
static __always_inline __u32 weir_both_number(const struct weir_scratch *s)
{
	const volatile __u64 *seed = config.seed;
	__u64 sum = 0;

	for (__u32 i = 0; i < WEIR_PACKET_RESOURCES_MAX && i < s->resource_count; i++) {
		const struct weir_resource *resource = weir_resource(s->resource[i]);

		if (resource->is_both)
			sum += (resource->slot + 1) * seed[WEIR_SEED_KEY];
	}
	return sum ? (weir_hash_finish(sum, seed) & 0xffff) ?: 1 : 0;
}

/*
 * A forwarded packet counts once in a `both` resource: where it arrived. From there it carries the number of these
 * resources in its tc_index, which neither netfilter nor routing uses and which no answer inherits. If it matches the
 * same resources as it leaves, it has already been counted, and the rules have passed it. If it matches others, or if
 * the number is lost, it counts again: a limit that is too tight is better than one that is too loose.
 */
static __always_inline enum weir_verdict weir_match_forwarded(struct __sk_buff *skb, struct weir_scratch *s,
							      enum weir_verdict verdict)
{
	if (!skb->tc_index || skb->tc_index != weir_both_number(s))
		return verdict;
	skb->tc_index = 0;
	s->packet.kind += WEIR_KIND_OF_DIRECTION(1);
	verdict = weir_match_packet(s);
	if (verdict != WEIR_VERDICT_UNMATCHED_PASS)
		return verdict;
	s->wait_ns = 0;
	return WEIR_VERDICT_PASS;
}

static __always_inline enum weir_verdict weir_match_and_list(struct __sk_buff *skb, struct weir_scratch *s,
							     const bool is_out)
{
	enum weir_verdict verdict = weir_match_packet(s), listed;

	if (is_out && config.limits_both)
		verdict = weir_match_forwarded(skb, s, verdict);
	if (is_out)
		weir_turn(&s->packet);
	if (!(config.asked_fields & WEIR_ASKS_LISTS))
		return verdict;
	listed = weir_ask_lists(s);
	if (listed == WEIR_VERDICT_OPEN)
		return verdict;
	weir_match_nothing(s);
	return listed;
}

/* How long a packet that passes has to wait. */
static __always_inline __u64 weir_pace_wait_ns(const struct weir_scratch *s, enum weir_verdict verdict)
{
	return verdict == WEIR_VERDICT_PASS ? s->wait_ns : 0;
}

/* What few loads do when an incoming packet has its verdict, as in weir.bpf.c. */
__noinline int weir_act_after(struct __sk_buff *skb, struct weir_scratch *s, __u32 verdict, __u32 is_bare)
{
	if (!config.acts_after || !s)
		return 0;
	if (config.paces && !config.is_virtual)
		weir_pace_in(skb, s, weir_pace_wait_ns(s, verdict));
	if (config.answered_count)
		weir_show_answer(skb, s, verdict, is_bare);
	if (WEIR_PART_ANSWERS && verdict == WEIR_VERDICT_BLOCK && !config.observes)
		return weir_answer(skb, s, is_bare);
	return 0;
}

static __always_inline int weir_decide(struct __sk_buff *skb, const enum weir_direction direction, const bool is_bare)
{
	const bool is_out = direction != WEIR_DIRECTION_IN;
	__u32 zero = 0, passes;
	struct weir_scratch *s = bpf_map_lookup_elem(&totals, &zero);
	enum weir_verdict verdict;

	if (unlikely(!s))
		return TC_ACT_SHOT;
	/* Our own answer on its way out is no packet of the host's. The redirect brings it here at once, on this CPU,
	 * so a number serves once, and nobody can learn and forge it (other network namespaces can set a tc_index).
	 */
	if (WEIR_PART_ANSWERS && is_out && unlikely(s->answer_mark) && skb->tc_index == s->answer_mark &&
	    skb->ingress_ifindex == skb->ifindex) {
		s->answer_mark = skb->tc_index = 0;
		return TC_ACT_UNSPEC;
	}
	verdict = weir_parse_packet(skb, s, direction, is_bare);
	if (likely(verdict == WEIR_VERDICT_OPEN))
		verdict = weir_match_and_list(skb, s, is_out);
	else
		weir_match_nothing(s);
	OPAQUE(s); /* else clang 19 keeps eight bytes more of it on the stack */
	if (likely(verdict == WEIR_VERDICT_OPEN))
		verdict = weir_admit(skb, s, is_bare);
	passes = weir_count(s, verdict);
	if (config.is_virtual) {
		weir_report(s, verdict);
	} else if (unlikely(s->has_listener)) {
		s->is_bare = is_bare;
		weir_emit_noted_drops(skb, s, verdict);
	}
	if (is_out && config.paces_out && !config.is_virtual)
		weir_pace_out(skb, s, weir_pace_wait_ns(s, verdict));
	if (!is_out && config.acts_after && WEIR_ACTS_AFTER(verdict)) {
		int is_answer = weir_act_after(skb, s, verdict, is_bare);

		if (WEIR_PART_ANSWERS && is_answer) {
			skb->tc_index = s->answer_mark = (bpf_get_prandom_u32() & 0xffff) ?: 1;
			return bpf_redirect(skb->ifindex, 0);
		}
	}
	if (config.limits_both && !is_out)
		skb->tc_index = weir_both_number(s);
	return passes ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

SEC("tc")
int weir_tc_in(struct __sk_buff *skb)
{
	return weir_decide(skb, WEIR_DIRECTION_IN, false);
}

SEC("tc")
int weir_tc_out(struct __sk_buff *skb)
{
	return weir_decide(skb, WEIR_DIRECTION_OUT, false);
}

SEC("tc")
int weir_tc_bare_in(struct __sk_buff *skb)
{
	return weir_decide(skb, WEIR_DIRECTION_IN, true);
}

SEC("tc")
int weir_tc_bare_out(struct __sk_buff *skb)
{
	return weir_decide(skb, WEIR_DIRECTION_OUT, true);
}

char LICENSE[] SEC("license") = "GPL";
