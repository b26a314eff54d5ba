// SPDX-License-Identifier: GPL-2.0-only
/* The picture that `weir suggest` draws: where its curve and its line are. */
#include <string.h>

#include "../lib/claims.h"
#include "plot/plot.h"

/* Write to memory. The caller frees it. (Inlined, gcc 12 takes the pointer for one to its own variable.) */
__attribute__((noinline)) static char *draw(const struct weir_distribution_panel *panel)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	weir_plot_distributions(panel, 1, stream);
	fclose(stream);
	return text;
}

/* 770 pixels are two decades of peaks, 178 are one of flows. */
CLAIM(a_curve_says_how_many_flows_have_at_least_a_peak)
{
	const uint64_t sorted[] = {1, 1, 10, 10, 10, 10, 10, 10, 10, 100};
	char *text = draw(&(struct weir_distribution_panel){"<dns>", "packets in 1 s", "flow", sorted, 10, 10});

	assert_non_null(strstr(text, "<text class='name' y='-212'>&#60;dns&#62;</text>"));
	assert_non_null(strstr(text, "10 flows, at most 100"));
	/* The busiest alone at the right, nine of ten at the middle decade and above, all at the left. */
	assert_non_null(strstr(text, "<path class='flows' d='M770.0 0V-0.0H385.0V"));
	assert_non_null(strstr(text, "H0.0V-178.0H0'/>"));
	assert_non_null(strstr(text, "<path class='threshold' d='M385.0 0v-178'/>"));
	assert_non_null(strstr(text, "suggested: 10"));
	free(text);
}

CLAIM(without_a_threshold_there_is_no_line)
{
	const uint64_t one[] = {0};
	char *text = draw(&(struct weir_distribution_panel){"dns", "packets in 1 s", "flow", one, 1, 0});

	assert_null(strstr(text, "class='threshold'"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
}

RUN_CLAIMS(NULL, NULL)
