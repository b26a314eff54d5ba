// SPDX-License-Identifier: GPL-2.0-only
#include "plot.h"

#include <math.h>
#include <stdbool.h>

/* Pixels. Chosen, not derived: it fits a README. */
#define WIDTH 860
#define PANEL_HEIGHT 280
#define LEFT 70
#define RIGHT 20
#define TOP 56
#define BOTTOM 46
#define PLOT_WIDTH (WIDTH - LEFT - RIGHT)
#define PLOT_HEIGHT (PANEL_HEIGHT - TOP - BOTTOM)

#define TICKS_MAX 8

/* Of what is offered, no more is shown than this many times what is admitted or allowed: an attack would press the
 * curve that matters to the ground.
 */
#define OFFERED_SHARE_MAX 1.6

/* Told apart by those who do not see all colours (Okabe and Ito), and by their dashes. */
static const char colour_offered[] = "#999999", colour_admitted[] = "#0072b2", colour_threshold[] = "#d55e00";

/* One panel at work. */
struct canvas {
	const struct weir_plot *plot;
	const struct weir_plot_panel *panel;
	FILE *stream;
	size_t number;
	double top; /* units per second at the upper edge */
};

/* ---- text ---- */

static void write_escaped(FILE *stream, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", stream);
		else if (*text == '<')
			fputs("&lt;", stream);
		else if (*text == '>')
			fputs("&gt;", stream);
		else
			fputc(*text, stream);
	}
}

/* ---- scales ---- */

static double largest(const double *values, size_t count)
{
	double most = 0;

	for (size_t i = 0; values && i < count; i++)
		if (!isnan(values[i]) && values[i] > most)
			most = values[i];
	return most;
}

/* 1, 2 or 5 times a power of ten, so that at most TICKS_MAX of it cover `range`. */
static double tick_step(double range)
{
	double step = 1;

	while (step * TICKS_MAX >= range * 10)
		step /= 10;
	for (;; step *= 10)
		for (int i = 0; i < 3; i++) {
			static const double steps[] = {1, 2, 5};

			if (step * steps[i] * TICKS_MAX >= range)
				return step * steps[i];
		}
}

static double top_of(const struct weir_plot *plot, const struct weir_plot_panel *panel)
{
	double admitted = largest(panel->admitted, plot->bins), threshold = largest(panel->threshold, plot->bins);
	double shown = admitted > threshold ? admitted : threshold, offered = largest(panel->offered, plot->bins);

	if (shown > 0 && offered > shown * OFFERED_SHARE_MAX)
		offered = shown * OFFERED_SHARE_MAX;
	if (shown < offered)
		shown = offered;
	return shown > 0 ? shown * 1.05 : 1;
}

static double x_of(const struct canvas *canvas, double bin)
{
	return LEFT + bin / canvas->plot->bins * PLOT_WIDTH;
}

static double y_of(const struct canvas *canvas, double value)
{
	return TOP + PLOT_HEIGHT * (1 - value / canvas->top);
}

/* ---- axes ---- */

static void write_y_axis(const struct canvas *canvas)
{
	double step = tick_step(canvas->top);

	for (int i = 0; i * step <= canvas->top; i++) {
		double y = y_of(canvas, i * step);

		fprintf(canvas->stream, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
			LEFT + PLOT_WIDTH, y, y);
		fprintf(canvas->stream, "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.10g</text>\n",
			LEFT - 8, y + 4, i * step);
	}
	fprintf(canvas->stream,
		"<text text-anchor=\"middle\" transform=\"translate(16 %d) rotate(-90)\">%s per second</text>\n",
		TOP + PLOT_HEIGHT / 2, canvas->panel->unit);
}

/* A unit of time in which the axis has numbers that people read. */
static double time_unit(double seconds, const char **ret_name)
{
	if (seconds > 7200) {
		*ret_name = "hours";
		return 3600;
	}
	if (seconds > 300) {
		*ret_name = "minutes";
		return 60;
	}
	*ret_name = "seconds";
	return 1;
}

static void write_x_axis(const struct canvas *canvas)
{
	double bin_s = canvas->plot->bin_ns / 1e9;
	const char *name;
	double unit = time_unit(bin_s * canvas->plot->bins, &name);
	double range = bin_s * canvas->plot->bins / unit, step = tick_step(range);

	if (step < 1 && unit == 1)
		step = 1;
	for (int i = 0; i * step <= range; i++) {
		double x = x_of(canvas, i * step * unit / bin_s);

		fprintf(canvas->stream, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x,
			TOP + PLOT_HEIGHT, TOP + PLOT_HEIGHT + 5);
		fprintf(canvas->stream,
			"<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%.10g</text>\n", x,
			TOP + PLOT_HEIGHT + 18, i * step);
	}
	fprintf(canvas->stream, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT,
		LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT, TOP + PLOT_HEIGHT);
	fprintf(canvas->stream, "<text text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", LEFT + PLOT_WIDTH / 2,
		TOP + PLOT_HEIGHT + 36, name);
}

/* ---- lines ---- */

/* Each bin is a level as long as the bin; where there is no value the line is broken. */
static void write_path(const struct canvas *canvas, const double *values)
{
	bool is_drawing = false;

	for (size_t i = 0; i < canvas->plot->bins; i++) {
		if (isnan(values[i])) {
			is_drawing = false;
			continue;
		}
		fprintf(canvas->stream, "%s%.1f %.1fH%.1f", is_drawing ? "L" : "M", x_of(canvas, i),
			y_of(canvas, values[i]), x_of(canvas, i + 1));
		is_drawing = true;
	}
}

static void write_area(const struct canvas *canvas, const double *values, const char *colour, double opacity)
{
	fprintf(canvas->stream, "<path fill=\"%s\" fill-opacity=\"%.2f\" d=\"M%d %dL", colour, opacity, LEFT,
		TOP + PLOT_HEIGHT);
	for (size_t i = 0; i < canvas->plot->bins; i++)
		fprintf(canvas->stream, "%s%.1f %.1fH%.1f", i ? "L" : "", x_of(canvas, i), y_of(canvas, values[i]),
			x_of(canvas, i + 1));
	fprintf(canvas->stream, "V%dZ\"/>\n", TOP + PLOT_HEIGHT);
}

static void write_line(const struct canvas *canvas, const double *values, const char *colour, const char *dashes)
{
	fprintf(canvas->stream, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"",
		colour, dashes);
	write_path(canvas, values);
	fputs("\"/>\n", canvas->stream);
}

static void write_lines(const struct canvas *canvas)
{
	const struct weir_plot_panel *panel = canvas->panel;

	fprintf(canvas->stream,
		"<clipPath id=\"clip%zu\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n",
		canvas->number, LEFT, TOP - 1, PLOT_WIDTH, PLOT_HEIGHT + 2);
	fprintf(canvas->stream, "<g clip-path=\"url(#clip%zu)\">\n", canvas->number);
	write_area(canvas, panel->offered, colour_offered, 0.15);
	write_line(canvas, panel->offered, colour_offered, "none");
	write_area(canvas, panel->admitted, colour_admitted, 0.25);
	write_line(canvas, panel->admitted, colour_admitted, "none");
	if (panel->threshold)
		write_line(canvas, panel->threshold, colour_threshold, "7 4");
	fputs("</g>\n", canvas->stream);
}

/* ---- legend ---- */

static void write_legend_entry(const struct canvas *canvas, int x, const char *colour, const char *dashes,
			       const char *label, double most)
{
	fprintf(canvas->stream,
		"<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"3\" "
		"stroke-dasharray=\"%s\"/>\n",
		x, x + 26, TOP - 14, TOP - 14, colour, dashes);
	fprintf(canvas->stream, "<text x=\"%d\" y=\"%d\">%s, at most %.6g%s</text>\n", x + 32, TOP - 10, label, most,
		most > canvas->top ? " (beyond the top)" : "");
}

static void write_legend(const struct canvas *canvas)
{
	const struct weir_plot_panel *panel = canvas->panel;
	size_t bins = canvas->plot->bins;

	fprintf(canvas->stream, "<text class=\"name\" x=\"%d\" y=\"%d\">", LEFT, TOP - 34);
	write_escaped(canvas->stream, panel->name);
	fputs("</text>\n", canvas->stream);
	write_legend_entry(canvas, LEFT, colour_offered, "none", "offered", largest(panel->offered, bins));
	write_legend_entry(canvas, LEFT + 290, colour_admitted, "none", "admitted", largest(panel->admitted, bins));
	if (panel->threshold)
		write_legend_entry(canvas, LEFT + 520, colour_threshold, "7 4", "threshold",
				   largest(panel->threshold, bins));
}

/* ---- the contract ---- */

void weir_plot_write(const struct weir_plot *plot, FILE *stream)
{
	int height = PANEL_HEIGHT * (plot->panel_count ? plot->panel_count : 1);

	fprintf(stream,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
		"%d\">\n",
		WIDTH, height, WIDTH, height);
	fputs("<title>offered, admitted and threshold over time</title>\n"
	      "<style>text { font: 13px sans-serif; fill: #222 } .tick { font-size: 11px; fill: #555 }\n"
	      ".name { font-size: 15px; font-weight: bold } .grid { stroke: #e4e4e4 } .axis { stroke: #555 }</style>\n"
	      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
	      stream);
	for (size_t i = 0; i < plot->panel_count; i++) {
		const struct canvas canvas = {
			.plot = plot,
			.panel = &plot->panels[i],
			.stream = stream,
			.number = i,
			.top = top_of(plot, &plot->panels[i]),
		};

		fprintf(stream, "<g transform=\"translate(0 %zu)\">\n", i * PANEL_HEIGHT);
		write_y_axis(&canvas);
		write_lines(&canvas);
		write_x_axis(&canvas);
		write_legend(&canvas);
		fputs("</g>\n", stream);
	}
	fputs("</svg>\n", stream);
}
