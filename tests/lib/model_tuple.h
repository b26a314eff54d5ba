/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the reference model's connections and requests have in common: which packets are of one connection, and what a
 * packet is to it (docs/connections.md, "What ingress can see").
 */
#ifndef WEIR_TEST_MODEL_TUPLE_H
#define WEIR_TEST_MODEL_TUPLE_H

#include <stdint.h>

#include "model_packet.h"

/* Compared byte by byte, so every one is set. */
struct model_tuple {
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port;
	uint8_t family, protocol;
	uint8_t zero[2];
};
_Static_assert(sizeof(struct model_tuple) == 40, "a hole in the tuple would be compared");

/* The source is its remote end: a connection is one, whichever way its packets go. Not for later fragments, which have
 * no ports.
 */
struct model_tuple model_tuple_of(const struct model_packet *packet);

enum model_event {
	MODEL_OPENING,
	MODEL_TALKS,
	MODEL_FINISHES,
	MODEL_RESETS,
	MODEL_NOT_TCP,
	MODEL_ANSWERS, /* this host's SYN,ACK */
	MODEL_EVENTS
};

enum model_event model_event_of(const struct model_packet *packet);

#endif
