/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exactness across CPUs: two pinned threads run the shipped program at one flow, on the real clock, and
 * what both let through must never exceed the limit in any window of its kind, nor fall short of it.
 *
 * How admissions are counted. Each thread notes the clock before and after a run. The program read its
 * clock between the two, so when both lie in one bucket that is the packet's bucket. When they do not,
 * and always under a rule that goes by the kernel's tick, which may be late, the thread looks at its own
 * CPU's row: nobody else writes it, and its newest bucket is the one that the admitted packet was counted
 * in. So the sums over buckets are exact, and no tolerance is needed. Afterwards they are compared with the
 * cells that the program kept and with its counters.
 *
 * What is asserted, for every window of every flow:
 *   leap    any sampleCount buckets on the grid hold at most the limit;
 *   strict  any sampleCount + 1 do, and any interval wherever it starts does (runs that surely lie in it);
 *   smooth  at every admission: what was surely admitted before it and is in the window, the oldest
 *           bucket weighed for the latest time the admission can have had, is within the limit.
 * And not less than 99 % of the limit: at the end of a bucket in which both CPUs sent all the time, more
 * than the limit, the window is full. Buckets in which a thread was held up (another process, a stalled
 * virtual CPU) are left out of that, and counted. What was offered is numbered as if ticks were on time: a
 * late one moves some of it to the bucket before, never what has passed.
 *
 * The program is attached to a device first: test runs of a program that is not take turns.
 */
#ifndef WEIR_TEST_CONTEST_H
#define WEIR_TEST_CONTEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "claims.h"
#include "packets.h"
#include "rig.h"

#define CPUS 2
#define FLOW_RULES_MAX 2
#define FRAME_BYTES_MIN 60
#define FRAME_BYTES_MAX 1514

/* bpf_ktime_get_ns and clock_gettime are two readers of one clock, whose rate may just be changing. */
#define CLOCK_SLACK_NS 1000

/* What one CPU saw of one bucket of one rule. */
struct offer {
	uint64_t units;	   /* sent, by the time before the run */
	uint64_t last_ns;  /* when the last was sent; of a duel: when it was over */
	uint64_t alone_ns; /* when this thread began to take what a duel left */
	bool was_held_up;  /* this thread made a pause in it */
};

/* A packet that was let pass, or a batch. */
struct pass {
	uint64_t before_ns, after_ns;
	uint64_t units;
	uint64_t bucket[FLOW_RULES_MAX]; /* absolute number */
};

/* Where a rule keeps its row for one flow, on one CPU. */
struct row_place {
	uint32_t chunk, offset;
};

struct flow_on_cpu {
	struct row_place row[FLOW_RULES_MAX];
	struct offer *offers[FLOW_RULES_MAX]; /* from the contest's first bucket on */
	struct pass *passes;
	size_t pass_count, pass_capacity;
	uint64_t sent_ns; /* the last time */
	/* in batches */
	uint64_t *spent; /* by bucket, from the contest's first on */
	uint64_t newest; /* bucket seen, absolute */
};

struct flow {
	uint8_t frame[FRAME_BYTES_MAX];
	uint32_t frame_bytes;
	size_t resource;
	size_t rule[FLOW_RULES_MAX]; /* places */
	size_t rule_count;
	bool counts_bytes;
	bool has_other_limit;	/* rule 1 limits it first: rule 0 is never full */
	uint64_t passed_before; /* while rows were made */
	struct flow_on_cpu on[CPUS];
};

struct contest {
	struct rig rig;
	struct flow *flows;
	size_t flow_count;
	int cpu[CPUS];
	uint64_t start_ns, end_ns;
	uint64_t windows, windows_left_out;
};

extern const enum weir_window_kind contest_kinds[3];

struct contestant {
	struct contest *contest;
	int which;    /* of contest.cpu */
	void *values; /* all CPUs' copies of a map element */
	int err;
	pthread_t thread;
};

/* ---- set-up ---- */

/* A machine that is busy with other things may never send enough: then "not less" was not seen to hold. And a virtual
 * CPU that its host takes away for a moment may hold a unit that nobody sees it hold: a test that falls short is tried
 * again, and fails at the last of CONTEST_TRIES. "Never more" has one try.
 */
#define CONTEST_TRIES 3
#define CONTEST_CLAIM(what)                                                                                            \
	static void what##_once(void **state);                                                                         \
	CASE_WITHIN(what, NULL, contest_check_saturation, contest_try(what##_once));                                   \
	static void what##_once(void **state)
#define CONTEST_CASE(what, call)                                                                                       \
	CONTEST_CLAIM(what)                                                                                            \
	{                                                                                                              \
		call;                                                                                                  \
	}                                                                                                              \
	_Static_assert(sizeof(#call) > 1, "a case is a call")

void contest_try(void (*once)(void **state));
int contest_check_saturation(void **state);
extern bool contest_saturation_missed;
extern size_t contest_shortfalls; /* of this try */

/* Skips the test without root and as many CPUs. */
void contest_begin(struct contest *contest);

/* One more flow: a resource of its own, keyed by source or not. Rules are added by contest_rule. */
void contest_flow(struct contest *contest, bool is_keyed);

/* Of the latest flow; the pointer lives until the next rule is added. */
struct weir_ruleset_rule *contest_rule(struct contest *contest, enum weir_window_kind window, uint64_t limit,
				       uint64_t interval_ns, uint32_t samples);

/* A rule of a flow: as the program has it, as it was written, and its limit in whole units. */
const struct weir_rule *contest_loaded_rule(const struct contest *contest, const struct flow *flow, size_t rule);
const struct weir_ruleset_rule *contest_written_rule(const struct contest *contest, const struct flow *flow,
						     size_t rule);
uint64_t contest_limit(const struct contest *contest, const struct flow *flow, size_t rule);

/* ---- rows ---- */

/* A row in words that fit both formats. */
struct row {
	uint64_t newest; /* absolute bucket */
	uint64_t cell[WEIR_RING_CELLS];
	uint64_t lease;
	uint32_t tag;
};

/* Units spent in a bucket that the row still holds. */
uint64_t contest_row_spent(const struct row *row, const struct weir_rule *rule, uint64_t bucket);

/* A flow's row on one CPU, as it is now. Returns 0 or -EIO. */
int contest_read_row(const struct contest *contest, const struct flow *flow, size_t rule, int which, void *values,
		     struct row *ret_row);

/* Room for `values`. The caller frees it. */
void *contest_values_new(void);

/* Send one packet of each flow on each CPU, and find the rows that this made. */
void contest_make_rows(struct contest *contest);

/* ---- beginning and end ---- */

/* The bucket that a packet at this time is counted in, and when a bucket begins. By the tick both hold while that is on
 * time: a late one makes the bucket begin later.
 */
uint64_t contest_bucket_at(const struct contest *contest, const struct weir_rule *rule, uint64_t time_ns);
uint64_t contest_bucket_begins_ns(const struct contest *contest, const struct weir_rule *rule, uint64_t bucket);

/* Buckets of a rule from the contest's start on: the number of the first, and how many there can be. */
uint64_t contest_first_bucket(const struct contest *contest, const struct weir_rule *rule);
uint64_t contest_bucket_count(const struct contest *contest, const struct weir_rule *rule);

/* Load what was described, and attach it. */
void contest_load(struct contest *contest);

/* Of what is offered and passes, from start_ns to end_ns. */
void contest_make_logs(struct contest *contest);
void contest_free_logs(struct contest *contest);

void contest_end(struct contest *contest);

/* ---- the contest ---- */

/* A pause in sending longer than this part of a bucket leaves room for doubt whether it was saturated. */
#define HELD_UP_PART 8

/* Write down an admission, and in which bucket of each rule it was counted: to be called before this CPU's next packet
 * of the flow. Returns 0 or -errno; -ERANGE: it was counted in a bucket that had not begun.
 */
int contest_note_pass(const struct contest *contest, struct flow *flow, int which, uint64_t before_ns,
		      uint64_t after_ns, uint64_t units, void *values);

/* Send all flows in turn, as fast as it goes, until the end. */
void *contestant_main(void *data);

/* Run one thread on each CPU, and wait for both. Returns what kept one of them from its end, or 0. */
int contest_run(struct contest *contest, void *(*run)(void *));

#endif
