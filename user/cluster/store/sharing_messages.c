// SPDX-License-Identifier: GPL-2.0-only
/* Messages to the ledgers, and handling their answers; and the farewell for a controller that is gone. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/runs.h"
#include "report/shared_limits.h"
#include "shares/ledger.h"
#include "shares/share.h"
#include "store/cluster_events.h"
#include "store/shared_flows.h"
#include "store/sharing.h"
#include "store/sharing_state.h"
#include "store/store.h"

/* ---- demand ---- */

static uint64_t units_of(const struct weir_rule_info *info, const struct weir_tally *tally)
{
	return info->identity.counts_bytes ? tally->bytes : tally->packets;
}

/* The offered units, and those of them that this rule blocked. Packets that another rule blocked do not count, since a
 * larger share would not help them.
 */
static void add_up(struct shared_rule *rule, const struct weir_rule_counters *of_rule,
		   const struct weir_resource_counters *of_resource, int cpus)
{
	rule->offered = rule->blocked = 0;
	for (int cpu = 0; cpu < cpus; cpu++) {
		rule->blocked +=
			units_of(&rule->info, &of_rule[cpu].blocked) + units_of(&rule->info, &of_rule[cpu].would_drop);
		rule->offered +=
			units_of(&rule->info, &of_resource[cpu].passed) + units_of(&rule->info, &of_rule[cpu].blocked);
	}
}

/* The length of a run of rules whose counters, and whose resources' counters, are adjacent. */
static size_t run_length(const struct weir_sharing *sharing, size_t first)
{
	const struct shared_rule *rule = &sharing->rules[first];
	size_t length = 1;

	while (length < COUNTED_AT_ONCE && first + length < sharing->rule_count &&
	       rule[length].slot == rule->slot + length &&
	       rule[length].info.resource_slot == rule->info.resource_slot + length)
		length++;
	return length;
}

/* Read the counters of all rules, many by one system call. A counter that cannot be read stays unchanged, as if no
 * packets had come.
 */
static void count(struct weir_sharing *sharing)
{
	size_t cpus = weir_host_cpus() > 0 ? (size_t)weir_host_cpus() : 1, length;
	_cleanup_(weir_freep) struct weir_rule_counters *of_rule = calloc(COUNTED_AT_ONCE * cpus, sizeof(*of_rule));
	_cleanup_(weir_freep) struct weir_resource_counters *of_resource =
		calloc(COUNTED_AT_ONCE * cpus, sizeof(*of_resource));
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;

	if (weir_runs_take(sharing->totals_fd, &runs))
		return;
	for (size_t i = 0; of_rule && of_resource && i < sharing->rule_count; i += length) {
		struct shared_rule *rule = &sharing->rules[i];

		length = run_length(sharing, i);
		if (weir_entries_read(sharing->rule_counters_fd, rule->slot, (uint32_t)length, cpus * sizeof(*of_rule),
				      of_rule) ||
		    weir_entries_read(sharing->resource_counters_fd, rule->info.resource_slot, (uint32_t)length,
				      cpus * sizeof(*of_resource), of_resource))
			continue;
		for (size_t j = 0; j < length; j++) {
			weir_runs_add(runs, WEIR_TABLE_RULE_COUNTERS, rule[j].slot, &of_rule[j * cpus], (int)cpus);
			weir_runs_add(runs, WEIR_TABLE_RESOURCE_COUNTERS, rule[j].info.resource_slot,
				      &of_resource[j * cpus], (int)cpus);
			add_up(&rule[j], &of_rule[j * cpus], &of_resource[j * cpus], (int)cpus);
		}
	}
}

/* ---- a command to the store, built word by word, including those of the ledger's protocol (shares/ledger.h) ---- */

struct message {
	const char **words;
	size_t *bytes;
	weir_ledger_word *texts;
	size_t count, text_count;
	const struct weir_member *member; /* of the head, which the checks of the asks include */
};

static void free_message(struct message *message)
{
	free(message->words);
	free(message->bytes);
	free(message->texts);
}

/* The message must be zeroed before. Reserves room for this many ledgers and wanted flows. -ENOMEM. The caller frees
 * the message in any case.
 */
static int begin_message(struct message *message, size_t ledgers, size_t wanted)
{
	size_t texts = WEIR_LEDGER_HEAD_WORDS + ledgers * WEIR_LEDGER_ASK_WORDS + 2 * wanted + 1;
	size_t words = 3 + ledgers + texts + 2 * wanted;

	message->words = calloc(words, sizeof(*message->words));
	message->bytes = calloc(words, sizeof(*message->bytes));
	message->texts = calloc(texts, sizeof(*message->texts));
	return message->words && message->bytes && message->texts ? 0 : -ENOMEM;
}

/* The word is not copied. */
static void say(struct message *message, const char *word)
{
	message->bytes[message->count] = strlen(word);
	message->words[message->count++] = word;
}

/* Room for `count` words, which the caller writes and which are then added to the message. */
static weir_ledger_word *say_texts(struct message *message, size_t count)
{
	weir_ledger_word *texts = &message->texts[message->text_count];

	message->text_count += count;
	return texts;
}

static void say_texts_written(struct message *message, size_t count)
{
	weir_ledger_word *texts = &message->texts[message->text_count - count];

	for (size_t i = 0; i < count; i++)
		say(message, texts[i]);
}

static void say_number(struct message *message, size_t number)
{
	snprintf(say_texts(message, 1)[0], WEIR_LEDGER_WORD_CHARS, "%zu", number);
	say_texts_written(message, 1);
}

static void say_head(struct message *message, const struct weir_member *member)
{
	message->member = member;
	weir_ledger_write_head(member, say_texts(message, WEIR_LEDGER_HEAD_WORDS));
	say_texts_written(message, WEIR_LEDGER_HEAD_WORDS);
}

/* After the head. */
static void say_ask(struct message *message, const struct weir_share_ask *ask)
{
	weir_ledger_write_ask(message->member, ask, say_texts(message, WEIR_LEDGER_ASK_WORDS));
	say_texts_written(message, WEIR_LEDGER_ASK_WORDS);
}

/* ---- messages of the controller ---- */

typedef char weir_flow_ledger[WEIR_LEDGER_KEY_CHARS + 48]; /* the key of a flow's ledger in the store */

static void say_rule(struct weir_sharing *sharing, struct shared_rule *rule, struct message *message, uint64_t now_ns)
{
	struct weir_share_ask ask;

	if (rule->farewells) {
		weir_share_leave(&rule->share, now_ns, &ask);
	} else {
		rule->share.lent = weir_sharing_flows_lent(sharing->flows, rule->slot);
		weir_share_ask(&rule->share, now_ns, rule->offered, rule->blocked, &ask);
		rule->wanted = ask.ask;
		if (weir_sharing_flows_shares(sharing->flows, &rule->info))
			ask.flows_most = WEIR_SHARED_FLOWS_MAX;
	}
	rule->asked_ns = now_ns;
	rule->says_farewell = rule->farewells > 0;
	say_ask(message, &ask);
}

static struct shared_rule *rule_of_slot(struct weir_sharing *sharing, uint32_t slot)
{
	for (size_t i = 0; i < sharing->rule_count; i++)
		if (sharing->rules[i].slot == slot && !sharing->rules[i].farewells)
			return &sharing->rules[i];
	return NULL;
}

/* The flows' messages depend on their rules' shares, and the rules' messages on how much of these is given up for flows
 * [9].
 */
static void ask_for_flows(struct weir_sharing *sharing, struct weir_share_ask *asks, uint64_t now_ns)
{
	size_t count;
	struct weir_shared_flow *flows = weir_sharing_flows_all(sharing->flows, &count);

	for (size_t i = 0; i < sharing->rule_count; i++)
		weir_share_advance(&sharing->rules[i].share, now_ns);
	for (size_t i = 0; i < count; i++) {
		struct shared_rule *rule = rule_of_slot(sharing, flows[i].slot);

		flows[i].asked_ns = rule && flows[i].is_listed ? now_ns : 0;
		if (flows[i].asked_ns)
			weir_flow_ask(&flows[i].flow, &rule->share, now_ns, flows[i].offered, &asks[i]);
	}
}

static void say_wanted(struct weir_sharing *sharing, struct message *message)
{
	size_t count;
	const struct weir_wanted_flow *wanted = weir_sharing_flows_wanted(sharing->flows, &count);

	for (size_t i = 0; i < count; i++) {
		struct shared_rule *rule = rule_of_slot(sharing, wanted[i].slot);

		if (!rule)
			continue;
		say_number(message, (size_t)(rule - sharing->rules) + 1);
		say(message, wanted[i].name);
		say(message, wanted[i].sealed);
		say_number(message, wanted[i].lack);
	}
}

/* Determine which flows take part in the message. */
static int look_for_flows(struct weir_sharing *sharing, uint64_t now_ns)
{
	_cleanup_(weir_freep) struct weir_flow_rule *rules = calloc(sharing->rule_count ?: 1, sizeof(*rules));
	size_t count = 0;

	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < sharing->rule_count; i++) {
		const struct shared_rule *rule = &sharing->rules[i];

		if (!rule->farewells && weir_sharing_flows_shares(sharing->flows, &rule->info))
			rules[count++] = (struct weir_flow_rule){rule->slot, rule->key, &rule->share};
	}
	weir_sharing_flows_look(sharing->flows, rules, count, now_ns);
	return 0;
}

static void say_keys(struct weir_sharing *sharing, struct message *message, weir_flow_ledger *keys)
{
	size_t count, listed = 0;
	const struct weir_shared_flow *flows = weir_sharing_flows_all(sharing->flows, &count);

	for (size_t i = 0; i < count; i++)
		listed += flows[i].asked_ns > 0;
	say_number(message, sharing->rule_count + listed);
	for (size_t i = 0; i < sharing->rule_count; i++)
		say(message, sharing->rules[i].key);
	for (size_t i = 0; i < count; i++) {
		if (!flows[i].asked_ns)
			continue;
		snprintf(keys[i], sizeof(keys[i]), "%s:flow:%s", rule_of_slot(sharing, flows[i].slot)->key,
			 flows[i].name);
		say(message, keys[i]);
	}
}

void weir_sharing_ask(struct weir_sharing *sharing, uint64_t now_ns)
{
	_cleanup_(free_message) struct message message = {};
	_cleanup_(weir_freep) struct weir_share_ask *asks = NULL;
	_cleanup_(weir_freep) weir_flow_ledger *keys = NULL;
	const struct weir_shared_flow *flows;
	size_t flow_count, wanted_count;

	if (look_for_flows(sharing, now_ns))
		return; /* as if the message had been lost */
	flows = weir_sharing_flows_all(sharing->flows, &flow_count);
	weir_sharing_flows_wanted(sharing->flows, &wanted_count);
	asks = calloc(flow_count ?: 1, sizeof(*asks));
	keys = calloc(flow_count ?: 1, sizeof(*keys));
	if (!asks || !keys || begin_message(&message, sharing->rule_count + flow_count, wanted_count))
		return;
	ask_for_flows(sharing, asks, now_ns);
	count(sharing);
	say(&message, "EVALSHA");
	say(&message, sharing->script);
	say_keys(sharing, &message, keys);
	say_head(&message, &sharing->member);
	for (size_t i = 0; i < sharing->rule_count; i++)
		say_rule(sharing, &sharing->rules[i], &message, now_ns);
	for (size_t i = 0; i < flow_count; i++)
		if (flows[i].asked_ns)
			say_ask(&message, &asks[i]);
	say_wanted(sharing, &message);
	sharing->turn = sharing->member.turn;
	weir_store_send(sharing->store, message.count, message.words, message.bytes, now_ns);
}

void weir_sharing_look(struct weir_sharing *sharing, uint64_t now_ns)
{
	const char *words[] = {"HGETALL", NULL};
	size_t bytes[] = {strlen("HGETALL"), 0};

	sharing->look = sharing->events.looks++ % (uint32_t)sharing->rule_count;
	words[1] = sharing->rules[sharing->look].key;
	bytes[1] = strlen(words[1]);
	sharing->is_looking = true;
	sharing->events.looked_ns = now_ns;
	weir_store_send(sharing->store, 2, words, bytes, now_ns);
}

void weir_sharing_load_script(struct weir_sharing *sharing, uint64_t now_ns)
{
	size_t bytes[3] = {strlen("SCRIPT"), strlen("LOAD"), 0};
	const char *words[3] = {"SCRIPT", "LOAD", weir_ledger_script(&bytes[2])};

	sharing->is_loading = true;
	sharing->is_looking = false; /* one may have been under way on a connection that was lost */
	sharing->connection = weir_store_connection(sharing->store);
	weir_store_send(sharing->store, 3, words, bytes, now_ns);
}

/* ---- answers ---- */

/* Parse the answer of a ledger. For a rule, a list of its flows may follow. */
static int read_answer(const struct weir_reply *reply, const struct weir_share_terms *terms,
		       struct weir_share_answer *ret_answer)
{
	long long numbers[WEIR_LEDGER_ANSWER_NUMBERS];
	const char *epoch = weir_reply_count(reply) > 0 ? weir_reply_text(weir_reply_at(reply, 0)) : NULL;

	if (weir_reply_count(reply) < 1 + ARRAY_SIZE(numbers) || !epoch)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		numbers[i] = weir_reply_number(weir_reply_at(reply, 1 + i));
	return weir_ledger_read_answer(epoch, numbers, terms, ret_answer);
}

static void take_answer(struct weir_sharing *sharing, struct shared_rule *rule, const struct weir_reply *reply,
			uint64_t now_ns)
{
	struct weir_shared_threshold *pushed = &sharing->pushed[rule->slot];
	struct weir_share_answer answer;
	struct weir_share_terms terms;
	bool is_another;

	if (read_answer(reply, &rule->share.terms, &answer))
		return;
	is_another = rule->share.epoch[0] && strcmp(rule->share.epoch, answer.epoch) != 0;
	if (!weir_share_take(&rule->share, &answer, rule->asked_ns, now_ns))
		return;
	if (is_another)
		weir_cluster_events_add(&sharing->events.ledgers, rule->info.name);
	pushed->trouble = answer.lease_us > 0			? WEIR_SHARE_FINE
			  : answer.lease_us == WEIR_LEASE_TAKEN ? WEIR_SHARE_TAKEN
								: WEIR_SHARE_LATE;
	if (answer.lease_us <= 0)
		return;
	if (pushed->leased_ns && pushed->alone_ns)
		weir_cluster_events_add(&sharing->events.leased, rule->info.name);
	pushed->leased_ns = now_ns;
	pushed->process = strtoull(sharing->member.process, NULL, 16);
	terms = weir_sharing_terms(&sharing->cluster, &rule->info, answer.hosts);
	if (terms.threshold != rule->share.terms.threshold)
		weir_share_change(&rule->share, &terms, now_ns);
}

static void take_list(struct weir_sharing *sharing, const struct shared_rule *rule, const struct weir_reply *reply,
		      uint64_t now_ns)
{
	const struct weir_flow_rule of = {rule->slot, rule->key, &rule->share};

	if (weir_reply_count(reply) == 2 + WEIR_LEDGER_ANSWER_NUMBERS &&
	    weir_sharing_flows_shares(sharing->flows, &rule->info))
		weir_sharing_flows_take_list(sharing->flows, &of, weir_reply_at(reply, 1 + WEIR_LEDGER_ANSWER_NUMBERS),
					     now_ns);
}

static void take_flow_answer(struct weir_sharing *sharing, struct weir_shared_flow *flow,
			     const struct weir_reply *reply, uint64_t now_ns)
{
	const struct shared_rule *rule = rule_of_slot(sharing, flow->slot);
	struct weir_share_answer answer;

	if (rule && !read_answer(reply, &flow->flow.share.terms, &answer) &&
	    (answer.lease_us <= 0 || answer.fallback == WEIR_CLUSTER_BASE))
		weir_flow_take(&flow->flow, &rule->share, &answer, flow->asked_ns, now_ns);
}

/* Decided by the latest answers of the ledgers. */
static void watch_name(struct weir_sharing *sharing, uint64_t now_ns)
{
	bool is_taken = false;

	for (size_t i = 0; !is_taken && i < sharing->rule_count; i++)
		is_taken = !sharing->rules[i].farewells &&
			   sharing->pushed[sharing->rules[i].slot].trouble == WEIR_SHARE_TAKEN;
	if (!is_taken)
		sharing->taken_ns = 0;
	else if (!sharing->taken_ns)
		sharing->taken_ns = now_ns;
}

static void take_answers(struct weir_sharing *sharing, const struct weir_reply *reply, uint64_t now_ns)
{
	size_t next = 0, count = weir_reply_count(reply), flow_count;
	struct weir_shared_flow *flows = weir_sharing_flows_all(sharing->flows, &flow_count);

	if (!weir_member_takes_answer(&sharing->member, sharing->turn, now_ns))
		return;
	sharing->answered_ns = now_ns;
	sharing->trip_ns = now_ns - sharing->member.asked_ns;
	for (size_t i = 0; i < sharing->rule_count && next < count; i++) {
		struct shared_rule *rule = &sharing->rules[i];

		if (!rule->asked_ns) /* the rule was added after the message was sent */
			continue;
		if (!rule->farewells)
			take_answer(sharing, rule, weir_reply_at(reply, next), now_ns);
		next++;
	}
	watch_name(sharing, now_ns);
	for (size_t i = 0; i < flow_count && next < count; i++)
		if (flows[i].asked_ns)
			take_flow_answer(sharing, &flows[i], weir_reply_at(reply, next++), now_ns);
	/* The lists change the set of flows, so they are taken last: answers are matched by order. */
	for (size_t i = 0, at = 0; i < sharing->rule_count && at < count; i++)
		if (sharing->rules[i].asked_ns)
			take_list(sharing, &sharing->rules[i], weir_reply_at(reply, at++), now_ns);
}

/* Drop rules that have left, or have said so often enough. */
static void end_farewells(struct weir_sharing *sharing)
{
	for (size_t i = sharing->rule_count; i-- > 0;)
		if (sharing->rules[i].says_farewell && sharing->rules[i].farewells && !--sharing->rules[i].farewells)
			weir_sharing_drop_rule(sharing, i);
	for (size_t i = 0; i < sharing->rule_count; i++)
		sharing->rules[i].asked_ns = 0;
}

void weir_sharing_take_reply(struct weir_sharing *sharing, const struct weir_reply *reply, uint64_t now_ns)
{
	const char *error = weir_reply_error(reply), *text = weir_reply_text(reply);

	if (sharing->is_looking) {
		sharing->is_looking = false;
		if (!error)
			weir_cluster_events_take_ledger(&sharing->events, sharing->look, reply);
		return;
	}
	if (error) {
		snprintf(sharing->trouble, sizeof(sharing->trouble), "it says '%.120s'", error);
		sharing->script[0] = '\0'; /* NOSCRIPT, or some other error: loading the script again does no harm */
	} else if (sharing->is_loading) {
		snprintf(sharing->script, sizeof(sharing->script), "%s", text ? text : "");
	} else {
		sharing->trouble[0] = '\0';
		take_answers(sharing, reply, now_ns);
	}
	if (!sharing->is_loading)
		end_farewells(sharing);
	sharing->is_loading = false;
}

/* ---- a farewell, where no controller says it ---- */

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
static void add_rule(struct weir_farewell *farewell, const struct weir_rule_info *rule,
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
			add_rule(farewell, rule, &shared);
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
	_cleanup_(free_message) struct message message = {};
	_cleanup_(weir_store_freep) struct weir_store *store = NULL;
	struct weir_diag ignored = {}; /* either the store gets the message or it does not */
	struct weir_reply *reply;

	if (!weir_store_open(&farewell->cluster, &store, &ignored) && !begin_message(&message, farewell->count, 0)) {
		say(&message, "EVAL");
		message.words[message.count] = weir_ledger_script(&message.bytes[message.count]);
		message.count++;
		say_number(&message, farewell->count);
		for (size_t i = 0; i < farewell->count; i++)
			say(&message, farewell->keys[i]);
		say_head(&message, &farewell->member);
		for (size_t i = 0; i < farewell->count; i++)
			say_ask(&message, &farewell->asks[i]);
		reply = weir_store_ask_until(store, message.count, message.words, message.bytes, end_ns);
		weir_store_free_reply(reply);
	}
	weir_diag_free(&ignored);
}
