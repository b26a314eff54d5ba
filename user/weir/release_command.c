// SPDX-License-Identifier: GPL-2.0-only
/* weir release: end penalties. */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "cli/command.h"
#include "host/host.h"
#include "cli/options.h"
#include "cli/print.h"
#include "report/keys.h"
#include "rules/scalars.h"
#include "state/penalised_flows.h"
#include "weir/weir.h"

static const struct weir_command weir_release_command = {
	.name = "release",
	.options = "raINjCh",
	.means_attached = true,
	.changes_it = true,
	.arguments = "FLOW",
	.arguments_max = 64,
	.about = "End the penalty of a flow. The rule's window decides its next packet again; if the rule blocks it, "
		 "the new penalty is the shortest one. FLOW is a key as 'weir flows' prints it, or one value of a "
		 "key, which selects all flows with this value. Without FLOW, '--rule NAME' selects all flows of "
		 "that rule, and '--all' the flows of all rules.",
	.example = "  weir release 192.0.2.7\n"
		   "  weir release --rule logins 'source 192.0.2.7, destinationPort 22'\n"
		   "  weir release --all",
};

/* ---- which flows are selected ---- */

/* Names and values of fields, and two labels, of which a word has at least a letter and a blank. */
#define WORDS_MAX ((size_t)2 * WEIR_KEY_FIELD_COUNT + WEIR_LABEL_BYTES)

/* The words of a key, or of a value. Addresses are in weir's own format. */
struct words {
	char word[WORDS_MAX][WEIR_KEY_FIELD_BYTES];
	size_t count;
};

static bool add_word(struct words *words, const char *text, size_t bytes)
{
	struct weir_refusal refusal;
	struct weir_prefix prefix;
	char *word;

	if (words->count == WORDS_MAX || bytes >= sizeof(words->word[0]))
		return false;
	word = words->word[words->count++];
	memcpy(word, text, bytes);
	word[bytes] = '\0';
	if (strpbrk(word, ".:") && !weir_parse_prefix(word, &prefix, &refusal))
		weir_format_prefix(&prefix, word);
	return true;
}

static bool add_words(struct words *words, const char *text)
{
	static const char *const separators = " ,\t";

	for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
		size_t bytes = strcspn(text, separators);

		if (!add_word(words, text, bytes))
			return false;
		text += bytes;
	}
	return true;
}

struct release {
	const struct weir_instance *instance;
	uint32_t rule_slot; /* or WEIR_ANY_RULE */
	struct words flow;  /* empty: any flow */
	bool means_all;
	uint64_t ended;
};

static bool are_same(const struct words *one, const struct words *other)
{
	size_t i = 0;

	while (i < one->count && i < other->count && !strcmp(one->word[i], other->word[i]))
		i++;
	return i == one->count && i == other->count;
}

/* Is it this key, or the value of one of its fields? Field by field, because a label may have several words. */
static bool is_meant_by_key(const struct release *release, const struct weir_rule_info *rule,
			    const struct weir_flow_key *key)
{
	const uint32_t fields = (1u << WEIR_KEY_FIELD_COUNT) - 1;
	struct weir_rule_info of_field = *rule;
	char text[WEIR_WORDS_BYTES];
	struct words whole, value; /* large, and there may be many penalties: not cleared */

	whole.count = 0;
	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++) {
		if (!(rule->identity.key_fields >> bit & 1))
			continue;
		of_field.identity.key_fields = rule->identity.key_fields & (~fields | 1u << bit);
		weir_flow_key_words(release->instance, &of_field, key, text);
		value.count = 0;
		if (add_words(&value, text + strcspn(text, " ")) && are_same(&value, &release->flow))
			return true;
		if (!add_words(&whole, text))
			return false;
	}
	return are_same(&whole, &release->flow);
}

static bool is_meant(const struct release *release, const struct weir_penalty *penalty)
{
	const struct weir_rule_info *rule;

	if (release->means_all)
		return true;
	if (!penalty->is_noted)
		return false;
	if (release->rule_slot != WEIR_ANY_RULE && penalty->rule_slot != release->rule_slot)
		return false;
	if (!release->flow.count)
		return true;
	rule = &release->instance->rules[penalty->rule_slot];
	return is_meant_by_key(release, rule, &penalty->key);
}

static void end_if_meant(const struct weir_penalty *penalty, void *data)
{
	struct release *release = data;

	if (is_meant(release, penalty))
		release->ended += weir_penalty_end(penalty);
}

/* ---- the request ---- */

static int find_rule(const struct weir_options *options, struct release *release, struct weir_diag *diag)
{
	const struct weir_instance *instance = release->instance;
	int err = weir_instance_find_rule(instance, options->rule, &release->rule_slot, diag);

	if (err || !options->rule || instance->rules[release->rule_slot].penalty_ms)
		return err;
	weir_diag_error(diag, NULL, NULL, "it has no blockDurationInMs", "rule '%s' has no penalties", options->rule);
	return -EINVAL;
}

static int read_request(const struct weir_options *options, struct release *release, struct weir_diag *diag)
{
	release->means_all = options->means_all;
	for (size_t i = 0; i < options->argument_count; i++)
		if (!add_words(&release->flow, options->arguments[i]))
			return weir_diag_error(diag, NULL, NULL, "write a key as 'weir flows' prints it",
					       "'%.*s' is not part of a flow's key", WEIR_SHOWN(options->arguments[i]));
	if (options->means_all && (release->flow.count || options->rule))
		return weir_diag_error(diag, NULL, NULL, "leave one of them out",
				       "'--all' means all flows of all rules: it takes no FLOW and no '--rule'");
	if (!options->means_all && !release->flow.count && !options->rule)
		return weir_diag_error(
			diag, NULL, NULL, "'weir flows' lists the penalised flows",
			"no flow given: write 'weir release FLOW', 'weir release --rule NAME' or 'weir release --all'");
	return 0;
}

/* Could this be a flow's key, or a value of one? The text is as the user wrote it. */
static bool is_key_word(const char *word)
{
	struct weir_refusal ignored;
	struct weir_prefix prefix;
	uint8_t protocol;

	if (strchr(word, '@'))
		return true;
	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++)
		if (!strcmp(word, weir_key_field_names[bit]) ||
		    (bit < WEIR_KEY_ENDS_COUNT &&
		     !strcmp(word, weir_key_field_name(WEIR_KEY_RELATIVE(1u << bit), bit))))
			return true;
	return !weir_parse_prefix(word, &prefix, &ignored) || !weir_parse_protocol(word, &protocol, &ignored) ||
	       !word[strspn(word, "0123456789")] || if_nametoindex(word);
}

/* What was meant, if nothing is penalised that it could be. */
static int refuse_flow(const struct weir_options *options, const struct release *release, struct weir_diag *diag)
{
	static const char *const hint = "'weir flows' lists the penalised flows";
	uint32_t slot;

	for (size_t i = 0; i < release->flow.count; i++) {
		const char *word = release->flow.word[i];
		_cleanup_(weir_diag_free) struct weir_diag ignored = {};

		/* An interface may be one of another network namespace. */
		if (is_key_word(word) || (i && is_key_word(release->flow.word[i - 1])))
			continue;
		if (release->instance->labels) /* any word may be one of a label */
			continue;
		if (!weir_instance_find_rule(release->instance, word, &slot, &ignored))
			return weir_diag_error(diag, NULL, NULL, NULL,
					       "'%s' is a rule, not a flow: write 'weir release --rule %s'", word,
					       word);
		return weir_diag_error(diag, NULL, NULL, hint,
				       "'%s' is not a flow: write a key as 'weir flows' prints it, or an address",
				       word);
	}
	if (!options->argument_count)
		weir_diag_error(diag, NULL, NULL, hint, "no flow of rule '%s' is penalised now", options->rule);
	else
		weir_diag_error(diag, NULL, NULL, hint, "no flow with '%s%s' is penalised now", options->arguments[0],
				options->argument_count > 1 ? " ..." : "");
	return -ENOENT;
}

static int act(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct release release = {};
	int err = read_request(options, &release, diag);

	if (err)
		return err;
	err = weir_instance_open(options->instance, &instance, diag);
	if (err)
		return err;
	release.instance = instance;
	err = find_rule(options, &release, diag);
	if (!err)
		err = weir_penalties_each(instance, true, end_if_meant, &release, diag);
	if (!err && release.means_all)
		err = weir_penalties_lay_ghosts(instance, diag);
	if (err)
		return err;
	if (release.ended) {
		/* Until this is over, a CPU may still use the state that it has read. */
		const struct timespec time = {.tv_nsec = WEIR_RELEASE_NS + 2 * weir_host_tick_ns()};

		nanosleep(&time, NULL);
	} else if (!release.means_all) {
		return refuse_flow(options, &release, diag);
	}
	if (options->wants_json)
		return weir_json_print(json_pack("{s:s, s:I}", "instance", release.instance->name, "released",
						 (json_int_t)release.ended),
				       diag);
	printf("%llu flow%s released\n", (unsigned long long)release.ended, weir_plural(release.ended));
	return weir_flush_results(diag);
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_release_command, argc, argv, act);
}

const struct weir_command_entry weir_release_entry = {&weir_release_command, run_command, "end penalties of flows"};
