// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections on two CPUs, which open connections of the same few sources, as many as they may, and close them. Then it
 * is the turn of other sources, so that both tables are soon full of flows and connections that are over. A connection
 * is counted here after it was admitted, and until before it is closed: so what is counted is never more than what is
 * open. (shared_test has the kinds whose entries leave ghosts.)
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

#define CPUS 2
#define PORT 80
#define FLOWS_PER_CPU 512
#define LIMIT 3
#define SOURCES 16 /* at a time */
#define TURNS 400
#define STEPS 300   /* of a CPU in a turn */
#define PORTS 15000 /* of each CPU */

struct opener {
	const struct rig *rig;
	atomic_uint *arrived;
	atomic_int *open; /* connections of each source */
	int which, cpu, err;
	uint32_t seed, port, admitted, above;
	uint32_t own[SOURCES], ports[SOURCES][LIMIT]; /* connections of this CPU: how many, their ports */
	pthread_t thread;
};

static bool opener_sends(struct opener *opener, uint32_t source, uint32_t port, uint8_t tcp_flags)
{
	struct packet_spec spec =
		packet_udp("198.51.100.7", 10000 + opener->which * PORTS + port, "192.0.2.53", PORT, 0);
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame);

	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = tcp_flags;
	source = htonl(0x0a000000 + source);
	memcpy(spec.source, &source, sizeof(source));
	options.data_size_in = packet_build(&spec, frame);
	opener->err |= bpf_prog_test_run_opts(weir_object_program_fd(opener->rig->object), &options);
	return options.retval == XDP_PASS;
}

static void opener_opens(struct opener *opener, uint32_t source, uint32_t at)
{
	const uint32_t port = opener->port++ % PORTS;

	if (!opener_sends(opener, source, port, 0x02))
		return;
	opener->admitted++;
	opener->above += atomic_fetch_add(&opener->open[at], 1) >= LIMIT;
	opener_sends(opener, source, port, 0x10); /* it talks, so no full set evicts it */
	if (opener->own[at] < LIMIT)
		opener->ports[at][opener->own[at]++] = port;
}

static void opener_closes(struct opener *opener, uint32_t source, uint32_t at)
{
	if (!opener->own[at])
		return;
	atomic_fetch_sub(&opener->open[at], 1);
	opener_sends(opener, source, opener->ports[at][--opener->own[at]], 0x04);
}

static void *open_and_close(void *data)
{
	struct opener *opener = data;

	rig_pin(opener->cpu);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		const uint32_t first = turn * SOURCES;

		rig_line_up(opener->arrived, CPUS, turn);
		for (int step = 0; step < STEPS; step++) {
			uint32_t at;

			opener->seed = opener->seed * 1664525 + 1013904223;
			at = opener->seed >> 28;
			if (opener->seed >> 27 & 1)
				opener_opens(opener, first + at, at);
			else
				opener_closes(opener, first + at, at);
		}
		for (uint32_t at = 0; at < SOURCES; at++)
			while (opener->own[at])
				opener_closes(opener, first + at, at);
	}
	return NULL;
}

CLAIM_WITHIN(two_cpus_keep_limits_of_connections_in_full_tables, NULL, rig_detach)
{
	static struct opener openers[CPUS];
	static atomic_int open[SOURCES];
	struct weir_settings *settings;
	struct weir_match *match;
	uint32_t admitted = 0, above = 0;
	atomic_uint arrived = 0;
	_cleanup_(rig_end) struct rig rig = {};
	int cpu[CPUS];

	rig_require(CPUS);
	rig_begin(&rig, FLOWS_PER_CPU);
	settings = &rig.ruleset->settings;
	settings->connections = 4096;
	settings->connection_flows = 512;
	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		settings->connection_timeout_ms[class] = 60000;
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT, 0, 0)->metric =
		WEIR_METRIC_CONCURRENCY;
	match = &rig.ruleset->resources[0].match;
	memset(match->protocol, 0, sizeof(match->protocol));
	match->protocol[IPPROTO_TCP / 8] |= 1u << IPPROTO_TCP % 8;
	rig_load(&rig, false);
	rig_cpus(cpu, CPUS);
	rig_attach(&rig);
	assert_true(rig.image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS] * WEIR_FLOW_WAYS < TURNS * SOURCES / 2);
	for (int i = 0; i < CPUS; i++) {
		openers[i] = (struct opener){
			.rig = &rig, .arrived = &arrived, .open = open, .which = i, .cpu = cpu[i], .seed = i + 1};
		assert_int_equal(pthread_create(&openers[i].thread, NULL, open_and_close, &openers[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(openers[i].thread, NULL);
		assert_int_equal(openers[i].err, 0);
		admitted += openers[i].admitted;
		above += openers[i].above;
	}
	print_message("%u connections admitted, %u of them above the limit; %llu evicted\n", admitted, above,
		      (unsigned long long)rig_rule_counters(&rig, 0).evicted);
	/* As many as that: two CPUs that open at once may both be refused, but not for long. */
	assert_true(admitted > TURNS * SOURCES * LIMIT);
	assert_int_equal(above, 0);
	for (int i = 0; i < SOURCES; i++)
		assert_int_equal(open[i], 0);
}

RUN_CLAIMS(NULL, NULL)
