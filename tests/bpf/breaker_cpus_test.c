// SPDX-License-Identifier: GPL-2.0-only
/*
 * Circuit breakers on two CPUs: of the openings that come from both at the retry time exactly one is the probe, and
 * what both count is all there.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

#define CPUS 2
#define PORT 80
#define FRAME_BYTES 60
#define OPENINGS 1000 /* of a breaker */
#define BURST 4	      /* openings from each CPU at the retry time */
#define RETRY_NS (2 * SECOND)

#define SYN 0x02
#define RST 0x04
#define ACK 0x10

struct sender {
	struct rig *rig;
	atomic_uint *arrived;
	int cpu, err;
	uint32_t rounds, packets;
	uint16_t port; /* of the first packet; the next has the next */
	uint8_t answer;
	uint32_t passed[OPENINGS]; /* in each round */
	uint16_t passed_port;
	pthread_t thread;
};

static void build(uint16_t port, uint8_t flags, uint8_t frame[FRAME_BYTES])
{
	struct packet_spec spec = packet_udp("10.0.0.1", port, "192.0.2.80", PORT, 0);
	uint8_t built[PACKET_BYTES_MAX];

	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, built);
	memcpy(frame, built, FRAME_BYTES);
}

static bool passes(struct sender *sender, uint16_t port, uint8_t flags)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .repeat = 1, .data_size_in = FRAME_BYTES);
	uint8_t frame[FRAME_BYTES];

	build(port, flags, frame);
	options.data_in = frame;
	sender->err |= bpf_prog_test_run_opts(weir_object_program_fd(sender->rig->object), &options);
	return options.retval == XDP_PASS;
}

static void begin(struct rig *rig, uint32_t key_fields, struct weir_breaker_fields fields, uint64_t threshold_micro)
{
	struct weir_ruleset_rule *rule;
	size_t resource;

	rig_require(CPUS);
	rig_begin(rig, 512);
	rig->ruleset->settings.connections = 65536;
	rig->ruleset->settings.connection_flows = 1024;
	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		rig->ruleset->settings.connection_timeout_ms[class] = 10000;
	resource = rig_resource(rig, PORT, key_fields);
	rig->ruleset->resources[resource].match.has_protocol = false;
	rule = rig_rule(rig, resource, WEIR_WINDOW_LEAP, 0, 0, 0);
	rule->metric = WEIR_METRIC_REQUESTS;
	rule->threshold_micro = threshold_micro;
	rule->breaker = fields;
	rig_load(rig, true);
	weir_object_harness(rig->object)->clock_ns = RIG_START_NS;
	rig_attach(rig);
}

/* Both at once, in rounds; the first moves the clock on to the next retry, and ends the last round's probe badly. */
static void *send_bursts(void *data)
{
	struct sender *sender = data;
	volatile struct weir_harness *harness = weir_object_harness(sender->rig->object);

	rig_pin(sender->cpu);
	for (uint32_t round = 0; round < sender->rounds; round++) {
		rig_line_up(sender->arrived, CPUS, 2 * round);
		for (uint32_t i = 0; i < sender->packets; i++) {
			if (!passes(sender, sender->port + i, SYN))
				continue;
			sender->passed[round]++;
			sender->passed_port = sender->port + i;
		}
		/* Whoever has the probe resets it, so that the breaker is open again. */
		if (sender->passed[round])
			passes(sender, sender->passed_port, RST);
		rig_line_up(sender->arrived, CPUS, 2 * round + 1);
		if (sender->port < 2000)
			harness->clock_ns += RETRY_NS;
	}
	return NULL;
}

static void run(struct rig *rig, void *(*work)(void *), struct sender senders[CPUS])
{
	atomic_uint arrived = 0;
	int cpu[CPUS];

	rig_cpus(cpu, CPUS);
	for (int i = 0; i < CPUS; i++) {
		senders[i].rig = rig;
		senders[i].arrived = &arrived;
		senders[i].cpu = cpu[i];
		senders[i].port = 1000 + 1000 * i;
		assert_int_equal(pthread_create(&senders[i].thread, NULL, work, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_int_equal(senders[i].err, 0);
	}
}

static void each_opening_of_a_breaker_has_one_probe(uint32_t key_fields)
{
	static struct sender senders[CPUS];
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, key_fields,
	      (struct weir_breaker_fields){.strategy = WEIR_BREAKER_ERROR_COUNT,
					   .interval_ns = SECOND,
					   .buckets = 1,
					   .retry_ns = RETRY_NS,
					   .min_requests = 1},
	      WEIR_MICRO);
	memset(senders, 0, sizeof(senders));
	senders[0].rig = &rig;
	assert_true(passes(&senders[0], 1, SYN));
	assert_true(passes(&senders[0], 1, RST));
	assert_false(passes(&senders[0], 2, SYN));
	weir_object_harness(rig.object)->clock_ns += RETRY_NS;
	senders[0].rounds = senders[1].rounds = OPENINGS;
	senders[0].packets = senders[1].packets = BURST;
	run(&rig, send_bursts, senders);
	for (uint32_t round = 0; round < OPENINGS; round++)
		if (senders[0].passed[round] + senders[1].passed[round] != 1)
			fail_msg("round %u: %u and %u probes", round, senders[0].passed[round],
				 senders[1].passed[round]);
	assert_int_equal(rig_rule_counters(&rig, 0).stalled, 0);
}

CASE_WITHIN(of_a_flow_each_opening_has_one_probe, NULL, rig_detach,
	    each_opening_of_a_breaker_has_one_probe(WEIR_KEY_SOURCE));
CASE_WITHIN(of_a_whole_resource_each_opening_has_one_probe, NULL, rig_detach,
	    each_opening_of_a_breaker_has_one_probe(0));

static void *send_requests(void *data)
{
	struct sender *sender = data;

	rig_pin(sender->cpu);
	rig_line_up(sender->arrived, CPUS, 0);
	for (uint32_t i = 0; i < sender->packets; i++) {
		sender->passed[0] += passes(sender, sender->port + i % 900, SYN);
		passes(sender, sender->port + i % 900, sender->answer);
	}
	return NULL;
}

/* 2,000 requests are done, 2,000 fail: the next failure, and nothing before it, opens the breaker. */
CLAIM_WITHIN(outcomes_of_two_cpus_are_all_counted, NULL, rig_detach)
{
	static struct sender senders[CPUS];
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0,
	      (struct weir_breaker_fields){.strategy = WEIR_BREAKER_ERROR_COUNT,
					   .interval_ns = 3600 * SECOND,
					   .buckets = 10,
					   .retry_ns = RETRY_NS,
					   .min_requests = 4001},
	      2001 * WEIR_MICRO);
	memset(senders, 0, sizeof(senders));
	senders[0].packets = senders[1].packets = 2000;
	senders[0].answer = RST;
	senders[1].answer = ACK;
	run(&rig, send_requests, senders);
	assert_int_equal(senders[0].passed[0] + senders[1].passed[0], 4000);
	assert_true(passes(&senders[0], 10, SYN));
	assert_true(passes(&senders[0], 10, RST));
	assert_false(passes(&senders[0], 11, SYN));
	assert_int_equal(rig_rule_counters(&rig, 0).stalled, 0);
}

RUN_CLAIMS(NULL, NULL)
