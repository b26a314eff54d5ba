/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Network namespaces by inode number, which is how an instance remembers where its interfaces are
 * (weir_instance_info.netns). Changes nothing except the network namespace of the calling thread.
 */
#ifndef WEIR_NETWORK_NETNS_H
#define WEIR_NETWORK_NETNS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Enter the namespace. *ret_back_fd leads back (-1: the thread was already there). -ENOENT: there is no such namespace,
 * or it cannot be found from here.
 */
int weir_netns_enter(uint64_t inode, int *ret_back_fd);

/* The same, by the id that the present namespace has for the other one, as in IFLA_LINK_NETNSID. Also returns the name
 * in `ip netns`, which is empty if there is none.
 */
int weir_netns_enter_id(int32_t id, char ret_name[NAME_MAX + 1], int *ret_back_fd);

/* For _cleanup_, with the descriptor from weir_netns_enter(). */
void weir_netns_leave(const int *back_fd);

/* The namespace's name in `ip netns`; false if it has none. */
bool weir_netns_name(uint64_t inode, char ret_name[NAME_MAX + 1]);

/* What --netns takes to enter it: its name, or else the path under which a process or a mount has it. False: nothing
 * that is found from here.
 */
bool weir_netns_argument(uint64_t inode, char ret_argument[PATH_MAX]);

#endif
