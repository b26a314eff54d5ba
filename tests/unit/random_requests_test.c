// SPDX-License-Identifier: GPL-2.0-only
/*
 * The random requests do to circuit breakers what they are there for: breakers open, probe, open again and close, often
 * and in every way, at exact edges, too. And whatever comes, the model keeps to what can be said without it.
 */
#include <string.h>

#include "../lib/claims.h"
#include "../lib/model_breaker.h"
#include "../lib/random_requests.h"
#include "base/util.h"

#define MS 1000000ull
#define ROUNDS 100
#define ROUND_PACKETS 2000

#define PICK(random, array) ((array)[random_below(random, ARRAY_SIZE(array))])

static struct model_breaker_rule random_rule(struct random *random)
{
	static const uint64_t intervals_ms[] = {10, 100, 1000, 1000, 2500, 10000}, buckets[] = {1, 1, 2, 5, 7, 10};
	static const uint64_t rts_ms[] = {0, 1, 5, 50, 500, 3000}, retries_ms[] = {1, 20, 100, 500, 3000};
	static const uint64_t ratios_micro[] = {0, 100000, 333333, 500000, 500000, 666667, 1000000};
	struct model_breaker_rule rule = {
		.strategy = random_below(random, 3),
		.retry_timeout_ns = PICK(random, retries_ms) * MS,
		.min_requests = random_below(random, 6),
		.interval_ns = PICK(random, intervals_ms) * MS,
		.buckets = PICK(random, buckets),
		.max_rt_ns = PICK(random, rts_ms) * MS,
		.probes = random_percent(random, 50) ? 0 : random_between(random, 1, 4),
		.half_open_timeout_ns = 1000 * MS,
	};

	rule.threshold_micro = rule.strategy == MODEL_ERROR_COUNT ? random_between(random, 1, 6) * 1000000
								  : PICK(random, ratios_micro);
	return rule;
}

/* What happened in all rounds. */
struct tally {
	unsigned int opened, probed, closed, opened_again, dropped;
	unsigned int at_the_retry, before_the_retry; /* openings at its nanosecond, and one before */
};

static void count_change(struct tally *tally, enum model_breaker_state before, enum model_breaker_state after)
{
	if (before == after)
		return;
	tally->opened += before == MODEL_BREAKER_CLOSED && after == MODEL_BREAKER_OPEN;
	tally->opened_again += before == MODEL_BREAKER_HALF_OPEN && after == MODEL_BREAKER_OPEN;
	tally->probed += after == MODEL_BREAKER_HALF_OPEN;
	tally->closed += before == MODEL_BREAKER_HALF_OPEN && after == MODEL_BREAKER_CLOSED;
}

static struct model_packet packet_of(const struct packet_spec *spec)
{
	struct model_packet packet = {.family = spec->family, .protocol = 6, .has_ports = true, .has_tcp_flags = true};

	memcpy(packet.source, spec->source, 16);
	memcpy(packet.destination, spec->destination, 16);
	packet.source_port = spec->source_port;
	packet.destination_port = spec->destination_port;
	packet.tcp_flags = spec->tcp_flags;
	return packet;
}

#define SYN 0x02

/* One packet to its breaker; what is dropped can only be an opening that nobody has promised to let through. */
static void evaluate(struct model_breakers *breakers, const struct model_breaker_rule *rule,
		     const struct packet_spec *spec, struct tally *tally)
{
	struct weir_flow flow = {.fields = WEIR_KEY_SOURCE, .source_bits = {32, 128}};
	struct model_packet packet = packet_of(spec);
	struct model_key key = model_key_of(&flow, 0, &packet);
	struct model_breaker_view before = model_breaker_of_flow(breakers, rule, &key, spec->time_ns), after;
	bool admitted = model_breaker_evaluate(breakers, rule, &key, &packet, spec->time_ns);

	if (admitted)
		model_breaker_commit(breakers, rule, &key, &packet, false, spec->time_ns);
	after = model_breaker_of_flow(breakers, rule, &key, spec->time_ns);
	count_change(tally, before.state, after.state);
	tally->dropped += !admitted;
	if (!admitted) {
		assert_int_equal(packet.tcp_flags, SYN);
		assert_int_not_equal(before.state, MODEL_BREAKER_CLOSED);
		assert_int_equal(after.changes, before.changes);
	}
	if (packet.tcp_flags != SYN || before.state != MODEL_BREAKER_OPEN)
		return;
	tally->at_the_retry += spec->time_ns == before.retry_ns;
	tally->before_the_retry += spec->time_ns == before.retry_ns - 1;
	if (spec->time_ns >= before.retry_ns)
		assert_true(admitted);
	else
		assert_int_equal(after.state, MODEL_BREAKER_OPEN);
}

/* Between two packets a breaker may open, and does nothing else. */
static void pass_time(struct model_breakers *breakers, const struct model_breaker_rule *rule,
		      const struct model_key *key, uint64_t now_ns, uint64_t later_ns, struct tally *tally)
{
	enum model_breaker_state before = model_breaker_of_flow(breakers, rule, key, now_ns).state;
	enum model_breaker_state after = model_breaker_of_flow(breakers, rule, key, later_ns).state;

	count_change(tally, before, after);
	assert_true(after == before || after == MODEL_BREAKER_OPEN);
}

static void play_round(struct random *random, struct tally *tally)
{
	struct model_breaker_rule rule = random_rule(random);
	struct random_requests requests = {
		.times = {{rule.max_rt_ns, rule.retry_timeout_ns, rule.interval_ns}},
		.times_count = 1,
		.timeout_ns = rule.half_open_timeout_ns,
	};
	struct model_breakers *breakers = model_breakers_new();
	uint64_t now_ns = 1000000 * MS, later_ns;

	random_requests_begin(random, &requests);
	for (size_t i = 0; i < ROUND_PACKETS; i++) {
		struct packet_spec spec = random_requests_packet(random, &requests, now_ns);

		spec.time_ns = now_ns;
		evaluate(breakers, &rule, &spec, tally);
		later_ns = random_requests_step(random, &requests, now_ns);
		for (size_t flow = 0; flow < model_breakers_count(breakers); flow++)
			pass_time(breakers, &rule, model_breaker_flow(breakers, flow), now_ns, later_ns, tally);
		now_ns = later_ns;
	}
	model_breakers_free(breakers);
}

CLAIM(random_requests_open_and_close_breakers_often)
{
	struct tally tally = {};

	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct random random = {20250701 + i};

		play_round(&random, &tally);
	}
	if (getenv("WEIR_VERBOSE"))
		print_message(
			"opened %u, probed %u, closed %u, opened again %u, dropped %u, at the retry %u, before %u\n",
			tally.opened, tally.probed, tally.closed, tally.opened_again, tally.dropped, tally.at_the_retry,
			tally.before_the_retry);
	assert_true(tally.opened >= 20 * ROUNDS);
	assert_true(tally.probed >= 20 * ROUNDS);
	assert_true(tally.closed >= 10 * ROUNDS);
	assert_true(tally.opened_again >= 5 * ROUNDS);
	assert_true(tally.dropped >= 100 * ROUNDS);
	assert_true(tally.at_the_retry >= ROUNDS && tally.before_the_retry >= ROUNDS);
}

RUN_CLAIMS(NULL, NULL)
