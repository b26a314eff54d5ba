// SPDX-License-Identifier: GPL-2.0-only
/*
 * stalls: how long does this machine stand still? One thread on each CPU sleeps for a short time, over and over, until
 * SIGTERM. Prints "watching", and at the end "stalled_us N": how much too late the latest of them woke up. A test that
 * needs the machine in time, and ran beside this, was kept waiting for as long; by other processes, or by whoever owns
 * the (virtual) CPU.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"

#define PAUSE_NS 5000000

static volatile sig_atomic_t stopped;

struct watcher {
	pthread_t thread;
	uint64_t latest_ns;
};

static struct watcher watchers[CPU_SETSIZE];

static void stop(int signal_number)
{
	stopped = 1;
}

static void *watch(void *data)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct watcher *watcher = data;
	uint64_t before_ns = weir_host_now_ns();

	while (!stopped) {
		uint64_t now_ns, took_ns;

		nanosleep(&pause, NULL);
		now_ns = weir_host_now_ns();
		took_ns = now_ns - before_ns;
		if (took_ns > PAUSE_NS && took_ns - PAUSE_NS > watcher->latest_ns)
			watcher->latest_ns = took_ns - PAUSE_NS;
		before_ns = now_ns;
	}
	return NULL;
}

static void start(struct watcher *watcher, int cpu)
{
	pthread_attr_t attributes;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	if (pthread_create(&watcher->thread, &attributes, watch, watcher)) {
		fputs("stalls: cannot start a thread\n", stderr);
		exit(1);
	}
	pthread_attr_destroy(&attributes);
}

int main(void)
{
	uint64_t latest_ns = 0;
	cpu_set_t allowed;

	signal(SIGTERM, stop);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			start(&watchers[cpu], cpu);
	puts("watching");
	fflush(stdout);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		pthread_join(watchers[cpu].thread, NULL);
		if (watchers[cpu].latest_ns > latest_ns)
			latest_ns = watchers[cpu].latest_ns;
	}
	printf("stalled_us %llu\n", (unsigned long long)latest_ns / 1000);
	return 0;
}
