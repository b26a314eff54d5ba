/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known about limits that hosts share without asking the store: what this host's program admits, and what the
 * controller knows, from the program's map. House cluster asks the store, and fills in the rest (cluster/ledgers.h).
 */
#ifndef WEIR_REPORT_SHARED_LIMITS_H
#define WEIR_REPORT_SHARED_LIMITS_H

#include <jansson.h>

#include "instance/instance.h"

struct weir_ledger_host;

struct weir_shared_view {
	const struct weir_rule_info *rule;
	struct weir_shared_threshold shared;
	uint64_t in_force;    /* units per interval, now */
	uint64_t threshold;   /* for all hosts together */
	uint64_t reserved;    /* ... the part reserved for silent hosts: from the ledger, or else from the controller */
	bool has_ledger;      /* false: the store could not be asked, or has no ledger */
	uint64_t owed;	      /* reserved for hosts that another ledger knew, and this one does not */
	int64_t owed_ends_us; /* until then, by the ledger's time */
	int64_t ledger_us;    /* the ledger's time */
	char other_version[8]; /* of weir's ledger, if another version has written it; then the rest is not known */
	struct weir_ledger_host *hosts;
	size_t host_count;
};

struct weir_cluster_view {
	const struct weir_instance *instance;
	char host[WEIR_CLUSTER_WORD_CHARS];
	uint64_t now_ns;
	/* The store itself was asked. If not, there are no ledgers, and the next three fields are unknown. */
	bool is_asked;
	bool answers;	   /* the store answers */
	uint64_t took_ns;  /* if it answers: the time to ask it for all rules */
	char trouble[160]; /* if it does not: the reason */
	struct weir_shared_view *rules;
	size_t rule_count; /* 0: hosts share no rule of this instance */
	/* What the controller knows: */
	uint32_t live, silent; /* hosts of the cluster, including this one; live is 0 if not known */
	uint32_t trip_us;      /* round-trip time of the store's latest answer; 0: none in the last second */
	uint32_t alone;	       /* number of rules without a lease */
	uint64_t alone_ns;     /* the longest time that one of them has had none */
	/* For the rule with the largest part reserved for silent hosts. */
	uint32_t reserved_percent;
};

/* Read the maps; the store is not asked. The caller frees *ret_view in any case. */
int weir_cluster_view_look(const struct weir_instance *instance, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag);
void weir_cluster_view_free(struct weir_cluster_view *view);

/* Since when the host has had no lease for this rule (CLOCK_MONOTONIC). 0: it has one, or no controller has asked. */
uint64_t weir_share_alone_since(const struct weir_shared_view *rule, uint64_t now_ns);

/* The name of this host in its cluster. */
void weir_cluster_host(const struct weir_cluster_info *cluster, char host[WEIR_CLUSTER_WORD_CHARS]);

/* Set reserved_percent by the rules. */
void weir_cluster_find_reserved(struct weir_cluster_view *view);

/* The state of the store: its own answer or, if it was not asked, what the controller knows. */
json_t *weir_store_describe(const struct weir_cluster_view *view);

/* A summary that usually fits into 80 columns: "edge: 3 hosts live, 1 silent; store 0.4 ms; 1 of 2 rules alone for 12
 * s", and "25 % reserved for silent hosts".
 */
#define WEIR_CLUSTER_WORDS_BYTES 320
const char *weir_cluster_words(const struct weir_cluster_view *view, char words[WEIR_CLUSTER_WORDS_BYTES]);
/* The same for programs; null if hosts share no rule. */
json_t *weir_cluster_sum(const struct weir_cluster_view *view);

#endif
