// SPDX-License-Identifier: GPL-2.0-only
#include "top/top_figures.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "report/drops.h"
#include "report/keys.h"
#include "report/status.h"
#include "state/counters.h"
#include "tables/rule_kind.h"
#include "words/json.h"

#define NSEC_PER_SEC 1e9

/* Reading all flows of a full table takes a while, so it is done rarely enough to take at most a 40th of a CPU. It is
 * done at most with every reading of the counters: the limit is half their period, since readings come a little early
 * or late.
 */
#define FLOWS_COST_PART 40
#define FLOWS_PERIOD_NS 500000000ull

/* ---- reading ---- */

static int open_instance(struct weir_top *top, const char *name, struct weir_diag *diag)
{
	struct weir_instance *instance = NULL;
	int err = weir_instance_open(name, &instance, diag);

	if (err)
		return err;
	weir_flows_view_free(&top->flows);
	weir_drops_free(&top->drops);
	weir_counters_free(&top->before);
	weir_counters_free(&top->counters);
	weir_instance_free(top->instance);
	top->instance = instance;
	top->has_before = false;
	top->flows_ns = 0;
	return 0;
}

static void look_for_losses(struct weir_top *top)
{
	_cleanup_(weir_freep) struct weir_loss *losses = NULL;

	const char *gone = weir_instance_gone_interface(top->instance);

	snprintf(top->lost, sizeof(top->lost), "%s", gone ?: "");
	if (!gone && weir_instance_find_losses(top->instance, &losses))
		memcpy(top->lost, losses[0].interface, sizeof(top->lost));
}

static int read_drops(struct weir_top *top, uint64_t now_ns, struct weir_diag *diag)
{
	const uint64_t span_ns = WEIR_TOP_DROPS_SECONDS * WEIR_NSEC_PER_SEC;
	const struct weir_drops_wanted wanted = {
		.since_ns = now_ns > span_ns ? now_ns - span_ns : 1,
		.most = WEIR_TOP_FLOWS_MAX,
	};

	weir_drops_free(&top->drops);
	return weir_drops_read(top->instance, &wanted, &top->drops, diag);
}

static int read_flows(struct weir_top *top, struct weir_diag *diag)
{
	const uint64_t now_ns = weir_host_now_ns(), cpu_ns = weir_host_cpu_ns();
	const uint64_t pause_ns = top->flows_cost_ns * FLOWS_COST_PART;
	int err;

	if (top->flows_ns && now_ns - top->flows_ns < (pause_ns > FLOWS_PERIOD_NS ? pause_ns : FLOWS_PERIOD_NS))
		return 0;
	weir_flows_view_free(&top->flows);
	err = weir_flows_view_read(top->instance, WEIR_ANY_RULE, WEIR_TOP_FLOWS_MAX, &top->flows, diag);
	if (!err)
		err = read_drops(top, now_ns, diag);
	top->flows_ns = now_ns;
	top->flows_cost_ns = weir_host_cpu_ns() - cpu_ns;
	return err;
}

/* ---- figures ---- */

/* The counters of a slot start over when another rule gets the slot. */
static double rate(uint64_t now, uint64_t before, double seconds)
{
	return seconds > 0 && now >= before ? (now - before) / seconds : 0;
}

static double seconds_between(const struct weir_top *top)
{
	return top->has_before ? (top->counters.now_ns - top->before.now_ns) / NSEC_PER_SEC : 0;
}

static uint64_t dropped_of(const struct weir_totals *totals)
{
	uint64_t dropped = 0;

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++)
		if (weir_verdict_drops(verdict))
			dropped += totals->verdict[verdict].packets;
	return dropped;
}

static uint64_t would_drop_of(const struct weir_totals *totals)
{
	uint64_t would_drop = 0;

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++)
		would_drop += totals->would_drop[verdict].packets;
	return would_drop;
}

static struct weir_top_rates rates_of(const struct weir_totals *now, const struct weir_totals *before, double seconds)
{
	struct weir_top_rates rates = {
		.offered = rate(now->seen.packets, before->seen.packets, seconds),
		.dropped = rate(dropped_of(now), dropped_of(before), seconds),
		.would_drop = rate(would_drop_of(now), would_drop_of(before), seconds),
	};

	rates.admitted = rates.offered > rates.dropped ? rates.offered - rates.dropped : 0;
	return rates;
}

/* Called after the rules: an instance that enforces counts would-be drops only by rule. Rules for both directions do
 * not know the direction, so their would-be drops count as incoming.
 */
static void set_totals(struct weir_top *top)
{
	const double seconds = seconds_between(top);

	top->limits_out = weir_limits_out(top->instance);
	top->total = top->out = (struct weir_top_rates){};
	top->answers = weir_instance_answers(top->instance);
	if (!top->has_before)
		return;
	top->total = rates_of(&top->counters.totals, &top->before.totals, seconds);
	top->out = rates_of(&top->counters.out, &top->before.out, seconds);
	for (size_t i = 0; i < top->rule_count && !top->instance->info.observes; i++) {
		const struct weir_top_rule *rule = &top->rules[i];

		top->total.answered += rule->rates.answered;
		(rule->directions & WEIR_MATCHES_IN ? &top->total : &top->out)->would_drop += rule->rates.would_drop;
	}
}

static double share_of_busiest(const struct weir_top *top, uint32_t slot)
{
	double most = -1;

	for (size_t i = 0; i < top->flows.flows.count; i++) {
		const struct weir_flow_use *use = &top->flows.flows.busiest[i];

		if (use->rule_slot == slot && use->has_threshold && weir_flow_share(use) > most)
			most = weir_flow_share(use);
	}
	for (size_t i = 0; i < top->flows.connections.count; i++) {
		const struct weir_connection_use *use = &top->flows.connections.most[i];

		if (use->rule_slot == slot && use->has_threshold && weir_connection_share(use) > most)
			most = weir_connection_share(use);
	}
	return most;
}

/* For rules that count nothing, or that have a threshold per flow, show what the user wrote. */
static void set_limit(const struct weir_top *top, uint32_t place, struct weir_top_rule *line)
{
	const struct weir_rule_info *rule = &top->instance->rules[line->slot];
	char words[WEIR_WORDS_BYTES], rate[WEIR_WORDS_BYTES];

	if (weir_has_signal(rule) || weir_is_breaker(rule) || weir_warms_flows(rule) || weir_has_connections(rule)) {
		snprintf(line->limit, sizeof(line->limit), "%s", weir_format_limit(rule, top->instance->labels, words));
		return;
	}
	weir_format_rate(top->controller.thresholds[place] * WEIR_MICRO, rule->identity.interval_ns,
			 rule->identity.counts_bytes, rate);
	snprintf(line->limit, sizeof(line->limit), "%.40s %.80s", rate,
		 weir_format_whose_limit(rule, top->instance->labels, words));
}

static void set_rule(const struct weir_top *top, uint32_t place, struct weir_top_rule *line)
{
	const uint32_t slot = top->instance->rule_order[place];
	const struct weir_rule_info *rule = &top->instance->rules[slot];
	const struct weir_rule_counters *now = &top->counters.rules[slot];
	const double seconds = seconds_between(top);

	*line = (struct weir_top_rule){
		.name = rule->name,
		.resource = rule->resource_name,
		.slot = slot,
		.directions = weir_rule_directions(top->instance, rule),
		.observes = rule->observes,
		.drops_nothing = rule->observes || top->instance->info.observes,
		.answers = weir_answers(rule),
		.share = share_of_busiest(top, slot),
	};
	set_limit(top, place, line);
	line->has_threshold = weir_has_one_threshold(rule);
	line->threshold = line->has_threshold ? top->controller.thresholds[place] : 0;
	if (rule->resource_name[0]) {
		const struct weir_resource_sum *sum = &top->counters.resources[rule->resource_slot];

		line->passed_by_second = sum->passed_by_second;
		line->blocked_by_second = sum->blocked_by_second;
	}
	if (!top->has_before)
		return;
	line->rates.dropped = rate(now->blocked.packets, top->before.rules[slot].blocked.packets, seconds);
	line->rates.would_drop = rate(now->would_drop.packets, top->before.rules[slot].would_drop.packets, seconds);
	line->rates.answered = rate(weir_answers_sent(&top->counters.answers[slot]),
				    weir_answers_sent(&top->before.answers[slot]), seconds);
	if (rule->resource_name[0]) {
		const struct weir_resource_sum *sum = &top->counters.resources[rule->resource_slot];
		const struct weir_resource_sum *before = &top->before.resources[rule->resource_slot];

		line->rates.admitted = rate(sum->passed.packets, before->passed.packets, seconds);
		line->rates.offered =
			line->rates.admitted + rate(sum->blocked.packets, before->blocked.packets, seconds);
	}
}

static void set_flow(const struct weir_top *top, const struct weir_flow_use *use, struct weir_top_flow *line)
{
	const struct weir_rule_info *rule = weir_flow_rule(top->instance, use);

	*line = (struct weir_top_flow){
		.rule = rule ? rule->name : "?",
		.use = use,
		.share = use->has_threshold ? weir_flow_share(use) : -1,
	};
	weir_flow_words(top->instance, use, line->text);
}

static int set_lines(struct weir_top *top, struct weir_diag *diag)
{
	const size_t rules = top->instance->rule_count, flows = top->flows.flows.count;

	free(top->rules);
	free(top->flow_lines);
	free(top->drop_lines);
	top->drop_lines = calloc(top->drops.count + 1, sizeof(*top->drop_lines));
	top->rules = calloc(rules + 1, sizeof(*top->rules));
	top->flow_lines = calloc(flows + 1, sizeof(*top->flow_lines));
	top->rule_count = top->flow_count = top->drop_count = 0;
	if (!top->rules || !top->flow_lines || !top->drop_lines)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot show instance '%s'", top->instance->name);
	for (size_t i = 0; i < rules; i++)
		set_rule(top, i, &top->rules[top->rule_count++]);
	set_totals(top);
	for (size_t i = 0; i < flows; i++)
		set_flow(top, &top->flows.flows.busiest[i], &top->flow_lines[top->flow_count++]);
	for (size_t i = 0; i < top->drops.count; i++) {
		const struct weir_dropped_flow *dropped = &top->drops.worst[i];
		const struct weir_rule_info *rule = &top->instance->rules[dropped->rule_slot];
		struct weir_top_drop *line = &top->drop_lines[top->drop_count++];
		char words[WEIR_WORDS_BYTES];

		line->rule = rule->name;
		line->packets = dropped->packets;
		line->last_ns = dropped->last_ns;
		snprintf(line->text, sizeof(line->text), "%s%s",
			 weir_flow_key_words(top->instance, rule, &dropped->key, words),
			 dropped->is_observed ? ", would drop" : "");
	}
	return 0;
}

/* ---- the exported functions ---- */

int weir_top_read(struct weir_top *top, struct weir_diag *diag)
{
	char name[WEIR_INSTANCE_NAME_BYTES];
	int err = 0;

	snprintf(name, sizeof(name), "%s", top->instance->name);
	if (!weir_instance_refresh(top->instance))
		err = open_instance(top, name, diag);
	if (err == -ENOENT)
		weir_diag_free(diag);
	free(top->controller.thresholds);
	top->controller = (struct weir_controller_report){};
	if (!err) {
		weir_counters_free(&top->before);
		top->before = top->counters;
		top->has_before = top->counters.rules != NULL;
		top->counters = (struct weir_counters){};
		err = weir_counters_read(top->instance, &top->counters, diag);
	}
	if (!err)
		err = weir_controller_look(top->instance, &top->controller, diag);
	weir_fair_uses_free(&top->fair);
	if (!err)
		err = weir_fair_read(top->instance, &top->fair, diag);
	weir_cluster_view_free(&top->cluster);
	if (!err && !top->instance->is_incompatible[WEIR_TABLE_SHARES])
		err = weir_cluster_view_look(top->instance, &top->cluster, diag);
	if (!err)
		err = read_flows(top, diag);
	if (!err)
		look_for_losses(top);
	return err ? err : set_lines(top, diag);
}

int weir_top_open(const char *name, struct weir_top *top, struct weir_diag *diag)
{
	int err = open_instance(top, name, diag);

	return err ? err : weir_top_read(top, diag);
}

void weir_top_close(struct weir_top *top)
{
	free(top->rules);
	free(top->flow_lines);
	free(top->drop_lines);
	free(top->controller.thresholds);
	weir_cluster_view_free(&top->cluster);
	weir_fair_uses_free(&top->fair);
	weir_flows_view_free(&top->flows);
	weir_drops_free(&top->drops);
	weir_counters_free(&top->before);
	weir_counters_free(&top->counters);
	weir_instance_free(top->instance);
	*top = (struct weir_top){};
}

bool weir_top_observes(const struct weir_top *top)
{
	for (size_t i = 0; i < top->rule_count; i++)
		if (top->rules[i].drops_nothing)
			return true;
	return top->instance->info.observes;
}

const char *weir_top_number(double number, char text[16])
{
	static const char units[] = " kMGT";
	size_t unit = 0;

	while (number >= 9999.5 && unit < sizeof(units) - 2) {
		number /= 1000;
		unit++;
	}
	if (!unit)
		snprintf(text, 16, number < 9.95 && number != (uint64_t)number ? "%.1f" : "%.0f", number);
	else
		snprintf(text, 16, number < 99.95 ? "%.1f%c" : "%.0f%c", number, units[unit]);
	return text;
}

/* ---- JSON ---- */

static json_t *describe_rates(const struct weir_top_rates *rates)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "offered", rates->offered, "admitted", rates->admitted, "dropped",
			 rates->dropped, "wouldDrop", rates->would_drop);
}

#define RATE(line, name, heading, rate) WEIR_FIGURE(line, name, heading, json_real(rate), "%.0f", rate)

// NOLINTNEXTLINE(readability-function-size): a list, a figure a statement
void weir_describe_top_rule(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_top *top = context;
	const struct weir_top_rule *rule = record;

	WEIR_FIGURE(line, "name", "rule", json_string(rule->name), "%s%s", rule->name,
		    rule->observes ? " (observes)" : "");
	WEIR_FIGURE(line, "resource", "resource", rule->resource[0] ? json_string(rule->resource) : json_null(), "%s",
		    rule->resource[0] ? rule->resource : "-");
	RATE(line, "packetsPerSecond.offered", ">offered/s", rule->rates.offered);
	RATE(line, "packetsPerSecond.admitted", ">admitted/s", rule->rates.admitted);
	RATE(line, "packetsPerSecond.dropped", ">dropped/s", rule->rates.dropped);
	if (!line->put || line->is_heading || rule->drops_nothing)
		RATE(line, "packetsPerSecond.wouldDrop", ">would drop/s", rule->rates.would_drop);
	else
		WEIR_CELL(line, ">would drop/s", "-");
	if (line->put)
		WEIR_CELL(line, "?>answered/s", "%.0f", rule->rates.answered);
	else if (rule->answers)
		WEIR_FIELD(line, "packetsPerSecond.answered", json_real(rule->rates.answered));
	WEIR_TEXT(line, "limit", "limit now", rule->limit);
	WEIR_FIELD(line, "limitNow", json_string(rule->limit));
	WEIR_FIELD(line, "thresholdNow", rule->has_threshold ? json_integer(rule->threshold) : json_null());
	WEIR_PERCENT(line, "share", ">share", rule->share >= 0, rule->share, "-");
	WEIR_TEXT(line, "direction", "direction", weir_direction_name(rule->directions));
	WEIR_FIELD(line, "observes", json_boolean(rule->observes));
	if (!line->put && weir_children_of(top->instance, &top->instance->rules[rule->slot]))
		WEIR_FIELD(line, "fairShares", weir_fair_describe(top->instance, &top->fair, rule->slot));
}

json_t *weir_top_describe(const struct weir_top *top)
{
	json_t *total = describe_rates(&top->total);

	if (top->answers)
		json_object_set_new(total, "answered", json_real(top->total.answered));
	return json_pack(
		"{s:s, s:f, s:o, s:o*, s:o, s:o, s:o, s:o}", "instance", top->instance->name, "seconds",
		seconds_between(top), "packetsPerSecond", total, "outPacketsPerSecond",
		top->limits_out ? describe_rates(&top->out) : NULL, "cluster", weir_cluster_sum(&top->cluster), "rules",
		weir_figures_list(weir_describe_top_rule, top, top->rules, top->rule_count, sizeof(*top->rules)),
		"flows", weir_flows_describe(&top->flows), "dropped", weir_drops_describe(top->instance, &top->drops));
}
