// SPDX-License-Identifier: GPL-2.0-only
#include "state/event_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "state/counters.h"
#include "tables/rule_kind.h"
#include "words/words.h"

/* ---- opening ---- */

static int map_events(struct weir_event_watch *watch, struct weir_diag *diag)
{
	struct weir_events *events;
	int err = weir_instance_expect_tables(watch->instance, WEIR_TABLE_BIT(WEIR_TABLE_EVENTS), "the events", diag);

	if (err)
		return err;
	events = weir_events_map(watch->instance->map_fd[WEIR_TABLE_EVENTS], watch->wants_drops && !watch->only_reads);
	if (!events)
		return weir_diag_fail(diag, errno, NULL, "cannot map the events of instance '%s'",
				      watch->instance->name);
	weir_events_unmap(watch->events);
	watch->events = events;
	return 0;
}

static void account_for_all(struct weir_event_watch *watch);

/* *watch says what to report; on failure there is nothing to close. */
static int open_watch(const char *instance, bool from_the_past, struct weir_event_watch *watch, struct weir_diag *diag)
{
	int err = weir_instance_open(instance, &watch->instance, diag);

	if (!err)
		err = map_events(watch, diag);
	if (err) {
		weir_event_watch_close(watch);
		return err;
	}
	watch->rings[0] = weir_events_end(watch->events, 0); /* drops are reported from now on only */
	if (from_the_past)
		return 0;
	for (size_t ring = 1; ring < WEIR_EVENT_RINGS; ring++)
		watch->rings[ring] = weir_events_end(watch->events, ring);
	for (int journal = 0; journal < WEIR_JOURNALS; journal++)
		watch->journals[journal] = weir_journal_end(watch->events, journal);
	account_for_all(watch);
	return 0;
}

int weir_event_watch_open(const char *instance, bool wants_drops, bool from_the_past,
			  struct weir_event_watch *ret_watch, struct weir_diag *diag)
{
	struct weir_event_watch watch = {.wants_drops = wants_drops};
	int err = open_watch(instance, from_the_past, &watch, diag);

	if (!err)
		*ret_watch = watch;
	return err;
}

int weir_event_watch_open_sample(const char *instance, size_t drops_most, struct weir_event_watch *ret_watch,
				 struct weir_diag *diag)
{
	struct weir_event_watch watch = {.wants_drops = true, .only_reads = true, .drops_most = drops_most};
	int err = open_watch(instance, false, &watch, diag);

	if (!err)
		*ret_watch = watch;
	return err;
}

void weir_event_watch_close(struct weir_event_watch *watch)
{
	weir_events_unmap(watch->events);
	weir_instance_free(watch->instance);
	free(watch->accounted);
	*watch = (struct weir_event_watch){};
}

void weir_reported_events_free(struct weir_reported_events *events)
{
	free(events->all);
	*events = (struct weir_reported_events){};
}

static struct weir_reported *add(struct weir_reported_events *events, enum weir_reported_kind kind, uint64_t time_ns)
{
	struct weir_reported *slot = weir_array_add((void **)&events->all, events->count, sizeof(*events->all));

	if (!slot)
		return NULL;
	events->count++;
	slot->kind = kind;
	slot->time_ns = time_ns;
	return slot;
}

static int add_missed(struct weir_reported_events *events, enum weir_reported_kind of, uint64_t count,
		      uint32_t rule_slot, uint64_t time_ns)
{
	struct weir_reported *reported = add(events, WEIR_REPORTED_MISSED, time_ns);

	if (!reported)
		return -ENOMEM;
	reported->missed.count = count;
	reported->missed.of = of;
	reported->missed.rule_slot = rule_slot;
	return 0;
}

/* ---- drops that are not reported one by one ---- */

/* A second is the interval that people read at, and that a script asks for (packets a second). */
#define TALLY_NS WEIR_NSEC_PER_SEC

static uint64_t drops_in(const struct weir_totals *totals)
{
	uint64_t dropped = 0;

	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++)
		if (weir_verdict_drops(verdict))
			dropped += totals->verdict[verdict].packets + totals->would_drop[verdict].packets;
	return dropped;
}

/* Read the counters if it is time. This is done before reading events, so that most drops in the counters have been
 * reported.
 */
static int count_unreported(struct weir_event_watch *watch, uint64_t now_ns)
{
	struct weir_counters counters = {};
	uint64_t dropped;
	int err;

	if (!watch->wants_drops || now_ns < watch->tally_ns)
		return 0;
	err = weir_totals_read(watch->instance, &counters);
	if (err)
		return err;
	/* Packets that were dropped, or that would have been if the whole instance observes. */
	dropped = drops_in(&counters.totals) + drops_in(&counters.out);
	if (!watch->is_counting) { /* counting starts with the events that are reported from here on */
		watch->rings[0] = weir_events_end(watch->events, 0);
		watch->is_counting = true;
	} else if (dropped >= watch->dropped) { /* otherwise a reload has recreated the counters */
		watch->unreported += (int64_t)(dropped - watch->dropped);
	}
	watch->dropped = dropped;
	watch->tally_ns = now_ns + TALLY_NS;
	return 0;
}

/* Drops of an observing rule are in none of the totals, since the packet passed. */
static bool is_in_totals(const struct weir_event_watch *watch, const struct weir_reported *reported)
{
	const struct weir_rule_info *rule = weir_reported_rule(watch->instance, reported);

	return !rule || !rule->observes;
}

static int report_unreported_drops(struct weir_event_watch *watch, uint64_t now_ns, struct weir_reported_events *events)
{
	const uint64_t count = watch->unreported;

	if (!watch->wants_drops || watch->tally_ns != now_ns + TALLY_NS || watch->unreported <= 0)
		return 0;
	watch->unreported = 0;
	return add_missed(events, WEIR_REPORTED_DROP, count, WEIR_EVENT_NO_RULE, weir_host_now_ns());
}

/* ---- changes that are not reported one by one ---- */

/* Make space for all slots. NULL: there is no memory, or no such slot. */
static uint64_t *accounted_for(struct weir_event_watch *watch, uint32_t slot)
{
	const uint32_t slots = watch->instance->info.rule_slots;
	uint64_t *grown;

	if (slots > watch->slots) {
		grown = reallocarray(watch->accounted, slots, sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + watch->slots, 0, (slots - watch->slots) * sizeof(*grown));
		watch->accounted = grown;
		watch->slots = slots;
	}
	return slot < watch->slots ? &watch->accounted[slot] : NULL;
}

/* Read the counters of changes. If the instance stores them differently, they are not known, and no missing changes are
 * reported.
 */
static bool read_changes(const struct weir_event_watch *watch, struct weir_counters *ret_counters)
{
	struct weir_diag ignored = {};
	const bool is_known = !weir_counters_read(watch->instance, ret_counters, &ignored);

	weir_diag_free(&ignored);
	return is_known;
}

/* Changes before this reader started are not reported. Called after the ends of the rings were noted, so that changes
 * in the meantime are not missed.
 */
static void account_for_all(struct weir_event_watch *watch)
{
	_cleanup_(weir_counters_free) struct weir_counters counters = {};
	uint64_t *accounted;

	watch->changes_ns = weir_host_now_ns();
	if (!read_changes(watch, &counters))
		return;
	for (uint32_t slot = 0; slot < watch->instance->info.rule_slots; slot++)
		if ((accounted = accounted_for(watch, slot)))
			*accounted = counters.rules[slot].changes;
}

/* The latest time at which changes of any rule were left out. */
static uint64_t flooded_until_ns(const struct weir_event_watch *watch)
{
	uint64_t latest_ns = 0, until_ns;

	for (size_t ring = 1; ring < WEIR_EVENT_RINGS; ring++) {
		until_ns = weir_events_flooded_until_ns(watch->events, ring);
		latest_ns = until_ns > latest_ns ? until_ns : latest_ns;
	}
	return latest_ns;
}

/* When changes of this rule were last left out; never, if the missing ones are older than those present. */
static uint64_t missed_ns(const struct weir_event_watch *watch, enum weir_event_lane lane, uint32_t slot,
			  const struct weir_reported_events *events, uint64_t now_ns)
{
	const uint64_t until_ns = weir_events_flooded_until_ns(watch->events, weir_events_ring(lane, slot));

	if (until_ns)
		return until_ns < now_ns ? until_ns : now_ns;
	for (size_t i = 0; i < events->count; i++)
		if (events->all[i].kind == (enum weir_reported_kind)lane && events->all[i].event.rule_slot == slot)
			return events->all[i].time_ns;
	return now_ns;
}

static int report_unreported_changes(struct weir_event_watch *watch, struct weir_reported_events *events)
{
	_cleanup_(weir_counters_free) struct weir_counters counters = {};
	const uint64_t now_ns = weir_host_now_ns();
	int err = 0;

	if (watch->changes_ns && (watch->changes_ns > flooded_until_ns(watch) || now_ns < watch->changes_ns + TALLY_NS))
		return 0;
	watch->changes_ns = now_ns;
	if (!read_changes(watch, &counters))
		return 0;
	for (uint32_t slot = 0; !err && slot < watch->instance->info.rule_slots; slot++) {
		const struct weir_rule_info *rule = &watch->instance->rules[slot];
		const enum weir_event_lane lane = weir_is_breaker(rule) ? WEIR_LANE_BREAKERS : WEIR_LANE_PENALTIES;
		const uint64_t changes = counters.rules[slot].changes;
		uint64_t *accounted = accounted_for(watch, slot);

		if (!accounted)
			return -ENOMEM;
		if (changes > *accounted && rule->state != WEIR_SLOT_FREE)
			err = add_missed(events, (enum weir_reported_kind)lane, changes - *accounted, slot,
					 missed_ns(watch, lane, slot, events, now_ns));
		*accounted = changes; /* otherwise a reload has recreated the counters */
	}
	return err;
}

/* ---- sampling a reading ---- */

/* Is a drop among these of the same flow under the same rule or, if no rule dropped it, of the same verdict? */
static bool has_flow_of(const struct weir_reported *drops, size_t count, const struct weir_event *drop)
{
	for (size_t i = 0; i < count; i++) {
		const struct weir_event *other = &drops[i].event;

		if (other->rule_slot == drop->rule_slot && other->verdict == drop->verdict &&
		    (drop->rule_slot == WEIR_EVENT_NO_RULE || !memcmp(&other->key, &drop->key, sizeof(drop->key))))
			return true;
	}
	return false;
}

/* Sample the drops from index `first` on. */
static void keep_sample(struct weir_event_watch *watch, struct weir_reported_events *events, size_t first)
{
	struct weir_reported *all = events->all;
	size_t end = events->count, kept = end; /* those that are kept move to the end, and then to their place */

	for (size_t i = end; i-- > first;) {
		if (end - kept < watch->drops_most && !has_flow_of(all + kept, end - kept, &all[i].event))
			all[--kept] = all[i];
		else if (is_in_totals(watch, &all[i]))
			watch->unreported += (int64_t)weir_event_packets(&all[i].event);
	}
	if (kept > first)
		memmove(all + first, all + kept, (end - kept) * sizeof(*all));
	events->count = first + end - kept;
}

/* ---- reading ---- */

/* Events that were overwritten before they were read are in the counters, but no line reports them. */
static int read_ring(struct weir_event_watch *watch, size_t ring, struct weir_reported_events *events)
{
	_Static_assert((int)WEIR_REPORTED_DROP == WEIR_LANE_DROPS &&
			       (int)WEIR_REPORTED_PENALTY == WEIR_LANE_PENALTIES &&
			       (int)WEIR_REPORTED_BREAKER == WEIR_LANE_BREAKERS,
		       "a lane has one kind");
	const enum weir_reported_kind kind = (enum weir_reported_kind)weir_events_lane(ring);
	const size_t first = events->count;
	struct weir_event_cursor *cursor = &watch->rings[ring];
	struct weir_reported *reported;
	struct weir_event event;
	uint64_t *accounted;

	while (weir_events_read(watch->events, ring, cursor, &event)) {
		reported = add(events, kind, event.time_ns);
		if (!reported)
			return -ENOMEM;
		reported->event = event;
		accounted = kind == WEIR_REPORTED_DROP ? NULL : accounted_for(watch, event.rule_slot);
		if (accounted)
			++*accounted;
		else if (kind == WEIR_REPORTED_DROP && is_in_totals(watch, reported))
			watch->unreported -= (int64_t)weir_event_packets(&event);
	}
	if (kind == WEIR_REPORTED_DROP && watch->drops_most)
		keep_sample(watch, events, first);
	if (kind != WEIR_REPORTED_DROP && cursor->missed)
		watch->changes_ns = 0;
	cursor->missed = 0;
	return 0;
}

static int read_journal(struct weir_event_watch *watch, enum weir_journal_number number,
			struct weir_reported_events *events)
{
	struct weir_event_cursor *cursor = &watch->journals[number];
	const bool has_begun = cursor->passed;
	struct weir_reported *reported;
	struct weir_journal_entry entry;
	uint64_t missed;

	while (weir_journal_read(watch->events, number, cursor, &entry)) {
		reported = add(events, WEIR_REPORTED_JOURNAL, entry.time_ns);
		if (!reported)
			return -ENOMEM;
		entry.text[sizeof(entry.text) - 1] = '\0';
		reported->entry = entry;
	}
	missed = cursor->missed;
	cursor->missed = 0;
	/* Events from before the reader started were not missed. */
	return missed && has_begun
		       ? add_missed(events, WEIR_REPORTED_JOURNAL, missed, WEIR_EVENT_NO_RULE, weir_host_now_ns())
		       : 0;
}

/* A controller that ends normally leaves no heartbeat, and records its end in the journal. */
static int look_at_heartbeat(struct weir_event_watch *watch, struct weir_reported_events *events)
{
	const uint64_t now_ns = weir_host_now_ns();
	struct weir_control control;
	bool is_stale;

	if (watch->instance->is_incompatible[WEIR_TABLE_CONTROL] ||
	    weir_array_read(watch->instance->map_fd[WEIR_TABLE_CONTROL], &control, 1, sizeof(control)))
		return 0;
	is_stale = control.heartbeat_ns && now_ns > control.heartbeat_ns + control.validity_ns;
	if (is_stale && !watch->is_stale &&
	    !add(events, WEIR_REPORTED_STALE, control.heartbeat_ns + control.validity_ns))
		return -ENOMEM;
	watch->is_stale = is_stale;
	return 0;
}

static int read_all(struct weir_event_watch *watch, struct weir_reported_events *events)
{
	const uint64_t now_ns = weir_host_now_ns();
	int err = look_at_heartbeat(watch, events);

	if (!err)
		err = count_unreported(watch, now_ns);
	for (size_t ring = watch->wants_drops ? 0 : 1; !err && ring < WEIR_EVENT_RINGS; ring++)
		err = read_ring(watch, ring, events);
	if (!err)
		err = report_unreported_drops(watch, now_ns, events);
	if (!err)
		err = report_unreported_changes(watch, events);
	for (int journal = 0; !err && journal < WEIR_JOURNALS; journal++)
		err = read_journal(watch, journal, events);
	return err;
}

static int compare_times(const void *left, const void *right)
{
	const struct weir_reported *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void sort(struct weir_reported_events *events)
{
	if (events->count)
		qsort(events->all, events->count, sizeof(*events->all), compare_times);
}

/* Update the names of rules, since a reload changes slots. This is done after reading events: slots of removed rules
 * are not reused at once, so the current descriptions have the names for what was just read.
 */
static int refresh(struct weir_event_watch *watch, struct weir_diag *diag)
{
	struct weir_instance *now = NULL;
	int err;

	if (weir_instance_refresh(watch->instance))
		return 0;
	err = weir_instance_open(watch->instance->name, &now, diag);
	if (err)
		return err;
	weir_instance_free(watch->instance);
	watch->instance = now;
	/* A reload by another version of weir, or --fresh, may have recreated the maps. */
	err = map_events(watch, diag);
	for (size_t ring = 0; !err && ring < WEIR_EVENT_RINGS; ring++)
		if (weir_events_end(watch->events, ring).passed < watch->rings[ring].passed)
			watch->rings[ring] = (struct weir_event_cursor){};
	for (int journal = 0; !err && journal < WEIR_JOURNALS; journal++)
		if (weir_journal_end(watch->events, journal).passed < watch->journals[journal].passed)
			watch->journals[journal] = (struct weir_event_cursor){};
	return err;
}

int weir_event_watch_read(struct weir_event_watch *watch, struct weir_reported_events *ret_reported,
			  struct weir_diag *diag)
{
	struct weir_reported_events events = {};
	struct weir_diag ignored = {};
	int err;

	if (watch->wants_drops && !watch->only_reads)
		weir_events_listen(watch->events, weir_host_now_ns() + WEIR_LISTEN_NS);
	err = read_all(watch, &events);
	if (err)
		weir_diag_fail(diag, -err, NULL, "cannot read the events of instance '%s'", watch->instance->name);
	if (!err)
		err = refresh(watch, &ignored);
	if (err == -ENOENT) { /* final counts */
		weir_event_watch_tally(watch);
		read_all(watch, &events);
	} else {
		weir_diag_move(diag, &ignored, false);
	}
	weir_diag_free(&ignored);
	sort(&events);
	*ret_reported = events;
	return err;
}

int weir_events_read_past(const struct weir_instance *instance, struct weir_reported_events *ret_reported,
			  struct weir_diag *diag)
{
	/* A reader for a single reading, which does not change the instance that it borrows. */
	struct weir_event_watch watch = {.instance = (struct weir_instance *)instance};
	struct weir_reported_events events = {};
	int err = map_events(&watch, diag);

	if (!err) {
		err = read_all(&watch, &events);
		if (err)
			weir_diag_fail(diag, -err, NULL, "cannot read the events of instance '%s'", instance->name);
	}
	weir_events_unmap(watch.events);
	free(watch.accounted);
	sort(&events);
	*ret_reported = events;
	return err;
}

/* ---- the content of an event ---- */

const struct weir_rule_info *weir_reported_rule(const struct weir_instance *instance,
						const struct weir_reported *reported)
{
	const bool is_missed = reported->kind == WEIR_REPORTED_MISSED;
	const uint32_t slot = is_missed ? reported->missed.rule_slot : reported->event.rule_slot;

	if ((reported->kind > WEIR_REPORTED_BREAKER && !is_missed) || slot >= instance->info.rule_slots ||
	    instance->rules[slot].state == WEIR_SLOT_FREE)
		return NULL;
	return &instance->rules[slot];
}

bool weir_reported_has_figures(const struct weir_reported *reported)
{
	return reported->kind == WEIR_REPORTED_DROP && reported->event.used != WEIR_EVENT_UNKNOWN &&
	       reported->event.threshold != WEIR_EVENT_UNKNOWN;
}
