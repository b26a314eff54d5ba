// SPDX-License-Identifier: GPL-2.0-only
#include "weir/weir.h"

#include "base/util.h"
#include "cli/print.h"

/* Most names on a line. The JSON has all of them. */
#define NAMES_MAX 10

static const char *const kinds[] = {"removed", "changed", "added"}; /* by enum weir_change_kind */

static void print_kind(const struct weir_changes *changes, enum weir_change_kind kind, FILE *stream)
{
	const size_t count = weir_changes_count(changes, kind);
	size_t printed = 0;

	if (!count)
		return;
	fprintf(stream, "%zu rule%s %s:", count, weir_plural(count), kinds[kind]);
	for (size_t i = 0; i < changes->count && printed < NAMES_MAX; i++)
		if (changes->all[i].kind == kind)
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
	for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++)
		print_kind(&result->changes, kind, stream);
	print_list("allow", result->allow_before, result->allow_now, stream);
	print_list("deny", result->deny_before, result->deny_now, stream);
	if (result->observes_now)
		fputs("observing: nothing is dropped\n", stream);
	else if (result->observed_before)
		fputs("dropping from now on: before, it only observed\n", stream);
}

static json_t *names_of(const struct weir_changes *changes, enum weir_change_kind kind)
{
	json_t *names = json_array();

	for (size_t i = 0; i < changes->count; i++)
		if (changes->all[i].kind == kind)
			weir_json_append(&names, weir_json_text(changes->all[i].name));
	return names;
}

static json_t *describe(const char *instance, const struct weir_reload_result *result)
{
	return json_pack("{s:s, s:I, s:s, s:i, s:i, s:o, s:o, s:o, s:{s:i, s:i}, s:{s:i, s:i}, s:o}", "instance",
			 instance, "generation", (json_int_t)result->generation, "mode",
			 result->observes_now ? "observe" : "enforce", "ruleCount", result->rules, "keptRuleCount",
			 result->kept_rules, "removed", names_of(&result->changes, WEIR_CHANGE_REMOVED), "changed",
			 names_of(&result->changes, WEIR_CHANGE_CHANGED), "added",
			 names_of(&result->changes, WEIR_CHANGE_ADDED), "allow", "before", result->allow_before, "now",
			 result->allow_now, "deny", "before", result->deny_before, "now", result->deny_now,
			 "returnsSeconds", result->returns_s ? json_integer(result->returns_s) : json_null());
}

int weir_print_reload_result(const char *done, const char *instance, bool wants_json,
			     const struct weir_reload_result *result, struct weir_diag *diag)
{
	char option[WEIR_INSTANCE_OPTIONS_BYTES];

	if (wants_json)
		return weir_json_print(describe(instance, result), diag);
	fprintf(stderr, "%s, generation %llu: ", done, (unsigned long long)result->generation);
	weir_print_reload(result, stderr);
	if (result->returns_s)
		fprintf(stderr, "not confirmed: the previous rules return in %llu s unless you run 'weir confirm%s'\n",
			(unsigned long long)result->returns_s, weir_instance_options(instance, option));
	return 0;
}
