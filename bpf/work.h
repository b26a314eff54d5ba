/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the program knows of the packet in hand. One per CPU, behind the counters of map `totals`: it is larger
 * than the stack allows, and functions that the verifier checks on their own reach it by pointer. XDP programs
 * of one CPU do not interrupt each other (PREEMPT_RT apart, which attach refuses).
 */
#ifndef WEIR_WORK_H
#define WEIR_WORK_H

#include <stdbool.h>

#include "weir_abi.h"

/* For the order of the code: what mostly runs lies together, and jumps little. That is worth a tenth of what a packet
 * costs that is blocked.
 */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define READ_ONCE(lvalue) (*(const volatile __typeof__(lvalue) *)&(lvalue))
#define WRITE_ONCE(lvalue, value) (*(volatile __typeof__(lvalue) *)&(lvalue) = (value))

/* Keeps the compiler from knowing what is in a register, so that a bound computed next stays in the
 * code, where the verifier needs to see it.
 */
#define OPAQUE(variable) asm volatile("" : "+r"(variable))

/* Makes the verifier forget what it knows of a number, by a trip through memory. A row found in way 0, 1,
 * 2 or 3 is otherwise four different states, each of which it follows to the end of the program.
 */
#define FORGET(memory, variable)                                                                                       \
	do {                                                                                                           \
		WRITE_ONCE(memory, variable);                                                                          \
		variable = READ_ONCE(memory);                                                                          \
	} while (0)

struct weir_packet {
	/* IPv4 in the first word; the rest is then left over from other packets. Aligned, to be copied by 64 bits. */
	__be32 source[4] __attribute__((aligned(8)));
	__be32 destination[4];
	__u32 frame_bytes;
	__u32 ifindex;
	__u32 forgotten;   /* see FORGET */
	__u32 source_port; /* host order, or WEIR_PORT_NONE */
	__u32 destination_port;
	__u32 vlan;	 /* id of the outer tag, or WEIR_VLAN_NONE */
	__u32 tcp_flags; /* or WEIR_BYTE_NONE */
	__u32 icmp_type; /* or WEIR_BYTE_NONE */
	__u8 is_ipv6;
	__u8 fragment;	      /* enum weir_fragment */
	__u8 parsed_protocol; /* while headers are parsed; then weir_protocol() */
	__u8 pad;
	__u32 kind; /* the last three in one: WEIR_KIND */
};

/* Index of a packet in weir_classes.kind, seen as one array. */
#define WEIR_KIND(is_ipv6, fragment, protocol) (((is_ipv6)*WEIR_FRAGMENT_KINDS + (fragment)) * 256 + (protocol))

static __always_inline __u8 weir_protocol(const struct weir_packet *pkt)
{
	return pkt->kind;
}

/*
 * By what the packet before was found to meet what still stands in weir_work.resource[] and .rule[]. A packet that is
 * the same in the fields that resources ask about meets the same: some hundred instructions less, and no chain of loads
 * that tell each where the next one is.
 */
struct weir_meeting {
	__u64 load; /* weir_config.load of the program that found it; 0: nothing stands there */
	__u32 kind;
	__u32 source_port;
	__u32 destination_port;
	__u32 vlan;
	__u32 tcp_flags;
	__u32 icmp_type;
};

/*
 * The flow that a packet's first rule, keyed by source, has found full twice in a row. While packets meet the same, and
 * jiffies say that the bucket is not over, whatever comes from there is blocked without asking any rule.
 */
struct weir_offender {
	__u64 until_jiffies; /* 0: there is none */
	__be32 mask[4];	     /* of the rule; of IPv4 the first word. At a multiple of 8 bytes, as is the next */
	__be32 source[4];    /* what is left of it under the mask */
	__u32 tag;	     /* of the flow that was blocked at once last */
	__u32 slot;	     /* of the rule */
};

/* What a rule that admitted the packet set aside for it. Settled when every rule has admitted, or one has blocked: the
 * first two never, the third only by a block.
 */
enum weir_claim_kind {
	WEIR_CLAIM_NONE,  /* nothing: the rule observes, and would have dropped */
	WEIR_CLAIM_GIVEN, /* admitted, and nothing is left to settle: no window of its own */
	WEIR_CLAIM_SPENT, /* spent from the row's lease, and not its last units; put back if the packet is blocked */
	WEIR_CLAIM_LEASE, /* spend from the row's lease */
	WEIR_CLAIM_BACKDATED,  /* already counted in an older bucket; undo if the packet is blocked */
	WEIR_CLAIM_CONNECTION, /* a connection changes: weir_work.connection says how */
};

struct weir_claim {
	__u32 row; /* set * WEIR_WAYS + way, or the slot of a lone row */
	__u32 tag;
	__u32 batch;
	__u8 kind;    /* enum weir_claim_kind */
	__u8 storage; /* enum weir_storage */
	__u8 cell;    /* of a backdated claim */
	__u8 pad;
};

/* What the packet is to do to a connection, when it passes (connections.h). */
struct weir_connection_claim {
	__u32 set;
	__u32 tag;
	__u8 event;	  /* enum weir_connection_event */
	__u8 class;	  /* of the state that was judged */
	__u8 is_reserved; /* counted already: in `flow`, in `step` */
	__u8 is_refused;  /* by a rule that observes */
	__u32 flow;
	__u32 flow_tag;
	__u32 step;
	__u64 counted; /* of one that opens: its word, if it counts already; else 0 */
};

/* Where a flow is looked for. Handed on by pointer: what clang takes by value out of *w, it reads byte by byte. */
struct weir_flow_place {
	__u32 tag;
	__u32 set; /* the first of the flow's two candidate sets */
};

/* One judgement in progress: which flow, in which bucket. Scalars only, and in memory, because the parts of
 * a judgement are functions that the verifier checks one at a time.
 */
struct weir_question {
	struct weir_flow_place place;
	__u32 slot; /* of the rule */
	__u32 timing;
	__u32 window_cells;
	__u32 cell; /* of the bucket judged in */
	__u64 bucket;
	__u8 is_smooth;
	__u8 is_lone;
	__u8 asks_all;
	__u8 pad[5];
};

/* What the rows of all CPUs hold. */
struct weir_sum {
	__u64 rest;
	__u64 oldest;	  /* smooth only: the bucket that is weighed */
	__u8 has_unspent; /* some of another CPU's units are leased, not spent */
	__u8 is_in_doubt; /* ... or are only being judged, and may be given back at once */
	__u8 ran_ahead;	  /* another CPU's clock is further than the ring reaches back */
	__u8 is_behind;	  /* a row is gone, or in a newer bucket: our bucket may be over */
	__u8 pad[4];
};

/* What a rule allows this packet's flow now, where that is not a constant (threshold.h). */
struct weir_allowed {
	__u64 word; /* a WEIR_THRESHOLD_WORD */
	struct weir_cost cost;
};

#define WEIR_COPY_BYTES 40  /* the largest fixed header: IPv6 */
#define WEIR_MATCH_PARTS 10 /* bits of enum weir_match_field */

/* What every packet uses comes first, close together: where others work between packets, each line of it is fetched
 * anew.
 */
struct weir_work {
	struct weir_packet packet;
	struct weir_meeting meeting;
	__u32 resource_count;
	__u32 first_slot; /* of the first of these resources */
	__u16 rule_count;
	__u16 narrow_count; /* of them, where there are several: those with narrow rows */
	__u32 placed;	    /* rules for which flow[] is filled in, where there are several */
	struct weir_offender offender;
	__u64 now_ns;	 /* valid when has_now: read at most once a packet, unless a judgement is repeated */
	__u64 jiffies;	 /* as they were just before now_ns was read */
	__u64 timers;	 /* where the kernel keeps those of this CPU; 0: not known */
	__u64 timer_ns;	 /* valid when has_timer: when its next one is due, read once a packet */
	__u64 lagged_ns; /* when the timer and jiffies were last seen to lag both; 0: never */
	__u64 wait_ns;	 /* the longest that a throttling rule asks for */
	__u16 has_now;
	__u8 has_timer;
	__u8 must_settle;	 /* a rule has set something aside that is to be settled when the packet passes, too */
	__u32 expects_admission; /* the packet before was not blocked at once; the offender's do not count */
	__u32 blocking_rule;	 /* place, or WEIR_NO_RULE; for the lab alone */
	__u32 judged;		 /* rules before the one being judged */
	struct weir_question question;
	__u32 located;			   /* number of the row that w->question is about, or WEIR_NO_ROW */
	__u32 present;			   /* whom to ask: bpf/presence.h */
	__u64 fence;			   /* target of fences; its value means nothing */
	__u64 noted_jiffies;		   /* when a talker was noted last */
	__u32 notes_left_out;		   /* since a talker was noted last, but for those of a new tick */
	__u32 last_rule;		   /* the largest in rule[] */
	struct weir_clock second;	   /* counts seconds, for statistics */
	__u16 rule[WEIR_PACKET_RULES_MAX]; /* places, ascending: the order of judgement */
	struct weir_claim claim[WEIR_PACKET_RULES_MAX];
	struct weir_clock narrow[WEIR_TIMINGS_NARROW]; /* for narrow rows; wide ones go by map `clocks` */

	/* what some packets use */
	struct weir_sum sum;
	struct weir_allowed allowed;
	__u64 forgotten;			   /* see FORGET */
	__u16 resource[WEIR_PACKET_RESOURCES_MAX]; /* places, in the order of their bits */
	struct weir_flow_place flow[WEIR_PACKET_RULES_MAX];
	__u32 vector[WEIR_MATCH_PARTS]; /* of each field in use, in the order of enum weir_match_field */
	__u8 header_copy[WEIR_COPY_BYTES];
	struct weir_connection_claim connection[WEIR_PACKET_RULES_MAX];
	__u64 connections_ns; /* the time, which does not go back for connections */
	__u32 counted_flow;   /* number and tag of the flow whose connections are counted */
	__u32 counted_tag;
	__u32 handshake_us; /* how long this packet's connection took to open */
	__u32 pad;
	struct weir_clock connection_clock[WEIR_CONNECTION_CLASSES]; /* count steps */
};
_Static_assert(sizeof(struct weir_work) <= WEIR_PRIVATE_WORDS * 8, "it lives in weir_totals.program_private");
/* A program of another load may go on with what this one leaves there: its clocks, for one. */
_Static_assert(
	sizeof(struct weir_work) == 2808 && WEIR_ABI_VERSION == 13,
	"a reload would read it otherwise than it was written: one more WEIR_ABI_VERSION, and both numbers here");

#endif
