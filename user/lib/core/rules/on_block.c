// SPDX-License-Identifier: GPL-2.0-only
/* What senders of blocked packets get: `onBlock` of a rule, and settings.answers, which says how often. */
#include <netinet/in.h>
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"
#include "rules/quantity.h"

/* More than any host could send. Chosen, not derived. */
#define RATE_MAX 100000000ull

const char *const weir_answer_field_names[WEIR_ANSWER_BUCKETS] = {"rate", "cookieRate"};

uint64_t weir_answer_rate(const struct weir_settings *settings, unsigned int bucket)
{
	static const uint64_t usual[WEIR_ANSWER_BUCKETS] = {10000, 1000000};

	return settings->answer_rates[bucket] ?: usual[bucket];
}

static void read_rate(struct weir_reader *reader, const struct weir_node *node, unsigned int bucket)
{
	const char *field = weir_answer_field_names[bucket], *word;
	uint64_t *kept = &reader->ruleset->settings.answer_rates[bucket], per_s = 0;
	struct weir_refusal refusal = {};
	struct weir_rate rate;

	if (!weir_read_word(reader, node, field, &word))
		return;
	if (weir_parse_rate(word, &rate, &refusal)) {
		weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s: %s", field, refusal.message);
		return;
	}
	if (!rate.counts_bytes)
		per_s = (unsigned __int128)rate.micro * WEIR_NSEC_PER_SEC / rate.interval_ns / WEIR_MICRO;
	if (!per_s || per_s > RATE_MAX)
		weir_complain(reader, node, "write packets per second, 1/s to 100M/s",
			      "%s: '%.*s' is no rate of answers", field, WEIR_SHOWN(word));
	else if (*kept && *kept != per_s)
		weir_complain(reader, node, "the files are merged: set it in one of them, or to the same value in both",
			      "answers: '%s' is '%.*s' here, but %llu/s in another file", field, WEIR_SHOWN(word),
			      (unsigned long long)*kept);
	else
		*kept = per_s;
}

void weir_read_answer_settings(struct weir_reader *reader, const struct weir_node *node)
{
	const struct weir_node *values[WEIR_ANSWER_BUCKETS] = {};

	if (!node)
		return;
	weir_read_fields(reader, node, "answers", weir_answer_field_names, WEIR_ANSWER_BUCKETS, false, values);
	for (unsigned int bucket = 0; bucket < WEIR_ANSWER_BUCKETS; bucket++)
		if (values[bucket])
			read_rate(reader, values[bucket], bucket);
}

bool weir_any_answers(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].on_block)
			return true;
	return false;
}

/* Why a rule should not answer with cookies; NULL: it may. A breaker and a system rule look at SYNs alone; a limit on
 * connections takes the ACK that brings a cookie back for an opening (bpf/kinds/cookies.h).
 */
static const char *fault_of_cookies(const struct weir_ruleset_rule *rule)
{
	if (rule->system)
		return "it opens the connections that a busy host is to refuse";
	if (rule->metric == WEIR_METRIC_REQUESTS)
		return "it opens the connections that a failing service is to be spared";
	return rule->metric == WEIR_METRIC_CONCURRENCY ? "the packet that brings the cookie back is blocked as well"
						       : NULL;
}

static void warn_of_cookies(struct weir_reader *reader)
{
	for (size_t i = 0; i < reader->ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &reader->ruleset->rules[i];

		if (rule->on_block == WEIR_ON_BLOCK_COOKIE && !rule->observes && fault_of_cookies(rule))
			weir_warn(reader, reader->rule_nodes[i],
				  "write 'onBlock: reset', and give cookies by a rate of SYNs",
				  "'onBlock: cookie' of '%s' does harm: %s", rule->name, fault_of_cookies(rule));
	}
}

void weir_finish_answers(struct weir_reader *reader, const struct weir_node *node)
{
	warn_of_cookies(reader);
	if (node && !weir_any_answers(reader->ruleset))
		weir_warn(reader, node, "leave it out, or give a rule 'onBlock: reset'",
			  "'answers' has no effect: no rule answers what it blocks");
}

/* ---- rules ---- */

/* Answers are for packets of one protocol, or of any (0). */
static uint8_t protocol_of(enum weir_on_block on_block)
{
	switch (on_block) {
	case WEIR_ON_BLOCK_RESET:
	case WEIR_ON_BLOCK_COOKIE:
		return IPPROTO_TCP;
	case WEIR_ON_BLOCK_TRUNCATE:
		return IPPROTO_UDP;
	default:
		return 0;
	}
}

void weir_check_on_block(struct weir_reader *reader, const struct weir_node *node, const struct weir_ruleset_rule *rule,
			 const struct weir_ruleset_resource *resource)
{
	const struct weir_match *match = &resource->match;
	const uint8_t protocol = protocol_of(rule->on_block);

	if (!node || !rule->on_block)
		return;
	if (!(weir_match_directions(match) & WEIR_MATCHES_IN))
		weir_complain(reader, node, "leave it out: only incoming packets are answered",
			      "'onBlock' is for incoming packets, and all packets of '%.*s' go out",
			      WEIR_SHOWN(resource->name));
	else if (protocol && match->has_protocol && !(match->protocol[protocol / 8] >> protocol % 8 & 1))
		weir_warn(reader, node, "write 'unreachable', or leave it out",
			  "'onBlock: %s' has no effect: '%.*s' has no packet of %s",
			  weir_on_block_names[rule->on_block], WEIR_SHOWN(resource->name),
			  protocol == IPPROTO_TCP ? "TCP" : "UDP");
}
