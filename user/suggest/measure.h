/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One pass over the packets: each is matched, and counted for its flows. A resource without a key has one window, and
 * one peak for each interval in which packets arrived.
 */
#ifndef WEIR_SUGGEST_MEASURE_H
#define WEIR_SUGGEST_MEASURE_H

#include "peaks/flow_table.h"
#include "suggest/plan.h"

/* The peak of a flow, or of an interval. */
struct weir_peak_sample {
	struct weir_tally peak;
	uint64_t bucket_packets; /* in its fullest bucket */
	uint64_t where;		 /* the flow's index in the table, or the start of the interval */
};

struct weir_suggest_lone {
	struct weir_followed flow;
	uint64_t interval; /* its number; its sums are in flow.peaks.total */
	struct weir_peak_sample *intervals;
	size_t count;
};

/* Groups of the flow table when looking for services: the ports of each such protocol, and other protocols. */
#define WEIR_SERVICE_PROTOCOLS 3
#define WEIR_SERVICE_GROUPS (WEIR_SERVICE_PROTOCOLS * 65536u + 256u)
uint32_t weir_service_protocol(uint32_t group);
/* -1: the protocol has no ports. */
int weir_service_port(uint32_t group);

struct weir_suggest_measured {
	struct weir_flow_table *flows;
	struct weir_suggest_lone *lone; /* by series */
	FILE *log;			/* entries are struct weir_loss_entry; NULL: not needed */
	struct weir_tally *group_total; /* by group */
	uint32_t groups;
};

/* Also fills in the report's figures for the traffic. The caller frees *ret_measured in any case. */
int weir_suggest_measure(const struct weir_suggest_options *options, const struct weir_suggest_plan *plan,
			 struct weir_suggest_measured *ret_measured, struct weir_suggest_report *report,
			 struct weir_diag *diag);
void weir_suggest_measured_free(struct weir_suggest_measured *measured, const struct weir_suggest_plan *plan);

#endif
