/* SPDX-License-Identifier: GPL-2.0-only */
/* How commands print: tables for people, and JSON documents. The wording comes from core (words/). */
#ifndef WEIR_PRINT_H
#define WEIR_PRINT_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "words/figures.h"
#include "words/json.h"
#include "words/state_words.h"
#include "words/words.h"

/*
 * ---- tables: columns as wide as their content ----
 *
 * If a terminal is too narrow for that, words are cut ('…'), starting in the widest column; numbers are never cut.
 * --wide cuts nothing, and nothing is cut if there is no terminal.
 */

#define WEIR_TABLE_COLUMNS_MAX 16

struct weir_table {
	/* One that starts with '>' is aligned to the right, as numbers are. '?' before that leaves a column out if it
	 * has no number above 0.
	 */
	const char *headings[WEIR_TABLE_COLUMNS_MAX];
	size_t columns;
	char **cells; /* owned, row by row */
	size_t cell_count;
	/* Memory ran out: the table ends there, so that no cell is under another column's heading. */
	bool is_cut;
};

/* Add the columns of what is described so at the right, before the first cell; then, for each line, the cells of a
 * record under them. A table may be made of several descriptions.
 */
void weir_table_head(struct weir_table *table, weir_describer *describe, const void *context);
void weir_table_add(struct weir_table *table, weir_describer *describe, const void *context, const void *record);

/* Both, for a whole list of records that lie beside each other. */
void weir_table_list(struct weir_table *table, weir_describer *describe, const void *context, const void *records,
		     size_t count, size_t record_bytes);

/* Leave a column out, whatever its cells are. */
void weir_table_leave_out(struct weir_table *table, const char *heading);

/* Add the next cell. If memory runs out, the cell is empty, or the table ends before it. */
void weir_table_cell(struct weir_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void weir_table_print(struct weir_table *table, FILE *stream);
void weir_table_free(struct weir_table *table);

/* Print "topic  text", wrapped at the width of the terminal, with further lines indented to the text. */
void weir_print_topic(const char *topic, int topic_columns, const char *text, FILE *stream);

/* Like vfprintf(), with control characters made harmless (base/printable.h). */
void weir_print_clean(FILE *stream, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* "limits 'eth0' (native), 'eth1' (skb) by 12 rules", or "observes ...": what is in force, read from the instance.
 * Returns false if nothing could be read, which is no error for a caller that only wants words.
 */
#define WEIR_LIMITS_BYTES 320
bool weir_limits_words(const char *instance, char words[WEIR_LIMITS_BYTES]);

/* The contended flows of rules with fairBy, as many as fit a screen. Prints nothing if there are none. */
struct weir_instance;
struct weir_fair_uses;
void weir_print_fair(const struct weir_instance *instance, const struct weir_fair_uses *uses);

/* Print the document and free it. Returns 0, or -errno with a message in *diag. */
int weir_json_print(json_t *document, struct weir_diag *diag);

/* Make sure that all output has been written. Returns 0, or -errno with a message in *diag. */
int weir_flush_results(struct weir_diag *diag);

#endif
