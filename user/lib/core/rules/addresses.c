// SPDX-License-Identifier: GPL-2.0-only
/* Addresses and prefixes in rule files. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rules/scalars.h"

/* Is this what logs write around an address: "fe80::1%eth0", "[2001:db8::7]:5060", "192.0.2.7:5060"? Then `plain` is
 * the address alone, with its prefix length if it has one, and the result says what was cut off; otherwise NULL.
 */
#define LOGGED_BYTES (INET6_ADDRSTRLEN + 4)

static const char *cut_logged(const char *text, char plain[LOGGED_BYTES])
{
	const bool has_bracket = text[0] == '[';
	const char *begin = text + has_bracket, *end = begin + strcspn(begin, has_bracket ? "%]" : "%/"), *rest = end;
	const bool is_ipv6 = memchr(begin, ':', end - begin) != strrchr(text, ':') || has_bracket || *end == '%';
	const char *what = has_bracket ? "brackets" : NULL;

	if (*rest == '%') {
		what = "a zone";
		rest += strcspn(rest, has_bracket ? "]" : "/");
		if (rest == end + 1)
			return NULL;
	}
	if (has_bracket && *rest++ != ']')
		return NULL;
	if (!is_ipv6)
		rest = end = begin + strcspn(begin, ":");
	if (*rest == ':' && (has_bracket || !is_ipv6)) {
		what = "a port";
		rest += 1 + strspn(rest + 1, "0123456789");
		if (rest[-1] == ':' || *rest)
			return NULL;
	}
	/* What remains is shorter than the text: refuse_address() tries it. */
	if (!what || (*rest && *rest != '/') || (size_t)(end - begin) + strlen(rest) >= LOGGED_BYTES)
		return NULL;
	sprintf(plain, "%.*s%s", (int)(end - begin), begin, rest);
	return what;
}

static int refuse_range(const char *text, struct weir_refusal *refusal)
{
	struct weir_prefix prefixes[WEIR_RANGE_PREFIXES_MAX] = {};
	char prefix[WEIR_PREFIX_TEXT_BYTES];
	struct weir_refusal within;
	size_t count = 0, used = 0;
	int err = weir_parse_address_range(text, prefixes, &count, &within);

	if (err == -ENOENT)
		return err;
	weir_refuse(refusal, "'%.*s' is a range, not an address or prefix", WEIR_SHOWN(text));
	if (err)
		return weir_advise(refusal, "%s%s%s", within.message, within.hint[0] ? ": " : "", within.hint);
	weir_advise(refusal, count > 1 ? "write its prefixes: [" : "write ");
	used = strlen(refusal->hint);
	for (size_t i = 0; i < count && used < sizeof(refusal->hint); i++)
		used += snprintf(refusal->hint + used, sizeof(refusal->hint) - used, "%s%s",
				 weir_format_prefix(&prefixes[i], prefix),
				 i + 1 < count ? ", "
				 : count > 1   ? "]"
					       : "");
	if (used >= sizeof(refusal->hint))
		return weir_advise(refusal, "write prefixes: this range takes %zu, the first of them is %s", count,
				   weir_format_prefix(&prefixes[0], prefix));
	return -EINVAL;
}

/* Zero the bits after the prefix. Returns true if any of them was set. */
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

/* "2001:db8:*" */
static bool read_open_ipv6(const char *text, struct weir_prefix *ret_prefix)
{
	struct weir_prefix prefix = {.family = 6};
	const size_t bytes = strlen(text);
	char plain[INET6_ADDRSTRLEN];

	if (bytes < 3 || bytes >= sizeof(plain) || strcmp(text + bytes - 2, ":*") || text[bytes - 3] == ':')
		return false;
	memcpy(plain, text, bytes + 1);
	plain[bytes - 1] = ':';
	if (inet_pton(AF_INET6, plain, prefix.address) != 1)
		return false;
	for (const char *at = text; *at; at++)
		prefix.bits += *at == ':' ? 16 : 0;
	*ret_prefix = prefix;
	return true;
}

/* Is this an address whose end is missing, or stands for any: "10.*", "192.168.x.x", "10.1", "10/8", "2001:db8:*"? Then
 * *ret_prefix is what it probably means.
 */
static bool read_open_address(const char *text, struct weir_prefix *ret_prefix)
{
	struct weir_prefix prefix = {.family = 4};
	unsigned int places = 0;
	bool has_any = false;
	char *end;

	if (read_open_ipv6(text, ret_prefix))
		return true;
	do {
		const char *at = text + (places > 0);
		unsigned long number = 0;

		if (*at == '*' || *at == 'x') {
			has_any = true;
			end = (char *)at + 1;
		} else {
			number = strtoul(at, &end, 10);
			if (!isdigit((unsigned char)*at) || number > 255 || has_any)
				return false;
			prefix.bits += 8;
		}
		prefix.address[places] = number;
		text = end;
	} while (++places < 4 && *text == '.');
	if (*text == '/' && !has_any && places < 4) {
		unsigned long bits = strtoul(text + 1, &end, 10);

		if (!isdigit((unsigned char)text[1]) || bits > 32)
			return false;
		prefix.bits = bits;
		text = end;
	}
	if (*text || (has_any ? !prefix.bits : places == 4))
		return false;
	clear_host_bits(&prefix);
	*ret_prefix = prefix;
	return true;
}

static bool is_any_address(const char *text)
{
	return !strcasecmp(text, "any") || !strcasecmp(text, "all") || !strcmp(text, "*");
}

/* A host's name, as DNS has it: "example.com", "localhost". */
static bool is_host_name(const char *text)
{
	const size_t bytes = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
	const char *last = strrchr(text, '.');

	return !strcasecmp(text, "localhost") ||
	       (bytes > 1 && !text[bytes] && last && last > text && (!last[1] || isalpha((unsigned char)last[1])));
}

static int refuse_address(const char *text, struct weir_refusal *reterr_refusal)
{
	char plain[LOGGED_BYTES];
	const char *what = cut_logged(text, plain);
	char network[WEIR_PREFIX_TEXT_BYTES];
	struct weir_prefix prefix;

	if (refuse_range(text, reterr_refusal) != -ENOENT)
		return -EINVAL;
	if (what && !weir_parse_network(plain, &prefix, reterr_refusal)) {
		weir_refuse(reterr_refusal, "'%.*s' has %s", WEIR_SHOWN(text), what);
		return weir_advise(reterr_refusal, "write the address alone: %s", weir_format_prefix(&prefix, network));
	}
	weir_refuse(reterr_refusal, "'%.*s' is not an IP address or prefix", WEIR_SHOWN(text));
	if (is_any_address(text))
		return weir_advise(reterr_refusal, "write 0.0.0.0/0 for all IPv4 addresses, ::/0 for all of IPv6");
	if (read_open_address(text, &prefix))
		return weir_advise(reterr_refusal, "write the prefix: %s", weir_format_prefix(&prefix, network));
	if (is_host_name(text))
		return weir_advise(reterr_refusal, "weir does not look names up: write the addresses of '%.*s'",
				   WEIR_SHOWN(text));
	if (text[0] == '!')
		return weir_advise(reterr_refusal, "%s", WEIR_NO_ALL_BUT);
	if (strchr(text, ','))
		return weir_advise(reterr_refusal, "write several as a list, with commas between: [192.0.2.1, "
						   "198.51.100.0/24]");
	return weir_advise(reterr_refusal, "write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32");
}

static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* A length below 96 would cut off the part that marks an IPv4-mapped address: a user who writes /8 means the IPv4
 * network.
 */
static int refuse_mapped(const char *text, const struct weir_prefix *prefix, struct weir_refusal *reterr_refusal)
{
	struct weir_prefix within = {.family = 4, .bits = prefix->bits};
	char network[WEIR_PREFIX_TEXT_BYTES];

	memcpy(within.address, prefix->address + sizeof(mapped), 4);
	weir_refuse(reterr_refusal, "'%.*s' is an IPv4-mapped address with a prefix length below 96", WEIR_SHOWN(text));
	if (within.bits > 32)
		return weir_advise(reterr_refusal, "write the IPv4 network alone, as in 192.0.2.0/24");
	clear_host_bits(&within);
	weir_format_prefix(&within, network);
	return weir_advise(reterr_refusal, "write %s, or ::ffff:%.*s/%u", network, (int)strcspn(network, "/"), network,
			   within.bits + 96);
}

/* A program that listens on IPv6 writes the address of an IPv4 client as ::ffff:192.0.2.1 (RFC 4291, 2.5.5.2). No
 * packet has such a source, so the address is converted to the IPv4 address in it, and a prefix of 96 bits or more to
 * the IPv4 prefix.
 */
static int unmap(const char *text, struct weir_prefix *prefix, struct weir_refusal *reterr_refusal)
{
	if (prefix->family != 6 || memcmp(prefix->address, mapped, sizeof(mapped)))
		return 0;
	if (prefix->bits < 8 * sizeof(mapped))
		return refuse_mapped(text, prefix, reterr_refusal);
	prefix->family = 4;
	prefix->bits -= 8 * sizeof(mapped);
	memmove(prefix->address, prefix->address + sizeof(mapped), 4);
	memset(prefix->address + 4, 0, sizeof(prefix->address) - 4);
	return 0;
}

/* Convert a netmask to a length: 255.255.255.0 is 24. */
static bool read_netmask(const char *text, uint64_t *ret_bits)
{
	struct in_addr mask;

	if (inet_pton(AF_INET, text, &mask) != 1 || !mask.s_addr || ~ntohl(mask.s_addr) & (~ntohl(mask.s_addr) + 1))
		return false;
	*ret_bits = __builtin_popcount(mask.s_addr);
	return true;
}

/* `address` receives the text before the '/'. */
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
	char address[INET6_ADDRSTRLEN], plain[LOGGED_BYTES];
	struct weir_prefix prefix = {};
	int err = 0;

	if (cut_logged(text, plain) && !parse_prefix(plain, address, &prefix, reterr_refusal))
		*ret_prefix = prefix;
	else
		err = parse_prefix(text, address, ret_prefix, reterr_refusal);
	if (!err)
		clear_host_bits(ret_prefix);
	else if (strchr(text, ','))
		weir_advise(reterr_refusal, "separate sources by spaces; in a file, write one a line");
	return err;
}

/* ---- ranges ---- */

/* An address as a number; the two families do not mix. */
static unsigned __int128 number_of(const struct weir_prefix *prefix)
{
	unsigned __int128 number = 0;

	for (int i = 0; i < (prefix->family == 6 ? 16 : 4); i++)
		number = number << 8 | prefix->address[i];
	return number;
}

static int read_end(const char *text, size_t bytes, struct weir_prefix *end)
{
	char word[INET6_ADDRSTRLEN], address[INET6_ADDRSTRLEN];
	struct weir_refusal ignored;

	while (bytes && text[bytes - 1] == ' ')
		bytes--;
	if (!bytes || bytes >= sizeof(word) || memchr(text, '/', bytes) || memchr(text, '-', bytes))
		return -EINVAL;
	memcpy(word, text, bytes);
	word[bytes] = '\0';
	return parse_prefix(word, address, end, &ignored);
}

int weir_parse_address_range(const char *text, struct weir_prefix ret_prefixes[WEIR_RANGE_PREFIXES_MAX],
			     size_t *ret_count, struct weir_refusal *reterr_refusal)
{
	const char *dash = strchr(text, '-'), *last_text = dash ? dash + 1 + strspn(dash + 1, " ") : NULL;
	struct weir_prefix first = {}, last = {};
	unsigned __int128 low, high, size;
	unsigned int whole, bits;
	size_t count = 0;

	if (!dash || read_end(text, dash - text, &first))
		return -ENOENT;
	weir_refuse(reterr_refusal, "range '%.*s' has no address after the '-'", WEIR_SHOWN(text));
	if (read_end(last_text, strlen(last_text), &last))
		return weir_advise(reterr_refusal, "write both ends in full: 192.0.2.1-192.0.2.9");
	if (first.family != last.family) {
		weir_refuse(reterr_refusal, "range '%.*s' begins with IPv%u and ends with IPv%u", WEIR_SHOWN(text),
			    first.family, last.family);
		return weir_advise(reterr_refusal, "write a range of each");
	}
	low = number_of(&first);
	high = number_of(&last);
	if (low > high) {
		weir_refuse(reterr_refusal, "range '%.*s' runs backwards", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write the lower address first");
	}
	whole = first.family == 6 ? 128 : 32;
	for (;;) {
		struct weir_prefix *prefix = &ret_prefixes[count++];

		/* The largest prefix that begins here and does not reach beyond the end. */
		for (bits = whole; bits > 0; bits--) {
			size = (unsigned __int128)1 << (whole - bits); /* of this one; a larger one has twice that */
			if (low & size || high - low < 2 * size - 1)
				break;
		}
		size = bits ? (unsigned __int128)1 << (whole - bits) : 0;
		*prefix = (struct weir_prefix){.family = first.family, .bits = bits};
		for (unsigned int i = 0; i < whole / 8; i++)
			prefix->address[i] = low >> (whole - 8 - 8 * i);
		if (!size || high - low < size)
			break;
		low += size;
	}
	*ret_count = count;
	return 0;
}

int weir_compare_prefixes(const struct weir_prefix *left, const struct weir_prefix *right)
{
	int order = left->family - right->family;

	if (!order)
		order = memcmp(left->address, right->address, sizeof(left->address));
	return order ?: left->bits - right->bits;
}

bool weir_prefix_encloses(const struct weir_prefix *outer, const struct weir_prefix *inner)
{
	unsigned int bytes = outer->bits / 8, bits = outer->bits % 8;

	if (outer->family != inner->family || outer->bits > inner->bits)
		return false;
	if (memcmp(outer->address, inner->address, bytes))
		return false;
	return !bits || (outer->address[bytes] ^ inner->address[bytes]) >> (8 - bits) == 0;
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
