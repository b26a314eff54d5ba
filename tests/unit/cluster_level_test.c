// SPDX-License-Identifier: GPL-2.0-only
/* How a ledger divides a threshold, worked out again for people. */
#include "../lib/claims.h"
#include "base/util.h"
#include "shares/level.h"

#define LIVE(wants, holds, keeps)                                                                                      \
	{                                                                                                              \
		.wanted = (wants), .hold = (holds), .fallback = (keeps), .is_live = true                               \
	}
#define SILENT(wants, holds, keeps)                                                                                    \
	{                                                                                                              \
		.wanted = (wants), .hold = (holds), .fallback = (keeps)                                                \
	}

CLAIM(large_wants_get_what_others_leave)
{
	const struct weir_ledger_host hosts[] = {LIVE(10000, 0, 1000), LIVE(500, 0, 1000), LIVE(510, 0, 1000)};
	struct weir_level level;
	uint64_t due[3];

	weir_level_find(hosts, 3, 3000, 0, &level, due);
	assert_true(level.is_scarce);
	assert_int_equal(level.budget, 3000);
	assert_int_equal(level.wanted, 11010);
	assert_int_equal(level.units, 1990);
	assert_int_equal(due[0], 1990);
	assert_int_equal(due[1], 500);
	assert_int_equal(due[2], 510);
}

CLAIM(equal_wants_get_equal_shares)
{
	const struct weir_ledger_host hosts[] = {LIVE(5000, 0, 0), LIVE(5000, 0, 0), LIVE(5000, 0, 0)};
	struct weir_level level;
	uint64_t due[3];

	weir_level_find(hosts, 3, 3001, 0, &level, due);
	assert_int_equal(due[0] + due[1] + due[2], 3001);
	assert_in_range(due[0], 1000, 1001);
	assert_in_range(level.units, 1000, 1001);
}

CLAIM(unwanted_shares_are_divided)
{
	const struct weir_ledger_host hosts[] = {LIVE(60, 0, 1500), LIVE(1000, 0, 1500)};
	struct weir_level level;
	uint64_t due[2];

	weir_level_find(hosts, 2, 3000, 0, &level, due);
	assert_false(level.is_scarce);
	assert_int_equal(due[0], 60);
	assert_int_equal(due[1], 1000);
	assert_int_equal(level.spare, 970);
}

/* Of a silent host the larger of what it holds and what it keeps; nothing is due to it. */
CLAIM(what_silent_hosts_may_have_is_left_alone)
{
	const struct weir_ledger_host hosts[] = {SILENT(2000, 700, 1000), LIVE(5000, 0, 1000), SILENT(-1, 300, 0)};
	struct weir_level level;
	uint64_t due[3];

	weir_level_find(hosts, 3, 3000, 200, &level, due);
	assert_int_equal(level.left_alone, 1500);
	assert_int_equal(level.budget, 1500);
	assert_int_equal(level.live, 1);
	assert_int_equal(due[0], 0);
	assert_int_equal(due[1], 1500);
	assert_int_equal(due[2], 0);
}

CLAIM(more_may_be_left_alone_than_there_is)
{
	const struct weir_ledger_host hosts[] = {SILENT(1, 2000, 2000), LIVE(5000, 0, 0)};
	struct weir_level level;
	uint64_t due[2];

	weir_level_find(hosts, 2, 3000, 1500, &level, due);
	assert_int_equal(level.budget, 0);
	assert_int_equal(due[1], 0);
	assert_true(level.is_scarce);
}

CLAIM(nobody_is_there)
{
	struct weir_level level;
	uint64_t due[1];

	weir_level_find(NULL, 0, 3000, 0, &level, due);
	assert_int_equal(level.live, 0);
	assert_int_equal(level.budget, 3000);
	assert_false(level.is_scarce);
}

RUN_CLAIMS(NULL, NULL)
