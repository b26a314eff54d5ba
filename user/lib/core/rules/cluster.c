// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules that hosts share, as they appear in a rule file (clusterMode, clusterConfig, settings.cluster). docs/cluster.md
 * describes how hosts share them.
 */
#include "rules/cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"
#include "rules/quantity.h"
#include "rules/rule.h"

/* ---- the store's address ---- */

static const char advice[] =
	"write redis://HOST:PORT/DATABASE, such as redis://192.0.2.10:6379/0, rediss:// for TLS, or "
	"unix:///PATH";

static int refuse(struct weir_refusal *refusal, const char *url)
{
	weir_refuse(refusal, "redis: '%.*s' is not the address of a store", WEIR_SHOWN(url));
	return weir_advise(refusal, "%s", advice);
}

/* Remove "USER@" from the start of *rest. */
static int take_user(char **rest, struct weir_store_address *address, struct weir_refusal *refusal)
{
	char *end = strchr(*rest, '@');

	if (!end)
		return 0;
	*end = '\0';
	if (strchr(*rest, ':')) {
		weir_refuse(refusal, "redis: everybody who may see the rules can read a password in a rule file");
		return weir_advise(refusal, "put the password in a file, and name that as 'passwordFile'");
	}
	if (strlen(*rest) >= sizeof(address->user)) {
		weir_refuse(refusal, "redis: the user's name is too long");
		return weir_advise(refusal, "write at most %zu bytes", sizeof(address->user) - 1);
	}
	strcpy(address->user, *rest);
	*rest = end + 1;
	return 0;
}

static int read_database(const char *text, struct weir_store_address *address, struct weir_refusal *refusal)
{
	uint64_t number;
	int err = weir_parse_number(text, 0, WEIR_STORE_DATABASES - 1, &number, refusal);

	if (!err)
		address->database = (uint32_t)number;
	return err;
}

static int read_port(const char *text, struct weir_store_address *address, struct weir_refusal *refusal)
{
	uint64_t number;
	int err = weir_parse_number(text, 1, UINT16_MAX, &number, refusal);

	if (!err)
		address->port = (uint16_t)number;
	return err;
}

/* Some resolvers read a name whose last part is a number as an old-style address: "10.1" as 10.0.0.1. */
static bool is_name(const char *host)
{
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	return *host && *host != '-' && *host != '.' && last[strspn(last, "0123456789")] &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(host);
}

static int read_host(const char *host, struct weir_store_address *address, struct weir_refusal *refusal)
{
	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	address->family = strchr(host, ':') ? 6 : 4;
	if (inet_pton(address->family == 6 ? AF_INET6 : AF_INET, host, address->address) == 1)
		return 0;
	if (is_name(host)) {
		address->family = 0;
		strcpy(address->name, host);
		return 0;
	}
	weir_refuse(refusal, "redis: '%.*s' is neither an address nor a name", WEIR_SHOWN(host));
	return weir_advise(refusal, "write a name, an IPv4 address, or an IPv6 one in brackets");
}

/* "HOST[:PORT][/DATABASE]" */
static int read_tcp(char *rest, struct weir_store_address *address, struct weir_refusal *refusal)
{
	char *database = strchr(rest, '/'), *port;
	int err = 0;

	address->port = WEIR_STORE_PORT;
	if (database) {
		*database++ = '\0';
		err = *database ? read_database(database, address, refusal) : 0;
	}
	if (err)
		return err;
	if (*rest == '[') {
		char *end = strchr(rest, ']');

		if (!end || (end[1] && end[1] != ':'))
			return refuse(refusal, rest);
		port = end[1] ? end + 2 : NULL;
		*end = '\0';
		rest++;
		if (!strchr(rest, ':'))
			return refuse(refusal, rest);
	} else {
		port = strchr(rest, ':');
		if (port)
			*port++ = '\0';
	}
	if (port)
		err = read_port(port, address, refusal);
	return err ? err : read_host(rest, address, refusal);
}

/* "/PATH[?db=DATABASE]" */
static int read_unix(char *rest, struct weir_store_address *address, struct weir_refusal *refusal)
{
	char *query = strchr(rest, '?');

	if (query)
		*query++ = '\0';
	if (*rest != '/' || strlen(rest) >= sizeof(address->path)) {
		weir_refuse(refusal, "redis: '%.*s' is not a socket path", WEIR_SHOWN(rest));
		return weir_advise(refusal, "write an absolute path, at most %zu bytes: unix:///run/redis/redis.sock",
				   sizeof(address->path) - 1);
	}
	strcpy(address->path, rest);
	if (!query)
		return 0;
	if (strncmp(query, "db=", 3))
		return refuse(refusal, query);
	return read_database(query + 3, address, refusal);
}

int weir_parse_store(const char *url, struct weir_store_address *ret_address, struct weir_refusal *reterr_refusal)
{
	struct weir_store_address address = {};
	char text[WEIR_STORE_URL_CHARS], *rest;
	bool is_unix = !strncmp(url, "unix://", 7);
	int err;

	*reterr_refusal = (struct weir_refusal){};
	address.is_tls = !strncmp(url, "rediss://", 9);
	if ((!is_unix && !address.is_tls && strncmp(url, "redis://", 8)) || strlen(url) >= sizeof(text))
		return refuse(reterr_refusal, url);
	strcpy(text, url);
	rest = strstr(text, "://") + 3;
	err = take_user(&rest, &address, reterr_refusal);
	if (!err)
		err = is_unix ? read_unix(rest, &address, reterr_refusal) : read_tcp(rest, &address, reterr_refusal);
	if (!err)
		*ret_address = address;
	return err;
}

/* ---- the settings of a cluster ---- */

const char *const weir_cluster_type_names[2] = {"AVG_LOCAL", "GLOBAL"};

static bool read_truth(struct weir_reader *reader, const struct weir_node *node, const char *field, bool *truth)
{
	const char *word;

	if (!weir_read_word(reader, node, field, &word))
		return false;
	if (strcmp(word, "true") && strcmp(word, "false")) {
		weir_complain(reader, node, "write true or false", "'%.*s' is not a value of '%s'", WEIR_SHOWN(word),
			      field);
		return false;
	}
	*truth = !strcmp(word, "true");
	return true;
}

/* ---- rules ---- */

enum { CONFIG_TYPE, CONFIG_FALLBACK, CONFIG_FIELD_COUNT };

/* Sentinel Java's ClusterFlowConfig. All fields except weir's two are for its token servers, and ignored in its lists.
 */
static const char *const config_fields[] = {
	[CONFIG_TYPE] = "thresholdType",
	[CONFIG_FALLBACK] = "fallbackToLocalWhenFail",
	"flowId",
	"strategy",
	"sampleCount",
	"windowIntervalMs",
	"resourceTimeout",
	"resourceTimeoutStrategy",
	"acquireRefuseStrategy",
	"clientOfflineTime",
};

static void sort_config(struct weir_reader *reader, const struct weir_draft *draft, const struct weir_node *node,
			const struct weir_node *values[ARRAY_SIZE(config_fields)])
{
	if (!draft->is_sentinel)
		weir_read_fields(reader, node, "clusterConfig", config_fields, CONFIG_FIELD_COUNT, false, values);
	else if (node->kind != WEIR_NODE_MAP)
		weir_complain_no_map(reader, node, "clusterConfig", config_fields, CONFIG_FIELD_COUNT);
	else
		weir_foreign_reader()->read_item(reader, node, config_fields, ARRAY_SIZE(config_fields), values);
}

static void read_config(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *node = draft->value[RULE_CLUSTER_CONFIG];
	const struct weir_node *values[ARRAY_SIZE(config_fields)] = {};
	struct weir_ruleset_rule *rule = draft->rule;
	unsigned int type = 0;

	sort_config(reader, draft, node, values);
	if (values[CONFIG_TYPE] && (!draft->is_sentinel || weir_check_unquoted(reader, values[CONFIG_TYPE])) &&
	    weir_read_choice(reader, values[CONFIG_TYPE], "thresholdType", weir_cluster_type_names,
			     ARRAY_SIZE(weir_cluster_type_names), true, &type))
		rule->cluster = WEIR_CLUSTER_AVG_LOCAL + type;
	if (values[CONFIG_FALLBACK])
		read_truth(reader, values[CONFIG_FALLBACK], "fallbackToLocalWhenFail", &rule->falls_back);
}

void weir_read_cluster(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *mode = draft->value[RULE_CLUSTER_MODE];
	bool is_shared = false;

	if (!mode || !read_truth(reader, mode, "clusterMode", &is_shared) || !is_shared) {
		if (draft->is_sentinel)
			draft->value[RULE_CLUSTER_CONFIG] = NULL;
		return;
	}
	draft->rule->cluster = WEIR_CLUSTER_AVG_LOCAL; /* both defaults are Sentinel's */
	draft->rule->falls_back = true;
	if (draft->value[RULE_CLUSTER_CONFIG])
		read_config(reader, draft);
}

/* Why hosts cannot share this rule; NULL: they can. */
static const char *why_not(const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;

	if (rule->metric == WEIR_METRIC_CONCURRENCY)
		return "open connections cannot be given back";
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		return "WarmUp depends on what passed on this host alone";
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		return "MemoryAdaptive depends on this host's memory";
	if (rule->behavior == WEIR_BEHAVIOR_THROTTLING)
		return "Throttling schedules packets by a rate, and a share that moves would move packets already "
		       "scheduled";
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		return "AssociatedResource depends on what passed on this host alone";
	if (rule->window == WEIR_WINDOW_TOKENS)
		return "what a token bucket holds is this host's own";
	if (rule->occupies)
		return "prioritized packets occupy later units of its window, which may belong to another host by then";
	if (rule->penalty_ms)
		return "a flow could be penalised only because this host's share has not arrived yet";
	if (rule->override_count)
		return "overrides would apply to this host alone";
	return NULL;
}

void weir_check_cluster(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *at = weir_draft_at(draft, RULE_CLUSTER_MODE);
	const char *reason = why_not(draft);

	if (reason)
		weir_complain(reader, at,
			      "hosts can share Direct, Reject rules with a window; write 'clusterMode: false', or "
			      "another rule",
			      "hosts cannot share this rule: %s", reason);
	else if (draft->rule->threshold_micro % WEIR_MICRO)
		weir_warn(reader, at, "write a whole number", "hosts share whole units: the fraction has no effect");
}

/* ---- settings ---- */

const char *const weir_cluster_field_names[WEIR_CLUSTER_FIELDS] = {"redis",   "name",	"host",	     "passwordFile",
								   "keyFile", "caFile", "silentFor", "afterSilence"};

/* The name becomes part of keys and fields in the store, which are separated by spaces, and must be a single word on a
 * command line.
 */
static bool is_plain(const char *name, size_t chars_max)
{
	return *name && strlen(name) <= chars_max &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(name);
}

/* A host that is cut off rises to its fallback after 4.1 s and an interval; a minute is well above the duration of the
 * store's own faults. Chosen, not derived.
 */
#define SILENT_NS_MIN (60 * WEIR_NSEC_PER_SEC)

uint64_t weir_cluster_silent_ns(const char *word)
{
	struct weir_refusal ignored;
	uint64_t ns = 3600 * WEIR_NSEC_PER_SEC;

	if (!word)
		return ns;
	return strcmp(word, "never") && !weir_parse_duration(word, &ns, &ignored) ? ns : UINT64_MAX;
}

static void check_silent_for(struct weir_reader *reader, const struct weir_node *node, const char *word)
{
	struct weir_refusal refusal;
	uint64_t ns;

	if (!strcmp(word, "never"))
		return;
	if (weir_parse_duration(word, &ns, &refusal))
		weir_complain(reader, node, "write a time as '1h' or '10m', or 'never'", "silentFor: %s",
			      refusal.message);
	else if (ns < SILENT_NS_MIN)
		weir_complain(reader, node, "write '1m' or more, or 'never'", "silentFor: '%.*s' is less than a minute",
			      WEIR_SHOWN(word));
}

static void keep(struct weir_reader *reader, const struct weir_node *node, size_t field)
{
	char **kept = &reader->ruleset->settings.cluster[field];
	const char *word;

	if (!weir_read_word(reader, node, weir_cluster_field_names[field], &word))
		return;
	if (*kept && strcmp(*kept, word)) {
		weir_complain(reader, node, "the files are merged: set it in one of them, or to the same value in both",
			      "cluster: '%s' is '%.*s' here, but '%.*s' in another file",
			      weir_cluster_field_names[field], WEIR_SHOWN(word), WEIR_SHOWN(*kept));
		return;
	}
	if (field == WEIR_CLUSTER_REDIS) {
		struct weir_store_address ignored;
		struct weir_refusal refusal;

		if (weir_parse_store(word, &ignored, &refusal))
			weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	} else if (field == WEIR_CLUSTER_PASSWORD_FILE || field == WEIR_CLUSTER_KEY_FILE ||
		   field == WEIR_CLUSTER_CA_FILE) {
		if (*word != '/' || strlen(word) >= WEIR_CLUSTER_PATH_CHARS)
			weir_complain(reader, node, "write an absolute path, at most 255 bytes",
				      "%s: '%.*s' is not a file path", weir_cluster_field_names[field],
				      WEIR_SHOWN(word));
	} else if (field == WEIR_CLUSTER_SILENT_FOR)
		check_silent_for(reader, node, word);
	else if (field == WEIR_CLUSTER_AFTER_SILENCE) {
		if (strcmp(word, "keep") && strcmp(word, "stop"))
			weir_complain(reader, node, "write keep or stop", "'%.*s' is not a value of 'afterSilence'",
				      WEIR_SHOWN(word));
	} else if (!is_plain(word, WEIR_CLUSTER_WORD_CHARS - 1))
		weir_complain(reader, node, "write letters, digits, '.', '_' and '-', 63 at most",
			      "%s: '%.*s' is no name", weir_cluster_field_names[field], WEIR_SHOWN(word));
	free(*kept);
	*kept = strdup(word);
	reader->is_out_of_memory |= !*kept;
}

void weir_read_cluster_settings(struct weir_reader *reader, const struct weir_node *node)
{
	const struct weir_node *values[WEIR_CLUSTER_FIELDS] = {};

	if (!node)
		return;
	weir_read_fields(reader, node, "cluster", weir_cluster_field_names, WEIR_CLUSTER_FIELDS, false, values);
	for (size_t field = 0; field < WEIR_CLUSTER_FIELDS; field++)
		if (values[field])
			keep(reader, values[field], field);
}

static const struct weir_ruleset_rule *first_shared(const struct weir_ruleset *ruleset, size_t *ret_place)
{
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		*ret_place = i;
		if (ruleset->rules[i].cluster)
			return &ruleset->rules[i];
	}
	return NULL;
}

void weir_finish_cluster(struct weir_reader *reader, const struct weir_node *node)
{
	char *const *fields = reader->ruleset->settings.cluster;
	const struct weir_ruleset_rule *rule;
	size_t place = 0;

	rule = first_shared(reader->ruleset, &place);
	if (rule && !node)
		weir_complain(reader, reader->rule_nodes[place],
			      "write under 'settings': 'cluster: {redis: redis://192.0.2.10:6379, name: edge}'",
			      "rule '%.*s' is shared by hosts, but no store is named", WEIR_SHOWN(rule->name));
	else if (rule && (!fields[WEIR_CLUSTER_REDIS] || !fields[WEIR_CLUSTER_NAME]))
		weir_complain(reader, node,
			      "'redis' is the store, 'name' is the cluster: hosts with both the same share limits",
			      "cluster: needs 'redis' and 'name'");
	else if (fields[WEIR_CLUSTER_AFTER_SILENCE] && fields[WEIR_CLUSTER_SILENT_FOR] &&
		 !strcmp(fields[WEIR_CLUSTER_AFTER_SILENCE], "stop") &&
		 !strcmp(fields[WEIR_CLUSTER_SILENT_FOR], "never"))
		weir_warn(reader, node, "leave 'afterSilence' out, or give 'silentFor' a time",
			  "'afterSilence: stop' has no effect: 'silentFor' never ends");
	else if (node && !rule)
		weir_warn(reader, node, "leave it out, or give a rule 'clusterMode: true'",
			  "'cluster' has no effect: no rule is shared by hosts");
	else if (node && fields[WEIR_CLUSTER_CA_FILE] && strncmp(fields[WEIR_CLUSTER_REDIS], "rediss://", 9))
		weir_warn(reader, node, "write 'redis: rediss://...' for TLS, or leave 'caFile' out",
			  "'caFile' has no effect: '%.*s' is a store without TLS",
			  WEIR_SHOWN(fields[WEIR_CLUSTER_REDIS]));
}
