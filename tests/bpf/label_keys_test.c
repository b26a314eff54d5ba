// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flow keys with the labels of a set (docs/sets.md) in the shipped BPF objects: which packets are one flow, for each
 * kind of limit, in both directions, under overrides, and across a reload with another file.
 */
#include <netinet/in.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "tables/labels.h"

#define GOLD "10.1.0.1"
#define GOLD_TOO "10.1.9.9"
#define GOLD_V6 "2001:db8::1"
#define SILVER "10.2.0.1" /* in a network of gold */
#define STRANGER "192.0.2.1"
#define STRANGER_V6 "2001:db9::1"
#define LOCAL "198.51.100.1"
#define LOCAL_V6 "2001:db8:ffff::1"

#define SETS                                                                                                           \
	"sets:\n  s:\n    labels: true\n    prefixes:\n    - {prefix: 10.0.0.0/8, label: gold}\n"                      \
	"    - {prefix: 10.2.0.0/16, label: silver}\n    - {prefix: '2001:db8::/32', label: gold}\n"
#define RESOURCE(fields) "resources: [{name: r, " fields "}]\n"
#define RULE(fields) "rules: [{name: limit, resource: r, " fields "}]\n"

/* `before`: a load that this one reloads a second later, or NULL. */
static void begin_reload(struct rig *rig, const struct rig *before, const char *rules, uint32_t hooks)
{
	struct weir_diag diag = {};
	int err;

	rig_begin(rig, 512);
	weir_ruleset_free(rig->ruleset);
	rig->ruleset = NULL;
	err = weir_ruleset_parse("rules.yaml", rules, strlen(rules), &rig->ruleset, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
	rig->hooks = hooks;
	rig->reloads = before;
	rig->now_ns = RIG_START_NS + SECOND;
	rig_load_here(rig);
}

static void begin(struct rig *rig, const char *rules, uint32_t hooks)
{
	begin_reload(rig, NULL, rules, hooks);
}

/* How many of `count` packets pass at this time. */
static unsigned int send_by(const struct rig *rig, enum weir_hook hook, struct packet_spec spec, uint64_t time_ns,
			    unsigned int count)
{
	volatile struct weir_harness *harness = weir_object_harness(rig->object);
	uint8_t frame[PACKET_BYTES_MAX];
	const size_t bytes = packet_build(&spec, frame);
	unsigned int passed = 0;

	for (unsigned int i = 0; i < count; i++) {
		int action;

		harness->clock_ns = RIG_START_NS + time_ns;
		harness->frame_bytes = bytes;
		action = weir_object_evaluate_at(rig->object, hook, frame, bytes, 1);
		assert_int_not_equal(harness->verdict, WEIR_VERDICT_ERROR);
		assert_true(action == XDP_PASS || action == XDP_DROP);
		passed += action == XDP_PASS;
	}
	return passed;
}

static unsigned int send_in(const struct rig *rig, const char *source, unsigned int count)
{
	const char *local = strchr(source, ':') ? LOCAL_V6 : LOCAL;

	return send_by(rig, WEIR_HOOK_XDP, packet_udp(source, 4000, local, 53, 18), 0, count);
}

static unsigned int send_out(const struct rig *rig, const char *destination, unsigned int count)
{
	return send_by(rig, WEIR_HOOK_TC_OUT, packet_udp(LOCAL, 53, destination, 4000, 18), 0, count);
}

/* ---- which packets are one flow ---- */

CLAIM(addresses_of_a_label_are_one_flow_and_so_are_those_without)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, SETS RESOURCE("flow: source@s") RULE("rate: 10/s"), 0);
	assert_int_equal(send_in(&rig, GOLD, 4), 4);
	assert_int_equal(send_in(&rig, GOLD_TOO, 4), 4);
	assert_int_equal(send_in(&rig, GOLD_V6, 4), 2);
	assert_int_equal(send_in(&rig, SILVER, 12), 10);
	assert_int_equal(send_in(&rig, STRANGER, 7), 7);
	assert_int_equal(send_in(&rig, STRANGER_V6, 7), 3);
}

CLAIM(other_fields_of_the_key_tell_flows_of_a_label_apart)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, SETS RESOURCE("flow: [source@s, destination, sourcePort]") RULE("rate: 3/s"), 0);
	assert_int_equal(send_in(&rig, GOLD, 2), 2);
	assert_int_equal(send_in(&rig, GOLD_TOO, 2), 1);
	assert_int_equal(send_by(&rig, WEIR_HOOK_XDP, packet_udp(GOLD, 4001, LOCAL, 53, 18), 0, 5), 3);
	assert_int_equal(send_by(&rig, WEIR_HOOK_XDP, packet_udp(GOLD, 4000, "198.51.100.2", 53, 18), 0, 5), 3);
	assert_int_equal(send_in(&rig, GOLD_V6, 5), 3); /* to another destination */
}

CLAIM(both_ends_may_have_a_set)
{
	static const char *const rules =
		"sets:\n  s: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: gold}]}\n"
		"  t: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a}, {prefix: 10.9.0.0/16, label: "
		"b}]}\n" RESOURCE("flow: [source@s, destination@t]") RULE("rate: 3/s");
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, rules, 0);
	assert_int_equal(send_by(&rig, WEIR_HOOK_XDP, packet_udp(GOLD, 1, "10.8.0.1", 53, 18), 0, 2), 2);
	assert_int_equal(send_by(&rig, WEIR_HOOK_XDP, packet_udp(GOLD_TOO, 1, "10.8.0.2", 53, 18), 0, 2), 1);
	assert_int_equal(send_by(&rig, WEIR_HOOK_XDP, packet_udp(GOLD, 1, "10.9.0.1", 53, 18), 0, 5), 3);
	assert_int_equal(send_by(&rig, WEIR_HOOK_XDP, packet_udp(STRANGER, 1, "10.9.0.1", 53, 18), 0, 5), 3);
}

/* A match by another set, and prefixes of its own, share the map with the key's trie. */
CLAIM(matches_by_sets_and_keys_by_sets_do_not_meet)
{
	static const char *const rules =
		"sets:\n  s: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: gold}]}\n"
		"  m: {prefixes: [10.1.0.0/16, 192.0.2.0/24]}\n" RESOURCE(
			"match: {source: ['@m', 198.18.0.0/15]}, flow: source@s") RULE("rate: 3/s");
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, rules, 0);
	assert_int_equal(send_in(&rig, GOLD, 2), 2);
	assert_int_equal(send_in(&rig, SILVER, 9), 9); /* matches nothing */
	assert_int_equal(send_in(&rig, GOLD_TOO, 2), 1);
	assert_int_equal(send_in(&rig, STRANGER, 2), 2);
	assert_int_equal(send_in(&rig, "198.18.0.1", 2), 1);
}

static uint32_t chance(uint32_t below)
{
	static uint64_t state = 0x2545f4914f6cdd1dull;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

#define PREFIXES 300
#define LABELS 40

/* The rule admits one packet of each label, and so says which label it took the address for. */
CLAIM(random_addresses_have_the_label_that_a_plain_search_finds)
{
	struct {
		uint32_t address, label;
		int bits;
	} prefixes[PREFIXES];
	bool has_passed[LABELS + 1] = {};
	_cleanup_(weir_freep) char *text = NULL;
	_cleanup_(rig_end) struct rig rig = {};
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	fprintf(stream, "sets:\n  s:\n    labels: true\n    prefixes:\n");
	for (uint32_t i = 0; i < PREFIXES; i++) {
		prefixes[i].bits = 4 + (int)chance(25);
		prefixes[i].address = (10u << 24 | chance(1u << 24)) & ~0u << (32 - prefixes[i].bits);
		prefixes[i].label = chance(LABELS);
		for (uint32_t k = 0; k < i; k++) /* one label for one prefix */
			if (prefixes[k].bits == prefixes[i].bits && prefixes[k].address == prefixes[i].address)
				prefixes[i].label = prefixes[k].label;
		fprintf(stream, "    - {prefix: %u.%u.%u.%u/%d, label: label-%u}\n", prefixes[i].address >> 24,
			prefixes[i].address >> 16 & 255, prefixes[i].address >> 8 & 255, prefixes[i].address & 255,
			prefixes[i].bits, prefixes[i].label);
	}
	fprintf(stream, RESOURCE("flow: source@s") RULE("rate: 1/h"));
	fclose(stream);
	begin(&rig, text, 0);
	for (int i = 0; i < 2000; i++) {
		const uint32_t address = (8 + chance(4)) << 24 | chance(1u << 24);
		uint32_t label = LABELS;
		char source[16];
		int longest = -1;

		for (uint32_t k = 0; k < PREFIXES; k++)
			if (!((address ^ prefixes[k].address) & ~0u << (32 - prefixes[k].bits)) &&
			    prefixes[k].bits > longest) {
				longest = prefixes[k].bits;
				label = prefixes[k].label;
			}
		snprintf(source, sizeof(source), "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
			 address & 255);
		if (send_in(&rig, source, 1) != !has_passed[label])
			fail_msg("%s is not of label %u", source, label);
		has_passed[label] = true;
	}
}

/* ---- each kind of limit ---- */

CLAIM(every_kind_of_limit_counts_by_label)
{
	static const char *const limits[] = {
		"threshold: 4",
		"threshold: 4, window: strict",
		"threshold: 4, window: smooth",
		"threshold: 4, window: tokens",
		"threshold: 4, blockDurationInMs: 500",
		"threshold: 4, controlBehavior: Throttling, maxQueueingTimeMs: 750",
		"threshold: 12, tokenCalculateStrategy: WarmUp, warmUpPeriodSec: 10",
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		_cleanup_(weir_freep) char *text = NULL;
		_cleanup_(rig_end) struct rig rig = {};

		assert_true(asprintf(&text, SETS RESOURCE("flow: source@s") RULE("%s"), limits[i]) > 0);
		begin(&rig, text, 0);
		assert_int_equal(send_in(&rig, GOLD, 3), 3);
		assert_int_equal(send_in(&rig, GOLD_V6, 3), 1);
		assert_int_equal(send_in(&rig, SILVER, 9), 4);
		assert_int_equal(send_in(&rig, STRANGER, 9), 4);
	}
}

#define SYN 2
#define RST 4

/* One segment from each of so many ports. Returns how many pass. */
static unsigned int send_tcp(const struct rig *rig, const char *source, uint16_t port, unsigned int count,
			     uint8_t tcp_flags)
{
	unsigned int passed = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct packet_spec spec = packet_udp(source, port + i, strchr(source, ':') ? LOCAL_V6 : LOCAL, 443, 0);

		spec.protocol = IPPROTO_TCP;
		spec.tcp_flags = tcp_flags;
		passed += send_by(rig, WEIR_HOOK_XDP, spec, 0, 1);
	}
	return passed;
}

CLAIM(connections_and_requests_of_a_label_are_counted_together)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig,
	      SETS RESOURCE("match: {protocol: tcp}, flow: source@s") RULE("metricType: Concurrency, threshold: 4"), 0);
	assert_int_equal(send_tcp(&rig, GOLD, 1000, 3, SYN), 3);
	assert_int_equal(send_tcp(&rig, GOLD_V6, 2000, 3, SYN), 1);
	assert_int_equal(send_tcp(&rig, SILVER, 3000, 6, SYN), 4);
	assert_int_equal(send_tcp(&rig, STRANGER, 1000, 6, SYN), 4);
	rig_end(&rig);
	begin(&rig,
	      SETS RESOURCE(
		      "match: {protocol: tcp}, flow: source@s") "circuitBreakers: [{resource: r, strategy: ErrorCount, "
								"threshold: 4, retryTimeoutMs: 60000, statIntervalMs: "
								"10000}]\n",
	      0);
	send_tcp(&rig, GOLD, 1000, 2, SYN);
	send_tcp(&rig, GOLD, 1000, 2, RST);
	send_tcp(&rig, GOLD_V6, 2000, 2, SYN);
	assert_int_equal(send_tcp(&rig, GOLD_TOO, 3000, 1, SYN), 1);
	send_tcp(&rig, GOLD_V6, 2000, 2, RST);
	assert_int_equal(send_tcp(&rig, GOLD_TOO, 3001, 1, SYN), 0);
	assert_int_equal(send_tcp(&rig, SILVER, 3000, 1, SYN), 1);
	assert_int_equal(send_tcp(&rig, STRANGER, 3000, 1, SYN), 1);
}

/* ---- overrides ---- */

CLAIM(an_override_names_a_label)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig,
	      SETS RESOURCE("flow: [source@s, destination/24/56]")
		      RULE("rate: 5/s, overrides: [{label: gold, rate: 2/s}, {label: nobodys, rate: 1/s}]"),
	      0);
	assert_int_equal(send_in(&rig, GOLD, 5), 2);
	assert_int_equal(send_in(&rig, GOLD_TOO, 5), 0);
	assert_int_equal(send_in(&rig, GOLD_V6, 5), 2); /* to another network */
	assert_int_equal(send_in(&rig, SILVER, 9), 5);
	assert_int_equal(send_in(&rig, STRANGER, 9), 5);
}

CLAIM(an_override_of_the_other_end_is_by_its_prefix)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig,
	      SETS RESOURCE("flow: [source@s, destination]")
		      RULE("rate: 5/s, overrides: [{destination: 198.51.100.0/24, rate: 2/s}]"),
	      0);
	assert_int_equal(send_in(&rig, GOLD, 5), 2);
	assert_int_equal(send_by(&rig, WEIR_HOOK_XDP, packet_udp(GOLD, 4000, "203.0.113.1", 53, 18), 0, 9), 5);
}

/* ---- directions ---- */

CLAIM(a_label_of_the_remote_end_has_one_flow_of_both_directions)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig,
	      SETS RESOURCE("match: {direction: both}, flow: remote@s")
		      RULE("rate: 10/s, overrides: [{label: silver, rate: 3/s}]"),
	      1u << WEIR_HOOK_TC_OUT);
	assert_int_equal(send_in(&rig, GOLD, 6), 6);
	assert_int_equal(send_out(&rig, GOLD_TOO, 6), 4);
	assert_int_equal(send_in(&rig, SILVER, 2), 2);
	assert_int_equal(send_out(&rig, SILVER, 2), 1);
	assert_int_equal(send_out(&rig, STRANGER, 12), 10);
}

CLAIM(what_goes_out_has_the_label_of_its_own_source_or_destination)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig,
	      SETS RESOURCE("match: {direction: out}, flow: destination@s")
		      RULE("rate: 3/s, overrides: [{label: silver, rate: 1/s}]"),
	      1u << WEIR_HOOK_TC_OUT);
	assert_int_equal(send_out(&rig, GOLD, 2), 2);
	assert_int_equal(send_out(&rig, GOLD_TOO, 2), 1);
	assert_int_equal(send_out(&rig, SILVER, 5), 1);
	rig_end(&rig);
	/* of both directions, each from its own source: all that goes out is from an address without a label */
	begin(&rig, SETS RESOURCE("match: {direction: both}, flow: source@s") RULE("rate: 3/s"),
	      1u << WEIR_HOOK_TC_OUT);
	assert_int_equal(send_in(&rig, GOLD, 5), 3);
	assert_int_equal(send_out(&rig, GOLD, 2), 2);
	assert_int_equal(send_out(&rig, SILVER, 2), 1);
	assert_int_equal(send_in(&rig, STRANGER, 2), 0);
}

/* Under several rules a packet may be taken for one of the flows of the packet before, which is remembered by its ends.
 * A key of the packet's own ends takes the other end of what goes out.
 */
static void check_going_out(const char *key, struct packet_spec one, struct packet_spec other)
{
	_cleanup_(weir_freep) char *text = NULL;
	_cleanup_(rig_end) struct rig rig = {};

	assert_true(
		asprintf(&text,
			 SETS RESOURCE("match: {direction: both}, flow: %s") "rules:\n"
									     "- {name: a, resource: r, rate: 9/h}\n"
									     "- {name: b, resource: r, rate: 4/h}\n",
			 key) > 0);
	begin(&rig, text, 1u << WEIR_HOOK_TC_OUT);
	assert_int_equal(send_by(&rig, WEIR_HOOK_TC_OUT, one, 0, 6), 4);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(send_by(&rig, WEIR_HOOK_TC_OUT, other, 0, 1), i < 4);
		assert_int_equal(send_by(&rig, WEIR_HOOK_TC_OUT, one, 0, 1), 0);
	}
}

CLAIM(packets_in_a_row_that_go_out_have_flows_of_their_own_under_several_rules)
{
	const struct packet_spec one = packet_udp(LOCAL, 53, GOLD, 4000, 18);

	check_going_out("source", one, packet_udp("198.51.100.2", 53, GOLD, 4000, 18));
	check_going_out("sourcePort", one, packet_udp(LOCAL, 54, GOLD, 4000, 18));
	check_going_out("destination", one, packet_udp(LOCAL, 53, SILVER, 4000, 18));
	check_going_out("destination@s", one, packet_udp(LOCAL, 53, SILVER, 4000, 18));
}

/* ---- reloads ---- */

/* In another order, so that labels have other numbers; with a new label, and one prefix that moved to it. */
#define OTHER_SETS                                                                                                     \
	"sets:\n  a: {labels: true, prefixes: [{prefix: 192.0.2.0/24, label: zinc}]}\n  s:\n    labels: true\n"        \
	"    prefixes:\n    - {prefix: 10.1.9.0/24, label: bronze}\n    - {prefix: 10.2.0.0/16, label: silver}\n"      \
	"    - {prefix: 10.0.0.0/8, label: gold}\n    - {prefix: '2001:db8::/32', label: gold}\n"

CLAIM(an_override_finds_its_label_behind_those_of_another_set)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig,
	      OTHER_SETS "resources:\n- {name: q, match: {vlan: 5}, flow: source@a}\n- {name: r, flow: source@s}\n"
			 "rules:\n- {resource: q, rate: 1k/h}\n"
			 "- {resource: r, rate: 5/s, overrides: [{label: gold, rate: 2/s}]}\n",
	      0);
	assert_int_equal(send_in(&rig, GOLD, 9), 2);
	assert_int_equal(send_in(&rig, SILVER, 9), 5);
	assert_int_equal(send_in(&rig, GOLD_TOO, 9), 5);
}

CLAIM(a_flow_is_known_by_its_label_across_a_reload)
{
	_cleanup_(rig_end) struct rig before = {}, rig = {};

	begin(&before, SETS RESOURCE("flow: source@s") RULE("rate: 10/h"), 0);
	assert_int_equal(send_in(&before, GOLD, 6), 6);
	assert_int_equal(send_in(&before, SILVER, 12), 10);
	begin_reload(&rig, &before,
		     OTHER_SETS
		     "resources:\n- {name: q, flow: source@a}\n- {name: r, match: {protocol: udp}, flow: source@s}\n"
		     "rules:\n- {name: q, resource: q, rate: 1k/h}\n- {name: limit, resource: r, rate: 10/h}\n",
		     0);
	assert_int_equal(rig.image->kept_rules, 1);
	assert_int_equal(send_in(&rig, GOLD, 6), 4);
	assert_int_equal(send_in(&rig, SILVER, 3), 0);
	assert_int_equal(send_in(&rig, GOLD_TOO, 12), 10); /* of the new label */
}

RUN_CLAIMS(NULL, NULL)
