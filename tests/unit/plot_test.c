// SPDX-License-Identifier: GPL-2.0-only
/* The picture that replay draws: what must be in it, and where. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "plot/plot.h"

/* Write to memory. The caller frees it. (Inlined, gcc 12 takes the pointer for one to its own variable.) */
__attribute__((noinline)) static char *draw(const struct weir_plot *plot)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	weir_plot_write(plot, stream);
	fclose(stream);
	return text;
}

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		count++;
	return count;
}

/* Every tag that is opened is closed, and nothing is left of '&' or '<' but what XML means by them. */
static void assert_well_formed(const char *text)
{
	int depth = 0;

	for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
		const char *end = strchr(at, '>');

		assert_non_null(end);
		assert_true(memchr(at + 1, '<', end - at - 1) == NULL);
		depth += at[1] == '/' ? -1 : end[-1] == '/' ? 0 : 1;
		assert_true(depth >= 0);
	}
	assert_int_equal(depth, 0);
	for (const char *at = strchr(text, '&'); at; at = strchr(at + 1, '&'))
		assert_true(!strncmp(at, "&#38;", 5) || !strncmp(at, "&#60;", 5) || !strncmp(at, "&#62;", 5));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
}

CLAIM(each_resource_has_a_panel_with_axes_lines_and_a_legend)
{
	const double offered[] = {100, 100, 0}, admitted[] = {33, 34, 0}, threshold[] = {33, 34, 34};
	const struct weir_plot_panel panels[] = {
		{"web", "packets", offered, admitted, threshold},
		{"dns", "bytes", offered, offered, NULL},
	};
	_cleanup_(weir_freep) char *text = draw(&(struct weir_plot){1000000000, 3, panels, 2});

	assert_well_formed(text);
	assert_int_equal(count_of(text, "class='name'"), 2);
	assert_non_null(strstr(text, ">web</text>"));
	assert_non_null(strstr(text, ">packets per second</text>"));
	assert_non_null(strstr(text, ">bytes per second</text>"));
	assert_int_equal(count_of(text, ">seconds</text>"), 2);
	assert_int_equal(count_of(text, ">offered, at most 100"), 2);
	assert_int_equal(count_of(text, ">threshold, at most 34</text>"), 1);
}

CLAIM(names_are_escaped)
{
	const double values[] = {1};
	const struct weir_plot_panel panel = {"<a & b>", "packets", values, values, NULL};
	_cleanup_(weir_freep) char *text = draw(&(struct weir_plot){1000000000, 1, &panel, 1});

	assert_well_formed(text);
	assert_non_null(strstr(text, "&#60;a &#38; b&#62;"));
}

/* The height of the only bin, in pixels above the axis. */
static double level(double offered, double admitted)
{
	const struct weir_plot_panel panel = {"r", "packets", &offered, &admitted, NULL};
	char *text = draw(&(struct weir_plot){1000000000, 1, &panel, 1}), *path;
	double y = 1;

	path = strstr(text, "<path class='admitted' d='M-3 0V");
	assert_non_null(path);
	assert_int_equal(sscanf(path, "<path class='admitted' d='M-3 0V%lfH770.0", &y), 1);
	free(text);
	return -y;
}

/* The area inside the axes is 178 pixels high. */
CLAIM(what_is_admitted_is_drawn_to_scale)
{
	assert_float_equal(level(100, 0), 0, 0.05);
	assert_float_equal(level(100, 100), 178 / 1.05, 0.05);
	assert_float_equal(level(150, 100), 178 / 1.05 / 1.5, 0.05);
}

/* What is inside the axes is 770 pixels wide and 178 high; the curve begins and ends outside, where it is clipped. */
CLAIM(bins_follow_each_other_from_edge_to_edge)
{
	const double values[] = {2, 1, 0, 2};
	const struct weir_plot_panel panel = {"r", "packets", values, values, values};
	_cleanup_(weir_freep) char *text = draw(&(struct weir_plot){1000000000, 4, &panel, 1});

	assert_int_equal(count_of(text, "'M-3 0V-169.5H192.5V-84.8H385.0V-0.0H577.5V-169.5H770.0h3V0'/>"), 3);
}

CLAIM(flood_does_not_press_the_curve_to_the_ground)
{
	const double offered[] = {1000000}, admitted[] = {100};
	const struct weir_plot_panel panel = {"r", "packets", offered, admitted, NULL};
	char *text = draw(&(struct weir_plot){1000000000, 1, &panel, 1});

	assert_non_null(strstr(text, ">offered, at most 1e+06 (beyond the top)</text>"));
	free(text);
	assert_float_equal(level(1000000, 100), 178 / 1.05 / 1.6, 0.05);
}

CLAIM(ticks_are_at_round_numbers)
{
	const struct {
		double rate;
		size_t ticks;
		const char *last;
	} axes[] = {{7.6, 8, ">7</text>"},
		    {14, 8, ">14</text>"},
		    {30, 7, ">30</text>"},
		    {0.7, 8, ">0.7</text>"},
		    {70000, 8, ">70000</text>"}};

	for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
		const struct weir_plot_panel panel = {"r", "packets", &axes[i].rate, &axes[i].rate, NULL};
		_cleanup_(weir_freep) char *text = draw(&(struct weir_plot){1000000000, 1, &panel, 1});

		assert_int_equal(count_of(text, "class='y'"), axes[i].ticks);
		assert_non_null(strstr(text, axes[i].last));
	}
}

CLAIM(nothing_at_all_is_a_picture_too)
{
	const double values[] = {0, 0};
	const struct weir_plot_panel panel = {"r", "packets", values, values, values};
	char *text = draw(&(struct weir_plot){1000000000, 2, &panel, 1});

	assert_well_formed(text);
	free(text);
	text = draw(&(struct weir_plot){1000000000, 1, NULL, 0});
	assert_well_formed(text);
	free(text);
}

CLAIM(long_captures_have_minutes_or_hours_and_few_numbers)
{
	double values[600] = {1e9, 0.001};
	const struct weir_plot_panel panel = {"r", "packets", values, values, values};
	char *text = draw(&(struct weir_plot){1000000000, 600, &panel, 1});

	assert_well_formed(text);
	assert_non_null(strstr(text, ">minutes</text>"));
	assert_int_equal(count_of(text, "class='x'"), 6);
	assert_int_equal(count_of(text, "class='y'"), 6);
	free(text);
	text = draw(&(struct weir_plot){3600000000000, 600, &panel, 1});
	assert_non_null(strstr(text, ">hours</text>"));
	assert_int_equal(count_of(text, "class='x'"), 7);
	free(text);
}

RUN_CLAIMS(NULL, NULL)
