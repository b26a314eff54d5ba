// SPDX-License-Identifier: GPL-2.0-only
#include "compile/forecast.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rules/emit.h"
#include "rules/scalars.h"
#include "tables/rule_kind.h"

/* ---- changes ---- */

static struct weir_change *add(struct weir_changes *changes, enum weir_change_kind kind, const char *name)
{
	struct weir_change *change = weir_array_add((void **)&changes->all, changes->count, sizeof(*change));

	if (!change)
		return NULL;
	change->name = strndup(name, WEIR_NAME_BYTES);
	change->kind = kind;
	changes->count++;
	return change->name ? change : NULL;
}

size_t weir_changes_count(const struct weir_changes *changes, enum weir_change_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < changes->count; i++)
		count += changes->all[i].kind == kind;
	return count;
}

static void free_change(struct weir_change *change)
{
	free(change->name);
	free(change->before);
	free(change->after);
}

void weir_changes_free(struct weir_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		free_change(&changes->all[i]);
	free(changes->all);
	*changes = (struct weir_changes){};
}

/* ---- names ---- */

/* Rules or resources, sorted by name, or by their places in the files. */
struct list {
	struct named {
		const char *name;
		size_t place;
		const struct weir_rule_info *loaded; /* of a rule that is loaded */
	} * all;
	size_t count;
};

static int compare_names(const void *left, const void *right)
{
	return strncmp(((const struct named *)left)->name, ((const struct named *)right)->name, WEIR_NAME_BYTES);
}

static int compare_places(const void *left, const void *right)
{
	const struct named *a = left, *b = right;

	return (a->place > b->place) - (a->place < b->place);
}

/* In a list that is sorted by name. */
static const struct named *find(const struct list *list, const char *name)
{
	const struct named wanted = {.name = name};

	return bsearch(&wanted, list->all, list->count, sizeof(*list->all), compare_names);
}

static void free_list(struct list *list)
{
	free(list->all);
}

/* ---- loaded rules ---- */

static bool is_of_user(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow;
}

static int list_loaded(const struct weir_rule_info *rules, uint32_t slots,
		       int (*compare)(const void *left, const void *right), struct list *ret_list)
{
	ret_list->all = calloc(slots + 1ul, sizeof(*ret_list->all));
	if (!ret_list->all)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < slots; slot++)
		if (is_of_user(&rules[slot]))
			ret_list->all[ret_list->count++] =
				(struct named){rules[slot].name, rules[slot].place, &rules[slot]};
	qsort(ret_list->all, ret_list->count, sizeof(*ret_list->all), compare);
	return 0;
}

/* Only the fields that the user writes. Those that a load decides are cleared, rather than listing fields to compare,
 * so that a new field is compared.
 */
static struct weir_rule_info as_written(const struct weir_rule_info *rule)
{
	struct weir_rule_info written = *rule;

	written.threshold_word = 0;
	written.free_after_ns = 0;
	written.versions_since_ns = 0;
	written.place = 0;
	written.resource_slot = 0;
	written.storage = 0;
	written.spec = 0;
	written.flows_until_ns = 0;
	written.families = written.counts_whole = 0; /* of the resources, and older versions do not write them */
	if (weir_has_connections(rule))
		written.flows_slot_and_one = 0;
	memset(&written.tokens, 0, sizeof(written.tokens));
	return written;
}

static bool is_changed(const struct weir_rule_info *before, const struct weir_rule_info *after)
{
	const struct weir_rule_info old = as_written(before), new = as_written(after);
	const void *old_bytes = &old, *new_bytes = &new; /* compare all bytes: padding was zeroed */

	return memcmp(old_bytes, new_bytes, sizeof(old)) != 0;
}

/* Add the rules in `list` that have changed in this way; `others` are those on the other side of the load. */
static int add_all(struct weir_changes *changes, enum weir_change_kind kind, const struct list *list,
		   const struct list *others)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct named *rule = &list->all[i], *other = find(others, rule->name);

		if ((other != NULL) != (kind == WEIR_CHANGE_CHANGED) ||
		    (other && !is_changed(other->loaded, rule->loaded)))
			continue;
		if (!add(changes, kind, rule->name))
			return -ENOMEM;
	}
	return 0;
}

int weir_rule_changes_find(const struct weir_rule_info *before, uint32_t before_slots,
			   const struct weir_rule_info *after, uint32_t after_slots, struct weir_changes *ret_changes)
{
	_cleanup_(free_list) struct list old = {}, new = {}, old_names = {}, new_names = {};

	*ret_changes = (struct weir_changes){};
	if (!before)
		return 0;
	if (!list_loaded(before, before_slots, compare_places, &old) &&
	    !list_loaded(after, after_slots, compare_places, &new) &&
	    !list_loaded(before, before_slots, compare_names, &old_names) &&
	    !list_loaded(after, after_slots, compare_names, &new_names) &&
	    !add_all(ret_changes, WEIR_CHANGE_REMOVED, &old, &new_names) &&
	    !add_all(ret_changes, WEIR_CHANGE_CHANGED, &new, &old_names) &&
	    !add_all(ret_changes, WEIR_CHANGE_ADDED, &new, &old_names))
		return 0;
	weir_changes_free(ret_changes);
	return -ENOMEM;
}

/* ---- rules without a name ---- */

/* Is this the default name of a rule of this resource: RESOURCE#N? */
static bool is_default_name(const char *name, const char *resource)
{
	size_t bytes = strnlen(resource, WEIR_NAME_BYTES);

	return !strncmp(name, resource, bytes) && name[bytes] == '#';
}

const char *weir_rule_changes_renumber(const struct weir_changes *changes, const struct weir_rule_info *after,
				       uint32_t after_slots)
{
	const size_t changed = weir_changes_count(changes, WEIR_CHANGE_CHANGED);

	if (!changed || changed == changes->count)
		return NULL;
	for (uint32_t slot = 0; slot < after_slots; slot++) {
		const char *resource = after[slot].resource_name;
		bool is_here = false, has_moved = false;

		if (!is_of_user(&after[slot]) || !is_default_name(after[slot].name, resource))
			continue;
		for (size_t i = 0; i < changes->count; i++) {
			const struct weir_change *change = &changes->all[i];

			is_here |= change->kind == WEIR_CHANGE_CHANGED && !strcmp(change->name, after[slot].name);
			has_moved |= change->kind != WEIR_CHANGE_CHANGED && is_default_name(change->name, resource);
		}
		if (is_here && has_moved)
			return resource;
	}
	return NULL;
}

/* ---- rule sets ---- */

void weir_forecast_free(struct weir_forecast *forecast)
{
	free_change(&forecast->settings);
	weir_changes_free(&forecast->resources);
	weir_changes_free(&forecast->rules);
	weir_changes_free(&forecast->sets);
	*forecast = (struct weir_forecast){};
}

/* ---- texts ---- */

/* Overrides come last, and may be a hundred thousand: replace them by their number. */
static void count_overrides(char **text, const struct weir_ruleset_rule *rule)
{
	char *overrides = strstr(*text, "\noverrides:\n"), *whole;

	if (!overrides)
		return;
	overrides[1] = '\0';
	if (asprintf(&whole, "%soverrides: %zu\n", *text, rule->override_count) < 0)
		whole = NULL;
	free(*text);
	*text = whole;
}

/* The caller frees it. NULL: out of memory. */
static char *text_of(const struct weir_ruleset *ruleset, enum weir_part part, size_t place)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream)
		return NULL;
	weir_emit_part(ruleset, part, place, stream);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	if (part == WEIR_PART_RULE)
		count_overrides(&text, &ruleset->rules[place]);
	return text;
}

static bool has_line(const char *text, const char *line, size_t bytes)
{
	for (; *text; text += strcspn(text, "\n") + 1)
		if (!strncmp(text, line, bytes) && text[bytes] == '\n')
			return true;
	return false;
}

/* The lines of `text` that `other` does not have; NULL: there are none. */
static int lines_beside(const char *text, const char *other, char **ret_lines)
{
	char *lines = calloc(1, strlen(text) + 1), *out = lines;

	if (!lines)
		return -ENOMEM;
	while (*text) {
		size_t bytes = strcspn(text, "\n");

		if (bytes && !has_line(other, text, bytes)) {
			memcpy(out, text, bytes + 1);
			out += bytes + 1;
		}
		text += bytes + (text[bytes] == '\n');
	}
	if (out == lines) {
		free(lines);
		lines = NULL;
	}
	*ret_lines = lines;
	return 0;
}

/* Compare the same part of both rule sets. */
static int compare(const struct weir_ruleset *before, size_t before_place, const struct weir_ruleset *after,
		   size_t after_place, enum weir_part part, struct weir_change *change)
{
	_cleanup_(weir_freep) char *old = text_of(before, part, before_place), *new = text_of(after, part, after_place);
	int err = old && new ? lines_beside(old, new, &change->before) : -ENOMEM;

	return err ? err : lines_beside(new, old, &change->after);
}

static int sort_names(const struct weir_ruleset *ruleset, enum weir_part part, struct list *ret_list)
{
	ret_list->count = !ruleset ? 0 : part == WEIR_PART_RULE ? ruleset->rule_count : ruleset->resource_count;
	ret_list->all = calloc(ret_list->count + 1, sizeof(*ret_list->all));
	if (!ret_list->all)
		return -ENOMEM;
	for (size_t i = 0; i < ret_list->count; i++)
		ret_list->all[i] = (struct named){
			part == WEIR_PART_RULE ? ruleset->rules[i].name : ruleset->resources[i].name, i, NULL};
	qsort(ret_list->all, ret_list->count, sizeof(*ret_list->all), compare_names);
	return 0;
}

/* ---- resources ---- */

static int forecast_resources(const struct weir_ruleset *before, const struct weir_ruleset *after,
			      struct weir_forecast *forecast)
{
	_cleanup_(free_list) struct list old = {}, new = {};
	int err = sort_names(before, WEIR_PART_RESOURCE, &old);

	if (!err)
		err = sort_names(after, WEIR_PART_RESOURCE, &new);
	for (size_t i = 0; !err && i < after->resource_count; i++) {
		const struct named *was = find(&old, after->resources[i].name);
		struct weir_change *change =
			add(&forecast->resources, was ? WEIR_CHANGE_NONE : WEIR_CHANGE_ADDED, after->resources[i].name);

		if (!change)
			return -ENOMEM;
		if (!was)
			continue;
		change->keeps_state = true; /* its counters are found by its name */
		err = compare(before, was->place, after, i, WEIR_PART_RESOURCE, change);
		if (change->before || change->after)
			change->kind = WEIR_CHANGE_CHANGED;
	}
	for (size_t i = 0; !err && before && i < before->resource_count; i++)
		if (!find(&new, before->resources[i].name) &&
		    !add(&forecast->resources, WEIR_CHANGE_REMOVED, before->resources[i].name))
			err = -ENOMEM;
	return err;
}

/* ---- rules ---- */

static enum weir_change_kind kind_of(const struct weir_changes *changes, const char *name)
{
	for (size_t i = 0; i < changes->count; i++)
		if (!strncmp(changes->all[i].name, name, WEIR_NAME_BYTES))
			return changes->all[i].kind;
	return WEIR_CHANGE_NONE;
}

static int forecast_rule(const struct weir_ruleset *before, const struct list *old, const struct weir_ruleset *after,
			 size_t place, const struct weir_changes *changes, const struct weir_image *image,
			 struct weir_forecast *forecast)
{
	const struct weir_ruleset_rule *rule = &after->rules[place];
	const struct named *was = find(old, rule->name);
	struct weir_change *change = add(&forecast->rules, kind_of(changes, rule->name), rule->name);
	int err = 0;

	if (!change)
		return -ENOMEM;
	if (change->kind == WEIR_CHANGE_ADDED)
		return 0;
	change->keeps_state = !image->fresh_rule_slots[image->rules[place].slot];
	if (!change->keeps_state)
		change->why_empty = image->why_empty[place] ?: "another resource";
	if (was)
		err = compare(before, was->place, after, place, WEIR_PART_RULE, change);
	if (change->before || change->after || !change->keeps_state)
		change->kind = WEIR_CHANGE_CHANGED;
	return err;
}

static int forecast_rules(const struct weir_ruleset *before, const struct weir_ruleset *after,
			  const struct weir_previous *previous, const struct weir_image *image,
			  struct weir_forecast *forecast)
{
	_cleanup_(weir_changes_free) struct weir_changes changes = {};
	_cleanup_(free_list) struct list old = {};
	int err = weir_rule_changes_find(previous->rules, previous->rule_slots, image->rule_info, image->rule_slots,
					 &changes);

	if (!err)
		err = sort_names(before, WEIR_PART_RULE, &old);
	for (size_t i = 0; !err && i < after->rule_count; i++)
		err = forecast_rule(before, &old, after, i, &changes, image, forecast);
	for (size_t i = 0; !err && i < changes.count; i++)
		if (changes.all[i].kind == WEIR_CHANGE_REMOVED &&
		    !add(&forecast->rules, WEIR_CHANGE_REMOVED, changes.all[i].name))
			err = -ENOMEM;
	return err;
}

/* ---- settings and lists ---- */

static int forecast_settings(const struct weir_ruleset *before, const struct weir_ruleset *after,
			     struct weir_forecast *forecast)
{
	struct weir_change *change = &forecast->settings;
	int err = before ? compare(before, 0, after, 0, WEIR_PART_SETTINGS, change) : 0;

	change->keeps_state = true;
	change->kind = change->before || change->after ? WEIR_CHANGE_CHANGED : WEIR_CHANGE_NONE;
	return err;
}

static void count_lists(const struct weir_ruleset *ruleset, uint32_t *ret_allow, uint32_t *ret_deny)
{
	for (size_t i = 0; ruleset && i < ruleset->listed_count; i++)
		++*(ruleset->listed[i].denies ? ret_deny : ret_allow);
}

static bool are_same_lists(const struct weir_ruleset *before, const struct weir_ruleset *after)
{
	if (before->listed_count != after->listed_count)
		return false;
	for (size_t i = 0; i < before->listed_count; i++)
		if (before->listed[i].denies != after->listed[i].denies ||
		    weir_compare_prefixes(&before->listed[i].prefix, &after->listed[i].prefix))
			return false;
	return true;
}

static bool is_same_entry(const struct weir_set *before, const struct weir_set_entry *left,
			  const struct weir_set *after, const struct weir_set_entry *right)
{
	const struct weir_set_label *a, *b;

	if (before->has_labels != after->has_labels || !before->has_labels)
		return before->has_labels == after->has_labels;
	a = &before->labels[left->label];
	b = &after->labels[right->label];
	return a->weight == b->weight && !strcmp(a->text, b->text);
}

/* How many prefixes, with their labels, only one of the two has. NULL has none. */
static int compare_sets(const struct weir_set *before, const struct weir_set *after, struct weir_change *change)
{
	const size_t old_count = before ? before->entry_count : 0, new_count = after ? after->entry_count : 0;
	size_t only_old = 0, only_new = 0, i = 0, k = 0;

	while (i < old_count || k < new_count) {
		const int order =
			i == old_count	 ? 1
			: k == new_count ? -1
					 : weir_compare_prefixes(&before->entries[i].prefix, &after->entries[k].prefix);
		const bool is_same = !order && before && after &&
				     is_same_entry(before, &before->entries[i], after, &after->entries[k]);

		only_old += order <= 0 && !is_same;
		only_new += order >= 0 && !is_same;
		i += order <= 0;
		k += order >= 0;
	}
	if ((only_old && asprintf(&change->before, "%zu prefix%s\n", only_old, only_old == 1 ? "" : "es") < 0) ||
	    (only_new && asprintf(&change->after, "%zu prefix%s\n", only_new, only_new == 1 ? "" : "es") < 0))
		return -ENOMEM;
	if (change->kind == WEIR_CHANGE_CHANGED && !only_old && !only_new)
		change->kind = WEIR_CHANGE_NONE;
	return 0;
}

int weir_set_changes_find(const struct weir_ruleset *before, const struct weir_ruleset *after,
			  struct weir_changes *ret_changes)
{
	struct weir_change *change;
	int err = 0;

	for (size_t i = 0; !err && i < after->set_count; i++) {
		const struct weir_set *set = &after->sets[i],
				      *old = before ? weir_find_set(before, set->name, strlen(set->name)) : NULL;

		change = add(ret_changes,
			     old      ? WEIR_CHANGE_CHANGED
			     : before ? WEIR_CHANGE_ADDED
				      : WEIR_CHANGE_NONE,
			     set->name);
		err = !change ? -ENOMEM : before ? compare_sets(old, set, change) : 0;
	}
	for (size_t i = 0; !err && before && i < before->set_count; i++) {
		if (weir_find_set(after, before->sets[i].name, strlen(before->sets[i].name)))
			continue;
		change = add(ret_changes, WEIR_CHANGE_REMOVED, before->sets[i].name);
		err = change ? compare_sets(&before->sets[i], NULL, change) : -ENOMEM;
	}
	return err;
}

static bool changes_any(const struct weir_changes *changes)
{
	return weir_changes_count(changes, WEIR_CHANGE_NONE) < changes->count;
}

int weir_forecast_make(const struct weir_ruleset *before, const struct weir_ruleset *after,
		       const struct weir_previous *previous, const struct weir_image *image,
		       struct weir_forecast *ret_forecast)
{
	struct weir_forecast forecast = {.kept_rules = image->kept_rules};
	int err = forecast_settings(before, after, &forecast);

	if (!err)
		err = forecast_resources(before, after, &forecast);
	if (!err)
		err = forecast_rules(before, after, previous, image, &forecast);
	if (!err)
		err = weir_set_changes_find(before, after, &forecast.sets);
	if (err) {
		weir_forecast_free(&forecast);
		return err;
	}
	count_lists(before, &forecast.allow_before, &forecast.deny_before);
	count_lists(after, &forecast.allow_now, &forecast.deny_now);
	forecast.changes_lists = before && !are_same_lists(before, after);
	forecast.changes_anything = forecast.changes_lists || forecast.settings.kind != WEIR_CHANGE_NONE ||
				    changes_any(&forecast.resources) || changes_any(&forecast.rules) ||
				    changes_any(&forecast.sets);
	*ret_forecast = forecast;
	return 0;
}
