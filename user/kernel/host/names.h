/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of names, such as the names in a directory. Independent of what the names refer to.
 */
#ifndef WEIR_HOST_NAMES_H
#define WEIR_HOST_NAMES_H

#include <stddef.h>

struct weir_names {
	char **names;
	size_t count;
};

/* The names in a directory, sorted, without hidden files. Returns 0 or -errno. */
int weir_names_read(const char *path, struct weir_names *ret_names);
/* Append a copy of `name`. Returns 0 or -ENOMEM. */
int weir_names_add(struct weir_names *names, const char *name);

void weir_names_free(struct weir_names *names);

#endif
