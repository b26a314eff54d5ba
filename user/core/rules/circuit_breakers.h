/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Circuit breakers, for readers that find them in lists other than a rule file's own. The caller sorts the fields;
 * circuit_breakers.c reads their values.
 */
#ifndef WEIR_RULES_CIRCUIT_BREAKERS_H
#define WEIR_RULES_CIRCUIT_BREAKERS_H

#include "rules/parse.h"

/* In Sentinel-Go's names, except that `name` and `mode` are weir's. */
enum weir_breaker_field {
	WEIR_BREAKER_NAME,
	WEIR_BREAKER_RESOURCE,
	WEIR_BREAKER_STRATEGY,
	WEIR_BREAKER_THRESHOLD,
	WEIR_BREAKER_RETRY,
	WEIR_BREAKER_MIN_REQUESTS,
	WEIR_BREAKER_INTERVAL,
	WEIR_BREAKER_BUCKETS,
	WEIR_BREAKER_MAX_RT,
	WEIR_BREAKER_PROBES,
	WEIR_BREAKER_MODE,
	WEIR_BREAKER_ID, /* Sentinel's; ignored here, since several rules may share an id */
	WEIR_BREAKER_FIELD_COUNT
};
extern const char *const weir_breaker_field_names[WEIR_BREAKER_FIELD_COUNT];

/*
 * Append a breaker with these field values (NULL: absent), after all other rules. The values need not be in the file
 * literally (see weir_read_draft). With is_sentinel, strategy and threshold may be absent, which means 0, and fields
 * that the strategy does not use may have any value.
 */
void weir_read_breaker_of(struct weir_reader *reader, const struct weir_node *node,
			  const struct weir_node *const values[WEIR_BREAKER_FIELD_COUNT], bool is_sentinel);

#endif
