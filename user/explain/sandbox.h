/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sandbox: a program under the harness, with what the tables of an attached instance hold of the flows that a
 * packet is of. It can be set again and again as it was when it was first read, so that one run after the other begins
 * at the same moment. Reads the instance, and writes the sandbox alone.
 */
#ifndef WEIR_EXPLAIN_SANDBOX_H
#define WEIR_EXPLAIN_SANDBOX_H

#include "instance/instance.h"
#include "program/object.h"
#include "state/rows.h"

/* One element of one table, as it was read; of all CPUs, where each has a copy. */
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

/* Read what concerns this flow under its rule. Returns 0 or -errno; -ENOMEM among them. */
int weir_sandbox_add(struct weir_sandbox *sandbox, const struct weir_harness_flow *flow);

/* What concerns packets of all flows. To be called once, before the first weir_sandbox_set(). */
int weir_sandbox_begin(struct weir_sandbox *sandbox, const struct weir_object *object,
		       const struct weir_instance *instance);

/* Set all of it, as it was read. Returns 0 or -errno. */
int weir_sandbox_set(const struct weir_sandbox *sandbox);

void weir_sandbox_free(struct weir_sandbox *sandbox);

/* An element that was read, or NULL. In a per-CPU table all copies, a multiple of eight bytes apart. */
const void *weir_sandbox_find(const struct weir_sandbox *sandbox, enum weir_table_id map, uint32_t key);

/* The row of this flow that `cpu` has, of a rule or shadow window with this storage; false when it has none. */
bool weir_sandbox_row(const struct weir_sandbox *sandbox, const struct weir_rule *counted, uint64_t hash, uint32_t tag,
		      int cpu, struct weir_row *ret_row);

#endif
