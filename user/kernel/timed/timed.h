/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room timed: what operators order while packets pass: sources that are blocked or allowed for a while (weir_timed.h).
 * An order is in force on all CPUs when the call returns, and ends by itself. Nothing here evaluates packets.
 */
#ifndef WEIR_TIMED_TIMED_H
#define WEIR_TIMED_TIMED_H

#include <stddef.h>
#include <stdint.h>

#include "instance/instance.h"
#include "orders/orders.h"

/*
 * Give orders of one kind. *ret_changed is how many did something: ending what is not in force does nothing. Where
 * there is no room for some, says for how many and for which first, and fails with -ENOSPC; all others are given.
 */
int weir_timed_give(const struct weir_instance *instance, bool denies, const struct weir_timed_order *orders,
		    size_t count, size_t *ret_changed, struct weir_diag *diag);

/* End all orders of one kind. */
int weir_timed_end_all(const struct weir_instance *instance, bool denies, size_t *ret_ended, struct weir_diag *diag);

/* The orders of one kind that are in force, sorted by family, address and length. The caller frees *ret_orders. */
int weir_timed_read(const struct weir_instance *instance, bool denies, struct weir_timed_order **ret_orders,
		    size_t *ret_count, struct weir_diag *diag);

/*
 * For how many sources orders of each kind are in force; none when the instance has no room for any. Its tables must be
 * this version's: weir_timed_is_readable().
 */
struct weir_timed_counts {
	size_t blocked, allowed;
};

bool weir_timed_is_readable(const struct weir_instance *instance);
int weir_timed_count(const struct weir_instance *instance, struct weir_timed_counts *ret_counts,
		     struct weir_diag *diag);

#endif
