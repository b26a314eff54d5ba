/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers shared by the readers of words and numbers (scalars.h). */
#ifndef WEIR_RULES_SCALAR_INTERNAL_H
#define WEIR_RULES_SCALAR_INTERNAL_H

#include "rules/scalars.h"

/* A word that stands for some bits. */
struct word {
	const char *name;
	uint8_t bits;
};

/* ---- refusals.c ---- */

/* Advice for a text whose words are separated by unexpected characters: "write a list: [tcp, udp]". `is_known` decides
 * which words are valid.
 */
bool weir_value_advise_list(const char *text, const char *marks, bool (*is_known)(const char *, size_t),
			    struct weir_refusal *refusal);

/* ---- numbers.c ---- */

bool weir_value_is_digits(const char *text, size_t bytes);

/* The value of decimal digits; returns false if it exceeds `high`. */
bool weir_value_read_digits(const char *text, size_t bytes, uint64_t high, uint64_t *ret_number);
int weir_value_parse_digits(const char *text, size_t bytes, uint64_t low, uint64_t high, uint64_t *ret_number,
			    struct weir_refusal *reterr_refusal);

#endif
