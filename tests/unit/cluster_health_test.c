// SPDX-License-Identifier: GPL-2.0-only
/* What a store says of its version and its memory, and two clocks beside each other. */
#include <math.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "shares/health.h"

CLAIM(versions_are_read)
{
	struct weir_store_version version;

	assert_true(weir_store_read_version("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n", &version));
	assert_false(version.is_valkey);
	assert_int_equal(version.redis_major, 7);
	assert_string_equal(version.text, "7.0.15");
	assert_true(weir_store_read_version("redis_version:5.0.14\r\n", &version));
	assert_true(version.redis_major < WEIR_STORE_MAJOR_MIN);
	assert_true(weir_store_read_version("redis_version:10.0.0\r\n", &version));
	assert_int_equal(version.redis_major, 10);
	/* A Valkey says as well which Redis it is like. */
	assert_true(weir_store_read_version("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n",
					    &version));
	assert_true(version.is_valkey);
	assert_int_equal(version.redis_major, 7);
	assert_string_equal(version.text, "8.1.1");
}

CLAIM(what_is_no_version_is_none)
{
	static const char *const infos[] = {
		"",
		"# Server\r\n",
		"redis_version:\r\n",
		"redis_version:seven\r\n",
		"redis_version:7\r\n",
		"my_redis_version:7.0\r\n",
		"redis_version:7.0.15-a-build-with-a-name-that-is-too-long\r\n",
	};
	struct weir_store_version version;

	for (size_t i = 0; i < ARRAY_SIZE(infos); i++)
		assert_false(weir_store_read_version(infos[i], &version));
}

CLAIM(eviction_needs_a_limit_and_a_policy)
{
	assert_false(weir_store_may_evict("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"));
	assert_false(weir_store_may_evict("maxmemory:1000\r\nmaxmemory_policy:noeviction\r\n"));
	assert_true(weir_store_may_evict("maxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n"));
	assert_true(weir_store_may_evict("maxmemory:1000\r\nmaxmemory_policy:volatile-ttl\r\n"));
	assert_false(weir_store_may_evict(""));
}

/* The answer's true time may be anywhere between question and answer: the error covers both ends. */
CLAIM(a_drift_is_found_within_its_error)
{
	static const int drifts_ppm[] = {0, 100, -500, 2000, -100000};

	for (size_t d = 0; d < ARRAY_SIZE(drifts_ppm); d++) {
		for (int early = 0; early <= 1; early++) {
			const uint64_t begin_us = 1700000000000000, second_ns = 1000000000;
			struct weir_clock_reading first = {5 * second_ns, 5 * second_ns + 400000, begin_us}, second;
			double error_ppm, drift_ppm;
			/* `first` was read at its start or its end, `second` at the other end. */
			const double our_us = early ? 1000600 : 1000000 - 400;

			second = (struct weir_clock_reading){
				.sent_ns = 6 * second_ns,
				.received_ns = 6 * second_ns + 600000,
				.store_us = begin_us + (uint64_t)(our_us * (1 + drifts_ppm[d] / 1e6)),
			};
			drift_ppm = weir_clock_drift_ppm(&first, &second, &error_ppm);
			assert_true(error_ppm > 450 && error_ppm < 550);
			assert_true(fabs(drift_ppm - drifts_ppm[d]) <= error_ppm * 1.2);
			assert_true(fabs(drift_ppm - drifts_ppm[d]) >= error_ppm * 0.8); /* no better is known */
		}
	}
}

CLAIM(the_quickest_answer_counts_most)
{
	const struct weir_clock_reading readings[] = {{0, 900, 1}, {1000, 1300, 2}, {2000, 2500, 3}};

	assert_ptr_equal(weir_clock_best(readings, 3), &readings[1]);
	assert_ptr_equal(weir_clock_best(readings, 1), &readings[0]);
}

RUN_CLAIMS(NULL, NULL)
