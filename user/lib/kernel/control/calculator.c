// SPDX-License-Identifier: GPL-2.0-only
#include "control/calculator.h"

#include <stddef.h>
#include <string.h>

static const struct weir_calculator *const none[] = {NULL};
static const struct weir_calculator *const *calculators = none;

void weir_use_calculators(const struct weir_calculator *const *list)
{
	calculators = list;
}

const struct weir_calculator *const *weir_calculators(void)
{
	return calculators;
}

const struct weir_calculator *weir_calculator_find(const char *name)
{
	for (size_t i = 0; calculators[i]; i++)
		if (!strcmp(calculators[i]->name, name))
			return calculators[i];
	return NULL;
}

int weir_calculators_check(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	int err = 0;

	for (size_t i = 0; !err && calculators[i]; i++)
		err = calculators[i]->check ? calculators[i]->check(ruleset, diag) : 0;
	return err;
}

void weir_calculators_examine(const struct weir_ruleset *ruleset, struct weir_findings *findings)
{
	for (size_t i = 0; calculators[i]; i++)
		if (calculators[i]->examine)
			calculators[i]->examine(ruleset, findings);
}
