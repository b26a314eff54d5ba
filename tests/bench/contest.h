/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A row of what to reach that is a contest: weir and a building block, which is a bare look-up that hits, or one that
 * misses and an insertion, of a 64-byte value in an LRU_HASH of 2^20 entries. Measured as trial.h says.
 */
#ifndef WEIR_BENCH_CONTEST_H
#define WEIR_BENCH_CONTEST_H

#include "report.h"
#include "rig.h"

struct contest {
	const char *row;
	const char *what;
	struct rig_frame frame;
	enum bench_sources sources; /* BENCH_SOURCES_NEW is beside an insertion */
	uint32_t repeat;
	int family;
	int weir_fd;
	struct report_bounds must, aim;
};

/* Adds the row: the ratio, and the ns of both. The block's maps have been filled, as far as `sources` need them. */
void contest_run(struct rig *rig, const struct contest *contest, struct report *report);

/* Let the blocks of a family know the one source, all that are drawn from many, and be full of spoofed ones. */
void contest_fill_one(struct rig *rig, int family);
void contest_fill_many(struct rig *rig, int family);
void contest_fill_spoofed(struct rig *rig, int family);

/* Let a program see as many sources that are none of the BENCH_FLOWS as fill a table of BENCH_LRU_ENTRIES. */
void contest_flood(struct rig *rig, int program_fd, const struct rig_frame *frame);

/* The block's program for sources of this kind. */
int contest_block_fd(const struct rig *rig, int family, enum bench_sources sources);

#endif
