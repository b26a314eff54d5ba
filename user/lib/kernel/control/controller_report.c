// SPDX-License-Identifier: GPL-2.0-only
/* What others can read about a controller. */
#include <bpf/bpf.h>
#include <errno.h>

#include "base/util.h"
#include "control/controller_internal.h"
#include "host/host.h"
#include "host/memory.h"
#include "program/array.h"
#include "tables/entry_state.h"

static bool needs_controller(const struct weir_rule_info *rule)
{
	return rule->moves || rule->cluster || weir_needs_samples(rule);
}

static enum weir_controller_state state_of(const struct weir_control *control, uint32_t rules, uint64_t now_ns)
{
	if (control->heartbeat_ns && now_ns < control->heartbeat_ns + control->validity_ns)
		return WEIR_CONTROLLER_RUNNING;
	if (!rules)
		return WEIR_CONTROLLER_NOT_NEEDED;
	return control->heartbeat_ns ? WEIR_CONTROLLER_STALE : WEIR_CONTROLLER_ABSENT;
}

/* The threshold that the program would use now. */
static uint64_t in_force(const struct weir_rule_info *rule, const struct weir_pushed *pushed, bool is_running)
{
	return (rule->moves && is_running ? pushed->word : rule->threshold_word) & WEIR_THRESHOLD_MASK;
}

static void look_at_memory(const struct weir_instance *instance, struct weir_controller_report *report)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *rule = &instance->rules[instance->rule_order[i]];

		report->needs_memory |= rule->moves && !weir_control_warms_up(rule);
	}
	if (report->needs_memory)
		report->memory_err = weir_memory_read_once(instance->info.memory_cgroup, &report->used_bytes);
}

/* Rules that hosts share. Their thresholds do not depend on whether a controller runs. */
static int look_at_shares(const struct weir_instance *instance, uint64_t *thresholds, uint64_t now_ns,
			  struct weir_diag *diag)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		uint32_t slot = instance->rule_order[i];
		struct weir_shared_threshold shared;

		if (!instance->rules[slot].cluster)
			continue;
		if (instance->is_incompatible[WEIR_TABLE_SHARES] ||
		    bpf_map_lookup_elem(instance->map_fd[WEIR_TABLE_SHARES], &slot, &shared))
			return weir_diag_fail(diag, errno, NULL, "cannot read the shares of instance '%s'",
					      instance->name);
		thresholds[i] = weir_share_in_force(&shared, now_ns);
	}
	return 0;
}

int weir_controller_look(const struct weir_instance *instance, struct weir_controller_report *ret_report,
			 struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_pushed *pushed = calloc(instance->rule_count + 1, sizeof(*pushed));
	_cleanup_(weir_freep) uint64_t *thresholds = calloc(instance->rule_count + 1, sizeof(*thresholds));
	struct weir_controller_report report = {};
	uint64_t now_ns = weir_host_now_ns();
	struct weir_control control = {};
	int err = weir_instance_expect_tables(instance, LOOK_TABLES, "the thresholds", diag);

	if (err)
		return err;
	err = pushed && thresholds ? 0 : -ENOMEM;
	if (!err)
		err = weir_array_read(instance->map_fd[WEIR_TABLE_CONTROL], &control, 1, sizeof(control));
	if (!err)
		err = weir_array_read(instance->thresholds_fd, pushed, instance->rule_count, sizeof(*pushed));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the thresholds of instance '%s'", instance->name);
	for (uint32_t i = 0; i < instance->rule_count; i++)
		report.rule_count += needs_controller(&instance->rules[instance->rule_order[i]]);
	report.state = state_of(&control, report.rule_count, now_ns);
	report.pid = weir_controller_find_holder(instance->name);
	if (report.state == WEIR_CONTROLLER_STALE)
		report.stale_ns = now_ns - control.heartbeat_ns - control.validity_ns;
	for (uint32_t i = 0; i < instance->rule_count; i++)
		thresholds[i] = in_force(&instance->rules[instance->rule_order[i]], &pushed[i],
					 report.state == WEIR_CONTROLLER_RUNNING);
	err = look_at_shares(instance, thresholds, now_ns, diag);
	if (err)
		return err;
	look_at_memory(instance, &report);
	report.thresholds = TAKE_PTR(thresholds);
	*ret_report = report;
	return 0;
}

void weir_controller_warn(const char *name, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];
	struct weir_controller_report report = {};
	struct weir_diag mistakes = {};
	int err = weir_instance_open_now(name, &instance, &mistakes);

	weir_diag_free(&mistakes);
	if (err || !instance->is_settled)
		return; /* the next command is already at work, and will warn itself */
	err = weir_controller_look(instance, &report, &mistakes);
	free(report.thresholds);
	/* The command has done its job, so this failure is only a warning. */
	weir_diag_move(diag, &mistakes, true);
	if (err)
		return;
	if (report.memory_err)
		weir_controller_warn_of_memory(instance, report.memory_err, diag);
	if (report.state != WEIR_CONTROLLER_STALE && report.state != WEIR_CONTROLLER_ABSENT)
		return;
	snprintf(hint, sizeof(hint),
		 "start 'weir control%s'; until then WarmUp rules use their plain threshold, MemoryAdaptive rules use "
		 "highMemUsageThreshold, rules that hosts share use what the store last left them, and Load and "
		 "CpuUsage rules admit",
		 weir_instance_options(name, option));
	weir_diag_warning(diag, NULL, NULL, hint, "%u rule%s of instance '%s' need%s a controller, but none is running",
			  report.rule_count, report.rule_count == 1 ? "" : "s", name,
			  report.rule_count == 1 ? "s" : "");
}
