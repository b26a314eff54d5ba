/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The treaty between the BPF program and userspace: every struct that crosses a map, and the numbers
 * both sides must agree on. Userspace writes configuration, the kernel writes counters and windows;
 * no word is written by both while it is in use: a load clears the slots that it gives out, which no rule has.
 *
 * Two kinds of maps. Those of one *generation* (rules, resources, thresholds, vectors, classes, prefix
 * tries, interfaces, notes of full flows) are made anew by every load and never change while a program reads
 * them, but for single threshold words, and the notes. Those of the *instance* (flow tables, clocks, counters,
 * descriptions) live from attach to detach and are found by *slot* numbers, which a rule keeps as long as it is
 * unchanged.
 *
 * All integers are in host byte order except addresses and where a type says __be.
 */
#ifndef WEIR_ABI_H
#define WEIR_ABI_H

#include <linux/types.h>

/* One more with every change of what outlives a reload: the instance's maps, and struct weir_work behind `totals`. */
#define WEIR_ABI_VERSION 13u
#define WEIR_ABI_MAGIC 0x72696577u /* "weir", little endian */

/* ---- sizes: chosen, not derived, unless a comment says otherwise ---- */

#define WEIR_RESOURCES_MAX 4096			 /* resources of one load; one bit each in a vector */
#define WEIR_RULES_MAX 8192			 /* rules of one load */
#define WEIR_RULE_SLOTS_MAX (2 * WEIR_RULES_MAX) /* of one instance: a reload finds room */
/* A class number is 16 bits wide. Vector 0 is always "all resources": the program starts from it and
 * ANDs the vector of each field in use.
 */
#define WEIR_VECTORS_MAX 65535
#define WEIR_PACKET_RULES_MAX 16     /* rules that may meet on one packet */
#define WEIR_PACKET_RESOURCES_MAX 32 /* resources that may meet on one packet, with or without rules */
#define WEIR_TIMINGS_MAX 1024	     /* different (bucket length, window) pairs of one instance */
#define WEIR_TIMINGS_NARROW 16	     /* of these, how many narrow rows can name: four bits of their tag */
#define WEIR_NAME_BYTES 128	     /* a name of up to 127 bytes and its zero */
#define WEIR_CPUS_MAX 1024	     /* possible CPUs */
#define WEIR_NSEC_PER_SEC 1000000000ull

/* ---- verdicts ---- */

/* What became of a packet. Each packet ends in exactly one; the counters in `totals` add up to `seen`. */
enum weir_verdict {
	WEIR_VERDICT_PASS,	     /* admitted by every enforced rule it met */
	WEIR_VERDICT_BLOCK,	     /* dropped by a rule */
	WEIR_VERDICT_MALFORMED_PASS, /* the classes that never meet a rule, each with its policy */
	WEIR_VERDICT_MALFORMED_DROP,
	WEIR_VERDICT_UNSUPPORTED_PASS,
	WEIR_VERDICT_UNSUPPORTED_DROP,
	WEIR_VERDICT_NON_IP_PASS,
	WEIR_VERDICT_NON_IP_DROP,
	WEIR_VERDICT_UNMATCHED_PASS,
	WEIR_VERDICT_UNMATCHED_DROP,
	WEIR_VERDICT_ALLOW, /* passed before any rule: its source is in an `allow` list */
	WEIR_VERDICT_DENY,
	/* dropped: a map entry that must exist was missing, which is a bug; or the packet's other rules held all eight
	 * rows that its flow could have, which is chance
	 */
	WEIR_VERDICT_ERROR,
	WEIR_VERDICT_COUNT
};

/* ---- windows ---- */

enum weir_window_kind {
	WEIR_WINDOW_LEAP,   /* current bucket and sampleCount - 1 before it: Sentinel's LeapArray */
	WEIR_WINDOW_STRICT, /* current bucket and sampleCount before it */
	WEIR_WINDOW_SMOOTH, /* strict, the oldest weighed by the part still inside the interval */
};

#define WEIR_SAMPLES_MAX 10
#define WEIR_RING_CELLS 11 /* sampleCount + 1: all that strict and smooth look at */

/* Where the rows of a rule are kept. */
enum weir_storage {
	WEIR_STORAGE_LONE,   /* no flow key: one wide row per CPU at the rule's slot, never evicted */
	WEIR_STORAGE_NARROW, /* the flow cache of 32-byte rows */
	WEIR_STORAGE_WIDE,   /* the flow cache of 128-byte rows */
};

/* A cell holds the units admitted or leased in one bucket. Its top bit says that some of them are a
 * lease not yet spent (or a claim being judged), so that another CPU reads "how many" and "all
 * spent?" in one load.
 */
#define WEIR_NARROW_UNSPENT 0x8000u
#define WEIR_WIDE_UNSPENT (1ull << 63)

/* Largest threshold a narrow row can serve: threshold + lease must stay below WEIR_NARROW_UNSPENT. */
#define WEIR_NARROW_THRESHOLD_MAX 32000u
/* Seven bits hold it, and leave one to spare: a unit put back into a lease must not make it WEIR_NARROW_FULL. */
#define WEIR_NARROW_LEASE_MAX 126u
/* Bucket numbers in narrow rows are 32 bits, counted from the timing's base: at 50 ms and more they
 * last 6.8 years.
 */
#define WEIR_NARROW_BUCKET_NS_MIN 50000000ull
#define WEIR_NARROW_BUCKET_MAX 0xffffffffull

/* One CPU's window of one flow, for limits that are small counts of packets: two rows a cache line.
 * Written by its own CPU only; read by all.
 */
struct weir_narrow_row {
	__u32 tag;    /* 0: empty. 28 bits of the flow's hash, then 4 bits of timing number */
	__u32 newest; /* newest bucket counted in, relative to the timing's base */
	__u16 cell[WEIR_RING_CELLS];
	__u8 lease;   /* below 128: units leased. Else: full, until (lease - 127)/128 of the bucket */
	__u8 version; /* of the threshold under which lease or fullness were found */
};
#define WEIR_NARROW_FULL 0x80u

/* The same for everything else: byte limits, large limits, short buckets, whole resources. */
struct weir_wide_row {
	__u32 tag; /* 0: empty. 32 bits of the flow's hash */
	__u16 timing;
	__u16 full_left; /* units left when it was found full: larger packets need not ask again */
	__u64 newest;
	__u64 cell[WEIR_RING_CELLS];
	__u64 lease;
	__u64 threshold;     /* the threshold word under which lease or fullness were found */
	__u64 full_until_ns; /* 0: not known to be full */
};

_Static_assert(sizeof(struct weir_narrow_row) == 32, "two rows must share one cache line");
_Static_assert(__builtin_offsetof(struct weir_narrow_row, cell) == 8, "the program reads four cells at once");
_Static_assert(sizeof(struct weir_wide_row) == 128, "a row must not straddle a third cache line");

#define WEIR_WAYS 4	       /* rows of a set; each flow has two candidate sets */
#define WEIR_CHUNK_BYTES 16384 /* one map element; bounded by what a per-CPU allocation may hold (32 KB) */
#define WEIR_NARROW_SETS_PER_CHUNK (WEIR_CHUNK_BYTES / WEIR_WAYS / 32) /* 128 */
#define WEIR_WIDE_SETS_PER_CHUNK (WEIR_CHUNK_BYTES / WEIR_WAYS / 128)  /* 32 */

struct weir_narrow_chunk {
	struct weir_narrow_row row[WEIR_NARROW_SETS_PER_CHUNK * WEIR_WAYS];
};

struct weir_wide_chunk {
	struct weir_wide_row row[WEIR_WIDE_SETS_PER_CHUNK * WEIR_WAYS];
};

/* Notes of flows with narrow rows that are full until the end of a bucket (bpf/full.h), half as many as there are
 * rows: with as many, those of a million flows stay in no cache of the processor (make bench, "1M"). Map `full_flows`,
 * per CPU, chunks.
 */
#define WEIR_FULL_PAIRS 8
struct weir_full_line {
	__u64 pair[WEIR_FULL_PAIRS]; /* of notes of 32 bits: the lower is the later one */
};
_Static_assert(sizeof(struct weir_full_line) == 64, "one cache line");
#define WEIR_FULL_SETS_PER_LINE 8
#define WEIR_FULL_LINES_PER_CHUNK (WEIR_CHUNK_BYTES / 64)
struct weir_full_chunk {
	struct weir_full_line line[WEIR_FULL_LINES_PER_CHUNK];
};

/* Which CPUs have counted a flow of late (bpf/presence.h): an epoch, and the CPUs seen in the epoch before and in
 * this one. Map `presence`, shared by all CPUs: one cell for each row of each CPU's table, so that flows seldom
 * share one.
 */
#define WEIR_PRESENCE_FIELD_BITS 12
#define WEIR_PRESENCE_EPOCH_SHIFT (2 * WEIR_PRESENCE_FIELD_BITS)
#define WEIR_PRESENCE_LINE_CELLS 16
struct weir_presence_line {
	__u32 cell[WEIR_PRESENCE_LINE_CELLS];
};
_Static_assert(sizeof(struct weir_presence_line) == 64, "one cache line, found by one multiplication");
#define WEIR_PRESENCE_CELLS_MAX (1u << 31)
#define WEIR_PRESENCE_SHIFT_MIN 32 /* an epoch of 4.3 s: long beside any stall of a CPU */
#define WEIR_PRESENCE_SHIFT_MAX 48 /* holds every window: 24 h in one bucket, and one more, are 2^47.3 ns */

/* How long a bucket is and how many a window looks at. Never changes once published: rows in the
 * tables are judged by it. Map `timings`, of the instance.
 */
struct weir_timing {
	__u64 bucket_ns;
	__u64 base_bucket;  /* bucket numbers in rows count from here, so that they start small */
	__u32 window_cells; /* buckets the window looks at: sampleCount, or one more */
	__u32 window;	    /* enum weir_window_kind */
};

/* One CPU's idea of the time, in buckets of one timing. Map `clocks`, per CPU, of the instance. */
struct weir_clock {
	__u64 bucket;	/* relative to the timing's base */
	__u64 start_ns; /* the bucket's bounds; end_ns 0: never read */
	__u64 end_ns;
	__u64 until_jiffies; /* below this many jiffies the bucket is surely not over */
	__u64 latest_ns;     /* the latest time that a judgement used */
	__u32 cell;	     /* bucket modulo WEIR_RING_CELLS */
	__u32 salt;	     /* another one whenever `bucket` changes, also to one that was before */
	__u64 timer_span_ns; /* is the next timer interrupt less after start_ns, the bucket is surely not over */
	__u32 pad[2];
};
#define WEIR_SALT_STEP 0x9e3779b1u /* odd: 2^32 buckets until one comes again. 2^32 by the golden ratio, chosen */
_Static_assert(sizeof(struct weir_clock) == 64, "one cache line");

/* ---- thresholds that move, and throttling ---- */

/*
 * What one unit costs of a throttled flow's time: interval / allowed, of exact rationals. A packet costs
 * ceil(batch * (whole + fraction / 2^128)) ns. With the fraction rounded down that is the exact ceil(batch *
 * interval / allowed) as long as batch is below 2^17 and the denominator of the quotient below 2^111:
 * a quotient that is no integer is farther above one than what was cut off (weir_cost.h).
 */
struct weir_cost {
	__u64 whole;	   /* ns */
	__u32 fraction[4]; /* most significant first */
};
#define WEIR_COST_BATCH_MAX (1u << 17)

/*
 * A threshold that the controller moves, in map `thresholds`. The word and a cost must change together: the
 * cost goes first to the copy that nobody reads, then one store of the word, whose version's lowest bit says which
 * copy that is, publishes both.
 */
struct weir_pushed {
	__u64 word; /* a WEIR_THRESHOLD_WORD */
	__u64 pad;
	struct weir_cost cost[2]; /* [version & 1]; only of rules that throttle */
};

/* The controller's sign of life. Map `control`, one element, of the instance; written by userspace. */
struct weir_control {
	__u64 heartbeat_ns; /* CLOCK_MONOTONIC; 0: there never was one, or it has ended */
	__u64 validity_ns;  /* what was pushed holds for so long after it */
};

/*
 * WarmUp, set up (docs/semantics.md, 3; Sentinel's tc_warm_up.go). R is the rate per second, threshold * 1 s /
 * interval. Computed by userspace, with these bounds so that 64 bits are enough for who uses it:
 * limit_den * ramp * (cold_less_one + 1) < 2^62, cost_den * ramp < 2^62.
 */
struct weir_warm_up {
	__u64 warning, max; /* tokens */
	__u64 ramp;	    /* max - warning; 0: no ramp, the plain threshold */
	__u64 cold_less_one;
	__u64 refill;		    /* floor(R), tokens a second */
	__u64 refill_below;	    /* floor(floor(R) / cold factor): a second with less refills */
	__u64 limit_num, limit_den; /* the threshold, units per interval, in lowest terms */
	__u64 cost_num, cost_den;   /* interval / threshold, ns a unit, in lowest terms; 0 / 1 unless throttling */
};

/* The state of a whole resource's WarmUp, between controllers. Map `warm_states`, by rule slot, of the
 * instance; written and read by userspace only.
 */
struct weir_warm_state {
	__u64 stored; /* tokens */
	__u64 second; /* of the data plane's clock: the last one synced */
	__u64 total;  /* weir_rule_seconds.total of all CPUs by then */
	__u64 pad;
};

/* Units that passed in each of the last seconds, of rules whose WarmUp the controller computes. Map
 * `rule_seconds`, by rule slot, per CPU, of the instance.
 */
#define WEIR_RULE_SECONDS 16 /* a power of two: how long a controller may be late and still know every second */
struct weir_rule_second {
	__u64 second; /* an entry of another second is old */
	__u64 units;
};

struct weir_rule_seconds {
	__u64 total;
	struct weir_rule_second at[WEIR_RULE_SECONDS];
};

/*
 * Words that all CPUs share, of flows with a key: arrays of sets. Tags are 32 bits of the flow's hash, 0: empty. The
 * latest insertion into a set stands in `inserted`, and is valid from then on whatever the tags say: the flow's
 * tag, 32 bits, the way it took, 8 bits, and a count (bpf/shared.h).
 */
#define WEIR_INSERTED(tag, way, count) ((__u64)(tag) | (__u64)(way) << 32 | (__u64)(count) << 40)
#define WEIR_INSERTED_WAY(word) ((__u32)((word) >> 32) & 0xff)
#define WEIR_INSERTED_COUNT(word) ((word) >> 40)

/* Map `throttled_flows`. A word is the planned time of the latest packet, the lowest bits of one more than its ns;
 * above it whether the flow was ever refused there, and five bits of the tag: what a stranger left there counts as
 * never.
 */
#define WEIR_THROTTLE_WAYS 10
struct weir_throttle_set {
	__u64 inserted;
	__u32 tag[WEIR_THROTTLE_WAYS];
	__u64 last[WEIR_THROTTLE_WAYS];
};
_Static_assert(sizeof(struct weir_throttle_set) == 128, "two cache lines");
#define WEIR_LAST_BITS 58 /* nine years of ns, 4.5 before now and as many after */
#define WEIR_LAST_REFUSED (1ull << WEIR_LAST_BITS)
#define WEIR_LAST_TAG_SHIFT 59
#define WEIR_LAST_MASK ((1ull << WEIR_LAST_BITS) - 1)

/* WarmUp of one flow of a rule with a key: computed by the program. Map `warming_flows`. */
struct weir_warming {
	__u64 state;	   /* who it is, and the last second synced: below */
	__u64 stored;	   /* tokens */
	__u64 passed;	   /* units, since that second began */
	__u64 units;	   /* the threshold now */
	__u64 cold_second; /* when it is all cold again, if nothing passes: it may then be forgotten */
	struct weir_cost cost;
};
_Static_assert(sizeof(struct weir_warming) == 64, "one cache line");

/* A state: the threshold's version (8 bits, where a WEIR_THRESHOLD_WORD has it), whether some CPU is syncing it
 * (one), bits of the flow's tag (15), and the second, one more than it is; 0: never synced.
 */
#define WEIR_WARMING_BUSY (1ull << 55)
#define WEIR_WARMING_SECOND_BITS 40
#define WEIR_WARMING_SECOND_MASK ((1ull << WEIR_WARMING_SECOND_BITS) - 1)
#define WEIR_WARMING_TAG(tag) ((__u64)((tag)&0x7fff) << WEIR_WARMING_SECOND_BITS)
#define WEIR_WARMING_TAG_MASK WEIR_WARMING_TAG(0x7fff)

#define WEIR_WARMING_WAYS 7
struct weir_warming_set {
	__u64 inserted;
	__u32 tag[WEIR_WARMING_WAYS];
	__u32 pad[7];
	struct weir_warming flow[WEIR_WARMING_WAYS];
};
_Static_assert(sizeof(struct weir_warming_set) == 512, "eight cache lines");

/* A flow's key, in the clear. */
struct weir_flow_key {
	__u8 source[16]; /* masked as the rule's key says; IPv4 in the first four; zero when not in the key */
	__u8 destination[16];
	__be16 source_port;
	__be16 destination_port;
	__u16 vlan;
	__u8 protocol;
	__u8 family; /* 4 or 6 */
	__u32 ifindex;
};

/* ---- connections: docs/connections.md says what one is ---- */

/* How long silence may last depends on the state. Silence is measured in steps of a sixth of it. */
enum weir_connection_class {
	WEIR_CONNECTION_CLASS_HALF,  /* half-open, heard, refused */
	WEIR_CONNECTION_CLASS_OPEN,  /* TCP */
	WEIR_CONNECTION_CLASS_OTHER, /* UDP and all else */
	WEIR_CONNECTION_CLASS_CLOSED,
	WEIR_CONNECTION_CLASSES
};
#define WEIR_CONNECTION_CLASSES_COUNTED 3 /* the first of them */
#define WEIR_CONNECTION_STEPS 6		  /* of silence: last heard longer ago than this, it is over */

enum weir_connection_state {
	WEIR_CONNECTION_NONE,
	WEIR_CONNECTION_HALF_OPEN,
	WEIR_CONNECTION_HEARD,
	WEIR_CONNECTION_OPEN,
	WEIR_CONNECTION_OTHER_ONCE, /* heard of once: among the first to be evicted */
	WEIR_CONNECTION_OTHER,
	WEIR_CONNECTION_CLOSED,
	WEIR_CONNECTION_REFUSED,
};

/*
 * Map `connections`: sets of ways, as above. A way's word is all that is decided by, and changes by
 * compare-and-swap: the step in which the connection was last heard of (23 bits of its number), its state (3), 4 bits
 * of the connection's tag, by which a word that a stranger left in the place is told, and the flow it is
 * counted in: 10 bits of the flow's tag, and its number (24).
 */
#define WEIR_CONNECTION_STEP_BITS 23 /* at the shortest time-out they last 16 days */
#define WEIR_CONNECTION_STEP_MASK ((1ull << WEIR_CONNECTION_STEP_BITS) - 1)
#define WEIR_CONNECTION_STATE_SHIFT 23
#define WEIR_CONNECTION_TAG_SHIFT 26
#define WEIR_CONNECTION_TAG_MASK 0xfull
#define WEIR_CONNECTION_FLOW_TAG_SHIFT 30
#define WEIR_CONNECTION_FLOW_SHIFT 40
#define WEIR_CONNECTION_CHECK 0x3ffull /* 10 bits of a tag */

#define WEIR_CONNECTION_WAYS 7
/* Of these, how many may be taken by connections heard of once, of which a flood can make any number. */
#define WEIR_CONNECTION_BUDGET 2
struct weir_connection_set {
	__u64 inserted;
	__u32 tag[WEIR_CONNECTION_WAYS];
	__u32 opened_us[WEIR_CONNECTION_WAYS]; /* the SYN of a half-open one: us of the clock, modulo 2^32 */
	__u64 word[WEIR_CONNECTION_WAYS];
	__u64 pad;
};
_Static_assert(sizeof(struct weir_connection_set) == 128, "two cache lines");

/* A flow's connections that were last heard of in one step: the step (30 bits of its number), 10 bits of the flow's
 * tag, the count (24). A cell of another flow, or of another step, counts nothing; so what is over need not be swept.
 */
#define WEIR_CONNECTION_CELLS 8 /* the present step, the six before it, and one that another CPU is ahead */
#define WEIR_CONNECTION_COUNT_BITS 24
#define WEIR_CONNECTION_COUNT_MASK ((1ull << WEIR_CONNECTION_COUNT_BITS) - 1)
#define WEIR_CONNECTION_CELL_STEP_SHIFT 34
#define WEIR_CONNECTION_CELL_STEP_MASK ((1u << 30) - 1)
#define WEIR_CONNECTION_CELL(step, flow_tag)                                                                           \
	((__u64)((step)&WEIR_CONNECTION_CELL_STEP_MASK) << WEIR_CONNECTION_CELL_STEP_SHIFT |                           \
	 ((flow_tag)&WEIR_CONNECTION_CHECK) << WEIR_CONNECTION_COUNT_BITS)

#define WEIR_HANDSHAKE_STEPS 24 /* times from 2^n us on; the first from 0 */

/* Counted by all CPUs, atomically. What ended by silence is what is missing: opened + learned - ended - now. */
struct weir_connection_counts {
	__u64 max;
	__u64 opened;
	__u64 learned;
	__u64 refused;
	__u64 closed_by_fin;
	__u64 closed_by_reset;
	__u64 reused;
	__u64 evicted;
	__u64 handshakes;
	__u64 handshake_us;	 /* all together */
	__u64 handshake_less_us; /* 2^32 less the shortest; 0: there was none */
	__u32 handshake_step[WEIR_HANDSHAKE_STEPS];
};

/*
 * The connections of one flow, or of a whole rule. `owner` is the rule's slot, and above it the flow's mark: its tag,
 * with the place's turn in the bits of WEIR_CONNECTION_CHECK. (A turn, 1 to 1023 and round again, is once that the
 * place changed hands.) "Of the flow's tag" words and cells carry just the turn: so what a flow left behind is not its
 * own when it comes back. While the place changes hands, the mark is the new turn alone, and the slot still the former
 * owner's.
 */
struct weir_connection_flow {
	__u64 owner;
	__u64 cell[WEIR_CONNECTION_CLASSES_COUNTED][WEIR_CONNECTION_CELLS]; /* [class][step modulo 8] */
	struct weir_connection_counts counts;
	struct weir_flow_key key; /* whose they are, for `weir flows` */
	__u32 pad[5];
};
_Static_assert(sizeof(struct weir_connection_flow) == 448, "seven cache lines");
#define WEIR_CONNECTION_OWNER(slot, mark) ((__u64)(mark) << 32 | (slot))
#define WEIR_CONNECTION_MARK(tag, turn) ((__u32)(((tag) & ~WEIR_CONNECTION_CHECK) | ((turn)&WEIR_CONNECTION_CHECK)))

/* Map `connection_flows`: sets of ways. Map `connection_totals`, by rule slot: one of these; for a resource without a
 * flow key it is what decides, and has the number WEIR_CONNECTION_LONE | slot.
 */
#define WEIR_CONNECTION_FLOW_WAYS 7
struct weir_connection_flow_set {
	__u64 inserted;
	__u32 tag[WEIR_CONNECTION_FLOW_WAYS];
	__u32 until_s[WEIR_CONNECTION_FLOW_WAYS]; /* by this second of the clock all its connections are over */
	struct weir_connection_flow flow[WEIR_CONNECTION_FLOW_WAYS];
};
_Static_assert(sizeof(struct weir_connection_flow_set) == 50 * 64, "");
#define WEIR_CONNECTION_LONE (1u << 23)
#define WEIR_CONNECTION_FLOW_SETS_MAX (WEIR_CONNECTION_LONE / 8) /* number of a flow: set * 8 + way */
#define WEIR_CONNECTION_LONE_TAG 1u				 /* of a whole resource */

/* ---- one generation: what a load is made of ---- */

/* A threshold and its version, in one word so that one aligned store changes both. */
#define WEIR_THRESHOLD_BITS 56
#define WEIR_THRESHOLD_MASK ((1ull << WEIR_THRESHOLD_BITS) - 1)
#define WEIR_THRESHOLD_WORD(units, version)                                                                            \
	(((__u64)(__u8)(version) << WEIR_THRESHOLD_BITS) | ((units)&WEIR_THRESHOLD_MASK))

/* Bits of weir_rule.key_fields. */
enum weir_key_field {
	WEIR_KEY_SOURCE = 1 << 0,
	WEIR_KEY_DESTINATION = 1 << 1,
	WEIR_KEY_SOURCE_PORT = 1 << 2,
	WEIR_KEY_DESTINATION_PORT = 1 << 3,
	WEIR_KEY_PROTOCOL = 1 << 4,
	WEIR_KEY_VLAN = 1 << 5,
	WEIR_KEY_INTERFACE = 1 << 6,
};

/* What a rule limits. */
enum weir_metric {
	WEIR_METRIC_RATE,	 /* units per interval */
	WEIR_METRIC_CONCURRENCY, /* connections open at once */
};

/* How a rule comes to its answer. */
enum weir_judging {
	WEIR_JUDGING_WINDOW,	  /* by the window of its own resource */
	WEIR_JUDGING_ASSOCIATED,  /* by the window that a meter keeps of another resource */
	WEIR_JUDGING_THROTTLE,	  /* by the planned time of the flow's latest packet */
	WEIR_JUDGING_CONNECTIONS, /* by the connections that the flow has open */
};

/* weir_generation.rules, by the rule's place in the order of the files; behind them the meters, which are rules
 * without a threshold: windows of what passed on a resource, kept for the rules that are associated with it.
 */
struct weir_rule {
	__u64 bucket_ns;
	__u64 base_bucket;
	__u32 slot;	/* of the instance: counters, lone rows, and a part of the flow's hash */
	__u16 timing;	/* of the instance; in the hash, too */
	__u16 resource; /* place in `resources` */
	__u8 storage;	/* enum weir_storage */
	__u8 window;	/* enum weir_window_kind */
	__u8 window_cells;
	__u8 counts_bytes;    /* a packet's batch is its frame's bytes, not 1 */
	__u8 observes;	      /* counts what it would drop, and passes it */
	__u8 key_fields;      /* enum weir_key_field, or-ed */
	__u8 threshold_moves; /* the controller moves it: read map `thresholds`; else it is the constant below */
	__u8 asks_all;	      /* its window is longer than an epoch of map `presence`: ask every CPU */
	__be32 source_mask4;  /* parts of an address that belong to the key */
	__be32 destination_mask4;
	__be32 source_mask6[4];
	__be32 destination_mask6[4];
	__u64 threshold;    /* a WEIR_THRESHOLD_WORD; of one that moves, what holds when the controller is dead */
	__u8 judging;	    /* enum weir_judging */
	__u8 warms_flows;   /* WarmUp flow by flow, in this program */
	__u8 has_overrides; /* some flows have a threshold of their own: map `overrides` */
	__u8 overrides_destination;  /* ... found by destination address, not source */
	__u32 meter;		     /* place of the meter that an associated rule reads; of a meter, of its reader */
	__u64 queueing_ns_max;	     /* throttling: the longest wait */
	struct weir_cost cost;	     /* throttling: of `threshold` */
	struct weir_warm_up warm_up; /* if warms_flows */
};
_Static_assert(sizeof(struct weir_rule) == 200, "");

/* What a passing packet of a resource has to be counted by, beside the rules' own windows. */
enum weir_meter_kind {
	WEIR_METER_WINDOW,  /* `rule` is a meter's place: its window */
	WEIR_METER_SECONDS, /* `rule` is a rule whose WarmUp the controller computes: `rule_seconds` */
	WEIR_METER_WARMING, /* `rule` is a rule that warms flows: `warming_flows` */
};

struct weir_meter {
	__u8 kind;	    /* enum weir_meter_kind */
	__u8 skips_dropped; /* it serves one rule, that observes: what the rule would have dropped is not counted */
	__u16 rule;	    /* place in weir_generation.rules */
};
#define WEIR_RESOURCE_METERS_MAX 32 /* on one resource */

/* weir_generation.resources, by the order of definition. */
struct weir_resource {
	__u32 slot; /* of the instance: counters */
	__u16 rule_count;
	__u16 meter_count;
	__u16 rule[WEIR_PACKET_RULES_MAX]; /* ascending */
	struct weir_meter meter[WEIR_RESOURCE_METERS_MAX];
};

/* A set of resources, one bit each: whose is said by weir_generation.place. `summary` says which words are not zero. */
#define WEIR_VECTOR_WORDS (WEIR_RESOURCES_MAX / 64)
struct weir_vector {
	__u64 summary;
	__u64 word[WEIR_VECTOR_WORDS];
};

/* Which fields of a packet any resource asks for: bits of weir_config.match_fields. A field that
 * none asks for costs nothing: the verifier removes its code.
 */
enum weir_match_field {
	WEIR_MATCH_KIND = 1 << 0, /* family, fragment, protocol */
	WEIR_MATCH_SOURCE = 1 << 1,
	WEIR_MATCH_DESTINATION = 1 << 2,
	WEIR_MATCH_SOURCE_PORT = 1 << 3,
	WEIR_MATCH_DESTINATION_PORT = 1 << 4,
	WEIR_MATCH_TCP_FLAGS = 1 << 5,
	WEIR_MATCH_ICMP_TYPE = 1 << 6,
	WEIR_MATCH_VLAN = 1 << 7,
	WEIR_MATCH_LENGTH = 1 << 8,
	WEIR_MATCH_INTERFACE = 1 << 9,
};

/* Fields that few rules ask for. */
#define WEIR_MATCH_SELDOM (WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_TCP_FLAGS | WEIR_MATCH_ICMP_TYPE | WEIR_MATCH_VLAN)

enum weir_fragment {
	WEIR_FRAGMENT_NONE, /* a whole packet; an IPv6 atomic fragment too */
	WEIR_FRAGMENT_FIRST,
	WEIR_FRAGMENT_LATER, /* has no ports, flags or type */
	WEIR_FRAGMENT_KINDS
};

#define WEIR_PORT_NONE 65536u	  /* index of a packet without ports */
#define WEIR_BYTE_NONE 256u	  /* ... without TCP flags, or ICMP type */
#define WEIR_VLAN_NONE 4096u	  /* ... without a VLAN tag */
#define WEIR_LENGTH_LONGER 65536u /* ... longer than any length a rule can name */

/* For each value of a field, the number of the vector of the resources that accept it. Every entry is valid, also of
 * fields not in use.
 */
struct weir_classes {
	__u16 kind[2][WEIR_FRAGMENT_KINDS][256]; /* [0 IPv4, 1 IPv6][fragment][protocol] */
	__u16 source_port[WEIR_PORT_NONE + 1];
	__u16 destination_port[WEIR_PORT_NONE + 1];
	__u16 tcp_flags[WEIR_BYTE_NONE + 1];
	__u16 icmp_type[WEIR_BYTE_NONE + 1];
	__u16 vlan[WEIR_VLAN_NONE + 1];
	__u16 length[WEIR_LENGTH_LONGER + 1];
};

/* With up to 64 resources a vector is one word, and the first of these hold them all, mostly. */
#define WEIR_ONLY_WORDS 4096

/* The tables that every packet reads: global data of the program, at addresses that it knows, so that
 * no look-up stands between. In .bss, one a generation; filled before the load.
 */
struct weir_generation {
	struct weir_classes classes;
	__u64 only_word[WEIR_ONLY_WORDS]; /* word 0 of each vector, when weir_config.has_only_words */
	__u16 place[WEIR_RESOURCES_MAX];  /* in `resources`, of each bit of a vector */
	struct weir_resource resources[WEIR_RESOURCES_MAX];
	struct weir_rule rules[WEIR_RULES_MAX];
};

/* Key of the trie `overrides`, whose value is a struct weir_override_units. */
struct weir_override_key {
	__u32 prefix_bits; /* 40 for place and family, then the prefix length */
	__u32 place;	   /* of the rule */
	__u8 family;	   /* 4 or 6 */
	__u8 address[16];  /* IPv4 in the first four */
	__u8 zero[3];	   /* never compared */
};
#define WEIR_OVERRIDE_FIXED_BITS 40

struct weir_override_units {
	__u64 units;
	struct weir_cost cost; /* throttling */
};

/* .rodata of the program: known to the verifier, which removes what is switched off. */
struct weir_config {
	__u64 seed[16];		 /* the secret under which flows are hashed; lives until detach */
	__u64 load;		 /* a random number, not 0: notes of programs of other loads do not hold */
	__u64 tick_ns;		 /* length of a jiffy; 0: do not use jiffies */
	__u32 is_virtual;	 /* replay and tests: clock and interface come from map `lab` */
	__u32 is_weakly_ordered; /* the machine needs fences between plain stores and loads */
	__u32 cpus;		 /* possible CPUs */
	__u32 resource_count;	 /* 0: nothing matches */
	__u32 vector_words;	 /* words of a vector in use */
	__u32 has_only_words;	 /* one word, and weir_generation.only_word holds them: the loader's */
	__u32 match_fields;	 /* enum weir_match_field, or-ed */
	__u32 source_root[2];	 /* [0] IPv4, [1] IPv6: entries, as in struct weir_prefix_node */
	__u32 destination_root[2];
	__u32 interface_default; /* vector number for interfaces not listed */
	__u32 narrow_sets;	 /* powers of two; 0: no such table */
	__u32 wide_sets;
	__u32 presence_cells; /* a power of two, at least WEIR_PRESENCE_LINE_CELLS */
	__u32 presence_shift; /* an epoch is 2^this ns */
	__u32 drop_malformed;
	__u32 drop_unsupported;
	__u32 drop_non_ip;
	__u32 drop_unmatched;
	/* what any rule of the load asks for; the program leaves out the rest */
	__u32 asked_fields; /* enum weir_match_field, or-ed: what a match, a flow key or a kind of rule is made of */
	__u32 has_moving;
	__u32 has_throttling;
	__u32 has_associated;
	__u32 has_meters;
	__u32 warms_flows;
	__u32 has_overrides;
	__u32 paces;	     /* a packet that waits is handed on with its departure time */
	__u32 throttle_sets; /* powers of two; 0: no such table */
	__u32 warming_sets;
	__u64 throttle_horizon_ns; /* the largest cost of any packet: what was planned earlier than this is over */
	/* allow and deny lists: weir_lists.h */
	__u32 has_lists;
	__u32 list_levels; /* a bit for each enum weir_list_level that has groups */
	__u32 list_salt;
	__u32 list_bucket_bits; /* buckets are two to the power of this */
	/* connections */
	__u32 has_connections;
	__u32 connection_sets; /* powers of two; 0: no such table */
	__u32 connection_flow_sets;
	__u64 connection_step_ns[WEIR_CONNECTION_CLASSES];
};

/* ---- counters: written by the kernel, one copy a CPU ---- */

struct weir_tally {
	__u64 packets;
	__u64 bytes;
};

/* Map `totals`, one element. Behind the counters the program keeps its notes on the packet in hand: one
 * look-up less for every packet.
 */
#define WEIR_PRIVATE_WORDS 384
struct weir_totals {
	struct weir_tally seen;
	struct weir_tally verdict[WEIR_VERDICT_COUNT];
	__u64 program_private[WEIR_PRIVATE_WORDS];
};

/* Map `rule_counters`, by rule slot. */
struct weir_rule_counters {
	struct weir_tally blocked;    /* dropped, this rule being the first to block */
	struct weir_tally would_drop; /* the same for a rule that observes */
	__u64 evicted;		      /* flows pushed out of a full table while they still counted */
	/* packets dropped because the clock ran away while they were judged; and of those that an associated rule
	 * goes by, such as passed when there was no row to count them in
	 */
	__u64 stalled;
	__u64 leases;	/* times that other CPUs were asked */
	__u64 delayed;	/* packets given a later slot; another rule may still have blocked them */
	__u64 delay_ns; /* all their waits together */
	__u64 pad;
};

/* Map `resource_counters`, by resource slot. A packet that any rule blocks is blocked for all
 * resources it belongs to, so passed + blocked is all that matched.
 */
#define WEIR_SECONDS 64 /* a power of two that holds the last minute */
struct weir_second {
	__u32 second; /* of CLOCK_MONOTONIC, truncated; an entry of another second is old */
	__u32 passed; /* packets */
	__u32 blocked;
};

struct weir_resource_counters {
	struct weir_tally passed;
	struct weir_tally blocked;
	struct weir_second second[WEIR_SECONDS];
};

/* Map `pace_counters`, one element: packets that had to wait. The first two are counted by the XDP program, the others
 * by the tc program; marked less paced less unpaced never got there.
 */
struct weir_pace_counters {
	__u64 marked;	/* handed on with their departure time */
	__u64 unmarked; /* passed at once: the driver has no room for metadata */
	__u64 paced;	/* given to fq, to leave in time */
	__u64 unpaced;	/* passed at once: two VLAN tags, for which the kernel keeps no delivery time */
};

/* Who a row belongs to: noted when a flow spends or overspends, for `weir flows` only. A key that
 * another flow of the same place overwrote comes back with that flow's next lease. Map `talkers`,
 * per CPU, chunks.
 */
struct weir_talker {
	__u32 tag;
	__u32 set; /* the first of the flow's two candidate sets */
	__u32 rule_slot;
	__u32 pad;
	struct weir_flow_key key;
	__u32 pad2;
};
_Static_assert(sizeof(struct weir_talker) == 64, "one cache line");
#define WEIR_TALKERS_PER_CHUNK (WEIR_CHUNK_BYTES / 64)
#define WEIR_TALKER_CHUNKS 32 /* 8,192 talkers a CPU, 512 KB */
struct weir_talker_chunk {
	struct weir_talker talker[WEIR_TALKERS_PER_CHUNK];
};

/* The second candidate set of a flow whose first is `set`: both sides must find the same, and each is
 * the other's other. It lies in the same 4 KB page, so that looking at both costs one address
 * translation; within groups of that size two choices still balance (tests/bpf/table_test).
 */
#define WEIR_NARROW_PAGE_SETS 32
#define WEIR_WIDE_PAGE_SETS 8
#define WEIR_OTHER_SET(set, tag, page_sets) ((set) ^ (((tag) >> 4 & ((page_sets)-1)) | 1u))

/* ---- the laboratory: how replay and tests drive the shipped program (weir_config.is_virtual) ---- */

#define WEIR_NO_RULE 0xffffffffu
struct weir_lab {
	/* in */
	__u64 clock_ns;
	__u32 frame_bytes; /* 0: as long as the frame given; else its length on the wire */
	__u32 ifindex;
	/* out */
	__u32 verdict; /* enum weir_verdict */
	__u32 rule;    /* place of the enforced rule that blocked, or WEIR_NO_RULE */
	__u64 wait_ns; /* delay that throttling asks for */
	__u32 resource_count;
	__u16 resource[WEIR_PACKET_RESOURCES_MAX]; /* places, ascending */
	__u32 pad;
};

/* ---- descriptions: written and read by userspace only, so that any command can tell what runs ---- */

/* Map `instance`, one element. */
struct weir_instance_info {
	__u32 magic;
	__u32 abi_version;
	__u64 seed[16];
	__u64 generation;  /* 1 from attach, one more with every reload */
	__u64 attached_ns; /* CLOCK_MONOTONIC */
	__u64 loaded_ns;   /* of the last load */
	__u64 netns;	   /* inode number of the network namespace that its interfaces are in */
	__u32 rule_slots;  /* capacities of the instance's maps */
	__u32 resource_slots;
	__u32 narrow_sets;
	__u32 wide_sets;
	__u32 flows_per_cpu;
	__u32 policies; /* bit 0 drop_malformed, 1 unsupported, 2 non-IP, 3 unmatched */
	__u32 timing_count;
	__u32 throttle_sets;
	__u32 warming_sets;
	__u32 presence_cells;
	__u32 presence_shift;
	__u32 controller_timeout_ms;
	__u32 connection_sets;
	__u32 connection_flow_sets;
	__u64 connection_timeout_ms[WEIR_CONNECTION_CLASSES];
	__u32 allow_count; /* prefixes in lists */
	__u32 deny_count;
	char memory_cgroup[256]; /* settings.memory: empty for the system's */
};

/* MemoryAdaptive, as written. */
struct weir_memory_adaptive {
	__u64 low_units, high_units; /* per interval */
	__u64 low_mark_bytes, high_mark_bytes;
};

enum weir_slot_state {
	WEIR_SLOT_FREE,
	WEIR_SLOT_USED,
	WEIR_SLOT_COOLING, /* its rule is gone; free once free_after_ns is past and its state expired */
};

/* What makes a rule the same rule after a reload, but for its names. */
struct weir_rule_identity {
	__u64 interval_ns;
	__u32 samples;
	__u32 window; /* enum weir_window_kind */
	__u32 counts_bytes;
	__u32 key_fields;
	__u8 source_bits[2]; /* prefix lengths of the key, [0] IPv4, [1] IPv6; 0 when not in the key */
	__u8 destination_bits[2];
	__u32 metric; /* enum weir_metric */
};

/* Map `rule_info`, by rule slot. */
struct weir_rule_info {
	char name[WEIR_NAME_BYTES];
	char resource_name[WEIR_NAME_BYTES];
	struct weir_rule_identity identity;
	__u64 threshold_micro; /* as written, in millionths of a unit */
	__u64 threshold_word;  /* as last loaded */
	__u64 free_after_ns;   /* CLOCK_MONOTONIC */
	__u32 state;	       /* enum weir_slot_state */
	__u32 place;	       /* in `rules` of the present generation */
	__u32 resource_slot;
	__u32 storage; /* enum weir_storage */
	__u32 timing;
	__u32 observes;
	__u32 is_meter; /* not a rule of the user's */
	__u32 strategy; /* enum weir_strategy, weir_behavior, weir_relation */
	__u32 behavior;
	__u32 relation;
	__u32 moves; /* the controller pushes its threshold */
	__u32 override_count;
	__u32 overrides_destination; /* found by destination address, not source */
	__u32 pad;
	__u64 overrides_digest; /* of all that is written in them, in any order; 0: there are none */
	__u64 queueing_ns_max;
	/* Until then the tables that all CPUs share may have been told of flows of this slot, whoever had it
	 * (0: never): a rule to which that still matters does not get it.
	 */
	__u64 flows_until_ns;
	struct weir_warm_up warm_up;		 /* WarmUp */
	struct weir_memory_adaptive memory;	 /* MemoryAdaptive */
	char ref_resource_name[WEIR_NAME_BYTES]; /* AssociatedResource; else empty */
};

/* Map `resource_info`, by resource slot. */
struct weir_resource_info {
	char name[WEIR_NAME_BYTES];
	__u64 free_after_ns;
	__u32 state;
	__u32 place;
	__u32 rule_count;
	__u32 pad;
};

#endif
