// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events (bpf/observe/events.h): what is reported of a drop is right, and no more is reported than may be; nothing
 * while nobody listens. Changes of penalties and breakers are reported always, and no flood pushes out another rule's.
 * By the real clock: in the harness nothing is reported.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"
#include "program/events.h"

#define PORT 53
#define FRAME_BYTES 100
#define LIMIT 5
#define FLOOD 300000
#define SYN 0x02
#define RST 0x04

static struct weir_events *events;

/* ---- set-up ---- */

static size_t build_frame(uint32_t source, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", PORT, 0);

	source = htonl(source);
	memcpy(spec.source, &source, sizeof(source));
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
	return FRAME_BYTES;
}

/* One by one: a run that repeats a packet sleeps for 14 ms as well. */
static void send_frame(const struct rig *rig, const uint8_t *frame, size_t bytes, uint32_t times, bool passes)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = bytes, .repeat = 1);

	for (uint32_t i = 0; i < times; i++)
		assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options), 0);
	assert_int_equal(options.retval, passes ? XDP_PASS : XDP_DROP);
}

static void send_packets(const struct rig *rig, uint32_t source, uint32_t times, bool passes)
{
	uint8_t frame[PACKET_BYTES_MAX];

	send_frame(rig, frame, build_frame(source, frame), times, passes);
}

/* So that the flow's window does not move on meanwhile, it is long. */
static struct weir_ruleset_rule *begin(struct rig *rig, uint32_t key_fields)
{
	memset(rig, 0, sizeof(*rig));
	rig_begin(rig, 512);
	return rig_rule(rig, rig_resource(rig, PORT, key_fields), WEIR_WINDOW_LEAP, LIMIT, 600 * SECOND, 10);
}

static void load(struct rig *rig)
{
	rig_load(rig, false);
	events = weir_events_map(weir_object_map_fd(rig->object, WEIR_TABLE_EVENTS), true);
	assert_non_null(events);
}

static void end(struct rig *rig)
{
	weir_events_unmap(events);
	rig_end(rig);
}

static void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND}, NULL);
}

/* A CPU looks once a tick whether somebody listens. */
static void listen_for(uint64_t ns)
{
	weir_events_listen(events, weir_host_now_ns() + ns);
	sleep_ns(2 * weir_host_tick_ns());
}

static void listen_now(void)
{
	listen_for(600 * SECOND);
}

static void load_and_listen(struct rig *rig)
{
	load(rig);
	listen_now();
}

static void send_tcp(const struct rig *rig, const char *from, uint16_t from_port, const char *to, uint16_t to_port,
		     uint8_t flags, bool passes)
{
	struct packet_spec spec = packet_udp(from, from_port, to, to_port, 0);
	uint8_t frame[PACKET_BYTES_MAX];

	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
	send_frame(rig, frame, FRAME_BYTES, 1, passes);
}

/* A breaker of each source on TCP, which opens with the first request that fails; and a rule that penalises on UDP. */
static void begin_breaker(struct rig *rig)
{
	struct weir_ruleset_rule *rule;
	size_t resource;

	rule = begin(rig, WEIR_KEY_SOURCE);
	rule->threshold_micro = 0;
	rule->penalty_ms = rule->penalty_ms_max = 600000;
	rig->ruleset->settings.connections = 4096;
	rig->ruleset->settings.connection_flows = 1024;
	resource = rig_resource(rig, PORT + 1, WEIR_KEY_SOURCE);
	rig->ruleset->resources[resource].match.has_protocol = false;
	rule = rig_rule(rig, resource, WEIR_WINDOW_LEAP, 0, 0, 0);
	rule->metric = WEIR_METRIC_REQUESTS;
	rule->threshold_micro = WEIR_MICRO;
	rule->breaker = (struct weir_breaker_fields){
		.strategy = WEIR_BREAKER_ERROR_COUNT,
		.interval_ns = 600 * SECOND,
		.buckets = 1,
		.retry_ns = 600 * SECOND,
		.min_requests = 1,
	};
}

static void fail_request(const struct rig *rig)
{
	send_tcp(rig, "10.0.0.2", 1000, "192.0.2.80", PORT + 1, SYN, true);
	send_tcp(rig, "10.0.0.2", 1000, "192.0.2.80", PORT + 1, RST, true);
	send_tcp(rig, "10.0.0.2", 1001, "192.0.2.80", PORT + 1, SYN, false);
}

/* The ring of drops; of changes, that of a rule. */
#define DROPS 0

static size_t penalties_of(uint32_t slot)
{
	return weir_events_ring(WEIR_LANE_PENALTIES, slot);
}

static size_t breakers_of(uint32_t slot)
{
	return weir_events_ring(WEIR_LANE_BREAKERS, slot);
}

static uint64_t reported(size_t ring)
{
	return weir_events_end(events, ring).passed;
}

static struct weir_event the_only_event(size_t ring)
{
	struct weir_event_cursor cursor = {};
	struct weir_event event, next;

	assert_true(weir_events_read(events, ring, &cursor, &event));
	assert_false(weir_events_read(events, ring, &cursor, &next));
	assert_int_equal(cursor.missed, 0);
	return event;
}

/* ---- what is reported of a drop ---- */

CLAIM(a_drop_is_reported_with_rule_key_window_and_threshold)
{
	static const struct {
		uint64_t interval_ns;
		bool counts_bytes;
		enum weir_window_kind window;
	} rows[] = {
		{600 * SECOND, false, WEIR_WINDOW_LEAP},   /* narrow */
		{600 * SECOND, true, WEIR_WINDOW_LEAP},	   /* medium, or wide */
		{600 * SECOND, false, WEIR_WINDOW_STRICT}, /* by the clock */
		{600 * SECOND, false, WEIR_WINDOW_SMOOTH},
	};
	const uint64_t begun_ns = weir_host_now_ns();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint64_t unit = rows[i].counts_bytes ? FRAME_BYTES : 1;
		uint8_t frame[PACKET_BYTES_MAX];
		struct weir_ruleset_rule *rule;
		struct weir_event event;
		_cleanup_(end) struct rig rig = {};

		rule = begin(&rig, WEIR_KEY_SOURCE);
		rule->interval_ns = rows[i].interval_ns;
		rule->counts_bytes = rows[i].counts_bytes;
		rule->window = rows[i].window;
		rule->threshold_micro = LIMIT * unit * WEIR_MICRO;
		rig_rule(&rig, rig_resource(&rig, PORT + 1, 0), WEIR_WINDOW_LEAP, 1, SECOND, 10);
		load_and_listen(&rig);
		send_packets(&rig, 0xc6336407, LIMIT, true);
		send_packets(&rig, 0xc6336408, 1, true);
		send_packets(&rig, 0xc6336407, 1, false);
		event = the_only_event(DROPS);
		assert_int_equal(event.rule_slot, rig.image->rules[0].slot);
		assert_int_equal(event.threshold, LIMIT * unit);
		assert_int_equal(event.used, LIMIT * unit);
		assert_int_equal(event.verdict, WEIR_VERDICT_BLOCK);
		assert_int_equal(event.flags, 0);
		assert_int_equal(event.key.family, 4);
		assert_memory_equal(event.key.source, "\xc6\x33\x64\x07", 4);
		assert_int_equal(event.key.destination_port, 0); /* no part of the key */
		assert_int_equal(event.frame_bytes, FRAME_BYTES);
		assert_int_equal(event.kept_bytes, build_frame(0xc6336407, frame));
		assert_memory_equal(event.frame, frame, event.kept_bytes);
		assert_in_range(event.time_ns, begun_ns, weir_host_now_ns());
	}
}

CLAIM(a_rule_without_a_flow_key_is_reported_with_what_its_window_has_used)
{
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, 0);
	load_and_listen(&rig);
	send_packets(&rig, 1, LIMIT, true);
	send_packets(&rig, 2, 1, false);
	event = the_only_event(DROPS);
	assert_int_equal(event.threshold, LIMIT);
	assert_int_equal(event.used, LIMIT);
}

/* What a shortcut decides it does not know all about: by narrow, medium and lone rows, and by tokens. */
CLAIM(a_drop_of_a_flow_known_to_be_over_its_limit_is_reported_with_what_it_has_used)
{
	static const struct {
		uint32_t key_fields;
		bool counts_bytes;
		enum weir_window_kind window;
	} cases[] = {
		{WEIR_KEY_SOURCE, false, WEIR_WINDOW_LEAP},
		{WEIR_KEY_SOURCE, true, WEIR_WINDOW_LEAP},
		{0, false, WEIR_WINDOW_LEAP},
		{WEIR_KEY_SOURCE, false, WEIR_WINDOW_TOKENS},
	};
	uint8_t other[PACKET_BYTES_MAX];
	struct weir_event event;
	struct rig rig;

	build_frame(1, other);
	other[37] = PORT + 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint64_t limit = LIMIT * (cases[i].counts_bytes ? FRAME_BYTES : 1);
		struct weir_ruleset_rule *rule = begin(&rig, cases[i].key_fields);

		rule->counts_bytes = cases[i].counts_bytes;
		rule->window = cases[i].window;
		rule->threshold_micro = limit * WEIR_MICRO;
		rig_rule(&rig, rig_resource(&rig, PORT + 1, 0), WEIR_WINDOW_LEAP, 1, 600 * SECOND, 10);
		load(&rig);
		send_packets(&rig, 1, LIMIT, true);
		send_packets(&rig, 1, 3, false);
		send_frame(&rig, other, FRAME_BYTES, 2, false); /* what was known last is of another rule */
		listen_now();
		send_packets(&rig, 1, 1, false);
		event = the_only_event(DROPS);
		assert_int_equal(event.threshold, limit);
		assert_int_equal(event.used, limit);
		end(&rig);
	}
}

/* Of two rules the one that blocked it; what was found of the other must not be reported for it. */
CLAIM(the_one_of_two_rules_that_blocked_is_reported)
{
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	rig_rule(&rig, 0, WEIR_WINDOW_LEAP, 2, 600 * SECOND, 10);
	load_and_listen(&rig);
	send_packets(&rig, 1, 2, true);
	send_packets(&rig, 1, 1, false);
	event = the_only_event(DROPS);
	assert_int_equal(event.rule_slot, rig.image->rules[1].slot);
	assert_int_equal(event.threshold, 2);
	assert_int_equal(event.used, 2);
}

CLAIM(a_drop_without_a_rule_is_reported_by_its_verdict)
{
	uint8_t frame[PACKET_BYTES_MAX];
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	load_and_listen(&rig);
	build_frame(1, frame);
	frame[14] = 0x41; /* a header of four bytes */
	send_frame(&rig, frame, FRAME_BYTES, 1, false);
	event = the_only_event(DROPS);
	assert_int_equal(event.rule_slot, WEIR_EVENT_NO_RULE);
	assert_int_equal(event.verdict, WEIR_VERDICT_MALFORMED_DROP);
	assert_int_equal(event.threshold, WEIR_EVENT_UNKNOWN);
	assert_memory_equal(event.frame, frame, event.kept_bytes);
}

/* The first packet is blocked by the window, and begins a penalty; the second by that. */
CLAIM(a_drop_for_a_penalty_says_so)
{
	struct weir_event_cursor cursor = {};
	struct weir_ruleset_rule *rule;
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	rule = begin(&rig, WEIR_KEY_SOURCE);
	rule->penalty_ms = rule->penalty_ms_max = 600000;
	load_and_listen(&rig);
	send_packets(&rig, 1, LIMIT, true);
	send_packets(&rig, 1, 2, false);
	assert_true(weir_events_read(events, DROPS, &cursor, &event));
	assert_int_equal(event.flags, 0);
	assert_true(weir_events_read(events, DROPS, &cursor, &event));
	assert_int_equal(event.flags, WEIR_EVENT_PENALISED);
	assert_int_equal(event.used, WEIR_EVENT_UNKNOWN); /* the window was not asked */
}

CLAIM(what_would_be_dropped_is_reported_and_says_so)
{
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE)->observes = true;
	/* Would drop it, too: the first is reported, as if they were enforced. */
	rig_rule(&rig, 0, WEIR_WINDOW_LEAP, LIMIT, 600 * SECOND, 10)->observes = true;
	load_and_listen(&rig);
	send_packets(&rig, 1, LIMIT + 1, true);
	event = the_only_event(DROPS);
	assert_int_equal(event.rule_slot, rig.image->rules[0].slot);
	assert_int_equal(event.flags, WEIR_EVENT_OBSERVED);
	assert_int_equal(event.threshold, LIMIT);
	assert_int_equal(event.used, LIMIT);
}

/* ---- how the flow stood, by the kind of its rule ---- */

/* The third packet would wait twice its cost, and may wait less. */
CLAIM(throttling_shows_how_long_the_packet_would_wait_and_may)
{
	const uint64_t cost_ns = 100 * SECOND;
	struct weir_ruleset_rule *rule;
	struct weir_event event;
	struct rig rig;

	for (uint32_t key_fields = 0; key_fields <= WEIR_KEY_SOURCE; key_fields += WEIR_KEY_SOURCE) {
		rule = begin(&rig, key_fields);
		rule->threshold_micro = 600 * SECOND / cost_ns * WEIR_MICRO;
		rule->behavior = WEIR_BEHAVIOR_THROTTLING;
		rule->queueing_ms_max = 150000;
		load_and_listen(&rig);
		send_packets(&rig, 1, 2, true);
		send_packets(&rig, 1, 1, false);
		event = the_only_event(DROPS);
		assert_int_equal(event.threshold, 150 * SECOND);
		assert_in_range(event.used, 151 * SECOND, 2 * cost_ns); /* less what has passed since */
		end(&rig);
	}
}

/* What no queue has room for waits for nothing. */
CLAIM(a_packet_larger_than_the_threshold_has_no_wait_under_throttling)
{
	struct weir_ruleset_rule *rule;
	_cleanup_(end) struct rig rig = {};

	rule = begin(&rig, WEIR_KEY_SOURCE);
	rule->threshold_micro = (FRAME_BYTES - 1) * WEIR_MICRO;
	rule->counts_bytes = true;
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	load_and_listen(&rig);
	send_packets(&rig, 1, 1, false);
	assert_int_equal(the_only_event(DROPS).used, WEIR_EVENT_UNKNOWN);
}

/* A bucket of seven packets and a half gains one in ten minutes: after seven the half is left. */
CLAIM(tokens_show_what_the_bucket_lacks_and_holds)
{
	struct weir_ruleset_rule *rule;
	struct weir_event event;
	struct rig rig;

	for (uint32_t key_fields = 0; key_fields <= WEIR_KEY_SOURCE; key_fields += WEIR_KEY_SOURCE) {
		rule = begin(&rig, key_fields);
		rule->window = WEIR_WINDOW_TOKENS;
		rule->threshold_micro = WEIR_MICRO;
		rule->counts_bytes = true;
		rule->burst_micro = (7 * FRAME_BYTES + FRAME_BYTES / 2) * WEIR_MICRO;
		load_and_listen(&rig);
		send_packets(&rig, 1, 7, true);
		send_packets(&rig, 1, 1, false);
		event = the_only_event(DROPS);
		assert_int_equal(event.threshold, 7 * FRAME_BYTES + FRAME_BYTES / 2);
		assert_int_equal(event.used, 7 * FRAME_BYTES);
		end(&rig);
	}
}

CLAIM(an_occupy_window_reports_what_it_counts)
{
	struct weir_event event;
	struct rig rig;

	for (uint32_t key_fields = 0; key_fields <= WEIR_KEY_SOURCE; key_fields += WEIR_KEY_SOURCE) {
		begin(&rig, key_fields)->occupies = true;
		load_and_listen(&rig);
		send_packets(&rig, 1, LIMIT, true);
		send_packets(&rig, 1, 1, false);
		event = the_only_event(DROPS);
		assert_int_equal(event.threshold, LIMIT);
		assert_int_equal(event.used, LIMIT);
		end(&rig);
	}
}

/* An associated rule has its own threshold, and the window of the resource that it reads. */
CLAIM(an_associated_rule_shows_the_window_that_it_reads)
{
	struct weir_ruleset_rule *rule;
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	rule = begin(&rig, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION);
	rule->ref_resource = rig_resource(&rig, PORT, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION);
	rule->relation = WEIR_RELATION_ASSOCIATED;
	rule->threshold_micro = 2 * WEIR_MICRO;
	load_and_listen(&rig);
	send_packets(&rig, 0xc6336407, 2, true);
	send_packets(&rig, 0xc6336407, 1, false);
	event = the_only_event(DROPS);
	assert_int_equal(event.rule_slot, rig.image->rules[0].slot);
	assert_int_equal(event.threshold, 2);
	assert_int_equal(event.used, 2);
	assert_memory_equal(event.key.source, "\xc6\x33\x64\x07", 4);
	assert_memory_equal(event.key.destination, "\xc0\x00\x02\x35", 4);
}

CLAIM(concurrency_shows_how_many_are_open)
{
	struct weir_ruleset_rule *rule;
	struct weir_event event;
	struct rig rig;

	for (uint32_t key_fields = 0; key_fields <= WEIR_KEY_SOURCE; key_fields += WEIR_KEY_SOURCE) {
		rule = begin(&rig, key_fields);
		rule->metric = WEIR_METRIC_CONCURRENCY;
		rig.ruleset->resources[0].match.has_protocol = false;
		rig.ruleset->settings.connections = 4096;
		rig.ruleset->settings.connection_flows = 1024;
		load_and_listen(&rig);
		for (uint16_t port = 1; port <= LIMIT; port++)
			send_tcp(&rig, "10.0.0.2", port, "192.0.2.80", PORT, SYN, true);
		send_tcp(&rig, "10.0.0.2", 1, "192.0.2.80", PORT, RST, true);
		send_tcp(&rig, "10.0.0.2", 1, "192.0.2.80", PORT, SYN, true);
		send_tcp(&rig, "10.0.0.2", LIMIT + 1, "192.0.2.80", PORT, SYN, false);
		event = the_only_event(DROPS);
		assert_int_equal(event.threshold, LIMIT);
		assert_int_equal(event.used, LIMIT);
		end(&rig);
	}
}

CLAIM(a_breaker_shows_what_it_opened_by)
{
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin_breaker(&rig);
	load_and_listen(&rig);
	fail_request(&rig);
	event = the_only_event(DROPS);
	assert_int_equal(event.rule_slot, rig.image->rules[1].slot);
	assert_int_equal(event.threshold, WEIR_MICRO);
	assert_int_equal(event.used, 1ull << 32 | 1);
}

/* Load is 9.5, of at most 8. */
CLAIM(a_system_rule_shows_the_signal)
{
	struct weir_control control = {.heartbeat_ns = weir_host_now_ns(), .validity_ns = 600 * SECOND};
	struct weir_signals sampled = {.load1_ns = control.heartbeat_ns, .load1_micro = 9500000};
	struct weir_ruleset_rule *rule;
	struct weir_event event;
	const uint32_t zero = 0;
	_cleanup_(end) struct rig rig = {};

	rule = begin(&rig, 0);
	rule->resource = rule->ref_resource = WEIR_NO_RESOURCE;
	rule->system = WEIR_SYSTEM_LOAD;
	rule->metric = WEIR_METRIC_SIGNAL;
	rule->threshold_micro = 8 * WEIR_MICRO;
	load(&rig);
	assert_int_equal(bpf_map_update_elem(weir_object_map_fd(rig.object, WEIR_TABLE_SIGNALS), &zero, &sampled, 0),
			 0);
	assert_int_equal(bpf_map_update_elem(weir_object_map_fd(rig.object, WEIR_TABLE_CONTROL), &zero, &control, 0),
			 0);
	listen_now();
	send_packets(&rig, 1, 1, false);
	event = the_only_event(DROPS);
	assert_int_equal(event.threshold, 8 * WEIR_MICRO);
	assert_int_equal(event.used, 9500000);
}

/* Three times as many flows as there are rows, all of which are full: two in three are known to be so by what their
 * rows left behind.
 */
CLAIM(an_evicted_flow_is_reported_with_what_it_had_used)
{
	struct weir_event_cursor cursor = {};
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	load(&rig);
	for (uint32_t source = 1; source <= 3 * 512; source++)
		send_packets(&rig, source, LIMIT, true);
	assert_true(rig_rule_counters(&rig, 0).evicted > 512);
	listen_now();
	for (uint32_t source = 1; source <= 32; source++) {
		send_packets(&rig, source, 1, false);
		assert_true(weir_events_read(events, DROPS, &cursor, &event));
		assert_int_equal(event.threshold, LIMIT);
		assert_int_equal(event.used, LIMIT);
		sleep_ns(2 * MS); /* so that the next is reported, too */
	}
}

/* ---- how much is reported ---- */

CLAIM(while_nobody_listens_no_drop_is_reported)
{
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	load(&rig);
	send_packets(&rig, 1, LIMIT + 100, false);
	assert_int_equal(reported(DROPS), 0);
}

/* The program is not notified that the reader is gone. */
CLAIM(soon_after_a_reader_has_died_no_drop_is_reported)
{
	uint64_t before_it;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	load(&rig);
	send_packets(&rig, 1, LIMIT, true);
	/* On a machine that stands still meanwhile, the time may be over before the packet is sent: then once more. */
	for (uint64_t ns = 100 * MS; ns < 100 * SECOND; ns *= 4) {
		listen_for(ns);
		send_packets(&rig, 1, 1, false);
		if (reported(DROPS) || weir_host_now_ns() < events->listens_until_ns)
			break;
	}
	before_it = reported(DROPS);
	assert_int_equal(before_it, 1);
	while (weir_host_now_ns() < events->listens_until_ns)
		sleep_ns(20 * MS);
	sleep_ns(20 * MS); /* two ticks of 10 ms */
	send_packets(&rig, 1, 1000, false);
	assert_int_equal(reported(DROPS), before_it);
}

static void check_rate(uint64_t count, uint64_t passed_ns)
{
	const uint64_t slices = passed_ns / (1ull << WEIR_EVENT_SLICE_SHIFT);

	/* A slice at either end, and one for a tick that comes late. */
	assert_in_range(count, 1, (slices + 3) * WEIR_EVENTS_A_SLICE);
}

CLAIM(no_flood_is_reported_beyond_its_quota)
{
	uint64_t begun_ns;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	load(&rig);
	send_packets(&rig, 1, LIMIT, true);
	listen_now();
	begun_ns = weir_host_now_ns();
	send_packets(&rig, 1, FLOOD, false);
	check_rate(reported(DROPS), weir_host_now_ns() - begun_ns);
	assert_true(reported(DROPS) < FLOOD / 10);
	/* The latest slice has had all of its own, or is being filled. */
	assert_in_range(events->drops.head.slice & 0xff, 1, WEIR_EVENTS_A_SLICE);
}

/* ---- changes ---- */

CLAIM(a_penalty_that_begins_is_reported_though_nobody_listens)
{
	struct weir_ruleset_rule *rule;
	struct weir_event event;
	uint64_t begun_ns;
	_cleanup_(end) struct rig rig = {};

	rule = begin(&rig, WEIR_KEY_SOURCE);
	rule->penalty_ms = rule->penalty_ms_max = 600000;
	load(&rig);
	send_packets(&rig, 0x0a000001, LIMIT, true);
	begun_ns = weir_host_now_ns();
	send_packets(&rig, 0x0a000001, 3, false);
	event = the_only_event(penalties_of(rig.image->rules[0].slot));
	assert_int_equal(event.rule_slot, rig.image->rules[0].slot);
	assert_memory_equal(event.key.source, "\x0a\x00\x00\x01", 4);
	assert_in_range(event.value, begun_ns + 600 * SECOND, weir_host_now_ns() + 600 * SECOND);
	assert_int_equal(reported(DROPS), 0);
}

CLAIM(a_breaker_that_opens_is_reported_with_its_own_flow)
{
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin_breaker(&rig);
	load(&rig);
	fail_request(&rig);
	event = the_only_event(breakers_of(rig.image->rules[1].slot));
	assert_int_equal(event.rule_slot, rig.image->rules[1].slot);
	assert_int_equal(event.value, WEIR_BREAKER_OPEN);
	assert_int_equal(event.used, 1ull << 32 | 1);
	assert_memory_equal(event.key.source, "\x0a\x00\x00\x02", 4);
}

static uint64_t changes_of(const struct rig *rig, uint32_t slot)
{
	struct weir_rule_counters of_cpu[WEIR_CPUS_MAX];
	uint64_t sum = 0;

	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, WEIR_TABLE_RULE_COUNTERS), &slot, of_cpu),
			 0);
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		sum += of_cpu[cpu].changes;
	return sum;
}

/* As many as fill a ring four times, if it took them all. The first drops by the flood's own rule are reported, then
 * fewer and fewer; all are counted.
 */
CLAIM(no_flood_evicts_events_of_other_rules)
{
	const uint32_t flood = 4 * WEIR_CHANGE_EVENTS;
	uint64_t begun_ns, slices;
	uint32_t slot;
	_cleanup_(end) struct rig rig = {};

	begin_breaker(&rig);
	load(&rig);
	slot = rig.image->rules[0].slot;
	fail_request(&rig);
	begun_ns = weir_host_now_ns();
	for (uint32_t source = 1; source <= flood; source++)
		send_packets(&rig, 0x0b000000 + source, 1, false);
	slices = (weir_host_now_ns() - begun_ns) / (1ull << WEIR_CHANGE_SLICE_SHIFT);
	/* One slice more at either end. */
	assert_in_range(reported(penalties_of(slot)), WEIR_CHANGES_A_SLICE, 3 * WEIR_CHANGES_A_SLICE + slices);
	assert_int_equal(changes_of(&rig, slot), flood);
	assert_int_equal(the_only_event(breakers_of(rig.image->rules[1].slot)).value, WEIR_BREAKER_OPEN);
	assert_int_equal(changes_of(&rig, rig.image->rules[1].slot), 1);
}

/* Each source opens a breaker of its own. */
CLAIM(a_flood_of_breakers_is_bounded_and_counted)
{
	const uint32_t flood = 4 * WEIR_CHANGE_EVENTS;
	uint64_t begun_ns, slices;
	struct in_addr address;
	uint32_t slot;
	_cleanup_(end) struct rig rig = {};

	begin_breaker(&rig);
	load(&rig);
	slot = rig.image->rules[1].slot;
	begun_ns = weir_host_now_ns();
	for (uint32_t i = 0; i < flood; i++) {
		char source[INET_ADDRSTRLEN];

		address.s_addr = htonl(0x0b000001 + i);
		inet_ntop(AF_INET, &address, source, sizeof(source));
		send_tcp(&rig, source, 1000, "192.0.2.80", PORT + 1, SYN, true);
		send_tcp(&rig, source, 1000, "192.0.2.80", PORT + 1, RST, true);
		send_tcp(&rig, source, 1001, "192.0.2.80", PORT + 1, SYN, false); /* finds the request failed */
	}
	slices = (weir_host_now_ns() - begun_ns) / (1ull << WEIR_CHANGE_SLICE_SHIFT);
	assert_in_range(reported(breakers_of(slot)), WEIR_CHANGES_A_SLICE, 3 * WEIR_CHANGES_A_SLICE + slices);
	assert_int_equal(changes_of(&rig, slot), flood);
	assert_true(weir_events_flooded_until_ns(events, breakers_of(slot)) > begun_ns);
	assert_int_equal(weir_events_flooded_until_ns(events, penalties_of(slot)), 0);
}

/* After a slice that was not enough, half as many; and one that was gives the half back. */
CLAIM(while_a_flood_lasts_less_and_less_is_reported)
{
	struct weir_ring_head *head;
	uint64_t now_slice, before;
	uint32_t slot;
	_cleanup_(end) struct rig rig = {};

	begin_breaker(&rig);
	load(&rig);
	slot = rig.image->rules[0].slot;
	head = &events->changes[0][slot % WEIR_CHANGE_RINGS].head;
	while (weir_host_now_ns() % (1ull << WEIR_CHANGE_SLICE_SHIFT) > 2 * SECOND)
		sleep_ns(20 * MS); /* until there are two seconds left of a slice */
	now_slice = weir_host_now_ns() >> WEIR_CHANGE_SLICE_SHIFT;
	/* The slice before this one is what a flood left. */
	head->slice = (now_slice - 1) << 16 | 1 << 8 | WEIR_CHANGES_A_SLICE / 2;
	head->flooded_until_ns = now_slice << WEIR_CHANGE_SLICE_SHIFT;
	send_packets(&rig, 0x0b000001, 1, false);
	assert_int_equal(head->slice >> 8 & 0xff, 2);
	for (uint32_t source = 2; source <= WEIR_CHANGES_A_SLICE; source++)
		send_packets(&rig, 0x0b000000 + source, 1, false);
	before = reported(penalties_of(slot));
	assert_in_range(before, WEIR_CHANGES_A_SLICE / 4, WEIR_CHANGES_A_SLICE / 4 + WEIR_CHANGES_A_SLICE / 8);
	head->slice = (now_slice - 1) << 16 | 2 << 8 | 1;
	head->flooded_until_ns = 0;
	send_packets(&rig, 0x0c000001, 1, false);
	assert_int_equal(head->slice >> 8 & 0xff, 1);
}

/* ---- the ring and its readers ---- */

/* Two readers see the same; one that comes late learns how many it has missed. */
CLAIM(a_reader_that_is_too_slow_knows_how_many_it_has_missed)
{
	struct weir_event_cursor quick = {}, late = {};
	uint64_t read_quickly = 0, read_late = 0;
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	load_and_listen(&rig);
	send_packets(&rig, 1, LIMIT, true);
	while (reported(DROPS) < WEIR_RING_EVENTS + 88) {
		send_packets(&rig, 1, 10, false);
		while (weir_events_read(events, DROPS, &quick, &event))
			assert_int_equal(event.number, ++read_quickly);
		sleep_ns(MS);
	}
	while (weir_events_read(events, DROPS, &late, &event))
		read_late++;
	assert_int_equal(read_quickly, reported(DROPS));
	assert_int_equal(quick.missed, 0);
	assert_int_equal(read_late, WEIR_RING_EVENTS);
	assert_int_equal(late.missed, read_quickly - WEIR_RING_EVENTS);
}

/* A writer that never ends costs its reader one event, not all that come after it. */
CLAIM(an_event_that_is_never_finished_is_given_up)
{
	struct weir_event_cursor cursor = {};
	struct weir_event event;
	_cleanup_(end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE);
	load_and_listen(&rig);
	events->drops.event[1].number = WEIR_EVENT_BUSY;
	send_packets(&rig, 1, LIMIT, true);
	send_packets(&rig, 1, 2, false);
	assert_false(weir_events_read(events, DROPS, &cursor, &event));
	assert_true(weir_events_read(events, DROPS, &cursor, &event));
	assert_int_equal(event.number, 2);
	assert_int_equal(cursor.missed, 1);
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
