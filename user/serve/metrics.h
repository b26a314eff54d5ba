/* SPDX-License-Identifier: GPL-2.0-only */
/* All metrics of an instance; each group comes from one table of what is counted. docs/metrics.md explains them. */
#ifndef WEIR_SERVE_METRICS_H
#define WEIR_SERVE_METRICS_H

#include "exposition/exposition.h"
#include "report/stats.h"
#include "report/status.h"
#include "serve/source.h"

/* An instance at one moment. Its flows are in the source. */
struct weir_reading {
	const struct weir_instance *instance; /* the instance of the source */
	struct weir_status_view status;
	struct weir_stats_view stats;
};

/* Write the metrics into an empty exposition. Each has its header lines, even if this rule set has no sample for it. */
void weir_metrics_write(const struct weir_source *source, const struct weir_reading *reading,
			struct weir_exposition *exposition);

#endif
