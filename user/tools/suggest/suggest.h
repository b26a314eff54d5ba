/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room suggest: from traffic to a rule file with numbers in it. It measures the peaks of flows, derives the thresholds
 * that they need, and proves them by a replay of the same captures. Other rooms need only this header.
 *
 * The BPF program itself finds a packet's resources and flows (matcher.h), so there is only one definition of a match:
 * the one that will be attached. With a system call per packet, this handles some 500,000 packets a second, or 1 GB of
 * the smallest frames in half a minute. A matcher in userspace would be faster, but would be a second implementation
 * that could be wrong. docs/thresholds.md is the page for operators.
 */
#ifndef WEIR_SUGGEST_H
#define WEIR_SUGGEST_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "cli/command.h"
#include "peaks/peaks.h"
#include "harness/replay_run.h"
#include "rules/ruleset.h"

struct weir_suggest_options {
	const struct weir_ruleset *ruleset; /* whose resources are measured; NULL: those of services that are found */
	const char *const *captures;	    /* in this order; windows start empty in each */
	size_t capture_count;
	/* The interface to listen on if there are no captures. Otherwise the name for match.interface, or NULL. */
	const char *interface;
	enum weir_direction direction; /* for packets whose direction a capture does not record */
	uint64_t lasts_ns;	       /* how long to listen */
	uint32_t percentile_micro;
	uint64_t margin_micro, loss_micro;
	bool is_enforced;		   /* the traffic has already been limited: what an instance drops is missing */
	const volatile sig_atomic_t *stop; /* set when the user asks to stop; NULL: never */
	/* Called from time to time, during measurement and during the proof. NULL: never. */
	void (*measured)(uint64_t done, uint64_t total);
	void (*proved)(uint64_t done, uint64_t total);
};

/* A flow or, for a resource without key, an interval. */
struct weir_suggest_flow {
	struct weir_flow_key key; /* zeros for an interval */
	uint64_t begin_ns;	  /* zeros for an interval */
	uint64_t peak;		  /* in the suggestion's unit; in a proof, the number of packets that it lost */
};

#define WEIR_SUGGEST_FLOWS_SHOWN 10

struct weir_suggest_flows {
	uint64_t count; /* all of them; only the first are in `shown` */
	struct weir_suggest_flow shown[WEIR_SUGGEST_FLOWS_SHOWN];
};

/* What the replay of the suggested rules found for one suggestion. */
struct weir_suggest_proof {
	struct weir_tally dropped;
	struct weir_suggest_flows losers; /* those that lost the most */
	uint64_t losers_missed;		  /* no flow that was not counted lost more packets than this */
};

/* What is counted of a flow: its packets and bytes; for TCP the packets that open a connection, and the connections
 * that it has open at once.
 */
enum weir_measure { WEIR_MEASURE_PACKETS, WEIR_MEASURE_OPENINGS, WEIR_MEASURE_CONNECTIONS, WEIR_MEASURES };

/* One threshold, or the reason why there is none. */
struct weir_suggestion {
	size_t resource; /* index in the report's rule set */
	enum weir_measure measure;
	bool is_comment; /* others limit its resource better: a comment in the file, and no rule */
	struct weir_flow flow, fair_by;
	struct weir_rule_identity identity;   /* of its keys, to format them */
	const struct weir_key_labels *labels; /* ... those of the report */
	uint64_t interval_ns;
	uint32_t samples;
	enum weir_window_kind window;
	bool counts_bytes;
	struct weir_tally total; /* all its packets */
	/* Peaks of its flows, or of its intervals, without outliers: in packets, in bytes. */
	struct weir_distribution of[2];
	size_t measured;	 /* number of flows, or of intervals, with outliers */
	uint64_t outlier_min[2]; /* a flow from here up, in packets or in bytes, is left out of both */
	/* The smallest threshold under which flows up to the percentile lose no more than allowed. */
	uint64_t smallest;
	uint64_t threshold[2];		    /* with margin, rounded, in packets and in bytes */
	uint64_t above;			    /* flows or intervals with peaks above the threshold, including outliers */
	struct weir_suggest_flows outliers; /* not considered for the threshold; in the suggestion's unit */
	uint64_t *peaks;		    /* all peaks, ascending, in the suggestion's unit */
	uint32_t one_in;		    /* sampling ratio: one in 1, 2, 4 ... flows was tracked */
	bool is_bursty;			    /* half of the busier flows have half of their peak in a single bucket */
	bool is_lopsided;		    /* in a unit, too many are above ten times its p90 to be left out */
	struct weir_suggest_proof proof;    /* if has_proof */
};

/* Is it a rule of the file? Were there enough flows, or intervals, to suggest anything? */
static inline bool weir_suggestion_is_founded(const struct weir_suggestion *suggestion)
{
	return suggestion->measured >= WEIR_PEAKS_MIN && suggestion->threshold[suggestion->counts_bytes] &&
	       !suggestion->is_comment;
}

struct weir_suggest_report {
	struct weir_ruleset *ruleset; /* whose resources the suggestions are for; owned if it was found */
	bool owns_ruleset;
	struct weir_suggestion *suggestions;
	size_t count, with_threshold;
	struct weir_key_labels *labels; /* of flow keys; NULL: none has a set */
	uint32_t captures;
	uint64_t earliest_ns, latest_ns;
	struct weir_tally seen;
	uint64_t outgoing; /* packets among them */
	/* Packets of a resource; for services also the numbers of answers and of later fragments. */
	uint64_t matched, answers, portless;
	uint64_t missed;	       /* arrived while the ring of a live capture was full */
	uint64_t measuring_ns, cpu_ns; /* wall time, and CPU time of this process */
	bool is_damaged;	       /* a capture is truncated or damaged; *diag says where */
	bool is_live, is_enforced;
	uint32_t percentile_micro;
	uint64_t margin_micro, loss_micro;
	char *rule_file; /* text; NULL: there is no suggestion */
	bool has_proof;
	const char *no_proof; /* why there is none */
};

/*
 * Measure, suggest, prove. On success the caller frees *ret_report (weir_suggest_report_free). The report may have no
 * suggestion; with_threshold is then 0. -EINVAL: the request is wrong; -EINTR: the user stopped it. A live measurement
 * that is stopped ends early, and counts as a success.
 */
int weir_suggest(const struct weir_suggest_options *options, struct weir_suggest_report *ret_report,
		 struct weir_diag *diag);
void weir_suggest_report_free(struct weir_suggest_report *report);

/* Does the match select whole TCP connections, rather than only the packets that open them? */
bool weir_suggest_is_tcp(const struct weir_match *match);

/* Are its packets what this host answers as a server? They open no connections. */
bool weir_suggest_is_answers(const struct weir_match *match);

/* Draw the distributions of peaks, with the suggested thresholds as lines, as SVG. */
void weir_suggest_plot(const struct weir_suggest_report *report, FILE *stream);

/* "packets", "bytes", "new connections" or "open connections"; "flow" or "interval". */
const char *weir_suggestion_unit(const struct weir_suggestion *suggestion);
const char *weir_suggestion_noun(const struct weir_suggestion *suggestion);

extern const struct weir_command_entry weir_suggest_entry;

/* The measurements and suggestions, in words and as a JSON document. */
void weir_suggest_print_text(const struct weir_suggest_report *report, FILE *stream);
int weir_suggest_print_json(const struct weir_suggest_report *report, struct weir_diag *diag);

/* The proof: a replay of the captures with the suggested rules, with which anyone can check the promise. Fills in the
 * proofs of the report's suggestions. `text` is their rule file.
 */
int weir_suggest_prove(const struct weir_suggest_options *options, const char *text, struct weir_suggest_report *report,
		       struct weir_diag *diag);

/* The suggestions as a rule file that can be loaded unchanged and drops nothing, with a comment on each number, and
 * with the results of the proof if there is one; rules are in the order of the suggestions. The caller frees the text;
 * NULL: no memory.
 */
char *weir_suggest_rule_file(const struct weir_suggest_options *options, const struct weir_suggest_report *report);

#endif
