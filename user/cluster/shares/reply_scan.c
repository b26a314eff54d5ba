// SPDX-License-Identifier: GPL-2.0-only
#include "shares/reply_scan.h"

#include <stdbool.h>
#include <string.h>

static const char not_redis[] = "its answer is not a Redis reply";
static const char too_long[] = "its reply is too long";

/* An element is complete. If it was the last of its list, the list is complete, too. */
static void end_element(struct weir_reply_scan *scan)
{
	while (scan->depth > 0 && --scan->left[scan->depth - 1] == 0)
		scan->depth--;
	if (scan->depth == 0)
		scan->bytes = scan->elements = 0;
}

/* A number in decimal digits, as Redis writes it. False: it is not a number, or does not fit into an int64_t. */
static bool read_number(const char *digits, int64_t *ret_number)
{
	const bool is_negative = *digits == '-';
	const char *at = digits + is_negative;
	int64_t number = 0;

	if (*at < '0' || *at > '9' || (*at == '0' && (at[1] || is_negative)))
		return false;
	for (; *at; at++) {
		if (*at < '0' || *at > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_sub_overflow(number, *at - '0', &number))
			return false;
	}
	if (!is_negative && number == INT64_MIN)
		return false;
	*ret_number = is_negative ? number : -number;
	return true;
}

static const char *begin_list(struct weir_reply_scan *scan, int64_t elements)
{
	if (elements > WEIR_REPLY_ELEMENTS_MAX - scan->elements || scan->depth == WEIR_REPLY_DEPTH_MAX)
		return too_long;
	if (elements <= 0) {
		end_element(scan);
		return NULL;
	}
	scan->elements += (uint32_t)elements;
	scan->left[scan->depth++] = (uint32_t)elements;
	return NULL;
}

static const char *begin_text(struct weir_reply_scan *scan, int64_t bytes)
{
	if (bytes > WEIR_REPLY_BYTES_MAX - scan->bytes)
		return too_long;
	if (bytes < 0)
		end_element(scan);
	else
		scan->text_left = (uint32_t)bytes + 2;
	return NULL;
}

static const char *end_line(struct weir_reply_scan *scan)
{
	const bool is_number = scan->sign == ':' || scan->sign == '$' || scan->sign == '*';
	int64_t number = 0;

	scan->digits[scan->line_bytes < sizeof(scan->digits) ? scan->line_bytes : 0] = '\0';
	scan->line_bytes = 0;
	if (is_number && !read_number(scan->digits, &number))
		return not_redis;
	if (scan->sign != ':' && number < -1) /* -1: no text or list */
		return not_redis;
	if (scan->sign == '*')
		return begin_list(scan, number);
	if (scan->sign == '$')
		return begin_text(scan, number);
	end_element(scan);
	return NULL;
}

static const char *scan_line(struct weir_reply_scan *scan, char byte)
{
	if (++scan->bytes > WEIR_REPLY_BYTES_MAX)
		return too_long;
	if (!scan->sign) {
		if (!byte || !strchr("+-:$*", byte))
			return not_redis;
		scan->sign = byte;
		return NULL;
	}
	if (scan->previous == '\r') {
		const char *why = byte == '\n' ? end_line(scan) : not_redis;

		scan->sign = scan->previous = '\0';
		return why;
	}
	if (byte == '\n' || byte == '\0') /* the digits are handled as a string, in which a zero would hide the rest */
		return not_redis;
	scan->previous = byte;
	if (byte == '\r')
		return NULL;
	if (scan->line_bytes == WEIR_REPLY_LINE_BYTES_MAX)
		return too_long;
	if (scan->line_bytes < sizeof(scan->digits))
		scan->digits[scan->line_bytes] = byte;
	scan->line_bytes++;
	return NULL;
}

/* A text may contain any bytes. Returns how many were skipped, or 0: the text does not end correctly. */
static size_t scan_text(struct weir_reply_scan *scan, const char *data, size_t bytes)
{
	size_t passed = bytes < scan->text_left ? bytes : scan->text_left;

	for (size_t i = 0; i < passed; i++)
		if (scan->text_left - i <= 2 && data[i] != (scan->text_left - i == 2 ? '\r' : '\n'))
			return 0;
	scan->text_left -= (uint32_t)passed;
	scan->bytes += (uint32_t)passed;
	if (!scan->text_left)
		end_element(scan);
	return passed;
}

const char *weir_reply_scan(struct weir_reply_scan *scan, const char *data, size_t bytes)
{
	const char *why = NULL;

	for (size_t at = 0, passed; !why && at < bytes; at += passed) {
		passed = 1;
		if (scan->text_left)
			passed = scan_text(scan, data + at, bytes - at);
		else
			why = scan_line(scan, data[at]);
		if (!passed)
			why = not_redis;
	}
	return why;
}
