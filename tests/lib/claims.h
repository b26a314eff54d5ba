/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program of claims: each is a function whose name says what holds, and they run in the order in which they stand.
 *
 *	CLAIM(a_limit_of_two_admits_two)
 *	{
 *		assert_int_equal(...);
 *	}
 *
 *	RUN_CLAIMS(NULL, NULL)
 *
 * WEIR_CLAIMS (a pattern of cmocka's) chooses among them. One that takes tens of seconds is a LONG_CLAIM: it is not in
 * `make test`, whose rows of such programs have the word `brief` (tests/programs), but in `make test-deep`, which has
 * these programs whole.
 *
 * What asserts elsewhere includes this, too, for cmocka and the headers that it wants before it.
 */
#ifndef WEIR_TEST_CLAIMS_H
#define WEIR_TEST_CLAIMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

struct claim {
	struct CMUnitTest test;
	bool is_long;
};

/* Pointers, which a compiler does not align further than their size, so that the section is an array of them. */
#define WEIR_CLAIM(what, before, after, takes_long)                                                                    \
	static void what(void **state);                                                                                \
	static const struct claim what##_claim = {                                                                     \
		{.name = #what, .test_func = (what), .setup_func = (before), .teardown_func = (after)},                \
		takes_long,                                                                                            \
	};                                                                                                             \
	static const struct claim *what##_entry __attribute__((section("claims"), used, no_reorder)) = &what##_claim;  \
	static void what(void **state)

#define CLAIM(what) WEIR_CLAIM(what, NULL, NULL, false)
#define LONG_CLAIM(what) WEIR_CLAIM(what, NULL, NULL, true)
/* Between functions that return 0, or -1 on failure; NULL: none. */
#define CLAIM_WITHIN(what, before, after) WEIR_CLAIM(what, before, after, false)

/* A claim about what `before` left in *state: `subject` declares it, as in `struct bench *bench`. */
#define CLAIM_ABOUT(what, subject, before, after)                                                                      \
	static void what##_holds(subject);                                                                             \
	CLAIM_WITHIN(what, before, after)                                                                              \
	{                                                                                                              \
		what##_holds(*state);                                                                                  \
	}                                                                                                              \
	static void what##_holds(subject)

/* A claim that is one call, of a check that several claims share. */
#define CASE(what, call) CASE_WITHIN(what, NULL, NULL, call)
#define LONG_CASE(what, call)                                                                                          \
	LONG_CLAIM(what)                                                                                               \
	{                                                                                                              \
		call;                                                                                                  \
	}                                                                                                              \
	_Static_assert(sizeof(#call) > 1, "a case is a call")
#define CASE_WITHIN(what, before, after, call)                                                                         \
	CLAIM_WITHIN(what, before, after)                                                                              \
	{                                                                                                              \
		call;                                                                                                  \
	}                                                                                                              \
	_Static_assert(sizeof(#call) > 1, "a case is a call")

static inline bool is_brief(void)
{
	return getenv("WEIR_BRIEF");
}

extern const struct claim *const __start_claims[], *const __stop_claims[];

/* Run all claims of the program. Returns how many failed. */
static inline int run_claims(CMFixtureFunction before_all, CMFixtureFunction after_all)
{
	// cppcheck-suppress comparePointers // the linker's: both ends of one section
	const size_t most = __stop_claims - __start_claims;
	struct CMUnitTest tests[most];
	size_t count = 0;

	for (size_t i = 0; i < most; i++)
		if (!__start_claims[i]->is_long || !is_brief())
			tests[count++] = __start_claims[i]->test;
	if (getenv("WEIR_CLAIMS"))
		cmocka_set_test_filter(getenv("WEIR_CLAIMS"));
	return _cmocka_run_group_tests(program_invocation_short_name, tests, count, before_all, after_all);
}

#define RUN_CLAIMS(before_all, after_all)                                                                              \
	int main(void)                                                                                                 \
	{                                                                                                              \
		return run_claims(before_all, after_all);                                                              \
	}
#endif
