// SPDX-License-Identifier: GPL-2.0-only
/* weir flows: how close flows are to their limits now. */
#include <errno.h>

#include "base/util.h"
#include "cmd.h"
#include "host/host.h"
#include "options.h"
#include "print.h"
#include "print_breakers.h"
#include "print_drops.h"
#include "print_penalties.h"
#include "report/busy_flows.h"
#include "report/drops.h"
#include "report/keys.h"
#include "rules/quantity.h"
#include "state/occupy_windows.h"

static const struct weir_option own_options[] = {
	{'d', false, "dropped", NULL, "flows that lost packets, most packets first"},
	{'s', false, "since", "TIME", "with --dropped, only flows that lost packets in the last TIME: 90s, 10m, 1h30m"},
	{'r', false, "rule", "NAME", "only flows of this rule; leaves out windows marked '?'"},
	{},
};

const struct weir_command weir_flows_command = {
	.name = "flows",
	.own_options = own_options,
	.options = "nINjWCh",
	.means_attached = true,
	.about = "Show the flows that have used most of their thresholds in the current window. weir knows the flows "
		 "of windows from drops and from samples; '?' means not known.\n\n"
		 "For rules with overrides, the threshold may be '?', too. For rules with tokens, the units are what "
		 "the flow's bucket lacks, and the threshold is what a full bucket holds. For rules with Throttling, "
		 "the units are how long the flow's latest packet still has to wait, and the threshold is "
		 "maxQueueingTimeMs. For rules with AssociatedResource, the units are what passed on the other "
		 "resource. For prioritised resources, 'occupied' counts units of later buckets.\n\n"
		 "Three kinds of rules have tables of their own. For metricType Concurrency, it lists the flows with "
		 "the most connections; for blockDurationInMs, the penalised flows, longest remaining penalty first; "
		 "for circuit breakers, those that are open or closest to opening.\n\n"
		 "--dropped shows which flows have lost packets since the attach, how many, and when. For rules that "
		 "observe, it shows what would have been dropped.",
	.example = "  weir flows -n 5\n"
		   "  weir flows --rule dns\n"
		   "  weir flows --dropped --since 10m",
};

static void print_threshold(struct weir_table *table, bool is_known, const char *threshold, double part)
{
	if (!is_known) {
		weir_table_cell(table, "?");
		weir_table_cell(table, "?");
		return;
	}
	weir_table_cell(table, "%s", threshold);
	weir_table_cell(table, "%.0f %%", 100 * part);
}

static void print_use(struct weir_table *table, const struct weir_instance *instance, const struct weir_flow_use *use,
		      bool occupies)
{
	const struct weir_rule_info *rule = weir_flow_rule(instance, use);
	char amount[WEIR_AMOUNT_BYTES], words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", rule ? rule->name : "?");
	weir_table_cell(table, "%s", weir_flow_amount(use, use->units, amount));
	if (occupies)
		weir_table_cell(table, "%llu", (unsigned long long)use->occupied);
	print_threshold(table, use->has_threshold, weir_flow_amount(use, use->threshold, amount), weir_flow_share(use));
	weir_table_cell(table, "%s", weir_flow_words(instance, use, words));
}

static void print_text(const struct weir_instance *instance, const struct weir_flows *flows)
{
	static const char *const plain[] = {"rule", ">units", ">threshold", ">share", "flow"};
	static const char *const occupy[] = {"rule", ">units", ">occupied", ">threshold", ">share", "flow"};
	const bool occupies = weir_occupy_is_used(instance);
	_cleanup_(weir_table_free) struct weir_table table = {
		.headings = occupies ? occupy : plain,
		.columns = occupies ? ARRAY_SIZE(occupy) : ARRAY_SIZE(plain),
	};

	for (size_t i = 0; i < flows->count; i++)
		print_use(&table, instance, &flows->busiest[i], occupies);
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
	snprintf(words, sizeof(words), "%llu", (unsigned long long)use->threshold);
	print_threshold(table, use->has_threshold, words, weir_connection_share(use));
	weir_table_cell(table, "%llu", (unsigned long long)figures->max);
	weir_table_cell(table, "%llu", (unsigned long long)figures->opened);
	if (figures->has_refused)
		weir_table_cell(table, "%llu", (unsigned long long)figures->refused);
	else
		weir_table_cell(table, "-");
	weir_table_cell(table, "%s", weir_flow_key_words(instance, rule, &use->key, words));
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
	weir_table_cell(table, "%s", weir_flow_key_words(instance, rule, &use->key, words));
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

static int read_request(const struct weir_options *options, struct weir_drops_wanted *ret_wanted,
			struct weir_diag *diag)
{
	struct weir_refusal refusal;
	uint64_t lately_ns = 0, now_ns = weir_host_now_ns();

	if (!options->wants_dropped && options->lasts) {
		weir_diag_error(diag, NULL, NULL, "add '--dropped'", "'--since' needs '--dropped'");
		return -EINVAL;
	}
	if (options->lasts && weir_parse_duration(options->lasts, &lately_ns, &refusal)) {
		weir_diag_error(diag, NULL, NULL, refusal.hint, "--since: %s", refusal.message);
		return -EINVAL;
	}
	*ret_wanted = (struct weir_drops_wanted){
		.rule = options->rule,
		.since_ns = lately_ns && lately_ns < now_ns ? now_ns - lately_ns : 0,
		.most = options->most,
	};
	return 0;
}

static int show_drops(const struct weir_instance *instance, const struct weir_drops_wanted *wanted, bool wants_json,
		      struct weir_diag *diag)
{
	_cleanup_(weir_drops_free) struct weir_drops drops = {};
	int err = weir_drops_read(instance, wanted, &drops, diag);

	if (err)
		return err;
	if (wants_json)
		return weir_json_print(weir_drops_describe(instance, &drops), diag);
	weir_print_drops(instance, &drops);
	return weir_flush_results(diag);
}

static int show(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_flows_view_free) struct weir_flows_view view = {};
	struct weir_drops_wanted wanted;
	uint32_t rule_slot;
	int err = read_request(options, &wanted, diag);

	if (!err)
		err = weir_instance_open(options->instance, &instance, diag);
	if (!err && options->wants_dropped)
		return show_drops(instance, &wanted, options->wants_json, diag);
	if (!err)
		err = weir_instance_find_rule(instance, options->rule, &rule_slot, diag);
	if (!err)
		err = weir_flows_view_read(instance, rule_slot, options->most, &view, diag);
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
