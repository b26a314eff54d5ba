// SPDX-License-Identifier: GPL-2.0-only
#include "random_directions.h"

#include <string.h>

#include "random_breakers.h"
#include "random_system.h"

#define TCP_FIN 0x01u
#define TCP_SYN 0x02u
#define TCP_RST 0x04u
#define TCP_ACK 0x10u

/* ---- rule sets ---- */

static void name_ends(struct random *random, struct weir_flow *flow)
{
	const uint32_t addresses = WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION;
	const uint32_t ports = WEIR_KEY_SOURCE_PORT | WEIR_KEY_DESTINATION_PORT;

	/* Both addresses in the same way: on `out`, source and local are one. */
	if (random_percent(random, 50))
		flow->fields |= WEIR_KEY_RELATIVE(flow->fields & addresses);
	if (random_percent(random, 50))
		flow->fields |= WEIR_KEY_RELATIVE(flow->fields & ports);
}

static void direct_resources(struct random *random, struct weir_ruleset *ruleset)
{
	static const uint8_t directions[] = {
		0, 0, WEIR_MATCHES_IN, WEIR_MATCHES_OUT, WEIR_MATCHES_OUT, WEIR_MATCHES_BOTH, WEIR_MATCHES_BOTH};
	struct weir_flow before = {};
	bool is_same;

	for (size_t i = 0; i < ruleset->resource_count; i++) {
		struct weir_ruleset_resource *resource = &ruleset->resources[i];

		resource->match.directions = directions[random_below(random, sizeof(directions))];
		is_same = i > 0 && !memcmp(&resource->flow, &before, sizeof(before));
		before = resource->flow;
		name_ends(random, &resource->flow);
		/* the same key as another, as rules on associated resources want it */
		if (is_same && random_percent(random, 70))
			resource->flow = resource[-1].flow;
	}
}

/* The other resource's key must still be the rule's, on packets of the rule. */
static void keep_reference(const struct weir_ruleset *ruleset, struct weir_ruleset_rule *rule)
{
	const struct weir_flow *counted;

	if (rule->relation != WEIR_RELATION_ASSOCIATED)
		return;
	counted = &ruleset->resources[rule->ref_resource].flow;
	if (!counted->fields || weir_is_same_key(counted, weir_flow_of(ruleset, rule),
						 weir_match_directions(&weir_resource_of(ruleset, rule)->match)))
		return;
	rule->relation = WEIR_RELATION_CURRENT;
	rule->ref_resource = WEIR_NO_RESOURCE;
}

/* The key that overrides were made for may be another now: they need an address of it, and prefixes no longer. */
static void keep_overrides(const struct weir_ruleset *ruleset, struct weir_ruleset_rule *rule)
{
	const struct weir_flow *flow = weir_flow_of(ruleset, rule);
	const uint8_t *key_bits = rule->override_field == WEIR_KEY_SOURCE ? flow->source_bits : flow->destination_bits;
	size_t kept = 0;

	for (size_t i = 0; i < rule->override_count; i++)
		if (flow->fields & rule->override_field &&
		    rule->overrides[i].prefix.bits <= key_bits[rule->overrides[i].prefix.family == 6])
			rule->overrides[kept++] = rule->overrides[i];
	rule->override_count = kept;
	rule->overrides_end = kept && flow->fields & WEIR_KEY_RELATIVE(rule->override_field);
	if (!kept)
		rule->override_field = 0;
}

static void direct(struct random *random, struct weir_ruleset *ruleset)
{
	direct_resources(random, ruleset);
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (rule->system)
			continue;
		if (rule->has_own_key)
			name_ends(random, &rule->own_key);
		keep_reference(ruleset, rule);
		keep_overrides(ruleset, rule);
		rule->occupies =
			weir_rule_can_occupy(rule) && weir_meets_prioritized(ruleset, weir_resource_of(ruleset, rule));
	}
}

struct weir_ruleset *random_directed_ruleset(struct random *random)
{
	struct weir_ruleset *ruleset =
		random_percent(random, 20) ? random_system_ruleset(random) : random_ruleset(random);

	direct(random, ruleset);
	return ruleset;
}

struct weir_ruleset *random_directed_breaker_ruleset(struct random *random)
{
	struct weir_ruleset *ruleset = random_breaker_ruleset(random);

	direct(random, ruleset);
	return ruleset;
}

/* ---- traffic ---- */

static bool goes_out(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (weir_match_directions(&ruleset->resources[i].match) & WEIR_MATCHES_OUT)
			return true;
	return false;
}

/* From the host to whom it would have come from. */
static void answer(struct packet_spec *spec)
{
	uint8_t address[sizeof(spec->source)];
	uint16_t port = spec->source_port;

	memcpy(address, spec->source, sizeof(address));
	memcpy(spec->source, spec->destination, sizeof(address));
	memcpy(spec->destination, address, sizeof(address));
	spec->source_port = spec->destination_port;
	spec->destination_port = port;
}

/* It is as long as its segments are as frames, each with headers of its own. */
#define HEADER_BYTES 54
#define FRAME_BYTES_MIN 54

static void merge(struct random *random, struct packet_spec *spec)
{
	spec->segments = random_percent(random, 80) ? random_between(random, 1, 6) : random_between(random, 7, 45);
	spec->padding_bytes += (spec->segments - 1) * HEADER_BYTES;
}

/* The kernel takes no more than a page for a test run at tc, where headers must fit in; and no less than the headers of
 * Ethernet and IPv6.
 */
static void fit_in_page(struct packet_spec *spec)
{
	if (spec->cut_bytes && spec->cut_bytes < FRAME_BYTES_MIN)
		spec->cut_bytes = FRAME_BYTES_MIN;
	if (spec->padding_bytes < FRAME_BYTES_MIN - 34)
		spec->padding_bytes += FRAME_BYTES_MIN - 34;
	for (unsigned int i = 0; i < spec->extension_count; i++)
		if (spec->extension[i].units > 5)
			spec->extension[i].units = 5;
}

struct packet_spec *random_directed_packets(struct random *random, const struct weir_ruleset *ruleset, size_t count)
{
	struct packet_spec *specs = random_packets(random, ruleset, count);
	const bool has_out = goes_out(ruleset);

	for (size_t i = 0; i < count; i++) {
		fit_in_page(&specs[i]);
		specs[i].is_out = has_out && random_percent(random, 55);
		if (specs[i].is_out && random_percent(random, 75))
			answer(&specs[i]);
		if (random_percent(random, 15))
			merge(random, &specs[i]);
	}
	return specs;
}

/* Requests that go out as well as come in, and answers in the other direction. */
struct packet_spec *random_directed_breaker_packets(struct random *random, const struct weir_ruleset *ruleset,
						    size_t count)
{
	static const uint8_t answers[] = {TCP_SYN | TCP_ACK, TCP_SYN | TCP_ACK, TCP_RST | TCP_ACK,
					  TCP_ACK,	     TCP_FIN | TCP_ACK, TCP_SYN};
	struct packet_spec *specs = random_breaker_packets(random, ruleset, count);
	const bool has_out = goes_out(ruleset);

	for (size_t i = 0; i < count; i++) {
		fit_in_page(&specs[i]);
		if (!has_out)
			continue;
		specs[i].is_out = random_percent(random, 75);
		if (specs[i].is_out || random_percent(random, 20))
			continue;
		answer(&specs[i]);
		specs[i].tcp_flags = answers[random_below(random, sizeof(answers))];
	}
	return specs;
}
