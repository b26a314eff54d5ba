/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room serve: an instance over HTTP, for observers: /metrics for Prometheus, and /api/v1 with the output of `--json`.
 * Answers GET and HEAD and changes nothing.
 *
 * It runs as a process of its own (cmd/server_process.c starts it), so neither a fault in it nor a hostile client
 * reaches the controller, nor delays it. It has one thread, which waits for all sockets at once. The resources that one
 * client can use are bounded (server.c). There is no password: anyone who can connect can read. docs/metrics.md says
 * what that means for an operator.
 */
#ifndef WEIR_SERVE_H
#define WEIR_SERVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "serve/listen.h"

/* What the server and the process that started it exchange, in shared memory. */
struct weir_serve_notes {
	/* Written by the process that reloads. */
	uint64_t reloads_failed; /* since it started */
	uint64_t last_failed;	 /* 1: the last reload failed; 0: it did not */
	/* Written by the server, which cannot write anything of the instance: incremented while somebody requests
	 * drops.
	 */
	uint64_t drops_wanted;
};

struct weir_serve {
	const char *instance;
	const struct weir_listener *listeners;
	size_t count;
	struct weir_serve_notes *notes;
};

/* Whether this build has a server (make WITHOUT=metrics leaves it out). */
bool weir_serve_is_built(void);

/* "libmicrohttpd 0.9.75", or a text saying that the server is left out. */
const char *weir_serve_version(void);

/* Serve until a signal ends the process. Returns -errno if it cannot start, or can no longer wait. */
int weir_serve(const struct weir_serve *serve, struct weir_diag *diag);

#endif
