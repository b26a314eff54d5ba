// SPDX-License-Identifier: GPL-2.0-only
#include "watch/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "watch/counters.h"
#include "words/words.h"

/* ---- opening ---- */

static int map_events(struct weir_event_watch *watch, struct weir_diag *diag)
{
	struct weir_events *events;
	int err = weir_instance_expect_tables(watch->instance, WEIR_TABLE_BIT(WEIR_MAP_EVENTS), "the events", diag);

	if (err)
		return err;
	events = weir_events_map(watch->instance->map_fd[WEIR_MAP_EVENTS], watch->wants_drops && !watch->only_reads);
	if (!events)
		return weir_diag_fail(diag, errno, NULL, "cannot map the events of instance '%s'",
				      watch->instance->name);
	weir_events_unmap(watch->events);
	watch->events = events;
	return 0;
}

/* *watch says what is wanted; on failure there is nothing to close. */
static int open_watch(const char *instance, bool from_the_past, struct weir_event_watch *watch, struct weir_diag *diag)
{
	int err = weir_instance_open(instance, &watch->instance, diag);

	if (!err)
		err = map_events(watch, diag);
	if (err) {
		weir_event_watch_close(watch);
		return err;
	}
	watch->lanes[WEIR_LANE_DROPS] = weir_events_end(watch->events, WEIR_LANE_DROPS);
	for (int lane = WEIR_LANE_DROPS + 1; lane < WEIR_LANES && !from_the_past; lane++)
		watch->lanes[lane] = weir_events_end(watch->events, lane);
	if (!from_the_past)
		watch->journal = weir_journal_end(watch->events);
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
	*watch = (struct weir_event_watch){};
}

void weir_happenings_free(struct weir_happenings *happenings)
{
	free(happenings->all);
	*happenings = (struct weir_happenings){};
}

static struct weir_happening *add(struct weir_happenings *happenings, enum weir_happening_kind kind, uint64_t time_ns)
{
	struct weir_happening *slot =
		weir_array_add((void **)&happenings->all, happenings->count, sizeof(*happenings->all));

	if (!slot)
		return NULL;
	happenings->count++;
	slot->kind = kind;
	slot->time_ns = time_ns;
	return slot;
}

/* What was overwritten since it was said last: of what was there before the reader came nothing was missed. */
static int add_missed(struct weir_event_cursor *cursor, enum weir_happening_kind of, bool is_told,
		      struct weir_happenings *happenings)
{
	struct weir_happening *happening;

	if (!cursor->missed)
		return 0;
	if (is_told) {
		happening = add(happenings, WEIR_HAPPENING_MISSED, weir_host_now_ns());
		if (!happening)
			return -ENOMEM;
		happening->missed.count = cursor->missed;
		happening->missed.of = of;
	}
	cursor->missed = 0;
	return 0;
}

/* ---- drops that are not told one by one ---- */

/* A second is what people read, and a script asks for (packets a second). */
#define TALLY_NS WEIR_NSEC_PER_SEC

/* Packets that were dropped, or would have been where the whole instance observes. */
static int count_drops(const struct weir_event_watch *watch, uint64_t *ret_dropped)
{
	struct weir_totals totals = {};
	int err = weir_totals_read(watch->instance, &totals);

	*ret_dropped = 0;
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++)
		if (weir_verdict_drops(verdict))
			*ret_dropped += totals.verdict[verdict].packets + totals.would_drop[verdict].packets;
	return err;
}

/* Read the counters, if it is time; before the events, so that what they have counted has mostly been told. */
static int count_untold(struct weir_event_watch *watch, uint64_t now_ns)
{
	uint64_t dropped;
	int err;

	if (!watch->wants_drops || now_ns < watch->tally_ns)
		return 0;
	err = count_drops(watch, &dropped);
	if (err)
		return err;
	if (!watch->is_counting) { /* what is told from here on is counted from here on */
		watch->lanes[WEIR_LANE_DROPS] = weir_events_end(watch->events, WEIR_LANE_DROPS);
		watch->is_counting = true;
	} else if (dropped >= watch->dropped) { /* else a reload has made them anew */
		watch->untold += (int64_t)(dropped - watch->dropped);
	}
	watch->dropped = dropped;
	watch->tally_ns = now_ns + TALLY_NS;
	return 0;
}

/* What an observing rule would drop is in none of the totals: the packet passed. */
static bool is_in_totals(const struct weir_event_watch *watch, const struct weir_happening *happening)
{
	const struct weir_rule_info *rule = weir_happening_rule(watch->instance, happening);

	return !rule || !rule->observes;
}

static int tell_untold(struct weir_event_watch *watch, uint64_t now_ns, struct weir_happenings *happenings)
{
	struct weir_happening *happening;

	if (!watch->wants_drops || watch->tally_ns != now_ns + TALLY_NS || watch->untold <= 0)
		return 0;
	happening = add(happenings, WEIR_HAPPENING_MISSED, weir_host_now_ns());
	if (!happening)
		return -ENOMEM;
	happening->missed.count = watch->untold;
	happening->missed.of = WEIR_HAPPENING_DROP;
	watch->untold = 0;
	return 0;
}

/* ---- a sample of a reading ---- */

/* Of the same flow under the same rule; of those that no rule dropped, of the same verdict. */
static bool is_of_same_flow(const struct weir_event *a, const struct weir_event *b)
{
	return a->rule_slot == b->rule_slot && a->verdict == b->verdict &&
	       (a->rule_slot == WEIR_EVENT_NO_RULE || !memcmp(&a->key, &b->key, sizeof(a->key)));
}

static bool has_flow_of(const struct weir_happening *drops, size_t count, const struct weir_happening *drop)
{
	for (size_t i = 0; i < count; i++)
		if (is_of_same_flow(&drops[i].event, &drop->event))
			return true;
	return false;
}

/* Of the drops from `first` on. */
static void keep_sample(struct weir_event_watch *watch, struct weir_happenings *happenings, size_t first)
{
	struct weir_happening *all = happenings->all;
	size_t end = happenings->count, kept = end; /* those that are kept go to the end, and then to their place */

	for (size_t i = end; i-- > first;) {
		if (end - kept < watch->drops_most && !has_flow_of(all + kept, end - kept, &all[i]))
			all[--kept] = all[i];
		else if (is_in_totals(watch, &all[i]))
			watch->untold++;
	}
	if (kept > first)
		memmove(all + first, all + kept, (end - kept) * sizeof(*all));
	happenings->count = first + end - kept;
}

/* ---- reading ---- */

static int read_lane(struct weir_event_watch *watch, enum weir_event_lane lane, struct weir_happenings *happenings)
{
	_Static_assert((int)WEIR_HAPPENING_DROP == WEIR_LANE_DROPS &&
			       (int)WEIR_HAPPENING_PENALTY == WEIR_LANE_PENALTIES &&
			       (int)WEIR_HAPPENING_BREAKER == WEIR_LANE_BREAKERS,
		       "a lane has one kind");
	struct weir_event_cursor *cursor = &watch->lanes[lane];
	const bool has_begun = cursor->passed && lane != WEIR_LANE_DROPS; /* those are counted: tell_untold() */
	const size_t first = happenings->count;
	struct weir_happening *happening;
	struct weir_event event;

	while (weir_events_read(watch->events, lane, cursor, &event)) {
		happening = add(happenings, (enum weir_happening_kind)lane, event.time_ns);
		if (!happening)
			return -ENOMEM;
		happening->event = event;
		if (lane == WEIR_LANE_DROPS && is_in_totals(watch, happening))
			watch->untold--;
	}
	if (lane == WEIR_LANE_DROPS && watch->drops_most)
		keep_sample(watch, happenings, first);
	return add_missed(cursor, (enum weir_happening_kind)lane, has_begun, happenings);
}

static int read_journal(struct weir_event_watch *watch, struct weir_happenings *happenings)
{
	const bool has_begun = watch->journal.passed;
	struct weir_happening *happening;
	struct weir_journal_entry entry;

	while (weir_journal_read(watch->events, &watch->journal, &entry)) {
		happening = add(happenings, WEIR_HAPPENING_JOURNAL, entry.time_ns);
		if (!happening)
			return -ENOMEM;
		entry.text[sizeof(entry.text) - 1] = '\0';
		happening->entry = entry;
	}
	return add_missed(&watch->journal, WEIR_HAPPENING_JOURNAL, has_begun, happenings);
}

/* A controller that ends in good order leaves no heartbeat, and says so in the journal. */
static int look_at_heartbeat(struct weir_event_watch *watch, struct weir_happenings *happenings)
{
	const uint64_t now_ns = weir_host_now_ns();
	struct weir_control control;
	bool is_stale;

	if (watch->instance->is_foreign[WEIR_MAP_CONTROL] ||
	    weir_array_read(watch->instance->map_fd[WEIR_MAP_CONTROL], &control, 1, sizeof(control)))
		return 0;
	is_stale = control.heartbeat_ns && now_ns > control.heartbeat_ns + control.validity_ns;
	if (is_stale && !watch->is_stale &&
	    !add(happenings, WEIR_HAPPENING_STALE, control.heartbeat_ns + control.validity_ns))
		return -ENOMEM;
	watch->is_stale = is_stale;
	return 0;
}

static int read_all(struct weir_event_watch *watch, struct weir_happenings *happenings)
{
	const uint64_t now_ns = weir_host_now_ns();
	int err = look_at_heartbeat(watch, happenings);

	if (!err)
		err = count_untold(watch, now_ns);
	for (int lane = watch->wants_drops ? WEIR_LANE_DROPS : WEIR_LANE_PENALTIES; !err && lane < WEIR_LANES; lane++)
		err = read_lane(watch, lane, happenings);
	if (!err)
		err = tell_untold(watch, now_ns, happenings);
	return err ? err : read_journal(watch, happenings);
}

static int compare_times(const void *left, const void *right)
{
	const struct weir_happening *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void sort(struct weir_happenings *happenings)
{
	if (happenings->count)
		qsort(happenings->all, happenings->count, sizeof(*happenings->all), compare_times);
}

/* A reload gives slots to rules. Afterwards: the slots of rules that are gone are not given away at once, so what was
 * just read finds its names in the descriptions as they are now.
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
	/* A reload by another version of weir, or --fresh, may have made them anew. */
	err = map_events(watch, diag);
	for (int lane = 0; !err && lane < WEIR_LANES; lane++)
		if (weir_events_end(watch->events, lane).passed < watch->lanes[lane].passed)
			watch->lanes[lane] = (struct weir_event_cursor){};
	if (!err && weir_journal_end(watch->events).passed < watch->journal.passed)
		watch->journal = (struct weir_event_cursor){};
	return err;
}

int weir_event_watch_read(struct weir_event_watch *watch, struct weir_happenings *ret_happenings,
			  struct weir_diag *diag)
{
	struct weir_happenings happenings = {};
	struct weir_diag ignored = {};
	int err;

	if (watch->wants_drops && !watch->only_reads)
		weir_events_listen(watch->events, weir_host_now_ns() + WEIR_LISTEN_NS);
	err = read_all(watch, &happenings);
	if (err)
		weir_diag_fail(diag, -err, NULL, "cannot read the events of instance '%s'", watch->instance->name);
	if (!err)
		err = refresh(watch, &ignored);
	if (err == -ENOENT) { /* the last of it */
		weir_event_watch_tally(watch);
		read_all(watch, &happenings);
	} else {
		weir_diag_move(diag, &ignored, false);
	}
	weir_diag_free(&ignored);
	sort(&happenings);
	*ret_happenings = happenings;
	return err;
}

int weir_events_read_past(const struct weir_instance *instance, struct weir_happenings *ret_happenings,
			  struct weir_diag *diag)
{
	/* A reader of one reading, which changes nothing of the instance that it borrows. */
	struct weir_event_watch watch = {.instance = (struct weir_instance *)instance};
	struct weir_happenings happenings = {};
	int err = map_events(&watch, diag);

	if (!err) {
		err = read_all(&watch, &happenings);
		if (err)
			weir_diag_fail(diag, -err, NULL, "cannot read the events of instance '%s'", instance->name);
	}
	weir_events_unmap(watch.events);
	sort(&happenings);
	*ret_happenings = happenings;
	return err;
}

/* ---- what is in one ---- */

const struct weir_rule_info *weir_happening_rule(const struct weir_instance *instance,
						 const struct weir_happening *happening)
{
	const uint32_t slot = happening->event.rule_slot;

	if (happening->kind > WEIR_HAPPENING_BREAKER || slot >= instance->info.rule_slots ||
	    instance->rules[slot].state == WEIR_SLOT_FREE)
		return NULL;
	return &instance->rules[slot];
}

bool weir_happening_has_figures(const struct weir_happening *happening)
{
	return happening->kind == WEIR_HAPPENING_DROP && happening->event.used != WEIR_EVENT_UNKNOWN &&
	       happening->event.threshold != WEIR_EVENT_UNKNOWN;
}
