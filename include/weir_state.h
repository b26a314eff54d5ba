/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of flows, in maps of the instance: rows with their windows, window specs, clocks, sharers, TATs,
 * warm-up. All of it survives a reload: a table whose layout changes here gets another version (weir_tables.h). The
 * kernel writes it, except where a comment names userspace. State of connections is in weir_connections.h.
 */
#ifndef WEIR_ABI_STATE_H
#define WEIR_ABI_STATE_H

#include "weir_emission.h"
#include "weir_row_ghosts.h"
#include "weir_sizes.h"
#include "weir_tokens.h"

/* ---- windows ---- */

enum weir_window_kind {
	WEIR_WINDOW_LEAP,   /* the current bucket and sampleCount - 1 before it: Sentinel's LeapArray */
	WEIR_WINDOW_STRICT, /* the current bucket and sampleCount before it */
	WEIR_WINDOW_SMOOTH, /* strict, but of the oldest bucket only the part still inside the interval counts */
	WEIR_WINDOW_TOKENS, /* no buckets of time: a token bucket */
};

#define WEIR_SAMPLES_MAX 10
#define WEIR_RING_CELLS 11 /* sampleCount + 1: the buckets of a strict or smooth window */

/* Where a rule keeps its rows. */
enum weir_storage {
	WEIR_STORAGE_LONE,   /* without a flow key: one wide row per CPU, at the rule's slot, never evicted */
	WEIR_STORAGE_NARROW, /* the flow cache of 32-byte rows */
	WEIR_STORAGE_WIDE,   /* the flow cache of 128-byte rows */
	WEIR_STORAGE_MEDIUM, /* the flow cache of 64-byte rows */
};

/* A cell holds the units admitted or leased in one bucket. Its top bit is set while some of them are unspent: leased,
 * or reserved by a packet that is still being evaluated. So another CPU reads in one load how many units there are, and
 * whether some may still be given back.
 */
#define WEIR_NARROW_UNSPENT 0x8000u
#define WEIR_MEDIUM_UNSPENT 0x80000000u
#define WEIR_WIDE_UNSPENT (1ull << 63)

/* The largest threshold that narrow rows serve: threshold + lease must stay below WEIR_NARROW_UNSPENT. */
#define WEIR_NARROW_THRESHOLD_MAX 32000u
/* One less than seven bits hold: a unit that is put back into a lease must not turn it into WEIR_NARROW_OVER. */
#define WEIR_NARROW_LEASE_MAX 126u
/* The same for medium rows. A lease is at most this large, or one packet, for which a megabyte is enough. */
#define WEIR_MEDIUM_THRESHOLD_MAX 2000000000u
#define WEIR_MEDIUM_LEASE_MAX 100000000u
_Static_assert(WEIR_MEDIUM_THRESHOLD_MAX + WEIR_MEDIUM_LEASE_MAX + (1u << 20) < WEIR_MEDIUM_UNSPENT,
	       "a cell overflows");
/* Narrow and medium rows number their buckets in 32 bits, from the window spec's base. Buckets of 50 ms or more last
 * 6.8 years.
 */
#define WEIR_NARROW_BUCKET_NS_MIN 50000000ull
#define WEIR_NARROW_BUCKET_MAX 0xffffffffull

/* One CPU's window of one flow, for small packet limits: two rows share a cache line. Only its own CPU writes it; all
 * CPUs read it.
 */
struct weir_narrow_row {
	__u32 tag;    /* 0: empty. 28 bits of the flow's hash, then 4 bits: the window spec's number */
	__u32 newest; /* newest bucket with units in it, relative to the window spec's base */
	__u16 cell[WEIR_RING_CELLS];
	__u8 lease;   /* below 128: units leased; otherwise: over its limit until (lease - 127)/128 of the bucket */
	__u8 version; /* of the threshold to which the lease, or being over it, belongs */
};
#define WEIR_NARROW_OVER 0x80u

/* The same in one cache line, for limits in bytes and larger ones in packets, and thresholds that move. */
struct weir_medium_row {
	__u32 tag;    /* as in a narrow row */
	__u32 newest; /* likewise */
	__u32 cell[WEIR_RING_CELLS];
	__u32 lease;
	__u32 units;	 /* of the threshold that the lease, or being over, belongs to */
	__u16 over_left; /* units left when the flow went over its limit: a larger packet is blocked at once */
	__u8 over_part;	 /* over its limit, until over_part/128 of the bucket; 0: not over its limit */
	__u8 version;	 /* of that threshold */
};

/* The same for all other limits: the largest, short buckets, whole resources. */
struct weir_wide_row {
	__u32 tag; /* 0: empty. 32 bits of the flow's hash */
	__u16 spec;
	__u16 over_left; /* units left when the flow went over its limit: a larger packet is blocked at once */
	__u64 newest;
	__u64 cell[WEIR_RING_CELLS];
	__u64 lease;
	__u64 threshold;     /* the threshold word that the lease, or being over, belongs to */
	__u64 over_until_ns; /* 0: not over its limit */
};

_Static_assert(sizeof(struct weir_narrow_row) == 32, "two rows must share one cache line");
_Static_assert(__builtin_offsetof(struct weir_narrow_row, cell) == 8, "the program reads four cells at once");
_Static_assert(sizeof(struct weir_medium_row) == 64, "one cache line");
_Static_assert(sizeof(struct weir_wide_row) == 128, "a row must not straddle a third cache line");

#define WEIR_WAYS 4	       /* rows of a set; each flow has two candidate sets */
#define WEIR_CHUNK_BYTES 16384 /* one map element; a per-CPU allocation holds at most 32 KB */
#define WEIR_NARROW_SETS_PER_CHUNK (WEIR_CHUNK_BYTES / WEIR_WAYS / 32) /* 128 */
#define WEIR_MEDIUM_SETS_PER_CHUNK (WEIR_CHUNK_BYTES / WEIR_WAYS / 64) /* 64 */
#define WEIR_WIDE_SETS_PER_CHUNK (WEIR_CHUNK_BYTES / WEIR_WAYS / 128)  /* 32 */

struct weir_narrow_chunk {
	struct weir_narrow_row row[WEIR_NARROW_SETS_PER_CHUNK * WEIR_WAYS];
};

struct weir_medium_chunk {
	struct weir_medium_row row[WEIR_MEDIUM_SETS_PER_CHUNK * WEIR_WAYS];
};

struct weir_wide_chunk {
	struct weir_wide_row row[WEIR_WIDE_SETS_PER_CHUNK * WEIR_WAYS];
};

/* The second candidate set of a flow whose first is `set`. The program and userspace must compute the same one, and the
 * other of the other is the first. Both lie in one 4 KB page, so that looking at both needs one address translation.
 * Two choices balance well even within groups of that size (tests/bpf/table_test).
 */
#define WEIR_NARROW_PAGE_SETS 32
#define WEIR_MEDIUM_PAGE_SETS 16
#define WEIR_WIDE_PAGE_SETS 8
#define WEIR_OTHER_SET(set, tag, page_sets) ((set) ^ (((tag) >> 4 & ((page_sets)-1)) | 1u))

/* Map `sharers`, shared by all CPUs: which CPUs have counted a flow lately (bpf/window/sharers.h). A cell
 * holds an epoch, the CPUs seen in it and those seen in the one before. There is one cell for each row of each CPU's
 * table, so that flows seldom share one.
 */
#define WEIR_SHARERS_FIELD_BITS 12
#define WEIR_SHARERS_EPOCH_SHIFT (2 * WEIR_SHARERS_FIELD_BITS)
#define WEIR_SHARERS_LINE_CELLS 16
struct weir_sharers_line {
	__u32 cell[WEIR_SHARERS_LINE_CELLS];
};
_Static_assert(sizeof(struct weir_sharers_line) == 64, "one cache line, at an offset that one multiplication finds");
#define WEIR_SHARERS_CELLS_MAX (1u << 31)
#define WEIR_SHARERS_SHIFT_MIN 32 /* an epoch of 4.3 s: long compared with any stall of a CPU */
#define WEIR_SHARERS_SHIFT_MAX 48 /* longer than any window: two buckets of 24 h are 2^47.3 ns */

/* Map `window_specs`: how long a bucket is, and how many of them a window looks at. A window spec never
 * changes once it is published, because rows in the tables are evaluated against it. Userspace writes it.
 */
struct weir_window_spec {
	__u64 bucket_ns;
	__u64 base_bucket;   /* rows number their buckets from here, so that the numbers are small */
	__u32 window_cells;  /* buckets in the window: sampleCount, or one more */
	__u16 window;	     /* enum weir_window_kind */
	__u16 goes_by_ticks; /* weir_goes_by_ticks() */
};

/* The tick decides buckets of leap windows this long and longer: they need no nanoseconds (bpf/clock.h). */
#define WEIR_TICK_BUCKET_NS_MIN 50000000ull

static inline int weir_goes_by_ticks(enum weir_window_kind window, __u64 bucket_ns)
{
	return window == WEIR_WINDOW_LEAP && bucket_ns >= WEIR_TICK_BUCKET_NS_MIN;
}

/* ---- rules whose threshold the controller computes ---- */

/* Map `control`, one element: the controller's heartbeat. Userspace writes it. */
struct weir_control {
	__u64 heartbeat_ns; /* CLOCK_MONOTONIC; 0: no controller, or it has ended properly */
	__u64 validity_ns;  /* thresholds expire this long after the last heartbeat */
};

/* Map `warm_states`, by rule slot: WarmUp of a whole resource, so that the next controller continues where this one
 * stopped. Only userspace writes and reads it.
 */
struct weir_warm_state {
	__u64 stored; /* tokens */
	__u64 second; /* the last one synced, of the data plane's clock */
	__u64 total;  /* weir_rule_seconds.total of all CPUs by then */
	__u64 pad;
};

/*
 * Map `shares`, by rule slot: what this host may admit of a threshold that hosts share (docs/cluster.md), and how that
 * changes if the controller writes nothing more. A share ends with its lease, whether the controller is alive or not,
 * so the heartbeat does not matter here. The controller writes the copy that is not in use, and then the version, whose
 * lowest bit names that copy.
 */
enum weir_share_stage { WEIR_SHARE_LEASED, WEIR_SHARE_ENDED, WEIR_SHARE_FALLEN_BACK, WEIR_SHARE_STAGES };
struct weir_share_stages {
	__u64 units[WEIR_SHARE_STAGES];	       /* per interval */
	__u64 until_ns[WEIR_SHARE_STAGES - 1]; /* CLOCK_MONOTONIC */
	__u64 stops_ns;			       /* from then on nothing: it has been silent for too long */
};

/* Of the latest answer: */
enum weir_share_trouble { WEIR_SHARE_FINE, WEIR_SHARE_TAKEN, WEIR_SHARE_LATE };

struct weir_shared_threshold {
	__u64 version; /* 0: no share was ever pushed, so nothing is admitted */
	struct weir_share_stages stages[2];
	/* for commands */
	__u64 wanted;	 /* units per interval that this host asked for last */
	__u64 leased_ns; /* CLOCK_MONOTONIC of the latest answer that gave a lease; 0: there was none */
	__u64 alone_ns;	 /* since when there has been no lease; 0: there is one */
	__u32 hosts;	 /* that the ledger knew then */
	__u16 trouble;	 /* enum weir_share_trouble */
	__u16 flows;	 /* that have places in `flow_shares`; without any, the program does not look there */
	__u16 live;	 /* hosts of the cluster that are; 0: not known yet */
	__u16 silent;
	__u32 trip_us;	/* until the latest answer of the store; 0: it does not answer, or has not yet */
	__u64 reserved; /* units of the threshold that the ledger leaves alone for hosts that are silent */
	__u64 process;	/* which the ledger knows as this host: for who takes the program off later; 0: it knows none */
};

/*
 * Map `flow_shares`: how much more or less than the rule's share one flow of a rule with a key may have. It is a
 * schedule as in `shares`, with WEIR_FLOW_BASE plus that difference as its units. An entry is found by the id of the
 * flow's rows: tag and set. Before the controller gives an entry to another flow, it writes owner 0. The units of the
 * flow that arrived at this host are counted on each CPU, in map `flow_demands`, under the number of the entry.
 */
#define WEIR_FLOW_BASE (1ull << 44) /* more than any threshold: 10^13 */
#define WEIR_FLOW_SHARE_WAYS 4
#define WEIR_FLOW_SHARE_SETS 128 /* a power of two */
#define WEIR_FLOW_SHARES (WEIR_FLOW_SHARE_SETS * WEIR_FLOW_SHARE_WAYS)
struct weir_flow_share {
	__u64 owner; /* WEIR_FLOW_OWNER; 0: free */
	__u32 slot;  /* of the rule */
	__u32 pad0;
	__u64 version;
	struct weir_share_stages stages[2];
	__u64 name; /* first half of the flow's name in the store: the entry belongs to that ledger and no other */
};
struct weir_flow_share_set {
	struct weir_flow_share way[WEIR_FLOW_SHARE_WAYS];
};
#define WEIR_FLOW_OWNER(tag, set) ((__u64)(tag) << 32 | (set))
#define WEIR_FLOW_SHARE_SET(tag, set) (((tag) ^ (set)) >> 4 & (WEIR_FLOW_SHARE_SETS - 1))

/* Map `rule_seconds`, by rule slot, per CPU: units that passed in each of the last seconds, for rules whose WarmUp the
 * controller computes.
 */
#define WEIR_RULE_SECONDS 16 /* a power of two: a controller that is further behind misses a second */
struct weir_rule_second {
	__u64 second; /* if it is not the second that a reader wants, the entry is old */
	__u64 units;
};

struct weir_rule_seconds {
	__u64 total;
	struct weir_rule_second at[WEIR_RULE_SECONDS];
};

/* ---- what all CPUs share ---- */

/*
 * Shared sets: state of flows with a key that all CPUs share, in arrays of sets (bpf/kinds/flow_set.h). A tag is 32
 * bits of the flow's hash; 0 is an empty way. `inserted` holds the set's latest insertion: the flow's tag (32 bits),
 * the way it took (7 bits), whether that way is only claimed (1 bit), and a count. It is valid from the moment it is
 * written, even before the way's tag is. A claimed way is being rebuilt for the flow, and its tag is written then.
 */
#define WEIR_INSERTED(tag, way, count) ((__u64)(tag) | (__u64)(way) << 32 | (__u64)(count) << 40)
#define WEIR_INSERTED_CLAIMED (1ull << 39)
#define WEIR_INSERTED_WAY(word) ((__u32)((word) >> 32) & 0x7f)
#define WEIR_INSERTED_COUNT(word) ((word) >> 40)

/*
 * The head of a set of flows. `keep` determines which entry is evicted when all ways are taken (bpf/kinds/flow_set.h).
 * It has the step of the clock from which on the flow's entry counts nothing (31 bits of the step's number; a step is
 * 2^22 ns). Its highest bit says whether a packet of the flow has been refused since the entry last counted nothing. A
 * step more than WEIR_KEEP_STEPS_MAX (13 days) ahead is in the past, because the numbers wrap after 104 days.
 */
#define WEIR_FLOW_WAYS 7
struct weir_flow_set {
	__u64 inserted;
	__u32 tag[WEIR_FLOW_WAYS];
	union {
		__u32 keep[WEIR_FLOW_WAYS];
		__u32 opened_us
			[WEIR_FLOW_WAYS]; /* for connections, whose words decide what is evicted: weir_connections.h */
	};
};
_Static_assert(sizeof(struct weir_flow_set) == 64, "one cache line");
#define WEIR_KEEP_REFUSED (1u << 31)
#define WEIR_KEEP_STEP_MASK (WEIR_KEEP_REFUSED - 1)
#define WEIR_KEEP_STEP_BITS 22
#define WEIR_KEEP_STEPS_MAX (1u << 28)
#define WEIR_KEEP_NS_MAX (((__u64)WEIR_KEEP_STEPS_MAX - 2) << WEIR_KEEP_STEP_BITS)

/* Map `ghosts`: the ghosts of flows that were evicted from such sets (bpf/kinds/ghosts.h). After the sets come the
 * overflow buckets, which count lost ghosts of a set of flows (whenFull: aggregate), and then the head: until when some
 * ghost may count, and how many ghosts were lost.
 */
#define WEIR_GHOST_WAYS 32 /* for each set of seven flows: ghosts for four times as many and more */
#define WEIR_GHOST_TIME_BITS 40
#define WEIR_GHOST_TIME_MASK ((1ull << WEIR_GHOST_TIME_BITS) - 1)
#define WEIR_GHOST_STEP_BITS 13

/* The ghosts of a set of flows. Those of penalties lie half a table further, as a flow may have both. */
static inline __u32 weir_ghost_index(__u32 set, int is_penalty, __u32 sets)
{
	return (set + (is_penalty ? sets / 2 : 0)) & (sets - 1);
}

/* Four words, which fit into an eighth of an element: until when a lost ghost would have counted; and two buckets that
 * flows without entry and ghost share until then. In steps of 2^13 ns, like ghosts.
 */
#define WEIR_OVERFLOW_WORDS 4
#define WEIR_OVERFLOWS (WEIR_GHOST_WAYS / WEIR_OVERFLOW_WORDS)
enum weir_overflow { WEIR_OVERFLOW_LOST, WEIR_OVERFLOW_TOKENS, WEIR_OVERFLOW_TAT };
#define WEIR_GHOST_OVERFLOW(sets, set) ((sets) + ((set) & ((sets)-1)) / WEIR_OVERFLOWS)
#define WEIR_GHOST_HEAD(sets) ((sets) + (sets) / WEIR_OVERFLOWS)

struct weir_ghost_set {
	union {
		__u64 word[WEIR_GHOST_WAYS];
		struct { /* of the head */
			__u64 until_ns;
			__u64 displaced; /* ghosts that were lost while they counted */
			__u64 joined;	 /* flows that took from an overflow bucket */
		};
	};
};
_Static_assert(sizeof(struct weir_ghost_set) == 256, "four cache lines, next to each other");

/* Map `throttled_flows`. A `last` word holds, from the lowest bit: the TAT of the flow's latest packet (ns +
 * 1, cut to WEIR_LAST_BITS), a bit that penalties use, and five bits of its tag. A word with another flow's bits is
 * stale and counts as "never".
 */
struct weir_throttle_set {
	struct weir_flow_set flows;
	__u64 last[WEIR_FLOW_WAYS];
	__u64 pad;
};
_Static_assert(sizeof(struct weir_throttle_set) == 128, "two cache lines");
#define WEIR_LAST_BITS 58 /* nine years: 4.5 before now and 4.5 after */
#define WEIR_LAST_TAG_SHIFT 59
#define WEIR_LAST_MASK ((1ull << WEIR_LAST_BITS) - 1)

/*
 * Map `penalised_flows`: flows that a rule with blockDurationInMs keeps blocking. An `until` word is laid out as a
 * `last` word: the end of the flow's latest penalty, and in the bit above the time which of the flow's two
 * `lasted_ms` says how long that was. Userspace ends a penalty by making the word a word without a time.
 */
struct weir_penalty_set {
	struct weir_flow_set flows;
	__u64 until[WEIR_FLOW_WAYS];
	__u32 lasted_ms[WEIR_FLOW_WAYS][2];
	__u64 pad[2];
};
_Static_assert(sizeof(struct weir_penalty_set) == 192, "three cache lines");

/* Map `penalised_rules`, by rule slot. Without a flow key: the rule's one penalty. With one: `until` is no
 * earlier than the end of any of its flows' penalties, so that no flow is looked up when there are none.
 */
struct weir_rule_penalty {
	__u64 until;
	__u32 lasted_ms[2];
};

/* How long a CPU may rely on a penalty that it has read, in ns. Chosen, not derived: short for an operator who releases
 * a flow, but long compared with the distance of packets in a flood.
 */
#define WEIR_RELEASE_NS 50000000ull
/* A token bucket: both words as weir_tokens.h says. Map `token_resources`, by rule slot, has those of whole
 * resources.
 */
struct weir_token_bucket {
	__u64 word;
	__u64 touched; /* WEIR_TOUCHED: owner, and the epoch when a packet was admitted last */
};

/* Map `token_flows`. */
struct weir_token_set {
	struct weir_flow_set flows;
	struct weir_token_bucket bucket[WEIR_FLOW_WAYS];
	__u64 pad[2];
};
_Static_assert(sizeof(struct weir_token_set) == 192, "three cache lines");

/*
 * Maps `occupy_flows` and, by rule slot, `occupy_resources`: one flow's occupy window. It has a cell for each of
 * the n buckets of the window and of the n after it (n: sampleCount), each used again when 2n buckets have gone by.
 *
 * A cell holds, from the lowest bit, the units of its bucket (weir_occupy_unit_bits() of them), and the round of the
 * ring, mixed with the flow's tag. A cell with another round or another flow's tag counts nothing. Buckets are numbered
 * from 2n before time zero, so that a cell of all zeros is never valid, even for a whole resource, whose tag is 0. The
 * arithmetic is in weir_occupy.h.
 */
#define WEIR_OCCUPY_CELLS (2 * WEIR_SAMPLES_MAX)
#define WEIR_OCCUPY_TAKEN 1ull /* the entry is being taken over: nothing counts in it */
struct weir_occupy_window {
	__u64 newest; /* twice the start, in ns, of the newest bucket in which a packet was evaluated; and TAKEN */
	__u64 cell[WEIR_OCCUPY_CELLS];
	/* Flows, as ghosts (weir_row_ghosts.h), whose names show whether they are this flow's: */
	__u64 ghost[2]; /* the ghost of its earlier eviction */
	__u64 leaves;	/* what is needed to make a ghost of these cells: WEIR_OCCUPY_LEAVES */
};
_Static_assert(sizeof(struct weir_occupy_window) == 192, "three cache lines");

struct weir_occupy_set {
	struct weir_flow_set flows;
	struct weir_occupy_window flow[WEIR_FLOW_WAYS];
};
_Static_assert(sizeof(struct weir_occupy_set) == 1408, "one cache line, and three for each way");

/* Map `warming_flows`: WarmUp of one flow of a rule with a key, which the program computes itself. */
struct weir_warming {
	__u64 state;  /* whose it is, and the last second synced: see below */
	__u64 stored; /* tokens */
	__u64 passed; /* units since that second began */
	__u64 units;  /* the threshold now */
	__u64 pad;
	struct weir_emission emission;
};
_Static_assert(sizeof(struct weir_warming) == 64, "one cache line");

/* weir_warming.state, from the highest bit: the threshold's version (8 bits, as in a WEIR_THRESHOLD_WORD), whether some
 * CPU is syncing it (1), bits of the flow's tag (15), and the second + 1; 0 if it was never synced.
 */
#define WEIR_WARMING_BUSY (1ull << 55)
#define WEIR_WARMING_SECOND_BITS 40
#define WEIR_WARMING_SECOND_MASK ((1ull << WEIR_WARMING_SECOND_BITS) - 1)
#define WEIR_WARMING_TAG(tag) ((__u64)((tag)&0x7fff) << WEIR_WARMING_SECOND_BITS)
#define WEIR_WARMING_TAG_MASK WEIR_WARMING_TAG(0x7fff)

struct weir_warming_set {
	struct weir_flow_set flows;
	struct weir_warming flow[WEIR_FLOW_WAYS];
};
_Static_assert(sizeof(struct weir_warming_set) == 512, "eight cache lines");

/* ---- system rules ---- */

/* The metric of a system rule; 0 for all other rules. One more than Sentinel-Go's number. */
enum weir_system_metric {
	WEIR_SYSTEM_NONE,
	WEIR_SYSTEM_LOAD,
	WEIR_SYSTEM_AVG_RT,
	WEIR_SYSTEM_CONCURRENCY,
	WEIR_SYSTEM_INBOUND_QPS,
	WEIR_SYSTEM_CPU_USAGE,
	WEIR_SYSTEM_COUNT
};

/* Packets, as system rules distinguish them. The first and the last are inbound work. */
enum weir_work {
	WEIR_WORK_OPENING = 1 << 0,	/* a SYN without ACK, FIN and RST */
	WEIR_WORK_ESTABLISHED = 1 << 1, /* any other packet of TCP */
	WEIR_WORK_OTHER = 1 << 2,	/* packets of other protocols */
};

/*
 * Map `handshakes`, one element: the handshakes that were completed in each of the last half seconds, of all CPUs
 * together. The bucket of time t is number t / WEIR_HANDSHAKE_BUCKET_NS, and stands at that number modulo
 * WEIR_HANDSHAKE_BUCKETS. Each word contains the number of its bucket. A word with another number counts nothing, so
 * nothing has to clear the ring. `count` and `shortest` have 32 bits for the number. `sum_us` has 16 bits, which wrap
 * after six days; but it is read only together with a count of the same number, and is written before that count.
 */
#define WEIR_HANDSHAKE_BUCKET_NS (WEIR_NSEC_PER_SEC / 2)
#define WEIR_HANDSHAKE_BUCKETS 16 /* a power of two, more than are ever read */
#define WEIR_HANDSHAKE_MEAN_BUCKETS 2
#define WEIR_HANDSHAKE_BBR_BUCKETS 10
#define WEIR_HANDSHAKE_TAG(number) ((__u64)(number) << 32)
#define WEIR_HANDSHAKE_SUM_BITS 48
#define WEIR_HANDSHAKE_SUM_MASK ((1ull << WEIR_HANDSHAKE_SUM_BITS) - 1)
#define WEIR_HANDSHAKE_SUM_TAG(number) ((__u64)(number) / WEIR_HANDSHAKE_BUCKETS << WEIR_HANDSHAKE_SUM_BITS)
struct weir_handshake_bucket {
	__u64 count;
	__u64 sum_us;
	__u64 shortest; /* us, of at most 2^32 - 1 */
	__u64 pad;
};

struct weir_handshakes {
	struct weir_handshake_bucket bucket[WEIR_HANDSHAKE_BUCKETS];
};

/* Map `signals`, one element: what the controller has sampled of the host. Userspace writes it. If a time is 0, the
 * signal is unknown, and its value is 0.
 */
struct weir_signals {
	__u64 load1_ns; /* CLOCK_MONOTONIC of the sample */
	__u64 load1_micro;
	__u64 cpu_ns;
	__u64 cpu_micro; /* busy share of all CPUs, 0 to a million */
};

/* A flow's key in clear text, for commands to show. Evaluation needs only its hash. */
struct weir_flow_key {
	__u8 source[16]; /* masked by the rule's key; IPv4 in the first four; zero when not in the key */
	__u8 destination[16];
	__be16 source_port;
	__be16 destination_port;
	__u16 vlan;
	__u8 protocol;
	__u8 family; /* 4 or 6; 0 when the key has no address */
	__u32 ifindex;
	__u8 dscp;
	__u8 ttl;
	__u8 zero[2]; /* room for the next field: every byte is hashed */
};

/* Map `penalty_keys`, by set * WEIR_FLOW_WAYS + way: the flow of an entry in `penalised_flows`, for commands. Valid if
 * its tag is the entry's.
 */
struct weir_penalised {
	struct weir_flow_key key;
	__u32 tag;
	__u32 rule_slot;
};

/* What the sender of a packet gets that a rule blocks. */
enum weir_on_block {
	WEIR_ON_BLOCK_DROP, /* nothing */
	WEIR_ON_BLOCK_RESET,
	WEIR_ON_BLOCK_UNREACHABLE,
	WEIR_ON_BLOCK_TRUNCATE,
	WEIR_ON_BLOCK_COOKIE,
	WEIR_ON_BLOCK_COUNT
};

/* Map `rule_answers`, by rule slot: blocked packets whose sender was answered (handed to the driver), by enum
 * weir_on_block; or would have been, but for settings.answers; or but for what the answer needs: a query, a socket, a
 * cookie.
 */
struct weir_rule_answers {
	__u64 sent[WEIR_ON_BLOCK_COUNT];
	__u64 beyond_rate;
	__u64 impossible;
};

/* Map `own_addresses`, a hash: this host's addresses, and the broadcast addresses of its networks. */
struct weir_own_address {
	__be32 address[4]; /* IPv4 in the first, the others zero */
	__u32 is_ipv6;
};
#define WEIR_OWN_ADDRESS 1
#define WEIR_OWN_BROADCAST 2
#define WEIR_OWN_ADDRESSES_MAX 16384 /* chosen, not derived */

/* Rates of answers: one for all, one for cookies. */
#define WEIR_ANSWER_BUCKETS 2
#define WEIR_ANSWER_SLACK_NS (WEIR_NSEC_PER_SEC / 32) /* chosen, not derived */

/* Map `answers`: the theoretical arrival time of each rate's next portion. */
struct weir_answer_state {
	__u64 tat_ns[WEIR_ANSWER_BUCKETS]; /* CLOCK_MONOTONIC */
	__u64 pad[6];
};

#endif
