/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room report: the state of an instance, read once for whatever shows it: what is attached, and its state (this
 * header), counters (stats.h), busy flows (busy_flows.h), each with its JSON document. Commands print these, and the
 * server sends them. Nothing here changes anything.
 */
#ifndef WEIR_REPORT_STATUS_H
#define WEIR_REPORT_STATUS_H

#include <jansson.h>

#include "control/controller.h"
#include "instance/instance.h"
#include "report/shared_limits.h"
#include "state/breakers.h"
#include "state/fair_shares.h"
#include "state/penalised_flows.h"
#include "state/set_sizes.h"
#include "state/ghosts.h"
#include "state/system_signals.h"
#include "timed/timed.h"
#include "words/figures.h"

struct weir_status_view {
	const struct weir_instance *instance; /* the caller's */
	struct weir_controller_report controller;
	struct weir_penalised_flows penalties; /* by_rule is NULL if they cannot be read */
	struct weir_host_signals signals;
	struct weir_breaker_sum *breakers; /* by rule slot; NULL if they cannot be read */
	bool has_timed;			   /* `timed` could be read */
	struct weir_timed_counts timed;
	struct weir_ghosts ghosts;
	struct weir_fair_uses fair;	   /* contended parents of rules with fairBy */
	struct weir_cluster_view cluster;  /* read without the store; no rules if hosts share none */
	const struct weir_sets_view *sets; /* the caller's; NULL: not asked for, since it takes long to read */
	bool has_repeats;		   /* the next two were asked for: finding them scans all links */
	struct weir_repeat *repeats;
	size_t repeat_count;
};

/* Free *ret_view with weir_status_free(); it keeps a pointer to `instance`. */
int weir_status_read(const struct weir_instance *instance, struct weir_status_view *ret_view, struct weir_diag *diag);
void weir_status_free(struct weir_status_view *view);

/* ---- helpers that several reports use ---- */

/* The classes of packets with a policy, by their bit in weir_instance_info.policies, and the policy: "drop" or "pass".
 */
#define WEIR_POLICY_COUNT 4
extern const char *const weir_policy_names[WEIR_POLICY_COUNT];
#define WEIR_POLICY_NON_IP 2 /* the opposite applies to the EtherTypes of settings.nonIpExcept */
const char *weir_policy_word(const struct weir_instance *instance, size_t bit);

/* EtherTypes of settings.nonIpExcept: their number, and each in rule-file form; `text` has WEIR_ETHERTYPE_TEXT_BYTES.
 */
uint32_t weir_count_except(const struct weir_instance_info *info);
const char *weir_format_except(const struct weir_instance_info *info, uint32_t i, char *text);

/* By enum weir_controller_state. */
extern const char *const weir_controller_state_names[];

/* The hook that the link attaches to ("xdp", "tcx" or "clsact"), and the packets that it sees ("in" or "out"). */
const char *weir_link_hook_name(const struct weir_link *link);
const char *weir_link_direction_name(const struct weir_link *link);

uint32_t weir_count_throttling(const struct weir_instance *instance);
uint32_t weir_count_occupy(const struct weir_instance *instance);
uint64_t weir_count_overrides(const struct weir_instance *instance);

/* A struct weir_link; and a rule, by its slot in instance->rule_order, with the view as context. */
weir_describer weir_describe_link, weir_describe_rule_state;
/* A struct weir_set_size. */
weir_describer weir_describe_set;

/* "level 110/s; 50 children (0 new, 5 above it) want 5450/s; source 10.1.0.1": a contended flow, without its rule. */
const char *weir_fair_words(const struct weir_instance *instance, const struct weir_fair_use *use,
			    char words[WEIR_WORDS_BYTES]);

/* {"children", "contended"}: of a rule with fairBy, what distinguishes its children, and its contended flows. NULL: the
 * rule has no fairBy, or out of memory.
 */
json_t *weir_fair_describe(const struct weir_instance *instance, const struct weir_fair_uses *uses, uint32_t slot);

/* The object for one instance in `weir status --json` (docs/json.md). NULL: out of memory. */
json_t *weir_status_describe(const struct weir_status_view *view);

#endif
