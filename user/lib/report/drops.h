/* SPDX-License-Identifier: GPL-2.0-only */
/* What `weir flows --dropped --json` prints (docs/json.md), from the data that state/dropped_flows.h reads. */
#ifndef WEIR_REPORT_DROPS_H
#define WEIR_REPORT_DROPS_H

#include <jansson.h>

#include "state/dropped_flows.h"
#include "words/figures.h"

/* A struct weir_dropped_flow; the context is the view. */
struct weir_dropped_view {
	const struct weir_instance *instance;
	const struct weir_drops *drops;
};
weir_describer weir_describe_dropped;

/* NULL: out of memory. */
json_t *weir_drops_describe(const struct weir_instance *instance, const struct weir_drops *drops);

/* The same with at most this many flows. */
json_t *weir_drops_describe_most(const struct weir_instance *instance, const struct weir_drops *drops, size_t most);

#endif
