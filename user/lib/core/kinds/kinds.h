/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room kinds: one file per kind of limit, with everything that is specific to it, and kinds.c with the table. Other
 * rooms do not include this header: they use kind/kind.h, which documents the functions of a kind.
 */
#ifndef WEIR_KINDS_H
#define WEIR_KINDS_H

#include "kind/kind.h"

/* Check refResource of a rule with relationStrategy AssociatedResource: fill in rule->ref_resource, or complain. */
void weir_check_reference(struct weir_reader *reader, const struct weir_draft *draft);

#endif
