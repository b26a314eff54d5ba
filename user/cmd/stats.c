// SPDX-License-Identifier: GPL-2.0-only
/* weir stats: what happened to the packets. */
#include "base/util.h"
#include "cmd.h"
#include "options.h"
#include "print.h"
#include "print_breakers.h"
#include "print_connections.h"
#include "report/stats.h"
#include "state/directions.h"
#include "tables/rule_kind.h"

const struct weir_command weir_stats_command = {
	.name = "stats",
	.options = "INjWCh",
	.means_attached = true,
	.about = "Print the counters: packets by verdict (if rules limit outgoing packets, those separately), by "
		 "resource "
		 "(with the last 60 seconds) and by rule; the "
		 "connections of rules with metricType Concurrency; the penalties of rules with blockDurationInMs; and "
		 "the states of circuit breakers.",
	.example = "  weir stats\n  weir stats --json | jq '.resources[].lastMinute'",
};

/* For packets that passed because the instance observes; NULL: a verdict that drops nothing. */
static const char *const would_drop_words[WEIR_VERDICT_COUNT] = {
	[WEIR_VERDICT_BLOCK] = "passed, a rule would block",
	[WEIR_VERDICT_MALFORMED_DROP] = "passed, malformed: would drop",
	[WEIR_VERDICT_UNSUPPORTED_DROP] = "passed, unsupported: would drop",
	[WEIR_VERDICT_NON_IP_DROP] = "passed, not IP: would drop",
	[WEIR_VERDICT_UNMATCHED_DROP] = "passed, unmatched: would drop",
	[WEIR_VERDICT_DENY] = "passed, a deny list would drop",
	[WEIR_VERDICT_ERROR] = "passed by a bug in weir",
};

static uint64_t minute_sum(const uint64_t by_second[WEIR_MINUTE])
{
	uint64_t sum = 0;

	for (int i = 0; i < WEIR_MINUTE; i++)
		sum += by_second[i];
	return sum;
}

/* ---- for people ---- */

static void print_tally(struct weir_table *table, const struct weir_tally *tally)
{
	weir_table_cell(table, "%llu", (unsigned long long)tally->packets);
	weir_table_cell(table, "%llu", (unsigned long long)tally->bytes);
}

static void print_totals(const struct weir_totals *totals, const char *heading)
{
	const char *const headings[] = {heading, ">packets", ">bytes"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	uint64_t sum = weir_verdict_sum(totals);

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		if (!totals->verdict[verdict].packets && verdict > WEIR_VERDICT_BLOCK)
			continue;
		weir_table_cell(&table, "%s", weir_verdict_words[verdict]);
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
		printf("  the verdicts add up to %llu packets: some arrived while the counters were read\n",
		       (unsigned long long)sum);
}

static void print_resources(const struct weir_instance *instance, const struct weir_counters *counters)
{
	static const char *const headings[] = {"resource", ">passed",	   ">bytes",	    ">blocked",
					       ">bytes",   ">passed/60 s", ">blocked/60 s", "direction"};
	const bool limits_out = weir_limits_out(instance);
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings,
							      .columns = ARRAY_SIZE(headings) - !limits_out};

	for (uint32_t i = 0; i < instance->resource_count; i++) {
		uint32_t slot = instance->resource_order[i];
		const struct weir_resource_sum *sum = &counters->resources[slot];
		const uint32_t directions = weir_resource_directions(&instance->resources[slot]);

		weir_table_cell(&table, "%s", instance->resources[slot].name);
		print_tally(&table, &sum->passed);
		print_tally(&table, &sum->blocked);
		weir_table_cell(&table, "%llu", (unsigned long long)minute_sum(sum->passed_by_second));
		weir_table_cell(&table, "%llu", (unsigned long long)minute_sum(sum->blocked_by_second));
		if (limits_out)
			weir_table_cell(&table, "%s", weir_direction_name(directions));
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

/* Figures that few rules have. A column that is empty for all rules is left out. */
static const struct rare_figure {
	const char *heading;
	size_t offset; /* of a uint64_t in struct weir_rule_counters */
} rare_figures[] = {
	{">would drop", offsetof(struct weir_rule_counters, would_drop.packets)},
	{">evicted", offsetof(struct weir_rule_counters, evicted)},
	{">stalled", offsetof(struct weir_rule_counters, stalled)},
	{">delayed", offsetof(struct weir_rule_counters, delayed)},
};
#define RARE_FIGURES ARRAY_SIZE(rare_figures)

static uint64_t rare_figure(const struct weir_rule_counters *sum, size_t i)
{
	return *(const uint64_t *)((const char *)sum + rare_figures[i].offset);
}

static bool some_rule_has(const struct weir_instance *instance, const struct weir_counters *counters, size_t i)
{
	for (uint32_t rule = 0; rule < instance->rule_count; rule++)
		if (rare_figure(&counters->rules[instance->rule_order[rule]], i))
			return true;
	return false;
}

static void print_rules(const struct weir_instance *instance, const struct weir_counters *counters)
{
	const char *headings[3 + RARE_FIGURES + 1] = {"rule", "limit", ">blocked"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = 3};
	bool is_shown[RARE_FIGURES], are_delayed = false;
	char words[WEIR_WORDS_BYTES];

	for (size_t i = 0; i < RARE_FIGURES; i++) {
		is_shown[i] = some_rule_has(instance, counters, i);
		if (is_shown[i])
			headings[table.columns++] = rare_figures[i].heading;
	}
	are_delayed = is_shown[RARE_FIGURES - 1];
	if (are_delayed)
		headings[table.columns++] = ">mean delay ms";
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		uint32_t slot = instance->rule_order[i];
		const struct weir_rule_counters *sum = &counters->rules[slot];

		weir_table_cell(&table, "%s", instance->rules[slot].name);
		weir_table_cell(&table, "%s", weir_format_limit(&instance->rules[slot], words));
		weir_table_cell(&table, "%llu", (unsigned long long)sum->blocked.packets);
		for (size_t rare = 0; rare < RARE_FIGURES; rare++)
			if (is_shown[rare])
				weir_table_cell(&table, "%llu", (unsigned long long)rare_figure(sum, rare));
		if (are_delayed)
			weir_table_cell(&table, "%.3f", sum->delayed ? sum->delay_ns / 1e6 / sum->delayed : 0.0);
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

static void print_connections(const struct weir_stats_view *view)
{
	_cleanup_(weir_connection_tables_free) struct weir_connection_tables tables;
	char words[WEIR_WORDS_BYTES];

	weir_connection_tables_begin(&tables);
	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_info *rule = &view->instance->rules[slot];

		if (weir_has_connections(rule))
			weir_connection_tables_add(&tables, rule->name, weir_format_limit(rule, words),
						   &view->connections[slot]);
	}
	weir_connection_tables_print(&tables, stdout);
}

static void print_penalties(const struct weir_stats_view *view)
{
	static const char *const headings[] = {"rule", ">penalties begun", ">penalised now"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};

	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		uint32_t slot = view->instance->rule_order[i];

		if (!weir_penalises(&view->instance->rules[slot]))
			continue;
		weir_table_cell(&table, "%s", view->instance->rules[slot].name);
		weir_table_cell(&table, "%llu", (unsigned long long)view->counters.rules[slot].changes);
		weir_table_cell(&table, "%llu", (unsigned long long)view->penalties.by_rule[slot]);
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

static void print_breakers(const struct weir_stats_view *view)
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
	printf("\n"
	       "  paced: %llu packets held back, %u of them waiting now; %llu should have waited but passed at once; "
	       "%u dropped, as the queue was full\n",
	       (unsigned long long)pace->held, pace->waiting, (unsigned long long)pace->not_held, pace->dropped);
}

/* ---- the command ---- */

static void print_text(const struct weir_stats_view *view)
{
	if (view->instance->info.observes)
		puts("observing: nothing is dropped\n");
	if (weir_limits_out(view->instance)) {
		print_totals(&view->counters.totals, "incoming");
		putchar('\n');
		print_totals(&view->counters.out, "outgoing");
	} else {
		print_totals(&view->counters.totals, "verdict");
	}
	if (view->instance->resource_count)
		print_resources(view->instance, &view->counters);
	if (view->instance->rule_count)
		print_rules(view->instance, &view->counters);
	if (weir_connections_are_counted(view->instance))
		print_connections(view);
	if (weir_penalties_are_given(view->instance))
		print_penalties(view);
	if (weir_has_breaker_rules(view->instance))
		print_breakers(view);
	if (view->has_pace)
		print_pace(&view->pace);
}

static int show(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_stats_free) struct weir_stats_view view = {};
	int err = weir_instance_open(options->instance, &instance, diag);

	if (!err)
		err = weir_stats_read(instance, &view, diag);
	if (err)
		return err;
	weir_instance_warn_of_losses(instance, diag);
	if (options->wants_json)
		return weir_json_print(weir_stats_describe(&view), diag);
	print_text(&view);
	return weir_flush_results(diag);
}

int weir_cmd_stats(int argc, char **argv)
{
	return weir_command_run(&weir_stats_command, argc, argv, show);
}
