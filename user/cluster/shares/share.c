// SPDX-License-Identifier: GPL-2.0-only
#include "shares/share.h"

#include <string.h>

#include "base/util.h"

#define NSEC_PER_USEC 1000ull

/* A time measured by any clock is at least, and at most, this long by our own clock. */
static uint64_t at_least_ns(uint64_t ns)
{
	return ns + ns / WEIR_CLUSTER_DRIFT + 1;
}

static uint64_t at_most_ns(uint64_t ns)
{
	return ns - ns / WEIR_CLUSTER_DRIFT;
}

/* What is given up rests for an interval: during that time it is still inside some window of the rule [3]. */
static uint64_t rest_ns(const struct weir_share *share)
{
	return at_least_ns(share->terms.interval_ns + WEIR_CLUSTER_SETTLE_NS);
}

/* ---- what was enforced ---- */

static void forget(struct weir_peaks *peaks, uint64_t for_ns, uint64_t now_ns)
{
	uint32_t gone = 0;

	while (gone < peaks->count && peaks->past[gone].until_ns + for_ns <= now_ns)
		gone++;
	peaks->count -= gone;
	memmove(peaks->past, peaks->past + gone, peaks->count * sizeof(peaks->past[0]));
}

/* `units` were in force until now. If two values follow each other closely, the larger one stands for both. So there
 * are at most two values per sixteenth of the rest, and the slots suffice for all.
 */
static void remember(struct weir_peaks *peaks, uint64_t units, uint64_t for_ns, uint64_t now_ns)
{
	forget(peaks, for_ns, now_ns);
	while (peaks->count > 0 && peaks->past[peaks->count - 1].units <= units)
		peaks->count--;
	if (peaks->count == ARRAY_SIZE(peaks->past) ||
	    (peaks->count >= 2 && now_ns - peaks->past[peaks->count - 2].until_ns < for_ns / 16))
		peaks->count--;
	else
		peaks->past[peaks->count].units = units;
	peaks->past[peaks->count++].until_ns = now_ns;
}

/* The highest value that was in force in the last rest_ns. */
static uint64_t peak(struct weir_share *share, uint64_t now_ns)
{
	struct weir_peaks *peaks = &share->peaks;

	forget(peaks, rest_ns(share), now_ns);
	if (peaks->count > 0 && peaks->past[0].units > share->enforced)
		return peaks->past[0].units;
	return share->enforced;
}

static void enforce(struct weir_share *share, uint64_t units, uint64_t now_ns)
{
	if (units < share->enforced)
		remember(&share->peaks, share->enforced, rest_ns(share), now_ns);
	share->enforced = units;
}

/* ---- the ledger's time ---- */

/* A lower bound of the ledger's time now: it had that value when the answer was written, which was before the answer
 * arrived [1].
 */
static int64_t ledger_now_us(const struct weir_ledger_time *time, uint64_t now_ns)
{
	return time->ledger_us + (int64_t)(at_most_ns(now_ns - time->own_ns) / NSEC_PER_USEC);
}

static void hear_time(struct weir_ledger_time *time, int64_t ledger_us, uint64_t asked_ns, uint64_t now_ns)
{
	if (!time->is_known)
		time->since_ns = now_ns;
	/* A fast answer gives a better bound than a slow one. */
	if (!time->is_known || ledger_us > ledger_now_us(time, now_ns)) {
		time->ledger_us = ledger_us;
		time->own_ns = now_ns;
	}
	time->is_known = true;
	time->until_ns = asked_ns + at_most_ns(WEIR_CLUSTER_LEASE_NS);
}

/* ---- the share ---- */

/* After this time without an answer, nobody relies on what a host had given up [5]. */
static uint64_t rise_ns(const struct weir_share *share)
{
	return at_least_ns(WEIR_CLUSTER_SETTLED_NS + WEIR_CLUSTER_LEASE_NS) + rest_ns(share);
}

void weir_share_begin(struct weir_share *share, const struct weir_share_terms *terms, uint64_t now_ns)
{
	*share = (struct weir_share){
		.terms = *terms,
		.enforced = terms->base,
		.fallback = terms->base,
		.rises_ns = UINT64_MAX,
		.stops_ns = UINT64_MAX,
		.received_us = WEIR_LEDGER_NEVER,
	};
	share->peak_known_ns = now_ns + rest_ns(share);
	/* What an earlier process gave up for flows is in use elsewhere, until that is over [9]. */
	if (terms->is_per_flow)
		share->begins_ns = share->peak_known_ns = now_ns + rise_ns(share);
}

uint64_t weir_share_units(const struct weir_share *share, uint64_t now_ns)
{
	return now_ns < share->begins_ns ? 0 : share->enforced;
}

/* Counted from when the last confirmed message was sent; the ledger counts from when it received a message, and for
 * longer [10].
 */
static uint64_t silence_ends_ns(const struct weir_share *share, uint64_t silent_ns)
{
	if (!share->terms.stops || !share->confirmed_ns || silent_ns >= WEIR_CLUSTER_FOREVER_NS)
		return UINT64_MAX;
	return share->confirmed_ns + at_most_ns(silent_ns);
}

static void stop(struct weir_share *share, uint64_t now_ns)
{
	share->has_lease = false;
	share->rises_ns = share->stops_ns = UINT64_MAX;
	share->fallback = share->terms.base;
	enforce(share, share->terms.base, now_ns);
}

void weir_share_advance(struct weir_share *share, uint64_t now_ns)
{
	if (share->has_lease && now_ns >= share->ends_ns) {
		share->has_lease = false;
		/* Do not rise yet: others may still hold what the ledger will reserve for this fallback [5]. */
		if (share->fallback < share->enforced)
			enforce(share, share->fallback, now_ns);
	}
	if (!share->has_lease && now_ns >= share->rises_ns) {
		share->rises_ns = UINT64_MAX;
		enforce(share, share->fallback, now_ns);
	}
	if (now_ns >= share->stops_ns)
		stop(share, now_ns);
	if (share->time.is_known && now_ns >= share->time.until_ns)
		share->time.is_known = false;
}

void weir_share_plan(const struct weir_share *share, uint64_t now_ns, struct weir_share_schedule *ret_schedule)
{
	bool rises = share->rises_ns != UINT64_MAX;
	uint64_t ended = share->fallback < share->enforced ? share->fallback : share->enforced;

	if (now_ns < share->begins_ns) {
		*ret_schedule =
			(struct weir_share_schedule){.ends_ns = now_ns, .rises_ns = UINT64_MAX, .stops_ns = UINT64_MAX};
		return;
	}
	*ret_schedule = (struct weir_share_schedule){
		.leased = share->enforced,
		.ended = share->has_lease ? ended : share->enforced,
		.fallen_back = rises		  ? share->fallback
			       : share->has_lease ? ended
						  : share->enforced,
		.ends_ns = share->has_lease ? share->ends_ns : now_ns,
		.rises_ns = rises ? share->rises_ns : UINT64_MAX,
		.stops_ns = share->stops_ns,
	};
}

void weir_share_resume(struct weir_share *share, const struct weir_share_terms *terms,
		       const struct weir_share_schedule *schedule, uint64_t now_ns)
{
	weir_share_begin(share, terms, now_ns);
	share->begins_ns = 0;
	share->stops_ns = schedule->stops_ns;
	share->enforced = now_ns < schedule->ends_ns	? schedule->leased
			  : now_ns < schedule->rises_ns ? schedule->ended
							: schedule->fallen_back;
	share->fallback = schedule->fallen_back;
	share->has_lease = now_ns < schedule->ends_ns;
	share->ends_ns = schedule->ends_ns;
	share->rises_ns = now_ns < schedule->rises_ns ? schedule->rises_ns : UINT64_MAX;
	weir_share_advance(share, now_ns);
	weir_share_change(share, terms, now_ns);
}

void weir_share_change(struct weir_share *share, const struct weir_share_terms *terms, uint64_t now_ns)
{
	uint64_t stops_ns;

	share->terms = *terms;
	/* Until the ledger has confirmed one of them, it may use the old silence or the new one. */
	stops_ns = silence_ends_ns(share, terms->silent_ns);
	if (!terms->stops || stops_ns < share->stops_ns)
		share->stops_ns = stops_ns;
	if (share->fallback > terms->threshold)
		share->fallback = terms->threshold;
	if (share->enforced > terms->threshold)
		enforce(share, terms->threshold, now_ns);
}

void weir_share_was(struct weir_share *share, uint64_t units, uint64_t now_ns)
{
	if (units > share->enforced)
		remember(&share->peaks, units, rest_ns(share), now_ns);
}

uint64_t weir_share_next_ns(const struct weir_share *share)
{
	uint64_t next_ns = share->has_lease ? share->ends_ns : share->rises_ns;

	return next_ns < share->stops_ns ? next_ns : share->stops_ns;
}

static int64_t peak_to_report(struct weir_share *share, uint64_t now_ns)
{
	uint64_t most;

	if (now_ns < share->peak_known_ns)
		return WEIR_PEAK_UNKNOWN;
	most = peak(share, now_ns);
	return (int64_t)(most > share->lent ? most : share->lent);
}

static void write_ask(struct weir_share *share, uint64_t now_ns, struct weir_share_ask *ret_ask)
{
	const struct weir_ledger_time *time = &share->time;
	const int64_t silent_us = (int64_t)(share->terms.silent_ns / NSEC_PER_USEC);

	share->said_ns = share->terms.silent_ns;
	*ret_ask = (struct weir_share_ask){
		.threshold = share->terms.threshold - share->terms.base,
		/* How long units take to leave every window. What flows were given of this share may end one lease
		 * later [9].
		 */
		.rest_us =
			(rest_ns(share) + (share->terms.is_per_flow ? WEIR_CLUSTER_LEASE_NS : 0)) / NSEC_PER_USEC + 1,
		.may_fall_back = share->terms.may_fall_back,
		.share = share->enforced,
		.peak = peak_to_report(share, now_ns),
		.fallback = share->fallback,
		.epoch = share->epoch[0] ? share->epoch : "-",
		.now_us = time->is_known ? ledger_now_us(time, now_ns) : 0,
		/* Without a lease this host may fall back at any time, so the ledger must not rely on its message [5].
		 */
		.received_us = share->has_lease && time->is_known ? share->received_us : WEIR_LEDGER_NEVER,
		.contact_us = time->is_known ? (int64_t)(at_most_ns(now_ns - time->since_ns) / NSEC_PER_USEC) : 0,
		.total = share->total,
		.base = share->terms.base,
		.flows_most = -1,
		.silent_us = silent_us < WEIR_CLUSTER_FOREVER_US ? silent_us : WEIR_CLUSTER_FOREVER_US,
		.stops = share->terms.stops,
		.longest_us = share->longest_us,
		.expected = share->expected,
		/* How much longer the ledger that gave the latest lease may give to others what this host does not use
		 * [5].
		 */
		.rises_us = share->rises_ns == UINT64_MAX || now_ns >= share->rises_ns
				    ? 0
				    : (int64_t)((share->rises_ns - now_ns) / NSEC_PER_USEC) + 1,
		.owed = share->owed,
	};
}

void weir_share_ask_for(struct weir_share *share, uint64_t now_ns, uint64_t units, struct weir_share_ask *ret_ask)
{
	weir_share_advance(share, now_ns);
	write_ask(share, now_ns, ret_ask);
	ret_ask->ask = units < share->terms.threshold ? units : share->terms.threshold;
}

void weir_share_ask(struct weir_share *share, uint64_t now_ns, uint64_t offered, uint64_t blocked,
		    struct weir_share_ask *ret_ask)
{
	uint64_t units = weir_demand_measure(&share->demand, now_ns, share->terms.interval_ns, offered, blocked);

	/* If all hosts ask for everything, all get the same. */
	weir_share_ask_for(share, now_ns, share->terms.is_per_flow ? UINT64_MAX : units, ret_ask);
}

void weir_share_leave(struct weir_share *share, uint64_t now_ns, struct weir_share_ask *ret_ask)
{
	weir_share_advance(share, now_ns);
	enforce(share, 0, now_ns);
	share->fallback = 0;
	share->has_lease = false;
	share->rises_ns = share->stops_ns = UINT64_MAX;
	write_ask(share, now_ns, ret_ask);
	ret_ask->leaves = true;
}

void weir_share_farewell(const struct weir_share_terms *terms, struct weir_share_ask *ret_ask)
{
	struct weir_share share;

	weir_share_begin(&share, terms, 0);
	write_ask(&share, 0, ret_ask);
	ret_ask->epoch = "-";
	ret_ask->leaves = true;
}

bool weir_share_take(struct weir_share *share, const struct weir_share_answer *answer, uint64_t asked_ns,
		     uint64_t now_ns)
{
	weir_share_advance(share, now_ns);
	if (answer->lease_us == WEIR_LEASE_TAKEN) {
		/* Another process has, or had, this host's name. What that process enforces is not known here. */
		share->peak_known_ns = now_ns + (share->terms.is_per_flow ? rise_ns(share) : rest_ns(share));
	}
	if (strcmp(share->epoch, answer->epoch) != 0) {
		if (strcmp(share->heard, answer->epoch) != 0) {
			memcpy(share->heard, answer->epoch, sizeof(share->heard));
			return false;
		}
		memcpy(share->epoch, answer->epoch, sizeof(share->epoch));
		share->time.is_known = false;
	}
	share->heard[0] = '\0';
	hear_time(&share->time, answer->now_us, asked_ns, now_ns);
	if (answer->lease_us <= 0)
		return true;

	share->has_lease = true;
	/* Counted from when the lease was requested, which was before it was granted; the ledger counts from the grant
	 * [4].
	 */
	share->ends_ns = asked_ns + at_most_ns((uint64_t)answer->lease_us * NSEC_PER_USEC);
	share->rises_ns = now_ns + rise_ns(share);
	share->received_us = answer->now_us;
	share->fallback = answer->fallback;
	share->hosts = answer->hosts;
	share->total = answer->total;
	share->silent = answer->silent;
	share->longest_us = answer->longest_us;
	share->expected = answer->expected;
	share->owed = answer->owed;
	share->confirmed_ns = asked_ns;
	share->stops_ns = silence_ends_ns(share, share->said_ns < share->terms.silent_ns ? share->said_ns
											 : share->terms.silent_ns);
	enforce(share, answer->share, now_ns);
	weir_share_advance(share, now_ns);
	return true;
}

/* ---- turns ---- */

bool weir_member_takes_turn(struct weir_member *member, uint64_t now_ns)
{
	if (member->turn > 0 && now_ns - member->asked_ns < WEIR_CLUSTER_ROUND_NS)
		return false;
	if (member->is_waiting && now_ns - member->asked_ns < WEIR_CLUSTER_TRIP_NS)
		return false;
	member->turn++;
	member->asked_ns = now_ns;
	member->is_waiting = true;
	return true;
}

bool weir_member_takes_answer(struct weir_member *member, uint64_t turn, uint64_t now_ns)
{
	if (!member->is_waiting || turn != member->turn || now_ns - member->asked_ns >= WEIR_CLUSTER_TRIP_NS)
		return false;
	member->is_waiting = false;
	return true;
}
