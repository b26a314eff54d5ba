// SPDX-License-Identifier: GPL-2.0-only
#include "report/shared_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "tables/entry_state.h"
#include "words/json.h"

void weir_cluster_find_reserved(struct weir_cluster_view *view)
{
	view->reserved_percent = 0;
	for (size_t i = 0; i < view->rule_count; i++) {
		uint32_t percent = weir_reserved_percent(view->rules[i].reserved, view->rules[i].threshold);

		if (percent > view->reserved_percent)
			view->reserved_percent = percent;
	}
}

/* ---- the view ---- */

void weir_cluster_host(const struct weir_cluster_info *cluster, char host[WEIR_CLUSTER_WORD_CHARS])
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

/* A controller that died could not record the time, so the end of the lease is used. */
uint64_t weir_share_alone_since(const struct weir_shared_view *rule, uint64_t now_ns)
{
	uint64_t ends_ns = weir_share_stages_in_force(&rule->shared)->until_ns[WEIR_SHARE_LEASED];

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
		rule->threshold = rule->rule->threshold_micro / WEIR_MICRO;
		if (rule->rule->cluster == WEIR_CLUSTER_AVG_LOCAL && rule->shared.hosts > 1)
			rule->threshold *= rule->shared.hosts;
		/* What a controller knows without the store is out of date. */
		rule->reserved = rule->shared.trip_us ? rule->shared.reserved : 0;
		view->rule_count++;
		add_up(view, rule);
	}
	weir_cluster_find_reserved(view);
	return 0;
}

int weir_cluster_view_look(const struct weir_instance *instance, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag)
{
	int err = weir_instance_expect_tables(instance, WEIR_TABLE_BIT(WEIR_TABLE_SHARES), "the shares", diag);

	if (err)
		return err;
	*ret_view = (struct weir_cluster_view){.instance = instance, .now_ns = weir_host_now_ns()};
	weir_cluster_host(&instance->info.cluster, ret_view->host);
	err = read_rules(instance, ret_view);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot read the shares of instance '%s'", instance->name) : 0;
}

void weir_cluster_view_free(struct weir_cluster_view *view)
{
	for (size_t i = 0; i < view->rule_count; i++)
		free(view->rules[i].hosts);
	free(view->rules);
	*view = (struct weir_cluster_view){};
}

/* ---- words, and JSON ---- */

/* The state of the store: its own answer or, if it was not asked, what the controller knows. */
json_t *weir_store_describe(const struct weir_cluster_view *view)
{
	bool answers = view->is_asked ? view->answers : view->trip_us > 0;

	return json_pack("{s:s, s:b, s:o, s:o, s:o}", "address", view->instance->info.cluster.redis, "answers", answers,
			 "tookUs",
			 view->is_asked && answers ? json_integer((json_int_t)(view->took_ns / 1000)) : json_null(),
			 "latencyUs", view->trip_us ? json_integer(view->trip_us) : json_null(), "trouble",
			 view->is_asked && !answers ? json_string(view->trouble) : json_null());
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
			 "host", view->host, "store", weir_store_describe(view), "hostsLive",
			 view->live ? json_integer(view->live) : json_null(), "hostsSilent",
			 view->live ? json_integer(view->silent) : json_null(), "reservedPercent",
			 (json_int_t)view->reserved_percent, "sharedRules", (json_int_t)view->rule_count, "aloneRules",
			 (json_int_t)view->alone, "aloneMs",
			 view->alone ? json_integer((json_int_t)(view->alone_ns / 1000000)) : json_null());
}
