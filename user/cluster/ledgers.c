// SPDX-License-Identifier: GPL-2.0-only
#include "cluster/ledgers.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "store/sharing.h"
#include "store/store.h"
#include "tables/entry_state.h"
#include "words/json.h"

/* ---- reading (shares/ledger.lua writes them) ---- */

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
			struct weir_ledger_host *slot;

			if (!field || !text)
				continue;
			if (pass == 0 && weir_ledger_read_head(field, text, &head))
				view->has_ledger = true;
			else if (pass == 0 && !strcmp(field, "ledger") && isdigit(text[0]))
				snprintf(view->other_version, sizeof(view->other_version), "%.*s",
					 (int)strspn(text, "0123456789"), text);
			else if (pass == 1 && weir_ledger_read_host(field, text, head.now_us, &host) &&
				 (slot = weir_array_add((void **)&view->hosts, view->host_count, sizeof(*slot)))) {
				*slot = host; /* without memory the host is not shown */
				view->host_count++;
			}
		}
	}
	view->ledger_us = head.now_us;
	view->owed = head.owed;
	view->owed_ends_us = head.owed_ends_us;
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
	weir_cluster_find_reserved(view);
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

/* ---- words, and JSON ---- */

const char *weir_share_words(const struct weir_shared_view *view, uint64_t now_ns, char words[WEIR_SHARE_WORDS_BYTES])
{
	uint64_t ends_ns = weir_share_stages_in_force(&view->shared)->until_ns[WEIR_SHARE_LEASED];
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

int64_t weir_ledger_owed_us(const struct weir_shared_view *view)
{
	const int64_t left_us = view->owed_ends_us - view->ledger_us;

	if (!view->owed)
		return 0;
	return left_us >= WEIR_CLUSTER_FOREVER_US / 2 ? INT64_MAX : left_us > 0 ? left_us : 0;
}

/* null: nothing is reserved, or it is reserved for ever */
static json_t *reserved_ms(int64_t left_us)
{
	return left_us && left_us != INT64_MAX ? json_integer(left_us / 1000) : json_null();
}

/* "12 min", "5 s", "for ever"; "-": nothing is reserved. */
static const char *reserved_words(int64_t left_us, char words[WEIR_SHARE_WORDS_BYTES])
{
	if (!left_us)
		return "-";
	if (left_us == INT64_MAX)
		return "for ever";
	if (left_us >= 120000000)
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "%lld min", (long long)(left_us / 60000000));
	else
		snprintf(words, WEIR_SHARE_WORDS_BYTES, "%lld s", (long long)(left_us / 1000000));
	return words;
}

void weir_describe_ledger_host(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_shared_view *view = context;
	const struct weir_ledger_host *host = record;
	char words[WEIR_SHARE_WORDS_BYTES];

	WEIR_CELL(line, "rule", "%s", view->rule->name);
	WEIR_TEXT(line, "host", "host", host->name);
	WEIR_TEXT(line, "state", "state", weir_ledger_state(host));
	WEIR_COUNT(line, "hold", ">holds", host->hold);
	WEIR_COUNT(line, "fallback", ">alone", host->fallback);
	WEIR_KNOWN(line, "wanted", ">wanted", host->wanted >= 0, host->wanted, "-");
	WEIR_FIGURE(line, "reservedMs", ">reserved", reserved_ms(weir_ledger_reserved_us(view, host)), "%s",
		    reserved_words(weir_ledger_reserved_us(view, host), words));
	WEIR_FIELD(line, "afterSilence", json_string(host->stops ? "stop" : "keep"));
}

void weir_describe_owed(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_shared_view *view = record;
	char words[WEIR_SHARE_WORDS_BYTES];

	WEIR_CELL(line, "rule", "%s", view->rule->name);
	WEIR_CELL(line, "host", "(hosts of a lost ledger)");
	WEIR_CELL(line, "state", "silent");
	WEIR_COUNT(line, "owed", ">holds", view->owed);
	WEIR_CELL(line, ">alone", "%llu", (unsigned long long)view->owed);
	WEIR_CELL(line, ">wanted", "-");
	WEIR_FIGURE(line, "owedMs", ">reserved", reserved_ms(weir_ledger_owed_us(view)), "%s",
		    reserved_words(weir_ledger_owed_us(view), words));
}

// NOLINTNEXTLINE(readability-function-size): a list, a figure a statement
void weir_describe_share(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_cluster_view *view = context;
	const struct weir_shared_view *rule = record;
	const struct weir_share_stages *stages = &rule->shared.stages[rule->shared.version & 1];
	const uint64_t ends_ns = stages->until_ns[WEIR_SHARE_LEASED];
	const uint64_t alone_ns = line->is_heading ? 0 : weir_share_alone_since(rule, view->now_ns);
	char words[WEIR_WORDS_BYTES], lease[WEIR_SHARE_WORDS_BYTES];

	WEIR_TEXT(line, "rule", "rule", rule->rule->name);
	WEIR_CELL(line, "limit", "%s", weir_format_limit(rule->rule, view->instance->labels, words));
	WEIR_COUNT(line, "share", ">share", rule->in_force);
	WEIR_COUNT(line, "wanted", ">wanted", rule->shared.wanted);
	WEIR_COUNT(line, "fallback", ">alone", stages->units[WEIR_SHARE_FALLEN_BACK]);
	WEIR_COUNT(line, "hosts", ">hosts", rule->shared.hosts);
	WEIR_KNOWN(line, "flows", ">flows", rule->rule->identity.key_fields, rule->shared.flows, "-");
	WEIR_FIELD(line, "reserved", json_integer((json_int_t)rule->reserved));
	WEIR_CELL(line, "lease", "%s", weir_share_words(rule, view->now_ns, lease));
	WEIR_FIELD(line, "leaseMs",
		   view->now_ns < ends_ns ? json_integer((json_int_t)((ends_ns - view->now_ns) / 1000000))
					  : json_null());
	WEIR_FIELD(line, "aloneMs",
		   alone_ns ? json_integer((json_int_t)((view->now_ns - alone_ns) / 1000000)) : json_null());
	if (line->put || !rule->has_ledger)
		return;
	weir_describe_owed(line, NULL, rule);
	WEIR_FIELD(line, "ledger",
		   weir_figures_list(weir_describe_ledger_host, rule, rule->hosts, rule->host_count,
				     sizeof(*rule->hosts)));
}

json_t *weir_cluster_describe(const struct weir_cluster_view *view)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o}", "instance", view->instance->name, "cluster",
			 view->instance->info.cluster.name, "host", view->host, "store", weir_store_describe(view),
			 "hostsLive", view->live ? json_integer(view->live) : json_null(), "hostsSilent",
			 view->live ? json_integer(view->silent) : json_null(), "reservedPercent",
			 (json_int_t)view->reserved_percent, "rules",
			 weir_figures_list(weir_describe_share, view, view->rules, view->rule_count,
					   sizeof(*view->rules)));
}

/* ---- forgetting ---- */

static int forget_in(struct weir_store *store, const struct weir_cluster_view *view,
		     const struct weir_shared_view *rule, const char *host, struct weir_diag *diag)
{
	char key[WEIR_LEDGER_KEY_CHARS], field[WEIR_LEDGER_FIELD_CHARS], trouble[160];
	const char *words[] = {"HDEL", key, field, ""};
	struct weir_reply *reply;

	weir_sharing_key(&view->instance->info.cluster, rule->rule, key);
	if (host) {
		weir_ledger_field(host, field);
	} else { /* the script sees it when it next serves a host */
		words[0] = "HSET";
		snprintf(field, sizeof(field), "forget");
		words[3] = "lost";
	}
	reply = ask(store, host ? 3 : 4, words, trouble, sizeof(trouble));
	if (!reply)
		return weir_diag_fail(diag, EIO, NULL, "cannot remove '%s' from the ledger of rule '%s': %s",
				      host ?: "--lost", rule->rule->name, trouble);
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

/* NULL: what is owed to hosts that are not listed. */
static bool has_it(const struct weir_shared_view *rule, const char *name)
{
	return name ? find_host(rule, name) != NULL : rule->owed > 0;
}

/* -ENOENT: no ledger has the host; -EBUSY: it is live. */
static int find_in_all(const struct weir_cluster_view *view, const char *name)
{
	int err = -ENOENT;

	for (size_t i = 0; i < view->rule_count; i++) {
		const struct weir_ledger_host *host = name ? find_host(&view->rules[i], name) : NULL;

		if (!host && !has_it(&view->rules[i], name))
			continue;
		if (host && host->is_live)
			return -EBUSY;
		err = 0;
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
	if (err == -ENOENT && host)
		weir_diag_error(diag, NULL, NULL, "'weir cluster status' lists the hosts",
				"no ledger lists a host '%s'", host);
	else if (err == -ENOENT)
		weir_diag_error(diag, NULL, NULL, "'weir cluster status' shows what is reserved, and for which hosts",
				"no ledger reserves anything for hosts of a lost ledger");
	if (err == -EBUSY)
		weir_diag_error(diag, NULL, NULL, "end its 'weir run' first; that gives its share back",
				"host '%s' is live: it would come back at once", host);
	if (!err)
		err = weir_store_open(&instance->info.cluster, &store, diag);
	for (size_t i = 0; !err && i < view.rule_count; i++)
		if (has_it(&view.rules[i], host))
			err = forget_in(store, &view, &view.rules[i], host, diag);
	return err;
}
