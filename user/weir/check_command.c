// SPDX-License-Identifier: GPL-2.0-only
/* weir check: is this file correct, what would be loaded, and what would it cost? Needs no root. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/diag.h"
#include "base/util.h"
#include "cli/command.h"
#include "compile/compile.h"
#include "compile/tcp_room.h"
#include "host/host.h"
#include "host/memory.h"
#include "kind/kind.h"
#include "cli/options.h"
#include "pace/pace.h"
#include "cli/print.h"
#include "weir/print_check.h"
#include "rules/ruleset.h"
#include "rules/scalars.h"
#include "weir/weir.h"

struct check_options {
	bool wants_json;
	uint32_t cpus; /* 0: as many as this machine can have */
	bool lists_memory;
};

static const struct weir_option own_options[] = {
	{'c', false, "cpus", "N", "memory on a machine with N possible CPUs (default: this one)"},
	{'m', false, "memory", NULL, "also list what the memory is for"},
	{},
};

static const struct weir_command weir_check_command = {
	.name = "check",
	.own_options = own_options,
	.options = "jCh",
	.arguments = "FILE...",
	.about = "Validate rule files, and print what would be loaded and how much memory it takes. Loads nothing and "
		 "needs no root. Several files are merged in the order given; '-' is standard input." WEIR_ABOUT_FILES,
	.example = "  weir check rules/dns-per-client.yaml\n"
		   "  weir check --memory --cpus 16 rules/dns-per-client.yaml",
	.exits = "0 the files are right, 1 the check itself failed, 2 a file or the request is wrong",
};

/* A check is about the file, not about this host: every interface counts as present, with an ifindex of its own, and
 * those that are missing here are reported.
 */
struct fake_interfaces {
	char (*names)[IF_NAMESIZE];
	size_t count;
	struct weir_diag *diag;
};

static uint32_t number_interface(const char *name, void *data)
{
	struct fake_interfaces *interfaces = data;
	char(*slot)[IF_NAMESIZE];

	for (size_t i = 0; i < interfaces->count; i++)
		if (!strcmp(interfaces->names[i], name))
			return i + 1;
	slot = weir_array_add((void **)&interfaces->names, interfaces->count, IF_NAMESIZE);
	if (!slot)
		return 0;
	snprintf(*slot, IF_NAMESIZE, "%s", name);
	interfaces->count++;
	if (!weir_host_find_ifindex(name, NULL))
		weir_diag_warning(interfaces->diag, NULL, NULL, NULL, "this host has no interface '%s' now", name);
	return interfaces->count;
}

static int compile(const struct weir_ruleset *ruleset, uint32_t cpus, struct weir_image **ret_image,
		   struct weir_diag *diag)
{
	struct fake_interfaces interfaces = {.diag = diag};
	struct weir_compile_options options = {
		.cpus = cpus,
		.ifindex = number_interface,
		.ifindex_data = &interfaces,
	};
	int err = weir_image_build(ruleset, &options, ret_image, diag);

	free(interfaces.names);
	return err;
}

/* The cgroup need not exist where rules are checked, but a typo would be noticed only when memory is short. */
static void warn_of_memory(const struct weir_settings *settings, struct weir_diag *diag)
{
	uint64_t used_bytes;
	int err = settings->memory_cgroup ? weir_memory_read_once(settings->memory_cgroup, &used_bytes) : 0;

	if (err)
		weir_diag_warning(diag, NULL, NULL,
				  "until it can be read, MemoryAdaptive rules use highMemUsageThreshold",
				  "the memory of cgroup '%s' cannot be read here: %s", settings->memory_cgroup,
				  weir_memory_explain(settings->memory_cgroup, err));
}

/* When a window is full, all packets of a connection are dropped until its buckets leave the window, and TCP starts
 * over: the limit holds, but TCP does not come near it (docs/windows.md, Token buckets). That is not a mistake, so it
 * is a note, given only here.
 */
static void note_bytes_of_tcp(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	const struct weir_ruleset_rule *first = NULL;
	size_t others = 0;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		/* Outgoing packets do not matter here: a sender on this host learns of each drop at once. Nor
		 * does fairBy, which tokens cannot have.
		 */
		if (!rule->counts_bytes || rule->fair_by.fields || !weir_kind_of(rule)->keeps_window || rule->system ||
		    !weir_match_limits_tcp(&ruleset->resources[rule->resource].match) ||
		    weir_match_directions(&ruleset->resources[rule->resource].match) == WEIR_MATCHES_OUT)
			continue;
		others += first != NULL;
		first = first ?: rule;
	}
	if (first)
		weir_diag_note(diag,
			       "rule '%s'%s limits TCP bytes with a '%s' window: TCP then reaches 63 to 79 %% of the "
			       "limit; with 'window: tokens' it reaches 92 to 99 %%",
			       first->name, others ? ", like others," : "", weir_window_names[first->window]);
}

/* The result goes to stdout or, for JSON, to *ret_document. */
static int check(char **files, int file_count, const struct check_options *options, json_t **ret_document,
		 struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	/* Only attach knows whether a device accepts larger super-frames. */
	const struct weir_tcp_device usual_device = {.frame_bytes = WEIR_SUPER_FRAME_BYTES, .segments_max = UINT32_MAX};
	struct weir_image_memory memory;
	struct weir_tcp_room room;
	int cpus = options->cpus ? (int)options->cpus : weir_host_cpus();
	int err;

	if (cpus < 1)
		return weir_diag_fail(diag, -cpus, "give the number with --cpus", "cannot read the number of CPUs");
	err = weir_ruleset_read((const char *const *)files, file_count, &ruleset, diag);
	if (err)
		return err;
	/* Both compilations report all their mistakes. */
	err = compile(ruleset, cpus, &image, diag);
	if (weir_ruleset_check_memory(ruleset, weir_memory_total_bytes(ruleset->settings.memory_cgroup), diag) && !err)
		err = -EINVAL;
	if (err)
		return err;
	if (image->config.paces) {
		/* Warn if this host cannot pace, even though the file is correct. */
		struct weir_pace_ability ability;

		weir_pace_probe(&ability);
		if (ability.answer != WEIR_PACE_YES)
			weir_diag_warning(diag, NULL, NULL, ability.advice, "%s", ability.text);
	}
	warn_of_memory(&ruleset->settings, diag);
	note_bytes_of_tcp(ruleset, diag);
	if (weir_tcp_room_is_short(ruleset, &usual_device, &room))
		weir_diag_note(diag, "%s; %s", room.text, room.advice);
	weir_image_memory(image, cpus, &memory);
	if (options->wants_json) {
		*ret_document = weir_json_checked(ruleset, image, &memory, cpus);
		return *ret_document ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot describe the rules");
	}
	weir_print_checked(ruleset, image, &memory, cpus, options->lists_memory);
	return weir_flush_results(diag);
}

static int take_option(void *data, int option, const char *argument)
{
	struct check_options *options = data;
	struct weir_refusal refusal;
	uint64_t cpus;

	switch (option) {
	case 'j':
		options->wants_json = true;
		return 0;
	case 'm':
		options->lists_memory = true;
		return 0;
	case 'c':
		if (weir_parse_number(argument, 1, WEIR_CPUS_MAX, &cpus, &refusal)) {
			fprintf(stderr, "weir check: --cpus: %s: %s\n", refusal.message, refusal.hint);
			return -EINVAL;
		}
		options->cpus = cpus;
		return 0;
	}
	return -EINVAL;
}

/* Print the document with all messages about the files, which are then not repeated on stderr. Takes ownership of the
 * document.
 */
static int print_json(json_t *document, int err, struct weir_diag *diag)
{
	int printed;

	weir_diag_sort(diag);
	weir_json_add_diag(diag, document);
	weir_diag_free(diag);
	printed = weir_json_print(document, diag);
	return err ?: printed;
}

static int run_command(int argc, char **argv)
{
	struct check_options options = {};
	struct weir_diag diag = {};
	json_t *document = NULL;
	int err, exit_code = weir_options_read(&weir_check_command, argc, argv, false, take_option, &options);

	if (exit_code)
		return exit_code - 1;
	if (optind == argc) {
		fputs("weir check: no rule file given: write 'weir check FILE...'; 'weir check --help' shows an "
		      "example\n",
		      stderr);
		return WEIR_EXIT_WRONG;
	}
	err = check(argv + optind, argc - optind, &options, &document, &diag);
	if (options.wants_json)
		err = print_json(document ?: json_object(), err, &diag);
	return weir_exit_code(err, &diag);
}

const struct weir_command_entry weir_check_entry = {&weir_check_command, run_command,
						    "validate rule files; show what would be loaded and its memory"};
