// SPDX-License-Identifier: GPL-2.0-only
#include "report/stats.h"

#include <string.h>

#include "base/util.h"
#include "state/directions.h"
#include "tables/rule_kind.h"
#include "words/breaker_words.h"
#include "words/connection_words.h"
#include "words/json.h"

/* ---- reading ---- */

static int read_pace(struct weir_stats_view *view, struct weir_diag *diag)
{
	const char *name = view->instance->name;
	int err;

	view->paces = weir_pace_is_attached(name) && !view->instance->is_incompatible[WEIR_TABLE_PACE];
	if (!view->paces)
		return 0;
	err = weir_instance_expect_tables(view->instance, WEIR_TABLE_BIT(WEIR_TABLE_PACE),
					  "the counters of paced packets", diag);
	if (err)
		return err;
	err = weir_pace_read(name, &view->pace);
	view->has_pace = !err;
	if (err) /* perhaps its ifb was removed: no reason to hide the counters */
		weir_diag_warning(diag, NULL, NULL, "reload with 'throttling: police', then with 'throttling: pace'",
				  "cannot read the pacing of instance '%s': %s", name, strerror(-err));
	return 0;
}

int weir_stats_read(const struct weir_instance *instance, struct weir_stats_view *ret_view, struct weir_diag *diag)
{
	_cleanup_(weir_stats_free) struct weir_stats_view view = {.instance = instance};
	int err = weir_counters_read(instance, &view.counters, diag);

	if (!err)
		err = weir_connections_read(instance, &view.connections, diag);
	if (!err)
		err = weir_penalties_read(instance, WEIR_ANY_RULE, 1, &view.penalties, diag);
	if (!err)
		err = weir_breakers_read(instance, &view.breakers, diag);
	if (!err)
		err = read_pace(&view, diag);
	if (err)
		return err;
	*ret_view = view;
	view = (struct weir_stats_view){};
	return 0;
}

void weir_stats_free(struct weir_stats_view *view)
{
	weir_counters_free(&view->counters);
	weir_penalised_flows_free(&view->penalties);
	free(view->connections);
	free(view->breakers);
	*view = (struct weir_stats_view){};
}

/* ---- sums ---- */

uint64_t weir_verdict_sum(const struct weir_totals *totals)
{
	uint64_t sum = 0;

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++)
		sum += totals->verdict[verdict].packets + totals->would_drop[verdict].packets;
	return sum;
}

/* The connections of a resource are those of its first rule that counts them, preferably one that enforces. NULL: no
 * rule does.
 */
static const struct weir_connection_figures *resource_connections(const struct weir_stats_view *view,
								  uint32_t resource_slot)
{
	const struct weir_instance *instance = view->instance;
	const struct weir_rule_info *found = NULL;

	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *rule = &instance->rules[instance->rule_order[i]];

		if (rule->resource_slot == resource_slot && weir_has_connections(rule) &&
		    (!found || (found->observes && !rule->observes)))
			found = rule;
	}
	return found ? &view->connections[found - instance->rules] : NULL;
}

/* ---- the document ---- */

static json_t *describe_totals(const struct weir_totals *totals)
{
	json_t *by_verdict = json_object(), *would_drop = json_object();

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		json_object_set_new(by_verdict, weir_verdict_names[verdict],
				    weir_json_tally(&totals->verdict[verdict]));
		if (weir_verdict_drops(verdict))
			json_object_set_new(would_drop, weir_verdict_names[verdict],
					    weir_json_tally(&totals->would_drop[verdict]));
	}
	return json_pack("{s:o, s:I, s:o, s:o}", "seen", weir_json_tally(&totals->seen), "verdictSum",
			 (json_int_t)weir_verdict_sum(totals), "wouldDrop", would_drop, "verdicts", by_verdict);
}

static json_t *describe_minute(const uint64_t by_second[WEIR_MINUTE])
{
	json_t *seconds = json_array();

	for (int i = 0; i < WEIR_MINUTE; i++)
		weir_json_append(&seconds, json_integer(by_second[i]));
	return seconds;
}

static json_t *describe_resources(const struct weir_stats_view *view)
{
	const struct weir_instance *instance = view->instance;
	json_t *resources = json_array();

	for (uint32_t i = 0; i < instance->resource_count; i++) {
		uint32_t slot = instance->resource_order[i];
		const struct weir_resource_info *resource = &instance->resources[slot];
		const struct weir_resource_sum *sum = &view->counters.resources[slot];
		const struct weir_connection_figures *connections = resource_connections(view, slot);

		weir_json_append(&resources,
				 json_pack("{s:s, s:s, s:o, s:o, s:{s:o, s:o}, s:o*}", "name", resource->name,
					   "direction", weir_direction_name(weir_resource_directions(resource)),
					   "passed", weir_json_tally(&sum->passed), "blocked",
					   weir_json_tally(&sum->blocked), "lastMinute", "passed",
					   describe_minute(sum->passed_by_second), "blocked",
					   describe_minute(sum->blocked_by_second), "connections",
					   connections ? weir_json_connections(connections) : NULL));
	}
	return resources;
}

static json_t *describe_breaker(const struct weir_stats_view *view, uint32_t slot)
{
	const struct weir_rule_info *rule = &view->instance->rules[slot];

	return weir_json_breaker_sum(&view->breakers[slot], rule->breaker.strategy, rule->identity.key_fields);
}

static json_t *describe_rules(const struct weir_stats_view *view)
{
	json_t *rules = json_array();

	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_counters *sum = &view->counters.rules[slot];
		json_t *rule = weir_json_rule(&view->instance->rules[slot]);

		json_object_set_new(rule, "blocked", weir_json_tally(&sum->blocked));
		json_object_set_new(rule, "wouldDrop", weir_json_tally(&sum->would_drop));
		json_object_set_new(rule, "evicted", json_integer(sum->evicted));
		json_object_set_new(rule, "stalled", json_integer(sum->stalled));
		json_object_set_new(rule, "leases", json_integer(sum->leases));
		json_object_set_new(rule, "delayed", json_integer(sum->delayed));
		json_object_set_new(rule, "delayNs", json_integer(sum->delay_ns));
		if (weir_occupies(&view->instance->rules[slot]))
			json_object_set_new(rule, "borrowed", json_integer(sum->delayed));
		if (weir_has_connections(&view->instance->rules[slot]))
			json_object_set_new(rule, "connections", weir_json_connections(&view->connections[slot]));
		if (weir_penalises(&view->instance->rules[slot]))
			json_object_set_new(rule, "penalties",
					    json_pack("{s:I, s:I}", "begun", (json_int_t)sum->changes, "active",
						      (json_int_t)view->penalties.by_rule[slot]));
		if (weir_is_breaker(&view->instance->rules[slot]))
			json_object_set_new(rule, "breaker", describe_breaker(view, slot));
		weir_json_append(&rules, rule);
	}
	return rules;
}

static json_t *describe_pace(const struct weir_stats_view *view)
{
	const struct weir_pace_state *pace = &view->pace;

	if (!view->has_pace)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "held", (json_int_t)pace->held, "notHeld", (json_int_t)pace->not_held,
			 "waiting", (json_int_t)pace->waiting, "dropped", (json_int_t)pace->dropped);
}

json_t *weir_stats_describe(const struct weir_stats_view *view)
{
	const bool limits_out = weir_limits_out(view->instance);

	return json_pack("{s:s, s:I, s:o, s:o*, s:o, s:o, s:o*}", "instance", view->instance->name, "generation",
			 (json_int_t)view->instance->info.generation, "totals", describe_totals(&view->counters.totals),
			 "out", limits_out ? describe_totals(&view->counters.out) : NULL, "resources",
			 describe_resources(view), "rules", describe_rules(view), "pace",
			 view->paces ? describe_pace(view) : NULL);
}
