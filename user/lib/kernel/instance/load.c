// SPDX-License-Identifier: GPL-2.0-only
/*
 * What attaching and reloading share: from a rule set to an image that fits on this host, and what the load writes into
 * the instance's description and its thresholds.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "host/memory.h"
#include "pins/pins.h"
#include "program/array.h"
#include "program/maps.h"
#include "program/thresholds.h"

#define WEIR_FULL_FRAME_BYTES 1514 /* Ethernet without a VLAN tag */

int weir_not_the_rules(int err)
{
	return err == -EINVAL ? -EIO : err;
}

uint32_t weir_hooks_of(enum weir_attach_mode mode, uint8_t directions, bool has_bare)
{
	const bool is_at_tc = mode == WEIR_MODE_TC;
	uint32_t hooks = 0;

	if (directions & WEIR_MATCHES_IN)
		hooks |= 1u << (is_at_tc ? WEIR_HOOK_TC_IN : WEIR_HOOK_XDP) |
			 (is_at_tc && has_bare ? 1u << WEIR_HOOK_TC_BARE_IN : 0);
	if (directions & WEIR_MATCHES_OUT)
		hooks |= 1u << WEIR_HOOK_TC_OUT | (is_at_tc && has_bare ? 1u << WEIR_HOOK_TC_BARE_OUT : 0);
	return hooks;
}

struct weir_link_terms weir_instance_terms(const struct weir_instance *instance)
{
	const struct weir_instance_info *info = &instance->info;

	return (struct weir_link_terms){
		.instance = instance->name,
		.mode = weir_reload_mode(instance),
		.allows_merging = info->allows_merging,
		.paces = info->paces & WEIR_PACES_IN,
		.paces_out = info->paces & WEIR_PACES_OUT,
		.asks_interface = info->policies & WEIR_ASKS_INTERFACE,
		.program_fd = WEIR_NO_PROGRAMS,
	};
}

void weir_instance_hook_fds(const struct weir_object *object, int ret_fds[WEIR_HOOKS])
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		ret_fds[hook] = weir_object_hook_fd(object, hook);
}

struct weir_waits weir_instance_waits_out(const struct weir_ruleset *ruleset)
{
	struct weir_waits waits = {};

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];
		/* If the rule counts bytes, full frames are assumed. */
		const uint64_t per_packet_micro = (rule->counts_bytes ? WEIR_FULL_FRAME_BYTES : 1) * 1000000ull;
		uint64_t packets;

		if (rule->behavior != WEIR_BEHAVIOR_THROTTLING || rule->system ||
		    !(weir_match_directions(&weir_resource_of(ruleset, rule)->match) & WEIR_MATCHES_OUT))
			continue;
		/* that one flow may have waiting */
		packets = (unsigned __int128)rule->threshold_micro * rule->queueing_ms_max * 1000000 /
			  rule->interval_ns / per_packet_micro;
		waits.packets = packets > waits.packets ? packets : waits.packets;
		if (rule->queueing_ms_max * 1000000 > waits.wait_ns)
			waits.wait_ns = rule->queueing_ms_max * 1000000;
	}
	return waits;
}

int weir_instance_check_marks(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	return weir_ruleset_check_memory(ruleset, weir_memory_total_bytes(ruleset->settings.memory_cgroup), diag);
}

int weir_instance_check_memory(uint64_t needed_bytes, struct weir_diag *diag)
{
	uint64_t available_bytes;

	if (weir_host_has_memory(needed_bytes, &available_bytes))
		return 0;
	weir_diag_error(diag, NULL, NULL,
			"lower settings.flowsPerCpu or connections; 'weir check' shows what takes the memory",
			"the maps need %.1f MB; %.1f MB are available, of which a sixteenth must stay free",
			needed_bytes / 1e6, available_bytes / 1e6);
	return -ENOMEM;
}

int weir_instance_build_image(const struct weir_ruleset *ruleset, enum weir_attach_mode mode,
			      const struct weir_previous *previous, enum weir_emptied emptied,
			      struct weir_image **ret_image, struct weir_diag *diag)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	int cpus = weir_host_cpus(), err;
	struct weir_compile_options options = {
		.cpus = cpus,
		.now_ns = weir_host_now_ns(),
		.is_at_tc = mode == WEIR_MODE_TC,
		.previous = previous,
		.emptied = emptied,
		.ifindex = weir_host_find_ifindex,
	};

	if (cpus < 0)
		return weir_diag_fail(diag, -cpus, NULL, "cannot find out how many CPUs there are");
	err = weir_image_build(ruleset, &options, &image, diag);
	if (err)
		return err;
	err = weir_image_add_interfaces(image);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot list the interfaces");
	*ret_image = TAKE_PTR(image);
	return 0;
}

/* The flows that fit in the smallest table of rows in use: a reload keeps existing tables. */
static uint32_t flows_in_force(const struct weir_image *image)
{
	const struct weir_config *config = &image->config;
	const struct {
		uint32_t sets, sets_idle;
	} tables[] = {{config->sizes[WEIR_TABLE_NARROW_FLOWS], WEIR_NARROW_SETS_PER_CHUNK},
		      {config->sizes[WEIR_TABLE_MEDIUM_FLOWS], WEIR_MEDIUM_SETS_PER_CHUNK},
		      {config->sizes[WEIR_TABLE_WIDE_FLOWS], WEIR_WIDE_SETS_PER_CHUNK}};
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (tables[i].sets > tables[i].sets_idle && tables[i].sets < least)
			least = tables[i].sets;
	return least == UINT32_MAX ? image->flows_per_cpu : least * WEIR_WAYS;
}

/* Each string fits: the rule reader refuses longer ones (rules/cluster.c). */
static void describe_cluster(const struct weir_settings *settings, struct weir_cluster_info *cluster)
{
	char *const *fields = settings->cluster;

	memset(cluster, 0, sizeof(*cluster));
	cluster->silent_ns = weir_cluster_silent_ns(fields[WEIR_CLUSTER_SILENT_FOR]);
	cluster->stops = fields[WEIR_CLUSTER_AFTER_SILENCE] && !strcmp(fields[WEIR_CLUSTER_AFTER_SILENCE], "stop");
	if (fields[WEIR_CLUSTER_REDIS])
		strncpy(cluster->redis, fields[WEIR_CLUSTER_REDIS], sizeof(cluster->redis) - 1);
	if (fields[WEIR_CLUSTER_NAME])
		strncpy(cluster->name, fields[WEIR_CLUSTER_NAME], sizeof(cluster->name) - 1);
	if (fields[WEIR_CLUSTER_HOST])
		strncpy(cluster->host, fields[WEIR_CLUSTER_HOST], sizeof(cluster->host) - 1);
	if (fields[WEIR_CLUSTER_KEY_FILE])
		strncpy(cluster->key_file, fields[WEIR_CLUSTER_KEY_FILE], sizeof(cluster->key_file) - 1);
	if (fields[WEIR_CLUSTER_CA_FILE])
		strncpy(cluster->ca_file, fields[WEIR_CLUSTER_CA_FILE], sizeof(cluster->ca_file) - 1);
	if (fields[WEIR_CLUSTER_PASSWORD_FILE])
		strncpy(cluster->password_file, fields[WEIR_CLUSTER_PASSWORD_FILE], sizeof(cluster->password_file) - 1);
}

void weir_instance_update_info(struct weir_instance_info *info, const struct weir_ruleset *ruleset,
			       const struct weir_image *image, const struct weir_object *object, uint64_t loaded_ns)
{
	const struct weir_config *config = &image->config;
	const struct weir_settings *settings = &ruleset->settings;

	info->magic = WEIR_ABI_MAGIC;
	info->abi_version = WEIR_ABI_VERSION;
	weir_info_describe_tables(info, config->sizes);
	memcpy(info->seed, weir_object_seed(object), sizeof(info->seed));
	info->tick_origin_ns = weir_object_tick_origin_ns(object);
	info->generation++;
	info->loaded_ns = loaded_ns;
	if (!info->attached_ns) {
		info->attached_ns = info->loaded_ns;
		info->netns = weir_host_netns();
	}
	info->rule_slots = image->rule_slots;
	info->resource_slots = image->resource_slots;
	info->sharers_shift = config->sharers_shift;
	info->flows_per_cpu = flows_in_force(image);
	info->policies = (config->drop_malformed ? 1 : 0) | (config->drop_unsupported ? 2 : 0) |
			 (config->drop_non_ip ? 4 : 0) | (config->drop_unmatched ? 8 : 0) |
			 (config->asked_fields & WEIR_MATCH_INTERFACE ? WEIR_ASKS_INTERFACE : 0) |
			 (ruleset->is_last_good ? WEIR_IS_LAST_GOOD : 0);
	info->non_ip_except_count = config->non_ip_except_count;
	memcpy(info->non_ip_except, config->non_ip_except, sizeof(info->non_ip_except));
	info->observes = config->observes;
	info->paces = (config->paces ? WEIR_PACES_IN : 0) | (config->paces_out ? WEIR_PACES_OUT : 0);
	info->spec_count = image->spec_count;
	memcpy(info->connection_timeout_ms, image->connection_timeout_ms, sizeof(info->connection_timeout_ms));
	info->controller_timeout_ms = settings->controller_timeout_ms;
	info->allow_count = image->allow_count;
	info->deny_count = image->deny_count;
	describe_cluster(settings, &info->cluster);
	info->timed_evicts = settings->timed_evicts;
	info->timed_part_count = settings->timed_part_count;
	memcpy(info->timed_parts, settings->timed_parts, sizeof(info->timed_parts));
	memset(info->memory_cgroup, 0, sizeof(info->memory_cgroup));
	if (settings->memory_cgroup)
		strncpy(info->memory_cgroup, settings->memory_cgroup, sizeof(info->memory_cgroup) - 1);
}

int weir_instance_write_info(const struct weir_instance *instance, struct weir_diag *diag)
{
	int err = weir_array_write(instance->map_fd[WEIR_TABLE_INSTANCE], &instance->info, 1, sizeof(instance->info));

	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'", instance->name)
		   : 0;
}

int weir_instance_publish(const struct weir_settings *settings, const struct weir_image *image,
			  const struct weir_object *object, struct weir_diag *diag)
{
	const struct weir_moving_fds moving = weir_object_moving_fds(object);
	_cleanup_(weir_memory_freep) struct weir_memory *memory = NULL;
	struct weir_memory_use use = {.holds_until_ns = UINT64_MAX};

	if (!image->config.has_moving)
		return 0;
	memory = weir_memory_open(settings->memory_cgroup);
	use.is_known = memory && !weir_memory_read(memory, &use.used_bytes);
	return weir_thresholds_publish(image, &moving, weir_host_now_ns(), &use, diag);
}
