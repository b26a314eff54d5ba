/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A clsact filter used instead of a link, for kernels without tcx (network/tcx.h). The kernel keeps the filter with the
 * interface, not with us. So a map that names the interface is pinned instead, and the filter is found by its
 * preference, handle and name; handle and name are unique to the instance. This file also remembers whether weir
 * created the interface's clsact qdisc. Only then is the qdisc removed, along with the last filter in it.
 */
#ifndef WEIR_PINS_FILTER_LINK_H
#define WEIR_PINS_FILTER_LINK_H

#include "network/netlink.h"
#include "pins/link_pin.h"

/* Call this in the instance's network namespace. If it fails, nothing is left. Returns 0 or -errno. */
int weir_filter_link_create(const char *instance, const struct weir_link *link, int program_fd);

/* Read the filter by the map of its pin. ifindex 0: the filter is gone, with its interface or alone. Returns 0 or
 * -errno.
 */
int weir_filter_link_read(const char *instance, int map_fd, struct weir_link *link);

int weir_filter_link_update(const char *instance, const struct weir_link *link, int program_fd);

/* If this fails, the pin stays, since otherwise nobody could find the filter any more. Returns 0 or -errno. */
int weir_filter_link_remove(const char *instance, const char *pin, int map_fd, const struct weir_link *link);

/* Prepare an interface's qdisc for a filter of this instance: create it if there is none, and note that. Give it back
 * when the filter is gone. Both return 0 or the kernel's -errno.
 */
int weir_clsact_take(struct weir_netlink *netlink, const char *instance, uint32_t ifindex);
int weir_clsact_give_back(struct weir_netlink *netlink, const char *instance, uint32_t ifindex);

/* The interface of a pin that is such a note; 0: it is another pin. */
uint32_t weir_clsact_of_pin(const char *pin);

#endif
