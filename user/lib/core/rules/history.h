/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule sets that an instance has had: the one in force, the one before it, and, while the one in force is not
 * confirmed, the one before that. Each is kept as text (emit.h) with its lists in binary. So another command can show
 * it or put it in force again on another day, usually even with another version of weir. Pure: bytes in, bytes out.
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
	WEIR_TRANSITION_LOADED,	   /* from files, by an attach or a reload */
	WEIR_TRANSITION_ROLLBACK,  /* by a rollback to the previous rule set */
	WEIR_TRANSITION_RETURNED,  /* automatically, because the rule set after it was not confirmed */
	WEIR_TRANSITION_LAST_GOOD, /* from the set stored on disk: a service started with wrong rule files */
	WEIR_TRANSITION_COUNT
};

struct weir_kept_set {
	uint64_t generation; /* of the load that put it in force */
	uint64_t digest;     /* of text and lists: two rule sets with the same digest are the same */
	enum weir_transition_kind transition;
	char *files; /* names, one per line */
	char *text;
	uint8_t *listed;		 /* packed: the lists, then the prefixes and labels of sets */
	size_t listed_bytes, sets_bytes; /* of both, and of sets alone */
};

#define WEIR_HISTORY_SETS 3

struct weir_history {
	struct weir_kept_set *sets[WEIR_HISTORY_SETS]; /* the latest first, without gaps */
};

void weir_kept_set_free(struct weir_kept_set *set);
void weir_history_free(struct weir_history *history);

static inline void weir_kept_set_freep(struct weir_kept_set **set)
{
	weir_kept_set_free(*set);
}

/* Make a rule set that can be kept; the caller owns *ret_set. -ENOMEM. */
int weir_kept_set_make(const struct weir_ruleset *ruleset, struct weir_kept_set **ret_set);

/* Whether text and lists are those that its digest was made of. */
bool weir_kept_set_is_whole(const struct weir_kept_set *set);

/* Parse the rule set again. Warnings are suppressed, since they were reported earlier. Mistakes are added to *diag
 * (-EINVAL): the set was kept by a newer version of weir.
 */
int weir_kept_set_read(const struct weir_kept_set *set, struct weir_ruleset **ret_ruleset, struct weir_diag *diag);
/* The same without the prefixes of its lists and sets. */
int weir_kept_set_read_text(const struct weir_kept_set *set, struct weir_ruleset **ret_ruleset, struct weir_diag *diag);
/* The same with the present files of its sets, and the other prefixes as they were kept. Mistakes are of these files,
 * and warnings are in *diag, too.
 */
int weir_kept_set_read_files(const struct weir_kept_set *set, struct weir_ruleset **ret_ruleset,
			     struct weir_diag *diag);
/* The same as weir_kept_set_read(); places, and whoever loads it, name `name` as the file. */
int weir_kept_set_read_as(const struct weir_kept_set *set, const char *name, struct weir_ruleset **ret_ruleset,
			  struct weir_diag *diag);

/*
 * Add a rule set as the latest; the former latest becomes the one before it. A set that equals the latest does not add
 * a step. With `is_unconfirmed`, the set two steps back is kept as well, for weir_history_return().
 */
void weir_history_push(struct weir_history *history, struct weir_kept_set *set, bool is_unconfirmed);
/* Swap the latest set and the one before it. */
void weir_history_swap(struct weir_history *history);
/* Remove the latest set, which was not confirmed, as if it had never been added. */
void weir_history_return(struct weir_history *history);
/* The latest set is confirmed: drop the set that was kept only for its return. */
void weir_history_confirm(struct weir_history *history);

/* Serialise the history for weir_history_unpack(). The caller frees the bytes. -ENOMEM. */
int weir_history_pack(const struct weir_history *history, uint8_t **ret_bytes, size_t *ret_count);
/* -EPROTO: the bytes are not a history, or are of another version. The caller frees *ret_history. Bytes after the
 * history are ignored.
 */
int weir_history_unpack(const uint8_t *bytes, size_t count, struct weir_history *ret_history);
/* Does the latest set in these bytes have named sets? */
bool weir_history_has_sets(const uint8_t *bytes, size_t count);

#endif
