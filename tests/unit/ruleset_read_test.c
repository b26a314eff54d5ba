// SPDX-License-Identifier: GPL-2.0-only
/* Rule files: what they may say, and what several of them say together. */
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ruleset_bench.h"

/* ---- what is read ---- */

BENCH_CLAIM(defaults_are_those_of_the_rules_reference)
{
	const struct weir_ruleset_rule *rule;

	assert_reads(bench, "resources: [{name: r}]\nrules: [{resource: r, threshold: 5}]\n");
	rule = &bench->ruleset->rules[0];
	assert_string_equal(rule->name, "r#1");
	assert_true(rule->threshold_micro == 5 * WEIR_MICRO);
	assert_true(rule->interval_ns == 1000000000);
	assert_int_equal(rule->samples, 10);
	assert_int_equal(rule->window, WEIR_WINDOW_LEAP);
	assert_false(rule->counts_bytes);
	assert_false(rule->observes);
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 262144);
	assert_true(bench->ruleset->settings.drop_malformed);
	assert_true(bench->ruleset->settings.drop_unsupported);
	assert_false(bench->ruleset->settings.drop_non_ip);
	assert_false(bench->ruleset->settings.drop_unmatched);
	assert_false(bench->ruleset->settings.paces);
	assert_null(bench->ruleset->settings.memory_cgroup);
	assert_int_equal(bench->ruleset->settings.controller_timeout_ms, 3000);
	assert_int_equal(bench->ruleset->resources[0].flow.fields, 0);
	assert_false(bench->ruleset->resources[0].match.has_protocol);
}

BENCH_CLAIM(every_field_of_a_rule_is_read)
{
	const struct weir_ruleset_rule *rule;

	assert_reads(bench,
		     "settings: {flowsPerCpu: 512, malformed: pass, unsupported: pass, mode: observe,\n"
		     "  memory: system, throttling: police}\n"
		     "resources: [{name: q}, {name: r}]\n"
		     "rules:\n"
		     "- {name: n, resource: r, threshold: 20000.25, statIntervalInMs: 86400000, sampleCount: 9,\n"
		     "   tokenCalculateStrategy: 0, controlBehavior: Reject, relationStrategy: CurrentResource,\n"
		     "   unit: bytes, window: smooth, mode: observe}\n");
	rule = &bench->ruleset->rules[0];
	assert_string_equal(rule->name, "n");
	assert_int_equal(rule->resource, 1);
	assert_true(rule->threshold_micro == 20000250000);
	assert_true(rule->interval_ns == 86400ull * 1000000000);
	assert_int_equal(rule->samples, 9);
	assert_int_equal(rule->window, WEIR_WINDOW_SMOOTH);
	assert_true(rule->counts_bytes);
	assert_true(rule->observes);
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 512);
	assert_false(bench->ruleset->settings.drop_malformed);
	assert_false(bench->ruleset->settings.drop_unsupported);
	assert_true(bench->ruleset->settings.observes);
}

BENCH_CLAIM(rate_is_threshold_interval_and_unit_in_one)
{
	const struct weir_ruleset_rule *rules;

	assert_reads(bench, RESOURCES
		     "rules:\n"
		     "- {resource: dns, rate: 100Mbit/s}\n"
		     "- {resource: dns, threshold: 12500000, statIntervalInMs: 1000, unit: bytes, per: source}\n"
		     "- {resource: dns, rate: 6/min}\n"
		     "- {resource: dns, threshold: 6, statInterval: 1m, per: source}\n"
		     "- {resource: dns, rate: 10MB/s, window: tokens, burst: 64KiB}\n"
		     "- {resource: dns, rate: 5k/10s, tokenCalculateStrategy: WarmUp, warmUpPeriod: 2m}\n"
		     "- {resource: dns, rate: 5/s, controlBehavior: Throttling, maxQueueingTime: 2s}\n");
	rules = bench->ruleset->rules;
	for (size_t i = 0; i < 4; i += 2) {
		assert_true(rules[i].threshold_micro == rules[i + 1].threshold_micro);
		assert_true(rules[i].interval_ns == rules[i + 1].interval_ns);
		assert_int_equal(rules[i].counts_bytes, rules[i + 1].counts_bytes);
	}
	assert_true(rules[0].counts_bytes && !rules[2].counts_bytes);
	assert_true(rules[4].burst_micro == 65536 * WEIR_MICRO);
	assert_true(rules[5].interval_ns == 10000000000);
	assert_int_equal(rules[5].warm_up.period_s, 120);
	assert_int_equal(rules[6].queueing_ms_max, 2000);
}

BENCH_CLAIM(the_longest_penalty_may_be_the_first)
{
	assert_reads(bench,
		     RESOURCES "rules: [{resource: dns, rate: 5/s, blockDuration: 10s, blockDurationMax: 10s}]\n");
	assert_int_equal(bench->ruleset->rules[0].penalty_ms, 10000);
	assert_int_equal(bench->ruleset->rules[0].penalty_ms_max, 10000);
}

BENCH_CLAIM(names_of_services_and_of_icmp_types_are_numbers)
{
	const struct weir_match *match;

	assert_reads(bench, "resources:\n"
			    "- {name: a, match: {protocol: udp, destinationPort: [dns, 5353], sourcePort: ntp}}\n"
			    "- {name: b, match: {protocol: icmp, icmpType: [echo-request, 13]}}\n"
			    "- {name: c, match: {icmpType: echo-reply, protocol: icmpv6}}\n"
			    "- {name: d, match: {protocol: [icmp, icmpv6], family: ipv6, icmpType: time-exceeded}}\n"
			    "rules: [{resource: a, rate: 5/s}]\n");
	match = &bench->ruleset->resources[0].match;
	assert_int_equal(match->destination_port_count, 2);
	assert_int_equal(match->destination_port[0].low, 53);
	assert_int_equal(match->destination_port[0].high, 53);
	assert_int_equal(match->source_port[0].low, 123);
	match = &bench->ruleset->resources[1].match;
	assert_int_equal(match->icmp_type_count, 2);
	assert_int_equal(match->icmp_type[0].low, 8);
	assert_int_equal(match->icmp_type[1].low, 13);
	assert_int_equal(bench->ruleset->resources[2].match.icmp_type[0].low, 129);
	assert_int_equal(bench->ruleset->resources[3].match.icmp_type[0].high, 3);
}

BENCH_CLAIM(every_time_may_bring_its_unit)
{
	const struct weir_settings *settings;
	const struct weir_ruleset_rule *rules;

	assert_reads(bench, "settings: {controllerTimeout: 5s, halfOpenTimeout: 3s, tcpIdleTimeout: 1h,\n"
			    "           otherIdleTimeout: 90s, closedTimeout: 1m}\n" RESOURCES
			    "rules: [{resource: dns, rate: 5/s, blockDuration: 10s, blockDurationMax: 1h}]\n"
			    "circuitBreakers: [{resource: web, strategy: SlowRequestRatio, threshold: 0.5,\n"
			    "  statInterval: 10s, retryTimeout: 1m, maxAllowedRt: 500ms, minRequestAmount: 1k}]\n");
	settings = &bench->ruleset->settings;
	rules = bench->ruleset->rules;
	assert_int_equal(settings->controller_timeout_ms, 5000);
	assert_int_equal(settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF], 3000);
	assert_int_equal(settings->connection_timeout_ms[1], 3600000);
	assert_int_equal(settings->connection_timeout_ms[2], 90000);
	assert_int_equal(settings->connection_timeout_ms[3], 60000);
	assert_int_equal(rules[0].penalty_ms, 10000);
	assert_int_equal(rules[0].penalty_ms_max, 3600000);
	assert_true(rules[1].breaker.interval_ns == 10000000000);
	assert_true(rules[1].breaker.retry_ns == 60000000000);
	assert_true(rules[1].breaker.max_rt_ns == 500000000);
	assert_int_equal(rules[1].breaker.min_requests, 1000);
}

BENCH_CLAIM(counts_and_bytes_may_have_prefixes)
{
	const struct weir_ruleset_rule *rule;

	assert_reads(bench,
		     "settings: {flowsPerCpu: 64Ki, timedEntries: 1M, connections: 256Ki, connectionFlows: 4Ki}\n"
		     "resources: [{name: dns, flow: source}, {name: web}]\n"
		     "rules:\n- {resource: dns, threshold: 1.5k, overrides: [{source: 10.0.0.0/8, threshold: 2M}]}\n"
		     "- {resource: web, metricType: Concurrency, threshold: 20k}\n"
		     "- {resource: web, unit: bytes, tokenCalculateStrategy: MemoryAdaptive, "
		     "lowMemUsageThreshold: 80Mbit,\n   highMemUsageThreshold: 1MB, memLowWaterMarkBytes: 1.5GiB, "
		     "memHighWaterMarkBytes: 3G}\n");
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 65536);
	assert_int_equal(bench->ruleset->settings.timed_entries, 1000000);
	assert_int_equal(bench->ruleset->settings.connections, 262144);
	assert_int_equal(bench->ruleset->settings.connection_flows, 4096);
	rule = bench->ruleset->rules;
	assert_true(rule[0].threshold_micro == 1500 * WEIR_MICRO);
	assert_true(rule[0].overrides[0].threshold_micro == 2000000 * WEIR_MICRO);
	assert_true(rule[1].threshold_micro == 20000 * WEIR_MICRO);
	assert_true(rule[2].memory.low_units == 10000000);
	assert_true(rule[2].memory.high_units == 1000000);
	assert_true(rule[2].memory.low_mark_bytes == 1610612736);
	assert_true(rule[2].memory.high_mark_bytes == 3000000000);
}

BENCH_CLAIM(one_anchored_value_means_what_each_of_its_fields_says)
{
	assert_reads(bench, RESOURCES "rules: [{resource: dns, threshold: 1, statInterval: &t 1m}, "
				      "{resource: web, threshold: 1, statInterval: *t}]\n");
	assert_true(bench->ruleset->rules[1].interval_ns == 60000000000);
	assert_int_equal(read_texts(bench,
				    RESOURCES "rules: [{resource: dns, threshold: 1, statInterval: &t 1m}, "
					      "{resource: dns, threshold: 1, statIntervalInMs: *t}]\n",
				    NULL, NULL),
			 -EINVAL);
	assert_string_equal(bench->diag.entries[0].message, "statIntervalInMs: '1m' is not a whole number");
}

BENCH_CLAIM(one_setting_may_be_written_in_two_ways)
{
	static const char rules[] = RESOURCES "rules: [{resource: dns, threshold: 1}]\n";

	assert_int_equal(read_texts(bench, rules, "settings: {controllerTimeout: 5s, flowsPerCpu: 1Ki}\n",
				    "settings: {controllerTimeoutInMs: 5000, flowsPerCpu: 1024}\n"),
			 0);
	assert_int_equal(bench->diag.count, 0);
	assert_int_equal(read_texts(bench, rules, "settings: {controllerTimeout: 5s}\n",
				    "settings: {controllerTimeoutInMs: 5001}\n"),
			 -EINVAL);
}

BENCH_CLAIM(numbers_in_lists_of_sentinels_are_plain)
{
	static const char *const lists[] = {
		"[{resource: dns, threshold: 20k}]",
		"[{resource: dns, threshold: \"5\"}]",
		"[{resource: dns, threshold: 5, statIntervalInMs: 1k}]",
		"[{resource: dns, tokenCalculateStrategy: 2, lowMemUsageThreshold: 1k, highMemUsageThreshold: 1,\n"
		"memLowWaterMarkBytes: 1, memHighWaterMarkBytes: 2}]",
		"[{resource: dns, strategy: 2, threshold: 5, retryTimeoutMs: 1, statIntervalMs: 1000, "
		"minRequestAmount: 1k}]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		assert_int_equal(read_texts(bench, RESOURCES, lists[i], NULL), -EINVAL);
}

/* Who asks for it over SSH is shut out. */
BENCH_CLAIM(drop_of_all_that_is_unmatched_is_warned_of)
{
	static const char rules[] = "settings: {unmatched: drop}\nresources: [{name: q}]\n"
				    "rules: [{resource: q, threshold: 1}]\n";

	assert_int_equal(read_texts(bench, rules, NULL, NULL), 0);
	assert_true(bench->ruleset->settings.drop_unmatched);
	assert_false(bench->ruleset->settings.observes);
	assert_int_equal(bench->diag.count, 1);
	assert_string_equal(bench->diag.entries[0].message,
			    "'unmatched: drop' drops all packets that no resource matches");
}

BENCH_CLAIM(every_setting_of_the_controller_is_read)
{
	assert_reads(bench,
		     "settings: {memory: 'cgroup:/a b', throttling: pace, controllerTimeoutInMs: 60000}\n" RESOURCES
		     "rules: [{resource: dns, threshold: 1}]\n");
	assert_string_equal(bench->ruleset->settings.memory_cgroup, "/a b");
	assert_true(bench->ruleset->settings.paces);
	assert_int_equal(bench->ruleset->settings.controller_timeout_ms, 60000);
	assert_reads(bench, "settings: {memory: cgroup:x, throttling: police}\n" RESOURCES
			    "rules: [{resource: dns, threshold: 1}]\n");
	assert_string_equal(bench->ruleset->settings.memory_cgroup, "x");
	assert_false(bench->ruleset->settings.paces);
}

BENCH_CLAIM(every_condition_of_a_match_is_read)
{
	const struct weir_match *match;

	assert_reads(bench, "resources:\n"
			    "- name: r\n"
			    "  match:\n"
			    "    family: [ipv4, ipv6]\n"
			    "    protocol: [tcp, 17, \"132\"]\n"
			    "    source: [192.0.2.1, 2001:db8::/32]\n"
			    "    destination: 198.51.100.0/24\n"
			    "    sourcePort: \"1024-65535\"\n"
			    "    destinationPort: [53, 5353]\n"
			    "    vlan: [0, 100-200]\n"
			    "    dscp: [ef, 8-15, af11]\n"
			    "    fragment: [none, first]\n"
			    "    length: 64-128\n"
			    "    ipLength: [28, 46-1500]\n"
			    "    ttl: [1-5, 255]\n"
			    "    interface: [eth0, eth1]\n"
			    "    except: [i, s, i]\n"
			    "- {name: s, match: {tcpFlags: ['syn,!ack', fin]}}\n"
			    "- {name: i, match: {icmpType: [8, 128-130]}}\n"
			    "rules: [{resource: r, threshold: 1}]\n");
	match = &bench->ruleset->resources[0].match;
	assert_int_equal(match->families, 3);
	assert_int_equal(match->protocol[0], 1 << 6);
	assert_int_equal(match->protocol[2], 1 << 1);
	assert_int_equal(match->protocol[16], 1 << 4);
	assert_int_equal(match->source_count, 2);
	assert_int_equal(match->source[1].family, 6);
	assert_int_equal(match->destination[0].bits, 24);
	assert_int_equal(match->source_port[0].low, 1024);
	assert_int_equal(match->destination_port_count, 2);
	assert_int_equal(match->vlan[1].high, 200);
	assert_int_equal(match->dscp_count, 3);
	assert_int_equal(match->dscp[0].low, 46);
	assert_int_equal(match->dscp[1].high, 15);
	assert_int_equal(match->fragments, 1 << WEIR_FRAGMENT_NONE | 1 << WEIR_FRAGMENT_FIRST);
	assert_int_equal(match->length[0].high, 128);
	assert_int_equal(match->ip_length_count, 2);
	assert_int_equal(match->ip_length[0].low, 28);
	assert_int_equal(match->ip_length[1].high, 1500);
	assert_int_equal(match->ttl_count, 2);
	assert_int_equal(match->ttl[0].high, 5);
	assert_string_equal(match->interface[1], "eth1");
	assert_int_equal(match->except_count, 2); /* naming one twice adds nothing */
	assert_int_equal(match->except[0].resource, 2);
	assert_int_equal(match->except[1].resource, 1);
	match = &bench->ruleset->resources[1].match;
	assert_int_equal(match->tcp_flags_count, 2);
	assert_int_equal(match->tcp_flags[0].clear, 0x10);
	assert_int_equal(bench->ruleset->resources[2].match.icmp_type[1].high, 130);
}

BENCH_CLAIM(interval_zero_is_one_second)
{
	assert_reads(bench, "resources: [{name: r}]\nrules: [{resource: r, threshold: 1, statIntervalInMs: 0}]\n");
	assert_true(bench->ruleset->rules[0].interval_ns == 1000000000);
}

BENCH_CLAIM(flow_is_one_field_a_list_or_empty)
{
	const struct weir_ruleset_resource *resources;

	assert_reads(bench, "resources:\n"
			    "- {name: a, flow: source/24/56}\n"
			    "- {name: b, flow: [source, destinationPort, interface]}\n"
			    "- {name: c, flow: []}\n"
			    "- {name: d, match: {family: ipv6}, flow: destination/64}\n"
			    "rules: [{resource: a, threshold: 1}]\n");
	resources = bench->ruleset->resources;
	assert_int_equal(resources[0].flow.fields, WEIR_KEY_SOURCE);
	assert_int_equal(resources[0].flow.source_bits[1], 56);
	assert_int_equal(resources[1].flow.fields, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION_PORT | WEIR_KEY_INTERFACE);
	assert_int_equal(resources[2].flow.fields, 0);
	assert_int_equal(resources[3].flow.destination_bits[1], 64);
	assert_int_equal(resources[3].flow.destination_bits[0], 32);
}

BENCH_CLAIM(per_is_a_key_of_a_rule_or_all)
{
	const struct weir_ruleset *ruleset;

	assert_reads(bench,
		     "resources:\n"
		     "- {name: a, flow: source}\n"
		     "- {name: b, match: {family: ipv4}, flow: source}\n"
		     "- {name: c}\n"
		     "rules:\n"
		     "- {resource: a, threshold: 1}\n"
		     "- {resource: a, threshold: 1, per: [source/24/56, destinationPort]}\n"
		     "- {resource: a, threshold: 1, per: all}\n"
		     "- {resource: a, threshold: 1, per: source, window: strict}\n"
		     "- {resource: b, threshold: 1, per: source/24}\n"
		     "- {resource: c, threshold: 1, per: destination}\n"
		     /* what a key would forbid, or need */
		     "- {resource: a, threshold: 9, per: all, window: tokens, tokenCalculateStrategy: WarmUp, "
		     "warmUpPeriodSec: 9}\n"
		     "- {resource: c, threshold: 9, per: source, overrides: [{source: 192.0.2.1, threshold: 1}]}\n"
		     "- {resource: b, threshold: 9, per: all, relationStrategy: AssociatedResource, refResource: "
		     "c}\n"
		     "- {resource: c, threshold: 9, per: source, relationStrategy: AssociatedResource, refResource: "
		     "a}\n");
	ruleset = bench->ruleset;
	assert_ptr_equal(weir_flow_of(ruleset, &ruleset->rules[0]), &ruleset->resources[0].flow);
	assert_int_equal(weir_flow_of(ruleset, &ruleset->rules[1])->fields,
			 WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION_PORT);
	assert_int_equal(weir_flow_of(ruleset, &ruleset->rules[1])->source_bits[1], 56);
	assert_true(ruleset->rules[2].has_own_key);
	assert_int_equal(weir_flow_of(ruleset, &ruleset->rules[2])->fields, 0);
	assert_memory_equal(weir_flow_of(ruleset, &ruleset->rules[3]), &ruleset->resources[0].flow,
			    sizeof(struct weir_flow));
	assert_int_equal(weir_flow_of(ruleset, &ruleset->rules[4])->source_bits[0], 24);
	assert_int_equal(weir_flow_of(ruleset, &ruleset->rules[5])->fields, WEIR_KEY_DESTINATION);
}

BENCH_CLAIM(json_is_read_as_yaml)
{
	assert_reads(bench, "{\"resources\": [{\"name\": \"caf\\u00e9\", \"match\": {\"protocol\": 17}}],\n"
			    " \"rules\": [{\"resource\": \"caf\\u00e9\", \"threshold\": 20, \"controlBehavior\": 0}]}");
	assert_string_equal(bench->ruleset->rules[0].name, "caf\xc3\xa9#1");
}

BENCH_CLAIM(anchors_and_aliases_mean_what_they_name)
{
	assert_reads(bench, "resources:\n"
			    "- {name: a, match: {source: &inside [10.0.0.0/8, fc00::/7]}}\n"
			    "- {name: b, match: {destination: *inside}}\n"
			    "rules: [{resource: a, threshold: &t 7}, {resource: b, threshold: *t}]\n");
	assert_int_equal(bench->ruleset->resources[1].match.destination_count, 2);
	assert_true(bench->ruleset->rules[1].threshold_micro == 7 * WEIR_MICRO);
}

/* YAML 1.2, section 7.1. */
BENCH_CLAIM(an_alias_means_the_latest_anchor_of_its_name)
{
	assert_reads(bench, "resources: [{name: a}, {name: b}, {name: c}]\n"
			    "rules: [{resource: a, threshold: &t 7}, {resource: b, threshold: &t 8}, "
			    "{resource: c, threshold: *t}]\n");
	assert_true(bench->ruleset->rules[2].threshold_micro == 8 * WEIR_MICRO);
}

BENCH_CLAIM(nothing_in_quotes_is_a_word)
{
	assert_reads(bench, "resources: [{name: \"null\"}, {name: '~'}]\n"
			    "rules: [{resource: 'null', threshold: 1}, {resource: \"~\", threshold: 2}]\n");
	assert_string_equal(bench->ruleset->resources[0].name, "null");
	assert_string_equal(bench->ruleset->resources[1].name, "~");
}

BENCH_CLAIM(byte_order_mark_and_carriage_returns_do_no_harm)
{
	assert_reads(bench, "\xef\xbb\xbfresources:\r\n- name: r\r\nrules:\r\n- resource: r\r\n  threshold: 1\r\n");
	assert_string_equal(bench->ruleset->resources[0].name, "r");
	assert_int_equal(bench->ruleset->rules[0].place.line, 4);
}

BENCH_CLAIM(headings_without_content_are_as_good_as_absent)
{
	assert_reads(bench,
		     "settings:\n  # flowsPerCpu: 512\nresources: [{name: r}]\nrules: [{resource: r, threshold: 1}]\n");
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 262144);
}

/* ---- several files ---- */

BENCH_CLAIM(files_merge_in_the_order_given)
{
	assert_int_equal(
		read_texts(bench, "rules: [{resource: r, threshold: 3}, {name: x, resource: r, threshold: 2}]\n",
			   "settings: {nonIp: pass}\nresources: [{name: r}]\n",
			   "settings: {nonIp: pass, flowsPerCpu: 1024}\nrules: [{resource: r, threshold: 1}]\n"),
		0);
	assert_int_equal(bench->diag.count, 0);
	assert_int_equal(bench->ruleset->rule_count, 3);
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 1024);
	/* Default names count all rules of the resource, named ones included, over all files. */
	assert_string_equal(bench->ruleset->rules[0].name, "r#1");
	assert_string_equal(bench->ruleset->rules[1].name, "x");
	assert_string_equal(bench->ruleset->rules[2].name, "r#3");
	assert_string_equal(bench->ruleset->rules[2].place.file, "c.yaml");
	assert_int_equal(bench->ruleset->rules[2].place.line, 2);
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* Two that name each other's resource, and what is no rule file. */
static void fill_directory(const char *const names[4])
{
	assert_int_equal(mkdir("rules.d", 0700), 0);
	assert_int_equal(mkdir("rules.d/directory.yaml", 0700), 0);
	write_text(names[0], "rules: [{name: first, resource: a, threshold: 1}]\n");
	write_text(names[1], "[{\"resource\": \"a\", \"threshold\": 2}]\n");
	write_text(names[2], "resources: [{name: a}]\n");
	write_text(names[3], "rules: [{name: last, resource: a, threshold: 3}]\n");
	write_text("rules.d/.hidden.yaml", "x: y\n");
	write_text("rules.d/old.yaml~", "x: y\n");
	write_text("rules.d/README", "x: y\n");
	write_text("rules.d/.yaml", "x: y\n");
}

static void empty_directory(const char *const names[4])
{
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(unlink(names[i]), 0);
	assert_false(unlink("rules.d/.hidden.yaml") || unlink("rules.d/old.yaml~") || unlink("rules.d/README") ||
		     unlink("rules.d/.yaml") || rmdir("rules.d/directory.yaml"));
}

BENCH_CLAIM(a_directory_is_its_rule_files_in_order)
{
	/* Of the C locale: upper case comes first. */
	static const char *const names[] = {"rules.d/10-x.yaml", "rules.d/9.json", "rules.d/Z.yml", "rules.d/a.yaml"};
	static const char *const paths[] = {"rules.d/", "a.yaml"};

	fill_directory(names);
	write_text("a.yaml", "rules: [{name: behind, resource: a, threshold: 4}]\n");
	assert_int_equal(weir_ruleset_read(paths, 2, &bench->ruleset, &bench->diag), 0);
	assert_int_equal(bench->ruleset->file_count, 5);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(bench->ruleset->file_names[i], names[i]);
	assert_int_equal(bench->ruleset->rule_count, 4);
	assert_string_equal(bench->ruleset->rules[0].name, "first");
	assert_string_equal(bench->ruleset->rules[2].name, "last");
	assert_string_equal(bench->ruleset->rules[3].name, "behind");
	forget(bench);
	empty_directory(names);
	assert_int_equal(rmdir("rules.d"), 0);
}

BENCH_CLAIM(a_mistake_in_a_directory_names_the_file)
{
	static const char *const paths[] = {"rules.d", "a.yaml"};

	assert_int_equal(mkdir("rules.d", 0700), 0);
	write_text("a.yaml", "rules: [{resource: elsewhere, threshold: 4}]\n");
	assert_int_equal(weir_ruleset_read(paths, 2, &bench->ruleset, &bench->diag), -EINVAL);
	assert_messages(
		bench,
		"there are no rule files in directory 'rules.d'\n"
		"    their names must end in .yaml, .yml or .json; for no rules at all, create one that contains "
		"'{}'\n");
	forget(bench);
	write_text("rules.d/x.yml", "resources: [{nam: a}]\n");
	assert_int_equal(symlink("nowhere", "rules.d/gone.yaml"), 0);
	assert_int_equal(weir_ruleset_read(paths, 2, &bench->ruleset, &bench->diag), -EINVAL);
	assert_int_equal(bench->diag.errors, 2);
	assert_string_equal(bench->diag.entries[0].message,
			    "cannot open 'rules.d/gone.yaml': No such file or directory");
	assert_string_equal(bench->diag.entries[1].file, "rules.d/x.yml");
	assert_false(unlink("rules.d/x.yml") || unlink("rules.d/gone.yaml") || rmdir("rules.d"));
}

BENCH_CLAIM(setting_with_two_values_is_reported_with_both_places)
{
	assert_int_equal(read_texts(bench, "settings:\n  malformed: pass\nresources: [{name: r}]\n",
				    "settings:\n  malformed: drop\nrules: [{resource: r, threshold: 1}]\n", NULL),
			 -EINVAL);
	assert_messages(bench, "b.yaml:2:14: 'malformed' is 'drop' here, but 'pass' in a.yaml:2\n"
			       "    malformed: drop\n"
			       "               ^~~~\n"
			       "    the files are merged: set it in one of them, or to the same value in both\n");
}

BENCH_CLAIM(name_given_twice_is_reported_across_files)
{
	assert_int_equal(read_texts(bench, "resources: [{name: r}]\nrules: [{name: n, resource: r, threshold: 1}]\n",
				    "resources: [{name: r}]\nrules: [{name: n, resource: r, threshold: 1}]\n", NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.errors, 2);
	assert_string_equal(bench->diag.entries[0].message, "resource 'r' is already defined in a.yaml:1");
	assert_string_equal(bench->diag.entries[1].message, "rule 'n' is already defined in a.yaml:2");
	assert_string_equal(bench->diag.entries[1].file, "b.yaml");
}

BENCH_CLAIM(mistakes_of_all_files_are_reported_in_one_go)
{
	assert_int_equal(
		read_texts(bench, "resources:\n- name: r\n  match: {vlan: 5000}\n",
			   "rules:\n- resource: r\n  treshold: 5\n- resource: r\n  threshold: 1\n  window: leep\n",
			   "settings: [\n"),
		-EINVAL);
	assert_messages(bench, "c.yaml:1:11: not valid YAML: '[' is not closed\n"
			       "    settings: [\n"
			       "              ^\n"
			       "    write the closing ']'\n"
			       "a.yaml:3:17: vlan: '5000' is out of range\n"
			       "    match: {vlan: 5000}\n"
			       "                  ^~~~\n"
			       "    write 0 to 4095\n"
			       "b.yaml:3:3: rule has no field 'treshold'\n"
			       "    treshold: 5\n"
			       "    ^~~~~~~~\n"
			       "    did you mean 'threshold'?\n"
			       "b.yaml:6:11: 'leep' is not a value of 'window'\n"
			       "    window: leep\n"
			       "            ^~~~\n"
			       "    did you mean 'leap'?\n");
}

BENCH_CLAIM(unknown_resource_is_not_reported_when_a_file_could_not_be_read)
{
	assert_int_equal(read_texts(bench, "resources: [{name: r}\n", "rules: [{resource: r, threshold: 1}]\n", NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.errors, 1);
	assert_string_equal(bench->diag.entries[0].file, "a.yaml");
}

BENCH_CLAIM(file_that_cannot_be_read_is_reported_with_the_others)
{
	static const char *const paths[] = {"missing.yaml", "a.yaml/x", "a.yaml"};

	write_file("a.yaml", "rules: 7\n", 9);
	assert_int_equal(weir_ruleset_read(paths, 3, &bench->ruleset, &bench->diag), -EINVAL);
	assert_messages(bench, "cannot open 'missing.yaml': No such file or directory\n"
			       "    name a rule file, or a directory of them; '-' is standard input\n"
			       "cannot open 'a.yaml/x': Not a directory\n"
			       "a.yaml:1:8: 'rules' must be a list\n"
			       "    rules: 7\n"
			       "           ^\n"
			       "    begin each item with '- '\n");
	assert_null(bench->ruleset);
}

#define HOW_TO_BE_EMPTY "    for no rules, write '{}' or 'rules: []'; 'rules/' has examples\n"

/* A write that failed leaves such a file, and its rules would go with a reload. */
BENCH_CLAIM(empty_file_is_refused_also_among_others)
{
	static const char resource[] = "resources:\n- name: dns\nrules:\n- {resource: dns, threshold: 1}\n";

	assert_int_equal(read_texts(bench, "", NULL, NULL), -EINVAL);
	assert_messages(bench, "rule file 'a.yaml' is empty\n" HOW_TO_BE_EMPTY);
	assert_int_equal(read_texts(bench, "# nothing\n", "---\n", "rules:\n"), -EINVAL);
	assert_messages(bench,
			"rule file 'a.yaml' is empty\n" HOW_TO_BE_EMPTY "rule file 'b.yaml' is empty\n" HOW_TO_BE_EMPTY
			"rule file 'c.yaml' is empty\n" HOW_TO_BE_EMPTY);
	assert_int_equal(read_texts(bench, resource, "", NULL), -EINVAL);
	assert_messages(bench, "rule file 'b.yaml' is empty\n" HOW_TO_BE_EMPTY);
	assert_int_equal(read_texts(bench, resource, "~\n", NULL), -EINVAL);
	assert_int_equal(read_texts(bench, resource, "resources:\nrules:\n", NULL), -EINVAL);
}

BENCH_CLAIM(file_that_says_that_it_is_empty_is_not_refused)
{
	static const char resource[] = "resources:\n- name: dns\nrules:\n- {resource: dns, threshold: 1}\n";

	assert_int_equal(read_texts(bench, resource, "{}\n", "# none\nrules: []\n"), 0);
	assert_messages(bench, "");
	assert_int_equal(read_texts(bench, resource, "[]\n", "resources: []\n"), 0);
	assert_messages(bench, "");
	assert_int_equal(read_texts(bench, "{}\n", NULL, NULL), 0);
	assert_messages(bench, "warning: there are no rules: nothing will be limited\n");
	assert_int_equal(read_texts(bench, "settings: {unmatched: pass}\n", NULL, NULL), 0);
	assert_messages(bench, "warning: there are no rules: nothing will be limited\n");
}

/* ---- the files people can use as they are ---- */

static void assert_reads_files(struct bench *bench, const char *const *paths, size_t count)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err;

	forget(bench);
	err = weir_ruleset_read(paths, count, &bench->ruleset, &bench->diag);
	words = messages(bench);
	if (err || bench->diag.count)
		fail_msg("%s: %s", paths[0], words);
}

BENCH_CLAIM(shipped_rule_files_are_read_without_a_word)
{
	char pattern[4096];
	glob_t files;

	snprintf(pattern, sizeof(pattern), "%s/rules/*.yaml", bench->home);
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 5);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		const char *path = files.gl_pathv[i];

		/* Resources alone, for the list of rules below. */
		if (!strstr(path, "/sentinel-resources.yaml"))
			assert_reads_files(bench, &path, 1);
	}
	globfree(&files);
}

BENCH_CLAIM(shipped_sentinel_list_is_read_with_its_resources)
{
	char list[4096], resources[4096];
	const char *const paths[] = {list, resources};

	snprintf(list, sizeof(list), "%s/rules/sentinel-flow.json", bench->home);
	snprintf(resources, sizeof(resources), "%s/rules/sentinel-resources.yaml", bench->home);
	assert_reads_files(bench, paths, 2);
	assert_int_equal(bench->ruleset->rule_count, 6);
	assert_int_equal(bench->ruleset->rules[1].strategy, WEIR_STRATEGY_WARM_UP);
	assert_true(bench->ruleset->rules[1].threshold_micro == 10000 * WEIR_MICRO);
	assert_int_equal(bench->ruleset->rules[2].strategy, WEIR_STRATEGY_MEMORY_ADAPTIVE);
	assert_int_equal(bench->ruleset->rules[3].behavior, WEIR_BEHAVIOR_THROTTLING);
	assert_int_equal(bench->ruleset->rules[5].relation, WEIR_RELATION_ASSOCIATED);
}

BENCH_CLAIM(shipped_list_of_sentinel_java_says_the_same)
{
	char list[4096], resources[4096];
	const char *const paths[] = {list, resources};

	snprintf(list, sizeof(list), "%s/rules/sentinel-java-flow.json", bench->home);
	snprintf(resources, sizeof(resources), "%s/rules/sentinel-resources.yaml", bench->home);
	assert_reads_files(bench, paths, 2);
	assert_int_equal(bench->ruleset->rule_count, 4);
	assert_true(bench->ruleset->rules[0].threshold_micro == 20 * WEIR_MICRO);
	assert_int_equal(bench->ruleset->rules[1].strategy, WEIR_STRATEGY_WARM_UP);
	assert_int_equal(bench->ruleset->rules[2].behavior, WEIR_BEHAVIOR_THROTTLING);
	assert_int_equal(bench->ruleset->rules[3].relation, WEIR_RELATION_ASSOCIATED);
}

RUN_CLAIMS(NULL, NULL)
