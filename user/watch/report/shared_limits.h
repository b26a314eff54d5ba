/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known of limits that hosts share: what this host's program admits, from its map, and what the ledgers in the
 * store say of all hosts. The store is asked as any other client would: what is shown is true with the controller dead,
 * or the store.
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
	uint64_t threshold; /* of all hosts together */
	uint64_t reserved;  /* ... for hosts that are silent: as the ledger says, or else the controller */
	bool has_ledger;    /* else the store could not be asked, or has none */
	uint64_t owed;	    /* left alone for hosts of a ledger that was lost */
	int64_t ledger_us;  /* the ledger's time */
	struct weir_ledger_host *hosts;
	size_t host_count;
};

struct weir_cluster_view {
	const struct weir_instance *instance;
	char host[WEIR_CLUSTER_WORD_CHARS];
	uint64_t now_ns;
	bool is_asked;	   /* the store itself: without, there are no ledgers, and what follows is not known */
	bool answers;	   /* the store */
	uint64_t took_ns;  /* to be asked for all rules, if it does */
	char trouble[160]; /* else why not */
	struct weir_shared_view *rules;
	size_t rule_count; /* 0: hosts share no rule of this instance */
	/* What the controller knows: */
	uint32_t live, silent; /* hosts of the cluster, this one among them; live is 0: not known */
	uint32_t trip_us;      /* until the latest answer of the store; 0: it has not answered for a second */
	uint32_t alone;	       /* rules without a lease */
	uint64_t alone_ns;     /* the longest that one of them has been so */
	/* For the rule of which most is reserved for silent hosts. */
	uint32_t reserved_percent;
};

/*
 * The store is asked for the ledger of one rule, or, if `only` is NULL, of all. That it cannot be asked is no failure.
 * The caller frees *ret_view in any case.
 */
int weir_cluster_view_read(const struct weir_instance *instance, const char *only, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag);
/* The same without the store: for who shows it often, or may not speak to others. */
int weir_cluster_view_look(const struct weir_instance *instance, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag);
void weir_cluster_view_free(struct weir_cluster_view *view);

/* The host has no lease for this rule: since when, CLOCK_MONOTONIC. 0: it has one, or no controller has asked. */
uint64_t weir_share_alone_since(const struct weir_shared_view *rule, uint64_t now_ns);

json_t *weir_cluster_describe(const struct weir_cluster_view *view);
/* One of its rules. */
json_t *weir_shared_describe(const struct weir_cluster_view *view, const struct weir_shared_view *rule);

/* For how long yet this silent host's part is reserved; INT64_MAX: for ever. 0: nothing is. */
int64_t weir_ledger_reserved_us(const struct weir_shared_view *view, const struct weir_ledger_host *host);

/* "live", "silent" or "left" */
const char *weir_ledger_state(const struct weir_ledger_host *host);

/* In a line of 80 columns, mostly: "edge: 3 hosts live, 1 silent; store 0.4 ms; 1 of 2 rules alone for 12 s", and
 * "25 % reserved for silent hosts".
 */
#define WEIR_CLUSTER_WORDS_BYTES 320
const char *weir_cluster_words(const struct weir_cluster_view *view, char words[WEIR_CLUSTER_WORDS_BYTES]);
/* The same for programs; null where hosts share no rule. */
json_t *weir_cluster_sum(const struct weir_cluster_view *view);

/* "its lease ends in 0.7 s", "alone for 12 s": what the share of this host goes by. */
#define WEIR_SHARE_WORDS_BYTES 64
const char *weir_share_words(const struct weir_shared_view *view, uint64_t now_ns, char words[WEIR_SHARE_WORDS_BYTES]);

/*
 * Take a host out of all ledgers of the instance's rules: what was reserved for it is others'. Refused (-EBUSY) for one
 * that is live, as it would continue; -ENOENT when no ledger has it.
 */
int weir_cluster_forget(const struct weir_instance *instance, const char *host, struct weir_diag *diag);

#endif
