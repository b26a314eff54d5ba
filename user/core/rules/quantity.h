/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quantities as operators write them: numbers with a decimal prefix, times and rates, for rule files and the command
 * line alike. Integers throughout: what is read is exactly what was written. What could mean two things is a mistake,
 * and the refusal says what to write for either. docs/rules.md ("Quantities") has the grammar.
 *
 * Lists of Sentinel's rules do not come here: their numbers are JSON's (scalars.h).
 */
#ifndef WEIR_RULES_QUANTITY_H
#define WEIR_RULES_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/scalars.h"

/* "20000", "20k", "1.5M" or "64Ki", in millionths, exactly: 0 to WEIR_THRESHOLD_UNITS_MAX, with at most six decimals.
 * Where bytes are counted, "10MB", "64KiB" and "100Mbit" as well: a bit is 0.125 bytes.
 */
int weir_parse_threshold(const char *text, bool counts_bytes, uint64_t *ret_micro, struct weir_refusal *reterr_refusal);

/* The same where only whole numbers make sense, `low` to `high`. */
int weir_parse_count(const char *text, bool counts_bytes, uint64_t low, uint64_t high, uint64_t *ret_count,
		     struct weir_refusal *reterr_refusal);

/* "90s", "10m", "1h30m", "7d", in ns: whole numbers with the units d, h, m (or min), s and ms, each at most once and in
 * this order; at least 1 ms, and at most ten years.
 */
int weir_parse_duration(const char *text, uint64_t *ret_ns, struct weir_refusal *reterr_refusal);

/* The same as a whole number of `unit_ns`, `low` to `high`. "0" is none, where `low` is 0. */
int weir_parse_time(const char *text, uint64_t unit_ns, uint64_t low, uint64_t high, uint64_t *ret_number,
		    struct weir_refusal *reterr_refusal);

/* "1h30m", "10ms" */
#define WEIR_DURATION_TEXT_BYTES 48
const char *weir_format_duration(uint64_t ns, char ret_text[WEIR_DURATION_TEXT_BYTES]);

/* So much in each interval. */
struct weir_rate {
	uint64_t micro; /* packets or bytes, in millionths */
	uint64_t interval_ns;
	bool counts_bytes;
};

/* "20/s", "6/min", "5k/10s", "10MB/s", "100Mbit/s". The interval may be anything that is a duration. */
int weir_parse_rate(const char *text, struct weir_rate *ret_rate, struct weir_refusal *reterr_refusal);

/* "20", "2.5" of millionths. */
void weir_format_micro(uint64_t micro, char *text, size_t text_bytes);

/* The same; of bytes "12.5MB". */
void weir_format_amount(uint64_t micro, bool counts_bytes, char *text, size_t text_bytes);

/* "20/s", "3/100ms", "12.5MB/s", of millionths: weir_parse_rate() reads it back exactly. */
#define WEIR_RATE_TEXT_BYTES 96
const char *weir_format_rate(uint64_t micro, uint64_t interval_ns, bool counts_bytes,
			     char ret_text[WEIR_RATE_TEXT_BYTES]);

#endif
