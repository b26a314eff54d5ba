/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room serve: an instance over HTTP, for observers: /metrics for Prometheus, and /api/v1 with the output of `--json`.
 * Answers GET and HEAD and changes nothing.
 *
 * It runs as a process of its own (weir/server_process.c starts it), so neither a fault in it nor a hostile client
 * reaches the controller, nor delays it. It has one thread, which waits for all sockets at once. The resources that one
 * client can use are bounded (server.c). There is no password: anyone who can connect can read. docs/metrics.md says
 * what that means for an operator.
 */
#ifndef WEIR_SERVE_H
#define WEIR_SERVE_H

#include <stddef.h>

#include "control/server_row.h"

/* For user/parts.c. A build without it (make WITHOUT=metrics) has a row without serve(). */
extern const struct weir_server_row weir_serve_row;

/* "libmicrohttpd 0.9.75", or a text saying that the server is left out. */
const char *weir_serve_version(void);

#endif
