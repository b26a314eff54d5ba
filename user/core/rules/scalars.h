/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The words and numbers of a rule file: each function reads one whole token, in integers. `80abc` is
 * not 80, `010` is not 8, and what does not fit is a mistake, never cut short. Pure; knows nothing of
 * files or YAML.
 *
 * Each returns 0, or -EINVAL with *reterr_refusal saying what is wrong with the token and what to write.
 */
#ifndef WEIR_RULES_SCALARS_H
#define WEIR_RULES_SCALARS_H

#include <stddef.h>
#include <stdint.h>

#include "rules/ruleset.h"

/* Why a token was refused. Cut, if need be, at the end of a character. */
struct weir_refusal {
	char message[224];
	char hint[224]; /* empty: none */
};

/* Write why, without advice; then what to write instead. Both return -EINVAL. */
/* What to do in place of a condition that takes all but some. */
#define WEIR_NO_ALL_BUT                                                                                                \
	"there is no 'all but': write the ranges that remain; addresses that no rule should limit can be under "       \
	"'allow:'"

/* Our name for what others call `word`: "source" for src or saddr. NULL: none of these. */
const char *weir_our_word(const char *word, size_t bytes);

int weir_refuse(struct weir_refusal *refusal, const char *format, ...) __attribute__((format(printf, 2, 3)));
int weir_advise(struct weir_refusal *refusal, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For messages: "%.*s" of a token, cut after some 60 bytes at the end of a character. */
#define WEIR_SHOWN(text) weir_shown_bytes(text), (text)
int weir_shown_bytes(const char *text);

/* Largest threshold in units: what fits millionths in 64 bits, rounded down to a power of ten. */
#define WEIR_THRESHOLD_UNITS_MAX 10000000000000ull

/* Decimal digits without sign or leading zeros, `low` to `high`. */
int weir_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *ret_number,
		      struct weir_refusal *reterr_refusal);

/* A decimal of at most six places, 0 to WEIR_THRESHOLD_UNITS_MAX, exactly, in millionths, by JSON's grammar, exponent
 * included ("1e3", "12.50"), as Sentinel's users keep it. It is the value that has at most six decimals, not its
 * spelling: 1.0000000 is 1. weir's own thresholds are in quantity.h.
 */
int weir_parse_json_threshold(const char *text, uint64_t *ret_micro, struct weir_refusal *reterr_refusal);

/* "53" or "1024-65535", both ends included and within 0 to `high`. */
int weir_parse_range(const char *text, uint32_t high, struct weir_range *ret_range,
		     struct weir_refusal *reterr_refusal);

/* The same with names for some numbers, such as "ef" of dscp; `names` ends with a NULL. No names within a range. */
struct weir_number_name {
	const char *name;
	uint32_t number;
};
int weir_parse_named_range(const char *text, uint32_t high, const struct weir_number_name *names,
			   struct weir_range *ret_range, struct weir_refusal *reterr_refusal);

/* Code points by the names of their RFCs: "ef", "af11" to "af43", "cs0" to "cs7", "le". */
extern const struct weir_number_name weir_dscp_names[];

/* "192.0.2.0/24", "2001:db8::/32", or an address alone, which stands for its whole length. An IPv4 address as IPv6 maps
 * it, "::ffff:192.0.2.1", is the IPv4 address.
 */
int weir_parse_prefix(const char *text, struct weir_prefix *ret_prefix, struct weir_refusal *reterr_refusal);

/* The same where host bits are none of the user's making, as a ban script's ADDRESS/64: the network that has them.
 * Several are words of a command line, or lines, and no list.
 */
int weir_parse_network(const char *text, struct weir_prefix *ret_prefix, struct weir_refusal *reterr_refusal);

/* A protocol's name, or its number 0 to 255. */
#define WEIR_PROTOCOL_CHOICES "tcp, udp, sctp, icmp, icmpv6, gre, esp, ah ..."
int weir_parse_protocol(const char *text, uint8_t *ret_protocol, struct weir_refusal *reterr_refusal);

/* What is taken for a protocol, and is a port of one. NULL: the name is none that we know. */
struct weir_service {
	const char *name, *protocol;
	unsigned int port;
};
const struct weir_service *weir_find_service(const char *name);

/* "syn,!ack": flags that must be set, and after '!' flags that must not. */
int weir_parse_tcp_flags(const char *text, struct weir_tcp_flags *ret_flags, struct weir_refusal *reterr_refusal);

/* "none" is bit WEIR_FRAGMENT_NONE and so on; "any" is first or later. */
int weir_parse_fragment(const char *text, uint8_t *ret_fragments, struct weir_refusal *reterr_refusal);

/* "ipv4" is bit 0, "ipv6" bit 1. */
int weir_parse_family(const char *text, uint8_t *ret_families, struct weir_refusal *reterr_refusal);

/* "in", "out", "both": WEIR_MATCHES_IN and _OUT. */
int weir_parse_direction(const char *text, uint8_t *ret_directions, struct weir_refusal *reterr_refusal);

/* What the kernel takes for the name of a network interface (dev_valid_name in net/core/dev.c), or a pattern of such
 * names, or an exception (interface_words.h).
 */
int weir_parse_interface(const char *text, char ret_word[WEIR_WANTED_BYTES], struct weir_refusal *reterr_refusal);

/*
 * One field of a flow key, such as "sourcePort", "source" or "source/24/56", added to *flow. One
 * prefix length alone is understood only where `families` (as in weir_match) names one family.
 */
int weir_parse_flow_field(const char *text, uint8_t families, struct weir_flow *flow,
			  struct weir_refusal *reterr_refusal);

/* A name of a rule or resource: 1 to 127 bytes of UTF-8 without ';' and control characters (printable.h). */
int weir_check_name(const char *text, struct weir_refusal *reterr_refusal);

/*
 * The entry of an array of structs, each beginning with a `const char *`, whose name is nearest to
 * `word` (letters changed, missing, added or swapped; case counts for nothing), or NULL when none is
 * near enough to be what was meant.
 */
const char *weir_nearest(const char *word, const void *entries, size_t count, size_t entry_bytes);

/* By family, address, length: less than, equal to or above 0, as for qsort. */
int weir_compare_prefixes(const struct weir_prefix *left, const struct weir_prefix *right);

/* ---- the other way round ---- */

#define WEIR_PREFIX_TEXT_BYTES 64
/* "192.0.2.0/24"; an address alone when the length is whole. */
const char *weir_format_prefix(const struct weir_prefix *prefix, char ret_text[WEIR_PREFIX_TEXT_BYTES]);

/* The name of a protocol, or NULL when it has none here. */
const char *weir_protocol_name(uint8_t protocol);

#define WEIR_TCP_FLAG_COUNT 8
extern const char *const weir_tcp_flag_names[WEIR_TCP_FLAG_COUNT]; /* by bit */

extern const char *const weir_key_field_names[WEIR_KEY_FIELD_COUNT]; /* by bit of enum weir_key_field */

/* What a rule file calls a field of this key, of a flow or of a rule's identity: "source", "remote". */
const char *weir_key_field_name(uint32_t key_fields, int bit);

/* ... and the address that a rule's overrides name. */
const char *weir_override_name(const struct weir_ruleset_rule *rule);

/* Sentinel's names of its enums; their places are its numbers, and ours. */
#define WEIR_STRATEGY_COUNT 3
#define WEIR_BEHAVIOR_COUNT 2
#define WEIR_RELATION_COUNT 2
#define WEIR_WINDOW_COUNT 4
extern const char *const weir_window_names[WEIR_WINDOW_COUNT];		       /* enum weir_window_kind */
extern const char *const weir_strategy_names[WEIR_STRATEGY_COUNT];	       /* enum weir_strategy */
extern const char *const weir_behavior_names[WEIR_BEHAVIOR_COUNT];	       /* enum weir_behavior */
extern const char *const weir_relation_names[WEIR_RELATION_COUNT];	       /* enum weir_relation */
extern const char *const weir_system_metric_names[WEIR_SYSTEM_COUNT];	       /* enum weir_system_metric */
extern const char *const weir_breaker_strategy_names[WEIR_BREAKER_STRATEGIES]; /* enum weir_breaker_strategy */

/* EtherTypes that are not IP, into a struct weir_range: a name, or a number, decimal or 0x... For struct weir_item. */
int weir_parse_ethertypes(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal);
/* The name of such a range, or, in `text`, the number that it is. Returns `text` or the name. */
#define WEIR_ETHERTYPE_TEXT_BYTES 8
const char *weir_format_ethertypes(const struct weir_range *range, char *text);

#endif
