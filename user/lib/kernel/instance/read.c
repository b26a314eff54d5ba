// SPDX-License-Identifier: GPL-2.0-only
/* Reading an attached instance: the contents of its pinned maps. A command may be at work on the instance: see open.c.
 */
#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "instance/instance.h"
#include "instance/instance_internal.h"
#include "pins/pins.h"
#include "program/array.h"
#include "program/maps.h"
#include "rules/scalars.h"
#include "tables/entry_state.h"

bool weir_instance_refresh(struct weir_instance *instance)
{
	struct weir_instance_info info;
	struct weir_link *links;
	bool is_incompatible;
	size_t count;

	if (!instance->is_settled || !weir_instance_exists(instance->name) ||
	    weir_info_read(instance->map_fd[WEIR_TABLE_INSTANCE], &info, &is_incompatible) || is_incompatible ||
	    info.generation != instance->info.generation || weir_links_read(instance->name, &links, &count))
		return false;
	free(instance->links);
	instance->links = links;
	instance->link_count = count;
	weir_guard_look(instance); /* confirming rules does not change the generation */
	return true;
}

static void *read_all(int map_fd, uint32_t count, size_t value_bytes)
{
	_cleanup_(weir_freep) void *values = calloc(count + 1, value_bytes);
	int err = values ? weir_array_read(map_fd, values, count, value_bytes) : -ENOMEM;

	if (err) {
		errno = -err;
		return NULL;
	}
	return TAKE_PTR(values);
}

static int read_info(struct weir_instance *instance, struct weir_diag *diag)
{
	bool is_incompatible;
	int err;

	err = weir_info_read(instance->map_fd[WEIR_TABLE_INSTANCE], &instance->info, &is_incompatible);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read instance '%s'", instance->name);
	err = weir_info_expose_incompatible(instance->name, &instance->info);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot look at the tables of instance '%s'", instance->name);
	weir_instance_find_incompatible(instance, is_incompatible);
	return 0;
}

/* If a pin is missing although the instance exists, a command was killed before it had finished, or somebody removed
 * the pin.
 */
static int fail_to_open(const char *name, int err, const char *pin, struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	if (err != ENOENT)
		return weir_diag_fail(diag, err, NULL, "cannot open '%s' of instance '%s'", pin, name);
	snprintf(hint, sizeof(hint), "run 'weir detach%s', then 'weir attach'", weir_instance_options(name, option));
	weir_diag_error(diag, NULL, NULL, hint,
			"instance '%s' is incomplete: its pin '%s' is missing, by a command that was killed or by hand",
			name, pin);
	return -err;
}

static int open_map(struct weir_instance *instance, enum weir_table_id map, struct weir_diag *diag)
{
	const char *pin = weir_table_name(map);

	instance->map_fd[map] = weir_pin_open_table(instance->name, map);
	return instance->map_fd[map] < 0 ? fail_to_open(instance->name, -instance->map_fd[map], pin, diag) : 0;
}

/* Open the description first, because it says what the other maps are. */
static int open_maps(struct weir_instance *instance, struct weir_diag *diag)
{
	int err = open_map(instance, WEIR_TABLE_INSTANCE, diag);

	if (!err)
		err = read_info(instance, diag);
	for (int map = 0; !err && map < WEIR_STATE_TABLE_COUNT; map++)
		if (map != WEIR_TABLE_INSTANCE && !instance->is_incompatible[map])
			err = open_map(instance, map, diag);
	if (err || instance->is_incompatible[WEIR_TABLE_THRESHOLDS])
		return err;
	instance->thresholds_fd = weir_pin_open(instance->name, WEIR_PIN_THRESHOLDS);
	if (instance->thresholds_fd < 0)
		return fail_to_open(instance->name, -instance->thresholds_fd, WEIR_PIN_THRESHOLDS, diag);
	return 0;
}

static int read_descriptions(struct weir_instance *instance, struct weir_diag *diag)
{
	const struct weir_instance_info *info = &instance->info;

	instance->rules = read_all(instance->map_fd[WEIR_TABLE_RULE_INFO], info->rule_slots, sizeof(*instance->rules));
	if (instance->rules)
		instance->resources = read_all(instance->map_fd[WEIR_TABLE_RESOURCE_INFO], info->resource_slots,
					       sizeof(*instance->resources));
	if (instance->resources)
		instance->specs =
			read_all(instance->map_fd[WEIR_TABLE_WINDOW_SPECS], info->spec_count, sizeof(*instance->specs));
	if (!instance->specs)
		return weir_diag_fail(diag, errno, NULL, "cannot read the descriptions of instance '%s'",
				      instance->name);
	return 0;
}

static int compare_rule_places(const void *left, const void *right, void *rules)
{
	const struct weir_rule_info *infos = rules;

	return (int)infos[*(const uint32_t *)left].place - (int)infos[*(const uint32_t *)right].place;
}

static int compare_resource_places(const void *left, const void *right, void *resources)
{
	const struct weir_resource_info *infos = resources;

	return (int)infos[*(const uint32_t *)left].place - (int)infos[*(const uint32_t *)right].place;
}

static int put_in_order(struct weir_instance *instance, struct weir_diag *diag)
{
	assert(instance->rules && instance->resources);
	instance->rule_order = calloc(instance->info.rule_slots + 1, sizeof(*instance->rule_order));
	instance->resource_order = calloc(instance->info.resource_slots + 1, sizeof(*instance->resource_order));
	if (!instance->rule_order || !instance->resource_order)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read instance '%s'", instance->name);
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++)
		if (instance->rules[slot].state == WEIR_SLOT_USED && !instance->rules[slot].is_shadow)
			instance->rule_order[instance->rule_count++] = slot;
	for (uint32_t slot = 0; slot < instance->info.resource_slots; slot++)
		if (instance->resources[slot].state == WEIR_SLOT_USED)
			instance->resource_order[instance->resource_count++] = slot;
	qsort_r(instance->rule_order, instance->rule_count, sizeof(uint32_t), compare_rule_places, instance->rules);
	qsort_r(instance->resource_order, instance->resource_count, sizeof(uint32_t), compare_resource_places,
		instance->resources);
	return 0;
}

static bool is_settled(const struct weir_instance *instance)
{
	const struct weir_table_info *tables = instance->info.tables;

	for (int i = 0; i < WEIR_TABLES_MAX; i++)
		if (tables[i].name[0] && !tables[i].version)
			return false;
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].place != i)
			return false;
	return true;
}

int weir_instance_open_as_is(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = calloc(1, sizeof(*instance));
	int err;

	if (!instance)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read instance '%s'", name);
	snprintf(instance->name, sizeof(instance->name), "%s", name);
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		instance->map_fd[map] = -1;
	instance->thresholds_fd = -1;

	/* Reading needs no capability, only permission to open the pins. */
	err = weir_instance_expect_attached(name, diag);
	if (!err)
		err = open_maps(instance, diag);
	if (!err && !instance->is_all_incompatible)
		err = read_descriptions(instance, diag);
	if (!err && !instance->is_all_incompatible)
		err = put_in_order(instance, diag);
	if (!err && !instance->is_all_incompatible)
		weir_labels_map(instance);
	if (!err)
		err = weir_instance_read_links(instance, diag);
	if (err)
		return err;
	weir_guard_look(instance);
	instance->is_settled = instance->is_all_incompatible || is_settled(instance);
	*ret_instance = TAKE_PTR(instance);
	return 0;
}

void weir_instance_free(struct weir_instance *instance)
{
	if (!instance)
		return;
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		weir_closep(&instance->map_fd[map]);
	weir_closep(&instance->thresholds_fd);
	free(instance->rules);
	free(instance->resources);
	free(instance->specs);
	free(instance->rule_order);
	free(instance->resource_order);
	free(instance->links);
	weir_labels_unmap(instance);
	free(instance);
}

uint64_t weir_instance_left_ns(const struct weir_instance *instance)
{
	return weir_narrow_left_ns(instance->rules, instance->info.rule_slots, instance->specs,
				   instance->info.spec_count, weir_host_now_ns());
}

/* ---- virtual time ---- */

/* The value published last. Reads until two reads agree, because a controller may be writing it. */
static int read_pushed(const struct weir_instance *instance, uint32_t place, struct weir_pushed *ret_pushed)
{
	struct weir_pushed again;

	do {
		if (bpf_map_lookup_elem(instance->thresholds_fd, &place, ret_pushed) ||
		    bpf_map_lookup_elem(instance->thresholds_fd, &place, &again))
			return -errno;
	} while (ret_pushed->word != again.word);
	return 0;
}

int weir_instance_read_clock(const struct weir_instance *instance, const struct weir_rule_info *rule,
			     struct weir_token_clock *ret_clock)
{
	struct weir_control control;
	struct weir_pushed pushed;
	uint32_t zero = 0;
	int err;

	*ret_clock = rule->tokens.clock;
	if (!rule->moves || instance->is_incompatible[WEIR_TABLE_THRESHOLDS] ||
	    instance->is_incompatible[WEIR_TABLE_CONTROL])
		return 0;
	err = read_pushed(instance, rule->place, &pushed);
	if (err)
		return err;
	if (bpf_map_lookup_elem(instance->map_fd[WEIR_TABLE_CONTROL], &zero, &control))
		return -errno;
	*ret_clock = pushed.clock[pushed.word >> WEIR_THRESHOLD_BITS & 1];
	weir_expire_token_clock(ret_clock, control.heartbeat_ns ? control.heartbeat_ns + control.validity_ns : 0,
				weir_host_now_ns(), &rule->tokens.clock.rate);
	return 0;
}

int weir_instance_find_rule(const struct weir_instance *instance, const char *name, uint32_t *ret_slot,
			    struct weir_diag *diag)
{
	_cleanup_(weir_freep) const char **names = calloc(instance->rule_count + 1, sizeof(*names));
	char hint[WEIR_NAME_BYTES + 32] = "'weir stats' lists its rules";
	const char *nearest;

	*ret_slot = WEIR_ANY_RULE;
	if (!name)
		return 0;
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const char *rule = instance->rules[instance->rule_order[i]].name;

		if (!strcmp(rule, name)) {
			*ret_slot = instance->rule_order[i];
			return 0;
		}
		if (names)
			names[i] = rule;
	}
	nearest = names ? weir_nearest(name, names, instance->rule_count, sizeof(*names)) : NULL;
	if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest);
	return weir_diag_error(diag, NULL, NULL, hint, "instance '%s' has no rule '%s'", instance->name, name);
}

/* Without runs where the table that has them is another version's. */
struct weir_top_drops_maps weir_top_drops_of(const struct weir_instance *instance)
{
	return (struct weir_top_drops_maps){
		.sets_fd = instance->map_fd[WEIR_TABLE_TOP_DROPS],
		.keys_fd = instance->map_fd[WEIR_TABLE_TOP_DROP_KEYS],
		.totals_fd = instance->is_incompatible[WEIR_TABLE_TOTALS] ? -1 : instance->map_fd[WEIR_TABLE_TOTALS],
	};
}

/* ---- overrides ---- */

int weir_overrides_open(const struct weir_instance *instance)
{
	const uint32_t program_id = weir_instance_program_id(instance);

	return program_id ? weir_program_map_open(program_id, "overrides") : -ENOENT;
}

int weir_overrides_find(int fd, const struct weir_rule_info *rule, const struct weir_flow_key *key, uint64_t *ret_units)
{
	struct weir_override_key wanted = {.place = rule->place, .family = key->family};
	struct weir_override_units found;

	wanted.prefix_bits = WEIR_OVERRIDE_FIXED_BITS + (key->family == 6 ? 128 : 32);
	if (rule->identity.key_fields &
	    (rule->overrides_destination ? WEIR_KEY_LABEL(WEIR_KEY_DESTINATION) : WEIR_KEY_LABEL(WEIR_KEY_SOURCE))) {
		wanted.family = 0;
		wanted.prefix_bits = WEIR_OVERRIDE_LABEL_BITS;
	}
	memcpy(wanted.address, rule->overrides_destination ? key->destination : key->source, sizeof(wanted.address));
	if (bpf_map_lookup_elem(fd, &wanted, &found)) {
		if (errno != ENOENT)
			return -errno;
		found.units = rule->threshold_word & WEIR_THRESHOLD_MASK;
	}
	*ret_units = found.units;
	return 0;
}

/* Number of entries that one system call copies. Chosen, not derived. */
#define BATCH_ENTRIES 1024u

int weir_overrides_scan(int fd, weir_override_visit *visit, void *data)
{
	struct weir_override_key keys[BATCH_ENTRIES], place, *from = NULL;
	struct weir_override_units units[BATCH_ENTRIES];
	int err;

	do {
		uint32_t count = BATCH_ENTRIES;

		err = bpf_map_lookup_batch(fd, from, &place, keys, units, &count, NULL);
		if (err && err != -ENOENT) /* ENOENT: this was the last batch */
			return err;
		for (uint32_t i = 0; i < count; i++) {
			int stop = visit(&keys[i], &units[i], data);

			if (stop)
				return stop;
		}
		from = &place;
	} while (!err);
	return 0;
}
