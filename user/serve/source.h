/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The source of all replies: the instance, which is re-read for each reply; and its flows, including dropped ones,
 * which are read less often because reading them takes long. There is never more than one reader at a time.
 */
#ifndef WEIR_SERVE_SOURCE_H
#define WEIR_SERVE_SOURCE_H

#include <jansson.h>
#include <stdint.h>

#include "report/busy_flows.h"
#include "serve/serve.h"
#include "state/dropped_flows.h"
#include "state/event_reader.h"
#include "state/set_sizes.h"

/* The flows that are kept from a reading, and the most that can be requested. */
#define WEIR_SOURCE_FLOWS 1000

/* The number of events that are kept, and the most that can be requested. Chosen, not derived: some seconds of a flood.
 */
#define WEIR_DROP_SAMPLE_EVENTS 100

/*
 * The latest drops, for clients that request them repeatedly. Each answer has the latest drop of each flow, for a few
 * flows, and the number of other drops. All clients see the same. If nobody has requested drops for a while, they are
 * discarded, and the next request starts over.
 */
struct weir_drop_sample {
	struct weir_event_watch watch;
	json_t *events; /* a list, oldest first; NULL: nobody has requested drops, and nothing is open */
	uint64_t asked_ns;
};

struct weir_source {
	const char *instance_name;
	struct weir_serve_notes *notes; /* NULL: no other process reads them */
	struct weir_instance *instance; /* kept open from one reply to the next; NULL: not opened yet */
	bool has_sets;			/* `sets` are those of `instance` */
	struct weir_sets_view sets;
	/* The last reading of the flows, and the instance to which it belongs. */
	struct weir_instance *flows_instance;
	struct weir_flows_view flows;
	struct weir_drops drops;	       /* from the same reading */
	uint64_t flows_read_ns, flows_cost_ns; /* when it was read (0: never), and how long that took */
	/* The last description of the rule set; NULL: none yet. A large rule set takes a while to read. */
	json_t *rules;
	uint64_t rules_attached_ns, rules_generation; /* the attachment and the load to which it belongs */
	struct weir_drop_sample sample;
};

/* The instance as it is now. It is reopened only if it has changed, and is valid until the next call. */
int weir_source_open(struct weir_source *source, const struct weir_instance **ret_instance, struct weir_diag *diag);

/* The sets of the instance, which is up to date: read only after a reload, but for what became of their files. */
int weir_source_read_sets(struct weir_source *source, const struct weir_sets_view **ret_sets, struct weir_diag *diag);

/*
 * Read the flows of the instance, which is up to date. A reading of the same instance is reused if it is younger than
 * `patience` times the time that it took. So however often clients ask, the cost is at most 1/`patience` of a CPU.
 * source->flows and source->drops are valid until the next call.
 */
int weir_source_read_flows(struct weir_source *source, const struct weir_instance *now, unsigned int patience,
			   struct weir_diag *diag);

/*
 * The rule set in force as text, and the same as JSON, as `weir show` prints it (docs/metrics.md). The prefixes of
 * `allow` and `deny`, which may be millions, are only counted. It is re-read only after a reload. -ENOENT, with the
 * reason in *diag: the rule set is not kept. The caller releases *ret_document.
 */
int weir_source_read_rules(struct weir_source *source, json_t **ret_document, struct weir_diag *diag);

/*
 * A sample of the drops since somebody began to ask for them, and the number of the other drops: events in the format
 * of `weir events --json`, oldest first. The list belongs to the source and is valid until the next call.
 */
int weir_source_read_drops(struct weir_source *source, const struct weir_instance *now, const json_t **ret_events,
			   struct weir_diag *diag);

/* The age of the last reading of the flows. */
uint64_t weir_source_flows_age_ns(const struct weir_source *source);

void weir_source_free(struct weir_source *source);

#endif
