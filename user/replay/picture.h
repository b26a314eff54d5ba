/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a replay draws: for every resource, what was offered and admitted, and the threshold of its first rule that
 * moves (else of its first rule), by time. Collected packet by packet; drawn by plot/plot.h. For replay.c.
 */
#ifndef WEIR_REPLAY_PICTURE_H
#define WEIR_REPLAY_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "compile/compile.h"
#include "program/thresholds.h"

struct weir_replay_plot;

/* Room for a capture from earliest_ns to latest_ns. Everything is borrowed as long as it lives. NULL: no memory. */
struct weir_replay_plot *weir_replay_plot_new(const struct weir_ruleset *ruleset, const struct weir_image *image,
					      const struct weir_thresholds *thresholds, uint64_t earliest_ns,
					      uint64_t latest_ns);
void weir_replay_plot_free(struct weir_replay_plot *plot);

/*
 * The time at which the next point of the thresholds is to be noted, by weir_replay_plot_note(), when the
 * controller has done its work of that time; UINT64_MAX: there is none any more.
 */
uint64_t weir_replay_plot_next_ns(const struct weir_replay_plot *plot);
void weir_replay_plot_note(struct weir_replay_plot *plot);

/* A packet of a resource (its place). */
void weir_replay_plot_count(struct weir_replay_plot *plot, uint32_t resource, uint64_t time_ns, uint32_t frame_bytes,
			    bool is_admitted);

void weir_replay_plot_write(const struct weir_replay_plot *plot, FILE *stream);

#endif
