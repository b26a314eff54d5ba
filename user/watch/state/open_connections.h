/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connections that rules with `metricType: Concurrency` count, read from the maps of an instance: those of whole
 * rules, and the flows with the most of them. What the words mean is core's (tables/connection_counts.h).
 */
#ifndef WEIR_STATE_OPEN_CONNECTIONS_H
#define WEIR_STATE_OPEN_CONNECTIONS_H

#include "instance/instance.h"
#include "tables/connection_counts.h"

/* Has the instance any such rule? */
bool weir_connections_are_counted(const struct weir_instance *instance);

/* Figures of all rules, by slot; of a rule of another kind zeros. The caller frees *ret_figures. */
int weir_connections_read(const struct weir_instance *instance, struct weir_connection_figures **ret_figures,
			  struct weir_diag *diag);

struct weir_connection_use {
	uint32_t rule_slot;
	struct weir_flow_key key; /* of no meaning when the rule has none */
	struct weir_connection_figures figures;
	bool has_threshold; /* `threshold` is known: not of flows that an override may be for */
	uint64_t threshold;
};

struct weir_connection_flows {
	struct weir_connection_use *most; /* by now / threshold, then by now, falling */
	size_t count;			  /* at most what was asked for */
	uint64_t active;		  /* flows that have a connection now */
};

/* The `most` flows of a rule, or of WEIR_ANY_RULE, with the most connections now. The caller owns *ret_flows. */
int weir_connections_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
				struct weir_connection_flows *ret_flows, struct weir_diag *diag);
void weir_connection_flows_free(struct weir_connection_flows *flows);

#endif
