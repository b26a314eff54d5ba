/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of an instance, as they happen, in order of time: those of its program, its journal, and its controller's
 * heartbeat. Readers do not take events from each other.
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
	/* The controller is gone, or hangs: moving thresholds are at their safe values. */
	WEIR_REPORTED_STALE,
	/* More events than are reported one by one; for the journal: more than the reader could follow. */
	WEIR_REPORTED_MISSED,
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
			uint32_t rule_slot; /* for changes of a rule; otherwise WEIR_EVENT_NO_RULE */
		} missed;
	};
};

struct weir_reported_events {
	struct weir_reported *all; /* in order of time */
	size_t count;
};

struct weir_event_watch {
	struct weir_instance *instance; /* in its current state: names of rules, by slot */
	struct weir_events *events;
	struct weir_event_cursor rings[WEIR_EVENT_RINGS], journals[WEIR_JOURNALS];
	bool wants_drops;
	bool only_reads;   /* another process has enabled the reporting of drops */
	size_t drops_most; /* most drops per reading, each of a different flow; 0: all */
	bool is_stale;	   /* the state that was reported last */
	/* Drops that are not reported one by one: the difference between the counters and the drops that were read. */
	uint64_t tally_ns; /* when to read the counters next; 0: at once */
	uint64_t dropped;  /* the counters' latest value */
	/* Since the last report. Negative while the counters have not yet caught up with a drop that has been read. */
	int64_t unreported;
	bool is_counting; /* the counters have been read at least once */
	/* Changes that are not reported one by one: the difference between their rules' counters and `accounted`. */
	uint64_t *accounted; /* by slot: changes reported, also as missing, and those before this reader */
	uint32_t slots;
	uint64_t changes_ns; /* when the counters were last read; 0: they must be read */
};

/* Start now or, with `from_the_past`, at the oldest change that is kept. The caller closes *ret_watch. */
int weir_event_watch_open(const char *instance, bool wants_drops, bool from_the_past,
			  struct weir_event_watch *ret_watch, struct weir_diag *diag);
void weir_event_watch_close(struct weir_event_watch *watch);

/*
 * A sample of drops, starting now, for a reader that reads only now and then and has no write access: another process
 * has enabled the reporting of drops (weir_instance_listen). A reading has the latest drop of each flow, for
 * `drops_most` flows; the other drops are included in the count of those left out.
 */
int weir_event_watch_open_sample(const char *instance, size_t drops_most, struct weir_event_watch *ret_watch,
				 struct weir_diag *diag);

/* Make the next reading report how many drops and changes were left out until then, even if it comes early. */
static inline void weir_event_watch_tally(struct weir_event_watch *watch)
{
	watch->tally_ns = watch->changes_ns = 0;
}

/* The longest period between readings: with a longer one, rings may be overwritten. */
#define WEIR_EVENT_WATCH_PERIOD_MS 100

/*
 * The events since the last reading. The caller frees *ret_reported, also on failure. -ENOENT: the instance was
 * detached; the events until then are included.
 */
int weir_event_watch_read(struct weir_event_watch *watch, struct weir_reported_events *ret_reported,
			  struct weir_diag *diag);
/* The changes that an instance keeps, in order of time. The caller frees *ret_reported. */
int weir_events_read_past(const struct weir_instance *instance, struct weir_reported_events *ret_reported,
			  struct weir_diag *diag);
void weir_reported_events_free(struct weir_reported_events *events);

/* The rule of an event, or of missing events; NULL: there is none, or it is no longer known. */
const struct weir_rule_info *weir_reported_rule(const struct weir_instance *instance,
						const struct weir_reported *reported);

/* Does the event say how much the flow had used under its rule? */
bool weir_reported_has_figures(const struct weir_reported *reported);

#endif
