// SPDX-License-Identifier: GPL-2.0-only
#include "program/runs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"

/* Do all words have the number of the first? Else a run began while they were copied: then it had no packets, and the
 * run before it was settled.
 */
static bool is_whole(const void *words, size_t bytes)
{
	const uint64_t *word = words;

	for (size_t i = 1; i < bytes / sizeof(*word); i++)
		if ((word[i] ^ word[0]) >> WEIR_DROP_RUN_SHIFT)
			return false;
	return true;
}

static int take(uint32_t key, const void *values, int cpus, void *data)
{
	const struct weir_cpu_state *state = values;
	struct weir_cpu_runs *runs = data;

	for (int cpu = 0; cpu < cpus; cpu++) {
		if (is_whole(&state[cpu].count_run, sizeof(state[cpu].count_run)))
			runs[cpu].count = state[cpu].count_run;
		if (is_whole(&state[cpu].drop_run, sizeof(state[cpu].drop_run)))
			runs[cpu].drops = state[cpu].drop_run;
	}
	return 0;
}

int weir_runs_take(int totals_fd, struct weir_cpu_runs **ret_runs)
{
	const int cpus = weir_host_cpus();
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = calloc(cpus > 0 ? cpus : 1, sizeof(*runs));
	int err = runs ? 0 : -ENOMEM;

	if (!err && totals_fd >= 0)
		err = weir_percpu_scan(totals_fd, 1, sizeof(struct weir_cpu_state), take, runs);
	if (err)
		return err;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*ret_runs = TAKE_PTR(runs);
	return 0;
}

static void add(struct weir_tally *tally, const struct weir_count_run *run, int nth)
{
	tally->packets += weir_run_ahead(tally->packets, run->base[nth].packets, run->counted.packets);
	tally->bytes += weir_run_ahead(tally->bytes, run->base[nth].bytes, run->counted.bytes);
}

static void add_to_resource(struct weir_resource_counters *counters, const struct weir_count_run *run)
{
	const bool passes = WEIR_RUN_VERDICT(run->what) == WEIR_VERDICT_PASS;
	const uint32_t now_s = run->second >> 32;
	struct weir_second *second = &counters->second[now_s % WEIR_SECONDS];
	__u32 *count = passes ? &second->passed : &second->blocked;

	add(passes ? &counters->passed : &counters->blocked, run, WEIR_RUN_OF_RESOURCE);
	if (!((second->second ^ now_s) & 0xffff))
		*count += weir_run_ahead(*count, (__u32)run->second, run->counted.packets);
}

void weir_runs_add(const struct weir_cpu_runs *runs, enum weir_table_id table, uint32_t slot, void *values, int cpus)
{
	for (int cpu = 0; cpu < cpus; cpu++) {
		const struct weir_count_run *run = &runs[cpu].count;
		const uint32_t verdict = WEIR_RUN_VERDICT(run->what);

		if (!(run->what & (WEIR_RUN_PENDING | WEIR_RUN_SETTLING)) || verdict >= WEIR_VERDICT_COUNT)
			continue;
		if (table == WEIR_TABLE_TOTALS) {
			struct weir_cpu_state *state = &((struct weir_cpu_state *)values)[cpu];

			add(&(run->what & WEIR_RUN_OUT ? &state->out : &state->totals)->verdict[verdict], run,
			    WEIR_RUN_OF_VERDICT);
		} else if (table == WEIR_TABLE_RULE_COUNTERS) {
			if (verdict == WEIR_VERDICT_BLOCK && WEIR_RUN_RULE(run->what) == slot)
				add(&((struct weir_rule_counters *)values)[cpu].blocked, run, WEIR_RUN_OF_RULE);
		} else if (table == WEIR_TABLE_RESOURCE_COUNTERS && WEIR_RUN_RESOURCE(run->what) == slot) {
			add_to_resource(&((struct weir_resource_counters *)values)[cpu], run);
		}
	}
}
