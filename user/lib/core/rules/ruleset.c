// SPDX-License-Identifier: GPL-2.0-only
#include "rules/ruleset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static void free_match(struct weir_match *match)
{
#define FREE_RANGES(constant, name, member, highest, none, who) free(match->member);
	WEIR_RANGE_FIELDS(FREE_RANGES)
	free(match->source);
	free(match->source_sets);
	free(match->destination);
	free(match->destination_sets);
	free(match->tcp_flags);
	free(match->interface);
	free(match->except);
}

bool weir_rule_can_occupy(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_RATE && rule->strategy == WEIR_STRATEGY_DIRECT &&
	       rule->behavior == WEIR_BEHAVIOR_REJECT && rule->relation == WEIR_RELATION_CURRENT &&
	       rule->window == WEIR_WINDOW_LEAP && !rule->counts_bytes;
}

/* Could one packet have a value in both? A packet has one value for each of its fields; a condition on a field that it
 * lacks never matches.
 */
static bool ranges_meet(const struct weir_range *a, size_t a_count, const struct weir_range *b, size_t b_count)
{
	for (size_t i = 0; i < a_count; i++)
		for (size_t k = 0; k < b_count; k++)
			if (a[i].low <= b[k].high && b[k].low <= a[i].high)
				return true;
	return !a_count || !b_count;
}

static bool may_meet(const struct weir_match *a, const struct weir_match *b)
{
	bool protocols_meet = !a->has_protocol || !b->has_protocol;

	for (size_t i = 0; i < ARRAY_SIZE(a->protocol); i++)
		protocols_meet |= a->protocol[i] & b->protocol[i];
	return protocols_meet && weir_match_directions(a) & weir_match_directions(b) &&
	       (!a->families || !b->families || a->families & b->families) &&
	       ranges_meet(a->destination_port, a->destination_port_count, b->destination_port,
			   b->destination_port_count);
}

bool weir_meets_prioritized(const struct weir_ruleset *ruleset, const struct weir_ruleset_resource *resource)
{
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (ruleset->resources[i].is_prioritized && may_meet(&ruleset->resources[i].match, &resource->match))
			return true;
	return false;
}

static bool has_resource(const struct weir_ruleset *ruleset, uint8_t direction)
{
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (weir_match_directions(&ruleset->resources[i].match) & direction)
			return true;
	return false;
}

bool weir_breaks_what_goes_out(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_REQUESTS &&
	       weir_match_directions(&weir_resource_of(ruleset, rule)->match) == WEIR_MATCHES_OUT;
}

bool weir_ruleset_is_out_only(const struct weir_ruleset *ruleset)
{
	return ruleset->resource_count && !has_resource(ruleset, WEIR_MATCHES_IN) && !ruleset->listed_count &&
	       !weir_count_system_rules(ruleset);
}

uint32_t weir_ruleset_needs(const struct weir_ruleset *ruleset, enum weir_direction direction)
{
	const struct weir_settings *settings = &ruleset->settings;
	uint32_t needs = 0;

	if (direction != WEIR_DIRECTION_IN)
		return has_resource(ruleset, WEIR_MATCHES_OUT) ? 1u << WEIR_NEED_RESOURCES : 0;
	needs |= has_resource(ruleset, WEIR_MATCHES_IN) ? 1u << WEIR_NEED_RESOURCES : 0;
	needs |= ruleset->listed_count ? 1u << WEIR_NEED_LISTS : 0;
	needs |= weir_count_system_rules(ruleset) ? 1u << WEIR_NEED_SYSTEM : 0;
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (weir_breaks_what_goes_out(ruleset, &ruleset->rules[i]))
			needs |= 1u << WEIR_NEED_ANSWERS;
	if (settings->drop_unmatched || settings->drop_non_ip || settings->non_ip_except_count ||
	    (weir_ruleset_is_out_only(ruleset) && (settings->drop_malformed || settings->drop_unsupported)))
		needs |= 1u << WEIR_NEED_SETTINGS;
	return needs;
}

uint8_t weir_ruleset_hooks(const struct weir_ruleset *ruleset)
{
	const bool has_out = weir_ruleset_needs(ruleset, WEIR_DIRECTION_OUT);
	const bool has_in = weir_ruleset_needs(ruleset, WEIR_DIRECTION_IN) || !has_out;

	return (has_in ? WEIR_MATCHES_IN : 0) | (has_out ? WEIR_MATCHES_OUT : 0);
}

const struct weir_ruleset_resource *weir_resource_of(const struct weir_ruleset *ruleset,
						     const struct weir_ruleset_rule *rule)
{
	static char no_name[] = "";
	static const struct weir_ruleset_resource none = {.name = no_name};

	return rule->resource == WEIR_NO_RESOURCE ? &none : &ruleset->resources[rule->resource];
}

const struct weir_flow *weir_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	return rule->has_own_key ? &rule->own_key : &weir_resource_of(ruleset, rule)->flow;
}

struct weir_flow weir_child_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	struct weir_flow key = *weir_flow_of(ruleset, rule);

	key.fields |= rule->fair_by.fields;
	if (rule->fair_by.source_set[0])
		memcpy(key.source_set, rule->fair_by.source_set, sizeof(key.source_set));
	if (rule->fair_by.destination_set[0])
		memcpy(key.destination_set, rule->fair_by.destination_set, sizeof(key.destination_set));
	for (int i = 0; i < 2; i++) {
		if (key.source_bits[i] < rule->fair_by.source_bits[i])
			key.source_bits[i] = rule->fair_by.source_bits[i];
		if (key.destination_bits[i] < rule->fair_by.destination_bits[i])
			key.destination_bits[i] = rule->fair_by.destination_bits[i];
	}
	return key;
}

struct weir_flow weir_flow_by_ends(const struct weir_flow *flow, uint8_t directions)
{
	const uint32_t ends = flow->fields & WEIR_KEY_ENDS, own = ends & ~(ends & flow->fields >> 16);
	struct weir_flow key = *flow;

	if (directions == WEIR_MATCHES_BOTH)
		key.fields |= WEIR_KEY_TURNED(own);
	if (directions != WEIR_MATCHES_OUT || !own)
		return key;
	key.fields = (flow->fields & ~own) | WEIR_KEY_OTHER_END(own) | WEIR_KEY_REVERSED;
	if (own & (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION)) {
		memcpy(key.source_bits, flow->destination_bits, sizeof(key.source_bits));
		memcpy(key.destination_bits, flow->source_bits, sizeof(key.destination_bits));
		memcpy(key.source_set, flow->destination_set, sizeof(key.source_set));
		memcpy(key.destination_set, flow->source_set, sizeof(key.destination_set));
		key.fields = (key.fields & ~WEIR_KEY_LABELS) |
			     WEIR_KEY_LABEL(WEIR_KEY_OTHER_END(WEIR_KEY_LABEL_ENDS(flow->fields)));
	}
	return key;
}

bool weir_is_same_key(const struct weir_flow *left, const struct weir_flow *right, uint8_t directions)
{
	struct weir_flow a = weir_flow_by_ends(left, directions), b = weir_flow_by_ends(right, directions);

	/* The names of the key's fields make no difference. */
	a.fields &= WEIR_KEY_RELATIVE(1) - 1;
	b.fields &= WEIR_KEY_RELATIVE(1) - 1;
	return !memcmp(&a, &b, sizeof(a));
}

const struct weir_flow *weir_counted_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	return rule->relation == WEIR_RELATION_ASSOCIATED ? &ruleset->resources[rule->ref_resource].flow
							  : weir_flow_of(ruleset, rule);
}

size_t weir_count_system_rules(const struct weir_ruleset *ruleset)
{
	size_t count = 0;

	while (count < ruleset->rule_count && ruleset->rules[count].system)
		count++;
	return count;
}

bool weir_tracks_connections(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count && ruleset->rules[i].system; i++)
		if (ruleset->rules[i].system == WEIR_SYSTEM_AVG_RT || ruleset->rules[i].is_bbr)
			return true;
	return false;
}

int weir_ruleset_check_memory(const struct weir_ruleset *ruleset, uint64_t total_bytes, struct weir_diag *diag)
{
	char hint[96];
	int err = 0;

	snprintf(hint, sizeof(hint), "write at most %llu", (unsigned long long)total_bytes);
	for (size_t i = 0; total_bytes && i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE && rule->memory.high_mark_bytes > total_bytes)
			err = weir_diag_error(diag, &rule->high_mark_place, NULL, hint,
					      "memHighWaterMarkBytes: %llu is above this machine's memory",
					      (unsigned long long)rule->memory.high_mark_bytes);
	}
	weir_ruleset_quote(ruleset, diag);
	return err;
}

void weir_ruleset_quote(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	for (size_t i = 0; i < ruleset->file_count; i++)
		if (ruleset->file_texts[i])
			weir_diag_quote(diag, ruleset->file_names[i], ruleset->file_texts[i]);
}

static int compare_with_label(const void *text, const void *label)
{
	return strcmp(text, ((const struct weir_set_label *)label)->text);
}

uint32_t weir_set_find_label(const struct weir_set *set, const char *text)
{
	const struct weir_set_label *found =
		set->label_count ? bsearch(text, set->labels, set->label_count, sizeof(*found), compare_with_label)
				 : NULL;

	return found ? found - set->labels : WEIR_NO_LABEL;
}

void weir_set_empty(struct weir_set *set)
{
	for (size_t i = 0; i < set->label_count; i++)
		free(set->labels[i].text);
	free(set->labels);
	free(set->entries);
	set->labels = NULL;
	set->entries = NULL;
	set->label_count = set->entry_count = 0;
}

void weir_ruleset_free(struct weir_ruleset *ruleset)
{
	if (!ruleset)
		return;
	for (size_t i = 0; i < ruleset->set_count; i++) {
		weir_set_empty(&ruleset->sets[i]);
		free(ruleset->sets[i].name);
		free(ruleset->sets[i].file);
	}
	free(ruleset->sets);
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		free(ruleset->resources[i].name);
		free_match(&ruleset->resources[i].match);
	}
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		free(ruleset->rules[i].name);
		free(ruleset->rules[i].overrides);
		free(ruleset->rules[i].override_sets);
	}
	for (size_t i = 0; i < ruleset->file_count; i++) {
		free(ruleset->file_names[i]);
		free(ruleset->file_texts[i]);
	}
	for (size_t i = 0; i < ruleset->list_count; i++)
		free(ruleset->list_names[i]);
	free(ruleset->list_names);
	free(ruleset->resources);
	free(ruleset->rules);
	free(ruleset->file_names);
	free(ruleset->file_texts);
	free(ruleset->settings.memory_cgroup);
	free(ruleset->settings.non_ip_except);
	for (size_t i = 0; i < WEIR_CLUSTER_FIELDS; i++)
		free(ruleset->settings.cluster[i]);
	free(ruleset->listed);
	free(ruleset->listed_sets);
	free(ruleset->origin);
	free(ruleset);
}
