// SPDX-License-Identifier: GPL-2.0-only
/* The parts of a resource: the match, and the flow key. */
#include <ctype.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "rules/parse.h"
#include "rules/quantity.h"
#include "rules/scalars.h"

#define PLACE_OF_SPECIAL(constant, name, member, part) MATCH_##constant,
#define PLACE_OF_RANGE(constant, name, member, highest, none, who) MATCH_##constant,
enum match_field { WEIR_MATCH_FIELDS(PLACE_OF_SPECIAL, PLACE_OF_RANGE) MATCH_FIELD_COUNT };

/* Fields whose numbers have names. */
static const struct weir_number_name *const number_names[MATCH_FIELD_COUNT] = {
	[MATCH_SOURCE_PORT] = weir_port_names,
	[MATCH_DESTINATION_PORT] = weir_port_names,
	[MATCH_DSCP] = weir_dscp_names,
};

/* Types that mean the same in both protocols, by the names that iptables and nft have (IANA's registries "ICMP Type
 * Numbers" and "ICMPv6 type Numbers"). -1: it is of the other protocol alone.
 */
static const struct icmp_type {
	const char *name;
	int icmp, icmpv6;
} icmp_types[] = {
	{"echo-request", 8, 128},
	{"echo-reply", 0, 129},
	{"ping", 8, 128},
	{"pong", 0, 129},
	{"destination-unreachable", 3, 1},
	{"time-exceeded", 11, 3},
	{"parameter-problem", 12, 4},
	{"packet-too-big", -1, 2},
	{"redirect", 5, 137},
	{"source-quench", 4, -1},
	{"timestamp-request", 13, -1},
	{"timestamp-reply", 14, -1},
	{"router-solicitation", 10, 133},
	{"router-advertisement", 9, 134},
	{"neighbour-solicitation", -1, 135},
	{"neighbour-advertisement", -1, 136},
	{"neighbor-solicitation", -1, 135},
	{"neighbor-advertisement", -1, 136},
	{"nd-neighbor-solicit", -1, 135},
	{"nd-neighbor-advert", -1, 136},
	{"nd-router-solicit", -1, 133},
	{"nd-router-advert", -1, 134},
};

/* ---- items ---- */

/* A prefix, or a set. */
struct address {
	struct weir_prefix prefix;
	struct weir_set_use use;
	bool is_set;
};

static int parse_address_item(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	struct address *address = item;

	address->is_set = weir_is_set_use(text);
	return address->is_set ? weir_parse_set_use(context, text, &address->use, reterr_refusal)
			       : weir_parse_prefix(text, &address->prefix, reterr_refusal);
}

struct numbers {
	enum match_field field;
	uint32_t high;			      /* the largest valid number */
	const struct weir_number_name *names; /* NULL: no names */
	const struct weir_match *match;	      /* the fields read before */
};

static bool takes_protocol(const struct weir_match *match, uint8_t protocol)
{
	return !match->has_protocol || match->protocol[protocol / 8] >> protocol % 8 & 1;
}

/* The name of a type, for which ICMP and ICMPv6 have different numbers. */
static int parse_icmp_type(const char *text, const struct weir_match *match, struct weir_range *ret_range,
			   struct weir_refusal *refusal)
{
	const bool is_icmp = takes_protocol(match, IPPROTO_ICMP) && (!match->families || match->families & 1);
	const bool is_icmpv6 = takes_protocol(match, IPPROTO_ICMPV6) && (!match->families || match->families & 2);
	const struct icmp_type *type = icmp_types;
	int number;

	while (type < icmp_types + ARRAY_SIZE(icmp_types) && strcasecmp(text, type->name) != 0)
		type++;
	weir_refuse(refusal, "'%.*s' is not a number", WEIR_SHOWN(text));
	if (type == icmp_types + ARRAY_SIZE(icmp_types))
		return weir_advise(refusal, "write 0 to 255, or a name such as echo-request, echo-reply, "
					    "destination-unreachable or time-exceeded");
	if (!is_icmp && !is_icmpv6) {
		weir_refuse(refusal, "no packet of this protocol and family has type '%.*s'", WEIR_SHOWN(text));
		if (type->icmp >= 0 && type->icmpv6 >= 0)
			return weir_advise(refusal, "write 'protocol: icmp' (type %d) or 'protocol: icmpv6' (type %d)",
					   type->icmp, type->icmpv6);
		return weir_advise(refusal, "write 'protocol: %s'", type->icmp < 0 ? "icmpv6" : "icmp");
	}
	number = is_icmp ? type->icmp : type->icmpv6;
	if (is_icmp == is_icmpv6 && type->icmp >= 0 && type->icmpv6 >= 0)
		return weir_advise(refusal,
				   "write 'protocol: icmp' or 'protocol: icmpv6' beside it: the type is %d of "
				   "ICMP, but %d of ICMPv6",
				   type->icmp, type->icmpv6);
	if (is_icmp == is_icmpv6)
		number = type->icmp >= 0 ? type->icmp : type->icmpv6;
	if (number < 0)
		return weir_advise(refusal, "only %s has this type", type->icmp < 0 ? "ICMPv6" : "ICMP");
	*ret_range = (struct weir_range){number, number};
	return 0;
}

static int parse_range_item(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	const struct numbers *numbers = context;

	if (numbers->field == MATCH_ICMP_TYPE && isalpha((unsigned char)text[0]))
		return parse_icmp_type(text, numbers->match, item, reterr_refusal);
	if (numbers->names)
		return weir_parse_named_range(text, numbers->high, numbers->names, item, reterr_refusal);
	return weir_parse_range(text, numbers->high, item, reterr_refusal);
}

static int parse_flags_item(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	return weir_parse_tcp_flags(text, item, reterr_refusal);
}

static int parse_interface_item(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	return weir_parse_interface(text, item, reterr_refusal);
}

static int parse_byte_item(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	int (*const *parse)(const char *, uint8_t *, struct weir_refusal *) = context;

	return (*parse)(text, item, reterr_refusal);
}

static void read_addresses(struct weir_reader *reader, const struct weir_node *node, const char *field,
			   struct weir_prefix **prefixes, size_t *prefix_count, struct weir_set_use **uses,
			   size_t *use_count)
{
	_cleanup_(weir_freep) struct address *addresses = NULL;
	struct weir_prefix *prefix;
	struct weir_set_use *use;
	size_t count = 0;

	if (node)
		weir_read_items(reader, node, field, parse_address_item, reader, sizeof(*addresses),
				(void **)&addresses, &count);
	for (size_t i = 0; i < count && !reader->is_out_of_memory; i++) {
		if (addresses[i].is_set) {
			use = weir_array_add((void **)uses, *use_count, sizeof(*use));
			if (use)
				*use = addresses[i].use, ++*use_count;
			reader->is_out_of_memory = !use;
		} else {
			prefix = weir_array_add((void **)prefixes, *prefix_count, sizeof(*prefix));
			if (prefix)
				*prefix = addresses[i].prefix, ++*prefix_count;
			reader->is_out_of_memory = !prefix;
		}
	}
}

static void read_ranges(struct weir_reader *reader, const struct weir_node *node, enum match_field field, uint32_t high,
			const struct weir_match *match, struct weir_range **ranges, size_t *count)
{
	const struct numbers numbers = {.field = field, .high = high, .names = number_names[field], .match = match};

	if (node)
		weir_read_items(reader, node, weir_match_field_names[field], parse_range_item, &numbers,
				sizeof(**ranges), (void **)ranges, count);
}

/* Read a list of words, each of which stands for a byte. */
static size_t read_bytes(struct weir_reader *reader, const struct weir_node *node, const char *field,
			 int (*parse)(const char *, uint8_t *, struct weir_refusal *), uint8_t **ret_bytes)
{
	size_t count = 0;

	if (node)
		weir_read_items(reader, node, field, parse_byte_item, &parse, 1, (void **)ret_bytes, &count);
	return count;
}

static uint8_t read_bits(struct weir_reader *reader, const struct weir_node *node, const char *field,
			 int (*parse)(const char *, uint8_t *, struct weir_refusal *))
{
	_cleanup_(weir_freep) uint8_t *bytes = NULL;
	size_t count = read_bytes(reader, node, field, parse, &bytes);
	uint8_t bits = 0;

	for (size_t i = 0; i < count; i++)
		bits |= bytes[i];
	return bits;
}

/* ---- fields that are not ranges of numbers, by their members in struct weir_match; `node` may be NULL ---- */

static void read_families(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	match->families = read_bits(reader, node, "family", weir_parse_family);
}

static void read_fragments(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	match->fragments = read_bits(reader, node, "fragment", weir_parse_fragment);
}

static void read_directions(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	match->directions = read_bits(reader, node, "direction", weir_parse_direction);
}

static void read_protocol(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	_cleanup_(weir_freep) uint8_t *numbers = NULL;
	size_t count = read_bytes(reader, node, "protocol", weir_parse_protocol, &numbers);

	for (size_t i = 0; i < count; i++)
		match->protocol[numbers[i] / 8] |= 1 << numbers[i] % 8;
	match->has_protocol = count > 0;
}

static void read_source(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	read_addresses(reader, node, "source", &match->source, &match->source_count, &match->source_sets,
		       &match->source_set_count);
}

static void read_destination(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	read_addresses(reader, node, "destination", &match->destination, &match->destination_count,
		       &match->destination_sets, &match->destination_set_count);
}

static void read_tcp_flags(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	if (node)
		weir_read_items(reader, node, "tcpFlags", parse_flags_item, NULL, sizeof(*match->tcp_flags),
				(void **)&match->tcp_flags, &match->tcp_flags_count);
}

static void read_interface(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	if (node)
		weir_read_items(reader, node, "interface", parse_interface_item, NULL, WEIR_WANTED_BYTES,
				(void **)&match->interface, &match->interface_count);
	for (size_t i = 0; i < match->interface_count; i++)
		if (match->interface[i][0] != WEIR_WORD_EXCEPTS)
			return;
	if (match->interface_count)
		weir_complain(reader, node, "first write what it is an exception from: ['*', '!eth0']",
			      "'interface' has only exceptions");
}

/* It may name resources that are read later: weir_read_excepts(). */
static void read_except(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	reader->except_nodes[reader->ruleset->resource_count - 1] = node;
}

/* ---- conditions that cannot be true together: legal, but surely not intended ---- */

/* The families of the addresses that these accept. What is outside of a set has both. */
static uint8_t families_of(const struct weir_ruleset *ruleset, const struct weir_prefix *prefixes, size_t count,
			   const struct weir_set_use *uses, size_t use_count)
{
	bool has_any = count > 0;
	uint8_t families = 0;

	for (size_t i = 0; i < count; i++)
		families |= prefixes[i].family == 6 ? 2 : 1;
	for (size_t i = 0; i < use_count; i++) {
		const struct weir_set *set = &ruleset->sets[uses[i].set];

		if (uses[i].excepts || !set->entry_count)
			continue;
		has_any = true;
		families |= set->entries[0].prefix.family == 4 ? 1 : 0;
		families |= set->entries[set->entry_count - 1].prefix.family == 6 ? 2 : 0;
	}
	return has_any ? families : 3;
}

static void warn_of_families(struct weir_reader *reader, const struct weir_match *match,
			     const struct weir_node *const *values)
{
	static const char *const hint = "the resource will match nothing: IPv4 and IPv6 exclude each other";
	uint8_t families = match->families ?: 3;
	uint8_t source = families_of(reader->ruleset, match->source, match->source_count, match->source_sets,
				     match->source_set_count);
	uint8_t destination = families_of(reader->ruleset, match->destination, match->destination_count,
					  match->destination_sets, match->destination_set_count);

	if (!(families & source))
		weir_warn(reader, values[MATCH_SOURCE], hint, "'source' has no prefix of the family in 'family'");
	if (!(families & destination))
		weir_warn(reader, values[MATCH_DESTINATION], hint,
			  "'destination' has no prefix of the family in 'family'");
	if (!(source & destination))
		weir_warn(reader, values[MATCH_DESTINATION], hint,
			  "'source' and 'destination' have no family in common");
}

/* Conditions that need a transport header, and the protocols that have one. */
static const struct transport_field {
	enum match_field field;
	uint8_t protocols[4]; /* ends with 0 */
} transport_fields[] = {
	{MATCH_SOURCE_PORT, {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP}},
	{MATCH_DESTINATION_PORT, {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP}},
	{MATCH_TCP_FLAGS, {IPPROTO_TCP}},
	{MATCH_ICMP_TYPE, {IPPROTO_ICMP, IPPROTO_ICMPV6}},
};

static bool share_protocol(const struct transport_field *left, const struct transport_field *right)
{
	for (const uint8_t *a = left->protocols; *a; a++)
		if (memchr(right->protocols, *a, sizeof(right->protocols)))
			return true;
	return false;
}

static void warn_of_transport(struct weir_reader *reader, const struct weir_match *match,
			      const struct weir_node *const *values)
{
	for (size_t i = 0; i < ARRAY_SIZE(transport_fields); i++) {
		const struct transport_field *transport = &transport_fields[i];
		const struct weir_node *value = values[transport->field];
		const char *name = weir_match_field_names[transport->field];
		bool is_possible = false;

		if (!value)
			continue;
		for (const uint8_t *protocol = transport->protocols; *protocol; protocol++)
			is_possible |= takes_protocol(match, *protocol);
		if (!is_possible)
			weir_warn(reader, value, "the resource will match nothing: leave one of the two out",
				  "no protocol in 'protocol' has '%s'", name);
		if (match->fragments == 1 << WEIR_FRAGMENT_LATER)
			weir_warn(reader, value, "the resource will match nothing: leave one of the two out",
				  "a later fragment has no '%s'", name);
		for (size_t j = 0; j < i; j++)
			if (values[transport_fields[j].field] && !share_protocol(transport, &transport_fields[j]))
				weir_warn(reader, value, "the resource will match nothing: leave one of the two out",
					  "no packet has both '%s' and '%s'",
					  weir_match_field_names[transport_fields[j].field], name);
	}
}

/* A card pads frames to ETH_ZLEN bytes: a bound up to there distinguishes nothing on a wire, but does on a veth. */
static void warn_of_padding(struct weir_reader *reader, const struct weir_match *match,
			    const struct weir_node *const *values)
{
	for (size_t i = 0; i < match->length_count; i++) {
		const struct weir_range *range = &match->length[i];

		if (range->high > ETH_ZLEN && (!range->low || range->low > ETH_ZLEN))
			continue;
		weir_warn(reader, values[MATCH_LENGTH],
			  "write 'ipLength': it counts from the IP header on, 14 bytes fewer, and no padding",
			  "'length' below 61 depends on padding: network cards pad shorter frames to 60 bytes");
		return;
	}
}

void weir_read_match(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	const struct weir_node *values[MATCH_FIELD_COUNT];
	size_t mistakes = reader->mistakes;

	weir_read_fields(reader, node, "match", weir_match_field_names, MATCH_FIELD_COUNT, false, values);
#define READ_SPECIAL(constant, name, member, part) read_##member(reader, values[MATCH_##constant], match);
#define READ_RANGES(constant, name, member, highest, none, who)                                                        \
	read_ranges(reader, values[MATCH_##constant], MATCH_##constant, highest, match, &match->member,                \
		    &match->member##_count);
	WEIR_MATCH_FIELDS(READ_SPECIAL, READ_RANGES)
	/* If a mistake left a value out, the remaining values must not be blamed. */
	if (reader->mistakes != mistakes || reader->is_incomplete)
		return;
	warn_of_families(reader, match, values);
	warn_of_transport(reader, match, values);
	warn_of_padding(reader, match, values);
}

/* ---- the flow key ---- */

struct flow_draft {
	const struct weir_reader *reader;
	struct weir_flow *flow;
	uint8_t families;
	const char *of_all; /* advice for "no key" */
};

/* Is this a time, such as "minute" or "10s"? */
static bool is_time(const char *text)
{
	struct weir_refusal ignored;
	char one[16];
	uint64_t ns;

	snprintf(one, sizeof(one), "%s%.8s", isdigit((unsigned char)text[0]) ? "" : "1", text);
	return !weir_parse_duration(one, &ns, &ignored);
}

/* Is this "all", or a word that other tools use for it? */
static bool is_no_key(const char *text)
{
	static const char *const words[] = {"all", "none", "any", "no", "global", "total"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(text, words[i]))
			return true;
	return false;
}

/* The set after the '@' of a key field must be there, and have labels. */
static int check_key_set(const struct weir_reader *reader, const char *word, struct weir_refusal *refusal)
{
	struct weir_set_use use;
	int err = weir_parse_set_use(reader, word, &use, refusal);

	if (err || use.set == SIZE_MAX || reader->ruleset->sets[use.set].has_labels)
		return err;
	weir_refuse(refusal, "set '%.*s' has no labels to tell flows apart", WEIR_SHOWN(use.name));
	return weir_advise(refusal, "write 'labels: true' in the set");
}

/* The items are fields of one key, so there is no list to store: `item` is an unused byte. */
static int parse_flow_item(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal)
{
	const struct flow_draft *draft = context;
	const char *set;
	int err;

	if (is_no_key(text) || is_time(text)) {
		weir_refuse(reterr_refusal, "'%.*s' is not a field of a flow key", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "%s",
				   is_time(text) ? "write the time in the rate: 'rate: 6/min'" : draft->of_all);
	}
	err = weir_parse_flow_field(text, draft->families, draft->flow, reterr_refusal);
	set = strchr(text, '@');
	return err || !set ? err : check_key_set(draft->reader, set, reterr_refusal);
}

static void read_key(struct weir_reader *reader, const struct weir_node *node, const char *field,
		     const struct flow_draft *draft)
{
	_cleanup_(weir_freep) void *unused = NULL;
	size_t count = 0;

	/* Unlike a condition, a key may be empty: the whole resource is then one flow. */
	if (node->kind == WEIR_NODE_LIST && !node->count)
		return;
	weir_read_items(reader, node, field, parse_flow_item, draft, 1, &unused, &count);
}

/* The node in which the key names this field. */
static const struct weir_node *node_of_field(const struct weir_node *node, const char *name)
{
	for (size_t i = 0; node->kind == WEIR_NODE_LIST && i < node->count; i++) {
		const struct weir_node *item = node->items[i];

		if (item->kind == WEIR_NODE_WORD && strcspn(item->text, "/@") == strlen(name) &&
		    !strncmp(item->text, name, strlen(name)))
			return item;
	}
	return node;
}

/* Ports below are servers' (RFC 6335, 6). */
#define WELL_KNOWN_PORTS 1024

static bool are_well_known(const struct weir_match *match)
{
	for (size_t i = 0; i < match->destination_port_count; i++)
		if (match->destination_port[i].high >= WELL_KNOWN_PORTS)
			return false;
	return match->destination_port_count && !match->source_port_count;
}

/* Words that are right for what comes in, and mean something else for what goes out. */
static void check_ends_out(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
			   const struct weir_flow *flow)
{
	const uint32_t remote = WEIR_KEY_SOURCE | WEIR_KEY_RELATIVE(WEIR_KEY_SOURCE);
	const uint32_t remote_port = WEIR_KEY_SOURCE_PORT | WEIR_KEY_RELATIVE(WEIR_KEY_SOURCE_PORT);
	const bool is_by_remote = (flow->fields & remote) == remote;

	const uint32_t others = WEIR_KEY_DESTINATION | WEIR_KEY_DESTINATION_PORT | remote_port;
	const bool has_source = flow->fields & WEIR_KEY_SOURCE && !is_by_remote;

	if (has_source && !(flow->fields & others & ~WEIR_KEY_SOURCE_PORT))
		weir_warn(reader, node_of_field(node, "source"),
			  "write 'remote' for a limit for each receiver, or 'local' if this is what you mean",
			  "the source of outgoing packets is this host: all that it sends to share one limit");
	if (is_by_remote && (flow->fields & remote_port) != remote_port && are_well_known(match))
		weir_warn(reader, node_of_field(node, "remote"),
			  "to limit what this host answers, write 'sourcePort' in its match instead; for what it asks "
			  "others, add 'remotePort' to the key",
			  "outgoing packets to these destination ports are this host's requests to others");
}

/* Which end is a packet's own source depends on its direction. */
static void check_ends(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		       const struct weir_flow *flow)
{
	const uint8_t directions = weir_match_directions(match);

	for (int bit = 0; bit < WEIR_KEY_ENDS_COUNT; bit++) {
		const uint32_t field = 1u << bit, other = WEIR_KEY_OTHER_END(field);
		const char *name = weir_key_field_names[bit];
		char hint[64];

		if (!(flow->fields & field) || flow->fields & WEIR_KEY_RELATIVE(field))
			continue;
		snprintf(hint, sizeof(hint), "write '%s' for one flow of both directions",
			 weir_key_field_name(WEIR_KEY_RELATIVE(field), bit));
		if (directions == WEIR_MATCHES_BOTH)
			weir_warn(reader, node_of_field(node, name), hint,
				  "'%s' is one end of incoming packets and the other end of outgoing ones: each "
				  "direction has separate flows",
				  name);
		else if (directions == WEIR_MATCHES_OUT && flow->fields & WEIR_KEY_RELATIVE(other))
			weir_complain(reader, node_of_field(node, name), "leave one of them out",
				      "'%s' and '%s' are the same end of outgoing packets", name,
				      weir_key_field_name(WEIR_KEY_RELATIVE(other), bit ^ 1));
	}
	if (directions == WEIR_MATCHES_OUT)
		check_ends_out(reader, node, match, flow);
}

void weir_read_flow(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		    struct weir_flow *flow)
{
	const struct flow_draft draft = {reader, flow, match->families,
					 "leave 'flow' out: the whole resource is then one flow"};

	read_key(reader, node, "flow", &draft);
	check_ends(reader, node, match, flow);
}

void weir_read_per(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		   struct weir_flow *flow)
{
	const struct flow_draft draft = {reader, flow, match->families, "write 'per: all' without other fields"};

	if (node->kind != WEIR_NODE_WORD || strcmp(node->text, "all"))
		read_key(reader, node, "per", &draft);
	check_ends(reader, node, match, flow);
}

void weir_read_fair_by(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		       struct weir_flow *flow)
{
	const struct flow_draft draft = {reader, flow, match->families,
					 "write the field that distinguishes those who share"};

	read_key(reader, node, "fairBy", &draft);
	check_ends(reader, node, match, flow);
}

bool weir_match_holds_tcp(const struct weir_match *match)
{
	return !match->has_protocol || match->protocol[IPPROTO_TCP / 8] >> IPPROTO_TCP % 8 & 1;
}

bool weir_match_means(const struct weir_match *match, const char *interface)
{
	return !match->interface_count ||
	       weir_words_mean((const char(*)[WEIR_WANTED_BYTES])match->interface, match->interface_count, interface);
}

const char *weir_match_splits_connections(const struct weir_match *match)
{
	if (match->tcp_flags_count)
		return "tcpFlags";
	if (match->length_count)
		return "length";
	if (match->ip_length_count)
		return "ipLength";
	if (match->dscp_count)
		return "dscp";
	if (match->ttl_count)
		return "ttl";
	return match->fragments & 1 << WEIR_FRAGMENT_FIRST ? "fragment" : NULL;
}
