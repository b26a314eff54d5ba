/* SPDX-License-Identifier: GPL-2.0-only */
/* From what was measured to thresholds: the peaks of each suggestion's flows, and what they ask for. */
#ifndef WEIR_SUGGEST_WEIGH_H
#define WEIR_SUGGEST_WEIGH_H

#include "suggest/measure.h"

/* What a suggestion is made of. */
struct weir_suggest_subject {
	const struct weir_suggest_series *series;
	uint32_t group; /* of the flow table; of a series without key its number */
};

/* Fills in the report's suggestions, but for the thresholds. */
int weir_suggest_weigh(const struct weir_suggest_measured *measured, const struct weir_suggest_subject *subjects,
		       size_t count, struct weir_suggest_report *report, struct weir_diag *diag);

/* Thresholds from `smallest`, with the report's margin. */
void weir_suggest_set_thresholds(struct weir_suggest_report *report);

#endif
