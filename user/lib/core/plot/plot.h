/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room plot: pictures of rates and of distributions. It knows only numbers and names, not rules.
 *
 * A picture of rates over time, as plain SVG. A panel for each resource shows what was offered, what was admitted, and
 * the threshold. Pure: writes to the given stream, and reads nothing.
 *
 * Why not gnuplot: we would still have to generate its script panel by panel (the capped scale, the areas, names
 * escaped for its own markup). We would also need a child process, a pipe, and an error message for users without
 * gnuplot. Drawing libraries such as cairo have no axes. So the SVG viewer does the drawing: styles, clipping and text
 * are SVG's, and only two scales are left to compute.
 */
#ifndef WEIR_PLOT_H
#define WEIR_PLOT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The rates of one resource, in units per second, one value per bin. */
struct weir_plot_panel {
	const char *name;	 /* of the resource; any UTF-8 */
	const char *unit;	 /* "packets" */
	const double *offered;	 /* admitted or not */
	const double *admitted;	 /* never more than offered */
	const double *threshold; /* NULL: there is none */
};

struct weir_plot {
	uint64_t bin_ns; /* at least a second */
	size_t bins;	 /* at least one */
	const struct weir_plot_panel *panels;
	size_t panel_count;
};

/* The caller checks the stream for write errors. */
void weir_plot_write(const struct weir_plot *plot, FILE *stream);

/*
 * A picture of distributions, as plain SVG. A panel for each resource shows how many of its flows reach a given peak or
 * more, on logarithmic axes, since a few flows are far busier than most. It also shows the peak that is suggested as a
 * limit.
 */
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
