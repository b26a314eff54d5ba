/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a scan over everything that holds flows (flows.c). */
#ifndef WEIR_STATE_FLOW_SCAN_H
#define WEIR_STATE_FLOW_SCAN_H

#include "control/controller.h"
#include "state/flow_keys.h"
#include "state/flows.h"
#include "state/rows.h"

/* The contribution of one row to its flow. */
struct piece {
	uint32_t tag, set; /* set: the lower of the flow's two candidate sets, which identifies the flow */
	uint32_t spec;
	uint64_t newest, threshold; /* of the row */
	struct weir_row_sum sum;
};

struct scan {
	int cpus;
	const struct weir_instance *instance;
	uint64_t now_ns;			  /* when the current rows were read */
	struct weir_controller_report controller; /* has the thresholds in force */
	struct weir_flow_keys keys;
	const struct weir_rule_info **shadows; /* by place in rule_order: the window that the rule reads, or NULL */
	bool has_shadows;
	uint32_t *sole_rules;		    /* results of guess_rule(), by place and window spec */
	struct piece *pieces;		    /* of the current chunk */
	size_t piece_count, counted_pieces; /* counted: those already in rows_by_cpu */
	struct weir_flow_use *uses;
	size_t use_count, most;
	uint32_t rule_slot; /* the rule whose flows are wanted, or WEIR_ANY_RULE */
	uint64_t active;
	enum weir_flow_place place;	  /* the table of rows that is being scanned */
	const struct shared_kind *shared; /* the kind whose flows are being scanned */
	uint64_t *rows_by_cpu;		  /* per CPU, rows of the current table whose windows are not empty */
	struct weir_table_use rows[WEIR_ROW_FORMATS];
	int overrides_fd;
};

/* ---- flow_rows.c ---- */

bool weir_flows_is_in_use(const struct weir_rule_info *rule);

/* Done once for all flows: there may be a thousand rules, and millions of rows. */
int weir_flows_find_sole_rules(struct scan *scan);
void weir_flows_keep_busiest(struct scan *scan);
void weir_flows_add_use(struct scan *scan, const struct weir_flow_use *use);

/* Find the threshold in force for a flow with these rows. A flow that warms up uses the threshold of the row that was
 * evaluated last. So does a flow under an override whose key was not recorded.
 */
void weir_flows_find_threshold(const struct scan *scan, const struct piece *pieces, size_t count,
			       struct weir_flow_use *use);
int weir_flows_find_shadows(struct scan *scan);

/* Set the rule of the window, if it is known. */
void weir_flows_set_name(struct weir_flow_use *use, const struct weir_named_flow *name);
int weir_flows_scan_chunk(uint32_t index, const void *values, int cpus, void *data);
int weir_flows_scan_lone_rows(uint32_t slot, const void *values, int cpus, void *data);

#endif
