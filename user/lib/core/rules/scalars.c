// SPDX-License-Identifier: GPL-2.0-only
#include "rules/scalars.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "rules/scalar_internal.h"

const char *const weir_tcp_flag_names[WEIR_TCP_FLAG_COUNT] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

#define KEY_FIELD_NAME(constant, name, member, part, form) name,

const char *const weir_key_field_names[WEIR_KEY_FIELD_COUNT] = {WEIR_KEY_FIELDS(KEY_FIELD_NAME)};

/* The ends of a packet, which depend on its direction. In the same order as the first key fields, by bit. */
static const char *const end_names[WEIR_KEY_ENDS_COUNT] = {"remote", "local", "remotePort", "localPort"};

const char *weir_key_field_name(uint32_t key_fields, int bit)
{
	const uint32_t field = 1u << bit;

	if (key_fields & WEIR_KEY_RELATIVE(field))
		return end_names[bit];
	if (key_fields & WEIR_KEY_REVERSED && field & WEIR_KEY_ENDS)
		return weir_key_field_names[bit ^ 1];
	return weir_key_field_names[bit];
}

const char *weir_override_name(const struct weir_ruleset_rule *rule)
{
	const bool is_source = rule->override_field == WEIR_KEY_SOURCE;

	return weir_key_field_name(rule->overrides_end ? WEIR_KEY_RELATIVE(rule->override_field) : 0,
				   is_source ? WEIR_KEY_PLACE_SOURCE : WEIR_KEY_PLACE_DESTINATION);
}

const char *const weir_window_names[WEIR_WINDOW_COUNT] = {"leap", "strict", "smooth", "tokens"};

const char *const weir_strategy_names[WEIR_STRATEGY_COUNT] = {"Direct", "WarmUp", "MemoryAdaptive"};

const char *const weir_on_block_names[WEIR_ON_BLOCK_COUNT] = {"drop", "reset", "unreachable", "truncate", "cookie"};
const char *const weir_behavior_names[WEIR_BEHAVIOR_COUNT] = {"Reject", "Throttling"};

const char *const weir_relation_names[WEIR_RELATION_COUNT] = {"CurrentResource", "AssociatedResource"};

const char *const weir_system_metric_names[WEIR_SYSTEM_COUNT] = {"",	       "Load",	  "AvgRT", "Concurrency",
								 "InboundQPS", "CpuUsage"};

/* Names from IANA's registry and /etc/protocols. The file itself is not read: a rule must mean the same on every host.
 */
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

/* Services whose names people write for a port; with the protocol that is meant where only the name is given. The
 * host's own names (/etc/services) are not read, for the same reason.
 */
/* clang-format off */
#define SERVICES(S) \
	S("ftp", "tcp", 21) S("ssh", "tcp", 22) S("telnet", "tcp", 23) S("smtp", "tcp", 25) \
	S("dns", "udp", 53) S("domain", "udp", 53) S("tftp", "udp", 69) S("http", "tcp", 80) \
	S("pop3", "tcp", 110) S("ntp", "udp", 123) S("imap", "tcp", 143) S("snmp", "udp", 161) \
	S("bgp", "tcp", 179) S("ldap", "tcp", 389) S("https", "tcp", 443) S("quic", "udp", 443) \
	S("syslog", "udp", 514) S("ldaps", "tcp", 636) S("imaps", "tcp", 993) S("pop3s", "tcp", 995) \
	S("mysql", "tcp", 3306) S("rdp", "tcp", 3389) S("sip", "udp", 5060) S("postgresql", "tcp", 5432) \
	S("redis", "tcp", 6379)
/* clang-format on */
#define SERVICE(name, protocol, port) {name, protocol, port},
#define PORT_NAME(name, protocol, port) {name, port},

static const struct weir_service services[] = {SERVICES(SERVICE)};

const struct weir_number_name weir_port_names[] = {SERVICES(PORT_NAME){NULL, 0}};

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

const struct weir_service *weir_find_service(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (!strcasecmp(name, services[i].name))
			return &services[i];
	return NULL;
}

/* Advice for a word that is not an IP protocol. */
static bool advise_protocol(const char *text, struct weir_refusal *refusal)
{
	static const char *const every[] = {"any", "all", "ip", "*", "both"};
	const struct weir_service *service = weir_find_service(text);

	for (size_t i = 0; i < ARRAY_SIZE(every); i++)
		if (!strcasecmp(text, every[i])) {
			weir_advise(refusal, "leave 'protocol' out to match any protocol");
			return true;
		}
	if (service) {
		weir_advise(refusal, "write 'protocol: %s' and 'destinationPort: %u'", service->protocol,
			    service->port);
		return true;
	}
	if (text[0] == '!') {
		weir_advise(refusal, "%s", WEIR_NO_ALL_BUT);
		return true;
	}
	return weir_value_advise_list(text, ",/|+&; ", is_protocol, refusal);
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
		return weir_advise(reterr_refusal, "did you mean '%s'? a number, 0 to 255, works too", nearest);
	return weir_advise(reterr_refusal, "write its number, 0 to 255, or " WEIR_PROTOCOL_CHOICES);
}

/* The bit of the flag named by the `bytes` bytes at `text`, or 0. */
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
			weir_refuse(reterr_refusal, "'%.*s' is not a TCP flag", bytes > 60 ? 60 : (int)bytes, at);
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
		weir_refuse(reterr_refusal, "'%.*s' requires one flag both set and not set", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "name each flag once; for either of two, write a list: [syn, fin]");
	}
	*ret_flags = flags;
	return 0;
}

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

/* Other names for a direction, in lower case. */
static const char *find_direction(const char *text)
{
	static const struct {
		const char *ours, *theirs[8];
	} words[] = {
		{"in", {"inbound", "ingress", "input", "incoming", "received", "rx", "prerouting"}},
		{"out", {"outbound", "egress", "output", "outgoing", "sent", "tx", "postrouting"}},
		{"both", {"inout", "any", "all", "bidirectional"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t j = 0; words[i].theirs[j]; j++)
			if (!strcasecmp(text, words[i].theirs[j]) || !strcasecmp(text, words[i].ours))
				return words[i].ours;
	return NULL;
}

int weir_parse_direction(const char *text, uint8_t *ret_directions, struct weir_refusal *reterr_refusal)
{
	static const struct word words[] = {
		{"in", WEIR_MATCHES_IN}, {"out", WEIR_MATCHES_OUT}, {"both", WEIR_MATCHES_BOTH}};

	if (!parse_word(text, words, ARRAY_SIZE(words), ret_directions, reterr_refusal))
		return 0;
	if (find_direction(text))
		weir_advise(reterr_refusal, "did you mean '%s'?", find_direction(text));
	return -EINVAL;
}

int weir_parse_interface(const char *text, char ret_word[WEIR_WANTED_BYTES], struct weir_refusal *reterr_refusal)
{
	const char *name = text + (text[0] == WEIR_WORD_EXCEPTS);
	const bool is_pattern = weir_word_is_pattern(name);
	size_t bytes = strlen(name);

	if (is_pattern && bytes >= WEIR_WANTED_BYTES - 1) {
		weir_refuse(reterr_refusal, "'%.*s' is not a valid pattern of interface names", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "it has more than %d bytes", WEIR_WANTED_BYTES - 2);
	}
	if (!bytes || (!is_pattern && bytes >= IF_NAMESIZE)) {
		weir_refuse(reterr_refusal, "'%.*s' is not a valid interface name", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "interface names have 1 to %d bytes; 'ip link' lists them",
				   IF_NAMESIZE - 1);
	}
	if (!strcmp(name, ".") || !strcmp(name, "..") || strpbrk(name, "/: \t\n\v\f\r")) {
		weir_refuse(reterr_refusal, "'%.*s' is not a valid interface name", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "interface names have no '/', ':' or spaces; 'ip link' lists them");
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

	if (weir_value_parse_digits(text, bytes, 1, whole, &bits, &unused))
		return false;
	*ret_bits = bits;
	return true;
}

/* Parse the prefix lengths after an address field: "24/56", or a single one if `families` determines to which family it
 * belongs.
 */
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
		weir_refuse(reterr_refusal, "'%.*s' has one prefix length, but the resource matches IPv4 and IPv6",
			    WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write both, first IPv4 and then IPv6, as in source/24/56; or write "
						   "'family: ipv4' in the match");
	}
	if (!is_valid) {
		weir_refuse(reterr_refusal, "'%.*s' has no valid prefix length", WEIR_SHOWN(text));
		if (!slash && families != 3)
			return weir_advise(reterr_refusal, families == 1
								   ? "the match has 'family: ipv4': write 1 to 32 "
								     "bits, as in source/24"
								   : "the match has 'family: ipv6': write 1 to "
								     "128 bits, as in source/56");
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

/* Advise "write source, destination (...), sourcePort, ... or interface". */
static int advise_key_fields(struct weir_refusal *refusal)
{
	size_t used =
		snprintf(refusal->hint, sizeof(refusal->hint),
			 "write source, destination, remote, local (all four with /IPv4-prefix/IPv6-prefix if you "
			 "like), remotePort, localPort,");

	for (int i = 0; i < WEIR_KEY_FIELD_COUNT && used < sizeof(refusal->hint); i++)
		if (!is_address[i])
			used += snprintf(refusal->hint + used, sizeof(refusal->hint) - used, "%s %s%s",
					 i + 1 < WEIR_KEY_FIELD_COUNT ? "" : " or", weir_key_field_names[i],
					 i + 2 < WEIR_KEY_FIELD_COUNT ? "," : "");
	return -EINVAL;
}

/* The index of the name, or `count`. */
static int find_name(const char *const *names, int count, const char *text, size_t bytes)
{
	int i = 0;

	while (i < count && (strlen(names[i]) != bytes || strncmp(text, names[i], bytes) != 0))
		i++;
	return i;
}

static bool is_key_field(const char *text, size_t bytes)
{
	return find_name(weir_key_field_names, WEIR_KEY_FIELD_COUNT, text, bytes) < WEIR_KEY_FIELD_COUNT ||
	       find_name(end_names, WEIR_KEY_ENDS_COUNT, text, bytes) < WEIR_KEY_ENDS_COUNT ||
	       weir_our_word(text, bytes) != NULL;
}

/* Add a field to a key if it is one of `names`. `relative` is set for names that depend on the direction. */
static int add_key_field(const char *const *names, int bit, uint32_t relative, struct weir_flow *flow,
			 struct weir_refusal *reterr_refusal)
{
	const uint32_t field = 1u << bit;

	if (!(flow->fields & field)) {
		flow->fields |= field | relative;
		return 0;
	}
	if (flow->fields & WEIR_KEY_LABEL(field) && field & (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION))
		weir_refuse(reterr_refusal,
			    "the flow key has a set for '%s': neither another set nor the address goes with it",
			    names[bit]);
	else if ((flow->fields & WEIR_KEY_RELATIVE(field)) == relative)
		weir_refuse(reterr_refusal, "'%s' is in the flow key twice", names[bit]);
	else
		weir_refuse(reterr_refusal, "a flow key has '%s' or '%s', not both", weir_key_field_names[bit],
			    end_names[bit]);
	return weir_advise(reterr_refusal, "leave one of them out");
}

static int advise_flow_field(const char *text, size_t name_bytes, struct weir_refusal *refusal)
{
	const char *meant = weir_our_word(text, name_bytes);
	char name[32];

	if (weir_value_advise_list(text, ",+&|; ", is_key_field, refusal))
		return -EINVAL;
	snprintf(name, sizeof(name), "%.*s", (int)name_bytes, text);
	/* Short words are too similar to the wrong fields, such as port to sourcePort. */
	if (!meant && name_bytes > 4 && name_bytes < sizeof(name))
		meant = weir_nearest(name, weir_key_field_names, WEIR_KEY_FIELD_COUNT, sizeof(weir_key_field_names[0]))
				?: weir_nearest(name, end_names, WEIR_KEY_ENDS_COUNT, sizeof(end_names[0]));
	if (meant)
		return weir_advise(refusal, "did you mean '%s%.20s'?", meant, text + name_bytes);
	return advise_key_fields(refusal);
}

int weir_parse_flow_field(const char *text, uint8_t families, struct weir_flow *flow,
			  struct weir_refusal *reterr_refusal)
{
	size_t name_bytes = strcspn(text, "/@");
	const char *lengths = text[name_bytes] == '/' ? text + name_bytes + 1 : NULL;
	const char *set = text[name_bytes] == '@' ? text + name_bytes + 1 : NULL;
	const int end = find_name(end_names, WEIR_KEY_ENDS_COUNT, text, name_bytes);
	const int bit = end < WEIR_KEY_ENDS_COUNT
				? end
				: find_name(weir_key_field_names, WEIR_KEY_FIELD_COUNT, text, name_bytes);
	const char *const *names = end < WEIR_KEY_ENDS_COUNT ? end_names : weir_key_field_names;
	uint8_t bits[2] = {32, 128};
	int err = 0;

	if (bit == WEIR_KEY_FIELD_COUNT) {
		weir_refuse(reterr_refusal, "'%.*s' is not a field of a flow key", WEIR_SHOWN(text));
		return advise_flow_field(text, name_bytes, reterr_refusal);
	}
	if (lengths && !is_address[bit]) {
		weir_refuse(reterr_refusal, "'%.*s' has a prefix length, but %s is not an address", WEIR_SHOWN(text),
			    names[bit]);
		return weir_advise(reterr_refusal, "write %s alone", names[bit]);
	}
	if (set && !is_address[bit]) {
		weir_refuse(reterr_refusal, "'%.*s' has a set, but %s is not an address", WEIR_SHOWN(text), names[bit]);
		return weir_advise(reterr_refusal, "write %s alone", names[bit]);
	}
	if (set && (weir_check_name(set, reterr_refusal) || strpbrk(set, "/.:"))) {
		weir_refuse(reterr_refusal, "'%.*s' is not '%s@NAME'", WEIR_SHOWN(text), names[bit]);
		return weir_advise(reterr_refusal, "write the name of a set alone: all its labels tell flows apart");
	}
	if (lengths)
		err = parse_key_lengths(text, lengths, families, bits, reterr_refusal);
	if (!err)
		err = add_key_field(names, bit, end < WEIR_KEY_ENDS_COUNT ? WEIR_KEY_RELATIVE(1u << bit) : 0, flow,
				    reterr_refusal);
	if (err)
		return err;
	if (set) {
		flow->fields |= WEIR_KEY_LABEL(1u << bit);
		strncpy(bit == WEIR_KEY_PLACE_SOURCE ? flow->source_set : flow->destination_set, set,
			sizeof(flow->source_set) - 1);
	} else if (bit == WEIR_KEY_PLACE_SOURCE) {
		memcpy(flow->source_bits, bits, sizeof(bits));
	} else if (bit == WEIR_KEY_PLACE_DESTINATION) {
		memcpy(flow->destination_bits, bits, sizeof(bits));
	}
	return 0;
}

/* ---- EtherTypes ---- */

/* From IEEE 802's registry. Below 0x600 the field is a length and LLC follows (802.3, 3.2.6), as for spanning tree. */
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
		return weir_value_is_digits(text, strlen(text)) &&
		       weir_value_read_digits(text, strlen(text), 0xffff, ret_number);
	for (; isxdigit((unsigned char)*digits) && number <= 0xffff; digits++)
		number = number * 16 +
			 (isdigit((unsigned char)*digits) ? *digits - '0' : tolower((unsigned char)*digits) - 'a' + 10);
	*ret_number = number;
	return digits > text + 2 && !*digits && number <= 0xffff;
}

int weir_parse_ethertypes(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	static const uint16_t evaluated[] = {0x0800, 0x86dd, 0x8100, 0x88a8};
	struct weir_range *range = item;
	const char *nearest;
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(ethertypes); i++)
		if (!strcmp(text, ethertypes[i].name)) {
			*range = ethertypes[i].range;
			return 0;
		}
	if (!read_ethertype(text, &number)) {
		weir_refuse(reterr_refusal, "'%.*s' is not an EtherType", WEIR_SHOWN(text));
		nearest = weir_nearest(text, ethertypes, ARRAY_SIZE(ethertypes), sizeof(ethertypes[0]));
		if (nearest)
			return weir_advise(reterr_refusal, "did you mean '%s'?", nearest);
		return weir_advise(reterr_refusal,
				   "write a number such as 0x88cc, or arp, eapol, lacp, llc, lldp, macsec, "
				   "mpls, pppoe, ptp or rarp");
	}
	for (size_t i = 0; i < ARRAY_SIZE(evaluated); i++)
		if (number == evaluated[i]) {
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

/* ---- words that select interfaces ---- */

bool weir_word_is_pattern(const char *word)
{
	return word[0] == WEIR_WORD_EXCEPTS || strpbrk(word, "*?[");
}

bool weir_words_have(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(words[i], word, WEIR_WANTED_BYTES))
			return true;
	return false;
}

bool weir_words_mean(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *name)
{
	bool is_meant = false;

	if (weir_words_have(words, count, name))
		return true;
	if (!strcmp(name, "lo"))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (words[i][0] == WEIR_WORD_EXCEPTS && !fnmatch(words[i] + 1, name, 0))
			return false;
		is_meant |= weir_word_is_pattern(words[i]) && words[i][0] != WEIR_WORD_EXCEPTS &&
			    !fnmatch(words[i], name, 0);
	}
	return is_meant;
}
