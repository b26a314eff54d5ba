/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink requests to the kernel (netlink(7)), for every file that makes any: one socket, one request at a time, and
 * its answer before the call returns. Callers build the request's attributes with libmnl. This file handles
 * acknowledgements, time-outs, late answers and interrupted dumps. It does not know what the attributes mean.
 */
#ifndef WEIR_NETWORK_NETLINK_H
#define WEIR_NETWORK_NETLINK_H

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

/* Larger than any of our requests, which contain constants and names of at most IFNAMSIZ bytes. */
#define WEIR_NETLINK_REQUEST_BYTES 1024

/* Starts as {}. */
struct weir_netlink {
	struct mnl_socket *socket;
	uint32_t sequence;
	char reason[128]; /* why the last request failed, in the kernel's words; empty: the kernel gave no reason */
	alignas(struct nlmsghdr) char request[WEIR_NETLINK_REQUEST_BYTES];
};

/* Open a socket to the present network namespace, in which the socket stays (NETLINK_ROUTE, NETLINK_GENERIC). Returns 0
 * or -errno.
 */
int weir_netlink_open(struct weir_netlink *netlink, int protocol);

/* For _cleanup_. Does nothing if the socket is not open. */
void weir_netlink_close(struct weir_netlink *netlink);

/*
 * Begin a request with the struct that its type requires (ifinfomsg, tcmsg, genlmsghdr). The caller adds attributes to
 * the returned message, which belongs to netlink. NLM_F_REQUEST is added, and NLM_F_ACK unless the request is a dump.
 */
struct nlmsghdr *weir_netlink_begin(struct weir_netlink *netlink, uint16_t type, uint16_t flags, const void *about,
				    size_t about_bytes);

/*
 * Send the request and wait for the end of the answer; `reader` (NULL: none) gets each of its messages. Returns 0 or
 * the kernel's -errno. -ETIMEDOUT: no answer. -EINTR: the objects changed during the dump, so some may be missing or
 * listed twice; repeat the request, WEIR_DUMPS_MAX times at most. -ENOBUFS: a part of the answer was lost.
 */
#define WEIR_DUMPS_MAX 10 /* chosen, not derived */
typedef void (*weir_netlink_reader)(const struct nlmsghdr *message, void *data);
int weir_netlink_ask(struct weir_netlink *netlink, weir_netlink_reader reader, void *data);

/* The attribute of this type among those after a struct of about_bytes; NULL if there is none. */
const struct nlattr *weir_netlink_find(const struct nlmsghdr *message, size_t about_bytes, uint16_t type);

/* Request the first value_bytes of such an attribute. -ENODATA: the answer does not have it, or it is shorter. */
int weir_netlink_ask_value(struct weir_netlink *netlink, size_t about_bytes, uint16_t type, void *ret_value,
			   size_t value_bytes);

/* ---- watching links ----
 *
 * It reports that interfaces of the present network namespace, their qdiscs or filters appear, go or change
 * (rtnetlink(7), RTNLGRP_LINK, RTNLGRP_TC); and their addresses, if that is wanted. It reports only that something has
 * changed, not what: events can be lost when many come at once, so the reader examines all interfaces again.
 */

/* Returns a descriptor that becomes readable when something has changed, or -errno. It stays in this namespace. */
int weir_link_watch_open(void);

/* Also report addresses from now on, or no longer: with IPv6, some change every few minutes. Returns 0 or -errno. */
int weir_link_watch_addresses(int fd, bool wants);

/* Discard all events received so far. Call this before examining the interfaces, so that nothing is missed. */
void weir_link_watch_drain(int fd);

#endif
