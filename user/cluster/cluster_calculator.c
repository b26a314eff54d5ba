// SPDX-License-Identifier: GPL-2.0-only
/* The row of limits that hosts share, in the list of calculators. */
#include "base/util.h"
#include "cluster/cluster_rows.h"
#include "cluster/ledgers.h"
#include "store/sharing.h"

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
	.examine = weir_examine_store,
	.describe = describe,
	.prepare_farewell = weir_farewell_prepare,
	.say_farewell = weir_farewell_say,
	.free_farewell = weir_farewell_free,
};
