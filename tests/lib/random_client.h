/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections as clients make them, and as they should not: a client opens, talks, finishes and resets, says things
 * twice, loses packets, comes back on the same port, vanishes, or was there before anybody listened.
 */
#ifndef WEIR_TEST_RANDOM_CLIENT_H
#define WEIR_TEST_RANDOM_CLIENT_H

#include <stdbool.h>

#include "packets.h"
#include "random.h"

/* What the client has said of its connection, whether or not it arrived. */
enum random_phase { RANDOM_SILENT, RANDOM_OPENED, RANDOM_TALKED, RANDOM_ENDED };

struct random_client {
	struct packet_spec spec; /* addresses, ports, protocol, tags, of all its packets */
	enum random_phase phase;
};

/* Its next packet. False when this is lost; or when the client is gone, and must not be asked again. */
bool random_client_speaks(struct random *random, struct random_client *client, struct packet_spec *ret_spec,
			  bool *ret_is_gone);

#endif
