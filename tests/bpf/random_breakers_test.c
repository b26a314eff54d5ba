// SPDX-License-Identifier: GPL-2.0-only
/*
 * Circuit breakers of the shipped BPF object against the reference model (tests/lib/model_breaker.h), on random rules
 * and on requests at the edges of what these go by: every verdict, and how each breaker stands at the end.
 */
#include "../lib/harness_rounds.h"
#include "../lib/harness_setup.h"
#include "../lib/random_breakers.h"
#include "base/util.h"

#define SYN 0x02
#define RST 0x04
#define ACK 0x10

/* Returns whether it passed. */
static bool say(struct harness *harness, uint8_t flags, uint64_t time_ns)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 80, 18);

	spec.protocol = 6;
	spec.tcp_flags = flags;
	spec.time_ns = time_ns;
	return harness_verdict(harness, &spec) == WEIR_VERDICT_PASS;
}

/* A request that ends at once. Returns whether its opening passed. */
static bool asks(struct harness *harness, uint8_t end, uint64_t time_ns)
{
	bool passed = say(harness, SYN, time_ns);

	say(harness, end, time_ns);
	return passed;
}

/* Of five buckets of a millisecond, all but the first have requests again; 12 bits distinguish their numbers. */
HARNESS_CLAIM(what_has_left_the_window_never_comes_back)
{
	static char name[] = "breaker";
	struct weir_ruleset_rule rule = {
		.name = name,
		.metric = WEIR_METRIC_REQUESTS,
		.threshold_micro = 2 * WEIR_MICRO,
		.interval_ns = SECOND,
		.samples = 10,
		.ref_resource = WEIR_NO_RESOURCE,
		.breaker = {WEIR_BREAKER_ERROR_COUNT, 5 * MS, 5, SECOND, 2, 0, 0},
	};
	uint64_t start_ns = 100 * SECOND;

	setup_resources(setup, 1);
	setup_rule(setup, 0, rule);
	for (unsigned int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		setup->ruleset.settings.connection_timeout_ms[class] = 10000;
	harness_start(harness, setup);
	assert_true(asks(harness, RST, start_ns));
	for (uint64_t ms = 1; ms < 4096; ms += 500)
		assert_true(asks(harness, ACK, start_ns + ms * MS));
	assert_true(asks(harness, RST, start_ns + 4097 * MS));
	assert_true(asks(harness, ACK, start_ns + 4098 * MS));
}

CLAIM(breakers_agree_with_the_model_on_random_requests)
{
	const struct harness_rounds rounds = {
		.rounds = 100,
		.packets = 5000,
		.rules = random_breaker_ruleset,
		.traffic = random_breaker_packets,
	};

	harness_rounds_agree(&rounds);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
