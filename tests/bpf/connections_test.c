// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections on one CPU and on two: whatever came, in whatever order, what the program counts is what a sweep of its
 * table finds, a limit admits exactly its number, and a flood drives out nobody who has talked.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/rig.h"
#include "../lib/sweep.h"
#include "base/util.h"
#include "program/array.h"
#include "program/sums.h"
#include "tables/connection_counts.h"

#define CPUS 2
#define PORT 80
#define FRAME_BYTES 60
#define MANY (1u << 20) /* a threshold that is never reached */

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

static const uint64_t timeouts_ms[WEIR_CONNECTION_CLASSES] = {
	[WEIR_CONNECTION_CLASS_HALF] = 1000,
	[WEIR_CONNECTION_CLASS_OPEN] = 6000,
	[WEIR_CONNECTION_CLASS_OTHER] = 2000,
	[WEIR_CONNECTION_CLASS_CLOSED] = 1000,
};

/* ---- set-up ---- */

static void begin(struct rig *rig, uint32_t connections, uint32_t flows)
{
	rig_begin(rig, 512);
	rig->ruleset->settings.connections = connections;
	rig->ruleset->settings.connection_flows = flows;
	memcpy(rig->ruleset->settings.connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
}

/* A limit on connections to PORT, of any protocol. Returns the resource. */
static size_t limit(struct rig *rig, uint32_t key_fields, uint64_t threshold)
{
	size_t resource = rig_resource(rig, PORT, key_fields);

	rig->ruleset->resources[resource].match.has_protocol = false;
	rig_rule(rig, resource, WEIR_WINDOW_LEAP, threshold, 0, 0)->metric = WEIR_METRIC_CONCURRENCY;
	return resource;
}

/* Another limit of the connections that the first resource's first rule counts. */
static void share(struct rig *rig, uint64_t threshold)
{
	rig_rule(rig, 0, WEIR_WINDOW_LEAP, threshold, 0, 0)->metric = WEIR_METRIC_CONCURRENCY;
}

/* One such limit, under the virtual clock, and this thread on one CPU. */
static void start_alone(struct rig *rig, uint32_t connections, uint32_t flows, uint32_t key_fields, uint64_t threshold)
{
	begin(rig, connections, flows);
	limit(rig, key_fields, threshold);
	rig_load_here(rig);
}

/* From 10.x.x.x; `flags` 0: UDP. */
static void build(uint32_t source, uint16_t port, uint8_t flags, uint8_t frame[FRAME_BYTES])
{
	struct packet_spec spec = packet_udp("10.0.0.0", port, "192.0.2.80", PORT, 0);
	uint8_t built[PACKET_BYTES_MAX];
	uint32_t address = htonl(0x0a000000 | source);

	memcpy(spec.source, &address, sizeof(address));
	if (flags)
		spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, built);
	memcpy(frame, built, FRAME_BYTES);
}

static bool passes(struct rig *rig, uint64_t now_ns, uint32_t source, uint16_t port, uint8_t flags)
{
	uint8_t frame[FRAME_BYTES];

	build(source, port, flags, frame);
	return rig_passes(rig, now_ns, frame, FRAME_BYTES);
}

static struct weir_connection_figures figures_of(const struct rig *rig, size_t rule, uint64_t now_ns)
{
	struct weir_connection_clock clock = weir_connection_clock(rig->image->config.connection_step_ns, now_ns);
	const struct weir_tables tables = weir_object_tables(rig->object, rig->image);
	struct weir_connection_figures figures;

	assert_int_equal(weir_connections_read_rule(&tables, rig->image->rules[rule].slot,
						    rig->image->rules[rule].flows_slot, &clock, &figures),
			 0);
	return figures;
}

/* ---- random mixes ---- */

#define MIX_SOURCES 12
#define MIX_PORTS 10

/* One packet of the mix: most of them talk or open. */
static void build_of_mix(struct random *random, uint8_t frame[FRAME_BYTES])
{
	static const uint8_t kinds[] = {SYN, SYN, SYN, ACK, ACK, ACK, ACK, SYN | ACK, FIN | ACK, RST, 0, 0};

	build(random_below(random, MIX_SOURCES), 1024 + random_below(random, MIX_PORTS),
	      kinds[random_below(random, ARRAY_SIZE(kinds))], frame);
}

/* Long enough to end some, or all. */
static uint64_t long_pause_ns(struct random *random)
{
	return random_below(random, 9 * SECOND);
}

/* Mostly short against a time-out. */
static uint64_t pause_ns(struct random *random)
{
	return random_below(random, random_below(random, 100) ? MS : 700 * MS);
}

/* `shared`: beside another limit of the same connections, which mostly admits less. */
static void mix_on_one_cpu(uint32_t key_fields, uint64_t threshold, uint32_t connections, uint32_t flows, bool shared)
{
	struct random random = {.state = connections * 31 + flows * 7 + threshold};
	uint64_t now_ns = RIG_START_NS, most = 0;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, connections, flows);
	limit(&rig, key_fields, threshold);
	if (shared)
		share(&rig, threshold - threshold / 4);
	rig_load_here(&rig);
	for (int i = 0; i < 40000; i++) {
		uint8_t frame[FRAME_BYTES];

		now_ns += random_below(&random, 2000) ? pause_ns(&random) : long_pause_ns(&random);
		build_of_mix(&random, frame);
		rig_passes(&rig, now_ns, frame, FRAME_BYTES);
		if (i % 200 == 0) {
			struct sweep sweep = sweep_check(&rig, now_ns);

			if (sweep.connections > most)
				most = sweep.connections;
		}
	}
	assert_true(most > 5);
	assert_int_equal(sweep_check(&rig, now_ns + 8 * SECOND).connections, 0);
}

CASE(count_equals_a_sweep_after_any_mix, mix_on_one_cpu(WEIR_KEY_SOURCE, 4, 4096, 1024, false));
CASE(count_of_a_whole_resource_equals_a_sweep, mix_on_one_cpu(0, 30, 4096, 1024, false));
CASE(count_equals_a_sweep_when_connections_are_evicted, mix_on_one_cpu(WEIR_KEY_SOURCE, 8, 8, 1024, false));
CASE(count_equals_a_sweep_when_flows_are_evicted, mix_on_one_cpu(WEIR_KEY_SOURCE, 8, 4096, 1, false));
CASE(count_that_rules_share_equals_a_sweep, mix_on_one_cpu(WEIR_KEY_SOURCE, 4, 4096, 1024, true));
CASE(count_that_rules_share_equals_a_sweep_when_both_are_evicted, mix_on_one_cpu(WEIR_KEY_SOURCE, 8, 8, 1, true));
CASE(count_that_rules_of_a_resource_share_equals_a_sweep, mix_on_one_cpu(0, 30, 4096, 1024, true));

/* ---- how connections end, beside a count of who fell silent ---- */

#define RULES_OF_MIX 3

/* Two limits of connections that need the same few entries, and behind them a rate, which rolls them back. */
static void mix_with_other_rules(uint32_t seed)
{
	struct random random = {.state = seed};
	uint64_t before[RULES_OF_MIX + 1], after[RULES_OF_MIX + 1], silent[RULES_OF_MIX] = {}, now_ns = RIG_START_NS;
	uint32_t connections = random_below(&random, 2) ? 8 : 4096, flows = random_below(&random, 2) ? 1 : 1024;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, connections, flows);
	limit(&rig, WEIR_KEY_SOURCE, 1 + random_below(&random, 6));
	limit(&rig, WEIR_KEY_SOURCE_PORT, 1 + random_below(&random, 6));
	limit(&rig, random_below(&random, 2) ? 0 : WEIR_KEY_SOURCE | WEIR_KEY_SOURCE_PORT,
	      1 + random_below(&random, 30));
	rig_rule(&rig, 0, WEIR_WINDOW_LEAP, 3 + random_below(&random, 30), 100 * MS, 1);
	rig_load_here(&rig);
	for (int i = 0; i < 2000; i++) {
		uint8_t frame[FRAME_BYTES];

		sweep_count(&rig, now_ns, before);
		now_ns += random_below(&random, 200) ? pause_ns(&random) : long_pause_ns(&random);
		sweep_count(&rig, now_ns, after);
		for (uint32_t rule = 0; rule < RULES_OF_MIX; rule++) {
			silent[rule] += before[rule] - after[rule];
			if (figures_of(&rig, rule, now_ns).closed_by_idle != silent[rule])
				fail_msg("seed %u, packet %d, rule %u: %" PRIu64 " fell silent, and not %" PRIu64, seed,
					 i, rule, silent[rule], figures_of(&rig, rule, now_ns).closed_by_idle);
		}
		build_of_mix(&random, frame);
		rig_passes(&rig, now_ns, frame, FRAME_BYTES);
	}
}

LONG_CLAIM(silent_flows_count_right_whatever_is_evicted_and_aborted)
{
	for (uint32_t seed = 1; seed <= 12; seed++)
		mix_with_other_rules(seed);
}

/* ---- two CPUs ---- */

struct pair {
	struct rig rig;
	int cpu[CPUS];
};

struct sender {
	struct pair *pair;
	atomic_uint *arrived; /* at the start */
	struct random random;
	uint32_t source; /* of SYNs; 0: the mix */
	uint16_t port;
	uint32_t packets, passed;
	int which, err;
	pthread_t thread;
};

static void pair_load(struct pair *pair)
{
	rig_load(&pair->rig, true);
	weir_object_harness(pair->rig.object)->clock_ns = RIG_START_NS;
	rig_cpus(pair->cpu, CPUS);
	rig_attach(&pair->rig);
}

/* Only the first moves the clock; the other may still be evaluating a packet of before. Not of long before: more than a
 * time-out, as no two CPUs' clocks do, and it would take for over what has only just begun.
 */
static void *send_all(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct sender *sender = data;
	volatile struct weir_harness *harness = weir_object_harness(sender->pair->rig.object);
	uint8_t frame[FRAME_BYTES];

	rig_pin(sender->pair->cpu[sender->which]);
	options.data_in = frame;
	options.data_size_in = FRAME_BYTES;
	options.repeat = 1;
	rig_line_up(sender->arrived, CPUS, 0);
	for (uint32_t i = 0; i < sender->packets && !sender->err; i++) {
		if (sender->source) {
			build(sender->source, sender->port + i, SYN, frame);
		} else {
			build_of_mix(&sender->random, frame);
			if (!sender->which)
				harness->clock_ns += pause_ns(&sender->random);
		}
		sender->err = bpf_prog_test_run_opts(weir_object_program_fd(sender->pair->rig.object), &options);
		sender->passed += options.retval == XDP_PASS;
	}
	return NULL;
}

/* Both at once. Returns how many packets passed. */
static uint32_t send_from_both(struct pair *pair, struct sender senders[CPUS])
{
	atomic_uint arrived = 0;
	uint32_t passed = 0;

	for (int i = 0; i < CPUS; i++) {
		senders[i].pair = pair;
		senders[i].which = i;
		senders[i].arrived = &arrived;
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_int_equal(senders[i].err, 0);
		passed += senders[i].passed;
	}
	return passed;
}

static void mix_on_two_cpus(uint32_t key_fields, uint64_t threshold, uint32_t connections, uint32_t flows)
{
	struct pair pair = {};
	uint64_t most = 0;

	rig_require(CPUS);
	begin(&pair.rig, connections, flows);
	limit(&pair.rig, key_fields, threshold);
	pair_load(&pair);
	for (uint64_t round = 0; round < 40; round++) {
		struct sender senders[CPUS] = {{.packets = 2000, .random.state = 2 * round + 1},
					       {.packets = 2000, .random.state = 2 * round + 2}};
		struct sweep sweep;

		if (round % 2)
			weir_object_harness(pair.rig.object)->clock_ns += long_pause_ns(&senders[0].random);
		send_from_both(&pair, senders);
		sweep = (flows == 1 ? sweep_check_evicted
				    : sweep_check)(&pair.rig, weir_object_harness(pair.rig.object)->clock_ns);
		if (sweep.connections > most)
			most = sweep.connections;
	}
	assert_true(most > 5);
	assert_int_equal(
		sweep_check(&pair.rig, weir_object_harness(pair.rig.object)->clock_ns + 8 * SECOND).connections, 0);
	rig_end(&pair.rig);
}

CASE_WITHIN(count_equals_a_sweep_after_a_mix_on_two_cpus, NULL, rig_detach,
	    mix_on_two_cpus(WEIR_KEY_SOURCE, 4, 4096, 1024));
CASE_WITHIN(count_of_a_whole_resource_equals_a_sweep_after_a_mix_on_two_cpus, NULL, rig_detach,
	    mix_on_two_cpus(0, 30, 4096, 1024));
CASE_WITHIN(count_equals_a_sweep_when_two_cpus_evict_connections, NULL, rig_detach,
	    mix_on_two_cpus(WEIR_KEY_SOURCE, 8, 8, 1024));
CASE_WITHIN(count_equals_a_sweep_when_two_cpus_evict_flows, NULL, rig_detach,
	    mix_on_two_cpus(WEIR_KEY_SOURCE, 8, 4096, 1));
CASE_WITHIN(count_equals_a_sweep_when_two_cpus_evict_both, NULL, rig_detach, mix_on_two_cpus(WEIR_KEY_SOURCE, 8, 8, 1));

/* `shared`: of rules that count the same connections, the last says ten, and the first two admit twice as many. */
static void ask_for_ten(uint32_t key_fields, bool shared)
{
	const uint32_t last = shared ? 2 : 0;
	struct pair pair = {};
	volatile struct weir_harness *harness;
	uint64_t refused = 0, stalled = 0;

	rig_require(CPUS);
	begin(&pair.rig, 65536, 16384);
	limit(&pair.rig, key_fields, shared ? 20 : 10);
	if (shared) {
		share(&pair.rig, 20);
		share(&pair.rig, 10);
	}
	pair_load(&pair);
	harness = weir_object_harness(pair.rig.object);
	for (uint32_t round = 1; round <= 300; round++) {
		struct sender senders[CPUS] = {{.packets = 40, .source = round, .port = 1000},
					       {.packets = 40, .source = round, .port = 2000}};

		assert_int_equal(send_from_both(&pair, senders), 10);
		if (!key_fields)
			harness->clock_ns += 2 * SECOND; /* those of this round are over */
	}
	assert_int_equal(figures_of(&pair.rig, 0, harness->clock_ns).opened, 3000);
	/* Where two CPUs met a new flow at once, one may have given up to wait for the other. */
	for (uint32_t rule = 0; rule <= last; rule++) {
		refused += figures_of(&pair.rig, rule, harness->clock_ns).refused;
		stalled += rig_rule_counters(&pair.rig, rule).stalled;
	}
	assert_int_equal(refused + stalled, 300 * (80 - 10));
	assert_true(stalled < 300);
	sweep_check(&pair.rig, harness->clock_ns);
	rig_end(&pair.rig);
}

CASE_WITHIN(limit_of_ten_admits_ten_of_a_flow_when_syns_come_on_two_cpus, NULL, rig_detach,
	    ask_for_ten(WEIR_KEY_SOURCE, false));
CASE_WITHIN(limit_of_ten_admits_ten_of_a_resource_when_syns_come_on_two_cpus, NULL, rig_detach, ask_for_ten(0, false));
CASE_WITHIN(limit_of_ten_admits_ten_beside_others_when_syns_come_on_two_cpus, NULL, rig_detach,
	    ask_for_ten(WEIR_KEY_SOURCE, true));
CASE_WITHIN(limit_of_ten_of_a_resource_admits_ten_beside_others_when_syns_come_on_two_cpus, NULL, rig_detach,
	    ask_for_ten(0, true));

/* ---- rules that share connections ---- */

static void rename_rule(struct rig *rig, size_t place, const char *name)
{
	free(rig->ruleset->rules[place].name);
	rig->ruleset->rules[place].name = strdup(name);
	assert_non_null(rig->ruleset->rules[place].name);
}

/* Each rule has the connections of all that share them, and refusals of its own. */
static void assert_shared(struct rig *rig, uint64_t now_ns, uint64_t now, const uint64_t *refused, uint32_t rules)
{
	for (uint32_t rule = 0; rule < rules; rule++) {
		const struct weir_connection_figures figures = figures_of(rig, rule, now_ns);

		assert_int_equal(figures.now, now);
		assert_int_equal(figures.refused, refused[rule]);
	}
	assert_int_equal(sweep_check(rig, now_ns).connections, now);
}

/* Five, three and four, and behind them one packet in 10 ms. */
CLAIM(rules_that_share_connections_have_one_entry_and_refuse_each_by_its_own_limit)
{
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 4096, 1024);
	limit(&rig, WEIR_KEY_SOURCE, 5);
	share(&rig, 3);
	share(&rig, 4);
	rig_rule(&rig, 0, WEIR_WINDOW_LEAP, 1, 10 * MS, 1);
	rig_load_here(&rig);
	for (uint16_t port = 1; port <= 5; port++, now_ns += 20 * MS)
		assert_int_equal(passes(&rig, now_ns, 1, port, SYN), port <= 3);
	assert_shared(&rig, now_ns, 3, (uint64_t[]){0, 2, 0}, 3);
	/* What the last rule drops opens none. */
	assert_true(passes(&rig, now_ns, 2, 1, SYN));
	assert_false(passes(&rig, now_ns, 2, 2, SYN));
	assert_shared(&rig, now_ns, 4, (uint64_t[]){0, 2, 0}, 3);
	now_ns += 20 * MS;
	assert_true(passes(&rig, now_ns, 1, 2, RST));
	now_ns += 20 * MS;
	assert_true(passes(&rig, now_ns, 1, 6, SYN));
	assert_shared(&rig, now_ns, 4, (uint64_t[]){0, 2, 0}, 3);
}

/* The first of them goes, and the second admits ten from then on. */
CLAIM(shared_connections_outlive_the_rule_that_began_to_count_them)
{
	uint64_t now_ns = RIG_START_NS;
	struct rig rig, later;

	begin(&rig, 4096, 1024);
	limit(&rig, WEIR_KEY_SOURCE, 5);
	share(&rig, 3);
	share(&rig, 4);
	rig_load_here(&rig);
	for (uint16_t port = 1; port <= 5; port++)
		assert_int_equal(passes(&rig, now_ns, 1, port, SYN), port <= 3);
	begin(&later, 4096, 1024);
	limit(&later, WEIR_KEY_SOURCE, 10);
	share(&later, 4);
	rename_rule(&later, 0, rig.ruleset->rules[1].name);
	rename_rule(&later, 1, rig.ruleset->rules[2].name);
	later.reloads = &rig;
	later.now_ns = now_ns;
	rig_load(&later, true);
	assert_shared(&later, now_ns, 3, (uint64_t[]){2, 0}, 2);
	assert_true(passes(&later, now_ns, 1, 6, SYN));
	assert_false(passes(&later, now_ns, 1, 7, SYN));
	assert_true(passes(&later, now_ns, 1, 1, RST));
	assert_true(passes(&later, now_ns, 1, 8, SYN));
	assert_shared(&later, now_ns, 4, (uint64_t[]){2, 1}, 2);
	rig_end(&later);
	rig_end(&rig);
}

/* ---- floods, and a full table ---- */

#define FLOOD_CONNECTIONS 200
#define FLOOD_SYNS 60000

static void flood(uint32_t key_fields)
{
	uint64_t now_ns = RIG_START_NS;
	struct weir_connection_figures figures;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1024, key_fields, MANY);
	for (uint32_t i = 0; i < FLOOD_CONNECTIONS; i++) {
		assert_true(passes(&rig, now_ns, i, 1024, SYN));
		assert_true(passes(&rig, now_ns, i, 1024, ACK));
	}
	/* Three seconds: longer than half-open ones last, and shorter than open ones do. */
	for (uint32_t i = 0; i < FLOOD_SYNS; i++) {
		now_ns += 3 * SECOND / FLOOD_SYNS;
		passes(&rig, now_ns, 0x100000 + i, 1024, SYN);
	}
	sweep_check(&rig, now_ns);
	for (uint32_t i = 0; i < FLOOD_CONNECTIONS; i++)
		assert_true(passes(&rig, now_ns, i, 1024, ACK));
	figures = figures_of(&rig, 0, now_ns);
	assert_int_equal(figures.learned + figures.returned, 0); /* so every one of them was still there */
	assert_true(figures.evicted > FLOOD_SYNS / 2);
	now_ns += 2 * SECOND;
	assert_int_equal(figures_of(&rig, 0, now_ns).now, FLOOD_CONNECTIONS);
	assert_int_equal(sweep_check(&rig, now_ns).connections, FLOOD_CONNECTIONS);
}

CASE(flood_of_syns_drives_out_nobody_who_has_talked_and_leaves_no_count, flood(0));
CASE(flood_of_sources_drives_out_no_flow_that_has_talked, flood(WEIR_KEY_SOURCE));

CLAIM(flood_of_datagrams_evicts_no_flow_that_came_twice)
{
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1024, 0, MANY);
	for (uint32_t i = 0; i < 2 * FLOOD_CONNECTIONS; i++)
		assert_true(passes(&rig, now_ns, i / 2, 1024, 0));
	for (uint32_t i = 0; i < FLOOD_SYNS; i++)
		passes(&rig, ++now_ns, 0x100000 + i, 1024, 0);
	for (uint32_t i = 0; i < FLOOD_CONNECTIONS; i++)
		assert_true(passes(&rig, now_ns, i, 1024, 0));
	/* None of them was inserted twice. */
	assert_int_equal(figures_of(&rig, 0, now_ns).opened, FLOOD_CONNECTIONS + FLOOD_SYNS);
}

CLAIM(connection_of_a_flow_that_was_evicted_makes_no_room_when_it_is_reused)
{
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1, WEIR_KEY_SOURCE, 3);
	for (uint16_t port = 0; port < 3; port++)
		assert_true(passes(&rig, now_ns, 0, port, SYN) && passes(&rig, now_ns, 0, port, ACK));
	now_ns += 2 * SECOND; /* so the flows that come now would last longer */
	for (uint32_t source = 1; source <= WEIR_FLOW_WAYS; source++)
		assert_true(passes(&rig, now_ns, source, 0, SYN) && passes(&rig, now_ns, source, 0, ACK));
	assert_int_equal(figures_of(&rig, 0, now_ns).evicted, 3);
	for (uint16_t port = 3; port < 6; port++)
		assert_true(passes(&rig, now_ns, 0, port, SYN));
	assert_false(passes(&rig, now_ns, 0, 0, SYN));
	assert_false(passes(&rig, now_ns, 0, 6, SYN));
	sweep_check(&rig, now_ns);
}

CLAIM(full_table_evicts_and_counts_it)
{
	const uint32_t asked = 2000;
	uint64_t now_ns = RIG_START_NS;
	struct weir_connection_figures figures;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 128, 1024, 0, MANY);
	for (uint32_t i = 0; i < asked; i++) {
		assert_true(passes(&rig, now_ns, i, 1024, SYN));
		assert_true(passes(&rig, now_ns, i, 1024, ACK));
		now_ns += 1000;
	}
	figures = figures_of(&rig, 0, now_ns);
	assert_int_equal(figures.opened, asked);
	assert_true(figures.now <= rig.image->config.sizes[WEIR_TABLE_CONNECTIONS] * WEIR_FLOW_WAYS);
	assert_true(figures.now >= 128);
	assert_int_equal(figures.evicted, asked - figures.now);
	assert_int_equal(rig_rule_counters(&rig, 0).evicted, figures.evicted);
	assert_int_equal(sweep_check(&rig, now_ns).connections, figures.now);
}

/* ---- learned ones and ghosts ---- */

/* Two hundred forged packets of a hundred ports, as many as the limit allows, lock nobody out. */
static void forged_packets_that_talk_take_no_place(uint32_t key_fields)
{
	uint64_t now_ns = RIG_START_NS;
	struct weir_connection_figures figures;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1024, key_fields, 100);
	for (uint16_t port = 0; port < 200; port++)
		assert_true(passes(&rig, now_ns++, 1, port % 100, ACK));
	for (uint16_t port = 100; port < 201; port++)
		assert_int_equal(passes(&rig, now_ns, 1, port, SYN), port < 200);
	figures = figures_of(&rig, 0, now_ns);
	assert_int_equal(figures.learned, 100);
	assert_int_equal(figures.now, 100);
	assert_int_equal(sweep_check(&rig, now_ns).connections, 100);
}

CASE(forged_packets_that_talk_lock_no_source_out, forged_packets_that_talk_take_no_place(WEIR_KEY_SOURCE));
CASE(forged_packets_that_talk_lock_nobody_out_of_a_resource, forged_packets_that_talk_take_no_place(0));

#define HELD 40 /* connections of one source, which are evicted */

/* They talk again when others have opened connections, so many percent of what the table has room for. */
static struct weir_connection_figures talk_again(uint32_t percent, bool are_half_open, uint64_t silence_ns)
{
	uint64_t now_ns = RIG_START_NS;
	struct weir_connection_figures figures;
	uint32_t others;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 128, 65536, WEIR_KEY_SOURCE, HELD);
	others = rig.image->config.sizes[WEIR_TABLE_CONNECTIONS] * WEIR_FLOW_WAYS * percent / 100;
	for (uint16_t port = 0; port < HELD; port++) {
		assert_true(passes(&rig, now_ns, 1, port, SYN));
		assert_true(are_half_open || passes(&rig, now_ns, 1, port, ACK));
	}
	now_ns += silence_ns;
	for (uint32_t source = 2; source < 2 + others; source++) {
		now_ns += 1000;
		assert_true(passes(&rig, now_ns, source, 1, SYN) && passes(&rig, now_ns, source, 1, ACK));
	}
	for (uint16_t port = 0; port < HELD; port++)
		assert_true(passes(&rig, now_ns, 1, port, ACK));
	figures = figures_of(&rig, 0, now_ns);
	/* In a full table they push each other out again. */
	assert_true(percent || !passes(&rig, now_ns, 1, HELD, SYN));
	sweep_check(&rig, now_ns);
	return figures;
}

CLAIM(connection_that_was_evicted_counts_again_when_it_talks)
{
	struct weir_connection_figures figures = talk_again(150, false, 0);

	assert_true(figures.evicted > HELD);
	assert_true(figures.returned > HELD / 2);
	assert_int_equal(figures.learned, 0);
}

CLAIM(connection_that_was_silent_for_too_long_counts_again_when_it_talks)
{
	struct weir_connection_figures figures = talk_again(0, false, 8 * SECOND);

	assert_int_equal(figures.returned, HELD);
	figures = talk_again(0, true, 2 * SECOND);
	assert_int_equal(figures.returned, HELD);
	/* though its place was taken meanwhile: that is no eviction */
	figures = talk_again(80, false, 8 * SECOND);
	assert_int_equal(figures.returned, HELD);
	assert_int_equal(figures.learned, 0);
}

/* ---- figures ---- */

/* The entry of the flow of this source, in a table of one set. */
static struct weir_connection_flow flow_of(const struct rig *rig, uint32_t source)
{
	const uint32_t address = htonl(0x0a000000 | source);
	struct weir_connection_flow_set set;

	assert_int_equal(rig->image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 1);
	assert_int_equal(
		weir_array_read(weir_object_map_fd(rig->object, WEIR_TABLE_CONNECTION_FLOWS), &set, 1, sizeof(set)), 0);
	for (int way = 0; way < WEIR_FLOW_WAYS; way++)
		if (!memcmp(set.flow[way].key.source, &address, sizeof(address)))
			return set.flow[way];
	fail_msg("10.x.x.%u has no entry", source);
	return set.flow[0];
}

static void assert_figures(const struct rig *rig, uint64_t now_ns, uint64_t opened, uint64_t max)
{
	const struct weir_connection_figures figures = figures_of(rig, 0, now_ns);

	assert_int_equal(figures.opened, opened);
	assert_int_equal(figures.now, opened);
	assert_int_equal(figures.max, max);
	assert_int_equal(sweep_check(rig, now_ns).connections, opened);
}

/* Behind it a rule of all sources admits one packet in 10 ms. */
CLAIM(first_opening_that_a_later_rule_drops_leaves_no_figures)
{
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};
	size_t all;

	begin(&rig, 4096, 1);
	limit(&rig, WEIR_KEY_SOURCE, 5);
	all = rig_resource(&rig, PORT, 0);
	rig.ruleset->resources[all].match.has_protocol = false;
	rig_rule(&rig, all, WEIR_WINDOW_LEAP, 1, 10 * MS, 1);
	rig_load_here(&rig);
	assert_true(passes(&rig, now_ns, 1, 1, SYN));
	assert_false(passes(&rig, now_ns, 2, 1, SYN));
	assert_int_equal(flow_of(&rig, 2).opened, 0);
	assert_int_equal(flow_of(&rig, 2).max, 0);
	assert_figures(&rig, now_ns, 1, 1);
	now_ns += 20 * MS;
	assert_true(passes(&rig, now_ns, 2, 1, SYN));
	assert_int_equal(flow_of(&rig, 2).opened, 1);
	assert_int_equal(flow_of(&rig, 2).max, 1);
	assert_figures(&rig, now_ns, 2, 2);
}

/* A connection that is over, or was never counted, has an entry already. */
CLAIM(first_opening_of_a_source_may_be_of_a_connection_that_is_known)
{
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1, WEIR_KEY_SOURCE, 1);
	assert_true(passes(&rig, now_ns, 1, 1, ACK));
	assert_true(passes(&rig, now_ns, 2, 1, FIN | ACK));
	for (uint32_t source = 1; source <= 2; source++) {
		assert_true(passes(&rig, now_ns, source, 1, SYN));
		assert_false(passes(&rig, now_ns, source, 2, SYN));
		assert_int_equal(flow_of(&rig, source).opened, 1);
		assert_int_equal(flow_of(&rig, source).max, 1);
	}
	assert_figures(&rig, now_ns, 2, 2);
}

CLAIM(handshake_is_timed_from_the_first_syn)
{
	const uint64_t took_us[] = {0, 1, 3, 1000, 300000};
	uint64_t now_ns = RIG_START_NS;
	struct weir_connection_figures figures;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1024, WEIR_KEY_SOURCE, 10);
	for (uint32_t i = 0; i < ARRAY_SIZE(took_us); i++) {
		assert_true(passes(&rig, now_ns, 1, 1024 + i, SYN));
		assert_true(passes(&rig, now_ns + took_us[i] * 500, 1, 1024 + i, SYN)); /* again, half-way */
		now_ns += took_us[i] * 1000;
		assert_true(passes(&rig, now_ns, 1, 1024 + i, ACK));
		if (i)
			assert_int_equal(figures_of(&rig, 0, now_ns).shortest_us, 0);
	}
	figures = figures_of(&rig, 0, now_ns);
	assert_int_equal(figures.handshakes, 5);
	assert_int_equal(figures.handshake_us, 0 + 1 + 3 + 1000 + 300000);
	assert_int_equal(figures.handshake_step[0], 2);
	assert_int_equal(figures.handshake_step[1], 1);
	assert_int_equal(figures.handshake_step[9], 1);
	assert_int_equal(figures.handshake_step[18], 1);
}

/* Else one forged packet before each SYN would be enough to open as many as one likes. */
CLAIM(stray_packet_before_an_opening_lets_nobody_past_the_limit)
{
	static const uint8_t strays[] = {ACK, SYN | ACK, 0x08};
	uint64_t now_ns = RIG_START_NS;
	unsigned int opened = 0;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1024, WEIR_KEY_SOURCE, 2);
	for (uint16_t port = 1024; port < 1054; port++) {
		assert_true(passes(&rig, now_ns++, 1, port, strays[port % ARRAY_SIZE(strays)]));
		opened += passes(&rig, now_ns++, 1, port, SYN);
		assert_true(passes(&rig, now_ns++, 1, port, ACK));
	}
	assert_int_equal(opened, 2);
}

/* A connection's word holds some bits of the step only: one that is over must not come back when they come round. */
CLAIM(connection_that_is_over_stays_so_when_65536_steps_have_gone)
{
	uint64_t now_ns = RIG_START_NS, step_ns;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1024, WEIR_KEY_SOURCE, 1);
	step_ns = rig.image->config.connection_step_ns[WEIR_CONNECTION_CLASS_HALF];
	assert_true(passes(&rig, now_ns, 1, 1024, SYN));
	now_ns += 65536 * step_ns;
	assert_true(passes(&rig, now_ns, 1, 1025, SYN));
	assert_false(passes(&rig, now_ns, 1, 1024, SYN));
}

/* ---- packets that close ---- */

#define SEGMENT_BYTES_MAX 512 /* a longer segment closes, whatever its checksum */

struct closing {
	uint8_t family;
	uint8_t flags;
	enum packet_checksum checksum;
	uint32_t payload_bytes;
	bool more_fragments;
	bool closes;
};

static struct packet_spec closing_spec(const struct closing *closing, uint16_t port)
{
	struct packet_spec spec = closing->family == 4 ? packet_udp("10.0.0.1", port, "192.0.2.80", PORT, 0)
						       : packet_udp("2001:db8::1", port, "2001:db8::80", PORT, 0);

	spec.protocol = IPPROTO_TCP;
	return spec;
}

static bool passes_spec(struct rig *rig, uint64_t now_ns, const struct packet_spec *spec)
{
	uint8_t frame[PACKET_BYTES_MAX];

	return rig_passes(rig, now_ns, frame, packet_build(spec, frame));
}

/* A source has one connection open, and one is allowed: a second one shows whether that was closed. Rule 0 follows
 * them, too, so the checksum is verified for two.
 */
static void check_closing(struct rig *rig, uint64_t *now_ns, const struct closing *closing)
{
	struct packet_spec first = closing_spec(closing, 1024), second = closing_spec(closing, 1025);
	const uint8_t number = *now_ns - RIG_START_NS;

	first.source[2] = second.source[2] = first.source[15] = second.source[15] = number;
	first.tcp_flags = second.tcp_flags = SYN;
	assert_true(passes_spec(rig, (*now_ns)++, &first));
	first.tcp_flags = closing->flags;
	first.checksum = closing->checksum;
	first.payload_bytes = closing->payload_bytes;
	first.more_fragments = closing->more_fragments;
	first.option_words = closing->payload_bytes % 3; /* and headers that are not usual */
	assert_true(passes_spec(rig, (*now_ns)++, &first));
	assert_int_equal(passes_spec(rig, (*now_ns)++, &second), closing->closes);
}

static void start_closing(struct rig *rig)
{
	begin(rig, 4096, 1024);
	limit(rig, WEIR_KEY_SOURCE, MANY);
	limit(rig, WEIR_KEY_SOURCE, 1);
	rig_load_here(rig);
}

static void end_closing(struct rig *rig, uint64_t now_ns, uint64_t closed)
{
	for (size_t rule = 0; rule < 2; rule++) {
		const struct weir_connection_figures figures = figures_of(rig, rule, now_ns);

		assert_int_equal(figures.closed_by_fin + figures.closed_by_reset, closed);
	}
	sweep_check(rig, now_ns);
	rig_end(rig);
}

CLAIM(packet_closes_only_if_its_checksum_is_right_or_unfinished)
{
	static const uint8_t flags[] = {FIN | ACK, RST, RST | ACK, FIN | RST};
	static const uint32_t payload_bytes[] = {0, 1, 2, 7, 300, SEGMENT_BYTES_MAX - 28};
	uint64_t now_ns = RIG_START_NS, closed = 0;
	struct rig rig;

	start_closing(&rig);
	for (enum packet_checksum checksum = PACKET_CHECKSUM_RIGHT; checksum <= PACKET_CHECKSUM_UNFINISHED; checksum++)
		for (size_t i = 0; i < ARRAY_SIZE(payload_bytes); i++)
			for (uint8_t family = 4; family <= 6; family += 2) {
				const struct closing closing = {
					.family = family,
					.flags = flags[i % ARRAY_SIZE(flags)],
					.checksum = checksum,
					.payload_bytes = payload_bytes[i],
					.closes = checksum != PACKET_CHECKSUM_WRONG,
				};

				check_closing(&rig, &now_ns, &closing);
				closed += closing.closes;
			}
	end_closing(&rig, now_ns, closed);
}

CLAIM(long_segment_closes_and_a_fragment_does_not)
{
	static const struct closing closings[] = {
		{4, FIN | ACK, PACKET_CHECKSUM_WRONG, SEGMENT_BYTES_MAX - 20 + 1, .closes = true},
		{6, FIN | ACK, PACKET_CHECKSUM_WRONG, 1400, .closes = true},
		{4, RST, PACKET_CHECKSUM_RIGHT, 0, .more_fragments = true},
	};
	uint64_t now_ns = RIG_START_NS;
	struct rig rig;

	start_closing(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(closings); i++)
		check_closing(&rig, &now_ns, &closings[i]);
	end_closing(&rig, now_ns, 2);
}

/* What a server would not read does not prolong a connection, either. */
CLAIM(packet_with_a_wrong_checksum_prolongs_nothing)
{
	const struct closing closing = {.family = 4};
	struct packet_spec first = closing_spec(&closing, 1024), second = closing_spec(&closing, 1025);
	uint64_t now_ns = RIG_START_NS;
	_cleanup_(rig_end) struct rig rig = {};

	start_alone(&rig, 4096, 1024, WEIR_KEY_SOURCE, 1);
	first.tcp_flags = second.tcp_flags = SYN;
	assert_true(passes_spec(&rig, now_ns, &first));
	first.tcp_flags = RST;
	first.checksum = PACKET_CHECKSUM_WRONG;
	assert_true(passes_spec(&rig, now_ns + 900 * MS, &first));
	assert_false(passes_spec(&rig, now_ns + 990 * MS, &second));
	assert_true(passes_spec(&rig, now_ns + 1400 * MS, &second));
}

RUN_CLAIMS(NULL, NULL)
