/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is measured: of each resource a series of peaks, or of each of its rules that goes by a window, with the rule's
 * key, interval and unit. And the rule set by which the program reports these flows: a rule for each series, which
 * observes. Without resources there is one series of every IP packet, by source, protocol and destination port, of
 * which services are made later (services.h).
 */
#ifndef WEIR_SUGGEST_PLAN_H
#define WEIR_SUGGEST_PLAN_H

#include "suggest/suggest.h"

struct weir_suggest_series {
	size_t resource;
	struct weir_flow flow;
	struct weir_peak_window window;
	uint64_t interval_ns;
	bool counts_bytes;
};

struct weir_suggest_plan {
	struct weir_ruleset ruleset; /* borrows all but its rules */
	struct weir_ruleset_rule *rules;
	struct weir_suggest_series *series; /* by place of its rule */
	size_t count;
	struct weir_ruleset *services; /* what is asked where no resources are given; else NULL */
};

/* Without a rule set it looks for services. The caller frees *ret_plan in any case. */
int weir_suggest_plan_make(const struct weir_ruleset *ruleset, struct weir_suggest_plan *ret_plan,
			   struct weir_diag *diag);
void weir_suggest_plan_free(struct weir_suggest_plan *plan);

/* The series of a resource by itself: leap, a second, ten buckets, packets. */
struct weir_suggest_series weir_suggest_default_series(size_t resource, const struct weir_flow *flow);

#endif
