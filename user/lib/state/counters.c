// SPDX-License-Identifier: GPL-2.0-only
#include "state/counters.h"

#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"

static void add_tally(struct weir_tally *sum, const struct weir_tally *tally)
{
	sum->packets += tally->packets;
	sum->bytes += tally->bytes;
}

static void add_verdicts(struct weir_totals *sum, const struct weir_totals *totals)
{
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		add_tally(&sum->verdict[verdict], &totals->verdict[verdict]);
		add_tally(&sum->would_drop[verdict], &totals->would_drop[verdict]);
	}
}

static int add_totals(uint32_t key, const void *values, int cpus, void *data)
{
	struct weir_cpu_state *state = (void *)values; /* the scan's own copy; so below */
	struct weir_counters *counters = data;

	weir_runs_add(counters->runs, WEIR_TABLE_TOTALS, key, state, cpus);
	for (int cpu = 0; cpu < cpus; cpu++) {
		add_verdicts(&counters->totals, &state[cpu].totals);
		add_verdicts(&counters->out, &state[cpu].out);
	}
	weir_sum_totals(&counters->totals);
	weir_sum_totals(&counters->out);
	return 0;
}

static int add_rule(uint32_t slot, const void *values, int cpus, void *data)
{
	struct weir_rule_counters *of_cpu = (void *)values;
	struct weir_counters *counters = data;

	weir_runs_add(counters->runs, WEIR_TABLE_RULE_COUNTERS, slot, of_cpu, cpus);
	for (int cpu = 0; cpu < cpus; cpu++)
		weir_add_rule_counters(&counters->rules[slot], &of_cpu[cpu]);
	return 0;
}

static int add_answers(uint32_t slot, const void *values, int cpus, void *data)
{
	const struct weir_rule_answers *of_cpu = values;
	struct weir_rule_answers *sum = &((struct weir_counters *)data)->answers[slot];

	for (int cpu = 0; cpu < cpus; cpu++) {
		for (int kind = 0; kind < WEIR_ON_BLOCK_COUNT; kind++)
			sum->sent[kind] += of_cpu[cpu].sent[kind];
		sum->beyond_rate += of_cpu[cpu].beyond_rate;
		sum->impossible += of_cpu[cpu].impossible;
	}
	return 0;
}

/* A CPU's entry for a second is kept until that CPU sees a packet 64 seconds later, so many entries are old. */
static void add_seconds(struct weir_resource_sum *sum, const struct weir_second *seconds, uint32_t now_s)
{
	for (int i = 0; i < WEIR_SECONDS; i++) {
		uint32_t age_s = now_s - seconds[i].second;

		if (age_s >= WEIR_MINUTE)
			continue;
		sum->passed_by_second[WEIR_MINUTE - 1 - age_s] += seconds[i].passed;
		sum->blocked_by_second[WEIR_MINUTE - 1 - age_s] += seconds[i].blocked;
	}
}

static int add_resource(uint32_t slot, const void *values, int cpus, void *data)
{
	struct weir_resource_counters *of_cpu = (void *)values;
	struct weir_counters *counters = data;
	struct weir_resource_sum *sum = &counters->resources[slot];

	weir_runs_add(counters->runs, WEIR_TABLE_RESOURCE_COUNTERS, slot, of_cpu, cpus);
	for (int cpu = 0; cpu < cpus; cpu++) {
		add_tally(&sum->passed, &of_cpu[cpu].passed);
		add_tally(&sum->blocked, &of_cpu[cpu].blocked);
		add_seconds(sum, of_cpu[cpu].second, counters->now_ns / WEIR_NSEC_PER_SEC);
	}
	return 0;
}

#define COUNTER_TABLES                                                                                                 \
	(WEIR_TABLE_BIT(WEIR_TABLE_TOTALS) | WEIR_TABLE_BIT(WEIR_TABLE_RULE_COUNTERS) |                                \
	 WEIR_TABLE_BIT(WEIR_TABLE_RESOURCE_COUNTERS))

int weir_counters_read(const struct weir_instance *instance, struct weir_counters *ret_counters, struct weir_diag *diag)
{
	_cleanup_(weir_counters_free) struct weir_counters counters = {.now_ns = weir_host_now_ns()};
	const struct weir_instance_info *info = &instance->info;
	int err = weir_instance_expect_tables(instance, COUNTER_TABLES, "the counters", diag);

	if (err)
		return err;
	counters.rules = calloc(info->rule_slots + 1, sizeof(*counters.rules));
	counters.answers = calloc(info->rule_slots + 1, sizeof(*counters.answers));
	counters.resources = calloc(info->resource_slots + 1, sizeof(*counters.resources));
	if (!counters.rules || !counters.answers || !counters.resources)
		err = -ENOMEM;
	if (!err)
		err = weir_runs_take(instance->map_fd[WEIR_TABLE_TOTALS], &counters.runs);
	if (!err)
		err = weir_instance_scan(instance, WEIR_TABLE_TOTALS, add_totals, &counters);
	if (!err)
		err = weir_instance_scan(instance, WEIR_TABLE_RULE_COUNTERS, add_rule, &counters);
	if (!err && info->tables[WEIR_TABLE_RULE_ANSWERS].size && !instance->is_incompatible[WEIR_TABLE_RULE_ANSWERS])
		err = weir_instance_scan(instance, WEIR_TABLE_RULE_ANSWERS, add_answers, &counters);
	if (!err)
		err = weir_instance_scan(instance, WEIR_TABLE_RESOURCE_COUNTERS, add_resource, &counters);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the counters of instance '%s'", instance->name);
	*ret_counters = counters;
	counters = (struct weir_counters){};
	return 0;
}

int weir_totals_read(const struct weir_instance *instance, struct weir_counters *ret_counters)
{
	struct weir_counters counters = {.now_ns = weir_host_now_ns()};
	int err = 0;

	if (!instance->is_incompatible[WEIR_TABLE_TOTALS])
		err = weir_runs_take(instance->map_fd[WEIR_TABLE_TOTALS], &counters.runs)
			      ?: weir_instance_scan(instance, WEIR_TABLE_TOTALS, add_totals, &counters);
	free(TAKE_PTR(counters.runs));
	if (!err)
		*ret_counters = counters;
	return err;
}

bool weir_limits_out(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->resource_count; i++)
		if (weir_resource_directions(&instance->resources[instance->resource_order[i]]) & WEIR_MATCHES_OUT)
			return true;
	return false;
}

uint32_t weir_rule_directions(const struct weir_instance *instance, const struct weir_rule_info *rule)
{
	if (rule->resource_slot >= instance->info.resource_slots)
		return WEIR_MATCHES_IN;
	return weir_resource_directions(&instance->resources[rule->resource_slot]);
}

uint64_t weir_answers_sent(const struct weir_rule_answers *answers)
{
	uint64_t sent = 0;

	for (size_t i = 0; i < ARRAY_SIZE(answers->sent); i++)
		sent += answers->sent[i];
	return sent;
}

void weir_counters_free(struct weir_counters *counters)
{
	free(counters->rules);
	free(counters->answers);
	free(counters->resources);
	free(counters->runs);
	*counters = (struct weir_counters){};
}
