/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of single values of a parameter: Sentinel-Go's hotspot rules and Sentinel Java's param-flow rules, which mean
 * the same in other words. Here the parameter is the flow key of the resource, and its values are the flows.
 */
#ifndef WEIR_RULES_HOTSPOT_H
#define WEIR_RULES_HOTSPOT_H

#include "rules/sentinel.h"

#define WEIR_HOTSPOT_DURATION_S_MAX 86400
#define WEIR_HOTSPOT_UNITS_MAX WEIR_THRESHOLD_UNITS_MAX

/* What such a rule says beside its resource, threshold and longest wait. */
struct weir_hotspot {
	bool counts_open; /* what is open at once; else requests per duration */
	bool throttles;
	uint64_t duration_s, threshold, burst; /* of requests */
	/* Where these stand; NULL: they are the default, and the rule is pointed at. */
	const struct weir_node *metric, *behavior, *duration, *burst_at;
	const struct weir_node *items; /* values with thresholds of their own; NULL: none */
	bool may_map_items;	       /* they may also be a map {VALUE: THRESHOLD} */
};

/* One of these values, taken from the item that describes it. NULL: it is missing. */
struct weir_hotspot_item {
	const struct weir_node *value, *threshold;
};

/* False: complained. */
typedef bool (*weir_hotspot_item_reader)(struct weir_reader *reader, const struct weir_node *item,
					 struct weir_hotspot_item *ret_item);

void weir_read_hotspot(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_hotspot *hotspot,
		       weir_hotspot_item_reader read_item);

#endif
