/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of circuit breakers, in maps of the instance: the breakers, the requests that are being opened, and the groups
 * in which requests wait for their time-outs. docs/breakers.md says what a breaker does; only bpf/kinds/breakers.h and
 * the headers that it includes write here. All of it survives a reload: a table whose layout changes here gets another
 * version (weir_tables.h).
 */
#ifndef WEIR_ABI_BREAKERS_H
#define WEIR_ABI_BREAKERS_H

#include "weir_state.h"

enum weir_breaker_strategy {
	WEIR_BREAKER_SLOW_RATIO,  /* the share of requests that take longer than maxAllowedRtMs */
	WEIR_BREAKER_ERROR_RATIO, /* the share of requests that fail */
	WEIR_BREAKER_ERROR_COUNT, /* how many fail */
	WEIR_BREAKER_STRATEGIES
};

/* A rule that is a breaker, as the program knows it, and commands by the rule's description. */
struct weir_breaker_terms {
	__u64 bucket_ns; /* statIntervalMs / buckets */
	__u64 retry_ns;
	__u64 max_rt_ns; /* SlowRequestRatio; else 0 */
	__u64 threshold_micro;
	__u64 since_ns; /* when the rule got its slot: older breakers in the slot are another rule's */
	__u32 min_requests;
	__u32 probes;
	__u32 buckets;
	__u32 strategy; /* enum weir_breaker_strategy */
};

/* ---- the breakers ---- */

enum weir_breaker_kind {
	WEIR_BREAKER_CLOSED,
	WEIR_BREAKER_OPEN,
	WEIR_BREAKER_HALF_OPEN,
};

/*
 * The state word, which changes by compare-and-swap. From the highest bit it holds: enum weir_breaker_kind (2 bits), 4
 * bits of the flow's tag, to recognise the word of a former owner of the entry, and 58 bits: of an open breaker the
 * time from which on an opening is the probe (its lowest bits: times less than 4.5 years apart can be distinguished);
 * of another one the era of its latest probe. Each probe begins an era: a number of WEIR_BREAKER_ERA_BITS, never 0.
 */
#define WEIR_BREAKER_TIME_BITS 58
#define WEIR_BREAKER_TIME_MASK ((1ull << WEIR_BREAKER_TIME_BITS) - 1)
#define WEIR_BREAKER_CHECK(tag) ((__u64)((tag)&0xf) << WEIR_BREAKER_TIME_BITS)
#define WEIR_BREAKER_CHECK_MASK WEIR_BREAKER_CHECK(0xf)
#define WEIR_BREAKER_KIND_SHIFT 62
#define WEIR_BREAKER_ERA_BITS 20
#define WEIR_BREAKER_ERA_MASK ((1u << WEIR_BREAKER_ERA_BITS) - 1)

/* A cell of the window counts the requests whose outcome became known in one bucket: 12 bits of the bucket's number,
 * all of them (26 bits), and the bad ones (26): failed, or slow. A full cell stays full.
 */
#define WEIR_BREAKER_BUCKETS_MAX 10
#define WEIR_BREAKER_COUNT_BITS 26
#define WEIR_BREAKER_COUNT_MASK ((1ull << WEIR_BREAKER_COUNT_BITS) - 1)
#define WEIR_BREAKER_NUMBER_SHIFT 52
#define WEIR_BREAKER_NUMBER_MASK 0xfffull
/* This many buckets after the latest bucket with a count, all cells are emptied, because their numbers may wrap. */
#define WEIR_BREAKER_BUCKETS_STALE 1024

struct weir_breaker {
	__u64 state;
	__u64 made_ns; /* when it was created, plus one; 0: never */
	__u64 newest;  /* the latest bucket that was counted in */
	__u64 head;    /* position of the group that is due first, and the next free position */
	__u64 tail;
	__u64 good;    /* half-open: the era (32 bits) and how many good outcomes it has had */
	__u64 last;    /* what its last evaluation found: requests (32 bits), and the bad ones among them */
	__u64 changes; /* of its state */
	__u64 eras;    /* that were begun */
	__u64 shared;  /* requests that had to share a group */
	__u64 cell[WEIR_BREAKER_BUCKETS_MAX];
	struct weir_flow_key key; /* for `weir flows`; and the slot of its rule */
	__u32 slot;
	__u32 pad;
	__u64 pad2[5];
};
_Static_assert(sizeof(struct weir_breaker) == 256, "four cache lines");

/* Map `breakers`: shared sets, of flows with a key. Map `lone_breakers`, by rule slot: of a whole resource. A breaker's
 * number is set * 8 + way, or WEIR_BREAKER_LONE | slot.
 */
struct weir_breaker_set {
	struct weir_flow_set flows;
	struct weir_breaker breaker[WEIR_FLOW_WAYS];
};
_Static_assert(sizeof(struct weir_breaker_set) == 29 * 64ul, "");
#define WEIR_BREAKER_LONE (1u << 23)
#define WEIR_BREAKER_SETS_MAX (WEIR_BREAKER_LONE / 8)

/* ---- requests that wait for their time-outs ---- */

/* Groups of a ring are a power of two: by default 32 of a flow, 256 of a whole resource. Replay may ask for more. */
#define WEIR_RING_SHIFT 5
#define WEIR_LONE_RING_SHIFT 8
#define WEIR_RING_SHIFT_MAX 16

/*
 * When a request without a further packet becomes bad: the time (ns) * 2, plus one if it then counts as slow instead of
 * failed. So a packet of time t comes after everything that is due at 2 * t or before. A time-out in the same
 * nanosecond comes before the packet, and a request that becomes slow in it comes after.
 */
#define WEIR_DUE_FAILED(moment_ns) ((moment_ns)*2)
#define WEIR_DUE_SLOW(moment_ns) ((moment_ns)*2 + 1)

/*
 * Maps `request_groups` and `lone_groups`: for each breaker of a flow, or of a whole resource, a ring of groups, in the
 * order in which they are due. A group mostly has one request; when a ring is half full, successive requests share a
 * group. Its word holds, from the lowest bit: the number of waiting requests (24 bits; or the state of the group), the
 * era in which they were admitted (20; 0: the breaker was closed), and the turn of the ring (20), which identifies the
 * group's owner.
 */
struct weir_request_group {
	__u64 word;
	__u64 first_due;
	__u64 due; /* of the last of them */
};
#define WEIR_GROUP_COUNT_MASK 0xffffffull
#define WEIR_GROUP_MAKING 0xffffffull /* its times are being written */
#define WEIR_GROUP_GONE 0xfffffeull   /* it was counted, or all of its requests had an outcome */
#define WEIR_GROUP_COUNT_MAX 0xfffffdull
#define WEIR_GROUP_ERA_SHIFT 24
#define WEIR_GROUP_TURN_SHIFT 44
#define WEIR_GROUP_WORD(turn, era, count)                                                                              \
	((__u64)(turn) << WEIR_GROUP_TURN_SHIFT | (__u64)(era) << WEIR_GROUP_ERA_SHIFT | (count))

/*
 * Map `requests`: shared sets. The word of a request is its whole state. From the lowest bit, it holds 39 bits of the
 * position of its group, plus one; whether its opening went out; and the number of its breaker. 0: the request has had
 * its outcome.
 */
struct weir_breaker_request {
	__u64 word;
	__u64 first_ns;	 /* of its first SYN */
	__u64 silent_ns; /* when it fails by silence, unless a packet arrives before */
};
struct weir_request_set {
	struct weir_flow_set flows;
	struct weir_breaker_request request[WEIR_FLOW_WAYS];
	__u64 pad[3];
};
_Static_assert(sizeof(struct weir_request_set) == 256, "four cache lines");
#define WEIR_REQUEST_POSITION_BITS 39
#define WEIR_REQUEST_POSITION_MASK ((1ull << WEIR_REQUEST_POSITION_BITS) - 1)
#define WEIR_REQUEST_WENT_OUT (1ull << WEIR_REQUEST_POSITION_BITS)
#define WEIR_REQUEST_NUMBER_SHIFT (WEIR_REQUEST_POSITION_BITS + 1)
#define WEIR_REQUEST_WORD(number, position)                                                                            \
	((__u64)(number) << WEIR_REQUEST_NUMBER_SHIFT | (((position) + 1) & WEIR_REQUEST_POSITION_MASK))

#endif
