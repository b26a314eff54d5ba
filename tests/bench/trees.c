// SPDX-License-Identifier: GPL-2.0-only
/*
 * This tree's weir against another's, in turns: rows S1 to S4, S7, S8, S10 and S14. Either `weir attach` loads the same
 * rules, at a tap device of its own; what it has attached is then measured here, whatever its ABI, by the same
 * harness with the same packets. A turn measures a plain program, and both, now one first and now the other. Rules are
 * reloaded several times, since where the kernel puts a table counts as well. What an old weir does not know, and so
 * refuses, is not measured.
 *
 * Instances are pinned: it runs only below tests/apart, where pins go away with the process, however it ends.
 */
#include "parts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "compare.h"
#include "contest.h"
#include "machine.h"
#include "peers.h"
#include "pipe.h"
#include "tests/bench/driver.skel.h"
#include "tests/bench/wire.skel.h"
#include "wire.h"

#define LOADS 6
#define ROUNDS 4 /* of each load */
#define RULES_MAX 8

enum tree { OLD, NEW, TREES };

static struct {
	char name[64];
	const char *path;
} weir[TREES];

void bench_trees_use(bool is_new, const char *name_and_path)
{
	enum tree tree = is_new ? NEW : OLD;
	const char *colon = strchr(name_and_path, ':');

	if (!colon)
		rig_fail(0, "'%s' is not NAME:WEIR", name_and_path);
	snprintf(weir[tree].name, sizeof(weir[tree].name), "%.*s", (int)(colon - name_and_path), name_and_path);
	weir[tree].path = colon + 1;
}

/* Which tree comes i-th in this round, or load: what comes second finds other memory, and other caches. */
static enum tree in_turn(int round, int i)
{
	return round % 2 ? 1 - i : i;
}

/* ---- rules, loaded by both ---- */

struct rules {
	const char *settings, *protocol, *more; /* `more`: what else a rule says */
	uint32_t threshold;
};

#define KNOWN "flowsPerCpu: 2097152"   /* half full with a million flows */
#define SPOOFED "flowsPerCpu: 1048576" /* as many as are sent, and more */

static const struct rules over = {KNOWN, "udp", "", 1000}, ample = {KNOWN, "udp", "", 1000000000};
static const struct rules spoofed = {SPOOFED, "udp", "", 1000};
/* Loaded once, and eight times as many: of these counts what each further one adds. Room for every row of all. */
static const struct rules several = {"flowsPerCpu: 1048576", "udp", "", 100000000};
static const struct rules hourly = {KNOWN, "udp", ", statIntervalInMs: 3600000", 1};
static const struct rules hourly_spoofed = {SPOOFED, "udp", ", statIntervalInMs: 3600000", 1};
static const struct rules connections = {"connections: 1048576, connectionFlows: 1048576", "tcp",
					 ", metricType: Concurrency", 100};
static const struct rules tcp = {"flowsPerCpu: 65536", "tcp", "", 1000000000};

/* Until the process ends an instance stays, with its device; its program's tables live no longer than it. */
struct loaded {
	char device[TREES][IF_NAMESIZE];
	int fd[TREES];
	int time; /* counts loads of these rules */
};

static int write_rules(const struct rules *rules, uint32_t count)
{
	int fd = memfd_create("rules", 0); /* for the command as well */

	if (fd < 0)
		rig_fail(errno, "cannot keep rules in memory");
	dprintf(fd, "settings: {%s}\nresources: [{name: all, match: {protocol: %s}, flow: [source]}]\nrules:\n",
		rules->settings, rules->protocol);
	for (uint32_t i = 0; i < count; i++)
		dprintf(fd, "  - {resource: all, threshold: %u%s}\n", rules->threshold + i, rules->more);
	return fd;
}

static int program_at(const char *device)
{
	__u32 id = 0;
	int err = bpf_xdp_query_id(if_nametoindex(device), 0, &id), fd = err ? err : bpf_prog_get_fd_by_id(id);

	if (fd < 0)
		rig_fail(fd, "cannot find what is attached to '%s'", device);
	return fd;
}

/* The program, or -1: this weir refuses such rules. */
static int load_one(enum tree tree, const char *device, int rules_fd)
{
	char command[4096];
	int status;

	wire_command("ip tuntap add %s mode tap && ip link set %s up", device, device);
	/* Only a failure has something to say. */
	snprintf(command, sizeof(command),
		 "said=$('%s' attach -i %s --instance %s /proc/self/fd/%d 2>&1) || "
		 "{ status=$?; echo \"$said\" >&2; exit $status; }",
		 weir[tree].path, device, device, rules_fd);
	status = system(command);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return program_at(device);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 2 || tree == NEW)
		rig_fail(0, "'%s' failed", command);
	wire_command("ip link del %s", device);
	return -1;
}

static void unload(struct loaded *loaded)
{
	for (enum tree tree = OLD; tree < TREES; tree++) {
		if (loaded->fd[tree] < 0)
			continue;
		close(loaded->fd[tree]);
		wire_command("'%s' detach --instance %s >/dev/null 2>&1 && ip link del %s", weir[tree].path,
			     loaded->device[tree], loaded->device[tree]);
	}
}

/* Returns whether both have taken them. */
static bool load(const struct rules *rules, uint32_t count, int time, struct loaded *ret_loaded)
{
	static unsigned int loads;
	int rules_fd = write_rules(rules, count);

	loads++;
	for (int i = 0; i < TREES; i++) {
		enum tree tree = in_turn(time, i);

		snprintf(ret_loaded->device[tree], IF_NAMESIZE, "%s%u", tree == OLD ? "old" : "new", loads);
		ret_loaded->fd[tree] = load_one(tree, ret_loaded->device[tree], rules_fd);
	}
	close(rules_fd);
	ret_loaded->time = time;
	if (ret_loaded->fd[OLD] >= 0)
		return true;
	unload(ret_loaded);
	return false;
}

/* ---- figures ---- */

struct turns {
	double values[TREES][COMPARE_TURNS_MAX];
	size_t count;
};
_Static_assert(LOADS *ROUNDS <= COMPARE_TURNS_MAX, "every round is a turn");

static const struct report_column columns[] = {
	{"row", REPORT_WORDS},
	{"what", REPORT_WORDS},
	{"unit", REPORT_WORDS},
	{"old", 1},
	{"new", 1},
	{"new ÷ old", 3},
	{"from", 3},
	{"to", 3},
	{"", REPORT_WORDS},
};

struct output {
	struct report *report;
	struct report_table *table;
};

static void write_row(const struct output *output, const char *name, const char *what, const char *unit,
		      const struct turns *turns)
{
	bool is_rate = strcmp(unit, "ns");
	struct report_row *row = report_add(output->report, name, AT_MOST(1), AT_MOST(1), "%s", what);
	struct comparison found;
	const char *note = "";

	if (!turns->count) {
		snprintf(row->skipped, sizeof(row->skipped), "not measured there");
		report_line(output->table, json_pack("[s,s,s,n,n,n,n,n,s]", name, what, unit, "not measured there"));
		return;
	}
	found = compare_turns(turns->values[OLD], turns->values[NEW], turns->count, is_rate);
	row->must = found.must;
	row->aim = is_rate ? AT_LEAST(1) : AT_MOST(1);
	row->is_ratio = true;
	row->value = found.ratio;
	snprintf(row->measured, sizeof(row->measured), "%.4g %s, was %.4g", found.new_median, unit, found.old_median);
	if (report_evaluate(row)[0] == 'M')
		note = "**worse**";
	else if (is_rate ? found.low > 1 : found.high < 1)
		note = "better";
	rig_say("  %-4s %-40s %8.1f -> %8.1f %s, x %.3f (%.3f to %.3f) %s", name, what, found.old_median,
		found.new_median, unit, found.ratio, found.low, found.high, note);
	report_line(output->table, json_pack("[s,s,s,f,f,f,f,f,s]", name, what, unit, found.old_median,
					     found.new_median, found.ratio, found.low, found.high, note));
}

/* ---- by BPF_PROG_TEST_RUN: S1 to S4, S8, S10 ---- */

static const struct run {
	const char *row, *what;
	const struct rules *rules;
	int family;
	enum bench_sources sources;
	uint32_t flows, repeat;
	bool is_both; /* on both CPUs at once */
} runs[] = {
	{"S1", "one flow over its limit, IPv4", &over, 4, BENCH_SOURCES_ONE, 1, 500000, false},
	{"S1", "one flow over its limit, IPv6", &over, 6, BENCH_SOURCES_ONE, 1, 500000, false},
	{"S2", "1M random flows, IPv4", &over, 4, BENCH_SOURCES_MANY, BENCH_FLOWS, 200000, false},
	{"S2", "1M random flows, IPv6", &over, 6, BENCH_SOURCES_MANY, BENCH_FLOWS, 200000, false},
	{"S3", "every packet a new source, IPv4", &spoofed, 4, BENCH_SOURCES_NEW, 0, 200000, false},
	{"S3", "every packet a new source, IPv6", &spoofed, 6, BENCH_SOURCES_NEW, 0, 200000, false},
	{"S4", "both CPUs on one flow, over its limit", &over, 4, BENCH_SOURCES_ONE, 1, 500000, true},
	{"S4", "both CPUs on one flow, all admitted", &ample, 4, BENCH_SOURCES_ONE, 1, 500000, true},
	{"S8", "each further rule, one flow, all admitted", &several, 4, BENCH_SOURCES_ONE, 1, 200000, false},
	{"S8", "each further rule, 64k flows, all admitted", &several, 4, BENCH_SOURCES_MANY, 65536, 100000, false},
	{"S10", "SYN flood of new sources, Concurrency, IPv4", &connections, 4, BENCH_SOURCES_NEW, 0, 200000, false},
};

#define SYN 0x02

static struct rig_frame frame_of(const struct run *run)
{
	return run->rules == &connections ? rig_frame_tcp(443, SYN) : rig_frame(run->family, 1, 53);
}

/* Flows are known, and tables that spoofed sources meet have been full. */
static void prepare_runs(struct rig *rig, const struct run *run, const struct loaded *loaded)
{
	struct rig_frame frame = frame_of(run);

	for (int i = 0; i < TREES; i++) {
		int fd = loaded->fd[in_turn(loaded->time, i)];

		if (run->flows)
			rig_send_new(rig, fd, &frame, 0, run->flows);
		else
			contest_flood(rig, fd, &frame);
	}
}

static double run_once(struct rig *rig, const struct run *run, int fd)
{
	struct rig_frame frame = frame_of(run);

	rig_aim(rig, fd, run->sources);
	return run->is_both ? rig_run_both(rig, rig->driver_fd, &frame, run->repeat)
			    : rig_run(rig->driver_fd, &frame, run->repeat);
}

static void measure_rounds(struct rig *rig, const struct run *run, const struct loaded *first, const struct loaded *all,
			   struct turns *turns)
{
	for (int round = 0; round < ROUNDS; round++) {
		double empty_ns = run_once(rig, run, bpf_program__fd(rig->driver->progs.bench_empty));

		for (int i = 0; i < TREES; i++) {
			enum tree tree = in_turn(round, i);
			double ns = run_once(rig, run, first->fd[tree]);

			turns->values[tree][turns->count] =
				run->rules == &several ? (run_once(rig, run, all->fd[tree]) - ns) / (RULES_MAX - 1)
						       : ns - empty_ns;
		}
		turns->count++;
	}
}

/* All of these rules, as often as they are loaded. */
static void measure_runs(struct rig *rig, const struct rules *rules, int time, struct turns turns[])
{
	struct loaded first, all = {.fd = {-1, -1}};
	bool has_all = rules == &several;

	if (!load(rules, 1, time, &first))
		return;
	if (has_all && !load(rules, RULES_MAX, time, &all)) {
		unload(&first);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		if (runs[i].rules != rules || (runs[i].is_both && rig->cpu_count < BENCH_CPUS))
			continue;
		prepare_runs(rig, &runs[i], &first);
		if (has_all)
			prepare_runs(rig, &runs[i], &all);
		rig_choose(rig, 0, runs[i].flows);
		rig_skip_to_fresh(rig);
		measure_rounds(rig, &runs[i], &first, &all, &turns[i]);
		rig_choose(rig, 0, BENCH_FLOWS);
	}
	unload(&first);
	unload(&all);
}

static void compare_runs(struct rig *rig, const struct output *output)
{
	static const struct rules *const all[] = {&over, &spoofed, &ample, &several, &connections};
	struct turns turns[ARRAY_SIZE(runs)] = {};

	for (int time = 0; time < LOADS; time++) {
		rig_say("  test runs, load %d of %d", time + 1, LOADS);
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			measure_runs(rig, all[i], time, turns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		write_row(output, runs[i].row, runs[i].what, "ns", &turns[i]);
}

/* ---- end to end: S7 ---- */

#define PACKETS 150000u
#define TRIES 10
#define SPOOFED_FIRST (1u << 26)

static const struct wire_load {
	const char *what;
	const struct rules *rules;
	uint32_t flows; /* 0: all are new, and pass */
} wire_loads[] = {
	{"end to end, limiter alone, sources: 1", &hourly, 1},
	{"end to end, limiter alone, sources: 1M", &hourly, BENCH_FLOWS},
	{"end to end, limiter alone, sources: spoofed, filling", &hourly_spoofed, 0},
};

static double send_load(struct wire *wire, int fd, const struct wire_load *load, int round, uint32_t packets)
{
	struct wire_item item = {.flows = load->flows, .packets = UINT32_MAX, .port = 1};

	if (!load->flows) {
		item.first = SPOOFED_FIRST;
		item.flows = 1u << 30;
		item.next = round * packets;
	}
	for (int i = 0; i < TRIES; i++) {
		double ns;

		wire_attach(wire, fd);
		ns = wire_measure(wire, &item, packets);
		wire_attach(wire, -1);
		if (!isnan(ns))
			return ns;
	}
	rig_fail(0, "frames get lost on the wire: the machine is too busy");
}

static void measure_wire(struct wire *wire, const struct wire_load *which, int time, struct turns *turns)
{
	const struct bpf_program *plain = which->flows ? wire->bpf->progs.bench_drop : wire->bpf->progs.bench_pass;
	struct loaded loaded;

	if (!load(which->rules, 1, time, &loaded))
		return;
	for (int i = 0; i < TREES && which->flows; i++)
		send_load(wire, loaded.fd[in_turn(time, i)], which, 0, 2 * which->flows);
	for (int round = 0; round < ROUNDS; round++) {
		double plain_ns = send_load(wire, bpf_program__fd(plain), which, round, PACKETS);

		for (int i = 0; i < TREES; i++) {
			enum tree tree = in_turn(round, i);

			turns->values[tree][turns->count] =
				send_load(wire, loaded.fd[tree], which, round, PACKETS) - plain_ns;
		}
		turns->count++;
	}
	unload(&loaded);
}

static void compare_wire(struct rig *rig, const struct output *output)
{
	static const char *const none_apart[] = {"10.224.0.0/16"};
	struct turns turns[ARRAY_SIZE(wire_loads)] = {};
	struct wire wire;

	if (peers_missing()) { /* what passes must end somewhere */
		rig_say("  not end to end: %s", peers_missing());
		return;
	}
	wire_open(&wire, rig);
	peers_count_behind(none_apart, ARRAY_SIZE(none_apart));
	for (size_t i = 0; i < ARRAY_SIZE(wire_loads); i++) {
		for (int time = 0; time < LOADS; time++)
			measure_wire(&wire, &wire_loads[i], time, &turns[i]);
		write_row(output, "S7", wire_loads[i].what, "ns", &turns[i]);
	}
	peers_stop_counting();
	wire_close(&wire);
}

/* ---- legitimate TCP: S14 ---- */

#define DURATION_NS (50 * MS)

static const struct {
	const char *name, *unit;
	double per_unit;
} traffics[PIPE_TRAFFICS] = {
	[PIPE_BULK] = {"bulk", "Gbit/s", 1e9 / 8},
	[PIPE_REQUEST] = {"requests", "k/s", 1e3},
};

static void measure_tcp(struct pipe *pipe, const struct loaded *loaded, bool is_native, enum pipe_traffic traffic,
			struct turns *turns)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < TREES; i++) {
			enum tree tree = in_turn(round, i);

			pipe_attach(pipe, loaded->fd[tree], is_native);
			turns->values[tree][turns->count] =
				pipe_measure(pipe, traffic, DURATION_NS) / traffics[traffic].per_unit;
		}
		turns->count++;
	}
	pipe_attach(pipe, -1, true);
}

/* By the stack [0] and by the driver [1]. */
struct tcp_turns {
	struct turns of[2][PIPE_TRAFFICS];
};

static void write_tcp(const struct output *output, uint32_t rules, const struct tcp_turns *turns)
{
	for (int is_native = 0; is_native < 2; is_native++)
		for (enum pipe_traffic traffic = 0; traffic < PIPE_TRAFFICS; traffic++) {
			char what[80];

			snprintf(what, sizeof(what), "legitimate TCP, %s, %s, %s", traffics[traffic].name,
				 rules == 1 ? "one rule" : "eight rules", is_native ? "native" : "skb");
			write_row(output, "S14", what, traffics[traffic].unit, &turns->of[is_native][traffic]);
		}
}

static void compare_tcp(struct pipe *pipe, uint32_t rules, const struct output *output)
{
	struct tcp_turns turns = {};
	struct loaded loaded;

	for (int time = 0; time < LOADS && load(&tcp, rules, time, &loaded); time++) {
		for (int is_native = 0; is_native < 2; is_native++)
			for (enum pipe_traffic traffic = 0; traffic < PIPE_TRAFFICS; traffic++)
				measure_tcp(pipe, &loaded, is_native, traffic, &turns.of[is_native][traffic]);
		unload(&loaded);
	}
	write_tcp(output, rules, &turns);
}

/* ---- all of it ---- */

/* Of the first namespace of processes: PROC_PID_INIT_INO in include/linux/proc_ns.h. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* Which goes away with its mounts, and so with the pins of instances, however this process ends. */
static void check_is_apart(void)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) || status.st_ino == FIRST_PID_NAMESPACE)
		rig_fail(0, "instances could stay: run it as 'tests/apart bench --only u ...'");
}

void bench_trees(struct rig *rig, struct report *report)
{
	static char note[768];
	json_t *machine = machine_describe("");
	struct pipe *pipe;
	struct output output = {report, report_table(report, "trees", "Against the last release", note, columns,
						     ARRAY_SIZE(columns))};

	check_is_apart();
	if (!weir[OLD].path || !weir[NEW].path)
		rig_fail(0, "which two are to be compared? Give --old and --new");
	snprintf(note, sizeof(note),
		 "Old: %s; new: %s. Both load the same rules, and one program measures them alternately, on one "
		 "machine:\n"
		 "%s, %s.\n"
		 "%d turns, in %d loads. Figures are medians of the turns; \"from\" and \"to\" are the range of their "
		 "ratios without the top\n"
		 "and bottom tenth. A row is worse if the whole range is worse. Nanoseconds are above an empty "
		 "program, or a plain end; for\n"
		 "rates, more is better.",
		 weir[OLD].name, weir[NEW].name, json_string_value(json_object_get(machine, "CPU")),
		 json_string_value(json_object_get(machine, "kernel")), LOADS * ROUNDS, LOADS);
	json_decref(machine);
	compare_runs(rig, &output);
	compare_wire(rig, &output);
	pipe = pipe_open(rig);
	pipe_set_gro(true); /* as devices have it */
	compare_tcp(pipe, 1, &output);
	compare_tcp(pipe, RULES_MAX, &output);
	pipe_close(pipe);
}
