// SPDX-License-Identifier: GPL-2.0-only
/* The command table: what main runs, --help and the man page list, and completion offers. */
#include "cmd.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "options.h"
#include "rules/scalars.h"

const struct weir_command_entry weir_commands[] = {
	{&weir_check_command, weir_cmd_check, "validate rule files, show what would be loaded and the memory it takes"},
	{&weir_run_command, weir_cmd_run, "attach, control and stay: reload on SIGHUP, detach on SIGINT or SIGTERM"},
	{&weir_attach_command, weir_cmd_attach, "attach to interfaces and return; it goes on in the kernel"},
	{&weir_reload_command, weir_cmd_reload, "replace the rules of what is attached, atomically"},
	{&weir_diff_command, weir_cmd_diff, "what a reload would change, keep and begin anew"},
	{&weir_confirm_command, weir_cmd_confirm, "keep rules that were reloaded to be confirmed"},
	{&weir_rollback_command, weir_cmd_rollback, "return to the rule set before the last reload"},
	{&weir_show_command, weir_cmd_show, "the rule set in force, as a rule file"},
	{&weir_detach_command, weir_cmd_detach, "take it off again"},
	{&weir_control_command, weir_cmd_control, "move the thresholds of what is attached, as long as it runs"},
	{&weir_status_command, weir_cmd_status, "what is attached, and with which rules"},
	{&weir_stats_command, weir_cmd_stats, "counters, and the last minute per resource"},
	{&weir_flows_command, weir_cmd_flows, "the busiest flows"},
	{&weir_top_command, weir_cmd_top, "rules and busiest flows, anew each second"},
	{&weir_events_command, weir_cmd_events, "what happens, as it does: drops, and changes of state"},
	{&weir_explain_command, weir_cmd_explain, "what would become of a packet now, and why"},
	{&weir_block_command, weir_cmd_block, "drop the packets of sources for a while"},
	{&weir_allow_command, weir_cmd_allow, "let the packets of sources pass for a while"},
	{&weir_release_command, weir_cmd_release, "end penalties of flows"},
	{&weir_cluster_command, weir_cmd_cluster, "limits that hosts share: who has what; forget a host"},
	{&weir_replay_command, weir_cmd_replay, "run the BPF program over a capture, in the capture's own time"},
	{&weir_doctor_command, weir_cmd_doctor, "what on this host would stop or bend a limit"},
	{},
};

const struct weir_command_entry *weir_command_find(const char *name)
{
	for (const struct weir_command_entry *entry = weir_commands; entry->run; entry++)
		if (!strcmp(entry->command->name, name))
			return entry;
	return NULL;
}

/* What other tools call it. */
static const struct {
	const char *theirs, *ours;
} synonyms[] = {
	{"ban", "block"},   {"unban", "block --remove"}, {"unblock", "block --remove"},
	{"log", "events"},  {"logs", "events"},		 {"start", "run"},
	{"stop", "detach"},
};

const char *weir_command_nearest(const char *name)
{
	const char *names[ARRAY_SIZE(weir_commands) - 1];

	for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
		if (!strcmp(name, synonyms[i].theirs))
			return synonyms[i].ours;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		names[i] = weir_commands[i].command->name;
	return weir_nearest(name, names, ARRAY_SIZE(names), sizeof(names[0]));
}
