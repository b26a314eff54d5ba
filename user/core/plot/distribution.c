// SPDX-License-Identifier: GPL-2.0-only
#include "plot/distribution.h"

#include "plot/svg.h"

/* Pixels: a panel, and the area inside its axes, as in plot.c. */
#define PANEL_HEIGHT 280
#define WIDTH 770
#define HEIGHT 178

/* The smallest distance between points of the curve; otherwise it would have one for each of a million flows. */
#define STEP_PIXELS 0.5

static const char style[] =
	"text { font: 13px sans-serif; fill: #222 } .name { font-size: 15px; font-weight: bold }\n"
	".x, .y { font-size: 11px; fill: #555 } .x, .unit { text-anchor: middle } .y { text-anchor: end }\n"
	".axis { stroke: #555 } .grid { stroke: #e4e4e4 } .flows, .threshold { stroke-width: 2; fill: none }\n"
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

static void write_ticks(FILE *stream, int x_decades, int y_decades)
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

static void write_panel(FILE *stream, const struct weir_distribution_panel *panel)
{
	const uint64_t most = panel->sorted[panel->count - 1];
	const int x_decades = decades_of(most > panel->threshold ? most : panel->threshold);
	const int y_decades = decades_of(panel->count);

	fputs("<text class='name' y='-212'>", stream);
	weir_svg_write_escaped(stream, panel->name);
	fputs("</text>\n", stream);
	write_ticks(stream, x_decades, y_decades);
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
	weir_svg_begin(stream, PANEL_HEIGHT * (count ? count : 1), "peaks of flows, and suggested thresholds", style);
	for (size_t i = 0; i < count; i++) {
		fprintf(stream, "<g transform='translate(70 %zu)'>\n", i * PANEL_HEIGHT + 56 + HEIGHT);
		write_panel(stream, &panels[i]);
		fputs("</g>\n", stream);
	}
	fputs("</svg>\n", stream);
}
