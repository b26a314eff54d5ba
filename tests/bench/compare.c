// SPDX-License-Identifier: GPL-2.0-only
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What costs a few ns may seem to cost less than nothing in a disturbed turn: the ratio must not change its sign. */
#define LEAST 0.1

static double no_less(double value)
{
	return value > LEAST ? value : LEAST;
}

static double median_of(const double *values, size_t count)
{
	double copy[COMPARE_TURNS_MAX];

	memcpy(copy, values, count * sizeof(*values));
	return report_median(copy, count);
}

struct comparison compare_turns(const double *old, const double *new, size_t count, bool is_rate)
{
	double ratios[COMPARE_TURNS_MAX];
	struct comparison result;

	if (count > COMPARE_TURNS_MAX)
		abort();
	for (size_t i = 0; i < count; i++)
		ratios[i] = no_less(new[i]) / no_less(old[i]);
	result.old_median = median_of(old, count);
	result.new_median = median_of(new, count);
	result.ratio = report_median(ratios, count); /* sorts them */
	result.low = ratios[count / 10];
	result.high = ratios[count - 1 - count / 10];
	result.must = is_rate ? AT_LEAST(1 - (result.high - result.ratio)) : AT_MOST(1 + (result.ratio - result.low));
	return result;
}
