// SPDX-License-Identifier: GPL-2.0-only
/* Replaces page.c in a build without libjs-dygraphs: make WITHOUT=page. */
#include <stddef.h>

#include "serve/answer.h"

const struct weir_asset *weir_page_find(const char *path)
{
	return NULL;
}

bool weir_page_is_built(void)
{
	return false;
}
