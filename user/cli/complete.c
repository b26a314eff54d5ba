// SPDX-License-Identifier: GPL-2.0-only

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "host/host.h"
#include "instance/instance.h"

/* ---- the candidates ---- */

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static void offer(const char *word, const char *candidate, const char *about)
{
	if (begins(candidate, word))
		printf("%s\t%s\n", candidate, about);
}

static void offer_names(const char *word, struct weir_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		offer(word, names->names[i], "");
	weir_names_free(names);
}

static void offer_options(const char *word, const struct weir_command *command)
{
	const struct weir_option *option;
	char form[40];

	for (size_t place = 0; (option = weir_command_option(command, place)); place++) {
		snprintf(form, sizeof(form), "--%s", option->name);
		offer(word, form, option->help);
	}
}

static void offer_interfaces(const char *word)
{
	struct weir_names names;

	if (!weir_host_interfaces(&names))
		offer_names(word, &names);
}

static void offer_instances(const char *word)
{
	struct weir_names names;
	struct weir_diag diag = {};

	if (!weir_instance_list(&names, &diag))
		offer_names(word, &names);
	weir_diag_free(&diag);
}

static void offer_netns(const char *word)
{
	struct weir_names names;

	if (!weir_names_read("/run/netns", &names))
		offer_names(word, &names);
}

static void offer_modes(const char *word)
{
	offer(word, "auto", "native if the driver can, else skb");
	offer(word, "native", "in the driver");
	offer(word, "skb", "any interface, slower");
	offer(word, "tc", "any interface, slower; super-frames count as their segments");
}

static void offer_directions(const char *word)
{
	offer(word, "in", "received");
	offer(word, "out", "sent");
}

static void offer_hooks(const char *word)
{
	offer(word, "xdp", "as in the modes native and skb");
	offer(word, "tc", "as in the mode tc");
}

static void offer_rules(const char *word)
{
	puts(":rules");
}

static void offer_files(const char *word)
{
	puts(":files");
}

/* Candidates by the name of an option's argument in --help, or by the option's name. */
static const struct {
	const char *what;
	void (*offer)(const char *word);
} values[] = {
	{"IFACE", offer_interfaces}, {"instance", offer_instances}, {"netns", offer_netns},
	{"mode", offer_modes},	     {"FILE...", offer_rules},	    {"PCAP", offer_files},
	{"CSV", offer_files},	     {"[CAPTURE...]", offer_files}, {"SVG", offer_files},
	{"FILE", offer_files},	     {"in|out", offer_directions},  {"xdp|tc", offer_hooks},
};

static bool offer_values(const char *word, const char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (strcmp(values[i].what, what))
			continue;
		values[i].offer(word);
		return true;
	}
	return false;
}

/* ---- the command line ---- */

/* The option whose argument follows this word, or NULL: "--netns", "-i", and "-ji" too, but not "--netns=lab". */
static const struct weir_option *awaits_argument(const struct weir_command *command, const char *word)
{
	const struct weir_option *option;

	if (word[0] != '-' || !word[1])
		return NULL;
	for (size_t place = 0; (option = weir_command_option(command, place)); place++) {
		if (!option->argument)
			continue;
		if (word[1] == '-' ? !strcmp(word + 2, option->name)
				   : option->is_short && word[strlen(word) - 1] == option->letter)
			return option;
	}
	return NULL;
}

/* The words before the last: the option that awaits it, and whether it may be an option itself (no "--" is there). */
static const struct weir_option *read_words(const struct weir_command *command, int count, char **words,
					    bool *ret_takes_options)
{
	const struct weir_option *awaiting = NULL;

	*ret_takes_options = true;
	for (int i = 1; i < count; i++) {
		if (awaiting && !strcmp(awaiting->name, "netns")) {
			/* Interfaces are those of the network namespace that the command would enter. */
			struct weir_diag diag = {};

			weir_host_enter_netns(words[i], &diag);
			weir_diag_free(&diag);
		}
		if (!awaiting && !strcmp(words[i], "--"))
			*ret_takes_options = false;
		awaiting = awaiting || !*ret_takes_options ? NULL : awaits_argument(command, words[i]);
	}
	return awaiting;
}

int weir_complete(int count, char **words)
{
	const char *word = count ? words[count - 1] : "";
	const struct weir_command_entry *entry = count > 1 ? weir_command_find(words[0]) : NULL;
	const char *arguments = entry ? entry->command->arguments : NULL;
	const struct weir_option *awaiting;
	bool takes_options;

	if (count < 2 || (count == 2 && !strcmp(words[0], "help"))) {
		for (const struct weir_command_entry *const *each = weir_commands(); *each; each++)
			offer(word, (*each)->command->name, (*each)->does);
		offer(word, "help", "the commands, or the options of one");
		offer(word, "--help", "the commands");
		offer(word, "--version", "release, commit, ABI and libraries");
	}
	if (!entry)
		return WEIR_EXIT_OK;
	awaiting = read_words(entry->command, count - 1, words, &takes_options);
	if (awaiting) {
		if (!offer_values(word, awaiting->argument))
			offer_values(word, awaiting->name);
	} else if (takes_options && word[0] == '-') {
		offer_options(word, entry->command);
	} else if (arguments) { /* the last word of "-r FILE... PCAP"; all earlier ones are of options */
		const char *last = strrchr(arguments, ' ');

		offer_values(word, last ? last + 1 : arguments);
	}
	return WEIR_EXIT_OK;
}
