/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Making text safe to show. Names come from files, kernels and stores, and a terminal obeys control characters in them.
 * Everything that weir prints for people, and did not write itself, passes through here. JSON has its own escapes.
 */
#ifndef WEIR_BASE_PRINTABLE_H
#define WEIR_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- UTF-8 (RFC 3629), character by character, for text that is checked, cut or measured ---- */

/* Is this a continuation byte, rather than the first byte of a character? */
static inline bool weir_utf8_continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Length in bytes of the UTF-8 character at `text`, where `bytes` bytes are left; 0 if it is not valid UTF-8. */
size_t weir_utf8_character(const char *text, size_t bytes, uint32_t *ret_code);

/* ---- text to show ---- */

/* Is this a character that a terminal obeys, or that reorders the text around it? These are C0, DEL, C1, line and
 * paragraph separators, and the controls of Unicode's bidirectional algorithm (UAX 9).
 */
bool weir_is_control(uint32_t code);

/* Replace each control character (except those in `kept`), and each byte that is not UTF-8, by '?'. NULL stays NULL. */
void weir_make_printable(char *text, const char *kept);

#endif
