/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a result would be written over what is read: renamed over it, or written through a link, it destroys it. */
#ifndef WEIR_CMD_SAME_FILE_H
#define WEIR_CMD_SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* The file that is there, by whatever name. */
bool weir_is_file(const char *path, const struct stat *file);

/* Two names of one file, which need not be there yet. False where one of them is NULL. */
bool weir_are_same_file(const char *path, const char *other);

#endif
