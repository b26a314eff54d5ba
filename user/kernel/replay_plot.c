// SPDX-License-Identifier: GPL-2.0-only
#include "replay_plot.h"

#include <math.h>

#include "plot.h"
#include "util.h"

/* More would not be told apart in a picture of 770 pixels. Chosen, not derived. */
#define BINS_MAX 600

#define NO_RULE UINT32_MAX

/* One resource. */
struct curve {
	double *offered, *admitted, *threshold;
	uint32_t rule; /* whose threshold is drawn, its place; NO_RULE: each flow has its own, or there is none */
	bool counts_bytes;
};

struct weir_replay_plot {
	const struct weir_ruleset *ruleset;
	const struct weir_image *image;
	const struct weir_thresholds *thresholds;
	uint64_t start_ns, bin_ns;
	size_t bins, noted;
	struct curve *curves; /* one a resource */
	double *values;
};

/* The first rule that moves, else the first. */
static uint32_t shown_rule(const struct weir_ruleset *ruleset, size_t resource)
{
	uint32_t first = NO_RULE;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		if (ruleset->rules[i].resource != resource)
			continue;
		if (ruleset->rules[i].strategy != WEIR_STRATEGY_DIRECT)
			return i;
		if (first == NO_RULE)
			first = i;
	}
	return first;
}

static void prepare_curve(struct weir_replay_plot *plot, size_t resource)
{
	double *values = &plot->values[3 * resource * plot->bins];
	struct curve *curve = &plot->curves[resource];
	uint32_t rule = shown_rule(plot->ruleset, resource);

	*curve = (struct curve){
		.offered = values,
		.admitted = values + plot->bins,
		.threshold = values + 2 * plot->bins,
		.rule = plot->ruleset->resources[resource].flow.fields ? NO_RULE : rule,
		.counts_bytes = rule != NO_RULE && plot->ruleset->rules[rule].counts_bytes,
	};
	for (size_t i = 0; i < plot->bins; i++)
		curve->threshold[i] = NAN;
}

struct weir_replay_plot *weir_replay_plot_new(const struct weir_ruleset *ruleset, const struct weir_image *image,
					      const struct weir_thresholds *thresholds, uint64_t earliest_ns,
					      uint64_t latest_ns)
{
	uint64_t start_ns = earliest_ns / WEIR_NSEC_PER_SEC * WEIR_NSEC_PER_SEC;
	uint64_t seconds = (latest_ns - start_ns) / WEIR_NSEC_PER_SEC + 1, bin_s = (seconds + BINS_MAX - 1) / BINS_MAX;
	struct weir_replay_plot *plot = calloc(1, sizeof(*plot));

	if (!plot)
		return NULL;
	*plot = (struct weir_replay_plot){
		.ruleset = ruleset,
		.image = image,
		.thresholds = thresholds,
		.start_ns = start_ns,
		.bin_ns = bin_s * WEIR_NSEC_PER_SEC,
		.bins = (seconds + bin_s - 1) / bin_s,
	};
	plot->curves = calloc(ruleset->resource_count + 1, sizeof(*plot->curves));
	plot->values = calloc((ruleset->resource_count + 1) * 3 * plot->bins, sizeof(*plot->values));
	if (!plot->curves || !plot->values) {
		weir_replay_plot_free(plot);
		return NULL;
	}
	for (size_t i = 0; i < ruleset->resource_count; i++)
		prepare_curve(plot, i);
	return plot;
}

void weir_replay_plot_free(struct weir_replay_plot *plot)
{
	if (!plot)
		return;
	free(plot->curves);
	free(plot->values);
	free(plot);
}

uint64_t weir_replay_plot_next_ns(const struct weir_replay_plot *plot)
{
	return plot->noted < plot->bins ? plot->start_ns + plot->noted * plot->bin_ns : UINT64_MAX;
}

/* In force now, per second. */
static double threshold_now(const struct weir_replay_plot *plot, uint32_t rule)
{
	uint64_t units = plot->image->rules[rule].threshold & WEIR_THRESHOLD_MASK;

	if (plot->image->rules[rule].threshold_moves)
		units = weir_thresholds_units(plot->thresholds, rule);
	return (double)units * WEIR_NSEC_PER_SEC / plot->ruleset->rules[rule].interval_ns;
}

void weir_replay_plot_note(struct weir_replay_plot *plot)
{
	for (size_t i = 0; i < plot->ruleset->resource_count; i++)
		if (plot->curves[i].rule != NO_RULE)
			plot->curves[i].threshold[plot->noted] = threshold_now(plot, plot->curves[i].rule);
	plot->noted++;
}

void weir_replay_plot_count(struct weir_replay_plot *plot, uint32_t resource, uint64_t time_ns, uint32_t frame_bytes,
			    bool is_admitted)
{
	struct curve *curve = &plot->curves[resource];
	size_t bin = (time_ns - plot->start_ns) / plot->bin_ns;
	double rate = (curve->counts_bytes ? frame_bytes : 1) / (plot->bin_ns / 1e9);

	curve->offered[bin] += rate;
	if (is_admitted)
		curve->admitted[bin] += rate;
}

void weir_replay_plot_write(const struct weir_replay_plot *plot, FILE *stream)
{
	size_t count = plot->ruleset->resource_count;
	_cleanup_(weir_freep) struct weir_plot_panel *panels = calloc(count + 1, sizeof(*panels));
	const struct weir_plot picture = {
		.bin_ns = plot->bin_ns, .bins = plot->bins, .panels = panels, .panel_count = panels ? count : 0};

	for (size_t i = 0; panels && i < count; i++) {
		const struct curve *curve = &plot->curves[i];

		panels[i] = (struct weir_plot_panel){
			.name = plot->ruleset->resources[i].name,
			.unit = curve->counts_bytes ? "bytes" : "packets",
			.offered = curve->offered,
			.admitted = curve->admitted,
			.threshold = curve->rule == NO_RULE ? NULL : curve->threshold,
		};
	}
	weir_plot_write(&picture, stream);
}
