// SPDX-License-Identifier: GPL-2.0-only
/* A host's side of a share, step by step; cluster_simulation_test has whole worlds. */
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "shares/demand.h"
#include "shares/ledger.h"
#include "shares/share.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define START (100 * SECOND)

static const struct weir_share_terms terms = {.threshold = 3000, .interval_ns = SECOND, .may_fall_back = true};

static struct weir_share_answer lease_of(uint64_t units)
{
	return (struct weir_share_answer){
		.epoch = "p:1", .now_us = 5000000, .share = units, .fallback = 1000, .lease_us = 1000000, .hosts = 3};
}

/* A share of so many units, leased at START. */
static struct weir_share leased(uint64_t units)
{
	struct weir_share_answer answer = lease_of(units);
	struct weir_share share;

	weir_share_begin(&share, &terms, START - 10 * SECOND);
	memcpy(share.heard, answer.epoch, sizeof(share.heard)); /* in an answer before */
	weir_share_take(&share, &answer, START, START + MS);
	return share;
}

CLAIM(a_process_begins_with_nothing)
{
	struct weir_share_ask ask;
	struct weir_share share;

	weir_share_begin(&share, &terms, START);
	assert_int_equal(share.enforced, 0);
	weir_share_ask(&share, START, 0, 0, &ask);
	assert_int_equal(ask.peak, WEIR_PEAK_UNKNOWN);
	assert_int_equal(ask.received_us, WEIR_LEDGER_NEVER);
	assert_string_equal(ask.epoch, "-");
	weir_share_ask(&share, START + 1052 * MS, 0, 0, &ask);
	assert_int_equal(ask.peak, 0);
}

/* By a thousandth, from when it was asked for. */
CLAIM(a_lease_ends_before_the_stores)
{
	struct weir_share share = leased(2000);

	assert_int_equal(weir_share_next_ns(&share), START + 999 * MS);
	weir_share_advance(&share, START + 999 * MS - 1);
	assert_int_equal(share.enforced, 2000);
	weir_share_advance(&share, START + 999 * MS);
	assert_int_equal(share.enforced, 1000);
}

CLAIM(a_lease_that_the_store_shortens_is_short)
{
	struct weir_share_answer answer = lease_of(2000);
	struct weir_share share;

	answer.lease_us = 300000;
	weir_share_begin(&share, &terms, START - 10 * SECOND);
	memcpy(share.heard, answer.epoch, sizeof(share.heard));
	weir_share_take(&share, &answer, START, START + MS);
	assert_int_equal(weir_share_next_ns(&share), START + 300 * MS - 300000);
}

CLAIM(a_host_with_less_than_its_fallback_rises_late)
{
	struct weir_share share = leased(20);
	uint64_t wait_ns = WEIR_CLUSTER_SETTLED_NS + WEIR_CLUSTER_LEASE_NS + SECOND + WEIR_CLUSTER_SETTLE_NS;

	weir_share_advance(&share, START + MS + wait_ns);
	assert_int_equal(share.enforced, 20);
	weir_share_advance(&share, weir_share_next_ns(&share));
	assert_int_equal(share.enforced, 1000);
	assert_int_equal(weir_share_next_ns(&share), UINT64_MAX);
}

/* What the data plane does by itself is what the host would have done. */
CLAIM(a_schedule_says_what_will_be_enforced)
{
	static const uint64_t units[] = {20, 2000};
	const uint64_t wait_ns = WEIR_CLUSTER_SETTLED_NS + WEIR_CLUSTER_LEASE_NS + SECOND + WEIR_CLUSTER_SETTLE_NS;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		struct weir_share share = leased(units[i]);
		struct weir_share_schedule schedule;

		weir_share_plan(&share, START + MS, &schedule);
		assert_int_equal(schedule.leased, units[i]);
		assert_int_equal(schedule.ends_ns, weir_share_next_ns(&share));
		weir_share_advance(&share, schedule.ends_ns);
		assert_int_equal(schedule.ended, share.enforced);
		assert_int_equal(schedule.rises_ns, weir_share_next_ns(&share));
		assert_true(schedule.rises_ns > START + wait_ns);
		weir_share_advance(&share, schedule.rises_ns);
		assert_int_equal(schedule.fallen_back, share.enforced);
		weir_share_plan(&share, schedule.rises_ns, &schedule);
		assert_int_equal(schedule.leased, 1000);
		assert_int_equal(schedule.rises_ns, UINT64_MAX);
	}
}

/* It enforces no more than the schedule, and claims to know nothing of what was before. */
CLAIM(another_process_takes_over_the_schedule)
{
	static const uint64_t after_ms[] = {500, 1500, 6000};
	static const uint64_t enforced[] = {20, 20, 1000};
	struct weir_share share = leased(20), next;
	struct weir_share_schedule schedule, same;
	struct weir_share_ask ask;

	weir_share_plan(&share, START + MS, &schedule);
	for (size_t i = 0; i < ARRAY_SIZE(after_ms); i++) {
		weir_share_resume(&next, &terms, &schedule, START + after_ms[i] * MS);
		assert_int_equal(next.enforced, enforced[i]);
		weir_share_ask(&next, START + after_ms[i] * MS, 0, 0, &ask);
		assert_int_equal(ask.peak, WEIR_PEAK_UNKNOWN);
		assert_int_equal(ask.fallback, 1000);
		assert_int_equal(ask.received_us, WEIR_LEDGER_NEVER);
	}
	weir_share_resume(&next, &terms, &schedule, START + 500 * MS);
	weir_share_plan(&next, START + 500 * MS, &same);
	assert_memory_equal(&same, &schedule, sizeof(same));
}

CLAIM(a_smaller_threshold_holds_at_once_and_what_was_is_remembered)
{
	const struct weir_share_terms smaller = {.threshold = 900, .interval_ns = SECOND, .may_fall_back = true};
	struct weir_share share = leased(2000);
	struct weir_share_ask ask;

	weir_share_change(&share, &smaller, START + 200 * MS);
	weir_share_ask(&share, START + 200 * MS, 0, 0, &ask);
	assert_int_equal(ask.threshold, 900);
	assert_int_equal(ask.share, 900);
	assert_int_equal(ask.fallback, 900);
	assert_int_equal(ask.peak, 2000);
}

CLAIM(what_was_pushed_late_counts_until_then)
{
	struct weir_share share = leased(2000);
	struct weir_share_answer answer = lease_of(500);
	struct weir_share_ask ask;

	weir_share_take(&share, &answer, START + 200 * MS, START + 200 * MS);
	weir_share_was(&share, 2000, START + 300 * MS);
	weir_share_take(&share, &answer, START + 1300 * MS, START + 1300 * MS);
	weir_share_ask(&share, START + 1350 * MS, 0, 0, &ask);
	assert_int_equal(ask.peak, 2000);
	weir_share_ask(&share, START + 1352 * MS, 0, 0, &ask);
	assert_int_equal(ask.peak, 500);
}

CLAIM(a_share_given_up_is_reported_when_it_has_left_the_window)
{
	struct weir_share share = leased(2000);
	struct weir_share_answer answer = lease_of(500);
	struct weir_share_ask ask;

	weir_share_take(&share, &answer, START + 200 * MS, START + 200 * MS);
	assert_int_equal(share.enforced, 500);
	weir_share_take(&share, &answer, START + 1240 * MS, START + 1240 * MS);
	weir_share_ask(&share, START + 1250 * MS, 0, 0, &ask);
	assert_int_equal(ask.peak, 2000);
	weir_share_ask(&share, START + 1252 * MS, 0, 0, &ask);
	assert_int_equal(ask.peak, 500);
}

/* What is remembered is never less than what was, and not much more. */
CLAIM(shares_that_shrink_often_are_not_forgotten)
{
	struct weir_share share = leased(3000);
	struct weir_share_ask ask;
	uint64_t now_ns = START;

	for (uint64_t i = 1; i < 100; i++) {
		struct weir_share_answer answer = lease_of(3000 - 10 * i);

		now_ns = START + i * 40 * MS;
		weir_share_take(&share, &answer, now_ns, now_ns);
		weir_share_ask(&share, now_ns, 0, 0, &ask);
		/* 1,050 ms ago are 26 steps. */
		assert_true(ask.peak >= (int64_t)(3000 - 10 * (i > 27 ? i - 27 : 0)));
		assert_true(ask.peak <= (int64_t)(3000 - 10 * (i > 31 ? i - 31 : 0)));
	}
	weir_share_ask(&share, now_ns + 1052 * MS, 0, 0, &ask);
	assert_true(ask.peak <= 3000 - 10 * 99);
}

CLAIM(a_host_that_leaves_enforces_nothing)
{
	struct weir_share share = leased(2000);
	struct weir_share_ask ask;

	weir_share_leave(&share, START + 10 * MS, &ask);
	assert_true(ask.leaves);
	assert_int_equal(ask.peak, 2000);
	assert_int_equal(share.enforced, 0);
	assert_int_equal(weir_share_next_ns(&share), UINT64_MAX);
}

/* A clock that is right says a thousandth less than it knows. */
CLAIM(a_host_vouches_for_less_time_than_has_passed)
{
	struct weir_share share = leased(2000);
	struct weir_share_ask ask;

	weir_share_ask(&share, START + 501 * MS, 0, 0, &ask);
	assert_int_equal(ask.now_us, 5000000 + 500000 - 500);
	weir_share_ask(&share, START + 999 * MS, 0, 0, &ask);
	assert_int_equal(ask.now_us, 0);
	assert_int_equal(ask.received_us, WEIR_LEDGER_NEVER);
}

CLAIM(an_answer_is_taken_once_and_in_time)
{
	struct weir_member member = {};

	assert_true(weir_member_takes_turn(&member, START));
	assert_false(weir_member_takes_turn(&member, START + 299 * MS));
	assert_false(weir_member_takes_answer(&member, 2, START + MS));
	assert_true(weir_member_takes_answer(&member, 1, START + MS));
	assert_false(weir_member_takes_answer(&member, 1, START + MS));
	assert_false(weir_member_takes_turn(&member, START + 199 * MS));
	assert_true(weir_member_takes_turn(&member, START + 200 * MS));
	assert_false(weir_member_takes_answer(&member, 2, START + 500 * MS));
	assert_true(weir_member_takes_turn(&member, START + 500 * MS));
}

/* As ledger.lua adds it up, written once more. */
static long long check_of(const char *epoch, const long long *numbers)
{
	long long check = 0;

	for (; *epoch; epoch++)
		check = (check * 31 + *epoch) % 2147483647;
	for (size_t i = 0; i + 1 < WEIR_LEDGER_ANSWER_NUMBERS; i++)
		check = (check * 31 + (numbers[i] % 2147483647 + 2147483647) % 2147483647) % 2147483647;
	return check;
}

/* One answer may come from another store: it changes nothing, until the next one has the same epoch. */
CLAIM(an_epoch_that_it_did_not_report_is_asked_for_once_more)
{
	struct weir_share_answer answer = lease_of(1500), others = lease_of(100);
	struct weir_share share = leased(2000), before = share;
	struct weir_share_ask ask;

	snprintf(others.epoch, sizeof(others.epoch), "q:7");
	assert_false(weir_share_take(&share, &others, START + 200 * MS, START + 201 * MS));
	weir_share_ask(&share, START + 400 * MS, 0, 0, &ask);
	assert_string_equal(ask.epoch, "p:1");
	assert_int_equal(share.enforced, 2000);
	assert_int_equal(share.ends_ns, before.ends_ns);
	assert_int_equal(share.total, before.total);
	/* Its own says something else in between: then it starts over. */
	assert_true(weir_share_take(&share, &answer, START + 400 * MS, START + 401 * MS));
	assert_int_equal(share.enforced, 1500);
	assert_false(weir_share_take(&share, &others, START + 600 * MS, START + 601 * MS));
	assert_int_equal(share.enforced, 1500);
	weir_share_ask(&share, START + 800 * MS, 0, 0, &ask);
	/* So long the other ledger may count on what this host does not use. */
	assert_in_range(ask.rises_us, 3700000, 3800000);
	assert_true(weir_share_take(&share, &others, START + 800 * MS, START + 801 * MS));
	assert_int_equal(share.enforced, 100);
	weir_share_ask(&share, START + 1000 * MS, 0, 0, &ask);
	assert_string_equal(ask.epoch, "q:7");
}

/* Whichever it is, in an answer or in a message: another number, or another check. */
CLAIM(one_changed_character_is_noticed)
{
	static const char digits[] = "0123456789";
	const struct weir_member member = {.host = "a", .process = "f00", .turn = 9};
	struct weir_share share = leased(2000);
	weir_ledger_word words[WEIR_LEDGER_ASK_WORDS], others[WEIR_LEDGER_ASK_WORDS];
	struct weir_share_ask ask;
	long long good[] = {5, 3000, 1000, 1000000, 3, 3000, 1000, 3600000000, 3, 250, 0};
	struct weir_share_answer answer;

	good[10] = check_of("p:1", good);
	assert_int_equal(weir_ledger_read_answer("p:1", good, &terms, &answer), 0);
	assert_int_equal(answer.expected, 3);
	assert_int_equal(answer.owed, 250);
	assert_int_equal(weir_ledger_read_answer("p:2", good, &terms, &answer), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char text[32];

		snprintf(text, sizeof(text), "%lld", good[i]);
		for (char *at = text; *at; at++) {
			const char was = *at;

			for (const char *digit = digits; *digit; digit++) {
				long long numbers[WEIR_LEDGER_ANSWER_NUMBERS];

				memcpy(numbers, good, sizeof(numbers));
				*at = *digit;
				numbers[i] = strtoll(text, NULL, 10);
				if (numbers[i] != good[i])
					assert_int_equal(weir_ledger_read_answer("p:1", numbers, &terms, &answer),
							 -EINVAL);
			}
			*at = was;
		}
	}
	weir_share_ask(&share, START + 200 * MS, 0, 0, &ask);
	weir_ledger_write_ask(&member, &ask, words);
	ask.fallback ^= 1;
	weir_ledger_write_ask(&member, &ask, others);
	assert_string_not_equal(words[WEIR_LEDGER_ASK_WORDS - 1], others[WEIR_LEDGER_ASK_WORDS - 1]);
}

CLAIM(answers_that_no_ledger_gives_are_refused)
{
	long long good[] = {5, 3000, 1000, 1000000, 3, 3000, 1000, 3600000000, 3, 0, 0};
	static const struct {
		int at;
		long long number;
	} bad[] = {{0, -1},	 {1, -1},   {1, 3001},
		   {2, -1},	 {2, 3001}, {3, -2},
		   {3, 1000001}, {7, -1},   {7, 1000000000000001},
		   {8, -1},	 {9, -1}};
	struct weir_share_answer answer = {.share = 7};
	char long_epoch[WEIR_CLUSTER_EPOCH_CHARS + 1];

	good[10] = check_of("", good);

	memset(long_epoch, 'x', sizeof(long_epoch));
	long_epoch[WEIR_CLUSTER_EPOCH_CHARS] = '\0';
	assert_int_equal(weir_ledger_read_answer("", good, &terms, &answer), -EINVAL);
	good[10] = check_of(long_epoch, good);
	assert_int_equal(weir_ledger_read_answer(long_epoch, good, &terms, &answer), -EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		long long numbers[WEIR_LEDGER_ANSWER_NUMBERS];

		memcpy(numbers, good, sizeof(numbers));
		numbers[bad[i].at] = bad[i].number;
		numbers[10] = check_of("p:1", numbers);
		assert_int_equal(weir_ledger_read_answer("p:1", numbers, &terms, &answer), -EINVAL);
	}
	assert_int_equal(answer.share, 7);
	good[10] = check_of("p:1", good);
	assert_int_equal(weir_ledger_read_answer("p:1", good, &terms, &answer), 0);
	assert_int_equal(answer.share, 3000);
	assert_string_equal(answer.epoch, "p:1");
}

/* ---- silence ---- */

#define MINUTE (60 * SECOND)

static struct weir_share_terms terms_of_silence(uint64_t silent_ns, bool stops)
{
	struct weir_share_terms silent = terms;

	silent.silent_ns = silent_ns;
	silent.stops = stops;
	return silent;
}

/* A share that was asked for with such terms at START, and confirmed. */
static struct weir_share leased_with(const struct weir_share_terms *silent)
{
	struct weir_share_answer answer = lease_of(2000);
	struct weir_share_ask ask;
	struct weir_share share;

	weir_share_begin(&share, silent, START - 10 * SECOND);
	weir_share_ask(&share, START, 0, 0, &ask);
	memcpy(share.heard, answer.epoch, sizeof(share.heard));
	weir_share_take(&share, &answer, START, START + MS);
	return share;
}

/* From when it last asked with success, by a thousandth less; the data plane by its schedule, as the controller. */
CLAIM(a_host_that_stops_does_so_when_it_has_been_silent_for_so_long)
{
	const struct weir_share_terms silent = terms_of_silence(10 * MINUTE, true);
	const uint64_t end_ns = START + 10 * MINUTE - 600 * MS;
	struct weir_share share = leased_with(&silent);
	struct weir_share_schedule schedule;

	weir_share_plan(&share, START + MS, &schedule);
	assert_int_equal(schedule.stops_ns, end_ns);
	weir_share_advance(&share, end_ns - 1);
	assert_int_equal(share.enforced, 1000);
	assert_int_equal(weir_share_next_ns(&share), end_ns);
	weir_share_advance(&share, end_ns);
	assert_int_equal(share.enforced, 0);
	assert_int_equal(share.fallback, 0);
	assert_int_equal(weir_share_next_ns(&share), UINT64_MAX);
}

CLAIM(a_host_that_keeps_its_fallback_does_so_for_ever)
{
	const struct weir_share_terms keeps = terms_of_silence(MINUTE, false);
	const struct weir_share_terms never = terms_of_silence(UINT64_MAX, true);
	struct weir_share share = leased_with(&keeps), other = leased_with(&never);

	weir_share_advance(&share, START + 1000 * MINUTE);
	weir_share_advance(&other, START + 1000 * MINUTE);
	assert_int_equal(share.enforced, 1000);
	assert_int_equal(other.enforced, 1000);
	assert_int_equal(weir_share_next_ns(&share), UINT64_MAX);
}

/* The ledger goes by what it heard last, which may not have been confirmed. */
CLAIM(the_shorter_silence_holds_until_the_other_is_confirmed)
{
	const struct weir_share_terms shorter = terms_of_silence(MINUTE, true);
	const struct weir_share_terms longer = terms_of_silence(10 * MINUTE, true);
	struct weir_share_answer answer = lease_of(2000);
	struct weir_share share = leased_with(&longer);
	struct weir_share_ask ask;

	weir_share_change(&share, &shorter, START + SECOND);
	assert_int_equal(share.stops_ns, START + MINUTE - 60 * MS);
	weir_share_change(&share, &longer, START + SECOND);
	assert_int_equal(share.stops_ns, START + MINUTE - 60 * MS);
	/* One that knows the shorter one is answered when the longer one holds. */
	weir_share_change(&share, &shorter, START + SECOND);
	weir_share_ask(&share, START + SECOND, 0, 0, &ask);
	assert_int_equal(ask.silent_us, 60000000);
	weir_share_change(&share, &longer, START + SECOND);
	weir_share_take(&share, &answer, START + SECOND, START + SECOND + MS);
	assert_int_equal(share.stops_ns, START + SECOND + MINUTE - 60 * MS);
	weir_share_ask(&share, START + 2 * SECOND, 0, 0, &ask);
	assert_int_equal(ask.silent_us, 600000000);
	weir_share_take(&share, &answer, START + 2 * SECOND, START + 2 * SECOND + MS);
	assert_int_equal(share.stops_ns, START + 2 * SECOND + 10 * MINUTE - 600 * MS);
}

CLAIM(another_process_stops_when_the_one_before_would_have)
{
	const struct weir_share_terms silent = terms_of_silence(MINUTE, true);
	struct weir_share share = leased_with(&silent), next;
	struct weir_share_schedule schedule;

	weir_share_plan(&share, START + MS, &schedule);
	weir_share_resume(&next, &silent, &schedule, START + 30 * SECOND);
	assert_int_equal(next.enforced, 1000);
	assert_int_equal(weir_share_next_ns(&next), schedule.stops_ns);
	weir_share_resume(&next, &silent, &schedule, schedule.stops_ns);
	assert_int_equal(next.enforced, 0);
	assert_int_equal(next.fallback, 0);
}

/* So many units in each round of 200 ms, of which the last blocks some; what is asked for in the end. */
static uint64_t asked_after(const uint64_t *units, uint32_t rounds, uint64_t blocked)
{
	struct weir_demand demand = {};
	uint64_t offered = 0, ask = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		offered += units[i];
		ask = weir_demand_measure(&demand, START + i * 200 * MS, SECOND, offered,
					  i + 1 == rounds ? blocked : 0);
	}
	return ask;
}

CLAIM(demand_is_that_of_half_an_interval)
{
	static const uint64_t idle[6] = {}, steady[6] = {100, 100, 100, 100, 100, 100};
	static const uint64_t rising[6] = {100, 100, 100, 100, 100, 400};

	assert_int_equal(asked_after(idle, 6, 0), 1);
	assert_int_equal(asked_after(steady, 6, 0), 500 + 7 + 1);
	assert_int_equal(asked_after(rising, 6, 0), 1000 + 15 + 1);
}

CLAIM(demand_that_is_blocked_is_that_of_the_latest_round)
{
	static const uint64_t rising[6] = {100, 100, 100, 100, 100, 400};

	assert_int_equal(asked_after(rising, 6, 1), 2000 + 31 + 1);
}

RUN_CLAIMS(NULL, NULL)
