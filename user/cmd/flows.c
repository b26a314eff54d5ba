// SPDX-License-Identifier: GPL-2.0-only
/* weir flows: who is how near to a limit now. */
#include "base/util.h"
#include "cmd.h"
#include "options.h"
#include "print.h"
#include "print_breakers.h"
#include "print_penalties.h"
#include "report/flows.h"
#include "watch/borrowing.h"

const struct weir_command weir_flows_command = {
	.name = "flows",
	.options = "nIjh",
	.about = "Print the flows that have used most of their thresholds in the window as it is now. Whose a window\n"
		 "is, is noted for flows that reach their limit and for samples of the others; '?' was not noted.\n"
		 "Of rules with overrides its threshold may be '?', too. Rules with Throttling, tokens or\n"
		 "AssociatedResource keep no windows: their flows are not shown. Where a resource is prioritised,\n"
		 "'borrowed' are units of buckets yet to come. Rules with metricType Concurrency have a table of\n"
		 "their own: the flows with the most connections now; and so have rules with blockDurationInMs: the\n"
		 "flows that are penalised, those that have longest yet first; and circuit breakers: those\n"
		 "that are open, or nearest to it.",
	.example = "  weir flows -n 5",
};

static void print_threshold(struct weir_table *table, bool is_known, uint64_t threshold, double part)
{
	if (!is_known) {
		weir_table_cell(table, "?");
		weir_table_cell(table, "?");
		return;
	}
	weir_table_cell(table, "%llu", (unsigned long long)threshold);
	weir_table_cell(table, "%.0f %%", 100 * part);
}

static void print_use(struct weir_table *table, const struct weir_instance *instance, const struct weir_flow_use *use,
		      bool lends)
{
	const struct weir_rule_info *rule = weir_flow_rule(instance, use);
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", rule ? rule->name : "?");
	weir_table_cell(table, "%llu", (unsigned long long)use->units);
	if (lends)
		weir_table_cell(table, "%llu", (unsigned long long)use->borrowed);
	print_threshold(table, use->has_threshold, use->threshold, weir_flow_share(use));
	if (rule && use->has_key)
		weir_table_cell(table, "%s", weir_format_key(&rule->identity, &use->key, words));
	else
		weir_table_cell(table, "%s", rule && !rule->identity.key_fields ? "(the whole resource)" : "?");
}

static void print_text(const struct weir_instance *instance, const struct weir_flows *flows)
{
	static const char *const plain[] = {"rule", ">units", ">threshold", ">share", "flow"};
	static const char *const lending[] = {"rule", ">units", ">borrowed", ">threshold", ">share", "flow"};
	const bool lends = weir_borrowing_is_used(instance);
	_cleanup_(weir_table_free) struct weir_table table = {
		.headings = lends ? lending : plain,
		.columns = lends ? ARRAY_SIZE(lending) : ARRAY_SIZE(plain),
	};

	for (size_t i = 0; i < flows->count; i++)
		print_use(&table, instance, &flows->busiest[i], lends);
	weir_table_print(&table, stdout);
	printf("%s%llu active flow%s\n", flows->count ? "\n" : "", (unsigned long long)flows->active,
	       weir_plural(flows->active));
}

static void print_connection_use(struct weir_table *table, const struct weir_instance *instance,
				 const struct weir_connection_use *use)
{
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];
	const struct weir_connection_figures *figures = &use->figures;
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", rule->name);
	weir_table_cell(table, "%llu", (unsigned long long)figures->now);
	print_threshold(table, use->has_threshold, use->threshold, weir_connection_share(use));
	weir_table_cell(table, "%llu", (unsigned long long)figures->max);
	weir_table_cell(table, "%llu", (unsigned long long)figures->opened);
	weir_table_cell(table, "%llu", (unsigned long long)figures->refused);
	weir_table_cell(table, "%s",
			rule->identity.key_fields ? weir_format_key(&rule->identity, &use->key, words)
						  : "(the whole resource)");
}

static void print_connections(const struct weir_instance *instance, const struct weir_connection_flows *flows)
{
	static const char *const headings[] = {"rule", ">connections", ">threshold", ">share",
					       ">max", ">opened",      ">refused",   "flow"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};

	for (size_t i = 0; i < flows->count; i++)
		print_connection_use(&table, instance, &flows->most[i]);
	weir_table_print(&table, stdout);
	printf("%s%llu flow%s with connections\n", flows->count ? "\n" : "", (unsigned long long)flows->active,
	       weir_plural(flows->active));
}

static void print_breaker_use(struct weir_table *table, const struct weir_instance *instance,
			      const struct weir_breaker_use *use)
{
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", rule->name);
	weir_table_cell(table, "%s", weir_format_breaker_state(&use->view, words));
	weir_table_cell(table, "%s", weir_format_breaker_value(&use->view, rule->breaker.strategy, words));
	weir_table_cell(table, "%llu", (unsigned long long)use->view.changes);
	weir_table_cell(table, "%s",
			rule->identity.key_fields ? weir_format_key(&rule->identity, &use->key, words)
						  : "(the whole resource)");
}

static void print_breakers(const struct weir_instance *instance, const struct weir_breaker_flows *flows)
{
	static const char *const headings[] = {"breaker", "state", ">value", ">changes", "flow"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};

	for (size_t i = 0; i < flows->count; i++)
		print_breaker_use(&table, instance, &flows->most[i]);
	weir_table_print(&table, stdout);
	printf("%s%llu open, %llu half-open\n", flows->count ? "\n" : "", (unsigned long long)flows->open,
	       (unsigned long long)flows->half_open);
}

static int show(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_flows_view_free) struct weir_flows_view view = {};
	int err = weir_instance_open(options->instance, &instance, diag);

	if (!err)
		err = weir_flows_view_read(instance, options->most, &view, diag);
	if (err)
		return err;
	if (options->wants_json)
		return weir_json_print(weir_flows_describe(&view), diag);
	if (view.has_windows)
		print_text(instance, &view.flows);
	if (view.has_connections && view.has_windows)
		putchar('\n');
	if (view.has_connections)
		print_connections(instance, &view.connections);
	if (view.has_breakers && (view.has_windows || view.has_connections))
		putchar('\n');
	if (view.has_breakers)
		print_breakers(instance, &view.breakers);
	if (view.has_penalties) {
		putchar('\n');
		weir_print_penalties(instance, &view.penalties);
	}
	return weir_flush_results(diag);
}

int weir_cmd_flows(int argc, char **argv)
{
	return weir_command_run(&weir_flows_command, argc, argv, show);
}
