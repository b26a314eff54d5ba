/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tables of the sandbox contain about a flow under one rule: its window, its tokens, its penalty, its
 * threshold. Only for people: the program decides what happens to a packet (sandbox_run.h).
 */
#ifndef WEIR_EXPLAIN_FLOW_STATE_H
#define WEIR_EXPLAIN_FLOW_STATE_H

#include "explain/explain.h"

struct weir_flow_reader {
	const struct weir_sandbox *sandbox;
	const struct weir_controller_report *controller; /* NULL: nothing is attached */
	uint64_t now_ns;
};

/* Fill in the limit and the usage in *explained, for the flow of its rule. */
int weir_read_flow_state(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			 struct weir_explained_rule *explained);

/* Read what the program has just updated in the sandbox: a flow's own WarmUp state. */
int weir_read_warm_up(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
		      struct weir_explained_rule *explained);

/* The CPU whose row of the flow was written last; -1: the flow has no row. */
int weir_find_cpu_of_flow(const struct weir_sandbox *sandbox, const struct weir_harness_flow *flow);

#endif
