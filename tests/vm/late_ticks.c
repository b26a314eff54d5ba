// SPDX-License-Identifier: GPL-2.0-only
/*
 * Late ticks: two CPUs send to one flow under a leap limit, on a machine that is stopped again and again while its
 * clock runs (tests/vm/run --stutter). Each packet shows its tick, and how old that was. What
 * the window of ticks holds never exceeds the limit, and neither does any interval of T - L - D, where D is the oldest
 * tick that a packet was evaluated against (docs/semantics.md, 1).
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../../bpf/scratch.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"

#define CPUS 2
#define LIMIT 200u
#define INTERVAL_NS SECOND
#define SAMPLES 10
#define LASTS_NS (20 * SECOND)
#define PASSES_MAX (2 * LIMIT * (LASTS_NS / INTERVAL_NS + 3))

struct pass {
	uint64_t before_ns, after_ns, bucket;
};

struct sender {
	const struct rig *rig;
	int cpu;
	uint64_t end_ns, oldest_tick_ns, packets;
	size_t pass_count;
	struct pass passes[PASSES_MAX];
	pthread_t thread;
};

static void *send_all(void *data)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 18);
	_cleanup_(weir_freep) struct weir_cpu_state *states = calloc(weir_host_cpus(), sizeof(*states));
	const struct weir_scratch *scratch;
	static __thread uint8_t frame[PACKET_BYTES_MAX];
	struct sender *self = data;
	const struct weir_object *object = self->rig->object;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(&spec, frame));
	uint64_t tick_ns = weir_host_tick_ns(), origin_ns = weir_object_tick_origin_ns(object);
	uint32_t clock = self->rig->image->rules[0].spec % WEIR_SPECS_NARROW;
	__u32 zero = 0;

	rig_pin(self->cpu);
	scratch = states ? (const struct weir_scratch *)&states[self->cpu] : NULL;
	for (struct pass pass; (pass.before_ns = weir_host_now_ns()) < self->end_ns; self->packets++) {
		uint64_t evaluated_ns;

		if (!scratch || bpf_prog_test_run_opts(weir_object_program_fd(object), &options) ||
		    bpf_map_lookup_elem(weir_object_map_fd(object, WEIR_TABLE_TOTALS), &zero, states))
			break;
		pass.after_ns = weir_host_now_ns();
		evaluated_ns = scratch->tick * tick_ns + origin_ns;
		pass.bucket = scratch->narrow_clock[clock].bucket;
		/* The packet was met after before_ns: so old was its tick at least. */
		if (pass.before_ns > evaluated_ns && pass.before_ns - evaluated_ns > self->oldest_tick_ns)
			self->oldest_tick_ns = pass.before_ns - evaluated_ns;
		if (options.retval == XDP_PASS && self->pass_count < PASSES_MAX)
			self->passes[self->pass_count++] = pass;
	}
	return NULL;
}

static int by_before(const void *left, const void *right)
{
	const struct pass *a = left, *b = right;

	return a->before_ns < b->before_ns ? -1 : a->before_ns > b->before_ns;
}

/* Passes that surely lie in [start, start + length): the most of any start at a pass. */
static size_t fullest(const struct pass *passes, size_t count, uint64_t length_ns)
{
	size_t most = 0;

	for (size_t first = 0; first < count; first++) {
		size_t within = 0;

		for (size_t i = first; i < count && passes[i].before_ns < passes[first].before_ns + length_ns; i++)
			within += passes[i].after_ns < passes[first].before_ns + length_ns;
		most = within > most ? within : most;
	}
	return most;
}

static size_t fullest_window(const struct pass *passes, size_t count)
{
	size_t most = 0;

	for (size_t last = 0; last < count; last++) {
		size_t within = 0;

		for (size_t i = 0; i < count; i++)
			within += passes[i].bucket <= passes[last].bucket &&
				  passes[i].bucket + SAMPLES > passes[last].bucket;
		most = within > most ? within : most;
	}
	return most;
}

CLAIM_WITHIN(no_window_of_late_ticks_holds_more_than_the_limit, NULL, rig_detach)
{
	struct sender *senders = calloc(CPUS, sizeof(*senders));
	struct pass *all = calloc(CPUS * PASSES_MAX, sizeof(*all));
	uint64_t oldest_ns = 0, true_ns;
	size_t count = 0, most;
	struct rig rig = {};
	int cpu[CPUS];

	assert_non_null(senders);
	assert_non_null(all);
	rig_require(CPUS);
	rig_begin(&rig, 512);
	rig_rule(&rig, rig_resource(&rig, 53, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT, INTERVAL_NS, SAMPLES);
	rig_load(&rig, false);
	assert_true(rig.image->rules[0].goes_by_ticks);
	rig_attach(&rig);
	rig_cpus(cpu, CPUS);
	for (int i = 0; i < CPUS; i++) {
		senders[i].rig = &rig;
		senders[i].cpu = cpu[i];
		senders[i].end_ns = weir_host_now_ns() + LASTS_NS;
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_true(senders[i].packets > 1000);
		memcpy(all + count, senders[i].passes, senders[i].pass_count * sizeof(*all));
		count += senders[i].pass_count;
		if (senders[i].oldest_tick_ns > oldest_ns)
			oldest_ns = senders[i].oldest_tick_ns;
	}
	rig_detach(NULL);
	qsort(all, count, sizeof(*all), by_before);
	true_ns = INTERVAL_NS - INTERVAL_NS / SAMPLES;
	true_ns = true_ns > oldest_ns ? true_ns - oldest_ns : 0;
	most = fullest(all, count, true_ns);
	printf("cpus: %zu passed, ticks up to %llu us old; %zu in a window of ticks, %zu in %llu us of true time\n",
	       count, (unsigned long long)oldest_ns / 1000, fullest_window(all, count), most,
	       (unsigned long long)true_ns / 1000);
	assert_true(count > LIMIT * (LASTS_NS / INTERVAL_NS) / 2);
	assert_in_range(fullest_window(all, count), 1, LIMIT);
	assert_in_range(most, 0, LIMIT);
	rig_end(&rig);
	free(all);
	free(senders);
}

static int enter_own_network(void **state)
{
	return geteuid() == 0 ? unshare(CLONE_NEWNET) : 0;
}

RUN_CLAIMS(enter_own_network, NULL)
