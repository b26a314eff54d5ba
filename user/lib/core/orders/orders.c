// SPDX-License-Identifier: GPL-2.0-only
#include "orders/orders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/util.h"
#include "rules/quantity.h"

#define UNTIL "until="
#define HITS "hits="
#define BY "by="
#define WHEN_FORMAT "%Y-%m-%dT%H:%M:%SZ"

static const char *const blanks = " \t\r\n";
static const char *const form = "write a source, optionally a time and a comment: 192.0.2.7 10m # scans";

/* ---- a line ---- */

size_t weir_order_reason_bytes(const char by[WEIR_BY_BYTES])
{
	return WEIR_REASON_BYTES - 1 - (by[0] ? strlen(by) + 1 : 0);
}

void weir_order_set_reason(struct weir_timed_order *order, const char *text)
{
	const size_t bytes_max = weir_order_reason_bytes(order->by);
	size_t bytes;

	text += strspn(text, blanks);
	bytes = strlen(text);
	if (bytes > bytes_max) {
		bytes = bytes_max;
		while (bytes && weir_utf8_continues(text[bytes]))
			bytes--;
	}
	while (bytes && strchr(blanks, text[bytes - 1]))
		bytes--;
	memset(order->reason, 0, sizeof(order->reason));
	memcpy(order->reason, text, bytes);
	weir_make_printable(order->reason, "");
}

void weir_order_set_by(struct weir_timed_order *order, const char *by)
{
	char reason[WEIR_REASON_BYTES];

	memcpy(reason, order->reason, sizeof(reason));
	memset(order->by, 0, sizeof(order->by));
	if (strcmp(by, WEIR_BY_HAND) != 0)
		memcpy(order->by, by, strnlen(by, sizeof(order->by) - 1));
	weir_order_set_reason(order, reason);
}

const char *weir_order_by(const struct weir_timed_order *order)
{
	return order->by[0] ? order->by : WEIR_BY_HAND;
}

static bool begins(const char *word, const char *with)
{
	return !strncmp(word, with, strlen(with));
}

/* *ret_left_ns counts from wall_ns; 0: the time has passed. */
static int read_until(const char *text, uint64_t wall_ns, uint64_t *ret_left_ns, struct weir_refusal *refusal)
{
	struct tm parts = {};
	const char *end = strptime(text, WHEN_FORMAT, &parts);
	int64_t second;

	if (!end || *end) {
		weir_refuse(refusal, "'%.*s' is not a time of day", WEIR_SHOWN(text));
		return weir_advise(refusal, "write it like this: " UNTIL "2026-11-28T10:00:00Z");
	}
	second = timegm(&parts);
	*ret_left_ns = 0;
	if (second > 0 && second * WEIR_NSEC_PER_SEC > wall_ns)
		*ret_left_ns = second * WEIR_NSEC_PER_SEC - wall_ns;
	return 0;
}

static int read_by(const char *text, struct weir_timed_order *order, struct weir_refusal *refusal)
{
	char by[WEIR_BY_BYTES];
	int err = weir_parse_by(text, by, refusal);

	if (!err)
		weir_order_set_by(order, by);
	return err;
}

/* Parse a word after the source. *left_ns is as from read_until(); UINT64_MAX: there has been no such word. */
static int read_word(const char *word, uint64_t wall_ns, struct weir_timed_order *order, uint64_t *left_ns,
		     struct weir_refusal *refusal)
{
	if (begins(word, UNTIL) && *left_ns == UINT64_MAX)
		return read_until(word + strlen(UNTIL), wall_ns, left_ns, refusal);
	if (begins(word, BY))
		return read_by(word + strlen(BY), order, refusal);
	if (begins(word, HITS))
		return weir_parse_number(word + strlen(HITS), 0, INT64_MAX, &order->hits, refusal);
	if (!order->lasts_ns && *left_ns == UINT64_MAX)
		return weir_parse_duration(word, &order->lasts_ns, refusal);
	weir_refuse(refusal, "what is '%.*s'?", WEIR_SHOWN(word));
	return weir_advise(refusal, "%s", form);
}

enum weir_order_line weir_order_parse(char *line, uint64_t wall_ns, struct weir_timed_order *ret_order,
				      struct weir_refusal *reterr_refusal)
{
	char *comment = strpbrk(line, "#;"), *rest, *word;
	struct weir_timed_order order = {};
	uint64_t left_ns = UINT64_MAX;

	if (comment)
		*comment++ = '\0';
	word = strtok_r(line, blanks, &rest);
	if (!word)
		return WEIR_ORDER_NONE;
	if (weir_parse_network(word, &order.prefix, reterr_refusal))
		return WEIR_ORDER_WRONG;
	while ((word = strtok_r(NULL, blanks, &rest)))
		if (read_word(word, wall_ns, &order, &left_ns, reterr_refusal))
			return WEIR_ORDER_WRONG;
	if (!left_ns)
		return WEIR_ORDER_OVER;
	if (left_ns != UINT64_MAX && (!order.lasts_ns || left_ns < order.lasts_ns))
		order.lasts_ns = left_ns;
	if (comment)
		weir_order_set_reason(&order, comment);
	*ret_order = order;
	return WEIR_ORDER_READ;
}

static uint64_t whole_seconds(uint64_t ns)
{
	return (ns + WEIR_NSEC_PER_SEC - 1) / WEIR_NSEC_PER_SEC;
}

/* Rounded up to a second: it does no harm if an order ends slightly late. */
const char *weir_order_format(const struct weir_timed_order *order, const uint64_t *wall_ns,
			      char ret_line[WEIR_ORDER_TEXT_BYTES])
{
	char source[WEIR_PREFIX_TEXT_BYTES], lasts[WEIR_DURATION_TEXT_BYTES], until[48] = "", hits[32] = "",
									      by[sizeof(order->by) + 4] = "";
	const uint64_t lasts_ns = whole_seconds(order->lasts_ns) * WEIR_NSEC_PER_SEC;
	struct tm parts;
	time_t when;

	if (wall_ns) {
		when = whole_seconds(*wall_ns + order->lasts_ns);
		if (gmtime_r(&when, &parts))
			strftime(until, sizeof(until), " " UNTIL WHEN_FORMAT, &parts);
	}
	if (order->by[0])
		snprintf(by, sizeof(by), " " BY "%s", order->by);
	if (order->hits)
		snprintf(hits, sizeof(hits), " " HITS "%llu", (unsigned long long)order->hits);
	snprintf(ret_line, WEIR_ORDER_TEXT_BYTES, "%s %s%s%s%s%s%s", weir_format_prefix(&order->prefix, source),
		 weir_format_duration(lasts_ns, lasts), until, by, hits, order->reason[0] ? " # " : "", order->reason);
	return ret_line;
}

/* ---- sets ---- */

int weir_order_compare(const void *left, const void *right)
{
	const struct weir_timed_order *a = left, *b = right;

	return weir_compare_prefixes(&a->prefix, &b->prefix);
}

static bool has_all_of(const struct weir_prefix *prefix, const struct weir_prefix *other)
{
	const unsigned int bytes = prefix->bits / 8, rest = prefix->bits % 8;

	if (prefix->family != other->family || prefix->bits >= other->bits ||
	    memcmp(prefix->address, other->address, bytes) != 0)
		return false;
	return !rest || !((prefix->address[bytes] ^ other->address[bytes]) >> (8 - rest));
}

const struct weir_timed_order *weir_order_around(const struct weir_timed_order *orders, size_t count,
						 const struct weir_prefix *prefix)
{
	const struct weir_timed_order *longest = NULL;

	for (size_t i = 0; i < count; i++)
		if (has_all_of(&orders[i].prefix, prefix) && (!longest || orders[i].prefix.bits > longest->prefix.bits))
			longest = &orders[i];
	return longest;
}

size_t weir_orders_sort(struct weir_timed_order *orders, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(orders, count, sizeof(*orders), weir_order_compare);
	for (size_t i = 0; i < count; i++) {
		if (!kept || weir_order_compare(&orders[kept - 1], &orders[i]))
			orders[kept++] = orders[i];
		else if (orders[kept - 1].lasts_ns < orders[i].lasts_ns)
			orders[kept - 1] = orders[i];
	}
	return kept;
}

bool weir_order_is_in(const struct weir_timed_order *order, const struct weir_order_scope *scope)
{
	return (!scope->reason || !strcmp(order->reason, scope->reason)) &&
	       (!scope->by || !strcmp(weir_order_by(order), scope->by));
}

int weir_orders_sync(const struct weir_timed_order *now, size_t now_count, struct weir_timed_order *feed,
		     size_t feed_count, const struct weir_order_scope *scope, bool keeps_all,
		     struct weir_order_changes *ret_changes)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = calloc(now_count + feed_count + 1, sizeof(*orders));
	struct weir_order_changes changes = {.orders = orders};
	struct weir_timed_order *given;
	size_t at = 0;

	if (!orders)
		return -ENOMEM;
	feed_count = weir_orders_sort(feed, feed_count);
	/* Orders that end others fill the array from its start; orders to give follow after the most that can end. */
	given = orders + now_count;
	for (size_t i = 0; i < feed_count || at < now_count;) {
		const int order = i == feed_count ? 1 : at == now_count ? -1 : weir_order_compare(&feed[i], &now[at]);

		if (order > 0) {
			if (!keeps_all && weir_order_is_in(&now[at], scope))
				orders[changes.removed++].prefix = now[at].prefix;
			at++;
			continue;
		}
		if (scope->by)
			weir_order_set_by(&feed[i], scope->by);
		if (scope->reason)
			weir_order_set_reason(&feed[i], scope->reason);
		if (order < 0 || weir_order_is_in(&now[at], scope) || now[at].lasts_ns < feed[i].lasts_ns) {
			*given++ = feed[i];
			changes.added += order < 0;
			changes.renewed += order == 0;
		}
		i++;
		at += order == 0;
	}
	memmove(orders + changes.removed, orders + now_count, (given - (orders + now_count)) * sizeof(*orders));
	changes.count = changes.removed + changes.added + changes.renewed;
	TAKE_PTR(orders);
	*ret_changes = changes;
	return 0;
}
