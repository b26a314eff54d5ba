// SPDX-License-Identifier: GPL-2.0-only
/*
 * A row remembers that its flow is over its limit, and the flow's packets are dropped by that alone
 * (WEIR_SHORTCUT_OVER, weir_is_known_over). What must not happen is that being over the limit is believed which does
 * not hold: after its bucket, under another rule, threshold or override. Under the virtual clock, on one CPU.
 */
#include <bpf/bpf.h>
#include <string.h>

#include "../lib/harness_setup.h"
#include "../lib/packets.h"
#include "../lib/previous.h"
#include "../lib/rig.h"
#include "../lib/shortcuts.h"
#include "base/util.h"
#include "host/host.h"

#define PORT 53
#define OTHER_PORT 123
#define LIMIT 3u
#define MANY 20u /* packets: more than any limit here */
#define FLOWS_PER_CPU 16384u

static const uint64_t limits[] = {LIMIT, 100000, 3000000000}; /* narrow rows, medium ones, wide ones */

struct bench {
	struct rig rig;
	uint64_t now_ns;
};

static unsigned int passed_of(struct bench *bench, const char *source, uint16_t port, unsigned int count)
{
	struct packet_spec spec = packet_udp(source, 1024, "198.51.100.1", port, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(&spec, frame);
	unsigned int passed = 0;

	for (unsigned int i = 0; i < count; i++)
		passed += rig_passes(&bench->rig, bench->now_ns, frame, frame_bytes);
	return passed;
}

/* Buckets of a second; one of them is a window. */
static struct weir_ruleset_rule *begin(struct bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	bench->now_ns = RIG_START_NS;
	rig_begin(&bench->rig, FLOWS_PER_CPU);
	return rig_rule(&bench->rig, rig_resource(&bench->rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT, SECOND,
			1);
}

static void end(struct bench *bench)
{
	struct weir_ruleset_rule *rule = &bench->rig.ruleset->rules[0];

	rule->overrides = NULL; /* they are not its own */
	rule->override_count = 0;
	rig_end(&bench->rig);
}

static void override(struct weir_ruleset_rule *rule, struct weir_override *overrides, size_t count)
{
	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = overrides;
	rule->override_count = count;
}

CLAIM(being_over_the_limit_ends_with_its_bucket)
{
	_cleanup_(end) struct bench bench = {};

	begin(&bench);
	rig_load(&bench.rig, true);
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, MANY), LIMIT);
	bench.now_ns += SECOND - 1;
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, MANY), 0);
	for (int bucket = 0; bucket < 40; bucket++) {
		bench.now_ns += bucket ? SECOND : 1;
		assert_int_equal(passed_of(&bench, "192.0.2.2", PORT, MANY), LIMIT);
		assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, MANY), LIMIT);
	}
}

/* As it may in a capture. A flow is over its limit, a newer bucket has room, and the clock goes back by up to more than
 * the ring remembers: the model says what is due.
 */
/* Three times from the same distance; each time all that was before has left the window. */
static void fill_and_go_back(struct harness *harness, uint64_t *now_ns, uint64_t bucket_ns, uint64_t back,
			     unsigned int fill)
{
	for (int round = 0; round < 3; round++) {
		harness_send(harness, HOST, *now_ns, fill);
		*now_ns += (10 + round) * bucket_ns;
		harness_send(harness, HOST, *now_ns, 1);
		harness_send(harness, HOST, *now_ns - back * bucket_ns, fill);
		harness_send(harness, OTHER_HOST, *now_ns - back * bucket_ns, 2);
		*now_ns += 2 * SECOND;
	}
}

CLAIM(being_over_does_not_hold_again_when_the_clock_goes_back_to_its_bucket)
{
	static const enum weir_window_kind kinds[] = {WEIR_WINDOW_LEAP, WEIR_WINDOW_STRICT, WEIR_WINDOW_SMOOTH};

	for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++)
		for (size_t limit = 0; limit < ARRAY_SIZE(limits); limit++) {
			/* the larger ones in bytes, which medium rows count, or wide ones in short buckets */
			uint64_t bucket_ns = limit == 2 ? 40 * MS : 100 * MS;
			uint64_t now_ns = 1000 * SECOND;
			struct setup setup;
			_cleanup_(harness_finish) struct harness harness = {};

			setup_resources(&setup, 1);
			setup_rule(&setup, 0, rule_of("limit", kinds[kind], limit ? 40000 : LIMIT, 10 * bucket_ns, 10));
			setup.rule[0].counts_bytes = limit;
			harness_start(&harness, &setup);
			for (uint64_t back = 0; back < 13; back++)
				fill_and_go_back(&harness, &now_ns, bucket_ns, back, limit ? 40000 / 60 + 2 : MANY);
		}
}

CLAIM(a_flow_over_the_limit_of_one_rule_has_its_limit_under_another)
{
	_cleanup_(end) struct bench bench = {};

	begin(&bench);
	rig_rule(&bench.rig, rig_resource(&bench.rig, OTHER_PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT + 2, SECOND,
		 1);
	rig_rule(&bench.rig, rig_resource(&bench.rig, OTHER_PORT + 1, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT + 4,
		 2 * SECOND, 1);
	rig_load(&bench.rig, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, MANY), i ? 0 : LIMIT);
		assert_int_equal(passed_of(&bench, "192.0.2.1", OTHER_PORT, MANY), i ? 0 : LIMIT + 2);
		assert_int_equal(passed_of(&bench, "192.0.2.1", OTHER_PORT + 1, MANY), i ? 0 : LIMIT + 4);
	}
}

CLAIM(flows_under_overrides_have_their_own_limits)
{
	static struct weir_override overrides[] = {
		{.prefix = {4, 32, {192, 0, 2, 1}}, .threshold_micro = (LIMIT + 2) * WEIR_MICRO},
		{.prefix = {4, 32, {192, 0, 2, 2}}, .threshold_micro = 0},
	};
	_cleanup_(end) struct bench bench = {};

	override(begin(&bench), overrides, ARRAY_SIZE(overrides));
	rig_load(&bench.rig, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(passed_of(&bench, "192.0.2.3", PORT, MANY), i ? 0 : LIMIT);
		assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, MANY), i ? 0 : LIMIT + 2);
		assert_int_equal(passed_of(&bench, "192.0.2.2", PORT, MANY), 0);
		assert_int_equal(passed_of(&bench, "192.0.2.4", PORT, MANY), i ? 0 : LIMIT);
	}
}

/* The one override is another source's now. */
static void move_override(struct bench *bench, uint8_t host)
{
	_cleanup_(weir_closep) int fd = rig_map_fd(&bench->rig, "overrides");
	struct weir_override_units units;
	struct weir_override_key key;

	assert_int_equal(bpf_map_get_next_key(fd, NULL, &key), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &key, &units), 0);
	assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
	key.address[3] = host;
	assert_int_equal(bpf_map_update_elem(fd, &key, &units, BPF_NOEXIST), 0);
}

/* Rows keep the version of the load under which they found that their flow has no override, and 127 reloads later it
 * comes round: what is older than a window is not believed.
 */
CLAIM(an_override_reaches_a_flow_that_was_silent_for_a_window)
{
	static struct weir_override overrides[] = {{.prefix = {4, 32, {192, 0, 2, 1}}}}; /* 0 */

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct weir_ruleset_rule *rule;
		_cleanup_(end) struct bench bench = {};

		rule = begin(&bench);
		rule->threshold_micro = limits[i] * WEIR_MICRO;
		override(rule, overrides, ARRAY_SIZE(overrides));
		rig_load(&bench.rig, true);
		assert_int_equal(passed_of(&bench, "192.0.2.3", PORT, 2), 2);
		move_override(&bench, 3);
		/* With shortcuts the row is believed until then: the test is one. */
		assert_int_equal(passed_of(&bench, "192.0.2.3", PORT, 1), !shortcuts_left_out());
		bench.now_ns += SECOND;
		assert_int_equal(passed_of(&bench, "192.0.2.3", PORT, MANY), 0);
	}
}

/* Up and down; the rows are the same. */
CLAIM(the_next_load_s_threshold_holds_for_a_flow_over_its_limit)
{
	_cleanup_(end) struct bench old = {}, higher = {}, lower = {};

	begin(&old);
	rig_load(&old.rig, true);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, MANY), LIMIT);
	assert_int_equal(passed_of(&old, "192.0.2.2", PORT, 1), 1);

	begin(&higher)->threshold_micro = 2 * LIMIT * WEIR_MICRO;
	higher.rig.reloads = &old.rig;
	higher.rig.now_ns = higher.now_ns;
	rig_load(&higher.rig, true);
	assert_int_equal(passed_of(&higher, "192.0.2.1", PORT, MANY), LIMIT);
	assert_int_equal(passed_of(&higher, "192.0.2.2", PORT, 1), 1); /* leases more than that, if it can */

	begin(&lower)->threshold_micro = 2 * WEIR_MICRO;
	lower.rig.reloads = &higher.rig;
	lower.rig.now_ns = lower.now_ns;
	rig_load(&lower.rig, true);
	assert_int_equal(passed_of(&lower, "192.0.2.1", PORT, MANY), 0);
	assert_int_equal(passed_of(&lower, "192.0.2.2", PORT, MANY), 0);
	assert_int_equal(passed_of(&lower, "192.0.2.3", PORT, MANY), 2);
}

static void load_warming(struct bench *bench, struct bench *before, uint32_t period_s)
{
	struct weir_ruleset_rule *rule = begin(bench);

	rule->threshold_micro = 100 * WEIR_MICRO;
	rule->strategy = WEIR_STRATEGY_WARM_UP;
	rule->warm_up = (struct weir_warm_up_fields){.period_s = period_s, .cold_factor = 3};
	bench->rig.reloads = before ? &before->rig : NULL;
	bench->rig.now_ns = bench->now_ns;
	rig_load(&bench->rig, true);
}

/* The flow has passed no less than a cold one's rate, and does not cool. */
CLAIM(a_reload_keeps_what_has_passed_of_a_warming_flow_in_this_second)
{
	_cleanup_(end) struct bench old = {}, longer = {};

	load_warming(&old, NULL, 10);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, 100), 33);
	load_warming(&longer, &old, 11);
	assert_int_equal(passed_of(&longer, "192.0.2.1", PORT, 1), 1);
	longer.now_ns += SECOND;
	assert_int_equal(passed_of(&longer, "192.0.2.1", PORT, 100), 39); /* 966 tokens are left of 1000 */
}

/* ---- many reloads within a window ---- */

/* Reload bench's rules `count` times, each time with another threshold or override, and in the end with that of
 * `wanted_micro`. Loads are compiled one from the other; only the last one is put in force.
 */
static void reload_often(struct bench *bench, const struct bench *first, unsigned int count, uint64_t *threshold_micro,
			 uint64_t wanted_micro)
{
	struct weir_image *image = first->rig.image, *next;
	struct rig last = first->rig;
	struct weir_diag diag = {};

	for (unsigned int i = 1; i < count; i++) {
		struct weir_previous previous = previous_of(image);
		struct weir_compile_options options = {
			.cpus = (uint32_t)weir_host_cpus(), .now_ns = RIG_START_NS, .previous = &previous};

		*threshold_micro = (1000 + i) * WEIR_MICRO;
		assert_int_equal(weir_image_build(bench->rig.ruleset, &options, &next, &diag), 0);
		if (image != first->rig.image)
			weir_image_free(image);
		image = next;
	}
	weir_diag_free(&diag);
	*threshold_micro = wanted_micro;
	last.image = image;
	bench->rig.reloads = &last;
	bench->rig.now_ns = bench->now_ns;
	rig_load(&bench->rig, true);
	if (image != first->rig.image)
		weir_image_free(image);
}

/* A flow is over its limit, or has leased, under a threshold of long ago whose version comes round. */
LONG_CLAIM(no_number_of_reloads_makes_an_old_threshold_hold_again)
{
	static const unsigned int counts[] = {1, 126, 127, 255};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct bench old, higher, lower;

		begin(&old);
		rig_load(&old.rig, true);
		assert_int_equal(passed_of(&old, "192.0.2.1", PORT, MANY), LIMIT);
		begin(&higher);
		reload_often(&higher, &old, counts[i], &higher.rig.ruleset->rules[0].threshold_micro,
			     29254 * WEIR_MICRO);
		assert_int_equal(passed_of(&higher, "192.0.2.1", PORT, MANY), MANY);
		assert_int_equal(passed_of(&higher, "192.0.2.2", PORT, 40), 40); /* and leases more */
		begin(&lower);
		reload_often(&lower, &higher, counts[i], &lower.rig.ruleset->rules[0].threshold_micro, 41 * WEIR_MICRO);
		assert_int_equal(passed_of(&lower, "192.0.2.2", PORT, MANY), 1);
		assert_int_equal(passed_of(&lower, "192.0.2.2", PORT, MANY), 0);
		assert_int_equal(passed_of(&lower, "192.0.2.3", PORT, 60), 41);
		end(&lower);
		end(&higher);
		end(&old);
	}
}

/* In all formats, and whether the flow has the override or not. */
LONG_CLAIM(no_number_of_reloads_makes_an_old_override_hold_again)
{
	static const unsigned int counts[] = {63, 126, 127};

	for (size_t i = 0; i < ARRAY_SIZE(counts) * ARRAY_SIZE(limits); i++) {
		struct weir_override before[] = {
			{.prefix = {4, 32, {192, 0, 2, 1}}, .threshold_micro = 5 * WEIR_MICRO}};
		struct weir_override after[] = {{.prefix = {4, 31, {192, 0, 2, 2}}, .threshold_micro = 5 * WEIR_MICRO}};
		uint64_t limit = limits[i % ARRAY_SIZE(limits)];
		struct bench old, next;

		begin(&old)->threshold_micro = limit * WEIR_MICRO;
		override(&old.rig.ruleset->rules[0], before, 1);
		rig_load(&old.rig, true);
		assert_int_equal(passed_of(&old, "192.0.2.1", PORT, MANY), 5);
		assert_int_equal(passed_of(&old, "192.0.2.2", PORT, 2), 2);
		begin(&next)->threshold_micro = limit * WEIR_MICRO;
		override(&next.rig.ruleset->rules[0], after, 1);
		reload_often(&next, &old, counts[i / ARRAY_SIZE(limits)], &after[0].threshold_micro, 2 * WEIR_MICRO);
		assert_int_equal(passed_of(&next, "192.0.2.1", PORT, MANY), limit == LIMIT ? 0 : MANY);
		assert_int_equal(passed_of(&next, "192.0.2.2", PORT, MANY), 0);
		assert_int_equal(passed_of(&next, "192.0.2.3", PORT, MANY), 2);
		end(&next);
		end(&old);
	}
}

/* Of bytes a flow may be full for a large packet and not for a small one. */
CLAIM(a_flow_is_over_its_limit_for_packets_larger_than_what_is_left)
{
	struct packet_spec large = packet_udp("192.0.2.1", 1024, "198.51.100.1", PORT, 1000);
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(&large, frame);
	struct weir_ruleset_rule *rule;
	_cleanup_(end) struct bench bench = {};

	rule = begin(&bench);
	rule->counts_bytes = true;
	rule->threshold_micro = (frame_bytes + 2 * 60) * WEIR_MICRO;
	rig_load(&bench.rig, true);
	assert_true(rig_passes(&bench.rig, bench.now_ns, frame, frame_bytes));
	for (int i = 0; i < 10; i++)
		assert_false(rig_passes(&bench.rig, bench.now_ns, frame, frame_bytes));
	assert_int_equal(passed_of(&bench, "192.0.2.1", PORT, MANY), 2);
	assert_int_equal(passed_of(&bench, "192.0.2.2", PORT, MANY),
			 (frame_bytes + 2 * 60) / 60 > MANY ? MANY : (frame_bytes + 2 * 60) / 60);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
