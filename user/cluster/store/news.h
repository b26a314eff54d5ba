/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens to a cluster, as its host sees it, in the instance's journal: the store lost and back, leases that
 * ended, hosts that come, fall silent or leave, ledgers that were lost. Of many rules to which the same happens at once
 * one line is written. Who is there is read from the ledgers now and then, one after the other (HGETALL), beside the
 * messages of the protocol, which have no need of it.
 */
#ifndef WEIR_STORE_NEWS_H
#define WEIR_STORE_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "instance/instance.h"
#include "shares/roll.h"
#include "store/store.h"

/* Rules to which something has happened since it was told: how many, and one of them. */
struct weir_news_rules {
	uint32_t count;
	char rule[WEIR_NAME_BYTES];
};

/* Zeroed but for the names it has nothing to tell. */
struct weir_news {
	char instance[WEIR_INSTANCE_NAME_BYTES];
	char host[WEIR_CLUSTER_WORD_CHARS]; /* this one, of which there is no news */
	struct weir_news_rules alone, leased, ledgers;
	struct weir_roll roll;
	uint64_t looked_ns; /* 0: not yet */
	uint32_t looks;	    /* the next is at the ledger of this number, modulo their count */
};

void weir_news_add(struct weir_news_rules *rules, const char *rule);
void weir_news_of_store(const struct weir_news *news, const char *address, const char *trouble);
void weir_news_of_name(const struct weir_news *news, bool is_taken);
/* Write what was added. */
void weir_news_tell(struct weir_news *news);

/* Is it time to look at a ledger? Once a second, and less often when there are many hosts, who all do so. */
bool weir_news_is_due(const struct weir_news *news, uint64_t now_ns);
/* The ledger of this number, as HGETALL has it; what is no ledger tells nothing. */
void weir_news_take_ledger(struct weir_news *news, uint32_t ledger, const struct weir_reply *reply);

#endif
