/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The share protocol of a cluster (user/cluster/shares: share.c for a host, ledger.lua for the store) as a model for spin:
 * HOSTS hosts and one ledger. docs/cluster-protocol.md has the argument in words; its numbers stand in brackets here, as [3].
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
 * kept. It is lost only while all hosts have heard of it: one that has not cannot know that there are others
 * (docs/cluster.md says what comes of that).
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
#define QUIET (LEASE + T)
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
	bit is_waiting;
	byte asked;	      /* so long ago */
};

/* ---- what is on the way: weir_share_ask, weir_share_answer ---- */

typedef message {
	bit is_there;
	bit is_passed; /* the ledger has taken this one, or a later one */
	bit is_of_epoch, is_settled;
	byte vouched;	 /* the ledger's time by this message, beyond what that is */
	byte heard;
	byte kept;	 /* the lesser of share and fallback */
	byte peak, fallback, total;
};

typedef answer {
	bit is_there, gives, is_of_epoch;
	byte age; /* of the ledger's time in it */
	byte share, fallback, total;
};

/* ---- the ledger ---- */

typedef entry {
	bit is_there;
	byte hold, fallback, heard;
	byte ends; /* time left of the lease and of its rest */
};

host_state host[HOSTS];
message ask[2 * HOSTS]; /* of each host the latest, and an earlier one */
answer reply[HOSTS];
entry known[HOSTS];
byte quiet = QUIET; /* time left */
byte owed, came;
byte i, v, me, it, share, fallback, moved;
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
#define OWED (owed > came -> owed - came : 0)
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
	reply[me].share = 0; reply[me].fallback = 0; reply[me].total = 0
}

/* weir_share_ask() */
inline speak()
{
	it = LATEST(me);
	M.is_there = 1; M.is_passed = 0;
	M.is_of_epoch = H.is_of_epoch;
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
	:: reply[me].is_of_epoch && !H.is_of_epoch ->
		H.is_of_epoch = 1;
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
		H.total = reply[me].total;
		enforce(me, reply[me].share);
		printf("%d takes a share of %d, lease %d, fallback %d\n", me, H.enforced, H.lease, H.fallback)
	:: else
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
	quiet = (quiet > moved -> quiet - moved : 0);
	i = 0;
	do
	:: i < HOSTS ->
		known[i].ends = (known[i].ends > moved -> known[i].ends - moved : 0);
		older(known[i].heard, moved);
		older(host[i].heard, moved);
		host[i].ahead = (host[i].known > 0 -> host[i].ahead - moved : 0);
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

/* add_up(), with reserved() */
inline add_up()
{
	i = 0; count = 0; fallbacks = 0; others = 0;
	do
	:: i < HOSTS ->
		count = count + known[i].is_there;
		fallbacks = fallbacks + known[i].fallback;
		if
		:: i != me && is_settled && IS_LIVE(i) -> others = others + known[i].hold
		:: i != me && !(is_settled && IS_LIVE(i)) -> others = others + RESERVED(i)
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
	:: is_settled && quiet == 0 && MIN(part, room) > fallback -> fallback = MIN(part, room)
	:: else
	fi;
	room = (quiet > 0 -> 0 : S - OWED - others);
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
	:: else ->
		owed = MAX(owed, M.total);
		came = (MINE.is_there -> came : MIN(came + M.fallback, S))
	fi;
	v = 0;
	grow_old()
}

#ifdef ANY_TURN
#define IS_LATE (M.heard == OLD)
#else
#define IS_LATE ((MINE.is_there && M.is_passed) || M.heard == OLD)
#endif

/* note() */
inline note()
{
	MINE.is_there = 1;
	MINE.hold = M.peak;
	MINE.fallback = M.fallback;
#ifdef UNCONFIRMED
	MINE.heard = 0;
#else
	MINE.heard = M.heard;
#endif
	MINE.ends = ENDS;
	M.is_passed = 1;
	ask[FORMER(me)].is_passed = ask[FORMER(me)].is_there
}

inline answer_lease()
{
#ifdef UNHELD
	MINE.hold = M.peak;
#else
	MINE.hold = MAX(MINE.hold, share);
#endif
	MINE.fallback = MAX(MINE.fallback, fallback);
	printf("ledger gives %d a share of %d, fallback %d; quiet %d, others have %d, owed %d\n", me, share, fallback, quiet, others, OWED);
	if
	:: it == LATEST(me) && H.is_waiting ->
		write_reply();
		reply[me].gives = 1;
		reply[me].share = share;
		reply[me].fallback = fallback;
		reply[me].total = S
	:: else
	fi
}

inline reset()
{
	me = 0; it = 0; share = 0; fallback = 0; others = 0; fallbacks = 0; count = 0; room = 0; part = 0; is_settled = 0
}

/* A new epoch: nothing of the former one's time means anything now. */
inline lose()
{
	i = 0;
	do
	:: i < HOSTS ->
		remove(i);
		forget_time(i);
		host[i].is_of_epoch = 0;
		host[i].heard = NEVER;
		ask[LATEST(i)].is_of_epoch = 0; ask[FORMER(i)].is_of_epoch = 0;
		ask[LATEST(i)].is_settled = 0; ask[FORMER(i)].is_settled = 0;
		ask[LATEST(i)].vouched = 0; ask[FORMER(i)].vouched = 0;
		ask[LATEST(i)].heard = NEVER; ask[FORMER(i)].heard = NEVER;
		reply[i].is_of_epoch = 0; reply[i].age = 0;
		i++
	:: else -> break
	od;
	i = 0; quiet = QUIET
}

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
	M.kept = 0; M.peak = 0; M.fallback = 0; M.total = 0
}

inline copy_message(from, to)
{
	ask[to].is_there = ask[from].is_there; ask[to].is_passed = ask[from].is_passed;
	ask[to].is_of_epoch = ask[from].is_of_epoch; ask[to].is_settled = ask[from].is_settled;
	ask[to].vouched = ask[from].vouched; ask[to].heard = ask[from].heard; ask[to].kept = ask[from].kept;
	ask[to].peak = ask[from].peak; ask[to].fallback = ask[from].fallback; ask[to].total = ask[from].total
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

/* All know what fallbacks are together. */
#if HOSTS > 2
#define ALL_REMEMBER (host[0].total == S && host[1].total == S && host[2].total == S)
#else
#define ALL_REMEMBER (host[0].total == S && host[1].total == S)
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
	:: d_step { true -> add_up(); owed = MIN(OWED + fallbacks, S); came = 0; lose(); reset() }
	:: d_step { ALL_REMEMBER -> owed = 0; came = 0; lose(); reset() }
#endif
	od
}
