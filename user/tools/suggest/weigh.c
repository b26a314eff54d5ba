// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/weigh.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "compile/compile.h"

/* A flow that never sends this many packets in a window is neither bursty nor steady. */
#define BURST_PACKETS_MIN 4

/* ---- peaks ---- */

static int collect_flows(const struct weir_suggest_measured *measured, const uint32_t *places, size_t count,
			 struct weir_peak_sample **ret_samples)
{
	struct weir_peak_sample *samples = malloc((count + 1) * sizeof(*samples));

	if (!samples)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct weir_flow_peaks *peaks = &weir_flow_table_at(measured->flows, places[i])->peaks;

		samples[i] = (struct weir_peak_sample){peaks->peak, peaks->bucket_packets, places[i]};
	}
	*ret_samples = samples;
	return 0;
}

static int compare_numbers(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static uint64_t peak_of(const struct weir_peak_sample *sample, bool counts_bytes)
{
	return counts_bytes ? sample->peak.bytes : sample->peak.packets;
}

/* The caller frees the result; NULL: no memory. */
static uint64_t *sort_peaks(const struct weir_peak_sample *samples, size_t count, bool counts_bytes)
{
	uint64_t *peaks = malloc((count + 1) * sizeof(*peaks));

	for (size_t i = 0; peaks && i < count; i++)
		peaks[i] = peak_of(&samples[i], counts_bytes);
	if (peaks)
		qsort(peaks, count, sizeof(*peaks), compare_numbers);
	return peaks;
}

/* ---- anomalies ---- */

static void show_outlier(const struct weir_suggest_measured *measured, const struct weir_peak_sample *sample,
			 struct weir_suggestion *suggestion)
{
	struct weir_suggest_flows *outliers = &suggestion->outliers;
	const uint64_t peak = peak_of(sample, suggestion->counts_bytes);
	size_t place = outliers->count < WEIR_SUGGEST_FLOWS_SHOWN ? outliers->count : WEIR_SUGGEST_FLOWS_SHOWN;

	outliers->count++;
	while (place > 0 && outliers->shown[place - 1].peak < peak) {
		if (place < WEIR_SUGGEST_FLOWS_SHOWN)
			outliers->shown[place] = outliers->shown[place - 1];
		place--;
	}
	if (place == WEIR_SUGGEST_FLOWS_SHOWN)
		return;
	outliers->shown[place] = (struct weir_suggest_flow){.peak = peak};
	if (suggestion->flow.fields)
		outliers->shown[place].key = weir_flow_table_at(measured->flows, sample->where)->key;
	else
		outliers->shown[place].begin_ns = sample->where;
}

/* Do the busier flows send most of a full window in one bucket? */
static bool are_bursty(const struct weir_peak_sample *samples, size_t count, uint64_t from_peak)
{
	size_t busy = 0, bursty = 0;

	for (size_t i = 0; i < count; i++) {
		if (samples[i].peak.packets < from_peak || samples[i].peak.packets < BURST_PACKETS_MIN)
			continue;
		busy++;
		bursty += 2 * samples[i].bucket_packets >= samples[i].peak.packets;
	}
	return busy && 2 * bursty >= busy;
}

/* ---- a suggestion ---- */

bool weir_suggest_is_left_out(const struct weir_suggestion *suggestion, const struct weir_tally *peak)
{
	return peak->packets >= suggestion->outlier_min[0] || peak->bytes >= suggestion->outlier_min[1];
}

/* Find who is far above all others in one unit, and leave it out of both, since it is the flow that is odd. `kept` has
 * room for all.
 */
static int leave_out(const struct weir_suggest_measured *measured, const struct weir_peak_sample *samples, size_t count,
		     struct weir_suggestion *suggestion, struct weir_peak_sample *kept, size_t *ret_count)
{
	*ret_count = 0;
	for (int bytes = 0; bytes < 2; bytes++) {
		uint64_t *peaks = sort_peaks(samples, count, bytes);

		if (!peaks)
			return -ENOMEM;
		suggestion->outlier_min[bytes] = UINT64_MAX;
		if (count)
			suggestion->is_lopsided |= weir_find_outliers(peaks, count, &suggestion->outlier_min[bytes]);
		if (bytes == suggestion->counts_bytes)
			suggestion->peaks = peaks;
		else
			free(peaks);
	}
	for (size_t i = 0; i < count; i++)
		if (weir_suggest_is_left_out(suggestion, &samples[i].peak))
			show_outlier(measured, &samples[i], suggestion);
		else
			kept[(*ret_count)++] = samples[i];
	return 0;
}

static int weigh(const struct weir_suggest_measured *measured, const struct weir_peak_sample *samples, size_t count,
		 uint32_t percentile_micro, struct weir_suggestion *suggestion)
{
	_cleanup_(weir_freep) struct weir_peak_sample *kept = calloc(count + 1, sizeof(*kept));
	const bool unit = suggestion->counts_bytes;
	size_t kept_count = 0;
	int err = kept ? leave_out(measured, samples, count, suggestion, kept, &kept_count) : -ENOMEM;

	suggestion->measured = count;
	for (int bytes = 0; !err && bytes < 2; bytes++) {
		_cleanup_(weir_freep) uint64_t *peaks = sort_peaks(kept, kept_count, bytes);

		if (!peaks)
			return -ENOMEM;
		if (kept_count)
			weir_distribute(peaks, kept_count, percentile_micro, &suggestion->of[bytes]);
	}
	suggestion->smallest = suggestion->of[unit].at_percentile;
	suggestion->is_bursty = are_bursty(kept, kept_count, suggestion->of[0].p50);
	return err;
}

static void describe(const struct weir_suggest_measured *measured, const struct weir_suggest_subject *subject,
		     const struct weir_suggest_report *report, struct weir_suggestion *suggestion)
{
	const struct weir_suggest_series *series = subject->series;
	const struct weir_match *match = &report->ruleset->resources[series->resource].match;

	*suggestion = (struct weir_suggestion){
		.resource = series->resource,
		.measure = subject->measure,
		.is_comment = subject->is_comment,
		.flow = series->flow,
		.fair_by = series->fair_by,
		.interval_ns = series->interval_ns,
		.samples = series->window.samples,
		.window = series->window.kind,
		.counts_bytes = series->counts_bytes,
		.total = measured->group_total[subject->group],
		.one_in = series->flow.fields ? weir_flow_table_one_in(measured->flows, subject->group) : 1,
	};
	suggestion->labels = report->labels;
	weir_identify_key(&series->flow, weir_match_directions(match), report->labels, &suggestion->identity);
}

static int weigh_subject(const struct weir_suggest_measured *measured, const uint32_t *places,
			 const struct weir_suggest_subject *subject, const struct weir_suggest_report *report,
			 struct weir_suggestion *suggestion)
{
	_cleanup_(weir_freep) struct weir_peak_sample *samples = NULL;
	const size_t count = weir_flow_table_group_count(measured->flows, subject->group);
	int err;

	describe(measured, subject, report, suggestion);
	if (!suggestion->flow.fields)
		return weigh(measured, measured->lone[subject->group].intervals, measured->lone[subject->group].count,
			     report->percentile_micro, suggestion);
	err = collect_flows(measured, places, count, &samples);
	return err ? err : weigh(measured, samples, count, report->percentile_micro, suggestion);
}

int weir_suggest_weigh(const struct weir_suggest_measured *measured, const struct weir_suggest_subject *subjects,
		       size_t count, struct weir_suggest_report *report, struct weir_diag *diag)
{
	_cleanup_(weir_freep) uint32_t *places = weir_flow_table_by_group(measured->flows);
	_cleanup_(weir_freep) size_t *begins = calloc(measured->groups + (size_t)1, sizeof(*begins));
	int err = 0;

	report->suggestions = calloc(count + 1, sizeof(*report->suggestions));
	if (!places || !begins || !report->suggestions)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot suggest");
	for (uint32_t group = 0; group < measured->groups; group++)
		begins[group + 1] = begins[group] + weir_flow_table_group_count(measured->flows, group);
	for (; !err && report->count < count; report->count++)
		err = weigh_subject(measured, places + begins[subjects[report->count].group], &subjects[report->count],
				    report, &report->suggestions[report->count]);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot suggest") : 0;
}

/* With fewer flows the numbers are shown as comments only. */
void weir_suggest_set_thresholds(struct weir_suggest_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		struct weir_suggestion *suggestion = &report->suggestions[i];
		const bool unit = suggestion->counts_bytes;
		const size_t count = suggestion->measured;

		suggestion->threshold[unit] = weir_threshold_with_margin(suggestion->smallest, report->margin_micro);
		suggestion->threshold[!unit] =
			weir_threshold_with_margin(suggestion->of[!unit].at_percentile, report->margin_micro);
		while (suggestion->above < count &&
		       suggestion->peaks[count - 1 - suggestion->above] > suggestion->threshold[unit])
			suggestion->above++;
		report->with_threshold += weir_suggestion_is_founded(suggestion);
	}
}
