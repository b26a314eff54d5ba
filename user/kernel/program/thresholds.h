/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The thresholds that move, of one load, memory-mapped: who has the maps brings them up to date step by step, with
 * the arithmetic of thresholds/control.h. Used by the controller's loop (control/controller.h), by attach and reload
 * before the program is in force, and by replay in the capture's time. Has no clock and reads no memory.
 */
#ifndef WEIR_PROGRAM_THRESHOLDS_H
#define WEIR_PROGRAM_THRESHOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "compile/compile.h"
#include "thresholds/control.h"

struct weir_thresholds;

/* Descriptors of the maps that they are in. */
struct weir_moving_fds {
	int thresholds, rule_seconds, warm_states;
};

/* Where they are. Everything is borrowed, and only needed to open them, but for fds.rule_seconds and .warm_states. */
struct weir_thresholds_maps {
	const struct weir_rule_info *rules; /* by slot; shadow windows and slots not in use are passed over */
	uint32_t rule_slots;
	uint32_t rule_count; /* of the user's */
	struct weir_moving_fds fds;
	bool saves_states; /* a step writes warm_states: only the one controller of an instance does */
};

int weir_thresholds_open(const struct weir_thresholds_maps *maps, struct weir_thresholds **ret_thresholds,
			 struct weir_diag *diag);
void weir_thresholds_free(struct weir_thresholds *thresholds);

static inline void weir_thresholds_freep(struct weir_thresholds **thresholds)
{
	weir_thresholds_free(*thresholds);
}

/* How many rules' thresholds move; and do any of them by memory? */
uint32_t weir_thresholds_count(const struct weir_thresholds *thresholds);
bool weir_thresholds_need_memory(const struct weir_thresholds *thresholds);

/* What a rule that moves (its place) is allowed now, in units per interval. */
uint64_t weir_thresholds_units(const struct weir_thresholds *thresholds, uint32_t place);

/*
 * Bring every threshold to now_ns, and publish those that changed. What passed is only looked at when a whole second
 * has begun since the last step. Returns 0 or -errno.
 */
int weir_thresholds_step(struct weir_thresholds *thresholds, uint64_t now_ns, const struct weir_memory_use *memory);

/* The same for who looks at a capture: as a controller that is never late, at each whole second since the last step. */
int weir_thresholds_follow(struct weir_thresholds *thresholds, uint64_t now_ns, const struct weir_memory_use *memory);

/* What was pushed expired at that time (now_ns: expires now): push what the program has gone by since. For rules with
 * tokens, whose virtual time continues from there.
 */
void weir_thresholds_expire(struct weir_thresholds *thresholds, uint64_t expiry_ns, uint64_t now_ns);

/*
 * WarmUp rules that are new to their slot in `image` begin now, all cold. `previous` has the rules by slot as they were
 * before the load; NULL: there was none.
 */
int weir_thresholds_start(const struct weir_image *image, const struct weir_rule_info *previous, uint64_t now_ns,
			  const struct weir_moving_fds *fds, struct weir_diag *diag);

/*
 * Before its program is in force: what a load pushes at first, from the states that are there, so that no packet
 * meets a plain threshold in between. `memory` may be NULL: not known.
 */
int weir_thresholds_publish(const struct weir_image *image, const struct weir_moving_fds *fds, uint64_t now_ns,
			    const struct weir_memory_use *memory, struct weir_diag *diag);

#endif
