/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps, lists and words, one after the other: as YAML or as JSON to a stream, which is what yaml.h reads; or as a tree
 * of jansson's, for a document that has more in it. A map or a list in which nothing is written is not written, either.
 * Knows nothing of rules, and checks no caller: a map has keys, a list has none, and what is begun is ended.
 */
#ifndef WEIR_RULES_WRITER_H
#define WEIR_RULES_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define WEIR_WRITER_DEPTH_MAX 8

/* A TREE has no stream. Its inline lists are of strings, numbers as well. */
enum weir_form { WEIR_FORM_YAML, WEIR_FORM_JSON, WEIR_FORM_TREE };

struct weir_writer {
	FILE *stream;
	enum weir_form form;
	unsigned int depth; /* levels that are open */
	struct weir_written_level {
		const char *key;	 /* NULL: an item of a list */
		bool is_list, is_inline; /* a list; on one line */
		bool is_begun;		 /* something of it has been written */
		size_t count;		 /* entries so far */
		json_t *node;		 /* of a tree, once it is begun; borrowed, but for the document */
	} level[WEIR_WRITER_DEPTH_MAX];
};

/* The map that is the whole document. */
void weir_write_document(struct weir_writer *writer);
/* Also ends the line. */
void weir_write_document_end(struct weir_writer *writer);
/* The same of a tree, which is the caller's. */
json_t *weir_write_tree_end(struct weir_writer *writer);

/* `key` is NULL in a list. */
void weir_write_map(struct weir_writer *writer, const char *key);
void weir_write_list(struct weir_writer *writer, const char *key);	  /* an item a line */
void weir_write_inline_list(struct weir_writer *writer, const char *key); /* of words alone */
void weir_write_end(struct weir_writer *writer);

/* A list that is to be there although nothing is in it. */
void weir_write_empty_list(struct weir_writer *writer, const char *key);

/* A text, quoted where it must be. NULL in a tree: null. */
void weir_write_word(struct weir_writer *writer, const char *key, const char *text);
/* A number as it is, or a word that needs no quotes in YAML. */
void weir_write_number(struct weir_writer *writer, const char *key, uint64_t number);
/* Millionths, as a decimal without zeros at its end. */
void weir_write_micro(struct weir_writer *writer, const char *key, uint64_t micro);
void weir_write_truth(struct weir_writer *writer, const char *key, bool truth);

/* Millionths in JSON: at most six decimals; what is whole stays an integer. */
json_t *weir_json_threshold(uint64_t micro);

#endif
