// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/suggest.h"

#include <inttypes.h>

#include "base/util.h"
#include "cli/print.h"
#include "rules/scalars.h"

static const struct weir_ruleset_resource *resource_of(const struct weir_suggest_report *report,
						       const struct weir_suggestion *suggestion)
{
	return &report->ruleset->resources[suggestion->resource];
}

/* Packets per second of wall time. */
static uint64_t packets_per_second(const struct weir_suggest_report *report)
{
	return report->measuring_ns ? (unsigned __int128)report->seen.packets * WEIR_NSEC_PER_SEC / report->measuring_ns
				    : 0;
}

static void print_peaks(const struct weir_suggest_report *report, FILE *stream)
{
	_cleanup_(weir_table_free) struct weir_table table = {.headings = {"resource", "peaks of", ">flows", ">p50",
									   ">p90", ">p99", ">p99.9", ">max",
									   "suggested", ">above", ">left out"},
							      .columns = 11};
	char words[WEIR_WORDS_BYTES];

	for (size_t i = 0; i < report->count; i++) {
		const struct weir_suggestion *suggestion = &report->suggestions[i];
		const struct weir_ruleset_resource *resource = resource_of(report, suggestion);
		const bool unit = suggestion->counts_bytes;

		weir_table_cell(&table, "%s", resource->name);
		weir_table_cell(&table, "%s, %s", weir_suggestion_unit(suggestion),
				weir_format_whose(&suggestion->flow, resource->match.families, words));
		weir_table_cell(&table, "%zu", suggestion->measured);
		weir_table_cell(&table, "%" PRIu64, suggestion->of[unit].p50);
		weir_table_cell(&table, "%" PRIu64, suggestion->of[unit].p90);
		weir_table_cell(&table, "%" PRIu64, suggestion->of[unit].p99);
		weir_table_cell(&table, "%" PRIu64, suggestion->of[unit].p99_9);
		weir_table_cell(&table, "%" PRIu64, suggestion->of[unit].max);
		if (suggestion->is_comment)
			weir_table_cell(&table, "(a comment)");
		else if (weir_suggestion_is_founded(suggestion) && suggestion->measure == WEIR_MEASURE_CONNECTIONS)
			weir_table_cell(&table, "%" PRIu64, suggestion->threshold[unit]);
		else if (weir_suggestion_is_founded(suggestion))
			weir_table_cell(&table, "%s",
					weir_format_rate(suggestion->threshold[unit] * WEIR_MICRO,
							 suggestion->interval_ns, unit, words));
		else
			weir_table_cell(&table, "nothing: %d are needed", WEIR_PEAKS_MIN);
		weir_table_cell(&table, "%" PRIu64, suggestion->above);
		weir_table_cell(&table, "%" PRIu64, suggestion->outliers.count);
	}
	weir_table_print(&table, stream);
}

/* "at 40/s, 1 of 3000 flows would have lost 12 packets" */
static void print_proof(const struct weir_suggest_report *report, const struct weir_suggestion *suggestion,
			FILE *stream)
{
	const struct weir_suggest_proof *proof = &suggestion->proof;
	const bool unit = suggestion->counts_bytes;
	char words[WEIR_WORDS_BYTES];

	if (suggestion->measure == WEIR_MEASURE_CONNECTIONS)
		snprintf(words, sizeof(words), "%" PRIu64 " open", suggestion->threshold[unit]);
	else
		weir_format_rate(suggestion->threshold[unit] * WEIR_MICRO, suggestion->interval_ns, unit, words);
	fprintf(stream, "%s%s: at %s, ", resource_of(report, suggestion)->name,
		suggestion->measure == WEIR_MEASURE_OPENINGS ? ", new connections" : "", words);
	if (!suggestion->flow.fields)
		fprintf(stream, "%llu packets would have been dropped\n", (unsigned long long)proof->dropped.packets);
	else
		fprintf(stream, "%" PRIu64 "%s of %s%zu flows would have lost %llu packet%s\n", proof->losers.count,
			proof->losers_missed ? "+" : "", suggestion->one_in > 1 ? "about " : "",
			suggestion->measured * suggestion->one_in, (unsigned long long)proof->dropped.packets,
			weir_plural(proof->dropped.packets));
}

static void print_remarks(const struct weir_suggest_report *report, FILE *stream)
{
	if (report->answers)
		fprintf(stream,
			"%" PRIu64
			" packets from ports below 1024 to higher ones were taken for answers, and left out\n",
			report->answers);
	if (report->portless)
		fprintf(stream, "%" PRIu64 " packets without a port (later fragments) were left out\n",
			report->portless);
	if (report->missed)
		fprintf(stream, "%" PRIu64 " packets arrived too fast to be counted: peaks are lower bounds\n",
			report->missed);
	if (report->is_enforced)
		fputs("rules are enforced, and what they drop is not seen here: peaks are lower bounds\n", stream);
	for (size_t i = 0; i < report->count; i++) {
		const struct weir_suggestion *suggestion = &report->suggestions[i];
		const char *name = resource_of(report, suggestion)->name;

		if (suggestion->one_in > 1)
			fprintf(stream, "%s: too many flows to follow each: one in %u was followed\n", name,
				suggestion->one_in);
		if (suggestion->is_lopsided)
			fprintf(stream,
				"%s: more than 5 %% of the %ss peaked above 10 times p90, in packets or in bytes, "
				"so they are not left out: if they are a flood, use '--percentile 90'\n",
				name, weir_suggestion_noun(suggestion));
	}
}

void weir_suggest_print_text(const struct weir_suggest_report *report, FILE *stream)
{
	char age[WEIR_WORDS_BYTES];

	fprintf(stream, "%llu packets, %llu bytes, in %s", (unsigned long long)report->seen.packets,
		(unsigned long long)report->seen.bytes, weir_format_age(report->latest_ns - report->earliest_ns, age));
	if (report->outgoing)
		fprintf(stream, ", %" PRIu64 " packet%s outgoing", report->outgoing, weir_plural(report->outgoing));
	fprintf(stream,
		"\nmeasured in %" PRIu64 ".%03" PRIu64 " s, %" PRIu64 " packets a second; CPU time %" PRIu64
		".%03" PRIu64 " s\n\n",
		(uint64_t)(report->measuring_ns / WEIR_NSEC_PER_SEC), (uint64_t)(report->measuring_ns / 1000000 % 1000),
		packets_per_second(report), (uint64_t)(report->cpu_ns / WEIR_NSEC_PER_SEC),
		(uint64_t)(report->cpu_ns / 1000000 % 1000));
	print_peaks(report, stream);
	fputc('\n', stream);
	for (size_t i = 0; report->has_proof && i < report->count; i++)
		if (weir_suggestion_is_founded(&report->suggestions[i]))
			print_proof(report, &report->suggestions[i], stream);
	if (report->no_proof)
		fprintf(stream, "not proved by a replay: %s\n", report->no_proof);
	print_remarks(report, stream);
}

/* ---- JSON ---- */

static json_t *json_distribution(const struct weir_distribution *of)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "p50", (json_int_t)of->p50, "p90", (json_int_t)of->p90, "p99",
			 (json_int_t)of->p99, "p99.9", (json_int_t)of->p99_9, "max", (json_int_t)of->max);
}

static json_t *json_flows(const struct weir_suggestion *suggestion, const struct weir_suggest_flows *flows,
			  const char *figure)
{
	json_t *list = json_array();

	for (size_t i = 0; i < flows->count && i < WEIR_SUGGEST_FLOWS_SHOWN; i++) {
		const struct weir_suggest_flow *flow = &flows->shown[i];

		weir_json_append(&list, suggestion->flow.fields
						? json_pack("{s:o, s:I}", "key",
							    weir_json_key(&suggestion->identity, &flow->key, "?",
									  suggestion->labels),
							    figure, (json_int_t)flow->peak)
						: json_pack("{s:I, s:I}", "beginNs", (json_int_t)flow->begin_ns, figure,
							    (json_int_t)flow->peak));
	}
	return json_pack("{s:I, s:o}", "count", (json_int_t)flows->count, "flows", list);
}

static json_t *json_proof(const struct weir_suggest_report *report, const struct weir_suggestion *suggestion)
{
	const struct weir_suggest_proof *proof = &suggestion->proof;

	if (!report->has_proof || !weir_suggestion_is_founded(suggestion))
		return json_null();
	return json_pack("{s:o, s:o, s:I}", "dropped", weir_json_tally(&proof->dropped), "limited",
			 json_flows(suggestion, &proof->losers, "packets"), "missedPacketsMax",
			 (json_int_t)proof->losers_missed);
}

static json_t *json_suggestion(const struct weir_suggest_report *report, const struct weir_suggestion *suggestion)
{
	const struct weir_ruleset_resource *resource = resource_of(report, suggestion);
	const bool unit = suggestion->counts_bytes;
	char whose[WEIR_WORDS_BYTES];

	return json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:s, s:o, s:s, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:I, s:o, s:b, s:b, s:o}",
		"resource", resource->name, "whose",
		weir_format_whose(&suggestion->flow, resource->match.families, whose), "unit",
		weir_suggestion_unit(suggestion), "statIntervalInMs", (json_int_t)(suggestion->interval_ns / 1000000),
		"sampleCount", (json_int_t)suggestion->samples, "window", weir_window_names[suggestion->window],
		"total", weir_json_tally(&suggestion->total), "of", weir_suggestion_noun(suggestion), "count",
		(json_int_t)suggestion->measured, "oneIn", (json_int_t)suggestion->one_in, "packets",
		json_distribution(&suggestion->of[0]), "bytes", json_distribution(&suggestion->of[1]), "atPercentile",
		(json_int_t)suggestion->of[unit].at_percentile, "smallest", (json_int_t)suggestion->smallest,
		"threshold",
		weir_suggestion_is_founded(suggestion) ? json_integer((json_int_t)suggestion->threshold[unit])
						       : json_null(),
		"above", (json_int_t)suggestion->above, "leftOut",
		json_flows(suggestion, &suggestion->outliers, "peak"), "isBursty", suggestion->is_bursty, "isLopsided",
		suggestion->is_lopsided, "proof", json_proof(report, suggestion));
}

int weir_suggest_print_json(const struct weir_suggest_report *report, struct weir_diag *diag)
{
	json_t *suggestions = json_array();

	for (size_t i = 0; i < report->count; i++)
		weir_json_append(&suggestions, json_suggestion(report, &report->suggestions[i]));
	return weir_json_print(
		json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:I, s:b, s:s?, s:o, s:s?}",
			  "earliestNs", (json_int_t)report->earliest_ns, "latestNs", (json_int_t)report->latest_ns,
			  "seen", weir_json_tally(&report->seen), "outgoing", (json_int_t)report->outgoing, "matched",
			  (json_int_t)report->matched, "answers", (json_int_t)report->answers, "portless",
			  (json_int_t)report->portless, "missed", (json_int_t)report->missed, "isDamaged",
			  report->is_damaged, "isEnforced", report->is_enforced, "measuringNs",
			  (json_int_t)report->measuring_ns, "cpuNs", (json_int_t)report->cpu_ns, "isProved",
			  report->has_proof, "whyNotProved", report->no_proof, "suggestions", suggestions, "rules",
			  report->rule_file),
		diag);
}
