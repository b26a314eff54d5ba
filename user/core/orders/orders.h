/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room orders: sources that are blocked or allowed for a while, as lines of text, and what makes one set of them equal
 * to another. Pure: the clock is an input, and nothing here knows where orders are in force (timed/timed.h).
 */
#ifndef WEIR_ORDERS_ORDERS_H
#define WEIR_ORDERS_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/ruleset.h"
#include "rules/scalars.h"
#include "weir_timed.h"

/* One order of a kind, to block or to allow, is in force for a prefix: a later one takes the place of an earlier. */
struct weir_timed_order {
	struct weir_prefix prefix;
	uint64_t lasts_ns; /* from now on; 0: end the order that is in force */
	/* of orders to block: */
	uint64_t hits; /* packets it has dropped; an order that is given begins with as many */
	char reason[WEIR_REASON_BYTES];
};

/*
 * A line:
 *
 *	SOURCE [TIME] [until=WHEN] [hits=N] [# REASON]
 *
 * TIME is a duration, WHEN a time of the wall clock as RFC 3339 has it, in UTC and whole seconds. With both, what ends
 * first counts: a clock that is wrong after a boot makes no order longer. A plain list of addresses is such lines, too;
 * and so is one whose comments begin with ';', as Spamhaus publishes them.
 */
enum weir_order_line {
	WEIR_ORDER_NONE, /* it is empty, or a comment */
	WEIR_ORDER_READ, /* lasts_ns is 0 when it says no time */
	WEIR_ORDER_OVER, /* it ended before wall_ns */
	WEIR_ORDER_WRONG,
};
enum weir_order_line weir_order_parse(char *line, uint64_t wall_ns, struct weir_timed_order *ret_order,
				      struct weir_refusal *reterr_refusal);

/* The same line, without its end. wall_ns: NULL, or the time from which `until=` is to be counted. */
#define WEIR_ORDER_TEXT_BYTES 256
const char *weir_order_format(const struct weir_timed_order *order, const uint64_t *wall_ns,
			      char ret_line[WEIR_ORDER_TEXT_BYTES]);

/* What a comment says, as a reason: without blanks around it, cut where there is no more room, and printable. */
void weir_order_set_reason(struct weir_timed_order *order, const char *text);

/* By family, address and length, as qsort() wants it. */
int weir_order_compare(const void *left, const void *right);

/* Sort them; of sources that are there twice the order that lasts longest stays. Returns how many are left. */
size_t weir_orders_sort(struct weir_timed_order *orders, size_t count);

/* The order of the longest prefix that has all of this one, and is not it; NULL: none. */
const struct weir_timed_order *weir_order_around(const struct weir_timed_order *orders, size_t count,
						 const struct weir_prefix *prefix);

/* What makes a set equal to a feed. */
struct weir_order_changes {
	struct weir_timed_order *orders; /* to be given; those that end others come first, and make room */
	size_t count;
	size_t removed, added, renewed; /* of these */
};

/*
 * `now` is sorted; `feed` will be, by weir_orders_sort().
 * reason: NULL, or the set is only those orders that have this reason, and the feed's all get it. An order with another
 * reason stays as it is, unless the feed wants the source for longer: then it is the feed's. keeps_all: nothing ends.
 * Returns 0 or -ENOMEM; the caller frees ret_changes->orders.
 */
int weir_orders_sync(const struct weir_timed_order *now, size_t now_count, struct weir_timed_order *feed,
		     size_t feed_count, const char *reason, bool keeps_all, struct weir_order_changes *ret_changes);

#endif
