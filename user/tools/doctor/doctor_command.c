// SPDX-License-Identifier: GPL-2.0-only
/* weir doctor: what on this host would stop or distort a limit. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "control/calculator.h"
#include "state/examine.h"
#include "cli/terminal.h"
#include "doctor/doctor.h"

static const struct weir_option own_options[] = {
	{'i', true, "interface", "IFACE", "the interface, as an option"},
	{'r', true, "rules", "FILE...", "also check these rules against this host: memory, mode, offloads, store"},
	{},
};

static const struct weir_command weir_doctor_command = {
	.name = "doctor",
	.own_options = own_options,
	.options = "NjCh",
	.arguments = "IFACE",
	.arguments_max = SIZE_MAX,
	.about = "Examine an interface and this host. Show problems, which would stop weir (the exit code is then "
		 "1), and notes about what would make its limits inaccurate, and what to do about each. Changes "
		 "nothing." WEIR_ABOUT_FILES,
	.example = "  weir doctor eth0\n  weir doctor -r /etc/weir/weir.yaml eth0",
	.exits = "0 no problem, 1 there is one, or it failed, 2 the request or a rule file is wrong",
};

/* The last argument is the interface, unless it is an option; the arguments before it are further rule files of a -r.
 */
static int read_rules(const struct weir_options *options, struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	const size_t more = options->argument_count - !options->interface_count,
		     count = options->rule_file_count + more;
	_cleanup_(weir_freep) const char **files = calloc(count + 1, sizeof(*files));

	if (!files)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the rules");
	for (size_t i = 0; i < count; i++)
		files[i] = i < options->rule_file_count ? options->rule_files[i]
							: options->arguments[i - options->rule_file_count];
	return weir_ruleset_read(files, count, ret_ruleset, diag);
}

static const char *const level_names[] = {
	[WEIR_FINDING_OK] = "ok",
	[WEIR_FINDING_NOTE] = "note",
	[WEIR_FINDING_PROBLEM] = "problem",
};

static size_t count_problems(const struct weir_findings *findings)
{
	size_t problems = 0;

	for (size_t i = 0; i < findings->count; i++)
		problems += findings->finding[i].level == WEIR_FINDING_PROBLEM;
	return problems;
}

static json_t *describe(const char *interface, const struct weir_findings *findings)
{
	json_t *list = json_array();

	for (size_t i = 0; i < findings->count; i++) {
		const struct weir_finding *finding = &findings->finding[i];

		weir_json_append(&list,
				 json_pack("{s:s, s:s, s:o, s:o*}", "level", level_names[finding->level], "topic",
					   finding->topic, "finding", weir_json_text(finding->text), "advice",
					   finding->advice[0] ? weir_json_text(finding->advice) : NULL));
	}
	return json_pack("{s:o, s:I, s:o}", "interface", weir_json_text(interface), "problems",
			 (json_int_t)count_problems(findings), "findings", list);
}

static void print_text(const struct weir_findings *findings)
{
	static const char *const level_inks[] = {
		[WEIR_FINDING_OK] = "",
		[WEIR_FINDING_NOTE] = "\033[1;33m",
		[WEIR_FINDING_PROBLEM] = "\033[1;31m",
	};
	const bool is_coloured = weir_terminal_has_colours(stdout);

	for (size_t i = 0; i < findings->count; i++) {
		const struct weir_finding *finding = &findings->finding[i];

		printf("%s%-8s%s %-10s %s\n", is_coloured ? level_inks[finding->level] : "",
		       level_names[finding->level], is_coloured ? "\033[0m" : "", finding->topic, finding->text);
		if (finding->advice[0])
			printf("%-19s %s\n", "", finding->advice);
	}
}

static int find_interface(const struct weir_options *options, const char **ret_interface, struct weir_diag *diag)
{
	const size_t given = options->interface_count + options->argument_count;

	if (!given)
		return weir_diag_error(diag, NULL, NULL, "write 'weir doctor IFACE'", "no interface given");
	if (options->interface_count > 1 || (!options->rule_file_count && given > 1))
		return weir_diag_error(diag, NULL, NULL, "name rule files with -r: 'weir doctor -r FILE... IFACE'",
				       "'%s' is one interface too many: 'weir doctor' takes one",
				       options->interface_count > 1 ? options->interfaces[1]
								    : options->arguments[options->argument_count - 1]);
	*ret_interface =
		options->interface_count ? options->interfaces[0] : options->arguments[options->argument_count - 1];
	if (!weir_interface_name_is_valid(*ret_interface) || strpbrk(*ret_interface, "!*?["))
		return weir_diag_error(diag, NULL, NULL, "'ip link' shows the interfaces",
				       "'%s' is not a valid interface name", *ret_interface);
	return 0;
}

/* Returns the number of problems, or -errno. */
static int examine(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	const char *interface = NULL;
	struct weir_findings findings;
	int err = find_interface(options, &interface, diag);

	if (!err)
		err = weir_options_enter_netns(&weir_doctor_command, options, diag);
	if (!err && options->rule_file_count)
		err = read_rules(options, &ruleset, diag);
	if (!err)
		err = weir_examine(interface, &findings, diag);
	if (!err && ruleset)
		err = weir_examine_rules(interface, ruleset, &findings, diag);
	if (err)
		return err;
	if (ruleset)
		weir_calculators_examine(ruleset, &findings);
	if (options->wants_json) {
		err = weir_json_print(describe(interface, &findings), diag);
	} else {
		print_text(&findings);
		err = weir_flush_results(diag);
	}
	return err ? err : (int)count_problems(&findings);
}

static int run_command(int argc, char **argv)
{
	_cleanup_(weir_options_free) struct weir_options options = {};
	struct weir_diag diag = {};
	int result, exit_code = weir_options_parse(&weir_doctor_command, argc, argv, &options);

	if (exit_code)
		return exit_code - 1;
	result = examine(&options, &diag);
	exit_code = weir_exit_code(result < 0 ? result : 0, &diag);
	return result > 0 ? WEIR_EXIT_FAILED : exit_code;
}

const struct weir_command_entry weir_doctor_entry = {&weir_doctor_command, run_command,
						     "show what on this host would stop or bend limits"};
