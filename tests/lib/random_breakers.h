/* SPDX-License-Identifier: GPL-2.0-only */
/* Circuit breakers for random rule sets, and requests that meet them. */
#ifndef WEIR_TEST_RANDOM_BREAKERS_H
#define WEIR_TEST_RANDOM_BREAKERS_H

#include <stdbool.h>
#include <stdio.h>

#include "random.h"
#include "random_requests.h"

/* One or two for some of its resources that may see openings, behind all other rules; 16 rules in all at most. */
void random_breakers(struct random *random, struct weir_ruleset *ruleset);

bool ruleset_has_breakers(const struct weir_ruleset *ruleset);

/* Their list, as rule files have it. */
void ruleset_write_breakers(const struct weir_ruleset *ruleset, FILE *stream);

/* Requests about the edges of what they go by. */
void random_requests_for(struct random *random, const struct weir_ruleset *ruleset, struct random_requests *requests);

/*
 * A rule set whose breakers see whatever comes: one or two resources, few flows, other rules now and then. Free it with
 * weir_ruleset_free.
 */
struct weir_ruleset *random_breaker_ruleset(struct random *random);

/* `count` packets for it, most of them of requests. The caller frees the array. */
struct packet_spec *random_breaker_packets(struct random *random, const struct weir_ruleset *ruleset, size_t count);

#endif
