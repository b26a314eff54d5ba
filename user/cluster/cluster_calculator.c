// SPDX-License-Identifier: GPL-2.0-only
/* The row of limits that hosts share, in the list of calculators. */
#include "base/util.h"
#include "cluster/cluster_rows.h"
#include "cluster/examine_store.h"
#include "cluster/ledgers.h"
#include "store/farewell.h"
#include "store/sharing.h"
#include "store/store.h"

/* Report features that this build lacks now, rather than have a limit that stays at nothing. */
static int check(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].cluster && !weir_store_is_built())
			return weir_diag_error(
				diag, &ruleset->rules[i].place, NULL,
				"leave 'clusterMode' out, or use a weir that was built without WITHOUT=cluster",
				"rule '%s' is shared by hosts, which this build of weir does not support",
				ruleset->rules[i].name);
	return 0;
}

static int describe(const struct weir_instance *instance, json_t **ret_document, struct weir_diag *diag)
{
	_cleanup_(weir_cluster_view_free) struct weir_cluster_view view = {};
	int err = weir_cluster_view_look(instance, &view, diag);

	if (!err)
		*ret_document = weir_cluster_describe(&view);
	return err;
}

const struct weir_calculator weir_cluster_calculator = {
	.name = "cluster",
	.follow = weir_sharing_follow,
	.free = weir_sharing_free,
	.poll = weir_sharing_poll,
	.due_ns = weir_sharing_due_ns,
	.step = weir_sharing_step,
	.leave = weir_sharing_leave,
	.rule_count = weir_sharing_rule_count,
	.check = check,
	.examine = weir_examine_store,
	.describe = describe,
	.prepare_farewell = weir_farewell_prepare,
	.say_farewell = weir_farewell_say,
	.free_farewell = weir_farewell_free,
};
