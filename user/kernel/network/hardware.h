/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /sys and /proc say of an interface's hardware: which CPUs get its interrupts, whether RPS spreads its packets,
 * and whether virtio's host lets native XDP be. All of it is of the interface that /sys shows by this name, which is
 * none of ours where the command has entered another network namespace: then nothing is known.
 */
#ifndef WEIR_NETWORK_HARDWARE_H
#define WEIR_NETWORK_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>

struct weir_hardware {
	bool is_known;
	/* Interrupts for received packets, and the CPUs that handle them now; 0: none, or not known. */
	uint32_t interrupts, interrupt_cpus;
	uint32_t last_cpu; /* one of these */
	uint32_t rps_cpus; /* to which RPS hands packets on, of all queues; 0: it is off */
	/* virtio_net: the host merges packets, and has not given the guest the right to turn that off. */
	bool keeps_merging;
};

/* `root` is "" but for tests, which have a tree of their own. */
void weir_hardware_read(const char *root, const char *name, uint32_t ifindex, struct weir_hardware *ret_hardware);

#endif
