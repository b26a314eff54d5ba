// SPDX-License-Identifier: GPL-2.0-only
#include "compile/rule_changes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static bool is_of_user(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow;
}

/* ---- rules by name ---- */

struct by_name {
	const struct weir_rule_info **rules; /* sorted by name; names are unique */
	size_t count;
};

static int compare_names(const void *left, const void *right)
{
	const struct weir_rule_info *const *a = left, *const *b = right;

	return strncmp((*a)->name, (*b)->name, WEIR_NAME_BYTES);
}

static int compare_places(const void *left, const void *right)
{
	const struct weir_rule_info *const *a = left, *const *b = right;

	return (*a)->place < (*b)->place ? -1 : (*a)->place > (*b)->place;
}

static int list_rules(const struct weir_rule_info *rules, uint32_t slots,
		      int (*compare)(const void *left, const void *right), struct by_name *ret_list)
{
	ret_list->rules = calloc(slots + 1ul, sizeof(*ret_list->rules));
	if (!ret_list->rules)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < slots; slot++)
		if (is_of_user(&rules[slot]))
			ret_list->rules[ret_list->count++] = &rules[slot];
	qsort(ret_list->rules, ret_list->count, sizeof(*ret_list->rules), compare);
	return 0;
}

static const struct weir_rule_info *find(const struct by_name *list, const struct weir_rule_info *rule)
{
	const struct weir_rule_info **found =
		bsearch(&rule, list->rules, list->count, sizeof(*list->rules), compare_names);

	return found ? *found : NULL;
}

/* ---- changes ---- */

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
	memset(&written.tokens, 0, sizeof(written.tokens));
	return written;
}

static bool is_changed(const struct weir_rule_info *before, const struct weir_rule_info *after)
{
	const struct weir_rule_info old = as_written(before), new = as_written(after);
	const void *old_bytes = &old, *new_bytes = &new; /* compare all bytes: padding was zeroed */

	return memcmp(old_bytes, new_bytes, sizeof(old)) != 0;
}

static void add(struct weir_rule_changes *changes, enum weir_rule_fate fate, const struct weir_rule_info *rule)
{
	struct weir_rule_change *change = &changes->all[changes->count++];

	change->fate = fate;
	memcpy(change->name, rule->name, WEIR_NAME_BYTES);
	change->name[WEIR_NAME_BYTES - 1] = '\0';
	changes->of_fate[fate]++;
}

/* Add the rules in `list` with this type of change; `others` are those on the other side of the load. */
static void add_all(struct weir_rule_changes *changes, enum weir_rule_fate fate, const struct by_name *list,
		    const struct by_name *others)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct weir_rule_info *rule = list->rules[i], *other = find(others, rule);

		if (fate == WEIR_RULE_CHANGED ? other && is_changed(other, rule) : !other)
			add(changes, fate, rule);
	}
}

static void free_list(struct by_name *list)
{
	free(list->rules);
}

int weir_rule_changes_find(const struct weir_rule_info *before, uint32_t before_slots,
			   const struct weir_rule_info *after, uint32_t after_slots,
			   struct weir_rule_changes *ret_changes)
{
	_cleanup_(free_list) struct by_name old = {}, new = {}, old_names = {}, new_names = {};

	*ret_changes = (struct weir_rule_changes){};
	if (!before)
		return 0;
	if (list_rules(before, before_slots, compare_places, &old) ||
	    list_rules(after, after_slots, compare_places, &new) ||
	    list_rules(before, before_slots, compare_names, &old_names) ||
	    list_rules(after, after_slots, compare_names, &new_names))
		return -ENOMEM;
	ret_changes->all = calloc(old.count + new.count + 1, sizeof(*ret_changes->all));
	if (!ret_changes->all)
		return -ENOMEM;
	add_all(ret_changes, WEIR_RULE_REMOVED, &old, &new_names);
	add_all(ret_changes, WEIR_RULE_CHANGED, &new, &old_names);
	add_all(ret_changes, WEIR_RULE_ADDED, &new, &old_names);
	return 0;
}

void weir_rule_changes_free(struct weir_rule_changes *changes)
{
	free(changes->all);
	*changes = (struct weir_rule_changes){};
}

/* ---- rules without a name ---- */

/* Is this the default name of a rule of this resource: RESOURCE#N? */
static bool is_default_name(const char *name, const char *resource)
{
	size_t bytes = strnlen(resource, WEIR_NAME_BYTES);

	return !strncmp(name, resource, bytes) && name[bytes] == '#';
}

const char *weir_rule_changes_renumber(const struct weir_rule_changes *changes, const struct weir_rule_info *after,
				       uint32_t after_slots)
{
	if (!changes->of_fate[WEIR_RULE_CHANGED] || changes->of_fate[WEIR_RULE_CHANGED] == changes->count)
		return NULL;
	for (uint32_t slot = 0; slot < after_slots; slot++) {
		const char *resource = after[slot].resource_name;
		bool is_here = false, has_moved = false;

		if (!is_of_user(&after[slot]) || !is_default_name(after[slot].name, resource))
			continue;
		for (size_t i = 0; i < changes->count; i++) {
			const struct weir_rule_change *change = &changes->all[i];

			is_here |= change->fate == WEIR_RULE_CHANGED && !strcmp(change->name, after[slot].name);
			has_moved |= change->fate != WEIR_RULE_CHANGED && is_default_name(change->name, resource);
		}
		if (is_here && has_moved)
			return resource;
	}
	return NULL;
}
