/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room serve: an instance over HTTP, for those who look on: /metrics for Prometheus, /api/v1 with what `--json` prints.
 * Answers GET and HEAD and changes nothing.
 *
 * It runs as a process of its own (cmd/server.c starts it): neither a mistake in it nor a hostile client reaches the
 * controller, which is not delayed by it either. One thread, which waits for all sockets at once. What one client can
 * ask of it is bounded (server_process.c). There is no password: who can connect can read. docs/metrics.md says what
 * that means for an operator.
 */
#ifndef WEIR_SERVE_H
#define WEIR_SERVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "serve/listen.h"

/* What the server and the process that started it exchange, in memory that both map. */
struct weir_serve_notes {
	/* By who reloads, of itself. */
	uint64_t reloads_failed; /* since it began */
	uint64_t last_failed;	 /* 0 or 1: the last one did */
	/* By the server, which may write nothing of the instance: goes up while somebody asks for drops. */
	uint64_t drops_wanted;
};

struct weir_serve {
	const char *instance;
	const struct weir_listener *listeners;
	size_t count;
	struct weir_serve_notes *notes;
};

/* This build has a server (make WITHOUT=metrics leaves it out). */
bool weir_serve_is_built(void);

/* "libmicrohttpd 0.9.75", or what says that it is left out. */
const char *weir_serve_version(void);

/* Serve until a signal ends the process. Returns -errno when it cannot begin, or wait any more. */
int weir_serve(const struct weir_serve *serve, struct weir_diag *diag);

#endif
