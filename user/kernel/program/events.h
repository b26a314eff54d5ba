/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of a program and the journal of its instance (include/weir_events.h), memory-mapped. Readers take nothing
 * away: each has its own place in each ring.
 */
#ifndef WEIR_PROGRAM_EVENTS_H
#define WEIR_PROGRAM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

/* Map them; `writes`: to listen for drops, or to write the journal. NULL, with errno. Unmapping NULL is fine. */
struct weir_events *weir_events_map(int map_fd, bool writes);
void weir_events_unmap(struct weir_events *events);

/* Let drops be told until then, CLOCK_MONOTONIC. Another reader's later time stays. */
void weir_events_listen(struct weir_events *events, uint64_t until_ns);

/* A reader's place in a ring. All zero: at the oldest that there is. */
struct weir_event_cursor {
	uint64_t passed;  /* number of the last event that was read, or given up */
	uint64_t awaited; /* number of one that was being written when it was looked for */
	uint64_t missed;  /* overwritten before they were read */
};

/* Behind the latest. */
struct weir_event_cursor weir_events_end(const struct weir_events *events, enum weir_event_lane lane);
struct weir_event_cursor weir_journal_end(const struct weir_events *events);

/* The next one; false: there is none for now, look again later. */
bool weir_events_read(const struct weir_events *events, enum weir_event_lane lane, struct weir_event_cursor *cursor,
		      struct weir_event *ret_event);
bool weir_journal_read(const struct weir_events *events, struct weir_event_cursor *cursor,
		       struct weir_journal_entry *ret_entry);

/* Add to the journal. What is too long of the text is cut. */
void weir_journal_write(struct weir_events *events, enum weir_journal_kind kind, uint64_t now_ns, const char *text);

#endif
