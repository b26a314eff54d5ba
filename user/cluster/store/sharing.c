// SPDX-License-Identifier: GPL-2.0-only
#include "store/sharing.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "shares/ledger.h"
#include "shares/share.h"
#include "store/course.h"
#include "store/message.h"
#include "store/news.h"
#include "store/shared_flows.h"
#include "store/store.h"

/* A rule that is gone says so to its ledger so often, a round apart; a message may be lost. Chosen, not derived. */
#define FAREWELLS 3
/* The name of a process that has ended is free after two leases: who waits for longer has a namesake. Chosen. */
#define NAMESAKE_NS 5000000000ull
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
	char script[64];      /* its hash; empty: the store has to be told it */
	uint64_t connection;  /* ... by this one */
	bool is_loading;      /* the command under way is SCRIPT LOAD */
	uint64_t turn;	      /* of the message under way */
	uint64_t answered_ns; /* the latest answer; at first, the beginning */
	char trouble[160];    /* of the latest answer that was none */
	char told[160];	      /* why the store is lost, as it was said last, */
	uint64_t told_ns;     /* ... when, */
	uint64_t missed_ns;   /* ... and since when it is lost */
	bool misses_store;    /* which has been told */
	uint64_t taken_ns;    /* since then another process has this host's name; 0: it has not */
	bool has_namesake;    /* which has been told */
	uint64_t trip_ns;     /* until the latest answer */
	struct weir_news news;
	bool is_looking; /* the command under way asks who is there, for people */
	uint32_t look;	 /* ... in the ledger of this rule */
};

/* ---- names ---- */

void weir_sharing_host(const struct weir_cluster_info *cluster, char host[WEIR_CLUSTER_WORD_CHARS])
{
	if (cluster->host[0]) {
		memcpy(host, cluster->host, WEIR_CLUSTER_WORD_CHARS);
		return;
	}
	if (gethostname(host, WEIR_CLUSTER_WORD_CHARS))
		strcpy(host, "localhost");
	host[WEIR_CLUSTER_WORD_CHARS - 1] = '\0';
	for (char *at = host; *at; at++) /* words in the ledger are separated by spaces */
		if (*at <= ' ' || *at > '~')
			*at = '-';
}

void weir_sharing_key(const struct weir_cluster_info *cluster, const struct weir_rule_info *rule,
		      char key[WEIR_LEDGER_KEY_CHARS])
{
	snprintf(key, WEIR_LEDGER_KEY_CHARS, "weir:{%s}:%s:%llu%s", cluster->name, rule->name,
		 (unsigned long long)(rule->identity.interval_ns / 1000000),
		 rule->identity.counts_bytes ? "ms-bytes" : "ms");
}

void weir_sharing_process(uint64_t number, char process[WEIR_CLUSTER_NAME_CHARS])
{
	snprintf(process, WEIR_CLUSTER_NAME_CHARS, "%016llx", (unsigned long long)number);
}

/* Other than that of every process before it. */
static int name_process(char process[WEIR_CLUSTER_NAME_CHARS])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	weir_sharing_process(random, process);
	return 0;
}

/* ---- what is pushed ---- */

/* Returns what was in force until now. */
static uint64_t push(struct weir_sharing *sharing, struct shared_rule *rule, uint64_t now_ns)
{
	struct weir_shared_threshold *pushed = &sharing->pushed[rule->slot];

	return weir_course_push(&pushed->version, pushed->stages, &rule->share, now_ns);
}

static uint32_t trip_us(const struct weir_sharing *sharing)
{
	return sharing->misses_store ? 0 : (uint32_t)((sharing->trip_ns + 999) / 1000);
}

static void tell(struct weir_sharing *sharing, const struct shared_rule *rule, uint64_t now_ns)
{
	struct weir_shared_threshold *pushed = &sharing->pushed[rule->slot];

	pushed->wanted = rule->wanted;
	pushed->hosts = (uint32_t)rule->share.hosts;
	pushed->live = sharing->misses_store ? 0 : (uint16_t)weir_roll_live(&sharing->news.roll);
	pushed->silent = sharing->misses_store ? 0 : (uint16_t)weir_roll_silent(&sharing->news.roll);
	pushed->trip_us = trip_us(sharing);
	pushed->reserved = rule->share.silent > 0 ? (uint64_t)rule->share.silent : 0;
	if (rule->share.has_lease) {
		pushed->alone_ns = 0;
	} else if (!pushed->alone_ns) {
		pushed->alone_ns = now_ns;
		if (pushed->leased_ns)
			weir_news_add(&sharing->news.alone, rule->info.name);
	}
}

/* What shrinks was in force until the program could read it, which may be later than the step thinks. */
static void push_all(struct weir_sharing *sharing, uint64_t now_ns)
{
	for (size_t i = 0; i < sharing->rule_count; i++) {
		struct shared_rule *rule = &sharing->rules[i];
		uint64_t before;

		if (rule->farewells)
			continue;
		weir_share_advance(&rule->share, now_ns);
		before = push(sharing, rule, now_ns);
		if (before > rule->share.enforced)
			weir_share_was(&rule->share, before, weir_host_now_ns());
		tell(sharing, rule, now_ns);
	}
	weir_sharing_flows_push(sharing->flows, sharing->pushed, now_ns);
}

/* ---- rules that come and go ---- */

struct weir_share_terms weir_sharing_terms(const struct weir_cluster_info *cluster, const struct weir_rule_info *info,
					   int64_t hosts)
{
	/* docs/rules.md: thresholds have 10^13 units at most, so that as many hosts as there can be do not overflow. */
	uint64_t units = info->threshold_micro / WEIR_MICRO, times = hosts > 1 ? (uint64_t)hosts : 1;

	return (struct weir_share_terms){
		.threshold = info->cluster == WEIR_CLUSTER_AVG_LOCAL ? units * times : units,
		.interval_ns = info->identity.interval_ns,
		.may_fall_back = info->falls_back,
		.is_per_flow = info->identity.key_fields != 0,
		.silent_ns = cluster->silent_ns,
		.stops = cluster->stops,
	};
}

static void begin(struct weir_sharing *sharing, struct shared_rule *rule, uint64_t now_ns)
{
	const struct weir_shared_threshold *pushed = &sharing->pushed[rule->slot];
	const struct weir_share_terms terms = weir_sharing_terms(&sharing->cluster, &rule->info, pushed->hosts);
	struct weir_share_course course;

	weir_course_read(pushed->version, pushed->stages, &course);
	if (course.leased | course.ended | course.fallen_back)
		weir_share_resume(&rule->share, &terms, &course, now_ns);
	else
		weir_share_begin(&rule->share, &terms, now_ns);
	rule->share.hosts = pushed->hosts;
}

static struct shared_rule *find(struct weir_sharing *sharing, const char *key)
{
	for (size_t i = 0; i < sharing->rule_count; i++)
		if (!strcmp(sharing->rules[i].key, key))
			return &sharing->rules[i];
	return NULL;
}

static int take_rule(struct weir_sharing *sharing, const struct weir_instance *instance, uint32_t slot, uint64_t now_ns)
{
	const struct weir_rule_info *info = &instance->rules[slot];
	char key[WEIR_LEDGER_KEY_CHARS];
	struct weir_share_terms terms;
	struct shared_rule *rule;

	weir_sharing_key(&sharing->cluster, info, key);
	rule = find(sharing, key);
	if (rule && !rule->farewells && rule->slot == slot) {
		terms = weir_sharing_terms(&sharing->cluster, info, rule->share.hosts);
		weir_share_change(&rule->share, &terms, now_ns);
	} else if (!rule) {
		rule = weir_array_add((void **)&sharing->rules, sharing->rule_count, sizeof(*rule));
		if (!rule)
			return -ENOMEM;
		sharing->rule_count++;
	}
	if (rule->slot != slot || !rule->key[0] || rule->farewells) {
		if (rule->key[0] && rule->slot != slot)
			weir_sharing_flows_drop(sharing->flows, rule->slot); /* their places were of that slot */
		rule->slot = slot;
		rule->info = *info;
		rule->farewells = 0;
		memcpy(rule->key, key, sizeof(rule->key));
		begin(sharing, rule, now_ns);
	}
	rule->info = *info;
	rule->is_kept = true;
	return 0;
}

static void drop_rule(struct weir_sharing *sharing, size_t index)
{
	sharing->rule_count--;
	memmove(&sharing->rules[index], &sharing->rules[index + 1],
		(sharing->rule_count - index) * sizeof(*sharing->rules));
}

/* The program has been told already that it is nobody's, or admits nothing. */
static void end_rule(struct weir_sharing *sharing, struct shared_rule *rule)
{
	rule->share.lent = weir_sharing_flows_lent(sharing->flows, rule->slot);
	weir_sharing_flows_drop(sharing->flows, rule->slot);
	rule->farewells = FAREWELLS;
}

static int take_rules(struct weir_sharing *sharing, const struct weir_instance *instance, uint64_t now_ns)
{
	int err = 0;

	for (size_t i = 0; i < sharing->rule_count; i++)
		sharing->rules[i].is_kept = false;
	for (uint32_t i = 0; !err && i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].cluster)
			err = take_rule(sharing, instance, instance->rule_order[i], now_ns);
	for (size_t i = 0; i < sharing->rule_count; i++)
		if (!sharing->rules[i].is_kept && !sharing->rules[i].farewells)
			end_rule(sharing, &sharing->rules[i]);
	return err;
}

static bool has_shared_rules(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].cluster)
			return true;
	return false;
}

static int map_shares(struct weir_sharing *sharing, const struct weir_instance *instance)
{
	weir_array_unmap(sharing->pushed, sharing->slots, sizeof(*sharing->pushed));
	sharing->slots = instance->info.rule_slots;
	sharing->pushed =
		weir_array_map(instance->map_fd[WEIR_TABLE_SHARES], sharing->slots, sizeof(*sharing->pushed), true);
	if (!sharing->pushed)
		return -errno;
	/* The instance may be opened anew, and with it its descriptors. */
	weir_closep(&sharing->rule_counters_fd);
	weir_closep(&sharing->resource_counters_fd);
	sharing->rule_counters_fd = dup(instance->map_fd[WEIR_TABLE_RULE_COUNTERS]);
	sharing->resource_counters_fd = dup(instance->map_fd[WEIR_TABLE_RESOURCE_COUNTERS]);
	return sharing->rule_counters_fd < 0 || sharing->resource_counters_fd < 0 ? -errno : 0;
}

/* ---- what is wanted ---- */

static uint64_t units_of(const struct weir_rule_info *info, const struct weir_tally *tally)
{
	return info->identity.counts_bytes ? tally->bytes : tally->packets;
}

/* What came, and what of it this rule blocked. Packets that another rule blocked are left out: a share is of no use to
 * them.
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

/* Rules whose counters, and those of whose resources, stand one behind the other. */
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

/* All rules, by a system call for many. What cannot be read stays as it was: then nothing came. */
static void count(struct weir_sharing *sharing)
{
	size_t cpus = weir_host_cpus() > 0 ? (size_t)weir_host_cpus() : 1, length;
	_cleanup_(weir_freep) struct weir_rule_counters *of_rule = calloc(COUNTED_AT_ONCE * cpus, sizeof(*of_rule));
	_cleanup_(weir_freep) struct weir_resource_counters *of_resource =
		calloc(COUNTED_AT_ONCE * cpus, sizeof(*of_resource));

	for (size_t i = 0; of_rule && of_resource && i < sharing->rule_count; i += length) {
		struct shared_rule *rule = &sharing->rules[i];

		length = run_length(sharing, i);
		if (weir_percpu_read(sharing->rule_counters_fd, rule->slot, (uint32_t)length, cpus * sizeof(*of_rule),
				     of_rule) ||
		    weir_percpu_read(sharing->resource_counters_fd, rule->info.resource_slot, (uint32_t)length,
				     cpus * sizeof(*of_resource), of_resource))
			continue;
		for (size_t j = 0; j < length; j++)
			add_up(&rule[j], &of_rule[j * cpus], &of_resource[j * cpus], (int)cpus);
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

/* What flows say depends on their rules' shares, and what rules say on what of these is given up [9]. */
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

/* Which flows there are to say something of. */
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

static void ask(struct weir_sharing *sharing, uint64_t now_ns)
{
	_cleanup_(weir_message_free) struct weir_message message = {};
	_cleanup_(weir_freep) struct weir_share_ask *asks = NULL;
	_cleanup_(weir_freep) weir_flow_ledger *keys = NULL;
	const struct weir_shared_flow *flows;
	size_t flow_count, wanted_count;

	if (look_for_flows(sharing, now_ns))
		return; /* as a message that was lost */
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

/* At the ledgers in turn. A reload may change their numbers, which costs a line of news at most. */
static void look(struct weir_sharing *sharing, uint64_t now_ns)
{
	const char *words[] = {"HGETALL", NULL};
	size_t bytes[] = {strlen("HGETALL"), 0};

	sharing->look = sharing->news.looks++ % (uint32_t)sharing->rule_count;
	words[1] = sharing->rules[sharing->look].key;
	bytes[1] = strlen(words[1]);
	sharing->is_looking = true;
	sharing->news.looked_ns = now_ns;
	weir_store_send(sharing->store, 2, words, bytes, now_ns);
}

static void load_script(struct weir_sharing *sharing, uint64_t now_ns)
{
	size_t bytes[3] = {strlen("SCRIPT"), strlen("LOAD"), 0};
	const char *words[3] = {"SCRIPT", "LOAD", weir_ledger_script(&bytes[2])};

	sharing->is_loading = true;
	sharing->is_looking = false; /* a connection that was lost may have had it under way */
	sharing->connection = weir_store_connection(sharing->store);
	weir_store_send(sharing->store, 3, words, bytes, now_ns);
}

/* ---- answers ---- */

/* An answer that a ledger gives; a rule's may have a list of its flows behind it. */
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

	if (read_answer(reply, &rule->share.terms, &answer))
		return;
	if (rule->share.epoch[0] && strcmp(rule->share.epoch, answer.epoch) != 0)
		weir_news_add(&sharing->news.ledgers, rule->info.name);
	weir_share_take(&rule->share, &answer, rule->asked_ns, now_ns);
	pushed->trouble = answer.lease_us > 0			? WEIR_SHARE_FINE
			  : answer.lease_us == WEIR_LEASE_TAKEN ? WEIR_SHARE_TAKEN
								: WEIR_SHARE_LATE;
	if (answer.lease_us <= 0)
		return;
	if (pushed->leased_ns && pushed->alone_ns)
		weir_news_add(&sharing->news.leased, rule->info.name);
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

/* By what ledgers said last. */
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

		if (!rule->asked_ns) /* it came after the message went */
			continue;
		if (!rule->farewells)
			take_answer(sharing, rule, weir_reply_at(reply, next), now_ns);
		next++;
	}
	watch_name(sharing, now_ns);
	for (size_t i = 0; i < flow_count && next < count; i++)
		if (flows[i].asked_ns)
			take_flow_answer(sharing, &flows[i], weir_reply_at(reply, next++), now_ns);
	/* Which flows there are changes last: answers go by their order. */
	for (size_t i = 0, at = 0; i < sharing->rule_count && at < count; i++)
		if (sharing->rules[i].asked_ns)
			take_list(sharing, &sharing->rules[i], weir_reply_at(reply, at++), now_ns);
}

/* Those that have left, or have said so often enough. */
static void end_farewells(struct weir_sharing *sharing)
{
	for (size_t i = sharing->rule_count; i-- > 0;)
		if (sharing->rules[i].says_farewell && sharing->rules[i].farewells && !--sharing->rules[i].farewells)
			drop_rule(sharing, i);
	for (size_t i = 0; i < sharing->rule_count; i++)
		sharing->rules[i].asked_ns = 0;
}

static void take_reply(struct weir_sharing *sharing, const struct weir_reply *reply, uint64_t now_ns)
{
	const char *error = weir_reply_error(reply), *text = weir_reply_text(reply);

	if (sharing->is_looking) {
		sharing->is_looking = false;
		if (!error)
			weir_news_take_ledger(&sharing->news, sharing->look, reply);
		return;
	}
	if (error) {
		snprintf(sharing->trouble, sizeof(sharing->trouble), "it says '%.120s'", error);
		sharing->script[0] = '\0'; /* NOSCRIPT; or whatever else it is, it does no harm to tell it again */
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

/* ---- rounds ---- */

static const char *why_missed(const struct weir_sharing *sharing)
{
	const char *trouble = weir_store_trouble(sharing->store);

	return trouble[0] ? trouble : sharing->trouble[0] ? sharing->trouble : "it does not answer";
}

static void tell_of_loss(struct weir_sharing *sharing, uint64_t now_ns, struct weir_diag *diag)
{
	snprintf(sharing->told, sizeof(sharing->told), "%s", why_missed(sharing));
	sharing->told_ns = now_ns;
	weir_news_of_store(&sharing->news, sharing->cluster.redis, sharing->told);
	weir_diag_warning(diag, NULL, NULL,
			  "rules that hosts share are at what this host has without the others; 'weir cluster status' "
			  "shows it",
			  "cannot speak to the store '%s': %s", sharing->cluster.redis, sharing->told);
}

/* The first may be that nobody knows yet: a name that takes long to look up. Where reasons alternate, as those of
 * several addresses do, each is told no sooner than after twice the time that the last one was.
 */
static bool has_new_reason(const struct weir_sharing *sharing, uint64_t now_ns)
{
	return now_ns - sharing->told_ns >= sharing->told_ns - sharing->missed_ns &&
	       strcmp(sharing->told, why_missed(sharing)) != 0;
}

/* When all leases have ended, and when there is another reason for it; and once when there is an answer again. */
static void watch_store(struct weir_sharing *sharing, uint64_t now_ns, struct weir_diag *diag)
{
	bool is_missed = now_ns - sharing->answered_ns >= WEIR_CLUSTER_LEASE_NS;

	if (is_missed && !sharing->misses_store)
		sharing->missed_ns = now_ns;
	if (is_missed && (!sharing->misses_store || has_new_reason(sharing, now_ns)))
		tell_of_loss(sharing, now_ns, diag);
	if (!is_missed && sharing->misses_store) {
		weir_news_of_store(&sharing->news, sharing->cluster.redis, NULL);
		weir_diag_note(diag, "the store '%s' answers again: limits are shared", sharing->cluster.redis);
	}
	sharing->misses_store = is_missed;
}

/* Once when it is clear that the name will not be free by itself, and once when it is. */
static void tell_of_namesake(struct weir_sharing *sharing, uint64_t now_ns, struct weir_diag *diag)
{
	bool has_namesake = sharing->taken_ns && now_ns - sharing->taken_ns >= NAMESAKE_NS;

	if (has_namesake == sharing->has_namesake)
		return;
	sharing->has_namesake = has_namesake;
	weir_news_of_name(&sharing->news, has_namesake);
	if (has_namesake)
		weir_diag_warning(diag, NULL, NULL, "name each host differently: 'host' in settings.cluster",
				  "this host has no share: another one of cluster '%s' is called '%s', too",
				  sharing->cluster.name, sharing->member.host);
	else
		weir_diag_note(diag, "no other host is called '%s' any more: limits are shared", sharing->member.host);
}

static bool is_script_there(const struct weir_sharing *sharing)
{
	return sharing->script[0] && sharing->connection == weir_store_connection(sharing->store);
}

/* Another command may be under way: then its message counts as lost, and the next is due when that is over. */
static void speak(struct weir_sharing *sharing, uint64_t now_ns)
{
	if (!weir_store_is_ready(sharing->store))
		return;
	if (!is_script_there(sharing))
		load_script(sharing, now_ns);
	else if (weir_member_takes_turn(&sharing->member, now_ns))
		ask(sharing, now_ns);
	else if (sharing->rule_count && !sharing->member.is_waiting && weir_news_is_due(&sharing->news, now_ns))
		look(sharing, now_ns);
	else
		return;
	weir_store_step(sharing->store, now_ns);
}

static void step(struct weir_sharing *sharing, struct weir_diag *diag)
{
	struct weir_reply *reply;
	uint64_t now_ns = weir_host_now_ns();

	weir_store_step(sharing->store, now_ns);
	reply = weir_store_take_reply(sharing->store);
	if (reply) {
		take_reply(sharing, reply, now_ns);
		weir_store_free_reply(reply);
	}
	push_all(sharing, now_ns);
	speak(sharing, weir_host_now_ns());
	watch_store(sharing, now_ns, diag);
	tell_of_namesake(sharing, now_ns, diag);
	weir_news_tell(&sharing->news);
}

static struct pollfd poll_store(const struct weir_sharing *sharing)
{
	return sharing ? weir_store_poll(sharing->store) : (struct pollfd){.fd = -1};
}

static uint64_t due_ns_of(const struct weir_sharing *sharing)
{
	uint64_t due_ns, turn_ns, next_ns;

	if (!sharing)
		return UINT64_MAX;
	due_ns = weir_store_due_ns(sharing->store);
	if (weir_store_is_ready(sharing->store)) {
		turn_ns = sharing->member.asked_ns +
			  (sharing->member.is_waiting ? WEIR_CLUSTER_TRIP_NS : WEIR_CLUSTER_ROUND_NS);
		if (!is_script_there(sharing))
			turn_ns = 0;
		due_ns = turn_ns < due_ns ? turn_ns : due_ns;
	}
	for (size_t i = 0; i < sharing->rule_count; i++) {
		next_ns = weir_share_next_ns(&sharing->rules[i].share);
		due_ns = next_ns < due_ns ? next_ns : due_ns;
	}
	next_ns = weir_sharing_flows_next_ns(sharing->flows);
	return next_ns < due_ns ? next_ns : due_ns;
}

static void leave(struct weir_sharing *sharing)
{
	uint64_t now_ns = weir_host_now_ns(), end_ns = now_ns + WEIR_SHARING_LEAVE_NS;
	struct weir_diag ignored = {}; /* nobody is there any more to whom it matters */

	sharing->news.looked_ns = now_ns; /* there is no time for it */
	for (size_t i = 0; i < sharing->rule_count; i++) {
		struct weir_share_terms nothing = sharing->rules[i].share.terms;

		nothing.threshold = 0;
		nothing.may_fall_back = false;
		weir_share_change(&sharing->rules[i].share, &nothing, now_ns);
		push(sharing, &sharing->rules[i], now_ns);
		end_rule(sharing, &sharing->rules[i]);
		sharing->rules[i].farewells = 1;
	}
	while (sharing->rule_count && now_ns < end_ns) {
		struct pollfd polled = poll_store(sharing);
		uint64_t due_ns = due_ns_of(sharing);

		due_ns = due_ns < end_ns ? due_ns : end_ns;
		if (due_ns > now_ns)
			(void)poll(&polled, 1, (int)((due_ns - now_ns) / 1000000 + 1)); /* the step meets errors */
		step(sharing, &ignored);
		now_ns = weir_host_now_ns();
	}
	weir_diag_free(&ignored);
}

static uint32_t rule_count_of(const struct weir_sharing *sharing)
{
	return sharing ? (uint32_t)sharing->rule_count : 0;
}

/* ---- what the controller calls ---- */

static void free_sharing(struct weir_sharing *sharing)
{
	if (!sharing)
		return;
	weir_store_free(sharing->store);
	weir_sharing_flows_free(sharing->flows);
	weir_array_unmap(sharing->pushed, sharing->slots, sizeof(*sharing->pushed));
	weir_closep(&sharing->rule_counters_fd);
	weir_closep(&sharing->resource_counters_fd);
	free(sharing->rules);
	free(sharing);
}

static int open_sharing(const struct weir_instance *instance, struct weir_sharing **ret_sharing, struct weir_diag *diag)
{
	struct weir_sharing *sharing = calloc(1, sizeof(*sharing));
	int err = sharing ? weir_store_open(&instance->info.cluster, &sharing->store, diag) : -ENOMEM;

	if (sharing)
		sharing->rule_counters_fd = sharing->resource_counters_fd = -1;
	if (!err)
		err = name_process(sharing->member.process);
	if (!err)
		err = weir_sharing_flows_open(&instance->info.cluster, &sharing->flows, diag);
	if (err) {
		free_sharing(sharing);
		return err;
	}
	sharing->cluster = instance->info.cluster;
	snprintf(sharing->news.instance, sizeof(sharing->news.instance), "%s", instance->name);
	weir_sharing_host(&sharing->cluster, sharing->news.host);
	sharing->answered_ns = weir_host_now_ns();
	weir_sharing_host(&sharing->cluster, sharing->member.host);
	*ret_sharing = sharing;
	return 0;
}

/* Shares are of a cluster: in another one they are none. */
static void empty_shares(struct weir_sharing *sharing, uint64_t now_ns)
{
	for (size_t i = 0; i < sharing->rule_count; i++) {
		const struct weir_share_terms terms = weir_sharing_terms(&sharing->cluster, &sharing->rules[i].info, 0);

		weir_share_begin(&sharing->rules[i].share, &terms, now_ns);
	}
	push_all(sharing, now_ns);
	weir_sharing_flows_drop(sharing->flows, WEIR_FLOWS_ANY);
}

/* How long they may be silent does not matter. */
static bool is_same_cluster(const struct weir_cluster_info *a, const struct weir_cluster_info *b)
{
	return !memcmp(a, b, offsetof(struct weir_cluster_info, silent_ns));
}

static int follow(struct weir_sharing **sharing, const struct weir_instance *instance, struct weir_diag *diag)
{
	bool is_other = *sharing && !is_same_cluster(&(*sharing)->cluster, &instance->info.cluster);
	int err;

	if (*sharing && (is_other || !has_shared_rules(instance))) {
		leave(*sharing);
		free_sharing(TAKE_PTR(*sharing));
	}
	if (!has_shared_rules(instance))
		return 0;
	err = weir_instance_expect_tables(instance, WEIR_SHARING_TABLES, "the shares", diag);
	if (!err && !*sharing)
		err = open_sharing(instance, sharing, diag);
	if (err)
		return err;
	(*sharing)->cluster = instance->info.cluster;
	err = map_shares(*sharing, instance);
	if (!err)
		err = weir_sharing_flows_follow((*sharing)->flows, instance);
	if (!err)
		err = take_rules(*sharing, instance, weir_host_now_ns());
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot share limits with other hosts");
	if (is_other)
		empty_shares(*sharing, weir_host_now_ns());
	return 0;
}

const struct weir_sharing_calls weir_sharing_calls = {
	.follow = follow,
	.free = free_sharing,
	.poll = poll_store,
	.due_ns = due_ns_of,
	.step = step,
	.leave = leave,
	.rule_count = rule_count_of,
};
