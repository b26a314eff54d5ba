/* SPDX-License-Identifier: GPL-2.0-only */
/* The store of limits that hosts share, as this host meets it. Asks it for a second or two; changes nothing. */
#ifndef WEIR_STATE_EXAMINE_STORE_H
#define WEIR_STATE_EXAMINE_STORE_H

#include "state/examine.h"

/* Adds nothing where the rules share no limit. */
void weir_examine_store(const struct weir_ruleset *ruleset, struct weir_findings *findings);

#endif
