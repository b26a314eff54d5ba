/* SPDX-License-Identifier: GPL-2.0-only */
/* What controller.c and controller_report.c have in common. */
#ifndef WEIR_CONTROL_CONTROLLER_INTERNAL_H
#define WEIR_CONTROL_CONTROLLER_INTERNAL_H

#include "control/controller.h"
#include "host/host.h"
#include "host/load_average.h"
#include "host/memory.h"

#define LOOK_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_CONTROL) | WEIR_TABLE_BIT(WEIR_TABLE_THRESHOLDS))

/* ---- controller.c ---- */

/* The process that has the lock; 0: none, or it cannot be seen from here. */
pid_t weir_controller_find_holder(const char *name);
uint64_t weir_controller_validity_ns(const struct weir_instance *instance);
void weir_controller_warn_of_memory(const struct weir_instance *instance, int err, struct weir_diag *diag);

/* A reload writes descriptions in two steps, a few milliseconds apart. Who reads in between reads again. */
#define SETTLE_ATTEMPTS 50
#define SETTLE_PAUSE_NS 10000000

/* What it reads and writes, beside the descriptions. */
#define CONTROLLER_TABLES                                                                                              \
	(WEIR_TABLE_BIT(WEIR_TABLE_CONTROL) | WEIR_TABLE_BIT(WEIR_TABLE_THRESHOLDS) |                                  \
	 WEIR_TABLE_BIT(WEIR_TABLE_RULE_SECONDS) | WEIR_TABLE_BIT(WEIR_TABLE_WARM_STATES) |                            \
	 WEIR_TABLE_BIT(WEIR_TABLE_SIGNALS))

struct weir_controller {
	char name[WEIR_INSTANCE_NAME_BYTES];
	int lock_fd; /* the instance's directory; -1: a fork gave it up */
	int timer_fd;
	struct weir_instance *instance;
	struct weir_thresholds *thresholds;
	const struct weir_sharing_calls *sharing_calls;
	struct weir_sharing *sharing; /* NULL: hosts share no rule */
	struct weir_memory *memory;   /* NULL: no rule asks for it */
	struct weir_memory_use memory_use;
	bool misses_memory;  /* the last reading failed, which has been reported */
	bool has_failed;     /* the last tick did, which has been reported */
	bool is_noted;	     /* in the journal: that it begins */
	uint64_t watched_ns; /* when the links were looked at */
	struct weir_signals_map *signals;
	uint32_t sampled_rules; /* that go by samples; 0: none are taken */
	uint64_t sampled_ns;
	struct weir_cpu_times cpu_times;
	struct weir_control *control; /* mapped */
	int link_watch_fd;	      /* -1: of another network namespace, which nobody watches from here */
	struct weir_follow follow;
	uint64_t followed_ns;
	const uint64_t *drops_wanted; /* another process counts it up; NULL: there is none */
	uint64_t drops_received;      /* what it said last */
	bool must_follow;	      /* something has come or gone, or another command was at work the last time */
};

/* ---- controller_instance.c ---- */

size_t weir_controller_control_bytes(void);
int weir_controller_lock(struct weir_controller *controller, struct weir_diag *diag);

/* Its directory went with it, and ours is none any more; one of the same name is another instance. What cannot be
 * looked at is there: who took it for gone would leave it attached.
 */
bool weir_controller_is_gone(const struct weir_controller *controller);
int weir_controller_read_generation(const struct weir_controller *controller, uint64_t *ret_generation);

/* At the start, and after a reload. */
int weir_controller_open_all(struct weir_controller *controller, struct weir_diag *diag);

#endif
