/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drops as a capture: the part of each frame that an event holds, as pcapng. The packet's comment has the rule, its
 * resource, the flow and its figures.
 */
#ifndef WEIR_REPORT_EVENT_CAPTURE_H
#define WEIR_REPORT_EVENT_CAPTURE_H

#include <stdio.h>

#include "state/event_reader.h"

struct weir_event_capture {
	FILE *stream;	     /* owned by the caller; write errors stay in it */
	uint32_t *ifindexes; /* of the interfaces described in the capture, by their numbers there */
	size_t interface_count;
};

void weir_event_capture_begin(FILE *stream, struct weir_event_capture *ret_capture);
void weir_event_capture_free(struct weir_event_capture *capture);

/* Append the event if it is a drop, or a would-be drop. Returns 0 or -ENOMEM. */
int weir_event_capture_add(struct weir_event_capture *capture, const struct weir_instance *instance,
			   const struct weir_reported *reported);

#endif
