/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a load would change, computed before it is loaded: rule by rule, resource by resource, and in the settings.
 * Whether a rule keeps its state is the compiler's decision, recorded in the image, so that a forecast cannot differ
 * from the load. Lines that differ are lines of the canonical rule file (rules/emit.h). Pure.
 */
#ifndef WEIR_COMPILE_FORECAST_H
#define WEIR_COMPILE_FORECAST_H

#include <stddef.h>
#include <stdint.h>

#include "compile/compile.h"
#include "weir_abi.h"

enum weir_change_kind { WEIR_CHANGE_REMOVED, WEIR_CHANGE_CHANGED, WEIR_CHANGE_ADDED, WEIR_CHANGE_NONE };

struct weir_change {
	enum weir_change_kind kind;
	char *name;
	bool keeps_state;      /* for a rule or resource that exists before and after */
	const char *why_empty; /* if it does not keep it; NULL: not known */
	/* Lines that only one of the two has, each with its line end; NULL: there are none, or the earlier rule set is
	 * not known. The overrides of a rule are given as a number.
	 */
	char *before, *after;
};

struct weir_changes {
	struct weir_change *all;
	size_t count;
};

size_t weir_changes_count(const struct weir_changes *changes, enum weir_change_kind kind);
void weir_changes_free(struct weir_changes *changes);

/* ---- loaded rules, by name: which ones a reload removes, changes and adds ---- */

/*
 * Compare the rules in use before a load with those after it, one entry per slot. Shadow windows are left out, since
 * the user did not write them. Removed rules come first, then changed and added ones, each in the order of the files.
 * `before` may be NULL if nothing is known about it; then the result is empty. Returns 0 or -ENOMEM. The caller frees
 * *ret_changes.
 */
int weir_rule_changes_find(const struct weir_rule_info *before, uint32_t before_slots,
			   const struct weir_rule_info *after, uint32_t after_slots, struct weir_changes *ret_changes);

/*
 * Unnamed rules are matched, and keep their windows, by their number among the rules of their resource: when a rule is
 * added or removed before them, each inherits another rule's windows. Returns the first resource to which that may have
 * happened, or NULL.
 */
const char *weir_rule_changes_renumber(const struct weir_changes *changes, const struct weir_rule_info *after,
				       uint32_t after_slots);

/* ---- rule sets ---- */

/* Compare the sets of two rule sets, by name; the lines say how many prefixes only one of the two has, and removed ones
 * come last. If `before` is NULL, nothing is known about it. Returns 0 or -ENOMEM. The caller frees *ret_changes.
 */
int weir_set_changes_find(const struct weir_ruleset *before, const struct weir_ruleset *after,
			  struct weir_changes *ret_changes);

struct weir_forecast {
	struct weir_change settings;
	struct weir_changes resources, rules; /* removed ones last; unchanged ones are included */
	struct weir_changes sets;
	bool changes_anything;
	uint32_t kept_rules;
	uint32_t allow_before, allow_now, deny_before, deny_now;
	bool changes_lists;
};

/*
 * `image` is `after`, compiled over `previous`. `before` is the rule set that `previous` was compiled from, or NULL if
 * that is not known; then only names are compared. Returns 0 or -ENOMEM. The caller frees *ret_forecast.
 */
int weir_forecast_make(const struct weir_ruleset *before, const struct weir_ruleset *after,
		       const struct weir_previous *previous, const struct weir_image *image,
		       struct weir_forecast *ret_forecast);
void weir_forecast_free(struct weir_forecast *forecast);

#endif
