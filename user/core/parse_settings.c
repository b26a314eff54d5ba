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

#define CONTROLLER_TIMEOUT_MS_MIN 1000
#define CONTROLLER_TIMEOUT_MS_MAX 60000
/* What weir_instance_info.memory_cgroup holds. */
#define CGROUP_PATH_BYTES_MAX 255

enum setting {
	SETTING_FLOWS_PER_CPU,
	SETTING_MALFORMED,
	SETTING_UNSUPPORTED,
	SETTING_NON_IP,
	SETTING_UNMATCHED,
	SETTING_MEMORY,
	SETTING_THROTTLING,
	SETTING_CONTROLLER_TIMEOUT,
};

static const char *const setting_names[WEIR_SETTING_COUNT] = {
	"flowsPerCpu", "malformed", "unsupported", "nonIp",
	"unmatched",   "memory",    "throttling",  "controllerTimeoutInMs",
};

static void read_policy(struct weir_reader *reader, const struct weir_node *node, const char *field, bool *drops)
{
	static const char *const policies[] = {"pass", "drop"};
	unsigned int choice;

	if (node && weir_read_choice(reader, node, field, policies, ARRAY_SIZE(policies), false, &choice))
		*drops = choice;
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
		weir_complain(reader, node, hint, "'%.*s' is no value of 'memory'", WEIR_SHOWN(word));
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

static void read_throttling(struct weir_reader *reader, const struct weir_node *node, bool *paces)
{
	static const char *const choices[] = {"police", "pace"};
	unsigned int choice;

	if (node && weir_read_choice(reader, node, "throttling", choices, ARRAY_SIZE(choices), false, &choice))
		*paces = choice;
}

static void read_controller_timeout(struct weir_reader *reader, const struct weir_node *node, uint32_t *timeout_ms)
{
	uint64_t number;

	if (node && weir_read_number(reader, node, "controllerTimeoutInMs", CONTROLLER_TIMEOUT_MS_MIN,
				     CONTROLLER_TIMEOUT_MS_MAX, &number))
		*timeout_ms = number;
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
	read_memory(reader, values[SETTING_MEMORY], settings);
	read_throttling(reader, values[SETTING_THROTTLING], &settings->paces);
	read_controller_timeout(reader, values[SETTING_CONTROLLER_TIMEOUT], &settings->controller_timeout_ms);
	if (values[SETTING_NON_IP] && settings->drop_non_ip)
		weir_warn(reader, values[SETTING_NON_IP], "without ARP no IPv4 neighbour can reach this host",
			  "'nonIp: drop' drops ARP as well");
	for (size_t i = 0; i < WEIR_SETTING_COUNT; i++)
		if (values[i])
			merge(reader, values[i], setting_names[i], &first[i]);
}
