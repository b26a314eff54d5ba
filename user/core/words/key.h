/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys of flows, in words and in JSON. */
#ifndef WEIR_WORDS_KEY_H
#define WEIR_WORDS_KEY_H

#include <jansson.h>

#include "weir_abi.h"
#include "words/words.h"

/*
 * "source 192.0.2.1, destinationPort 53" of a flow's key. `interface` is what the interface of the key is called; NULL:
 * not known, as when it is gone, and it is called "if7" by its number.
 */
const char *weir_format_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			    const char *interface, char words[WEIR_WORDS_BYTES]);

/* The fields of the key, by their names in rule files, addresses and interfaces as text. */
json_t *weir_json_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
		      const char *interface);

#endif
