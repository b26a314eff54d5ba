/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The picture that the page begins with: what a packet costs, by limiter, as bars. Plain SVG, with a background of its
 * own, light or dark as the reader has it. Drawn from the tables "wire" and "synFlood" of a report.
 */
#ifndef WEIR_BENCH_PICTURE_H
#define WEIR_BENCH_PICTURE_H

struct report;

/* -ENOENT: the report has none of these tables, so nothing was written. */
int picture_write(const struct report *report, const char *path);

#endif
