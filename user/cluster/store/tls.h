/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TLS to the store of a cluster, by GnuTLS, over a non-blocking socket. Nothing here blocks or has a time-out of its
 * own: the store's time-outs cover everything. TLS 1.2 or later. The store must present a certificate for the name
 * under which it was contacted.
 */
#ifndef WEIR_STORE_TLS_H
#define WEIR_STORE_TLS_H

#include <stddef.h>
#include <sys/types.h>

struct weir_tls;

/*
 * Reads the trusted authorities: the certificates in `ca_file` or, if that is empty, those that the system trusts.
 * `name` is the store's name, or its address as text. The socket stays the caller's, and must remain open while the
 * session exists. NULL: `trouble` says why.
 */
struct weir_tls *weir_tls_open(int fd, const char *name, const char *ca_file, char *trouble, size_t trouble_bytes);
void weir_tls_free(struct weir_tls *tls);

/* 0: the store has proved its identity. -EAGAIN: call it again after weir_tls_poll_events(). Other errors: see
 * weir_tls_trouble().
 */
int weir_tls_shake_hands(struct weir_tls *tls);
short weir_tls_poll_events(const struct weir_tls *tls); /* during the handshake */

/* As send(2) and recv(2). The connection continues after EAGAIN and EINTR. For any other error weir_tls_trouble() gives
 * the reason.
 */
ssize_t weir_tls_send(struct weir_tls *tls, const void *data, size_t bytes);
ssize_t weir_tls_recv(struct weir_tls *tls, void *data, size_t bytes);

/* For people: what is wrong, and what to do. Any text from a certificate is made printable. */
const char *weir_tls_trouble(const struct weir_tls *tls);

/* "GnuTLS 3.7.9" */
const char *weir_tls_version(void);

#endif
