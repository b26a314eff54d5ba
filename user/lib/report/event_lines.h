/* SPDX-License-Identifier: GPL-2.0-only */
/* Events as `weir events` prints them: a line of words, or a line of JSON (docs/json.md). */
#ifndef WEIR_REPORT_EVENT_LINES_H
#define WEIR_REPORT_EVENT_LINES_H

#include <jansson.h>
#include <stdio.h>

#include "state/event_reader.h"

/* "drop", "penalty", "reload": the same name in words and in JSON. */
const char *weir_reported_name(const struct weir_reported *reported);

/* NULL: out of memory. */
json_t *weir_reported_describe(const struct weir_instance *instance, const struct weir_reported *reported);

/* The latest events, at most this many, as a list, oldest first. Changes of one rule are thinned out to leave room for
 * others. NULL: out of memory.
 */
json_t *weir_events_describe_past(const struct weir_instance *instance, const struct weir_reported_events *events,
				  size_t most);

/* What happened, without the time. The caller frees the text; NULL: out of memory. */
char *weir_reported_words(const struct weir_instance *instance, const struct weir_reported *reported);

/* The reason for a drop: "drop: rule 'dns', source 203.0.113.9, used 20 of 20 packets, resource 'dns'". The caller
 * frees the text; NULL: out of memory.
 */
char *weir_reported_comment(const struct weir_instance *instance, const struct weir_reported *reported);

/*
 * Drops as a capture: the part of each frame that an event holds, as pcapng. The packet's comment has the rule, its
 * resource, the flow and its figures.
 */

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
