/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where instances are pinned: directory `weir` of the machine's BPF file system. That is the file system that process 1
 * sees or, if process 1 may not be inspected, the one that our oldest inspectable ancestor sees. A command may run in a
 * mount namespace of its own (`ip netns exec` makes one and covers /sys). A BPF file system mounted there would vanish
 * with the namespace, and so would all pins in it.
 */
#ifndef WEIR_HOST_BPFFS_H
#define WEIR_HOST_BPFFS_H

#include <stdbool.h>

#include "base/diag.h"

/* The path of the machine's BPF file system from here, whether it is mounted or not. Static. */
const char *weir_bpffs_root(void);

/* Whether the BPF file system is mounted. */
bool weir_bpffs_is_mounted(void);

/* Whether we are in another mount namespace than process 1, so that /sys/fs/bpf is hidden or is not the machine's. */
bool weir_bpffs_is_elsewhere(void);

/* The file system is not visible here, and only root can find out whether this mount namespace hides it. So nobody
 * knows what is pinned.
 */
bool weir_bpffs_is_out_of_sight(void);

/* The path of the directory that holds the instances. Static; the directory may not exist. */
const char *weir_bpffs_base(void);

/*
 * Make that directory (mode 0700), mount the file system first if necessary, and lock the directory against other weir
 * commands until *ret_lock_fd is closed. Waits up to half a minute for earlier commands.
 */
int weir_bpffs_lock(int *ret_lock_fd, struct weir_diag *diag);

/* As weir_bpffs_lock(), but without waiting: -EBUSY if another command holds the lock, -ENOENT if there is no such
 * directory.
 */
int weir_bpffs_try_lock(int *ret_lock_fd);

/* Whether a command holds that lock now. */
bool weir_bpffs_is_locked(void);

/* Remove the directory if it is empty. The caller keeps the lock. */
void weir_bpffs_tidy(void);

#endif
