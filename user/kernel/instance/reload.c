// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replacing the rules of an instance while packets go through it. A second program is loaded over the maps that stay,
 * and put in the place of the first on every link; up to there everything can be undone. A reload may be killed
 * anywhere: on each interface it leaves the old rules or the new ones, and the next reload puts it right.
 */
#include "instance/parts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/netns.h"
#include "pace/pace.h"
#include "pins/info.h"
#include "program/array.h"
#include "program/timed_tables.h"
#include "tables/narrow_span.h"
#include "tables/rule_kind.h"

/* ---- what stays, and what is made anew ---- */

/* A table of another size than the image wants held nothing of use (compile/compile.h); but timed entries, which are
 * carried over.
 */
static bool has_other_size(const struct weir_instance *instance, const struct weir_image *image,
			   enum weir_table_id table)
{
	return image->config.sizes[table] != instance->info.tables[table].size;
}

/* Connections left in the tables have been counted by other steps, or in flows of another table: nobody needs them. */
static bool forgets_connections(const struct weir_instance *instance, const struct weir_image *image)
{
	const struct weir_instance_info *info = &instance->info;

	return has_other_size(instance, image, WEIR_TABLE_CONNECTIONS) ||
	       (info->tables[WEIR_TABLE_CONNECTION_FLOWS].size &&
		has_other_size(instance, image, WEIR_TABLE_CONNECTION_FLOWS)) ||
	       memcmp(image->connection_timeout_ms, info->connection_timeout_ms, sizeof(info->connection_timeout_ms));
}

/* Made anew, and replaced together with the program. */
static bool is_replaced(const struct weir_instance *instance, const struct weir_image *image, enum weir_table_id table)
{
	if (instance->is_foreign[table] || has_other_size(instance, image, table))
		return true;
	switch (table) {
	case WEIR_TABLE_PRESENCE:
		return image->config.presence_shift != instance->info.presence_shift;
	case WEIR_TABLE_CONNECTIONS:
	case WEIR_TABLE_CONNECTION_FLOWS:
	case WEIR_TABLE_LONE_CONNECTIONS:
	case WEIR_TABLE_CONNECTION_TOTALS:
		return forgets_connections(instance, image);
	case WEIR_TABLE_LONE_BREAKERS:
	case WEIR_TABLE_LONE_GROUPS:
	case WEIR_TABLE_BREAKERS:
	case WEIR_TABLE_REQUEST_GROUPS: /* which requests name */
		return has_other_size(instance, image, WEIR_TABLE_REQUESTS);
	default:
		return false;
	}
}

/* What a reload needs beside what there is: the old generation stays until the new one is in its place. */
static uint64_t new_bytes(const struct weir_instance *instance, const struct weir_image *image)
{
	struct weir_image_memory memory;
	uint64_t bytes;

	weir_image_memory(image, image->config.cpus, &memory);
	if (instance->is_all_foreign)
		return memory.total;
	bytes = memory.matching + weir_lists_memory(&image->lists);
	for (int table = 0; table < WEIR_STATE_TABLE_COUNT; table++)
		if (is_replaced(instance, image, table))
			bytes += weir_table_memory(image, table, image->config.cpus, &memory);
	return bytes;
}

/* The rules with their virtual times as they are now, where buckets go on from. The caller's to free. */
static struct weir_rule_info *rules_now(const struct weir_instance *instance)
{
	const uint32_t slots = instance->info.rule_slots;
	struct weir_rule_info *rules = calloc(slots + 1, sizeof(*rules));

	if (!rules || instance->is_all_foreign)
		return rules;
	for (uint32_t slot = 0; slot < slots; slot++) {
		rules[slot] = instance->rules[slot];
		/* A virtual time that cannot be read has not moved since the load. */
		if (rules[slot].state == WEIR_SLOT_USED && weir_has_tokens(&rules[slot]))
			weir_instance_read_clock(instance, &instance->rules[slot], &rules[slot].tokens.clock);
	}
	return rules;
}

/* Borrows all that it points to. */
static struct weir_previous what_runs(const struct weir_instance *instance, struct weir_rule_info *rules)
{
	struct weir_previous previous = {
		.rules = rules,
		.resources = instance->resources,
		.timings = instance->timings,
		.rule_slots = instance->info.rule_slots,
		.resource_slots = instance->info.resource_slots,
		.timing_count = instance->info.timing_count,
		.presence_shift = instance->info.presence_shift,
	};

	memcpy(previous.connection_timeout_ms, instance->info.connection_timeout_ms,
	       sizeof(previous.connection_timeout_ms));
	/* Rules keep their slots; what another version has there is not to decide what size it gets. */
	for (int table = 0; table < WEIR_TABLE_COUNT; table++)
		previous.sizes[table] = instance->is_foreign[table] ? 0 : instance->info.tables[table].size;
	return previous;
}

/* The rules whose warm-up goes on; NULL: none. */
static const struct weir_rule_info *rules_that_warm(const struct weir_instance *instance)
{
	return instance->is_foreign[WEIR_TABLE_WARM_STATES] ? NULL : instance->rules;
}

static int load_over(const struct weir_instance *instance, const struct weir_image *image, bool is_trial,
		     struct weir_object **ret_object, struct weir_diag *diag)
{
	struct weir_object_options options = {
		.seed = instance->is_all_foreign ? NULL : instance->info.seed,
		.tick_origin_ns = instance->is_all_foreign ? 0 : instance->info.tick_origin_ns,
		.now_ns = weir_host_now_ns(),
		.previous_rules = rules_that_warm(instance),
		.is_trial = is_trial,
	};

	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		options.reuse_fd[map] = is_replaced(instance, image, map) ? -1 : instance->map_fd[map];
	return weir_object_load(image, &options, ret_object, diag);
}

/* ---- refusals ---- */

static bool names_interfaces(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (ruleset->resources[i].match.interface_count)
			return true;
	return false;
}

/* Interface names are looked up here, and would mean others in another network namespace. */
static int check_netns(const struct weir_instance *instance, const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	char name[NAME_MAX + 1] = "NAME", hint[NAME_MAX + 64];

	if (!names_interfaces(ruleset) || instance->info.netns == weir_host_netns())
		return 0;
	weir_netns_name(instance->info.netns, name);
	snprintf(hint, sizeof(hint), "reload it from there: '--netns %s'", name);
	weir_diag_error(diag, NULL, NULL, hint,
			"instance '%s' is attached in another network namespace, and the rules name interfaces",
			instance->name);
	return -EINVAL;
}

/* Rules whose buckets cannot be told apart must not be put in force, or not for long. */
static int check_span(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	static const char *const hint = "detach it and attach again";
	uint64_t left_ns = weir_narrow_left_ns(image->rule_info, image->rule_slots, image->timings, image->timing_count,
					       weir_host_now_ns());
	char buffer[WEIR_NARROW_WORDS_BYTES];
	const char *words = weir_narrow_words(left_ns, buffer);

	if (!words)
		return 0;
	if (left_ns) {
		weir_diag_warning(diag, NULL, NULL, hint, "instance '%s' was %s", instance->name, words);
		return 0;
	}
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' was %s", instance->name, words);
	return -EOVERFLOW;
}

/* One without any is what is left of an attach, or a detach, that was killed. Nor would rules limit anything where all
 * interfaces are gone.
 */
static int check_links(const struct weir_instance *instance, struct weir_diag *diag)
{
	char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];

	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].ifindex)
			return 0;
	if (weir_instance_is_controlled(instance->name)) /* which waits for them */
		return 0;
	snprintf(hint, sizeof(hint), "'weir detach%s' clears it away", weir_instance_option(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' is attached to no interface: %s", instance->name,
			instance->link_count ? "those that it was on are gone" : "an attach or a detach was cut short");
	return -ENOENT;
}

/* What is blocked or allowed for a while goes into a table of another size: all of it, or the reload is refused. */
static int check_timed(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	const uint32_t room = image->config.sizes[WEIR_TABLE_TIMED_ADDRESSES];
	const uint64_t now_ns = weir_host_now_ns();
	size_t addresses = 0, prefixes = 0;
	int err = 0;

	if (instance->is_foreign[WEIR_TABLE_TIMED_ADDRESSES] ||
	    room >= instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size)
		return 0;
	err = weir_timed_addresses_count(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES], now_ns, &addresses);
	if (!err && !room)
		err = weir_timed_prefixes_count(instance->map_fd[WEIR_TABLE_TIMED_PREFIXES], now_ns, &prefixes);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read what instance '%s' blocks or allows for a while",
				      instance->name);
	if (addresses + prefixes <= room)
		return 0;
	weir_diag_error(diag, NULL, NULL, "raise it, or end some of them: 'weir block --list', 'weir allow --list'",
			"settings.timedEntries is %u, and %zu addresses%s are blocked or allowed for a while", room,
			addresses + prefixes, room ? "" : " and prefixes");
	return -ENOSPC;
}

/* Into the table that replaces it. 0 or -errno. */
static int carry_timed(const struct weir_instance *instance, const struct weir_image *image,
		       const struct weir_object *object)
{
	const uint32_t before = instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size;
	const uint32_t room = image->config.sizes[WEIR_TABLE_TIMED_ADDRESSES];

	if (instance->is_foreign[WEIR_TABLE_TIMED_ADDRESSES] || !before || !room || before == room)
		return 0;
	return weir_timed_addresses_carry(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES],
					  weir_object_map_fd(object, WEIR_TABLE_TIMED_ADDRESSES), weir_host_now_ns());
}

/* Before the new program is in its place, so that it misses nothing. */
static int carry_timed_first(const struct weir_instance *instance, const struct weir_image *image,
			     const struct weir_object *object, struct weir_diag *diag)
{
	int err = carry_timed(instance, image, object);

	return err ? weir_diag_fail(diag, -err, NULL, "cannot carry over what instance '%s' blocks for a while",
				    instance->name)
		   : 0;
}

/* ---- descriptions ---- */

/* One description is written before the swap, the other after it. Another version's are not ours to write: the new
 * program has maps of its own, which hold the new one already.
 */
static int write_descriptions(const struct weir_instance *instance, const struct weir_rule_info *rules,
			      const struct weir_resource_info *resources, struct weir_diag *diag)
{
	int err;

	if (instance->is_all_foreign)
		return 0;
	err = weir_array_write(instance->map_fd[WEIR_TABLE_RULE_INFO], rules, instance->info.rule_slots,
			       sizeof(*rules));
	if (!err)
		err = weir_array_write(instance->map_fd[WEIR_TABLE_RESOURCE_INFO], resources,
				       instance->info.resource_slots, sizeof(*resources));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot write the descriptions of instance '%s'",
				      instance->name);
	return 0;
}

/*
 * Describe what was and what will be, so that slots of either are taken whatever happens now: a reload
 * that is killed half-way must not leave slots in use that the next one thinks are free.
 */
static int describe_both(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_rule_info *rules = calloc(image->rule_slots + 1, sizeof(*rules));
	_cleanup_(weir_freep) struct weir_resource_info *resources =
		calloc(image->resource_slots + 1, sizeof(*resources));

	if (instance->is_all_foreign)
		return 0;
	if (!rules || !resources)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	for (uint32_t slot = 0; slot < image->rule_slots; slot++)
		rules[slot] = image->fresh_rule_slots[slot] ? image->rule_info[slot] : instance->rules[slot];
	for (uint32_t slot = 0; slot < image->resource_slots; slot++)
		resources[slot] =
			image->fresh_resource_slots[slot] ? image->resource_info[slot] : instance->resources[slot];
	return write_descriptions(instance, rules, resources, diag);
}

/* ---- pins ---- */

static int pin_new_maps(const struct weir_instance *instance, const struct weir_image *image,
			const struct weir_object *object, const struct weir_turning *turning, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int history_fd = weir_instance_write_history(instance->name, &turning->history, diag);
	int err = history_fd < 0 ? history_fd : weir_pin_new(instance->name, WEIR_PIN_HISTORY, history_fd, diag);

	if (!err)
		err = weir_pin_new(instance->name, WEIR_PIN_THRESHOLDS, weir_object_thresholds_fd(object), diag);
	if (!err)
		err = weir_cases_pin_new(instance->name, image, object, diag);
	if (!err)
		err = weir_pin_new(instance->name, WEIR_PIN_PROGRAM, weir_object_program_fd(object), diag);
	for (int map = 0; !err && map < WEIR_STATE_TABLE_COUNT; map++)
		if (is_replaced(instance, image, map))
			err = weir_pin_new(instance->name, weir_table_name(map), weir_object_map_fd(object, map), diag);
	return err;
}

static bool replaces_any(const struct weir_instance *instance, const struct weir_image *image)
{
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		if (is_replaced(instance, image, map))
			return true;
	return false;
}

/*
 * Pins are taken one by one, and a reload may be killed between two of them: the description would then speak of other
 * maps than those that are pinned. So tables that are being replaced have no version meanwhile, and the next reload
 * makes them anew.
 */
static int mark_replaced(const struct weir_instance *instance, const struct weir_image *image,
			 const struct weir_object *object, struct weir_diag *diag)
{
	struct weir_instance_info info = instance->info;
	int err;

	if (instance->is_all_foreign) {
		info.abi_version = WEIR_ABI_VERSION;
		weir_info_describe_tables(&info, image->config.sizes);
	}
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		if (is_replaced(instance, image, map))
			info.tables[map].version = 0;
	err = weir_array_write(weir_object_map_fd(object, WEIR_TABLE_INSTANCE), &info, 1, sizeof(info));
	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'", instance->name)
		   : 0;
}

/* The description, first of all maps, comes before what it speaks of. */
static int take_new_pins(const struct weir_instance *instance, const struct weir_image *image,
			 const struct weir_object *object, struct weir_diag *diag)
{
	int err = replaces_any(instance, image) ? mark_replaced(instance, image, object, diag) : 0;

	_Static_assert(WEIR_TABLE_INSTANCE == 0, "the description's pin is taken first");
	for (int map = 0; !err && map < WEIR_STATE_TABLE_COUNT; map++)
		if (is_replaced(instance, image, map))
			err = weir_pin_take_new(instance->name, weir_table_name(map), diag);
	if (!err)
		err = weir_pin_take_new(instance->name, WEIR_PIN_HISTORY, diag);
	if (!err)
		err = weir_pin_take_new(instance->name, WEIR_PIN_THRESHOLDS, diag);
	if (!err)
		err = weir_cases_take_new(instance->name, image, diag);
	return err ? err : weir_pin_take_new(instance->name, WEIR_PIN_PROGRAM, diag);
}

static bool is_table_of_ours(const char *name)
{
	for (int table = 0; table < WEIR_TABLE_COUNT; table++)
		if (!strcmp(name, weir_table_name(table)))
			return true;
	return false;
}

/* Tables of another version that this one does not have would take memory until the detach. */
static void drop_old_tables(const struct weir_instance *instance)
{
	for (int i = 0; i < WEIR_TABLES_MAX; i++) {
		char name[WEIR_TABLE_NAME_BYTES + 1] = "";

		memcpy(name, instance->info.tables[i].name, WEIR_TABLE_NAME_BYTES);
		if (name[0] && !strchr(name, '/') && !is_table_of_ours(name))
			weir_unpin(instance->name, name);
	}
}

static void drop_new_pins(const struct weir_instance *instance)
{
	weir_unpin_new(instance->name, WEIR_PIN_HISTORY);
	weir_unpin_new(instance->name, WEIR_PIN_THRESHOLDS);
	weir_unpin_new(instance->name, WEIR_PIN_PROGRAM);
	weir_cases_drop_new(instance->name);
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		weir_unpin_new(instance->name, weir_table_name(map));
}

/* ---- putting it together ---- */

static int attach_pace(const struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_freep) uint32_t *ifindexes = calloc(instance->link_count + 1, sizeof(*ifindexes));
	size_t count = 0;

	if (!ifindexes)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].ifindex)
			ifindexes[count++] = instance->links[i].ifindex;
	return weir_pace_attach(instance->name, ifindexes, count, diag);
}

/* Rules that pace where the old ones did not, or another version's tc program does: whether they can. */
static int check_pace(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	if (!image->config.paces || (weir_pace_is_attached(instance->name) && !instance->is_foreign[WEIR_TABLE_PACE]))
		return 0;
	for (size_t i = 0; i < instance->link_count; i++)
		if (!instance->links[i].is_native)
			return weir_pace_refuse_skb(instance->links[i].interface, diag);
	return weir_pace_check(diag);
}

/*
 * *ret_is_new: it has to be taken off again if the reload fails. Where another version's tc program paces, it goes on
 * until the rules are swapped.
 */
static int start_pace(const struct weir_instance *instance, const struct weir_image *image, bool *ret_is_new,
		      struct weir_diag *diag)
{
	int err = check_pace(instance, image, diag);

	if (err || !image->config.paces || weir_pace_is_attached(instance->name) ||
	    instance->is_foreign[WEIR_TABLE_PACE])
		return err;
	err = attach_pace(instance, diag);
	*ret_is_new = !err;
	return err;
}

/* Its counters, and what packets carry to it, are another version's: a tc program of ours takes its place. In between
 * packets do not wait. The rules are in force.
 */
static int replace_pace(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	if (!image->config.paces || !instance->is_foreign[WEIR_TABLE_PACE])
		return 0;
	weir_pace_detach(instance->name); /* there may be none */
	if (!attach_pace(instance, diag))
		return 0;
	weir_diag_error(diag, NULL, NULL, NULL, "the new rules of instance '%s' are in force, but no packet waits",
			instance->name);
	return WEIR_RELOAD_NOT_DESCRIBED;
}

/* The new rules are in force; let everyone who looks see them. */
static int make_known(struct weir_instance *instance, const struct weir_settings *settings,
		      const struct weir_image *image, const struct weir_object *object, struct weir_diag *diag)
{
	int err;

	/* Again: a second may have begun meanwhile. The controller, if any, comes after the generation's number. */
	err = weir_instance_publish(settings, image, object, diag);
	if (!err)
		err = take_new_pins(instance, image, object, diag);
	if (!err)
		err = write_descriptions(instance, image->rule_info, image->resource_info, diag);
	if (err)
		return err;
	drop_old_tables(instance);
	/* What was given to the old table meanwhile; as far as there is room, ignoring. */
	carry_timed(instance, image, object);
	weir_instance_update_info(&instance->info, settings, image, object);
	err = weir_array_write(weir_object_map_fd(object, WEIR_TABLE_INSTANCE), &instance->info, 1,
			       sizeof(instance->info));
	if (!err && instance->is_foreign[WEIR_TABLE_INSTANCE])
		err = weir_info_retire(instance->map_fd[WEIR_TABLE_INSTANCE], instance->info.generation);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'", instance->name)
		   : 0;
}

/* Rules that are to be confirmed are not on the links themselves: their guard is. */
static int swap_programs(const struct weir_instance *instance, const struct weir_object *object,
			 struct weir_turning *turning, struct weir_old_program *old, struct weir_diag *diag)
{
	_cleanup_(weir_guard_object_freep) struct weir_guard_object *guard = NULL;
	_cleanup_(weir_freep) struct weir_rule_info *rules = NULL;
	int err;

	if (!turning->confirm_ns)
		return weir_instance_swap_links(instance, weir_object_program_fd(object), old, diag);
	if (old[0].id && old[1].id) {
		char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];

		snprintf(hint, sizeof(hint), "'weir reload%s FILE...' puts that right",
			 weir_instance_option(instance->name, option));
		weir_diag_error(diag, NULL, NULL, hint,
				"a reload of instance '%s' was cut short: there is no one rule set to return to",
				instance->name);
		return -EAGAIN;
	}
	rules = rules_now(instance);
	if (!rules)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	turning->returns_ns = weir_host_boot_ns() + turning->confirm_ns;
	err = weir_guard_set_up(instance, rules, weir_object_program_fd(object), old[0].fd, turning->returns_ns, &guard,
				diag);
	if (!err)
		err = weir_instance_swap_links(instance, weir_guard_program_fd(guard), old, diag);
	if (err)
		weir_guard_remove(instance->name);
	return err;
}

/* Up to the swap everything can be undone; after it the new rules are in force. */
static int swap_in(struct weir_instance *instance, struct weir_turning *turning, const struct weir_image *image,
		   const struct weir_object *object, struct weir_diag *diag)
{
	_cleanup_(weir_old_programs_free) struct weir_old_program *old = NULL;
	const struct weir_settings *settings = &turning->ruleset->settings;
	char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];
	struct weir_diag ignored = {};
	int err;

	err = weir_instance_open_programs(instance, &old, diag);
	if (err)
		return err;
	err = describe_both(instance, image, diag);
	if (!err)
		err = pin_new_maps(instance, image, object, turning, diag);
	if (!err)
		err = weir_instance_publish(settings, image, object, diag);
	if (!err)
		err = carry_timed_first(instance, image, object, diag);
	if (!err)
		err = swap_programs(instance, object, turning, old, diag);
	if (err) {
		drop_new_pins(instance);
		write_descriptions(instance, instance->rules, instance->resources, &ignored);
		weir_diag_free(&ignored);
		return err;
	}
	if (!make_known(instance, settings, image, object, diag)) {
		if (!turning->returns_ns)
			weir_guard_remove(instance->name); /* of what was on the links before, if there is one */
		return 0;
	}
	snprintf(hint, sizeof(hint), "once more: 'weir reload%s FILE...'",
		 weir_instance_option(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint,
			"the new rules of instance '%s' are in force, but other commands cannot see that yet",
			instance->name);
	return WEIR_RELOAD_NOT_DESCRIBED;
}

/* Of the rules that kept their slots, those whose windows went with a table of another version. */
static uint32_t count_emptied(const struct weir_instance *instance, const struct weir_image *image)
{
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < image->rule_slots; slot++) {
		const struct weir_rule_info *rule = &image->rule_info[slot];

		count += rule->state == WEIR_SLOT_USED && !rule->is_meter && !image->fresh_rule_slots[slot] &&
			 weir_instance_empties(instance, rule);
	}
	return count;
}

/* The new rules are in force: what cannot be told for want of memory is left out, ignoring. */
static void describe_result(const struct weir_instance *instance, const struct weir_instance_info *before,
			    const struct weir_image *image, struct weir_reload_result *ret_result)
{
	struct weir_reload_result result = {
		.generation = instance->info.generation,
		.rules = image->rule_count,
		.kept_rules = image->kept_rules - count_emptied(instance, image),
		.allow_now = image->allow_count,
		.deny_now = image->deny_count,
		.observes_now = image->config.observes,
	};

	if (!instance->is_all_foreign) {
		result.allow_before = before->allow_count;
		result.deny_before = before->deny_count;
		result.observed_before = before->observes;
	}
	weir_rule_changes_find(instance->rules, before->rule_slots, image->rule_info, image->rule_slots,
			       &result.changes);
	*ret_result = result;
}

static int warn_of_renumbering(const struct weir_previous *previous, const struct weir_image *image,
			       struct weir_diag *diag)
{
	_cleanup_(weir_rule_changes_free) struct weir_rule_changes changes = {};
	const char *resource;

	if (weir_rule_changes_find(previous->rules, previous->rule_slots, image->rule_info, image->rule_slots,
				   &changes))
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot compare the rules");
	resource = weir_rule_changes_renumber(&changes, image->rule_info, image->rule_slots);
	if (resource)
		weir_diag_warning(
			diag, NULL, NULL, "give each a 'name': then it keeps its own wherever it stands",
			"rules of '%s' that have no name are told by their number, and that has moved: some go "
			"on with the windows of another",
			resource);
	return 0;
}

/* Checks, and the image. Changes nothing. */
static int prepare(struct weir_instance *instance, const struct weir_turning *turning, struct weir_image **ret_image,
		   struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_rule_info *rules = NULL;
	struct weir_previous previous;
	int err = check_links(instance, diag);

	if (!err)
		err = check_netns(instance, turning->ruleset, diag);
	if (!err)
		err = weir_instance_check_marks(turning->ruleset, diag);
	if (err)
		return err;
	rules = rules_now(instance);
	if (!rules)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	previous = what_runs(instance, rules);
	/* Not where it is only tried: until they are decided, what runs are the rules that are not confirmed. */
	if (turning->turn == WEIR_TURN_RETURNED || weir_unconfirmed_is_over(&instance->unconfirmed))
		weir_guard_take_back(instance, &previous);
	err = weir_instance_build_image(turning->ruleset, instance->is_all_foreign ? NULL : &previous, turning->emptied,
					ret_image, diag);
	if (!err && !instance->is_all_foreign)
		err = warn_of_renumbering(&previous, *ret_image, diag);
	if (!err)
		err = check_span(instance, *ret_image, diag);
	if (!err)
		err = check_timed(instance, *ret_image, diag);
	if (!err)
		err = weir_instance_check_memory(new_bytes(instance, *ret_image), diag);
	return err;
}

/* Packets that wait, when all is decided: while rules are not confirmed, those before may need it yet. */
static void finish_pace(const struct weir_instance *instance, const struct weir_turning *turning, bool paces)
{
	if (!paces && !turning->returns_ns && weir_pace_is_attached(instance->name))
		weir_pace_detach(instance->name);
}

/* Under the lock. */
static int turn(struct weir_instance *instance, struct weir_turning *turning, struct weir_reload_result *ret_result,
		struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	const struct weir_instance_info before = instance->info;
	bool paces_anew = false;
	int err = prepare(instance, turning, &image, diag);

	if (!err)
		err = weir_not_the_rules(load_over(instance, image, false, &object, diag));
	if (!err)
		err = weir_not_the_rules(start_pace(instance, image, &paces_anew, diag));
	if (!err)
		err = weir_not_the_rules(swap_in(instance, turning, image, object, diag));
	if (!err)
		err = replace_pace(instance, image, diag);
	/* The new rules, which pace, may be in force all the same. */
	if (err && paces_anew && err != WEIR_RELOAD_NOT_DESCRIBED)
		weir_pace_detach(instance->name);
	if (err)
		return err;
	finish_pace(instance, turning, image->config.paces);
	describe_result(instance, &before, image, ret_result);
	if (turning->returns_ns)
		ret_result->returns_s = weir_unconfirmed_left_s(
			&(struct weir_unconfirmed){.is_so = true, .returns_ns = turning->returns_ns});
	return 0;
}

static void note_turn(const char *name, enum weir_turn turn, const struct weir_reload_result *result)
{
	static const enum weir_journal_kind kinds[WEIR_TURN_COUNT] = {
		[WEIR_TURN_LOADED] = WEIR_JOURNAL_RELOAD,
		[WEIR_TURN_ROLLBACK] = WEIR_JOURNAL_ROLLBACK,
		[WEIR_TURN_RETURNED] = WEIR_JOURNAL_RETURN,
	};
	char until[64] = "";

	if (result->returns_s)
		snprintf(until, sizeof(until), ", to be confirmed within %llu s",
			 (unsigned long long)result->returns_s);
	weir_instance_note(name, kinds[turn], "%u rule%s in force, %u with their windows%s", result->rules,
			   result->rules == 1 ? "" : "s", result->kept_rules, until);
}

/* Rules that were kept may be put in force again from anywhere: interfaces are named where the instance is. */
static int go_there(const struct weir_instance *instance, enum weir_turn turn, int *back_fd)
{
	return turn == WEIR_TURN_LOADED ? 0 : weir_netns_enter(instance->info.netns, back_fd);
}

int weir_instance_turn(const char *name, enum weir_turn turn_to, const struct weir_ruleset *ruleset,
		       const struct weir_reload_options *options, struct weir_reload_result *ret_result,
		       struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_turning_free) struct weir_turning turning = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	_cleanup_(weir_netns_leave) int back_fd = -1;
	int err = weir_bpffs_lock(&lock_fd, diag);

	if (!err)
		err = weir_instance_open_as_is(name, &instance, diag);
	if (!err)
		err = weir_instance_accept_foreign(instance, options->starts_afresh, diag);
	if (!err)
		err = weir_turning_plan(instance, turn_to, ruleset, options, &turning, diag);
	if (err)
		return err;
	go_there(instance, turning.turn, &back_fd); /* where it cannot be found, rules that need it are refused */
	err = turn(instance, &turning, ret_result, diag);
	if (!err)
		note_turn(name, turning.turn, ret_result);
	return err;
}

int weir_instance_reload(const char *name, const struct weir_ruleset *ruleset,
			 const struct weir_reload_options *options, struct weir_reload_result *ret_result,
			 struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	/* Before the lock, so that nothing is made or mounted when nothing is attached. */
	int err = weir_instance_open_any(name, &instance, diag);

	return err ? err : weir_instance_turn(name, WEIR_TURN_LOADED, ruleset, options, ret_result, diag);
}

/* ---- without doing it ---- */

static void read_before(const struct weir_instance *instance, struct weir_ruleset **ret_before)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	struct weir_diag ignored = {};

	weir_instance_history(instance, &history);
	if (history.sets[0])
		weir_kept_set_read(history.sets[0], ret_before, &ignored);
	weir_diag_free(&ignored);
}

/* What the maps of these rules take; 0: unknown. */
static uint64_t bytes_of(const struct weir_ruleset *ruleset, const struct weir_previous *previous)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_image_memory memory;
	struct weir_diag ignored = {};
	int err = ruleset ? weir_instance_build_image(ruleset, previous, WEIR_EMPTIED_TOLD, &image, &ignored) : -ENOENT;

	weir_diag_free(&ignored);
	if (err)
		return 0;
	weir_image_memory(image, image->config.cpus, &memory);
	return memory.total;
}

static void find_emptied(const struct weir_instance *instance, const struct weir_image *image,
			 struct weir_forecast *forecast)
{
	for (uint32_t i = 0; i < image->rule_count; i++) {
		struct weir_change *change = &forecast->rules.all[i];

		if (!change->keeps_state || !weir_instance_empties(instance, &image->rule_info[image->rules[i].slot]))
			continue;
		change->keeps_state = false;
		change->why_anew = "another version of weir laid out its table";
		forecast->kept_rules--;
	}
}

/* The kernel takes the program, and its maps. They are gone again at once. */
static int try_load(const struct weir_instance *instance, const struct weir_image *image, uint64_t *ret_load_ns,
		    struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	const uint64_t start_ns = weir_host_now_ns();
	int err = weir_not_the_rules(load_over(instance, image, true, &object, diag));

	if (!err)
		err = weir_not_the_rules(check_pace(instance, image, diag));
	*ret_load_ns = weir_host_now_ns() - start_ns;
	return err;
}

/* Under the lock. */
static int foresee(struct weir_instance *instance, const struct weir_turning *turning, bool loads,
		   struct weir_reload_forecast *ret_forecast, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *before = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	_cleanup_(weir_freep) struct weir_rule_info *rules = rules_now(instance);
	const struct weir_previous previous = what_runs(instance, rules);
	struct weir_reload_forecast result = {};
	const uint64_t start_ns = weir_host_now_ns();
	struct weir_image_memory memory;
	int err =
		rules ? prepare(instance, turning, &image, diag)
		      : weir_diag_fail(diag, ENOMEM, NULL, "cannot compare the rules of instance '%s'", instance->name);

	result.compile_ns = weir_host_now_ns() - start_ns;
	if (!err && loads)
		err = try_load(instance, image, &result.load_ns, diag);
	if (err)
		return err;
	weir_image_memory(image, image->config.cpus, &memory);
	result.total_bytes = memory.total;
	result.needed_bytes = new_bytes(instance, image);
	read_before(instance, &before);
	result.total_bytes_before = bytes_of(before, &previous);
	result.is_before_known = before != NULL;
	err = weir_forecast_make(before, turning->ruleset, &previous, image, &result.changes);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot compare the rules of instance '%s'", instance->name);
	find_emptied(instance, image, &result.changes);
	*ret_forecast = result;
	return 0;
}

int weir_instance_foresee(const char *name, const struct weir_ruleset *ruleset,
			  const struct weir_reload_options *options, bool loads,
			  struct weir_reload_forecast *ret_forecast, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_turning turning = {.turn = WEIR_TURN_LOADED, .ruleset = ruleset};
	_cleanup_(weir_closep) int lock_fd = -1;
	int err;

	/* Who only compares is told what a reload would say, and sees the rest. */
	if (!options->starts_afresh)
		turning.emptied = loads ? WEIR_EMPTIED_REFUSED : WEIR_EMPTIED_TO_BE_REFUSED;
	err = weir_instance_open_any(name, &instance, diag);

	if (err)
		return err;
	weir_instance_free(TAKE_PTR(instance));
	err = weir_bpffs_lock(&lock_fd, diag);
	if (!err)
		err = weir_instance_open_as_is(name, &instance, diag);
	if (!err)
		err = weir_instance_accept_foreign(instance, options->starts_afresh, diag);
	if (!err && loads)
		err = weir_turning_check(instance, turning.turn, diag);
	return err ? err : foresee(instance, &turning, loads, ret_forecast, diag);
}

void weir_reload_forecast_free(struct weir_reload_forecast *forecast)
{
	weir_forecast_free(&forecast->changes);
}

void weir_reload_result_free(struct weir_reload_result *result)
{
	weir_rule_changes_free(&result->changes);
}
