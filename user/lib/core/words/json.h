/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parts that several JSON documents share. A field that is also in rule files has the same name here.
 */
#ifndef WEIR_WORDS_JSON_H
#define WEIR_WORDS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "rules/emit.h"
#include "weir_abi.h"
#include "words/words.h"

/* The format of all documents: indented, and reals with 15 significant digits, which is at least six decimals up to
 * 2^29, so that 2.9 is not printed as 2.8999999999999999.
 */
#define WEIR_JSON_FLAGS (JSON_INDENT(2) | JSON_REAL_PRECISION(15))

/* The document as text, as every command and server prints it: control characters that a terminal would obey
 * (printable.h) are escaped. The caller frees the text; NULL: there was no memory, or no document.
 */
char *weir_json_dump(const json_t *document, size_t flags);

/* A JSON string from text that need not be UTF-8, which JSON requires: the name of an interface may be any bytes. Each
 * byte that is not UTF-8 becomes U+FFFD.
 */
json_t *weir_json_text(const char *text);

/* Add the lists "mistakes", "warnings" and "notes" to an object. Each entry has a file, line and column (null if there
 * is none), what is wrong, and what to write (null if not known).
 */
void weir_json_add_diag(const struct weir_diag *diag, json_t *fields);

/* Append an item to a list, which takes ownership. If `item` is NULL because memory ran out, the list becomes NULL, and
 * so does every document that it is packed into: a document never silently lacks an item.
 */
void weir_json_append(json_t **list, json_t *item);

/* An object that describes a rule: name, resource, unit, statIntervalInMs, mode, Sentinel's strategy, behavior and
 * relation, and the fields that these need: threshold, or MemoryAdaptive's four; maxQueueingTimeMs, or sampleCount and
 * window; refResource. A rule that counts connections has name, resource, metricType, mode and threshold. A circuit
 * breaker has the fields that it is written with; so has a system rule, with `resource` null. In addition, `limit` has
 * all of it in words.
 */
json_t *weir_json_rule(const struct weir_rule_info *rule, const struct weir_key_labels *labels);

/* The same for a rule in a document (rules/emit.h), without words. */
json_t *weir_json_shown_rule(const struct weir_shown_rule *shown, enum weir_rule_document document);

#endif
