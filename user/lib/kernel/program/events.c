// SPDX-License-Identifier: GPL-2.0-only
#include "program/events.h"

#include <stdio.h>
#include <string.h>

#include "program/array.h"

struct weir_events *weir_events_map(int map_fd, bool writes)
{
	return weir_array_map(map_fd, 1, sizeof(struct weir_events), writes);
}

void weir_events_unmap(struct weir_events *events)
{
	weir_array_unmap(events, 1, sizeof(*events));
}

void weir_events_listen(struct weir_events *events, uint64_t until_ns)
{
	__u64 others_ns = __atomic_load_n(&events->listens_until_ns, __ATOMIC_RELAXED);

	while (others_ns < until_ns && !__atomic_compare_exchange_n(&events->listens_until_ns, &others_ns, until_ns,
								    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* ---- rings ---- */

/* Each entry begins with its number. */
struct ring {
	const __u64 *last;
	const char *entries;
	size_t entry_bytes;
	uint64_t count;
};

static struct ring ring_of(const struct weir_events *events, size_t number)
{
	const struct weir_change_ring *changes = &events->changes[0][0];

	if (!number)
		return (struct ring){&events->drops.head.last, (const char *)events->drops.event,
				     sizeof(*events->drops.event), WEIR_RING_EVENTS};
	changes += number - 1;
	return (struct ring){&changes->head.last, (const char *)changes->event, sizeof(*changes->event),
			     WEIR_CHANGE_EVENTS};
}

static struct ring ring_of_journal(const struct weir_events *events, enum weir_journal_number number)
{
	const struct weir_journal *journal = &events->journal[number];

	return (struct ring){&journal->last, (const char *)journal->entry, sizeof(*journal->entry),
			     WEIR_JOURNAL_ENTRIES};
}

static void give_up(struct weir_event_cursor *cursor, uint64_t count)
{
	cursor->passed += count;
	cursor->missed += count;
}

static bool read_ring(const struct ring *ring, struct weir_event_cursor *cursor, void *ret_entry)
{
	for (;;) {
		uint64_t last = __atomic_load_n(ring->last, __ATOMIC_ACQUIRE), number = cursor->passed + 1, found;
		const char *entry = ring->entries + number % ring->count * ring->entry_bytes;

		if (number > last)
			return false;
		if (last - number >= ring->count) {
			give_up(cursor, last - number - ring->count + 1);
			continue;
		}
		found = __atomic_load_n((const __u64 *)entry, __ATOMIC_ACQUIRE);
		if (found == number) {
			memcpy(ret_entry, entry, ring->entry_bytes);
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			found = __atomic_load_n((const __u64 *)entry, __ATOMIC_RELAXED);
		}
		if (found == number) {
			cursor->passed = number;
			return true;
		}
		/* The writer has not finished. If it has not finished by the next look, it never will. */
		if ((found < number || found == WEIR_EVENT_BUSY) && cursor->awaited != number) {
			cursor->awaited = number;
			return false;
		}
		give_up(cursor, 1);
	}
}

static struct weir_event_cursor end_of(const struct ring *ring)
{
	return (struct weir_event_cursor){.passed = __atomic_load_n(ring->last, __ATOMIC_ACQUIRE)};
}

enum weir_event_lane weir_events_lane(size_t ring)
{
	return ring ? WEIR_LANE_PENALTIES + (ring - 1) / WEIR_CHANGE_RINGS : WEIR_LANE_DROPS;
}

struct weir_event_cursor weir_events_end(const struct weir_events *events, size_t ring)
{
	const struct ring found = ring_of(events, ring);

	return end_of(&found);
}

bool weir_events_read(const struct weir_events *events, size_t ring, struct weir_event_cursor *cursor,
		      struct weir_event *ret_event)
{
	const struct ring found = ring_of(events, ring);

	return read_ring(&found, cursor, ret_event);
}

uint64_t weir_events_flooded_until_ns(const struct weir_events *events, size_t ring)
{
	const struct weir_change_ring *changes = &events->changes[0][0];

	return ring ? __atomic_load_n(&changes[ring - 1].head.flooded_until_ns, __ATOMIC_RELAXED) : 0;
}

/* ---- the journal ---- */

struct weir_event_cursor weir_journal_end(const struct weir_events *events, enum weir_journal_number journal)
{
	const struct ring ring = ring_of_journal(events, journal);

	return end_of(&ring);
}

bool weir_journal_read(const struct weir_events *events, enum weir_journal_number journal,
		       struct weir_event_cursor *cursor, struct weir_journal_entry *ret_entry)
{
	const struct ring ring = ring_of_journal(events, journal);

	return read_ring(&ring, cursor, ret_entry);
}

void weir_journal_write(struct weir_events *events, enum weir_journal_kind kind, uint64_t now_ns, const char *text)
{
	const bool is_order = kind == WEIR_JOURNAL_BLOCK || kind == WEIR_JOURNAL_ALLOW;
	struct weir_journal *journal = &events->journal[is_order ? WEIR_JOURNAL_OF_ORDERS : WEIR_JOURNAL_OF_CHANGES];
	uint64_t number = __atomic_add_fetch(&journal->last, 1, __ATOMIC_SEQ_CST);
	struct weir_journal_entry *entry = &journal->entry[number % WEIR_JOURNAL_ENTRIES];

	__atomic_store_n(&entry->number, WEIR_EVENT_BUSY, __ATOMIC_RELAXED);
	/* A reader that sees anything of the following stores also sees this mark. The fence is necessary: no memory
	 * order of the store itself, not even SEQ_CST, keeps later stores from overtaking it (on arm64 it is a
	 * store-release).
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	entry->time_ns = now_ns;
	entry->kind = kind;
	snprintf(entry->text, sizeof(entry->text), "%s", text);
	__atomic_store_n(&entry->number, number, __ATOMIC_RELEASE);
}
