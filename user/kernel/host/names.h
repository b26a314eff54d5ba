/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of names, as those in a directory. Says nothing of what they name.
 */
#ifndef WEIR_HOST_NAMES_H
#define WEIR_HOST_NAMES_H

#include <stddef.h>

struct weir_names {
	char **names;
	size_t count;
};

/* Names in a directory but for hidden ones, sorted. Returns 0 or -errno. */
int weir_names_read(const char *path, struct weir_names *ret_names);
/* A copy of `name`, at the end. Returns 0 or -ENOMEM. */
int weir_names_add(struct weir_names *names, const char *name);

void weir_names_free(struct weir_names *names);

#endif
