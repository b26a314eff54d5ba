/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a reload does to the rules of an instance, by name: which rules it removes, changes and adds. For people;
 * whether a rule keeps its windows is another question (compile.h). Pure.
 */
#ifndef WEIR_COMPILE_RULE_CHANGES_H
#define WEIR_COMPILE_RULE_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include "weir_abi.h"

enum weir_rule_fate {
	WEIR_RULE_REMOVED,
	WEIR_RULE_CHANGED, /* exists before and after, and a field that the user writes differs */
	WEIR_RULE_ADDED,
};
#define WEIR_RULE_FATES 3

struct weir_rule_change {
	enum weir_rule_fate fate;
	char name[WEIR_NAME_BYTES];
};

struct weir_rule_changes {
	struct weir_rule_change *all; /* by type of change, and within a type in the order of the files */
	size_t count;
	size_t of_fate[WEIR_RULE_FATES];
};

/*
 * Compare the rules in use before a load with those after it, one entry per slot. Shadow windows are left out, since
 * the user did not write them. `before` may be NULL if nothing is known about it; then the result is empty. Returns 0
 * or -ENOMEM. The caller frees *ret_changes.
 */
int weir_rule_changes_find(const struct weir_rule_info *before, uint32_t before_slots,
			   const struct weir_rule_info *after, uint32_t after_slots,
			   struct weir_rule_changes *ret_changes);
void weir_rule_changes_free(struct weir_rule_changes *changes);

/*
 * Unnamed rules are matched, and keep their windows, by their number among the rules of their resource: when a rule is
 * added or removed before them, each inherits another rule's windows. Returns the first resource to which that may have
 * happened, or NULL.
 */
const char *weir_rule_changes_renumber(const struct weir_rule_changes *changes, const struct weir_rule_info *after,
				       uint32_t after_slots);

#endif
