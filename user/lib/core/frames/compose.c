// SPDX-License-Identifier: GPL-2.0-only
#include "frames/compose.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VLAN_TAG_BYTES 4
#define OTHER_HEADER_BYTES 8 /* for ICMP; for others two ports, if they have them, and what follows */

/* The part of a transport header that the program requires. */
static uint32_t transport_bytes(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return sizeof(struct tcphdr);
	case IPPROTO_UDP:
		return sizeof(struct udphdr);
	default:
		return OTHER_HEADER_BYTES;
	}
}

static uint32_t ip_offset(const struct weir_packet_words *words)
{
	return ETH_HLEN + (words->has_vlan ? VLAN_TAG_BYTES : 0);
}

static uint32_t ip_bytes(const struct weir_packet_words *words)
{
	return words->family == 6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

uint32_t weir_shortest_frame(const struct weir_packet_words *words)
{
	const uint32_t headers = ip_bytes(words) + transport_bytes(words->protocol);

	return ip_offset(words) + (words->ip_bytes > headers ? words->ip_bytes : headers);
}

static void put_be16(uint8_t *at, uint16_t number)
{
	at[0] = number >> 8;
	at[1] = number & 0xff;
}

static void write_ethernet(const struct weir_packet_words *words, uint8_t *frame)
{
	uint8_t *type = frame + offsetof(struct ethhdr, h_proto);

	if (words->has_vlan) {
		put_be16(type, ETH_P_8021Q);
		put_be16(type + 2, words->vlan);
		type += VLAN_TAG_BYTES;
	}
	put_be16(type, words->family == 6 ? ETH_P_IPV6 : ETH_P_IP);
}

static void write_ipv4(const struct weir_packet_words *words, uint8_t *at, uint32_t bytes)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tos = words->dscp << 2,
		.tot_len = htons(bytes),
		.ttl = words->ttl,
		.protocol = words->protocol,
	};

	memcpy(&ip.saddr, words->source, sizeof(ip.saddr));
	memcpy(&ip.daddr, words->destination, sizeof(ip.daddr));
	memcpy(at, &ip, sizeof(ip));
}

static void write_ipv6(const struct weir_packet_words *words, uint8_t *at, uint32_t bytes)
{
	struct ipv6hdr ip = {
		.version = 6,
		.priority = words->dscp >> 2,
		.payload_len = htons(bytes - sizeof(ip)),
		.nexthdr = words->protocol,
		.hop_limit = words->ttl,
	};

	ip.flow_lbl[0] = words->dscp << 6;
	memcpy(&ip.saddr, words->source, sizeof(ip.saddr));
	memcpy(&ip.daddr, words->destination, sizeof(ip.daddr));
	memcpy(at, &ip, sizeof(ip));
}

/* RFC 9293, 3.1; the data are zeros. */
static uint16_t tcp_checksum(const struct weir_packet_words *words, const uint8_t *tcp, uint32_t bytes)
{
	const uint32_t address_bytes = words->family == 6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
	uint32_t sum = IPPROTO_TCP + bytes;

	for (uint32_t i = 0; i < address_bytes; i += 2)
		sum += (words->source[i] << 8 | words->source[i + 1]) +
		       (words->destination[i] << 8 | words->destination[i + 1]);
	for (uint32_t i = 0; i < sizeof(struct tcphdr); i += 2)
		sum += tcp[i] << 8 | tcp[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void write_transport(const struct weir_packet_words *words, uint8_t *at, uint32_t bytes)
{
	const bool is_icmp = words->protocol == IPPROTO_ICMP || words->protocol == IPPROTO_ICMPV6;

	if (is_icmp) {
		at[0] = words->icmp_type;
		return;
	}
	put_be16(at, words->source_port);
	put_be16(at + 2, words->destination_port);
	if (words->protocol == IPPROTO_UDP)
		put_be16(at + 4, bytes);
	if (words->protocol == IPPROTO_TCP) {
		at[12] = sizeof(struct tcphdr) / 4 << 4;
		at[13] = words->tcp_flags;
		/* a FIN or RST with a wrong one closes no connection */
		put_be16(at + 16, tcp_checksum(words, at, bytes));
	}
}

uint32_t weir_compose_frame(const struct weir_packet_words *words, uint8_t *frame)
{
	uint32_t shortest = weir_shortest_frame(words), bytes = words->frame_bytes;
	uint32_t ip = ip_offset(words), transport = ip + ip_bytes(words), end;

	if (!bytes)
		bytes = shortest < ETH_ZLEN ? ETH_ZLEN : shortest;
	if (bytes < shortest || bytes > WEIR_COMPOSED_BYTES_MAX)
		return 0;
	end = words->ip_bytes ? ip + words->ip_bytes : bytes;
	if (end < shortest)
		return 0;
	memset(frame, 0, bytes);
	write_ethernet(words, frame);
	if (words->family == 6)
		write_ipv6(words, frame + ip, end - ip);
	else
		write_ipv4(words, frame + ip, end - ip);
	write_transport(words, frame + transport, end - transport);
	return bytes;
}

/* ---- SSH sessions ---- */

#define TCP_PSH_ACK 0x18
/* A keystroke: padded, encrypted, with its authentication code. */
#define KEY_PAYLOAD_BYTES 64
#define HOP_LIMIT 64 /* Linux's own; how many routers have taken one from it is not known */

#define ADDRESS_CHARACTERS 64 /* including a zone */

/* Returns the family, or 0. A zone ("%eth0") is not part of the address, and IPv4 may be written as IPv6. */
static uint8_t parse_address(char *text, uint8_t ret_address[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char *zone = strchr(text, '%');

	if (zone)
		*zone = '\0';
	memset(ret_address, 0, 16);
	if (inet_pton(AF_INET, text, ret_address) == 1)
		return 4;
	if (inet_pton(AF_INET6, text, ret_address) != 1)
		return 0;
	if (memcmp(ret_address, mapped, sizeof(mapped)))
		return 6;
	memmove(ret_address, &ret_address[sizeof(mapped)], 4);
	memset(&ret_address[4], 0, 12);
	return 4;
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text || *end || number > UINT16_MAX)
		return false;
	*ret_port = number;
	return true;
}

bool weir_ssh_session_parse(const char *text, struct weir_packet_words *ret_words)
{
	char client[ADDRESS_CHARACTERS], client_port[8], server[ADDRESS_CHARACTERS], server_port[8], rest[2];
	struct weir_packet_words words = {.protocol = IPPROTO_TCP, .tcp_flags = TCP_PSH_ACK, .ttl = HOP_LIMIT};
	uint8_t server_family;

	if (sscanf(text, "%63s %7s %63s %7s %1s", client, client_port, server, server_port, rest) != 4)
		return false;
	words.family = parse_address(client, words.source);
	server_family = parse_address(server, words.destination);
	if (!words.family || words.family != server_family)
		return false;
	if (!parse_port(client_port, &words.source_port) || !parse_port(server_port, &words.destination_port))
		return false;
	words.frame_bytes = weir_shortest_frame(&words) + KEY_PAYLOAD_BYTES;
	*ret_words = words;
	return true;
}

const char *weir_environment_find(const char *environment, size_t bytes, const char *name)
{
	const size_t length = strlen(name);
	const char *at = environment, *end = environment + bytes;

	while (at < end) {
		const size_t entry = strnlen(at, end - at);

		if (at + entry == end)
			return NULL; /* cut short */
		if (entry > length && at[length] == '=' && !strncmp(at, name, length))
			return at + length + 1;
		at += entry + 1;
	}
	return NULL;
}
