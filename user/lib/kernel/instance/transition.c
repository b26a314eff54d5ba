// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changing from one rule set to another, and back: which rule set to load, and what to keep of both. reload.c does the
 * replacing.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "pace/pace.h"

void weir_transition_free(struct weir_transition *transition)
{
	weir_ruleset_free(transition->kept);
	weir_history_free(&transition->history);
}

/* ---- refusals ---- */

static int refuse_unconfirmed(const struct weir_instance *instance, struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	weir_instance_options(instance->name, option);
	snprintf(hint, sizeof(hint),
		 "first run 'weir confirm%s' to keep them or 'weir rollback%s' to undo them; then reload", option,
		 option);
	weir_diag_error(diag, NULL, NULL, hint,
			"the rules of instance '%s' are not confirmed yet: the previous ones return in %llu s",
			instance->name, (unsigned long long)weir_unconfirmed_left_s(&instance->unconfirmed));
	return -EBUSY;
}

static int fail_no_set_before(const struct weir_instance *instance, const struct weir_history *history,
			      struct weir_diag *diag)
{
	const char *why = history->sets[0] ? "nothing was reloaded since it was attached, or the reload was undone"
					   : "a rule set that another version of weir loaded is not kept";
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	snprintf(hint, sizeof(hint), "'weir reload%s FILE...' loads any other",
		 weir_instance_options(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' has no previous rule set: %s", instance->name, why);
	return -ENOENT;
}

/* ---- which rule set ---- */

/* `kind`: how the rule set comes into force, for `weir show` and `weir confirm`. */
static int read_kept(struct weir_transition *transition, struct weir_kept_set *set, enum weir_transition_kind kind,
		     uint64_t generation, struct weir_diag *diag)
{
	int err = weir_kept_set_read(set, &transition->kept, diag);

	if (err)
		return weir_not_the_rules(err);
	transition->ruleset = transition->kept;
	transition->kept->is_last_good &= kind != WEIR_TRANSITION_ROLLBACK; /* which is what somebody wants */
	set->generation = generation;
	set->transition = kind;
	return 0;
}

static int plan_load(const struct weir_instance *instance, const struct weir_reload_options *options,
		     struct weir_transition *transition, struct weir_diag *diag)
{
	struct weir_kept_set *set = NULL;
	int err = weir_instance_keep(transition->ruleset, instance->info.generation + 1, &set, diag);

	if (err)
		return err;
	if (options->confirm_ns && !transition->history.sets[0]) {
		weir_kept_set_free(set);
		weir_diag_error(
			diag, NULL, NULL, "reload without '--confirm'",
			"instance '%s' could not return from these rules: those in force were not kept: reload them "
			"once",
			instance->name);
		return -ENOENT;
	}
	transition->confirm_ns = options->confirm_ns;
	/* While they are not confirmed, they cannot be loaded again for such an interface. */
	transition->adds_bare = options->confirm_ns;
	transition->emptied = options->starts_afresh ? WEIR_EMPTIED_WARNED : WEIR_EMPTIED_REFUSED;
	weir_history_push(&transition->history, set, options->confirm_ns);
	return 0;
}

static int plan_again(const struct weir_instance *instance, const struct weir_reload_options *options,
		      struct weir_transition *transition, struct weir_diag *diag)
{
	struct weir_kept_set *set = transition->history.sets[0];
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	transition->adds_bare = true;
	transition->adds_in = options->adds_in;
	if (set) {
		int err = read_kept(transition, set, set->transition, instance->info.generation + 1, diag);

		if (!err)
			transition->kept->is_last_good = instance->info.policies & WEIR_IS_LAST_GOOD;
		return err;
	}
	snprintf(hint, sizeof(hint), "'weir reload%s FILE...' first", weir_instance_options(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint,
			"the rules of instance '%s' have to be loaded again for %s, and were not kept", instance->name,
			options->adds_in ? "incoming packets" : "an interface without an Ethernet header");
	return -ENOENT;
}

/* A killed reload may have put its rules on the links, but not into the history. */
static void forget_unconfirmed(const struct weir_instance *instance, struct weir_history *history)
{
	if (history->sets[0] && history->sets[0]->generation == instance->unconfirmed.generation)
		weir_history_return(history);
}

/* To the set before: by a rollback (`kind`), or because the rules were not confirmed in time. */
static int plan_return(const struct weir_instance *instance, enum weir_transition_kind kind,
		       struct weir_transition *transition, struct weir_diag *diag)
{
	struct weir_history *history = &transition->history;
	bool has_one = history->sets[1];

	if (transition->kind == WEIR_TRANSITION_RETURNED) {
		forget_unconfirmed(instance, history);
		has_one = history->sets[0];
	} else if (has_one) {
		weir_history_swap(history);
	}
	return has_one ? read_kept(transition, history->sets[0], kind, instance->info.generation + 1, diag)
		       : fail_no_set_before(instance, history, diag);
}

int weir_transition_check(const struct weir_instance *instance, enum weir_transition_kind kind, struct weir_diag *diag)
{
	const struct weir_unconfirmed *unconfirmed = &instance->unconfirmed;

	if (kind == WEIR_TRANSITION_LOADED && unconfirmed->is_so && !weir_unconfirmed_is_over(unconfirmed))
		return refuse_unconfirmed(instance, diag);
	return 0;
}

int weir_transition_plan(struct weir_instance *instance, enum weir_transition_kind kind,
			 const struct weir_ruleset *ruleset, const struct weir_reload_options *options,
			 struct weir_transition *ret_transition, struct weir_diag *diag)
{
	const struct weir_unconfirmed *unconfirmed = &instance->unconfirmed;
	struct weir_transition transition = {.kind = kind, .ruleset = ruleset};
	int err = weir_transition_check(instance, kind, diag);

	if (err)
		return err;
	if (kind == WEIR_TRANSITION_RETURNED && !unconfirmed->is_so)
		return 1;
	if (kind == WEIR_TRANSITION_ROLLBACK && unconfirmed->is_so)
		transition.kind = WEIR_TRANSITION_RETURNED;
	if (weir_guard_is_left(instance) && (options->confirm_ns || !weir_guard_has_entries(instance)))
		err = weir_instance_finish_confirm(instance, diag);
	if (err)
		return err;
	weir_instance_history(instance, &transition.history);
	if (transition.kind == WEIR_TRANSITION_LOADED) {
		if (unconfirmed->is_so)
			forget_unconfirmed(instance, &transition.history);
		err = ruleset ? plan_load(instance, options, &transition, diag)
			      : plan_again(instance, options, &transition, diag);
	} else {
		err = plan_return(instance, kind, &transition, diag);
	}
	if (err) {
		weir_transition_free(&transition);
		return err;
	}
	*ret_transition = transition;
	return 0;
}

/* ---- keeping unconfirmed rules ---- */

static void close_programs(const struct weir_link_terms *terms)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		weir_closep(&terms->program_fd[hook]);
}

/* -ENOENT: there is no such program. */
static int open_programs(const struct weir_instance *instance, struct weir_link_terms *terms, struct weir_diag *diag)
{
	int err = -ENOENT;

	for (int hook = 0; hook < WEIR_HOOKS; hook++) {
		int fd = weir_pin_open(instance->name, weir_pin_of_program(hook));

		terms->program_fd[hook] = fd < 0 ? -1 : fd;
		if (fd >= 0 && err == -ENOENT)
			err = 0;
		if (fd < 0 && fd != -ENOENT)
			err = fd;
	}
	return err ? weir_diag_fail(diag, -err, NULL, "cannot open the program of instance '%s'", instance->name) : 0;
}

/* The guard and the rules behind it evaluate packets identically from now on. */
int weir_instance_finish_confirm(struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_old_programs_free) struct weir_old_program *old = NULL;
	_cleanup_(close_programs) struct weir_link_terms now = weir_instance_terms(instance);
	int err = open_programs(instance, &now, diag);

	if (!err)
		err = weir_instance_open_programs(instance, &old, diag);
	if (!err)
		err = weir_instance_swap_links(instance, &now, old, diag);
	if (!err)
		err = weir_instance_read_links(instance, diag); /* the links have another program now */
	if (!err)
		weir_guard_remove(instance->name);
	return err;
}
