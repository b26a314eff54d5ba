/* SPDX-License-Identifier: GPL-2.0-only */
/* Properties of an interface that would distort a limit (examine.c). */
#ifndef WEIR_STATE_EXAMINE_INTERFACE_H
#define WEIR_STATE_EXAMINE_INTERFACE_H

#include "network/device.h"
#include "state/examine.h"

/* ---- examine_interface.c ---- */

void weir_examine_type(const char *interface, const struct weir_device *device, struct weir_findings *findings);
void weir_examine_driver(const char *interface, const struct weir_device *device, struct weir_findings *findings);
void weir_examine_mtu(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* Is weir attached at tc here or, if it is not attached, is tc mode best? Super-frames then count as their segments. */
bool weir_examine_is_for_tc(const char *interface, uint32_t ifindex, const struct weir_device *device);

/* Which mode to attach in, for rules that have `interface` in matches or keys, or for any rules. */
void weir_examine_mode(const char *interface, uint32_t ifindex, const struct weir_device *device, bool asks_interface,
		       struct weir_findings *findings);

/* What happens to packets before XDP sees them. */
void weir_examine_offloads(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* Checks the interfaces below this one too. Native mode runs before GRO, and refuses LRO where it matters. */
void weir_examine_merging(const char *interface, uint32_t ifindex, const struct weir_device *device, bool is_for_tc,
			  struct weir_findings *findings);
void weir_examine_super_frames(const char *interface, uint32_t ifindex, const struct weir_device *device,
			       bool is_for_tc, struct weir_findings *findings);

/* On an upper interface a program usually runs in skb mode, although the ports below may support native mode. */
void weir_examine_stack(const char *interface, uint32_t ifindex, const struct weir_device *device,
			struct weir_findings *findings);
void weir_examine_queues(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* In native mode the program runs on the CPU that takes the interrupt. Only in skb mode may RPS move the packet first.
 */
void weir_examine_interrupts(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* Packets that arrive while the CPU is busy wait in the ring; packets that do not fit are dropped there, before any
 * limit.
 */
void weir_examine_rings(const char *interface, const struct weir_device *device, struct weir_findings *findings);

/* ---- examine_answers.c ---- */

/* Both: `answers` as from weir_answers_of(); 0 finds nothing. */

/* Cookies are a listening socket's: the kernel must take them back, and the connection must reach that socket. The same
 * for all interfaces of the present network namespace.
 */
void weir_examine_cookies(uint32_t answers, struct weir_findings *findings);

/* Can they leave by this interface? is_native: the mode is, or would be. */
void weir_examine_answers(const char *interface, uint32_t ifindex, const struct weir_device *device, uint32_t answers,
			  bool is_native, struct weir_findings *findings);

/* ---- examine_tc.c ---- */

/* The programs at tc ingress and egress, weir's and others; and weir's that are gone. */
void weir_examine_tc(const char *interface, uint32_t ifindex, struct weir_findings *findings);

#endif
