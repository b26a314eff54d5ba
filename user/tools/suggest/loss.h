/* SPDX-License-Identifier: GPL-2.0-only */
/* The smallest thresholds that drop no more than --loss of the packets of flows up to the percentile. */
#ifndef WEIR_SUGGEST_LOSS_H
#define WEIR_SUGGEST_LOSS_H

#include "suggest/weigh.h"

/* Lower `smallest` in the report's suggestions, which belong to these subjects, as far as the log allows. */
int weir_suggest_search_losses(const struct weir_suggest_measured *measured,
			       const struct weir_suggest_subject *subjects, struct weir_suggest_report *report,
			       struct weir_diag *diag);

#endif
