// SPDX-License-Identifier: GPL-2.0-only
/*
 * Instances by name, and reading one that is attached: which there are, and what its pinned maps say of it. A command
 * may be at work on it meanwhile, so what looks broken is looked at once more under the lock, when no command can be.
 */
#include "instance/parts.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "pins/info.h"
#include "program/array.h"
#include "tables/narrow_span.h"

/* ---- names ---- */

bool weir_instance_name_is_valid(const char *name)
{
	size_t bytes = strlen(name);

	for (const char *at = name; *at; at++)
		if (!isascii(*at) || (!isalnum(*at) && *at != '_' && *at != '-'))
			return false;
	return bytes > 0 && bytes < WEIR_INSTANCE_NAME_BYTES;
}

static int fail_out_of_sight(struct weir_diag *diag)
{
	weir_diag_error(diag, NULL, NULL, "run it as root",
			"cannot see what is attached: there is no BPF file system in this mount namespace");
	return -EACCES;
}

int weir_instance_list(struct weir_names *ret_names, struct weir_diag *diag)
{
	int err = weir_names_read(weir_bpffs_base(), ret_names);

	if (err == -ENOENT && weir_bpffs_is_out_of_sight())
		return fail_out_of_sight(diag);
	if (err == -ENOENT) {
		*ret_names = (struct weir_names){};
		return 0;
	}
	if (err)
		return weir_diag_fail(diag, -err, err == -EACCES ? "run it as root" : NULL, "cannot read '%s'",
				      weir_bpffs_base());
	return 0;
}

/* 0, -ENOENT when it has no directory of pins, or why that cannot be seen. */
static int look_for(const char *name)
{
	char path[PATH_MAX];
	struct stat status;

	weir_pin_path(name, NULL, path);
	return stat(path, &status) ? -errno : 0;
}

bool weir_instance_exists(const char *name)
{
	return look_for(name) != -ENOENT;
}

int weir_instance_look_for(const char *name, struct weir_diag *diag)
{
	int err = look_for(name);

	if (err == -ENOENT)
		return weir_bpffs_is_out_of_sight() ? fail_out_of_sight(diag) : 0;
	if (err)
		return weir_diag_fail(diag, -err, err == -EACCES ? "run it as root, or with CAP_DAC_OVERRIDE" : NULL,
				      "cannot see whether instance '%s' is attached: '%s/%s'", name, weir_bpffs_base(),
				      name);
	return 1;
}

const char *weir_instance_option(const char *name, char words[WEIR_INSTANCE_OPTION_BYTES])
{
	words[0] = 0;
	if (strcmp(name, WEIR_INSTANCE_DEFAULT))
		snprintf(words, WEIR_INSTANCE_OPTION_BYTES, " --instance %s", name);
	return words;
}

#define HINT_BYTES 256

/* "attached are 'dns' and 'web': say --instance NAME", as far as names fit; or how to attach one. */
static void hint_at_attached(char hint[HINT_BYTES])
{
	struct weir_diag ignored = {};
	struct weir_names names = {};
	size_t at = 0;

	snprintf(hint, HINT_BYTES, "nothing is attached; 'weir attach' starts one");
	if (!weir_instance_list(&names, &ignored) && names.count) {
		for (size_t i = 0; i < names.count && at < HINT_BYTES - WEIR_INSTANCE_NAME_BYTES - 64; i++)
			at += snprintf(hint + at, HINT_BYTES - at, "%s'%s'", i ? ", " : "attached: ", names.names[i]);
		snprintf(hint + at, HINT_BYTES - at, "; say which by '--instance NAME'");
	}
	weir_names_free(&names);
	weir_diag_free(&ignored);
}

int weir_instance_fail_not_attached(const char *instance, struct weir_diag *diag)
{
	char hint[HINT_BYTES];

	hint_at_attached(hint);
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' is not attached", instance);
	return -ENOENT;
}

int weir_instance_expect_attached(const char *name, struct weir_diag *diag)
{
	int is_there = weir_instance_look_for(name, diag);

	if (is_there < 0)
		return is_there;
	return is_there ? 0 : weir_instance_fail_not_attached(name, diag);
}

/* ---- reading what is attached ---- */

bool weir_instance_refresh(struct weir_instance *instance)
{
	struct weir_instance_info info;
	struct weir_link *links;
	bool is_foreign;
	size_t count;

	if (!instance->is_settled || !weir_instance_exists(instance->name) ||
	    weir_info_read(instance->map_fd[WEIR_TABLE_INSTANCE], &info, &is_foreign) || is_foreign ||
	    info.generation != instance->info.generation || weir_links_read(instance->name, &links, &count))
		return false;
	free(instance->links);
	instance->links = links;
	instance->link_count = count;
	weir_guard_look(instance); /* rules are confirmed without another generation */
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
	bool is_foreign;
	int err;

	err = weir_info_read(instance->map_fd[WEIR_TABLE_INSTANCE], &instance->info, &is_foreign);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read instance '%s'", instance->name);
	err = weir_info_expose_aliens(instance->name, &instance->info);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot look at the tables of instance '%s'", instance->name);
	weir_instance_find_foreign(instance, is_foreign);
	return 0;
}

/* Of a pin that is not there, though the instance is, some command has been killed before it was done. */
static int fail_to_open(const char *name, int err, const char *pin, struct weir_diag *diag)
{
	char hint[192], option[WEIR_INSTANCE_OPTION_BYTES];

	if (err != ENOENT)
		return weir_diag_fail(diag, err, NULL, "cannot open '%s' of instance '%s'", pin, name);
	snprintf(hint, sizeof(hint), "'weir detach%s' takes it away, 'weir attach' puts it back",
		 weir_instance_option(name, option));
	weir_diag_error(diag, NULL, NULL, hint,
			"instance '%s' is half there, left by a command that was killed: '%s' is missing", name, pin);
	return -err;
}

static int open_map(struct weir_instance *instance, enum weir_table_id map, struct weir_diag *diag)
{
	const char *pin = weir_table_name(map);

	instance->map_fd[map] = weir_pin_open(instance->name, pin);
	return instance->map_fd[map] < 0 ? fail_to_open(instance->name, -instance->map_fd[map], pin, diag) : 0;
}

/* Its description first, which says what the others are. */
static int open_maps(struct weir_instance *instance, struct weir_diag *diag)
{
	int err = open_map(instance, WEIR_TABLE_INSTANCE, diag);

	if (!err)
		err = read_info(instance, diag);
	for (int map = 0; !err && map < WEIR_STATE_TABLE_COUNT; map++)
		if (map != WEIR_TABLE_INSTANCE && !instance->is_foreign[map])
			err = open_map(instance, map, diag);
	if (err || instance->is_foreign[WEIR_TABLE_THRESHOLDS])
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
		instance->timings =
			read_all(instance->map_fd[WEIR_TABLE_TIMINGS], info->timing_count, sizeof(*instance->timings));
	if (!instance->timings)
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
		if (instance->rules[slot].state == WEIR_SLOT_USED && !instance->rules[slot].is_meter)
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

	/* Reading takes no capability, but the right to open the pins. */
	err = weir_instance_expect_attached(name, diag);
	if (!err)
		err = open_maps(instance, diag);
	if (!err && !instance->is_all_foreign)
		err = read_descriptions(instance, diag);
	if (!err && !instance->is_all_foreign)
		err = put_in_order(instance, diag);
	if (!err)
		err = weir_instance_read_links(instance, diag);
	if (err)
		return err;
	weir_guard_look(instance);
	instance->is_settled = instance->is_all_foreign || is_settled(instance);
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
	free(instance->timings);
	free(instance->rule_order);
	free(instance->resource_order);
	free(instance->links);
	free(instance);
}

uint64_t weir_instance_left_ns(const struct weir_instance *instance)
{
	return weir_narrow_left_ns(instance->rules, instance->info.rule_slots, instance->timings,
				   instance->info.timing_count, weir_host_now_ns());
}

/* ---- virtual time ---- */

/* As it was pushed last: read until it is the same twice, because a controller may be pushing. */
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
	if (!rule->moves || instance->is_foreign[WEIR_TABLE_THRESHOLDS] || instance->is_foreign[WEIR_TABLE_CONTROL])
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

/* ---- reading while a command may be at work on it ---- */

/* It is half done, or broken: once no other command is at work it is one or the other. */
static int open_when_quiet(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_bpffs_lock(&lock_fd, diag);

	if (err)
		return err;
	if (weir_instance_exists(name))
		err = weir_instance_open_as_is(name, ret_instance, diag);
	else
		*ret_instance = NULL;
	weir_bpffs_tidy();
	return err;
}

static int open_soon(const char *name, bool waits_for_reload, struct weir_instance **ret_instance,
		     struct weir_diag *diag)
{
	struct weir_diag in_between = {}; /* what was wrong may be over in a moment */
	int err = weir_instance_open_as_is(name, ret_instance, &in_between);

	weir_diag_free(&in_between);
	assert(err || *ret_instance);
	if (!err && ((*ret_instance)->is_settled || !waits_for_reload))
		return 0;
	if (!err)
		weir_instance_free(TAKE_PTR(*ret_instance));
	return open_when_quiet(name, ret_instance, diag);
}

static int open_listed(const char *name, bool waits_for_reload, struct weir_instance **ret_instance,
		       struct weir_diag *diag)
{
	int err = open_soon(name, waits_for_reload, ret_instance, diag);

	if (err || !*ret_instance || !weir_unconfirmed_is_over(&(*ret_instance)->unconfirmed))
		return err;
	/* The program has returned to the rules before, and nobody has described them yet. */
	if (weir_instance_return(name, diag))
		return 0; /* told: what is opened is what was described last */
	weir_instance_free(TAKE_PTR(*ret_instance));
	return open_soon(name, waits_for_reload, ret_instance, diag);
}

int weir_instance_fail_unsettled(const char *name, struct weir_diag *diag)
{
	char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];

	snprintf(hint, sizeof(hint), "'weir reload%s' puts it right", weir_instance_option(name, option));
	weir_diag_error(diag, NULL, NULL, hint, "a reload of instance '%s' was cut short", name);
	return -EAGAIN;
}

int weir_instance_open_listed(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	int err = open_listed(name, true, &instance, diag);

	if (!err && instance && !instance->is_settled)
		err = weir_instance_fail_unsettled(name, diag);
	if (!err && instance && instance->is_all_foreign)
		err = weir_instance_fail_foreign(instance, diag);
	if (!err)
		*ret_instance = TAKE_PTR(instance);
	return err;
}

static int fail_if_gone(const char *name, struct weir_instance *instance, struct weir_instance **ret_instance,
			struct weir_diag *diag)
{
	if (!instance)
		return weir_instance_fail_not_attached(name, diag);
	*ret_instance = instance;
	return 0;
}

int weir_instance_open(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	struct weir_instance *instance = NULL;
	int err = weir_instance_expect_attached(name, diag);

	if (!err)
		err = weir_instance_open_listed(name, &instance, diag);
	return err ? err : fail_if_gone(name, instance, ret_instance, diag);
}

int weir_instance_open_any(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	struct weir_instance *instance = NULL;
	int err = weir_instance_expect_attached(name, diag);

	if (!err)
		err = open_listed(name, false, &instance, diag);
	return err ? err : fail_if_gone(name, instance, ret_instance, diag);
}

int weir_instance_open_now(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	int err = weir_instance_open_any(name, &instance, diag);

	if (!err && instance->is_all_foreign)
		err = weir_instance_fail_foreign(instance, diag);
	if (!err)
		*ret_instance = TAKE_PTR(instance);
	return err;
}

int weir_instance_find_rule(const struct weir_instance *instance, const char *name, uint32_t *ret_slot,
			    struct weir_diag *diag)
{
	*ret_slot = WEIR_ANY_RULE;
	if (!name)
		return 0;
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (!strcmp(instance->rules[instance->rule_order[i]].name, name)) {
			*ret_slot = instance->rule_order[i];
			return 0;
		}
	weir_diag_error(diag, NULL, NULL, "'weir status' names its rules", "instance '%s' has no rule '%s'",
			instance->name, name);
	return -EINVAL;
}
