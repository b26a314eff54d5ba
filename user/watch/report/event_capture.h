/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drops as a capture: what an event has kept of each frame, as pcapng, with the rule, its resource, the flow and its
 * figures as the packet's comment.
 */
#ifndef WEIR_REPORT_EVENT_CAPTURE_H
#define WEIR_REPORT_EVENT_CAPTURE_H

#include <stdio.h>

#include "state/event_reader.h"

struct weir_event_capture {
	FILE *stream;	     /* the caller's; write errors stay in it */
	uint32_t *ifindexes; /* of the interfaces that it has named, by their numbers in it */
	size_t interface_count;
};

void weir_event_capture_begin(FILE *stream, struct weir_event_capture *ret_capture);
void weir_event_capture_free(struct weir_event_capture *capture);

/* Append it, if it is a drop, or would have been one. 0 or -ENOMEM. */
int weir_event_capture_add(struct weir_event_capture *capture, const struct weir_instance *instance,
			   const struct weir_reported *reported);

#endif
