/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where replies come from: the instance, re-read for each, and its flows, those that were dropped too, which are read
 * less often, as that takes long. Never more than one reader at a time.
 */
#ifndef WEIR_SERVE_SOURCE_H
#define WEIR_SERVE_SOURCE_H

#include <jansson.h>
#include <stdint.h>

#include "report/busy_flows.h"
#include "serve/drop_sample.h"
#include "serve/serve.h"
#include "state/dropped_flows.h"

/* Flows that are kept of a reading: as many as may be asked for. */
#define WEIR_SOURCE_FLOWS 1000

struct weir_source {
	const char *instance_name;
	struct weir_serve_notes *notes; /* NULL: nobody is there to read them */
	struct weir_instance *instance; /* kept open from one reply to the next; NULL: not yet */
	/* The last reading of the flows, with the instance that it is of. */
	struct weir_instance *flows_instance;
	struct weir_flows_view flows;
	struct weir_drops drops;	       /* of the same reading */
	uint64_t flows_read_ns, flows_cost_ns; /* when, 0: never; and how long it took */
	/* The rule set, as it was reported last; NULL: it was not. Large ones take a while to read. */
	json_t *rules;
	uint64_t rules_attached_ns, rules_generation; /* of which instance, and which load */
	struct weir_drop_sample sample;
};

/* The instance as it is now, reopened only when it is another; it holds until the next call. */
int weir_source_open(struct weir_source *source, const struct weir_instance **ret_instance, struct weir_diag *diag);

/*
 * Read the flows of the instance, which is as it is now, unless the last reading is of it and younger than `patience`
 * times what it took. So whoever asks, however often, costs at most one part in `patience` of a CPU. source->flows
 * and source->drops hold until the next call.
 */
int weir_source_read_flows(struct weir_source *source, const struct weir_instance *now, unsigned int patience,
			   struct weir_diag *diag);

/* The rule set in force (report/rule_set.h), re-read after a reload only. The caller gives *ret_document back. */
int weir_source_read_rules(struct weir_source *source, json_t **ret_document, struct weir_diag *diag);

/*
 * A sample of drops, since somebody began to ask for it (serve/drop_sample.h), and how many more there were: events as
 * `weir events --json` prints them, oldest first. The list is the source's, and holds until the next call.
 */
int weir_source_read_drops(struct weir_source *source, const struct weir_instance *now, const json_t **ret_events,
			   struct weir_diag *diag);

/* How old the last reading of the flows is. */
uint64_t weir_source_flows_age_ns(const struct weir_source *source);

void weir_source_free(struct weir_source *source);

#endif
