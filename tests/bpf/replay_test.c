// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shipped BPF object against the reference model (tests/lib/model.h), packet for packet: verdict,
 * rule, resources, counters. First claims about windows, each on traffic made for it, where the
 * expected figure is written down too; then random rule sets and traffic.
 *
 * WEIR_SEED and WEIR_ROUNDS choose the random ones; a failure names the seed of its round, and
 * WEIR_SEED=that WEIR_ROUNDS=1 repeats it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <sched.h>
#include <string.h>

#include "compile.h"
#include "host.h"
#include "../lib/model.h"
#include "object.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "util.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC

/* ---- a laboratory: one rule set, judged by the object and by the model ---- */

struct lab {
	const struct weir_ruleset *ruleset;
	struct model *model;
	struct weir_image *image;
	struct weir_object *object;
	uint64_t packets;
	uint8_t frame[PACKET_BYTES_MAX];
};

static uint32_t resolve(const char *name, void *unused)
{
	return random_ifindex(name);
}

/* 0, or -ENOTSUP when the compiler refuses the rule set (its reasons are printed). */
static int lab_open(struct lab *lab, const struct weir_ruleset *ruleset, uint64_t earliest_ns, uint64_t latest_ns)
{
	struct weir_object_options object_options = {.is_virtual = true};
	struct weir_compile_options options = {
		.cpus = weir_host_cpus(),
		.now_ns = earliest_ns,
		.span_ns = latest_ns - earliest_ns + 48 * 3600 * SECOND,
		.ifindex = resolve,
	};
	struct weir_diag diag = {};
	int err;

	memset(lab, 0, sizeof(*lab));
	lab->ruleset = ruleset;
	err = weir_image_build(ruleset, &options, &lab->image, &diag);
	if (!err)
		err = weir_object_load(lab->image, &object_options, &lab->object, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	lab->model = model_new(ruleset, random_ifindex);
	return err;
}

static void lab_close(struct lab *lab)
{
	model_free(lab->model);
	weir_object_free(lab->object);
	weir_image_free(lab->image);
}

/* What the object says, in the model's words. */
static struct model_decision object_judge(struct lab *lab, uint64_t time_ns, size_t frame_bytes, uint32_t ifindex)
{
	volatile struct weir_lab *in_kernel = weir_object_lab(lab->object);
	struct model_decision decision = {.rule = ""};
	int action;
	size_t i;

	in_kernel->clock_ns = time_ns;
	in_kernel->frame_bytes = frame_bytes;
	in_kernel->ifindex = ifindex;
	action = weir_object_judge(lab->object, lab->frame, frame_bytes);
	assert_true(action == XDP_PASS || action == XDP_DROP);
	lab->packets++;

	decision.verdict = in_kernel->verdict;
	decision.wait_ns = in_kernel->wait_ns;
	decision.resource_count = in_kernel->resource_count;
	assert_true(decision.resource_count <= WEIR_PACKET_RESOURCES_MAX);
	for (i = 0; i < decision.resource_count; i++)
		decision.resource[i] = in_kernel->resource[i];
	if (action == XDP_PASS)
		return decision;
	if (decision.verdict == WEIR_VERDICT_BLOCK)
		decision.rule = lab->ruleset->rules[in_kernel->rule].name;
	else if (decision.verdict == WEIR_VERDICT_MALFORMED_DROP)
		decision.rule = "malformed";
	else if (decision.verdict == WEIR_VERDICT_UNSUPPORTED_DROP)
		decision.rule = "unsupported";
	else if (decision.verdict == WEIR_VERDICT_NON_IP_DROP)
		decision.rule = "nonIp";
	else if (decision.verdict == WEIR_VERDICT_UNMATCHED_DROP)
		decision.rule = "unmatched";
	else
		decision.rule = "(dropped without a reason)";
	return decision;
}

static bool agree(const struct model_decision *a, const struct model_decision *b)
{
	return a->verdict == b->verdict && strcmp(a->rule, b->rule) == 0 && a->wait_ns == b->wait_ns &&
	       a->resource_count == b->resource_count &&
	       memcmp(a->resource, b->resource, a->resource_count * sizeof(a->resource[0])) == 0;
}

static void print_decision(const char *whose, const struct model_decision *decision)
{
	size_t i;

	fprintf(stderr, "    %s: verdict %d, rule '%s', resources", whose, decision->verdict, decision->rule);
	for (i = 0; i < decision->resource_count; i++)
		fprintf(stderr, " %zu", decision->resource[i]);
	fprintf(stderr, "\n");
}

/* Judge by both. Returns whether they agree; *ret_decision is the model's. */
static bool lab_judge(struct lab *lab, const struct packet_spec *spec, struct model_decision *ret_decision)
{
	size_t frame_bytes = packet_build(spec, lab->frame);
	struct model_decision by_object;

	*ret_decision = model_judge(lab->model, spec->time_ns, lab->frame, frame_bytes, RANDOM_IFINDEX);
	by_object = object_judge(lab, spec->time_ns, frame_bytes, RANDOM_IFINDEX);
	if (agree(ret_decision, &by_object))
		return true;
	fprintf(stderr, "packet %" PRIu64 " at %" PRIu64 " ns, %zu bytes:\n", lab->packets, spec->time_ns, frame_bytes);
	print_decision("model", ret_decision);
	print_decision("object", &by_object);
	return false;
}

static void sum_of(const struct lab *lab, enum weir_instance_map map, uint32_t slot, void *sum, size_t bytes)
{
	int cpus = weir_host_cpus();
	_cleanup_(weir_freep) __u64 *copies = calloc(cpus, bytes);
	__u64 *total = sum;
	size_t i, words = bytes / sizeof(__u64);

	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(lab->object, map), &slot, copies), 0);
	memset(sum, 0, bytes);
	for (i = 0; i < words * cpus; i++)
		total[i % words] += copies[i];
}

/* Do the counters say what happened? */
static bool counters_agree(struct lab *lab)
{
	struct weir_totals totals;
	uint64_t sum = 0;
	size_t i;

	sum_of(lab, WEIR_MAP_TOTALS, 0, &totals, sizeof(totals));
	for (i = 0; i < WEIR_VERDICT_COUNT; i++)
		sum += totals.verdict[i].packets;
	if (totals.seen.packets != lab->packets || sum != lab->packets) {
		fprintf(stderr, "%" PRIu64 " packets, seen %llu, sum of verdicts %" PRIu64 "\n", lab->packets,
			(unsigned long long)totals.seen.packets, sum);
		return false;
	}
	for (i = 0; i < lab->ruleset->rule_count; i++) {
		struct weir_rule_counters counters;

		sum_of(lab, WEIR_MAP_RULE_COUNTERS, lab->image->rules[i].slot, &counters, sizeof(counters));
		if (counters.would_drop.packets == model_would_drop(lab->model, i) && !counters.evicted &&
		    !counters.stalled)
			continue;
		fprintf(stderr, "rule '%s': would drop %llu, model %" PRIu64 "; evicted %llu, stalled %llu\n",
			lab->ruleset->rules[i].name, (unsigned long long)counters.would_drop.packets,
			model_would_drop(lab->model, i), (unsigned long long)counters.evicted,
			(unsigned long long)counters.stalled);
		return false;
	}
	return true;
}

/* ---- claims ---- */

/* A resource that everything matches, and its rules. */
struct setup {
	struct weir_ruleset ruleset;
	struct weir_ruleset_resource resource[3];
	struct weir_ruleset_rule rule[3];
};

static struct weir_ruleset_rule rule_of(char *name, enum weir_window_kind window, double threshold,
					uint64_t interval_ns, uint32_t samples)
{
	return (struct weir_ruleset_rule){
		.name = name,
		.threshold_micro = threshold * 1e6 + 0.5,
		.interval_ns = interval_ns,
		.samples = samples,
		.window = window,
	};
}

static void setup_resources(struct setup *setup, size_t count)
{
	static char *const names[] = {"first", "second", "third"};
	size_t i;

	memset(setup, 0, sizeof(*setup));
	setup->ruleset.settings = (struct weir_settings){.flows_per_cpu = 4096, .drop_malformed = true};
	for (i = 0; i < count; i++) {
		setup->resource[i].name = names[i];
		setup->resource[i].flow.fields = WEIR_KEY_SOURCE;
		setup->resource[i].flow.source_bits[0] = 32;
		setup->resource[i].flow.source_bits[1] = 128;
	}
	setup->ruleset.resources = setup->resource;
	setup->ruleset.resource_count = count;
	setup->ruleset.rules = setup->rule;
}

static void setup_rule(struct setup *setup, size_t resource, struct weir_ruleset_rule rule)
{
	rule.resource = resource;
	setup->rule[setup->ruleset.rule_count++] = rule;
}

static void lab_start(struct lab *lab, struct setup *setup)
{
	assert_int_equal(lab_open(lab, &setup->ruleset, 0, 3600 * SECOND), 0);
}

/* Send `count` packets at time_ns, each judged by object and model. Returns how many passed. */
static unsigned int lab_send(struct lab *lab, const char *source, uint64_t time_ns, unsigned int count)
{
	struct packet_spec spec = packet_udp(source, 1024, "192.0.2.53", 53, 18);
	struct model_decision decision;
	unsigned int i, passed = 0;

	spec.time_ns = time_ns;
	for (i = 0; i < count; i++) {
		assert_true(lab_judge(lab, &spec, &decision));
		passed += decision.verdict == WEIR_VERDICT_PASS;
	}
	return passed;
}

static void lab_finish(struct lab *lab)
{
	assert_true(counters_agree(lab));
	lab_close(lab);
}

/* One rule on one resource, the beginning of most claims. */
static void lab_one_rule(struct lab *lab, struct setup *setup, enum weir_window_kind window, double threshold,
			 uint64_t interval_ns, uint32_t samples)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("limit", window, threshold, interval_ns, samples));
	lab_start(lab, setup);
}

#define HOST "192.0.2.1"
#define OTHER_HOST "192.0.2.2"

static void leap_admits_twice_the_threshold_in_its_worst_phase(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_LEAP, 100, SECOND, 10);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 100 * MS - 1, 150), 100);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND - 1, 10), 0);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND, 150),
			 100); /* the bucket has left, the interval is not over */
	lab_finish(&lab);
}

static void strict_counts_a_bucket_until_all_of_it_is_an_interval_old(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_STRICT, 100, SECOND, 10);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 150), 100);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND, 10), 0);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 100 * MS - 1, 10), 0);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 100 * MS, 150), 100);
	lab_finish(&lab);
}

static void strict_never_holds_more_than_the_threshold_in_any_interval(void **state)
{
	static uint64_t passed_ns[20000];
	struct random random = {7};
	size_t count = 0, oldest = 0;
	uint64_t now_ns = SECOND;
	struct setup setup;
	struct lab lab;
	int i;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_STRICT, 20, 100 * MS, 10);
	for (i = 0; i < 20000; i++) {
		now_ns += random_below(&random, random_percent(&random, 1) ? 150 * MS : 2 * MS);
		if (!lab_send(&lab, HOST, now_ns, 1))
			continue;
		passed_ns[count++] = now_ns;
		while (passed_ns[oldest] + 100 * MS <= now_ns)
			oldest++;
		assert_true(count - oldest <= 20);
	}
	assert_true(count > 1000);
	lab_finish(&lab);
}

static void smooth_rounds_the_oldest_share_up(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_SMOOTH, 10, SECOND, 10);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 10), 10);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND, 1), 0);
	/* ten units leave one by one, each when a tenth of the bucket has, to the nanosecond */
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 10 * MS - 1, 2), 0);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 10 * MS, 2), 1);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 20 * MS - 1, 2), 0);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 95 * MS, 20), 8);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 100 * MS, 20), 1);
	lab_finish(&lab);
}

static void smooth_at_a_threshold_of_one_is_strict(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_SMOOTH, 1, SECOND, 10);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 2), 1);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 100 * MS - 1, 2), 0);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 100 * MS, 2), 1);
	lab_finish(&lab);
}

static void one_sample_is_the_fixed_window(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_LEAP, 5, SECOND, 1);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND - 1, 10), 5);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND, 10), 5);
	assert_int_equal(lab_send(&lab, HOST, 7 * SECOND - 1, 1), 0);
	lab_finish(&lab);
}

static void fractions_of_a_threshold_admit_nothing(void **state)
{
	static const struct {
		double threshold;
		unsigned int passed;
	} cases[] = {{0, 0}, {0.5, 0}, {0.999999, 0}, {1, 1}, {2.9, 2}, {3, 3}};
	struct setup setup;
	struct lab lab;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		lab_one_rule(&lab, &setup, WEIR_WINDOW_LEAP, cases[i].threshold, SECOND, 10);
		assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 10), cases[i].passed);
		lab_finish(&lab);
	}
}

static void each_flow_has_a_window_of_its_own(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_LEAP, 5, SECOND, 10);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 10), 5);
	assert_int_equal(lab_send(&lab, OTHER_HOST, 5 * SECOND, 10), 5);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 10), 0);
	lab_finish(&lab);
}

static void a_packet_that_any_rule_blocks_is_counted_by_none(void **state)
{
	struct setup setup;
	struct lab lab;

	/* The same packets meet a wide limit first and a narrow one second, of another resource. */
	setup_resources(&setup, 2);
	setup.resource[1].flow = (struct weir_flow){};
	setup_rule(&setup, 0, rule_of("each-host", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	setup_rule(&setup, 1, rule_of("all-hosts", WEIR_WINDOW_LEAP, 8, 100 * MS, 1));
	lab_start(&lab, &setup);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 100), 8);
	/* 92 packets were blocked by the second rule; had the first counted them, it would block all now */
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 100 * MS, 100), 2);
	assert_int_equal(lab_send(&lab, OTHER_HOST, 5 * SECOND + 100 * MS, 100), 6);
	lab_finish(&lab);
}

static void the_first_enforced_rule_that_blocks_names_the_drop(void **state)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 18);
	struct model_decision decision;
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, rule_of("watched", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	setup.rule[0].observes = true;
	setup_rule(&setup, 0, rule_of("open", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	setup_rule(&setup, 0, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	lab_start(&lab, &setup);
	assert_true(lab_judge(&lab, &spec, &decision));
	assert_string_equal(decision.rule, "shut");
	lab_finish(&lab);
}

static void an_observing_rule_counts_what_it_would_admit_only(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_LEAP, 5, SECOND, 10);
	lab_close(&lab);
	setup.rule[0].observes = true;
	lab_start(&lab, &setup);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 20), 20);
	assert_int_equal(model_would_drop(lab.model, 0), 15);
	/* had the fifteen been counted, or the five not, it would drop others now */
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND - 1, 1), 1);
	assert_int_equal(model_would_drop(lab.model, 0), 16);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND, 7), 7);
	assert_int_equal(model_would_drop(lab.model, 0), 18);
	lab_finish(&lab);
}

static void a_byte_limit_below_the_frame_never_admits_it(void **state)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 58); /* 100 bytes */
	struct model_decision decision;
	struct setup setup;
	struct lab lab;
	int i;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, rule_of("bytes", WEIR_WINDOW_LEAP, 299.5, SECOND, 10));
	setup.rule[0].counts_bytes = true;
	lab_start(&lab, &setup);
	for (i = 0; i < 3; i++) {
		spec.time_ns = (5 + i) * SECOND;
		spec.payload_bytes = 258; /* 300 bytes */
		assert_true(lab_judge(&lab, &spec, &decision));
		assert_int_equal(decision.verdict, WEIR_VERDICT_BLOCK);
		spec.payload_bytes = 158;
		assert_true(lab_judge(&lab, &spec, &decision));
		assert_int_equal(decision.verdict, WEIR_VERDICT_PASS);
		assert_true(lab_judge(&lab, &spec, &decision));
		assert_int_equal(decision.verdict, WEIR_VERDICT_BLOCK);
		spec.payload_bytes = 57; /* what is left, exactly */
		assert_true(lab_judge(&lab, &spec, &decision));
		assert_int_equal(decision.verdict, WEIR_VERDICT_PASS);
	}
	lab_finish(&lab);
}

static void a_jumbo_frame_counts_all_its_bytes(void **state)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 9014 - 42);
	struct model_decision decision;
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, rule_of("bytes", WEIR_WINDOW_LEAP, 9014, SECOND, 10));
	setup.rule[0].counts_bytes = true;
	lab_start(&lab, &setup);
	assert_true(lab_judge(&lab, &spec, &decision));
	assert_int_equal(decision.verdict, WEIR_VERDICT_PASS);
	assert_true(lab_judge(&lab, &spec, &decision));
	assert_int_equal(decision.verdict, WEIR_VERDICT_BLOCK);
	lab_finish(&lab);
}

/* The longest header chain puts the ports 16 KB into the frame, far beyond its first buffer. */
static void headers_are_read_beyond_the_first_buffer(void **state)
{
	struct packet_spec spec = packet_udp("2001:db8::1", 1024, "2001:db8::53", 53, 18);
	struct weir_range port = {53, 53};
	struct model_decision decision;
	struct setup setup;
	struct lab lab;
	int i;

	for (i = 0; i < 8; i++)
		spec.extension[i] = (struct packet_extension){.protocol = 60, .units = 255};
	setup_resources(&setup, 1);
	setup.resource[0].match.destination_port = &port;
	setup.resource[0].match.destination_port_count = 1;
	setup_rule(&setup, 0, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	lab_start(&lab, &setup);
	for (spec.extension_count = 0; spec.extension_count <= 8; spec.extension_count++) {
		assert_true(lab_judge(&lab, &spec, &decision));
		assert_int_equal(decision.verdict, WEIR_VERDICT_BLOCK);
	}
	lab_finish(&lab);
}

static void a_clock_that_steps_back_within_the_ring_counts_newer_buckets(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_LEAP, 10, SECOND, 10);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 500 * MS, 6), 6);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 200 * MS, 10), 4);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 500 * MS, 1), 0);
	/* the four were counted in their own bucket, and leave with it */
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 200 * MS - 1, 10), 0);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND + 200 * MS, 10), 4);
	lab_finish(&lab);
}

static void a_clock_that_steps_back_beyond_the_ring_is_the_newest_bucket(void **state)
{
	struct setup setup;
	struct lab lab;

	lab_one_rule(&lab, &setup, WEIR_WINDOW_LEAP, 10, SECOND, 10);
	assert_int_equal(lab_send(&lab, HOST, 50 * SECOND, 6), 6);
	assert_int_equal(lab_send(&lab, HOST, 49 * SECOND + 99 * MS, 10), 4);
	assert_int_equal(lab_send(&lab, HOST, 3 * SECOND, 1), 0);
	assert_int_equal(lab_send(&lab, HOST, 51 * SECOND - 1, 1), 0);
	assert_int_equal(lab_send(&lab, HOST, 51 * SECOND, 20), 10);
	lab_finish(&lab);
}

/* A packet that a later rule blocks was judged by the first all the same, whose ring has then moved on. */
static void a_blocked_packet_makes_its_bucket_known_but_not_counted(void **state)
{
	struct packet_spec other_port = packet_udp(HOST, 1024, "192.0.2.53", 99, 18);
	struct weir_range port = {99, 99};
	struct model_decision decision;
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 2);
	setup.resource[1].match.destination_port = &port;
	setup.resource[1].match.destination_port_count = 1;
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	setup_rule(&setup, 1, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	lab_start(&lab, &setup);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 3), 2);
	other_port.time_ns = 6 * SECOND;
	assert_true(lab_judge(&lab, &other_port, &decision));
	assert_string_equal(decision.rule, "shut");
	/* the bucket of 5.0 s is not in the ring that ends with that of 6.0 s; nothing else is either */
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 500 * MS, 3), 2);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND, 3), 0);
	lab_finish(&lab);
}

/* 4,096 flows, as many others once those have expired, and at the time of the first the first again. */
static void an_expired_flow_counts_again_when_the_clock_goes_back(void **state)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1024, "192.0.2.53", 53, 18);
	struct model_decision decision;
	struct setup setup;
	struct lab lab;
	uint32_t i;

	setup_resources(&setup, 1);
	setup.ruleset.settings.flows_per_cpu = 4 * 2 * 4096; /* as roomy as replay makes it */
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 1, 100 * MS, 1));
	lab_start(&lab, &setup);
	for (i = 0; i < 3 * 4096; i++) {
		spec.time_ns = i / 4096 == 1 ? 2 * SECOND : SECOND;
		spec.source[1] = i / 4096 == 1;
		spec.source[2] = i % 4096 >> 8;
		spec.source[3] = i;
		assert_true(lab_judge(&lab, &spec, &decision));
		assert_int_equal(decision.verdict, i / 4096 == 2 ? WEIR_VERDICT_BLOCK : WEIR_VERDICT_PASS);
	}
	lab_finish(&lab);
}

static void a_long_silence_forgets_everything(void **state)
{
	struct setup setup;
	struct lab lab;
	int i;

	for (i = WEIR_WINDOW_LEAP; i <= WEIR_WINDOW_SMOOTH; i++) {
		lab_one_rule(&lab, &setup, i, 10, 10 * MS, 10);
		assert_int_equal(lab_send(&lab, HOST, 0, 20), 10);
		assert_int_equal(lab_send(&lab, HOST, 3599 * SECOND, 20), 10);
		lab_finish(&lab);
	}
}

static void resources_are_named_in_the_order_of_their_definition(void **state)
{
	struct packet_spec spec = packet_udp(HOST, 1024, "192.0.2.53", 53, 18);
	struct model_decision decision;
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 3);
	setup.resource[1].match.families = 2; /* does not match */
	setup_rule(&setup, 2, rule_of("third", WEIR_WINDOW_LEAP, 1, SECOND, 10));
	setup_rule(&setup, 0, rule_of("first", WEIR_WINDOW_LEAP, 1, SECOND, 10));
	lab_start(&lab, &setup);
	assert_true(lab_judge(&lab, &spec, &decision));
	assert_int_equal(decision.resource_count, 2);
	assert_int_equal(decision.resource[0], 0);
	assert_int_equal(decision.resource[1], 2);
	assert_true(lab_judge(&lab, &spec, &decision));
	assert_string_equal(decision.rule, "third");
	lab_finish(&lab);
}

/* Of a whole frame every prefix is a frame too; so is each with one byte of its headers changed. */
static void every_frame_ends_in_exactly_one_verdict(void **state)
{
	struct packet_spec spec = packet_udp("2001:db8::1", 1024, "2001:db8::53", 53, 18);
	struct model_decision decision;
	struct setup setup;
	struct lab lab;
	uint32_t i;

	spec.tag_count = 1;
	spec.tag[0] = (struct packet_tag){ETHERTYPE_VLAN, 100};
	spec.extension_count = 3;
	spec.extension[0].protocol = 0;
	spec.extension[1].protocol = 44;
	spec.extension[2].protocol = 51;
	setup_resources(&setup, 1);
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 100, SECOND, 10));
	lab_start(&lab, &setup);
	for (i = 14; i < 130; i++) {
		spec.cut_bytes = i;
		assert_true(lab_judge(&lab, &spec, &decision));
	}
	spec.cut_bytes = 0;
	spec.damage_count = 1;
	for (i = 0; i < 130 * 16; i++) {
		spec.damage[0] = (struct packet_damage){.offset = i / 16, .value = 1 << i % 16 | i % 16};
		assert_true(lab_judge(&lab, &spec, &decision));
	}
	lab_finish(&lab);
}

/* ---- random rule sets and traffic ---- */

#define ROUNDS 120
#define ROUND_PACKETS 10000

static uint64_t environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

/* Returns whether object and model agree on everything. */
static bool play(const struct weir_ruleset *ruleset, const struct packet_spec *specs, size_t count)
{
	uint64_t earliest_ns = UINT64_MAX, latest_ns = 0;
	struct model_decision decision;
	bool agreed = true;
	struct lab lab;
	size_t i;

	for (i = 0; i < count; i++) {
		earliest_ns = specs[i].time_ns < earliest_ns ? specs[i].time_ns : earliest_ns;
		latest_ns = specs[i].time_ns > latest_ns ? specs[i].time_ns : latest_ns;
	}
	assert_int_equal(lab_open(&lab, ruleset, earliest_ns, latest_ns), 0);
	for (i = 0; agreed && i < count; i++)
		agreed = lab_judge(&lab, &specs[i], &decision);
	agreed = agreed && counters_agree(&lab);
	lab_close(&lab);
	return agreed;
}

static void agrees_with_the_model_on_random_rules_and_traffic(void **state)
{
	uint64_t seed = environment("WEIR_SEED", 20250701), rounds = environment("WEIR_ROUNDS", ROUNDS), i;

	for (i = 0; i < rounds; i++) {
		struct random random = {seed + i};
		struct weir_ruleset *ruleset = random_ruleset(&random);
		struct packet_spec *specs = random_packets(&random, ruleset, ROUND_PACKETS);
		bool agreed = play(ruleset, specs, ROUND_PACKETS);

		if (!agreed) {
			ruleset_write_yaml(ruleset, stderr);
			fprintf(stderr, "repeat it: WEIR_SEED=%" PRIu64 " WEIR_ROUNDS=1\n", seed + i);
		}
		free(specs);
		random_ruleset_free(ruleset);
		assert_true(agreed);
	}
}

static int stay_on_one_cpu(void **state)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	return sched_setaffinity(0, sizeof(here), &here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leap_admits_twice_the_threshold_in_its_worst_phase),
		cmocka_unit_test(strict_counts_a_bucket_until_all_of_it_is_an_interval_old),
		cmocka_unit_test(strict_never_holds_more_than_the_threshold_in_any_interval),
		cmocka_unit_test(smooth_rounds_the_oldest_share_up),
		cmocka_unit_test(smooth_at_a_threshold_of_one_is_strict),
		cmocka_unit_test(one_sample_is_the_fixed_window),
		cmocka_unit_test(fractions_of_a_threshold_admit_nothing),
		cmocka_unit_test(each_flow_has_a_window_of_its_own),
		cmocka_unit_test(a_packet_that_any_rule_blocks_is_counted_by_none),
		cmocka_unit_test(the_first_enforced_rule_that_blocks_names_the_drop),
		cmocka_unit_test(an_observing_rule_counts_what_it_would_admit_only),
		cmocka_unit_test(a_byte_limit_below_the_frame_never_admits_it),
		cmocka_unit_test(a_jumbo_frame_counts_all_its_bytes),
		cmocka_unit_test(headers_are_read_beyond_the_first_buffer),
		cmocka_unit_test(a_clock_that_steps_back_within_the_ring_counts_newer_buckets),
		cmocka_unit_test(a_clock_that_steps_back_beyond_the_ring_is_the_newest_bucket),
		cmocka_unit_test(a_blocked_packet_makes_its_bucket_known_but_not_counted),
		cmocka_unit_test(an_expired_flow_counts_again_when_the_clock_goes_back),
		cmocka_unit_test(a_long_silence_forgets_everything),
		cmocka_unit_test(resources_are_named_in_the_order_of_their_definition),
		cmocka_unit_test(every_frame_ends_in_exactly_one_verdict),
		cmocka_unit_test(agrees_with_the_model_on_random_rules_and_traffic),
	};

	return cmocka_run_group_tests(tests, stay_on_one_cpu, NULL);
}
