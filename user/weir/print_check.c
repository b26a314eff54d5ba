// SPDX-License-Identifier: GPL-2.0-only
#include "weir/print_check.h"

#include <stdio.h>

#include "base/util.h"
#include "compile/compile.h"
#include "kind/kind.h"
#include "rules/field_rows.h"
#include "rules/scalars.h"
#include "thresholds/token_rates.h"
#include "words/words.h"

#define NSEC_PER_MSEC 1000000ull

/* From a long list, show the first few words and the number of the others. */
#define WORDS_SHOWN 8

static void print_words(const json_t *words)
{
	size_t count = json_array_size(words);

	if (json_is_string(words)) /* a field that cannot be a list */
		fputs(json_string_value(words), stdout);
	for (size_t i = 0; i < count && i < WORDS_SHOWN; i++)
		printf("%s%s", i ? ", " : "", json_string_value(json_array_get(words, i)));
	if (count > WORDS_SHOWN)
		printf(" and %zu more", count - WORDS_SHOWN);
}

static void print_match(const struct weir_match *match)
{
	_cleanup_(json_decrefp) json_t *fields = weir_json_match(match);
	const char *name;
	json_t *words;
	int shown = 0;

	printf("  match  ");
	json_object_foreach(fields, name, words)
	{
		printf("%s%s ", shown++ ? "; " : "", name);
		print_words(words);
	}
	puts(shown ? "" : "every IP packet");
}

static void print_flow(const struct weir_flow *flow)
{
	_cleanup_(json_decrefp) json_t *words = weir_json_flow(flow);

	printf("  flow   ");
	if (flow->fields)
		print_words(words);
	else
		printf("the whole resource is one flow");
	putchar('\n');
}

/* " (100 Mbit/s)" for bytes per interval, the unit in which links are measured. */
static void print_bit_rate(uint64_t micro, uint64_t interval_ns)
{
	static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
	double rate = (double)micro / WEIR_MICRO * 8 * WEIR_NSEC_PER_SEC / interval_ns;
	size_t unit = 0;

	for (; rate >= 1000 && unit + 1 < ARRAY_SIZE(units); unit++)
		rate /= 1000;
	printf(" (%.4g %s)", rate, units[unit]);
}

/* "per source/24", "in all" */
static void print_whose(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	char words[WEIR_WORDS_BYTES];

	printf(" %s", weir_format_whose_rule(ruleset, rule, words));
}

static void print_time(uint64_t ns)
{
	char text[32];

	weir_format_interval(ns, text, sizeof(text));
	fputs(text, stdout);
}

/* "20/s per source/24", and how it moves. */
static void print_limit(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	const struct weir_memory_adaptive *memory = &rule->memory;
	const uint64_t micro = rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? memory->low_units * WEIR_MICRO
									       : rule->threshold_micro;
	char words[WEIR_WORDS_BYTES];

	fputs(weir_format_rate(micro, rule->interval_ns, rule->counts_bytes, words), stdout);
	print_whose(ruleset, rule);
	if (rule->counts_bytes && rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE)
		print_bit_rate(rule->threshold_micro, rule->interval_ns);
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		printf(" (down to %llu as memory in use grows from %llu to %llu bytes)",
		       (unsigned long long)memory->high_units, (unsigned long long)memory->low_mark_bytes,
		       (unsigned long long)memory->high_mark_bytes);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		printf(" (1/%u of it when cold, warm in %u s)", rule->warm_up.cold_factor, rule->warm_up.period_s);
	if (rule->cluster)
		printf("%s", rule->cluster == WEIR_CLUSTER_GLOBAL ? " for all hosts together"
								  : " times the number of hosts, together");
	if (rule->fair_by.fields)
		printf(", shared fairly %s%s",
		       weir_format_whose(&rule->fair_by, weir_resource_of(ruleset, rule)->match.families, words),
		       rule->cluster ? " on each host" : "");
}

/* The state by which packets are evaluated: TATs, or a window and where it is kept. */
static void print_evaluating(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t place)
{
	static const char *const rows[] = {"one row a CPU", "narrow rows", "wide rows", "medium rows"};
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	const struct weir_kind *kind = weir_kind_of(rule);
	char bucket[32];

	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		printf(", by the traffic of %s", ruleset->resources[rule->ref_resource].name);
	if (!weir_kind_has(kind, RULE_WINDOW)) {
		printf(", spaced evenly, ");
		if (rule->queueing_ms_max)
			printf("waits of up to %llu ms", (unsigned long long)rule->queueing_ms_max);
		else
			printf("none waits");
		return;
	}
	if (kind->has_tokens) {
		weir_format_micro(weir_tokens_burst_micro(rule, rule->threshold_micro), bucket, sizeof(bucket));
		printf(", token buckets of %s", bucket);
		return;
	}
	printf(", %s, %u bucket%s of ", weir_window_names[rule->window], rule->samples, weir_plural(rule->samples));
	print_time(rule->interval_ns / rule->samples);
	if (!rule->occupies) {
		printf(", %s", rows[weir_rows_of(image, place)->storage]);
		return;
	}
	printf(", occupies later buckets for waits below ");
	print_time(image->rules[place].queueing_ns_max);
}

static void print_breaker(const struct weir_ruleset_rule *rule)
{
	char words[WEIR_WORDS_BYTES];

	fputs(weir_format_breaker(rule, words), stdout);
	if (rule->breaker.buckets > 1)
		printf(", %u buckets", rule->breaker.buckets);
	if (rule->breaker.probes > 1)
		printf(", %u good probes close it", rule->breaker.probes);
}

static void print_answer(const struct weir_ruleset_rule *rule)
{
	if (rule->on_block)
		printf(", answers with %s", weir_answer_words[rule->on_block]);
}

static void print_rule(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t place)
{
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	const struct weir_kind *kind = weir_kind_of(rule);
	const bool is_breaker = rule->metric == WEIR_METRIC_REQUESTS;
	char words[WEIR_WORDS_BYTES], penalty[WEIR_PENALTY_BYTES];

	printf("  %s %s: ", is_breaker ? "breaker" : "rule  ", rule->name);
	if (weir_kind_has(kind, RULE_INTERVAL)) {
		print_limit(ruleset, rule);
		print_evaluating(ruleset, image, place);
	} else if (is_breaker) {
		print_breaker(rule);
		putchar(',');
		print_whose(ruleset, rule);
	} else {
		printf("%s open at once", weir_format_count(rule->threshold_micro, kind->noun, words));
		print_whose(ruleset, rule);
	}
	weir_format_penalty(rule->penalty_ms, rule->penalty_ms_max, penalty);
	fputs(penalty, stdout);
	if (rule->aggregates)
		fputs(", aggregate when full", stdout);
	if (rule->override_count)
		printf(", %zu override%s", rule->override_count, weir_plural(rule->override_count));
	print_answer(rule);
	puts(rule->observes ? ", only observes" : "");
}

static void print_system_rules(const struct weir_ruleset *ruleset)
{
	char words[WEIR_WORDS_BYTES];

	for (size_t i = 0; i < weir_count_system_rules(ruleset); i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (i == 0)
			puts("the whole host, before all other rules: TCP openings, and other protocols");
		printf("  rule   %s: drops at %s", rule->name,
		       weir_format_system(rule->system, rule->threshold_micro, rule->is_bbr, words));
		print_answer(rule);
		puts(rule->observes ? ", only observes" : "");
	}
}

static void print_memory(const struct weir_image *image, const struct weir_image_memory *memory, uint32_t cpus,
			 bool lists_parts)
{
	const struct {
		const char *what;
		uint64_t bytes;
	} parts[] = {
		{"narrow rows", memory->narrow_table},
		{"medium rows", memory->medium_table},
		{"wide rows", memory->wide_table},
		{"sharers of flows", memory->sharers},
		{"evicted rows (ghosts)", memory->row_ghosts},
		{"flows shared by all CPUs", memory->shared},
		{"connections", memory->connections},
		{"circuit breakers", memory->breakers},
		{"rows of whole resources", memory->lone_rows},
		{"counters", memory->counters},
		{"drops by flow", memory->top_drops},
		{"events", memory->events},
		{"matching", memory->matching},
		{"allow and deny lists", memory->lists},
	};

	printf("memory with %u possible CPU%s and %u flows each: %.1f MB\n", cpus, weir_plural(cpus),
	       image->flows_per_cpu, memory->total / 1e6);
	for (size_t i = 0; lists_parts && i < ARRAY_SIZE(parts); i++)
		if (parts[i].bytes)
			printf("  %-24s %10.1f MB\n", parts[i].what, parts[i].bytes / 1e6);
}

static void print_policies(const struct weir_settings *settings, bool has_out)
{
	static const char *const policies[] = {"pass", "drop"};

	printf("malformed %s, unsupported %s, nonIp %s", policies[settings->drop_malformed],
	       policies[settings->drop_unsupported], policies[settings->drop_non_ip]);
	for (size_t i = 0; i < settings->non_ip_except_count; i++) {
		char text[WEIR_ETHERTYPE_TEXT_BYTES];

		printf("%s%s", i ? ", " : " but ", weir_format_ethertypes(&settings->non_ip_except[i], text));
	}
	printf("%s unmatched %s%s\n", settings->non_ip_except_count ? ";" : ",", policies[settings->drop_unmatched],
	       has_out ? "; incoming packets only" : "");
	if (settings->observes)
		puts("mode observe: everything is evaluated and counted, nothing is dropped");
}

static void print_breakers(const struct weir_image *image)
{
	printf("circuit breakers: room for %u requests",
	       image->config.sizes[WEIR_TABLE_REQUESTS] * WEIR_REQUESTS_PER_SET);
	if (image->config.sizes[WEIR_TABLE_BREAKERS])
		printf(" of %u flows", image->config.sizes[WEIR_TABLE_BREAKERS] * WEIR_BREAKERS_PER_SET);
	printf("; a request fails after silence of ");
	print_time(image->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] * NSEC_PER_MSEC);
	putchar('\n');
}

static void print_connections(const struct weir_image *image)
{
	static const char *const states[WEIR_CONNECTION_CLASSES] = {"half-open", "open TCP", "other", "closed"};

	printf("connections: %u", image->config.sizes[WEIR_TABLE_CONNECTIONS] * WEIR_CONNECTIONS_PER_SET);
	if (image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS])
		printf(" of %u flows",
		       image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS] * WEIR_CONNECTION_FLOWS_PER_SET);
	printf("; over after silence of");
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		printf("%s ", i ? "," : "");
		print_time(image->connection_timeout_ms[i] * NSEC_PER_MSEC);
		printf(" (%s)", states[i]);
	}
	putchar('\n');
}

/* Settings that matter only to some rules, if there are such rules. */
static void print_special_settings(const struct weir_ruleset *ruleset, const struct weir_image *image)
{
	const struct weir_settings *settings = &ruleset->settings;
	bool delays = false, has_memory = false, has_moving = false, counts_connections = false, has_samples = false,
	     has_breakers = false, is_shared = false, gives_cookies = false;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		delays |= weir_kind_of(&ruleset->rules[i])->longest_wait_ns != NULL;
		counts_connections |= ruleset->rules[i].metric == WEIR_METRIC_CONCURRENCY;
		has_breakers |= ruleset->rules[i].metric == WEIR_METRIC_REQUESTS;
		has_memory |= ruleset->rules[i].strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE;
		has_moving |= ruleset->rules[i].strategy != WEIR_STRATEGY_DIRECT;
		is_shared |= ruleset->rules[i].cluster;
		gives_cookies |= ruleset->rules[i].on_block == WEIR_ON_BLOCK_COOKIE;
		has_samples |= weir_goes_by_samples(&ruleset->rules[i]);
	}
	counts_connections |= weir_tracks_connections(ruleset);
	if (delays)
		printf("throttling: %s\n", settings->paces ? "packets that must wait are held back (pace)"
							   : "packets that would have to wait pass at once (police)");
	if (has_memory)
		printf("memory in use: %s%s\n", settings->memory_cgroup ? "of cgroup " : "of the system",
		       settings->memory_cgroup ?: "");
	if (has_moving)
		printf("moving thresholds: stale after %u ms without a controller\n", settings->controller_timeout_ms);
	if (is_shared)
		printf("shared by hosts: those of cluster %s, through the store %s\n",
		       settings->cluster[WEIR_CLUSTER_NAME], settings->cluster[WEIR_CLUSTER_REDIS]);
	if (weir_any_answers(ruleset))
		printf("answers: at most %llu/s, and %llu/s cookies\n",
		       (unsigned long long)weir_answer_rate(settings, 0),
		       (unsigned long long)weir_answer_rate(settings, 1));
	if (gives_cookies)
		puts("cookies: only for listening sockets of this host; a gateway needs nft's synproxy");
	if (has_samples)
		printf("load and CPU usage: sampled by 'weir run' or 'weir control'; after %u ms without one, these "
		       "rules admit\n",
		       settings->controller_timeout_ms);
	if (counts_connections)
		print_connections(image);
	if (has_breakers)
		print_breakers(image);
	if (ruleset->listed_count)
		printf("before any rule: allowed prefixes: %u, denied: %u\n", image->allow_count, image->deny_count);
	for (size_t i = 0; i < ruleset->set_count; i++) {
		const struct weir_set *set = &ruleset->sets[i];

		printf("set %s: %zu prefix%s", set->name, set->entry_count, set->entry_count == 1 ? "" : "es");
		if (set->has_labels)
			printf(", %zu label%s", set->label_count, weir_plural(set->label_count));
		printf("%s%s\n", set->file ? ", from " : "", set->file ?: "");
	}
	putchar('\n');
}

static void print_hooks(const struct weir_ruleset *ruleset)
{
	const uint32_t in = weir_ruleset_needs(ruleset, WEIR_DIRECTION_IN);
	const uint8_t hooks = weir_ruleset_hooks(ruleset);
	char words[WEIR_NEEDS_BYTES];

	printf("hooks: ");
	if (hooks & WEIR_MATCHES_IN)
		printf("incoming packets (XDP, or tc ingress with --mode tc)%s%s%s", in ? ", for " : "",
		       weir_needs_words(in, words), hooks & WEIR_MATCHES_OUT ? "; " : "\n");
	if (hooks & WEIR_MATCHES_OUT)
		printf("outgoing packets (tc egress), for resources%s\n",
		       hooks & WEIR_MATCHES_IN ? "" : "; 'weir block' and 'weir allow' add incoming ones");
}

void weir_print_checked(const struct weir_ruleset *ruleset, const struct weir_image *image,
			const struct weir_image_memory *memory, uint32_t cpus, bool lists_memory)
{
	print_system_rules(ruleset);
	for (size_t resource = 0; resource < ruleset->resource_count; resource++) {
		printf("resource %s\n", ruleset->resources[resource].name);
		print_match(&ruleset->resources[resource].match);
		print_flow(&ruleset->resources[resource].flow);
		for (size_t i = 0; i < ruleset->rule_count; i++)
			if (ruleset->rules[i].resource == resource)
				print_rule(ruleset, image, i);
	}
	printf("%s%zu resource%s, %zu rule%s; at most %u appl%s to one packet\n", ruleset->resource_count ? "\n" : "",
	       ruleset->resource_count, weir_plural(ruleset->resource_count), ruleset->rule_count,
	       weir_plural(ruleset->rule_count), image->packet_rules_max, image->packet_rules_max == 1 ? "ies" : "y");
	print_policies(&ruleset->settings, image->config.limits_out);
	print_hooks(ruleset);
	print_special_settings(ruleset, image);
	print_memory(image, memory, cpus, lists_memory);
}
