// SPDX-License-Identifier: GPL-2.0-only
/*
 * peaks_capture CAPTURE.pcap (PROTOCOL[/BYTES] PORT FIRST COUNT BASE STEP BURSTS SPREAD_MS)...
 *
 * A capture of clients whose peaks are known, for `weir suggest`. Each part has COUNT sources, number FIRST of
 * 10.0.0.0/8 and those behind it (udp6: one in each /64). The i-th, from 1, sends BURSTS bursts of BASE + i * STEP
 * packets to PORT, one every two seconds, each spread over SPREAD_MS. All parts begin at the same time. PROTOCOL is
 * udp, udp6, tcp, icmp or answer (UDP from PORT to a port of the client's own); BYTES are those of the payload. Or each
 * packet is a connection: of open, its SYN and a packet that talks; of closed, the client's FIN as well; answertcp is
 * an answer of TCP. With sent- in front (sent-udp), this host sends the packets, and the sources are the receivers:
 * then the capture is one of 'any' (LINUX_SLL), whose headers have the direction. A CAPTURE.pcapng is of Ethernet, and
 * has it in the flags of its packets. Frames are captured up to 128 bytes.
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
#define LINKTYPE_LINUX_SLL 113
#define SENT "sent-"
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

/* The packet `connection` of the capture; `flags` 0: it is a packet of no connection. */
static uint32_t build(char **arguments, uint32_t source, uint32_t connection, uint8_t flags,
		      uint8_t frame[PACKET_BYTES_MAX])
{
	const bool is_sent = !strncmp(arguments[0], SENT, strlen(SENT));
	const char *protocol = arguments[0] + (is_sent ? strlen(SENT) : 0);
	const bool is_ipv6 = !strncmp(protocol, "udp6", 4);
	const uint16_t port = number("PORT", arguments[1]);
	struct packet_spec spec = packet_udp(is_ipv6 ? "2001:db8::1" : "10.0.0.0", 40000,
					     is_ipv6 ? "2001:db8:f::53" : "192.0.2.53", port, 0);
	const char *bytes = strchr(protocol, '/');

	if (is_ipv6)
		memcpy(&spec.source[4], (const uint8_t[]){source >> 24, source >> 16, source >> 8, source}, 4);
	else
		memcpy(&spec.source[1], (const uint8_t[]){source >> 16, source >> 8, source}, 3);
	spec.payload_bytes = bytes ? number("BYTES", bytes + 1) : 0;
	if (flags) {
		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = flags;
		spec.source_port = 1024 + connection % 60000;
	} else if (!strncmp(protocol, "tcp", 3)) {
		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = 0x10;
	} else if (!strncmp(protocol, "icmp", 4)) {
		spec.protocol = IPPROTO_ICMP;
		spec.icmp_type = 8;
	} else if (!strncmp(protocol, "answer", 6)) {
		if (!strncmp(protocol, "answertcp", 9)) {
			spec.protocol = IPPROTO_TCP;
			spec.tcp_flags = 0x10;
		}
		spec.source_port = port;
		spec.destination_port = 1024 + source % 60000;
	} else if (strncmp(protocol, "udp", 3) != 0) {
		wrong("PROTOCOL", arguments[0]);
	}
	if (is_sent) {
		uint8_t address[16];

		memcpy(address, spec.source, sizeof(address));
		memcpy(spec.source, spec.destination, sizeof(address));
		memcpy(spec.destination, address, sizeof(address));
	}
	return packet_build(&spec, frame);
}

static void write_words(FILE *stream, const uint32_t *words, size_t count)
{
	fwrite(words, sizeof(*words), count, stream);
}

enum form { PCAP, PCAP_SLL, PCAPNG };

static void write_header(FILE *stream, enum form form)
{
	const uint32_t pcap[] = {PCAP_MAGIC_NS,
				 2 | 4 << 16,
				 0,
				 0,
				 PACKET_BYTES_MAX,
				 form == PCAP_SLL ? LINKTYPE_LINUX_SLL : LINKTYPE_ETHERNET};
	/* A section, and an interface with if_tsresol 9. */
	const uint32_t pcapng[] = {0x0a0d0d0a, 28, 0x1a2b3c4d, 1,	    UINT32_MAX, UINT32_MAX, 28, 1,
				   32,	       1,  0,	       9 | 1 << 16, 9,		0,	    32};

	if (form == PCAPNG)
		write_words(stream, pcapng, ARRAY_SIZE(pcapng));
	else
		write_words(stream, pcap, ARRAY_SIZE(pcap));
}

static void write_frame(FILE *stream, enum form form, uint64_t time_ns, bool is_sent, const uint8_t *frame,
			uint32_t bytes)
{
	const uint32_t captured = bytes < 128 ? bytes : 128, padded = (captured + 3) & ~3u, all = 28 + padded + 12 + 4;
	const uint8_t cooked[] = {0, is_sent ? 4 : 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 2, 0, 0, frame[12], frame[13]};
	const uint32_t more = form == PCAP_SLL ? sizeof(cooked) - 14 : 0;

	if (form == PCAPNG) {
		write_words(stream, (const uint32_t[]){6, all, 0, time_ns >> 32, time_ns, captured, bytes}, 7);
		fwrite(frame, padded, 1, stream);
		write_words(stream, (const uint32_t[]){2 | 4 << 16, is_sent ? 2 : 1, 0, all}, 4);
		return;
	}
	write_words(stream,
		    (const uint32_t[]){time_ns / 1000000000, time_ns % 1000000000, captured + more, bytes + more}, 4);
	fwrite(cooked, more ? sizeof(cooked) : 0, 1, stream);
	fwrite(frame + (more ? 14 : 0), captured - (more ? 14 : 0), 1, stream);
}

int main(int argc, char **argv)
{
	static uint8_t frame[PACKET_BYTES_MAX + 4];
	enum form form = PCAP;
	FILE *stream;

	if (argc < 2 + PART_ARGUMENTS || (argc - 2) % PART_ARGUMENTS) {
		fputs("usage: peaks_capture CAPTURE.pcap (PROTOCOL[/BYTES] PORT FIRST COUNT BASE STEP BURSTS "
		      "SPREAD_MS)...\n",
		      stderr);
		return 2;
	}
	for (int i = 2; i < argc; i += PART_ARGUMENTS) {
		add_part(argv + i, (i - 2) / PART_ARGUMENTS);
		if (!strncmp(argv[i], SENT, strlen(SENT)))
			form = PCAP_SLL;
	}
	if (strstr(argv[1], ".pcapng"))
		form = PCAPNG;
	qsort(events, event_count, sizeof(*events), compare);
	stream = fopen(argv[1], "w");
	if (!stream)
		wrong("CAPTURE", argv[1]);
	write_header(stream, form);
	for (size_t i = 0; i < event_count; i++) {
		static const uint8_t none[] = {0}, open[] = {0x02, 0x10}, closed[] = {0x02, 0x10, 0x11};
		char **arguments = argv + 2 + events[i].part * PART_ARGUMENTS;
		const bool is_sent = !strncmp(arguments[0], SENT, strlen(SENT));
		const char *protocol = arguments[0] + (is_sent ? strlen(SENT) : 0);
		const bool is_open = !strcmp(protocol, "open"), is_closed = !strcmp(protocol, "closed");
		const uint8_t *flags = is_open ? open : is_closed ? closed : none;

		for (int n = 0; n < (is_open ? 2 : is_closed ? 3 : 1); n++)
			write_frame(stream, form, events[i].time_ns, is_sent, frame,
				    build(arguments, events[i].source, i, flags[n], frame));
	}
	free(events);
	return fclose(stream) ? 1 : 0;
}
