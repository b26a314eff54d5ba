/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random rule sets and traffic that meet each other: both draw from the same few hosts, ports and
 * tags, so that most packets match something and flows reach their limits. The same seed gives the
 * same rules and packets on every machine, so a failing test names its seed and can be run again.
 */
#ifndef WEIR_TEST_RANDOM_H
#define WEIR_TEST_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "packets.h"
#include "rules/ruleset.h"

struct random {
	uint64_t state;
};

uint64_t random_u64(struct random *random);
/* Uniform in 0 .. below - 1; below > 0. */
uint64_t random_below(struct random *random, uint64_t below);
uint64_t random_between(struct random *random, uint64_t low, uint64_t high);
bool random_percent(struct random *random, unsigned int percent);

/*
 * A rule set of 1 to 6 resources with 0 to 4 rules each, 16 in all at most, of every combination of strategy, behaviour
 * and relation that is not refused; in every second rule set, half of them limit connections. Free it with
 * weir_ruleset_free.
 */
struct weir_ruleset *random_ruleset(struct random *random);

/* The same, with resources that are without others. */
struct weir_ruleset *random_except_ruleset(struct random *random);

/* Write it as a rule file that reads back as the same rule set. */
void ruleset_write_yaml(const struct weir_ruleset *ruleset, FILE *stream);

/* A name, as YAML has any text. */
void ruleset_write_quoted(FILE *stream, const char *text);

/* One packet, without a time: of any shape, and now and then damaged. */
struct packet_spec random_packet(struct random *random);

/*
 * `count` packets for that rule set, with times: bursts, steady rates through many seconds, silence, exact edges of its
 * rules' buckets and of seconds, steps back (in every fourth). Where connections are limited, most are of a few dozen
 * clients, with silences about the time-outs. The caller frees the array.
 */
struct packet_spec *random_packets(struct random *random, const struct weir_ruleset *ruleset, size_t count);

/* Memory in use from time_ns on. */
struct random_reading {
	uint64_t time_ns, used_bytes;
};

/* Up to `max` readings among the times of those packets, in order of time, about the marks of that rule set. */
size_t random_memory(struct random *random, const struct weir_ruleset *ruleset, const struct packet_spec *specs,
		     size_t count, struct random_reading *readings, size_t max);

/* The interface that "exists" in these tests, as a resolver for both compiler and model. */
#define RANDOM_INTERFACE "eth0"
#define RANDOM_IFINDEX 1u
uint32_t random_ifindex(const char *name);

#endif
