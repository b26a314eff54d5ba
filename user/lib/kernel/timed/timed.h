/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room timed: operators' orders while packets pass: sources that are blocked or allowed for a limited time
 * (weir_timed.h). When a call returns, its orders are in force on all CPUs. An order ends by itself. Nothing here
 * evaluates packets.
 */
#ifndef WEIR_TIMED_TIMED_H
#define WEIR_TIMED_TIMED_H

#include <stddef.h>
#include <stdint.h>

#include "instance/instance.h"
#include "orders/orders.h"

/* What orders did. */
struct weir_timed_given {
	size_t changed; /* orders that had an effect: ending an order that is not in force has none */
	size_t evicted; /* blocks that ended early, to make room */
	struct weir_timed_order first_evicted;
};

/*
 * Give orders of one kind. An address takes a place of the part that settings.timedParts gives its program, or one of
 * those that programs without a part share. With 'timedWhenFull: evict', the block that ends first makes room: of the
 * same program, or if none is left, of those that share. Entries of `allow`, and blocks for good, stay. If some orders
 * do not fit, reports how many and the first of them, and fails with -ENOSPC; all others are given.
 */
int weir_timed_give(const struct weir_instance *instance, bool denies, const struct weir_timed_order *orders,
		    size_t count, struct weir_timed_given *ret_given, struct weir_diag *diag);

/* End all orders of one kind. */
int weir_timed_end_all(const struct weir_instance *instance, bool denies, struct weir_timed_given *ret_given,
		       struct weir_diag *diag);

/* The orders of one kind that are in force, sorted by family, address and prefix length. The caller frees *ret_orders.
 */
int weir_timed_read(const struct weir_instance *instance, bool denies, struct weir_timed_order **ret_orders,
		    size_t *ret_count, struct weir_diag *diag);

/* Places for addresses: of a part, or those that programs without one share. */
struct weir_timed_share {
	const char *by; /* in the instance's description; NULL: shared */
	size_t used, room;
};

struct weir_timed_source {
	char by[WEIR_BY_BYTES];
	size_t blocked, allowed; /* addresses and prefixes */
};

/*
 * The number of sources with an order in force, by kind; 0 if the instance has no room for timed entries. The tables
 * must be this version's: weir_timed_is_readable().
 */
#define WEIR_TIMED_SOURCES_MAX 32 /* programs; further ones are counted in the sums alone */
struct weir_timed_counts {
	size_t blocked, allowed;
	size_t addresses, room;
	struct weir_timed_share shares[WEIR_TIMED_PARTS_MAX + 1]; /* the last one is shared */
	size_t share_count;					  /* 1: there are no parts */
	struct weir_timed_source sources[WEIR_TIMED_SOURCES_MAX];
	size_t source_count;
	uint64_t evicted, refused; /* since the attach */
};

/* Above 80 %, as of other tables. */
static inline bool weir_timed_is_nearly_full(size_t used, size_t room)
{
	return used * 5 > room * 4;
}

bool weir_timed_is_readable(const struct weir_instance *instance);
int weir_timed_count(const struct weir_instance *instance, struct weir_timed_counts *ret_counts,
		     struct weir_diag *diag);

#endif
