// SPDX-License-Identifier: GPL-2.0-only
/*
 * Duels: both CPUs want the last units of a flow at the same instant, again and again, in the middle of a bucket and at
 * its edge. One of them wins each unit (tests/lib/contest.h).
 */
#include <inttypes.h>
#include <linux/bpf.h>

#include "../lib/claims.h"
#include "../lib/contest_verdict.h"
#include "base/util.h"
#include "host/host.h"

#define DUEL_SHOTS 3
#define DUEL_SPACING_NS 20000 /* shots of one flow are over before those of the next begin */
#define DUEL_LIMIT_MAX 3

static uint64_t wait_until(uint64_t due_ns)
{
	uint64_t now_ns;

	do {
		now_ns = weir_host_now_ns();
	} while (now_ns < due_ns);
	return now_ns;
}

/* The bucket that the packet sent between these two times was evaluated in, passed or not; false if that cannot be
 * known. The row's tick shows it: a blocked packet brings it to the present, too.
 */
static bool find_bucket(struct contestant *self, const struct flow *flow, uint64_t before_ns, uint64_t after_ns,
			uint64_t *ret_bucket)
{
	const struct weir_rule *loaded = contest_loaded_rule(self->contest, flow, 0);
	struct row row;

	*ret_bucket = before_ns / loaded->bucket_ns;
	if (!loaded->goes_by_ticks)
		return after_ns / loaded->bucket_ns == *ret_bucket;
	self->err = contest_read_row(self->contest, flow, 0, self->which, self->values, &row);
	*ret_bucket = row.newest;
	return !self->err;
}

static void shoot(struct contestant *self, struct flow *flow, uint64_t before_ns)
{
	struct contest *contest = self->contest;
	uint64_t first = contest_first_bucket(contest, contest_loaded_rule(contest, flow, 0)), after_ns, bucket;
	int action = weir_object_evaluate(contest->rig.object, flow->frame, flow->frame_bytes);

	after_ns = weir_host_now_ns();
	if (action < 0)
		self->err = action;
	else if (action == XDP_PASS)
		self->err = contest_note_pass(contest, flow, self->which, before_ns, after_ns, 1, self->values);
	if (!self->err && after_ns < contest->end_ns && find_bucket(self, flow, before_ns, after_ns, &bucket)) {
		struct offer *offer = &flow->on[self->which].offers[0][bucket - first];

		offer->units++;
		if (!offer->alone_ns)
			offer->last_ns = after_ns;
	}
}

/* From now on this thread takes what is left in the bucket, if that is not over. */
static void begin_alone(struct contestant *self, struct flow *flow, uint64_t bucket)
{
	const struct weir_rule *loaded = contest_loaded_rule(self->contest, flow, 0);
	uint64_t now_ns = weir_host_now_ns();

	if (contest_bucket_at(self->contest, loaded, now_ns) == bucket)
		flow->on[self->which].offers[0][bucket - contest_first_bucket(self->contest, loaded)].alone_ns = now_ns;
}

/*
 * Each bucket begins with a duel over every flow, at times that both threads know, the first of them at
 * the very edge. In its second half one thread alone takes what they left to each other.
 */
static void *duellist_main(void *data)
{
	struct contestant *self = data;
	struct contest *contest = self->contest;
	const struct weir_rule *loaded = contest_loaded_rule(contest, &contest->flows[0], 0);
	uint64_t bucket = contest_bucket_at(contest, loaded, contest->start_ns) + 1, edge_ns;
	size_t round = 0;

	for (; (bucket + 2) * loaded->bucket_ns < contest->end_ns && !self->err; bucket++, round++) {
		edge_ns = contest_bucket_begins_ns(contest, loaded, bucket);
		for (size_t i = 0; i < contest->flow_count && !self->err; i++) {
			struct flow *flow = &contest->flows[(i + round) % contest->flow_count];
			/* From 3 us before the edge to 3 us after it. */
			uint64_t now_ns = wait_until(edge_ns - 3000 + round % 13 * 500 + i * DUEL_SPACING_NS);

			for (int shot = 0; shot < DUEL_SHOTS; shot++, now_ns = weir_host_now_ns())
				shoot(self, flow, now_ns);
		}
		if (round % CPUS != (size_t)self->which)
			continue;
		wait_until(edge_ns + loaded->bucket_ns / 2);
		for (size_t i = 0; i < contest->flow_count; i++) {
			begin_alone(self, &contest->flows[i], bucket);
			for (int shot = 0; shot <= DUEL_LIMIT_MAX; shot++)
				shoot(self, &contest->flows[i], weir_host_now_ns());
		}
	}
	return NULL;
}

/*
 * A duel at every edge of a bucket, one shot each, over flows in turn that have been silent for an interval:
 * one CPU's clock may still show the old bucket while the other counts in the new one.
 */
static void *edge_duellist_main(void *data)
{
	struct contestant *self = data;
	struct contest *contest = self->contest;
	uint64_t bucket_ns = contest_loaded_rule(contest, &contest->flows[0], 0)->bucket_ns;
	uint64_t edge_ns = (contest->start_ns / bucket_ns + 1) * bucket_ns;

	for (size_t round = 0; edge_ns + bucket_ns < contest->end_ns && !self->err; edge_ns += bucket_ns, round++) {
		/* A run reads its clock within 3 us of being asked for: try all of them. */
		uint64_t now_ns = wait_until(edge_ns - 3000 + round * 37 % 3000);

		shoot(self, &contest->flows[round % contest->flow_count], now_ns);
	}
	return NULL;
}

/* All shots of the duel fell into this bucket, and one thread took what was left when the other's were over. */
static bool duel_was_regular(const struct flow *flow, uint64_t bucket)
{
	uint64_t shots = 0, over_ns = 0, alone_ns = 0;

	for (int which = 0; which < CPUS; which++) {
		const struct offer *offer = &flow->on[which].offers[0][bucket];

		shots += offer->units;
		over_ns = offer->last_ns > over_ns ? offer->last_ns : over_ns;
		alone_ns = offer->alone_ns > alone_ns ? offer->alone_ns : alone_ns;
	}
	return shots == CPUS * DUEL_SHOTS + DUEL_LIMIT_MAX + 1 && over_ns < alone_ns;
}

/* Never more than the limit; and exactly the limit, where the duel was as it was meant to be. */
static void duel_check(struct contest *contest, const struct flow *flow)
{
	struct account account = {
		.contest = contest,
		.flow = flow,
		.loaded = contest_loaded_rule(contest, flow, 0),
		.limit = contest_limit(contest, flow, 0),
	};

	if (account.loaded->counts_bytes)
		account.limit /= flow->frame_bytes;
	account.first = contest_first_bucket(contest, account.loaded);
	account.buckets = contest_bucket_count(contest, account.loaded);
	account.units = calloc(account.buckets, sizeof(*account.units));
	assert_non_null(account.units);
	for (int which = 0; which < CPUS; which++)
		for (size_t i = 0; i < flow->on[which].pass_count; i++)
			account.units[flow->on[which].passes[i].bucket[0] - account.first]++;
	contest_check_grid(&account);
	for (uint64_t bucket = 1; bucket < account.buckets; bucket++) {
		if (!duel_was_regular(flow, bucket)) {
			contest->windows_left_out +=
				flow->on[0].offers[0][bucket].units + flow->on[1].offers[0][bucket].units > 0;
			continue;
		}
		contest->windows++;
		if (account.units[bucket] < account.limit)
			contest_fall_short(&account, "the bucket", bucket, account.units[bucket]);
	}
	free(account.units);
}

static void duel_hold(bool is_keyed, uint64_t interval_ns, size_t flow_count, enum weir_storage storage)
{
	struct weir_ruleset_rule *rule;
	_cleanup_(contest_end) struct contest contest = {};

	contest_begin(&contest);
	for (size_t i = 0; i < flow_count; i++) {
		contest_flow(&contest, is_keyed);
		rule = contest_rule(&contest, WEIR_WINDOW_LEAP, 1 + i % DUEL_LIMIT_MAX, interval_ns, 1);
		if (storage == WEIR_STORAGE_MEDIUM) { /* so many bytes: frames are all of one length */
			rule->counts_bytes = true;
			rule->threshold_micro *= contest.flows[i].frame_bytes;
		}
	}
	contest_load(&contest);
	for (size_t i = 0; i < flow_count; i++)
		assert_int_equal(contest.rig.image->rules[i].storage, storage);
	contest_make_rows(&contest);
	contest.start_ns = weir_host_now_ns() + 5 * MS;
	contest.end_ns = contest.start_ns + 1500 * MS;
	contest_make_logs(&contest);
	assert_int_equal(contest_run(&contest, duellist_main), 0);
	for (size_t i = 0; i < flow_count; i++)
		duel_check(&contest, &contest.flows[i]);
	print_message("%" PRIu64 " duels, %" PRIu64 " more that missed their bucket\n", contest.windows,
		      contest.windows_left_out);
	contest_saturation_missed |= contest.windows == 0;
}

/* Limit one in ten buckets, of 1 ms each. */
CONTEST_CLAIM(duels_at_the_edge_of_a_bucket_have_one_winner)
{
	uint64_t windows = 0;
	_cleanup_(contest_end) struct contest contest = {};

	contest_begin(&contest);
	for (size_t i = 0; i < 12; i++) {
		contest_flow(&contest, true);
		contest_rule(&contest, contest_kinds[i % ARRAY_SIZE(contest_kinds)], 1, 10 * MS, 10);
	}
	contest_load(&contest);
	contest_make_rows(&contest);
	contest.start_ns = weir_host_now_ns() + 5 * MS;
	contest.end_ns = contest.start_ns + 3000 * MS;
	contest_make_logs(&contest);
	assert_int_equal(contest_run(&contest, edge_duellist_main), 0);
	for (size_t i = 0; i < contest.flow_count; i++) {
		contest_check_rule(&contest, &contest.flows[i], 0);
		windows += contest.flows[i].on[0].pass_count + contest.flows[i].on[1].pass_count;
	}
	print_message("%" PRIu64 " duels at an edge\n", windows);
	assert_true(windows > 0);
}

CONTEST_CASE(narrow_rows_let_exactly_the_limit_win_a_duel, duel_hold(true, 50 * MS, 400, WEIR_STORAGE_NARROW));
CONTEST_CASE(medium_rows_let_exactly_the_limit_win_a_duel, duel_hold(true, 50 * MS, 400, WEIR_STORAGE_MEDIUM));
CONTEST_CASE(wide_rows_let_exactly_the_limit_win_a_duel, duel_hold(true, 10 * MS, 150, WEIR_STORAGE_WIDE));
CONTEST_CASE(whole_resources_let_exactly_the_limit_win_a_duel, duel_hold(false, 10 * MS, 150, WEIR_STORAGE_LONE));

RUN_CLAIMS(NULL, NULL)
