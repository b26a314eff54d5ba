/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A world for user/cluster/shares: hosts whose clocks drift, a network that loses, delays, doubles and reorders, and a
 * store that runs the real ledger.lua by Debian's Lua 5.1, with redis.call made of a table. Time moves in steps of 5
 * ms; the same seed gives the same world.
 *
 * The oracle knows nothing of leases: it remembers the limit each host's data plane has to enforce, and whenever one
 * is raised it adds up the most that each enforced in the last interval. Whatever packets there are, the hosts together
 * admit no more than that in any window of the rule. No packets are counted here: demand is a rate, with chance in it.
 *
 * A host with afterSilence: keep that was silent for longer than silentFor is left out of the sum.
 *
 * A world with a flow is of a rule with a key: each host has a share of the rule, and a difference from it of the one
 * flow that there is; what is enforced, offered and added up is the flow's.
 */
#ifndef WEIR_TESTS_CLUSTER_WORLD_H
#define WEIR_TESTS_CLUSTER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "shares/flow.h"
#include "shares/ledger.h"
#include "shares/share.h"

#define STEP_NS 5000000ull
#define MS 1000000ull
#define SECOND_NS (1000 * MS)
#define HOSTS_MAX 100

/* A safety step that is left out, so that a test sees what it is for. The script's are texts that others replace. */
enum omission {
	OMIT_NOTHING,
	OMIT_REST,	   /* a share that is given up is free at once */
	OMIT_LEASE_END,	   /* a host without answers keeps its share */
	OMIT_EARLY_END,	   /* a lease begins when the answer comes, and clocks are trusted */
	OMIT_WAIT,	   /* a host rises to its fallback when its lease ends */
	OMIT_TURN,	   /* a host takes any answer */
	OMIT_TIME_BOUND,   /* a host vouches for more time than it knows of */
	OMIT_UNKNOWN_PEAK, /* a new process says that nothing was enforced before it */
	OMIT_STOP,	   /* a host that was silent for too long continues instead of stopping */
	OMIT_LENT,	   /* a host says that it holds its share alone, and not what it has given up of the flow */
	OMIT_LONG_REST,	   /* a new ledger of a rule with a key is quiet for no longer than another */
	OMIT_BEGIN,	   /* a process enforces its share of a rule with a key at once */
	OMIT_BELIEF,	   /* a host believes an epoch that it hears for the first time */
	OMIT_RISES,	   /* a host that comes from another ledger does not say what that may count on */
	OMIT_TOTAL,	   /* ... what all hosts together may have by that */
	OMIT_EXPECTED,	   /* ... how many hosts that knew */
};

struct link {
	uint32_t lost_percent;
	uint32_t doubled_percent;
	uint32_t slow_percent; /* these take up to slow_ns, the others up to usual_ns */
	uint64_t usual_ns;
	uint64_t slow_ns;
	uint32_t mangled_percent; /* messages and answers in which a character is another */
	uint32_t stray_percent;	  /* messages that the other store gets and answers */
};

struct plane_value {
	uint64_t units;
	uint64_t until_ns;
};

struct host {
	struct weir_member member;
	struct weir_share share;
	struct weir_flow_part flow; /* in a world with a flow, when has_flow */
	bool has_flow;		    /* it takes part */
	bool is_up;		    /* the machine; when it goes down its data plane enforces nothing */
	bool has_process;	    /* the controller; without it the data plane goes by share alone */
	bool is_cut;		    /* from the store */
	bool is_deaf;		    /* it is heard, and gets no answer */
	uint32_t store;		    /* the one that it uses: 0 or 1 */
	int32_t drift_ppm;
	uint64_t clock_offset_ns;
	double rate; /* offered, units a second */
	double offered;
	double blocked;
	uint64_t confirmed_ns; /* when its latest request was sent that got a lease */
	uint64_t excused_ns;   /* until then its fallback may come on top: it keeps it, and was silent for too long */
	uint64_t plane_units;  /* enforced by the data plane now, and before */
	struct plane_value plane_past[64];
	uint32_t plane_count;
};

struct world {
	struct weir_share_terms terms;
	bool has_flow;
	struct link link;
	struct host host[HOSTS_MAX];
	uint32_t hosts;
	uint64_t now_ns;
	uint64_t chance;
	uint32_t store;	 /* that hosts come to */
	bool store_runs; /* else messages to it wait in its sockets */
	uint32_t writes; /* of somebody else; in worlds at random only if is_written_to */
	bool is_written_to;
	bool has_stores; /* in worlds at random: two, which hosts come to by turns */
	enum omission omission;
	struct world_message *messages;
	struct lua_State *lua;
	uint64_t rounds; /* messages that the ledger was given */
	uint64_t processes;
	uint64_t worst; /* the largest sum that the oracle saw */
};

/* script: of the ledger, or NULL for the real one. Hosts are down. What the world was before is ended (zeros: none). */
void world_begin(struct world *w, uint64_t seed, const struct weir_share_terms *terms, uint32_t hosts,
		 const char *script, size_t script_bytes);
void world_add_hosts(struct world *w, uint32_t hosts);
void world_end(struct world *w);
uint64_t world_chance(struct world *w, uint64_t below);

/* What happens to a host: its machine starts, or only its process starts again; one ends; it leaves in good order. */
void world_start_host(struct world *w, uint32_t i);
void world_kill_process(struct world *w, uint32_t i);
void world_restart_process(struct world *w, uint32_t i);
void world_crash_host(struct world *w, uint32_t i);
void world_leave(struct world *w, uint32_t i);

/* `weir detach` of a host whose process has ended: the program is off, and the ledger hears of it if it can. */
void world_detach(struct world *w, uint32_t i);

/* A host takes part in sharing the flow, from the beginning or again; or no more. */
void world_share_flow(struct world *w, uint32_t i, bool takes_part);

/* What happens to the store: emptied; somebody else writes to the ledgers, another field each time; the rule's ledger
 * is evicted, and not the flow's; a copy is taken, and later takes over, as another process.
 */
void world_empty_store(struct world *w);
void world_write_into_store(struct world *w);
void world_evict_rule(struct world *w);
void world_copy_store(struct world *w);
void world_fail_over(struct world *w);
void world_restart_store_empty(struct world *w);

/* There are two stores. All hosts go to the other one, or one host to this one; a character in the store is another;
 * `weir cluster forget --lost`.
 */
void world_alternate(struct world *w);
void world_go_to_store(struct world *w, uint32_t i, uint32_t store);
void world_mangle_store(struct world *w);
void world_forget_lost(struct world *w);

/* One step. Returns false when the threshold was exceeded. */
bool world_step(struct world *w);
bool world_run(struct world *w, uint64_t ns);

/* Units per interval that are admitted now: what is offered, as far as it is enforced. */
double world_admitted(const struct world *w);

/* The same, the mean over so much time from now on. */
double world_mean_admitted(struct world *w, uint64_t ns);

#endif
