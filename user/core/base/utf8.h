/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * UTF-8 (RFC 3629), character by character: for texts that are to be checked, cut or measured. Pure.
 */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A byte of UTF-8 that continues with a character, and begins none. */
static inline bool weir_utf8_continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Bytes of the UTF-8 character at `text`, of which `bytes` are left; 0 when it is not valid UTF-8. */
size_t weir_utf8_character(const char *text, size_t bytes, uint32_t *ret_code);

#endif
