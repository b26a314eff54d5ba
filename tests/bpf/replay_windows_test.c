// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims about windows, clocks and counters, each on traffic made for it: the shipped BPF object agrees with the
 * reference model on every packet, and both with the figure that is written down.
 */
#include "../lib/harness_setup.h"
#include "base/util.h"

HARNESS_CLAIM(leap_admits_twice_the_threshold_in_its_worst_phase)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_LEAP, 100, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 100 * MS - 1, 150), 100);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND - 1, 10), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 150),
			 100); /* the bucket has left, the interval is not over */
}

HARNESS_CLAIM(strict_counts_a_bucket_until_all_of_it_is_an_interval_old)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_STRICT, 100, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 150), 100);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 10), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 100 * MS - 1, 10), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 100 * MS, 150), 100);
}

HARNESS_CLAIM(strict_never_holds_more_than_the_threshold_in_any_interval)
{
	static uint64_t passed_ns[20000];
	struct random random = {7};
	size_t count = 0, oldest = 0;
	uint64_t now_ns = SECOND;

	harness_one_rule(harness, setup, WEIR_WINDOW_STRICT, 20, 100 * MS, 10);
	for (int i = 0; i < 20000; i++) {
		now_ns += random_below(&random, random_percent(&random, 1) ? 150 * MS : 2 * MS);
		if (!harness_send(harness, HOST, now_ns, 1))
			continue;
		passed_ns[count++] = now_ns;
		while (passed_ns[oldest] + 100 * MS <= now_ns)
			oldest++;
		assert_true(count - oldest <= 20);
	}
	assert_true(count > 1000);
}

HARNESS_CLAIM(smooth_rounds_the_oldest_share_up)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_SMOOTH, 10, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 10), 10);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 1), 0);
	/* ten units leave one by one, each when a tenth of the bucket has, to the nanosecond */
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 10 * MS - 1, 2), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 10 * MS, 2), 1);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 20 * MS - 1, 2), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 95 * MS, 20), 8);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 100 * MS, 20), 1);
}

HARNESS_CLAIM(smooth_at_a_threshold_of_one_is_strict)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_SMOOTH, 1, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 2), 1);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 100 * MS - 1, 2), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 100 * MS, 2), 1);
}

HARNESS_CLAIM(one_sample_is_the_fixed_window)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_LEAP, 5, SECOND, 1);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND - 1, 10), 5);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 10), 5);
	assert_int_equal(harness_send(harness, HOST, 7 * SECOND - 1, 1), 0);
}

HARNESS_CLAIM(fractions_of_a_threshold_admit_nothing)
{
	static const struct {
		double threshold;
		unsigned int passed;
	} cases[] = {{0, 0}, {0.5, 0}, {0.999999, 0}, {1, 1}, {2.9, 2}, {3, 3}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		harness_one_rule(harness, setup, WEIR_WINDOW_LEAP, cases[i].threshold, SECOND, 10);
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 10), cases[i].passed);
		harness_finish(harness);
	}
}

HARNESS_CLAIM(each_flow_has_a_window_of_its_own)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_LEAP, 5, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 10), 5);
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND, 10), 5);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 10), 0);
}

HARNESS_CLAIM(a_packet_that_any_rule_blocks_is_counted_by_none)
{
	/* The same packets meet a wide limit first and a narrow one second, of another resource. */
	setup_resources(setup, 2);
	setup->resource[1].flow = (struct weir_flow){};
	setup_rule(setup, 0, rule_of("each-host", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	setup_rule(setup, 1, rule_of("all-hosts", WEIR_WINDOW_LEAP, 8, 100 * MS, 1));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 100), 8);
	/* 92 packets were blocked by the second rule; had the first counted them, it would block all now */
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 100 * MS, 100), 2);
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND + 100 * MS, 100), 6);
}

HARNESS_CLAIM(the_first_enforced_rule_that_blocks_names_the_drop)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 18);

	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("watched", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	setup->rule[0].observes = true;
	setup_rule(setup, 0, rule_of("open", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	setup_rule(setup, 0, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	harness_start(harness, setup);
	assert_true(harness_evaluate(harness, &spec));
	assert_string_equal(harness->last.rule, "shut");
}

HARNESS_CLAIM(an_observing_rule_counts_what_it_would_admit_only)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_LEAP, 5, SECOND, 10);
	harness_finish(harness);
	setup->rule[0].observes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 20), 20);
	assert_int_equal(model_would_drop(harness->model, 0), 15);
	/* had the fifteen been counted, or the five not, it would drop others now */
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND - 1, 1), 1);
	assert_int_equal(model_would_drop(harness->model, 0), 16);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 7), 7);
	assert_int_equal(model_would_drop(harness->model, 0), 18);
}

HARNESS_CLAIM(a_byte_limit_below_the_frame_never_admits_it)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 58); /* 100 bytes */

	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("bytes", WEIR_WINDOW_LEAP, 299.5, SECOND, 10));
	setup->rule[0].counts_bytes = true;
	harness_start(harness, setup);
	for (int i = 0; i < 3; i++) {
		spec.time_ns = (5 + i) * SECOND;
		spec.payload_bytes = 258; /* 300 bytes */
		assert_int_equal(harness_verdict(harness, &spec), WEIR_VERDICT_BLOCK);
		spec.payload_bytes = 158;
		assert_int_equal(harness_verdict(harness, &spec), WEIR_VERDICT_PASS);
		assert_int_equal(harness_verdict(harness, &spec), WEIR_VERDICT_BLOCK);
		spec.payload_bytes = 57; /* what is left, exactly */
		assert_int_equal(harness_verdict(harness, &spec), WEIR_VERDICT_PASS);
	}
}

HARNESS_CLAIM(a_jumbo_frame_counts_all_its_bytes)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 9014 - 42);

	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("bytes", WEIR_WINDOW_LEAP, 9014, SECOND, 10));
	setup->rule[0].counts_bytes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_verdict(harness, &spec), WEIR_VERDICT_PASS);
	assert_int_equal(harness_verdict(harness, &spec), WEIR_VERDICT_BLOCK);
}

/* The longest header chain puts the ports 16 KB into the frame, far beyond its first buffer. */
HARNESS_CLAIM(headers_are_read_beyond_the_first_buffer)
{
	struct packet_spec spec = packet_udp("2001:db8::1", 1024, "2001:db8::53", 53, 18);
	struct weir_range port = {53, 53};

	for (int i = 0; i < 8; i++)
		spec.extension[i] = (struct packet_extension){.protocol = 60, .units = 255};
	setup_resources(setup, 1);
	setup->resource[0].match.destination_port = &port;
	setup->resource[0].match.destination_port_count = 1;
	setup_rule(setup, 0, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	harness_start(harness, setup);
	for (spec.extension_count = 0; spec.extension_count <= 8; spec.extension_count++) {
		assert_int_equal(harness_verdict(harness, &spec), WEIR_VERDICT_BLOCK);
	}
}

HARNESS_CLAIM(a_clock_that_steps_back_within_the_ring_counts_newer_buckets)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_LEAP, 10, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 500 * MS, 6), 6);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 200 * MS, 10), 4);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 500 * MS, 1), 0);
	/* the four were counted in their own bucket, and leave with it */
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 200 * MS - 1, 10), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 200 * MS, 10), 4);
}

HARNESS_CLAIM(a_clock_that_steps_back_beyond_the_ring_is_the_newest_bucket)
{
	harness_one_rule(harness, setup, WEIR_WINDOW_LEAP, 10, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 50 * SECOND, 6), 6);
	assert_int_equal(harness_send(harness, HOST, 49 * SECOND + 99 * MS, 10), 4);
	assert_int_equal(harness_send(harness, HOST, 3 * SECOND, 1), 0);
	assert_int_equal(harness_send(harness, HOST, 51 * SECOND - 1, 1), 0);
	assert_int_equal(harness_send(harness, HOST, 51 * SECOND, 20), 10);
}

/* A packet that a later rule blocks was evaluated against the first all the same, whose ring has then moved on. */
HARNESS_CLAIM(a_blocked_packet_makes_its_bucket_known_but_not_counted)
{
	struct packet_spec other_port = packet_udp(HOST, 1024, "192.0.2.53", 99, 18);
	struct weir_range port = {99, 99};

	setup_resources(setup, 2);
	setup->resource[1].match.destination_port = &port;
	setup->resource[1].match.destination_port_count = 1;
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	setup_rule(setup, 1, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 3), 2);
	other_port.time_ns = 6 * SECOND;
	assert_true(harness_evaluate(harness, &other_port));
	assert_string_equal(harness->last.rule, "shut");
	/* the bucket of 5.0 s is not in the ring that ends with that of 6.0 s; nothing else is either */
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 500 * MS, 3), 2);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 3), 0);
}

/* 4,096 flows, as many others once those have expired, and at the time of the first the first again. */
HARNESS_CLAIM(an_expired_flow_counts_again_when_the_clock_goes_back)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1024, "192.0.2.53", 53, 18);

	setup_resources(setup, 1);
	setup->ruleset.settings.flows_per_cpu = 4 * 2 * 4096; /* as roomy as replay makes it */
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 1, 100 * MS, 1));
	harness_start(harness, setup);
	for (uint32_t i = 0; i < 3 * 4096; i++) {
		spec.time_ns = i / 4096 == 1 ? 2 * SECOND : SECOND;
		spec.source[1] = i / 4096 == 1;
		spec.source[2] = i % 4096 >> 8;
		spec.source[3] = i;
		assert_int_equal(harness_verdict(harness, &spec),
				 i / 4096 == 2 ? WEIR_VERDICT_BLOCK : WEIR_VERDICT_PASS);
	}
}

HARNESS_CLAIM(a_long_silence_forgets_everything)
{
	for (int i = WEIR_WINDOW_LEAP; i <= WEIR_WINDOW_SMOOTH; i++) {
		harness_one_rule(harness, setup, i, 10, 10 * MS, 10);
		assert_int_equal(harness_send(harness, HOST, 0, 20), 10);
		assert_int_equal(harness_send(harness, HOST, 3599 * SECOND, 20), 10);
		harness_finish(harness);
	}
}

HARNESS_CLAIM(resources_are_named_in_the_order_of_their_definition)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 18);

	setup_resources(setup, 3);
	setup->resource[1].match.families = 2; /* does not match */
	setup_rule(setup, 2, rule_of("third", WEIR_WINDOW_LEAP, 1, SECOND, 10));
	setup_rule(setup, 0, rule_of("first", WEIR_WINDOW_LEAP, 1, SECOND, 10));
	harness_start(harness, setup);
	assert_true(harness_evaluate(harness, &spec));
	assert_int_equal(harness->last.resource_count, 2);
	assert_int_equal(harness->last.resource[0], 0);
	assert_int_equal(harness->last.resource[1], 2);
	assert_true(harness_evaluate(harness, &spec));
	assert_string_equal(harness->last.rule, "third");
}

/* Of a whole frame every prefix is a frame too; so is each with one byte of its headers changed. */
HARNESS_CLAIM(every_frame_ends_in_exactly_one_verdict)
{
	struct packet_spec spec = packet_udp("2001:db8::1", 1024, "2001:db8::53", 53, 18);

	spec.tag_count = 1;
	spec.tag[0] = (struct packet_tag){ETHERTYPE_VLAN, 100};
	spec.extension_count = 3;
	spec.extension[0].protocol = 0;
	spec.extension[1].protocol = 44;
	spec.extension[2].protocol = 51;
	harness_rule(harness, setup, rule_of("limit", WEIR_WINDOW_LEAP, 100, SECOND, 10));
	for (uint32_t i = 14; i < 130; i++) {
		spec.cut_bytes = i;
		assert_true(harness_evaluate(harness, &spec));
	}
	spec.cut_bytes = 0;
	spec.damage_count = 1;
	for (uint32_t i = 0; i < 130 * 16; i++) {
		spec.damage[0] = (struct packet_damage){.offset = i / 16, .value = 1 << i % 16 | i % 16};
		assert_true(harness_evaluate(harness, &spec));
	}
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
