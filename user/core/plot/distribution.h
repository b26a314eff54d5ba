/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A picture of distributions, as plain SVG: for each resource a panel that says how many of its flows have at least a
 * peak, both by powers of ten, since a few flows are far busier than most; with the peak that is suggested as a limit.
 */
#ifndef WEIR_PLOT_DISTRIBUTION_H
#define WEIR_PLOT_DISTRIBUTION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct weir_distribution_panel {
	const char *name;	/* any UTF-8 */
	const char *unit;	/* "packets in 1 s" */
	const char *noun;	/* "flow": of what these are the peaks */
	const uint64_t *sorted; /* ascending, at least 1 */
	size_t count;		/* above 0 */
	uint64_t threshold;	/* 0: there is none */
};

/* Whether it was written is to be asked of the stream. */
void weir_plot_distributions(const struct weir_distribution_panel *panels, size_t count, FILE *stream);

#endif
