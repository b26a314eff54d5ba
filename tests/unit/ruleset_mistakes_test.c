// SPDX-License-Identifier: GPL-2.0-only
/* Rule files that are wrong, or surely not meant so: what is reported of them, and at which place. */
#include <string.h>

#include "ruleset_bench.h"

#define FLOW(text) "resources:\n- name: r\n  flow: " text "\n"
#define DIRECTED(way, key) "resources:\n- name: r\n  match: {direction: " way "}\n  flow: " key "\nrules:\n"
#define RULES_OF_R "- {resource: r, threshold: 9}\n"
#define BREAKER(fields) RESOURCES "circuitBreakers:\n- {" fields "}\n"
/* Of what a breaker needs, all but strategy and threshold; and all. */
#define TIMES ", resource: web, statIntervalMs: 1000, retryTimeoutMs: 3000"
#define RATIO "strategy: ErrorRatio, threshold: 0.5" TIMES
#define SLOW "strategy: SlowRequestRatio, threshold: 0.5" TIMES

/* ---- mistakes, one a file ---- */

BENCH_CLAIM(mistake_in_the_form_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{"bogus: 1\n", 1, 1, "a rule file has no field 'bogus'", "settings, resources, rules, circuitBreakers"},
		{"rule: []\n", 1, 1, "no field 'rule'", "'rules'"},
		{"dns: {rate: 5/s}\n", 1, 1, "no field 'dns'", "under 'resources:', '- {name: dns, match"},
		{"deni: 20/min\n", 1, 1, "no field 'deni'", "'- {resource: deni, rate: 20/s}'"},
		{"web:\n  match: {protocol: tcp}\n", 1, 1, "no field 'web'", "under 'resources:'"},
		{"dns: [{protocol: udp}]\n", 1, 1, "no field 'dns'", "under 'resources:'"},
		{"denny: 192.0.2.0/24\n", 1, 1, "no field 'denny'", "did you mean 'deny'?"},
		{"{resource: a, rate: 5/s}\n", 1, 1, "a single rule, not a list", "write 'rules:'"},
		{"{\"resource\":\"a\",\"limitApp\":\"default\",\"grade\":1,\"count\":100,\"strategy\":0}", 1, 1,
		 "a single rule, not a list", "into a list: '['"},
		{"{\"metricType\": 0, \"triggerCount\": 0.9}", 1, 1, "a single rule, not a list", "into a list: '['"},
		{"7\n", 1, 1, "a rule file must be a map of fields, not a single value", "settings"},
		{"resources: {name: r}\n", 1, 12, "'resources' must be a list", "'- '"},
		{"resources: [r]\n", 1, 13, "resource must be a map of fields", "name"},
		{"resources:\n- nam: r\n  name: s\n", 2, 3, "resource has no field 'nam'", "'name'"},
		{"resources:\n- match: {}\n", 2, 3, "the resource has no name", "name: NAME"},
		{"resources:\n- name: a;b\n", 2, 9, "contains ';'", NULL},
		{"resources:\n- name: \"a\\tb\"\n", 2, 9, "control character", NULL},
		{"resources:\n- name: \"\"\n", 2, 9, "the name is empty", "1 to 127"},
		{"resources:\n- name: [a]\n", 2, 9, "'name' must be a single value, not a list", NULL},
		{"resources:\n- name: a\n  name: b\n", 3, 3, "'name' is given twice: first in line 2", "leave one"},
		{"resources:\n- name: a\n- name: a\n", 3, 9, "resource 'a' is already defined in a.yaml:2", NULL},
		{"resources:\n- name: a\n  match:\n", 3, 3, "'match' has no value", "leave the field out"},
		{"resources:\n- name: a\n  ? [x]\n  : 1\n", 3, 5, "name of a field must be a word", NULL},
		{"resources:\n- name: a\n  deny: [1.2.3.4]\n", 3, 3, "resource has no field 'deny'", NULL},
		{"a: 1\n---\nb: 2\n", 2, 1, "second document", "file of its own"},
		{"a: *b\n", 1, 4, "alias has no anchor", NULL},
		{"a: &a [*a]\n", 1, 8, "inside its own anchor", NULL},
		{"a: !!int 3\n", 1, 4, "no YAML tags", NULL},
		{"resources:\n- <<: {}\n  name: a\n", 2, 3, "no field '<<'", "merge keys"},
		{"a: \"x\\0y\"\n", 1, 4, "zero byte", NULL},
		{"a: {\n", 1, 4, "not valid YAML: '{' is not closed", "write the closing '}'"},
		{"a: b: c\n", 1, 5, "not valid YAML", NULL},
		{"rules:\n\t- a\n", 2, 1, "not valid YAML", "spaces, not tabs"},
		{"a: \"x\n", 1, 4, "the quote that begins here is not closed", "same quote"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(mistake_in_a_setting_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{"settings: {flowsPerCpu: 511}\n", 1, 25, "flowsPerCpu: '511' is out of range", "512 to 67108864"},
		{"settings: {flowsPerCpu: 67108865}\n", 1, 25, "out of range", NULL},
		{"settings: {flowsPerCpu: 64K}\n", 1, 25, "not a whole number", "write 64k or 64Ki"},
		{"settings: {flowsPerCpu: [1]}\n", 1, 25, "must be a single value", NULL},
		{"settings: {malformed: dorp}\n", 1, 23, "'dorp' is not a value of 'malformed'", "'drop'"},
		{"settings: {malformed: true}\n", 1, 23, "'true' is not a value", "pass or drop"},
		{"settings: {nonip: drop}\n", 1, 12, "settings has no field 'nonip'", "'nonIp'"},
		{"settings: {memory: swap}\n", 1, 20, "'swap' is not a value of 'memory'", "system, or cgroup:PATH"},
		{"settings: {memory: 'cgroup:'}\n", 1, 20, "must have 1 to 255 bytes", "cgroup:PATH"},
		{"settings: {throttling: paced}\n", 1, 24, "'paced' is not a value of 'throttling'", "'pace'"},
		{"settings: {controllerTimeoutInMs: 999}\n", 1, 35, "'999' is out of range", "1000 to 60000"},
		{"settings: {timedParts: {fail2ban: 4k, crowdsec: 62k}}\n", 1, 24, "are 66000 addresses together",
		 "raise 'timedEntries'"},
		{"settings: {timedParts: {\"fail 2\": 4}}\n", 1, 25, "'fail 2' is not the name of a program", "15"},
		{"settings: {timedParts: {fail2ban: 0}}\n", 1, 35, "out of range", "1 to 4000000"},
		{"settings: {timedParts: 4}\n", 1, 24, "must be a map", "fail2ban"},
		{"settings: {timedWhenFull: drop}\n", 1, 27, "'drop' is not a value of 'timedWhenFull'", "evict"},
		{"settings: {timedEntries: 4000001}\n", 1, 26, "out of range", "0 to 4000000"},
		{"settings: {answers: {rate: 0/s}}\n", 1, 28, "rate: '0/s' is no rate of answers", "1/s to 100M/s"},
		{"settings: {answers: {rate: 10MB/s}}\n", 1, 28, "rate: '10MB/s' is no rate of answers",
		 "1/s to 100M/s"},
		{"settings: {answers: {cookieRate: 101M/s}}\n", 1, 34, "no rate of answers", "1/s to 100M/s"},
		{"settings: {answers: {rates: 5/s}}\n", 1, 22, "no field 'rates'", "'rate'"},
		{"settings: {controllerTimeoutInMs: 60001}\n", 1, 35, "out of range", NULL},
		{"settings: [1]\n", 1, 11, "settings must be a map", "flowsPerCpu"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(mistake_in_a_match_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{MATCH("port: 53"), 4, 5, "match has no field 'port'", "'sourcePort'"},
		{MATCH("protocol: tpc"), 4, 15, "'tpc' is not a known protocol", "'tcp'"},
		{MATCH("protocol: [tcp, 256]"), 4, 21, "'256' is out of range", "255"},
		{MATCH("source: [10.0.0.0/8, 192.0.2.1/24]"), 4, 26, "host bits", "192.0.2.0/24"},
		{MATCH("destination: 1.2.3"), 4, 18, "not an IP address", NULL},
		{MATCH("destinationPort: 80abc"), 4, 22, "'80abc' is not a whole number", "0 to 65535"},
		{MATCH("destinationPort: 010"), 4, 22, "begins with a zero", "write 10"},
		{MATCH("destinationPort: [1-2, 9-5]"), 4, 28, "runs backwards", "5-9"},
		{MATCH("destinationPort: [[1]]"), 4, 23, "must be a single value, not a list", NULL},
		{MATCH("destinationPort: [1,~]"), 4, 25, "item without a value", NULL},
		{MATCH("destinationPort: {a: 1}"), 4, 22, "must be a single value, not a map", NULL},
		{MATCH("destinationPort: doman"), 4, 22, "'doman' is neither a number nor a name", "'domain'"},
		{MATCH("sourcePort: '> 1023'"), 4, 17, "'> 1023' is not a range", "write 1024-65535"},
		{MATCH("length: '>100'"), 4, 13, "'>100' is not a range", "write 101-65535"},
		{MATCH("length: '>=100'"), 4, 13, "not a range", "write 100-65535"},
		{MATCH("length: '<100'"), 4, 13, "not a range", "write 0-99"},
		{MATCH("dscp: '<=40'"), 4, 11, "not a range", "write 0-40"},
		{MATCH("length: '<0'"), 4, 13, "'<0' is not a whole number", "0 to 65535"},
		{MATCH("length: '>65535'"), 4, 13, "'>65535' is not a whole number", "0 to 65535"},
		{MATCH("icmpType: echo-request"), 4, 15, "'echo-request' is not a number", "is 8 of ICMP, but 128 of"},
		{MATCH("protocol: udp\n    icmpType: ping"), 5, 15,
		 "no packet of this protocol and family has type 'ping'",
		 "write 'protocol: icmp' (type 8) or 'protocol: icmpv6' (type 128)"},
		{MATCH("protocol: icmp\n    family: ipv6\n    icmpType: packet-too-big"), 6, 15,
		 "no packet of this protocol and family has type", "write 'protocol: icmpv6'"},
		{MATCH("icmpType: echo"), 4, 15, "'echo' is not a number", "a name such as echo-request"},
		{MATCH("protocol: icmp\n    icmpType: packet-too-big"), 5, 15, "'packet-too-big' is not a number",
		 "only ICMPv6 has this type"},
		{MATCH("source: 10.0.0.1-10.0.0.9"), 4, 13, "'10.0.0.1-10.0.0.9' is a range",
		 "[10.0.0.1, 10.0.0.2/31, 10.0.0.4/30, 10.0.0.8/31]"},
		{MATCH("source: 10.0.0.0-10.0.0.255"), 4, 13, "is a range", "write 10.0.0.0/24"},
		{MATCH("source: 10.0.0.1-10.255.255.254"), 4, 13, "is a range", "this range takes 46, the first"},
		{MATCH("source: 10.0.0.1-9"), 4, 13, "is a range", "write both ends in full"},
		{MATCH("source: 10.0.0.9-10.0.0.1"), 4, 13, "is a range", "runs backwards"},
		{MATCH("source: '10.0.0.1-2001:db8::1'"), 4, 13, "is a range", "begins with IPv4 and ends with IPv6"},
		{MATCH("source: '[2001:db8::7]:5060'"), 4, 13, "'[2001:db8::7]:5060' has a port", "alone: 2001:db8::7"},
		{MATCH("source: 192.0.2.7:5060"), 4, 13, "has a port", "alone: 192.0.2.7"},
		{MATCH("source: 'fe80::1%eth0/64'"), 4, 13, "has a zone", "alone: fe80::/64"},
		{MATCH("source: '[2001:db8::7]'"), 4, 13, "has brackets", "alone: 2001:db8::7"},
		{MATCH("source: '192.0.2.7:'"), 4, 13, "not an IP address", NULL},
		{MATCH("source: '[2001:db8::7'"), 4, 13, "not an IP address", NULL},
		{MATCH("source: 'fe80::1%'"), 4, 13, "not an IP address", NULL},
		{MATCH("vlan: 4096"), 4, 11, "out of range", "0 to 4095"},
		{MATCH("vlan: []"), 4, 11, "'vlan' is an empty list", "at least one"},
		{MATCH("dscp: [ef, 64]"), 4, 16, "out of range", "0 to 63"},
		{MATCH("dscp: eff"), 4, 11, "'eff' is neither a number nor a name", "did you mean 'ef'?"},
		{MATCH("icmpType: 256"), 4, 15, "out of range", "0 to 255"},
		{MATCH("length: 64-65536"), 4, 13, "out of range", "65535"},
		{MATCH("except: []"), 4, 13, "'except' is an empty list", "name at least one resource"},
		{MATCH("except: [nobody]"), 4, 14, "there is no resource 'nobody'", NULL},
		{MATCH("ipLength: 65536"), 4, 15, "out of range", "0 to 65535"},
		{MATCH("ttl: 256"), 4, 10, "out of range", "0 to 255"},
		{MATCH("tcpFlags: 'syn,!syn'"), 4, 15, "both set and not set", NULL},
		{MATCH("tcpFlags: !ack"), 4, 15, "YAML tags", "quotes"},
		{MATCH("tcpFlags: [syn, !ack]"), 4, 21, "YAML tags", "in quotes: \"!ack\""},
		{"resources: [{name: r, match: {except: r}}]\n", 1, 39, "resource 'r' excepts itself", "leave it out"},
		{"resources: [{name: r, match: {except: s}}, {name: t, match: {except: r}}, {name: s, match: {except: "
		 "t}}]\n",
		 1, 70, "resource 't' excepts 'r', which excepts it", "leave one of them out"},
		{"resources: [{name: r, match: {tcpFlags: [syn, !ack]}}]\n", 1, 47, "is a tag", "\"!ack\""},
		{MATCH("fragment: maybe"), 4, 15, "'maybe' is not known", "none, first, later or any"},
		{MATCH("direction: egress"), 4, 16, "'egress' is not known", "did you mean 'out'?"},
		{MATCH("direction: Inbound"), 4, 16, "'Inbound' is not known", "did you mean 'in'?"},
		{MATCH("direction: up"), 4, 16, "'up' is not known", "write in, out or both"},
		{DIRECTED("out", "[vlan, source/24/56, local]") RULES_OF_R, 4, 16,
		 "'source' and 'local' are the same end of outgoing packets", "leave one of them out"},
		{DIRECTED("out", "[remotePort, destinationPort]") RULES_OF_R, 4, 22,
		 "'destinationPort' and 'remotePort' are the same end", NULL},
		{DIRECTED("out", "local") "- {resource: r, threshold: 9, per: [destination, remote]}\n", 6, 37,
		 "'destination' and 'remote' are the same end", NULL},
		{DIRECTED("both", "[remote, source]") RULES_OF_R, 4, 18, "'source' or 'remote', not both", NULL},
		{MATCH("family: inet"), 4, 13, "'inet' is not known", "ipv4 or ipv6"},
		{MATCH("interface: sixteen--letters"), 4, 16, "is not a valid interface name", NULL},
		{MATCH("interface: ['!eth0']"), 4, 16, "only exceptions", "'*'"},
		{"resources:\n- name: r\n  flow: [source, vlan, source/24/56]\n", 3, 24, "twice", NULL},
		{"resources:\n- name: r\n  flow: source/24\n", 3, 9, "one prefix length", "source/24/56"},
		{"resources:\n- name: r\n  match: {family: ipv4}\n  flow: source/64\n", 4, 9, "no valid prefix length",
		 "'family: ipv4': write 1 to 32 bits"},
		{"resources:\n- name: r\n  match: {family: ipv6}\n  flow: source/129\n", 4, 9, "no valid prefix length",
		 "'family: ipv6': write 1 to 128 bits"},
		{"resources:\n- name: r\n  flow: [src]\n", 3, 10, "not a field of a flow key",
		 "did you mean 'source'?"},
		{"resources:\n- name: r\n  flow: [sorce]\n", 3, 10, "not a field of a flow key",
		 "did you mean 'source'?"},
		{"resources:\n- name: r\n  flow: [dst]\n", 3, 10, "not a field of a flow key", "mean 'destination'?"},
		{"resources:\n- name: r\n  flow: {source: 24}\n", 3, 9, "must be a single value", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(mistake_in_a_rule_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{RESOURCES "rules: [{threshold: 1}]\n", 2, 9, "the rule has no resource", "resource: NAME"},
		{RESOURCES "rules: [{resource: dsn, threshold: 1}]\n", 2, 20, "no resource 'dsn'", "'dns'"},
		{RESOURCES "rules: [{resource: mail, threshold: 1}]\n", 2, 20, "no resource 'mail'", "resources:"},
		{"resources: [{name: a}]\nrules: [{resource: \"\", threshold: 1}]\n", 2, 20, "no resource ''",
		 "define it under"},
		{RESOURCES "rules: [{resource: dns}]\n", 2, 9, "the rule has no threshold", "threshold: 1000"},
		{RESOURCES "rules: [{resource: dns, threshold: 20K}]\n", 2, 36, "'20K' is not a number", "20k or 20Ki"},
		{RESOURCES "rules: [{resource: dns, threshold: -1}]\n", 2, 36, "negative", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: .nan}]\n", 2, 36, "not a number", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: 1.0000001}]\n", 2, 36, "more than six decimals", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: [1]}]\n", 2, 36, "not a list", NULL},
		{RULE("statIntervalInMs: 9"), 5, 21, "'9' is out of range", "10 to 86400000"},
		{RULE("statIntervalInMs: 86400001"), 5, 21, "out of range", NULL},
		{RULE("sampleCount: 0"), 5, 16, "out of range", "1 to 10"},
		{RULE("sampleCount: 11"), 5, 16, "out of range", "1 to 10"},
		{RULE("sampleCount: 3"), 5, 16, "no whole number of nanoseconds in 3", "1 2 4 5 8 10"},
		{RULE("window: Leap"), 5, 11, "not a value of 'window'", "'leap'"},
		{RULE("per: srce"), 5, 8, "'srce' is not a field of a flow key", "write source, destination"},
		{RULE("per: sources"), 5, 8, "'sources' is not a field of a flow key", "did you mean 'source'"},
		{RULE("per: source/24"), 5, 8, "has one prefix length, but the resource matches", "as in source/24/56"},
		{RULE("per: source/33/64"), 5, 8, "no valid prefix length", "1 to 32 bits of IPv4"},
		{RULE("per: [source, source]"), 5, 17, "'source' is in the flow key twice", "leave one"},
		{RULE("per: [source, all]"), 5, 17, "'all' is not a field of a flow key",
		 "write 'per: all' without other fields"},
		{RULE("per: 10s"), 5, 8, "'10s' is not a field of a flow key", "write the time in the rate"},
		{RULE("per: {a: b}"), 5, 8, "'per' must be a single value", NULL},
		{"resources: [{name: a, flow: all}]\nrules: []\n", 1, 29, "'all' is not a field of a flow key",
		 "leave 'flow' out"},
		{"resources: [{name: a, per: source}]\nrules: []\n", 1, 23, "resource has no field 'per'",
		 "set the resource's 'flow'"},
		{BREAKER(RATIO ", per: all"), 3, 101, "a circuit breaker has no field 'per'",
		 "set the resource's 'flow'"},
		{"systemRules: [{metricType: Load, triggerCount: 1, per: all}]\n", 1, 51,
		 "a rule of 'systemRules' has no field 'per'", "rules under 'rules:' have it"},
		/* what goes by the rule's key */
		{KEYED "rules:\n- resource: b\n  threshold: 5\n  per: source/24/56\n  overrides: [{source: 192.0.2.1, "
		       "threshold: 1}]\n",
		 6, 24, "prefix '192.0.2.1' is longer than the flow key's, which is /24", NULL},
		{KEYED
		 "rules:\n- resource: a\n  threshold: 5\n  per: vlan\n  overrides: [{source: 192.0.2.1, threshold: "
		 "1}]\n",
		 6, 24, "source is not in the flow key of 'a#1'", "see 'per'"},
		{KEYED "rules:\n- {resource: a, threshold: 5, per: source, relationStrategy: AssociatedResource, "
		       "refResource: c}\n",
		 3, 95, "refResource 'c' has another flow key than the rule", "give refResource the key in 'per'"},
		{ONE_RULE("threshold: 9, per: source, window: tokens" WARM_UP), 3, 86,
		 "cannot warm up each flow separately", "'per: all'"},
		{RULE("unit: bits"), 5, 9, "not a value of 'unit'", "write 'rate: 100Mbit/s'"},
		{RULE("rate: 5/s"), 4, 14, "'rate' includes it, so 'threshold' must not be given", "leave one"},
		{ONE_RULE("rate: 5"), 3, 25, "has no time", "write 5/s"},
		{ONE_RULE("rate: [5/s]"), 3, 25, "'rate' must be a single value", NULL},
		{ONE_RULE("rate: 5/ms"), 3, 25, "an interval of 1ms is out of range", "10ms to 1d"},
		{ONE_RULE("rate: 5/2d"), 3, 25, "an interval of 2d is out of range", NULL},
		{ONE_RULE("rate: 5/s, statInterval: 1s"), 3, 44, "so 'statInterval' must not be given", NULL},
		{ONE_RULE("rate: 5/s, unit: packets"), 3, 36, "so 'unit' must not be given", NULL},
		{ONE_RULE("rate: 1GB/s, unit: packets"), 3, 38, "so 'unit' must not be given",
		 "this rate counts bytes"},
		{ONE_RULE("rate: 10/s, unit: bytes"), 3, 37, "so 'unit' must not be given", "this rate counts packets"},
		{ONE_RULE("rate: 5/s, metricType: Concurrency"), 3, 25, "Concurrency limits how many are open at once",
		 "'threshold', a number without"},
		{ONE_RULE("rate: 5/s, " MEMORY), 3, 25, "MemoryAdaptive has two thresholds", NULL},
		{ONE_RULE("rate: 7/s, sampleCount: 3"), 3, 43, "no whole number of nanoseconds in 3", NULL},
		{RULE("statInterval: 5ms"), 5, 17, "statInterval: '5ms' is out of range", "10ms to 1d, or 0 for"},
		{RULE("statInterval: 60"), 5, 17, "statInterval: '60' is not a duration", "60s, 60ms or 60m"},
		{RULE("statIntervalInMs: 1m"), 5, 21, "is not a whole number", "write 60000, or 'statInterval: 1m'"},
		{RULE("statIntervalInMs: 1000\n  statInterval: 1s"), 6, 3, "'statIntervalInMs' is given twice", NULL},
		{RULE("blockDuration: 0"), 5, 18, "blockDuration: '0' is out of range", NULL},
		{RULE("threshold: 10MB"), 5, 3, "given twice", NULL},
		{RULE("mode: dry"), 5, 9, "not a value of 'mode'", "enforce or observe"},
		{RULE("mode: 1"), 5, 9, "not a value of 'mode'", NULL},
		{RULE("tokenCalculateStrategy: 3"), 5, 27, "not a value of",
		 "Direct, WarmUp or MemoryAdaptive; its number, 0 to 2, works too"},
		{RULE("tokenCalculateStrategy: direct"), 5, 27, "not a value of",
		 "'Direct'? its number, 0 to 2, works too"},
		{RULE("statIntervalInMs: -1"), 5, 21, "negative", "write 10 to 86400000, or 0 for the default"},
		{RULE("statIntervalInMs: 010"), 5, 21, "begins with a zero", "write 10"},
		{RULE("warmUpColdFactor: x"), 5, 21, "not a whole number",
		 "write 2 to 4294967295, or 0 for the default"},
		{RULE("memLowWaterMarkBytes: -1"), 5, 25, "negative", "write 1 to 9223372036854775807"},
		{RULE("warmUpPeriodSec: soon"), 5, 20, "not a whole number", NULL},
		{RULE("capacity: 7"), 5, 3, "rule has no field 'capacity'", "known fields: name, resource"},
		{RULE("window: tokens\n  burst: 0.999999"), 6, 10, "'0.999999' is not a burst", "1 or more"},
		{RULE("window: tokens\n  relationStrategy: AssociatedResource\n  refResource: web"), 5, 11,
		 "'window: tokens' has none", NULL},
		{RULE("window: tokens\n  burst: many"), 6, 10, "'many' is not a burst", "'burst: 1500'"},
		{"resources:\n- {name: r, flow: source}\nrules:\n- resource: r\n  threshold: 9\n  window: tokens\n"
		 "  tokenCalculateStrategy: WarmUp\n  warmUpPeriodSec: 9\n",
		 7, 27, "'window: tokens' cannot warm up each flow separately", "a resource without a flow key"},
		{RULE("threshold: 7"), 5, 3, "'threshold' is given twice: first in line 4", NULL},
		{RULE("name: a;b"), 5, 9, "contains ';'", NULL},
		{RULE("whenFull: agregate"), 5, 13, "'agregate'", "aggregate"},
		{RULE("onBlock: rst"), 5, 12, "'rst' is not a value of 'onBlock'", "reset"},
		{DIRECTED("out", "remote") "- {resource: r, threshold: 9, onBlock: reset}\n", 6, 40,
		 "'onBlock' is for incoming packets, and all packets of 'r' go out", "leave it out"},
		{RULE("relationStrategy: AssociatedResource\n  refResource: web\n  whenFull: aggregate"), 7, 13,
		 "'whenFull' is for windows, token buckets and Throttling", "leave it out"},
		{RULE("metricType: Concurrency\n  whenFull: evict"), 6, 13,
		 "'whenFull' is for windows, token buckets and Throttling", "leave it out"},
		{RULE("fairBy: src"), 5, 11, "'src' is not a field of a flow key", "did you mean 'source'?"},
		{RULE("fairBy: []"), 5, 11, "'fairBy' does not say who shares", "'fairBy: source'"},
		{RULE("per: [source, vlan]\n  fairBy: source"), 6, 11, "'fairBy' does not divide it further",
		 "'per: all'"},
		{RULE("window: tokens\n  fairBy: source"), 6, 11, "'fairBy' needs a window", "'window: leap'"},
		{RULE("controlBehavior: Throttling\n  fairBy: source"), 6, 11, "'fairBy' needs a window", "Reject"},
		{RULE("metricType: Concurrency\n  fairBy: source"), 6, 11, "'fairBy' needs a window", NULL},
		{RULE("blockDuration: 1s\n  fairBy: source"), 5, 18, "cannot have penalties", "leave one"},
		{RULE("blockDurationInMs: 0"), 5, 22, "blockDurationInMs: '0' is out of range",
		 "write 1 to 4294967295"},
		{RULE("blockDurationInMs: 4294967296"), 5, 22, "blockDurationInMs: '4294967296' is out of range", NULL},
		{RULE("blockDurationInMs: 1m"), 5, 22, "'1m' is not", "'blockDuration: 1m'"},
		{RULE("blockDurationMaxInMs: 9"), 5, 25, "blockDurationMaxInMs needs a blockDurationInMs", NULL},
		{RULE("blockDurationInMs: 10\n  blockDurationMaxInMs: 9"), 6, 25,
		 "blockDurationMaxInMs must be at least blockDurationInMs", NULL},
		{RULE("name: x\n- {name: x, resource: web, threshold: 1}"), 6, 10, "rule 'x' is already defined", NULL},
		{RULE("name: dns#2\n- {resource: dns, threshold: 1}"), 6, 3, "rule 'dns#2' is already defined", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* What people write who come from other tools, or read the docs in haste: the hint is what they meant. */
BENCH_CLAIM(mistake_of_habit_is_answered_with_what_was_meant)
{
	static const struct sample samples[] = {
		{FLOW("source_ip/24"), 3, 9, "'source_ip/24' is not a field of a flow key", "mean 'source/24'?"},
		{FLOW("[source, dport]"), 3, 18, "'dport' is not a field", "did you mean 'destinationPort'?"},
		{FLOW("source,destinationPort"), 3, 9, "not a field of a flow key",
		 "a list: [source, destinationPort]"},
		{FLOW("source+destinationPort"), 3, 9, "not a field of a flow key",
		 "a list: [source, destinationPort]"},
		{FLOW("remoteport"), 3, 9, "'remoteport' is not a field of a flow key", "mean 'remotePort'?"},
		{FLOW("peer"), 3, 9, "'peer' is not a field of a flow key", "remote, local"},
		{FLOW("none"), 3, 9, "'none' is not a field of a flow key", "leave 'flow' out"},
		{RULE("per: dst"), 5, 8, "'dst' is not a field of a flow key", "did you mean 'destination'?"},
		{RULE("per: All"), 5, 8, "'All' is not a field of a flow key", "write 'per: all'"},
		{RULE("per: none"), 5, 8, "'none' is not a field of a flow key", "write 'per: all'"},
		{RULE("flow: source"), 5, 3, "rule has no field 'flow'", "in a rule, write 'per: source'"},
		{RULE("match: {protocol: tcp}"), 5, 3, "rule has no field 'match'", "it belongs to the resource"},
		{RULE("sourcePort: 80"), 5, 3, "rule has no field 'sourcePort'", "to the resource's match"},
		{RULE("penalty: 10s"), 5, 3, "rule has no field 'penalty'", "'blockDuration: 10s'"},
		{"resources:\n- name: r\n  rules: []\n", 3, 3, "resource has no field 'rules'",
		 "at the top of the file: begin it in the first column"},
		{"settings:\n  mode: observe\n  rules: []\n", 3, 3, "settings has no field 'rules'",
		 "begin it in the first column"},
		{"mode: observe\nrules: []\n", 1, 1, "a rule file has no field 'mode'", "write it under 'settings:'"},
		{"rate: 5/s\nrules: []\n", 1, 1, "a rule file has no field 'rate'", "an item under 'rules:'"},
		{MATCH("{protocol: udp, destinationPort:53}"), 4, 21, "match has no field 'destinationPort:53'",
		 "write a space after the ':': 'destinationPort: 53'"},
		{"resources: [{name:r}]\nrules: []\n", 1, 14, "resource has no field 'name:r'", "'name: r'"},
		{"- name: r\n  match: {vlan: 3}\n", 1, 1, "this list of resources has no name",
		 "write 'resources:' on a line of its own before it"},
		{"- name: limit\n  resource: r\n  rate: 5/s\n", 1, 1, "this list of rules has no name",
		 "write 'rules:' on a line of its own before it"},
		{"resources:\n- name: r\n  rate: 5/s\n", 3, 3, "no field 'rate'", "write rates under 'rules:'"},
		{"resources:\n- name: r\n  threshold: 5\n", 3, 3, "no field 'threshold'", "write rules under 'rules:'"},
		{"resources:\n- name: r\n  protocol: tcp\n", 3, 3, "no field 'protocol'", "under 'match:'"},
		{"resources:\n- name: r\n  match:\n  protocol: tcp\n  vlan: 3\n", 4, 3,
		 "'protocol' is beside 'match', not under it", "indent it under 'match:'"},
		{"settings:\nmalformed: drop\nresources: []\n", 2, 1, "'malformed' is beside 'settings'",
		 "indent it under 'settings:'"},
		{"whitelist: [10.0.0.1]\n", 1, 1, "no field 'whitelist'", "write 'allow'"},
		{"blacklist: [10.0.0.1]\n", 1, 1, "no field 'blacklist'", "write 'deny'"},
		{"allow: [2001:db8::, 10.0.0.1]\n", 1, 18, "must be a single value", "in quotes: \"2001:db8::\""},
		{"allow: '!10.0.0.1'\n", 1, 8, "not an IP address", "there is no 'all but'"},
		{MATCH("iface: eth0"), 4, 5, "no field 'iface'", "write 'interface'"},
		{MATCH("not: {vlan: 3}"), 4, 5, "no field 'not'", "there is no 'all but'"},
		{MATCH("source: {not: 10.0.0.0/8}"), 4, 13, "must be a single value", "there is no 'all but'"},
		{MATCH("source: '!10.0.0.0/8'"), 4, 13, "not an IP address", "there is no 'all but'"},
		{MATCH("destinationPort: '!22'"), 4, 22, "not a whole number", "write the ranges that remain"},
		{MATCH("tcpFlags: SYN"), 4, 15, "'SYN' is not a TCP flag", "did you mean 'syn'?"},
		{MATCH("protocol: 'tcp,udp'"), 4, 15, "not a known protocol", "write a list: [tcp, udp]"},
		{MATCH("protocol: tcp/udp"), 4, 15, "not a known protocol", "write a list: [tcp, udp]"},
		{MATCH("protocol: any"), 4, 15, "not a known protocol", "leave 'protocol' out"},
		{MATCH("protocol: '!tcp'"), 4, 15, "not a known protocol", "there is no 'all but'"},
		{MATCH("protocol: http"), 4, 15, "not a known protocol", "'protocol: tcp' and 'destinationPort: 80'"},
		{MATCH("source: 10.0.0.0/255.0.0.0"), 4, 13, "no valid prefix length", "write 10.0.0.0/8"},
		{MATCH("source: 10.0.0.0/255.0.255.0"), 4, 13, "no valid prefix length", "write 0 to 32"},
		{MATCH("source: '::ffff:10.0.0.1/8'"), 4, 13, "is an IPv4-mapped address with a prefix length below 96",
		 "write 10.0.0.0/8, or ::ffff:10.0.0.0/104"},
		{MATCH("source: '::ffff:10.0.0.1/95'"), 4, 13, "is an IPv4-mapped address",
		 "write the IPv4 network alone"},
		{MATCH("tcpFlags: [syn, !ack]"), 4, 21, "YAML tags", "\"!ack\", with other flags \"syn,!ack\""},
		{MATCH("source: !10.0.0.0/8"), 4, 13, "YAML tags", "there is no 'all but'"},
		{MATCH("destinationPort: !22"), 4, 22, "YAML tags", "there is no 'all but'"},
		{MATCH("interface: [\"eth*\", !eth1]"), 4, 25, "YAML tags", "put it in quotes: \"!eth1\""},
		{"{\n// first\n\"resources\": [{\"name\": \"r\"}]}\n", 2, 1, "JSON has no comments", "'#'"},
		{"{\"resources\": [{\"name\": \"r\"}] /* last */}\n", 1, 31, "JSON has no comments", "'#'"},
		{"// first\nrules: []\n", 1, 1, "this is not a comment", "begins with '#'"},
		{RESOURCES "rules: [{resource: dns, threshold: 20/s}]\n", 2, 36, "'20/s' is a rate", "'rate: 20/s'"},
		{RULE("blockDuration: 0s"), 5, 18, "'0s' is out of range",
		 "write 1ms to 49d17h2m47s295ms, or leave it"},
		{RULE("blockDuration: 60d"), 5, 18, "'60d' is out of range", "write 1ms to 49d17h2m47s295ms, or"},
		{OVERRIDES("[{source: 10.0.0.0/8, rate: 5/min}]"), 5, 42, "has another interval than the rule",
		 "per 1s"},
		{OVERRIDES("[{source: 10.0.0.0/8, rate: 5kB/s}]"), 5, 42, "counts bytes, and the rule packets", "both"},
		{OVERRIDES("[{source: 10.0.0.0/8, rate: 5}]"), 5, 42, "has no time", "write 5/s"},
		{OVERRIDES("[{source: 10.0.0.0/8, rate: 5/s, threshold: 5}]"), 5, 58, "'rate' includes it", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, treshold: 5}]"), 5, 36, "no field 'treshold'", "'threshold'"},
		{OVERRIDES("[{destinationPort: 80, threshold: 5}]"), 5, 16, "override has no field 'destinationPort'",
		 "an override is for an address"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(rate_of_an_override_is_its_threshold)
{
	assert_reads(bench, KEYED "rules: [{resource: a, rate: 20kB/10s, overrides: [{source: 10.0.0.0/8, rate: "
				  "5MB/10s}]}]\n");
	assert_true(bench->ruleset->rules[0].overrides[0].threshold_micro == 5000000 * WEIR_MICRO);
	assert_reads(bench, KEYED "rules: [{resource: a, threshold: 20, statInterval: 1m, overrides: [{source: "
				  "10.0.0.0/8, rate: 5/min}]}]\n");
	assert_true(bench->ruleset->rules[0].overrides[0].threshold_micro == 5 * WEIR_MICRO);
	assert_int_equal(read_texts(bench,
				    KEYED "rules: [{resource: a, metricType: Concurrency, threshold: 2, "
					  "overrides: [{source: 10.0.0.0/8, rate: 5/s}]}]\n",
				    NULL, NULL),
			 -EINVAL);
	assert_string_equal(bench->diag.entries[0].message, "the rule of this override has no rate");
}

BENCH_CLAIM(file_named_twice_is_one_mistake)
{
	static const char *const paths[] = {"a.yaml", "./a.yaml"};

	assert_reads(bench, "resources: [{name: a}]\nrules: [{resource: a, rate: 5/s}]\n");
	forget(bench);
	assert_int_equal(weir_ruleset_read(paths, 2, &bench->ruleset, &bench->diag), -EINVAL);
	assert_messages(bench, "rule file './a.yaml' is named twice\n    name it once\n");
}

/* A field that clearly stood for one that must be there is one mistake, not two. */
BENCH_CLAIM(mistyped_field_is_not_missing_as_well)
{
	static const struct sample samples[] = {
		{ONE_RULE("rte: 20/s"), 3, 19, "rule has no field 'rte'", "did you mean 'rate'?"},
		{ONE_RULE("thershold: 20"), 3, 19, "rule has no field 'thershold'", "did you mean 'threshold'?"},
		{ONE_RULE("limit: 20/s"), 3, 19, "rule has no field 'limit'", "'rate: 20/s'"},
		{RESOURCES "rules: [{resorce: dns, rate: 5/s}]\n", 2, 10, "no field 'resorce'", "mean 'resource'?"},
		{RESOURCES "rules: [{match: {}, rate: 5/s}]\n", 2, 10, "no field 'match'", "resource: NAME"},
		{"resources: [{nmae: web}]\nrules: [{resource: web, rate: 5/s}]\n", 1, 14, "no field 'nmae'", "'name'"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* ---- legal, but surely not meant ---- */

BENCH_CLAIM(legal_but_surely_not_meant_is_warned_of)
{
	static const struct sample samples[] = {
		{RULE("warmUpPeriodSec: 10"), 5, 20, "'warmUpPeriodSec' has no effect", NULL},
		{"resources:\n- {name: r, match: {protocol: udp}}\nrules:\n- {resource: r, threshold: 9, onBlock: "
		 "reset}\n",
		 4, 40, "'onBlock: reset' has no effect: 'r' has no packet of TCP", "unreachable"},
		{"resources:\n- {name: r, match: {protocol: tcp}}\nrules:\n- {resource: r, threshold: 9, onBlock: "
		 "truncate}\n",
		 4, 40, "'onBlock: truncate' has no effect: 'r' has no packet of UDP", "unreachable"},
		{"resources:\n- {name: r}\nrules:\n- {resource: r, metricType: Concurrency, threshold: 9, onBlock: "
		 "cookie}\n",
		 4, 3, "'onBlock: cookie' of 'r#1' does harm: the packet that brings", "reset"},
		{"resources:\n- {name: r}\ncircuitBreakers:\n- {resource: r, strategy: ErrorCount, threshold: 9, "
		 "statIntervalMs: 1000, retryTimeoutMs: 1000, onBlock: cookie}\n",
		 4, 3, "'onBlock: cookie' of 'r#1' does harm: it opens the connections that a failing", "reset"},
		{"resources: [{name: r}]\nsystemRules:\n- {metricType: Load, triggerCount: 9, onBlock: cookie}\n", 3, 3,
		 "'onBlock: cookie' of 'system#1' does harm: it opens the connections that a busy", "reset"},
		{"settings: {answers: {rate: 5/s}}\n" RESOURCES "rules: [{resource: dns, threshold: 9}]\n", 1, 21,
		 "'answers' has no effect", "leave it out"},
		{"resources:\n- {name: r}\nrules:\n- {resource: r, threshold: 9, whenFull: aggregate}\n", 4, 41,
		 "'whenFull' has no effect: resource 'r' has no flow key", "leave it out"},
		{"resources:\n- {name: r, flow: source}\nrules:\n- {resource: r, threshold: 9, whenFull: aggregate, "
		 "per: all}\n",
		 4, 41, "'whenFull' has no effect: rule 'r#1' has no flow key", "leave it out"},
		{DIRECTED("out", "[vlan, source/24/56]") RULES_OF_R, 4, 16,
		 "the source of outgoing packets is this host", "write 'remote'"},
		{DIRECTED("out", "[source, sourcePort]") RULES_OF_R, 4, 10,
		 "the source of outgoing packets is this host", "write 'remote'"},
		{DIRECTED("out", "remote") "- {resource: r, threshold: 9, per: source}\n", 6, 36,
		 "the source of outgoing packets is this host", "write 'remote'"},
		{DIRECTED("out, destinationPort: [53, 443]", "[remote/24/56]") RULES_OF_R, 4, 10,
		 "outgoing packets to these destination ports are this host's requests", "write 'sourcePort'"},
		{DIRECTED("both", "[vlan, source/24/56]") RULES_OF_R, 4, 16,
		 "'source' is one end of incoming packets and the other end of outgoing ones", "write 'remote'"},
		{DIRECTED("both", "destinationPort") RULES_OF_R, 4, 9, "'destinationPort' is one end",
		 "write 'localPort'"},
		{DIRECTED("[in, out]", "remote") "- {resource: r, threshold: 9, per: destination}\n", 6, 36,
		 "'destination' is one end", "write 'local'"},
		{"resources:\n- {name: r, match: {direction: out}, flow: [source, destinationPort]}\n- {name: s, flow: "
		 "[source, destinationPort]}\nrules:\n"
		 "- {resource: s, threshold: 9, relationStrategy: AssociatedResource, refResource: r}\n",
		 5, 82, "refResource 'r' has another direction", "'remote'"},
		{RULE("maxQueueingTimeMs: 10"), 5, 22, "'maxQueueingTimeMs' has no effect", "leave it out"},
		{RULE("controlBehavior: Throttling\n  blockDurationInMs: 5"), 6, 22,
		 "'blockDurationInMs' has no effect: it is for controlBehavior Reject", "leave it out"},
		{RULE("refResource: web"), 5, 16, "'refResource' has no effect", NULL},
		{RULE("memLowWaterMarkBytes: 7"), 5, 25, "'memLowWaterMarkBytes' has no effect", NULL},
		{RULE("controlBehavior: Throttling\n  window: strict"), 6, 11, "'window' has no effect", NULL},
		{RULE("controlBehavior: Throttling\n  burst: 5"), 6, 10,
		 "'burst' has no effect: it is for window tokens", NULL},
		{RULE("burst: 5"), 5, 10, "'burst' has no effect: it is for window tokens", "add 'window: tokens'"},
		{ONE_RULE("rate: 5/s}\n- {resource: web, rate: 1/s}\n- {resource: dns, name: x, rate: 5/s"), 5, 25,
		 "rule 'x' never blocks: 'dns#1' before it has the same key and interval", "leave it out"},
		{ONE_RULE("rate: 5/s, per: source}\n- {resource: dns, rate: 4/s}\n- {resource: dns, per: source, rate: "
			  "9/s"),
		 5, 3, "rule 'dns#3' never blocks: 'dns#1' before it", NULL},
		{ONE_RULE("rate: 0.5/s"), 3, 25, "a threshold below 1 admits nothing", "write 1/2s"},
		{ONE_RULE("rate: 0.3/min"), 3, 25, "a threshold below 1 admits nothing", "write 3/10m"},
		{RULE("window: tokens\n  sampleCount: 5"), 6, 16, "'sampleCount' has no effect: it is for windows with",
		 NULL},
		{RULE("window: tokens\n  unit: bytes\n  burst: 1513"), 7, 10, "this burst is smaller than a frame",
		 NULL},
		{RULE("controlBehavior: Throttling\n  sampleCount: 5"), 6, 16, "'sampleCount' has no effect", NULL},
		{ONE_RULE("threshold: 5, " MEMORY), 3, 30, "'threshold' has no effect: it is for Direct and WarmUp",
		 "leave it out"},
		{ONE_RULE("threshold: 3000, unit: bytes" WARM_UP), 3, 30,
		 "cold, this threshold is smaller than a frame", NULL},
		{ONE_RULE("unit: bytes, " MEMORY), 3, 123, "this threshold is smaller than a frame", "1514"},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 0.5}]"), 5, 47, "a threshold below 1 admits nothing",
		 NULL},
		{KEYED
		 "rules: [{resource: a, threshold: 2000, unit: bytes, overrides: [{source: 10.0.0.0/8, threshold: "
		 "1513}, {source: 11.0.0.0/8, threshold: 0}]}]\n",
		 2, 97, "smaller than a frame", NULL},
		{"resources: [{name: a, match: {family: ipv4}, flow: source/24}]\n"
		 "rules: [{resource: a, threshold: 2, overrides: [{source: '::/8', threshold: 1}]}]\n",
		 2, 58, "the override has no effect: 'a' matches only IPv4", NULL},
		{RULE("unit: bytes"), 4, 14, "smaller than a frame", "1514"},
		{RESOURCES "rules: [{resource: dns, threshold: 0.999999}]\n", 2, 36, "admits nothing", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: 1513, unit: bytes}]\n", 2, 36, "smaller than a frame",
		 NULL},
		{"settings: {nonIp: drop}\n" RESOURCES "rules: [{resource: dns, threshold: 1}]\n", 1, 19, "drops ARP",
		 "write 'nonIpExcept: arp'"},
		{"settings: {nonIpExcept: arp}\n" RESOURCES "rules: [{resource: dns, threshold: 1}]\n", 1, 25,
		 "drops ARP", "leave 'arp' out"},
		{MATCH("{protocol: icmp, destinationPort: 53}"), 4, 39,
		 "no protocol in 'protocol' has 'destinationPort'", NULL},
		{MATCH("{protocol: udp, tcpFlags: syn}"), 4, 31, "has 'tcpFlags'", NULL},
		{MATCH("{protocol: tcp, icmpType: 8}"), 4, 31, "has 'icmpType'", NULL},
		{MATCH("{icmpType: 8, sourcePort: 8}"), 4, 16, "both 'sourcePort' and 'icmpType'", NULL},
		{MATCH("{fragment: later, sourcePort: 8}"), 4, 35, "a later fragment has no 'sourcePort'", NULL},
		{MATCH("{family: ipv4, source: '::1'}"), 4, 28, "'source' has no prefix of the family", NULL},
		{MATCH("{source: 1.2.3.4, destination: '::1'}"), 4, 36, "no family in common", NULL},
		{MATCH("length: 42"), 4, 13, "'length' below 61 depends on padding", "write 'ipLength'"},
		{MATCH("length: [64-128, 0-60]"), 4, 13, "'length' below 61", NULL},
		{MATCH("length: 60-100"), 4, 13, "'length' below 61", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, true);
	assert_reads(bench, MATCH("{length: [0-61, 61-100], ipLength: 0-46}"));
}

BENCH_CLAIM(mistake_in_a_breaker_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{BREAKER("threshold: 0.5" TIMES), 3, 3, "the circuit breaker has no strategy",
		 "SlowRequestRatio, ErrorRatio or ErrorCount"},
		{BREAKER("strategy: 3, threshold: 0.5" TIMES), 3, 14, "'3' is not a value of 'strategy'",
		 "SlowRequestRatio, ErrorRatio or ErrorCount; its number, 0 to 2"},
		{BREAKER("strategy: errorRatio, threshold: 0.5" TIMES), 3, 14, "'errorRatio' is not a value of",
		 "'ErrorRatio'"},
		{BREAKER("strategy: ErrorRatio" TIMES), 3, 3, "the circuit breaker has no threshold",
		 "'threshold: 0.5'"},
		{BREAKER("strategy: ErrorCount" TIMES), 3, 3, "the circuit breaker has no threshold",
		 "'threshold: 10'"},
		{BREAKER("strategy: ErrorRatio, threshold: 1.000001" TIMES), 3, 37,
		 "is out of range: ErrorRatio is a ratio", "0 to 1"},
		{BREAKER("strategy: ErrorCount, threshold: 10000001" TIMES), 3, 37,
		 "is out of range: ErrorCount is a number", "0 to 10000000"},
		{BREAKER("strategy: ErrorRatio, threshold: 0.0000005" TIMES), 3, 37, "six decimals", NULL},
		{BREAKER("strategy: ErrorRatio, threshold: half" TIMES), 3, 37, "'half' is not a number", NULL},
		{BREAKER("strategy: ErrorRatio, threshold: -0.5" TIMES), 3, 37, "'-0.5' is negative", NULL},
		{BREAKER("strategy: ErrorRatio, threshold: 0.5, statIntervalMs: 1000, retryTimeoutMs: 3000"), 3, 3,
		 "the rule has no resource", "resource: NAME"},
		{BREAKER("strategy: 1, threshold: 0.5, resource: wbe, statIntervalMs: 1000, retryTimeoutMs: 3000"), 3,
		 43, "no resource 'wbe'", "'web'"},
		{BREAKER("strategy: 1, threshold: 0.5, resource: web, retryTimeoutMs: 3000"), 3, 3,
		 "needs a statIntervalMs of at least 1", "'statIntervalMs: 1000'"},
		{BREAKER("strategy: 1, threshold: 0.5, resource: web, statIntervalMs: 1000"), 3, 3,
		 "needs a retryTimeoutMs of at least 1", "'retryTimeoutMs: 1000'"},
		{BREAKER("strategy: 1, threshold: 0.5, resource: web, statIntervalMs: 0, retryTimeoutMs: 3000"), 3, 64,
		 "needs a statIntervalMs of at least 1", NULL},
		{BREAKER("strategy: 1, threshold: 0.5, resource: web, statIntervalMs: 86400001, retryTimeoutMs: 1"), 3,
		 64, "statIntervalMs: '86400001' is out of range", "0 to 86400000"},
		{BREAKER("strategy: 1, threshold: 0.5, resource: web, statIntervalMs: 1, retryTimeoutMs: 86400001"), 3,
		 83, "retryTimeoutMs: '86400001' is out of range", NULL},
		{BREAKER(RATIO ", minRequestAmount: 10000001"), 3, 119, "minRequestAmount: '10000001' is out of range",
		 "0 to 10000000"},
		{BREAKER(RATIO ", statSlidingWindowBucketCount: 11"), 3, 131,
		 "statSlidingWindowBucketCount: '11' is out of range", "0 to 10"},
		{BREAKER(RATIO ", probeNum: 1000001"), 3, 111, "probeNum: '1000001' is out of range", "0 to 1000000"},
		{BREAKER(RATIO ", probeNum: few"), 3, 111, "probeNum: 'few' is not a whole number", NULL},
		{BREAKER(SLOW), 3, 3, "needs a maxAllowedRtMs of at least 1", "'maxAllowedRtMs: 1000'"},
		{BREAKER(SLOW ", maxAllowedRtMs: 86400001"), 3, 123, "maxAllowedRtMs: '86400001' is out of range",
		 NULL},
		{BREAKER(RATIO ", mode: obsrve"), 3, 107, "'obsrve' is not a value of 'mode'", "'observe'"},
		{BREAKER(RATIO ", probes: 3"), 3, 101, "a circuit breaker has no field 'probes'", NULL},
		{BREAKER(RATIO ", sampleCount: 2"), 3, 101, "a circuit breaker has no field 'sampleCount'",
		 "known fields: name, resource, strategy"},
		{BREAKER("Strategy: 1, strategy: 1, threshold: 1" TIMES), 3, 4,
		 "a circuit breaker has no field 'Strategy'", "did you mean 'strategy'?"},
		{RESOURCES "circuitBreakers: {resource: web}\n", 2, 18, "'circuitBreakers' must be a list", "'- '"},
		{RESOURCES "circuitBreakers: [web]\n", 2, 19, "a circuit breaker must be a map of fields", "name"},
		{"resources: [{name: web, match: {protocol: udp}}]\ncircuitBreakers:\n- {" RATIO "}\n", 3, 52,
		 "'web' matches no TCP opening, so it cannot have a circuit breaker", "match protocol tcp"},
		{"resources: [{name: web, match: {fragment: later}}]\ncircuitBreakers:\n- {" RATIO "}\n", 3, 52,
		 "'web' matches no TCP opening", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(breaker_that_is_surely_not_meant_so_is_warned_of)
{
	static const struct sample samples[] = {
		{BREAKER(RATIO ", statSlidingWindowBucketCount: 7"), 3, 131,
		 "1000 ms cannot be divided into 7 buckets of whole ms: as in Sentinel, there is one bucket",
		 "divides statIntervalMs"},
		{BREAKER("strategy: ErrorCount, threshold: 0" TIMES), 3, 37,
		 "opens the breaker with the first outcomes", "such as 0.5"},
		{BREAKER(RATIO ", maxAllowedRtMs: 5"), 3, 117, "'maxAllowedRtMs' has no effect", "leave it out"},
		{BREAKER(SLOW ", maxAllowedRtMs: 10000"), 3, 123, "no request can be slow",
		 "raise settings.halfOpenTimeoutInMs"},
		{"resources: [{name: web, match: {tcpFlags: syn}}]\ncircuitBreakers:\n- {" RATIO "}\n", 3, 52,
		 "matches only some packets of a connection: its match has 'tcpFlags'", "match by addresses and ports"},
		{"resources: [{name: web, match: {length: '61-80'}}]\ncircuitBreakers:\n- {" RATIO "}\n", 3, 52,
		 "its match has 'length'", NULL},
		{"resources: [{name: web, match: {ipLength: '40-60'}}]\ncircuitBreakers:\n- {" RATIO "}\n", 3, 52,
		 "its match has 'ipLength'", NULL},
		{"resources: [{name: web, match: {dscp: 0}}]\ncircuitBreakers:\n- {" RATIO "}\n", 3, 52,
		 "its match has 'dscp'", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, true);
	assert_reads(bench, BREAKER(SLOW ", maxAllowedRtMs: 9999, statSlidingWindowBucketCount: 10, id: 7"));
	assert_reads(bench, BREAKER("strategy: ErrorCount, threshold: 10000000, minRequestAmount: 0" TIMES));
}

BENCH_CLAIM(legal_edges_are_not_warned_of)
{
	assert_reads(bench, RESOURCES
		     "rules: [{resource: dns, threshold: 1514, unit: bytes}, {resource: web, threshold: 1}]\n");
	assert_reads(bench, MATCH("{protocol: [icmp, sctp], destinationPort: 53, fragment: [first, later]}"));
	assert_reads(bench, MATCH("{family: ipv4, source: ['::1', 1.2.3.4]}"));
	assert_reads(bench, MATCH("{tcpFlags: syn, destinationPort: 22}"));
	assert_reads(bench, DIRECTED("both", "[remote/24/56, localPort, vlan]") RULES_OF_R);
	assert_reads(bench, DIRECTED("out", "[source, remotePort]") RULES_OF_R);
	assert_reads(bench, DIRECTED("out", "[source, destination]") RULES_OF_R);
	assert_reads(bench, DIRECTED("out", "local") RULES_OF_R);
	assert_reads(bench, DIRECTED("out, destinationPort: 53", "[remote, remotePort]") RULES_OF_R);
	assert_reads(bench, DIRECTED("out, destinationPort: 53", "[]") RULES_OF_R);
	assert_reads(bench, DIRECTED("out, destinationPort: 8080", "remote") RULES_OF_R);
	assert_reads(bench, DIRECTED("out, destinationPort: 53, sourcePort: 53", "remote") RULES_OF_R);
	assert_reads(bench, DIRECTED("in, destinationPort: 53", "remote") RULES_OF_R);
	assert_reads(bench, DIRECTED("in", "[source, local]") RULES_OF_R);
	assert_reads(bench, DIRECTED("out", "remote") "- {resource: r, threshold: 9, overrides: [{remote: 192.0.2.1, "
						      "threshold: 5}]}\n");
	assert_reads(bench, "resources:\n- {name: r, match: {direction: out}, flow: destination/24/56}\n"
			    "- {name: s, match: {direction: out}, flow: remote/24/56}\nrules:\n"
			    "- {resource: s, threshold: 9, relationStrategy: AssociatedResource, refResource: r}\n");
	assert_reads(bench, "resources: [{name: r, match: {protocol: tcp}}]\nrules:\n- {resource: r, threshold: 9, "
			    "onBlock: cookie}\n"
			    "- {resource: r, metricType: Concurrency, threshold: 9, mode: observe, onBlock: cookie}\n");
	/* Beside a rule that blocks at 5 in a second, what counts otherwise, or admits less, may block as well. */
	assert_reads(bench, ONE_RULE("rate: 5/s}\n- {resource: dns, rate: 4/s"));
	assert_reads(bench, ONE_RULE("rate: 5/s}\n- {resource: dns, rate: 5/2s"));
	assert_reads(bench, ONE_RULE("rate: 5/s}\n- {resource: dns, rate: 5/s, per: source"));
	assert_reads(bench, ONE_RULE("rate: 5/s}\n- {resource: dns, rate: 5/s, window: strict"));
	assert_reads(bench, ONE_RULE("rate: 5/s}\n- {resource: dns, rate: 2kB/s"));
	assert_reads(bench, ONE_RULE("rate: 5/s, mode: observe}\n- {resource: dns, rate: 5/s"));
	assert_reads(bench, ONE_RULE("rate: 5/s}\n- {resource: dns, rate: 5/s, mode: observe"));
	assert_reads(bench, ONE_RULE("rate: 5/s}\n- {resource: dns, metricType: Concurrency, threshold: 5"));
}

/* ---- places ---- */

BENCH_CLAIM(caret_stands_under_the_token_whatever_is_before_it)
{
	/* A tab in the line is repeated below; characters count, not bytes; quotes belong to the token. */
	assert_int_equal(read_texts(bench, "resources: [{name: äöü,\tmatch: {family: \"nö\"}}]\n", NULL, NULL),
			 -EINVAL);
	assert_messages(bench, "a.yaml:1:41: family: 'nö' is not known\n"
			       "    resources: [{name: äöü,\tmatch: {family: \"nö\"}}]\n"
			       "                           \t                ^~~~\n"
			       "    write ipv4 or ipv6\n");
}

BENCH_CLAIM(long_line_is_shown_around_the_token)
{
	char text[2048] = "resources: [";

	for (int i = 0; i < 40; i++)
		sprintf(text + strlen(text), "{name: resource-number-%d}, ", i);
	strcat(text,
	       "{nome: x}, {name: y, match: {protocol: udp}, flow: [source/24/56, destination, vlan, interface]}]\n");
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 1);
	assert_string_equal(bench->diag.entries[0].message, "resource has no field 'nome'");
	assert_true(strlen(bench->diag.entries[0].source_line) <= 170);
	assert_memory_equal(bench->diag.entries[0].source_line + bench->diag.entries[0].caret, "nome", 4);
	assert_memory_equal(text + bench->diag.entries[0].column - 1, "nome", 4);
}

BENCH_CLAIM(terminal_control_in_a_file_does_not_reach_the_terminal)
{
	assert_int_equal(read_texts(bench, "\"\\e[31m\\x9b\": 1\n", NULL, NULL), -EINVAL);
	assert_string_equal(bench->diag.entries[0].message, "a rule file has no field '?[31m?'");
}

BENCH_CLAIM(rule_place_is_its_name_or_its_start)
{
	assert_reads(bench, "resources:\n- name: r\nrules:\n- threshold: 2\n  resource: r\n- threshold: 1\n  name: x\n "
			    " resource: r\n");
	assert_int_equal(bench->ruleset->resources[0].place.column, 9);
	assert_int_equal(bench->ruleset->rules[0].place.line, 4);
	assert_int_equal(bench->ruleset->rules[1].place.line, 7);
	assert_int_equal(bench->ruleset->rules[1].place.column, 9);
}

BENCH_CLAIM(mistake_in_an_anchored_value_is_reported_once)
{
	assert_int_equal(read_texts(bench, "resources:\n- {name: a, match: &m {vlan: x}}\n- {name: b, match: *m}\n",
				    NULL, NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.errors, 1);
}

RUN_CLAIMS(NULL, NULL)
