// SPDX-License-Identifier: GPL-2.0-only
/*
 * What packets cost, in instructions. Runs in a machine with the steady clock (tests/vm/run --steady), where an
 * instruction takes two nanoseconds whatever else the host does: so it resolves a few percent that bench cannot
 * see. Elsewhere it is skipped. Cache misses and branches do not show; they are bench's.
 */
#include <bpf/bpf.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"

#define CLOCK_NS 2    /* an instruction: -icount shift=1 */
#define REPEAT 200000 /* so that a tick of the clock more or less does not show */
#define CPUS 16
#define FLOWS 20
#define AMPLE 1000000000ull /* more than is offered */
#define DAY (86400 * SECOND)
#define LIMIT 500ull
#define SMALL 1000ull /* less than is offered while the program warms up; counted in narrow rows */

/* Mean instructions of a packet to this UDP port, when the program is warm. */
static double instructions(const struct rig *rig, uint16_t port)
{
	static uint8_t frame[PACKET_BYTES_MAX];
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", port, 18);
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(&spec, frame));

	for (options.repeat = REPEAT / 10; options.repeat <= REPEAT; options.repeat *= 10)
		assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options), 0);
	return (double)options.duration / CLOCK_NS;
}

/* The same over all packets that one flow may send, from its first to its last; the mean of some flows. */
static double instructions_to_the_limit(const struct rig *rig, uint64_t limit)
{
	static uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .repeat = limit);
	double sum = 0;

	for (int flow = 0; flow <= FLOWS; flow++) {
		struct packet_spec spec = packet_udp("10.0.0.1", 1024, "198.51.100.1", 53, 18);

		spec.source[3] = flow;
		options.data_size_in = packet_build(&spec, frame);
		assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options), 0);
		if (flow > 0) /* the first is for the program to warm up */
			sum += (double)options.duration / CLOCK_NS;
	}
	return sum / FLOWS;
}

/* Where two measurements of the same differ, this clock is not steady. */
static void require_steady_clock(void)
{
	struct rig rig;
	double first, second;

	rig_begin(&rig, 4096);
	rig_pin(0);
	rig_rule(&rig, rig_resource(&rig, 53, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, SMALL, SECOND, 10);
	rig_load(&rig, false);
	first = instructions(&rig, 53);
	second = instructions(&rig, 53);
	rig_end(&rig);
	if (first < 0.95 * second || second < 0.95 * first) {
		print_message("needs the steady clock of 'tests/vm/run --steady': %.0f and %.0f ns\n", first, second);
		skip();
	}
}

/* ---- CPUs ---- */

static double cost_with_cpus(uint32_t cpus, uint32_t key, uint64_t limit)
{
	struct rig rig;
	double cost;

	rig_begin(&rig, 4096);
	rig.cpus = cpus;
	rig_rule(&rig, rig_resource(&rig, 53, key), WEIR_WINDOW_LEAP, limit, limit == LIMIT ? DAY : SECOND, 10);
	rig_load(&rig, false);
	cost = limit == LIMIT ? instructions_to_the_limit(&rig, limit) : instructions(&rig, 53);
	rig_end(&rig);
	return cost;
}

static void check_cpus(const char *what, uint64_t limit)
{
	double few, many;

	require_steady_clock();
	if (weir_host_cpus() < CPUS) {
		print_message("needs %d CPUs\n", CPUS);
		skip();
	}
	few = cost_with_cpus(2, WEIR_KEY_SOURCE, limit);
	many = cost_with_cpus(CPUS, WEIR_KEY_SOURCE, limit);
	print_message("cost: %s: %.0f instructions with 2 CPUs, %.0f with %d; a whole resource %.0f, %.0f\n", what, few,
		      many, CPUS, cost_with_cpus(2, 0, limit), cost_with_cpus(CPUS, 0, limit));
	assert_true(many <= 1.03 * few);
}

CASE(a_flow_over_its_limit_on_one_cpu_costs_the_same_with_16_cpus, check_cpus("over its limit", SMALL));
CASE(an_admitted_flow_on_one_cpu_costs_the_same_with_16_cpus, check_cpus("all admitted", AMPLE));
CASE(a_flow_that_uses_up_its_limit_on_one_cpu_costs_the_same_with_16_cpus, check_cpus("up to its limit", LIMIT));

/* ---- resources and rules ---- */

static double cost_with_resources(uint32_t count)
{
	struct rig rig;
	double cost;

	rig_begin(&rig, 4096);
	for (uint32_t i = 0; i < count; i++)
		rig_rule(&rig, rig_resource(&rig, 1000 + i, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, SMALL, SECOND, 10);
	rig_load(&rig, false);
	cost = instructions(&rig, 1000 + count / 2);
	rig_end(&rig);
	return cost;
}

CLAIM(a_packet_costs_the_same_among_4096_resources)
{
	double one, some, all;

	require_steady_clock();
	one = cost_with_resources(1);
	some = cost_with_resources(1024);
	all = cost_with_resources(WEIR_RESOURCES_MAX);
	print_message("cost: one of 1, 1,024, 4,096 resources: %.0f, %.0f, %.0f instructions\n", one, some, all);
	assert_true(some <= 1.5 * one);
	assert_true(all <= 1.03 * some);
}

static double cost_with_rules(uint32_t count, uint64_t limit)
{
	struct rig rig;
	size_t resource;
	double cost;

	rig_begin(&rig, 4096);
	resource = rig_resource(&rig, 53, WEIR_KEY_SOURCE);
	for (uint32_t i = 0; i < count; i++)
		rig_rule(&rig, resource, WEIR_WINDOW_LEAP, i + 1 < count ? AMPLE : limit, SECOND, 10);
	rig_load(&rig, false);
	cost = instructions(&rig, 53);
	rig_end(&rig);
	return cost;
}

CLAIM(further_rules_on_a_packet_cost_less_than_the_first)
{
	double one, eight;

	require_steady_clock();
	one = cost_with_rules(1, AMPLE);
	eight = cost_with_rules(8, AMPLE);
	print_message("cost: all admitted, 1 rule %.0f, 8 rules %.0f instructions\n", one, eight);
	assert_true((eight - one) / 7 <= 0.6 * one);
}

RUN_CLAIMS(NULL, NULL)
