/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interprets the words of penalties (weir_state.h: penalised_flows, penalised_rules): how much of a penalty is left,
 * and how long it lasts. Pure: it takes words as they were read, and a time.
 */
#ifndef WEIR_TABLES_PENALTIES_H
#define WEIR_TABLES_PENALTIES_H

#include <stdint.h>

#include "weir_abi.h"

/* The word for the flow with this tag (0: a whole resource) that has no penalty. */
static inline uint64_t weir_penalty_none(uint32_t tag)
{
	return (uint64_t)tag << WEIR_LAST_TAG_SHIFT;
}

/* ns until the penalty ends; 0 if there is none, if it is over, or if the word belongs to another flow. */
static inline uint64_t weir_penalty_left_ns(uint64_t word, uint32_t tag, uint64_t now_ns)
{
	const uint64_t ahead = (word - 1 - now_ns) & WEIR_LAST_MASK;

	if (!(word & WEIR_LAST_MASK) || word >> WEIR_LAST_TAG_SHIFT != (tag & (UINT64_MAX >> WEIR_LAST_TAG_SHIFT)))
		return 0;
	return ahead < WEIR_LAST_MASK / 2 ? ahead : 0;
}

/* The full length of the word's penalty. */
static inline uint32_t weir_penalty_lasts_ms(uint64_t word, const uint32_t lasted_ms[2])
{
	return lasted_ms[word >> WEIR_LAST_BITS & 1];
}

#endif
