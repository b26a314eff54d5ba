/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports that interfaces of the present network namespace, or their qdiscs and filters, appear, go or change
 * (rtnetlink(7), RTNLGRP_LINK and RTNLGRP_TC). It reports only that something has changed, not what: events can be lost
 * when many come at once, so the reader examines all interfaces again.
 */
#ifndef WEIR_NETWORK_LINK_WATCH_H
#define WEIR_NETWORK_LINK_WATCH_H

/* Returns a descriptor that becomes readable when something has changed, or -errno. It stays in this namespace. */
int weir_link_watch_open(void);

/* Discard all events received so far. Call this before examining the interfaces, so that nothing is missed. */
void weir_link_watch_drain(int fd);

#endif
