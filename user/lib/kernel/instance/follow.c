// SPDX-License-Identifier: GPL-2.0-only
/*
 * Adding interfaces to an attached instance: those that an operator adds, and wanted ones (wanted.c) that appear or
 * come back. The program in force is put on them. Rules and state do not change.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "pace/pace.h"
#include "program/array.h"

static int read_info(const struct weir_instance *instance, struct weir_instance_info *ret_info)
{
	return weir_array_read(instance->map_fd[WEIR_TABLE_INSTANCE], ret_info, 1, sizeof(*ret_info));
}

/* The link that stands for the interface; NULL: it is not limited. */
static const struct weir_link *find_link(const struct weir_instance *instance, uint32_t ifindex)
{
	return weir_instance_link_on(instance, ifindex, false) ?: weir_instance_link_on(instance, ifindex, true);
}

/* The interface has a link, but none for the other direction, whose packets are evaluated: either the command that put
 * the other link there was killed, or somebody removed the link.
 */
static bool lacks_other(const struct weir_instance *instance, uint32_t ifindex)
{
	return find_link(instance, ifindex) && (weir_instance_lacks_link(instance, ifindex, false) ||
						weir_instance_lacks_link(instance, ifindex, true));
}

static int put_other(const struct weir_instance *instance, const struct weir_link_terms *terms, uint32_t ifindex,
		     struct weir_diag *diag)
{
	const struct weir_link *there = find_link(instance, ifindex);

	return weir_instance_put_other(terms, there, !weir_hook_is_out(there->hook), diag);
}

/* The pacing filter comes first, as at attach. */
static int put_on(const struct weir_instance *instance, const struct weir_link_terms *terms,
		  const struct weir_target *target, struct weir_diag *diag)
{
	struct weir_link link = {};
	const char *which;
	int err = terms->paces ? weir_pace_add(instance->name, target->ifindex, diag) : 0;

	if (!err)
		err = weir_instance_put_link(terms, target->name, target->ifindex, &link, diag);
	if (err) {
		if (terms->paces)
			weir_instance_trim_pace(instance->name);
		return err;
	}
	if (weir_instance_answers(instance))
		weir_instance_warn_of_answers(&link, diag);
	which = weir_hook_is_out(link.hook)		   ? "outgoing packets"
		: weir_link_terms_have(terms, &link, true) ? "both directions"
							   : "incoming packets";
	weir_diag_note(diag, "interface '%s' is limited now, in %s mode, %s", target->name, weir_link_mode_name(&link),
		       which);
	weir_instance_note(instance->name, WEIR_JOURNAL_INTERFACE, "'%s' is limited now, in %s mode, %s", target->name,
			   weir_link_mode_name(&link), which);
	return 0;
}

static bool is_refused(const struct weir_follow *follow, uint32_t ifindex)
{
	for (size_t i = 0; i < follow->refused_count; i++)
		if (follow->refused[i] == ifindex)
			return true;
	return false;
}

/* An interface without an Ethernet header has come to an instance in tc mode that has no program for it yet. */
static bool lacks_bare(const struct weir_instance *instance, const struct weir_targets *targets,
		       const struct weir_follow *follow)
{
	if (weir_reload_mode(instance) != WEIR_MODE_TC ||
	    weir_pin_is_there(instance->name, weir_pin_of_program(WEIR_HOOK_TC_BARE_IN)) ||
	    weir_pin_is_there(instance->name, weir_pin_of_program(WEIR_HOOK_TC_BARE_OUT)))
		return false;
	for (size_t i = 0; i < targets->count; i++)
		if (targets->targets[i].is_bare && !is_refused(follow, targets->targets[i].ifindex))
			return true;
	return false;
}

/* Load the rules in force once more, with that program. As at any reload, they keep their windows, and limit all the
 * time. (To load only the program, one would need the maps of the generation. They are not pinned, and finding them
 * through another program takes CAP_SYS_ADMIN, which a controller has given up.)
 */
static int load_again(const char *name, struct weir_diag *diag)
{
	static const struct weir_reload_options options;
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};

	return weir_instance_transition(name, WEIR_TRANSITION_LOADED, NULL, &options, &result, diag);
}

/* ---- by an operator ---- */

/* An interface that was taken off by name is no longer an exception once the user asks for it. */
static int want(struct weir_instance *instance, const char *word, struct weir_diag *diag)
{
	char exception[WEIR_WANTED_BYTES + 1];

	snprintf(exception, sizeof(exception), "!%s", word);
	weir_wanted_remove(instance->info.wanted, exception);
	if (weir_word_is_pattern(word))
		return weir_wanted_add(instance->info.wanted, word, diag);
	if (weir_wanted_means(instance->info.wanted, word) &&
	    !weir_targets_leave_out(instance->info.wanted, instance->info.attach_mode, word))
		return 0;
	return weir_wanted_add(instance->info.wanted, word, diag);
}

static void take_off_again(const struct weir_instance *instance, const char *const *put, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char attached_as[IF_NAMESIZE];

		if (!weir_link_find(instance->name, put[i], attached_as))
			weir_instance_remove_links(instance->name, attached_as);
	}
	weir_instance_trim_pace(instance->name);
}

static bool has_left_out(const struct weir_instance *instance, const struct weir_targets *targets)
{
	for (size_t i = 0; i < targets->left_out_count; i++)
		if (find_link(instance, targets->left_out[i].ifindex))
			return true;
	return false;
}

/* Takes off interfaces that a pattern matches but that are now covered by an interface below, for example because a
 * port was added to a bridge.
 */
static void take_off_left_out(const struct weir_instance *instance, const struct weir_targets *targets,
			      struct weir_diag *diag)
{
	for (size_t i = 0; i < targets->left_out_count; i++) {
		const struct weir_left_out *left_out = &targets->left_out[i];
		const struct weir_link *link = find_link(instance, left_out->ifindex);

		if (!link)
			continue;
		weir_instance_remove_links(instance->name, link->attached_as);
		weir_diag_note(diag, "interface '%s' is no longer limited: %s", left_out->name, left_out->why);
		weir_instance_note(instance->name, WEIR_JOURNAL_INTERFACE, "'%s' is no longer limited: %s",
				   left_out->name, left_out->why);
	}
	if (has_left_out(instance, targets))
		weir_instance_trim_pace(instance->name);
}

/* Warns for each interface that is new. */
static void warn_of_repeats(const struct weir_instance *before, const struct weir_targets *targets,
			    struct weir_diag *diag)
{
	for (size_t i = 0; i < targets->count; i++)
		if (!find_link(before, targets->targets[i].ifindex))
			weir_instance_warn_of_repeats(before->name, targets->targets[i].ifindex, diag);
}

/* Put the program on all interfaces that the words select now, or on none. */
static int put_all(struct weir_instance *instance, const struct weir_link_terms *terms,
		   const struct weir_targets *targets, struct weir_diag *diag)
{
	_cleanup_(weir_freep) const char **put = calloc(targets->count + 1, sizeof(*put));
	size_t count = 0;
	int err = put ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot attach instance '%s'", instance->name);

	for (size_t i = 0; !err && i < targets->count; i++) {
		if (find_link(instance, targets->targets[i].ifindex)) {
			if (lacks_other(instance, targets->targets[i].ifindex))
				err = put_other(instance, terms, targets->targets[i].ifindex, diag);
			continue;
		}
		if (terms->program_fd[WEIR_HOOK_XDP] >= 0)
			err = weir_instance_refuse_other_program(targets->targets[i].name, targets->targets[i].ifindex,
								 diag);
		if (!err)
			err = put_on(instance, terms, &targets->targets[i], diag);
		if (!err)
			put[count++] = targets->targets[i].name;
	}
	if (!err)
		err = weir_instance_write_info(instance, diag);
	if (err && put)
		take_off_again(instance, put, count);
	if (!err) {
		take_off_left_out(instance, targets, diag);
		warn_of_repeats(instance, targets, diag);
	}
	return err;
}

static int open_terms(const struct weir_instance *instance, struct weir_link_terms *ret_terms, struct weir_diag *diag)
{
	bool has_any = false;
	int err = 0;

	*ret_terms = weir_instance_terms(instance);
	ret_terms->mode = instance->info.attach_mode;
	for (int hook = 0; hook < WEIR_HOOKS; hook++) {
		int fd = weir_instance_open_program(instance, hook);

		ret_terms->program_fd[hook] = fd < 0 ? -1 : fd;
		has_any |= fd >= 0;
		err = fd < 0 && fd != -ENOENT ? fd : err;
	}
	if (!has_any && !err)
		err = -ENOENT;
	return err ? weir_diag_fail(diag, -err, NULL, "cannot open the program of instance '%s'", instance->name) : 0;
}

static void close_terms(const struct weir_link_terms *terms)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		weir_closep(&terms->program_fd[hook]);
}

/* The interface is there, and gets the place that is asked for only if it lacks a program. */
static int expect_addable(const struct weir_instance *instance, const struct weir_attach_options *options,
			  const char *interface, struct weir_diag *diag)
{
	int ifindex = weir_host_ifindex(interface, diag);

	if (ifindex < 0)
		return -ENODEV;
	if (weir_tcx_place_is_last(&options->place) || !find_link(instance, ifindex) || lacks_other(instance, ifindex))
		return 0;
	weir_diag_error(diag, NULL, NULL, "detach it with 'weir detach -i', then attach it at that position",
			"'%s' is already limited, and keeps its position among the programs at tc", interface);
	return -EEXIST;
}

static enum weir_attach_mode mode_of(const struct weir_instance *instance, const struct weir_attach_options *options)
{
	return options->mode == WEIR_MODE_AUTO ? instance->info.attach_mode : options->mode;
}

/* Also changes instance->info, which is not written yet. */
static int select_targets(struct weir_instance *instance, const struct weir_attach_options *options,
			  struct weir_targets *ret_targets, struct weir_diag *diag)
{
	int err = weir_instance_expect_here(instance->name, diag);

	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = want(instance, options->interfaces[i], diag);
	for (size_t i = 0; !err && i < options->interface_count; i++)
		if (!weir_word_is_pattern(options->interfaces[i]))
			err = expect_addable(instance, options, options->interfaces[i], diag);
	if (err)
		return err;
	err = weir_targets_find(instance->info.wanted, mode_of(instance, options), ret_targets);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot list the interfaces") : 0;
}

/* Before the lock is taken, which a load takes, too. */
static int provide_programs(struct weir_instance *instance, const struct weir_attach_options *options,
			    struct weir_diag *diag)
{
	static const struct weir_follow none_refused;
	_cleanup_(weir_targets_free) struct weir_targets targets = {};
	int err = select_targets(instance, options, &targets, diag);

	return err || !lacks_bare(instance, &targets, &none_refused) ? err : load_again(instance->name, diag);
}

static int add_words(struct weir_instance *instance, const struct weir_attach_options *options, struct weir_diag *diag)
{
	_cleanup_(close_terms) struct weir_link_terms terms = {.program_fd = WEIR_NO_PROGRAMS};
	_cleanup_(weir_targets_free) struct weir_targets targets = {};
	int err = select_targets(instance, options, &targets, diag);

	if (!err)
		err = open_terms(instance, &terms, diag);
	if (err)
		return err;
	terms.mode = mode_of(instance, options);
	terms.allows_merging |= options->allows_merging;
	terms.place = options->place;
	err = weir_instance_check_place(&options->place,
					terms.mode == WEIR_MODE_TC || terms.program_fd[WEIR_HOOK_TC_OUT] >= 0, diag);
	if (err)
		return err;
	instance->info.allows_merging = terms.allows_merging;
	for (size_t i = 0; i < targets.left_out_count; i++)
		weir_left_out_report(&targets.left_out[i], diag);
	err = weir_cases_follow(instance->name);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot update the interfaces in the rules of instance '%s'",
				      instance->name);
	return put_all(instance, &terms, &targets, diag);
}

static bool limits_both(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->resource_count; i++)
		if (instance->resources[instance->resource_order[i]].directions == WEIR_MATCHES_BOTH)
			return true;
	return false;
}

int weir_instance_add(const struct weir_attach_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_instance_open(options->instance, &instance, diag);

	if (!err)
		err = provide_programs(instance, options, diag);
	if (err)
		return err;
	weir_instance_free(TAKE_PTR(instance));
	err = weir_bpffs_lock(&lock_fd, diag);
	if (!err)
		err = weir_instance_open_as_is(options->instance, &instance, diag);
	if (!err && instance->is_all_incompatible)
		err = weir_instance_fail_incompatible(instance, diag);
	if (!err)
		err = add_words(instance, options, diag);
	if (!err)
		weir_instance_warn_of_forwarding(instance->name, limits_both(instance), diag);
	return err;
}

int weir_instance_want(const char *name, const struct weir_attach_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_bpffs_lock(&lock_fd, diag);

	if (!err)
		err = weir_instance_open_as_is(name, &instance, diag);
	if (err)
		return err;
	memset(instance->info.wanted, 0, sizeof(instance->info.wanted));
	instance->info.attach_mode = options->mode;
	instance->info.allows_merging = options->allows_merging;
	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = weir_wanted_add(instance->info.wanted, options->interfaces[i], diag);
	return err ? err : weir_instance_write_info(instance, diag);
}

/* ---- interfaces that appear ---- */

/* Remove links whose interface has gone and is not wanted by name, since nobody else would ever remove them. */
static void forget_gone(const struct weir_instance *instance)
{
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		char pin[WEIR_LINK_PIN_BYTES];

		if (link->ifindex || weir_wanted_names(instance->info.wanted, link->attached_as))
			continue;
		weir_link_pin(link, pin);
		weir_link_remove(instance->name, pin);
	}
}

static bool was_left_out(const struct weir_follow *follow, uint32_t ifindex)
{
	for (size_t i = 0; i < follow->left_out_count; i++)
		if (follow->left_out[i] == ifindex)
			return true;
	return false;
}

/* Report each interface once. Attach has already reported those that existed at the start. */
static void note_left_out(struct weir_follow *follow, const struct weir_targets *targets, struct weir_diag *diag)
{
	uint32_t *left_out = NULL;
	size_t count = 0;

	for (size_t i = 0; i < targets->left_out_count; i++) {
		uint32_t *slot = weir_array_add((void **)&left_out, count, sizeof(*slot));

		if (follow->has_looked && !was_left_out(follow, targets->left_out[i].ifindex))
			weir_left_out_report(&targets->left_out[i], diag);
		if (!slot)
			continue; /* it will be reported again, ignoring */
		*slot = targets->left_out[i].ifindex;
		count++;
	}
	free(follow->left_out);
	follow->left_out = left_out;
	follow->left_out_count = count;
	follow->has_looked = true;
}

static bool lacks_one(const struct weir_instance *instance, const struct weir_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		if (!find_link(instance, targets->targets[i].ifindex) ||
		    lacks_other(instance, targets->targets[i].ifindex))
			return true;
	return false;
}

/* Call this under the lock, so that the links that exist now count, not those of an earlier look. */
static int put_what_came(struct weir_instance *instance, struct weir_follow *follow, struct weir_diag *diag)
{
	_cleanup_(close_terms) struct weir_link_terms terms = {.program_fd = WEIR_NO_PROGRAMS};
	_cleanup_(weir_targets_free) struct weir_targets targets = {};
	bool are_all_limited = true;
	int err = weir_instance_read_links(instance, diag);

	if (!err)
		err = weir_targets_find(instance->info.wanted, instance->info.attach_mode, &targets);
	if (!err)
		err = open_terms(instance, &terms, diag);
	if (err)
		return err;
	forget_gone(instance);
	for (size_t i = 0; i < targets.count; i++) {
		const struct weir_target *target = &targets.targets[i];
		struct weir_diag messages = {};

		if (find_link(instance, target->ifindex) && !lacks_other(instance, target->ifindex))
			continue;
		err = lacks_other(instance, target->ifindex) ? put_other(instance, &terms, target->ifindex, &messages)
							     : put_on(instance, &terms, target, &messages);
		are_all_limited &= !err;
		if (err && (err == -ENODEV || is_refused(follow, target->ifindex))) {
			weir_diag_free(&messages); /* the interface has gone again, or has been reported already */
			continue;
		}
		weir_diag_move(diag, &messages, err);
		if (err) {
			/* A refused interface is tried again at each event, but reported only once. Without memory it
			 * is reported again, ignoring.
			 */
			uint32_t *slot =
				weir_array_add((void **)&follow->refused, follow->refused_count, sizeof(*slot));

			if (slot) {
				*slot = target->ifindex;
				follow->refused_count++;
			}
		}
	}
	if (are_all_limited)
		take_off_left_out(instance, &targets, diag);
	warn_of_repeats(instance, &targets, diag);
	return weir_instance_read_links(instance, diag);
}

/* Call this before new interfaces are limited, so that their packets match the right resources. A failure is reported
 * once.
 */
static void follow_cases(const struct weir_instance *instance, struct weir_follow *follow, struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];
	int err = weir_cases_follow(instance->name);

	snprintf(hint, sizeof(hint), "'weir reload%s FILE...' looks for them again",
		 weir_instance_options(instance->name, option));
	if (err && !follow->misses_cases)
		weir_diag_warning(diag, NULL, NULL, hint,
				  "rules with 'interface' may miss interfaces that have appeared: %s", strerror(-err));
	follow->misses_cases = err != 0;
}

/* Addresses come and go with and without interfaces. A failure is reported once. */
static void follow_addresses(const struct weir_instance *instance, struct weir_follow *follow, struct weir_diag *diag)
{
	int err = weir_instance_answers(instance) ? weir_own_addresses_write(instance->map_fd[WEIR_TABLE_OWN_ADDRESSES])
						  : 0;

	if (err && !follow->misses_addresses)
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "answers (onBlock) may go to new addresses of this host, if somebody forges them: %s",
				  strerror(-err));
	follow->misses_addresses = err != 0;
}

/* Where the instance is wanted now. -EBUSY: it was reloaded, and is reopened at once. */
static int read_wanted(struct weir_instance *instance)
{
	struct weir_instance_info info;
	int err = read_info(instance, &info);

	if (err)
		return err;
	if (info.generation != instance->info.generation)
		return -EBUSY;
	memcpy(instance->info.wanted, info.wanted, sizeof(info.wanted));
	return 0;
}

int weir_instance_follow(struct weir_instance *instance, struct weir_follow *follow, struct weir_diag *diag)
{
	_cleanup_(weir_targets_free) struct weir_targets targets = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	int err;

	if (instance->info.netns != weir_host_netns())
		return 0;
	err = read_wanted(instance);
	if (!err)
		follow_cases(instance, follow, diag);
	if (!err)
		follow_addresses(instance, follow, diag);
	if (!err)
		err = weir_targets_find(instance->info.wanted, instance->info.attach_mode, &targets);
	if (err)
		return err;
	note_left_out(follow, &targets, diag);
	if (!lacks_one(instance, &targets) && !has_left_out(instance, &targets)) {
		follow->refused_count = 0;
		return 0;
	}
	if (lacks_bare(instance, &targets, follow) && !load_again(instance->name, diag))
		return -EBUSY; /* a reload, as above */
	err = weir_bpffs_try_lock(&lock_fd);
	/* A detach may have ended meanwhile: what it took off is not wanted any more. */
	if (!err)
		err = read_wanted(instance);
	return err ? err : put_what_came(instance, follow, diag);
}

void weir_follow_free(struct weir_follow *follow)
{
	free(follow->refused);
	free(follow->left_out);
	*follow = (struct weir_follow){};
}
