/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits for single values of a parameter: Sentinel-Go's hotspot rules and Sentinel Java's param-flow rules, which have
 * the same meaning in different words. Here the parameter is the resource's flow key, and its values are the flows.
 */
#ifndef WEIR_RULES_HOTSPOT_H
#define WEIR_RULES_HOTSPOT_H

#include "rules/sentinel.h"

#define WEIR_HOTSPOT_DURATION_S_MAX 86400
#define WEIR_HOTSPOT_UNITS_MAX WEIR_THRESHOLD_UNITS_MAX

/* The content of such a rule, besides its resource, threshold and longest wait. */
struct weir_hotspot {
	bool counts_open; /* it limits what is open at the same time; otherwise requests per duration */
	bool throttles;
	uint64_t duration_s, threshold, burst; /* threshold and burst count requests */
	/* Where these fields are; NULL: the default applies, and messages point at the rule. */
	const struct weir_node *metric, *behavior, *duration, *burst_at;
	const struct weir_node *items; /* values with their own thresholds; NULL: none */
	bool may_map_items;	       /* they may also be a map {VALUE: THRESHOLD} */
};

/* One of these values, read from the item that describes it. NULL: it is missing. */
struct weir_hotspot_item {
	const struct weir_node *value, *threshold;
};

/* Returns false after a complaint. */
typedef bool (*weir_hotspot_item_reader)(struct weir_reader *reader, const struct weir_node *item,
					 struct weir_hotspot_item *ret_item);

void weir_read_hotspot(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_hotspot *hotspot,
		       weir_hotspot_item_reader read_item);

#endif
