// SPDX-License-Identifier: GPL-2.0-only
/* What a store may send before anything is made of it. Every claim holds however the bytes are cut. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "shares/reply_scan.h"

/* Whole, and byte by byte. */
static const char *scan(const char *data, size_t bytes)
{
	struct weir_reply_scan at_once = {}, one_by_one = {};
	const char *why = weir_reply_scan(&at_once, data, bytes), *why_one = NULL;

	for (size_t i = 0; !why_one && i < bytes; i++)
		why_one = weir_reply_scan(&one_by_one, data + i, 1);
	assert_true(why == why_one);
	if (!why) {
		assert_int_equal(at_once.depth, one_by_one.depth);
		assert_int_equal(at_once.bytes, one_by_one.bytes);
		assert_int_equal(at_once.elements, one_by_one.elements);
	}
	return why;
}

static void expect_taken(const char *text)
{
	assert_null(scan(text, strlen(text)));
}

static void expect_refused(const char *text)
{
	assert_non_null(scan(text, strlen(text)));
}

CLAIM(replies_of_a_ledger_pass)
{
	expect_taken("+OK\r\n");
	expect_taken("-NOSCRIPT No matching script.\r\n");
	expect_taken("$40\r\n0123456789012345678901234567890123456789\r\n");
	expect_taken("*2\r\n*7\r\n$3\r\na:1\r\n:0\r\n:-1\r\n:3000\r\n:1000000\r\n:1\r\n:3000\r\n"
		     "*8\r\n$0\r\n\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n*2\r\n$1\r\nf\r\n$1\r\nk\r\n");
	expect_taken("$-1\r\n*-1\r\n*0\r\n:9223372036854775807\r\n:-9223372036854775808\r\n");
	expect_taken("$4\r\n\r\n\r\n\r\n"); /* a text may hold what ends a line */
}

/* The thirteen bytes, and what is like them. */
CLAIM(lists_longer_than_weir_asks_for_are_refused)
{
	expect_refused("*2147483647\r\n");
	expect_refused("*131073\r\n");
	expect_taken("*131072\r\n");
	expect_refused("*2\r\n*131071\r\n");
	expect_refused("*2\r\n*131070\r\n*1\r\n");
	expect_refused("*9223372036854775807\r\n");
	expect_refused("*1\r\n*1\r\n*1\r\n*1\r\n");
}

/* What has ended counts no more. */
CLAIM(elements_are_counted_in_one_reply)
{
	struct weir_reply_scan connection = {};

	for (int i = 0; i < 300; i++) {
		assert_null(weir_reply_scan(&connection, "*1000\r\n", 7));
		for (int j = 0; j < 1000; j++)
			assert_null(weir_reply_scan(&connection, ":1\r\n", 4));
	}
	assert_int_equal(connection.bytes, 0);
}

CLAIM(what_is_too_long_is_refused)
{
	static char line[WEIR_REPLY_LINE_BYTES_MAX + 4] = "+";
	static const char lines[] = "$1000000\r\n";
	static char text[1000002];
	struct weir_reply_scan connection = {};

	memset(line + 1, 'a', WEIR_REPLY_LINE_BYTES_MAX + 1);
	assert_null(scan(line, 1 + WEIR_REPLY_LINE_BYTES_MAX));
	assert_non_null(scan(line, 2 + WEIR_REPLY_LINE_BYTES_MAX));
	expect_refused("$4194305\r\n");
	expect_refused("$9223372036854775807\r\n");

	memcpy(text + sizeof(text) - 2, "\r\n", 2);
	assert_null(weir_reply_scan(&connection, "*5\r\n", 4));
	for (int i = 0; i < 4; i++) {
		assert_null(weir_reply_scan(&connection, lines, strlen(lines)));
		assert_null(weir_reply_scan(&connection, text, sizeof(text)));
	}
	assert_non_null(weir_reply_scan(&connection, lines, strlen(lines)));
}

CLAIM(what_no_redis_says_is_refused)
{
	static const char *const texts[] = {
		"HTTP/1.1 400 Bad Request\r\n",
		"\r\n",
		":\r\n",
		":abc\r\n",
		":1 \r\n",
		":01\r\n",
		":-0\r\n",
		":+1\r\n",
		":9223372036854775808\r\n",
		":-9223372036854775809\r\n",
		":000000000000000000000000000000000\r\n",
		"$-2\r\n",
		"*-2\r\n",
		"*\r\n",
		"$\r\n",
		"$2\r\nabc\r\n",
		"$1\r\na\n\r",
		"+a\n",
		"+a\rb\r\n",
		"%1\r\n",
		">1\r\n",
		",1.5\r\n",
		"(1\r\n",
		"_\r\n",
		"#t\r\n",
		"|1\r\n",
		"=4\r\ntxt:\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		expect_refused(texts[i]);
	assert_non_null(scan("\0", 1));
	assert_non_null(scan(":1\0a\r\n", 6));
}

RUN_CLAIMS(NULL, NULL)
