/* SPDX-License-Identifier: GPL-2.0-only */
/* The controller's state for the rules that hosts share: for sharing.c and its parts. */
#ifndef WEIR_STORE_SHARING_STATE_H
#define WEIR_STORE_SHARING_STATE_H

#include <stddef.h>

#include "shares/share.h"
#include "store/cluster_events.h"
#include "store/shared_flows.h"
#include "store/sharing.h"
#include "store/store.h"
#include "weir_abi.h"

/* How often a removed rule says goodbye to its ledger, a round apart, since a message may be lost. Chosen, not derived.
 */
#define FAREWELLS 3

/* The most rules whose counters one system call reads, which limits the memory. Chosen, not derived. */
#define COUNTED_AT_ONCE 64

/* A rule that hosts share. */
struct shared_rule {
	struct weir_rule_info info;
	uint32_t slot;
	char key[WEIR_LEDGER_KEY_CHARS];
	struct weir_share share;
	uint64_t wanted;
	uint64_t offered, blocked; /* units since the instance was attached */
	uint64_t asked_ns;	   /* when the current message was built; 0: the rule is not in it */
	unsigned int farewells;	   /* remaining messages in which it leaves; 0: it is still a rule of the instance */
	bool says_farewell;	   /* it leaves in the current message */
	bool is_kept;		   /* only used while following a reload */
};

struct weir_sharing {
	struct weir_cluster_info cluster;
	struct weir_member member;
	struct weir_store *store;
	struct weir_shared_threshold *pushed; /* map `shares` */
	struct weir_sharing_flows *flows;
	int shares_fd, totals_fd, rule_counters_fd, resource_counters_fd;
	uint32_t slots;
	struct shared_rule *rules;
	size_t rule_count;
	char script[64];      /* hash of the script; empty: the store does not have it yet */
	uint64_t connection;  /* the connection on which the script was loaded */
	bool is_loading;      /* the current command is SCRIPT LOAD */
	uint64_t turn;	      /* of the current message */
	uint64_t answered_ns; /* time of the latest answer; initially, of the start */
	char trouble[160];    /* the error in the latest reply that was not an answer */
	char reported[160];   /* why the store is lost, as reported last */
	uint64_t reported_ns; /* when that was reported */
	uint64_t missed_ns;   /* since when the store is lost */
	bool misses_store;    /* the loss has been reported */
	uint64_t taken_ns;    /* since when another process has this host's name; 0: none has */
	bool has_namesake;    /* the namesake has been reported */
	uint64_t trip_ns;     /* how long the latest answer took */
	struct weir_cluster_events events;
	bool is_looking; /* the current command reads the list of hosts, for people */
	uint32_t look;	 /* the rule whose ledger it reads */
};

/* ---- sharing_rules.c ---- */

/* Differs from the name of every earlier process. */
int weir_sharing_name_process(char process[WEIR_CLUSTER_NAME_CHARS]);

/* Returns the units that were in force until now. */
uint64_t weir_sharing_push(struct weir_sharing *sharing, struct shared_rule *rule, uint64_t now_ns);

/* Publish all shares. A value that shrinks was in force until the program could read the new one, which may be later
 * than the step assumes.
 */
void weir_sharing_push_all(struct weir_sharing *sharing, uint64_t now_ns);
void weir_sharing_drop_rule(struct weir_sharing *sharing, size_t index);

/* Begin to leave the rule's ledger. The program must already treat the rule as unshared, or admit nothing. */
void weir_sharing_end_rule(struct weir_sharing *sharing, struct shared_rule *rule);
int weir_sharing_take_rules(struct weir_sharing *sharing, const struct weir_instance *instance, uint64_t now_ns);
bool weir_sharing_has_shared_rules(const struct weir_instance *instance);
int weir_sharing_map_shares(struct weir_sharing *sharing, const struct weir_instance *instance);

/* ---- sharing_messages.c ---- */

void weir_sharing_ask(struct weir_sharing *sharing, uint64_t now_ns);

/* Looks at one ledger after the other. A reload may change their numbers, which costs at most one line of news. */
void weir_sharing_look(struct weir_sharing *sharing, uint64_t now_ns);
void weir_sharing_load_script(struct weir_sharing *sharing, uint64_t now_ns);
void weir_sharing_take_reply(struct weir_sharing *sharing, const struct weir_reply *reply, uint64_t now_ns);

/* The schedule of a share as stored in a map (tables/entry_state.h): everything in the copy that is in force. */
void weir_share_schedule_read(uint64_t version, const struct weir_share_stages stages[2],
			      struct weir_share_schedule *ret_schedule);

/* Put the share's schedule in force. Returns the units that were in force until now. */
uint64_t weir_share_schedule_push(__u64 *version, struct weir_share_stages stages[2], const struct weir_share *share,
				  uint64_t now_ns);

#endif
