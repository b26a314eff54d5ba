/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known about limits that hosts share: what this host's program admits, from its map, and what the ledgers in
 * the store say about all hosts. The store is queried as by any other client, so the result is right even if the
 * controller or the store is dead.
 */
#ifndef WEIR_REPORT_SHARED_LIMITS_H
#define WEIR_REPORT_SHARED_LIMITS_H

#include <jansson.h>

#include "instance/instance.h"
#include "shares/membership.h"
#include "store/sharing.h"

struct weir_shared_view {
	const struct weir_rule_info *rule;
	struct weir_shared_threshold shared;
	uint64_t in_force;  /* units per interval, now */
	uint64_t threshold; /* for all hosts together */
	uint64_t reserved;  /* ... the part reserved for silent hosts: from the ledger, or else from the controller */
	bool has_ledger;    /* false: the store could not be asked, or has no ledger */
	uint64_t owed;	    /* set aside for hosts of a ledger that was lost */
	int64_t ledger_us;  /* the ledger's time */
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

/*
 * Ask the store for the ledger of one rule or, if `only` is NULL, of all. It is not an error if the store cannot be
 * asked. The caller frees *ret_view in any case.
 */
int weir_cluster_view_read(const struct weir_instance *instance, const char *only, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag);
/* The same without the store: for callers that refresh it often, or must not use the network. */
int weir_cluster_view_look(const struct weir_instance *instance, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag);
void weir_cluster_view_free(struct weir_cluster_view *view);

/* Since when the host has had no lease for this rule (CLOCK_MONOTONIC). 0: it has one, or no controller has asked. */
uint64_t weir_share_alone_since(const struct weir_shared_view *rule, uint64_t now_ns);

json_t *weir_cluster_describe(const struct weir_cluster_view *view);
/* The JSON object for one of the view's rules. */
json_t *weir_shared_describe(const struct weir_cluster_view *view, const struct weir_shared_view *rule);

/* How much longer the part of this silent host stays reserved; INT64_MAX: for ever. 0: nothing is reserved. */
int64_t weir_ledger_reserved_us(const struct weir_shared_view *view, const struct weir_ledger_host *host);

/* "live", "silent" or "left" */
const char *weir_ledger_state(const struct weir_ledger_host *host);

/* A summary that usually fits into 80 columns: "edge: 3 hosts live, 1 silent; store 0.4 ms; 1 of 2 rules alone for 12
 * s", and "25 % reserved for silent hosts".
 */
#define WEIR_CLUSTER_WORDS_BYTES 320
const char *weir_cluster_words(const struct weir_cluster_view *view, char words[WEIR_CLUSTER_WORDS_BYTES]);
/* The same for programs; null if hosts share no rule. */
json_t *weir_cluster_sum(const struct weir_cluster_view *view);

/* What determines this host's share: "its lease ends in 0.7 s", "alone for 12 s". */
#define WEIR_SHARE_WORDS_BYTES 64
const char *weir_share_words(const struct weir_shared_view *view, uint64_t now_ns, char words[WEIR_SHARE_WORDS_BYTES]);

/*
 * Remove a host from all ledgers of the instance's rules, so that others can use what was reserved for it. Refused
 * (-EBUSY) for a live host, which would join again; -ENOENT if no ledger has the host.
 */
int weir_cluster_forget(const struct weir_instance *instance, const char *host, struct weir_diag *diag);

#endif
