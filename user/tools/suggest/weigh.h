/* SPDX-License-Identifier: GPL-2.0-only */
/* From measurements to thresholds: the peaks of each suggestion's flows, and the thresholds that they require. */
#ifndef WEIR_SUGGEST_WEIGH_H
#define WEIR_SUGGEST_WEIGH_H

#include "suggest/measure.h"

/* What a suggestion is based on. */
struct weir_suggest_subject {
	const struct weir_suggest_series *series;
	uint32_t group; /* of the flow table; for a series without key, its number */
	enum weir_measure measure;
	bool is_comment;
};

/* Fill in the report's suggestions, except for the thresholds. */
int weir_suggest_weigh(const struct weir_suggest_measured *measured, const struct weir_suggest_subject *subjects,
		       size_t count, struct weir_suggest_report *report, struct weir_diag *diag);

/* Is a flow of this peak far above all others, in packets or in bytes? */
bool weir_suggest_is_left_out(const struct weir_suggestion *suggestion, const struct weir_tally *peak);

/* Compute the thresholds from `smallest`, with the report's margin. */
void weir_suggest_set_thresholds(struct weir_suggest_report *report);

/* The smallest thresholds that drop no more than --loss of the packets of flows up to the percentile: lower `smallest`
 * in the report's suggestions, which belong to these subjects, as far as the log allows.
 */
int weir_suggest_search_losses(const struct weir_suggest_measured *measured,
			       const struct weir_suggest_subject *subjects, struct weir_suggest_report *report,
			       struct weir_diag *diag);

#endif
