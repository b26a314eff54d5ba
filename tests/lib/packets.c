// SPDX-License-Identifier: GPL-2.0-only
#include "packets.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

static void put_address(struct packet_spec *spec, uint8_t *to, const char *address)
{
	bool is_ipv6 = strchr(address, ':');
	int parsed = inet_pton(is_ipv6 ? AF_INET6 : AF_INET, address, to);

	assert(parsed == 1);
	spec->family = is_ipv6 ? 6 : 4;
}

void packet_source(struct packet_spec *spec, const char *address)
{
	put_address(spec, spec->source, address);
}

void packet_destination(struct packet_spec *spec, const char *address)
{
	put_address(spec, spec->destination, address);
}

struct packet_spec packet_udp(const char *source, uint16_t source_port, const char *destination,
			      uint16_t destination_port, uint32_t payload_bytes)
{
	struct packet_spec spec = {
		.protocol = 17,
		.source_port = source_port,
		.destination_port = destination_port,
		.payload_bytes = payload_bytes,
	};

	packet_source(&spec, source);
	packet_destination(&spec, destination);
	return spec;
}

/* Where the next byte goes; a frame that outgrows its buffer is a mistake of the test. */
struct writer {
	uint8_t *frame;
	size_t bytes;
};

static uint8_t *take(struct writer *writer, size_t bytes)
{
	uint8_t *at = writer->frame + writer->bytes;

	assert(writer->bytes + bytes <= PACKET_BYTES_MAX);
	memset(at, 0, bytes);
	writer->bytes += bytes;
	return at;
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void put_ethernet(const struct packet_spec *spec, struct writer *writer)
{
	uint8_t *ethernet = take(writer, 12), *type;

	memcpy(ethernet, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02", 12);
	for (unsigned int i = 0; i < spec->tag_count; i++) {
		type = take(writer, 4);
		put16(type, spec->tag[i].ethertype);
		put16(type + 2, spec->tag[i].id);
	}
	type = take(writer, 2);
	if (spec->ethertype)
		put16(type, spec->ethertype);
	else
		put16(type, spec->family == 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t sum_of(const uint8_t *bytes, size_t count)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	return sum;
}

/* RFC 9293, 3.1 */
static void put_tcp_checksum(const struct packet_spec *spec, uint8_t *tcp, size_t bytes)
{
	const size_t address_bytes = spec->family == 4 ? 4 : 16;
	uint32_t pseudo = sum_of(spec->source, address_bytes) + sum_of(spec->destination, address_bytes) + 6 + bytes;

	if (spec->checksum == PACKET_CHECKSUM_UNFINISHED)
		put16(tcp + 16, fold(pseudo));
	else
		put16(tcp + 16, ~fold(pseudo + sum_of(tcp, bytes)) ^ (spec->checksum == PACKET_CHECKSUM_WRONG));
}

static void put_transport(const struct packet_spec *spec, struct writer *writer)
{
	size_t begin = writer->bytes;
	uint8_t *at;

	switch (spec->protocol) {
	case 6:
		at = take(writer, 20 + spec->option_words % 11 * 4);
		put16(at, spec->source_port);
		put16(at + 2, spec->destination_port);
		at[12] = (5 + spec->option_words % 11) << 4;
		at[13] = spec->tcp_flags;
		break;
	case 17:
		at = take(writer, 8);
		put16(at, spec->source_port);
		put16(at + 2, spec->destination_port);
		put16(at + 4, 8 + spec->payload_bytes);
		break;
	case 132:
		at = take(writer, 12);
		put16(at, spec->source_port);
		put16(at + 2, spec->destination_port);
		break;
	case 1:
	case 58:
		at = take(writer, 8);
		at[0] = spec->icmp_type;
		break;
	}
	take(writer, spec->payload_bytes);
	if (spec->protocol == 6)
		put_tcp_checksum(spec, writer->frame + begin, writer->bytes - begin);
}

static void put_ipv4(const struct packet_spec *spec, struct writer *writer)
{
	size_t header_bytes = 20 + spec->option_words % 11 * 4, begin = writer->bytes;
	uint8_t *ip = take(writer, header_bytes);

	ip[0] = 0x40 | header_bytes / 4;
	ip[1] = spec->traffic_class;
	put16(ip + 6, (spec->fragment_units & 0x1fff) | (spec->more_fragments ? 0x2000 : 0));
	ip[8] = spec->ttl ?: 64;
	ip[9] = spec->protocol;
	memcpy(ip + 12, spec->source, 4);
	memcpy(ip + 16, spec->destination, 4);
	memset(ip + 20, 1, header_bytes - 20); /* no-operation options */
	put_transport(spec, writer);
	put16(ip + 2, writer->bytes - begin);
	put16(ip + 10, ~fold(sum_of(ip, header_bytes)));
}

static size_t extension_bytes(const struct packet_extension *extension)
{
	switch (extension->protocol) {
	case 44:
		return 8;
	case 51:
		return (extension->units + 2) * 4;
	}
	return (extension->units + 1) * 8;
}

static void put_extensions(const struct packet_spec *spec, struct writer *writer, uint8_t *next_header)
{
	for (unsigned int i = 0; i < spec->extension_count; i++) {
		const struct packet_extension *extension = &spec->extension[i];
		uint8_t *at = take(writer, extension_bytes(extension));

		*next_header = extension->protocol;
		next_header = at;
		at[1] = extension->units;
		if (extension->protocol == 44)
			put16(at + 2, (spec->fragment_units & 0x1fff) << 3 | spec->more_fragments);
	}
	*next_header = spec->protocol;
}

static void put_ipv6(const struct packet_spec *spec, struct writer *writer)
{
	uint8_t *ip = take(writer, 40);
	size_t begin = writer->bytes;

	ip[0] = 0x60 | spec->traffic_class >> 4;
	ip[1] = spec->traffic_class << 4;
	ip[7] = spec->ttl ?: 64;
	memcpy(ip + 8, spec->source, 16);
	memcpy(ip + 24, spec->destination, 16);
	put_extensions(spec, writer, &ip[6]);
	put_transport(spec, writer);
	put16(ip + 4, writer->bytes - begin);
}

size_t packet_build(const struct packet_spec *spec, uint8_t *frame)
{
	struct writer writer = {frame, 0};

	put_ethernet(spec, &writer);
	if (spec->family == 4)
		put_ipv4(spec, &writer);
	else
		put_ipv6(spec, &writer);
	take(&writer, spec->padding_bytes);
	for (unsigned int i = 0; i < spec->damage_count; i++)
		if (spec->damage[i].offset < writer.bytes)
			frame[spec->damage[i].offset] = spec->damage[i].value;
	return spec->cut_bytes && spec->cut_bytes < writer.bytes ? spec->cut_bytes : writer.bytes;
}
