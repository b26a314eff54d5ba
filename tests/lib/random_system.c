// SPDX-License-Identifier: GPL-2.0-only
#include "random_system.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define PICK(random, array) ((array)[random_below(random, ARRAY_SIZE(array))])

/* About what the clients of random_packets reach. */
static uint64_t random_trigger_micro(struct random *random, enum weir_system_metric metric)
{
	static const uint64_t inbound[] = {0, 1, 1000000, 2500000, 3000000, 10000000, 40000000, 200000000};
	static const uint64_t open[] = {0, 1, 1000000, 1500000, 3000000, 8000000, 20000000};
	static const uint64_t ms[] = {0, 1, 500, 1000000, 20000000, 100000000, 333333333, 1000000000};
	static const uint64_t load[] = {0, 500000, 3990000, 4000000, 4000001};
	static const uint64_t cpu[] = {0, 500000, 800000, 1000000};

	switch (metric) {
	case WEIR_SYSTEM_INBOUND_QPS:
		return PICK(random, inbound);
	case WEIR_SYSTEM_CONCURRENCY:
		return PICK(random, open);
	case WEIR_SYSTEM_AVG_RT:
		return PICK(random, ms);
	case WEIR_SYSTEM_LOAD:
		return PICK(random, load);
	default:
		return PICK(random, cpu);
	}
}

/* As the reader of rule files leaves it. */
static struct weir_ruleset_rule random_system_rule(struct random *random, size_t number)
{
	struct weir_ruleset_rule rule = {
		.resource = WEIR_NO_RESOURCE,
		.ref_resource = WEIR_NO_RESOURCE,
		.metric = WEIR_METRIC_SIGNAL,
		.system = random_between(random, WEIR_SYSTEM_LOAD, WEIR_SYSTEM_CPU_USAGE),
		.interval_ns = WEIR_NSEC_PER_SEC,
		.samples = 2,
		.observes = random_percent(random, 40),
	};

	if (rule.system == WEIR_SYSTEM_INBOUND_QPS)
		rule.metric = WEIR_METRIC_RATE;
	else if (rule.system == WEIR_SYSTEM_CONCURRENCY)
		rule.metric = WEIR_METRIC_CONCURRENCY;
	rule.threshold_micro = random_trigger_micro(random, rule.system);
	if (weir_goes_by_samples(&rule))
		rule.is_bbr = random_percent(random, 60);
	assert(asprintf(&rule.name, "host-%zu", number) > 0);
	return rule;
}

struct weir_ruleset *random_system_ruleset(struct random *random)
{
	struct weir_ruleset *ruleset = random_ruleset(random);
	size_t count = random_between(random, 1, 4), most = WEIR_PACKET_RULES_MAX - count - 1;
	struct weir_ruleset_rule *rules;

	/* A packet may meet all of them, and the one that is hidden. */
	while (ruleset->rule_count > most) {
		ruleset->rule_count--;
		free(ruleset->rules[ruleset->rule_count].name);
		free(ruleset->rules[ruleset->rule_count].overrides);
	}
	rules = calloc(ruleset->rule_count + count, sizeof(*rules));
	assert(rules);
	for (size_t i = 0; i < count; i++)
		rules[i] = random_system_rule(random, i);
	if (ruleset->rule_count)
		memcpy(&rules[count], ruleset->rules, ruleset->rule_count * sizeof(*rules));
	free(ruleset->rules);
	ruleset->rules = rules;
	ruleset->rule_count += count;
	return ruleset;
}

static int compare_times(const void *left, const void *right)
{
	const struct random_sample *a = left, *b = right;

	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

size_t random_samples(struct random *random, const struct weir_ruleset *ruleset, const struct packet_spec *specs,
		      size_t count, struct random_sample *samples, size_t max)
{
	static const uint64_t load[] = {0, 500000, 500001, 3990000, 4000000, 4000001, 5000000};
	static const uint64_t cpu[] = {0, 499999, 500001, 800000, 800001, 999999, 1000000};
	size_t made;

	if (!ruleset->rule_count || !ruleset->rules[0].system || !count)
		return 0;
	made = random_below(random, max + 1);
	for (size_t i = 0; i < made; i++)
		samples[i] = (struct random_sample){
			.time_ns = specs[random_below(random, count)].time_ns,
			.load1_micro = PICK(random, load),
			.cpu_micro = PICK(random, cpu),
		};
	qsort(samples, made, sizeof(*samples), compare_times);
	return made;
}
