/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process that serves an instance over HTTP (control/server_row.h), a child of `weir run`. Its sockets are opened
 * before anything is attached; it is started once the controller runs, and restarted if it crashes, is stopped, or
 * hangs.
 */
#ifndef WEIR_CMD_SERVER_PROCESS_H
#define WEIR_CMD_SERVER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/controller.h"
#include "cli/options.h"
#include "control/server_row.h"

struct weir_server {
	struct weir_listener *listeners; /* owned */
	size_t count;			 /* 0: no server was asked for */
	struct weir_serve_notes *notes;	 /* shared by both processes */
	pid_t child;			 /* 0: none */
	uint64_t started_ns;		 /* when it started, or will start after its pause */
	unsigned int short_lives;	 /* servers in a row that died at once */
	unsigned int pause_s;		 /* how long the current server waits before it serves */
};

/* Listen on the addresses in the options, in the current network namespace. *ret_server must be freed in any case. */
int weir_server_open(const struct weir_options *options, struct weir_server *ret_server, struct weir_diag *diag);

/* `controller` is needed because the child must not pass for it (weir_controller_leave). Errors are printed on stderr.
 */
void weir_server_start(struct weir_server *server, const char *instance, struct weir_controller *controller);

/* A child has ended or stopped. If it was the server, start another one. If too many servers in a row died at once,
 * close the sockets instead.
 */
void weir_server_look(struct weir_server *server, const char *instance, struct weir_controller *controller);

/* Count a reload, for /metrics. */
void weir_server_note_reload(struct weir_server *server, bool has_failed);

/* Ends the child if there is one. */
void weir_server_free(struct weir_server *server);

#endif
