/* SPDX-License-Identifier: GPL-2.0-only */
/* A socket that listens for TCP, in a network namespace of the test's own, whose kernel gives SYN cookies to all. */
#ifndef WEIR_TEST_LISTENER_H
#define WEIR_TEST_LISTENER_H

#include <stdint.h>

/* From here on the thread is in a new namespace. Returns the socket, for IPv4 and IPv6. Asserts (cmocka). */
int listen_apart(uint16_t port);

#endif
