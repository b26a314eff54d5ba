/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data that the guard of an unconfirmed rule set uses (bpf/guard.bpf.c). Userspace writes it, and the program reads
 * it. Its maps exist from a reload with --confirm until that is confirmed or the old rules return.
 */
#ifndef WEIR_ABI_GUARD_H
#define WEIR_ABI_GUARD_H

#include <linux/types.h>

enum weir_guard_set { WEIR_GUARD_NEW, WEIR_GUARD_OLD, WEIR_GUARD_SETS };

/* At tc one map has the programs of all hooks. */
#define WEIR_GUARD_SLOT(hook, set) ((hook)*WEIR_GUARD_SETS + (set))

#define WEIR_GUARD_NEVER (~0ull) /* confirmed: the new rules stay */

/* Map `guard`, one element. */
struct weir_guard {
	__u64 returns_ns; /* CLOCK_BOOTTIME: from then on the old rules are in force */
	__u64 generation; /* of the rule set that is not confirmed */
};

#endif
