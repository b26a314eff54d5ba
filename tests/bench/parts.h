/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the bench. Each adds its rows and tables to the report.
 */
#ifndef WEIR_BENCH_PARTS_H
#define WEIR_BENCH_PARTS_H

#include "report.h"
#include "rig.h"

/* S1 to S4: BPF_PROG_TEST_RUN, beside building blocks. */
void bench_speed(struct rig *rig, struct report *report);

/* An empty program, the clock, look-ups and insertions of the kernel's maps, and a limiter made of one of them. */
void bench_blocks(struct rig *rig, struct report *report);

/* Kinds of packets, paths, windows, strategies and behaviours, each for one flow, 64k, 1M, and new ones only. */
void bench_packets(struct rig *rig, struct report *report);

/* S10 to S12: a SYN flood under a limit of connections; bytes, WarmUp and MemoryAdaptive with a million flows. */
void bench_floods(struct rig *rig, struct report *report);

/* S10e and S10c: a SYN flood on a wire, forwarded and answered, beside peers. */
void bench_syn_flood(struct rig *rig, struct report *report);

/* S14: what legitimate TCP pays. */
void bench_tcp(struct rig *rig, struct report *report);

/* S18: the dearest packets that a sender can make, under 16 rules of connections and tokens. */
void bench_dearest(struct rig *rig, struct report *report);

/* Several rules on a packet, thousands of resources, thousands of rules to load. */
void bench_many(struct rig *rig, struct report *report);
/* Detach what bench_many has attached by commands, if it has. Async-signal-safe. */
void bench_many_clean_up(void);

/* The program with and without each of its shortcuts. */
void bench_shortcuts(struct rig *rig, struct report *report);

/* S1 to S4, S7, S8, S10 and S14 of two binaries of weir in turns; these, each as "NAME:PATH". */
void bench_trees(struct rig *rig, struct report *report);
void bench_trees_use(bool is_new, const char *name_and_path);

/* A1 to A5 packet by packet under the virtual clock; A6 and A7 during a flood of spoofed sources; A8. */
void bench_accuracy_virtual(struct rig *rig, struct report *report);

/* The same claims under the real clock, with two CPUs at the same flows. */
void bench_accuracy_real(struct rig *rig, struct report *report);

/* Admitted against configured on a wire: patterns, limits, numbers of flows and CPUs, weir's windows and peers. */
void bench_matrix(struct rig *rig, struct report *report);

/* S7, what one core sustains on a wire, and what survives a flood, beside peers. */
void bench_wire(struct rig *rig, struct report *report);

#endif
