/* SPDX-License-Identifier: GPL-2.0-only */
/* The summary of a replay, in words and as a JSON document. */
#ifndef WEIR_CMD_PRINT_REPLAY_H
#define WEIR_CMD_PRINT_REPLAY_H

#include <inttypes.h>
#include <libgen.h>

#include "base/diag.h"
#include "kind/kind.h"
#include "replay/replay.h"
#include "rules/ruleset.h"

/* ---- print_replay.c ---- */

void weir_replay_print_text(const struct weir_ruleset *ruleset, const struct weir_replay_report *report);
int weir_replay_print_json(const struct weir_ruleset *ruleset, const struct weir_replay_report *report,
			   struct weir_diag *diag);

#endif
