/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bound on the memory of a long-running process: what it uses once its rules are read, plus a margin. If an attacker
 * finds a fault that makes the process allocate without end, an allocation fails and the machine survives. The bound is
 * RLIMIT_DATA, which counts heap and stacks. RLIMIT_AS would also count the tables of a later reload, which belong to
 * the kernel.
 */
#ifndef WEIR_HOST_BOUND_H
#define WEIR_HOST_BOUND_H

/* Set the bound now, and again after each reload. If the usage cannot be read or the bound cannot be set, nothing
 * changes: this is only a second line of defence.
 */
void weir_bound_memory(void);

/* Lift the bound in a child that does other work, such as reading rules or scanning all flows. */
void weir_unbound_memory(void);

#endif
