/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room kinds: one file for each kind of limit, with all that is peculiar to it, and kinds.c with the table. Other rooms
 * do not include this one: they find a kind by kind/kind.h, which says what its functions are for.
 */
#ifndef WEIR_KINDS_H
#define WEIR_KINDS_H

#include "kind/kind.h"

/* refResource of a rule with relationStrategy AssociatedResource: fills in rule->ref_resource, or complains. */
void weir_check_reference(struct weir_reader *reader, const struct weir_draft *draft);

#endif
