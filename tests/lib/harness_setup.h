/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What claims in a harness are made of: small rule sets by hand, and packets of a few hosts. Asserts (cmocka) that
 * object and model agree on each.
 */
#ifndef WEIR_TEST_HARNESS_SETUP_H
#define WEIR_TEST_HARNESS_SETUP_H

#include "claims.h"
#include "harness.h"

/* ---- rule sets ---- */

/* A resource that everything matches, and its rules. */
struct setup {
	struct weir_ruleset ruleset;
	struct weir_ruleset_resource resource[3];
	struct weir_ruleset_rule rule[3];
};

/* Up to three resources, keyed by source, and no rule yet. */
void setup_resources(struct setup *setup, size_t count);

/* The first resource is ports 53 and 55, the second 54 and 55. */
void setup_ports(struct setup *setup);

void setup_rule(struct setup *setup, size_t resource, struct weir_ruleset_rule rule);

/* Rules to add; `threshold` may be a fraction. */
struct weir_ruleset_rule rule_of(char *name, enum weir_window_kind window, double threshold, uint64_t interval_ns,
				 uint32_t samples);
struct weir_ruleset_rule warm_up_of(double threshold, uint64_t interval_ns, uint32_t period_s);
struct weir_ruleset_rule throttling_of(double threshold, uint64_t interval_ns, uint64_t queueing_ms_max);

/* The same rule, evaluated against the traffic of another resource. */
struct weir_ruleset_rule associated(struct weir_ruleset_rule rule, size_t ref_resource);

/* ---- a claim, from its start to its end ---- */

/* A claim that has a harness, and what is to be set up for it. At its end the counters agree, too. */
#define HARNESS_CLAIM(what)                                                                                            \
	static void what##_holds(struct harness *harness, struct setup *setup);                                        \
	CLAIM(what)                                                                                                    \
	{                                                                                                              \
		struct setup setup = {};                                                                               \
		struct harness harness = {};                                                                           \
                                                                                                                       \
		what##_holds(&harness, &setup);                                                                        \
		harness_finish(&harness);                                                                              \
	}                                                                                                              \
	static void what##_holds(struct harness *harness, struct setup *setup)

/* Takes the rules that were set up. What the harness had before is to be finished. */
void harness_start(struct harness *harness, struct setup *setup);

/* One rule on one resource, the beginning of most claims. */
void harness_rule(struct harness *harness, struct setup *setup, struct weir_ruleset_rule rule);
void harness_one_rule(struct harness *harness, struct setup *setup, enum weir_window_kind window, double threshold,
		      uint64_t interval_ns, uint32_t samples);

#define HOST "192.0.2.1"
#define OTHER_HOST "192.0.2.2"

/* What both say of a packet. */
enum weir_verdict harness_verdict(struct harness *harness, const struct packet_spec *spec);

/* Send `count` packets of 60 bytes to a port, each evaluated by object and model. Returns how many passed. */
unsigned int harness_send_to(struct harness *harness, const char *source, uint16_t port, uint64_t time_ns,
			     unsigned int count);

/* ... to port 53. */
unsigned int harness_send(struct harness *harness, const char *source, uint64_t time_ns, unsigned int count);

/* A second of 500 packets, spread evenly. Returns how many passed. */
unsigned int harness_saturate(struct harness *harness, const char *source, uint64_t second);

/* The counters agree, too; nothing to do where none was started. */
void harness_finish(struct harness *harness);

#endif
