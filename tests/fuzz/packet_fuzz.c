// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program's parser (bpf/packet/parse.h), built for the host, against the model's (tests/lib/model_packet.c), which
 * shares no code with it: both say the same of every frame, and neither reads beyond it.
 */
#include "fuzz.h"

#include <string.h>

#include "../../bpf/packet/parse.h"
#include "../lib/model_packet.h"

_Static_assert((int)CLASS_IP == WEIR_PARSED_IP && (int)CLASS_MALFORMED == WEIR_PARSED_MALFORMED &&
		       (int)CLASS_UNSUPPORTED == WEIR_PARSED_UNSUPPORTED && (int)CLASS_NON_IP == WEIR_PARSED_NON_IP,
	       "compared as numbers");

static void check_same(const struct weir_packet *packet, const struct model_packet *model)
{
	size_t address_bytes = model->family == 6 ? 16 : 4;

	FUZZ_CHECK(packet->is_ipv6 == (model->family == 6));
	FUZZ_CHECK(!memcmp(packet->source, model->source, address_bytes));
	FUZZ_CHECK(!memcmp(packet->destination, model->destination, address_bytes));
	FUZZ_CHECK(weir_protocol(packet) == model->protocol);
	FUZZ_CHECK(packet->fragment == model->fragment);
	FUZZ_CHECK(packet->dscp == model->dscp);
	FUZZ_CHECK(packet->ttl == model->ttl);
	FUZZ_CHECK(packet->vlan == (model->has_vlan ? model->vlan : WEIR_VLAN_NONE));
	FUZZ_CHECK(packet->source_port == (model->has_ports ? model->source_port : WEIR_PORT_NONE));
	FUZZ_CHECK(packet->destination_port == (model->has_ports ? model->destination_port : WEIR_PORT_NONE));
	FUZZ_CHECK(packet->tcp_flags == (model->has_tcp_flags ? model->tcp_flags : WEIR_BYTE_NONE));
	FUZZ_CHECK(packet->icmp_type == (model->has_icmp_type ? model->icmp_type : WEIR_BYTE_NONE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct model_packet model = {};
	struct weir_packet packet, usual;
	struct weir_cursor cursor = {}, short_cursor;
	enum weir_parsed parsed;
	uint8_t *memory;

	/* The program sees no frame without a whole Ethernet header (kernel: ETH_HLEN). */
	if (bytes < 14)
		return 0;
	/* As in a driver's buffer, the IP header is aligned, and what is read beyond the end is seen. */
	memory = malloc(bytes + 2);
	FUZZ_CHECK(memory);
	memcpy(memory + 2, data, bytes);
	cursor.data = memory + 2;
	cursor.end = memory + 2 + bytes;
	cursor.frame_bytes = bytes;
	short_cursor = cursor;
	memset(&packet, 0xa5, sizeof(packet));
	memset(&usual, 0x5a, sizeof(usual));
	parsed = weir_parse(&cursor, &packet);
	FUZZ_CHECK((int)parsed == (int)model_parse(memory + 2, bytes, &model));
	if (parsed == WEIR_PARSED_IP) {
		check_same(&packet, &model);
		FUZZ_CHECK(packet.ip_length == model.ip_bytes); /* the other parser does not read it */
	}
	if (weir_parse_usual(&short_cursor, &usual, ~0u)) {
		FUZZ_CHECK(parsed == WEIR_PARSED_IP);
		check_same(&usual, &model);
	}
	free(memory);
	return 0;
}
