/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Making text safe to show. Names come from files, kernels and stores, and a terminal obeys control characters in them.
 * Everything that weir prints for people, and did not write itself, passes through here. JSON has its own escapes.
 */
#ifndef WEIR_BASE_PRINTABLE_H
#define WEIR_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Is this a character that a terminal obeys, or that reorders the text around it? These are C0, DEL, C1, line and
 * paragraph separators, and the controls of Unicode's bidirectional algorithm (UAX 9).
 */
bool weir_is_control(uint32_t code);

/* Replace each control character (except those in `kept`), and each byte that is not UTF-8, by '?'. NULL stays NULL. */
void weir_make_printable(char *text, const char *kept);

#endif
