// SPDX-License-Identifier: GPL-2.0-only
#include "report/cluster.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cluster/share.h"
#include "host/host.h"
#include "sharing/store.h"
#include "words/json.h"

/* ---- ledgers (cluster/ledger.lua writes them) ---- */

/* "host:NAME" and "process turn hold fallback ask heard_us ends_us rest_us". What is not so is passed over. */
static void read_host(struct weir_shared_view *view, const char *field, const char *text, int64_t now_us)
{
	struct weir_ledger_host *host, read = {};
	int64_t heard_us;

	if (strncmp(field, "host:", 5) || strlen(field + 5) >= sizeof(read.name) ||
	    sscanf(text, "%*s %*s %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64, &read.hold, &read.fallback,
		   &read.wanted, &heard_us) != 4)
		return;
	strcpy(read.name, field + 5);
	read.is_live = read.wanted >= 0 && heard_us >= 0 && now_us < heard_us + (int64_t)(WEIR_CLUSTER_LEASE_NS / 1000);
	host = weir_array_add((void **)&view->hosts, view->host_count, sizeof(*host));
	if (!host)
		return; /* it is not shown */
	*host = read;
	view->host_count++;
}

static int by_name(const void *left, const void *right)
{
	const struct weir_ledger_host *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static void read_ledger(struct weir_shared_view *view, const struct weir_reply *reply)
{
	uint64_t owed = 0, came = 0;
	int64_t now_us = 0;

	for (int pass = 0; pass < 2; pass++) { /* the time first */
		for (size_t i = 0; i + 1 < weir_reply_count(reply); i += 2) {
			const char *field = weir_reply_text(weir_reply_at(reply, i));
			const char *text = weir_reply_text(weir_reply_at(reply, i + 1));

			if (!field || !text)
				continue;
			if (pass == 1)
				read_host(view, field, text, now_us);
			else if (!strcmp(field, "ledger") &&
				 sscanf(text, "%*s %*s %" SCNd64 " %" SCNu64 " %" SCNu64, &now_us, &owed, &came) == 3)
				view->has_ledger = true;
		}
	}
	view->owed = owed > came ? owed - came : 0;
	if (view->host_count)
		qsort(view->hosts, view->host_count, sizeof(*view->hosts), by_name);
}

/* NULL: it did not reply, or with an error; `trouble` says so. */
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

static void ask_store(struct weir_cluster_view *view, struct weir_store *store)
{
	uint64_t start_ns = weir_host_now_ns();

	view->answers = true;
	for (size_t i = 0; view->answers && i < view->rule_count; i++) {
		char key[WEIR_LEDGER_KEY_CHARS];
		const char *words[] = {"HGETALL", key};
		struct weir_reply *reply;

		weir_sharing_key(&view->instance->info.cluster, view->rules[i].rule, key);
		reply = ask(store, 2, words, view->trouble, sizeof(view->trouble));
		view->answers = reply;
		if (!reply)
			break;
		read_ledger(&view->rules[i], reply);
		weir_store_free_reply(reply);
	}
	view->took_ns = weir_host_now_ns() - start_ns;
}

/* ---- the view ---- */

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
		if (bpf_map_lookup_elem(instance->map_fd[WEIR_MAP_SHARES], &slot, &rule->shared))
			return -errno;
		rule->in_force = weir_share_in_force(&rule->shared, view->now_ns);
		view->rule_count++;
	}
	return 0;
}

int weir_cluster_view_read(const struct weir_instance *instance, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag)
{
	_cleanup_(weir_store_freep) struct weir_store *store = NULL;
	int err = weir_instance_expect_tables(instance, WEIR_TABLE_BIT(WEIR_MAP_SHARES), "the shares", diag);

	if (err)
		return err;
	*ret_view = (struct weir_cluster_view){.instance = instance, .now_ns = weir_host_now_ns()};
	weir_sharing_host(&instance->info.cluster, ret_view->host);
	err = read_rules(instance, ret_view);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the shares of instance '%s'", instance->name);
	if (!ret_view->rule_count)
		return 0;
	err = weir_store_open(&instance->info.cluster, &store, diag);
	if (!err)
		ask_store(ret_view, store);
	return err;
}

void weir_cluster_view_free(struct weir_cluster_view *view)
{
	for (size_t i = 0; i < view->rule_count; i++)
		free(view->rules[i].hosts);
	free(view->rules);
}

/* ---- words, and JSON ---- */

static const struct weir_share_stages *stages_of(const struct weir_shared_view *view)
{
	return &view->shared.stages[view->shared.version & 1];
}

const char *weir_share_words(const struct weir_shared_view *view, uint64_t now_ns, char words[WEIR_SHARE_WORDS_BYTES])
{
	uint64_t ends_ns = stages_of(view)->until_ns[WEIR_SHARE_LEASED];
	uint64_t alone_ns = view->shared.alone_ns;

	if (!view->shared.version)
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "no controller has asked yet");
	else if (view->shared.trouble == WEIR_SHARE_TAKEN && now_ns >= ends_ns)
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "waits: its name is another process's");
	else if (now_ns < ends_ns)
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "%.1f s", (double)(ends_ns - now_ns) / WEIR_NSEC_PER_SEC);
	else /* a controller that died could not say since when */
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "alone for %.0f s",
			 (double)(now_ns - (alone_ns ? alone_ns : ends_ns)) / WEIR_NSEC_PER_SEC);
	return words;
}

static json_t *describe_hosts(const struct weir_shared_view *view)
{
	json_t *hosts = json_array();

	for (size_t i = 0; i < view->host_count; i++) {
		const struct weir_ledger_host *host = &view->hosts[i];

		weir_json_append(&hosts,
				 json_pack("{s:s, s:s, s:I, s:I, s:o}", "host", host->name, "state",
					   host->wanted < 0 ? "left"
					   : host->is_live  ? "live"
							    : "silent",
					   "hold", (json_int_t)host->hold, "fallback", (json_int_t)host->fallback,
					   "wanted", host->wanted < 0 ? json_null() : json_integer(host->wanted)));
	}
	return hosts;
}

static json_t *describe_rule(const struct weir_cluster_view *view, const struct weir_shared_view *rule)
{
	const struct weir_share_stages *stages = stages_of(rule);
	uint64_t ends_ns = stages->until_ns[WEIR_SHARE_LEASED], alone_ns = rule->shared.alone_ns;
	bool is_leased = view->now_ns < ends_ns;
	json_t *fields = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "rule", rule->rule->name, "share", (json_int_t)rule->in_force,
		"wanted", (json_int_t)rule->shared.wanted, "fallback",
		(json_int_t)stages->units[WEIR_SHARE_FALLEN_BACK], "hosts", (json_int_t)rule->shared.hosts, "leaseMs",
		is_leased ? json_integer((json_int_t)((ends_ns - view->now_ns) / 1000000)) : json_null(), "aloneMs",
		is_leased || !rule->shared.version
			? json_null()
			: json_integer((json_int_t)((view->now_ns - (alone_ns ? alone_ns : ends_ns)) / 1000000)));

	if (rule->has_ledger) {
		json_object_set_new(fields, "owed", json_integer((json_int_t)rule->owed));
		json_object_set_new(fields, "ledger", describe_hosts(rule));
	}
	return fields;
}

json_t *weir_cluster_describe(const struct weir_cluster_view *view)
{
	const struct weir_cluster_info *cluster = &view->instance->info.cluster;
	json_t *rules = json_array(), *store;

	for (size_t i = 0; i < view->rule_count; i++)
		weir_json_append(&rules, describe_rule(view, &view->rules[i]));
	store = json_pack("{s:s, s:b, s:o, s:o}", "address", cluster->redis, "answers", view->answers, "tookUs",
			  view->answers ? json_integer((json_int_t)(view->took_ns / 1000)) : json_null(), "trouble",
			  view->answers ? json_null() : json_string(view->trouble));
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "instance", view->instance->name, "cluster", cluster->name,
			 "host", view->host, "store", store, "rules", rules);
}

/* ---- forgetting ---- */

static int forget_in(struct weir_store *store, const struct weir_cluster_view *view,
		     const struct weir_shared_view *rule, const char *host, struct weir_diag *diag)
{
	char key[WEIR_LEDGER_KEY_CHARS], field[WEIR_CLUSTER_WORD_CHARS + 8], trouble[160];
	const char *words[] = {"HDEL", key, field};
	struct weir_reply *reply;

	weir_sharing_key(&view->instance->info.cluster, rule->rule, key);
	snprintf(field, sizeof(field), "host:%s", host);
	reply = ask(store, 3, words, trouble, sizeof(trouble));
	if (!reply)
		return weir_diag_fail(diag, EIO, NULL, "cannot take '%s' out of the ledger of rule '%s': %s", host,
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

/* -ENOENT: nobody has it; -EBUSY: it is live. */
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
	int err = weir_cluster_view_read(instance, &view, diag);

	if (err)
		return err;
	if (view.rule_count && !view.answers)
		return weir_diag_fail(diag, 0, NULL, "cannot speak to the store '%s': %s", instance->info.cluster.redis,
				      view.trouble);
	err = find_in_all(&view, host);
	if (err == -ENOENT)
		weir_diag_error(diag, NULL, NULL, "'weir cluster status' lists those that are known",
				"no ledger has a host '%s'", host);
	if (err == -EBUSY)
		weir_diag_error(diag, NULL, NULL, "end its 'weir run' first, which gives all back",
				"host '%s' is live: it would be back at once", host);
	if (!err)
		err = weir_store_open(&instance->info.cluster, &store, diag);
	for (size_t i = 0; !err && i < view.rule_count; i++)
		if (find_host(&view.rules[i], host))
			err = forget_in(store, &view, &view.rules[i], host, diag);
	return err;
}
