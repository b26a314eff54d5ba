// SPDX-License-Identifier: GPL-2.0-only
#include "base/printable.h"

#include <string.h>

#include "base/utf8.h"

bool weir_is_control(uint32_t code)
{
	return code < ' ' || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void weir_make_printable(char *text, const char *kept)
{
	char *to = text;
	uint32_t code;

	for (const char *at = text; at && *at;) {
		const size_t length = weir_utf8_character(at, strlen(at), &code);

		if (length && (!weir_is_control(code) || (length == 1 && strchr(kept, *at)))) {
			memmove(to, at, length);
			to += length;
		} else {
			*to++ = '?';
		}
		at += length ?: 1;
	}
	if (text)
		*to = '\0';
}
