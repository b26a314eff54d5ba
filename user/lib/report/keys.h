/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys of an instance's flows, with the interface names of its network namespace, and times of the data plane. */
#ifndef WEIR_REPORT_KEYS_H
#define WEIR_REPORT_KEYS_H

#include <jansson.h>
#include <stdint.h>

#include "instance/instance.h"
#include "words/state_words.h"
#include "words/words.h"

/* "source 192.0.2.1, interface eth0"; "(the whole resource)" for a rule without a key. */
const char *weir_flow_key_words(const struct weir_instance *instance, const struct weir_rule_info *rule,
				const struct weir_flow_key *key, char words[WEIR_WORDS_BYTES]);

/* The same for JSON: {} for a rule without a key. */
json_t *weir_flow_key_describe(const struct weir_instance *instance, const struct weir_rule_info *rule,
			       const struct weir_flow_key *key);

/* Convert a time of CLOCK_MONOTONIC to "2026-11-24T20:29:45.075Z" (RFC 3339, UTC); 0, which stands for no time, becomes
 * null.
 */
json_t *weir_json_time(uint64_t monotonic_ns);

#endif
