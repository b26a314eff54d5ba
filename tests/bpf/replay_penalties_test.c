// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims about penalties (docs/semantics.md, 11), on traffic made for each: the shipped BPF object agrees with the
 * reference model on every packet, and both with the figure that is written down.
 */
#include "../lib/harness_setup.h"
#include "base/util.h"

#define START (10 * SECOND)
#define MANY 50u

static struct weir_ruleset_rule penalising(struct weir_ruleset_rule rule, uint32_t penalty_ms, uint32_t penalty_ms_max)
{
	rule.penalty_ms = penalty_ms;
	rule.penalty_ms_max = penalty_ms_max;
	return rule;
}

/* Three packets a second from each source. */
static void start_three_a_second(struct harness *harness, struct setup *setup, uint32_t penalty_ms,
				 uint32_t penalty_ms_max)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, penalising(rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10), penalty_ms, penalty_ms_max));
	harness_start(harness, setup);
}

HARNESS_CLAIM(the_blocked_packet_starts_a_penalty_that_ends_to_the_nanosecond)
{
	start_three_a_second(harness, setup, 2500, 2500);
	assert_int_equal(harness_send(harness, HOST, START, MANY), 3);
	assert_int_equal(harness_send(harness, HOST, START + 1100 * MS, MANY), 0); /* its window is empty again */
	assert_int_equal(harness_send(harness, HOST, START + 2500 * MS - 1, MANY), 0);
	assert_int_equal(harness_send(harness, HOST, START + 2500 * MS, MANY), 3);
	assert_int_equal(harness_send(harness, HOST, START + 5000 * MS - 1, MANY), 0);
	assert_int_equal(harness_send(harness, HOST, START + 5000 * MS, 1), 1);
}

HARNESS_CLAIM(a_flow_within_its_limit_is_never_penalised)
{
	start_three_a_second(harness, setup, 60000, 60000);
	for (int i = 0; i < 20; i++)
		assert_int_equal(harness_send(harness, HOST, START + i * SECOND, 3), 3);
}

HARNESS_CLAIM(packets_of_a_penalised_flow_neither_prolong_it_nor_count)
{
	start_three_a_second(harness, setup, 2000, 2000);
	assert_int_equal(harness_send(harness, HOST, START, 4), 3);
	for (int i = 1; i < 2000; i++)
		assert_int_equal(harness_send(harness, HOST, START + i * MS, 1), 0);
	assert_int_equal(harness_send(harness, HOST, START + 2 * SECOND, 3), 3);
}

HARNESS_CLAIM(other_flows_are_evaluated_by_their_windows)
{
	start_three_a_second(harness, setup, 60000, 60000);
	assert_int_equal(harness_send(harness, HOST, START, MANY), 3);
	assert_int_equal(harness_send(harness, OTHER_HOST, START, 3), 3);
	assert_int_equal(harness_send(harness, "2001:db8::1", START, 3), 3);
	assert_int_equal(harness_send(harness, HOST, START + 30 * SECOND, MANY), 0);
	assert_int_equal(harness_send(harness, OTHER_HOST, START + 30 * SECOND, 3), 3);
	assert_int_equal(harness_send(harness, "2001:db8::1", START + 30 * SECOND, 3), 3);
}

/* A window longer than the penalty is still full when that is over: its next packet starts another. */
HARNESS_CLAIM(a_window_that_is_still_full_starts_another_penalty)
{
	harness_rule(harness, setup, penalising(rule_of("limit", WEIR_WINDOW_LEAP, 3, 10 * SECOND, 10), 300, 300));
	assert_int_equal(harness_send(harness, HOST, START, 4), 3);
	for (int i = 1; i < 90; i++)
		assert_int_equal(harness_send(harness, HOST, START + i * 100 * MS, 1), 0);
	/* At 9.9 s the 33rd had ended, and the 34th began: it holds beyond the 10 s of the window. */
	assert_int_equal(harness_send(harness, HOST, START + 9900 * MS, 1), 0);
	assert_int_equal(harness_send(harness, HOST, START + 10000 * MS, 1), 0);
	assert_int_equal(harness_send(harness, HOST, START + 10200 * MS, 1), 1);
}

/* Penalise HOST at *now_ns, and say when a packet of it passes again, in ms. */
static unsigned int penalty_of(struct harness *harness, uint64_t *now_ns)
{
	uint64_t start_ns = *now_ns, ms;

	assert_int_equal(harness_send(harness, HOST, start_ns, 4), 3);
	for (ms = 1000; harness_send(harness, HOST, start_ns + ms * MS - 1, 1) == 0; ms += 1000)
		if (harness_send(harness, HOST, start_ns + ms * MS, 1))
			break;
	*now_ns = start_ns + ms * MS;
	return ms;
}

HARNESS_CLAIM(a_penalty_soon_after_the_last_is_twice_as_long_up_to_the_longest)
{
	static const unsigned int lasts_ms[] = {1000, 2000, 4000, 7000, 7000};
	uint64_t now_ns = START;

	start_three_a_second(harness, setup, 1000, 7000);
	for (size_t i = 0; i < ARRAY_SIZE(lasts_ms); i++) {
		assert_int_equal(penalty_of(harness, &now_ns), lasts_ms[i]);
		now_ns += SECOND; /* the packet that showed the end has left the window */
	}
}

static void send_and_end(struct harness *harness, uint64_t start_ns, uint64_t lasts_ns)
{
	assert_int_equal(harness_send(harness, HOST, start_ns, 4), 3);
	assert_int_equal(harness_send(harness, HOST, start_ns + lasts_ns - 1, 1), 0);
	assert_int_equal(harness_send(harness, OTHER_HOST, start_ns + lasts_ns, 1), 1);
}

HARNESS_CLAIM(the_last_penalty_is_forgotten_as_long_after_its_end_as_it_lasted)
{
	/* at the very end of that time it is remembered ... */
	start_three_a_second(harness, setup, 2000, 60000);
	send_and_end(harness, START, 2 * SECOND);
	send_and_end(harness, START + 4 * SECOND, 4 * SECOND);
	assert_int_equal(harness_send(harness, HOST, START + 8 * SECOND, 3), 3);
	/* ... and a nanosecond later no longer */
	assert_int_equal(harness_send(harness, HOST, START + 12 * SECOND + 1, 4), 3);
	assert_int_equal(harness_send(harness, HOST, START + 14 * SECOND, 1), 0);
	assert_int_equal(harness_send(harness, HOST, START + 14 * SECOND + 1, 1), 1);
}

HARNESS_CLAIM(a_resource_without_a_key_is_penalised_as_a_whole)
{
	setup_resources(setup, 1);
	setup->resource[0].flow = (struct weir_flow){};
	setup_rule(setup, 0, penalising(rule_of("limit", WEIR_WINDOW_STRICT, 3, SECOND, 10), 5000, 20000));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 4), 3);
	assert_int_equal(harness_send(harness, OTHER_HOST, START + 5 * SECOND - 1, MANY), 0);
	assert_int_equal(harness_send(harness, OTHER_HOST, START + 5 * SECOND, 4), 3);
	assert_int_equal(harness_send(harness, HOST, START + 15 * SECOND - 1, MANY), 0);
	assert_int_equal(harness_send(harness, HOST, START + 15 * SECOND, 1), 1);
}

/* It evaluates as if enforced: what it would have dropped in a penalty is counted so, and not in its window. */
HARNESS_CLAIM(an_observing_rule_counts_what_a_penalty_would_drop)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, penalising(rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10), 2000, 2000));
	setup->rule[0].observes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 4), 4);
	assert_int_equal(model_would_drop(harness->model, 0), 1);
	assert_int_equal(harness_send(harness, HOST, START + 1500 * MS, 10), 10);
	assert_int_equal(model_would_drop(harness->model, 0), 11);
	assert_int_equal(harness_send(harness, HOST, START + 2000 * MS, 3), 3);
	assert_int_equal(model_would_drop(harness->model, 0), 11);
}

/* The flow is that of the rule's own resource; the window is the other resource's. */
HARNESS_CLAIM(an_associated_rule_penalises_flows_of_its_own_resource)
{
	setup_ports(setup);
	setup_rule(setup, 0, penalising(associated(rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10), 1), 4000, 4000));
	harness_start(harness, setup);
	assert_int_equal(harness_send_to(harness, HOST, 54, START, 3), 3);
	assert_int_equal(harness_send_to(harness, HOST, 53, START, 1), 0);
	assert_int_equal(harness_send_to(harness, HOST, 54, START + 2 * SECOND, MANY), MANY);
	assert_int_equal(harness_send_to(harness, HOST, 53, START + 4 * SECOND - 1, 1), 0);
	assert_int_equal(harness_send_to(harness, HOST, 53, START + 4 * SECOND, 1), 1);
}

/* A frame has 60 bytes, so two fit; small or large, a penalised flow sends nothing. */
HARNESS_CLAIM(a_limit_in_bytes_penalises_all_packets_of_the_flow)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, penalising(rule_of("limit", WEIR_WINDOW_SMOOTH, 130, SECOND, 10), 3000, 3000));
	setup->rule[0].counts_bytes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, 3), 2);
	assert_int_equal(harness_send(harness, HOST, START + 3 * SECOND - 1, 1), 0);
	assert_int_equal(harness_send(harness, HOST, START + 3 * SECOND, 3), 2);
}

/* A packet that an earlier rule has blocked never comes to the one that penalises. */
HARNESS_CLAIM(what_an_earlier_rule_blocks_starts_no_penalty)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("first", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	setup_rule(setup, 0, penalising(rule_of("second", WEIR_WINDOW_LEAP, 3, 10 * SECOND, 10), 60000, 60000));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, START, MANY), 2);
	assert_int_equal(harness_send(harness, HOST, START + 2 * SECOND, 1), 1);
	/* the second's window is full now: it blocks first */
	assert_int_equal(harness_send(harness, HOST, START + 4 * SECOND, 1), 0);
	assert_int_equal(harness_send(harness, HOST, START + 64 * SECOND - 1, 1), 0);
	assert_int_equal(harness_send(harness, HOST, START + 64 * SECOND, MANY), 2);
}

HARNESS_CLAIM(a_clock_that_goes_back_ends_no_penalty)
{
	start_three_a_second(harness, setup, 2000, 2000);
	assert_int_equal(harness_send(harness, HOST, START, 5), 3);
	assert_int_equal(harness_send(harness, HOST, START - 5 * SECOND, MANY), 0);
	assert_int_equal(harness_send(harness, HOST, START + 2 * SECOND, 4), 3);
	assert_int_equal(harness_send(harness, HOST, START + SECOND, MANY), 0);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
