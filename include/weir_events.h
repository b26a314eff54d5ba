/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events, for `weir events`: what the program reports of single packets and of its own changes, and what commands and
 * the controller have done to the instance. They are in the one element of map `events`. No verdict depends on them.
 *
 * An event goes into a ring, where it overwrites the oldest. Readers map the rings and follow the numbers of the
 * events. So any number of readers see the same events and do not affect each other, the program wakes no process, and
 * a slow reader knows how many events it has missed. (A BPF_MAP_TYPE_RINGBUF has one consumer, and fills up without
 * one.) Drops have a ring of their own, and each rule has one for its changes of state, so a flood of one kind does not
 * push out the others.
 */
#ifndef WEIR_ABI_EVENTS_H
#define WEIR_ABI_EVENTS_H

#include "weir_state.h"

enum weir_event_lane {
	WEIR_LANE_DROPS, /* a sample of them, and only while a reader listens */
	/* That begin: all of them, unless a rule has more than its ring accepts. Rules with fairBy have no penalties:
	 * of these, flows that become contended and calm (WEIR_EVENT_SHARES).
	 */
	WEIR_LANE_PENALTIES,
	WEIR_LANE_BREAKERS, /* that change: the same */
	WEIR_LANES
};

/* At most this many drops are reported in a slice of time, on all CPUs together: 954 a second. The ring then holds half
 * a second of them, and readers look ten times a second. Chosen, not derived.
 */
#define WEIR_EVENT_SLICE_SHIFT 23 /* 2^23 ns: 8.4 ms */
#define WEIR_EVENTS_A_SLICE 8
#define WEIR_RING_EVENTS 512 /* a power of two */

/* Changes: a rule uses the ring with its slot's number modulo the number of rings, so that up to sixteen rules mostly
 * have a ring each. This many changes are reported in a slice; after a slice in which that was not enough, half as
 * many, down to one. So half of what a rule reported before a flood stays in its ring for two minutes, even if the
 * flood is of the same rule. The counts in rule_counters include changes that were left out. All chosen, not derived.
 */
#define WEIR_CHANGE_RINGS 16	   /* of each lane; a power of two */
#define WEIR_CHANGE_EVENTS 64	   /* of each ring; a power of two */
#define WEIR_CHANGE_SLICE_SHIFT 32 /* 2^32 ns: 4.3 s */
#define WEIR_CHANGES_A_SLICE 16
#define WEIR_CHANGE_HALVINGS 4 /* ... and halved, down to one */
_Static_assert(WEIR_CHANGES_A_SLICE >> WEIR_CHANGE_HALVINGS == 1, "there always is one more");

#define WEIR_EVENT_NO_RULE 0xffffffffu
#define WEIR_EVENT_UNKNOWN (~0ull)
#define WEIR_EVENT_FRAME_BYTES 128

enum weir_event_flag {
	WEIR_EVENT_OBSERVED = 1 << 0,  /* it would have been dropped: the rule observes, or all do */
	WEIR_EVENT_PENALISED = 1 << 1, /* because a penalty was running */
	WEIR_EVENT_OUT = 1 << 2,       /* an outgoing packet */
	WEIR_EVENT_SEVERAL = 1 << 3,   /* a super-frame: `value` is how many packets it stands for */
	WEIR_EVENT_SHARES = 1 << 4, /* in the lane of penalties: the flow is contended (value 1), or not any more (0) */
};

struct weir_event {
	__u64 number;  /* from 1, by lane; or WEIR_EVENT_BUSY. Valid if it is the same before and after a reading */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	/* For a drop, how the flow stood under its rule, by the rule's kind; or WEIR_EVENT_UNKNOWN:
	 *	a window		units that it counted, leased ones too, and the threshold in force
	 *	THROTTLE		how long the packet would have waited, and could at most: ns
	 *	TOKENS			tokens that the bucket lacked of being full, and how many it holds
	 *	CONNECTIONS		connections that were open, and how many may be
	 *	BREAKER			as below, of when it opened; and its threshold in millionths
	 *	SYSTEM			the signal and its threshold in millionths; AvgRT in ns
	 * `used` of a breaker's change: requests in its window (32 bits), and the bad ones among them.
	 */
	__u64 threshold;
	__u64 used;
	/* Of a penalty: its end, CLOCK_MONOTONIC; of a breaker: enum weir_breaker_kind, from now on; of a drop: see
	 * WEIR_EVENT_SEVERAL.
	 */
	__u64 value;
	struct weir_flow_key key; /* of the flow under the rule */
	__u32 rule_slot;	  /* or WEIR_EVENT_NO_RULE */
	__u32 ifindex;
	__u32 frame_bytes; /* on the wire */
	__u8 verdict;	   /* for a drop: enum weir_verdict */
	__u8 flags;	   /* enum weir_event_flag, or-ed */
	__u8 kept_bytes;   /* of the frame */
	__u8 pad;
	/* Of a drop: its first bytes; where the device has no Ethernet, behind a header whose addresses are 0. */
	__u8 frame[WEIR_EVENT_FRAME_BYTES];
};
#define WEIR_EVENT_BUSY (~0ull) /* being written */

/* Of a drop: packets, as counters have them. */
static inline __u64 weir_event_packets(const struct weir_event *event)
{
	return event->flags & WEIR_EVENT_SEVERAL ? event->value : 1;
}

struct weir_ring_head {
	__u64 last; /* number of the latest event, which may still be being written */
	/* The latest slice of time with an event, and in the lowest 8 bits how many it has had; of changes, in the 8
	 * bits above these, how often what may be reported is halved.
	 */
	__u64 slice;
	__u64 flooded_until_ns; /* of changes: end of the latest slice with one not reported; CLOCK_MONOTONIC */
	__u64 pad[5];
};

struct weir_event_ring {
	struct weir_ring_head head;
	struct weir_event event[WEIR_RING_EVENTS]; /* by number, modulo their number */
};

struct weir_change_ring {
	struct weir_ring_head head;
	struct weir_event event[WEIR_CHANGE_EVENTS];
};

/* ---- the journal: what has been done to the instance, which the program never reads ---- */

enum weir_journal_kind {
	WEIR_JOURNAL_ATTACH,
	WEIR_JOURNAL_DETACH,
	WEIR_JOURNAL_RELOAD,
	WEIR_JOURNAL_ROLLBACK,
	WEIR_JOURNAL_CONFIRM,
	WEIR_JOURNAL_RETURN,	 /* rules that were not confirmed gave way to those before them */
	WEIR_JOURNAL_INTERFACE,	 /* disappeared, appeared, added or removed */
	WEIR_JOURNAL_CONTROLLER, /* it begins or ends */
	WEIR_JOURNAL_CLUSTER,	 /* limits that hosts share: the store, leases, hosts */
	WEIR_JOURNAL_BLOCK,	 /* sources that are blocked or allowed for a while, or no longer */
	WEIR_JOURNAL_ALLOW,
	WEIR_JOURNAL_SET, /* the file of a named set has changed: it was taken over, or not */
	WEIR_JOURNAL_KINDS
};

#define WEIR_JOURNAL_TEXT_BYTES 232
struct weir_journal_entry {
	__u64 number; /* as of an event */
	__u64 time_ns;
	__u32 kind; /* enum weir_journal_kind */
	__u32 pad;
	char text[WEIR_JOURNAL_TEXT_BYTES]; /* text, with a terminating 0 */
};

/* Scripts may block sources all day: what they do has a journal of its own, and does not push out a reload. */
enum weir_journal_number { WEIR_JOURNAL_OF_CHANGES, WEIR_JOURNAL_OF_ORDERS, WEIR_JOURNALS };

/* Commands and the controller write it: who takes a number by adding one to `last` writes the entry of that number. */
#define WEIR_JOURNAL_ENTRIES 256
struct weir_journal {
	__u64 last;
	__u64 pad[7];
	struct weir_journal_entry entry[WEIR_JOURNAL_ENTRIES]; /* number modulo WEIR_JOURNAL_ENTRIES */
};

/* ---- the map's element ---- */

/* Drops are reported until listens_until_ns, CLOCK_MONOTONIC. Readers of drops set it so far ahead, again and again:
 * when the last one dies, by whatever signal, it passes, and the program is quiet. A CPU looks at it once a tick.
 */
#define WEIR_LISTEN_NS WEIR_NSEC_PER_SEC

struct weir_events {
	__u64 listens_until_ns;
	__u64 pad[7];
	struct weir_event_ring drops;
	struct weir_change_ring changes[WEIR_LANES - WEIR_LANE_PENALTIES][WEIR_CHANGE_RINGS]; /* by lane, and slot */
	struct weir_journal journal[WEIR_JOURNALS];
};

#endif
