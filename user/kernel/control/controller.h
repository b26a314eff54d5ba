/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room control: the process that moves the thresholds of an instance, and what others can read about it.
 *
 * The controller: the process that moves thresholds of an attached instance, second by second (WarmUp) and with the
 * memory in use (MemoryAdaptive), samples load and CPU usage once a second for system rules, and informs the program
 * through a heartbeat that it is alive. It keeps nothing that is not in maps: it may be killed at any moment, and
 * another continues where it was. One at a time for an instance.
 */
#ifndef WEIR_CONTROL_CONTROLLER_H
#define WEIR_CONTROL_CONTROLLER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "instance/instance.h"
#include "thresholds/control.h"

struct weir_controller;
struct weir_sharing;

/*
 * The controller's work for limits that hosts share, which is the room store's (store/sharing.h): that stands above
 * this room, so who opens a controller brings it along. NULL for a `sharing`: hosts share no rule.
 */
struct weir_sharing_calls {
	/* Bring *sharing in line with the instance: at the start (*sharing is NULL), and after each reload. */
	int (*follow)(struct weir_sharing **sharing, const struct weir_instance *instance, struct weir_diag *diag);
	void (*free)(struct weir_sharing *sharing);
	/* What to poll for, and until when: step() is to be called when either comes. */
	struct pollfd (*poll)(const struct weir_sharing *sharing);
	uint64_t (*due_ns)(const struct weir_sharing *sharing);
	/* Take what has come, say what is due, push what has changed. */
	void (*step)(struct weir_sharing *sharing, struct weir_diag *diag);
	/* The program limits nobody any more: give all shares back. */
	void (*leave)(struct weir_sharing *sharing);
	/* How many rules. */
	uint32_t (*rule_count)(const struct weir_sharing *sharing);
};

/*
 * Become the controller of an instance, and do the first step. -EBUSY: it has one. attached_ns other than 0: only if
 * the instance is that attachment, else -ESTALE. Warns in diag if memory is needed and cannot be read.
 */
int weir_controller_open(const char *instance, uint64_t attached_ns, const struct weir_sharing_calls *sharing_calls,
			 struct weir_controller **ret_controller, struct weir_diag *diag);
/* At the end of a controller safe thresholds hold at once. One that is killed is missed when its heartbeat is stale. */
void weir_controller_free(struct weir_controller *controller);

/* The instance limits nobody any more, or will not in a moment: what hosts share is given back, which takes half a
 * second at most. Without it the other hosts reserve this one's fallback.
 */
void weir_controller_give_back(struct weir_controller *controller);

/*
 * In a child that was forked: keep nothing that makes it look like the controller. The lock stays the parent's alone,
 * and is free when that dies. The controller is not to be used any more, nor freed.
 */
void weir_controller_leave(struct weir_controller *controller);

static inline void weir_controller_freep(struct weir_controller **controller)
{
	weir_controller_free(*controller);
}

/*
 * Let drops be reported as long as this word keeps changing, and a few seconds longer. Who changes it may read
 * events, and may not write where it is read that somebody listens: the server. NULL: no more.
 */
void weir_controller_hear(struct weir_controller *controller, const uint64_t *drops_wanted);

/* How many rules it works for, now: it moves their thresholds, or samples what they go by. */
uint32_t weir_controller_rule_count(const struct weir_controller *controller);

/* There is something in diag to print at once. */
#define WEIR_CONTROLLER_WARNS 1

/*
 * Tick until wake_fd can be read (0), or memory begins or ceases to be readable, or an interface goes, or something
 * fails (WEIR_CONTROLLER_WARNS), or the instance was detached (-ENOENT, without a word). It may be called again, with
 * an empty diag: what failed is retried after a second, and the limits stay in force meanwhile, on safe thresholds. A
 * reload by another command is followed.
 */
int weir_controller_serve(struct weir_controller *controller, int wake_fd, struct weir_diag *diag);

/* ---- looking on ---- */

enum weir_controller_state {
	WEIR_CONTROLLER_RUNNING,
	WEIR_CONTROLLER_STALE,	    /* rules need one, and it died: they are at their safe thresholds */
	WEIR_CONTROLLER_ABSENT,	    /* ... and there never was one, or it ended in good order */
	WEIR_CONTROLLER_NOT_NEEDED, /* nor is there one */
};

struct weir_controller_report {
	enum weir_controller_state state;
	uint64_t stale_ns;    /* WEIR_CONTROLLER_STALE: for so long */
	pid_t pid;	      /* of the controller, which hangs if it is stale; 0: none, or it cannot be determined */
	uint32_t rule_count;  /* rules that need one */
	uint64_t *thresholds; /* in force now, units per interval, by place; the user's rules */
	bool needs_memory;    /* there are MemoryAdaptive rules */
	int memory_err;	      /* if so: 0, or the -errno of reading it now */
	uint64_t used_bytes;  /* if it could be read */
};

/* The caller frees ret_report->thresholds. */
int weir_controller_look(const struct weir_instance *instance, struct weir_controller_report *ret_report,
			 struct weir_diag *diag);

/* Warn if rules need a controller and none is running, or memory, which cannot be read at this moment. */
void weir_controller_warn(const char *name, struct weir_diag *diag);

#endif
