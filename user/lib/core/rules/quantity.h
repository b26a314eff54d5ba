/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quantities as operators write them: numbers with a decimal prefix, times and rates, both in rule files and on the
 * command line. All arithmetic is in integers: the value read is exactly the value written. An ambiguous text is a
 * mistake, and the refusal says how to write either meaning. docs/rules.md ("Quantities") has the grammar.
 *
 * Lists of Sentinel's rules do not use these: their numbers are JSON's (scalars.h).
 */
#ifndef WEIR_RULES_QUANTITY_H
#define WEIR_RULES_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/scalars.h"

/* Parse "20000", "20k", "1.5M" or "64Ki" exactly, in millionths: 0 to WEIR_THRESHOLD_UNITS_MAX, with at most six
 * decimals. If bytes are counted, also "10MB", "64KiB" and "100Mbit": a bit is 0.125 bytes.
 */
int weir_parse_threshold(const char *text, bool counts_bytes, uint64_t *ret_micro, struct weir_refusal *reterr_refusal);

/* The same for values that must be whole numbers, `low` to `high`. */
int weir_parse_count(const char *text, bool counts_bytes, uint64_t low, uint64_t high, uint64_t *ret_count,
		     struct weir_refusal *reterr_refusal);

/* Parse "90s", "10m", "1h30m" or "7d" to ns: whole numbers with the units d, h, m (or min), s and ms, each at most once
 * and in this order; from 1 ms to ten years.
 */
int weir_parse_duration(const char *text, uint64_t *ret_ns, struct weir_refusal *reterr_refusal);

/* The same as a whole number of `unit_ns`, `low` to `high`. "0" means none, if `low` is 0. */
int weir_parse_time(const char *text, uint64_t unit_ns, uint64_t low, uint64_t high, uint64_t *ret_number,
		    struct weir_refusal *reterr_refusal);

/* "1h30m", "10ms" */
#define WEIR_DURATION_TEXT_BYTES 48
const char *weir_format_duration(uint64_t ns, char ret_text[WEIR_DURATION_TEXT_BYTES]);

/* An amount per interval. */
struct weir_rate {
	uint64_t micro; /* packets or bytes, in millionths */
	uint64_t interval_ns;
	bool counts_bytes;
};

/* Parse "20/s", "6/min", "5k/10s", "10MB/s" or "100Mbit/s". The interval may be any duration. */
int weir_parse_rate(const char *text, struct weir_rate *ret_rate, struct weir_refusal *reterr_refusal);

/* Format millionths: "20", "2.5". */
void weir_format_micro(uint64_t micro, char *text, size_t text_bytes);

/* The same; if bytes are counted, "12.5MB". */
void weir_format_amount(uint64_t micro, bool counts_bytes, char *text, size_t text_bytes);

/* Format millionths per interval: "20/s", "3/100ms", "12.5MB/s". weir_parse_rate() reads the text back exactly. */
#define WEIR_RATE_TEXT_BYTES 96
const char *weir_format_rate(uint64_t micro, uint64_t interval_ns, bool counts_bytes,
			     char ret_text[WEIR_RATE_TEXT_BYTES]);

#endif
