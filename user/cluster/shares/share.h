/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room shares: one limit for many hosts, the host's side. A host enforces a share of a rule's threshold; shares move
 * with demand through a ledger that a store keeps (ledger.lua). Pure: no clock, no socket; time is an argument,
 * messages are structs. docs/cluster-protocol.md shows why the hosts together never exceed the threshold; its numbers
 * appear in brackets here, as [3].
 *
 * This header: what one rule's share is at a time (weir_share), and whose turn it is to speak (weir_member). demand.h
 * measures what a host could use, ledger.h turns messages into words of the store and back.
 *
 * Times: *_ns are the host's own CLOCK_MONOTONIC, *_us the ledger's, which runs only as fast as hosts can vouch for.
 */
#ifndef WEIR_SHARES_SHARE_H
#define WEIR_SHARES_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "shares/demand.h"

#define WEIR_CLUSTER_ROUND_NS 200000000ull /* a host speaks once in so long */
#define WEIR_CLUSTER_TRIP_NS 300000000ull  /* an answer that comes later counts as lost */
#define WEIR_CLUSTER_LEASE_NS 1000000000ull
/* From the decision until every CPU enforces it: a map is written, packets under way finish. Chosen, not derived. */
#define WEIR_CLUSTER_SETTLE_NS 50000000ull
/* One part in so many is twice the 500 ppm by which a clock may be wrong: two clocks differ by no more. */
#define WEIR_CLUSTER_DRIFT 1000
/* After so long in contact, what a host vouches for is past all silent hosts' leases [5]: it may learn a lease late
 * that one has got an answer, and that one is silent a lease after. And some for drift.
 */
#define WEIR_CLUSTER_SETTLED_NS (2 * WEIR_CLUSTER_LEASE_NS + 50000000ull)

/* silentFor: never. Some thirty years, so that sums and numbers of Lua stay exact. */
#define WEIR_CLUSTER_FOREVER_NS 1000000000000000000ull
#define WEIR_CLUSTER_FOREVER_US ((int64_t)(WEIR_CLUSTER_FOREVER_NS / 1000))

#define WEIR_CLUSTER_NAME_CHARS 64  /* a host's name, with its end */
#define WEIR_CLUSTER_EPOCH_CHARS 64 /* of a ledger: the process that began it, and its turn */
#define WEIR_PEAK_UNKNOWN (-1)	    /* of a process that has just begun */
#define WEIR_LEDGER_NEVER (-1)

/* What the rule says. */
struct weir_share_terms {
	uint64_t threshold; /* of all hosts together, per interval */
	uint64_t interval_ns;
	bool may_fall_back; /* fallbackToLocalWhenFail */
	/* The threshold is that of each flow of a key: a share is for all of them, and does not move with demand. */
	bool is_per_flow;
	uint64_t silent_ns; /* silentFor: so long the ledger reserves the fallback of a host that is silent */
	bool stops;	    /* afterSilence: then it enforces nothing [10] */
	/* In the share of one flow, what stands for no difference from the rule's share [9]; in a rule's share, 0. */
	uint64_t base;
};

/* What was enforced lately: values that shrink, each with the time until which it was in force. */
struct weir_peaks {
	struct {
		uint64_t units;
		uint64_t until_ns;
	} past[36];
	uint32_t count;
};

/* What a host knows of the ledger's time: it was at least so much then. */
struct weir_ledger_time {
	bool is_known;
	int64_t ledger_us;
	uint64_t own_ns;
	uint64_t since_ns; /* known without a gap */
	uint64_t until_ns; /* forgotten then: over long times the drift would add up */
};

struct weir_share {
	struct weir_share_terms terms;
	uint64_t enforced; /* per interval: what the data plane is to admit */
	uint64_t fallback; /* what it may admit in the end without a lease */
	bool has_lease;
	uint64_t ends_ns;	/* of the lease */
	uint64_t rises_ns;	/* to the fallback, without another lease */
	uint64_t peak_known_ns; /* from then on `peaks` is the whole truth */
	uint64_t begins_ns;	/* before that nothing is enforced, whatever `enforced` says; 0: it has begun */
	uint64_t lent;		/* the most that ledgers of flows may count as given up: this much is still held [9] */
	uint64_t confirmed_ns;	/* when the latest request was sent that got a lease; 0: none has */
	uint64_t said_ns;	/* silent_ns in the latest request: the ledger goes by no less */
	uint64_t stops_ns;	/* nothing is enforced from then on, without another lease; UINT64_MAX: it continues */
	struct weir_peaks peaks;
	struct weir_ledger_time time;
	int64_t received_us;		      /* the ledger's time in the answer that gave the lease */
	char epoch[WEIR_CLUSTER_EPOCH_CHARS]; /* of the last ledger heard of; empty: of none */
	int64_t hosts;			      /* that it knew, and what they all may fall back to */
	int64_t total;
	int64_t silent;	    /* of the threshold: left alone for hosts that are silent */
	int64_t longest_us; /* the longest silent_ns of them */
	struct weir_demand demand;
};

/* One message of a host to a ledger: the fields of ASKED in ledger.lua. */
struct weir_share_ask {
	uint64_t threshold;
	uint64_t rest_us;
	bool may_fall_back;
	bool leaves;
	uint64_t ask;
	uint64_t share;
	int64_t peak; /* or WEIR_PEAK_UNKNOWN */
	uint64_t fallback;
	const char *epoch; /* points into the share */
	int64_t now_us;
	int64_t received_us;
	int64_t contact_us;
	int64_t total;
	uint64_t base;
	int64_t flows_most; /* that may be shared; -1: none, and they are not asked for */
	int64_t silent_us;
	bool stops;
	int64_t longest_us;
};

enum weir_lease_refusal { WEIR_LEASE_LATE = 0, WEIR_LEASE_TAKEN = -1 };

struct weir_share_answer {
	char epoch[WEIR_CLUSTER_EPOCH_CHARS];
	int64_t now_us;
	uint64_t share;
	uint64_t fallback;
	int64_t lease_us; /* or a weir_lease_refusal */
	int64_t hosts;
	int64_t total;
	int64_t silent;
	int64_t longest_us;
};

/* A process begins: it enforces nothing, and does not know what an earlier one enforced. */
void weir_share_begin(struct weir_share *share, const struct weir_share_terms *terms, uint64_t now_ns);

/* What the data plane has been given, so that it needs no controller: this much until its lease ends, and so on. */
struct weir_share_schedule {
	uint64_t leased, ended, fallen_back; /* units per interval */
	uint64_t ends_ns, rises_ns;	     /* UINT64_MAX: no end in sight */
	uint64_t stops_ns;		     /* from then on nothing, whatever the others say; the same */
};

/* Call after weir_share_advance(): what holds from now_ns on, if this is never called again. */
void weir_share_plan(const struct weir_share *share, uint64_t now_ns, struct weir_share_schedule *ret_schedule);

/* As weir_share_begin, of a process that continues where another has ended: the data plane follows its schedule. */
void weir_share_resume(struct weir_share *share, const struct weir_share_terms *terms,
		       const struct weir_share_schedule *schedule, uint64_t now_ns);

/* The rule says something else now, of the same interval. */
void weir_share_change(struct weir_share *share, const struct weir_share_terms *terms, uint64_t now_ns);

/* So much was enforced until now_ns, after all: the data plane got it later than weir_share_take() was. */
void weir_share_was(struct weir_share *share, uint64_t units, uint64_t now_ns);

/* Bring `enforced` to now_ns: a lease ends, a fallback begins, and ends. To be called at weir_share_next_ns() at the
 * latest.
 */
void weir_share_advance(struct weir_share *share, uint64_t now_ns);

/* When weir_share_advance() will change something by itself; UINT64_MAX: never. */
uint64_t weir_share_next_ns(const struct weir_share *share);

/* Units per interval that the data plane is to admit now. */
uint64_t weir_share_units(const struct weir_share *share, uint64_t now_ns);

/* The message of this round. offered and blocked: units since the process began. */
void weir_share_ask(struct weir_share *share, uint64_t now_ns, uint64_t offered, uint64_t blocked,
		    struct weir_share_ask *ret_ask);

/* The same, of a host that could use so much. */
void weir_share_ask_for(struct weir_share *share, uint64_t now_ns, uint64_t units, struct weir_share_ask *ret_ask);

/* The message of a host that leaves: it enforces nothing from now on. */
void weir_share_leave(struct weir_share *share, uint64_t now_ns, struct weir_share_ask *ret_ask);

/* The message, by whoever took the program off, of a process that has ended: what it enforced is not known. It is to
 * be sent by the name of that process, in a turn later than all of its own.
 */
#define WEIR_CLUSTER_LAST_TURN ((1ull << 53) - 1)
void weir_share_farewell(const struct weir_share_terms *terms, struct weir_share_ask *ret_ask);

/* The answer to the message that was sent at asked_ns. `enforced` may be another afterwards. */
void weir_share_take(struct weir_share *share, const struct weir_share_answer *answer, uint64_t asked_ns,
		     uint64_t now_ns);

/* Whose turn it is: a host has one message on the way at most, and takes no answer but that to its latest [2]. */
struct weir_member {
	char host[WEIR_CLUSTER_NAME_CHARS];
	char process[WEIR_CLUSTER_NAME_CHARS]; /* drawn at random when the process began; no spaces */
	uint64_t turn;
	uint64_t asked_ns;
	bool is_waiting;
};

/* Begin a turn when one is due, and the one before was answered or has taken too long. */
bool weir_member_takes_turn(struct weir_member *member, uint64_t now_ns);

/* Is this the answer that is awaited? If so it is so only once. */
bool weir_member_takes_answer(struct weir_member *member, uint64_t turn, uint64_t now_ns);

#endif
