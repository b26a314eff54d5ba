/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lease protocol (bpf/window/rate.h, lease.h, cells.h, rows.h, row_ghosts.h, sharers.h, and WEIR_SHORTCUT_FIRST of
 * shortcuts.h) as a model for spin: CPUs with a row each read one another's rows while time runs on.
 * docs/internals/lease.md has the argument in words, and says which step is which function of the program.
 * tests/model/run checks each configuration in every state that it can reach. It also leaves out each safety step, by
 * that step's macro, and checks that spin then finds the fault.
 *
 * Checked:
 *   never above	no window of WINDOW buckets contains more admitted packets than the threshold. Packets count in the
 *			bucket of the clock that their verdict used (check_windows). While a threshold changes, no window is
 *			above the larger one; and what was admitted by the new one is within it, apart from packets that
 *			were still admitted by the old one.
 *   never twice	what a CPU has counted in its bucket is what it has spent and what it has leased (spend).
 *   used up		from every state in which CPU 0 has no packet in hand, CPU 0 alone can admit the whole threshold one
 *			window later, wherever the others stopped. If no other has a packet in hand either, it can at once
 *			admit all but what was admitted and what others have leased. CPUs are alike, so this is true of each.
 *
 * One step (one_step) touches what is shared once: one load, one store or one atomic. Between two steps anything may happen,
 * and a CPU may stop there for as long as it likes while time runs on (a stall). Steps are in the order of the program: x86
 * keeps loads in order among loads, and stores among stores; elsewhere weir_order() does, a full barrier there. x86 may delay
 * stores behind later loads. BUFFER models that: stores wait in a queue for memory, in order; their own CPU sees them at
 * once; the fence waits until the queue is empty. Without BUFFER each store is seen at once. That is enough for all steps but
 * the fence's: to others, a store in the queue looks like a CPU that stalled before it. Only a load that overtakes the store
 * is new, and each load that matters comes behind the fence or the atomic that emptied the queue.
 * Cells are read and cleared one by one. The program takes four at once, which gives fewer states.
 *
 * Wider than the program: a lease is any number of units up to LEASE_MAX and up to what is free; packets come at any time; a
 * later rule may block any packet that this one admitted (unless SINGLE_RULE); a CPU evicts its row whenever another flow
 * comes; a new row begins with the packet's units in it, also without the shortcut.
 * Narrower: sizes (`run` has those of each configuration); PACKETS_MAX packets a CPU; NO_LAST leaves out "used up".
 * Left out: smooth windows (the weights depend on the clock of the evaluating CPU alone, and only fall), a clock that goes
 * back (one CPU, in replay: tests/bpf/replay_test), an epoch number that wraps (a stall of 16 epochs, a minute), rows of
 * different window specs, ghosts displaced while they count (the program counts them), a bucket's number in a ghost that
 * comes round, a flow that is blocked by its ghosts without a row (which admits nothing), and that a flow which is full
 * apart from leases of others is taken for full for a 64th of a bucket (its packets are dropped then as if they had not
 * come, so that only the "at once" of "used up" comes that much later).
 *
 * Macros add parts: SHARERS the sharers cell, without which every CPU is asked; FIRST the shortcut for a flow's first
 * packet in a bucket; CHANGE a threshold that changes once; EVICT two flows and one row a CPU; GHOSTS (with EVICT,
 * WINDOW up to 3) a word a flow that keeps what evicted rows counted, where without it those units are forgiven; BUFFER
 * see above. Each is combined with the steps of the window. All of them together do not fit into memory, and need not: a
 * change of the threshold, and a lease, are a CPU's own affair; sharers only says whose rows to read; an eviction only
 * takes rows away.
 *
 * One thing is known to be untrue, and TAKES_MAX leaves it out: if a row goes from one flow to another and back while a CPU
 * stands between two loads of it, that CPU may remember its flow as full by units of the other one. It forgets that when the
 * bucket ends. "Never above" is true all the same.
 */
#ifndef CPUS
#define CPUS 2
#endif
#ifndef THRESHOLD
#define THRESHOLD 1
#endif
#ifndef THRESHOLD_NEXT
#define THRESHOLD_NEXT THRESHOLD
#endif
#ifndef RING
#define RING 2
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef LAST_TICK
#define LAST_TICK 2
#endif
#ifndef BUCKET_TICKS
#define BUCKET_TICKS 1
#endif
#ifndef EPOCH_TICKS
#define EPOCH_TICKS (WINDOW * BUCKET_TICKS)
#endif
#ifndef EPOCH_OFFSET
#define EPOCH_OFFSET 0
#endif
#ifndef LEASE_MAX
#define LEASE_MAX BATCH_MAX
#endif
#ifndef BATCH_MAX
#define BATCH_MAX 1
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef TRIES
#define TRIES 2
#endif
#ifndef DEPTH
#define DEPTH 5
#endif
#ifdef EVICT
#define FLOWS 2
#else
#define FLOWS 1
#endif

#define BUCKET(tick) ((tick) / BUCKET_TICKS)
#define EPOCH(tick) (((tick) + EPOCH_OFFSET) / EPOCH_TICKS)
#define BUCKETS (BUCKET(LAST_TICK) + 1)
#define THRESHOLD_OF(version) ((version) == 0 -> THRESHOLD : THRESHOLD_NEXT)
#define THRESHOLD_LARGEST (THRESHOLD > THRESHOLD_NEXT -> THRESHOLD : THRESHOLD_NEXT)

/* ---- what the CPUs share ---- */

#define UNSPENT 64
#define UNITS(value) ((value) & 63)

/* The words of a row that other CPUs look at. */
#define TAG 0
#define NEWEST 1
#define CELL(bucket) (2 + (bucket) % RING)
#define OLDER(age) CELL(bucket + RING - (age))

typedef row_words {
	byte word[2 + RING]
};

row_words row[CPUS];
#ifdef BUFFER
row_words own[CPUS]; /* as its owner sees it, with the stores that wait in the buffer */
chan buffer[CPUS] = [DEPTH] of { byte, byte };
#define OWN(index) own[me].word[index]
#define DRAINED(cpu) (len(buffer[cpu]) == 0)
#define ALL_DRAINED (len(buffer[0]) + len(buffer[1]) == 0) /* two CPUs only */
#define ROOM (is_last || nfull(buffer[me]))
#else
#define OWN(index) row[me].word[index]
#define DRAINED(cpu) true
#define ALL_DRAINED true
#define ROOM true
#endif
#define OTHERS(index) row[other].word[index]

#if defined(NO_FENCE) || !defined(BUFFER)
#define FENCED true
#else
#define FENCED (is_last || DRAINED(me))
#endif

byte clock;
bit version;
#ifdef SHARERS
short sharers;
#define SHARERS_WORD(epoch, now, before) ((epoch) << (2 * CPUS) | (now) << CPUS | (before))
#define SHARERS_EPOCH(word) ((word) >> (2 * CPUS))
#define SHARERS_NOW(word) ((word) >> CPUS & PRESENT_ALL)
#define SHARERS_BEFORE(word) ((word) & PRESENT_ALL)
#define PRESENT_ALL ((1 << CPUS) - 1)
#define NAMED(cpu) (present >> (cpu) & 1)
#ifdef DROP_BEFORE
#define NAMED_BEFORE(word) 0
#else
#define NAMED_BEFORE(word) (SHARERS_EPOCH(word) + 1 == EPOCH(now) -> SHARERS_NOW(word) : 0)
#endif
#ifdef EPOCH_BACK
#define IS_NAMED_IN(word) (SHARERS_EPOCH(word) == EPOCH(now))
#else
#define IS_NAMED_IN(word) (SHARERS_EPOCH(word) >= EPOCH(now))
#endif
#define ANNOUNCED(word) (IS_NAMED_IN(word) -> (word) | 1 << (CPUS + me) : \
	SHARERS_WORD(EPOCH(now), 1 << me, NAMED_BEFORE(word)))
#else
#define NAMED(cpu) true
#endif

/* ---- what is true, and no CPU looks at ---- */

typedef per_bucket {
	byte units[BUCKETS]
};
per_bucket admitted[FLOWS];
#ifdef CHANGE
per_bucket stale[FLOWS]; /* of them, by a threshold that was no longer in force */
#endif
#ifdef EVICT
per_bucket gone; /* of the first flow's units: in rows that were evicted while they counted */
#define GONE(bucket) gone.units[bucket]
#define IS_ASKED_FOR (OTHERS(TAG) == 1)
#else
#define GONE(bucket) 0
#define IS_ASKED_FOR true
#endif
#ifdef GHOSTS
/* A flow's ghost, as the program packs it: 0, or `units` counted from `start` to `start` + `span`, and `before` earlier. */
byte ghost[FLOWS];
byte until; /* the page's word: from this bucket on no ghost counts */
#define GHOST(start, span, before, units) ((start) << 5 | (span) << 4 | (before) << 2 | (units))
#define R_UNITS(word) ((word) & 3)
#define R_BEFORE(word) ((word) >> 2 & 3)
#define R_SPAN(word) ((word) >> 4 & 1)
#define R_START(word) ((word) >> 5)
#define R_COUNTS(word) (R_START(word) + R_SPAN(word) + WINDOW > bucket)
#define LIMITED(units) ((units) > 3 -> 3 : (units))
#ifndef BEFORE_LOST
#define BEFORE_COUNTS (R_BEFORE(former) != 0 && left_newest + 1 < R_START(former) + WINDOW)
#else
#define BEFORE_COUNTS false
#endif
#endif
byte leased[CPUS]; /* each CPU's lease */
byte busy;	   /* CPUs with a packet in hand */
bit is_last;	   /* only CPU 0 goes on */
bit is_over;

/* No window that contains `bucket` is above its threshold. */
inline check_windows()
{
	first = 0;
	do
	:: first <= bucket && first < BUCKETS ->
		if
		:: bucket < first + WINDOW ->
			units = 0; part = 0; i = first;
			do
			:: i < BUCKETS && i < first + WINDOW ->
				units = units + admitted[flow].units[i];
#ifdef CHANGE
				part = part + stale[flow].units[i];
#endif
				i++
			:: else -> break
			od;
			assert(units <= THRESHOLD_LARGEST);
#ifdef CHANGE
			assert(evaluated_version != version || units - part <= THRESHOLD_OF(version));
#endif
		:: else
		fi;
		first++
	:: else -> break
	od;
	first = 0; i = 0; units = 0; part = 0
}

inline store(index, value)
{
	printf("cpu %d: word %d is %d\n", me, index, value);
#ifdef BUFFER
	own[me].word[index] = value;
	if
	:: is_last -> row[me].word[index] = own[me].word[index]
	:: else -> buffer[me]!index, own[me].word[index]
	fi
#else
	row[me].word[index] = value
#endif
}

/* ---- the steps of a CPU; each touches what is shared once ---- */

mtype = { IDLE, READ_CLOCK, GIVE_BACK, MARK_CELL, SET_NEWEST, CLEAR_CELLS, NEW_THRESHOLD, ADD, FENCE, SEE_SHARERS, ANNOUNCE, LOOK,
	LOOK_AT_MARK, LOOK_AT_CELL, LOOK_AGAIN, DECIDE, SPEND, FIND, CHECK_TAG, REREAD_CLOCK, SEE_PAGE, SEE_GHOST, RAISE_PAGE,
	SEE_FORMER, LEAVE, DROP_TAG, FILL_NEWEST, FILL_CELLS,
	SET_TAG, UNCOUNT, COUNT_FIRST, KEEP_FIRST };

inline end_packet()
{
	printf("cpu %d: end, full %d, lease %d\n", me, is_full, lease);
	busy--;
	step = IDLE; tried = 0; now = 0; bucket = 0; batch = 0; attempt = 0; evaluated_version = 0
}

#ifdef NEWEST_LATE
#define FIRST_TO_MOVE CLEAR_CELLS
#else
#define FIRST_TO_MOVE MARK_CELL
#endif
#ifdef ANNOUNCE_FIRST
#define FIRST_TO_ADD SEE_SHARERS
#else
#define FIRST_TO_ADD ADD
#endif
#ifdef FULL_KEPT
#define KEPT_FULL is_full
#define FULL_NOW is_full
#else
#define KEPT_FULL (row_version == evaluated_version -> is_full : 0)
#define FULL_NOW (row_version == evaluated_version && is_full && batch > left)
#endif
#if defined(EVICT) && !defined(NO_TAG_OWN)
#define HAS_NO_ROW (OWN(TAG) != flow + 1)
#elif defined(EVICT)
#define HAS_NO_ROW (OWN(TAG) == 0)
#else
#define HAS_NO_ROW false
#endif
#ifdef ADD_LATE
#define ADDED 0
#else
#define ADDED add
#endif

/* Our own row, less what is leased or being tried. */
inline sum_own()
{
	i = 0; units = 0;
	do
	:: i < WINDOW && i <= bucket ->
		units = units + (i + OWN(NEWEST) >= bucket -> UNITS(OWN(OLDER(i))) : 0);
		i++
	:: else -> break
	od;
	units = units - ADDED - lease;
	i = 0
}

#ifdef GHOSTS
#if defined(GHOST_LATE)
#define FIRST_TO_LEAVE DROP_TAG
#elif defined(PAGE_LATE)
#define FIRST_TO_LEAVE SEE_FORMER
#else
#define FIRST_TO_LEAVE RAISE_PAGE
#endif

/* What our row counts in the window, without what is leased. */
inline count_left()
{
	i = 0; left_behind = 0; left_flow = OWN(TAG); left_newest = OWN(NEWEST);
	do
	:: left_flow != 0 && i < RING && i <= left_newest && left_newest + WINDOW > bucket + i ->
		left_behind = left_behind + UNITS(OWN(CELL(left_newest + RING - i)));
		i++
	:: else -> break
	od;
	i = 0;
	left_behind = (left_behind > lease -> left_behind - lease : 0);
	if
	:: left_behind == 0 -> left_flow = 0; left_newest = 0
	:: else
	fi
}

/* The flow's word `former`, with what the row counted up to left_newest. */
inline add_to_former()
{
	if
	:: former == 0 -> former = GHOST(left_newest, 0, 0, LIMITED(left_behind))
	:: former != 0 && (left_newest <= R_START(former) + R_SPAN(former) || BEFORE_COUNTS) ->
#ifndef NO_SPAN
		former = GHOST(R_START(former), (left_newest > R_START(former) + R_SPAN(former) -> left_newest - R_START(former) : R_SPAN(former)), R_BEFORE(former), LIMITED(R_UNITS(former) + left_behind))
#else
		former = GHOST(R_START(former), 0, R_BEFORE(former), LIMITED(R_UNITS(former) + left_behind))
#endif
	:: else ->
		if
		:: left_newest < R_START(former) + R_SPAN(former) + WINDOW ->
#ifndef NO_BEFORE
			former = GHOST(R_START(former) + R_SPAN(former) + 1, left_newest - R_START(former) - R_SPAN(former) - 1, R_UNITS(former), LIMITED(left_behind))
#else
			former = GHOST(left_newest, 0, 0, LIMITED(left_behind))
#endif
		:: else -> former = GHOST(left_newest, 0, 0, LIMITED(left_behind))
		fi
	fi
}
#endif

/* Which step comes next, once the clock has been read or the row has been changed. */
inline route()
{
	if
#ifdef EVICT
#ifdef FIRST
	:: HAS_NO_ROW && !is_last && attempt == 1 -> is_first = 1; step = DROP_TAG
#endif
#ifdef GHOSTS
	:: HAS_NO_ROW ->
		count_left();
		step = (left_behind > 0 -> FIRST_TO_LEAVE : DROP_TAG)
#else
	:: HAS_NO_ROW -> step = DROP_TAG
#endif
#endif
#ifdef FIRST
	:: !HAS_NO_ROW && !is_last && attempt == 1 && OWN(NEWEST) < bucket && lease == 0 && row_version == evaluated_version ->
		sum_own();
		if
		:: units < THRESHOLD_OF(evaluated_version) -> is_first = 1; batch = 1
		:: else
		fi;
		units = 0;
		step = FIRST_TO_MOVE
#endif
#ifdef FIRST
	:: !HAS_NO_ROW && !is_last && !tried && attempt == 1 && OWN(NEWEST) == bucket && lease == 0 && !is_full && row_version == evaluated_version ->
		sum_own();
		if
		:: units + batch <= THRESHOLD_OF(evaluated_version) ->
			is_first = 1; add = batch; before = UNITS(OWN(CELL(bucket)));
			do
			:: units + add < THRESHOLD_OF(evaluated_version) && add < LEASE_MAX -> add++
			:: break
			od;
			step = COUNT_FIRST
		:: else -> left = 0; step = FIRST_TO_ADD
		fi;
		units = 0
#endif
#ifndef NO_GIVE_BACK
	:: !HAS_NO_ROW && OWN(NEWEST) < bucket && lease > 0 -> step = GIVE_BACK
	:: !HAS_NO_ROW && OWN(NEWEST) < bucket && lease == 0 -> step = FIRST_TO_MOVE
#else
	:: !HAS_NO_ROW && OWN(NEWEST) < bucket -> step = FIRST_TO_MOVE
#endif
	:: else ->
		assert(OWN(NEWEST) == bucket);
		if
#ifndef NO_GIVE_BACK_CHANGE
		:: row_version != evaluated_version && lease > 0 -> step = NEW_THRESHOLD
#else
		:: row_version != evaluated_version && lease >= batch -> row_version = evaluated_version; step = SPEND
#endif
		:: row_version == evaluated_version && lease >= batch -> step = SPEND
		:: FULL_NOW && attempt == 1 -> end_packet()
		:: else ->
			is_full = KEPT_FULL; left = (is_full -> left : 0);
			row_version = evaluated_version;
			step = FIRST_TO_ADD
		fi
	fi
}

inline read_clock()
{
	now = clock;
	bucket = BUCKET(now);
	printf("cpu %d: clock is %d\n", me, now);
	route()
}

inline give_back()
{
	store(CELL(OWN(NEWEST)), UNITS(OWN(CELL(OWN(NEWEST)))) - lease);
	lease = 0; leased[me] = 0;
	is_full = 0
}

/* The cells to look at of a row whose newest bucket is `newest`. */
inline choose_cells()
{
	i = 0; looked_at = 0;
	do
	:: i < RING ->
		if
#ifndef NO_NEWER
		:: newest > bucket && (i < WINDOW || i + newest >= RING + bucket) -> looked_at = looked_at | 1 << OLDER(i)
#else
		:: newest > bucket && i < WINDOW && i + newest < RING + bucket -> looked_at = looked_at | 1 << OLDER(i)
#endif
		:: newest <= bucket && i < WINDOW && i >= bucket - newest -> looked_at = looked_at | 1 << OLDER(i)
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

#ifdef EVICT
#define FIRST_LOOK FIND
#else
#define FIRST_LOOK LOOK
#endif

#ifdef NO_REREAD_GHOST
#define READ_GHOSTS skip
#else
#define READ_GHOSTS is_behind = 1
#endif
#if defined(GHOSTS) && !defined(GHOSTS_FIRST)
#define AFTER_GHOSTS step = (is_behind -> REREAD_CLOCK : DECIDE)
#else
#define AFTER_GHOSTS next_other()
#endif

inline next_other()
{
	do
	:: other < CPUS && (other == me || !NAMED(other)) -> other++
	:: else -> break
	od;
	newest = 0; part = 0; part_unspent = 0;
	if
	:: other < CPUS -> step = FIRST_LOOK
#if defined(GHOSTS) && !defined(GHOSTS_FIRST)
	:: other == CPUS && !ran_ahead -> step = SEE_PAGE; other = 0
	:: other == CPUS && ran_ahead -> step = DECIDE; other = 0
#else
	:: other == CPUS && is_behind && !ran_ahead -> step = REREAD_CLOCK; other = 0
	:: else -> step = DECIDE; other = 0
#endif
	fi
}

inline first_other()
{
	other = 0;
#ifdef GHOSTS_FIRST
	step = SEE_PAGE
#else
	next_other()
#endif
}

#ifdef FULL_ANYHOW
#define CERTAIN true
#else
#define CERTAIN !has_unspent
#endif

inline decide()
{
	if
	:: ran_ahead || units + batch > THRESHOLD_OF(evaluated_version) ->
#ifndef NO_STEP_BACK
		store(CELL(bucket), UNITS(OWN(CELL(bucket))) - ADDED | (lease > 0 -> UNSPENT : 0));
#endif
		add = 0;
		if
		:: ran_ahead && attempt < ATTEMPTS -> attempt++; step = READ_CLOCK
		:: else ->
			if
			:: !ran_ahead && CERTAIN -> is_full = 1; left = (THRESHOLD_OF(evaluated_version) > units -> THRESHOLD_OF(evaluated_version) - units : 0)
			:: else
			fi;
			end_packet()
		fi
	:: else ->
		/* Keep a part of what is free, no less than the packet. */
#ifdef KEEP_ALL
		keep = lease + add;
#else
		keep = (lease + add < THRESHOLD_OF(evaluated_version) - units -> lease + add : THRESHOLD_OF(evaluated_version) - units);
		do
		:: !is_last && keep > batch -> keep--
		:: break
		od;
#endif
		store(CELL(bucket), (UNITS(OWN(CELL(bucket))) - ADDED - lease + keep) | UNSPENT);
		lease = keep; leased[me] = keep;
		is_full = 0; left = 0; add = 0; keep = 0;
		step = SPEND
	fi;
	units = 0; has_unspent = 0; ran_ahead = 0; is_behind = 0
#ifdef SHARERS
	; present = 0
#endif
}

inline account()
{
	spent = spent + batch;
	if
	:: is_last -> passed = passed + batch
	:: else ->
		admitted[flow].units[bucket] = admitted[flow].units[bucket] + batch;
#ifdef CHANGE
		if
		:: evaluated_version != version -> stale[flow].units[bucket] = stale[flow].units[bucket] + batch
		:: else
		fi;
#endif
		check_windows()
	fi;
	was_admitted = 1
}

inline spend()
{
	lease = lease - batch; leased[me] = lease;
	account();
	assert(UNITS(OWN(CELL(bucket))) == spent + lease);
	if
	:: lease == 0 -> store(CELL(bucket), UNITS(OWN(CELL(bucket))))
	:: else
	fi;
	end_packet()
}

/* Units of a row that is evicted while it counts no longer count: the program counts the eviction. */
inline forgive()
{
	i = 0;
	do
	:: i < RING && OWN(TAG) != 0 && i <= OWN(NEWEST) && OWN(NEWEST) + WINDOW > bucket ->
		admitted[OWN(TAG) - 1].units[OWN(NEWEST) - i] = admitted[OWN(TAG) - 1].units[OWN(NEWEST) - i] - UNITS(OWN(CELL(OWN(NEWEST) + RING - i))) + (i == 0 -> lease : 0);
#ifdef TAKES_MAX
		if
		:: OWN(TAG) == 1 -> gone.units[OWN(NEWEST) - i] = gone.units[OWN(NEWEST) - i] + UNITS(OWN(CELL(OWN(NEWEST) + RING - i))) - (i == 0 -> lease : 0)
		:: else
		fi;
#endif
		i++
	:: else -> break
	od;
	i = 0
}

#ifdef NO_AHEAD
#define ASKED (SHARERS_NOW(seen) | SHARERS_BEFORE(seen))
#else
#define ASKED (SHARERS_EPOCH(seen) == EPOCH(now) -> SHARERS_NOW(seen) | SHARERS_BEFORE(seen) : PRESENT_ALL)
#endif
#ifdef ANNOUNCE_FIRST
#define AFTER_ANNOUNCE if :: add == 0 -> step = ADD :: else -> first_other() fi
#elif defined(FIRST_ANYHOW)
#define AFTER_ANNOUNCE if :: is_first -> step = KEEP_FIRST :: else -> first_other() fi
#else
#define AFTER_ANNOUNCE if :: is_first && present == 1 << me -> step = KEEP_FIRST \
	:: is_first && present != 1 << me -> step = UNCOUNT :: else -> first_other() fi
#endif
#ifdef NO_REREAD
#define CALL_MISSING skip
#else
#define CALL_MISSING is_behind = 1
#endif
#ifdef SHARERS
#define SEE_AFTER_FIRST SEE_SHARERS
#define AFTER_UNCOUNT present = 0; route()
#else
#define SEE_AFTER_FIRST UNCOUNT
#define AFTER_UNCOUNT route()
#endif
#define AFTER_MOVE if :: is_first -> step = COUNT_FIRST :: else -> route() fi

#ifdef PACKETS_MAX
#define MAY_BEGIN (is_last || packets < PACKETS_MAX)
#else
#define MAY_BEGIN true
#endif
#ifdef TAKES_MAX
#define MAY_TAKE(flow) (is_last || OWN(TAG) == flow + 1 || takes < TAKES_MAX)
#else
#define MAY_TAKE(flow) true
#endif

inline one_step()
{
	if
	:: step == IDLE && MAY_BEGIN ->
		busy++;
		attempt = 1; batch = 1; was_admitted = 0;
#ifdef PACKETS_MAX
		packets = packets + !is_last;
#endif
#ifdef EVICT
		if
		:: MAY_TAKE(0) -> flow = 0
		:: !is_last && MAY_TAKE(1) -> flow = 1
		fi;
#endif
		do
		:: !is_last && batch < BATCH_MAX -> batch++
		:: break
		od;
#ifdef CHANGE
		evaluated_version = version;
		step = READ_CLOCK
	:: step == READ_CLOCK ->
		read_clock()
#else
		read_clock()
	:: step == READ_CLOCK -> read_clock()
#endif
	:: step == GIVE_BACK && ROOM -> give_back(); step = MARK_CELL
#ifndef NO_MARK
	:: step == MARK_CELL && ROOM -> store(CELL(bucket), OWN(CELL(bucket)) | UNSPENT); step = SET_NEWEST
	:: step == SET_NEWEST && ROOM ->
#else
	:: (step == MARK_CELL || step == SET_NEWEST) && ROOM ->
#endif
		i = bucket - OWN(NEWEST);
		to_clear = (i < RING -> i : RING) - 1;
		i = 0; spent = 0; is_full = 0; left = 0;
		store(NEWEST, bucket);
#ifdef NEWEST_LATE
		AFTER_MOVE
#else
		step = CLEAR_CELLS
#endif
	:: step == CLEAR_CELLS && ROOM ->
#ifdef NEWEST_LATE
		i = bucket - OWN(NEWEST);
		to_clear = (to_clear == 0 -> (i < RING -> i : RING) - 1 : to_clear);
		i = 0;
#endif
		/* The cell of the packet's own bucket comes last. */
		do
		:: to_clear > 0 && OWN(OLDER(to_clear)) == 0 -> to_clear--
		:: else -> break
		od;
		if
#ifdef NO_CLEAR
		:: else -> to_clear = 0; AFTER_MOVE
#elif defined(NEWEST_LATE)
		:: to_clear > 0 -> store(OLDER(to_clear), 0); to_clear--
		:: else -> store(CELL(bucket), UNSPENT); step = SET_NEWEST
#else
		:: to_clear > 0 -> store(OLDER(to_clear), 0); to_clear--
		:: else -> store(CELL(bucket), UNSPENT); AFTER_MOVE
#endif
		fi
	:: step == NEW_THRESHOLD && ROOM -> give_back(); route()
	:: step == ADD && ROOM ->
		add = batch - lease;
		do
		:: !is_last && lease + add < LEASE_MAX -> add++
		:: break
		od;
#ifndef ADD_LATE
		store(CELL(bucket), (UNITS(OWN(CELL(bucket))) + add) | UNSPENT);
#endif
		sum_own();
#ifdef SHARERS
#ifdef ANNOUNCE_FIRST
		AFTER_ANNOUNCE
#else
		step = SEE_SHARERS
#endif
	:: step == SEE_SHARERS ->
		seen = sharers;
		step = ANNOUNCE
	:: step == ANNOUNCE && FENCED ->
		if
#ifdef PLAIN_ANNOUNCE
		:: ANNOUNCED(seen) != seen -> seen = ANNOUNCED(seen); sharers = seen
#else
		:: ANNOUNCED(seen) != seen && sharers == seen -> seen = ANNOUNCED(seen); sharers = seen
#endif
#ifdef LOOK_ONCE
		:: ANNOUNCED(seen) == seen -> skip
#else
		:: ANNOUNCED(seen) == seen && ANNOUNCED(sharers) == sharers -> seen = sharers
#endif
		:: else -> seen = -1
		fi;
		if
		:: seen != -1 ->
			present = ASKED;
			tries = 0;
			AFTER_ANNOUNCE
		:: seen == -1 && tries + 1 < TRIES -> tries++; step = SEE_SHARERS
		:: else -> tries = 0; ran_ahead = !is_first; step = (is_first -> UNCOUNT : DECIDE)
		fi;
		seen = 0
#elif defined(BUFFER)
		step = FENCE
	:: step == FENCE && FENCED -> first_other()
#else
		first_other()
#endif
#ifdef EVICT
	:: step == FIND ->
		printf("cpu %d: cpu %d's tag is %d\n", me, other, OTHERS(TAG));
		if
		:: OTHERS(TAG) != flow + 1 -> CALL_MISSING; other++; next_other()
		:: else -> step = LOOK
		fi
	:: step == CHECK_TAG ->
		printf("cpu %d: cpu %d's tag is now %d\n", me, other, OTHERS(TAG));
#ifndef NO_TAG_AGAIN
		if
		:: OTHERS(TAG) != flow + 1 -> CALL_MISSING
		:: else ->
#else
		if
		:: true ->
#endif
			ran_ahead = ran_ahead | newest > bucket + RING - WINDOW;
			has_unspent = has_unspent | part_unspent;
			units = (units + part > THRESHOLD_LARGEST -> THRESHOLD_LARGEST : units + part)
		fi;
		other++; next_other()
	:: step == DROP_TAG && ROOM ->
#ifndef GHOSTS
		if
		:: !is_last -> forgive()
		:: else
		fi;
#endif
#ifndef LEASE_KEPT
		lease = 0; leased[me] = 0;
#endif
		is_full = 0; left = 0; spent = 0; row_version = evaluated_version;
#ifdef TAKES_MAX
		takes = takes + !is_last;
#endif
#ifndef TAG_KEPT
		store(TAG, 0);
#endif
#if defined(GHOST_LATE) || defined(PAGE_LATE)
		step = (left_flow > 0 -> RAISE_PAGE : FILL_NEWEST)
#else
		step = FILL_NEWEST
#endif
#ifdef GHOSTS
	:: step == RAISE_PAGE ->
		until = (until > bucket + WINDOW + 1 -> until : bucket + WINDOW + 1);
#ifdef PAGE_LATE
		left_behind = 0; left_flow = 0; left_newest = 0;
		step = FILL_NEWEST
#else
		step = SEE_FORMER
#endif
	:: step == SEE_FORMER -> former = ghost[left_flow - 1]; step = LEAVE
	:: step == LEAVE && FENCED ->
		if
#ifndef PLAIN_LEAVE
		:: ghost[left_flow - 1] != former -> step = SEE_FORMER
		:: ghost[left_flow - 1] == former ->
#else
		:: true ->
#endif
			add_to_former();
			printf("cpu %d: ghost of %d is %d\n", me, left_flow, former);
			ghost[left_flow - 1] = former;
			/* It may take the place of one that has expired by our clock. */
			if
			:: R_COUNTS(ghost[2 - left_flow]) -> skip
			:: !R_COUNTS(ghost[2 - left_flow]) -> ghost[2 - left_flow] = 0
			:: !R_COUNTS(ghost[2 - left_flow]) -> skip
			fi;
#ifndef PAGE_LATE
			left_behind = 0; left_flow = 0; left_newest = 0;
#endif
#ifdef GHOST_LATE
			step = FILL_NEWEST
#else
			step = DROP_TAG
#endif
		fi;
		former = 0
	:: step == SEE_PAGE ->
		if
		:: until > bucket -> step = SEE_GHOST
		:: else -> AFTER_GHOSTS
		fi
	:: step == SEE_GHOST ->
		printf("cpu %d: sees ghost %d\n", me, ghost[flow]);
		READ_GHOSTS;
		part = (ghost[flow] != 0 && R_START(ghost[flow]) <= bucket && R_COUNTS(ghost[flow]) -> R_UNITS(ghost[flow]) : 0) +
			(ghost[flow] != 0 && R_START(ghost[flow]) <= bucket && bucket + 1 < R_START(ghost[flow]) + WINDOW -> R_BEFORE(ghost[flow]) : 0);
		units = (units + part > THRESHOLD_LARGEST -> THRESHOLD_LARGEST : units + part);
		part = 0;
		AFTER_GHOSTS
#endif
	:: step == FILL_NEWEST && ROOM -> store(NEWEST, bucket); to_clear = RING - 1; step = FILL_CELLS
	:: step == FILL_CELLS && ROOM ->
		do
		:: to_clear > 0 && OWN(OLDER(to_clear)) == 0 -> to_clear--
		:: else -> break
		od;
		if
		:: to_clear > 0 -> store(OLDER(to_clear), 0); to_clear--
		:: else -> store(CELL(bucket), batch | UNSPENT); step = SET_TAG
		fi
	:: step == SET_TAG && ROOM ->
		store(TAG, flow + 1);
		step = (is_first -> SEE_AFTER_FIRST : UNCOUNT)
#endif
	:: step == UNCOUNT && ROOM -> store(CELL(bucket), before); is_first = 0; add = 0; before = 0; tried = 1; AFTER_UNCOUNT
#ifdef FIRST
	:: step == COUNT_FIRST && ROOM -> add = (add == 0 -> batch : add); store(CELL(bucket), (before + add) | UNSPENT); step = SEE_SHARERS
	:: step == KEEP_FIRST && ROOM ->
		if
		:: true ->
			lease = (add > batch -> add - batch : 0); leased[me] = lease;
			if
			:: lease == 0 -> store(CELL(bucket), before + batch)
			:: else
			fi;
			account();
			assert(UNITS(OWN(CELL(bucket))) == spent + lease);
			is_first = 0; add = 0; present = 0; before = 0;
			end_packet()
#ifndef SINGLE_RULE
		:: true -> lease = (add == 0 -> batch : add); leased[me] = lease; is_first = 0; add = 0; present = 0; before = 0; step = SPEND
#endif
		fi
#endif
#ifndef NO_REREAD
	:: step == REREAD_CLOCK ->
		printf("cpu %d: clock is now %d\n", me, clock);
		ran_ahead = BUCKET(clock) != bucket;
		step = DECIDE
#else
	:: step == REREAD_CLOCK -> step = DECIDE
#endif
	:: step == LOOK ->
		newest = OTHERS(NEWEST);
		printf("cpu %d: cpu %d's newest is %d\n", me, other, newest);
		choose_cells();
		if
#ifndef NO_LOOK_AT_MARK
		:: looked_at != 0 -> step = LOOK_AT_MARK
#else
		:: looked_at != 0 -> step = LOOK_AT_CELL
#endif
#ifdef EVICT
		:: else -> step = CHECK_TAG
#else
		:: else -> other++; next_other()
#endif
		fi
	:: step == LOOK_AT_MARK ->
		printf("cpu %d: cpu %d's word %d is %d\n", me, other, CELL(newest), OTHERS(CELL(newest)));
		part_unspent = OTHERS(CELL(newest)) >= UNSPENT;
		step = LOOK_AT_CELL
	:: step == LOOK_AT_CELL ->
		do
		:: looked_at >> i & 1 -> break
		:: else -> i++
		od;
		printf("cpu %d: cpu %d's word %d is %d\n", me, other, i, OTHERS(i));
		part = part + UNITS(OTHERS(i));
		part_unspent = part_unspent | OTHERS(i) >= UNSPENT;
		looked_at = looked_at & ~(1 << i);
		i = 0;
		if
		:: looked_at == 0 -> step = LOOK_AGAIN
		:: else
		fi
	:: step == LOOK_AGAIN ->
		printf("cpu %d: cpu %d's newest is now %d\n", me, other, OTHERS(NEWEST));
#ifndef NO_SECOND_LOOK
		newest = OTHERS(NEWEST);
#endif
#if !defined(NO_REREAD) && !defined(NO_NEWER)
		is_behind = is_behind | newest > bucket;
#endif
#ifdef EVICT
		step = CHECK_TAG
#else
		ran_ahead = ran_ahead | newest > bucket + RING - WINDOW;
		has_unspent = has_unspent | part_unspent;
		units = (units + part > THRESHOLD_LARGEST -> THRESHOLD_LARGEST : units + part);
		other++; next_other()
#endif
	:: step == DECIDE && ROOM -> decide()
	:: step == SPEND && ROOM -> spend()
#ifndef SINGLE_RULE
	:: step == SPEND && !is_last -> end_packet() /* a later rule blocks the packet */
#endif
	fi
}

/* Packets for CPU 0 until one is blocked. */
inline use_up()
{
	flow = 0;
	do
	:: one_step();
		if
		:: step == IDLE && !was_admitted -> break
		:: else
		fi
	od
}

proctype cpu(byte me)
{
	mtype step = IDLE;
	byte now, bucket, batch, left, attempt, lease, spent, add, keep, units, part, newest, looked_at, other, i, first, flow, to_clear, passed;
	byte before; bit tried, evaluated_version, row_version, is_full, has_unspent, part_unspent, ran_ahead, is_behind, was_admitted, is_first;
#ifdef TAKES_MAX
	byte takes;
#endif
#ifdef GHOSTS
	byte left_behind, left_flow, left_newest, former;
#endif
#ifdef PACKETS_MAX
	byte packets;
#endif
#ifdef SHARERS
	byte tries, present;
	short seen;
#endif
	do
	:: atomic { one_step() }
#ifndef NO_LAST
	:: atomic { me == 0 && step == IDLE && DRAINED(0) ->
		is_last = 1;
		if
#if !defined(GHOSTS) && (!defined(EVICT) || defined(TAKES_MAX))
		/* All others are between packets: the flow may be full only by what was admitted and what they have leased. */
		:: busy == 0 && ALL_DRAINED ->
			bucket = BUCKET(clock);
			do
			:: i < WINDOW && i <= bucket -> passed = passed + admitted[0].units[bucket - i] + GONE(bucket - i); i++
			:: else -> break
			od;
			other = 1;
			do
			:: other < CPUS -> passed = passed + (IS_ASKED_FOR && bucket - OTHERS(NEWEST) < WINDOW -> leased[other] : 0); other++
			:: else -> break
			od;
			i = 0; other = 0; bucket = 0
#endif
		/* The others stopped wherever they were, a window ago. */
		:: clock = (BUCKET(LAST_TICK) + WINDOW) * BUCKET_TICKS
		fi;
		use_up();
		assert(passed == THRESHOLD_OF(version) || clock <= LAST_TICK && passed > THRESHOLD_OF(version));
		is_over = 1 }
#endif
	od
}

proctype time()
{
	do
	:: clock < LAST_TICK -> clock++
	:: else -> break
	od
}

#ifdef CHANGE
proctype controller()
{
	version = 1
}
#endif

#ifdef BUFFER
proctype memory(byte me)
{
	byte index, value;
	do
	:: atomic { buffer[me]?index, value -> row[me].word[index] = value; index = 0; value = 0 }
	od
}
#endif

never {
	do
	:: !is_over
	od
}

init {
	atomic {
		byte n = 0;
		do
		:: n < CPUS ->
			run cpu(n);
#ifdef BUFFER
			run memory(n);
#endif
			n++
		:: else -> break
		od;
		n = 0;
		run time();
#ifdef CHANGE
		run controller()
#endif
	}
}
