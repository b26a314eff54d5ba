// SPDX-License-Identifier: GPL-2.0-only
/*
 * What can meet on one packet: the bound that the compiler proves against a search through every packet that
 * could make a difference; and that the proof is quick where there are thousands of resources.
 */
#include <string.h>
#include <time.h>

#include "compile_by_hand.h"
#include "compile_oracle.h"

/* ---- what can meet on one packet ---- */

/* Values that can make a difference: none, and where a range begins. */
static size_t list_values(const struct weir_ruleset *ruleset, size_t ranges_at, size_t count_at, uint32_t none,
			  uint32_t *values)
{
	size_t count = 0;

	values[count++] = none;
	for (size_t r = 0; r < ruleset->resource_count; r++) {
		const char *match = (const char *)&ruleset->resources[r].match;
		const struct weir_range *ranges = *(struct weir_range *const *)(match + ranges_at);

		for (size_t i = 0; i < *(const size_t *)(match + count_at); i++)
			values[count++] = ranges[i].low;
	}
	return count;
}

#define LIST_VALUES(ruleset, field, none, values)                                                                      \
	list_values(ruleset, offsetof(struct weir_match, field), offsetof(struct weir_match, field##_count), none,     \
		    values)

static size_t list_addresses(const struct weir_ruleset *ruleset, bool is_source, uint8_t family,
			     uint8_t (*addresses)[16])
{
	size_t count = 0;

	memset(addresses[count++], 0xfe, 16);
	for (size_t r = 0; r < ruleset->resource_count; r++) {
		const struct weir_match *match = &ruleset->resources[r].match;
		const struct weir_prefix *prefixes = is_source ? match->source : match->destination;

		for (size_t i = 0; i < (is_source ? match->source_count : match->destination_count); i++) {
			if (prefixes[i].family == family)
				memcpy(addresses[count++], prefixes[i].address, 16);
		}
	}
	return count;
}

struct candidates {
	uint8_t source[64][16], destination[64][16];
#define CANDIDATES(constant, name, member, highest, none, who) uint32_t member[64];
	WEIR_RANGE_FIELDS(CANDIDATES)
#define CANDIDATE_COUNT(constant, name, member, highest, none, who) size_t member##_count;
	WEIR_RANGE_FIELDS(CANDIDATE_COUNT)
	size_t sources, destinations, flags, interfaces;
};

struct most {
	uint32_t rules, resources;
};

static void note_packet(const struct weir_ruleset *ruleset, struct packet packet, struct most *most)
{
	uint32_t rules = 0, resources = 0;

	drop_impossible(&packet);
	for (size_t i = 0; i < ruleset->resource_count; i++)
		resources += matches(&ruleset->resources[i].match, &packet);
	for (size_t i = 0; i < ruleset->rule_count; i++)
		rules += matches(&ruleset->resources[ruleset->rules[i].resource].match, &packet);
	most->rules = rules > most->rules ? rules : most->rules;
	most->resources = resources > most->resources ? resources : most->resources;
}

/* Every combination of the candidates, for one kind of packet. */
static void try_all(const struct weir_ruleset *ruleset, const struct candidates *c, struct packet packet,
		    struct most *most)
{
	static const uint8_t flags[] = {0, 0x02, 0x10, 0x12, 0x04, 0x06, 0x14, 0x16};
	size_t combinations = c->sources * c->destinations * c->flags * c->interfaces;
	size_t i, n;

#define TIMES_COUNT(constant, name, member, highest, none, who) combinations *= c->member##_count;
	WEIR_RANGE_FIELDS(TIMES_COUNT)

	for (i = 0; i < combinations; i++) {
		n = i;
#define CHOOSE(count) (n % (count))
#define NEXT(count) (n /= (count))
		memcpy(packet.source, c->source[CHOOSE(c->sources)], 16);
		NEXT(c->sources);
		memcpy(packet.destination, c->destination[CHOOSE(c->destinations)], 16);
		NEXT(c->destinations);
#define CHOOSE_VALUE(constant, name, member, highest, none, who)                                                       \
	packet.member = c->member[CHOOSE(c->member##_count)];                                                          \
	NEXT(c->member##_count);
		WEIR_RANGE_FIELDS(CHOOSE_VALUE)
		packet.tcp_flags = flags[CHOOSE(c->flags)];
		NEXT(c->flags);
		packet.ifindex = CHOOSE(c->interfaces);
		note_packet(ruleset, packet, most);
	}
}

static struct most exhaustive_search(const struct weir_ruleset *ruleset)
{
	static const uint8_t protocols[] = {1, 6, 17, 58, 132, 47, 200};
	struct candidates *c = calloc(1, sizeof(*c));
	struct most most = {};
	unsigned int family, fragment, protocol;

	assert_non_null(c);
	c->flags = c->interfaces = 1;
	for (size_t r = 0; r < ruleset->resource_count; r++) {
		if (ruleset->resources[r].match.tcp_flags_count)
			c->flags = 8;
		if (ruleset->resources[r].match.interface_count)
			c->interfaces = 4;
	}
	/* Beside what rules name, one value that they hardly do: none, where every kind of packet may lack it. */
	enum { EVERY, PORTS, TYPE };
#define LIST_CANDIDATES(constant, name, member, highest, none, who)                                                    \
	c->member##_count = LIST_VALUES(ruleset, member, who == EVERY ? (none) : 2 * (highest) / 5, c->member);
	WEIR_RANGE_FIELDS(LIST_CANDIDATES)
	for (family = 4; family <= 6; family += 2) {
		c->sources = list_addresses(ruleset, true, family, c->source);
		c->destinations = list_addresses(ruleset, false, family, c->destination);
		for (fragment = 0; fragment < WEIR_FRAGMENT_KINDS; fragment++) {
			for (protocol = 0; protocol < sizeof(protocols); protocol++)
				for (unsigned int out = 0; out < 2; out++)
					try_all(ruleset, c,
						(struct packet){.direction =
									out ? WEIR_DIRECTION_OUT : WEIR_DIRECTION_IN,
								.family = family,
								.fragment = fragment,
								.protocol = protocols[protocol]},
						&most);
		}
	}
	free(c);
	return most;
}

/* Where most ranges overlap, one of them starts: their first values are candidates enough. */
CLAIM(meeting_bound_equals_exhaustive_search)
{
	uint32_t refused = 0;
	char name[32];

	for (uint32_t round = 0; round < 150; round++) {
		/* Two or three fields at a time, so that all combinations can be tried. */
		uint32_t conditions = 1u << chance(CONDITIONS) | 1u << chance(CONDITIONS) | (round % 2 ? 7 : 0);
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = chance_ruleset(4 + chance(5), conditions);
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;
		_cleanup_(weir_diag_free) struct weir_diag diag = {};
		struct most most;

		for (uint32_t i = 0; i < ruleset->resource_count; i++) {
			for (uint32_t rules = chance(6); rules; rules--) {
				snprintf(name, sizeof(name), "r%u#%u", i, rules);
				add_rule(ruleset, i, name, 10);
			}
		}
		most = exhaustive_search(ruleset);
		if (weir_image_build(ruleset, &plain_options, &image, &diag)) {
			assert_true(most.rules > WEIR_PACKET_RULES_MAX);
			refused++;
		} else {
			assert_int_equal(image->packet_rules_max, most.rules);
			assert_int_equal(image->packet_resources_max, most.resources);
		}
	}
	assert_in_range(refused, 1, 100);
}

CLAIM(random_packets_never_meet_more_than_the_bound)
{
	uint32_t accepted = 0;
	char name[32];

	for (uint32_t round = 0; round < 60; round++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset =
			chance_ruleset(20 + chance(60), CONDITIONS_ALL);
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;
		_cleanup_(weir_diag_free) struct weir_diag diag = {};
		struct most most = {};

		for (uint32_t i = 0; i < ruleset->resource_count; i++) {
			snprintf(name, sizeof(name), "rule%u", i);
			add_rule(ruleset, i, name, 10);
		}
		if (!weir_image_build(ruleset, &plain_options, &image, &diag)) {
			for (uint32_t i = 0; i < 5000; i++)
				note_packet(ruleset, chance_packet(), &most);
			assert_true(most.rules <= image->packet_rules_max);
			assert_true(most.resources <= image->packet_resources_max);
			accepted++;
		}
	}
	assert_true(accepted >= 5);
}

CLAIM(sixteen_rules_may_meet_and_seventeen_are_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	char name[32];

	add_address(add_resource(ruleset, "a", 0), 0x0a000000, 8);
	ADD_RANGE(add_resource(ruleset, "b", 0), destination_port, 80, 90);
	for (uint32_t i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "rule%u", i);
		add_rule(ruleset, i % 2, name, 10);
	}
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, 16);
	assert_int_equal(image->packet_resources_max, 2);
	assert_int_equal(image->resources[1].rule_count, 8);
	assert_int_equal(image->resources[1].rule[7], 15);
	weir_image_free(image);
	add_rule(ruleset, 0, "rule16", 10);
	assert_refused(
		ruleset, &plain_options,
		"17 rules can meet on one packet, at most 16 may: 'rule0', 'rule1', 'rule2', 'rule3' and 13 more");
}

/* Fills two resources, which no packet shares, with rules on connections and others. Those on connections observe, or
 * share them. Is it warned of?
 */
static bool is_dear(uint32_t connections, uint32_t windows, uint32_t apart, bool has_key, bool share, const char *words)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	bool is_warned = false;

	ADD_RANGE(add_resource(ruleset, "a", has_key ? WEIR_KEY_SOURCE : 0), destination_port, 80, 80);
	ADD_RANGE(add_resource(ruleset, "b", has_key ? WEIR_KEY_SOURCE : 0), destination_port, 81, 81);
	for (uint32_t i = 0; i < connections + windows + apart; i++) {
		struct weir_ruleset_rule *rule = add_rule(ruleset, i >= connections + windows, "rule", 10);

		if (i < connections || i >= connections + windows) {
			rule->metric = WEIR_METRIC_CONCURRENCY;
			rule->observes = !share;
		}
	}
	assert_int_equal(weir_image_build(ruleset, &plain_options, &image, &diag), 0);
	for (size_t i = 0; i < diag.count; i++) {
		if (!strstr(diag.entries[i].message, "forged packets a second"))
			continue;
		is_warned = true;
		if (words)
			assert_non_null(strstr(diag.entries[i].message, words));
	}
	return is_warned;
}

/* 0.8 us for a rule that follows connections, 0.5 for another with a key, 0.1 without one: above 5 us. */
CLAIM(rules_that_make_a_forged_packet_dear_are_warned_of)
{
	assert_false(is_dear(6, 0, 0, true, false, NULL));
	assert_true(is_dear(7, 0, 0, true, false, "meets 7 rules, which cost some 5.7 us: a core for 175,000 forged"));
	assert_false(is_dear(0, 10, 0, true, false, NULL));
	assert_true(is_dear(0, 11, 0, true, false, NULL));
	assert_true(is_dear(8, 8, 0, true, false, "meets 16 rules, which cost some 10.5 us: a core for 95,000 forged"));
	assert_false(is_dear(6, 2, 0, false, false, NULL));
	assert_true(is_dear(6, 3, 0, false, false, NULL));
	assert_false(is_dear(6, 0, 6, true, false, NULL)); /* no packet meets all twelve */
	assert_true(is_dear(6, 0, 7, true, false, "meets 7 rules"));
	/* 0.1 us for each that shares connections with an earlier one */
	assert_false(is_dear(16, 0, 0, true, true, NULL));
	assert_false(is_dear(8, 6, 0, true, true, NULL));
	assert_true(is_dear(8, 8, 0, true, true, "meets 16 rules, which cost some 5.6 us: a core for 178,000 forged"));
}

CLAIM(what_comes_in_and_what_goes_out_cannot_meet)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	char name[32];

	add_resource(ruleset, "in", 0);
	add_resource(ruleset, "out", 0)->directions = WEIR_MATCHES_OUT;
	for (uint32_t i = 0; i < 24; i++) {
		snprintf(name, sizeof(name), "rule%u", i);
		add_rule(ruleset, i % 2, name, 10);
	}
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, 12);
	assert_int_equal(image->packet_resources_max, 1);
	weir_image_free(image);
	ruleset->resources[1].match.directions = WEIR_MATCHES_BOTH;
	assert_refused(
		ruleset, &plain_options,
		"24 rules can meet on one packet, at most 16 may: 'rule0', 'rule1', 'rule2', 'rule3' and 20 more");
}

CLAIM(a_resource_with_seventeen_rules_is_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();

	add_resource(ruleset, "crowded", 0);
	for (uint32_t i = 0; i < 17; i++)
		add_rule(ruleset, 0, i < 16 ? "rule" : "last", 10);
	assert_refused(ruleset, &plain_options, "rule 'last' is one too many for resource 'crowded'");
}

CLAIM(thirty_two_resources_may_meet_and_thirty_three_are_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;

	for (uint32_t i = 0; i < 32; i++)
		add_resource(ruleset, "any", 0);
	image = build(ruleset);
	assert_int_equal(image->packet_resources_max, 32);
	assert_int_equal(image->packet_rules_max, 0);
	weir_image_free(image);
	add_resource(ruleset, "one-more", 0);
	assert_refused(ruleset, &plain_options, "33 resources can match one packet, at most 32 may");
}

static void add_third(struct weir_range **ranges, size_t *count, uint32_t values)
{
	for (uint32_t value = 0; value < values; value++)
		if (!chance(3))
			add_range(ranges, count, value, value);
}

/* A search for the most resources would take as long again. It would find more than may meet, too, which can wait. */
CLAIM(unproved_rules_are_not_tried_for_resources)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();

	for (uint32_t i = 0; i < 300; i++) {
		struct weir_match *match = add_resource(ruleset, "r", 0);

		add_third(&match->destination_port, &match->destination_port_count, 200);
		add_third(&match->source_port, &match->source_port_count, 200);
		add_third(&match->length, &match->length_count, 200);
		add_third(&match->vlan, &match->vlan_count, 200);
		add_third(&match->dscp, &match->dscp_count, 64);
		add_rule(ruleset, i, "rule", 10);
	}
	for (int i = 0; i < 33; i++)
		add_resource(ruleset, "any", 0);
	assert_refused(ruleset, &plain_options, "cannot prove that at most 16 rules meet on one packet");
}

/* Eight rules on each of two resources: 16 when they meet, 8 when they cannot. */
static void assert_apart(struct weir_ruleset *ruleset, bool are_apart)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	while (ruleset->rule_count < 16)
		add_rule(ruleset, ruleset->rule_count % 2, "rule", 10);
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, are_apart ? 8 : 16);
	weir_ruleset_free(ruleset);
}

static void add_except(struct weir_ruleset *ruleset, size_t resource, size_t excepted)
{
	struct weir_match *match = &ruleset->resources[resource].match;
	struct weir_excepted *added = weir_array_add((void **)&match->except, match->except_count, sizeof(*added));

	assert_non_null(added);
	added->resource = excepted;
	match->except_count++;
}

/* Sixteen rules on all packets, and one more on those of a port: together seventeen, but not if the first are without
 * the port.
 */
CLAIM(a_resource_does_not_meet_what_it_excepts)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;

	add_resource(ruleset, "general", 0);
	ADD_RANGE(add_resource(ruleset, "special", 0), destination_port, 53, 53);
	for (int i = 0; i < WEIR_PACKET_RULES_MAX; i++)
		add_rule(ruleset, 0, "general", 1);
	add_rule(ruleset, 1, "special", 1);
	assert_refused(ruleset, &plain_options, "17 rules can meet");
	add_except(ruleset, 0, 1);
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, WEIR_PACKET_RULES_MAX);
	assert_int_equal(image->packet_resources_max, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* The first that matches has the packet: each of 40 that all packets match is without all before it. */
CLAIM(of_resources_that_except_all_earlier_ones_one_meets_a_packet)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;

	for (size_t i = 0; i < 40; i++) {
		ADD_RANGE(add_resource(ruleset, "next", 0), destination_port, 0, 1000 * i);
		add_rule(ruleset, i, "limit", 1);
		for (size_t k = 0; k < i; k++)
			add_except(ruleset, i, k);
	}
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, 1);
	assert_int_equal(image->packet_resources_max, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* By what a slow search finds: belongs to `resource`, in the order of the bits. */
static bool belongs(const struct weir_ruleset *ruleset, size_t resource, const struct packet *packet)
{
	const struct weir_match *match = &ruleset->resources[resource].match;

	for (size_t i = 0; i < match->except_count; i++)
		if (belongs(ruleset, match->except[i].resource, packet))
			return false;
	return matches(match, packet);
}

CLAIM(random_packets_never_meet_more_than_the_bound_where_resources_except_others)
{
	for (uint32_t round = 0; round < 60; round++) {
		struct weir_ruleset *ruleset = chance_ruleset(2 + round % 30, chance(CONDITIONS_ALL + 1));
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;
		_cleanup_(weir_diag_free) struct weir_diag diag = {};

		for (size_t i = 1; i < ruleset->resource_count; i++)
			for (size_t k = 0; k < i; k++)
				if (chance(100) < 1 + round % 20)
					add_except(ruleset, k, i); /* later ones, so that the bits must be sorted */
		if (weir_image_build(ruleset, &plain_options, &image, &diag)) {
			weir_ruleset_free(ruleset);
			continue;
		}
		for (size_t i = 0; i < ruleset->resource_count; i++)
			for (size_t k = 0; k < ruleset->resources[i].match.except_count; k++)
				assert_true(image->bit[i] > image->bit[ruleset->resources[i].match.except[k].resource]);
		for (uint32_t i = 0; i < 2000; i++) {
			struct packet packet = chance_packet();
			uint32_t resources = 0;

			for (size_t r = 0; r < ruleset->resource_count; r++)
				resources += belongs(ruleset, r, &packet);
			assert_true(resources <= image->packet_resources_max);
		}
		weir_ruleset_free(ruleset);
	}
}

CLAIM(an_ipv4_source_and_an_ipv6_destination_cannot_meet)
{
	static const uint8_t address[16] = {0x20, 1};
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match = add_resource(ruleset, "a", 0);

	add_prefix(&match->source, &match->source_count, 4, address, 16);
	match = add_resource(ruleset, "b", 0);
	add_prefix(&match->destination, &match->destination_count, 6, address, 16);
	assert_apart(ruleset, true);
}

CLAIM(tcp_flags_and_udp_cannot_meet)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_flags(add_resource(ruleset, "a", 0), 2, 16);
	add_protocol(add_resource(ruleset, "b", 0), 17);
	assert_apart(ruleset, true);
}

CLAIM(ports_and_an_icmp_type_cannot_meet)
{
	struct weir_ruleset *ruleset = new_ruleset();

	ADD_RANGE(add_resource(ruleset, "a", 0), source_port, 0, 65535);
	ADD_RANGE(add_resource(ruleset, "b", 0), icmp_type, 0, 255);
	assert_apart(ruleset, true);
}

CLAIM(ports_and_a_later_fragment_cannot_meet)
{
	struct weir_ruleset *ruleset = new_ruleset();

	ADD_RANGE(add_resource(ruleset, "a", 0), source_port, 0, 65535);
	add_resource(ruleset, "b", 0)->fragments = 1 << WEIR_FRAGMENT_LATER;
	assert_apart(ruleset, true);
}

CLAIM(tcp_flags_and_a_port_can_meet)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_flags(add_resource(ruleset, "a", 0), 2, 16);
	ADD_RANGE(add_resource(ruleset, "b", 0), destination_port, 443, 443);
	assert_apart(ruleset, false);
}

/* Three share an address and three a port, but only the two that share both meet. */
CLAIM(the_heaviest_class_need_not_be_the_best)
{
	static const struct {
		uint8_t address, port;
	} places[] = {{1, 1}, {1, 2}, {1, 3}, {2, 4}, {2, 4}, {3, 1}, {4, 1}};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		match = add_resource(ruleset, "r", 0);
		add_address(match, places[i].address, 32);
		ADD_RANGE(match, source_port, places[i].port, places[i].port);
		add_rule(ruleset, i, "rule", 10);
	}
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, 2);
	assert_int_equal(image->packet_resources_max, 2);
}

/* ---- thousands of resources ---- */

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

enum layout { BY_ADDRESS, BY_PORT, BY_EITHER, BY_ANY_OF_THREE, BY_BOTH };

static void set_layout(struct weir_match *match, enum layout layout, uint32_t i)
{
	switch (layout) {
	case BY_ADDRESS:
		add_address(match, 0x0a000000 + i, 32);
		add_protocol(match, i % 256);
		break;
	case BY_PORT:
		ADD_RANGE(match, destination_port, 10 * i, 10 * i + 9);
		break;
	case BY_EITHER:
		set_layout(match, i % 2 ? BY_ADDRESS : BY_PORT, i);
		break;
	case BY_ANY_OF_THREE:
		if (i % 3 == 2)
			ADD_RANGE(match, source_port, 10 * i, 10 * i + 9);
		else
			set_layout(match, i % 3 ? BY_ADDRESS : BY_PORT, i);
		break;
	case BY_BOTH:
		add_address(match, 0x0a000000 + (i / 64 << 8), 24);
		ADD_RANGE(match, destination_port, i % 64, i % 64);
		break;
	}
}

/* Of CPU time, which a busy machine makes longer, too, and sanitizers several times: 15 to 75 ms were seen. 4,096 cubed
 * is 7 x 10^10. How quick it is, is bench's. Chosen, not derived.
 */
#define QUICK_CPU_SECONDS_MAX 10

/* 4,096 resources with two rules each. */
static void assert_quick(enum layout layout, uint32_t rules_max)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	double before;
	char name[32];

	for (uint32_t i = 0; i < WEIR_RESOURCES_MAX; i++) {
		snprintf(name, sizeof(name), "resource%u", i);
		set_layout(add_resource(ruleset, name, WEIR_KEY_SOURCE), layout, i);
		add_rule(ruleset, i, name, 10);
		snprintf(name, sizeof(name), "other%u", i);
		add_rule(ruleset, i, name, 1000)->interval_ns = 60 * SECOND;
	}
	before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	image = build(ruleset);
	before = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before;
	print_message("4,096 resources, 8,192 rules: %.0f ms\n", before * 1e3);
	assert_int_equal(image->packet_rules_max, rules_max);
	assert_true(before < QUICK_CPU_SECONDS_MAX);
}

CASE(thousands_of_resources_apart_by_address_are_quick, assert_quick(BY_ADDRESS, 2));
CASE(thousands_of_resources_apart_by_port_are_quick, assert_quick(BY_PORT, 2));
CASE(thousands_of_resources_by_address_or_port_are_quick, assert_quick(BY_EITHER, 4));
CASE(thousands_of_resources_by_one_of_three_fields_are_quick, assert_quick(BY_ANY_OF_THREE, 6));
CASE(thousands_of_resources_by_address_and_port_are_quick, assert_quick(BY_BOTH, 2));

RUN_CLAIMS(NULL, NULL)
