/* SPDX-License-Identifier: GPL-2.0-only */
/* Waiting until a file of a named set changes (docs/sets.md), for a child of `weir run`. */
#ifndef WEIR_CMD_WATCH_SETS_H
#define WEIR_CMD_WATCH_SETS_H

#include <stdint.h>

#include "cli/options.h"

/*
 * Wait until a file of a set of the rules in force has been closed after writing, or replaced, since `since_ns`
 * (CLOCK_REALTIME), and no more changes come for a moment. Rules that are not confirmed are left alone until they are,
 * or have returned; and changes are of no concern while the rules in force come from other files than those of the
 * options. Returns 0, -ENOENT if no set has a file, or another -errno.
 */
int weir_sets_wait(const struct weir_options *options, uint64_t since_ns);

#endif
