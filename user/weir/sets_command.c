// SPDX-License-Identifier: GPL-2.0-only
/* weir sets: the named sets in force. */
#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "report/status.h"
#include "weir/weir.h"

static const struct weir_command weir_sets_command = {
	.name = "sets",
	.options = "INjWCh",
	.means_attached = true,
	.about = "List the named sets of the rules in force: how many prefixes and labels each has, the file it came "
		 "from, and how long ago that file changed. 'weir run' takes over a file that changes; otherwise "
		 "'weir reload' does.",
	.example = "  weir sets\n"
		   "  weir sets --json",
};

static int list_sets(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_sets_view_free) struct weir_sets_view view = {};
	_cleanup_(weir_table_free) struct weir_table table = {};
	char words[WEIR_SETS_NOTE_WORDS];
	int err = weir_instance_open(options->instance, &instance, diag);

	if (!err)
		err = weir_instance_kept(instance, &history, diag);
	if (!err)
		err = weir_sets_read(instance, &view, diag);
	if (err)
		return err;
	if (options->wants_json)
		return weir_json_print(json_pack("{s:s, s:o}", "instance", options->instance, "sets",
						 weir_figures_list(weir_describe_set, NULL, view.sets, view.count,
								   sizeof(*view.sets))),
				       diag);
	if (!view.count)
		weir_diag_note(diag, "instance '%s' has no sets", options->instance);
	else
		weir_table_list(&table, weir_describe_set, NULL, view.sets, view.count, sizeof(*view.sets));
	if (view.note.refused_ns)
		weir_diag_warning(diag, NULL, NULL, "correct it: the next change is taken over",
				  "a change was refused, and the sets are as before: %s",
				  weir_sets_note_words(&view.note, words));
	weir_table_print(&table, stdout);
	return weir_flush_results(diag);
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_sets_command, argc, argv, list_sets);
}

const struct weir_command_entry weir_sets_entry = {&weir_sets_command, run_command,
						   "list the named sets in force, with their sizes and files"};
