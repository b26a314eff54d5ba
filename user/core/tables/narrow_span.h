/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long narrow rows can distinguish buckets. The bucket numbers in these rows have 32 bits and count from the base
 * of their window spec, which is fixed when that spec is first loaded (weir_state.h): with buckets of 50 ms they last
 * for 6.8 years. After that the last bucket never ends, and flows over their limit stay blocked. Only a detach and an
 * attach start over: rows are evaluated against the base, so no reload can move it. Pure: the time is passed in.
 */
#ifndef WEIR_TABLES_NARROW_SPAN_H
#define WEIR_TABLES_NARROW_SPAN_H

#include <stdint.h>

#include "weir_abi.h"

/* Less than this causes a warning: two years, so that 50 ms buckets have run for 4.8. Chosen, not derived. */
#define WEIR_NARROW_LEFT_NS_LOW (2ull * 365 * 86400 * WEIR_NSEC_PER_SEC)

/*
 * ns until the first of the rules in use runs out of bucket numbers. 0: one has run out; UINT64_MAX: no rule has narrow
 * rows, or the time does not fit. `rules` has rule_slots entries, `specs` spec_count.
 */
uint64_t weir_narrow_left_ns(const struct weir_rule_info *rules, uint32_t rule_slots,
			     const struct weir_window_spec *specs, uint32_t spec_count, uint64_t now_ns);

/* What to report about an instance: it "was attached ..."; NULL: nothing to report yet. */
#define WEIR_NARROW_WORDS_BYTES 96
const char *weir_narrow_words(uint64_t left_ns, char words[WEIR_NARROW_WORDS_BYTES]);

#endif
