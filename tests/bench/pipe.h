/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One TCP connection between two network namespaces over a veth pair: our own namespace's half, "server", is where
 * programs are attached, and a thread in a namespace of its own is the client. What the client sends passes the
 * server's device. Bulk traffic has two CPUs where there are two. Requests have one: what two would measure is how long
 * a CPU that has nothing to do takes to wake up. Between measurements nothing is under way.
 */
#ifndef WEIR_BENCH_PIPE_H
#define WEIR_BENCH_PIPE_H

#include "rig.h"

enum pipe_traffic {
	PIPE_BULK,    /* as many bytes as the client can send */
	PIPE_REQUEST, /* 64 bytes there, 64 bytes back, one after the other */
	PIPE_TRAFFICS
};

struct pipe;

/* At most one at a time. */
struct pipe *pipe_open(struct rig *rig);
void pipe_close(struct pipe *pipe);

/* Put an XDP program at the server's device instead of what was there; -1: none. By the driver, or by the stack. */
void pipe_attach(struct pipe *pipe, int program_fd, bool is_native);

void pipe_set_gro(bool is_on);

/* For so long; returns bytes a second that arrived, or answers a second. */
double pipe_measure(struct pipe *pipe, enum pipe_traffic traffic, uint64_t duration_ns);

#endif
