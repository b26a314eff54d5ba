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
	__u64 hash; /* in shared sets: the tag, and in the lowest bits the set */
	/* The same of an associated rule's shadow window, of the packet's connection, or of the child with fairBy. */
	__u64 other;
	__u32 tag; /* of its rows (for an associated rule, of the shadow window's). 0: it has no rows, or a lone one */
	__u32 place; /* of the rule */
};

#define WEIR_NO_RULE 0xffffffffu
#define WEIR_HARNESS_HEADER_BYTES 32768 /* no header of a packet begins later (bpf/packet/parse.h) */
#define WEIR_WANTS_ANSWER 1
#define WEIR_WANTS_SUPPOSED_ANSWER 2 /* cookies, as if every packet were for a listening socket */
struct weir_harness {
	/* in */
	__u64 clock_ns;
	__u64 tick_late_ns; /* how long before clock_ns the latest tick was */
	__u32 frame_bytes;  /* length on the wire; 0: the length of the frame passed in */
	__u32 known_bytes;  /* of the frame; a capture has cut off the rest, which is zeros; 0: all */
	__u32 ifindex;
	__u32 wants_flows;  /* fill in flow[]; too slow for replay */
	__u32 segments;	    /* at tc, how many packets it stands for; 0: one */
	__u32 wants_answer; /* to a blocked packet: the frame becomes it. WEIR_WANTS_*; 0: no */
	/* out */
	__u32 verdict; /* enum weir_verdict */
	__u32 rule;    /* place of the enforced rule that blocked the packet, or WEIR_NO_RULE */
	__u32 answer;  /* enum weir_on_block; 0: none */
	__u64 wait_ns; /* the wait that throttling asks for */
	__u32 resource_count;
	__u16 resource[WEIR_PACKET_RESOURCES_MAX]; /* places, ascending */
	struct weir_flow_key
		packet; /* whole addresses, if some field needed them; if the packet is not IP, those of the last one */
	__u32 has_ports; /* else those of `packet` are 0: its protocol has none, or it is a later fragment */
	__u32 flow_count;
	struct weir_harness_flow flow[WEIR_PACKET_RULES_MAX]; /* in the order of evaluation */
	/* input, at tc: the frame, because the kernel gives a test at most a page of it */
	__u32 kept_bytes; /* 0: the kernel gives it all */
	__u8 kept[WEIR_HARNESS_HEADER_BYTES + 64];
};

/* What bpf/tick.bpf.c reads: jiffies, and CLOCK_MONOTONIC right after. */
struct weir_tick_reading {
	__u64 jiffies;
	__u64 now_ns;
};

#endif
