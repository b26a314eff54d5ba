/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The name of a flow in the store, which must not learn which flow it is, and the flow's key for other hosts that know
 * the secret. These are the two halves of the AES-SIV encryption of the key (RFC 5297, by nettle). The first is a keyed
 * hash of the flow's key and its rule's ledger, so a flow has the same name on all hosts, and tampering is detected.
 * The second is the encrypted key. The store can see that hosts share a flow, when they do so, and that it is the same
 * flow as before.
 */
#ifndef WEIR_SHARES_FLOW_NAME_H
#define WEIR_SHARES_FLOW_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_FLOW_SECRET_BYTES 32
#define WEIR_FLOW_BYTES 48 /* size of a flow's key: struct weir_flow_key */

/* Hexadecimal digits, and the terminating zero. */
#define WEIR_FLOW_NAME_CHARS (2 * 16 + 1)
#define WEIR_FLOW_SEALED_CHARS (2 * WEIR_FLOW_BYTES + 1)

/* Read the secret from the first line of a file: 64 hexadecimal digits. -EINVAL: the line is not a secret. */
int weir_flow_secret_read(const char *line, uint8_t ret_secret[WEIR_FLOW_SECRET_BYTES]);

/* ledger: the key of the rule's ledger in the store. */
void weir_flow_seal(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger,
		    const uint8_t flow[WEIR_FLOW_BYTES], char ret_name[WEIR_FLOW_NAME_CHARS],
		    char ret_sealed[WEIR_FLOW_SEALED_CHARS]);

/* False: this was not sealed with this secret for this ledger. Then ret_flow must not be used. */
bool weir_flow_open(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger, const char *name,
		    const char *sealed, uint8_t ret_flow[WEIR_FLOW_BYTES]);

#endif
