// SPDX-License-Identifier: GPL-2.0-only
#include "base/printable.h"

#include <string.h>

size_t weir_utf8_character(const char *text, size_t bytes, uint32_t *ret_code)
{
	/* The smallest code point for each number of bytes: a longer encoding of a smaller one is not UTF-8 (RFC 3629).
	 */
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *at = (const unsigned char *)text;
	size_t length = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
	uint32_t code;

	if (!length || length > bytes)
		return 0;
	code = length == 1 ? at[0] : at[0] & (0x7f >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return length;
}

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
