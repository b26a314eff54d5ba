// SPDX-License-Identifier: GPL-2.0-only
#include "words/words.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/emit.h"
#include "rules/quantity.h"
#include "tables/rule_kind.h"
#include "rules/scalars.h"

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
	[WEIR_VERDICT_ERROR] = "dropped by a bug in weir",
};

const char *const weir_answer_words[WEIR_ON_BLOCK_COUNT] = {
	[WEIR_ON_BLOCK_DROP] = "nothing",
	[WEIR_ON_BLOCK_RESET] = "RST",
	[WEIR_ON_BLOCK_UNREACHABLE] = "ICMP unreachable",
	[WEIR_ON_BLOCK_TRUNCATE] = "a truncated DNS answer",
	[WEIR_ON_BLOCK_COOKIE] = "a SYN cookie",
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

const char *weir_direction_name(uint32_t directions)
{
	if (directions == WEIR_MATCHES_BOTH)
		return "both";
	return directions & WEIR_MATCHES_OUT ? "out" : "in";
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
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"h", 3600 * WEIR_NSEC_PER_SEC}, {"min", 60 * WEIR_NSEC_PER_SEC}, {"s", WEIR_NSEC_PER_SEC}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (interval_ns % units[i].ns == 0) {
			snprintf(text, text_bytes, "%llu %s", (unsigned long long)(interval_ns / units[i].ns),
				 units[i].name);
			return;
		}
	}
	if (interval_ns % 1000000)
		snprintf(text, text_bytes, "%g ms", (double)interval_ns / 1000000);
	else
		snprintf(text, text_bytes, "%llu ms", (unsigned long long)interval_ns / 1000000);
}

/* ---- what a limit applies to ---- */

static void format_key_field(const struct weir_flow *flow, uint8_t families, int place, char *text, size_t text_bytes)
{
	const uint8_t *bits = place == WEIR_KEY_PLACE_SOURCE	    ? flow->source_bits
			      : place == WEIR_KEY_PLACE_DESTINATION ? flow->destination_bits
								    : NULL;
	const char *name = weir_key_field_name(flow->fields, place);

	if (weir_flow_set(flow, place))
		snprintf(text, text_bytes, "%s@%s", name, weir_flow_set(flow, place));
	else if (bits && families == 1 && bits[0] < 32)
		snprintf(text, text_bytes, "%s/%u", name, bits[0]);
	else if (bits && families == 2 && bits[1] < 128)
		snprintf(text, text_bytes, "%s/%u", name, bits[1]);
	else if (bits && families % 3 == 0 && (bits[0] < 32 || bits[1] < 128))
		snprintf(text, text_bytes, "%s/%u/%u", name, bits[0], bits[1]);
	else
		snprintf(text, text_bytes, "%s", name);
}

const char *weir_format_whose(const struct weir_flow *flow, uint8_t families, char words[WEIR_WORDS_BYTES])
{
	uint32_t rest = flow->fields & ((1u << WEIR_KEY_FIELD_COUNT) - 1);
	size_t used = 0;

	snprintf(words, WEIR_WORDS_BYTES, "in all");
	for (int place = 0; rest; place++) {
		const char *before = !used ? "per " : rest >> (place + 1) ? ", " : " and ";
		char text[WEIR_KEY_FIELD_BYTES];

		if (!(rest >> place & 1))
			continue;
		format_key_field(flow, families, place, text, sizeof(text));
		used += snprintf(words + used, WEIR_WORDS_BYTES - used, "%s%s", before, text);
		rest &= ~(1u << place);
	}
	return words;
}

const char *weir_format_whose_rule(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule,
				   char words[WEIR_WORDS_BYTES])
{
	return weir_format_whose(weir_counted_flow_of(ruleset, rule), weir_resource_of(ruleset, rule)->match.families,
				 words);
}

const char *weir_format_whose_limit(const struct weir_rule_info *rule, const struct weir_key_labels *labels,
				    char words[WEIR_WORDS_BYTES])
{
	const struct weir_rule_identity *identity = &rule->identity;
	struct weir_flow flow = {.fields = rule->counts_whole ? 0 : identity->key_fields};

	memcpy(flow.source_bits, identity->source_bits, sizeof(flow.source_bits));
	memcpy(flow.destination_bits, identity->destination_bits, sizeof(flow.destination_bits));
	strcpy(flow.source_set, weir_key_set_name(labels, identity->key_fields, WEIR_KEY_PLACE_SOURCE));
	strcpy(flow.destination_set, weir_key_set_name(labels, identity->key_fields, WEIR_KEY_PLACE_DESTINATION));
	return weir_format_whose(&flow, rule->families, words);
}

const char *weir_format_count(uint64_t threshold_micro, const char *noun, char words[WEIR_WORDS_BYTES])
{
	char threshold[64];

	weir_format_micro(threshold_micro, threshold, sizeof(threshold));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s%s", threshold, noun, threshold_micro == WEIR_MICRO ? "" : "s");
	return words;
}

void weir_format_penalty(uint32_t penalty_ms, uint32_t penalty_ms_max, char text[WEIR_PENALTY_BYTES])
{
	char first[32], longest[32];

	text[0] = '\0';
	if (!penalty_ms)
		return;
	weir_format_interval(penalty_ms * 1000000ull, first, sizeof(first));
	weir_format_interval(penalty_ms_max * 1000000ull, longest, sizeof(longest));
	if (penalty_ms == penalty_ms_max)
		snprintf(text, WEIR_PENALTY_BYTES, ", then blocked for %s", first);
	else
		snprintf(text, WEIR_PENALTY_BYTES, ", then blocked for %s to %s", first, longest);
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

const char *weir_format_breaker(const struct weir_ruleset_rule *rule, char words[WEIR_WORDS_BYTES])
{
	const struct weir_breaker_fields *breaker = &rule->breaker;
	char threshold[WEIR_WORDS_BYTES], interval[32], retry[32], slow[32] = "";

	weir_format_micro(rule->threshold_micro, threshold, 32);
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

/* "20/s", or "1000 to 100/s" for MemoryAdaptive. */
static void format_limit_rate(const struct weir_rule_info *rule, char words[WEIR_WORDS_BYTES])
{
	const struct weir_rule_identity *identity = &rule->identity;
	char low[WEIR_WORDS_BYTES], high[48];

	if (rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE) {
		weir_format_rate(rule->threshold_micro, identity->interval_ns, identity->counts_bytes, words);
		return;
	}
	weir_format_amount(rule->memory.low_units * WEIR_MICRO, identity->counts_bytes, high, sizeof(high));
	weir_format_rate(rule->memory.high_units * WEIR_MICRO, identity->interval_ns, identity->counts_bytes, low);
	snprintf(words, WEIR_WORDS_BYTES, "%s to %.64s", high, low);
}

static const char *format_kinds_limit(const struct weir_rule_info *rule, const struct weir_key_labels *labels,
				      char words[WEIR_WORDS_BYTES])
{
	const struct weir_kind *kind = weir_kind_of_info(rule);
	bool is_associated = rule->relation == WEIR_RELATION_ASSOCIATED;
	char limit[WEIR_WORDS_BYTES], whose[WEIR_WORDS_BYTES], penalty[WEIR_PENALTY_BYTES];

	if (rule->system)
		return weir_format_system(rule->system, rule->threshold_micro, rule->is_bbr, words);
	weir_format_whose_limit(rule, labels, whose);
	if (weir_is_breaker(rule)) {
		const struct weir_shown_rule shown = weir_shown_rule_of_info(rule);

		snprintf(words, WEIR_WORDS_BYTES, "%.200s, %.400s", weir_format_breaker(&shown.rule, limit), whose);
		return words;
	}
	if (kind->noun) {
		weir_format_count(rule->threshold_micro, kind->noun, limit);
		snprintf(words, WEIR_WORDS_BYTES, "%.64s %.400s", limit, whose);
		return words;
	}
	format_limit_rate(rule, limit);
	weir_format_penalty(rule->penalty_ms, rule->penalty_ms_max, penalty);
	snprintf(words, WEIR_WORDS_BYTES, "%.64s %.400s%s%s%s%s%s%s", limit, whose,
		 rule->strategy == WEIR_STRATEGY_WARM_UP   ? ", warming up"
		 : rule->cluster == WEIR_CLUSTER_GLOBAL	   ? ", for all hosts"
		 : rule->cluster == WEIR_CLUSTER_AVG_LOCAL ? ", times the hosts"
							   : "",
		 kind->manner ?: "", is_associated ? ", of " : "", is_associated ? rule->ref_resource_name : "",
		 penalty, rule->aggregates ? ", aggregate when full" : "");
	return words;
}

const char *weir_format_limit(const struct weir_rule_info *rule, const struct weir_key_labels *labels,
			      char words[WEIR_WORDS_BYTES])
{
	size_t used;

	format_kinds_limit(rule, labels, words);
	used = strlen(words);
	if (rule->on_block && rule->on_block < WEIR_ON_BLOCK_COUNT)
		snprintf(words + used, WEIR_WORDS_BYTES - used, ", answers with %s", weir_answer_words[rule->on_block]);
	return words;
}

const char *weir_needs_words(uint32_t needs, char words[WEIR_NEEDS_BYTES])
{
	static const char *const names[WEIR_NEEDS] = {
		[WEIR_NEED_RESOURCES] = "resources",
		[WEIR_NEED_LISTS] = "lists",
		[WEIR_NEED_SYSTEM] = "system rules",
		[WEIR_NEED_ANSWERS] = "answers to circuit breakers' requests",
		[WEIR_NEED_SETTINGS] = "settings that drop",
		[WEIR_NEED_ENTRIES] = "timed entries",
	};
	size_t used = 0;

	words[0] = '\0';
	for (int need = 0; need < WEIR_NEEDS; need++)
		if (needs >> need & 1 && used < WEIR_NEEDS_BYTES)
			used += snprintf(words + used, WEIR_NEEDS_BYTES - used, "%s%s", used ? ", " : "", names[need]);
	return words;
}
