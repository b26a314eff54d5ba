// SPDX-License-Identifier: GPL-2.0-only
/* Lines of `weir block`, which it reads as it prints them; and what makes a set of orders equal to a feed. */
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "orders/orders.h"

#define SECOND WEIR_NSEC_PER_SEC
#define HOUR (3600 * SECOND)
#define WALL_NS (1764288000 * SECOND) /* 2025-11-28T00:00:00Z */

static struct weir_refusal refusal;

static enum weir_order_line parse(const char *text, struct weir_timed_order *ret_order)
{
	char line[1024];

	snprintf(line, sizeof(line), "%s", text);
	return weir_order_parse(line, WALL_NS, ret_order, &refusal);
}

static struct weir_timed_order order_of(const char *line)
{
	struct weir_timed_order order;

	assert_int_equal(parse(line, &order), WEIR_ORDER_READ);
	return order;
}

/* ---- lines ---- */

CLAIM(a_plain_list_of_addresses_is_read)
{
	struct weir_timed_order order = order_of("  192.0.2.7\r\n");

	assert_int_equal(order.prefix.bits, 32);
	assert_int_equal(order.lasts_ns, 0);
	assert_int_equal(order.hits, 0);
	assert_string_equal(order.reason, "");
	assert_int_equal(order_of("2001:db8::5/64").prefix.bits, 64);
	assert_int_equal(parse("", &order), WEIR_ORDER_NONE);
	assert_int_equal(parse("# 192.0.2.7", &order), WEIR_ORDER_NONE);
	assert_int_equal(parse("; Spamhaus DROP List", &order), WEIR_ORDER_NONE);
	assert_string_equal(order_of("192.0.2.0/24 ; SBL256894").reason, "SBL256894");
}

CLAIM(a_line_has_a_time_hits_and_a_reason)
{
	struct weir_timed_order order = order_of("192.0.2.7 1h30m hits=12 #  tried 'admin' # twice ");

	assert_int_equal(order.lasts_ns, HOUR + HOUR / 2);
	assert_int_equal(order.hits, 12);
	assert_string_equal(order.reason, "tried 'admin' # twice");
	assert_string_equal(weir_order_by(&order), "hand");
}

CLAIM(a_line_names_the_program_that_gave_the_order)
{
	struct weir_timed_order order = order_of("192.0.2.7 1h by=fail2ban hits=3 # ssh");
	char text[WEIR_ORDER_TEXT_BYTES], line[160];

	assert_string_equal(order.by, "fail2ban");
	assert_string_equal(weir_order_format(&order, NULL, text), "192.0.2.7 1h by=fail2ban hits=3 # ssh");
	order = order_of("192.0.2.7 1h by=hand");
	assert_string_equal(order.by, "");
	assert_string_equal(weir_order_format(&order, NULL, text), "192.0.2.7 1h");
	/* The name takes its room from the reason, whichever comes first. */
	snprintf(line, sizeof(line), "192.0.2.7 1h by=fail2ban # %063d", 0);
	order = order_of(line);
	assert_int_equal(strlen(order.reason), 54);
	assert_int_equal(weir_order_reason_bytes(order.by), 54);
	snprintf(line, sizeof(line), "192.0.2.7 1h # %063d", 0);
	order = order_of(line);
	weir_order_set_by(&order, "fail2ban");
	assert_int_equal(strlen(order.reason), 54);
}

CLAIM(a_wrong_word_is_refused)
{
	static const struct {
		const char *line, *message;
	} wrong[] = {
		{"192.0.2.300", "192.0.2.300"},
		{"192.0.2.7 soon", "'soon' is not a duration"},
		{"192.0.2.7 1h more", "what is 'more'?"},
		{"192.0.2.7 1h 2h", "what is '2h'?"},
		{"192.0.2.7 hits=many", "many"},
		{"192.0.2.7 by=", "'' is not the name of a program"},
		{"192.0.2.7 by=a/b", "'a/b' is not the name of a program"},
		{"192.0.2.7 by=sixteen-letters-", "'sixteen-letters-' is not the name of a program"},
		{"192.0.2.7 until=tomorrow", "'tomorrow' is not a time of day"},
		{"192.0.2.7 until=2025-11-28T01:00:00Z until=2025-11-28T01:00:00Z", "what is 'until="},
		{"192.0.2.7 until=2025-11-28T01:00:00+01:00", "is not a time of day"},
	};
	struct weir_timed_order order;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(parse(wrong[i].line, &order), WEIR_ORDER_WRONG);
		assert_non_null(strstr(refusal.message, wrong[i].message));
	}
}

CLAIM(a_reason_is_cut_between_characters_and_obeyed_by_no_terminal)
{
	struct weir_timed_order order = {};
	char text[128];

	weir_order_set_reason(&order, " \033[2J and \t\xff ");
	assert_string_equal(order.reason, "?[2J and ??");
	memset(text, 'a', sizeof(text));
	strcpy(text + 62, "\xc3\xa9 and more"); /* a character of two bytes, of which one has room */
	weir_order_set_reason(&order, text);
	assert_int_equal(strlen(order.reason), 62);
	text[62] = 'b';
	text[63] = '\0';
	weir_order_set_reason(&order, text);
	assert_int_equal(strlen(order.reason), 63);
}

CLAIM(a_line_is_printed_as_it_is_read)
{
	static const char *const lines[] = {"192.0.2.7 59m59s", "2001:db8::/48 3650d hits=9223372036854775807 # a # b",
					    "10.0.0.0/8 1s # scans"};
	char text[WEIR_ORDER_TEXT_BYTES];
	struct weir_timed_order order;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		order = order_of(lines[i]);
		assert_string_equal(weir_order_format(&order, NULL, text), lines[i]);
	}
	order.lasts_ns = 1;
	assert_string_equal(weir_order_format(&order, NULL, text), "10.0.0.0/8 1s # scans");
}

CLAIM(a_saved_order_ends_when_it_would_have)
{
	const uint64_t saved_ns = WALL_NS - HOUR;
	struct weir_timed_order order = order_of("192.0.2.7 2h hits=3 # scans"), restored;
	char text[WEIR_ORDER_TEXT_BYTES];

	weir_order_format(&order, &saved_ns, text);
	assert_string_equal(text, "192.0.2.7 2h until=2025-11-28T01:00:00Z hits=3 # scans");
	restored = order_of(text);
	assert_int_equal(restored.lasts_ns, HOUR);
	assert_int_equal(restored.hits, 3);
	order.lasts_ns = HOUR;
	assert_int_equal(parse(weir_order_format(&order, &saved_ns, text), &restored), WEIR_ORDER_OVER);
	assert_int_equal(parse("192.0.2.7 until=1969-01-01T00:00:00Z", &restored), WEIR_ORDER_OVER);
}

/* A machine without a clock of its own boots in another year. */
CLAIM(a_wrong_clock_makes_no_order_longer)
{
	assert_int_equal(order_of("192.0.2.7 2h until=2035-01-01T00:00:00Z").lasts_ns, 2 * HOUR);
	assert_int_equal(order_of("192.0.2.7 until=2025-11-28T00:00:05Z").lasts_ns, 5 * SECOND);
}

CLAIM(the_longest_prefix_around_is_found)
{
	const struct weir_timed_order orders[] = {order_of("10.0.0.0/8 1h"), order_of("10.1.2.0/23 1h"),
						  order_of("10.1.2.3 1h"), order_of("10.2.0.0/16 1h"),
						  order_of("::/0 1h")};
	const struct weir_prefix inside = order_of("10.1.3.9").prefix, itself = order_of("10.1.2.3").prefix,
				 outside = order_of("11.0.0.1").prefix, ipv6 = order_of("a01::").prefix;

	assert_ptr_equal(weir_order_around(orders, ARRAY_SIZE(orders), &inside), &orders[1]);
	assert_ptr_equal(weir_order_around(orders, ARRAY_SIZE(orders), &itself), &orders[1]);
	assert_null(weir_order_around(orders, ARRAY_SIZE(orders), &outside));
	assert_ptr_equal(weir_order_around(orders, ARRAY_SIZE(orders), &ipv6), &orders[4]);
}

/* ---- sets ---- */

#define LINES_MAX 8

static size_t read_set(struct weir_timed_order *orders, const char *const *lines)
{
	size_t count = 0;

	for (; lines[count]; count++)
		orders[count] = order_of(lines[count]);
	return count;
}

/* The changes, as lines that begin with what becomes of the source. */
static void expect_scoped(const char *const *now_lines, const char *const *feed_lines, struct weir_order_scope scope,
			  bool keeps_all, const char *const *expected)
{
	struct weir_timed_order now[LINES_MAX], feed[LINES_MAX];
	size_t now_count = read_set(now, now_lines), feed_count = read_set(feed, feed_lines), i = 0;
	struct weir_order_changes changes;
	char text[WEIR_ORDER_TEXT_BYTES];

	assert_int_equal(weir_orders_sync(now, now_count, feed, feed_count, &scope, keeps_all, &changes), 0);
	for (; i < changes.count; i++) {
		assert_non_null(expected[i]);
		assert_string_equal(weir_order_format(&changes.orders[i], NULL, text), expected[i]);
	}
	assert_null(expected[i]);
	assert_int_equal(changes.added + changes.renewed + changes.removed, changes.count);
	for (i = 0; i < changes.count; i++)
		assert_int_equal(changes.orders[i].lasts_ns == 0, i < changes.removed);
	free(changes.orders);
}
static void expect_changes(const char *const *now_lines, const char *const *feed_lines, const char *reason,
			   bool keeps_all, const char *const *expected)
{
	expect_scoped(now_lines, feed_lines, (struct weir_order_scope){.reason = reason}, keeps_all, expected);
}
#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_LINES ((const char *const[]){NULL})

CLAIM(sync_adds_renews_and_removes)
{
	expect_changes(LINES("10.0.0.1 1h", "10.0.0.2 1h", "10.0.0.3 1h"),
		       LINES("10.0.0.4 2h", "10.0.0.2 2h", "10.0.0.2 1h", "10.0.0.0 2h"), NULL, false,
		       LINES("10.0.0.1 0", "10.0.0.3 0", "10.0.0.0 2h", "10.0.0.2 2h", "10.0.0.4 2h"));
	expect_changes(NO_LINES, LINES("10.0.0.1 1h"), NULL, false, LINES("10.0.0.1 1h"));
	expect_changes(LINES("10.0.0.1 1h", "10.0.0.0/24 1h"), NO_LINES, NULL, false,
		       LINES("10.0.0.1 0", "10.0.0.0/24 0"));
	expect_changes(NO_LINES, NO_LINES, NULL, false, NO_LINES);
}

CLAIM(sync_removes_nothing_where_it_keeps_all)
{
	expect_changes(LINES("10.0.0.1 1h"), LINES("10.0.0.2 1h"), NULL, true, LINES("10.0.0.2 1h"));
}

CLAIM(sync_with_a_reason_is_about_orders_that_have_it)
{
	/* .1: the feed's, and no more in it; .2: another's, not in it; .3: another's for longer; .4: for less long */
	expect_changes(LINES("10.0.0.1 1h # feed", "10.0.0.2 1h # mine", "10.0.0.3 3h # mine", "10.0.0.4 1h # mine",
			     "10.0.0.5 3h # feed"),
		       LINES("10.0.0.3 2h", "10.0.0.4 2h # of the line", "10.0.0.5 2h", "10.0.0.6 2h"), "feed", false,
		       LINES("10.0.0.1 0", "10.0.0.4 2h # feed", "10.0.0.5 2h # feed", "10.0.0.6 2h # feed"));
}

CLAIM(sync_of_a_program_is_about_its_orders)
{
	expect_scoped(LINES("10.0.0.1 1h by=feed", "10.0.0.2 1h", "10.0.0.3 3h by=other", "10.0.0.4 1h"),
		      LINES("10.0.0.3 2h", "10.0.0.4 2h", "10.0.0.5 2h by=other"),
		      (struct weir_order_scope){.by = "feed"}, false,
		      LINES("10.0.0.1 0", "10.0.0.4 2h by=feed", "10.0.0.5 2h by=feed"));
	expect_scoped(LINES("10.0.0.1 1h by=feed # a", "10.0.0.2 1h by=feed # b"), LINES("10.0.0.3 2h"),
		      (struct weir_order_scope){.by = "feed", .reason = "a"}, false,
		      LINES("10.0.0.1 0", "10.0.0.3 2h by=feed # a"));
}

RUN_CLAIMS(NULL, NULL)
