/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of bench-quick. Each adds its rows to the report.
 */
#ifndef WEIR_BENCH_QUICK_H
#define WEIR_BENCH_QUICK_H

#include "report.h"
#include "rig.h"

/* S1 to S4: BPF_PROG_TEST_RUN, beside building blocks. */
void quick_speed(struct rig *rig, struct report *report);

/* What an allow or deny list costs, beside a trie of the kernel's. */
void quick_lists(struct rig *rig, struct report *report);

/* A1 to A5 packet by packet under the virtual clock; A6 and A7 during a flood of spoofed sources. */
void quick_accuracy_virtual(struct rig *rig, struct report *report);

/* The same claims under the real clock, with two CPUs at the same flows. */
void quick_accuracy_real(struct rig *rig, struct report *report);

#endif
