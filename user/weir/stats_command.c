// SPDX-License-Identifier: GPL-2.0-only
/* weir stats: what happened to the packets. */
#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "report/stats.h"
#include "tables/rule_kind.h"
#include "weir/weir.h"

static const struct weir_command weir_stats_command = {
	.name = "stats",
	.options = "INjWCh",
	.means_attached = true,
	.about = "Print the counters: packets by verdict (if rules limit outgoing packets, those separately), by "
		 "resource (with the last 60 seconds) and by rule; the connections of rules with metricType "
		 "Concurrency; the penalties of rules with blockDurationInMs; and the states of circuit breakers.",
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

/* ---- for people ---- */

static void print_totals(const struct weir_totals *totals, const char *heading)
{
	_cleanup_(weir_table_free) struct weir_table table = {.headings = {heading}, .columns = 1};
	uint64_t sum = weir_verdict_sum(totals);

	weir_table_head(&table, weir_describe_tally, NULL);
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		if (!totals->verdict[verdict].packets && verdict > WEIR_VERDICT_BLOCK)
			continue;
		weir_table_cell(&table, "%s", weir_verdict_words[verdict]);
		weir_table_add(&table, weir_describe_tally, NULL, &totals->verdict[verdict]);
	}
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		if (!would_drop_words[verdict] || !totals->would_drop[verdict].packets)
			continue;
		weir_table_cell(&table, "%s", would_drop_words[verdict]);
		weir_table_add(&table, weir_describe_tally, NULL, &totals->would_drop[verdict]);
	}
	weir_table_cell(&table, "seen");
	weir_table_add(&table, weir_describe_tally, NULL, &totals->seen);
	weir_table_print(&table, stdout);
	if (sum != totals->seen.packets)
		printf("  the verdicts add up to %llu packets: some arrived while the counters were read\n",
		       (unsigned long long)sum);
}

static void print_resources(const struct weir_stats_view *view)
{
	_cleanup_(weir_table_free) struct weir_table table = {};

	weir_table_list(&table, weir_describe_resource, view, view->instance->resource_order,
			view->instance->resource_count, sizeof(*view->instance->resource_order));
	if (!weir_limits_out(view->instance))
		weir_table_leave_out(&table, "direction");
	putchar('\n');
	weir_table_print(&table, stdout);
}

static bool is_any(const struct weir_rule_info *rule)
{
	return true;
}

/* The tables of rules: which rules have a line, and what is described: their slots, or the records that an array has by
 * slots.
 */
struct rule_table {
	const char *heading;
	bool (*has)(const struct weir_rule_info *rule);
	bool shows_limit;
	weir_describer *describe;
	const void *by_slot;
	size_t record_bytes;
	bool needs_children; /* only rules with fairBy */
};

static void print_rules(const struct weir_stats_view *view, const struct rule_table *wanted)
{
	_cleanup_(weir_table_free) struct weir_table table = {.headings = {wanted->heading, "limit"},
							      .columns = 1 + wanted->shows_limit};
	char words[WEIR_WORDS_BYTES];

	weir_table_head(&table, wanted->describe, view);
	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		const uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_info *rule = &view->instance->rules[slot];

		if (!wanted->has(rule) || (wanted->needs_children && !weir_children_of(view->instance, rule)))
			continue;
		weir_table_cell(&table, "%s", rule->name);
		if (wanted->shows_limit)
			weir_table_cell(&table, "%s", weir_format_limit(rule, view->instance->labels, words));
		weir_table_add(&table, wanted->describe, view,
			       wanted->by_slot ? (const char *)wanted->by_slot + slot * wanted->record_bytes
					       : (const void *)&slot);
	}
	if (!table.cell_count)
		return;
	putchar('\n');
	weir_table_print(&table, stdout);
}

/* ---- the command ---- */

static void print_text(const struct weir_stats_view *view)
{
	const struct rule_table tables[] = {
		{"rule", is_any, true, weir_describe_rule_counters, NULL, 0, false},
		{"rule", weir_has_connections, true, weir_describe_connections, view->connections,
		 sizeof(*view->connections), false},
		{"rule", weir_has_connections, false, weir_describe_connection_ends, view->connections,
		 sizeof(*view->connections), false},
		{"rule", weir_penalises, false, weir_describe_rule_penalties, NULL, 0, false},
		{"rule", is_any, false, weir_describe_rule_shares, NULL, 0, true},
		{"breaker", weir_is_breaker, true, weir_describe_breaker_sum, view->breakers, sizeof(*view->breakers),
		 false},
	};

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
		print_resources(view);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		print_rules(view, &tables[i]);
	if (view->has_pace) {
		printf("\n"
		       "  paced: %llu packets held back, %u of them waiting now; %llu should have waited but passed at "
		       "once; "
		       "%u dropped, as the queue was full\n",
		       (unsigned long long)view->pace.held, view->pace.waiting, (unsigned long long)view->pace.not_held,
		       view->pace.dropped);
	}
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

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_stats_command, argc, argv, show);
}

const struct weir_command_entry weir_stats_entry = {&weir_stats_command, run_command,
						    "show counters, and the last minute per resource"};
