// SPDX-License-Identifier: GPL-2.0-only
/* One rule: its name, limit and Sentinel's fields, from weir's own files or as translated from a list of Sentinel's
 * (sentinel.h).
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/rule.h"

#define NSEC_PER_MSEC 1000000ull
#define INTERVAL_MS_DEFAULT 1000
#define INTERVAL_MS_MIN 10

/* ---- resource and name ---- */

static int compare_named(const void *key, const void *entry)
{
	return strcmp(key, ((const struct weir_named *)entry)->name);
}

bool weir_find_resource(const struct weir_reader *reader, const char *name, size_t *ret_index)
{
	const struct weir_named *names = reader->resource_names, *found;
	size_t count = reader->ruleset->resource_count;

	found = names ? bsearch(name, names, count, sizeof(*names), compare_named) : NULL;
	if (!found)
		return false;
	while (found > names && !strcmp(found[-1].name, name))
		found--;
	*ret_index = found->index;
	return true;
}

bool weir_look_up_resource(struct weir_reader *reader, const struct weir_node *node, const char *field,
			   const char **ret_name, size_t *ret_index)
{
	const char *nearest, *name;
	char hint[256];

	if (!weir_read_word(reader, node, field, &name))
		return false;
	*ret_name = name;
	if (weir_find_resource(reader, name, ret_index))
		return true;
	/* The resource may be in a file that could not be read; that mistake is more important. */
	if (reader->is_incomplete || reader->complaints > WEIR_MISTAKES_MAX)
		return false;
	nearest = weir_nearest(name, reader->resource_names, reader->ruleset->resource_count,
			       sizeof(*reader->resource_names));
	if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%.*s'?", WEIR_SHOWN(nearest));
	else
		snprintf(hint, sizeof(hint),
			 "define it under 'resources:', in this file or another one of the same command");
	weir_complain(reader, node, hint, "there is no resource '%.*s'", WEIR_SHOWN(name));
	return false;
}

static void read_resource(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_RESOURCE];

	if (value)
		draft->has_resource =
			weir_look_up_resource(reader, value, "resource", &draft->resource_name, &draft->rule->resource);
	else if (!(draft->meant >> RULE_RESOURCE & 1))
		weir_complain(reader, draft->node, "name the resource that it limits: 'resource: NAME'",
			      "the rule has no resource");
	if (draft->has_resource)
		reader->resource_rules[draft->rule->resource]++;
}

/* Read a key that differs from the resource's. Which fields it may have depends on the resource's match. */
static void read_per(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_PER];
	struct weir_ruleset_rule *rule = draft->rule;

	if (!value || !draft->has_resource)
		return;
	weir_read_per(reader, value, &reader->ruleset->resources[rule->resource].match, &rule->own_key);
	rule->has_own_key = true;
}

/* Read who shares the threshold fairly; check_fair_by() says which rules cannot have it. */
static void read_fair_by(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_FAIR_BY];
	struct weir_ruleset_rule *rule = draft->rule;

	if (value && draft->has_resource)
		weir_read_fair_by(reader, value, &reader->ruleset->resources[rule->resource].match, &rule->fair_by);
}

static char *default_name(struct weir_reader *reader, const struct weir_draft *draft)
{
	struct weir_refusal refusal;
	char *name = NULL;

	if (draft->rule->system) {
		size_t number = 0;

		for (size_t i = 0; i < reader->ruleset->rule_count; i++)
			number += reader->ruleset->rules[i].system != WEIR_SYSTEM_NONE;
		return asprintf(&name, "system#%zu", number) < 0 ? NULL : name;
	}
	/* Without a resource a rule has no default name either, and is refused anyway. */
	if (!draft->has_resource)
		return strdup("");
	if (asprintf(&name, "%s#%zu", draft->resource_name, reader->resource_rules[draft->rule->resource]) < 0)
		return NULL;
	if (weir_check_name(name, &refusal) && strlen(name) >= WEIR_NAME_BYTES)
		weir_complain(reader, draft->node, "give the rule a name",
			      "the rule's default name, RESOURCE#N, would be longer than %d bytes",
			      WEIR_NAME_BYTES - 1);
	return name;
}

static void read_name(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_NAME];
	struct weir_refusal refusal;
	const char *word = "";

	if (!value)
		draft->rule->name = default_name(reader, draft);
	else {
		if (weir_read_word(reader, value, "name", &word) && weir_check_name(word, &refusal))
			weir_complain(reader, value, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
		draft->rule->name = strdup(word);
	}
	if (!draft->rule->name)
		reader->is_out_of_memory = true;
}

/* ---- the limit ---- */

/* Sentinel's decoders distinguish numbers from texts; in weir's own files quotes make no difference. */
static bool may_be_number(struct weir_reader *reader, const struct weir_draft *draft, const struct weir_node *value)
{
	return !draft->is_sentinel || weir_check_unquoted(reader, value);
}

/* For "rate: 1GB/s" and "unit: packets", which contradict each other. */
static const char *advice_for_unit(const struct weir_node *rate, const struct weir_node *unit)
{
	struct weir_refusal ignored;
	struct weir_rate parsed;

	if (rate->kind != WEIR_NODE_WORD || unit->kind != WEIR_NODE_WORD ||
	    weir_parse_rate(rate->text, &parsed, &ignored))
		return NULL;
	if (parsed.counts_bytes && !strcmp(unit->text, "packets"))
		return "this rate counts bytes: leave 'unit' out; or write a rate of packets, as in 1000/s";
	return !parsed.counts_bytes && !strcmp(unit->text, "bytes")
		       ? "this rate counts packets: leave 'unit' out; or write a rate of bytes, as in 1MB/s"
		       : NULL;
}

/* Complain about fields that the rate replaces. */
static void check_rate_alone(struct weir_reader *reader, const struct weir_draft *draft)
{
	static const enum weir_rule_field fields[] = {RULE_THRESHOLD, RULE_INTERVAL, RULE_UNIT};
	const char *advice =
		draft->value[RULE_UNIT] ? advice_for_unit(draft->value[RULE_RATE], draft->value[RULE_UNIT]) : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (draft->value[fields[i]])
			weir_complain(reader, draft->value[fields[i]],
				      fields[i] == RULE_UNIT && advice ? advice : "leave one of them out",
				      "'rate' includes it, so '%s' must not be given",
				      weir_written_name(draft->value[fields[i]], weir_rule_fields[fields[i]]));
}

/* Read "10MB/s": the threshold, the interval and the unit in one. */
static void read_rate(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_RATE];
	char interval[WEIR_DURATION_TEXT_BYTES];
	struct weir_refusal refusal;
	const char *word;

	if (!value || draft->is_sentinel)
		return;
	check_rate_alone(reader, draft);
	/* A rule with an invalid rate must not also be reported as lacking a threshold. */
	draft->value[RULE_THRESHOLD] = value;
	draft->has_rate = true;
	draft->rate.interval_ns = INTERVAL_MS_DEFAULT * NSEC_PER_MSEC;
	if (!weir_read_word(reader, value, "rate", &word))
		return;
	if (weir_parse_rate(word, &draft->rate, &refusal))
		weir_complain(reader, value, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	else if (draft->rate.interval_ns < INTERVAL_MS_MIN * NSEC_PER_MSEC ||
		 draft->rate.interval_ns > WEIR_INTERVAL_MS_MAX * NSEC_PER_MSEC)
		weir_complain(reader, value, "write an interval of 10ms to 1d",
			      "rate: an interval of %s is out of range",
			      weir_format_duration(draft->rate.interval_ns, interval));
}

static void take_rate(struct weir_reader *reader, struct weir_draft *draft)
{
	struct weir_ruleset_rule *rule = draft->rule;

	rule->interval_ns = draft->rate.interval_ns;
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE) {
		weir_complain(reader, draft->value[RULE_RATE],
			      "write lowMemUsageThreshold and highMemUsageThreshold, per statInterval",
			      "MemoryAdaptive has two thresholds and no rate");
		return;
	}
	draft->has_threshold = true;
	rule->threshold_micro = draft->rate.micro;
}

static void read_threshold(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_THRESHOLD];
	bool is_used = draft->rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE;
	struct weir_refusal refusal, ignored;
	struct weir_rate rate;
	uint64_t micro = 0;
	const char *word;
	char hint[96];
	int err;

	if (draft->has_rate) {
		take_rate(reader, draft);
		return;
	}
	if (!value || !may_be_number(reader, draft, value) || !weir_read_word(reader, value, "threshold", &word))
		return;
	err = draft->is_sentinel ? weir_parse_json_threshold(word, &micro, &refusal)
				 : weir_parse_threshold(word, draft->rule->counts_bytes, &micro, &refusal);
	/* Sentinel ignores the threshold of a MemoryAdaptive rule, except for its sign. */
	snprintf(hint, sizeof(hint), "write 'rate: %.*s'", WEIR_SHOWN(word));
	if (err && !draft->is_sentinel && !weir_parse_rate(word, &rate, &ignored))
		weir_complain(reader, value, hint, "threshold '%.*s' is a rate", WEIR_SHOWN(word));
	else if (err && (is_used || !draft->is_sentinel || word[0] == '-'))
		weir_complain(reader, value, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	draft->has_threshold = !err && is_used;
	if (draft->has_threshold)
		draft->rule->threshold_micro = micro;
}

static void read_burst(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_BURST];
	struct weir_refusal refusal;
	uint64_t micro;
	const char *word;

	if (!value || !weir_read_word(reader, value, "burst", &word))
		return;
	if (weir_parse_threshold(word, draft->rule->counts_bytes, &micro, &refusal) || micro < WEIR_MICRO)
		weir_complain(reader, value, "write how much a bucket holds, 1 or more: 'burst: 1500', 'burst: 64k'",
			      "'%.*s' is not a burst", WEIR_SHOWN(word));
	else
		draft->rule->burst_micro = micro;
}

static void read_interval(struct weir_reader *reader, struct weir_draft *draft)
{
	static const char *const advice = "write 10 to 86400000, or 0 for the default of 1000";
	const struct weir_node *value = draft->value[RULE_INTERVAL];
	uint64_t interval_ms = 0;

	if (draft->has_rate)
		return;
	if (value && may_be_number(reader, draft, value) &&
	    weir_read_number_of(reader, value, "statIntervalInMs", 0, WEIR_INTERVAL_MS_MAX, advice, &interval_ms) &&
	    interval_ms && interval_ms < INTERVAL_MS_MIN) {
		weir_complain(reader, value,
			      value->timed_name ? "write 10ms to 1d, or 0 for the default of 1s" : advice,
			      "%s: '%s' is out of range", weir_written_name(value, "statIntervalInMs"), value->text);
		return;
	}
	draft->rule->interval_ns = (interval_ms ?: INTERVAL_MS_DEFAULT) * NSEC_PER_MSEC;
}

static void read_samples(struct weir_reader *reader, struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_SAMPLES];
	struct weir_ruleset_rule *rule = draft->rule;
	char hint[128] = "counts that divide it:";
	size_t used = strlen(hint);
	uint64_t samples;

	if (!value || !weir_read_number(reader, value, "sampleCount", 1, WEIR_SAMPLES_MAX, &samples))
		return;
	rule->samples = samples;
	if (rule->interval_ns % samples == 0)
		return;
	for (uint64_t count = 1; count <= WEIR_SAMPLES_MAX; count++)
		if (rule->interval_ns % count == 0)
			used += snprintf(hint + used, sizeof(hint) - used, " %u", (unsigned int)count);
	weir_complain(reader, value, hint, "the interval of %llu ms has no whole number of nanoseconds in %u buckets",
		      (unsigned long long)(rule->interval_ns / NSEC_PER_MSEC), rule->samples);
}

/* Read a choice or a number into draft->number. Returns false if there is none, or after a complaint. */
static bool read_row(struct weir_reader *reader, struct weir_draft *draft, enum weir_rule_field field)
{
	const struct weir_node *value = draft->value[field];

	return value && may_be_number(reader, draft, value) &&
	       weir_read_value(reader, &weir_rule_rows[field], value, draft->is_sentinel, draft->rule->counts_bytes,
			       &draft->number[field]);
}

/* In Sentinel-Go, an isolation rule has metric 0, Concurrency. Its flow rules have no metric, except in version 0,
 * where 1 (QPS) meant what a flow rule counts today.
 */
static enum weir_metric read_metric(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_METRIC];
	const char *word;

	if (!value || !may_be_number(reader, draft, value) || !weir_read_word(reader, value, "metricType", &word))
		return WEIR_METRIC_RATE;
	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++)
		if (weir_kinds[id]->metric_name &&
		    (!strcmp(word, weir_kinds[id]->metric_name) || !strcmp(word, weir_kinds[id]->metric_number)))
			return weir_kinds[id]->metric;
	if (!draft->is_sentinel || (strcmp(word, "QPS") && strcmp(word, "1")))
		weir_complain(reader, value,
			      strcasecmp(word, "Concurrency")
				      ? "write Concurrency to limit connections, or leave it out to limit a rate"
				      : "did you mean 'Concurrency'?",
			      "'%.*s' is not a value of 'metricType'", WEIR_SHOWN(word));
	return WEIR_METRIC_RATE;
}

static void read_choices(struct weir_reader *reader, struct weir_draft *draft)
{
	struct weir_ruleset_rule *rule = draft->rule;
	const struct weir_kind *kind;

	read_rate(reader, draft);
	rule->counts_bytes = draft->rate.counts_bytes;
	for (enum weir_rule_field field = 0; field < RULE_FIELD_COUNT; field++)
		if (weir_rule_rows[field].form == WEIR_FIELD_CHOICE && !(draft->has_rate && field == RULE_UNIT) &&
		    read_row(reader, draft, field))
			weir_set_member(&weir_rule_rows[field], rule, draft->number[field]);
	rule->metric = read_metric(reader, draft);
	weir_read_cluster(reader, draft);
	kind = weir_kind_of(rule);
	if (draft->has_rate && !weir_kind_has(kind, RULE_INTERVAL))
		weir_complain(reader, draft->value[RULE_RATE], "write 'threshold', a number without a time",
			      "%s limits how many are open at once and has no rate", kind->metric_name);
	if (kind->check_choices)
		kind->check_choices(reader, draft);
}

/* ---- Sentinel's other fields ---- */

static bool is_number(enum weir_rule_field field)
{
	return weir_rule_rows[field].form > WEIR_FIELD_CHOICE;
}

/* Store the numbers that the rule uses; weir_check_rule complains about missing ones. */
static void read_numbers(struct weir_reader *reader, struct weir_draft *draft)
{
	struct weir_ruleset_rule *rule = draft->rule;

	for (enum weir_rule_field field = 0; field < RULE_FIELD_COUNT; field++) {
		if (!is_number(field))
			continue;
		draft->is_misread[field] = draft->value[field] && !read_row(reader, draft, field);
		if (weir_draft_uses(draft, field, NULL))
			weir_set_member(&weir_rule_rows[field], rule, draft->number[field]);
	}
	rule->has_burst_beyond = draft->value[RULE_BURST_COUNT] && weir_draft_uses(draft, RULE_BURST_COUNT, NULL);
	rule->penalty_ms_max = rule->penalty_ms_max ?: rule->penalty_ms;
	rule->aggregates &= weir_draft_uses(draft, RULE_WHEN_FULL, NULL);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP && !rule->warm_up.cold_factor)
		rule->warm_up.cold_factor = WEIR_COLD_FACTOR_DEFAULT;
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE && draft->value[RULE_HIGH_MARK])
		rule->high_mark_place = draft->value[RULE_HIGH_MARK]->place;
}

/* ---- the whole rule ---- */

bool weir_begin_rule(struct weir_reader *reader, struct weir_draft *draft)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	const struct weir_node **pointed_at;

	draft->rule = weir_array_add((void **)&ruleset->rules, ruleset->rule_count, sizeof(*draft->rule));
	pointed_at = weir_array_add((void **)&reader->rule_nodes, ruleset->rule_count, sizeof(*pointed_at));
	if (!draft->rule || !pointed_at) {
		reader->is_out_of_memory = true;
		return false;
	}
	ruleset->rule_count++;
	*pointed_at = weir_draft_at(draft, RULE_NAME);
	draft->rule->place = (*pointed_at)->place;
	draft->rule->samples = WEIR_SAMPLES_MAX;
	draft->rule->interval_ns = INTERVAL_MS_DEFAULT * NSEC_PER_MSEC;
	draft->rule->ref_resource = WEIR_NO_RESOURCE;
	return true;
}

void weir_read_identity(struct weir_reader *reader, struct weir_draft *draft)
{
	if (!draft->rule->system)
		read_resource(reader, draft);
	draft->rule->occupies =
		draft->has_resource && weir_rule_can_occupy(draft->rule) &&
		weir_meets_prioritized(reader->ruleset, &reader->ruleset->resources[draft->rule->resource]);
	read_name(reader, draft);
}

/* Read the rest, after the choices, which determine its meaning. */
static void read_rest(struct weir_reader *reader, struct weir_draft *draft)
{
	weir_read_identity(reader, draft);
	read_per(reader, draft);
	read_fair_by(reader, draft);
	read_threshold(reader, draft);
	read_burst(reader, draft);
	read_interval(reader, draft);
	read_samples(reader, draft);
	read_numbers(reader, draft);
	weir_check_rule(reader, draft);
}

void weir_read_draft(struct weir_reader *reader, struct weir_draft *draft)
{
	if (!weir_begin_rule(reader, draft))
		return;
	read_choices(reader, draft);
	if (draft->is_sentinel) {
		/* In Sentinel's lists, unused fields of a rule may have any value. */
		for (enum weir_rule_field field = 0; field < RULE_FIELD_COUNT; field++)
			if (field != RULE_THRESHOLD && !weir_draft_uses(draft, field, NULL))
				draft->value[field] = NULL;
	}
	read_rest(reader, draft);
}

void weir_read_rule(struct weir_reader *reader, const struct weir_node *node)
{
	struct weir_draft draft = {.node = node, .mistakes_before = reader->mistakes};

	weir_read_fields(reader, node, "rule", weir_rule_fields, RULE_FIELD_COUNT, false, draft.value);
	draft.meant = reader->meant;
	if (node->kind == WEIR_NODE_MAP)
		weir_read_draft(reader, &draft);
}
