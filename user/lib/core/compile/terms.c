// SPDX-License-Identifier: GPL-2.0-only
/*
 * Terms: Sentinel's strategy, behaviour and relation, converted to what the program and the controller use
 * (docs/semantics.md, 3 to 6).
 */
#include "compile/build_steps.h"

#include <string.h>

#include "base/util.h"
#include "rules/scalars.h"
#include "thresholds/control.h"
#include "thresholds/token_rates.h"

/* If both the resource whose traffic warms up the rule and the rule itself have flows, the program warms up each flow
 * separately. If a whole other resource warms them up, all flows share one threshold, which the controller can compute.
 */
static bool warms_flows(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	if (rule->strategy != WEIR_STRATEGY_WARM_UP || !weir_flow_of(ruleset, rule)->fields)
		return false;
	return rule->relation == WEIR_RELATION_CURRENT || ruleset->resources[rule->ref_resource].flow.fields;
}

static int set_strategy(const struct weir_ruleset_rule *rule, struct weir_terms *terms, struct weir_diag *diag)
{
	unsigned __int128 allowed_num = rule->threshold_micro, allowed_den = WEIR_MICRO;
	int err = 0;

	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		err = weir_warm_up_set_up(rule, &terms->warm_up, diag);
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE) {
		/* The other threshold is smaller, so it need not be checked. */
		if (rule->memory.low_units > WEIR_THRESHOLD_UNITS_MAX)
			err = weir_diag_error(diag, &rule->place, NULL, "lower it to 10000000000000 at most",
					      "rule '%s' has a lowMemUsageThreshold that is too large", rule->name);
		allowed_num = rule->memory.high_units;
		allowed_den = 1;
	}
	terms->units = (uint64_t)(allowed_num / allowed_den);
	/* System rules drop at triggerCount and above, so the count just below it is admitted. Signals are compared in
	 * millionths.
	 */
	if (rule->system)
		terms->units = rule->metric == WEIR_METRIC_SIGNAL
				       ? rule->threshold_micro
				       : (rule->threshold_micro + WEIR_MICRO - 1) / WEIR_MICRO;
	if (!err && weir_kinds[terms->kind]->has_emission)
		weir_emission_make(rule->interval_ns, allowed_num, allowed_den, &terms->emission);
	if (!err && weir_kinds[terms->kind]->has_tokens)
		weir_tokens_make(rule, &terms->tokens);
	return err;
}

/* For the choice of rows: the most hosts that share an AVG_LOCAL threshold. docs/cluster.md says how many a store can
 * serve.
 */
#define HOSTS_MAX 1000

int weir_terms_make(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule, struct weir_terms *terms,
		    struct weir_diag *diag)
{
	uint64_t units;
	size_t i;
	int err;

	memset(terms, 0, sizeof(*terms));
	terms->kind = weir_kind_id_of(rule);
	terms->has_window = weir_kinds[terms->kind]->keeps_window;
	terms->warms_flows = warms_flows(ruleset, rule);
	terms->moves = rule->strategy != WEIR_STRATEGY_DIRECT && !terms->warms_flows;
	err = set_strategy(rule, terms, diag);
	if (err)
		return err;
	terms->units_max = terms->units;
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		terms->units_max = rule->memory.low_units;
	if (rule->cluster == WEIR_CLUSTER_AVG_LOCAL)
		terms->units_max *= HOSTS_MAX;
	for (i = 0; i < rule->override_count; i++) {
		units = rule->overrides[i].threshold_micro / WEIR_MICRO;
		if (units > terms->units_max)
			terms->units_max = units;
	}
	return 0;
}

/* ---- overrides ---- */

#define GOLDEN_RATIO 0x9e3779b97f4a7c15ull /* 2^64 divided by it */

static void write_override(const struct weir_ruleset_rule *rule, size_t place, const struct weir_override *written,
			   const struct weir_rule *loaded, struct weir_image_override *override)
{
	override->key.place = place;
	override->key.family = written->prefix.family;
	override->key.prefix_bits =
		rule->overrides_label ? WEIR_OVERRIDE_LABEL_BITS : WEIR_OVERRIDE_FIXED_BITS + written->prefix.bits;
	memcpy(override->key.address, written->prefix.address, sizeof(override->key.address));
	override->units.units = written->threshold_micro / WEIR_MICRO;
	if (weir_kind_of(rule)->has_emission)
		weir_emission_make(rule->interval_ns, written->threshold_micro, WEIR_MICRO, &override->units.emission);
	if (weir_kind_of(rule)->has_tokens) {
		struct weir_tokens tokens;

		weir_tokens_override(rule, written->threshold_micro, loaded->tokens.unit, &tokens);
		override->units.tokens.rate = tokens.clock.rate;
		override->units.tokens.capacity = tokens.capacity;
		override->units.tokens.batch_max = tokens.batch_max;
		/* A flow under an override has a different rate, so other flows of the rule must not use its bucket. */
		override->units.tokens.mark =
			(uint32_t)(((loaded->tokens.mark ^ written->threshold_micro) * GOLDEN_RATIO) >> 32) | 1;
	}
}

/* The number of an override's label among the image's; 0, after a warning, if no prefix of the key's set has it now. */
static uint32_t find_label(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule,
			   const struct weir_override *override, const struct weir_key_labels *labels,
			   struct weir_diag *diag)
{
	const char *name = weir_flow_set(weir_flow_of(ruleset, rule), rule->override_field == WEIR_KEY_SOURCE
									      ? WEIR_KEY_PLACE_SOURCE
									      : WEIR_KEY_PLACE_DESTINATION);
	const struct weir_set *set = name ? weir_find_set(ruleset, name, strlen(name)) : NULL;
	uint32_t label = set ? weir_set_find_label(set, override->label) : WEIR_NO_LABEL;

	if (label == WEIR_NO_LABEL) {
		weir_diag_warning(diag, &override->place, NULL, NULL,
				  "rule '%s': no prefix of set '%s' has the label '%s' now", rule->name, name ?: "?",
				  override->label);
		return 0;
	}
	for (uint32_t i = 0; i < labels->set_count && strcmp(labels->sets[i], name); i++)
		label += weir_find_set(ruleset, labels->sets[i], strlen(labels->sets[i]))->label_count;
	return label + 1;
}

int weir_compile_overrides(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_ruleset_rule *rule;
	size_t place, i, count = 0;

	for (place = 0; place < ruleset->rule_count; place++)
		count += ruleset->rules[place].override_count;
	image->overrides = calloc(count + 1, sizeof(*image->overrides));
	if (!image->overrides)
		return weir_compile_no_memory(diag);
	for (place = 0; place < ruleset->rule_count; place++) {
		rule = &ruleset->rules[place];
		for (i = 0; i < rule->override_count; i++) {
			const struct weir_override *override = &rule->overrides[i];
			const uint32_t label =
				rule->overrides_label ? find_label(ruleset, rule, override, image->labels, diag) : 0;

			if (rule->overrides_label && !label)
				continue;
			image->overrides[image->override_count].label = label;
			write_override(rule, place, override, &image->rules[place],
				       &image->overrides[image->override_count++]);
		}
	}
	return 0;
}
