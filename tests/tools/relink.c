// SPDX-License-Identifier: GPL-2.0-only
/*
 * relink LINK ETHERNET.pcap OUT.pcap SAME.pcap
 *
 * Write a capture of Ethernet as one of another link type: "sll" or "sll2", which a capture on 'any' has, or "raw",
 * "ipv4" or "ipv6", which begin with the IP packet. What such a capture cannot hold is left out: of the last three what
 * is tagged, is not of that IP, or was cut before it began. SAME.pcap has the frames that were not left out, as they
 * were. A frame that was cut within the Ethernet header is cut where as much is left of the new one's protocol.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/packets.h"
#include "base/util.h"
#include "files/capture.h"

#define ETHERNET_BYTES 14
#define TYPE_AT 12

/* A packet from another host (0), of an Ethernet device (1) with addresses of 6 bytes; the protocol follows. */
static const uint8_t sll[] = {0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 2, 0, 0};
/* The protocol comes first: reserved; interface 3; an Ethernet device; from another host; the same address. */
static const uint8_t sll2_rest[] = {0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 2, 0, 0};

static const struct form {
	const char *name;
	enum weir_link_type link_type;
	bool is_cooked;
} forms[] = {
	{"sll", WEIR_LINK_TYPE_SLL, true},    {"sll2", WEIR_LINK_TYPE_SLL2, true},  {"raw", WEIR_LINK_TYPE_IP, false},
	{"ipv4", WEIR_LINK_TYPE_IPV4, false}, {"ipv6", WEIR_LINK_TYPE_IPV6, false},
};

static void fail(const char *what, const char *which)
{
	fprintf(stderr, "relink: %s '%s'\n", what, which);
	exit(1);
}

static const struct form *find_form(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	fprintf(stderr, "relink: '%s' is none of sll, sll2, raw, ipv4 and ipv6\n", name);
	exit(2);
}

/* Bytes of a length, or what is left of it, that lie behind the Ethernet header. */
static uint32_t behind(uint32_t length)
{
	return length < ETHERNET_BYTES ? 0 : length - ETHERNET_BYTES;
}

/* How long the new header is when so much of the Ethernet header is there: the protocol's part is the same. */
static uint32_t header_left(const struct form *form, uint32_t length)
{
	uint32_t left_of_type = length < TYPE_AT ? 0 : length - TYPE_AT;

	if (length >= ETHERNET_BYTES)
		return form->link_type == WEIR_LINK_TYPE_SLL ? sizeof(sll) + 2 : 2 + sizeof(sll2_rest);
	if (form->link_type == WEIR_LINK_TYPE_SLL)
		return length < TYPE_AT ? length : sizeof(sll) + left_of_type;
	return left_of_type;
}

static void cook(const struct form *form, const struct weir_frame *frame, uint8_t *to, struct weir_frame *ret_frame)
{
	uint32_t header_bytes = header_left(form, ETHERNET_BYTES), captured = frame->captured_bytes;
	uint8_t type[2] = {};

	if (captured > TYPE_AT)
		memcpy(type, frame->bytes + TYPE_AT, captured < ETHERNET_BYTES ? captured - TYPE_AT : 2);
	if (form->link_type == WEIR_LINK_TYPE_SLL) {
		memcpy(to, sll, sizeof(sll));
		memcpy(to + sizeof(sll), type, 2);
	} else {
		memcpy(to, type, 2);
		memcpy(to + 2, sll2_rest, sizeof(sll2_rest));
	}
	memcpy(to + header_bytes, frame->bytes + captured - behind(captured), behind(captured));
	*ret_frame = (struct weir_frame){
		.time_ns = frame->time_ns,
		.bytes = to,
		.captured_bytes = header_left(form, captured) + behind(captured),
		.wire_bytes = header_left(form, frame->wire_bytes) + behind(frame->wire_bytes),
	};
}

/* False: such a capture cannot hold it. */
static bool strip(const struct form *form, const struct weir_frame *frame, struct weir_frame *ret_frame)
{
	uint16_t ethertype;
	uint8_t version;

	if (frame->captured_bytes < ETHERNET_BYTES)
		return false;
	ethertype = frame->bytes[TYPE_AT] << 8 | frame->bytes[TYPE_AT + 1];
	version = frame->captured_bytes > ETHERNET_BYTES ? frame->bytes[ETHERNET_BYTES] >> 4 : 0;
	*ret_frame = (struct weir_frame){
		.time_ns = frame->time_ns,
		.bytes = frame->bytes + ETHERNET_BYTES,
		.captured_bytes = behind(frame->captured_bytes),
		.wire_bytes = behind(frame->wire_bytes),
	};
	if (form->link_type == WEIR_LINK_TYPE_IPV4)
		return ethertype == ETHERTYPE_IPV4;
	if (form->link_type == WEIR_LINK_TYPE_IPV6)
		return ethertype == ETHERTYPE_IPV6;
	return (ethertype == ETHERTYPE_IPV4 && version == 4) || (ethertype == ETHERTYPE_IPV6 && version == 6);
}

static struct weir_capture_writer *create(const char *path, enum weir_link_type link_type, FILE **ret_stream)
{
	struct weir_capture_writer *writer;
	struct weir_diag diag = {};

	*ret_stream = fopen(path, "w");
	if (!*ret_stream || weir_capture_writer_new(*ret_stream, link_type, &writer, &diag))
		fail("cannot write", path);
	return writer;
}

int main(int argc, char **argv)
{
	static uint8_t bytes[20 + PACKET_BYTES_MAX];
	struct weir_capture_writer *out, *same;
	FILE *out_stream, *same_stream;
	struct weir_frame frame, other;
	struct weir_capture *capture;
	struct weir_diag diag = {};
	const struct form *form;

	if (argc != 5) {
		fprintf(stderr, "usage: relink sll|sll2|raw|ipv4|ipv6 ETHERNET.pcap OUT.pcap SAME.pcap\n");
		return 2;
	}
	form = find_form(argv[1]);
	if (weir_capture_open(argv[2], &capture, &diag))
		fail("no capture:", argv[2]);
	out = create(argv[3], form->link_type, &out_stream);
	same = create(argv[4], WEIR_LINK_TYPE_ETHERNET, &same_stream);
	while (weir_capture_next(capture, &frame, &diag) > 0) {
		if (frame.link_type != WEIR_LINK_TYPE_ETHERNET)
			fail("no capture of Ethernet:", argv[2]);
		if (frame.captured_bytes > PACKET_BYTES_MAX)
			fail("too long a frame in", argv[2]);
		if (form->is_cooked)
			cook(form, &frame, bytes, &other);
		else if (!strip(form, &frame, &other))
			continue;
		weir_capture_write(out, &other);
		weir_capture_write(same, &frame);
	}
	weir_capture_writer_free(out);
	weir_capture_writer_free(same);
	weir_capture_close(capture);
	return fclose(out_stream) || fclose(same_stream) ? 1 : 0;
}
