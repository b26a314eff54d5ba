// SPDX-License-Identifier: GPL-2.0-only
#include "report/status.h"

#include "base/util.h"
#include "host/host.h"
#include "host/memory.h"
#include "network/netns.h"
#include "network/tc.h"
#include "pace/pace.h"
#include "report/keys.h"
#include "rules/scalars.h"
#include "state/counters.h"
#include "state/open_connections.h"
#include "tables/rule_kind.h"
#include "words/state_words.h"
#include "words/json.h"

/* ---- words ---- */

const char *const weir_policy_names[WEIR_POLICY_COUNT] = {"malformed", "unsupported", "nonIp", "unmatched"};

const char *const weir_controller_state_names[] = {
	[WEIR_CONTROLLER_RUNNING] = "running",
	[WEIR_CONTROLLER_STALE] = "stale",
	[WEIR_CONTROLLER_ABSENT] = "absent",
	[WEIR_CONTROLLER_NOT_NEEDED] = "notNeeded",
};

/* At most as many as there is space for: the contents of maps are not trusted. */
uint32_t weir_count_except(const struct weir_instance_info *info)
{
	return info->non_ip_except_count < WEIR_NON_IP_EXCEPT_MAX ? info->non_ip_except_count : WEIR_NON_IP_EXCEPT_MAX;
}

const char *weir_format_except(const struct weir_instance_info *info, uint32_t i, char *text)
{
	const struct weir_range range = {.low = info->non_ip_except[i].low, .high = info->non_ip_except[i].high};

	return weir_format_ethertypes(&range, text);
}

static json_t *describe_except(const struct weir_instance_info *info)
{
	char text[WEIR_ETHERTYPE_TEXT_BYTES];
	json_t *list = json_array();

	for (uint32_t i = 0; i < weir_count_except(info); i++)
		weir_json_append(&list, json_string(weir_format_except(info, i, text)));
	return list;
}

const char *weir_policy_word(const struct weir_instance *instance, size_t bit)
{
	return instance->info.policies >> bit & 1 ? "drop" : "pass";
}

const char *weir_link_hook_name(const struct weir_link *link)
{
	if (link->hook == WEIR_HOOK_XDP)
		return "xdp";
	return link->is_filter ? "clsact" : "tcx";
}

const char *weir_link_direction_name(const struct weir_link *link)
{
	return weir_hook_is_out(link->hook) ? "out" : "in";
}

/* ---- reading ---- */

int weir_status_read(const struct weir_instance *instance, struct weir_status_view *ret_view, struct weir_diag *diag)
{
	_cleanup_(weir_status_free) struct weir_status_view view = {.instance = instance};
	int err = weir_controller_look(instance, &view.controller, diag);

	if (!err && !instance->is_incompatible[WEIR_TABLE_PENALISED_FLOWS])
		err = weir_penalties_read(instance, WEIR_ANY_RULE, 1, &view.penalties, diag);
	if (!err)
		err = weir_signals_look(instance, &view.signals, diag);
	if (!err)
		err = weir_ghosts_look(instance, &view.ghosts, diag);
	if (!err)
		err = weir_fair_read(instance, &view.fair, diag);
	if (!err && !instance->is_incompatible[WEIR_TABLE_SHARES])
		err = weir_cluster_view_look(instance, &view.cluster, diag);
	if (!err && !instance->is_incompatible[WEIR_TABLE_REQUESTS])
		err = weir_breakers_read(instance, &view.breakers, diag);
	if (!err && weir_timed_is_readable(instance)) {
		err = weir_timed_count(instance, &view.timed, diag);
		view.has_timed = true;
	}
	if (err)
		return err;
	*ret_view = view;
	view = (struct weir_status_view){};
	return 0;
}

void weir_status_free(struct weir_status_view *view)
{
	weir_penalised_flows_free(&view->penalties);
	free(view->controller.thresholds);
	weir_fair_uses_free(&view->fair);
	free(view->breakers);
	free(view->repeats);
	weir_cluster_view_free(&view->cluster);
	*view = (struct weir_status_view){};
}

static uint32_t count_rules(const struct weir_instance *instance, bool (*is_such)(const struct weir_rule_info *rule))
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < instance->rule_count; i++)
		count += is_such(&instance->rules[instance->rule_order[i]]);
	return count;
}

uint32_t weir_count_throttling(const struct weir_instance *instance)
{
	return count_rules(instance, weir_throttles);
}

uint32_t weir_count_occupy(const struct weir_instance *instance)
{
	return count_rules(instance, weir_occupies);
}

uint64_t weir_count_overrides(const struct weir_instance *instance)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < instance->rule_count; i++)
		count += instance->rules[instance->rule_order[i]].override_count;
	return count;
}

/* ---- the document ---- */

void weir_describe_link(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_link *link = record;
	char filter[32];

	snprintf(filter, sizeof(filter), "clsact, pref %u",
		 WEIR_TC_LIMITER_PREFERENCE); /* as 'tc filter show' has it */
	WEIR_FIGURE(line, "interface", "interface", weir_json_text(link->interface), "%s%s", link->interface,
		    link->ifindex && !link->is_name_current ? " (at attach)" : "");
	WEIR_FIELD(line, "isNameCurrent", json_boolean(link->is_name_current));
	WEIR_FIGURE(line, "mode", "mode", json_string(weir_link_mode_name(link)), "%s",
		    link->ifindex ? weir_link_mode_name(link) : "gone");
	WEIR_TEXT(line, "direction", "direction", weir_link_direction_name(link));
	WEIR_FIGURE(line, "hook", "hook", json_string(weir_link_hook_name(link)), "%s",
		    link->is_filter ? filter : weir_link_hook_name(link));
	WEIR_FIELD(line, "preference", link->is_filter ? json_integer(WEIR_TC_LIMITER_PREFERENCE) : json_null());
	WEIR_COUNT(line, "ifindex", ">ifindex", link->ifindex);
	WEIR_FIELD(line, "isAttached", json_boolean(link->ifindex != 0));
	WEIR_COUNT(line, "programId", ">program", link->program_id);
}

/* null if the links were not scanned */
static json_t *describe_repeats(const struct weir_status_view *view)
{
	json_t *repeats = view->has_repeats ? json_array() : json_null();

	for (size_t i = 0; i < view->repeat_count; i++)
		weir_json_append(&repeats, json_pack("{s:o, s:o}", "interface", weir_json_text(view->repeats[i].upper),
						     "standsOn", weir_json_text(view->repeats[i].lower)));
	return repeats;
}

static json_t *describe_wanted(const struct weir_instance *instance)
{
	json_t *words = json_array();

	for (size_t i = 0; i < WEIR_WANTED_MAX && instance->info.wanted[i].word[0]; i++)
		weir_json_append(&words, weir_json_text(instance->info.wanted[i].word));
	return words;
}

static json_t *describe_resources(const struct weir_instance *instance)
{
	json_t *resources = json_array();

	for (uint32_t i = 0; i < instance->resource_count; i++) {
		const struct weir_resource_info *resource = &instance->resources[instance->resource_order[i]];

		weir_json_append(&resources, json_pack("{s:s, s:s, s:I}", "name", resource->name, "direction",
						       weir_direction_name(weir_resource_directions(resource)),
						       "ruleCount", (json_int_t)resource->rule_count));
	}
	return resources;
}

/* The fields of the rule's flow key. */
static json_t *describe_flow(const struct weir_rule_info *rule, const struct weir_key_labels *labels)
{
	char text[WEIR_KEY_FIELD_BYTES];
	json_t *names = json_array();

	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++)
		if (rule->identity.key_fields >> bit & 1)
			weir_json_append(&names, json_string(weir_format_key_field(rule->identity.key_fields, bit,
										   labels, text)));
	return names;
}

json_t *weir_fair_describe(const struct weir_instance *instance, const struct weir_fair_uses *uses, uint32_t slot)
{
	const struct weir_rule_info *rule = &instance->rules[slot], *children = weir_children_of(instance, rule);
	json_t *parents = children ? json_array() : NULL;

	for (size_t i = 0; parents && i < uses->count; i++) {
		const struct weir_fair_use *use = &uses->uses[i];

		if (use->rule_slot == slot)
			weir_json_append(&parents,
					 json_pack("{s:o, s:f, s:I, s:I, s:I, s:I}", "key",
						   weir_flow_key_describe(instance, rule, &use->key), "level",
						   use->level, "offered", (json_int_t)use->offered, "children",
						   (json_int_t)use->children, "newChildren", (json_int_t)use->newcomers,
						   "aboveLevel", (json_int_t)use->above));
	}
	return parents ? json_pack("{s:o, s:o}", "children", describe_flow(children, instance->labels), "contended",
				   parents)
		       : NULL;
}

/* Three digits: levels are no more exact. */
static const char *format_about(double units, const struct weir_rule_info *rule, char text[WEIR_RATE_TEXT_BYTES])
{
	const double most = UINT64_MAX / WEIR_MICRO / 2;
	const uint64_t micro = (units < most ? units : most) * WEIR_MICRO + 0.5;
	uint64_t step = 1;

	while (micro / step >= 1000)
		step *= 10;
	return weir_format_rate((micro + step / 2) / step * step, rule->identity.interval_ns,
				rule->identity.counts_bytes, text);
}

const char *weir_fair_words(const struct weir_instance *instance, const struct weir_fair_use *use,
			    char words[WEIR_WORDS_BYTES])
{
	const struct weir_rule_info *rule = &instance->rules[use->rule_slot];
	char level[WEIR_RATE_TEXT_BYTES] = "not known yet", offered[WEIR_RATE_TEXT_BYTES], key[WEIR_WORDS_BYTES] = "";

	if (use->level)
		format_about(use->level, rule, level);
	if (rule->identity.key_fields)
		weir_flow_key_words(instance, rule, &use->key, key);
	snprintf(words, WEIR_WORDS_BYTES, "level %s%s; %llu child%s (%llu new, %llu above it) want %s%s%.200s", level,
		 rule->cluster ? " on this host" : "", (unsigned long long)use->children,
		 use->children == 1 ? "" : "ren", (unsigned long long)use->newcomers, (unsigned long long)use->above,
		 format_about(use->offered, rule, offered), key[0] ? "; " : "", key);
	return words;
}

/* The threshold now, for people. */
static const char *format_now(const struct weir_status_view *view, const uint32_t *slot, char words[WEIR_WORDS_BYTES])
{
	const struct weir_rule_info *rule = &view->instance->rules[*slot];

	if (weir_is_breaker(rule) && view->breakers)
		return weir_format_breaker_sum(&view->breakers[*slot], words);
	if (weir_warms_flows(rule))
		return "per flow";
	if (weir_has_signal(rule))
		return "-";
	snprintf(words, WEIR_WORDS_BYTES, "%llu",
		 (unsigned long long)view->controller.thresholds[slot - view->instance->rule_order]);
	return words;
}

// NOLINTNEXTLINE(readability-function-size): a list, a figure a statement
void weir_describe_rule_state(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_status_view *view = context;
	const struct weir_instance *instance = view->instance;
	const uint32_t *slot = record;
	static const struct weir_rule_info none;
	const struct weir_rule_info *rule = line->is_heading ? &none : &instance->rules[*slot];
	const struct weir_rule_info *children = line->is_heading ? NULL : weir_children_of(instance, rule);
	const bool has_buckets = weir_has_window(rule) || weir_reads_shadow(rule);
	char words[WEIR_WORDS_BYTES], whose[WEIR_WORDS_BYTES], buckets[16];

	snprintf(buckets, sizeof(buckets), "%u", rule->identity.samples);
	/* A document has these, as the rule has them. */
	WEIR_CELL(line, "rule", "%s", rule->name);
	WEIR_CELL(line, "resource", "%s", rule->system ? "-" : rule->resource_name);
	WEIR_CELL(line, "limit", "%s%s%s%s", weir_format_limit(rule, instance->labels, words),
		  children ? ", shared fairly " : "",
		  children ? weir_format_whose_limit(children, instance->labels, whose) : "",
		  children && rule->cluster ? " on each host" : "");
	WEIR_FIGURE(line, "thresholdNow", ">now",
		    weir_has_one_threshold(rule)
			    ? json_integer(view->controller.thresholds[slot - instance->rule_order])
			    : json_null(),
		    "%s", format_now(view, slot, words));
	WEIR_CELL(line, "window", "%s",
		  has_buckets || weir_has_tokens(rule) ? weir_window_names[rule->identity.window] : "-");
	WEIR_CELL(line, ">buckets", "%s", has_buckets ? buckets : "-");
	WEIR_CELL(line, "mode", "%s", rule->observes || instance->info.observes ? "observe" : "enforce");
	WEIR_TEXT(line, "direction", "direction", weir_direction_name(weir_rule_directions(instance, rule)));
	WEIR_FIELD(line, "flow", describe_flow(rule, instance->labels));
	WEIR_FIELD(line, "overrideCount", json_integer(rule->override_count));
	WEIR_FIELD(line, "isMoving", json_boolean(rule->moves));
	WEIR_FIELD(line, "isPerFlow", json_boolean(weir_warms_flows(rule)));
	if (!line->put && rule->penalty_ms && view->penalties.by_rule)
		WEIR_FIELD(line, "penalisedFlows", json_integer(view->penalties.by_rule[*slot]));
	if (!line->put && children)
		WEIR_FIELD(line, "fairShares", weir_fair_describe(instance, &view->fair, *slot));
	if (!line->put && weir_is_breaker(rule) && view->breakers)
		WEIR_FIELD(line, "breaker",
			   weir_figures_describe(weir_describe_breaker_sum, NULL, &view->breakers[*slot]));
}

static json_t *describe_rules(const struct weir_status_view *view)
{
	const struct weir_instance *instance = view->instance;
	json_t *rules = json_array();

	for (uint32_t i = 0; i < instance->rule_count; i++) {
		json_t *rule = weir_json_rule(&instance->rules[instance->rule_order[i]], instance->labels);

		weir_figures_add(weir_describe_rule_state, view, &instance->rule_order[i], &rule);
		weir_json_append(&rules, rule);
	}
	return rules;
}

static json_t *describe_controller(const struct weir_controller_report *controller)
{
	json_t *fields = json_pack("{s:s, s:I}", "state", weir_controller_state_names[controller->state], "ruleCount",
				   (json_int_t)controller->rule_count);

	if (controller->state == WEIR_CONTROLLER_STALE)
		json_object_set_new(fields, "staleSeconds", json_real(controller->stale_ns / 1e9));
	if (controller->pid)
		json_object_set_new(fields, "processId", json_integer(controller->pid));
	return fields;
}

void weir_describe_set(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_set_size *set = record;
	char words[WEIR_WORDS_BYTES];
	uint64_t age_ns = 0;
	const bool is_there = weir_set_file_age(set, &age_ns, NULL);

	WEIR_TEXT(line, "name", "SET", set->name);
	WEIR_COUNT(line, "prefixCount", ">PREFIXES", set->prefixes);
	WEIR_COUNT(line, "labelCount", ">LABELS", set->labels);
	WEIR_FIGURE(line, "fileChangedSeconds", "CHANGED", is_there ? json_real(age_ns / 1e9) : json_null(), "%s%s",
		    is_there	? weir_format_age(age_ns, words)
		    : set->file ? "file is gone"
				: "-",
		    is_there ? " ago" : "");
	WEIR_FIGURE(line, "file", "FILE", set->file ? weir_json_text(set->file) : json_null(), "%s",
		    set->file ?: "the rule file");
}

/* null if they were not asked for */
static json_t *describe_set_changes(const struct weir_sets_view *sets)
{
	const struct weir_sets_note *note = sets ? &sets->note : NULL;
	json_t *refusal = json_null();

	if (!note)
		return refusal;
	if (note->refused_ns)
		refusal = json_pack("{s:f, s:o, s:o, s:o, s:o}", "secondsAgo",
				    (weir_host_now_ns() - note->refused_ns) / 1e9, "set",
				    note->set[0] ? json_string(note->set) : json_null(), "file",
				    note->file[0] ? weir_json_text(note->file) : json_null(), "line",
				    note->line ? json_integer(note->line) : json_null(), "why",
				    weir_json_text(note->why));
	return json_pack("{s:I, s:I, s:o}", "taken", (json_int_t)note->taken, "refused", (json_int_t)note->refused,
			 "refusal", refusal);
}

/* null if they cannot be read */
static json_t *describe_timed(const struct weir_status_view *view)
{
	const struct weir_timed_counts *timed = &view->timed;
	bool is_nearly_full = false;
	json_t *parts, *programs;

	if (!view->has_timed)
		return json_null();
	parts = json_array();
	programs = json_array();
	for (size_t i = 0; i < timed->share_count; i++) {
		const struct weir_timed_share *share = &timed->shares[i];
		const bool is_full = weir_timed_is_nearly_full(share->used, share->room);

		is_nearly_full |= is_full;
		if (timed->share_count > 1)
			weir_json_append(&parts, json_pack("{s:s?, s:I, s:I, s:b}", "by", share->by, "addresses",
							   (json_int_t)share->used, "room", (json_int_t)share->room,
							   "isNearlyFull", is_full));
	}
	for (size_t i = 0; i < timed->source_count; i++)
		weir_json_append(&programs, json_pack("{s:s, s:I, s:I}", "by", timed->sources[i].by, "blocked",
						      (json_int_t)timed->sources[i].blocked, "allowed",
						      (json_int_t)timed->sources[i].allowed));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "blocked", (json_int_t)timed->blocked,
			 "allowed", (json_int_t)timed->allowed, "addresses", (json_int_t)timed->addresses, "room",
			 (json_int_t)timed->room, "refused", (json_int_t)timed->refused, "evicted",
			 (json_int_t)timed->evicted, "isNearlyFull", is_nearly_full, "parts", parts, "programs",
			 programs);
}

static json_t *describe_ghosts_sum(const struct weir_ghosts_sum *sum, bool is_nearly_full)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:b}", "slots", (json_int_t)sum->slots, "used", (json_int_t)sum->used,
			 "displaced", (json_int_t)sum->displaced, "aggregated", (json_int_t)sum->joined, "isNearlyFull",
			 is_nearly_full);
}

/* All tables together, and each one. null if no rule needs one, or if none can be read. */
static json_t *describe_ghosts(const struct weir_ghosts *ghosts)
{
	const struct weir_ghosts_sum all = weir_ghosts_add(ghosts);
	json_t *tables = json_object(), *fields;
	bool is_nearly_full = false;

	for (size_t i = 0; i < WEIR_GHOST_TABLES; i++) {
		const struct weir_ghosts_sum *sum = &ghosts->of[i];

		is_nearly_full |= weir_ghosts_are_nearly_full(sum);
		if (sum->slots)
			json_object_set_new(tables, weir_ghost_table_name(i),
					    describe_ghosts_sum(sum, weir_ghosts_are_nearly_full(sum)));
	}
	fields = all.slots ? describe_ghosts_sum(&all, is_nearly_full) : json_null();
	if (all.slots)
		json_object_set(fields, "tables", tables);
	json_decref(tables);
	return fields;
}

/* null if no rule needs it */
static json_t *describe_memory(const struct weir_status_view *view)
{
	const struct weir_controller_report *controller = &view->controller;
	const char *cgroup = view->instance->info.memory_cgroup;
	json_t *fields;

	if (!controller->needs_memory)
		return json_null();
	fields = json_pack("{s:o}", "source", *cgroup ? json_sprintf("cgroup:%s", cgroup) : json_string("system"));
	if (controller->memory_err)
		json_object_set_new(fields, "error", json_string(weir_memory_explain(cgroup, controller->memory_err)));
	else
		json_object_set_new(fields, "usedBytes", json_integer(controller->used_bytes));
	return fields;
}

/* null if no system rule uses a signal; a single signal is null if it is not known, or if nothing was timed. */
static json_t *describe_signals(const struct weir_host_signals *signals)
{
	json_t *fields = json_object();

	if (signals->has_samples) {
		json_object_set_new(fields, "load1",
				    signals->has_load1 ? json_real(signals->load1_micro / 1e6) : json_null());
		json_object_set_new(fields, "cpuUsage",
				    signals->has_cpu ? json_real(signals->cpu_micro / 1e6) : json_null());
	}
	if (signals->has_connections) {
		json_object_set_new(fields, "connectionsOpen", json_integer(signals->open));
		json_object_set_new(fields, "handshakes", json_integer(signals->handshakes));
		json_object_set_new(fields, "avgRtMs",
				    signals->handshakes ? json_real(signals->mean_us / 1e3) : json_null());
		json_object_set_new(fields, "maxComplete", json_integer(signals->complete_max));
		json_object_set_new(fields, "minRtMs",
				    signals->complete_max ? json_real(signals->shortest_us / 1e3) : json_null());
	}
	if (json_object_size(fields))
		return fields;
	json_decref(fields);
	return json_null();
}

/* Sizes are rounded up to powers of two. */
static void add_connection_settings(const struct weir_instance_info *info, json_t *settings)
{
	json_object_set_new(
		settings, "connections",
		json_integer((json_int_t)info->tables[WEIR_TABLE_CONNECTIONS].size * WEIR_CONNECTIONS_PER_SET));
	json_object_set_new(settings, "connectionFlows",
			    json_integer((json_int_t)info->tables[WEIR_TABLE_CONNECTION_FLOWS].size *
					 WEIR_CONNECTION_FLOWS_PER_SET));
	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		json_object_set_new(settings, weir_connection_timeout_names[class],
				    json_integer(info->connection_timeout_ms[class]));
}

static json_t *describe_settings(const struct weir_instance *instance)
{
	const struct weir_instance_info *info = &instance->info;
	json_t *settings = json_pack("{s:I, s:s, s:o, s:s, s:I}", "flowsPerCpu", (json_int_t)info->flows_per_cpu,
				     "mode", info->observes ? "observe" : "enforce", "memory",
				     info->memory_cgroup[0] ? json_sprintf("cgroup:%s", info->memory_cgroup)
							    : json_string("system"),
				     "throttling", weir_pace_is_attached(instance->name) ? "pace" : "police",
				     "controllerTimeoutInMs", (json_int_t)info->controller_timeout_ms);

	json_object_set_new(settings, "timedEntries", json_integer(info->tables[WEIR_TABLE_TIMED_ADDRESSES].size));
	for (size_t bit = 0; bit < ARRAY_SIZE(weir_policy_names); bit++)
		json_object_set_new(settings, weir_policy_names[bit], json_string(weir_policy_word(instance, bit)));
	json_object_set_new(settings, "nonIpExcept", describe_except(info));
	if (weir_has_breaker_rules(instance)) {
		json_object_set_new(
			settings, "requests",
			json_integer((json_int_t)info->tables[WEIR_TABLE_REQUESTS].size * WEIR_REQUESTS_PER_SET));
		json_object_set_new(
			settings, "breakers",
			json_integer((json_int_t)info->tables[WEIR_TABLE_BREAKERS].size * WEIR_BREAKERS_PER_SET));
		json_object_set_new(settings, "halfOpenTimeoutInMs",
				    json_integer(info->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF]));
	}
	if (weir_connections_are_counted(instance))
		add_connection_settings(info, settings);
	return settings;
}

static json_t *describe_counts(const struct weir_instance *instance)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "resources", (json_int_t)instance->resource_count,
			 "rules", (json_int_t)instance->rule_count, "throttlingRules",
			 (json_int_t)weir_count_throttling(instance), "occupyRules",
			 (json_int_t)weir_count_occupy(instance), "overrides",
			 (json_int_t)weir_count_overrides(instance), "allow", (json_int_t)instance->info.allow_count,
			 "deny", (json_int_t)instance->info.deny_count);
}

/* null if it is not known */
static json_t *describe_netns(const struct weir_instance *instance)
{
	uint64_t inode = instance->info.netns;
	char name[NAME_MAX + 1];

	if (!inode)
		return json_null();
	return json_pack("{s:I, s:o, s:b}", "inode", (json_int_t)inode, "name",
			 weir_netns_name(inode, name) ? json_string(name) : json_null(), "isOurs",
			 inode == weir_host_netns());
}

/* The tables that a reload by this version would have to recreate. */
static json_t *describe_incompatible_tables(const struct weir_instance *instance)
{
	json_t *names = json_array();

	for (int table = 0; table < WEIR_STATE_TABLE_COUNT; table++)
		if (instance->is_incompatible[table])
			weir_json_append(&names, json_string(weir_table_name(table)));
	return names;
}

json_t *weir_status_describe(const struct weir_status_view *view)
{
	const struct weir_instance *instance = view->instance;
	const struct weir_instance_info *info = &instance->info;
	const uint64_t now_ns = weir_host_now_ns(), left_ns = weir_instance_left_ns(instance);

	return json_pack(
		"{s:s, s:I, s:o, s:I, s:f, s:f, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:o}",
		"instance", instance->name, "abiVersion", (json_int_t)info->abi_version, "incompatibleTables",
		describe_incompatible_tables(instance), "generation", (json_int_t)info->generation, "attachedSeconds",
		(now_ns - info->attached_ns) / 1e9, "loadedSeconds", (now_ns - info->loaded_ns) / 1e9, "returnsSeconds",
		instance->unconfirmed.is_so ? json_integer(weir_unconfirmed_left_s(&instance->unconfirmed))
					    : json_null(),
		"isLastGood", (info->policies & WEIR_IS_LAST_GOOD) != 0, "reattachDueSeconds",
		left_ns == UINT64_MAX ? json_null() : json_real(left_ns / 1e9), "netns", describe_netns(instance),
		"links",
		weir_figures_list(weir_describe_link, NULL, instance->links, instance->link_count,
				  sizeof(*instance->links)),
		"evaluatedTwice", describe_repeats(view), "wanted", describe_wanted(instance), "settings",
		describe_settings(instance), "counts", describe_counts(instance), "timed", describe_timed(view),
		"ghosts", describe_ghosts(&view->ghosts), "controller", describe_controller(&view->controller),
		"memory", describe_memory(view), "system", describe_signals(&view->signals), "cluster",
		weir_cluster_sum(&view->cluster), "sets",
		view->sets ? weir_figures_list(weir_describe_set, NULL, view->sets->sets, view->sets->count,
					       sizeof(*view->sets->sets))
			   : json_null(),
		"setChanges", describe_set_changes(view->sets), "resources", describe_resources(instance), "rules",
		describe_rules(view));
}
