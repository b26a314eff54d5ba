/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tables on the stage say of a flow under one rule: its window, its tokens, its penalty, what holds for it.
 * Only for people: what becomes of a packet is for the program to say (trial.h).
 */
#ifndef WEIR_EXPLAIN_LOOK_H
#define WEIR_EXPLAIN_LOOK_H

#include "explain/explain.h"

struct weir_look {
	const struct weir_stage *stage;
	const struct weir_controller_report *controller; /* NULL: nothing is attached */
	uint64_t now_ns;
};

/* Fill in what *explained has of the limit and of what is used, for the flow of its rule. */
int weir_look_at_flow(const struct weir_look *look, const struct weir_lab_flow *flow,
		      struct weir_explained_rule *explained);

/* What the program has just brought up to date in the lab: a flow's own WarmUp. */
int weir_look_again(const struct weir_look *look, const struct weir_lab_flow *flow,
		    struct weir_explained_rule *explained);

/* The CPU whose row of the flow was written last; -1: there is none. */
int weir_look_for_cpu(const struct weir_stage *stage, const struct weir_lab_flow *flow);

#endif
