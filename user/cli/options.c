// SPDX-License-Identifier: GPL-2.0-only
#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/util.h"
#include "cli/command.h"
#include "host/host.h"
#include "host/service.h"
#include "cli/print.h"
#include "rules/quantity.h"
#include "rules/scalars.h"
#include "cli/terminal.h"
#include "control/calculator.h"

/* Most options of one command; and bytes of their short forms in the format of getopt_long(). */
#define OPTIONS_MAX 32
#define SHORT_OPTIONS_BYTES (2 * OPTIONS_MAX + 2)

#define MOST_DEFAULT 20
#define MOST_MAX 1000000

/* Priorities of the journal, as in sd-daemon(3). */
#define SD_ERR "<3>"
#define SD_WARNING "<4>"

__attribute__((format(printf, 2, 3))) static int refuse(const struct weir_command *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "weir %s: ", command->name);
	va_start(args, format);
	weir_print_clean(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n'weir %s --help' shows options and an example\n", command->name);
	return WEIR_EXIT_WRONG + 1;
}

bool weir_interface_name_is_valid(const char *name)
{
	return name[0] && strlen(name) < IF_NAMESIZE;
}

int weir_options_take_direction(const struct weir_command *command, const char *word,
				enum weir_direction *ret_direction)
{
	*ret_direction = strcmp(word, "out") ? WEIR_DIRECTION_IN : WEIR_DIRECTION_OUT;
	if (*ret_direction == WEIR_DIRECTION_OUT || !strcmp(word, "in"))
		return 0;
	refuse(command, "--direction: '%s' is not a direction: write in or out", word);
	return -EINVAL;
}

/* A name, or a pattern for names (weir_wanted); after '!' it is an exception. */
static bool is_interface_word(const char *word)
{
	if (*word == '!')
		word++;
	if (!strpbrk(word, "*?["))
		return weir_interface_name_is_valid(word);
	return strlen(word) < WEIR_WANTED_BYTES - 1;
}

static bool has_interface(const struct weir_options *options)
{
	for (size_t i = 0; i < options->interface_count; i++)
		if (options->interfaces[i][0] != '!')
			return true;
	return false;
}

static int add_interface(const struct weir_command *command, struct weir_options *options, const char *name)
{
	const char **slot;

	if (!is_interface_word(name))
		return refuse(command, "'%s' is not a valid interface name or pattern", name);
	for (size_t i = 0; i < options->interface_count; i++)
		if (!strcmp(options->interfaces[i], name))
			return 0;
	slot = weir_array_add((void **)&options->interfaces, options->interface_count, sizeof(*slot));
	if (!slot)
		return refuse(command, "out of memory");
	*slot = name;
	options->interface_count++;
	return 0;
}

static int add_word(const struct weir_command *command, const char ***words, size_t *count, const char *word)
{
	const char **slot = weir_array_add((void **)words, *count, sizeof(*slot));

	if (!slot)
		return refuse(command, "out of memory");
	*slot = word;
	++*count;
	return 0;
}

static int set_mode(const struct weir_command *command, struct weir_options *options, const char *word)
{
	static const struct {
		const char *word;
		enum weir_attach_mode mode;
	} modes[] = {
		{"auto", WEIR_MODE_AUTO}, {"native", WEIR_MODE_NATIVE}, {"skb", WEIR_MODE_SKB}, {"tc", WEIR_MODE_TC}};
	/* The names that `ip link` and xdp-loader use. */
	static const char *const theirs[][2] = {{"generic", "skb"},   {"xdpgeneric", "skb"}, {"skbmode", "skb"},
						{"driver", "native"}, {"drv", "native"},     {"xdpdrv", "native"}};
	const char *meant;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(modes[i].word, word))
			continue;
		options->mode = modes[i].mode;
		return 0;
	}
	meant = weir_nearest(word, modes, ARRAY_SIZE(modes), sizeof(modes[0]));
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		if (!strcmp(theirs[i][0], word))
			meant = theirs[i][1];
	if (meant)
		return refuse(command, "--mode: '%s' is not a mode; did you mean '%s'?", word, meant);
	return refuse(command, "--mode: '%s' is not a mode: write native, skb, tc or auto", word);
}

/* `from` says where the name comes from: "", or "$WEIR_INSTANCE: ". */
static int set_instance(const struct weir_command *command, struct weir_options *options, const char *from,
			const char *name)
{
	if (!weir_instance_name_is_valid(name))
		return refuse(command,
			      "%s'%s' is not a valid instance name: use letters, digits, '_' and '-', at most %d", from,
			      name, WEIR_INSTANCE_NAME_BYTES - 1);
	options->instance = name;
	options->has_instance = true;
	return 0;
}

static int set_most(const struct weir_command *command, struct weir_options *options, const char *text)
{
	struct weir_refusal refusal;
	uint64_t number;

	if (weir_parse_number(text, 1, MOST_MAX, &number, &refusal))
		return refuse(command, "--number: %s: %s", refusal.message, refusal.hint);
	options->most = number;
	options->has_most = true;
	return 0;
}

static int set_place(const struct weir_command *command, struct weir_options *options, bool is_before, const char *text)
{
	struct weir_refusal refusal;
	uint64_t id = 0;

	if (!weir_tcx_place_is_last(&options->place))
		return refuse(command, "there can be one '--before' or '--after'");
	if (!(is_before && !strcmp(text, "all")) && weir_parse_number(text, 1, UINT32_MAX, &id, &refusal))
		return refuse(command, "--%s: '%s' is not the number of a program%s", is_before ? "before" : "after",
			      text, is_before ? ", or all" : "");
	options->place = (struct weir_tcx_place){.is_before = is_before, .program_id = id};
	return 0;
}

/* A person needs at least a second to answer, and after a day nobody remembers. Chosen, not derived. */
#define CONFIRM_NS_MIN WEIR_NSEC_PER_SEC
#define CONFIRM_NS_MAX (86400 * WEIR_NSEC_PER_SEC)

static int set_confirm(const struct weir_command *command, struct weir_options *options, const char *text)
{
	struct weir_refusal refusal;
	uint64_t ns;

	if (weir_parse_time(text, 1, CONFIRM_NS_MIN, CONFIRM_NS_MAX, &ns, &refusal))
		return refuse(command, "--confirm: %s: %s", refusal.message, refusal.hint);
	options->confirm_ns = ns;
	return 0;
}

/* The field that an option without an argument sets; NULL: it is another option. */
static bool *find_switch(struct weir_options *options, int letter)
{
	switch (letter) {
	case 'Y':
		return &options->listens_anywhere;
	case 'g':
		return &options->allows_merging;
	case 'o':
		return &options->observes;
	case 'k':
		return &options->keeps;
	case 'f':
		return &options->starts_afresh;
	case 'D':
		return &options->is_dry_run;
	case 'E':
		return &options->sets_exit_code;
	case 'b':
		return &options->means_before;
	case 'x':
	case 'X':
		return &options->forces;
	case 'd':
		return &options->wants_dropped;
	case 'e':
		return &options->only_changes;
	case 'p':
		return &options->means_past;
	case '1':
		return &options->once;
	case 'l':
		return &options->lists;
	case 'R':
		return &options->removes;
	case 't':
		return &options->extends;
	case 'a':
		return &options->means_all;
	case 'q':
		return &options->means_lost;
	case 'j':
	case 'J':
		return &options->wants_json;
	default:
		return NULL;
	}
}

struct option_target {
	const struct weir_command *command;
	struct weir_options *options;
};

// NOLINTNEXTLINE(readability-function-size): a list, an option a case
static int set_option(void *data, int letter, const char *argument)
{
	const struct option_target *target = data;
	const struct weir_command *command = target->command;
	struct weir_options *options = target->options;
	bool *is_on = find_switch(options, letter);

	if (is_on) {
		*is_on = true;
		return 0;
	}
	switch (letter) {
	case 'i':
		return add_interface(command, options, argument);
	case 'I':
	case 'A':
		return set_instance(command, options, "", argument);
	case 'm':
		return set_mode(command, options, argument);
	case 'z':
		return set_place(command, options, true, argument);
	case 'Z':
		return set_place(command, options, false, argument);
	case 'n':
		return set_most(command, options, argument);
	case 'N':
		if (!argument[0])
			return refuse(command,
				      "'' is not a network namespace: write a name of 'ip netns list', or a path");
		options->netns = argument;
		return 0;
	case 'L':
		return add_word(command, &options->listen, &options->listen_count, argument);
	case 'c':
		return set_confirm(command, options, argument);
	case 'r': /* the command knows which of the two it means */
		options->rule = argument;
		return add_word(command, &options->rule_files, &options->rule_file_count, argument);
	case 'S':
		options->source = argument;
		return 0;
	case 'P':
		options->pcap = argument;
		return 0;
	case 'F':
	case 's':
		options->lasts = argument;
		return 0;
	case 'B':
		options->reason = argument;
		return 0;
	case 'G':
		options->by = argument;
		return 0;
	case 'u':
		options->feed = argument;
		return 0;
	case 'v':
		options->saves_to = argument;
		return 0;
	case 'w':
		options->restores_from = argument;
		return 0;
	default:
		return -EINVAL;
	}
}

/* The tables of getopt_long(): short_options has SHORT_OPTIONS_BYTES, long_options one more than _MAX. */
static void list_options(const struct weir_command *command, struct option *long_options, char *short_options)
{
	const struct weir_option *known;

	for (size_t place = 0; (known = weir_command_option(command, place)); place++) {
		if (place == OPTIONS_MAX)
			abort(); /* too many options */
		*long_options++ = (struct option){
			.name = known->name,
			.has_arg = known->argument ? required_argument : no_argument,
			.val = known->letter,
		};
		if (!known->is_short)
			continue;
		*short_options++ = known->letter;
		if (known->argument)
			*short_options++ = ':';
	}
	*long_options = (struct option){};
	*short_options = '\0';
}

/* getopt has refused the option: suggest a similar one. If it abbreviates several, getopt has named them. */
static void advise_option(const struct weir_command *command, const struct option *long_options, const char *word)
{
	const struct option *option = long_options;
	const char *nearest;
	char name[64];
	size_t count = 0;

	if (!optopt && !strncmp(word, "--", 2)) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
		for (; option->name && strncmp(option->name, name, strlen(name)) != 0; option++)
			count++;
		nearest = option->name ? NULL : weir_nearest(name, long_options, count, sizeof(*long_options));
		if (!strcmp(name, "watch") || !strcmp(name, "follow"))
			fprintf(stderr,
				strcmp(command->name, "events")
					? "'weir top' shows figures as they change; 'watch weir %s' repeats this\n"
					: "'weir %s' prints events as they come\n",
				command->name);
		else if (!option->name && !strcmp(name, "direction"))
			fputs("the direction is part of the rules: with 'match: {direction: out}' in a resource, weir "
			      "attaches the hook\n",
			      stderr);
		else if (nearest)
			fprintf(stderr, "did you mean '--%s'?\n", nearest);
		else if (!option->name && weir_command_synonym(name))
			fprintf(stderr, "did you mean 'weir %s'?\n", weir_command_synonym(name));
	}
	fprintf(stderr, "'weir %s --help' shows options and an example\n", command->name);
}

int weir_options_read(const struct weir_command *command, int argc, char **argv, bool keeps_order,
		      weir_option_taker *take, void *data)
{
	struct option long_options[OPTIONS_MAX + 1];
	char short_options[1 + SHORT_OPTIONS_BYTES] = "-"; /* which makes getopt return arguments, too */
	int letter, err;

	list_options(command, long_options, keeps_order ? short_options + 1 : short_options);
	optind = 1;
	while ((letter = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (letter == '?') {
			advise_option(command, long_options, argv[optind - 1]);
			return WEIR_EXIT_WRONG + 1;
		}
		if (letter == 'h') {
			weir_command_print_help(command, stdout);
			return WEIR_EXIT_OK + 1;
		}
		err = weir_terminal_take_option(letter, optarg);
		if (err == -EINVAL)
			return refuse(command, "--color: '%s' is none of " WEIR_COLOR_WORDS, optarg);
		if (err == -ENOENT && take(data, letter, optarg))
			return WEIR_EXIT_WRONG + 1;
	}
	return 0;
}

/* Use the only attached instance if there is none with the usual name. Errors are reported later, when it is opened. */
static void find_only_instance(const struct weir_command *command, struct weir_options *options)
{
	struct weir_names names = {};
	struct weir_diag ignored = {};

	if (weir_instance_exists(options->instance))
		return;
	if (!weir_instance_list(&names, &ignored) && names.count == 1)
		options->only_instance = strdup(names.names[0]);
	weir_names_free(&names);
	weir_diag_free(&ignored);
	if (!options->only_instance)
		return;
	options->instance = options->only_instance;
	if (command->changes_it)
		fprintf(stderr, "weir %s: using instance '%s', the only one attached\n", command->name,
			options->instance);
}

int weir_options_find_instance(const struct weir_command *command, struct weir_options *options)
{
	const char *name = getenv(INSTANCE_VARIABLE);

	if (options->has_instance || !strpbrk(command->options, "IA"))
		return 0;
	options->instance = WEIR_INSTANCE_DEFAULT;
	if (name && *name)
		return set_instance(command, options, "$" INSTANCE_VARIABLE ": ", name);
	if (command->means_attached)
		find_only_instance(command, options);
	return 0;
}

int weir_options_parse(const struct weir_command *command, int argc, char **argv, struct weir_options *ret_options)
{
	struct option_target target = {command, ret_options};
	int exit_code;

	*ret_options = (struct weir_options){.instance = WEIR_INSTANCE_DEFAULT, .most = MOST_DEFAULT};
	exit_code = weir_options_read(command, argc, argv, false, set_option, &target);
	if (exit_code)
		return exit_code;
	ret_options->arguments = argv + optind;
	ret_options->argument_count = argc - optind;
	if (ret_options->argument_count < command->arguments_min)
		return refuse(command, "arguments are missing: write 'weir %s %s'", command->name, command->arguments);
	if (ret_options->argument_count > command->arguments_max)
		return refuse(command, "'%s' is one argument too many", ret_options->arguments[command->arguments_max]);
	if (command->needs_interface && !has_interface(ret_options)) {
		fprintf(stderr, "weir %s: no interface given: write 'weir %s -i IFACE %s'\n", command->name,
			command->name, command->arguments);
		if (weir_service_is_one() || getenv("WEIR_OPTIONS"))
			fprintf(stderr, "for the service, set it in %s: WEIR_OPTIONS=\"-i eth0\"\n",
				getenv("WEIR_OPTIONS_FILE") ?: "/etc/default/weir");
		return WEIR_EXIT_WRONG + 1;
	}
	return weir_options_find_instance(command, ret_options);
}

void weir_options_free(struct weir_options *options)
{
	free(options->interfaces);
	free(options->listen);
	free(options->rule_files);
	free(options->only_instance);
	*options = (struct weir_options){};
}

static bool ignores_hangups(void)
{
	struct sigaction action;

	return !sigaction(SIGHUP, NULL, &action) && action.sa_handler == SIG_IGN;
}

enum weir_hangup weir_hangup_meaning(void)
{
	_cleanup_(weir_closep) int terminal_fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (ignores_hangups())
		return WEIR_HANGUP_IGNORED;
	return terminal_fd >= 0 ? WEIR_HANGUP_ENDS : WEIR_HANGUP_RELOADS;
}

void weir_hold_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	if (!ignores_hangups())
		sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int weir_open_end_signals(struct weir_diag *diag)
{
	sigset_t signals;
	int fd;

	weir_hold_signals();
	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP); /* never arrives if it is ignored */
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd >= 0 ? fd : weir_diag_fail(diag, errno, NULL, "cannot receive signals");
}

int weir_enter_netns(const char *netns, const char *instance, bool has_interface, struct weir_diag *diag)
{
	int err = netns ? weir_host_enter_netns(netns, diag) : 0;

	return err || !instance || (!netns && !has_interface) ? err : weir_instance_expect_here(instance, diag);
}

int weir_options_enter_netns(const struct weir_command *command, const struct weir_options *options,
			     struct weir_diag *diag)
{
	const bool means_one = command->means_attached || (options->has_instance && strchr(command->options, 'A'));

	return weir_enter_netns(options->netns, means_one ? options->instance : NULL, options->interface_count, diag);
}

int weir_command_run(const struct weir_command *command, int argc, char **argv,
		     int (*act)(const struct weir_options *options, struct weir_diag *diag))
{
	_cleanup_(weir_options_free) struct weir_options options = {};
	struct weir_diag diag = {};
	int err, exit_code = weir_options_parse(command, argc, argv, &options);

	if (exit_code)
		return exit_code - 1;
	if (command->holds_signals)
		weir_hold_signals();
	err = weir_options_enter_netns(command, &options, &diag);
	if (!err)
		err = act(&options, &diag);
	else if (options.sets_exit_code)
		err = -EINVAL; /* 1 would mean that there are differences */
	return weir_exit_code(err, &diag);
}

struct weir_attach_options weir_options_attach(const struct weir_options *options)
{
	return (struct weir_attach_options){
		.instance = options->instance,
		.interfaces = options->interfaces,
		.interface_count = options->interface_count,
		.mode = options->mode,
		.place = options->place,
		.allows_merging = options->allows_merging,
	};
}

int weir_options_read_rules(const struct weir_options *options, struct weir_ruleset **ret_ruleset,
			    struct weir_diag *diag)
{
	int err =
		weir_ruleset_read((const char *const *)options->arguments, options->argument_count, ret_ruleset, diag);

	if (err)
		return err;
	(*ret_ruleset)->settings.observes |= options->observes;
	return weir_calculators_check(*ret_ruleset, diag);
}

void weir_print_diag(struct weir_diag *diag)
{
	if (weir_service_logs_to_journal())
		weir_diag_print_prefixed(diag, SD_ERR, SD_WARNING, stderr);
	else if (weir_terminal_has_colours(stderr))
		weir_diag_print_coloured(diag, stderr);
	else
		weir_diag_print(diag, stderr);
	weir_diag_free(diag);
}

int weir_exit_code_of(int err)
{
	if (!err)
		return WEIR_EXIT_OK;
	return err == -EINVAL ? WEIR_EXIT_WRONG : WEIR_EXIT_FAILED;
}

int weir_exit_code(int err, struct weir_diag *diag)
{
	weir_print_diag(diag);
	return weir_exit_code_of(err);
}
