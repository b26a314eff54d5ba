// SPDX-License-Identifier: GPL-2.0-only
#include "model_tuple.h"

#include <string.h>

struct model_tuple model_tuple_of(const struct model_packet *packet)
{
	struct model_tuple tuple;

	memset(&tuple, 0, sizeof(tuple));
	memcpy(tuple.source, model_remote_of(packet), 16);
	memcpy(tuple.destination, model_local_of(packet), 16);
	if (packet->has_ports) {
		tuple.source_port = packet->is_out ? packet->destination_port : packet->source_port;
		tuple.destination_port = packet->is_out ? packet->source_port : packet->destination_port;
	}
	tuple.family = packet->family;
	tuple.protocol = packet->protocol;
	return tuple;
}

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

enum model_event model_event_of(const struct model_packet *packet)
{
	if (packet->protocol != 6)
		return MODEL_NOT_TCP;
	if (packet->tcp_flags & RST)
		return MODEL_RESETS;
	if (packet->tcp_flags & FIN)
		return MODEL_FINISHES;
	if (packet->tcp_flags & SYN && !(packet->tcp_flags & ACK))
		return MODEL_OPENING;
	if (packet->is_out && packet->tcp_flags & SYN)
		return MODEL_ANSWERS;
	return MODEL_TALKS;
}
