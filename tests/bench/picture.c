// SPDX-License-Identifier: GPL-2.0-only
#include "picture.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "report.h"

/* Pixels, chosen, not derived: a page of Markdown is some 800 wide. */
#define WIDTH 760
#define HEAD 62	      /* title, and what is drawn */
#define GROUP_HEAD 30 /* above a group's first bar */
#define BAR_STEP 20
#define BAR_HEIGHT 14
#define BAR_LEFT 312 /* names end a little before */
#define BAR_LONGEST 380
#define BARS_MAX 8

/* Colours that also differ for those who do not see all of them (Okabe and Ito). */
static const char style[] =
	"text { font: 13px sans-serif; fill: #222 } .title { font-size: 16px; font-weight: bold }\n"
	".note, .value { fill: #555 } .group { font-weight: bold } .name { text-anchor: end }\n"
	".page { fill: #fff } .weir { fill: #0072b2 } .peer { fill: #b5b5b5 } text.weir { font-weight: bold }\n"
	"@media (prefers-color-scheme: dark) {\n"
	"text { fill: #e6e6e6 } .note, .value { fill: #b0b0b0 } .page { fill: #161b22 }\n"
	".weir { fill: #56b4e9 } .peer { fill: #6b7280 }\n"
	"}\n";

/* A group of bars: lines of a table, all of them or those whose first cell is `first`. */
struct bars {
	const char *title;
	const char *table, *first;
	size_t name_cell, ns_cell;
};

static const struct bars groups[] = {
	{"One source, over its limit", "wire", "1", 1, 3},
	{"10,000 sources, over their limits", "wire", "10k", 1, 3},
	{"A million sources, over their limits", "wire", "1M", 1, 3},
	{"Every packet from a new source", "wire", "spoofed, filling", 1, 3},
	{"SYN flood: every SYN from a new source", "synFlood", NULL, 0, 2},
};

struct bar {
	char name[48];
	double ns;
	bool is_weir;
};

/* Text of Markdown without its marks, which SVG need not escape then. */
static void copy_plain(char *text, size_t bytes, const char *markdown)
{
	size_t length = 0;

	for (; *markdown && length + 1 < bytes; markdown++)
		if (!strchr("*`<>&", *markdown))
			text[length++] = *markdown;
	text[length] = 0;
}

/* What is reported in the table, and would make every other bar short here. */
static bool is_left_out(const char *name)
{
	return strstr(name, "connlimit") || strstr(name, "tracking alone");
}

static size_t collect_bars(const struct report *report, const struct bars *group, struct bar bars[BARS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < report->table_count; i++) {
		json_t *line;
		size_t at;

		if (strcmp(report->tables[i].name, group->table))
			continue;
		json_array_foreach(report->tables[i].lines, at, line)
		{
			const char *first = json_string_value(json_array_get(line, 0));
			const char *name = json_string_value(json_array_get(line, group->name_cell));
			json_t *ns = json_array_get(line, group->ns_cell);

			if (!json_is_number(ns) || count == BARS_MAX || is_left_out(name) ||
			    (group->first && strcmp(first, group->first)))
				continue;
			copy_plain(bars[count].name, sizeof(bars[count].name), name);
			bars[count].is_weir = strstr(name, "weir");
			bars[count++].ns = json_number_value(ns);
		}
	}
	return count;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double longest(const struct report *report)
{
	struct bar bars[BARS_MAX];
	double most = 1;

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		size_t count = collect_bars(report, &groups[i], bars);

		for (size_t j = 0; j < count; j++)
			most = larger(most, bars[j].ns);
	}
	return most;
}

static void write_bar(FILE *stream, const struct bar *bar, int y, double most_ns)
{
	double width = larger(1, bar->ns / most_ns * BAR_LONGEST);

	fprintf(stream, "<text class='name%s' x='%d' y='%d'>%s</text>\n", bar->is_weir ? " weir" : "", BAR_LEFT - 8,
		y + BAR_HEIGHT - 3, bar->name);
	fprintf(stream, "<rect class='%s' x='%d' y='%d' width='%.1f' height='%d'/>\n", bar->is_weir ? "weir" : "peer",
		BAR_LEFT, y, width, BAR_HEIGHT);
	fprintf(stream, "<text class='value' x='%.1f' y='%d'>%.0f</text>\n", BAR_LEFT + width + 6, y + BAR_HEIGHT - 3,
		bar->ns);
}

/* Returns where the next group begins: `y` when this one has no bars. */
static int write_group(FILE *stream, const struct report *report, const struct bars *group, int y, double most_ns)
{
	struct bar bars[BARS_MAX];
	size_t count = collect_bars(report, group, bars);

	if (!count)
		return y;
	fprintf(stream, "<text class='group' x='16' y='%d'>%s</text>\n", y + GROUP_HEAD - 10, group->title);
	for (size_t i = 0; i < count; i++)
		write_bar(stream, &bars[i], y + GROUP_HEAD + i * BAR_STEP, most_ns);
	return y + GROUP_HEAD + count * BAR_STEP;
}

static int height_of(const struct report *report)
{
	struct bar bars[BARS_MAX];
	int height = HEAD;

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		size_t count = collect_bars(report, &groups[i], bars);

		height += count ? GROUP_HEAD + count * BAR_STEP : 0;
	}
	return height == HEAD ? 0 : height + 16;
}

int picture_write(const struct report *report, const char *path)
{
	int height = height_of(report), y = HEAD;
	FILE *stream;
	bool is_spoilt;

	if (!height)
		return -ENOENT;
	stream = fopen(path, "we");
	if (!stream)
		return -errno;
	fprintf(stream,
		"<svg xmlns='http://www.w3.org/2000/svg' role='img' viewBox='0 0 %d %d' width='%d' height='%d'>\n",
		WIDTH, height, WIDTH, height);
	fprintf(stream, "<title>what a packet costs, by limiter</title>\n<style>\n%s</style>\n", style);
	fputs("<rect class='page' width='100%' height='100%' rx='6'/>\n"
	      "<text class='title' x='16' y='30'>Nanoseconds a packet, shorter is better</text>\n"
	      "<text class='note' x='16' y='50'>end to end on one core, the limiter alone: less what the same packets "
	      "cost without it</text>\n",
	      stream);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		y = write_group(stream, report, &groups[i], y, longest(report));
	fputs("</svg>\n", stream);
	is_spoilt = ferror(stream);
	return fclose(stream) || is_spoilt ? -EIO : 0;
}
