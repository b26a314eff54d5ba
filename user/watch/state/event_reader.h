/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of an instance, as they happen: those of its program, its journal, and its controller's heartbeat, in order of
 * time. A reader takes nothing from another one.
 */
#ifndef WEIR_STATE_EVENT_READER_H
#define WEIR_STATE_EVENT_READER_H

#include "instance/instance.h"
#include "program/events.h"

enum weir_reported_kind {
	WEIR_REPORTED_DROP,
	WEIR_REPORTED_PENALTY,
	WEIR_REPORTED_BREAKER,
	WEIR_REPORTED_JOURNAL,
	WEIR_REPORTED_STALE,  /* the controller is gone, or hangs: thresholds that move are at their safe values */
	WEIR_REPORTED_MISSED, /* more than are reported one by one; of the journal: than the reader could follow */
};

struct weir_reported {
	enum weir_reported_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	union {
		struct weir_event event;
		struct weir_journal_entry entry;
		struct {
			uint64_t count;
			enum weir_reported_kind of;
			uint32_t rule_slot; /* of a rule's changes; else WEIR_EVENT_NO_RULE */
		} missed;
	};
};

struct weir_reported_events {
	struct weir_reported *all; /* in order of time */
	size_t count;
};

struct weir_event_watch {
	struct weir_instance *instance; /* as it is now: names of rules, by slot */
	struct weir_events *events;
	struct weir_event_cursor rings[WEIR_EVENT_RINGS], journals[WEIR_JOURNALS];
	bool wants_drops;
	bool only_reads;   /* somebody else lets drops be reported */
	size_t drops_most; /* of one reading, each of another flow; 0: all */
	bool is_stale;	   /* as it was reported last */
	/* Drops that are not reported one by one: what the counters say, less those that were read. */
	uint64_t tally_ns; /* when the counters are read next; 0: at once */
	uint64_t dropped;  /* as they said last */
	int64_t untold;	  /* since it was reported; below 0 while a drop has been read that they have not counted yet */
	bool is_counting; /* they have been read */
	/* Changes that are not reported one by one: what their rules' counters say, less what is accounted for. */
	uint64_t *accounted; /* by slot: what was reported, or said to be missing, and what was before this reader */
	uint32_t slots;
	uint64_t changes_ns; /* when the counters were read last; 0: they are to be read */
};

/* From now on; or, with `from_the_past`, from the oldest change that is kept. Close what was opened. */
int weir_event_watch_open(const char *instance, bool wants_drops, bool from_the_past,
			  struct weir_event_watch *ret_watch, struct weir_diag *diag);
void weir_event_watch_close(struct weir_event_watch *watch);

/*
 * A sample of drops, from now on, for a reader that only looks now and then and may not write: another process has
 * drops reported (weir_instance_listen). A reading has the latest drop of each flow, of `drops_most` flows; the others
 * are among those that are counted as left out.
 */
int weir_event_watch_open_sample(const char *instance, size_t drops_most, struct weir_event_watch *ret_watch,
				 struct weir_diag *diag);

/* The next reading says how many drops and changes were not reported until then, however short a while that is. */
static inline void weir_event_watch_tally(struct weir_event_watch *watch)
{
	watch->tally_ns = watch->changes_ns = 0;
}

/* So often, at least: else rings may be overwritten. */
#define WEIR_EVENT_WATCH_PERIOD_MS 100

/*
 * What has happened since. The caller frees *ret_reported, also when it fails: -ENOENT, the instance was detached;
 * what happened until then is there.
 */
int weir_event_watch_read(struct weir_event_watch *watch, struct weir_reported_events *ret_reported,
			  struct weir_diag *diag);
/* The changes that an instance keeps, in order of time. The caller frees *ret_reported. */
int weir_events_read_past(const struct weir_instance *instance, struct weir_reported_events *ret_reported,
			  struct weir_diag *diag);
void weir_reported_events_free(struct weir_reported_events *events);

/* The rule of an event, or of what is missing; NULL: none, or it is not known any more. */
const struct weir_rule_info *weir_reported_rule(const struct weir_instance *instance,
						const struct weir_reported *reported);

/* It has how much the flow had used under its rule. */
bool weir_reported_has_figures(const struct weir_reported *reported);

#endif
