// SPDX-License-Identifier: GPL-2.0-only
/* One rule: the limit, Sentinel's fields, and what SEMANTICS calls refused. */
#include <stdio.h>
#include <string.h>

#include "parse.h"
#include "util.h"

#define NSEC_PER_MSEC 1000000ull
#define INTERVAL_MS_DEFAULT 1000
#define INTERVAL_MS_MIN 10
#define INTERVAL_MS_MAX 86400000
/* The largest frame of an Ethernet of 1500 bytes MTU, without its checksum, which XDP does not see. */
#define FRAME_BYTES_USUAL 1514

enum rule_field {
	RULE_NAME,
	RULE_RESOURCE,
	RULE_THRESHOLD,
	RULE_INTERVAL,
	RULE_SAMPLES,
	RULE_STRATEGY,
	RULE_BEHAVIOR,
	RULE_RELATION,
	RULE_REF_RESOURCE,
	RULE_MAX_QUEUEING,
	RULE_WARM_UP_PERIOD,
	RULE_COLD_FACTOR,
	RULE_LOW_USAGE,
	RULE_HIGH_USAGE,
	RULE_LOW_MARK,
	RULE_HIGH_MARK,
	RULE_UNIT,
	RULE_WINDOW,
	RULE_MODE,
	RULE_FIELD_COUNT
};

static const char *const rule_fields[RULE_FIELD_COUNT] = {
	"name",
	"resource",
	"threshold",
	"statIntervalInMs",
	"sampleCount",
	"tokenCalculateStrategy",
	"controlBehavior",
	"relationStrategy",
	"refResource",
	"maxQueueingTimeMs",
	"warmUpPeriodSec",
	"warmUpColdFactor",
	"lowMemUsageThreshold",
	"highMemUsageThreshold",
	"memLowWaterMarkBytes",
	"memHighWaterMarkBytes",
	"unit",
	"window",
	"mode",
};

/* A rule while it is read: what the file says, and what of it has no place in struct weir_ruleset_rule yet. */
struct draft {
	const struct weir_node *node;
	const struct weir_node *value[RULE_FIELD_COUNT];
	struct weir_ruleset_rule *rule;
	const char *resource_name; /* NULL: missing, or of the wrong type */
	bool has_threshold, has_resource;
	uint64_t number[RULE_FIELD_COUNT]; /* of Sentinel's plain numbers; 0: absent */
};

/* ---- resource and name ---- */

static int compare_named(const void *key, const void *entry)
{
	return strcmp(key, ((const struct weir_named *)entry)->name);
}

/* The index of the first resource of that name, or false. */
static bool find_resource(const struct weir_reader *reader, const char *name, size_t *ret_index)
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

static bool look_up_resource(struct weir_reader *reader, const struct weir_node *node, const char *field,
			     const char **ret_name, size_t *ret_index)
{
	const char *nearest, *name;
	char hint[256];

	if (!weir_read_word(reader, node, field, &name))
		return false;
	*ret_name = name;
	if (find_resource(reader, name, ret_index))
		return true;
	/* It may be in the file that could not be read: that mistake comes first. */
	if (reader->is_incomplete || reader->complaints > WEIR_MISTAKES_MAX)
		return false;
	nearest = weir_nearest(name, reader->resource_names, reader->ruleset->resource_count,
			       sizeof(*reader->resource_names));
	if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%.*s'?", WEIR_SHOWN(nearest));
	else
		snprintf(hint, sizeof(hint),
			 "define it under 'resources:', here or in another file of the same command");
	weir_complain(reader, node, hint, "there is no resource '%.*s'", WEIR_SHOWN(name));
	return false;
}

static void read_resource(struct weir_reader *reader, struct draft *draft)
{
	const struct weir_node *value = draft->value[RULE_RESOURCE];

	if (value)
		draft->has_resource =
			look_up_resource(reader, value, "resource", &draft->resource_name, &draft->rule->resource);
	else
		weir_complain(reader, draft->node, "say which resource it limits: 'resource: NAME'",
			      "the rule has no resource");
	if (draft->has_resource)
		reader->resource_rules[draft->rule->resource]++;
}

static char *default_name(struct weir_reader *reader, const struct draft *draft)
{
	struct weir_refusal refusal;
	char *name = NULL;

	/* A rule without a resource has no default name either, and is refused anyway. */
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

static void read_name(struct weir_reader *reader, struct draft *draft)
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

static void read_threshold(struct weir_reader *reader, struct draft *draft)
{
	const struct weir_node *value = draft->value[RULE_THRESHOLD];
	struct weir_refusal refusal;
	const char *word;

	if (!value || !weir_read_word(reader, value, "threshold", &word))
		return;
	if (weir_parse_threshold(word, &draft->rule->threshold_micro, &refusal))
		weir_complain(reader, value, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	else
		draft->has_threshold = true;
}

static void read_interval(struct weir_reader *reader, struct draft *draft)
{
	const struct weir_node *value = draft->value[RULE_INTERVAL];
	uint64_t interval_ms = 0;

	if (value && weir_read_number(reader, value, "statIntervalInMs", 0, INTERVAL_MS_MAX, &interval_ms) &&
	    interval_ms && interval_ms < INTERVAL_MS_MIN) {
		weir_complain(reader, value, "write 10 to 86400000, or 0 for the default of 1000",
			      "statIntervalInMs: '%s' is out of range", value->text);
		return;
	}
	draft->rule->interval_ns = (interval_ms ?: INTERVAL_MS_DEFAULT) * NSEC_PER_MSEC;
}

static void read_samples(struct weir_reader *reader, struct draft *draft)
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

static unsigned int read_choice(struct weir_reader *reader, struct draft *draft, enum rule_field field,
				const char *const *names, size_t count, bool has_numbers)
{
	unsigned int choice = 0;

	if (draft->value[field])
		weir_read_choice(reader, draft->value[field], rule_fields[field], names, count, has_numbers, &choice);
	return choice;
}

static void read_choices(struct weir_reader *reader, struct draft *draft)
{
	static const char *const strategies[] = {"Direct", "WarmUp", "MemoryAdaptive"};
	static const char *const behaviors[] = {"Reject", "Throttling"};
	static const char *const relations[] = {"CurrentResource", "AssociatedResource"};
	static const char *const units[] = {"packets", "bytes"};
	static const char *const windows[] = {"leap", "strict", "smooth"};
	static const char *const modes[] = {"enforce", "observe"};
	struct weir_ruleset_rule *rule = draft->rule;

	rule->strategy = read_choice(reader, draft, RULE_STRATEGY, strategies, ARRAY_SIZE(strategies), true);
	rule->behavior = read_choice(reader, draft, RULE_BEHAVIOR, behaviors, ARRAY_SIZE(behaviors), true);
	rule->relation = read_choice(reader, draft, RULE_RELATION, relations, ARRAY_SIZE(relations), true);
	rule->counts_bytes = read_choice(reader, draft, RULE_UNIT, units, ARRAY_SIZE(units), false);
	rule->window = read_choice(reader, draft, RULE_WINDOW, windows, ARRAY_SIZE(windows), false);
	rule->observes = read_choice(reader, draft, RULE_MODE, modes, ARRAY_SIZE(modes), false);
}

/* ---- Sentinel's other fields ---- */

static void read_numbers(struct weir_reader *reader, struct draft *draft)
{
	static const struct {
		enum rule_field field;
		uint64_t high;
	} numbers[] = {
		/* As wide as Sentinel-Go's own: uint32 and int64. */
		{RULE_MAX_QUEUEING, UINT32_MAX}, {RULE_WARM_UP_PERIOD, UINT32_MAX}, {RULE_COLD_FACTOR, UINT32_MAX},
		{RULE_LOW_USAGE, INT64_MAX},	 {RULE_HIGH_USAGE, INT64_MAX},	    {RULE_LOW_MARK, INT64_MAX},
		{RULE_HIGH_MARK, INT64_MAX},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		enum rule_field field = numbers[i].field;

		if (draft->value[field])
			weir_read_number(reader, draft->value[field], rule_fields[field], 0, numbers[i].high,
					 &draft->number[field]);
	}
}

/* The node to point at for a field that may be absent. */
static const struct weir_node *at(const struct draft *draft, enum rule_field field)
{
	return draft->value[field] ?: draft->node;
}

static void check_warm_up(struct weir_reader *reader, const struct draft *draft)
{
	uint64_t factor = draft->number[RULE_COLD_FACTOR] ?: 3;
	uint64_t micro = draft->rule->threshold_micro;

	if (!draft->number[RULE_WARM_UP_PERIOD])
		weir_complain(reader, at(draft, RULE_WARM_UP_PERIOD), "write the seconds that warming up takes",
			      "WarmUp needs a warmUpPeriodSec of at least 1");
	if (factor == 1)
		weir_complain(reader, at(draft, RULE_COLD_FACTOR), "write 2 or more, or leave it out for 3",
			      "a warmUpColdFactor of 1 leaves nothing to warm up");
	else if (draft->has_threshold && micro && micro / WEIR_MICRO < factor)
		weir_complain(reader, draft->value[RULE_THRESHOLD], "raise the threshold to the cold factor at least",
			      "cold, this rule would admit less than one unit and never warm up");
}

static void check_memory_adaptive(struct weir_reader *reader, const struct draft *draft)
{
	static const enum rule_field needed[] = {RULE_LOW_USAGE, RULE_HIGH_USAGE, RULE_LOW_MARK, RULE_HIGH_MARK};
	const uint64_t *number = draft->number;
	bool has_all = true;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		if (number[needed[i]])
			continue;
		has_all = false;
		weir_complain(reader, at(draft, needed[i]), "write a number above 0",
			      "MemoryAdaptive needs a %s above 0", rule_fields[needed[i]]);
	}
	if (has_all && number[RULE_HIGH_USAGE] >= number[RULE_LOW_USAGE])
		weir_complain(reader, draft->value[RULE_HIGH_USAGE], "the threshold shrinks as memory fills",
			      "highMemUsageThreshold must be below lowMemUsageThreshold");
	if (has_all && number[RULE_LOW_MARK] >= number[RULE_HIGH_MARK])
		weir_complain(reader, draft->value[RULE_LOW_MARK], NULL,
			      "memLowWaterMarkBytes must be below memHighWaterMarkBytes");
}

static void check_association(struct weir_reader *reader, const struct draft *draft)
{
	const struct weir_node *value = draft->value[RULE_REF_RESOURCE];
	const struct weir_ruleset_resource *resources = reader->ruleset->resources;
	const struct weir_flow *flow;
	const char *name;
	size_t index;

	if (draft->rule->behavior == WEIR_BEHAVIOR_THROTTLING && draft->rule->strategy != WEIR_STRATEGY_WARM_UP)
		weir_complain(reader, at(draft, RULE_RELATION), "use Reject, or CurrentResource",
			      "AssociatedResource has no effect with Throttling, unless the strategy is WarmUp");
	if (!value || (value->kind == WEIR_NODE_WORD && !value->text[0])) {
		weir_complain(reader, at(draft, RULE_RELATION), "add 'refResource: NAME'",
			      "AssociatedResource needs a refResource");
		return;
	}
	if (!look_up_resource(reader, value, "refResource", &name, &index) || !draft->has_resource)
		return;
	if (index == draft->rule->resource) {
		weir_complain(reader, value, "name another, or use CurrentResource",
			      "refResource is the rule's own resource");
		return;
	}
	flow = &resources[index].flow;
	if (flow->fields && memcmp(flow, &resources[draft->rule->resource].flow, sizeof(*flow)))
		weir_complain(reader, value, "give both resources the same flow key, or refResource none",
			      "refResource '%.*s' has another flow key than the rule's resource", WEIR_SHOWN(name));
}

/* ---- what is not used, not supported, or surely not meant ---- */

static void warn_unused(struct weir_reader *reader, const struct draft *draft, enum rule_field field, bool is_used,
			const char *condition)
{
	if (draft->value[field] && !is_used)
		weir_warn(reader, draft->value[field], "leave it out", "'%s' has no effect: it is for %s",
			  rule_fields[field], condition);
}

static void warn_of_unused_fields(struct weir_reader *reader, const struct draft *draft)
{
	bool is_associated = draft->rule->relation == WEIR_RELATION_ASSOCIATED;
	bool is_throttling = draft->rule->behavior == WEIR_BEHAVIOR_THROTTLING;
	bool warms_up = draft->rule->strategy == WEIR_STRATEGY_WARM_UP;
	bool follows_memory = draft->rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE;

	warn_unused(reader, draft, RULE_REF_RESOURCE, is_associated, "relationStrategy AssociatedResource");
	warn_unused(reader, draft, RULE_MAX_QUEUEING, is_throttling, "controlBehavior Throttling");
	warn_unused(reader, draft, RULE_WARM_UP_PERIOD, warms_up, "tokenCalculateStrategy WarmUp");
	warn_unused(reader, draft, RULE_COLD_FACTOR, warms_up, "tokenCalculateStrategy WarmUp");
	for (enum rule_field field = RULE_LOW_USAGE; field <= RULE_HIGH_MARK; field++)
		warn_unused(reader, draft, field, follows_memory, "tokenCalculateStrategy MemoryAdaptive");
	warn_unused(reader, draft, RULE_THRESHOLD, !follows_memory, "Direct and WarmUp");
}

static void complain_of_unsupported(struct weir_reader *reader, const struct draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;

	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		weir_complain_unsupported(reader, draft->value[RULE_STRATEGY], "'tokenCalculateStrategy: WarmUp'");
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		weir_complain_unsupported(reader, draft->value[RULE_STRATEGY],
					  "'tokenCalculateStrategy: MemoryAdaptive'");
	if (rule->behavior == WEIR_BEHAVIOR_THROTTLING)
		weir_complain_unsupported(reader, draft->value[RULE_BEHAVIOR], "'controlBehavior: Throttling'");
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		weir_complain_unsupported(reader, draft->value[RULE_RELATION],
					  "'relationStrategy: AssociatedResource'");
}

static void check_rule(struct weir_reader *reader, const struct draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	bool follows_memory = rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE;

	if (!draft->value[RULE_THRESHOLD] && !follows_memory)
		weir_complain(reader, draft->node, "say how many packets an interval may hold: 'threshold: 1000'",
			      "the rule has no threshold");
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		check_warm_up(reader, draft);
	if (follows_memory)
		check_memory_adaptive(reader, draft);
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		check_association(reader, draft);
	warn_of_unused_fields(reader, draft);
	if (!draft->has_threshold || follows_memory)
		return;
	if (rule->threshold_micro < WEIR_MICRO)
		weir_warn(reader, draft->value[RULE_THRESHOLD], "a packet is admitted whole or not at all",
			  "a threshold below 1 admits nothing");
	else if (rule->counts_bytes && rule->threshold_micro < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, draft->value[RULE_THRESHOLD],
			  "a frame larger than the threshold is never admitted; a full one has 1514 bytes",
			  "this threshold is smaller than a frame can be");
}

void weir_read_rule(struct weir_reader *reader, const struct weir_node *node)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	struct draft draft = {.node = node};
	const struct weir_node **pointed_at;

	weir_read_fields(reader, node, "rule", rule_fields, RULE_FIELD_COUNT, false, draft.value);
	if (node->kind != WEIR_NODE_MAP)
		return;
	draft.rule = weir_array_add((void **)&ruleset->rules, ruleset->rule_count, sizeof(*draft.rule));
	pointed_at = weir_array_add((void **)&reader->rule_nodes, ruleset->rule_count, sizeof(*pointed_at));
	if (!draft.rule || !pointed_at) {
		reader->is_out_of_memory = true;
		return;
	}
	ruleset->rule_count++;
	*pointed_at = at(&draft, RULE_NAME);
	draft.rule->place = (*pointed_at)->place;
	draft.rule->samples = WEIR_SAMPLES_MAX;
	draft.rule->interval_ns = INTERVAL_MS_DEFAULT * NSEC_PER_MSEC;

	read_resource(reader, &draft);
	read_name(reader, &draft);
	read_threshold(reader, &draft);
	read_interval(reader, &draft);
	read_samples(reader, &draft);
	read_choices(reader, &draft);
	read_numbers(reader, &draft);
	check_rule(reader, &draft);
	complain_of_unsupported(reader, &draft);
}
