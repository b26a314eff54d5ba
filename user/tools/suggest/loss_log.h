/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An entry for every packet of a measured flow, in a temporary file. It is needed for a --loss above 0: what a
 * threshold drops depends on what it dropped before, so the threshold is found by trying (loss.h).
 */
#ifndef WEIR_SUGGEST_LOSS_LOG_H
#define WEIR_SUGGEST_LOSS_LOG_H

#include <stdint.h>

struct weir_loss_entry {
	uint64_t time_ns;
	uint32_t packets, bytes;
	uint32_t place; /* the flow's index in its table; for a resource without key the number of its series */
	uint32_t capture : 31;
	uint32_t is_lone : 1;
};

#endif
