/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The named sets of an instance: their sizes, and what became of their files when they changed. Only reads.
 */
#ifndef WEIR_STATE_SET_SIZES_H
#define WEIR_STATE_SET_SIZES_H

#include "instance/instance.h"

struct weir_set_size {
	char *name, *file; /* owned; file NULL: its prefixes are in the rule file */
	uint64_t prefixes, labels;
};

struct weir_sets_view {
	struct weir_set_size *sets;
	size_t count;
	struct weir_sets_note note; /* refused_ns is 0 if there are no sets */
};

/* An instance that has not kept its rule set has no sets here. Takes long for a million prefixes. */
int weir_sets_read(const struct weir_instance *instance, struct weir_sets_view *ret_view, struct weir_diag *diag);
/* Update only the note of a view of the same load. */
void weir_sets_read_note(const struct weir_instance *instance, struct weir_sets_view *view);
void weir_sets_view_free(struct weir_sets_view *view);

/* When the file changed: how long ago, and (may be NULL) in seconds since the epoch. Returns false if it is gone. */
bool weir_set_file_age(const struct weir_set_size *set, uint64_t *ret_ago_ns, uint64_t *ret_unix_s);

#endif
