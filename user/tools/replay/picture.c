// SPDX-License-Identifier: GPL-2.0-only
#include "replay/picture.h"

#include "base/util.h"
#include "plot/plot.h"

/* More bins could not be distinguished in a picture of 770 pixels. Chosen, not derived. */
#define BINS_MAX 600

#define NO_RULE UINT32_MAX

/* One resource. */
struct curve {
	double *offered, *admitted;
	double *threshold; /* NULL: each flow has its own threshold, or there is none */
	uint32_t rule;	   /* index of the rule whose threshold is drawn */
	bool counts_bytes;
};

struct weir_replay_plot {
	const struct weir_ruleset *ruleset;
	const struct weir_image *image;
	const struct weir_thresholds *thresholds;
	uint64_t start_ns;
	size_t noted;
	struct weir_plot picture;
	struct weir_plot_panel *panels; /* for the picture: one per resource, like the curves */
	struct curve *curves;
	double *values;
};

/* Choose the rule to draw. Rules that limit all packets together are preferred to others; among the preferred ones, the
 * first that moves, otherwise the first.
 */
static uint32_t shown_rule(const struct weir_ruleset *ruleset, size_t resource)
{
	uint32_t shown = NO_RULE;
	int best = -1;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];
		int rank = 2 * !weir_flow_of(ruleset, rule)->fields + (rule->strategy != WEIR_STRATEGY_DIRECT);

		if (rule->resource != resource || rank <= best)
			continue;
		best = rank;
		shown = i;
	}
	return shown;
}

static void prepare_curve(struct weir_replay_plot *plot, size_t number)
{
	const struct weir_ruleset_resource *resource = &plot->ruleset->resources[number];
	double *values = &plot->values[3 * number * plot->picture.bins];
	uint32_t rule = shown_rule(plot->ruleset, number);
	struct curve *curve = &plot->curves[number];

	*curve = (struct curve){
		.offered = values,
		.admitted = values + plot->picture.bins,
		.threshold = rule == NO_RULE || weir_flow_of(plot->ruleset, &plot->ruleset->rules[rule])->fields
				     ? NULL
				     : values + 2 * plot->picture.bins,
		.rule = rule,
		.counts_bytes = rule != NO_RULE && plot->ruleset->rules[rule].counts_bytes,
	};
	plot->panels[number] = (struct weir_plot_panel){
		.name = resource->name,
		.unit = curve->counts_bytes ? "bytes" : "packets",
		.offered = curve->offered,
		.admitted = curve->admitted,
		.threshold = curve->threshold,
	};
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
		.picture = {.bin_ns = bin_s * WEIR_NSEC_PER_SEC, .bins = (seconds + bin_s - 1) / bin_s},
	};
	plot->curves = calloc(ruleset->resource_count + 1, sizeof(*plot->curves));
	plot->panels = calloc(ruleset->resource_count + 1, sizeof(*plot->panels));
	plot->values = calloc((ruleset->resource_count + 1) * 3 * plot->picture.bins, sizeof(*plot->values));
	if (!plot->curves || !plot->panels || !plot->values) {
		weir_replay_plot_free(plot);
		return NULL;
	}
	plot->picture.panels = plot->panels;
	plot->picture.panel_count = ruleset->resource_count;
	for (size_t i = 0; i < ruleset->resource_count; i++)
		prepare_curve(plot, i);
	return plot;
}

void weir_replay_plot_free(struct weir_replay_plot *plot)
{
	if (!plot)
		return;
	free(plot->curves);
	free(plot->panels);
	free(plot->values);
	free(plot);
}

uint64_t weir_replay_plot_next_ns(const struct weir_replay_plot *plot)
{
	return plot->noted < plot->picture.bins ? plot->start_ns + plot->noted * plot->picture.bin_ns : UINT64_MAX;
}

void weir_replay_plot_note(struct weir_replay_plot *plot)
{
	for (size_t i = 0; i < plot->ruleset->resource_count; i++) {
		const uint32_t rule = plot->curves[i].rule;

		if (plot->curves[i].threshold) /* the one in force now, per second */
			plot->curves[i].threshold[plot->noted] =
				(double)(plot->image->rules[rule].threshold_moves
						 ? weir_thresholds_units(plot->thresholds, rule)
						 : plot->image->rules[rule].threshold & WEIR_THRESHOLD_MASK) *
				WEIR_NSEC_PER_SEC / plot->ruleset->rules[rule].interval_ns;
	}
	plot->noted++;
}

void weir_replay_plot_count(struct weir_replay_plot *plot, uint32_t resource, uint64_t time_ns, uint32_t frame_bytes,
			    bool is_admitted)
{
	struct curve *curve = &plot->curves[resource];
	size_t bin = (time_ns - plot->start_ns) / plot->picture.bin_ns;
	double rate = (curve->counts_bytes ? frame_bytes : 1) / (plot->picture.bin_ns / 1e9);

	curve->offered[bin] += rate;
	if (is_admitted)
		curve->admitted[bin] += rate;
}

void weir_replay_plot_write(const struct weir_replay_plot *plot, FILE *stream)
{
	weir_plot_write(&plot->picture, stream);
}
