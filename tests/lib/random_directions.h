/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random rule sets and traffic of both directions: those of random.h, with resources that go in, out or both ways, keys
 * that name the ends of a packet, packets that go out, answers to what came in, and super-frames.
 */
#ifndef WEIR_TEST_RANDOM_DIRECTIONS_H
#define WEIR_TEST_RANDOM_DIRECTIONS_H

#include "random.h"

struct weir_ruleset *random_directed_ruleset(struct random *random);

/* What goes out does so only where a resource of the rule set does: else no program sees it. */
struct packet_spec *random_directed_packets(struct random *random, const struct weir_ruleset *ruleset, size_t count);

/* The same with circuit breakers, and mostly requests that go out, and their answers. */
struct weir_ruleset *random_directed_breaker_ruleset(struct random *random);
struct packet_spec *random_directed_breaker_packets(struct random *random, const struct weir_ruleset *ruleset,
						    size_t count);

#endif
