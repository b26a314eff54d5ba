/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process that serves an instance over HTTP (serve/serve.h), a child of `weir run`: opened before anything is
 * attached, started when the controller is there, and started again when it dies of a fault, is stopped, or hangs.
 */
#ifndef WEIR_CMD_SERVER_PROCESS_H
#define WEIR_CMD_SERVER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/controller.h"
#include "options.h"
#include "serve/serve.h"

struct weir_server {
	struct weir_listener *listeners; /* owned */
	size_t count;			 /* 0: it is not asked for */
	struct weir_serve_notes *notes;	 /* of both processes */
	pid_t child;			 /* 0: none */
	uint64_t started_ns;		 /* when it began, or will after its pause */
	unsigned int short_lives;	 /* servers that died at once, in a row */
	unsigned int pause_s;		 /* before the present one serves */
};

/* Listen where the options say, in the present network namespace. *ret_server is to be freed in any case. */
int weir_server_open(const struct weir_options *options, struct weir_server *ret_server, struct weir_diag *diag);

/* The controller is what the child must not look like (weir_controller_leave). Says on stderr what went wrong. */
void weir_server_start(struct weir_server *server, const char *instance, struct weir_controller *controller);

/* Some child has ended or stopped. If it was the server: start another. After too many that died at once the
 * sockets are closed instead.
 */
void weir_server_look(struct weir_server *server, const char *instance, struct weir_controller *controller);

/* For /metrics. */
void weir_server_note_reload(struct weir_server *server, bool has_failed);

/* Ends the child, if there is one. */
void weir_server_free(struct weir_server *server);

#endif
