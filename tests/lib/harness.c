// SPDX-License-Identifier: GPL-2.0-only
#include "harness.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <sched.h>
#include <string.h>

#include "claims.h"
#include "base/util.h"
#include "host/host.h"
#include "program/runs.h"
#include "program/sums.h"
#include "shortcuts.h"

int harness_stay_on_one_cpu(void **state)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	return sched_setaffinity(0, sizeof(here), &here);
}

static uint32_t resolve(const char *name, void *unused)
{
	return random_ifindex(name);
}

static int open_thresholds(struct harness *harness, uint64_t now_ns, struct weir_diag *diag)
{
	const struct weir_thresholds_maps maps = {
		.rules = harness->image->rule_info,
		.rule_slots = harness->image->rule_slots,
		.rule_count = harness->image->rule_count,
		.fds = weir_object_moving_fds(harness->object),
	};
	int err = weir_thresholds_start(harness->image, NULL, now_ns, &maps.fds, diag);

	return err ? err : weir_thresholds_open(&maps, &harness->thresholds, diag);
}

static int open_at(struct harness *harness, const struct weir_ruleset *ruleset, uint64_t earliest_ns,
		   uint64_t latest_ns, bool is_at_tc)
{
	struct weir_object_options object_options = {
		.is_virtual = true,
		.without_shortcuts = shortcuts_left_out(),
		.is_unfolded = is_left_unfolded(),
		.hooks = is_at_tc ? 1u << WEIR_HOOK_TC_IN : 0,
	};
	struct weir_compile_options options = {
		.cpus = weir_host_cpus(),
		.now_ns = earliest_ns,
		.span_ns = latest_ns - earliest_ns + 48 * 3600 * SECOND,
		.ifindex = resolve,
		.is_at_tc = is_at_tc,
	};
	struct weir_diag diag = {};
	int err;

	memset(harness, 0, sizeof(*harness));
	harness->ruleset = ruleset;
	harness->is_at_tc = is_at_tc;
	err = weir_image_build(ruleset, &options, &harness->image, &diag);
	if (!err)
		err = weir_object_load(harness->image, &object_options, &harness->object, &diag);
	if (!err)
		err = open_thresholds(harness, earliest_ns, &diag);
	if (!err)
		err = weir_signals_open(weir_object_map_fd(harness->object, WEIR_TABLE_SIGNALS), &harness->signals,
					&diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	harness->model = model_new(ruleset, random_ifindex);
	return err;
}

int harness_open(struct harness *harness, const struct weir_ruleset *ruleset, uint64_t earliest_ns, uint64_t latest_ns)
{
	return open_at(harness, ruleset, earliest_ns, latest_ns, false);
}

int harness_open_at_tc(struct harness *harness, const struct weir_ruleset *ruleset, uint64_t earliest_ns,
		       uint64_t latest_ns)
{
	return open_at(harness, ruleset, earliest_ns, latest_ns, true);
}

void harness_readings(struct harness *harness, const struct random_reading *readings, size_t count)
{
	harness->readings = readings;
	harness->reading_count = count;
	for (size_t i = 0; i < count; i++)
		model_memory(harness->model, readings[i].time_ns, readings[i].used_bytes);
}

void harness_samples(struct harness *harness, const struct random_sample *samples, size_t count)
{
	harness->samples = samples;
	harness->sample_count = count;
	for (size_t i = 0; i < count; i++)
		model_sample(harness->model, samples[i].time_ns, samples[i].load1_micro, samples[i].cpu_micro);
}

static void publish_signals(const struct harness *harness, uint64_t time_ns)
{
	struct weir_signals signals = {};

	for (size_t i = 0; i < harness->sample_count && harness->samples[i].time_ns <= time_ns; i++)
		signals = (struct weir_signals){
			.load1_ns = harness->samples[i].time_ns,
			.load1_micro = harness->samples[i].load1_micro,
			.cpu_ns = harness->samples[i].time_ns,
			.cpu_micro = harness->samples[i].cpu_micro,
		};
	weir_signals_publish(harness->signals, &signals);
}

/* The controller, in step: it is through before the packet of that time. */
static void harness_step(struct harness *harness, uint64_t time_ns)
{
	struct weir_memory_use memory = {};
	size_t i;

	for (i = 0; i < harness->reading_count && harness->readings[i].time_ns <= time_ns; i++) {
		memory = (struct weir_memory_use){true, harness->readings[i].used_bytes, UINT64_MAX};
		if (i >= harness->past_readings)
			assert_int_equal(
				weir_thresholds_follow(harness->thresholds, harness->readings[i].time_ns, &memory), 0);
	}
	harness->past_readings = i;
	assert_int_equal(weir_thresholds_follow(harness->thresholds, time_ns, &memory), 0);
	if (harness->ruleset->rule_count && harness->ruleset->rules[0].system)
		publish_signals(harness, time_ns);
}

void harness_close(struct harness *harness)
{
	model_free(harness->model);
	weir_thresholds_free(harness->thresholds);
	weir_signals_close(harness->signals);
	weir_object_free(harness->object);
	weir_image_free(harness->image);
	*harness = (struct harness){};
}

/* What the object says, in the model's words. */
static struct model_decision object_evaluate(struct harness *harness, const struct packet_spec *spec,
					     size_t frame_bytes, uint32_t ifindex)
{
	const enum weir_hook hook = spec->is_out	? WEIR_HOOK_TC_OUT
				    : harness->is_at_tc ? WEIR_HOOK_TC_IN
							: WEIR_HOOK_XDP;
	volatile struct weir_harness *in_kernel = weir_object_harness(harness->object);
	struct model_decision decision = {.rule = ""};
	int action;

	in_kernel->clock_ns = spec->time_ns;
	in_kernel->frame_bytes = frame_bytes;
	in_kernel->segments = spec->segments;
	in_kernel->ifindex = ifindex;
	action = weir_object_evaluate_at(harness->object, hook, harness->frame, frame_bytes, 1);
	assert_true(action == XDP_PASS || action == XDP_DROP);
	harness->packets += spec->segments ?: 1;

	decision.verdict = in_kernel->verdict;
	decision.wait_ns = in_kernel->wait_ns;
	decision.resource_count = in_kernel->resource_count;
	assert_true(decision.resource_count <= WEIR_PACKET_RESOURCES_MAX);
	for (size_t i = 0; i < decision.resource_count; i++)
		decision.resource[i] = in_kernel->resource[i];
	if (action == XDP_PASS)
		return decision;
	if (decision.verdict == WEIR_VERDICT_BLOCK)
		decision.rule = harness->ruleset->rules[in_kernel->rule].name;
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
	fprintf(stderr, "    %s: verdict %d, rule '%s', wait %" PRIu64 ", resources", whose, decision->verdict,
		decision->rule, decision->wait_ns);
	for (size_t i = 0; i < decision->resource_count; i++)
		fprintf(stderr, " %zu", decision->resource[i]);
	fprintf(stderr, "\n");
}

/* What the last packet of each rule was allowed, and what is pushed now of those that move. */
static void print_thresholds(const struct harness *harness)
{
	struct weir_pushed pushed;

	for (uint32_t i = 0; i < harness->ruleset->rule_count; i++) {
		fprintf(stderr, "    rule '%s': model %" PRIu64, harness->ruleset->rules[i].name,
			model_threshold(harness->model, i));
		if (harness->image->rules[i].threshold_moves &&
		    !bpf_map_lookup_elem(weir_object_thresholds_fd(harness->object), &i, &pushed))
			fprintf(stderr, ", pushed %llu", (unsigned long long)(pushed.word & WEIR_THRESHOLD_MASK));
		fprintf(stderr, "\n");
	}
}

bool harness_evaluate(struct harness *harness, const struct packet_spec *spec)
{
	size_t frame_bytes = packet_build(spec, harness->frame);
	struct model_decision by_object;

	harness_step(harness, spec->time_ns);
	if (spec->time_ns > harness->latest_ns)
		harness->latest_ns = spec->time_ns;
	harness->last = model_evaluate_way(harness->model, spec->time_ns, harness->frame, frame_bytes, RANDOM_IFINDEX,
					   (struct model_way){spec->is_out, spec->segments});
	by_object = object_evaluate(harness, spec, frame_bytes, RANDOM_IFINDEX);
	if (agree(&harness->last, &by_object))
		return true;
	fprintf(stderr, "packet %" PRIu64 " at %" PRIu64 " ns, %s, %zu bytes, %u segments:\n", harness->packets,
		spec->time_ns, spec->is_out ? "out" : "in", frame_bytes, spec->segments ?: 1);
	print_decision("model", &harness->last);
	print_decision("object", &by_object);
	print_thresholds(harness);
	return false;
}

static void sum_of(const struct harness *harness, enum weir_table_id map, uint32_t slot, void *sum, size_t bytes)
{
	int cpus = weir_host_cpus();
	_cleanup_(weir_freep) __u64 *copies = calloc(cpus, bytes);
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;
	__u64 *total = sum;
	size_t words = bytes / sizeof(__u64);

	assert_int_equal(weir_runs_take(weir_object_map_fd(harness->object, WEIR_TABLE_TOTALS), &runs), 0);
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(harness->object, map), &slot, copies), 0);
	weir_runs_add(runs, map, slot, copies, cpus);
	memset(sum, 0, bytes);
	for (size_t i = 0; i < words * cpus; i++)
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
		{"returned", figures->returned, counts->returned},
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

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (pairs[i].figure == pairs[i].count)
			continue;
		fprintf(stderr, "rule '%s': %s: %" PRIu64 ", model %" PRIu64 "\n", rule, pairs[i].name, pairs[i].figure,
			pairs[i].count);
		agree = false;
	}
	for (size_t i = 0; i < WEIR_HANDSHAKE_STEPS; i++) {
		if (figures->handshake_step[i] == counts->handshake_step[i])
			continue;
		fprintf(stderr, "rule '%s': handshakes from 2^%zu us on: %" PRIu64 ", model %" PRIu64 "\n", rule, i,
			figures->handshake_step[i], counts->handshake_step[i]);
		agree = false;
	}
	return agree;
}

static void swap_bytes(void *left, void *right, size_t bytes)
{
	uint8_t kept[16];

	memcpy(kept, left, bytes);
	memcpy(left, right, bytes);
	memcpy(right, kept, bytes);
}

/* The model's keys say what a packet calls source; the program's have the remote end there, of what only goes out. */
static bool is_same_flow(const struct harness *harness, const struct weir_flow_key *key, const struct model_key *flow)
{
	const struct weir_ruleset_rule *rule = &harness->ruleset->rules[flow->rule];
	const uint32_t fields = weir_flow_of(harness->ruleset, rule)->fields;
	struct weir_flow_key expected = flow->flow;

	if (weir_resource_of(harness->ruleset, rule)->match.directions == WEIR_MATCHES_OUT) {
		if (!(fields & WEIR_KEY_RELATIVE(WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION)))
			swap_bytes(expected.source, expected.destination, sizeof(expected.source));
		if (!(fields & WEIR_KEY_RELATIVE(WEIR_KEY_SOURCE_PORT | WEIR_KEY_DESTINATION_PORT)))
			swap_bytes(&expected.source_port, &expected.destination_port, sizeof(expected.source_port));
	}
	return memcmp(key, &expected, sizeof(*key)) == 0;
}

/* How many connections the model has open in the flow that this entry is of, by each rule that shares it; an entry of
 * nobody is an error.
 */
static uint64_t open_by_model(const struct harness *harness, uint32_t flows_slot, const struct weir_flow_key *key)
{
	size_t count = model_flows_with_connections(harness->model);
	uint64_t open = UINT64_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct model_key *flow = model_flow_with_connections(harness->model, i);

		if (harness->image->rules[flow->rule].flows_slot != flows_slot || !is_same_flow(harness, key, flow))
			continue;
		if (open != UINT64_MAX && open != model_flow_connections(harness->model, flow).now)
			return UINT64_MAX;
		open = model_flow_connections(harness->model, flow).now;
	}
	return open;
}

/* The connections open in all flows with a key, and whether each entry has as many as the model finds in its flow. */
static bool entries_agree(const struct harness *harness, const struct weir_connection_clock *clock, uint64_t *ret_open)
{
	int fd = weir_object_map_fd(harness->object, WEIR_TABLE_CONNECTION_FLOWS);
	struct weir_connection_flow_set set;
	uint64_t now, expected;

	*ret_open = 0;
	for (uint32_t i = 0; i < harness->image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS]; i++) {
		assert_int_equal(bpf_map_lookup_elem(fd, &i, &set), 0);
		for (uint32_t way = 0; way < WEIR_FLOW_WAYS; way++) {
			const struct weir_connection_flow *flow = &set.flow[way];

			now = weir_connections_in_cells(flow, flow->owner >> 32, clock);
			expected =
				now ? open_by_model(harness, WEIR_CONNECTION_OWNER_SLOT(flow->owner), &flow->key) : 0;
			*ret_open += now;
			if (now == expected)
				continue;
			fprintf(stderr, "a flow of slot %u has %" PRIu64 " connections, model %" PRIu64 "\n",
				WEIR_CONNECTION_OWNER_SLOT(flow->owner), now, expected);
			return false;
		}
	}
	return true;
}

static bool is_concurrency(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_CONCURRENCY && !rule->system;
}

static bool connections_agree(const struct harness *harness)
{
	struct weir_connection_clock clock =
		weir_connection_clock(harness->image->config.connection_step_ns, harness->latest_ns);
	const struct weir_tables tables = weir_object_tables(harness->object, harness->image);
	uint64_t open = 0, open_in_entries;
	bool agreed = true;

	for (size_t i = 0; i < harness->ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &harness->ruleset->rules[i];
		const struct weir_rule *loaded = &harness->image->rules[i];
		struct model_connection_counts counts;
		struct weir_connection_figures figures;

		if (!is_concurrency(rule))
			continue;
		counts = model_connections(harness->model, i);
		assert_int_equal(
			weir_connections_read_rule(&tables, loaded->slot, loaded->flows_slot, &clock, &figures), 0);
		agreed = figures_agree(rule->name, &figures, &counts) && agreed;
		if (weir_flow_of(harness->ruleset, rule)->fields && loaded->shares_with == i)
			open += counts.now;
	}
	if (!entries_agree(harness, &clock, &open_in_entries))
		return false;
	if (open != open_in_entries)
		fprintf(stderr, "%" PRIu64 " connections in flows, model %" PRIu64 "\n", open_in_entries, open);
	return agreed && open == open_in_entries;
}

bool harness_agrees(struct harness *harness)
{
	struct weir_cpu_state state;
	uint64_t sum = 0;

	sum_of(harness, WEIR_TABLE_TOTALS, 0, &state, sizeof(state));
	for (size_t i = 0; i < WEIR_VERDICT_COUNT; i++)
		sum += state.totals.verdict[i].packets + state.out.verdict[i].packets;
	if (sum != harness->packets) {
		fprintf(stderr, "%" PRIu64 " packets, sum of verdicts %" PRIu64 "\n", harness->packets, sum);
		return false;
	}
	for (size_t i = 0; i < harness->ruleset->rule_count; i++) {
		struct weir_rule_counters counters;

		sum_of(harness, WEIR_TABLE_RULE_COUNTERS, harness->image->rules[i].slot, &counters, sizeof(counters));
		if (counters.would_drop.packets == model_would_drop(harness->model, i) && !counters.evicted &&
		    !counters.stalled &&
		    (!harness->ruleset->rules[i].occupies || counters.delayed == model_occupied(harness->model, i)))
			continue;
		fprintf(stderr,
			"rule '%s': would drop %llu, model %" PRIu64 "; evicted %llu, stalled %llu; delayed %llu, "
			"occupied by the model %" PRIu64 "\n",
			harness->ruleset->rules[i].name, (unsigned long long)counters.would_drop.packets,
			model_would_drop(harness->model, i), (unsigned long long)counters.evicted,
			(unsigned long long)counters.stalled, (unsigned long long)counters.delayed,
			model_occupied(harness->model, i));
		return false;
	}
	return connections_agree(harness);
}
