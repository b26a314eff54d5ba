/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room suggest: from traffic to a rule file with numbers in it. It measures the peaks of flows, says which thresholds
 * they need, and proves it by a replay of the same captures. Other rooms need this header alone.
 *
 * A packet's resources and flows are those that the BPF program itself finds (matcher.h): there is one idea of a match,
 * the one that will be attached. A system call for each packet allows some 500,000 a second, which is 1 GB of the
 * smallest frames in half a minute; a matcher of userspace would be faster, and a second one that could be wrong.
 * docs/thresholds.md is the page for operators.
 */
#ifndef WEIR_SUGGEST_H
#define WEIR_SUGGEST_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "peaks/peaks.h"
#include "replay/replay.h"
#include "rules/ruleset.h"

struct weir_suggest_options {
	const struct weir_ruleset *ruleset; /* whose resources are measured; NULL: the services that are found */
	const char *const *captures;	    /* in this order; each begins with empty windows */
	size_t capture_count;
	const char *interface; /* without captures: listen on it. With them: match.interface holds for it. Or NULL */
	enum weir_direction direction; /* of packets whose direction a capture does not say */
	uint64_t lasts_ns;	       /* how long to listen */
	uint32_t percentile_micro;
	uint64_t margin_micro, loss_micro;
	bool is_enforced;		   /* what an instance drops is not in what is seen */
	const volatile sig_atomic_t *stop; /* set when the user has had enough; NULL: never */
	/* Called now and then: while it measures, and while it proves. NULL: never. */
	void (*measured)(uint64_t done, uint64_t total);
	void (*proved)(uint64_t done, uint64_t total);
};

/* A flow, or of a resource without key an interval. */
struct weir_suggest_flow {
	struct weir_flow_key key; /* of an interval zeros */
	uint64_t begin_ns;	  /* of an interval */
	uint64_t peak;		  /* in the suggestion's unit; of a proof what it lost, in packets */
};

#define WEIR_SUGGEST_FLOWS_SHOWN 10

struct weir_suggest_flows {
	uint64_t count; /* all of them; the first of them are shown */
	struct weir_suggest_flow shown[WEIR_SUGGEST_FLOWS_SHOWN];
};

/* What the replay of the suggested rules found for one of them. */
struct weir_suggest_proof {
	struct weir_tally dropped;
	struct weir_suggest_flows losers; /* those that lost most */
	uint64_t losers_missed;		  /* a flow that is not counted lost no more packets than this */
};

/* One threshold, or why there is none. */
struct weir_suggestion {
	size_t resource; /* place in the report's rule set */
	struct weir_flow flow;
	struct weir_rule_identity identity; /* of its keys, for words */
	uint64_t interval_ns;
	uint32_t samples;
	enum weir_window_kind window;
	bool counts_bytes;
	struct weir_tally total;	    /* all its packets */
	struct weir_distribution of[2];	    /* peaks of its flows, or of its intervals: in packets, in bytes */
	uint64_t smallest;		    /* that loses no more than is allowed of flows up to the percentile */
	uint64_t threshold[2];		    /* with margin, rounded, in packets and in bytes; 0: too little was seen */
	uint64_t above;			    /* flows or intervals with peaks above the threshold, outliers included */
	struct weir_suggest_flows outliers; /* left out; in the suggestion's unit */
	uint64_t *peaks;		    /* all of them, ascending, in its unit */
	uint32_t one_in;		    /* only so many flows were followed: one in 1, 2, 4 ... */
	bool is_bursty;			    /* half of the busier flows have half of their peak in one bucket */
	bool is_lopsided;		 /* the busiest is above ten times the 90th percentile, and was not left out */
	struct weir_suggest_proof proof; /* with has_proof */
};

struct weir_suggest_report {
	struct weir_ruleset *ruleset; /* whose resources the suggestions are about; owned if it was found */
	bool owns_ruleset;
	struct weir_suggestion *suggestions;
	size_t count, with_threshold;
	uint32_t captures;
	uint64_t earliest_ns, latest_ns;
	struct weir_tally seen;
	uint64_t matched, answers, portless; /* packets of a resource; of services: answers and later fragments */
	uint64_t missed;		     /* came while the ring of a live capture was full */
	uint64_t measuring_ns, cpu_ns;	     /* wall time, and CPU time of this process */
	bool is_damaged;		     /* a capture ends before its end; *diag says where */
	bool is_live, is_enforced;
	uint32_t percentile_micro;
	uint64_t margin_micro, loss_micro;
	char *rule_file; /* text; NULL: nothing is suggested */
	bool has_proof;
	const char *no_proof; /* why not */
};

/*
 * Measure, suggest, prove. On success the caller frees *ret_report (weir_suggest_report_free), which may suggest
 * nothing: with_threshold is 0 then. -EINVAL: the request is wrong; -EINTR: it was stopped. A live one that is stopped
 * ends early, and is a success.
 */
int weir_suggest(const struct weir_suggest_options *options, struct weir_suggest_report *ret_report,
		 struct weir_diag *diag);
void weir_suggest_report_free(struct weir_suggest_report *report);

/* The distributions of peaks, with the suggested lines, as SVG. */
void weir_suggest_plot(const struct weir_suggest_report *report, FILE *stream);

/* "packets" or "bytes", "flow" or "interval". */
const char *weir_suggestion_unit(const struct weir_suggestion *suggestion);
const char *weir_suggestion_noun(const struct weir_suggestion *suggestion);

#endif
