/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is loaded on other kernels, and asked about the verifier's work: as little as there is to limit, and all of it.
 */
#ifndef WEIR_TEST_RULE_SETS_H
#define WEIR_TEST_RULE_SETS_H

#define SETTINGS "settings: {flowsPerCpu: 4096, nonIp: drop, unmatched: pass}\n"

static const char one_keyed_rule[] =
	SETTINGS "resources:\n"
		 "  - {name: dns, match: {protocol: udp, destinationPort: 53}, flow: source}\n"
		 "rules:\n"
		 "  - {name: dns-per-client, resource: dns, threshold: 5, statIntervalInMs: 86400000}\n";

/* Each answer to who is blocked; and connections, which cookies open. */
static const char every_answer[] =
	SETTINGS "resources:\n"
		 "  - {name: syn, match: {protocol: tcp, tcpFlags: 'syn,!ack', destinationPort: 80}, flow: source}\n"
		 "  - {name: web, match: {protocol: tcp, destinationPort: [80, 443]}, flow: source}\n"
		 "  - {name: dns, match: {protocol: udp, destinationPort: 53}, flow: source}\n"
		 "  - {name: rest, match: {protocol: udp, destinationPort: 54}, flow: source}\n"
		 "rules:\n"
		 "  - {resource: syn, threshold: 5, statIntervalInMs: 86400000, onBlock: cookie}\n"
		 "  - {resource: web, metricType: Concurrency, threshold: 5, onBlock: reset}\n"
		 "  - {resource: dns, threshold: 5, statIntervalInMs: 86400000, onBlock: truncate}\n"
		 "  - {resource: rest, threshold: 5, statIntervalInMs: 86400000, onBlock: unreachable}\n";

/* All of flow control in one load, so that nothing in the program is dead. Limits of a day or at one instant, so
 * that the answers do not depend on when they are asked.
 */
static const char all_flow_control[] =
	"settings: {flowsPerCpu: 4096, nonIp: drop, unmatched: pass,\n"
	"  cluster: {redis: \"redis://127.0.0.1:1\", name: edge}}\n" /* no controller speaks to it */
	"allow: [100.64.0.7, 2001:db8:a::/48]\n"
	"deny: [100.64.0.0/24]\n"
	"systemRules:\n" /* no packet of these tests meets its limit */
	"  - {metricType: InboundQPS, triggerCount: 1000000}\n"
	"  - {metricType: Concurrency, triggerCount: 1000000}\n"
	"  - {metricType: AvgRT, triggerCount: 1000000}\n"
	"  - {metricType: Load, triggerCount: 1000000, strategy: BBR}\n"
	"  - {metricType: CpuUsage, triggerCount: 1, strategy: BBR}\n"
	"resources:\n"
	"  - {name: dns, match: {protocol: udp, destinationPort: 53}, flow: source}\n"
	"  - {name: watched, match: {protocol: udp, destinationPort: 54}, flow: source}\n"
	"  - {name: mail, match: {protocol: udp, destinationPort: 25}, flow: source}\n"
	"  - {name: web, match: {protocol: udp, destinationPort: 80}, flow: source}\n"
	"  - {name: all, match: {protocol: udp, destinationPort: 81}}\n"
	"  - {name: login, match: {protocol: udp, destinationPort: 22}, flow: source}\n"
	"  - {name: voice, match: {protocol: udp, destinationPort: 82}, flow: source, prioritized: true}\n"
	"  - {name: trunk, match: {protocol: udp, destinationPort: [82, 83]}, prioritized: true}\n"
	"  - {name: entry, match: {protocol: tcp, destinationPort: 443}, flow: source}\n"
	"  - {name: service, match: {protocol: udp, destinationPort: 84}, flow: source}\n"
	"rules:\n"
	"  - {name: occupied, resource: voice, threshold: 3, statIntervalInMs: 86400000}\n"
	"  - {name: occupied-whole, resource: trunk, threshold: 8, statIntervalInMs: 86400000}\n"
	"  - {name: connections, resource: login, metricType: Concurrency, threshold: 3,\n"
	"     overrides: [{source: 10.0.0.3, threshold: 0}]}\n"
	"  - {name: overridden, resource: dns, threshold: 5, statIntervalInMs: 86400000, blockDurationInMs: 3600000,\n"
	"     whenFull: aggregate,\n"
	"     overrides: [{source: 10.0.0.2, threshold: 7}, {source: 10.0.0.3, threshold: 0}]}\n"
	"  - {name: overridden-wide, resource: dns, threshold: 100000, statIntervalInMs: 86400000,\n"
	"     overrides: [{source: 10.0.0.9, threshold: 1}]}\n"
	"  - {name: gives-way, resource: watched, threshold: 4, statIntervalInMs: 86400000,\n"
	"     relationStrategy: AssociatedResource, refResource: dns, window: smooth,\n"
	"     blockDurationInMs: 60000, blockDurationMaxInMs: 3600000}\n"
	"  - {name: tokens, resource: dns, threshold: 100, window: tokens, burst: 1000000,\n"
	"     overrides: [{source: 10.0.0.2, threshold: 1000}]}\n"
	"  - {name: tokens-whole, resource: all, threshold: 1000, window: tokens, burst: 1000000}\n"
	"  - {name: spaced, resource: mail, threshold: 1, statIntervalInMs: 86400000, controlBehavior: Throttling,\n"
	"     maxQueueingTimeMs: 86400000, overrides: [{source: 10.0.0.3, threshold: 0}]}\n"
	"  - {name: warming, resource: web, threshold: 30, tokenCalculateStrategy: WarmUp, warmUpPeriodSec: 10}\n"
	"  - {name: warming-spaced, resource: web, threshold: 30, tokenCalculateStrategy: WarmUp,\n"
	"     warmUpPeriodSec: 10, controlBehavior: Throttling, maxQueueingTimeMs: 60000}\n"
	"  - {name: warming-whole, resource: all, threshold: 30, tokenCalculateStrategy: WarmUp,\n"
	"     warmUpPeriodSec: 10}\n"
	"  - {name: by-memory, resource: all, tokenCalculateStrategy: MemoryAdaptive, statIntervalInMs: 86400000,\n"
	"     lowMemUsageThreshold: 8, highMemUsageThreshold: 6, memLowWaterMarkBytes: 1,\n"
	"     memHighWaterMarkBytes: 2, blockDurationInMs: 3600000}\n"
	"  - {name: shared, resource: mail, threshold: 1000000, statIntervalInMs: 86400000, fairBy: sourcePort}\n"
	"  - {name: of-all-hosts, resource: service, threshold: 5, clusterMode: true,\n"
	"     clusterConfig: {thresholdType: GLOBAL}}\n"
	"  - {name: of-all-hosts-wide, resource: service, threshold: 100000, clusterMode: true,\n"
	"     clusterConfig: {thresholdType: GLOBAL}}\n"
	"circuitBreakers:\n"
	"  - {name: failing, resource: entry, strategy: ErrorRatio, threshold: 0.5, statIntervalMs: 86400000,\n"
	"     minRequestAmount: 2, retryTimeoutMs: 86400000}\n"
	"  - {name: slow, resource: entry, strategy: SlowRequestRatio, threshold: 1, maxAllowedRtMs: 86400000,\n"
	"     statIntervalMs: 86400000, statSlidingWindowBucketCount: 10, probeNum: 3, retryTimeoutMs: 86400000}\n";

#endif
