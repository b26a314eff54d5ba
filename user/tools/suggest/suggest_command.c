// SPDX-License-Identifier: GPL-2.0-only
/* weir suggest: which threshold? */
#include "suggest/suggest.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "network/netns.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/terminal.h"
#include "files/output.h"
#include "rules/history.h"
#include "rules/quantity.h"

#define LASTS_DEFAULT_NS (600 * WEIR_NSEC_PER_SEC)
#define LASTS_MAX_NS (604800 * WEIR_NSEC_PER_SEC) /* a week */

static const struct weir_option own_options[] = {
	{'r', true, "resources", "FILE...",
	 "measure the resources of these rule files, by the keys and windows of their rules (default: the services "
	 "that are found, by source)"},
	{'o', true, "output", "FILE", "write the rule file there (default: standard output)"},
	{'i', true, "interface", "IFACE",
	 "listen on this interface; with captures, the interface that match.interface is compared with"},
	{'d', false, "direction", "both|in|out",
	 "the direction of packets for which the capture has none; 'both', the default, means in. Where the source has "
	 "directions, both are measured"},
	{'F', false, "for", "TIME",
	 "how long to listen: 90s, 10m, 1h (default: 10m); after Ctrl-C, the file is "
	 "written from what was measured so far"},
	{'A', false, "instance", "NAME", "listen on the interface of this instance, and measure its resources"},
	{'p', false, "percentile", "P", "flows up to this percentile should lose no packets (default: 99.9)"},
	{'m', false, "margin", "FACTOR", "multiply the measured need by this (default: 1.5)"},
	{'l', false, "loss", "SHARE",
	 "the share of these flows' packets that may be dropped, before the margin: 0 to 0.5 (default: 0)"},
	{'P', false, "plot", "SVG", "draw how many flows reach each peak, with the suggested thresholds"},
	{},
};

static const struct weir_command weir_suggest_command = {
	.name = "suggest",
	.own_options = own_options,
	.options = "NjWCh",
	.arguments = "[CAPTURE...]",
	.about = "Measure what clients send, and write a rule file whose thresholds would not have limited them. Reads "
		 "captures (pcap or pcapng, as 'weir replay' does; '-' is standard input), or listens on an interface. "
		 "A flow's peak is the highest count that its window reached. The threshold is a percentile of all "
		 "flows' peaks, times a margin. Flows far above all others are named and left out, if they are at most "
		 "5 %, so a flood does not raise the threshold. With fewer than 30 flows the file has its numbers only "
		 "as comments. The file has its figures in comments, can be loaded as it is, and drops nothing (mode: "
		 "observe). Captures are then replayed with it, to show what it would have dropped from which flows.",
	.example = "  tcpdump -i eth0 -Q in -s 128 -G 3600 -W 1 -w hour.pcap\n"
		   "  weir suggest -o limits.yaml hour.pcap\n"
		   "  weir suggest -r rules/dns-per-client.yaml -o limits.yaml monday.pcap tuesday.pcap\n"
		   "  weir suggest -i eth0 --for 1h -o limits.yaml",
	.exits = "0 done, 1 it failed, a capture is damaged, or no service was seen, 2 the request or a file that it "
		 "reads is wrong",
};

struct suggest_request {
	struct weir_suggest_options options;
	const char **files; /* rule files */
	size_t file_count;
	const char *output, *plot; /* NULL: not requested */
	const char *instance, *netns;
	bool has_duration, wants_json;
	struct weir_ruleset *ruleset; /* owned */
	char interface[IF_NAMESIZE];  /* of the instance */
};

static int wrong(const char *reason)
{
	fprintf(stderr, "weir suggest: %s; 'weir suggest --help' shows how\n", reason);
	return -EINVAL;
}

/* ---- options ---- */

static int refuse(const char *option, const struct weir_refusal *refusal)
{
	fprintf(stderr, "weir suggest: --%s: %s%s%s\n", option, refusal->message, refusal->hint[0] ? ": " : "",
		refusal->hint);
	return -EINVAL;
}

/* Options with a decimal argument, in millionths. */
static const struct decimal {
	const char *option, *noun;
	uint64_t low_micro, high_micro, example_micro;
	uint64_t base_micro; /* a percentage is added to this */
} percentile_form = {"percentile", "percentile", WEIR_MICRO, 100 * WEIR_MICRO, 99900000, 0},
  margin_form = {"margin", "factor", WEIR_MICRO, 1000 * WEIR_MICRO, 1500000, WEIR_MICRO},
  loss_form = {"loss", "share", 0, WEIR_MICRO / 2, 10000, 0};

/* The value probably meant by "50%", or by a share where a percentage is expected; otherwise the example. */
static uint64_t guess(const struct decimal *form, const char *text)
{
	const bool is_percentage = form == &percentile_form, has_sign = text[0] && text[strlen(text) - 1] == '%';
	_cleanup_(weir_freep) char *number = strndup(text, strlen(text) - has_sign);
	struct weir_refusal ignored;
	uint64_t micro;

	if (!number || weir_parse_threshold(number, false, &micro, &ignored))
		return form->example_micro;
	if (is_percentage && !has_sign)
		micro *= 100;
	else if (has_sign && !is_percentage)
		micro = form->base_micro + micro / 100;
	else if (!has_sign)
		return form->example_micro;
	return micro >= form->low_micro && micro <= form->high_micro ? micro : form->example_micro;
}

static int read_decimal(const struct decimal *form, const char *text, uint64_t *ret_micro)
{
	struct weir_refusal ignored;
	char low[32], high[32], meant[32];
	uint64_t micro = 0;

	if (!weir_parse_threshold(text, false, &micro, &ignored) && micro >= form->low_micro &&
	    micro <= form->high_micro) {
		*ret_micro = micro;
		return 0;
	}
	weir_format_micro(form->low_micro, low, sizeof(low));
	weir_format_micro(form->high_micro, high, sizeof(high));
	weir_format_micro(guess(form, text), meant, sizeof(meant));
	fprintf(stderr, "weir suggest: --%s: '%s' is not a %s from %s to %s: write %s\n", form->option, text,
		form->noun, low, high, meant);
	return -EINVAL;
}

static int read_duration(struct suggest_request *request, const char *text)
{
	struct weir_refusal refusal;

	request->has_duration = true;
	return weir_parse_time(text, 1, WEIR_NSEC_PER_SEC, LASTS_MAX_NS, &request->options.lasts_ns, &refusal)
		       ? refuse("for", &refusal)
		       : 0;
}

static int take_option(void *data, int option, const char *argument)
{
	struct suggest_request *request = data;
	uint64_t micro;

	switch (option) {
	case 'r':
		request->files[request->file_count++] = argument;
		return 0;
	case 'o':
		request->output = argument;
		return 0;
	case 'i':
		request->options.interface = argument;
		return 0;
	case 'd':
		request->options.direction = strcmp(argument, "out") ? WEIR_DIRECTION_IN : WEIR_DIRECTION_OUT;
		if (!strcmp(argument, "both") || !strcmp(argument, "in") || !strcmp(argument, "out"))
			return 0;
		fprintf(stderr, "weir suggest: --direction: '%s' is not a direction: write both, in or out\n",
			argument);
		return -EINVAL;
	case 'F':
		return read_duration(request, argument);
	case 'A':
		request->instance = argument;
		return 0;
	case 'p':
		if (read_decimal(&percentile_form, argument, &micro))
			return -EINVAL;
		request->options.percentile_micro = micro;
		return 0;
	case 'm':
		return read_decimal(&margin_form, argument, &request->options.margin_micro);
	case 'l':
		return read_decimal(&loss_form, argument, &request->options.loss_micro);
	case 'P':
		request->plot = argument;
		return 0;
	case 'N':
		request->netns = argument;
		return 0;
	case 'j':
		request->wants_json = true;
		return 0;
	}
	return -EINVAL;
}

static bool would_destroy(const struct suggest_request *request, const char *path)
{
	for (size_t i = 0; i < request->options.capture_count; i++)
		if (weir_are_same_file(path, request->options.captures[i]))
			return true;
	for (size_t i = 0; i < request->file_count; i++)
		if (weir_are_same_file(path, request->files[i]))
			return true;
	return false;
}

static int check_outputs(const struct suggest_request *request)
{
	const char *const outputs[] = {request->output, request->plot};

	if (weir_are_same_file(request->output, request->plot))
		return wrong("--output and --plot name the same file");
	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		if (outputs[i] && (!*outputs[i] || !strcmp(outputs[i], "-")))
			return wrong("--output and --plot take the name of a file");
		else if (would_destroy(request, outputs[i]))
			return wrong("--output or --plot names a file that is to be read, and would destroy it");
	return 0;
}

static int check_request(const struct suggest_request *request)
{
	const struct weir_suggest_options *options = &request->options;

	if (!options->capture_count && !options->interface && !request->instance)
		return wrong("no capture given, and no interface to listen on");
	if (options->capture_count && (request->instance || request->has_duration))
		return wrong("--instance and --for are for an interface, not for captures");
	if (request->instance && request->file_count)
		return wrong("--instance has resources of its own: leave --resources out");
	if (request->instance && !weir_instance_name_is_valid(request->instance))
		return wrong("--instance is not the name of an instance");
	if (!options->capture_count && options->direction)
		return wrong("--direction out is for captures: an interface knows which packets it sends");
	if (options->interface && !weir_interface_name_is_valid(options->interface))
		return wrong("--interface is not the name of an interface");
	return check_outputs(request);
}

/* ---- the resources ---- */

/* Its interface is listened to where it is, and the command stays there. */
static int enter_netns_of(const struct weir_instance *instance, struct weir_diag *diag)
{
	int back_fd;

	if (!weir_netns_enter(instance->info.netns, &back_fd))
		return 0; /* the way back is not needed, and closed at the end */
	return weir_instance_expect_here(instance->name, diag);
}

/* The interface of the instance that was named, or its only one. */
static int find_interface(struct suggest_request *request, const struct weir_instance *instance, struct weir_diag *diag)
{
	const char *name = NULL;
	size_t count = 0;

	if (request->options.interface)
		return weir_instance_expect_on(request->instance, request->options.interface, diag);
	for (size_t i = 0; i < instance->link_count; i++) {
		const char *found = weir_link_stands(instance->links, instance->link_count, i)
					    ? weir_instance_interface(instance, instance->links[i].ifindex)
					    : NULL;

		if (found)
			name = found;
		count += found != NULL;
	}
	if (count != 1)
		return weir_diag_fail(diag, 0, "name one of them with -i", "instance '%s' is on %zu interfaces",
				      request->instance, count);
	snprintf(request->interface, sizeof(request->interface), "%s", name);
	request->options.interface = request->interface;
	return 0;
}

static int read_instance(struct suggest_request *request, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	int err = weir_instance_open(request->instance, &instance, diag);

	if (err)
		return err;
	weir_instance_history(instance, &history);
	if (!history.sets[0])
		return weir_diag_fail(diag, 0, "name its rule files with --resources, and its interface with -i",
				      "the rule set of instance '%s' is not kept", request->instance);
	err = weir_kept_set_read(history.sets[0], &request->ruleset, diag);
	if (err)
		return err;
	request->options.is_enforced = false;
	for (size_t i = 0; i < request->ruleset->rule_count; i++)
		request->options.is_enforced |= !request->ruleset->rules[i].observes;
	if (request->ruleset->settings.observes || instance->info.observes)
		request->options.is_enforced = false;
	err = enter_netns_of(instance, diag);
	return err ? err : find_interface(request, instance, diag);
}

/* An instance drops packets at XDP and at tc egress, in front of where an interface is listened to. */
static bool is_limited_before(const char *interface)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	char name[WEIR_INSTANCE_NAME_BYTES];
	const uint32_t ifindex = if_nametoindex(interface);
	bool is_before = false;
	struct weir_link link;

	if (!weir_instance_on(ifindex, name, &link) || weir_instance_open(name, &instance, &ignored))
		return false;
	for (size_t i = 0; i < instance->link_count; i++)
		is_before |= instance->links[i].ifindex == ifindex &&
			     (instance->links[i].hook == WEIR_HOOK_XDP || weir_hook_is_out(instance->links[i].hook));
	return is_before && !instance->info.observes;
}

static int read_resources(struct suggest_request *request, struct weir_diag *diag)
{
	int err = 0;

	if (request->instance)
		err = read_instance(request, diag);
	else if (request->file_count)
		err = weir_ruleset_read(request->files, request->file_count, &request->ruleset, diag);
	if (!request->instance && request->options.interface)
		request->options.is_enforced = is_limited_before(request->options.interface);
	request->options.ruleset = request->ruleset;
	return err;
}

/* ---- results ---- */

static void print_measured(uint64_t done, uint64_t total)
{
	fprintf(stderr, "\rsuggest: %3" PRIu64 " %% measured", done * 100 / total);
}

static void print_proved(uint64_t done, uint64_t total)
{
	if (done < total)
		fprintf(stderr, "\rsuggest: %3" PRIu64 " %% proved  ", done * 100 / total);
}

static int open_output(struct weir_output *output, const char *path, struct weir_diag *diag)
{
	return path ? weir_output_open(output, path, diag) : 0;
}

static int write_results(const struct suggest_request *request, const struct weir_suggest_report *report,
			 struct weir_output *file, struct weir_output *plot, struct weir_diag *diag)
{
	struct weir_output *const outputs[] = {file, plot};
	int err;

	if (plot->stream)
		weir_suggest_plot(report, plot->stream);
	if (file->stream && report->rule_file)
		fputs(report->rule_file, file->stream);
	if (file->stream && !report->rule_file)
		weir_output_close(file); /* an empty file would look like a suggestion */
	err = weir_outputs_commit(outputs, ARRAY_SIZE(outputs), diag);
	if (err)
		return err;
	if (request->wants_json)
		return weir_suggest_print_json(report, diag);
	weir_suggest_print_text(report, request->output ? stdout : stderr);
	if (!request->output && report->rule_file)
		fputs(report->rule_file, stdout);
	return weir_flush_results(diag);
}

static int report_too_little(const struct weir_suggest_report *report, struct weir_diag *diag)
{
	if (!report->count)
		weir_diag_error(diag, NULL, NULL, "is it a capture of incoming IP packets?",
				"nothing is suggested: no service was found");
	else
		weir_diag_warning(diag, NULL, NULL, "measure for longer, or where there are more clients",
				  "no number is suggested: a resource needs at least %d flows or, without a key, as "
				  "many intervals; the file has what was seen as comments",
				  WEIR_PEAKS_MIN);
	return report->count ? 0 : -ENODATA;
}

static int suggest(struct suggest_request *request, struct weir_diag *diag)
{
	_cleanup_(weir_suggest_report_free) struct weir_suggest_report report = {};
	_cleanup_(weir_output_close) struct weir_output file = {}, plot = {};
	struct weir_suggest_options *options = &request->options;
	int err = read_resources(request, diag);

	if (!err)
		err = open_output(&file, request->output, diag);
	if (!err)
		err = open_output(&plot, request->plot, diag);
	if (err)
		return err;
	options->stop = weir_listen_for_stop();
	options->measured = isatty(STDERR_FILENO) ? print_measured : NULL;
	options->proved = isatty(STDERR_FILENO) ? print_proved : NULL;
	err = weir_suggest(options, &report, diag);
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%60s\r", "");
	if (!err)
		err = write_results(request, &report, &file, &plot, diag);
	if (err)
		return err;
	if (!report.with_threshold)
		err = report_too_little(&report, diag);
	if (err)
		return err;
	return report.is_damaged ? -EBADMSG : 0;
}

static int act(struct suggest_request *request, struct weir_diag *diag)
{
	int err = weir_enter_netns(request->netns, request->instance, request->options.interface, diag);

	if (!err)
		err = suggest(request, diag);
	weir_ruleset_free(request->ruleset);
	return err;
}

static int run_command(int argc, char **argv)
{
	_cleanup_(weir_freep) const char **files = calloc(argc, sizeof(*files));
	struct suggest_request request = {
		.options = {.lasts_ns = LASTS_DEFAULT_NS,
			    .percentile_micro = 999 * WEIR_MICRO / 10,
			    .margin_micro = 3 * WEIR_MICRO / 2},
		.files = files,
	};
	struct weir_diag diag = {};
	int exit_code;

	if (!files)
		return WEIR_EXIT_FAILED;
	exit_code = weir_options_read(&weir_suggest_command, argc, argv, false, take_option, &request);
	if (exit_code)
		return exit_code - 1;
	request.options.captures = (const char *const *)argv + optind;
	request.options.capture_count = argc - optind;
	if (check_request(&request))
		return WEIR_EXIT_WRONG;
	return weir_exit_code(act(&request, &diag), &diag);
}

const struct weir_command_entry weir_suggest_entry = {&weir_suggest_command, run_command,
						      "measure which limits the traffic needs, and write a rule file"};
