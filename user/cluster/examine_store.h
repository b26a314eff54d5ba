/* SPDX-License-Identifier: GPL-2.0-only */
/* The store of shared limits, as seen from this host. Asks the store, which takes a second or two; changes nothing. */
#ifndef WEIR_CLUSTER_EXAMINE_STORE_H
#define WEIR_CLUSTER_EXAMINE_STORE_H

#include "state/examine.h"

/* Adds nothing if no rule is shared. */
void weir_examine_store(const struct weir_ruleset *ruleset, struct weir_findings *findings);

#endif
