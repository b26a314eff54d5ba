/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Network namespaces by their inode numbers, as instances remember where their interfaces are
 * (weir_instance_info.netns). Changes nothing but which one the calling thread is in.
 */
#ifndef WEIR_NETWORK_NETNS_H
#define WEIR_NETWORK_NETNS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Go there; *ret_back_fd (-1: it is here) leads back. -ENOENT: there is none, or none that can be found from here. */
int weir_netns_enter(uint64_t inode, int *ret_back_fd);

/* The same, by the number that the present one has for it, as in IFLA_LINK_NETNSID; and what `ip netns` calls it, empty
 * where that has no name for it.
 */
int weir_netns_enter_id(int32_t id, char ret_name[NAME_MAX + 1], int *ret_back_fd);

/* For _cleanup_, of what weir_netns_enter gave. */
void weir_netns_leave(const int *back_fd);

/* What `ip netns` calls it; false when it has no name there. */
bool weir_netns_name(uint64_t inode, char ret_name[NAME_MAX + 1]);

#endif
