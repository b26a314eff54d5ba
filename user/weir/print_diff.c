// SPDX-License-Identifier: GPL-2.0-only
#include "weir/weir.h"

#include <string.h>

#include "base/util.h"
#include "cli/print.h"
#include "words/json.h"

static const char *const kind_names[] = {
	[WEIR_CHANGE_REMOVED] = "removed",
	[WEIR_CHANGE_CHANGED] = "changed",
	[WEIR_CHANGE_ADDED] = "added",
	[WEIR_CHANGE_NONE] = "unchanged",
};

/* ---- for people ---- */

static void print_lines(char mark, const char *lines)
{
	for (; lines && *lines; lines += strcspn(lines, "\n") + 1)
		printf("  %c %.*s\n", mark, (int)strcspn(lines, "\n"), lines);
}

static void print_both(const struct weir_change *change)
{
	print_lines('-', change->before);
	print_lines('+', change->after);
}

/* A resource or a set. */
static void print_change(const char *what, const struct weir_change *change)
{
	if (change->kind == WEIR_CHANGE_NONE)
		return;
	printf("%s '%s': %s\n", what, change->name, kind_names[change->kind]);
	print_both(change);
}

static void print_rule(const struct weir_change *change)
{
	if (change->kind == WEIR_CHANGE_NONE)
		return;
	printf("rule '%s': %s", change->name, kind_names[change->kind]);
	if (change->kind == WEIR_CHANGE_CHANGED && change->keeps_state)
		printf(", keeps its windows and counters");
	else if (change->kind == WEIR_CHANGE_CHANGED)
		printf(", starts empty: %s", change->why_empty);
	putchar('\n');
	print_both(change);
}

static void print_list(const char *name, uint32_t before, uint32_t now, bool is_changed)
{
	if (before != now)
		printf("%s: %u prefix%s, %u before\n", name, now, now == 1 ? "" : "es", before);
	else if (is_changed && now)
		printf("%s: %u prefix%s, as many as before, but not all the same\n", name, now, now == 1 ? "" : "es");
}

static void print_cost(const struct weir_reload_forecast *forecast)
{
	printf("memory: %.1f MB", forecast->total_bytes / 1e6);
	if (forecast->total_bytes_before)
		printf(", %.1f MB before", forecast->total_bytes_before / 1e6);
	printf("; %.1f MB more while both rule sets are loaded\n", forecast->needed_bytes / 1e6);
	printf("time: compiled in %.0f ms", forecast->compile_ns / 1e6);
	if (forecast->load_ns)
		printf(", loaded by the kernel in %.0f ms", forecast->load_ns / 1e6);
	putchar('\n');
}

static void print_text(const struct weir_reload_forecast *forecast)
{
	const struct weir_forecast *changes = &forecast->changes;
	const size_t rules = weir_changes_count(&changes->rules, WEIR_CHANGE_NONE),
		     resources = weir_changes_count(&changes->resources, WEIR_CHANGE_NONE);

	if (changes->settings.kind != WEIR_CHANGE_NONE) {
		puts("settings: changed");
		print_both(&changes->settings);
	}
	print_list("allow", changes->allow_before, changes->allow_now, changes->changes_lists);
	print_list("deny", changes->deny_before, changes->deny_now, changes->changes_lists);
	for (size_t i = 0; i < changes->sets.count; i++)
		print_change("set", &changes->sets.all[i]);
	for (size_t i = 0; i < changes->resources.count; i++)
		print_change("resource", &changes->resources.all[i]);
	for (size_t i = 0; i < changes->rules.count; i++)
		print_rule(&changes->rules.all[i]);
	if (!changes->changes_anything)
		puts("nothing would change");
	printf("unchanged: %zu resource%s, %zu rule%s\n", resources, weir_plural(resources), rules, weir_plural(rules));
	print_cost(forecast);
}

/* ---- JSON ---- */

static json_t *list_lines(const char *lines)
{
	json_t *list = json_array();

	for (; lines && *lines; lines += strcspn(lines, "\n") + 1)
		weir_json_append(&list, json_stringn(lines, strcspn(lines, "\n")));
	return list;
}

static json_t *describe_change(const struct weir_change *change)
{
	json_t *fields = json_pack("{s:s, s:o, s:o}", "change", kind_names[change->kind], "before",
				   list_lines(change->before), "now", list_lines(change->after));

	if (change->name)
		json_object_set_new(fields, "name", weir_json_text(change->name));
	return fields;
}

/* Resources or sets. */
static json_t *describe_changes(const struct weir_changes *changes)
{
	json_t *list = json_array();

	for (size_t i = 0; i < changes->count; i++)
		weir_json_append(&list, describe_change(&changes->all[i]));
	return list;
}

static json_t *describe_rules(const struct weir_changes *changes)
{
	json_t *list = json_array();

	for (size_t i = 0; i < changes->count; i++) {
		const struct weir_change *change = &changes->all[i];
		json_t *fields = describe_change(change);

		json_object_set_new(fields, "keepsState", json_boolean(change->keeps_state));
		if (change->why_empty)
			json_object_set_new(fields, "reason", json_string(change->why_empty));
		weir_json_append(&list, fields);
	}
	return list;
}

static json_t *describe_list(uint32_t before, uint32_t now)
{
	return json_pack("{s:I, s:I}", "before", (json_int_t)before, "now", (json_int_t)now);
}

static json_t *describe_cost(const struct weir_reload_forecast *forecast)
{
	return json_pack(
		"{s:I, s:o, s:I, s:f, s:o}", "totalBytes", (json_int_t)forecast->total_bytes, "totalBytesBefore",
		forecast->total_bytes_before ? json_integer((json_int_t)forecast->total_bytes_before) : json_null(),
		"neededBytes", (json_int_t)forecast->needed_bytes, "compileSeconds", forecast->compile_ns / 1e9,
		"loadSeconds", forecast->load_ns ? json_real(forecast->load_ns / 1e9) : json_null());
}

static json_t *describe(const char *instance, const struct weir_reload_forecast *forecast)
{
	const struct weir_forecast *changes = &forecast->changes;

	return json_pack("{s:s, s:b, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "instance", instance, "isSame",
			 !changes->changes_anything, "isBeforeKnown", forecast->is_before_known, "keptRuleCount",
			 (json_int_t)changes->kept_rules, "settings", describe_change(&changes->settings), "resources",
			 describe_changes(&changes->resources), "rules", describe_rules(&changes->rules), "allow",
			 describe_list(changes->allow_before, changes->allow_now), "deny",
			 describe_list(changes->deny_before, changes->deny_now), "listsChange", changes->changes_lists,
			 "sets", describe_changes(&changes->sets), "cost", describe_cost(forecast));
}

int weir_print_forecast(const char *instance, bool wants_json, const struct weir_reload_forecast *forecast,
			struct weir_diag *diag)
{
	if (!forecast->is_before_known)
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "the rule set in force was not kept, so only names and windows are compared");
	if (wants_json)
		return weir_json_print(describe(instance, forecast), diag);
	print_text(forecast);
	return 0;
}
