/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The words and numbers of a rule file. Each function reads one whole token, in integers: `80abc` is not 80, `010` is
 * not 8, and a value that does not fit is a mistake, never truncated. Pure; knows nothing of files or YAML.
 *
 * Each returns 0, or -EINVAL with *reterr_refusal saying what is wrong with the token and what to write.
 */
#ifndef WEIR_RULES_SCALARS_H
#define WEIR_RULES_SCALARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/ruleset.h"
#include "weir_abi.h"

/* Why a token was refused. Text that is too long is cut at the end of a character. */
struct weir_refusal {
	char message[224];
	char hint[224]; /* empty: none */
};

/* Advice for a condition of the form "all but". */
#define WEIR_NO_ALL_BUT                                                                                                \
	"there is no 'all but': write the ranges that remain; addresses can be in a set, and \"!@SET\" means all "     \
	"others"

/* Our name for a word that other tools use: "source" for src or saddr. NULL: not such a word. */
const char *weir_our_word(const char *word, size_t bytes);

/* weir_refuse() writes the reason; weir_advise() then adds what to write instead. Both return -EINVAL. */
int weir_refuse(struct weir_refusal *refusal, const char *format, ...) __attribute__((format(printf, 2, 3)));
int weir_advise(struct weir_refusal *refusal, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For messages: arguments for "%.*s" that show a token, cut after some 60 bytes at the end of a character. */
#define WEIR_SHOWN(text) weir_shown_bytes(text), (text)
int weir_shown_bytes(const char *text);

/* Largest threshold in units: its millionths must fit into 64 bits, rounded down to a power of ten. */
#define WEIR_THRESHOLD_UNITS_MAX 10000000000000ull

/* Decimal digits without sign or leading zeros, `low` to `high`. */
int weir_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *ret_number,
		      struct weir_refusal *reterr_refusal);

/* Parse a decimal with at most six decimal places, 0 to WEIR_THRESHOLD_UNITS_MAX, exactly, in millionths. The grammar
 * is JSON's, including exponents ("1e3", "12.50"), since Sentinel's users keep JSON. The limit of six places is on the
 * value, not its spelling: 1.0000000 is 1. weir's own thresholds are in quantity.h.
 */
int weir_parse_json_threshold(const char *text, uint64_t *ret_micro, struct weir_refusal *reterr_refusal);

/* Parse "53" or "1024-65535": both ends are included and within 0 to `high`. */
int weir_parse_range(const char *text, uint32_t high, struct weir_range *ret_range,
		     struct weir_refusal *reterr_refusal);

/* The same with names for some numbers, such as "ef" for dscp; `names` ends with a NULL. A range cannot contain names.
 */
struct weir_number_name {
	const char *name;
	uint32_t number;
};
int weir_parse_named_range(const char *text, uint32_t high, const struct weir_number_name *names,
			   struct weir_range *ret_range, struct weir_refusal *reterr_refusal);

/* DSCP code points by the names in their RFCs: "ef", "af11" to "af43", "cs0" to "cs7", "le". */
extern const struct weir_number_name weir_dscp_names[];

/* Ports by the names of services: "dns", "https". */
extern const struct weir_number_name weir_port_names[];

/* Parse "192.0.2.0/24" or "2001:db8::/32", or an address alone, which means its full length. An IPv4-mapped IPv6
 * address, "::ffff:192.0.2.1", is read as the IPv4 address.
 */
int weir_parse_prefix(const char *text, struct weir_prefix *ret_prefix, struct weir_refusal *reterr_refusal);

/* The same for callers whose input comes from logs and other programs: host bits may be set, as in a ban script's
 * ADDRESS/64, and the result is the network; what stands around an address in a log (a zone, brackets, a port) is cut
 * off. In advice, several networks are words of a command line, or lines, rather than a list.
 */
int weir_parse_network(const char *text, struct weir_prefix *ret_prefix, struct weir_refusal *reterr_refusal);

/* Parse "192.0.2.1-192.0.2.9", with spaces around the '-' or without: the fewest prefixes that cover it.
 * -ENOENT, without a refusal: the text is no range.
 */
#define WEIR_RANGE_PREFIXES_MAX 254
int weir_parse_address_range(const char *text, struct weir_prefix ret_prefixes[WEIR_RANGE_PREFIXES_MAX],
			     size_t *ret_count, struct weir_refusal *reterr_refusal);

/* A protocol's name, or its number 0 to 255. */
#define WEIR_PROTOCOL_CHOICES "tcp, udp, sctp, icmp, icmpv6, gre, esp, ah ..."
int weir_parse_protocol(const char *text, uint8_t *ret_protocol, struct weir_refusal *reterr_refusal);

/* A name often taken for a protocol that is really a port of one. NULL: no such name is known. */
struct weir_service {
	const char *name, *protocol;
	unsigned int port;
};
const struct weir_service *weir_find_service(const char *name);

/* Parse "syn,!ack": flags that must be set, and after '!' flags that must be clear. */
int weir_parse_tcp_flags(const char *text, struct weir_tcp_flags *ret_flags, struct weir_refusal *reterr_refusal);

/* Parse one fragment word: "none" is bit WEIR_FRAGMENT_NONE and so on; "any" is first or later. */
int weir_parse_fragment(const char *text, uint8_t *ret_fragments, struct weir_refusal *reterr_refusal);

/* "ipv4" is bit 0, "ipv6" bit 1. */
int weir_parse_family(const char *text, uint8_t *ret_families, struct weir_refusal *reterr_refusal);

/* "in", "out" and "both" as WEIR_MATCHES_IN and _OUT. */
int weir_parse_direction(const char *text, uint8_t *ret_directions, struct weir_refusal *reterr_refusal);

/* Parse a name that the kernel accepts for a network interface (dev_valid_name in net/core/dev.c), a pattern of such
 * names, or an exception.
 */
int weir_parse_interface(const char *text, char ret_word[WEIR_WANTED_BYTES], struct weir_refusal *reterr_refusal);

/*
 * Parse one field of a flow key, such as "sourcePort", "source" or "source/24/56", and add it to *flow. A single prefix
 * length is accepted only if `families` (as in weir_match) names one family.
 */
int weir_parse_flow_field(const char *text, uint8_t families, struct weir_flow *flow,
			  struct weir_refusal *reterr_refusal);

/* Parse the name of a program that blocks and allows sources (weir_timed.h): 1 to 15 letters, digits, '-', '_', '.'. */
int weir_parse_by(const char *text, char ret_by[WEIR_BY_BYTES], struct weir_refusal *reterr_refusal);

/* Check the name of a rule or resource: 1 to 127 bytes of UTF-8 without ';' and control characters (printable.h). */
int weir_check_name(const char *text, struct weir_refusal *reterr_refusal);

/*
 * Each entry of the array is a struct that begins with a `const char *`. Returns the name nearest to `word` (letters
 * changed, missing, added or swapped; case is ignored), or NULL if none is near enough to be what was meant.
 */
const char *weir_nearest(const char *word, const void *entries, size_t count, size_t entry_bytes);

/* Order by family, address, length: below 0, 0 or above 0, as for qsort. A prefix comes directly after those that
 * enclose it.
 */
int weir_compare_prefixes(const struct weir_prefix *left, const struct weir_prefix *right);

/* Does the outer prefix cover all addresses of the inner one? */
bool weir_prefix_encloses(const struct weir_prefix *outer, const struct weir_prefix *inner);

/* ---- formatting ---- */

#define WEIR_PREFIX_TEXT_BYTES 64
/* Format "192.0.2.0/24"; an address alone if the length is the full one. */
const char *weir_format_prefix(const struct weir_prefix *prefix, char ret_text[WEIR_PREFIX_TEXT_BYTES]);

/* Format "@NAME", "@NAME:LABEL", and the same after '!'. */
#define WEIR_SET_USE_BYTES (WEIR_NAME_BYTES + WEIR_LABEL_BYTES + 4)
const char *weir_format_set_use(const struct weir_set_use *use, char ret_text[WEIR_SET_USE_BYTES]);

/* The name of a protocol, or NULL if weir has none for it. */
const char *weir_protocol_name(uint8_t protocol);

#define WEIR_TCP_FLAG_COUNT 8
extern const char *const weir_tcp_flag_names[WEIR_TCP_FLAG_COUNT]; /* by bit */

extern const char *const weir_key_field_names[WEIR_KEY_FIELD_COUNT]; /* by bit of enum weir_key_field */

/* The name that rule files use for a key field, in a flow key or a rule's identity: "source", "remote". */
const char *weir_key_field_name(uint32_t key_fields, int bit);
#define WEIR_KEY_FIELD_BYTES (WEIR_NAME_BYTES + 16) /* with lengths, or a set: "destination@NAME" */

/* The same for the address that a rule's overrides refer to. */
const char *weir_override_name(const struct weir_ruleset_rule *rule);

/* Sentinel's names for its enums; their index is both Sentinel's number and ours. */
#define WEIR_STRATEGY_COUNT 3
#define WEIR_BEHAVIOR_COUNT 2
#define WEIR_RELATION_COUNT 2
#define WEIR_WINDOW_COUNT 4
extern const char *const weir_window_names[WEIR_WINDOW_COUNT];		       /* enum weir_window_kind */
extern const char *const weir_strategy_names[WEIR_STRATEGY_COUNT];	       /* enum weir_strategy */
extern const char *const weir_on_block_names[WEIR_ON_BLOCK_COUNT];	       /* enum weir_on_block */
extern const char *const weir_behavior_names[WEIR_BEHAVIOR_COUNT];	       /* enum weir_behavior */
extern const char *const weir_relation_names[WEIR_RELATION_COUNT];	       /* enum weir_relation */
extern const char *const weir_system_metric_names[WEIR_SYSTEM_COUNT];	       /* enum weir_system_metric */
extern const char *const weir_breaker_strategy_names[WEIR_BREAKER_STRATEGIES]; /* enum weir_breaker_strategy */

/* Parse EtherTypes that are not IP into a struct weir_range: a name, or a number, decimal or 0x... To be used as
 * weir_item_parser.
 */
int weir_parse_ethertypes(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal);
/* The name of such a range, or else its number, written to `text`. Returns the name or `text`. */
#define WEIR_ETHERTYPE_TEXT_BYTES 8
const char *weir_format_ethertypes(const struct weir_range *range, char *text);

/* ---- words that select interfaces ----
 *
 * For `-i` and `match.interface` alike: a name, a pattern for names (fnmatch(3)), or
 * either after '!', which makes an exception from the patterns.
 */

#define WEIR_WORD_EXCEPTS '!'

/* Is the word a pattern or an exception? If so, no matching interface needs to exist. */
bool weir_word_is_pattern(const char *word);

/* Do the words select the interface of this name: by its name, or by a pattern without an exception? No pattern selects
 * the loopback interface.
 */
bool weir_words_mean(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *name);

/* Is one of the words exactly this word? */
bool weir_words_have(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *word);

#endif
