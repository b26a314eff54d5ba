// SPDX-License-Identifier: GPL-2.0-only
/* Messages to the ledgers, and handling their answers. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/runs.h"
#include "shares/ledger.h"
#include "shares/share.h"
#include "store/cluster_events.h"
#include "store/message.h"
#include "store/shared_flows.h"
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

/* ---- messages ---- */

typedef char weir_flow_ledger[WEIR_LEDGER_KEY_CHARS + 48]; /* the key of a flow's ledger in the store */

static void say_rule(struct weir_sharing *sharing, struct shared_rule *rule, struct weir_message *message,
		     uint64_t now_ns)
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
	weir_message_say_ask(message, &ask);
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

static void say_wanted(struct weir_sharing *sharing, struct weir_message *message)
{
	size_t count;
	const struct weir_wanted_flow *wanted = weir_sharing_flows_wanted(sharing->flows, &count);

	for (size_t i = 0; i < count; i++) {
		struct shared_rule *rule = rule_of_slot(sharing, wanted[i].slot);

		if (!rule)
			continue;
		weir_message_say_number(message, (size_t)(rule - sharing->rules) + 1);
		weir_message_say(message, wanted[i].name);
		weir_message_say(message, wanted[i].sealed);
		weir_message_say_number(message, wanted[i].lack);
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

static void say_keys(struct weir_sharing *sharing, struct weir_message *message, weir_flow_ledger *keys)
{
	size_t count, listed = 0;
	const struct weir_shared_flow *flows = weir_sharing_flows_all(sharing->flows, &count);

	for (size_t i = 0; i < count; i++)
		listed += flows[i].asked_ns > 0;
	weir_message_say_number(message, sharing->rule_count + listed);
	for (size_t i = 0; i < sharing->rule_count; i++)
		weir_message_say(message, sharing->rules[i].key);
	for (size_t i = 0; i < count; i++) {
		if (!flows[i].asked_ns)
			continue;
		snprintf(keys[i], sizeof(keys[i]), "%s:flow:%s", rule_of_slot(sharing, flows[i].slot)->key,
			 flows[i].name);
		weir_message_say(message, keys[i]);
	}
}

void weir_sharing_ask(struct weir_sharing *sharing, uint64_t now_ns)
{
	_cleanup_(weir_message_free) struct weir_message message = {};
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
	if (!asks || !keys || weir_message_begin(&message, sharing->rule_count + flow_count, wanted_count))
		return;
	ask_for_flows(sharing, asks, now_ns);
	count(sharing);
	weir_message_say(&message, "EVALSHA");
	weir_message_say(&message, sharing->script);
	say_keys(sharing, &message, keys);
	weir_message_say_head(&message, &sharing->member);
	for (size_t i = 0; i < sharing->rule_count; i++)
		say_rule(sharing, &sharing->rules[i], &message, now_ns);
	for (size_t i = 0; i < flow_count; i++)
		if (flows[i].asked_ns)
			weir_message_say_ask(&message, &asks[i]);
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
