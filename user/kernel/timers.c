// SPDX-License-Identifier: GPL-2.0-only
#include "timers.h"

#include <bpf/bpf.h>
#include <linux/if_ether.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "host.h"

static void *learn_here(void *data)
{
	char frame[ETH_HLEN] = {};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .repeat = 1);

	bpf_prog_test_run_opts((int)(intptr_t)data, &options);
	return NULL;
}

static bool pin_to(int cpu, int cpus)
{
	cpu_set_t *set = CPU_ALLOC(cpus);
	size_t bytes = CPU_ALLOC_SIZE(cpus);
	bool is_pinned;

	if (!set)
		return false;
	CPU_ZERO_S(bytes, set);
	CPU_SET_S(cpu, bytes, set);
	is_pinned = !sched_setaffinity(0, bytes, set);
	CPU_FREE(set);
	return is_pinned;
}

/* A thread for each CPU, made on it: that is what weir_learn_timers() goes by. */
static void *learn_everywhere(void *data)
{
	int cpus = weir_host_cpus();
	pthread_t thread;

	for (int cpu = 0; cpu < cpus; cpu++)
		if (pin_to(cpu, cpus) && !pthread_create(&thread, NULL, learn_here, data))
			pthread_join(thread, NULL);
	return NULL;
}

void weir_timers_learn(int program_fd)
{
	void *data = (void *)(intptr_t)program_fd;
	pthread_t thread;

	/* In a thread of its own, so that the caller stays on the CPUs where it may run. */
	if (!pthread_create(&thread, NULL, learn_everywhere, data))
		pthread_join(thread, NULL);
}
