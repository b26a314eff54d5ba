/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The figures of `weir top`: current rates, by rule and by flow, from two consecutive readings of the counters. Knows
 * nothing of terminals.
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
#include "state/fair_shares.h"
#include "words/figures.h"

#define WEIR_TOP_FLOWS_MAX 200
#define WEIR_TOP_DROPS_SECONDS 60 /* show flows that were dropped within this time */

/* Packets a second. */
struct weir_top_rates {
	double offered, admitted, dropped;
	double would_drop; /* by observing rules, or an observing instance; a packet may count for two rules */
	double answered;   /* of those dropped (onBlock); outgoing packets are not */
};

struct weir_top_rule {
	const char *name, *resource; /* borrowed from the instance; resource is empty for a system rule */
	uint32_t slot;
	bool observes;		     /* the rule itself observes */
	bool drops_nothing;	     /* the rule or the whole instance observes */
	bool answers;		     /* what it drops (onBlock) */
	uint32_t directions;	     /* WEIR_MATCHES_IN and _OUT */
	struct weir_top_rates rates; /* offered and admitted are those of its resource */
	char limit[128];	     /* in force now: "1000/s per source" */
	bool has_threshold;	     /* a single one for all its flows; false if they warm up */
	uint64_t threshold;	     /* if has_threshold: the one in force, in units per interval */
	double share;		     /* of its busiest flow; below 0: not known */
	const uint64_t *passed_by_second, *blocked_by_second; /* WEIR_MINUTE entries, of its resource; NULL: none */
};

struct weir_top_flow {
	const char *rule; /* "?": more than one rule may own it */
	char text[WEIR_WORDS_BYTES];
	const struct weir_flow_use *use; /* one of those in weir_top.flows */
	double share;			 /* below 0: not known */
};

struct weir_top_drop {
	const char *rule;
	char text[WEIR_WORDS_BYTES];
	/* In total, dropped or would-be dropped; and the time of the last one, CLOCK_MONOTONIC. */
	uint64_t packets, last_ns;
};

struct weir_top {
	struct weir_instance *instance;
	char lost[IF_NAMESIZE]; /* an interface on which the instance has no program, though it should; empty: none */
	struct weir_counters counters, before;
	/* False: all rates are 0, because this is the first reading, or the first of this rule set. */
	bool has_before;
	struct weir_controller_report controller;
	struct weir_cluster_view cluster; /* no rules if hosts share none */
	struct weir_fair_uses fair;	  /* contended flows of rules with fairBy */
	struct weir_flows_view flows;
	struct weir_drops drops;
	uint64_t flows_ns, flows_cost_ns; /* when they were read, and the CPU time that it took */
	struct weir_top_rates total, out; /* for incoming and for outgoing packets */
	bool limits_out;		  /* some rules are for outgoing packets */
	bool answers;			  /* some rules answer what they drop */
	struct weir_top_rule *rules;	  /* in the order of the files */
	size_t rule_count;
	struct weir_top_flow *flow_lines;
	size_t flow_count;
	struct weir_top_drop *drop_lines;
	size_t drop_count;
};

/* Take the first reading. The caller frees *top with weir_top_close() in any case. */
int weir_top_open(const char *name, struct weir_top *top, struct weir_diag *diag);

/* Take another reading; it follows a reload. -ENOENT: the instance was detached; no message is added. */
int weir_top_read(struct weir_top *top, struct weir_diag *diag);
void weir_top_close(struct weir_top *top);

/* Does any rule observe, or the whole instance? */
bool weir_top_observes(const struct weir_top *top);

/* "1.24M", "950", "0.5": at most six characters. */
const char *weir_top_number(double number, char text[16]);

/* A struct weir_top_rule, with the struct weir_top as context. */
weir_describer weir_describe_top_rule;

/* {"seconds", "total", "rules", "flows"}; NULL: out of memory. */
json_t *weir_top_describe(const struct weir_top *top);

#endif
