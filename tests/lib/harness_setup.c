// SPDX-License-Identifier: GPL-2.0-only
#include "harness_setup.h"

#include <string.h>

/* ---- rule sets ---- */

void setup_resources(struct setup *setup, size_t count)
{
	static char *const names[] = {"first", "second", "third"};

	memset(setup, 0, sizeof(*setup));
	setup->ruleset.settings = (struct weir_settings){.flows_per_cpu = 4096, .drop_malformed = true};
	for (size_t i = 0; i < count; i++) {
		setup->resource[i].name = names[i];
		setup->resource[i].flow.fields = WEIR_KEY_SOURCE;
		setup->resource[i].flow.source_bits[0] = 32;
		setup->resource[i].flow.source_bits[1] = 128;
	}
	setup->ruleset.resources = setup->resource;
	setup->ruleset.resource_count = count;
	setup->ruleset.rules = setup->rule;
}

void setup_ports(struct setup *setup)
{
	static struct weir_range ports[2][2] = {{{53, 53}, {55, 55}}, {{54, 54}, {55, 55}}};

	setup_resources(setup, 2);
	for (size_t i = 0; i < 2; i++) {
		setup->resource[i].match.destination_port = ports[i];
		setup->resource[i].match.destination_port_count = 2;
	}
}

void setup_rule(struct setup *setup, size_t resource, struct weir_ruleset_rule rule)
{
	rule.resource = resource;
	setup->rule[setup->ruleset.rule_count++] = rule;
}

struct weir_ruleset_rule rule_of(char *name, enum weir_window_kind window, double threshold, uint64_t interval_ns,
				 uint32_t samples)
{
	return (struct weir_ruleset_rule){
		.name = name,
		.threshold_micro = threshold * 1e6 + 0.5,
		.interval_ns = interval_ns,
		.samples = samples,
		.window = window,
	};
}

struct weir_ruleset_rule warm_up_of(double threshold, uint64_t interval_ns, uint32_t period_s)
{
	struct weir_ruleset_rule rule = rule_of("warm-up", WEIR_WINDOW_LEAP, threshold, interval_ns, 10);

	rule.strategy = WEIR_STRATEGY_WARM_UP;
	rule.warm_up = (struct weir_warm_up_fields){.period_s = period_s, .cold_factor = 3};
	return rule;
}

struct weir_ruleset_rule throttling_of(double threshold, uint64_t interval_ns, uint64_t queueing_ms_max)
{
	struct weir_ruleset_rule rule = rule_of("throttle", WEIR_WINDOW_LEAP, threshold, interval_ns, 10);

	rule.behavior = WEIR_BEHAVIOR_THROTTLING;
	rule.queueing_ms_max = queueing_ms_max;
	return rule;
}

struct weir_ruleset_rule associated(struct weir_ruleset_rule rule, size_t ref_resource)
{
	rule.relation = WEIR_RELATION_ASSOCIATED;
	rule.ref_resource = ref_resource;
	return rule;
}

/* ---- a claim, from its start to its end ---- */

void harness_finish(struct harness *harness)
{
	if (!harness->model)
		return;
	assert_true(harness_agrees(harness));
	harness_close(harness);
}

void harness_start(struct harness *harness, struct setup *setup)
{
	assert_null(harness->model);
	assert_int_equal(harness_open(harness, &setup->ruleset, 0, 3600 * SECOND), 0);
}

void harness_rule(struct harness *harness, struct setup *setup, struct weir_ruleset_rule rule)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, rule);
	harness_start(harness, setup);
}

void harness_one_rule(struct harness *harness, struct setup *setup, enum weir_window_kind window, double threshold,
		      uint64_t interval_ns, uint32_t samples)
{
	harness_rule(harness, setup, rule_of("limit", window, threshold, interval_ns, samples));
}

enum weir_verdict harness_verdict(struct harness *harness, const struct packet_spec *spec)
{
	assert_true(harness_evaluate(harness, spec));
	return harness->last.verdict;
}

unsigned int harness_send_to(struct harness *harness, const char *source, uint16_t port, uint64_t time_ns,
			     unsigned int count)
{
	struct packet_spec spec = packet_udp(source, 1024, "192.0.2.53", port, 18);
	unsigned int passed = 0;

	spec.time_ns = time_ns;
	for (unsigned int i = 0; i < count; i++) {
		passed += harness_verdict(harness, &spec) == WEIR_VERDICT_PASS;
	}
	return passed;
}

unsigned int harness_send(struct harness *harness, const char *source, uint64_t time_ns, unsigned int count)
{
	return harness_send_to(harness, source, 53, time_ns, count);
}

unsigned int harness_saturate(struct harness *harness, const char *source, uint64_t second)
{
	unsigned int passed = 0;

	for (unsigned int i = 0; i < 500; i++)
		passed += harness_send(harness, source, second * SECOND + i * 2 * MS, 1);
	return passed;
}
