/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How connections are counted (bpf/kinds/connection_counts.h, bpf/kinds/connection_flows.h, weir_reserve() of bpf/kinds/connections.h) as
 * a model for spin: CPUs that meet flows in one set make entries for them, count connections in and out, and evict each
 * other's flows. tests/model/run checks each configuration in every state it can reach, and that each safety step, left
 * out by its macro, is missed. docs/internals/connections.md says where each step is in the code.
 *
 * Checked:
 *   never above	a flow never has more connections admitted, and not taken out, than its limit, unless it was
 *			evicted meanwhile: another tag got its way, and the entry was taken over later (evict)
 *   taken out once	a CPU that takes out a connection of a flow that was not evicted finds it; a rule's total never
 *			goes below zero
 *   nothing left	when all CPUs are done, a flow's cells hold the connections that it has, no cell holds any of a
 *			former turn, and a rule's total is the sum of its flows' cells (check_counts)
 *   no wait		a CPU that waits for another is not left waiting (an invalid end state)
 *   used up		then a CPU that comes alone is admitted by a flow that has room, at the third try at the latest
 *
 * A step touches what is shared once: one load, one store or one compare-and-swap; between two steps anything may
 * happen, and a CPU may stop there for as long as it likes. A loop of load and compare-and-swap that looks at nothing
 * else is one step: it fails at its last load, or changes the word when it succeeds. So are the changes of a total, a
 * cell's removal and its draining; not so an addition, which looks at the owner in between. The total of a flow's first
 * connection changes with its cell (the program: later, and so it may be below zero meanwhile).
 * Stores are seen at once: each is an atomic, which waits for those before it. The clock is whatever the CPU finds: a
 * connection is counted in any cell, and may move to any other.
 *
 * Wider than the program: a CPU is out of patience whenever it likes; any way may be taken. Narrower: sizes, see
 * each configuration in `run`; loops have no last attempt (weir_add_to_cell waits eight times for a cell to be emptied,
 * weir_drain_cell tries four times: after that a rule's total may keep a connection until its step is over, but no
 * flow's cells do). Not in the model: steps that are over, classes, turns that come round (512 of them during
 * one stall), flows whose tags are alike in 22 bits, figures, and a connection's word and entry (connection_table.h).
 *
 * HELPING: the insertion of a tag step by step, as in bpf/kinds/flow_set.h; else it is one step. RULES: each flow is of a
 * rule of its own; else both are of one. (A CPU that stalls while it helps can give a flow a second entry, as
 * docs/internals/connections.md says: that takes more insertions than these configurations have.)
 */
#ifndef CPUS
#define CPUS 2
#endif
#ifndef WAYS
#define WAYS 1
#endif
#ifndef CELLS
#define CELLS 1
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef MOVES_MAX
#define MOVES_MAX 1
#endif
#ifndef TAKES_MAX /* of a CPU: entries that it tries to make */
#define TAKES_MAX 2
#endif
#define LAST CPUS /* comes when all others are done */

/* ---- what the CPUs share ---- */

#define OWNER(turn, flow, slot) ((turn) << 4 | (flow) << 2 | (slot))
#define OWNER_TURN(owner) ((owner) >> 4)
#define OWNER_FLOW(owner) ((owner) >> 2 & 3) /* 0: it is being made */
#define OWNER_SLOT(owner) ((owner) & 3)
#define SAME_MARK(owner, other) ((owner) >> 2 == (other) >> 2)

#define CELL_WORD(turn, count) ((turn) << 3 | (count))
#define CELL_TURN(cell) ((cell) >> 3)
#define CELL_COUNT(cell) ((cell) & 7)

#ifdef RULES
#define SLOTS 2
#define SLOT_OF(flow) ((flow) - 1)
#else
#define SLOTS 1
#define SLOT_OF(flow) 0
#endif

byte tag[WAYS];
byte owner[WAYS];
byte cells[WAYS * CELLS];
byte total[SLOTS * CELLS];
#define CELL cells[way * CELLS + at]
#ifdef HELPING
short inserted;
#define INSERTED(tag, way, count) ((tag) | (way) << 2 | (count) << 4)
#define INSERTED_TAG(word) ((word) & 3)
#define INSERTED_WAY(word) ((word) >> 2 & 3)
#define INSERTED_COUNT(word) ((word) >> 4)
#endif

/* ---- what is true, and no CPU looks at ---- */

byte found[CPUS + 1]; /* the way, from 1, of the flow that this CPU's connection is for; 0: it was evicted since */
bit holds[CPUS + 1];  /* its connection was admitted, and not taken out */
bit doomed[WAYS];     /* another tag has been there since this owner came */
byte done;

inline evict()
{
	n = 0;
	do
	:: n <= CPUS && found[n] == way + 1 -> found[n] = 0; holds[n] = 0; n++
	:: n <= CPUS && found[n] != way + 1 -> n++
	:: else -> break
	od;
	n = 0
}

/* `open`: connections that a way's flow has. */
inline count_held(which)
{
	n = 0; open = 0;
	do
	:: n <= CPUS -> open = open + (found[n] == which + 1 && holds[n]); n++
	:: else -> break
	od;
	n = 0
}

inline check_counts()
{
	which = 0;
	do
	:: which < WAYS ->
		count_held(which);
		i = 0;
		do
		:: i < CELLS ->
			is_own = CELL_TURN(cells[which * CELLS + i]) == OWNER_TURN(owner[which]);
			part = CELL_COUNT(cells[which * CELLS + i]);
			assert(part == 0 || is_own); /* nothing of a former turn */
			open = open - part;
			total[OWNER_SLOT(owner[which]) * CELLS + i] = total[OWNER_SLOT(owner[which]) * CELLS + i] - part;
			i++
		:: else -> break
		od;
		assert(open == 0);
		which++
	:: else -> break
	od;
	i = 0;
	do
	:: i < SLOTS * CELLS -> assert(total[i] == 0); i++
	:: else -> break
	od;
	/* And back again. */
	which = 0;
	do
	:: which < WAYS ->
		i = 0;
		do
		:: i < CELLS ->
			total[OWNER_SLOT(owner[which]) * CELLS + i] = total[OWNER_SLOT(owner[which]) * CELLS + i] +
				CELL_COUNT(cells[which * CELLS + i]);
			i++
		:: else -> break
		od;
		which++
	:: else -> break
	od;
	i = 0; which = 0; part = 0; open = 0; is_own = 0
}

/* ---- the steps of a CPU; each touches what is shared once ---- */

mtype = { IDLE, FIND, SEE_INSERTED, SEE_TAG, SEE_AGAIN, WRITE_TAG, LOOK_FOR_TAG, INSERT, SEE_OWNER, AWAIT, TAKE,
	TAKE_TAG, TAKE_OVER, DRAIN, DRAIN_TOTAL, FIRST_SEE, FIRST_LOOK, FIRST_ADD, PUBLISH, FIRST_UNDO,
	SUM_BEFORE, ADD_TOTAL, ADD_SEE, ADD_LOOK, ADD_WAIT, ADD, ADD_LOOK_AGAIN, ADD_UNDO, ADD_FAIL,
	SUM_AFTER, OPEN, OUT_SLOT, OUT_OWNER, OUT_CELL, OUT_TOTAL, DONE };

inline end_round()
{
	printf("cpu %d: done, holds %d\n", me, holds[me]);
	step = (holds[me] || round == ROUNDS || me == LAST -> DONE : IDLE);
	if
	:: step == DONE ->
		done++;
		round = 0; takes = 0
	:: else
	fi;
	if
	:: !holds[me] -> found[me] = 0
	:: else
	fi;
	flow = 0; way = 0; at = 0; mark = 0; is_moving = 0; is_back = 0; tries = 0
}

inline evaluate_again()
{
	found[me] = 0; mark = 0; at = 0; way = 0; i = 0;
	tries = tries + (me == LAST);
	assert(tries < 3); /* a CPU that is alone gets there */
	step = FIND
}

/* An insertion: the tag is written. */
inline write_tag(which, value)
{
	printf("cpu %d: tag of way %d is %d\n", me, which, value);
	tag[which] = value;
	doomed[which] = doomed[which] | OWNER_FLOW(owner[which]) != value
}

inline choose_way()
{
	way = 0;
	do
	:: way + 1 < WAYS -> way++
	:: break
	od
}

#ifdef HELPING
#define FIRST_TO_INSERT SEE_INSERTED
#else
#define FIRST_TO_INSERT INSERT
#endif
#ifdef TAKE_RIGHTFUL
#define IS_RIGHTFUL false
#else
#define IS_RIGHTFUL (OWNER_FLOW(was) == flow)
#endif
#ifdef NO_TAG_CHECK
#define IS_MEANT true
#else
#define IS_MEANT (tag[way] == flow)
#endif
#ifdef PLAIN_TAKE
#define MAY_TAKE true
#else
#define MAY_TAKE (owner[way] == was)
#endif
#ifdef SLOT_AT_ONCE
#define SLOT_WHILE_MADE SLOT_OF(flow)
#else
#define SLOT_WHILE_MADE (OWNER_TURN(was) == 0 -> SLOT_OF(flow) : OWNER_SLOT(was)) /* no cell was used */
#endif
#ifdef FIRST_OF_ANY_SLOT
#define MAY_COUNT_FIRST true
#else
#define MAY_COUNT_FIRST (OWNER_SLOT(was) == SLOT_OF(flow))
#endif
#ifdef FIRST_OVERWRITES
#define IS_EMPTY true
#else
#define IS_EMPTY (old == 0)
#endif
#ifdef TURN_KEPT
#define NEXT_TURN (OWNER_TURN(was) + (OWNER_TURN(was) == 0))
#else
#define NEXT_TURN (OWNER_TURN(was) + 1)
#endif
#ifdef DRAIN_ANY
#define IS_LEFT_OVER true
#else
#define IS_LEFT_OVER (CELL_TURN(CELL) < OWNER_TURN(was))
#endif
#ifdef PLAIN_PUBLISH
#define MAY_PUBLISH true
#else
#define MAY_PUBLISH (owner[way] == was)
#endif
#ifdef NO_DRAIN
#define FIRST_OF_ENTRY BEHIND_DRAIN
#else
#define FIRST_OF_ENTRY DRAIN
#endif
#ifdef FIRST_KEPT
#define IS_TO_UNDO 0
#else
#define IS_TO_UNDO is_first
#endif
#ifdef PUBLISH_FIRST /* and counts its first connection afterwards, without a sum */
#define BEHIND_DRAIN PUBLISH
#else
#define BEHIND_DRAIN (MAY_COUNT_FIRST -> FIRST_SEE : PUBLISH)
#endif
#ifdef NO_FIRST_LOOK
#define IS_STILL true
#else
#define IS_STILL SAME_MARK(owner[way], mark)
#endif
#ifdef OVERWRITE
#define IS_BEING_EMPTIED false
#else
#define IS_BEING_EMPTIED (CELL_TURN(old) != OWNER_TURN(mark) && CELL_COUNT(old) > 0)
#endif
#ifdef NO_SECOND_LOOK
#define AFTER_ADD if :: true -> old = 0; added() fi
#else
#define AFTER_ADD step = ADD_LOOK_AGAIN
#endif
#ifdef ADD_LATE /* looks at the sum, then adds */
#define ENOUGH LIMIT - 1
#define ADDS_FIRST false
#else
#define ENOUGH LIMIT
#define ADDS_FIRST true
#endif
#ifdef SLOT_LATE
#define FIRST_OUT OUT_OWNER
#define SLOT_LAST true
#else
#define FIRST_OUT OUT_SLOT
#define SLOT_LAST false
#endif
#ifdef OUT_ANYHOW
#define IS_OWN_TURN true
#else
#define IS_OWN_TURN (OWNER_TURN(owner[way]) == OWNER_TURN(mark))
#endif

/*
 * Cells are numbered as they are read: of a class from the oldest step on, and half-open ones before open ones. A
 * connection that is heard of moves to a later one and is not evaluated; one that goes back, as a connection that is opened
 * again does, is evaluated, itself left out.
 */
#ifdef BACK_UNEVALUATED
#define IS_EVALUATED (!is_moving)
#else
#define IS_EVALUATED (!is_moving || at == 0)
#endif

inline move_out()
{
	at = CELLS - 1 - at;
	step = FIRST_OUT
}

inline admit()
{
	printf("cpu %d: admitted\n", me);
	holds[me] = found[me] != 0;
	count_held(way);
	assert(open <= LIMIT);
	open = 0;
	step = OPEN
}

/* It is in its cell. */
inline added()
{
	old = 0;
	if
#ifdef PUBLISH_FIRST
	:: is_first -> is_first = 0; admit()
#endif
#ifdef MOVE_OUT_FIRST
	:: is_moving -> is_moving = 0; step = OPEN
	:: !is_moving && ADDS_FIRST -> step = SUM_AFTER
#else
	:: is_moving && !IS_EVALUATED -> move_out()
	:: IS_EVALUATED && ADDS_FIRST && !is_first -> step = SUM_AFTER
#endif
	:: else -> admit()
	fi
}

inline add_one_of(which)
{
	part = part + (CELL_TURN(cells[which]) == OWNER_TURN(mark) -> CELL_COUNT(cells[which]) : 0);
	i++
}

inline choose_cell()
{
	at = 0;
	do
	:: at + 1 < CELLS && me != LAST -> at++
	:: break
	od
}

inline decide()
{
	printf("cpu %d: the sum is %d\n", me, part);
	if
	:: is_moving && part <= LIMIT + 1 -> move_out()
	:: !is_moving && part <= LIMIT -> admit()
	:: else -> is_back = 1; step = FIRST_OUT
	fi;
	part = 0
}

inline taken_out()
{
	if
#ifdef MOVE_OUT_FIRST
	:: is_moving -> at = CELLS - 1 - at; step = ADD_TOTAL
#else
	:: is_moving -> at = CELLS - 1 - at; is_moving = 0; is_back = 0; step = OPEN
#endif
	:: !is_moving && is_back -> is_back = 0; evaluate_again()
	:: else -> end_round()
	fi
}

inline one_step()
{
	if
	:: step == IDLE ->
		if
		:: flow = 1
		:: flow = 2
		fi;
		round = round + (me != LAST);
		printf("cpu %d: flow %d\n", me, flow);
		step = FIND

	/* weir_get_connection_flow */
	:: step == FIND ->
		if
		:: tag[i] == flow -> way = i; i = 0; step = SEE_OWNER
		:: else ->
			i++;
			if
			:: i < WAYS
			:: else -> i = 0; step = FIRST_TO_INSERT
			fi
		fi
#ifdef HELPING
	:: step == SEE_INSERTED -> word = inserted; step = SEE_TAG
	:: step == SEE_TAG ->
		old = tag[INSERTED_WAY(word)];
		step = (INSERTED_TAG(word) != 0 && old != INSERTED_TAG(word) -> SEE_AGAIN : LOOK_FOR_TAG)
	:: step == SEE_AGAIN -> step = (inserted == word -> WRITE_TAG : LOOK_FOR_TAG)
	:: step == WRITE_TAG ->
		if
		:: tag[INSERTED_WAY(word)] == old -> write_tag(INSERTED_WAY(word), INSERTED_TAG(word))
		:: else
		fi;
		step = LOOK_FOR_TAG
	:: step == LOOK_FOR_TAG ->
		old = 0;
		if
		:: is_mine -> is_mine = 0; word = 0; step = TAKE
		:: !is_mine && tag[i] == flow -> way = i; i = 0; word = 0; step = SEE_OWNER
		:: else ->
			i++;
			if
			:: i < WAYS
			:: else -> i = 0; step = INSERT
			fi
		fi
	:: step == INSERT ->
		if
		:: inserted == word && takes < TAKES_MAX ->
			takes++;
			choose_way();
			word = INSERTED(flow, way, INSERTED_COUNT(word) + 1);
			inserted = word;
			is_mine = 1;
			step = SEE_TAG
		:: inserted != word -> step = SEE_INSERTED
		:: else -> word = 0; end_round() /* gives up */
		fi
#else
	:: step == INSERT ->
		do
		:: i < WAYS && tag[i] != flow -> i++
		:: else -> break
		od;
		if
		:: i < WAYS -> way = i; step = SEE_OWNER
		:: i == WAYS && takes < TAKES_MAX ->
			takes++;
			choose_way();
			write_tag(way, flow);
			step = TAKE
		:: else -> i = 0; end_round() /* gives up */
		fi;
		i = 0
#endif
	:: step == SEE_OWNER ->
		if
		:: OWNER_FLOW(owner[way]) == flow ->
			mark = owner[way];
			printf("cpu %d: owner is of turn %d\n", me, OWNER_TURN(mark));
			found[me] = way + 1;
			part = 0;
			step = SUM_BEFORE
		:: else -> step = AWAIT
		fi
	:: step == AWAIT && OWNER_FLOW(owner[way]) == flow -> step = SEE_OWNER
	:: step == AWAIT && tag[way] != flow -> evaluate_again()
	:: step == AWAIT && takes < TAKES_MAX -> takes++; step = TAKE
	:: step == AWAIT && takes == TAKES_MAX -> end_round() /* gives up */

	/* weir_take_over_flow */
	:: step == TAKE -> was = owner[way]; step = TAKE_TAG
	:: step == TAKE && owner[way] == 0 -> was = 0; step = TAKE_OVER /* weir_make_first_owner */
	:: step == TAKE_TAG ->
		if
		:: IS_MEANT && !IS_RIGHTFUL -> step = TAKE_OVER
		:: else -> was = 0; step = SEE_OWNER
		fi
	:: step == TAKE_OVER ->
		if
		:: MAY_TAKE ->
			if
			:: doomed[way] -> evict()
			:: else
			fi;
			was = OWNER(NEXT_TURN, 0, SLOT_WHILE_MADE);
			printf("cpu %d: takes over, turn %d\n", me, OWNER_TURN(was));
			owner[way] = was;
			at = 0;
			step = FIRST_OF_ENTRY
		:: else -> was = 0; step = SEE_OWNER
		fi
	:: step == DRAIN ->
		if
		:: IS_LEFT_OVER -> part = CELL_COUNT(CELL); CELL = 0
		:: else
		fi;
		if
		:: part > 0 -> step = DRAIN_TOTAL
		:: else ->
			at++;
			step = (at < CELLS -> DRAIN : BEHIND_DRAIN)
		fi
	:: step == DRAIN_TOTAL ->
		printf("cpu %d: emptied a cell of %d\n", me, part);
		assert(total[OWNER_SLOT(was) * CELLS + at] >= part);
		total[OWNER_SLOT(was) * CELLS + at] = total[OWNER_SLOT(was) * CELLS + at] - part;
		part = 0;
		at++;
		step = (at < CELLS -> DRAIN : BEHIND_DRAIN)
	/* weir_take_over_flow: the flow's first connection, before the entry is the flow's */
	:: step == FIRST_SEE ->
		choose_cell();
		old = CELL;
		step = (IS_EMPTY -> FIRST_LOOK : PUBLISH)
	:: step == FIRST_SEE && OWNER_TURN(was) == 1 -> choose_cell(); old = 0; step = FIRST_ADD /* weir_make_first_owner */
	:: step == FIRST_SEE -> step = PUBLISH /* for a connection that is counted afterwards */
	:: step == FIRST_LOOK -> step = (owner[way] == was -> FIRST_ADD : PUBLISH)
	:: step == FIRST_ADD ->
		if
		:: CELL == old ->
			CELL = CELL_WORD(OWNER_TURN(was), 1);
			total[SLOT_OF(flow) * CELLS + at]++;
			is_first = 1
		:: else
		fi;
		step = PUBLISH
	:: step == PUBLISH ->
		old = 0;
		if
		:: MAY_PUBLISH ->
			owner[way] = OWNER(OWNER_TURN(was), flow, SLOT_OF(flow));
			doomed[way] = tag[way] != flow;
			if
			:: is_first ->
				mark = owner[way];
				found[me] = way + 1;
				is_first = 0;
				admit()
#ifdef PUBLISH_FIRST
			:: !is_first && MAY_COUNT_FIRST ->
				mark = owner[way];
				found[me] = way + 1;
				is_first = 1; at = 0;
				step = ADD_TOTAL
#endif
			:: else -> at = 0; step = SEE_OWNER
			fi;
			was = 0
		:: else ->
			step = (IS_TO_UNDO -> FIRST_UNDO : SEE_OWNER);
			at = (IS_TO_UNDO -> at : 0);
			was = (IS_TO_UNDO -> was : 0);
			is_first = IS_TO_UNDO
		fi
	/* weir_uncount_opening */
	:: step == FIRST_UNDO ->
		if
		:: CELL_TURN(CELL) == OWNER_TURN(was) && CELL_COUNT(CELL) > 0 ->
			CELL--;
			assert(total[SLOT_OF(flow) * CELLS + at] > 0);
			total[SLOT_OF(flow) * CELLS + at]--
		:: else /* it was drained, and taken out of the total */
		fi;
		is_first = 0; was = 0; at = 0;
		step = SEE_OWNER

	/* weir_reserve */
	:: step == SUM_BEFORE && i < CELLS -> add_one_of(way * CELLS + i);
		if
		:: i < CELLS
		:: else ->
			i = 0;
			if
			:: part >= LIMIT ->
				count_held(way);
				assert(me != LAST || open >= LIMIT);
				open = 0;
				part = 0;
				end_round()
			:: else -> part = 0; choose_cell(); step = ADD_TOTAL
			fi
		fi

	/* weir_count_in, weir_add_to_cell */
	:: step == ADD_TOTAL -> total[SLOT_OF(flow) * CELLS + at]++; step = ADD_SEE
	:: step == ADD_SEE -> old = CELL; step = ADD_LOOK
	:: step == ADD_LOOK ->
		if
		:: IS_STILL && IS_BEING_EMPTIED -> step = ADD_WAIT
		:: IS_STILL && !IS_BEING_EMPTIED -> step = ADD
		:: else -> old = 0; step = ADD_FAIL
		fi
	:: step == ADD_WAIT && (CELL != old || !IS_STILL) -> step = ADD_SEE
	:: step == ADD ->
		if
		:: CELL == old ->
			CELL = CELL_WORD(OWNER_TURN(mark), (CELL_TURN(old) == OWNER_TURN(mark) -> CELL_COUNT(old) : 0) + 1);
			printf("cpu %d: cell %d is turn %d count %d\n", me, at, CELL_TURN(CELL), CELL_COUNT(CELL));
			AFTER_ADD
		:: else -> step = ADD_SEE
		fi
	:: step == ADD_LOOK_AGAIN ->
		if
		:: SAME_MARK(owner[way], mark) -> added()
		:: else -> old = 0; step = ADD_UNDO
		fi
	:: step == ADD_UNDO ->
		if
		:: CELL_TURN(CELL) == OWNER_TURN(mark) && CELL_COUNT(CELL) > 0 -> CELL--; step = ADD_FAIL
		:: else -> added() /* and evicted */
		fi
	:: step == ADD_FAIL ->
		assert(total[SLOT_OF(flow) * CELLS + at] > 0);
		total[SLOT_OF(flow) * CELLS + at]--;
		is_first = 0;
		if
		:: is_moving -> is_moving = 0; at = CELLS - 1 - at; step = OPEN
		:: else -> evaluate_again()
		fi
	:: step == SUM_AFTER -> add_one_of(way * CELLS + i);
		if
		:: i < CELLS
		:: else -> i = 0; decide()
		fi

	/* The connection is there: it stays, moves, or ends. */
	:: step == OPEN -> end_round()
	:: step == OPEN && me != LAST -> step = FIRST_OUT
#if CELLS > 1
	:: step == OPEN && moves < MOVES_MAX && me != LAST ->
		moves++;
		is_moving = 1;
#ifdef MOVE_OUT_FIRST
		step = FIRST_OUT
#else
		at = CELLS - 1 - at;
		step = ADD_TOTAL
#endif
#endif

	/* weir_count_out */
	:: step == OUT_SLOT ->
		was = OWNER_SLOT(owner[way]);
		step = (SLOT_LAST -> OUT_TOTAL : OUT_OWNER)
	:: step == OUT_OWNER ->
		if
		:: IS_OWN_TURN -> step = OUT_CELL
		:: else ->
			assert(found[me] == 0);
			was = 0;
			taken_out()
		fi
	:: step == OUT_CELL ->
		if
		:: CELL_TURN(CELL) == OWNER_TURN(mark) && CELL_COUNT(CELL) > 0 ->
			CELL--;
			holds[me] = holds[me] && is_moving;
			step = (SLOT_LAST -> OUT_SLOT : OUT_TOTAL)
		:: else ->
			assert(found[me] == 0);
			was = 0;
			taken_out()
		fi
	:: step == OUT_TOTAL ->
		assert(total[was * CELLS + at] > 0);
		total[was * CELLS + at]--;
		was = 0;
		taken_out()
	fi
}

proctype cpu(byte me)
{
	mtype step = IDLE;
	byte round, takes, tries, flow, way, at, i, n, mark, was, old, part, open;
	bit is_moving, is_back, is_first;
#if CELLS > 1
	byte moves;
#endif
#ifdef HELPING
	short word;
	bit is_mine;
#endif
	do
	:: atomic { step != DONE -> one_step() }
	:: atomic { step == DONE -> break }
	od
}

init {
	byte n, which, i, part;
	short open;
	bit is_own;
	atomic {
		do
		:: n < CPUS -> run cpu(n); n++
		:: else -> break
		od;
		n = 0
	}
	atomic { done == CPUS -> check_counts(); run cpu(LAST) }
	atomic { done == CPUS + 1 -> check_counts() }
}
