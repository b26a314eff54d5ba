// SPDX-License-Identifier: GPL-2.0-only
#include "rules/emit.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/parse.h"
#include "rules/quantity.h"
#include "rules/rule.h"
#include "rules/scalars.h"

#define NSEC_PER_MSEC 1000000ull

/* ---- converting descriptions ---- */

struct weir_shown_rule weir_shown_rule_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	const struct weir_ruleset_resource *resources = ruleset->resources;

	return (struct weir_shown_rule){
		.rule = *rule,
		.resource = rule->system ? NULL : resources[rule->resource].name,
		.ref_resource = rule->ref_resource == WEIR_NO_RESOURCE ? NULL : resources[rule->ref_resource].name,
		.wait_ms = rule->queueing_ms_max,
	};
}

/* An unknown strategy is replaced: the contents of maps are not trusted as indexes of names. */
static struct weir_breaker_fields breaker_of(const struct weir_rule_info *info)
{
	const struct weir_breaker_terms *terms = &info->breaker;

	return (struct weir_breaker_fields){
		.strategy = terms->strategy < WEIR_BREAKER_STRATEGIES ? terms->strategy : WEIR_BREAKER_ERROR_COUNT,
		.interval_ns = info->identity.interval_ns,
		.buckets = terms->buckets,
		.retry_ns = terms->retry_ns,
		.min_requests = terms->min_requests,
		.max_rt_ns = terms->max_rt_ns,
		.probes = terms->probes,
	};
}

struct weir_shown_rule weir_shown_rule_of_info(const struct weir_rule_info *info)
{
#define FIELD(member) .member = info->member
	struct weir_shown_rule shown = {
		.rule = {.name = (char *)info->name,
			 .metric = info->identity.metric,
			 .interval_ns = info->identity.interval_ns,
			 .samples = info->identity.samples,
			 .window = info->identity.window,
			 .counts_bytes = info->identity.counts_bytes,
			 .queueing_ms_max = info->queueing_ns_max / NSEC_PER_MSEC,
			 .breaker = breaker_of(info),
			 WEIR_DESCRIBED_FIELDS(FIELD)},
		.resource = info->system ? NULL : info->resource_name,
		.ref_resource = info->relation == WEIR_RELATION_ASSOCIATED ? info->ref_resource_name : NULL,
		.wait_ms = info->queueing_ns_max / NSEC_PER_MSEC,
		.bucket_micro = info->burst_micro,
	};
#undef FIELD

	if (shown.rule.on_block >= WEIR_ON_BLOCK_COUNT)
		shown.rule.on_block = WEIR_ON_BLOCK_DROP;
	return shown;
}

/* ---- the table of fields ---- */

/*
 * RULE and BREAKER: a row of field_rows.h, whether the rule uses it, and whether its value is the default. FIELD: the
 * same for what is no row's member, with its name, its form and its value. In a rule file, a field appears if its value
 * is not the default, even if the rule does not use it, because the compiler sees the values.
 */
#define SHOWN_FIELDS(RULE, BREAKER, FIELD)                                                                             \
	FIELD(NAME, "name", WORD, rule->name, true, false)                                                             \
	FIELD(RESOURCE, "resource", WORD, shown->resource, true, false)                                                \
	FIELD(PER, "per", KEY, NULL, rule->has_own_key, !rule->has_own_key)                                            \
	FIELD(FAIR_BY, "fairBy", FAIR_KEY, NULL, rule->fair_by.fields, !rule->fair_by.fields)                          \
	FIELD(METRIC, "metricType", WORD, kind->metric_name, true, !kind->metric_name)                                 \
	FIELD(RATE, "rate", RATE, NULL, false, !is_rate)                                                               \
	FIELD(THRESHOLD, "threshold", MICRO, rule->threshold_micro, !adapts, adapts || is_rate)                        \
	RULE(INTERVAL, true, !counts || is_rate)                                                                       \
	RULE(SAMPLES, weir_kind_has(kind, RULE_SAMPLES), !counts || rule->samples == WEIR_SAMPLES_MAX)                 \
	RULE(WINDOW, weir_kind_has(kind, RULE_WINDOW), !counts || rule->window == WEIR_WINDOW_LEAP)                    \
	FIELD(BURST, "burst", MICRO, rule->burst_micro, false, !counts || !rule->burst_micro)                          \
	FIELD(BUCKET, "burst", MICRO, shown->bucket_micro, kind->own_fields >> RULE_BURST & 1, true)                   \
	FIELD(BURST_COUNT, "burstCount", MICRO, rule->burst_beyond_micro, false, !counts || !rule->has_burst_beyond)   \
	RULE(UNIT, true, !counts || !rule->counts_bytes || is_rate)                                                    \
	RULE(STRATEGY, true, rule->strategy == WEIR_STRATEGY_DIRECT)                                                   \
	RULE(WARM_UP_PERIOD, warms_up, !warms_up)                                                                      \
	RULE(COLD_FACTOR, warms_up, !warms_up)                                                                         \
	RULE(LOW_USAGE, adapts, !adapts)                                                                               \
	RULE(HIGH_USAGE, adapts, !adapts)                                                                              \
	RULE(LOW_MARK, adapts, !adapts)                                                                                \
	RULE(HIGH_MARK, adapts, !adapts)                                                                               \
	RULE(BEHAVIOR, true, rule->behavior == WEIR_BEHAVIOR_REJECT)                                                   \
	RULE(MAX_QUEUEING, kind->own_fields >> RULE_MAX_QUEUEING & 1, !rule->queueing_ms_max)                          \
	FIELD(OCCUPIES, "occupiesForMs", NUMBER, shown->wait_ms, rule->occupies, true)                                 \
	RULE(RELATION, true, rule->relation == WEIR_RELATION_CURRENT)                                                  \
	FIELD(REF_RESOURCE, "refResource", WORD, shown->ref_resource, rule->relation == WEIR_RELATION_ASSOCIATED,      \
	      !shown->ref_resource)                                                                                    \
	RULE(BLOCK_DURATION, rule->penalty_ms, !rule->penalty_ms)                                                      \
	RULE(BLOCK_DURATION_MAX, rule->penalty_ms, rule->penalty_ms_max == rule->penalty_ms)                           \
	RULE(MODE, true, !rule->observes)                                                                              \
	RULE(ON_BLOCK, rule->on_block, !rule->on_block)                                                                \
	FIELD(CLUSTER_MODE, "clusterMode", TRUTH, true, rule->cluster, !rule->cluster)                                 \
	FIELD(CLUSTER_CONFIG, "clusterConfig", CLUSTER, NULL, rule->cluster, !rule->cluster)                           \
	RULE(WHEN_FULL, rule->aggregates, !rule->aggregates)                                                           \
	FIELD(OVERRIDES, "overrides", OVERRIDES, NULL, rule->override_count,                                           \
	      !rule->override_count && !rule->override_set_count)                                                      \
	FIELD(STORAGE, "storage", WORD, shown->storage, true, true)                                                    \
	BREAKER(STRATEGY, true, false)                                                                                 \
	BREAKER(RETRY, true, false)                                                                                    \
	BREAKER(MIN_REQUESTS, true, false)                                                                             \
	BREAKER(INTERVAL, true, false)                                                                                 \
	BREAKER(BUCKETS, true, rule->breaker.buckets == 1)                                                             \
	BREAKER(MAX_RT, rule->breaker.strategy == WEIR_BREAKER_SLOW_RATIO, !rule->breaker.max_rt_ns)                   \
	BREAKER(PROBES, true, !rule->breaker.probes)                                                                   \
	/* of system rules */                                                                                          \
	FIELD(SYSTEM_METRIC, "metricType", WORD,                                                                       \
	      weir_system_metric_names[rule->system < WEIR_SYSTEM_COUNT ? rule->system : 0], true, false)              \
	FIELD(TRIGGER, "triggerCount", MICRO, rule->threshold_micro, true, false)                                      \
	FIELD(SYSTEM_STRATEGY, "strategy", WORD, rule->is_bbr ? "BBR" : "NoAdaptive",                                  \
	      rule->system == WEIR_SYSTEM_LOAD || rule->system == WEIR_SYSTEM_CPU_USAGE, !rule->is_bbr)

#define RULE_ID(id, ...) SHOWN_##id,
#define BREAKER_ID(id, ...) SHOWN_BREAKER_##id,
enum shown_field { SHOWN_FIELDS(RULE_ID, BREAKER_ID, RULE_ID) SHOWN_COUNT };

/* What a rule's kind and strategy determine. */
struct said {
	const struct weir_field_row *row; /* or */
	const char *name;
	enum {
		FORM_WORD,
		FORM_NUMBER,
		FORM_MICRO,
		FORM_TRUTH,
		FORM_RATE,
		FORM_KEY,
		FORM_FAIR_KEY,
		FORM_CLUSTER,
		FORM_OVERRIDES
	} form;
	const char *word;
	uint64_t number;
	bool is_used, is_usual;
};

#define VALUE_OF_WORD(value) .word = (value)
#define VALUE_OF_NUMBER(value) .number = (value)
#define VALUE_OF_MICRO(value) .number = (value)
#define VALUE_OF_TRUTH(value) .number = (value)
#define VALUE_OF_RATE(value) .word = (value)
#define VALUE_OF_KEY(value) .word = (value)
#define VALUE_OF_FAIR_KEY(value) .word = (value)
#define VALUE_OF_CLUSTER(value) .word = (value)
#define VALUE_OF_OVERRIDES(value) .word = (value)

/* says_rate: write a `rate`, if the rule has one, instead of the fields that it replaces. */
static struct said value_of(const struct weir_shown_rule *shown, bool says_rate, enum shown_field field)
{
	const struct weir_ruleset_rule *rule = &shown->rule;
	const struct weir_kind *kind = weir_kind_of(rule);
	const bool counts = weir_kind_has(kind, RULE_INTERVAL);
	const bool warms_up = rule->strategy == WEIR_STRATEGY_WARM_UP;
	const bool adapts = rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE;
	const bool is_rate = says_rate && counts && !adapts;

	switch (field) {
#define SAY_RULE(id, used, usual)                                                                                      \
	case SHOWN_##id:                                                                                               \
		return (struct said){.row = &weir_rule_rows[RULE_##id], .is_used = used, .is_usual = usual};
#define SAY_BREAKER(id, used, usual)                                                                                   \
	case SHOWN_BREAKER_##id:                                                                                       \
		return (struct said){.row = &weir_breaker_rows[WEIR_BREAKER_##id], .is_used = used, .is_usual = usual};
#define SAY(id, named, as, value, used, usual)                                                                         \
	case SHOWN_##id:                                                                                               \
		return (struct said){NULL, named, FORM_##as, VALUE_OF_##as(value), .is_used = used, .is_usual = usual};
		SHOWN_FIELDS(SAY_RULE, SAY_BREAKER, SAY)
	default:
		return (struct said){.is_usual = true};
	}
}

/* ---- the documents ---- */

/* What a rule limits determines which fields it has. */
enum sort { SORT_RATE, SORT_COUNT, SORT_BREAKER, SORT_SYSTEM, SORTS };

static enum sort sort_of(const struct weir_ruleset_rule *rule)
{
	if (rule->system)
		return SORT_SYSTEM;
	if (rule->metric == WEIR_METRIC_REQUESTS)
		return SORT_BREAKER;
	return weir_kind_has(weir_kind_of(rule), RULE_INTERVAL) ? SORT_RATE : SORT_COUNT;
}

#define F(field) SHOWN_##field
#define WRITTEN_LIMIT                                                                                                  \
	{                                                                                                              \
		F(NAME), F(RESOURCE), F(PER), F(FAIR_BY), F(METRIC), F(RATE), F(THRESHOLD), F(INTERVAL), F(SAMPLES),   \
			F(WINDOW), F(BURST), F(BURST_COUNT), F(UNIT), F(STRATEGY), F(WARM_UP_PERIOD), F(COLD_FACTOR),  \
			F(LOW_USAGE), F(HIGH_USAGE), F(LOW_MARK), F(HIGH_MARK), F(BEHAVIOR), F(MAX_QUEUEING),          \
			F(RELATION), F(REF_RESOURCE), F(BLOCK_DURATION), F(BLOCK_DURATION_MAX), F(MODE), F(ON_BLOCK),  \
			F(CLUSTER_MODE), F(CLUSTER_CONFIG), F(WHEN_FULL), F(OVERRIDES), F(COUNT)                       \
	}
#define LAST_OF_RATE                                                                                                   \
	F(REF_RESOURCE), F(BLOCK_DURATION), F(BLOCK_DURATION_MAX), F(ON_BLOCK), F(CLUSTER_MODE), F(CLUSTER_CONFIG),    \
		F(WHEN_FULL)
#define BREAKER                                                                                                        \
	F(BREAKER_STRATEGY), F(THRESHOLD), F(BREAKER_RETRY), F(BREAKER_MIN_REQUESTS), F(BREAKER_INTERVAL),             \
		F(BREAKER_BUCKETS), F(BREAKER_MAX_RT), F(BREAKER_PROBES)
#define SYSTEM F(SYSTEM_METRIC), F(TRIGGER), F(SYSTEM_STRATEGY), F(MODE), F(ON_BLOCK)

/* Each list ends with SHOWN_COUNT. */
static const uint8_t documents[][SORTS][SHOWN_COUNT] =
	{
		[WEIR_RULE_FILE] =
			{
				[SORT_RATE] = WRITTEN_LIMIT,
				[SORT_COUNT] = WRITTEN_LIMIT,
				[SORT_BREAKER] = {F(NAME), F(RESOURCE), BREAKER, F(MODE), F(ON_BLOCK), F(COUNT)},
				[SORT_SYSTEM] = {F(NAME), SYSTEM, F(COUNT)},
			},
		[WEIR_RULE_CHECKED] =
			{
				[SORT_RATE] =
					{F(NAME),	F(UNIT),     F(INTERVAL),  F(MODE),	      F(STRATEGY),
					 F(BEHAVIOR),	F(RELATION), F(STORAGE),   F(THRESHOLD),      F(LOW_USAGE),
					 F(HIGH_USAGE), F(LOW_MARK), F(HIGH_MARK), F(WARM_UP_PERIOD), F(COLD_FACTOR),
					 F(WINDOW),	F(BUCKET),   F(SAMPLES),   F(MAX_QUEUEING),   F(OCCUPIES),
					 LAST_OF_RATE,	F(PER),	     F(FAIR_BY),   F(OVERRIDES),      F(COUNT)},
				[SORT_COUNT] = {F(NAME), F(METRIC), F(MODE), F(ON_BLOCK), F(THRESHOLD), F(STORAGE),
						F(PER), F(OVERRIDES), F(COUNT)},
				[SORT_BREAKER] = {F(NAME), F(MODE), F(ON_BLOCK), F(STORAGE), BREAKER,
						  F(PER), F(OVERRIDES), F(COUNT)},
				[SORT_SYSTEM] = {F(NAME), SYSTEM, F(COUNT)},
			},
		[WEIR_RULE_LOADED] =
			{
				[SORT_RATE] = {F(NAME),	    F(RESOURCE),  F(UNIT),	F(INTERVAL),  F(MODE),
					       F(STRATEGY), F(BEHAVIOR),  F(RELATION),	F(LOW_USAGE), F(HIGH_USAGE),
					       F(LOW_MARK), F(HIGH_MARK), F(THRESHOLD), F(OCCUPIES),  F(MAX_QUEUEING),
					       F(SAMPLES),  F(WINDOW),	  F(BUCKET),	LAST_OF_RATE, F(COUNT)},
				[SORT_COUNT] = {F(NAME), F(RESOURCE), F(METRIC), F(MODE), F(ON_BLOCK), F(THRESHOLD),
						F(COUNT)},
				[SORT_BREAKER] = {F(NAME), F(RESOURCE), F(MODE), F(ON_BLOCK), BREAKER, F(COUNT)},
				[SORT_SYSTEM] = {F(NAME), F(RESOURCE), SYSTEM, F(COUNT)},
			},
};

/* ---- writing ---- */

static void write_key_field(struct weir_writer *writer, const struct weir_flow *flow, int place)
{
	const uint32_t field = 1u << place;
	const uint8_t *bits = field == WEIR_KEY_SOURCE	      ? flow->source_bits
			      : field == WEIR_KEY_DESTINATION ? flow->destination_bits
							      : NULL;
	char text[WEIR_KEY_FIELD_BYTES];

	if (weir_flow_set(flow, place))
		snprintf(text, sizeof(text), "%s@%s", weir_key_field_name(flow->fields, place),
			 weir_flow_set(flow, place));
	else if (bits && (bits[0] != 32 || bits[1] != 128))
		snprintf(text, sizeof(text), "%s/%u/%u", weir_key_field_name(flow->fields, place), bits[0], bits[1]);
	else
		snprintf(text, sizeof(text), "%s", weir_key_field_name(flow->fields, place));
	weir_write_word(writer, NULL, text);
}

void weir_write_key(struct weir_writer *writer, const char *field, const struct weir_flow *flow)
{
	weir_write_inline_list(writer, field);
	for (int place = 0; place < WEIR_KEY_FIELD_COUNT; place++)
		if (flow->fields >> place & 1)
			write_key_field(writer, flow, place);
	weir_write_end(writer);
}

static void write_override(struct weir_writer *writer, const char *field, const char *word, uint64_t micro)
{
	weir_write_map(writer, NULL);
	weir_write_word(writer, field, word);
	weir_write_micro(writer, "threshold", micro);
	weir_write_end(writer);
}

static void write_overrides(struct weir_writer *writer, const struct weir_ruleset_rule *rule)
{
	const size_t set_count = writer->names_sets ? rule->override_set_count : 0;
	const char *field = weir_override_name(rule);
	char text[WEIR_PREFIX_TEXT_BYTES], use[WEIR_SET_USE_BYTES];
	size_t set = 0;

	weir_write_list(writer, weir_rule_fields[RULE_OVERRIDES]);
	for (size_t i = 0; i <= rule->override_count; i++) {
		const struct weir_override *override = i < rule->override_count ? &rule->overrides[i] : NULL;

		for (; set < set_count && rule->override_sets[set].place == i; set++)
			write_override(writer, field, weir_format_set_use(&rule->override_sets[set].use, use),
				       rule->override_sets[set].threshold_micro);
		if (!override || (override->is_of_set && writer->names_sets))
			continue;
		if (override->prefix.family)
			write_override(writer, field, weir_format_prefix(&override->prefix, text),
				       override->threshold_micro);
		else
			write_override(writer, "label", override->label, override->threshold_micro);
	}
	weir_write_end(writer);
}

static void write_said(struct weir_writer *writer, const struct said *said, const struct weir_ruleset_rule *rule,
		       bool is_file)
{
	char rate[WEIR_RATE_TEXT_BYTES];

	if (said->row) {
		weir_write_member(writer, said->row, rule);
		return;
	}
	switch (said->form) {
	case FORM_WORD:
		weir_write_word(writer, said->name, said->word);
		break;
	case FORM_NUMBER:
		weir_write_number(writer, said->name, said->number);
		break;
	case FORM_MICRO:
		weir_write_micro(writer, said->name, said->number);
		break;
	case FORM_TRUTH:
		weir_write_truth(writer, said->name, said->number);
		break;
	case FORM_RATE:
		weir_write_word(writer, said->name,
				weir_format_rate(rule->threshold_micro, rule->interval_ns, rule->counts_bytes, rate));
		break;
	case FORM_KEY:
		if (rule->own_key.fields)
			weir_write_key(writer, weir_rule_fields[RULE_PER], &rule->own_key);
		else if (is_file)
			weir_write_word(writer, weir_rule_fields[RULE_PER], "all");
		else
			weir_write_empty_list(writer, weir_rule_fields[RULE_PER]);
		break;
	case FORM_FAIR_KEY:
		weir_write_key(writer, weir_rule_fields[RULE_FAIR_BY], &rule->fair_by);
		break;
	case FORM_CLUSTER:
		weir_write_map(writer, weir_rule_fields[RULE_CLUSTER_CONFIG]);
		weir_write_word(writer, "thresholdType", weir_cluster_type_names[rule->cluster == WEIR_CLUSTER_GLOBAL]);
		if (!is_file || !rule->falls_back)
			weir_write_truth(writer, "fallbackToLocalWhenFail", rule->falls_back);
		weir_write_end(writer);
		break;
	case FORM_OVERRIDES:
		write_overrides(writer, rule);
		break;
	}
}

void weir_write_rule(struct weir_writer *writer, const struct weir_shown_rule *shown, enum weir_rule_document document)
{
	const bool is_file = document == WEIR_RULE_FILE;
	/* JSON is for programs, so numbers stay numbers there. */
	const bool says_rate = is_file && writer->form == WEIR_FORM_YAML;

	for (const uint8_t *field = documents[document][sort_of(&shown->rule)]; *field != SHOWN_COUNT; field++) {
		const struct said said = value_of(shown, says_rate, *field);

		if (is_file ? !said.is_usual : said.is_used)
			write_said(writer, &said, &shown->rule, is_file);
	}
}
