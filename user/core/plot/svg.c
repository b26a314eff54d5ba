// SPDX-License-Identifier: GPL-2.0-only
#include "plot/svg.h"

void weir_svg_begin(FILE *stream, size_t height, const char *title, const char *style)
{
	fprintf(stream,
		"<svg xmlns='http://www.w3.org/2000/svg' role='img' viewBox='0 0 %d %zu' width='%d' height='%zu'>\n",
		WEIR_SVG_WIDTH, height, WEIR_SVG_WIDTH, height);
	fprintf(stream, "<title>%s</title>\n<style>\n%s</style>\n", title, style);
	fputs("<rect width='100%' height='100%' fill='#fff'/>\n", stream);
}

void weir_svg_write_escaped(FILE *stream, const char *text)
{
	for (; *text; text++)
		fprintf(stream, *text == '&' || *text == '<' || *text == '>' ? "&#%d;" : "%c", *text);
}
