/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the reference model sees of a frame, and which resources and flows it belongs to: docs/matching.md,
 * read slowly. Shares nothing with bpf/packet/parse.h and bpf/packet/match.h, which it is there to evaluate.
 */
#ifndef WEIR_TEST_MODEL_PACKET_H
#define WEIR_TEST_MODEL_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/ruleset.h"
#include "weir_abi.h"

enum model_class { CLASS_IP, CLASS_MALFORMED, CLASS_UNSUPPORTED, CLASS_NON_IP };

struct model_packet {
	enum model_class class;
	uint64_t frame_bytes;
	uint64_t segments; /* packets that it stands for */
	bool is_out;	   /* about to be sent; else received */
	uint32_t ifindex;
	bool has_vlan;
	unsigned int vlan;
	unsigned int ethertype; /* the last one, behind all tags */
	int family;		/* 4 or 6 */
	uint8_t dscp;
	uint8_t ttl;	 /* IPv4's time to live, IPv6's hop limit */
	size_t ip_bytes; /* of the IP packet, without padding */
	uint8_t source[16], destination[16];
	uint8_t protocol;
	enum weir_fragment fragment;
	bool has_ports;
	unsigned int source_port, destination_port;
	bool has_tcp_flags;
	uint8_t tcp_flags;
	bool closes_nothing; /* a FIN or RST that its server will not read, because its checksum is wrong */
	bool has_icmp_type;
	uint8_t icmp_type;
};

/* Compared byte by byte, so every one is set. */
struct model_key {
	uint32_t rule;
	struct weir_flow_key flow; /* to be compared with what the program notes; how it is made is the model's own */
};

/* Interface number for a name of match.interface; 0: no such interface, matches nothing. */
typedef uint32_t (*model_ifindex)(const char *name);

/* Read a frame's headers into *packet (zero but for frame_bytes, segments, is_out and ifindex), and say what it is. */
enum model_class model_parse(const uint8_t *frame, size_t frame_bytes, struct model_packet *packet);

/* Does every condition hold? For packets of CLASS_IP. */
bool model_matches(const struct weir_match *match, const struct model_packet *packet, model_ifindex ifindex);

bool model_in_prefix(const struct weir_prefix *prefix, int family, const uint8_t *address);

/* Its remote end: who sends what comes in, and receives what goes out. */
const uint8_t *model_remote_of(const struct model_packet *packet);
const uint8_t *model_local_of(const struct model_packet *packet);

/* The packet's flow of a rule, by the key of a resource. */
struct model_key model_key_of(const struct weir_flow *flow, uint32_t rule, const struct model_packet *packet);

#endif
