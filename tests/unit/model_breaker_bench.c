// SPDX-License-Identifier: GPL-2.0-only
#include "model_breaker_bench.h"

#include <string.h>

#include "rules/ruleset.h"

int bench_begin(void **state)
{
	static struct bench bench;

	bench = (struct bench){.breakers = model_breakers_new()};
	*state = &bench;
	return 0;
}

int bench_end(void **state)
{
	struct bench *bench = *state;

	model_breakers_free(bench->breakers);
	return 0;
}

void bench_restart(struct bench *bench)
{
	model_breakers_free(bench->breakers);
	*bench = (struct bench){.breakers = model_breakers_new()};
}

struct model_breaker_rule *bench_rule(struct bench *bench, enum model_breaker_strategy strategy, double threshold)
{
	struct model_breaker_rule *rule = &bench->rule[bench->rule_count++];

	*rule = (struct model_breaker_rule){
		.strategy = strategy,
		.threshold_micro = threshold * WEIR_MICRO + 0.5,
		.retry_timeout_ns = 3 * SECOND,
		.min_requests = 1,
		.interval_ns = 10 * SECOND,
		.buckets = 1,
		.max_rt_ns = 50 * MS,
		.half_open_timeout_ns = TIMEOUT,
	};
	return rule;
}

/* Keyed by source, under the rule of that place. */
static struct model_key flow_of(const struct model_packet *packet, uint32_t place)
{
	struct weir_flow flow = {.fields = WEIR_KEY_SOURCE, .source_bits = {32, 128}};

	return model_key_of(&flow, place, packet);
}

struct model_packet bench_packet_of(uint16_t port, uint8_t flags)
{
	return (struct model_packet){
		.family = 4,
		.source = {192, 0, 2, 1},
		.destination = {192, 0, 2, 80},
		.protocol = 6,
		.has_ports = true,
		.source_port = port,
		.destination_port = 80,
		.has_tcp_flags = true,
		.tcp_flags = flags,
	};
}

/* All rules in order, up to the first enforced one that does not admit the packet, and then what comes of it. */
static bool pass(struct bench *bench, const struct model_packet *packet, uint64_t time_ns, bool is_dropped)
{
	bool would_drop[2] = {};
	struct model_key flow;

	bench->blocker = -1;
	for (unsigned int i = 0; i < bench->rule_count; i++) {
		flow = flow_of(packet, i);
		would_drop[i] = !model_breaker_evaluate(bench->breakers, &bench->rule[i], &flow, packet, time_ns);
		if (would_drop[i] && !(bench->observes && i == 0)) {
			bench->blocker = i;
			return false;
		}
	}
	for (unsigned int i = 0; i < bench->rule_count && !is_dropped; i++) {
		flow = flow_of(packet, i);
		model_breaker_commit(bench->breakers, &bench->rule[i], &flow, packet, would_drop[i], time_ns);
	}
	return true;
}

bool bench_packet(struct bench *bench, const struct model_packet *packet, uint64_t time_ns)
{
	return pass(bench, packet, time_ns, false);
}

bool bench_tcp(struct bench *bench, uint16_t port, uint8_t flags, uint64_t time_ns)
{
	return bench_tcp_from(bench, 1, port, flags, time_ns);
}

bool bench_tcp_from(struct bench *bench, uint8_t source, uint16_t port, uint8_t flags, uint64_t time_ns)
{
	struct model_packet packet = bench_packet_of(port, flags);

	packet.source[3] = source;
	return pass(bench, &packet, time_ns, false);
}

bool bench_tcp_dropped(struct bench *bench, uint16_t port, uint8_t flags, uint64_t time_ns)
{
	struct model_packet packet = bench_packet_of(port, flags);

	return pass(bench, &packet, time_ns, true);
}

void bench_opens(struct bench *bench, uint16_t port, uint64_t time_ns)
{
	assert_true(bench_tcp(bench, port, SYN, time_ns));
}

void bench_done(struct bench *bench, uint16_t port, uint64_t syn_ns, uint64_t rt_ns)
{
	bench_opens(bench, port, syn_ns);
	assert_true(bench_tcp(bench, port, ACK, syn_ns + rt_ns));
}

void bench_failed(struct bench *bench, uint16_t port, uint64_t syn_ns, uint64_t reset_ns)
{
	bench_opens(bench, port, syn_ns);
	assert_true(bench_tcp(bench, port, RST, reset_ns));
}

struct model_breaker_view bench_view(struct bench *bench, uint64_t time_ns)
{
	struct model_packet packet = bench_packet_of(0, 0);
	struct model_key flow = flow_of(&packet, 0);

	return model_breaker_of_flow(bench->breakers, &bench->rule[0], &flow, time_ns);
}

enum model_breaker_state bench_state(struct bench *bench, uint64_t time_ns)
{
	return bench_view(bench, time_ns).state;
}
