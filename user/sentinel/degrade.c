// SPDX-License-Identifier: GPL-2.0-only
/* Sentinel Java's degrade rules: circuit breakers in other words. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"
#include "sentinel/sentinel.h"

#define OWN RULE_FIELD_COUNT, NULL
#define NOT(instead) RULE_FIELD_COUNT, instead

enum {
	DEGRADE_REGEX,
	DEGRADE_LIMIT_APP,
	DEGRADE_RESOURCE,
	DEGRADE_GRADE,
	DEGRADE_COUNT,
	DEGRADE_TIME_WINDOW,
	DEGRADE_MIN_REQUESTS,
	DEGRADE_SLOW_RATIO,
	DEGRADE_INTERVAL,
};

static const struct weir_sentinel_field degrade_fields[] = {
	[DEGRADE_REGEX] = {"regex", OWN},
	[DEGRADE_LIMIT_APP] = {"limitApp", OWN},
	[DEGRADE_RESOURCE] = {"resource", OWN},
	[DEGRADE_GRADE] = {"grade", OWN},
	[DEGRADE_COUNT] = {"count", OWN},
	[DEGRADE_TIME_WINDOW] = {"timeWindow", OWN},
	[DEGRADE_MIN_REQUESTS] = {"minRequestAmount", OWN},
	[DEGRADE_SLOW_RATIO] = {"slowRatioThreshold", OWN},
	[DEGRADE_INTERVAL] = {"statIntervalMs", OWN},
	{"id", OWN},
	{"threshold", NOT("write 'count', or 'slowRatioThreshold' with grade 0")},
	{"strategy", NOT("write 'grade': 0 for slow requests, 1 for a ratio of errors, 2 for their number")},
	{"retryTimeoutMs", NOT("write 'timeWindow', in seconds")},
	{"maxAllowedRtMs", NOT("write 'count', with grade 0")},
	{"statSlidingWindowBucketCount", NOT("leave it out: in Sentinel Java there is one bucket")},
	{"probeNum", NOT("leave it out: Sentinel Java probes with one request")},
};

static const char *const degrade_needs[] = {"timeWindow", "minRequestAmount", "slowRatioThreshold", NULL};

enum { GRADE_SLOW, GRADE_ERROR_RATIO, GRADE_ERROR_COUNT };
#define MIN_REQUESTS_DEFAULT 5
#define STAT_INTERVAL_MS_DEFAULT 1000
#define TIME_WINDOW_S_MAX 86400

/* A degrade rule while it is translated into weir's words. */
struct degrade {
	struct weir_reader *reader;
	const struct weir_sentinel_rule *rule;
	const struct weir_node *values[WEIR_BREAKER_FIELD_COUNT];
	struct weir_node words[WEIR_BREAKER_FIELD_COUNT];
	char texts[WEIR_BREAKER_FIELD_COUNT][32];
};

/* Set a field to a number in millionths. Messages point at `at`, or at the rule if that is NULL. */
static void say(struct degrade *degrade, enum weir_breaker_field field, const struct weir_node *at, uint64_t micro)
{
	const struct weir_node *place = at ?: degrade->rule->node;
	char *text = degrade->texts[field];
	size_t bytes;

	bytes = snprintf(text, sizeof(degrade->texts[field]), "%llu.%06llu", (unsigned long long)(micro / WEIR_MICRO),
			 (unsigned long long)(micro % WEIR_MICRO));
	if (micro % WEIR_MICRO == 0)
		text[bytes - strlen(".000000")] = '\0';
	degrade->words[field] = (struct weir_node){
		.kind = WEIR_NODE_WORD, .text = text, .document = place->document, .place = place->place};
	degrade->values[field] = &degrade->words[field];
}

/* Read a decimal in JSON format; returns false after a complaint. */
static bool read_decimal(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t missing,
			 uint64_t *ret_micro)
{
	struct weir_refusal refusal;
	const char *word;

	*ret_micro = missing;
	if (!node)
		return true;
	if (!weir_check_unquoted(reader, node) || !weir_read_word(reader, node, field, &word))
		return false;
	if (!weir_parse_json_threshold(word, ret_micro, &refusal))
		return true;
	weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	return false;
}

/* Sentinel Java's breakers open above a ratio; Sentinel-Go's and weir's open at it, so a millionth is added. `most` is
 * the highest sensible value. For slow requests that is 1, which stays 1, because there Sentinel Java opens if all of
 * them are slow.
 */
static bool say_ratio(struct degrade *degrade, const struct weir_node *at, const char *field, uint64_t missing,
		      uint64_t most)
{
	uint64_t micro;

	if (!read_decimal(degrade->reader, at, field, missing, &micro))
		return false;
	if (micro > most) {
		weir_complain(degrade->reader, at, most == WEIR_MICRO ? "write 0 to 1" : "write less than 1",
			      "%s: a ratio is never above that", field);
		return false;
	}
	say(degrade, WEIR_BREAKER_THRESHOLD, at, micro == WEIR_MICRO ? micro : micro + 1);
	return true;
}

/* Set the condition that opens it; returns false after a complaint. */
static bool say_condition(struct degrade *degrade, uint64_t grade)
{
	const struct weir_node *const *values = degrade->rule->values;
	const struct weir_node *count = values[DEGRADE_COUNT];
	uint64_t micro;

	if (grade == GRADE_ERROR_RATIO)
		return say_ratio(degrade, count, "count", 0, WEIR_MICRO - 1);
	if (!read_decimal(degrade->reader, count, "count", 0, &micro))
		return false;
	if (grade == GRADE_ERROR_COUNT) {
		say(degrade, WEIR_BREAKER_THRESHOLD, count, (micro / WEIR_MICRO + 1) * WEIR_MICRO);
		return true;
	}
	say(degrade, WEIR_BREAKER_MAX_RT, count, (micro + WEIR_MICRO / 2) / WEIR_MICRO * WEIR_MICRO);
	return say_ratio(degrade, values[DEGRADE_SLOW_RATIO], "slowRatioThreshold", WEIR_MICRO, WEIR_MICRO);
}

/* Set how it counts, and how long it stays open; returns false after a complaint. */
static bool say_times(struct degrade *degrade)
{
	const struct weir_node *const *values = degrade->rule->values;
	struct weir_reader *reader = degrade->reader;
	const struct weir_node *window = values[DEGRADE_TIME_WINDOW];
	uint64_t window_s, least;

	if (!window) {
		weir_complain(reader, degrade->rule->node, "write for how many seconds it stays open: 'timeWindow': 10",
			      "a Sentinel Java degrade rule needs a timeWindow");
		return false;
	}
	if (!weir_sentinel_read_number(reader, window, "timeWindow", 1, TIME_WINDOW_S_MAX, 1, &window_s) ||
	    !weir_sentinel_read_number(reader, values[DEGRADE_MIN_REQUESTS], "minRequestAmount", 1, UINT32_MAX,
				       MIN_REQUESTS_DEFAULT, &least))
		return false;
	say(degrade, WEIR_BREAKER_RETRY, window, window_s * 1000 * WEIR_MICRO);
	say(degrade, WEIR_BREAKER_MIN_REQUESTS, values[DEGRADE_MIN_REQUESTS], least * WEIR_MICRO);
	if (!values[DEGRADE_INTERVAL])
		say(degrade, WEIR_BREAKER_INTERVAL, NULL, STAT_INTERVAL_MS_DEFAULT * WEIR_MICRO);
	else if (!weir_check_unquoted(reader, values[DEGRADE_INTERVAL]))
		return false;
	else
		degrade->values[WEIR_BREAKER_INTERVAL] = values[DEGRADE_INTERVAL];
	return true;
}

static void read_degrade(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	const struct weir_node *const *values = rule->values;
	struct degrade degrade = {.reader = reader, .rule = rule};
	bool is_good;
	uint64_t grade;

	weir_sentinel_check_regex(reader, values[DEGRADE_REGEX]);
	weir_sentinel_check_caller(reader, values[DEGRADE_LIMIT_APP]);
	is_good = weir_sentinel_read_number(reader, values[DEGRADE_GRADE], "grade", GRADE_SLOW, GRADE_ERROR_COUNT,
					    GRADE_SLOW, &grade);
	is_good = say_condition(&degrade, grade) && is_good;
	is_good = say_times(&degrade) && is_good;
	/* The numbers of Sentinel-Go's strategies equal those of Sentinel Java's grades. */
	say(&degrade, WEIR_BREAKER_STRATEGY, values[DEGRADE_GRADE], grade * WEIR_MICRO);
	degrade.values[WEIR_BREAKER_RESOURCE] = values[DEGRADE_RESOURCE];
	if (is_good)
		weir_read_breaker_of(reader, rule->node, degrade.values, true);
}

const struct weir_sentinel_kind weir_sentinel_degrade = {
	.name = "degradeRules",
	.title = "degrade rules",
	.is_java = true,
	.fields = degrade_fields,
	.field_count = ARRAY_SIZE(degrade_fields),
	.needs = degrade_needs,
	.read = read_degrade,
};
