// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who is asked when a lease is taken: all that have counted the flow, and nobody else. Two CPUs; in most tests
 * one thread that moves between them under the virtual clock, so that every step is known. Limits are so small
 * that nothing is ever leased beyond the packet: each decision must be that of the plain window.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"
#include "program/array.h"

#define PORT 53
#define SOURCE_OFFSET (14 + 12) /* of the IPv4 source address in the frame */
#define EPOCH_NS (1ull << WEIR_SHARERS_SHIFT_MIN)

struct pair {
	struct rig rig;
	int cpu[2];
	uint64_t edge_ns; /* where an epoch begins, some time after the clock's start */
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes;
};

static cpu_set_t affinity_before;

static int remember_affinity(void **state)
{
	return sched_getaffinity(0, sizeof(affinity_before), &affinity_before);
}

static int restore_affinity(void **state)
{
	return sched_setaffinity(0, sizeof(affinity_before), &affinity_before);
}

static void pair_find_cpus(struct pair *pair)
{
	assert_int_equal(sched_setaffinity(0, sizeof(affinity_before), &affinity_before), 0);
	rig_require(2);
	rig_cpus(pair->cpu, 2);
}

#define FLOWS 512

/* One resource keyed by source, with this limit and room for `flows`, for a machine of `cpus` CPUs (0: this one). */
static void pair_open_for(struct pair *pair, uint32_t flows, uint32_t cpus, enum weir_window_kind window,
			  uint64_t limit, uint64_t interval_ns, bool is_virtual)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 0);

	memset(pair, 0, sizeof(*pair));
	pair_find_cpus(pair);
	pair->frame_bytes = packet_build(&spec, pair->frame);
	pair->edge_ns = (RIG_START_NS / EPOCH_NS + 3) * EPOCH_NS;
	rig_begin(&pair->rig, flows);
	pair->rig.secret = 1; /* under which no two flows of the races share a tag */
	rig_rule(&pair->rig, rig_resource(&pair->rig, PORT, WEIR_KEY_SOURCE), window, limit, interval_ns, 10);
	pair->rig.cpus = cpus;
	rig_load(&pair->rig, is_virtual);
}

static void pair_open(struct pair *pair, enum weir_window_kind window, uint64_t limit, uint64_t interval_ns,
		      bool is_virtual)
{
	pair_open_for(pair, FLOWS, 0, window, limit, interval_ns, is_virtual);
}

/* The next packet is host `host`'s, on CPU number `which` of the two. */
static void pair_aim(struct pair *pair, int which, uint32_t host)
{
	uint32_t address = htonl(0x0a000000 + host);

	rig_pin(pair->cpu[which]);
	memcpy(pair->frame + SOURCE_OFFSET, &address, sizeof(address));
}

static bool pair_passes(struct pair *pair, int which, uint64_t now_ns, uint32_t host)
{
	pair_aim(pair, which, host);
	return rig_passes(&pair->rig, now_ns, pair->frame, pair->frame_bytes);
}

/* The same under the real clock. */
static bool pair_passes_now(struct pair *pair, int which, uint32_t host)
{
	pair_aim(pair, which, host);
	return weir_object_evaluate(pair->rig.object, pair->frame, pair->frame_bytes) == XDP_PASS;
}

static uint32_t pair_pass(struct pair *pair, int which, uint64_t now_ns, uint32_t host, uint32_t count)
{
	uint32_t passed = 0;

	while (count--)
		passed += pair_passes(pair, which, now_ns, host);
	return passed;
}

/* How often another CPU was asked. */
static uint64_t asked(const struct pair *pair)
{
	return rig_rule_counters(&pair->rig, 0).leases;
}

static void close_pair(struct pair *pair)
{
	rig_end(&pair->rig);
}

/* ---- who is asked ---- */

static void a_flow_of_one_cpu_asks_nobody_among(uint32_t cpus)
{
	const uint64_t intervals[] = {SECOND, 100 * MS}; /* narrow rows, wide rows */

	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) {
		_cleanup_(close_pair) struct pair pair = {};

		pair_open_for(&pair, FLOWS, cpus, WEIR_WINDOW_SMOOTH, 20, intervals[i], true);
		/* The clock never goes back: hosts share cells, and one behind its epoch would ask everybody. */
		for (uint32_t packet = 0; packet < 100; packet++)
			for (uint32_t host = 0; host < 10; host++)
				pair_passes(&pair, 0, pair.edge_ns + packet * intervals[i] / 7, host);
		assert_int_equal(asked(&pair), 0);
		assert_true(pair_passes(&pair, 1, pair.edge_ns + 15 * intervals[i], 0));
		assert_int_equal(asked(&pair), 1);
	}
}

CASE_WITHIN(a_flow_of_one_cpu_asks_nobody, remember_affinity, restore_affinity, a_flow_of_one_cpu_asks_nobody_among(0));

/* Above twelve a field names one CPU by its number, or several by bits that CPUs share. */
CASE_WITHIN(a_flow_of_one_cpu_asks_nobody_among_a_thousand, remember_affinity, restore_affinity,
	    a_flow_of_one_cpu_asks_nobody_among(WEIR_CPUS_MAX));

/* Two on one CPU leave one of three for the other. */
static void whoever_counted_is_asked(enum weir_window_kind window, uint64_t first_ns, uint64_t then_ns)
{
	_cleanup_(close_pair) struct pair pair = {};

	/* Strict windows look at a bucket more, and must still fit an epoch. */
	pair_open(&pair, window, 3, 3900 * MS, true);
	assert_int_equal(pair.rig.image->rules[0].asks_all, 0);
	assert_int_equal(pair_pass(&pair, 0, pair.edge_ns + first_ns, 1, 2), 2);
	assert_int_equal(pair_pass(&pair, 1, pair.edge_ns + then_ns, 1, 10), 1);
}

CLAIM_WITHIN(a_cpu_that_counted_is_asked, remember_affinity, restore_affinity)
{
	whoever_counted_is_asked(WEIR_WINDOW_LEAP, 0, 0);
	whoever_counted_is_asked(WEIR_WINDOW_STRICT, 0, 3000 * MS);
}

CLAIM_WITHIN(a_cpu_that_counted_before_the_edge_of_an_epoch_is_asked_behind_it, remember_affinity, restore_affinity)
{
	whoever_counted_is_asked(WEIR_WINDOW_LEAP, -1ull, 0);
	whoever_counted_is_asked(WEIR_WINDOW_STRICT, -1ull, 3899 * MS);
	whoever_counted_is_asked(WEIR_WINDOW_STRICT, -(3000 * MS), 500 * MS);
}

CLAIM_WITHIN(a_rule_that_looks_back_further_than_an_epoch_makes_it_longer, remember_affinity, restore_affinity)
{
	_cleanup_(close_pair) struct pair pair = {};

	pair_open(&pair, WEIR_WINDOW_STRICT, 3, 3600 * SECOND, true);
	assert_int_equal(pair.rig.image->rules[0].asks_all, 0);
	assert_int_equal(pair.rig.image->config.sharers_shift, 42);
	assert_int_equal(pair_pass(&pair, 0, RIG_START_NS, 1, 2), 2);
	assert_int_equal(pair_pass(&pair, 1, RIG_START_NS + 3599 * SECOND, 1, 10), 1);
}

/* ---- what stays behind ---- */

/* A flow, or a whole resource, of so many packets a minute sends a third of them on one CPU, and the rest on the
 * other. Returns how many passed.
 */
static uint32_t pass_after_a_move(struct pair *pair, uint32_t key_fields, bool counts_bytes, uint32_t packets)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 0);
	struct weir_ruleset_rule *rule;
	uint32_t passed;

	memset(pair, 0, sizeof(*pair));
	pair_find_cpus(pair);
	pair->frame_bytes = packet_build(&spec, pair->frame);
	rig_begin(&pair->rig, FLOWS);
	rule = rig_rule(&pair->rig, rig_resource(&pair->rig, PORT, key_fields), WEIR_WINDOW_LEAP,
			packets * (counts_bytes ? pair->frame_bytes : 1), 60 * SECOND, 10);
	rule->counts_bytes = counts_bytes;
	rig_load(&pair->rig, true);
	passed = pair_pass(pair, 1, RIG_START_NS, 1, packets / 3);
	assert_int_equal(passed, packets / 3);
	return passed + pair_pass(pair, 0, RIG_START_NS, 1, packets);
}

/* docs/semantics.md says how much it may be. */
CLAIM_WITHIN(a_flow_that_moves_leaves_no_more_behind_than_64_packets, remember_affinity, restore_affinity)
{
	const uint32_t packets[] = {1000, 40000};
	struct pair pair;

	for (size_t i = 0; i < ARRAY_SIZE(packets); i++)
		for (int counts_bytes = 0; counts_bytes < 2; counts_bytes++) {
			bool is_narrow = !counts_bytes && packets[i] <= WEIR_NARROW_THRESHOLD_MAX;
			uint32_t most = is_narrow ? WEIR_NARROW_LEASE_MAX : 64;

			assert_in_range(pass_after_a_move(&pair, WEIR_KEY_SOURCE, counts_bytes, packets[i]),
					packets[i] - most, packets[i]);
			assert_int_equal(pair.rig.image->rules[0].storage,
					 is_narrow ? WEIR_STORAGE_NARROW : WEIR_STORAGE_MEDIUM);
			close_pair(&pair);
			assert_in_range(pass_after_a_move(&pair, 0, counts_bytes, packets[i]),
					packets[i] - 64 * weir_host_cpus(), packets[i]);
			close_pair(&pair);
		}
}

/* A CPU that the flow has left holds a lease: the flood on the other does not ask it with every packet. */
static void a_flood_past_a_lease_left_behind_asks_seldom(enum weir_window_kind window, uint64_t limit)
{
	const uint64_t bucket_ns = 6 * SECOND, start_ns = RIG_START_NS / bucket_ns * bucket_ns + bucket_ns;
	uint64_t before, asked_in_flood;
	uint32_t passed = 0, sent = 4000;
	_cleanup_(close_pair) struct pair pair = {};

	pair_open(&pair, window, limit, 60 * SECOND, true);
	assert_int_equal(pair_pass(&pair, 1, start_ns, 1, 6), 6); /* two of a lease of four are left */
	assert_int_equal(pair_pass(&pair, 0, start_ns, 1, limit), limit - 8);
	before = asked(&pair);
	for (uint32_t i = 0; i < sent; i++)
		passed += pair_passes(&pair, 0, start_ns + i * bucket_ns / sent, 1);
	asked_in_flood = asked(&pair) - before;
	assert_int_equal(passed, 0);
	assert_in_range(asked_in_flood, 1, 128);

	/* The next packet there gives it back, and nothing of the limit is lost. */
	assert_int_equal(pair_pass(&pair, 1, start_ns + bucket_ns, 1, 1), 1);
	assert_int_equal(pair_pass(&pair, 0, start_ns + bucket_ns, 1, 10), 1);
}

CLAIM_WITHIN(a_lease_left_behind_does_not_turn_off_what_remembers_who_is_over, remember_affinity, restore_affinity)
{
	const uint64_t limits[] = {1000, 40000}; /* narrow rows, medium rows */

	rig_require_shortcut(WEIR_SHORTCUT_OVER);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		a_flood_past_a_lease_left_behind_asks_seldom(WEIR_WINDOW_LEAP, limits[i]);
		a_flood_past_a_lease_left_behind_asks_seldom(WEIR_WINDOW_STRICT, limits[i]);
		a_flood_past_a_lease_left_behind_asks_seldom(WEIR_WINDOW_SMOOTH, limits[i]);
	}
}

/* ---- cells that nobody has used for long ---- */

/* Of their numbers a cell keeps the last eight bits. */
CLAIM_WITHIN(a_cell_never_used_asks_nobody_in_any_epoch, remember_affinity, restore_affinity)
{
	const uint32_t epochs[] = {0, 1, 100, 239, 240, 247, 255};

	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		_cleanup_(close_pair) struct pair pair = {};

		pair_open(&pair, WEIR_WINDOW_LEAP, 3, SECOND, true);
		assert_true(
			pair_passes(&pair, 0, ((RIG_START_NS / EPOCH_NS / 256 + 1) * 256 + epochs[i]) * EPOCH_NS, 1));
		assert_int_equal(asked(&pair), 0);
	}
}

/* Every cell names the other CPU, in an epoch so far ahead of the present one. */
static void name_the_other(struct pair *pair, uint32_t ahead)
{
	const struct weir_config *config = &pair->rig.image->config;
	_cleanup_(weir_freep) uint32_t *cells = calloc(config->sizes[WEIR_TABLE_SHARERS], sizeof(*cells));
	uint32_t epoch = (weir_host_now_ns() >> config->sharers_shift) + ahead;

	assert_non_null(cells);
	for (uint32_t i = 0; i < config->sizes[WEIR_TABLE_SHARERS]; i++)
		cells[i] = epoch << WEIR_SHARERS_EPOCH_SHIFT | 1u << pair->cpu[1];
	assert_int_equal(weir_array_write(weir_object_map_fd(pair->rig.object, WEIR_TABLE_SHARERS), cells,
					  config->sizes[WEIR_TABLE_SHARERS] / WEIR_SHARERS_LINE_CELLS,
					  sizeof(struct weir_sharers_line)),
			 0);
}

/* Under the real clock: it shows that a cell is old, and its own reading does not. */
CLAIM_WITHIN(a_cell_of_a_quarter_of_an_hour_ago_asks_nobody, remember_affinity, restore_affinity)
{
	_cleanup_(close_pair) struct pair pair = {};

	pair_open(&pair, WEIR_WINDOW_LEAP, 3, SECOND, false);
	assert_in_range(pair.cpu[1], 0, WEIR_SHARERS_FIELD_BITS - 1);
	for (uint32_t ahead = 3; ahead <= 13; ahead += 5) {
		name_the_other(&pair, ahead);
		assert_true(pair_passes_now(&pair, 0, ahead));
		assert_int_equal(asked(&pair), 0);
	}
	name_the_other(&pair, 0); /* just now */
	assert_true(pair_passes_now(&pair, 0, 1));
	assert_int_equal(asked(&pair), 1);
}

/* ---- a clock older than the cell's ---- */

static void read_cells(const struct pair *pair, uint32_t *cells)
{
	const struct weir_config *config = &pair->rig.image->config;

	assert_int_equal(weir_array_read(weir_object_map_fd(pair->rig.object, WEIR_TABLE_SHARERS), cells,
					 config->sizes[WEIR_TABLE_SHARERS] / WEIR_SHARERS_LINE_CELLS,
					 sizeof(struct weir_sharers_line)),
			 0);
}

/* Send a packet of a host that is new; which cell changed? */
static uint32_t cell_of(struct pair *pair, uint64_t now_ns, uint32_t host)
{
	uint32_t count = pair->rig.image->config.sizes[WEIR_TABLE_SHARERS], changed = count;
	_cleanup_(weir_freep) uint32_t *before = calloc(count, sizeof(*before));
	_cleanup_(weir_freep) uint32_t *after = calloc(count, sizeof(*after));

	assert_true(before && after);
	read_cells(pair, before);
	assert_true(pair_passes(pair, 1, now_ns, host));
	read_cells(pair, after);
	for (uint32_t i = 0; i < count; i++)
		if (before[i] != after[i])
			changed = i;
	return changed;
}

/*
 * CPU 0 counts; two epochs later CPU 1 counts another flow of the same cell, which forgets CPU 0. Then CPU 1,
 * whose clock has not moved, as it were, comes to the first flow.
 */
CLAIM_WITHIN(a_cpu_that_stalls_across_epochs_asks_everybody, remember_affinity, restore_affinity)
{
	_cleanup_(close_pair) struct pair pair = {};
	uint32_t cell;

	pair_open(&pair, WEIR_WINDOW_LEAP, 3, SECOND, true);
	/* An epoch of its own, so that the first packet changes the cell. */
	cell = cell_of(&pair, pair.edge_ns - 2 * EPOCH_NS, 1);
	assert_int_equal(pair_pass(&pair, 0, pair.edge_ns, 1, 2), 2);
	for (uint32_t host = 2; cell_of(&pair, pair.edge_ns + 2 * EPOCH_NS, host) != cell; host++)
		assert_true(host < 100000);
	assert_int_equal(pair_pass(&pair, 1, pair.edge_ns + 100 * MS, 1, 10), 1);
}

/* ---- at random ---- */

#define HOSTS 60
#define LIMIT 5
#define PACKETS 60000
#define BUCKET_NS (100 * MS)

struct history {
	uint64_t newest, bucket[10]; /* ring of a leap window of ten buckets */
};

static bool plain_window_admits(struct history *history, uint64_t bucket)
{
	uint64_t sum = 0;

	if (bucket - history->newest >= 10)
		memset(history->bucket, 0, sizeof(history->bucket));
	else
		for (uint64_t passed = history->newest + 1; passed <= bucket; passed++)
			history->bucket[passed % 10] = 0;
	history->newest = bucket;
	for (int i = 0; i < 10; i++)
		sum += history->bucket[i];
	if (sum == LIMIT)
		return false;
	history->bucket[bucket % 10]++;
	return true;
}

/* Flows that wander between the CPUs get what one plain window would give them, for hundreds of epochs. */
static void flows_wander_among(uint32_t cpus)
{
	struct history history[HOSTS] = {};
	struct random random = {1};
	_cleanup_(close_pair) struct pair pair = {};
	uint64_t now_ns;

	pair_open_for(&pair, FLOWS, cpus, WEIR_WINDOW_LEAP, LIMIT, SECOND, true);
	now_ns = pair.edge_ns;
	for (uint32_t packet = 0; packet < PACKETS; packet++) {
		uint32_t host = random_below(&random, HOSTS);
		int which = packet / 7 % 2;
		bool expected;

		now_ns += random_below(&random, 6 * MS);
		if (random_below(&random, 200) == 0)
			now_ns += random_below(&random, 3 * EPOCH_NS);
		expected = plain_window_admits(&history[host], now_ns / BUCKET_NS);
		assert_int_equal(pair_passes(&pair, which, now_ns, host), expected);
	}
}

CASE_WITHIN(flows_that_wander_meet_a_plain_window, remember_affinity, restore_affinity, flows_wander_among(0));
CASE_WITHIN(flows_that_wander_among_many_cpus_meet_a_plain_window, remember_affinity, restore_affinity,
	    flows_wander_among(64));

/* ---- at the same instant ---- */

#define ROUNDS 40000

struct race {
	struct pair *pair;
	atomic_uint arrived;
	/* Which passed of a flow's packets: two at once, then two more, one from each CPU. */
	uint8_t at_once[2][ROUNDS], third[ROUNDS], fourth[ROUNDS];
};

struct racer {
	struct race *race;
	int which;
	uint32_t meetings;
	uint8_t frame[PACKET_BYTES_MAX];
};

/* Wait until both are here. */
static void racer_meet(struct racer *self)
{
	rig_line_up(&self->race->arrived, 2, self->meetings++);
}

static bool racer_passes(struct racer *self)
{
	struct pair *pair = self->race->pair;

	return weir_object_evaluate(pair->rig.object, self->frame, pair->frame_bytes) == XDP_PASS;
}

/* One new flow after the other. The CPUs take turns at the third packet and the fourth, each alone. */
static void *racer_main(void *data)
{
	struct racer *self = data;
	struct race *race = self->race;

	rig_pin(race->pair->cpu[self->which]);
	memcpy(self->frame, race->pair->frame, sizeof(self->frame));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t address = htonl(0x0b000000 + round);
		bool is_third = (uint32_t)self->which == round % 2;

		memcpy(self->frame + SOURCE_OFFSET, &address, sizeof(address));
		racer_meet(self);
		race->at_once[self->which][round] = racer_passes(self);
		racer_meet(self);
		if (is_third)
			race->third[round] = racer_passes(self);
		racer_meet(self);
		if (!is_third)
			race->fourth[round] = racer_passes(self);
	}
	return NULL;
}

/*
 * How often somebody wins is the machine's affair: two that meet may both step back, each because of what the other
 * has reserved. But then both have given it back, and the next packet gets it. An interval that no CPU sleeps through.
 */
CLAIM_WITHIN(of_two_first_packets_at_once_a_limit_of_one_goes_to_one_or_to_the_next_packet, remember_affinity,
	     restore_affinity)
{
	_cleanup_(weir_freep) struct race *race = calloc(1, sizeof(*race));
	_cleanup_(close_pair) struct pair pair = {};
	struct racer racers[2] = {{.race = race, .which = 0}, {.race = race, .which = 1}};
	uint32_t winners = 0;
	pthread_t thread[2];

	assert_non_null(race);
	/* Room for all: of a full table's ghosts one in some 30,000 has another flow's name. */
	pair_open_for(&pair, 8 * ROUNDS, 0, WEIR_WINDOW_LEAP, 1, 1000 * SECOND, false);
	assert_int_equal(pair.rig.image->rules[0].asks_all, 0);
	race->pair = &pair;
	rig_attach(&pair.rig);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, racer_main, &racers[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	rig_detach(NULL);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t won = race->at_once[0][round] + race->at_once[1][round];

		assert_in_range(won, 0, 1);
		assert_int_equal(race->third[round], 1 - won);
		assert_int_equal(race->fourth[round], 0);
		winners += won;
	}
	print_message("%u races, %u of them with a winner\n", ROUNDS, winners);
}

RUN_CLAIMS(NULL, NULL)
