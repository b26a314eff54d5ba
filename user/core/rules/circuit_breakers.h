/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Circuit breakers, for those who find them in other lists than a rule file's own: circuit_breakers.c reads the
 * values, whoever has sorted them.
 */
#ifndef WEIR_RULES_CIRCUIT_BREAKERS_H
#define WEIR_RULES_CIRCUIT_BREAKERS_H

#include "rules/parse.h"

/* As Sentinel-Go names them; `name` and `mode` are weir's. */
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
	WEIR_BREAKER_ID, /* Sentinel's; it names nothing here, since rules may share one */
	WEIR_BREAKER_FIELD_COUNT
};
extern const char *const weir_breaker_field_names[WEIR_BREAKER_FIELD_COUNT];

/*
 * Append a breaker whose fields have these values (NULL: absent), behind all rules. They need not stand in the file as
 * they are (see weir_read_draft). As a rule of Sentinel's it may lack strategy and threshold, which are then 0, and
 * fields that its strategy does not use may be anything.
 */
void weir_read_breaker_of(struct weir_reader *reader, const struct weir_node *node,
			  const struct weir_node *const values[WEIR_BREAKER_FIELD_COUNT], bool is_sentinel);

#endif
