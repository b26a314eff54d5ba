// SPDX-License-Identifier: GPL-2.0-only
#include "report/busy_flows.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "report/keys.h"
#include "words/json.h"
#include "words/state_words.h"
#include "tables/rule_kind.h"

#define NSEC_PER_MSEC 1000000ull
#define USEC_PER_MSEC 1000ull

/* ---- reading ---- */

/* Record which types of flows the rules have, or the requested rule has. */
static void note_sorts(struct weir_flows_view *view, uint32_t rule_slot)
{
	for (uint32_t i = 0; i < view->instance->rule_count; i++) {
		const uint32_t slot = view->instance->rule_order[i];
		const struct weir_rule_info *rule = &view->instance->rules[slot];

		if (rule_slot != WEIR_ANY_RULE && rule_slot != slot)
			continue;
		view->has_connections |= weir_has_connections(rule);
		view->has_breakers |= weir_is_breaker(rule);
		view->has_penalties |= rule->penalty_ms != 0;
		view->has_children |= weir_children_of(view->instance, rule) != NULL;
		view->has_windows |= !weir_has_connections(rule) && !weir_is_breaker(rule);
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
	if (!err && view.has_children)
		err = weir_fair_read_flows(instance, rule_slot, most, &view.children, diag);
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
	weir_fair_flows_free(&view->children);
	*view = (struct weir_flows_view){};
}

/* ---- words ---- */

const struct weir_rule_info *weir_flow_rule(const struct weir_instance *instance, const struct weir_flow_use *use)
{
	return use->rule_slot == WEIR_SLOT_UNKNOWN ? NULL : &instance->rules[use->rule_slot];
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
	if (rule && weir_reads_shadow(rule))
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

/* ---- figures ---- */

static const char *unit_of(const struct weir_rule_info *rule, const struct weir_flow_use *use)
{
	if (use->is_wait)
		return "us";
	if (!rule)
		return NULL;
	return rule->identity.counts_bytes ? "bytes" : "packets";
}

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

void weir_describe_flow_use(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_flow_use *use = record;
	const struct weir_rule_info *rule = line->is_heading ? NULL : weir_flow_rule(context, use);
	char words[WEIR_WORDS_BYTES], amount[WEIR_AMOUNT_BYTES];

	WEIR_FIGURE(line, "rule", "rule", text_or_null(rule ? rule->name : NULL), "%s", rule ? rule->name : "?");
	WEIR_FIELD(line, "resource", text_or_null(rule ? rule->resource_name : NULL));
	WEIR_FIELD(line, "key",
		   rule && use->is_whole  ? json_object()
		   : rule && use->has_key ? weir_flow_key_describe(context, rule, &use->key)
					  : json_null());
	WEIR_FIGURE(line, "used", ">used", json_integer(use->units), "%s", weir_flow_amount(use, use->units, amount));
	if (line->put || (rule && weir_occupies(rule)))
		WEIR_COUNT(line, "occupied", ">occupied", use->occupied);
	WEIR_FIELD(line, "unit", text_or_null(unit_of(rule, use)));
	WEIR_FIGURE(line, "threshold", ">threshold", use->has_threshold ? json_integer(use->threshold) : json_null(),
		    "%s", use->has_threshold ? weir_flow_amount(use, use->threshold, amount) : "?");
	WEIR_PERCENT(line, "share", ">share", use->has_threshold, weir_flow_share(use), "?");
	WEIR_CELL(line, "flow", "%s", weir_flow_words(context, use, words));
	if (rule && weir_reads_shadow(rule))
		WEIR_FIELD(line, "refResource", json_string(rule->ref_resource_name));
}

/* What a child gets is worked out, not counted: all it wants, or what it is due. */
void weir_describe_fair_flow(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_fair_flow *flow = record;
	const struct weir_instance *instance = context;
	const struct weir_rule_info *rule = line->is_heading ? NULL : &instance->rules[flow->rule_slot];
	const struct weir_rule_info *children =
		line->is_heading || !flow->has_key ? NULL : &instance->rules[flow->children_slot];
	const double got = flow && flow->due && flow->due < flow->use.offered ? flow->due
			   : flow					      ? flow->use.offered
									      : 0;
	char words[WEIR_WORDS_BYTES];

	WEIR_FIGURE(line, "rule", "rule", text_or_null(rule ? rule->name : NULL), "%s", rule ? rule->name : "?");
	WEIR_FIELD(line, "key", children ? weir_flow_key_describe(instance, children, &flow->key) : json_null());
	WEIR_COUNT(line, "offered", ">offered", flow->use.offered);
	WEIR_FIGURE(line, "got", ">got", flow->due ? json_real(got) : json_null(), flow->due ? "~%.0f" : "?", got);
	WEIR_FIGURE(line, "mayHave", ">may have", flow->due ? json_real(flow->due) : json_null(),
		    flow->due ? "%.4g" : "?", flow->due);
	WEIR_COUNT(line, "weight", ">weight", flow->use.weight);
	WEIR_FIELD(line, "isNew", json_boolean(flow->use.is_new));
	WEIR_CELL(line, "child", "%s%s", children ? weir_flow_key_words(instance, children, &flow->key, words) : "?",
		  flow->use.is_new ? " (new)" : "");
}

/* The flow's name: its rule, resource and key. */
static void describe_flow(struct weir_figures *line, const struct weir_instance *instance,
			  const struct weir_rule_info *rule, const struct weir_flow_key *key, const char *heading)
{
	WEIR_FIGURE(line, "rule", heading, text_or_null(rule ? rule->name : NULL), "%s", rule ? rule->name : "?");
	WEIR_FIELD(line, "resource", text_or_null(rule ? rule->resource_name : NULL));
	WEIR_FIELD(line, "key", rule ? weir_flow_key_describe(instance, rule, key) : json_null());
}

void weir_describe_connection_use(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_instance *instance = context;
	const struct weir_connection_use *use = record;
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];
	const struct weir_connection_figures *figures = &use->figures;
	char words[WEIR_WORDS_BYTES];

	describe_flow(line, instance, rule, &use->key, "rule");
	WEIR_FIGURE(line, "connections", ">connections", weir_json_connections(figures), "%llu",
		    (unsigned long long)figures->now);
	WEIR_KNOWN(line, "threshold", ">threshold", use->has_threshold, use->threshold, "?");
	WEIR_PERCENT(line, "share", ">share", use->has_threshold, weir_connection_share(use), "?");
	WEIR_CELL(line, ">max", "%llu", (unsigned long long)figures->max);
	WEIR_CELL(line, ">opened", "%llu", (unsigned long long)figures->opened);
	WEIR_KNOWN(line, NULL, ">refused", figures->has_refused, figures->refused, "-");
	WEIR_CELL(line, "flow", "%s", weir_flow_key_words(instance, rule, &use->key, words));
}

void weir_describe_breaker_use(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_instance *instance = context;
	const struct weir_breaker_use *use = record;
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];
	char words[WEIR_WORDS_BYTES];

	describe_flow(line, instance, rule, &use->key, "breaker");
	WEIR_FIELD(line, "breaker", weir_figures_describe(weir_describe_breaker, NULL, &use->view));
	if (line->put)
		weir_describe_breaker(line, NULL, &use->view);
	WEIR_CELL(line, "flow", "%s", weir_flow_key_words(instance, rule, &use->key, words));
}

void weir_describe_penalty(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_instance *instance = context;
	const struct weir_penalty *penalty = record;
	const struct weir_rule_info *rule = penalty->is_noted ? &instance->rules[penalty->rule_slot] : NULL;
	char words[WEIR_WORDS_BYTES];

	describe_flow(line, instance, rule, &penalty->key, "rule");
	WEIR_FIGURE(line, "leftMs", ">s left", json_integer(penalty->left_ns / NSEC_PER_MSEC), "%.1f",
		    penalty->left_ns / 1e9);
	WEIR_FIGURE(line, "lastsMs", ">of s", json_integer(penalty->lasts_ms), "%.1f", penalty->lasts_ms / 1e3);
	WEIR_CELL(line, "penalised flow", "%s", rule ? weir_flow_key_words(instance, rule, &penalty->key, words) : "?");
}

/* ---- the document ---- */

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
	const struct weir_flows *flows = &view->flows;
	const struct weir_connection_flows *connections = &view->connections;
	const struct weir_breaker_flows *breakers = &view->breakers;
	const struct weir_penalised_flows *penalties = &view->penalties;
	json_t *fields =
		json_pack("{s:s, s:I, s:o}", "instance", instance->name, "active", (json_int_t)flows->active, "flows",
			  weir_figures_list(weir_describe_flow_use, instance, flows->busiest, flows->count,
					    sizeof(*flows->busiest)));

	if (view->has_connections)
		json_object_set_new(fields, "connections",
				    json_pack("{s:I, s:o}", "active", (json_int_t)connections->active, "flows",
					      weir_figures_list(weir_describe_connection_use, instance,
								connections->most, connections->count,
								sizeof(*connections->most))));
	if (view->has_breakers)
		json_object_set_new(fields, "breakers",
				    json_pack("{s:I, s:I, s:o}", "open", (json_int_t)breakers->open, "halfOpen",
					      (json_int_t)breakers->half_open, "flows",
					      weir_figures_list(weir_describe_breaker_use, instance, breakers->most,
								breakers->count, sizeof(*breakers->most))));
	if (view->has_penalties)
		json_object_set_new(fields, "penalties",
				    json_pack("{s:I, s:o}", "active", (json_int_t)penalties->active, "flows",
					      weir_figures_list(weir_describe_penalty, instance, penalties->longest,
								penalties->count, sizeof(*penalties->longest))));
	if (view->has_children)
		json_object_set_new(fields, "children",
				    json_pack("{s:I, s:o}", "active", (json_int_t)view->children.active, "flows",
					      weir_figures_list(weir_describe_fair_flow, instance, view->children.most,
								view->children.count, sizeof(*view->children.most))));
	return fields;
}
