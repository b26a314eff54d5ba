/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room replay: the program on a capture instead of an interface. Beside the replay itself: captures in and out,
 * verdicts as CSV, memory readings from a file, a picture, and the sizes of tables that forget nothing. Other rooms
 * need this header alone.
 *
 * Replay: the shipped BPF program evaluates every frame of a capture, in the capture's own time. It never
 * touches an interface or a running weir. The contract is docs/replay.md.
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
	const char *capture;		   /* pcap or pcapng file */
	const char *verdicts;		   /* CSV to write; NULL: none */
	bool verdicts_are_wide;		   /* ... with addresses, protocol and ports */
	const char *passed;		   /* capture to write; NULL: none */
	const char *plot;		   /* picture to write, SVG; NULL: none */
	const char *memory;		   /* CSV of memory readings; NULL: the reading is unknown */
	const char *system;		   /* CSV of load and CPU usage; NULL: they are unknown */
	const char *interface;		   /* for which match.interface holds; NULL: for none */
	enum weir_direction direction;	   /* of packets whose direction the capture does not say */
	bool tells_direction;		   /* ... in the verdicts, even where no rule is about what goes out */
	bool is_at_tc;			   /* what comes in is evaluated at tc, not by XDP: the same verdicts */
	bool is_without_shortcuts;	   /* evaluate by the kinds of rules alone: the same verdicts, more slowly */
	const volatile sig_atomic_t *stop; /* set when the user has had enough; NULL: never */
	/* Called now and then, and at last with done == total; NULL: never. */
	void (*progress)(uint64_t done, uint64_t total);
};

struct weir_replay_rule {
	struct weir_tally blocked, would_drop;
	uint64_t penalties;	    /* begun */
	uint64_t delayed, delay_ns; /* packets that throttling let pass with a wait, and all their waits */
	struct weir_connection_figures connections; /* at latest_ns; zeros of a rule that does not count them */
	struct weir_breaker_sum breaker;	    /* likewise, of a circuit breaker */
};

struct weir_replay_resource {
	struct weir_tally passed, blocked;
};

/* What a replay found. Arrays are by place in the rule set. */
struct weir_replay_report {
	uint64_t earliest_ns, latest_ns; /* in the capture; 0 when it is empty */
	struct weir_totals totals;	 /* frames too short for the program included */
	struct weir_tally out;		 /* of these, what went out */
	struct weir_replay_rule *rules;
	struct weir_replay_resource *resources;
	struct weir_replay_limits limits;
	const char *interface;	/* of keys: the name that the options say, or "?" */
	uint64_t cut_frames;	/* cut short by the capture, evaluated with zeros in place of the rest */
	uint64_t evaluating_ns; /* wall time of the evaluating pass */
	uint32_t flows_per_cpu; /* rows of the flow table that was enough */
	bool tells_direction;	/* some rule is about what goes out, or the options ask for it */
	bool is_damaged;	/* the capture ends before its end; *diag says where. The rest was evaluated */
};

/*
 * Replay options->capture. On success *ret_report is the caller's (weir_replay_report_free) and every
 * output is in its place; a damaged capture is a success with is_damaged. On failure no output is left.
 * -EINVAL says that the rule set or the memory readings are wrong, -EINTR that it was stopped. The thread
 * is on one CPU meanwhile.
 */
int weir_replay(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
		struct weir_replay_report *ret_report, struct weir_diag *diag);
void weir_replay_report_free(struct weir_replay_report *report);

#endif
