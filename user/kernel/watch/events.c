// SPDX-License-Identifier: GPL-2.0-only
#include "watch/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"

/* ---- opening ---- */

static int map_events(struct weir_event_watch *watch, struct weir_diag *diag)
{
	struct weir_events *events;
	int err = weir_instance_expect_tables(watch->instance, WEIR_TABLE_BIT(WEIR_MAP_EVENTS), "the events", diag);

	if (err)
		return err;
	events = weir_events_map(watch->instance->map_fd[WEIR_MAP_EVENTS], true);
	if (!events)
		return weir_diag_fail(diag, errno, NULL, "cannot map the events of instance '%s'",
				      watch->instance->name);
	weir_events_unmap(watch->events);
	watch->events = events;
	return 0;
}

int weir_event_watch_open(const char *instance, bool wants_drops, bool from_the_past,
			  struct weir_event_watch *ret_watch, struct weir_diag *diag)
{
	struct weir_event_watch watch = {.wants_drops = wants_drops};
	int err = weir_instance_open(instance, &watch.instance, diag);

	if (!err)
		err = map_events(&watch, diag);
	if (err) {
		weir_event_watch_close(&watch);
		return err;
	}
	watch.lanes[WEIR_LANE_DROPS] = weir_events_end(watch.events, WEIR_LANE_DROPS);
	for (int lane = WEIR_LANE_DROPS + 1; lane < WEIR_LANES && !from_the_past; lane++)
		watch.lanes[lane] = weir_events_end(watch.events, lane);
	if (!from_the_past)
		watch.journal = weir_journal_end(watch.events);
	*ret_watch = watch;
	return 0;
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

/* ---- reading ---- */

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

static int read_lane(struct weir_event_watch *watch, enum weir_event_lane lane, struct weir_happenings *happenings)
{
	_Static_assert((int)WEIR_HAPPENING_DROP == WEIR_LANE_DROPS &&
			       (int)WEIR_HAPPENING_PENALTY == WEIR_LANE_PENALTIES &&
			       (int)WEIR_HAPPENING_BREAKER == WEIR_LANE_BREAKERS,
		       "a lane has one kind");
	struct weir_event_cursor *cursor = &watch->lanes[lane];
	const bool has_begun = cursor->passed;
	struct weir_happening *happening;
	struct weir_event event;

	while (weir_events_read(watch->events, lane, cursor, &event)) {
		happening = add(happenings, (enum weir_happening_kind)lane, event.time_ns);
		if (!happening)
			return -ENOMEM;
		happening->event = event;
	}
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
	int err = look_at_heartbeat(watch, happenings);

	for (int lane = watch->wants_drops ? WEIR_LANE_DROPS : WEIR_LANE_PENALTIES; !err && lane < WEIR_LANES; lane++)
		err = read_lane(watch, lane, happenings);
	return err ? err : read_journal(watch, happenings);
}

static int compare_times(const void *left, const void *right)
{
	const struct weir_happening *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
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

	if (watch->wants_drops)
		weir_events_listen(watch->events, weir_host_now_ns() + WEIR_LISTEN_NS);
	err = read_all(watch, &happenings);
	if (err)
		weir_diag_fail(diag, -err, NULL, "cannot read the events of instance '%s'", watch->instance->name);
	if (!err)
		err = refresh(watch, &ignored);
	if (err == -ENOENT)
		read_all(watch, &happenings); /* the last of it */
	else
		weir_diag_move(diag, &ignored, false);
	weir_diag_free(&ignored);
	if (happenings.count)
		qsort(happenings.all, happenings.count, sizeof(*happenings.all), compare_times);
	*ret_happenings = happenings;
	return err;
}

/* ---- what is in one ---- */

const struct weir_rule_info *weir_happening_rule(const struct weir_event_watch *watch,
						 const struct weir_happening *happening)
{
	const struct weir_instance *instance = watch->instance;
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
