/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `weir top` shows: figures of now, by rule and by flow, from two readings of the counters one after the other.
 * Knows nothing of terminals.
 */
#ifndef WEIR_TOP_FIGURES_H
#define WEIR_TOP_FIGURES_H

#include <jansson.h>
#include <stdbool.h>

#include "control/controller.h"
#include "instance/instance.h"
#include "report/busy_flows.h"
#include "report/shared_limits.h"
#include "state/counters.h"
#include "state/dropped_flows.h"
#include "words/words.h"

#define WEIR_TOP_FLOWS_MAX 200
#define WEIR_TOP_DROPS_SECONDS 60 /* flows that were dropped since */

/* Packets a second. */
struct weir_top_rates {
	double offered, admitted, dropped;
	double would_drop; /* by rules that observe, or an instance that does; two rules may each count a packet */
};

struct weir_top_rule {
	const char *name, *resource; /* the instance's; resource is empty for a system rule */
	uint32_t slot;
	bool observes;					      /* by itself */
	bool drops_nothing;				      /* it observes, or the whole instance does */
	uint32_t directions;				      /* WEIR_MATCHES_IN and _OUT */
	struct weir_top_rates rates;			      /* offered and admitted: of its resource */
	char limit[128];				      /* in force now: "1000/s per source" */
	bool has_threshold;				      /* all its flows have one; not if they warm up */
	uint64_t threshold;				      /* with has_threshold: in force, units per interval */
	double share;					      /* of its busiest flow; below 0: none is known */
	const uint64_t *passed_by_second, *blocked_by_second; /* WEIR_MINUTE, of its resource; NULL: none */
};

struct weir_top_flow {
	const char *rule; /* "?": more than one may own it */
	char text[WEIR_WORDS_BYTES];
	const struct weir_flow_use *use; /* one of weir_top.flows */
	double share;			 /* below 0: not known */
};

struct weir_top_drop {
	const char *rule;
	char text[WEIR_WORDS_BYTES];
	uint64_t packets, last_ns; /* dropped in all, or would have been; when last, CLOCK_MONOTONIC */
};

struct weir_top {
	struct weir_instance *instance;
	struct weir_counters counters, before;
	bool has_before; /* else all rates are 0: the first reading, or the first of this rule set */
	struct weir_controller_report controller;
	struct weir_cluster_view cluster; /* no rules: hosts share none */
	struct weir_flows_view flows;
	struct weir_drops drops;
	uint64_t flows_ns, flows_cost_ns; /* when they were read, and what CPU time that took */
	struct weir_top_rates total, out; /* of what comes in, and of what goes out */
	bool limits_out;		  /* there are rules for that */
	struct weir_top_rule *rules;	  /* in the order of the files */
	size_t rule_count;
	struct weir_top_flow *flow_lines;
	size_t flow_count;
	struct weir_top_drop *drop_lines;
	size_t drop_count;
};

/* The first reading; weir_top_close() frees *top in any case. */
int weir_top_open(const char *name, struct weir_top *top, struct weir_diag *diag);

/* Once more; a reload is followed. -ENOENT: the instance was detached, without a word. */
int weir_top_read(struct weir_top *top, struct weir_diag *diag);
void weir_top_close(struct weir_top *top);

/* A rule observes, or all do. */
bool weir_top_observes(const struct weir_top *top);

/* "1.24M", "950", "0.5": at most six characters. */
const char *weir_top_number(double number, char text[16]);

/* {"seconds", "total", "rules", "flows"}; NULL: out of memory. */
json_t *weir_top_describe(const struct weir_top *top);

#endif
