/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The latest drops, for HTTP clients that request them repeatedly. Each answer has the latest drop of each flow, for a
 * few flows, and the number of other drops. All clients see the same. If nobody has requested drops for a while, they
 * are discarded, and the next request starts over.
 */
#ifndef WEIR_SERVE_DROP_SAMPLE_H
#define WEIR_SERVE_DROP_SAMPLE_H

#include <jansson.h>

#include "state/event_reader.h"

/* The number of events that are kept, and the most that can be requested. Chosen, not derived: some seconds of a flood.
 */
#define WEIR_DROP_SAMPLE_EVENTS 100

struct weir_drop_sample {
	struct weir_event_watch watch;
	json_t *events; /* a list, oldest first; NULL: nobody has requested drops, and nothing is open */
	uint64_t asked_ns;
};

/* Add the drops since the last call. `now` is the instance as it is now. */
int weir_drop_sample_read(struct weir_drop_sample *sample, const struct weir_instance *now, struct weir_diag *diag);

void weir_drop_sample_free(struct weir_drop_sample *sample);

#endif
