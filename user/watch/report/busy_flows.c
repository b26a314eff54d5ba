// SPDX-License-Identifier: GPL-2.0-only
#include "report/busy_flows.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "report/keys.h"
#include "words/breaker_words.h"
#include "words/connection_words.h"
#include "words/json.h"

#define NSEC_PER_MSEC 1000000ull
#define USEC_PER_MSEC 1000ull

/* ---- reading ---- */

/* Record which types of flows the rules have, or the requested rule has. */
static void note_sorts(struct weir_flows_view *view, uint32_t rule_slot)
{
	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		const uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_info *rule = &view->instance->rules[slot];
		const struct weir_kind *kind = weir_kind_of_info(rule);

		if (rule_slot != WEIR_ANY_RULE && rule_slot != slot)
			continue;
		view->has_connections |= kind->counts_connections;
		view->has_breakers |= kind->is_breaker;
		view->has_penalties |= rule->penalty_ms != 0;
		view->has_windows |= !kind->counts_connections && !kind->is_breaker;
	}
	/* If there is no rule at all, show the empty table of windows. */
	view->has_windows |= !view->has_connections && !view->has_breakers;
}

int weir_flows_view_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			 struct weir_flows_view *ret_view, struct weir_diag *diag)
{
	_cleanup_(weir_flows_view_free) struct weir_flows_view view = {.instance = instance};
	int err = weir_flows_read(instance, rule_slot, most, &view.flows, diag);

	note_sorts(&view, rule_slot);
	if (!err)
		err = weir_connections_read_flows(instance, rule_slot, most, &view.connections, diag);
	if (!err)
		err = weir_breakers_read_flows(instance, rule_slot, most, &view.breakers, diag);
	if (!err)
		err = weir_penalties_read(instance, rule_slot, most, &view.penalties, diag);
	if (err)
		return err;
	*ret_view = view;
	view = (struct weir_flows_view){};
	return 0;
}

void weir_flows_view_free(struct weir_flows_view *view)
{
	weir_flows_free(&view->flows);
	weir_connection_flows_free(&view->connections);
	weir_breaker_flows_free(&view->breakers);
	weir_penalised_flows_free(&view->penalties);
	*view = (struct weir_flows_view){};
}

/* ---- the document ---- */

const struct weir_rule_info *weir_flow_rule(const struct weir_instance *instance, const struct weir_flow_use *use)
{
	return use->rule_slot == WEIR_SLOT_UNKNOWN ? NULL : &instance->rules[use->rule_slot];
}

static json_t *describe_threshold(const struct weir_flow_use *use)
{
	return use->has_threshold ? json_integer(use->threshold) : json_null();
}

static json_t *describe_share(const struct weir_flow_use *use)
{
	return use->has_threshold ? json_real(weir_flow_share(use)) : json_null();
}

static const char *unit_of(const struct weir_rule_info *rule, const struct weir_flow_use *use)
{
	if (use->is_wait)
		return "us";
	if (!rule)
		return NULL;
	return rule->identity.counts_bytes ? "bytes" : "packets";
}

static json_t *describe_key(const struct weir_instance *instance, const struct weir_rule_info *rule,
			    const struct weir_flow_use *use)
{
	if (use->is_whole && rule)
		return json_object();
	return rule && use->has_key ? weir_flow_key_describe(instance, rule, &use->key) : json_null();
}

static json_t *describe_use(const struct weir_instance *instance, const struct weir_flow_use *use)
{
	const struct weir_rule_info *rule = weir_flow_rule(instance, use);
	const struct weir_kind *kind = rule ? weir_kind_of_info(rule) : NULL;

	return json_pack("{s:s?, s:s?, s:o, s:I, s:o*, s:s?, s:o, s:o, s:s*}", "rule", rule ? rule->name : NULL,
			 "resource", rule ? rule->resource_name : NULL, "key", describe_key(instance, rule, use),
			 "units", (json_int_t)use->units, "borrowed",
			 kind && kind->occupies ? json_integer(use->occupied) : NULL, "unit", unit_of(rule, use),
			 "threshold", describe_threshold(use), "share", describe_share(use), "refResource",
			 kind && kind->reads_shadow ? rule->ref_resource_name : NULL);
}

const char *weir_flow_words(const struct weir_instance *instance, const struct weir_flow_use *use,
			    char words[WEIR_WORDS_BYTES])
{
	const struct weir_rule_info *rule = weir_flow_rule(instance, use);
	size_t length;

	if (rule && use->is_whole)
		snprintf(words, WEIR_WORDS_BYTES, "(the whole resource)");
	else if (rule && use->has_key)
		weir_flow_key_words(instance, rule, &use->key, words);
	else
		snprintf(words, WEIR_WORDS_BYTES, "?");
	length = strlen(words);
	if (rule && weir_kind_of_info(rule)->reads_shadow)
		snprintf(words + length, WEIR_WORDS_BYTES - length, ", passed on %s", rule->ref_resource_name);
	return words;
}

const char *weir_flow_amount(const struct weir_flow_use *use, uint64_t amount, char words[WEIR_AMOUNT_BYTES])
{
	const unsigned long long whole = use->is_wait ? amount / USEC_PER_MSEC : amount;

	if (use->is_wait)
		snprintf(words, WEIR_AMOUNT_BYTES, "%llu.%llu ms", whole,
			 (unsigned long long)(amount % USEC_PER_MSEC / 100));
	else
		snprintf(words, WEIR_AMOUNT_BYTES, "%llu", whole);
	return words;
}

double weir_connection_share(const struct weir_connection_use *use)
{
	return use->threshold ? (double)use->figures.now / use->threshold : 0;
}

/* Describe a flow's connections with the field names of `weir stats`. */
static json_t *describe_connection_use(const struct weir_instance *instance, const struct weir_connection_use *use)
{
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "rule", rule->name, "resource", rule->resource_name, "key",
			 weir_flow_key_describe(instance, rule, &use->key), "threshold",
			 use->has_threshold ? json_integer(use->threshold) : json_null(), "share",
			 use->has_threshold ? json_real(weir_connection_share(use)) : json_null(), "connections",
			 weir_json_connections(&use->figures));
}

static json_t *describe_connections(const struct weir_instance *instance, const struct weir_connection_flows *flows)
{
	json_t *most = json_array();

	for (size_t i = 0; i < flows->count; i++)
		weir_json_append(&most, describe_connection_use(instance, &flows->most[i]));
	return json_pack("{s:I, s:o}", "active", (json_int_t)flows->active, "flows", most);
}

static json_t *describe_breaker_use(const struct weir_instance *instance, const struct weir_breaker_use *use)
{
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];

	return json_pack("{s:s, s:s, s:o, s:o}", "rule", rule->name, "resource", rule->resource_name, "key",
			 weir_flow_key_describe(instance, rule, &use->key), "breaker",
			 weir_json_breaker(&use->view, rule->breaker.strategy));
}

static json_t *describe_breakers(const struct weir_instance *instance, const struct weir_breaker_flows *flows)
{
	json_t *most = json_array();

	for (size_t i = 0; i < flows->count; i++)
		weir_json_append(&most, describe_breaker_use(instance, &flows->most[i]));
	return json_pack("{s:I, s:I, s:o}", "open", (json_int_t)flows->open, "halfOpen", (json_int_t)flows->half_open,
			 "flows", most);
}

static json_t *describe_penalty(const struct weir_instance *instance, const struct weir_penalty *penalty)
{
	const struct weir_rule_info *rule = penalty->is_noted ? &instance->rules[penalty->rule_slot] : NULL;
	json_t *key = json_null();

	if (rule)
		key = weir_flow_key_describe(instance, rule, &penalty->key);
	return json_pack("{s:s?, s:s?, s:o, s:I, s:I}", "rule", rule ? rule->name : NULL, "resource",
			 rule ? rule->resource_name : NULL, "key", key, "leftMs",
			 (json_int_t)(penalty->left_ns / NSEC_PER_MSEC), "lastsMs", (json_int_t)penalty->lasts_ms);
}

static json_t *describe_penalties(const struct weir_instance *instance, const struct weir_penalised_flows *flows)
{
	json_t *longest = json_array();

	for (size_t i = 0; i < flows->count; i++)
		weir_json_append(&longest, describe_penalty(instance, &flows->longest[i]));
	return json_pack("{s:I, s:o}", "active", (json_int_t)flows->active, "flows", longest);
}

static void keep_at_most(size_t *count, size_t most)
{
	if (*count > most)
		*count = most;
}

json_t *weir_flows_describe_most(const struct weir_flows_view *view, size_t most)
{
	struct weir_flows_view part = *view; /* everything is borrowed from it */

	keep_at_most(&part.flows.count, most);
	keep_at_most(&part.connections.count, most);
	keep_at_most(&part.breakers.count, most);
	keep_at_most(&part.penalties.count, most);
	return weir_flows_describe(&part);
}

json_t *weir_flows_describe(const struct weir_flows_view *view)
{
	const struct weir_instance *instance = view->instance;
	json_t *busiest = json_array();

	for (size_t i = 0; i < view->flows.count; i++)
		weir_json_append(&busiest, describe_use(instance, &view->flows.busiest[i]));
	return json_pack("{s:s, s:I, s:o, s:o*, s:o*, s:o*}", "instance", instance->name, "active",
			 (json_int_t)view->flows.active, "flows", busiest, "connections",
			 view->has_connections ? describe_connections(instance, &view->connections) : NULL, "breakers",
			 view->has_breakers ? describe_breakers(instance, &view->breakers) : NULL, "penalties",
			 view->has_penalties ? describe_penalties(instance, &view->penalties) : NULL);
}
