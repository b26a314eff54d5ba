/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ways in which sources follow one another, in tables of what a packet costs: the first four are their columns.
 */
#ifndef WEIR_BENCH_PATTERNS_H
#define WEIR_BENCH_PATTERNS_H

#include "rig.h"

enum pattern { PATTERN_ONE, PATTERN_10K, PATTERN_1M, PATTERN_NEW, PATTERN_64K, PATTERN_COUNT };
#define PATTERN_COLUMNS PATTERN_64K

static const struct {
	enum bench_sources sources;
	uint32_t flows, repeat;
} patterns[PATTERN_COUNT] = {
	[PATTERN_ONE] = {BENCH_SOURCES_ONE, 1, 200000},	     [PATTERN_10K] = {BENCH_SOURCES_MANY, 10000, 200000},
	[PATTERN_64K] = {BENCH_SOURCES_MANY, 65536, 100000}, [PATTERN_1M] = {BENCH_SOURCES_MANY, BENCH_FLOWS, 100000},
	[PATTERN_NEW] = {BENCH_SOURCES_NEW, 1, 100000},
};

#define PATTERN_ROUNDS 5

#endif
