/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One pass over the packets: each is matched, and counted for its flows. A resource without a key has one window, and
 * one peak for each interval in which packets arrived.
 */
#ifndef WEIR_SUGGEST_MEASURE_H
#define WEIR_SUGGEST_MEASURE_H

#include <stdint.h>

#include "peaks/peaks.h"
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

/* What is measured of a service: what comes in for it, what this host answers for it, or what this host sends to it
 * elsewhere.
 */
enum weir_service_side { WEIR_SERVICE_REQUESTS, WEIR_SERVICE_ANSWERS, WEIR_SERVICE_ELSEWHERE, WEIR_SERVICE_SIDES };

struct weir_served {
	enum weir_service_side side;
	uint8_t protocol;
	int port; /* -1: the protocol has none */
};

/* Groups of the flow table when looking for services: a row for each side of TCP, UDP and SCTP, by port, and all other
 * protocols of each direction. Rows in which connections are opened come first.
 */
#define WEIR_SERVICE_ROWS (3 * WEIR_SERVICE_SIDES)
#define WEIR_SERVICE_ROWS_OPENING 2
#define WEIR_SERVICE_GROUPS (WEIR_SERVICE_ROWS * 65536u + 2 * 256u)
struct weir_served weir_service_of(uint32_t group);

struct weir_suggest_measured {
	struct weir_flow_table *flows;
	struct weir_flow_table *connections; /* of TCP: whose they are, while they are open */
	struct weir_suggest_lone *lone;	     /* by series */
	FILE *log;			     /* entries are struct weir_loss_entry; NULL: not needed */
	struct weir_tally *group_total;	     /* by group */
	uint32_t groups;		     /* all of them */
	uint32_t own_groups; /* those of packets; those of a measure of TCP follow, tcp_groups for each */
	uint32_t tcp_groups;
};

/* The group in which a measure of a group's flows is; of TCP, for groups below tcp_groups. */
static inline uint32_t weir_measure_group(const struct weir_suggest_measured *measured, uint32_t group,
					  enum weir_measure measure)
{
	return measure ? measured->own_groups + (measure - 1) * measured->tcp_groups + group : group;
}

/* Also fills in the report's figures for the traffic. The caller frees *ret_measured in any case. */
int weir_suggest_measure(const struct weir_suggest_options *options, const struct weir_suggest_plan *plan,
			 struct weir_suggest_measured *ret_measured, struct weir_suggest_report *report,
			 struct weir_diag *diag);
void weir_suggest_measured_free(struct weir_suggest_measured *measured, const struct weir_suggest_plan *plan);

/* ---- services.c ----
 *
 * The services that matter in the measured traffic: each protocol and port with at least a hundredth of all packets, or
 * of all clients, of a direction. They become a rule set with one resource each.
 */
#define WEIR_SERVICES_MAX 24 /* chosen, not derived */

/* ret_groups has the group of each resource, by index. The caller owns *ret_ruleset. */
int weir_suggest_services(const struct weir_suggest_measured *measured, uint32_t ret_groups[WEIR_SERVICES_MAX],
			  struct weir_ruleset **ret_ruleset, struct weir_diag *diag);

/*
 * An entry for every packet of a measured flow, in a temporary file. It is needed for a --loss above 0: what a
 * threshold drops depends on what it dropped before, so the threshold is found by trying (loss.c).
 */
struct weir_loss_entry {
	uint64_t time_ns;
	uint32_t packets, bytes;
	uint32_t place; /* the flow's index in its table; for a resource without key the number of its series */
	uint32_t capture : 31;
	uint32_t is_lone : 1;
};

#endif
