/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scratch: what the program knows about the current packet, and what it remembers between packets to be faster. Each
 * CPU has one, in a map, because it is larger than the stack allows, and functions that the verifier checks separately
 * reach it by pointer. It follows the counters that every packet needs (struct weir_cpu_state), so that one look-up
 * finds both; before Linux 6.10, a look-up in a per-CPU array is a call. The scratch does not outlive a load, so any of
 * it may change from one version to the next: a program clears what another load has left (weir_begin_load()). XDP
 * programs of one CPU do not interrupt each other (PREEMPT_RT apart, which attach refuses).
 */
#ifndef WEIR_SCRATCH_H
#define WEIR_SCRATCH_H

#include <stdbool.h>

#include "weir_abi.h"
#include "weir_hook.h"

/* These order the code so that the parts that run most lie together. That saves a tenth of the cost of a blocked
 * packet.
 */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define READ_ONCE(lvalue) (*(const volatile __typeof__(lvalue) *)&(lvalue))
#define WRITE_ONCE(lvalue, value) (*(volatile __typeof__(lvalue) *)&(lvalue) = (value))

/* Hides the content of a register from the compiler, so that a bound that is tested next stays in the code, where the
 * verifier needs it.
 */
#define OPAQUE(variable) asm volatile("" : "+r"(variable))

/* Makes the verifier forget what it knows about a number, by storing it in memory and loading it. Otherwise, a row
 * found in way 0, 1, 2 or 3 is four different states, and the verifier follows each to the end of the program.
 */
#define FORGET(memory, variable)                                                                                       \
	do {                                                                                                           \
		WRITE_ONCE(memory, variable);                                                                          \
		variable = READ_ONCE(memory);                                                                          \
	} while (0)

struct weir_packet {
	/* IPv4 is in the first word; the rest is then left over from other packets. Aligned, to be copied by 64 bits.
	 * After matching, weir_turn() swaps the ends of an outgoing packet, so that source is always the remote end.
	 */
	__be32 source[4] __attribute__((aligned(8)));
	__be32 destination[4];
	union {
		__u32 frame_bytes;
		__u32 length; /* the same, by its name in matches */
	};
	__u32 ifindex;
	__u32 forgotten;   /* see FORGET */
	__u32 source_port; /* host order, or WEIR_PORT_NONE */
	__u32 destination_port;
	__u32 vlan;	 /* id of the outer tag, or WEIR_VLAN_NONE */
	__u32 tcp_flags; /* or WEIR_BYTE_NONE */
	__u32 icmp_type; /* or WEIR_BYTE_NONE */
	__u32 dscp;
	__u32 ttl; /* IPv6's hop limit */
	union {
		__u32 ip_length; /* header included, padding not; of a super-frame at tc, of its first segment */
		__u32 ethertype; /* host order; only for packets that are not IP */
	};
	__u8 is_ipv6;
	__u8 fragment;	      /* enum weir_fragment */
	__u8 parsed_protocol; /* during parsing; afterwards use weir_protocol() */
	__u8 pad;
	__u32 kind; /* the last three fields and the direction in one number: WEIR_KIND */
};

/* In packet.tcp_flags, beside WEIR_BYTE_NONE: the packet closes, and its checksum is wrong. */
#define WEIR_TCP_CHECKSUM_WRONG 0x200u
#define WEIR_TCP_COOKIE_SOUGHT 0x400u /* cookies.h has looked whether it brings back a cookie */
#define WEIR_TCP_COOKIE_FOUND 0x800u  /* it does */

/* The index of an incoming packet in weir_classes.kind, seen as one array; WEIR_KIND_OF_DIRECTION is added to it for an
 * outgoing one.
 */
#define WEIR_KIND(is_ipv6, fragment, protocol) (((is_ipv6)*WEIR_FRAGMENT_KINDS + (fragment)) * 256 + (protocol))
#define WEIR_KIND_OF_DIRECTION(direction) ((direction)*WEIR_KIND(2, 0, 0))

static __always_inline __u8 weir_protocol(const struct weir_packet *pkt)
{
	return pkt->kind;
}

/* Match fields of the previous packet. If equal, its matches (resource[], rule[]) are reused. */
struct weir_match_memory {
	__u32 kind_and_one; /* 0: there is nothing to reuse */
	__u32 source_port;
	__u32 destination_port;
	__u32 vlan;
	__u32 tcp_flags;
	__u32 icmp_type;
	__u32 work; /* enum weir_work, if there are system rules */
};

/* The previous packet's fields that a key may have (weir_fields.h), but the protocol, which is part of `kind`. If they
 * and its tick are equal, its flows are the same, under the same rules, and since then this CPU has not touched their
 * rows.
 */
#define WEIR_MEMORY_ADDRESS(member) __be32 member[4] __attribute__((aligned(8)));
#define WEIR_MEMORY_NUMBER(member) __u32 member;
#define WEIR_MEMORY_PORT(member) WEIR_MEMORY_NUMBER(member)
#define WEIR_MEMORY_VLAN(member) WEIR_MEMORY_NUMBER(member)
#define WEIR_MEMORY_PROTOCOL(member)
#define WEIR_MEMORY(constant, name, member, part, form) WEIR_MEMORY_##form(member)
struct weir_flow_memory {
	WEIR_KEY_FIELDS(WEIR_MEMORY)
	__u64 entry;	  /* as in the scratch */
	__u32 is_blocked; /* by plain rules, of which none has set anything aside */
};

/* The answer of one rule about a packet. */
enum weir_answer {
	WEIR_ANSWER_ADMIT,
	WEIR_ANSWER_BLOCK,
	WEIR_ANSWER_UNSURE, /* a shortcut does not know: ask the rule's kind */
	WEIR_ANSWER_AGAIN,  /* the bucket ended meanwhile: read the clock and ask again */
	WEIR_ANSWER_BARRED, /* blocked by enum weir_bar, so no penalty begins */
	WEIR_ANSWER_FOUND,  /* a second function evaluates (weir_kinds.def) */
	WEIR_ANSWER_ERROR,  /* a map entry that must exist is missing */
	WEIR_ANSWER_COOKIE, /* look for a cookie that the packet brings back, then ask again (cookies.h) */
};

#define WEIR_VERDICT_OPEN WEIR_VERDICT_COUNT /* none yet: ask the rules */

/* The format of a row. Functions take it as the constant `wide`, and are compiled once for each format. */
enum weir_width {
	WEIR_NARROW,
	WEIR_WIDE,
	WEIR_MEDIUM,
};
#define OF_WIDTH(wide, of_narrow, of_medium, of_wide)                                                                  \
	((wide) == WEIR_NARROW ? (of_narrow) : (wide) == WEIR_MEDIUM ? (of_medium) : (of_wide))

/* A call with the width of a row that is stored so, or of a lone one. */
#define OF_STORAGE(storage, function, ...)                                                                             \
	((storage) == WEIR_STORAGE_NARROW   ? function(__VA_ARGS__, WEIR_NARROW)                                       \
	 : (storage) == WEIR_STORAGE_MEDIUM ? function(__VA_ARGS__, WEIR_MEDIUM)                                       \
					    : function(__VA_ARGS__, WEIR_WIDE))

/* Where a flow is searched. Passed by pointer, because clang reads a struct that is taken by value from *s byte by
 * byte.
 */
struct weir_flow_id {
	__u32 tag;
	__u32 set; /* the first of the flow's two candidate sets */
};

/* Where a flow is inserted (flow_set.h). */
struct weir_flow_place {
	__u64 latest;	 /* the latest insertion; from weir_claim_flow() on, our own */
	__u64 ghost;	 /* the flow's ghost, which its entry continues with; 0: none */
	__u32 ghost_way; /* of that */
};

/* A flow keyed by source that the packet's first rule has found over its limit, penalised, or out of tokens. It stays
 * so for sure_jiffies after since_jiffies.
 */
struct weir_over_source {
	__be32 source[4]; /* under the rule's mask. Aligned, to be compared by 64 bits */
	__u64 since_jiffies;
	__u64 sure_jiffies;
	__u64 since_ns; /* for tokens, exact to the ns: it stays so for sure_ns after this; 0: not known */
	__u64 sure_ns;
	__u32 tag;
	__u16 place; /* of the rule */
	__u8 is_ipv6;
	__u8 pad;
} __attribute__((aligned(8)));

/* The flow whose drop this CPU has counted last, and its slot (top_drops.h). */
struct weir_last_dropped {
	__be32 source[4]; /* under the rule's mask. Aligned, to be compared by 64 bits */
	__u64 began;	  /* drop_run.packets when its run began: nothing is to be settled while they are equal */
	__u32 flow_tag;	  /* the tag of its row */
	__u32 rule;	  /* its place plus 1; 0: there was none yet */
	__u8 is_ipv6;
	__u8 pad[7];
} __attribute__((aligned(8)));

/* One CPU's current time, in buckets of one window spec (clock.h). */
struct weir_clock {
	__u64 bucket;	/* relative to the window spec's base */
	__u64 start_ns; /* the bucket's bounds; end_ns 0: never read */
	__u64 end_ns;
	__u64 since_jiffies; /* the bucket is certainly the present one for sure_jiffies from here on */
	__u64 sure_jiffies;
	__u64 latest_ns; /* the latest time that an evaluation used */
	__u32 cell;	 /* bucket modulo WEIR_RING_CELLS */
	__u32 salt;	 /* of notes; changes whenever `bucket` changes, even back to an earlier bucket */
	__u32 pad[2];
};
_Static_assert(sizeof(struct weir_clock) == WEIR_CLOCK_BYTES, "one cache line");

/* Which flows are over their limit until their bucket ends (notes.h). In a pair the lower half is the later note. */
struct weir_notes {
	__u64 pair[WEIR_NOTE_PAIRS];
};
_Static_assert(sizeof(struct weir_notes) == WEIR_NOTES_BYTES, "");

/* What a rule that admitted the packet has set aside for it (reservations.h). */
enum weir_reservation_kind {
	WEIR_RESERVATION_NONE,	  /* nothing: the rule observes, and would have dropped the packet */
	WEIR_RESERVATION_GIVEN,	  /* admitted with nothing set aside: the rule has no window */
	WEIR_RESERVATION_OF_KIND, /* the rule's kind knows what, and commits or aborts it (weir_kinds.def) */
	/* in a row */
	WEIR_RESERVATION_SPENT,	    /* spent from the row's lease, not its last units; put back on a block */
	WEIR_RESERVATION_LEASE,	    /* spend from the row's lease */
	WEIR_RESERVATION_BACKDATED, /* already counted in an older bucket; taken back on a block */
};

struct weir_reservation {
	__u32 row; /* set * WEIR_WAYS + way, or the slot of a lone row */
	__u32 tag;
	__u32 batch;
	__u8 kind;    /* enum weir_reservation_kind */
	__u8 storage; /* enum weir_storage */
	__u8 cell;    /* of a backdated reservation */
	__u8 pad;
};

/* What the packet will do to a connection if it passes (connections.h). */
struct weir_connection_reservation {
	__u32 set;
	__u32 tag;
	__u8 event;	  /* enum weir_connection_event */
	__u8 class;	  /* of the state that was evaluated */
	__u8 is_reserved; /* already counted, in `flow` at `step` */
	__u8 is_refused;  /* by a rule that observes */
	__u32 flow;
	__u32 flow_tag;
	__u32 step;
	__u32 open;	   /* connections of its flow, including this one; until it is reserved, enum weir_flow_found */
	__u16 was_counted; /* if the packet talks */
	__u16 is_first;	   /* of its flow, which got its entry with it; no total counts it yet */
	__u64 counted;	   /* if the packet opens a connection that already counts: its word; else 0 */
};

/* One attempt to commit a change to a connection (connections.h). */
struct weir_connection_change {
	__u64 word;    /* of the connection, as it was read */
	__u64 changed; /* what it becomes */
	__u32 state;
	__u32 next;
	__u32 way;
	__u32 pad;
};

/* What the packet will do to a request of a circuit breaker if it passes (requests.h). */
struct weir_request_reservation {
	__u32 set;
	__u32 tag;
	__u64 word;   /* of the request, if it is already being opened; 0: this packet begins it */
	__u64 probe;  /* the breaker's state that this packet created as the probe; 0: it is not the probe */
	__u64 before; /* the state before that */
	__u32 era;    /* the era that admits it; 0: the breaker is closed */
	__u32 event;  /* enum weir_connection_event */
};

/* Requests whose outcome has become known (breakers.h). */
struct weir_outcome {
	__u64 moment_ns;
	__u64 count;
	__u32 era;
	__u32 is_bad;
};

/* Where an occupy window has counted the packet (occupy.h). */
struct weir_occupy_reservation {
	__u64 mark;    /* of the cell's bucket and owner */
	__u64 wait_ns; /* the time until that bucket begins; 0: it has begun */
	__u32 set, way;
	__u32 slot; /* of the rule */
	__u8 cell;
	__u8 unit_bits;
	__u8 is_keyed; /* the window is at `set` and `way`; otherwise at the slot */
	__u8 pad;
};

/* An occupy window as it was just read: the n buckets of the window, oldest first, and the n after them. */
struct weir_occupy_view {
	__u64 word[WEIR_OCCUPY_CELLS];
	__u64 units[WEIR_OCCUPY_CELLS];
	__u64 ghost;	 /* units in the flow's ghosts; they count in every window examined */
	__u64 current;	 /* units of the window, including `ghost` */
	__u64 occupied;	 /* units of all later buckets */
	__u64 first;	 /* the number of the first bucket */
	__u64 own;	 /* the bucket of the packet's time */
	__u64 newest_ns; /* the flow's newest known bucket at that time */
	__u64 next_ns;	 /* when the first later bucket begins */
	__u64 time_ns;	 /* the time at which the packet is evaluated */
	__u64 wait_ns;	 /* from then until the occupied bucket begins */
};

/* Input to the token-bucket check for this packet (tokens.h). */
struct weir_token_view {
	struct weir_token_clock clock;
	__u64 now; /* virtual time, as in a bucket's word */
	__u64 capacity;
	__u32 epoch;
	__u32 batch_max;
	__u32 mark;
	__u32 owner; /* of the flow's bucket */
};

/* A packet under a rule with fairBy (fair.h). */
struct weir_fair_view {
	struct weir_flow_id child;
	struct weir_flow_id parent;
	__u64 now_ns;
	__u64 interval; /* its number */
	__u64 word;	/* what the child had offered before this packet: weir_fair_child.offered */
	struct weir_fair_search search;
};

/* A packet counted in a row without a lease (shortcuts.h). */
struct weir_first {
	__u64 before; /* units of the present bucket before that */
	__u64 units;  /* of the packet, plus those of a lease */
};

/* What a packet took out of a bucket, and when. */
struct weir_taken {
	__u64 former; /* the bucket's word before */
	__u64 word;   /* W, as it left it */
	__u64 now;    /* V */
	__u64 now_ns;
	__u64 whole; /* V grows by this much per ns, or by less than one more */
	__u64 lacks; /* for a blocked packet: how much V has to grow until it fits; 0: not known */
};

/* What an evaluation reads: the rows of which flow, at which bucket. Only scalars, and in memory, because the parts of
 * an evaluation are functions that the verifier checks one at a time.
 */
struct weir_view {
	struct weir_flow_id flow;
	__u32 slot; /* of the rule */
	__u32 spec;
	__u32 window_cells;
	__u32 cell; /* of the bucket evaluated in */
	__u64 bucket;
	__u64 now_ns; /* the time of the evaluation */
	__u8 is_smooth;
	__u8 is_lone;
	__u8 asks_all;
	__u8 overflow;	 /* as in the rule */
	__u16 page_sets; /* the number of sets of its rows in a page */
	__u16 is_mixed;	 /* no row is free, and some are of another window spec */
};

/* The sum over the rows of all CPUs. */
struct weir_sum {
	__u64 rest;
	__u64 oldest;	  /* smooth only: the bucket that is weighed */
	__u8 has_unspent; /* some units of another CPU are leased, not spent */
	__u8 is_in_doubt; /* some units of another CPU are only being evaluated, and may be given back at once */
	__u8 ran_ahead;	  /* another CPU's clock is so far ahead that its ring no longer has our bucket */
	__u8 is_behind;	  /* a row is gone, or in a newer bucket: our bucket may be over */
	__u8 misses_row;  /* a CPU that may have counted the flow has no row for it now */
	__u8 pad[3];
};

/* A row that is being evicted, or the flow whose ghosts are searched (row_ghosts.h). */
struct weir_row_ghost_view {
	__u32 name;
	__u32 set, other_set; /* the near set, beside the set of its row (or the first of its two); and the far one */
	__u32 vain_looks;     /* evictions since other_set last had a free word */
	__u32 tag;
	__u32 window_cells;
	__u64 newest; /* of the row */
	__u64 units;
	__u64 expired;	 /* the newest bucket of its window spec that no longer counts */
	__u64 span_ns;	 /* the longest time that its units count */
	__u64 inherited; /* units of the overflow window with which a new row of the flow begins */
	__u32 overflow_class;
	__u32 taken; /* words of the set that was ranked last that are not free */
	__u32 stamp; /* when, in the bucket `newest`, the row was evicted */
};

/* The present threshold of this packet's flow, if it is not a constant (threshold.h). */
struct weir_allowed {
	__u64 word; /* a WEIR_THRESHOLD_WORD */
	struct weir_emission emission;
};

/* The state of a flow whose packet has just been refused, as the rule's kind knows it. An event reports it
 * (include/weir_events.h).
 */
struct weir_refusal {
	__u64 used;
	__u64 threshold;
	__u64 unit; /* this many parts of `used` and `threshold` are one unit */
};

/* A drop to be reported once the packet's verdict is final (drops.h). */
struct weir_noted_drop {
	struct weir_refusal refusal;
	__u32 is_noted;
	__u32 place; /* of the rule, or WEIR_NO_RULE */
	__u32 flags; /* enum weir_event_flag, or-ed */
	__u32 pad;
};
enum { WEIR_NOTED_OBSERVED, WEIR_NOTED_BLOCKED, WEIR_NOTED_DROPS };

/* A TCP segment whose checksum is verified: as much as one call of bpf_csum_diff() sums (Linux 6.1). */
#define WEIR_CLOSING_BYTES_MAX 512

#define WEIR_COPY_BYTES 40  /* the largest fixed header: IPv6 */
#define WEIR_MATCH_PARTS 13 /* bits of enum weir_match_field */
_Static_assert(WEIR_MATCH_ALL == (1 << WEIR_MATCH_PARTS) - 1, "");

/* Fields that every packet uses come first, close together, because other work between packets evicts these lines from
 * the cache, and each has to be fetched again.
 */
struct weir_scratch {
	struct weir_totals totals;
	struct weir_drop_run drop_run;
	__u64 entry; /* tick ^ weir_config.load; when it changes, weir_enter_tick() runs */
#ifdef WEIR_TEST_SCRATCH_PAD
	__u64 pad_of_test[WEIR_TEST_SCRATCH_PAD]; /* what survives a reload must not depend on the scratch's layout */
#endif
	struct weir_packet packet;
	struct weir_match_memory match_memory;
	struct weir_flow_memory flow_memory; /* of packets with several rules */
	struct weir_over_source over_source;
	union {
		__u64 slot_and_rule;
		struct {
			__u32 first_slot;    /* the slot of the first of the packet's resources */
			__u32 blocking_rule; /* the place of the rule that blocked the latest packet */
		};
	};
	__u64 alike;	  /* which counters the latest packet was counted in (count.h) */
	__u32 alike_left; /* so many more packets like it until a run begins */
	__u64 load_tick;  /* the tick in which the load began here */
	__u64 entry_tick; /* the tick in `entry`; `tick` may have been read again since */
	__u32 resource_count;
	__u32 flows_and_one;   /* rules whose flow is in fetched_flow[]: all, or none; 0: no flow_memory either */
	__u32 must_commit;     /* some rule has set something aside, to be committed if the packet passes */
	__u32 must_abort;      /* ... or has spent something in a row, to be put back if the packet is blocked */
	__u32 is_new_flow;     /* the packet has made a row; only if there are several rules */
	__u32 ghosts_of_rules; /* rules with narrow rows under which the packet's flow may have ghosts, one bit each */
	__u32 known;	       /* under so many of its rules, reservation[] names the row of the packet's flow */
	__u32 nth;	       /* the number of the rule being asked, among those of the packet */
	__u32 retries;	       /* evaluations of this packet that were repeated because the bucket ended */
	__u32 cpu_and_one;     /* this CPU's number plus 1; 0: not asked yet */
	__u32 row_number;      /* the flow's row under that rule, or WEIR_NO_ROW; for a lone row, the slot */
	struct weir_flow_id flow; /* the packet's flow under that rule */
	__u64 tick;		  /* jiffies when the packet arrived: its time, for rules that use the tick */
	__u64 tick_ns;		  /* when that tick began */
	__u32 tick_s;		  /* the second in which it began */
	__u32 has_listener;	  /* a reader was listening for drops when that tick began */
	__u64 now_ns;  /* CLOCK_MONOTONIC if has_now: read at most once per packet, unless an evaluation is repeated */
	__u64 wait_ns; /* the longest wait that a throttling rule asks for */
	__u32 has_now;
	__u32 rule_count;
	__u32 expects_admission; /* no shortcut of its first rule blocked the previous packet */
	struct weir_view view;
	struct weir_first first;
	__u64 fence;			   /* target of fences; its value has no meaning */
	__u64 key_sample_tick;		   /* when the last key sample was recorded */
	__u32 key_samples_skipped;	   /* since then */
	__u32 may_have_ghosts;		   /* false if weir_fetch_flow() has just found that s->flow has none */
	__u32 present;			   /* the other CPUs to ask: sharers.h */
	__u16 rule[WEIR_PACKET_RULES_MAX]; /* places, ascending: the order of evaluation */
	struct weir_reservation reservation[WEIR_PACKET_RULES_MAX];
	struct weir_clock narrow_clock[WEIR_SPECS_NARROW]; /* for narrow and medium rows; wide ones use map `clocks` */

	/* what some packets use */
	struct weir_last_dropped last_dropped;
	__u32 drops_left;    /* how many more drops of this tick are counted one by one */
	__u32 drops_gap;     /* after those: how many drops are skipped before the next sample */
	__u32 drops_skipped; /* how many have been skipped so far */
	__u32 drops_random;
	__u32 was_barred;   /* a rule has just blocked the packet by its bar, not by its window */
	__u32 hits_skipped; /* hits of busy timed entries: timed.h */
	struct weir_refusal refusal;
	struct weir_noted_drop noted[WEIR_NOTED_DROPS];
	struct weir_sum sum;
	struct weir_row_ghost_view row_ghost;
	struct weir_allowed allowed;
	__u32 warming_place;	       /* the place of the rule that `warming` belongs to, or WEIR_NO_RULE */
	struct weir_flow_place place;  /* where in a set of flows a new flow will be inserted */
	__u32 warming_way;	       /* the way of `warming` in its set */
	struct weir_flow_id warming;   /* the packet's flow in warming_flows */
	__u64 penalty_until_ns;	       /* the end of the latest penalty that was begun or found running */
	struct weir_flow_id penalised; /* the packet's flow in penalised_flows, under the rule asked last */
	struct weir_fair_view fair;    /* the packet's child and parent, under the rule with fairBy asked last */
	struct weir_flow_key key;      /* of the flow hashed last */
	__u64 forgotten;	       /* see FORGET */
	struct weir_flow_id fetched_flow[WEIR_PACKET_RULES_MAX]; /* of rules with narrow rows */
	__u32 last_rule;					 /* the largest place in rule[], during listing */
	__u16 resource[WEIR_PACKET_RESOURCES_MAX];		 /* places, in the order of their bits */
	__u32 vector[WEIR_MATCH_PARTS]; /* of each field in use, in the order of enum weir_match_field */
	__u8 header_copy[WEIR_COPY_BYTES];
	__u32 segments; /* at tc: how many packets the frame stands for (hook.h) */
	__u32 is_bare;	/* at tc, while a reader listens: the device has no Ethernet header */
	struct weir_connection_reservation connection[WEIR_PACKET_RULES_MAX];
	struct weir_connection_change change;
	__u64 opening_threshold; /* of the rule by which an opening is evaluated */
	__u64 connections_ns;	 /* the time for connections, which never goes back */
	__u32 counted_flow;	 /* number and tag of the flow whose connections are counted */
	__u32 counted_tag;
	__u32 counted_open; /* how many it has, including the one just counted */
	__u32 counted_step; /* of the first one of a flow that has just got its entry */
	__u32 handshake_us; /* how long this packet's connection took to open */
	struct weir_token_view tokens;
	struct weir_taken taken[WEIR_PACKET_RULES_MAX];
	struct weir_clock connection_clock[WEIR_CONNECTION_CLASSES]; /* count steps */
	struct weir_clock all_steps;				     /* their sum, until the first of them ends */
	__u64 ends_tick;					     /* the tick when ends[] was computed */
	__u32 ends[WEIR_CONNECTION_CLASSES];
	__u32 breaker_tag; /* the flow whose breaker was looked up last; 0: a whole resource */
	struct weir_request_reservation request[WEIR_PACKET_RULES_MAX];
	struct weir_outcome outcome; /* being counted */
	__u64 group_position;	     /* of the group that was joined last or is due first */
	__u64 earliest_due;	     /* when that group is due */
	__u32 outcome_fails;	     /* the packet that ends the request resets or finishes it */
	__u32 is_prioritized;	     /* one of the packet's resources is prioritized: it may occupy later buckets */
	struct weir_occupy_view occupy;
	struct weir_occupy_reservation occupy_reservation[WEIR_PACKET_RULES_MAX];
	struct weir_packet closing; /* this packet, parsed once more */
	/* by words, the last of them with zeros behind the segment's end */
	__u8 segment[WEIR_CLOSING_BYTES_MAX + sizeof(__u32)] __attribute__((aligned(8)));
	__u64 answers_until_ns[WEIR_ANSWER_BUCKETS]; /* this CPU may send answers_left[] until then */
	__u32 answers_left[WEIR_ANSWER_BUCKETS];
	__u32 answer_mark; /* at tc: the tc_index of the answer that is on its way out; 0: none is */
};
_Static_assert(__builtin_offsetof(struct weir_scratch, entry) == __builtin_offsetof(struct weir_cpu_state, scratch),
	       "");
_Static_assert(sizeof(struct weir_scratch) <= __builtin_offsetof(struct weir_cpu_state, count_run), "");

#endif
