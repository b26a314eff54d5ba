/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room report: what is shown of an instance, read once for whoever shows it: what is attached and how it stands (this
 * header), counters (stats.h), busy flows (busy_flows.h), each with the JSON document of it. Commands print these,
 * and the server sends them. Only looks on.
 */
#ifndef WEIR_REPORT_STATUS_H
#define WEIR_REPORT_STATUS_H

#include <jansson.h>

#include "control/controller.h"
#include "instance/instance.h"
#include "report/shared_limits.h"
#include "state/breakers.h"
#include "state/penalised_flows.h"
#include "state/row_ghosts.h"
#include "state/system_signals.h"
#include "timed/timed.h"

struct weir_status_view {
	const struct weir_instance *instance; /* the caller's */
	struct weir_controller_report controller;
	struct weir_penalised_flows penalties; /* by_rule is NULL when they cannot be read */
	struct weir_host_signals signals;
	struct weir_breaker_sum *breakers; /* by rule slot; NULL when they cannot be read */
	bool has_timed;			   /* `timed` could be read */
	struct weir_timed_counts timed;
	struct weir_row_ghosts_sum row_ghosts;
	struct weir_cluster_view cluster; /* without the store; no rules: hosts share none */
	bool has_repeats;		  /* the next two were asked for: they take a look at all links */
	struct weir_repeat *repeats;
	size_t repeat_count;
};

/* weir_status_free() frees *ret_view, which keeps `instance`. */
int weir_status_read(const struct weir_instance *instance, struct weir_status_view *ret_view, struct weir_diag *diag);
void weir_status_free(struct weir_status_view *view);

/* ---- what several say ---- */

/* The classes of packets with a policy, by the bit of weir_instance_info.policies; and what it is: "drop" or "pass". */
#define WEIR_POLICY_COUNT 4
extern const char *const weir_policy_names[WEIR_POLICY_COUNT];
#define WEIR_POLICY_NON_IP 2 /* of the EtherTypes of settings.nonIpExcept the opposite holds */
const char *weir_policy_word(const struct weir_instance *instance, size_t bit);

/* EtherTypes of settings.nonIpExcept: how many, and each as rule files write it; `text`: WEIR_ETHERTYPE_TEXT_BYTES. */
uint32_t weir_count_except(const struct weir_instance_info *info);
const char *weir_format_except(const struct weir_instance_info *info, uint32_t i, char *text);

/* enum weir_controller_state */
extern const char *const weir_controller_state_names[];

/* What holds it there, "xdp", "tcx" or "clsact", and which packets it sees, "in" or "out". */
const char *weir_link_hook_name(const struct weir_link *link);
const char *weir_link_direction_name(const struct weir_link *link);

uint32_t weir_count_throttling(const struct weir_instance *instance);
uint32_t weir_count_occupy(const struct weir_instance *instance);
uint64_t weir_count_overrides(const struct weir_instance *instance);

/* One of the instances of `weir status --json` (docs/json.md). NULL: out of memory. */
json_t *weir_status_describe(const struct weir_status_view *view);

#endif
