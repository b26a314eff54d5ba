// SPDX-License-Identifier: GPL-2.0-only
/*
 * steady_capture CAPTURE.pcap (KIND PORT RATE SECONDS)...
 *
 * A capture of one source's packets to PORT, RATE of them in each of SECONDS seconds, evenly spaced; then others. KIND
 * is "syn" (a TCP connection begins, the same each time), "tcp" (one continues), "open" (each packet begins another),
 * "connect" (every second packet begins another, which the next continues), "udp", "udp/BYTES" (of payload),
 * "answer" (UDP from PORT), or "flood": the same as "syn", but each packet from a source of its own, the same ones in
 * each such part with another port. A rate of 0 is silence. For pictures of what a rule does over time, for what the
 * sample rules promise, and for tables that fill.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/packets.h"
#include "base/util.h"

#define NSEC_PER_SEC 1000000000ull
#define PCAP_MAGIC_NS 0xa1b23c4du /* pcap with nanoseconds */
#define LINKTYPE_ETHERNET 1

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || end == text || value > 1000000) {
		fprintf(stderr, "steady_capture: '%s' is not a number up to a million\n", text);
		exit(2);
	}
	return value;
}

static void write_word(FILE *stream, uint32_t word)
{
	fwrite(&word, sizeof(word), 1, stream);
}

static void write_header(FILE *stream)
{
	write_word(stream, PCAP_MAGIC_NS);
	write_word(stream, 2 | 4 << 16); /* version 2.4 */
	write_word(stream, 0);
	write_word(stream, 0);
	write_word(stream, PACKET_BYTES_MAX);
	write_word(stream, LINKTYPE_ETHERNET);
}

static void write_frame(FILE *stream, uint64_t time_ns, const uint8_t *frame, uint32_t frame_bytes)
{
	write_word(stream, time_ns / NSEC_PER_SEC);
	write_word(stream, time_ns % NSEC_PER_SEC);
	write_word(stream, frame_bytes);
	write_word(stream, frame_bytes);
	fwrite(frame, frame_bytes, 1, stream);
}

/* Frame number `count` of this kind, in part number `part`. */
static uint32_t build(const char *kind, uint32_t port, uint32_t part, uint32_t count, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 40000, "192.0.2.80", port, 0);

	if (strcmp(kind, "flood") == 0) {
		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = 0x02;
		spec.source_port = 40000 + part;
		memcpy(spec.source, (const uint8_t[]){10, count >> 16, count >> 8, count}, 4);
	} else if (strcmp(kind, "answer") == 0) {
		spec.source_port = port;
		spec.destination_port = 40000;
	} else if (strcmp(kind, "open") == 0) {
		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = 0x02;
		spec.source_port = 1024 + 10000 * part + count;
	} else if (strcmp(kind, "connect") == 0) {
		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = count % 2 ? 0x10 : 0x02;
		spec.source_port = 1024 + 10000 * part + count / 2;
	} else if (strncmp(kind, "udp/", 4) == 0) {
		spec.payload_bytes = number(kind + 4);
	} else if (strcmp(kind, "syn") == 0 || strcmp(kind, "tcp") == 0) {
		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = strcmp(kind, "syn") ? 0x10 : 0x02;
	} else if (strcmp(kind, "udp")) {
		fprintf(stderr, "steady_capture: '%s' is neither syn, tcp, open, connect, udp, udp/BYTES nor flood\n",
			kind);
		exit(2);
	}
	return packet_build(&spec, frame);
}

int main(int argc, char **argv)
{
	uint64_t second_ns = 1000 * NSEC_PER_SEC;
	uint8_t frame[PACKET_BYTES_MAX];
	FILE *stream;

	if (argc < 6 || (argc - 2) % 4) {
		fputs("usage: steady_capture CAPTURE.pcap (KIND PORT RATE SECONDS)...\n", stderr);
		return 2;
	}
	stream = fopen(argv[1], "w");
	if (!stream) {
		fprintf(stderr, "steady_capture: cannot write '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	write_header(stream);
	for (char **part = argv + 2; *part; part += 4) {
		uint32_t port = number(part[1]), rate = number(part[2]), seconds = number(part[3]), count = 0;

		for (uint32_t second = 0; second < seconds; second++, second_ns += NSEC_PER_SEC) {
			for (uint32_t i = 0; i < rate; i++) {
				uint32_t bytes = build(part[0], port, (part - argv) / 4, count++, frame);

				write_frame(stream, second_ns + i * NSEC_PER_SEC / rate, frame, bytes);
			}
		}
	}
	if (fclose(stream)) {
		fprintf(stderr, "steady_capture: cannot write '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	return 0;
}
