// SPDX-License-Identifier: GPL-2.0-only
#include "contest_verdict.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "claims.h"
#include "base/util.h"
#include "host/host.h"
#include "weir_window.h"

/* All CPUs' passes of a flow, sorted. */
struct passes {
	struct pass *pass;
	size_t count;
};

static int by_before(const void *left, const void *right)
{
	const struct pass *a = left, *b = right;

	return a->before_ns < b->before_ns ? -1 : a->before_ns > b->before_ns;
}

static int by_after(const void *left, const void *right)
{
	const struct pass *a = left, *b = right;

	return a->after_ns < b->after_ns ? -1 : a->after_ns > b->after_ns;
}

static struct passes gather(const struct flow *flow, int (*compare)(const void *, const void *))
{
	struct passes all = {};

	for (int which = 0; which < CPUS; which++)
		all.count += flow->on[which].pass_count;
	all.pass = calloc(all.count + 1, sizeof(*all.pass));
	assert_non_null(all.pass);
	all.count = 0;
	for (int which = 0; which < CPUS; which++) {
		const struct flow_on_cpu *on = &flow->on[which];

		if (on->pass_count)
			memcpy(all.pass + all.count, on->passes, on->pass_count * sizeof(*all.pass));
		all.count += on->pass_count;
	}
	qsort(all.pass, all.count, sizeof(*all.pass), compare);
	return all;
}

const char *contest_kind_name(enum weir_window_kind kind)
{
	return kind == WEIR_WINDOW_LEAP ? "leap" : kind == WEIR_WINDOW_STRICT ? "strict" : "smooth";
}

static uint64_t window_units(const struct account *account, const uint64_t *units, uint64_t bucket, uint32_t cells)
{
	uint64_t sum = 0;

	for (uint32_t age = 0; age < cells && age <= bucket; age++)
		sum += units[bucket - age];
	return sum;
}

#define WINDOW_FORMAT "%s limit %" PRIu64 " in %" PRIu64 " us: %s bucket %" PRIu64 " hold %" PRIu64
#define WINDOW_VALUES(account, what, bucket, sum)                                                                      \
	contest_kind_name((account)->loaded->window), (account)->limit,                                                \
		contest_written_rule((account)->contest, (account)->flow, (account)->rule)->interval_ns / 1000, what,  \
		bucket, sum

void contest_fail_window(const struct account *account, const char *what, uint64_t bucket, uint64_t sum)
{
	fail_msg(WINDOW_FORMAT, WINDOW_VALUES(account, what, bucket, sum));
}

void contest_fall_short(const struct account *account, const char *what, uint64_t bucket, uint64_t sum)
{
	print_message(WINDOW_FORMAT ", too few\n", WINDOW_VALUES(account, what, bucket, sum));
	contest_shortfalls++;
}

void contest_check_grid(const struct account *account)
{
	uint32_t cells = account->loaded->window_cells - (account->loaded->window == WEIR_WINDOW_SMOOTH);

	for (uint64_t bucket = 0; bucket < account->buckets; bucket++) {
		uint64_t sum = window_units(account, account->units, bucket, cells);

		if (sum > account->limit)
			contest_fail_window(account, "the buckets up to", bucket, sum);
	}
}

/* Strict: no interval holds more than the limit, wherever it starts. It fills up soonest at an admission. */
static void check_any_interval(const struct account *account)
{
	uint64_t interval_ns = contest_written_rule(account->contest, account->flow, account->rule)->interval_ns;
	struct passes starts = gather(account->flow, by_before), ends = gather(account->flow, by_after);
	uint64_t ended = 0, begun = 0;
	size_t end = 0;

	for (size_t start = 0; start < starts.count; start++) {
		uint64_t until_ns = starts.pass[start].before_ns + interval_ns - 2 * CLOCK_SLACK_NS;

		for (; end < ends.count && ends.pass[end].after_ns < until_ns; end++)
			ended += ends.pass[end].units;
		/* Units that ended before `until`, less those that did not surely begin in the interval. */
		if (ended > begun + account->limit)
			contest_fail_window(account, "the interval from within",
					    starts.pass[start].bucket[account->rule], ended - begun);
		begun += starts.pass[start].units;
	}
	free(starts.pass);
	free(ends.pass);
}

/* Smooth: at each admission, what was surely admitted before and still counts, and the packet, is within the limit. */
static void check_weighed(const struct account *account)
{
	struct passes starts = gather(account->flow, by_before), ends = gather(account->flow, by_after);
	_cleanup_(weir_freep) uint64_t *units = calloc(account->buckets, sizeof(*units));
	uint64_t bucket_ns = account->loaded->bucket_ns;
	uint32_t whole = account->loaded->window_cells - 1;
	size_t end = 0;

	assert_non_null(units);
	for (size_t start = 0; start < starts.count; start++) {
		const struct pass *pass = &starts.pass[start];
		uint64_t bucket = pass->bucket[account->rule] - account->first;
		uint64_t into_ns = pass->after_ns + CLOCK_SLACK_NS - pass->bucket[account->rule] * bucket_ns;
		uint64_t sum;

		for (; end < ends.count && ends.pass[end].after_ns < pass->before_ns; end++)
			units[ends.pass[end].bucket[account->rule] - account->first] += ends.pass[end].units;
		sum = window_units(account, units, bucket, whole) + pass->units;
		if (bucket >= whole && into_ns < bucket_ns)
			sum += weir_smooth_share(units[bucket - whole], bucket_ns, into_ns);
		if (sum > account->limit)
			contest_fail_window(account, "with an admission in it, the window at", bucket, sum);
	}
	free(starts.pass);
	free(ends.pass);
}

/* The first bucket, from the account's first on, that holds nothing of what was sent while rows were made. */
static uint64_t first_own_bucket(const struct account *account)
{
	return contest_bucket_at(account->contest, account->loaded, account->contest->start_ns) + 1 - account->first;
}

/* Every CPU sent without a pause in this bucket, and together twice the limit. */
static bool was_saturated(const struct account *account, uint64_t bucket)
{
	uint64_t units = 0;

	for (int which = 0; which < CPUS; which++) {
		const struct offer *offer = &account->flow->on[which].offers[account->rule][bucket];

		if (offer->was_held_up)
			return false;
		units += offer->units;
	}
	return units >= 2 * account->limit + 100;
}

/* What a smooth window still counted of its oldest bucket when the last packet of this one was sent. */
static uint64_t last_share(const struct account *account, uint64_t bucket)
{
	uint64_t bucket_ns = account->loaded->bucket_ns, end_ns = (account->first + bucket + 1) * bucket_ns;
	uint32_t whole = account->loaded->window_cells - 1;
	uint64_t last_ns = 0;

	if (account->loaded->window != WEIR_WINDOW_SMOOTH || bucket < whole)
		return 0;
	for (int which = 0; which < CPUS; which++) {
		const struct offer *offer = &account->flow->on[which].offers[account->rule][bucket];

		last_ns = offer->last_ns > last_ns ? offer->last_ns : last_ns;
	}
	if (last_ns >= end_ns)
		last_ns = end_ns - 1;
	return weir_smooth_share(account->units[bucket - whole], bucket_ns, bucket_ns - (end_ns - last_ns));
}

#define END_PART 64 /* of a bucket */

/* In a smooth window units come free all the time, and the last packet may find some that the other CPU has just
 * leased: one, or 2 %.
 */
static bool is_short(const struct account *account, uint64_t sum)
{
	if (account->loaded->window == WEIR_WINDOW_SMOOTH)
		return sum * 100 < account->limit * 98 && sum + 1 < account->limit;
	return sum * 100 < account->limit * 99;
}

/* A thread made a pause in one of the window's buckets: what its CPU had leased there is unspent as long as the window
 * looks at it.
 */
static bool was_held_up_within(const struct account *account, uint64_t bucket, uint32_t cells)
{
	for (uint32_t age = 0; age < cells && age <= bucket; age++)
		for (int which = 0; which < CPUS; which++)
			if (account->flow->on[which].offers[account->rule][bucket - age].was_held_up)
				return true;
	return false;
}

/* A thread sent its last packet of the bucket well before the bucket's end, and may have held units then: a pause too
 * short to be called one (HELD_UP_PART), but at the one moment that matters.
 */
static bool stopped_early(const struct account *account, uint64_t bucket)
{
	const struct contest *contest = account->contest;
	uint64_t end_ns = contest_bucket_begins_ns(contest, account->loaded, account->first + bucket + 1);

	for (int which = 0; which < CPUS; which++)
		if (account->flow->on[which].offers[account->rule][bucket].last_ns +
			    account->loaded->bucket_ns / END_PART <
		    end_ns)
			return true;
	return false;
}

void contest_check_over(struct contest *contest, const struct account *account, uint64_t unseen)
{
	uint32_t cells = account->loaded->window_cells - (account->loaded->window == WEIR_WINDOW_SMOOTH);
	bool sends_batches = unseen; /* of which only the first and the last packet's time is known */
	uint64_t bucket_ns = account->loaded->bucket_ns, checked = 0, too_short = 0, short_sum = 0, short_bucket = 0;

	/* The first bucket also holds what was sent while rows were made: begin with the window after it. End with a
	 * bucket that is over before the end, however late a tick.
	 */
	for (uint64_t bucket = first_own_bucket(account) - 1 + account->loaded->window_cells;
	     account->first + bucket + 1 < contest->end_ns / bucket_ns; bucket++) {
		uint64_t sum = window_units(account, account->units, bucket, cells) + last_share(account, bucket);

		if (!was_saturated(account, bucket) ||
		    (is_short(account, sum) && (was_held_up_within(account, bucket, cells) ||
						(!sends_batches && stopped_early(account, bucket))))) {
			contest->windows_left_out++;
			continue;
		}
		checked++;
		if (is_short(account, sum)) {
			too_short++;
			short_sum = sum;
			short_bucket = bucket;
		}
	}
	contest->windows += checked;
	if (too_short > unseen + 1 + checked / 20)
		contest_fall_short(account, "the buckets up to", short_bucket, short_sum);
}

/* The cells say what the threads saw. */
static void check_rows(const struct account *account)
{
	_cleanup_(weir_freep) void *values = contest_values_new();

	for (int which = 0; which < CPUS; which++) {
		const struct flow_on_cpu *on = &account->flow->on[which];
		_cleanup_(weir_freep) uint64_t *units = calloc(account->buckets, sizeof(*units));
		struct row row;

		assert_non_null(units);
		assert_int_equal(contest_read_row(account->contest, account->flow, account->rule, which, values, &row),
				 0);
		for (size_t i = 0; i < on->pass_count; i++)
			units[on->passes[i].bucket[account->rule] - account->first] += on->passes[i].units;
		for (uint64_t age = 0;
		     age < WEIR_RING_CELLS && row.newest - age >= account->first + first_own_bucket(account); age++)
			assert_int_equal(contest_row_spent(&row, account->loaded, row.newest - age),
					 units[row.newest - age - account->first]);
	}
}

void contest_check_rule(struct contest *contest, const struct flow *flow, size_t rule)
{
	struct account account = {
		.contest = contest,
		.flow = flow,
		.rule = rule,
		.loaded = contest_loaded_rule(contest, flow, rule),
		.limit = contest_limit(contest, flow, rule),
	};

	account.first = contest_first_bucket(contest, account.loaded);
	account.buckets = contest_bucket_count(contest, account.loaded);
	account.units = calloc(account.buckets, sizeof(*account.units));
	assert_non_null(account.units);
	for (int which = 0; which < CPUS; which++)
		for (size_t i = 0; i < flow->on[which].pass_count; i++) {
			const struct pass *pass = &flow->on[which].passes[i];

			assert_in_range(pass->bucket[rule], account.first, account.first + account.buckets - 1);
			account.units[pass->bucket[rule] - account.first] += pass->units;
		}

	contest_check_grid(&account);
	if (account.loaded->window == WEIR_WINDOW_STRICT)
		check_any_interval(&account);
	if (account.loaded->window == WEIR_WINDOW_SMOOTH)
		check_weighed(&account);
	if (!(flow->has_other_limit && rule == 0))
		contest_check_over(contest, &account, 0);
	check_rows(&account);
	free(account.units);
}

static void contest_evaluate(struct contest *contest, const char *what)
{
	uint64_t offered = 0, passed = 0;

	for (size_t i = 0; i < contest->flow_count; i++) {
		const struct flow *flow = &contest->flows[i];
		uint64_t flow_passed = flow->passed_before;

		for (size_t rule = 0; rule < flow->rule_count; rule++)
			contest_check_rule(contest, flow, rule);
		for (int which = 0; which < CPUS; which++)
			flow_passed += flow->on[which].pass_count;
		assert_int_equal(rig_passed(&contest->rig, flow->resource), flow_passed);
		passed += flow_passed;
		for (int which = 0; which < CPUS; which++)
			for (uint64_t b = 0; b < contest_bucket_count(contest, contest_loaded_rule(contest, flow, 0));
			     b++)
				offered += flow->on[which].offers[0][b].units;
	}
	print_message("%s: %" PRIu64 " offered in %" PRIu64 " ms, %" PRIu64 " packets passed; %" PRIu64
		      " windows full, %" PRIu64 " left out (not saturated)\n",
		      what, offered, (uint64_t)((contest->end_ns - contest->start_ns) / MS), passed, contest->windows,
		      contest->windows_left_out);
	contest_saturation_missed |= contest->windows == 0;
}

void contest_hold(struct contest *contest, const char *what, uint64_t duration_ns)
{
	contest_load(contest);
	contest_make_rows(contest);
	contest->start_ns = weir_host_now_ns() + 5 * MS;
	contest->end_ns = contest->start_ns + duration_ns;
	contest_make_logs(contest);
	assert_int_equal(contest_run(contest, contestant_main), 0);
	contest_evaluate(contest, what);
	contest_end(contest);
}
