/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of a program and the journal of its instance (include/weir_events.h), memory-mapped. Reading removes
 * nothing: each reader has a position of its own in each ring.
 */
#ifndef WEIR_PROGRAM_EVENTS_H
#define WEIR_PROGRAM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir_abi.h"

/* Map the events. `writes`: in order to listen for drops, or to write the journal. NULL, with errno. Unmapping NULL is
 * fine.
 */
struct weir_events *weir_events_map(int map_fd, bool writes);
void weir_events_unmap(struct weir_events *events);

/* Let drops be reported until this time, CLOCK_MONOTONIC. If another reader has set a later time, that stays. */
void weir_events_listen(struct weir_events *events, uint64_t until_ns);

/* A reader's position in a ring. All zero: at the oldest event available. */
struct weir_event_cursor {
	uint64_t passed;  /* number of the last event that was read or skipped */
	uint64_t awaited; /* number of an event that was still being written at the last look */
	uint64_t missed;  /* events that were overwritten before they were read */
};

/* The rings, by number: first that of drops, then those of each lane of changes. */
#define WEIR_EVENT_RINGS (1 + (WEIR_LANES - WEIR_LANE_PENALTIES) * WEIR_CHANGE_RINGS)

enum weir_event_lane weir_events_lane(size_t ring);

/* The ring for a rule's changes. */
static inline size_t weir_events_ring(enum weir_event_lane lane, uint32_t rule_slot)
{
	return 1 + (lane - WEIR_LANE_PENALTIES) * WEIR_CHANGE_RINGS + rule_slot % WEIR_CHANGE_RINGS;
}

/* A position after the latest event. */
struct weir_event_cursor weir_events_end(const struct weir_events *events, size_t ring);
struct weir_event_cursor weir_journal_end(const struct weir_events *events, enum weir_journal_number journal);

/* Read the next event; false: there is none yet, look again later. */
bool weir_events_read(const struct weir_events *events, size_t ring, struct weir_event_cursor *cursor,
		      struct weir_event *ret_event);

/* The end of the latest time slice in which some change of this ring was not reported, CLOCK_MONOTONIC; 0: never. */
uint64_t weir_events_flooded_until_ns(const struct weir_events *events, size_t ring);

bool weir_journal_read(const struct weir_events *events, enum weir_journal_number journal,
		       struct weir_event_cursor *cursor, struct weir_journal_entry *ret_entry);

/* Add an entry to the journal for that kind. A text that is too long is cut. */
void weir_journal_write(struct weir_events *events, enum weir_journal_kind kind, uint64_t now_ns, const char *text);

#endif
