// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matching: whatever resources a packet belongs to, the compiled image finds them, in few steps. Against a slow and
 * obvious oracle: a matcher that tries each resource in turn.
 */
#include <string.h>

#include "compile_by_hand.h"
#include "compile_oracle.h"

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

CLAIM(random_packets_meet_what_a_plain_matcher_finds)
{
	static const uint32_t sizes[] = {1, 5, 20, 64, 65, 200};

	for (uint32_t round = 0; round < 120; round++) {
		/* Matching alone: so many resources may well exceed what may meet on a packet. */
		struct weir_ruleset *ruleset =
			chance_ruleset(sizes[round % 6], round % 2 ? CONDITIONS_ALL : chance(CONDITIONS_ALL + 1));
		_cleanup_(weir_image_freep) struct weir_image *image = calloc(1, sizeof(*image));
		_cleanup_(weir_diag_free) struct weir_diag diag = {};

		assert_int_equal(weir_compile_match(ruleset, &plain_options, image, &diag), 0);
		for (uint32_t i = 0; i < 2000; i++) {
			struct packet packet = chance_packet();

			if (!image->config.limits_out)
				packet.direction = WEIR_DIRECTION_IN;
			assert_same_resources(ruleset, image, &packet);
		}
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
		.ip_length = 86,
		.ttl = 64,
	};

	drop_impossible(&packet);
	return packet;
}

/* A word is looked at when all summaries name it: that has to be few, however many resources there are. */
CLAIM(resources_that_are_alike_share_words)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = services_ruleset(WEIR_RESOURCES_MAX);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	for (uint32_t i = 0; i < WEIR_RESOURCES_MAX; i++) {
		struct packet packet = service_packet(i);
		struct weir_vector set = look_up(image, &packet);

		assert_true(weir_vector_has(&set, image->bit[i]));
		assert_true(__builtin_popcountll(set.summary) <= 2);
	}
}

/* As many as part a thousand customers, with the bits they share skipped. */
CLAIM(a_thousand_prefixes_are_searched_in_few_steps)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = services_ruleset(WEIR_RESOURCES_MAX);
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	for (uint32_t i = 0; i < WEIR_RESOURCES_MAX; i++) {
		struct packet packet = service_packet(i);

		longest_prefix(image, image->config.destination_root, &packet, packet.destination);
		assert_in_range(prefix_steps, 1, 3);
	}
}

CLAIM(fields_without_conditions_are_not_in_use)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_image *image;
	struct weir_match *match;

	add_resource(ruleset, "any", 0);
	image = build(ruleset);
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
}

CLAIM(no_resources_match_nothing)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	assert_int_equal(image->config.resource_count, 0);
	assert_int_equal(image->vector_count, 1);
	assert_int_equal(image->vectors[0].summary, 0);
	assert_int_equal(image->packet_rules_max, 0);
}

CLAIM(prefix_inside_another_of_the_same_resource_is_left_out)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match = add_resource(ruleset, "nested", 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_address(match, 0x0a010000, 16);
	add_address(match, 0x0a000000, 8);
	add_address(match, 0x0a010000, 16);
	image = build(ruleset);
	assert_int_equal(image->destination_prefix_count, 1);
	assert_int_equal(image->destination_prefixes[0].prefix.bits, 8);
	assert_int_equal(image->source_prefix_count, 0);
}

CLAIM(missing_interface_warns_and_matches_nothing)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	struct weir_vector set;
	struct packet packet;

	add_interface(add_resource(ruleset, "there", 0), "eth3");
	add_interface(add_resource(ruleset, "not-there", 0), "gone0");
	assert_int_equal(weir_image_build(ruleset, &plain_options, &image, &diag), 0);
	assert_int_equal(diag.errors, 0);
	assert_int_equal(diag.count, 1);
	assert_non_null(strstr(diag.entries[0].message, "'gone0'"));
	packet = chance_packet();
	packet.direction = WEIR_DIRECTION_IN;
	for (packet.ifindex = 0; packet.ifindex < 5; packet.ifindex++) {
		set = look_up(image, &packet);
		assert_int_equal(set.word[0], packet.ifindex == 3 ? 1 : 0);
	}
}

CLAIM(a_rule_set_with_more_than_4096_resources_is_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();

	for (uint32_t i = 0; i <= WEIR_RESOURCES_MAX; i++)
		add_address(add_resource(ruleset, "r", 0), i, 32);
	assert_refused(ruleset, &plain_options, "4097 resources are too many");
}

RUN_CLAIMS(NULL, NULL)
