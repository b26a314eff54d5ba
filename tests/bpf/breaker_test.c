// SPDX-License-Identifier: GPL-2.0-only
/*
 * Circuit breakers, at the edges: the request that completes the minimum, the nanosecond of a time-out and of the
 * retry, who is the probe and what becomes of it; and that on two CPUs each opening has one probe. (replay_test
 * compares random traffic with a model; docs/breakers.md says what is tested here.)
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <netinet/in.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

#define PORT 80
#define FRAME_BYTES 60
#define T SECOND /* halfOpenTimeoutInMs */
#define START RIG_START_NS

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

/* ---- set-up ---- */

static void begin(struct rig *rig, uint32_t key_fields)
{
	size_t resource;

	rig_begin(rig, 512);
	rig->ruleset->settings.connections = 4096;
	rig->ruleset->settings.connection_flows = 1024;
	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		rig->ruleset->settings.connection_timeout_ms[class] = T / MS;
	resource = rig_resource(rig, PORT, key_fields);
	rig->ruleset->resources[resource].match.has_protocol = false;
}

/* A breaker on the resource: a ratio in millionths, or a count; a window of 10 s, a retry after 2 s. */
static struct weir_breaker_fields *breaker(struct rig *rig, enum weir_breaker_strategy strategy, uint64_t micro,
					   uint32_t min_requests)
{
	struct weir_ruleset_rule *rule = rig_rule(rig, 0, WEIR_WINDOW_LEAP, 0, 0, 0);

	rule->metric = WEIR_METRIC_REQUESTS;
	rule->threshold_micro = micro;
	rule->breaker = (struct weir_breaker_fields){
		.strategy = strategy,
		.interval_ns = 10 * SECOND,
		.buckets = 1,
		.retry_ns = 2 * SECOND,
		.min_requests = min_requests,
	};
	return &rule->breaker;
}

/* From 10.x.x.x */
static void build(uint32_t source, uint16_t port, uint8_t flags, uint8_t frame[FRAME_BYTES])
{
	struct packet_spec spec = packet_udp("10.0.0.0", port, "192.0.2.80", PORT, 0);
	uint8_t built[PACKET_BYTES_MAX];
	uint32_t address = htonl(0x0a000000 | source);

	memcpy(spec.source, &address, sizeof(address));
	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, built);
	memcpy(frame, built, FRAME_BYTES);
}

static bool passes(struct rig *rig, uint64_t now_ns, uint32_t source, uint16_t port, uint8_t flags)
{
	uint8_t frame[FRAME_BYTES];

	build(source, port, flags, frame);
	return rig_passes(rig, now_ns, frame, FRAME_BYTES);
}

/* A request that is answered, or reset, a millisecond later. */
static bool request(struct rig *rig, uint64_t now_ns, uint16_t port, uint8_t answer)
{
	bool opened = passes(rig, now_ns, 1, port, SYN);

	assert_true(passes(rig, now_ns + MS, 1, port, answer));
	return opened;
}

/* ---- opening ---- */

CLAIM(the_request_that_completes_the_minimum_opens_it)
{
	static const uint32_t keys[] = {0, WEIR_KEY_SOURCE};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		_cleanup_(rig_end) struct rig rig = {};

		begin(&rig, keys[i]);
		breaker(&rig, WEIR_BREAKER_ERROR_RATIO, 500000, 4);
		rig_load_here(&rig);
		assert_true(request(&rig, START, 1, ACK));
		assert_true(request(&rig, START + 2 * MS, 2, RST));
		assert_true(request(&rig, START + 4 * MS, 3, RST)); /* 2 of 3, but four it takes */
		assert_true(passes(&rig, START + 10 * MS, 1, 4, SYN));
		assert_true(passes(&rig, START + 10 * MS, 1, 5, SYN));
		assert_true(passes(&rig, START + 11 * MS, 1, 4, ACK)); /* a good one: 2 of 4 */
		assert_false(passes(&rig, START + 11 * MS, 1, 6, SYN));
		assert_true(passes(&rig, START + 11 * MS, 1, 5, SYN)); /* said again */
		assert_true(passes(&rig, START + 12 * MS, 1, 7, ACK)); /* no opening */
		assert_int_equal(passes(&rig, START + 12 * MS, 2, 7, SYN), keys[i] != 0);
		assert_false(passes(&rig, START + 11 * MS + 2 * SECOND - 1, 1, 8, SYN));
		assert_true(passes(&rig, START + 11 * MS + 2 * SECOND, 1, 8, SYN)); /* the probe */
		assert_false(passes(&rig, START + 11 * MS + 2 * SECOND, 1, 9, SYN));
		assert_true(passes(&rig, START + 12 * MS + 2 * SECOND, 1, 8, SYN));
		assert_true(passes(&rig, START + 13 * MS + 2 * SECOND, 1, 8, ACK));
		assert_true(passes(&rig, START + 13 * MS + 2 * SECOND, 1, 10, SYN)); /* closed */
		assert_int_equal(rig_rule_counters(&rig, 0).blocked.packets, 3 + !keys[i]);
		assert_int_equal(rig_rule_counters(&rig, 0).stalled, 0);
	}
}

CLAIM(silence_fails_at_its_own_nanosecond)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, 2 * WEIR_MICRO, 1);
	rig_load_here(&rig);
	assert_true(passes(&rig, START, 1, 1, SYN));
	assert_true(passes(&rig, START + 7, 1, 2, SYN));
	assert_true(passes(&rig, START + T + 6, 1, 3, SYN));
	assert_false(passes(&rig, START + T + 7, 1, 4, SYN)); /* the second has failed */
	/* The retry is counted from there, whoever looks when. */
	assert_false(passes(&rig, START + T + 6 + 2 * SECOND, 1, 5, SYN));
	assert_true(passes(&rig, START + T + 7 + 2 * SECOND, 1, 5, SYN));
	/* The probe is silent: open again from the end of its time-out on. */
	assert_false(passes(&rig, START + 2 * T + 6 + 4 * SECOND, 1, 6, SYN));
	assert_true(passes(&rig, START + 2 * T + 7 + 4 * SECOND, 1, 6, SYN));
}

CLAIM(nobody_looks_and_yet_it_opens_in_time)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, 2 * WEIR_MICRO, 1);
	rig_load_here(&rig);
	assert_true(passes(&rig, START, 1, 1, SYN));
	assert_true(passes(&rig, START, 1, 2, SYN));
	/* Open from START + T on, so this is the probe. */
	assert_true(passes(&rig, START + T + 2 * SECOND, 1, 3, SYN));
	assert_false(passes(&rig, START + T + 2 * SECOND, 1, 4, SYN));
}

CLAIM(a_repeated_opening_ends_the_silence)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, WEIR_MICRO, 1);
	rig_load_here(&rig);
	assert_true(passes(&rig, START, 1, 1, SYN));
	assert_true(passes(&rig, START + T / 2, 1, 1, SYN));
	assert_true(passes(&rig, START + T, 1, 2, SYN));
	assert_true(passes(&rig, START + T + 1, 1, 2, ACK));
	assert_true(passes(&rig, START + T + T / 2 - 1, 1, 3, SYN));
	assert_false(passes(&rig, START + T + T / 2, 1, 4, SYN));
}

CLAIM(slow_is_known_after_the_time_it_may_take)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0);
	breaker(&rig, WEIR_BREAKER_SLOW_RATIO, 500000, 2)->max_rt_ns = 50 * MS;
	rig_load_here(&rig);
	assert_true(passes(&rig, START, 1, 1, SYN));
	assert_true(passes(&rig, START + 50 * MS, 1, 1, ACK)); /* in time */
	assert_true(passes(&rig, START + SECOND, 1, 2, SYN));
	assert_true(passes(&rig, START + SECOND + 50 * MS, 1, 3, SYN));
	assert_false(passes(&rig, START + SECOND + 50 * MS + 1, 1, 4, SYN));
	/* Open since START + SECOND + 50 ms; its answer does not count once more. */
	assert_true(passes(&rig, START + SECOND + 60 * MS, 1, 2, ACK));
	assert_false(passes(&rig, START + 3 * SECOND + 50 * MS - 1, 1, 5, SYN));
	assert_true(passes(&rig, START + 3 * SECOND + 50 * MS, 1, 5, SYN));
}

/* ---- half-open ---- */

/* Open at START + MS, with its retry at START + MS + 2 s. */
static void open_it(struct rig *rig)
{
	assert_true(request(rig, START, 1, RST));
	assert_false(passes(rig, START + MS, 1, 2, SYN));
}

CLAIM(so_many_good_probes_close_it_and_one_bad_one_opens_it)
{
	uint64_t retry_ns = START + MS + 2 * SECOND;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, WEIR_MICRO, 1)->probes = 3;
	rig_load_here(&rig);
	open_it(&rig);
	for (uint16_t port = 10; port < 15; port++)
		assert_true(passes(&rig, retry_ns, 1, port, SYN));
	assert_true(passes(&rig, retry_ns + 1, 1, 10, ACK));
	assert_true(passes(&rig, retry_ns + 1, 1, 11, ACK));
	assert_true(passes(&rig, retry_ns + 2, 1, 12, RST));
	assert_false(passes(&rig, retry_ns + 2, 1, 20, SYN));
	retry_ns += 2 + 2 * SECOND;
	/* Two of the last half-open time have failed meanwhile: of before the probe. */
	assert_true(passes(&rig, retry_ns, 1, 30, SYN));
	assert_true(passes(&rig, retry_ns, 1, 31, SYN));
	assert_true(passes(&rig, retry_ns, 1, 32, SYN));
	assert_true(passes(&rig, retry_ns + 1, 1, 30, ACK));
	assert_true(passes(&rig, retry_ns + 1, 1, 31, ACK));
	assert_true(passes(&rig, retry_ns + 1, 1, 32, ACK));
	/* Closed: a bad one opens it at once, by the minimum of one. */
	assert_true(request(&rig, retry_ns + 2, 40, ACK));
	assert_true(request(&rig, retry_ns + 2 * MS, 41, RST));
	assert_false(passes(&rig, retry_ns + 3 * MS, 1, 42, SYN));
}

/* Two bad ones open it when it is closed, and one when it is half-open: so a single one shows which it is. */
CLAIM(so_many_good_probes_close_it_and_no_fewer)
{
	for (uint16_t good = 2; good <= 3; good++) {
		uint64_t now_ns = START + 3 * MS + 2 * SECOND;
		_cleanup_(rig_end) struct rig rig = {};

		begin(&rig, WEIR_KEY_SOURCE);
		breaker(&rig, WEIR_BREAKER_ERROR_COUNT, 2 * WEIR_MICRO, 2)->probes = 3;
		rig_load_here(&rig);
		assert_true(request(&rig, START, 1, RST));
		assert_true(request(&rig, START + 2 * MS, 2, RST));
		assert_false(passes(&rig, START + 3 * MS, 1, 3, SYN));
		for (uint16_t port = 10; port < 10 + good; port++, now_ns += 2 * MS)
			assert_true(request(&rig, now_ns, port, ACK));
		assert_true(request(&rig, now_ns, 20, RST));
		assert_int_equal(passes(&rig, now_ns + 2 * MS, 1, 21, SYN), good == 3);
	}
}

CLAIM(what_began_before_the_probe_does_not_count_in_half_open)
{
	uint64_t retry_ns = START + MS + 100 * MS;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, WEIR_MICRO, 1)->retry_ns = 100 * MS;
	rig_load_here(&rig);
	assert_true(passes(&rig, START, 1, 50, SYN));
	assert_true(passes(&rig, START, 1, 51, SYN));
	open_it(&rig);
	assert_true(passes(&rig, retry_ns, 1, 60, SYN));
	assert_true(passes(&rig, retry_ns + 1, 1, 50, ACK)); /* does not close it */
	assert_false(passes(&rig, retry_ns + 1, 1, 61, SYN));
	assert_true(passes(&rig, retry_ns + 2, 1, 51, RST)); /* nor open it */
	assert_true(passes(&rig, retry_ns + 3, 1, 60, ACK));
	assert_true(passes(&rig, retry_ns + 3, 1, 61, SYN));
}

CLAIM(a_probe_that_another_rule_drops_is_none)
{
	uint64_t retry_ns = START + MS + 2 * SECOND;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, WEIR_MICRO, 1);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, WEIR_MICRO, 1)->retry_ns = 3 * SECOND;
	rig_load_here(&rig);
	open_it(&rig);
	/* The first would take it as its probe, the second does not. */
	assert_false(passes(&rig, retry_ns, 1, 60, SYN));
	assert_false(passes(&rig, retry_ns + SECOND - 1, 1, 61, SYN));
	assert_true(passes(&rig, retry_ns + SECOND, 1, 62, SYN));
	assert_false(passes(&rig, retry_ns + SECOND, 1, 63, SYN));
	assert_true(passes(&rig, retry_ns + SECOND + 1, 1, 62, ACK));
	assert_true(passes(&rig, retry_ns + SECOND + 1, 1, 63, SYN));
}

CLAIM(one_that_observes_counts_what_it_would_drop)
{
	uint64_t retry_ns = START + MS + 2 * SECOND;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, WEIR_MICRO, 1);
	rig.ruleset->rules[0].observes = true;
	rig_load_here(&rig);
	assert_true(request(&rig, START, 1, RST));
	assert_true(passes(&rig, START + MS, 1, 2, SYN)); /* would be dropped: no request */
	assert_true(passes(&rig, START + MS + 1, 1, 2, RST));
	assert_true(passes(&rig, retry_ns, 1, 3, SYN));
	assert_true(passes(&rig, retry_ns, 1, 4, SYN));
	assert_true(passes(&rig, retry_ns + 1, 1, 4, RST)); /* not of the probe */
	assert_true(passes(&rig, retry_ns + 2, 1, 3, ACK));
	assert_true(request(&rig, retry_ns + 3, 5, ACK));
	assert_int_equal(rig_rule_counters(&rig, 0).would_drop.packets, 2);
	assert_int_equal(rig_rule_counters(&rig, 0).blocked.packets, 0);
}

/* ---- the window ---- */

CLAIM(outcomes_leave_the_window_bucket_by_bucket)
{
	uint64_t at = START; /* a multiple of 10 s */
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, 2 * WEIR_MICRO, 1)->buckets = 5;
	rig_load_here(&rig);
	assert_int_equal(at % (10 * SECOND), 0);
	assert_true(request(&rig, at, 1, RST));
	assert_true(request(&rig, at + 10 * SECOND, 2, RST)); /* the first has left */
	assert_true(request(&rig, at + 19 * SECOND, 3, RST)); /* the second not yet */
	assert_false(passes(&rig, at + 19 * SECOND + MS, 1, 4, SYN));
}

/* ---- a full table ---- */

#define FLOOD 8192u

/* Each flow's only request fails. Returns how many evictions there have been by then. */
static uint64_t flood(struct rig *rig, uint64_t now_ns, uint32_t first)
{
	for (uint32_t i = 0; i < FLOOD; i++) {
		assert_true(passes(rig, now_ns, first + i, 1, SYN));
		assert_true(passes(rig, now_ns, first + i, 1, RST));
	}
	return rig_rule_counters(rig, 0).evicted;
}

CLAIM(a_breaker_is_not_forgotten_unsaid_while_its_window_counts)
{
	uint64_t evicted;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, 2 * WEIR_MICRO, 1);
	rig_load_here(&rig);
	evicted = flood(&rig, START, 0);
	/* All time-outs are over, and no window: each new breaker takes the place of one that counts. */
	assert_int_equal(flood(&rig, START + 5 * SECOND, FLOOD), evicted + FLOOD);
}

/* Of a few flows two requests fail. Then twice as many others come as there are places. */
CLAIM(a_flood_of_new_flows_does_not_push_out_an_open_breaker)
{
	enum { SHUT = 16 };
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	breaker(&rig, WEIR_BREAKER_ERROR_COUNT, 2 * WEIR_MICRO, 1);
	rig_load_here(&rig);
	for (uint32_t source = 0; source < SHUT; source++)
		for (uint16_t port = 1; port <= 2; port++) {
			assert_true(passes(&rig, START, source, port, SYN));
			assert_true(passes(&rig, START, source, port, RST));
		}
	flood(&rig, START + MS, FLOOD);
	assert_true(flood(&rig, START + 2 * MS, 2 * FLOOD) > FLOOD / 2);
	for (uint32_t source = 0; source < SHUT; source++)
		assert_false(passes(&rig, START + 3 * MS, source, 9, SYN));
}

RUN_CLAIMS(NULL, NULL)
