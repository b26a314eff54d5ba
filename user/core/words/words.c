// SPDX-License-Identifier: GPL-2.0-only
#include "words/words.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/values.h"

const char *const weir_verdict_names[WEIR_VERDICT_COUNT] = {
	[WEIR_VERDICT_PASS] = "pass",
	[WEIR_VERDICT_BLOCK] = "block",
	[WEIR_VERDICT_MALFORMED_PASS] = "malformedPass",
	[WEIR_VERDICT_MALFORMED_DROP] = "malformedDrop",
	[WEIR_VERDICT_UNSUPPORTED_PASS] = "unsupportedPass",
	[WEIR_VERDICT_UNSUPPORTED_DROP] = "unsupportedDrop",
	[WEIR_VERDICT_NON_IP_PASS] = "nonIpPass",
	[WEIR_VERDICT_NON_IP_DROP] = "nonIpDrop",
	[WEIR_VERDICT_UNMATCHED_PASS] = "unmatchedPass",
	[WEIR_VERDICT_UNMATCHED_DROP] = "unmatchedDrop",
	[WEIR_VERDICT_ALLOW] = "allow",
	[WEIR_VERDICT_DENY] = "deny",
	[WEIR_VERDICT_ERROR] = "error",
};

const char *const weir_verdict_words[WEIR_VERDICT_COUNT] = {
	[WEIR_VERDICT_PASS] = "passed by the rules",
	[WEIR_VERDICT_BLOCK] = "blocked by a rule",
	[WEIR_VERDICT_MALFORMED_PASS] = "malformed, passed",
	[WEIR_VERDICT_MALFORMED_DROP] = "malformed, dropped",
	[WEIR_VERDICT_UNSUPPORTED_PASS] = "unsupported, passed",
	[WEIR_VERDICT_UNSUPPORTED_DROP] = "unsupported, dropped",
	[WEIR_VERDICT_NON_IP_PASS] = "not IP, passed",
	[WEIR_VERDICT_NON_IP_DROP] = "not IP, dropped",
	[WEIR_VERDICT_UNMATCHED_PASS] = "in no resource, passed",
	[WEIR_VERDICT_UNMATCHED_DROP] = "in no resource, dropped",
	[WEIR_VERDICT_ALLOW] = "passed by an allow list",
	[WEIR_VERDICT_DENY] = "dropped by a deny list",
	[WEIR_VERDICT_ERROR] = "dropped by a mistake in weir",
};

bool weir_verdict_drops(enum weir_verdict verdict)
{
	switch (verdict) {
	case WEIR_VERDICT_BLOCK:
	case WEIR_VERDICT_MALFORMED_DROP:
	case WEIR_VERDICT_UNSUPPORTED_DROP:
	case WEIR_VERDICT_NON_IP_DROP:
	case WEIR_VERDICT_UNMATCHED_DROP:
	case WEIR_VERDICT_DENY:
	case WEIR_VERDICT_ERROR:
		return true;
	default:
		return false;
	}
}

/* ---- figures ---- */

const char *weir_format_age(uint64_t age_ns, char words[WEIR_WORDS_BYTES])
{
	uint64_t age_s = age_ns / WEIR_NSEC_PER_SEC;
	unsigned int days = age_s / 86400, hours = age_s / 3600 % 24, minutes = age_s / 60 % 60, seconds = age_s % 60;

	if (days)
		snprintf(words, WEIR_WORDS_BYTES, "%u d %u h", days, hours);
	else if (hours)
		snprintf(words, WEIR_WORDS_BYTES, "%u h %u min", hours, minutes);
	else if (minutes)
		snprintf(words, WEIR_WORDS_BYTES, "%u min %u s", minutes, seconds);
	else
		snprintf(words, WEIR_WORDS_BYTES, "%u s", seconds);
	return words;
}

void weir_format_interval(uint64_t interval_ns, char *text, size_t text_bytes)
{
	uint64_t ms = interval_ns / 1000000;

	if (ms % 3600000 == 0)
		snprintf(text, text_bytes, "%llu h", (unsigned long long)ms / 3600000);
	else if (ms % 60000 == 0)
		snprintf(text, text_bytes, "%llu min", (unsigned long long)ms / 60000);
	else if (ms % 1000 == 0)
		snprintf(text, text_bytes, "%llu s", (unsigned long long)ms / 1000);
	else
		snprintf(text, text_bytes, "%llu ms", (unsigned long long)ms);
}

void weir_format_micro(uint64_t micro, char *text, size_t text_bytes)
{
	unsigned long long whole = micro / WEIR_MICRO, rest = micro % WEIR_MICRO;
	char decimals[8] = "";

	if (rest) {
		snprintf(decimals, sizeof(decimals), ".%06llu", rest % WEIR_MICRO);
		for (size_t end = strlen(decimals); decimals[end - 1] == '0'; end--)
			decimals[end - 1] = '\0';
	}
	snprintf(text, text_bytes, "%llu%s", whole, decimals);
}

/* The same, or of MemoryAdaptive "1000 to 100". */
static void format_threshold(const struct weir_rule_info *rule, char *text, size_t text_bytes)
{
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		snprintf(text, text_bytes, "%llu to %llu", (unsigned long long)rule->memory.low_units,
			 (unsigned long long)rule->memory.high_units);
	else
		weir_format_micro(rule->threshold_micro, text, text_bytes);
}

const char *weir_format_count(uint64_t threshold_micro, const char *noun, char words[WEIR_WORDS_BYTES])
{
	char threshold[64];

	weir_format_micro(threshold_micro, threshold, sizeof(threshold));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s%s", threshold, noun, threshold_micro == WEIR_MICRO ? "" : "s");
	return words;
}

/* ", then blocked for 1 min", or nothing. */
static void format_penalty(const struct weir_rule_info *rule, char *text, size_t text_bytes)
{
	char first[32], longest[32];

	text[0] = '\0';
	if (!rule->penalty_ms)
		return;
	weir_format_interval(rule->penalty_ms * 1000000ull, first, sizeof(first));
	weir_format_interval(rule->penalty_ms_max * 1000000ull, longest, sizeof(longest));
	if (rule->penalty_ms == rule->penalty_ms_max)
		snprintf(text, text_bytes, ", then blocked for %s", first);
	else
		snprintf(text, text_bytes, ", then blocked for %s to %s", first, longest);
}

const char *weir_format_system(enum weir_system_metric metric, uint64_t trigger_micro, bool is_bbr,
			       char words[WEIR_WORDS_BYTES])
{
	const bool is_sampled = metric == WEIR_SYSTEM_LOAD || metric == WEIR_SYSTEM_CPU_USAGE;
	char trigger[64];

	weir_format_micro(trigger_micro, trigger, sizeof(trigger));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s %s%s%s",
		 weir_system_metric_names[metric < WEIR_SYSTEM_COUNT ? metric : 0], is_sampled ? "above" : "from",
		 trigger, metric == WEIR_SYSTEM_AVG_RT ? " ms" : "", is_bbr ? ", BBR" : "");
	return words;
}

/* ---- circuit breakers ---- */

struct weir_breaker_words weir_breaker_words_of(const struct weir_ruleset_rule *rule)
{
	const struct weir_breaker_fields *fields = &rule->breaker;

	return (struct weir_breaker_words){
		.strategy = fields->strategy,
		.threshold_micro = rule->threshold_micro,
		.interval_ns = fields->interval_ns,
		.retry_ns = fields->retry_ns,
		.max_rt_ns = fields->max_rt_ns,
		.buckets = fields->buckets,
		.min_requests = fields->min_requests,
		.probes = fields->probes,
	};
}

/* Maps are not to be trusted with the place of a name. */
static enum weir_breaker_strategy strategy_of(const struct weir_breaker_terms *terms)
{
	return terms->strategy < WEIR_BREAKER_STRATEGIES ? terms->strategy : WEIR_BREAKER_ERROR_COUNT;
}

struct weir_breaker_words weir_breaker_words_of_info(const struct weir_rule_info *info)
{
	const struct weir_breaker_terms *terms = &info->breaker;

	return (struct weir_breaker_words){
		.strategy = strategy_of(terms),
		.threshold_micro = info->threshold_micro,
		.interval_ns = info->identity.interval_ns,
		.retry_ns = terms->retry_ns,
		.max_rt_ns = terms->max_rt_ns,
		.buckets = terms->buckets,
		.min_requests = terms->min_requests,
		.probes = terms->probes,
	};
}

const char *weir_format_breaker(const struct weir_breaker_words *breaker, char words[WEIR_WORDS_BYTES])
{
	char threshold[WEIR_WORDS_BYTES], interval[32], retry[32], slow[32] = "";

	weir_format_micro(breaker->threshold_micro, threshold, 32);
	weir_format_interval(breaker->interval_ns, interval, sizeof(interval));
	weir_format_interval(breaker->retry_ns, retry, sizeof(retry));
	if (breaker->strategy == WEIR_BREAKER_SLOW_RATIO)
		snprintf(slow, sizeof(slow), " over %llu ms", (unsigned long long)(breaker->max_rt_ns / 1000000));
	snprintf(words, WEIR_WORDS_BYTES, "%s %.32s%s of %u in %s, retry after %s",
		 weir_breaker_strategy_names[breaker->strategy], threshold, slow, breaker->min_requests, interval,
		 retry);
	return words;
}

/* ---- rules ---- */

const char *weir_format_limit(const struct weir_rule_info *rule, char words[WEIR_WORDS_BYTES])
{
	const struct weir_kind *kind = weir_kind_of_info(rule);
	bool is_associated = rule->relation == WEIR_RELATION_ASSOCIATED;
	char threshold[64], interval[32], penalty[96];

	if (rule->system)
		return weir_format_system(rule->system, rule->threshold_micro, rule->is_bbr, words);
	if (kind->is_breaker) {
		const struct weir_breaker_words breaker = weir_breaker_words_of_info(rule);

		return weir_format_breaker(&breaker, words);
	}
	if (kind->noun)
		return weir_format_count(rule->threshold_micro, kind->noun, words);
	format_threshold(rule, threshold, sizeof(threshold));
	weir_format_interval(rule->identity.interval_ns, interval, sizeof(interval));
	format_penalty(rule, penalty, sizeof(penalty));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s per %s%s%s%s%s%s%s", threshold,
		 rule->identity.counts_bytes ? "bytes" : "packets", interval,
		 rule->strategy == WEIR_STRATEGY_WARM_UP   ? ", warming up"
		 : rule->cluster == WEIR_CLUSTER_GLOBAL	   ? ", for all hosts"
		 : rule->cluster == WEIR_CLUSTER_AVG_LOCAL ? ", times the hosts"
							   : "",
		 kind->lends	? ", lends"
		 : kind->delays ? ", spaced"
				: "",
		 is_associated ? ", of " : "", is_associated ? rule->ref_resource_name : "", penalty,
		 rule->aggregates ? ", aggregate when full" : "");
	return words;
}
