/* SPDX-License-Identifier: GPL-2.0-only */
/* Would a result be written over its own input? Renaming over the input, or writing through a link to it, would destroy
 * it.
 */
#ifndef WEIR_CMD_SAME_FILE_H
#define WEIR_CMD_SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is the file at `path` this file, under whatever name? */
bool weir_is_file(const char *path, const struct stat *file);

/* Are these two names of one file, which need not exist yet? False if one of them is NULL. */
bool weir_are_same_file(const char *path, const char *other);

#endif
