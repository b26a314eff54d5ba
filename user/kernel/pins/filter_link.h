/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A filter of clsact in the place of a link, for kernels without tcx (network/tcx.h). The kernel keeps it with the
 * interface, and not with us: what is pinned is a map that says which interface, and the filter is found again there by
 * preference, handle and name, of which the last two are the instance's own. Also who made an interface's clsact qdisc,
 * so that it goes with the last filter in it if it was weir, and only then.
 */
#ifndef WEIR_PINS_FILTER_LINK_H
#define WEIR_PINS_FILTER_LINK_H

#include "network/netlink.h"
#include "pins/link_pin.h"

/* In the instance's network namespace, where the caller is. When it fails nothing is left. Returns 0 or -errno. */
int weir_filter_link_create(const char *instance, const struct weir_link *link, int program_fd);

/* By the map of its pin; ifindex 0: the filter is gone, with its interface or by itself. Returns 0 or -errno. */
int weir_filter_link_read(const char *instance, int map_fd, struct weir_link *link);

int weir_filter_link_update(const char *instance, const struct weir_link *link, int program_fd);

/* The pin stays when it fails, or nobody would find the filter any more. Returns 0 or -errno. */
int weir_filter_link_remove(const char *instance, const char *pin, int map_fd, const struct weir_link *link);

/* The qdisc of an interface, for a filter of this instance: made, and that noted, unless there is one. Given back when
 * such a filter has gone. Both return 0 or the kernel's -errno.
 */
int weir_clsact_take(struct weir_netlink *netlink, const char *instance, uint32_t ifindex);
int weir_clsact_give_back(struct weir_netlink *netlink, const char *instance, uint32_t ifindex);

/* The interface of a pin that notes this; 0: it is another pin. */
uint32_t weir_clsact_of_pin(const char *pin);

#endif
