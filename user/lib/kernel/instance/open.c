// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opening an instance while a command may be at work on it. If the instance looks broken, it is read once more under
 * the lock, when no command can be at work. If rules were not confirmed in time, whoever opens the instance describes
 * the previous ones as those in force.
 */
#include "instance/instance_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"

int weir_instance_return(const char *name, struct weir_diag *diag)
{
	static const struct weir_reload_options options;
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	struct weir_diag messages = {};
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];
	int err = weir_instance_transition(name, WEIR_TRANSITION_RETURNED, NULL, &options, &result, &messages);

	if (err > 0) { /* another command was faster */
		weir_diag_free(&messages);
		return 0;
	}
	if (err) {
		weir_instance_options(name, option);
		snprintf(hint, sizeof(hint), "'weir rollback%s' or 'weir reload%s FILE...' repairs that", option,
			 option);
		weir_diag_warning(diag, NULL, NULL, hint,
				  "instance '%s' is back to its previous rules, as the last ones were not confirmed; "
				  "but commands may show the wrong ones: %s",
				  name, messages.count ? messages.entries[0].message : strerrorname_np(-err));
	} else {
		weir_diag_warning(
			diag, NULL, NULL, NULL,
			"the rules of instance '%s' were not confirmed in time: the previous ones are in force again",
			name);
	}
	weir_diag_free(&messages);
	return err;
}

/* The instance is in transition or broken. Once no other command is at work, it is complete, gone, or really broken. */
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
	struct weir_diag in_between = {}; /* the errors may be gone in a moment */
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
	/* The program has returned to the previous rules, but the descriptions do not say so yet. */
	if (weir_instance_return(name, diag))
		return 0; /* reported; the instance is opened as it was last described */
	weir_instance_free(TAKE_PTR(*ret_instance));
	return open_soon(name, waits_for_reload, ret_instance, diag);
}

int weir_instance_fail_unsettled(const char *name, struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	snprintf(hint, sizeof(hint), "'weir reload%s' repairs it", weir_instance_options(name, option));
	weir_diag_error(diag, NULL, NULL, hint, "a reload of instance '%s' was cut short", name);
	return -EAGAIN;
}

int weir_instance_open_listed(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	int err = open_listed(name, true, &instance, diag);

	if (!err && instance && !instance->is_settled)
		err = weir_instance_fail_unsettled(name, diag);
	if (!err && instance && instance->is_all_incompatible)
		err = weir_instance_fail_incompatible(instance, diag);
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

	assert(err || instance);
	if (!err && instance->is_all_incompatible)
		err = weir_instance_fail_incompatible(instance, diag);
	if (!err)
		*ret_instance = TAKE_PTR(instance);
	return err;
}

int weir_instance_expect_on(const char *name, const char *interface, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	char attached_as[IF_NAMESIZE];
	int err = weir_host_check_privilege(diag);

	if (!err)
		err = weir_instance_expect_attached(name, diag);
	if (err || !weir_word_is_pattern(interface))
		return err ? err : weir_instance_find_link(name, interface, attached_as, diag);
	err = weir_instance_open(name, &instance, diag);
	return err ? err : weir_instance_expect_wanted(instance, interface, diag);
}
