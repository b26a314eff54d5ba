// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timed entries need incoming packets to be evaluated, whatever the rules are about. The first entry of an instance
 * whose rules do not need that loads them once more, with the hooks for it. Before a decision about unconfirmed rules
 * there are two rule sets, and neither can be loaded again: there, a program for timed entries alone stands in.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/netns.h"

/* ---- before the decision ---- */

/*
 * The programs of a rule set in which nothing is about incoming packets: they evaluate timed entries alone, and need no
 * map of that rule set. So they can stand beside its programs, which are loaded already.
 */
static int load_for_entries(const struct weir_instance *instance, bool observes, struct weir_object **ret_object,
			    struct weir_diag *diag)
{
	const enum weir_attach_mode mode = weir_reload_mode(instance);
	const struct weir_previous previous = weir_reload_what_runs(instance, instance->rules);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *nothing = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_object_options options = {
		.seed = instance->info.seed,
		.tick_origin_ns = instance->info.tick_origin_ns,
		.now_ns = weir_host_now_ns(),
		.is_trial = true, /* descriptions and state are the rules' */
		.hooks = weir_hooks_of(mode, WEIR_MATCHES_IN, true),
	};
	struct weir_diag ignored = {}; /* a warning that there are no rules */
	char text[160];
	int err;

	snprintf(text, sizeof(text),
		 "settings: {malformed: pass, unsupported: pass, mode: %s, timedEntries: %u}\nrules: []\n",
		 observes ? "observe" : "enforce", instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size);
	err = weir_ruleset_parse("timed entries", text, strlen(text), &nothing, &ignored);
	weir_diag_free(&ignored);
	if (!err)
		err = weir_instance_build_image(nothing, mode, &previous, WEIR_EMPTIED_WARNED, &image, diag);
	if (err)
		return err;
	memcpy(options.reuse_fd, instance->map_fd, sizeof(instance->map_fd));
	return weir_object_load(image, &options, ret_object, diag);
}

/* Which set lacks programs for incoming packets, and its replacements, by enum weir_guard_set. */
struct for_entries {
	struct weir_object *objects[WEIR_GUARD_SETS];
	int fd[WEIR_GUARD_SETS][WEIR_HOOKS];
	struct weir_guard_maps maps;
	struct weir_old_program *links;
};

static void free_for_entries(struct for_entries *entries)
{
	for (int set = 0; set < WEIR_GUARD_SETS; set++)
		weir_object_free(entries->objects[set]);
	weir_closep(&entries->maps.state_fd);
	weir_closep(&entries->maps.sets_fd);
	weir_closep(&entries->maps.tc_sets_fd);
	weir_old_programs_free(&entries->links);
}

/* Do the rules before the unconfirmed ones only observe? */
static int read_old_mode(const struct weir_instance *instance, bool *ret_observes, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	int err = 0;

	weir_instance_history(instance, &history);
	if (history.sets[1])
		err = weir_kept_set_read(history.sets[1], &ruleset, diag);
	*ret_observes = ruleset && ruleset->settings.observes;
	return err;
}

static int load_lacking(const struct weir_instance *instance, enum weir_hook hook, struct for_entries *entries,
			struct weir_diag *diag)
{
	static const int none[WEIR_HOOKS] = WEIR_NO_PROGRAMS;
	bool observes[WEIR_GUARD_SETS] = {[WEIR_GUARD_NEW] = instance->info.observes};
	int err = read_old_mode(instance, &observes[WEIR_GUARD_OLD], diag);

	for (int set = 0; !err && set < WEIR_GUARD_SETS; set++) {
		memcpy(entries->fd[set], none, sizeof(none));
		if (weir_guard_has(&entries->maps, hook, set))
			continue;
		err = load_for_entries(instance, observes[set], &entries->objects[set], diag);
		if (!err)
			weir_instance_hook_fds(entries->objects[set], entries->fd[set]);
	}
	return weir_not_the_rules(err);
}

/* Put the guards on the links: on those that are lacking too. */
static int put_guards(const struct weir_instance *instance, struct for_entries *entries, struct weir_diag *diag)
{
	struct weir_link_terms terms = weir_instance_terms(instance);
	int err = weir_instance_open_programs(instance, &entries->links, diag);

	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		terms.program_fd[hook] = weir_instance_open_program(instance, hook);
	if (!err)
		err = weir_instance_swap_links(instance, &terms, entries->links, diag);
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		weir_closep(&terms.program_fd[hook]);
	return err;
}

static int add_in(const struct weir_instance *instance, struct weir_diag *diag)
{
	const enum weir_hook hook = weir_reload_mode(instance) == WEIR_MODE_TC ? WEIR_HOOK_TC_IN : WEIR_HOOK_XDP;
	const bool was_there = weir_pin_is_there(instance->name, weir_pin_of_guard(hook));
	_cleanup_(weir_guard_object_freep) struct weir_guard_object *guard = NULL;
	_cleanup_(free_for_entries) struct for_entries entries = {.maps = weir_guard_open_maps(instance->name)};
	int err;

	if (weir_guard_has(&entries.maps, hook, WEIR_GUARD_NEW) && weir_guard_has(&entries.maps, hook, WEIR_GUARD_OLD))
		return 0;
	err = load_lacking(instance, hook, &entries, diag);
	if (!err)
		err = weir_guard_load(entries.fd[WEIR_GUARD_NEW], entries.fd[WEIR_GUARD_OLD], NULL, &entries.maps,
				      &guard, diag);
	if (err || was_there)
		return err; /* the guard is on the links already, and finds the programs from now on */
	err = weir_guard_pin_more(instance->name, guard, &entries.maps, diag);
	if (!err)
		err = put_guards(instance, &entries, diag);
	if (err)
		weir_guard_unpin_more(instance->name, guard, &entries.maps);
	return err;
}

/* ---- the contract ---- */

int weir_instance_hold_in(const char *name, int *ret_lock_fd, struct weir_diag *diag)
{
	static const struct weir_reload_options options = {.adds_in = true};
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_bpffs_lock(&lock_fd, diag);

	if (!err)
		err = weir_instance_open_as_is(name, &instance, diag);
	if (!err && instance->is_all_incompatible)
		err = weir_instance_fail_incompatible(instance, diag);
	if (err)
		return err;
	if (instance->unconfirmed.is_so && !weir_unconfirmed_is_over(&instance->unconfirmed)) {
		err = add_in(instance, diag);
	} else if (instance->unconfirmed.is_so || !weir_instance_evaluates(instance, false)) {
		weir_netns_enter(instance->info.netns, &back_fd); /* if this fails, what needs it is refused */
		err = weir_instance_transition_locked(instance, WEIR_TRANSITION_LOADED, NULL, &options, &result, diag);
		if (!err)
			weir_instance_note(name, WEIR_JOURNAL_RELOAD,
					   "incoming packets are evaluated from now on, for timed entries");
	}
	if (err)
		return err;
	*ret_lock_fd = TAKE_FD(lock_fd);
	return 0;
}
