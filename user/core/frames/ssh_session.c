// SPDX-License-Identifier: GPL-2.0-only
#include "frames/ssh_session.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TCP_PSH_ACK 0x18
/* A keystroke: padded, encrypted, with its authentication code. */
#define KEY_PAYLOAD_BYTES 64

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
	struct weir_packet_words words = {.protocol = IPPROTO_TCP, .tcp_flags = TCP_PSH_ACK};
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
