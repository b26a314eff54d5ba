/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where instances are pinned: directory `weir` of the BPF file system of the machine, which is the one
 * that process 1 sees (or, where process 1 may not be looked at, our oldest ancestor that may). A
 * command can find itself in a mount namespace of its own (`ip netns exec` makes one and covers /sys):
 * what it pinned in a BPF file system mounted there would vanish with it.
 */
#ifndef WEIR_HOST_BPFFS_H
#define WEIR_HOST_BPFFS_H

#include <stdbool.h>

#include "base/diag.h"

/* Path of the machine's BPF file system from here, mounted or not. Static. */
const char *weir_bpffs_root(void);

/* It is mounted. */
bool weir_bpffs_is_mounted(void);

/* We are in another mount namespace than process 1, so that /sys/fs/bpf is hidden, or not the machine's. */
bool weir_bpffs_is_elsewhere(void);

/* It is not here, and whether this mount namespace hides it only root can see: what is pinned is unknown. */
bool weir_bpffs_is_out_of_sight(void);

/* Path of the directory that holds the instances; static, may not exist. */
const char *weir_bpffs_base(void);

/*
 * Make that directory (mode 0700), mounting the file system first when need be, and lock it against
 * other weir commands until *ret_lock_fd is closed. Waits for those who came before, up to half a minute.
 */
int weir_bpffs_lock(int *ret_lock_fd, struct weir_diag *diag);

/* The same without waiting: -EBUSY when another holds it, -ENOENT when there is no such directory. */
int weir_bpffs_try_lock(int *ret_lock_fd);

/* Whether a command holds that lock now. */
bool weir_bpffs_is_locked(void);

/* Remove the directory if nothing is in it. The lock stays the caller's. */
void weir_bpffs_tidy(void);

#endif
