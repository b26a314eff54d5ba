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

/*
 * Give orders of one kind. *ret_changed is the number of orders that had an effect: ending an order that is not in
 * force has none. If some orders do not fit, reports how many and the first of them, and fails with -ENOSPC; all others
 * are given.
 */
int weir_timed_give(const struct weir_instance *instance, bool denies, const struct weir_timed_order *orders,
		    size_t count, size_t *ret_changed, struct weir_diag *diag);

/* End all orders of one kind. */
int weir_timed_end_all(const struct weir_instance *instance, bool denies, size_t *ret_ended, struct weir_diag *diag);

/* The orders of one kind that are in force, sorted by family, address and prefix length. The caller frees *ret_orders.
 */
int weir_timed_read(const struct weir_instance *instance, bool denies, struct weir_timed_order **ret_orders,
		    size_t *ret_count, struct weir_diag *diag);

/*
 * The number of sources with an order in force, by kind; 0 if the instance has no room for timed entries. The tables
 * must be this version's: weir_timed_is_readable().
 */
struct weir_timed_counts {
	size_t blocked, allowed;
};

bool weir_timed_is_readable(const struct weir_instance *instance);
int weir_timed_count(const struct weir_instance *instance, struct weir_timed_counts *ret_counts,
		     struct weir_diag *diag);

#endif
