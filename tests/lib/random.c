// SPDX-License-Identifier: GPL-2.0-only
#include "random.h"

#include <assert.h>
#include <inttypes.h>
#include <arpa/inet.h>
#include <string.h>

#include "base/util.h"
#include "random_breakers.h"
#include "random_client.h"
#include "rules/scalars.h"

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
uint64_t random_u64(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint64_t random_below(struct random *random, uint64_t below)
{
	return random_u64(random) % below; /* the bias is of no interest to a test */
}

uint64_t random_between(struct random *random, uint64_t low, uint64_t high)
{
	return low + random_below(random, high - low + 1);
}

bool random_percent(struct random *random, unsigned int percent)
{
	return random_below(random, 100) < percent;
}

#define PICK(random, array) ((array)[random_below(random, ARRAY_SIZE(array))])

/* ---- what rules and packets have in common ---- */

static const char *const ipv4_hosts[] = {"192.0.2.1",	 "192.0.2.2", "192.0.2.130",
					 "198.51.100.1", "10.0.0.1",  "0.0.0.0"};
static const char *const ipv6_hosts[] = {"2001:db8::1",	  "2001:db8::2", "2001:db8:0:100::1",
					 "2001:db8:1::1", "fe80::1",	 "::"};
static const uint16_t ports[] = {0, 53, 80, 443, 1024, 65535};
static const uint16_t vlans[] = {0, 1, 100, 4095};
static const uint8_t dscps[] = {0, 0, 1, 10, 46, 63};
static const uint8_t ttls[] = {1, 63, 64, 128, 255};
static const uint8_t protocols[] = {17, 17, 17, 6, 6, 6, 1, 58, 132, 47, 50, 59, 51, 255};
static const uint8_t icmp_types[] = {0, 3, 8, 128, 129, 133, 135, 137, 255};
static const uint8_t tcp_flag_bytes[] = {0x02, 0x12, 0x10, 0x18, 0x01, 0x04, 0x00, 0xff};

uint32_t random_ifindex(const char *name)
{
	return strcmp(name, RANDOM_INTERFACE) == 0 ? RANDOM_IFINDEX : 2;
}

static void random_address(struct random *random, uint8_t family, uint8_t *to)
{
	int parsed;

	memset(to, 0, 16);
	if (family == 4)
		parsed = inet_pton(AF_INET, PICK(random, ipv4_hosts), to);
	else
		parsed = inet_pton(AF_INET6, PICK(random, ipv6_hosts), to);
	assert(parsed == 1);
	/* Now and then a host of its own, so that tables see more than a handful of flows. */
	if (random_percent(random, 5))
		to[family == 4 ? 3 : 15] = random_u64(random);
}

/* ---- rule sets ---- */

static struct weir_prefix random_prefix(struct random *random)
{
	static const uint8_t bits4[] = {0, 1, 8, 24, 25, 31, 32, 32}, bits6[] = {0, 3, 32, 48, 56, 64, 127, 128, 128};
	struct weir_prefix prefix = {.family = random_percent(random, 50) ? 4 : 6};

	prefix.bits = prefix.family == 4 ? PICK(random, bits4) : PICK(random, bits6);
	random_address(random, prefix.family, prefix.address);
	for (unsigned int i = prefix.bits; i < 128; i++)
		prefix.address[i / 8] &= ~(0x80 >> i % 8);
	return prefix;
}

static struct weir_prefix *random_prefixes(struct random *random, size_t *ret_count)
{
	struct weir_prefix *prefixes;
	size_t count = random_between(random, 1, 3);

	prefixes = calloc(count, sizeof(*prefixes));
	assert(prefixes);
	for (size_t i = 0; i < count; i++)
		prefixes[i] = random_prefix(random);
	*ret_count = count;
	return prefixes;
}

static struct weir_range range_around(struct random *random, uint32_t value, uint32_t max)
{
	struct weir_range range = {value, value};

	if (random_percent(random, 50)) {
		range.low = random_below(random, value + 1);
		range.high = random_between(random, value, max);
	}
	return range;
}

enum range_of { RANGE_PORT, RANGE_VLAN, RANGE_DSCP, RANGE_ICMP_TYPE, RANGE_TTL, RANGE_LENGTH, RANGE_IP_LENGTH };

static struct weir_range random_range(struct random *random, enum range_of what)
{
	static const uint32_t lengths[] = {60, 64, 100, 1514, 9014}, ip_lengths[] = {28, 46, 66, 86, 1500};

	switch (what) {
	case RANGE_PORT:
		return range_around(random, PICK(random, ports), 65535);
	case RANGE_VLAN:
		return range_around(random, PICK(random, vlans), 4095);
	case RANGE_DSCP:
		return range_around(random, PICK(random, dscps), 63);
	case RANGE_ICMP_TYPE:
		return range_around(random, PICK(random, icmp_types), 255);
	case RANGE_TTL:
		return range_around(random, PICK(random, ttls), 255);
	case RANGE_IP_LENGTH:
		return range_around(random, PICK(random, ip_lengths), 65535);
	case RANGE_LENGTH:
		break;
	}
	return range_around(random, PICK(random, lengths), 65535);
}

static struct weir_range *random_ranges(struct random *random, enum range_of what, size_t *ret_count)
{
	size_t count = random_between(random, 1, 3);
	struct weir_range *ranges = calloc(count, sizeof(*ranges));

	assert(ranges);
	for (size_t i = 0; i < count; i++)
		ranges[i] = random_range(random, what);
	*ret_count = count;
	return ranges;
}

static void random_flags(struct random *random, struct weir_match *match)
{
	size_t count = random_between(random, 1, 2);

	match->tcp_flags = calloc(count, sizeof(*match->tcp_flags));
	assert(match->tcp_flags);
	match->tcp_flags_count = count;
	for (size_t i = 0; i < count; i++) {
		struct weir_tcp_flags *flags = &match->tcp_flags[i];

		flags->set = 1 << random_below(random, 8);
		if (random_percent(random, 50))
			flags->clear = (1 << random_below(random, 8)) & ~flags->set;
	}
}

static void random_protocols(struct random *random, struct weir_match *match)
{
	unsigned int count = random_between(random, 1, 3);

	match->has_protocol = true;
	for (unsigned int i = 0; i < count; i++) {
		uint8_t protocol = PICK(random, protocols);

		match->protocol[protocol / 8] |= 1 << protocol % 8;
	}
}

static void random_interfaces(struct random *random, struct weir_match *match)
{
	static const char *const names[] = {RANDOM_INTERFACE, "lan1"};
	size_t count = random_between(random, 1, 2);

	match->interface = calloc(count, sizeof(*match->interface));
	assert(match->interface);
	match->interface_count = count;
	strcpy(match->interface[0], names[count == 2 ? 0 : random_below(random, 2)]);
	if (count == 2)
		strcpy(match->interface[1], names[1]);
}

/* Each condition is rare, so that most packets meet most resources. */
static void random_match(struct random *random, struct weir_match *match)
{
	if (random_percent(random, 15))
		match->source = random_prefixes(random, &match->source_count);
	if (random_percent(random, 15))
		match->destination = random_prefixes(random, &match->destination_count);
	if (random_percent(random, 8))
		match->source_port = random_ranges(random, RANGE_PORT, &match->source_port_count);
	if (random_percent(random, 15))
		match->destination_port = random_ranges(random, RANGE_PORT, &match->destination_port_count);
	if (random_percent(random, 8))
		match->vlan = random_ranges(random, RANGE_VLAN, &match->vlan_count);
	if (random_percent(random, 8))
		match->dscp = random_ranges(random, RANGE_DSCP, &match->dscp_count);
	if (random_percent(random, 6))
		match->icmp_type = random_ranges(random, RANGE_ICMP_TYPE, &match->icmp_type_count);
	if (random_percent(random, 10))
		match->length = random_ranges(random, RANGE_LENGTH, &match->length_count);
	if (random_percent(random, 4))
		match->ip_length = random_ranges(random, RANGE_IP_LENGTH, &match->ip_length_count);
	if (random_percent(random, 4))
		match->ttl = random_ranges(random, RANGE_TTL, &match->ttl_count);
	if (random_percent(random, 6))
		random_flags(random, match);
	if (random_percent(random, 6))
		random_interfaces(random, match);
	if (random_percent(random, 20))
		random_protocols(random, match);
	if (random_percent(random, 10))
		match->families = random_between(random, 1, 3);
	if (random_percent(random, 10))
		match->fragments = random_between(random, 1, 7);
}

static void random_flow(struct random *random, struct weir_flow *flow)
{
	static const uint8_t bits4[] = {1, 8, 16, 24, 31, 32, 32, 32}, bits6[] = {1, 32, 48, 56, 64, 127, 128, 128};

	if (random_percent(random, 25))
		return; /* the whole resource */
	if (random_percent(random, 15)) {
		/* no address: a flow of both families */
		flow->fields = 1 << random_between(random, WEIR_KEY_PLACE_SOURCE_PORT, WEIR_KEY_FIELD_COUNT - 1);
		return;
	}
	if (random_percent(random, 60))
		flow->fields |= WEIR_KEY_SOURCE;
	if (random_percent(random, 20))
		flow->fields |= WEIR_KEY_DESTINATION;
	if (random_percent(random, 25))
		flow->fields |= 1 << random_between(random, WEIR_KEY_PLACE_SOURCE_PORT, WEIR_KEY_FIELD_COUNT - 1);
	if (random_percent(random, 10))
		flow->fields |= 1 << random_between(random, WEIR_KEY_PLACE_SOURCE_PORT, WEIR_KEY_FIELD_COUNT - 1);
	if (flow->fields & WEIR_KEY_SOURCE) {
		flow->source_bits[0] = PICK(random, bits4);
		flow->source_bits[1] = PICK(random, bits6);
	}
	if (flow->fields & WEIR_KEY_DESTINATION) {
		flow->destination_bits[0] = PICK(random, bits4);
		flow->destination_bits[1] = PICK(random, bits6);
	}
}

/* The key of some resource, as rules on associated resources want it; or any, be it none. */
static void random_own_key(struct random *random, const struct weir_ruleset *ruleset, struct weir_ruleset_rule *rule)
{
	if (!random_percent(random, 30))
		return;
	rule->has_own_key = true;
	if (random_percent(random, 40))
		rule->own_key = ruleset->resources[random_below(random, ruleset->resource_count)].flow;
	else
		random_flow(random, &rule->own_key);
}

static uint64_t random_threshold_micro(struct random *random, bool counts_bytes)
{
	static const uint64_t packets[] = {0,	     500000,   999999,	  1000000,    1000000,
					   2000000,  2900000,  3000000,	  5000000,    10000000,
					   20000000, 50000000, 100000000, 1000000000, 40000000000};
	static const uint64_t bytes[] = {0,	     59,	 60,	     61,	 1000,	    1514,
					 3000,	     9014,	 20000,	     65536,	 1000000,   1999999999,
					 2000000000, 2000000001, 2147483647, 2147483648, 5000000000};

	if (counts_bytes)
		return PICK(random, bytes) * WEIR_MICRO + (random_percent(random, 20) ? 500000 : 0);
	return PICK(random, packets);
}

/* Tests of warm-up need thresholds that traffic reaches: cold_factor units an interval and more. */
static void random_warm_up(struct random *random, struct weir_ruleset_rule *rule)
{
	static const uint32_t periods_s[] = {1, 1, 2, 3, 5, 10, 10, 60, 3600}, factors[] = {2, 3, 3, 3, 4, 10, 100};
	uint64_t cold_micro;

	rule->warm_up.period_s = PICK(random, periods_s);
	rule->warm_up.cold_factor = PICK(random, factors);
	cold_micro =
		rule->warm_up.cold_factor * WEIR_MICRO * (rule->counts_bytes ? random_between(random, 40, 1600) : 1);
	rule->threshold_micro = cold_micro * random_between(random, 1, random_percent(random, 70) ? 10 : 200);
	if (random_percent(random, 40))
		rule->threshold_micro += random_below(random, 8) * WEIR_MICRO / 8;
	if (random_percent(random, 5))
		rule->threshold_micro = 0;
}

static void random_memory_fields(struct random *random, struct weir_ruleset_rule *rule)
{
	static const uint64_t marks[] = {1, 7, 1000, 1 << 20, 3ull << 30, 1ull << 40};
	struct weir_memory_adaptive *memory = &rule->memory;
	uint64_t unit = rule->counts_bytes ? random_between(random, 40, 1600) : 1;

	memory->low_mark_bytes = PICK(random, marks);
	memory->high_mark_bytes = memory->low_mark_bytes + PICK(random, marks);
	memory->high_units = unit * random_between(random, 1, 20);
	memory->low_units =
		memory->high_units + unit * random_between(random, 1, random_percent(random, 80) ? 50 : 100000);
	rule->threshold_micro = 0;
}

/* As far as refResource goes: any resource without a key, or with the same. */
static void random_reference(struct random *random, const struct weir_ruleset *ruleset, struct weir_ruleset_rule *rule)
{
	const struct weir_flow *own = weir_flow_of(ruleset, rule), *other;
	size_t ref_resource = random_below(random, ruleset->resource_count);

	other = &ruleset->resources[ref_resource].flow;
	if (ref_resource == rule->resource || (other->fields && memcmp(own, other, sizeof(*own))))
		return;
	rule->relation = WEIR_RELATION_ASSOCIATED;
	rule->ref_resource = ref_resource;
}

static void random_behavior(struct random *random, const struct weir_ruleset *ruleset, struct weir_ruleset_rule *rule)
{
	static const uint64_t queueing_ms[] = {0, 0, 1, 5, 20, 100, 500, 1000, 60000, UINT32_MAX};

	if (random_percent(random, 35))
		rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	if (rule->behavior == WEIR_BEHAVIOR_THROTTLING)
		rule->queueing_ms_max = PICK(random, queueing_ms);
	/* Without WarmUp a throttling rule has nothing to read of another resource (docs/semantics.md, 5). */
	if ((rule->behavior == WEIR_BEHAVIOR_REJECT || rule->strategy == WEIR_STRATEGY_WARM_UP) &&
	    random_percent(random, 40))
		random_reference(random, ruleset, rule);
}

/* Buckets that are full at once, or not for long; a rate and a burst with denominators of their own. */
static void random_tokens(struct random *random, const struct weir_ruleset *ruleset, struct weir_ruleset_rule *rule)
{
	static const uint64_t bursts[] = {1, 1, 2, 3, 10, 20, 100, 1000, 1000000};
	static const uint64_t byte_bursts[] = {1, 60, 61, 1514, 3000, 9014, 65536, 1000000, 5000000000};

	if (rule->behavior != WEIR_BEHAVIOR_REJECT || rule->relation != WEIR_RELATION_CURRENT ||
	    !random_percent(random, 30))
		return;
	if (rule->strategy == WEIR_STRATEGY_WARM_UP && weir_flow_of(ruleset, rule)->fields)
		return; /* flows do not warm up by themselves */
	rule->window = WEIR_WINDOW_TOKENS;
	if (rule->strategy == WEIR_STRATEGY_DIRECT && random_percent(random, 30))
		rule->threshold_micro += random_below(random, WEIR_MICRO);
	if (random_percent(random, 30))
		return;
	rule->burst_micro = (rule->counts_bytes ? PICK(random, byte_bursts) : PICK(random, bursts)) * WEIR_MICRO;
	if (random_percent(random, 20))
		rule->burst_micro += random_below(random, WEIR_MICRO);
}

static bool has_override(const struct weir_ruleset_rule *rule, const struct weir_prefix *prefix)
{
	for (size_t i = 0; i < rule->override_count; i++)
		if (memcmp(&rule->overrides[i].prefix, prefix, sizeof(*prefix)) == 0)
			return true;
	return false;
}

/* Prefixes no longer than the key's, of one of the addresses in it. */
static void random_overrides(struct random *random, const struct weir_ruleset *ruleset, struct weir_ruleset_rule *rule)
{
	const struct weir_flow *flow = weir_flow_of(ruleset, rule);
	size_t count = random_between(random, 1, 6);
	const uint8_t *key_bits;

	rule->override_field = flow->fields & WEIR_KEY_SOURCE ? WEIR_KEY_SOURCE : WEIR_KEY_DESTINATION;
	if (flow->fields & WEIR_KEY_DESTINATION && random_percent(random, 50))
		rule->override_field = WEIR_KEY_DESTINATION;
	key_bits = rule->override_field == WEIR_KEY_SOURCE ? flow->source_bits : flow->destination_bits;
	rule->overrides = calloc(count, sizeof(*rule->overrides));
	assert(rule->overrides);
	for (size_t i = 0; i < count; i++) {
		struct weir_override override = {.prefix = random_prefix(random)};

		override.threshold_micro = random_threshold_micro(random, rule->counts_bytes);
		if (override.prefix.bits <= key_bits[override.prefix.family == 4 ? 0 : 1] &&
		    !has_override(rule, &override.prefix))
			rule->overrides[rule->override_count++] = override;
	}
	if (rule->override_count == 0)
		rule->override_field = 0;
}

static bool may_override(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	const uint32_t addresses = WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION;

	if (rule->strategy != WEIR_STRATEGY_DIRECT || !(weir_flow_of(ruleset, rule)->fields & addresses))
		return false;
	return rule->relation == WEIR_RELATION_CURRENT || ruleset->resources[rule->ref_resource].flow.fields;
}

/* Few enough to be reached by the clients of random_packets. */
static struct weir_ruleset_rule random_limit(struct random *random, const struct weir_ruleset *ruleset, size_t resource)
{
	static const uint64_t thresholds_micro[] = {0,	     500000,  1000000,	1000000,  2000000,   2900000,
						    3000000, 5000000, 10000000, 40000000, 1000000000};
	/* what the reader of rule files leaves in the fields that such a rule does not use */
	struct weir_ruleset_rule rule = {
		.resource = resource,
		.ref_resource = WEIR_NO_RESOURCE,
		.metric = WEIR_METRIC_CONCURRENCY,
		.interval_ns = WEIR_NSEC_PER_SEC,
		.samples = WEIR_SAMPLES_MAX,
	};

	random_own_key(random, ruleset, &rule);
	rule.threshold_micro = PICK(random, thresholds_micro);
	rule.observes = random_percent(random, 20);
	if (may_override(ruleset, &rule) && random_percent(random, 30))
		random_overrides(random, ruleset, &rule);
	return rule;
}

/* Shorter than a bucket, and longer than most intervals. */
static void random_penalty(struct random *random, struct weir_ruleset_rule *rule)
{
	static const uint32_t durations_ms[] = {1, 5, 20, 50, 100, 250, 1000, 1000, 3000, 60000},
			      factors[] = {1, 1, 2, 3, 10, 1000};

	rule->penalty_ms = PICK(random, durations_ms);
	rule->penalty_ms_max = rule->penalty_ms * PICK(random, factors);
}

static struct weir_ruleset_rule random_rule(struct random *random, const struct weir_ruleset *ruleset, size_t resource)
{
	static const uint32_t intervals_ms[] = {10,   20,   35,	  63,	100,  250,   420,   500,
						1000, 1000, 1000, 2520, 5000, 60000, 240000};
	struct weir_ruleset_rule rule = {.resource = resource, .ref_resource = WEIR_NO_RESOURCE};

	random_own_key(random, ruleset, &rule);
	rule.counts_bytes = random_percent(random, 30);
	rule.observes = random_percent(random, 15);
	rule.window = random_below(random, 3);
	rule.interval_ns = PICK(random, intervals_ms) * 1000000ull;
	do {
		rule.samples = random_between(random, 1, WEIR_SAMPLES_MAX);
	} while (rule.interval_ns % rule.samples);
	rule.threshold_micro = random_threshold_micro(random, rule.counts_bytes);
	if (random_percent(random, 30))
		rule.strategy = WEIR_STRATEGY_WARM_UP;
	else if (random_percent(random, 25))
		rule.strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	if (rule.strategy == WEIR_STRATEGY_WARM_UP)
		random_warm_up(random, &rule);
	else if (rule.strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		random_memory_fields(random, &rule);
	random_behavior(random, ruleset, &rule);
	if (rule.behavior == WEIR_BEHAVIOR_REJECT && random_percent(random, 25))
		random_penalty(random, &rule);
	random_tokens(random, ruleset, &rule);
	if (may_override(ruleset, &rule) && random_percent(random, 30))
		random_overrides(random, ruleset, &rule);
	rule.occupies = weir_rule_can_occupy(&rule) && weir_meets_prioritized(ruleset, &ruleset->resources[resource]);
	return rule;
}

/* Make it a rule with an occupy window, mostly with a threshold that traffic reaches. */
static void random_occupy(struct random *random, struct weir_ruleset_rule *rule)
{
	rule->counts_bytes = false;
	rule->window = WEIR_WINDOW_LEAP;
	rule->strategy = WEIR_STRATEGY_DIRECT;
	rule->behavior = WEIR_BEHAVIOR_REJECT;
	rule->queueing_ms_max = 0;
	rule->relation = WEIR_RELATION_CURRENT;
	rule->ref_resource = WEIR_NO_RESOURCE;
	rule->warm_up = (struct weir_warm_up_fields){};
	rule->memory = (struct weir_memory_adaptive){};
	if (random_percent(random, 70))
		rule->threshold_micro =
			random_between(random, 1, random_percent(random, 70) ? 12 : 60) * WEIR_MICRO / 2;
	rule->occupies = true;
}

/* Names with what a CSV or a YAML reader could trip over. */
static char *random_name(struct random *random, const char *kind, size_t number)
{
	static const char *const tails[] = {"", "", "", ", quoted", " \"said\"", " \xc3\xbc", "'s", ": #1"};
	char *name = NULL;
	int bytes = asprintf(&name, "%s-%zu%s", kind, number, PICK(random, tails));

	assert(bytes > 0);
	return name;
}

static void add_rules(struct random *random, struct weir_ruleset *ruleset, size_t resource, bool limits_connections)
{
	size_t count = random_below(random, 5);

	for (size_t i = 0; i < count && ruleset->rule_count < WEIR_PACKET_RULES_MAX; i++) {
		struct weir_ruleset_rule *rule;

		rule = weir_array_add((void **)&ruleset->rules, ruleset->rule_count, sizeof(*rule));
		assert(rule);
		*rule = limits_connections && random_percent(random, 50) ? random_limit(random, ruleset, resource)
									 : random_rule(random, ruleset, resource);
		if (rule->metric == WEIR_METRIC_RATE &&
		    weir_meets_prioritized(ruleset, &ruleset->resources[resource]) && random_percent(random, 40))
			random_occupy(random, rule);
		rule->name = random_name(random, "rule", ruleset->rule_count++);
	}
}

/* Rules of different resources take turns in the file, so that order is more than that of resources. */
static void shuffle_rules(struct random *random, struct weir_ruleset *ruleset)
{
	for (size_t i = ruleset->rule_count; i > 1; i--) {
		size_t j = random_below(random, i);
		struct weir_ruleset_rule rule = ruleset->rules[i - 1];

		ruleset->rules[i - 1] = ruleset->rules[j];
		ruleset->rules[j] = rule;
	}
}

/* By family, address, bits. */
static int compare_listed(const void *a, const void *b)
{
	const struct weir_prefix *first = &((const struct weir_listed *)a)->prefix;
	const struct weir_prefix *second = &((const struct weir_listed *)b)->prefix;
	int addresses = memcmp(first->address, second->address, sizeof(first->address));

	if (first->family != second->family)
		return first->family - second->family;
	return addresses ? addresses : first->bits - second->bits;
}

/* Allow and deny, in the order and without the twins that the reader of rule files leaves out. */
static void random_lists(struct random *random, struct weir_ruleset *ruleset)
{
	size_t kept = 0, count = random_between(random, 1, 5);
	struct weir_listed *listed = calloc(count, sizeof(*listed));

	assert(listed);
	for (size_t i = 0; i < count; i++) {
		do {
			listed[i].prefix = random_prefix(random);
		} while (listed[i].prefix.bits < 8); /* the rules should still see something */
		listed[i].denies = random_percent(random, 50);
	}
	qsort(listed, count, sizeof(*listed), compare_listed);
	for (size_t i = 0; i < count; i++) {
		if (kept > 0 && compare_listed(&listed[kept - 1], &listed[i]) == 0)
			listed[kept - 1].denies |= listed[i].denies;
		else
			listed[kept++] = listed[i];
	}
	ruleset->listed = listed;
	ruleset->listed_count = kept;
}

/*
 * Time-outs short enough to pass, some that no step of a sixth divides, and the real ones; tables so large that
 * nothing is evicted, as the model never does.
 */
static void random_connections(struct random *random, struct weir_settings *settings)
{
	static const uint64_t half_ms[] = {1000, 2500, 10000}, open_ms[] = {1000, 3001, 7000, 60000, 7440000};
	static const uint64_t other_ms[] = {1000, 5000, 120000}, closed_ms[] = {1000, 1500, 10000};

	settings->connections = 1 << 18;
	settings->connection_flows = 8192;
	settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = PICK(random, half_ms);
	settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_OPEN] = PICK(random, open_ms);
	settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_OTHER] = PICK(random, other_ms);
	settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_CLOSED] = PICK(random, closed_ms);
}

static const uint16_t other_ethertypes[] = {ETHERTYPE_ARP, ETHERTYPE_ARP, 0x8847, 0x8848, 0x8864, 0x0027, 0x88cc};

/* Some that packets of random_packet() have, and some that none has. */
static void random_except(struct random *random, struct weir_settings *settings)
{
	static const struct weir_range types[] = {{0x0806, 0x0806}, {0x8847, 0x8848}, {0x8863, 0x8864},
						  {0, 0x05ff},	    {0x88cc, 0x88cc}, {0x1234, 0x1234}};

	settings->non_ip_except = calloc(ARRAY_SIZE(types), sizeof(types[0]));
	assert(settings->non_ip_except);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (random_percent(random, 40))
			settings->non_ip_except[settings->non_ip_except_count++] = types[i];
}

struct weir_ruleset *random_ruleset(struct random *random)
{
	struct weir_ruleset *ruleset = calloc(1, sizeof(*ruleset));
	static const uint32_t occupy_timeouts_ms[] = {0, 7, 50, 100, 500, 500, 500, 1000, 5000, 86400000};
	bool limits_connections = random_percent(random, 50);

	assert(ruleset);
	ruleset->settings = (struct weir_settings){
		.flows_per_cpu = 65536,
		.drop_malformed = random_percent(random, 70),
		.drop_unsupported = random_percent(random, 70),
		.drop_non_ip = random_percent(random, 30),
		.drop_unmatched = random_percent(random, 30),
		.controller_timeout_ms = 3000,
		.occupy_timeout_ms = PICK(random, occupy_timeouts_ms),
	};
	if (random_percent(random, 30))
		random_except(random, &ruleset->settings);
	random_connections(random, &ruleset->settings);
	ruleset->resource_count = random_between(random, 1, 6);
	ruleset->resources = calloc(ruleset->resource_count, sizeof(*ruleset->resources));
	assert(ruleset->resources);
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		ruleset->resources[i].name = random_name(random, "resource", i);
		random_match(random, &ruleset->resources[i].match);
		random_flow(random, &ruleset->resources[i].flow);
		ruleset->resources[i].is_prioritized = random_percent(random, 30);
		/* the same key as another, as rules on associated resources want it */
		if (i > 0 && random_percent(random, 40))
			ruleset->resources[i].flow = ruleset->resources[i - 1].flow;
	}
	for (size_t i = 0; i < ruleset->resource_count; i++)
		add_rules(random, ruleset, i, limits_connections);
	shuffle_rules(random, ruleset);
	if (random_percent(random, 20))
		random_lists(random, ruleset);
	if (random_percent(random, 25))
		random_breakers(random, ruleset);
	return ruleset;
}

/* Only earlier ones in a shuffled order, so that there are no circles: some of them defined later in the file. */
struct weir_ruleset *random_except_ruleset(struct random *random)
{
	struct weir_ruleset *ruleset = random_ruleset(random);
	size_t order[6] = {}, count = ruleset->resource_count;

	assert(count <= ARRAY_SIZE(order));
	for (size_t i = 0; i < count; i++) {
		const size_t j = random_below(random, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (size_t i = 1; i < count; i++) {
		struct weir_match *match = &ruleset->resources[order[i]].match;

		match->except = calloc(count, sizeof(*match->except));
		assert(match->except);
		for (size_t j = 0; j < i; j++) {
			struct weir_excepted *excepted = &match->except[match->except_count];

			if (!random_percent(random, 30))
				continue;
			strcpy(excepted->name, ruleset->resources[order[j]].name);
			excepted->resource = order[j];
			match->except_count++;
		}
	}
	return ruleset;
}

/* ---- YAML ---- */

void ruleset_write_quoted(FILE *stream, const char *text)
{
	fputc('"', stream);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', stream);
		fputc(*text, stream);
	}
	fputc('"', stream);
}

static void write_prefix(FILE *stream, const struct weir_prefix *prefix)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(prefix->family == 4 ? AF_INET : AF_INET6, prefix->address, text, sizeof(text));
	fprintf(stream, "\"%s/%u\"", text, prefix->bits);
}

static void write_prefixes(FILE *stream, const char *field, const struct weir_prefix *prefixes, size_t count)
{
	if (count == 0)
		return;
	fprintf(stream, "      %s: [", field);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", stream);
		write_prefix(stream, &prefixes[i]);
	}
	fprintf(stream, "]\n");
}

static void write_ranges(FILE *stream, const char *field, const struct weir_range *ranges, size_t count)
{
	if (count == 0)
		return;
	fprintf(stream, "      %s: [", field);
	for (size_t i = 0; i < count; i++) {
		fprintf(stream, i ? ", " : "");
		if (ranges[i].low == ranges[i].high)
			fprintf(stream, "%u", ranges[i].low);
		else
			fprintf(stream, "\"%u-%u\"", ranges[i].low, ranges[i].high);
	}
	fprintf(stream, "]\n");
}

static void write_flags(FILE *stream, const struct weir_match *match)
{
	static const char *const names[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

	if (match->tcp_flags_count == 0)
		return;
	fprintf(stream, "      tcpFlags: [");
	for (size_t i = 0; i < match->tcp_flags_count; i++) {
		const char *separator = "";

		fprintf(stream, "%s\"", i ? ", " : "");
		for (size_t bit = 0; bit < 8; bit++) {
			if (!((match->tcp_flags[i].set | match->tcp_flags[i].clear) >> bit & 1))
				continue;
			fprintf(stream, "%s%s%s", separator, match->tcp_flags[i].clear >> bit & 1 ? "!" : "",
				names[bit]);
			separator = ",";
		}
		fprintf(stream, "\"");
	}
	fprintf(stream, "]\n");
}

/* A list of those of `names` whose bit is set in `bits`. */
static void write_set(FILE *stream, const char *field, const char *const *names, unsigned int count, unsigned int bits)
{
	const char *separator = "";

	if (!bits)
		return;
	fprintf(stream, "      %s: [", field);
	for (unsigned int i = 0; i < count; i++) {
		if (!(bits >> i & 1))
			continue;
		fprintf(stream, "%s%s", separator, names[i]);
		separator = ", ";
	}
	fprintf(stream, "]\n");
}

static void write_protocols(FILE *stream, const struct weir_match *match)
{
	const char *separator = "";

	if (!match->has_protocol)
		return;
	fprintf(stream, "      protocol: [");
	for (unsigned int i = 0; i < 256; i++) {
		if (!(match->protocol[i / 8] >> i % 8 & 1))
			continue;
		fprintf(stream, "%s%u", separator, i);
		separator = ", ";
	}
	fprintf(stream, "]\n");
}

static void write_match(FILE *stream, const struct weir_match *match)
{
	static const char *const families[] = {"ipv4", "ipv6"}, *const fragments[] = {"none", "first", "later"};
	static const char *const directions[] = {"", "in", "out", "both"};
	size_t i;

	fprintf(stream, "    match:\n");
	if (match->directions)
		fprintf(stream, "      direction: %s\n", directions[match->directions]);
	write_set(stream, "family", families, 2, match->families);
	write_set(stream, "fragment", fragments, 3, match->fragments);
	write_protocols(stream, match);
	write_prefixes(stream, "source", match->source, match->source_count);
	write_prefixes(stream, "destination", match->destination, match->destination_count);
#define WRITE_RANGES(constant, name, member, highest, none, who)                                                       \
	write_ranges(stream, name, match->member, match->member##_count);
	WEIR_RANGE_FIELDS(WRITE_RANGES)
	write_flags(stream, match);
	if (match->interface_count) {
		fprintf(stream, "      interface: [");
		for (i = 0; i < match->interface_count; i++)
			fprintf(stream, "%s%s", i ? ", " : "", match->interface[i]);
		fprintf(stream, "]\n");
	}
	for (i = 0; i < match->except_count; i++) {
		fputs(i ? ", " : "      except: [", stream);
		ruleset_write_quoted(stream, match->except[i].name);
	}
	fputs(match->except_count ? "]\n" : "", stream);
}

static bool is_empty(const struct weir_match *match)
{
	static const struct weir_match none;

	/* Rule sets are made by calloc, so that what is between the fields is 0, too. */
	return memcmp(match, &none, sizeof(none)) == 0; // NOLINT(bugprone-suspicious-memory-comparison)
}

static void write_key(FILE *stream, const char *field, const struct weir_flow *flow)
{
	const char *separator = "";

	fprintf(stream, "    %s: [", field);
	for (unsigned int i = 0; i < WEIR_KEY_FIELD_COUNT; i++) {
		const uint8_t *bits = i == 0 ? flow->source_bits : flow->destination_bits;

		if (!(flow->fields >> i & 1))
			continue;
		fprintf(stream, "%s%s", separator, weir_key_field_name(flow->fields, i));
		if (i < 2 && (bits[0] != 32 || bits[1] != 128))
			fprintf(stream, "/%u/%u", bits[0], bits[1]);
		separator = ", ";
	}
	fprintf(stream, "]\n");
}

static void write_decimal(FILE *stream, uint64_t micro)
{
	fprintf(stream, "%" PRIu64 ".%06" PRIu64, (uint64_t)(micro / WEIR_MICRO), (uint64_t)(micro % WEIR_MICRO));
}

static void write_overrides(FILE *stream, const struct weir_ruleset_rule *rule)
{
	const char *field = weir_override_name(rule);

	if (rule->override_count)
		fprintf(stream, "    overrides:\n");
	for (size_t i = 0; i < rule->override_count; i++) {
		fprintf(stream, "      - {%s: ", field);
		write_prefix(stream, &rule->overrides[i].prefix);
		fprintf(stream, ", threshold: ");
		write_decimal(stream, rule->overrides[i].threshold_micro);
		fprintf(stream, "}\n");
	}
}

static void write_strategy(FILE *stream, const struct weir_ruleset_rule *rule)
{
	static const char *const strategies[] = {"Direct", "WarmUp", "MemoryAdaptive"};

	if (rule->metric == WEIR_METRIC_RATE)
		fprintf(stream, "    tokenCalculateStrategy: %s\n", strategies[rule->strategy]);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP) {
		fprintf(stream, "    warmUpPeriodSec: %u\n", rule->warm_up.period_s);
		fprintf(stream, "    warmUpColdFactor: %u\n", rule->warm_up.cold_factor);
	}
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE) {
		fprintf(stream, "    lowMemUsageThreshold: %llu\n", rule->memory.low_units);
		fprintf(stream, "    highMemUsageThreshold: %llu\n", rule->memory.high_units);
		fprintf(stream, "    memLowWaterMarkBytes: %llu\n", rule->memory.low_mark_bytes);
		fprintf(stream, "    memHighWaterMarkBytes: %llu\n", rule->memory.high_mark_bytes);
	} else {
		fprintf(stream, "    threshold: ");
		write_decimal(stream, rule->threshold_micro);
		fprintf(stream, "\n");
	}
}

static void write_window(FILE *stream, const struct weir_ruleset_rule *rule)
{
	static const char *const windows[] = {"leap", "strict", "smooth", "tokens"};

	fprintf(stream, "    statIntervalInMs: %" PRIu64 "\n", rule->interval_ns / 1000000);
	fprintf(stream, "    sampleCount: %u\n", rule->samples);
	fprintf(stream, "    window: %s\n", windows[rule->window]);
	if (rule->burst_micro) {
		fprintf(stream, "    burst: ");
		write_decimal(stream, rule->burst_micro);
		fprintf(stream, "\n");
	}
	fprintf(stream, "    unit: %s\n", rule->counts_bytes ? "bytes" : "packets");
}

static void write_system_rules(FILE *stream, const struct weir_ruleset *ruleset)
{
	static const char *const metrics[] = {"", "Load", "AvgRT", "Concurrency", "InboundQPS", "CpuUsage"};

	for (size_t i = 0; i < ruleset->rule_count && ruleset->rules[i].system; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		fprintf(stream, i ? "" : "systemRules:\n");
		fprintf(stream, "  - name: ");
		ruleset_write_quoted(stream, rule->name);
		fprintf(stream, "\n    metricType: %s\n    triggerCount: ", metrics[rule->system]);
		write_decimal(stream, rule->threshold_micro);
		fprintf(stream, "\n    strategy: %s\n    mode: %s\n", rule->is_bbr ? "BBR" : "NoAdaptive",
			rule->observes ? "observe" : "enforce");
	}
}

static void write_rule(FILE *stream, const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	fprintf(stream, "  - name: ");
	ruleset_write_quoted(stream, rule->name);
	fprintf(stream, "\n    resource: ");
	ruleset_write_quoted(stream, ruleset->resources[rule->resource].name);
	fprintf(stream, "\n");
	if (rule->has_own_key && rule->own_key.fields)
		write_key(stream, "per", &rule->own_key);
	else if (rule->has_own_key)
		fprintf(stream, "    per: all\n");
	if (rule->metric == WEIR_METRIC_CONCURRENCY)
		fprintf(stream, "    metricType: Concurrency\n");
	else
		write_window(stream, rule);
	fprintf(stream, "    mode: %s\n", rule->observes ? "observe" : "enforce");
	write_strategy(stream, rule);
	if (rule->behavior == WEIR_BEHAVIOR_THROTTLING)
		fprintf(stream, "    controlBehavior: Throttling\n    maxQueueingTimeMs: %" PRIu64 "\n",
			rule->queueing_ms_max);
	if (rule->penalty_ms)
		fprintf(stream, "    blockDurationInMs: %u\n    blockDurationMaxInMs: %u\n", rule->penalty_ms,
			rule->penalty_ms_max);
	if (rule->relation == WEIR_RELATION_ASSOCIATED) {
		fprintf(stream, "    relationStrategy: AssociatedResource\n    refResource: ");
		ruleset_write_quoted(stream, ruleset->resources[rule->ref_resource].name);
		fprintf(stream, "\n");
	}
	write_overrides(stream, rule);
}

static void write_list(FILE *stream, const struct weir_ruleset *ruleset, bool denies)
{
	const char *separator = "";

	fprintf(stream, denies ? "deny: [" : "allow: [");
	for (size_t i = 0; i < ruleset->listed_count; i++) {
		if (ruleset->listed[i].denies != denies)
			continue;
		fputs(separator, stream);
		write_prefix(stream, &ruleset->listed[i].prefix);
		separator = ", ";
	}
	fprintf(stream, "]\n");
}

static const char *policy(bool drops)
{
	return drops ? "drop" : "pass";
}

static bool limits_connections(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].metric == WEIR_METRIC_CONCURRENCY || ruleset->rules[i].system)
			return true;
	return false;
}

static void write_connections(FILE *stream, const struct weir_settings *settings)
{
	static const char *const names[WEIR_CONNECTION_CLASSES] = {
		"halfOpenTimeoutInMs",
		"tcpIdleTimeoutInMs",
		"otherIdleTimeoutInMs",
		"closedTimeoutInMs",
	};

	fprintf(stream, "  connections: %u\n  connectionFlows: %u\n", settings->connections,
		settings->connection_flows);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		fprintf(stream, "  %s: %" PRIu64 "\n", names[i], settings->connection_timeout_ms[i]);
}

static void write_ethertypes(FILE *stream, const struct weir_range *range)
{
	if (range->low == 0)
		fprintf(stream, "llc, ");
	else if (range->low == 0x8847)
		fprintf(stream, "mpls, ");
	else if (range->low == 0x8863)
		fprintf(stream, "pppoe, ");
	else
		fprintf(stream, "0x%x, ", range->low);
}

void ruleset_write_yaml(const struct weir_ruleset *ruleset, FILE *stream)
{
	size_t i;

	fprintf(stream, "settings:\n  flowsPerCpu: %u\n", ruleset->settings.flows_per_cpu);
	fprintf(stream, "  malformed: %s\n", policy(ruleset->settings.drop_malformed));
	fprintf(stream, "  unsupported: %s\n", policy(ruleset->settings.drop_unsupported));
	fprintf(stream, "  nonIp: %s\n", policy(ruleset->settings.drop_non_ip));
	if (ruleset->settings.non_ip_except_count) {
		fprintf(stream, "  nonIpExcept: [");
		for (i = 0; i < ruleset->settings.non_ip_except_count; i++)
			write_ethertypes(stream, &ruleset->settings.non_ip_except[i]);
		fprintf(stream, "]\n");
	}
	fprintf(stream, "  unmatched: %s\n", policy(ruleset->settings.drop_unmatched));
	fprintf(stream, "  occupyTimeoutInMs: %u\n", ruleset->settings.occupy_timeout_ms);
	if (limits_connections(ruleset) || ruleset_has_breakers(ruleset))
		write_connections(stream, &ruleset->settings);
	if (ruleset->listed_count) {
		write_list(stream, ruleset, false);
		write_list(stream, ruleset, true);
	}
	fprintf(stream, "resources:\n");
	for (i = 0; i < ruleset->resource_count; i++) {
		fprintf(stream, "  - name: ");
		ruleset_write_quoted(stream, ruleset->resources[i].name);
		fprintf(stream, "\n");
		if (!is_empty(&ruleset->resources[i].match))
			write_match(stream, &ruleset->resources[i].match);
		if (ruleset->resources[i].flow.fields)
			write_key(stream, "flow", &ruleset->resources[i].flow);
		if (ruleset->resources[i].is_prioritized)
			fprintf(stream, "    prioritized: true\n");
	}
	write_system_rules(stream, ruleset);
	i = weir_count_system_rules(ruleset);
	if (i < ruleset->rule_count && ruleset->rules[i].metric != WEIR_METRIC_REQUESTS)
		fprintf(stream, "rules:\n");
	for (; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].metric != WEIR_METRIC_REQUESTS)
			write_rule(stream, ruleset, &ruleset->rules[i]);
	if (ruleset_has_breakers(ruleset))
		ruleset_write_breakers(ruleset, stream);
}

/* ---- traffic ---- */

/* Steps of a sixth of one of the time-outs; of what lasts minutes seldom, or all else would be over all the time. */
static void random_silence(struct random *random, const struct weir_settings *settings, uint64_t *ret_step_ns,
			   uint64_t *ret_timeout_ns)
{
	uint64_t timeout_ms;

	do {
		timeout_ms = settings->connection_timeout_ms[random_below(random, WEIR_CONNECTION_CLASSES)];
	} while (timeout_ms > 10000 && !random_percent(random, 5));
	*ret_timeout_ns = timeout_ms * 1000000;
	*ret_step_ns = (*ret_timeout_ns + 5) / 6;
}

/* A rule whose buckets the next step in time is about; any of them, or a second's tenth without rules. */
static void random_bucket(struct random *random, const struct weir_ruleset *ruleset, uint64_t *ret_bucket_ns,
			  uint64_t *ret_interval_ns)
{
	const struct weir_ruleset_rule *rule;

	*ret_bucket_ns = 100000000;
	*ret_interval_ns = 1000000000;
	if (ruleset->rule_count == 0)
		return;
	rule = &ruleset->rules[random_below(random, ruleset->rule_count)];
	if (rule->metric != WEIR_METRIC_RATE) {
		random_silence(random, &ruleset->settings, ret_bucket_ns, ret_interval_ns);
		return;
	}
	*ret_bucket_ns = rule->interval_ns / rule->samples;
	*ret_interval_ns = rule->interval_ns;
	/* The end of a penalty, and of the time in which another one is longer. */
	if (rule->penalty_ms && random_percent(random, 60))
		*ret_interval_ns = rule->penalty_ms * 1000000ull * random_between(random, 1, 3);
	/* The time of a token, now and then just in whole ns. */
	if (rule->window == WEIR_WINDOW_TOKENS && rule->threshold_micro && random_percent(random, 60)) {
		*ret_bucket_ns = ((unsigned __int128)rule->interval_ns * WEIR_MICRO - 1) / rule->threshold_micro + 1;
		*ret_interval_ns = *ret_bucket_ns;
	}
}

static uint64_t step_back(struct random *random, uint64_t now_ns, uint64_t back_ns)
{
	return back_ns > now_ns ? random_below(random, now_ns + 1) : now_ns - back_ns;
}

/* About the edges of a rule's buckets, where windows could be wrong. */
static uint64_t step_about_edges(struct random *random, const struct weir_ruleset *ruleset, uint64_t now_ns,
				 bool goes_back)
{
	uint64_t bucket_ns, interval_ns, edge_ns;

	random_bucket(random, ruleset, &bucket_ns, &interval_ns);
	edge_ns = (now_ns / bucket_ns + 1) * bucket_ns;
	switch (random_below(random, goes_back ? 120 : 100)) {
	case 0 ... 39: /* a burst */
		return now_ns + random_below(random, 2);
	case 40 ... 64:
		return now_ns + random_below(random, bucket_ns / 20 + 1);
	case 65 ... 79:
		return now_ns + random_below(random, bucket_ns);
	case 80 ... 91: /* an exact edge, the nanosecond before and after */
		return edge_ns - 1 + random_below(random, 3);
	case 92 ... 95: /* an edge some buckets on, up to the end of the interval and a little more */
		return edge_ns - 1 + random_below(random, 3) + bucket_ns * random_below(random, 13);
	case 96 ... 98: /* exactly an interval later, give or take a nanosecond */
		return now_ns + interval_ns - 1 + random_below(random, 3);
	case 99: /* silence */
		return now_ns + random_below(random, 5 * interval_ns);
	case 100 ... 108:
		return step_back(random, now_ns, random_below(random, bucket_ns));
	case 109 ... 115:
		return step_back(random, now_ns, bucket_ns * random_below(random, 12));
	case 116 ... 117: /* further than the ring */
		return step_back(random, now_ns, random_below(random, 3 * interval_ns));
	}
	return step_back(random, now_ns, edge_ns % bucket_ns + random_below(random, 3));
}

/* About whole seconds, and beyond silent ones: where a warm-up moves. */
static uint64_t step_about_seconds(struct random *random, uint64_t now_ns, bool goes_back)
{
	uint64_t edge_ns = (now_ns / WEIR_NSEC_PER_SEC + 1) * WEIR_NSEC_PER_SEC;

	switch (random_below(random, goes_back ? 12 : 10)) {
	case 0 ... 4:
		return edge_ns - 1 + random_below(random, 3);
	case 5 ... 7:
		return edge_ns + random_below(random, 3 * WEIR_NSEC_PER_SEC);
	case 8:
		return edge_ns + random_below(random, 20 * WEIR_NSEC_PER_SEC);
	case 9:
		return edge_ns + random_below(random, random_percent(random, 50) ? 200 : 4000) * WEIR_NSEC_PER_SEC;
	case 10:
		return step_back(random, now_ns, now_ns % WEIR_NSEC_PER_SEC + random_below(random, 2));
	}
	return step_back(random, now_ns, random_below(random, 5 * WEIR_NSEC_PER_SEC));
}

/* What the clock does for some hundred packets: mostly edges of buckets, or a steady rate through some seconds. */
struct pace {
	size_t packets_left;
	uint64_t gap_ns; /* mean; 0: about edges */
};

static struct pace random_pace(struct random *random)
{
	static const uint64_t rates[] = {10, 50, 200, 200, 1000, 5000};
	struct pace pace = {.packets_left = random_between(random, 50, 1500)};

	if (random_percent(random, 50))
		pace.gap_ns = WEIR_NSEC_PER_SEC / PICK(random, rates);
	return pace;
}

/* The time of the packet after one at now_ns. */
static uint64_t random_step(struct random *random, const struct weir_ruleset *ruleset, struct pace *pace,
			    uint64_t now_ns, bool goes_back)
{
	if (pace->packets_left-- == 0)
		*pace = random_pace(random);
	if (random_below(random, 200) == 0)
		return step_about_seconds(random, now_ns, goes_back);
	if (pace->gap_ns)
		return now_ns + random_below(random, 2 * pace->gap_ns + 1);
	return step_about_edges(random, ruleset, now_ns, goes_back);
}

static void random_fragment(struct random *random, struct packet_spec *spec)
{
	spec->fragment_units = random_percent(random, 50) ? random_between(random, 1, 0x1fff) : 0;
	spec->more_fragments = random_percent(random, 60);
	if (spec->family == 6 && spec->extension_count < PACKET_EXTENSIONS_MAX)
		spec->extension[spec->extension_count++].protocol = 44;
}

static void random_extensions(struct random *random, struct packet_spec *spec)
{
	static const uint8_t kinds[] = {0, 43, 44, 51, 60, 60};
	unsigned int i,
		count = random_percent(random, 80) ? random_between(random, 1, 3) : random_between(random, 7, 10);

	for (i = 0; i < count; i++) {
		spec->extension[i].protocol = PICK(random, kinds);
		if (random_percent(random, 30))
			spec->extension[i].units = random_below(random, 6);
		if (random_percent(random, 3))
			spec->extension[i].units = 255;
	}
	spec->extension_count = count;
}

static void random_tags(struct random *random, struct packet_spec *spec)
{
	spec->tag_count = random_percent(random, 70) ? 1 : random_between(random, 2, 3);
	for (unsigned int i = 0; i < spec->tag_count; i++) {
		spec->tag[i].ethertype = random_percent(random, 70) ? ETHERTYPE_VLAN : ETHERTYPE_QINQ;
		spec->tag[i].id = PICK(random, vlans) | random_below(random, 16) << 12;
	}
}

/* Break headers: bytes where lengths and types are, or the end of the frame. */
static void random_damage(struct random *random, struct packet_spec *spec)
{
	if (random_percent(random, 50)) {
		spec->cut_bytes = random_between(random, 14, 14 + 4 * spec->tag_count + 100);
		return;
	}
	spec->damage_count = random_between(random, 1, PACKET_DAMAGES_MAX);
	for (unsigned int i = 0; i < spec->damage_count; i++) {
		spec->damage[i].offset = random_between(random, 12, 90);
		spec->damage[i].value = random_percent(random, 60) ? random_below(random, 16) : random_u64(random);
	}
}

static uint32_t random_payload(struct random *random)
{
	switch (random_below(random, 20)) {
	case 0:
		return 1472;
	case 1:
		return random_below(random, 1473);
	case 2:
		return random_percent(random, 30) ? random_between(random, 1473, 8800) : 60;
	case 3 ... 6:
		return random_below(random, 40);
	}
	return 18;
}

struct packet_spec random_packet(struct random *random)
{
	struct packet_spec spec = {.family = random_percent(random, 55) ? 4 : 6};

	random_address(random, spec.family, spec.source);
	random_address(random, spec.family, spec.destination);
	spec.protocol = random_percent(random, 96) ? PICK(random, protocols) : random_u64(random);
	spec.source_port = PICK(random, ports);
	spec.destination_port = PICK(random, ports);
	spec.tcp_flags = PICK(random, tcp_flag_bytes);
	spec.icmp_type = PICK(random, icmp_types);
	spec.payload_bytes = random_payload(random);
	if (random_percent(random, 30))
		spec.traffic_class = PICK(random, dscps) << 2 | random_below(random, 4);
	spec.ttl = PICK(random, ttls);
	if (random_percent(random, 10))
		spec.option_words = random_below(random, 11);
	if (spec.family == 6 && random_percent(random, 20))
		random_extensions(random, &spec);
	if (random_percent(random, 12))
		random_fragment(random, &spec);
	if (random_percent(random, 15))
		random_tags(random, &spec);
	if (random_percent(random, 20))
		spec.padding_bytes = random_below(random, 46);
	if (random_percent(random, 3))
		spec.ethertype = random_percent(random, 50) ? PICK(random, other_ethertypes) : random_u64(random);
	if (random_percent(random, 8))
		random_damage(random, &spec);
	return spec;
}

/* The clock begins anywhere: at zero, at a machine's uptime, at the time of a capture. */
static uint64_t random_start(struct random *random)
{
	switch (random_below(random, 4)) {
	case 0:
		return random_below(random, 3);
	case 1:
		return random_below(random, 100 * WEIR_NSEC_PER_SEC);
	case 2:
		return random_below(random, 1000000 * WEIR_NSEC_PER_SEC);
	}
	return 1700000000 * WEIR_NSEC_PER_SEC + random_below(random, 100000000 * WEIR_NSEC_PER_SEC);
}

/* A new client, on one of a few ports, so that some come back before they are forgotten. */
static struct random_client random_client(struct random *random)
{
	static const uint8_t client_protocols[] = {6, 6, 6, 6, 6, 6, 17, 17, 1, 132};
	struct random_client client = {.spec = {.family = random_percent(random, 55) ? 4 : 6}};
	struct packet_spec *spec = &client.spec;

	random_address(random, spec->family, spec->source);
	random_address(random, spec->family, spec->destination);
	spec->protocol = PICK(random, client_protocols);
	spec->source_port = random_percent(random, 50) ? PICK(random, ports) : random_between(random, 2000, 2007);
	spec->destination_port = PICK(random, ports);
	spec->payload_bytes = 18;
	if (random_percent(random, 10))
		random_tags(random, spec);
	if (random_percent(random, 30))
		spec->traffic_class = PICK(random, dscps) << 2;
	if (random_percent(random, 30))
		spec->ttl = PICK(random, ttls);
	return client;
}

/* What the next client to speak says, whole or in fragments. */
static struct packet_spec random_speech(struct random *random, struct random_client *clients, size_t count)
{
	struct packet_spec spec;
	bool is_gone;

	for (;;) {
		/* The first speak often enough to stay, the last are mostly silent. */
		struct random_client *client = &clients[random_below(random, random_between(random, 1, count))];
		bool has_listener = random_client_speaks(random, client, &spec, &is_gone);

		if (is_gone)
			*client = random_client(random);
		if (has_listener)
			break;
	}
	if (random_percent(random, 3))
		random_fragment(random, &spec);
	if (random_percent(random, 2))
		random_tags(random, &spec);
	if (random_percent(random, 10))
		spec.payload_bytes = random_payload(random);
	return spec;
}

/* Some packets are overtaken by the next; times stay in order. */
static void reorder(struct random *random, struct packet_spec *specs, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct packet_spec earlier = specs[i - 1], later = specs[i];

		if (!random_percent(random, 2))
			continue;
		specs[i - 1] = later;
		specs[i - 1].time_ns = earlier.time_ns;
		specs[i] = earlier;
		specs[i].time_ns = later.time_ns;
	}
}

#define CLIENTS_MAX 60

struct packet_spec *random_packets(struct random *random, const struct weir_ruleset *ruleset, size_t count)
{
	struct packet_spec *specs = calloc(count, sizeof(*specs)), favourites[6];
	struct random_client clients[CLIENTS_MAX];
	size_t client_count = random_between(random, 1, CLIENTS_MAX);
	unsigned int percent_of_clients = limits_connections(ruleset) ? 85 : 0;
	bool has_breakers = ruleset_has_breakers(ruleset), is_request;
	struct random_requests requests;
	bool goes_back = random_percent(random, 25);
	struct pace pace = random_pace(random);
	uint64_t now_ns = random_start(random);

	assert(specs);
	/* A few packets that come again and again, or no flow would ever reach its limit. */
	for (size_t i = 0; i < ARRAY_SIZE(favourites); i++)
		favourites[i] = random_packet(random);
	for (size_t i = 0; i < client_count; i++)
		clients[i] = random_client(random);
	if (has_breakers)
		random_requests_for(random, ruleset, &requests);
	for (size_t i = 0; i < count; i++) {
		if (random_percent(random, 1))
			PICK(random, favourites) = random_packet(random);
		is_request = has_breakers && random_percent(random, 60);
		if (is_request)
			specs[i] = random_requests_packet(random, &requests, now_ns);
		else if (random_percent(random, percent_of_clients))
			specs[i] = random_speech(random, clients, client_count);
		else
			specs[i] = random_percent(random, 70) ? PICK(random, favourites) : random_packet(random);
		specs[i].time_ns = now_ns;
		now_ns = is_request ? random_requests_step(random, &requests, now_ns)
				    : random_step(random, ruleset, &pace, now_ns, goes_back);
	}
	reorder(random, specs, count);
	return specs;
}

/* ---- memory ---- */

/* A reading that says something to some rule: about its marks, or between them. */
static uint64_t random_used_bytes(struct random *random, const struct weir_ruleset *ruleset)
{
	const struct weir_memory_adaptive *memory;

	if (ruleset->rule_count == 0)
		return random_u64(random);
	memory = &ruleset->rules[random_below(random, ruleset->rule_count)].memory;
	switch (random_below(random, 6)) {
	case 0:
		return memory->low_mark_bytes - 1 + random_below(random, 3);
	case 1:
		return memory->high_mark_bytes - 1 + random_below(random, 3);
	}
	return random_between(random, memory->low_mark_bytes, memory->high_mark_bytes);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return first < second ? -1 : first > second;
}

size_t random_memory(struct random *random, const struct weir_ruleset *ruleset, const struct packet_spec *specs,
		     size_t count, struct random_reading *readings, size_t max)
{
	size_t reading_count = count == 0 || random_percent(random, 10) ? 0 : random_between(random, 1, max);
	uint64_t *times = calloc(reading_count + 1, sizeof(*times));

	assert(times);
	for (size_t i = 0; i < reading_count; i++) {
		times[i] = specs[random_below(random, count)].time_ns;
		/* the packet's own time, and the nanosecond before or after */
		if (random_percent(random, 40) && times[i] > 0)
			times[i] += random_below(random, 3) - 1;
	}
	qsort(times, reading_count, sizeof(*times), compare_times);
	for (size_t i = 0; i < reading_count; i++)
		readings[i] = (struct random_reading){times[i], random_used_bytes(random, ruleset)};
	free(times);
	return reading_count;
}
