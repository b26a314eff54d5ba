// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shipped BPF object against the reference model (tests/lib/model.h), packet for packet: verdict,
 * rule, resources, counters. First claims about windows, each on traffic made for it, where the
 * expected figure is written down too; then random rule sets and traffic.
 *
 * WEIR_SEED and WEIR_ROUNDS choose the random ones; a failure names the seed of its round, and
 * WEIR_SEED=that WEIR_ROUNDS=1 repeats it. WEIR_CLAIMS='agrees*' runs only the claims with such a name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <sched.h>
#include <string.h>

#include "compile.h"
#include "connections.h"
#include "host.h"
#include "../lib/model.h"
#include "object.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "thresholds.h"
#include "util.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC

/* ---- a laboratory: one rule set, judged by the object and by the model ---- */

struct lab {
	const struct weir_ruleset *ruleset;
	struct model *model;
	struct weir_image *image;
	struct weir_object *object;
	struct weir_thresholds *thresholds;
	const struct random_reading *readings; /* of memory, in order of time */
	size_t reading_count;
	uint64_t packets;
	uint64_t latest_ns;	    /* of any packet */
	struct model_decision last; /* of lab_send */
	uint8_t frame[PACKET_BYTES_MAX];
};

static uint32_t resolve(const char *name, void *unused)
{
	return random_ifindex(name);
}

static int open_thresholds(struct lab *lab, uint64_t now_ns, struct weir_diag *diag)
{
	const struct weir_thresholds_maps maps = {
		.rules = lab->image->rule_info,
		.rule_slots = lab->image->rule_slots,
		.rule_count = lab->image->rule_count,
		.thresholds_fd = weir_object_thresholds_fd(lab->object),
		.rule_seconds_fd = weir_object_map_fd(lab->object, WEIR_MAP_RULE_SECONDS),
		.warm_states_fd = weir_object_map_fd(lab->object, WEIR_MAP_WARM_STATES),
	};
	int err = weir_thresholds_start(lab->image, NULL, now_ns, lab->object, diag);

	return err ? err : weir_thresholds_open(&maps, &lab->thresholds, diag);
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
	if (!err)
		err = open_thresholds(lab, earliest_ns, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	lab->model = model_new(ruleset, random_ifindex);
	return err;
}

/* Memory in use, for both; the array must outlive the lab. */
static void lab_readings(struct lab *lab, const struct random_reading *readings, size_t count)
{
	size_t i;

	lab->readings = readings;
	lab->reading_count = count;
	for (i = 0; i < count; i++)
		model_memory(lab->model, readings[i].time_ns, readings[i].used_bytes);
}

/* The controller, in step: it is through before the packet of that time. */
static void lab_step(struct lab *lab, uint64_t time_ns)
{
	struct weir_memory_use memory = {};
	size_t i;

	for (i = 0; i < lab->reading_count && lab->readings[i].time_ns <= time_ns; i++)
		memory = (struct weir_memory_use){true, lab->readings[i].used_bytes, UINT64_MAX};
	assert_int_equal(weir_thresholds_step(lab->thresholds, time_ns, &memory), 0);
}

static void lab_close(struct lab *lab)
{
	model_free(lab->model);
	weir_thresholds_free(lab->thresholds);
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
	else if (decision.verdict == WEIR_VERDICT_DENY)
		decision.rule = "deny";
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

	fprintf(stderr, "    %s: verdict %d, rule '%s', wait %" PRIu64 ", resources", whose, decision->verdict,
		decision->rule, decision->wait_ns);
	for (i = 0; i < decision->resource_count; i++)
		fprintf(stderr, " %zu", decision->resource[i]);
	fprintf(stderr, "\n");
}

/* What the last packet of each rule was allowed, and what is pushed now of those that move. */
static void print_thresholds(const struct lab *lab)
{
	struct weir_pushed pushed;
	uint32_t i;

	for (i = 0; i < lab->ruleset->rule_count; i++) {
		fprintf(stderr, "    rule '%s': model %" PRIu64, lab->ruleset->rules[i].name,
			model_threshold(lab->model, i));
		if (lab->image->rules[i].threshold_moves &&
		    !bpf_map_lookup_elem(weir_object_thresholds_fd(lab->object), &i, &pushed))
			fprintf(stderr, ", pushed %llu", (unsigned long long)(pushed.word & WEIR_THRESHOLD_MASK));
		fprintf(stderr, "\n");
	}
}

/* Judge by both. Returns whether they agree; *ret_decision is the model's. */
static bool lab_judge(struct lab *lab, const struct packet_spec *spec, struct model_decision *ret_decision)
{
	size_t frame_bytes = packet_build(spec, lab->frame);
	struct model_decision by_object;

	lab_step(lab, spec->time_ns);
	if (spec->time_ns > lab->latest_ns)
		lab->latest_ns = spec->time_ns;
	*ret_decision = model_judge(lab->model, spec->time_ns, lab->frame, frame_bytes, RANDOM_IFINDEX);
	by_object = object_judge(lab, spec->time_ns, frame_bytes, RANDOM_IFINDEX);
	if (agree(ret_decision, &by_object))
		return true;
	fprintf(stderr, "packet %" PRIu64 " at %" PRIu64 " ns, %zu bytes:\n", lab->packets, spec->time_ns, frame_bytes);
	print_decision("model", ret_decision);
	print_decision("object", &by_object);
	print_thresholds(lab);
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

/* What the program counts of a rule's connections, beside what the model finds. */
static bool figures_agree(const char *rule, const struct weir_connection_figures *figures,
			  const struct model_connection_counts *counts)
{
	const struct {
		const char *name;
		uint64_t figure, count;
	} pairs[] = {
		{"now", figures->now, counts->now},
		{"max", figures->max, counts->max},
		{"opened", figures->opened, counts->opened},
		{"learned", figures->learned, counts->learned},
		{"refused", figures->refused, counts->refused},
		{"closed by FIN", figures->closed_by_fin, counts->closed_by_fin},
		{"closed by RST", figures->closed_by_reset, counts->closed_by_reset},
		{"closed by silence", figures->closed_by_idle, counts->closed_by_idle},
		{"reused", figures->reused, counts->reused},
		{"evicted", figures->evicted, 0},
		{"handshakes", figures->handshakes, counts->handshakes},
		{"us of handshakes", figures->handshake_us, counts->handshake_us},
		{"us of the shortest", figures->shortest_us, counts->handshakes ? counts->handshake_us_min : 0},
	};
	bool agree = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (pairs[i].figure == pairs[i].count)
			continue;
		fprintf(stderr, "rule '%s': %s: %" PRIu64 ", model %" PRIu64 "\n", rule, pairs[i].name, pairs[i].figure,
			pairs[i].count);
		agree = false;
	}
	for (i = 0; i < WEIR_HANDSHAKE_STEPS; i++) {
		if (figures->handshake_step[i] == counts->handshake_step[i])
			continue;
		fprintf(stderr, "rule '%s': handshakes from 2^%zu us on: %" PRIu64 ", model %" PRIu64 "\n", rule, i,
			figures->handshake_step[i], counts->handshake_step[i]);
		agree = false;
	}
	return agree;
}

static bool is_same_flow(const struct weir_flow_key *key, const struct model_key *flow)
{
	return memcmp(key->source, flow->source, 16) == 0 && memcmp(key->destination, flow->destination, 16) == 0 &&
	       ntohs(key->source_port) == flow->source_port && ntohs(key->destination_port) == flow->destination_port &&
	       key->vlan == flow->vlan && key->protocol == flow->protocol && key->family == flow->family &&
	       key->ifindex == flow->ifindex;
}

/* How many connections the model has open in the flow that this entry is of; an entry of nobody is an error. */
static uint64_t open_by_model(const struct lab *lab, uint32_t rule_slot, const struct weir_flow_key *key)
{
	size_t i, count = model_flows_with_connections(lab->model);

	for (i = 0; i < count; i++) {
		const struct model_key *flow = model_flow_with_connections(lab->model, i);

		if (lab->image->rules[flow->rule].slot == rule_slot && is_same_flow(key, flow))
			return model_flow_connections(lab->model, flow).now;
	}
	return UINT64_MAX;
}

/* The connections open in all flows with a key, and whether each entry has as many as the model finds in its flow. */
static bool entries_agree(const struct lab *lab, const struct weir_connection_clock *clock, uint64_t *ret_open)
{
	int fd = weir_object_map_fd(lab->object, WEIR_MAP_CONNECTION_FLOWS);
	struct weir_connection_flow_set set;
	uint64_t now, expected;
	uint32_t i, way;

	*ret_open = 0;
	for (i = 0; i < lab->image->config.connection_flow_sets; i++) {
		assert_int_equal(bpf_map_lookup_elem(fd, &i, &set), 0);
		for (way = 0; way < WEIR_CONNECTION_FLOW_WAYS; way++) {
			const struct weir_connection_flow *flow = &set.flow[way];

			now = weir_connections_in_cells(flow, flow->owner >> 32, clock);
			expected = now ? open_by_model(lab, (uint32_t)flow->owner, &flow->key) : 0;
			*ret_open += now;
			if (now == expected)
				continue;
			fprintf(stderr, "a flow of slot %u has %" PRIu64 " connections, model %" PRIu64 "\n",
				(uint32_t)flow->owner, now, expected);
			return false;
		}
	}
	return true;
}

static bool is_concurrency(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_CONCURRENCY;
}

static bool connections_agree(const struct lab *lab)
{
	struct weir_connection_clock clock =
		weir_connection_clock(lab->image->config.connection_step_ns, lab->latest_ns);
	int fd = weir_object_map_fd(lab->object, WEIR_MAP_CONNECTION_TOTALS);
	uint64_t open = 0, open_in_entries;
	bool agreed = true;
	size_t i;

	for (i = 0; i < lab->ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &lab->ruleset->rules[i];
		struct model_connection_counts counts;
		struct weir_connection_figures figures;

		if (!is_concurrency(rule))
			continue;
		counts = model_connections(lab->model, i);
		assert_int_equal(weir_connections_read_rule(fd, lab->image->rules[i].slot, &clock, &figures), 0);
		agreed = figures_agree(rule->name, &figures, &counts) && agreed;
		if (lab->ruleset->resources[rule->resource].flow.fields)
			open += counts.now;
	}
	if (!entries_agree(lab, &clock, &open_in_entries))
		return false;
	if (open != open_in_entries)
		fprintf(stderr, "%" PRIu64 " connections in flows, model %" PRIu64 "\n", open_in_entries, open);
	return agreed && open == open_in_entries;
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
	return connections_agree(lab);
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

/* Send `count` packets of 60 bytes to a port, each judged by object and model. Returns how many passed. */
static unsigned int lab_send_to(struct lab *lab, const char *source, uint16_t port, uint64_t time_ns,
				unsigned int count)
{
	struct packet_spec spec = packet_udp(source, 1024, "192.0.2.53", port, 18);
	unsigned int i, passed = 0;

	spec.time_ns = time_ns;
	for (i = 0; i < count; i++) {
		assert_true(lab_judge(lab, &spec, &lab->last));
		passed += lab->last.verdict == WEIR_VERDICT_PASS;
	}
	return passed;
}

static unsigned int lab_send(struct lab *lab, const char *source, uint64_t time_ns, unsigned int count)
{
	return lab_send_to(lab, source, 53, time_ns, count);
}

/* A second of 500 packets, spread evenly. Returns how many passed. */
static unsigned int lab_saturate(struct lab *lab, const char *source, uint64_t second)
{
	unsigned int i, passed = 0;

	for (i = 0; i < 500; i++)
		passed += lab_send(lab, source, second * SECOND + i * 2 * MS, 1);
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

/* ---- thresholds that move, throttling, associated resources ---- */

/* Sentinel's, for a threshold of 100 with a period of 10 s and a cold factor of 3. */
static const unsigned int published_curve[] = {33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100, 100};

static struct weir_ruleset_rule warm_up_of(double threshold, uint64_t interval_ns, uint32_t period_s)
{
	struct weir_ruleset_rule rule = rule_of("warm-up", WEIR_WINDOW_LEAP, threshold, interval_ns, 10);

	rule.strategy = WEIR_STRATEGY_WARM_UP;
	rule.warm_up = (struct weir_warm_up_fields){.period_s = period_s, .cold_factor = 3};
	return rule;
}

static struct weir_ruleset_rule throttling_of(double threshold, uint64_t interval_ns, uint64_t queueing_ms_max)
{
	struct weir_ruleset_rule rule = rule_of("throttle", WEIR_WINDOW_LEAP, threshold, interval_ns, 10);

	rule.behavior = WEIR_BEHAVIOR_THROTTLING;
	rule.queueing_ms_max = queueing_ms_max;
	return rule;
}

static struct weir_ruleset_rule associated(struct weir_ruleset_rule rule, size_t ref_resource)
{
	rule.relation = WEIR_RELATION_ASSOCIATED;
	rule.ref_resource = ref_resource;
	return rule;
}

/* The first resource is ports 53 and 55, the second 54 and 55. */
static void setup_ports(struct setup *setup)
{
	static struct weir_range ports[2][2] = {{{53, 53}, {55, 55}}, {{54, 54}, {55, 55}}};
	size_t i;

	setup_resources(setup, 2);
	for (i = 0; i < 2; i++) {
		setup->resource[i].match.destination_port = ports[i];
		setup->resource[i].match.destination_port_count = 2;
	}
}

static void a_resource_warms_up_along_the_published_curve(void **state)
{
	struct setup setup;
	struct lab lab;
	size_t i;

	setup_resources(&setup, 1);
	setup.resource[0].flow = (struct weir_flow){};
	setup_rule(&setup, 0, warm_up_of(100, SECOND, 10));
	lab_start(&lab, &setup);
	for (i = 0; i < ARRAY_SIZE(published_curve); i++)
		assert_int_equal(lab_saturate(&lab, i % 2 ? HOST : OTHER_HOST, 5 + i), published_curve[i]);
	/* as cold as ever after 2P / (1 + c) = 5 s, and one more for the tokens that the last second took */
	assert_int_equal(lab_saturate(&lab, HOST, 5 + i + 6), published_curve[0]);
	lab_finish(&lab);
}

static void each_flow_warms_up_along_the_published_curve(void **state)
{
	struct setup setup;
	struct lab lab;
	size_t i;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, warm_up_of(100, SECOND, 10));
	lab_start(&lab, &setup);
	for (i = 0; i < ARRAY_SIZE(published_curve); i++) {
		assert_int_equal(lab_saturate(&lab, HOST, 5 + i), published_curve[i]);
		if (i >= 4)
			assert_int_equal(lab_saturate(&lab, OTHER_HOST, 5 + i), published_curve[i - 4]);
	}
	assert_int_equal(lab_saturate(&lab, HOST, 5 + i + 6), published_curve[0]);
	lab_finish(&lab);
}

/* 50 per half a second are 100 a second: half the curve's thresholds, within each half of a second. */
static void warm_up_goes_by_the_rate_per_second(void **state)
{
	struct setup setup;
	struct lab lab;
	int keyed, i;

	for (keyed = 0; keyed < 2; keyed++) {
		setup_resources(&setup, 1);
		if (!keyed)
			setup.resource[0].flow = (struct weir_flow){};
		setup_rule(&setup, 0, warm_up_of(50, SECOND / 2, 10));
		lab_start(&lab, &setup);
		for (i = 0; i < 20; i++)
			lab_saturate(&lab, HOST, 5 + i);
		assert_int_equal(lab_saturate(&lab, HOST, 25), 100);
		assert_int_equal(lab_send(&lab, HOST, 60 * SECOND, 100), 16);
		lab_finish(&lab);
	}
}

static void a_drop_that_is_only_observed_does_not_warm(void **state)
{
	struct setup setup;
	struct lab lab;
	int keyed;
	size_t i;

	for (keyed = 0; keyed < 2; keyed++) {
		setup_resources(&setup, 1);
		if (!keyed)
			setup.resource[0].flow = (struct weir_flow){};
		setup_rule(&setup, 0, warm_up_of(100, SECOND, 10));
		setup.rule[0].observes = true;
		lab_start(&lab, &setup);
		for (i = 0; i < ARRAY_SIZE(published_curve); i++) {
			assert_int_equal(lab_saturate(&lab, HOST, 5 + i), 500);
			assert_int_equal(model_threshold(lab.model, 0), published_curve[i]);
		}
		lab_finish(&lab);
	}
}

static void a_memory_reading_holds_from_its_own_nanosecond_on(void **state)
{
	static const struct random_reading readings[] = {
		{5 * SECOND, 1024}, {6 * SECOND, 1536}, {7 * SECOND, 9999}, {7 * SECOND, 1537}};
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, rule_of("memory", WEIR_WINDOW_LEAP, 0, 10 * MS, 1));
	setup.rule[0].strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	setup.rule[0].memory = (struct weir_memory_fields){1000, 100, 1024, 2048};
	lab_start(&lab, &setup);
	lab_readings(&lab, readings, ARRAY_SIZE(readings));
	assert_int_equal(lab_send(&lab, HOST, 4 * SECOND, 1200), 100); /* not known: highMemUsageThreshold */
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND - 1, 1200), 100);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 1200), 1000);
	assert_int_equal(lab_send(&lab, HOST, 6 * SECOND, 1200), 550);
	assert_int_equal(lab_send(&lab, HOST, 7 * SECOND, 1200), 549); /* 549.1...: of two at one time the later */
	lab_finish(&lab);
}

static void one_and_the_quotient_pass_at_one_instant(void **state)
{
	struct setup setup;
	struct lab lab;
	uint64_t i;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, throttling_of(100, SECOND, 45));
	lab_start(&lab, &setup);
	for (i = 0; i < 5; i++) {
		assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 1), 1);
		assert_int_equal(lab.last.wait_ns, i * 10 * MS);
	}
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 10), 0);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 5 * MS - 1, 1), 0);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND + 5 * MS, 1), 1); /* a wait of the maximum */
	assert_int_equal(lab.last.wait_ns, 45 * MS);
	assert_int_equal(lab_send(&lab, OTHER_HOST, 5 * SECOND + 5 * MS, 10), 5);
	assert_int_equal(lab_send(&lab, HOST, 60 * SECOND, 10), 5);
	lab_finish(&lab);
}

/* A planned time is 58 bits of the clock, which may count from 1970 or have run for ten years. */
static void planned_times_go_on_where_their_bits_end(void **state)
{
	struct setup setup;
	struct lab lab;
	int keyed, turn;

	for (keyed = 0; keyed < 2; keyed++) {
		setup_resources(&setup, 1);
		if (!keyed)
			setup.resource[0].flow = (struct weir_flow){};
		setup_rule(&setup, 0, throttling_of(100, SECOND, 45));
		lab_start(&lab, &setup);
		for (turn = 1; turn < 8; turn++) {
			uint64_t edge_ns = (1ull << 57) * turn;

			assert_int_equal(lab_send(&lab, HOST, edge_ns - 21 * MS, 10), 5);
			assert_int_equal(lab_send(&lab, HOST, edge_ns - 1, 10), 2);
			assert_int_equal(lab_send(&lab, HOST, edge_ns, 10), 0);
			assert_int_equal(lab_send(&lab, HOST, edge_ns + 20 * MS, 10), 2);
			/* a clock that goes back */
			assert_int_equal(lab_send(&lab, HOST, edge_ns - 20 * MS, 10), 0);
			assert_int_equal(lab_send(&lab, HOST, edge_ns + SECOND, 10), 5);
		}
		lab_finish(&lab);
	}
}

/* 7 units a day: a cost of 12342857142857.142857... ns, a thousand times in a row, and no nanosecond astray. */
static void waits_are_exact_to_the_nanosecond(void **state)
{
	static const double thresholds[] = {1, 3, 7, 2.9, 1.000001, 999.999999, 123456.789};
	struct setup setup;
	struct lab lab;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		setup_resources(&setup, 1);
		setup_rule(&setup, 0, throttling_of(thresholds[i], 86400 * SECOND, UINT32_MAX));
		setup_rule(&setup, 0, throttling_of(thresholds[i] * 60, SECOND, UINT32_MAX));
		setup.rule[1].counts_bytes = true;
		lab_start(&lab, &setup);
		lab_send(&lab, HOST, 0, 1000);
		lab_send(&lab, HOST, 59 * 60 * SECOND, 1000);
		lab_finish(&lab);
	}
}

static void a_slot_once_given_stays_given(void **state)
{
	struct setup setup;
	struct lab lab;

	setup_ports(&setup);
	setup_rule(&setup, 0, throttling_of(10, SECOND, 1000));
	setup_rule(&setup, 1, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	lab_start(&lab, &setup);
	assert_int_equal(lab_send_to(&lab, HOST, 55, 5 * SECOND, 3), 0);
	assert_int_equal(lab.last.wait_ns, 0);
	assert_int_equal(lab_send_to(&lab, HOST, 53, 5 * SECOND, 1), 1);
	assert_int_equal(lab.last.wait_ns, 300 * MS);
	lab_finish(&lab);
}

static void an_observing_throttle_takes_its_slot_and_adds_no_wait(void **state)
{
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, throttling_of(10, SECOND, 500));
	setup_rule(&setup, 0, throttling_of(100, SECOND, 500));
	setup.rule[0].observes = true;
	lab_start(&lab, &setup);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 8), 8);
	assert_int_equal(lab.last.wait_ns, 70 * MS);
	assert_int_equal(model_would_drop(lab.model, 0), 2);
	lab_finish(&lab);
}

static void an_associated_rule_reads_a_resource_without_rules(void **state)
{
	struct setup setup;
	struct lab lab;
	int window;

	for (window = WEIR_WINDOW_LEAP; window <= WEIR_WINDOW_SMOOTH; window++) {
		setup_ports(&setup);
		setup_rule(&setup, 0, associated(rule_of("read", window, 5, SECOND, 10), 1));
		lab_start(&lab, &setup);
		assert_int_equal(lab_send_to(&lab, HOST, 53, 5 * SECOND, 20), 20); /* its own rate is free */
		assert_int_equal(lab_send_to(&lab, HOST, 54, 5 * SECOND, 5), 5);
		assert_int_equal(lab_send_to(&lab, HOST, 53, 5 * SECOND, 5), 0);
		assert_int_equal(lab_send_to(&lab, OTHER_HOST, 53, 5 * SECOND, 5), 5); /* the same flow's is read */
		assert_int_equal(lab_send_to(&lab, HOST, 53, 7 * SECOND, 5), 5);
		/* of both resources: read first, counted after */
		assert_int_equal(lab_send_to(&lab, HOST, 55, 7 * SECOND, 20), 5);
		lab_finish(&lab);
	}
}

/* One that enforces by the same window beside it counts all of them. */
static void an_observing_associated_rule_reads_what_it_would_have_let_pass(void **state)
{
	struct setup setup;
	struct lab lab;
	int strategy;

	for (strategy = WEIR_STRATEGY_DIRECT; strategy <= WEIR_STRATEGY_WARM_UP; strategy++) {
		setup_ports(&setup);
		setup_rule(&setup, 0, associated(rule_of("observes", WEIR_WINDOW_LEAP, 5, SECOND, 10), 1));
		setup_rule(&setup, 0, associated(rule_of("enforces", WEIR_WINDOW_LEAP, 12, SECOND, 10), 1));
		setup.rule[0].observes = true;
		if (strategy == WEIR_STRATEGY_WARM_UP) {
			setup.rule[0].strategy = strategy;
			setup.rule[0].warm_up = (struct weir_warm_up_fields){.period_s = 4, .cold_factor = 3};
		}
		lab_start(&lab, &setup);
		assert_int_equal(lab_send_to(&lab, HOST, 55, 5 * SECOND, 10), 10);
		assert_int_equal(lab_send_to(&lab, HOST, 55, 5 * SECOND + 500 * MS, 10), 2);
		assert_int_equal(lab_send_to(&lab, HOST, 54, 6 * SECOND, 3), 3);
		assert_int_equal(lab_send_to(&lab, HOST, 55, 6 * SECOND, 4), 4);
		lab_send_to(&lab, HOST, 55, 7 * SECOND, 20);
		lab_send_to(&lab, HOST, 55, 8 * SECOND, 20);
		if (strategy == WEIR_STRATEGY_DIRECT)
			assert_int_equal(model_would_drop(lab.model, 0), 5 + 10 + 2 + 15 + 15);
		lab_finish(&lab);
	}
}

static void a_reference_without_a_key_is_read_as_a_whole(void **state)
{
	struct setup setup;
	struct lab lab;

	setup_ports(&setup);
	setup.resource[1].flow = (struct weir_flow){};
	setup_rule(&setup, 0, associated(rule_of("read", WEIR_WINDOW_LEAP, 5, SECOND, 10), 1));
	lab_start(&lab, &setup);
	assert_int_equal(lab_send_to(&lab, HOST, 54, 5 * SECOND, 4), 4);
	assert_int_equal(lab_send_to(&lab, OTHER_HOST, 53, 5 * SECOND, 1), 1);
	assert_int_equal(lab_send_to(&lab, HOST, 54, 5 * SECOND, 1), 1);
	assert_int_equal(lab_send_to(&lab, OTHER_HOST, 53, 5 * SECOND, 1), 0);
	lab_finish(&lab);
}

static void the_longest_override_wins(void **state)
{
	static struct weir_override overrides[] = {
		{.prefix = {4, 0, {0}}, .threshold_micro = 9 * WEIR_MICRO},
		{.prefix = {4, 24, {192, 0, 2, 0}}, .threshold_micro = 7 * WEIR_MICRO},
		{.prefix = {4, 32, {192, 0, 2, 2}}, .threshold_micro = 0},
		{.prefix = {6, 32, {0x20, 0x01, 0x0d, 0xb8}}, .threshold_micro = 100000 * WEIR_MICRO},
	};
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10));
	setup.rule[0].override_field = WEIR_KEY_SOURCE;
	setup.rule[0].overrides = overrides;
	setup.rule[0].override_count = ARRAY_SIZE(overrides);
	lab_start(&lab, &setup);
	assert_int_equal(lab_send(&lab, HOST, 5 * SECOND, 20), 7);
	assert_int_equal(lab_send(&lab, OTHER_HOST, 5 * SECOND, 20), 0);
	assert_int_equal(lab_send(&lab, "198.51.100.1", 5 * SECOND, 20), 9);
	lab_finish(&lab);
}

static void lists_come_before_every_rule_and_the_longest_prefix_wins(void **state)
{
	static struct weir_listed listed[] = {
		{{4, 24, {192, 0, 2, 0}}, true},
		{{4, 32, {192, 0, 2, 1}}, false},
	};
	struct setup setup;
	struct lab lab;

	setup_resources(&setup, 1);
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10));
	setup.ruleset.listed = listed;
	setup.ruleset.listed_count = ARRAY_SIZE(listed);
	lab_start(&lab, &setup);
	lab_send(&lab, HOST, 5 * SECOND, 20);
	assert_int_equal(lab.last.verdict, WEIR_VERDICT_ALLOW);
	lab_send(&lab, OTHER_HOST, 5 * SECOND, 20);
	assert_int_equal(lab.last.verdict, WEIR_VERDICT_DENY);
	assert_int_equal(lab_send(&lab, "198.51.100.1", 5 * SECOND, 20), 3);
	lab_finish(&lab);
}

/* ---- every combination of strategy, behaviour and relation ---- */

/* Whose key: none has one, both have the same, or refResource has none. */
enum keys { KEYS_NONE, KEYS_SAME, KEYS_OWN_ONLY, KEYS_COUNT };

static bool is_refused(enum weir_strategy strategy, enum weir_behavior behavior, enum weir_relation relation)
{
	return relation == WEIR_RELATION_ASSOCIATED && behavior == WEIR_BEHAVIOR_THROTTLING &&
	       strategy != WEIR_STRATEGY_WARM_UP;
}

static void setup_combination(struct setup *setup, enum weir_strategy strategy, enum weir_behavior behavior,
			      enum weir_relation relation, enum keys keys)
{
	struct weir_ruleset_rule rule = warm_up_of(39.5, SECOND, 4);

	setup_ports(setup);
	if (keys == KEYS_NONE)
		setup->resource[0].flow = (struct weir_flow){};
	if (keys != KEYS_SAME)
		setup->resource[1].flow = (struct weir_flow){};
	rule.strategy = strategy;
	rule.behavior = behavior;
	rule.queueing_ms_max = behavior == WEIR_BEHAVIOR_THROTTLING ? 100 : 0;
	if (strategy != WEIR_STRATEGY_WARM_UP)
		rule.warm_up = (struct weir_warm_up_fields){};
	if (strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE) {
		rule.threshold_micro = 0;
		rule.memory = (struct weir_memory_fields){60, 7, 1000, 1999};
	}
	if (relation == WEIR_RELATION_ASSOCIATED)
		rule = associated(rule, 1);
	setup_rule(setup, 0, rule);
}

/* Half a minute of 200 packets a second, of two hosts and all three ports, memory moving all the time: enough for the
 * rule to block and to let pass, and for its threshold to move.
 */
static void play_combination(struct lab *lab, bool moves)
{
	static struct random_reading readings[60];
	unsigned int passed = 0, blocked = 0, changes = 0;
	struct random random = {3};
	uint64_t threshold = 0, now_ns = 5 * SECOND;
	int i;

	for (i = 0; i < 60; i++)
		readings[i] = (struct random_reading){5 * SECOND + i * SECOND / 2, random_between(&random, 900, 2100)};
	lab_readings(lab, readings, ARRAY_SIZE(readings));
	for (i = 0; i < 6000; i++) {
		/* the other resource is busy in every second second or so, else nearly idle */
		uint16_t port = random_percent(&random, i / 200 % 2 ? 45 : 3) ? 54 : 53 + 2 * random_below(&random, 2);

		/* the hosts take turns of some seconds, so that flows cool down */
		lab_send_to(lab, i / 800 % 2 ? HOST : OTHER_HOST, port, now_ns, 1);
		passed += port != 54 && lab->last.verdict == WEIR_VERDICT_PASS;
		blocked += lab->last.verdict == WEIR_VERDICT_BLOCK;
		changes += model_threshold(lab->model, 0) != threshold;
		threshold = model_threshold(lab->model, 0);
		now_ns += random_below(&random, 10 * MS);
	}
	if (passed < 300 || blocked < 300 || (moves && changes < 3))
		fail_msg("%u passed, %u blocked, %u thresholds: the traffic is too dull", passed, blocked, changes);
}

static void every_combination_agrees_with_the_model(void **state)
{
	struct setup setup;
	struct lab lab;
	unsigned int i;

	for (i = 0; i < 3 * 2 * 2 * KEYS_COUNT; i++) {
		enum weir_strategy strategy = i % 3;
		enum weir_behavior behavior = i / 3 % 2;
		enum weir_relation relation = i / 6 % 2;
		enum keys keys = i / 12;

		if (is_refused(strategy, behavior, relation))
			continue;
		setup_combination(&setup, strategy, behavior, relation, keys);
		lab_start(&lab, &setup);
		play_combination(&lab, strategy != WEIR_STRATEGY_DIRECT);
		lab_finish(&lab);
	}
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
static bool play(struct random *random, const struct weir_ruleset *ruleset, const struct packet_spec *specs,
		 size_t count)
{
	static struct random_reading readings[64];
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
	lab_readings(&lab, readings, random_memory(random, ruleset, specs, count, readings, ARRAY_SIZE(readings)));
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
		bool agreed = play(&random, ruleset, specs, ROUND_PACKETS);

		if (!agreed) {
			ruleset_write_yaml(ruleset, stderr);
			fprintf(stderr, "repeat it: WEIR_SEED=%" PRIu64 " WEIR_ROUNDS=1\n", seed + i);
		}
		free(specs);
		weir_ruleset_free(ruleset);
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
		cmocka_unit_test(a_resource_warms_up_along_the_published_curve),
		cmocka_unit_test(each_flow_warms_up_along_the_published_curve),
		cmocka_unit_test(warm_up_goes_by_the_rate_per_second),
		cmocka_unit_test(a_drop_that_is_only_observed_does_not_warm),
		cmocka_unit_test(a_memory_reading_holds_from_its_own_nanosecond_on),
		cmocka_unit_test(one_and_the_quotient_pass_at_one_instant),
		cmocka_unit_test(planned_times_go_on_where_their_bits_end),
		cmocka_unit_test(waits_are_exact_to_the_nanosecond),
		cmocka_unit_test(a_slot_once_given_stays_given),
		cmocka_unit_test(an_observing_throttle_takes_its_slot_and_adds_no_wait),
		cmocka_unit_test(an_associated_rule_reads_a_resource_without_rules),
		cmocka_unit_test(an_observing_associated_rule_reads_what_it_would_have_let_pass),
		cmocka_unit_test(a_reference_without_a_key_is_read_as_a_whole),
		cmocka_unit_test(the_longest_override_wins),
		cmocka_unit_test(lists_come_before_every_rule_and_the_longest_prefix_wins),
		cmocka_unit_test(every_combination_agrees_with_the_model),
		cmocka_unit_test(agrees_with_the_model_on_random_rules_and_traffic),
	};

	cmocka_set_test_filter(getenv("WEIR_CLAIMS"));
	return cmocka_run_group_tests(tests, stay_on_one_cpu, NULL);
}
