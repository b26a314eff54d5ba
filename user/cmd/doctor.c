// SPDX-License-Identifier: GPL-2.0-only
/* weir doctor: what on this host would stop or bend a limit. */
#include <errno.h>

#include "base/util.h"
#include "cmd.h"
#include "host/host.h"
#include "options.h"
#include "print.h"
#include "watch/examine.h"

const struct weir_command weir_doctor_command = {
	.name = "doctor",
	.options = "Njh",
	.arguments = "IFACE",
	.arguments_min = 1,
	.arguments_max = 1,
	.about = "Look at an interface and at this host, and say what would stop weir (a problem; then the exit code\n"
		 "is 1) or bend its limits (a note), and what to do. Changes nothing.",
	.example = "  weir doctor eth0",
};

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
	for (size_t i = 0; i < findings->count; i++) {
		const struct weir_finding *finding = &findings->finding[i];

		printf("%-8s %-10s %s\n", level_names[finding->level], finding->topic, finding->text);
		if (finding->advice[0])
			printf("%-19s %s\n", "", finding->advice);
	}
}

/* Returns how many problems there are, or -errno. */
static int examine(const struct weir_options *options, struct weir_diag *diag)
{
	const char *interface = options->arguments[0];
	struct weir_findings findings;
	int err;

	if (!weir_interface_name_is_valid(interface))
		return weir_diag_error(diag, NULL, NULL, NULL, "'%s' cannot be the name of an interface", interface);
	err = options->netns ? weir_host_enter_netns(options->netns, diag) : 0;
	if (!err)
		err = weir_examine(interface, &findings, diag);
	if (err)
		return err;
	if (options->wants_json) {
		err = weir_json_print(describe(interface, &findings), diag);
	} else {
		print_text(&findings);
		err = weir_flush_results(diag);
	}
	return err ? err : (int)count_problems(&findings);
}

int weir_cmd_doctor(int argc, char **argv)
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
