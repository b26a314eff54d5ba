/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /sys and /proc show of an interface's hardware: which CPUs get its interrupts, whether RPS spreads its packets,
 * and whether a virtio host permits native XDP. All of it belongs to the interface of this name under /sys. If the
 * command has entered another network namespace, that is not the interface in question, and then nothing is known.
 */
#ifndef WEIR_NETWORK_HARDWARE_H
#define WEIR_NETWORK_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>

struct weir_hardware {
	bool is_known;
	/* Interrupts for received packets, and the CPUs that handle them now; 0: none, or unknown. */
	uint32_t interrupts, interrupt_cpus;
	uint32_t last_cpu; /* one of these CPUs */
	uint32_t rps_cpus; /* CPUs to which RPS passes packets, over all queues; 0: RPS is off */
	/* virtio_net: the host merges packets, and does not permit the guest to turn that off. */
	bool keeps_merging;
};

/* `root` is "" except in tests, which have a directory tree of their own. */
void weir_hardware_read(const char *root, const char *name, uint32_t ifindex, struct weir_hardware *ret_hardware);

#endif
