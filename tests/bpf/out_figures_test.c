// SPDX-License-Identifier: GPL-2.0-only
/*
 * What operators see of packets that go out: figures of their own, keys by the names of the rule file, and events that
 * say which way a packet went and how many it was. What comes in is evaluated at XDP, what goes out at tc, by one rule
 * set. By the real clock: in the harness nothing is reported.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "instance/instance.h"
#include "report/busy_flows.h"
#include "report/drops.h"
#include "report/event_lines.h"
#include "serve/metrics.h"
#include "state/counters.h"
#include "words/json.h"

#define FRAME_BYTES 100
#define SEGMENTS 44
#define WIRE_BYTES (SEGMENTS * FRAME_BYTES)
#define PAYLOAD_BYTES (FRAME_BYTES - 14 - 20 - 8)
#define REMOTE "8.0.0.7" /* without Ethernet its first bytes are taken for the EtherType: send_bare() */
#define LOCAL "192.0.2.53"

/* So that no window moves on meanwhile, all are long. */
#define RULES                                                                                                          \
	"resources:\n"                                                                                                 \
	"- {name: queries, match: {protocol: udp, destinationPort: 53}, flow: source}\n"                               \
	"- {name: answers, match: {direction: out, protocol: udp, sourcePort: 53}, flow: destination}\n"               \
	"- {name: tunnel, match: {direction: both, protocol: udp, sourcePort: 4500}, flow: [remote, localPort]}\n"     \
	"rules:\n"                                                                                                     \
	"- {name: in, resource: queries, threshold: 5, statIntervalInMs: 600000}\n"                                    \
	"- {name: out, resource: answers, threshold: 2, statIntervalInMs: 600000, blockDurationInMs: 600000}\n"        \
	"- {name: both, resource: tunnel, threshold: 3, statIntervalInMs: 600000}\n"

static struct rig rig;
static struct weir_instance instance;
static struct weir_events *events;
static struct weir_diag diag;
static cpu_set_t before;

/* ---- set-up ---- */

/* The descriptions and maps of the rig, as an attached instance has them. */
static void look_at_the_rig(void)
{
	instance = (struct weir_instance){
		.name = "of-no-pins",
		.thresholds_fd = weir_object_thresholds_fd(rig.object),
		.info = {.rule_slots = rig.image->rule_slots,
			 .resource_slots = rig.image->resource_slots,
			 .spec_count = rig.image->spec_count},
		.rules = rig.image->rule_info,
		.resources = rig.image->resource_info,
		.specs = rig.image->specs,
		.rule_order = calloc(rig.image->rule_count + 1, sizeof(uint32_t)),
		.resource_order = calloc(rig.image->resource_count + 1, sizeof(uint32_t)),
		.rule_count = rig.image->rule_count,
		.resource_count = rig.image->resource_count,
	};
	assert_true(instance.rule_order && instance.resource_order);
	for (int table = 0; table < WEIR_STATE_TABLE_COUNT; table++) {
		instance.map_fd[table] = weir_object_map_fd(rig.object, table);
		instance.info.tables[table].size = rig.image->config.sizes[table];
	}
	for (uint32_t i = 0; i < instance.rule_count; i++)
		instance.rule_order[i] = rig.image->rules[i].slot;
	for (uint32_t i = 0; i < instance.resource_count; i++)
		instance.resource_order[i] = rig.image->resources[i].slot;
}

static void begin_with(const char *rules, enum weir_hook hook)
{
	int err;

	rig_begin(&rig, 512);
	rig_stay(&before);
	weir_ruleset_free(rig.ruleset);
	rig.ruleset = NULL;
	err = weir_ruleset_parse("rules.yaml", rules, strlen(rules), &rig.ruleset, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	assert_int_equal(err, 0);
	rig.hooks = 1u << hook;
	rig_load(&rig, false);
	look_at_the_rig();
	events = weir_events_map(instance.map_fd[WEIR_TABLE_EVENTS], true);
	assert_non_null(events);
}

static void begin(const char *rules)
{
	begin_with(rules, WEIR_HOOK_TC_OUT);
}

static void end(void)
{
	weir_events_unmap(events);
	free(instance.rule_order);
	free(instance.resource_order);
	weir_diag_free(&diag);
	rig_roam(&before);
	rig_end(&rig);
}

/* A CPU looks once a tick whether somebody listens. */
static void listen_now(void)
{
	const uint64_t ns = 2 * weir_host_tick_ns();

	weir_events_listen(events, weir_host_now_ns() + 600 * SECOND);
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* ---- traffic ---- */

/* One by one: a run that repeats a packet sleeps for 14 ms as well. */
static void send_frame(enum weir_hook hook, const uint8_t *frame, uint32_t times, uint32_t segments)
{
	const bool is_several = segments > 1;
	struct __sk_buff context = {
		.gso_segs = is_several ? segments : 0,
		.gso_size = is_several ? PAYLOAD_BYTES : 0,
		.wire_len = segments * FRAME_BYTES,
	};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = FRAME_BYTES, .repeat = 1);

	if (hook != WEIR_HOOK_XDP) {
		options.ctx_in = &context;
		options.ctx_size_in = sizeof(context);
	}
	for (uint32_t i = 0; i < times; i++)
		assert_int_equal(bpf_prog_test_run_opts(weir_object_hook_fd(rig.object, hook), &options), 0);
}

static void build(const char *from, uint16_t from_port, const char *to, uint16_t to_port,
		  uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp(from, from_port, to, to_port, 0);

	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
}

static void send_query(uint32_t times)
{
	uint8_t frame[PACKET_BYTES_MAX];

	build(REMOTE, 4321, LOCAL, 53, frame);
	send_frame(WEIR_HOOK_XDP, frame, times, 1);
}

static void send_answer(uint32_t times, uint32_t segments)
{
	uint8_t frame[PACKET_BYTES_MAX];

	build(LOCAL, 53, REMOTE, 4321, frame);
	send_frame(WEIR_HOOK_TC_OUT, frame, times, segments);
}

/* By a device without Ethernet. The kernel's test run takes bytes 12 and 13 for the EtherType: they are those of
 * the source here, and say IPv4.
 */
static void send_bare(uint32_t times)
{
	uint8_t frame[PACKET_BYTES_MAX];

	build(REMOTE, 53, LOCAL, 4321, frame);
	send_frame(WEIR_HOOK_TC_BARE_OUT, frame + 14, times, 1);
}

/* ---- what is seen ---- */

static json_t *stats(void)
{
	_cleanup_(weir_stats_free) struct weir_stats_view view = {};
	json_t *document;

	assert_int_equal(weir_stats_read(&instance, &view, &diag), 0);
	document = weir_stats_describe(&view);
	assert_non_null(document);
	return document;
}

/* At a path as of jq: "out.seen.packets". */
static json_t *at(json_t *document, const char *path)
{
	char name[32];
	size_t used;

	for (; document && *path; path += used + (path[used] == '.')) {
		used = strcspn(path, ".");
		snprintf(name, sizeof(name), "%.*s", (int)used, path);
		document = json_is_array(document) ? json_array_get(document, strtoul(name, NULL, 10))
						   : json_object_get(document, name);
	}
	return document;
}

static void expect_number(json_t *document, const char *path, uint64_t expected)
{
	if (!json_is_integer(at(document, path)))
		fail_msg("no number at %s", path);
	assert_int_equal(json_integer_value(at(document, path)), expected);
}

static void expect_text(json_t *document, const char *path, const char *expected)
{
	if (!json_is_string(at(document, path)))
		fail_msg("no text at %s", path);
	assert_string_equal(json_string_value(at(document, path)), expected);
}

static char *metrics(void)
{
	struct weir_reading reading = {.instance = &instance};
	struct weir_exposition exposition = {};
	struct weir_serve_notes notes = {};
	struct weir_source source = {.notes = &notes};
	char *text;

	assert_int_equal(weir_status_read(&instance, &reading.status, &diag), 0);
	assert_int_equal(weir_stats_read(&instance, &reading.stats, &diag), 0);
	weir_metrics_write(&source, &reading, &exposition);
	assert_false(exposition.is_cut);
	text = strndup(exposition.text, exposition.bytes);
	assert_non_null(text);
	weir_exposition_free(&exposition);
	weir_status_free(&reading.status);
	weir_stats_free(&reading.stats);
	return text;
}

static void expect_sample(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no metric %s", line);
}

/* The latest drop. */
static struct weir_reported latest_drop(void)
{
	struct weir_event_cursor cursor = {};
	struct weir_reported reported = {.kind = WEIR_REPORTED_DROP};

	while (weir_events_read(events, 0, &cursor, &reported.event))
		;
	assert_int_not_equal(reported.event.number, 0);
	return reported;
}

static void expect_words(const struct weir_reported *reported, const char *expected)
{
	_cleanup_(weir_freep) char *words = weir_reported_words(&instance, reported);

	assert_non_null(words);
	assert_string_equal(words, expected);
}

/* ---- figures ---- */

CLAIM(what_goes_out_has_totals_of_its_own)
{
	json_t *document;

	begin(RULES);
	send_query(7);
	send_answer(4, 1);
	document = stats();
	expect_number(document, "totals.seen.packets", 7);
	expect_number(document, "totals.verdicts.block.packets", 2);
	expect_number(document, "out.seen.packets", 4);
	expect_number(document, "out.seen.bytes", 4 * FRAME_BYTES);
	expect_number(document, "out.verdicts.pass.packets", 2);
	expect_number(document, "out.verdicts.block.packets", 2);
	expect_number(document, "out.verdictSum", 4);
	json_decref(document);
	end();
}

CLAIM(a_super_frame_counts_as_its_segments)
{
	json_t *document;

	begin(RULES);
	send_answer(1, SEGMENTS);
	document = stats();
	expect_number(document, "out.verdicts.block.packets", SEGMENTS);
	expect_number(document, "out.verdicts.block.bytes", WIRE_BYTES);
	expect_number(document, "resources.1.blocked.packets", SEGMENTS);
	expect_number(document, "rules.1.blocked.packets", SEGMENTS);
	json_decref(document);
	end();
}

CLAIM(resources_and_rules_say_their_direction)
{
	static const char *const directions[] = {"in", "out", "both"};
	struct weir_status_view view;
	json_t *of_stats, *of_status;
	char path[32];

	begin(RULES);
	of_stats = stats();
	assert_int_equal(weir_status_read(&instance, &view, &diag), 0);
	of_status = weir_status_describe(&view);
	assert_non_null(of_status);
	for (size_t i = 0; i < ARRAY_SIZE(directions); i++) {
		snprintf(path, sizeof(path), "resources.%zu.direction", i);
		expect_text(of_stats, path, directions[i]);
		expect_text(of_status, path, directions[i]);
		snprintf(path, sizeof(path), "rules.%zu.direction", i);
		expect_text(of_status, path, directions[i]);
	}
	expect_text(of_status, "rules.1.flow.0", "destination");
	expect_text(of_status, "rules.2.flow.0", "remote");
	expect_text(of_status, "rules.2.flow.1", "localPort");
	json_decref(of_stats);
	json_decref(of_status);
	weir_status_free(&view);
	end();
}

/* Of the time when nothing went out: the word was a byte of padding. */
CLAIM(a_description_of_an_older_version_is_of_what_comes_in)
{
	begin(RULES);
	assert_true(weir_limits_out(&instance));
	for (uint32_t i = 0; i < instance.resource_count; i++)
		instance.resources[instance.resource_order[i]].directions = 0;
	assert_false(weir_limits_out(&instance));
	assert_int_equal(weir_rule_directions(&instance, &instance.rules[instance.rule_order[1]]), WEIR_MATCHES_IN);
	end();
}

CLAIM(metrics_have_the_direction_as_a_label)
{
	_cleanup_(weir_freep) char *text = NULL;

	begin(RULES);
	send_query(7);
	send_answer(3, 1);
	text = metrics();
	expect_sample(text, "\nweir_packets_total{verdict=\"block\",direction=\"in\"} 2\n");
	expect_sample(text, "\nweir_packets_total{verdict=\"block\",direction=\"out\"} 1\n");
	expect_sample(text, "\nweir_bytes_total{verdict=\"pass\",direction=\"out\"} 200\n");
	expect_sample(text, "\nweir_would_drop_packets_total{verdict=\"block\",direction=\"out\"} 0\n");
	expect_sample(text,
		      "\nweir_resource_packets_total{resource=\"answers\",direction=\"out\",outcome=\"blocked\"} 1\n");
	expect_sample(text,
		      "\nweir_resource_packets_total{resource=\"tunnel\",direction=\"both\",outcome=\"passed\"} 0\n");
	expect_sample(text, "\nweir_rule_info{rule=\"out\",resource=\"answers\",mode=\"enforce\",direction=\"out\",");
	end();
}

CLAIM(without_rules_for_what_goes_out_nothing_is_said_of_it)
{
	_cleanup_(weir_freep) char *text = NULL;
	json_t *document;

	begin("resources: [{name: dns, match: {protocol: udp, destinationPort: 53}}]\n"
	      "rules: [{resource: dns, threshold: 1}]\n");
	send_query(1);
	document = stats();
	assert_null(at(document, "out"));
	text = metrics();
	expect_sample(text, "\nweir_packets_total{verdict=\"pass\",direction=\"in\"} 1\n");
	assert_null(strstr(text, "direction=\"out\""));
	json_decref(document);
	end();
}

/* ---- keys ---- */

static json_t *dropped(void)
{
	struct weir_drops_wanted wanted = {.most = 10};
	_cleanup_(weir_drops_free) struct weir_drops drops = {};
	json_t *document;

	assert_int_equal(weir_drops_read(&instance, &wanted, &drops, &diag), 0);
	document = weir_drops_describe(&instance, &drops);
	assert_non_null(document);
	return document;
}

/* One flow, whichever way its packets go: 3 of 4 pass. */
CLAIM(a_flow_of_both_directions_is_one_by_its_ends)
{
	uint8_t frame[PACKET_BYTES_MAX];
	struct weir_flows_view flows;
	json_t *document;

	begin(RULES);
	build(REMOTE, 4500, LOCAL, 4500, frame);
	send_frame(WEIR_HOOK_XDP, frame, 2, 1);
	build(LOCAL, 4500, REMOTE, 4500, frame);
	send_frame(WEIR_HOOK_TC_OUT, frame, 2, 1);
	document = dropped();
	expect_number(document, "flows.0.packets", 1);
	expect_text(document, "flows.0.key.remote", REMOTE);
	expect_number(document, "flows.0.key.localPort", 4500);
	json_decref(document);
	assert_int_equal(weir_flows_view_read(&instance, WEIR_ANY_RULE, 10, &flows, &diag), 0);
	document = weir_flows_describe(&flows);
	expect_number(document, "flows.0.used", 3);
	expect_text(document, "flows.0.key.remote", REMOTE);
	json_decref(document);
	weir_flows_view_free(&flows);
	end();
}

/* As the rule file does: the program knows only ends. */
CLAIM(a_flow_that_goes_out_is_named_as_its_packets_are)
{
	struct weir_flows_view flows;
	json_t *document;

	begin(RULES);
	send_answer(3, 1);
	document = dropped();
	expect_text(document, "flows.0.key.destination", REMOTE);
	json_decref(document);
	assert_int_equal(weir_flows_view_read(&instance, WEIR_ANY_RULE, 10, &flows, &diag), 0);
	document = weir_flows_describe(&flows);
	expect_text(document, "flows.0.key.destination", REMOTE);
	expect_text(document, "penalties.flows.0.key.destination", REMOTE);
	json_decref(document);
	weir_flows_view_free(&flows);
	end();
}

/* ---- events ---- */

CLAIM(a_drop_says_which_way_the_packet_went)
{
	struct weir_reported reported;
	json_t *document;

	begin(RULES);
	listen_now();
	send_query(6);
	reported = latest_drop();
	expect_words(&reported, "rule 'in', source " REMOTE ", used 5 of 5 packets: " REMOTE " port 4321 to " LOCAL
				" port 53, udp, 100 bytes");
	document = weir_reported_describe(&instance, &reported);
	expect_text(document, "packet.direction", "in");
	expect_number(document, "packet.packets", 1);
	json_decref(document);

	send_answer(3, 1);
	reported = latest_drop();
	expect_words(&reported, "rule 'out', destination " REMOTE ", used 2 of 2 packets: " LOCAL " port 53 to " REMOTE
				" port 4321, udp, 100 bytes out");
	document = weir_reported_describe(&instance, &reported);
	expect_text(document, "packet.direction", "out");
	expect_text(document, "packet.source", LOCAL); /* the packet's own */
	json_decref(document);
	end();
}

/* What is larger than the limit is refused, whatever was used. A packet at XDP that gets the same place in the ring is
 * one again.
 */
CLAIM(a_drop_of_a_super_frame_says_how_many_packets_it_is)
{
	struct weir_reported reported;
	json_t *document;

	begin(RULES);
	listen_now();
	send_answer(1, SEGMENTS);
	reported = latest_drop();
	expect_words(&reported, "rule 'out', destination " REMOTE ": " LOCAL " port 53 to " REMOTE
				" port 4321, udp, 44 packets, 4400 bytes out");
	document = weir_reported_describe(&instance, &reported);
	expect_number(document, "packet.packets", SEGMENTS);
	expect_number(document, "packet.bytes", WIRE_BYTES);
	json_decref(document);
	for (int i = 0; i < WEIR_RING_EVENTS; i++)
		events->drops.event[i].value = SEGMENTS;
	send_query(6);
	reported = latest_drop();
	assert_int_equal(weir_event_packets(&reported.event), 1);
	end();
}

/* What is reported and what is not are together what counters have. */
CLAIM(drops_that_are_not_reported_are_counted_by_packets)
{
	struct weir_event_watch watch = {.instance = &instance, .events = events, .wants_drops = true};
	struct weir_reported_events reported;
	uint64_t reported_packets = 0, missed = 0;
	int lock_fd;

	/* Mounts the BPF file system. Without it, nobody can say that there is no such instance. */
	assert_int_equal(weir_bpffs_lock(&lock_fd, &diag), 0);
	close(lock_fd);
	begin(RULES);
	watch.events = events;
	listen_now();
	/* There is no instance of that name, as if it had just been detached: the counters are read once more. */
	assert_int_equal(weir_event_watch_read(&watch, &reported, &diag), -ENOENT);
	weir_reported_events_free(&reported);
	send_answer(20, SEGMENTS);
	send_query(7);
	assert_int_equal(weir_event_watch_read(&watch, &reported, &diag), -ENOENT);
	for (size_t i = 0; i < reported.count; i++) {
		if (reported.all[i].kind == WEIR_REPORTED_DROP)
			reported_packets += weir_event_packets(&reported.all[i].event);
		else if (reported.all[i].kind == WEIR_REPORTED_MISSED)
			missed += reported.all[i].missed.count;
	}
	assert_int_not_equal(reported_packets, 0);
	assert_int_not_equal(missed, 0);
	assert_int_equal(reported_packets + missed, 20 * SEGMENTS + 2);
	weir_reported_events_free(&reported);
	free(watch.accounted);
	end();
}

/* Readers of captures expect Ethernet. */
CLAIM(a_frame_without_ethernet_gets_a_header)
{
	static const uint8_t header[14] = {[12] = 0x08};
	uint8_t frame[PACKET_BYTES_MAX];
	struct weir_reported reported;

	begin_with(RULES, WEIR_HOOK_TC_BARE_OUT);
	listen_now();
	send_bare(3);
	reported = latest_drop();
	assert_int_equal(reported.event.flags, WEIR_EVENT_OUT);
	assert_memory_equal(reported.event.frame, header, sizeof(header));
	build(REMOTE, 53, LOCAL, 4321, frame);
	assert_int_equal(reported.event.frame_bytes, 14 + FRAME_BYTES);
	assert_int_equal(reported.event.kept_bytes, 14 + FRAME_BYTES);
	assert_memory_equal(reported.event.frame + 14, frame + 14, 28); /* IP and UDP */
	end();
}

/* The flags are the last option of the last block. */
static uint32_t captured_flags(const struct weir_reported *reported)
{
	struct weir_event_capture capture;
	size_t bytes, tail = 4 /* the block's length */ + 4 /* end of options */;
	_cleanup_(weir_freep) char *text = NULL;
	FILE *stream = open_memstream(&text, &bytes);
	uint32_t option[2];

	assert_non_null(stream);
	weir_event_capture_begin(stream, &capture);
	assert_int_equal(weir_event_capture_add(&capture, &instance, reported), 0);
	weir_event_capture_free(&capture);
	fclose(stream);
	memcpy(option, text + bytes - tail - sizeof(option), sizeof(option));
	assert_int_equal(option[0], 2 | 4 << 16);
	return option[1];
}

CLAIM(a_capture_of_drops_says_the_direction)
{
	struct weir_reported reported;

	begin(RULES);
	listen_now();
	send_query(6);
	reported = latest_drop();
	assert_int_equal(captured_flags(&reported), 1);
	send_answer(3, 1);
	reported = latest_drop();
	assert_int_equal(captured_flags(&reported), 2);
	end();
}

RUN_CLAIMS(NULL, NULL)
