/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TLS to the store of a cluster, by GnuTLS, over a socket that does not wait. Nothing here waits either, and nothing
 * has a time-out of its own: the store's are for all of it. TLS 1.2 or later; the store must show a certificate for the
 * name that it was asked for by.
 */
#ifndef WEIR_STORE_TLS_H
#define WEIR_STORE_TLS_H

#include <stddef.h>
#include <sys/types.h>

struct weir_tls;

/*
 * Reads the authorities that may vouch for the store: the certificates in `ca_file`, or, when that is empty, those that
 * the system trusts. `name` is the store's, or its address as text. The socket stays the caller's, and must be open
 * for as long. NULL: `trouble` says why not.
 */
struct weir_tls *weir_tls_open(int fd, const char *name, const char *ca_file, char *trouble, size_t trouble_bytes);
void weir_tls_free(struct weir_tls *tls);

/* 0: the store is who it should be. -EAGAIN: continues when weir_tls_poll_events() come. Others: weir_tls_trouble(). */
int weir_tls_shake_hands(struct weir_tls *tls);
short weir_tls_poll_events(const struct weir_tls *tls); /* during the handshake */

/* As send(2) and recv(2). After EAGAIN and EINTR the connection continues. For all else weir_tls_trouble() says why. */
ssize_t weir_tls_send(struct weir_tls *tls, const void *data, size_t bytes);
ssize_t weir_tls_recv(struct weir_tls *tls, void *data, size_t bytes);

/* What is wrong, and what to do, for people. What a certificate says in it is printable. */
const char *weir_tls_trouble(const struct weir_tls *tls);

/* "GnuTLS 3.7.9" */
const char *weir_tls_version(void);

#endif
