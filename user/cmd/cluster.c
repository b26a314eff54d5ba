// SPDX-License-Identifier: GPL-2.0-only
/* weir cluster: limits that hosts share. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "cmd.h"
#include "options.h"
#include "print.h"
#include "report/share_reasons.h"
#include "report/shared_limits.h"

const struct weir_command weir_cluster_command = {
	.name = "cluster",
	.options = "INjWCh",
	.means_attached = true,
	.arguments = "status | explain RULE | forget HOST",
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
		 "all hosts together may exceed the limit by that much.",
	.example = "  weir cluster status\n"
		   "  weir cluster status --json | jq '.rules[].share'\n"
		   "  weir cluster explain dns\n"
		   "  weir cluster forget edge-7",
};

static bool has_flow_key(const struct weir_cluster_view *view)
{
	for (size_t i = 0; i < view->rule_count; i++)
		if (view->rules[i].rule->identity.key_fields)
			return true;
	return false;
}

static void add_share(struct weir_table *table, const struct weir_cluster_view *view, size_t i, bool shows_flows)
{
	const struct weir_shared_view *rule = &view->rules[i];
	const struct weir_share_stages *stages = &rule->shared.stages[rule->shared.version & 1];
	char words[WEIR_WORDS_BYTES], lease[WEIR_SHARE_WORDS_BYTES];

	weir_table_cell(table, "%s", rule->rule->name);
	weir_table_cell(table, "%s", weir_format_limit(rule->rule, words));
	weir_table_cell(table, "%llu", (unsigned long long)rule->in_force);
	weir_table_cell(table, "%llu", (unsigned long long)rule->shared.wanted);
	weir_table_cell(table, "%llu", (unsigned long long)stages->units[WEIR_SHARE_FALLEN_BACK]);
	weir_table_cell(table, "%u", rule->shared.hosts);
	if (shows_flows && rule->rule->identity.key_fields)
		weir_table_cell(table, "%u", rule->shared.flows);
	else if (shows_flows)
		weir_table_cell(table, "-");
	weir_table_cell(table, "%s", weir_share_words(rule, view->now_ns, lease));
}

/* If no rule has a key, the column for flows is left out, since it is as wide as a limit in words. */
static void print_shares(const struct weir_cluster_view *view)
{
	static const char *const with_flows[] = {"rule",   "limit",  ">share", ">wanted",
						 ">alone", ">hosts", ">flows", "lease"};
	static const char *const without[] = {"rule", "limit", ">share", ">wanted", ">alone", ">hosts", "lease"};
	const bool shows_flows = has_flow_key(view);
	_cleanup_(weir_table_free) struct weir_table table = {
		.headings = shows_flows ? with_flows : without,
		.columns = shows_flows ? ARRAY_SIZE(with_flows) : ARRAY_SIZE(without),
	};

	for (size_t i = 0; i < view->rule_count; i++)
		add_share(&table, view, i, shows_flows);
	weir_table_print(&table, stdout);
}

/* Add how much longer the part is reserved. */
static void add_reserved(struct weir_table *table, const struct weir_shared_view *rule,
			 const struct weir_ledger_host *host)
{
	const int64_t left_us = weir_ledger_reserved_us(rule, host);

	if (!left_us)
		weir_table_cell(table, "-");
	else if (left_us == INT64_MAX)
		weir_table_cell(table, "for ever");
	else if (left_us >= 120000000)
		weir_table_cell(table, "%lld min", (long long)(left_us / 60000000));
	else
		weir_table_cell(table, "%lld s", (long long)(left_us / 1000000));
}

static void print_ledgers(const struct weir_cluster_view *view)
{
	static const char *const headings[] = {"rule", "host", "state", ">holds", ">alone", ">wanted", ">reserved"};
	_cleanup_(weir_table_free) struct weir_table table = {
		.headings = headings,
		.columns = ARRAY_SIZE(headings),
	};

	for (size_t i = 0; i < view->rule_count; i++) {
		for (size_t h = 0; h < view->rules[i].host_count; h++) {
			const struct weir_ledger_host *host = &view->rules[i].hosts[h];

			weir_table_cell(&table, "%s", view->rules[i].rule->name);
			weir_table_cell(&table, "%s", host->name);
			weir_table_cell(&table, "%s", weir_ledger_state(host));
			weir_table_cell(&table, "%llu", (unsigned long long)host->hold);
			weir_table_cell(&table, "%llu", (unsigned long long)host->fallback);
			if (host->wanted < 0)
				weir_table_cell(&table, "-");
			else
				weir_table_cell(&table, "%lld", (long long)host->wanted);
			add_reserved(&table, &view->rules[i], host);
		}
		if (view->rules[i].owed) {
			weir_table_cell(&table, "%s", view->rules[i].rule->name);
			weir_table_cell(&table, "(hosts of a lost ledger)");
			weir_table_cell(&table, "silent");
			weir_table_cell(&table, "%llu", (unsigned long long)view->rules[i].owed);
			weir_table_cell(&table, "%llu", (unsigned long long)view->rules[i].owed);
			weir_table_cell(&table, "-");
			weir_table_cell(&table, "-");
		}
	}
	putchar('\n');
	weir_table_print(&table, stdout);
}

/* Print what nobody can use now. */
static void print_reserved(const struct weir_cluster_view *view)
{
	for (size_t i = 0; i < view->rule_count; i++) {
		const struct weir_shared_view *rule = &view->rules[i];

		if (rule->reserved)
			printf("rule %s: %u %% of %llu is reserved for silent hosts\n", rule->rule->name,
			       weir_ledger_percent(rule->reserved, rule->threshold),
			       (unsigned long long)rule->threshold);
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
	if (view->reserved_percent) {
		putchar('\n');
		print_reserved(view);
	}
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
	static const char *const headings[] = {"host", "state", ">wants", ">is due", ">holds", ">alone"};
	static const char *const numbers[] = {"wanted", "due", "hold", "fallback"};
	_cleanup_(weir_table_free) struct weir_table table = {
		.headings = headings,
		.columns = ARRAY_SIZE(headings),
	};

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

	if (shows ? of != NULL : !of || !(explains || forgets))
		return weir_diag_error(
			diag, NULL, NULL,
			"write 'weir cluster status', 'weir cluster explain RULE' or 'weir cluster forget HOST'",
			"'weir cluster' needs a subcommand");
	err = weir_instance_open(options->instance, &instance, diag);
	if (err)
		return err;
	if (shows)
		return show(instance, options->wants_json, diag);
	if (explains)
		return explain(instance, of, options->wants_json, diag);
	err = weir_cluster_forget(instance, of, diag);
	if (!err)
		fprintf(stderr, "weir cluster: host '%s' is forgotten\n", of);
	return err;
}

int weir_cmd_cluster(int argc, char **argv)
{
	return weir_command_run(&weir_cluster_command, argc, argv, cluster);
}
