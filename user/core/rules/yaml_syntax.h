/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What libfyaml's syntax errors mean to who wrote the file: the place of the mistake, which is often not where the
 * parser stumbled, and what to write. Knows nothing of libfyaml but the texts of its messages (0.7.12 and 0.8); one
 * that it does not know stays as it is.
 */
#ifndef WEIR_RULES_YAML_SYNTAX_H
#define WEIR_RULES_YAML_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>

struct weir_syntax_error {
	int line, column; /* from 1; columns count characters */
	char message[160];
	char hint[200]; /* empty: none */
};

/* What to do with a part of a file that begins inside another. */
#define WEIR_AT_THE_TOP "it belongs at the top of the file: begin it in the first column"

/* Improve on an error that has line, column and message. */
void weir_explain_syntax(const char *text, size_t bytes, struct weir_syntax_error *error);

/* The end of what begins with a quote; without a closing one, of the line. */
size_t weir_skip_quoted(const char *text, size_t at, size_t end);

/* Does a token of its own begin here? Elsewhere in a word brackets, quotes and '#' are letters. `depth`: how many
 * brackets are open.
 */
bool weir_begins_token(const char *text, size_t at, size_t depth);

#endif
