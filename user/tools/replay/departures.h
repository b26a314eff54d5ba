/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A capture of the packets that pass, in the order in which they leave. Packets are added in the order in which they
 * are evaluated. The two orders differ if a delay, or a clock that went back, lets a later packet leave first. Memory:
 * 24 bytes per packet; the frames are on disk.
 */
#ifndef WEIR_REPLAY_DEPARTURES_H
#define WEIR_REPLAY_DEPARTURES_H

#include "base/diag.h"
#include "files/capture.h"
#include "files/output.h"

struct weir_departures;

/* The file at `path` (borrowed) appears when the output returned by weir_departures_finish is committed. Its frames
 * have this link type.
 */
int weir_departures_open(const char *path, enum weir_link_type link_type, struct weir_departures **ret_departures,
			 struct weir_diag *diag);
int weir_departures_add(struct weir_departures *departures, const struct weir_frame *frame, uint64_t leaves_ns,
			struct weir_diag *diag);

/* All packets have been added: sort them. The departures keep ownership of *ret_output. */
int weir_departures_finish(struct weir_departures *departures, struct weir_output **ret_output, struct weir_diag *diag);
void weir_departures_free(struct weir_departures *departures);

static inline void weir_departures_freep(struct weir_departures **departures)
{
	weir_departures_free(*departures);
}

#endif
