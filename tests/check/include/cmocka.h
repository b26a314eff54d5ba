/* SPDX-License-Identifier: GPL-2.0-only */
/* For analyzers only (Makefile, check-analyzer and check-tidy): cmocka as it is, but that assertions which what follows
 * relies on are seen not to return.
 */
#ifndef WEIR_CHECK_CMOCKA_H
#define WEIR_CHECK_CMOCKA_H

#include_next <cmocka.h>
#include <stdlib.h>

#undef assert_true
#undef assert_false
#undef assert_non_null
#undef assert_null
#define assert_true(condition) ((condition) ? (void)0 : abort())
#define assert_false(condition) ((condition) ? abort() : (void)0)
#define assert_non_null(pointer) ((pointer) ? (void)0 : abort())
#define assert_null(pointer) ((pointer) ? abort() : (void)0)

#endif
