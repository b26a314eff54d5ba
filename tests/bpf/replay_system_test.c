// SPDX-License-Identifier: GPL-2.0-only
/*
 * System rules in the shipped BPF object: claims with figures at the edges of what each goes by, every packet evaluated
 * by the reference model as well; then random rules and traffic, with samples of load and CPU usage.
 */
#include <linux/in.h>
#include <string.h>

#include "../lib/harness_rounds.h"
#include "../lib/harness_setup.h"
#include "base/util.h"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

/* ---- rule sets and packets ---- */

static struct weir_ruleset_rule system_of(enum weir_system_metric metric, double trigger)
{
	static char *const names[WEIR_SYSTEM_COUNT] = {"", "load", "rt", "open", "inbound", "cpu"};
	struct weir_ruleset_rule rule = rule_of(names[metric], WEIR_WINDOW_LEAP, trigger, SECOND, 2);

	rule.ref_resource = WEIR_NO_RESOURCE;
	rule.system = metric;
	rule.metric = metric == WEIR_SYSTEM_INBOUND_QPS	  ? WEIR_METRIC_RATE
		      : metric == WEIR_SYSTEM_CONCURRENCY ? WEIR_METRIC_CONCURRENCY
							  : WEIR_METRIC_SIGNAL;
	return rule;
}

static struct weir_ruleset_rule bbr(struct weir_ruleset_rule rule)
{
	rule.is_bbr = true;
	return rule;
}

/* A resource that takes every packet, and has no rule of its own. */
static void setup_host(struct setup *setup)
{
	static const uint64_t timeouts_ms[WEIR_CONNECTION_CLASSES] = {10000, 600000, 120000, 10000};

	setup_resources(setup, 1);
	setup->ruleset.settings.connections = 4096;
	setup->ruleset.settings.connection_flows = 1024;
	memcpy(setup->ruleset.settings.connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
}

static void add_system_rule(struct setup *setup, struct weir_ruleset_rule rule)
{
	setup_rule(setup, WEIR_NO_RESOURCE, rule);
}

static void harness_one_system_rule(struct harness *harness, struct setup *setup, struct weir_ruleset_rule rule)
{
	setup_host(setup);
	add_system_rule(setup, rule);
	harness_start(harness, setup);
}

/* One TCP packet of connection number `port`. Returns whether it passed. */
static bool send_tcp(struct harness *harness, uint16_t port, uint8_t flags, uint64_t time_ns)
{
	struct packet_spec spec = packet_udp(HOST, port, "192.0.2.53", 80, 0);

	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	spec.time_ns = time_ns;
	return harness_verdict(harness, &spec) == WEIR_VERDICT_PASS;
}

/* A handshake from `time_ns` that takes so long. */
static void shake_hands(struct harness *harness, uint16_t port, uint64_t time_ns, uint64_t took_ns)
{
	assert_true(send_tcp(harness, port, SYN, time_ns));
	assert_true(send_tcp(harness, port, ACK, time_ns + took_ns));
}

static void assert_dropped_by(const struct harness *harness, const char *rule)
{
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_BLOCK);
	assert_string_equal(harness->last.rule, rule);
}

/* ---- what is inbound work ---- */

HARNESS_CLAIM(inbound_work_is_openings_and_other_protocols)
{
	struct packet_spec fragment = packet_udp(HOST, 1, "192.0.2.53", 80, 64);

	harness_one_system_rule(harness, setup, system_of(WEIR_SYSTEM_INBOUND_QPS, 0));
	assert_false(send_tcp(harness, 1, SYN, 5 * SECOND));
	assert_dropped_by(harness, "inbound");
	assert_int_equal(harness->last.resource_count, 1);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 1), 0);
	assert_false(send_tcp(harness, 1, SYN | 0x08 | 0xc0, 5 * SECOND)); /* other flags make no difference */
	assert_true(send_tcp(harness, 1, SYN | ACK, 5 * SECOND));
	assert_true(send_tcp(harness, 1, ACK, 5 * SECOND));
	assert_true(send_tcp(harness, 1, SYN | FIN, 5 * SECOND));
	assert_true(send_tcp(harness, 1, SYN | RST, 5 * SECOND));
	assert_true(send_tcp(harness, 1, 0, 5 * SECOND));
	/* a later fragment of TCP opens nothing, one of UDP is work */
	fragment.protocol = IPPROTO_TCP;
	fragment.fragment_units = 8;
	fragment.time_ns = 5 * SECOND;
	assert_int_equal(harness_verdict(harness, &fragment), WEIR_VERDICT_PASS);
	fragment.protocol = IPPROTO_UDP;
	assert_true(harness_evaluate(harness, &fragment));
	assert_dropped_by(harness, "inbound");
}

/* The same fields that matches ask for, and other flags: what the packet before met is not taken over. */
HARNESS_CLAIM(packets_with_other_flags_meet_other_rules)
{
	setup_host(setup);
	add_system_rule(setup, system_of(WEIR_SYSTEM_INBOUND_QPS, 0));
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10));
	harness_start(harness, setup);
	for (int i = 0; i < 4; i++) {
		assert_false(send_tcp(harness, 1, SYN, 5 * SECOND));
		assert_dropped_by(harness, "inbound");
		assert_int_equal(send_tcp(harness, 1, ACK, 5 * SECOND), i < 3);
	}
	assert_dropped_by(harness, "limit");
}

HARNESS_CLAIM(packets_of_no_resource_and_allowed_sources_are_not_asked)
{
	static struct weir_listed allowed = {.prefix = {4, 32, {192, 0, 2, 2}}};

	setup_ports(setup);
	setup->ruleset.listed = &allowed;
	setup->ruleset.listed_count = 1;
	add_system_rule(setup, system_of(WEIR_SYSTEM_INBOUND_QPS, 2));
	harness_start(harness, setup);
	harness_send_to(harness, HOST, 56, 5 * SECOND, 5);
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_UNMATCHED_PASS);
	harness_send_to(harness, OTHER_HOST, 53, 5 * SECOND, 5);
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_ALLOW);
	/* of all resources together; one that belongs to two counts once */
	assert_int_equal(harness_send_to(harness, HOST, 53, 5 * SECOND, 1), 1);
	assert_int_equal(harness_send_to(harness, HOST, 55, 5 * SECOND, 1), 1);
	assert_int_equal(harness_send_to(harness, HOST, 54, 5 * SECOND, 1), 0);
}

/* ---- InboundQPS ---- */

HARNESS_CLAIM(inbound_work_counts_in_two_buckets_of_half_a_second)
{
	static const struct {
		double trigger;
		unsigned int admitted;
	} cases[] = {{0, 0}, {0.5, 1}, {1, 1}, {2.9, 3}, {100, 100}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		harness_one_system_rule(harness, setup, system_of(WEIR_SYSTEM_INBOUND_QPS, cases[i].trigger));
		/* at the end of a bucket, so that the window looks back over little more than half a second */
		assert_int_equal(harness_send(harness, HOST, 6 * SECOND - 1, 150), cases[i].admitted);
		assert_int_equal(harness_send(harness, OTHER_HOST, 6 * SECOND + SECOND / 2 - 1, 150), 0);
		assert_int_equal(harness_send(harness, OTHER_HOST, 6 * SECOND + SECOND / 2, 150), cases[i].admitted);
		harness_finish(harness);
	}
}

HARNESS_CLAIM(what_another_rule_drops_is_no_inbound_work)
{
	setup_host(setup);
	add_system_rule(setup, system_of(WEIR_SYSTEM_INBOUND_QPS, 5));
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 20), 2);
	assert_dropped_by(harness, "limit");
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND, 20), 2);
	assert_int_equal(harness_send(harness, "192.0.2.3", 5 * SECOND, 20), 1);
	assert_dropped_by(harness, "inbound"); /* it comes first */
}

HARNESS_CLAIM(an_observing_rule_goes_by_what_it_would_have_let_pass)
{
	setup_host(setup);
	add_system_rule(setup, system_of(WEIR_SYSTEM_INBOUND_QPS, 5));
	add_system_rule(setup, system_of(WEIR_SYSTEM_INBOUND_QPS, 8));
	setup->rule[0].observes = true;
	setup->rule[1].name = "enforced";
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 20), 8);
	assert_dropped_by(harness, "enforced");
	assert_int_equal(model_would_drop(harness->model, 0), 15);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 4), 4);
	assert_int_equal(model_would_drop(harness->model, 0), 15);
}

/* ---- Concurrency ---- */

HARNESS_CLAIM(openings_are_dropped_while_so_many_connections_are_open)
{
	harness_one_system_rule(harness, setup, system_of(WEIR_SYSTEM_CONCURRENCY, 1.5));
	assert_true(send_tcp(harness, 1, SYN, 5 * SECOND));
	assert_true(send_tcp(harness, 2, SYN, 5 * SECOND));
	assert_false(send_tcp(harness, 3, SYN, 5 * SECOND));
	assert_dropped_by(harness, "open");
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 3), 3); /* other protocols and open connections pass */
	assert_true(send_tcp(harness, 2, ACK, 5 * SECOND));
	assert_true(send_tcp(harness, 1, SYN, 5 * SECOND)); /* repeated: it counts already */
	assert_true(send_tcp(harness, 2, FIN | ACK, 6 * SECOND));
	assert_true(send_tcp(harness, 3, SYN, 6 * SECOND));
	assert_false(send_tcp(harness, 4, SYN, 6 * SECOND));
}

/* ---- AvgRT ---- */

HARNESS_CLAIM(openings_are_dropped_while_handshakes_take_so_long)
{
	harness_one_system_rule(harness, setup, system_of(WEIR_SYSTEM_AVG_RT, 50));
	assert_true(send_tcp(harness, 100, SYN, 5 * SECOND)); /* nothing was timed yet */
	shake_hands(harness, 1, 5 * SECOND, 40 * MS);
	shake_hands(harness, 2, 5 * SECOND + 50 * MS, 60 * MS - 1000);
	assert_true(send_tcp(harness, 3, SYN, 5 * SECOND + 200 * MS)); /* 49.9995 ms */
	assert_true(send_tcp(harness, 3, ACK, 5 * SECOND + 250 * MS + 1000));
	/* exactly 50 ms: openings are dropped, and nothing else */
	assert_false(send_tcp(harness, 4, SYN, 5 * SECOND + 300 * MS));
	assert_dropped_by(harness, "rt");
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 300 * MS, 5), 5);
	assert_true(send_tcp(harness, 3, ACK, 5 * SECOND + 300 * MS));
	/* until the half second that they were timed in, and the next, are over */
	assert_false(send_tcp(harness, 4, SYN, 6 * SECOND - 1));
	assert_true(send_tcp(harness, 4, SYN, 6 * SECOND));
}

HARNESS_CLAIM(a_mean_of_none_admits)
{
	harness_one_system_rule(harness, setup, system_of(WEIR_SYSTEM_AVG_RT, 0));
	shake_hands(harness, 1, 5 * SECOND, 0);
	assert_false(send_tcp(harness, 2, SYN, 5 * SECOND));
	assert_true(send_tcp(harness, 2, SYN, 6 * SECOND));
}

/* ---- Load and CpuUsage ---- */

HARNESS_CLAIM(work_is_dropped_while_the_load_is_above)
{
	static const struct random_sample samples[] = {
		{5 * SECOND, 4000000, 0}, {6 * SECOND, 4000001, 0}, {7 * SECOND, 3999999, 1000000}};

	harness_one_system_rule(harness, setup, system_of(WEIR_SYSTEM_LOAD, 4));
	harness_samples(harness, samples, ARRAY_SIZE(samples));
	assert_int_equal(harness_send(harness, HOST, 4 * SECOND, 5), 5); /* not known */
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND - 1, 5), 5);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 5), 0);
	assert_dropped_by(harness, "load");
	assert_false(send_tcp(harness, 1, SYN, 6 * SECOND));
	assert_true(send_tcp(harness, 1, ACK, 6 * SECOND));
	assert_int_equal(harness_send(harness, HOST, 7 * SECOND, 5), 5);
}

HARNESS_CLAIM(work_is_dropped_while_the_cpus_are_busy)
{
	static const struct random_sample samples[] = {{5 * SECOND, 90000000, 800000}, {6 * SECOND, 0, 800001}};

	harness_one_system_rule(harness, setup, system_of(WEIR_SYSTEM_CPU_USAGE, 0.8));
	harness_samples(harness, samples, ARRAY_SIZE(samples));
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 5), 5);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 5), 0);
	assert_dropped_by(harness, "cpu");
}

/* Three handshakes in one half second, the shortest of 500 ms: 2 * 3 * 0.5 connections are the host's own pace. */
HARNESS_CLAIM(bbr_drops_only_beyond_the_pace_of_the_host)
{
	static const struct random_sample busy = {0, 5000000, 0};

	harness_one_system_rule(harness, setup, bbr(system_of(WEIR_SYSTEM_LOAD, 4)));
	harness_samples(harness, &busy, 1);
	/* no handshake yet: one connection passes the rule, and a second one */
	assert_true(send_tcp(harness, 1, SYN, 5 * SECOND));
	assert_true(send_tcp(harness, 2, SYN, 5 * SECOND + 1 * MS));
	assert_false(send_tcp(harness, 3, SYN, 5 * SECOND + 2 * MS));
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 2 * MS, 1), 0);
	assert_dropped_by(harness, "load");
	assert_true(send_tcp(harness, 1, ACK, 5 * SECOND + 500 * MS));
	assert_true(send_tcp(harness, 2, ACK, 5 * SECOND + 501 * MS));
	/* 2 > 2 * 2 * 0.5 is not so */
	assert_true(send_tcp(harness, 3, SYN, 5 * SECOND + 501 * MS));
	assert_false(send_tcp(harness, 4, SYN, 5 * SECOND + 501 * MS));
	assert_true(send_tcp(harness, 3, ACK, 5 * SECOND + 999 * MS + 999000));
	/* the shortest was 498.999 ms: 3 > 2 * 3 * 0.498999 */
	assert_false(send_tcp(harness, 4, SYN, 5 * SECOND + 999 * MS + 999000));
	assert_true(send_tcp(harness, 3, RST, 6 * SECOND));
	assert_true(send_tcp(harness, 4, SYN, 6 * SECOND));
	/* ten buckets later nothing is known of them */
	assert_false(send_tcp(harness, 5, SYN, 10 * SECOND));
	assert_true(send_tcp(harness, 4, RST, 10 * SECOND));
	assert_true(send_tcp(harness, 5, SYN, 10 * SECOND + 499 * MS));
	assert_true(send_tcp(harness, 5, RST, 10 * SECOND + 499 * MS));
	assert_false(send_tcp(harness, 5, SYN, 10 * SECOND + 500 * MS)); /* 2 > 0 */
}

/* ---- random rule sets and traffic ---- */

CLAIM(agrees_with_the_model_on_random_rules_and_traffic)
{
	const struct harness_rounds rounds = {
		.rounds = 120,
		.packets = 10000,
		.rules = random_system_ruleset,
		.traffic = random_packets,
	};

	harness_rounds_agree(&rounds);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
