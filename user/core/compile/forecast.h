/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a load would change of what runs, before it is loaded: rule by rule, resource by resource, settings. What a rule
 * keeps is what the compiler has decided in the image, so that a forecast cannot say otherwise than the load does;
 * lines that differ are those of the canonical rule file (rules/emit.h). Pure.
 */
#ifndef WEIR_COMPILE_FORECAST_H
#define WEIR_COMPILE_FORECAST_H

#include "compile/compile.h"

enum weir_change_kind { WEIR_CHANGE_REMOVED, WEIR_CHANGE_CHANGED, WEIR_CHANGE_ADDED, WEIR_CHANGE_NONE };

struct weir_change {
	enum weir_change_kind kind;
	char *name;
	bool keeps_state;     /* of what is there before and after */
	const char *why_anew; /* it does not; NULL: not known */
	/* Lines that only one of both has, each with its line end; NULL: none, or what was before is not known. The
	 * overrides of a rule are a number.
	 */
	char *before, *after;
};

struct weir_changes {
	struct weir_change *all;
	size_t count;
};

struct weir_forecast {
	struct weir_change settings;
	struct weir_changes resources, rules; /* what is removed last; those without a change are there, too */
	bool changes_anything;
	uint32_t kept_rules;
	uint32_t allow_before, allow_now, deny_before, deny_now;
	bool changes_lists;
};

/*
 * `image` is `after`, compiled over `previous`, and `before` what `previous` was compiled from: NULL when that is not
 * known, and only names are compared then. -ENOMEM. The caller frees *ret_forecast.
 */
int weir_forecast_make(const struct weir_ruleset *before, const struct weir_ruleset *after,
		       const struct weir_previous *previous, const struct weir_image *image,
		       struct weir_forecast *ret_forecast);
void weir_forecast_free(struct weir_forecast *forecast);

#endif
