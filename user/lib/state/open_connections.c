// SPDX-License-Identifier: GPL-2.0-only
#include "state/open_connections.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "control/controller.h"
#include "host/host.h"
#include "instance/instance.h"
#include "program/array.h"
#include "program/sums.h"
#include "tables/rule_kind.h"

struct scan {
	const struct weir_instance *instance;
	struct weir_connection_clock clock;
	struct weir_controller_report controller; /* has the thresholds in force */
	struct weir_connection_use *uses;
	size_t use_count, most;
	uint32_t rule_slot; /* the rule whose flows are wanted, or WEIR_ANY_RULE */
	uint64_t active;
	int overrides_fd;
	/* Rules with a flow key that count at slot i: sharing[i], next_sharing[of that one], and so on until NONE. */
	uint32_t *sharing, *next_sharing;
};
#define NONE UINT32_MAX

static struct weir_connection_clock clock_of(const struct weir_instance *instance)
{
	__u64 step_ns[WEIR_CONNECTION_CLASSES];

	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		step_ns[class] = weir_connection_step_ns(instance->info.connection_timeout_ms[class]);
	return weir_connection_clock(step_ns, weir_host_now_ns());
}

static bool counts_connections(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow && weir_has_connections(rule);
}

/* Where the rule in `slot` counts. The contents of maps are not trusted. */
static uint32_t flows_slot_of(const struct weir_instance *instance, uint32_t slot)
{
	uint32_t flows_slot = weir_connections_slot(&instance->rules[slot], slot);

	return flows_slot < instance->info.rule_slots ? flows_slot : slot;
}

bool weir_connections_are_counted(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (counts_connections(&instance->rules[instance->rule_order[i]]))
			return true;
	return false;
}

/* ---- whole rules ---- */

int weir_connections_read(const struct weir_instance *instance, struct weir_connection_figures **ret_figures,
			  struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_connection_figures *rules =
		calloc(instance->info.rule_slots + 1, sizeof(*rules));
	struct weir_connection_clock clock = clock_of(instance);
	const struct weir_tables tables = weir_instance_tables(instance);
	int err = 0;

	if (weir_connections_are_counted(instance))
		err = weir_instance_expect_tables(instance,
						  WEIR_TABLE_BIT(WEIR_TABLE_CONNECTION_TOTALS) |
							  WEIR_TABLE_BIT(WEIR_TABLE_LONE_CONNECTIONS),
						  "the connections", diag);
	if (err)
		return err;
	err = rules ? 0 : -ENOMEM;
	for (uint32_t slot = 0; !err && slot < instance->info.rule_slots; slot++)
		if (counts_connections(&instance->rules[slot]))
			err = weir_connections_read_rule(&tables, slot, flows_slot_of(instance, slot), &clock,
							 &rules[slot]);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the connections of instance '%s'", instance->name);
	*ret_figures = TAKE_PTR(rules);
	return 0;
}

/* ---- flows ---- */

static double share(const struct weir_connection_use *use)
{
	return use->threshold ? (double)use->figures.now / use->threshold : 0;
}

static int compare_uses(const void *left, const void *right)
{
	const struct weir_connection_use *a = left, *b = right;

	if (share(a) != share(b))
		return share(a) > share(b) ? -1 : 1;
	return a->figures.now > b->figures.now ? -1 : a->figures.now < b->figures.now;
}

static void keep_most(struct scan *scan)
{
	scan->use_count = weir_keep_first(scan->uses, scan->use_count, scan->most, sizeof(*scan->uses), compare_uses);
}

/* Add a flow if it has a connection. */
static void add_use(struct scan *scan, uint32_t slot, const struct weir_flow_key *key,
		    const struct weir_connection_figures *figures)
{
	const struct weir_rule_info *rule = &scan->instance->rules[slot];
	struct weir_connection_use *use = &scan->uses[scan->use_count];

	if (!figures->now || (scan->rule_slot != WEIR_ANY_RULE && scan->rule_slot != slot))
		return;
	*use = (struct weir_connection_use){.rule_slot = slot, .key = *key, .figures = *figures};
	use->has_threshold = true;
	if (rule->override_count)
		use->has_threshold = !weir_overrides_find(scan->overrides_fd, rule, key, &use->threshold);
	else if (rule->place < scan->instance->rule_count)
		use->threshold = scan->controller.thresholds[rule->place];
	scan->active++;
	if (++scan->use_count == 2 * scan->most)
		keep_most(scan);
}

/* A resource without a flow key is a single flow: its figures are the rule's. */
static int add_lone_flows(struct scan *scan)
{
	const struct weir_tables tables = weir_instance_tables(scan->instance);
	int err = 0;

	for (uint32_t slot = 0; !err && slot < scan->instance->info.rule_slots; slot++) {
		const struct weir_rule_info *rule = &scan->instance->rules[slot];
		struct weir_connection_figures figures;

		if (!counts_connections(rule) || rule->identity.key_fields)
			continue;
		err = weir_connections_read_rule(&tables, slot, flows_slot_of(scan->instance, slot), &scan->clock,
						 &figures);
		if (!err)
			add_use(scan, slot, &(struct weir_flow_key){}, &figures);
	}
	return err;
}

/* If a way's owner and tag do not agree, it is just being reused. */
static int add_flow_set(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_connection_flow_set *set = values;
	struct scan *scan = data;

	for (int way = 0; way < WEIR_FLOW_WAYS; way++) {
		const struct weir_connection_flow *flow = &set->flow[way];
		uint32_t slot = WEIR_CONNECTION_OWNER_SLOT(flow->owner), mark = flow->owner >> 32;
		struct weir_connection_figures figures;

		if (!mark || (mark ^ set->flows.tag[way]) & ~WEIR_CONNECTION_CHECK ||
		    slot >= scan->instance->info.rule_slots || scan->sharing[slot] == NONE)
			continue;
		weir_connection_figures(flow, mark, &scan->clock, &figures);
		for (slot = scan->sharing[slot]; slot != NONE; slot = scan->next_sharing[slot])
			add_use(scan, slot, &flow->key, &figures);
	}
	return 0;
}

static int list_sharing(struct scan *scan)
{
	const struct weir_instance *instance = scan->instance;
	const uint32_t slots = instance->info.rule_slots;

	scan->sharing = calloc(slots + 1ul, sizeof(*scan->sharing));
	scan->next_sharing = calloc(slots + 1ul, sizeof(*scan->next_sharing));
	if (!scan->sharing || !scan->next_sharing)
		return -ENOMEM;
	memset(scan->sharing, 0xff, slots * sizeof(*scan->sharing));
	for (uint32_t slot = 0; slot < slots; slot++) {
		uint32_t *sharing;

		if (!counts_connections(&instance->rules[slot]) || !instance->rules[slot].identity.key_fields)
			continue;
		sharing = &scan->sharing[flows_slot_of(instance, slot)];
		scan->next_sharing[slot] = *sharing;
		*sharing = slot;
	}
	return 0;
}

static int scan_flows(struct scan *scan)
{
	int err;

	err = list_sharing(scan);
	if (!err)
		err = add_lone_flows(scan);
	if (!err)
		err = weir_instance_scan(scan->instance, WEIR_TABLE_CONNECTION_FLOWS, add_flow_set, scan);
	return err;
}

static void free_scan(struct scan *scan)
{
	free(scan->controller.thresholds);
	free(scan->uses);
	free(scan->sharing);
	free(scan->next_sharing);
	weir_closep(&scan->overrides_fd);
}

int weir_connections_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
				struct weir_connection_flows *ret_flows, struct weir_diag *diag)
{
	_cleanup_(free_scan) struct scan scan = {
		.instance = instance,
		.clock = clock_of(instance),
		.rule_slot = rule_slot,
		.most = most ? most : 1,
		.overrides_fd = weir_overrides_open(instance),
	};
	int err = 0;

	if (weir_connections_are_counted(instance))
		err = weir_instance_expect_tables(instance,
						  WEIR_TABLE_BIT(WEIR_TABLE_CONNECTION_FLOWS) |
							  WEIR_TABLE_BIT(WEIR_TABLE_LONE_CONNECTIONS) |
							  WEIR_TABLE_BIT(WEIR_TABLE_CONNECTION_TOTALS),
						  "the connections", diag);
	if (!err)
		err = weir_controller_look(instance, &scan.controller, diag);
	if (err)
		return err;
	scan.uses = calloc(2 * scan.most, sizeof(*scan.uses));
	err = scan.uses ? 0 : -ENOMEM;
	if (!err && weir_connections_are_counted(instance))
		err = scan_flows(&scan);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the connections of instance '%s'", instance->name);
	keep_most(&scan);
	*ret_flows = (struct weir_connection_flows){
		.most = TAKE_PTR(scan.uses),
		.count = scan.use_count,
		.active = scan.active,
	};
	return 0;
}

void weir_connection_flows_free(struct weir_connection_flows *flows)
{
	free(flows->most);
	*flows = (struct weir_connection_flows){};
}
