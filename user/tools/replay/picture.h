/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data for a replay's picture: for every resource, what was offered and admitted over time, and the threshold of
 * its first moving rule (otherwise of its first rule). Collected packet by packet, and drawn by plot/plot.h. For
 * replay.c.
 */
#ifndef WEIR_REPLAY_PICTURE_H
#define WEIR_REPLAY_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "compile/compile.h"
#include "program/thresholds.h"

struct weir_replay_plot;

/* Space for a capture from earliest_ns to latest_ns. All arguments are borrowed for the plot's lifetime. NULL: no
 * memory.
 */
struct weir_replay_plot *weir_replay_plot_new(const struct weir_ruleset *ruleset, const struct weir_image *image,
					      const struct weir_thresholds *thresholds, uint64_t earliest_ns,
					      uint64_t latest_ns);
void weir_replay_plot_free(struct weir_replay_plot *plot);

/*
 * The time of the next point for which weir_replay_plot_note() must note the thresholds, after the controller has done
 * its work up to that time. UINT64_MAX: there are no more points.
 */
uint64_t weir_replay_plot_next_ns(const struct weir_replay_plot *plot);
void weir_replay_plot_note(struct weir_replay_plot *plot);

/* Count a packet of a resource, which is given by its index. */
void weir_replay_plot_count(struct weir_replay_plot *plot, uint32_t resource, uint64_t time_ns, uint32_t frame_bytes,
			    bool is_admitted);

void weir_replay_plot_write(const struct weir_replay_plot *plot, FILE *stream);

#endif
