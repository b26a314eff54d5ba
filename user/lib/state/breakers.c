// SPDX-License-Identifier: GPL-2.0-only
#include "state/breakers.h"

#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "program/sums.h"
#include "tables/rule_kind.h"

#define TABLES                                                                                                         \
	(WEIR_TABLE_BIT(WEIR_TABLE_BREAKERS) | WEIR_TABLE_BIT(WEIR_TABLE_LONE_BREAKERS) |                              \
	 WEIR_TABLE_BIT(WEIR_TABLE_REQUESTS))

bool weir_has_breaker_rules(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (weir_is_breaker(&instance->rules[instance->rule_order[i]]))
			return true;
	return false;
}

static int visit(const struct weir_instance *instance, weir_breaker_visitor visitor, void *data, struct weir_diag *diag)
{
	const struct weir_tables tables = weir_instance_tables(instance);
	int err;

	if (!weir_has_breaker_rules(instance))
		return 0;
	err = weir_instance_expect_tables(instance, TABLES, "the circuit breakers", diag);
	if (err)
		return err;
	err = weir_breakers_visit(&tables, weir_host_now_ns(), visitor, data);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the circuit breakers of instance '%s'",
				      instance->name);
	return 0;
}

/* ---- whole rules ---- */

static void add_to_sum(void *data, uint32_t slot, const struct weir_flow_key *key, const struct weir_breaker_view *view)
{
	struct weir_breaker_sum *sums = data;

	weir_breaker_add(view, &sums[slot]);
	sums[slot].lone = *view;
}

int weir_breakers_read(const struct weir_instance *instance, struct weir_breaker_sum **ret_sums, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_breaker_sum *sums = calloc(instance->info.rule_slots + 1, sizeof(*sums));
	int err;

	if (!sums)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the circuit breakers of instance '%s'",
				      instance->name);
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++)
		sums[slot].has_flows = instance->rules[slot].identity.key_fields != 0;
	err = visit(instance, add_to_sum, sums, diag);
	if (!err)
		*ret_sums = TAKE_PTR(sums);
	return err;
}

/* ---- flows ---- */

struct scan {
	const struct weir_instance *instance;
	struct weir_breaker_flows flows;
	uint32_t rule_slot; /* whose flows are wanted, or WEIR_ANY_RULE */
	size_t most;	    /* there is room for twice as many: weir_keep_first() */
};

static double share_of(const struct weir_rule_info *rule, const struct weir_breaker_view *view)
{
	const double value = weir_breaker_value_micro(view);

	return rule->threshold_micro ? value / rule->threshold_micro : value;
}

static int rank(const struct weir_breaker_view *view)
{
	return view->kind == WEIR_BREAKER_OPEN ? 2 : view->kind == WEIR_BREAKER_HALF_OPEN;
}

static int compare_uses(const void *left, const void *right)
{
	const struct weir_breaker_use *a = left, *b = right;

	if (rank(&a->view) != rank(&b->view))
		return rank(&b->view) - rank(&a->view);
	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return (b->view.bad > a->view.bad) - (b->view.bad < a->view.bad);
}

static void keep_most(struct scan *scan)
{
	scan->flows.count = weir_keep_first(scan->flows.most, scan->flows.count, scan->most, sizeof(*scan->flows.most),
					    compare_uses);
}

static void add_use(void *data, uint32_t slot, const struct weir_flow_key *key, const struct weir_breaker_view *view)
{
	struct scan *scan = data;

	if (scan->rule_slot != WEIR_ANY_RULE && scan->rule_slot != slot)
		return;
	scan->flows.open += view->kind == WEIR_BREAKER_OPEN;
	scan->flows.half_open += view->kind == WEIR_BREAKER_HALF_OPEN;
	scan->flows.most[scan->flows.count] = (struct weir_breaker_use){
		.rule_slot = slot, .key = *key, .view = *view, .share = share_of(&scan->instance->rules[slot], view)};
	if (++scan->flows.count == 2 * scan->most)
		keep_most(scan);
}

int weir_breakers_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			     struct weir_breaker_flows *ret_flows, struct weir_diag *diag)
{
	struct scan scan = {.instance = instance, .rule_slot = rule_slot, .most = most ? most : 1};
	int err;

	scan.flows.most = calloc(2 * scan.most, sizeof(*scan.flows.most));
	if (!scan.flows.most)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the circuit breakers of instance '%s'",
				      instance->name);
	err = visit(instance, add_use, &scan, diag);
	if (err) {
		weir_breaker_flows_free(&scan.flows);
		return err;
	}
	keep_most(&scan);
	*ret_flows = scan.flows;
	return 0;
}

void weir_breaker_flows_free(struct weir_breaker_flows *flows)
{
	free(flows->most);
	*flows = (struct weir_breaker_flows){};
}
