// SPDX-License-Identifier: GPL-2.0-only
/*
 * A full set that CPUs share (bpf/kinds/flow_set.h, ghosts.h) as a model for spin: insert, restore, evict and admit. The set
 * has one way, and two flows that want it; each may have LIMIT packets in all, as if the limit were for ever. CPUs send
 * PACKETS packets each, of any flow.
 *
 * An entry is `tag`, `word` (whose it is, and how many packets were admitted) and `keep` (how many packets a ghost must
 * count). A ghost is how many packets its flow had, and a number that differs whenever it is left again.
 *
 * Checked: no flow is admitted more than LIMIT times, whoever evicted it and wherever it came back. A CPU that finds a
 * way claimed waits, or drops its packet; a CPU that has claimed a way may leave it to its owner. tests/model/run leaves
 * each safety step out by its macro, which is then missed.
 *
 * A step touches what is shared once. Not here: ghosts that find no room, and a CPU that stalls between a look at a word
 * and the swap that relies on it for so long that the same word is there again, of another insertion
 * (docs/internals/ordering.md).
 */
#ifndef CPUS
#define CPUS 2
#endif
#ifndef PACKETS
#define PACKETS 2
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#define WORD(flow, used) (8 * (flow) + (used))
#ifndef FRESH
#define NOBODYS WORD(3, 0) /* of an entry that is being rebuilt */
#else
#define NOBODYS WORD(flow, 0)
#endif
#define OWNER(word) ((word) / 8)
#define USED(word) ((word) % 8)

byte tag, word, keep;
byte stamp;		/* of the word: words of different insertions differ */
byte inserted;		/* the latest insertion's flow, and */
bool is_claimed;	/* its way is being rebuilt */
byte number;		/* how many insertions there were */
byte ghost[3], ghost_number[3];
byte admitted[3];	/* the truth */

inline raise_keep(least) { /* is_done: false, try again */
	is_done = true;
	before = keep;
#ifndef PLAIN_KEEP
	atomic {
		if
		:: before >= least
		:: before < least && keep == before -> keep = least
		:: else -> is_done = false
		fi
	}
#else
	if
	:: before != least -> keep = least
	:: else
	fi
#endif
}

inline leave_ghost(whose, counts) {
	atomic {
		if
		:: whose && counts ->
			if
			:: counts > ghost[whose] -> ghost[whose] = counts
			:: else
			fi;
			ghost_number[whose] = (ghost_number[whose] + 1) % 8
		:: else
		fi
	}
}

inline publish() {
	seen_tag = tag;
	if
	:: inserted == flow && number == mine ->
		atomic {
			if
			:: tag == seen_tag -> tag = flow
			:: else
			fi
		}
	:: else
	fi
}

proctype cpu()
{
	byte flow, seen, seen_stamp, sent, before, former, mine, counts, restored, restored_number, seen_tag, seen_inserted;
	bool is_done, seen_claimed;

	do
	:: sent == PACKETS -> break
	:: sent < PACKETS ->
		sent++;
		if
		:: flow = 1
		:: flow = 2
		fi;
again:
		if
		:: tag != flow -> goto insert
		:: tag == flow
		fi;

		/* ---- admit ---- */
found:
		atomic {
			seen = word;
			seen_stamp = stamp
		}
		if
		:: OWNER(seen) != flow ->
#ifndef NO_OWNS_WAY
#ifndef OWNER_FIRST
			atomic {
				seen_inserted = inserted;
				seen_claimed = is_claimed
			}
			if
			:: tag != flow -> goto done
			:: else
			fi;
#else
			if
			:: tag != flow -> goto done
			:: else
			fi;
			atomic {
				seen_inserted = inserted;
				seen_claimed = is_claimed
			}
#endif
			if
			:: seen_claimed && seen_inserted != flow -> goto done
			:: else
			fi;
#endif
			atomic {
				if
				:: word == seen && stamp == seen_stamp -> word = WORD(flow, 0)
				:: else
				fi
			}
			goto found
		:: else
		fi;
		if
		:: USED(seen) >= LIMIT -> goto done
		:: else
		fi;
#ifndef KEEP_LATE
		raise_keep(USED(seen) + 1);
		if
		:: !is_done -> goto found
		:: else
		fi;
#endif
		atomic {
			if
			:: word == seen && stamp == seen_stamp ->
				word = seen + 1;
				admitted[flow]++;
				assert(admitted[flow] <= LIMIT)
			:: else -> goto found
			fi
		}
#ifdef KEEP_LATE
		raise_keep(USED(seen) + 1);
#endif
		goto done;

		/* ---- insert: claim ---- */
insert:
		atomic {
			seen_inserted = inserted;
			seen_claimed = is_claimed;
			mine = number
		}
		if
		:: !seen_claimed ->
			/* complete the latest insertion */
			seen_tag = tag;
			atomic {
				if
				:: seen_inserted && seen_tag != seen_inserted && tag == seen_tag && number == mine ->
					tag = seen_inserted
				:: else
				fi
			}
#ifdef TAKE_OVER
		:: seen_claimed
#endif
		:: seen_claimed ->
			!is_claimed || number != mine;
			goto again
		:: seen_claimed -> goto done
		fi;
		if
		:: tag == flow && !seen_claimed -> goto found
		:: else
		fi;
		atomic {
			if
			:: number == mine && is_claimed == seen_claimed ->
				number = (number + 1) % 16;
				mine = number;
				inserted = flow;
				is_claimed = true
			:: else -> goto again
			fi
		}
#ifdef TAG_FIRST
		publish();
#endif

		/* ---- evict ---- */
take:
#ifdef KEEP_FIRST
		counts = keep;
#endif
		atomic {
			former = word;
			seen_stamp = stamp
		}
		seen_tag = tag;
#ifndef KEEP_FIRST
		counts = keep;
#endif
#ifndef GHOST_LATE
#ifdef TAG_FIRST
		if
		:: seen_tag == flow -> seen_tag = OWNER(former)
		:: else
		fi;
#endif
		leave_ghost(seen_tag, counts);
#endif
		if
		:: true
		:: true -> /* its owner keeps the way */
			atomic {
				is_claimed = false;
				inserted = 0
			}
			goto done
		fi;
		atomic {
			if
#ifndef PLAIN_TAKE
			:: word == former && stamp == seen_stamp ->
				word = NOBODYS;
				stamp = mine
			:: else -> goto take
#else
			:: true ->
				word = NOBODYS;
				stamp = mine
#endif
			fi
		}
		atomic {
			if
			:: keep == counts -> keep = 0
			:: else
			fi
		}

		/* ---- restore ---- */
		atomic {
			restored = ghost[flow];
			restored_number = ghost_number[flow]
		}
#ifdef GHOST_FIRST
		atomic {
			if
			:: ghost[flow] == restored && ghost_number[flow] == restored_number -> ghost[flow] = 0
			:: else
			fi
		}
#endif
#ifdef GHOST_LATE
		former = seen_tag;
#endif
#ifdef RESTORE_LATE
		publish();
#endif
#ifndef NO_KEEP_RESTORED
		if
		:: restored -> keep = restored
		:: else
		fi;
#endif
		word = WORD(flow, restored);

		/* ---- publish ---- */
		publish();
		is_claimed = false;
#ifdef GHOST_LATE
		leave_ghost(former, counts);
#endif
#ifndef GHOST_FIRST
		atomic {
			if
			:: restored && ghost[flow] == restored && ghost_number[flow] == restored_number ->
				ghost[flow] = 0
			:: else
			fi
		}
#endif
		goto found;
done:
		flow = 0; seen = 0; seen_stamp = 0; before = 0; former = 0; mine = 0; counts = 0; restored = 0; restored_number = 0;
		seen_tag = 0; seen_inserted = 0; is_done = false; seen_claimed = false
	od
}

init
{
	atomic {
		byte i;

		for (i : 1 .. CPUS) {
			run cpu()
		}
	}
}
