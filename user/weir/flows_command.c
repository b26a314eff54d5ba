// SPDX-License-Identifier: GPL-2.0-only
/* weir flows: how close flows are to their limits now. */
#include <errno.h>

#include "base/util.h"
#include "cli/command.h"
#include "host/host.h"
#include "cli/options.h"
#include "cli/print.h"
#include "report/busy_flows.h"
#include "report/drops.h"
#include "rules/quantity.h"
#include "weir/weir.h"

static const struct weir_option own_options[] = {
	{'d', false, "dropped", NULL, "flows that lost packets, most packets first"},
	{'s', false, "since", "TIME", "with --dropped, only flows that lost packets in the last TIME: 90s, 10m, 1h30m"},
	{'r', false, "rule", "NAME", "only flows of this rule; leaves out windows marked '?'"},
	{},
};

static const struct weir_command weir_flows_command = {
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
		 "resource. For prioritized resources, 'occupied' counts units of later buckets.\n\n"
		 "Four kinds of rules have tables of their own. For metricType Concurrency, it lists the flows with "
		 "the most connections; for blockDurationInMs, the penalised flows, longest remaining penalty first; "
		 "for circuit breakers, those that are open or closest to opening; for fairBy, the children of "
		 "contended flows that want most: what they offered in an interval, about what they got, and what each "
		 "may have.\n\n"
		 "--dropped shows which flows have lost packets since the attach, how many, and when. For rules that "
		 "observe, it shows what would have been dropped.",
	.example = "  weir flows -n 5\n"
		   "  weir flows --rule dns\n"
		   "  weir flows --dropped --since 10m",
};

static void print_list(weir_describer *describe, const void *context, const void *records, size_t count,
		       size_t record_bytes, const char *left_out)
{
	_cleanup_(weir_table_free) struct weir_table table = {};

	weir_table_list(&table, describe, context, records, count, record_bytes);
	weir_table_leave_out(&table, left_out);
	weir_table_print(&table, stdout);
}

static void print_connections(const struct weir_instance *instance, const struct weir_connection_flows *flows)
{
	print_list(weir_describe_connection_use, instance, flows->most, flows->count, sizeof(*flows->most), "");
	printf("%s%llu flow%s with connections\n", flows->count ? "\n" : "", (unsigned long long)flows->active,
	       weir_plural(flows->active));
}

static void print_breakers(const struct weir_instance *instance, const struct weir_breaker_flows *flows)
{
	print_list(weir_describe_breaker_use, instance, flows->most, flows->count, sizeof(*flows->most), "");
	printf("%s%llu open, %llu half-open\n", flows->count ? "\n" : "", (unsigned long long)flows->open,
	       (unsigned long long)flows->half_open);
}

static void print_children(const struct weir_instance *instance, const struct weir_fair_flows *flows)
{
	print_list(weir_describe_fair_flow, instance, flows->most, flows->count, sizeof(*flows->most), "");
	printf("%s%llu child%s of contended flows\n", flows->count ? "\n" : "", (unsigned long long)flows->active,
	       flows->active == 1 ? "" : "ren");
}

static void print_penalties(const struct weir_instance *instance, const struct weir_penalised_flows *flows)
{
	print_list(weir_describe_penalty, instance, flows->longest, flows->count, sizeof(*flows->longest), "");
	printf("%s%llu penalised flow%s\n", flows->count ? "\n" : "", (unsigned long long)flows->active,
	       weir_plural(flows->active));
}

/* Explain the marks in the table. */
static void print_legend(const struct weir_drops *drops)
{
	uint64_t missed = 0;
	bool is_estimated = false;

	for (size_t i = 0; i < drops->count; i++) {
		is_estimated |= drops->worst[i].is_estimated;
		if (drops->worst[i].missed > missed)
			missed = drops->worst[i].missed;
	}
	if (is_estimated)
		printf("~ estimated from samples, as there were too many drops to count each one\n");
	if (missed)
		printf("+ up to %llu more, lost before the flow was listed\n", (unsigned long long)missed);
	if (drops->missed)
		printf("a flow that is not listed lost at most %llu\n", (unsigned long long)drops->missed);
}

static void print_sum(const struct weir_drops *drops)
{
	const unsigned long long observed = drops->observed, dropped = drops->flows - drops->observed;

	if (drops->count)
		putchar('\n');
	if (dropped || !observed)
		printf("%llu dropped flow%s%s", dropped, weir_plural(dropped), observed ? " and " : "");
	if (observed)
		printf("%llu flow%s that would be dropped", observed, weir_plural(observed));
	printf(", %llu packet%s\n", (unsigned long long)drops->packets, weir_plural(drops->packets));
}

static void print_drops(const struct weir_instance *instance, const struct weir_drops *drops)
{
	const struct weir_dropped_view view = {instance, drops};
	_cleanup_(weir_table_free) struct weir_table table = {};

	weir_table_list(&table, weir_describe_dropped, &view, drops->worst, drops->count, sizeof(*drops->worst));
	if (drops->observed && drops->observed == drops->flows)
		table.headings[table.columns - 1] = "flow that would be dropped";
	weir_table_print(&table, stdout);
	print_sum(drops);
	print_legend(drops);
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
	print_drops(instance, &drops);
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
	if (view.has_windows) {
		print_list(weir_describe_flow_use, instance, view.flows.busiest, view.flows.count,
			   sizeof(*view.flows.busiest),
			   weir_kind_is_used(instance, WEIR_KIND_OCCUPY) ? "" : ">occupied");
		printf("%s%llu active flow%s\n", view.flows.count ? "\n" : "", (unsigned long long)view.flows.active,
		       weir_plural(view.flows.active));
	}
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
		print_penalties(instance, &view.penalties);
	}
	if (view.has_children) {
		putchar('\n');
		print_children(instance, &view.children);
	}
	return weir_flush_results(diag);
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_flows_command, argc, argv, show);
}

const struct weir_command_entry weir_flows_entry = {&weir_flows_command, run_command,
						    "show the busiest flows, or those that lost packets"};
