/* SPDX-License-Identifier: GPL-2.0-only */
/* What of an interface would bend a limit (examine.c). */
#ifndef WEIR_STATE_EXAMINE_INTERFACE_H
#define WEIR_STATE_EXAMINE_INTERFACE_H

#include "network/device.h"
#include "state/examine.h"

/* ---- examine_interface.c ---- */

void weir_examine_type(const char *interface, const struct weir_device *device, struct weir_findings *findings);
void weir_examine_driver(const char *interface, const struct weir_device *device, struct weir_findings *findings);
void weir_examine_mtu(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* Which mode to attach it in. */
void weir_examine_mode(const char *interface, uint32_t ifindex, const struct weir_device *device,
		       struct weir_findings *findings);

/* What happens to packets before XDP sees them. */
void weir_examine_offloads(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* Also of what the interface stands on; native mode comes before GRO, and refuses LRO where it matters. */
void weir_examine_merging(const char *interface, uint32_t ifindex, const struct weir_device *device,
			  struct weir_findings *findings);
void weir_examine_super_frames(const char *interface, uint32_t ifindex, const struct weir_device *device,
			       struct weir_findings *findings);

/* A program on an upper interface is in skb mode as a rule, where the ports below could have native mode. */
void weir_examine_stack(const char *interface, uint32_t ifindex, const struct weir_device *device,
			struct weir_findings *findings);
void weir_examine_queues(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* Where interrupts go the program runs, until RPS hands the packet on, which it does before skb mode only. */
void weir_examine_interrupts(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* What arrives while the CPU is busy waits in the ring; what does not fit is dropped there, before any limit. */
void weir_examine_rings(const char *interface, const struct weir_device *device, struct weir_findings *findings);

#endif
