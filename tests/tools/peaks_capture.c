// SPDX-License-Identifier: GPL-2.0-only
/*
 * peaks_capture CAPTURE.pcap (PROTOCOL[/BYTES] PORT FIRST COUNT BASE STEP BURSTS SPREAD_MS)...
 *
 * A capture of clients whose peaks are known, for `weir suggest`. Each part has COUNT sources, number FIRST of
 * 10.0.0.0/8 and those behind it (udp6: one in each /64). The i-th, from 1, sends BURSTS bursts of BASE + i * STEP
 * packets to PORT, one every two seconds, each spread over SPREAD_MS. All parts begin at the same time. PROTOCOL is
 * udp, udp6, tcp, icmp or answer (UDP from PORT to a port of the client's own); BYTES are those of the payload.
 * Frames are captured up to 128 bytes.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "../lib/packets.h"
#include "base/util.h"
#include "tool.h"

#define BEGIN_NS 1000000000000ull
#define PCAP_MAGIC_NS 0xa1b23c4du /* pcap with nanoseconds */
#define LINKTYPE_ETHERNET 1
#define PART_ARGUMENTS 8

struct event {
	uint64_t time_ns;
	uint32_t source;
	uint16_t part;
};

static struct event *events;
static size_t event_count;

static void add_event(uint64_t time_ns, uint32_t source, uint16_t part)
{
	struct event *event = weir_array_add((void **)&events, event_count, sizeof(*events));

	if (!event)
		abort();
	*event = (struct event){time_ns, source, part};
	event_count++;
}

static void add_part(char **arguments, uint16_t part)
{
	const uint64_t first = number("FIRST", arguments[2]), count = number("COUNT", arguments[3]);
	const uint64_t base = number("BASE", arguments[4]), step = number("STEP", arguments[5]);
	const uint64_t bursts = number("BURSTS", arguments[6]), spread_ms = number("SPREAD_MS", arguments[7]);

	for (uint64_t i = 1; i <= count; i++)
		for (uint64_t burst = 0; burst < bursts; burst++)
			for (uint64_t packet = 0; packet < base + i * step; packet++)
				add_event(BEGIN_NS + burst * 2000000000 +
						  packet * spread_ms * 1000000 / (base + i * step),
					  first + i - 1, part);
}

static int compare(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->source != b->source ? (a->source < b->source ? -1 : 1) : (a->part > b->part) - (a->part < b->part);
}

static uint32_t build(char **arguments, uint32_t source, uint8_t frame[PACKET_BYTES_MAX])
{
	const bool is_ipv6 = !strncmp(arguments[0], "udp6", 4);
	const uint16_t port = number("PORT", arguments[1]);
	struct packet_spec spec = packet_udp(is_ipv6 ? "2001:db8::1" : "10.0.0.0", 40000,
					     is_ipv6 ? "2001:db8:f::53" : "192.0.2.53", port, 0);
	const char *bytes = strchr(arguments[0], '/');

	if (is_ipv6)
		memcpy(&spec.source[4], (const uint8_t[]){source >> 24, source >> 16, source >> 8, source}, 4);
	else
		memcpy(&spec.source[1], (const uint8_t[]){source >> 16, source >> 8, source}, 3);
	spec.payload_bytes = bytes ? number("BYTES", bytes + 1) : 0;
	if (!strncmp(arguments[0], "tcp", 3)) {
		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = 0x10;
	} else if (!strncmp(arguments[0], "icmp", 4)) {
		spec.protocol = IPPROTO_ICMP;
		spec.icmp_type = 8;
	} else if (!strncmp(arguments[0], "answer", 6)) {
		spec.source_port = port;
		spec.destination_port = 1024 + source % 60000;
	} else if (strncmp(arguments[0], "udp", 3) != 0) {
		wrong("PROTOCOL", arguments[0]);
	}
	return packet_build(&spec, frame);
}

static void write_words(FILE *stream, const uint32_t *words, size_t count)
{
	fwrite(words, sizeof(*words), count, stream);
}

int main(int argc, char **argv)
{
	const uint32_t header[] = {PCAP_MAGIC_NS, 2 | 4 << 16, 0, 0, PACKET_BYTES_MAX, LINKTYPE_ETHERNET};
	static uint8_t frame[PACKET_BYTES_MAX];
	FILE *stream;

	if (argc < 2 + PART_ARGUMENTS || (argc - 2) % PART_ARGUMENTS) {
		fputs("usage: peaks_capture CAPTURE.pcap (PROTOCOL[/BYTES] PORT FIRST COUNT BASE STEP BURSTS "
		      "SPREAD_MS)...\n",
		      stderr);
		return 2;
	}
	for (int i = 2; i < argc; i += PART_ARGUMENTS)
		add_part(argv + i, (i - 2) / PART_ARGUMENTS);
	qsort(events, event_count, sizeof(*events), compare);
	stream = fopen(argv[1], "w");
	if (!stream)
		wrong("CAPTURE", argv[1]);
	write_words(stream, header, ARRAY_SIZE(header));
	for (size_t i = 0; i < event_count; i++) {
		const uint32_t bytes = build(argv + 2 + events[i].part * PART_ARGUMENTS, events[i].source, frame);
		const uint32_t captured = bytes < 128 ? bytes : 128;

		write_words(stream,
			    (const uint32_t[]){events[i].time_ns / 1000000000, events[i].time_ns % 1000000000, captured,
					       bytes},
			    4);
		fwrite(frame, captured, 1, stream);
	}
	free(events);
	return fclose(stream) ? 1 : 0;
}
