/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How full the tables of ghosts are: what flows leave behind when they are evicted from full flow tables. Windows leave
 * theirs in one table (weir_row_ghosts.h), token buckets, Throttling and penalties in another (struct weir_ghost_set).
 * Only reads.
 */
#ifndef WEIR_STATE_GHOSTS_H
#define WEIR_STATE_GHOSTS_H

#include "instance/instance.h"

struct weir_ghosts_sum {
	uint64_t slots;	    /* 0: no rule needs the table, or this version does not know it */
	uint64_t used;	    /* ghosts that still count */
	uint64_t displaced; /* since attach: lost while they still counted */
	uint64_t joined;    /* since attach: flows without a slot that were counted together (whenFull: aggregate) */
};

enum weir_ghost_table { WEIR_GHOSTS_OF_WINDOWS, WEIR_GHOSTS_OF_OTHERS, WEIR_GHOST_TABLES };

struct weir_ghosts {
	struct weir_ghosts_sum of[WEIR_GHOST_TABLES];
};

/* Above this a table is nearly full: sets fill unevenly, and the first ghosts are lost. */
#define WEIR_GHOSTS_NEARLY_FULL_PERCENT 80u

static inline bool weir_ghosts_are_nearly_full(const struct weir_ghosts_sum *sum)
{
	return sum->used * 100 >= sum->slots * WEIR_GHOSTS_NEARLY_FULL_PERCENT && sum->slots;
}

/* All tables together. */
struct weir_ghosts_sum weir_ghosts_add(const struct weir_ghosts *ghosts);

/* Which limits leave ghosts there: a word for programs, and words for people. */
const char *weir_ghost_table_name(enum weir_ghost_table table);
const char *weir_ghost_table_words(enum weir_ghost_table table);

int weir_ghosts_look(const struct weir_instance *instance, struct weir_ghosts *ret_ghosts, struct weir_diag *diag);

#endif
