// SPDX-License-Identifier: GPL-2.0-only
#include "weir/print_reload.h"

#include "base/util.h"
#include "cli/print.h"

/* Most names on a line. The JSON has all of them. */
#define NAMES_MAX 10

static const char *const fates[WEIR_RULE_FATES] = {"removed", "changed", "added"};

static void print_fate(const struct weir_rule_changes *changes, enum weir_rule_fate fate, FILE *stream)
{
	const size_t count = changes->of_fate[fate];
	size_t printed = 0;

	if (!count)
		return;
	fprintf(stream, "%zu rule%s %s:", count, weir_plural(count), fates[fate]);
	for (size_t i = 0; i < changes->count && printed < NAMES_MAX; i++)
		if (changes->all[i].fate == fate)
			fprintf(stream, "%s %s", printed++ ? "," : "", changes->all[i].name);
	if (count > printed)
		fprintf(stream, ", and %zu more", count - printed);
	fputc('\n', stream);
}

static void print_list(const char *list, uint32_t before, uint32_t now, FILE *stream)
{
	if (before != now)
		fprintf(stream, "%s: %u prefix%s, %u before\n", list, now, now == 1 ? "" : "es", before);
}

void weir_print_reload(const struct weir_reload_result *result, FILE *stream)
{
	fprintf(stream, "%u rule%s (%u %s)\n", result->rules, weir_plural(result->rules), result->kept_rules,
		result->kept_rules == 1 ? "keeps its counts" : "keep their counts");
	for (int fate = 0; fate < WEIR_RULE_FATES; fate++)
		print_fate(&result->changes, fate, stream);
	print_list("allow", result->allow_before, result->allow_now, stream);
	print_list("deny", result->deny_before, result->deny_now, stream);
	if (result->observes_now)
		fputs("observing: nothing is dropped\n", stream);
	else if (result->observed_before)
		fputs("dropping from now on: before, it only observed\n", stream);
}

static json_t *names_of(const struct weir_rule_changes *changes, enum weir_rule_fate fate)
{
	json_t *names = json_array();

	for (size_t i = 0; i < changes->count; i++)
		if (changes->all[i].fate == fate)
			weir_json_append(&names, weir_json_text(changes->all[i].name));
	return names;
}

static json_t *describe(const char *instance, const struct weir_reload_result *result)
{
	return json_pack("{s:s, s:I, s:s, s:i, s:i, s:o, s:o, s:o, s:{s:i, s:i}, s:{s:i, s:i}, s:o}", "instance",
			 instance, "generation", (json_int_t)result->generation, "mode",
			 result->observes_now ? "observe" : "enforce", "ruleCount", result->rules, "keptRuleCount",
			 result->kept_rules, "removed", names_of(&result->changes, WEIR_RULE_REMOVED), "changed",
			 names_of(&result->changes, WEIR_RULE_CHANGED), "added",
			 names_of(&result->changes, WEIR_RULE_ADDED), "allow", "before", result->allow_before, "now",
			 result->allow_now, "deny", "before", result->deny_before, "now", result->deny_now,
			 "returnsSeconds", result->returns_s ? json_integer(result->returns_s) : json_null());
}

static void print_unconfirmed(const char *instance, const struct weir_reload_result *result)
{
	char option[WEIR_INSTANCE_OPTIONS_BYTES];

	if (result->returns_s)
		fprintf(stderr, "not confirmed: the previous rules return in %llu s unless you run 'weir confirm%s'\n",
			(unsigned long long)result->returns_s, weir_instance_options(instance, option));
}

int weir_print_reload_result(const char *done, const char *instance, bool wants_json,
			     const struct weir_reload_result *result, struct weir_diag *diag)
{
	if (wants_json)
		return weir_json_print(describe(instance, result), diag);
	fprintf(stderr, "%s, generation %llu: ", done, (unsigned long long)result->generation);
	weir_print_reload(result, stderr);
	print_unconfirmed(instance, result);
	return 0;
}
