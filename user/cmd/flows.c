// SPDX-License-Identifier: GPL-2.0-only
/* weir flows: who is how near to a limit now. */
#include "base/util.h"
#include "cmd.h"
#include "kind/kind.h"
#include "options.h"
#include "print.h"
#include "print_breakers.h"
#include "print_connections.h"
#include "print_penalties.h"
#include "watch/borrowing.h"
#include "watch/breakers.h"
#include "watch/connections.h"
#include "watch/flows.h"

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

static const struct weir_rule_info *rule_of(const struct weir_instance *instance, const struct weir_flow_use *use)
{
	return use->rule_slot == WEIR_SLOT_UNKNOWN ? NULL : &instance->rules[use->rule_slot];
}

static double share(const struct weir_flow_use *use)
{
	return use->threshold ? (double)use->units / use->threshold : 0;
}

static json_t *describe_threshold(const struct weir_flow_use *use)
{
	return use->has_threshold ? json_integer(use->threshold) : json_null();
}

static json_t *describe_share(const struct weir_flow_use *use)
{
	return use->has_threshold ? json_real(share(use)) : json_null();
}

static json_t *describe_use(const struct weir_instance *instance, const struct weir_flow_use *use)
{
	const struct weir_rule_info *rule = rule_of(instance, use);

	if (!rule)
		return json_pack("{s:n, s:n, s:n, s:I, s:n, s:n, s:n}", "rule", "resource", "key", "units",
				 (json_int_t)use->units, "unit", "threshold", "share");
	return json_pack("{s:s, s:s, s:o, s:I, s:o*, s:s, s:o, s:o}", "rule", rule->name, "resource",
			 rule->resource_name, "key",
			 use->has_key		     ? weir_json_key(&rule->identity, &use->key)
			 : rule->identity.key_fields ? json_null()
						     : json_object(),
			 "units", (json_int_t)use->units, "borrowed",
			 weir_kind_of_info(rule)->lends ? json_integer(use->borrowed) : NULL, "unit",
			 rule->identity.counts_bytes ? "bytes" : "packets", "threshold", describe_threshold(use),
			 "share", describe_share(use));
}

static double connection_share(const struct weir_connection_use *use)
{
	return use->threshold ? (double)use->figures.now / use->threshold : 0;
}

/* What connections a flow has is told in the words of `weir stats`. */
static json_t *describe_connection_use(const struct weir_instance *instance, const struct weir_connection_use *use)
{
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "rule", rule->name, "resource", rule->resource_name, "key",
			 rule->identity.key_fields ? weir_json_key(&rule->identity, &use->key) : json_object(),
			 "threshold", use->has_threshold ? json_integer(use->threshold) : json_null(), "share",
			 use->has_threshold ? json_real(connection_share(use)) : json_null(), "connections",
			 weir_json_connections(&use->figures));
}

static json_t *describe_connections(const struct weir_instance *instance, const struct weir_connection_flows *flows)
{
	json_t *most = json_array();

	for (size_t i = 0; i < flows->count; i++)
		weir_json_append(&most, describe_connection_use(instance, &flows->most[i]));
	return json_pack("{s:I, s:o}", "active", (json_int_t)flows->active, "flows", most);
}

static json_t *describe_breaker_use(const struct weir_instance *instance, const struct weir_breaker_use *use)
{
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];

	return json_pack("{s:s, s:s, s:o, s:o}", "rule", rule->name, "resource", rule->resource_name, "key",
			 rule->identity.key_fields ? weir_json_key(&rule->identity, &use->key) : json_object(),
			 "breaker", weir_json_breaker(&use->view, rule->breaker.strategy));
}

static json_t *describe_breakers(const struct weir_instance *instance, const struct weir_breaker_flows *flows)
{
	json_t *most = json_array();

	for (size_t i = 0; i < flows->count; i++)
		weir_json_append(&most, describe_breaker_use(instance, &flows->most[i]));
	return json_pack("{s:I, s:I, s:o}", "open", (json_int_t)flows->open, "halfOpen", (json_int_t)flows->half_open,
			 "flows", most);
}

/* connections, breakers, penalties: NULL when no rule has them. */
static json_t *describe(const struct weir_instance *instance, const struct weir_flows *flows,
			const struct weir_connection_flows *connections, const struct weir_breaker_flows *breakers,
			const struct weir_penalised_flows *penalties)
{
	json_t *busiest = json_array();

	for (size_t i = 0; i < flows->count; i++)
		weir_json_append(&busiest, describe_use(instance, &flows->busiest[i]));
	return json_pack("{s:s, s:I, s:o, s:o*, s:o*, s:o*}", "instance", instance->name, "active",
			 (json_int_t)flows->active, "flows", busiest, "connections",
			 connections ? describe_connections(instance, connections) : NULL, "breakers",
			 breakers ? describe_breakers(instance, breakers) : NULL, "penalties",
			 penalties ? weir_json_penalties(instance, penalties) : NULL);
}

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
	const struct weir_rule_info *rule = rule_of(instance, use);
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s", rule ? rule->name : "?");
	weir_table_cell(table, "%llu", (unsigned long long)use->units);
	if (lends)
		weir_table_cell(table, "%llu", (unsigned long long)use->borrowed);
	print_threshold(table, use->has_threshold, use->threshold, share(use));
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
	print_threshold(table, use->has_threshold, use->threshold, connection_share(use));
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

/* Whether some rule is about something else: else there is nothing to say of flows in windows. */
static bool has_other_rules(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_kind *kind = weir_kind_of_info(&instance->rules[instance->rule_order[i]]);

		if (!kind->counts_connections && !kind->is_breaker)
			return true;
	}
	return false;
}

static int show(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_flows_free) struct weir_flows flows = {};
	_cleanup_(weir_connection_flows_free) struct weir_connection_flows connections = {};
	_cleanup_(weir_penalised_flows_free) struct weir_penalised_flows penalties = {};
	_cleanup_(weir_breaker_flows_free) struct weir_breaker_flows breakers = {};
	bool counts_connections, has_breakers, has_others, penalises;
	int err = weir_instance_open(options->instance, &instance, diag);

	if (!err)
		err = weir_flows_read(instance, options->most, &flows, diag);
	if (!err)
		err = weir_connections_read_flows(instance, options->most, &connections, diag);
	if (!err)
		err = weir_breakers_read_flows(instance, options->most, &breakers, diag);
	if (!err)
		err = weir_penalties_read(instance, options->most, &penalties, diag);
	if (err)
		return err;
	counts_connections = weir_connections_are_counted(instance);
	has_breakers = weir_has_breaker_rules(instance);
	has_others = (!counts_connections && !has_breakers) || has_other_rules(instance);
	penalises = weir_penalties_are_given(instance);
	if (options->wants_json)
		return weir_json_print(describe(instance, &flows, counts_connections ? &connections : NULL,
						has_breakers ? &breakers : NULL, penalises ? &penalties : NULL),
				       diag);
	if (has_others)
		print_text(instance, &flows);
	if (counts_connections && has_others)
		putchar('\n');
	if (counts_connections)
		print_connections(instance, &connections);
	if (has_breakers && (has_others || counts_connections))
		putchar('\n');
	if (has_breakers)
		print_breakers(instance, &breakers);
	if (penalises) {
		putchar('\n');
		weir_print_penalties(instance, &penalties);
	}
	return weir_flush_results(diag);
}

int weir_cmd_flows(int argc, char **argv)
{
	return weir_command_run(&weir_flows_command, argc, argv, show);
}
