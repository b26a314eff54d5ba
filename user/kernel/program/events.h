/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of a program and the journal of its instance (include/weir_events.h), memory-mapped. Readers take nothing
 * away: each has its own place in each ring.
 */
#ifndef WEIR_PROGRAM_EVENTS_H
#define WEIR_PROGRAM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir_abi.h"

/* Map them; `writes`: to listen for drops, or to write the journal. NULL, with errno. Unmapping NULL is fine. */
struct weir_events *weir_events_map(int map_fd, bool writes);
void weir_events_unmap(struct weir_events *events);

/* Let drops be reported until then, CLOCK_MONOTONIC. Another reader's later time stays. */
void weir_events_listen(struct weir_events *events, uint64_t until_ns);

/* A reader's place in a ring. All zero: at the oldest that there is. */
struct weir_event_cursor {
	uint64_t passed;  /* number of the last event that was read, or given up */
	uint64_t awaited; /* number of one that was being written when it was looked for */
	uint64_t missed;  /* overwritten before they were read */
};

/* The rings, by number: that of drops, and behind it those of each lane of changes. */
#define WEIR_EVENT_RINGS (1 + (WEIR_LANES - WEIR_LANE_PENALTIES) * WEIR_CHANGE_RINGS)

enum weir_event_lane weir_events_lane(size_t ring);

/* The ring of a rule's changes. */
static inline size_t weir_events_ring(enum weir_event_lane lane, uint32_t rule_slot)
{
	return 1 + (lane - WEIR_LANE_PENALTIES) * WEIR_CHANGE_RINGS + rule_slot % WEIR_CHANGE_RINGS;
}

/* Behind the latest. */
struct weir_event_cursor weir_events_end(const struct weir_events *events, size_t ring);
struct weir_event_cursor weir_journal_end(const struct weir_events *events, enum weir_journal_number journal);

/* The next one; false: there is none for now, look again later. */
bool weir_events_read(const struct weir_events *events, size_t ring, struct weir_event_cursor *cursor,
		      struct weir_event *ret_event);

/* A change of this ring was not reported in the slice of time that ends then, CLOCK_MONOTONIC; 0: none ever. */
uint64_t weir_events_flooded_until_ns(const struct weir_events *events, size_t ring);

bool weir_journal_read(const struct weir_events *events, enum weir_journal_number journal,
		       struct weir_event_cursor *cursor, struct weir_journal_entry *ret_entry);

/* Add to the journal of that kind. What is too long of the text is cut. */
void weir_journal_write(struct weir_events *events, enum weir_journal_kind kind, uint64_t now_ns, const char *text);

#endif
