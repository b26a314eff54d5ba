// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names and patterns of `interface`: whatever comes, its vector is there, and has the resources whose words mean its
 * name. Against fnmatch(3) asked word by word.
 */
#include <fnmatch.h>
#include <string.h>

#include "compile_by_hand.h"
#include "compile_oracle.h"
#include "rules/scalars.h"

/* Resource by resource: what the vector of this name has; the resources are in the order of their bits. */
static bool has_resource(const struct weir_image *image, const char *name, size_t resource)
{
	uint32_t vector = image->config.interface_default;

	weir_interface_cases_find(image->cases, image->case_count, name, &vector);
	assert_true(vector < image->vector_count);
	return weir_vector_has(&image->vectors[vector], image->bit[resource]);
}

CLAIM(a_pattern_means_the_names_that_it_matches_but_its_exceptions)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match = add_resource(ruleset, "containers", 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_interface(match, "veth*");
	add_interface(match, "!veth-mgmt");
	add_resource(ruleset, "everywhere", 0);
	image = build(ruleset);
	assert_true(has_resource(image, "veth1", 0));
	assert_true(has_resource(image, "veth", 0));
	assert_false(has_resource(image, "veth-mgmt", 0));
	assert_false(has_resource(image, "eth0", 0));
	assert_true(has_resource(image, "eth0", 1));
	assert_true(has_resource(image, "veth1", 1));
}

CLAIM(a_pattern_does_not_mean_the_loopback_interface)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_interface(add_resource(ruleset, "all", 0), "*");
	add_interface(add_resource(ruleset, "loopback", 0), "lo");
	image = build_with(ruleset, &(struct weir_compile_options){.cpus = 2, .now_ns = SECOND});
	assert_false(has_resource(image, "lo", 0));
	assert_true(has_resource(image, "lo", 1));
	assert_true(has_resource(image, "eth0", 0));
}

CLAIM(a_name_that_is_not_there_yet_has_its_vector)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	add_interface(add_resource(ruleset, "later", 0), "ppp0");
	assert_int_equal(weir_image_build(ruleset, &plain_options, &image, &diag), 0);
	assert_int_equal(image->interface_count, 0);
	assert_true(has_resource(image, "ppp0", 0));
	assert_false(has_resource(image, "ppp1", 0));
}

/* Of `a` and `b`, so that patterns nest, meet and miss each other. */
static const char *const words[] = {"a*", "ab*", "*b", "?b*", "b[ab]", "!ab*", "!*aa", "ab", "bb", "*", "b*", "lo"};

static bool is_meant(const struct weir_match *match, const char *name)
{
	bool by_pattern = false;

	for (size_t i = 0; i < match->interface_count; i++)
		if (!strcmp(match->interface[i], name))
			return true;
	for (size_t i = 0; i < match->interface_count; i++) {
		const char *word = match->interface[i];

		if (word[0] == '!' && !fnmatch(word + 1, name, 0))
			return false;
		by_pattern |= word[0] != '!' && strpbrk(word, "*?[") && !fnmatch(word, name, 0);
	}
	return by_pattern && strcmp(name, "lo") != 0;
}

CLAIM(whatever_comes_meets_the_resources_whose_words_mean_its_name)
{
	static const char *const names[] = {"a",  "b",	 "aa",	"ab",  "ba",  "bb",  "aab", "aba",
					    "lo", "abb", "bab", "baa", "aaa", "bbb", "c",   "cb"};

	for (int round = 0; round < 300; round++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
		const uint32_t resources = 1 + chance(6);
		_cleanup_(weir_image_freep) struct weir_image *image = calloc(1, sizeof(*image));
		_cleanup_(weir_diag_free) struct weir_diag diag = {};

		for (uint32_t r = 0; r < resources; r++) {
			char resource[16];
			struct weir_match *match;

			snprintf(resource, sizeof(resource), "r%u", r);
			match = add_resource(ruleset, resource, 0);
			for (uint32_t n = chance(4); n; n--)
				add_interface(match, words[chance(sizeof(words) / sizeof(*words))]);
		}
		assert_int_equal(weir_compile_match(ruleset, &plain_options, image, &diag), 0);
		for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)
			for (uint32_t r = 0; r < resources; r++) {
				const struct weir_match *match = &ruleset->resources[r].match;

				assert_int_equal(has_resource(image, names[n], r),
						 !match->interface_count || is_meant(match, names[n]));
				assert_int_equal(weir_words_mean((const char(*)[WEIR_WANTED_BYTES])match->interface,
								 match->interface_count, names[n]),
						 is_meant(match, names[n]));
			}
	}
}

CLAIM(an_interface_that_is_there_is_added_once)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = new_ruleset();
	struct weir_match *match = add_resource(ruleset, "r", 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_interface(match, "eth*");
	add_interface(match, "eth3");
	image = build(ruleset);
	assert_int_equal(image->interface_count, 1);
	assert_int_equal(weir_image_add_interface(image, "eth3", 3), 0);
	assert_int_equal(weir_image_add_interface(image, "eth4", 4), 0);
	assert_int_equal(weir_image_add_interface(image, "wlan0", 5), 0);
	assert_int_equal(image->interface_count, 2);
	assert_int_equal(image->interfaces[1].ifindex, 4);
	assert_int_equal(image->interfaces[1].vector, image->interfaces[0].vector);
}

/* One more than may meet on a packet, each on interfaces whose names begin with this and its number. */
static struct weir_ruleset *many(const char *beginning)
{
	struct weir_ruleset *ruleset = new_ruleset();

	for (uint32_t r = 0; r <= WEIR_PACKET_RULES_MAX; r++) {
		char word[WEIR_WANTED_BYTES], name[16];

		snprintf(word, sizeof(word), beginning, r + 10);
		snprintf(name, sizeof(name), "r%u", r);
		add_interface(add_resource(ruleset, name, 0), word);
		add_rule(ruleset, r, name, 10);
	}
	return ruleset;
}

/* None is there when the rules are compiled: one that comes could be meant by all. */
CLAIM(rules_that_could_meet_on_an_interface_that_comes_are_refused)
{
	struct weir_ruleset *ruleset = many("eth%u*");
	struct weir_image *image = build(ruleset); /* no name begins in two ways */

	assert_int_equal(image->packet_rules_max, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	ruleset = new_ruleset();
	for (uint32_t r = 0; r <= WEIR_PACKET_RULES_MAX; r++) {
		char name[16];

		snprintf(name, sizeof(name), "r%u", r);
		add_interface(add_resource(ruleset, name, 0), "veth*");
		add_rule(ruleset, r, name, 10);
	}
	assert_refused(ruleset, &plain_options, "rules");
	weir_ruleset_free(ruleset);
}

CLAIM(patterns_that_can_be_met_in_too_many_ways_are_refused)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = many("*%u");

	assert_refused(ruleset, &plain_options, "combinations");
}

RUN_CLAIMS(NULL, NULL)
