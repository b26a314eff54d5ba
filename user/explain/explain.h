/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room explain: what would become of a packet, and why: which lists, resources and rules it meets, what its flows have
 * used, what is left, when that frees. The program itself is asked, in the sandbox (program/copy.h): the one that is
 * attached, with what its tables hold of the packet's flows, or that of a rule set that is nowhere in force. Nothing is
 * sent, and nothing that is attached changes.
 */
#ifndef WEIR_EXPLAIN_H
#define WEIR_EXPLAIN_H

#include "control/controller.h"
#include "explain/sandbox_run.h"
#include "instance/instance.h"
#include "program/top_drops.h"
#include "rules/ruleset.h"
#include "tables/breaker_state.h"

/* A packet, or as much as is said of one. */
struct weir_question {
	const uint8_t *frame; /* with zeros for what is not said */
	uint32_t frame_bytes; /* of these; at least 14 */
	uint32_t wire_bytes;
	uint32_t known;	  /* enum weir_match_field, or-ed: what is said of it */
	uint32_t ifindex; /* 0: not said */
	enum weir_direction direction;
	bool is_ipv6; /* where the protocol is not said */
	bool is_new;  /* it opens a connection that is not there: which ports it has says no rule more */
};

/* Why a threshold is what it is. */
enum weir_threshold_reason {
	WEIR_THRESHOLD_AS_WRITTEN,
	WEIR_THRESHOLD_OVERRIDE,
	WEIR_THRESHOLD_WARMING,	   /* WarmUp, by the flow's or the resource's tokens */
	WEIR_THRESHOLD_BY_MEMORY,  /* MemoryAdaptive, by a reading */
	WEIR_THRESHOLD_NO_READING, /* MemoryAdaptive, and memory cannot be read */
	WEIR_THRESHOLD_SAFE,	   /* it would move, and the controller is stale or absent */
	WEIR_THRESHOLD_SHARED,	   /* by what other hosts leave of it */
	WEIR_THRESHOLD_UNKNOWN,	   /* it moves, and nothing is attached */
};

#define WEIR_EXPLAINED_BUCKETS WEIR_OCCUPY_CELLS
struct weir_explained_bucket {
	int64_t begins_ns; /* from now; that of a bucket yet to come is positive */
	uint64_t units;
};

/* Packets are counted to here. */
#define WEIR_EXPLAINED_MOST 1000000

struct weir_explained_rule {
	const struct weir_rule_info *info;
	struct weir_place place; /* where it is written; without a file: not known */
	uint32_t missing; /* enum weir_match_field, or-ed: read for its key, not said. Then the rest is not known */
	struct weir_flow_key key;
	/* the limit */
	enum weir_threshold_reason reason;
	uint64_t threshold; /* units in force; of connections, connections */
	uint8_t override_bits;
	bool has_stored; /* WarmUp: */
	uint64_t stored;
	uint64_t stored_max, stored_warning;
	/* what the flow has used: what its kind keeps of it */
	bool has_window;
	uint64_t units;	   /* in the window */
	uint64_t occupied; /* in buckets yet to come */
	uint64_t leased;   /* counted already, by CPUs that have not used them */
	uint32_t bucket_count;
	struct weir_explained_bucket buckets[WEIR_EXPLAINED_BUCKETS]; /* oldest first */
	bool has_plan;
	int64_t tat_ns; /* throttling: when the latest packet is due, from now */
	bool has_tokens;
	double tokens;
	bool has_connections;
	uint64_t connections; /* that count */
	uint64_t learned;     /* so far, of those that nobody saw open and count for nothing */
	bool has_breaker;
	struct weir_breaker_view breaker;
	uint64_t penalty_left_ns; /* 0: none */
	struct weir_dropped_flow
		lost; /* what the flow has lost to the rule, all CPUs together; 0 packets: none is known */
	/* its own answer to the packet, now */
	bool admits;
	uint64_t delay_ns; /* how long the packet would wait (throttling) */
	bool has_left;
	uint64_t left;	   /* such packets that pass at once; WEIR_EXPLAINED_MOST: or more */
	uint64_t frees_ns; /* until such a packet passes: 0 now, WEIR_SANDBOX_RUN_NEVER */
};

struct weir_explanation {
	enum weir_direction direction;
	bool is_live; /* of an instance, with its windows */
	const char *instance;
	struct weir_controller_report controller;
	uint64_t now_ns;
	const char **resources; /* names, in the order of their definition */
	size_t resource_count;
	struct weir_explained_rule *rules; /* in the order of evaluation */
	size_t rule_count;
	uint32_t unknown; /* enum weir_match_field, or-ed: not said, and it matters. 0: the verdict is known */
	enum weir_verdict verdict;
	bool passes;				 /* where nothing is dropped (mode: observe) all does */
	const struct weir_rule_info *blocked_by; /* NULL: no rule */
	uint64_t delay_ns;
	/* verdicts ALLOW and DENY: a list says so (WEIR_SANDBOX_RUN_NEVER), or a timed entry that ends then */
	uint64_t list_ends_ns;
	/* what the pointers point into */
	struct weir_instance *opened;
	struct weir_object *object;
	struct weir_image *image;
};

/* The packet, and what is attached under this name. The caller frees *ret_explanation, touched only on success. */
int weir_explain_instance(const char *name, const struct weir_question *question,
			  struct weir_explanation *ret_explanation, struct weir_diag *diag);

/* The packet, and a rule set that is nowhere in force: no windows. Borrows names of the rule set. */
int weir_explain_ruleset(const struct weir_ruleset *ruleset, const struct weir_question *question,
			 struct weir_explanation *ret_explanation, struct weir_diag *diag);

void weir_explanation_free(struct weir_explanation *explanation);

#endif
