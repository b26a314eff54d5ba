/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which files a command's arguments name, and their text. A directory stands for the rule files in it. Knows nothing of
 * what is in them.
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
	bool is_incomplete; /* some could not be found: that has been reported */
	bool is_out_of_memory;
};

/*
 * What the arguments name: files as they are; of a directory its *.yaml, *.yml and *.json, by their bytes (the C
 * locale's order), without hidden ones and whatever is no file. One that has none is a mistake, as an empty file is.
 */
void weir_find_rule_files(const char *const *arguments, size_t argument_count, struct weir_rule_files *ret_files,
			  struct weir_diag *diag);
void weir_rule_files_free(struct weir_rule_files *files);

/* The text of a file, with a zero byte behind it; `file` is its name for people. The caller frees *ret_text. 0, or
 * -errno having complained.
 */
int weir_read_rule_file(const char *path, const char *file, struct weir_diag *diag, char **ret_text, size_t *ret_bytes);

#endif
