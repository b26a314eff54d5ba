/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The harness, by which replay and tests run the same program that is shipped, with a virtual clock
 * (weir_config.is_virtual). Before each packet userspace writes the clock, length and interface to map `harness`;
 * afterwards it reads the verdict.
 */
#ifndef WEIR_ABI_HARNESS_H
#define WEIR_ABI_HARNESS_H

#include "weir_sizes.h"
#include "weir_state.h"

/* The packet's flow under one of its rules, in the form by which each table finds its state. */
struct weir_harness_flow {
	struct weir_flow_key key;
	__u64 hash;  /* of shared sets: the tag, and in the lowest bits the set */
	__u64 other; /* the same of an associated rule's shadow window, or of the packet's connection */
	__u32 tag;   /* of its rows; of an associated rule those of the shadow window. 0: it has none, or lone ones */
	__u32 place; /* of the rule */
};

#define WEIR_NO_RULE 0xffffffffu
#define WEIR_HARNESS_HEADER_BYTES 32768 /* no header of a packet begins later (bpf/packet/parse.h) */
struct weir_harness {
	/* in */
	__u64 clock_ns;
	__u64 tick_late_ns; /* how long before clock_ns the latest tick was */
	__u32 frame_bytes;  /* length on the wire; 0: that of the frame given */
	__u32 ifindex;
	__u32 wants_flows; /* fill in flow[]: nothing that replay has time for */
	__u32 segments;	   /* at tc, how many packets it stands for; 0: one */
	/* out */
	__u32 verdict; /* enum weir_verdict */
	__u32 rule;    /* place of the enforced rule that blocked, or WEIR_NO_RULE */
	__u64 wait_ns; /* the wait that throttling asks for */
	__u32 resource_count;
	__u16 resource[WEIR_PACKET_RESOURCES_MAX]; /* places, ascending */
	struct weir_flow_key
		packet; /* the whole addresses, as far as they were asked for; of no IP packet: the last one's */
	__u32 flow_count;
	struct weir_harness_flow flow[WEIR_PACKET_RULES_MAX]; /* in the order of evaluation */
	/* in, at tc: the frame, of which the kernel gives a test no more than a page */
	__u32 kept_bytes; /* 0: the kernel gives it all */
	__u8 kept[WEIR_HARNESS_HEADER_BYTES + 64];
};

/* What bpf/tick.bpf.c reads: jiffies, and CLOCK_MONOTONIC right after. */
struct weir_tick_reading {
	__u64 jiffies;
	__u64 now_ns;
};

#endif
