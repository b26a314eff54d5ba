/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the hooks. Each object is compiled for one of them. In weir.bpf.c, for XDP, every packet is
 * incoming, and every frame is one packet. In weir_tc.bpf.c, for tc, packets may be outgoing, and a frame may stand for
 * several packets. At XDP, all of this is constant.
 */
#ifndef WEIR_HOOK_H
#define WEIR_HOOK_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

#include "scratch.h"

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak; /* since Linux 6.2; costs nothing */

#ifdef WEIR_TC

typedef struct __sk_buff weir_context;

#define WEIR_IS_OUT(pkt) ((pkt)->kind >= WEIR_KIND_OF_DIRECTION(WEIR_DIRECTION_OUT))
#define WEIR_SEGMENTS(s) ((s)->segments)

static __always_inline int weir_load_bytes(weir_context *ctx, __u32 offset, void *to, __u32 bytes)
{
	return bpf_skb_load_bytes(ctx, offset, to, bytes);
}

static __always_inline int weir_store_bytes(weir_context *ctx, __u32 offset, const void *from, __u32 bytes)
{
	return bpf_skb_store_bytes(ctx, offset, from, bytes, BPF_F_RECOMPUTE_CSUM);
}

static __always_inline __u32 weir_context_bytes(weir_context *ctx)
{
	return ctx->len;
}

static __always_inline int weir_set_frame_bytes(weir_context *ctx, __u32 bytes)
{
	return bpf_skb_change_tail(ctx, bytes, 0);
}

static __always_inline __u32 weir_context_ifindex(weir_context *ctx)
{
	return ctx->ifindex;
}

/* If the device has no Ethernet header, make one without addresses, so that readers of frames always find one. Returns
 * false if the frame has its own.
 */
static __always_inline bool weir_make_ethernet(weir_context *ctx, const struct weir_scratch *s, struct ethhdr *eth)
{
	if (!s->is_bare)
		return false;
	*eth = (struct ethhdr){.h_proto = ctx->protocol};
	return true;
}

#else

typedef struct xdp_md weir_context;

#define WEIR_IS_OUT(pkt) false
#define WEIR_SEGMENTS(s) 1

static __always_inline int weir_load_bytes(weir_context *ctx, __u32 offset, void *to, __u32 bytes)
{
	return bpf_xdp_load_bytes(ctx, offset, to, bytes);
}

static __always_inline int weir_store_bytes(weir_context *ctx, __u32 offset, const void *from, __u32 bytes)
{
	return bpf_xdp_store_bytes(ctx, offset, (void *)from, bytes);
}

static __always_inline __u32 weir_context_bytes(weir_context *ctx)
{
	return bpf_xdp_get_buff_len(ctx);
}

static __always_inline int weir_set_frame_bytes(weir_context *ctx, __u32 bytes)
{
	return bpf_xdp_adjust_tail(ctx, (int)(bytes - weir_context_bytes(ctx)));
}

static __always_inline __u32 weir_context_ifindex(weir_context *ctx)
{
	return ctx->ingress_ifindex;
}

static __always_inline bool weir_make_ethernet(weir_context *ctx, const struct weir_scratch *s, struct ethhdr *eth)
{
	return false;
}

#endif

/* The packet's units under a rule: its packets, or their bytes. */
static __always_inline __u64 weir_units(const struct weir_scratch *s, const struct weir_rule *rule)
{
	return rule->counts_bytes ? s->packet.frame_bytes : WEIR_SEGMENTS(s);
}

/* Do packets under this rule differ in their units? If so, one packet may fit where the one before did not. */
#ifdef WEIR_TC
#define WEIR_UNITS_DIFFER(s, rule) ((rule)->counts_bytes || (s)->segments != 1)
#else
#define WEIR_UNITS_DIFFER(s, rule) ((rule)->counts_bytes)
#endif

#endif
