// SPDX-License-Identifier: GPL-2.0-only
#include "compile_by_hand.h"

#include <string.h>

/* ---- the parts ---- */

struct weir_ruleset *new_ruleset(void)
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

struct weir_match *add_resource(struct weir_ruleset *ruleset, const char *name, uint32_t key_fields)
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

struct weir_ruleset_rule *add_rule(struct weir_ruleset *ruleset, size_t resource, const char *name, uint64_t threshold)
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

void add_range(struct weir_range **ranges, size_t *count, uint32_t low, uint32_t high)
{
	struct weir_range *range = weir_array_add((void **)ranges, (*count)++, sizeof(*range));

	assert_non_null(range);
	*range = (struct weir_range){low, high};
}

void add_prefix(struct weir_prefix **prefixes, size_t *count, uint8_t family, const uint8_t *address, unsigned int bits)
{
	struct weir_prefix *prefix = weir_array_add((void **)prefixes, (*count)++, sizeof(*prefix));

	assert_non_null(prefix);
	prefix->family = family;
	prefix->bits = bits;
	for (unsigned int i = 0; i < bits; i++)
		prefix->address[i / 8] |= address[i / 8] & 0x80 >> i % 8;
}

void add_address(struct weir_match *match, uint32_t address, unsigned int bits)
{
	uint8_t bytes[16] = {address >> 24, address >> 16, address >> 8, address};

	add_prefix(&match->destination, &match->destination_count, 4, bytes, bits);
}

void add_protocol(struct weir_match *match, unsigned int protocol)
{
	match->has_protocol = true;
	match->protocol[protocol / 8] |= 1u << protocol % 8;
}

void add_flags(struct weir_match *match, uint8_t set, uint8_t clear)
{
	struct weir_tcp_flags *flags =
		weir_array_add((void **)&match->tcp_flags, match->tcp_flags_count++, sizeof(*flags));

	assert_non_null(flags);
	*flags = (struct weir_tcp_flags){set, clear};
}

void add_interface(struct weir_match *match, const char *name)
{
	char *added = weir_array_add((void **)&match->interface, match->interface_count++, WEIR_WANTED_BYTES);

	assert_non_null(added);
	strncpy(added, name, WEIR_WANTED_BYTES - 1);
}

void add_override(struct weir_ruleset_rule *rule, uint8_t family, uint8_t first_byte, uint8_t bits,
		  uint64_t threshold_micro)
{
	struct weir_override *override =
		weir_array_add((void **)&rule->overrides, rule->override_count++, sizeof(*override));

	assert_non_null(override);
	override->prefix = (struct weir_prefix){.family = family, .bits = bits, .address = {first_byte}};
	override->threshold_micro = threshold_micro;
	rule->override_field = WEIR_KEY_SOURCE;
}

/* ---- usual ones ---- */

struct weir_ruleset *per_source_ruleset(uint64_t threshold)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_resource(ruleset, "dns", WEIR_KEY_SOURCE);
	add_rule(ruleset, 0, "per-client", threshold);
	return ruleset;
}

struct weir_ruleset *numbered_ruleset(uint32_t from, uint32_t count)
{
	struct weir_ruleset *ruleset = new_ruleset();
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "r%u", from + i);
		add_address(add_resource(ruleset, name, WEIR_KEY_SOURCE), from + i, 32);
		add_rule(ruleset, i, name, 10);
	}
	return ruleset;
}

struct weir_ruleset *two_resources(uint32_t own_key, uint32_t ref_key)
{
	struct weir_ruleset *ruleset = new_ruleset();

	add_resource(ruleset, "own", own_key);
	add_resource(ruleset, "ref", ref_key);
	return ruleset;
}

struct weir_ruleset_rule *add_kind(struct weir_ruleset *ruleset, const char *name, enum weir_strategy strategy,
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
		rule->memory = (struct weir_memory_adaptive){1000, 100, 1024, 2048};
	return rule;
}

/* ---- compiling them ---- */

uint32_t test_ifindex(const char *name, void *data)
{
	return strncmp(name, "eth", 3) ? 0 : (uint32_t)(name[3] - '0');
}

const struct weir_compile_options plain_options = {
	.cpus = 2,
	.now_ns = 1000 * SECOND,
	.ifindex = test_ifindex,
};

struct weir_image *build_with(const struct weir_ruleset *ruleset, const struct weir_compile_options *options)
{
	struct weir_image *image = NULL;
	struct weir_diag diag = {};

	if (weir_image_build(ruleset, options, &image, &diag))
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_non_null(image);
	return image;
}

struct weir_image *build(const struct weir_ruleset *ruleset)
{
	return build_with(ruleset, &plain_options);
}

void assert_refused(const struct weir_ruleset *ruleset, const struct weir_compile_options *options, const char *words)
{
	struct weir_image *image = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	assert_int_equal(weir_image_build(ruleset, options, &image, &diag), -EINVAL);
	assert_null(image);
	assert_int_equal(diag.errors, 1);
	if (!strstr(diag.entries[0].message, words))
		print_error("%s\n", diag.entries[0].message);
	assert_non_null(strstr(diag.entries[0].message, words));
}

void reload(struct weir_image **image, const struct weir_ruleset *ruleset, uint64_t now_ns)
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
