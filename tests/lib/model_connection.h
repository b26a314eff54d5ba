/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections, for the reference model: docs/connections.md as a list that is read from the front for each question.
 * Nothing is kept that can be counted: how many are open is found by looking at each. Written from the text alone;
 * no table of the product, no step's number kept beside a connection, no eviction.
 */
#ifndef WEIR_TEST_MODEL_CONNECTION_H
#define WEIR_TEST_MODEL_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_packet.h"
#include "rules/ruleset.h"

#define MODEL_HANDSHAKE_STEPS 24

/* "What is counted", of a flow or of a rule. */
struct model_connection_counts {
	uint64_t now, max;
	uint64_t opened, learned, returned, refused;
	uint64_t closed_by_fin, closed_by_reset, closed_by_idle, reused;
	uint64_t handshakes, handshake_us; /* all together */
	uint64_t handshake_us_min;	   /* UINT64_MAX: there was none */
	uint64_t handshake_step[MODEL_HANDSHAKE_STEPS];
};

struct model_connections;

/* The rule set must outlive it: its rules' names are not read, its time-outs are. */
struct model_connections *model_connections_new(const struct weir_ruleset *ruleset);
void model_connections_free(struct model_connections *connections);

/*
 * Does the rule that `flow` names admit the packet? What it refuses is counted as refused, and nothing else happens.
 * now_ns never descends, from call to call; so below.
 */
bool model_connections_admit(struct model_connections *connections, const struct model_key *flow,
			     uint64_t threshold_micro, const struct model_packet *packet, uint64_t now_ns);

/* Every enforced rule has admitted the packet; this rule, if it is_refused, only observes. */
void model_connections_pass(struct model_connections *connections, const struct model_key *flow,
			    const struct model_packet *packet, bool is_refused, uint64_t now_ns);

struct model_connection_counts model_connections_of_flow(struct model_connections *connections,
							 const struct model_key *flow, uint64_t now_ns);
struct model_connection_counts model_connections_of_rule(struct model_connections *connections, uint32_t rule,
							 uint64_t now_ns);

/* Flows of the rule that anything was counted for. Places are 0 .. count - 1; the key is the list's. */
size_t model_connections_flows(const struct model_connections *connections);
const struct model_key *model_connections_flow(const struct model_connections *connections, size_t place);

#endif
