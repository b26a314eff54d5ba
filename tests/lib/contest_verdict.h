/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verdict on a contest: whether what both CPUs let pass is right in every window, and agrees with what the program
 * kept. A mistake fails the test, with the window.
 */
#ifndef WEIR_TEST_CONTEST_VERDICT_H
#define WEIR_TEST_CONTEST_VERDICT_H

#include "contest.h"

const char *contest_kind_name(enum weir_window_kind kind);

/* A flow under one of its rules, and what was admitted in each bucket from the contest's first on. */
struct account {
	const struct contest *contest;
	const struct flow *flow;
	size_t rule;
	const struct weir_rule *loaded;
	uint64_t limit, first, buckets;
	uint64_t *units;
};

void contest_fail_window(const struct account *account, const char *what, uint64_t bucket, uint64_t sum);

/* Print it, and count it as a shortfall of the test: contest_try() tries again. */
void contest_fall_short(const struct account *account, const char *what, uint64_t bucket, uint64_t sum);

/* No window on the grid holds more than the limit. A smooth one looks at its oldest bucket in part only. */
void contest_check_grid(const struct account *account);

/*
 * At the last packet of a saturated bucket the window is full. `unseen` windows may be short for a pause
 * that the threads could not see; and one in fifty, because a virtual CPU that is taken away while it holds
 * a lease leaves it unspent (seen: 296,527 of 300,000 bytes, once in seven runs).
 */
void contest_check_over(struct contest *contest, const struct account *account, uint64_t unseen);

/* All of it, by the log of single packets. */
void contest_check_rule(struct contest *contest, const struct flow *flow, size_t rule);

/* Load what was described, race for this long, evaluate. */
void contest_hold(struct contest *contest, const char *what, uint64_t duration_ns);

#endif
