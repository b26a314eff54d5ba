// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-quick: is the shipped BPF object as fast and as exact as it must be? Rows S1 to S4 and A1 to A7,
 * each with what must be reached and what is aimed at. Exit 1 when a must is missed.
 *
 * Method. Absolute nanoseconds move from machine to machine and from minute to minute, so what counts is
 * the ratio to a building block measured in the same run: a bare look-up, or an insertion, of a 64-byte
 * value in an LRU_HASH of 2^20 entries, under a 4-byte (IPv4) or 16-byte (IPv6) key. A driver program gives
 * each packet another source and tail-calls what is measured. Nanoseconds are the kernel's own mean of one
 * BPF_PROG_TEST_RUN of many packets (wall time would include what else the machine does); an empty
 * program under the same driver is subtracted ("above"). In each round the empty program, the building
 * block and weir run one after the other, the ratio is taken within the round, and the table shows
 * medians over the rounds.
 *
 * One CPU's test runs of a program that is attached nowhere make the kernel patch its code before and
 * after, and two at once take turns; so what is run is attached to a tap device of our own network
 * namespace, which goes away with the process. That two do run side by side is checked.
 *
 * How admissions are attributed to buckets under the real clock is told in accuracy_real.c.
 *
 * kernel.bpf_stats_enabled would add some 45 ns to every run: it is turned off, and restored at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>

#include "quick.h"
#include "util.h"

#define EXIT_MISSED 1
#define EXIT_USAGE 2

static const char stats_path[] = "/proc/sys/kernel/bpf_stats_enabled";
static char stats_before = '0';

static void write_stats(char value)
{
	_cleanup_(weir_closep) int fd = open(stats_path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, &value, 1) != 1)
		rig_fail(errno, "cannot write '%s'", stats_path);
}

static void restore_stats(void)
{
	int fd = open(stats_path, O_WRONLY | O_CLOEXEC);

	/* Nothing is left to be done when that fails; only async-signal-safe calls here. */
	if (fd < 0 || write(fd, &stats_before, 1) != 1)
		return;
	close(fd);
}

static void restore_stats_and_die(int signal_number)
{
	restore_stats();
	_exit(128 + signal_number);
}

static void turn_stats_off(void)
{
	_cleanup_(weir_closep) int fd = open(stats_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &stats_before, 1) != 1)
		rig_fail(errno, "cannot read '%s'", stats_path);
	if (stats_before == '0')
		return;
	atexit(restore_stats);
	signal(SIGINT, restore_stats_and_die);
	signal(SIGTERM, restore_stats_and_die);
	write_stats('0');
	fprintf(stderr, "bench: kernel.bpf_stats_enabled is off while measuring\n");
}

static void usage(FILE *stream)
{
	fprintf(stream, "usage: quick [--json FILE] [--only PARTS]\n"
			"  --json FILE   write the table there too\n"
			"  --only PARTS  letters: s speed, v accuracy under the virtual clock, r under the real one;\n"
			"                and, not done by default, l lists\n"
			"example: quick --only s --json speed.json\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
						{"only", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, 'h'},
						{}};
	const char *json_path = NULL, *parts = "svr";
	static struct report report;
	struct rig rig = {};
	size_t missed;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'j') {
			json_path = optarg;
		} else if (option == 'o') {
			parts = optarg;
		} else {
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : EXIT_USAGE;
		}
	}
	turn_stats_off();
	rig_open(&rig);
	if (strchr(parts, 's'))
		quick_speed(&rig, &report);
	if (strchr(parts, 'l'))
		quick_lists(&rig, &report);
	if (strchr(parts, 'v'))
		quick_accuracy_virtual(&rig, &report);
	if (strchr(parts, 'r'))
		quick_accuracy_real(&rig, &report);
	rig_close(&rig);

	missed = report_print(&report, stdout);
	if (json_path && report_write_json(&report, json_path))
		rig_fail(0, "cannot write '%s'", json_path);
	return missed ? EXIT_MISSED : 0;
}
