/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room replay: runs the program on a capture instead of an interface. Besides the replay itself, it has captures in and
 * out, verdicts as CSV, memory readings from a file, a picture, and the sizes for tables that forget nothing. Other
 * rooms need only this header.
 *
 * The BPF program that weir ships evaluates every frame of a capture, in the capture's own time. Replay never touches
 * an interface or a running weir. The contract is docs/replay.md.
 */
#ifndef WEIR_REPLAY_H
#define WEIR_REPLAY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "replay/limited.h"
#include "rules/ruleset.h"
#include "tables/breaker_state.h"
#include "tables/connection_counts.h"
#include "weir_abi.h"
#include "weir_hook.h"

struct weir_replay_options {
	const char *capture;	/* pcap or pcapng file */
	const char *verdicts;	/* CSV to write; NULL: none */
	bool verdicts_are_wide; /* ... with addresses, protocol and ports */
	const char *passed;	/* capture to write; NULL: none */
	const char *plot;	/* picture to write, SVG; NULL: none */
	const char *memory;	/* CSV of memory readings; NULL: the reading is unknown */
	const char *system;	/* CSV of load and CPU usage; NULL: they are unknown */
	/* The name that match.interface is compared with; NULL: no interface matches. */
	const char *interface;
	enum weir_direction direction;	   /* for packets whose direction the capture does not record */
	bool shows_direction;		   /* ... in the verdicts, even if no rule is for outgoing packets */
	bool is_at_tc;			   /* incoming packets are evaluated at tc, not by XDP: the same verdicts */
	bool is_without_shortcuts;	   /* evaluate without shortcuts: the same verdicts, more slowly */
	const volatile sig_atomic_t *stop; /* set when the user asks to stop; NULL: never */
	/* Called from time to time, and at the end with done == total; NULL: never. */
	void (*progress)(uint64_t done, uint64_t total);
};

struct weir_replay_rule {
	struct weir_tally blocked, would_drop;
	uint64_t penalties;			    /* penalties that began */
	uint64_t delayed, delay_ns;		    /* packets that throttling delayed, and the sum of their waits */
	struct weir_connection_figures connections; /* at latest_ns; zeros if the rule does not count them */
	struct weir_breaker_sum breaker;	    /* likewise, if the rule is a circuit breaker */
};

struct weir_replay_resource {
	struct weir_tally passed, blocked;
};

/* The result of a replay. Arrays are by index in the rule set. */
struct weir_replay_report {
	uint64_t earliest_ns, latest_ns; /* of the capture; 0 if it is empty */
	struct weir_totals totals;	 /* including frames too short for the program */
	struct weir_tally out;		 /* the outgoing part of these */
	struct weir_replay_rule *rules;
	struct weir_replay_resource *resources;
	struct weir_replay_limits limits;
	const char *interface;	/* in flow keys: the name from the options, or "?" */
	uint64_t cut_frames;	/* truncated by the capture; evaluated with zeros in place of the rest */
	uint64_t evaluating_ns; /* wall time of the pass that evaluates */
	uint32_t flows_per_cpu; /* rows of the flow table that was large enough */
	bool shows_direction;	/* some rule is for outgoing packets, or the options ask for it */
	/* The capture is truncated or damaged; *diag says where. Everything before that was evaluated. */
	bool is_damaged;
};

/*
 * Replay options->capture. On success the caller owns *ret_report (weir_replay_report_free) and every output is in its
 * final place; a damaged capture is a success with is_damaged. On failure no output is left. -EINVAL: the rule set or
 * the memory readings are wrong; -EINTR: the user stopped it. While it runs, the thread is bound to one CPU.
 */
int weir_replay(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
		struct weir_replay_report *ret_report, struct weir_diag *diag);
void weir_replay_report_free(struct weir_replay_report *report);

#endif
