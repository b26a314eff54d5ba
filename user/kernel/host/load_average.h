/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How busy the host is: its one-minute load average, and the busy share of its CPUs between two readings. The caller
 * may read as often as it likes. Makes no decisions.
 */
#ifndef WEIR_HOST_LOAD_AVERAGE_H
#define WEIR_HOST_LOAD_AVERAGE_H

#include <stdint.h>

/* The one-minute load average, in millionths. Returns 0 or -errno. */
int weir_load_read(uint64_t *ret_load1_micro);

/* What all CPUs together have spent since boot, in the kernel's ticks. All zero: not read yet. */
struct weir_cpu_times {
	uint64_t busy, total;
};

/*
 * The busy share since *times, in millionths. All time counts as busy except idle time and waiting for I/O; time taken
 * by a hypervisor (steal) is busy. *times becomes the present reading. Returns 0, -EAGAIN if there was no earlier
 * reading or no time has passed, or -errno.
 */
int weir_cpu_usage_read(struct weir_cpu_times *times, uint64_t *ret_micro);

#endif
