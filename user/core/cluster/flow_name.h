/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a flow is called in the store, which is to learn nothing of it: a keyed hash of its rule's ledger and its key;
 * and the key itself, encrypted under that name, for other hosts that know the secret. The name is both what makes the
 * encryption of each flow another, and what tells whether it was altered (Rogaway and Shrimpton, "Deterministic
 * authenticated encryption", 2006). One flow has one name, so the store sees that, and when, hosts share it.
 */
#ifndef WEIR_CLUSTER_FLOW_NAME_H
#define WEIR_CLUSTER_FLOW_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/siphash.h"

/* Digits of base 16, with their end. */
#define WEIR_FLOW_NAME_CHARS (2 * 16 + 1)
#define WEIR_FLOW_BYTES 48 /* of a flow's key: struct weir_flow_key */
#define WEIR_FLOW_SEALED_CHARS (2 * WEIR_FLOW_BYTES + 1)

/* A secret from the first line of a file: 32 digits of base 16. -EINVAL: it is not. */
int weir_flow_secret_read(const char *line, uint8_t ret_secret[WEIR_SIPHASH_KEY_BYTES]);

/* ledger: the key of the rule's ledger in the store. */
void weir_flow_seal(const uint8_t secret[WEIR_SIPHASH_KEY_BYTES], const char *ledger,
		    const uint8_t flow[WEIR_FLOW_BYTES], char ret_name[WEIR_FLOW_NAME_CHARS],
		    char ret_sealed[WEIR_FLOW_SEALED_CHARS]);

/* False: this was not sealed with this secret for this ledger; ret_flow is then of no use. */
bool weir_flow_open(const uint8_t secret[WEIR_SIPHASH_KEY_BYTES], const char *ledger, const char *name,
		    const char *sealed, uint8_t ret_flow[WEIR_FLOW_BYTES]);

#endif
