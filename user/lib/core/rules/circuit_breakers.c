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

#define NSEC_PER_MSEC 1000000ull
/* A day. Chosen, not derived: Sentinel's fields are 32 and 64 bits wide. */
#define MS_MAX 86400000
/* Ten million. Chosen, not derived: less than a cell can count, with room to spare (weir_breakers.h). */
#define REQUESTS_MAX 10000000
#define PROBES_MAX 1000000

const char *const weir_breaker_field_names[WEIR_BREAKER_FIELD_COUNT] = {
	[WEIR_BREAKER_NAME] = "name",
	[WEIR_BREAKER_RESOURCE] = "resource",
	[WEIR_BREAKER_STRATEGY] = "strategy",
	[WEIR_BREAKER_THRESHOLD] = "threshold",
	[WEIR_BREAKER_RETRY] = "retryTimeoutMs",
	[WEIR_BREAKER_MIN_REQUESTS] = "minRequestAmount",
	[WEIR_BREAKER_INTERVAL] = "statIntervalMs",
	[WEIR_BREAKER_BUCKETS] = "statSlidingWindowBucketCount",
	[WEIR_BREAKER_MAX_RT] = "maxAllowedRtMs",
	[WEIR_BREAKER_PROBES] = "probeNum",
	[WEIR_BREAKER_MODE] = "mode",
	[WEIR_BREAKER_ID] = "id",
};

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
};

static const struct weir_node *at(const struct reading *reading, enum weir_breaker_field field)
{
	return reading->value[field] ?: reading->node;
}

/* ---- numbers ---- */

/* Read an optional number. */
static uint64_t read_number(struct weir_reader *reader, const struct reading *reading, enum weir_breaker_field field,
			    uint64_t high)
{
	const struct weir_node *value = reading->value[field];
	uint64_t number = 0;

	if (value && field == WEIR_BREAKER_MIN_REQUESTS && !reading->is_sentinel)
		weir_read_count(reader, value, weir_breaker_field_names[field], false, 0, high, NULL, &number);
	else if (value)
		weir_read_number(reader, value, weir_breaker_field_names[field], 0, high, &number);
	return number;
}

/* Read mandatory milliseconds. Returns 0 after a complaint. */
static uint64_t read_ms(struct weir_reader *reader, const struct reading *reading, enum weir_breaker_field field,
			const char *what)
{
	const size_t mistakes = reader->mistakes;
	uint64_t ms = read_number(reader, reading, field, MS_MAX);
	char hint[128];

	if (ms || reader->mistakes != mistakes)
		return ms;
	snprintf(hint, sizeof(hint), "write %s: '%s: 1000'", what, weir_breaker_field_names[field]);
	weir_complain(reader, at(reading, field), hint, "a circuit breaker needs a %s of at least 1",
		      weir_breaker_field_names[field]);
	return 0;
}

static void read_window(struct weir_reader *reader, const struct reading *reading)
{
	uint64_t interval_ms = read_ms(reader, reading, WEIR_BREAKER_INTERVAL, "over how many ms it counts");
	/* Sentinel's lists have any number, which means how finely the window moves, not what it counts. */
	uint64_t high = reading->is_sentinel ? UINT32_MAX : WEIR_BREAKER_BUCKETS_MAX;
	uint64_t buckets = read_number(reader, reading, WEIR_BREAKER_BUCKETS, high) ?: 1,
		 most = WEIR_BREAKER_BUCKETS_MAX;

	reading->fields->interval_ns = (interval_ms ?: 1) * NSEC_PER_MSEC;
	if (interval_ms && buckets > most && interval_ms % buckets == 0) {
		while (interval_ms % most)
			most--;
		weir_warn(reader, reading->value[WEIR_BREAKER_BUCKETS], "write 1 to 10 buckets",
			  "%llu buckets are more than weir has: it takes %llu, the nearest number that divides %llu ms",
			  (unsigned long long)buckets, (unsigned long long)most, (unsigned long long)interval_ms);
		buckets = most;
	}
	reading->fields->buckets = buckets;
	if (!interval_ms || interval_ms % buckets == 0)
		return;
	weir_warn(reader, reading->value[WEIR_BREAKER_BUCKETS], "write a number that divides statIntervalMs",
		  "%llu ms cannot be divided into %llu buckets of whole ms: as in Sentinel, there is one bucket",
		  (unsigned long long)interval_ms, (unsigned long long)buckets);
	reading->fields->buckets = 1;
}

/* ---- the condition that opens it ---- */

static void read_strategy(struct weir_reader *reader, struct reading *reading)
{
	const struct weir_node *value = reading->value[WEIR_BREAKER_STRATEGY];
	unsigned int strategy = WEIR_BREAKER_SLOW_RATIO;

	reading->has_strategy = reading->is_sentinel;
	if (value)
		reading->has_strategy = weir_read_choice(reader, value, "strategy", weir_breaker_strategy_names,
							 WEIR_BREAKER_STRATEGIES, true, &strategy);
	else if (!reading->is_sentinel)
		weir_complain(reader, reading->node, "write SlowRequestRatio, ErrorRatio or ErrorCount",
			      "the circuit breaker has no strategy");
	reading->fields->strategy = strategy;
}

static void read_threshold(struct weir_reader *reader, struct reading *reading)
{
	const struct weir_node *value = reading->value[WEIR_BREAKER_THRESHOLD];
	bool is_count = reading->fields->strategy == WEIR_BREAKER_ERROR_COUNT;
	uint64_t most = is_count ? REQUESTS_MAX : 1, micro = 0;
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

static void read_max_rt(struct weir_reader *reader, const struct reading *reading)
{
	const struct weir_settings *settings = &reader->ruleset->settings;
	uint64_t timeout_ms = settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF], ms;

	if (!reading->has_strategy)
		return;
	if (reading->fields->strategy != WEIR_BREAKER_SLOW_RATIO) {
		if (reading->value[WEIR_BREAKER_MAX_RT] && !reading->is_sentinel)
			weir_warn(reader, reading->value[WEIR_BREAKER_MAX_RT], "leave it out",
				  "'maxAllowedRtMs' has no effect: it is for strategy SlowRequestRatio");
		return;
	}
	ms = read_ms(reader, reading, WEIR_BREAKER_MAX_RT, "from how many ms on a request is slow");
	reading->fields->max_rt_ns = ms * NSEC_PER_MSEC;
	if (ms >= timeout_ms)
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

static void read_mode(struct weir_reader *reader, const struct reading *reading)
{
	static const char *const modes[] = {"enforce", "observe"};
	unsigned int mode = 0;

	if (reading->value[WEIR_BREAKER_MODE])
		weir_read_choice(reader, reading->value[WEIR_BREAKER_MODE], "mode", modes, ARRAY_SIZE(modes), false,
				 &mode);
	reading->draft.rule->observes = mode;
}

static void read_breaker(struct weir_reader *reader, struct reading *reading)
{
	struct weir_draft *draft = &reading->draft;

	draft->node = reading->node;
	draft->is_sentinel = reading->is_sentinel;
	draft->value[RULE_NAME] = reading->value[WEIR_BREAKER_NAME];
	draft->value[RULE_RESOURCE] = reading->value[WEIR_BREAKER_RESOURCE];
	if (!weir_begin_rule(reader, draft))
		return;
	draft->rule->metric = WEIR_METRIC_REQUESTS;
	reading->fields = &draft->rule->breaker;
	weir_read_identity(reader, draft);
	read_strategy(reader, reading);
	read_threshold(reader, reading);
	read_window(reader, reading);
	reading->fields->retry_ns =
		read_ms(reader, reading, WEIR_BREAKER_RETRY, "after how many ms one request tries again") *
		NSEC_PER_MSEC;
	reading->fields->min_requests = read_number(reader, reading, WEIR_BREAKER_MIN_REQUESTS, REQUESTS_MAX) ?: 1;
	reading->fields->probes = read_number(reader, reading, WEIR_BREAKER_PROBES, PROBES_MAX);
	read_max_rt(reader, reading);
	read_mode(reader, reading);
	check_resource(reader, reading);
}

void weir_read_breaker_of(struct weir_reader *reader, const struct weir_node *node,
			  const struct weir_node *const values[WEIR_BREAKER_FIELD_COUNT], bool is_sentinel)
{
	struct reading reading = {.node = node, .value = values, .is_sentinel = is_sentinel};

	read_breaker(reader, &reading);
}

void weir_read_breaker(struct weir_reader *reader, const struct weir_node *node)
{
	const struct weir_node *values[WEIR_BREAKER_FIELD_COUNT];

	weir_read_fields(reader, node, "a circuit breaker", weir_breaker_field_names, WEIR_BREAKER_FIELD_COUNT, false,
			 values);
	if (node->kind == WEIR_NODE_MAP)
		weir_read_breaker_of(reader, node, values, false);
}
