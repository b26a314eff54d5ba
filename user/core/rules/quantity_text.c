// SPDX-License-Identifier: GPL-2.0-only
/* Quantities as text that quantity.c reads back exactly. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/quantity.h"
#include "rules/ruleset.h"

void weir_format_micro(uint64_t micro, char *text, size_t text_bytes)
{
	unsigned long long whole = micro / WEIR_MICRO, rest = micro % WEIR_MICRO;
	char decimals[8] = "";

	if (rest) {
		snprintf(decimals, sizeof(decimals), ".%06llu", rest % WEIR_MICRO);
		for (size_t end = strlen(decimals); decimals[end - 1] == '0'; end--)
			decimals[end - 1] = '\0';
	}
	snprintf(text, text_bytes, "%llu%s", whole, decimals);
}

/* Use the largest prefix that needs at most six decimals and leaves a digit before the point. */
void weir_format_amount(uint64_t micro, bool counts_bytes, char *text, size_t text_bytes)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T"};
	char number[32];
	size_t prefix = 0;

	for (; counts_bytes && prefix + 1 < ARRAY_SIZE(prefixes) && micro >= 1000 * WEIR_MICRO && micro % 1000 == 0;
	     prefix++)
		micro /= 1000;
	weir_format_micro(micro, number, sizeof(number));
	snprintf(text, text_bytes, "%s%s%s", number, prefixes[prefix], counts_bytes ? "B" : "");
}

/* The text after the '/' of a rate: "s", "min", "100ms". */
static void format_rate_time(uint64_t interval_ns, char text[WEIR_DURATION_TEXT_BYTES])
{
	char duration[WEIR_DURATION_TEXT_BYTES];

	weir_format_duration(interval_ns, duration);
	if (!strcmp(duration, "1m"))
		snprintf(text, WEIR_DURATION_TEXT_BYTES, "min");
	else
		snprintf(text, WEIR_DURATION_TEXT_BYTES, "%s",
			 duration[0] == '1' && strlen(duration) == 2 ? duration + 1 : duration);
}

const char *weir_format_rate(uint64_t micro, uint64_t interval_ns, bool counts_bytes,
			     char ret_text[WEIR_RATE_TEXT_BYTES])
{
	char amount[48], time[WEIR_DURATION_TEXT_BYTES];

	weir_format_amount(micro, counts_bytes, amount, sizeof(amount));
	format_rate_time(interval_ns, time);
	snprintf(ret_text, WEIR_RATE_TEXT_BYTES, "%s/%s", amount, time);
	return ret_text;
}
