// SPDX-License-Identifier: GPL-2.0-only
#include "sandbox/sandbox_run.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "program/array.h"
#include "program/copy.h"
#include "program/runs.h"

/* A run by itself is one system call. A call with many runs has a start-up cost of some 10,000 runs. */
#define SINGLE_RUNS 1024
#define RUNS_A_CALL 131072

#define FIRST_STEP_NS 1000000ull
#define LONGEST_WAIT_NS (10ull * 365 * 86400 * WEIR_NSEC_PER_SEC)

static volatile struct weir_harness *enter(const struct weir_sandbox_run *run, uint64_t time_ns)
{
	volatile struct weir_harness *harness = weir_object_harness(run->sandbox->object);

	harness->clock_ns = time_ns;
	harness->tick_late_ns = 0;
	harness->frame_bytes = run->wire_bytes;
	harness->ifindex = run->ifindex;
	return harness;
}

static int run_packet(const struct weir_sandbox_run *run, uint32_t times)
{
	return weir_object_evaluate_at(run->sandbox->object, run->hook, run->frame, run->frame_bytes, times);
}

int weir_sandbox_run_evaluate(const struct weir_sandbox_run *run, uint64_t time_ns)
{
	int err = weir_sandbox_set(run->sandbox);

	if (err)
		return err;
	enter(run, time_ns);
	return run_packet(run, 1);
}

int weir_sandbox_run_answer(const struct weir_sandbox_run *run, enum weir_on_block *ret_answer)
{
	volatile struct weir_harness *harness = weir_object_harness(run->sandbox->object);
	int action;

	harness->answer = WEIR_ON_BLOCK_DROP;
	harness->wants_answer = WEIR_WANTS_SUPPOSED_ANSWER;
	action = weir_sandbox_run_evaluate(run, run->now_ns);
	harness->wants_answer = 0;
	*ret_answer = harness->answer;
	return action < 0 ? action : 0;
}

struct passed {
	struct weir_cpu_runs *runs;
	uint64_t packets;
};

static int add_passed(uint32_t key, const void *values, int cpus, void *data)
{
	struct weir_cpu_state *state = (void *)values; /* the scan's own copy */
	struct passed *passed = data;

	weir_runs_add(passed->runs, WEIR_TABLE_TOTALS, key, state, cpus);
	for (int cpu = 0; cpu < cpus; cpu++)
		passed->packets += state[cpu].totals.verdict[WEIR_VERDICT_PASS].packets +
				   state[cpu].out.verdict[WEIR_VERDICT_PASS].packets;
	return 0;
}

int weir_sandbox_run_count(const struct weir_sandbox_run *run, uint64_t most, uint64_t *ret_count)
{
	const int totals_fd = weir_object_map_fd(run->sandbox->object, WEIR_TABLE_TOTALS);
	volatile struct weir_harness *harness = enter(run, run->now_ns);
	struct passed passed = {};
	uint64_t runs = 0;
	int err = weir_sandbox_set(run->sandbox);

	while (err >= 0 && runs < most) {
		const uint32_t times = runs < SINGLE_RUNS ? 1 : RUNS_A_CALL;

		err = run_packet(run, times);
		runs += times;
		if (harness->verdict != WEIR_VERDICT_PASS)
			break;
	}
	if (err >= 0)
		err = weir_runs_take(totals_fd, &passed.runs)
			      ?: weir_percpu_scan(totals_fd, 1, sizeof(struct weir_cpu_state), add_passed, &passed);
	free(passed.runs);
	*ret_count = passed.packets;
	return err;
}

/* Does the packet have another verdict than `verdict` at that time? 1, 0 or -errno. */
static int differs_at(const struct weir_sandbox_run *run, uint64_t time_ns, uint32_t verdict)
{
	int err = weir_sandbox_run_evaluate(run, time_ns);

	return err < 0 ? err : weir_object_harness(run->sandbox->object)->verdict != verdict;
}

int weir_sandbox_run_wait(const struct weir_sandbox_run *run, uint32_t verdict, uint64_t *ret_wait_ns)
{
	uint64_t same_ns = 0, other_ns;
	int differs = differs_at(run, run->now_ns, verdict);

	*ret_wait_ns = 0;
	if (differs)
		return differs < 0 ? differs : 0;
	for (other_ns = FIRST_STEP_NS; other_ns <= LONGEST_WAIT_NS; other_ns *= 2) {
		differs = differs_at(run, run->now_ns + other_ns, verdict);
		if (differs)
			break;
		same_ns = other_ns;
	}
	*ret_wait_ns = WEIR_SANDBOX_RUN_NEVER;
	if (differs <= 0)
		return differs;
	while (other_ns - same_ns > 1) {
		const uint64_t middle_ns = same_ns + (other_ns - same_ns) / 2;

		differs = differs_at(run, run->now_ns + middle_ns, verdict);
		if (differs < 0)
			return differs;
		if (differs)
			other_ns = middle_ns;
		else
			same_ns = middle_ns;
	}
	*ret_wait_ns = other_ns;
	return 0;
}

void weir_sandbox_run_isolate(const struct weir_sandbox_run *run, const struct weir_harness_flow *flows, uint32_t count,
			      uint32_t place)
{
	struct weir_rule *rules = weir_object_generation(run->sandbox->object)->rules;

	for (uint32_t i = 0; i < count; i++)
		rules[flows[i].place % WEIR_RULES_MAX].observes = flows[i].place != place;
}

void weir_sandbox_run_restore(const struct weir_sandbox_run *run, const struct weir_harness_flow *flows, uint32_t count,
			      const uint8_t *observes)
{
	struct weir_rule *rules = weir_object_generation(run->sandbox->object)->rules;

	for (uint32_t i = 0; i < count; i++)
		rules[flows[i].place % WEIR_RULES_MAX].observes = observes[i];
}
