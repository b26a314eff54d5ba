/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A figure is declared once: its name in JSON documents, its heading in tables, its metric, and its value. Documents
 * (here), tables (cli/print.h) and metrics (serve/) are made from that.
 *
 * A counter is a row, struct weir_column. What is worked out is a statement in a function that describes a record,
 * weir_describer: WEIR_FIGURE(line, name, heading, node, text...). Either name or heading may be NULL. The statement
 * evaluates the node only for a document, and the text only for a table. For the headings of a table the function runs
 * once with a record of zeros, and no statement evaluates anything: what the function reads beside them must bear that.
 */
#ifndef WEIR_WORDS_FIGURES_H
#define WEIR_WORDS_FIGURES_H

#include <jansson.h>

#include "exposition/exposition.h"
#include "words/words.h"

/* A heading begins with '>' if its column is aligned to the right, and with '?' before that if tables have the column
 * only if one of its cells is a number above 0.
 */
struct weir_column {
	const char *json; /* "blocked.packets" is a field of the object "blocked" */
	const char *heading;
	size_t offset;					 /* of a uint64_t in the record */
	struct weir_metric_family metric;		 /* with the unit "seconds" the counter has nanoseconds */
	bool (*when)(const struct weir_rule_info *rule); /* the rules whose metric it is; NULL: all */
	bool is_only_then;				 /* documents of other rules have no such field */
};

/* Where the figures of a record go: into a document, or into a line of a table. */
struct weir_figures {
	json_t *fields; /* the document; NULL also if memory has run out */
	bool is_heading;
	void (*put)(void *table, const char *text); /* takes the next heading or cell; NULL: it is a document */
	void *table;
};

typedef void weir_describer(struct weir_figures *line, const void *context, const void *record);

#define WEIR_FIGURE(line, name, heading, node, ...)                                                                    \
	do {                                                                                                           \
		if (weir_line_has_field(line, name))                                                                   \
			weir_line_set(line, name, node);                                                               \
		else if (weir_line_has_cell(line, heading))                                                            \
			weir_line_print(line, __VA_ARGS__);                                                            \
	} while (0)

#define WEIR_COUNT(line, name, heading, count)                                                                         \
	WEIR_FIGURE(line, name, heading, json_integer((json_int_t)(count)), "%llu", (unsigned long long)(count))
#define WEIR_TEXT(line, name, heading, text) WEIR_FIGURE(line, name, heading, weir_json_text(text), "%s", text)
#define WEIR_TALLY(line, name, packets_heading, bytes_heading, tally)                                                  \
	do {                                                                                                           \
		WEIR_COUNT(line, name ".packets", packets_heading, (tally)->packets);                                  \
		WEIR_COUNT(line, name ".bytes", bytes_heading, (tally)->bytes);                                        \
	} while (0)
/* null, and this text, if it is not known. */
#define WEIR_KNOWN(line, name, heading, is_known, count, unknown)                                                      \
	do {                                                                                                           \
		if (line->is_heading || (is_known))                                                                    \
			WEIR_COUNT(line, name, heading, count);                                                        \
		else                                                                                                   \
			WEIR_FIGURE(line, name, heading, json_null(), "%s", unknown);                                  \
	} while (0)
/* A part of 1: "75 %". */
#define WEIR_PERCENT(line, name, heading, is_known, part, unknown)                                                     \
	do {                                                                                                           \
		if (line->is_heading || (is_known))                                                                    \
			WEIR_FIGURE(line, name, heading, json_real(part), "%.0f %%", 100 * (part));                    \
		else                                                                                                   \
			WEIR_FIGURE(line, name, heading, json_null(), "%s", unknown);                                  \
	} while (0)
/* Of documents alone, and of tables alone. */
#define WEIR_FIELD(line, name, node) WEIR_FIGURE(line, name, NULL, node, "%s", "")
#define WEIR_CELL(line, heading, ...) WEIR_FIGURE(line, NULL, heading, NULL, __VA_ARGS__)

/* ---- for the macros ---- */

bool weir_line_has_field(const struct weir_figures *line, const char *name);
/* For a line of headings: takes the heading, and has no cell. */
bool weir_line_has_cell(struct weir_figures *line, const char *heading);
void weir_line_set(struct weir_figures *line, const char *name, json_t *node);
void weir_line_print(struct weir_figures *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- documents ---- */

/* Describe the counters of a record, which is of this rule; the rows end with an empty one. */
void weir_line_counters(struct weir_figures *line, const struct weir_column *columns, const struct weir_rule_info *rule,
			const void *record);

/* Add the figures of a record to an object, which becomes NULL if memory runs out. */
void weir_figures_add(weir_describer *describe, const void *context, const void *record, json_t **fields);

json_t *weir_figures_describe(weir_describer *describe, const void *context, const void *record);

/* A list with an object for each of the records, which lie beside each other. */
json_t *weir_figures_list(weir_describer *describe, const void *context, const void *records, size_t count,
			  size_t record_bytes);

/* Packets and bytes. */
weir_describer weir_describe_tally;
json_t *weir_json_tally(const struct weir_tally *tally);

#endif
