/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room pace: packets that wait for their time, held by devices and filters of traffic control. probe.c asks whether
 * this host can do it at all.
 *
 * This header sets up the devices of `settings.throttling: pace`. XDP cannot hold a packet. So a packet that has to
 * wait is handed to a tc program (bpf/pace.bpf.c), which redirects it, with its departure time, through an ifb with the
 * fq qdisc:
 *
 *	XDP program --mark--> clsact ingress: weir_pace --redirect--> ifb: fq --in time--> behind the filter
 *
 * An instance that paces has one ifb, named after it, in its network namespace, and a filter of fixed priority and
 * handle on each interface. On Linux 6.1 no BPF link can hold these, so they outlive a crash. Pins record what has to
 * be removed: "paced-IFINDEX" for each filter, and "clsact-IFINDEX" for each clsact qdisc that was created for one. The
 * XDP program alone decides which packets wait, and how long.
 *
 * Known limitations: packets that have waited skip the rest of clsact and the nftables hook of family netdev when the
 * ifb brings them back (the kernel does this to avoid a loop). The filter is therefore the last in its chain, so that
 * all other filters have already seen the packet. Packet sockets see a packet when it arrives, not when it leaves; to
 * see it leave, capture on the ifb.
 */
#ifndef WEIR_PACE_H
#define WEIR_PACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

enum weir_pace_answer {
	WEIR_PACE_YES,
	WEIR_PACE_NO,
	WEIR_PACE_UNKNOWN, /* only root can find out */
};

struct weir_pace_ability {
	enum weir_pace_answer answer;
	char text[128];	  /* what is there, or what is missing */
	char advice[192]; /* empty: none needed */
};

/*
 * Can this host pace? Reads the host's list of modules, so that the question loads no module. If there is no such list,
 * tries pacing in a network namespace of a child process.
 */
void weir_pace_probe(struct weir_pace_ability *ret_ability);

/* 0, or -EOPNOTSUPP and a message saying what is missing. If this cannot be determined, the answer is 0 and attaching
 * will show it.
 */
int weir_pace_check(struct weir_diag *diag);

/*
 * Outgoing packets wait in the fq qdisc of their own device, which weir does not set up. Returns 0, or -EOPNOTSUPP and
 * the tc command that gives `interface` an fq. Warns if fq would drop packets that the rules let wait: up to `packets`
 * for up to wait_ns. If this cannot be determined, the answer is 0.
 */
int weir_pace_check_out(const char *interface, uint32_t ifindex, uint64_t packets, uint64_t wait_ns,
			struct weir_diag *diag);

/* The name of an instance's ifb. */
void weir_pace_device(const char *instance, char ret_name[IF_NAMESIZE]);
/* This is a possible name of one of our ifbs. */
bool weir_pace_is_device(const char *name);

/*
 * Create the ifb and put the filter on the interfaces with these indexes, in the instance's network namespace. The
 * instance's directory and maps are already pinned; its XDP programs are attached later. Replaces what a killed attach
 * has left. If this fails, weir_pace_detach() has been called.
 */
int weir_pace_attach(const char *instance, const uint32_t *ifindexes, size_t count, struct weir_diag *diag);

/* The same for one more interface of an instance that paces, or is about to. If this fails, nothing is removed. */
int weir_pace_add(const char *instance, uint32_t ifindex, struct weir_diag *diag);

/* The instance paces now: it has a pacing filter on some interface. */
bool weir_pace_is_attached(const char *instance);

/* What happened to packets that had to wait. */
struct weir_pace_state {
	uint64_t held;	   /* left at their time, or are still waiting */
	uint64_t not_held; /* passed at once: no metadata in the driver, two VLAN tags, or taken by another tc filter */
	uint32_t waiting;  /* waiting now */
	uint32_t dropped;  /* no room to wait; since pacing began, modulo 2^32 */
};

/* Returns 0 or -errno. */
int weir_pace_read(const char *instance, struct weir_pace_state *ret_state);

/*
 * Remove everything again, after the XDP programs: no new packets wait then, and those still waiting may leave first,
 * for up to WEIR_PACE_DRAIN_MS. An instance that does not pace, or only in part, is no error. Returns 0, or -errno if
 * the instance's network namespace could not be entered, which includes -ENOENT if the namespace no longer exists.
 */
#define WEIR_PACE_DRAIN_MS 3000 /* chosen, not derived: other commands wait 10 s for the lock */
int weir_pace_detach(const char *instance);

/* Remove the filter from interfaces whose index is not in `ifindexes`. */
void weir_pace_trim(const char *instance, const uint32_t *ifindexes, size_t count);

/* Refuse pacing in skb mode: there the program would evaluate, and count, a packet again when the ifb brings it back.
 */
int weir_pace_refuse_skb(const char *interface, struct weir_diag *diag);

#endif
