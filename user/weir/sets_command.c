// SPDX-License-Identifier: GPL-2.0-only
/* weir sets: the named sets in force. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "instance/instance.h"
#include "rules/history.h"
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

/* How long ago the file changed. Returns false if it is not there. */
static bool find_age(const char *path, uint64_t *ret_ns)
{
	struct timespec now;
	struct stat status;
	int64_t age_ns;

	if (!path || stat(path, &status))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	age_ns = (int64_t)(now.tv_sec - status.st_mtim.tv_sec) * WEIR_NSEC_PER_SEC + now.tv_nsec -
		 status.st_mtim.tv_nsec;
	*ret_ns = age_ns > 0 ? age_ns : 0;
	return true;
}

static void describe_set(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_set *set = record;
	char words[WEIR_WORDS_BYTES];
	uint64_t age_ns = 0;
	const bool is_there = find_age(set->file, &age_ns);

	WEIR_TEXT(line, "name", "SET", set->name);
	WEIR_COUNT(line, "prefixCount", ">PREFIXES", set->entry_count);
	WEIR_COUNT(line, "labelCount", ">LABELS", set->label_count);
	WEIR_FIGURE(line, "fileChangedSeconds", "CHANGED", is_there ? json_real(age_ns / 1e9) : json_null(), "%s%s",
		    is_there	? weir_format_age(age_ns, words)
		    : set->file ? "file is gone"
				: "-",
		    is_there ? " ago" : "");
	WEIR_FIGURE(line, "file", "FILE", set->file ? weir_json_text(set->file) : json_null(), "%s",
		    set->file ?: "the rule file");
}

static int list_sets(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_table_free) struct weir_table table = {};
	int err = weir_instance_open(options->instance, &instance, diag);

	if (err)
		return err;
	err = weir_instance_kept(instance, &history, diag);
	if (err)
		return err;
	if (weir_kept_set_read(history.sets[0], &ruleset, diag))
		return -EIO;
	if (options->wants_json)
		return weir_json_print(json_pack("{s:s, s:o}", "instance", options->instance, "sets",
						 weir_figures_list(describe_set, NULL, ruleset->sets,
								   ruleset->set_count, sizeof(*ruleset->sets))),
				       diag);
	if (!ruleset->set_count)
		weir_diag_note(diag, "instance '%s' has no sets", options->instance);
	else
		weir_table_list(&table, describe_set, NULL, ruleset->sets, ruleset->set_count, sizeof(*ruleset->sets));
	weir_table_print(&table, stdout);
	return weir_flush_results(diag);
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_sets_command, argc, argv, list_sets);
}

const struct weir_command_entry weir_sets_entry = {&weir_sets_command, run_command,
						   "list the named sets in force, with their sizes and files"};
