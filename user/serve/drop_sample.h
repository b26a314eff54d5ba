/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The latest drops, for who asks for them again and again over HTTP: in each answer the latest one of each flow, of a
 * few flows, and how many more there were. All who ask see the same. When nobody has asked for a while it is
 * forgotten, and the next to ask starts over.
 */
#ifndef WEIR_SERVE_DROP_SAMPLE_H
#define WEIR_SERVE_DROP_SAMPLE_H

#include <jansson.h>

#include "state/event_reader.h"

/* Events that are kept; as many may be asked for. Chosen, not derived: some seconds of a flood. */
#define WEIR_DROP_SAMPLE_EVENTS 100

struct weir_drop_sample {
	struct weir_event_watch watch;
	json_t *events; /* a list, oldest first; NULL: nobody has asked, and nothing is open */
	uint64_t asked_ns;
};

/* Add what has been dropped since the last call. `now` is the instance as it is now. */
int weir_drop_sample_read(struct weir_drop_sample *sample, const struct weir_instance *now, struct weir_diag *diag);

void weir_drop_sample_free(struct weir_drop_sample *sample);

#endif
