// SPDX-License-Identifier: GPL-2.0-only
#include "plot/plot.h"

#include <stdbool.h>

/* ---- what both pictures share ---- */

/* Pixels: a picture, a panel, and the area inside its axes. */
#define PICTURE_WIDTH 860 /* chosen, not derived: it fits a README */
#define PANEL_HEIGHT 280
#define WIDTH 770
#define HEIGHT 178

/* These colours can also be distinguished by colour-blind people (Okabe and Ito). */
#define STYLE                                                                                                          \
	"text { font: 13px sans-serif; fill: #222 } .name { font-size: 15px; font-weight: bold }\n"                    \
	".x, .y { font-size: 11px; fill: #555 } .x, .unit { text-anchor: middle } .y { text-anchor: end }\n"           \
	".axis { stroke: #555 } .grid { stroke: #e4e4e4 } "

static void begin_picture(FILE *stream, size_t panels, const char *title, const char *style)
{
	const size_t height = PANEL_HEIGHT * (panels ?: 1);

	fprintf(stream,
		"<svg xmlns='http://www.w3.org/2000/svg' role='img' viewBox='0 0 %d %zu' width='%d' height='%zu'>\n",
		PICTURE_WIDTH, height, PICTURE_WIDTH, height);
	fprintf(stream, "<title>%s</title>\n<style>\n%s</style>\n", title, style);
	fputs("<rect width='100%' height='100%' fill='#fff'/>\n", stream);
}

/* From here on the origin is the lower left corner of the axes, and y is negative above it. In the name, characters
 * that are special in XML become numeric references.
 */
static void begin_panel(FILE *stream, size_t panel, const char *name)
{
	fprintf(stream, "<g transform='translate(70 %zu)'>\n<text class='name' y='-212'>",
		panel * PANEL_HEIGHT + 56 + HEIGHT);
	for (; *name; name++)
		fprintf(stream, *name == '&' || *name == '<' || *name == '>' ? "&#%d;" : "%c", *name);
	fputs("</text>\n", stream);
}

/* ---- rates ---- */

#define TICKS_MAX 8

/* The scale shows offered rates up to this many times the other curves, since a flood would flatten those. */
#define OFFERED_SHARE_MAX 1.6

static const char rates_style[] = STYLE ".offered, .admitted, .threshold { stroke-width: 2 }\n"
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

void weir_plot_write(const struct weir_plot *plot, FILE *stream)
{
	begin_picture(stream, plot->panel_count, "offered, admitted and threshold over time", rates_style);
	for (size_t i = 0; i < plot->panel_count; i++) {
		const struct weir_plot_panel *panel = &plot->panels[i];
		const double top = top_of(panel, plot->bins);

		begin_panel(stream, i, panel->name);
		write_axes(stream, plot->bin_ns / 1e9 * plot->bins, top, panel->unit);
		write_series(stream, 0, "offered", panel->offered, plot->bins, top);
		write_series(stream, 290, "admitted", panel->admitted, plot->bins, top);
		if (panel->threshold)
			write_series(stream, 520, "threshold", panel->threshold, plot->bins, top);
		fputs("</g>\n", stream);
	}
	fputs("</svg>\n", stream);
}

/* ---- distributions ---- */

/* The smallest distance between points of the curve; otherwise it would have one for each of a million flows. */
#define STEP_PIXELS 0.5

static const char flows_style[] =
	STYLE ".flows, .threshold { stroke-width: 2; fill: none }\n"
	      ".flows { stroke: #0072b2 } .threshold { stroke: #d55e00; stroke-dasharray: 7 4 }\n";

/* The decimal logarithm of a number of at least 1, to three digits: not worth linking libm. */
static double log_10(double number)
{
	double log = 0, bit = 1;

	for (; number >= 10; number /= 10)
		log++;
	for (int i = 0; i < 12; i++) {
		number *= number;
		bit /= 2;
		if (number >= 10) {
			number /= 10;
			log += bit;
		}
	}
	return log;
}

static int decades_of(uint64_t most)
{
	int decades = 1;

	for (; most > 10; most = most / 10 + (most % 10 != 0))
		decades++;
	return decades;
}

static double x_of(uint64_t peak, int decades)
{
	return log_10(peak ?: 1) / decades * WIDTH;
}

static double y_of(size_t flows, int decades)
{
	return -log_10(flows) / decades * HEIGHT;
}

static void write_decades(FILE *stream, int x_decades, int y_decades)
{
	for (int i = 0; i <= x_decades; i++)
		fprintf(stream, "<path class='grid' d='M%.1f 0v-%d'/><text class='x' y='18' x='%.1f'>1%.*s</text>\n",
			(double)WIDTH * i / x_decades, HEIGHT, (double)WIDTH * i / x_decades, i,
			"00000000000000000000");
	for (int i = 0; i <= y_decades; i++)
		fprintf(stream,
			"<path class='grid' d='M0 %.1fh%d'/><text class='y' x='-8' dy='4' y='%.1f'>1%.*s</text>\n",
			-(double)HEIGHT * i / y_decades, WIDTH, -(double)HEIGHT * i / y_decades, i,
			"00000000000000000000");
}

/* From right to left: the busiest flow first. */
static void write_curve(FILE *stream, const struct weir_distribution_panel *panel, int x_decades, int y_decades)
{
	double last_x = x_of(panel->sorted[panel->count - 1], x_decades);

	fprintf(stream, "<path class='flows' d='M%.1f 0V%.1f", last_x, y_of(1, y_decades));
	for (size_t flows = 2; flows <= panel->count; flows++) {
		const double x = x_of(panel->sorted[panel->count - flows], x_decades);

		if (last_x - x < STEP_PIXELS && flows < panel->count)
			continue;
		fprintf(stream, "H%.1fV%.1f", x, y_of(flows, y_decades));
		last_x = x;
	}
	fputs("H0'/>\n", stream);
}

static void write_distribution(FILE *stream, const struct weir_distribution_panel *panel)
{
	const uint64_t most = panel->sorted[panel->count - 1];
	const int x_decades = decades_of(most > panel->threshold ? most : panel->threshold);
	const int y_decades = decades_of(panel->count);

	write_decades(stream, x_decades, y_decades);
	fprintf(stream, "<path class='axis' d='M0 0h%d'/><text class='unit' x='385' y='36'>peak, %s</text>\n", WIDTH,
		panel->unit);
	fprintf(stream, "<text class='unit' transform='translate(-54 -89) rotate(-90)'>%ss with at least that</text>\n",
		panel->noun);
	fprintf(stream, "<text x='0' y='-190'>%zu %s%s, at most %llu</text>\n", panel->count, panel->noun,
		panel->count == 1 ? "" : "s", (unsigned long long)most);
	write_curve(stream, panel, x_decades, y_decades);
	if (panel->threshold)
		fprintf(stream,
			"<path class='threshold' d='M%.1f 0v-%d'/><text x='290' y='-190'>suggested: %llu</text>\n",
			x_of(panel->threshold, x_decades), HEIGHT, (unsigned long long)panel->threshold);
}

void weir_plot_distributions(const struct weir_distribution_panel *panels, size_t count, FILE *stream)
{
	begin_picture(stream, count, "peaks of flows, and suggested thresholds", flows_style);
	for (size_t i = 0; i < count; i++) {
		begin_panel(stream, i, panels[i].name);
		write_distribution(stream, &panels[i]);
		fputs("</g>\n", stream);
	}
	fputs("</svg>\n", stream);
}
