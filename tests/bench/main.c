// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bench: is the shipped BPF object as fast and as exact as it must be, and what stands beside it? `make bench`
 * runs every part and writes docs/bench.md; `make bench-quick` only those that a change of the program is likely
 * to move. Exit 3 when a must is missed. How each part measures is described at the head of its file, and for users in
 * docs/internals/bench-method.md.
 *
 * Whatever is attached, to devices of our own network namespace, goes away with the process, however it ends. What
 * would not (the kernel's statistics switched off, an instance attached by commands) is put right in clean_up().
 *
 * kernel.bpf_stats_enabled would add some 45 ns to every run: it is turned off, and restored at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "base/util.h"
#include "machine.h"
#include "parts.h"
#include "peers.h"

#define EXIT_MISSED 3
#define EXIT_USAGE 2

enum when { QUICK, FULL, NAMED }; /* done by bench-quick, by bench, only when it is named */

static const struct part {
	char letter;
	enum when when;
	void (*run)(struct rig *rig, struct report *report);
	const char *about;
} parts[] = {
	{'s', QUICK, bench_speed, "S1 to S4, beside building blocks"},
	{'f', FULL, bench_floods, "S10 to S13: SYN flood, bytes, WarmUp, MemoryAdaptive, tokens"},
	{'b', FULL, bench_blocks, "what building blocks cost"},
	{'p', FULL, bench_packets, "what a packet costs, by kind of packet and of rule"},
	{'j', FULL, bench_dearest, "S18: the dearest packet, SYN and RST under 16 rules"},
	{'n', FULL, bench_many, "S5, S8, S9: many rules"},
	{'v', QUICK, bench_accuracy_virtual, "accuracy under the virtual clock"},
	{'r', QUICK, bench_accuracy_real, "accuracy under the real clock"},
	{'m', FULL, bench_matrix, "accuracy of every pattern, limit and number of flows, beside peers"},
	{'e', FULL, bench_wire, "S7: end to end, beside peers"},
	{'y', FULL, bench_syn_flood, "S10e, S10c: a SYN flood end to end, forwarded and answered, beside peers"},
	{'t', FULL, bench_tcp, "S14: legitimate TCP through a rule, and through eight"},
	{'x', NAMED, bench_shortcuts, "what each shortcut is worth; only when named"},
	{'u', NAMED, bench_trees, "S1 to S4, S7, S8, S10, S14 of two weirs in turns; only when named"},
};

static const char stats_path[] = "/proc/sys/kernel/bpf_stats_enabled";
static char stats_before = '0';

/* Only async-signal-safe calls here: it also runs in signal handlers. Nothing is left to be done when one fails. */
static void clean_up(void)
{
	int fd;

	bench_many_clean_up(); // NOLINT(bugprone-signal-handler): keeps to such calls, too
	if (stats_before == '0')
		return;
	fd = open(stats_path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, &stats_before, 1) != 1)
		return;
	close(fd);
}

static void clean_up_and_die(int signal_number)
{
	clean_up();
	_exit(128 + signal_number);
}

static void turn_stats_off(void)
{
	_cleanup_(weir_closep) int fd = open(stats_path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || read(fd, &stats_before, 1) != 1)
		rig_fail(errno, "cannot read '%s'", stats_path);
	if (stats_before == '0')
		return;
	if (pwrite(fd, "0", 1, 0) != 1)
		rig_fail(errno, "cannot write '%s'", stats_path);
	fprintf(stderr, "bench: kernel.bpf_stats_enabled is off while measuring\n");
}

static void usage(FILE *stream)
{
	fprintf(stream, "usage: bench [--only PARTS | --quick] [--json FILE] [--page FILE]\n"
			"       bench --only u --old NAME:WEIR --new NAME:WEIR [--json FILE] [--page FILE]\n"
			"  --json FILE   write what was found there, too\n"
			"  --page FILE   ... and as a page of Markdown\n"
			"  --old, --new  two binaries, for part u; exit 3 when a row is worse by more than its spread\n"
			"  --quick       only what a change of the program is likely to move\n"
			"  --only PARTS  some of these letters:\n");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		fprintf(stream, "      %c  %s\n", parts[i].letter, parts[i].about);
	fprintf(stream, "example: bench --only s --json speed.json\n");
}

static bool is_wanted(const struct part *part, bool is_quick, const char *only)
{
	if (only)
		return strchr(only, part->letter);
	return part->when <= (is_quick ? QUICK : FULL);
}

static const struct report_column load_columns[] = {
	{"part", REPORT_WORDS},	  {"seconds", 0},     {"taken by the host, %", 1},
	{"used by others, %", 1}, {"", REPORT_WORDS},
};

static void report_load(struct report_table *table, const struct part *part, const struct machine_load *load)
{
	bool is_busy = machine_is_busy(load);

	if (is_busy)
		rig_say("  busy meanwhile: the host took %.1f %% of the CPUs, others used %.1f %%", load->steal,
			load->others);
	report_line(table, json_pack("[s,f,f,f,s]", part->about, load->seconds, load->steal, load->others,
				     is_busy ? "**busy**" : "quiet"));
}

/* In `busy`: the parts that were measured while the machine was busy, or "no". */
static void run_parts(struct report *report, bool is_quick, const char *only, char *busy, size_t busy_bytes)
{
	uint64_t start_ns = rig_now_ns();
	struct report_table *table =
		report_table(report, "load", "What else the machine did", NULL, load_columns, ARRAY_SIZE(load_columns));
	struct rig rig = {};
	size_t used = 0;

	table->is_only_in_json = true;
	snprintf(busy, busy_bytes, "no");
	rig_open(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct machine_meter meter;
		struct machine_load load;

		if (!is_wanted(&parts[i], is_quick, only))
			continue;
		rig_say("%3.0f s: %s", (rig_now_ns() - start_ns) / 1e9, parts[i].about);
		machine_meter_start(&meter);
		parts[i].run(&rig, report);
		load = machine_meter_read(&meter);
		report_load(table, &parts[i], &load);
		if (machine_is_busy(&load) && used < busy_bytes)
			used += (size_t)snprintf(busy + used, busy_bytes - used, "%s%s",
						 used ? "; " : "**yes**, during ", parts[i].about);
	}
	rig_close(&rig);
	rig_say("%3.0f s: done", (rig_now_ns() - start_ns) / 1e9);
}

struct request {
	const char *json_path, *page_path, *only;
	bool is_quick;
};

/* Measure, and write what was found wherever it is wanted. */
static int run_bench(const struct request *request)
{
	static struct report report;
	char busy[512];
	json_t *machine;
	size_t missed;

	turn_stats_off();
	run_parts(&report, request->is_quick, request->only, busy, sizeof(busy));
	if (!request->is_quick && !request->only)
		report_complete(&report);
	missed = report_print(&report, stdout);
	machine = machine_describe(busy);
	peers_describe(machine);
	if (request->json_path && report_write_json(&report, machine, request->json_path))
		rig_fail(0, "cannot write '%s'", request->json_path);
	if (request->page_path && report_write_page(&report, machine, request->page_path))
		rig_fail(0, "cannot write '%s'", request->page_path);
	json_decref(machine);
	report_free(&report);
	return missed ? EXIT_MISSED : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", required_argument, NULL, 'j'}, {"page", required_argument, NULL, 'p'},
		{"only", required_argument, NULL, 'o'}, {"old", required_argument, NULL, 'b'},
		{"new", required_argument, NULL, 'n'},	{"quick", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},	{}};
	struct request request = {};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'j') {
			request.json_path = optarg;
		} else if (option == 'p') {
			request.page_path = optarg;
		} else if (option == 'o') {
			request.only = optarg;
		} else if (option == 'b' || option == 'n') {
			bench_trees_use(option == 'n', optarg);
		} else if (option == 'q') {
			request.is_quick = true;
		} else {
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : EXIT_USAGE;
		}
	}
	atexit(clean_up);
	signal(SIGINT, clean_up_and_die);
	signal(SIGTERM, clean_up_and_die);
	signal(SIGHUP, clean_up_and_die);
	return run_bench(&request);
}
