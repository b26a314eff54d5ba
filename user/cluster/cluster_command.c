// SPDX-License-Identifier: GPL-2.0-only
/* weir cluster: limits that hosts share. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cluster/ledgers.h"
#include "tables/entry_state.h"
#include "cluster/cluster_rows.h"

static const struct weir_option own_options[] = {
	{'q', false, "lost", NULL, "with 'forget', instead of a host: what is reserved for hosts of a lost ledger"},
	{},
};

static const struct weir_command weir_cluster_command = {
	.name = "cluster",
	.own_options = own_options,
	.options = "INjWCh",
	.means_attached = true,
	.arguments = "status | explain RULE | forget HOST | forget --lost",
	.arguments_min = 1,
	.arguments_max = 2,
	.about = "'status' shows, for each rule that hosts share (clusterMode), what this host may admit now, and "
		 "how long its lease still lasts or how long it has been without one. It also shows what the ledger "
		 "in the store records about all hosts: whether each is live, silent (not heard from for a second) "
		 "or has left; how much of the threshold it holds, would keep without the store, and asked for; and "
		 "how long the part of a silent host stays reserved (settings.cluster.silentFor). 'flows' is the "
		 "number of single flows that hosts share by demand now.\n\n"
		 "'explain' shows why this host's share of a rule is what it is. It lists the hosts with what each "
		 "wants and is due, shows the lease (or since when there is none, and why), and says what happens "
		 "next, and when.\n\n"
		 "Both query the store themselves, for at most three seconds.\n\n"
		 "'forget' removes from the ledgers a host that will not come back. Otherwise, its part stays "
		 "reserved until it has been silent for silentFor. If a forgotten host is alive but out of reach, "
		 "all hosts together may exceed the limit by that much. 'forget --lost' does the same for what "
		 "'status' shows as '(hosts of a lost ledger)': hosts that another store knew, or a ledger that was "
		 "lost, and that have not come back since.",
	.example = "  weir cluster status\n"
		   "  weir cluster status --json | jq '.rules[].share'\n"
		   "  weir cluster explain dns\n"
		   "  weir cluster forget edge-7\n"
		   "  weir cluster forget --lost",
};

/* If no rule has a key, the column for flows is left out, since it is as wide as a limit in words. */
static void print_shares(const struct weir_cluster_view *view)
{
	_cleanup_(weir_table_free) struct weir_table table = {};
	bool has_flow_key = false;

	for (size_t i = 0; i < view->rule_count; i++)
		has_flow_key |= view->rules[i].rule->identity.key_fields != 0;
	weir_table_list(&table, weir_describe_share, view, view->rules, view->rule_count, sizeof(*view->rules));
	if (!has_flow_key)
		weir_table_leave_out(&table, ">flows");
	weir_table_print(&table, stdout);
}

static void print_ledgers(const struct weir_cluster_view *view)
{
	_cleanup_(weir_table_free) struct weir_table table = {};

	weir_table_head(&table, weir_describe_ledger_host, NULL);
	for (size_t i = 0; i < view->rule_count; i++) {
		const struct weir_shared_view *rule = &view->rules[i];

		for (size_t h = 0; h < rule->host_count; h++)
			weir_table_add(&table, weir_describe_ledger_host, rule, &rule->hosts[h]);
		if (rule->owed)
			weir_table_add(&table, weir_describe_owed, NULL, rule);
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

/* Print what nobody can use now, and what to do. */
static void print_reserved(const struct weir_cluster_view *view)
{
	const char *before = "\n";

	for (size_t i = 0; i < view->rule_count; i++) {
		const struct weir_shared_view *rule = &view->rules[i];

		if (rule->reserved || rule->other_version[0])
			fputs(before, stdout), before = "";
		if (rule->reserved)
			printf("rule %s: %u %% of %llu is reserved for silent hosts\n", rule->rule->name,
			       weir_reserved_percent(rule->reserved, rule->threshold),
			       (unsigned long long)rule->threshold);
		if (rule->owed)
			printf("rule %s: %llu is reserved for hosts that another ledger knew, until they come; if they "
			       "will not, 'weir cluster forget --lost' releases it\n",
			       rule->rule->name, (unsigned long long)rule->owed);
		if (rule->other_version[0])
			printf("rule %s: the ledger was written by another version of weir (%s, not %s): its hosts "
			       "keep at most what they have without the store until all have the same version\n",
			       rule->rule->name, rule->other_version, WEIR_LEDGER_VERSION);
	}
}

static void print_view(const struct weir_cluster_view *view)
{
	const struct weir_cluster_info *cluster = &view->instance->info.cluster;

	if (!view->rule_count) {
		printf("instance %s: no rule is shared with other hosts\n", view->instance->name);
		return;
	}
	printf("instance %s: host %s of cluster %s\n", view->instance->name, view->host, cluster->name);
	if (view->answers)
		printf("store %s: answers after %.1f ms\n"
		       "\n",
		       cluster->redis, (double)view->took_ns / 1000000);
	else
		printf("store %s: not reachable: %s\n"
		       "\n",
		       cluster->redis, view->trouble);
	print_shares(view);
	if (!view->answers)
		return;
	print_ledgers(view);
	print_reserved(view);
}

static int show(const struct weir_instance *instance, bool wants_json, struct weir_diag *diag)
{
	_cleanup_(weir_cluster_view_free) struct weir_cluster_view view = {};
	int err = weir_cluster_view_read(instance, NULL, &view, diag);

	if (err)
		return err;
	if (wants_json)
		return weir_json_print(weir_cluster_describe(&view), diag);
	print_view(&view);
	return weir_flush_results(diag);
}

static const struct weir_shared_view *find_rule(const struct weir_cluster_view *view, const char *name)
{
	for (size_t i = 0; i < view->rule_count; i++)
		if (!strcmp(view->rules[i].rule->name, name))
			return &view->rules[i];
	return NULL;
}

static void print_dues(const json_t *hosts)
{
	static const char *const numbers[] = {"wanted", "due", "hold", "fallback"};
	_cleanup_(weir_table_free) struct weir_table table = {
		.headings = {"host", "state", ">wants", ">is due", ">holds", ">alone"}, .columns = 6};

	for (size_t i = 0; i < json_array_size(hosts); i++) {
		const json_t *host = json_array_get(hosts, i);

		weir_table_cell(&table, "%s", json_string_value(json_object_get(host, "host")));
		weir_table_cell(&table, "%s", json_string_value(json_object_get(host, "state")));
		for (size_t n = 0; n < ARRAY_SIZE(numbers); n++) {
			const json_t *number = json_object_get(host, numbers[n]);

			if (json_is_integer(number))
				weir_table_cell(&table, "%lld", (long long)json_integer_value(number));
			else
				weir_table_cell(&table, "-");
		}
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

#define TOPIC_COLUMNS 10 /* "left alone" */

static int print_reasons(const struct weir_cluster_view *view, const char *rule, const json_t *reasons,
			 struct weir_diag *diag)
{
	const json_t *words = json_object_get(reasons, "words"), *hosts = json_object_get(reasons, "ledger");

	if (!reasons)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot explain rule '%s'", rule);
	printf("rule %s of instance %s: host %s of cluster %s\n", rule, view->instance->name, view->host,
	       view->instance->info.cluster.name);
	for (size_t i = 0; i < json_array_size(words); i++) {
		const json_t *line = json_array_get(words, i);

		weir_print_topic(json_string_value(json_object_get(line, "topic")), TOPIC_COLUMNS,
				 json_string_value(json_object_get(line, "text")), stdout);
	}
	if (json_array_size(hosts))
		print_dues(hosts);
	return weir_flush_results(diag);
}

static int explain(const struct weir_instance *instance, const char *name, bool wants_json, struct weir_diag *diag)
{
	_cleanup_(weir_cluster_view_free) struct weir_cluster_view view = {};
	const struct weir_shared_view *rule;
	json_t *reasons;
	int err = weir_cluster_view_read(instance, name, &view, diag);

	if (err)
		return err;
	rule = find_rule(&view, name);
	if (!rule)
		return weir_diag_error(diag, NULL, NULL, "'weir cluster status' lists the shared rules",
				       "rule '%s' of instance '%s' is not shared by hosts", name, instance->name);
	reasons = weir_share_explain(&view, rule);
	if (wants_json)
		return weir_json_print(reasons, diag);
	err = print_reasons(&view, name, reasons, diag);
	json_decref(reasons);
	return err;
}

static int cluster(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	const char *what = options->arguments[0], *of = options->argument_count > 1 ? options->arguments[1] : NULL;
	bool shows = !strcmp(what, "status"), explains = !strcmp(what, "explain"), forgets = !strcmp(what, "forget");
	int err;

	if ((shows || options->means_lost) ? of != NULL : !of || !(explains || forgets))
		return weir_diag_error(
			diag, NULL, NULL,
			"write 'weir cluster status', 'weir cluster explain RULE', 'weir cluster forget HOST' or "
			"'weir cluster forget --lost'",
			"'weir cluster' needs a subcommand");
	if (options->means_lost && !forgets)
		return weir_diag_error(diag, NULL, NULL, "write 'weir cluster forget --lost'",
				       "--lost is only for 'forget'");
	err = weir_instance_open(options->instance, &instance, diag);
	if (err)
		return err;
	if (shows)
		return show(instance, options->wants_json, diag);
	if (explains && of)
		return explain(instance, of, options->wants_json, diag);
	err = weir_cluster_forget(instance, of, diag);
	if (!err && of)
		fprintf(stderr, "weir cluster: host '%s' is forgotten\n", of);
	else if (!err)
		fprintf(stderr, "weir cluster: nothing is reserved for hosts of a lost ledger any more\n");
	return err;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_cluster_command, argc, argv, cluster);
}

const struct weir_command_entry weir_cluster_entry = {&weir_cluster_command, run_command,
						      "show the shares of limits that hosts share; forget a host"};
