/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From YAML text to a tree of lists, maps and words that know their position in the file. Knows nothing of rules.
 * libfyaml scans and parses, but the tree is our own: libfyaml's tree refuses duplicate keys without giving a position,
 * and copies the target of an alias. Here an alias is the same node that its anchor names, so a small file cannot
 * become a large tree.
 *
 * These are refused, each with its position: text that is not UTF-8, tags, merge keys, a second document, an alias
 * inside its own anchor, and sizes beyond the limits below. libfyaml 0.7.12 treats bytes that are not UTF-8, and zero
 * bytes, as the end of the file: the rules after them would silently be missing.
 */
#ifndef WEIR_RULES_YAML_H
#define WEIR_RULES_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* Chosen so that any file is read or refused within a second and 128 MB. A value takes some 160 bytes here, and
 * libfyaml keeps 260 bytes for each byte of a line in brackets that might be the name of a field. One rule with the
 * maximum number of overrides takes 5 MB and 500,000 values.
 */
#define WEIR_YAML_BYTES_MAX (8u << 20)
#define WEIR_YAML_NODES_MAX 600000u /* an alias counts as many nodes as its target */
#define WEIR_YAML_LINE_BYTES_MAX (256u << 10)
#define WEIR_YAML_DIRECTIVES_MAX 100u /* lines that begin with '%' */
#define WEIR_YAML_DEPTH_MAX 32u
#define WEIR_YAML_ANCHORS_MAX 1000u

enum weir_node_kind {
	WEIR_NODE_NULL, /* no value, ~ or null */
	WEIR_NODE_WORD,
	WEIR_NODE_LIST,
	WEIR_NODE_MAP,
};

struct weir_document;

struct weir_node {
	enum weir_node_kind kind;
	char *text;		  /* of a word, with quotes and escapes resolved, without zero bytes */
	bool is_quoted;		  /* the word is a text, whatever it looks like */
	struct weir_node **items; /* of a list; of a map: key, value, key, value ... */
	size_t count;		  /* of items: twice the fields of a map */
	size_t weight;		  /* nodes it stands for, including itself; 0 while it is incomplete */
	/* For a field's value that has its own time unit: the field's name without the unit. */
	const char *timed_name;
	const struct weir_document *document;
	struct weir_place place;
};

struct weir_document {
	const char *file; /* as shown in messages; borrowed */
	char *text;	  /* ends with a zero byte */
	size_t bytes;
	struct weir_node *root; /* NULL: an empty file */
	struct weir_node **nodes;
	size_t node_count;
};

/*
 * Parse `text` (allocated with malloc, `bytes` long, followed by a zero byte; the document owns it even if this fails).
 * Mistakes are added to *diag. Returns 0, -EINVAL or -ENOMEM. A text that weir itself has written from files may be
 * larger than the limits above (`is_own`): each of the files was within them.
 */
int weir_document_parse(const char *file, char *text, size_t bytes, bool is_own, struct weir_document **ret_document,
			struct weir_diag *diag);

/* The text from the start of this line (the line ends at the line feed), or NULL if there is no such line. */
const char *weir_document_line(const struct weir_document *document, int line);

void weir_document_free(struct weir_document *document);

static inline void weir_document_freep(struct weir_document **document)
{
	weir_document_free(*document);
}

/* ---- syntax errors ----
 *
 * libfyaml's, explained to the author of the file: where the mistake is, which is often not where the
 * parser stopped, and what to write. Knows nothing of libfyaml except its messages (0.7.12 and 0.8); an unknown message
 * is left unchanged.
 */

struct weir_syntax_error {
	int line, column; /* from 1; columns count characters */
	char message[160];
	char hint[200]; /* empty: none */
};

/* Advice for a section of a file that begins inside another section. */
#define WEIR_AT_THE_TOP "it belongs at the top of the file: begin it in the first column"

/* Improve an error whose line, column and message are set. */
void weir_explain_syntax(const char *text, size_t bytes, struct weir_syntax_error *error);

/* The end of quoted text that begins here; without a closing quote, the end of the line. */
size_t weir_skip_quoted(const char *text, size_t at, size_t end);

/* Does a separate token begin here? Inside a word, brackets, quotes and '#' are ordinary characters. `depth` is the
 * number of open brackets.
 */
bool weir_begins_token(const char *text, size_t at, size_t depth);

/* ---- comments in lists of Sentinel's rules ----
 *
 * They go from two slashes to the end of the line, and between slash-star and
 * star-slash. Sentinel Java's parser (fastjson) skips them, so its users write them. YAML reads them as words that
 * become part of the next field's name: `// per second "count": 5` is one field with that long name. In the rest of a
 * rule file, which is weir's own format, a comment is a mistake if the file is JSON; otherwise it means what it means
 * in YAML.
 */

/* Overwrite the comments with blanks, so that everything else keeps its position. `text` has a zero byte after its
 * `bytes`. Returns `bytes`, or the position of a comment that has no end, or that is inside brackets outside such lists
 * (then *ret_is_strange is true).
 */
size_t weir_blank_comments(char *text, size_t bytes, bool *ret_is_strange);

#endif
