/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server: a process that shows an instance to observers, which `weir run --listen` starts. It stands outside of
 * lib; user/parts.c hands it down.
 */
#ifndef WEIR_CONTROL_SERVER_ROW_H
#define WEIR_CONTROL_SERVER_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "host/listen.h"

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

struct weir_server_row {
	/* Serve until a signal ends the process. Returns -errno if it cannot start, or can no longer wait. NULL: this
	 * build has no server.
	 */
	int (*serve)(const struct weir_serve *serve, struct weir_diag *diag);
};

/* Called once, before the next. */
void weir_use_server(const struct weir_server_row *row);
const struct weir_server_row *weir_server_in_use(void);

#endif
