// SPDX-License-Identifier: GPL-2.0-only
/* The summary of a replay, in words and as a JSON document. */
#include <inttypes.h>
#include <jansson.h>

#include "base/diag.h"
#include "base/util.h"
#include "kind/kind.h"
#include "print.h"
#include "print_breakers.h"
#include "print_connections.h"
#include "print_replay.h"
#include "rules/ruleset.h"

static uint64_t packets_per_second(const struct weir_replay_report *report)
{
	if (report->evaluating_ns == 0)
		return 0;
	return (unsigned __int128)report->totals.seen.packets * WEIR_NSEC_PER_SEC / report->evaluating_ns;
}

/* Add the last cells of a line in the two tables of names: packets and bytes of one tally, then of another. */
static void add_tallies(struct weir_table *table, const struct weir_tally *first, const struct weir_tally *second)
{
	weir_table_cell(table, "%llu", (unsigned long long)first->packets);
	weir_table_cell(table, "%llu", (unsigned long long)first->bytes);
	weir_table_cell(table, "%llu", (unsigned long long)second->packets);
	weir_table_cell(table, "%llu", (unsigned long long)second->bytes);
}

static void print_verdicts(const struct weir_totals *totals)
{
	static const char *const headings[] = {"verdict", ">packets", ">bytes"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	size_t i;

	for (i = 0; i < WEIR_VERDICT_COUNT; i++) {
		if (!totals->verdict[i].packets)
			continue;
		weir_table_cell(&table, "%s", weir_verdict_words[i]);
		weir_table_cell(&table, "%llu", (unsigned long long)totals->verdict[i].packets);
		weir_table_cell(&table, "%llu", (unsigned long long)totals->verdict[i].bytes);
	}
	weir_table_print(&table, stdout);
}

static void print_resources(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	static const char *const headings[] = {"resource", ">passed", ">bytes", ">blocked", ">bytes"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	size_t i;

	for (i = 0; i < ruleset->resource_count; i++) {
		weir_table_cell(&table, "%s", ruleset->resources[i].name);
		add_tallies(&table, &report->resources[i].passed, &report->resources[i].blocked);
	}
	weir_table_print(&table, stdout);
}

static void print_rules(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	static const char *const headings[] = {"rule",	 ">blocked", ">bytes",	      ">would drop",
					       ">bytes", ">delayed", ">mean delay ms"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	size_t i;

	for (i = 0; i < ruleset->rule_count; i++) {
		weir_table_cell(&table, "%s", ruleset->rules[i].name);
		add_tallies(&table, &report->rules[i].blocked, &report->rules[i].would_drop);
		weir_table_cell(&table, "%llu", (unsigned long long)report->rules[i].delayed);
		weir_table_cell(&table, "%.3f",
				report->rules[i].delayed ? report->rules[i].delay_ns / 1e6 / report->rules[i].delayed
							 : 0.0);
	}
	weir_table_print(&table, stdout);
}

/* The state at the end of the capture. */
static void print_connections(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	_cleanup_(weir_connection_tables_free) struct weir_connection_tables tables;
	char words[WEIR_WORDS_BYTES], whose[WEIR_WORDS_BYTES], limit[2 * WEIR_WORDS_BYTES];

	weir_connection_tables_begin(&tables);
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_kind *kind = weir_kind_of(&ruleset->rules[i]);

		if (!kind->counts_connections)
			continue;
		snprintf(limit, sizeof(limit), "%s %s",
			 weir_format_count(ruleset->rules[i].threshold_micro, kind->noun, words),
			 weir_format_whose_rule(ruleset, &ruleset->rules[i], whose));
		weir_connection_tables_add(&tables, ruleset->rules[i].name, limit, &report->rules[i].connections);
	}
	weir_connection_tables_print(&tables, stdout);
}

static bool has_flows(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	return weir_flow_of(ruleset, rule)->fields;
}

static void print_breakers(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	static const char *const headings[] = {WEIR_BREAKER_HEADINGS};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	char words[WEIR_WORDS_BYTES], whose[WEIR_WORDS_BYTES];
	size_t i;

	for (i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (!weir_kind_of(rule)->is_breaker)
			continue;
		weir_table_cell(&table, "%s", rule->name);
		weir_table_cell(&table, "%s, %s", weir_format_breaker(rule, words),
				weir_format_whose_rule(ruleset, rule, whose));
		weir_table_breaker(&table, &report->rules[i].breaker, rule->breaker.strategy, has_flows(ruleset, rule));
	}
	if (!table.cell_count)
		return;
	putchar('\n');
	weir_table_print(&table, stdout);
}

#define LIMITED_SHOWN 10

static void print_limited(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	static const char *const headings[] = {"limited flow", ">packets", ">bytes", "rule"};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};
	char words[WEIR_WORDS_BYTES];

	if (!report->limits.flows)
		return;
	for (size_t i = 0; i < report->limits.count && i < LIMITED_SHOWN; i++) {
		const struct weir_replay_limited *limited = &report->limits.most[i];

		weir_table_cell(&table, "%s",
				limited->identity.key_fields
					? weir_format_key(&limited->identity, &limited->dropped.key, report->interface,
							  words)
					: "(the whole resource)");
		weir_table_cell(&table, "%llu%s", (unsigned long long)limited->dropped.packets,
				limited->dropped.missed ? "+" : "");
		weir_table_cell(&table, "%llu", (unsigned long long)limited->dropped.bytes);
		weir_table_cell(&table, "%s%s", ruleset->rules[limited->rule].name,
				limited->dropped.is_observed ? " (would drop)" : "");
	}
	putchar('\n');
	weir_table_print(&table, stdout);
	printf("\n%" PRIu64 " limited flow%s", report->limits.flows, weir_plural(report->limits.flows));
	if (report->limits.missed)
		printf(", and others that each lost at most %" PRIu64 " packets; +: it may have lost that many more",
		       report->limits.missed);
	putchar('\n');
}

/* If false, the document looks as it does for incoming traffic only. */
static bool shows_out(const struct weir_replay_report *report)
{
	return report->shows_direction || report->out.packets;
}

static void print_duration(uint64_t ns)
{
	printf("%" PRIu64 ".%09" PRIu64 " s", (uint64_t)(ns / WEIR_NSEC_PER_SEC), (uint64_t)(ns % WEIR_NSEC_PER_SEC));
}

void weir_replay_print_text(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	if (ruleset->settings.observes)
		puts("settings.mode is observe: when attached, nothing is dropped; these are the drops without it\n");
	const struct weir_totals *totals = &report->totals;

	printf("%llu packets, %llu bytes, in ", (unsigned long long)totals->seen.packets,
	       (unsigned long long)totals->seen.bytes);
	print_duration(report->latest_ns - report->earliest_ns);
	printf(" of the capture's time");
	if (report->cut_frames)
		printf("; %" PRIu64 " cut short by the capture", report->cut_frames);
	if (shows_out(report))
		printf("; %llu outgoing", (unsigned long long)report->out.packets);
	printf("\nevaluated in ");
	print_duration(report->evaluating_ns);
	printf(", %" PRIu64 " packets a second\n\n", packets_per_second(report));

	print_verdicts(totals);
	if (ruleset->resource_count) {
		putchar('\n');
		print_resources(ruleset, report);
	}
	if (ruleset->rule_count) {
		putchar('\n');
		print_rules(ruleset, report);
		print_connections(ruleset, report);
		print_breakers(ruleset, report);
		print_limited(ruleset, report);
	}
}

static json_t *json_limited(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	json_t *flows = json_array();

	for (size_t i = 0; i < report->limits.count; i++) {
		const struct weir_replay_limited *limited = &report->limits.most[i];
		const struct weir_dropped_flow *dropped = &limited->dropped;
		const struct weir_ruleset_rule *rule = &ruleset->rules[limited->rule];

		weir_json_append(
			&flows,
			json_pack("{s:s, s:s?, s:o, s:b, s:I, s:I, s:I, s:I, s:I}", "rule", rule->name, "resource",
				  rule->system ? NULL : weir_resource_of(ruleset, rule)->name, "key",
				  limited->identity.key_fields
					  ? weir_json_key(&limited->identity, &dropped->key, report->interface)
					  : json_object(),
				  "wouldDrop", dropped->is_observed, "packets", (json_int_t)dropped->packets, "bytes",
				  (json_int_t)dropped->bytes, "missedPacketsMax", (json_int_t)dropped->missed,
				  "firstNs", (json_int_t)dropped->first_ns, "lastNs", (json_int_t)dropped->last_ns));
	}
	return json_pack("{s:I, s:I, s:o}", "count", (json_int_t)report->limits.flows, "missedPacketsMax",
			 (json_int_t)report->limits.missed, "flows", flows);
}

static json_t *json_verdicts(const struct weir_totals *totals)
{
	json_t *verdicts = json_object();
	size_t i;

	for (i = 0; i < WEIR_VERDICT_COUNT; i++)
		json_object_set_new(verdicts, weir_verdict_names[i], weir_json_tally(&totals->verdict[i]));
	return verdicts;
}

static json_t *json_resources(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	json_t *resources = json_array();
	size_t i;

	for (i = 0; i < ruleset->resource_count; i++)
		weir_json_append(&resources, json_pack("{s:s, s:o, s:o}", "name", ruleset->resources[i].name, "passed",
						       weir_json_tally(&report->resources[i].passed), "blocked",
						       weir_json_tally(&report->resources[i].blocked)));
	return resources;
}

static json_t *json_rule(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule,
			 const struct weir_replay_rule *report)
{
	bool counts_connections = weir_kind_of(rule)->counts_connections;

	return json_pack("{s:s, s:s?, s:s, s:o, s:o, s:I, s:I, s:o*, s:o*, s:o*}", "name", rule->name, "resource",
			 rule->system ? NULL : weir_resource_of(ruleset, rule)->name, "mode",
			 rule->observes ? "observe" : "enforce", "blocked", weir_json_tally(&report->blocked),
			 "wouldDrop", weir_json_tally(&report->would_drop), "delayed", (json_int_t)report->delayed,
			 "delayNs", (json_int_t)report->delay_ns, "connections",
			 counts_connections ? weir_json_connections(&report->connections) : NULL, "penalties",
			 rule->penalty_ms ? json_integer(report->penalties) : NULL, "breaker",
			 weir_kind_of(rule)->is_breaker
				 ? weir_json_breaker_sum(&report->breaker, rule->breaker.strategy,
							 has_flows(ruleset, rule))
				 : NULL);
}

static json_t *json_rules(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	json_t *rules = json_array();
	size_t i;

	for (i = 0; i < ruleset->rule_count; i++)
		weir_json_append(&rules, json_rule(ruleset, &ruleset->rules[i], &report->rules[i]));
	return rules;
}

int weir_replay_print_json(const struct weir_ruleset *ruleset, const struct weir_replay_report *report,
			   struct weir_diag *diag)
{
	json_t *document;

	document = json_pack("{s:I, s:I, s:I, s:b, s:{s:o, s:o*, s:o}, s:o, s:o, s:o, s:I, s:I, s:I}", "earliestNs",
			     (json_int_t)report->earliest_ns, "latestNs", (json_int_t)report->latest_ns, "cutShort",
			     (json_int_t)report->cut_frames, "isDamaged", report->is_damaged, "totals", "seen",
			     weir_json_tally(&report->totals.seen), "out",
			     shows_out(report) ? weir_json_tally(&report->out) : NULL, "verdicts",
			     json_verdicts(&report->totals), "resources", json_resources(ruleset, report), "rules",
			     json_rules(ruleset, report), "limited", json_limited(ruleset, report), "flowsPerCpu",
			     (json_int_t)report->flows_per_cpu, "judgingNs", (json_int_t)report->evaluating_ns,
			     "packetsPerSecond", (json_int_t)packets_per_second(report));
	return weir_json_print(document, diag);
}
