/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An entry for every packet of a flow that was measured, in a temporary file, for a --loss above 0: what a threshold
 * drops depends on what it has dropped before, so it is found by trying (loss.h).
 */
#ifndef WEIR_SUGGEST_LOSS_LOG_H
#define WEIR_SUGGEST_LOSS_LOG_H

#include <stdint.h>

struct weir_loss_entry {
	uint64_t time_ns;
	uint32_t packets, bytes;
	uint32_t place; /* of the flow in its table; of a resource without key its series */
	uint32_t capture : 31;
	uint32_t is_lone : 1;
};

#endif
