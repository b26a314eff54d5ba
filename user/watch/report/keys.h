/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose flow it is, of an instance: its key, with interfaces by what they are called there. */
#ifndef WEIR_REPORT_KEYS_H
#define WEIR_REPORT_KEYS_H

#include "instance/instance.h"
#include "words/key.h"

/* "source 192.0.2.1, interface eth0", or "(the whole resource)" of a rule without a key. */
const char *weir_flow_key_words(const struct weir_instance *instance, const struct weir_rule_info *rule,
				const struct weir_flow_key *key, char words[WEIR_WORDS_BYTES]);

/* The same for JSON: {} of a rule without a key. */
json_t *weir_flow_key_describe(const struct weir_instance *instance, const struct weir_rule_info *rule,
			       const struct weir_flow_key *key);

#endif
