// SPDX-License-Identifier: GPL-2.0-only
/* Numbers in rule files, and numbers in JSON format. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "rules/scalar_internal.h"
#include "rules/scalars.h"

/* ---- numbers ---- */

bool weir_value_is_digits(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!isdigit((unsigned char)text[i]))
			return false;
	return bytes > 0;
}

bool weir_value_read_digits(const char *text, size_t bytes, uint64_t high, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number) || number > high)
			return false;
	}
	*ret_number = number;
	return true;
}

int weir_value_parse_digits(const char *text, size_t bytes, uint64_t low, uint64_t high, uint64_t *ret_number,
			    struct weir_refusal *reterr_refusal)
{
	int shown = bytes > 60 ? 60 : bytes;
	size_t zeros = 0;

	if (!weir_value_is_digits(text, bytes)) {
		bool is_negative = bytes > 1 && text[0] == '-' && weir_value_is_digits(text + 1, bytes - 1);

		weir_refuse(reterr_refusal, is_negative ? "'%.*s' is negative" : "'%.*s' is not a whole number", shown,
			    text);
		return weir_advise(reterr_refusal, "write %llu to %llu in digits", (unsigned long long)low,
				   (unsigned long long)high);
	}
	while (zeros < bytes - 1 && text[zeros] == '0')
		zeros++;
	if (zeros) {
		weir_refuse(reterr_refusal, "'%.*s' begins with a zero", shown, text);
		return weir_advise(reterr_refusal, "numbers are decimal: write %.*s",
				   shown - (int)zeros > 0 ? shown - (int)zeros : 1, text + zeros);
	}
	if (!weir_value_read_digits(text, bytes, high, ret_number) || *ret_number < low) {
		weir_refuse(reterr_refusal, "'%.*s' is out of range", shown, text);
		return weir_advise(reterr_refusal, "write %llu to %llu", (unsigned long long)low,
				   (unsigned long long)high);
	}
	return 0;
}

int weir_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *ret_number,
		      struct weir_refusal *reterr_refusal)
{
	uint64_t number = 0; /* for the analyzer, which cannot see that a refusal is an error */
	int err = weir_value_parse_digits(text, strlen(text), low, high, &number, reterr_refusal);

	if (!err)
		*ret_number = number;
	return err;
}

/* ---- numbers in JSON format ---- */

/* digits * 10^exponent, as in the text: `digits` points into the text and may include one decimal point. */
struct scientific {
	const char *digits;
	size_t bytes;
	long exponent; /* of the last digit */
};

/* Far more than any threshold needs, and far from overflow. */
#define EXPONENT_CAP 100000000

/* number = [ minus ] int [ frac ] [ exp ], RFC 8259, section 6; without the minus. */
static bool split_json_number(const char *text, struct scientific *number)
{
	size_t whole = strspn(text, "0123456789"), decimals = 0;
	const char *at = text + whole;
	bool is_negative = false;
	long exponent = 0;

	if (!whole || (whole > 1 && text[0] == '0'))
		return false;
	if (*at == '.') {
		decimals = strspn(at + 1, "0123456789");
		if (!decimals)
			return false;
		at += 1 + decimals;
	}
	*number = (struct scientific){.digits = text, .bytes = at - text};
	if (*at == 'e' || *at == 'E') {
		at++;
		is_negative = *at == '-';
		at += *at == '-' || *at == '+';
		if (!isdigit((unsigned char)*at))
			return false;
		for (; isdigit((unsigned char)*at); at++)
			exponent = exponent < EXPONENT_CAP ? exponent * 10 + (*at - '0') : exponent;
	}
	number->exponent = (is_negative ? -exponent : exponent) - (long)decimals;
	return !*at;
}

/* The value in millionths; returns false if it is above WEIR_THRESHOLD_UNITS_MAX. */
static bool scale_to_micro(const struct scientific *number, uint64_t *ret_micro)
{
	const uint64_t high = WEIR_THRESHOLD_UNITS_MAX * WEIR_MICRO;
	uint64_t micro = 0;

	for (size_t i = 0; i < number->bytes; i++) {
		uint64_t digit = number->digits[i] - '0';

		if (number->digits[i] == '.')
			continue;
		if (micro > (high - digit) / 10)
			return false;
		micro = micro * 10 + digit;
	}
	for (long i = 0; micro && i < number->exponent + 6; i++) {
		if (micro > high / 10)
			return false;
		micro *= 10;
	}
	*ret_micro = micro;
	return true;
}

int weir_parse_json_threshold(const char *text, uint64_t *ret_micro, struct weir_refusal *reterr_refusal)
{
	struct scientific number;

	if (text[0] == '-') {
		weir_refuse(reterr_refusal, "threshold '%.*s' is negative", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write 0 to block everything");
	}
	if (!split_json_number(text, &number)) {
		weir_refuse(reterr_refusal, "threshold '%.*s' is not a number", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write a number as in JSON: 20000, 0.5 or 2e4");
	}
	/* Drop the zeros at both ends, which do not change the value. */
	while (number.bytes && (number.digits[0] == '0' || number.digits[0] == '.')) {
		number.digits++;
		number.bytes--;
	}
	for (; number.bytes && strchr("0.", number.digits[number.bytes - 1]); number.bytes--)
		number.exponent += number.digits[number.bytes - 1] == '0';
	if (number.bytes && number.exponent < -6) {
		weir_refuse(reterr_refusal, "threshold '%.*s' has more than six decimals", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "thresholds are exact: round it to six decimals");
	}
	if (!scale_to_micro(&number, ret_micro)) {
		weir_refuse(reterr_refusal, "threshold '%.*s' is out of range", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write 0 to %llu", WEIR_THRESHOLD_UNITS_MAX);
	}
	return 0;
}

/* For ">100", "<= 63": the range that is meant. */
static bool advise_comparison(const char *text, uint32_t high, struct weir_refusal *refusal)
{
	const bool is_above = text[0] == '>', includes = text[0] && text[1] == '=';
	const char *digits = text + 1 + includes + strspn(text + 1 + includes, " ");
	struct weir_refusal ignored;
	uint64_t number;

	if ((!is_above && text[0] != '<') || weir_parse_number(digits, 0, high, &number, &ignored) ||
	    (!includes && number == (is_above ? high : 0)))
		return false;
	weir_refuse(refusal, "'%.*s' is not a range", WEIR_SHOWN(text));
	if (is_above)
		weir_advise(refusal, "write %u-%u", (unsigned int)number + !includes, high);
	else
		weir_advise(refusal, "write 0-%u", (unsigned int)number - !includes);
	return true;
}

int weir_parse_range(const char *text, uint32_t high, struct weir_range *ret_range, struct weir_refusal *reterr_refusal)
{
	const char *dash = text[0] == '-' ? NULL : strchr(text, '-');
	uint64_t from = 0, to; /* likewise, for the analyzer */
	int err;

	if (text[0] == '!') {
		weir_refuse(reterr_refusal, "'%.*s' is not a whole number", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "%s", WEIR_NO_ALL_BUT);
	}
	if (advise_comparison(text, high, reterr_refusal))
		return -EINVAL;
	if (text[strspn(text, "0123456789-")] && isdigit((unsigned char)text[0])) {
		const char *colon = strchr(text, ':');

		err = weir_parse_number(text, 0, high, &from, reterr_refusal);
		/* "80,443" and "1024:65535" are the syntax of iptables. */
		if (!text[strspn(text, "0123456789-, ")] && strchr(text, ','))
			weir_advise(reterr_refusal, "write a list: [%.*s]", WEIR_SHOWN(text));
		else if (colon && !text[strspn(text, "0123456789:")])
			weir_advise(reterr_refusal, "write %.*s-%.*s", (int)(colon - text), text,
				    WEIR_SHOWN(colon + 1));
		return err;
	}

	err = weir_value_parse_digits(text, dash ? (size_t)(dash - text) : strlen(text), 0, high, &from,
				      reterr_refusal);
	if (err)
		return err;
	to = from;
	if (dash && !dash[1]) {
		weir_refuse(reterr_refusal, "range '%.*s' has no end", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write %s%u", text, high);
	}
	if (dash) {
		err = weir_value_parse_digits(dash + 1, strlen(dash + 1), 0, high, &to, reterr_refusal);
		if (err)
			return err;
	}
	if (to < from) {
		weir_refuse(reterr_refusal, "range '%.*s' runs backwards", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write %u-%u", (unsigned int)to, (unsigned int)from);
	}
	*ret_range = (struct weir_range){.low = from, .high = to};
	return 0;
}

int weir_parse_named_range(const char *text, uint32_t high, const struct weir_number_name *names,
			   struct weir_range *ret_range, struct weir_refusal *reterr_refusal)
{
	const char *nearest;
	size_t count = 0;
	int err;

	for (; names[count].name; count++) {
		if (!strcmp(text, names[count].name)) {
			*ret_range = (struct weir_range){.low = names[count].number, .high = names[count].number};
			return 0;
		}
	}
	err = weir_parse_range(text, high, ret_range, reterr_refusal);
	if (!err || !isalpha((unsigned char)text[0]))
		return err;
	weir_refuse(reterr_refusal, "'%.*s' is neither a number nor a name", WEIR_SHOWN(text));
	nearest = weir_nearest(text, names, count, sizeof(*names));
	if (nearest)
		return weir_advise(reterr_refusal, "did you mean '%s'?", nearest);
	return weir_advise(reterr_refusal, "write 0 to %u, or a name such as %s", high, names[0].name);
}
