// SPDX-License-Identifier: GPL-2.0-only
#include "store/sharing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "report/shared_limits.h"
#include "store/message.h"
#include "store/store.h"

typedef char ledger_key[WEIR_LEDGER_KEY_CHARS];

struct weir_farewell {
	struct weir_cluster_info cluster;
	struct weir_member member;
	uint64_t process;
	ledger_key *keys;
	struct weir_share_ask *asks;
	size_t count;
};

void weir_farewell_free(void *prepared)
{
	struct weir_farewell *farewell = prepared;

	if (!farewell)
		return;
	free(farewell->keys);
	free(farewell->asks);
	free(farewell);
}

/* Rules for which the ledgers know another process have a controller, which has just started. They are left to it. */
static void add(struct weir_farewell *farewell, const struct weir_rule_info *rule,
		const struct weir_shared_threshold *shared)
{
	const struct weir_share_terms terms = weir_sharing_terms(&farewell->cluster, rule, shared->hosts);

	if (!farewell->process)
		farewell->process = shared->process;
	if (!shared->process || shared->process != farewell->process)
		return;
	weir_sharing_key(&farewell->cluster, rule, farewell->keys[farewell->count]);
	weir_share_farewell(&terms, &farewell->asks[farewell->count++]);
}

void *weir_farewell_prepare(const struct weir_instance *instance)
{
	struct weir_farewell *farewell = calloc(1, sizeof(*farewell));
	struct weir_shared_threshold shared;

	if (!farewell || instance->is_incompatible[WEIR_TABLE_SHARES])
		goto nothing;
	farewell->cluster = instance->info.cluster;
	farewell->keys = calloc(instance->rule_count + 1, sizeof(*farewell->keys));
	farewell->asks = calloc(instance->rule_count + 1, sizeof(*farewell->asks));
	if (!farewell->keys || !farewell->asks)
		goto nothing;
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *rule = &instance->rules[instance->rule_order[i]];

		if (rule->cluster &&
		    !weir_map_look_up(instance->map_fd[WEIR_TABLE_SHARES], &instance->rule_order[i], &shared))
			add(farewell, rule, &shared);
	}
	if (!farewell->count)
		goto nothing;
	weir_cluster_host(&farewell->cluster, farewell->member.host);
	weir_sharing_process(farewell->process, farewell->member.process);
	farewell->member.turn = WEIR_CLUSTER_LAST_TURN;
	return farewell;
nothing:
	weir_farewell_free(farewell);
	return NULL;
}

void weir_farewell_say(const void *prepared)
{
	const struct weir_farewell *farewell = prepared;
	const uint64_t end_ns = weir_host_now_ns() + WEIR_SHARING_LEAVE_NS;
	_cleanup_(weir_message_free) struct weir_message message = {};
	_cleanup_(weir_store_freep) struct weir_store *store = NULL;
	struct weir_diag ignored = {}; /* either the store gets the message or it does not */
	struct weir_reply *reply;

	if (!weir_store_open(&farewell->cluster, &store, &ignored) &&
	    !weir_message_begin(&message, farewell->count, 0)) {
		weir_message_say(&message, "EVAL");
		message.words[message.count] = weir_ledger_script(&message.bytes[message.count]);
		message.count++;
		weir_message_say_number(&message, farewell->count);
		for (size_t i = 0; i < farewell->count; i++)
			weir_message_say(&message, farewell->keys[i]);
		weir_message_say_head(&message, &farewell->member);
		for (size_t i = 0; i < farewell->count; i++)
			weir_message_say_ask(&message, &farewell->asks[i]);
		reply = weir_store_ask_until(store, message.count, message.words, message.bytes, end_ns);
		weir_store_free_reply(reply);
	}
	weir_diag_free(&ignored);
}
