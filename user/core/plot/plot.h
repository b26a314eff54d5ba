/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room plot: pictures, of rates (this header) and of distributions (distribution.h). It knows only numbers and names,
 * nothing of rules.
 *
 * A picture of rates over time, as plain SVG: for each resource a panel with what was offered, what was admitted,
 * and the threshold. Pure: writes to the stream it is given, and reads nothing.
 *
 * Why not gnuplot: its script would have to be written as well, panel by panel (the capped scale, the areas, names
 * escaped for its own markup), and around it a child process, a pipe, and a message for whoever has not installed it.
 * Drawing libraries such as cairo have no axes. So whatever shows the SVG does the drawing: styles, clipping and
 * text are SVG's, and what is left to compute are two scales.
 */
#ifndef WEIR_PLOT_H
#define WEIR_PLOT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a resource did, in one value a bin: units per second. */
struct weir_plot_panel {
	const char *name;	 /* of the resource; any UTF-8 */
	const char *unit;	 /* "packets" */
	const double *offered;	 /* admitted or not */
	const double *admitted;	 /* never more */
	const double *threshold; /* NULL: there is none */
};

struct weir_plot {
	uint64_t bin_ns; /* at least a second */
	size_t bins;	 /* at least one */
	const struct weir_plot_panel *panels;
	size_t panel_count;
};

/* Whether it was written is to be asked of the stream. */
void weir_plot_write(const struct weir_plot *plot, FILE *stream);

#endif
