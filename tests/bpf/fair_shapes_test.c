// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fair shares (docs/fair.md) on traffic of many shapes: the shipped BPF object under the virtual clock against water
 * filling by hand, interval by interval. The levels here come from the definition alone: the largest L for which the
 * children want min(offered, L) and together at most the threshold, new ones as one child for each 16. After three
 * intervals of steady demand, who wants at most 0.9 L loses at most 1 %, who wants more than 1.1 L gets 0.9 to 1.1 of
 * it, and at least 95 % of the threshold is admitted. The parent's window never holds more than the threshold.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

#define PORT 53
#define BUCKET_NS (SECOND / 10) /* intervals last a second */
#define SETTLING 3		/* intervals until the promises hold */
#define PAYLOADS 4

static const uint16_t payloads[PAYLOADS] = {18, 500, 1000, 1472};

/* Sends `rate` packets an interval, in bursts of `burst`, evenly; 0: none. */
struct child {
	uint32_t rate, burst, weight, parent, payload; /* the number of its payload */
	uint64_t next_ns;
	uint64_t offered, passed;		   /* units of this interval */
	uint32_t active;			   /* the latest interval in which it offered anything, + 1 */
	uint32_t active_before;			   /* the one before that */
	double sum_offered, sum_passed, sum_level; /* of the intervals that are measured */
	bool is_steady;
};

struct parent {
	uint64_t bucket[10], number, offered, passed; /* the window by hand */
	double level, sum_passed, sum_due;
};

struct packet {
	uint64_t time_ns;
	uint32_t child;
};

struct sim {
	struct rig rig;
	uint64_t now_ns, limit;
	bool counts_bytes;
	struct child *child;
	struct parent *parent;
	struct packet *packet;
	size_t packets_max, count;
	uint32_t children, parents, interval;
	uint8_t frame[PAYLOADS][2048];
	size_t frame_bytes[PAYLOADS];
	uint64_t random;
};

static double chance(struct sim *sim)
{
	sim->random = sim->random * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(sim->random >> 33) / (1u << 31);
}

/* `parents` above 1: distinguished by their source port. */
static void begin(struct sim *sim, uint64_t limit, uint32_t children, uint32_t parents, uint32_t flows_per_cpu)
{
	struct weir_ruleset_rule *rule;

	*sim = (struct sim){.now_ns = RIG_START_NS, .limit = limit, .children = children, .parents = parents};
	sim->random = 7;
	sim->child = calloc(children, sizeof(*sim->child));
	sim->parent = calloc(parents, sizeof(*sim->parent));
	for (uint32_t i = 0; i < children; i++)
		sim->child[i] = (struct child){.weight = 1, .burst = 1, .parent = i % parents, .is_steady = true};
	for (uint32_t i = 0; i < PAYLOADS; i++) {
		struct packet_spec spec = packet_udp("10.0.0.0", 1024, "198.51.100.1", PORT, payloads[i]);

		sim->frame_bytes[i] = packet_build(&spec, sim->frame[i]);
	}
	rig_begin(&sim->rig, flows_per_cpu);
	rule = rig_rule(&sim->rig, rig_resource(&sim->rig, PORT, parents > 1 ? WEIR_KEY_SOURCE_PORT : 0),
			WEIR_WINDOW_LEAP, limit, SECOND, 10);
	rule->fair_by.fields = WEIR_KEY_SOURCE;
	rule->fair_by.source_bits[0] = 32;
	rule->fair_by.source_bits[1] = 128;
}

static void end(struct sim *sim)
{
	rig_end(&sim->rig);
	free(sim->child);
	free(sim->parent);
	free(sim->packet);
}

/* From now on, beginning at a random moment. */
static void set_rate(struct sim *sim, uint32_t number, uint32_t rate)
{
	struct child *child = &sim->child[number];

	child->rate = rate;
	if (rate)
		child->next_ns = sim->now_ns + chance(sim) * SECOND * child->burst / rate;
}

static int compare_times(const void *left, const void *right)
{
	const struct packet *a = left, *b = right;

	return a->time_ns != b->time_ns ? (a->time_ns > b->time_ns) * 2 - 1
					: (a->child > b->child) - (a->child < b->child);
}

static void plan_interval(struct sim *sim)
{
	sim->count = 0;
	for (uint32_t i = 0; i < sim->children; i++) {
		struct child *child = &sim->child[i];

		for (; child->rate && child->next_ns < sim->now_ns + SECOND;
		     child->next_ns += SECOND * child->burst / child->rate)
			for (uint32_t nth = 0; nth < child->burst; nth++) {
				if (sim->count == sim->packets_max) {
					sim->packets_max = 2 * sim->packets_max + 1000;
					sim->packet = realloc(sim->packet, sim->packets_max * sizeof(*sim->packet));
					assert_non_null(sim->packet);
				}
				sim->packet[sim->count++] = (struct packet){child->next_ns + nth * 1000, i};
			}
	}
	qsort(sim->packet, sim->count, sizeof(*sim->packet), compare_times);
}

static void note_passed(struct sim *sim, struct parent *parent, uint64_t time_ns, uint64_t units)
{
	const uint64_t number = time_ns / BUCKET_NS;
	uint64_t sum = 0;

	for (uint64_t gone = parent->number + 1; gone <= number && gone <= parent->number + 10; gone++)
		parent->bucket[(gone > number - 10 ? gone : number) % 10] = 0;
	if (number - parent->number >= 10)
		memset(parent->bucket, 0, sizeof(parent->bucket));
	parent->number = number;
	parent->bucket[number % 10] += units;
	for (uint32_t i = 0; i < 10; i++)
		sum += parent->bucket[i];
	if (sum > sim->limit)
		fail_msg("a parent's window has %llu", (unsigned long long)sum);
	parent->passed += units;
}

static void send_packets(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->children; i++)
		sim->child[i].offered = sim->child[i].passed = 0;
	for (uint32_t i = 0; i < sim->parents; i++)
		sim->parent[i].offered = sim->parent[i].passed = 0;
	for (size_t i = 0; i < sim->count; i++) {
		const uint32_t number = sim->packet[i].child;
		struct child *child = &sim->child[number];
		uint8_t *frame = sim->frame[child->payload];
		const size_t frame_bytes = sim->frame_bytes[child->payload];
		const uint64_t units = sim->counts_bytes ? frame_bytes : 1;

		frame[27] = number >> 16;
		frame[28] = number >> 8;
		frame[29] = number;
		frame[34] = (1024 + child->parent) >> 8;
		frame[35] = 1024 + child->parent;
		child->offered += units;
		sim->parent[child->parent].offered += units;
		if (!rig_passes(&sim->rig, sim->packet[i].time_ns, frame, frame_bytes))
			continue;
		child->passed += units;
		note_passed(sim, &sim->parent[child->parent], sim->packet[i].time_ns, units);
	}
}

static bool is_new(const struct sim *sim, const struct child *child)
{
	return !child->active_before || child->active_before + 2 < sim->interval + 1;
}

/* What children of this parent are due at this level. */
static double sum_at(const struct sim *sim, uint32_t parent, double level)
{
	double sum = 0, new_units = 0;
	uint32_t newcomers = 0;

	for (uint32_t i = parent; i < sim->children; i += sim->parents) {
		const struct child *child = &sim->child[i];

		if (child->offered && is_new(sim, child)) {
			newcomers++;
			new_units += child->offered;
		} else {
			sum += fmin(child->offered, level * child->weight);
		}
	}
	newcomers = (newcomers + 15) / 16;
	return sum + fmin(new_units, level * newcomers);
}

/* The level of what has been offered in this interval; infinite: all fits. */
static double fill(const struct sim *sim, uint32_t parent)
{
	double low = 0, high = sim->limit;

	if (sum_at(sim, parent, INFINITY) <= sim->limit)
		return INFINITY;
	for (uint32_t i = 0; i < 40; i++) {
		const double middle = (low + high) / 2;

		if (sum_at(sim, parent, middle) <= sim->limit)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* One interval, whose shares are added up if they are to be measured. */
static void run_interval(struct sim *sim, bool measured)
{
	plan_interval(sim);
	send_packets(sim);
	for (uint32_t i = 0; i < sim->children; i++) {
		struct child *child = &sim->child[i];

		if (child->offered && child->active != sim->interval + 1) {
			child->active_before = child->active;
			child->active = sim->interval + 1;
		}
	}
	for (uint32_t i = 0; i < sim->parents && measured; i++) {
		struct parent *parent = &sim->parent[i];

		parent->level = fill(sim, i);
		parent->sum_passed += parent->passed;
		parent->sum_due += fmin(sim->limit, parent->offered);
	}
	for (uint32_t i = 0; i < sim->children && measured; i++) {
		struct child *child = &sim->child[i];

		if (child->offered && is_new(sim, child))
			continue;
		child->sum_offered += child->offered;
		child->sum_passed += child->passed;
		child->sum_level += sim->parent[child->parent].level * child->weight;
	}
	sim->now_ns += SECOND;
	sim->interval++;
}

static void run_intervals(struct sim *sim, uint32_t warm_up, uint32_t measured)
{
	for (uint32_t i = 0; i < warm_up + measured; i++)
		run_interval(sim, i >= warm_up);
}

/* The promises, for what was measured; and start again. A level is held to a packet, since none is divided. */
static void assert_promises(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->children; i++) {
		struct child *child = &sim->child[i];
		const double unit = sim->counts_bytes ? sim->frame_bytes[child->payload] : 1;
		const double offered = child->sum_offered, passed = child->sum_passed, due = child->sum_level;

		if (child->is_steady && offered <= 0.9 * due && passed < 0.99 * offered)
			fail_msg("child %u, below its level: %.0f of %.0f", i, passed, offered);
		if (child->is_steady && offered > 1.1 * due && (passed < 0.9 * due - unit || passed > 1.1 * due + unit))
			fail_msg("child %u, above its level: %.0f, not %.1f", i, passed, due);
		child->sum_offered = child->sum_passed = child->sum_level = 0;
	}
	for (uint32_t i = 0; i < sim->parents; i++) {
		struct parent *parent = &sim->parent[i];

		if (parent->sum_passed < 0.95 * parent->sum_due)
			fail_msg("parent %u: %.0f of %.0f", i, parent->sum_passed, parent->sum_due);
		parent->sum_passed = parent->sum_due = 0;
	}
}

/* Rates from 1 to `most`, of all magnitudes alike. */
static uint32_t draw_rate(struct sim *sim, double most)
{
	return pow(most, chance(sim));
}

CLAIM(steady_demands)
{
	static const uint32_t limits[] = {200, 1000, 2000, 5000, 3000}, counts[] = {10, 50, 200, 100, 1000};

	for (uint32_t round = 0; round < ARRAY_SIZE(limits); round++) {
		struct sim sim;

		begin(&sim, limits[round], counts[round], 1, 4096);
		rig_load_here(&sim.rig);
		for (uint32_t i = 0; i < sim.children; i++)
			set_rate(&sim, i, draw_rate(&sim, limits[round] / 20.0));
		run_intervals(&sim, SETTLING + 1, 3);
		assert_promises(&sim);
		end(&sim);
	}
}

/* With the first power, each of a thousand children wants its level of five and more. */
CLAIM(demands_by_zipfs_law)
{
	static const double powers[] = {1, 1.5};

	for (uint32_t round = 0; round < ARRAY_SIZE(powers); round++) {
		struct sim sim;

		begin(&sim, 5000, 1000, 1, 4096);
		rig_load_here(&sim.rig);
		for (uint32_t i = 0; i < sim.children; i++)
			set_rate(&sim, i, ceil(5000 / pow(i + 1, powers[round])));
		run_intervals(&sim, SETTLING + 1, 3);
		assert_promises(&sim);
		end(&sim);
	}
}

CLAIM(bytes_in_packets_of_four_sizes)
{
	for (uint64_t limit = 1000000; limit <= 8000000; limit *= 8) {
		struct sim sim;

		begin(&sim, limit, 100, 1, 4096);
		sim.counts_bytes = sim.rig.ruleset->rules[0].counts_bytes = true;
		rig_load_here(&sim.rig);
		for (uint32_t i = 0; i < sim.children; i++) {
			sim.child[i].payload = i % PAYLOADS;
			set_rate(&sim, i, draw_rate(&sim, limit / (4.0 * sim.frame_bytes[i % PAYLOADS]) + 1));
		}
		run_intervals(&sim, SETTLING + 1, 3);
		assert_promises(&sim);
		end(&sim);
	}
}

CLAIM(demands_that_jump_every_five_intervals)
{
	struct sim sim;

	begin(&sim, 2000, 100, 1, 4096);
	rig_load_here(&sim.rig);
	for (uint32_t round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < sim.children; i++)
			set_rate(&sim, i, chance(&sim) < 0.3 ? 0 : draw_rate(&sim, 600));
		run_intervals(&sim, SETTLING, 2);
		assert_promises(&sim);
	}
	end(&sim);
}

/* Half of them, of the heavy ones too, are on for five intervals, and off for five. */
CLAIM(children_on_and_off)
{
	struct sim sim;

	begin(&sim, 2000, 100, 1, 4096);
	rig_load_here(&sim.rig);
	for (uint32_t i = 0; i < sim.children; i++)
		set_rate(&sim, i, i % 10 ? 10 : 400);
	for (uint32_t round = 0; round < 6; round++) {
		for (uint32_t i = sim.children / 2; i < sim.children; i++)
			set_rate(&sim, i, round & 1 ? 0 : i % 10 ? 10 : 400);
		run_intervals(&sim, SETTLING, 2);
		assert_promises(&sim);
	}
	end(&sim);
}

CLAIM(children_that_send_in_bursts)
{
	struct sim sim;

	begin(&sim, 2000, 100, 1, 4096);
	rig_load_here(&sim.rig);
	for (uint32_t i = 0; i < sim.children; i++) {
		sim.child[i].burst = i % 10 ? 1 + i % 10 : 5;
		set_rate(&sim, i, i % 10 ? 1 + i % 10 : 400);
	}
	run_intervals(&sim, SETTLING + 1, 5);
	assert_promises(&sim);
	end(&sim);
}

/* Each of so many sources sends one packet, in one interval, beside 45 steady children and five heavy ones. */
CLAIM(spoofed_floods)
{
	static const uint32_t floods[] = {300, 2000, 20000};

	for (uint32_t round = 0; round < ARRAY_SIZE(floods); round++) {
		const uint32_t flood = floods[round];
		struct sim sim;

		begin(&sim, flood < 10000 ? 1000 : 20000, 50 + 7 * flood, 1, flood < 10000 ? 4096 : 65536);
		rig_load_here(&sim.rig);
		for (uint32_t i = 0; i < sim.children; i++)
			sim.child[i].is_steady = i < 50;
		for (uint32_t i = 0; i < 50; i++)
			set_rate(&sim, i, i < 45 ? 3 : sim.limit);
		for (uint32_t second = 0; second < 7; second++) {
			for (uint32_t i = 0; i < flood; i++) {
				struct child *child = &sim.child[50 + second * flood + i];

				child->rate = 1;
				child->next_ns = sim.now_ns + SECOND / flood * i;
				if (second)
					(child - flood)->rate = 0;
			}
			run_intervals(&sim, second < 4, second >= 4);
		}
		assert_promises(&sim);
		end(&sim);
	}
}

/* Of a hundred thousand children, each is there in one interval of five, with a packet. */
CLAIM(a_hundred_thousand_children_that_come_and_go)
{
	struct sim sim;

	begin(&sim, 20000, 100000, 1, 65536);
	rig_load_here(&sim.rig);
	for (uint32_t i = 0; i < sim.children; i++)
		sim.child[i].is_steady = i < 100;
	for (uint32_t i = 0; i < 100; i++)
		set_rate(&sim, i, i < 50 ? 5 : 400);
	for (uint32_t second = 0; second < 7; second++) {
		for (uint32_t i = 100; i < sim.children; i++) {
			sim.child[i].rate = i % 5 == second % 5;
			sim.child[i].next_ns = sim.now_ns + SECOND / sim.children * i;
		}
		run_intervals(&sim, second < 4, second >= 4);
	}
	assert_promises(&sim);
	end(&sim);
}

CLAIM(a_thousand_parents)
{
	struct sim sim;

	begin(&sim, 100, 8000, 1000, 65536);
	rig_load_here(&sim.rig);
	for (uint32_t i = 0; i < sim.children; i++)
		set_rate(&sim, i, i / 1000 < 6 ? 4 : 100);
	run_intervals(&sim, SETTLING + 1, 2);
	assert_promises(&sim);
	end(&sim);
}

/* 50 addresses with a label each, of weights 1 to 50. */
CLAIM(weights_from_1_to_50)
{
	struct weir_diag diag = {};
	struct sim sim;
	size_t bytes;
	char *text;
	FILE *file = open_memstream(&text, &bytes);

	assert_non_null(file);
	fputs("sets:\n  t:\n    labels: true\n    prefixes:\n", file);
	for (uint32_t i = 0; i < 50; i++)
		fprintf(file, "    - {prefix: 10.0.0.%u/32, label: t%u, weight: %u}\n", i, i, i + 1);
	fputs("resources: [{name: r, match: {protocol: udp}}]\n"
	      "rules: [{name: limit, resource: r, rate: 4k/s, fairBy: source@t}]\n",
	      file);
	fclose(file);
	begin(&sim, 4000, 50, 1, 4096);
	weir_ruleset_free(sim.rig.ruleset);
	sim.rig.ruleset = NULL;
	assert_int_equal(weir_ruleset_parse("rules.yaml", text, bytes, &sim.rig.ruleset, &diag), 0);
	free(text);
	rig_load_here(&sim.rig);
	for (uint32_t i = 0; i < sim.children; i++) {
		sim.child[i].weight = i + 1;
		set_rate(&sim, i, i % 3 ? 400 : 1 + i / 2);
	}
	run_intervals(&sim, SETTLING + 1, 4);
	assert_promises(&sim);
	end(&sim);
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
