/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets to listen on: 127.0.0.1:9617, [::1]:9617, unix:/run/weir/main.sock. They are opened before anything is
 * attached, so that an address that cannot be had stops the command while nothing has happened yet, and in the network
 * namespace in which the command was started.
 */
#ifndef WEIR_SERVE_LISTEN_H
#define WEIR_SERVE_LISTEN_H

#include <stdbool.h>
#include <sys/un.h>

#include "base/diag.h"

struct weir_listener {
	int fd;
	bool is_loopback;					/* an address that other hosts cannot reach */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* of a unix socket; else empty */
};

/*
 * Listen on `address`. -EINVAL: it is none, or other hosts could reach it and `anywhere` does not allow that. Who may
 * connect to a unix socket: root and its group (mode 0660). One that a process left which is gone is replaced.
 */
int weir_listen(const char *address, bool anywhere, struct weir_listener *ret_listener, struct weir_diag *diag);

/* "http://127.0.0.1:9617/", of the port that it has, or "unix:/run/weir/main.sock". */
#define WEIR_LISTENER_BYTES 128
void weir_listener_address(const struct weir_listener *listener, char words[WEIR_LISTENER_BYTES]);

/* A unix socket goes from the file system, too. */
void weir_listener_close(struct weir_listener *listener);

#endif
