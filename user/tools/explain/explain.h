/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room explain: what would happen to a packet, and why: which lists, resources and rules it meets, what its flows have
 * used, what is left, and when that becomes free. The answers come from the program itself, run in the sandbox
 * (program/copy.h): either a copy of the attached program, with this packet's flow state copied in, or the program of a
 * rule set that is not in force anywhere. Nothing is sent, and nothing that is attached changes.
 */
#ifndef WEIR_EXPLAIN_H
#define WEIR_EXPLAIN_H

#include "cli/command.h"
#include "control/controller.h"
#include "sandbox/sandbox_run.h"
#include "instance/instance.h"
#include "program/top_drops.h"
#include "rules/ruleset.h"
#include "state/fair_shares.h"
#include "tables/entry_state.h"

/* A packet, as far as it is described. */
struct weir_question {
	const uint8_t *frame; /* zeros in the fields that are not given */
	uint32_t frame_bytes; /* length of `frame`; at least 14 */
	uint32_t wire_bytes;
	uint32_t known;	  /* enum weir_match_field, or-ed: the given fields */
	uint32_t ifindex; /* 0: not given */
	enum weir_direction direction;
	bool is_ipv6; /* used if the protocol is not given */
	bool is_new;  /* it opens a connection that does not exist yet, so its exact ports do not matter */
};

/* Why a threshold has its value. */
enum weir_threshold_reason {
	WEIR_THRESHOLD_AS_WRITTEN,
	WEIR_THRESHOLD_OVERRIDE,
	WEIR_THRESHOLD_WARMING,	   /* WarmUp: depends on the tokens of the flow or the resource */
	WEIR_THRESHOLD_BY_MEMORY,  /* MemoryAdaptive, with a reading */
	WEIR_THRESHOLD_NO_READING, /* MemoryAdaptive, but the memory usage cannot be read */
	WEIR_THRESHOLD_SAFE,	   /* it would move, but the controller is stale or absent */
	WEIR_THRESHOLD_SHARED,	   /* depends on what other hosts leave */
	WEIR_THRESHOLD_UNKNOWN,	   /* it moves, but nothing is attached */
};

#define WEIR_EXPLAINED_BUCKETS WEIR_OCCUPY_CELLS
struct weir_explained_bucket {
	int64_t begins_ns; /* relative to now; positive for a future bucket */
	uint64_t units;
};

/* Counting of packets stops here. */
#define WEIR_EXPLAINED_MOST 1000000

struct weir_explained_rule {
	const struct weir_rule_info *info;
	struct weir_place place; /* where it is written; unknown without a file */
	uint32_t missing; /* enum weir_match_field, or-ed: not given, but its key needs it; the rest is then unknown */
	struct weir_flow_key key;
	/* The limit. */
	enum weir_threshold_reason reason;
	uint64_t threshold; /* in force, in units; for connections, their number */
	uint8_t override_bits;
	bool is_override_by_label;
	bool has_stored; /* WarmUp: */
	uint64_t stored;
	uint64_t stored_max, stored_warning;
	/* What the flow has used, according to the rule's kind. */
	bool has_window;
	uint64_t units;	   /* units in the window */
	uint64_t occupied; /* units in future buckets */
	uint64_t leased;   /* units that CPUs have counted but not used yet */
	uint32_t bucket_count;
	struct weir_explained_bucket buckets[WEIR_EXPLAINED_BUCKETS]; /* oldest first */
	bool has_plan;
	int64_t tat_ns; /* throttling: when the latest packet is due, relative to now */
	bool has_tokens;
	double tokens;
	bool has_connections;
	uint64_t connections; /* those that count */
	uint64_t learned;     /* total so far of connections whose opening was not seen, which do not count */
	bool has_breaker;
	struct weir_breaker_view breaker;
	bool has_shares; /* fairBy: */
	bool is_contended;
	struct weir_fair_use shares;	  /* if it is */
	struct weir_fair_child_use child; /* who sends the packet; weight 0: it has sent nothing lately */
	uint64_t penalty_left_ns;	  /* 0: none */
	struct weir_dropped_flow lost;	  /* what the flow has lost to the rule, on all CPUs; 0 packets: unknown */
	/* The rule's own answer to the packet, now. */
	bool admits;
	uint64_t delay_ns; /* how long the packet would wait (throttling) */
	bool has_left;
	uint64_t left;	   /* such packets that would pass at once; WEIR_EXPLAINED_MOST: that many or more */
	uint64_t frees_ns; /* time until such a packet passes: 0: now; or WEIR_SANDBOX_RUN_NEVER */
};

struct weir_explanation {
	enum weir_direction direction;
	bool is_live; /* of an attached instance, with its windows */
	const char *instance;
	struct weir_controller_report controller;
	uint64_t now_ns;
	const char **resources; /* names, in the order of their definition */
	size_t resource_count;
	struct weir_explained_rule *rules; /* in the order of evaluation */
	size_t rule_count;
	uint32_t unknown; /* enum weir_match_field, or-ed: not given, but relevant. 0: the verdict is certain */
	enum weir_verdict verdict;
	bool passes;				 /* always true if nothing is dropped (mode: observe) */
	const struct weir_rule_info *blocked_by; /* NULL: no rule */
	enum weir_on_block answer;		 /* what the sender gets, if settings.answers allows it */
	uint64_t delay_ns;
	/* For verdicts ALLOW and DENY: WEIR_SANDBOX_RUN_NEVER if a list decides, or the time until the timed entry
	 * ends.
	 */
	uint64_t list_ends_ns;
	/* Owners of what the pointers above refer to. */
	struct weir_instance *opened;
	struct weir_object *object;
	struct weir_image *image;
};

/* Explain the packet under what is attached with this name. The caller frees *ret_explanation, which is touched only on
 * success.
 */
int weir_explain_instance(const char *name, const struct weir_question *question,
			  struct weir_explanation *ret_explanation, struct weir_diag *diag);

/* Explain the packet under a rule set that is not in force anywhere, so there are no windows. Borrows names of the rule
 * set.
 */
int weir_explain_ruleset(const struct weir_ruleset *ruleset, const struct weir_question *question,
			 struct weir_explanation *ret_explanation, struct weir_diag *diag);

void weir_explanation_free(struct weir_explanation *explanation);

extern const struct weir_command_entry weir_explain_entry;

#endif
