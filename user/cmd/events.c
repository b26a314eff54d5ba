// SPDX-License-Identifier: GPL-2.0-only
/* weir events: what happens, as it does. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/util.h"
#include "cmd.h"
#include "host/host.h"
#include "options.h"
#include "print.h"
#include "report/events.h"

static const struct weir_option own_options[] = {
	{'e', false, "changes", NULL, "only changes of state, no drops"},
	{'p', false, "past", NULL, "the latest changes, as far as they are kept, and end"},
	{},
};

const struct weir_command weir_events_command = {
	.name = "events",
	.own_options = own_options,
	.options = "INjCh",
	.means_attached = true,
	.about =
		"Print what happens, a line each, until Ctrl-C: dropped packets, with the rule, the flow, what its\n"
		"window held and the threshold in force; and what changes: attach, reload, rollback, confirm, detach;\n"
		"interfaces that come and go; a controller that begins, ends or is not heard of; penalties that "
		"begin,\n"
		"and circuit breakers. Of drops it is a sample, at most 954 a second: 'weir flows --dropped' counts\n"
		"them all. Changes are kept: the latest 256 of the instance, 512 of penalties and 512 of breakers.",
	.example = "  weir events\n"
		   "  weir events --past\n"
		   "  weir events --json | jq -c 'select(.rule == \"dns\") | .key'",
};

/* ---- printing ---- */

static int print_words(const struct weir_event_watch *watch, const struct weir_happening *happening)
{
	_cleanup_(weir_freep) char *words = weir_happening_words(watch, happening);
	const uint64_t wall_ns = weir_host_wall_ns(happening->time_ns);
	const time_t second = wall_ns / WEIR_NSEC_PER_SEC;
	char clock[32] = "?";
	struct tm local;

	if (!words)
		return -ENOMEM;
	if (localtime_r(&second, &local))
		strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &local);
	printf("%s.%03u %-10s %s\n", clock, (unsigned int)(wall_ns % WEIR_NSEC_PER_SEC / 1000000),
	       weir_happening_name(happening), words);
	return 0;
}

static int print_json(const struct weir_event_watch *watch, const struct weir_happening *happening)
{
	json_t *document = weir_happening_describe(watch, happening);
	int err = document ? 0 : -ENOMEM;

	if (!err && json_dumpf(document, stdout, JSON_COMPACT))
		err = -EIO;
	if (!err)
		putchar('\n');
	json_decref(document);
	return err;
}

/* What has happened since; -ENOENT: and the instance was detached. */
static int print_new(struct weir_event_watch *watch, bool wants_json, struct weir_diag *diag)
{
	_cleanup_(weir_happenings_free) struct weir_happenings happenings = {};
	int err = weir_event_watch_read(watch, &happenings, diag), failed = 0;

	for (size_t i = 0; !failed && i < happenings.count; i++)
		failed = wants_json ? print_json(watch, &happenings.all[i]) : print_words(watch, &happenings.all[i]);
	if (!failed)
		failed = weir_flush_results(diag);
	else
		weir_diag_fail(diag, -failed, NULL, "cannot print an event");
	return err ? err : failed;
}

/* ---- waiting ---- */

static bool waits_on(int signal_fd)
{
	struct pollfd polled = {.fd = signal_fd, .events = POLLIN};

	return poll(&polled, 1, WEIR_EVENT_WATCH_PERIOD_MS) == 0;
}

static int listen_on(const struct weir_options *options, struct weir_diag *diag)
{
	const bool wants_drops = !options->only_changes && !options->means_past;
	_cleanup_(weir_event_watch_close) struct weir_event_watch watch = {};
	_cleanup_(weir_closep) int signal_fd = weir_open_end_signals(diag);
	int err = signal_fd < 0
			  ? signal_fd
			  : weir_event_watch_open(options->instance, wants_drops, options->means_past, &watch, diag);

	if (err)
		return err;
	if (options->means_past)
		return print_new(&watch, options->wants_json, diag);
	do
		err = print_new(&watch, options->wants_json, diag);
	while (!err && waits_on(signal_fd));
	if (err != -ENOENT)
		return err;
	fprintf(stderr, "weir events: instance '%s' was detached\n", options->instance);
	return 0;
}

int weir_cmd_events(int argc, char **argv)
{
	return weir_command_run(&weir_events_command, argc, argv, listen_on);
}
