// SPDX-License-Identifier: GPL-2.0-only
/*
 * The share protocol in simulated worlds (cluster_world.h): never above the threshold whatever fails, nearly all of it
 * when nothing does, and above it when a step is left out. WEIR_CLUSTER_ROUNDS=1000000 asks the ledger so many times in
 * random worlds; by default some seconds' worth. WEIR_CLUSTER_SEED=N begins with another world.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "cluster_world.h"

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static const struct weir_share_terms usual = {
	.threshold = 3000, .interval_ns = SECOND_NS, .may_fall_back = true, .silent_ns = 3600 * SECOND_NS};

static int give_world(void **state)
{
	static struct world world;

	*state = &world;
	return 0;
}

static int end_world(void **state)
{
	world_end(*state);
	return 0;
}

#define WORLD_CLAIM(what) CLAIM_ABOUT(what, struct world *w, give_world, end_world)

/* ---- worlds at random ---- */

/* What is lost with a ledger can be reported again by hosts that knew it. One of them must come while the new ledger is
 * quiet; docs/cluster.md says what happens otherwise.
 */
static bool has_witness(const struct world *w)
{
	for (uint32_t i = 0; i < w->hosts; i++)
		if (w->host[i].has_process && !w->host[i].is_cut && !w->host[i].is_deaf && w->host[i].share.has_lease)
			return true;
	return false;
}

static void trouble_host(struct world *w)
{
	uint32_t i = (uint32_t)world_chance(w, w->hosts);
	struct host *host = &w->host[i];
	/* Not by chance: worlds that show what a step is for keep their numbers. */
	const bool may_detach = w->terms.silent_ns < usual.silent_ns;

	switch (world_chance(w, may_detach ? 10 : 9)) {
	case 9:
		world_detach(w, i);
		break;
	case 0:
		world_crash_host(w, i);
		break;
	case 1:
		if (host->has_process)
			world_kill_process(w, i);
		break;
	case 2:
		if (host->has_process)
			world_leave(w, i);
		break;
	case 3:
		host->is_cut = !host->is_cut;
		break;
	case 4:
		host->is_deaf = !host->is_deaf;
		break;
	case 5:
	case 6:
		host->rate = (double)world_chance(w, 3 * w->terms.threshold) * 1e9 / (double)w->terms.interval_ns;
		break;
	default:
		world_start_host(w, i);
	}
}

/* Two stores: all hosts go to the other one, or one does that knows of the others; a character is another. A host that
 * went alone without a lease would know too little: in world 5744, that is above the threshold (docs/cluster.md).
 */
static void trouble_stores(struct world *w)
{
	uint32_t i = (uint32_t)world_chance(w, w->hosts);

	switch (world_chance(w, 4)) {
	case 0:
		/* Without fallbacks nobody can say what those that stay may have: docs/cluster.md. */
		if (w->host[i].has_process && w->host[i].share.has_lease && w->terms.may_fall_back)
			world_go_to_store(w, i, (uint32_t)world_chance(w, 2));
		break;
	case 1:
		world_mangle_store(w);
		break;
	default:
		world_alternate(w);
	}
	world_run(w, WEIR_CLUSTER_LEASE_NS + w->terms.interval_ns);
}

static void trouble_store(struct world *w)
{
	uint64_t kind = world_chance(w, 6);

	if (kind <= 1)
		w->store_runs = !w->store_runs;
	else if (kind == 2)
		world_copy_store(w);
	else if (!w->store_runs || !has_witness(w))
		return;
	else if (kind == 3 && w->is_written_to)
		world_write_into_store(w);
	else if (kind == 3)
		world_empty_store(w);
	else if (kind == 4)
		world_fail_over(w);
	else
		world_restart_store_empty(w);
	/* The witness is given time. */
	if (kind >= 3)
		world_run(w, WEIR_CLUSTER_LEASE_NS + w->terms.interval_ns);
}

static void change_link(struct world *w)
{
	w->link = (struct link){
		.lost_percent = (uint32_t)world_chance(w, 4) * 5,
		.doubled_percent = (uint32_t)world_chance(w, 3) * 10,
		.slow_percent = (uint32_t)world_chance(w, 4) * 5,
		.usual_ns = (1 + world_chance(w, 60)) * MS,
		.slow_ns = (100 + world_chance(w, 5000)) * MS,
	};
}

static uint32_t random_hosts(struct world *w)
{
	switch (world_chance(w, 10)) {
	case 0:
		return 1 + (uint32_t)world_chance(w, HOSTS_MAX);
	case 1:
	case 2:
		return 1 + (uint32_t)world_chance(w, 12);
	default:
		return 2 + (uint32_t)world_chance(w, 3);
	}
}

/* The same for a flow that hosts share: they start and stop sharing it, and processes restart. */
static void trouble_flow(struct world *w)
{
	uint32_t i = (uint32_t)world_chance(w, w->hosts);

	if (!w->host[i].is_up)
		return;
	if (w->host[i].has_process && world_chance(w, 2))
		world_share_flow(w, i, !w->host[i].has_flow);
	else
		world_restart_process(w, i);
}

static void trouble_link(struct world *w)
{
	if (world_chance(w, 8) == 0)
		change_link(w);
	if (!w->has_stores)
		return;
	w->link.mangled_percent = (uint32_t)world_chance(w, 2) * 5;
	w->link.stray_percent = w->terms.may_fall_back ? (uint32_t)world_chance(w, 2) * 5 : 0;
}

/* A minute of trouble. Returns whether the threshold was kept all the time. */
static bool random_world(struct world *w, uint64_t seed, enum omission omission, const char *script, size_t bytes)
{
	static const uint64_t interval_ms[] = {10, 200, 1000, 1000, 2000, 5000};
	struct weir_share_terms terms = usual;
	bool is_kept = true;

	world_begin(w, seed, &terms, 1, script, bytes);
	w->omission = omission;
	w->terms.interval_ns = interval_ms[world_chance(w, ARRAY_SIZE(interval_ms))] * MS;
	w->terms.threshold = 1 + world_chance(w, world_chance(w, 2) ? 20 : 1000000);
	w->terms.may_fall_back = world_chance(w, 5) != 0;
	/* Not by chance: worlds that show what a step is for keep their numbers. */
	w->terms.is_per_flow = w->has_flow = omission == OMIT_NOTHING && !script && seed % 2 == 0;
	if (omission == OMIT_NOTHING && !script && seed % 3 == 0) {
		w->terms.silent_ns = (6 + seed % 7) * SECOND_NS + w->terms.interval_ns;
		w->terms.stops = seed / 3 % 2;
	}
	w->has_stores = omission == OMIT_NOTHING && !script && seed / 4 % 2 == 0;
	w->is_written_to = omission == OMIT_NOTHING && !script && seed / 2 % 2 == 0;
	world_add_hosts(w, random_hosts(w));
	for (uint32_t i = 0; i < w->hosts; i++) {
		w->host[i].rate = (double)world_chance(w, 3 * w->terms.threshold) * 1e9 / (double)w->terms.interval_ns;
		world_start_host(w, i);
	}
	change_link(w);
	for (uint32_t i = 0; is_kept && i < 40; i++) {
		is_kept = world_run(w, world_chance(w, 3000) * MS);
		if (w->has_stores && has_witness(w) && world_chance(w, 3) == 0)
			trouble_stores(w);
		if (world_chance(w, 4) == 0)
			trouble_store(w);
		else
			trouble_host(w);
		if (w->has_flow && world_chance(w, 3) == 0)
			trouble_flow(w);
		trouble_link(w);
	}
	return is_kept && world_run(w, 8 * SECOND_NS);
}

LONG_CLAIM(random_worlds_never_exceed_the_threshold)
{
	uint64_t rounds = setting("WEIR_CLUSTER_ROUNDS", 20000), seed = setting("WEIR_CLUSTER_SEED", 1), done = 0;
	static struct world w;

	for (; done < rounds; seed++) {
		if (!random_world(&w, seed, OMIT_NOTHING, NULL, 0))
			fail_msg("world %" PRIu64 ": %" PRIu64 " of %" PRIu64 " at %.3f s (WEIR_CLUSTER_SEED)", seed,
				 w.worst, w.terms.threshold, (double)w.now_ns / 1e9);
		done += w.rounds;
		world_end(&w);
	}
}

/* ---- nothing fails: nearly all of the threshold is used ---- */

static void begin(struct world *w, uint64_t seed, uint32_t hosts)
{
	world_begin(w, seed, &usual, hosts, NULL, 0);
	for (uint32_t i = 0; i < hosts; i++)
		world_start_host(w, i);
}

/* Split an offered load, in parts that add up to 100, over three hosts. */
static void split(struct world *w, double load, const uint32_t parts[3])
{
	for (uint32_t i = 0; i < 3; i++)
		w->host[i].rate = load * parts[i] / 100;
}

static void assert_used(struct world *w, uint64_t ns, double percent)
{
	double mean = world_mean_admitted(w, ns);

	if (mean < (double)w->terms.threshold * percent / 100)
		fail_msg("at %.1f s: %.0f of %" PRIu64, (double)w->now_ns / 1e9, mean, w->terms.threshold);
}

WORLD_CLAIM(splits_that_change_use_95_percent_from_three_intervals_on)
{
	static const uint32_t parts[][3] = {{34, 33, 33}, {84, 8, 8},  {100, 0, 0}, {0, 100, 0},
					    {10, 20, 70}, {0, 50, 50}, {1, 1, 98},  {33, 34, 33}};
	static const double loads[] = {1.1, 1.5, 10};

	for (uint64_t seed = 1; seed <= 6; seed++) {
		begin(w, seed, 3);
		for (uint32_t i = 0; i < 2 * ARRAY_SIZE(parts); i++) {
			split(w, loads[seed % 3] * 3000, parts[i % ARRAY_SIZE(parts)]);
			assert_true(world_run(w, 3 * SECOND_NS));
			assert_used(w, 2 * SECOND_NS, 95);
		}
	}
}

/* Whatever is offered where: a flow may come to any of the hosts. */
WORLD_CLAIM(each_flow_has_an_equal_part_on_every_host)
{
	static const uint32_t parts[3] = {100, 0, 0};

	begin(w, 1, 3);
	w->terms.is_per_flow = true;
	for (uint32_t i = 0; i < 3; i++)
		w->host[i].share.terms.is_per_flow = true;
	split(w, 30000, parts);
	assert_true(world_run(w, 8 * SECOND_NS));
	for (uint32_t i = 0; i < 3; i++)
		assert_in_range(w->host[i].plane_units, 950, 1050);
	/* One more takes its part of all. */
	world_add_hosts(w, 1);
	world_start_host(w, 3);
	assert_true(world_run(w, 8 * SECOND_NS));
	for (uint32_t i = 0; i < 4; i++)
		assert_in_range(w->host[i].plane_units, 712, 788);
}

/* Hosts that have their shares; the flow is not shared yet. */
static void begin_with_flow(struct world *w, uint64_t seed, uint32_t hosts)
{
	struct weir_share_terms terms = usual;

	terms.is_per_flow = true;
	world_begin(w, seed, &terms, hosts, NULL, 0);
	w->has_flow = true;
	for (uint32_t i = 0; i < hosts; i++) {
		world_start_host(w, i);
		world_share_flow(w, i, false);
	}
	assert_true(world_run(w, 8 * SECOND_NS));
}

static void share_flow(struct world *w)
{
	for (uint32_t i = 0; i < w->hosts; i++)
		world_share_flow(w, i, true);
}

WORLD_CLAIM(a_flow_is_shared_within_five_intervals)
{
	static const uint32_t parts[][3] = {{84, 8, 8}, {100, 0, 0}, {34, 33, 33}, {1, 49, 50}};

	for (uint32_t i = 0; i < ARRAY_SIZE(parts); i++) {
		begin_with_flow(w, i + 1, 3);
		split(w, 6000, parts[i]);
		assert_true(world_run(w, 400 * MS));
		share_flow(w);
		assert_true(world_run(w, 4600 * MS));
		assert_used(w, 2 * SECOND_NS, 95);
		/* And follows when it comes to others. */
		split(w, 6000, parts[(i + 1) % ARRAY_SIZE(parts)]);
		assert_true(world_run(w, 3 * SECOND_NS));
		assert_used(w, 2 * SECOND_NS, 95);
	}
}

/* By what they have of the rule, when what they had given up is over. */
WORLD_CLAIM(without_a_store_a_flow_has_equal_parts_again)
{
	static const uint32_t parts[3] = {100, 0, 0};

	begin_with_flow(w, 1, 3);
	share_flow(w);
	split(w, 6000, parts);
	assert_true(world_run(w, 6 * SECOND_NS));
	assert_in_range(w->host[0].plane_units, 2850, 3000);
	w->store_runs = false;
	assert_true(world_run(w, 1500 * MS));
	assert_in_range(w->host[0].plane_units, 950, 1050);
	assert_in_range(w->host[1].plane_units, 1, 50);
	assert_true(world_run(w, 4 * SECOND_NS));
	for (uint32_t i = 0; i < 3; i++)
		assert_in_range(w->host[i].plane_units, 950, 1050);
}

WORLD_CLAIM(a_flow_that_is_not_shared_any_more_has_equal_parts_again)
{
	static const uint32_t parts[3] = {100, 0, 0};

	begin_with_flow(w, 1, 3);
	share_flow(w);
	split(w, 6000, parts);
	assert_true(world_run(w, 6 * SECOND_NS));
	for (uint32_t i = 0; i < 3; i++)
		world_share_flow(w, i, false);
	assert_true(world_run(w, 5 * SECOND_NS));
	for (uint32_t i = 0; i < 3; i++) {
		assert_in_range(w->host[i].plane_units, 950, 1050);
		assert_true(weir_flow_is_over(&w->host[i].flow));
	}
}

LONG_CLAIM(a_hundred_hosts_use_95_percent)
{
	static struct world w;

	begin(&w, 1, 100);
	w.terms.threshold = 1000000;
	for (uint32_t i = 0; i < w.hosts; i++)
		w.host[i].share.terms.threshold = w.terms.threshold;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < w.hosts; i++)
			w.host[i].rate = world_chance(&w, 10) ? (double)world_chance(&w, 20000) : 200000;
		assert_true(world_run(&w, 3 * SECOND_NS));
		assert_used(&w, 2 * SECOND_NS, 95);
	}
	world_end(&w);
}

/* ---- what is well again is back within five intervals ---- */

static void begin_in_use(struct world *w, uint64_t seed)
{
	static const uint32_t parts[3] = {80, 15, 5};

	begin(w, seed, 3);
	split(w, 6000, parts);
	assert_true(world_run(w, 6 * SECOND_NS));
	assert_used(w, SECOND_NS, 95);
}

static void assert_recovers(struct world *w)
{
	assert_true(world_run(w, 5 * SECOND_NS));
	assert_used(w, 2 * SECOND_NS, 95);
}

WORLD_CLAIM(a_store_that_was_emptied_is_used_again)
{
	begin_in_use(w, 1);
	world_empty_store(w);
	assert_recovers(w);
}

WORLD_CLAIM(a_ledger_that_somebody_else_wrote_to_is_used_again)
{
	for (int i = 0; i < 3; i++) {
		begin_in_use(w, 1);
		w->writes = i;
		world_write_into_store(w);
		assert_recovers(w);
	}
}

WORLD_CLAIM(a_store_that_was_killed_is_used_again)
{
	begin_in_use(w, 2);
	world_copy_store(w);
	assert_true(world_run(w, SECOND_NS));
	w->store_runs = false;
	assert_true(world_run(w, 2 * SECOND_NS));
	world_fail_over(w);
	w->store_runs = true;
	assert_recovers(w);
}

WORLD_CLAIM(a_store_that_stood_still_is_used_again)
{
	begin_in_use(w, 3);
	w->store_runs = false;
	assert_true(world_run(w, 30 * SECOND_NS));
	w->store_runs = true;
	assert_recovers(w);
}

WORLD_CLAIM(a_host_that_was_cut_off_comes_back)
{
	begin_in_use(w, 4);
	w->host[0].is_cut = true;
	assert_true(world_run(w, 30 * SECOND_NS));
	w->host[0].is_cut = false;
	assert_recovers(w);
}

/* ---- a store that is another one for a while ---- */

#define BACK_AFTER (5 * SECOND_NS + 3500 * MS) /* of the last change: docs/cluster.md, with intervals of a second */

static void assert_back(struct world *w)
{
	assert_true(world_run(w, BACK_AFTER));
	assert_used(w, 2 * SECOND_NS, 95);
}

/* Nothing stays reserved for hosts of a ledger that was lost: each has claimed its part. */
WORLD_CLAIM(a_detour_to_another_store_costs_nothing_that_stays)
{
	static const uint64_t away_ms[] = {15000, 4000, 1000, 300, 200};

	for (uint32_t i = 0; i < 2 * ARRAY_SIZE(away_ms); i++) {
		begin_in_use(w, i + 1);
		if (i % 2)
			w->link = (struct link){.usual_ns = 20 * MS, .lost_percent = 1};
		for (uint32_t times = 0; times < 1 + i; times++) {
			world_alternate(w);
			assert_true(world_run(w, away_ms[i / 2] * MS));
		}
		assert_back(w);
	}
}

/* Before anybody has a fallback, too. */
WORLD_CLAIM(stores_that_alternate_from_the_beginning_on_cost_nothing_that_stays)
{
	static const uint32_t parts[3] = {80, 15, 5};

	for (uint64_t seed = 1; seed <= 10; seed++) {
		begin(w, seed, 3);
		split(w, 6000, parts);
		for (uint32_t times = 0; times < 10; times++) {
			assert_true(world_run(w, (100 + world_chance(w, 1500)) * MS));
			if (world_chance(w, 3) == 0)
				world_empty_store(w);
			world_alternate(w);
			if (world_chance(w, 3) == 0) {
				w->store_runs = false;
				assert_true(world_run(w, 1500 * MS));
				w->store_runs = true;
			}
		}
		assert_back(w);
	}
}

/* A proxy that sends one request in fifty to another store, with a ledger of its own. */
WORLD_CLAIM(single_answers_of_another_store_cost_nothing)
{
	begin_in_use(w, 1);
	w->link.stray_percent = 2;
	assert_used(w, 20 * SECOND_NS, 95);
	/* Which they would, if hosts believed them. */
	begin_in_use(w, 1);
	w->link.stray_percent = 2;
	w->omission = OMIT_BELIEF;
	assert_true(world_mean_admitted(w, 20 * SECOND_NS) < 0.95 * (double)w->terms.threshold);
}

/* Nor do single characters that are others, in messages, answers or the store; but that in a store costs its ledger. */
WORLD_CLAIM(single_characters_that_are_changed_cost_nothing_that_stays)
{
	begin_in_use(w, 1);
	w->link.mangled_percent = 2;
	assert_used(w, 20 * SECOND_NS, 95);
	w->link.mangled_percent = 0;
	for (uint32_t i = 0; i < 8; i++) {
		world_mangle_store(w);
		assert_true(world_run(w, (100 + world_chance(w, 3000)) * MS));
	}
	assert_back(w);
}

WORLD_CLAIM(a_host_that_joins_after_a_detour_has_its_part)
{
	for (uint32_t there = 0; there < 2; there++) {
		begin_in_use(w, 1 + there);
		world_alternate(w);
		assert_true(world_run(w, 15 * SECOND_NS));
		world_add_hosts(w, there);
		if (there)
			world_start_host(w, 3);
		assert_true(world_run(w, 6 * SECOND_NS));
		world_alternate(w);
		assert_true(world_run(w, 8 * SECOND_NS));
		world_add_hosts(w, !there);
		if (!there)
			world_start_host(w, 3);
		w->host[3].rate = 6000;
		assert_back(w);
		assert_in_range(w->host[3].plane_units, 850, 3000); /* others want 4,800, 900 and 300 */
		assert_true(world_run(w, 3 * SECOND_NS));
		w->store_runs = false;
		assert_true(world_run(w, 6 * SECOND_NS));
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(w->host[i].plane_units, 750);
	}
}

WORLD_CLAIM(hosts_fall_back_to_equal_parts_without_a_store)
{
	begin_in_use(w, 5);
	w->store_runs = false;
	assert_true(world_run(w, 6 * SECOND_NS));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(w->host[i].plane_units, 1000);
}

WORLD_CLAIM(hosts_that_may_not_fall_back_block_all_without_a_store)
{
	begin(w, 6, 3);
	w->terms.may_fall_back = false;
	for (uint32_t i = 0; i < 3; i++) {
		w->host[i].share.terms.may_fall_back = false;
		w->host[i].rate = 2000;
	}
	assert_true(world_run(w, 6 * SECOND_NS));
	assert_used(w, SECOND_NS, 95);
	w->store_runs = false;
	assert_true(world_run(w, 6 * SECOND_NS));
	assert_true(world_admitted(w) == 0);
}

WORLD_CLAIM(a_host_that_leaves_gives_all_back)
{
	begin_in_use(w, 7);
	world_leave(w, 0);
	w->host[0].rate = 0;
	w->host[1].rate = 6000;
	assert_true(world_run(w, 5 * SECOND_NS));
	assert_used(w, SECOND_NS, 95);
	assert_int_equal(w->host[1].share.hosts, 2);
}

/* Its fallback stays reserved: it may be alive, and only cut off. */
WORLD_CLAIM(a_host_that_is_silent_keeps_its_fallback)
{
	begin_in_use(w, 8);
	w->host[0].is_cut = true;
	w->host[1].rate = 6000;
	assert_true(world_run(w, 20 * SECOND_NS));
	assert_in_range(w->host[1].plane_units + w->host[2].plane_units, 1900, 2000);
	assert_int_equal(w->host[0].plane_units, 1000);
}

/* ---- hosts that are replaced ---- */

static void begin_with_silence(struct world *w, uint64_t seed, uint64_t silent_ns, bool stops)
{
	struct weir_share_terms terms = usual;

	terms.silent_ns = silent_ns;
	terms.stops = stops;
	world_begin(w, seed, &terms, 3, NULL, 0);
	for (uint32_t i = 0; i < 3; i++) {
		world_start_host(w, i);
		w->host[i].rate = 6000;
	}
	assert_true(world_run(w, 6 * SECOND_NS));
	assert_used(w, SECOND_NS, 95);
}

/* The oldest of three goes, in this way, and one of a new name comes. */
static void replace(struct world *w, uint32_t times, uint64_t pace_ns, void (*end)(struct world *w, uint32_t i))
{
	for (; times > 0; times--) {
		const uint32_t oldest = w->hosts - 3;

		w->host[oldest].rate = 0;
		end(w, oldest);
		world_add_hosts(w, 1);
		world_start_host(w, w->hosts - 1);
		w->host[w->hosts - 1].rate = 6000;
		assert_true(world_run(w, pace_ns));
	}
}

/* `run --keep` ends, and then `weir detach`. */
static void end_and_detach(struct world *w, uint32_t i)
{
	world_kill_process(w, i);
	assert_true(world_run(w, 100 * MS));
	world_detach(w, i);
}

/* It is reserved for a host that one store knew and no other, until somebody releases it. */
WORLD_CLAIM(what_is_owed_to_a_host_that_does_not_come_can_be_released)
{
	begin_with_silence(w, 1, WEIR_CLUSTER_FOREVER_NS, false);
	world_crash_host(w, 0);
	world_alternate(w);
	w->host[1].rate = 6000;
	assert_true(world_run(w, 60 * SECOND_NS));
	assert_in_range(w->host[1].plane_units + w->host[2].plane_units, 1900, 2000);
	world_forget_lost(w);
	assert_back(w);
}

static const uint64_t paces_ms[] = {100, 500, 2000, 7000};

/* Within a lease and three intervals. */
WORLD_CLAIM(hosts_that_leave_and_are_replaced_at_any_pace_leave_all_to_others)
{
	for (uint32_t i = 0; i < 2 * ARRAY_SIZE(paces_ms); i++) {
		begin_with_silence(w, i + 1, 3600 * SECOND_NS, i % 4 >= 2);
		replace(w, 20, paces_ms[i / 2] * MS, i % 2 ? end_and_detach : world_leave);
		assert_true(world_run(w, WEIR_CLUSTER_LEASE_NS + 3 * SECOND_NS));
		assert_used(w, SECOND_NS, 95);
		assert_int_equal(w->host[w->hosts - 1].share.silent, 0);
	}
}

/* What is reserved is less than nothing to share soon; but not for longer than silentFor. */
WORLD_CLAIM(hosts_that_die_and_are_replaced_at_any_pace_leave_all_to_others_after_silence)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(paces_ms); i++) {
		begin_with_silence(w, i + 1, 60 * SECOND_NS, i % 2);
		replace(w, 8, paces_ms[i] * MS, world_crash_host);
		assert_true(world_run(w, 10 * SECOND_NS));
		assert_in_range(w->host[w->hosts - 1].share.silent, 1000, 3000);
		assert_true(world_mean_admitted(w, SECOND_NS) <= 2000);
		assert_true(world_run(w, 55 * SECOND_NS));
		assert_used(w, SECOND_NS, 95);
		assert_int_equal(w->host[w->hosts - 1].share.silent, 0);
	}
}

/* Its program without a controller, as well as with one that is cut off. */
WORLD_CLAIM(a_host_that_stops_after_silence_has_its_part_again_when_it_is_back)
{
	for (uint32_t i = 0; i < 2; i++) {
		begin_with_silence(w, i + 1, 60 * SECOND_NS, true);
		w->host[0].is_cut = true;
		if (i)
			world_kill_process(w, 0);
		assert_true(world_run(w, 50 * SECOND_NS));
		assert_int_equal(w->host[0].plane_units, 1000);
		assert_true(world_run(w, 16 * SECOND_NS));
		assert_int_equal(w->host[0].plane_units, 0);
		assert_used(w, SECOND_NS, 95);
		w->host[0].is_cut = false;
		if (i)
			world_restart_process(w, 0);
		assert_true(world_run(w, 5 * SECOND_NS));
		assert_used(w, SECOND_NS, 95);
		assert_in_range(w->host[0].plane_units, 900, 1050);
	}
}

/* Then all together have more by its fallback, until it is back. */
WORLD_CLAIM(a_host_that_keeps_its_fallback_after_silence_adds_no_more_than_that)
{
	for (uint32_t i = 0; i < 2; i++) {
		begin_with_silence(w, i + 1, 60 * SECOND_NS, false);
		w->host[0].is_cut = true;
		if (i)
			world_kill_process(w, 0);
		assert_true(world_run(w, 66 * SECOND_NS));
		assert_int_equal(w->host[0].plane_units, 1000);
		assert_in_range(w->host[1].plane_units + w->host[2].plane_units, 2850, 3000);
		w->host[0].is_cut = false;
		if (i)
			world_restart_process(w, 0);
		assert_true(world_run(w, 5 * SECOND_NS));
		assert_used(w, SECOND_NS, 95);
		assert_true(w->now_ns > w->host[0].excused_ns);
		assert_in_range(w->host[0].plane_units, 900, 1050);
	}
}

/* ---- one story ---- */

/* A controller that is not scheduled until then neither speaks nor listens; its data plane continues. */
static void stall(struct world *w, uint32_t i, uint64_t ms)
{
	w->host[i].has_process = false;
	assert_true(world_run(w, ms * MS));
	w->host[i].has_process = true;
}

/* Let the host speak at once and hear the answer. */
static void speak_once(struct world *w, uint32_t i)
{
	uint64_t turn = w->host[i].member.turn;

	while (w->host[i].member.turn == turn || w->host[i].member.is_waiting)
		assert_true(world_step(w));
}

/* The busy host 0 comes back while the ledger's time is nearly a lease behind what host 1 will vouch for in its next
 * message. Host 1 gets its last answer then, and falls silent; host 0 learns only nearly a lease later what time it
 * was, and asks once more, so long after that.
 */
static bool a_host_learns_late(struct world *w, uint64_t later_ms)
{
	/* The ledger's time is that of the last answer to host 1 until both come again. */
	speak_once(w, 0);
	w->host[0].is_cut = true;
	assert_true(world_run(w, 40 * MS));
	speak_once(w, 1);
	w->host[1].has_process = false;
	while (w->host[0].share.time.is_known)
		assert_true(world_step(w));
	w->host[0].is_cut = false;
	speak_once(w, 0);
	w->host[1].has_process = true;
	speak_once(w, 1);
	/* It confirms that, and hears nothing any more. */
	w->host[0].has_process = false;
	w->host[1].is_deaf = true;
	assert_true(world_run(w, 210 * MS));
	w->host[1].is_cut = true;
	/* Just in time not to forget the ledger's time. */
	stall(w, 0, 735);
	speak_once(w, 0);
	stall(w, 0, later_ms);
	speak_once(w, 0);
	w->host[0].is_cut = true;
	return world_run(w, 10 * SECOND_NS);
}

WORLD_CLAIM(a_host_that_learns_late_what_time_it_is_spares_fallbacks_of_the_silent)
{
	struct weir_share_terms terms = usual;

	terms.interval_ns = 5 * SECOND_NS;
	for (uint64_t later_ms = 250; later_ms < 960; later_ms += 10) {
		world_begin(w, 1, &terms, 2, NULL, 0);
		w->link.usual_ns = 0;
		for (uint32_t i = 0; i < 2; i++) {
			w->host[i].drift_ppm = 0;
			world_start_host(w, i);
		}
		w->host[0].rate = 1200; /* twice what there is */
		assert_true(world_run(w, 30 * SECOND_NS));
		assert_in_range(w->host[0].plane_units, 2900, 3000);
		if (!a_host_learns_late(w, later_ms))
			fail_msg("%" PRIu64 " of %" PRIu64 ", %" PRIu64 " ms later", w->worst, terms.threshold,
				 later_ms);
	}
}

/* ---- each step that is left out is missed ---- */

/* The ledger's script with one text in place of another. The caller frees it. */
static char *altered(const char *text, const char *instead, size_t *ret_bytes)
{
	size_t bytes, before;
	const char *script = weir_ledger_script(&bytes);
	const char *at = memmem(script, bytes, text, strlen(text));
	char *copy;

	assert_non_null(at);
	assert_null(memmem(at + 1, (size_t)(script + bytes - at - 1), text, strlen(text)));
	before = (size_t)(at - script);
	*ret_bytes = bytes - strlen(text) + strlen(instead);
	copy = malloc(*ret_bytes + 1);
	assert_non_null(copy);
	memcpy(copy, script, before);
	memcpy(copy + before, instead, strlen(instead));
	memcpy(copy + before + strlen(instead), at + strlen(text), bytes - before - strlen(text));
	return copy;
}

/* A store that stands still, and two hosts that are cut off meanwhile: its ledger has not seen them fall back. */
static bool time_stands_still(struct world *w, uint64_t offset_ns)
{
	static const uint32_t parts[3] = {100, 0, 0};

	split(w, 6000, parts);
	world_run(w, 6 * SECOND_NS + offset_ns);
	w->store_runs = false;
	w->host[1].is_cut = w->host[2].is_cut = true;
	world_run(w, 10 * SECOND_NS);
	w->store_runs = true;
	return world_run(w, 4 * SECOND_NS);
}

/* A host is heard and hears nothing, so it falls back in the end. */
static bool a_host_is_deaf(struct world *w, uint64_t offset_ns)
{
	static const uint32_t parts[3] = {100, 0, 0};

	split(w, 6000, parts);
	world_run(w, 10 * SECOND_NS + offset_ns);
	w->host[1].is_deaf = true;
	return world_run(w, 8 * SECOND_NS);
}

/* The store goes over to a copy twice. Host 1 has not been heard of since before the first time; the others restart
 * with the second, and cannot say what was kept for it. So the ledger must.
 */
static bool a_ledger_is_lost_twice(struct world *w, uint64_t offset_ns)
{
	static const uint32_t parts[3] = {50, 0, 50};

	split(w, 6000, parts);
	world_run(w, 6 * SECOND_NS + offset_ns);
	w->host[1].is_cut = true;
	world_copy_store(w);
	world_fail_over(w);
	world_run(w, 6 * SECOND_NS);
	world_copy_store(w);
	world_fail_over(w);
	world_restart_process(w, 0);
	world_restart_process(w, 2);
	return world_run(w, 8 * SECOND_NS);
}

/* Hosts 0 and 1 share the flow, which comes to 0 alone: it has what 1 has given up. No host falls back. */
static void lend(struct world *w)
{
	static const uint32_t parts[3] = {100, 0, 0};

	world_share_flow(w, 2, false);
	split(w, 6000.0 * SECOND_NS / (double)w->terms.interval_ns, parts);
	world_run(w, 10 * SECOND_NS);
}

/* One comes back who had nothing, so that shares shrink under what is given up of them; who has it is cut off. */
static bool a_share_shrinks(struct world *w, uint64_t offset_ns)
{
	lend(w);
	w->host[2].is_cut = true;
	world_run(w, 12 * SECOND_NS);
	w->host[2].is_cut = false;
	world_run(w, offset_ns);
	w->host[0].is_cut = true;
	return world_run(w, 5 * SECOND_NS);
}

/* The one that has given up is cut off, and the ledger of the rule is lost, not the flow's; then the one that has it is
 * cut off, too.
 */
static bool a_rule_is_evicted(struct world *w, uint64_t offset_ns)
{
	w->terms.interval_ns = 10 * MS;
	for (uint32_t i = 0; i < 3; i++)
		world_start_host(w, i);
	lend(w);
	w->host[1].is_cut = true;
	world_evict_rule(w);
	world_run(w, offset_ns);
	w->host[0].is_cut = true;
	return world_run(w, 5 * SECOND_NS);
}

static bool a_lender_restarts(struct world *w, uint64_t offset_ns)
{
	lend(w);
	world_crash_host(w, 1);
	world_start_host(w, 1);
	world_run(w, offset_ns);
	w->host[0].is_cut = true;
	return world_run(w, 5 * SECOND_NS);
}

/* It is cut off, and was to stop after a while; others have all then. */
static bool a_host_is_silent_for_long(struct world *w, uint64_t offset_ns)
{
	static const uint32_t parts[3] = {34, 33, 33};

	w->terms.silent_ns = 10 * SECOND_NS;
	w->terms.stops = true;
	for (uint32_t i = 0; i < 3; i++)
		world_start_host(w, i);
	split(w, 9000, parts);
	world_run(w, 10 * SECOND_NS + offset_ns);
	w->host[0].is_cut = true;
	return world_run(w, 20 * SECOND_NS);
}

/* Two stores. Host 0 needs little, and others have what it does not use; it goes to the other store alone, where it
 * wants all. One of the others hears no more from the first store.
 */
static bool a_host_moves_alone(struct world *w, uint64_t offset_ns)
{
	static const uint32_t parts[3] = {0, 100, 0};

	w->terms.interval_ns = 5 * SECOND_NS;
	for (uint32_t i = 0; i < 3; i++)
		world_start_host(w, i);
	split(w, 6000, parts);
	world_run(w, 30 * SECOND_NS);
	world_go_to_store(w, 0, 1);
	w->host[0].rate = 6000;
	world_run(w, 500 * MS + offset_ns);
	w->host[1].is_cut = true;
	return world_run(w, 12 * SECOND_NS);
}

/* The same; but it comes to host 2, which has been there for long and wants all, and needs nothing itself. */
static bool a_host_joins_another(struct world *w, uint64_t offset_ns)
{
	static const uint32_t parts[3] = {0, 50, 50};

	w->terms.interval_ns = 5 * SECOND_NS;
	for (uint32_t i = 0; i < 3; i++)
		world_start_host(w, i);
	split(w, 12000, parts);
	world_run(w, 30 * SECOND_NS);
	world_go_to_store(w, 2, 1);
	world_run(w, 20 * SECOND_NS);
	world_go_to_store(w, 0, 1);
	world_run(w, 500 * MS + offset_ns);
	w->host[1].is_cut = true;
	return world_run(w, 12 * SECOND_NS);
}

/* What is owed to host 1, which both stores have no list of, goes with the others to another store. */
static bool what_is_owed_moves(struct world *w, uint64_t offset_ns)
{
	a_ledger_is_lost_twice(w, offset_ns);
	world_alternate(w);
	return world_run(w, 12 * SECOND_NS);
}

/* Host 0 is cut off before anybody has a fallback. It comes back alone, to another store. */
static bool a_host_knows_the_beginning_alone(struct world *w, uint64_t offset_ns)
{
	static const uint32_t parts[3] = {34, 33, 33};

	split(w, 30000, parts);
	world_run(w, 700 * MS + offset_ns / 4);
	w->host[0].is_cut = true;
	world_run(w, 12 * SECOND_NS);
	w->host[1].is_cut = w->host[2].is_cut = true;
	world_go_to_store(w, 0, 1);
	w->host[0].is_cut = false;
	return world_run(w, 12 * SECOND_NS);
}

/* What a step is for: random worlds from this one on, which has shown it, or one story, at several offsets. */
struct step {
	const char *name;
	enum omission omission;
	uint64_t seed;
	const char *text; /* of the script, and what stands there instead */
	const char *instead;
	bool (*story)(struct world *w, uint64_t offset_ns);
};

static bool keeps_in(const struct step *step, uint64_t seed, const char *script, size_t bytes)
{
	static struct world w;
	bool is_kept;

	if (step->story) {
		world_begin(&w, seed, &usual, 3, script, bytes);
		w.omission = step->omission;
		w.has_flow = w.terms.is_per_flow = step->omission >= OMIT_LENT && step->omission < OMIT_BELIEF;
		w.terms.may_fall_back = !w.has_flow;
		for (uint32_t i = 0; i < 3; i++)
			world_start_host(&w, i);
		is_kept = step->story(&w, seed * 25 * MS);
	} else {
		is_kept = random_world(&w, seed, step->omission, script, bytes);
	}
	world_end(&w);
	return is_kept;
}

static void assert_missed(const struct step *step)
{
	uint64_t end = step->seed + (step->story ? 80 : 400), seed, bytes = 0;
	char *script = step->text ? altered(step->text, step->instead, &bytes) : NULL;
	bool is_kept = true;

	for (seed = step->seed; is_kept && seed < end; seed++)
		is_kept = keeps_in(step, seed, script, bytes);
	free(script);
	if (getenv("WEIR_CLUSTER_TRACE"))
		printf("%s: seed %" PRIu64 "\n", step->name, seed - 1);
	if (is_kept)
		fail_msg("nothing is above the threshold although this is left out: %s", step->name);
}

/* The same stories, with nothing left out. */
LONG_CLAIM(what_another_store_may_count_on_is_kept)
{
	static bool (*const stories[])(struct world *, uint64_t) = {
		a_host_moves_alone, a_host_joins_another, what_is_owed_moves, a_host_knows_the_beginning_alone};
	static struct world w;

	for (uint32_t i = 0; i < ARRAY_SIZE(stories); i++)
		for (uint64_t seed = 1; seed < 80; seed += 4) {
			world_begin(&w, seed, &usual, 3, NULL, 0);
			for (uint32_t host = 0; host < 3; host++)
				world_start_host(&w, host);
			if (!stories[i](&w, seed * 25 * MS))
				fail_msg("story %u, %" PRIu64 ": %" PRIu64, i, seed, w.worst);
			world_end(&w);
		}
}

/* The same stories, with nothing left out. */
LONG_CLAIM(share_ceded_to_a_flow_is_never_spent_twice)
{
	static bool (*const stories[])(struct world *, uint64_t) = {a_share_shrinks, a_rule_is_evicted,
								    a_lender_restarts};
	static struct world w;

	for (uint32_t i = 0; i < ARRAY_SIZE(stories); i++)
		for (uint64_t seed = 1; seed < 80; seed += 3) {
			world_begin(&w, seed, &usual, 3, NULL, 0);
			w.has_flow = w.terms.is_per_flow = true;
			w.terms.may_fall_back = false;
			for (uint32_t host = 0; host < 3; host++)
				world_start_host(&w, host);
			assert_true(stories[i](&w, seed * 25 * MS));
			world_end(&w);
		}
}

/* The same story, with nothing left out. */
WORLD_CLAIM(what_is_owed_to_a_silent_host_outlasts_a_second_loss)
{
	for (uint64_t offset = 1; offset < 40; offset++) {
		world_begin(w, offset, &usual, 3, NULL, 0);
		for (uint32_t i = 0; i < 3; i++)
			world_start_host(w, i);
		assert_true(a_ledger_is_lost_twice(w, offset * 25 * MS));
	}
}

LONG_CLAIM(each_step_of_a_host_that_is_left_out_is_missed)
{
	static const struct step steps[] = {
		{.name = "what is given up rests", .omission = OMIT_REST, .seed = 6},
		{.name = "a lease ends", .omission = OMIT_LEASE_END, .seed = 6},
		{.name = "a lease counts from when it was asked for", .omission = OMIT_EARLY_END, .seed = 36},
		{.name = "a host waits before it rises", .omission = OMIT_WAIT, .seed = 4},
		{.name = "only the latest answer is taken", .omission = OMIT_TURN, .seed = 5},
		{.name = "a host vouches for no more time than it knows of", .omission = OMIT_TIME_BOUND, .seed = 1},
		{.name = "a new process does not know the peak", .omission = OMIT_UNKNOWN_PEAK, .seed = 132},
		{.name = "a host that was silent for too long stops",
		 .omission = OMIT_STOP,
		 .seed = 1,
		 .story = a_host_is_silent_for_long},
		{.name = "what is given up of a flow is held",
		 .omission = OMIT_LENT,
		 .seed = 1,
		 .story = a_share_shrinks},
		{.name = "a new ledger of a rule is quiet until what flows were given has ended",
		 .omission = OMIT_LONG_REST,
		 .seed = 20,
		 .story = a_rule_is_evicted},
		{.name = "a process begins late where flows are shared",
		 .omission = OMIT_BEGIN,
		 .seed = 1,
		 .text = "if rule.is_foreign or is_new then", /* which would give time enough in this story */
		 .instead = "if rule.is_foreign then",
		 .story = a_lender_restarts},
		{.name = "a host that comes from another ledger says what that may count on",
		 .omission = OMIT_RISES,
		 .seed = 1,
		 .story = a_host_moves_alone},
		{.name = "a host says what another ledger reserved",
		 .omission = OMIT_TOTAL,
		 .seed = 1,
		 .story = what_is_owed_moves},
		{.name = "a host says how many another ledger knew",
		 .omission = OMIT_EXPECTED,
		 .seed = 1,
		 .story = a_host_knows_the_beginning_alone},
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(steps); i++)
		assert_missed(&steps[i]);
}

CLAIM(each_step_of_the_script_that_is_left_out_is_missed)
{
	static const struct step steps[] = {
		{"not more than others leave", OMIT_NOTHING, 1, "math.max(room,", "math.max(rule.threshold,", NULL},
		{"what is granted is held", OMIT_NOTHING, 9, "mine.hold = math.max(mine.hold, share)\n",
		 "mine.hold = share\n", NULL},
		{"what a silent host held rests", OMIT_NOTHING, 40, "if for_us >= 0 then entry.hold",
		 "if for_us + entry.rest_us >= 0 then entry.hold", NULL},
		{"the second lease", OMIT_NOTHING, 542, "(rule.leaves and 0 or lease_us) + lease_us",
		 "(rule.leaves and 0 or lease_us)", NULL},
		{"fallbacks of the silent", OMIT_NOTHING, 84, "return math.max(entry.hold, entry.fallback)\n",
		 "return entry.hold\n", NULL},
		{"fallbacks of all, for who is not settled", OMIT_NOTHING, 1,
		 "local is_settled = rule.contact_us >= settled_us", "local is_settled = true", time_stands_still},
		{"a new ledger is quiet", OMIT_NOTHING, 12, "local is_quiet = ledger.now_us < mine.quiet_us",
		 "local is_quiet = false", NULL},
		{"what is owed", OMIT_NOTHING, 10, "0, 0, 0, unknown(ledger)\n", "0, 0, 0, 0\n", NULL},
		{"what has been owed before", OMIT_NOTHING, 1, "unknown(ledger) + (base", "0 + (base",
		 a_ledger_is_lost_twice},
		{"a store whose data have another name starts over", OMIT_NOTHING, 23, "or ledger.run ~= run then",
		 "or not ledger.run then", NULL},
		{"a host confirms what it has heard", OMIT_NOTHING, 1,
		 "mine.received_us, mine.rest_us = rule.received_us,",
		 "mine.received_us, mine.rest_us = ledger.now_us,", a_host_is_deaf},
		{"what a silent host may have is reserved", OMIT_NOTHING, 1, "for_us >= entry.silent_us)",
		 "for_us >= 0)", a_host_is_silent_for_long},
		{"what is owed is so for as long", OMIT_NOTHING, 1, "ledger.now_us + ledger.longest_us +",
		 "ledger.now_us +", a_ledger_is_lost_twice},
		{"who has just come counts with its fallback", OMIT_NOTHING, 1,
		 "is_live(ledger, entry) and ledger.now_us >= entry.quiet_us then", "is_live(ledger, entry) then",
		 a_host_joins_another},
		{"what another ledger reserved is reserved", OMIT_NOTHING, 1, "math.max(owed, rule.total - listed)",
		 "owed", what_is_owed_moves},
		{"what is owed until all are here is what the other owed", OMIT_NOTHING, 1,
		 "math.min(owed, ledger.left)", "0", what_is_owed_moves},
		{"nothing is free until all are here", OMIT_NOTHING, 1,
		 "ledger.expected > 0 and rule.may_fall_back and math.max(0, rule.limit - listed) or 0", "0",
		 a_host_knows_the_beginning_alone},
		{"turns in rising order", OMIT_NOTHING, 174, "turn <= mine.turn then", "false then", NULL},
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(steps); i++)
		assert_missed(&steps[i]);
}

RUN_CLAIMS(NULL, NULL)
