// SPDX-License-Identifier: GPL-2.0-only
/* Durations as commands take them: "90s", "1h30m". */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rules/values.h"

#define DURATION_NS_MAX (3650ull * 86400 * WEIR_NSEC_PER_SEC) /* ten years: chosen, not derived */
#define DIGITS_MAX 12

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{"d", 86400 * WEIR_NSEC_PER_SEC},
	{"h", 3600 * WEIR_NSEC_PER_SEC},
	{"m", 60 * WEIR_NSEC_PER_SEC},
	{"s", WEIR_NSEC_PER_SEC},
	{"ms", 1000000},
};

static int refuse(const char *text, struct weir_refusal *reterr_refusal)
{
	snprintf(reterr_refusal->message, sizeof(reterr_refusal->message), "'%.*s' is no duration", WEIR_SHOWN(text));
	snprintf(reterr_refusal->hint, sizeof(reterr_refusal->hint),
		 "write 90s, 10m, 1h30m or 7d: 1ms to 3650d, the longer units first");
	return -EINVAL;
}

/* The unit that begins here, of those from `first` on; ARRAY_SIZE(units): none. "m" is no "ms". */
static size_t find_unit(const char *at, size_t bytes, size_t first)
{
	while (first < ARRAY_SIZE(units) &&
	       (strlen(units[first].name) != bytes || memcmp(at, units[first].name, bytes)))
		first++;
	return first;
}

int weir_parse_duration(const char *text, uint64_t *ret_ns, struct weir_refusal *reterr_refusal)
{
	uint64_t ns = 0, number;
	const char *at = text;
	size_t unit = 0;

	while (*at) {
		size_t digits = strspn(at, "0123456789"), letters;

		if (!digits || digits > DIGITS_MAX)
			return refuse(text, reterr_refusal);
		number = strtoull(at, NULL, 10);
		at += digits;
		for (letters = 0; isalpha((unsigned char)at[letters]);)
			letters++;
		unit = find_unit(at, letters, unit);
		if (unit == ARRAY_SIZE(units) || number > DURATION_NS_MAX / units[unit].ns)
			return refuse(text, reterr_refusal);
		ns += number * units[unit++].ns;
		at += letters;
	}
	if (!ns || ns > DURATION_NS_MAX)
		return refuse(text, reterr_refusal);
	*ret_ns = ns;
	return 0;
}
