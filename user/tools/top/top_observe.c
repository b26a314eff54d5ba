// SPDX-License-Identifier: GPL-2.0-only
#include "top/top.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "sandbox/session.h"
#include "instance/instance.h"
#include "rules/history.h"

/* Rules of several resources may have the same name; all of them are changed. */
static int set_observes(struct weir_ruleset *ruleset, const char *rule, bool observes, struct weir_diag *diag)
{
	bool is_found = false;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		if (strcmp(ruleset->rules[i].name, rule) != 0)
			continue;
		ruleset->rules[i].observes = observes;
		is_found = true;
	}
	if (is_found)
		return 0;
	weir_diag_error(diag, NULL, NULL, NULL, "rule '%s' no longer exists", rule);
	return -ENOENT;
}

int weir_top_observe(const char *instance, const char *rule, bool observes, struct weir_diag *diag)
{
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	_cleanup_(weir_instance_freep) struct weir_instance *attached = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	const struct weir_reload_options options = {};
	int err = weir_instance_open(instance, &attached, diag);

	if (err)
		return err;
	err = weir_instance_kept(attached, &history, diag);
	if (err)
		return err;
	err = weir_kept_set_read(history.sets[0], &ruleset, diag);
	if (!err)
		err = set_observes(ruleset, rule, observes, diag);
	if (!err && !observes)
		err = weir_session_check_reload(instance, ruleset, diag);
	return err ? err : weir_instance_reload(instance, ruleset, &options, &result, diag);
}
