/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verdict on every packet of a replay, one line each, as docs/replay.md describes for `--verdicts`. Writes only to
 * the stream; its owner checks for write errors. For replay.c.
 */
#ifndef WEIR_REPLAY_VERDICT_CSV_H
#define WEIR_REPLAY_VERDICT_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/replay_run.h"
#include "rules/ruleset.h"
#include "weir_abi.h"
#include "weir_hook.h"

struct weir_verdict_columns {
	bool is_wide;	    /* with addresses, protocol and ports */
	bool has_direction; /* ... and with the direction, behind those */
	bool has_answer;    /* ... and with the answer to its sender, in the last column */
};

/* Write the line with the column names. */
void weir_verdict_csv_begin(FILE *stream, struct weir_verdict_columns columns);

/* Write one line. `number` counts packets from 1; time_ns is the capture's. */
void weir_verdict_csv_write(FILE *stream, const struct weir_ruleset *ruleset, uint64_t number, uint64_t time_ns,
			    const struct weir_evaluation *evaluation, struct weir_verdict_columns columns);

#endif
