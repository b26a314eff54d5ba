/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The thresholds that move in one load, memory-mapped. The owner of the maps updates them step by step, with the
 * arithmetic of thresholds/control.h. Used by the controller's loop (control/controller.h), by attach and reload before
 * the program is in force, and by replay in the capture's time. Has no clock and does not read the memory usage.
 */
#ifndef WEIR_PROGRAM_THRESHOLDS_H
#define WEIR_PROGRAM_THRESHOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "compile/compile.h"
#include "thresholds/control.h"

struct weir_thresholds;

/* Descriptors of the maps in which these thresholds are. */
struct weir_moving_fds {
	int thresholds, rule_seconds, warm_states;
};

/* The maps. Everything is borrowed, and needed only while opening, except fds.rule_seconds and .warm_states. */
struct weir_thresholds_maps {
	const struct weir_rule_info *rules; /* by slot; shadow windows and unused slots are skipped */
	uint32_t rule_slots;
	uint32_t rule_count; /* the user's rules */
	struct weir_moving_fds fds;
	bool saves_states; /* a step writes warm_states: only the controller of an instance may do that */
};

int weir_thresholds_open(const struct weir_thresholds_maps *maps, struct weir_thresholds **ret_thresholds,
			 struct weir_diag *diag);
void weir_thresholds_free(struct weir_thresholds *thresholds);

static inline void weir_thresholds_freep(struct weir_thresholds **thresholds)
{
	weir_thresholds_free(*thresholds);
}

/* The number of rules whose thresholds move, and whether any of these depend on memory. */
uint32_t weir_thresholds_count(const struct weir_thresholds *thresholds);
bool weir_thresholds_need_memory(const struct weir_thresholds *thresholds);

/* The present threshold of the rule at this place, which must be one that moves, in units per interval. */
uint64_t weir_thresholds_units(const struct weir_thresholds *thresholds, uint32_t place);

/*
 * Compute every threshold for now_ns, and publish those that changed. The numbers of passed packets are read only if a
 * whole second has begun since the last step. Returns 0 or -errno.
 */
int weir_thresholds_step(struct weir_thresholds *thresholds, uint64_t now_ns, const struct weir_memory_use *memory);

/* The same for a capture: takes a step at each whole second since the last one, like a controller that is never late.
 */
int weir_thresholds_follow(struct weir_thresholds *thresholds, uint64_t now_ns, const struct weir_memory_use *memory);

/* The published thresholds expired at expiry_ns (now_ns: they expire now). Publish the ones that the program has used
 * since. For rules with tokens, whose virtual time continues from there.
 */
void weir_thresholds_expire(struct weir_thresholds *thresholds, uint64_t expiry_ns, uint64_t now_ns);

/*
 * WarmUp rules that are new to their slot in `image` start now, all cold. `previous` has the rules by slot before the
 * load; NULL: there were none.
 */
int weir_thresholds_start(const struct weir_image *image, const struct weir_rule_info *previous, uint64_t now_ns,
			  const struct weir_moving_fds *fds, struct weir_diag *diag);

/*
 * Called before the image's program is in force: publish the first thresholds from the existing states, so that no
 * packet meets a plain threshold in between. `memory` may be NULL: unknown.
 */
int weir_thresholds_publish(const struct weir_image *image, const struct weir_moving_fds *fds, uint64_t now_ns,
			    const struct weir_memory_use *memory, struct weir_diag *diag);

#endif
