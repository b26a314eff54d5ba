/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Find the files that a command's arguments name, and read their text. A directory stands for the rule files in it.
 * Nothing here interprets the text.
 */
#ifndef WEIR_RULES_FILES_H
#define WEIR_RULES_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* Paths to read, in order; "-" is standard input. */
struct weir_rule_files {
	char **paths;
	size_t count;
	bool is_incomplete; /* some could not be found; this has been reported */
	bool is_out_of_memory;
};

/*
 * The files that the arguments name. A file is taken as it is. A directory contributes its *.yaml, *.yml and *.json
 * files, in the order of their bytes (the C locale's), except hidden ones and anything that is not a file. A directory
 * without such files is a mistake, as an empty file is.
 */
void weir_find_rule_files(const char *const *arguments, size_t argument_count, struct weir_rule_files *ret_files,
			  struct weir_diag *diag);
void weir_rule_files_free(struct weir_rule_files *files);

/* Read the text of a file, followed by a zero byte. `file` is its name in messages. The caller frees *ret_text. Returns
 * 0, or -errno after adding the reason to *diag.
 */
int weir_read_rule_file(const char *path, const char *file, struct weir_diag *diag, char **ret_text, size_t *ret_bytes);

#endif
