// SPDX-License-Identifier: GPL-2.0-only
/* The reference model's system rules, sentence by sentence, worked out by hand. */
#include "../lib/claims.h"
#include "../lib/model_system.h"
#include "base/util.h"
#include "rules/ruleset.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC
#define START (7200 * SECOND)

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

#define TCP 6
#define UDP 17

struct bench {
	struct weir_settings settings;
	struct model_system_rule rule[2];
	size_t rule_count;
	struct model_system *system;
	uint64_t latest_ns;
	size_t blocker; /* of the last packet: rule_count when it passed */
	bool would_drop[2];
};

static int begin(void **state)
{
	static struct bench bench;

	bench = (struct bench){};
	bench.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 6000;
	bench.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_OPEN] = 600000;
	bench.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_OTHER] = 120000;
	bench.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_CLOSED] = 6000;
	*state = &bench;
	return 0;
}

static int end(void **state)
{
	struct bench *bench = *state;

	model_system_free(bench->system);
	return 0;
}

#define BENCH_CLAIM(what) CLAIM_ABOUT(what, struct bench *bench, begin, end)

static struct model_system_rule *add_rule(struct bench *bench, enum model_system_metric metric, double trigger)
{
	struct model_system_rule *rule = &bench->rule[bench->rule_count++];

	*rule = (struct model_system_rule){.metric = metric, .trigger_micro = trigger * WEIR_MICRO + 0.5};
	return rule;
}

static struct model_system *system_of(struct bench *bench)
{
	if (!bench->system)
		bench->system = model_system_new(bench->rule, bench->rule_count, &bench->settings);
	return bench->system;
}

/* Returns whether it passed these rules; others drop it, if is_dropped. */
static bool send_packet(struct bench *bench, uint16_t port, uint8_t protocol, uint8_t flags, bool is_dropped,
			uint64_t time_ns)
{
	struct model_packet packet = {
		.family = 4,
		.source = {192, 0, 2, 1},
		.destination = {192, 0, 2, 80},
		.protocol = protocol,
		.has_ports = true,
		.source_port = port,
		.destination_port = 80,
		.has_tcp_flags = protocol == TCP,
		.tcp_flags = flags,
	};

	struct model_system_time time = {.own_ns = time_ns};

	if (time_ns > bench->latest_ns)
		bench->latest_ns = time_ns;
	time.latest_ns = bench->latest_ns;
	bench->blocker = model_system_evaluate(system_of(bench), &packet, bench->would_drop, time);
	if (bench->blocker != bench->rule_count)
		return false;
	if (!is_dropped)
		model_system_commit(bench->system, &packet, bench->would_drop, time);
	return true;
}

static bool tcp(struct bench *bench, uint16_t port, uint8_t flags, uint64_t time_ns)
{
	return send_packet(bench, port, TCP, flags, false, time_ns);
}

static bool udp(struct bench *bench, uint16_t port, uint64_t time_ns)
{
	return send_packet(bench, port, UDP, 0, false, time_ns);
}

/* ---- InboundQPS ---- */

BENCH_CLAIM(inbound_work_is_openings_and_packets_of_other_protocols)
{
	add_rule(bench, MODEL_SYSTEM_INBOUND_QPS, 3);
	assert_true(tcp(bench, 1, SYN, START));
	assert_true(udp(bench, 2, START));
	assert_true(tcp(bench, 3, ACK, START));
	assert_true(tcp(bench, 3, SYN | ACK, START));
	assert_true(tcp(bench, 3, FIN | ACK, START));
	assert_true(tcp(bench, 3, RST, START));
	assert_true(udp(bench, 2, START));
	assert_false(udp(bench, 2, START));
	assert_false(tcp(bench, 4, SYN, START));
	/* established connections are never touched */
	assert_true(tcp(bench, 1, ACK, START));
	assert_true(tcp(bench, 5, ACK, START));
}

BENCH_CLAIM(what_another_rule_drops_is_no_admitted_work)
{
	add_rule(bench, MODEL_SYSTEM_INBOUND_QPS, 1);
	assert_true(send_packet(bench, 1, UDP, 0, true, START));
	assert_true(udp(bench, 1, START));
	assert_false(udp(bench, 1, START));
}

BENCH_CLAIM(the_last_second_is_two_half_ones)
{
	add_rule(bench, MODEL_SYSTEM_INBOUND_QPS, 1);
	assert_true(udp(bench, 1, START + SECOND / 2 - 1));
	assert_false(udp(bench, 1, START + SECOND - 1));
	assert_true(udp(bench, 1, START + SECOND));
	assert_false(udp(bench, 1, START + 2 * SECOND - 1));
	assert_true(udp(bench, 1, START + 2 * SECOND));
}

BENCH_CLAIM(a_clock_that_goes_back_empties_nothing)
{
	add_rule(bench, MODEL_SYSTEM_INBOUND_QPS, 3);
	assert_true(udp(bench, 1, START + SECOND));
	assert_true(udp(bench, 1, START + SECOND / 2)); /* in its own bucket */
	assert_true(udp(bench, 1, START));		/* in the newest */
	assert_false(udp(bench, 1, START));
	assert_false(udp(bench, 1, START + SECOND));
	assert_true(udp(bench, 1, START + 3 * SECOND / 2)); /* the second has left */
	assert_false(udp(bench, 1, START + 3 * SECOND / 2));
}

BENCH_CLAIM(an_observing_rule_counts_what_it_would_have_let_through)
{
	add_rule(bench, MODEL_SYSTEM_INBOUND_QPS, 1)->observes = true;
	add_rule(bench, MODEL_SYSTEM_CONCURRENCY, 1)->observes = true;
	assert_true(tcp(bench, 1, SYN, START));
	assert_false(bench->would_drop[0] || bench->would_drop[1]);
	assert_true(tcp(bench, 2, SYN, START + SECOND / 2));
	assert_true(bench->would_drop[0] && bench->would_drop[1]);
	/* the second is in neither's figures: the first alone was in the way */
	assert_true(tcp(bench, 1, RST, START + SECOND));
	assert_true(tcp(bench, 3, SYN, START + SECOND));
	assert_false(bench->would_drop[0] || bench->would_drop[1]);
	assert_int_equal(model_system_view(bench->system, START + SECOND).open, 2);
}

BENCH_CLAIM(a_fraction_is_reached_by_the_next_whole_number)
{
	add_rule(bench, MODEL_SYSTEM_INBOUND_QPS, 1.5);
	assert_true(udp(bench, 1, START));
	assert_true(udp(bench, 1, START));
	assert_false(udp(bench, 1, START));
}

/* ---- Concurrency ---- */

BENCH_CLAIM(as_many_connections_as_the_trigger_drop_openings)
{
	add_rule(bench, MODEL_SYSTEM_CONCURRENCY, 2);
	assert_true(tcp(bench, 1, SYN, START));
	assert_true(udp(bench, 2, START));	/* no connection here */
	assert_true(tcp(bench, 3, ACK, START)); /* learned: it counts for nothing */
	assert_true(tcp(bench, 6, SYN, START));
	assert_false(tcp(bench, 4, SYN, START));
	assert_true(udp(bench, 5, START));
	assert_true(tcp(bench, 6, ACK, START));
	assert_true(tcp(bench, 1, ACK, START));
	assert_int_equal(model_system_view(bench->system, START).open, 2);
	assert_true(tcp(bench, 3, FIN | ACK, START));
	assert_false(tcp(bench, 4, SYN, START));
	assert_true(tcp(bench, 6, FIN | ACK, START));
	assert_true(tcp(bench, 4, SYN, START));
}

BENCH_CLAIM(a_connection_does_not_stand_in_its_own_way)
{
	add_rule(bench, MODEL_SYSTEM_CONCURRENCY, 1.5); /* reached by two */
	assert_true(tcp(bench, 1, SYN, START));
	assert_true(tcp(bench, 2, SYN, START));
	assert_false(tcp(bench, 3, SYN, START));
	assert_true(tcp(bench, 2, SYN, START)); /* once more */
	assert_true(tcp(bench, 2, ACK, START));
	assert_true(tcp(bench, 2, SYN, START)); /* the port again */
	assert_int_equal(model_system_view(bench->system, START).open, 2);
}

/* ---- AvgRT ---- */

BENCH_CLAIM(the_mean_handshake_time_of_the_last_second_drops_openings)
{
	add_rule(bench, MODEL_SYSTEM_AVG_RT, 20);
	assert_true(tcp(bench, 1, SYN, START));
	assert_true(tcp(bench, 2, SYN, START));
	assert_true(tcp(bench, 1, ACK, START + 10 * MS));
	assert_true(tcp(bench, 2, ACK, START + 29 * MS));
	assert_true(tcp(bench, 3, SYN, START + 30 * MS));
	assert_true(tcp(bench, 4, SYN, START + 30 * MS));
	assert_true(tcp(bench, 4, ACK, START + 51 * MS)); /* 60 ms in three */
	assert_false(tcp(bench, 5, SYN, START + 60 * MS));
	assert_true(udp(bench, 5, START + 60 * MS));
	assert_true(tcp(bench, 3, ACK, START + 60 * MS));
	assert_false(tcp(bench, 5, SYN, START + SECOND - 1));
	assert_true(tcp(bench, 5, SYN, START + SECOND));
}

BENCH_CLAIM(without_a_handshake_there_is_no_mean)
{
	add_rule(bench, MODEL_SYSTEM_AVG_RT, 0);
	assert_true(tcp(bench, 1, SYN, START));
	assert_true(tcp(bench, 1, ACK, START));
	assert_false(tcp(bench, 2, SYN, START));
}

/* ---- Load and CpuUsage ---- */

BENCH_CLAIM(load_above_the_trigger_drops_inbound_work)
{
	add_rule(bench, MODEL_SYSTEM_LOAD, 4.5);
	assert_true(tcp(bench, 1, SYN, START)); /* unknown */
	model_system_sample(bench->system, 4500000, 1000000);
	assert_true(tcp(bench, 2, SYN, START));
	model_system_sample(bench->system, 4500001, 0);
	assert_false(tcp(bench, 3, SYN, START));
	assert_false(udp(bench, 3, START));
	assert_true(tcp(bench, 1, ACK, START));
	model_system_forget(bench->system);
	assert_true(tcp(bench, 3, SYN, START));
}

BENCH_CLAIM(cpu_above_the_trigger_drops_inbound_work)
{
	add_rule(bench, MODEL_SYSTEM_CPU_USAGE, 0.8);
	model_system_sample(system_of(bench), 100 * WEIR_MICRO, 800000);
	assert_true(udp(bench, 1, START));
	model_system_sample(bench->system, 0, 800001);
	assert_false(udp(bench, 1, START));
}

BENCH_CLAIM(bbr_drops_only_what_could_not_be_served_at_the_best_pace)
{
	add_rule(bench, MODEL_SYSTEM_LOAD, 1)->is_bbr = true;
	model_system_sample(system_of(bench), 2 * WEIR_MICRO, 0);
	/* one connection is never too many, with no handshake known */
	assert_true(tcp(bench, 1, SYN, START));
	assert_true(tcp(bench, 2, SYN, START));
	assert_false(tcp(bench, 3, SYN, START));
	assert_false(udp(bench, 3, START));
	/* two handshakes in half a second, the shortest of 500 ms: 4 x 0.5 = 2 connections */
	assert_true(tcp(bench, 1, ACK, START + 500 * MS));
	assert_true(tcp(bench, 2, ACK, START + 600 * MS));
	assert_true(tcp(bench, 3, SYN, START + 600 * MS));
	assert_int_equal(model_system_view(bench->system, START + 600 * MS).complete_max, 4);
	assert_int_equal(model_system_view(bench->system, START + 600 * MS).shortest_us, 500000);
	assert_false(udp(bench, 4, START + 600 * MS));
	/* until their bucket leaves the last ten */
	assert_true(tcp(bench, 1, RST, START + 600 * MS));
	assert_true(tcp(bench, 5, SYN, START + 5500 * MS - 1));
	assert_true(tcp(bench, 5, RST, START + 5500 * MS - 1));
	assert_false(tcp(bench, 6, SYN, START + 5500 * MS));
}

/* ---- several ---- */

BENCH_CLAIM(the_first_enforced_rule_names_the_drop)
{
	add_rule(bench, MODEL_SYSTEM_INBOUND_QPS, 1)->observes = true;
	add_rule(bench, MODEL_SYSTEM_CONCURRENCY, 1);
	assert_true(tcp(bench, 1, SYN, START));
	assert_true(udp(bench, 1, START));
	assert_true(bench->would_drop[0]);
	assert_false(tcp(bench, 2, SYN, START));
	assert_true(bench->would_drop[0]);
	assert_int_equal(bench->blocker, 1);
}

RUN_CLAIMS(NULL, NULL)
