// SPDX-License-Identifier: GPL-2.0-only
/* The requests of commands: load other rules, return to the previous ones, or keep rules that have to be confirmed. */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "pace/pace.h"

int weir_instance_reload(const char *name, const struct weir_ruleset *ruleset,
			 const struct weir_reload_options *options, struct weir_reload_result *ret_result,
			 struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	/* Checked before the lock is taken, so that nothing is created or mounted if nothing is attached. */
	int err = weir_instance_open_any(name, &instance, diag);

	if (!err)
		err = weir_instance_transition(name, WEIR_TRANSITION_LOADED, ruleset, options, ret_result, diag);
	if (!err)
		weir_sets_note_loaded(name);
	return err;
}

int weir_instance_rollback(const char *name, struct weir_reload_result *ret_result, struct weir_diag *diag)
{
	static const struct weir_reload_options options;
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	int err = weir_instance_open_any(name, &instance, diag);

	return err ? err : weir_instance_transition(name, WEIR_TRANSITION_ROLLBACK, NULL, &options, ret_result, diag);
}

/* ---- confirming ---- */

static int confirm_history(const struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_closep) int fd = -1;
	int err;

	weir_instance_history(instance, &history);
	weir_history_confirm(&history);
	fd = weir_instance_write_history(instance->name, &history, diag);
	err = fd < 0 ? fd : weir_pin_new(instance->name, WEIR_PIN_HISTORY, fd, diag);
	if (!err)
		err = weir_pin_take_new(instance->name, WEIR_PIN_HISTORY, diag);
	if (!err && history.sets[0])
		weir_last_good_write(instance->name, history.sets[0], diag);
	return err;
}

static int fail_late(const struct weir_instance *instance, struct weir_diag *diag)
{
	weir_diag_error(diag, NULL, NULL, "reload them again",
			"too late: the rules of instance '%s' were not confirmed in time, and the previous ones are in "
			"force again",
			instance->name);
	return -ETIME;
}

static int fail_nothing_to_confirm(const struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	enum weir_transition_kind kind = WEIR_TRANSITION_LOADED;

	weir_instance_history(instance, &history);
	if (history.sets[0])
		kind = history.sets[0]->transition;
	if (kind == WEIR_TRANSITION_RETURNED)
		return fail_late(instance, diag);
	if (kind == WEIR_TRANSITION_ROLLBACK)
		weir_diag_error(diag, NULL, NULL, "to try the other rules again, reload them",
				"instance '%s' has nothing to confirm: a rollback put its rules in force",
				instance->name);
	else
		weir_diag_error(diag, NULL, NULL, NULL, "instance '%s' has nothing to confirm: its rules stay anyway",
				instance->name);
	return -ENOENT;
}

/* Call this under the lock. */
static int confirm(struct weir_instance *instance, struct weir_diag *diag)
{
	static const struct weir_reload_options options;
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	int err;

	if (!instance->unconfirmed.is_so && !weir_guard_is_left(instance))
		return fail_nothing_to_confirm(instance, diag);
	if (!instance->is_settled)
		return weir_instance_fail_unsettled(instance->name, diag);
	err = instance->unconfirmed.is_so ? weir_guard_confirm(instance->name) : 0;
	if (err == -ETIME)
		return fail_late(instance, diag);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot confirm the rules of instance '%s'", instance->name);
	/* The decision is made. Only cleaning up is left, which the next command would do as well. */
	if (weir_guard_has_entries(instance)) {
		/* Programs that were put behind the guard for timed entries are not the rules' own: load the rules with
		 * theirs.
		 */
		weir_guard_look(instance); /* nothing is unconfirmed any more */
		err = weir_instance_transition_locked(instance, WEIR_TRANSITION_LOADED, NULL, &options, &result, diag);
	} else {
		err = weir_instance_finish_confirm(instance, diag);
	}
	if (!err)
		err = confirm_history(instance, diag);
	if (!err && !(instance->info.paces & WEIR_PACES_IN) && weir_pace_is_attached(instance->name))
		weir_pace_detach(instance->name);
	return err;
}

int weir_instance_confirm(const char *name, uint64_t *ret_generation, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_instance_open_any(name, &instance, diag); /* returns expired rules, so before the lock */

	if (err)
		return err;
	weir_instance_free(TAKE_PTR(instance));
	err = weir_bpffs_lock(&lock_fd, diag);
	if (!err)
		err = weir_instance_open_as_is(name, &instance, diag);
	if (!err && instance->is_all_incompatible)
		err = weir_instance_fail_incompatible(instance, diag);
	if (!err)
		err = confirm(instance, diag);
	if (err)
		return err;
	weir_instance_note(name, WEIR_JOURNAL_CONFIRM, "the rules stay");
	*ret_generation = instance->info.generation;
	return 0;
}
