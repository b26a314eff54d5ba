/* SPDX-License-Identifier: GPL-2.0-only */
/* What the controller has of the rules that hosts share: for sharing.c and its parts. */
#ifndef WEIR_STORE_SHARING_STATE_H
#define WEIR_STORE_SHARING_STATE_H

#include <stddef.h>

#include "shares/share.h"
#include "store/cluster_events.h"
#include "store/shared_flows.h"
#include "store/sharing.h"
#include "store/store.h"

/* A rule that is gone says so to its ledger so often, a round apart; a message may be lost. Chosen, not derived. */
#define FAREWELLS 3

/* Counters of so many rules are read by one system call, at most: it bounds memory. Chosen, not derived. */
#define COUNTED_AT_ONCE 64

/* A rule that hosts share. */
struct shared_rule {
	struct weir_rule_info info;
	uint32_t slot;
	char key[WEIR_LEDGER_KEY_CHARS];
	struct weir_share share;
	uint64_t wanted;
	uint64_t offered, blocked; /* units since the instance was attached */
	uint64_t asked_ns;	   /* when the message that is under way was made; 0: it is not in it */
	unsigned int farewells;	   /* messages yet in which it leaves; it is not the instance's any more */
	bool says_farewell;	   /* in the message that is under way */
	bool is_kept;		   /* while following a reload */
};

struct weir_sharing {
	struct weir_cluster_info cluster;
	struct weir_member member;
	struct weir_store *store;
	struct weir_shared_threshold *pushed; /* map `shares` */
	struct weir_sharing_flows *flows;
	int shares_fd, rule_counters_fd, resource_counters_fd;
	uint32_t slots;
	struct shared_rule *rules;
	size_t rule_count;
	char script[64];      /* its hash; empty: the store has to be given it */
	uint64_t connection;  /* ... by this one */
	bool is_loading;      /* the command under way is SCRIPT LOAD */
	uint64_t turn;	      /* of the message under way */
	uint64_t answered_ns; /* the latest answer; at first, the beginning */
	char trouble[160];    /* of the latest answer that was none */
	char told[160];	      /* why the store is lost, as it was said last, */
	uint64_t told_ns;     /* ... when, */
	uint64_t missed_ns;   /* ... and since when it is lost */
	bool misses_store;    /* which has been reported */
	uint64_t taken_ns;    /* since then another process has this host's name; 0: it has not */
	bool has_namesake;    /* which has been reported */
	uint64_t trip_ns;     /* until the latest answer */
	struct weir_cluster_events events;
	bool is_looking; /* the command under way asks who is there, for people */
	uint32_t look;	 /* ... in the ledger of this rule */
};

/* ---- sharing_rules.c ---- */

/* Other than that of every process before it. */
int weir_sharing_name_process(char process[WEIR_CLUSTER_NAME_CHARS]);

/* Returns what was in force until now. */
uint64_t weir_sharing_push(struct weir_sharing *sharing, struct shared_rule *rule, uint64_t now_ns);

/* What shrinks was in force until the program could read it, which may be later than the step thinks. */
void weir_sharing_push_all(struct weir_sharing *sharing, uint64_t now_ns);
void weir_sharing_drop_rule(struct weir_sharing *sharing, size_t index);

/* The program knows already that it is nobody's, or admits nothing. */
void weir_sharing_end_rule(struct weir_sharing *sharing, struct shared_rule *rule);
int weir_sharing_take_rules(struct weir_sharing *sharing, const struct weir_instance *instance, uint64_t now_ns);
bool weir_sharing_has_shared_rules(const struct weir_instance *instance);
int weir_sharing_map_shares(struct weir_sharing *sharing, const struct weir_instance *instance);

/* ---- sharing_messages.c ---- */

void weir_sharing_ask(struct weir_sharing *sharing, uint64_t now_ns);

/* At the ledgers in turn. A reload may change their numbers, which costs a line of news at most. */
void weir_sharing_look(struct weir_sharing *sharing, uint64_t now_ns);
void weir_sharing_load_script(struct weir_sharing *sharing, uint64_t now_ns);
void weir_sharing_take_reply(struct weir_sharing *sharing, const struct weir_reply *reply, uint64_t now_ns);

#endif
