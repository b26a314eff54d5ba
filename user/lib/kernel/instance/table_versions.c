// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of an instance that another version of weir attached: which of them this version can read, and what it
 * means for an operator when the others start afresh.
 */
#include "instance/instance_internal.h"

#include <stdio.h>

#include "base/util.h"
#include "pace/pace.h"
#include "pins/pins.h"
#include "tables/rule_kind.h"

/* ---- which tables ---- */

/* Without these, the contents of all other tables are meaningless: they are indexed by slots, and rows depend on window
 * specs.
 */
static const int described_by[] = {WEIR_TABLE_INSTANCE, WEIR_TABLE_RULE_INFO, WEIR_TABLE_RESOURCE_INFO,
				   WEIR_TABLE_WINDOW_SPECS};

/* Tables that are of no use without another one. */
static const struct {
	int table, without;
} needs[] = {
	/* Rows on CPUs that nobody looks at would not count. */
	{WEIR_TABLE_NARROW_FLOWS, WEIR_TABLE_SHARERS},
	{WEIR_TABLE_MEDIUM_FLOWS, WEIR_TABLE_SHARERS},
	{WEIR_TABLE_WIDE_FLOWS, WEIR_TABLE_SHARERS},
	/* Connections refer to the flows that count them, and the counts are kept there. */
	{WEIR_TABLE_CONNECTIONS, WEIR_TABLE_CONNECTION_FLOWS},
	{WEIR_TABLE_CONNECTIONS, WEIR_TABLE_CONNECTION_TOTALS},
	{WEIR_TABLE_CONNECTION_FLOWS, WEIR_TABLE_CONNECTIONS},
	{WEIR_TABLE_CONNECTIONS, WEIR_TABLE_LONE_CONNECTIONS},
	{WEIR_TABLE_CONNECTION_TOTALS, WEIR_TABLE_CONNECTIONS},
	{WEIR_TABLE_LONE_CONNECTIONS, WEIR_TABLE_CONNECTIONS},
	/* The keys say whose a penalty is, and the rules whether there are any penalties to look for. */
	{WEIR_TABLE_PENALISED_FLOWS, WEIR_TABLE_PENALTY_KEYS},
	{WEIR_TABLE_PENALTY_KEYS, WEIR_TABLE_PENALISED_FLOWS},
	{WEIR_TABLE_PENALISED_FLOWS, WEIR_TABLE_PENALISED_RULES},
	/* The keys say whose drops they are. */
	{WEIR_TABLE_TOP_DROPS, WEIR_TABLE_TOP_DROP_KEYS},
	{WEIR_TABLE_TOP_DROP_KEYS, WEIR_TABLE_TOP_DROPS},
	/* Whether there are any entries is stored separately. */
	{WEIR_TABLE_TIMED_ADDRESSES, WEIR_TABLE_TIMED_STATE},
	{WEIR_TABLE_TIMED_PREFIXES, WEIR_TABLE_TIMED_STATE},
	/* Requests refer to their breakers, and wait in the breakers' rings. */
	{WEIR_TABLE_REQUESTS, WEIR_TABLE_BREAKERS},
	{WEIR_TABLE_BREAKERS, WEIR_TABLE_REQUEST_GROUPS},
	{WEIR_TABLE_REQUEST_GROUPS, WEIR_TABLE_LONE_BREAKERS},
	{WEIR_TABLE_LONE_BREAKERS, WEIR_TABLE_LONE_GROUPS},
	{WEIR_TABLE_LONE_GROUPS, WEIR_TABLE_REQUESTS},
	/* The tokens are those that were left after the seconds that have been counted. */
	{WEIR_TABLE_WARM_STATES, WEIR_TABLE_RULE_SECONDS},
	{WEIR_TABLE_RULE_SECONDS, WEIR_TABLE_WARM_STATES},
};

static bool is_ours(const struct weir_instance_info *info, int table)
{
	return info->tables[table].version == weir_table_version(table);
}

/* Nothing is known about its rules. */
static bool is_all_incompatible(const struct weir_instance_info *info, bool is_info_incompatible)
{
	for (size_t i = 0; !is_info_incompatible && i < ARRAY_SIZE(described_by); i++)
		is_info_incompatible = !is_ours(info, described_by[i]);
	return is_info_incompatible;
}

void weir_instance_find_incompatible(struct weir_instance *instance, bool is_info_incompatible)
{
	bool *is_incompatible = instance->is_incompatible;

	instance->is_all_incompatible = is_all_incompatible(&instance->info, is_info_incompatible);
	for (int table = 0; table < WEIR_TABLE_COUNT; table++)
		is_incompatible[table] = instance->is_all_incompatible || !is_ours(&instance->info, table);
	/* Five rounds, because the tables of breakers depend on each other in a cycle. */
	for (size_t i = 0; i < 5 * ARRAY_SIZE(needs); i++)
		is_incompatible[needs[i % ARRAY_SIZE(needs)].table] |=
			is_incompatible[needs[i % ARRAY_SIZE(needs)].without];
}

bool weir_instance_is_incompatible(const char *name, struct weir_instance_info *ret_head)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(name, weir_table_name(WEIR_TABLE_INSTANCE));
	bool is_incompatible;

	if (fd < 0 || weir_info_read(fd, ret_head, &is_incompatible) || weir_info_expose_incompatible(name, ret_head))
		return false;
	return is_all_incompatible(ret_head, is_incompatible) || !is_ours(ret_head, WEIR_TABLE_CONTROL) ||
	       !is_ours(ret_head, WEIR_TABLE_THRESHOLDS);
}

/* ---- messages ---- */

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

static bool everybody(const struct weir_rule_info *rule)
{
	(void)rule;
	return true;
}

/* Which rules use a table, and what is lost when it starts afresh. */
static const struct {
	bool (*is_used_by)(const struct weir_rule_info *rule);
	const char *loss;
} rows[WEIR_TABLE_COUNT] = {
#define TABLE(identifier, map, map_type, key, value, flags, row, bytes, version, size, entries, part, users, lost,     \
	      ...)                                                                                                     \
	[WEIR_TABLE_##identifier] = {users, lost},
#include "weir_tables.def"
#undef TABLE
};

/* Whether nobody would miss the table's contents. */
static bool is_idle(const struct weir_instance *instance, int map)
{
	if (map == WEIR_TABLE_PACE)
		return !weir_pace_is_attached(instance->name);
	if (rows[map].is_used_by == everybody)
		return false;
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++)
		if (instance->rules[slot].state == WEIR_SLOT_USED && rows[map].is_used_by(&instance->rules[slot]))
			return false;
	return true;
}

bool weir_instance_empties(const struct weir_instance *instance, const struct weir_rule_info *rule)
{
	static const int holding[] = {
		WEIR_TABLE_NARROW_FLOWS,     WEIR_TABLE_MEDIUM_FLOWS,	 WEIR_TABLE_WIDE_FLOWS,
		WEIR_TABLE_LONE_ROWS,	     WEIR_TABLE_WARM_STATES,	 WEIR_TABLE_THROTTLED_RESOURCES,
		WEIR_TABLE_THROTTLED_FLOWS,  WEIR_TABLE_WARMING_FLOWS,	 WEIR_TABLE_PENALISED_FLOWS,
		WEIR_TABLE_PENALISED_RULES,  WEIR_TABLE_CONNECTIONS,	 WEIR_TABLE_OCCUPY_FLOWS,
		WEIR_TABLE_OCCUPY_RESOURCES, WEIR_TABLE_TOKEN_RESOURCES, WEIR_TABLE_TOKEN_FLOWS,
		WEIR_TABLE_BREAKERS,
	};

	for (size_t i = 0; i < ARRAY_SIZE(holding); i++)
		if (instance->is_incompatible[holding[i]] && rows[holding[i]].is_used_by(rule))
			return true;
	return false;
}

#define WHY_BYTES 128

static const char *why(const struct weir_instance *instance, int map, char words[WHY_BYTES])
{
	uint32_t theirs = instance->info.tables[map].version, ours = weir_table_version(map);

	if (theirs == ours)
		snprintf(words, WHY_BYTES, "table '%s' is unusable without another one that is incompatible",
			 weir_table_name(map));
	else if (!theirs)
		snprintf(words, WHY_BYTES, "its table '%s' is missing or incomplete", weir_table_name(map));
	else if (theirs == WEIR_TABLE_INCOMPATIBLE)
		snprintf(words, WHY_BYTES,
			 "another build of this version created its table '%s', with values of other sizes",
			 weir_table_name(map));
	else
		snprintf(words, WHY_BYTES, "its table '%s' has version %u, and this weir has %u", weir_table_name(map),
			 theirs, ours);
	return words;
}

static const char *why_all(const struct weir_instance *instance, char words[WHY_BYTES])
{
	if (instance->info.abi_version != WEIR_ABI_VERSION) {
		snprintf(words, WHY_BYTES, "its description has version %u, and this weir has %u",
			 instance->info.abi_version, WEIR_ABI_VERSION);
		return words;
	}
	for (size_t i = 0; i < ARRAY_SIZE(described_by); i++)
		if (!is_ours(&instance->info, described_by[i]))
			return why(instance, described_by[i], words);
	snprintf(words, WHY_BYTES, "its description has another size");
	return words;
}

int weir_instance_fail_incompatible(const struct weir_instance *instance, struct weir_diag *diag)
{
	char words[WHY_BYTES], hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	weir_instance_options(instance->name, option);
	if (instance->info.magic)
		snprintf(hint, sizeof(hint),
			 "'weir reload%s --fresh FILE...' moves it to this version, 'weir detach%s' takes it off",
			 option, option);
	else
		snprintf(hint, sizeof(hint), "run 'weir detach%s', then attach again", option);
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' was attached by another version of weir: %s",
			instance->name, why_all(instance, words));
	return -EPROTO;
}

int weir_instance_expect_tables(const struct weir_instance *instance, uint64_t tables, const char *what,
				struct weir_diag *diag)
{
	char words[WHY_BYTES], hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	for (int table = 0; table < WEIR_TABLE_COUNT; table++) {
		if (!(tables & WEIR_TABLE_BIT(table)) || !instance->is_incompatible[table])
			continue;
		snprintf(hint, sizeof(hint),
			 "use the weir that loaded its rules; or 'weir reload%s --fresh FILE...', which moves it to "
			 "this version",
			 weir_instance_options(instance->name, option));
		weir_diag_error(diag, NULL, NULL, hint, "cannot access %s of instance '%s': %s", what, instance->name,
				why(instance, table, words));
		return -EPROTO;
	}
	return 0;
}

/* ---- at a reload ---- */

/* A table that the other version does not have, or that a killed reload has begun to replace, contains nothing to lose.
 */
static bool is_lost(const struct weir_instance *instance, int map)
{
	return instance->is_incompatible[map] && instance->info.tables[map].version && !is_idle(instance, map);
}

/* Reports each loss, as an error or a warning. Returns how many there are. */
static int list_losses(const struct weir_instance *instance, bool is_refused, struct weir_diag *diag)
{
	char words[WHY_BYTES];
	int count = 0;

	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++) {
		if (!is_lost(instance, map))
			continue;
		count++;
		why(instance, map, words);
		if (is_refused)
			weir_diag_error(diag, NULL, NULL, NULL, "%s: %s", rows[map].loss, words);
		else
			weir_diag_warning(diag, NULL, NULL, NULL, "%s: %s", rows[map].loss, words);
	}
	return count;
}

static int refuse_all(const struct weir_instance *instance, struct weir_diag *diag)
{
	char words[WHY_BYTES], hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	snprintf(hint, sizeof(hint), "'weir reload%s --fresh FILE...' does so, without a gap; the old rules stay",
		 weir_instance_options(instance->name, option));
	return weir_diag_error(diag, NULL, NULL, hint,
			       "another version of weir attached instance '%s': all its windows, connections, "
			       "counters and timed entries would start empty (%s)",
			       instance->name, why_all(instance, words));
}

static int refuse_some(const struct weir_instance *instance, struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	if (!list_losses(instance, true, diag))
		return 0;
	snprintf(hint, sizeof(hint), "'weir reload%s --fresh FILE...' does so, without a gap; the old rules stay",
		 weir_instance_options(instance->name, option));
	return weir_diag_error(
		diag, NULL, NULL, hint,
		"another version of weir attached instance '%s': a reload would lose the state listed here",
		instance->name);
}

int weir_instance_accept_incompatible(const struct weir_instance *instance, bool starts_afresh, struct weir_diag *diag)
{
	char words[WHY_BYTES];

	/* Without even the head of the description, nobody knows where the interfaces are. */
	if (!instance->info.magic)
		return weir_instance_fail_incompatible(instance, diag);
	if (!starts_afresh)
		return instance->is_all_incompatible ? refuse_all(instance, diag) : refuse_some(instance, diag);
	if (instance->is_all_incompatible)
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "all windows, connections, counters and timed entries start empty: %s",
				  why_all(instance, words));
	else
		list_losses(instance, false, diag);
	return 0;
}
