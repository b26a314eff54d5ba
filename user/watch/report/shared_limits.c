// SPDX-License-Identifier: GPL-2.0-only
#include "report/shared_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "shares/share.h"
#include "store/store.h"
#include "tables/share_schedule.h"
#include "words/json.h"

/* ---- ledgers (shares/ledger.lua writes them) ---- */

static void add_host(struct weir_shared_view *view, const struct weir_ledger_host *host)
{
	struct weir_ledger_host *slot = weir_array_add((void **)&view->hosts, view->host_count, sizeof(*slot));

	if (!slot)
		return; /* then the host is not shown */
	*slot = *host;
	view->host_count++;
}

static int by_name(const void *left, const void *right)
{
	const struct weir_ledger_host *a = left, *b = right;

	return strcmp(a->name, b->name);
}

/* Fields that do not belong to a ledger are skipped. */
static void read_ledger(struct weir_shared_view *view, const struct weir_reply *reply)
{
	struct weir_ledger_head head = {};
	struct weir_ledger_host host;

	for (int pass = 0; pass < 2; pass++) { /* the time must be read first */
		for (size_t i = 0; i + 1 < weir_reply_count(reply); i += 2) {
			const char *field = weir_reply_text(weir_reply_at(reply, i));
			const char *text = weir_reply_text(weir_reply_at(reply, i + 1));

			if (!field || !text)
				continue;
			if (pass == 0)
				view->has_ledger |= weir_ledger_read_head(field, text, &head);
			else if (weir_ledger_read_host(field, text, head.now_us, &host))
				add_host(view, &host);
		}
	}
	view->ledger_us = head.now_us;
	view->owed = head.owed > head.came ? head.owed - head.came : 0;
	if (view->has_ledger)
		view->reserved = view->owed;
	for (size_t i = 0; i < view->host_count; i++)
		view->reserved += weir_ledger_reserved(&view->hosts[i]);
	if (view->host_count)
		qsort(view->hosts, view->host_count, sizeof(*view->hosts), by_name);
}

/* NULL: it did not reply, or replied with an error; `trouble` says which. */
static struct weir_reply *ask(struct weir_store *store, size_t count, const char **words, char *trouble,
			      size_t trouble_bytes)
{
	struct weir_reply *reply;
	size_t bytes[4];

	for (size_t i = 0; i < count; i++)
		bytes[i] = strlen(words[i]);
	reply = weir_store_ask(store, count, words, bytes);
	if (!reply) {
		snprintf(trouble, trouble_bytes, "%s",
			 weir_store_trouble(store)[0] ? weir_store_trouble(store) : "it does not answer");
	} else if (weir_reply_error(reply)) {
		snprintf(trouble, trouble_bytes, "it says '%.120s'", weir_reply_error(reply));
		weir_store_free_reply(reply);
		reply = NULL;
	}
	return reply;
}

static void find_reserved(struct weir_cluster_view *view)
{
	view->reserved_percent = 0;
	for (size_t i = 0; i < view->rule_count; i++) {
		uint32_t percent = weir_ledger_percent(view->rules[i].reserved, view->rules[i].threshold);

		if (percent > view->reserved_percent)
			view->reserved_percent = percent;
	}
}

/* For all rules together: a person waits, and the store may be slow for each. Chosen, not derived. */
#define ASK_NS_MAX (3 * WEIR_NSEC_PER_SEC)

static void ask_store(struct weir_cluster_view *view, const char *only, struct weir_store *store)
{
	uint64_t start_ns = weir_host_now_ns();

	view->is_asked = view->answers = true;
	for (size_t i = 0; view->answers && i < view->rule_count; i++) {
		char key[WEIR_LEDGER_KEY_CHARS];
		const char *words[] = {"HGETALL", key};
		struct weir_reply *reply;

		if (only && strcmp(view->rules[i].rule->name, only) != 0)
			continue;
		weir_sharing_key(&view->instance->info.cluster, view->rules[i].rule, key);
		reply = ask(store, 2, words, view->trouble, sizeof(view->trouble));
		view->answers = reply;
		if (!reply)
			break;
		read_ledger(&view->rules[i], reply);
		weir_store_free_reply(reply);
		view->answers = weir_host_now_ns() - start_ns < ASK_NS_MAX;
		if (!view->answers)
			snprintf(view->trouble, sizeof(view->trouble), "it takes more than 3 s for all rules");
	}
	view->took_ns = weir_host_now_ns() - start_ns;
	find_reserved(view);
}

/* ---- the view ---- */

static const struct weir_share_stages *stages_of(const struct weir_shared_view *view)
{
	return &view->shared.stages[view->shared.version & 1];
}

/* A controller that died could not record the time, so the end of the lease is used. */
uint64_t weir_share_alone_since(const struct weir_shared_view *rule, uint64_t now_ns)
{
	uint64_t ends_ns = stages_of(rule)->until_ns[WEIR_SHARE_LEASED];

	if (!rule->shared.version || now_ns < ends_ns)
		return 0;
	return rule->shared.alone_ns ? rule->shared.alone_ns : ends_ns;
}

/* Every rule holds what the controller knows about the cluster. */
static void add_up(struct weir_cluster_view *view, const struct weir_shared_view *rule)
{
	uint64_t since_ns = weir_share_alone_since(rule, view->now_ns);

	view->live = rule->shared.live;
	view->silent = rule->shared.silent;
	view->trip_us = rule->shared.trip_us;
	if (!since_ns)
		return;
	view->alone++;
	if (view->now_ns - since_ns > view->alone_ns)
		view->alone_ns = view->now_ns - since_ns;
}

static uint64_t threshold_of(const struct weir_rule_info *rule, uint64_t hosts)
{
	const uint64_t units = rule->threshold_micro / WEIR_MICRO;

	return rule->cluster == WEIR_CLUSTER_AVG_LOCAL && hosts > 1 ? units * hosts : units;
}

static int read_rules(const struct weir_instance *instance, struct weir_cluster_view *view)
{
	view->rules = calloc(instance->rule_count + 1, sizeof(*view->rules));
	if (!view->rules)
		return -ENOMEM;
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		uint32_t slot = instance->rule_order[i];
		struct weir_shared_view *rule = &view->rules[view->rule_count];

		if (!instance->rules[slot].cluster)
			continue;
		rule->rule = &instance->rules[slot];
		if (weir_map_look_up(instance->map_fd[WEIR_TABLE_SHARES], &slot, &rule->shared))
			return -errno;
		rule->in_force = weir_share_in_force(&rule->shared, view->now_ns);
		rule->threshold = threshold_of(rule->rule, rule->shared.hosts);
		/* What a controller knows without the store is out of date. */
		rule->reserved = rule->shared.trip_us ? rule->shared.reserved : 0;
		view->rule_count++;
		add_up(view, rule);
	}
	find_reserved(view);
	return 0;
}

int weir_cluster_view_look(const struct weir_instance *instance, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag)
{
	int err = weir_instance_expect_tables(instance, WEIR_TABLE_BIT(WEIR_TABLE_SHARES), "the shares", diag);

	if (err)
		return err;
	*ret_view = (struct weir_cluster_view){.instance = instance, .now_ns = weir_host_now_ns()};
	weir_sharing_host(&instance->info.cluster, ret_view->host);
	err = read_rules(instance, ret_view);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot read the shares of instance '%s'", instance->name) : 0;
}

int weir_cluster_view_read(const struct weir_instance *instance, const char *only, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag)
{
	_cleanup_(weir_store_freep) struct weir_store *store = NULL;
	int err = weir_cluster_view_look(instance, ret_view, diag);

	if (err || !ret_view->rule_count)
		return err;
	err = weir_store_open(&instance->info.cluster, &store, diag);
	if (!err)
		ask_store(ret_view, only, store);
	return err;
}

void weir_cluster_view_free(struct weir_cluster_view *view)
{
	for (size_t i = 0; i < view->rule_count; i++)
		free(view->rules[i].hosts);
	free(view->rules);
	*view = (struct weir_cluster_view){};
}

/* ---- words, and JSON ---- */

const char *weir_share_words(const struct weir_shared_view *view, uint64_t now_ns, char words[WEIR_SHARE_WORDS_BYTES])
{
	uint64_t ends_ns = stages_of(view)->until_ns[WEIR_SHARE_LEASED];
	uint64_t alone_ns = weir_share_alone_since(view, now_ns);

	if (!view->shared.version)
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "no controller has asked yet");
	else if (view->shared.trouble == WEIR_SHARE_TAKEN && now_ns >= ends_ns)
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "waiting: another process has its name");
	else if (now_ns < ends_ns)
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "%.1f s", (double)(ends_ns - now_ns) / WEIR_NSEC_PER_SEC);
	else
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "alone for %.0f s",
			 (double)(now_ns - alone_ns) / WEIR_NSEC_PER_SEC);
	return words;
}

const char *weir_ledger_state(const struct weir_ledger_host *host)
{
	return host->wanted < 0 ? "left" : host->is_live ? "live" : "silent";
}

int64_t weir_ledger_reserved_us(const struct weir_shared_view *view, const struct weir_ledger_host *host)
{
	int64_t left_us = host->ends_us + host->silent_us - view->ledger_us;

	if (!weir_ledger_reserved(host))
		return 0;
	return host->silent_us >= WEIR_CLUSTER_FOREVER_US ? INT64_MAX : left_us > 0 ? left_us : 0;
}

/* null: nothing is reserved, or it is reserved for ever */
static json_t *reserved_ms(const struct weir_shared_view *view, const struct weir_ledger_host *host)
{
	const int64_t left_us = weir_ledger_reserved_us(view, host);

	return left_us && left_us != INT64_MAX ? json_integer(left_us / 1000) : json_null();
}

static json_t *describe_hosts(const struct weir_shared_view *view)
{
	json_t *hosts = json_array();

	for (size_t i = 0; i < view->host_count; i++) {
		const struct weir_ledger_host *host = &view->hosts[i];

		weir_json_append(&hosts,
				 json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:s}", "host", host->name, "state",
					   weir_ledger_state(host), "hold", (json_int_t)host->hold, "fallback",
					   (json_int_t)host->fallback, "wanted",
					   host->wanted < 0 ? json_null() : json_integer(host->wanted), "reservedMs",
					   reserved_ms(view, host), "afterSilence", host->stops ? "stop" : "keep"));
	}
	return hosts;
}

json_t *weir_shared_describe(const struct weir_cluster_view *view, const struct weir_shared_view *rule)
{
	const struct weir_share_stages *stages = stages_of(rule);
	uint64_t ends_ns = stages->until_ns[WEIR_SHARE_LEASED];
	uint64_t alone_ns = weir_share_alone_since(rule, view->now_ns);
	bool is_leased = view->now_ns < ends_ns;
	json_t *fields = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "rule", rule->rule->name, "share",
		(json_int_t)rule->in_force, "wanted", (json_int_t)rule->shared.wanted, "fallback",
		(json_int_t)stages->units[WEIR_SHARE_FALLEN_BACK], "hosts", (json_int_t)rule->shared.hosts, "reserved",
		(json_int_t)rule->reserved, "leaseMs",
		is_leased ? json_integer((json_int_t)((ends_ns - view->now_ns) / 1000000)) : json_null(), "aloneMs",
		alone_ns ? json_integer((json_int_t)((view->now_ns - alone_ns) / 1000000)) : json_null(),

		"flows", rule->rule->identity.key_fields ? json_integer((json_int_t)rule->shared.flows) : json_null());

	if (rule->has_ledger) {
		json_object_set_new(fields, "owed", json_integer((json_int_t)rule->owed));
		json_object_set_new(fields, "ledger", describe_hosts(rule));
	}
	return fields;
}

/* The state of the store: its own answer or, if it was not asked, what the controller knows. */
static json_t *describe_store(const struct weir_cluster_view *view)
{
	bool answers = view->is_asked ? view->answers : view->trip_us > 0;

	return json_pack("{s:s, s:b, s:o, s:o, s:o}", "address", view->instance->info.cluster.redis, "answers", answers,
			 "tookUs",
			 view->is_asked && answers ? json_integer((json_int_t)(view->took_ns / 1000)) : json_null(),
			 "latencyUs", view->trip_us ? json_integer(view->trip_us) : json_null(), "trouble",
			 view->is_asked && !answers ? json_string(view->trouble) : json_null());
}

json_t *weir_cluster_describe(const struct weir_cluster_view *view)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < view->rule_count; i++)
		weir_json_append(&rules, weir_shared_describe(view, &view->rules[i]));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o}", "instance", view->instance->name, "cluster",
			 view->instance->info.cluster.name, "host", view->host, "store", describe_store(view),
			 "hostsLive", view->live ? json_integer(view->live) : json_null(), "hostsSilent",
			 view->live ? json_integer(view->silent) : json_null(), "reservedPercent",
			 (json_int_t)view->reserved_percent, "rules", rules);
}

const char *weir_cluster_words(const struct weir_cluster_view *view, char words[WEIR_CLUSTER_WORDS_BYTES])
{
	char hosts[48] = "hosts unknown", silent[32] = "", store[32] = "store lost", alone[80] = "";
	char reserved[48] = "";

	if (view->live)
		snprintf(hosts, sizeof(hosts), "%u host%s live", view->live, weir_plural(view->live));
	if (view->silent)
		snprintf(silent, sizeof(silent), ", %u silent", view->silent);
	if (view->trip_us)
		snprintf(store, sizeof(store), "store %.1f ms", view->trip_us / 1e3);
	if (view->alone)
		snprintf(alone, sizeof(alone), "; %u of %zu rules alone for %.0f s", view->alone, view->rule_count,
			 (double)view->alone_ns / WEIR_NSEC_PER_SEC);
	if (view->reserved_percent)
		snprintf(reserved, sizeof(reserved), "; %u %% reserved for silent hosts", view->reserved_percent);
	snprintf(words, WEIR_CLUSTER_WORDS_BYTES, "%s: %s%s; %s%s%s", view->instance->info.cluster.name, hosts, silent,
		 store, reserved, alone);
	return words;
}

json_t *weir_cluster_sum(const struct weir_cluster_view *view)
{
	if (!view->rule_count)
		return json_null();
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "cluster", view->instance->info.cluster.name,
			 "host", view->host, "store", describe_store(view), "hostsLive",
			 view->live ? json_integer(view->live) : json_null(), "hostsSilent",
			 view->live ? json_integer(view->silent) : json_null(), "reservedPercent",
			 (json_int_t)view->reserved_percent, "sharedRules", (json_int_t)view->rule_count, "aloneRules",
			 (json_int_t)view->alone, "aloneMs",
			 view->alone ? json_integer((json_int_t)(view->alone_ns / 1000000)) : json_null());
}

/* ---- forgetting ---- */

static int forget_in(struct weir_store *store, const struct weir_cluster_view *view,
		     const struct weir_shared_view *rule, const char *host, struct weir_diag *diag)
{
	char key[WEIR_LEDGER_KEY_CHARS], field[WEIR_LEDGER_FIELD_CHARS], trouble[160];
	const char *words[] = {"HDEL", key, field};
	struct weir_reply *reply;

	weir_sharing_key(&view->instance->info.cluster, rule->rule, key);
	weir_ledger_field(host, field);
	reply = ask(store, 3, words, trouble, sizeof(trouble));
	if (!reply)
		return weir_diag_fail(diag, EIO, NULL, "cannot remove '%s' from the ledger of rule '%s': %s", host,
				      rule->rule->name, trouble);
	weir_store_free_reply(reply);
	return 0;
}

static const struct weir_ledger_host *find_host(const struct weir_shared_view *rule, const char *name)
{
	for (size_t i = 0; i < rule->host_count; i++)
		if (!strcmp(rule->hosts[i].name, name))
			return &rule->hosts[i];
	return NULL;
}

/* -ENOENT: no ledger has the host; -EBUSY: it is live. */
static int find_in_all(const struct weir_cluster_view *view, const char *name)
{
	int err = -ENOENT;

	for (size_t i = 0; i < view->rule_count; i++) {
		const struct weir_ledger_host *host = find_host(&view->rules[i], name);

		if (host && host->is_live)
			return -EBUSY;
		err = host ? 0 : err;
	}
	return err;
}

int weir_cluster_forget(const struct weir_instance *instance, const char *host, struct weir_diag *diag)
{
	_cleanup_(weir_cluster_view_free) struct weir_cluster_view view = {};
	_cleanup_(weir_store_freep) struct weir_store *store = NULL;
	int err = weir_cluster_view_read(instance, NULL, &view, diag);

	if (err)
		return err;
	if (view.rule_count && !view.answers) {
		weir_diag_error(diag, NULL, NULL, NULL, "cannot reach the store '%s': %s", instance->info.cluster.redis,
				view.trouble);
		return -EIO;
	}
	err = find_in_all(&view, host);
	if (err == -ENOENT)
		weir_diag_error(diag, NULL, NULL, "'weir cluster status' lists the hosts",
				"no ledger lists a host '%s'", host);
	if (err == -EBUSY)
		weir_diag_error(diag, NULL, NULL, "end its 'weir run' first; that gives its share back",
				"host '%s' is live: it would come back at once", host);
	if (!err)
		err = weir_store_open(&instance->info.cluster, &store, diag);
	for (size_t i = 0; !err && i < view.rule_count; i++)
		if (find_host(&view.rules[i], host))
			err = forget_in(store, &view, &view.rules[i], host, diag);
	return err;
}
