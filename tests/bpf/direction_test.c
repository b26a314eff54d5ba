// SPDX-License-Identifier: GPL-2.0-only
/*
 * Both directions in the shipped BPF objects: what comes in by XDP or at tc, what goes out at tc, over the same tables.
 * Claims by hand, every packet evaluated by the reference model as well; then random rules and traffic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/in.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/harness_rounds.h"
#include "../lib/harness_setup.h"
#include "../lib/random_directions.h"

static void agrees_with_the_model_on_random_directions(void **state)
{
	const struct harness_rounds rounds = {
		.rounds = 40,
		.packets = 4000,
		.has_directions = true,
		.rules = random_directed_ruleset,
		.traffic = random_directed_packets,
	};

	harness_rounds_agree(&rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_model_on_random_directions),
	};

	cmocka_set_test_filter(getenv("WEIR_CLAIMS"));
	return cmocka_run_group_tests_name("direction", tests, harness_stay_on_one_cpu, NULL);
}
