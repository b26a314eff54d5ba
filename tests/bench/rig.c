// SPDX-License-Identifier: GPL-2.0-only
#include "rig.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "../lib/packets.h"
#include "base/util.h"
#include "host/host.h"
#include "program/runs.h"
#include "sentinel/sentinel.h"
#include "tests/bench/driver.skel.h"

#define TRIES 10 /* of something that a busy machine may spoil */

void rig_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, args);
	if (err)
		fprintf(stderr, ": %s", strerror(err < 0 ? -err : err));
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

void rig_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
}

void rig_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		rig_fail(errno, "cannot pin to CPU %d", cpu);
}

uint64_t rig_now_ns(void)
{
	return weir_host_now_ns();
}

/* ---- the namespace ---- */

static void choose_cpus(struct rig *rig)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		rig_fail(errno, "cannot tell which CPUs we may use");
	for (int cpu = 0; cpu < CPU_SETSIZE && rig->cpu_count < BENCH_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			rig->cpu[rig->cpu_count++] = cpu;
}

/* A tap device: it takes XDP programs, and goes away with the file descriptor. */
static int make_device(const char *name, uint32_t *ret_ifindex)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		rig_fail(errno, "cannot make tap device '%s'", name);
	*ret_ifindex = if_nametoindex(name);
	return fd;
}

static int attach(int program_fd, uint32_t ifindex)
{
	int fd = bpf_link_create(program_fd, ifindex, BPF_XDP, NULL);

	if (fd < 0)
		rig_fail(fd, "cannot attach to a tap device");
	return fd;
}

int rig_attach(const struct rig *rig, int program_fd)
{
	return attach(program_fd, rig->ifindex[1]);
}

void rig_open(struct rig *rig)
{
	choose_cpus(rig);
	if (unshare(CLONE_NEWNET))
		rig_fail(errno, "cannot make a network namespace (root?)");
	rig->device_fd[0] = make_device("driver", &rig->ifindex[0]);
	rig->device_fd[1] = make_device("weir", &rig->ifindex[1]);
	rig->driver = bench_driver__open_and_load();
	if (!rig->driver)
		rig_fail(errno, "cannot load the driver");
	rig->driver_fd = bpf_program__fd(rig->driver->progs.bench_drive);
	rig_choose(rig, 0, BENCH_FLOWS);
	rig->next_fresh = 1u << 23;
	rig->driver_link = attach(rig->driver_fd, rig->ifindex[0]);
	rig_rewind(rig, 0);
	rig_pin(rig->cpu[0]);
}

void rig_close(struct rig *rig)
{
	close(rig->driver_link);
	bench_driver__destroy(rig->driver);
	close(rig->device_fd[0]);
	close(rig->device_fd[1]);
}

/* ---- frames ---- */

static struct rig_frame build(const struct packet_spec *spec)
{
	static uint8_t bytes[PACKET_BYTES_MAX];
	struct rig_frame frame = {.byte_count = packet_build(spec, bytes)};

	if (frame.byte_count > sizeof(frame.bytes))
		rig_fail(0, "a frame of %u bytes", frame.byte_count);
	memcpy(frame.bytes, bytes, frame.byte_count);
	return frame;
}

static struct packet_spec udp(int family, uint8_t host, uint16_t port)
{
	struct packet_spec spec = family == 4 ? packet_udp("192.0.2.0", 1024, "198.51.100.1", port, 18)
					      : packet_udp("2001:db8::", 1024, "2001:db8:1::1", port, 18);

	spec.source[family == 4 ? 3 : 15] = host;
	return spec;
}

struct rig_frame rig_frame(int family, uint8_t host, uint16_t port)
{
	struct packet_spec spec = udp(family, host, port);

	return build(&spec);
}

struct rig_frame rig_frame_vlan(uint16_t port)
{
	struct packet_spec spec = udp(4, 1, port);

	spec.tag[0] = (struct packet_tag){.ethertype = ETHERTYPE_VLAN, .id = 7};
	spec.tag_count = 1;
	return build(&spec);
}

struct rig_frame rig_frame_tcp(uint16_t port, uint8_t flags)
{
	struct packet_spec spec = udp(4, 1, port);

	/* Without the source, which the driver writes, and its complement beside it: the checksum stays right. */
	memset(spec.source, 0, sizeof(spec.source));
	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	return build(&spec);
}

/* ---- the shipped object ---- */

#define LIMITS_MAX 16

static void describe_limit(const struct rig_limit *limit, size_t i, struct weir_ruleset *ruleset,
			   struct weir_range *port, char *name)
{
	struct weir_ruleset_resource *resource = &ruleset->resources[i];
	struct weir_ruleset_rule *rule = &ruleset->rules[i];

	resource->name = name;
	resource->match.has_protocol = true;
	resource->match.protocol[IPPROTO_UDP / 8] = 1 << IPPROTO_UDP % 8;
	port->low = port->high = limit->port;
	resource->match.destination_port = port;
	resource->match.destination_port_count = limit->port != 0;
	if (limit->is_keyed) {
		resource->flow.fields = WEIR_KEY_SOURCE;
		resource->flow.source_bits[0] = 32;
		resource->flow.source_bits[1] = 128;
	}
	rule->name = name;
	rule->resource = i;
	rule->threshold_micro = limit->threshold * WEIR_MICRO;
	rule->interval_ns = SECOND;
	rule->samples = WEIR_SAMPLES_MAX;
	rule->window = limit->window;
}

/* Compile and load. now_ns: with is_virtual, where the clock will begin. */
static struct weir_object *load(const struct weir_ruleset *ruleset, bool is_virtual, uint64_t now_ns,
				uint32_t without_shortcuts)
{
	struct weir_compile_options compile = {
		.cpus = weir_host_cpus(),
		.now_ns = is_virtual ? now_ns : rig_now_ns(),
	};
	struct weir_object_options options = {.is_virtual = is_virtual, .without_shortcuts = without_shortcuts};
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_object *object = NULL;
	struct weir_diag diag = {};

	if (weir_image_build(ruleset, &compile, &image, &diag) || weir_object_load(image, &options, &object, &diag)) {
		weir_diag_print(&diag, stderr);
		rig_fail(0, "cannot load the shipped object");
	}
	weir_diag_free(&diag);
	return object;
}

struct weir_object *rig_load(const struct rig_limit *limits, size_t limit_count, uint32_t flows_per_cpu,
			     bool is_virtual, uint64_t now_ns)
{
	struct weir_ruleset_resource resources[LIMITS_MAX] = {};
	struct weir_ruleset_rule rules[LIMITS_MAX] = {};
	struct weir_range ports[LIMITS_MAX] = {};
	char names[LIMITS_MAX][16];
	struct weir_ruleset ruleset = {.settings = {.flows_per_cpu = flows_per_cpu, .drop_malformed = true},
				       .resources = resources,
				       .resource_count = limit_count,
				       .rules = rules,
				       .rule_count = limit_count};

	for (size_t i = 0; i < limit_count; i++) {
		snprintf(names[i], sizeof(names[i]), "limit%zu", i);
		describe_limit(&limits[i], i, &ruleset, &ports[i], names[i]);
	}
	return load(&ruleset, is_virtual, now_ns, 0);
}

/* In memory: rule files of thousands of rules need no place on a disk. */
static struct weir_ruleset *read_text(const char *text)
{
	struct weir_ruleset *ruleset = NULL;
	const char *paths[1];
	struct weir_diag diag = {};
	char path[32];
	int fd = memfd_create("rules", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rig_fail(errno, "cannot keep rules in memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	paths[0] = path;
	weir_use_foreign_reader(&weir_sentinel_reader);
	if (weir_ruleset_read(paths, 1, &ruleset, &diag)) {
		weir_diag_print(&diag, stderr);
		rig_fail(0, "cannot read rules made here");
	}
	close(fd);
	weir_diag_free(&diag);
	return ruleset;
}

/* A sign of life that does not end with the run. */
static void play_controller(const struct weir_object *object)
{
	struct weir_control control = {.heartbeat_ns = rig_now_ns(), .validity_ns = 86400 * SECOND};
	__u32 zero = 0;
	int err = bpf_map_update_elem(weir_object_map_fd(object, WEIR_TABLE_CONTROL), &zero, &control, BPF_ANY);

	if (err)
		rig_fail(err, "cannot play the controller");
}

struct weir_object *rig_load_text_without(const char *text, uint32_t without_shortcuts)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = read_text(text);
	struct weir_object *object = load(ruleset, false, 0, without_shortcuts);

	play_controller(object);
	return object;
}

struct weir_object *rig_load_text(const char *text)
{
	return rig_load_text_without(text, 0);
}

struct weir_rule_counters rig_rule_counters(const struct weir_object *object, uint32_t slot)
{
	int cpus = weir_host_cpus(), err;
	struct weir_rule_counters sum = {};
	_cleanup_(weir_freep) struct weir_rule_counters *counters = calloc(cpus, sizeof(*counters));
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;

	err = weir_runs_take(weir_object_map_fd(object, WEIR_TABLE_TOTALS), &runs);
	if (!err)
		err = bpf_map_lookup_elem(weir_object_map_fd(object, WEIR_TABLE_RULE_COUNTERS), &slot, counters);
	if (err)
		rig_fail(err, "cannot read the counters of a rule");
	weir_runs_add(runs, WEIR_TABLE_RULE_COUNTERS, slot, counters, cpus);
	for (int cpu = 0; cpu < cpus; cpu++) {
		sum.blocked.packets += counters[cpu].blocked.packets;
		sum.delayed += counters[cpu].delayed;
		sum.evicted += counters[cpu].evicted;
		sum.stalled += counters[cpu].stalled;
		sum.leases += counters[cpu].leases;
	}
	return sum;
}

uint64_t rig_base_bucket(const struct weir_object *object)
{
	struct weir_window_spec spec;
	__u32 zero = 0;
	int err = bpf_map_lookup_elem(weir_object_map_fd(object, WEIR_TABLE_WINDOW_SPECS), &zero, &spec);

	if (err)
		rig_fail(err, "cannot read a window spec");
	return spec.base_bucket;
}

/* ---- runs ---- */

void rig_aim(struct rig *rig, int program_fd, enum bench_sources sources)
{
	__u32 slot = 0;
	int err = bpf_map_update_elem(bpf_map__fd(rig->driver->maps.target), &slot, &program_fd, BPF_ANY);

	if (err)
		rig_fail(err, "cannot tail-call the program to measure");
	rig->driver->bss->sources = sources;
}

void rig_choose(struct rig *rig, uint32_t first, uint32_t count)
{
	rig->driver->bss->first_flow = first;
	rig->driver->bss->flow_count = count;
}

void rig_rewind(struct rig *rig, uint64_t next)
{
	int cpus = weir_host_cpus(), err;
	_cleanup_(weir_freep) struct bench_cursor *cursors = calloc(cpus, sizeof(*cursors));
	__u32 zero = 0;

	for (int cpu = 0; cpu < cpus; cpu++) {
		cursors[cpu].random = 0x9e3779b97f4a7c15ull * (cpu + 1);
		cursors[cpu].next = next;
	}
	err = bpf_map_update_elem(bpf_map__fd(rig->driver->maps.cursors), &zero, cursors, BPF_ANY);
	if (err)
		rig_fail(err, "cannot set the driver's cursors");
}

void rig_skip_to_fresh(struct rig *rig)
{
	rig_rewind(rig, rig->next_fresh);
	rig->next_fresh += 1u << 23;
}

void rig_send_new(struct rig *rig, int program_fd, const struct rig_frame *frame, uint64_t first, uint32_t count)
{
	rig_rewind(rig, first);
	rig_aim(rig, program_fd, BENCH_SOURCES_NEW);
	rig_run(rig->driver_fd, frame, count);
}

/* Time that this thread has had a CPU. */
static uint64_t own_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

double rig_run(int entry_fd, const struct rig_frame *frame, uint32_t repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes, .data_size_in = frame->byte_count,
		    .repeat = repeat);
	uint64_t before_ns = own_ns();
	int err = bpf_prog_test_run_opts(entry_fd, &options);
	uint64_t ns = own_ns() - before_ns;

	if (!err && options.retval == 0)
		err = -EFAULT; /* XDP_ABORTED: the driver missed, or a building block's key was not there */
	if (err)
		rig_fail(err, "a test run failed");
	/* options.duration is the same in whole ns, too coarse for what takes some twenty. */
	return (double)ns / repeat;
}

struct both {
	const struct rig *rig;
	pthread_barrier_t barrier;
	void (*work)(void *data, int i);
	void *data;
};

static void *second_thread(void *argument)
{
	struct both *both = argument;

	rig_pin(both->rig->cpu[1]);
	pthread_barrier_wait(&both->barrier);
	both->work(both->data, 1);
	return NULL;
}

void rig_on_both(const struct rig *rig, void (*work)(void *data, int i), void *data)
{
	struct both both = {.rig = rig, .work = work, .data = data};
	pthread_t thread;
	int err;

	pthread_barrier_init(&both.barrier, NULL, 2);
	err = pthread_create(&thread, NULL, second_thread, &both);
	if (err)
		rig_fail(err, "cannot start a thread");
	pthread_barrier_wait(&both.barrier);
	work(data, 0);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both.barrier);
}

struct side_by_side {
	int entry_fd;
	const struct rig_frame *frame;
	uint32_t repeat;
	double duration_ns[BENCH_CPUS];
	int resting; /* of rig_run_alone() */
	_Atomic bool is_over;
};

static void run_one_side(void *data, int i)
{
	struct side_by_side *run = data;

	run->duration_ns[i] = rig_run(run->entry_fd, run->frame, run->repeat);
}

/* Let this CPU have empty packets, or no more. */
static void let_rest(struct rig *rig, int cpu, bool rests)
{
	int cpus = weir_host_cpus(), err;
	_cleanup_(weir_freep) struct bench_cursor *cursors = calloc(cpus, sizeof(*cursors));
	__u32 zero = 0;

	err = bpf_map_lookup_elem(bpf_map__fd(rig->driver->maps.cursors), &zero, cursors);
	if (!err) {
		cursors[cpu].rests = rests;
		err = bpf_map_update_elem(bpf_map__fd(rig->driver->maps.cursors), &zero, cursors, BPF_ANY);
	}
	if (err)
		rig_fail(err, "cannot set the driver's cursors");
}

#define REST_REPEAT 50000u /* a millisecond */

static void run_or_rest(void *data, int i)
{
	struct side_by_side *run = data;

	if (i == run->resting) {
		while (!run->is_over)
			rig_run(run->entry_fd, run->frame, REST_REPEAT);
	} else {
		run_one_side(run, i);
		run->is_over = true;
	}
}

double rig_run_alone(struct rig *rig, int entry_fd, const struct rig_frame *frame, uint32_t repeat)
{
	double sum_ns = 0;

	for (int resting = 0; resting < BENCH_CPUS; resting++) {
		struct side_by_side run = {.entry_fd = entry_fd, .frame = frame, .repeat = repeat, .resting = resting};

		let_rest(rig, rig->cpu[resting], true);
		rig_on_both(rig, run_or_rest, &run);
		let_rest(rig, rig->cpu[resting], false);
		sum_ns += run.duration_ns[!resting];
	}
	return sum_ns / BENCH_CPUS;
}

double rig_run_both(const struct rig *rig, int entry_fd, const struct rig_frame *frame, uint32_t repeat)
{
	struct side_by_side run = {.entry_fd = entry_fd, .frame = frame, .repeat = repeat};

	rig_on_both(rig, run_one_side, &run);
	return (run.duration_ns[0] + run.duration_ns[1]) / 2;
}

/* Wall time would mean nothing on a machine that others use as well, so the two look at each other. */
void rig_check_side_by_side(struct rig *rig)
{
	const uint32_t repeat = 1000000;
	struct rig_frame frame = rig_frame(4, 1, 53);
	struct bench_driver__bss *bss = rig->driver->bss;

	bss->second_cpu = rig->cpu[1];
	rig_aim(rig, bpf_program__fd(rig->driver->progs.bench_meet), BENCH_SOURCES_ONE);
	for (int i = 0; i < TRIES; i++) {
		memset(bss->meetings, 0, sizeof(bss->meetings));
		rig_run_both(rig, rig->driver_fd, &frame, repeat);
		if (bss->meetings[0].met > repeat / 100 && bss->meetings[1].met > repeat / 100)
			return;
	}
	rig_fail(0, "two test runs at once took turns, or the machine is too busy");
}
