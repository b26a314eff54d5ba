// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/suggest.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/util.h"
#include "rules/emit.h"
#include "rules/scalars.h"
#include "words/state_words.h"
#include "words/words.h"

#define TCP_SYN 0x02
#define TCP_ACK 0x10

static const char *const units[] = {"packets", "bytes"};

const char *weir_suggestion_unit(const struct weir_suggestion *suggestion)
{
	static const char *const measures[] = {NULL, "new connections", "open connections"};

	return measures[suggestion->measure] ?: units[suggestion->counts_bytes];
}

const char *weir_suggestion_noun(const struct weir_suggestion *suggestion)
{
	return suggestion->flow.fields ? "flow" : "interval";
}

static const struct weir_ruleset_resource *resource_of(const struct weir_suggest_report *report,
						       const struct weir_suggestion *suggestion)
{
	return &report->ruleset->resources[suggestion->resource];
}

bool weir_suggest_is_tcp(const struct weir_match *match)
{
	return match->has_protocol && weir_match_holds_tcp(match) && !match->tcp_flags_count;
}

bool weir_suggest_is_answers(const struct weir_match *match)
{
	return weir_match_directions(match) == WEIR_MATCHES_OUT && match->source_port_count &&
	       !match->destination_port_count;
}

static bool is_taken(const struct weir_ruleset *ruleset, const char *name)
{
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (!strcmp(ruleset->resources[i].name, name))
			return true;
	return false;
}

/* A rule without a name is called RESOURCE#N, which has to fit, too. */
#define DEFAULT_NAME_BYTES (WEIR_NAME_BYTES - 4)

/* A name for the packets of a resource that open connections, which no resource has: "web-new", or "web-new-2" and so
 * on. A name that has to be cut may become that of another, so it ends with the resource's place.
 */
static void name_openings(const struct weir_ruleset *ruleset, size_t resource, char name[WEIR_NAME_BYTES])
{
	const char *of = ruleset->resources[resource].name;
	size_t bytes = strlen(of), number = 1;
	char end[32] = "-new";

	if (bytes + strlen(end) >= DEFAULT_NAME_BYTES)
		number += resource;
	do {
		if (number > 1 || bytes + strlen(end) >= DEFAULT_NAME_BYTES)
			snprintf(end, sizeof(end), "-new-%zu", number);
		while (bytes + strlen(end) >= DEFAULT_NAME_BYTES || (of[bytes] & 0xc0) == 0x80)
			bytes--; /* not within a character of UTF-8 */
		snprintf(name, WEIR_NAME_BYTES, "%.*s%s", (int)bytes, of, end);
		number++;
	} while (is_taken(ruleset, name));
}

/* ---- the head ---- */

static void write_captures(FILE *stream, const struct weir_suggest_options *options)
{
	for (size_t i = 0; i < options->capture_count; i++) {
		_cleanup_(weir_freep) char *name = strdup(options->captures[i]);

		weir_make_printable(name, "");
		fprintf(stream, "#   %s\n", name ?: "");
	}
	if (!options->capture_count)
		fprintf(stream, "#   interface %s\n", options->interface);
}

/* Why each peak is only a lower bound. */
static void write_bounds(FILE *stream, const struct weir_suggest_report *report)
{
	if (report->is_enforced)
		fputs("# Peaks are lower bounds: rules were enforced meanwhile, and what they dropped was not seen.\n",
		      stream);
	if (report->missed)
		fprintf(stream, "# Peaks are lower bounds: %" PRIu64 " packets arrived too fast to be counted.\n",
			report->missed);
	if (report->is_damaged)
		fputs("# A capture is damaged: what comes after the damage was not read.\n", stream);
}

static void write_head(FILE *stream, const struct weir_suggest_options *options,
		       const struct weir_suggest_report *report)
{
	char age[WEIR_WORDS_BYTES], percentile[32], margin[32], loss[32];

	weir_format_micro(report->percentile_micro, percentile, sizeof(percentile));
	weir_format_micro(report->margin_micro, margin, sizeof(margin));
	weir_format_micro(report->loss_micro, loss, sizeof(loss));
	fprintf(stream, "# Suggested by 'weir suggest' from %llu packets in %s:\n",
		(unsigned long long)report->seen.packets,
		weir_format_age(report->latest_ns - report->earliest_ns, age));
	write_captures(stream, options);
	fputs("# A flow's peak is the most that its window held. A threshold is the smallest that would have dropped\n",
	      stream);
	if (report->loss_micro)
		fprintf(stream, "# at most %s of the packets of", loss);
	else
		fputs("# no packet of", stream);
	fprintf(stream, " flows up to percentile %s, times a margin of %s, rounded up to two digits.\n", percentile,
		margin);
	write_bounds(stream, report);
	fputs("#\n# 'mode: observe' drops nothing. Load the file, look at 'weir stats' and 'weir flows --dropped',\n"
	      "# then set 'mode: enforce' and reload with --confirm (docs/thresholds.md).\n",
	      stream);
}

/* ---- figures of a suggestion, as comments ---- */

static void write_row(FILE *stream, const char *unit, const struct weir_distribution *of)
{
	fprintf(stream, "  # %8s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n", unit,
		of->p50, of->p90, of->p99, of->p99_9, of->max);
}

static void write_figures(FILE *stream, const struct weir_suggest_report *report,
			  const struct weir_suggestion *suggestion)
{
	const uint8_t families = resource_of(report, suggestion)->match.families;
	char whose[WEIR_WORDS_BYTES], interval[32];

	weir_format_interval(suggestion->interval_ns, interval, sizeof(interval));
	fprintf(stream, "  # %s, %s: %zu %s%s, %llu %s. Peaks", resource_of(report, suggestion)->name,
		weir_format_whose(&suggestion->flow, families, whose), suggestion->measured,
		weir_suggestion_noun(suggestion), weir_plural(suggestion->measured),
		(unsigned long long)suggestion->total.packets,
		suggestion->measure ? weir_suggestion_unit(suggestion) : "packets");
	fprintf(stream, suggestion->measure == WEIR_MEASURE_CONNECTIONS ? " at once:\n" : " in %s:\n", interval);
	fprintf(stream, "  # %8s %10s %10s %10s %10s %10s\n", "", "p50", "p90", "p99", "p99.9", "max");
	write_row(stream, suggestion->measure ? "" : "packets", &suggestion->of[0]);
	if (!suggestion->measure)
		write_row(stream, "bytes", &suggestion->of[1]);
	if (suggestion->one_in > 1)
		fprintf(stream, "  # Sampled: there were too many flows to follow each, so one in %u was followed.\n",
			suggestion->one_in);
}

static const char *format_utc(uint64_t time_ns, char text[WEIR_WORDS_BYTES])
{
	const time_t seconds = time_ns / WEIR_NSEC_PER_SEC;
	struct tm calendar = {};

	gmtime_r(&seconds, &calendar);
	strftime(text, WEIR_WORDS_BYTES, "%Y-%m-%d %H:%M:%S UTC", &calendar);
	return text;
}

static void write_flow(FILE *stream, const struct weir_suggestion *suggestion, const struct weir_suggest_flow *flow)
{
	char key[WEIR_WORDS_BYTES];

	if (suggestion->flow.fields)
		fprintf(stream, "  #   %s: %" PRIu64 "\n",
			weir_format_key(&suggestion->identity, &flow->key, "?", suggestion->labels, key), flow->peak);
	else if (flow->begin_ns)
		fprintf(stream, "  #   from %s: %" PRIu64 "\n", format_utc(flow->begin_ns, key), flow->peak);
}

static void write_flows(FILE *stream, const struct weir_suggestion *suggestion, const struct weir_suggest_flows *flows)
{
	for (size_t i = 0; i < flows->count && i < WEIR_SUGGEST_FLOWS_SHOWN; i++)
		write_flow(stream, suggestion, &flows->shown[i]);
	if (flows->count > WEIR_SUGGEST_FLOWS_SHOWN)
		fprintf(stream, "  #   and %" PRIu64 " more\n", flows->count - WEIR_SUGGEST_FLOWS_SHOWN);
}

static void write_outliers(FILE *stream, const struct weir_suggestion *suggestion)
{
	const char *noun = weir_suggestion_noun(suggestion);

	if (suggestion->outliers.count) {
		fprintf(stream,
			"  # Left out: %" PRIu64
			" %s%s that peaked above 10 times p90, in packets or in bytes (a flood, or many "
			"clients behind one address):\n",
			suggestion->outliers.count, noun, weir_plural(suggestion->outliers.count));
		write_flows(stream, suggestion, &suggestion->outliers);
	}
	if (suggestion->is_lopsided)
		fprintf(stream,
			"  # Check: more than 5 %% of the %ss peaked above 10 times p90, in packets or in bytes, so "
			"they\n"
			"  # are not left out. If they are a flood, use '--percentile 90'.\n",
			noun);
}

static void write_reason(FILE *stream, const struct weir_suggest_report *report,
			 const struct weir_suggestion *suggestion)
{
	const bool unit = suggestion->counts_bytes;
	const char *noun = weir_suggestion_noun(suggestion);
	char margin[32];

	weir_format_micro(report->margin_micro, margin, sizeof(margin));
	fprintf(stream,
		"  # %" PRIu64 " %s times %s, rounded up: %" PRIu64 ". Of %zu %s%s, %" PRIu64 " peaked above it.\n",
		suggestion->smallest, weir_suggestion_unit(suggestion), margin, suggestion->threshold[unit],
		suggestion->measured, noun, weir_plural(suggestion->measured), suggestion->above);
}

static void write_proof(FILE *stream, const struct weir_suggest_report *report,
			const struct weir_suggestion *suggestion)
{
	const struct weir_suggest_proof *proof = &suggestion->proof;

	if (!report->has_proof) {
		fprintf(stream, "  # Not proved by a replay: %s.\n", report->no_proof);
		return;
	}
	fprintf(stream, "  # Replayed with this file: %llu of %llu packets dropped",
		(unsigned long long)proof->dropped.packets, (unsigned long long)suggestion->total.packets);
	if (suggestion->flow.fields && proof->dropped.packets)
		fprintf(stream, ", of %" PRIu64 "%s of %s%zu flows:\n", proof->losers.count,
			proof->losers_missed ? "+" : "", suggestion->one_in > 1 ? "about " : "",
			suggestion->measured * suggestion->one_in);
	else
		fputs(".\n", stream);
	write_flows(stream, suggestion, &proof->losers);
}

/* ---- which kind of limit suits the traffic ---- */

static const char tcp_words[] =
	"  # Not as rules, since TCP is limited better by its connections, below: once a client is above a window of\n"
	"  # packets, all its packets drop until the window empties. Bytes have tokens: the bucket holds what arrives\n"
	"  # in 200 ms, which TCP needs to come near its limit.\n";

static const char tcp_answers_words[] =
	"  # Not as rules, since TCP is limited better where its connections come in: once a client is above a\n"
	"  # window of packets, all its packets drop until the window empties. To bound what each client is sent,\n"
	"  # use bytes with tokens: the bucket holds what leaves in 200 ms, which TCP needs to come near its limit.\n";

static const char tcp_rule_words[] =
	"  # Kind: once a flow is above this window, all its packets drop until the window empties. To slow TCP\n"
	"  # down instead, limit bytes with tokens: the bucket holds what arrives in 200 ms, which TCP needs to come\n"
	"  # near its limit.\n";

static const char connections_words[] =
	"  # Counted from the first packet after a SYN to the client's FIN or RST. Idle times are not followed, so\n"
	"  # this can be too high; half-open connections are not counted, so it can be too low.\n";

static const char bursty_words[] =
	"  # Kind: most busy flows send half of their peak within one bucket, as bursts after pauses. Token buckets\n"
	"  # suit that: add 'window: tokens' and this threshold as 'burst', and lower the rate to what clients need\n"
	"  # in the long run.\n";

static const char steady_words[] = "  # Kind: busy flows send steadily; a window suits that.\n";

static const char fair_words[] =
	"  # One limit for all: one client can use it up. To share it fairly, add 'fairBy: %s' (docs/fair.md).\n";

static void write_kind(FILE *stream, const struct weir_suggest_report *report, const struct weir_suggestion *suggestion)
{
	if (suggestion->measure == WEIR_MEASURE_CONNECTIONS)
		fputs(connections_words, stream);
	if (suggestion->measure)
		return;
	if (!suggestion->flow.fields && !suggestion->fair_by.fields)
		fprintf(stream, fair_words,
			weir_match_directions(&resource_of(report, suggestion)->match) == WEIR_MATCHES_IN ? "source"
													  : "remote");
	if (weir_suggest_is_tcp(&resource_of(report, suggestion)->match))
		fputs(tcp_rule_words, stream);
	else
		fputs(suggestion->is_bursty ? bursty_words : steady_words, stream);
}

/* ---- rules ---- */

/* Write what differs from the defaults. */
static void write_rest(FILE *stream, const struct weir_suggest_report *report, const struct weir_suggestion *suggestion,
		       enum weir_window_kind window)
{
	const struct weir_flow *flow = &resource_of(report, suggestion)->flow;
	struct weir_writer writer = {.stream = stream};

	weir_write_document(&writer);
	if (!suggestion->flow.fields && flow->fields)
		weir_write_word(&writer, "per", "all");
	else if (memcmp(&suggestion->flow, flow, sizeof(*flow)) != 0)
		weir_write_key(&writer, "per", &suggestion->flow);
	if (suggestion->fair_by.fields && window != WEIR_WINDOW_TOKENS)
		weir_write_key(&writer, "fairBy", &suggestion->fair_by);
	if (suggestion->samples != WEIR_SAMPLES_MAX && window != WEIR_WINDOW_TOKENS)
		weir_write_number(&writer, "sampleCount", suggestion->samples);
	if (window != WEIR_WINDOW_LEAP)
		weir_write_word(&writer, "window", weir_window_names[window]);
	weir_write_document_end(&writer);
}

static void write_rule(FILE *stream, const struct weir_suggest_report *report, const struct weir_suggestion *suggestion,
		       bool counts_bytes, enum weir_window_kind window)
{
	struct weir_writer writer = {.stream = stream};
	char rate[WEIR_WORDS_BYTES], name[WEIR_NAME_BYTES];

	snprintf(name, sizeof(name), "%s", resource_of(report, suggestion)->name);
	if (suggestion->measure == WEIR_MEASURE_OPENINGS)
		name_openings(report->ruleset, suggestion->resource, name);
	weir_write_document(&writer);
	weir_write_word(&writer, "resource", name);
	if (strlen(name) >= DEFAULT_NAME_BYTES) {
		snprintf(name, sizeof(name), "suggested-%zu-%s", (size_t)(suggestion - report->suggestions) + 1,
			 units[counts_bytes]);
		weir_write_word(&writer, "name", name);
	}
	weir_write_document_end(&writer);
	if (suggestion->measure == WEIR_MEASURE_CONNECTIONS) {
		fprintf(stream, "metricType: Concurrency\nthreshold: %" PRIu64 "\n", suggestion->threshold[0]);
		write_rest(stream, report, suggestion, suggestion->window);
		return;
	}
	fprintf(stream, "rate: %s\n",
		weir_format_rate(suggestion->threshold[counts_bytes] * WEIR_MICRO, suggestion->interval_ns,
				 counts_bytes, rate));
	write_rest(stream, report, suggestion, window);
}

/* Write an item of a list, with `before` in front of each line. */
static void write_item(FILE *stream, const char *before, const struct weir_suggest_report *report,
		       const struct weir_suggestion *suggestion, bool counts_bytes, enum weir_window_kind window)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	const char *mark = "- ";

	if (!memory)
		return; /* then the file is out of memory, too */
	write_rule(memory, report, suggestion, counts_bytes, window);
	if (fclose(memory))
		return;
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1, mark = "  ")
		if (*line != '\n')
			fprintf(stream, "%s%s%.*s\n", before, mark, (int)strcspn(line, "\n"), line);
}

/* What was seen, why it is not enough, and the rule that it would make, all as comments. */
static void write_unfounded(FILE *stream, const struct weir_suggest_report *report,
			    const struct weir_suggestion *suggestion)
{
	const bool unit = suggestion->counts_bytes;
	const char *noun = weir_suggestion_noun(suggestion);

	if (!suggestion->threshold[unit]) {
		fprintf(stream, "  # %s: no %s were seen, so nothing is suggested.\n",
			resource_of(report, suggestion)->name, weir_suggestion_unit(suggestion));
		return;
	}
	write_figures(stream, report, suggestion);
	write_outliers(stream, suggestion);
	fprintf(stream,
		"  # Not enough to suggest a number: of %zu %s%s, the next client's peak may be any. It takes at "
		"least\n"
		"  # %d. Measure for longer, or where there are more clients. These %ss alone would give:\n",
		suggestion->measured, noun, weir_plural(suggestion->measured), WEIR_PEAKS_MIN, noun);
	write_item(stream, "  # ", report, suggestion, unit, suggestion->window);
}

static void write_suggestion(FILE *stream, const struct weir_suggest_report *report,
			     const struct weir_suggestion *suggestion)
{
	const bool unit = suggestion->counts_bytes;

	if (suggestion->is_comment && suggestion->measured >= WEIR_PEAKS_MIN) {
		/* In both units, as comments; bytes with tokens, since a full window would stop TCP until it has
		 * emptied.
		 */
		write_figures(stream, report, suggestion);
		write_outliers(stream, suggestion);
		fputs(weir_suggest_is_answers(&resource_of(report, suggestion)->match) ? tcp_answers_words : tcp_words,
		      stream);
		for (int bytes = 0; bytes < 2; bytes++)
			write_item(stream, "  # ", report, suggestion, bytes,
				   bytes ? WEIR_WINDOW_TOKENS : suggestion->window);
		return;
	}
	if (!weir_suggestion_is_founded(suggestion)) {
		write_unfounded(stream, report, suggestion);
		return;
	}
	write_figures(stream, report, suggestion);
	write_outliers(stream, suggestion);
	write_reason(stream, report, suggestion);
	write_proof(stream, report, suggestion);
	write_kind(stream, report, suggestion);
	write_item(stream, "  ", report, suggestion, unit, suggestion->window);
	if (suggestion->measure)
		return;
	fprintf(stream, "  # The same in %s:\n", units[!unit]);
	write_item(stream, "  # ", report, suggestion, !unit,
		   !unit && weir_suggest_is_tcp(&resource_of(report, suggestion)->match) ? WEIR_WINDOW_TOKENS
											 : suggestion->window);
}

/* ---- the file ---- */

/* Settings, lists and resources without rules: the output of weir_ruleset_emit() without its last line. */
static char *rules_free_text(const struct weir_suggest_report *report)
{
	static const char last[] = "rules: []\n";
	const struct weir_ruleset *ruleset = report->ruleset;
	_cleanup_(weir_freep) struct weir_ruleset_resource *resources =
		calloc(ruleset->resource_count + report->count + 1, sizeof(*resources));
	_cleanup_(weir_freep) char(*names)[WEIR_NAME_BYTES] = calloc(report->count + 1, sizeof(*names));
	struct weir_tcp_flags opening = {.set = TCP_SYN, .clear = TCP_ACK};
	struct weir_ruleset bare = *ruleset;
	char *text, *end;

	if (!resources || !names)
		return NULL;
	memcpy(resources, ruleset->resources, ruleset->resource_count * sizeof(*resources));
	for (size_t i = 0; i < report->count; i++) {
		const struct weir_suggestion *suggestion = &report->suggestions[i];
		struct weir_ruleset_resource *added = &resources[bare.resource_count];

		if (suggestion->measure != WEIR_MEASURE_OPENINGS)
			continue;
		*added = *resource_of(report, suggestion);
		name_openings(ruleset, suggestion->resource, names[i]);
		added->name = names[i];
		added->match.tcp_flags = &opening;
		added->match.tcp_flags_count = 1;
		bare.resource_count++;
	}
	bare.resources = resources;

	bare.rule_count = 0;
	bare.settings.observes = true;
	memset(bare.settings.cluster, 0, sizeof(bare.settings.cluster)); /* no rule is shared */
	text = weir_ruleset_text(&bare, true);
	end = text ? strstr(text, last) : NULL;
	while (end && end[strlen(last)])
		end = strstr(end + 1, last);
	if (end)
		*end = '\0';
	return text;
}

static bool write_file(FILE *stream, const struct weir_suggest_options *options,
		       const struct weir_suggest_report *report)
{
	_cleanup_(weir_freep) char *text = rules_free_text(report);

	if (!text)
		return false;
	write_head(stream, options, report);
	fputs(text, stream);
	fputs(report->with_threshold ? "rules:\n" : "rules: [] # none, for the reasons below\n", stream);
	for (size_t i = 0; i < report->count; i++) {
		fputs(i ? "\n" : "", stream);
		write_suggestion(stream, report, &report->suggestions[i]);
	}
	return !ferror(stream);
}

char *weir_suggest_rule_file(const struct weir_suggest_options *options, const struct weir_suggest_report *report)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);
	bool is_whole;

	if (!stream)
		return NULL;
	is_whole = write_file(stream, options, report);
	if (fclose(stream) || !is_whole) {
		free(text);
		return NULL;
	}
	return text;
}
