/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A picture of distributions, as plain SVG. A panel for each resource shows how many of its flows reach a given peak or
 * more, on logarithmic axes, since a few flows are far busier than most. It also shows the peak that is suggested as a
 * limit.
 */
#ifndef WEIR_PLOT_DISTRIBUTION_H
#define WEIR_PLOT_DISTRIBUTION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct weir_distribution_panel {
	const char *name;	/* any UTF-8 */
	const char *unit;	/* "packets in 1 s" */
	const char *noun;	/* "flow": whose peaks these are */
	const uint64_t *sorted; /* ascending; each value at least 1 */
	size_t count;		/* above 0 */
	uint64_t threshold;	/* 0: there is none */
};

/* The caller checks the stream for write errors. */
void weir_plot_distributions(const struct weir_distribution_panel *panels, size_t count, FILE *stream);

#endif
