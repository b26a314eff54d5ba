// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of an instance that another version of weir attached: which of them this version can read, and what it
 * means to an operator when the others start afresh.
 */
#include "instance/parts.h"

#include <stdio.h>

#include "base/util.h"
#include "pace/pace.h"
#include "pins/info.h"
#include "tables/rule_kind.h"

/* ---- which ---- */

/* Without them nobody knows what the others hold: all go by slots, and rows by timings. */
static const int described_by[] = {WEIR_MAP_INSTANCE, WEIR_MAP_RULE_INFO, WEIR_MAP_RESOURCE_INFO, WEIR_MAP_TIMINGS};

/* What is of no use without another. */
static const struct {
	int table, without;
} needs[] = {
	/* Rows on CPUs that nobody looks at would count for nothing. */
	{WEIR_MAP_NARROW_FLOWS, WEIR_MAP_PRESENCE},
	{WEIR_MAP_MEDIUM_FLOWS, WEIR_MAP_PRESENCE},
	{WEIR_MAP_WIDE_FLOWS, WEIR_MAP_PRESENCE},
	/* Connections name the flows that count them, and are counted there. */
	{WEIR_MAP_CONNECTIONS, WEIR_MAP_CONNECTION_FLOWS},
	{WEIR_MAP_CONNECTIONS, WEIR_MAP_CONNECTION_TOTALS},
	{WEIR_MAP_CONNECTION_FLOWS, WEIR_MAP_CONNECTIONS},
	{WEIR_MAP_CONNECTIONS, WEIR_MAP_LONE_CONNECTIONS},
	{WEIR_MAP_CONNECTION_TOTALS, WEIR_MAP_CONNECTIONS},
	{WEIR_MAP_LONE_CONNECTIONS, WEIR_MAP_CONNECTIONS},
	/* Whose a penalty is; and whether there are any to be looked for. */
	{WEIR_MAP_PENALISED_FLOWS, WEIR_MAP_PENALTY_KEYS},
	{WEIR_MAP_PENALTY_KEYS, WEIR_MAP_PENALISED_FLOWS},
	{WEIR_MAP_PENALISED_FLOWS, WEIR_MAP_PENALISED_RULES},
	/* Whose drops they are. */
	{WEIR_MAP_OFFENDERS, WEIR_MAP_OFFENDER_KEYS},
	{WEIR_MAP_OFFENDER_KEYS, WEIR_MAP_OFFENDERS},
	/* Whether there are any is said apart from them. */
	{WEIR_MAP_TIMED_ADDRESSES, WEIR_MAP_TIMED_STATE},
	{WEIR_MAP_TIMED_PREFIXES, WEIR_MAP_TIMED_STATE},
	/* Requests name their breakers, and wait in their rings. */
	{WEIR_MAP_REQUESTS, WEIR_MAP_BREAKERS},
	{WEIR_MAP_BREAKERS, WEIR_MAP_REQUEST_GROUPS},
	{WEIR_MAP_REQUEST_GROUPS, WEIR_MAP_LONE_BREAKERS},
	{WEIR_MAP_LONE_BREAKERS, WEIR_MAP_LONE_GROUPS},
	{WEIR_MAP_LONE_GROUPS, WEIR_MAP_REQUESTS},
	/* Tokens are what was left after the seconds that have been counted. */
	{WEIR_MAP_WARM_STATES, WEIR_MAP_RULE_SECONDS},
	{WEIR_MAP_RULE_SECONDS, WEIR_MAP_WARM_STATES},
};

static bool is_ours(const struct weir_instance_info *info, int table)
{
	return weir_info_table_version(info, table) == weir_state_table_version(table);
}

/* Nothing can be said of its rules. */
static bool is_all_foreign(const struct weir_instance_info *info, bool is_info_foreign)
{
	for (size_t i = 0; !is_info_foreign && i < ARRAY_SIZE(described_by); i++)
		is_info_foreign = !is_ours(info, described_by[i]);
	return is_info_foreign;
}

void weir_instance_find_foreign(struct weir_instance *instance, bool is_info_foreign)
{
	bool *is_foreign = instance->is_foreign;

	instance->is_all_foreign = is_all_foreign(&instance->info, is_info_foreign);
	for (int table = 0; table < WEIR_TABLE_COUNT; table++)
		is_foreign[table] = instance->is_all_foreign || !is_ours(&instance->info, table);
	/* Five times: tables of breakers, by way of each other. */
	for (size_t i = 0; i < 5 * ARRAY_SIZE(needs); i++)
		is_foreign[needs[i % ARRAY_SIZE(needs)].table] |= is_foreign[needs[i % ARRAY_SIZE(needs)].without];
}

bool weir_instance_is_foreign(const char *name, struct weir_instance_info *ret_head)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(name, weir_instance_map_name(WEIR_MAP_INSTANCE));
	bool is_foreign;

	if (fd < 0 || weir_info_read(fd, ret_head, &is_foreign) || weir_info_expose_aliens(name, ret_head))
		return false;
	return is_all_foreign(ret_head, is_foreign) || !is_ours(ret_head, WEIR_MAP_CONTROL) ||
	       !is_ours(ret_head, WEIR_MAP_THRESHOLDS);
}

/* ---- what to say ---- */

static const char *const losses[WEIR_MAP_COUNT] = {
	[WEIR_MAP_NARROW_FLOWS] = "windows of flows with narrow rows start empty",
	[WEIR_MAP_MEDIUM_FLOWS] = "windows of flows with medium rows start empty",
	[WEIR_MAP_WIDE_FLOWS] = "windows of flows with wide rows start empty",
	[WEIR_MAP_PRESENCE] = "which CPUs have seen a flow is learned anew",
	[WEIR_MAP_REMNANTS] = "flows that were pushed out of a full table begin anew",
	[WEIR_MAP_STRANGERS] = "strangers of a full table begin anew (whenFull: aggregate)",
	[WEIR_MAP_LONE_ROWS] = "windows of resources without a flow key start empty",
	[WEIR_MAP_TALKERS] = "'weir flows' shows the keys of flows only as they come again",
	[WEIR_MAP_OFFENDERS] = "drops of flows are counted from now on only",
	[WEIR_MAP_OFFENDER_KEYS] = "whose drops were counted is forgotten",
	[WEIR_MAP_RULE_COUNTERS] = "counters of rules start at 0",
	[WEIR_MAP_RESOURCE_COUNTERS] = "counters of resources start at 0",
	[WEIR_MAP_TOTALS] = "counters of verdicts start at 0",
	[WEIR_MAP_CONTROL] = "a controller that runs now has to be started again",
	[WEIR_MAP_RULE_SECONDS] = "what WarmUp rules let pass lately is forgotten",
	[WEIR_MAP_WARM_STATES] = "WarmUp rules start cold",
	[WEIR_MAP_SHARES] = "rules that hosts share admit nothing until the store has been asked",
	[WEIR_MAP_FLOW_SHARES] = "flows that hosts share have a part of the limit until they are shared anew",
	[WEIR_MAP_FLOW_DEMANDS] = "what came of flows that hosts share is counted anew",
	[WEIR_MAP_THROTTLED_RESOURCES] = "throttled resources without a flow key start with no packet planned",
	[WEIR_MAP_THROTTLED_FLOWS] = "throttled flows start with no packet planned",
	[WEIR_MAP_BORROWING_RESOURCES] = "windows that lend, of resources without a flow key, start empty",
	[WEIR_MAP_BORROWING_FLOWS] = "windows of flows that lend start empty",
	[WEIR_MAP_TOKEN_RESOURCES] = "token buckets of resources without a flow key start full",
	[WEIR_MAP_TOKEN_FLOWS] = "token buckets of flows start full",
	[WEIR_MAP_WARMING_FLOWS] = "flows that warm up start cold",
	[WEIR_MAP_PENALISED_FLOWS] = "penalties of flows are over",
	[WEIR_MAP_PENALTY_KEYS] = "whose penalties were is forgotten",
	[WEIR_MAP_PENALISED_RULES] = "penalties of resources without a flow key are over",
	[WEIR_MAP_TIMED_STATE] = "whether anybody is blocked or allowed for a while is forgotten",
	[WEIR_MAP_TIMED_ADDRESSES] = "addresses that were blocked or allowed for a while no longer are",
	[WEIR_MAP_TIMED_PREFIXES] = "prefixes that were blocked or allowed for a while no longer are",
	[WEIR_MAP_CONNECTIONS] = "connections are forgotten; those that are open count for nothing",
	[WEIR_MAP_CONNECTION_FLOWS] = "counts of connections by flow start at 0",
	[WEIR_MAP_LONE_CONNECTIONS] = "counts of connections of resources without a flow key start at 0",
	[WEIR_MAP_CONNECTION_TOTALS] = "counts of connections by rule start at 0",
	[WEIR_MAP_HANDSHAKES] = "handshakes of the last seconds are forgotten, for system rules",
	[WEIR_MAP_SIGNALS] = "load and CPU usage are unknown until the controller samples them anew",
	[WEIR_MAP_REQUESTS] = "requests that are being opened are forgotten",
	[WEIR_MAP_BREAKERS] = "circuit breakers of flows start closed, with empty windows",
	[WEIR_MAP_LONE_BREAKERS] = "circuit breakers of whole resources start closed, with empty windows",
	[WEIR_MAP_REQUEST_GROUPS] = "requests of flows that wait for their time-outs are forgotten",
	[WEIR_MAP_LONE_GROUPS] = "requests of whole resources that wait for their time-outs are forgotten",
	[WEIR_MAP_EVENTS] = "the latest events are forgotten, and a 'weir events' that runs now ends",
	[WEIR_MAP_PACE] = "packets that wait are sent, and their counters start at 0",
};

static bool is_narrow(const struct weir_rule_info *rule)
{
	return weir_has_window(rule) && rule->storage == WEIR_STORAGE_NARROW;
}

static bool is_medium(const struct weir_rule_info *rule)
{
	return weir_has_window(rule) && rule->storage == WEIR_STORAGE_MEDIUM;
}

static bool is_wide(const struct weir_rule_info *rule)
{
	return weir_has_window(rule) && rule->storage == WEIR_STORAGE_WIDE;
}

static bool is_keyed(const struct weir_rule_info *rule)
{
	return is_narrow(rule) || is_medium(rule) || is_wide(rule);
}

static bool aggregates(const struct weir_rule_info *rule)
{
	return rule->aggregates;
}

static bool is_lone(const struct weir_rule_info *rule)
{
	return weir_has_window(rule) && rule->storage == WEIR_STORAGE_LONE;
}

static bool lends_to_resource(const struct weir_rule_info *rule)
{
	return weir_lends(rule) && !rule->identity.key_fields;
}

static bool moves(const struct weir_rule_info *rule)
{
	return rule->moves;
}

static bool is_shared(const struct weir_rule_info *rule)
{
	return rule->cluster;
}

static bool shares_flows(const struct weir_rule_info *rule)
{
	return rule->cluster && rule->identity.key_fields;
}

static bool goes_by_handshakes(const struct weir_rule_info *rule)
{
	return weir_needs_handshakes(rule);
}

static bool goes_by_samples(const struct weir_rule_info *rule)
{
	return weir_needs_samples(rule);
}

/* The heartbeat vouches for samples, too. */
static bool needs_controller(const struct weir_rule_info *rule)
{
	return rule->moves || rule->cluster || weir_needs_samples(rule);
}

/* Who keeps something in a table. Of those that are missing here every rule does. */
static bool (*const users[WEIR_MAP_COUNT])(const struct weir_rule_info *rule) = {
	[WEIR_MAP_NARROW_FLOWS] = is_narrow,
	[WEIR_MAP_MEDIUM_FLOWS] = is_medium,
	[WEIR_MAP_WIDE_FLOWS] = is_wide,
	[WEIR_MAP_PRESENCE] = is_keyed,
	[WEIR_MAP_REMNANTS] = is_keyed,
	[WEIR_MAP_STRANGERS] = aggregates,
	[WEIR_MAP_LONE_ROWS] = is_lone,
	[WEIR_MAP_TALKERS] = is_keyed,
	[WEIR_MAP_CONTROL] = needs_controller,
	[WEIR_MAP_RULE_SECONDS] = moves,
	[WEIR_MAP_WARM_STATES] = moves,
	[WEIR_MAP_SHARES] = is_shared,
	[WEIR_MAP_FLOW_SHARES] = shares_flows,
	[WEIR_MAP_FLOW_DEMANDS] = shares_flows,
	[WEIR_MAP_THROTTLED_RESOURCES] = weir_throttles_resource,
	[WEIR_MAP_THROTTLED_FLOWS] = weir_throttles_flows,
	[WEIR_MAP_BORROWING_RESOURCES] = lends_to_resource,
	[WEIR_MAP_BORROWING_FLOWS] = weir_lends_to_flows,
	[WEIR_MAP_TOKEN_RESOURCES] = weir_has_token_resource,
	[WEIR_MAP_TOKEN_FLOWS] = weir_has_token_flows,
	[WEIR_MAP_WARMING_FLOWS] = weir_warms_flows,
	[WEIR_MAP_PENALISED_FLOWS] = weir_penalises_flows,
	[WEIR_MAP_PENALTY_KEYS] = weir_penalises_flows,
	[WEIR_MAP_PENALISED_RULES] = weir_penalises,
	[WEIR_MAP_CONNECTIONS] = weir_has_connections,
	[WEIR_MAP_CONNECTION_FLOWS] = weir_has_connections,
	[WEIR_MAP_LONE_CONNECTIONS] = weir_has_connections,
	[WEIR_MAP_CONNECTION_TOTALS] = weir_has_connections,
	[WEIR_MAP_HANDSHAKES] = goes_by_handshakes,
	[WEIR_MAP_SIGNALS] = goes_by_samples,
	[WEIR_MAP_REQUESTS] = weir_is_breaker,
	[WEIR_MAP_BREAKERS] = weir_is_breaker,
	[WEIR_MAP_LONE_BREAKERS] = weir_is_breaker,
	[WEIR_MAP_REQUEST_GROUPS] = weir_is_breaker,
	[WEIR_MAP_LONE_GROUPS] = weir_is_breaker,
};

/* Whether it is missed by nobody when it starts afresh. */
static bool is_idle(const struct weir_instance *instance, int map)
{
	if (map == WEIR_MAP_PACE)
		return !weir_pace_is_attached(instance->name);
	if (!users[map])
		return false;
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++)
		if (instance->rules[slot].state == WEIR_SLOT_USED && users[map](&instance->rules[slot]))
			return false;
	return true;
}

bool weir_instance_empties(const struct weir_instance *instance, const struct weir_rule_info *rule)
{
	static const int holding[] = {
		WEIR_MAP_NARROW_FLOWS,	      WEIR_MAP_MEDIUM_FLOWS,
		WEIR_MAP_WIDE_FLOWS,	      WEIR_MAP_LONE_ROWS,
		WEIR_MAP_WARM_STATES,	      WEIR_MAP_THROTTLED_RESOURCES,
		WEIR_MAP_THROTTLED_FLOWS,     WEIR_MAP_WARMING_FLOWS,
		WEIR_MAP_PENALISED_FLOWS,     WEIR_MAP_PENALISED_RULES,
		WEIR_MAP_CONNECTIONS,	      WEIR_MAP_BORROWING_FLOWS,
		WEIR_MAP_BORROWING_RESOURCES, WEIR_MAP_TOKEN_RESOURCES,
		WEIR_MAP_TOKEN_FLOWS,	      WEIR_MAP_BREAKERS,
	};

	for (size_t i = 0; i < ARRAY_SIZE(holding); i++)
		if (instance->is_foreign[holding[i]] && users[holding[i]](rule))
			return true;
	return false;
}

#define WHY_BYTES 128

static const char *why(const struct weir_instance *instance, int map, char words[WHY_BYTES])
{
	uint32_t theirs = weir_info_table_version(&instance->info, map), ours = weir_state_table_version(map);

	if (theirs == ours)
		snprintf(words, WHY_BYTES, "table '%s' is of no use without another that does",
			 weir_state_table_name(map));
	else if (!theirs)
		snprintf(words, WHY_BYTES, "it has no table '%s' that is complete", weir_state_table_name(map));
	else if (theirs == WEIR_TABLE_ALIEN)
		snprintf(words, WHY_BYTES,
			 "another build of this version made its table '%s', with values of other sizes",
			 weir_state_table_name(map));
	else
		snprintf(words, WHY_BYTES, "its table '%s' is of version %u, and this weir has %u",
			 weir_state_table_name(map), theirs, ours);
	return words;
}

static const char *why_all(const struct weir_instance *instance, char words[WHY_BYTES])
{
	if (instance->info.abi_version != WEIR_ABI_VERSION) {
		snprintf(words, WHY_BYTES, "its description is of version %u, and this weir has %u",
			 instance->info.abi_version, WEIR_ABI_VERSION);
		return words;
	}
	for (size_t i = 0; i < ARRAY_SIZE(described_by); i++)
		if (!is_ours(&instance->info, described_by[i]))
			return why(instance, described_by[i], words);
	snprintf(words, WHY_BYTES, "its description has another size");
	return words;
}

int weir_instance_fail_foreign(const struct weir_instance *instance, struct weir_diag *diag)
{
	char words[WHY_BYTES], hint[256], option[WEIR_INSTANCE_OPTION_BYTES];

	weir_instance_option(instance->name, option);
	if (instance->info.magic)
		snprintf(hint, sizeof(hint),
			 "'weir reload%s --fresh FILE...' makes it this one's, 'weir detach%s' takes it off", option,
			 option);
	else
		snprintf(hint, sizeof(hint), "'weir detach%s' takes it off; then attach again", option);
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' was attached by another version of weir: %s",
			instance->name, why_all(instance, words));
	return -EPROTO;
}

int weir_instance_expect_tables(const struct weir_instance *instance, uint64_t tables, const char *what,
				struct weir_diag *diag)
{
	char words[WHY_BYTES], hint[256], option[WEIR_INSTANCE_OPTION_BYTES];

	for (int table = 0; table < WEIR_TABLE_COUNT; table++) {
		if (!(tables & WEIR_TABLE_BIT(table)) || !instance->is_foreign[table])
			continue;
		snprintf(hint, sizeof(hint),
			 "the weir that loaded its rules can; 'weir reload%s --fresh FILE...' makes it this one's",
			 weir_instance_option(instance->name, option));
		weir_diag_error(diag, NULL, NULL, hint, "cannot get at %s of instance '%s': %s", what, instance->name,
				why(instance, table, words));
		return -EPROTO;
	}
	return 0;
}

/* ---- at a reload ---- */

/* What the other version does not have, or a reload that died has begun to replace, holds nothing to lose. */
static bool is_lost(const struct weir_instance *instance, int map)
{
	return instance->is_foreign[map] && weir_info_table_version(&instance->info, map) && !is_idle(instance, map);
}

/* Refused, or a warning. Returns how many there are. */
static int list_losses(const struct weir_instance *instance, bool is_refused, struct weir_diag *diag)
{
	char words[WHY_BYTES];
	int count = 0;

	for (int map = 0; map < WEIR_MAP_COUNT; map++) {
		if (!is_lost(instance, map))
			continue;
		count++;
		why(instance, map, words);
		if (is_refused)
			weir_diag_error(diag, NULL, NULL, NULL, "%s: %s", losses[map], words);
		else
			weir_diag_warning(diag, NULL, NULL, NULL, "%s: %s", losses[map], words);
	}
	return count;
}

static int refuse_all(const struct weir_instance *instance, struct weir_diag *diag)
{
	char words[WHY_BYTES], hint[256], option[WEIR_INSTANCE_OPTION_BYTES];

	snprintf(hint, sizeof(hint), "'weir reload%s --fresh FILE...' does so, without a gap; the old rules go on",
		 weir_instance_option(instance->name, option));
	return weir_diag_error(diag, NULL, NULL, hint,
			       "another version of weir attached instance '%s': all its windows, connections and "
			       "counters would start afresh (%s)",
			       instance->name, why_all(instance, words));
}

static int refuse_some(const struct weir_instance *instance, struct weir_diag *diag)
{
	char hint[256], option[WEIR_INSTANCE_OPTION_BYTES];

	if (!list_losses(instance, true, diag))
		return 0;
	snprintf(hint, sizeof(hint), "'weir reload%s --fresh FILE...' does so, without a gap; the old rules go on",
		 weir_instance_option(instance->name, option));
	return weir_diag_error(
		diag, NULL, NULL, hint,
		"another version of weir attached instance '%s', and a reload would lose what is named here",
		instance->name);
}

int weir_instance_accept_foreign(const struct weir_instance *instance, bool starts_afresh, struct weir_diag *diag)
{
	char words[WHY_BYTES];

	/* Not even the head of its description: nobody knows where its interfaces are. */
	if (!instance->info.magic)
		return weir_instance_fail_foreign(instance, diag);
	if (!starts_afresh)
		return instance->is_all_foreign ? refuse_all(instance, diag) : refuse_some(instance, diag);
	if (instance->is_all_foreign)
		weir_diag_warning(diag, NULL, NULL, NULL, "all windows, connections and counters start afresh: %s",
				  why_all(instance, words));
	else
		list_losses(instance, false, diag);
	return 0;
}
