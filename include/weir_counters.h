/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel counts, one copy per CPU: packets by verdict, by rule and by resource; key samples, the keys of flows
 * that `weir flows` shows; and top drops, the flows that were dropped. They survive a reload: a table whose layout
 * changes here gets another version (weir_tables.h). Userspace only reads them, but for a slot that it gives out, which
 * it clears.
 */
#ifndef WEIR_ABI_COUNTERS_H
#define WEIR_ABI_COUNTERS_H

#include "weir_state.h"

/* The outcome of a packet. Each packet ends in exactly one verdict. */
enum weir_verdict {
	WEIR_VERDICT_PASS,	     /* admitted by every enforced rule that it matched */
	WEIR_VERDICT_BLOCK,	     /* dropped by a rule */
	WEIR_VERDICT_MALFORMED_PASS, /* classes of packets that match no rule, each with its policy */
	WEIR_VERDICT_MALFORMED_DROP,
	WEIR_VERDICT_UNSUPPORTED_PASS,
	WEIR_VERDICT_UNSUPPORTED_DROP,
	WEIR_VERDICT_NON_IP_PASS,
	WEIR_VERDICT_NON_IP_DROP,
	WEIR_VERDICT_UNMATCHED_PASS,
	WEIR_VERDICT_UNMATCHED_DROP,
	WEIR_VERDICT_ALLOW, /* passed before any rule: the source is in an `allow` list */
	WEIR_VERDICT_DENY,  /* dropped before any rule: the source is in a `deny` list */
	/* Dropped. A map entry that must exist was missing, which is a bug; or the packet's other rules had reserved
	 * all eight rows that its flow could have, which is chance.
	 */
	WEIR_VERDICT_ERROR,
	WEIR_VERDICT_COUNT
};

struct weir_tally {
	__u64 packets;
	__u64 bytes;
};

/* Each packet is counted in one of these. */
struct weir_totals {
	struct weir_tally seen; /* the sum of all the others: userspace fills it in (weir_sum_totals) */
	struct weir_tally verdict[WEIR_VERDICT_COUNT];
	/* Packets that passed only because the whole instance observes (weir_config.observes), by the verdict that
	 * would have dropped them.
	 */
	struct weir_tally would_drop[WEIR_VERDICT_COUNT];
};

_Static_assert(__builtin_offsetof(struct weir_totals, would_drop) ==
		       __builtin_offsetof(struct weir_totals, verdict[WEIR_VERDICT_COUNT]),
	       "weir_count() goes from one to the other");

/*
 * The run of drops of one flow that a CPU has counted last (bpf/observe/top_drops.h), before they are in the flow's
 * slot. It keeps the slot's sums as they are with the run, modulo 2^40, so that a reader who takes the run from one
 * look-up and the slot from a later one uses what the run is ahead by, if anything: never twice, never missing. A copy
 * of a value of a per-CPU map has no barriers, so each word has the number of the run in its upper 16 bits: words that
 * do not agree are of a run that began during the copy, and the run before it is in its slot. All words are 0 where
 * there was no run.
 */
struct weir_drop_run {
	__u64 slot; /* WEIR_DROP_RUN_SLOT(): which one */
	__u64 packets;
	__u64 bytes;
};
#define WEIR_DROP_RUN_SHIFT 48
#define WEIR_DROP_RUN_SUM_MASK ((1ull << 40) - 1) /* a run ends with its tick: far below half of it */
#define WEIR_DROP_RUN_SLOT(set, way, tag) ((__u64)(set) << 36 | (__u64)(way) << 32 | (tag))
#define WEIR_DROP_RUN_SET(slot) ((__u32)((slot) >> 36) & (WEIR_TOP_DROPS_SETS - 1)) /* among the CPU's own */
#define WEIR_DROP_RUN_WAY(slot) ((__u32)((slot) >> 32) & 15)

/* By how much the run is ahead of its slot's sum. 0 if the slot has more, having been given out again. */
static inline __u64 weir_drop_run_ahead(__u64 run, __u64 sum)
{
	__u64 ahead = (run - sum) & WEIR_DROP_RUN_SUM_MASK;

	return ahead > WEIR_DROP_RUN_SUM_MASK / 2 ? 0 : ahead;
}

/*
 * The run of packets that a CPU has counted last (bpf/observe/count.h): packets with the same verdict, direction,
 * resource and rule, which are not yet in the counters of these. A reader takes the run from one look-up and a counter
 * from a later one, and weir_run_ahead() says what the counter lacks. Each word has the number of the run in its upper
 * 16 bits, as in weir_drop_run.
 */
struct weir_count_run {
	__u64 what;		   /* WEIR_RUN_*; no state: no packet is missing in a counter */
	struct weir_tally counted; /* since it began */
	struct weir_tally base[3]; /* the counters when it began, modulo 2^48: of the verdict, resource and rule */
	__u64 second;		   /* 16 bits of the number of its second, and 32 of the resource's count in it */
};
enum { WEIR_RUN_OF_VERDICT, WEIR_RUN_OF_RESOURCE, WEIR_RUN_OF_RULE };
#define WEIR_RUN_VERDICT(what) ((__u32)(what)&15)
#define WEIR_RUN_OUT (1ull << 4)
#define WEIR_RUN_PENDING (1ull << 5)
#define WEIR_RUN_SETTLING (1ull << 6)
#define WEIR_RUN_RESOURCE(what) ((__u32)((what) >> 8) & 0xffff)
#define WEIR_RUN_RULE(what) ((__u32)((what) >> 24) & 0xffff) /* of verdict BLOCK */
#define WEIR_RUN_WHAT(verdict, resource, rule) ((verdict) | (__u64)(resource) << 8 | (__u64)(rule) << 24)
#define WEIR_RUN_SUM_MASK ((1ull << WEIR_DROP_RUN_SHIFT) - 1)
_Static_assert(WEIR_VERDICT_COUNT <= 16 && WEIR_RULE_SLOTS_MAX <= 65536, "parts of weir_count_run.what");

/* What a counter lacks of the run that began when it was `base`. Nothing once it has the run; or if it is below `base`,
 * as its slot was given out again. It lies between if a program that knows no runs has counted there since: a version
 * before 1 December 2026, during a reload.
 */
static inline __u64 weir_run_ahead(__u64 counter, __u64 base, __u64 run)
{
	const __u64 since = (counter - base) & WEIR_RUN_SUM_MASK;

	run &= WEIR_RUN_SUM_MASK;
	return since < run ? run : 0;
}

/* Map `totals`, one element: what every packet counts, and the program's scratch (bpf/scratch.h), so that one look-up
 * finds both. The counters and the runs survive a reload. The scratch begins with each load, whatever was there before.
 * (What a version without the run of drops left in its place names no slot, or one whose tag is another. In the place
 * of the run of packets no version had anything.)
 */
struct weir_cpu_state {
	struct weir_totals totals; /* for incoming packets */
	struct weir_drop_run drop_run;
	__u8 scratch[16384 - 2 * sizeof(struct weir_totals) - sizeof(struct weir_drop_run) -
		     sizeof(struct weir_count_run)];
	struct weir_count_run count_run;
	struct weir_totals out; /* for outgoing packets */
};

static inline void weir_sum_totals(struct weir_totals *totals)
{
	totals->seen = (struct weir_tally){};
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		totals->seen.packets += totals->verdict[verdict].packets + totals->would_drop[verdict].packets;
		totals->seen.bytes += totals->verdict[verdict].bytes + totals->would_drop[verdict].bytes;
	}
}

/* Map `rule_counters`, by rule slot. */
struct weir_rule_counters {
	struct weir_tally blocked;    /* dropped packets that this rule was the first to block */
	struct weir_tally would_drop; /* the same, if the rule or the instance observes */
	__u64 evicted;		      /* flows evicted from a full table while their window was not empty */
	/* packets dropped because their bucket ended while they were evaluated; for an associated rule, also packets of
	 * refResource that passed uncounted because no row was available
	 */
	__u64 stalled;
	__u64 leases;	/* how often the rows of other CPUs were added up */
	__u64 delayed;	/* packets that had to wait; another rule may still have blocked them */
	__u64 delay_ns; /* the sum of their waits */
	__u64 changes;	/* penalties that have begun; for a breaker, changes of its state */
};

/* All its members are counters of 64 bits. */
static inline void weir_add_rule_counters(struct weir_rule_counters *sum, const struct weir_rule_counters *of_cpu)
{
	for (__u32 i = 0; i < sizeof(*sum) / sizeof(__u64); i++)
		((__u64 *)sum)[i] += ((const __u64 *)of_cpu)[i];
}

/* Map `resource_counters`, by resource slot. A packet that any rule blocks is blocked for all resources that it belongs
 * to, so passed + blocked are all packets that matched.
 */
#define WEIR_SECONDS 64 /* a power of two that holds the last minute */
struct weir_second {
	__u32 second; /* of CLOCK_MONOTONIC, truncated; if it is not the second that a reader wants, the entry is old */
	__u32 passed; /* packets */
	__u32 blocked;
};

struct weir_resource_counters {
	struct weir_tally passed;
	struct weir_tally blocked;
	struct weir_second second[WEIR_SECONDS];
};

/* Map `pace_counters`, one element: packets that had to wait. The XDP program counts the first two, the tc program the
 * others. marked - paced - unpaced never reached the tc program.
 */
struct weir_pace_counters {
	__u64 marked;	/* handed on with their departure time */
	__u64 unmarked; /* passed at once: the driver has no room for metadata */
	__u64 paced;	/* given to fq, which delays them until they are due */
	__u64 unpaced;	/* passed at once: the kernel keeps no delivery time for frames with two VLAN tags */
};

/* Map `key_samples`, per CPU, in chunks: keys of flows, for `weir flows` only, as rows have hashes. A flow is recorded
 * when it goes over its limit, and now and then when it takes a lease (bpf/observe/key_samples.h). A later flow may
 * overwrite it; the next record brings it back.
 */
struct weir_key_sample {
	__u32 tag;
	__u32 set; /* the first of the flow's two candidate sets */
	__u32 rule_slot;
	__u32 pad;
	struct weir_flow_key key;
};
_Static_assert(sizeof(struct weir_key_sample) == 64, "one cache line");
#define WEIR_KEY_SAMPLES_PER_CHUNK (WEIR_CHUNK_BYTES / 64)
#define WEIR_KEY_SAMPLE_CHUNKS 32 /* 8,192 key samples per CPU, 512 KB */
struct weir_key_sample_chunk {
	struct weir_key_sample sample[WEIR_KEY_SAMPLES_PER_CHUNK];
};

/*
 * Maps `top_drops` and `top_drop_keys`, top drops: flows that rules have blocked, or would have if they did not observe
 * (bpf/observe/top_drops.h). Every CPU has WEIR_TOP_DROPS_SETS sets, one CPU's behind the other's, and writes no
 * others; userspace writes tags alone, to forget rules that are gone. Times are CLOCK_MONOTONIC, as of the
 * tick, in steps of 2^24 ns (17 ms): they wrap after 2.3 years.
 */
#define WEIR_TOP_DROPS_WAYS 14
#define WEIR_TOP_DROPS_SETS 1024 /* a power of two: 14,336 flows on each CPU, 1.5 MB */
#define WEIR_TOP_DROPS_TIME_SHIFT 24

#define WEIR_TOP_DROPS_ESTIMATED (1ull << 63)

/* What is read and written with every drop: three cache lines. */
struct weir_top_drops_set {
	__u64 missed;			 /* no flow without a slot in this set has had more drops */
	__u32 tag[WEIR_TOP_DROPS_WAYS];	 /* of its hash; 0: free */
	__u32 last[WEIR_TOP_DROPS_WAYS]; /* when its latest packet was dropped */
	__u32 missed_at;   /* the latest time at which `missed` bounded the drops of a flow without a slot */
	__u32 searched_at; /* when the last search for quiet flows was */
	struct {
		__u64 packets; /* dropped, and weir_top_drop_key.missed */
		__u64 bytes;   /* dropped; with WEIR_TOP_DROPS_ESTIMATED, both are estimated from samples */
	} sum[WEIR_TOP_DROPS_WAYS];
	__u64 pad[4];
};
_Static_assert(sizeof(struct weir_top_drops_set) == 384, "six cache lines");

/* Map `top_drop_keys`, by set * WEIR_TOP_DROPS_WAYS + way: whose place it is. Valid if its tag is the place's. */
struct weir_top_drop_key {
	__u64 hash;   /* of the flow under its rule; its rows have the same tag */
	__u64 missed; /* the largest number of its drops that may have come before `first`, uncounted */
	struct weir_flow_key key;
	__u32 tag;
	__u32 first; /* since when its drops are counted */
	__u32 rule_slot;
	__u32 observed; /* none was really dropped: the rule or the instance observes */
};
_Static_assert(sizeof(struct weir_top_drop_key) == 80, "");

/* A flow that has lost nothing for this long may lose its slot, and then starts over. Chosen, not derived. */
#define WEIR_TOP_DROPS_QUIET_NS (3600 * WEIR_NSEC_PER_SEC)

#endif
