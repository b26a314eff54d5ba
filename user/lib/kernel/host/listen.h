/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Listening sockets: 127.0.0.1:9617, [::1]:9617, unix:/run/weir/main.sock. They are opened before anything is attached,
 * so that an unavailable address stops the command before it has changed anything. They are opened in the network
 * namespace in which the command was started.
 */
#ifndef WEIR_HOST_LISTEN_H
#define WEIR_HOST_LISTEN_H

#include <stdbool.h>
#include <sys/un.h>

#include "base/diag.h"

struct weir_listener {
	int fd;
	bool is_loopback;					/* other hosts cannot reach the address */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* path of a unix socket; otherwise empty */
};

/*
 * Listen on `address`. -EINVAL: it is not an address, or other hosts could reach it and `anywhere` is false. Root and
 * its group may connect to a unix socket (mode 0660). A unix socket that a dead process left is replaced.
 */
int weir_listen(const char *address, bool anywhere, struct weir_listener *ret_listener, struct weir_diag *diag);

/* "http://127.0.0.1:9617/" with the actual port, or "unix:/run/weir/main.sock". */
#define WEIR_LISTENER_BYTES 128
void weir_listener_address(const struct weir_listener *listener, char words[WEIR_LISTENER_BYTES]);

/* Close the socket, and remove a unix socket from the file system. */
void weir_listener_close(struct weir_listener *listener);

#endif
