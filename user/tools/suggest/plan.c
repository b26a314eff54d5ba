// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/plan.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"

/* Fits a row of 32 bytes; counts above it are not needed. */
#define OBSERVED_THRESHOLD 30000

/* A client is an IPv4 address or an IPv6 /64, which is what a host or a subscriber gets and changes its addresses in
 * (RFC 8981, RFC 6177).
 */
static const char services_text[] = "resources:\n"
				    "  - {name: in, flow: [source/32/64, protocol, destinationPort]}\n"
				    "  - {name: out, match: {direction: out}, flow: remote/32/64}\n"
				    "rules: [{resource: in, rate: 1/s}, {resource: out, rate: 1/s}]\n";

struct weir_suggest_series weir_suggest_default_series(size_t resource, const struct weir_flow *flow)
{
	return (struct weir_suggest_series){
		.resource = resource,
		.flow = *flow,
		.window = {WEIR_NSEC_PER_SEC / WEIR_SAMPLES_MAX, WEIR_SAMPLES_MAX, WEIR_WINDOW_LEAP},
		.interval_ns = WEIR_NSEC_PER_SEC,
	};
}

static int add_series(struct weir_suggest_plan *plan, const struct weir_suggest_series *series)
{
	struct weir_suggest_series *added = weir_array_add((void **)&plan->series, plan->count, sizeof(*plan->series));

	if (!added)
		return -ENOMEM;
	*added = *series;
	plan->count++;
	return 0;
}

static int add_rules_of(struct weir_suggest_plan *plan, const struct weir_ruleset *ruleset, size_t resource)
{
	const size_t before = plan->count;
	int err = 0;

	for (size_t i = 0; !err && i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		/* Rules that do not define how their window is divided use the default. */
		if (rule->resource != resource || rule->system || !weir_kind_of(rule)->keeps_window ||
		    rule->relation != WEIR_RELATION_CURRENT)
			continue;
		err = add_series(plan,
				 &(struct weir_suggest_series){
					 .resource = resource,
					 .flow = *weir_flow_of(ruleset, rule),
					 .fair_by = rule->fair_by,
					 .window = {rule->interval_ns / rule->samples, rule->samples, rule->window},
					 .interval_ns = rule->interval_ns,
					 .counts_bytes = rule->counts_bytes,
				 });
	}
	if (!err && plan->count == before) {
		const struct weir_suggest_series series =
			weir_suggest_default_series(resource, &ruleset->resources[resource].flow);

		err = add_series(plan, &series);
	}
	return err;
}

/* The results of comparing these thresholds are not used: the program only reports which flow a packet belongs to. */
static int make_rules(struct weir_suggest_plan *plan)
{
	plan->rules = calloc(plan->count + 1, sizeof(*plan->rules));
	if (!plan->rules)
		return -ENOMEM;
	for (size_t i = 0; i < plan->count; i++) {
		const size_t resource = plan->series[i].resource;

		plan->rules[i] = (struct weir_ruleset_rule){
			.resource = resource,
			.has_own_key = true,
			.own_key = plan->series[i].flow,
			.threshold_micro = OBSERVED_THRESHOLD * WEIR_MICRO,
			.interval_ns = WEIR_NSEC_PER_SEC,
			.samples = 1,
			.observes = true,
			.ref_resource = WEIR_NO_RESOURCE,
		};
		if (asprintf(&plan->rules[i].name, "%.100s (%zu)", plan->ruleset.resources[resource].name, i) < 0) {
			plan->rules[i].name = NULL;
			return -ENOMEM;
		}
	}
	plan->ruleset.rules = plan->rules;
	plan->ruleset.rule_count = plan->count;
	return 0;
}

int weir_suggest_plan_make(const struct weir_ruleset *ruleset, struct weir_suggest_plan *ret_plan,
			   struct weir_diag *diag)
{
	int err = 0;

	*ret_plan = (struct weir_suggest_plan){};
	if (!ruleset) {
		err = weir_ruleset_parse("services", services_text, strlen(services_text), &ret_plan->services, diag);
		if (err)
			return err;
		ruleset = ret_plan->services;
	}
	ret_plan->ruleset = *ruleset;
	for (size_t i = 0; !err && i < ruleset->resource_count; i++)
		err = add_rules_of(ret_plan, ruleset, i);
	if (!err)
		err = make_rules(ret_plan);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot measure");
	return ret_plan->count ? 0
			       : weir_diag_fail(diag, 0, "leave --resources out, and weir looks for services",
						"there is no resource in these files");
}

void weir_suggest_plan_free(struct weir_suggest_plan *plan)
{
	for (size_t i = 0; plan->rules && i < plan->count; i++)
		free(plan->rules[i].name);
	free(plan->rules);
	free(plan->series);
	weir_ruleset_free(plan->services);
	*plan = (struct weir_suggest_plan){};
}
