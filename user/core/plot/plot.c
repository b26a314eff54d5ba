// SPDX-License-Identifier: GPL-2.0-only
#include "plot/plot.h"

#include <stdbool.h>

#include "plot/svg.h"

/* Pixels: a panel, and the area inside its axes. */
#define PANEL_HEIGHT 280
#define WIDTH 770
#define HEIGHT 178
#define TICKS_MAX 8

/* The scale shows offered rates up to this many times the other curves, since a flood would flatten those. */
#define OFFERED_SHARE_MAX 1.6

/* These colours can also be distinguished by colour-blind people (Okabe and Ito). */
static const char style[] =
	"text { font: 13px sans-serif; fill: #222 } .name { font-size: 15px; font-weight: bold }\n"
	".x, .y { font-size: 11px; fill: #555 } .x, .unit { text-anchor: middle } .y { text-anchor: end }\n"
	".axis { stroke: #555 } .grid { stroke: #e4e4e4 } .offered, .admitted, .threshold { stroke-width: 2 }\n"
	".offered { stroke: #999; fill: #999; fill-opacity: .15 }\n"
	".admitted { stroke: #0072b2; fill: #0072b2; fill-opacity: .25 }\n"
	".threshold { stroke: #d55e00; fill: none; stroke-dasharray: 7 4 }\n";

static double largest(const double *values, size_t count, double most)
{
	for (size_t i = 0; values && i < count; i++)
		if (values[i] > most)
			most = values[i];
	return most;
}

/* The rate at the upper edge of the panel. */
static double top_of(const struct weir_plot_panel *panel, size_t bins)
{
	double curves = largest(panel->threshold, bins, largest(panel->admitted, bins, 0));
	double top = largest(panel->offered, bins, curves);

	if (curves > 0 && top > curves * OFFERED_SHARE_MAX)
		top = curves * OFFERED_SHARE_MAX;
	return top > 0 ? top * 1.05 : 1;
}

/* The smallest of 1, 2 and 5 times a power of ten for which TICKS_MAX ticks cover `range`, which is above 0. */
static double tick_step(double range)
{
	double step = 1;

	while (step * TICKS_MAX >= range)
		step /= 10;
	for (int i = 0; step * TICKS_MAX < range; i++)
		step *= i % 3 == 1 ? 2.5 : 2;
	return step;
}

/* From here on the origin is the lower left corner of the axes, and y is negative above it. */
static void write_ticks(FILE *stream, bool is_x, double range)
{
	double step = tick_step(is_x && range < TICKS_MAX ? TICKS_MAX : range);

	for (int i = 0; i * step <= range; i++) {
		double at = i * step / range * (is_x ? WIDTH : -HEIGHT);

		fprintf(stream,
			is_x ? "<path class='axis' d='M%.1f 0v5'/><text class='x' y='18' x='%.1f'>%.10g</text>\n"
			     : "<path class='grid' d='M0 %.1fh770'/><text class='y' x='-8' dy='4' "
			       "y='%.1f'>%.10g</text>\n",
			at, at, i * step);
	}
}

static void write_axes(FILE *stream, double seconds, double top, const char *unit)
{
	double unit_s = seconds > 7200 ? 3600 : seconds > 300 ? 60 : 1;
	const char *name = unit_s == 3600 ? "hours" : unit_s == 60 ? "minutes" : "seconds";

	write_ticks(stream, false, top);
	write_ticks(stream, true, seconds / unit_s);
	fprintf(stream, "<path class='axis' d='M0 0h%d'/><text class='unit' x='385' y='36'>%s</text>\n", WIDTH, name);
	fprintf(stream, "<text class='unit' transform='translate(-54 -89) rotate(-90)'>%s per second</text>\n", unit);
}

/* Write a series: its entry in the legend, and its curve, in which each bin is a horizontal line. */
static void write_series(FILE *stream, int x, const char *class, const double *values, size_t bins, double top)
{
	double most = largest(values, bins, 0);

	fprintf(stream, "<path class='%s' d='M%d -192h26'/><text x='%d' y='-188'>%s, at most %.6g%s</text>\n", class, x,
		x + 32, class, most, most > top ? " (beyond the top)" : "");
	/* An inner <svg> clips, so that the vertical edges of the curve are hidden. A line at zero needs one more
	 * pixel.
	 */
	fprintf(stream, "<svg y='%d' width='%d' height='%d' viewBox='0 %d %d %d'>", -HEIGHT, WIDTH, HEIGHT + 1, -HEIGHT,
		WIDTH, HEIGHT + 1);
	fprintf(stream, "<path class='%s' d='M-3 0", class);
	for (size_t i = 0; i < bins; i++)
		fprintf(stream, "V%.1fH%.1f", -HEIGHT * values[i] / top, (double)WIDTH * (i + 1) / bins);
	fputs("h3V0'/></svg>\n", stream);
}

static void write_panel(FILE *stream, const struct weir_plot *plot, const struct weir_plot_panel *panel)
{
	double top = top_of(panel, plot->bins);

	fputs("<text class='name' y='-212'>", stream);
	weir_svg_write_escaped(stream, panel->name);
	fputs("</text>\n", stream);
	write_axes(stream, plot->bin_ns / 1e9 * plot->bins, top, panel->unit);
	write_series(stream, 0, "offered", panel->offered, plot->bins, top);
	write_series(stream, 290, "admitted", panel->admitted, plot->bins, top);
	if (panel->threshold)
		write_series(stream, 520, "threshold", panel->threshold, plot->bins, top);
}

void weir_plot_write(const struct weir_plot *plot, FILE *stream)
{
	size_t height = PANEL_HEIGHT * (plot->panel_count ? plot->panel_count : 1);

	weir_svg_begin(stream, height, "offered, admitted and threshold over time", style);
	for (size_t i = 0; i < plot->panel_count; i++) {
		fprintf(stream, "<g transform='translate(70 %zu)'>\n", i * PANEL_HEIGHT + 56 + HEIGHT);
		write_panel(stream, plot, &plot->panels[i]);
		fputs("</g>\n", stream);
	}
	fputs("</svg>\n", stream);
}
