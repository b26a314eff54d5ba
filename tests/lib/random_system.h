/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random system rules, and what the controller could have sampled for them. The traffic is that of random.h: where
 * there are system rules, most packets are of a few dozen clients, who open connections.
 */
#ifndef WEIR_TEST_RANDOM_SYSTEM_H
#define WEIR_TEST_RANDOM_SYSTEM_H

#include "random.h"

/* A rule set of random_ruleset with one to four system rules before the others. */
struct weir_ruleset *random_system_ruleset(struct random *random);

/* Load and CPU usage from time_ns on. */
struct random_sample {
	uint64_t time_ns, load1_micro, cpu_micro;
};

/* Up to `max` samples among the times of those packets, in order of time, about the triggers of that rule set. None
 * where it has no system rules.
 */
size_t random_samples(struct random *random, const struct weir_ruleset *ruleset, const struct packet_spec *specs,
		      size_t count, struct random_sample *samples, size_t max);

#endif
