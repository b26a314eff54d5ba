/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * True packets for tests: a specification in the words of the protocols, and the frame built from it
 * with every length field right, so that a test then breaks exactly the one it is about. Header
 * checksums of IPv4 and those of TCP are right; other transports have none, nothing under test reads them.
 */
#ifndef WEIR_TEST_PACKETS_H
#define WEIR_TEST_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_TAGS_MAX 3
#define PACKET_EXTENSIONS_MAX 10
#define PACKET_DAMAGES_MAX 4
#define PACKET_BYTES_MAX 66000 /* more than the longest IP packet in a frame with two tags */

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_QINQ 0x88a8
#define ETHERTYPE_IPV6 0x86dd

struct packet_tag {
	uint16_t ethertype;
	uint16_t id; /* priority bits included, if a test wants them */
};

/* One IPv6 extension header: its protocol number, and bytes beyond the shortest form. */
struct packet_extension {
	uint8_t protocol; /* 0, 43, 44, 51, 60, or anything of the same shape */
	uint8_t units;	  /* header length field: 8 bytes each, of AH 4 bytes each; ignored for 44 */
};

/* A byte of the finished frame overwritten. */
struct packet_damage {
	uint32_t offset;
	uint8_t value;
};

/* TCP's, of what the frame has of the segment. */
enum packet_checksum {
	PACKET_CHECKSUM_RIGHT,
	PACKET_CHECKSUM_WRONG,
	PACKET_CHECKSUM_UNFINISHED, /* the pseudo-header's sum, as a local sender leaves it to its device */
};

struct packet_spec {
	uint64_t time_ns;
	bool is_out;	   /* about to be sent; else received */
	uint32_t segments; /* packets that it stands for, as a super-frame; 0: one */
	struct packet_tag tag[PACKET_TAGS_MAX];
	uint8_t tag_count;
	uint16_t ethertype;		     /* 0: by family */
	uint8_t family;			     /* 4 or 6 */
	uint8_t source[16], destination[16]; /* IPv4 in the first four */
	uint8_t traffic_class;		     /* IPv4's TOS byte: DSCP and two bits of ECN */
	uint8_t ttl;			     /* or hop limit; 0: 64 */
	uint8_t protocol;
	uint16_t source_port, destination_port;
	uint8_t tcp_flags;
	enum packet_checksum checksum;
	uint8_t icmp_type;
	uint8_t option_words; /* of the IPv4 header: ihl - 5; and of TCP: data offset - 5 */
	struct packet_extension extension[PACKET_EXTENSIONS_MAX];
	uint8_t extension_count;
	/* IPv4's fragment field; in IPv6 that of each extension header 44 */
	uint16_t fragment_units; /* offset in 8 bytes */
	bool more_fragments;
	uint32_t payload_bytes; /* after the transport header */
	uint32_t padding_bytes; /* after the IP packet, as Ethernet pads short frames */
	/* damage, done last */
	struct packet_damage damage[PACKET_DAMAGES_MAX];
	uint8_t damage_count;
	uint32_t cut_bytes; /* the frame ends after so many; 0: whole */
};

/* Addresses as numbers: "192.0.2.1" or "2001:db8::1". Sets family and the address; asserts that it parses. */
void packet_source(struct packet_spec *spec, const char *address);
void packet_destination(struct packet_spec *spec, const char *address);

/* UDP from one host and port to another with payload_bytes of payload: the packet most tests begin with. */
struct packet_spec packet_udp(const char *source, uint16_t source_port, const char *destination,
			      uint16_t destination_port, uint32_t payload_bytes);

/* Build the frame into `frame` (PACKET_BYTES_MAX). Returns its bytes. */
size_t packet_build(const struct packet_spec *spec, uint8_t *frame);

#endif
