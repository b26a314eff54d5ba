// SPDX-License-Identifier: GPL-2.0-only
/* weir events: report events as they happen. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "files/output.h"
#include "frames/link_type.h"
#include "host/host.h"
#include "report/event_lines.h"
#include "rules/scalars.h"
#include "weir/weir.h"

static const struct weir_option own_options[] = {
	{'e', false, "changes", NULL, "only changes of state, no drops"},
	{'p', false, "past", NULL, "print the changes that are still kept, and end"},
	{'r', false, "rule", "NAME", "only events of this rule"},
	{'S', false, "src", "ADDRESS",
	 "only packets from this address or prefix, outgoing packets to it, and its flows"},
	{'n', true, "number", "N", "end after N events; with --past, print the latest N"},
	{'P', false, "pcap", "FILE",
	 "also write the drops to a capture (pcapng): the first 128 bytes of each frame, with the reason as its "
	 "comment, and its direction; '-' is standard output, which then gets nothing else"},
	{},
};

static const struct weir_command weir_events_command = {
	.name = "events",
	.own_options = own_options,
	.options = "INJCh",
	.means_attached = true,
	.about = "Print events until Ctrl-C, one per line. Drops are shown with the rule, the flow, the count of "
		 "its window and the threshold in force. Changes are attach, reload, "
		 "rollback, confirm and detach; interfaces that appear and disappear; a controller that starts, ends "
		 "or falls silent; penalties that begin; state changes of circuit breakers; and, for limits that hosts "
		 "share, changes of the store, leases and hosts.\n\n"
		 "Drops are a sample of at most 954 a second; each second, a line says how many more there were. "
		 "'weir flows --dropped' counts all drops by flow. Changes are kept: the latest 256 of the instance, "
		 "the latest 256 of 'weir block' and 'weir allow', and the latest 64 penalties or breaker changes of "
		 "each rule. Those that are left out during a flood are counted by rule.\n\n"
		 "With --rule or --src, only drops, penalties and breakers are shown. The number of drops that are "
		 "not shown then still includes all rules and sources.",
	.example = "  weir events\n"
		   "  weir events --past\n"
		   "  weir events --rule dns --src 192.0.2.0/24 -n 10\n"
		   "  weir events --json | jq -c 'select(.rule == \"dns\") | .key'\n"
		   "  weir events --pcap - | tshark -r - -T fields -e frame.comment",
};

/* The filter. */
struct wanted {
	const char *rule; /* by name, since a reload may change slots; NULL: any rule */
	bool has_source;
	struct weir_prefix source; /* if has_source */
};

struct listener {
	struct weir_event_watch watch;
	struct wanted wanted;
	size_t left; /* lines left to print; SIZE_MAX: no limit */
	bool prints, wants_json;
	/* For the capture; empty if there is none, or if it goes to standard output. */
	struct weir_output output;
	struct weir_event_capture capture; /* without a stream if there is none */
	off_t whole_bytes;		   /* of the file, up to the end of its last complete packet */
};

static void end_listener(struct listener *listener)
{
	weir_event_watch_close(&listener->watch);
	weir_event_capture_free(&listener->capture);
	weir_output_close(&listener->output);
}

/* ---- the filter ---- */

/* Does one of the prefixes contain the other? */
static bool prefixes_meet(const struct weir_prefix *a, const struct weir_prefix *b)
{
	const uint8_t bits = a->bits < b->bits ? a->bits : b->bits;
	const uint8_t rest = 0xff << (8 - bits % 8);

	return a->family == b->family && !memcmp(a->address, b->address, bits / 8) &&
	       (!(bits % 8) || !((a->address[bits / 8] ^ b->address[bits / 8]) & rest));
}

/* The address of the remote end: from the packet for a drop, from the flow's key for a change. For incoming packets it
 * is the source. Returns false if there is none.
 */
static bool find_source(const struct weir_reported *reported, const struct weir_rule_info *rule,
			struct weir_prefix *ret_source)
{
	const struct weir_event *event = &reported->event;
	struct weir_ends ends;

	if (reported->kind == WEIR_REPORTED_DROP) {
		if (!weir_frame_ends(event->frame, event->kept_bytes, &ends))
			return false;
		*ret_source = (struct weir_prefix){.family = ends.family, .bits = ends.family == 6 ? 128 : 32};
		memcpy(ret_source->address, event->flags & WEIR_EVENT_OUT ? ends.destination : ends.source,
		       sizeof(ends.source));
		return true;
	}
	if (!rule ||
	    (rule->identity.key_fields & (WEIR_KEY_SOURCE | WEIR_KEY_LABEL(WEIR_KEY_SOURCE))) != WEIR_KEY_SOURCE)
		return false;
	*ret_source = (struct weir_prefix){
		.family = event->key.family,
		.bits = rule->identity.source_bits[event->key.family == 6],
	};
	memcpy(ret_source->address, event->key.source, sizeof(event->key.source));
	return true;
}

static bool is_wanted(const struct listener *listener, const struct weir_reported *reported)
{
	const struct weir_rule_info *rule = weir_reported_rule(listener->watch.instance, reported);
	const struct wanted *wanted = &listener->wanted;
	struct weir_prefix source;

	if (!wanted->rule && !wanted->has_source)
		return true;
	if (reported->kind == WEIR_REPORTED_MISSED) /* the counters do not say whose events are missing */
		return reported->missed.of == WEIR_REPORTED_DROP ||
		       (rule && (!wanted->rule || !strcmp(rule->name, wanted->rule)));
	if (reported->kind > WEIR_REPORTED_BREAKER || (wanted->rule && (!rule || strcmp(rule->name, wanted->rule))))
		return false;
	return !wanted->has_source || (find_source(reported, rule, &source) && prefixes_meet(&source, &wanted->source));
}

static int read_wanted(const struct weir_options *options, struct wanted *ret_wanted, struct weir_diag *diag)
{
	struct weir_refusal refusal;

	ret_wanted->rule = options->rule;
	ret_wanted->has_source = options->source != NULL;
	if (!options->source || !weir_parse_prefix(options->source, &ret_wanted->source, &refusal))
		return 0;
	weir_diag_error(diag, NULL, NULL, refusal.hint, "--src: %s", refusal.message);
	return -EINVAL;
}

/* False for a report of how many events were left out. */
static bool is_event(const struct weir_reported *reported)
{
	return reported->kind != WEIR_REPORTED_MISSED;
}

/* Keep the events that pass the filter; of past events only the latest, unless all are wanted. */
static void choose(const struct listener *listener, bool is_past, struct weir_reported_events *events)
{
	size_t kept = 0, first, real = 0;

	for (size_t i = 0; i < events->count; i++)
		if (is_wanted(listener, &events->all[i]))
			events->all[kept++] = events->all[i];
	for (first = kept; first && (!is_past || real < listener->left); first--)
		real += is_event(&events->all[first - 1]);
	if (first)
		memmove(events->all, events->all + first, (kept - first) * sizeof(*events->all));
	events->count = kept - first;
}

/* ---- printing ---- */

static int print_words(const struct weir_instance *instance, const struct weir_reported *reported)
{
	_cleanup_(weir_freep) char *words = weir_reported_words(instance, reported);
	const uint64_t wall_ns = weir_host_wall_ns(reported->time_ns);
	const time_t second = wall_ns / WEIR_NSEC_PER_SEC;
	char clock[32] = "?";
	struct tm local;

	if (!words)
		return -ENOMEM;
	if (localtime_r(&second, &local))
		strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &local);
	printf("%s.%03u %-10s %s\n", clock, (unsigned int)(wall_ns % WEIR_NSEC_PER_SEC / 1000000),
	       weir_reported_name(reported), words);
	return 0;
}

static int print_json(const struct weir_instance *instance, const struct weir_reported *reported)
{
	json_t *document = weir_reported_describe(instance, reported);
	_cleanup_(weir_freep) char *text = weir_json_dump(document, JSON_COMPACT);
	int err = text ? 0 : -ENOMEM;

	errno = 0;
	if (!err && puts(text) < 0)
		err = errno ? -errno : -EIO;
	json_decref(document);
	return err;
}

static int print_event(struct listener *listener, const struct weir_reported *reported)
{
	int err = 0;

	if (listener->capture.stream)
		err = weir_event_capture_add(&listener->capture, listener->watch.instance, reported);
	if (err || !listener->prints)
		return err;
	return listener->wants_json ? print_json(listener->watch.instance, reported)
				    : print_words(listener->watch.instance, reported);
}

/* Keep the capture complete at any moment: if the disk is full, partially written packets are removed again. A pipe
 * cannot be truncated, and its reader already has the bytes.
 */
static int flush_capture(struct listener *listener, struct weir_diag *diag)
{
	FILE *stream = listener->capture.stream;
	int err;

	if (!stream || stream == stdout)
		return 0;
	fflush(stream);
	err = weir_output_check(&listener->output, diag);
	if (!err)
		listener->whole_bytes = ftello(stream);
	else if (listener->whole_bytes > 0 && ftruncate(fileno(stream), listener->whole_bytes))
		weir_diag_warning(diag, NULL, NULL, NULL, "the last packet in '%s' may be cut short",
				  listener->output.path);
	return err;
}

/* Report the events since the last call; -ENOENT: the instance was detached as well. */
static int print_new_events(struct listener *listener, bool is_past, struct weir_diag *diag)
{
	_cleanup_(weir_reported_events_free) struct weir_reported_events events = {};
	int err = weir_event_watch_read(&listener->watch, &events, diag), failed = 0;

	choose(listener, is_past, &events);
	for (size_t i = 0; !failed && listener->left && i < events.count; i++) {
		failed = print_event(listener, &events.all[i]);
		if (listener->left != SIZE_MAX && is_event(&events.all[i]))
			listener->left--;
	}
	if (failed && failed != -EPIPE)
		weir_diag_fail(diag, -failed, NULL, "cannot print an event");
	else if (!failed)
		failed = flush_capture(listener, diag);
	if (!failed)
		failed = weir_flush_results(diag);
	return err ? err : failed;
}

/* ---- the capture ---- */

/* All drops of one reading are written with one write(), so that a kill leaves no partial packet in a file. */
#define CAPTURE_BUFFER_BYTES (1u << 20)

static int refuse(const char *reason)
{
	fprintf(stderr, "weir events: %s\n'weir events --help' shows options and an example\n", reason);
	return -EINVAL;
}

static int check_capture(const struct weir_options *options)
{
	const char *path = options->pcap;

	if (!path)
		return 0;
	if (!*path)
		return refuse("--pcap needs a file: '' is none");
	if (options->only_changes || options->means_past)
		return refuse("--pcap writes drops: leave out --changes and --past, which show none");
	if (strcmp(path, "-"))
		return 0;
	if (options->wants_json)
		return refuse("--json and '--pcap -' would both go to standard output: name a file for the capture");
	return isatty(STDOUT_FILENO) ? refuse("'--pcap -' writes binary data: name a file, or pipe it into a program")
				     : 0;
}

static int begin_capture(const char *path, struct listener *listener, struct weir_diag *diag)
{
	int err;

	if (!strcmp(path, "-")) {
		listener->prints = false;
		setvbuf(stdout, NULL, _IOFBF, CAPTURE_BUFFER_BYTES);
		weir_event_capture_begin(stdout, &listener->capture);
		return weir_flush_results(diag);
	}
	err = weir_output_open(&listener->output, path, diag);
	if (err)
		return err;
	setvbuf(listener->output.stream, NULL, _IOFBF, CAPTURE_BUFFER_BYTES);
	weir_event_capture_begin(listener->output.stream, &listener->capture);
	err = weir_output_show(&listener->output, diag);
	if (err)
		return err;
	listener->capture.stream = listener->output.stream; /* for a pipe, the stream has changed */
	listener->whole_bytes = ftello(listener->capture.stream);
	return 0;
}

/* ---- waiting ---- */

/* If the capture goes to a pipe, this may wait for its reader, so it is done before signals are held. */
static int begin_listener(const struct weir_options *options, struct listener *listener, struct weir_diag *diag)
{
	const bool wants_drops = !options->only_changes && !options->means_past;
	int err = check_capture(options);
	uint32_t rule_slot;

	listener->left = options->has_most ? options->most : SIZE_MAX;
	if (!err)
		err = read_wanted(options, &listener->wanted, diag);
	if (!err)
		err = weir_event_watch_open(options->instance, wants_drops, options->means_past, &listener->watch,
					    diag);
	if (!err) /* a mistake in the name would wait for ever */
		err = weir_instance_find_rule(listener->watch.instance, options->rule, &rule_slot, diag);
	listener->prints = true;
	listener->wants_json = options->wants_json;
	if (!err && options->pcap)
		err = begin_capture(options->pcap, listener, diag);
	return err;
}

static int listen_on(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(end_listener) struct listener listener = {};
	_cleanup_(weir_closep) int signal_fd = -1;
	struct pollfd signals;
	int err = begin_listener(options, &listener, diag);

	if (err)
		return err;
	signal_fd = weir_open_end_signals(diag);
	if (signal_fd < 0)
		return signal_fd;
	signals = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	if (options->means_past)
		return print_new_events(&listener, true, diag);
	do
		err = print_new_events(&listener, false, diag);
	while (!err && listener.left && !poll(&signals, 1, WEIR_EVENT_WATCH_PERIOD_MS));
	if (!err && listener.left) { /* Ctrl-C: report how many more there were */
		weir_event_watch_tally(&listener.watch);
		err = print_new_events(&listener, false, diag);
	}
	if (err != -ENOENT)
		return err;
	fprintf(stderr, "weir events: instance '%s' was detached\n", options->instance);
	return 0;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_events_command, argc, argv, listen_on);
}

const struct weir_command_entry weir_events_entry = {&weir_events_command, run_command,
						     "follow drops and changes of state as they happen"};
