/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is measured: a series of peaks for each resource, or one for each of its rules that uses a window, with the
 * rule's key, interval and unit. The plan also has the rule set with which the program reports these flows: one
 * observing rule per series. If no resources are given, there is one series of all incoming IP packets, by source,
 * protocol and destination port, and one of all outgoing ones, by remote, which are later split into services
 * (services.c).
 */
#ifndef WEIR_SUGGEST_PLAN_H
#define WEIR_SUGGEST_PLAN_H

#include "suggest/suggest.h"

struct weir_suggest_series {
	size_t resource;
	struct weir_flow flow;
	struct weir_flow fair_by; /* of the rule; not measured, since a level is no number of the file */
	struct weir_peak_window window;
	uint64_t interval_ns;
	bool counts_bytes;
};

struct weir_suggest_plan {
	struct weir_ruleset ruleset; /* borrows everything except its rules */
	struct weir_ruleset_rule *rules;
	struct weir_suggest_series *series; /* by the index of its rule */
	size_t count;
	struct weir_ruleset *services; /* the rule set that finds services if no resources are given; otherwise NULL */
};

/* Without a rule set, plan to look for services. The caller frees *ret_plan in any case. */
int weir_suggest_plan_make(const struct weir_ruleset *ruleset, struct weir_suggest_plan *ret_plan,
			   struct weir_diag *diag);
void weir_suggest_plan_free(struct weir_suggest_plan *plan);

/* The default series of a resource: leap, one second, ten buckets, packets. */
struct weir_suggest_series weir_suggest_default_series(size_t resource, const struct weir_flow *flow);

#endif
