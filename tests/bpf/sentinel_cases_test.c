// SPDX-License-Identifier: GPL-2.0-only
/*
 * What Sentinel-Go's own tests of circuit breakers and of hotspot parameter flow claim (in its core/
 * and tests/: circuitbreaker, hotspot; July 2025), as traffic: its lists of rules are read as they are, and the
 * shipped BPF object evaluates packets of ours. An entry is an opening, an exit without an error a packet that talks,
 * one with an error a reset; a parameter's value is a source.
 * docs/sentinel.md says which of its cases have no meaning for packets. Nor have those of the Go library itself: its
 * listeners and the printing and comparing of rules; and that within durationInSec no token comes back, and then all at
 * once: here they come continuously, and after the whole time both are full. Its 100 goroutines that make 100 entries
 * each while another breaker blocks all probes are bpf/breaker_cpus_test's CPUs.
 * (tests/unit/model_breaker_sentinel_test asks the reference model the same of breakers.)
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "sentinel/sentinel.h"

#define FRAME_BYTES 60
#define START RIG_START_NS

#define SYN 0x02
#define RST 0x04
#define ACK 0x10

/* ---- rules as Sentinel-Go's users keep them ---- */

static const char resources[] =
	"settings: {flowsPerCpu: 512, connections: 4096, connectionFlows: 1024, halfOpenTimeoutInMs: 1000}\n"
	"resources:\n"
	"- {name: calls, match: {protocol: tcp, destinationPort: 80}, flow: source}\n"
	"- {name: values, match: {protocol: udp, destinationPort: 53}, flow: source}\n";

/* The path of a file that is gone when it is closed. */
static int make_file(const char *text, char path[32])
{
	int fd = memfd_create("rules", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static void load(struct rig *rig, const char *list)
{
	char names[2][32];
	const char *const paths[] = {names[0], names[1]};
	int files[] = {make_file(resources, names[0]), make_file(list, names[1])};
	struct weir_diag diag = {};
	int err;

	rig_begin(rig, 512);
	weir_ruleset_free(rig->ruleset);
	rig->ruleset = NULL;
	weir_use_foreign_reader(&weir_sentinel_reader);
	err = weir_ruleset_read(paths, ARRAY_SIZE(paths), &rig->ruleset, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		close(files[i]);
	rig_load_here(rig);
}

/* ---- traffic ---- */

static bool passes(struct rig *rig, uint64_t now_ns, const char *source, struct packet_spec spec)
{
	uint8_t frame[PACKET_BYTES_MAX];

	assert_int_equal(inet_pton(AF_INET, source, spec.source), 1);
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
	return rig_passes(rig, now_ns, frame, FRAME_BYTES);
}

/* Of the call that this source has from this port. */
static bool calls(struct rig *rig, uint64_t now_ns, const char *source, uint16_t port, uint8_t flags)
{
	struct packet_spec spec = packet_udp(source, port, "192.0.2.80", 80, 0);

	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	return passes(rig, now_ns, source, spec);
}

#define CALLER "10.0.0.1"

static bool enters(struct rig *rig, uint64_t now_ns, uint16_t port)
{
	return calls(rig, now_ns, CALLER, port, SYN);
}

static void exits(struct rig *rig, uint64_t now_ns, uint16_t port, bool is_error)
{
	assert_true(calls(rig, now_ns, CALLER, port, is_error ? RST : ACK));
}

/* How many of these, at one instant, get through. */
static uint32_t requests(struct rig *rig, uint64_t now_ns, const char *value, uint32_t count)
{
	uint32_t passed = 0;

	for (uint32_t i = 0; i < count; i++)
		passed += passes(rig, now_ns, value, packet_udp(value, 1000, "192.0.2.53", 53, 0));
	return passed;
}

/* ---- circuit breakers ---- */

#define FAILS true
#define RETRY (START + MS + 3 * SECOND)

/* By each strategy, a breaker that retries after 3 s. */
static void load_breaker(struct rig *rig, int strategy, int min_requests, int probes)
{
	char list[320];

	snprintf(list, sizeof(list),
		 "[{\"resource\": \"calls\", \"strategy\": %d, \"threshold\": %s, \"maxAllowedRtMs\": 50, "
		 "\"statIntervalMs\": 10000, \"retryTimeoutMs\": 3000, \"minRequestAmount\": %d, \"probeNum\": %d}]",
		 strategy, strategy == 2 ? "1" : "0.5", min_requests, probes);
	load(rig, list);
}

/* By a call that fails a millisecond after START. */
static void open_breaker(struct rig *rig)
{
	assert_true(enters(rig, START, 1));
	exits(rig, START + MS, 1, FAILS);
	assert_false(enters(rig, START + MS, 2));
	assert_false(enters(rig, RETRY - 1, 2));
}

CLAIM(closed_breaker_lets_calls_pass_and_opens_not_before_its_minimum)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		_cleanup_(rig_end) struct rig rig = {};

		load_breaker(&rig, strategy, 10, 0);
		for (int call = 1; call <= 10; call++) {
			assert_true(enters(&rig, START + call * MS, call));
			exits(&rig, START + call * MS, call, FAILS);
		}
		assert_false(enters(&rig, START + 11 * MS, 11));
	}
}

CLAIM(open_breaker_lets_one_probe_pass_after_its_retry)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		_cleanup_(rig_end) struct rig rig = {};

		load_breaker(&rig, strategy, 1, 0);
		open_breaker(&rig);
		assert_true(enters(&rig, RETRY, 3));
		assert_false(enters(&rig, RETRY, 4)); /* half-open */
	}
}

CLAIM(good_probe_closes_it_and_a_failed_one_opens_it_again)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		_cleanup_(rig_end) struct rig rig = {};

		load_breaker(&rig, strategy, 1, 0);
		open_breaker(&rig);
		assert_true(enters(&rig, RETRY, 3));
		exits(&rig, RETRY + 10 * MS, 3, FAILS);
		assert_false(enters(&rig, RETRY + 10 * MS, 4));
		assert_false(enters(&rig, RETRY + 10 * MS + 3 * SECOND - 1, 4));
		assert_true(enters(&rig, RETRY + 10 * MS + 3 * SECOND, 4));
		exits(&rig, RETRY + 20 * MS + 3 * SECOND, 4, !FAILS);
		for (int call = 5; call < 10; call++)
			assert_true(enters(&rig, RETRY + 20 * MS + 3 * SECOND, call));
	}
}

/* The tenth; until then it is half-open, and a failed one would open it. */
CLAIM(ten_good_probes_close_a_breaker_whose_probe_num_is_ten)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		for (int good = 9; good <= 10; good++) {
			uint64_t now_ns = RETRY;
			_cleanup_(rig_end) struct rig rig = {};

			load_breaker(&rig, strategy, 100, 10);
			for (int call = 1; call <= 100; call++) {
				assert_true(enters(&rig, START, call));
				exits(&rig, START + MS, call, FAILS);
			}
			for (int probe = 1; probe <= good; probe++, now_ns += 2 * MS) {
				assert_true(enters(&rig, now_ns, 200 + probe));
				exits(&rig, now_ns + MS, 200 + probe, !FAILS);
			}
			assert_true(enters(&rig, now_ns, 300));
			exits(&rig, now_ns + MS, 300, FAILS);
			assert_int_equal(enters(&rig, now_ns + MS, 301), good == 10);
		}
	}
}

CLAIM(failed_probe_among_good_ones_restarts_their_count)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		const uint64_t again_ns = RETRY + 4 * MS + 3 * SECOND;
		_cleanup_(rig_end) struct rig rig = {};

		load_breaker(&rig, strategy, 1, 2);
		open_breaker(&rig);
		assert_true(enters(&rig, RETRY, 3));
		exits(&rig, RETRY + MS, 3, !FAILS); /* one of two */
		assert_true(enters(&rig, RETRY + 2 * MS, 4));
		exits(&rig, RETRY + 4 * MS, 4, FAILS);
		assert_false(enters(&rig, again_ns - 1, 5));
		assert_true(enters(&rig, again_ns, 5));
		exits(&rig, again_ns + MS, 5, !FAILS); /* one of two, and not the second */
		assert_true(enters(&rig, again_ns + 2 * MS, 6));
		exits(&rig, again_ns + 3 * MS, 6, FAILS);
		assert_false(enters(&rig, again_ns + 3 * MS, 7));
	}
}

/* Two breakers that one call opens: the one is soon due again, and each of its probes is blocked by the other. */
CLAIM(probe_that_another_breaker_blocks_leaves_it_open)
{
	_cleanup_(rig_end) struct rig rig = {};

	load(&rig, "[{\"resource\": \"calls\", \"strategy\": 0, \"threshold\": 0.1, \"maxAllowedRtMs\": 3, "
		   "\"statIntervalMs\": 10000, \"retryTimeoutMs\": 1, \"minRequestAmount\": 0},\n"
		   " {\"resource\": \"calls\", \"strategy\": 1, \"threshold\": 0.1, "
		   "\"statIntervalMs\": 10000, \"retryTimeoutMs\": 2000000, \"minRequestAmount\": 0}]");
	assert_true(enters(&rig, START, 1));
	exits(&rig, START + 50 * MS, 1, FAILS);
	for (int call = 2; call <= 101; call++)
		assert_false(enters(&rig, START + (50 + call) * MS, call));
	assert_int_equal(rig_rule_counters(&rig, 0).blocked.packets, 0);
	assert_int_equal(rig_rule_counters(&rig, 1).blocked.packets, 100);
}

/* It opens when the call has taken 3 ms, not when it exits: who waits for an answer knows by then. */
CLAIM(breaker_on_slow_calls_is_closed_by_a_quick_one)
{
	_cleanup_(rig_end) struct rig rig = {};

	load(&rig, "[{\"resource\": \"calls\", \"strategy\": 0, \"threshold\": 0.1, \"maxAllowedRtMs\": 3, "
		   "\"statIntervalMs\": 10000, \"retryTimeoutMs\": 20, \"minRequestAmount\": 0}]");
	assert_true(enters(&rig, START, 1));
	assert_true(enters(&rig, START + 3 * MS, 2));
	exits(&rig, START + 3 * MS, 2, !FAILS);
	assert_false(enters(&rig, START + 3 * MS + 1, 3));
	exits(&rig, START + 50 * MS, 1, !FAILS);
	assert_true(enters(&rig, START + 150 * MS, 4));
	exits(&rig, START + 151 * MS, 4, !FAILS);
	assert_true(enters(&rig, START + 151 * MS, 5));
	assert_true(enters(&rig, START + 151 * MS, 6));
}

/* ---- hotspot parameter flow ---- */

#define ONE "10.0.0.1"
#define OTHER "10.0.0.2"
#define BURSTING                                                                                                       \
	"\"resource\": \"values\", \"metricType\": 1, \"controlBehavior\": 0, \"threshold\": 100, \"burstCount\": 10"

CLAIM(each_value_has_the_threshold_and_the_burst_at_once)
{
	_cleanup_(rig_end) struct rig rig = {};

	load(&rig, "[{" BURSTING ", \"paramIndex\": 0, \"durationInSec\": 1}]");
	assert_int_equal(requests(&rig, START, ONE, 130), 110);
	assert_int_equal(requests(&rig, START, OTHER, 20), 20);
}

/* A tenth of the duration brings a tenth of the threshold; Sentinel-Go has none until it is over. */
CLAIM(tokens_are_taken_and_come_back_with_time)
{
	_cleanup_(rig_end) struct rig rig = {};

	load(&rig, "[{" BURSTING ", \"paramKey\": \"user\", \"durationInSec\": 10}]");
	assert_int_equal(requests(&rig, START, ONE, 60), 60);
	assert_int_equal(requests(&rig, START + SECOND, ONE, 20), 20);
	assert_int_equal(requests(&rig, START + SECOND, ONE, 100), 40);
}

CLAIM(bucket_is_full_again_after_the_duration_and_never_fuller)
{
	for (uint32_t used = 60; used <= 110; used += 50) {
		_cleanup_(rig_end) struct rig rig = {};

		load(&rig, "[{" BURSTING ", \"paramIndex\": 0, \"durationInSec\": 1}]");
		assert_int_equal(requests(&rig, START, ONE, used), used);
		/* The burst takes a tenth of the duration more. */
		assert_int_equal(requests(&rig, START + 1100 * MS, ONE, 200), 110);
		assert_int_equal(requests(&rig, START + 60 * SECOND, ONE, 200), 110);
	}
}

/* 10 ms apart, and who would wait for longer than 10 ms is blocked. */
CLAIM(throttled_values_are_planned_apart)
{
	_cleanup_(rig_end) struct rig rig = {};

	load(&rig, "[{\"resource\": \"values\", \"metricType\": 1, \"controlBehavior\": 1, \"threshold\": 100, "
		   "\"durationInSec\": 1, \"maxQueueingTimeMs\": 10}]");
	assert_int_equal(requests(&rig, START, ONE, 1), 1);
	assert_int_equal(requests(&rig, START + 201 * MS, ONE, 5), 2);
	assert_int_equal(requests(&rig, START + 201 * MS, OTHER, 5), 2);
	assert_int_equal(rig_rule_counters(&rig, 0).delayed, 2);
	assert_int_equal(rig_rule_counters(&rig, 0).delay_ns, 20 * MS);
}

CLAIM(specific_items_have_a_threshold_of_their_own)
{
	_cleanup_(rig_end) struct rig rig = {};

	load(&rig, "[{\"resource\": \"values\", \"metricType\": 1, \"controlBehavior\": 0, \"threshold\": 100, "
		   "\"durationInSec\": 1, \"specificItems\": {\"" ONE "\": 20}}]");
	assert_int_equal(requests(&rig, START, ONE, 200), 20);
	assert_int_equal(requests(&rig, START, OTHER, 200), 100);
}

/* Calls under way at once, of each value. */
CLAIM(concurrency_is_of_each_value)
{
	uint32_t passed[2] = {};
	_cleanup_(rig_end) struct rig rig = {};

	load(&rig, "[{\"resource\": \"calls\", \"metricType\": 0, \"threshold\": 50, \"paramIndex\": 0, "
		   "\"specificItems\": {\"" ONE "\": 20}}]");
	for (int call = 1; call <= 60; call++) {
		passed[0] += calls(&rig, START + call, ONE, call, SYN);
		passed[1] += calls(&rig, START + call, OTHER, call, SYN);
	}
	assert_int_equal(passed[0], 20);
	assert_int_equal(passed[1], 50);
	assert_true(calls(&rig, START + 100, ONE, 1, RST));
	assert_true(calls(&rig, START + 101, ONE, 100, SYN)); /* the place of the one that is over */
	assert_false(calls(&rig, START + 101, ONE, 101, SYN));
}

RUN_CLAIMS(NULL, NULL)
