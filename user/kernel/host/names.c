// SPDX-License-Identifier: GPL-2.0-only
#include "host/names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

int weir_names_add(struct weir_names *names, const char *name)
{
	char **slot = weir_array_add((void **)&names->names, names->count, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	*slot = strdup(name);
	if (!*slot)
		return -ENOMEM;
	names->count++;
	return 0;
}

int weir_names_read(const char *path, struct weir_names *ret_names)
{
	_cleanup_(close_directory) DIR *directory = opendir(path);
	_cleanup_(weir_names_free) struct weir_names names = {};
	struct dirent *entry;

	if (!directory)
		return -errno;
	while (errno = 0, (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && weir_names_add(&names, entry->d_name))
			return -ENOMEM;
	if (errno)
		return -errno;
	if (names.count)
		qsort(names.names, names.count, sizeof(*names.names), compare_names);
	*ret_names = names;
	names = (struct weir_names){};
	return 0;
}

void weir_names_free(struct weir_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct weir_names){};
}
