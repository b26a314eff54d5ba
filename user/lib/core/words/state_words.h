/* SPDX-License-Identifier: GPL-2.0-only */
/* Flows in words and in JSON: their keys, and their state under a rule. */
#ifndef WEIR_STATE_WORDS_H
#define WEIR_STATE_WORDS_H

#include <jansson.h>

#include "tables/connection_counts.h"
#include "rules/scalars.h"
#include "tables/entry_state.h"
#include "tables/labels.h"
#include "words/figures.h"

/* ---- flow keys, in words and in JSON ---- */

/*
 * Format a flow's key: "source 192.0.2.1, destinationPort 53". `interface` is the name of the interface in the key.
 * NULL: its name is not known, for example because it is gone; it is then called "if7", by its number. `labels` are
 * those of the key's sets, or NULL: "source@tenants gold".
 */
const char *weir_format_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			    const char *interface, const struct weir_key_labels *labels, char words[WEIR_WORDS_BYTES]);

/* The fields of the key, with their names in rule files; addresses and interfaces are texts. */
json_t *weir_json_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key, const char *interface,
		      const struct weir_key_labels *labels);

/* The name of one field, with its set: "source@tenants". Returns `text` or a constant. */
const char *weir_format_key_field(uint32_t key_fields, int place, const struct weir_key_labels *labels,
				  char text[WEIR_KEY_FIELD_BYTES]);

/* ---- circuit breakers ---- */

/* A struct weir_breaker_view: state, leftSeconds, requests, bad, value and changes. A rule's struct weir_breaker_sum:
 * the numbers of closed, open and halfOpen breakers, and changes; for a whole resource, its only breaker as above.
 */
weir_describer weir_describe_breaker, weir_describe_breaker_sum;

/* For people: "closed", "open" or "half-open"; fields and labels have weir_breaker_kind_names. */
const char *weir_breaker_kind_word(enum weir_breaker_kind kind);

/* "closed", "open, retry in 2.5 s", "half-open" */
const char *weir_format_breaker_state(const struct weir_breaker_view *view, char words[WEIR_WORDS_BYTES]);

/* The same for a rule; if it has flows, "3 open, 1 half-open of 57". */
const char *weir_format_breaker_sum(const struct weir_breaker_sum *sum, char words[WEIR_WORDS_BYTES]);

/* ---- connections (struct weir_connection_figures) ---- */

extern const struct weir_column weir_connection_columns[];

/* In a document they are one object; in tables the latter stand apart: how connections ended, and handshakes. */
weir_describer weir_describe_connections, weir_describe_connection_ends;
json_t *weir_json_connections(const struct weir_connection_figures *figures);

/* ---- a dropped packet's flow under its rule, from `used` and `threshold` of struct weir_event ---- */

/* "used 20 of 20 packets", "0 of 20 packets left", "would wait 120.4 ms, may wait 100 ms", "100 of 100 connections
 * open", "12 of 20 requests were bad, threshold 0.5", "AvgRT 62.5 ms, threshold 50 ms".
 */
const char *weir_format_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold,
				     char words[WEIR_WORDS_BYTES]);

/* Add `used`, `threshold` and `unit`; for a circuit breaker `requests`, `bad` and `threshold`. */
void weir_json_add_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold, json_t *fields);

#endif
