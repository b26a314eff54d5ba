/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The five patterns of docs/internals/ordering.md as litmus tests (in herd7's format: tests/model/litmus), on a machine
 * that reorders whatever nothing orders, as arm64 does.
 *
 * A CPU has a few accesses, and each says which of its others come before it: by a barrier; because an address or a
 * value depends on them; because a store depends on a branch (a load does not wait for one); or because both are of one
 * word. Of the rest any may be next. Memory is one for all CPUs, as on arm64: what one other CPU sees all others see.
 *
 * PATTERN picks the test. A macro leaves an order out, and tests/model/run says which assertion then fails.
 */
#define MP 1	   /* message passing: a word says that others are there */
#define SB 2	   /* store buffering: add, then look at the others */
#define SEQLOCK 3  /* one copy, which a word marks as being written: rings of events, rows, top drops, notes */
#define COPIES 4   /* two copies, and a word that says which: thresholds, shares */
#define SHARERS 5 /* SB, and whom to look at is in a cell */
#define FAILED 6   /* a compare-and-swap that fails, and a load behind it: an entry that changes hands */

#define DONE(n) (done & 1 << (n))
#define MAY(n, before) (!DONE(n) && (done & (before)) == (before))
#define DID(n) done = done | 1 << (n)

#if PATTERN == MP

byte payload, flag;

active proctype writer()
{
	byte done;

	do
	:: atomic { MAY(0, 0) -> payload = 1; DID(0) }
#ifdef NO_WRITE_ORDER
	:: atomic { MAY(1, 0) -> flag = 1; DID(1) }
#else
	:: atomic { MAY(1, 1) -> flag = 1; DID(1) }
#endif
	:: done == 3 -> break
	od
}

active proctype reader()
{
	byte done, saw_flag, saw_payload;

	do
	:: atomic { MAY(0, 0) -> saw_flag = flag; DID(0) }
#ifdef NO_READ_ORDER
	:: atomic { MAY(1, 0) -> saw_payload = payload; DID(1) }
#else
	:: atomic { MAY(1, 1) -> saw_payload = payload; DID(1) }
#endif
	:: done == 3 -> break
	od;
	assert(!saw_flag || saw_payload)
}

#elif PATTERN == SB || PATTERN == SHARERS

#define CPUS 3
#define LIMIT 2

byte units[CPUS], admitted;

/* Any number of them are named before they come: by a packet that has been taken back since. */
byte named;

inline decide()
{
	if
	:: 1 + (looks_at & 1 << one && saw_one) + (looks_at & 1 << other && saw_other) <= LIMIT ->
		admitted++;
		assert(admitted <= LIMIT)
	:: else
	fi
}

#ifdef NO_FENCE
#define BEHIND_FENCE 0
#else
#define BEHIND_FENCE 1 /* access 0, which adds the units */
#endif

#if PATTERN == SB

proctype cpu(byte me)
{
	byte done, one = (me + 1) % CPUS, other = (me + 2) % CPUS, looks_at = 7;
	byte saw_one, saw_other;

	do
	:: atomic { MAY(0, 0) -> units[me] = 1; DID(0) }
	:: atomic { MAY(1, BEHIND_FENCE) -> saw_one = units[one]; DID(1) }
	:: atomic { MAY(2, BEHIND_FENCE) -> saw_other = units[other]; DID(2) }
	:: done == 7 -> break
	od;
	atomic { decide() }
}

#else

/* Access 1 is the first look at the cell. Who is not named there swaps it, which is a full barrier (2). Who is named
 * passes a fence and looks once more (2); the rows (3, 4) come behind the fence, but not behind that look.
 */
proctype cpu(byte me)
{
	byte done, one = (me + 1) % CPUS, other = (me + 2) % CPUS, looks_at, first;
	byte saw_one, saw_other;
	bool is_named;

	do
	:: atomic { MAY(0, 0) -> units[me] = 1; DID(0) }
	:: atomic { MAY(1, 0) -> first = named; is_named = first >> me & 1; DID(1) }
	:: atomic { MAY(2, 3) && !is_named -> named = named | 1 << me; looks_at = named; DID(2) }
#ifdef LOOK_ONCE
	:: atomic { MAY(2, 2) && is_named -> looks_at = first; DID(2) }
#else
	:: atomic { MAY(2, 2 | BEHIND_FENCE) && is_named -> looks_at = named; DID(2) }
#endif
	:: atomic { MAY(3, 2 | BEHIND_FENCE) && (is_named || DONE(2)) -> saw_one = units[one]; DID(3) }
	:: atomic { MAY(4, 2 | BEHIND_FENCE) && (is_named || DONE(2)) -> saw_other = units[other]; DID(4) }
	:: done == 31 -> break
	od;
	atomic { decide() }
}

#endif

init
{
	byte i;

	atomic {
		do
		:: i < CPUS -> run cpu(i); i++
		:: i < CPUS -> named = named | 1 << i; run cpu(i); i++
		:: i == CPUS -> break
		od
	}
}

#elif PATTERN == SEQLOCK

#define BUSY 0

/* Event 1 is there, and event 2 overwrites it. */
byte number = 1, left = 1, right = 1;

#ifdef NO_FENCE_AFTER_MARK
#define BEHIND_MARK 0
#else
#define BEHIND_MARK 1
#endif

active proctype writer()
{
	byte done;

	do
	:: atomic { MAY(0, 0) -> number = BUSY; DID(0) }
	:: atomic { MAY(1, BEHIND_MARK) -> left = 2; DID(1) }
	:: atomic { MAY(2, BEHIND_MARK) -> right = 2; DID(2) }
#ifdef NO_ORDER_BEFORE_NUMBER
	:: atomic { MAY(3, 1) -> number = 2; DID(3) }
#else
	:: atomic { MAY(3, 7) -> number = 2; DID(3) }
#endif
	:: done == 15 -> break
	od
}

#ifdef NO_ACQUIRE
#define BEHIND_NUMBER 0
#else
#define BEHIND_NUMBER 1
#endif

active proctype reader()
{
	byte done, before, saw_left, saw_right, after;

	do
	:: atomic { MAY(0, 0) -> before = number; DID(0) }
	:: atomic { MAY(1, BEHIND_NUMBER) -> saw_left = left; DID(1) }
	:: atomic { MAY(2, BEHIND_NUMBER) -> saw_right = right; DID(2) }
#ifdef NO_FENCE_BEFORE_SECOND_LOOK
	:: atomic { MAY(3, 1) -> after = number; DID(3) }
#else
	:: atomic { MAY(3, 7) -> after = number; DID(3) }
#endif
	:: done == 15 -> break
	od;
	assert(before == BUSY || before != after || (saw_left == before && saw_right == before))
}

#elif PATTERN == COPIES

/* Copy 1 has version 1. Versions 2 and 3 are published. */
byte version = 1, left[2], right[2];

#ifdef NO_FENCE_BEFORE_COPY
#define BEHIND_WORD 0
#else
#define BEHIND_WORD 4
#endif
#ifdef NO_RELEASE
#define COPY_BEFORE_WORD 0
#else
#define COPY_BEFORE_WORD 3
#endif

active proctype controller()
{
	byte done;

	do
	:: atomic { MAY(0, 0) -> left[0] = 2; DID(0) }
	:: atomic { MAY(1, 0) -> right[0] = 2; DID(1) }
	:: atomic { MAY(2, COPY_BEFORE_WORD) -> version = 2; DID(2) }
	:: atomic { MAY(3, BEHIND_WORD) -> left[1] = 3; DID(3) }
	:: atomic { MAY(4, BEHIND_WORD) -> right[1] = 3; DID(4) }
	:: atomic { MAY(5, 28) -> version = 3; DID(5) }
	:: done == 63 -> break
	od
}

active proctype reader()
{
	byte done, before, saw_left, saw_right, after;

	do
	:: atomic { MAY(0, 0) -> before = version; DID(0) }
	:: atomic { MAY(1, 1) -> saw_left = left[before & 1]; DID(1) }
	:: atomic { MAY(2, 1) -> saw_right = right[before & 1]; DID(2) }
#ifdef NO_ORDER_BEFORE_SECOND_LOOK
	:: atomic { MAY(3, 1) -> after = version; DID(3) }
#else
	:: atomic { MAY(3, 7) -> after = version; DID(3) }
#endif
	:: done == 15 -> break
	od;
	assert(before == 1 || before != after || (saw_left == before && saw_right == before));
	assert(before != 1 || before != after || (saw_left == 0 && saw_right == 0))
}

#elif PATTERN == FAILED

/* An entry goes from its former owner, 1, to a new one, 2, whose tag any CPU may write: ours, or one that helps. The
 * former owner's CPU writes its word, and takes it out again if it sees the new tag. Ours takes out what it finds when
 * the tag is written. One of the two must.
 */
byte tag = 1, word, over;

active proctype former()
{
	byte saw;

	word = 1; /* a compare-and-swap that succeeds */
	saw = tag;
	if
	:: atomic { saw != 1 && word == 1 -> word = 0 }
	:: else
	fi;
	over++
}

active proctype helper()
{
	if
	:: atomic { tag == 1 -> tag = 2 }
	:: atomic { tag == 2 -> skip }
	fi;
	over++
}

active proctype ours()
{
	byte done, saw;

	if
	:: atomic { tag == 1 -> tag = 2 };
		saw = word
	/* It fails, and orders nothing: a load behind it may come before. */
	:: true ->
		do
		:: atomic { MAY(0, 0) && tag == 2 -> DID(0) }
#ifdef NO_ORDER_AFTER_FAILURE
		:: atomic { MAY(1, 0) -> saw = word; DID(1) }
#else
		:: atomic { MAY(1, 1) -> saw = word; DID(1) }
#endif
		:: done == 3 -> break
		od
	fi;
	if
	:: atomic { saw == 1 && word == 1 -> word = 0 }
	:: else
	fi;
	over++;
	over == 3;
	assert(tag == 2 && word == 0)
}

#endif
