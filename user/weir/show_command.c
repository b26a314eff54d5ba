// SPDX-License-Identifier: GPL-2.0-only
/* weir show: the rule set in force, as a rule file. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "rules/emit.h"
#include "weir/weir.h"

static const struct weir_command weir_show_command = {
	.name = "show",
	.options = "bINjCh",
	.means_attached = true,
	.about = "Print the rule set in force as one rule file. Loading that file gives the same set, whatever files "
		 "and lists it came from, even Sentinel's. It has all names, but no defaults. The comment at the top "
		 "names the original files and has a hash; sets with the same hash are the same. --json prints the "
		 "set as JSON, which can be loaded, too. The instance keeps the set, so it does not need the files.",
	.example = "  weir show >rules.yaml\n"
		   "  weir show --before",
};

/* A file name may contain characters that would end the comment. */
static void print_files(const char *files)
{
	while (*files) {
		size_t bytes = strcspn(files, "\n");

		printf("#   ");
		for (size_t i = 0; i < bytes; i++)
			putchar((unsigned char)files[i] < ' ' || files[i] == 0x7f ? '?' : files[i]);
		putchar('\n');
		files += bytes + (files[bytes] != '\0');
	}
}

static void print_comment(const struct weir_options *options, const struct weir_kept_set *set)
{
	static const char *const transitions[WEIR_TRANSITION_COUNT] = {
		[WEIR_TRANSITION_LOADED] = "loaded from",
		[WEIR_TRANSITION_ROLLBACK] = "by a rollback, and loaded from",
		[WEIR_TRANSITION_RETURNED] = "returned, as the next set was not confirmed, and loaded from",
		[WEIR_TRANSITION_LAST_GOOD] = "the last good one, as the rule files were wrong, loaded from",
	};

	printf("# instance %s, generation %llu, hash %016llx, %s\n", options->instance,
	       (unsigned long long)set->generation, (unsigned long long)set->digest, transitions[set->transition]);
	print_files(set->files);
}

static int print(const struct weir_options *options, const struct weir_kept_set *set, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	int err = weir_kept_set_read(set, &ruleset, diag);

	if (err)
		return -EIO;
	if (!options->wants_json)
		print_comment(options, set);
	weir_ruleset_emit(ruleset, options->wants_json ? WEIR_FORM_JSON : WEIR_FORM_YAML, true, stdout);
	return weir_flush_results(diag);
}

static int show(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	int err = weir_instance_open(options->instance, &instance, diag);

	if (err)
		return err;
	err = weir_instance_kept(instance, &history, diag);
	if (err)
		return err;
	if (!history.sets[options->means_before]) {
		weir_diag_error(diag, NULL, NULL, "it has one after the next reload",
				"instance '%s' has no rule set before the one in force", options->instance);
		return -ENOENT;
	}
	return print(options, history.sets[options->means_before], diag);
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_show_command, argc, argv, show);
}

const struct weir_command_entry weir_show_entry = {&weir_show_command, run_command,
						   "print the rule set in force as a rule file"};
