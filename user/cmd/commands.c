// SPDX-License-Identifier: GPL-2.0-only
/* The command table, which main() runs, --help and the man page list, and completion offers. */
#include "cmd.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "options.h"
#include "rules/scalars.h"

const struct weir_command_entry weir_commands[] = {
	{&weir_check_command, weir_cmd_check, "validate rule files; show what would be loaded and its memory"},
	{&weir_run_command, weir_cmd_run, "attach, control and stay: reload on SIGHUP, detach on SIGINT or SIGTERM"},
	{&weir_attach_command, weir_cmd_attach, "attach to interfaces and return; the limits stay in the kernel"},
	{&weir_reload_command, weir_cmd_reload, "replace the rules in force, atomically"},
	{&weir_diff_command, weir_cmd_diff, "show what a reload would change, keep and start empty"},
	{&weir_confirm_command, weir_cmd_confirm, "keep the rules of 'weir reload --confirm'"},
	{&weir_rollback_command, weir_cmd_rollback, "return to the rule set before the last reload"},
	{&weir_show_command, weir_cmd_show, "print the rule set in force as a rule file"},
	{&weir_detach_command, weir_cmd_detach, "take the limits off interfaces"},
	{&weir_control_command, weir_cmd_control, "move thresholds (WarmUp, MemoryAdaptive, ...) while it runs"},
	{&weir_status_command, weir_cmd_status, "show what is attached, and with which rules"},
	{&weir_stats_command, weir_cmd_stats, "show counters, and the last minute per resource"},
	{&weir_flows_command, weir_cmd_flows, "show the busiest flows, or those that lost packets"},
	{&weir_top_command, weir_cmd_top, "watch rules and the busiest flows, updated every second"},
	{&weir_events_command, weir_cmd_events, "follow drops and changes of state as they happen"},
	{&weir_explain_command, weir_cmd_explain, "show what would happen to a packet now, and why"},
	{&weir_block_command, weir_cmd_block, "drop all packets of sources for a while"},
	{&weir_allow_command, weir_cmd_allow, "let all packets of sources pass for a while"},
	{&weir_release_command, weir_cmd_release, "end penalties of flows"},
	{&weir_cluster_command, weir_cmd_cluster, "show the shares of limits that hosts share; forget a host"},
	{&weir_replay_command, weir_cmd_replay, "run the rules over a capture, in the capture's own time"},
	{&weir_suggest_command, weir_cmd_suggest, "measure which limits the traffic needs, and write a rule file"},
	{&weir_doctor_command, weir_cmd_doctor, "show what on this host would stop or bend limits"},
	{},
};

const struct weir_command_entry *weir_command_find(const char *name)
{
	for (const struct weir_command_entry *entry = weir_commands; entry->run; entry++)
		if (!strcmp(entry->command->name, name))
			return entry;
	return NULL;
}

const char *weir_command_nearest(const char *name)
{
	/* Two more commands are built into main(). */
	const char *names[ARRAY_SIZE(weir_commands) + 1] = {"help", "version"};
	const size_t own = 2;

	for (size_t i = 0; i + own < ARRAY_SIZE(names); i++)
		names[own + i] = weir_commands[i].command->name;
	return weir_command_synonym(name) ?: weir_nearest(name, names, ARRAY_SIZE(names), sizeof(names[0]));
}
