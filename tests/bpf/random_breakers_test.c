// SPDX-License-Identifier: GPL-2.0-only
/*
 * Circuit breakers of the shipped BPF object against the reference model (tests/lib/model_breaker.h), on random rules
 * and on requests at the edges of what these go by: every verdict, and how each breaker stands at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "../lib/lab_rounds.h"
#include "../lib/random_breakers.h"
#include "base/util.h"

static void breakers_agree_with_the_model_on_random_requests(void **state)
{
	const struct lab_rounds rounds = {
		.rounds = 100,
		.packets = 5000,
		.rules = random_breaker_ruleset,
		.traffic = random_breaker_packets,
	};

	lab_rounds_agree(&rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(breakers_agree_with_the_model_on_random_requests),
	};

	cmocka_set_test_filter(getenv("WEIR_CLAIMS"));
	return cmocka_run_group_tests(tests, lab_stay_on_one_cpu, NULL);
}
