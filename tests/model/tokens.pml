/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A token bucket that CPUs share (bpf/kinds/tokens.h) as a model for spin: the word and what stands beside it, `touched`. A
 * bucket gains a token a tick and holds BURST. Words distinguish 16 ticks; an epoch lasts two. CPUs take TAKES tokens each,
 * while the clock goes on by a tick, or, when no packet is evaluated, by so many that a word of before looks like one of now.
 *
 * Checked, against a bucket of whole numbers beside it: a packet is admitted only if there is a token for it by the
 * time that its CPU has read, and blocked only if there is none. No packet is evaluated for longer than an epoch. With FLOWS, a second flow takes over the entry: what is
 * left there of the first one's, who may still be at it, counts neither for nor against it. tests/model/run leaves each
 * safety step out by its macro, which is then missed.
 *
 * A step touches what is shared once. Times of different turns, 2^62 of virtual time apart, and of different flows are
 * never the same here when they are swapped: that all 62 bits of two agree at that moment is left out.
 */
#ifndef CPUS
#define CPUS 2
#endif
#ifndef TAKES
#define TAKES 2
#endif
#ifndef BURST
#define BURST 2
#endif
#ifndef JUMPS
#define JUMPS 1
#endif
#define TURN 16
#define KNOWN 2 /* epochs; BURST is one */
#define FULL(flow) (100 + (flow))
#define EPOCH(time) ((time) / 2)
/* How far `word` lies ahead of a time, of -8 to 7. */
#define AHEAD(word, time) ((((word) - (time) + 8 + 4 * TURN) % TURN) - 8)

short now;   /* the clock */
byte evaluated; /* packets that are being evaluated */
byte late;   /* of these, whose time is over: the clock waits for them */
byte tag = 1;
short word;
byte turn;   /* how often the clock has jumped */
byte source; /* of the word: in which turn, and of which flow */
byte owner;    /* touched: whose, */
short touched; /* and when */
short truth[3] = -100; /* of each flow: when its bucket is full */

#define LACKS(flow, time) (truth[flow] > (time) -> truth[flow] - (time) : 0)

proctype cpu(byte flow)
{
	short time, seen, seen_touched, ahead;
	byte seen_owner, seen_source, taken;

	do
	:: taken == TAKES -> break
	:: taken < TAKES ->
		taken++;
		atomic {
			time = now;
			evaluated++
		}
		if
#ifdef FLOWS
		:: atomic {
			flow == 2 && tag == 1 -> tag = 2 /* evicts the first, whose next bucket will be another */
		}
#endif
		:: tag == flow
		:: tag != flow && flow == 1 -> goto done
		fi;
again:
		atomic {
			seen = word;
			seen_source = source
		}
		atomic {
			seen_owner = owner;
			seen_touched = touched
		}
		ahead = 0;
		if
		:: seen == FULL(flow)
#ifndef OLD_COUNTS
		:: seen != FULL(flow) && (seen >= 100 || seen_owner != flow || EPOCH(time) - seen_touched > KNOWN) ->
#else
		:: seen != FULL(flow) && (seen >= 100 || seen_owner != flow) ->
#endif
			if
			:: tag != flow -> goto done
			:: else
			fi;
#ifndef NO_FULL
			atomic {
				if
				:: word == seen && source == seen_source ->
					word = FULL(flow);
					source = 4 * turn + flow
				:: else -> goto again
				fi;
				seen_source = source
			}
			seen = FULL(flow)
#endif
		:: else ->
			ahead = AHEAD(seen, time);
			if
			:: ahead < 0 -> ahead = 0
			:: else
			fi;
			if
			:: ahead + 1 > BURST ->
				atomic {
#ifndef NO_SECOND_LOOK
					if
					:: word != seen || source != seen_source -> goto again
					:: else
					fi;
#endif
					assert(tag != flow || LACKS(flow, time) + 1 > BURST)
				}
				goto done
			:: else
			fi
		fi;
#ifndef TOUCH_LATE
		if
		:: seen_owner == flow && EPOCH(time) <= seen_touched
		:: else ->
			atomic {
#ifndef PLAIN_TOUCH
				if
				:: owner == seen_owner && touched == seen_touched ->
					owner = flow;
					touched = EPOCH(time)
				:: else -> goto again
				fi
#else
				owner = flow;
				touched = EPOCH(time)
#endif
			}
		fi;
#endif
		atomic {
			if
			:: word == seen && source == seen_source ->
				word = (time + ahead + 1) % TURN;
				source = 4 * turn + flow;
				if
				:: tag == flow ->
					assert(LACKS(flow, time) + 1 <= BURST);
					truth[flow] = (truth[flow] > time -> truth[flow] : time) + 1
				:: else
				fi
			:: else -> goto again
			fi
		}
#ifdef TOUCH_LATE
		atomic {
			if
			:: owner != flow || touched < EPOCH(time) ->
				owner = flow;
				touched = EPOCH(time)
			:: else
			fi
		}
#endif
done:
		atomic {
			evaluated--;
			if
			:: time < now -> late--
			:: else
			fi
		}
	od
}

proctype clock()
{
	byte jumps = JUMPS, ticks = 3;

	do
	:: atomic {
		ticks > 0 && late == 0 ->
			ticks--;
			now++;
			late = evaluated
	}
	:: atomic {
		jumps > 0 && evaluated == 0 ->
			jumps--;
			turn++;
			if
			:: now = now + TURN - 1
			:: now = now + TURN - 2
			:: now = now + TURN - 3
			fi
	}
	:: break
	od
}

init
{
	atomic {
		byte i;

		now = 2;
		word = FULL(0);
		for (i : 1 .. CPUS) {
#ifdef FLOWS
			run cpu((i == 1 -> 1 : 2))
#else
			run cpu(1)
#endif
		}
		run clock()
	}
}
