// SPDX-License-Identifier: GPL-2.0-only
#include "report/stats.h"

#include <string.h>

#include "base/util.h"
#include "tables/rule_kind.h"
#include "words/json.h"
#include "words/state_words.h"

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
		err = weir_fair_read(instance, &view.fair, diag);
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
	weir_fair_uses_free(&view->fair);
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

/* ---- totals and resources ---- */

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

static unsigned long long minute_sum(const uint64_t by_second[WEIR_MINUTE])
{
	unsigned long long sum = 0;

	for (int i = 0; i < WEIR_MINUTE; i++)
		sum += by_second[i];
	return sum;
}

void weir_describe_resource(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_stats_view *view = context;
	const uint32_t slot = *(const uint32_t *)record;
	const struct weir_resource_sum *sum = &view->counters.resources[slot];

	WEIR_TEXT(line, "name", "resource", view->instance->resources[slot].name);
	WEIR_TALLY(line, "passed", ">passed", ">bytes", &sum->passed);
	WEIR_TALLY(line, "blocked", ">blocked", ">bytes", &sum->blocked);
	WEIR_FIGURE(line, "lastMinute.passed", ">passed/60 s", describe_minute(sum->passed_by_second), "%llu",
		    minute_sum(sum->passed_by_second));
	WEIR_FIGURE(line, "lastMinute.blocked", ">blocked/60 s", describe_minute(sum->blocked_by_second), "%llu",
		    minute_sum(sum->blocked_by_second));
	WEIR_TEXT(line, "direction", "direction",
		  weir_direction_name(weir_resource_directions(&view->instance->resources[slot])));
	if (!line->put && resource_connections(view, slot))
		WEIR_FIELD(line, "connections", weir_json_connections(resource_connections(view, slot)));
}

/* ---- rules ---- */

#define COUNTER(member) offsetof(struct weir_rule_counters, member)

const struct weir_column weir_rule_counters[] = {
	{"blocked.packets",
	 ">blocked",
	 COUNTER(blocked.packets),
	 {"weir_rule_dropped_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets that the rule dropped, as the first rule to block them."},
	 NULL,
	 false},
	{"blocked.bytes",
	 NULL,
	 COUNTER(blocked.bytes),
	 {"weir_rule_dropped_bytes", WEIR_METRIC_COUNTER, "bytes", "Bytes of packets that the rule dropped."},
	 NULL,
	 false},
	{"wouldDrop.packets",
	 "?>would drop",
	 COUNTER(would_drop.packets),
	 {"weir_rule_would_drop_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets that the rule would have dropped if it did not observe."},
	 NULL,
	 false},
	{"wouldDrop.bytes",
	 NULL,
	 COUNTER(would_drop.bytes),
	 {"weir_rule_would_drop_bytes", WEIR_METRIC_COUNTER, "bytes", "Bytes of such packets."},
	 NULL,
	 false},
	{"evicted",
	 "?>evicted",
	 COUNTER(evicted),
	 {"weir_rule_evicted_flows", WEIR_METRIC_COUNTER, NULL,
	  "Flows evicted from a full table while they still counted."},
	 weir_has_interval,
	 false},
	{"stalled",
	 "?>stalled",
	 COUNTER(stalled),
	 {"weir_rule_stalled_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets dropped because a CPU stalled while it evaluated them."},
	 weir_has_interval,
	 false},
	{"leases",
	 NULL,
	 COUNTER(leases),
	 {"weir_rule_leases", WEIR_METRIC_COUNTER, NULL, "Times that a CPU summed what the other CPUs had admitted."},
	 weir_has_interval,
	 false},
	{"delayed",
	 "?>delayed",
	 COUNTER(delayed),
	 {"weir_rule_delayed_packets", WEIR_METRIC_COUNTER, NULL, "Packets that a Throttling rule delayed."},
	 weir_throttles,
	 false},
	{"occupied",
	 NULL,
	 COUNTER(delayed),
	 {"weir_rule_occupied_packets", WEIR_METRIC_COUNTER, NULL, "Packets that passed by occupying a later bucket."},
	 weir_occupies,
	 true},
	{"penalties.begun",
	 NULL,
	 COUNTER(changes),
	 {"weir_rule_penalties", WEIR_METRIC_COUNTER, NULL, "Penalties that began."},
	 weir_penalises,
	 true},
	{"delayNs",
	 NULL,
	 COUNTER(delay_ns),
	 {"weir_rule_delay_seconds", WEIR_METRIC_COUNTER, "seconds", "Sum of the delays that the rule caused."},
	 weir_throttles,
	 false},
	{},
};

#define ANSWERS(member) offsetof(struct weir_rule_answers, member)
#define SENT(what, constant, words)                                                                                    \
	{                                                                                                              \
		"answers." what, "?>" what, ANSWERS(sent[WEIR_ON_BLOCK_##constant]),                                   \
			{"weir_rule_answers_" what, WEIR_METRIC_COUNTER, NULL,                                         \
			 "Blocked packets that were answered by " words "."},                                          \
			weir_answers, true                                                                             \
	}

const struct weir_column weir_rule_answers[] = {
	SENT("reset", RESET, "a TCP RST"),
	SENT("unreachable", UNREACHABLE, "an ICMP error"),
	SENT("truncate", TRUNCATE, "a truncated DNS answer"),
	SENT("cookie", COOKIE, "a SYN,ACK with a cookie"),
	{"answers.beyondRate",
	 "?>unanswered",
	 ANSWERS(beyond_rate),
	 {"weir_rule_answers_beyond_rate", WEIR_METRIC_COUNTER, NULL,
	  "Blocked packets that were not answered because of settings.answers."},
	 weir_answers,
	 true},
	{"answers.impossible",
	 NULL,
	 ANSWERS(impossible),
	 {"weir_rule_answers_impossible", WEIR_METRIC_COUNTER, NULL,
	  "Blocked packets for which no answer could be made: no query, no listening socket, no cookie."},
	 weir_answers,
	 true},
	{},
};

void weir_describe_rule_counters(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_stats_view *view = context;
	const uint32_t slot = *(const uint32_t *)record;
	const struct weir_rule_counters *sum = &view->counters.rules[slot];

	weir_line_counters(line, weir_rule_counters, &view->instance->rules[slot], sum);
	weir_line_counters(line, weir_rule_answers, &view->instance->rules[slot], &view->counters.answers[slot]);
	WEIR_CELL(line, "?>mean delay ms", "%.3f", sum->delayed ? sum->delay_ns / 1e6 / sum->delayed : 0.0);
}

void weir_describe_rule_penalties(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_stats_view *view = context;

	WEIR_CELL(line, ">penalties begun", "%llu",
		  (unsigned long long)view->counters.rules[*(const uint32_t *)record].changes);
	WEIR_COUNT(line, "penalties.active", ">penalised now", view->penalties.by_rule[*(const uint32_t *)record]);
}

void weir_describe_rule_shares(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_stats_view *view = context;
	const struct weir_fair_sum sum =
		line->is_heading ? (struct weir_fair_sum){} : weir_fair_sum_of(&view->fair, *(const uint32_t *)record);

	WEIR_COUNT(line, "fairShares.contended", ">contended", sum.contended);
	WEIR_FIGURE(line, "fairShares.level", ">lowest level", sum.level ? json_real(sum.level) : json_null(), "%s%.4g",
		    sum.level ? "" : "-", sum.level);
	WEIR_COUNT(line, "fairShares.children", ">children", sum.children);
	WEIR_COUNT(line, "fairShares.newChildren", ">new", sum.newcomers);
	WEIR_COUNT(line, "fairShares.aboveLevel", ">above", sum.above);
}

static json_t *describe_rules(const struct weir_stats_view *view)
{
	json_t *rules = json_array();

	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		const uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_info *info = &view->instance->rules[slot];
		json_t *rule = weir_json_rule(info, view->instance->labels);

		weir_figures_add(weir_describe_rule_counters, view, &slot, &rule);
		if (weir_has_connections(info))
			json_object_set_new(rule, "connections", weir_json_connections(&view->connections[slot]));
		if (weir_penalises(info))
			weir_figures_add(weir_describe_rule_penalties, view, &slot, &rule);
		if (weir_children_of(view->instance, info))
			weir_figures_add(weir_describe_rule_shares, view, &slot, &rule);
		if (weir_is_breaker(info))
			json_object_set_new(rule, "breaker",
					    weir_figures_describe(weir_describe_breaker_sum, NULL,
								  &view->breakers[slot]));
		weir_json_append(&rules, rule);
	}
	return rules;
}

/* ---- the document ---- */

json_t *weir_stats_describe(const struct weir_stats_view *view)
{
	const bool limits_out = weir_limits_out(view->instance);
	const struct weir_pace_state *pace = &view->pace;
	json_t *paced = view->paces ? json_null() : NULL; /* null: it could not be read */

	if (view->paces && view->has_pace)
		paced = json_pack("{s:I, s:I, s:I, s:I}", "held", (json_int_t)pace->held, "notHeld",
				  (json_int_t)pace->not_held, "waiting", (json_int_t)pace->waiting, "dropped",
				  (json_int_t)pace->dropped);
	return json_pack("{s:s, s:I, s:o, s:o*, s:o, s:o, s:o*}", "instance", view->instance->name, "generation",
			 (json_int_t)view->instance->info.generation, "totals", describe_totals(&view->counters.totals),
			 "out", limits_out ? describe_totals(&view->counters.out) : NULL, "resources",
			 weir_figures_list(weir_describe_resource, view, view->instance->resource_order,
					   view->instance->resource_count, sizeof(*view->instance->resource_order)),
			 "rules", describe_rules(view), "pace", paced);
}
