// SPDX-License-Identifier: GPL-2.0-only
/*
 * A flow that is blocked twice in a row is remembered, and its next packets are blocked without looking for its row
 * (weir_is_of_offender). Jiffies tell until when: so these tests run by the real clock, on one CPU, with buckets that
 * are long beside what they do. What must not happen is that a packet is taken for the offender's which is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <time.h>

#include "../../bpf/work.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "host.h"
#include "util.h"

#define PORT 53
#define OTHER_PORT 123
#define LIMIT 3u
#define ENOUGH 10u /* packets to be remembered by */

static bool passes(const struct rig *rig, const struct packet_spec *spec)
{
	static uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(spec, frame));

	assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options), 0);
	return options.retval == XDP_PASS;
}

static unsigned int passed_of(const struct rig *rig, const char *source, uint16_t port, unsigned int count)
{
	const char *destination = strchr(source, ':') ? "2001:db8:1::1" : "198.51.100.1";
	struct packet_spec spec = packet_udp(source, 1024, destination, port, 18);
	unsigned int passed = 0;

	for (unsigned int i = 0; i < count; i++)
		passed += passes(rig, &spec);
	return passed;
}

/* The interval is one bucket of an hour, of which there is enough left. */
static struct weir_ruleset_rule *add_limit(struct rig *rig, uint16_t port)
{
	return rig_rule(rig, rig_resource(rig, port, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT, 3600 * SECOND, 1);
}

static void begin(struct rig *rig, cpu_set_t *ret_before)
{
	rig_begin(rig, 16384);
	rig_stay(ret_before);
	while (weir_host_now_ns() % (3600 * SECOND) > 3590 * SECOND)
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}

static void end(struct rig *rig, const cpu_set_t *before)
{
	rig_end(rig);
	rig_roam(before);
}

static void every_packet_of_an_offender_is_blocked_and_counted(void **state)
{
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	add_limit(&rig, PORT);
	rig_load(&rig, false);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, 1000), LIMIT);
	assert_int_equal(rig_rule_counters(&rig, 0).blocked.packets, 1000 - LIMIT);
	assert_int_equal(rig_passed(&rig, 0), LIMIT);
	end(&rig, &before);
}

/* Two resources, the first of which blocks; and frames of one length. */
static void what_is_dropped_of_an_offender_counts_in_every_total(void **state)
{
	const uint64_t dropped = 1000 - LIMIT, frame_bytes = 60;
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	add_limit(&rig, PORT);
	rig_resource(&rig, PORT, 0);
	rig_load(&rig, false);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, 1000), LIMIT);
	assert_int_equal(rig_verdicts(&rig, WEIR_VERDICT_COUNT).packets, 1000);
	assert_int_equal(rig_verdicts(&rig, WEIR_VERDICT_BLOCK).packets, dropped);
	assert_int_equal(rig_verdicts(&rig, WEIR_VERDICT_BLOCK).bytes, dropped * frame_bytes);
	assert_int_equal(rig_rule_counters(&rig, 0).blocked.bytes, dropped * frame_bytes);
	for (size_t resource = 0; resource < 2; resource++) {
		struct rig_resource_counters counters = rig_resource_counters(&rig, resource);

		assert_int_equal(counters.passed.packets, LIMIT);
		assert_int_equal(counters.blocked.packets, dropped);
		assert_int_equal(counters.blocked.bytes, dropped * frame_bytes);
		assert_int_equal(counters.blocked_by_second, dropped);
	}
	end(&rig, &before);
}

static void other_sources_are_not_taken_for_the_offender(void **state)
{
	static const char *const offenders[] = {"192.0.2.1", "2001:db8::1"};
	static const char *const others[] = {"192.0.2.2",     "192.0.3.1",   "193.0.2.1",
					     "c000:201::",    "2001:db8::2", "2001:db8:0:1::1",
					     "2001:db8:1::1", "2001:db9::1", "2001:db8::1:0:1"};
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	add_limit(&rig, PORT);
	rig_load(&rig, false);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		for (size_t offender = 0; offender < ARRAY_SIZE(offenders); offender++) {
			assert_int_equal(passed_of(&rig, offenders[offender], PORT, ENOUGH), i == 0 ? LIMIT : 0);
			/* One packet: the other is not to be the offender. */
			assert_int_equal(passed_of(&rig, others[i], PORT, 1), 1);
		}
	}
	end(&rig, &before);
}

static void whole_subnet_is_the_offender_where_the_key_is_one(void **state)
{
	struct weir_ruleset_resource *resource;
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	add_limit(&rig, PORT);
	resource = &rig.ruleset->resources[0];
	resource->flow.source_bits[0] = 24;
	resource->flow.source_bits[1] = 56;
	rig_load(&rig, false);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&rig, "192.0.2.200", PORT, ENOUGH), 0);
	assert_int_equal(passed_of(&rig, "192.0.3.200", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&rig, "2001:db8::1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&rig, "2001:db8:0:ff:1::2", PORT, ENOUGH), 0);
	assert_int_equal(passed_of(&rig, "2001:db8:0:100::1", PORT, ENOUGH), LIMIT);
	end(&rig, &before);
}

static void offender_of_one_resource_has_its_limit_at_another(void **state)
{
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	add_limit(&rig, PORT);
	add_limit(&rig, OTHER_PORT);
	rig_load(&rig, false);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&rig, "192.0.2.1", OTHER_PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT + 1, ENOUGH), ENOUGH);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, ENOUGH), 0);
	end(&rig, &before);
}

/* The key has the destination, too: the source alone names no flow. */
static void offender_under_a_longer_key_is_that_flow_alone(void **state)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.2", PORT, 18);
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION), WEIR_WINDOW_LEAP, LIMIT,
		 3600 * SECOND, 1);
	rig_load(&rig, false);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, ENOUGH), LIMIT);
	for (unsigned int i = 0; i < ENOUGH; i++)
		assert_int_equal(passes(&rig, &spec), i < LIMIT);
	end(&rig, &before);
}

static void offender_of_a_rule_that_observes_passes_and_is_counted(void **state)
{
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	add_limit(&rig, PORT)->observes = true;
	rig_load(&rig, false);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, 1000), 1000);
	assert_int_equal(rig_rule_counters(&rig, 0).would_drop.packets, 1000 - LIMIT);
	end(&rig, &before);
}

#define SHORT_NS (100 * MS)
#define SHORT_BUCKETS 12
#define CLOCK_SLACK_NS 1000 /* between two readers of one clock */

struct short_bucket {
	uint64_t number;
	unsigned int passed, fair; /* fair: begun and judged in this bucket, by jiffies too */
	bool is_sure;		   /* what passed is known */
};

/* Jiffies are in this bucket, too: on a stalled machine they come late, and who is known to be full until then is. */
static bool jiffies_are_in(uint64_t bucket)
{
	struct timespec tick;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
	return (tick.tv_sec * SECOND + tick.tv_nsec) / SHORT_NS == bucket;
}

/* A packet at the edge of *bucket, or behind it. One that passed at the edge of a full bucket counts behind it. */
static struct short_bucket next_bucket(const struct short_bucket *bucket, uint64_t number, bool has_passed)
{
	bool is_next = bucket->is_sure && bucket->passed == LIMIT && number == bucket->number + 1;

	return (struct short_bucket){.number = number, .passed = has_passed, .is_sure = !has_passed || is_next};
}

/* Buckets in which this CPU did not get to send its limit do not count. */
static void offender_has_its_limit_again_when_the_bucket_is_over(void **state)
{
	struct short_bucket bucket = {};
	unsigned int measured = 0;
	uint64_t deadline_ns;
	struct rig rig = {};
	cpu_set_t before;

	begin(&rig, &before);
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT, SHORT_NS, 1);
	rig_load(&rig, false);
	deadline_ns = weir_host_now_ns() + 60 * SECOND;
	while (measured < SHORT_BUCKETS && weir_host_now_ns() < deadline_ns) {
		bool is_fair = jiffies_are_in(bucket.number) &&
			       (weir_host_now_ns() - CLOCK_SLACK_NS) / SHORT_NS == bucket.number;
		bool has_passed = passed_of(&rig, "192.0.2.1", PORT, 1);
		uint64_t number = (weir_host_now_ns() + CLOCK_SLACK_NS) / SHORT_NS;

		if (number == bucket.number) {
			bucket.passed += has_passed;
			bucket.fair += is_fair;
			continue;
		}
		if (bucket.is_sure && bucket.fair >= LIMIT) {
			assert_int_equal(bucket.passed, LIMIT);
			measured++;
		}
		bucket = next_bucket(&bucket, number, has_passed);
	}
	assert_int_equal(measured, SHORT_BUCKETS);
	end(&rig, &before);
}

static void offender_is_forgotten_by_the_next_load(void **state)
{
	struct rig old = {}, new = {};
	cpu_set_t before;

	begin(&old, &before);
	add_limit(&old, PORT);
	rig_load(&old, false);
	rig_begin(&new, 16384);
	new.before = &old;
	add_limit(&new, PORT);
	rig_load(&new, false);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, ENOUGH), LIMIT);
	/* Its tables are its own here: nobody is full in them. */
	assert_int_equal(passed_of(&new, "192.0.2.1", PORT, ENOUGH), LIMIT);
	rig_end(&new);
	end(&old, &before);
}

/* Rules whose rows were fetched for the packet before, at once and ahead of all judging; on this CPU. */
static unsigned int fetched(const struct rig *rig)
{
	_cleanup_(weir_freep) struct weir_totals *totals = calloc(weir_host_cpus(), sizeof(*totals));
	int fd = weir_object_map_fd(rig->object, WEIR_MAP_TOTALS);
	__u32 zero = 0;

	assert_non_null(totals);
	assert_int_equal(bpf_map_lookup_elem(fd, &zero, totals), 0);
	return ((const struct weir_work *)totals[sched_getcpu()].program_private)->placed;
}

/* Else whoever floods makes each of his packets cost several times as much, by one that passes in between. */
static void rows_of_further_rules_are_not_fetched_for_an_offender(void **state)
{
	struct rig rig = {};
	cpu_set_t before;
	size_t resource;

	begin(&rig, &before);
	resource = rig_resource(&rig, PORT, WEIR_KEY_SOURCE);
	for (int rule = 0; rule < 4; rule++)
		rig_rule(&rig, resource, WEIR_WINDOW_LEAP, LIMIT, 3600 * SECOND, 1);
	rig_load(&rig, false);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, ENOUGH), LIMIT);
	assert_int_equal(passed_of(&rig, "192.0.2.2", PORT, 1), 1);
	assert_int_equal(passed_of(&rig, "192.0.2.1", PORT, 1), 0);
	assert_int_equal(fetched(&rig), 0);
	/* ... while they are for the next of those that pass. */
	assert_int_equal(passed_of(&rig, "192.0.2.2", PORT, 1), 1);
	assert_int_equal(fetched(&rig), 4);
	end(&rig, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_of_an_offender_is_blocked_and_counted),
		cmocka_unit_test(what_is_dropped_of_an_offender_counts_in_every_total),
		cmocka_unit_test(other_sources_are_not_taken_for_the_offender),
		cmocka_unit_test(whole_subnet_is_the_offender_where_the_key_is_one),
		cmocka_unit_test(offender_of_one_resource_has_its_limit_at_another),
		cmocka_unit_test(offender_under_a_longer_key_is_that_flow_alone),
		cmocka_unit_test(offender_of_a_rule_that_observes_passes_and_is_counted),
		cmocka_unit_test(offender_has_its_limit_again_when_the_bucket_is_over),
		cmocka_unit_test(offender_is_forgotten_by_the_next_load),
		cmocka_unit_test(rows_of_further_rules_are_not_fetched_for_an_offender),
	};

	return cmocka_run_group_tests_name("offender", tests, NULL, NULL);
}
