// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/suggest.h"

#include <errno.h>
#include <sched.h>

#include "base/util.h"
#include "host/host.h"
#include "plot/plot.h"
#include "harness/attempt.h"
#include "files/capture.h"
#include "suggest/weigh.h"
#include "suggest/measure.h"
#include "words/words.h"

/* The subjects to weigh, and the series of services, which are known only after the measurement. */
struct subjects {
	struct weir_suggest_subject *list;
	size_t count;
	struct weir_suggest_series services[WEIR_SERVICES_MAX];
	struct weir_suggest_series *usual; /* of connections: leap, a second */
};

/* TCP is limited best by its connections: packets are only a comment there. Openings have the usual window. */
static void add_subject(const struct weir_suggest_measured *measured, const struct weir_ruleset *ruleset,
			const struct weir_suggest_series *series, uint32_t group, bool is_first,
			struct subjects *subjects)
{
	const struct weir_match *match = &ruleset->resources[series->resource].match;
	const bool is_tcp = series->flow.fields && weir_suggest_is_tcp(match);
	const bool is_opened = is_tcp && is_first && !weir_suggest_is_answers(match);

	subjects->list[subjects->count++] =
		(struct weir_suggest_subject){.series = series, .group = group, .is_comment = is_tcp};
	/* If a resource has several rules, the first has its connections. */
	for (int measure = WEIR_MEASURE_OPENINGS; is_opened && measure < WEIR_MEASURES; measure++) {
		const size_t i = subjects->count++;

		subjects->usual[i] = weir_suggest_default_series(series->resource, &series->flow);
		subjects->list[i] = (struct weir_suggest_subject){
			.series = &subjects->usual[i],
			.group = weir_measure_group(measured, group, measure),
			.measure = measure,
		};
	}
}

static int make_subjects(size_t series, struct subjects *subjects)
{
	subjects->list = calloc(WEIR_MEASURES * series + 1, sizeof(*subjects->list));
	subjects->usual = calloc(WEIR_MEASURES * series + 1, sizeof(*subjects->usual));
	return subjects->list && subjects->usual ? 0 : -ENOMEM;
}

static int take_series(const struct weir_suggest_measured *measured, const struct weir_ruleset *ruleset,
		       const struct weir_suggest_plan *plan, struct subjects *subjects)
{
	if (make_subjects(plan->count, subjects))
		return -ENOMEM;
	for (size_t i = 0; i < plan->count; i++)
		add_subject(measured, ruleset, &plan->series[i], i,
			    !i || plan->series[i - 1].resource != plan->series[i].resource, subjects);
	return 0;
}

static int take_services(const struct weir_suggest_measured *measured, struct weir_suggest_report *report,
			 struct subjects *subjects, struct weir_diag *diag)
{
	uint32_t groups[WEIR_SERVICES_MAX];
	int err = weir_suggest_services(measured, groups, &report->ruleset, diag);

	if (err)
		return err;
	report->owns_ruleset = true;
	if (make_subjects(WEIR_SERVICES_MAX, subjects))
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot suggest");
	for (size_t i = 0; i < report->ruleset->resource_count; i++) {
		subjects->services[i] = weir_suggest_default_series(i, &report->ruleset->resources[i].flow);
		add_subject(measured, report->ruleset, &subjects->services[i], groups[i], true, subjects);
	}
	return 0;
}

static int weigh_all(const struct weir_suggest_options *options, const struct weir_suggest_plan *plan,
		     const struct weir_suggest_measured *measured, struct weir_suggest_report *report,
		     struct weir_diag *diag)
{
	struct subjects subjects = {};
	int err;

	report->ruleset = (struct weir_ruleset *)(uintptr_t)options->ruleset;
	err = options->ruleset ? take_series(measured, options->ruleset, plan, &subjects)
			       : take_services(measured, report, &subjects, diag);
	if (!err)
		err = weir_suggest_weigh(measured, subjects.list, subjects.count, report, diag);
	if (!err && options->loss_micro)
		err = weir_suggest_search_losses(measured, subjects.list, report, diag);
	if (!err)
		weir_suggest_set_thresholds(report);
	free(subjects.list);
	free(subjects.usual);
	return err;
}

/* ---- the file, and its proof ---- */

static const char *why_no_proof(const struct weir_suggest_options *options)
{
	if (!options->capture_count)
		return "what came live was not kept; capture it with tcpdump, and suggest from that";
	for (size_t i = 0; i < options->capture_count; i++)
		if (weir_capture_is_stream(options->captures[i]))
			return "a pipe cannot be read twice; write the capture to a file first";
	return NULL;
}

static int write_file(const struct weir_suggest_options *options, struct weir_suggest_report *report,
		      struct weir_diag *diag)
{
	free(report->rule_file);
	report->rule_file = weir_suggest_rule_file(options, report);
	return report->rule_file ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot write the rules");
}

/* If the proof fails, for example because its tables are too large for this machine, the suggestion is still valid. */
static int prove(const struct weir_suggest_options *options, struct weir_suggest_report *report, struct weir_diag *diag)
{
	struct weir_diag failure = {};
	int err;

	report->no_proof = why_no_proof(options);
	if (report->no_proof)
		return 0;
	err = weir_suggest_prove(options, report->rule_file, report, &failure);
	report->has_proof = !err;
	if (err)
		report->no_proof = "the replay failed";
	weir_diag_move(diag, &failure, err != -EINTR);
	return err == -EINTR ? err : 0;
}

static int measure_and_weigh(const struct weir_suggest_options *options, struct weir_suggest_report *report,
			     struct weir_diag *diag)
{
	struct weir_suggest_plan plan = {};
	struct weir_suggest_measured measured = {};
	cpu_set_t before;
	int err = weir_attempt_stay_on_cpu(&before, diag);

	if (err)
		return err;
	err = weir_suggest_plan_make(options->ruleset, &plan, diag);
	if (!err)
		err = weir_suggest_measure(options, &plan, &measured, report, diag);
	if (!err)
		err = weigh_all(options, &plan, &measured, report, diag);
	weir_suggest_measured_free(&measured, &plan);
	weir_suggest_plan_free(&plan);
	sched_setaffinity(0, sizeof(before), &before);
	return err;
}

int weir_suggest(const struct weir_suggest_options *options, struct weir_suggest_report *ret_report,
		 struct weir_diag *diag)
{
	struct weir_suggest_report report = {
		.captures = options->capture_count ?: 1,
		.percentile_micro = options->percentile_micro,
		.margin_micro = options->margin_micro,
		.loss_micro = options->loss_micro,
		.is_enforced = options->is_enforced,
	};
	int err = weir_host_check_privilege(diag);

	if (!err)
		err = measure_and_weigh(options, &report, diag);
	if (!err && report.count)
		err = write_file(options, &report, diag);
	if (!err && report.with_threshold) {
		err = prove(options, &report, diag);
		if (!err)
			err = write_file(options, &report, diag);
	}
	if (err)
		weir_suggest_report_free(&report);
	else
		*ret_report = report;
	return err;
}

void weir_suggest_report_free(struct weir_suggest_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		free(report->suggestions[i].peaks);
	free(report->suggestions);
	free(report->labels);
	free(report->rule_file);
	if (report->owns_ruleset)
		weir_ruleset_free(report->ruleset);
	*report = (struct weir_suggest_report){};
}

void weir_suggest_plot(const struct weir_suggest_report *report, FILE *stream)
{
	struct weir_distribution_panel *panels = calloc(report->count + 1, sizeof(*panels));
	char(*units)[WEIR_WORDS_BYTES] = calloc(report->count + 1, sizeof(*units));
	size_t count = 0;

	for (size_t i = 0; panels && units && i < report->count; i++) {
		const struct weir_suggestion *suggestion = &report->suggestions[i];
		const bool unit = suggestion->counts_bytes;
		char interval[32];

		if (!suggestion->measured)
			continue;
		weir_format_interval(suggestion->interval_ns, interval, sizeof(interval));
		snprintf(units[count], sizeof(units[count]), "%s in %s", weir_suggestion_unit(suggestion), interval);
		panels[count] = (struct weir_distribution_panel){
			.name = report->ruleset->resources[suggestion->resource].name,
			.unit = units[count],
			.noun = weir_suggestion_noun(suggestion),
			.sorted = suggestion->peaks,
			.count = suggestion->measured,
			.threshold = weir_suggestion_is_founded(suggestion) ? suggestion->threshold[unit] : 0,
		};
		count++;
	}
	weir_plot_distributions(panels, count, stream);
	free(panels);
	free(units);
}
