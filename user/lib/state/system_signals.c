// SPDX-License-Identifier: GPL-2.0-only
#include "state/system_signals.h"

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/sums.h"
#include "tables/rule_kind.h"

/* The slot of the hidden rule that tracks all connections; NONE: there is none. */
#define NONE UINT32_MAX

static uint32_t find_tracker(const struct weir_instance *instance)
{
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++) {
		const struct weir_rule_info *rule = &instance->rules[slot];

		if (rule->state == WEIR_SLOT_USED && rule->is_shadow && weir_has_connections(rule))
			return slot;
	}
	return NONE;
}

static void look_at_samples(const struct weir_signals *sampled, uint64_t now_ns, struct weir_host_signals *signals)
{
	const uint64_t sampled_ns = sampled->load1_ns ?: sampled->cpu_ns;

	signals->has_samples = true;
	signals->has_load1 = sampled->load1_ns != 0;
	signals->has_cpu = sampled->cpu_ns != 0;
	signals->load1_micro = sampled->load1_micro;
	signals->cpu_micro = sampled->cpu_micro;
	signals->sample_age_ns = now_ns > sampled_ns ? now_ns - sampled_ns : 0;
}

/* Add them up as in bpf/kinds/handshakes.h. */
static void look_at_handshakes(const struct weir_handshakes *ring, uint64_t now_ns, struct weir_host_signals *signals)
{
	const uint64_t number = now_ns / WEIR_HANDSHAKE_BUCKET_NS;
	uint64_t sum_us = 0, most = 0, shortest_us = UINT32_MAX;

	for (uint64_t age = 0; age < WEIR_HANDSHAKE_BBR_BUCKETS && age <= number; age++) {
		const struct weir_handshake_bucket *at = &ring->bucket[(number - age) % WEIR_HANDSHAKE_BUCKETS];

		if ((at->count ^ WEIR_HANDSHAKE_TAG(number - age)) >> 32 || !(uint32_t)at->count)
			continue;
		if (age < WEIR_HANDSHAKE_MEAN_BUCKETS) {
			signals->handshakes += (uint32_t)at->count;
			sum_us += at->sum_us & WEIR_HANDSHAKE_SUM_MASK;
		}
		if ((uint32_t)at->count > most)
			most = (uint32_t)at->count;
		if ((uint32_t)at->shortest < shortest_us)
			shortest_us = (uint32_t)at->shortest;
	}
	signals->mean_us = signals->handshakes ? sum_us / signals->handshakes : 0;
	signals->complete_max = most * (WEIR_NSEC_PER_SEC / WEIR_HANDSHAKE_BUCKET_NS);
	signals->shortest_us = most ? shortest_us : 0;
}

static int look_at_connections(const struct weir_instance *instance, uint32_t tracker, uint64_t now_ns,
			       struct weir_host_signals *signals)
{
	const struct weir_tables tables = weir_instance_tables(instance);
	struct weir_connection_figures figures;
	struct weir_connection_clock clock;
	__u64 step_ns[WEIR_CONNECTION_CLASSES];
	int err;

	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		step_ns[class] = weir_connection_step_ns(instance->info.connection_timeout_ms[class]);
	clock = weir_connection_clock(step_ns, now_ns);
	err = weir_connections_read_rule(&tables, tracker, tracker, &clock, &figures);
	if (err)
		return err;
	signals->has_connections = true;
	signals->open = figures.now;
	return 0;
}

int weir_signals_look(const struct weir_instance *instance, struct weir_host_signals *ret_signals,
		      struct weir_diag *diag)
{
	const uint64_t tables = WEIR_TABLE_BIT(WEIR_TABLE_SIGNALS) | WEIR_TABLE_BIT(WEIR_TABLE_HANDSHAKES) |
				WEIR_TABLE_BIT(WEIR_TABLE_CONNECTION_TOTALS) |
				WEIR_TABLE_BIT(WEIR_TABLE_LONE_CONNECTIONS);
	const uint32_t tracker = find_tracker(instance);
	struct weir_host_signals signals = {};
	struct weir_handshakes handshakes;
	struct weir_signals sampled;
	bool needs_samples = false;
	uint64_t now_ns;
	int err;

	*ret_signals = signals;
	for (uint32_t i = 0; i < instance->rule_count; i++)
		needs_samples |= weir_needs_samples(&instance->rules[instance->rule_order[i]]);
	if (!needs_samples && tracker == NONE)
		return 0;
	err = weir_instance_expect_tables(instance, tables, "the signals of system rules", diag);
	if (err)
		return err;
	err = weir_array_read(instance->map_fd[WEIR_TABLE_SIGNALS], &sampled, 1, sizeof(sampled));
	if (!err)
		err = weir_array_read(instance->map_fd[WEIR_TABLE_HANDSHAKES], &handshakes, 1, sizeof(handshakes));
	now_ns = weir_host_now_ns();
	if (!err && needs_samples)
		look_at_samples(&sampled, now_ns, &signals);
	if (!err && tracker != NONE) {
		look_at_handshakes(&handshakes, now_ns, &signals);
		err = look_at_connections(instance, tracker, now_ns, &signals);
	}
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the signals of instance '%s'", instance->name);
	*ret_signals = signals;
	return 0;
}
