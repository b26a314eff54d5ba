/* SPDX-License-Identifier: GPL-2.0-only */
/* All metrics of an instance, in one table each for what is counted of what. docs/metrics.md says what they mean. */
#ifndef WEIR_SERVE_METRICS_H
#define WEIR_SERVE_METRICS_H

#include "exposition/exposition.h"
#include "report/stats.h"
#include "report/status.h"
#include "serve/source.h"

/* An instance at a moment; its flows are in the source. */
struct weir_reading {
	const struct weir_instance *instance; /* the source's */
	struct weir_status_view status;
	struct weir_stats_view stats;
};

/* Write them into an empty exposition. Each has its head lines, also one of which this rule set has no sample. */
void weir_metrics_write(const struct weir_source *source, const struct weir_reading *reading,
			struct weir_exposition *exposition);

#endif
