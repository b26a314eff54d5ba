/* SPDX-License-Identifier: GPL-2.0-only */
/* Flow keys, in words and in JSON. */
#ifndef WEIR_WORDS_KEY_H
#define WEIR_WORDS_KEY_H

#include <jansson.h>

#include "weir_abi.h"
#include "words/words.h"

/*
 * Format a flow's key: "source 192.0.2.1, destinationPort 53". `interface` is the name of the interface in the key.
 * NULL: its name is not known, for example because it is gone; it is then called "if7", by its number.
 */
const char *weir_format_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			    const char *interface, char words[WEIR_WORDS_BYTES]);

/* The fields of the key, with their names in rule files; addresses and interfaces are texts. */
json_t *weir_json_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
		      const char *interface);

#endif
