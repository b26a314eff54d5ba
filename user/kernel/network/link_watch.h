/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hears that interfaces of the present network namespace come, go or change (rtnetlink(7), RTNLGRP_LINK). It says that
 * there is something to look at, and not what: an event can be lost when many come at once, so the reader looks at
 * all interfaces again.
 */
#ifndef WEIR_NETWORK_LINK_WATCH_H
#define WEIR_NETWORK_LINK_WATCH_H

/* Returns a descriptor that can be read when there is something to look at, or -errno. It stays in the namespace. */
int weir_link_watch_open(void);

/* Forget what has been heard until now: to be called before one looks, so that nothing is missed. */
void weir_link_watch_drain(int fd);

#endif
