/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * UTF-8 (RFC 3629), character by character, for text that is checked, cut or measured. Pure.
 */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this a continuation byte, rather than the first byte of a character? */
static inline bool weir_utf8_continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Length in bytes of the UTF-8 character at `text`, where `bytes` bytes are left; 0 if it is not valid UTF-8. */
size_t weir_utf8_character(const char *text, size_t bytes, uint32_t *ret_code);

#endif
