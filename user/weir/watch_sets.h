/* SPDX-License-Identifier: GPL-2.0-only */
/* Waiting until a file of a named set changes (docs/sets.md), for a child of `weir run` or `weir control`. */
#ifndef WEIR_CMD_WATCH_SETS_H
#define WEIR_CMD_WATCH_SETS_H

#include "weir/reloads.h"

/*
 * Wait until a file of a set of the rules in force has been closed after writing, or replaced, since
 * reloads->since_ns, and no more changes come for a moment. Rules that are not confirmed are left alone until they are,
 * or have returned. If rule files are to be read, changes are of no concern while the rules in force come from others.
 * Returns 0, -ENOENT if no set has a file, or another -errno.
 */
int weir_sets_wait(const struct weir_reloads *reloads);

#endif
