// SPDX-License-Identifier: GPL-2.0-only
/*
 * Circuit breakers: an entry of `circuitBreakers:` in a rule file, or an object of Sentinel-Go's own list. Each becomes
 * a rule after all others. The checks are those of Sentinel-Go (core/circuitbreaker/rule_manager.go), and some that
 * apply to packets.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/parse.h"
#include "rules/rule.h"

const char *const weir_breaker_strategy_names[WEIR_BREAKER_STRATEGIES] = {
	[WEIR_BREAKER_SLOW_RATIO] = "SlowRequestRatio",
	[WEIR_BREAKER_ERROR_RATIO] = "ErrorRatio",
	[WEIR_BREAKER_ERROR_COUNT] = "ErrorCount",
};

/* A breaker while it is read. */
struct reading {
	const struct weir_node *node;
	const struct weir_node *const *value; /* by enum weir_breaker_field */
	bool is_sentinel;
	struct weir_draft draft; /* its name, resource and threshold are read like any rule's */
	struct weir_breaker_fields *fields;
	bool has_strategy;
	uint32_t misread; /* a bit for each number that was refused: do not complain again */
};

static const struct weir_node *at(const struct reading *reading, enum weir_breaker_field field)
{
	return reading->value[field] ?: reading->node;
}

/* ---- numbers ---- */

static const struct weir_field_row *row_of(enum weir_breaker_field field)
{
	return &weir_breaker_rows[field];
}

/* Which fields are read depends on the strategy: maxAllowedRtMs is for slow requests. */
static void read_numbers(struct weir_reader *reader, struct reading *reading)
{
	const bool may_be_slow = reading->has_strategy && reading->fields->strategy == WEIR_BREAKER_SLOW_RATIO;
	uint64_t value;

	for (enum weir_breaker_field field = WEIR_BREAKER_RETRY; field < WEIR_BREAKER_ID; field++) {
		struct weir_field_row row = *row_of(field);

		/* Sentinel's lists have any number, which means how finely the window moves, not what it counts. */
		if (field == WEIR_BREAKER_BUCKETS && reading->is_sentinel)
			row.high = UINT32_MAX;
		if (!reading->value[field] || (field == WEIR_BREAKER_MAX_RT && !may_be_slow))
			continue;
		if (weir_read_value(reader, &row, reading->value[field], reading->is_sentinel, false, &value))
			weir_set_member(&row, reading->draft.rule, value);
		else
			reading->misread |= 1u << field;
	}
}

/* Complain about mandatory milliseconds that are missing, or 0. */
static void need(struct weir_reader *reader, const struct reading *reading, enum weir_breaker_field field,
		 const char *what)
{
	char hint[128];

	if (weir_member_value(row_of(field), reading->draft.rule) || reading->misread >> field & 1)
		return;
	snprintf(hint, sizeof(hint), "write %s: '%s: 1000'", what, row_of(field)->name);
	weir_complain(reader, at(reading, field), hint, "a circuit breaker needs a %s of at least 1",
		      row_of(field)->name);
}

static void check_window(struct weir_reader *reader, const struct reading *reading)
{
	struct weir_breaker_fields *fields = reading->fields;
	const uint64_t interval_ms = weir_member_value(row_of(WEIR_BREAKER_INTERVAL), reading->draft.rule);
	uint32_t most = WEIR_BREAKER_BUCKETS_MAX;

	need(reader, reading, WEIR_BREAKER_INTERVAL, "over how many ms it counts");
	fields->buckets = fields->buckets ?: 1;
	if (!interval_ms) {
		fields->interval_ns = 1000000;
		return;
	}
	if (fields->buckets > most && interval_ms % fields->buckets == 0) {
		while (interval_ms % most)
			most--;
		weir_warn(reader, reading->value[WEIR_BREAKER_BUCKETS], "write 1 to 10 buckets",
			  "%u buckets are more than weir has: it takes %u, the nearest number that divides %llu ms",
			  fields->buckets, most, (unsigned long long)interval_ms);
		fields->buckets = most;
	}
	if (interval_ms % fields->buckets == 0)
		return;
	weir_warn(reader, reading->value[WEIR_BREAKER_BUCKETS], "write a number that divides statIntervalMs",
		  "%llu ms cannot be divided into %u buckets of whole ms: as in Sentinel, there is one bucket",
		  (unsigned long long)interval_ms, fields->buckets);
	fields->buckets = 1;
}

/* ---- the condition that opens it ---- */

static void read_strategy(struct weir_reader *reader, struct reading *reading)
{
	const struct weir_node *value = reading->value[WEIR_BREAKER_STRATEGY];
	uint64_t strategy;

	reading->has_strategy = reading->is_sentinel; /* 0, SlowRequestRatio */
	if (value) {
		reading->has_strategy =
			weir_read_value(reader, row_of(WEIR_BREAKER_STRATEGY), value, false, false, &strategy);
		if (reading->has_strategy)
			reading->fields->strategy = strategy;
	} else if (!reading->is_sentinel) {
		weir_complain(reader, reading->node, "write SlowRequestRatio, ErrorRatio or ErrorCount",
			      "the circuit breaker has no strategy");
	}
}

static void read_threshold(struct weir_reader *reader, struct reading *reading)
{
	const struct weir_node *value = reading->value[WEIR_BREAKER_THRESHOLD];
	bool is_count = reading->fields->strategy == WEIR_BREAKER_ERROR_COUNT;
	uint64_t most = is_count ? WEIR_BREAKER_REQUESTS_MAX : 1, micro = 0;
	struct weir_refusal refusal;
	const char *word;

	if (!value && !reading->is_sentinel) {
		weir_complain(reader, reading->node,
			      is_count ? "write how many failed requests open it: 'threshold: 10'"
				       : "write the share that opens it: 'threshold: 0.5'",
			      "the circuit breaker has no threshold");
		return;
	}
	if (value && !weir_read_word(reader, value, "threshold", &word))
		return;
	if (value && (reading->is_sentinel ? weir_parse_json_threshold(word, &micro, &refusal)
					   : weir_parse_threshold(word, false, &micro, &refusal))) {
		weir_complain(reader, value, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
		return;
	}
	if (!reading->has_strategy)
		return;
	if (micro > most * WEIR_MICRO)
		weir_complain(reader, value, is_count ? "write 0 to 10000000" : "write a share, 0 to 1",
			      "threshold '%.*s' is out of range: %s is a %s", WEIR_SHOWN(word),
			      weir_breaker_strategy_names[reading->fields->strategy], is_count ? "number" : "ratio");
	else if (!micro)
		weir_warn(reader, at(reading, WEIR_BREAKER_THRESHOLD), "write the share that opens it, such as 0.5",
			  "a threshold of 0 opens the breaker with the first outcomes, good or bad");
	reading->draft.rule->threshold_micro = micro;
}

static void check_max_rt(struct weir_reader *reader, const struct reading *reading)
{
	const struct weir_settings *settings = &reader->ruleset->settings;
	const uint64_t timeout_ms = settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF];

	if (!reading->has_strategy)
		return;
	if (reading->fields->strategy != WEIR_BREAKER_SLOW_RATIO) {
		if (reading->value[WEIR_BREAKER_MAX_RT] && !reading->is_sentinel)
			weir_warn(reader, reading->value[WEIR_BREAKER_MAX_RT], "leave it out",
				  "'maxAllowedRtMs' has no effect: it is for strategy SlowRequestRatio");
		return;
	}
	need(reader, reading, WEIR_BREAKER_MAX_RT, "from how many ms on a request is slow");
	if (weir_member_value(row_of(WEIR_BREAKER_MAX_RT), reading->draft.rule) >= timeout_ms)
		weir_warn(reader, reading->value[WEIR_BREAKER_MAX_RT],
			  "lower it, or raise settings.halfOpenTimeoutInMs",
			  "no request can be slow: it fails first, after a silence of %llu ms",
			  (unsigned long long)timeout_ms);
}

/* ---- the resource ---- */

/* A request is tracked by all packets of its 5-tuple, so a match must take all of them or none. */
static void check_resource(struct weir_reader *reader, const struct reading *reading)
{
	const struct weir_node *value = at(reading, WEIR_BREAKER_RESOURCE);
	const struct weir_ruleset_resource *resource;
	const struct weir_match *match;

	if (!reading->draft.has_resource)
		return;
	resource = &reader->ruleset->resources[reading->draft.rule->resource];
	weir_check_on_block(reader, reading->value[WEIR_BREAKER_ON_BLOCK], reading->draft.rule, resource);
	match = &resource->match;
	if (!weir_match_holds_tcp(match) || match->fragments == 1 << WEIR_FRAGMENT_LATER)
		weir_complain(reader, value, "a breaker counts TCP openings: match protocol tcp",
			      "'%.*s' matches no TCP opening, so it cannot have a circuit breaker",
			      WEIR_SHOWN(resource->name));
	else if (weir_match_splits_connections(match))
		weir_warn(reader, value, "the breaker must see the answers as well: match by addresses and ports",
			  "'%.*s' matches only some packets of a connection: its match has '%s'",
			  WEIR_SHOWN(resource->name), weir_match_splits_connections(match));
}

/* ---- the whole breaker ---- */

void weir_read_breaker_of(struct weir_reader *reader, const struct weir_node *node,
			  const struct weir_node *const values[WEIR_BREAKER_FIELD_COUNT], bool is_sentinel)
{
	struct reading breaker = {.node = node, .value = values, .is_sentinel = is_sentinel}, *reading = &breaker;
	struct weir_draft *draft = &reading->draft;

	draft->node = node;
	draft->is_sentinel = is_sentinel;
	draft->value[RULE_NAME] = reading->value[WEIR_BREAKER_NAME];
	draft->value[RULE_RESOURCE] = reading->value[WEIR_BREAKER_RESOURCE];
	if (!weir_begin_rule(reader, draft))
		return;
	draft->rule->metric = WEIR_METRIC_REQUESTS;
	reading->fields = &draft->rule->breaker;
	weir_read_identity(reader, draft);
	read_strategy(reader, reading);
	read_threshold(reader, reading);
	read_numbers(reader, reading);
	check_window(reader, reading);
	need(reader, reading, WEIR_BREAKER_RETRY, "after how many ms one request tries again");
	reading->fields->min_requests = reading->fields->min_requests ?: 1;
	check_max_rt(reader, reading);
	check_resource(reader, reading);
}

void weir_read_breaker(struct weir_reader *reader, const struct weir_node *node)
{
	const struct weir_node *values[WEIR_BREAKER_FIELD_COUNT];

	weir_read_fields(reader, node, "a circuit breaker", weir_breaker_field_names, WEIR_BREAKER_FIELD_COUNT, false,
			 values);
	if (node->kind == WEIR_NODE_MAP)
		weir_read_breaker_of(reader, node, values, false);
}
