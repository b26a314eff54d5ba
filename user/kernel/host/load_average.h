/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How busy the host is: its load of the last minute, and the busy share of its CPUs between two readings. Read as often
 * as the caller likes. Decides nothing.
 */
#ifndef WEIR_HOST_LOAD_AVERAGE_H
#define WEIR_HOST_LOAD_AVERAGE_H

#include <stdint.h>

/* Load average of one minute, in millionths: 0, or -errno. */
int weir_load_read(uint64_t *ret_load1_micro);

/* What all CPUs together have spent since boot, in the kernel's ticks. All zero: not read yet. */
struct weir_cpu_times {
	uint64_t busy, total;
};

/*
 * The busy share since *times, in millionths: all time but idle and waiting for I/O; what a hypervisor took (steal) is
 * busy. *times becomes the present reading. 0, -EAGAIN when there was none before, or no time has passed, or -errno.
 */
int weir_cpu_usage_read(struct weir_cpu_times *times, uint64_t *ret_micro);

#endif
