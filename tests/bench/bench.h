/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the bench's BPF programs and its harness agree on.
 */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#include <linux/types.h>

#define BENCH_CPUS 2 /* that measurements use at once */

/* How the driver chooses the source address of the next packet. */
enum bench_sources {
	BENCH_SOURCES_ONE,  /* always the same */
	BENCH_SOURCES_MANY, /* at random, of BENCH_FLOWS */
	BENCH_SOURCES_NEW,  /* one after the other, scattered by a bijection: the first BENCH_FLOWS are those of MANY */
};

/* A little below 2^20, so that an LRU map of 2^20 entries holds them all without evicting. */
#define BENCH_FLOWS 1000000u
#define BENCH_LRU_ENTRIES (1u << 20)

/* The source of flow `number`, the last word of its address. A bijection of 32-bit numbers (the finalizer of
 * MurmurHash3): neighbours end up far apart.
 */
static inline __u32 bench_scatter(__u32 number)
{
	number ^= number >> 16;
	number *= 0x85ebca6b;
	number ^= number >> 13;
	number *= 0xc2b2ae35;
	return number ^ number >> 16;
}

/* Where one CPU's driver stands. */
struct bench_cursor {
	__u64 random; /* state of xorshift64, never 0 */
	__u64 next;   /* of BENCH_SOURCES_NEW */
	__u64 pad[5];
	__u64 rests; /* this CPU has empty packets, whatever the other is measured with */
};

/* What one CPU has seen of the other, to know whether they run side by side. */
struct bench_meeting {
	__u64 runs;
	__u64 other_runs;
	__u64 met;
	__u64 pad[5];
};

#endif
