// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way back from a rule set to a rule file: what is emitted reads as the same rule set. Asked of the compiler: both
 * come to the same image, byte for byte. And emitting what was emitted changes nothing.
 */
#include <dirent.h>
#include <string.h>

#include "../lib/random_directions.h"
#include "compile/compile.h"
#include "rules/emit.h"
#include "rules/parse.h"
#include "rules/rule.h"
#include "ruleset_bench.h"
#include "sentinel/sentinel.h"

#define SECOND 1000000000ull
#define ROUNDS 600

/* ---- the same program ---- */

static uint32_t find_ifindex(const char *name, void *data)
{
	return random_ifindex(name);
}

static struct weir_image *compile(const struct weir_ruleset *ruleset)
{
	const struct weir_compile_options options = {.cpus = 4, .now_ns = 1000 * SECOND, .ifindex = find_ifindex};
	struct weir_image *image = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	int err = weir_image_build(ruleset, &options, &image, &diag);

	if (err)
		weir_diag_print(&diag, stderr);
	assert_int_equal(err, 0);
	return image;
}

#define ASSERT_SAME(member, count) assert_memory_equal(a->member, b->member, (count) * sizeof(*a->member))

static void assert_same_image(const struct weir_image *a, const struct weir_image *b)
{
	assert_memory_equal(&a->config, &b->config, sizeof(a->config));
	assert_int_equal(a->rule_count, b->rule_count);
	assert_int_equal(a->shadow_count, b->shadow_count);
	assert_int_equal(a->override_count, b->override_count);
	assert_int_equal(a->resource_count, b->resource_count);
	assert_int_equal(a->vector_count, b->vector_count);
	assert_int_equal(a->lists.word_count, b->lists.word_count);
	assert_int_equal(a->lists.prefix_count, b->lists.prefix_count);
	ASSERT_SAME(classes, 1);
	ASSERT_SAME(vectors, a->vector_count);
	ASSERT_SAME(rules, a->rule_count + a->shadow_count);
	ASSERT_SAME(pushed, a->rule_count + a->shadow_count);
	ASSERT_SAME(resources, a->resource_count);
	ASSERT_SAME(overrides, a->override_count);
	ASSERT_SAME(prefix_nodes, a->prefix_node_count);
	ASSERT_SAME(interfaces, a->interface_count);
	ASSERT_SAME(rule_info, a->rule_slots);
	ASSERT_SAME(resource_info, a->resource_slots);
	ASSERT_SAME(lists.words, a->lists.word_count);
	ASSERT_SAME(lists.prefixes, a->lists.prefix_count);
	ASSERT_SAME(connection_timeout_ms, 1);
	assert_int_equal(a->flows_per_cpu, b->flows_per_cpu);
	assert_memory_equal(a->config.sizes, b->config.sizes, sizeof(a->config.sizes));
}

static char *emit(const struct weir_ruleset *ruleset, enum weir_form form)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	weir_ruleset_emit(ruleset, form, true, stream);
	assert_int_equal(fclose(stream), 0);
	return text;
}

static struct weir_ruleset *read_back(const char *text)
{
	struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	int err = weir_ruleset_parse("emitted", text, strlen(text), &ruleset, &diag);

	if (err) {
		weir_diag_print(&diag, stderr);
		fputs(text, stderr);
	}
	assert_int_equal(err, 0);
	return ruleset;
}

static void assert_comes_back(const struct weir_ruleset *ruleset)
{
	_cleanup_(weir_image_freep) struct weir_image *image = compile(ruleset);
	_cleanup_(weir_freep) char *first = emit(ruleset, WEIR_FORM_YAML);

	for (enum weir_form form = WEIR_FORM_YAML; form <= WEIR_FORM_JSON; form++) {
		_cleanup_(weir_freep) char *text = emit(ruleset, form), *again = NULL, *as_yaml = NULL;
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *back = read_back(text);
		_cleanup_(weir_image_freep) struct weir_image *back_image = compile(back);

		assert_same_image(image, back_image);
		again = emit(back, form);
		assert_string_equal(again, text);
		as_yaml = emit(back, WEIR_FORM_YAML);
		assert_string_equal(as_yaml, first);
	}
}

/* ---- the claims ---- */

CLAIM(random_rule_sets_come_back_as_they_are)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct random random = {.state = seed};
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = random_directed_ruleset(&random);

		ruleset->settings.ring_groups = 0; /* no file says it */
		assert_comes_back(ruleset);
	}
}

CLAIM(every_file_of_rules_comes_back_as_it_is)
{
	DIR *directory = opendir("rules");
	size_t count = 0;

	assert_non_null(directory);
	for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
		const char *end = strrchr(entry->d_name, '.');
		struct weir_diag diag = {};
		char path[300];
		const char *paths[] = {path, "rules/sentinel-resources.yaml"};
		bool is_list;

		if (!end || (strcmp(end, ".yaml") && strcmp(end, ".json")))
			continue;
		/* Lists of Sentinel's name resources that stand in a file of their own. */
		is_list = !strcmp(end, ".json");
		snprintf(path, sizeof(path), "rules/%s", entry->d_name);
		assert_int_equal(weir_ruleset_read(paths, is_list ? 2 : 1, &ruleset, &diag), 0);
		weir_diag_free(&diag);
		assert_comes_back(ruleset);
		count++;
	}
	closedir(directory);
	assert_true(count >= 15);
}

/* Every field there is, with a value that is not the usual one. */
static const char whole[] =
	"settings: {flowsPerCpu: 4096, malformed: pass, unsupported: pass, nonIp: drop, unmatched: drop,\n"
	"  nonIpExcept: [arp, mpls, llc, 0x88CD, 4660],\n"
	"  mode: observe, memory: \"cgroup:/a b\", throttling: pace, controllerTimeoutInMs: 5000,\n"
	"  cluster: {redis: \"rediss://s\", name: edge, host: a, passwordFile: /p, caFile: /c, silentFor: 2h, "
	"afterSilence: stop},\n"
	"  occupyTimeoutInMs: 100, timedEntries: 7, timedParts: {fail2ban: 3, \"007\": 4},\n"
	"  timedWhenFull: evict, answers: {rate: 5k/s, cookieRate: 7/s}, connections: 4096, connectionFlows: 512,\n"
	"  halfOpenTimeoutInMs: 2000, tcpIdleTimeoutInMs: 3000, otherIdleTimeoutInMs: 4000, closedTimeoutInMs: 5000}\n"
	"allow: [192.0.2.0/24, \"2001:db8::\", \"::/1\"]\n"
	"deny: [0.0.0.0/8]\n"
	"resources:\n"
	"- {name: \"a: #\\\" \\\\ \\u00e9\\ufeff\", flow: [source/24/56, destination, sourcePort, destinationPort,\n"
	"   protocol, vlan, interface, dscp, ttl], match: {family: [ipv4, ipv6], protocol: [tcp, 99],\n"
	"   source: 10.0.0.0/8,\n"
	"   destination: 192.0.2.1, sourcePort: [1-2, 7], destinationPort: 53, vlan: 0, dscp: ef,\n"
	"   tcpFlags: [\"syn,!ack\", fin], fragment: none, length: 64-128, ipLength: [28, 50-114], ttl: 1-5,\n"
	"   interface: [eth0, \"eth0.5\"], except: [s, \"null\"]}}\n"
	"- {name: \"null\", prioritized: true, flow: source}\n"
	"- {name: plain, flow: [source/24/56, destination, sourcePort, destinationPort, protocol, vlan, interface,\n"
	"   dscp, ttl], match: {icmpType: [8, 13-14], protocol: icmp}}\n"
	"- {name: t, flow: source, match: {protocol: udp}}\n"
	"- {name: s, match: {protocol: gre}}\n"
	"systemRules: [{metricType: Load, triggerCount: 0.5, strategy: BBR, mode: observe, onBlock: unreachable},\n"
	"  {metricType: CpuUsage, triggerCount: 0.25}, {metricType: InboundQPS, triggerCount: 100}]\n"
	"circuitBreakers:\n"
	"- {resource: \"null\", strategy: SlowRequestRatio, threshold: 0.5, retryTimeoutMs: 3000, minRequestAmount: "
	"5,\n"
	"   statIntervalMs: 1000, statSlidingWindowBucketCount: 10, maxAllowedRtMs: 50, probeNum: 3, mode: observe,\n"
	"   onBlock: reset}\n"
	"- {resource: \"null\", strategy: ErrorCount, threshold: 7, retryTimeoutMs: 1, statIntervalMs: 999}\n"
	"rules:\n"
	"- {resource: \"null\", threshold: 12.5, statIntervalInMs: 2000, sampleCount: 5, mode: observe,\n"
	"   blockDurationInMs: 100, blockDurationMaxInMs: 200,\n"
	"   overrides: [{source: 192.0.2.1, threshold: 0}, {source: \"2001:db8::/64\", threshold: 0.000001}]}\n"
	"- {name: \"yes\", resource: \"null\", metricType: Concurrency, threshold: 5, onBlock: drop, per: "
	"[destination/16/48, vlan]}\n"
	"- {name: all, resource: \"null\", threshold: 500, per: all, onBlock: cookie}\n"
	"- {resource: s, threshold: 9, window: strict, clusterMode: true,\n"
	"   clusterConfig: {thresholdType: GLOBAL, fallbackToLocalWhenFail: false}}\n"
	"- {resource: t, threshold: 1000, window: tokens, burst: 100, unit: bytes}\n"
	"- {resource: t, threshold: 10, window: tokens, burstCount: 5, overrides: [{source: 192.0.2.1, threshold: "
	"3}]}\n"
	"- {resource: plain, threshold: 90, tokenCalculateStrategy: WarmUp, warmUpPeriodSec: 9, warmUpColdFactor: 4,\n"
	"   relationStrategy: AssociatedResource, refResource: \"a: #\\\" \\\\ \\u00e9\\ufeff\", window: strict}\n"
	"- {resource: plain, tokenCalculateStrategy: MemoryAdaptive, lowMemUsageThreshold: 9, highMemUsageThreshold: "
	"3,\n"
	"   memLowWaterMarkBytes: 5, memHighWaterMarkBytes: 6, controlBehavior: Throttling, maxQueueingTimeMs: 77}\n";

/* What windows have that nothing occupies: a resource is prioritized above, and so all of those are occupied. */
static const char occupies_nothing[] = "resources: [{name: t, flow: source}]\n"
				       "rules:\n"
				       "- {resource: t, threshold: 3, whenFull: aggregate}\n"
				       "- {resource: t, threshold: 9, per: source/24/64, fairBy: [source, vlan]}\n";

static void assert_names(const char *text, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s:", name);
	if (!strstr(text, key))
		fail_msg("'%s' is a field of rule files, and not emitted", name);
}

CLAIM(every_field_there_is_comes_back)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = read_back(whole);
	_cleanup_(weir_freep) char *text = emit(ruleset, WEIR_FORM_YAML);

	assert_comes_back(ruleset);
	for (size_t i = 0; i < RULE_FIELD_COUNT; i++)
		if (i != RULE_UNIT && i != RULE_WHEN_FULL && i != RULE_FAIR_BY) /* a rate includes its unit */
			assert_names(text, weir_rule_fields[i]);
	for (size_t i = 0; i < WEIR_SETTING_COUNT; i++)
		assert_names(text, weir_setting_names[i]);
	for (size_t i = 0; i < WEIR_BREAKER_ID; i++)
		assert_names(text, weir_breaker_field_names[i]);
}

CLAIM(a_field_of_windows_that_occupy_nothing_comes_back)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = read_back(occupies_nothing);
	_cleanup_(weir_freep) char *text = emit(ruleset, WEIR_FORM_YAML);

	assert_comes_back(ruleset);
	assert_names(text, weir_rule_fields[RULE_WHEN_FULL]);
	assert_names(text, weir_rule_fields[RULE_FAIR_BY]);
}

CLAIM(a_file_is_emitted_as_one_would_write_it)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = read_back(
		"{rules: [{resource: dns, threshold: 20, name: 'per client'},\n"
		"{resource: dns, threshold: 0.50, window: strict, mode: observe}], deny: 198.51.100.0/24,\n"
		"resources: [{name: dns, match: {protocol: [udp, tcp], destinationPort: 53}, flow: source}]}");
	_cleanup_(weir_freep) char *yaml = emit(ruleset, WEIR_FORM_YAML), *json = emit(ruleset, WEIR_FORM_JSON);

	assert_string_equal(yaml, "deny:\n"
				  "  - 198.51.100.0/24\n"
				  "resources:\n"
				  "  - name: dns\n"
				  "    match:\n"
				  "      protocol: [tcp, udp]\n"
				  "      destinationPort: [53]\n"
				  "    flow: [source]\n"
				  "rules:\n"
				  "  - name: \"per client\"\n"
				  "    resource: dns\n"
				  "    rate: 20/s\n"
				  "  - name: dns#2\n"
				  "    resource: dns\n"
				  "    rate: 0.5/s\n"
				  "    window: strict\n"
				  "    mode: observe\n");
	assert_non_null(strstr(json, "{\n  \"deny\": [\n    \"198.51.100.0/24\"\n  ],\n  \"resources\": [\n    {\n"
				     "      \"name\": \"dns\",\n"));
	assert_non_null(strstr(json, "\"protocol\": [\"tcp\", \"udp\"],\n"));
	assert_non_null(strstr(json, "\"threshold\": 0.5,\n"));
}

/* People read the one and programs the other. */
CLAIM(a_rate_is_one_in_yaml_and_its_parts_in_json)
{
	static const struct {
		const char *written, *yaml, *json;
	} cases[] = {
		{"rate: 20/s", "rate: 20/s\n", "\"threshold\": 20,\n      \"statIntervalInMs\": 1000\n"},
		{"threshold: 6, statInterval: 1m", "rate: 6/min\n",
		 "\"threshold\": 6,\n      \"statIntervalInMs\": 60000\n"},
		{"rate: 2.5/1h30m", "rate: 2.5/1h30m\n", "\"statIntervalInMs\": 5400000\n"},
		{"rate: 100Mbit/s", "rate: 12.5MB/s\n", "\"threshold\": 12500000,\n"},
		{"threshold: 1500.5, unit: bytes, statInterval: 10ms", "rate: 1.5005kB/10ms\n",
		 "\"unit\": \"bytes\"\n"},
		{"rate: 0/s", "rate: 0/s\n", "\"threshold\": 0,\n"},
		{"threshold: 5, metricType: Concurrency", "threshold: 5\n", "\"threshold\": 5\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
		_cleanup_(weir_freep) char *yaml = NULL, *json = NULL;
		char text[160];

		snprintf(text, sizeof(text), "{resources: [{name: r}], rules: [{resource: r, %s}]}", cases[i].written);
		ruleset = read_back(text);
		yaml = emit(ruleset, WEIR_FORM_YAML);
		json = emit(ruleset, WEIR_FORM_JSON);
		assert_non_null(strstr(yaml, cases[i].yaml));
		assert_non_null(strstr(json, cases[i].json));
		assert_comes_back(ruleset);
	}
}

#define OUT "resources: [{name: r, match: {direction: out}}], rules: [{resource: r, threshold: 9}]"

/* What needs a hook, and what is dropped of what comes in; both come back. */
CLAIM(rules_need_a_hook_of_their_direction_and_keep_it)
{
	static const struct {
		const char *rules;
		uint32_t in; /* bits 1 << enum weir_need */
		uint8_t hooks;
		bool drops_malformed, drops_unsupported;
	} cases[] = {
		{"{" OUT "}", 0, WEIR_MATCHES_OUT, false, false},
		{"{" OUT ", settings: {malformed: pass, nonIp: pass}}", 0, WEIR_MATCHES_OUT, false, false},
		{"{" OUT ", settings: {malformed: drop}}", 1 << WEIR_NEED_SETTINGS, WEIR_MATCHES_BOTH, true, false},
		{"{" OUT ", settings: {unsupported: drop}}", 1 << WEIR_NEED_SETTINGS, WEIR_MATCHES_BOTH, false, true},
		{"{" OUT ", settings: {unmatched: drop}}", 1 << WEIR_NEED_SETTINGS, WEIR_MATCHES_BOTH, false, false},
		{"{" OUT ", settings: {nonIpExcept: [arp]}}", 1 << WEIR_NEED_SETTINGS, WEIR_MATCHES_BOTH, false, false},
		{"{" OUT ", allow: [192.0.2.1]}", 1 << WEIR_NEED_LISTS, WEIR_MATCHES_BOTH, true, true},
		{"{" OUT ", systemRules: [{metricType: InboundQPS, triggerCount: 9}]}", 1 << WEIR_NEED_SYSTEM,
		 WEIR_MATCHES_BOTH, true, true},
		{"{" OUT ", circuitBreakers: [{resource: r, strategy: ErrorCount, threshold: 1, statIntervalMs: 1000, "
		 "retryTimeoutMs: 1000}]}",
		 1 << WEIR_NEED_ANSWERS, WEIR_MATCHES_BOTH, false, false},
		{"{resources: [{name: r}], rules: [{resource: r, threshold: 9}]}", 1 << WEIR_NEED_RESOURCES,
		 WEIR_MATCHES_IN, true, true},
		{"{resources: [{name: r, match: {direction: both}}], rules: [{resource: r, threshold: 9}]}",
		 1 << WEIR_NEED_RESOURCES, WEIR_MATCHES_BOTH, true, true},
		{"{settings: {mode: observe}}", 0, WEIR_MATCHES_IN, true, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = read_back(cases[i].rules);

		assert_int_equal(weir_ruleset_needs(ruleset, WEIR_DIRECTION_IN), cases[i].in);
		assert_int_equal(weir_ruleset_hooks(ruleset), cases[i].hooks);
		assert_int_equal(ruleset->settings.drop_malformed, cases[i].drops_malformed);
		assert_int_equal(ruleset->settings.drop_unsupported, cases[i].drops_unsupported);
		assert_comes_back(ruleset);
	}
}

CLAIM(a_rule_set_without_rules_is_no_empty_file)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = read_back("{}");
	_cleanup_(weir_freep) char *yaml = emit(ruleset, WEIR_FORM_YAML), *json = emit(ruleset, WEIR_FORM_JSON);

	assert_string_equal(yaml, "rules: []\n");
	assert_string_equal(json, "{\n  \"rules\": []\n}\n");
	assert_comes_back(ruleset);
}

int main(void)
{
	weir_use_foreign_reader(&weir_sentinel_reader);
	return run_claims(NULL, NULL);
}
