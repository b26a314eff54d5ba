// SPDX-License-Identifier: GPL-2.0-only
#include "words/drop_words.h"

#include <stdio.h>

#include "rules/scalars.h"
#include "tables/rule_kind.h"
#include "words/json.h"

#define NSEC_PER_USEC 1000u
#define NSEC_PER_MSEC 1000000u

/* The unit of whole numbers, if none of the special cases below applies to the rule. */
static const char *unit_of(const struct weir_rule_info *rule)
{
	if (weir_has_connections(rule))
		return "connections";
	return rule->identity.counts_bytes ? "bytes" : "packets";
}

/* Is this a system rule that uses a signal of the host? Its figures are in millionths. */
static bool has_signal(const struct weir_rule_info *rule)
{
	return rule->system == WEIR_SYSTEM_AVG_RT || weir_needs_samples(rule);
}

/* For a circuit breaker. */
static unsigned long long requests_of(uint64_t used)
{
	return used >> 32;
}

static unsigned long long bad_of(uint64_t used)
{
	return used & UINT32_MAX;
}

/* ---- words ---- */

static void format_signal(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold,
			  char words[WEIR_WORDS_BYTES])
{
	const char *unit = rule->system == WEIR_SYSTEM_AVG_RT ? " ms" : "";
	char is[32], may_be[32];

	weir_format_micro(used, is, sizeof(is));
	weir_format_micro(threshold, may_be, sizeof(may_be));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s%s, threshold %s%s", weir_system_metric_names[rule->system], is, unit,
		 may_be, unit);
}

static void format_breaker(uint64_t used, uint64_t threshold, char words[WEIR_WORDS_BYTES])
{
	char opens_at[32];

	weir_format_micro(threshold, opens_at, sizeof(opens_at));
	snprintf(words, WEIR_WORDS_BYTES, "%llu of %llu requests were bad, threshold %s", bad_of(used),
		 requests_of(used), opens_at);
}

const char *weir_format_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold,
				     char words[WEIR_WORDS_BYTES])
{
	const unsigned long long is = used, may_be = threshold;

	if (has_signal(rule))
		format_signal(rule, used, threshold, words);
	else if (weir_is_breaker(rule))
		format_breaker(used, threshold, words);
	else if (weir_has_connections(rule))
		snprintf(words, WEIR_WORDS_BYTES, "%llu of %llu connections open", is, may_be);
	else if (weir_has_tokens(rule))
		snprintf(words, WEIR_WORDS_BYTES, "%llu of %llu %s left", is < may_be ? may_be - is : 0, may_be,
			 unit_of(rule));
	else if (weir_throttles(rule))
		snprintf(words, WEIR_WORDS_BYTES, "would wait %llu.%llu ms, may wait %llu ms", is / NSEC_PER_MSEC,
			 is % NSEC_PER_MSEC / (NSEC_PER_MSEC / 10), may_be / NSEC_PER_MSEC);
	else
		snprintf(words, WEIR_WORDS_BYTES, "used %llu of %llu %s", is, may_be, unit_of(rule));
	return words;
}

/* ---- JSON ---- */

static void add(json_t *fields, json_t *used, json_t *threshold, const char *unit)
{
	json_object_set_new(fields, "used", used);
	json_object_set_new(fields, "threshold", threshold);
	json_object_set_new(fields, "unit", unit ? json_string(unit) : json_null());
}

void weir_json_add_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold, json_t *fields)
{
	if (has_signal(rule)) {
		add(fields, weir_json_threshold(used), weir_json_threshold(threshold),
		    rule->system == WEIR_SYSTEM_AVG_RT ? "ms" : NULL);
	} else if (weir_is_breaker(rule)) {
		json_object_set_new(fields, "requests", json_integer((json_int_t)requests_of(used)));
		json_object_set_new(fields, "bad", json_integer((json_int_t)bad_of(used)));
		json_object_set_new(fields, "threshold", weir_json_threshold(threshold));
	} else if (weir_throttles(rule)) {
		add(fields, json_integer((json_int_t)(used / NSEC_PER_USEC)),
		    json_integer((json_int_t)(threshold / NSEC_PER_USEC)), "us");
	} else {
		add(fields, json_integer((json_int_t)used), json_integer((json_int_t)threshold), unit_of(rule));
	}
}
