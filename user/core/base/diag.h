/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mistakes and warnings, collected where they are found and printed by the command alone, so that
 * each is reported once. Never prints by itself.
 *
 * A message is lower case, names its subject in single quotes, and may carry a hint (what to do).
 * With a source position it is shown as
 *
 *	rules/dns.yaml:14:16: threshold '20K' is not a number
 *	    threshold: 20K
 *	               ^~~
 *	    write 20k or 20Ki
 */
#ifndef WEIR_BASE_DIAG_H
#define WEIR_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* So many mistakes of what is read, and so many warnings, are reported: a file that is not what it should be could hold
 * a million. Whoever reads counts them. Chosen, not derived.
 */
#define WEIR_MISTAKES_MAX 1000

/* Where in a rule file. Lines and columns count from 1; columns count characters, not bytes. */
struct weir_place {
	const char *file; /* NULL: no position. Owned by the reader of the file, outlives the diag */
	int line;
	int column;
	int width; /* characters to underline; 0 is taken as 1 */
};

struct weir_diag_entry {
	char *file; /* owned copies */
	int line, column, width;
	char *source_line; /* text of that line, or what surrounds the place when it is long; or NULL */
	int caret;	   /* characters of source_line before the place */
	char *message;
	char *hint; /* or NULL */
	bool is_warning;
	bool is_note; /* good news, or neither: an interface has come */
};

struct weir_diag {
	struct weir_diag_entry *entries;
	size_t count;
	size_t errors; /* entries that are neither warnings nor notes */
};

/*
 * Add a mistake. `hint` may be NULL; so may `source_line`, which ends at its zero or line feed. What
 * a terminal would obey is '?' in any text (printable.h), so that a rule file cannot talk to it. Returns
 * -EINVAL, so that `return weir_diag_error(...)` reads well.
 */
int weir_diag_error(struct weir_diag *diag, const struct weir_place *place, const char *source_line, const char *hint,
		    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same for what is not a mistake: what it is about stays in force. */
void weir_diag_warning(struct weir_diag *diag, const struct weir_place *place, const char *source_line,
		       const char *hint, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same, of what is no cause for worry: printed as "note: ...", after all else. */
void weir_diag_note(struct weir_diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Something failed without a position: "MESSAGE: strerror(err)" when err is not 0. Returns -err
 * (-EINVAL when err is 0).
 */
int weir_diag_fail(struct weir_diag *diag, int err, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The text from the start of a line on (it ends at the line feed), or NULL when there is no such line. */
const char *weir_text_line(const char *text, int line);

/* Give entries about this file the line that they point at, should they have none yet. */
void weir_diag_quote(struct weir_diag *diag, const char *file, const char *text);

/* Put entries in the order in which they are printed. Without memory for that they stay as they are. */
void weir_diag_sort(struct weir_diag *diag);

/* Print every entry, mistakes first in order of file and line, then warnings. */
void weir_diag_print(const struct weir_diag *diag, FILE *stream);
/* The same, in colours of a terminal (ECMA-48): the place, the kind, and what the caret points at. */
void weir_diag_print_coloured(const struct weir_diag *diag, FILE *stream);
/* The same, with a prefix before each line: of mistakes, of warnings. */
void weir_diag_print_prefixed(const struct weir_diag *diag, const char *mistake, const char *warning, FILE *stream);
void weir_diag_free(struct weir_diag *diag);

/* Move all entries from one to the other; as_warnings: its mistakes are none where they go. */
void weir_diag_move(struct weir_diag *diag, struct weir_diag *from, bool as_warnings);

#endif
