// SPDX-License-Identifier: GPL-2.0-only
#include "base/util.h"

#include <string.h>

void *weir_array_add(void **items, size_t count, size_t item_bytes)
{
	void *grown;

	/* Full exactly when the count is a power of two, or zero. */
	if ((count & (count - 1)) == 0) {
		grown = reallocarray(*items, count ? 2 * count : 1, item_bytes);
		if (!grown)
			return NULL;
		*items = grown;
	}
	return memset((char *)*items + count * item_bytes, 0, item_bytes);
}

char *weir_trim(char *text, const char *blanks)
{
	size_t bytes;

	text += strspn(text, blanks);
	bytes = strlen(text);
	while (bytes && strchr(blanks, text[bytes - 1]))
		text[--bytes] = '\0';
	return text;
}
