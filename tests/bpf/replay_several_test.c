// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets with two to four rules, against the model: verdict, the name under which a packet is dropped, waits and
 * counters. Plain windows are asked at once, and their answers hold for the same flows until the tick ends
 * (bpf/window/shortcuts.h). So packets come in runs at one moment of the virtual clock, and between windows there are
 * rules that leave traces, or must be asked: Throttling, tokens, penalties, bytes, rules that observe.
 */
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/harness_rounds.h"
#include "../lib/harness_setup.h"
#include "base/util.h"

#define RESOURCES_MAX 3
#define RULES_MAX 4
#define RUN_MAX 60

/* ---- rules ---- */

/* Each is matched by all packets, or by those to port 53. */
static void write_resource(FILE *stream, struct random *random, size_t number)
{
	static const char *const keys[] = {"",
					   ", flow: source",
					   ", flow: source",
					   ", flow: source/24/56",
					   ", flow: destination",
					   ", flow: [source, destinationPort]"};

	fprintf(stream, "  - {name: r%zu, match: {protocol: udp%s}%s}\n", number,
		random_percent(random, 30) ? ", destinationPort: 53" : "",
		keys[random_below(random, ARRAY_SIZE(keys))]);
}

/* Limits that are met soon, in windows with buckets of 50 ms to a second. */
static void write_window(FILE *stream, struct random *random)
{
	static const char *const rows[] = {"", "000"}; /* narrow ones, or medium ones */
	static const unsigned int samples[] = {1, 2, 4, 5, 10};

	fprintf(stream, "threshold: %u%s, statIntervalInMs: %u, sampleCount: %u",
		(unsigned int)random_between(random, 1, 120), rows[random_percent(random, 10)],
		(unsigned int)random_between(random, 1, 4) * 500, samples[random_below(random, ARRAY_SIZE(samples))]);
}

static void write_other(FILE *stream, struct random *random)
{
	const unsigned int threshold = random_between(random, 5, 200);

	switch (random_below(random, 5)) {
	case 0:
		fprintf(stream, "threshold: %u, controlBehavior: Throttling, maxQueueingTimeMs: %u", threshold,
			(unsigned int)random_below(random, 200));
		break;
	case 1:
		fprintf(stream, "threshold: %u, window: tokens, burst: %u", threshold, threshold);
		break;
	case 2:
		write_window(stream, random);
		fprintf(stream, ", blockDurationInMs: %u", (unsigned int)random_between(random, 1, 1000));
		break;
	case 3:
		write_window(stream, random);
		fprintf(stream, ", window: %s", random_percent(random, 50) ? "strict" : "smooth");
		break;
	default:
		fprintf(stream, "threshold: %u, unit: bytes, statIntervalInMs: 1000", threshold * 60);
	}
}

static void write_rule(FILE *stream, struct random *random, size_t resource, unsigned int other_percent)
{
	fprintf(stream, "  - {resource: r%zu, ", resource);
	if (random_percent(random, other_percent))
		write_other(stream, random);
	else
		write_window(stream, random);
	fprintf(stream, "%s}\n", random_percent(random, other_percent / 2) ? ", mode: observe" : "");
}

static struct weir_ruleset *several_rules(struct random *random)
{
	static const unsigned int others[] = {0, 0, 20, 40};
	const unsigned int other_percent = others[random_below(random, ARRAY_SIZE(others))];
	size_t resources = random_between(random, 1, RESOURCES_MAX), rules = random_between(random, 2, RULES_MAX);
	char path[] = "/tmp/weir-several-XXXXXX";
	const char *const paths[] = {path};
	struct weir_ruleset *ruleset = NULL;
	struct weir_diag diag = {};
	FILE *stream = fdopen(mkstemp(path), "w");
	int err;

	assert_non_null(stream);
	fprintf(stream, "resources:\n");
	for (size_t i = 0; i < resources; i++)
		write_resource(stream, random, i);
	fprintf(stream, "rules:\n");
	for (size_t i = 0; i < rules; i++)
		write_rule(stream, random, random_below(random, resources), other_percent);
	fclose(stream);
	err = weir_ruleset_read(paths, 1, &ruleset, &diag);
	unlink(path);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
	return ruleset;
}

/* ---- traffic ---- */

static struct packet_spec random_one(struct random *random)
{
	static const char *const sources[] = {"192.0.2.1", "192.0.2.2", "198.51.100.7", "2001:db8::1", "2001:db8::2"};
	static const uint16_t ports[] = {53, 53, 53, 80};
	const char *source = sources[random_below(random, ARRAY_SIZE(sources))];

	return packet_udp(source, 1024, strchr(source, ':') ? "2001:db8::53" : "203.0.113.1",
			  ports[random_below(random, ARRAY_SIZE(ports))], 18);
}

/* Runs of one flow, and of two in turn, mostly at one moment. */
static struct packet_spec *in_runs(struct random *random, const struct weir_ruleset *ruleset, size_t count)
{
	struct packet_spec *specs = calloc(count, sizeof(*specs));
	uint64_t now_ns = 1000 * SECOND;
	size_t i = 0;

	assert_non_null(specs);
	while (i < count) {
		const struct packet_spec pair[] = {random_one(random), random_one(random)};
		size_t run = random_between(random, 1, RUN_MAX), in_turn = random_percent(random, 30) ? 2 : 1;
		uint64_t step_ns = random_percent(random, 70) ? 0 : random_below(random, 5 * MS);

		for (size_t j = 0; j < run && i < count; j++, i++) {
			specs[i] = pair[j % in_turn];
			specs[i].time_ns = now_ns;
			specs[i].segments = random_percent(random, 80) ? 1 : random_between(random, 1, 4);
			now_ns += step_ns;
		}
		now_ns += random_percent(random, 60) ? 0 : random_below(random, 150 * MS);
	}
	return specs;
}

/* ---- claims ---- */

CLAIM(several_rules_agree_with_the_model)
{
	const struct harness_rounds rounds = {
		.rounds = 60,
		.packets = 4000,
		.has_directions = true, /* super-frames at tc */
		.rules = several_rules,
		.traffic = in_runs,
	};

	harness_rounds_agree(&rounds);
}

/* That a packet's flow is over its limit says nothing of the next packet, at the same moment and under the same rules,
 * if they differ in any field of the key. The interface is left out: a harness has one.
 */
HARNESS_CLAIM(packets_that_differ_in_one_field_of_a_key_are_of_two_flows)
{
	const struct packet_spec first = packet_udp("192.0.2.1", 1024, "203.0.113.1", 53, 18);
	struct packet_spec second[WEIR_KEY_FIELD_COUNT];

	for (size_t i = 0; i < WEIR_KEY_FIELD_COUNT; i++)
		second[i] = first;
	packet_source(&second[WEIR_KEY_PLACE_SOURCE], "192.0.2.2");
	packet_destination(&second[WEIR_KEY_PLACE_DESTINATION], "203.0.113.2");
	second[WEIR_KEY_PLACE_SOURCE_PORT].source_port++;
	second[WEIR_KEY_PLACE_DESTINATION_PORT].destination_port++;
	second[WEIR_KEY_PLACE_PROTOCOL].protocol = IPPROTO_SCTP;
	second[WEIR_KEY_PLACE_VLAN].tag[second[WEIR_KEY_PLACE_VLAN].tag_count++] =
		(struct packet_tag){ETHERTYPE_VLAN, 7};
	second[WEIR_KEY_PLACE_DSCP].traffic_class = 46 << 2;
	second[WEIR_KEY_PLACE_TTL].ttl = 63;
	for (size_t i = 0; i < WEIR_KEY_FIELD_COUNT; i++) {
		if (i == WEIR_KEY_PLACE_INTERFACE)
			continue;
		setup_resources(setup, 1);
		setup->resource[0].flow =
			(struct weir_flow){.fields = 1u << i, .source_bits = {32, 128}, .destination_bits = {32, 128}};
		setup_rule(setup, 0, rule_of("six", WEIR_WINDOW_LEAP, 6, SECOND, 10));
		setup_rule(setup, 0, rule_of("four", WEIR_WINDOW_LEAP, 4, SECOND, 10));
		harness_start(harness, setup);
		for (size_t n = 0; n < 30; n++) {
			struct packet_spec spec = n / 10 == 1 ? second[i] : first;

			spec.time_ns = 10 * SECOND;
			assert_int_equal(harness_verdict(harness, &spec) == WEIR_VERDICT_PASS, n < 20 && n % 10 < 4);
		}
		harness_finish(harness);
	}
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
