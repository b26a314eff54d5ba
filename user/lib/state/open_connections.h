/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connections that rules with `metricType: Concurrency` count, read from the maps of an instance: the totals of
 * whole rules, and the flows with the most connections. Their words are interpreted in core
 * (tables/connection_counts.h).
 */
#ifndef WEIR_STATE_OPEN_CONNECTIONS_H
#define WEIR_STATE_OPEN_CONNECTIONS_H

#include "instance/instance.h"
#include "tables/connection_counts.h"

/* Does the instance have any such rule? */
bool weir_connections_are_counted(const struct weir_instance *instance);

/* The figures of all rules, by slot; zeros for rules of other kinds. The caller frees *ret_figures. */
int weir_connections_read(const struct weir_instance *instance, struct weir_connection_figures **ret_figures,
			  struct weir_diag *diag);

struct weir_connection_use {
	uint32_t rule_slot;
	struct weir_flow_key key; /* meaningless if the rule has no key */
	struct weir_connection_figures figures;
	bool has_threshold; /* `threshold` is known; false for flows that may be under an override */
	uint64_t threshold;
};

struct weir_connection_flows {
	struct weir_connection_use *most; /* by now / threshold, then by now, descending */
	size_t count;			  /* at most the number that was asked for */
	uint64_t active;		  /* flows that have a connection now */
};

/* The `most` flows with the most connections now, of one rule or of WEIR_ANY_RULE. The caller owns *ret_flows. */
int weir_connections_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
				struct weir_connection_flows *ret_flows, struct weir_diag *diag);
void weir_connection_flows_free(struct weir_connection_flows *flows);

#endif
