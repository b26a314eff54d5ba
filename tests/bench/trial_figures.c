// SPDX-License-Identifier: GPL-2.0-only
/* What is made of a trial's rounds: pure, so that tests need no kernel. */
#include "report.h"
#include "trial.h"

double trial_ns(const struct trial_result *result, size_t program)
{
	double ns[TRIAL_ROUNDS_MAX];

	for (uint32_t round = 0; round < result->rounds; round++)
		ns[round] = result->ns[program][round];
	return report_median(ns, result->rounds);
}

double trial_ratio(const struct trial_result *result, size_t program, size_t by)
{
	double ratio[TRIAL_ROUNDS_MAX];

	for (uint32_t round = 0; round < result->rounds; round++)
		ratio[round] = result->ns[program][round] / result->ns[by][round];
	return report_median(ratio, result->rounds);
}

double trial_growth(const struct trial_result *result, size_t one, size_t many, uint32_t further)
{
	double growth[TRIAL_ROUNDS_MAX];

	for (uint32_t round = 0; round < result->rounds; round++) {
		double first_ns = result->ns[one][round];

		growth[round] = (result->ns[many][round] - first_ns) / further / first_ns;
	}
	return report_median(growth, result->rounds);
}
