/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a reload is told of the load before, in tests: all that its image says.
 */
#ifndef WEIR_TESTS_PREVIOUS_H
#define WEIR_TESTS_PREVIOUS_H

#include <string.h>

#include "compile/compile.h"

/* Borrows from the image. */
static inline struct weir_previous previous_of(const struct weir_image *image)
{
	struct weir_previous previous = {
		.rules = image->rule_info,
		.resources = image->resource_info,
		.timings = image->timings,
		.rule_slots = image->rule_slots,
		.resource_slots = image->resource_slots,
		.timing_count = image->timing_count,
		.narrow_sets = image->config.narrow_sets,
		.medium_sets = image->config.medium_sets,
		.wide_sets = image->config.wide_sets,
		.throttle_sets = image->config.throttle_sets,
		.warming_sets = image->config.warming_sets,
		.penalty_sets = image->config.penalty_sets,
		.borrowing_sets = image->config.borrowing_sets,
		.token_sets = image->config.token_sets,
		.timed_entries = image->timed_entries,
		.connection_sets = image->config.connection_sets,
		.connection_flow_sets = image->config.connection_flow_sets,
		.request_sets = image->config.request_sets,
		.breaker_sets = image->config.breaker_sets,
		.presence_cells = image->config.presence_cells,
		.presence_shift = image->config.presence_shift,
		.remnant_sets = image->config.remnant_sets,
		.stranger_groups = image->config.stranger_groups,
	};

	memcpy(previous.connection_timeout_ms, image->connection_timeout_ms, sizeof(previous.connection_timeout_ms));
	return previous;
}

#endif
