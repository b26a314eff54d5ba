/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the wire's BPF programs and the bench agree on: what to send, and what was admitted.
 */
#ifndef WEIR_BENCH_WIRE_LOG_H
#define WEIR_BENCH_WIRE_LOG_H

#include <linux/types.h>

#define WIRE_PORTS 4	      /* 1, 2, ...: a limit each */
#define WIRE_BASE 0x0a000000u /* source 0 is 10.0.0.0 */
#define WIRE_SOURCE_BITS 24   /* sources of which is noted when they pass */
#define WIRE_FLOW_BITS 20     /* of these, which flow of its group: the rest is the group */
#define WIRE_GROUPS 16
#define WIRE_ITEMS_MAX 64
#define WIRE_CPUS_MAX 2

/* `packets` from `flows` sources in turn: WIRE_BASE + first + (next++ modulo flows). */
struct wire_item {
	__u32 first, flows, next;
	__u32 packets; /* as long as this is the present item */
	__u32 port;
	__u32 pad;
};

/* One CPU's items, one after the other, and again from the start. */
struct wire_schedule {
	struct wire_item item[WIRE_ITEMS_MAX];
	__u32 item_count;
	__u32 present;
	__u32 sent; /* of the present item */
	__u32 pad;
};

/* Where a packet carries the time when it was sent, from its IPv4 header on: at the start of UDP's payload. */
#define WIRE_STAMP_OFFSET 28

/* A packet that passed. Its verdict fell between the two. */
struct wire_record {
	__u64 sent_ns, received_ns;
	__u32 source; /* less WIRE_BASE */
	__u32 pad;
};

#define WIRE_RECORDS_MAX (1u << 22) /* of one CPU */

struct wire_count {
	__u64 records;
	__u64 pad[7];
};

/* The Ethernet addresses of a frame from "out" to "in": 02:00:00:00:00:02, 02:00:00:00:00:01. */
#define WIRE_ADDRESSES                                                                                                 \
	{                                                                                                              \
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1                                                                     \
	}

/* What to note. */
struct wire_setting {
	__u64 from_ns; /* what is sent from then on; 0: nothing */
	__u32 second_cpu;
	__u32 is_noted_by_weir;		/* not by the sockets, too */
	__u32 noted_flows[WIRE_GROUPS]; /* of each group, the first flows */
	__u32 tcp_sum;			/* of a TCP segment, all but source and port, RFC 1071; 0: UDP without one */
	__u32 headers[10];		/* ... and the packet, IPv4 and TCP without options */
};

#endif
