// SPDX-License-Identifier: GPL-2.0-only
/* Addresses and prefixes in rule files. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "rules/scalars.h"

static int refuse_address(const char *text, struct weir_refusal *reterr_refusal)
{
	weir_refuse(reterr_refusal, "'%.*s' is not an IP address or prefix", WEIR_SHOWN(text));
	if (text[0] == '!')
		return weir_advise(reterr_refusal, "%s", WEIR_NO_ALL_BUT);
	if (strchr(text, ','))
		return weir_advise(reterr_refusal, "write several as a list, with commas between: [192.0.2.1, "
						   "198.51.100.0/24]");
	return weir_advise(reterr_refusal, "write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32");
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

static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_mapped(const struct weir_prefix *prefix)
{
	return prefix->family == 6 && !memcmp(prefix->address, mapped, sizeof(mapped));
}

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
	char address[INET6_ADDRSTRLEN];
	int err = parse_prefix(text, address, ret_prefix, reterr_refusal);

	if (!err)
		clear_host_bits(ret_prefix);
	else if (strchr(text, ','))
		weir_advise(reterr_refusal, "separate sources by spaces; in a file, write one a line");
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
