/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a cluster, as this host sees them, for the instance's journal: the store is lost or back, leases end, hosts
 * come, fall silent or leave, ledgers are lost. If the same happens to many rules at once, one line is written. The
 * list of hosts is read from one ledger after the other, now and then (HGETALL), in addition to the protocol's
 * messages, which do not need it.
 */
#ifndef WEIR_STORE_CLUSTER_EVENTS_H
#define WEIR_STORE_CLUSTER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "instance/instance.h"
#include "shares/membership.h"
#include "store/store.h"

/* Rules to which something has happened since the last report: their number, and one of them. */
struct weir_cluster_events_rules {
	uint32_t count;
	char rule[WEIR_NAME_BYTES];
};

/* When it is all zero except for the names, it has nothing to report. */
struct weir_cluster_events {
	char instance[WEIR_INSTANCE_NAME_BYTES];
	char host[WEIR_CLUSTER_WORD_CHARS]; /* this host, about which no news is written */
	struct weir_cluster_events_rules alone, leased, ledgers;
	struct weir_membership membership;
	uint64_t looked_ns; /* 0: never */
	uint32_t looks;	    /* the next look is at the ledger of this number, modulo the number of ledgers */
};

void weir_cluster_events_add(struct weir_cluster_events_rules *rules, const char *rule);
void weir_cluster_events_of_store(const struct weir_cluster_events *events, const char *address, const char *trouble);
void weir_cluster_events_of_name(const struct weir_cluster_events *events, bool is_taken);
/* Write the events that were added. */
void weir_cluster_events_note_rules(struct weir_cluster_events *events);

/* Is it time to look at a ledger? Once a second, or less often if there are many hosts, since all of them look. */
bool weir_cluster_events_is_due(const struct weir_cluster_events *events, uint64_t now_ns);
/* Take the ledger of this number, as returned by HGETALL; anything else is ignored. */
void weir_cluster_events_take_ledger(struct weir_cluster_events *events, uint32_t ledger,
				     const struct weir_reply *reply);

#endif
