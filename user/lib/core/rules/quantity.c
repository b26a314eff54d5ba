// SPDX-License-Identifier: GPL-2.0-only
#include "rules/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "rules/ruleset.h"

/* ---- amounts: a number, a prefix, a unit ---- */

/* SI powers of ten, and IEC's of two, which end in 'i'. */
static const struct {
	const char *name;
	uint64_t factor;
} prefixes[] = {
	{"Ki", 1ull << 10}, {"Mi", 1ull << 20},	  {"Gi", 1ull << 30},
	{"Ti", 1ull << 40}, {"k", 1000},	  {"M", 1000000},
	{"G", 1000000000},  {"T", 1000000000000}, {"", 1},
};

static const struct {
	const char *name;
	bool is_bytes;
	unsigned int divisor;
} units[] = {{"", false, 1}, {"B", true, 1}, {"bit", true, 8}};

struct amount {
	unsigned __int128 micro; /* below 2^125: 20 digits, six decimals and a prefix of 2^40 */
	bool is_bytes;		 /* the text has a unit of bytes */
};

/* A number of 64 bits has no more digits. */
#define DIGITS_MAX 20
#define TOO_MUCH                                                                                                       \
	((unsigned __int128)1 << 126) /* a multiple of every divisor, and even an eighth of it would be too large */
#define DECIMALS_MAX 6

/* The length of the number at the start of the text: "12.5". 0: none. */
static size_t number_bytes(const char *text, size_t bytes)
{
	size_t whole = strspn(text, "0123456789"), decimals;

	if (!whole || whole >= bytes || text[whole] != '.')
		return whole < bytes ? whole : bytes;
	decimals = strspn(text + whole + 1, "0123456789");
	return decimals ? whole + 1 + decimals : 0;
}

/* Convert to millionths; the text has at most DIGITS_MAX digits and DECIMALS_MAX decimals. */
static unsigned __int128 read_micro(const char *text, size_t bytes)
{
	unsigned __int128 micro = 0;
	size_t decimals = 0;
	bool is_decimal = false;

	for (size_t i = 0; i < bytes; i++) {
		is_decimal |= text[i] == '.';
		if (text[i] == '.')
			continue;
		micro = micro * 10 + (text[i] - '0');
		decimals += is_decimal;
	}
	for (; decimals < DECIMALS_MAX; decimals++)
		micro *= 10;
	return micro;
}

/* Is the text after the number a prefix and a unit? */
static bool read_suffix(const char *suffix, size_t bytes, uint64_t *ret_factor, unsigned int *ret_divisor,
			bool *ret_is_bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t length = strlen(prefixes[i].name);

		if (length > bytes || memcmp(suffix, prefixes[i].name, length))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(units); j++) {
			if (strlen(units[j].name) != bytes - length ||
			    memcmp(suffix + length, units[j].name, bytes - length))
				continue;
			*ret_factor = prefixes[i].factor;
			*ret_divisor = units[j].divisor;
			*ret_is_bytes = units[j].is_bytes;
			return true;
		}
	}
	return false;
}

static bool is_amount(const char *text, size_t bytes)
{
	size_t number = number_bytes(text, bytes);
	uint64_t factor;
	unsigned int divisor;
	bool is_bytes;

	return number && read_suffix(text + number, bytes - number, &factor, &divisor, &is_bytes);
}

/* ---- guessing the intended text ---- */

/* Words for our units that other tools use, in any case. */
static const struct {
	const char *word;
	const char *units[2]; /* the units that it may mean */
} strange_units[] = {
	{"", {"", NULL}},	 {"b", {"bit", "B"}},	{"bps", {"bit", "B"}},	{"bit", {"bit", NULL}},
	{"bits", {"bit", NULL}}, {"byte", {"B", NULL}}, {"bytes", {"B", NULL}}, {"p", {"", NULL}},
	{"pps", {"", NULL}},	 {"pkt", {"", NULL}},	{"pkts", {"", NULL}},	{"packet", {"", NULL}},
	{"packets", {"", NULL}}, {"qps", {"", NULL}},	{"rps", {"", NULL}},
};

/* Up to four possible meanings of a suffix, each a prefix and a unit. */
struct readings {
	char words[4][8];
	size_t count;
};

static void add_reading(struct readings *readings, const char *prefix, const char *unit)
{
	if (readings->count < ARRAY_SIZE(readings->words))
		snprintf(readings->words[readings->count++], sizeof(readings->words[0]), "%s%s", prefix, unit);
}

/* The possible meanings of a foreign unit: if there is only one, the second is NULL. NULL: an unknown unit. */
static const char *const *find_units(const char *unit, size_t bytes)
{
	static const char *const only_bytes[] = {"B", NULL};

	/* 'B' alone always means bytes; "bps" means bits to most people, and bytes to tc. */
	if (bytes == 1 && unit[0] == 'B')
		return only_bytes;
	for (size_t i = 0; i < ARRAY_SIZE(strange_units); i++)
		if (strlen(strange_units[i].word) == bytes && !strncasecmp(strange_units[i].word, unit, bytes))
			return strange_units[i].units;
	return NULL;
}

/* Find the possible meanings of "K", "mb" or "Mbps". */
static void find_readings(const char *suffix, size_t bytes, struct readings *readings)
{
	const char *letter = bytes ? strchr("kmgt", tolower((unsigned char)suffix[0])) : NULL;
	bool is_binary = letter && bytes > 1 && tolower((unsigned char)suffix[1]) == 'i';
	size_t prefix_bytes = !!letter + is_binary;
	const char *const *meant = find_units(suffix + prefix_bytes, bytes - prefix_bytes);
	char prefix[3] = "";

	if (letter) {
		/* The correct spelling of a prefix, from a letter in any case: "k", "M", "Ki". */
		prefix[0] = *letter == 'k' && !is_binary ? 'k' : toupper((unsigned char)*letter);
		prefix[1] = is_binary ? 'i' : '\0';
		prefix[2] = '\0';
	}
	for (size_t i = 0; meant && i < ARRAY_SIZE(strange_units[0].units) && meant[i]; i++) {
		add_reading(readings, prefix, meant[i]);
		if (suffix[0] == 'K' && !is_binary)
			add_reading(readings, "Ki", meant[i]);
	}
}

/* Advise "write 20k or 20Ki": the possible meanings of a number with a foreign suffix, each followed by `tail`. */
static bool advise_readings(const char *text, size_t bytes, const char *tail, struct weir_refusal *refusal)
{
	size_t number = number_bytes(text, bytes), used = 0;
	struct readings readings = {};

	if (!number || number > 40)
		return false;
	find_readings(text + number, bytes - number, &readings);
	for (size_t i = 0; i < readings.count && used < sizeof(refusal->hint); i++)
		used += snprintf(refusal->hint + used, sizeof(refusal->hint) - used, "%s%.*s%s%s",
				 i == 0			  ? "write "
				 : i + 1 < readings.count ? ", "
							  : " or ",
				 (int)number, text, readings.words[i], tail);
	return readings.count;
}

/* Handle "1,5k", "1 000" and "1_000": remove the separators, or turn a single comma into a point. */
static bool advise_without_marks(const char *text, size_t bytes, const char *tail, struct weir_refusal *refusal)
{
	char plain[48], pointed[48];
	size_t kept = 0, commas = 0, marks = 0;

	if (bytes >= sizeof(plain) || !bytes || !isdigit((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < bytes; i++) {
		commas += text[i] == ',';
		marks += strchr(" _',", text[i]) != NULL;
		pointed[i] = text[i] == ',' ? '.' : text[i];
		if (!strchr(" _',", text[i]))
			plain[kept++] = text[i];
	}
	plain[kept] = pointed[bytes] = '\0';
	if (!marks)
		return false;
	if (!is_amount(plain, kept)) /* for example "20 packets" */
		return advise_readings(plain, kept, tail, refusal);
	if (commas == 1 && marks == 1)
		weir_advise(refusal, "write %s%s if the comma is a decimal point, %s%s if it separates thousands",
			    pointed, tail, plain, tail);
	else
		weir_advise(refusal, "write %s%s, without spaces or separators", plain, tail);
	return true;
}

/* `what` is the subject followed by a blank, or "". */
static int read_amount(const char *what, const char *text, size_t bytes, const char *tail, const char *form,
		       struct amount *ret_amount, struct weir_refusal *refusal)
{
	size_t number = number_bytes(text, bytes), whole = strspn(text, "0123456789");
	uint64_t factor;
	unsigned int divisor;
	unsigned __int128 micro;
	bool is_bytes;

	if (text[0] == '-' && number_bytes(text + 1, bytes - 1)) {
		weir_refuse(refusal, "%s'%.*s' is negative", what, WEIR_SHOWN(text));
		return weir_advise(refusal, "write 0%s to block everything", tail);
	}
	if (!number || !read_suffix(text + number, bytes - number, &factor, &divisor, &is_bytes)) {
		weir_refuse(refusal, "%s'%.*s' is not a number%s", what, WEIR_SHOWN(text), tail[0] ? " per time" : "");
		if (advise_without_marks(text, bytes, tail, refusal) || advise_readings(text, bytes, tail, refusal))
			return -EINVAL;
		return weir_advise(refusal, "%s", form);
	}
	if (whole > 1 && text[0] == '0') {
		weir_refuse(refusal, "%s'%.*s' begins with a zero", what, WEIR_SHOWN(text));
		return weir_advise(refusal, "numbers are decimal: write %s",
				   text + strspn(text, "0") - (strspn(text, "0") == whole));
	}
	if (number > whole + 1 + DECIMALS_MAX) {
		weir_refuse(refusal, "%s'%.*s' has more than six decimals", what, WEIR_SHOWN(text));
		return weir_advise(refusal, "%s", form);
	}
	micro = whole > DIGITS_MAX ? TOO_MUCH : read_micro(text, number) * factor;
	if (micro % divisor) {
		weir_refuse(refusal, "%s'%.*s' has more than six decimals", what, WEIR_SHOWN(text));
		return weir_advise(refusal, "a bit is 0.125 bytes: write whole bits");
	}
	*ret_amount = (struct amount){.micro = micro / divisor, .is_bytes = is_bytes};
	return 0;
}

static int refuse_range(const char *what, const char *text, const char *tail, struct weir_refusal *refusal)
{
	weir_refuse(refusal, "%s'%.*s' is out of range", what, WEIR_SHOWN(text));
	return weir_advise(refusal, "write 0%s to %llu%s", tail, WEIR_THRESHOLD_UNITS_MAX, tail);
}

int weir_parse_threshold(const char *text, bool counts_bytes, uint64_t *ret_micro, struct weir_refusal *reterr_refusal)
{
	static const char *const form =
		"write digits, with at most six decimals, and k, M, G, T, or Ki, Mi, Gi, Ti: 20000, 20k or 0.5";
	struct amount amount = {};
	int err = read_amount("threshold ", text, strlen(text), "", form, &amount, reterr_refusal);

	if (err)
		return err;
	if (amount.is_bytes && !counts_bytes) {
		weir_refuse(reterr_refusal, "threshold '%.*s' is in bytes, but the rule counts packets",
			    WEIR_SHOWN(text));
		return weir_advise(reterr_refusal,
				   "add 'unit: bytes', or write 'rate: %.*s/s' instead of the threshold",
				   WEIR_SHOWN(text));
	}
	if (amount.micro > (unsigned __int128)WEIR_THRESHOLD_UNITS_MAX * WEIR_MICRO)
		return refuse_range("threshold ", text, "", reterr_refusal);
	*ret_micro = amount.micro;
	return 0;
}

int weir_parse_count(const char *text, bool counts_bytes, uint64_t low, uint64_t high, uint64_t *ret_count,
		     struct weir_refusal *reterr_refusal)
{
	struct weir_refusal refusal;
	struct amount amount = {};
	char form[96];

	/* Mistakes in plain numbers have the same messages as everywhere. */
	if (!text[strspn(text, "-0123456789")])
		return weir_parse_number(text, low, high, ret_count, reterr_refusal);
	snprintf(form, sizeof(form), "write %llu to %llu in digits", (unsigned long long)low, (unsigned long long)high);
	if (read_amount("", text, strlen(text), "", form, &amount, &refusal)) {
		weir_refuse(reterr_refusal, "'%.*s' is not a whole number", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "%s", refusal.hint);
	}
	if (amount.micro < (unsigned __int128)low * WEIR_MICRO || amount.micro > (unsigned __int128)high * WEIR_MICRO) {
		weir_refuse(reterr_refusal, "'%.*s' is out of range", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write %llu to %llu", (unsigned long long)low,
				   (unsigned long long)high);
	}
	if (amount.micro % WEIR_MICRO || (amount.is_bytes && !counts_bytes)) {
		weir_refuse(reterr_refusal, "'%.*s' is not a whole number", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "%s", form);
	}
	*ret_count = amount.micro / WEIR_MICRO;
	return 0;
}

/* ---- durations ---- */

#define DURATION_DIGITS_MAX 12
#define DURATION_NS_MAX (3650ull * 86400 * WEIR_NSEC_PER_SEC) /* ten years: chosen, not derived */

/* Longer names come first; the first name of a unit is the one that is printed. */
static const struct {
	const char *names[3];
	uint64_t ns;
} times[] = {
	{{"d", "day"}, 86400 * WEIR_NSEC_PER_SEC},
	{{"h", "hour"}, 3600 * WEIR_NSEC_PER_SEC},
	{{"m", "min", "minute"}, 60 * WEIR_NSEC_PER_SEC},
	{{"s", "sec", "second"}, WEIR_NSEC_PER_SEC},
	{{"ms"}, 1000000},
};

/* The unit with this name, starting the search at `first`; ARRAY_SIZE(times): none. */
static size_t find_time(const char *at, size_t bytes, size_t first)
{
	for (; first < ARRAY_SIZE(times); first++)
		for (size_t i = 0; i < ARRAY_SIZE(times[0].names) && times[first].names[i]; i++)
			if (strlen(times[first].names[i]) == bytes && !memcmp(at, times[first].names[i], bytes))
				return first;
	return first;
}

/* Parse any duration, including 0. A duration that is far too long becomes more than DURATION_NS_MAX. Returns false if
 * the text is not a duration.
 */
static bool read_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t ns = 0, number;
	const char *at = text;
	size_t unit = 0;

	while (*at) {
		size_t digits = strspn(at, "0123456789"), letters = 0;

		if (!digits)
			return false;
		number = strtoull(at, NULL, 10);
		at += digits;
		while (isalpha((unsigned char)at[letters]))
			letters++;
		unit = find_time(at, letters, unit);
		if (unit == ARRAY_SIZE(times))
			return false;
		ns += number > DURATION_NS_MAX / times[unit].ns ? 2 * DURATION_NS_MAX : number * times[unit].ns;
		unit++;
		at += letters;
	}
	*ret_ns = ns;
	return at != text;
}

int weir_parse_duration(const char *text, uint64_t *ret_ns, struct weir_refusal *reterr_refusal)
{
	uint64_t ns;

	if (!read_duration(text, &ns)) {
		weir_refuse(reterr_refusal, "'%.*s' is not a duration", WEIR_SHOWN(text));
		if (text[0] && !text[strspn(text, "0123456789")])
			return weir_advise(reterr_refusal, "add a unit: %ss, %sm or %sh", text, text, text);
		return weir_advise(reterr_refusal, "write 90s, 10m, 1h30m or 7d: 1ms to 3650d, the longer units first");
	}
	if (!ns || ns > DURATION_NS_MAX) {
		weir_refuse(reterr_refusal, "'%.*s' is out of range", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write 1ms to 3650d, such as 90s, 10m, 1h30m or 7d");
	}
	*ret_ns = ns;
	return 0;
}

const char *weir_format_duration(uint64_t ns, char ret_text[WEIR_DURATION_TEXT_BYTES])
{
	size_t used = 0;

	snprintf(ret_text, WEIR_DURATION_TEXT_BYTES, "0");
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (ns / times[i].ns)
			used += snprintf(ret_text + used, WEIR_DURATION_TEXT_BYTES - used, "%llu%s",
					 (unsigned long long)(ns / times[i].ns), times[i].names[0]);
		ns %= times[i].ns;
	}
	return ret_text;
}

int weir_parse_time(const char *text, uint64_t unit_ns, uint64_t low, uint64_t high, uint64_t *ret_number,
		    struct weir_refusal *reterr_refusal)
{
	char lowest[WEIR_DURATION_TEXT_BYTES], highest[WEIR_DURATION_TEXT_BYTES];
	uint64_t ns = 0;

	weir_format_duration(low * unit_ns, lowest);
	weir_format_duration(high * unit_ns, highest);
	if (strcmp(text, "0") && !read_duration(text, &ns)) {
		weir_refuse(reterr_refusal, "'%.*s' is not a duration", WEIR_SHOWN(text));
		if (text[0] && !text[strspn(text, "0123456789")])
			return weir_advise(reterr_refusal, "add a unit: %ss, %sms or %sm", text, text, text);
		return weir_advise(reterr_refusal, "write 500ms, 90s, 10m, 1h30m or 7d: %s to %s", lowest, highest);
	}
	if (ns % unit_ns || ns / unit_ns < low || ns / unit_ns > high) {
		weir_refuse(reterr_refusal, "'%.*s' is out of range", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write %s to %s%s", lowest, highest,
				   ns % unit_ns ? ", in whole seconds" : "");
	}
	*ret_number = ns / unit_ns;
	return 0;
}

/* ---- rates ---- */

static const char *const rate_form = "write 20/s, 6/min, 5k/10s, 10MB/s or 100Mbit/s";

/* Parse an interval; "s" means "1s". */
static bool read_interval(const char *text, uint64_t *ret_ns)
{
	char once[16];

	if (!isalpha((unsigned char)text[0]))
		return read_duration(text, ret_ns) && *ret_ns;
	return snprintf(once, sizeof(once), "1%s", text) < (int)sizeof(once) && read_duration(once, ret_ns);
}

/* Parse "0.5s" as 500 ms; returns false if it is not such a duration. */
static bool read_decimal_duration(const char *text, uint64_t *ret_ns)
{
	const size_t whole = strspn(text, "0123456789"), number = number_bytes(text, strlen(text));
	const size_t unit = find_time(text + number, strlen(text + number), 0);
	const uint64_t most = DURATION_NS_MAX;
	unsigned __int128 ns;

	if (number <= whole || whole > DURATION_DIGITS_MAX || number > whole + 1 + DECIMALS_MAX ||
	    unit == ARRAY_SIZE(times))
		return false;
	ns = read_micro(text, number) * times[unit].ns / WEIR_MICRO;
	*ret_ns = ns;
	return ns && ns <= most && ns % 1000000 == 0;
}

/* For "0.5s", "S", "1" or "week": an interval in a form that is not accepted. Advise what to write. */
static bool advise_interval(const char *amount, int amount_bytes, const char *interval, struct weir_refusal *refusal)
{
	char duration[WEIR_DURATION_TEXT_BYTES], lower[16] = "";
	const size_t digits = strspn(interval, "0123456789");
	uint64_t ns;

	for (size_t i = 0; i < sizeof(lower) - 1 && interval[i]; i++)
		lower[i] = tolower((unsigned char)interval[i]);
	if (read_decimal_duration(interval, &ns))
		weir_advise(refusal, "write whole numbers: %.*s/%s", amount_bytes, amount,
			    weir_format_duration(ns, duration));
	else if (strlen(interval) < sizeof(lower) && read_interval(lower, &ns))
		weir_advise(refusal, "write %.*s/%s", amount_bytes, amount, lower);
	else if (digits && digits < sizeof(lower) && !interval[digits] && interval[0] != '0')
		weir_advise(refusal, "add a unit: %.*s/%ss or %.*s/%smin", amount_bytes, amount, interval, amount_bytes,
			    amount, interval);
	else if (!strcmp(lower, "week") || !strcmp(lower, "1week") || !strcmp(lower, "w") || !strcmp(lower, "1w"))
		weir_advise(refusal, "the longest interval is a day: write how many per 1d");
	else
		return false;
	return true;
}

static int refuse_interval(const char *text, const char *slash, struct weir_refusal *refusal)
{
	const int amount_bytes = slash - text > 40 ? 40 : (int)(slash - text);

	if (slash[1])
		weir_refuse(refusal, "rate '%.*s': '%.*s' is not an interval", WEIR_SHOWN(text), WEIR_SHOWN(slash + 1));
	else
		weir_refuse(refusal, "rate '%.*s' has no interval after the '/'", WEIR_SHOWN(text));
	if (advise_interval(text, amount_bytes, slash + 1, refusal))
		return -EINVAL;
	return weir_advise(refusal, "write s, min, h or d there, or a number of them, as in 5/10s");
}

/* Turn "20 per second" into "20/s"; returns true if there is a "per". */
static bool write_per(const char *text, char *plain, size_t plain_bytes)
{
	static const char *const per_units[][2] = {{"second", "s"}, {"minute", "min"}, {"hour", "h"}, {"day", "d"}};
	const char *per = strstr(text, " per "), *unit = per ? per + strlen(" per ") : NULL;

	if (!per)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(per_units); i++)
		if (!strcmp(unit, per_units[i][0]))
			unit = per_units[i][1];
	snprintf(plain, plain_bytes, "%.*s/%s", (int)(per - text), text, unit);
	return true;
}

/* "20 / s", "20 packets/s": either the text is correct without its blanks, or any other mistake is reported without
 * them.
 */
static int refuse_blanks(const char *text, struct weir_refusal *refusal)
{
	char plain[48] = "", slashed[64];
	struct weir_refusal without;
	struct weir_rate rate;
	const bool has_per = write_per(text, slashed, sizeof(slashed));
	size_t kept = 0;

	for (const char *at = has_per ? slashed : text; *at && kept < sizeof(plain) - 1; at++)
		if (*at != ' ')
			plain[kept++] = *at;
	plain[kept] = '\0';
	if (!weir_parse_rate(plain, &rate, &without))
		weir_advise(&without, has_per ? "write %s" : "write %s, without spaces", plain);
	weir_refuse(refusal, "rate '%.*s' is not a number per time", WEIR_SHOWN(text));
	return weir_advise(refusal, "%s", without.hint);
}

int weir_parse_rate(const char *text, struct weir_rate *ret_rate, struct weir_refusal *reterr_refusal)
{
	const char *slash = strchr(text, '/');
	struct amount amount = {};
	uint64_t interval_ns = 0;
	char tail[20];
	int err;

	if (strchr(text, ' '))
		return refuse_blanks(text, reterr_refusal);
	if (!slash) {
		/* "100Mbps", "20": there is no '/', but it is clear what is missing. */
		weir_refuse(reterr_refusal, "rate '%.*s' has no time", WEIR_SHOWN(text));
		if (advise_without_marks(text, strlen(text), "/s", reterr_refusal) ||
		    advise_readings(text, strlen(text), "/s", reterr_refusal))
			return -EINVAL;
		return weir_advise(reterr_refusal, "%s", rate_form);
	}
	snprintf(tail, sizeof(tail), "%s", slash);
	err = read_amount("rate ", text, slash - text, tail, rate_form, &amount, reterr_refusal);
	if (err)
		return err;
	if (!read_interval(slash + 1, &interval_ns))
		return refuse_interval(text, slash, reterr_refusal);
	if (amount.micro > (unsigned __int128)WEIR_THRESHOLD_UNITS_MAX * WEIR_MICRO)
		return refuse_range("rate ", text, tail, reterr_refusal);
	*ret_rate = (struct weir_rate){amount.micro, interval_ns, amount.is_bytes};
	return 0;
}

/* ---- as text ---- */

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
	static const char *const known[] = {"", "k", "M", "G", "T"};
	char number[32];
	size_t prefix = 0;

	for (; counts_bytes && prefix + 1 < ARRAY_SIZE(known) && micro >= 1000 * WEIR_MICRO && micro % 1000 == 0;
	     prefix++)
		micro /= 1000;
	weir_format_micro(micro, number, sizeof(number));
	snprintf(text, text_bytes, "%s%s%s", number, known[prefix], counts_bytes ? "B" : "");
}

const char *weir_format_rate(uint64_t micro, uint64_t interval_ns, bool counts_bytes,
			     char ret_text[WEIR_RATE_TEXT_BYTES])
{
	char amount[48], time[WEIR_DURATION_TEXT_BYTES];
	const char *shown = time;

	weir_format_amount(micro, counts_bytes, amount, sizeof(amount));
	weir_format_duration(interval_ns, time);
	/* "s", "min", "100ms" */
	if (!strcmp(time, "1m"))
		shown = "min";
	else if (time[0] == '1' && strlen(time) == 2)
		shown = time + 1;
	snprintf(ret_text, WEIR_RATE_TEXT_BYTES, "%s/%s", amount, shown);
	return ret_text;
}
