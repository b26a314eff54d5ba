/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room sandbox: the program on a packet, and the guard of SSH sessions, which uses it.
 *
 * The sandbox: a program under the harness, with a copy of what the tables of an attached instance contain about the
 * flows of a packet. It can be reset to this state again and again, so that each run begins at the same moment. Reads
 * the instance, and writes only the sandbox.
 */
#ifndef WEIR_SANDBOX_SANDBOX_H
#define WEIR_SANDBOX_SANDBOX_H

#include "instance/instance.h"
#include "program/object.h"
#include "state/rows.h"

/* The copy of one table element; for a per-CPU table, of all CPUs' values. */
struct weir_prop {
	enum weir_table_id map; /* WEIR_STATE_TABLE_COUNT: a map of the program's own */
	int fd;
	uint32_t key;
	void *value;
};

struct weir_sandbox {
	const struct weir_object *object;
	const struct weir_instance *instance; /* NULL: all tables are empty */
	int cpus;
	struct weir_prop *props;
	size_t prop_count;
};

/* Copy everything about this flow under its rule. Returns 0 or -errno, which may be -ENOMEM. */
int weir_sandbox_add(struct weir_sandbox *sandbox, const struct weir_harness_flow *flow);

/* Copy what concerns the packets of all flows. Call this once, before the first weir_sandbox_set(). */
int weir_sandbox_begin(struct weir_sandbox *sandbox, const struct weir_object *object,
		       const struct weir_instance *instance);

/* Reset the sandbox to the copied state. Returns 0 or -errno. */
int weir_sandbox_set(const struct weir_sandbox *sandbox);

void weir_sandbox_free(struct weir_sandbox *sandbox);

/* A copied element, or NULL. For a per-CPU table, all values, a multiple of eight bytes apart. */
const void *weir_sandbox_find(const struct weir_sandbox *sandbox, enum weir_table_id map, uint32_t key);

/* The rule whose rows count the flow: its own, or the shadow window that its rule reads; NULL: the rule has no rows.
 * *ret_hash is the flow's hash there.
 */
const struct weir_rule *weir_sandbox_counted(const struct weir_sandbox *sandbox, const struct weir_harness_flow *flow,
					     uint64_t *ret_hash);

/* The row of this flow on `cpu`, for a rule or shadow window with this storage; false if there is none. */
bool weir_sandbox_row(const struct weir_sandbox *sandbox, const struct weir_rule *counted, uint64_t hash, uint32_t tag,
		      int cpu, struct weir_row *ret_row);

#endif
