// SPDX-License-Identifier: GPL-2.0-only
/*
 * charge --instance NAME --place N --units N --bytes N [--procs FILE] [--timeout-ms N]
 *
 * Take memory, and see how long it takes until a rule of an attached instance has another threshold: the word that
 * the program reads, in the map as it is pinned. --procs: `cgroup.procs` of a cgroup to go to first, so that it is the
 * one that is charged. The memory is kept until the end.
 *
 * Prints "reacted_us N held_up_us N": how long it took since the last byte was taken, and how much of that this program
 * was kept from looking by others on its CPU; exit 1 when nothing happens in time.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "pins/pins.h"
#include "weir_abi.h"

#define PAGE_BYTES 4096
#define POLL_NS 200000
#define LATE_NS (5 * POLL_NS) /* a sleep that took longer: somebody else had the CPU */

struct request {
	const char *instance, *procs;
	uint32_t place;
	uint64_t units, bytes, timeout_ns;
};

static void die(const char *what)
{
	fprintf(stderr, "charge: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{"instance", required_argument, NULL, 'i'},
		{"place", required_argument, NULL, 'l'},
		{"units", required_argument, NULL, 'u'},
		{"bytes", required_argument, NULL, 'b'},
		{"procs", required_argument, NULL, 'p'},
		{"timeout-ms", required_argument, NULL, 't'},
		{},
	};
	int option;

	*request = (struct request){.instance = "main", .timeout_ns = 5 * WEIR_NSEC_PER_SEC};
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (option) {
		case 'i':
			request->instance = optarg;
			break;
		case 'l':
			request->place = number;
			break;
		case 'u':
			request->units = number;
			break;
		case 'b':
			request->bytes = number;
			break;
		case 'p':
			request->procs = optarg;
			break;
		case 't':
			request->timeout_ns = number * 1000000;
			break;
		default:
			exit(2);
		}
	}
}

static bool enter_cgroup(const char *procs)
{
	_cleanup_(weir_fclosep) FILE *stream = fopen(procs, "we");

	return stream && fputs("0\n", stream) >= 0 && !fflush(stream);
}

static const volatile struct weir_pushed *map_thresholds(const struct request *request)
{
	size_t bytes = ((request->place + 1) * sizeof(struct weir_pushed) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	int fd = weir_pin_open(request->instance, WEIR_PIN_THRESHOLDS);
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		die("cannot map the thresholds");
	return map;
}

static void take_memory(uint64_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("cannot take memory");
	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
		memory[at] = 1;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	const volatile struct weir_pushed *pushed;
	struct request request;
	uint64_t started_ns, looked_ns, now_ns, held_up_ns = 0;

	parse(argc, argv, &request);
	pushed = &map_thresholds(&request)[request.place];
	if (request.procs && !enter_cgroup(request.procs))
		die(request.procs);
	take_memory(request.bytes);
	started_ns = looked_ns = weir_host_now_ns();
	while ((pushed->word & WEIR_THRESHOLD_MASK) != request.units) {
		if (looked_ns - started_ns > request.timeout_ns) {
			printf("the threshold is %llu\n", (unsigned long long)(pushed->word & WEIR_THRESHOLD_MASK));
			return 1;
		}
		nanosleep(&pause, NULL);
		now_ns = weir_host_now_ns();
		if (now_ns - looked_ns > LATE_NS)
			held_up_ns += now_ns - looked_ns;
		looked_ns = now_ns;
	}
	printf("reacted_us %llu held_up_us %llu\n", (unsigned long long)(looked_ns - started_ns) / 1000,
	       (unsigned long long)held_up_ns / 1000);
	return 0;
}
