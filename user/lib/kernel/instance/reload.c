// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replacing the rules of an instance while packets pass. A second program is loaded over the maps that stay, and
 * replaces the first on every link. Until then everything can be undone. A reload may be killed at any point: each
 * interface then has either the old rules or the new ones, and the next reload repairs the rest.
 */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/netns.h"
#include "pace/pace.h"
#include "pins/pins.h"
#include "program/array.h"
#include "program/timed_tables.h"
#include "tables/entry_state.h"
#include "tables/rule_kind.h"

/* ---- entries that are blocked or allowed for a limited time ---- */

/* Copy them into the table that replaces the old one. Returns 0 or -errno. */
static int carry_timed(const struct weir_instance *instance, const struct weir_image *image,
		       const struct weir_object *object)
{
	const uint32_t before = instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size;
	const uint32_t room = image->config.sizes[WEIR_TABLE_TIMED_ADDRESSES];

	if (instance->is_incompatible[WEIR_TABLE_TIMED_ADDRESSES] || !before || !room || before == room)
		return 0;
	return weir_timed_addresses_carry(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES],
					  weir_object_map_fd(object, WEIR_TABLE_TIMED_ADDRESSES), weir_host_now_ns());
}

/* ---- descriptions ---- */

/* Called twice: with one description before the swap, and with the other after it. If another version attached the
 * instance, its descriptions are not ours to write: the new program has maps of its own, which already hold the new
 * description.
 */
static int write_descriptions(const struct weir_instance *instance, const struct weir_rule_info *rules,
			      const struct weir_resource_info *resources, struct weir_diag *diag)
{
	int err;

	if (instance->is_all_incompatible)
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
 * Describe the old and the new rules together, so that the slots of both count as taken whatever happens now. A reload
 * that is killed half-way must not leave slots in use that the next reload assumes to be free.
 */
static int describe_both(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_rule_info *rules = calloc(image->rule_slots + 1, sizeof(*rules));
	_cleanup_(weir_freep) struct weir_resource_info *resources =
		calloc(image->resource_slots + 1, sizeof(*resources));

	if (instance->is_all_incompatible)
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
			const struct weir_object *object, const struct weir_transition *transition,
			struct weir_diag *diag)
{
	_cleanup_(weir_closep) int history_fd = weir_instance_write_history(instance->name, &transition->history, diag);
	int err = history_fd < 0 ? history_fd : weir_pin_new(instance->name, WEIR_PIN_HISTORY, history_fd, diag);

	if (!err)
		err = weir_pin_new(instance->name, WEIR_PIN_THRESHOLDS, weir_object_thresholds_fd(object), diag);
	if (!err)
		err = weir_cases_pin(instance->name, image, object, weir_pin_new, diag);
	if (!err)
		err = weir_labels_pin(instance->name, object, weir_pin_new, diag);
	for (int hook = 0; !err && hook < WEIR_HOOKS; hook++)
		if (weir_object_hook_fd(object, hook) >= 0)
			err = weir_pin_new(instance->name, weir_pin_of_program(hook), weir_object_hook_fd(object, hook),
					   diag);
	for (int map = 0; !err && map < WEIR_STATE_TABLE_COUNT; map++)
		if (weir_reload_replaces(instance, image, map))
			err = weir_pin_new(instance->name, weir_table_name(map), weir_object_map_fd(object, map), diag);
	return err;
}

static bool replaces_any(const struct weir_instance *instance, const struct weir_image *image)
{
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		if (weir_reload_replaces(instance, image, map))
			return true;
	return false;
}

/*
 * Pins are replaced one by one, and a reload may be killed between two of them. The description would then refer to
 * other maps than the pinned ones. So tables that are being replaced have no version meanwhile, and the next reload
 * recreates them.
 */
static int mark_replaced(const struct weir_instance *instance, const struct weir_image *image,
			 const struct weir_object *object, struct weir_diag *diag)
{
	struct weir_instance_info info = instance->info;
	int err;

	if (instance->is_all_incompatible) {
		info.abi_version = WEIR_ABI_VERSION;
		weir_info_describe_tables(&info, image->config.sizes);
	}
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		if (weir_reload_replaces(instance, image, map))
			info.tables[map].version = 0;
	err = weir_array_write(weir_object_map_fd(object, WEIR_TABLE_INSTANCE), &info, 1, sizeof(info));
	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'", instance->name)
		   : 0;
}

/* The description's map is replaced first, before the maps that it describes. */
static int take_new_pins(const struct weir_instance *instance, const struct weir_image *image,
			 const struct weir_object *object, struct weir_diag *diag)
{
	int err = replaces_any(instance, image) ? mark_replaced(instance, image, object, diag) : 0;

	_Static_assert(WEIR_TABLE_INSTANCE == 0, "the description's pin is taken first");
	for (int map = 0; !err && map < WEIR_STATE_TABLE_COUNT; map++) {
		const bool is_replaced = weir_reload_replaces(instance, image, map);

		err = is_replaced ? weir_pin_take_new(instance->name, weir_table_name(map), diag)
				  : weir_pin_rename_table(instance->name, map, diag);
		/* A table of an older version may have a pin of another name, which goes with the table. */
		if (!err && is_replaced && weir_table_name_before(map)[0])
			weir_unpin(instance->name, weir_table_name_before(map));
	}
	if (!err)
		err = weir_pin_take_new(instance->name, WEIR_PIN_HISTORY, diag);
	if (!err)
		err = weir_pin_take_new(instance->name, WEIR_PIN_THRESHOLDS, diag);
	if (!err)
		err = weir_cases_take_new(instance->name, image, diag);
	if (!err)
		err = weir_labels_take_new(instance->name, object, diag);
	for (int hook = 0; !err && hook < WEIR_HOOKS; hook++) {
		if (weir_object_hook_fd(object, hook) >= 0)
			err = weir_pin_take_new(instance->name, weir_pin_of_program(hook), diag);
		else /* nothing is evaluated there any more */
			weir_unpin(instance->name, weir_pin_of_program(hook));
	}
	return err;
}

/* Tables of another version that this version does not have would use memory until the detach. */
static void drop_old_tables(const struct weir_instance *instance)
{
	for (int i = 0; i < WEIR_TABLES_MAX; i++) {
		char name[WEIR_TABLE_NAME_BYTES + 1] = "";

		memcpy(name, instance->info.tables[i].name, WEIR_TABLE_NAME_BYTES);
		if (name[0] && !strchr(name, '/') && weir_table_find(name) == WEIR_TABLE_COUNT)
			weir_unpin(instance->name, name);
	}
}

static void drop_new_pins(const struct weir_instance *instance)
{
	weir_unpin_new(instance->name, WEIR_PIN_HISTORY);
	weir_unpin_new(instance->name, WEIR_PIN_THRESHOLDS);
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		weir_unpin_new(instance->name, weir_pin_of_program(hook));
	weir_cases_drop_new(instance->name);
	weir_unpin_new(instance->name, WEIR_PIN_LABELS);
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
		if (instance->links[i].ifindex && weir_link_stands(instance->links, instance->link_count, i))
			ifindexes[count++] = instance->links[i].ifindex;
	return weir_pace_attach(instance->name, ifindexes, count, diag);
}

/* Outgoing packets wait in the device itself, if its qdisc supports that. */
static int check_pace_out(const struct weir_instance *instance, const struct weir_ruleset *ruleset,
			  struct weir_diag *diag)
{
	const struct weir_waits waits = weir_instance_waits_out(ruleset);
	_cleanup_(weir_netns_leave) int back_fd = -1;
	int err = 0;

	if (weir_netns_enter(instance->info.netns, &back_fd))
		return 0; /* if this cannot be determined, assume that it works */
	for (size_t i = 0; !err && i < instance->link_count; i++)
		if (instance->links[i].ifindex && weir_link_stands(instance->links, instance->link_count, i))
			err = weir_pace_check_out(instance->links[i].interface, instance->links[i].ifindex,
						  waits.packets, waits.wait_ns, diag);
	return err;
}

/* Checks whether the rules can pace, if the old ones did not or if another version's tc program does the pacing. */
int weir_reload_check_pace(const struct weir_instance *instance, const struct weir_image *image,
			   const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	int err = image->config.paces_out ? check_pace_out(instance, ruleset, diag) : 0;

	if (err || !image->config.paces ||
	    (weir_pace_is_attached(instance->name) && !instance->is_incompatible[WEIR_TABLE_PACE]))
		return err;
	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].hook == WEIR_HOOK_XDP && !instance->links[i].is_native)
			return weir_pace_refuse_skb(instance->links[i].interface, diag);
	return weir_pace_check(diag);
}

/*
 * *ret_is_new: pacing was set up, and has to be removed again if the reload fails. Another version's tc program
 * continues to pace until the rules have been swapped.
 */
static int start_pace(const struct weir_instance *instance, const struct weir_image *image,
		      const struct weir_ruleset *ruleset, bool *ret_is_new, struct weir_diag *diag)
{
	int err = weir_reload_check_pace(instance, image, ruleset, diag);

	if (err || !image->config.paces || weir_pace_is_attached(instance->name) ||
	    instance->is_incompatible[WEIR_TABLE_PACE])
		return err;
	err = attach_pace(instance, diag);
	*ret_is_new = !err;
	return err;
}

/* If the counters and packet metadata of the running tc program belong to another version, replace that program by
 * ours. Between the two, packets do not wait. The new rules are already in force.
 */
static int replace_pace(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	if (!image->config.paces || !instance->is_incompatible[WEIR_TABLE_PACE])
		return 0;
	weir_pace_detach(instance->name); /* there may be no pacing */
	if (!attach_pace(instance, diag))
		return 0;
	weir_diag_error(diag, NULL, NULL, NULL, "the new rules of instance '%s' are in force, but nothing is paced",
			instance->name);
	return WEIR_RELOAD_NOT_DESCRIBED;
}

/*
 * When the rules came into force, in CLOCK_MONOTONIC. Rules that return because others were not confirmed have been in
 * force since the moment of the guard, whenever somebody looks.
 */
static uint64_t began_ns(const struct weir_instance *instance, enum weir_transition_kind kind)
{
	const struct weir_unconfirmed *unconfirmed = &instance->unconfirmed;
	const uint64_t now_ns = weir_host_now_ns();
	uint64_t since_ns;

	if (kind != WEIR_TRANSITION_RETURNED || !weir_unconfirmed_is_over(unconfirmed))
		return now_ns;
	since_ns = weir_host_boot_ns() - unconfirmed->returns_ns;
	return since_ns < now_ns ? now_ns - since_ns : 0;
}

/* The new rules are in force; now make this visible to other processes. */
static int make_known(struct weir_instance *instance, const struct weir_transition *transition,
		      const struct weir_image *image, const struct weir_object *object, struct weir_diag *diag)
{
	int err;

	/* Publish again, since a new second may have begun. The controller, if any, continues after it has seen the new
	 * generation.
	 */
	err = weir_instance_publish(&transition->ruleset->settings, image, object, diag);
	if (!err)
		err = take_new_pins(instance, image, object, diag);
	if (!err)
		err = write_descriptions(instance, image->rule_info, image->resource_info, diag);
	if (err)
		return err;
	drop_old_tables(instance);
	/* Carry over the entries that the old table got in the meantime, as far as there is room, ignoring. */
	carry_timed(instance, image, object);
	weir_instance_update_info(&instance->info, transition->ruleset, image, object,
				  began_ns(instance, transition->kind));
	err = weir_array_write(weir_object_map_fd(object, WEIR_TABLE_INSTANCE), &instance->info, 1,
			       sizeof(instance->info));
	if (!err && instance->is_incompatible[WEIR_TABLE_INSTANCE])
		err = weir_info_retire(instance->map_fd[WEIR_TABLE_INSTANCE], instance->info.generation);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'", instance->name)
		   : 0;
}

/* The old programs by hook. Each hook has one, unless a reload was interrupted. False: some hook has two. */
static bool find_old(const struct weir_old_program *old, int ret_fds[WEIR_HOOKS])
{
	static const int none[WEIR_HOOKS] = WEIR_NO_PROGRAMS;

	memcpy(ret_fds, none, sizeof(none));
	for (; old->id; old++) {
		if (ret_fds[old->hook] >= 0)
			return false;
		ret_fds[old->hook] = old->fd;
	}
	return true;
}

static int refuse_two_rule_sets(const struct weir_instance *instance, struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	snprintf(hint, sizeof(hint), "'weir reload%s FILE...' repairs that",
		 weir_instance_options(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint,
			"a reload of instance '%s' was cut short: there is no single rule set to return to",
			instance->name);
	return -EAGAIN;
}

/* Rules that have to be confirmed are not on the links themselves: their guard is. */
static int swap_programs(const struct weir_instance *instance, const struct weir_image *image,
			 const struct weir_object *object, struct weir_transition *transition,
			 struct weir_old_program *old, struct weir_diag *diag)
{
	_cleanup_(weir_guard_object_freep) struct weir_guard_object *guard = NULL;
	_cleanup_(weir_freep) struct weir_rule_info *rules = NULL;
	struct weir_link_terms terms = weir_instance_terms(instance);
	int new_fds[WEIR_HOOKS], old_fds[WEIR_HOOKS], err;

	terms.paces = image->config.paces;
	terms.paces_out = image->config.paces_out;
	terms.asks_interface = image->config.asked_fields & WEIR_MATCH_INTERFACE;
	weir_instance_hook_fds(object, new_fds);
	memcpy(terms.program_fd, new_fds, sizeof(terms.program_fd));
	if (!transition->confirm_ns)
		return weir_instance_swap_links(instance, &terms, old, diag);
	if (!find_old(old, old_fds))
		return refuse_two_rule_sets(instance, diag);
	/* The old rules may have no program for an interface without an Ethernet header that comes before the decision.
	 * When they return, it keeps to the new rules until they are loaded to be described: then they have one.
	 */
	if (old_fds[WEIR_HOOK_TC_BARE_IN] < 0 && old_fds[WEIR_HOOK_TC_IN] >= 0)
		old_fds[WEIR_HOOK_TC_BARE_IN] = new_fds[WEIR_HOOK_TC_BARE_IN];
	if (old_fds[WEIR_HOOK_TC_BARE_OUT] < 0 && old_fds[WEIR_HOOK_TC_OUT] >= 0)
		old_fds[WEIR_HOOK_TC_BARE_OUT] = new_fds[WEIR_HOOK_TC_BARE_OUT];
	rules = weir_reload_rules_now(instance);
	if (!rules)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	transition->returns_ns = weir_host_boot_ns() + transition->confirm_ns;
	err = weir_guard_set_up(instance, rules, new_fds, old_fds, transition->returns_ns, &guard, diag);
	for (int hook = 0; !err && hook < WEIR_HOOKS; hook++)
		terms.program_fd[hook] = weir_guard_program_fd(guard, hook);
	if (!err)
		err = weir_instance_swap_links(instance, &terms, old, diag);
	if (err)
		weir_guard_remove(instance->name);
	return err;
}

/* Until the swap everything can be undone; after it the new rules are in force. */
static int swap_in(struct weir_instance *instance, struct weir_transition *transition, const struct weir_image *image,
		   const struct weir_object *object, struct weir_diag *diag)
{
	_cleanup_(weir_old_programs_free) struct weir_old_program *old = NULL;
	const struct weir_settings *settings = &transition->ruleset->settings;
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];
	struct weir_diag ignored = {};
	int err;

	err = weir_instance_open_programs(instance, &old, diag);
	if (err)
		return err;
	err = describe_both(instance, image, diag);
	if (!err)
		err = pin_new_maps(instance, image, object, transition, diag);
	if (!err)
		err = weir_instance_publish(settings, image, object, diag);
	if (!err) { /* before the new program is in force, so that it misses no entry */
		err = carry_timed(instance, image, object);
		if (err)
			err = weir_diag_fail(diag, -err, NULL, "cannot carry over the timed entries of instance '%s'",
					     instance->name);
	}
	if (!err)
		err = weir_instance_write_addresses(instance->info.netns, image, object, diag);
	if (!err)
		err = swap_programs(instance, image, object, transition, old, diag);
	if (err) {
		drop_new_pins(instance);
		write_descriptions(instance, instance->rules, instance->resources, &ignored);
		weir_diag_free(&ignored);
		return err;
	}
	if (!make_known(instance, transition, image, object, diag)) {
		if (!transition->returns_ns)
			weir_guard_remove(instance->name); /* a guard that was on the links before, if there was one */
		return 0;
	}
	snprintf(hint, sizeof(hint), "run it again: 'weir reload%s FILE...'",
		 weir_instance_options(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint,
			"the new rules of instance '%s' are in force, but other commands cannot see them yet",
			instance->name);
	return WEIR_RELOAD_NOT_DESCRIBED;
}

/* The number of rules that kept their slots, but lost their windows because these were in a table of another version.
 */
static uint32_t count_emptied(const struct weir_instance *instance, const struct weir_image *image)
{
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < image->rule_slots; slot++) {
		const struct weir_rule_info *rule = &image->rule_info[slot];

		count += rule->state == WEIR_SLOT_USED && !rule->is_shadow && !image->fresh_rule_slots[slot] &&
			 weir_instance_empties(instance, rule);
	}
	return count;
}

/* The new rules are in force: anything that cannot be reported because memory is exhausted is left out, ignoring. */
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

	if (!instance->is_all_incompatible) {
		result.allow_before = before->allow_count;
		result.deny_before = before->deny_count;
		result.observed_before = before->observes;
	}
	weir_rule_changes_find(instance->rules, before->rule_slots, image->rule_info, image->rule_slots,
			       &result.changes);
	*ret_result = result;
}

/* Call this under the lock. */
static int make_transition(struct weir_instance *instance, struct weir_transition *transition,
			   struct weir_reload_result *ret_result, struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	const struct weir_instance_info before = instance->info;
	bool starts_pacing = false;
	int err = weir_reload_prepare(instance, transition, &image, diag);

	if (!err)
		err = weir_not_the_rules(weir_reload_load(instance, transition, image, false, &object, diag));
	if (!err)
		err = weir_not_the_rules(start_pace(instance, image, transition->ruleset, &starts_pacing, diag));
	if (!err)
		err = weir_not_the_rules(swap_in(instance, transition, image, object, diag));
	if (!err)
		err = replace_pace(instance, image, diag);
	/* With WEIR_RELOAD_NOT_DESCRIBED the new rules are in force despite the error, and they pace. */
	if (err && starts_pacing && err != WEIR_RELOAD_NOT_DESCRIBED)
		weir_pace_detach(instance->name);
	if (err)
		return err;
	/* Remove pacing if nothing needs it and everything is decided: while the new rules are not confirmed, the
	 * previous ones may still need it.
	 */
	if (!image->config.paces && !transition->returns_ns && weir_pace_is_attached(instance->name))
		weir_pace_detach(instance->name);
	weir_instance_warn_of_forwarding(instance->name, image->config.limits_both, diag);
	describe_result(instance, &before, image, ret_result);
	if (transition->returns_ns)
		ret_result->returns_s = weir_unconfirmed_left_s(
			&(struct weir_unconfirmed){.is_so = true, .returns_ns = transition->returns_ns});
	return 0;
}

static void note_transition(const struct weir_instance *instance, enum weir_transition_kind kind,
			    const struct weir_reload_result *result)
{
	static const enum weir_journal_kind kinds[WEIR_TRANSITION_COUNT] = {
		[WEIR_TRANSITION_LOADED] = WEIR_JOURNAL_RELOAD,
		[WEIR_TRANSITION_ROLLBACK] = WEIR_JOURNAL_ROLLBACK,
		[WEIR_TRANSITION_RETURNED] = WEIR_JOURNAL_RETURN,
	};
	char until[64] = "";

	if (result->returns_s)
		snprintf(until, sizeof(until), ", to be confirmed within %llu s",
			 (unsigned long long)result->returns_s);
	weir_instance_note_at(instance->name, instance->info.loaded_ns, kinds[kind],
			      "%u rule%s in force, windows kept: %u%s", result->rules, result->rules == 1 ? "" : "s",
			      result->kept_rules, until);
}

/* A command in any namespace may put kept rules back in force, but their interface names belong to the instance's
 * namespace.
 */
static int go_there(const struct weir_instance *instance, enum weir_transition_kind kind, int *back_fd)
{
	return kind == WEIR_TRANSITION_LOADED ? 0 : weir_netns_enter(instance->info.netns, back_fd);
}

int weir_instance_transition_locked(struct weir_instance *instance, enum weir_transition_kind kind,
				    const struct weir_ruleset *ruleset, const struct weir_reload_options *options,
				    struct weir_reload_result *ret_result, struct weir_diag *diag)
{
	_cleanup_(weir_transition_free) struct weir_transition transition = {};
	_cleanup_(weir_netns_leave) int back_fd = -1;
	int err = weir_transition_plan(instance, kind, ruleset, options, &transition, diag);

	if (err)
		return err;
	go_there(instance, transition.kind, &back_fd); /* if this fails, rules that need it are refused */
	err = make_transition(instance, &transition, ret_result, diag);
	if (err)
		return err;
	note_transition(instance, transition.kind, ret_result);
	/* If unconfirmed rules returned, the set that is stored is still the one in force. */
	if (!transition.returns_ns && transition.kind != WEIR_TRANSITION_RETURNED && !transition.ruleset->is_last_good)
		weir_last_good_write(instance->name, transition.history.sets[0], diag);
	return 0;
}

int weir_instance_transition(const char *name, enum weir_transition_kind kind, const struct weir_ruleset *ruleset,
			     const struct weir_reload_options *options, struct weir_reload_result *ret_result,
			     struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_bpffs_lock(&lock_fd, diag);

	if (!err)
		err = weir_instance_open_as_is(name, &instance, diag);
	if (!err)
		err = weir_instance_accept_incompatible(instance, options->starts_afresh, diag);
	return err ? err : weir_instance_transition_locked(instance, kind, ruleset, options, ret_result, diag);
}

void weir_reload_result_free(struct weir_reload_result *result)
{
	weir_changes_free(&result->changes);
}
