// SPDX-License-Identifier: GPL-2.0-only
/* weir stats: what became of the packets. */
#include <string.h>

#include "base/util.h"
#include "cmd.h"
#include "host/host.h"
#include "options.h"
#include "pace/pace.h"
#include "print.h"
#include "print_breakers.h"
#include "print_connections.h"
#include "tables/rule_kind.h"
#include "watch/breakers.h"
#include "watch/connections.h"
#include "watch/counters.h"
#include "watch/penalties.h"

const struct weir_command weir_stats_command = {
	.name = "stats",
	.options = "INjh",
	.about =
		"Print the counters: packets by verdict, by resource (with the last 60 seconds) and by rule; and the\n"
		"connections of rules with metricType Concurrency, the penalties of rules with blockDurationInMs, and\n"
		"how circuit breakers stand.",
	.example = "  weir stats\n  weir stats --json | jq '.resources[].lastMinute'",
};

static const char *const verdict_words[WEIR_VERDICT_COUNT] = {
	[WEIR_VERDICT_PASS] = "passed by the rules",
	[WEIR_VERDICT_BLOCK] = "blocked by a rule",
	[WEIR_VERDICT_MALFORMED_PASS] = "malformed, passed",
	[WEIR_VERDICT_MALFORMED_DROP] = "malformed, dropped",
	[WEIR_VERDICT_UNSUPPORTED_PASS] = "unsupported, passed",
	[WEIR_VERDICT_UNSUPPORTED_DROP] = "unsupported, dropped",
	[WEIR_VERDICT_NON_IP_PASS] = "not IP, passed",
	[WEIR_VERDICT_NON_IP_DROP] = "not IP, dropped",
	[WEIR_VERDICT_UNMATCHED_PASS] = "in no resource, passed",
	[WEIR_VERDICT_UNMATCHED_DROP] = "in no resource, dropped",
	[WEIR_VERDICT_ALLOW] = "passed by an allow list",
	[WEIR_VERDICT_DENY] = "dropped by a deny list",
	[WEIR_VERDICT_ERROR] = "dropped by a mistake in weir",
};

/* Of packets that passed, as the instance observes; NULL: a verdict that drops nothing. */
static const char *const would_drop_words[WEIR_VERDICT_COUNT] = {
	[WEIR_VERDICT_BLOCK] = "passed, a rule would block",
	[WEIR_VERDICT_MALFORMED_DROP] = "passed, malformed: would drop",
	[WEIR_VERDICT_UNSUPPORTED_DROP] = "passed, unsupported: would drop",
	[WEIR_VERDICT_NON_IP_DROP] = "passed, not IP: would drop",
	[WEIR_VERDICT_UNMATCHED_DROP] = "passed, in no resource: would drop",
	[WEIR_VERDICT_DENY] = "passed, a deny list would drop",
	[WEIR_VERDICT_ERROR] = "passed, by a mistake in weir",
};

/* What is shown of an instance. */
struct view {
	const struct weir_instance *instance;
	const struct weir_counters *counters;
	const struct weir_connection_figures *connections; /* by rule slot */
	const struct weir_penalised_flows *penalties;
	const struct weir_breaker_sum *breakers; /* by rule slot */
	bool paces;				 /* the instance holds packets, and it can be read how many */
	const struct weir_pace_state *pace;	 /* NULL when it does not, or that cannot be read */
};

/* Packets of all verdicts. A packet has exactly one, so this is `seen`, but for those that came while we read. */
static uint64_t verdict_sum(const struct weir_totals *totals)
{
	uint64_t sum = 0;

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++)
		sum += totals->verdict[verdict].packets + totals->would_drop[verdict].packets;
	return sum;
}

/* The connections of a resource are those of its first rule that counts them, of one that enforces if there is any.
 * NULL: no rule does.
 */
static const struct weir_connection_figures *resource_connections(const struct view *view, uint32_t resource_slot)
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

static uint64_t minute_sum(const uint64_t by_second[WEIR_MINUTE])
{
	uint64_t sum = 0;

	for (int i = 0; i < WEIR_MINUTE; i++)
		sum += by_second[i];
	return sum;
}

/* ---- JSON ---- */

static json_t *describe_totals(const struct weir_totals *totals)
{
	json_t *by_verdict = json_object(), *would_drop = json_object();

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		json_object_set_new(by_verdict, weir_verdict_names[verdict],
				    weir_json_tally(&totals->verdict[verdict]));
		if (would_drop_words[verdict])
			json_object_set_new(would_drop, weir_verdict_names[verdict],
					    weir_json_tally(&totals->would_drop[verdict]));
	}
	return json_pack("{s:o, s:I, s:o, s:o}", "seen", weir_json_tally(&totals->seen), "verdictSum",
			 (json_int_t)verdict_sum(totals), "wouldDrop", would_drop, "verdicts", by_verdict);
}

static json_t *describe_minute(const uint64_t by_second[WEIR_MINUTE])
{
	json_t *seconds = json_array();

	for (int i = 0; i < WEIR_MINUTE; i++)
		weir_json_append(&seconds, json_integer(by_second[i]));
	return seconds;
}

static json_t *describe_resources(const struct view *view)
{
	const struct weir_instance *instance = view->instance;
	json_t *resources = json_array();

	for (uint32_t i = 0; i < instance->resource_count; i++) {
		uint32_t slot = instance->resource_order[i];
		const struct weir_resource_sum *sum = &view->counters->resources[slot];
		const struct weir_connection_figures *connections = resource_connections(view, slot);

		weir_json_append(&resources,
				 json_pack("{s:s, s:o, s:o, s:{s:o, s:o}, s:o*}", "name",
					   instance->resources[slot].name, "passed", weir_json_tally(&sum->passed),
					   "blocked", weir_json_tally(&sum->blocked), "lastMinute", "passed",
					   describe_minute(sum->passed_by_second), "blocked",
					   describe_minute(sum->blocked_by_second), "connections",
					   connections ? weir_json_connections(connections) : NULL));
	}
	return resources;
}

static json_t *describe_breaker(const struct view *view, uint32_t slot)
{
	const struct weir_rule_info *rule = &view->instance->rules[slot];

	return weir_json_breaker_sum(&view->breakers[slot], rule->breaker.strategy, rule->identity.key_fields);
}

static json_t *describe_rules(const struct view *view)
{
	json_t *rules = json_array();

	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_counters *sum = &view->counters->rules[slot];
		json_t *rule = weir_json_rule(&view->instance->rules[slot]);

		json_object_set_new(rule, "blocked", weir_json_tally(&sum->blocked));
		json_object_set_new(rule, "wouldDrop", weir_json_tally(&sum->would_drop));
		json_object_set_new(rule, "evicted", json_integer(sum->evicted));
		json_object_set_new(rule, "stalled", json_integer(sum->stalled));
		json_object_set_new(rule, "leases", json_integer(sum->leases));
		json_object_set_new(rule, "delayed", json_integer(sum->delayed));
		json_object_set_new(rule, "delayNs", json_integer(sum->delay_ns));
		if (weir_lends(&view->instance->rules[slot]))
			json_object_set_new(rule, "borrowed", json_integer(sum->delayed));
		if (weir_has_connections(&view->instance->rules[slot]))
			json_object_set_new(rule, "connections", weir_json_connections(&view->connections[slot]));
		if (weir_penalises(&view->instance->rules[slot]))
			json_object_set_new(rule, "penalties",
					    json_pack("{s:I, s:I}", "begun", (json_int_t)sum->penalties, "active",
						      (json_int_t)view->penalties->by_rule[slot]));
		if (weir_is_breaker(&view->instance->rules[slot]))
			json_object_set_new(rule, "breaker", describe_breaker(view, slot));
		weir_json_append(&rules, rule);
	}
	return rules;
}

static json_t *describe_pace(const struct weir_pace_state *pace)
{
	if (!pace)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "held", (json_int_t)pace->held, "notHeld", (json_int_t)pace->not_held,
			 "waiting", (json_int_t)pace->waiting, "dropped", (json_int_t)pace->dropped);
}

static json_t *describe(const struct view *view)
{
	return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o*}", "instance", view->instance->name, "generation",
			 (json_int_t)view->instance->info.generation, "totals",
			 describe_totals(&view->counters->totals), "resources", describe_resources(view), "rules",
			 describe_rules(view), "pace", view->paces ? describe_pace(view->pace) : NULL);
}

/* ---- for people ---- */

static void print_tally(struct weir_table *table, const struct weir_tally *tally)
{
	weir_table_cell(table, "%llu", (unsigned long long)tally->packets);
	weir_table_cell(table, "%llu", (unsigned long long)tally->bytes);
}

static void print_totals(const struct weir_totals *totals)
{
	static const char *const headings[] = {"verdict", ">packets", ">bytes"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	uint64_t sum = verdict_sum(totals);

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		if (!totals->verdict[verdict].packets && verdict > WEIR_VERDICT_BLOCK)
			continue;
		weir_table_cell(&table, "%s", verdict_words[verdict]);
		print_tally(&table, &totals->verdict[verdict]);
	}
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		if (!would_drop_words[verdict] || !totals->would_drop[verdict].packets)
			continue;
		weir_table_cell(&table, "%s", would_drop_words[verdict]);
		print_tally(&table, &totals->would_drop[verdict]);
	}
	weir_table_cell(&table, "seen");
	print_tally(&table, &totals->seen);
	weir_table_print(&table, stdout);
	if (sum != totals->seen.packets)
		printf("  the verdicts add up to %llu packets: some came while this was read\n",
		       (unsigned long long)sum);
}

static void print_resources(const struct weir_instance *instance, const struct weir_counters *counters)
{
	static const char *const headings[] = {"resource", ">passed",	   ">bytes",	   ">blocked",
					       ">bytes",   ">passed/60 s", ">blocked/60 s"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};

	for (uint32_t i = 0; i < instance->resource_count; i++) {
		uint32_t slot = instance->resource_order[i];
		const struct weir_resource_sum *sum = &counters->resources[slot];

		weir_table_cell(&table, "%s", instance->resources[slot].name);
		print_tally(&table, &sum->passed);
		print_tally(&table, &sum->blocked);
		weir_table_cell(&table, "%llu", (unsigned long long)minute_sum(sum->passed_by_second));
		weir_table_cell(&table, "%llu", (unsigned long long)minute_sum(sum->blocked_by_second));
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

static void print_rules(const struct weir_instance *instance, const struct weir_counters *counters)
{
	static const char *const headings[] = {"rule",	   "limit",    ">blocked", ">would drop",
					       ">evicted", ">stalled", ">delayed", ">mean delay ms"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	char words[WEIR_WORDS_BYTES];

	for (uint32_t i = 0; i < instance->rule_count; i++) {
		uint32_t slot = instance->rule_order[i];
		const struct weir_rule_counters *sum = &counters->rules[slot];

		weir_table_cell(&table, "%s", instance->rules[slot].name);
		weir_table_cell(&table, "%s", weir_format_limit(&instance->rules[slot], words));
		weir_table_cell(&table, "%llu", (unsigned long long)sum->blocked.packets);
		weir_table_cell(&table, "%llu", (unsigned long long)sum->would_drop.packets);
		weir_table_cell(&table, "%llu", (unsigned long long)sum->evicted);
		weir_table_cell(&table, "%llu", (unsigned long long)sum->stalled);
		weir_table_cell(&table, "%llu", (unsigned long long)sum->delayed);
		weir_table_cell(&table, "%.3f", sum->delayed ? sum->delay_ns / 1e6 / sum->delayed : 0.0);
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

static void print_connections(const struct view *view)
{
	static const char *const headings[] = {WEIR_CONNECTION_HEADINGS};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	char words[WEIR_WORDS_BYTES];

	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_info *rule = &view->instance->rules[slot];

		if (!weir_has_connections(rule))
			continue;
		weir_table_cell(&table, "%s", rule->name);
		weir_table_cell(&table, "%s", weir_format_limit(rule, words));
		weir_table_connections(&table, &view->connections[slot]);
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

static void print_penalties(const struct view *view)
{
	static const char *const headings[] = {"rule", ">penalties begun", ">penalised now"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};

	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		uint32_t slot = view->instance->rule_order[i];

		if (!weir_penalises(&view->instance->rules[slot]))
			continue;
		weir_table_cell(&table, "%s", view->instance->rules[slot].name);
		weir_table_cell(&table, "%llu", (unsigned long long)view->counters->rules[slot].penalties);
		weir_table_cell(&table, "%llu", (unsigned long long)view->penalties->by_rule[slot]);
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

static void print_breakers(const struct view *view)
{
	static const char *const headings[] = {WEIR_BREAKER_HEADINGS};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	char words[WEIR_WORDS_BYTES];

	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_info *rule = &view->instance->rules[slot];

		if (!weir_is_breaker(rule))
			continue;
		weir_table_cell(&table, "%s", rule->name);
		weir_table_cell(&table, "%s", weir_format_limit(rule, words));
		weir_table_breaker(&table, &view->breakers[slot], rule->breaker.strategy, rule->identity.key_fields);
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

static void print_pace(const struct weir_pace_state *pace)
{
	printf("\n  paced: %llu packets held back, of which %u wait now; %llu had to wait and passed at once; "
	       "%u dropped, the queue being full\n",
	       (unsigned long long)pace->held, pace->waiting, (unsigned long long)pace->not_held, pace->dropped);
}

/* ---- the command ---- */

static void print_text(const struct view *view)
{
	if (view->instance->info.observes)
		puts("observes: nothing is dropped\n");
	print_totals(&view->counters->totals);
	if (view->instance->resource_count)
		print_resources(view->instance, view->counters);
	if (view->instance->rule_count)
		print_rules(view->instance, view->counters);
	if (weir_connections_are_counted(view->instance))
		print_connections(view);
	if (weir_penalties_are_given(view->instance))
		print_penalties(view);
	if (weir_has_breaker_rules(view->instance))
		print_breakers(view);
	if (view->pace)
		print_pace(view->pace);
}

static int show(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_counters_free) struct weir_counters counters = {};
	_cleanup_(weir_freep) struct weir_connection_figures *connections = NULL;
	_cleanup_(weir_penalised_flows_free) struct weir_penalised_flows penalties = {};
	_cleanup_(weir_freep) struct weir_breaker_sum *breakers = NULL;
	struct weir_pace_state pace = {};
	struct view view = {.counters = &counters};
	int err = options->netns ? weir_host_enter_netns(options->netns, diag) : 0;

	if (!err)
		err = weir_instance_open(options->instance, &instance, diag);
	if (!err)
		err = weir_counters_read(instance, &counters, diag);
	if (!err)
		err = weir_connections_read(instance, &connections, diag);
	if (!err)
		err = weir_penalties_read(instance, 1, &penalties, diag);
	if (!err)
		err = weir_breakers_read(instance, &breakers, diag);
	if (err)
		return err;
	view.instance = instance;
	view.connections = connections;
	view.penalties = &penalties;
	view.breakers = breakers;
	view.paces = weir_pace_is_attached(instance->name) && !instance->is_foreign[WEIR_MAP_PACE];
	if (view.paces)
		err = weir_instance_expect_tables(instance, WEIR_TABLE_BIT(WEIR_MAP_PACE),
						  "the counters of paced packets", diag);
	if (err)
		return err;
	if (view.paces)
		err = weir_pace_read(instance->name, &pace);
	if (err) /* somebody has removed its ifb, perhaps: no reason to hide the counters */
		weir_diag_warning(diag, NULL, NULL, "a reload with 'throttling: police', and one with 'pace', mend it",
				  "cannot read how instance '%s' paces: %s", instance->name, strerror(-err));
	else if (view.paces)
		view.pace = &pace;
	if (options->wants_json)
		return weir_json_print(describe(&view), diag);
	print_text(&view);
	return weir_flush_results(diag);
}

int weir_cmd_stats(int argc, char **argv)
{
	return weir_command_run(&weir_stats_command, argc, argv, show);
}
