// SPDX-License-Identifier: GPL-2.0-only
/* The summary of a replay, in words and as a JSON document. */
#include <inttypes.h>
#include <jansson.h>

#include "base/diag.h"
#include "base/util.h"
#include "kind/kind.h"
#include "cli/print.h"
#include "replay/replay.h"
#include "rules/ruleset.h"
#include "words/state_words.h"

static uint64_t packets_per_second(const struct weir_replay_report *report)
{
	if (report->evaluating_ns == 0)
		return 0;
	return (unsigned __int128)report->totals.seen.packets * WEIR_NSEC_PER_SEC / report->evaluating_ns;
}

/* ---- figures ---- */

/* The context of all. */
struct replayed {
	const struct weir_ruleset *ruleset;
	const struct weir_replay_report *report;
};

static void describe_resource(struct weir_figures *line, const void *context, const void *record)
{
	const struct replayed *replayed = context;
	const struct weir_replay_resource *resource = record;

	WEIR_TEXT(line, "name", "resource", replayed->ruleset->resources[resource - replayed->report->resources].name);
	WEIR_TALLY(line, "passed", ">passed", ">bytes", &resource->passed);
	WEIR_TALLY(line, "blocked", ">blocked", ">bytes", &resource->blocked);
}

static const struct weir_ruleset_rule *rule_of(const struct replayed *replayed, const struct weir_replay_rule *rule)
{
	return &replayed->ruleset->rules[rule - replayed->report->rules];
}

static json_t *resource_or_null(const struct replayed *replayed, const struct weir_ruleset_rule *rule)
{
	return rule->system ? json_null() : json_string(weir_resource_of(replayed->ruleset, rule)->name);
}

/* Of a line of headings. */
static const struct weir_ruleset_rule no_rule;

// NOLINTNEXTLINE(readability-function-size): a list, a figure a statement
static void describe_rule(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_replay_rule *report = record;
	const struct weir_ruleset_rule *rule = line->is_heading ? &no_rule : rule_of(context, record);

	WEIR_TEXT(line, "name", "rule", rule->name);
	WEIR_FIELD(line, "resource", resource_or_null(context, rule));
	WEIR_FIELD(line, "mode", json_string(rule->observes ? "observe" : "enforce"));
	WEIR_TALLY(line, "blocked", ">blocked", ">bytes", &report->blocked);
	WEIR_TALLY(line, "wouldDrop", ">would drop", ">bytes", &report->would_drop);
	WEIR_COUNT(line, "delayed", ">delayed", report->delayed);
	WEIR_FIGURE(line, "delayNs", ">mean delay ms", json_integer(report->delay_ns), "%.3f",
		    report->delayed ? report->delay_ns / 1e6 / report->delayed : 0.0);
	if (line->put)
		return;
	if (rule->metric == WEIR_METRIC_CONCURRENCY)
		WEIR_FIELD(line, "connections", weir_json_connections(&report->connections));
	if (rule->penalty_ms)
		WEIR_FIELD(line, "penalties", json_integer(report->penalties));
	if (rule->metric == WEIR_METRIC_REQUESTS)
		WEIR_FIELD(line, "breaker", weir_figures_describe(weir_describe_breaker_sum, NULL, &report->breaker));
}

static void describe_limited(struct weir_figures *line, const void *context, const void *record)
{
	const struct replayed *replayed = context;
	const struct weir_replay_limited *limited = record;
	const struct weir_key_labels *labels = replayed->report->limits.labels;
	const struct weir_dropped_flow *dropped = &limited->dropped;
	const struct weir_ruleset_rule *rule = line->is_heading ? &no_rule : &replayed->ruleset->rules[limited->rule];
	char words[WEIR_WORDS_BYTES];

	WEIR_FIGURE(line, "key", "limited flow",
		    weir_json_key(&limited->identity, &dropped->key, replayed->report->interface, labels), "%s",
		    limited->identity.key_fields ? weir_format_key(&limited->identity, &dropped->key,
								   replayed->report->interface, labels, words)
						 : "(the whole resource)");
	WEIR_FIGURE(line, "packets", ">packets", json_integer(dropped->packets), "%llu%s",
		    (unsigned long long)dropped->packets, dropped->missed ? "+" : "");
	WEIR_COUNT(line, "bytes", ">bytes", dropped->bytes);
	WEIR_FIGURE(line, "rule", "rule", json_string(rule->name), "%s%s", rule->name,
		    dropped->is_observed ? " (would drop)" : "");
	WEIR_FIELD(line, "resource", resource_or_null(replayed, rule));
	WEIR_FIELD(line, "wouldDrop", json_boolean(dropped->is_observed));
	WEIR_FIELD(line, "missedPacketsMax", json_integer(dropped->missed));
	WEIR_FIELD(line, "firstNs", json_integer(dropped->first_ns));
	WEIR_FIELD(line, "lastNs", json_integer(dropped->last_ns));
}

/* ---- text ---- */

static void print_verdicts(const struct weir_totals *totals)
{
	_cleanup_(weir_table_free) struct weir_table table = {.headings = {"verdict"}, .columns = 1};

	weir_table_head(&table, weir_describe_tally, NULL);
	for (size_t i = 0; i < WEIR_VERDICT_COUNT; i++) {
		if (!totals->verdict[i].packets)
			continue;
		weir_table_cell(&table, "%s", weir_verdict_words[i]);
		weir_table_add(&table, weir_describe_tally, NULL, &totals->verdict[i]);
	}
	weir_table_print(&table, stdout);
}

static void print_list(const struct replayed *replayed, weir_describer *describe, const void *records, size_t count,
		       size_t record_bytes)
{
	_cleanup_(weir_table_free) struct weir_table table = {};

	weir_table_list(&table, describe, replayed, records, count, record_bytes);
	putchar('\n');
	weir_table_print(&table, stdout);
}

/* The state at the end of the capture, of rules that are breakers or count connections: what lies at this offset. */
static void print_state(const struct replayed *replayed, bool of_breakers, bool shows_limit, weir_describer *describe,
			size_t offset)
{
	_cleanup_(weir_table_free) struct weir_table table = {.headings = {of_breakers ? "breaker" : "rule", "limit"},
							      .columns = 1 + shows_limit};
	char words[WEIR_WORDS_BYTES], whose[WEIR_WORDS_BYTES];

	weir_table_head(&table, describe, replayed);
	for (size_t i = 0; i < replayed->ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &replayed->ruleset->rules[i];

		if (rule->metric != (of_breakers ? WEIR_METRIC_REQUESTS : WEIR_METRIC_CONCURRENCY))
			continue;
		weir_table_cell(&table, "%s", rule->name);
		if (shows_limit)
			weir_table_cell(&table, of_breakers ? "%s, %s" : "%s %s",
					of_breakers ? weir_format_breaker(rule, words)
						    : weir_format_count(rule->threshold_micro, weir_kind_of(rule)->noun,
									words),
					weir_format_whose_rule(replayed->ruleset, rule, whose));
		weir_table_add(&table, describe, replayed, (const char *)&replayed->report->rules[i] + offset);
	}
	if (!table.cell_count)
		return;
	putchar('\n');
	weir_table_print(&table, stdout);
}

#define LIMITED_SHOWN 10

static void print_limited(const struct replayed *replayed)
{
	const struct weir_replay_limits *limits = &replayed->report->limits;

	if (!limits->flows)
		return;
	print_list(replayed, describe_limited, limits->most,
		   limits->count < LIMITED_SHOWN ? limits->count : LIMITED_SHOWN, sizeof(*limits->most));
	printf("\n%" PRIu64 " limited flow%s", limits->flows, weir_plural(limits->flows));
	if (limits->missed)
		printf(", and others that each lost at most %" PRIu64 " packets; +: it may have lost that many more",
		       limits->missed);
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

static bool has_out_rule(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (!ruleset->rules[i].system &&
		    weir_resource_of(ruleset, &ruleset->rules[i])->match.directions == WEIR_MATCHES_OUT)
			return true;
	return false;
}

/* What the capture does not say, and changes the verdicts. */
static void print_notes(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	if (report->zero_lengths)
		printf("note: %llu incoming packet%s IP length 0, which Linux drops as malformed. A host that leaves "
		       "segmentation to its card captures what it sends like that: if these went out, use --direction "
		       "out, which evaluates them by the frame's length\n",
		       (unsigned long long)report->zero_lengths, report->zero_lengths == 1 ? " has" : "s have");
	if (report->without_direction && has_out_rule(ruleset))
		printf("note: the capture does not record the direction of %llu packet%s, so %s evaluated as incoming "
		       "and met no rule of direction out; use --direction out if they went out\n",
		       (unsigned long long)report->without_direction, weir_plural(report->without_direction),
		       report->without_direction == 1 ? "it was" : "they were");
}

void weir_replay_print_text(const struct weir_ruleset *ruleset, const struct weir_replay_report *report)
{
	if (ruleset->settings.observes)
		puts("settings.mode is observe: when attached, nothing is dropped; these are the drops without it\n");
	const struct weir_totals *totals = &report->totals;
	const struct replayed replayed = {ruleset, report};

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
	printf(", %" PRIu64 " packets a second\n", packets_per_second(report));
	print_notes(ruleset, report);
	putchar('\n');
	print_verdicts(totals);
	if (ruleset->resource_count)
		print_list(&replayed, describe_resource, report->resources, ruleset->resource_count,
			   sizeof(*report->resources));
	if (ruleset->rule_count) {
		print_list(&replayed, describe_rule, report->rules, ruleset->rule_count, sizeof(*report->rules));
		print_state(&replayed, false, true, weir_describe_connections,
			    offsetof(struct weir_replay_rule, connections));
		print_state(&replayed, false, false, weir_describe_connection_ends,
			    offsetof(struct weir_replay_rule, connections));
		print_state(&replayed, true, true, weir_describe_breaker_sum,
			    offsetof(struct weir_replay_rule, breaker));
		print_limited(&replayed);
	}
}

int weir_replay_print_json(const struct weir_ruleset *ruleset, const struct weir_replay_report *report,
			   struct weir_diag *diag)
{
	const struct replayed replayed = {ruleset, report};
	const struct weir_replay_limits *limits = &report->limits;
	json_t *verdicts = json_object(), *document;

	for (size_t i = 0; i < WEIR_VERDICT_COUNT; i++)
		json_object_set_new(verdicts, weir_verdict_names[i], weir_json_tally(&report->totals.verdict[i]));
	document = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:b, s:{s:o, s:o*, s:o}, s:o, s:o, s:{s:I, s:I, s:o}, s:I, s:I, s:I}",
		"earliestNs", (json_int_t)report->earliest_ns, "latestNs", (json_int_t)report->latest_ns, "cutShort",
		(json_int_t)report->cut_frames, "zeroLength", (json_int_t)report->zero_lengths, "withoutDirection",
		(json_int_t)report->without_direction, "isDamaged", report->is_damaged, "totals", "seen",
		weir_json_tally(&report->totals.seen), "out", shows_out(report) ? weir_json_tally(&report->out) : NULL,
		"verdicts", verdicts, "resources",
		weir_figures_list(describe_resource, &replayed, report->resources, ruleset->resource_count,
				  sizeof(*report->resources)),
		"rules",
		weir_figures_list(describe_rule, &replayed, report->rules, ruleset->rule_count, sizeof(*report->rules)),
		"limited", "count", (json_int_t)limits->flows, "missedPacketsMax", (json_int_t)limits->missed, "flows",
		weir_figures_list(describe_limited, &replayed, limits->most, limits->count, sizeof(*limits->most)),
		"flowsPerCpu", (json_int_t)report->flows_per_cpu, "evaluatingNs", (json_int_t)report->evaluating_ns,
		"packetsPerSecond", (json_int_t)packets_per_second(report));
	return weir_json_print(document, diag);
}
