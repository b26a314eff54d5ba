/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room pace: packets that wait for their time, held by devices and filters of traffic control. probe.c asks whether
 * this host can do it at all.
 *
 * The devices of `settings.throttling: pace`. XDP cannot hold a packet, so one that has to wait is handed to a tc
 * program (bpf/pace.bpf.c), which redirects it through an ifb with the fq qdisc at its departure time:
 *
 *	XDP program --mark--> clsact ingress: weir_pace --redirect--> ifb: fq --in time--> behind the filter
 *
 * An instance that paces has one ifb, named after it, in its network namespace, and a filter of fixed
 * priority and handle on each interface. No link could hold these on Linux 6.1, so they outlive a crash; a pin
 * "paced-IFINDEX" for each filter, and "clsact-IFINDEX" for each clsact that was made for one, say what is to
 * be taken off. Never decides what waits, or how long: the XDP program does.
 *
 * What was known when this was made: packets that have waited skip the rest of clsact and the nftables hook of family
 * netdev when the ifb brings them back (the kernel does that so that they do not go round for ever). The
 * filter is therefore the last of its chain: all others have seen the packet before. And packet sockets see it when it
 * comes, not when it leaves: to see that, look at the ifb.
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
	WEIR_PACE_UNKNOWN, /* only root can see it */
};

struct weir_pace_ability {
	enum weir_pace_answer answer;
	char text[128];	  /* what is there, or missing */
	char advice[192]; /* empty: none needed */
};

/*
 * Can this host pace? By its list of modules, so that none is loaded for the question; by trying it in a network
 * namespace of a child process where there is no such list.
 */
void weir_pace_probe(struct weir_pace_ability *ret_ability);

/* 0, or -EOPNOTSUPP and what is missing. What cannot be determined is let pass: attaching will show it. */
int weir_pace_check(struct weir_diag *diag);

/*
 * What goes out waits in the fq of its own device, where weir sets nothing up: 0, or -EOPNOTSUPP and the tc command
 * that gives `interface` one. Warns where fq would drop before the rules do: they let `packets` wait for up to wait_ns.
 * What cannot be determined is let pass.
 */
int weir_pace_check_out(const char *interface, uint32_t ifindex, uint64_t packets, uint64_t wait_ns,
			struct weir_diag *diag);

/* Name of an instance's ifb. */
void weir_pace_device(const char *instance, char ret_name[IF_NAMESIZE]);
/* An ifb of ours may be called so. */
bool weir_pace_is_device(const char *name);

/*
 * Make the ifb and put the filter on the interfaces of these numbers, in the instance's network namespace. The
 * instance's directory and maps are pinned already; its XDP programs come after this. What a killed attach
 * left is replaced. When it fails, weir_pace_detach has been called.
 */
int weir_pace_attach(const char *instance, const uint32_t *ifindexes, size_t count, struct weir_diag *diag);

/* The same on one more interface of an instance that paces, or is about to: nothing is taken off when it fails. */
int weir_pace_add(const char *instance, uint32_t ifindex, struct weir_diag *diag);

/* The instance paces now: it has a filter somewhere. */
bool weir_pace_is_attached(const char *instance);

/* What became of packets that had to wait. */
struct weir_pace_state {
	uint64_t held;	   /* left at their time, or wait for it */
	uint64_t not_held; /* passed at once: no metadata in the driver, two VLAN tags, or taken by another tc filter */
	uint32_t waiting;  /* now */
	uint32_t dropped;  /* more waited than there is room for; since pacing began, modulo 2^32 */
};

/* Returns 0 or -errno. */
int weir_pace_read(const char *instance, struct weir_pace_state *ret_state);

/*
 * Take everything off again, after the XDP programs: nothing new waits then, and what still does may leave first, for
 * up to WEIR_PACE_DRAIN_MS. An instance that does not pace, or half, is fine. Returns 0, or -errno when the
 * instance's network namespace could not be entered: it is not found (-ENOENT) where nobody has it any more, either.
 */
#define WEIR_PACE_DRAIN_MS 3000 /* chosen, not derived: others wait for the lock 10 s */
int weir_pace_detach(const char *instance);

/* Take the filter off the interfaces of which `ifindexes` has not the number. */
void weir_pace_trim(const char *instance, const uint32_t *ifindexes, size_t count);

/* In skb mode the program would evaluate a packet again when the ifb brings it back, and count it twice. */
int weir_pace_refuse_skb(const char *interface, struct weir_diag *diag);

#endif
