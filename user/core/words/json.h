/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pieces of JSON documents that several have in common. Field names are those of the rule files where the thing is the
 * same.
 */
#ifndef WEIR_WORDS_JSON_H
#define WEIR_WORDS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "rules/shown_rule.h"
#include "weir_abi.h"
#include "words/words.h"

/* How documents are written: indented, and reals with six decimals of 2^29 at least, so that 2.9 is not
 * 2.8999999999999999.
 */
#define WEIR_JSON_FLAGS (JSON_INDENT(2) | JSON_REAL_PRECISION(15))

/* The document as text, as every command and server prints it: what a terminal would obey (printable.h) is written as
 * an escape. The caller frees it; NULL: there was no memory, or no document.
 */
char *weir_json_dump(const json_t *document, size_t flags);

/* A string of what need not be UTF-8, as JSON has to be: the name of an interface may be any bytes. U+FFFD stands for
 * each that is not.
 */
json_t *weir_json_text(const char *text);

/* Add lists "mistakes" and "warnings" to an object: each with its file, line and column (null where it has none), what
 * is wrong, and what to write (null: it is not known).
 */
void weir_json_add_diag(const struct weir_diag *diag, json_t *fields);

/* Add to a list, which takes the item. Should there be none, as memory is out, the list becomes NULL, and with it all
 * that it is packed into: a document never lacks an item in silence.
 */
void weir_json_append(json_t **list, json_t *item);

json_t *weir_json_tally(const struct weir_tally *tally);

/* An object with what a rule is: name, resource, unit, statIntervalInMs, mode, Sentinel's strategy, behavior and
 * relation, and what of these they need: threshold, or MemoryAdaptive's four; maxQueueingTimeMs, or sampleCount and
 * window; refResource. A rule of connections has name, resource, metricType, mode, threshold; a circuit breaker the
 * fields that it is written with; a system rule likewise, and `resource` is null. And `limit`: all of it in words.
 */
json_t *weir_json_rule(const struct weir_rule_info *rule);

/* The same of a rule as a document has it (rules/shown_rule.h), without words. */
json_t *weir_json_shown_rule(const struct weir_shown_rule *shown, enum weir_rule_document document);

#endif
