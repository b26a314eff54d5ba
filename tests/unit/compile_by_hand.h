/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rule sets made by hand, without a file, and their images: what tests of the compiler share. Everything asserts
 * (cmocka) that it works; rule sets and images are the caller's to free.
 */
#ifndef WEIR_TEST_COMPILE_BY_HAND_H
#define WEIR_TEST_COMPILE_BY_HAND_H

#include "../lib/claims.h"
#include "../lib/previous.h"
#include "base/util.h"
#include "compile/build_steps.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC

/* ---- the parts ---- */

/* Nothing in it yet. Its tables are small, 4,096 rows a CPU. */
struct weir_ruleset *new_ruleset(void);

/* Matches everything, until the match that is returned says otherwise. That lives until the next resource is added. */
struct weir_match *add_resource(struct weir_ruleset *ruleset, const char *name, uint32_t key_fields);

/* `threshold` packets a second, in ten buckets. The pointer lives until the next rule is added. */
struct weir_ruleset_rule *add_rule(struct weir_ruleset *ruleset, size_t resource, const char *name, uint64_t threshold);

/* Of a match: ADD_RANGE(match, source_port, 1024, 65535). */
#define ADD_RANGE(match, field, low, high)                                                                             \
	do {                                                                                                           \
		struct weir_match *_match = (match);                                                                   \
		add_range(&_match->field, &_match->field##_count, low, high);                                          \
	} while (0)
void add_range(struct weir_range **ranges, size_t *count, uint32_t low, uint32_t high);

/* The prefix of this address, host bits cleared. */
void add_prefix(struct weir_prefix **prefixes, size_t *count, uint8_t family, const uint8_t *address,
		unsigned int bits);

/* A destination, IPv4. */
void add_address(struct weir_match *match, uint32_t address, unsigned int bits);
void add_protocol(struct weir_match *match, unsigned int protocol);
void add_flags(struct weir_match *match, uint8_t set, uint8_t clear);
void add_interface(struct weir_match *match, const char *name);

/* Of the source that is this byte and then zeros. */
void add_override(struct weir_ruleset_rule *rule, uint8_t family, uint8_t first_byte, uint8_t bits,
		  uint64_t threshold_micro);

/* ---- usual ones ---- */

/* One resource keyed by source with one rule: the usual. */
struct weir_ruleset *per_source_ruleset(uint64_t threshold);

/* Resources r1, r2 and so on, apart by destination, with a rule each. */
struct weir_ruleset *numbered_ruleset(uint32_t from, uint32_t count);

#define DIRECT WEIR_STRATEGY_DIRECT
#define WARM_UP WEIR_STRATEGY_WARM_UP
#define MEMORY WEIR_STRATEGY_MEMORY_ADAPTIVE
#define REJECT WEIR_BEHAVIOR_REJECT
#define THROTTLING WEIR_BEHAVIOR_THROTTLING
#define CURRENT WEIR_RELATION_CURRENT
#define ASSOCIATED WEIR_RELATION_ASSOCIATED

/* "own" and "ref", with these key fields and no rule. */
struct weir_ruleset *two_resources(uint32_t own_key, uint32_t ref_key);

/* A rule of every kind on "own"; resource 1 is what it may refer to. */
struct weir_ruleset_rule *add_kind(struct weir_ruleset *ruleset, const char *name, enum weir_strategy strategy,
				   enum weir_behavior behavior, enum weir_relation relation);

/* ---- compiling them ---- */

/* eth1 is 1, eth2 is 2, and so on; others do not exist. */
uint32_t test_ifindex(const char *name, void *data);

/* Two CPUs, 1,000 s after the clock began, nothing before. */
extern const struct weir_compile_options plain_options;

struct weir_image *build_with(const struct weir_ruleset *ruleset, const struct weir_compile_options *options);
struct weir_image *build(const struct weir_ruleset *ruleset);

/* Whether the rule set is refused with one mistake, whose text has `words` in it. */
void assert_refused(const struct weir_ruleset *ruleset, const struct weir_compile_options *options, const char *words);

/* Load `ruleset` after *image, which the new image replaces. */
void reload(struct weir_image **image, const struct weir_ruleset *ruleset, uint64_t now_ns);

#endif
