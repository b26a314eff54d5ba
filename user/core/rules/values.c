// SPDX-License-Identifier: GPL-2.0-only
#include "rules/values.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "base/util.h"
#include "rules/interface_words.h"

const char *const weir_tcp_flag_names[WEIR_TCP_FLAG_COUNT] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

#define KEY_FIELD_NAME(constant, name, member, part, form) name,
const char *const weir_key_field_names[WEIR_KEY_FIELD_COUNT] = {WEIR_KEY_FIELDS(KEY_FIELD_NAME)};

const char *const weir_window_names[WEIR_WINDOW_COUNT] = {"leap", "strict", "smooth", "tokens"};
const char *const weir_strategy_names[WEIR_STRATEGY_COUNT] = {"Direct", "WarmUp", "MemoryAdaptive"};
const char *const weir_behavior_names[WEIR_BEHAVIOR_COUNT] = {"Reject", "Throttling"};
const char *const weir_relation_names[WEIR_RELATION_COUNT] = {"CurrentResource", "AssociatedResource"};
const char *const weir_system_metric_names[WEIR_SYSTEM_COUNT] = {"",	       "Load",	  "AvgRT", "Concurrency",
								 "InboundQPS", "CpuUsage"};

/* Names as in IANA's registry and /etc/protocols, which is not read: a rule must mean the same on every host. */
static const struct protocol {
	const char *name;
	uint8_t number;
} protocols[] = {
	{"icmp", 1},  {"igmp", 2},   {"ipip", 4},   {"tcp", 6},	    {"udp", 17},       {"dccp", 33},  {"ipv6", 41},
	{"gre", 47},  {"esp", 50},   {"ah", 51},    {"icmpv6", 58}, {"ipv6-icmp", 58}, {"eigrp", 88}, {"ospf", 89},
	{"pim", 103}, {"vrrp", 112}, {"l2tp", 115}, {"sctp", 132},  {"udplite", 136},
};

/* RFC 3246 (EF), 2597 (AF: eight times the class, twice the drop precedence), 2474 (CS) and 8622 (LE). */
const struct weir_number_name weir_dscp_names[] = {
	{"ef", 46},   {"af11", 10}, {"af12", 12}, {"af13", 14}, {"af21", 18}, {"af22", 20}, {"af23", 22}, {"af31", 26},
	{"af32", 28}, {"af33", 30}, {"af41", 34}, {"af42", 36}, {"af43", 38}, {"cs0", 0},   {"cs1", 8},	  {"cs2", 16},
	{"cs3", 24},  {"cs4", 32},  {"cs5", 40},  {"cs6", 48},	{"cs7", 56},  {"le", 1},    {NULL, 0},
};

/* ---- refusals ---- */

int weir_refuse(struct weir_refusal *refusal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(refusal->message, sizeof(refusal->message), format, args);
	va_end(args);
	refusal->hint[0] = '\0';
	return -EINVAL;
}

int weir_advise(struct weir_refusal *refusal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(refusal->hint, sizeof(refusal->hint), format, args);
	va_end(args);
	return -EINVAL;
}

int weir_shown_bytes(const char *text)
{
	size_t bytes = strnlen(text, 60);

	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}

const char *weir_our_word(const char *word, size_t bytes)
{
	static const struct {
		const char *ours, *theirs[11];
	} words[] = {
		{"source",
		 {"src", "saddr", "srcip", "sourceip", "srcaddr", "sourceaddress", "sip", "client", "clientip"}},
		{"destination", {"dst", "dest", "daddr", "dstip", "destip", "destinationip", "dstaddr", "dip"}},
		{"sourcePort", {"sport", "srcport"}},
		{"destinationPort", {"dport", "dstport", "destport"}},
		{"protocol", {"proto"}},
		{"interface", {"iface", "iif", "iifname", "ifname"}},
		{"blockDuration", {"bantime"}},
	};
	char plain[16] = "";
	size_t kept = 0;

	for (size_t i = 0; i < bytes && kept < sizeof(plain) - 1; i++)
		if (!strchr("_-.", word[i]))
			plain[kept++] = word[i];
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t j = 0; words[i].theirs[j]; j++)
			if (!strcasecmp(plain, words[i].theirs[j]))
				return words[i].ours;
	return NULL;
}

/* The words of `text`, which strange marks part: "write a list: [tcp, udp]". `is_known` says which words there are. */
static bool advise_list(const char *text, const char *marks, bool (*is_known)(const char *, size_t),
			struct weir_refusal *refusal)
{
	char list[128] = "";
	size_t used = 0, words = 0;

	for (const char *at = text + strspn(text, marks); *at; at += strspn(at, marks)) {
		const size_t bytes = strcspn(at, marks);

		if (!is_known(at, bytes) || used + bytes + 3 > sizeof(list))
			return false;
		used += snprintf(list + used, sizeof(list) - used, "%s%.*s", words++ ? ", " : "", (int)bytes, at);
		at += bytes;
	}
	if (words > 1)
		weir_advise(refusal, "write a list: [%s]", list);
	return words > 1;
}

/* ---- names ---- */

int weir_check_name(const char *text, struct weir_refusal *reterr_refusal)
{
	size_t bytes = strlen(text), length;
	uint32_t code;

	if (!bytes) {
		weir_refuse(reterr_refusal, "the name is empty");
		return weir_advise(reterr_refusal, "write a name of 1 to %d bytes", WEIR_NAME_BYTES - 1);
	}
	if (bytes >= WEIR_NAME_BYTES) {
		weir_refuse(reterr_refusal, "name '%.*s...' is %zu bytes long", WEIR_SHOWN(text), bytes);
		return weir_advise(reterr_refusal, "write a name of 1 to %d bytes", WEIR_NAME_BYTES - 1);
	}
	for (const char *at = text; *at; at += length) {
		length = weir_utf8_character(at, strlen(at), &code);
		if (!length)
			return weir_refuse(reterr_refusal, "name '%.*s' is not UTF-8", WEIR_SHOWN(text));
		if (code == ';') {
			weir_refuse(reterr_refusal, "name '%.*s' contains ';'", WEIR_SHOWN(text));
			return weir_advise(reterr_refusal,
					   "leave it out: ';' separates names where several are printed");
		}
		if (weir_is_control(code))
			return weir_refuse(reterr_refusal, "name '%.*s' contains a control character",
					   WEIR_SHOWN(text));
	}
	return 0;
}

/*
 * Steps from one word to another, where a step changes, adds or removes one letter or swaps two
 * neighbours (optimal string alignment); case counts for nothing. Words beyond 63 bytes are infinitely far.
 */
#define DISTANCE_BYTES_MAX 63
static size_t distance(const char *left, const char *right)
{
	size_t rows[3][DISTANCE_BYTES_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2], *oldest;
	size_t left_bytes = strlen(left), right_bytes = strlen(right);

	if (left_bytes > DISTANCE_BYTES_MAX || right_bytes > DISTANCE_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= right_bytes; j++)
		row[j] = j;
	for (size_t i = 1; i <= left_bytes; i++) {
		oldest = before, before = above, above = row, row = oldest;
		row[0] = i;
		for (size_t j = 1; j <= right_bytes; j++) {
			int a = tolower((unsigned char)left[i - 1]), b = tolower((unsigned char)right[j - 1]);
			size_t least = above[j - 1] + (a != b);

			least = above[j] + 1 < least ? above[j] + 1 : least;
			least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
			if (i > 1 && j > 1 && a == tolower((unsigned char)right[j - 2]) &&
			    b == tolower((unsigned char)left[i - 2]) && before[j - 2] + 1 < least)
				least = before[j - 2] + 1;
			row[j] = least;
		}
	}
	return row[right_bytes];
}

const char *weir_nearest(const char *word, const void *entries, size_t count, size_t entry_bytes)
{
	/* A third of the word may be wrong; chosen by trying what one mistypes. */
	size_t word_bytes = strlen(word), nearest_steps = 1 + word_bytes / 3;
	const char *nearest = NULL, *containing = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *name = *(const char *const *)((const char *)entries + i * entry_bytes);
		size_t bytes = strlen(name), gap = bytes > word_bytes ? bytes - word_bytes : word_bytes - bytes;
		size_t steps = bytes && word_bytes && gap <= nearest_steps ? distance(word, name) : SIZE_MAX;

		if (steps < nearest_steps || (steps == nearest_steps && !nearest)) {
			nearest = name;
			nearest_steps = steps;
		}
		/* `interval` for statIntervalInMs. */
		if (!containing && word_bytes >= 4 && strcasestr(name, word))
			containing = name;
	}
	return nearest ? nearest : containing;
}

/* ---- numbers ---- */

static bool is_digits(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!isdigit((unsigned char)text[i]))
			return false;
	return bytes > 0;
}

/* Value of decimal digits, or false when it exceeds `high`. */
static bool read_digits(const char *text, size_t bytes, uint64_t high, uint64_t *ret_number)
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

static int parse_digits(const char *text, size_t bytes, uint64_t low, uint64_t high, uint64_t *ret_number,
			struct weir_refusal *reterr_refusal)
{
	int shown = bytes > 60 ? 60 : bytes;
	size_t zeros = 0;

	if (!is_digits(text, bytes)) {
		bool is_negative = bytes > 1 && text[0] == '-' && is_digits(text + 1, bytes - 1);

		weir_refuse(reterr_refusal, is_negative ? "'%.*s' is negative" : "'%.*s' is not a whole number", shown,
			    text);
		return weir_advise(reterr_refusal, "write %llu to %llu in digits", (unsigned long long)low,
				   (unsigned long long)high);
	}
	while (zeros < bytes - 1 && text[zeros] == '0')
		zeros++;
	if (zeros) {
		weir_refuse(reterr_refusal, "'%.*s' begins with a zero", shown, text);
		return weir_advise(reterr_refusal, "numbers are decimal here: write %.*s",
				   shown - (int)zeros > 0 ? shown - (int)zeros : 1, text + zeros);
	}
	if (!read_digits(text, bytes, high, ret_number) || *ret_number < low) {
		weir_refuse(reterr_refusal, "'%.*s' is out of range", shown, text);
		return weir_advise(reterr_refusal, "write %llu to %llu", (unsigned long long)low,
				   (unsigned long long)high);
	}
	return 0;
}

int weir_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *ret_number,
		      struct weir_refusal *reterr_refusal)
{
	uint64_t number;
	int err = parse_digits(text, strlen(text), low, high, &number, reterr_refusal);

	if (!err)
		*ret_number = number;
	return err;
}

/* ---- numbers as JSON writes them ---- */

/* digits * 10^exponent, as the text has it: `digits` points into the text and may hold one point. */
struct scientific {
	const char *digits;
	size_t bytes;
	long exponent; /* of the last digit */
};

/* Far beyond what any threshold has, and far from overflow. */
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

/* Drop the zeros at both ends, which say nothing of the value. */
static void trim_zeros(struct scientific *number)
{
	while (number->bytes && (number->digits[0] == '0' || number->digits[0] == '.')) {
		number->digits++;
		number->bytes--;
	}
	for (; number->bytes && strchr("0.", number->digits[number->bytes - 1]); number->bytes--)
		number->exponent += number->digits[number->bytes - 1] == '0';
}

/* The value in millionths; false when it is above WEIR_THRESHOLD_UNITS_MAX. */
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
		return weir_advise(reterr_refusal, "write a number as JSON has it: 20000, 0.5 or 2e4");
	}
	trim_zeros(&number);
	if (number.bytes && number.exponent < -6) {
		weir_refuse(reterr_refusal, "threshold '%.*s' has more than six decimals", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "thresholds are kept exactly: round it to six decimals");
	}
	if (!scale_to_micro(&number, ret_micro)) {
		weir_refuse(reterr_refusal, "threshold '%.*s' is out of range", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write 0 to %llu", WEIR_THRESHOLD_UNITS_MAX);
	}
	return 0;
}

/* "80,443" and "1024:65535", as iptables has them. */
static void advise_range(const char *text, struct weir_refusal *refusal)
{
	const char *colon = strchr(text, ':');

	if (!text[strspn(text, "0123456789-, ")] && strchr(text, ','))
		weir_advise(refusal, "write a list: [%.*s]", WEIR_SHOWN(text));
	else if (colon && !text[strspn(text, "0123456789:")])
		weir_advise(refusal, "write %.*s-%.*s", (int)(colon - text), text, WEIR_SHOWN(colon + 1));
}

int weir_parse_range(const char *text, uint32_t high, struct weir_range *ret_range, struct weir_refusal *reterr_refusal)
{
	const char *dash = text[0] == '-' ? NULL : strchr(text, '-');
	uint64_t from, to;
	int err;

	if (text[0] == '!') {
		weir_refuse(reterr_refusal, "'%.*s' is not a whole number", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "%s", WEIR_NO_ALL_BUT);
	}
	if (text[strspn(text, "0123456789-")] && isdigit((unsigned char)text[0])) {
		err = weir_parse_number(text, 0, high, &from, reterr_refusal);
		advise_range(text, reterr_refusal);
		return err;
	}

	err = parse_digits(text, dash ? (size_t)(dash - text) : strlen(text), 0, high, &from, reterr_refusal);
	if (err)
		return err;
	to = from;
	if (dash) {
		err = parse_digits(dash + 1, strlen(dash + 1), 0, high, &to, reterr_refusal);
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

/* ---- addresses ---- */

static int refuse_address(const char *text, struct weir_refusal *reterr_refusal)
{
	weir_refuse(reterr_refusal, "'%.*s' is no IP address or prefix", WEIR_SHOWN(text));
	if (text[0] == '!')
		return weir_advise(reterr_refusal, "%s", WEIR_NO_ALL_BUT);
	if (strchr(text, ','))
		return weir_advise(reterr_refusal, "write several as a list, with commas between: [192.0.2.1, "
						   "198.51.100.0/24]");
	return weir_advise(reterr_refusal, "write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32");
}

/* Zero the bits after the prefix. True when one of them was set. */
static bool clear_host_bits(struct weir_prefix *prefix)
{
	bool had_any = false;

	for (size_t i = 0; i < sizeof(prefix->address); i++) {
		int kept = (int)prefix->bits - 8 * (int)i;
		uint8_t mask = kept >= 8 ? 0xff : kept <= 0 ? 0 : 0xff << (8 - kept);

		had_any |= prefix->address[i] & ~mask;
		prefix->address[i] &= mask;
	}
	return had_any;
}

static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_mapped(const struct weir_prefix *prefix)
{
	return prefix->family == 6 && !memcmp(prefix->address, mapped, sizeof(mapped));
}

/* A length below 96 cuts into what says that an IPv4 address follows: who writes /8 means the IPv4 network. */
static int refuse_mapped(const char *text, const struct weir_prefix *prefix, struct weir_refusal *reterr_refusal)
{
	struct weir_prefix within = {.family = 4, .bits = prefix->bits};
	char network[WEIR_PREFIX_TEXT_BYTES];

	memcpy(within.address, prefix->address + sizeof(mapped), 4);
	weir_refuse(reterr_refusal, "'%.*s' is an IPv4 address, with a prefix length of less than 96",
		    WEIR_SHOWN(text));
	if (within.bits > 32)
		return weir_advise(reterr_refusal, "write the IPv4 network alone, as in 192.0.2.0/24");
	clear_host_bits(&within);
	weir_format_prefix(&within, network);
	return weir_advise(reterr_refusal, "write %s, or ::ffff:%.*s/%u", network, (int)strcspn(network, "/"), network,
			   within.bits + 96);
}

/* ::ffff:192.0.2.1 is how a program that listens on IPv6 writes the address of an IPv4 client (RFC 4291, 2.5.5.2). No
 * packet has such a source: the address means the one within it, and a prefix of 96 bits or more those.
 */
static int unmap(const char *text, struct weir_prefix *prefix, struct weir_refusal *reterr_refusal)
{
	if (!is_mapped(prefix))
		return 0;
	if (prefix->bits < 8 * sizeof(mapped))
		return refuse_mapped(text, prefix, reterr_refusal);
	prefix->family = 4;
	prefix->bits -= 8 * sizeof(mapped);
	memmove(prefix->address, prefix->address + sizeof(mapped), 4);
	memset(prefix->address + 4, 0, sizeof(prefix->address) - 4);
	return 0;
}

/* 255.255.255.0 is 24. */
static bool read_netmask(const char *text, uint64_t *ret_bits)
{
	struct in_addr mask;

	if (inet_pton(AF_INET, text, &mask) != 1 || !mask.s_addr || ~ntohl(mask.s_addr) & (~ntohl(mask.s_addr) + 1))
		return false;
	*ret_bits = __builtin_popcount(mask.s_addr);
	return true;
}

/* `address`: what stands before the '/'. */
static int parse_prefix(const char *text, char address[INET6_ADDRSTRLEN], struct weir_prefix *ret_prefix,
			struct weir_refusal *reterr_refusal)
{
	size_t address_bytes = strcspn(text, "/");
	struct weir_prefix prefix = {};
	uint64_t bits, whole;
	int err;

	if (address_bytes >= INET6_ADDRSTRLEN || strchr(text, ','))
		return refuse_address(text, reterr_refusal);
	memcpy(address, text, address_bytes);
	address[address_bytes] = '\0';
	prefix.family = strchr(address, ':') ? 6 : 4;
	if (inet_pton(prefix.family == 6 ? AF_INET6 : AF_INET, address, prefix.address) != 1)
		return refuse_address(text, reterr_refusal);

	bits = whole = prefix.family == 6 ? 128 : 32;
	if (text[address_bytes]) {
		err = weir_parse_number(text + address_bytes + 1, 0, whole, &bits, reterr_refusal);
		if (err) {
			weir_refuse(reterr_refusal, "'%.*s' has no valid prefix length", WEIR_SHOWN(text));
			if (prefix.family == 4 && read_netmask(text + address_bytes + 1, &bits))
				return weir_advise(reterr_refusal, "write %s/%u", address, (unsigned int)bits);
			return weir_advise(reterr_refusal, "write 0 to %u after the '/'", (unsigned int)whole);
		}
	}
	prefix.bits = bits;
	err = unmap(text, &prefix, reterr_refusal);
	if (!err)
		*ret_prefix = prefix;
	return err;
}

int weir_parse_prefix(const char *text, struct weir_prefix *ret_prefix, struct weir_refusal *reterr_refusal)
{
	char address[INET6_ADDRSTRLEN], network[WEIR_PREFIX_TEXT_BYTES];
	struct weir_prefix prefix = {};
	int err = parse_prefix(text, address, &prefix, reterr_refusal);

	if (err)
		return err;
	if (clear_host_bits(&prefix)) {
		weir_refuse(reterr_refusal, "prefix '%.*s' has host bits set", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write %s for the whole network, or %s for the one address",
				   weir_format_prefix(&prefix, network), address);
	}
	*ret_prefix = prefix;
	return 0;
}

int weir_parse_network(const char *text, struct weir_prefix *ret_prefix, struct weir_refusal *reterr_refusal)
{
	char address[INET6_ADDRSTRLEN];
	int err = parse_prefix(text, address, ret_prefix, reterr_refusal);

	if (!err)
		clear_host_bits(ret_prefix);
	else if (strchr(text, ','))
		weir_advise(reterr_refusal, "write blanks between sources, one on each line of a file");
	return err;
}

int weir_compare_prefixes(const struct weir_prefix *left, const struct weir_prefix *right)
{
	int order = left->family - right->family;

	if (!order)
		order = memcmp(left->address, right->address, sizeof(left->address));
	return order ?: left->bits - right->bits;
}

const char *weir_format_prefix(const struct weir_prefix *prefix, char ret_text[WEIR_PREFIX_TEXT_BYTES])
{
	unsigned int whole = prefix->family == 6 ? 128 : 32;
	char address[INET6_ADDRSTRLEN];

	inet_ntop(prefix->family == 6 ? AF_INET6 : AF_INET, prefix->address, address, sizeof(address));
	if (prefix->bits == whole)
		snprintf(ret_text, WEIR_PREFIX_TEXT_BYTES, "%s", address);
	else
		snprintf(ret_text, WEIR_PREFIX_TEXT_BYTES, "%s/%u", address, prefix->bits);
	return ret_text;
}

/* ---- words ---- */

const char *weir_protocol_name(uint8_t protocol)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocols[i].number == protocol)
			return protocols[i].name;
	return NULL;
}

static bool is_protocol(const char *text, size_t bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (strlen(protocols[i].name) == bytes && !strncasecmp(text, protocols[i].name, bytes))
			return true;
	return false;
}

/* What is no protocol of IP's, and what to write for it. */
static bool advise_protocol(const char *text, struct weir_refusal *refusal)
{
	static const char *const every[] = {"any", "all", "ip", "*", "both"};
	static const struct {
		const char *name, *protocol;
		unsigned int port;
	} services[] = {
		{"http", "tcp", 80},  {"https", "tcp", 443}, {"ssh", "tcp", 22},
		{"smtp", "tcp", 25},  {"dns", "udp", 53},    {"ntp", "udp", 123},
		{"quic", "udp", 443}, {"snmp", "udp", 161},  {"telnet", "tcp", 23},
	};

	for (size_t i = 0; i < ARRAY_SIZE(every); i++)
		if (!strcasecmp(text, every[i])) {
			weir_advise(refusal, "leave 'protocol' out: then any is meant");
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (!strcasecmp(text, services[i].name)) {
			weir_advise(refusal, "write 'protocol: %s' and 'destinationPort: %u'", services[i].protocol,
				    services[i].port);
			return true;
		}
	if (text[0] == '!') {
		weir_advise(refusal, "%s", WEIR_NO_ALL_BUT);
		return true;
	}
	return advise_list(text, ",/|+&; ", is_protocol, refusal);
}

int weir_parse_protocol(const char *text, uint8_t *ret_protocol, struct weir_refusal *reterr_refusal)
{
	const char *nearest;
	uint64_t number;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (!strcmp(text, protocols[i].name)) {
			*ret_protocol = protocols[i].number;
			return 0;
		}
	}
	if (isdigit((unsigned char)text[0]) || text[0] == '-') {
		err = weir_parse_number(text, 0, 255, &number, reterr_refusal);
		if (!err)
			*ret_protocol = number;
		return err;
	}
	nearest = weir_nearest(text, protocols, ARRAY_SIZE(protocols), sizeof(protocols[0]));
	weir_refuse(reterr_refusal, "'%.*s' is not a known protocol", WEIR_SHOWN(text));
	if (advise_protocol(text, reterr_refusal))
		return -EINVAL;
	if (nearest)
		return weir_advise(reterr_refusal, "did you mean '%s'? a number, 0 to 255, will do too", nearest);
	return weir_advise(reterr_refusal,
			   "write its number, 0 to 255, or tcp, udp, sctp, icmp, icmpv6, gre, esp, ah ...");
}

/* The bit of the flag that `bytes` bytes at `text` name, or 0. */
static uint8_t tcp_flag(const char *text, size_t bytes)
{
	for (int bit = 0; bit < WEIR_TCP_FLAG_COUNT; bit++)
		if (bytes == 3 && !strncmp(text, weir_tcp_flag_names[bit], bytes))
			return 1 << bit;
	return 0;
}

int weir_parse_tcp_flags(const char *text, struct weir_tcp_flags *ret_flags, struct weir_refusal *reterr_refusal)
{
	struct weir_tcp_flags flags = {};

	for (const char *at = text;; at++) {
		size_t bytes;
		uint8_t bit, *side;

		at += strspn(at, " ");
		side = *at == '!' ? &flags.clear : &flags.set;
		at += *at == '!';
		bytes = strcspn(at, ", ");
		bit = tcp_flag(at, bytes);
		if (!bit) {
			weir_refuse(reterr_refusal, "'%.*s' is no TCP flag", bytes > 60 ? 60 : (int)bytes, at);
			for (int i = 0; i < WEIR_TCP_FLAG_COUNT && bytes == 3; i++)
				if (!strncasecmp(at, weir_tcp_flag_names[i], bytes))
					return weir_advise(reterr_refusal, "did you mean '%s'?",
							   weir_tcp_flag_names[i]);
			return weir_advise(reterr_refusal,
					   "flags are fin syn rst psh ack urg ece cwr, separated by commas, '!' "
					   "before those that must not be set: \"syn,!ack\"");
		}
		*side |= bit;
		at += bytes;
		at += strspn(at, " ");
		if (!*at)
			break;
		if (*at != ',') {
			weir_refuse(reterr_refusal, "TCP flags '%.*s' are not separated by commas", WEIR_SHOWN(text));
			return weir_advise(reterr_refusal, "write them as \"syn,!ack\"");
		}
	}
	if (flags.set & flags.clear) {
		weir_refuse(reterr_refusal, "'%.*s' wants one flag both set and not set", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "name each flag once; for either of two, write a list: [syn, fin]");
	}
	*ret_flags = flags;
	return 0;
}

/* A word that stands for some bits. */
struct word {
	const char *name;
	uint8_t bits;
};

static int parse_word(const char *text, const struct word *words, size_t count, uint8_t *ret_bits,
		      struct weir_refusal *reterr_refusal)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(text, words[i].name)) {
			*ret_bits = words[i].bits;
			return 0;
		}
	}
	weir_refuse(reterr_refusal, "'%.*s' is not known", WEIR_SHOWN(text));
	for (size_t i = 0; i < count; i++)
		used += snprintf(reterr_refusal->hint + used, sizeof(reterr_refusal->hint) - used, "%s%s",
				 i == 0		 ? "write "
				 : i + 1 < count ? ", "
						 : " or ",
				 words[i].name);
	return -EINVAL;
}

int weir_parse_fragment(const char *text, uint8_t *ret_fragments, struct weir_refusal *reterr_refusal)
{
	static const struct word words[] = {
		{"none", 1 << WEIR_FRAGMENT_NONE},
		{"first", 1 << WEIR_FRAGMENT_FIRST},
		{"later", 1 << WEIR_FRAGMENT_LATER},
		{"any", 1 << WEIR_FRAGMENT_FIRST | 1 << WEIR_FRAGMENT_LATER},
	};

	return parse_word(text, words, ARRAY_SIZE(words), ret_fragments, reterr_refusal);
}

int weir_parse_family(const char *text, uint8_t *ret_families, struct weir_refusal *reterr_refusal)
{
	static const struct word words[] = {{"ipv4", 1}, {"ipv6", 2}};

	return parse_word(text, words, ARRAY_SIZE(words), ret_families, reterr_refusal);
}

int weir_parse_interface(const char *text, char ret_word[WEIR_WANTED_BYTES], struct weir_refusal *reterr_refusal)
{
	const char *name = text + (text[0] == WEIR_WORD_EXCEPTS);
	const bool is_pattern = weir_word_is_pattern(name);
	size_t bytes = strlen(name);

	if (is_pattern && bytes >= WEIR_WANTED_BYTES - 1) {
		weir_refuse(reterr_refusal, "'%.*s' cannot be a pattern of interface names", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "it has more than %d bytes", WEIR_WANTED_BYTES - 2);
	}
	if (!bytes || (!is_pattern && bytes >= IF_NAMESIZE)) {
		weir_refuse(reterr_refusal, "'%.*s' cannot be the name of an interface", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "interface names have 1 to %d bytes; 'ip link' lists them",
				   IF_NAMESIZE - 1);
	}
	if (!strcmp(name, ".") || !strcmp(name, "..") || strpbrk(name, "/: \t\n\v\f\r")) {
		weir_refuse(reterr_refusal, "'%.*s' cannot be the name of an interface", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "interface names have no '/', ':' or blanks; 'ip link' lists them");
	}
	memset(ret_word, 0, WEIR_WANTED_BYTES);
	memcpy(ret_word, text, strlen(text));
	return 0;
}

/* ---- the flow key ---- */

static bool read_prefix_length(const char *text, size_t bytes, uint64_t whole, uint8_t *ret_bits)
{
	struct weir_refusal unused;
	uint64_t bits = 0;

	if (parse_digits(text, bytes, 1, whole, &bits, &unused))
		return false;
	*ret_bits = bits;
	return true;
}

/* The prefix lengths after an address field: "24/56", or one alone where `families` says of which. */
static int parse_key_lengths(const char *text, const char *lengths, uint8_t families, uint8_t bits[2],
			     struct weir_refusal *reterr_refusal)
{
	const char *slash = strchr(lengths, '/');
	bool is_valid;

	if (slash) {
		is_valid = read_prefix_length(lengths, slash - lengths, 32, &bits[0]) &&
			   read_prefix_length(slash + 1, strlen(slash + 1), 128, &bits[1]);
	} else if (families == 1) {
		is_valid = read_prefix_length(lengths, strlen(lengths), 32, &bits[0]);
	} else if (families == 2) {
		is_valid = read_prefix_length(lengths, strlen(lengths), 128, &bits[1]);
	} else {
		weir_refuse(reterr_refusal, "'%.*s' has one prefix length, but the resource takes IPv4 and IPv6",
			    WEIR_SHOWN(text));
		return weir_advise(reterr_refusal,
				   "write both, first of IPv4 and then of IPv6, as in source/24/56; or say "
				   "'family: ipv4' in the match");
	}
	if (!is_valid) {
		weir_refuse(reterr_refusal, "'%.*s' has no valid prefix length", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal,
				   "write 1 to 32 bits of IPv4 and 1 to 128 of IPv6, as in source/24/56");
	}
	return 0;
}

#define IS_ADDRESS_ADDRESS 1
#define IS_ADDRESS_PORT 0
#define IS_ADDRESS_PROTOCOL 0
#define IS_ADDRESS_NUMBER 0
#define IS_ADDRESS_VLAN 0
#define KEY_FIELD_IS_ADDRESS(constant, name, member, part, form) IS_ADDRESS_##form,
static const bool is_address[WEIR_KEY_FIELD_COUNT] = {WEIR_KEY_FIELDS(KEY_FIELD_IS_ADDRESS)};

/* "write source, destination (...), sourcePort, ... or interface". */
static int advise_key_fields(struct weir_refusal *refusal)
{
	size_t used = snprintf(refusal->hint, sizeof(refusal->hint),
			       "write source, destination (both with /IPv4-prefix/IPv6-prefix if you like)");

	for (int i = 0; i < WEIR_KEY_FIELD_COUNT && used < sizeof(refusal->hint); i++)
		if (!is_address[i])
			used += snprintf(refusal->hint + used, sizeof(refusal->hint) - used, "%s %s",
					 i + 1 < WEIR_KEY_FIELD_COUNT ? "," : " or", weir_key_field_names[i]);
	return -EINVAL;
}

static bool is_key_field(const char *text, size_t bytes)
{
	for (int i = 0; i < WEIR_KEY_FIELD_COUNT; i++)
		if (strlen(weir_key_field_names[i]) == bytes && !strncmp(text, weir_key_field_names[i], bytes))
			return true;
	return weir_our_word(text, bytes) != NULL;
}

static int advise_flow_field(const char *text, size_t name_bytes, struct weir_refusal *refusal)
{
	const char *meant = weir_our_word(text, name_bytes);
	char name[32];

	if (advise_list(text, ",+&|; ", is_key_field, refusal))
		return -EINVAL;
	snprintf(name, sizeof(name), "%.*s", (int)name_bytes, text);
	/* A short word is near to what was not meant: port to sourcePort. */
	if (!meant && name_bytes > 4 && name_bytes < sizeof(name))
		meant = weir_nearest(name, weir_key_field_names, WEIR_KEY_FIELD_COUNT, sizeof(weir_key_field_names[0]));
	if (meant)
		return weir_advise(refusal, "did you mean '%s%.20s'?", meant, text + name_bytes);
	return advise_key_fields(refusal);
}

int weir_parse_flow_field(const char *text, uint8_t families, struct weir_flow *flow,
			  struct weir_refusal *reterr_refusal)
{
	size_t name_bytes = strcspn(text, "/");
	const char *lengths = text[name_bytes] ? text + name_bytes + 1 : NULL;
	uint8_t bits[2] = {32, 128};
	uint32_t field;
	int bit = 0, err;

	while (bit < WEIR_KEY_FIELD_COUNT &&
	       (strncmp(text, weir_key_field_names[bit], name_bytes) || weir_key_field_names[bit][name_bytes]))
		bit++;
	if (bit == WEIR_KEY_FIELD_COUNT) {
		weir_refuse(reterr_refusal, "'%.*s' is no field of a flow key", WEIR_SHOWN(text));
		return advise_flow_field(text, name_bytes, reterr_refusal);
	}
	field = 1u << bit;
	if (flow->fields & field) {
		weir_refuse(reterr_refusal, "'%s' is in the flow key twice", weir_key_field_names[bit]);
		return weir_advise(reterr_refusal, "leave one of them out");
	}
	if (lengths && !is_address[bit]) {
		weir_refuse(reterr_refusal, "'%.*s' has a prefix length, but %s is no address", WEIR_SHOWN(text),
			    weir_key_field_names[bit]);
		return weir_advise(reterr_refusal, "write %s alone", weir_key_field_names[bit]);
	}
	if (lengths) {
		err = parse_key_lengths(text, lengths, families, bits, reterr_refusal);
		if (err)
			return err;
	}
	flow->fields |= field;
	if (field == WEIR_KEY_SOURCE)
		memcpy(flow->source_bits, bits, sizeof(bits));
	if (field == WEIR_KEY_DESTINATION)
		memcpy(flow->destination_bits, bits, sizeof(bits));
	return 0;
}

/* ---- EtherTypes ---- */

/* As in IEEE 802's registry; below 0x600 the field is a length, and LLC follows (802.3, 3.2.6): spanning tree does. */
static const struct ethertypes {
	const char *name;
	struct weir_range range;
} ethertypes[] = {
	{"arp", {0x0806, 0x0806}},  {"eapol", {0x888e, 0x888e}}, {"lacp", {0x8809, 0x8809}},
	{"llc", {0, 0x05ff}},	    {"lldp", {0x88cc, 0x88cc}},	 {"macsec", {0x88e5, 0x88e5}},
	{"mpls", {0x8847, 0x8848}}, {"pppoe", {0x8863, 0x8864}}, {"ptp", {0x88f7, 0x88f7}},
	{"rarp", {0x8035, 0x8035}},
};

static bool read_ethertype(const char *text, uint64_t *ret_number)
{
	const char *digits = text + 2;
	uint64_t number = 0;

	if (strncasecmp(text, "0x", 2))
		return is_digits(text, strlen(text)) && read_digits(text, strlen(text), 0xffff, ret_number);
	for (; isxdigit((unsigned char)*digits) && number <= 0xffff; digits++)
		number = number * 16 +
			 (isdigit((unsigned char)*digits) ? *digits - '0' : tolower((unsigned char)*digits) - 'a' + 10);
	*ret_number = number;
	return digits > text + 2 && !*digits && number <= 0xffff;
}

int weir_parse_ethertypes(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	static const uint16_t judged[] = {0x0800, 0x86dd, 0x8100, 0x88a8};
	struct weir_range *range = item;
	const char *nearest;
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(ethertypes); i++)
		if (!strcmp(text, ethertypes[i].name)) {
			*range = ethertypes[i].range;
			return 0;
		}
	if (!read_ethertype(text, &number)) {
		weir_refuse(reterr_refusal, "'%.*s' is no EtherType", WEIR_SHOWN(text));
		nearest = weir_nearest(text, ethertypes, ARRAY_SIZE(ethertypes), sizeof(ethertypes[0]));
		if (nearest)
			return weir_advise(reterr_refusal, "did you mean '%s'?", nearest);
		return weir_advise(reterr_refusal,
				   "write a number such as 0x88cc, or arp, eapol, lacp, llc, lldp, macsec, "
				   "mpls, pppoe, ptp or rarp");
	}
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++)
		if (number == judged[i]) {
			weir_refuse(reterr_refusal, "'%.*s' is IP or a VLAN tag", WEIR_SHOWN(text));
			return weir_advise(reterr_refusal, "limit it by a resource and a rule");
		}
	*range = (struct weir_range){number, number};
	return 0;
}

const char *weir_format_ethertypes(const struct weir_range *range, char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(ethertypes); i++)
		if (ethertypes[i].range.low == range->low && ethertypes[i].range.high == range->high)
			return ethertypes[i].name;
	snprintf(text, WEIR_ETHERTYPE_TEXT_BYTES, "0x%04x", range->low & 0xffff);
	return text;
}
