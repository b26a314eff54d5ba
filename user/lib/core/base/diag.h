/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mistakes and warnings. The function that finds one adds it to a diag, and only the command prints the diag, so that
 * each is reported once. Nothing here prints unless asked to.
 *
 * A message is lower case, names its subject in single quotes, and may carry a hint (what to do). With a source
 * position it is shown as
 *
 *	rules/voice.yaml:14:16: threshold '20K' is not a number
 *	    threshold: 20K
 *	               ^~~
 *	    write 20k or 20Ki
 */
#ifndef WEIR_BASE_DIAG_H
#define WEIR_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The most mistakes that are reported for one input, and the most warnings: a file of the wrong type could cause a
 * million. The reader counts them. Chosen, not derived.
 */
#define WEIR_MISTAKES_MAX 1000

/* A position in a rule file. Lines and columns count from 1; columns count characters, not bytes. */
struct weir_place {
	const char *file; /* NULL: no position. Owned by the reader of the file, outlives the diag */
	int line;
	int column;
	int width; /* characters to underline; 0 means 1 */
};

struct weir_diag_entry {
	char *file; /* owned copies */
	int line, column, width;
	char *source_line; /* text of that line, or the part around the place if the line is long; or NULL */
	int caret;	   /* characters of source_line before the place */
	char *message;
	char *hint; /* or NULL */
	bool is_warning;
	bool is_note; /* neither a mistake nor a warning: an interface has appeared */
};

struct weir_diag {
	struct weir_diag_entry *entries;
	size_t count;
	size_t errors; /* entries that are neither warnings nor notes */
};

/*
 * Add a mistake. `hint` may be NULL. So may `source_line`, which ends at its zero byte or line feed. In every text,
 * control characters that a terminal would obey become '?' (printable.h), so that a rule file cannot control the
 * terminal. Returns -EINVAL, so that callers can write `return weir_diag_error(...)`.
 */
int weir_diag_error(struct weir_diag *diag, const struct weir_place *place, const char *source_line, const char *hint,
		    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same for a warning: the thing it is about stays in force. */
void weir_diag_warning(struct weir_diag *diag, const struct weir_place *place, const char *source_line,
		       const char *hint, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same for a note, which is no cause for worry. It is printed as "note: ...", after everything else. */
void weir_diag_note(struct weir_diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Something failed without a position: "MESSAGE: strerror(err)" when err is not 0. Returns -err
 * (-EINVAL when err is 0).
 */
int weir_diag_fail(struct weir_diag *diag, int err, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The text from the start of this line (the line ends at the line feed), or NULL if there is no such line. */
const char *weir_text_line(const char *text, int line);

/* Give entries about this file the line that they point at, if they have none yet. */
void weir_diag_quote(struct weir_diag *diag, const char *file, const char *text);

/* Sort the entries into the order in which they are printed. If memory is short they keep their order. */
void weir_diag_sort(struct weir_diag *diag);

/* Print every entry, mistakes first in order of file and line, then warnings. */
void weir_diag_print(const struct weir_diag *diag, FILE *stream);
/* The same, in colours of a terminal (ECMA-48): the place, the kind, and what the caret points at. */
void weir_diag_print_coloured(const struct weir_diag *diag, FILE *stream);
/* The same, with a prefix before each line: one for mistakes, one for warnings. */
void weir_diag_print_prefixed(const struct weir_diag *diag, const char *mistake, const char *warning, FILE *stream);
void weir_diag_free(struct weir_diag *diag);

/* Move all entries from `from` to `diag`. With as_warnings, mistakes become warnings there. */
void weir_diag_move(struct weir_diag *diag, struct weir_diag *from, bool as_warnings);

#endif
