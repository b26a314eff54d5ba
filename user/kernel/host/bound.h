/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory a process that stays may take for itself: what it has once its rules are read, and some. So a fault
 * by which a stranger has it allocate without end costs an allocation that fails, and not the machine. RLIMIT_DATA,
 * which counts heap and stacks; RLIMIT_AS would count the tables of a later reload, too, which are the kernel's.
 */
#ifndef WEIR_HOST_BOUND_H
#define WEIR_HOST_BOUND_H

/* From now on; again after each reload. What cannot be read or set leaves it as it is: it is a second wall. */
void weir_bound_memory(void);

/* For a child that does other work: reads rules, or looks at all flows. */
void weir_unbound_memory(void);

#endif
