// SPDX-License-Identifier: GPL-2.0-only
/*
 * System rules on two CPUs at once, under the virtual clock: handshakes that both complete in one half second are all
 * counted, also while the words of the ring change hands; and the limits that are exact stay so.
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

#define CPUS 2
#define PORT 80
#define FRAME_BYTES 60
#define SYN 0x02
#define ACK 0x10

#define ROUNDS 40	 /* each in a half second of its own, so that the ring comes round */
#define HANDSHAKES 50	 /* of a CPU in a round */
#define TOOK_NS (3 * MS) /* each of them */

struct test {
	struct rig rig;
	int cpu[CPUS];
	atomic_uint arrived;
};

struct sender {
	struct test *test;
	pthread_t thread;
	int which;
	uint32_t passed, failed;
	uint64_t count[ROUNDS], sum_us[ROUNDS], shortest_us[ROUNDS]; /* of the ring, as the first has found it */
};

/* ---- set-up ---- */

static struct weir_ruleset_rule *add_system_rule(struct rig *rig, enum weir_system_metric system, uint64_t trigger)
{
	struct weir_ruleset_rule *rule = rig_rule(rig, WEIR_NO_RESOURCE, WEIR_WINDOW_LEAP, trigger, SECOND, 2);

	rule->ref_resource = WEIR_NO_RESOURCE;
	rule->system = system;
	rule->metric = system == WEIR_SYSTEM_INBOUND_QPS   ? WEIR_METRIC_RATE
		       : system == WEIR_SYSTEM_CONCURRENCY ? WEIR_METRIC_CONCURRENCY
							   : WEIR_METRIC_SIGNAL;
	return rule;
}

static void start(struct test *test, enum weir_system_metric system, uint64_t trigger)
{
	static const uint64_t timeouts_ms[WEIR_CONNECTION_CLASSES] = {60000, 600000, 120000, 10000};
	struct rig *rig = &test->rig;
	size_t resource;

	rig_begin(rig, 512);
	rig->ruleset->settings.connections = 1 << 18; /* so that no half-open one is evicted */
	rig->ruleset->settings.connection_flows = 1024;
	memcpy(rig->ruleset->settings.connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
	add_system_rule(rig, system, trigger);
	resource = rig_resource(rig, PORT, 0);
	rig->ruleset->resources[resource].match.has_protocol = false;
	rig_load(rig, true);
	weir_object_harness(rig->object)->clock_ns = RIG_START_NS;
	rig_cpus(test->cpu, CPUS);
	rig_attach(rig);
}

/* ---- what a CPU sends ---- */

static void send_one(struct sender *sender, uint32_t number, uint8_t flags)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1024 + sender->which, "192.0.2.80", PORT, 0);
	uint32_t address = htonl(0x0a000000 | number);
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .repeat = 1);

	memcpy(spec.source, &address, sizeof(address));
	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
	options.data_size_in = FRAME_BYTES;
	sender->failed += bpf_prog_test_run_opts(weir_object_program_fd(sender->test->rig.object), &options) != 0;
	sender->passed += options.retval == XDP_PASS;
}

static void read_bucket(struct sender *sender, uint32_t round, uint64_t now_ns)
{
	uint64_t number = now_ns / WEIR_HANDSHAKE_BUCKET_NS;
	struct weir_handshake_bucket bucket;
	struct weir_handshakes ring;
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(weir_object_map_fd(sender->test->rig.object, WEIR_TABLE_HANDSHAKES), &zero, &ring))
		return;
	bucket = ring.bucket[number % WEIR_HANDSHAKE_BUCKETS];
	if ((bucket.count ^ WEIR_HANDSHAKE_TAG(number)) >> 32)
		return;
	sender->count[round] = (uint32_t)bucket.count;
	sender->sum_us[round] = bucket.sum_us & WEIR_HANDSHAKE_SUM_MASK;
	sender->shortest_us[round] = (uint32_t)bucket.shortest;
}

/* Both open, then both answer: whoever is first then begins the bucket. The clock stands still meanwhile. */
static void *shake_hands(void *data)
{
	struct sender *sender = data;
	struct test *test = sender->test;
	volatile struct weir_harness *harness = weir_object_harness(test->rig.object);
	uint32_t line = 0;

	rig_pin(test->cpu[sender->which]);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		const uint64_t begin_ns = RIG_START_NS + (round + 1) * WEIR_HANDSHAKE_BUCKET_NS;

		if (!sender->which)
			harness->clock_ns = begin_ns - TOOK_NS;
		rig_line_up(&test->arrived, CPUS, line++);
		for (uint32_t i = 0; i < HANDSHAKES; i++)
			send_one(sender, round * HANDSHAKES + i, SYN);
		rig_line_up(&test->arrived, CPUS, line++);
		if (!sender->which)
			harness->clock_ns = begin_ns;
		rig_line_up(&test->arrived, CPUS, line++);
		for (uint32_t i = 0; i < HANDSHAKES; i++)
			send_one(sender, round * HANDSHAKES + i, ACK);
		rig_line_up(&test->arrived, CPUS, line++);
		if (!sender->which)
			read_bucket(sender, round, begin_ns);
	}
	return NULL;
}

static void *open_many(void *data)
{
	struct sender *sender = data;

	rig_pin(sender->test->cpu[sender->which]);
	rig_line_up(&sender->test->arrived, CPUS, 0);
	for (uint32_t i = 0; i < 1000; i++)
		send_one(sender, i, SYN);
	return NULL;
}

static void run_both(struct test *test, struct sender senders[CPUS], void *(*run)(void *))
{
	for (int i = 0; i < CPUS; i++) {
		senders[i].test = test;
		senders[i].which = i;
		assert_int_equal(pthread_create(&senders[i].thread, NULL, run, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++)
		pthread_join(senders[i].thread, NULL);
	for (int i = 0; i < CPUS; i++)
		assert_int_equal(senders[i].failed, 0);
}

/* ---- claims ---- */

CLAIM_WITHIN(handshakes_of_two_cpus_are_all_counted, NULL, rig_detach)
{
	static struct sender senders[CPUS];
	static struct test test;

	rig_require(CPUS);
	start(&test, WEIR_SYSTEM_AVG_RT, 1000);
	run_both(&test, senders, shake_hands);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		assert_int_equal(senders[0].count[round], CPUS * HANDSHAKES);
		assert_int_equal(senders[0].sum_us[round], CPUS * HANDSHAKES * TOOK_NS / 1000);
		assert_int_equal(senders[0].shortest_us[round], TOOK_NS / 1000);
	}
	rig_end(&test.rig);
}

CLAIM_WITHIN(no_more_inbound_work_than_the_trigger_passes_on_two_cpus, NULL, rig_detach)
{
	static struct sender senders[CPUS];
	static struct test test;
	uint64_t passed;

	rig_require(CPUS);
	start(&test, WEIR_SYSTEM_INBOUND_QPS, 300);
	run_both(&test, senders, open_many);
	passed = senders[0].passed + senders[1].passed;
	/* Less, by what one CPU had leased when the other took the last: docs/semantics.md, 1. */
	assert_in_range(passed, 250, 300);
	assert_int_equal(rig_rule_counters(&test.rig, 0).blocked.packets, CPUS * 1000 - passed);
	rig_end(&test.rig);
}

CLAIM_WITHIN(no_more_connections_than_the_trigger_open_on_two_cpus, NULL, rig_detach)
{
	static struct sender senders[CPUS];
	static struct test test;

	rig_require(CPUS);
	start(&test, WEIR_SYSTEM_CONCURRENCY, 300);
	run_both(&test, senders, open_many);
	assert_int_equal(senders[0].passed + senders[1].passed, 300);
	rig_end(&test.rig);
}

RUN_CLAIMS(NULL, NULL)
