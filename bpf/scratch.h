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
	/* IPv4 in the first word; the rest is then left over from other packets. Aligned, to be copied by 64 bits. */
	__be32 source[4] __attribute__((aligned(8)));
	__be32 destination[4];
	union {
		__u32 frame_bytes;
		__u32 length; /* as matches call it */
	};
	__u32 ifindex;
	__u32 forgotten;   /* see FORGET */
	__u32 source_port; /* host order, or WEIR_PORT_NONE */
	__u32 destination_port;
	__u32 vlan;	 /* id of the outer tag, or WEIR_VLAN_NONE */
	__u32 tcp_flags; /* or WEIR_BYTE_NONE */
	__u32 icmp_type; /* or WEIR_BYTE_NONE */
	__u32 dscp;
	__u32 ethertype; /* host order; of packets that are not IP */
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

/* Match fields of the previous packet. If equal, its matches (resource[], rule[]) are reused. */
struct weir_match_memory {
	__u32 kind_and_one; /* 0: there is nothing to reuse */
	__u32 source_port;
	__u32 destination_port;
	__u32 vlan;
	__u32 tcp_flags;
	__u32 icmp_type;
	__u32 work; /* enum weir_work, where there are system rules */
};

/* The answer of one rule about a packet. */
enum weir_answer {
	WEIR_ANSWER_ADMIT,
	WEIR_ANSWER_BLOCK,
	WEIR_ANSWER_UNSURE,    /* of a shortcut: ask the rule's kind */
	WEIR_ANSWER_AGAIN,     /* the clock ran away: read it and ask again */
	WEIR_ANSWER_PENALISED, /* blocked by a penalty that is running: no new one begins */
	WEIR_ANSWER_FOUND,     /* a second function evaluates (weir_kinds.def) */
	WEIR_ANSWER_ERROR,     /* a map entry that must exist is missing */
};

#define WEIR_VERDICT_OPEN WEIR_VERDICT_COUNT /* none yet: rules are to be asked */

/* The format of a row. Functions take it as the constant `wide`, and are compiled once for each format. */
enum weir_width {
	WEIR_NARROW,
	WEIR_WIDE,
	WEIR_MEDIUM,
};
#define OF_WIDTH(wide, of_narrow, of_medium, of_wide)                                                                  \
	((wide) == WEIR_NARROW ? (of_narrow) : (wide) == WEIR_MEDIUM ? (of_medium) : (of_wide))

/* Where a flow is searched. Passed by pointer, because clang reads a struct that is taken by value from *s byte by
 * byte.
 */
struct weir_flow_id {
	__u32 tag;
	__u32 set; /* the first of the flow's two candidate sets */
};

/* What weir_find_place() (flow_set.h) found. */
struct weir_flow_place {
	__u64 latest; /* the latest insertion by then */
	__u32 tag;    /* of the flow that has to go */
	__u32 keep;
};

/* A flow keyed by source that the packet's first rule has found over its limit, penalised, or out of tokens. It stays
 * so for sure_jiffies after since_jiffies.
 */
struct weir_over_source {
	__be32 source[4]; /* under the rule's mask. Aligned, to be compared by 64 bits */
	__u64 since_jiffies;
	__u64 sure_jiffies;
	__u64 since_ns; /* ... and to the ns, of tokens: for sure_ns after this; 0: not known */
	__u64 sure_ns;
	__u32 tag;
	__u16 place; /* of the rule */
	__u8 is_ipv6;
	__u8 pad;
} __attribute__((aligned(8)));

/* The flow whose drop this CPU has counted last, and its slot (top_drops.h). */
struct weir_last_dropped {
	__be32 source[4];     /* under the rule's mask. Aligned, to be compared by 64 bits */
	__u64 packets, bytes; /* dropped since then in a run, and not yet counted at its place */
	__u32 flow_tag;	      /* as rows go by it */
	__u32 tag;
	__u32 index; /* of its set */
	__u32 rule;  /* its place, and 1; 0: there was none yet */
	__u8 way;
	__u8 is_ipv6;
	__u8 pad[2];
} __attribute__((aligned(8)));

/* One CPU's current time, in buckets of one window spec (clock.h). */
struct weir_clock {
	__u64 bucket;	/* relative to the window spec's base */
	__u64 start_ns; /* the bucket's bounds; end_ns 0: never read */
	__u64 end_ns;
	__u64 since_jiffies; /* from then on, for so many jiffies, the bucket is surely the present one */
	__u64 sure_jiffies;
	__u64 latest_ns; /* the latest time that an evaluation went by */
	__u32 cell;	 /* bucket modulo WEIR_RING_CELLS */
	__u32 salt;	 /* of notes: another one whenever `bucket` changes, also to one that was before */
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
	WEIR_RESERVATION_NONE,	  /* nothing: the rule observes, and would have dropped */
	WEIR_RESERVATION_GIVEN,	  /* admitted, and nothing is set aside: no window of its own */
	WEIR_RESERVATION_OF_KIND, /* something of the rule's kind, which commits or aborts it (weir_kinds.def) */
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

/* What the packet is to do to a connection, when it passes (connections.h). */
struct weir_connection_reservation {
	__u32 set;
	__u32 tag;
	__u8 event;	  /* enum weir_connection_event */
	__u8 class;	  /* of the state that was evaluated */
	__u8 is_reserved; /* counted already: in `flow`, in `step` */
	__u8 is_refused;  /* by a rule that observes */
	__u32 flow;
	__u32 flow_tag;
	__u32 step;
	__u32 open;	   /* how many its flow has with it */
	__u32 was_counted; /* of one that talks */
	__u64 counted;	   /* of one that opens: its word, if it counts already; else 0 */
};

/* The change to a connection that is under way, of an attempt to commit one (connections.h). */
struct weir_connection_change {
	__u64 word;    /* of the connection as it was read */
	__u64 changed; /* and as it becomes */
	__u32 state;
	__u32 next;
	__u32 way;
	__u32 pad;
};

/* What the packet is to do to a request of a circuit breaker's, when it passes (requests.h). */
struct weir_request_reservation {
	__u32 set;
	__u32 tag;
	__u64 word;   /* of the request, if it is being opened; 0: the packet begins it */
	__u64 probe;  /* the state that it has made as the probe; 0: it is none */
	__u64 before; /* the state before that */
	__u32 era;    /* in which it is admitted; 0: the breaker is closed */
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
	__u64 wait_ns; /* until that bucket begins; 0: it has begun */
	__u32 set, way;
	__u32 slot; /* of the rule */
	__u8 cell;
	__u8 unit_bits;
	__u8 is_keyed; /* `set` and `way` say which window; else the slot does */
	__u8 pad;
};

/* An occupy window, as it was just read: the n buckets of the window, from the one that leaves it first on, and the
 * n yet to come.
 */
struct weir_occupy_view {
	__u64 word[WEIR_OCCUPY_CELLS];
	__u64 units[WEIR_OCCUPY_CELLS];
	__u64 ghost;	 /* units that the flow's ghosts count: in all windows that are looked at */
	__u64 current;	 /* units of the window, with those ... */
	__u64 occupied;	 /* ... and of all buckets yet to come */
	__u64 first;	 /* the number of the first bucket */
	__u64 own;	 /* of these, the bucket of the packet's time */
	__u64 newest_ns; /* the newest bucket that the flow knew when that was found */
	__u64 next_ns;	 /* when the first bucket yet to come begins */
	__u64 time_ns;	 /* the time that the packet is evaluated against */
	__u64 wait_ns;	 /* from then until the occupied bucket begins */
};

/* By what the packet is evaluated that a rule with tokens is asked about (tokens.h). */
struct weir_token_view {
	struct weir_token_clock clock;
	__u64 now; /* virtual, as in a bucket's word */
	__u64 capacity;
	__u32 epoch;
	__u32 batch_max;
	__u32 mark;
	__u32 owner; /* of the flow's bucket */
};

/* What a packet counts in its flow's row that has no lease, and what the present bucket had before (shortcuts.h). */
struct weir_first {
	__u64 before;
	__u64 units; /* of the packet, and beyond them a lease */
};

/* What a packet took out of a bucket, and when. */
struct weir_taken {
	__u64 former; /* the bucket's word before */
	__u64 word;   /* W, as it left it */
	__u64 now;    /* V */
	__u64 now_ns;
	__u64 whole; /* V grows by less than one more than that a ns */
	__u64 lacks; /* of a packet that was blocked: how much V has to grow until it fits; 0: nobody knows */
};

/* What an evaluation looks at: whose rows, from which bucket. Scalars only, and in memory, because the parts of a
 * evaluation are functions that the verifier checks one at a time.
 */
struct weir_view {
	struct weir_flow_id flow;
	__u32 slot; /* of the rule */
	__u32 spec;
	__u32 window_cells;
	__u32 cell; /* of the bucket evaluated in */
	__u64 bucket;
	__u64 now_ns; /* the time that the evaluation goes by */
	__u8 is_smooth;
	__u8 is_lone;
	__u8 asks_all;
	__u8 overflow;	 /* as in the rule */
	__u32 page_sets; /* how many sets of its rows are a page */
};

/* The sum over the rows of all CPUs. */
struct weir_sum {
	__u64 rest;
	__u64 oldest;	  /* smooth only: the bucket that is weighed */
	__u8 has_unspent; /* some of another CPU's units are leased, not spent */
	__u8 is_in_doubt; /* ... or are only being evaluated, and may be given back at once */
	__u8 ran_ahead;	  /* another CPU's clock is further than the ring reaches back */
	__u8 is_behind;	  /* a row is gone, or in a newer bucket: our bucket may be over */
	__u8 misses_row;  /* a CPU that may have counted the flow has no row of it now */
	__u8 pad[3];
};

/* A row that is being evicted, or the flow whose ghosts are searched (row_ghosts.h). */
struct weir_row_ghost_view {
	__u32 name;
	__u32 set, other_set; /* beside the set of its row, or the first of its two; and the other one */
	__u32 vain_looks;     /* at other_set, of rows pushed out, since one found a free word there */
	__u32 tag;
	__u32 window_cells;
	__u64 newest; /* of the row */
	__u64 units;
	__u64 expired;	 /* the last bucket of its window spec that counts no more */
	__u64 span_ns;	 /* how long its units count at most */
	__u64 inherited; /* units of the overflow window, that a new row of the flow begins with */
	__u32 overflow_class;
};

/* The present threshold of this packet's flow, if it is not a constant (threshold.h). */
struct weir_allowed {
	__u64 word; /* a WEIR_THRESHOLD_WORD */
	struct weir_emission emission;
};

/* The state of a flow whose packet has just been refused, as the rule's kind knew it, in the form of an event
 * (include/weir_events.h), in this many parts of a unit.
 */
struct weir_refusal {
	__u64 used;
	__u64 threshold;
	__u64 unit;
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

#define WEIR_COPY_BYTES 40  /* the largest fixed header: IPv6 */
#define WEIR_MATCH_PARTS 11 /* bits of enum weir_match_field */
_Static_assert(WEIR_MATCH_ALL == (1 << WEIR_MATCH_PARTS) - 1, "");

/* Fields that every packet uses come first, close together, because other work between packets evicts these lines from
 * the cache, and each has to be fetched again.
 */
struct weir_scratch {
	struct weir_totals totals;
	__u64 entry; /* of the packet: tick ^ weir_config.load. Another one: weir_enter_tick() */
#ifdef WEIR_TEST_SCRATCH_PAD
	__u64 pad_of_test[WEIR_TEST_SCRATCH_PAD]; /* another scratch must not matter to what survives a reload */
#endif
	struct weir_packet packet;
	struct weir_match_memory match_memory;
	struct weir_over_source over_source;
	__u32 resource_count;
	__u32 first_slot;	  /* of the first of these resources */
	__u32 fetched;		  /* rules whose flow is in fetched_flow[]: all, or none */
	__u32 must_commit;	  /* a rule has set something aside that has to be committed when the packet passes */
	__u32 nth;		  /* of the packet's rules: the one being asked */
	__u32 retries;		  /* evaluations of this packet that the clock ran away from */
	__u32 cpu_and_one;	  /* this CPU's number, and 1; 0: not asked yet */
	__u32 row_number;	  /* of its row for that rule, or WEIR_NO_ROW; of a lone row the slot */
	struct weir_flow_id flow; /* under that rule */
	__u64 tick;		  /* jiffies when the packet came: its time, for rules that go by the tick */
	__u64 tick_ns;		  /* when that tick began; and the second that it is in */
	__u32 tick_s;
	__u32 has_listener; /* somebody listens for drops, as that tick began */
	__u64 now_ns;  /* CLOCK_MONOTONIC, when has_now: read at most once a packet, unless an evaluation repeats */
	__u64 wait_ns; /* the longest that a throttling rule asks for */
	__u32 has_now;
	__u32 rule_count;
	__u32 expects_admission; /* the packet before was not blocked by a shortcut of its first rule */
	__u32 blocking_rule;	 /* place, for the harness and for events */
	struct weir_view view;
	struct weir_first first;
	__u64 fence;			   /* target of fences; its value means nothing */
	__u64 key_sample_tick;		   /* when a key sample was recorded last */
	__u32 key_samples_skipped;	   /* since then */
	__u32 may_have_ghosts;		   /* s->flow: false where weir_fetch_flow() has just found that it has none */
	__u32 present;			   /* whom to ask, besides this CPU: sharers.h */
	__u16 rule[WEIR_PACKET_RULES_MAX]; /* places, ascending: the order of evaluation */
	struct weir_reservation reservation[WEIR_PACKET_RULES_MAX];
	struct weir_clock narrow_clock[WEIR_SPECS_NARROW]; /* of narrow and medium rows; wide ones have map `clocks` */

	/* what some packets use */
	struct weir_last_dropped last_dropped;
	__u32 drops_left;    /* drops of this tick that are yet to be counted one by one */
	__u32 drops_gap;     /* beyond these: so many are not counted before one is */
	__u32 drops_skipped; /* ... and so many have not been, so far */
	__u32 drops_random;
	__u32 was_penalised; /* of a rule that penalises and has just blocked: for a penalty that was running */
	__u32 hits_skipped;  /* of timed entries with many hits: timed.h */
	struct weir_refusal refusal;
	struct weir_noted_drop noted[WEIR_NOTED_DROPS];
	struct weir_sum sum;
	struct weir_row_ghost_view row_ghost;
	struct weir_allowed allowed;
	__u32 warming_place;	       /* of the rule that `warming` is under, or WEIR_NO_RULE */
	struct weir_flow_place place;  /* in a set of flows, for the flow that is being inserted */
	__u32 warming_way;	       /* where it is in its set */
	struct weir_flow_id warming;   /* the packet's flow in warming_flows */
	__u64 penalty_until_ns;	       /* of the penalty that was begun, or found running, last */
	struct weir_flow_id penalised; /* the packet's flow in penalised_flows, under the rule asked last */
	struct weir_flow_key key;      /* of the flow that was hashed last */
	__u64 forgotten;	       /* see FORGET */
	struct weir_flow_id fetched_flow[WEIR_PACKET_RULES_MAX]; /* of rules with narrow rows */
	__u32 last_rule;					 /* the largest in rule[], while rules are listed */
	__u16 resource[WEIR_PACKET_RESOURCES_MAX];		 /* places, in the order of their bits */
	__u32 vector[WEIR_MATCH_PARTS]; /* of each field in use, in the order of enum weir_match_field */
	__u8 header_copy[WEIR_COPY_BYTES];
	struct weir_connection_reservation connection[WEIR_PACKET_RULES_MAX];
	struct weir_connection_change change;
	__u64 connections_ns; /* the time, which does not go back for connections */
	__u32 counted_flow;   /* number and tag of the flow whose connections are counted */
	__u32 counted_tag;
	__u32 counted_open; /* how many it has, with the one that was counted in last */
	__u32 handshake_us; /* how long this packet's connection took to open */
	struct weir_token_view tokens;
	struct weir_taken taken[WEIR_PACKET_RULES_MAX];
	struct weir_clock connection_clock[WEIR_CONNECTION_CLASSES]; /* count steps */
	__u64 seconds_tick;					     /* when these were found */
	__u32 until_s[WEIR_CONNECTION_CLASSES];
	__u32 breaker_tag; /* of the flow whose breaker was looked for last; 0: a whole resource */
	struct weir_request_reservation request[WEIR_PACKET_RULES_MAX];
	struct weir_outcome outcome; /* being counted */
	__u64 group_position;	     /* of the group that was joined last, or is due first */
	__u64 earliest_due;	     /* of that one */
	__u32 outcome_fails;	     /* the packet that ends a request resets or finishes it */
	__u32 is_prioritised;	     /* one of the packet's resources is: it may occupy later buckets */
	struct weir_occupy_view occupy;
	struct weir_occupy_reservation occupy_reservation[WEIR_PACKET_RULES_MAX];
};
_Static_assert(sizeof(struct weir_scratch) <= sizeof(struct weir_cpu_state), "");

#endif
