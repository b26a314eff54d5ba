/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System rules, for the reference model: what is asked of the whole host before any other rule, as lists of all that
 * was admitted and of all handshakes, counted again for each question. Written from the text alone. Connections
 * are those of model_connection.h, of TCP alone, all resources together, in one flow; a handshake is timed as there.
 *
 * Inbound work is a TCP opening, or a packet of another protocol; the caller gives only packets that belong to some
 * resource and whose source is not in `allow`, and all of these, since every one may be of a connection.
 *
 * A rule that observes goes by what it would have let through: InboundQPS by a window of its own, Concurrency by
 * connections of its own. AvgRT and BBR go by all that passed.
 */
#ifndef WEIR_TEST_MODEL_SYSTEM_H
#define WEIR_TEST_MODEL_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_packet.h"

enum model_system_metric {
	MODEL_SYSTEM_LOAD,
	MODEL_SYSTEM_AVG_RT,
	MODEL_SYSTEM_CONCURRENCY,
	MODEL_SYSTEM_INBOUND_QPS,
	MODEL_SYSTEM_CPU_USAGE,
};

struct model_system_rule {
	enum model_system_metric metric;
	uint64_t trigger_micro;
	bool is_bbr; /* Load and CpuUsage: adaptive */
	bool observes;
};

struct model_system;

/* Rules and settings, of which it reads the time-outs of connections, must outlive it. */
struct model_system *model_system_new(const struct model_system_rule *rules, size_t count,
				      const struct weir_settings *settings);
void model_system_free(struct model_system *system);

/* What the controller published last; unknown, or stale: model_system_forget. */
void model_system_sample(struct model_system *system, uint64_t load1_micro, uint64_t cpu_micro);
void model_system_forget(struct model_system *system);

/* When a packet comes: by its own time, and the latest of any packet so far, by which connections go. */
struct model_system_time {
	uint64_t own_ns, latest_ns;
};

/*
 * The first enforced rule that drops the packet, or the number of rules. would_drop[place] says which observing ones
 * before it would have dropped it. Nothing is counted yet. latest_ns never descends, from call to call; so below.
 */
size_t model_system_evaluate(struct model_system *system, const struct model_packet *packet, bool *would_drop,
			     struct model_system_time time);

/* The packet passed, these rules and all others; would_drop is what evaluating it said. */
void model_system_commit(struct model_system *system, const struct model_packet *packet, const bool *would_drop,
			 struct model_system_time time);

/* What AvgRT and BBR go by. */
struct model_system_view {
	uint64_t open;			    /* connections */
	uint64_t handshakes, handshake_us;  /* of the last second, all together */
	uint64_t complete_max, shortest_us; /* of the last five: handshakes a second, and the shortest; 0: none was */
};

struct model_system_view model_system_view(struct model_system *system, uint64_t now_ns);

#endif
