/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule sets that an instance has had: the one in force, the one before it, and while that one is not confirmed the
 * one before that. Each is kept as text (emit.h) with its lists in binary, so that it can be shown and put in force
 * again by another command, another day, and mostly by another version of weir. Pure: bytes in, bytes out.
 */
#ifndef WEIR_RULES_HISTORY_H
#define WEIR_RULES_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "rules/ruleset.h"

/* How a rule set came into force. */
enum weir_transition_kind {
	WEIR_TRANSITION_LOADED,	  /* from files, by an attach or a reload */
	WEIR_TRANSITION_ROLLBACK, /* by a rollback to the set before */
	WEIR_TRANSITION_RETURNED, /* the one after it was not confirmed */
	WEIR_TRANSITION_COUNT
};

struct weir_kept_set {
	uint64_t generation; /* of the load that put it in force */
	uint64_t digest;     /* of text and lists: two sets with the same are the same */
	enum weir_transition_kind transition;
	char *files; /* names, one a line */
	char *text;
	uint8_t *listed; /* packed */
	size_t listed_bytes;
};

#define WEIR_HISTORY_SETS 3

struct weir_history {
	struct weir_kept_set *sets[WEIR_HISTORY_SETS]; /* the latest first, then no gap */
};

void weir_kept_set_free(struct weir_kept_set *set);
void weir_history_free(struct weir_history *history);

static inline void weir_kept_set_freep(struct weir_kept_set **set)
{
	weir_kept_set_free(*set);
}

/* To be kept: the caller owns *ret_set. -EFBIG: its text is larger than a rule file may be. -ENOMEM. */
int weir_kept_set_make(const struct weir_ruleset *ruleset, struct weir_kept_set **ret_set);

/* The rule set again; without warnings, which have been reported. Mistakes land in *diag (-EINVAL): it was kept by a
 * version of weir that knew more.
 */
int weir_kept_set_read(const struct weir_kept_set *set, struct weir_ruleset **ret_ruleset, struct weir_diag *diag);

/*
 * A rule set takes the place of the latest, which is the one before it from then on; what is equal to the latest is no
 * step back. With `is_unconfirmed` the one before that stays as well, for weir_history_return().
 */
void weir_history_push(struct weir_history *history, struct weir_kept_set *set, bool is_unconfirmed);
/* The latest and the one before it change places. */
void weir_history_swap(struct weir_history *history);
/* As if the latest, which was unconfirmed, had never been. */
void weir_history_return(struct weir_history *history);
/* It is confirmed: what would only be needed for its return goes. */
void weir_history_confirm(struct weir_history *history);

/* Bytes that weir_history_unpack() reads. The caller frees them. -ENOMEM. */
int weir_history_pack(const struct weir_history *history, uint8_t **ret_bytes, size_t *ret_count);
/* -EPROTO: no history, or one of another version. The caller frees *ret_history. Bytes after it are none of it. */
int weir_history_unpack(const uint8_t *bytes, size_t count, struct weir_history *ret_history);

#endif
