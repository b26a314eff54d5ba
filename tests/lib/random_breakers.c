// SPDX-License-Identifier: GPL-2.0-only
#include "random_breakers.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "rules/scalars.h"

#define PICK(random, array) ((array)[random_below(random, ARRAY_SIZE(array))])
#define MS 1000000ull

/* ---- rules ---- */

static bool is_breaker(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_REQUESTS;
}

bool ruleset_has_breakers(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (is_breaker(&ruleset->rules[i]))
			return true;
	return false;
}

/* Thresholds and times that a few clients reach. */
static struct weir_ruleset_rule random_breaker(struct random *random, size_t resource)
{
	static const uint64_t intervals_ms[] = {1, 10, 100, 1000, 1000, 2520, 10000};
	static const uint64_t rts_ms[] = {1, 5, 50, 200, 500, 999, 1000, 3000}, retries_ms[] = {1, 20, 100, 500, 3000};
	static const uint64_t ratios_micro[] = {0, 1, 100000, 333333, 333334, 500000, 500000, 666667, 1000000};
	/* what the reader of rule files leaves in the fields that such a rule does not use */
	struct weir_ruleset_rule rule = {
		.resource = resource,
		.ref_resource = WEIR_NO_RESOURCE,
		.metric = WEIR_METRIC_REQUESTS,
		.interval_ns = WEIR_NSEC_PER_SEC,
		.samples = WEIR_SAMPLES_MAX,
		.observes = random_percent(random, 15),
		.breaker =
			{
				.strategy = random_below(random, 3),
				.interval_ns = PICK(random, intervals_ms) * MS,
				.retry_ns = PICK(random, retries_ms) * MS,
				.min_requests = random_between(random, 1, 6),
				.probes = random_percent(random, 50) ? 0 : random_between(random, 1, 4),
			},
	};

	do {
		rule.breaker.buckets = random_between(random, 1, 10);
	} while (rule.breaker.interval_ns / MS % rule.breaker.buckets);
	if (rule.breaker.strategy == WEIR_BREAKER_SLOW_RATIO)
		rule.breaker.max_rt_ns = PICK(random, rts_ms) * MS;
	if (rule.breaker.strategy == WEIR_BREAKER_ERROR_COUNT)
		rule.threshold_micro = random_between(random, 0, 12) * WEIR_MICRO / 2;
	else
		rule.threshold_micro = PICK(random, ratios_micro);
	return rule;
}

static void add_rule(struct weir_ruleset *ruleset, struct weir_ruleset_rule rule, const char *kind)
{
	struct weir_ruleset_rule *added =
		weir_array_add((void **)&ruleset->rules, ruleset->rule_count, sizeof(*ruleset->rules));
	int bytes;

	assert(added);
	*added = rule;
	bytes = asprintf(&added->name, "%s-%zu", kind, ruleset->rule_count++);
	assert(bytes > 0);
}

/* Some matches are of no TCP packet; those are refused. */
static bool may_see_openings(const struct weir_match *match)
{
	return (!match->has_protocol || match->protocol[0] & 1 << 6) && match->icmp_type_count == 0 &&
	       match->tcp_flags_count == 0 && match->fragments == 0;
}

void random_breakers(struct random *random, struct weir_ruleset *ruleset)
{
	ruleset->settings.ring_groups = 4096;
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		if (!may_see_openings(&ruleset->resources[i].match) || random_percent(random, 40))
			continue;
		for (size_t count = random_between(random, 1, 2); count > 0; count--)
			if (ruleset->rule_count < WEIR_PACKET_RULES_MAX)
				add_rule(ruleset, random_breaker(random, i), "breaker");
	}
}

/* ---- rule files ---- */

static void write_breaker(FILE *stream, const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	static const char *const strategies[] = {
		[WEIR_BREAKER_SLOW_RATIO] = "SlowRequestRatio",
		[WEIR_BREAKER_ERROR_RATIO] = "ErrorRatio",
		[WEIR_BREAKER_ERROR_COUNT] = "ErrorCount",
	};
	const struct weir_breaker_fields *breaker = &rule->breaker;

	fprintf(stream, "  - name: %s\n    resource: ", rule->name);
	ruleset_write_quoted(stream, ruleset->resources[rule->resource].name);
	fprintf(stream, "\n    strategy: %s\n", strategies[breaker->strategy]);
	fprintf(stream, "    threshold: %" PRIu64 ".%06" PRIu64 "\n", (uint64_t)(rule->threshold_micro / WEIR_MICRO),
		(uint64_t)(rule->threshold_micro % WEIR_MICRO));
	fprintf(stream, "    statIntervalMs: %" PRIu64 "\n", (uint64_t)(breaker->interval_ns / MS));
	fprintf(stream, "    statSlidingWindowBucketCount: %u\n", breaker->buckets);
	fprintf(stream, "    retryTimeoutMs: %" PRIu64 "\n", (uint64_t)(breaker->retry_ns / MS));
	fprintf(stream, "    minRequestAmount: %u\n    probeNum: %u\n", breaker->min_requests, breaker->probes);
	if (breaker->strategy == WEIR_BREAKER_SLOW_RATIO)
		fprintf(stream, "    maxAllowedRtMs: %" PRIu64 "\n", (uint64_t)(breaker->max_rt_ns / MS));
	fprintf(stream, "    mode: %s\n", rule->observes ? "observe" : "enforce");
}

void ruleset_write_breakers(const struct weir_ruleset *ruleset, FILE *stream)
{
	fprintf(stream, "circuitBreakers:\n");
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (is_breaker(&ruleset->rules[i]))
			write_breaker(stream, ruleset, &ruleset->rules[i]);
}

/* ---- traffic ---- */

void random_requests_for(struct random *random, const struct weir_ruleset *ruleset, struct random_requests *requests)
{
	*requests = (struct random_requests){
		.timeout_ns = ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] * MS,
	};
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_breaker_fields *breaker = &ruleset->rules[i].breaker;

		if (is_breaker(&ruleset->rules[i]))
			requests->times[requests->times_count++] = (struct random_breaker_times){
				breaker->max_rt_ns, breaker->retry_ns, breaker->interval_ns / breaker->buckets};
	}
	random_requests_begin(random, requests);
}

/* ---- rule sets of their own ---- */

static void random_resource(struct random *random, struct weir_ruleset_resource *resource, size_t number)
{
	static const uint32_t keys[] = {
		0, WEIR_KEY_SOURCE, WEIR_KEY_SOURCE, WEIR_KEY_SOURCE, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION,
	};
	int bytes = asprintf(&resource->name, "resource-%zu", number);

	assert(bytes > 0);
	resource->flow.fields = PICK(random, keys);
	if (random_percent(random, 20))
		resource->flow.fields |=
			1 << random_between(random, WEIR_KEY_PLACE_SOURCE_PORT, WEIR_KEY_FIELD_COUNT - 1);
	if (resource->flow.fields & WEIR_KEY_SOURCE) {
		resource->flow.source_bits[0] = random_percent(random, 80) ? 32 : 24;
		resource->flow.source_bits[1] = random_percent(random, 80) ? 128 : 64;
	}
	if (resource->flow.fields & WEIR_KEY_DESTINATION) {
		resource->flow.destination_bits[0] = 32;
		resource->flow.destination_bits[1] = 128;
	}
	if (random_percent(random, 60))
		return;
	resource->match.has_protocol = true;
	resource->match.protocol[0] = 1 << 6;
}

/* One that drops some of the packets, of whatever is said in them. */
static struct weir_ruleset_rule random_other_rule(struct random *random, size_t resource)
{
	struct weir_ruleset_rule rule = {
		.resource = resource,
		.ref_resource = WEIR_NO_RESOURCE,
		.interval_ns = WEIR_NSEC_PER_SEC,
		.samples = WEIR_SAMPLES_MAX,
		.observes = random_percent(random, 15),
	};

	if (random_percent(random, 50)) {
		rule.metric = WEIR_METRIC_CONCURRENCY;
		rule.threshold_micro = random_between(random, 1, 30) * WEIR_MICRO;
		return rule;
	}
	rule.interval_ns = random_percent(random, 50) ? 100 * MS : WEIR_NSEC_PER_SEC;
	rule.threshold_micro = random_between(random, 5, 100) * WEIR_MICRO;
	return rule;
}

struct weir_ruleset *random_breaker_ruleset(struct random *random)
{
	static const uint64_t timeouts_ms[] = {1000, 1000, 2500, 10000};
	struct weir_ruleset *ruleset = calloc(1, sizeof(*ruleset));
	size_t others = random_percent(random, 50) ? 0 : random_between(random, 1, 2);

	assert(ruleset);
	ruleset->settings = (struct weir_settings){
		.flows_per_cpu = 65536,
		.controller_timeout_ms = 3000,
		.connections = 1 << 18,
		.connection_flows = 8192,
	};
	for (size_t i = 0; i < WEIR_CONNECTION_CLASSES; i++)
		ruleset->settings.connection_timeout_ms[i] = PICK(random, timeouts_ms);
	ruleset->resource_count = random_between(random, 1, 2);
	ruleset->resources = calloc(ruleset->resource_count, sizeof(*ruleset->resources));
	assert(ruleset->resources);
	for (size_t i = 0; i < ruleset->resource_count; i++)
		random_resource(random, &ruleset->resources[i], i);
	for (size_t i = 0; i < others; i++)
		add_rule(ruleset, random_other_rule(random, random_below(random, ruleset->resource_count)), "rule");
	do {
		random_breakers(random, ruleset);
	} while (!ruleset_has_breakers(ruleset));
	return ruleset;
}

/* What breakers must not mind: another protocol, a later fragment, another key. */
static void disguise(struct random *random, struct packet_spec *spec)
{
	switch (random_below(random, 50)) {
	case 0:
		spec->protocol = 17;
		break;
	case 1:
		if (spec->family == 4)
			spec->fragment_units = random_between(random, 0, 100);
		spec->more_fragments = spec->family == 4;
		break;
	case 2:
		spec->traffic_class = random_below(random, 3) << 2;
		break;
	}
}

struct packet_spec *random_breaker_packets(struct random *random, const struct weir_ruleset *ruleset, size_t count)
{
	struct packet_spec *specs = calloc(count, sizeof(*specs));
	/* a clock that has just begun, a machine's uptime, a capture's time */
	static const uint64_t starts_s[] = {0, 1000000, 1700000000};
	uint64_t now_ns = PICK(random, starts_s) * WEIR_NSEC_PER_SEC + random_below(random, 2), back_ns;
	bool goes_back = random_percent(random, 25);
	struct random_requests requests;

	assert(specs);
	random_requests_for(random, ruleset, &requests);
	for (size_t i = 0; i < count; i++) {
		specs[i] = random_requests_packet(random, &requests, now_ns);
		disguise(random, &specs[i]);
		specs[i].time_ns = now_ns;
		now_ns = random_requests_step(random, &requests, now_ns);
		back_ns = goes_back && random_percent(random, 2) ? random_below(random, 200 * MS) : 0;
		now_ns -= back_ns < now_ns ? back_ns : 0;
	}
	return specs;
}
