/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Explains libfyaml's syntax errors to the author of the file: where the mistake is, which is often not where the
 * parser stopped, and what to write. Knows nothing of libfyaml except its messages (0.7.12 and 0.8); an unknown message
 * is left unchanged.
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

#endif
