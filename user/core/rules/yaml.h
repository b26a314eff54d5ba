/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * YAML text to a tree of lists, maps and words that know where they stand in the file. Knows nothing
 * of rules. libfyaml scans and parses; the tree is our own, because libfyaml's refuses duplicate keys
 * without a position and copies what an alias stands for. Here an alias is the very node that its
 * anchor names, so a small file cannot become a large tree.
 *
 * Refused, each with its place: what is not UTF-8 (libfyaml 0.7.12 takes it, and a zero byte, for the
 * end of the file: the rules after it would silently not be there), tags, merge keys, a second
 * document, an alias inside its own anchor, and sizes beyond the limits below.
 */
#ifndef WEIR_RULES_YAML_H
#define WEIR_RULES_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* Chosen so that any file is read or refused within a second and 128 MB: a value takes some 160 bytes here,
 * and libfyaml keeps 260 for each byte of a line in brackets that might be the name of a field. One rule with as many
 * overrides as it may have takes 5 MB and 500,000 values.
 */
#define WEIR_YAML_BYTES_MAX (8u << 20)
#define WEIR_YAML_NODES_MAX 600000u /* aliases counted as what they stand for */
#define WEIR_YAML_LINE_BYTES_MAX (256u << 10)
#define WEIR_YAML_DIRECTIVES_MAX 100u /* lines that begin with '%' */
#define WEIR_YAML_DEPTH_MAX 32u
#define WEIR_YAML_ANCHORS_MAX 1000u

enum weir_node_kind {
	WEIR_NODE_NULL, /* nothing, ~ or null */
	WEIR_NODE_WORD,
	WEIR_NODE_LIST,
	WEIR_NODE_MAP,
};

struct weir_document;

struct weir_node {
	enum weir_node_kind kind;
	char *text;		  /* of a word, quotes and escapes resolved, without zero bytes */
	bool is_quoted;		  /* a word that is a text, whatever it looks like */
	struct weir_node **items; /* of a list; of a map: key, value, key, value ... */
	size_t count;		  /* of items: twice the fields of a map */
	size_t weight;		  /* nodes it stands for, itself included; 0 while it is not complete */
	const char *timed_name;	  /* of a field's value that says its unit of time: the field's name, without that */
	const struct weir_document *document;
	struct weir_place place;
};

struct weir_document {
	const char *file; /* as shown; borrowed */
	char *text;	  /* ends with a zero byte */
	size_t bytes;
	struct weir_node *root; /* NULL: an empty file */
	struct weir_node **nodes;
	size_t node_count;
};

/*
 * Parse `text` (malloc'ed, `bytes` long and a zero byte after them; owned by the document even when
 * this fails). Mistakes land in *diag. 0, -EINVAL or -ENOMEM.
 */
int weir_document_parse(const char *file, char *text, size_t bytes, struct weir_document **ret_document,
			struct weir_diag *diag);

/* The text from the start of a line on (it ends at the line feed), or NULL when there is no such line. */
const char *weir_document_line(const struct weir_document *document, int line);

void weir_document_free(struct weir_document *document);

static inline void weir_document_freep(struct weir_document **document)
{
	weir_document_free(*document);
}

#endif
