/* SPDX-License-Identifier: GPL-2.0-only */
/* How commands print: tables for people, and JSON documents. What is said in them is core's (words/). */
#ifndef WEIR_PRINT_H
#define WEIR_PRINT_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "words/json.h"
#include "words/key.h"
#include "words/words.h"

/*
 * ---- tables: columns as wide as what is in them ----
 *
 * In a terminal that is too narrow for that, words are cut ('…'), those of the widest column first; numbers never are.
 * --wide cuts nothing, and nothing is cut where there is no terminal.
 */

struct weir_table {
	const char *const *headings; /* one that starts with '>' stands to the right, as numbers do */
	size_t columns;
	char **cells; /* owned, row after row */
	size_t cell_count;
	bool is_cut; /* memory was out: it ends there, so that no cell stands under another's heading */
};

#define WEIR_TABLE_COLUMNS_MAX 16

/* Add the next cell. Out of memory, a cell stays empty, or the table ends with the one before. */
void weir_table_cell(struct weir_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void weir_table_print(const struct weir_table *table, FILE *stream);
void weir_table_free(struct weir_table *table);

/* "topic  text", broken between words where the terminal ends, each further line below the text. */
void weir_print_topic(const char *topic, int topic_columns, const char *text, FILE *stream);

/* As vfprintf(), with what a terminal would obey made harmless (base/printable.h). */
void weir_print_clean(FILE *stream, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* "limits eth0 (native), eth1 (skb) by 12 rules", or "observes ...": what is in force, read from there. False: nothing
 * could be read, which is not a failure for a caller that wants words.
 */
#define WEIR_LIMITS_BYTES 320
bool weir_limits_words(const char *instance, char words[WEIR_LIMITS_BYTES]);

/* Print the document and free it. 0, or -errno with a word in *diag. */
int weir_json_print(json_t *document, struct weir_diag *diag);

/* Is all that was printed out? 0, or -errno with a word in *diag. */
int weir_flush_results(struct weir_diag *diag);

#endif
