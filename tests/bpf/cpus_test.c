// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exactness across CPUs: two threads send all they can at flows of every kind, one packet at a time, or in batches
 * where single runs cannot reach ten times the limit. What is asserted, and how, is said in tests/lib/contest.h.
 */
#include <bpf/bpf.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/contest_verdict.h"
#include "base/util.h"
#include "host/host.h"

/* ---- in batches, for limits that single runs cannot reach ten times over ---- */

#define BATCH_PACKETS 300000 /* some 30 ms */

/* What the cells of this CPU's row say, for every bucket they hold; final for all but the newest. */
static int note_cells(const struct contest *contest, struct flow *flow, int which, void *values)
{
	const struct weir_rule *loaded = contest_loaded_rule(contest, flow, 0);
	struct flow_on_cpu *on = &flow->on[which];
	uint64_t first = contest_first_bucket(contest, loaded);
	struct row row;

	if (contest_read_row(contest, flow, 0, which, values, &row))
		return -EIO;
	if (row.newest - on->newest >= WEIR_RING_CELLS)
		return -ESTALE; /* buckets came and went unseen: held up for longer than the ring */
	on->newest = row.newest;
	for (uint64_t age = 0; age < WEIR_RING_CELLS && row.newest - age >= first; age++)
		if (row.newest - age - first < contest_bucket_count(contest, loaded))
			on->spent[row.newest - age - first] = contest_row_spent(&row, loaded, row.newest - age);
	return 0;
}

/*
 * A call that repeats may sleep before or after its runs; only how long these took is known. So they were
 * surely under way from `duration` before its end to `duration` after its start, and the buckets that
 * ended then were being sent to.
 */
static void note_batch(const struct contest *contest, struct flow *flow, int which, uint64_t called_ns,
		       uint64_t returned_ns, uint64_t duration_ns)
{
	const struct weir_rule *loaded = contest_loaded_rule(contest, flow, 0);
	uint64_t first = contest_first_bucket(contest, loaded), sure_from_ns = returned_ns - duration_ns;
	uint64_t sure_to_ns = called_ns + duration_ns;

	for (uint64_t bucket = contest_bucket_at(contest, loaded, sure_from_ns);
	     sure_from_ns < sure_to_ns && bucket - first < contest_bucket_count(contest, loaded); bucket++) {
		uint64_t from_ns = contest_bucket_begins_ns(contest, loaded, bucket);
		uint64_t to_ns = contest_bucket_begins_ns(contest, loaded, bucket + 1);
		struct offer *offer = &flow->on[which].offers[0][bucket - first];

		if (from_ns >= sure_to_ns)
			break;
		offer->was_held_up = to_ns > sure_to_ns;
		from_ns = from_ns > sure_from_ns ? from_ns : sure_from_ns;
		to_ns = to_ns < sure_to_ns ? to_ns : sure_to_ns;
		offer->units += (to_ns - from_ns) * BATCH_PACKETS / duration_ns;
		offer->last_ns = to_ns - loaded->bucket_ns / HELD_UP_PART; /* shorter pauses are not seen */
	}
}

static void *batch_main(void *data)
{
	struct contestant *self = data;
	struct contest *contest = self->contest;
	struct flow *flow = &contest->flows[0];
	uint64_t called_ns, returned_ns;

	do {
		called_ns = weir_host_now_ns();
	} while (called_ns < contest->start_ns);
	flow->on[self->which].newest = contest_first_bucket(contest, contest_loaded_rule(contest, flow, 0));

	while (called_ns < contest->end_ns && !self->err) {
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = flow->frame, .data_size_in = flow->frame_bytes,
			    .repeat = BATCH_PACKETS);

		self->err = bpf_prog_test_run_opts(weir_object_program_fd(contest->rig.object), &options);
		returned_ns = weir_host_now_ns();
		note_batch(contest, flow, self->which, called_ns, returned_ns,
			   (uint64_t)options.duration * BATCH_PACKETS);
		if (!self->err)
			self->err = note_cells(contest, flow, self->which, self->values);
		called_ns = weir_host_now_ns();
	}
	return NULL;
}

static void batch_evaluate(struct contest *contest, const char *what)
{
	struct flow *flow = &contest->flows[0];
	struct account account = {
		.contest = contest,
		.flow = flow,
		.loaded = contest_loaded_rule(contest, flow, 0),
		.limit = contest_limit(contest, flow, 0),
	};
	uint64_t offered = 0, counted = 0, passed = rig_passed(&contest->rig, flow->resource);

	account.first = contest_first_bucket(contest, account.loaded);
	account.buckets = contest_bucket_count(contest, account.loaded);
	account.units = calloc(account.buckets, sizeof(*account.units));
	assert_non_null(account.units);
	for (int which = 0; which < CPUS; which++)
		for (uint64_t bucket = 0; bucket < account.buckets; bucket++) {
			account.units[bucket] += flow->on[which].spent[bucket];
			counted += flow->on[which].spent[bucket];
			offered += flow->on[which].offers[0][bucket].units;
		}
	/* The counters and the windows agree; what passed while rows were made may lie before the first bucket. */
	assert_in_range(counted, passed - flow->passed_before, passed);
	contest_check_grid(&account);
	contest_check_over(contest, &account, 1);
	print_message("%s, %s: more than %" PRIu64 " offered in %" PRIu64 " ms, %" PRIu64 " passed; %" PRIu64
		      " windows full, %" PRIu64 " left out\n",
		      what, contest_kind_name(account.loaded->window), offered,
		      (uint64_t)((contest->end_ns - contest->start_ns) / MS), passed, contest->windows,
		      contest->windows_left_out);
	contest_saturation_missed |= contest->windows == 0;
	free(account.units);
}

/* One run, from a window that may hold something already. -ESTALE: a thread was held up longer than a row remembers. */
static int batch_run(struct contest *contest, uint64_t duration_ns)
{
	struct flow *flow = &contest->flows[0];

	flow->passed_before = rig_passed(&contest->rig, flow->resource);
	contest->start_ns = weir_host_now_ns() + 5 * MS;
	contest->end_ns = contest->start_ns + duration_ns;
	contest_make_logs(contest);
	for (int which = 0; which < CPUS; which++) {
		uint64_t buckets = contest_bucket_count(contest, contest_loaded_rule(contest, flow, 0));

		/* No bucket was sent to all the time until a batch says so. */
		for (uint64_t bucket = 0; bucket < buckets; bucket++)
			flow->on[which].offers[0][bucket].was_held_up = true;
		flow->on[which].spent = calloc(buckets, sizeof(uint64_t));
		assert_non_null(flow->on[which].spent);
	}
	return contest_run(contest, batch_main);
}

#define BATCH_RUNS_MAX 8

/* The same in batches, for one flow with one rule. */
static void batch_hold(struct contest *contest, const char *what, uint64_t duration_ns)
{
	int err, runs = 0;

	contest_load(contest);
	contest_make_rows(contest);
	while ((err = batch_run(contest, duration_ns)) == -ESTALE && ++runs < BATCH_RUNS_MAX) {
		print_message("%s: a thread was held up for longer than a row remembers: once more\n", what);
		contest_free_logs(contest);
	}
	if (err == -ESTALE) {
		print_message("%s: so it was in each of %d runs, which show nothing\n", what, BATCH_RUNS_MAX);
		contest_saturation_missed = true;
	} else {
		assert_int_equal(err, 0);
		batch_evaluate(contest, what);
	}
	contest_end(contest);
}

/* ---- shadow windows: what both CPUs let pass on one resource, another is evaluated by; under the virtual clock ----
 */

#define SHADOW_PORT 53 /* of the resource that is referred to, and has no rule; the next is that of the rule */
#define SHADOW_LIMIT 12
#define SHADOW_ROUNDS 1000

static atomic_uint shadow_arrived, shadow_wrong;

static bool shadow_sends(const struct contestant *self, uint16_t port, uint16_t source)
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", port, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame);

	memcpy(spec.source, &source, sizeof(source));
	options.data_size_in = packet_build(&spec, frame);
	/* Without weir_object_evaluate(), which puts the harness in order: that is shared. */
	if (bpf_prog_test_run_opts(weir_object_program_fd(self->contest->rig.object), &options))
		return false;
	return options.retval == XDP_PASS;
}

/* In a round both count at once, together one less than the limit, or the limit; then each asks. Flows are new now and
 * then.
 */
static void *shadow_main(void *data)
{
	struct contestant *self = data;
	volatile struct weir_harness *harness = weir_object_harness(self->contest->rig.object);

	for (uint32_t round = 0; round < SHADOW_ROUNDS; round++) {
		uint32_t sum = SHADOW_LIMIT - 1 + round % 2, part = round / 2 % SHADOW_LIMIT;

		rig_line_up(&shadow_arrived, CPUS, 3 * round);
		if (self->which == 0)
			harness->clock_ns += 2 * SECOND + round % WEIR_RING_CELLS * 100 * MS;
		rig_line_up(&shadow_arrived, CPUS, 3 * round + 1);
		for (uint32_t i = 0; i < (self->which ? part : sum - part); i++)
			shadow_wrong += !shadow_sends(self, SHADOW_PORT, 1 + round / 4);
		rig_line_up(&shadow_arrived, CPUS, 3 * round + 2);
		shadow_wrong += shadow_sends(self, SHADOW_PORT + 1, 1 + round / 4) != (sum < SHADOW_LIMIT);
	}
	return NULL;
}

CONTEST_CLAIM(associated_rules_go_by_what_passed_on_both_cpus)
{
	for (int is_keyed = 0; is_keyed <= 1; is_keyed++)
		for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
			uint32_t key_fields = is_keyed ? WEIR_KEY_SOURCE : 0;
			struct weir_ruleset_rule *rule;
			_cleanup_(contest_end) struct contest contest = {};
			size_t referred;

			contest_begin(&contest);
			referred = rig_resource(&contest.rig, SHADOW_PORT, key_fields);
			rule = rig_rule(&contest.rig, rig_resource(&contest.rig, SHADOW_PORT + 1, key_fields),
					contest_kinds[kind], SHADOW_LIMIT, SECOND, 10);
			rule->relation = WEIR_RELATION_ASSOCIATED;
			rule->ref_resource = referred;
			rig_load(&contest.rig, true);
			weir_object_harness(contest.rig.object)->clock_ns = RIG_START_NS;
			rig_attach(&contest.rig);
			shadow_arrived = shadow_wrong = 0;
			assert_int_equal(contest_run(&contest, shadow_main), 0);
			assert_int_equal(shadow_wrong, 0);
		}
}

/* ---- claims ---- */

/* A flow of each kind with each of these limits. */
static void add_flows(struct contest *contest, bool is_keyed, const uint64_t *limits, size_t limit_count,
		      uint64_t interval_ns, uint32_t samples)
{
	for (size_t i = 0; i < limit_count; i++)
		for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
			contest_flow(contest, is_keyed);
			contest_rule(contest, contest_kinds[kind], limits[i], interval_ns, samples);
		}
}

CONTEST_CLAIM(narrow_rows_are_exact)
{
	const uint64_t limits[] = {1, 10, 1000};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, true, limits, ARRAY_SIZE(limits), 500 * MS, 10);
	contest_hold(&contest, "narrow, 1 10 1000 in 500 ms", 1500 * MS);
}

CONTEST_CLAIM(wide_rows_are_exact_over_thousands_of_buckets)
{
	const uint64_t limits[] = {1, 10, 100};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, true, limits, ARRAY_SIZE(limits), 10 * MS, 10);
	contest_hold(&contest, "wide, 1 10 100 in 10 ms", 2000 * MS);
}

CONTEST_CLAIM(whole_resources_are_exact)
{
	const uint64_t limits[] = {1, 10, 1000};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, false, limits, ARRAY_SIZE(limits), 50 * MS, 10);
	contest_hold(&contest, "unkeyed, 1 10 1000 in 50 ms", 1500 * MS);
}

CONTEST_CLAIM(wide_rows_are_exact_with_many_leases)
{
	const uint64_t limits[] = {2000};
	struct contest contest;

	contest_begin(&contest);
	add_flows(&contest, true, limits, ARRAY_SIZE(limits), 100 * MS, 5);
	contest_hold(&contest, "wide, 2000 in 100 ms", 1000 * MS);
}

static void byte_limits_hold(uint64_t limit, uint64_t interval_ns, const char *what)
{
	struct contest contest;

	contest_begin(&contest);
	for (int is_keyed = 0; is_keyed <= 1; is_keyed++)
		for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
			contest_flow(&contest, is_keyed);
			contest_rule(&contest, contest_kinds[kind], limit, interval_ns, 5)->counts_bytes = true;
			contest.flows[contest.flow_count - 1].counts_bytes = true;
		}
	contest_hold(&contest, what, 1500 * MS);
}

CONTEST_CLAIM(byte_limits_are_exact)
{
	byte_limits_hold(1500000, 250 * MS, "medium, 1500000 bytes in 250 ms");
	byte_limits_hold(300000, 50 * MS, "wide, 300000 bytes in 50 ms");
}

/* Both must admit, and neither may admit too many: a narrow and a wide row, a wide and a lone one. */
CONTEST_CLAIM(two_rules_on_a_packet_are_exact)
{
	struct contest contest;

	contest_begin(&contest);
	for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
		contest_flow(&contest, true);
		contest_rule(&contest, contest_kinds[kind], 2000, 500 * MS, 10);
		contest_rule(&contest, contest_kinds[kind], 20, 20 * MS, 10);
		contest.flows[contest.flow_count - 1].has_other_limit = true;
		contest_flow(&contest, false);
		contest_rule(&contest, contest_kinds[kind], 1000, 50 * MS, 5);
		contest_rule(&contest, contest_kinds[kind], 100, 10 * MS, 5);
		contest.flows[contest.flow_count - 1].has_other_limit = true;
	}
	contest_hold(&contest, "two rules on a packet", 1500 * MS);
}

/* The quick admission holds the packet's unit in the first rule's lease until the second has admitted it. */
CONTEST_CLAIM(two_rules_with_narrow_rows_are_exact)
{
	const uint64_t limits[] = {1, 7, 200};
	struct contest contest;

	contest_begin(&contest);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
			contest_flow(&contest, true);
			contest_rule(&contest, contest_kinds[kind], 10 * limits[i], 1000 * MS, 10);
			contest_rule(&contest, contest_kinds[kind], limits[i], 250 * MS, 5);
			contest.flows[contest.flow_count - 1].has_other_limit = true;
		}
	contest_hold(&contest, "two rules with narrow rows", 1500 * MS);
}

CONTEST_CLAIM(narrow_rows_are_exact_at_their_largest_limit)
{
	for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
		struct contest contest;

		contest_begin(&contest);
		contest_flow(&contest, true);
		contest_rule(&contest, contest_kinds[kind], WEIR_NARROW_THRESHOLD_MAX, 250 * MS, 5);
		batch_hold(&contest, "narrow, 32000 in 250 ms", 800 * MS);
	}
}

CONTEST_CLAIM(medium_rows_are_exact_at_100000_a_second)
{
	for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
		struct contest contest;

		contest_begin(&contest);
		contest_flow(&contest, true);
		contest_rule(&contest, contest_kinds[kind], 50000, 500 * MS, 10);
		batch_hold(&contest, "medium, 50000 in 500 ms", 1000 * MS);
	}
}

/* Keyed and not: the same rows, found in two ways. */
CONTEST_CLAIM(limits_of_a_million_a_second_are_exact)
{
	for (int is_keyed = 0; is_keyed <= 1; is_keyed++)
		for (size_t kind = 0; kind < ARRAY_SIZE(contest_kinds); kind++) {
			struct contest contest;

			contest_begin(&contest);
			contest_flow(&contest, is_keyed);
			contest_rule(&contest, contest_kinds[kind], 100000, 100 * MS, 5);
			batch_hold(&contest, is_keyed ? "wide, 100000 in 100 ms" : "unkeyed, 100000 in 100 ms",
				   500 * MS);
		}
}

RUN_CLAIMS(NULL, NULL)
