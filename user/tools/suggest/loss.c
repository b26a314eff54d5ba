// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/weigh.h"

#include <errno.h>

#include "base/util.h"
#include "suggest/measure.h"

#define NO_SEARCH UINT32_MAX

/* The search for one suggestion. All searches run together, since reading the log takes most of the time. */
struct search {
	struct weir_threshold_search threshold;
	const struct weir_suggestion *suggestion;
	const struct weir_suggest_series *series;
	const struct weir_suggest_lone *lone;
	size_t interval; /* index in the lone's intervals, one more than that of the log's position */
	uint64_t interval_number;
	struct weir_followed state; /* for a lone */
	uint64_t offered, dropped;  /* packets of flows up to the percentile, in this round */
};

struct losses {
	const struct weir_suggest_measured *measured;
	struct search *searches;
	uint32_t *by_group; /* index of the group's search, or NO_SEARCH */
	uint32_t round, captures;
};

static bool is_over(const struct losses *losses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (losses->searches[i].threshold.low < losses->searches[i].threshold.high)
			return false;
	return true;
}

/* ---- a packet ---- */

static uint64_t in_unit(const struct weir_tally *tally, bool counts_bytes)
{
	return counts_bytes ? tally->bytes : tally->packets;
}

/* Each capture, and each round, starts with empty windows. */
static struct weir_window_sums *sums_of(const struct losses *losses, struct weir_followed *flow,
					const struct weir_loss_entry *entry)
{
	const uint32_t era = losses->round * (losses->captures + 1) + entry->capture;

	if (flow->capture != era)
		flow->peaks.sums = (struct weir_window_sums){};
	flow->capture = era;
	return &flow->peaks.sums;
}

static void admit(struct search *search, struct weir_window_sums *sums, const struct weir_loss_entry *entry,
		  const struct weir_tally *flow_peak)
{
	const bool unit = search->suggestion->counts_bytes;
	const struct weir_tally batch = {entry->packets, entry->bytes};
	const struct weir_tally before = weir_window_look(sums, &search->series->window, entry->time_ns);
	const bool counts = in_unit(flow_peak, unit) <= search->suggestion->of[unit].at_percentile &&
			    !weir_suggest_is_left_out(search->suggestion, flow_peak);
	const bool is_admitted = in_unit(&before, unit) + in_unit(&batch, unit) <= weir_search_next(&search->threshold);

	search->offered += counts ? entry->packets : 0;
	if (is_admitted)
		weir_window_count(sums, &search->series->window, entry->time_ns, &batch);
	else
		search->dropped += counts ? entry->packets : 0;
}

static void admit_lone(const struct losses *losses, struct search *search, const struct weir_loss_entry *entry)
{
	const uint64_t number = entry->time_ns / search->series->interval_ns;
	const uint32_t before = search->state.capture;
	struct weir_window_sums *sums = sums_of(losses, &search->state, entry);

	if (before != search->state.capture || number != search->interval_number)
		search->interval++;
	search->interval_number = number;
	admit(search, sums, entry, &search->lone->intervals[search->interval - 1].peak);
}

static void admit_entry(struct losses *losses, const struct weir_loss_entry *entry)
{
	struct weir_followed *flow;
	uint32_t place;

	if (entry->is_lone) {
		admit_lone(losses, &losses->searches[losses->by_group[entry->place]], entry);
		return;
	}
	flow = weir_flow_table_at(losses->measured->flows, entry->place);
	place = losses->by_group[flow->group];
	if (place != NO_SEARCH)
		admit(&losses->searches[place], sums_of(losses, flow, entry), entry, &flow->peaks.peak);
}

/* ---- a round ---- */

static void end_round(struct search *search, uint64_t loss_micro)
{
	const bool drops_too_much =
		(unsigned __int128)search->dropped * 1000000 > (unsigned __int128)search->offered * loss_micro;

	if (search->threshold.low < search->threshold.high)
		weir_search_record(&search->threshold, drops_too_much);
	search->offered = search->dropped = 0;
	search->interval = 0;
}

static int try_thresholds(struct losses *losses, size_t count, uint64_t loss_micro)
{
	FILE *log = losses->measured->log;
	struct weir_loss_entry entry;

	losses->round++;
	rewind(log);
	while (fread(&entry, sizeof(entry), 1, log) == 1)
		admit_entry(losses, &entry);
	for (size_t i = 0; i < count; i++)
		end_round(&losses->searches[i], loss_micro);
	return ferror(log) ? -EIO : 0;
}

static int begin(struct losses *losses, const struct weir_suggest_subject *subjects, struct weir_suggest_report *report)
{
	losses->searches = calloc(report->count + 1, sizeof(*losses->searches));
	losses->by_group = malloc(losses->measured->groups * sizeof(*losses->by_group));
	if (!losses->searches || !losses->by_group)
		return -ENOMEM;
	for (uint32_t group = 0; group < losses->measured->groups; group++)
		losses->by_group[group] = NO_SEARCH;
	for (size_t i = 0; i < report->count; i++) {
		losses->by_group[subjects[i].group] = i;
		losses->searches[i] = (struct search){
			/* The log has packets, not connections: of these, no loss is allowed. */
			.threshold = {subjects[i].measure		? report->suggestions[i].smallest
				      : report->suggestions[i].smallest ? 1
									: 0,
				      report->suggestions[i].smallest},
			.suggestion = &report->suggestions[i],
			.series = subjects[i].series,
			.lone = subjects[i].series->flow.fields ? NULL : &losses->measured->lone[subjects[i].group],
		};
	}
	return 0;
}

int weir_suggest_search_losses(const struct weir_suggest_measured *measured,
			       const struct weir_suggest_subject *subjects, struct weir_suggest_report *report,
			       struct weir_diag *diag)
{
	struct losses losses = {.measured = measured, .captures = report->captures};
	int err = fflush(measured->log) ? -EIO : begin(&losses, subjects, report);

	while (!err && !is_over(&losses, report->count))
		err = try_thresholds(&losses, report->count, report->loss_micro);
	for (size_t i = 0; !err && i < report->count; i++)
		report->suggestions[i].smallest = losses.searches[i].threshold.high;
	free(losses.searches);
	free(losses.by_group);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot work out losses") : 0;
}
