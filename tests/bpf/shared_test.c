// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries of sets that all CPUs share (bpf/kinds/flow_set.h), when sets are full: two new flows that two CPUs bring to
 * one set at once get an entry each, no flow goes by what another left in its entry, and a flow that was evicted
 * continues with what it had used, on whichever CPU it comes back.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

#define CPUS 2
#define PORT 53 /* of the first rule's resource; the second's is the next */
#define FRAME_BYTES 60
#define SOURCE_PORT_OFFSET 34
#define FLOWS_PER_CPU 512      /* the least: few sets */
#define LONG_NS (200 * SECOND) /* after so long a throttled flow is over, and one that warms up cold */

/* Flows of each rule that share one set: more than it has ways, so that each is gone by its next turn. */
#define NEIGHBOURS 40

struct pair {
	struct rig rig;
	int cpu[CPUS];
	uint32_t source[CPUS][NEIGHBOURS]; /* of the rule that this CPU's packets meet */
};

static void build_frame(uint16_t port, uint32_t source, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", port, 0);

	memcpy(spec.source, &source, sizeof(source));
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
}

static bool passes(struct pair *pair, uint16_t port, uint32_t source)
{
	static uint8_t frame[PACKET_BYTES_MAX];
	volatile struct weir_harness *harness = weir_object_harness(pair->rig.object);

	build_frame(port, source, frame);
	return rig_passes(&pair->rig, harness->clock_ns, frame, FRAME_BYTES);
}

static void pair_load(struct pair *pair)
{
	rig_load(&pair->rig, true);
	weir_object_harness(pair->rig.object)->clock_ns = RIG_START_NS;
	rig_cpus(pair->cpu, CPUS);
	rig_attach(&pair->rig);
}

/* The latest insertion into set 0: all kinds of sets begin with it. */
static uint64_t latest_insertion(const struct pair *pair, enum weir_table_id map)
{
	union {
		uint64_t inserted;
		struct weir_warming_set warming;
		struct weir_throttle_set throttled;
		struct weir_connection_flow_set connections;
	} found;
	uint32_t set = 0;

	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(pair->rig.object, map), &set, &found), 0);
	return found.inserted;
}

/* Find flows of set 0, by trying. That fills the set. */
static void find_neighbours(struct pair *pair, enum weir_table_id map)
{
	cpu_set_t before;

	rig_stay(&before);
	for (int which = 0; which < CPUS; which++) {
		uint32_t found = 0;

		for (uint32_t source = 1; found < NEIGHBOURS; source++) {
			uint64_t latest = latest_insertion(pair, map);

			weir_object_harness(pair->rig.object)->clock_ns += LONG_NS;
			passes(pair, PORT + which, source);
			if (latest_insertion(pair, map) != latest)
				pair->source[which][found++] = source;
		}
	}
	rig_roam(&before);
}

/* ---- two new flows ---- */

#define ROUNDS 20000
#define PACKETS 6 /* of a flow in a round */

struct racer {
	struct pair *pair;
	atomic_uint *arrived;
	int which, err;
	uint32_t passed[ROUNDS];
	pthread_t thread;
};

static void *race(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct racer *racer = data;
	struct pair *pair = racer->pair;
	uint8_t frame[PACKET_BYTES_MAX];

	rig_pin(pair->cpu[racer->which]);
	options.data_in = frame;
	options.data_size_in = FRAME_BYTES;
	options.repeat = 1;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		build_frame(PORT + racer->which, pair->source[racer->which][round % NEIGHBOURS], frame);
		rig_line_up(racer->arrived, CPUS, 2 * round);
		if (racer->which == 0)
			weir_object_harness(pair->rig.object)->clock_ns += LONG_NS;
		rig_line_up(racer->arrived, CPUS, 2 * round + 1);
		for (int i = 0; i < PACKETS; i++) {
			frame[SOURCE_PORT_OFFSET] = i; /* each of another connection */
			racer->err |= bpf_prog_test_run_opts(weir_object_program_fd(pair->rig.object), &options);
			racer->passed[round] += options.retval == XDP_PASS;
		}
	}
	return NULL;
}

/* All other entries are of flows that need not be remembered. Just `fit` packets of a flow pass; fewer only where a CPU
 * did not run while it had claimed a way of the set, and the other's packets were dropped.
 */
static void two_new_flows_meet(struct pair *pair, uint32_t fit)
{
	static struct racer racers[CPUS];
	uint64_t stalled, missing = 0;
	atomic_uint arrived = 0;

	memset(racers, 0, sizeof(racers));
	for (int i = 0; i < CPUS; i++) {
		racers[i].pair = pair;
		racers[i].which = i;
		racers[i].arrived = &arrived;
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		const uint32_t most = i == 0 ? fit : PACKETS;

		pthread_join(racers[i].thread, NULL);
		assert_int_equal(racers[i].err, 0);
		for (uint32_t round = 0; round < ROUNDS; round++) {
			assert_in_range(racers[i].passed[round], 0, most);
			missing += most - racers[i].passed[round];
		}
	}
	stalled = rig_rule_counters(&pair->rig, 0).stalled + rig_rule_counters(&pair->rig, 1).stalled;
	print_message("%llu packets stalled, %llu did not pass that fit\n", (unsigned long long)stalled,
		      (unsigned long long)missing);
	assert_true(missing <= stalled);
	assert_int_equal(rig_rule_counters(&pair->rig, 0).evicted + rig_rule_counters(&pair->rig, 1).evicted, 0);
}

/* A flow that gets the other's entry loses its TAT, and has one time too many. */
CLAIM_WITHIN(two_new_throttled_flows_of_a_full_set_get_an_entry_each, NULL, rig_detach)
{
	struct pair pair = {};

	rig_require(CPUS);
	rig_begin(&pair.rig, FLOWS_PER_CPU);
	for (int which = 0; which < CPUS; which++) {
		struct weir_ruleset_rule *rule =
			rig_rule(&pair.rig, rig_resource(&pair.rig, PORT + which, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 1,
				 SECOND, 1);

		rule->behavior = WEIR_BEHAVIOR_THROTTLING;
		rule->queueing_ms_max = which ? (PACKETS - 1) * 1000 : 0;
	}
	pair_load(&pair);
	find_neighbours(&pair, WEIR_TABLE_THROTTLED_FLOWS);
	two_new_flows_meet(&pair, 1);
	rig_end(&pair.rig);
}

/* A flow that gets the other's entry may be evaluated against what the other is allowed: a million times as much. */
CLAIM_WITHIN(two_new_warming_flows_of_a_full_set_get_an_entry_each, NULL, rig_detach)
{
	struct pair pair = {};

	rig_require(CPUS);
	rig_begin(&pair.rig, FLOWS_PER_CPU);
	for (int which = 0; which < CPUS; which++) {
		struct weir_ruleset_rule *rule =
			rig_rule(&pair.rig, rig_resource(&pair.rig, PORT + which, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP,
				 which ? 9000000 : 9, SECOND, 10);

		rule->strategy = WEIR_STRATEGY_WARM_UP;
		rule->warm_up = (struct weir_warm_up_fields){.period_s = 10, .cold_factor = 3};
	}
	pair_load(&pair);
	find_neighbours(&pair, WEIR_TABLE_WARMING_FLOWS);
	two_new_flows_meet(&pair, 3);
	rig_end(&pair.rig);
}

/* A flow that gets the other's entry loses count of its connections, and has one too many. */
CLAIM_WITHIN(two_new_flows_with_connections_of_a_full_set_get_an_entry_each, NULL, rig_detach)
{
	struct pair pair = {};

	rig_require(CPUS);
	rig_begin(&pair.rig, FLOWS_PER_CPU);
	pair.rig.ruleset->settings.connections = 65536;
	pair.rig.ruleset->settings.connection_flows = 1;
	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		pair.rig.ruleset->settings.connection_timeout_ms[class] = 1000;
	for (int which = 0; which < CPUS; which++)
		rig_rule(&pair.rig, rig_resource(&pair.rig, PORT + which, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP,
			 which ? PACKETS : 1, 0, 0)
			->metric = WEIR_METRIC_CONCURRENCY;
	pair_load(&pair);
	find_neighbours(&pair, WEIR_TABLE_CONNECTION_FLOWS);
	two_new_flows_meet(&pair, 1);
	rig_end(&pair.rig);
}

/* ---- what another left ---- */

/* Six bits of the tag tell whose TAT it is, and one flow in 64 has the same. */
CLAIM(new_flow_does_not_wait_for_the_one_whose_entry_it_gets)
{
	struct weir_ruleset_rule *rule;
	struct pair pair = {};
	cpu_set_t before;

	rig_begin(&pair.rig, FLOWS_PER_CPU);
	rule = rig_rule(&pair.rig, rig_resource(&pair.rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 1, SECOND, 1);
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = 10000;
	rig_load(&pair.rig, true);
	weir_object_harness(pair.rig.object)->clock_ns = RIG_START_NS;
	rig_stay(&before);
	for (uint32_t source = 1; source <= 20 * FLOWS_PER_CPU; source++) {
		assert_true(passes(&pair, PORT, source));
		assert_int_equal(weir_object_harness(pair.rig.object)->wait_ns, 0);
		assert_true(passes(&pair, PORT, source));
		assert_int_equal(weir_object_harness(pair.rig.object)->wait_ns, SECOND);
	}
	rig_roam(&before);
	assert_true(rig_rule_counters(&pair.rig, 0).evicted > 10 * FLOWS_PER_CPU);
	rig_end(&pair.rig);
}

static bool has_tag(const struct weir_flow_set *set, uint32_t tag)
{
	for (int way = 0; way < WEIR_FLOW_WAYS; way++)
		if (set->tag[way] == tag)
			return true;
	return false;
}

/* The set of a table that has a flow, which is the only one there. */
static uint32_t set_in_use(const struct rig *rig, struct weir_warming_set *ret_set)
{
	const uint32_t sets = rig->image->config.sizes[WEIR_TABLE_WARMING_FLOWS];

	for (uint32_t index = 0; index < sets; index++) {
		assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, WEIR_TABLE_WARMING_FLOWS), &index,
						     ret_set),
				 0);
		if (ret_set->flows.tag[0])
			return index;
	}
	fail_msg("no flow is there");
	return 0;
}

/* Its first packets of a second are blocked, since it used its limit up before, so it is the first to be cold of all
 * that are there.
 */
CLAIM(flood_of_single_packets_does_not_evict_a_flow_that_warms_up)
{
	const uint32_t flow = 0x0100000a;
	struct weir_ruleset_rule *rule;
	struct weir_warming_set set = {};
	uint32_t index, tag, gone = 0, newcomer = 0x0b000000;
	struct pair pair = {};

	rig_begin(&pair.rig, FLOWS_PER_CPU);
	rule = rig_rule(&pair.rig, rig_resource(&pair.rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 40, SECOND, 10);
	rule->strategy = WEIR_STRATEGY_WARM_UP;
	rule->warm_up = (struct weir_warm_up_fields){.period_s = 2, .cold_factor = 3};
	rig_load_here(&pair.rig);
	assert_true(passes(&pair, PORT, flow));
	index = set_in_use(&pair.rig, &set);
	tag = set.flows.tag[0];
	for (uint32_t ms = 1; ms < 5000; ms++) {
		weir_object_harness(pair.rig.object)->clock_ns = RIG_START_NS + ms * MS;
		if (ms % 66 == 0) {
			assert_int_equal(
				bpf_map_lookup_elem(weir_object_map_fd(pair.rig.object, WEIR_TABLE_WARMING_FLOWS),
						    &index, &set),
				0);
			gone += !has_tag(&set.flows, tag);
			for (int i = 0; i < 6; i++)
				passes(&pair, PORT, flow);
		}
		for (int i = 0; ms > 1000 && i < 20; i++)
			passes(&pair, PORT, newcomer++);
	}
	assert_int_equal(gone, 0);
	rig_end(&pair.rig);
}

/* ---- tables of any fullness, on two CPUs ---- */

/*
 * Two CPUs send of every flow, by the real clock, while a table has a quarter as many flows as slots, as many, twice or
 * four times as many. Limits are for an hour, in which nothing comes back: no flow may ever pass more, wherever it was
 * evicted and came back, unless a ghost was lost, and with `whenFull: aggregate` not even then. A penalty lasts an
 * hour, too: what is sent after one of the flow's packets was blocked may not pass. But where a CPU that has claimed a
 * way of the set stalls, no penalty begins for a packet that is blocked meanwhile: the flow's next one begins it, and a
 * stall is counted. So flows pass again at most as often as there are stalls.
 */
#define HOUR_NS (3600 * SECOND)
#define HOST_LIMIT 12u
#define HOST_PACKETS 40u /* of each flow, on each CPU */
#define HOSTS_MAX 8192u
#define SOURCE_OFFSET (14 + 12) /* of the IPv4 source address in the frame */

static void by_tokens(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->window = WEIR_WINDOW_TOKENS;
	rule->burst_micro = rule->threshold_micro;
}

/* All of an hour's packets may wait; the first does not. */
static void by_tats(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = HOUR_NS / MS / HOST_LIMIT * (HOST_LIMIT - 1);
}

static void by_occupying(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rig->ruleset->resources[0].is_prioritized = true;
	rule->occupies = true;
}

/* Of a bucket that is full again at once. */
static void by_penalties(struct rig *rig, struct weir_ruleset_rule *rule)
{
	rule->interval_ns = 50 * MS;
	by_tokens(rig, rule);
	rule->penalty_ms = rule->penalty_ms_max = HOUR_NS / MS;
}

static const struct kind {
	const char *name;
	void (*shape)(struct rig *rig, struct weir_ruleset_rule *rule);
	enum weir_table_id table;
	bool aggregates; /* with `whenFull: aggregate` nothing of it is lost */
} kinds[] = {
	{"tokens", by_tokens, WEIR_TABLE_TOKEN_FLOWS, true},
	{"Throttling", by_tats, WEIR_TABLE_THROTTLED_FLOWS, true},
	{"occupy", by_occupying, WEIR_TABLE_OCCUPY_FLOWS, true},
	{"penalties", by_penalties, WEIR_TABLE_PENALISED_FLOWS, false},
};

struct sender {
	const struct rig *rig;
	const struct kind *kind;
	atomic_uint *arrived;
	int cpu, cpus, err;
	uint32_t seed, hosts;
	uint8_t frame[PACKET_BYTES_MAX];
	uint8_t passed[HOSTS_MAX];
	uint32_t freed;	      /* how often a flow passed again although one of its packets had been blocked */
	atomic_uint *changes; /* of each flow between free and blocked: if odd, it is blocked */
	pthread_t thread;
};

static bool sends(struct sender *sender)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = sender->frame, .data_size_in = FRAME_BYTES);

	sender->err |= bpf_prog_test_run_opts(weir_object_program_fd(sender->rig->object), &options);
	return options.retval == XDP_PASS;
}

static void *send_of_all(void *data)
{
	struct sender *sender = data;

	rig_pin(sender->cpu);
	rig_line_up(sender->arrived, sender->cpus, 0);
	for (uint32_t i = 0; i < HOST_PACKETS * sender->hosts && !sender->err; i++) {
		uint32_t host, address, change;

		sender->seed = sender->seed * 1664525 + 1013904223;
		host = (uint64_t)sender->seed * sender->hosts >> 32;
		address = htonl(0x0a000000 + host);
		memcpy(sender->frame + SOURCE_OFFSET, &address, sizeof(address));
		if (sender->kind->shape != by_penalties) {
			sender->passed[host] += sends(sender);
			continue;
		}
		change = atomic_load(&sender->changes[host]);
		if (change % 2 == 0) {
			while (sends(sender))
				;
			atomic_compare_exchange_strong(&sender->changes[host], &change, change + 1);
		} else if (sends(sender)) {
			sender->freed += atomic_compare_exchange_strong(&sender->changes[host], &change, change + 1);
		}
	}
	return NULL;
}

/* Ghosts that were lost while they counted, of flows that are evicted from shared sets. */
static uint64_t ghosts_lost(const struct rig *rig, enum weir_table_id table)
{
	const uint32_t sets = rig->image->config.sizes[table];
	struct weir_row_ghost_set row_head;
	struct weir_ghost_set head;
	uint64_t lost = 0;
	uint32_t key;

	if (table == WEIR_TABLE_GHOSTS) {
		key = WEIR_GHOST_HEAD(sets);
		assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, table), &key, &head), 0);
		return head.displaced;
	}
	for (key = sets; key < sets + WEIR_ROW_GHOST_HEADS; key++) {
		assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, table), &key, &row_head), 0);
		lost += row_head.displaced;
	}
	return lost;
}

/* Send, and count. Returns how many flows got more than they may. */
static uint32_t flows_above(const struct kind *kind, int cpus, uint32_t quarters_a_slot, bool aggregates,
			    uint64_t *ret_lost)
{
	static struct sender senders[CPUS];
	static atomic_uint changes[HOSTS_MAX];
	uint32_t above = 0, freed = 0, most = 0, passed = 0, hosts;
	struct weir_ruleset_rule *rule;
	atomic_uint arrived = 0;
	uint64_t stalled;
	_cleanup_(rig_end) struct rig rig = {};
	int cpu[CPUS];

	rig_require(CPUS);
	rig_begin(&rig, FLOWS_PER_CPU);
	rule = rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, HOST_LIMIT, HOUR_NS, 10);
	rule->aggregates = aggregates;
	kind->shape(&rig, rule);
	rig_load(&rig, false);
	rig_cpus(cpu, CPUS);
	rig_attach(&rig);
	hosts = rig.image->config.sizes[kind->table] * WEIR_FLOW_WAYS * quarters_a_slot / 4;
	assert_in_range(hosts, 1, HOSTS_MAX);
	memset((void *)changes, 0, sizeof(changes));
	memset(senders, 0, sizeof(senders));
	for (int i = 0; i < cpus; i++) {
		senders[i] = (struct sender){
			.rig = &rig,
			.kind = kind,
			.arrived = &arrived,
			.cpu = cpu[i],
			.cpus = cpus,
			.seed = i + 1,
			.hosts = hosts,
			.changes = changes,
		};
		build_frame(PORT, 0, senders[i].frame);
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_of_all, &senders[i]), 0);
	}
	for (int i = 0; i < cpus; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_int_equal(senders[i].err, 0);
		freed += senders[i].freed;
	}
	stalled = rig_rule_counters(&rig, 0).stalled;
	above = freed > stalled ? freed - stalled : 0;
	for (uint32_t host = 0; host < hosts; host++) {
		const uint32_t of_host = senders[0].passed[host] + senders[1].passed[host];

		above += of_host > HOST_LIMIT;
		passed += of_host;
		most = of_host > most ? of_host : most;
	}
	*ret_lost =
		ghosts_lost(&rig, kind->table == WEIR_TABLE_OCCUPY_FLOWS ? WEIR_TABLE_ROW_GHOSTS : WEIR_TABLE_GHOSTS);
	print_message(
		"%s, %d CPUs, %.2f flows a slot%s: %u of %u above, at most %.2f times; %.3f of what is allowed passed; "
		"%llu evicted, %llu ghosts lost, %llu packets stalled\n",
		kind->name, cpus, quarters_a_slot / 4.0, aggregates ? ", aggregate" : "", above, hosts,
		(double)most / HOST_LIMIT, (double)passed / hosts / HOST_LIMIT,
		(unsigned long long)rig_rule_counters(&rig, 0).evicted, (unsigned long long)*ret_lost,
		(unsigned long long)stalled);
	return above;
}

CLAIM_WITHIN(two_cpus_keep_limits_however_full_a_table_is, NULL, rig_detach)
{
	const uint32_t quarters[] = {1, 4, 8, 16};
	uint64_t lost;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (size_t q = 0; q < ARRAY_SIZE(quarters); q++) {
			uint32_t above = flows_above(&kinds[i], CPUS, quarters[q], false, &lost);

			assert_true(above <= lost);
			assert_true(q == ARRAY_SIZE(quarters) - 1 || !lost); /* there is room */
			if (kinds[i].aggregates)
				assert_int_equal(flows_above(&kinds[i], CPUS, quarters[q], true, &lost), 0);
		}
}

CLAIM_WITHIN(one_cpu_keeps_limits_with_aggregate_at_four_and_eight_flows_a_slot, NULL, rig_detach)
{
	uint64_t lost;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (uint32_t quarters = 16; kinds[i].aggregates && quarters <= 32; quarters += 16)
			assert_int_equal(flows_above(&kinds[i], 1, quarters, true, &lost), 0);
}

RUN_CLAIMS(NULL, NULL)
