/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The share protocol of a cluster (user/cluster/shares: share.c for a host, ledger.lua for the store) as a model for spin:
 * HOSTS hosts and one ledger. docs/internals/cluster-protocol.md has the argument in words; its numbers stand in
 * brackets here, as [3].
 *
 * Checked: in every state, what all hosts enforced at most within the last interval adds up to no more than S (check).
 *
 * Time. Everything happens at whole ticks; at one tick, in any order. A tick may pass at any moment, so messages take any
 * time, for ever included: a host that is cut off, a store that stops and a message that is lost look like that. No time
 * is absolute. What counts for a host is kept as time left or gone by; what counts for the ledger is kept relative to
 * the ledger's own time, which moves when a message vouches for it [1]. Both stop where they no longer matter. So time
 * runs on for ever in a finite number of states, and spin visits all of them.
 *
 * Messages. A host's latest message may arrive at any time, or never; with TWICE any number of times, with DELAYS so may
 * one earlier one. Of answers, one to the latest message is on the way (a host takes no other).
 *
 * The ledger (with LOSSES) may be lost at any moment, in any number: it begins again, and what was owed is lost, too, or
 * kept. It is lost only while all hosts know how many they are: one that does not cannot know that there are others
 * (docs/cluster.md says what comes of that). With STORES, there is another store with a ledger of its own, whose time
 * stands still; all hosts go to it and come back, in any number, and what is on the way is lost. So A, B, A is in it.
 *
 * Wider than the program: a share is any number up to what the one line of decide() allows, and a part of the threshold
 * any number. Narrower: S is one unit, a lease is two ticks, and what is sent and answered within a tick takes no time.
 * Left out: clocks that drift (a thousandth is taken off for that), thresholds that change, hosts that leave or begin
 * anew, the day after which the dead are forgotten, the 50 ms a change takes to reach all CPUs: these are in
 * tests/unit/cluster_simulation_test.
 *
 * tests/model/run leaves each safety step out by its macro, which is then missed.
 */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef S
#define S 1
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef TRIP
#define TRIP 1 /* an answer so many ticks after it was asked for is too late */
#endif
#ifndef T
#define T 1
#endif
#ifndef SETTLED
#define SETTLED (2 * LEASE)
#endif
#ifdef NO_WAIT
#define RISE LEASE
#else
#define RISE (SETTLED + LEASE + T)
#endif
#ifdef NOT_QUIET
#define QUIET 0
#else
#define QUIET MAX(M.rises, LEASE + T)
#endif
#ifdef ONE_LEASE
#define ENDS (LEASE + T)
#else
#define ENDS (LEASE + LEASE + T)
#endif
#ifdef LEASE_FROM_NOW
#define ASKED 0
#else
#define ASKED H.asked
#endif
#define OLD LEASE	  /* the age of an answer that says nothing any more */
#define NEVER (LEASE + 1) /* in its place: no answer */

/* What only a host from another ledger is asked for: where there is one ledger, the same in all states. */
#if defined(LOSSES) || defined(STORES)
#define FOREIGN(what) (what)
#else
#define FOREIGN(what) 0
#endif

#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* ---- hosts: struct weir_share and weir_member ---- */

typedef host_state {
	byte enforced, fallback, total;
	byte resting[S + 1];  /* so long from now, as much as that is in a window, though no longer enforced */
	byte lease, rise;     /* time left; 0: no lease, no rise */
	byte known;	      /* time left until the ledger's time is forgotten; 0: it is not known */
	short ahead;	      /* what it takes the ledger's time for, beyond what that is */
	byte contact, heard;  /* so long in contact; the age of the answer that gave the lease */
	bit is_of_epoch;      /* of the ledger that there is */
	bit has_epoch;        /* of any */
	bit is_of_other;      /* of the other store's */
	bit hears_epoch;      /* the latest answer was of the ledger that there is, and not believed [6] */
	bit since;            /* that answer was given since hosts came from another ledger */
	byte expected, owed;  /* as in the answer */
	bit is_waiting;
	byte asked;	      /* so long ago */
};

/* ---- what is on the way: weir_share_ask, weir_share_answer ---- */

typedef message {
	bit is_there;
	bit is_passed; /* the ledger has taken this one, or a later one */
	bit is_of_epoch, is_settled, has_epoch, since;
	byte rises, expected, owed;
	byte vouched;	 /* the ledger's time by this message, beyond what that is */
	byte heard;
	byte kept;	 /* the lesser of share and fallback */
	byte peak, fallback, total;
};

typedef answer {
	bit is_there, gives, is_of_epoch, since;
	byte expected, owed;
	byte age; /* of the ledger's time in it */
	byte share, fallback, total;
};

/* ---- the ledger ---- */

typedef entry {
	bit is_there;
	byte hold, fallback, heard;
	byte ends; /* time left of the lease and of its rest */
	byte quiet; /* time left until no other ledger counts on what it does not use */
	bit is_here; /* it has taken an answer since hosts came from another ledger */
};

host_state host[HOSTS];
message ask[2 * HOSTS]; /* of each host the latest, and an earlier one */
answer reply[HOSTS];
entry known[HOSTS];
byte owed, expected, left, missing;
#ifdef STORES
entry others_known[HOSTS]; /* the other store's */
byte others_owed, others_expected, others_left, others_missing;
#endif
bit was_listed, is_foreign;
byte listed, here, hosts_here;
byte i, v, me, it, share, fallback, moved, total;
short others, fallbacks, count, room, part;
bit is_settled;

#define LATEST(h) (2 * (h))
#define FORMER(h) (2 * (h) + 1)
#define H host[me]
#define M ask[it]
#define MINE known[me]
#ifdef NO_OWED
#define OWED 0
#else
#define OWED MAX(owed, missing)
#endif
#ifdef HOLD_ONLY
#define RESERVED(h) known[h].hold
#else
#define RESERVED(h) MAX(known[h].hold, known[h].fallback)
#endif

/* ---- a host ---- */

inline see_peak(h, ret_peak)
{
	ret_peak = host[h].enforced;
	v = S;
	do
	:: v > ret_peak && host[h].resting[v] > 0 -> ret_peak = v
	:: v > ret_peak && host[h].resting[v] == 0 -> v--
	:: else -> break
	od;
	v = 0
}

inline enforce(h, units)
{
	do
	:: host[h].enforced > units ->
		host[h].resting[host[h].enforced] = T;
		host[h].enforced--
	:: else -> break
	od;
	do
	:: host[h].enforced < units ->
		host[h].enforced++;
		host[h].resting[host[h].enforced] = 0
	:: else -> break
	od
}

#define DOWN(what) what = ((what) > 0 -> (what) - 1 : 0)

inline forget_time(h)
{
	host[h].known = 0; host[h].ahead = 0; host[h].contact = 0
}

/* A tick for one host: weir_share_advance(). */
inline pass(h)
{
	v = 1;
	do
	:: v <= S -> DOWN(host[h].resting[v]); v++
	:: else -> break
	od;
	if
#ifdef LEASE_KEPT
	:: host[h].lease == 1
#else
	:: host[h].lease == 1 ->
		host[h].lease = 0;
		host[h].heard = NEVER;
		v = MIN(host[h].fallback, host[h].enforced);
		enforce(h, v)
#endif
	:: else -> DOWN(host[h].lease)
	fi;
	if
	:: host[h].rise == 1 ->
		host[h].rise = 0;
		v = host[h].fallback;
		enforce(h, v)
	:: else -> DOWN(host[h].rise)
	fi;
	v = 0;
	if
	:: host[h].known == 0
	:: host[h].known == 1 -> forget_time(h)
	:: host[h].known > 1 ->
		host[h].known--;
		host[h].ahead++;
		host[h].contact = MIN(host[h].contact + 1, SETTLED)
	fi;
	if
	:: host[h].is_waiting ->
		host[h].asked++;
		if
		:: host[h].asked >= TRIP ->
			host[h].is_waiting = 0; host[h].asked = 0;
			reply[h].is_there = 0
		:: else
		fi
	:: else
	fi
}

inline drop_reply()
{
	reply[me].is_there = 0; reply[me].gives = 0; reply[me].is_of_epoch = 0; reply[me].age = 0;
	reply[me].share = 0; reply[me].fallback = 0; reply[me].total = 0;
	reply[me].since = 0; reply[me].expected = 0; reply[me].owed = 0
}

/* weir_share_ask() */
inline speak()
{
	it = LATEST(me);
	M.is_there = 1; M.is_passed = 0;
	M.is_of_epoch = H.is_of_epoch;
	M.has_epoch = H.has_epoch;
	M.since = FOREIGN(H.since);
	M.rises = (H.has_epoch -> FOREIGN(H.rise) : H.rise); M.expected = FOREIGN(H.expected); M.owed = FOREIGN(H.owed);
	M.is_settled = (H.known > 0 && H.contact >= SETTLED);
	M.vouched = (H.known > 0 && H.ahead > 0 -> H.ahead : 0);
	M.heard = (H.lease > 0 && H.known > 0 -> H.heard : NEVER);
	M.kept = MIN(H.enforced, H.fallback);
#ifdef NO_REST
	M.peak = H.enforced;
#else
	see_peak(me, M.peak);
#endif
	M.fallback = H.fallback;
	M.total = H.total;
	printf("%d asks: holds %d, keeps %d, fallback %d, heard %d, vouches %d, settled %d\n", me, M.peak, M.kept, M.fallback, M.heard,
		M.vouched, M.is_settled);
	drop_reply();
	H.is_waiting = 1; H.asked = 0;
	it = 0
}

/* weir_share_take() */
inline take()
{
	if
	:: (!H.is_of_epoch && reply[me].is_of_epoch && !H.hears_epoch) || (!H.has_epoch && !reply[me].is_of_epoch) ->
		H.hears_epoch = reply[me].is_of_epoch
	:: else ->
		H.hears_epoch = 0;
		if
		:: reply[me].is_of_epoch && !H.is_of_epoch ->
			H.is_of_epoch = 1; H.has_epoch = 1; H.is_of_other = 0;
			forget_time(me)
		:: else
		fi;
		if
		:: H.is_of_epoch && reply[me].is_of_epoch ->
			H.ahead = (H.known > 0 && H.ahead > -reply[me].age -> H.ahead : -reply[me].age);
			H.known = (LEASE > H.asked -> LEASE - H.asked : 0);
			if
			:: H.known == 0 -> forget_time(me)
			:: else
			fi
		:: else
		fi;
		if
		:: reply[me].gives ->
			H.lease = LEASE - ASKED;
			H.rise = RISE;
			H.heard = (reply[me].is_of_epoch -> MIN(reply[me].age, OLD) : NEVER);
			H.fallback = reply[me].fallback;
			H.total = reply[me].total; H.expected = reply[me].expected; H.owed = reply[me].owed;
			H.since = reply[me].since;
			enforce(me, reply[me].share);
			printf("%d takes a share of %d, lease %d, fallback %d\n", me, H.enforced, H.lease, H.fallback)
		:: else
		fi
	fi;
	H.is_waiting = 0; H.asked = 0;
	drop_reply()
}

/* ---- the ledger ---- */

inline older(years, by) /* an age that may be NEVER */
{
	years = (years == NEVER -> NEVER : MIN(years + by, OLD))
}

/* The ledger's time moves: all that is kept relative to it. */
inline move_on(by)
{
	moved = by;
	i = 0;
	do
	:: i < HOSTS ->
		known[i].quiet = (known[i].quiet > moved -> known[i].quiet - moved : 0);
		known[i].ends = (known[i].ends > moved -> known[i].ends - moved : 0);
		older(known[i].heard, moved);
		if
		:: host[i].is_of_epoch ->
			older(host[i].heard, moved);
			host[i].ahead = (host[i].known > 0 -> host[i].ahead - moved : 0)
		:: else
		fi;
		older(ask[LATEST(i)].heard, moved);
		older(ask[FORMER(i)].heard, moved);
		ask[LATEST(i)].vouched = (ask[LATEST(i)].vouched > moved -> ask[LATEST(i)].vouched - moved : 0);
		ask[FORMER(i)].vouched = (ask[FORMER(i)].vouched > moved -> ask[FORMER(i)].vouched - moved : 0);
		reply[i].age = (reply[i].is_there && reply[i].is_of_epoch -> MIN(reply[i].age + moved, OLD) : 0);
		i++
	:: else -> break
	od;
	i = 0; moved = 0
}

inline remove(h)
{
	known[h].is_there = 0; known[h].hold = 0; known[h].fallback = 0; known[h].heard = NEVER; known[h].ends = 0;
	known[h].quiet = 0; known[h].is_here = 0;
	ask[LATEST(h)].is_passed = 0; ask[FORMER(h)].is_passed = 0
}

/* age() */
inline grow_old()
{
	i = 0;
	do
	:: i < HOSTS ->
		if
		:: known[i].is_there && known[i].ends == 0 ->
			known[i].hold = known[i].fallback;
			if
			:: known[i].hold == 0 -> remove(i)
			:: else
			fi
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

#define IS_LIVE(h) (known[h].heard < OLD)
#ifdef QUIET_FOR_ITSELF
#define COUNTS_HOLD(h) IS_LIVE(h)
#else
#define COUNTS_HOLD(h) (IS_LIVE(h) && known[h].quiet == 0)
#endif

/* add_up(), with reserved() */
inline add_up()
{
	i = 0; count = 0; fallbacks = 0; others = 0;
	do
	:: i < HOSTS ->
		count = count + known[i].is_there;
		fallbacks = fallbacks + known[i].fallback;
		if
		:: i != me && is_settled && COUNTS_HOLD(i) -> others = others + known[i].hold
		:: i != me && !(is_settled && COUNTS_HOLD(i)) -> others = others + RESERVED(i)
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* The limit of a share: decide(). */
inline decide()
{
#ifdef ALL_SETTLED
	is_settled = 1;
#else
	is_settled = M.is_settled;
#endif
	add_up();
	fallback = MIN(M.fallback, part);
	room = S - OWED - (fallbacks - MINE.fallback);
	if
	:: is_settled && MINE.quiet == 0 && MIN(part, room) > fallback -> fallback = MIN(part, room)
	:: else
	fi;
	room = (MINE.quiet > 0 -> 0 : S - OWED - others);
	share = MIN(M.kept, fallback);
	share = (room > share -> room : share)
}

inline write_reply()
{
	reply[me].is_there = 1;
	reply[me].is_of_epoch = 1;
	reply[me].age = 0
}

/* serve(), up to the decision */
inline receive()
{
	if
	:: M.is_of_epoch -> v = M.vouched; move_on(v)
	:: else
	fi;
	v = 0;
	grow_old()
}

#ifdef ANY_TURN
#define IS_LATE (M.heard == OLD)
#else
#define IS_LATE ((MINE.is_there && M.is_passed) || M.heard == OLD)
#endif

/* owe() */
inline owe()
{
	i = 0; listed = 0; here = 0; hosts_here = 0;
	do
	:: i < HOSTS ->
		listed = listed + known[i].fallback;
		if
		:: known[i].is_there && known[i].is_here -> here = here + known[i].fallback; hosts_here++
		:: else
		fi;
		i++
	:: else -> break
	od;
	if
	:: !was_listed && (is_foreign || !M.has_epoch) -> owed = (owed > M.fallback -> owed - M.fallback : 0)
	:: else
	fi;
	if
	:: is_foreign ->
#ifndef NO_TOTAL
		owed = MAX(owed, (M.total > listed -> M.total - listed : 0));
#endif
		expected = MAX(expected, M.expected);
		left = MAX(left, M.owed)
	:: !is_foreign && expected > 0 && !was_listed && !M.has_epoch -> expected = MIN(expected + 1, HOSTS + 1)
	:: else
	fi;
	if
	:: expected > 0 -> owed = MIN(owed, (S > here -> S - here : 0))
	:: else
	fi;
	if
	:: expected > 0 && hosts_here >= expected -> expected = 0; owed = MIN(owed, left)
	:: else
	fi;
#ifdef FREE_AT_ONCE
	missing = 0;
#else
	missing = (expected > 0 && S > listed -> S - listed : 0);
#endif
	i = 0; listed = 0; here = 0; hosts_here = 0
}

/* Who was here before may have left since. */
inline forget_here()
{
	i = 0;
	do
	:: i < HOSTS ->
		known[i].is_here = 0; host[i].since = 0; reply[i].since = 0;
		ask[LATEST(i)].since = 0; ask[FORMER(i)].since = 0;
		i++
	:: else -> break
	od;
	i = 0
}

/* note() */
inline note()
{
	was_listed = MINE.is_there;
	is_foreign = M.has_epoch && !M.is_of_epoch;
	if
	:: is_foreign ->
#ifdef ONCE_HERE
		if
		:: expected == 0 -> forget_here()
		:: else
		fi;
#else
		forget_here();
#endif
		left = (expected == 0 -> 0 : left)
	:: else
	fi;
	if
	:: is_foreign || (!was_listed && !M.has_epoch) -> MINE.quiet = MAX(MINE.quiet, QUIET)
	:: else
	fi;
	MINE.is_there = 1;
	MINE.hold = M.peak;
	MINE.fallback = M.fallback;
#ifdef HERE_AT_ONCE
	MINE.is_here = 1;
#else
	MINE.is_here = FOREIGN(MINE.is_here || (M.is_of_epoch && M.since && M.heard != NEVER));
#endif
#ifdef UNCONFIRMED
	MINE.heard = 0;
#else
	MINE.heard = (M.is_of_epoch -> M.heard : NEVER);
#endif
	MINE.ends = ENDS;
	M.is_passed = 1;
	ask[FORMER(me)].is_passed = ask[FORMER(me)].is_there;
	owe();
	was_listed = 0; is_foreign = 0
}

inline answer_lease()
{
#ifdef UNHELD
	MINE.hold = M.peak;
#else
	MINE.hold = MAX(MINE.hold, share);
#endif
	total = fallbacks - MINE.fallback + fallback + owed;
	MINE.fallback = MAX(MINE.fallback, fallback);
	printf("ledger gives %d a share of %d, fallback %d; quiet %d, others have %d, owed %d\n", me, share, fallback, MINE.quiet, others, OWED);
	if
	:: it == LATEST(me) && H.is_waiting ->
		write_reply();
		reply[me].gives = 1;
		reply[me].share = share;
		reply[me].fallback = fallback;
		reply[me].total = FOREIGN(total);
		reply[me].expected = FOREIGN(MAX(count, expected));
		reply[me].owed = FOREIGN(owed);
		reply[me].since = FOREIGN(1)
	:: else
	fi
}

inline reset()
{
	me = 0; it = 0; share = 0; fallback = 0; total = 0; others = 0; fallbacks = 0; count = 0; room = 0; part = 0; is_settled = 0
}

/* A new epoch: nothing of the former one's time means anything now. */
inline lose()
{
	i = 0;
	do
	:: i < HOSTS ->
		remove(i);
		forget_time(i);
		host[i].is_of_epoch = 0; host[i].hears_epoch = 0; host[i].since = 0;
		host[i].heard = NEVER;
		ask[LATEST(i)].is_of_epoch = 0; ask[FORMER(i)].is_of_epoch = 0;
		ask[LATEST(i)].is_settled = 0; ask[FORMER(i)].is_settled = 0;
		ask[LATEST(i)].vouched = 0; ask[FORMER(i)].vouched = 0;
		ask[LATEST(i)].heard = NEVER; ask[FORMER(i)].heard = NEVER;
		reply[i].is_of_epoch = 0; reply[i].age = 0;
		i++
	:: else -> break
	od;
	i = 0; expected = 0; left = 0; missing = 0
}

#ifdef STORES
#define EXCHANGE(a, b) v = a; a = b; b = v

/* All hosts go to the other store. What is on the way is lost. */
inline alternate()
{
	me = 0;
	do
	:: me < HOSTS ->
		EXCHANGE(known[me].is_there, others_known[me].is_there); EXCHANGE(known[me].hold, others_known[me].hold);
		EXCHANGE(known[me].fallback, others_known[me].fallback); EXCHANGE(known[me].heard, others_known[me].heard);
		EXCHANGE(known[me].ends, others_known[me].ends); EXCHANGE(known[me].quiet, others_known[me].quiet);
		EXCHANGE(known[me].is_here, others_known[me].is_here);
		EXCHANGE(H.is_of_epoch, H.is_of_other);
		H.hears_epoch = 0; H.is_waiting = 0; H.asked = 0;
		drop_reply();
		it = LATEST(me); drop_message();
		it = FORMER(me); drop_message();
		me++
	:: else -> break
	od;
	EXCHANGE(owed, others_owed); EXCHANGE(expected, others_expected);
	EXCHANGE(left, others_left); EXCHANGE(missing, others_missing);
	me = 0; it = 0; v = 0
}
#endif

inline check()
{
	i = 0; others = 0;
	do
	:: i < HOSTS ->
		see_peak(i, share);
		others = others + share;
		i++
	:: else -> break
	od;
	assert(others <= S);
	i = 0; others = 0; share = 0
}

inline drop_message()
{
	M.is_there = 0; M.is_passed = 0; M.is_of_epoch = 0; M.is_settled = 0; M.vouched = 0; M.heard = NEVER;
	M.kept = 0; M.peak = 0; M.fallback = 0; M.total = 0;
	M.has_epoch = 0; M.since = 0; M.rises = 0; M.expected = 0; M.owed = 0
}

inline copy_message(from, to)
{
	ask[to].is_there = ask[from].is_there; ask[to].is_passed = ask[from].is_passed;
	ask[to].is_of_epoch = ask[from].is_of_epoch; ask[to].is_settled = ask[from].is_settled;
	ask[to].vouched = ask[from].vouched; ask[to].heard = ask[from].heard; ask[to].kept = ask[from].kept;
	ask[to].peak = ask[from].peak; ask[to].fallback = ask[from].fallback; ask[to].total = ask[from].total;
	ask[to].has_epoch = ask[from].has_epoch; ask[to].since = ask[from].since; ask[to].rises = ask[from].rises;
	ask[to].expected = ask[from].expected; ask[to].owed = ask[from].owed
}

/* ---- what happens ---- */

inline tick()
{
	me = 0;
	do
	:: me < HOSTS -> pass(me); me++
	:: else -> break
	od;
	me = 0;
	printf("tick: %d and %d\n", host[0].enforced, host[1].enforced);
	check()
}

/* A message reaches the ledger: serve(). */
inline arrive()
{
	d_step { me = it / 2; receive() }
	if
	:: IS_LATE ->
		if
		:: it == LATEST(me) && H.is_waiting && !reply[me].is_there -> write_reply()
		:: else
		fi
	:: else ->
		do
		:: part < S -> part++
		:: break
		od;
		skip;
		d_step { note(); decide() }
		do
		:: share > 0 -> share--
		:: break
		od;
		skip;
		d_step { answer_lease() }
	fi;
#ifndef TWICE
	d_step { drop_message() };
#endif
	d_step { reset() }
}

/* All know how many they are. */
#if HOSTS > 2
#define ALL_REMEMBER (host[0].expected >= 3 && host[1].expected >= 3 && host[2].expected >= 3)
#else
#define ALL_REMEMBER (host[0].expected >= 2 && host[1].expected >= 2)
#endif
#define SPEAKS(h) :: d_step { !host[h].is_waiting -> me = h; speak(); me = 0 }
#define ARRIVES(m) :: atomic { ask[m].is_there -> it = m; arrive() }
#define HEARS(h) :: d_step { host[h].is_waiting && reply[h].is_there -> me = h; take(); me = 0; check() }
#ifdef DELAYS
#define SPEAKS_AGAIN(h) :: d_step { !host[h].is_waiting && ask[LATEST(h)].is_there -> \
	me = h; copy_message(LATEST(h), FORMER(h)); speak(); me = 0 }
#define OF_HOST(h) SPEAKS(h) HEARS(h) ARRIVES(LATEST(h)) SPEAKS_AGAIN(h) ARRIVES(FORMER(h))
#else
#define OF_HOST(h) SPEAKS(h) HEARS(h) ARRIVES(LATEST(h))
#endif

init
{
	d_step {
		for (i : 0 .. HOSTS - 1) {
			remove(i);
#ifdef STORES
			others_known[i].heard = NEVER;
#endif
			host[i].heard = NEVER;
			ask[LATEST(i)].heard = NEVER; ask[FORMER(i)].heard = NEVER
		}
		i = 0
	}
	do
	:: d_step { true -> tick() }
	OF_HOST(0)
	OF_HOST(1)
#if HOSTS > 2
	OF_HOST(2)
#endif
#ifdef LOSSES
	/* The ledger is lost; a copy remains of what it knew, or nothing. */
	:: d_step { true -> add_up(); owed = MIN(OWED + fallbacks, S); lose(); reset() }
	:: d_step { ALL_REMEMBER -> owed = 0; lose(); reset() }
#endif
#ifdef STORES
	:: d_step { ALL_REMEMBER -> alternate() }
#endif
	od
}
