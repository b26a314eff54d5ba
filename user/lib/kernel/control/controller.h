/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room control: the process that moves the thresholds of an instance, and what others can read about it.
 *
 * The controller is the process that moves the thresholds of an attached instance: every second for WarmUp, and with
 * memory usage for MemoryAdaptive. It samples load and CPU usage once a second for system rules, and a heartbeat shows
 * the program that the controller is alive. All its state is in maps, so it may be killed at any moment and another
 * controller continues from there. An instance has one controller at a time.
 */
#ifndef WEIR_CONTROL_CONTROLLER_H
#define WEIR_CONTROL_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "instance/instance.h"
#include "thresholds/control.h"

struct weir_controller;

/*
 * Become the controller of an instance, and take the first step. -EBUSY: the instance already has a controller. If
 * attached_ns is not 0, the instance must be that attachment, or the call fails with -ESTALE. Warns in diag if rules
 * need the memory usage and it cannot be read.
 */
int weir_controller_open(const char *instance, uint64_t attached_ns, struct weir_controller **ret_controller,
			 struct weir_diag *diag);
/* When a controller ends this way, safe thresholds take effect at once. A killed controller is noticed only when its
 * heartbeat goes stale.
 */
void weir_controller_free(struct weir_controller *controller);

/* Let the calculators give back what others could use, because the instance limits nothing any more, or is about to
 * stop. Takes half a second at most. Without this call, the other hosts reserve this host's fallback.
 */
void weir_controller_give_back(struct weir_controller *controller);

/*
 * For a forked child: drop everything that makes the child look like the controller. Only the parent then holds the
 * lock, which is free when the parent dies. The child must neither use nor free the controller afterwards.
 */
void weir_controller_leave(struct weir_controller *controller);

static inline void weir_controller_freep(struct weir_controller **controller)
{
	weir_controller_free(*controller);
}

/*
 * Let drops be reported as long as this word keeps changing, and for a few seconds longer. The server changes the word:
 * it may read events, but must not write the map in which the program sees that somebody listens. NULL stops the
 * reports.
 */
void weir_controller_hear(struct weir_controller *controller, const uint64_t *drops_wanted);

/* The number of rules that it works for now, because it moves their thresholds or samples the load that they depend on.
 */
uint32_t weir_controller_rule_count(const struct weir_controller *controller);

/* diag contains something to print at once. */
#define WEIR_CONTROLLER_WARNS 1
/* Other rules are in force. */
#define WEIR_CONTROLLER_RELOADED 2

/*
 * Tick until wake_fd is readable (returns 0), until memory becomes readable or unreadable, an interface disappears or
 * an operation fails (WEIR_CONTROLLER_WARNS), until a command has put other rules in force (WEIR_CONTROLLER_RELOADED),
 * or until the instance is detached (-ENOENT, with no message). It may be
 * called again with an empty diag: a failed operation is retried after a second, and the limits stay in force
 * meanwhile, with safe thresholds. The controller follows a reload by another command.
 */
int weir_controller_serve(struct weir_controller *controller, int wake_fd, struct weir_diag *diag);

/* ---- reading from outside ---- */

enum weir_controller_state {
	WEIR_CONTROLLER_RUNNING,
	WEIR_CONTROLLER_STALE,	    /* rules need a controller, and it died: they use their safe thresholds */
	WEIR_CONTROLLER_ABSENT,	    /* rules need a controller, but none was ever started, or it ended normally */
	WEIR_CONTROLLER_NOT_NEEDED, /* no rule needs a controller, and none is running */
};

struct weir_controller_report {
	enum weir_controller_state state;
	uint64_t stale_ns;    /* for how long, if WEIR_CONTROLLER_STALE */
	pid_t pid;	      /* of the controller, which hangs if the state is stale; 0: no controller, or unknown */
	uint32_t rule_count;  /* rules that need a controller */
	uint64_t *thresholds; /* in force now, units per interval, indexed by place; only the user's rules */
	bool needs_memory;    /* there are MemoryAdaptive rules */
	int memory_err;	      /* if needs_memory: 0, or the -errno of reading memory usage now */
	uint64_t used_bytes;  /* valid if memory_err is 0 */
};

/* The caller frees ret_report->thresholds. */
int weir_controller_look(const struct weir_instance *instance, struct weir_controller_report *ret_report,
			 struct weir_diag *diag);

/* Warn if rules need a controller and none is running, or if they need the memory usage and it cannot be read now. */
void weir_controller_warn(const char *name, struct weir_diag *diag);

#endif
