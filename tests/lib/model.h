/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reference model: what must become of each packet, worked out the slow and obvious way from the
 * words of docs/semantics.md, docs/rules.md and docs/connections.md. It is what the BPF program is
 * compared with, so it shares nothing with it: no header of bpf/, no arithmetic of include/, no compiled image, no
 * controller. Rules are tried one by one, flows are found by their whole key, windows are sums over what was admitted,
 * a resource warms up second by second. One CPU, no table that could be full, no lease, no shadow window, no cache.
 *
 * Where a clock that goes back leaves a choice, the model's: seconds of a warm-up never go back, and what passes in
 * a second that has been synced already warms nothing; a memory reading is that of the packet's own time.
 */
#ifndef WEIR_TEST_MODEL_H
#define WEIR_TEST_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "model_breaker.h"
#include "model_connection.h"
#include "model_packet.h"
#include "rules/ruleset.h"
#include "weir_abi.h"

struct model;

struct model_decision {
	enum weir_verdict verdict;
	const char *rule; /* as in replay's CSV: the rule that dropped it or the class's word; "" when it passed */
	uint64_t wait_ns; /* that throttling asks for; 0 when dropped */
	size_t resource_count;
	size_t resource[WEIR_PACKET_RESOURCES_MAX]; /* places in the rule set, ascending */
};

/*
 * The rule set must outlive the model. `ifindex` NULL: no condition on an interface ever holds. The rules are
 * loaded at the time of the first packet.
 */
struct model *model_new(const struct weir_ruleset *ruleset, model_ifindex ifindex);
void model_free(struct model *model);

/* From time_ns on so much memory is in use; times never descend. Before the first reading it is unknown. */
void model_memory(struct model *model, uint64_t time_ns, uint64_t used_bytes);

/* From time_ns on these are the load of a minute and the busy share of all CPUs, in millionths, of which system rules
 * ask; times never descend. Before the first they are unknown.
 */
void model_sample(struct model *model, uint64_t time_ns, uint64_t load1_micro, uint64_t cpu_micro);

/* Which way it goes, and for how many packets it stands: 0 is one. */
struct model_way {
	bool is_out;
	uint64_t segments;
};

/* Evaluate one frame of frame_bytes, all of them given, seen at time_ns on interface `ifindex`: a packet that comes in,
 * or goes that way. Its bytes are what its segments have as frames.
 */
struct model_decision model_evaluate(struct model *model, uint64_t time_ns, const uint8_t *frame, size_t frame_bytes,
				     uint32_t ifindex);
struct model_decision model_evaluate_way(struct model *model, uint64_t time_ns, const uint8_t *frame,
					 size_t frame_bytes, uint32_t ifindex, struct model_way way);

/* Packets so far that an observing rule (its place in the rule set) would have dropped. */
uint64_t model_would_drop(const struct model *model, size_t rule);

/* Packets so far that passed with a unit of a bucket to come that they occupied. */
uint64_t model_occupied(const struct model *model, size_t rule);

/* floor(allowed), units per interval, when the rule last evaluated a packet. */
uint64_t model_threshold(const struct model *model, size_t rule);

/* Connections under a Concurrency rule (its place in the rule set), and of one of its flows, at the time of the last
 * packet, or of the latest before it.
 */
struct model_connection_counts model_connections(const struct model *model, size_t rule);
struct model_connection_counts model_flow_connections(const struct model *model, const struct model_key *flow);

/* Flows of all such rules that anything was counted for, in places 0 .. count - 1. */
size_t model_flows_with_connections(const struct model *model);
const struct model_key *model_flow_with_connections(const struct model *model, size_t place);

/* The circuit breaker of one flow of such a rule, at that time; and all flows that ever had one. */
struct model_breaker_view model_flow_breaker(const struct model *model, const struct model_key *flow);
size_t model_flows_with_breakers(const struct model *model);
const struct model_key *model_flow_with_breaker(const struct model *model, size_t place);

#endif
