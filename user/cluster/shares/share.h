/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room shares: one limit for many hosts, the host's part. A host enforces a share of a rule's threshold. Shares move
 * with demand through a ledger that a store keeps (ledger.lua). Pure: no clock and no socket; time is an argument,
 * messages are structs. docs/internals/cluster-protocol.md shows why the hosts together never exceed the threshold; its
 * paragraph numbers appear in brackets here, as [3].
 *
 * This header: what one rule's share is at a given time (weir_share), and when this host may send a message
 * (weir_member). demand.h measures how much a host could use, and ledger.h converts messages to and from the store's
 * format.
 *
 * Times: *_ns are the host's own CLOCK_MONOTONIC. *_us are the ledger's clock, which advances only as far as hosts can
 * vouch for.
 */
#ifndef WEIR_SHARES_SHARE_H
#define WEIR_SHARES_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "shares/demand.h"

#define WEIR_CLUSTER_ROUND_NS 200000000ull /* a host sends one message in this time */
#define WEIR_CLUSTER_TRIP_NS 300000000ull  /* an answer that takes longer counts as lost */
#define WEIR_CLUSTER_LEASE_NS 1000000000ull
/* The time from a decision until every CPU enforces it: a map is written, and packets in progress finish. Chosen, not
 * derived.
 */
#define WEIR_CLUSTER_SETTLE_NS 50000000ull
/* The reciprocal of twice the 500 ppm by which a clock may be wrong. Two clocks differ by no more than that. */
#define WEIR_CLUSTER_DRIFT 1000
/* After this time in contact, the ledger time that a host vouches for is past the leases of all silent hosts [5]. The
 * host may learn only a lease later that another host has got an answer, and that other host becomes silent another
 * lease later. The rest is for drift.
 */
#define WEIR_CLUSTER_SETTLED_NS (2 * WEIR_CLUSTER_LEASE_NS + 50000000ull)

/* silentFor: never. Some thirty years, so that sums and Lua's numbers stay exact. */
#define WEIR_CLUSTER_FOREVER_NS 1000000000000000000ull
#define WEIR_CLUSTER_FOREVER_US ((int64_t)(WEIR_CLUSTER_FOREVER_NS / 1000))

#define WEIR_CLUSTER_NAME_CHARS 64  /* length of a host's name, with its end */
#define WEIR_CLUSTER_EPOCH_CHARS 64 /* of a ledger's epoch: the process that began it, and that process's turn */
#define WEIR_PEAK_UNKNOWN (-1)	    /* for a process that has just begun */
#define WEIR_LEDGER_NEVER (-1)

/* The terms of the rule. */
struct weir_share_terms {
	uint64_t threshold; /* for all hosts together, per interval */
	uint64_t interval_ns;
	bool may_fall_back; /* fallbackToLocalWhenFail */
	/* The threshold applies to each flow of a key: a share is for all flows, and does not change with demand. */
	bool is_per_flow;
	uint64_t silent_ns; /* silentFor: how long the ledger reserves the fallback of a silent host */
	bool stops;	    /* afterSilence: the host then enforces a limit of 0 [10] */
	/* In the share of one flow, the number for no difference from the rule's share [9]; in a rule's share, 0. */
	uint64_t base;
};

/* Values that were enforced recently, in decreasing order, each with the time until which it was in force. */
struct weir_peaks {
	struct {
		uint64_t units;
		uint64_t until_ns;
	} past[36];
	uint32_t count;
};

/* A lower bound of the ledger's time: it was at least ledger_us at own_ns. */
struct weir_ledger_time {
	bool is_known;
	int64_t ledger_us;
	uint64_t own_ns;
	uint64_t since_ns; /* since when the time has been known without interruption */
	uint64_t until_ns; /* when it is forgotten, because over a long time the drift would add up */
};

struct weir_share {
	struct weir_share_terms terms;
	uint64_t enforced; /* per interval: what the data plane should admit */
	uint64_t fallback; /* what the host may admit in the end without a lease */
	bool has_lease;
	uint64_t ends_ns;	/* when the lease ends */
	uint64_t rises_ns;	/* when the share rises to the fallback, unless there is another lease */
	uint64_t peak_known_ns; /* from this time on, `peaks` is complete */
	uint64_t begins_ns;	/* before this time 0 is in force, whatever `enforced` is; 0: it has begun */
	uint64_t lent;		/* the most that ledgers of flows may count as given up; this much is still held [9] */
	uint64_t confirmed_ns;	/* when the latest request that got a lease was sent; 0: no request has got one */
	uint64_t said_ns;	/* silent_ns in the latest request: the ledger uses this value or a larger one */
	uint64_t stops_ns;	/* from then on 0 is in force, unless there is another lease; UINT64_MAX: never */
	struct weir_peaks peaks;
	struct weir_ledger_time time;
	int64_t received_us;		      /* the ledger's time in the answer that gave the lease */
	char epoch[WEIR_CLUSTER_EPOCH_CHARS]; /* of the ledger that this host believes in; empty: none has answered */
	char heard[WEIR_CLUSTER_EPOCH_CHARS]; /* another one, in the latest answer: it is asked once more; or empty */
	int64_t hosts;			      /* hosts known to that ledger, and the sum of their fallbacks */
	int64_t total;
	int64_t silent;	    /* the part of the threshold that is reserved for silent hosts */
	int64_t longest_us; /* the longest silent_ns of any host in the ledger */
	int64_t expected;   /* hosts that the ledger knows or waits for, and what it owes to others */
	int64_t owed;
	struct weir_demand demand;
};

/* One message of a host to a ledger: the ASKED fields of read_rule() in ledger.lua. */
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
	int64_t flows_most; /* the most flows that may be shared; -1: none, so no list of flows is requested */
	int64_t silent_us;
	bool stops;
	int64_t longest_us;
	int64_t expected;
	int64_t rises_us; /* so long others may count on what this host does not use; 0: no longer */
	int64_t owed;
};

enum weir_lease_refusal { WEIR_LEASE_LATE = 0, WEIR_LEASE_TAKEN = -1 };

struct weir_share_answer {
	char epoch[WEIR_CLUSTER_EPOCH_CHARS];
	int64_t now_us;
	uint64_t share;
	uint64_t fallback;
	int64_t lease_us; /* or an enum weir_lease_refusal */
	int64_t hosts;
	int64_t total;
	int64_t silent;
	int64_t longest_us;
	int64_t expected;
	int64_t owed;
};

/* A process begins: it enforces a limit of 0, and does not know what an earlier process enforced. */
void weir_share_begin(struct weir_share *share, const struct weir_share_terms *terms, uint64_t now_ns);

/* The schedule for the data plane, which makes it independent of the controller: `leased` until the lease ends, then
 * `ended` until rises_ns, then `fallen_back`.
 */
struct weir_share_schedule {
	uint64_t leased, ended, fallen_back; /* units per interval */
	uint64_t ends_ns, rises_ns;	     /* UINT64_MAX: never */
	uint64_t stops_ns;		     /* after this time 0, whatever the others say; UINT64_MAX: never */
};

/* Call it after weir_share_advance(). The schedule holds from now_ns on, even if this is never called again. */
void weir_share_plan(const struct weir_share *share, uint64_t now_ns, struct weir_share_schedule *ret_schedule);

/* As weir_share_begin(), but for a process that continues after another one has ended: the data plane still follows
 * that one's schedule.
 */
void weir_share_resume(struct weir_share *share, const struct weir_share_terms *terms,
		       const struct weir_share_schedule *schedule, uint64_t now_ns);

/* The rule has new terms, with the same interval. */
void weir_share_change(struct weir_share *share, const struct weir_share_terms *terms, uint64_t now_ns);

/* After all, `units` were enforced until now_ns, because the data plane got the new value later than weir_share_take()
 * was called.
 */
void weir_share_was(struct weir_share *share, uint64_t units, uint64_t now_ns);

/* Update `enforced` to now_ns: a lease may end, and a fallback may begin or end. Call this at weir_share_next_ns() at
 * the latest.
 */
void weir_share_advance(struct weir_share *share, uint64_t now_ns);

/* When weir_share_advance() will next change something by itself; UINT64_MAX: never. */
uint64_t weir_share_next_ns(const struct weir_share *share);

/* Units per interval that the data plane should admit now. */
uint64_t weir_share_units(const struct weir_share *share, uint64_t now_ns);

/* The message of this round. offered and blocked are totals in units since the process began. */
void weir_share_ask(struct weir_share *share, uint64_t now_ns, uint64_t offered, uint64_t blocked,
		    struct weir_share_ask *ret_ask);

/* The same for a host that could use `units`. */
void weir_share_ask_for(struct weir_share *share, uint64_t now_ns, uint64_t units, struct weir_share_ask *ret_ask);

/* The message of a host that leaves: it enforces a limit of 0 from now on. */
void weir_share_leave(struct weir_share *share, uint64_t now_ns, struct weir_share_ask *ret_ask);

/* A message on behalf of a process that has ended, sent by the command that took the program off. It is not known what
 * that process enforced. It must be sent in the name of that process, in a turn later than all of its own.
 */
#define WEIR_CLUSTER_LAST_TURN ((1ull << 53) - 1)
void weir_share_farewell(const struct weir_share_terms *terms, struct weir_share_ask *ret_ask);

/*
 * Take the answer to the message that was sent at asked_ns. `enforced` may change. False: the answer has an epoch that
 * this host did not report, so it is not believed until the next one has the same: a single answer may come from
 * another store.
 */
bool weir_share_take(struct weir_share *share, const struct weir_share_answer *answer, uint64_t asked_ns,
		     uint64_t now_ns);

/* When this host may send: at most one message is on its way, and only the answer to the latest is accepted [2]. */
struct weir_member {
	char host[WEIR_CLUSTER_NAME_CHARS];
	char process[WEIR_CLUSTER_NAME_CHARS]; /* chosen at random when the process began; no spaces */
	uint64_t turn;
	uint64_t asked_ns;
	bool is_waiting;
};

/* Begin a turn if one is due, and the previous message was answered or has taken too long. */
bool weir_member_takes_turn(struct weir_member *member, uint64_t now_ns);

/* Is this the expected answer? If so, the function returns true only once. */
bool weir_member_takes_answer(struct weir_member *member, uint64_t turn, uint64_t now_ns);

#endif
