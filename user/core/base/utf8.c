// SPDX-License-Identifier: GPL-2.0-only
#include "base/utf8.h"

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
