// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules that hosts share: their names in the store, how they are added and removed, and what is published to the
 * program.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "shares/share.h"
#include "store/cluster_events.h"
#include "store/sharing_state.h"
#include "store/shared_flows.h"

/* ---- names ---- */

void weir_sharing_key(const struct weir_cluster_info *cluster, const struct weir_rule_info *rule,
		      char key[WEIR_LEDGER_KEY_CHARS])
{
	snprintf(key, WEIR_LEDGER_KEY_CHARS, "weir:{%s}:%s:%llu%s", cluster->name, rule->name,
		 (unsigned long long)(rule->identity.interval_ns / 1000000),
		 rule->identity.counts_bytes ? "ms-bytes" : "ms");
}

void weir_sharing_process(uint64_t number, char process[WEIR_CLUSTER_NAME_CHARS])
{
	snprintf(process, WEIR_CLUSTER_NAME_CHARS, "%016llx", (unsigned long long)number);
}

int weir_sharing_name_process(char process[WEIR_CLUSTER_NAME_CHARS])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	weir_sharing_process(random, process);
	return 0;
}

/* ---- publishing ---- */

uint64_t weir_sharing_push(struct weir_sharing *sharing, struct shared_rule *rule, uint64_t now_ns)
{
	struct weir_shared_threshold *pushed = &sharing->pushed[rule->slot];

	return weir_share_schedule_push(&pushed->version, pushed->stages, &rule->share, now_ns);
}

static uint32_t trip_us(const struct weir_sharing *sharing)
{
	return sharing->misses_store ? 0 : (uint32_t)((sharing->trip_ns + 999) / 1000);
}

static void report(struct weir_sharing *sharing, const struct shared_rule *rule, uint64_t now_ns)
{
	struct weir_shared_threshold *pushed = &sharing->pushed[rule->slot];

	pushed->wanted = rule->wanted;
	pushed->hosts = (uint32_t)rule->share.hosts;
	pushed->live = sharing->misses_store ? 0 : (uint16_t)weir_membership_live(&sharing->events.membership);
	pushed->silent = sharing->misses_store ? 0 : (uint16_t)weir_membership_silent(&sharing->events.membership);
	pushed->trip_us = trip_us(sharing);
	pushed->reserved = rule->share.silent > 0 ? (uint64_t)rule->share.silent : 0;
	if (rule->share.has_lease) {
		pushed->alone_ns = 0;
	} else if (!pushed->alone_ns) {
		pushed->alone_ns = now_ns;
		if (pushed->leased_ns)
			weir_cluster_events_add(&sharing->events.alone, rule->info.name);
	}
}

void weir_sharing_push_all(struct weir_sharing *sharing, uint64_t now_ns)
{
	for (size_t i = 0; i < sharing->rule_count; i++) {
		struct shared_rule *rule = &sharing->rules[i];
		uint64_t before;

		if (rule->farewells)
			continue;
		weir_share_advance(&rule->share, now_ns);
		before = weir_sharing_push(sharing, rule, now_ns);
		if (before > rule->share.enforced)
			weir_share_was(&rule->share, before, weir_host_now_ns());
		report(sharing, rule, now_ns);
	}
	weir_sharing_flows_push(sharing->flows, sharing->pushed, now_ns);
}

/* ---- adding and removing rules ---- */

struct weir_share_terms weir_sharing_terms(const struct weir_cluster_info *cluster, const struct weir_rule_info *info,
					   int64_t hosts)
{
	/* docs/rules.md: thresholds are at most 10^13 units, so that the product with the largest number of hosts
	 * cannot overflow.
	 */
	uint64_t units = info->threshold_micro / WEIR_MICRO, times = hosts > 1 ? (uint64_t)hosts : 1;

	return (struct weir_share_terms){
		.threshold = info->cluster == WEIR_CLUSTER_AVG_LOCAL ? units * times : units,
		.interval_ns = info->identity.interval_ns,
		.may_fall_back = info->falls_back,
		.is_per_flow = info->identity.key_fields != 0,
		.silent_ns = cluster->silent_ns,
		.stops = cluster->stops,
	};
}

static void begin(struct weir_sharing *sharing, struct shared_rule *rule, uint64_t now_ns)
{
	const struct weir_shared_threshold *pushed = &sharing->pushed[rule->slot];
	const struct weir_share_terms terms = weir_sharing_terms(&sharing->cluster, &rule->info, pushed->hosts);
	struct weir_share_schedule schedule;

	weir_share_schedule_read(pushed->version, pushed->stages, &schedule);
	if (schedule.leased | schedule.ended | schedule.fallen_back)
		weir_share_resume(&rule->share, &terms, &schedule, now_ns);
	else
		weir_share_begin(&rule->share, &terms, now_ns);
	rule->share.hosts = pushed->hosts;
}

static struct shared_rule *find(struct weir_sharing *sharing, const char *key)
{
	for (size_t i = 0; i < sharing->rule_count; i++)
		if (!strcmp(sharing->rules[i].key, key))
			return &sharing->rules[i];
	return NULL;
}

static int take_rule(struct weir_sharing *sharing, const struct weir_instance *instance, uint32_t slot, uint64_t now_ns)
{
	const struct weir_rule_info *info = &instance->rules[slot];
	char key[WEIR_LEDGER_KEY_CHARS];
	struct weir_share_terms terms;
	struct shared_rule *rule;

	weir_sharing_key(&sharing->cluster, info, key);
	rule = find(sharing, key);
	if (rule && !rule->farewells && rule->slot == slot) {
		terms = weir_sharing_terms(&sharing->cluster, info, rule->share.hosts);
		weir_share_change(&rule->share, &terms, now_ns);
	} else if (!rule) {
		rule = weir_array_add((void **)&sharing->rules, sharing->rule_count, sizeof(*rule));
		if (!rule)
			return -ENOMEM;
		sharing->rule_count++;
	}
	if (rule->slot != slot || !rule->key[0] || rule->farewells) {
		if (rule->key[0] && rule->slot != slot)
			weir_sharing_flows_drop(sharing->flows, rule->slot); /* their places belonged to that slot */
		rule->slot = slot;
		rule->info = *info;
		rule->farewells = 0;
		memcpy(rule->key, key, sizeof(rule->key));
		begin(sharing, rule, now_ns);
	}
	rule->info = *info;
	rule->is_kept = true;
	return 0;
}

void weir_sharing_drop_rule(struct weir_sharing *sharing, size_t index)
{
	sharing->rule_count--;
	memmove(&sharing->rules[index], &sharing->rules[index + 1],
		(sharing->rule_count - index) * sizeof(*sharing->rules));
}

void weir_sharing_end_rule(struct weir_sharing *sharing, struct shared_rule *rule)
{
	rule->share.lent = weir_sharing_flows_lent(sharing->flows, rule->slot);
	weir_sharing_flows_drop(sharing->flows, rule->slot);
	rule->farewells = FAREWELLS;
}

int weir_sharing_take_rules(struct weir_sharing *sharing, const struct weir_instance *instance, uint64_t now_ns)
{
	int err = 0;

	for (size_t i = 0; i < sharing->rule_count; i++)
		sharing->rules[i].is_kept = false;
	for (uint32_t i = 0; !err && i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].cluster)
			err = take_rule(sharing, instance, instance->rule_order[i], now_ns);
	for (size_t i = 0; i < sharing->rule_count; i++)
		if (!sharing->rules[i].is_kept && !sharing->rules[i].farewells)
			weir_sharing_end_rule(sharing, &sharing->rules[i]);
	return err;
}

bool weir_sharing_has_shared_rules(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].cluster)
			return true;
	return false;
}

int weir_sharing_map_shares(struct weir_sharing *sharing, const struct weir_instance *instance)
{
	weir_array_unmap(sharing->pushed, sharing->slots, sizeof(*sharing->pushed));
	sharing->slots = instance->info.rule_slots;
	sharing->pushed =
		weir_array_map(instance->map_fd[WEIR_TABLE_SHARES], sharing->slots, sizeof(*sharing->pushed), true);
	if (!sharing->pushed)
		return -errno;
	/* Duplicated, because the instance, and with it its descriptors, may be reopened. */
	weir_closep(&sharing->totals_fd);
	weir_closep(&sharing->rule_counters_fd);
	weir_closep(&sharing->resource_counters_fd);
	sharing->totals_fd = dup(instance->map_fd[WEIR_TABLE_TOTALS]);
	sharing->rule_counters_fd = dup(instance->map_fd[WEIR_TABLE_RULE_COUNTERS]);
	sharing->resource_counters_fd = dup(instance->map_fd[WEIR_TABLE_RESOURCE_COUNTERS]);
	return sharing->totals_fd < 0 || sharing->rule_counters_fd < 0 || sharing->resource_counters_fd < 0 ? -errno
													    : 0;
}
