// SPDX-License-Identifier: GPL-2.0-only
/* The settings in a rule file, and the merging of settings from several files. */
#include <linux/if_ether.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/parse.h"
#include "rules/scalars.h"

/* The capacity of weir_instance_info.memory_cgroup. */
#define CGROUP_PATH_BYTES_MAX 255

const struct weir_settings weir_default_settings = {
	.flows_per_cpu = 262144,
	.timed_entries = 65536,
	.controller_timeout_ms = 3000,
	.occupy_timeout_ms = 500, /* Sentinel (Java)'s: OccupyTimeoutProperty */
	.connections = 131072,
	/* RFC 4787, REQ-5, for everything except TCP; the others are chosen, not derived (why: docs/connections.md). */
	.connection_timeout_ms = {10000, 600000, 120000, 10000},
	.drop_malformed = true,
	.drop_unsupported = true,
};

/* Read nonIpExcept; the entries of all files are combined. */
static void read_except(struct weir_reader *reader, const struct weir_node *node, struct weir_settings *settings)
{
	if (!node)
		return;
	weir_read_items(reader, node, "nonIpExcept", weir_parse_ethertypes, NULL, sizeof(*settings->non_ip_except),
			(void **)&settings->non_ip_except, &settings->non_ip_except_count);
	if (settings->non_ip_except_count > WEIR_NON_IP_EXCEPT_MAX)
		weir_complain(reader, node, "invert 'nonIp' if the others are fewer",
			      "'nonIpExcept' has more than %d entries", WEIR_NON_IP_EXCEPT_MAX);
}

static bool excepts_arp(const struct weir_settings *settings)
{
	for (size_t i = 0; i < settings->non_ip_except_count; i++)
		if (settings->non_ip_except[i].low <= ETH_P_ARP && settings->non_ip_except[i].high >= ETH_P_ARP)
			return true;
	return false;
}

/* Warn about dropping ARP, whichever setting causes it. */
static void warn_of_arp(struct weir_reader *reader, const struct weir_node *non_ip, const struct weir_node *except)
{
	const struct weir_settings *settings = &reader->ruleset->settings;

	if (excepts_arp(settings) == settings->drop_non_ip || !(non_ip || except))
		return;
	weir_warn(reader, settings->drop_non_ip ? non_ip ?: except : except,
		  settings->drop_non_ip ? "write 'nonIpExcept: arp' beside it" : "leave 'arp' out of it",
		  "'%s' drops ARP, without which no IPv4 neighbour can reach this host",
		  settings->drop_non_ip ? "nonIp: drop" : "nonIpExcept");
}

static void read_memory(struct weir_reader *reader, const struct weir_node *node, struct weir_settings *settings)
{
	static const char prefix[] = "cgroup:";
	static const char *const hint = "write system, or cgroup:PATH such as cgroup:/system.slice/nginx.service";
	const char *word, *path;

	if (!node || !weir_read_word(reader, node, "memory", &word))
		return;
	if (!strcmp(word, "system"))
		return;
	if (strncmp(word, prefix, strlen(prefix))) {
		weir_complain(reader, node, hint, "'%.*s' is not a value of 'memory'", WEIR_SHOWN(word));
		return;
	}
	path = word + strlen(prefix);
	if (!*path || strlen(path) > CGROUP_PATH_BYTES_MAX) {
		weir_complain(reader, node, hint, "memory: the path of the cgroup must have 1 to %d bytes",
			      CGROUP_PATH_BYTES_MAX);
		return;
	}
	free(settings->memory_cgroup);
	settings->memory_cgroup = strdup(path);
	reader->is_out_of_memory |= !settings->memory_cgroup;
}

static struct weir_timed_part *find_part(struct weir_settings *settings, const char *by)
{
	for (size_t i = 0; i < settings->timed_part_count; i++)
		if (!strcmp(settings->timed_parts[i].by, by))
			return &settings->timed_parts[i];
	return NULL;
}

static void read_timed_part(struct weir_reader *reader, const struct weir_node *name, const struct weir_node *value)
{
	struct weir_settings *settings = &reader->ruleset->settings;
	struct weir_timed_part part = {};
	struct weir_refusal refusal = {};
	uint64_t addresses;

	if (!name->text || weir_parse_by(name->text, part.by, &refusal)) {
		weir_complain(reader, name, refusal.hint[0] ? refusal.hint : NULL, "timedParts: %s",
			      name->text ? refusal.message : "not the name of a program");
		return;
	}
	if (!weir_read_count(reader, value, part.by, false, 1, WEIR_LISTED_MAX, NULL, &addresses))
		return;
	part.addresses = addresses;
	if (find_part(settings, part.by))
		weir_complain(reader, name, "leave one of them out", "'timedParts' has two parts for '%s'", part.by);
	else if (settings->timed_part_count == WEIR_TIMED_PARTS_MAX)
		weir_complain(reader, name, "leave some out: programs without a part share what is left",
			      "'timedParts' has more than %d parts", WEIR_TIMED_PARTS_MAX);
	else
		settings->timed_parts[settings->timed_part_count++] = part;
}

/* A part is a promise, so all parts must fit. */
static void check_timed_parts(struct weir_reader *reader, const struct weir_node *node)
{
	const struct weir_settings *settings = &reader->ruleset->settings;
	uint64_t sum = 0;

	for (size_t i = 0; i < settings->timed_part_count; i++)
		sum += settings->timed_parts[i].addresses;
	if (node && sum > settings->timed_entries)
		weir_complain(reader, node, "raise 'timedEntries', or make parts smaller",
			      "the parts of 'timedParts' are %llu addresses together, but 'timedEntries' is %u",
			      (unsigned long long)sum, settings->timed_entries);
}

/* A field that is set in two files must have the same value: choosing one would be a guess. */
static void merge(struct weir_reader *reader, const struct weir_node *value, const char *name,
		  const struct weir_node **first)
{
	if (!*first) {
		*first = value;
		return;
	}
	if (weir_is_same_value(value, *first, name))
		return;
	weir_complain(reader, value, "the files are merged: set it in one of them, or to the same value in both",
		      "'%s' is '%.*s' here, but '%.*s' in %s:%d", name, WEIR_SHOWN(value->text),
		      WEIR_SHOWN((*first)->text), (*first)->place.file, (*first)->place.line);
}

/* Each file adds to it, rather than setting it. */
static bool is_combined(enum weir_setting setting)
{
	return setting == SETTING_NON_IP_EXCEPT || setting == SETTING_CLUSTER || setting == SETTING_ANSWERS ||
	       setting == SETTING_TIMED_PARTS;
}

void weir_read_settings(struct weir_reader *reader, const struct weir_node *node,
			const struct weir_node *first[WEIR_SETTING_COUNT])
{
	struct weir_settings *settings = &reader->ruleset->settings;
	static const char *const part_examples[] = {"fail2ban", "crowdsec"};
	const struct weir_node *values[WEIR_SETTING_COUNT], *parts;

	weir_read_fields(reader, node, "settings", weir_setting_names, WEIR_SETTING_COUNT, false, values);
	for (enum weir_setting setting = 0; setting < WEIR_SETTING_COUNT; setting++) {
		const struct weir_field_row *row = &weir_setting_rows[setting];
		uint64_t value;

		if (values[setting] && row->form != WEIR_FIELD_OWN &&
		    weir_read_value(reader, row, values[setting], false, false, &value))
			weir_set_member(row, settings, value);
	}
	read_except(reader, values[SETTING_NON_IP_EXCEPT], settings);
	read_memory(reader, values[SETTING_MEMORY], settings);
	parts = values[SETTING_TIMED_PARTS]; /* of all files together */
	if (parts && parts->kind != WEIR_NODE_MAP)
		weir_complain_no_map(reader, parts, "timedParts", part_examples, ARRAY_SIZE(part_examples));
	for (size_t i = 0; parts && parts->kind == WEIR_NODE_MAP && i + 1 < parts->count; i += 2)
		read_timed_part(reader, parts->items[i], parts->items[i + 1]);
	weir_read_cluster_settings(reader, values[SETTING_CLUSTER]);
	weir_read_answer_settings(reader, values[SETTING_ANSWERS]);
	if (values[SETTING_UNMATCHED] && settings->drop_unmatched)
		weir_warn(reader, values[SETTING_UNMATCHED],
			  "define resources for everything that must get in: SSH, DHCP, DNS, ICMP and the answers to "
			  "this host's own requests; 'weir run --observe' shows what would be dropped",
			  "'unmatched: drop' drops all packets that no resource matches");
	for (size_t i = 0; i < WEIR_SETTING_COUNT; i++)
		if (values[i] && is_combined(i))
			first[i] = first[i] ?: values[i];
		else if (values[i])
			merge(reader, values[i], weir_setting_names[i], &first[i]);
}

/* Are the tables large enough for what the rules count? Returns the number of rules that need such settings. */
static size_t check_room(struct weir_reader *reader)
{
	const struct weir_ruleset *ruleset = reader->ruleset;
	size_t count = 0;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_kind *kind = weir_kind_of(&ruleset->rules[i]);

		if (!kind->warn_of_room)
			continue;
		count++;
		kind->warn_of_room(reader, i);
	}
	return count;
}

static bool any_occupies(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].occupies)
			return true;
	return false;
}

void weir_finish_settings(struct weir_reader *reader, const struct weir_node *const first[WEIR_SETTING_COUNT])
{
	struct weir_settings *settings = &reader->ruleset->settings;
	bool limits_connections;

	settings->derives_connection_flows = !settings->connection_flows;
	if (settings->derives_connection_flows)
		settings->connection_flows = settings->connections / 4;
	/* Nothing that comes in is dropped by default if the rules are about outgoing packets alone. */
	if (weir_ruleset_is_out_only(reader->ruleset)) {
		settings->drop_malformed &= first[SETTING_MALFORMED] != NULL;
		settings->drop_unsupported &= first[SETTING_UNSUPPORTED] != NULL;
	}
	limits_connections = check_room(reader) > 0;
	check_timed_parts(reader, first[SETTING_TIMED_PARTS]);
	/* The rule may be in a file that could not be read, or be one that is wrong. */
	if (reader->is_incomplete || reader->complaints)
		return;
	weir_finish_cluster(reader, first[SETTING_CLUSTER]);
	if (first[SETTING_OCCUPY_TIMEOUT] && !any_occupies(reader->ruleset))
		weir_warn(reader, first[SETTING_OCCUPY_TIMEOUT], "leave it out, or make a resource 'prioritized: true'",
			  "'occupyTimeoutInMs' has no effect: no window can be occupied");
	else if (first[SETTING_OCCUPY_TIMEOUT] && !reader->ruleset->settings.occupy_timeout_ms)
		weir_warn(reader, first[SETTING_OCCUPY_TIMEOUT],
			  "write how many milliseconds a packet may wait, or leave out 'prioritized'",
			  "no bucket is ever occupied: every wait is longer than 0 ms");
	weir_finish_answers(reader, first[SETTING_ANSWERS]);
	warn_of_arp(reader, first[SETTING_NON_IP], first[SETTING_NON_IP_EXCEPT]);
	if (limits_connections || weir_tracks_connections(reader->ruleset))
		return;
	for (size_t i = SETTING_CONNECTIONS; i < WEIR_SETTING_COUNT; i++)
		if (first[i])
			weir_warn(reader, first[i], "leave it out",
				  "'%s' has no effect: no rule has metricType Concurrency, and there is no circuit "
				  "breaker",
				  weir_setting_names[i]);
}
