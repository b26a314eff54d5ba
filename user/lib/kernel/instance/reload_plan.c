// SPDX-License-Identifier: GPL-2.0-only
/* Plans a reload before anything is changed: what stays, what is recreated, and what is refused. */
#include "instance/instance_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "network/netns.h"
#include "program/array.h"
#include "program/timed_tables.h"
#include "tables/entry_state.h"
#include "tables/rule_kind.h"

/* ---- what stays, and what is recreated ---- */

/* A table whose size differs from the image's contained nothing of use (compile/compile.h), except timed entries, which
 * are carried over.
 */
static bool has_other_size(const struct weir_instance *instance, const struct weir_image *image,
			   enum weir_table_id table)
{
	return image->config.sizes[table] != instance->info.tables[table].size;
}

/* The connections in the tables were counted in steps of another length, or in flows of another table, so nobody needs
 * them.
 */
static bool forgets_connections(const struct weir_instance *instance, const struct weir_image *image)
{
	const struct weir_instance_info *info = &instance->info;

	return has_other_size(instance, image, WEIR_TABLE_CONNECTIONS) ||
	       (info->tables[WEIR_TABLE_CONNECTION_FLOWS].size &&
		has_other_size(instance, image, WEIR_TABLE_CONNECTION_FLOWS)) ||
	       memcmp(image->connection_timeout_ms, info->connection_timeout_ms, sizeof(info->connection_timeout_ms));
}

bool weir_reload_replaces(const struct weir_instance *instance, const struct weir_image *image,
			  enum weir_table_id table)
{
	if (instance->is_incompatible[table] || has_other_size(instance, image, table))
		return true;
	switch (table) {
	case WEIR_TABLE_SHARERS:
		return image->config.sharers_shift != instance->info.sharers_shift;
	case WEIR_TABLE_CONNECTIONS:
	case WEIR_TABLE_CONNECTION_FLOWS:
	case WEIR_TABLE_LONE_CONNECTIONS:
	case WEIR_TABLE_CONNECTION_TOTALS:
		return forgets_connections(instance, image);
	case WEIR_TABLE_LONE_BREAKERS:
	case WEIR_TABLE_LONE_GROUPS:
	case WEIR_TABLE_BREAKERS:
	case WEIR_TABLE_REQUEST_GROUPS: /* requests refer to these */
		return has_other_size(instance, image, WEIR_TABLE_REQUESTS);
	default:
		return false;
	}
}

uint64_t weir_reload_new_bytes(const struct weir_instance *instance, const struct weir_image *image)
{
	struct weir_image_memory memory;
	uint64_t bytes;

	weir_image_memory(image, image->config.cpus, &memory);
	if (instance->is_all_incompatible)
		return memory.total;
	bytes = memory.matching + weir_lists_memory(&image->lists);
	for (int table = 0; table < WEIR_STATE_TABLE_COUNT; table++)
		if (weir_reload_replaces(instance, image, table))
			bytes += weir_table_memory(image, table, image->config.cpus, &memory);
	return bytes;
}

struct weir_rule_info *weir_reload_rules_now(const struct weir_instance *instance)
{
	const uint32_t slots = instance->info.rule_slots;
	struct weir_rule_info *rules = calloc(slots + 1, sizeof(*rules));

	if (!rules || instance->is_all_incompatible)
		return rules;
	for (uint32_t slot = 0; slot < slots; slot++) {
		rules[slot] = instance->rules[slot];
		/* If the virtual time cannot be read, it has not moved since the load. */
		if (rules[slot].state == WEIR_SLOT_USED && weir_has_tokens(&rules[slot]))
			weir_instance_read_clock(instance, &instance->rules[slot], &rules[slot].tokens.clock);
	}
	return rules;
}

struct weir_previous weir_reload_what_runs(const struct weir_instance *instance, struct weir_rule_info *rules)
{
	struct weir_previous previous = {
		.rules = rules,
		.resources = instance->resources,
		.specs = instance->specs,
		.rule_slots = instance->info.rule_slots,
		.resource_slots = instance->info.resource_slots,
		.spec_count = instance->info.spec_count,
		.sharers_shift = instance->info.sharers_shift,
	};

	memcpy(previous.connection_timeout_ms, instance->info.connection_timeout_ms,
	       sizeof(previous.connection_timeout_ms));
	/* Rules keep their slots, but a table of another version must not determine the size of its replacement. */
	for (int table = 0; table < WEIR_TABLE_COUNT; table++)
		previous.sizes[table] = instance->is_incompatible[table] ? 0 : instance->info.tables[table].size;
	return previous;
}

/* Derived from the links: another version's description does not contain the mode, and a `weir run` that takes over may
 * have been started with another one.
 */
enum weir_attach_mode weir_reload_mode(const struct weir_instance *instance)
{
	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].hook != WEIR_HOOK_XDP && !weir_hook_is_out(instance->links[i].hook))
			return WEIR_MODE_TC;
	return instance->is_all_incompatible ? WEIR_MODE_AUTO : instance->info.attach_mode;
}

/* A timed entry is in force, so incoming packets have to be evaluated. */
static bool has_entries(const struct weir_instance *instance)
{
	const bool has_table = instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size;
	size_t addresses = 0, prefixes = 0;
	struct weir_timed_state state;
	uint64_t now_ns = weir_host_now_ns();

	if (!has_table || instance->is_incompatible[WEIR_TABLE_TIMED_STATE])
		return false; /* they begin empty */
	if (weir_array_read(instance->map_fd[WEIR_TABLE_TIMED_STATE], &state, 1, sizeof(state)))
		return true;
	if (state.addresses_until_ns > now_ns && !instance->is_incompatible[WEIR_TABLE_TIMED_ADDRESSES] &&
	    weir_timed_addresses_count(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES], now_ns, &addresses))
		return true;
	if (state.prefixes_until_ns > now_ns && !instance->is_incompatible[WEIR_TABLE_TIMED_PREFIXES] &&
	    weir_timed_prefixes_count(instance->map_fd[WEIR_TABLE_TIMED_PREFIXES], now_ns, &prefixes))
		return true;
	return addresses || prefixes;
}

/* The hooks for which the image is loaded: those of all links, since interfaces that are gone may come back, and
 * another version may have attached some by XDP and others at tc; and those that interfaces may need later.
 */
static uint32_t hooks_of(const struct weir_instance *instance, const struct weir_transition *transition,
			 const struct weir_image *image)
{
	const bool adds_in = !(image->hooks & WEIR_MATCHES_IN) && (transition->adds_in || has_entries(instance));
	const uint8_t directions = image->hooks | (adds_in ? WEIR_MATCHES_IN : 0);
	bool has_bare = transition->adds_bare || weir_instance_has_patterns(instance);
	uint32_t hooks = 0;

	for (size_t i = 0; i < instance->link_count; i++) {
		const enum weir_hook hook = instance->links[i].hook;

		has_bare |= weir_hook_is_bare(hook);
		if (directions & WEIR_MATCHES_IN && !weir_hook_is_out(hook))
			hooks |= 1u << hook;
	}
	return hooks | weir_hooks_of(weir_reload_mode(instance), directions, has_bare);
}

int weir_reload_load(const struct weir_instance *instance, const struct weir_transition *transition,
		     const struct weir_image *image, bool is_trial, struct weir_object **ret_object,
		     struct weir_diag *diag)
{
	struct weir_object_options options = {
		.seed = instance->is_all_incompatible ? NULL : instance->info.seed,
		.tick_origin_ns = instance->is_all_incompatible ? 0 : instance->info.tick_origin_ns,
		.now_ns = weir_host_now_ns(),
		/* whose warm-up continues; NULL: none does */
		.previous_rules = instance->is_incompatible[WEIR_TABLE_WARM_STATES] ? NULL : instance->rules,
		.is_trial = is_trial,
		.hooks = hooks_of(instance, transition, image),
	};

	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		options.reuse_fd[map] = weir_reload_replaces(instance, image, map) ? -1 : instance->map_fd[map];
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

/* Rules whose buckets can no longer be distinguished must not be put in force; if they soon will be indistinguishable,
 * warn.
 */
static int check_span(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	static const char *const hint = "detach it and attach again";
	uint64_t left_ns = weir_narrow_left_ns(image->rule_info, image->rule_slots, image->specs, image->spec_count,
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

/* An instance without links was left by a killed attach or detach. And if all interfaces or programs on them are gone,
 * the rules would limit nothing.
 */
static int check_links(const struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_loss *losses = NULL;
	char hint[WEIR_LOSS_BYTES + WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES], why[64];
	bool has_lost;

	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].ifindex)
			return 0;
	if (weir_instance_is_controlled(instance->name)) /* the controller waits for interfaces */
		return 0;
	has_lost = weir_instance_losses_now(instance, &losses);
	snprintf(why, sizeof(why), "%s",
		 instance->link_count ? "those it was attached to are gone" : "an attach or a detach was cut short");
	if (has_lost)
		snprintf(why, sizeof(why), "its program on '%s' is gone", losses[0].interface);
	snprintf(hint, sizeof(hint), "%s%s'weir detach%s' cleans up", has_lost ? losses[0].cure : "",
		 has_lost ? ", then reload; or " : "", weir_instance_options(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' is attached to no interface: %s", instance->name, why);
	return -ENOENT;
}

static int check_ports(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	const bool asks_interface = image->config.asked_fields & WEIR_MATCH_INTERFACE;
	int err = 0;

	for (size_t i = 0; !err && i < instance->link_count; i++)
		if (instance->links[i].is_native && instance->links[i].ifindex)
			err = weir_instance_refuse_ports(instance->links[i].interface, asks_interface, diag);
	return err;
}

/* Entries that are blocked or allowed for a limited time must all fit in the new table, or the reload is refused. */
static int check_timed(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	const uint32_t room = image->config.sizes[WEIR_TABLE_TIMED_ADDRESSES];
	const uint64_t now_ns = weir_host_now_ns();
	size_t addresses = 0, prefixes = 0;
	int err = 0;

	if (instance->is_incompatible[WEIR_TABLE_TIMED_ADDRESSES] ||
	    room >= instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size)
		return 0;
	err = weir_timed_addresses_count(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES], now_ns, &addresses);
	if (!err && !room)
		err = weir_timed_prefixes_count(instance->map_fd[WEIR_TABLE_TIMED_PREFIXES], now_ns, &prefixes);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the timed entries of instance '%s'",
				      instance->name);
	if (addresses + prefixes <= room)
		return 0;
	weir_diag_error(diag, NULL, NULL, "raise it, or end some of them: see 'weir block --list', 'weir allow --list'",
			"settings.timedEntries is %u, but %zu addresses%s are blocked or allowed for a while", room,
			addresses + prefixes, room ? "" : " and prefixes");
	return -ENOSPC;
}

/* ---- the image ---- */

static int warn_of_renumbering(const struct weir_previous *previous, const struct weir_image *image,
			       struct weir_diag *diag)
{
	_cleanup_(weir_changes_free) struct weir_changes changes = {};
	const char *resource;

	if (weir_rule_changes_find(previous->rules, previous->rule_slots, image->rule_info, image->rule_slots,
				   &changes))
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot compare the rules");
	resource = weir_rule_changes_renumber(&changes, image->rule_info, image->rule_slots);
	if (resource)
		weir_diag_warning(diag, NULL, NULL,
				  "give each rule a 'name': it then keeps its own counters at any position",
				  "unnamed rules of '%s' are matched by position, and positions changed: some now "
				  "inherit another rule's counters",
				  resource);
	return 0;
}

int weir_reload_prepare(struct weir_instance *instance, const struct weir_transition *transition,
			struct weir_image **ret_image, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_rule_info *rules = NULL;
	struct weir_previous previous;
	int err = check_links(instance, diag);

	/* Interface names are looked up in the present network namespace. */
	if (!err && names_interfaces(transition->ruleset))
		err = weir_instance_expect_here(instance->name, diag);
	if (!err)
		err = weir_instance_check_marks(transition->ruleset, diag);
	if (err)
		return err;
	rules = weir_reload_rules_now(instance);
	if (!rules)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	previous = weir_reload_what_runs(instance, rules);
	/* Not in a dry run before the decision: until then the unconfirmed rules are the ones that run. */
	if (transition->kind == WEIR_TRANSITION_RETURNED || weir_unconfirmed_is_over(&instance->unconfirmed))
		weir_guard_take_back(instance, &previous);
	err = weir_instance_build_image(transition->ruleset, weir_reload_mode(instance),
					instance->is_all_incompatible ? NULL : &previous, transition->emptied,
					ret_image, diag);
	if (!err && !instance->is_all_incompatible)
		err = warn_of_renumbering(&previous, *ret_image, diag);
	if (!err)
		err = check_span(instance, *ret_image, diag);
	if (!err)
		err = check_timed(instance, *ret_image, diag);
	if (!err)
		err = check_ports(instance, *ret_image, diag);
	if (!err)
		err = weir_instance_check_cookies(instance->info.netns, *ret_image, diag);
	if (!err)
		err = weir_instance_check_memory(weir_reload_new_bytes(instance, *ret_image), diag);
	return err;
}
