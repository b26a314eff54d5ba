// SPDX-License-Identifier: GPL-2.0-only
#include "explain/explain_packet.h"

#include <stdarg.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"

#include "report/keys.h"
#include "rules/scalars.h"
#include "words/state_words.h"
#include "tables/rule_kind.h"

#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull
#define LINE_CHARACTERS 79
#define LABEL_CHARACTERS 12

/* ---- words ---- */

static const struct {
	uint32_t field;
	const char *option, *name;
} options[] = {
	{WEIR_MATCH_SOURCE, "--src", "source"},
	{WEIR_MATCH_DESTINATION, "--dst", "destination"},
	{WEIR_MATCH_KIND, "--proto", "protocol"},
	{WEIR_MATCH_SOURCE_PORT, "--sport", "sourcePort"},
	{WEIR_MATCH_DESTINATION_PORT, "--dport", "destinationPort"},
	{WEIR_MATCH_TCP_FLAGS, "--flags", "tcpFlags"},
	{WEIR_MATCH_ICMP_TYPE, "--icmp-type", "icmpType"},
	{WEIR_MATCH_VLAN, "--vlan", "vlan"},
	{WEIR_MATCH_DSCP, "--dscp", "dscp"},
	{WEIR_MATCH_TTL, "--ttl", "ttl"},
	{WEIR_MATCH_LENGTH, "--length", "length"},
	{WEIR_MATCH_IP_LENGTH, "--ip-length", "ipLength"},
	{WEIR_MATCH_INTERFACE, "--interface", "interface"},
};

const char *weir_format_options(uint32_t fields, char words[WEIR_WORDS_BYTES])
{
	size_t used = 0;

	words[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (fields & options[i].field)
			used += snprintf(words + used, WEIR_WORDS_BYTES - used, "%s%s", used ? ", " : "",
					 options[i].option);
	return words;
}

/* "312 ms", "1.250 s", "45 us", "3 min 20 s". */
static const char *format_time(uint64_t ns, char words[WEIR_WORDS_BYTES])
{
	if (ns >= 60 * WEIR_NSEC_PER_SEC)
		return weir_format_age(ns, words);
	if (ns >= WEIR_NSEC_PER_SEC)
		snprintf(words, WEIR_WORDS_BYTES, "%.3f s", ns / 1e9);
	else if (ns >= NSEC_PER_MSEC)
		snprintf(words, WEIR_WORDS_BYTES, "%.1f ms", ns / 1e6);
	else
		snprintf(words, WEIR_WORDS_BYTES, "%llu us",
			 (unsigned long long)((ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC));
	return words;
}

static const char *unit_of(const struct weir_explained_rule *rule)
{
	if (weir_has_connections(rule->info))
		return "connections";
	return rule->info->identity.counts_bytes ? "bytes" : "packets";
}

/* ---- for people ---- */

__attribute__((format(printf, 2, 3))) static void line(const char *label, const char *format, ...)
{
	va_list args;

	printf("  %-*s ", LABEL_CHARACTERS - 3, label); /* the longest label is followed by a blank, too */
	va_start(args, format);
	weir_print_clean(stdout, format, args);
	va_end(args);
	putchar('\n');
}

/* The reason for a verdict that neither a rule nor a list has decided. */
static const char *const packet_words[WEIR_VERDICT_COUNT] = {
	[WEIR_VERDICT_MALFORMED_PASS] = "it is malformed, and 'malformed: pass' lets it pass",
	[WEIR_VERDICT_MALFORMED_DROP] = "it is malformed",
	[WEIR_VERDICT_UNSUPPORTED_PASS] = "it is unsupported, and 'unsupported: pass' lets it pass",
	[WEIR_VERDICT_UNSUPPORTED_DROP] = "it is unsupported, and 'unsupported: drop' drops it",
	[WEIR_VERDICT_NON_IP_PASS] = "it is not IP",
	[WEIR_VERDICT_NON_IP_DROP] = "it is not IP, and 'nonIp' drops it",
	[WEIR_VERDICT_UNMATCHED_PASS] = "no resource matches it",
	[WEIR_VERDICT_UNMATCHED_DROP] = "no resource matches it, and 'unmatched: drop' drops it",
	[WEIR_VERDICT_ERROR] = "by a bug in weir",
};

/* A list in the files, or a timed entry, decides. */
static void print_listed(const struct weir_explanation *explanation, const struct weir_timed_order *entry)
{
	const bool denies = explanation->verdict == WEIR_VERDICT_DENY;
	const char *end = explanation->direction == WEIR_DIRECTION_IN ? "source" : "destination";
	const char *verdict = !denies ? "passes" : explanation->passes ? "passes, would be dropped" : "DROPPED";
	char words[WEIR_WORDS_BYTES], by[WEIR_PREFIX_TEXT_BYTES];

	if (explanation->list_ends_ns == WEIR_SANDBOX_RUN_NEVER) {
		line("verdict", "%s: the %s is in %s list", verdict, end, denies ? "a 'deny'" : "an 'allow'");
		return;
	}
	line("verdict", "%s: the %s is %s, for %s", verdict, end,
	     denies ? "blocked by 'weir block'" : "allowed by 'weir allow'",
	     format_time(explanation->list_ends_ns, words));
	if (entry)
		line("entry", "%s%s%s", weir_format_prefix(&entry->prefix, by), entry->reason[0] ? " # " : "",
		     entry->reason);
}

static void print_verdict(const struct weir_explanation *explanation, const struct weir_timed_order *entry)
{
	char words[WEIR_WORDS_BYTES];

	if (explanation->unknown) {
		line("verdict", "depends on %s, which %s not given", weir_format_options(explanation->unknown, words),
		     explanation->unknown & (explanation->unknown - 1) ? "are" : "is");
		return;
	}
	switch (explanation->verdict) {
	case WEIR_VERDICT_BLOCK:
		line("verdict", "%s by rule '%s'", explanation->passes ? "passes, would be dropped" : "DROPPED",
		     explanation->blocked_by ? explanation->blocked_by->name : "?");
		if (explanation->answer && explanation->answer < WEIR_ON_BLOCK_COUNT)
			line("answer", "it would be answered by %s", weir_answer_words[explanation->answer]);
		return;
	case WEIR_VERDICT_DENY:
	case WEIR_VERDICT_ALLOW:
		print_listed(explanation, entry);
		return;
	case WEIR_VERDICT_PASS:
		if (explanation->delay_ns)
			line("verdict", "passes, %s later", format_time(explanation->delay_ns, words));
		else
			line("verdict", "passes");
		return;
	default:
		line("verdict", "%s: %s", explanation->passes ? "passes" : "DROPPED",
		     packet_words[explanation->verdict]);
	}
}

static void print_resources(const struct weir_explanation *explanation)
{
	int column = LABEL_CHARACTERS;

	if (!explanation->resource_count) {
		line("resources", "none");
		return;
	}
	printf("  %-*s", LABEL_CHARACTERS - 2, "resources");
	for (size_t i = 0; i < explanation->resource_count; i++) {
		const int width = (int)strlen(explanation->resources[i]) + 2;

		if (i && column + width > LINE_CHARACTERS) {
			printf("\n%*s", LABEL_CHARACTERS, "");
			column = LABEL_CHARACTERS;
		}
		printf("%s%s", explanation->resources[i], i + 1 < explanation->resource_count ? ", " : "\n");
		column += width;
	}
}

/* ", because ...": the reason for the current threshold. */
static void print_threshold(const struct weir_explanation *explanation, const struct weir_explained_rule *rule)
{
	const double written = rule->info->threshold_micro / 1e6;
	const struct weir_controller_report *controller = &explanation->controller;
	char words[WEIR_WORDS_BYTES];

	if (weir_is_breaker(rule->info) || weir_kind_of_info(rule->info)->metric == WEIR_METRIC_SIGNAL)
		return;
	switch (rule->reason) {
	case WEIR_THRESHOLD_AS_WRITTEN:
		line("threshold", "%llu %s, as written", (unsigned long long)rule->threshold, unit_of(rule));
		return;
	case WEIR_THRESHOLD_OVERRIDE:
		if (rule->is_override_by_label)
			line("threshold", "%llu %s, by the override for its label", (unsigned long long)rule->threshold,
			     unit_of(rule));
		else
			line("threshold", "%llu %s, by the override for a /%u", (unsigned long long)rule->threshold,
			     unit_of(rule), rule->override_bits);
		return;
	case WEIR_THRESHOLD_WARMING:
		line("threshold", "%llu %s, %.0f %% of the configured threshold: %s",
		     (unsigned long long)rule->threshold, unit_of(rule),
		     written > 0 ? 100 * rule->threshold / written : 0,
		     rule->stored < rule->stored_warning ? "warm" : "warming up");
		line("", "%llu of %llu tokens stored while idle; warm below %llu", (unsigned long long)rule->stored,
		     (unsigned long long)rule->stored_max, (unsigned long long)rule->stored_warning);
		return;
	case WEIR_THRESHOLD_BY_MEMORY:
		line("threshold", "%llu %s, with %llu bytes of memory in use", (unsigned long long)rule->threshold,
		     unit_of(rule), (unsigned long long)controller->used_bytes);
		line("", "%llu up to %llu bytes, %llu from %llu on", (unsigned long long)rule->info->memory.low_units,
		     (unsigned long long)rule->info->memory.low_mark_bytes,
		     (unsigned long long)rule->info->memory.high_units,
		     (unsigned long long)rule->info->memory.high_mark_bytes);
		return;
	case WEIR_THRESHOLD_NO_READING:
		line("threshold", "%llu %s: the memory in use cannot be read", (unsigned long long)rule->threshold,
		     unit_of(rule));
		return;
	case WEIR_THRESHOLD_SAFE:
		if (controller->state == WEIR_CONTROLLER_STALE)
			line("threshold", "%llu %s, the safe value: the controller has been silent for %s",
			     (unsigned long long)rule->threshold, unit_of(rule),
			     format_time(controller->stale_ns, words));
		else
			line("threshold", "%llu %s, the safe value: no controller runs ('weir control')",
			     (unsigned long long)rule->threshold, unit_of(rule));
		return;
	case WEIR_THRESHOLD_SHARED:
		line("threshold", "%llu %s, this host's share ('weir cluster status')",
		     (unsigned long long)rule->threshold, unit_of(rule));
		return;
	case WEIR_THRESHOLD_UNKNOWN:
		line("threshold", "moves: the controller computes it");
		return;
	}
}

/* Print the bucket numbers, as many per line as fit. */
static void print_buckets(const struct weir_explained_rule *rule)
{
	int column = LABEL_CHARACTERS;
	const uint64_t bucket_ns = rule->bucket_count > 1 ? rule->buckets[1].begins_ns - rule->buckets[0].begins_ns : 0;
	char words[WEIR_WORDS_BYTES];

	if (rule->bucket_count < 2)
		return;
	line("", "buckets of %s, oldest first:", format_time(bucket_ns, words));
	printf("%*s", LABEL_CHARACTERS - 1, "");
	for (uint32_t i = 0; i < rule->bucket_count; i++) {
		const bool is_ahead = rule->buckets[i].begins_ns > 0;
		const bool is_first_ahead = is_ahead && i && rule->buckets[i - 1].begins_ns <= 0;
		const int width = snprintf(words, sizeof(words), " %s%llu", is_first_ahead ? "| " : "",
					   (unsigned long long)rule->buckets[i].units);

		if (column + width > LINE_CHARACTERS) {
			printf("\n%*s", LABEL_CHARACTERS - 1, "");
			column = LABEL_CHARACTERS;
		}
		column += printf("%s", words);
	}
	putchar('\n');
}

static void print_window(const struct weir_explained_rule *rule)
{
	const bool is_shadow = rule->info->relation == WEIR_RELATION_ASSOCIATED;

	if (!rule->has_window)
		return;
	line(is_shadow ? "read" : "window", "%llu of %llu %s%s%s", (unsigned long long)rule->units,
	     (unsigned long long)rule->threshold, unit_of(rule), is_shadow ? ", passed on " : "",
	     is_shadow ? rule->info->ref_resource_name : "");
	if (rule->occupied)
		line("", "%llu more occupy later buckets (after the '|')", (unsigned long long)rule->occupied);
	if (rule->units || rule->occupied)
		print_buckets(rule);
}

/* Rounded down, but what is less than one packet is not nothing. */
static const char *format_level(double level, char words[WEIR_WORDS_BYTES])
{
	if (level < 10)
		snprintf(words, WEIR_WORDS_BYTES, "%.2g", level);
	else
		snprintf(words, WEIR_WORDS_BYTES, "%llu", (unsigned long long)level);
	return words;
}

/* Who shares the threshold of a rule with fairBy, and what the packet's sender may have of it. */
static void print_shares(const struct weir_explained_rule *rule)
{
	const struct weir_fair_use *shares = &rule->shares;
	char level[WEIR_WORDS_BYTES], interval[WEIR_WORDS_BYTES];

	if (!rule->has_shares)
		return;
	format_time(rule->info->identity.interval_ns, interval);
	if (!rule->is_contended) {
		line("share", "not contended: whoever shares it gets all he wants");
	} else if (!shares->level || !shares->limit || !shares->children) {
		line("share", "contended; the level is not known yet");
	} else {
		line("share", "one of %llu; each may have %s %s per %s now,", (unsigned long long)shares->children,
		     format_level(shares->level, level), unit_of(rule), interval);
		line("", "since all together want %.1f times what there is", (double)shares->offered / shares->limit);
	}
	if (rule->child.weight)
		line("", "this one wants %llu%s", (unsigned long long)rule->child.offered,
		     rule->child.is_new ? "; it is new, and new ones share fewer levels" : "");
	if (rule->child.weight > 1 && shares->level)
		line("", "its weight is %u, so it may have %s", rule->child.weight,
		     format_level(shares->level * rule->child.weight, level));
}

static void print_used(const struct weir_explained_rule *rule)
{
	char words[WEIR_WORDS_BYTES];

	print_window(rule);
	print_shares(rule);
	if (rule->has_plan && rule->tat_ns > 0)
		line("TAT", "the latest packet leaves in %s", format_time(rule->tat_ns, words));
	if (rule->has_tokens)
		line("bucket", "%.3f tokens of %.3f", rule->tokens, rule->info->burst_micro / 1e6);
	if (rule->has_connections)
		line("open", "%llu connections of %llu", (unsigned long long)rule->connections,
		     (unsigned long long)rule->threshold);
	if (rule->learned)
		line("learned", "%llu connection%s so far whose opening was not seen: they pass and do not count",
		     (unsigned long long)rule->learned, weir_plural(rule->learned));
	if (rule->has_breaker)
		line("breaker", "%s, by %s", weir_format_breaker_state(&rule->breaker, words),
		     weir_breaker_strategy_names[rule->info->breaker.strategy % WEIR_BREAKER_STRATEGIES]);
	if (rule->penalty_left_ns)
		line("penalty", "for %s more ('weir release' ends it)", format_time(rule->penalty_left_ns, words));
}

static void print_answer(const struct weir_explained_rule *rule)
{
	char words[WEIR_WORDS_BYTES];

	if (rule->has_left && rule->left >= WEIR_EXPLAINED_MOST)
		line("left", "%u packets like this one, or more", WEIR_EXPLAINED_MOST);
	else if (rule->has_left)
		line("left", "%llu packet%s like this one", (unsigned long long)rule->left, weir_plural(rule->left));
	if (rule->frees_ns == WEIR_SANDBOX_RUN_NEVER)
		line("frees", "never for a packet like this");
	else if (rule->frees_ns)
		line("frees", "in %s, if quiet", format_time(rule->frees_ns, words));
	if (rule->delay_ns)
		line("delay", "%s", format_time(rule->delay_ns, words));
}

static const char *format_ago(uint64_t now_ns, uint64_t then_ns, char words[WEIR_WORDS_BYTES])
{
	return format_time(now_ns > then_ns ? now_ns - then_ns : 0, words);
}

static void print_lost(const struct weir_explanation *explanation, const struct weir_explained_rule *rule)
{
	const struct weir_dropped_flow *lost = &rule->lost;
	char first[WEIR_WORDS_BYTES], last[WEIR_WORDS_BYTES];

	if (lost->packets)
		line(lost->is_observed ? "would lose" : "lost",
		     "%s%llu packet%s, %s%llu bytes: the first %s ago, the latest %s ago",
		     lost->is_estimated ? "~" : "", (unsigned long long)lost->packets, weir_plural(lost->packets),
		     lost->is_estimated ? "~" : "", (unsigned long long)lost->bytes,
		     format_ago(explanation->now_ns, lost->first_ns, first),
		     format_ago(explanation->now_ns, lost->last_ns, last));
}

/* The interface, if it was named and is in the current network namespace. */
static const struct weir_key_labels *labels_of(const struct weir_explanation *explanation)
{
	return explanation->opened ? explanation->opened->labels : weir_object_labels(explanation->object);
}

static const char *interface_of(const struct weir_explained_rule *rule, char name[IF_NAMESIZE])
{
	return if_indextoname(rule->key.ifindex, name);
}

static void print_rule(const struct weir_explanation *explanation, const struct weir_explained_rule *rule)
{
	char words[WEIR_WORDS_BYTES], name[IF_NAMESIZE];
	const char *answer = rule->missing	    ? "?"
			     : rule->admits	    ? "admits"
			     : rule->info->observes ? "would block (observes)"
						    : "BLOCKS";

	printf("\nrule '%s' %s: %s\n", rule->info->name, answer,
	       weir_format_limit(rule->info, labels_of(explanation), words));
	if (rule->place.file)
		line("written", "%s:%d", rule->place.file, rule->place.line);
	if (rule->missing) {
		line("flow", "needs %s", weir_format_options(rule->missing, words));
		return;
	}
	if (!rule->info->system)
		line("flow", "%s",
		     rule->info->identity.key_fields
			     ? weir_format_key(&rule->info->identity, &rule->key, interface_of(rule, name),
					       labels_of(explanation), words)
			     : "the whole resource");
	print_threshold(explanation, rule);
	if (!explanation->is_live) {
		if (rule->frees_ns == WEIR_SANDBOX_RUN_NEVER)
			line("frees", "never for a packet like this");
		return;
	}
	print_used(rule);
	print_answer(rule);
	print_lost(explanation, rule);
}

void weir_print_explanation(const struct weir_explanation *explanation, const struct weir_timed_order *entry,
			    const char *packet)
{
	printf("%s\n", packet);
	if (explanation->is_live)
		line("instance", "%s", explanation->instance);
	else
		line("of", "these files, with empty windows");
	print_verdict(explanation, entry);
	print_resources(explanation);
	for (size_t i = 0; i < explanation->rule_count; i++)
		print_rule(explanation, &explanation->rules[i]);
}

/* ---- JSON ---- */

static const char *const reason_names[] = {
	[WEIR_THRESHOLD_AS_WRITTEN] = "asWritten", [WEIR_THRESHOLD_OVERRIDE] = "override",
	[WEIR_THRESHOLD_WARMING] = "warmUp",	   [WEIR_THRESHOLD_BY_MEMORY] = "memory",
	[WEIR_THRESHOLD_NO_READING] = "noReading", [WEIR_THRESHOLD_SAFE] = "controllerSilent",
	[WEIR_THRESHOLD_SHARED] = "share",	   [WEIR_THRESHOLD_UNKNOWN] = "unknown",
};

/* The fields, by their names in rule files. */
static json_t *field_names(uint32_t fields)
{
	json_t *names = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (fields & options[i].field)
			weir_json_append(&names, json_string(options[i].name));
	return names;
}

static json_t *json_window(const struct weir_explained_rule *rule)
{
	json_t *buckets = json_array();

	for (uint32_t i = 0; i < rule->bucket_count; i++)
		weir_json_append(&buckets, json_pack("{s:I, s:I}", "beginsInNs", (json_int_t)rule->buckets[i].begins_ns,
						     "units", (json_int_t)rule->buckets[i].units));
	return json_pack("{s:I, s:I, s:I, s:o}", "units", (json_int_t)rule->units, "occupied",
			 (json_int_t)rule->occupied, "leased", (json_int_t)rule->leased, "buckets", buckets);
}

static json_t *json_threshold(const struct weir_explained_rule *rule)
{
	json_t *threshold =
		json_pack("{s:s, s:o}", "reason", reason_names[rule->reason], "units",
			  rule->reason == WEIR_THRESHOLD_UNKNOWN ? json_null() : json_integer(rule->threshold));

	if (rule->reason == WEIR_THRESHOLD_OVERRIDE && !rule->is_override_by_label)
		json_object_set_new(threshold, "prefixBits", json_integer(rule->override_bits));
	if (rule->has_stored) {
		json_object_set_new(threshold, "storedTokens", json_integer(rule->stored));
		json_object_set_new(threshold, "storedTokensMax", json_integer(rule->stored_max));
		json_object_set_new(threshold, "warmBelowTokens", json_integer(rule->stored_warning));
	}
	return threshold;
}

static json_t *json_shares(const struct weir_explained_rule *rule)
{
	const struct weir_fair_use *shares = &rule->shares;
	json_t *fields = json_pack("{s:b}", "isContended", rule->is_contended);

	if (rule->is_contended) {
		json_object_set_new(fields, "level", json_real(shares->level));
		json_object_set_new(fields, "offered", json_integer(shares->offered));
		json_object_set_new(fields, "children", json_integer(shares->children));
		json_object_set_new(fields, "newChildren", json_integer(shares->newcomers));
		json_object_set_new(fields, "aboveLevel", json_integer(shares->above));
	}
	if (rule->child.weight)
		json_object_set_new(fields, "child",
				    json_pack("{s:I, s:i, s:b}", "offered", (json_int_t)rule->child.offered, "weight",
					      (int)rule->child.weight, "isNew", rule->child.is_new));
	return fields;
}

/* Add what the flow has used. With a rule file instead of an instance, nothing has been used. */
static void add_used(const struct weir_explained_rule *rule, json_t *fields)
{
	if (rule->has_window)
		json_object_set_new(fields, "used", json_window(rule));
	if (rule->has_shares)
		json_object_set_new(fields, "fairShare", json_shares(rule));
	if (rule->has_plan)
		json_object_set_new(fields, "tatInNs", json_integer(rule->tat_ns));
	if (rule->has_tokens)
		json_object_set_new(fields, "tokens", json_real(rule->tokens));
	if (rule->has_connections) {
		json_object_set_new(fields, "connections", json_integer(rule->connections));
		json_object_set_new(fields, "learnedConnections", json_integer(rule->learned));
	}
	if (rule->has_breaker)
		json_object_set_new(fields, "breaker",
				    weir_figures_describe(weir_describe_breaker, NULL, &rule->breaker));
	if (rule->info->penalty_ms)
		json_object_set_new(fields, "penaltyLeftNs", json_integer(rule->penalty_left_ns));
	json_object_set_new(fields, "delayNs", json_integer(rule->delay_ns));
	if (rule->has_left) {
		json_object_set_new(fields, "leftPackets", json_integer(rule->left));
		json_object_set_new(fields, "leftIsMore", json_boolean(rule->left >= WEIR_EXPLAINED_MOST));
	}
}

/* null if nothing is known */
static json_t *json_lost(const struct weir_dropped_flow *lost)
{
	if (!lost->packets)
		return json_null();
	return json_pack("{s:b, s:I, s:I, s:b, s:I, s:I, s:o, s:o}", "wouldDrop", lost->is_observed, "packets",
			 (json_int_t)lost->packets, "bytes", (json_int_t)lost->bytes, "isEstimated", lost->is_estimated,
			 "firstNs", (json_int_t)lost->first_ns, "lastNs", (json_int_t)lost->last_ns, "firstTime",
			 weir_json_time(lost->first_ns), "lastTime", weir_json_time(lost->last_ns));
}

static json_t *json_rule(const struct weir_explanation *explanation, const struct weir_explained_rule *rule)
{
	json_t *fields = weir_json_rule(rule->info, labels_of(explanation));
	char name[IF_NAMESIZE];

	if (rule->place.file) {
		json_object_set_new(fields, "file", weir_json_text(rule->place.file));
		json_object_set_new(fields, "line", json_integer(rule->place.line));
	}
	if (rule->missing) {
		json_object_set_new(fields, "needs", field_names(rule->missing));
		return fields;
	}
	json_object_set_new(fields, "flow",
			    rule->info->identity.key_fields
				    ? weir_json_key(&rule->info->identity, &rule->key, interface_of(rule, name),
						    labels_of(explanation))
				    : json_object());
	json_object_set_new(fields, "inForce", json_threshold(rule));
	json_object_set_new(fields, "admits", json_boolean(rule->admits));
	json_object_set_new(fields, "freesInNs",
			    rule->frees_ns == WEIR_SANDBOX_RUN_NEVER ? json_null() : json_integer(rule->frees_ns));
	if (explanation->is_live) {
		add_used(rule, fields);
		json_object_set_new(fields, "lost", json_lost(&rule->lost));
	}
	return fields;
}

static json_t *json_entry(const struct weir_timed_order *entry)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	return entry ? json_pack("{s:s, s:s?}", "source", weir_format_prefix(&entry->prefix, text), "reason",
				 entry->reason[0] ? entry->reason : NULL)
		     : json_null();
}

json_t *weir_json_explanation(const struct weir_explanation *explanation, const struct weir_timed_order *entry,
			      json_t *packet)
{
	const bool is_known = !explanation->unknown;
	/* A timed entry decides, which ends; a list never does. */
	const bool list_ends =
		(explanation->verdict == WEIR_VERDICT_DENY || explanation->verdict == WEIR_VERDICT_ALLOW) &&
		explanation->list_ends_ns != WEIR_SANDBOX_RUN_NEVER;
	json_t *resources = json_array(), *rules = json_array();
	const char *answer = NULL;

	for (size_t i = 0; i < explanation->resource_count; i++)
		weir_json_append(&resources, json_string(explanation->resources[i]));
	for (size_t i = 0; i < explanation->rule_count; i++)
		weir_json_append(&rules, json_rule(explanation, &explanation->rules[i]));
	if (is_known && explanation->answer && explanation->answer < WEIR_ON_BLOCK_COUNT)
		answer = weir_on_block_names[explanation->answer];
	return json_pack("{s:s?, s:I, s:o, s:o, s:s?, s:o, s:s?, s:s*, s:I, s:o, s:o, s:o, s:o, s:o}", "instance",
			 explanation->instance, "nowNs", (json_int_t)explanation->now_ns, "nowTime",
			 weir_json_time(explanation->now_ns), "packet", packet, "verdict",
			 is_known ? weir_verdict_names[explanation->verdict] : NULL, "passes",
			 is_known ? json_boolean(explanation->passes) : json_null(), "rule",
			 is_known && explanation->blocked_by ? explanation->blocked_by->name : NULL, "answer", answer,
			 "delayNs", (json_int_t)explanation->delay_ns, "listEndsInNs",
			 list_ends ? json_integer(explanation->list_ends_ns) : json_null(), "listEntry",
			 json_entry(entry), "dependsOn", field_names(explanation->unknown), "resources", resources,
			 "rules", rules);
}
