// SPDX-License-Identifier: GPL-2.0-only
/*
 * What Sentinel-Go's own tests of circuit breakers and of hotspot parameter flow claim (core/circuitbreaker,
 * core/hotspot, tests/core/circuitbreaker, July 2025), as traffic: its lists of rules are read as they are, and the
 * shipped BPF object evaluates packets of ours. An entry is an opening, an exit without an error a packet that talks,
 * one with an error a reset; a parameter's value is a source.
 * docs/sentinel-go.md says which of its cases have no meaning for packets.
 * (tests/unit/model_breaker_sentinel_test asks the reference model the same of breakers.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

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

static void load(struct rig *rig, cpu_set_t *ret_before, const char *list)
{
	char names[2][32];
	const char *const paths[] = {names[0], names[1]};
	int files[] = {make_file(resources, names[0]), make_file(list, names[1])};
	struct weir_diag diag = {};
	int err;

	rig_begin(rig, 512);
	weir_ruleset_free(rig->ruleset);
	rig->ruleset = NULL;
	err = weir_ruleset_read(paths, ARRAY_SIZE(paths), &rig->ruleset, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		close(files[i]);
	rig_load(rig, true);
	rig_stay(ret_before);
}

static void end(struct rig *rig, const cpu_set_t *before)
{
	rig_roam(before);
	rig_end(rig);
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
static void load_breaker(struct rig *rig, cpu_set_t *ret_before, int strategy, int min_requests, int probes)
{
	char list[320];

	snprintf(list, sizeof(list),
		 "[{\"resource\": \"calls\", \"strategy\": %d, \"threshold\": %s, \"maxAllowedRtMs\": 50, "
		 "\"statIntervalMs\": 10000, \"retryTimeoutMs\": 3000, \"minRequestAmount\": %d, \"probeNum\": %d}]",
		 strategy, strategy == 2 ? "1" : "0.5", min_requests, probes);
	load(rig, ret_before, list);
}

/* By a call that fails a millisecond after START. */
static void open_breaker(struct rig *rig)
{
	assert_true(enters(rig, START, 1));
	exits(rig, START + MS, 1, FAILS);
	assert_false(enters(rig, START + MS, 2));
	assert_false(enters(rig, RETRY - 1, 2));
}

static void closed_breaker_lets_calls_pass_and_opens_not_before_its_minimum(void **state)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		cpu_set_t before;
		struct rig rig;

		load_breaker(&rig, &before, strategy, 10, 0);
		for (int call = 1; call <= 10; call++) {
			assert_true(enters(&rig, START + call * MS, call));
			exits(&rig, START + call * MS, call, FAILS);
		}
		assert_false(enters(&rig, START + 11 * MS, 11));
		end(&rig, &before);
	}
}

static void open_breaker_lets_one_probe_pass_after_its_retry(void **state)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		cpu_set_t before;
		struct rig rig;

		load_breaker(&rig, &before, strategy, 1, 0);
		open_breaker(&rig);
		assert_true(enters(&rig, RETRY, 3));
		assert_false(enters(&rig, RETRY, 4)); /* half-open */
		end(&rig, &before);
	}
}

static void good_probe_closes_it_and_a_failed_one_opens_it_again(void **state)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		cpu_set_t before;
		struct rig rig;

		load_breaker(&rig, &before, strategy, 1, 0);
		open_breaker(&rig);
		assert_true(enters(&rig, RETRY, 3));
		exits(&rig, RETRY + 10 * MS, 3, FAILS);
		assert_false(enters(&rig, RETRY + 10 * MS, 4));
		assert_false(enters(&rig, RETRY + 10 * MS + 3 * SECOND - 1, 4));
		assert_true(enters(&rig, RETRY + 10 * MS + 3 * SECOND, 4));
		exits(&rig, RETRY + 20 * MS + 3 * SECOND, 4, !FAILS);
		for (int call = 5; call < 10; call++)
			assert_true(enters(&rig, RETRY + 20 * MS + 3 * SECOND, call));
		end(&rig, &before);
	}
}

/* The tenth; until then it is half-open, and a failed one would open it. */
static void ten_good_probes_close_a_breaker_whose_probe_num_is_ten(void **state)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		for (int good = 9; good <= 10; good++) {
			uint64_t now_ns = RETRY;
			cpu_set_t before;
			struct rig rig;

			load_breaker(&rig, &before, strategy, 100, 10);
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
			end(&rig, &before);
		}
	}
}

static void failed_probe_among_good_ones_makes_their_number_begin_anew(void **state)
{
	for (int strategy = 0; strategy < 3; strategy++) {
		const uint64_t again_ns = RETRY + 4 * MS + 3 * SECOND;
		cpu_set_t before;
		struct rig rig;

		load_breaker(&rig, &before, strategy, 1, 2);
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
		end(&rig, &before);
	}
}

/* Two breakers that one call opens: the one is soon due again, and each of its probes is blocked by the other. */
static void probe_that_another_breaker_blocks_leaves_it_open(void **state)
{
	cpu_set_t before;
	struct rig rig;

	load(&rig, &before,
	     "[{\"resource\": \"calls\", \"strategy\": 0, \"threshold\": 0.1, \"maxAllowedRtMs\": 3, "
	     "\"statIntervalMs\": 10000, \"retryTimeoutMs\": 1, \"minRequestAmount\": 0},\n"
	     " {\"resource\": \"calls\", \"strategy\": 1, \"threshold\": 0.1, "
	     "\"statIntervalMs\": 10000, \"retryTimeoutMs\": 2000000, \"minRequestAmount\": 0}]");
	assert_true(enters(&rig, START, 1));
	exits(&rig, START + 50 * MS, 1, FAILS);
	for (int call = 2; call <= 101; call++)
		assert_false(enters(&rig, START + (50 + call) * MS, call));
	assert_int_equal(rig_rule_counters(&rig, 0).blocked.packets, 0);
	assert_int_equal(rig_rule_counters(&rig, 1).blocked.packets, 100);
	end(&rig, &before);
}

/* It opens when the call has taken 3 ms, not when it exits: who waits for an answer knows by then. */
static void breaker_on_slow_calls_is_closed_by_a_quick_one(void **state)
{
	cpu_set_t before;
	struct rig rig;

	load(&rig, &before,
	     "[{\"resource\": \"calls\", \"strategy\": 0, \"threshold\": 0.1, \"maxAllowedRtMs\": 3, "
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
	end(&rig, &before);
}

/* ---- hotspot parameter flow ---- */

#define ONE "10.0.0.1"
#define OTHER "10.0.0.2"
#define BURSTING                                                                                                       \
	"\"resource\": \"values\", \"metricType\": 1, \"controlBehavior\": 0, \"threshold\": 100, \"burstCount\": 10"

static void each_value_has_the_threshold_and_the_burst_at_once(void **state)
{
	cpu_set_t before;
	struct rig rig;

	load(&rig, &before, "[{" BURSTING ", \"paramIndex\": 0, \"durationInSec\": 1}]");
	assert_int_equal(requests(&rig, START, ONE, 130), 110);
	assert_int_equal(requests(&rig, START, OTHER, 20), 20);
	end(&rig, &before);
}

/* A tenth of the duration brings a tenth of the threshold; Sentinel-Go has none until it is over. */
static void tokens_are_taken_and_come_back_with_time(void **state)
{
	cpu_set_t before;
	struct rig rig;

	load(&rig, &before, "[{" BURSTING ", \"paramKey\": \"user\", \"durationInSec\": 10}]");
	assert_int_equal(requests(&rig, START, ONE, 60), 60);
	assert_int_equal(requests(&rig, START + SECOND, ONE, 20), 20);
	assert_int_equal(requests(&rig, START + SECOND, ONE, 100), 40);
	end(&rig, &before);
}

static void bucket_is_full_again_after_the_duration_and_never_fuller(void **state)
{
	for (uint32_t used = 60; used <= 110; used += 50) {
		cpu_set_t before;
		struct rig rig;

		load(&rig, &before, "[{" BURSTING ", \"paramIndex\": 0, \"durationInSec\": 1}]");
		assert_int_equal(requests(&rig, START, ONE, used), used);
		/* The burst takes a tenth of the duration more. */
		assert_int_equal(requests(&rig, START + 1100 * MS, ONE, 200), 110);
		assert_int_equal(requests(&rig, START + 60 * SECOND, ONE, 200), 110);
		end(&rig, &before);
	}
}

/* 10 ms apart, and who would wait for longer than 10 ms is blocked. */
static void throttled_values_are_planned_apart(void **state)
{
	cpu_set_t before;
	struct rig rig;

	load(&rig, &before,
	     "[{\"resource\": \"values\", \"metricType\": 1, \"controlBehavior\": 1, \"threshold\": 100, "
	     "\"durationInSec\": 1, \"maxQueueingTimeMs\": 10}]");
	assert_int_equal(requests(&rig, START, ONE, 1), 1);
	assert_int_equal(requests(&rig, START + 201 * MS, ONE, 5), 2);
	assert_int_equal(requests(&rig, START + 201 * MS, OTHER, 5), 2);
	assert_int_equal(rig_rule_counters(&rig, 0).delayed, 2);
	assert_int_equal(rig_rule_counters(&rig, 0).delay_ns, 20 * MS);
	end(&rig, &before);
}

static void specific_items_have_a_threshold_of_their_own(void **state)
{
	cpu_set_t before;
	struct rig rig;

	load(&rig, &before,
	     "[{\"resource\": \"values\", \"metricType\": 1, \"controlBehavior\": 0, \"threshold\": 100, "
	     "\"durationInSec\": 1, \"specificItems\": {\"" ONE "\": 20}}]");
	assert_int_equal(requests(&rig, START, ONE, 200), 20);
	assert_int_equal(requests(&rig, START, OTHER, 200), 100);
	end(&rig, &before);
}

/* Calls under way at once, of each value. */
static void concurrency_is_of_each_value(void **state)
{
	uint32_t passed[2] = {};
	cpu_set_t before;
	struct rig rig;

	load(&rig, &before,
	     "[{\"resource\": \"calls\", \"metricType\": 0, \"threshold\": 50, \"paramIndex\": 0, "
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
	end(&rig, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_breaker_lets_calls_pass_and_opens_not_before_its_minimum),
		cmocka_unit_test(open_breaker_lets_one_probe_pass_after_its_retry),
		cmocka_unit_test(good_probe_closes_it_and_a_failed_one_opens_it_again),
		cmocka_unit_test(ten_good_probes_close_a_breaker_whose_probe_num_is_ten),
		cmocka_unit_test(failed_probe_among_good_ones_makes_their_number_begin_anew),
		cmocka_unit_test(probe_that_another_breaker_blocks_leaves_it_open),
		cmocka_unit_test(breaker_on_slow_calls_is_closed_by_a_quick_one),
		cmocka_unit_test(each_value_has_the_threshold_and_the_burst_at_once),
		cmocka_unit_test(tokens_are_taken_and_come_back_with_time),
		cmocka_unit_test(bucket_is_full_again_after_the_duration_and_never_fuller),
		cmocka_unit_test(throttled_values_are_planned_apart),
		cmocka_unit_test(specific_items_have_a_threshold_of_their_own),
		cmocka_unit_test(concurrency_is_of_each_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
