/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * House replay: `weir replay`, the program that weir ships on every frame of a capture (harness/replay_run.h). Here are
 * what it writes (verdicts as CSV, the packets that pass, a picture) and reads beside the capture (memory, load). The
 * contract is docs/replay.md.
 */
#ifndef WEIR_REPLAY_H
#define WEIR_REPLAY_H

#include "base/diag.h"
#include "cli/command.h"
#include "harness/replay_run.h"
#include "rules/ruleset.h"

struct weir_replay_options {
	struct weir_replay_run run; /* but for the readings, the samples and the outputs */
	const char *verdicts;	    /* CSV to write; NULL: none */
	bool verdicts_are_wide;	    /* ... with addresses, protocol and ports */
	const char *passed;	    /* capture to write; NULL: none */
	const char *answers;	    /* capture to write, of the answers to blocked packets; NULL: none */
	const char *plot;	    /* picture to write, SVG; NULL: none */
	const char *memory;	    /* CSV of memory readings; NULL: the reading is unknown */
	const char *system;	    /* CSV of load and CPU usage; NULL: they are unknown */
};

/*
 * Replay options->run.capture. As weir_replay_run(): on success every output is in its final place; on failure none is
 * left. -EINVAL: the rule set or the memory readings are wrong.
 */
int weir_replay(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
		struct weir_replay_report *ret_report, struct weir_diag *diag);

extern const struct weir_command_entry weir_replay_entry;

/* ---- print_replay.c: the summary of a replay, in words and as a JSON document ---- */

void weir_replay_print_text(const struct weir_ruleset *ruleset, const struct weir_replay_report *report);
int weir_replay_print_json(const struct weir_ruleset *ruleset, const struct weir_replay_report *report,
			   struct weir_diag *diag);

#endif
