/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a flow is called in the store, which is to learn nothing of it, and its key for other hosts that know the
 * secret: the two halves of what AES-SIV makes of the key (RFC 5297, by nettle). The first is a keyed hash of the
 * flow's key and its rule's ledger; so one flow has one name on all hosts, and what was altered is noticed. The second
 * is the key, encrypted. The store sees that hosts share a flow, when, and that it is the same as before.
 */
#ifndef WEIR_SHARES_FLOW_NAME_H
#define WEIR_SHARES_FLOW_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_FLOW_SECRET_BYTES 32
#define WEIR_FLOW_BYTES 48 /* of a flow's key: struct weir_flow_key */

/* Digits of base 16, with their end. */
#define WEIR_FLOW_NAME_CHARS (2 * 16 + 1)
#define WEIR_FLOW_SEALED_CHARS (2 * WEIR_FLOW_BYTES + 1)

/* A secret from the first line of a file: 64 digits of base 16. -EINVAL: it is not. */
int weir_flow_secret_read(const char *line, uint8_t ret_secret[WEIR_FLOW_SECRET_BYTES]);

/* ledger: the key of the rule's ledger in the store. */
void weir_flow_seal(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger,
		    const uint8_t flow[WEIR_FLOW_BYTES], char ret_name[WEIR_FLOW_NAME_CHARS],
		    char ret_sealed[WEIR_FLOW_SEALED_CHARS]);

/* False: this was not sealed with this secret for this ledger; ret_flow is then of no use. */
bool weir_flow_open(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger, const char *name,
		    const char *sealed, uint8_t ret_flow[WEIR_FLOW_BYTES]);

#endif
