/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room orders: sources that are blocked or allowed temporarily, as lines of text, and the changes that make one set of
 * orders equal to another. Pure: the clock is an input, and nothing here knows where orders are in force
 * (timed/timed.h).
 */
#ifndef WEIR_ORDERS_ORDERS_H
#define WEIR_ORDERS_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/ruleset.h"
#include "rules/scalars.h"
#include "weir_timed.h"

/* A prefix has at most one order of each kind (block or allow) in force: a later order replaces an earlier one. */
struct weir_timed_order {
	struct weir_prefix prefix;
	uint64_t lasts_ns;	/* from now on; 0: end the order that is in force */
	char by[WEIR_BY_BYTES]; /* the program that gave it; empty: WEIR_BY_HAND */
	/* only for orders to block: */
	uint64_t hits; /* packets that it has dropped; a new order starts at this number */
	char reason[WEIR_REASON_BYTES];
};

/*
 * The format of a line:
 *
 *	SOURCE [TIME] [until=WHEN] [by=PROGRAM] [hits=N] [# REASON]
 *
 * TIME is a duration. WHEN is a time of the wall clock in the format of RFC 3339, in UTC and whole seconds. With both,
 * the earlier end counts, so a clock that is wrong after a boot cannot make an order longer. A plain list of addresses
 * also consists of such lines; so does a list whose comments begin with ';', as Spamhaus publishes them.
 */
enum weir_order_line {
	WEIR_ORDER_NONE, /* it is empty, or a comment */
	WEIR_ORDER_READ, /* lasts_ns is 0 if the line gives no time */
	WEIR_ORDER_OVER, /* it ended before wall_ns */
	WEIR_ORDER_WRONG,
};
enum weir_order_line weir_order_parse(char *line, uint64_t wall_ns, struct weir_timed_order *ret_order,
				      struct weir_refusal *reterr_refusal);

/* Format the order as a line without its line end. wall_ns: NULL, or the time from which `until=` is calculated. */
#define WEIR_ORDER_TEXT_BYTES 256
const char *weir_order_format(const struct weir_timed_order *order, const uint64_t *wall_ns,
			      char ret_line[WEIR_ORDER_TEXT_BYTES]);

/* Use a comment's text as the reason: trimmed, cut to the space there is, and made printable. */
void weir_order_set_reason(struct weir_timed_order *order, const char *text);

/* The bytes that a reason can have beside this name: they share their space in the table. */
size_t weir_order_reason_bytes(const char by[WEIR_BY_BYTES]);

/* Set the name of the program, and cut the reason to what it leaves. `by` is a name of weir_parse_by(). */
void weir_order_set_by(struct weir_timed_order *order, const char *by);

/* The name of the program, written out. */
const char *weir_order_by(const struct weir_timed_order *order);

/* A comparison function for qsort(): by family, address and length. */
int weir_order_compare(const void *left, const void *right);

/* Sort the orders. If a source appears more than once, only the order that lasts longest is kept. Returns how many are
 * left.
 */
size_t weir_orders_sort(struct weir_timed_order *orders, size_t count);

/* The order with the longest prefix that contains this one and is shorter than it; NULL: there is none. */
const struct weir_timed_order *weir_order_around(const struct weir_timed_order *orders, size_t count,
						 const struct weir_prefix *prefix);

/* The changes that make a set equal to a feed. */
struct weir_order_changes {
	struct weir_timed_order *orders; /* orders to issue; those that end others come first, to make room */
	size_t count;
	size_t removed, added, renewed; /* how many of the orders remove, add or renew */
};

/*
 * `now` must be sorted; `feed` is sorted here by weir_orders_sort(). If `reason` or `by` is not NULL, only orders with
 * this reason or of this program are synchronised, and all orders of the feed get it. Another order is left alone,
 * unless the feed wants the source for longer: then the feed takes it over. With keeps_all, no order is ended. Returns
 * 0 or -ENOMEM; the caller frees ret_changes->orders.
 */
struct weir_order_scope {
	const char *reason, *by;
};
bool weir_order_is_in(const struct weir_timed_order *order, const struct weir_order_scope *scope);

int weir_orders_sync(const struct weir_timed_order *now, size_t now_count, struct weir_timed_order *feed,
		     size_t feed_count, const struct weir_order_scope *scope, bool keeps_all,
		     struct weir_order_changes *ret_changes);

#endif
