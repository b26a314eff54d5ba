/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets of one flow from several CPUs, by test runs of the rig's program, which is to be attached.
 */
#ifndef WEIR_TEST_STORM_H
#define WEIR_TEST_STORM_H

#include "packets.h"
#include "rig.h"

#define STORM_CPUS_MAX 64

/* All CPUs at once, `packets` in all; waits until they have. Asserts (cmocka) that each can be run on. */
void storm_all(const struct rig *rig, const struct packet_spec *spec, uint64_t packets);

/* This many from one CPU. */
void storm_one(const struct rig *rig, const struct packet_spec *spec, int cpu, uint64_t packets);

/* So many from each CPU alone, twice: first it spends what it holds on lease, while others hold theirs, then nobody
 * holds anything.
 */
void storm_mop_up(const struct rig *rig, const struct packet_spec *spec, uint64_t packets);

#endif
