// SPDX-License-Identifier: GPL-2.0-only
/* Loaded before a test program (LD_PRELOAD): of its claims only WEIR_CLAIMS is run, which may have '*' in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

__attribute__((constructor)) static void choose(void)
{
	const char *only = getenv("WEIR_CLAIMS");

	if (only && *only)
		cmocka_set_test_filter(only);
}
