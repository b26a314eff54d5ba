// SPDX-License-Identifier: GPL-2.0-only
/* weir block, weir allow: sources that are denied or allowed for a while. */
#include <errno.h>
#include <string.h>

#include "base/text_file.h"
#include "base/util.h"
#include "cmd.h"
#include "explain/session.h"
#include "options.h"
#include "print.h"
#include "rules/quantity.h"
#include "rules/values.h"
#include "timed/timed.h"

#define INPUT_BYTES_MAX (64ull << 20) /* a million long lines. Chosen, not derived */
#define MISTAKES_MAX 20		      /* that are told */
#define STANDARD_INPUT "standard input"

const struct weir_command weir_block_command = {
	.name = "block",
	.options = "FlRaINXjCh",
	.means_attached = true,
	.changes_it = true,
	.arguments = "SOURCE...",
	.arguments_max = SIZE_MAX,
	.about =
		"Drop all packets of sources for a while: addresses, or up to 4,096 prefixes. It ends by itself, in "
		"the\n"
		"kernel, and a reload keeps it. Blocked again, a source is blocked for the new time from now on.\n"
		"'-' reads lines from standard input: a source, and perhaps a time of its own. Bad lines are told, "
		"and\n"
		"exit 1 says so; the others are blocked.\n"
		"With the lists 'allow' and 'deny' of the rule files and with 'weir allow', the longest prefix wins,\n"
		"and to block wins over to allow on a tie. settings.timedEntries says for how many addresses there is\n"
		"room. To block the source of the SSH session that it is typed in, or every address (0.0.0.0/0, ::/0), "
		"is\n"
		"refused without --force.",
	.example = "  weir block 192.0.2.7 2001:db8:1::/48 --for 1h\n"
		   "  weir block - --for 10m <addresses\n"
		   "  weir block --list\n"
		   "  weir block --remove 192.0.2.7",
};

const struct weir_command weir_allow_command = {
	.name = "allow",
	.options = "FlRaINXjCh",
	.means_attached = true,
	.changes_it = true,
	.arguments = "SOURCE...",
	.arguments_max = SIZE_MAX,
	.about =
		"Let all packets of sources pass for a while, before any rule: addresses, or up to 4,096 prefixes. It\n"
		"ends by itself, in the kernel, and a reload keeps it. Every address (0.0.0.0/0, ::/0) needs --force.\n"
		"'weir block --help' says more.",
	.example = "  weir allow 192.0.2.7 --for 1h30m\n"
		   "  weir allow --list\n"
		   "  weir allow --remove --all",
};

/* ---- the request ---- */

struct request {
	const struct weir_options *options;
	struct weir_timed_order *orders;
	size_t count;
	uint64_t lasts_ns; /* of --for; 0: it was not given, or orders end */
	size_t mistakes;   /* in arguments and lines */
	size_t bad_lines;  /* of these, in lines */
	struct weir_diag *diag;
};

static void free_request(struct request *request)
{
	free(request->orders);
}

static void complain(struct request *request, const struct weir_place *place, const struct weir_refusal *refusal)
{
	request->bad_lines += place != NULL;
	if (request->mistakes++ < MISTAKES_MAX)
		weir_diag_error(request->diag, place, NULL, refusal->hint[0] ? refusal->hint : NULL, "%s",
				refusal->message);
}

static int read_order(const struct request *request, const char *source, const char *lasts,
		      struct weir_timed_order *order, struct weir_refusal *refusal)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	order->lasts_ns = request->lasts_ns;
	if (weir_parse_network(source, &order->prefix, refusal) ||
	    (lasts && weir_parse_duration(lasts, &order->lasts_ns, refusal)))
		return -EINVAL;
	if (request->options->removes) {
		order->lasts_ns = 0;
		return 0;
	}
	if (!order->lasts_ns) {
		weir_refuse(refusal, "for how long? '%.*s' has no time", WEIR_SHOWN(source));
		return weir_advise(refusal, "write '--for 1h', or a time behind it");
	}
	if (!order->prefix.bits && !request->options->forces) {
		weir_refuse(refusal, "%s is every IPv%u address", weir_format_prefix(&order->prefix, text),
			    order->prefix.family);
		return weir_advise(refusal, "name a smaller network; or say '--force', if all of them are meant");
	}
	return 0;
}

/* lasts: NULL, or a time of its own. place: NULL, or the line's. */
static int add_order(struct request *request, const struct weir_place *place, const char *source, const char *lasts)
{
	struct weir_timed_order *order, read;
	struct weir_refusal refusal = {};

	if (read_order(request, source, lasts, &read, &refusal)) {
		complain(request, place, &refusal);
		return 0;
	}
	order = weir_array_add((void **)&request->orders, request->count, sizeof(*order));
	if (!order)
		return weir_diag_fail(request->diag, ENOMEM, NULL, "cannot read the sources");
	*order = read;
	request->count++;
	return 0;
}

/* A line: a source, perhaps a time, perhaps a comment; or nothing. */
static int read_text(struct request *request, struct weir_line_reader *reader)
{
	static const char *const blanks = " \t\r\n";
	const struct weir_place place = {.file = STANDARD_INPUT, .line = reader->number, .column = 1};
	char *line = reader->line, *rest, *source, *lasts, *more;
	struct weir_refusal refusal = {};

	line[strcspn(line, "#")] = '\0';
	source = strtok_r(line, blanks, &rest);
	if (!source)
		return 0;
	lasts = strtok_r(NULL, blanks, &rest);
	more = strtok_r(NULL, blanks, &rest);
	if (!more)
		return add_order(request, &place, source, lasts);
	snprintf(refusal.message, sizeof(refusal.message), "what is '%.*s'?", WEIR_SHOWN(more));
	snprintf(refusal.hint, sizeof(refusal.hint), "a line has a source, and perhaps a time: 192.0.2.7 10m");
	complain(request, &place, &refusal);
	return 0;
}

static void complain_of_line(struct request *request, const struct weir_line_reader *reader, const char *why)
{
	const struct weir_place place = {.file = STANDARD_INPUT, .line = reader->number, .column = 1};
	struct weir_refusal refusal = {.hint = "a line has a source, and perhaps a time: 192.0.2.7 10m"};

	snprintf(refusal.message, sizeof(refusal.message), "the line %s", why);
	complain(request, &place, &refusal);
}

/* 1: go on; 0: the end; or -errno. */
static int read_line(struct request *request, struct weir_line_reader *reader)
{
	int err;

	/* What is no list of sources could hold a million mistakes. */
	if (request->mistakes > WEIR_MISTAKES_MAX)
		return 0;
	switch (weir_read_line(reader)) {
	case WEIR_LINE_TEXT:
		err = read_text(request, reader);
		return err ?: 1;
	case WEIR_LINE_TOO_LONG:
		complain_of_line(request, reader, "is longer than 1000 bytes");
		return 1;
	case WEIR_LINE_ZERO_BYTE:
		complain_of_line(request, reader, "holds a zero byte");
		return 1;
	case WEIR_LINE_TOO_MUCH:
		return weir_diag_error(request->diag, NULL, NULL, "give it in parts",
				       STANDARD_INPUT " is more than %llu MB", INPUT_BYTES_MAX >> 20);
	case WEIR_LINE_END:
		break;
	}
	if (ferror(reader->stream))
		return weir_diag_fail(request->diag, errno, NULL, "cannot read " STANDARD_INPUT);
	return 0;
}

static int read_lines(struct request *request)
{
	struct weir_line_reader reader = {.stream = stdin, .bytes_max = INPUT_BYTES_MAX};
	int err;

	do
		err = read_line(request, &reader);
	while (err > 0);
	return err;
}

/* A bad line of a feed does not lose the others; what was typed, and what is no feed, is done whole or not at all. */
static bool has_good_lines(const struct request *request)
{
	return request->count && request->bad_lines == request->mistakes && request->mistakes <= WEIR_MISTAKES_MAX;
}

static int read_sources(struct request *request)
{
	const struct weir_options *options = request->options;
	int err = 0;

	for (size_t i = 0; !err && i < options->argument_count; i++)
		err = strcmp(options->arguments[i], "-") ? add_order(request, NULL, options->arguments[i], NULL)
							 : read_lines(request);
	if (request->mistakes > WEIR_MISTAKES_MAX)
		weir_diag_error(request->diag, NULL, NULL, NULL, "more than %d mistakes; the rest is not read",
				WEIR_MISTAKES_MAX);
	else if (request->mistakes > MISTAKES_MAX)
		weir_diag_error(request->diag, NULL, NULL, NULL, "... and %zu more", request->mistakes - MISTAKES_MAX);
	if (err)
		return err;
	return has_good_lines(request) || !request->mistakes ? 0 : -EINVAL;
}

static int check_options(const struct weir_command *command, struct request *request)
{
	const struct weir_options *options = request->options;
	struct weir_diag *diag = request->diag;
	struct weir_refusal refusal;

	if (options->lasts && weir_parse_duration(options->lasts, &request->lasts_ns, &refusal))
		return weir_diag_error(diag, NULL, NULL, refusal.hint, "--for: %s", refusal.message);
	if (options->lists && (options->removes || options->lasts || options->means_all || options->argument_count))
		return weir_diag_error(diag, NULL, NULL, "leave the rest out",
				       "'--list' shows all, and changes nothing");
	if (options->removes && options->lasts)
		return weir_diag_error(diag, NULL, NULL, "leave one of them out",
				       "'--remove' ends at once what '--for' begins");
	if (options->means_all && (!options->removes || options->argument_count))
		return weir_diag_error(diag, NULL, NULL, NULL, "'--all' is for '--remove', without a source");
	if (!options->lists && !options->means_all && !options->argument_count)
		return weir_diag_error(diag, NULL, NULL, NULL,
				       "which source? 'weir %s SOURCE --for 1h'; '-' reads them from standard input",
				       command->name);
	return 0;
}

/* ---- what there is to say ---- */

static json_t *describe_order(const struct weir_timed_order *order)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	return json_pack("{s:s, s:I}", "source", weir_format_prefix(&order->prefix, text), "leftMs",
			 (json_int_t)(order->lasts_ns / 1000000));
}

static int list(const struct weir_instance *instance, const struct weir_options *options, bool denies,
		struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = NULL;
	char text[WEIR_PREFIX_TEXT_BYTES];
	json_t *entries;
	size_t count;
	int err = weir_timed_read(instance, denies, &orders, &count, diag);

	if (err)
		return err;
	if (!options->wants_json) {
		for (size_t i = 0; i < count; i++)
			printf("%s %.3fs\n", weir_format_prefix(&orders[i].prefix, text), orders[i].lasts_ns / 1e9);
		return weir_flush_results(diag);
	}
	entries = json_array();
	for (size_t i = 0; i < count; i++)
		weir_json_append(&entries, describe_order(&orders[i]));
	return weir_json_print(
		json_pack("{s:s, s:o}", "instance", instance->name, denies ? "blocked" : "allowed", entries), diag);
}

static int tell(const struct weir_instance *instance, const struct request *request, bool denies, size_t changed,
		struct weir_diag *diag)
{
	const char *what = request->options->removes ? "removed" : denies ? "blocked" : "allowed";

	if (request->options->wants_json)
		return weir_json_print(json_pack("{s:s, s:I}", "instance", instance->name, what, (json_int_t)changed),
				       diag);
	printf("%zu source%s %s\n", changed, weir_plural(changed), what);
	return weir_flush_results(diag);
}

/* For `weir events`: of one source its name, of more how many. */
static void note(const struct weir_instance *instance, const struct request *request, bool denies, size_t changed)
{
	const char *what = request->options->removes ? "no longer " : "", *done = denies ? "blocked" : "allowed";
	const enum weir_journal_kind kind = denies ? WEIR_JOURNAL_BLOCK : WEIR_JOURNAL_ALLOW;
	char source[WEIR_PREFIX_TEXT_BYTES], age[WEIR_WORDS_BYTES], lasts[WEIR_WORDS_BYTES + 8] = "";

	if (!changed)
		return;
	if (request->count != 1) {
		weir_instance_note(instance->name, kind, "%s%s: %zu source%s", what, done, changed,
				   weir_plural(changed));
		return;
	}
	if (!request->options->removes)
		snprintf(lasts, sizeof(lasts), ", for %s", weir_format_age(request->orders[0].lasts_ns, age));
	weir_instance_note(instance->name, kind, "%s%s: %s%s", what, done,
			   weir_format_prefix(&request->orders[0].prefix, source), lasts);
}

/* ---- the command ---- */

static int act(const struct weir_command *command, const struct weir_options *options, bool denies,
	       struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(free_request) struct request request = {.options = options, .diag = diag};
	size_t changed = 0;
	int err = check_options(command, &request);

	if (!err)
		err = read_sources(&request);
	if (!err)
		err = weir_instance_open(options->instance, &instance, diag);
	if (err)
		return err;
	if (options->lists)
		return list(instance, options, denies, diag);
	if (denies && !options->removes && !options->forces)
		err = weir_session_check_block(instance, request.orders, request.count, diag);
	if (err)
		return err;
	if (options->means_all)
		err = weir_timed_end_all(instance, denies, &changed, diag);
	else
		err = weir_timed_give(instance, denies, request.orders, request.count, &changed, diag);
	note(instance, &request, denies, changed); /* what found room, where there was none for the rest */
	if (err)
		return err;
	if (options->removes && !options->means_all && !changed)
		return weir_diag_fail(diag, ENOENT, "'--list' shows which are", "no such source is %s now",
				      denies ? "blocked" : "allowed");
	err = tell(instance, &request, denies, changed, diag);
	/* What is wrong with the bad lines has been said; 1, as the rest was done. */
	return err ?: request.mistakes ? -EBADMSG : 0;
}

static int act_block(const struct weir_options *options, struct weir_diag *diag)
{
	return act(&weir_block_command, options, true, diag);
}

static int act_allow(const struct weir_options *options, struct weir_diag *diag)
{
	return act(&weir_allow_command, options, false, diag);
}

int weir_cmd_block(int argc, char **argv)
{
	return weir_command_run(&weir_block_command, argc, argv, act_block);
}

int weir_cmd_allow(int argc, char **argv)
{
	return weir_command_run(&weir_allow_command, argc, argv, act_allow);
}
