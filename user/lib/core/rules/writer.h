/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes maps, lists and words in sequence, in one of three forms: YAML or JSON to a stream, which yaml.h can read, or
 * a jansson tree, for documents that contain more. A map or list to which nothing is written is omitted. Knows nothing
 * of rules, and does not check its callers: entries of a map need keys, entries of a list have none, and whatever is
 * begun must be ended.
 */
#ifndef WEIR_RULES_WRITER_H
#define WEIR_RULES_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define WEIR_WRITER_DEPTH_MAX 8

/* A TREE has no stream. Its inline lists contain only strings; numbers become strings. */
enum weir_form { WEIR_FORM_YAML, WEIR_FORM_JSON, WEIR_FORM_TREE };

struct weir_writer {
	FILE *stream;
	enum weir_form form;
	bool names_sets;    /* a set in overrides is written by its name, not with its prefixes */
	unsigned int depth; /* levels that are open */
	struct weir_written_level {
		const char *key;	 /* NULL: an item of a list */
		bool is_list, is_inline; /* a list; written on one line */
		bool is_begun;		 /* something in it has been written */
		size_t count;		 /* entries so far */
		json_t *node;		 /* of a tree, once is_begun; borrowed, except for the document */
	} level[WEIR_WRITER_DEPTH_MAX];
};

/* Begin the map that is the whole document. */
void weir_write_document(struct weir_writer *writer);
/* End the document and its last line. */
void weir_write_document_end(struct weir_writer *writer);
/* The same for a tree, which the caller then owns. */
json_t *weir_write_tree_end(struct weir_writer *writer);

/* In a list, `key` is NULL. */
void weir_write_map(struct weir_writer *writer, const char *key);
void weir_write_list(struct weir_writer *writer, const char *key);	  /* one item per line */
void weir_write_inline_list(struct weir_writer *writer, const char *key); /* contains only words */
void weir_write_end(struct weir_writer *writer);

/* A list that must be written even though it is empty. */
void weir_write_empty_list(struct weir_writer *writer, const char *key);

/* A text, quoted if necessary. In a tree, NULL becomes null. */
void weir_write_word(struct weir_writer *writer, const char *key, const char *text);
/* An unquoted number, or a word that needs no quotes in YAML. */
void weir_write_number(struct weir_writer *writer, const char *key, uint64_t number);
/* Millionths as a decimal without trailing zeros. */
void weir_write_micro(struct weir_writer *writer, const char *key, uint64_t micro);
void weir_write_truth(struct weir_writer *writer, const char *key, bool truth);

/* Millionths in JSON: at most six decimals; a whole number becomes an integer. */
json_t *weir_json_threshold(uint64_t micro);

#endif
