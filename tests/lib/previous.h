/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a reload knows of the load before, in tests: all that its image says.
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
		.specs = image->specs,
		.rule_slots = image->rule_slots,
		.resource_slots = image->resource_slots,
		.spec_count = image->spec_count,
		.sharers_shift = image->config.sharers_shift,
	};

	memcpy(previous.sizes, image->config.sizes, sizeof(previous.sizes));
	memcpy(previous.connection_timeout_ms, image->connection_timeout_ms, sizeof(previous.connection_timeout_ms));
	return previous;
}

#endif
