/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rounds of random rules and traffic in a harness. WEIR_SEED and WEIR_ROUNDS choose them; a failure names the seed
 * of its round, and WEIR_SEED=that WEIR_ROUNDS=1 repeats it.
 */
#ifndef WEIR_TEST_HARNESS_ROUNDS_H
#define WEIR_TEST_HARNESS_ROUNDS_H

#include "harness.h"

struct harness_rounds {
	uint64_t rounds; /* unless WEIR_ROUNDS says otherwise */
	size_t packets;	 /* of each */
	/* What comes in is evaluated at tc in every second round; in the others it is no super-frame. */
	bool has_directions;
	/* Both results are the caller's to free. */
	struct weir_ruleset *(*rules)(struct random *random);
	struct packet_spec *(*traffic)(struct random *random, const struct weir_ruleset *ruleset, size_t count);
};

/* Asserts (cmocka) that object and model agree on every packet, and on what was counted. */
void harness_rounds_agree(const struct harness_rounds *rounds);

#endif
