/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs measured against each other by BPF_PROG_TEST_RUN: round by round an empty program and then each of
 * them runs the same packets, so that what the machine does meanwhile meets all alike. Figures are above the empty
 * program of their round, and medians over the rounds; ratios are taken within a round.
 */
#ifndef WEIR_BENCH_TRIAL_H
#define WEIR_BENCH_TRIAL_H

#include "rig.h"

#define TRIAL_PROGRAMS_MAX 10
#define TRIAL_ROUNDS_MAX 15

struct trial {
	struct rig_frame frame;
	enum bench_sources sources;
	uint32_t repeat; /* packets of a run */
	uint32_t rounds; /* odd, at most TRIAL_ROUNDS_MAX */
	int program_fd[TRIAL_PROGRAMS_MAX];
	size_t program_count;
};

/* What was measured: [program][round], ns a packet above the empty program. */
struct trial_result {
	double ns[TRIAL_PROGRAMS_MAX][TRIAL_ROUNDS_MAX];
	uint32_t rounds;
};

void trial_run(struct rig *rig, const struct trial *trial, struct trial_result *ret_result);

/* Median ns of a program. */
double trial_ns(const struct trial_result *result, size_t program);

/* Median over the rounds of one program's ns by another's. */
double trial_ratio(const struct trial_result *result, size_t program, size_t by);

/* The median over the rounds of (ns[many] - ns[one]) / further / ns[one]. */
double trial_growth(const struct trial_result *result, size_t one, size_t many, uint32_t further);

#endif
