// SPDX-License-Identifier: GPL-2.0-only
/* The settings of a rule file, and how those of several files merge. */
#include <string.h>

#include "parse.h"
#include "util.h"

/* One element of each flow table (WEIR_CHUNK_BYTES of narrow rows) to 64 Mi flows, which are 2 GB of
 * narrow rows a CPU. Chosen, not derived.
 */
#define FLOWS_PER_CPU_MIN 512
#define FLOWS_PER_CPU_MAX (64u << 20)

enum setting {
	SETTING_FLOWS_PER_CPU,
	SETTING_MALFORMED,
	SETTING_UNSUPPORTED,
	SETTING_NON_IP,
	SETTING_UNMATCHED,
	SETTING_MEMORY,
	SETTING_THROTTLING,
};

static const char *const setting_names[WEIR_SETTING_COUNT] = {
	"flowsPerCpu", "malformed", "unsupported", "nonIp", "unmatched", "memory", "throttling",
};

static void read_policy(struct weir_reader *reader, const struct weir_node *node, const char *field, bool *drops)
{
	static const char *const policies[] = {"pass", "drop"};
	unsigned int choice;

	if (node && weir_read_choice(reader, node, field, policies, ARRAY_SIZE(policies), false, &choice))
		*drops = choice;
}

static void read_memory(struct weir_reader *reader, const struct weir_node *node)
{
	const char *word;

	if (!node || !weir_read_word(reader, node, "memory", &word) || !strcmp(word, "system"))
		return;
	if (!strncmp(word, "cgroup:", 7))
		weir_complain_unsupported(reader, node, "'memory: cgroup'");
	else
		weir_complain(reader, node, "write system", "'%.*s' is no value of 'memory'", WEIR_SHOWN(word));
}

static void read_throttling(struct weir_reader *reader, const struct weir_node *node)
{
	static const char *const choices[] = {"police", "pace"};
	unsigned int choice;

	if (node && weir_read_choice(reader, node, "throttling", choices, ARRAY_SIZE(choices), false, &choice) &&
	    choice)
		weir_complain_unsupported(reader, node, "'throttling: pace'");
}

/* One field set in two files must have one value: which file wins would be a guess. */
static void merge(struct weir_reader *reader, const struct weir_node *value, const char *name,
		  const struct weir_node **first)
{
	if (!*first) {
		*first = value;
		return;
	}
	if (value->kind != WEIR_NODE_WORD || (*first)->kind != WEIR_NODE_WORD || !strcmp(value->text, (*first)->text))
		return;
	weir_complain(reader, value, "files merge: set it in one of them, or in both to the same",
		      "'%s' is '%.*s' here, but '%.*s' in %s:%d", name, WEIR_SHOWN(value->text),
		      WEIR_SHOWN((*first)->text), (*first)->place.file, (*first)->place.line);
}

void weir_read_settings(struct weir_reader *reader, const struct weir_node *node,
			const struct weir_node *first[WEIR_SETTING_COUNT])
{
	struct weir_settings *settings = &reader->ruleset->settings;
	const struct weir_node *values[WEIR_SETTING_COUNT];
	uint64_t flows;

	weir_read_fields(reader, node, "settings", setting_names, WEIR_SETTING_COUNT, false, values);
	if (values[SETTING_FLOWS_PER_CPU] && weir_read_number(reader, values[SETTING_FLOWS_PER_CPU], "flowsPerCpu",
							      FLOWS_PER_CPU_MIN, FLOWS_PER_CPU_MAX, &flows))
		settings->flows_per_cpu = flows;
	read_policy(reader, values[SETTING_MALFORMED], "malformed", &settings->drop_malformed);
	read_policy(reader, values[SETTING_UNSUPPORTED], "unsupported", &settings->drop_unsupported);
	read_policy(reader, values[SETTING_NON_IP], "nonIp", &settings->drop_non_ip);
	read_policy(reader, values[SETTING_UNMATCHED], "unmatched", &settings->drop_unmatched);
	read_memory(reader, values[SETTING_MEMORY]);
	read_throttling(reader, values[SETTING_THROTTLING]);
	if (values[SETTING_NON_IP] && settings->drop_non_ip)
		weir_warn(reader, values[SETTING_NON_IP], "without ARP no IPv4 neighbour can reach this host",
			  "'nonIp: drop' drops ARP as well");
	for (size_t i = 0; i < WEIR_SETTING_COUNT; i++)
		if (values[i])
			merge(reader, values[i], setting_names[i], &first[i]);
}
