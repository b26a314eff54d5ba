/* SPDX-License-Identifier: GPL-2.0-only */
/* What controller.c and controller_report.c share. */
#ifndef WEIR_CONTROL_CONTROLLER_INTERNAL_H
#define WEIR_CONTROL_CONTROLLER_INTERNAL_H

#include "control/calculator.h"
#include "control/controller.h"
#include "host/host.h"
#include "host/memory.h"

#define LOOK_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_CONTROL) | WEIR_TABLE_BIT(WEIR_TABLE_THRESHOLDS))

/* ---- controller.c ---- */

/* The process that holds the lock; 0: none, or not visible from here. */
pid_t weir_controller_find_holder(const char *name);
uint64_t weir_controller_validity_ns(const struct weir_instance *instance);
void weir_controller_warn_of_memory(const struct weir_instance *instance, int err, struct weir_diag *diag);

/* A reload writes descriptions in two steps, a few milliseconds apart. A reader that comes in between reads again. */
#define SETTLE_ATTEMPTS 50
#define SETTLE_PAUSE_NS 10000000

/* The tables that the controller reads and writes, besides the descriptions. */
#define CONTROLLER_TABLES                                                                                              \
	(WEIR_TABLE_BIT(WEIR_TABLE_CONTROL) | WEIR_TABLE_BIT(WEIR_TABLE_THRESHOLDS) |                                  \
	 WEIR_TABLE_BIT(WEIR_TABLE_RULE_SECONDS) | WEIR_TABLE_BIT(WEIR_TABLE_WARM_STATES) |                            \
	 WEIR_TABLE_BIT(WEIR_TABLE_SIGNALS))

struct weir_controller {
	char name[WEIR_INSTANCE_NAME_BYTES];
	int lock_fd; /* the instance's directory; -1: given up in a forked child */
	int timer_fd;
	struct weir_instance *instance;
	struct weir_thresholds *thresholds;
	void *calculated[WEIR_CALCULATORS_MAX]; /* the state of each calculator; NULL: no rule needs it */
	struct weir_memory *memory;		/* NULL: no rule needs it */
	struct weir_memory_use memory_use;
	bool misses_memory;  /* the last reading failed, and this has been reported */
	bool has_failed;     /* the last tick failed, and this has been reported */
	bool is_reloaded;    /* other rules are in force, and this has not been reported */
	bool is_noted;	     /* the journal already says that this controller has started */
	uint64_t watched_ns; /* when the links were last checked */
	struct weir_signals_map *signals;
	uint32_t sampled_rules; /* rules that use the samples; 0: no samples are taken */
	uint64_t sampled_ns;
	struct weir_cpu_times cpu_times;
	struct weir_control *control; /* mapped */
	int link_watch_fd;	      /* -1: unused, because the interfaces are in another network namespace */
	struct weir_follow follow;
	uint64_t followed_ns;
	const uint64_t *drops_wanted; /* a word that another process increments; NULL: there is none */
	uint64_t drops_received;      /* the value of *drops_wanted at the last look */
	bool must_follow;	      /* an interface appeared or went, or another command was at work last time */
};

/* ---- controller_instance.c ---- */

size_t weir_controller_control_bytes(void);
int weir_controller_lock(struct weir_controller *controller, struct weir_diag *diag);

/* Whether the instance is gone. Its directory goes with it, and a new directory of the same name is another instance. A
 * directory that cannot be read counts as present: otherwise the caller would leave the instance attached.
 */
bool weir_controller_is_gone(const struct weir_controller *controller);
int weir_controller_read_generation(const struct weir_controller *controller, uint64_t *ret_generation);

/* Called at the start and after each reload. */
int weir_controller_open_all(struct weir_controller *controller, struct weir_diag *diag);

#endif
