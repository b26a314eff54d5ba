/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wire: a veth pair in our own network namespace, and a generator at one end of it. Packets are live frames of
 * BPF_PROG_TEST_RUN: a program gives each of them its source, port and checksum and redirects it into "out"; it
 * arrives at "in" on the same CPU, in the same call, batch by batch, so that what one core does per packet is all there
 * is. What stands at "in" is the caller's: an XDP program, or what nft and iptables put behind.
 */
#ifndef WEIR_BENCH_WIRE_H
#define WEIR_BENCH_WIRE_H

#include "rig.h"
#include "wire_log.h"

/* The address of "in". */
#define WIRE_ADDRESS "198.51.100.1"

struct bench_wire;

struct wire {
	struct rig *rig;
	struct bench_wire *bpf;
	struct wire_schedule *schedules; /* one a CPU */
	struct wire_setting *setting;
	const struct wire_record *records; /* WIRE_RECORDS_MAX a CPU */
	uint32_t in_ifindex;
	int xdp_link, send_link;
	int sockets[WIRE_PORTS];
	struct rig_frame frame; /* of what is sent: UDP, unless wire_use_tcp() was called */
};

/* Makes the pair, or takes the one that an earlier part of this run made. */
void wire_open(struct wire *wire, struct rig *rig);
void wire_close(struct wire *wire);

/* Put an XDP program at "in" instead of what was there; -1: none. */
void wire_attach(struct wire *wire, int program_fd);

/* Send TCP segments from now on, with these flags, to this address (network byte order). */
void wire_use_tcp(struct wire *wire, uint8_t flags, uint32_t destination);

/* Run a command of the shell in our namespace; ends the process when it fails. */
void wire_command(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same of one that may fail, and then says nothing. */
bool wire_try(const char *command);

/* Generic receive offload of a device. */
void wire_set_gro(const char *device, bool is_on);

/* Start the schedule of a CPU (0 or 1) afresh with these items. */
void wire_schedule(struct wire *wire, int cpu, const struct wire_item *items, size_t count);

/* Send so many packets of the schedule of the CPU that we are pinned to. Returns ns a packet, all that the CPU did. */
double wire_send(struct wire *wire, uint32_t packets);

/* Send packets of this item on the first CPU. Returns ns a packet that arrived, or NAN if too many got lost: what is
 * lost costs less, so such a figure would flatter.
 */
double wire_measure(struct wire *wire, const struct wire_item *item, uint32_t packets);

/* Packets that have arrived at "in" since the pair was made. */
uint64_t wire_arrived(void);

/* Open sockets at ports 1 to WIRE_PORTS: what reaches them is noted, and goes nowhere. */
void wire_listen(struct wire *wire);

/* Note what is sent from this time on and passes, of each group its first flows; everything noted before is forgotten.
 * 0: note no more.
 */
void wire_note_from(struct wire *wire, uint64_t from_ns, const uint32_t noted_flows[WIRE_GROUPS]);

/* How many were noted by a CPU: the first so many of its records. */
uint64_t wire_noted(const struct wire *wire, int cpu);

#endif
