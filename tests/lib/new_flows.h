/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tests ask of every kind of limit whose flows live in a table that all CPUs share: flows that two CPUs meet at
 * once for the first time, and a flood of new ones that pushes others out. Asserts (cmocka) that each step works.
 */
#ifndef WEIR_TEST_NEW_FLOWS_H
#define WEIR_TEST_NEW_FLOWS_H

#include "packets.h"
#include "rig.h"

#define NEW_FLOWS_PORT 53
#define NEW_FLOWS_FRAME_BYTES 60

/* UDP to that port, from the flow (source address) of this number. */
void new_flows_frame(uint32_t flow, uint8_t frame[PACKET_BYTES_MAX]);

/*
 * Both CPUs send the first packet of each of thousands of flows at the same time. Returns of how many flows not just
 * one of the two passed: none, under a limit of one packet.
 */
uint32_t new_flows_race(const struct rig *rig, const int cpu[2]);

/*
 * Three seconds from RIG_START_NS on, a heavy flow sends a packet a millisecond, and behind each come forty flows that
 * have never been seen. Expects that more flows are evicted than the heavy one sends packets.
 */
#define NEW_FLOWS_TABLE 512 /* rows of a table that is too small for them */
struct new_flows_passed {
	uint64_t heavy, new;
	uint64_t new_sent;
};
struct new_flows_passed new_flows_flood(struct rig *rig);

#endif
