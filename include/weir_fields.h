/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of a match and of a flow key, in one table each. The code that reads rule files, compiles and prints them,
 * and the program are made from these tables, or do not build if one of the fields is missing.
 * docs/internals/extending.md walks through adding a field; tests/unit/fields_test looks for each in docs/matching.md.
 */
#ifndef WEIR_ABI_FIELDS_H
#define WEIR_ABI_FIELDS_H

/* ---- the match ---- */

/* The fields of a packet that the program looks up: bits of weir_config.match_fields and .asked_fields. A field that is
 * not used costs nothing, because the verifier removes its code.
 */
enum weir_match_field {
	WEIR_MATCH_NOTHING = 0,
	WEIR_MATCH_KIND = 1 << 0, /* family, fragment, protocol, direction */
	WEIR_MATCH_SOURCE = 1 << 1,
	WEIR_MATCH_DESTINATION = 1 << 2,
	WEIR_MATCH_SOURCE_PORT = 1 << 3,
	WEIR_MATCH_DESTINATION_PORT = 1 << 4,
	WEIR_MATCH_TCP_FLAGS = 1 << 5,
	WEIR_MATCH_ICMP_TYPE = 1 << 6,
	WEIR_MATCH_VLAN = 1 << 7,
	WEIR_MATCH_INTERFACE = 1 << 8,
	WEIR_MATCH_DSCP = 1 << 9,
	WEIR_MATCH_LENGTH = 1 << 10,
	WEIR_MATCH_IP_LENGTH = 1 << 11,
	WEIR_MATCH_TTL = 1 << 12,
	WEIR_MATCH_ALL = (1 << 13) - 1
};

/* From this bit on, fields that few loads use. The program tests once whether it looks up any of them, so a field that
 * is added at the end costs other loads no instruction.
 */
#define WEIR_MATCH_FIRST_RARE 10

#define WEIR_PORT_NONE 65536u	  /* index of a packet without ports */
#define WEIR_BYTE_NONE 256u	  /* ... without TCP flags, or ICMP type */
#define WEIR_VLAN_NONE 4096u	  /* ... without a VLAN tag */
#define WEIR_LENGTH_LONGER 65536u /* ... longer than any length a rule can name */
#define WEIR_DSCP_NONE 64u	  /* none: every IP packet has one */
#define WEIR_TTL_NONE 256u	  /* as above */

/*
 * In the order of docs/matching.md. Most fields are numbers, of which a rule lists ranges:
 *
 *	RANGE(bit of enum weir_match_field, name in rule files, member, highest value, index of a packet without, who)
 *
 * The member is a list of ranges in struct weir_match, and in struct weir_classes an array from 0 to that index. The
 * last column says which packets can have the field: EVERY kind, or those with PORTS or an ICMP TYPE. Other fields are
 * handled one by one:
 *
 *	SPECIAL(constant, name in rule files, member of struct weir_match, bit of enum weir_match_field)
 *
 * `except` is about other resources, and the program looks up nothing for it: WEIR_MATCH_NOTHING.
 */
#define WEIR_MATCH_FIELDS(SPECIAL, RANGE)                                                                              \
	SPECIAL(FAMILY, "family", families, KIND)                                                                      \
	SPECIAL(PROTOCOL, "protocol", protocol, KIND)                                                                  \
	SPECIAL(SOURCE, "source", source, SOURCE)                                                                      \
	SPECIAL(DESTINATION, "destination", destination, DESTINATION)                                                  \
	RANGE(SOURCE_PORT, "sourcePort", source_port, 65535, WEIR_PORT_NONE, PORTS)                                    \
	RANGE(DESTINATION_PORT, "destinationPort", destination_port, 65535, WEIR_PORT_NONE, PORTS)                     \
	RANGE(VLAN, "vlan", vlan, 4095, WEIR_VLAN_NONE, EVERY)                                                         \
	RANGE(DSCP, "dscp", dscp, 63, WEIR_DSCP_NONE, EVERY)                                                           \
	SPECIAL(TCP_FLAGS, "tcpFlags", tcp_flags, TCP_FLAGS)                                                           \
	RANGE(ICMP_TYPE, "icmpType", icmp_type, 255, WEIR_BYTE_NONE, TYPE)                                             \
	SPECIAL(FRAGMENT, "fragment", fragments, KIND)                                                                 \
	RANGE(LENGTH, "length", length, 65535, WEIR_LENGTH_LONGER, EVERY)                                              \
	RANGE(IP_LENGTH, "ipLength", ip_length, 65535, WEIR_LENGTH_LONGER, EVERY)                                      \
	RANGE(TTL, "ttl", ttl, 255, WEIR_TTL_NONE, EVERY)                                                              \
	SPECIAL(INTERFACE, "interface", interface, INTERFACE)                                                          \
	SPECIAL(DIRECTION, "direction", directions, KIND)                                                              \
	SPECIAL(EXCEPT, "except", except, NOTHING)

/* Only those that are numbers. */
#define WEIR_RANGE_FIELDS(RANGE) WEIR_MATCH_FIELDS(WEIR_NO_FIELD, RANGE)
#define WEIR_NO_FIELD(constant, name, member, part)

#define WEIR_BIT_OF_SPECIAL(constant, name, member, part) | WEIR_MATCH_##part
#define WEIR_BIT_OF_RANGE(constant, name, member, highest, none, who) | WEIR_MATCH_##constant
_Static_assert((0 WEIR_MATCH_FIELDS(WEIR_BIT_OF_SPECIAL, WEIR_BIT_OF_RANGE)) == WEIR_MATCH_ALL,
	       "what the program looks up is a field of the table, and each field is looked up");

#define WEIR_HAS_INDEX_BEYOND(constant, name, member, highest, none, who)                                              \
	_Static_assert((none) > (highest), "a packet without the field must not look like one with it");
WEIR_RANGE_FIELDS(WEIR_HAS_INDEX_BEYOND)

/* ---- the flow key ---- */

/*
 *	X(constant, name in rule files, member of struct weir_flow_key, bit of enum weir_match_field, form)
 *
 * The bit says what the program must read from a packet for it. The form says how the program takes it from the
 * packet's member of that name (bpf/packet/flow.h), and how it is printed: ADDRESS (with the prefix length of the key),
 * PORT (network order), PROTOCOL (by name), NUMBER, or VLAN, a number of twelve bits. The last two forms are not part
 * of the 5-tuple, so these fields distinguish connections as well.
 */
#define WEIR_KEY_FIELDS(X)                                                                                             \
	X(SOURCE, "source", source, SOURCE, ADDRESS)                                                                   \
	X(DESTINATION, "destination", destination, DESTINATION, ADDRESS)                                               \
	X(SOURCE_PORT, "sourcePort", source_port, SOURCE_PORT, PORT)                                                   \
	X(DESTINATION_PORT, "destinationPort", destination_port, DESTINATION_PORT, PORT)                               \
	X(PROTOCOL, "protocol", protocol, KIND, PROTOCOL)                                                              \
	X(VLAN, "vlan", vlan, VLAN, VLAN)                                                                              \
	X(INTERFACE, "interface", ifindex, INTERFACE, NUMBER)                                                          \
	X(DSCP, "dscp", dscp, DSCP, NUMBER)                                                                            \
	X(TTL, "ttl", ttl, TTL, NUMBER)

#define WEIR_KEY_PLACE(constant, name, member, part, form) WEIR_KEY_PLACE_##constant,
enum weir_key_place { WEIR_KEY_FIELDS(WEIR_KEY_PLACE) WEIR_KEY_FIELD_COUNT };

/* Bits of weir_rule.key_fields. */
#define WEIR_KEY_BIT(constant, name, member, part, form) WEIR_KEY_##constant = 1 << WEIR_KEY_PLACE_##constant,
enum weir_key_field { WEIR_KEY_FIELDS(WEIR_KEY_BIT) };

/*
 * The two ends of a packet. Members `source` and `source_port` of a flow key are of the remote end, which sends what
 * comes in and receives what goes out. The other two are of the local end. So a flow of both directions has one key.
 * Beside the bit of such a field in key_fields:
 *	TURNED		of both directions: taken from the packet's own source or destination, whichever end that is
 *	RELATIVE	a rule file calls it `remote`, `local`, `remotePort` or `localPort`; for words alone
 *	REVERSED	... of a resource that only goes out: the others are called by the other end's name
 *	LABEL		by the label that a set gives the address. Then the member begins with the label's hash
 *			(tables/labels.h), and the key has a family only if its other end is an address.
 *	SET		... the set's number; for words alone, as its name makes no difference
 */
#define WEIR_KEY_ENDS (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION | WEIR_KEY_SOURCE_PORT | WEIR_KEY_DESTINATION_PORT)
#define WEIR_KEY_ENDS_COUNT 4
#define WEIR_KEY_OTHER_END(field) (((field)&0x5) << 1 | ((field)&0xa) >> 1)
_Static_assert(WEIR_KEY_ENDS == 0xf && WEIR_KEY_OTHER_END(WEIR_KEY_SOURCE) == WEIR_KEY_DESTINATION &&
		       WEIR_KEY_OTHER_END(WEIR_KEY_DESTINATION_PORT) == WEIR_KEY_SOURCE_PORT,
	       "the ends are neighbours");
#define WEIR_KEY_TURNED(field) ((field) << 12)
#define WEIR_KEY_RELATIVE(field) ((field) << 16)
#define WEIR_KEY_REVERSED (1 << 20)
#define WEIR_KEY_LABEL(field) ((field) << 10)
#define WEIR_KEY_LABELS WEIR_KEY_LABEL(WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION)
#define WEIR_KEY_LABEL_ENDS(key_fields) ((key_fields) >> 10 & (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION))
#define WEIR_KEY_SETS_MAX 31 /* sets in flow keys of one load: five bits for each end. Chosen, not derived */
#define WEIR_KEY_SET(place, number) ((__u32)(number) << (21 + 5 * (place)))
#define WEIR_KEY_SET_OF(key_fields, place) ((key_fields) >> (21 + 5 * (place)) & WEIR_KEY_SETS_MAX)

#endif
