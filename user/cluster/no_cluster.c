// SPDX-License-Identifier: GPL-2.0-only
/* Replaces the house in a build with make WITHOUT=cluster. */
#include "base/util.h"
#include "cli/options.h"
#include "cluster/cluster_rows.h"
#include "store/store.h"

static int refuse(const struct weir_place *place, const char *rule, struct weir_diag *diag)
{
	return weir_diag_error(diag, place, NULL,
			       "leave 'clusterMode' out, or use a weir that was built without WITHOUT=cluster",
			       "rule '%s' is shared by hosts, which this build of weir does not support", rule);
}

/* Report a shared rule now, rather than have a limit that stays at nothing. */
static int check(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].cluster)
			return refuse(&ruleset->rules[i].place, ruleset->rules[i].name, diag);
	return 0;
}

/* Another build may have attached it. */
static int follow(void **state, const struct weir_instance *instance, struct weir_diag *diag)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].cluster)
			return refuse(NULL, instance->rules[instance->rule_order[i]].name, diag);
	return 0;
}

static int fail(struct weir_diag *diag)
{
	return weir_diag_error(diag, NULL, NULL, "use a weir that was built without WITHOUT=cluster",
			       "this build of weir cannot share limits with other hosts");
}

static int describe(const struct weir_instance *instance, json_t **ret_document, struct weir_diag *diag)
{
	return fail(diag);
}

const struct weir_calculator weir_cluster_calculator = {
	.name = "cluster",
	.check = check,
	.follow = follow,
	.describe = describe,
};

static int act(const struct weir_options *options, struct weir_diag *diag)
{
	return fail(diag);
}

static const struct weir_command command = {
	.name = "cluster",
	.options = "h",
	.arguments = "...",
	.arguments_max = 2,
	.about = "This build of weir cannot share limits with other hosts.",
};

static int run_command(int argc, char **argv)
{
	return weir_command_run(&command, argc, argv, act);
}

const struct weir_command_entry weir_cluster_entry = {&command, run_command, "not in this build"};

const char *weir_store_version(void)
{
	return "no clusters";
}
