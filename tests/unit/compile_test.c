// SPDX-License-Identifier: GPL-2.0-only
/*
 * The compiler against slow and obvious oracles: a matcher that tries each resource in turn, and a
 * search through every packet that could make a difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "compile_parts.h"
#include "util.h"
#include "weir_cost.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC

/* ---- rule sets made by hand ---- */

static struct weir_ruleset *new_ruleset(void)
{
	struct weir_ruleset *ruleset = calloc(1, sizeof(*ruleset));

	assert_non_null(ruleset);
	ruleset->settings = (struct weir_settings){
		.flows_per_cpu = 4096,
		.drop_malformed = true,
		.drop_unsupported = true,
		.connections = 131072,
		.connection_flows = 32768,
		.connection_timeout_ms = {10000, 7440000, 120000, 10001},
	};
	return ruleset;
}

static struct weir_match *add_resource(struct weir_ruleset *ruleset, const char *name, uint32_t key_fields)
{
	struct weir_ruleset_resource *resource;

	resource = weir_array_add((void **)&ruleset->resources, ruleset->resource_count++, sizeof(*resource));
	assert_non_null(resource);
	resource->name = strdup(name);
	resource->flow.fields = key_fields;
	if (key_fields & WEIR_KEY_SOURCE)
		resource->flow.source_bits[0] = 32, resource->flow.source_bits[1] = 128;
	return &resource->match;
}

static struct weir_ruleset_rule *add_rule(struct weir_ruleset *ruleset, size_t resource, const char *name,
					  uint64_t threshold)
{
	struct weir_ruleset_rule *rule;

	rule = weir_array_add((void **)&ruleset->rules, ruleset->rule_count++, sizeof(*rule));
	assert_non_null(rule);
	rule->name = strdup(name);
	rule->resource = resource;
	rule->threshold_micro = threshold * WEIR_MICRO;
	rule->interval_ns = SECOND;
	rule->samples = 10;
	return rule;
}

static void add_range(struct weir_range **ranges, size_t *count, uint32_t low, uint32_t high)
{
	struct weir_range *range = weir_array_add((void **)ranges, (*count)++, sizeof(*range));

	assert_non_null(range);
	*range = (struct weir_range){low, high};
}

#define ADD_RANGE(match, field, low, high)                                                                             \
	do {                                                                                                           \
		struct weir_match *_match = (match);                                                                   \
		add_range(&_match->field, &_match->field##_count, low, high);                                          \
	} while (0)

/* The prefix of this address, host bits cleared. */
static void add_prefix(struct weir_prefix **prefixes, size_t *count, uint8_t family, const uint8_t *address,
		       unsigned int bits)
{
	struct weir_prefix *prefix = weir_array_add((void **)prefixes, (*count)++, sizeof(*prefix));
	unsigned int i;

	assert_non_null(prefix);
	prefix->family = family;
	prefix->bits = bits;
	for (i = 0; i < bits; i++)
		prefix->address[i / 8] |= address[i / 8] & 0x80 >> i % 8;
}

static void add_address(struct weir_match *match, uint32_t address, unsigned int bits)
{
	uint8_t bytes[16] = {address >> 24, address >> 16, address >> 8, address};

	add_prefix(&match->destination, &match->destination_count, 4, bytes, bits);
}

static void add_protocol(struct weir_match *match, unsigned int protocol)
{
	match->has_protocol = true;
	match->protocol[protocol / 8] |= 1u << protocol % 8;
}

static void add_flags(struct weir_match *match, uint8_t set, uint8_t clear)
{
	struct weir_tcp_flags *flags =
		weir_array_add((void **)&match->tcp_flags, match->tcp_flags_count++, sizeof(*flags));

	assert_non_null(flags);
	*flags = (struct weir_tcp_flags){set, clear};
}

static void add_interface(struct weir_match *match, const char *name)
{
	char *added = weir_array_add((void **)&match->interface, match->interface_count++, IF_NAMESIZE);

	assert_non_null(added);
	strncpy(added, name, IF_NAMESIZE - 1);
}

/* eth1 is 1, eth2 is 2, and so on; others do not exist. */
static uint32_t test_ifindex(const char *name, void *data)
{
	return strncmp(name, "eth", 3) ? 0 : (uint32_t)(name[3] - '0');
}

static const struct weir_compile_options plain_options = {
	.cpus = 2,
	.now_ns = 1000 * SECOND,
	.ifindex = test_ifindex,
};

static struct weir_image *build_with(const struct weir_ruleset *ruleset, const struct weir_compile_options *options)
{
	struct weir_image *image = NULL;
	struct weir_diag diag = {};

	if (weir_image_build(ruleset, options, &image, &diag))
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_non_null(image);
	return image;
}

static struct weir_image *build(const struct weir_ruleset *ruleset)
{
	return build_with(ruleset, &plain_options);
}

/* Whether the rule set is refused with one mistake, whose text has `words` in it. */
static void assert_refused(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
			   const char *words)
{
	struct weir_image *image = NULL;
	struct weir_diag diag = {};

	assert_int_equal(weir_image_build(ruleset, options, &image, &diag), -EINVAL);
	assert_null(image);
	assert_int_equal(diag.errors, 1);
	if (!strstr(diag.entries[0].message, words))
		print_error("%s\n", diag.entries[0].message);
	assert_non_null(strstr(diag.entries[0].message, words));
	weir_diag_free(&diag);
}

/* ---- packets and the plain matcher ---- */

struct packet {
	uint8_t family; /* 4 or 6 */
	uint8_t fragment;
	uint8_t protocol;
	uint8_t source[16], destination[16];
	/* or the field's _NONE */
	uint32_t source_port, destination_port, tcp_flags, icmp_type, vlan;
	uint32_t length, ifindex;
};

/* What a packet of this kind cannot have, it has not. */
static void drop_impossible(struct packet *packet)
{
	bool is_later = packet->fragment == WEIR_FRAGMENT_LATER;

	if (is_later || (packet->protocol != 6 && packet->protocol != 17 && packet->protocol != 132))
		packet->source_port = packet->destination_port = WEIR_PORT_NONE;
	if (is_later || packet->protocol != 6)
		packet->tcp_flags = WEIR_BYTE_NONE;
	if (is_later || (packet->protocol != 1 && packet->protocol != 58))
		packet->icmp_type = WEIR_BYTE_NONE;
}

static bool is_in_ranges(const struct weir_range *ranges, size_t count, uint32_t value)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (value >= ranges[i].low && value <= ranges[i].high)
			return true;
	}
	return !count;
}

static bool is_in_prefix(uint8_t family, const uint8_t *prefix, unsigned int bits, const struct packet *packet,
			 const uint8_t *address)
{
	unsigned int i;

	if (packet->family != family)
		return false;
	for (i = 0; i < bits; i++) {
		if ((prefix[i / 8] ^ address[i / 8]) & 0x80 >> i % 8)
			return false;
	}
	return true;
}

static bool is_in_prefixes(const struct weir_prefix *prefixes, size_t count, const struct packet *packet,
			   const uint8_t *address)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (is_in_prefix(prefixes[i].family, prefixes[i].address, prefixes[i].bits, packet, address))
			return true;
	}
	return !count;
}

static bool has_flags(const struct weir_match *match, uint32_t flags)
{
	size_t i;

	for (i = 0; i < match->tcp_flags_count; i++) {
		if (flags != WEIR_BYTE_NONE && (flags & match->tcp_flags[i].set) == match->tcp_flags[i].set &&
		    (flags & match->tcp_flags[i].clear) == 0)
			return true;
	}
	return !match->tcp_flags_count;
}

static bool is_on_interface(const struct weir_match *match, uint32_t ifindex)
{
	size_t i;

	for (i = 0; i < match->interface_count; i++) {
		if (ifindex && test_ifindex(match->interface[i], NULL) == ifindex)
			return true;
	}
	return !match->interface_count;
}

static bool matches(const struct weir_match *match, const struct packet *packet)
{
	if (match->families && !(match->families >> (packet->family == 6) & 1))
		return false;
	if (match->fragments && !(match->fragments >> packet->fragment & 1))
		return false;
	if (match->has_protocol && !(match->protocol[packet->protocol / 8] >> packet->protocol % 8 & 1))
		return false;
	return is_in_prefixes(match->source, match->source_count, packet, packet->source) &&
	       is_in_prefixes(match->destination, match->destination_count, packet, packet->destination) &&
	       is_in_ranges(match->source_port, match->source_port_count, packet->source_port) &&
	       is_in_ranges(match->destination_port, match->destination_port_count, packet->destination_port) &&
	       is_in_ranges(match->icmp_type, match->icmp_type_count, packet->icmp_type) &&
	       is_in_ranges(match->vlan, match->vlan_count, packet->vlan) &&
	       is_in_ranges(match->length, match->length_count, packet->length) &&
	       has_flags(match, packet->tcp_flags) && is_on_interface(match, packet->ifindex);
}

/* ---- the image's answer, as the program would find it ---- */

static uint32_t prefix_steps; /* of the latest search */

static uint32_t longest_prefix(const struct weir_image *image, const uint32_t roots[2], const struct packet *packet,
			       const uint8_t *address)
{
	uint32_t entry = roots[packet->family == 6], steps = 0;
	uint64_t words[2] = {};

	for (int i = 0; i < (packet->family == 6 ? 16 : 4); i++)
		words[i / 8] |= (uint64_t)address[i] << (56 - i % 8 * 8);
	while (entry & WEIR_PREFIX_IS_NODE) {
		assert_true((entry & ~WEIR_PREFIX_IS_NODE) < image->prefix_node_count);
		assert_true(++steps <= WEIR_PREFIX_STEPS_MAX);
		entry = weir_prefix_step(&image->prefix_nodes[entry & ~WEIR_PREFIX_IS_NODE], words[0], words[1]);
	}
	prefix_steps = steps;
	return entry;
}

static uint32_t interface_vector(const struct weir_image *image, uint32_t ifindex)
{
	uint32_t i;

	for (i = 0; i < image->interface_count; i++) {
		if (image->interfaces[i].ifindex == ifindex)
			return image->interfaces[i].vector;
	}
	return image->config.interface_default;
}

static void meet(const struct weir_image *image, struct weir_vector *set, uint32_t field, uint32_t vector)
{
	uint32_t i;

	assert_true(vector < image->vector_count);
	if (!(image->config.match_fields & field))
		return;
	set->summary &= image->vectors[vector].summary;
	for (i = 0; i < image->config.vector_words; i++)
		set->word[i] &= image->vectors[vector].word[i];
}

static struct weir_vector look_up(const struct weir_image *image, const struct packet *packet)
{
	const struct weir_classes *classes = image->classes;
	struct weir_vector set = image->vectors[0];

	meet(image, &set, WEIR_MATCH_KIND, classes->kind[packet->family == 6][packet->fragment][packet->protocol]);
	meet(image, &set, WEIR_MATCH_SOURCE, longest_prefix(image, image->config.source_root, packet, packet->source));
	meet(image, &set, WEIR_MATCH_DESTINATION,
	     longest_prefix(image, image->config.destination_root, packet, packet->destination));
	meet(image, &set, WEIR_MATCH_SOURCE_PORT, classes->source_port[packet->source_port]);
	meet(image, &set, WEIR_MATCH_DESTINATION_PORT, classes->destination_port[packet->destination_port]);
	meet(image, &set, WEIR_MATCH_TCP_FLAGS, classes->tcp_flags[packet->tcp_flags]);
	meet(image, &set, WEIR_MATCH_ICMP_TYPE, classes->icmp_type[packet->icmp_type]);
	meet(image, &set, WEIR_MATCH_VLAN, classes->vlan[packet->vlan]);
	meet(image, &set, WEIR_MATCH_LENGTH, classes->length[packet->length]);
	meet(image, &set, WEIR_MATCH_INTERFACE, interface_vector(image, packet->ifindex));
	return set;
}

/* ---- chance ---- */

static uint64_t chance_state = 1;

static uint32_t chance(uint32_t below)
{
	chance_state = chance_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(chance_state >> 33) % below;
}

/* Few different bytes, so that prefixes nest and packets hit them. */
static void chance_address(uint8_t family, uint8_t *address)
{
	static const uint8_t bytes[] = {0, 1, 0x80, 0xff};
	size_t i;

	memset(address, 0, 16);
	for (i = 0; i < (family == 6 ? 16 : 4); i++)
		address[i] = i < 3 || i == 15 ? bytes[chance(4)] : 0;
}

static void chance_prefixes(struct weir_prefix **prefixes, size_t *count)
{
	uint32_t n = 1 + chance(3);
	uint8_t address[16];
	uint8_t family;

	while (n--) {
		family = chance(2) ? 4 : 6;
		chance_address(family, address);
		add_prefix(prefixes, count, family, address, chance(4) ? chance(25) : chance(family == 6 ? 129 : 33));
	}
}

static void chance_ranges(struct weir_range **ranges, size_t *count, uint32_t values)
{
	uint32_t n = 1 + chance(3), low, high;

	while (n--) {
		low = chance(4) ? chance(10) : values - 1 - chance(10);
		high = chance(3) ? low : low + chance(values - low);
		add_range(ranges, count, low, high);
	}
}

#define CHANCE_RANGES(match, field, values) chance_ranges(&(match)->field, &(match)->field##_count, values)

static void chance_match(struct weir_match *match, uint32_t conditions)
{
	static const uint8_t protocols[] = {1, 6, 17, 58, 132, 47};
	static const uint8_t flags[] = {0x02, 0x10, 0x04};
	static const char *const interfaces[] = {"eth1", "eth2", "gone0"};

	if (conditions & 1 << 0)
		match->families = 1 + chance(3);
	if (conditions & 1 << 1)
		match->fragments = 1 + chance(7);
	if (conditions & 1 << 2)
		add_protocol(match, protocols[chance(6)]), add_protocol(match, protocols[chance(6)]);
	if (conditions & 1 << 3)
		chance_prefixes(&match->source, &match->source_count);
	if (conditions & 1 << 4)
		chance_prefixes(&match->destination, &match->destination_count);
	if (conditions & 1 << 5)
		CHANCE_RANGES(match, source_port, 65536);
	if (conditions & 1 << 6)
		CHANCE_RANGES(match, destination_port, 65536);
	if (conditions & 1 << 7)
		CHANCE_RANGES(match, icmp_type, 256);
	if (conditions & 1 << 8)
		CHANCE_RANGES(match, vlan, 4096);
	if (conditions & 1 << 9)
		CHANCE_RANGES(match, length, 65536);
	if (conditions & 1 << 10)
		add_flags(match, flags[chance(3)], 0), add_flags(match, 0, flags[chance(3)]);
	if (conditions & 1 << 11)
		add_interface(match, interfaces[chance(3)]);
}

#define CONDITIONS 12

/* Up to `resources` resources that use, of the conditions given, about one in three. */
static struct weir_ruleset *chance_ruleset(uint32_t resources, uint32_t conditions)
{
	struct weir_ruleset *ruleset = new_ruleset();
	uint32_t i, bit, chosen;
	char name[32];

	for (i = 0; i < resources; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		chosen = 0;
		for (bit = 0; bit < CONDITIONS; bit++)
			chosen |= chance(3) ? 0 : 1u << bit;
		chance_match(add_resource(ruleset, name, 0), chosen & conditions);
	}
	return ruleset;
}

static uint32_t chance_value(uint32_t values)
{
	switch (chance(4)) {
	case 0:
		return values; /* none, or longer */
	case 1:
		return values - 1 - chance(12);
	case 2:
		return chance(values);
	}
	return chance(12);
}

static struct packet chance_packet(void)
{
	static const uint8_t protocols[] = {1, 6, 17, 58, 132, 47};
	struct packet packet = {
		.family = chance(2) ? 4 : 6,
		.fragment = chance(WEIR_FRAGMENT_KINDS),
		.protocol = chance(8) ? protocols[chance(6)] : chance(256),
		.source_port = chance_value(65536),
		.destination_port = chance_value(65536),
		.tcp_flags = chance(256),
		.icmp_type = chance_value(256),
		.vlan = chance_value(4096),
		.length = chance_value(65536),
		.ifindex = chance(4),
	};

	chance_address(packet.family, packet.source);
	chance_address(packet.family, packet.destination);
	drop_impossible(&packet);
	return packet;
}

/* ---- matching ---- */

static void assert_same_resources(const struct weir_ruleset *ruleset, const struct weir_image *image,
				  const struct packet *packet)
{
	struct weir_vector set = look_up(image, packet);
	size_t r;

	for (r = 0; r < ruleset->resource_count; r++) {
		if (weir_vector_has(&set, image->bit[r]) != matches(&ruleset->resources[r].match, packet))
			fail_msg("resource %zu of %zu", r, ruleset->resource_count);
	}
	for (; r < WEIR_RESOURCES_MAX; r++)
		assert_false(weir_vector_has(&set, r));
	for (r = 0; r < WEIR_VECTOR_WORDS; r++)
		assert_true(!set.word[r] || set.summary >> r & 1);
}

static void random_packets_meet_what_a_plain_matcher_finds(void **state)
{
	static const uint32_t sizes[] = {1, 5, 20, 64, 65, 200};
	uint32_t round, i;

	for (round = 0; round < 120; round++) {
		/* Matching alone: so many resources may well exceed what may meet on a packet. */
		struct weir_ruleset *ruleset = chance_ruleset(sizes[round % 6], round % 2 ? 0xfff : chance(0x1000));
		struct weir_image *image = calloc(1, sizeof(*image));
		struct weir_diag diag = {};

		assert_int_equal(weir_compile_match(ruleset, &plain_options, image, &diag), 0);
		for (i = 0; i < 2000; i++) {
			struct packet packet = chance_packet();

			assert_same_resources(ruleset, image, &packet);
		}
		weir_diag_free(&diag);
		weir_image_free(image);
		weir_ruleset_free(ruleset);
	}
}

/* Four services of each customer, one after the other as people write them; the last for tenants of a VLAN. */
static struct weir_ruleset *services_ruleset(uint32_t resources)
{
	static const uint32_t first_ports[] = {53, 80, 443}, last_ports[] = {53, 89, 443};
	struct weir_ruleset *ruleset = new_ruleset();

	for (uint32_t i = 0; i < resources; i++) {
		struct weir_match *match = add_resource(ruleset, "service", 0);
		uint32_t customer = i / 4;

		if (i % 4 == 3) {
			ADD_RANGE(match, vlan, customer + 1, customer + 1);
			continue;
		}
		add_address(match, 0x0a000000 + (customer << 8), 24);
		add_protocol(match, i % 4 ? 6 : 17);
		ADD_RANGE(match, destination_port, first_ports[i % 4], last_ports[i % 4]);
		if (i % 4 == 2)
			add_flags(match, 2, 16);
	}
	return ruleset;
}

/* The packet that meets one of these services. */
static struct packet service_packet(uint32_t i)
{
	static const uint32_t ports[] = {53, 85, 443, 9};
	struct packet packet = {
		.family = 4,
		.protocol = i % 4 == 1 || i % 4 == 2 ? 6 : 17,
		.destination = {10, i / 4 >> 8, i / 4, 7},
		.source_port = 1024,
		.destination_port = ports[i % 4],
		.tcp_flags = 2,
		.icmp_type = WEIR_BYTE_NONE,
		.vlan = i % 4 == 3 ? i / 4 + 1 : WEIR_VLAN_NONE,
		.length = 100,
	};

	drop_impossible(&packet);
	return packet;
}

/* A word is looked at when all summaries name it: that has to be few, however many resources there are. */
static void resources_that_are_alike_share_words(void **state)
{
	struct weir_ruleset *ruleset = services_ruleset(WEIR_RESOURCES_MAX);
	struct weir_image *image = build(ruleset);

	for (uint32_t i = 0; i < WEIR_RESOURCES_MAX; i++) {
		struct packet packet = service_packet(i);
		struct weir_vector set = look_up(image, &packet);

		assert_true(weir_vector_has(&set, image->bit[i]));
		assert_true(__builtin_popcountll(set.summary) <= 2);
	}
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* As many as part a thousand customers, with the bits they share skipped. */
static void a_thousand_prefixes_are_searched_in_few_steps(void **state)
{
	struct weir_ruleset *ruleset = services_ruleset(WEIR_RESOURCES_MAX);
	struct weir_image *image = build(ruleset);

	for (uint32_t i = 0; i < WEIR_RESOURCES_MAX; i++) {
		struct packet packet = service_packet(i);

		longest_prefix(image, image->config.destination_root, &packet, packet.destination);
		assert_in_range(prefix_steps, 1, 3);
	}
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void fields_without_conditions_are_not_in_use(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match = add_resource(ruleset, "any", 0);
	struct weir_image *image = build(ruleset);

	assert_int_equal(image->config.match_fields, 0);
	assert_int_equal(image->vector_count, 1);
	assert_int_equal(image->vectors[0].word[0], 1);
	assert_int_equal(image->config.resource_count, 1);
	assert_int_equal(image->config.vector_words, 1);
	weir_image_free(image);

	match = &ruleset->resources[0].match;
	ADD_RANGE(match, destination_port, 53, 53);
	add_protocol(match, 17);
	image = build(ruleset);
	assert_int_equal(image->config.match_fields, WEIR_MATCH_DESTINATION_PORT | WEIR_MATCH_KIND);
	assert_int_equal(image->vector_count, 2);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void no_resources_match_nothing(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image = build(ruleset);

	assert_int_equal(image->config.resource_count, 0);
	assert_int_equal(image->vector_count, 1);
	assert_int_equal(image->vectors[0].summary, 0);
	assert_int_equal(image->packet_rules_max, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void prefix_inside_another_of_the_same_resource_is_left_out(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match = add_resource(ruleset, "nested", 0);
	struct weir_image *image;

	add_address(match, 0x0a010000, 16);
	add_address(match, 0x0a000000, 8);
	add_address(match, 0x0a010000, 16);
	image = build(ruleset);
	assert_int_equal(image->destination_prefix_count, 1);
	assert_int_equal(image->destination_prefixes[0].prefix.bits, 8);
	assert_int_equal(image->source_prefix_count, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void missing_interface_warns_and_matches_nothing(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image = NULL;
	struct weir_diag diag = {};
	struct weir_vector set;
	struct packet packet;

	add_interface(add_resource(ruleset, "there", 0), "eth3");
	add_interface(add_resource(ruleset, "not-there", 0), "gone0");
	assert_int_equal(weir_image_build(ruleset, &plain_options, &image, &diag), 0);
	assert_int_equal(diag.errors, 0);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "'gone0'"));
	packet = chance_packet();
	for (packet.ifindex = 0; packet.ifindex < 5; packet.ifindex++) {
		set = look_up(image, &packet);
		assert_int_equal(set.word[0], packet.ifindex == 3 ? 1 : 0);
	}
	weir_diag_free(&diag);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_rule_set_with_more_than_4096_resources_is_refused(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	uint32_t i;

	for (i = 0; i <= WEIR_RESOURCES_MAX; i++)
		add_address(add_resource(ruleset, "r", 0), i, 32);
	assert_refused(ruleset, &plain_options, "4097 resources are too many");
	weir_ruleset_free(ruleset);
}

/* ---- what can meet on one packet ---- */

/* Values that can make a difference: none, and where a range begins. */
static size_t list_values(const struct weir_ruleset *ruleset, size_t ranges_at, size_t count_at, uint32_t none,
			  uint32_t *values)
{
	size_t count = 0, r, i;

	values[count++] = none;
	for (r = 0; r < ruleset->resource_count; r++) {
		const char *match = (const char *)&ruleset->resources[r].match;
		const struct weir_range *ranges = *(struct weir_range *const *)(match + ranges_at);

		for (i = 0; i < *(const size_t *)(match + count_at); i++)
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
	size_t count = 0, r, i;

	memset(addresses[count++], 0xfe, 16);
	for (r = 0; r < ruleset->resource_count; r++) {
		const struct weir_match *match = &ruleset->resources[r].match;
		const struct weir_prefix *prefixes = is_source ? match->source : match->destination;

		for (i = 0; i < (is_source ? match->source_count : match->destination_count); i++) {
			if (prefixes[i].family == family)
				memcpy(addresses[count++], prefixes[i].address, 16);
		}
	}
	return count;
}

struct candidates {
	uint8_t source[64][16], destination[64][16];
	uint32_t source_port[64], destination_port[64], icmp_type[64], vlan[64], length[64];
	size_t sources, destinations, source_ports, destination_ports, icmp_types, vlans, lengths, flags, interfaces;
};

struct most {
	uint32_t rules, resources;
};

static void note_packet(const struct weir_ruleset *ruleset, struct packet packet, struct most *most)
{
	uint32_t rules = 0, resources = 0;
	size_t i;

	drop_impossible(&packet);
	for (i = 0; i < ruleset->resource_count; i++)
		resources += matches(&ruleset->resources[i].match, &packet);
	for (i = 0; i < ruleset->rule_count; i++)
		rules += matches(&ruleset->resources[ruleset->rules[i].resource].match, &packet);
	most->rules = rules > most->rules ? rules : most->rules;
	most->resources = resources > most->resources ? resources : most->resources;
}

/* Every combination of the candidates, for one kind of packet. */
static void try_all(const struct weir_ruleset *ruleset, const struct candidates *c, struct packet packet,
		    struct most *most)
{
	static const uint8_t flags[] = {0, 0x02, 0x10, 0x12, 0x04, 0x06, 0x14, 0x16};
	size_t combinations = c->sources * c->destinations * c->source_ports * c->destination_ports * c->icmp_types *
			      c->vlans * c->lengths * c->flags * c->interfaces;
	size_t i, n;

	for (i = 0; i < combinations; i++) {
		n = i;
#define CHOOSE(count) (n % (count))
#define NEXT(count) (n /= (count))
		memcpy(packet.source, c->source[CHOOSE(c->sources)], 16);
		NEXT(c->sources);
		memcpy(packet.destination, c->destination[CHOOSE(c->destinations)], 16);
		NEXT(c->destinations);
		packet.source_port = c->source_port[CHOOSE(c->source_ports)];
		NEXT(c->source_ports);
		packet.destination_port = c->destination_port[CHOOSE(c->destination_ports)];
		NEXT(c->destination_ports);
		packet.icmp_type = c->icmp_type[CHOOSE(c->icmp_types)];
		NEXT(c->icmp_types);
		packet.vlan = c->vlan[CHOOSE(c->vlans)];
		NEXT(c->vlans);
		packet.length = c->length[CHOOSE(c->lengths)];
		NEXT(c->lengths);
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
	size_t r;

	c->flags = c->interfaces = 1;
	for (r = 0; r < ruleset->resource_count; r++) {
		if (ruleset->resources[r].match.tcp_flags_count)
			c->flags = 8;
		if (ruleset->resources[r].match.interface_count)
			c->interfaces = 4;
	}
	c->source_ports = LIST_VALUES(ruleset, source_port, 40000, c->source_port);
	c->destination_ports = LIST_VALUES(ruleset, destination_port, 40000, c->destination_port);
	c->icmp_types = LIST_VALUES(ruleset, icmp_type, 100, c->icmp_type);
	c->vlans = LIST_VALUES(ruleset, vlan, WEIR_VLAN_NONE, c->vlan);
	c->lengths = LIST_VALUES(ruleset, length, WEIR_LENGTH_LONGER, c->length);
	for (family = 4; family <= 6; family += 2) {
		c->sources = list_addresses(ruleset, true, family, c->source);
		c->destinations = list_addresses(ruleset, false, family, c->destination);
		for (fragment = 0; fragment < WEIR_FRAGMENT_KINDS; fragment++) {
			for (protocol = 0; protocol < sizeof(protocols); protocol++)
				try_all(ruleset, c,
					(struct packet){.family = family,
							.fragment = fragment,
							.protocol = protocols[protocol]},
					&most);
		}
	}
	free(c);
	return most;
}

/* Where most ranges overlap, one of them starts: their first values are candidates enough. */
static void meeting_bound_equals_exhaustive_search(void **state)
{
	uint32_t round, i, rules, refused = 0;
	char name[32];

	for (round = 0; round < 150; round++) {
		/* Two or three fields at a time, so that all combinations can be tried. */
		uint32_t conditions = 1u << chance(CONDITIONS) | 1u << chance(CONDITIONS) | (round % 2 ? 7 : 0);
		struct weir_ruleset *ruleset = chance_ruleset(4 + chance(5), conditions);
		struct weir_image *image = NULL;
		struct weir_diag diag = {};
		struct most most;

		for (i = 0; i < ruleset->resource_count; i++) {
			for (rules = chance(6); rules; rules--) {
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
		weir_diag_free(&diag);
		weir_image_free(image);
		weir_ruleset_free(ruleset);
	}
	assert_in_range(refused, 1, 100);
}

static void random_packets_never_meet_more_than_the_bound(void **state)
{
	uint32_t round, i, accepted = 0;
	char name[32];

	for (round = 0; round < 60; round++) {
		struct weir_ruleset *ruleset = chance_ruleset(20 + chance(60), 0xfff);
		struct weir_image *image = NULL;
		struct weir_diag diag = {};
		struct most most = {};

		for (i = 0; i < ruleset->resource_count; i++) {
			snprintf(name, sizeof(name), "rule%u", i);
			add_rule(ruleset, i, name, 10);
		}
		if (!weir_image_build(ruleset, &plain_options, &image, &diag)) {
			for (i = 0; i < 5000; i++)
				note_packet(ruleset, chance_packet(), &most);
			assert_true(most.rules <= image->packet_rules_max);
			assert_true(most.resources <= image->packet_resources_max);
			accepted++;
		}
		weir_diag_free(&diag);
		weir_image_free(image);
		weir_ruleset_free(ruleset);
	}
	assert_true(accepted >= 5);
}

static void sixteen_rules_may_meet_and_seventeen_are_refused(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	uint32_t i;
	char name[32];

	add_address(add_resource(ruleset, "a", 0), 0x0a000000, 8);
	ADD_RANGE(add_resource(ruleset, "b", 0), destination_port, 80, 90);
	for (i = 0; i < 16; i++) {
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
	weir_ruleset_free(ruleset);
}

static void a_resource_with_seventeen_rules_is_refused(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	uint32_t i;

	add_resource(ruleset, "crowded", 0);
	for (i = 0; i < 17; i++)
		add_rule(ruleset, 0, i < 16 ? "rule" : "last", 10);
	assert_refused(ruleset, &plain_options, "rule 'last' is one too many for resource 'crowded'");
	weir_ruleset_free(ruleset);
}

static void thirty_two_resources_may_meet_and_thirty_three_are_refused(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	uint32_t i;

	for (i = 0; i < 32; i++)
		add_resource(ruleset, "any", 0);
	image = build(ruleset);
	assert_int_equal(image->packet_resources_max, 32);
	assert_int_equal(image->packet_rules_max, 0);
	weir_image_free(image);
	add_resource(ruleset, "one-more", 0);
	assert_refused(ruleset, &plain_options, "33 resources can match one packet, at most 32 may");
	weir_ruleset_free(ruleset);
}

/* Eight rules on each of two resources: 16 when they meet, 8 when they cannot. */
static void assert_apart(struct weir_ruleset *ruleset, bool are_apart)
{
	struct weir_image *image;

	while (ruleset->rule_count < 16)
		add_rule(ruleset, ruleset->rule_count % 2, "rule", 10);
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, are_apart ? 8 : 16);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void an_ipv4_source_and_an_ipv6_destination_cannot_meet(void **state)
{
	static const uint8_t address[16] = {0x20, 1};
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match = add_resource(ruleset, "a", 0);

	add_prefix(&match->source, &match->source_count, 4, address, 16);
	match = add_resource(ruleset, "b", 0);
	add_prefix(&match->destination, &match->destination_count, 6, address, 16);
	assert_apart(ruleset, true);
}

static void tcp_flags_and_udp_cannot_meet(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_flags(add_resource(ruleset, "a", 0), 2, 16);
	add_protocol(add_resource(ruleset, "b", 0), 17);
	assert_apart(ruleset, true);
}

static void ports_and_an_icmp_type_cannot_meet(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();

	ADD_RANGE(add_resource(ruleset, "a", 0), source_port, 0, 65535);
	ADD_RANGE(add_resource(ruleset, "b", 0), icmp_type, 0, 255);
	assert_apart(ruleset, true);
}

static void ports_and_a_later_fragment_cannot_meet(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();

	ADD_RANGE(add_resource(ruleset, "a", 0), source_port, 0, 65535);
	add_resource(ruleset, "b", 0)->fragments = 1 << WEIR_FRAGMENT_LATER;
	assert_apart(ruleset, true);
}

static void tcp_flags_and_a_port_can_meet(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_flags(add_resource(ruleset, "a", 0), 2, 16);
	ADD_RANGE(add_resource(ruleset, "b", 0), destination_port, 443, 443);
	assert_apart(ruleset, false);
}

/* Three share an address and three a port, but only the two that share both meet. */
static void the_heaviest_class_need_not_be_the_best(void **state)
{
	static const struct {
		uint8_t address, port;
	} places[] = {{1, 1}, {1, 2}, {1, 3}, {2, 4}, {2, 4}, {3, 1}, {4, 1}};
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match;
	struct weir_image *image;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		match = add_resource(ruleset, "r", 0);
		add_address(match, places[i].address, 32);
		ADD_RANGE(match, source_port, places[i].port, places[i].port);
		add_rule(ruleset, i, "rule", 10);
	}
	image = build(ruleset);
	assert_int_equal(image->packet_rules_max, 2);
	assert_int_equal(image->packet_resources_max, 2);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
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
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	double before;
	uint32_t i;
	char name[32];

	for (i = 0; i < WEIR_RESOURCES_MAX; i++) {
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
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void thousands_of_resources_apart_by_address_are_quick(void **state)
{
	assert_quick(BY_ADDRESS, 2);
}

static void thousands_of_resources_apart_by_port_are_quick(void **state)
{
	assert_quick(BY_PORT, 2);
}

static void thousands_of_resources_by_address_or_port_are_quick(void **state)
{
	assert_quick(BY_EITHER, 4);
}

static void thousands_of_resources_by_one_of_three_fields_are_quick(void **state)
{
	assert_quick(BY_ANY_OF_THREE, 6);
}

static void thousands_of_resources_by_address_and_port_are_quick(void **state)
{
	assert_quick(BY_BOTH, 2);
}

/* ---- rules ---- */

/* One resource keyed by source with one rule: the usual. */
static struct weir_ruleset *per_source_ruleset(uint64_t threshold)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_resource(ruleset, "dns", WEIR_KEY_SOURCE);
	add_rule(ruleset, 0, "per-client", threshold);
	return ruleset;
}

static void a_rule_is_written_as_the_program_reads_it(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_ruleset_rule *rule;
	struct weir_image *image;
	struct weir_flow *flow;

	add_resource(ruleset, "first", 0);
	add_resource(ruleset, "subnets", WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION_PORT);
	flow = &ruleset->resources[1].flow;
	flow->source_bits[0] = 20, flow->source_bits[1] = 56;
	flow->destination_bits[0] = 32;
	rule = add_rule(ruleset, 1, "bytes", 0);
	rule->threshold_micro = 2900000;
	rule->window = WEIR_WINDOW_SMOOTH;
	rule->samples = 5;
	rule->counts_bytes = rule->observes = true;
	image = build(ruleset);

	assert_int_equal(image->rules[0].bucket_ns, SECOND / 5);
	assert_int_equal(image->rules[0].base_bucket, 5000 - 16);
	assert_int_equal(image->rules[0].resource, 1);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_WIDE);
	assert_int_equal(image->rules[0].window, WEIR_WINDOW_SMOOTH);
	assert_int_equal(image->rules[0].window_cells, 6);
	assert_int_equal(image->rules[0].counts_bytes, 1);
	assert_int_equal(image->rules[0].observes, 1);
	assert_int_equal(image->rules[0].key_fields, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION_PORT);
	assert_int_equal(image->rules[0].source_mask4, htonl(0xfffff000));
	assert_int_equal(image->rules[0].source_mask6[0], htonl(0xffffffff));
	assert_int_equal(image->rules[0].source_mask6[1], htonl(0xffffff00));
	assert_int_equal(image->rules[0].source_mask6[2], 0);
	/* Not in the key, whatever the lengths say. */
	assert_int_equal(image->rules[0].destination_mask4, 0);
	/* 2.9 admits 2. */
	assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(2, 1));
	assert_int_equal(image->rule_info[0].threshold_micro, 2900000);
	assert_int_equal(image->rule_info[0].threshold_word, WEIR_THRESHOLD_WORD(2, 1));
	assert_string_equal(image->rule_info[0].name, "bytes");
	assert_string_equal(image->rule_info[0].resource_name, "subnets");
	assert_int_equal(image->rule_info[0].resource_slot, image->resources[1].slot);
	assert_true(image->fresh_rule_slots[0]);
	assert_false(image->fresh_rule_slots[1]);
	assert_true(image->fresh_resource_slots[1]);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static enum weir_storage storage_of(uint64_t threshold_micro, uint64_t interval_ns, uint32_t samples, bool counts_bytes,
				    uint32_t key_fields, uint64_t span_ns)
{
	struct weir_compile_options options = plain_options;
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_ruleset_rule *rule;
	struct weir_image *image;
	enum weir_storage storage;

	options.span_ns = span_ns;
	add_resource(ruleset, "r", key_fields);
	rule = add_rule(ruleset, 0, "rule", 0);
	rule->threshold_micro = threshold_micro;
	rule->interval_ns = interval_ns;
	rule->samples = samples;
	rule->counts_bytes = counts_bytes;
	image = build_with(ruleset, &options);
	storage = image->rules[0].storage;
	assert_int_equal(image->rule_info[0].storage, storage);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	return storage;
}

static void storage_is_narrow_only_for_small_packet_limits_of_flows(void **state)
{
	uint64_t limit = 32000 * WEIR_MICRO;

	assert_int_equal(storage_of(limit, SECOND, 10, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit + WEIR_MICRO - 1, SECOND, 10, false, WEIR_KEY_SOURCE, 0),
			 WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit + WEIR_MICRO, SECOND, 10, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_WIDE);
	assert_int_equal(storage_of(limit, SECOND, 10, true, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_WIDE);
	assert_int_equal(storage_of(limit, SECOND, 10, false, 0, 0), WEIR_STORAGE_LONE);
	assert_int_equal(storage_of(limit, 50 * MS, 1, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit, 50 * MS - MS / 10, 1, false, WEIR_KEY_SOURCE, 0), WEIR_STORAGE_WIDE);
	/* 2^32 buckets of 50 ms do not fit into 32 bits. */
	assert_int_equal(storage_of(limit, 50 * MS, 1, false, WEIR_KEY_SOURCE, (50 * MS << 32) - 1),
			 WEIR_STORAGE_NARROW);
	assert_int_equal(storage_of(limit, 50 * MS, 1, false, WEIR_KEY_SOURCE, 50 * MS << 32), WEIR_STORAGE_WIDE);
}

static void narrow_timings_go_to_rules_that_can_use_them(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	uint32_t i;

	add_resource(ruleset, "lone", 0);
	add_resource(ruleset, "keyed", WEIR_KEY_SOURCE);
	add_resource(ruleset, "keyed-too", WEIR_KEY_SOURCE)->families = 1;
	ruleset->resources[1].match.families = 2;
	for (i = 0; i < 5; i++)
		add_rule(ruleset, 0, "lone", 10)->interval_ns = (i + 1) * 100 * SECOND;
	for (i = 0; i < 10; i++)
		add_rule(ruleset, 1, "first", 10)->interval_ns = (i + 1) * SECOND;
	for (i = 0; i < 10; i++)
		add_rule(ruleset, 2, "second", 10)->interval_ns = (i + 4) * SECOND;
	image = build(ruleset);
	/* Intervals of 1 to 13 s are 13 timings; those of the rules that come first but need no number go after. */
	for (i = 5; i < 25; i++)
		assert_int_equal(image->rules[i].storage, WEIR_STORAGE_NARROW);
	assert_int_equal(image->rules[15].timing, image->rules[8].timing);
	for (i = 0; i < 5; i++)
		assert_int_equal(image->rules[i].timing, 13 + i);
	assert_int_equal(image->timing_count, 18);
	weir_image_free(image);

	/* Four more: the last rule is the seventeenth to ask. */
	for (i = 15; i < 19; i++)
		ruleset->rules[i].interval_ns = (1000 + i) * SECOND;
	image = build(ruleset);
	for (i = 5; i < 24; i++)
		assert_int_equal(image->rules[i].storage, WEIR_STORAGE_NARROW);
	assert_int_equal(image->rules[24].storage, WEIR_STORAGE_WIDE);
	assert_true(image->rules[24].timing >= WEIR_TIMINGS_NARROW);
	assert_int_equal(image->timing_count, 22);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void rules_share_a_timing_only_with_the_same_buckets_and_window(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image;

	add_rule(ruleset, 0, "same", 99);
	add_rule(ruleset, 0, "strict", 20)->window = WEIR_WINDOW_STRICT;
	add_rule(ruleset, 0, "smooth", 20)->window = WEIR_WINDOW_SMOOTH;
	add_rule(ruleset, 0, "shorter", 20)->samples = 5;
	ruleset->rules[4].interval_ns = SECOND / 2;
	image = build(ruleset);
	assert_int_equal(image->timing_count, 4);
	assert_int_equal(image->rules[1].timing, image->rules[0].timing);
	assert_int_equal(image->timings[image->rules[2].timing].window, WEIR_WINDOW_STRICT);
	assert_int_equal(image->timings[image->rules[3].timing].window, WEIR_WINDOW_SMOOTH);
	assert_int_equal(image->timings[image->rules[4].timing].window_cells, 5);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_young_clock_counts_buckets_from_zero(void **state)
{
	struct weir_compile_options options = plain_options;
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image;

	options.now_ns = 16 * SECOND / 10;
	image = build_with(ruleset, &options);
	assert_int_equal(image->timings[0].base_bucket, 0);
	weir_image_free(image);
	options.now_ns = 17 * SECOND / 10;
	image = build_with(ruleset, &options);
	assert_int_equal(image->timings[0].base_bucket, 1);
	assert_int_equal(image->rules[0].base_bucket, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void more_than_1024_timings_are_refused(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	uint32_t i;
	char name[32];

	for (i = 0; i < 1025; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		add_address(add_resource(ruleset, name, WEIR_KEY_SOURCE), i, 32);
		if (i == 1024) {
			image = build(ruleset);
			assert_int_equal(image->timing_count, 1024);
			weir_image_free(image);
		}
		add_rule(ruleset, i, name, 10)->interval_ns = (i + 1) * SECOND;
	}
	assert_refused(ruleset, &plain_options, "rule 'r1024' needs one more kind of window");
	weir_ruleset_free(ruleset);
}

/* ---- reload ---- */

static struct weir_previous previous_of(const struct weir_image *image)
{
	struct weir_previous previous = {
		.rules = image->rule_info,
		.resources = image->resource_info,
		.timings = image->timings,
		.rule_slots = image->rule_slots,
		.resource_slots = image->resource_slots,
		.timing_count = image->timing_count,
		.narrow_sets = image->config.narrow_sets,
		.wide_sets = image->config.wide_sets,
		.throttle_sets = image->config.throttle_sets,
		.warming_sets = image->config.warming_sets,
		.connection_sets = image->config.connection_sets,
		.connection_flow_sets = image->config.connection_flow_sets,
		.presence_cells = image->config.presence_cells,
		.presence_shift = image->config.presence_shift,
	};

	memcpy(previous.connection_timeout_ms, image->connection_timeout_ms, sizeof(previous.connection_timeout_ms));
	return previous;
}

/* Load `ruleset` after *image, which the new image replaces. */
static void reload(struct weir_image **image, const struct weir_ruleset *ruleset, uint64_t now_ns)
{
	struct weir_previous previous = previous_of(*image);
	struct weir_compile_options options = plain_options;
	struct weir_image *next;

	options.previous = &previous;
	options.now_ns = now_ns;
	next = build_with(ruleset, &options);
	weir_image_free(*image);
	*image = next;
}

static void an_unchanged_rule_keeps_slot_timing_and_version(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);
	uint64_t base_bucket = image->timings[0].base_bucket;
	struct weir_ruleset *other = new_ruleset();

	/* It comes second now, and after another timing. */
	add_resource(other, "web", WEIR_KEY_SOURCE);
	add_resource(other, "dns", WEIR_KEY_SOURCE);
	add_rule(other, 0, "web", 5)->interval_ns = 10 * SECOND;
	add_rule(other, 1, "per-client", 20)->observes = true;
	reload(&image, other, 5000 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[1].slot, 0);
	assert_int_equal(image->rules[1].timing, 0);
	assert_int_equal(image->rules[1].base_bucket, base_bucket);
	assert_int_equal(image->pushed[1].word, WEIR_THRESHOLD_WORD(20, 1));
	assert_int_equal(image->resources[1].slot, 0);
	assert_int_equal(image->rule_info[0].place, 1);
	assert_int_equal(image->rule_info[0].observes, 1);
	assert_int_equal(image->resource_info[0].place, 1);
	assert_false(image->fresh_rule_slots[0]);
	assert_false(image->fresh_resource_slots[0]);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->rules[0].timing, 1);
	assert_true(image->fresh_rule_slots[1]);
	assert_true(image->fresh_resource_slots[1]);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(other);
}

static void a_changed_threshold_keeps_the_slot_under_a_new_version(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);
	uint32_t i;

	/* The same decisions: 20.9 admits 20. */
	ruleset->rules[0].threshold_micro = 20900000;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(20, 1));
	assert_int_equal(image->rule_info[0].threshold_micro, 20900000);
	for (i = 1; i <= 256; i++) {
		ruleset->rules[0].threshold_micro = (20 + i) * WEIR_MICRO;
		reload(&image, ruleset, 1001 * SECOND);
		assert_int_equal(image->rules[0].slot, 0);
		assert_int_equal(image->kept_rules, 1);
		/* 1 to 255, and again from 1. */
		assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(20 + i, i % 255 + 1));
	}
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void assert_not_kept(const struct weir_ruleset *before, const struct weir_ruleset *after)
{
	struct weir_image *image = build(before);

	reload(&image, after, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 0);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->rule_info[0].free_after_ns, 1001 * SECOND + SECOND + SECOND / 10);
	assert_int_equal(image->rule_info[1].state, WEIR_SLOT_USED);
	assert_int_equal(image->pushed[0].word >> WEIR_THRESHOLD_BITS, 1);
	weir_image_free(image);
}

static void a_rule_with_another_identity_gets_a_new_slot(void **state)
{
	struct weir_ruleset *before = per_source_ruleset(20);
	struct weir_ruleset *after = per_source_ruleset(20);
	struct weir_ruleset_rule *rule = &after->rules[0];

	rule->interval_ns = 2 * SECOND;
	assert_not_kept(before, after);
	rule->interval_ns = SECOND, rule->samples = 5;
	assert_not_kept(before, after);
	rule->samples = 10, rule->window = WEIR_WINDOW_STRICT;
	assert_not_kept(before, after);
	rule->window = WEIR_WINDOW_LEAP, rule->counts_bytes = true;
	assert_not_kept(before, after);
	rule->counts_bytes = false, after->resources[0].flow.source_bits[1] = 64;
	assert_not_kept(before, after);
	after->resources[0].flow.source_bits[1] = 128, after->resources[0].flow.fields |= WEIR_KEY_VLAN;
	assert_not_kept(before, after);
	after->resources[0].flow.fields = WEIR_KEY_SOURCE;
	strcpy(rule->name, "per-tneilc");
	assert_not_kept(before, after);
	strcpy(rule->name, "per-client");
	strcpy(after->resources[0].name, "web");
	assert_not_kept(before, after);
	weir_ruleset_free(before);
	weir_ruleset_free(after);
}

static void a_removed_rules_slot_cools_before_it_is_reused(void **state)
{
	struct weir_ruleset *first = per_source_ruleset(20);
	struct weir_ruleset *none = new_ruleset();
	struct weir_ruleset *second = new_ruleset();
	uint64_t expiry_ns = 2000 * SECOND + SECOND + SECOND / 10;
	struct weir_image *image = build(first);

	reload(&image, none, 2000 * SECOND);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->rule_info[0].free_after_ns, expiry_ns);
	assert_string_equal(image->rule_info[0].name, "per-client");
	assert_int_equal(image->resource_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->resource_info[0].free_after_ns, 2061 * SECOND);

	/* Still cooling at that very nanosecond; even the same rule does not find its old windows. */
	add_resource(second, "dns", WEIR_KEY_SOURCE);
	add_rule(second, 0, "per-client", 20);
	reload(&image, second, expiry_ns);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->resources[0].slot, 1);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(image->rule_info[0].free_after_ns, expiry_ns);

	add_rule(second, 0, "another", 20);
	reload(&image, second, expiry_ns + 1);
	assert_int_equal(image->rules[0].slot, 1);
	assert_int_equal(image->rules[1].slot, 0);
	assert_string_equal(image->rule_info[0].name, "another");
	assert_true(image->fresh_rule_slots[0]);
	assert_false(image->fresh_rule_slots[1]);
	weir_image_free(image);
	weir_ruleset_free(first);
	weir_ruleset_free(none);
	weir_ruleset_free(second);
}

static struct weir_ruleset *numbered_ruleset(uint32_t from, uint32_t count)
{
	struct weir_ruleset *ruleset = new_ruleset();
	char name[32];
	uint32_t i;

	for (i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "r%u", from + i);
		add_address(add_resource(ruleset, name, WEIR_KEY_SOURCE), from + i, 32);
		add_rule(ruleset, i, name, 10);
	}
	return ruleset;
}

static void a_reload_without_free_slots_is_refused(void **state)
{
	struct weir_ruleset *first = numbered_ruleset(0, 500);
	struct weir_ruleset *second = numbered_ruleset(500, 524);
	struct weir_ruleset *third = numbered_ruleset(1023, 2);
	struct weir_compile_options options = plain_options;
	struct weir_image *image = build(first);
	struct weir_previous previous;

	assert_int_equal(image->rule_slots, 1024);
	assert_int_equal(image->resource_slots, 1024);
	reload(&image, second, 1001 * SECOND);
	assert_int_equal(image->rule_slots, 1024);
	assert_int_equal(image->kept_rules, 0);
	previous = previous_of(image);
	options.previous = &previous;
	options.now_ns = 1002 * SECOND;
	assert_refused(third, &options, "no room for resource 'r1024': the instance was attached with 1024 places");
	reload(&image, third, 1100 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[1].slot, 0);
	weir_image_free(image);
	weir_ruleset_free(first);
	weir_ruleset_free(second);
	weir_ruleset_free(third);
}

static void first_load_makes_room_for_twice_its_rules(void **state)
{
	struct weir_ruleset *ruleset = numbered_ruleset(0, 1024);
	struct weir_image *image = build(ruleset);

	assert_int_equal(image->rule_slots, 2048);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	ruleset = numbered_ruleset(0, 1025);
	image = build(ruleset);
	assert_int_equal(image->rule_slots, 4096);
	assert_int_equal(image->resource_slots, 4096);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_threshold_that_outgrows_narrow_rows_moves_the_rule_and_says_so(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(32000);
	struct weir_image *image = build(ruleset), *next = NULL;
	struct weir_previous previous = previous_of(image);
	struct weir_compile_options options = plain_options;
	struct weir_diag diag = {};

	options.previous = &previous;
	ruleset->rules[0].threshold_micro = 32001 * WEIR_MICRO;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "rule 'per-client' starts with empty windows"));
	assert_int_equal(next->kept_rules, 0);
	assert_int_equal(next->rules[0].slot, 1);
	assert_int_equal(next->rules[0].storage, WEIR_STORAGE_WIDE);
	assert_int_equal(next->rule_info[0].state, WEIR_SLOT_COOLING);
	assert_int_equal(next->resources[0].slot, 0);
	weir_image_free(image);
	weir_diag_free(&diag);

	/* And stays where it is when it could go back: its windows are worth more. */
	ruleset->rules[0].threshold_micro = 5 * WEIR_MICRO;
	reload(&next, ruleset, 1001 * SECOND);
	assert_int_equal(next->kept_rules, 1);
	assert_int_equal(next->rules[0].slot, 1);
	assert_int_equal(next->rules[0].storage, WEIR_STORAGE_WIDE);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
}

static void timings_of_earlier_loads_stay_for_ever(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);
	struct weir_timing first = image->timings[0];

	ruleset->rules[0].interval_ns = 2 * SECOND;
	reload(&image, ruleset, 3000 * SECOND);
	assert_int_equal(image->timing_count, 2);
	assert_memory_equal(&image->timings[0], &first, sizeof(first));
	assert_int_equal(image->rules[0].timing, 1);
	assert_int_equal(image->timings[1].base_bucket, 15000 - 16);
	/* A new rule of the old timing counts from its base. */
	ruleset->rules[0].interval_ns = SECOND;
	reload(&image, ruleset, 4000 * SECOND);
	assert_int_equal(image->timing_count, 2);
	assert_int_equal(image->rules[0].timing, 0);
	assert_int_equal(image->rules[0].base_bucket, first.base_bucket);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* ---- tables and memory ---- */

static void unused_flow_tables_are_one_chunk(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image;

	ruleset->settings.flows_per_cpu = 5000;
	image = build(ruleset);
	assert_int_equal(image->flows_per_cpu, 8192);
	assert_int_equal(image->config.narrow_sets, 2048);
	assert_int_equal(image->config.wide_sets, WEIR_WIDE_SETS_PER_CHUNK);
	weir_image_free(image);

	ruleset->rules[0].counts_bytes = true;
	ruleset->settings.flows_per_cpu = 1;
	image = build(ruleset);
	assert_int_equal(image->flows_per_cpu, 512);
	assert_int_equal(image->config.narrow_sets, WEIR_NARROW_SETS_PER_CHUNK);
	assert_int_equal(image->config.wide_sets, 128);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_flow_table_in_use_keeps_its_size_over_a_reload(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset), *next = NULL;
	struct weir_previous previous = previous_of(image);
	struct weir_compile_options options = plain_options;
	struct weir_diag diag = {};

	options.previous = &previous;
	ruleset->settings.flows_per_cpu = 100000;
	add_rule(ruleset, 0, "bytes", 1000000)->counts_bytes = true;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "keep their 4096 flows"));
	assert_int_equal(next->config.narrow_sets, 1024);
	assert_int_equal(next->config.wide_sets, 131072 / 4);
	weir_diag_free(&diag);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
}

static void an_epoch_holds_the_longest_window_of_a_flow(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);

	assert_int_equal(image->config.presence_shift, WEIR_PRESENCE_SHIFT_MIN);
	weir_image_free(image);
	ruleset->rules[0].interval_ns = 86400 * WEIR_NSEC_PER_SEC;
	ruleset->rules[0].samples = 1;
	ruleset->rules[0].window = WEIR_WINDOW_STRICT;
	image = build(ruleset);
	assert_int_equal(image->config.presence_shift, WEIR_PRESENCE_SHIFT_MAX);
	assert_int_equal(image->rules[0].asks_all, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* Cells of another epoch's length could hide a CPU that has counted. */
static void a_reload_keeps_the_epochs_and_longer_windows_do_without(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);
	uint32_t cells = image->config.presence_cells;

	add_rule(ruleset, 0, "hourly", 1000)->interval_ns = 3600 * WEIR_NSEC_PER_SEC;
	ruleset->settings.flows_per_cpu = 100000;
	reload(&image, ruleset, plain_options.now_ns);
	assert_int_equal(image->config.presence_shift, WEIR_PRESENCE_SHIFT_MIN);
	assert_int_equal(image->config.presence_cells, cells);
	assert_int_equal(image->rules[0].asks_all, 0);
	assert_int_equal(image->rules[1].asks_all, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void settings_and_cpus_reach_the_program(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);

	assert_int_equal(image->config.cpus, 2);
	assert_int_equal(image->config.drop_malformed, 1);
	assert_int_equal(image->config.drop_unsupported, 1);
	assert_int_equal(image->config.drop_non_ip, 0);
	assert_int_equal(image->config.drop_unmatched, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void memory_is_what_the_maps_take(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);
	struct weir_image_memory memory;

	weir_image_memory(image, 2, &memory);
	assert_int_equal(memory.narrow_table, 4096 * 32 * (2 + 2));
	assert_int_equal(memory.wide_table, WEIR_CHUNK_BYTES * (2 + 2));
	/* 4,096 / 4 / 8 lines, in one chunk. */
	assert_int_equal(memory.full_flows, WEIR_CHUNK_BYTES * (2 + 2));
	assert_int_equal(memory.lone_rows, 1024 * 128 * (2 + 2));
	/* One set of each, and the states of whole resources. */
	assert_int_equal(memory.shared, 128 + 512 + 1024 * (8 + 32));
	assert_int_equal(memory.presence, 4096 * 2 * 4);
	assert_int_equal(memory.total, memory.narrow_table + memory.wide_table + memory.full_flows + memory.presence +
					       memory.shared + memory.lone_rows + memory.counters + memory.matching +
					       memory.lists);
	assert_true(memory.matching > sizeof(struct weir_generation));
	assert_true(memory.counters > 2 * WEIR_TALKER_CHUNKS * WEIR_CHUNK_BYTES);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* ---- strategy, behaviour, relation ---- */

/* A rule of every kind on "own"; resource 1 is what it may refer to. */
static struct weir_ruleset_rule *add_kind(struct weir_ruleset *ruleset, const char *name, enum weir_strategy strategy,
					  enum weir_behavior behavior, enum weir_relation relation)
{
	struct weir_ruleset_rule *rule = add_rule(ruleset, 0, name, 100);

	rule->strategy = strategy;
	rule->behavior = behavior;
	rule->relation = relation;
	rule->ref_resource = relation == WEIR_RELATION_ASSOCIATED ? 1 : WEIR_NO_RESOURCE;
	if (behavior == WEIR_BEHAVIOR_THROTTLING)
		rule->queueing_ms_max = 500;
	if (strategy == WEIR_STRATEGY_WARM_UP)
		rule->warm_up = (struct weir_warm_up_fields){.period_s = 10, .cold_factor = 3};
	if (strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		rule->memory = (struct weir_memory_fields){1000, 100, 1024, 2048};
	return rule;
}

static struct weir_ruleset *two_resources(uint32_t own_key, uint32_t ref_key)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_resource(ruleset, "own", own_key);
	add_resource(ruleset, "ref", ref_key);
	return ruleset;
}

#define DIRECT WEIR_STRATEGY_DIRECT
#define WARM_UP WEIR_STRATEGY_WARM_UP
#define MEMORY WEIR_STRATEGY_MEMORY_ADAPTIVE
#define REJECT WEIR_BEHAVIOR_REJECT
#define THROTTLING WEIR_BEHAVIOR_THROTTLING
#define CURRENT WEIR_RELATION_CURRENT
#define ASSOCIATED WEIR_RELATION_ASSOCIATED

static void each_combination_is_judged_as_semantics_says(void **state)
{
	/* Under one without a key, one with a key and a reference without, and one with the same key. */
	static const struct {
		enum weir_strategy strategy;
		enum weir_behavior behavior;
		enum weir_relation relation;
		enum weir_judging judging;
		bool moves[3], warms_flows[3];
		enum weir_storage storage[3];
		int own_meters, ref_meters;
	} kinds[] = {
		{DIRECT, REJECT, CURRENT, WEIR_JUDGING_WINDOW, {}, {}, {0, 1, 1}, 0, 0},
		{DIRECT, REJECT, ASSOCIATED, WEIR_JUDGING_ASSOCIATED, {}, {}, {0, 2, 2}, 0, 1},
		{DIRECT, THROTTLING, CURRENT, WEIR_JUDGING_THROTTLE, {}, {}, {0, 2, 2}, 0, 0},
		{WARM_UP, REJECT, CURRENT, WEIR_JUDGING_WINDOW, {1, 0, 0}, {0, 1, 1}, {0, 2, 2}, 1, 0},
		{WARM_UP, REJECT, ASSOCIATED, WEIR_JUDGING_ASSOCIATED, {1, 1, 0}, {0, 0, 1}, {0, 2, 2}, 0, 2},
		{WARM_UP, THROTTLING, CURRENT, WEIR_JUDGING_THROTTLE, {1, 0, 0}, {0, 1, 1}, {0, 2, 2}, 1, 0},
		{WARM_UP, THROTTLING, ASSOCIATED, WEIR_JUDGING_THROTTLE, {1, 1, 0}, {0, 0, 1}, {0, 2, 2}, 0, 1},
		{MEMORY, REJECT, CURRENT, WEIR_JUDGING_WINDOW, {1, 1, 1}, {}, {0, 2, 2}, 0, 0},
		{MEMORY, REJECT, ASSOCIATED, WEIR_JUDGING_ASSOCIATED, {1, 1, 1}, {}, {0, 2, 2}, 0, 1},
		{MEMORY, THROTTLING, CURRENT, WEIR_JUDGING_THROTTLE, {1, 1, 1}, {}, {0, 2, 2}, 0, 0},
	};
	static const uint32_t keys[3][2] = {{}, {WEIR_KEY_SOURCE, 0}, {WEIR_KEY_SOURCE, WEIR_KEY_SOURCE}};
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (k = 0; k < ARRAY_SIZE(keys); k++) {
			struct weir_ruleset *ruleset = two_resources(keys[k][0], keys[k][1]);
			struct weir_image *image;
			struct weir_rule *rule;

			add_kind(ruleset, "rule", kinds[i].strategy, kinds[i].behavior, kinds[i].relation);
			image = build(ruleset);
			rule = &image->rules[0];
			assert_int_equal(rule->judging, kinds[i].judging);
			assert_int_equal(rule->threshold_moves, kinds[i].moves[k]);
			assert_int_equal(rule->warms_flows, kinds[i].warms_flows[k]);
			assert_int_equal(rule->storage, kinds[i].storage[k]);
			assert_int_equal(rule->queueing_ns_max, kinds[i].behavior == THROTTLING ? 500 * MS : 0);
			assert_int_equal(image->resources[0].meter_count, kinds[i].own_meters);
			assert_int_equal(image->resources[1].meter_count, kinds[i].ref_meters);
			assert_int_equal(image->meter_count, rule->judging == WEIR_JUDGING_ASSOCIATED);
			assert_int_equal(image->rule_count, 1);
			weir_image_free(image);
			weir_ruleset_free(ruleset);
		}
	}
}

static void a_throttled_packet_costs_its_exact_threshold(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;

	add_kind(ruleset, "direct", DIRECT, THROTTLING, CURRENT)->threshold_micro = 2900000;
	add_kind(ruleset, "none", DIRECT, THROTTLING, CURRENT)->threshold_micro = 999999;
	add_kind(ruleset, "warm", WARM_UP, THROTTLING, CURRENT);
	add_kind(ruleset, "memory", MEMORY, THROTTLING, CURRENT)->threshold_micro = 0;
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	image = build(ruleset);
	/* Not that of 2, which is what the window would go by. */
	assert_int_equal(image->rules[0].threshold, WEIR_THRESHOLD_WORD(2, 1));
	assert_int_equal(weir_cost_ns(&image->rules[0].cost, 1), 344827587);
	assert_int_equal(image->rules[1].threshold, WEIR_THRESHOLD_WORD(0, 1));
	assert_int_equal(weir_cost_ns(&image->rules[1].cost, 1), 0);
	assert_int_equal(weir_cost_ns(&image->rules[2].cost, 1), 10 * MS);
	/* As at the high water mark: the stricter end. */
	assert_int_equal(image->rules[3].threshold, WEIR_THRESHOLD_WORD(100, 1));
	assert_int_equal(weir_cost_ns(&image->rules[3].cost, 1), 10 * MS);
	assert_int_equal(weir_cost_ns(&image->rules[4].cost, 1), 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void what_is_pushed_first_is_what_holds_without_a_controller(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;

	add_kind(ruleset, "memory", MEMORY, THROTTLING, CURRENT);
	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->pushed[0].word, WEIR_THRESHOLD_WORD(100, 1));
	assert_memory_equal(&image->pushed[0].cost[0], &image->rules[0].cost, sizeof(struct weir_cost));
	assert_memory_equal(&image->pushed[0].cost[1], &image->rules[0].cost, sizeof(struct weir_cost));
	assert_int_equal(image->pushed[1].word, WEIR_THRESHOLD_WORD(100, 1));
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void descriptions_say_what_a_controller_needs(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_rule_info *info;
	struct weir_image *image;

	add_kind(ruleset, "warm", WARM_UP, THROTTLING, ASSOCIATED);
	add_kind(ruleset, "memory", MEMORY, REJECT, CURRENT);
	image = build(ruleset);
	info = &image->rule_info[image->rules[0].slot];
	assert_int_equal(info->strategy, WARM_UP);
	assert_int_equal(info->behavior, THROTTLING);
	assert_int_equal(info->relation, ASSOCIATED);
	assert_int_equal(info->moves, 1);
	assert_int_equal(info->is_meter, 0);
	assert_int_equal(info->queueing_ns_max, 500 * MS);
	assert_int_equal(info->warm_up.max, 1000);
	assert_int_equal(info->warm_up.cost_num, 10 * MS);
	assert_string_equal(info->ref_resource_name, "ref");
	/* The controller's, not the program's. */
	assert_int_equal(image->rules[0].warm_up.max, 0);
	info = &image->rule_info[image->rules[1].slot];
	assert_int_equal(info->memory.low_units, 1000);
	assert_int_equal(info->memory.high_mark_bytes, 2048);
	assert_string_equal(info->ref_resource_name, "");
	weir_image_free(image);

	ruleset->resources[0].flow.fields = WEIR_KEY_VLAN;
	image = build(ruleset);
	assert_int_equal(image->rules[0].warms_flows, 0);
	weir_image_free(image);
	ruleset->resources[1].flow.fields = WEIR_KEY_VLAN;
	image = build(ruleset);
	assert_int_equal(image->rules[0].warms_flows, 1);
	assert_int_equal(image->rules[0].warm_up.max, 1000);
	assert_int_equal(image->rule_info[image->rules[0].slot].moves, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void every_warm_up_too_large_is_refused_by_name(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image = NULL;
	struct weir_diag diag = {};

	add_kind(ruleset, "first", WARM_UP, THROTTLING, CURRENT)->warm_up.period_s = 31536000;
	ruleset->rules[0].threshold_micro = 1000000000000 * WEIR_MICRO;
	add_kind(ruleset, "fine", WARM_UP, THROTTLING, CURRENT);
	add_kind(ruleset, "second", MEMORY, REJECT, CURRENT)->memory.low_units = 1ull << 62;
	assert_int_equal(weir_image_build(ruleset, &plain_options, &image, &diag), -EINVAL);
	assert_int_equal(diag.errors, 2);
	assert_non_null(strstr(diag.entries[0].message, "rule 'first'"));
	assert_non_null(strstr(diag.entries[1].message, "rule 'second'"));
	weir_diag_free(&diag);
	weir_ruleset_free(ruleset);
}

static void the_program_is_told_what_any_rule_asks_for(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	ruleset->settings.paces = true;
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	image = build(ruleset);
	assert_false(image->config.has_moving | image->config.has_throttling | image->config.has_associated |
		     image->config.has_meters | image->config.warms_flows | image->config.has_overrides |
		     image->config.paces | image->config.throttle_horizon_ns);
	weir_image_free(image);

	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.has_throttling, 1);
	assert_int_equal(image->config.paces, 1);
	assert_false(image->config.has_moving | image->config.has_associated | image->config.has_meters);
	weir_image_free(image);

	add_kind(ruleset, "associated", DIRECT, REJECT, ASSOCIATED);
	image = build(ruleset);
	assert_int_equal(image->config.has_associated, 1);
	assert_int_equal(image->config.has_meters, 1);
	assert_false(image->config.has_moving | image->config.warms_flows);
	weir_image_free(image);

	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.warms_flows, 1);
	assert_int_equal(image->config.has_moving, 0);
	weir_image_free(image);

	add_kind(ruleset, "memory", MEMORY, REJECT, CURRENT);
	ruleset->settings.paces = false;
	image = build(ruleset);
	assert_int_equal(image->config.has_moving, 1);
	assert_int_equal(image->config.paces, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* What the program is told to read of packets for one rule: of the first of two resources with this key. */
static uint32_t fields_asked_for(uint32_t key, uint32_t ref_key, enum weir_relation relation)
{
	struct weir_ruleset *ruleset = two_resources(key, ref_key);
	struct weir_image *image;
	uint32_t fields;

	add_kind(ruleset, "rule", DIRECT, REJECT, relation);
	image = build(ruleset);
	fields = image->config.asked_fields;
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	return fields;
}

static void the_program_is_told_which_fields_flow_keys_are_made_of(void **state)
{
	static const struct {
		uint32_t key, field;
	} cases[] = {
		{0, 0},
		{WEIR_KEY_SOURCE, WEIR_MATCH_SOURCE},
		{WEIR_KEY_DESTINATION, WEIR_MATCH_DESTINATION},
		{WEIR_KEY_SOURCE_PORT, WEIR_MATCH_SOURCE_PORT},
		{WEIR_KEY_DESTINATION_PORT, WEIR_MATCH_DESTINATION_PORT},
		{WEIR_KEY_PROTOCOL, WEIR_MATCH_KIND},
		{WEIR_KEY_VLAN, WEIR_MATCH_VLAN},
		{WEIR_KEY_INTERFACE, WEIR_MATCH_INTERFACE},
		{WEIR_KEY_SOURCE | WEIR_KEY_INTERFACE, WEIR_MATCH_SOURCE | WEIR_MATCH_INTERFACE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(fields_asked_for(cases[i].key, 0, CURRENT), cases[i].field);
		/* A meter's key is made for packets of the other resource. */
		assert_int_equal(fields_asked_for(cases[i].key, cases[i].key, ASSOCIATED), cases[i].field);
	}
}

static void the_program_is_told_which_fields_matches_and_connections_ask_for(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_ruleset_rule *rule = add_kind(ruleset, "rule", DIRECT, REJECT, CURRENT);
	struct weir_image *image;

	add_interface(&ruleset->resources[0].match, "eth3");
	image = build(ruleset);
	assert_int_equal(image->config.asked_fields, WEIR_MATCH_INTERFACE);
	weir_image_free(image);

	rule->metric = WEIR_METRIC_CONCURRENCY;
	image = build(ruleset);
	assert_int_equal(image->config.asked_fields, WEIR_MATCH_INTERFACE | WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION |
							     WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_DESTINATION_PORT |
							     WEIR_MATCH_TCP_FLAGS);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void the_horizon_is_the_largest_cost_of_any_packet(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_ruleset_rule *rule;
	struct weir_image *image;

	add_kind(ruleset, "direct", DIRECT, THROTTLING, CURRENT);
	/* A window of a day plans nothing. */
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT)->interval_ns = 86400 * SECOND;
	image = build(ruleset);
	assert_int_equal(image->config.throttle_horizon_ns, 10 * MS);
	weir_image_free(image);

	add_kind(ruleset, "warm", WARM_UP, THROTTLING, CURRENT);
	image = build(ruleset);
	assert_in_range(image->config.throttle_horizon_ns, 30 * MS, 30 * MS + 1);
	weir_image_free(image);

	add_kind(ruleset, "memory", MEMORY, THROTTLING, CURRENT)->memory.high_units = 10;
	image = build(ruleset);
	assert_int_equal(image->config.throttle_horizon_ns, 100 * MS);
	weir_image_free(image);

	rule = add_kind(ruleset, "bytes", DIRECT, THROTTLING, CURRENT);
	rule->counts_bytes = true;
	rule->threshold_micro = 1000000 * WEIR_MICRO;
	image = build(ruleset);
	assert_in_range(image->config.throttle_horizon_ns, 65535 * 1000, 132 * MS);
	weir_image_free(image);

	/* Nothing that costs more is ever admitted. */
	rule->threshold_micro = 1000 * WEIR_MICRO;
	image = build(ruleset);
	assert_int_equal(image->config.throttle_horizon_ns, SECOND);
	weir_image_free(image);

	/* Nor is anything under less than a unit. */
	rule->threshold_micro = 500000;
	image = build(ruleset);
	assert_int_equal(image->config.throttle_horizon_ns, 100 * MS);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* ---- meters ---- */

static void rules_that_read_the_same_window_share_a_meter(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "first", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "same", DIRECT, REJECT, ASSOCIATED)->threshold_micro = 5 * WEIR_MICRO;
	add_kind(ruleset, "bytes", DIRECT, REJECT, ASSOCIATED)->counts_bytes = true;
	add_kind(ruleset, "longer", DIRECT, REJECT, ASSOCIATED)->interval_ns = 2 * SECOND;
	add_kind(ruleset, "finer", DIRECT, REJECT, ASSOCIATED)->samples = 5;
	add_kind(ruleset, "strict", DIRECT, REJECT, ASSOCIATED)->window = WEIR_WINDOW_STRICT;
	add_kind(ruleset, "other", DIRECT, REJECT, ASSOCIATED)->ref_resource = 2;
	add_kind(ruleset, "moving", MEMORY, REJECT, ASSOCIATED);
	image = build(ruleset);
	assert_int_equal(image->rule_count, 8);
	assert_int_equal(image->meter_count, 6);
	assert_int_equal(image->rules[0].meter, 8);
	assert_int_equal(image->rules[1].meter, 8);
	assert_int_equal(image->rules[2].meter, 9);
	assert_int_equal(image->rules[3].meter, 10);
	assert_int_equal(image->rules[4].meter, 11);
	assert_int_equal(image->rules[5].meter, 12);
	assert_int_equal(image->rules[6].meter, 13);
	assert_int_equal(image->rules[7].meter, 8);
	assert_int_equal(image->resources[0].meter_count, 0);
	assert_int_equal(image->resources[1].meter_count, 5);
	assert_int_equal(image->resources[2].meter_count, 1);
	assert_int_equal(image->resources[2].meter[0].kind, WEIR_METER_WINDOW);
	assert_int_equal(image->resources[2].meter[0].rule, 13);
	assert_int_equal(image->resources[2].meter[0].skips_dropped, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* What an observer would have dropped is not counted for it, and is for the others. */
static void a_rule_that_observes_has_a_meter_to_itself(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	const struct weir_meter *meter;
	struct weir_image *image;
	uint32_t place;

	add_kind(ruleset, "watches", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "watches too", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "drops too", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "warms", WARM_UP, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	assert_int_equal(image->rules[1].meter, image->rules[3].meter);
	for (place = 0; place < 5; place += 2)
		assert_int_equal(image->rules[image->rules[place].meter].meter, place);
	assert_int_equal(image->meter_count, 4);
	assert_int_equal(image->resources[1].meter_count, 5);
	for (meter = image->resources[1].meter; meter < image->resources[1].meter + 5; meter++) {
		assert_int_equal(meter->skips_dropped, meter->rule != image->rules[1].meter);
		assert_int_equal(meter->kind, meter->rule == 4 ? WEIR_METER_SECONDS : WEIR_METER_WINDOW);
	}
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_rule_that_observed_alone_enforces_by_the_window_it_has(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slot;

	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	slot = image->rules[1].slot;
	ruleset->rules[0].observes = false;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->rules[1].slot, slot);
	assert_false(image->fresh_rule_slots[slot]);
	assert_int_equal(image->resources[1].meter[0].skips_dropped, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void meters_of_observers_keep_their_slots_in_any_order(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_ruleset_rule moved;
	struct weir_image *image;
	uint32_t slots[2];

	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "one", DIRECT, REJECT, ASSOCIATED)->observes = true;
	add_kind(ruleset, "two", DIRECT, REJECT, ASSOCIATED)->observes = true;
	image = build(ruleset);
	slots[0] = image->rules[image->rules[1].meter].slot, slots[1] = image->rules[image->rules[2].meter].slot;
	assert_true(slots[0] != slots[1]);
	moved = ruleset->rules[1], ruleset->rules[1] = ruleset->rules[2], ruleset->rules[2] = moved;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->rules[image->rules[2].meter].slot, slots[0]);
	assert_int_equal(image->rules[image->rules[1].meter].slot, slots[1]);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* Such a meter has its reader's name, and the resource that is read may have had a rule of that name. */
static void a_meter_takes_no_slot_of_a_rule_of_its_name(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slot;

	add_kind(ruleset, "drops", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "rule", DIRECT, REJECT, CURRENT)->resource = 1;
	image = build(ruleset);
	slot = image->rules[1].slot;
	ruleset->rules[1].resource = 0;
	ruleset->rules[1].relation = ASSOCIATED, ruleset->rules[1].ref_resource = 1;
	ruleset->rules[1].observes = true;
	reload(&image, ruleset, 1001 * SECOND);
	assert_string_equal(image->rule_info[image->rules[image->rules[1].meter].slot].name, "rule");
	assert_true(image->rules[image->rules[1].meter].slot != slot);
	assert_int_equal(image->rule_info[slot].state, WEIR_SLOT_COOLING);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_meter_is_a_rule_of_the_resource_that_is_read(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, WEIR_KEY_SOURCE);
	struct weir_rule_info *info;
	struct weir_image *image;
	struct weir_rule *meter;

	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED)->window = WEIR_WINDOW_SMOOTH;
	ruleset->rules[0].observes = true;
	image = build(ruleset);
	meter = &image->rules[1];
	assert_int_equal(meter->resource, 1);
	assert_int_equal(meter->judging, WEIR_JUDGING_WINDOW);
	assert_int_equal(meter->bucket_ns, SECOND / 10);
	assert_int_equal(meter->window, WEIR_WINDOW_SMOOTH);
	assert_int_equal(meter->window_cells, 11);
	assert_int_equal(meter->storage, WEIR_STORAGE_WIDE);
	assert_int_equal(meter->key_fields, WEIR_KEY_SOURCE);
	assert_int_equal(meter->source_mask4, 0xffffffff);
	assert_int_equal(meter->observes, 0);
	assert_true(meter->slot != image->rules[0].slot);
	assert_true(image->fresh_rule_slots[meter->slot]);
	info = &image->rule_info[meter->slot];
	assert_int_equal(info->is_meter, 1);
	assert_int_equal(info->state, WEIR_SLOT_USED);
	assert_int_equal(info->place, 1);
	assert_string_equal(info->resource_name, "ref");
	assert_non_null(strchr(info->name, ';'));
	assert_int_equal(image->rule_info[image->rules[0].slot].is_meter, 0);
	/* One rule for people, and on a packet of both resources. */
	assert_int_equal(image->packet_rules_max, 1);
	assert_int_equal(image->resources[1].rule_count, 0);
	weir_image_free(image);

	ruleset->resources[1].flow.fields = 0;
	image = build(ruleset);
	assert_int_equal(image->rules[1].storage, WEIR_STORAGE_LONE);
	assert_int_equal(image->rules[1].source_mask4, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void warm_up_is_metered_where_its_traffic_is(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_kind(ruleset, "own", WARM_UP, REJECT, CURRENT);
	add_kind(ruleset, "other", WARM_UP, THROTTLING, ASSOCIATED);
	image = build(ruleset);
	assert_int_equal(image->resources[0].meter_count, 1);
	assert_int_equal(image->resources[0].meter[0].kind, WEIR_METER_WARMING);
	assert_int_equal(image->resources[0].meter[0].skips_dropped, 0);
	assert_int_equal(image->resources[0].meter[0].rule, 0);
	assert_int_equal(image->resources[1].meter_count, 1);
	assert_int_equal(image->resources[1].meter[0].kind, WEIR_METER_SECONDS);
	assert_int_equal(image->resources[1].meter[0].skips_dropped, 0);
	assert_int_equal(image->resources[1].meter[0].rule, 1);
	assert_int_equal(image->meter_count, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* Two resources of sixteen rules each, which no packet meets together, go by a third's traffic. */
static void thirty_two_counts_of_a_resource_are_kept_and_thirty_three_refused(void **state)
{
	struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	uint32_t i;
	char name[32];

	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "apart%u", i);
		add_address(add_resource(ruleset, name, 0), i, 32);
	}
	add_resource(ruleset, "crowded", 0);
	for (i = 0; i < 33; i++) {
		if (i == 32) {
			image = build(ruleset);
			assert_int_equal(image->resources[3].meter_count, 32);
			assert_int_equal(image->packet_rules_max, 16);
			weir_image_free(image);
		}
		snprintf(name, sizeof(name), "rule%u", i);
		add_rule(ruleset, i / 16, name, 10)->interval_ns = (i + 1) * SECOND;
		ruleset->rules[i].relation = ASSOCIATED;
		ruleset->rules[i].ref_resource = 3;
	}
	assert_refused(ruleset, &plain_options,
		       "rule 'rule32' is one too many that goes by the traffic of resource 'crowded'");
	weir_ruleset_free(ruleset);
}

static void rules_and_meters_together_have_8192_places(void **state)
{
	struct weir_ruleset *ruleset = numbered_ruleset(0, 4096);
	struct weir_image *image;
	uint32_t i;

	for (i = 0; i < 4095; i++)
		add_rule(ruleset, i, "second", 10);
	ruleset->rules[0].relation = ASSOCIATED;
	ruleset->rules[0].ref_resource = 1;
	image = build(ruleset);
	assert_int_equal(image->rule_count + image->meter_count, WEIR_RULES_MAX);
	weir_image_free(image);
	add_rule(ruleset, 4095, "last", 10);
	assert_refused(ruleset, &plain_options, "rule 'r0' has no room to count resource 'r1'");
	weir_ruleset_free(ruleset);
}

static void a_meter_keeps_its_slot_over_a_reload(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slots[2];

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "first", DIRECT, REJECT, ASSOCIATED);
	add_kind(ruleset, "second", DIRECT, REJECT, ASSOCIATED)->ref_resource = 2;
	image = build(ruleset);
	slots[0] = image->rules[2].slot, slots[1] = image->rules[3].slot;
	/* Their windows are alike; what tells them apart is the resource. */
	assert_string_equal(image->rule_info[slots[0]].name, image->rule_info[slots[1]].name);

	ruleset->rules[0].threshold_micro = 7 * WEIR_MICRO;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 2);
	assert_int_equal(image->rules[2].slot, slots[0]);
	assert_int_equal(image->rules[3].slot, slots[1]);
	assert_false(image->fresh_rule_slots[slots[0]]);

	/* In the other order. */
	ruleset->rules[0].ref_resource = 2, ruleset->rules[1].ref_resource = 1;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 2);
	assert_int_equal(image->rules[2].slot, slots[1]);
	assert_int_equal(image->rules[3].slot, slots[0]);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_rule_that_refers_elsewhere_keeps_itself_and_changes_its_meter(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;
	uint32_t slot, meter_slot;

	add_resource(ruleset, "third", 0);
	add_kind(ruleset, "rule", DIRECT, REJECT, ASSOCIATED);
	image = build(ruleset);
	slot = image->rules[0].slot, meter_slot = image->rules[1].slot;
	ruleset->rules[0].ref_resource = 2;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, slot);
	assert_true(image->rules[1].slot != meter_slot);
	assert_int_equal(image->rule_info[meter_slot].state, WEIR_SLOT_COOLING);
	assert_string_equal(image->rule_info[slot].ref_resource_name, "third");
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_meter_without_a_slot_is_refused_by_its_resource(void **state)
{
	struct weir_ruleset *ruleset = numbered_ruleset(0, 512);
	struct weir_compile_options options = plain_options;
	struct weir_image *image = build(ruleset);
	struct weir_previous previous = previous_of(image);
	uint32_t i;

	assert_int_equal(image->rule_slots, 1024);
	for (i = 0; i < 512; i++)
		add_rule(ruleset, i, "second", 10);
	ruleset->rules[1023].relation = ASSOCIATED;
	ruleset->rules[1023].ref_resource = 0;
	options.previous = &previous;
	assert_refused(ruleset, &options, "no room for a count of resource 'r0'");
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* ---- what a reload keeps of rules that move, throttle, or refer ---- */

static void a_rule_without_a_window_keeps_its_slot_and_chooses_rows_anew(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);

	ruleset->rules[0].behavior = THROTTLING;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, 0);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_WIDE);
	/* Long enough for what was planned to be over. */
	ruleset->rules[0].behavior = REJECT;
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_NARROW);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_window_whose_threshold_begins_to_move_leaves_its_narrow_rows(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset), *next = NULL;
	struct weir_previous previous = previous_of(image);
	struct weir_compile_options options = plain_options;
	struct weir_diag diag = {};

	ruleset->rules[0].strategy = WARM_UP;
	ruleset->rules[0].warm_up = (struct weir_warm_up_fields){10, 3};
	options.previous = &previous;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "rule 'per-client' starts with empty windows"));
	assert_int_equal(next->rules[0].slot, 1);
	assert_int_equal(next->rules[0].storage, WEIR_STORAGE_WIDE);
	weir_diag_free(&diag);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
}

static uint32_t version_of(const struct weir_image *image)
{
	return image->rules[0].threshold >> WEIR_THRESHOLD_BITS;
}

static void a_flows_warm_up_has_a_new_version_with_any_of_its_numbers(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 1);
	ruleset->rules[0].warm_up.period_s = 20;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 2);
	/* The same 100, but not the same curve. */
	ruleset->rules[0].threshold_micro += 1;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 3);
	ruleset->rules[0].behavior = THROTTLING;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 4);
	assert_int_equal(image->rules[0].slot, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void add_override(struct weir_ruleset_rule *rule, uint8_t family, uint8_t first_byte, uint8_t bits,
			 uint64_t threshold_micro)
{
	struct weir_override *override =
		weir_array_add((void **)&rule->overrides, rule->override_count++, sizeof(*override));

	assert_non_null(override);
	override->prefix = (struct weir_prefix){.family = family, .bits = bits, .address = {first_byte}};
	override->threshold_micro = threshold_micro;
	rule->override_field = WEIR_KEY_SOURCE;
}

static void overrides_are_written_as_the_program_looks_them_up(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION, 0);
	struct weir_image *image;

	add_kind(ruleset, "none", DIRECT, REJECT, CURRENT);
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	add_override(&ruleset->rules[1], 4, 10, 8, 5900000);
	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	add_override(&ruleset->rules[2], 6, 0x20, 16, 400 * WEIR_MICRO);
	add_override(&ruleset->rules[2], 4, 0, 0, 0);
	ruleset->rules[2].override_field = WEIR_KEY_DESTINATION;
	image = build(ruleset);
	assert_int_equal(image->config.has_overrides, 1);
	assert_int_equal(image->rules[0].has_overrides, 0);
	assert_int_equal(image->rules[1].has_overrides, 1);
	assert_int_equal(image->rules[1].overrides_destination, 0);
	assert_int_equal(image->rules[2].overrides_destination, 1);
	assert_int_equal(image->override_count, 3);
	assert_int_equal(image->overrides[0].key.prefix_bits, 40 + 8);
	assert_int_equal(image->overrides[0].key.place, 1);
	assert_int_equal(image->overrides[0].key.family, 4);
	assert_int_equal(image->overrides[0].key.address[0], 10);
	assert_int_equal(image->overrides[0].units.units, 5);
	assert_int_equal(weir_cost_ns(&image->overrides[0].units.cost, 1), 0);
	assert_int_equal(image->overrides[1].key.prefix_bits, 40 + 16);
	assert_int_equal(image->overrides[1].key.place, 2);
	assert_int_equal(image->overrides[1].units.units, 400);
	assert_int_equal(weir_cost_ns(&image->overrides[1].units.cost, 1), 2500000);
	assert_int_equal(image->overrides[2].key.prefix_bits, 40);
	assert_int_equal(image->overrides[2].units.units, 0);
	assert_int_equal(weir_cost_ns(&image->overrides[2].units.cost, 1), 0);
	/* 100 costs 10 ms; of those below one unit nothing is admitted. */
	assert_int_equal(image->config.throttle_horizon_ns, 10 * MS);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_narrow_row_must_hold_the_largest_override(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image;

	add_override(&ruleset->rules[0], 4, 10, 8, 32000 * WEIR_MICRO);
	image = build(ruleset);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_NARROW);
	weir_image_free(image);
	add_override(&ruleset->rules[0], 4, 11, 8, 32001 * WEIR_MICRO);
	image = build(ruleset);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_WIDE);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void rows_must_ask_again_after_every_reload_of_overrides(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image *image = build(ruleset);
	uint32_t i;

	add_override(&ruleset->rules[0], 4, 10, 8, 5 * WEIR_MICRO);
	for (i = 2; i <= 127; i++) {
		reload(&image, ruleset, 1001 * SECOND);
		assert_int_equal(version_of(image), i);
	}
	/* The top bit is the program's. */
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 1);
	assert_int_equal(image->kept_rules, 1);
	/* Without them it has the whole byte; what rows know under an override must not hold then. */
	ruleset->rules[0].override_count = 0;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 2);
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), 2);
	image->rule_info[0].threshold_word = WEIR_THRESHOLD_WORD(20, 200);
	ruleset->rules[0].override_count = 1;
	reload(&image, ruleset, 1001 * SECOND);
	assert_int_equal(version_of(image), (200 & 127) + 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

/* ---- tables that all CPUs share ---- */

/* All but the name. */
static void set_rule(struct weir_ruleset_rule *rule, const struct weir_ruleset_rule *kind)
{
	char *name = rule->name;

	*rule = *kind;
	rule->name = name;
}

/* Slot of a rule that is loaded at `then_ns`, when one of this kind was removed at 2,000 s. */
static uint32_t slot_after(const struct weir_ruleset_rule *gone, uint32_t key_fields,
			   const struct weir_ruleset_rule *next, uint64_t then_ns)
{
	struct weir_ruleset *ruleset = two_resources(key_fields, 0);
	struct weir_ruleset *none = new_ruleset();
	struct weir_image *image;
	uint32_t slot;

	set_rule(add_rule(ruleset, 0, "gone", 0), gone);
	image = build(ruleset);
	reload(&image, none, 2000 * SECOND);
	set_rule(&ruleset->rules[0], next);
	memcpy(ruleset->rules[0].name, "next", 4);
	reload(&image, ruleset, then_ns);
	slot = image->rules[0].slot;
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
	return slot;
}

static void a_throttling_rule_takes_no_slot_whose_planned_times_it_would_feel(void **state)
{
	struct weir_ruleset *kinds = two_resources(0, 0);
	struct weir_ruleset_rule *quick = add_kind(kinds, "quick", DIRECT, THROTTLING, CURRENT);
	struct weir_ruleset_rule slow, reject;

	slow = reject = *quick;
	slow.interval_ns = 60 * SECOND;
	reject.behavior = REJECT;
	/* Half a second of queue, and then its own interval. */
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, &slow, 2060 * SECOND + 499 * MS), 1);
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, &slow, 2060 * SECOND + 500 * MS), 0);
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, quick, 2001 * SECOND + 499 * MS), 1);
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, quick, 2001 * SECOND + 500 * MS), 0);
	/* Who plans nothing does not mind, and whole resources are cleared by the loader. */
	assert_int_equal(slot_after(quick, WEIR_KEY_SOURCE, &reject, 2001 * SECOND + 101 * MS), 0);
	assert_int_equal(slot_after(quick, 0, &slow, 2001 * SECOND + 101 * MS), 0);
	assert_int_equal(slot_after(&reject, WEIR_KEY_SOURCE, &slow, 2001 * SECOND + 101 * MS), 0);
	weir_ruleset_free(kinds);
}

static void a_warming_rule_takes_no_slot_whose_flows_may_still_be_warm(void **state)
{
	struct weir_ruleset *kinds = two_resources(0, 0);
	struct weir_ruleset_rule *warm = add_kind(kinds, "warm", WARM_UP, REJECT, CURRENT);
	struct weir_ruleset_rule never = *warm;

	/* A thousand tokens by a hundred a second. */
	assert_int_equal(slot_after(warm, WEIR_KEY_SOURCE, warm, 2012 * SECOND), 1);
	assert_int_equal(slot_after(warm, WEIR_KEY_SOURCE, warm, 2013 * SECOND), 0);
	/* Two a second: a third of that is no whole token, so a silent second is not below it and never refills. */
	never.threshold_micro = 120 * WEIR_MICRO;
	never.interval_ns = 60 * SECOND;
	assert_int_equal(slot_after(warm, WEIR_KEY_SOURCE, &never, 9000 * SECOND), 1);
	assert_int_equal(slot_after(warm, 0, &never, 9000 * SECOND), 0);
	weir_ruleset_free(kinds);
}

static void a_slot_remembers_throttled_flows_through_other_owners(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_ruleset *none = new_ruleset();
	struct weir_image *image;

	add_kind(ruleset, "first", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	reload(&image, none, 2000 * SECOND);
	strcpy(ruleset->rules[0].name, "other");
	ruleset->rules[0].behavior = REJECT;
	reload(&image, ruleset, 2002 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
	reload(&image, none, 2002 * SECOND);
	strcpy(ruleset->rules[0].name, "third");
	ruleset->rules[0].behavior = THROTTLING;
	ruleset->rules[0].interval_ns = 3600 * SECOND;
	reload(&image, ruleset, 2010 * SECOND);
	assert_int_equal(image->rules[0].slot, 1);
	reload(&image, none, 2010 * SECOND);
	reload(&image, ruleset, 9700 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

static void a_rule_that_begins_to_throttle_leaves_a_slot_of_throttled_flows(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_ruleset *none = new_ruleset();
	struct weir_previous previous;
	struct weir_diag diag = {};

	add_kind(ruleset, "first", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	/* Its own planned times it keeps. */
	reload(&image, ruleset, 1999 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
	reload(&image, none, 2000 * SECOND);
	strcpy(ruleset->rules[0].name, "other");
	ruleset->rules[0].behavior = REJECT;
	ruleset->rules[0].interval_ns = 10 * SECOND;
	reload(&image, ruleset, 2002 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);

	ruleset->rules[0].behavior = THROTTLING;
	previous = previous_of(image);
	options.previous = &previous;
	options.now_ns = 2003 * SECOND;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(next->rules[0].slot, 1);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "still flows of a rule before it"));
	weir_diag_free(&diag);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

static void shared_tables_are_made_for_twice_the_flows_of_rules_that_need_them(void **state)
{
	struct weir_ruleset *ruleset = two_resources(0, 0);
	struct weir_image *image;

	ruleset->settings.flows_per_cpu = 262144;
	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	add_kind(ruleset, "warm", WARM_UP, REJECT, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.throttle_sets, 1);
	assert_int_equal(image->config.warming_sets, 1);
	weir_image_free(image);

	ruleset->resources[0].flow.fields = WEIR_KEY_SOURCE;
	image = build(ruleset);
	assert_int_equal(image->config.throttle_sets, 65536);
	assert_int_equal(image->config.warming_sets, 131072);
	weir_image_free(image);

	ruleset->settings.flows_per_cpu = 1;
	image = build(ruleset);
	assert_int_equal(image->config.throttle_sets, 128);
	assert_int_equal(image->config.warming_sets, 256);
	weir_image_free(image);

	/* Without a window it needs no rows: neither does the other table grow. */
	ruleset->settings.flows_per_cpu = 262144;
	ruleset->rules[1].behavior = THROTTLING;
	image = build(ruleset);
	assert_int_equal(image->config.wide_sets, WEIR_WIDE_SETS_PER_CHUNK);
	assert_int_equal(image->config.narrow_sets, WEIR_NARROW_SETS_PER_CHUNK);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_shared_table_in_use_keeps_its_size_over_a_reload(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	struct weir_diag diag = {};

	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	image = build(ruleset);
	assert_int_equal(image->config.throttle_sets, 1024);
	previous = previous_of(image);
	options.previous = &previous;
	ruleset->settings.flows_per_cpu = 262144;
	add_kind(ruleset, "warm", WARM_UP, THROTTLING, CURRENT);
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(next->config.throttle_sets, 1024);
	assert_int_equal(next->config.warming_sets, 131072);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "table of throttled flows keeps its 10240 places"));
	weir_diag_free(&diag);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
}

/* ---- connections ---- */

static struct weir_ruleset_rule *add_concurrency(struct weir_ruleset *ruleset, size_t resource, const char *name,
						 uint64_t threshold)
{
	struct weir_ruleset_rule *rule = add_rule(ruleset, resource, name, threshold);

	rule->metric = WEIR_METRIC_CONCURRENCY;
	return rule;
}

static void a_concurrency_rule_goes_by_connections_and_takes_no_row(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;
	const struct weir_rule *rule;

	ruleset->settings.flows_per_cpu = 262144;
	add_concurrency(ruleset, 0, "keyed", 100)->threshold_micro += WEIR_MICRO - 1;
	add_concurrency(ruleset, 1, "whole", 7)->observes = true;
	image = build(ruleset);
	rule = &image->rules[0];
	assert_int_equal(image->config.has_connections, 1);
	assert_int_equal(rule->judging, WEIR_JUDGING_CONNECTIONS);
	assert_int_equal(rule->key_fields, WEIR_KEY_SOURCE);
	assert_int_equal(rule->source_mask4, 0xffffffff);
	assert_int_equal(rule->storage, WEIR_STORAGE_LONE);
	assert_int_equal(rule->threshold, WEIR_THRESHOLD_WORD(100, 1));
	assert_int_equal(rule->bucket_ns, 0);
	assert_int_equal(rule->threshold_moves, 0);
	assert_int_equal(image->rules[1].judging, WEIR_JUDGING_CONNECTIONS);
	assert_int_equal(image->rules[1].observes, 1);
	assert_int_equal(image->rule_info[0].identity.metric, WEIR_METRIC_CONCURRENCY);
	assert_int_equal(image->timing_count, 0);
	assert_int_equal(image->meter_count, 0);
	assert_int_equal(image->config.narrow_sets, WEIR_NARROW_SETS_PER_CHUNK);
	assert_int_equal(image->config.wide_sets, WEIR_WIDE_SETS_PER_CHUNK);
	assert_int_equal(image->config.presence_cells, WEIR_PRESENCE_LINE_CELLS);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_rate_rule_beside_a_concurrency_rule_is_as_it_is_alone(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "connections", 100);
	add_rule(ruleset, 0, "rate", 20);
	image = build(ruleset);
	assert_int_equal(image->rules[1].judging, WEIR_JUDGING_WINDOW);
	assert_int_equal(image->rules[1].storage, WEIR_STORAGE_NARROW);
	assert_int_equal(image->rules[1].bucket_ns, SECOND / 10);
	assert_int_equal(image->rules[1].asks_all, 0);
	assert_int_equal(image->timing_count, 1);
	assert_int_equal(image->packet_rules_max, 2);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void tables_of_connections_are_as_large_as_the_settings_say(void **state)
{
	static const struct {
		uint32_t connections, flows, sets, flow_sets;
	} sizes[] = {
		{131072, 32768, 65536, 8192},
		{131073, 32769, 131072, 16384},
		{1024, 256, 512, 64},
		{4194304, 4194304, 2097152, WEIR_CONNECTION_FLOW_SETS_MAX},
	};
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image_memory memory;
	struct weir_image *image;
	size_t i;

	add_concurrency(ruleset, 0, "keyed", 100);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ruleset->settings.connections = sizes[i].connections;
		ruleset->settings.connection_flows = sizes[i].flows;
		image = build(ruleset);
		assert_int_equal(image->config.connection_sets, sizes[i].sets);
		assert_int_equal(image->config.connection_flow_sets, sizes[i].flow_sets);
		weir_image_memory(image, 2, &memory);
		assert_int_equal(memory.connections,
				 128ull * sizes[i].sets + 3200ull * sizes[i].flow_sets + 1024 * 448);
		assert_true(memory.total > memory.connections);
		weir_image_free(image);
	}
	/* A whole resource has one count, beside the table; without such rules there are neither. */
	ruleset->rules[0].resource = 1;
	image = build(ruleset);
	assert_int_equal(image->config.connection_sets, 2097152);
	assert_int_equal(image->config.connection_flow_sets, 0);
	weir_image_free(image);
	ruleset->rules[0].metric = WEIR_METRIC_RATE;
	image = build(ruleset);
	assert_int_equal(image->config.has_connections, 0);
	assert_int_equal(image->config.connection_sets, 0);
	weir_image_memory(image, 2, &memory);
	assert_int_equal(memory.connections, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void silence_is_measured_in_sixths_rounded_up(void **state)
{
	static const uint64_t steps_ns[] = {1666666667, 1240 * SECOND, 20 * SECOND, 1666833334};
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "keyed", 100);
	image = build(ruleset);
	assert_memory_equal(image->config.connection_step_ns, steps_ns, sizeof(steps_ns));
	assert_memory_equal(image->connection_timeout_ms, ruleset->settings.connection_timeout_ms,
			    sizeof(image->connection_timeout_ms));
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void overrides_of_a_concurrency_rule_are_in_the_trie(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_ruleset_rule *rule = add_concurrency(ruleset, 0, "keyed", 100);
	struct weir_image *image;

	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = calloc(1, sizeof(*rule->overrides));
	rule->overrides[0] =
		(struct weir_override){.prefix = {.family = 4, .bits = 8, .address = {10}}, .threshold_micro = 5900000};
	rule->override_count = 1;
	image = build(ruleset);
	assert_int_equal(image->config.has_overrides, 1);
	assert_int_equal(image->rules[0].has_overrides, 1);
	assert_int_equal(image->override_count, 1);
	assert_int_equal(image->overrides[0].key.prefix_bits, WEIR_OVERRIDE_FIXED_BITS + 8);
	assert_int_equal(image->overrides[0].units.units, 5);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_concurrency_rule_keeps_its_slot_until_it_counts_something_else(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "r", 100);
	image = build(ruleset);
	/* What has no effect on it is no change of it. */
	ruleset->rules[0].interval_ns = 5 * SECOND;
	ruleset->rules[0].window = WEIR_WINDOW_STRICT;
	ruleset->rules[0].threshold_micro = 7 * WEIR_MICRO;
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, 0);
	assert_false(image->fresh_rule_slots[0]);
	assert_int_equal(image->rules[0].threshold & WEIR_THRESHOLD_MASK, 7);
	ruleset->rules[0].metric = WEIR_METRIC_RATE;
	reload(&image, ruleset, 3000 * SECOND);
	assert_int_equal(image->kept_rules, 0);
	assert_int_equal(image->rules[0].slot, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_slot_is_not_given_away_while_its_connections_may_last(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *none = two_resources(0, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "r", 100);
	image = build(ruleset);
	reload(&image, none, 2000 * SECOND);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	/* Seven steps of 1240 s, and one second. */
	assert_int_equal(image->rule_info[0].free_after_ns, (2000 + 7 * 1240 + 1) * SECOND);
	reload(&image, ruleset, (2000 + 7 * 1240) * SECOND);
	assert_int_equal(image->rules[0].slot, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

static void the_first_concurrency_rule_of_a_reload_brings_its_tables(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_rule(ruleset, 0, "rate", 20);
	image = build(ruleset);
	ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_OPEN] = 60000;
	add_concurrency(ruleset, 1, "whole", 100);
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(image->config.connection_sets, 65536);
	assert_int_equal(image->config.connection_flow_sets, 0);
	assert_int_equal(image->config.connection_step_ns[WEIR_CONNECTION_CLASS_OPEN], 10 * SECOND);
	/* Another table beside it, later. */
	add_concurrency(ruleset, 0, "keyed", 100);
	reload(&image, ruleset, 3000 * SECOND);
	assert_int_equal(image->kept_rules, 2);
	assert_int_equal(image->config.connection_sets, 65536);
	assert_int_equal(image->config.connection_flow_sets, 8192);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void connections_in_use_keep_tables_and_time_outs_over_a_reload(void **state)
{
	static const char *const told[] = {"table of connections keeps its 131072 places",
					   "table of flows with connections keeps its 32768 places",
					   "the time-outs of connections stay as they are"};
	static const uint64_t timeouts_ms[] = {10000, 7440000, 120000, 10001};
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	struct weir_diag diag = {};
	size_t i;

	add_concurrency(ruleset, 0, "keyed", 100);
	image = build(ruleset);
	previous = previous_of(image);
	options.previous = &previous;
	ruleset->settings.connections = 4096;
	ruleset->settings.connection_flows = 4096;
	ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 60000;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(next->config.connection_sets, 65536);
	assert_int_equal(next->config.connection_flow_sets, 8192);
	assert_memory_equal(next->connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
	assert_int_equal(next->config.connection_step_ns[WEIR_CONNECTION_CLASS_HALF], 1666666667);
	assert_int_equal(diag.count, ARRAY_SIZE(told));
	for (i = 0; i < ARRAY_SIZE(told); i++)
		assert_non_null(strstr(diag.entries[i].message, told[i]));
	assert_string_equal(diag.entries[0].hint, "detach and attach again to change connections");
	weir_diag_free(&diag);
	weir_image_free(next);
	/* What is worked out from a setting is not named beside it; by itself it is. */
	ruleset->settings.derives_connection_flows = true;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 2);
	assert_non_null(strstr(diag.entries[0].message, told[0]));
	assert_non_null(strstr(diag.entries[1].message, told[2]));
	weir_diag_free(&diag);
	weir_image_free(next);
	ruleset->settings.connections = 131072;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 2);
	assert_non_null(strstr(diag.entries[0].message, told[1]));
	weir_diag_free(&diag);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
}

static void time_outs_of_no_connections_are_not_warned_of(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *none = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	struct weir_diag diag = {};

	add_concurrency(ruleset, 0, "keyed", 100);
	ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 60000;
	image = build(ruleset);
	previous = previous_of(image);
	options.previous = &previous;
	assert_int_equal(weir_image_build(none, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 0);
	/* The connections that there are go on to count their silence as they did. */
	assert_int_equal(next->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF], 60000);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

/* Connections of the rule with a key last on in the table, and know their flow by its place. */
static void the_flows_of_a_rule_that_went_stay_beside_the_connections(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *whole = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_ruleset *none = two_resources(0, 0);
	struct weir_image *image;
	int i;

	add_concurrency(ruleset, 1, "whole", 100);
	add_concurrency(ruleset, 0, "keyed", 100);
	add_concurrency(whole, 1, "whole", 100);
	image = build(ruleset);
	for (i = 0; i < 3; i++) {
		reload(&image, whole, (2000 + i) * SECOND);
		assert_int_equal(image->config.connection_sets, 65536);
		assert_int_equal(image->config.connection_flow_sets, 8192);
	}
	/* The last reload that knew such a rule, and the next. */
	reload(&image, none, 3000 * SECOND);
	reload(&image, none, 3001 * SECOND);
	assert_int_equal(image->config.connection_sets, 0);
	assert_int_equal(image->config.connection_flow_sets, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(whole);
	weir_ruleset_free(none);
}

/* Half of 2^58 ns, less the longest queue there can be. */
static void packets_too_far_apart_to_throttle_are_refused(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;

	options.span_ns = (1ull << 57) - (1ull << 32) * MS;
	add_kind(ruleset, "reject", DIRECT, REJECT, CURRENT);
	weir_image_free(build_with(ruleset, &options));
	add_kind(ruleset, "throttling", DIRECT, THROTTLING, CURRENT);
	weir_image_free(build_with(ruleset, &options));
	options.span_ns += MS;
	assert_refused(ruleset, &options, "Throttling can plan over 4.4 years, and these packets lie further apart");
	weir_ruleset_free(ruleset);
}

static void memory_grows_with_overrides_and_shared_tables(void **state)
{
	struct weir_ruleset *ruleset = per_source_ruleset(20);
	struct weir_image_memory before, after;
	struct weir_image *image = build(ruleset);
	uint32_t i;

	weir_image_memory(image, 2, &before);
	weir_image_free(image);
	ruleset->rules[0].behavior = THROTTLING;
	for (i = 0; i < 100; i++)
		add_override(&ruleset->rules[0], 4, i, 8, WEIR_MICRO);
	image = build(ruleset);
	weir_image_memory(image, 2, &after);
	assert_int_equal(after.shared - before.shared, 1023 * 128);
	assert_in_range(after.matching - before.matching, 100 * 100, 100 * 200);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void more_cpus_than_weir_knows_are_refused(void **state)
{
	struct weir_compile_options options = plain_options;
	struct weir_ruleset *ruleset = per_source_ruleset(20);

	options.cpus = WEIR_CPUS_MAX + 1;
	assert_refused(ruleset, &options, "1025 possible CPUs are too many");
	weir_ruleset_free(ruleset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_packets_meet_what_a_plain_matcher_finds),
		cmocka_unit_test(resources_that_are_alike_share_words),
		cmocka_unit_test(a_thousand_prefixes_are_searched_in_few_steps),
		cmocka_unit_test(fields_without_conditions_are_not_in_use),
		cmocka_unit_test(no_resources_match_nothing),
		cmocka_unit_test(prefix_inside_another_of_the_same_resource_is_left_out),
		cmocka_unit_test(missing_interface_warns_and_matches_nothing),
		cmocka_unit_test(a_rule_set_with_more_than_4096_resources_is_refused),
		cmocka_unit_test(meeting_bound_equals_exhaustive_search),
		cmocka_unit_test(random_packets_never_meet_more_than_the_bound),
		cmocka_unit_test(sixteen_rules_may_meet_and_seventeen_are_refused),
		cmocka_unit_test(a_resource_with_seventeen_rules_is_refused),
		cmocka_unit_test(thirty_two_resources_may_meet_and_thirty_three_are_refused),
		cmocka_unit_test(an_ipv4_source_and_an_ipv6_destination_cannot_meet),
		cmocka_unit_test(tcp_flags_and_udp_cannot_meet),
		cmocka_unit_test(ports_and_an_icmp_type_cannot_meet),
		cmocka_unit_test(ports_and_a_later_fragment_cannot_meet),
		cmocka_unit_test(tcp_flags_and_a_port_can_meet),
		cmocka_unit_test(the_heaviest_class_need_not_be_the_best),
		cmocka_unit_test(thousands_of_resources_apart_by_address_are_quick),
		cmocka_unit_test(thousands_of_resources_apart_by_port_are_quick),
		cmocka_unit_test(thousands_of_resources_by_address_or_port_are_quick),
		cmocka_unit_test(thousands_of_resources_by_one_of_three_fields_are_quick),
		cmocka_unit_test(thousands_of_resources_by_address_and_port_are_quick),
		cmocka_unit_test(a_rule_is_written_as_the_program_reads_it),
		cmocka_unit_test(storage_is_narrow_only_for_small_packet_limits_of_flows),
		cmocka_unit_test(narrow_timings_go_to_rules_that_can_use_them),
		cmocka_unit_test(rules_share_a_timing_only_with_the_same_buckets_and_window),
		cmocka_unit_test(a_young_clock_counts_buckets_from_zero),
		cmocka_unit_test(more_than_1024_timings_are_refused),
		cmocka_unit_test(an_unchanged_rule_keeps_slot_timing_and_version),
		cmocka_unit_test(a_changed_threshold_keeps_the_slot_under_a_new_version),
		cmocka_unit_test(a_rule_with_another_identity_gets_a_new_slot),
		cmocka_unit_test(a_removed_rules_slot_cools_before_it_is_reused),
		cmocka_unit_test(a_reload_without_free_slots_is_refused),
		cmocka_unit_test(first_load_makes_room_for_twice_its_rules),
		cmocka_unit_test(a_threshold_that_outgrows_narrow_rows_moves_the_rule_and_says_so),
		cmocka_unit_test(timings_of_earlier_loads_stay_for_ever),
		cmocka_unit_test(unused_flow_tables_are_one_chunk),
		cmocka_unit_test(a_flow_table_in_use_keeps_its_size_over_a_reload),
		cmocka_unit_test(an_epoch_holds_the_longest_window_of_a_flow),
		cmocka_unit_test(a_reload_keeps_the_epochs_and_longer_windows_do_without),
		cmocka_unit_test(settings_and_cpus_reach_the_program),
		cmocka_unit_test(memory_is_what_the_maps_take),
		cmocka_unit_test(each_combination_is_judged_as_semantics_says),
		cmocka_unit_test(a_throttled_packet_costs_its_exact_threshold),
		cmocka_unit_test(what_is_pushed_first_is_what_holds_without_a_controller),
		cmocka_unit_test(descriptions_say_what_a_controller_needs),
		cmocka_unit_test(every_warm_up_too_large_is_refused_by_name),
		cmocka_unit_test(the_program_is_told_what_any_rule_asks_for),
		cmocka_unit_test(the_program_is_told_which_fields_flow_keys_are_made_of),
		cmocka_unit_test(the_program_is_told_which_fields_matches_and_connections_ask_for),
		cmocka_unit_test(the_horizon_is_the_largest_cost_of_any_packet),
		cmocka_unit_test(rules_that_read_the_same_window_share_a_meter),
		cmocka_unit_test(a_rule_that_observes_has_a_meter_to_itself),
		cmocka_unit_test(a_rule_that_observed_alone_enforces_by_the_window_it_has),
		cmocka_unit_test(meters_of_observers_keep_their_slots_in_any_order),
		cmocka_unit_test(a_meter_takes_no_slot_of_a_rule_of_its_name),
		cmocka_unit_test(a_meter_is_a_rule_of_the_resource_that_is_read),
		cmocka_unit_test(warm_up_is_metered_where_its_traffic_is),
		cmocka_unit_test(thirty_two_counts_of_a_resource_are_kept_and_thirty_three_refused),
		cmocka_unit_test(rules_and_meters_together_have_8192_places),
		cmocka_unit_test(a_meter_keeps_its_slot_over_a_reload),
		cmocka_unit_test(a_rule_that_refers_elsewhere_keeps_itself_and_changes_its_meter),
		cmocka_unit_test(a_meter_without_a_slot_is_refused_by_its_resource),
		cmocka_unit_test(a_rule_without_a_window_keeps_its_slot_and_chooses_rows_anew),
		cmocka_unit_test(a_window_whose_threshold_begins_to_move_leaves_its_narrow_rows),
		cmocka_unit_test(a_flows_warm_up_has_a_new_version_with_any_of_its_numbers),
		cmocka_unit_test(overrides_are_written_as_the_program_looks_them_up),
		cmocka_unit_test(a_narrow_row_must_hold_the_largest_override),
		cmocka_unit_test(rows_must_ask_again_after_every_reload_of_overrides),
		cmocka_unit_test(a_throttling_rule_takes_no_slot_whose_planned_times_it_would_feel),
		cmocka_unit_test(a_warming_rule_takes_no_slot_whose_flows_may_still_be_warm),
		cmocka_unit_test(a_slot_remembers_throttled_flows_through_other_owners),
		cmocka_unit_test(a_rule_that_begins_to_throttle_leaves_a_slot_of_throttled_flows),
		cmocka_unit_test(shared_tables_are_made_for_twice_the_flows_of_rules_that_need_them),
		cmocka_unit_test(a_shared_table_in_use_keeps_its_size_over_a_reload),
		cmocka_unit_test(a_concurrency_rule_goes_by_connections_and_takes_no_row),
		cmocka_unit_test(a_rate_rule_beside_a_concurrency_rule_is_as_it_is_alone),
		cmocka_unit_test(tables_of_connections_are_as_large_as_the_settings_say),
		cmocka_unit_test(silence_is_measured_in_sixths_rounded_up),
		cmocka_unit_test(overrides_of_a_concurrency_rule_are_in_the_trie),
		cmocka_unit_test(a_concurrency_rule_keeps_its_slot_until_it_counts_something_else),
		cmocka_unit_test(a_slot_is_not_given_away_while_its_connections_may_last),
		cmocka_unit_test(the_first_concurrency_rule_of_a_reload_brings_its_tables),
		cmocka_unit_test(connections_in_use_keep_tables_and_time_outs_over_a_reload),
		cmocka_unit_test(time_outs_of_no_connections_are_not_warned_of),
		cmocka_unit_test(the_flows_of_a_rule_that_went_stay_beside_the_connections),
		cmocka_unit_test(packets_too_far_apart_to_throttle_are_refused),
		cmocka_unit_test(memory_grows_with_overrides_and_shared_tables),
		cmocka_unit_test(more_cpus_than_weir_knows_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
