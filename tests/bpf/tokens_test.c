// SPDX-License-Identifier: GPL-2.0-only
/*
 * Token buckets across CPUs: two pinned threads run the shipped program at one flow while the virtual clock stands
 * still, or moves in steps that both know. Then the tokens that there are are known beforehand, and just as many
 * packets must pass: one more is a token taken twice, one fewer a token lost.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/new_flows.h"
#include "../lib/rig.h"
#include "base/util.h"

#define CPUS 2
#define PORT NEW_FLOWS_PORT
#define FRAME_BYTES NEW_FLOWS_FRAME_BYTES

struct bucket {
	struct rig rig;
	int cpu[CPUS];
};

static struct weir_ruleset_rule *add_tokens(struct rig *rig, size_t resource, uint64_t threshold, uint64_t burst)
{
	struct weir_ruleset_rule *rule = rig_rule(rig, resource, WEIR_WINDOW_TOKENS, threshold, SECOND, 10);

	rule->burst_micro = burst * WEIR_MICRO;
	return rule;
}

static void bucket_load(struct bucket *bucket)
{
	rig_load(&bucket->rig, true);
	weir_object_harness(bucket->rig.object)->clock_ns = RIG_START_NS;
	rig_cpus(bucket->cpu, CPUS);
	rig_attach(&bucket->rig);
}

static void bucket_begin(struct bucket *bucket, bool is_keyed, uint64_t threshold, uint64_t burst)
{
	rig_require(CPUS);
	memset(bucket, 0, sizeof(*bucket));
	rig_begin(&bucket->rig, 16384);
	add_tokens(&bucket->rig, rig_resource(&bucket->rig, PORT, is_keyed ? WEIR_KEY_SOURCE : 0), threshold, burst);
	bucket_load(bucket);
}

/* ---- many packets of one flow ---- */

struct sender {
	const struct bucket *bucket;
	atomic_uint *arrived;
	int which;
	uint32_t source, packets, rounds;
	uint64_t step_ns; /* of the clock, after each round */
	uint64_t passed;
	int err;
	pthread_t thread;
};

static void *send_all(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct sender *sender = data;
	const struct rig *rig = &sender->bucket->rig;
	uint8_t frame[PACKET_BYTES_MAX];

	rig_pin(sender->bucket->cpu[sender->which]);
	new_flows_frame(sender->source, frame);
	options.data_in = frame;
	options.data_size_in = FRAME_BYTES;
	options.repeat = sender->rounds > 1 ? 1 : sender->packets;
	for (uint32_t round = 0; round < sender->rounds; round++) {
		rig_line_up(sender->arrived, CPUS, 2 * round);
		if (sender->which == 0 && round)
			weir_object_harness(rig->object)->clock_ns += sender->step_ns;
		rig_line_up(sender->arrived, CPUS, 2 * round + 1);
		for (uint32_t i = 0; i < (sender->rounds > 1 ? sender->packets : 1); i++) {
			sender->err |= bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options);
			sender->passed += options.retval == XDP_PASS;
		}
	}
	return NULL;
}

static void send_from_both(struct bucket *bucket, const uint32_t source[CPUS], uint32_t packets, uint32_t rounds,
			   uint64_t step_ns)
{
	struct sender senders[CPUS];
	atomic_uint arrived = 0;

	for (int i = 0; i < CPUS; i++) {
		senders[i] = (struct sender){.bucket = bucket,
					     .arrived = &arrived,
					     .which = i,
					     .source = source[i],
					     .packets = packets,
					     .rounds = rounds,
					     .step_ns = step_ns};
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_int_equal(senders[i].err, 0);
	}
}

static const uint32_t one_source[CPUS] = {1, 1};

static void both_cpus_empty_a_bucket(bool is_keyed)
{
	const uint64_t burst = 100000;
	struct bucket bucket;

	bucket_begin(&bucket, is_keyed, 1000, burst);
	send_from_both(&bucket, one_source, burst, 1, 0);
	assert_int_equal(rig_passed(&bucket.rig, 0), burst);
	assert_int_equal(rig_rule_counters(&bucket.rig, 0).blocked.packets, burst);
	rig_end(&bucket.rig);
}

CASE_WITHIN(two_cpus_take_each_token_of_a_whole_resource_once, NULL, rig_detach, both_cpus_empty_a_bucket(false));
CASE_WITHIN(two_cpus_take_each_token_of_a_flow_once, NULL, rig_detach, both_cpus_empty_a_bucket(true));

/* A silence longer than the words of a bucket can express, and the flow comes back on both CPUs at once: it has one
 * full bucket, not two.
 */
CLAIM_WITHIN(a_flow_that_comes_back_to_two_cpus_has_one_full_bucket, NULL, rig_detach)
{
	const uint32_t rounds = 4000, burst = 3;
	struct bucket bucket;

	for (int keyed = 0; keyed < 2; keyed++) {
		bucket_begin(&bucket, keyed, 99999989, burst);
		send_from_both(&bucket, one_source, burst, rounds, 37 * SECOND + 1);
		assert_int_equal(rig_passed(&bucket.rig, 0), rounds * burst);
		rig_end(&bucket.rig);
	}
}

/* ---- what is put back ---- */

/* One CPU's packets are blocked by a later rule, each after it has taken a token: the other CPU, whose packets pass,
 * has all the tokens in the end.
 */
CLAIM_WITHIN(tokens_that_one_cpu_puts_back_are_there_for_another, NULL, rig_detach)
{
	const uint64_t burst = 50000;
	const uint32_t sources[CPUS] = {1, 2};
	struct weir_override *blocked = calloc(1, sizeof(*blocked));
	struct bucket bucket = {};
	struct weir_ruleset_rule *rule;

	rig_require(CPUS);
	rig_begin(&bucket.rig, 16384);
	add_tokens(&bucket.rig, rig_resource(&bucket.rig, PORT, 0), 1000, burst);
	rule = rig_rule(&bucket.rig, rig_resource(&bucket.rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 1000000000,
			SECOND, 10);
	assert_non_null(blocked);
	blocked->prefix = (struct weir_prefix){.family = 4, .bits = 32};
	memcpy(blocked->prefix.address, &sources[0], sizeof(sources[0]));
	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = blocked;
	rule->override_count = 1;
	bucket_load(&bucket);
	send_from_both(&bucket, sources, burst, 1, 0);
	send_from_both(&bucket, (const uint32_t[CPUS]){2, 2}, burst, 1, 0);
	assert_int_equal(rig_passed(&bucket.rig, 0), burst);
	rig_end(&bucket.rig);
}

/* ---- an override that a reload brings ---- */

static uint32_t flow_passes(struct rig *rig, uint64_t now_ns, uint32_t source, uint32_t packets)
{
	uint8_t frame[PACKET_BYTES_MAX];
	uint32_t passed = 0;

	new_flows_frame(source, frame);
	while (packets--)
		passed += rig_passes(rig, now_ns, frame, FRAME_BYTES);
	return passed;
}

/* Its virtual time is another one than the rule's: the bucket that the flow had says nothing by it. */
CLAIM(a_flow_that_comes_under_an_override_has_a_full_bucket)
{
	const uint64_t later_ns = RIG_START_NS + SECOND;
	const uint32_t source = 1;
	struct weir_override *slow = calloc(1, sizeof(*slow));
	_cleanup_(rig_end) struct rig rig = {}, next = {};
	struct weir_ruleset_rule *rule;

	rig_begin(&rig, 16384);
	add_tokens(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), 20, 3);
	rig_load(&rig, true);
	assert_int_equal(flow_passes(&rig, later_ns, source, 9), 3);

	rig_begin(&next, 16384);
	rule = add_tokens(&next, rig_resource(&next, PORT, WEIR_KEY_SOURCE), 20, 3);
	assert_non_null(slow);
	slow->prefix = (struct weir_prefix){.family = 4, .bits = 32};
	memcpy(slow->prefix.address, &source, sizeof(source));
	slow->threshold_micro = 2 * WEIR_MICRO;
	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = slow;
	rule->override_count = 1;
	next.reloads = &rig;
	next.now_ns = later_ns;
	rig_load(&next, true);
	assert_int_equal(flow_passes(&next, later_ns, source, 9), 3);
	assert_int_equal(flow_passes(&next, later_ns + SECOND, source, 9), 2);
}

/* ---- the first packets of many flows ---- */

CLAIM_WITHIN(a_new_flow_met_by_two_cpus_at_once_gets_one_bucket, NULL, rig_detach)
{
	struct bucket bucket;

	bucket_begin(&bucket, true, 1000, 1);
	assert_int_equal(new_flows_race(&bucket.rig, bucket.cpu), 0);
	assert_int_equal(rig_rule_counters(&bucket.rig, 0).evicted, 0);
	rig_end(&bucket.rig);
}

/* ---- a full table ---- */

/* A heavy flow at fifty times its rate, in a flood of new sources that pushes flows out all the time. */
CLAIM(a_flood_of_new_sources_fills_no_heavy_flows_bucket)
{
	const uint64_t threshold = 20; /* a fiftieth of what the heavy flow sends */
	struct new_flows_passed passed;
	_cleanup_(rig_end) struct rig rig = {};

	rig_begin(&rig, NEW_FLOWS_TABLE);
	add_tokens(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), threshold, 5);
	rig_load(&rig, true);
	passed = new_flows_flood(&rig);
	assert_int_equal(passed.new, passed.new_sent);
	assert_in_range(passed.heavy, 3 * threshold, 3 * threshold + 5);
}

RUN_CLAIMS(NULL, NULL)
