/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two programs measured in turns: the ratio of each turn, their median, and how far turns differ. Pure.
 */
#ifndef WEIR_BENCH_COMPARE_H
#define WEIR_BENCH_COMPARE_H

#include "report.h"

#define COMPARE_TURNS_MAX 64

struct comparison {
	double old_median, new_median;
	double ratio;	  /* new / old, median over the turns */
	double low, high; /* its spread: between these lie all but the tenth at either end */
	/* What the ratio may be before it is worse: 1, and so much more (of a rate less) as the median is away from the
	 * better end of the spread. So it is worse only when low > 1, or of a rate high < 1.
	 */
	struct report_bounds must;
};

/* Turn i found old[i] and new[i]; less than 0.1 counts as that. count > 0; is_rate: more is better. */
struct comparison compare_turns(const double *old, const double *new, size_t count, bool is_rate);

#endif
