// SPDX-License-Identifier: GPL-2.0-only
#include "files/same_file.h"

#include <libgen.h>
#include <string.h>

#include "base/util.h"

bool weir_is_file(const char *path, const struct stat *file)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && status.st_dev == file->st_dev &&
	       status.st_ino == file->st_ino;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* For files that do not exist yet: do they have the same name in the same directory? */
static bool are_same_to_be(const char *path, const char *other)
{
	_cleanup_(weir_freep) char *path_copy = strdup(path), *other_copy = strdup(other);
	struct stat directory, other_directory;

	return path_copy && other_copy && !strcmp(last_name(path), last_name(other)) &&
	       !stat(dirname(path_copy), &directory) && !stat(dirname(other_copy), &other_directory) &&
	       directory.st_dev == other_directory.st_dev && directory.st_ino == other_directory.st_ino;
}

bool weir_are_same_file(const char *path, const char *other)
{
	struct stat file;

	if (!path || !other)
		return false;
	return !strcmp(path, other) || (!stat(other, &file) && weir_is_file(path, &file)) ||
	       are_same_to_be(path, other);
}
